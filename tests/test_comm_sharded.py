"""Sharded tables: any number of ranks gives the bits of one process, and whatever goes wrong is told to all."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import array_model
import ptokit as pto
from ptokit.comm import Rank, RankError, ShardedTable, Traffic, World, local
from ptokit.comm.tables import forms, sharded, shards
from ptokit.comm.tables.routing import Blocks, Routes
from ptokit.comm.transport import Transport

Array = np.ndarray[Any, Any]

TYPES = {
    "int8": np.int8,
    "uint16": np.uint16,
    "int32": np.int32,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float32": np.float32,
    "float8_e4m3": ml_dtypes.float8_e4m3fn,
}
INDEX_TYPES = (np.int32, np.int64, np.uint32, np.uint64)
ENGINES = [("threads", 1), ("threads", 2), ("threads", 3), ("threads", 4), ("processes", 2), ("processes", 4)]
WIDTH = 3

on_every_engine = pytest.mark.parametrize(("engine", "size"), ENGINES)


def world_of(engine: str, size: int) -> World:
    return local(size, threads=engine == "threads", timeout=20)


def bits(array: Array) -> Array:
    return np.ascontiguousarray(array).view(np.uint8)


def assert_same(found: Array, wanted: Array) -> None:
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    assert np.array_equal(bits(found), bits(wanted))


def numbers(rng: np.random.Generator, dtype: str, *shape: int) -> Array:
    """Values whose sums depend on the order, and overflow in small integers."""
    scale = rng.choice([0.01, 1.0, 60.0], shape)
    return (rng.standard_normal(shape) * scale).astype(np.float32).astype(np.int32 if "int" in dtype else np.float32)


def of_type(values: Array, dtype: str) -> Array:
    return values.astype(TYPES[dtype])


def blocks_of(rng: np.random.Generator, rows: int, size: int) -> list[int]:
    """Uneven, and often with ranks that own nothing."""
    cuts = np.sort(rng.choice([0, rows // 3, rows // 2, rows], size - 1))
    return np.diff([0, *cuts, rows]).tolist()


def indices(rng: np.random.Generator, rows: int, oob: str, rank: int) -> Array:
    """Many duplicates, and what the policy has to deal with; of every index type, and of several shapes."""
    shape = [(0,), (23,), (4, 5), ()][int(rng.integers(4))]
    kind = INDEX_TYPES[int(rng.integers(4))]
    low, high = (0, rows) if oob == "raise" else (-3, 2 * rows)
    return rng.integers(low, high, shape).astype(kind)


# One meaning


def one_after_the_other(table: Array, parts: list[tuple[Array, Array]], atomic: str, oob: str) -> Array:
    for idx, src in parts:
        table = array_model.scatter(table, src, idx, "row", atomic, oob)
    return table


def scattered(rank: Rank, start: Array, blocks: Any, calls: list[tuple[str, str, list[tuple[Array, Array]]]]) -> Any:
    """The table after each call, as rank 0 sees it."""
    found = []
    for atomic, oob, parts in calls:
        table = ShardedTable.from_array(rank, start if rank.rank == 0 else None, blocks=blocks)
        table.scatter(*parts[rank.rank], atomic=atomic, oob=oob)
        found.append(table.to_array())
    return found


def scatter_calls(
    rng: np.random.Generator, dtype: str, rows: int, size: int
) -> list[tuple[str, str, list[tuple[Array, Array]]]]:
    atomics = ("none",) if dtype.startswith("float8") else ("none", "add", "max", "min")
    calls = []
    for atomic in atomics:
        for oob in ("raise", "skip", "clamp", "wrap"):
            each = [indices(rng, rows, oob, rank) for rank in range(size)]
            calls.append((atomic, oob, [(i, of_type(numbers(rng, dtype, *i.shape, WIDTH), dtype)) for i in each]))
    return calls


def judged(world: World, dtype: str, seed: int) -> list[bool]:
    """For each policy and atomic: does the table have the bits of one process, by the naive loop?"""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(5, 30))
    start = of_type(numbers(rng, dtype, rows, WIDTH), dtype)
    blocks = [None, blocks_of(rng, rows, world.size)][seed % 2]
    calls = scatter_calls(rng, dtype, rows, world.size)
    found = world.run(scattered, start, blocks, calls)[0]
    wanted = [one_after_the_other(start, parts, atomic, oob) for atomic, oob, parts in calls]
    return [np.array_equal(bits(one), bits(other)) for one, other in zip(found, wanted, strict=True)]


@on_every_engine
@pytest.mark.parametrize("dtype", TYPES)
def test_scatter_gives_the_bits_of_one_process(engine: str, size: int, dtype: str) -> None:
    with world_of(engine, size) as world:
        for seed in range(4 if engine == "threads" else 2):
            assert all(judged(world, dtype, seed))


@on_every_engine
def test_scatter_is_pto_scatter_of_all_rows_in_the_order_of_the_ranks(engine: str, size: int) -> None:
    rng = np.random.default_rng(size)
    parts = [(rng.integers(0, 500, 4000), rng.standard_normal((4000, 8)).astype(np.float32)) for _ in range(size)]
    wanted = np.zeros((500, 8), np.float32)
    pto.scatter(wanted, np.concatenate([s for _, s in parts]), np.concatenate([i for i, _ in parts]), atomic="add")
    with world_of(engine, size) as world:
        (found,) = world.run(scattered, np.zeros((500, 8), np.float32), None, [("add", "raise", parts)])[0]
    assert_same(found, wanted)


def test_a_sum_of_floats_is_added_rank_by_rank() -> None:
    values = [np.float32(1e8), np.float32(1), np.float32(-1e8)]
    wanted = (values[0] + values[1]) + values[2]
    assert wanted != (values[0] + values[2]) + values[1]

    def work(rank: Rank) -> float:
        table = ShardedTable(rank, 4, 1)
        table.scatter([2], np.full((1, 1), values[rank.rank]), atomic="add")
        return float(table.gather([2])[0, 0])

    with local(3, threads=True) as world:
        assert world.run(work) == [float(wanted)] * 3


@on_every_engine
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "float8_e4m3"])
def test_gather_gives_the_bits_of_one_process(engine: str, size: int, dtype: str) -> None:
    rng = np.random.default_rng(size)
    start = of_type(numbers(rng, dtype, 19, WIDTH), dtype)
    calls = [
        (oob, blocks, [indices(rng, 19, oob, rank) for rank in range(size)])
        for oob in ("raise", "zero", "clamp", "wrap")
        for blocks in (None, blocks_of(rng, 19, size))
        for _ in range(3)
    ]

    def work(rank: Rank) -> list[Array]:
        found = []
        for oob, blocks, each in calls:
            table = ShardedTable.from_array(rank, start if rank.rank == 0 else None, blocks=blocks)
            found.append(table.gather(each[rank.rank], oob=oob))
        return found

    with world_of(engine, size) as world:
        for rank, found in enumerate(world.run(work)):
            for (oob, _, each), one in zip(calls, found, strict=True):
                assert_same(one, array_model.gather(start, each[rank], "row", oob))


def test_more_ranks_than_are_compared_one_by_one() -> None:
    rng = np.random.default_rng(3)
    size, start = 20, np.zeros((50, 2), np.float32)
    parts = [(rng.integers(0, 50, 9), rng.standard_normal((9, 2)).astype(np.float32)) for _ in range(size)]
    blocks = blocks_of(rng, 50, size)
    with local(size, threads=True, timeout=60) as world:
        (found,) = world.run(scattered, start, blocks, [("add", "raise", parts)])[0]
    assert_same(found, one_after_the_other(start, parts, "add", "raise"))


def test_a_rank_may_bring_nothing() -> None:
    def work(rank: Rank) -> list[Any]:
        table = ShardedTable(rank, 5, 2, "int32")
        if rank.rank == 1:
            table.scatter([4, 0], np.array([[1, 2], [3, 4]], np.int32), "add")
        else:
            table.scatter(atomic="add")
        return [table.gather(() if rank.rank == 1 else [0, 4]).tolist(), table.gather().shape]

    with local(3, threads=True) as world:
        assert world.run(work) == [[[[3, 4], [1, 2]], (0, 2)], [[], (0, 2)], [[[3, 4], [1, 2]], (0, 2)]]


def test_a_table_without_rows() -> None:
    def work(rank: Rank) -> list[Any]:
        table = ShardedTable(rank, 0, 2)
        table.scatter([3], np.ones((1, 2), np.float32), oob="skip")
        found = [table.gather([1, 2], oob="zero").tolist()]
        for call in (lambda: table.gather([1]), lambda: table.gather([1], oob="wrap")):
            with pytest.raises((pto.PtoIndexError, pto.PtoValueError)) as refused:
                call()
            found.append(type(refused.value).__name__)
        return [*found, table.to_array(None).shape]

    with local(2, threads=True) as world:
        assert world.run(work) == [[[[0.0, 0.0]] * 2, "RankIndexError", "RankValueError", (0, 2)]] * 2


def test_a_source_may_be_the_tables_own_rows_or_have_gaps() -> None:
    def work(rank: Rank) -> list[Any]:
        table = ShardedTable(rank, 4, 2, fill=lambda rows: np.stack([rows, -rows], 1).astype(np.float32))
        table.scatter([3 - table.first, 2 - table.first], table.local)
        wide = np.arange(12, dtype=np.float32).reshape(2, 6)
        after = table.to_array(None)
        table.scatter([1, 1], wide[:, ::3], atomic="add")
        return [after[:, 0].tolist(), table.to_array(None)[1].tolist()]

    with local(2, threads=True) as world:
        assert world.run(work) == [[[3.0, 2.0, 1.0, 0.0], [14.0, 22.0]]] * 2


def test_a_rank_that_owns_all_of_it_may_write_its_own_rows_elsewhere() -> None:
    def work(rank: Rank) -> list[float]:
        table = ShardedTable(rank, 4, 1, fill=lambda rows: rows[:, None].astype(np.float32))
        table.scatter([1, 2, 3, 0], table.local)
        return table.local[:, 0].tolist()

    with local(1, threads=True) as world:
        assert world.run(work) == [[3.0, 0.0, 1.0, 2.0]]


# Mutants: the comparison above is worth something


def reversed_senders(self: Transport, parts: Any, real: Callable[..., Any]) -> Any:
    return real(self, parts)[::-1]


def without_rank_1(self: Transport, parts: Any, real: Callable[..., Any]) -> Any:
    came = real(self, parts)
    return [came[0], came[1][:0], *came[2:]]


def sent_to_the_next(self: Transport, parts: Any, real: Callable[..., Any]) -> Any:
    return real(self, [*parts[1:], parts[0]])


@pytest.mark.parametrize("mutant", [reversed_senders, without_rank_1, sent_to_the_next])
def test_a_transport_that_mixes_up_ranks_is_noticed(mutant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    start = np.zeros((30, WIDTH), np.float32)
    parts = [(rng.integers(0, 30, 40), numbers(rng, "float32", 40, WIDTH)) for _ in range(4)]
    calls = [("add", "raise", parts), ("none", "raise", parts)]
    wanted = [one_after_the_other(start, parts, atomic, "raise") for atomic in ("add", "none")]

    def work(rank: Rank) -> list[Array]:
        return [rank.exchange(after) for after in whole_tables(rank, calls)]

    def whole_tables(rank: Rank, calls: Any) -> Iterator[Array]:
        for atomic, oob, each in calls:
            table = ShardedTable(rank, 30, WIDTH)
            table.scatter(*each[rank.rank], atomic=atomic, oob=oob)
            yield table.local

    def found(world: World) -> list[Array]:
        return [np.concatenate(one) for one in world.run(work)[0]]

    with local(4, threads=True, timeout=5) as world:
        assert all(np.array_equal(bits(a), bits(b)) for a, b in zip(found(world), wanted, strict=True))
        real = Transport.alltoallv
        monkeypatch.setattr(Transport, "alltoallv", lambda self, parts: mutant(self, parts, real))
        try:
            broken = found(world)
        except RankError:
            return
        assert not any(np.array_equal(bits(a), bits(b)) for a, b in zip(broken, wanted, strict=True))


def test_routes_in_another_order_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = np.argsort

    def backwards(keys: Array, kind: str) -> Array:
        return len(keys) - 1 - real(keys[::-1], kind="stable")

    with local(3, threads=True, timeout=5) as world:
        assert all(judged(world, "float32", 1))
        monkeypatch.setattr(np, "argsort", backwards)
        assert not all(judged(world, "float32", 1))


def test_ranks_applied_from_the_last_to_the_first_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    with local(3, threads=True, timeout=5) as world:
        assert all(judged(world, "int32", 2))
        monkeypatch.setattr(sharded, "enumerate", lambda came: reversed(list(enumerate(came))), raising=False)
        assert not all(judged(world, "int32", 2))


# Errors that every rank hears of


def refusals(size: int, work: Callable[[Rank, ShardedTable], object], **more: Any) -> list[RankError]:
    """What each rank is told; afterwards all of them go on, and nothing has been written."""

    def played(rank: Rank) -> RankError:
        table = ShardedTable(rank, 10, 2, **more)
        before = table.to_array(None)
        with pytest.raises(RankError) as refused:
            work(rank, table)
        assert_same(table.to_array(None), before)
        return refused.value

    with local(size, timeout=10) as world:
        return world.run(played)


def rows(count: int, dtype: Any = np.float32, width: int = 2) -> Array:
    return np.ones((count, width), dtype)


BAD = {0: [1, 2], 1: [[3, 4], [5, 10]], 2: [-1]}


@pytest.mark.parametrize("is_scatter", [True, False])
def test_an_index_past_the_table_is_an_error_on_every_rank_and_nothing_is_written(is_scatter: bool) -> None:
    def work(rank: Rank, table: ShardedTable) -> None:
        idx = np.array(BAD[rank.rank])
        if is_scatter:
            table.scatter(idx, np.ones((*idx.shape, 2), np.float32), atomic="add")
        else:
            table.gather(idx)

    told = refusals(3, work)
    assert len({str(one) for one in told}) == 1
    for one in told:
        assert isinstance(one, pto.PtoIndexError)
        assert isinstance(one, IndexError)
        (finding,) = one.findings
        assert (finding.id, finding.facts) == ("PTO-R061", {"rank": 1, "position": [1, 1], "index": 10, "rows": 10})
        assert "rank 1 (host " in str(one)
        assert "idx[1, 1] is 10, and the table has 10 rows; nothing was written on any rank." in str(one)


def test_outside_of_the_world_it_is_an_index_error_too() -> None:
    with local(2) as world, pytest.raises(IndexError, match=r"idx\[0\] is -7, .* not counted from the end"):
        world.run(lambda rank: ShardedTable(rank, 4, 1).gather([-7] if rank.rank else [0]))


TWO_CALLS = {
    "gather and scatter": (
        lambda t: t.gather([1]),
        lambda t: t.scatter([1], rows(1)),
        "rank 0 .* calls gather\\(oob='raise'\\) and rank 1 .* calls scatter\\(atomic='none', oob='raise'\\)",
    ),
    "policies": (
        lambda t: t.gather([1], oob="zero"),
        lambda t: t.gather([1], oob="WRAP"),
        "gather\\(oob='zero'\\) and rank 1 .* gather\\(oob='wrap'\\)",
    ),
    "atomics": (
        lambda t: t.scatter([1], rows(1), atomic="add"),
        lambda t: t.scatter([1], rows(1), atomic="max"),
        "atomic='add'.*atomic='max'",
    ),
    "a save and a gather": (lambda t: t.save("nowhere"), lambda t: t.gather(), "save\\('nowhere'\\) .* gather"),
    "roots": (lambda t: t.to_array(0), lambda t: t.to_array(1), "to_array\\(root=0\\) .* to_array\\(root=1\\)"),
    "flush": (lambda t: t.flush(), lambda t: t.gather(), "flush"),
}


@pytest.mark.parametrize("case", TWO_CALLS)
def test_ranks_at_different_calls_are_told_which(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = refusals(2, lambda rank, table: TWO_CALLS[case][rank.rank](table))
    assert len({str(one) for one in told}) == 1
    assert isinstance(told[0], pto.PtoValueError)
    assert [finding.id for finding in told[0].findings] == ["PTO-R060"]
    with pytest.raises(RankError, match=TWO_CALLS[case][2]):
        raise told[0]


def test_ranks_on_different_tables_are_told() -> None:
    def work(rank: Rank, table: ShardedTable) -> None:
        other = ShardedTable(rank, 3, 2)
        (other if rank.rank == 1 else table).gather([1])

    told = refusals(3, work)
    assert "rank 1" in str(told[0])
    assert "on different tables" in str(told[0])


WRONG: dict[str, tuple[Callable[[ShardedTable], Any], type[Exception], str]] = {
    "type of src": (lambda t: t.scatter([1], rows(1, np.float64)), TypeError, "src holds dtype float64 and the table"),
    "shape of src": (lambda t: t.scatter([1, 2], rows(3)), ValueError, r"src has shape \(3, 2\); .* wanted: \(2, 2\)"),
    "width of src": (lambda t: t.scatter([1], rows(1, width=3)), ValueError, r"src has shape \(1, 3\)"),
    "src is missing": (lambda t: t.scatter([1]), TypeError, "src is a NoneType"),
    "type of idx": (lambda t: t.scatter(np.ones(1), rows(1)), TypeError, "idx holds dtype float64"),
    "unknown policy": (lambda t: t.scatter([1], rows(1), oob="zero"), ValueError, "oob='zero' is unknown"),
    "unknown atomic": (lambda t: t.scatter([1], rows(1), atomic="sum"), ValueError, "A sum is 'add'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_operands_that_one_rank_cannot_use_are_an_error_on_every_rank(case: str) -> None:
    call, kind, words = WRONG[case]
    told = refusals(3, lambda rank, table: call(table) if rank.rank == 1 else table.scatter([1], rows(1)))
    for one in told:
        assert isinstance(one, kind)
        with pytest.raises(RankError, match=rf"^rank 1 \(host .*\): .*{words}"):
            raise one


def test_arithmetic_on_a_type_that_is_only_moved_is_refused_everywhere() -> None:
    def work(rank: Rank, table: ShardedTable) -> None:
        table.scatter([1], np.ones((1, 2), table.dtype), atomic="add")

    told = refusals(2, work, dtype="float8_e5m2")
    assert all(isinstance(one, TypeError) and "only moved" in str(one) for one in told)


NO_TABLE: dict[str, tuple[Callable[[Rank], Any], type[Exception], str]] = {
    "rows": (lambda r: ShardedTable(r, 10 + r.rank, 2), ValueError, r"ShardedTable\(10, 2.* ShardedTable\(11, 2"),
    "dtype": (lambda r: ShardedTable(r, 9, 2, ["int8", "i16"][r.rank]), ValueError, "'int8'.* 'int16'"),
    "blocks": (lambda r: ShardedTable(r, 9, 2, blocks=[r.rank, 9 - r.rank]), ValueError, r"blocks=\[0, 9\]"),
    "sum of blocks": (lambda r: ShardedTable(r, 9, 2, blocks=[4, 4]), ValueError, "has 8 rows, and the table 9"),
    "number of blocks": (lambda r: ShardedTable(r, 9, 2, blocks=[9]), ValueError, "1 ranks, and this world has 2"),
    "negative block": (lambda r: ShardedTable(r, 9, 2, blocks=[-1, 10]), ValueError, "negative number of rows"),
    "width": (lambda r: ShardedTable(r, 9, 0), ValueError, "width=0"),
    "fill": (lambda r: ShardedTable(r, 9, 2, "int8", fill=300), ValueError, "fill=300 is no int8"),
    "rows of fill": (lambda r: ShardedTable(r, 9, 2, fill=lambda n: n), ValueError, r"fill gave shape \(5,\) of int64"),
    "one rank": (lambda r: ShardedTable(r, 9.5 if r.rank else 9, 2), TypeError, "rank 1 .*: rows is 9.5"),
    "the world": (lambda r: ShardedTable(local(2), 9, 2), TypeError, "world is a World; .* world.run"),
    "array": (lambda r: ShardedTable.from_array(r, np.ones(3)), ValueError, r"array has shape \(3,\)"),
    "root": (lambda r: ShardedTable.from_array(r, None, root=2), ValueError, "root=2 is none of the 2 ranks"),
}


@pytest.mark.parametrize("case", NO_TABLE)
def test_a_table_that_cannot_be_made_is_an_error_on_every_rank(case: str) -> None:
    make, kind, words = NO_TABLE[case]

    def work(rank: Rank) -> None:
        with pytest.raises(pto.PtoError, match=words) as refused:
            make(rank)
        assert isinstance(refused.value, kind)

    with local(2, timeout=10) as world:
        world.run(work)


def test_a_misspelt_keyword_is_an_error_of_the_package() -> None:
    def work(rank: Rank) -> None:
        with pytest.raises(pto.PtoTypeError, match=r"ShardedTable has no keyword 'block'. Did you mean 'blocks'"):
            ShardedTable(rank, 2, 2, block=[2])  # type: ignore[call-arg]

    with local(1, threads=True) as world:
        world.run(work)


def test_a_rank_that_dies_in_a_scatter_ends_the_others() -> None:
    def work(rank: Rank) -> None:
        table = ShardedTable(rank, 10, 2)
        if rank.rank == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        table.scatter([1], rows(1))

    with local(3, timeout=10) as world, pytest.raises(RankError) as failed:
        world.run(work)
    assert {finding.id for finding in failed.value.findings} == {"PTO-R030"}
    assert set(failed.value.failures) == {0, 1, 2}


# What a table says of itself


def test_a_table_tells_its_form() -> None:
    def work(rank: Rank) -> list[Any]:
        table = ShardedTable(rank, 7, 2, "bf16", blocks=[0, 4, 3], fill=2)
        with pytest.raises(IndexError, match=r"rows\[0\] is 7, and the table has 7 rows"):
            table.owner([7])
        return [
            (table.rows, table.width, table.shape, len(table), table.blocks, table.first, table.local.shape),
            (table.dtype == ml_dtypes.bfloat16, bool((table.local == 2).all())),
            (table.owner([0, 3, 4]).tolist(), table.owner(6)),
            repr(table),
        ]

    with local(3, threads=True) as world:
        told = world.run(work)
    assert [one[0][5:] for one in told] == [(0, (0, 2)), (0, (4, 2)), (4, (3, 2))]
    assert told[1][0][:5] == (7, 2, (7, 2), 7, (0, 4, 3))
    assert told[0][1:3] == [(True, True), ([1, 1, 2], 2)]
    assert told[2][3] == "<sharded table of 7 x 2 bfloat16, 3 rows from 4 on rank 2 of 3>"


def test_default_blocks_are_as_even_as_possible() -> None:
    assert Blocks.even(10, 4).counts == (3, 3, 2, 2)
    assert Blocks.even(2, 3).counts == (1, 1, 0)
    assert Blocks.even(0, 2).counts == (0, 0)


def test_whole_tables_go_out_and_come_back_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    for room in (sharded, forms):
        monkeypatch.setattr(room, "PIECE", 48)
    array = np.arange(58, dtype=np.int16).reshape(29, 2)

    def work(rank: Rank) -> list[Any]:
        table = ShardedTable.from_array(rank, array if rank.rank == 1 else None, root=1, blocks=[13, 0, 16])
        there = ShardedTable(rank, 29, 2, "int16", fill=lambda rows: array[rows])
        return [table.to_array(2), table.to_array(None), there.to_array(None)]

    with local(3, threads=True) as world:
        told = world.run(work)
    assert told[0][0] is None
    assert told[1][0] is None
    for one in (told[2][0], *(rank[k] for rank in told for k in (1, 2))):
        assert_same(one, array)


def test_traffic_is_what_the_messages_weigh() -> None:
    def work(rank: Rank) -> list[Traffic]:
        table = ShardedTable(rank, 8, 5)  # rows of 20 bytes; 4 rows on each
        at_start = table.last_traffic
        table.scatter([0, 1, 7] if rank.rank == 0 else [2, 3, 4, 5], rows(3 + rank.rank, width=5))
        scattered = table.last_traffic
        table.gather([6, 6] if rank.rank == 0 else [6, 0])
        return [at_start, scattered, table.last_traffic]

    with local(2, threads=True) as world:
        first, second = world.run(work)
    assert first[0] == Traffic((0, 0), (0, 0), (0, 0), (0, 0))
    assert first[0].over == 1
    # A scatter: 4 bytes of row number, and the row.
    assert first[1] == Traffic((0, 24), (0, 48), (0, 20), (0, 40))
    assert second[1] == Traffic((48, 0), (24, 0), (40, 0), (20, 0))
    assert first[1].over == 24 / 20
    # A gather: two numbers there, two rows back; one number and one row the other way.
    assert first[2] == Traffic((0, 8 + 20), (0, 4 + 40), (0, 20), (0, 40))
    assert "bytes sent" in str(first[2])


def test_after_close_a_table_says_so() -> None:
    def work(rank: Rank) -> str:
        with ShardedTable(rank, 3, 1) as table:
            table.scatter([1], rows(1, width=1))
        for call in (lambda: table.gather([1]), lambda: table.local):
            with pytest.raises(ValueError, match="closed"):
                call()
        table.close()
        return repr(table)

    with local(2, threads=True) as world:
        assert all("closed" in told for told in world.run(work))


# Saves


def saved(rank: Rank, folder: Path, array: Array, blocks: Any = None) -> None:
    ShardedTable.from_array(rank, array if rank.rank == 0 else None, blocks=blocks).save(folder)


def loaded(rank: Rank, folder: Path, blocks: Any = None, into: Path | None = None) -> Any:
    with ShardedTable.load(rank, folder, blocks, into=into) as table:
        return table.to_array()


def some_rows(count: int = 23, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal((count, 3)).astype(np.float32)


@pytest.mark.parametrize("engine", ["threads", "processes"])
@pytest.mark.parametrize("before", [1, 3])
@pytest.mark.parametrize("after", [1, 2, 4])
def test_a_save_comes_back_on_another_number_of_ranks(engine: str, before: int, after: int, tmp_path: Path) -> None:
    array = some_rows()
    with world_of(engine, before) as world:
        world.run(saved, tmp_path / "table", array, blocks_of(np.random.default_rng(before), 23, before))
    with world_of(engine, after) as world:
        assert_same(world.run(loaded, tmp_path / "table")[0], array)
        blocks = blocks_of(np.random.default_rng(after), 23, after)
        assert_same(world.run(loaded, tmp_path / "table", blocks)[0], array)
        assert_same(world.run(loaded, tmp_path / "table", blocks, tmp_path / "mapped")[0], array)
        assert_same(world.run(loaded, tmp_path / "mapped")[0], array)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3", "uint16"])
def test_every_type_can_be_saved(dtype: str, tmp_path: Path) -> None:
    array = of_type(numbers(np.random.default_rng(1), dtype, 9, WIDTH), dtype)
    with local(2, threads=True) as world:
        world.run(saved, tmp_path, array)
        assert_same(world.run(loaded, tmp_path)[0], array)


def test_a_save_is_a_file_per_shard_and_a_manifest_with_their_sha256(tmp_path: Path) -> None:
    with local(3, threads=True) as world:
        world.run(saved, tmp_path, some_rows(), [20, 0, 3])
        world.run(saved, tmp_path, some_rows(), [10, 0, 13])
    told = json.loads((tmp_path / "manifest.json").read_text())
    assert (told["rows"], told["width"], told["dtype"], told["checksum"]) == (23, 3, "float32", "sha256")
    assert [shard["rows"] for shard in told["shards"]] == [10, 0, 13]
    for shard in told["shards"]:
        assert hashlib.sha256((tmp_path / shard["file"]).read_bytes()).hexdigest() == shard["sha256"]
    assert (tmp_path / told["shards"][2]["file"]).read_bytes() == some_rows()[10:].tobytes()
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"manifest.json", "lock", *(shard["file"] for shard in told["shards"])}  # nothing of the first


def shard_files(folder: Path) -> list[Path]:
    return [folder / shard["file"] for shard in json.loads((folder / "manifest.json").read_text())["shards"]]


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a bit": (lambda folder: flip(shard_files(folder)[1]), "its SHA-256 is [0-9a-f]{64}, and the manifest says"),
    "an end": (lambda folder: os.truncate(shard_files(folder)[1], 5), "it has 5 bytes, and the manifest says 96"),
    "a file": (lambda folder: shard_files(folder)[1].unlink(), "it is not there"),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_damaged_shard_is_an_error_that_names_file_and_rank(damage: str, size: int, tmp_path: Path) -> None:
    spoil, words = DAMAGES[damage]
    with local(3, threads=True) as world:
        world.run(saved, tmp_path, some_rows())
    victim = shard_files(tmp_path)[1]
    spoil(tmp_path)
    before = sorted(tmp_path.iterdir())

    def work(rank: Rank) -> RankError:
        with pytest.raises(RankError, match=words) as refused:
            ShardedTable.load(rank, tmp_path, into=tmp_path / "mapped")
        return refused.value

    with local(size, timeout=10) as world:
        told = world.run(work)
    assert len({str(one) for one in told}) == 1
    (finding,) = told[0].findings
    assert (finding.id, finding.facts["file"]) == ("PTO-R062", str(victim))
    assert f"rank {finding.facts['rank']} (host " in str(told[0])
    assert sorted(tmp_path.iterdir()) == before


def edited(**changes: Any) -> Callable[[Path], object]:
    def edit(folder: Path) -> None:
        path = folder / "manifest.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return edit


MANIFESTS: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "not there": (lambda f: (f / "manifest.json").unlink(), "PTO-R063", "holds no table: there is no manifest.json"),
    "half": (lambda f: os.truncate(f / "manifest.json", 40), "PTO-R062", "no manifest of a table"),
    "another version": (edited(version=9), "PTO-R063", "ptokit-sharded-table version 9"),
    "another format": (edited(format="parquet"), "PTO-R063", "holds parquet"),
    "fewer shards": (edited(rows=99), "PTO-R062", "its shards have 23 rows, the table 99"),
    "unknown type": (edited(dtype="float128"), "PTO-R062", "dtype 'float128'"),
    "no list": (edited(shards=3), "PTO-R062", "no manifest of a table"),
    "a way out": (
        edited(shards=[{"file": "../x", "first": 0, "rows": 23, "nbytes": 276, "sha256": None}]),
        "PTO-R062",
        "'../x' is no name of a shard",
    ),
}


@pytest.mark.parametrize("case", MANIFESTS)
def test_a_manifest_that_cannot_be_is_an_error(case: str, tmp_path: Path) -> None:
    spoil, id_, words = MANIFESTS[case]
    with local(2, threads=True) as world:
        world.run(saved, tmp_path, some_rows())
        spoil(tmp_path)
        with pytest.raises(RankError, match=words) as refused:
            world.run(loaded, tmp_path)
    assert [finding.id for finding in refused.value.findings] == [id_]


def dies_before_the_manifest(rank: Rank, folder: Path, array: Array) -> None:
    if rank.rank == 0:
        shards.write_manifest.__globals__["os"] = _Deadly()
    saved(rank, folder, array)


class _Deadly:
    """The system, but for the one step that makes a save."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def replace(self, *paths: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def dies_in_its_shard(rank: Rank, folder: Path, array: Array) -> None:
    table = ShardedTable.from_array(rank, array if rank.rank == 0 else None)
    if rank.rank == 1:
        table._local = _Killing(array)  # type: ignore[assignment]
    table.save(folder)


class _Killing:
    """Rows that end the process when they are written."""

    def __init__(self, rows: Array) -> None:
        self.rows = rows

    def reshape(self, *_: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("death", [dies_before_the_manifest, dies_in_its_shard])
def test_a_save_that_is_interrupted_leaves_the_one_before(death: Any, tmp_path: Path) -> None:
    first, second = some_rows(seed=1), some_rows(seed=2)
    with local(2, timeout=10) as world:
        world.run(saved, tmp_path, first)
        before = shard_files(tmp_path)
        with pytest.raises(RankError, match=r"SIGKILL|is gone"):
            world.run(death, tmp_path, second)
        assert shard_files(tmp_path) == before
        assert_same(world.run(loaded, tmp_path)[0], first)
        world.run(saved, tmp_path, second)
        assert_same(world.run(loaded, tmp_path)[0], second)
    assert len(list(tmp_path.glob("shard-*"))) == 2  # what the dead have left has been swept
    assert len(list(tmp_path.glob("manifest*"))) == 1


def test_a_full_disk_is_told_on_every_rank_and_leaves_the_save_before(tmp_path: Path) -> None:
    first = some_rows(5000, seed=1)

    def work(rank: Rank) -> RankError:
        table = ShardedTable.from_array(rank, first if rank.rank == 0 else None)
        table.save(tmp_path)
        if rank.rank == 1:  # a file cannot grow further: what a full disk says too
            resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))
        with pytest.raises(RankError, match=r"rank 1 .* the disk is full") as refused:
            table.save(tmp_path)
        return refused.value

    with local(2, timeout=10) as world:
        told = world.run(work)
        assert [finding.id for one in told for finding in one.findings] == ["PTO-R064"] * 2
        assert_same(world.run(loaded, tmp_path)[0], first)
    assert len(list(tmp_path.glob("shard-*"))) == 2


def test_whoever_loads_while_others_save_sees_one_save_whole(tmp_path: Path) -> None:
    def save_often(rank: Rank) -> None:
        table = ShardedTable(rank, 64, 3, "int32")
        for turn in range(1, 30):
            table.local[:] = turn
            table.save(tmp_path)

    with local(2, threads=True) as world, local(3, threads=True) as readers:
        world.run(saved, tmp_path, np.zeros((64, 3), np.int32))
        saver = threading.Thread(target=world.run, args=(save_often,))
        saver.start()
        seen = []
        while saver.is_alive():
            found = readers.run(loaded, tmp_path)[0]
            assert (found == found[0, 0]).all()
            seen.append(int(found[0, 0]))
        saver.join()
    assert seen == sorted(seen)
    assert len(set(seen)) > 2


def test_two_worlds_do_not_save_into_one_folder_at_once(tmp_path: Path) -> None:
    held = shards.FolderLock(tmp_path, pto.comm.Peer(0, "here", 1))
    try:
        with local(2, threads=True) as world, pytest.raises(RankError, match="is in use") as refused:
            world.run(saved, tmp_path, some_rows())
        assert [finding.id for finding in refused.value.findings] == ["PTO-R063"]
    finally:
        held.release()
    with local(2, threads=True) as world:
        world.run(saved, tmp_path, some_rows())


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with local(2, threads=True) as world:
        for where in (tmp_path / "file", tmp_path / "file" / "below"):
            with pytest.raises(RankError, match=r"rank 0 .* cannot use") as refused:
                world.run(saved, where, some_rows())
            assert [finding.id for finding in refused.value.findings] == ["PTO-R063"]
        with pytest.raises(TypeError, match="path is an int"):
            world.run(saved, 3, some_rows())


# Memory-mapped shards


@on_every_engine
def test_a_mapped_table_keeps_its_rows(engine: str, size: int, tmp_path: Path) -> None:
    array = some_rows()
    folder = tmp_path / "table"

    def first(rank: Rank) -> None:
        with ShardedTable(rank, 23, 3, path=folder, fill=lambda rows: array[rows]) as table:
            table.scatter([rank.rank], rows(1, width=3), "add")
            table.flush()
            assert str(folder) in repr(table)

    def second(rank: Rank) -> Any:
        with ShardedTable(rank, 23, 3, path=folder, fill=9) as table:
            assert table.path == folder
            return table.to_array()

    wanted = array.copy()
    wanted[:size] += 1
    with world_of(engine, size) as world:
        world.run(first)
        assert_same(world.run(second)[0], wanted)
        assert_same(world.run(loaded, folder)[0], wanted)


def left_open(rank: Rank, folder: Path) -> None:
    ShardedTable(rank, 6, 2, path=folder, fill=rank.rank)


REFUSED_FOLDERS: dict[str, tuple[Callable[[Rank, Path], Any], str]] = {
    "left open": (lambda r, f: ShardedTable(r, 6, 2, path=f), "was not closed the last time"),
    "load": (ShardedTable.load, "was not closed"),
    "rows": (lambda r, f: ShardedTable(r, 7, 2, path=f, recover=True), "holds a table of 6 x 2 float32, not 7 x 2"),
    "blocks": (lambda r, f: ShardedTable(r, 6, 2, path=f, blocks=[6, 0]), r"holds shards of \[3, 3\] rows, and"),
    "save": (lambda r, f: ShardedTable(r, 6, 2).save(f), "which a save would replace"),
    "into": (lambda r, f: (ShardedTable(r, 1, 1).save(f / "s"), ShardedTable.load(r, f / "s", into=f)), "a new folder"),
    "a save": (lambda r, f: (ShardedTable(r, 1, 1).save(f / "s"), ShardedTable(r, 1, 1, path=f / "s")), "holds a save"),
}


@pytest.mark.parametrize("case", REFUSED_FOLDERS)
def test_a_folder_that_does_not_fit_is_refused_and_stays_as_it_is(case: str, tmp_path: Path) -> None:
    use, words = REFUSED_FOLDERS[case]
    with local(2, threads=True) as world:
        world.run(left_open, tmp_path)
        manifest, files = (tmp_path / "manifest.json").read_text(), sorted(tmp_path.glob("shard-*"))
        with pytest.raises(RankError, match=words) as refused:
            world.run(use, tmp_path)
        assert [finding.id for finding in refused.value.findings] == ["PTO-R063"]
        assert ((tmp_path / "manifest.json").read_text(), sorted(tmp_path.glob("shard-*"))) == (manifest, files)

        def recovered(rank: Rank) -> Any:
            with ShardedTable(rank, 6, 2, path=tmp_path, recover=True) as table:
                return table.to_array()

        assert world.run(recovered)[0][:, 0].tolist() == [0, 0, 0, 1, 1, 1]
        assert world.run(loaded, tmp_path)[0][:, 0].tolist() == [0, 0, 0, 1, 1, 1]


def test_a_mapped_table_is_open_in_one_world_at_a_time(tmp_path: Path) -> None:
    def work(rank: Rank) -> None:
        with ShardedTable(rank, 6, 2, path=tmp_path):
            for use in (lambda: ShardedTable(rank, 6, 2, path=tmp_path), lambda: ShardedTable.load(rank, tmp_path)):
                with pytest.raises(RankError, match="is in use"):
                    use()

    with local(2) as world:
        world.run(work)


def test_a_mapped_shard_that_is_gone_or_short_is_an_error(tmp_path: Path) -> None:
    def work(rank: Rank) -> None:
        with ShardedTable(rank, 6, 2, path=tmp_path):
            pass

    with local(2, threads=True) as world:
        world.run(work)
        last = shard_files(tmp_path)[1]
        for spoil, words in ((lambda: os.truncate(last, 3), "has 3 bytes"), (last.unlink, "it is not there")):
            spoil()
            with pytest.raises(RankError, match=f"rank 1 .* cannot use {last}: it.*") as refused:
                world.run(work)
            assert words in str(refused.value)
            assert [finding.id for finding in refused.value.findings] == ["PTO-R062"]


def test_room_for_mapped_shards_is_taken_at_once_or_refused(tmp_path: Path) -> None:
    def work(rank: Rank) -> RankError:
        if rank.rank == 1:
            resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))
        with pytest.raises(RankError, match=r"rank 1 .*: the disk is full .* 40000 bytes are needed") as refused:
            ShardedTable(rank, 10000, 2, path=tmp_path)
        return refused.value

    with local(2, timeout=10) as world:
        told = world.run(work)
    assert [finding.id for one in told for finding in one.findings] == ["PTO-R064"] * 2


def test_no_page_of_a_new_mapped_shard_is_without_room_on_the_disk(tmp_path: Path) -> None:
    def work(rank: Rank) -> None:
        ShardedTable(rank, 100_000, 4, path=tmp_path).close()

    with local(2, threads=True) as world:
        world.run(work)
    for path in shard_files(tmp_path):
        assert path.stat().st_blocks * 512 >= path.stat().st_size == 800_000


def test_a_mapped_table_that_could_not_be_filled_is_not_left_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with local(2, threads=True) as world:
        world.run(saved, tmp_path / "save", some_rows())
        with monkeypatch.context() as broken:
            broken.setattr(shards.Opened, "copy_rows", lambda *_: False)
            with pytest.raises(RankError, match="it ends before its last row"):
                world.run(loaded, tmp_path / "save", None, tmp_path / "mapped")
        assert [path.name for path in (tmp_path / "mapped").iterdir()] == ["lock"]
        assert_same(world.run(loaded, tmp_path / "save", None, tmp_path / "mapped")[0], some_rows())


def memory_of(process: str = "self") -> int:
    line = next(one for one in Path(f"/proc/{process}/status").read_text().splitlines() if one.startswith("VmData"))
    return int(line.split()[1]) << 10


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the limit is set from /proc")
def test_a_mapped_table_may_be_larger_than_memory(tmp_path: Path) -> None:
    """96 MiB a rank, where a rank may have 48 MiB more than it has."""
    count, width = 2 * (96 << 20) // 256, 64

    def work(rank: Rank) -> list[Any]:
        pto.set_num_threads(1)
        resource.setrlimit(resource.RLIMIT_DATA, (memory_of() + (48 << 20), resource.RLIM_INFINITY))
        with pytest.raises(RankError, match=r"PTO-R064.* has no memory left"):
            ShardedTable(rank, count, width)
        with ShardedTable(rank, count, width, path=tmp_path / "table") as table:
            idx = np.arange(rank.rank, count, 4001)
            table.scatter(idx, np.repeat(idx[:, None], width, 1).astype(np.float32), "add")
            found = table.gather(idx[::-1])
            return [found[:, 0].tolist() == idx[::-1].tolist(), float(table.gather([count - 1])[0, 0])]

    with local(2, timeout=60) as world:
        told = world.run(work)
    assert [one[0] for one in told] == [True, True]
    assert sum(path.stat().st_size for path in (tmp_path / "table").glob("shard-*")) == count * width * 4


def test_routes_of_no_lanes_are_empty() -> None:
    taken = sharded.take(np.empty(0, np.int64), 9, pto.arrays.ArrayScatterOOB.Raise)
    routes = Routes.of(taken, Blocks((4, 5)))
    assert [len(rows) for rows in routes.rows] == [0, 0]
