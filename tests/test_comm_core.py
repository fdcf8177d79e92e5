"""Collectives on the simulated core, held against the formula of the specification."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ptokit as pto
from launches import SCHEDULES, Array, ids, line, line_of, loud, told
from ptokit.comm import oncore
from ptokit.comm.oncore import Collecting, order_of_ranks, staged_run
from ptokit.core.mutate import Fate, mutate
from ptokit.core.pipes import MTE2, MTE3, V
from ptokit.dtypes import element_type

OPS = ("tscatter", "tgather", "tbroadcast", "treduce")
GAP = 77
"""What stands between the elements of a tensor, and around them."""

# The formula, on plain arrays


def formula(op: str, local: Array, slices: list[Array], root: int, reduce: str) -> None:
    """SEMANTICS 4, in place: five-dimensional arrays."""
    high = slices[0].shape[3]
    for rank, one in enumerate(slices):
        rows = local[:, :, :, rank * high : (rank + 1) * high, :]
        if op == "tscatter":
            one[...] = rows
        elif op == "tgather":
            rows[...] = one
        elif op == "tbroadcast":
            one[...] = local[:, :, :, :high, :]
    if op == "treduce":
        folded = slices[root].copy()
        for rank, one in enumerate(slices):
            if rank != root:
                folded = {"sum": np.add, "max": np.maximum, "min": np.minimum}[reduce](folded, one)
        local[:, :, :, :high, :] = folded


@dataclass(frozen=True)
class Case:
    """One collective: everything that its result depends on."""

    op: str = "tscatter"
    ranks: int = 3
    root: int = 0
    slice: tuple[int, ...] = (1, 1, 1, 5, 13)
    more_rows: int = 0
    dtype: str = "float32"
    layout: str = "nd"
    gaps: tuple[int, int] = (0, 0)
    """Elements between neighbouring rows, and between the blocks of the outer dimensions."""
    valid: tuple[int, int] = (2, 8)
    is_static: bool = False
    pong: bool = False
    reduce: str = "sum"
    target: str = "a5"
    schedule: str = "late"
    seed: int = 0

    @property
    def local(self) -> tuple[int, ...]:
        splits = self.op in ("tscatter", "tgather")
        rows = self.slice[3] * (self.ranks if splits else 1) + self.more_rows
        return (*self.slice[:3], rows, self.slice[4])

    def tensor(self, shape: tuple[int, ...], seed: int) -> tuple[pto.GlobalTensor, Array]:
        """A tensor somewhere in a buffer of its own, and the buffer."""
        down, across = (4, 3) if self.layout == "dn" else (3, 4)
        stride = [0] * 5
        stride[across], stride[down] = 1, max(shape[across], 1) + self.gaps[0]
        step = stride[down] * max(shape[down], 1) + self.gaps[1]
        for dim in (2, 1, 0):
            stride[dim], step = step, step * max(shape[dim], 1)
        element = element_type(self.dtype)
        memory = np.full(3 + step, GAP).astype(element.numpy)
        tensor = pto.GlobalTensor(memory, self.dtype, shape, stride, self.layout, base=3)  # type: ignore[arg-type]
        values = np.random.default_rng(seed).integers(1, 100, shape)
        view(tensor)[...] = (values * (0.37 if element.is_float else 1)).astype(element.numpy)
        return tensor, memory

    def tile(self) -> pto.Tile:
        size = element_type(self.dtype).itemsize
        rows, cols = self.valid
        rows, cols = (
            (-(-rows * size // 32) * 32 // size, cols)
            if self.layout == "dn"
            else (rows, -(-cols * size // 32) * 32 // size)
        )
        tile = pto.Tile(self.dtype, rows, cols, self.valid if self.is_static else (-1, -1), self.layout)
        if not self.is_static:
            tile.set_valid(*self.valid)
        return tile

    def play(self, *, data: bool = True) -> tuple[pto.Run, list[Array], list[Array]]:
        """The run, what the host holds after it, and what the formula says that it should hold."""
        made = [self.tensor(self.local, 1), *(self.tensor(self.slice, 2 + rank) for rank in range(self.ranks))]
        tensors, memories = [one for one, _ in made], [memory for _, memory in made]
        wanted = [one.copy() for one in tensors]
        formula(self.op, view(wanted[0]), [view(one) for one in wanted[1:]], self.root, self.reduce)
        run = staged_run(
            self.op,
            tensors[0],
            tensors[1:],
            self.tile(),
            self.tile() if self.pong else None,
            target=self.target,
            root=self.root,
            schedule=self.schedule,
            seed=self.seed,
            acc=self.tile() if self.op == "treduce" else None,
            reduce=self.reduce,
            data=data,
        )
        return run, memories, [one.memory for one in wanted]


def view(tensor: pto.GlobalTensor) -> Array:
    """The five dimensions of a tensor, to be written."""
    strides = [step * tensor.dtype.itemsize for step in tensor.stride]
    return np.lib.stride_tricks.as_strided(tensor.memory[tensor.base :], tensor.shape, strides)


def holds(case: Case) -> pto.Run:
    """The collective does what the formula says, to the last byte, and nothing is wrong with it."""
    run, held, wanted = case.play()
    assert [one.id for one in loud(run) if one.id != "PTO-R021"] == []
    for number, (mine, right) in enumerate(zip(held, wanted, strict=True)):
        assert mine.tobytes() == right.tobytes(), f"tensor {number}"
    return run


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Collectives that are legal."""
    few = st.integers(1, 2)
    shape = (draw(few), draw(few), draw(few), draw(st.integers(0, 9)), draw(st.integers(0, 40)))
    ranks = draw(st.integers(1, 4))
    is_static = draw(st.booleans())
    rows, cols = (max(extent, 1) for extent in shape[3:])
    if is_static:
        divides = [draw(st.sampled_from([n for n in range(1, most + 1) if most % n == 0])) for most in (rows, cols)]
        valid = (divides[0], divides[1])
    else:
        valid = (draw(st.integers(1, 2 * rows * 4)), draw(st.integers(1, cols + 9)))
    return Case(
        op=draw(st.sampled_from(OPS)),
        ranks=ranks,
        root=draw(st.integers(0, ranks - 1)),
        slice=shape,
        more_rows=draw(st.integers(0, 2)),
        dtype=draw(st.sampled_from(["int8", "uint16", "int32", "float16", "bfloat16", "float32"])),
        layout=draw(st.sampled_from(["nd", "dn"])),
        gaps=(draw(st.integers(0, 3)), draw(st.integers(0, 5))),
        valid=valid,
        is_static=is_static,
        pong=draw(st.booleans()),
        reduce=draw(st.sampled_from(["sum", "max", "min"])),
        target=draw(st.sampled_from(["cpu", "a2a3", "a5"])),
        schedule=draw(st.sampled_from(["late", "program", "random"])),
        seed=draw(st.integers(0, 5)),
    )


@settings(max_examples=300, deadline=None)
@given(cases())
def test_every_collective_equals_the_formula(case: Case) -> None:
    holds(case)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("pong", [False, True])
@pytest.mark.parametrize(("schedule", "seed"), SCHEDULES)
@pytest.mark.parametrize("valid", [(2, 8), (5, 13), (16, 32), (1, 1), (5, 4)])
def test_whole_slices_and_chunks_under_every_schedule(
    op: str, pong: bool, schedule: str, seed: int, valid: tuple[int, int]
) -> None:
    holds(Case(op=op, pong=pong, schedule=schedule, seed=seed, valid=valid, root=1, gaps=(2, 3)))


def test_the_tile_of_the_specification_writes_nothing_past_its_slice() -> None:
    run = holds(Case(valid=(16, 32)))
    assert ids(run) == ["PTO-R021"]
    assert "95 elements past" in told(run, "PTO-R021").message


def test_a_whole_slice_with_outer_dimensions_goes_through_one_tile() -> None:
    run = holds(Case(slice=(2, 1, 3, 2, 5), valid=(12, 5), gaps=(1, 4), pong=True))
    assert len(run.blocks[0].steps) == 2 * 3 + 1


# A test of the tests: what must be caught

RIGHT = Case(valid=(2, 8), pong=True)


def skip_others(running: Collecting) -> Any:
    """Only the root's own chunks are moved."""
    call = running.call
    own = [one for one in call.schedule if one.rank == call.root]
    return oncore._through(running, ((one, running.of_local(one), (running.of_slice(one.rank, one),)) for one in own))


def wrong_ranks(running: Collecting) -> Any:
    """Every slice goes to the next rank."""
    call = running.call
    turned = (
        (one, running.of_local(one), (running.of_slice((one.rank + 1) % call.ranks, one),)) for one in call.schedule
    )
    return oncore._through(running, turned)


@pytest.mark.parametrize("mutant", [skip_others, wrong_ranks])
def test_a_scatter_that_serves_the_wrong_ranks_is_caught(
    mutant: Callable[[Collecting], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    holds(RIGHT)
    monkeypatch.setitem(oncore.PLAYED, "tscatter", mutant)
    with pytest.raises(AssertionError, match="tensor"):
        holds(RIGHT)


def test_a_reduction_in_another_order_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(op="treduce", ranks=4, root=2, slice=(1, 1, 1, 8, 32), valid=(4, 16))
    holds(case)
    monkeypatch.setattr(
        oncore, "order_of_ranks", lambda root, ranks: [root, *reversed(order_of_ranks(root, ranks)[1:])]
    )
    with pytest.raises(AssertionError, match="tensor 0"):
        holds(case)


# Order inside of the instruction


def steps_of(case: Case) -> list[Any]:
    return holds(case).blocks[0].steps


def test_one_tile_is_filled_and_emptied_in_turn() -> None:
    *moves, drain = steps_of(Case(ranks=2, slice=(1, 1, 1, 4, 8), valid=(2, 8)))
    assert [one.pipe for one in moves] == [MTE2, MTE3] * 4
    assert [None if one.awaits is None else moves.index(one.awaits) for one in moves] == [None, 0, 1, 2, 3, 4, 5, 6]
    assert (drain.pipe, drain.awaits) == (MTE2, moves[-1])


def test_two_tiles_overlap_across_ranks_with_one_drain() -> None:
    *moves, drain = steps_of(Case(ranks=2, slice=(1, 1, 1, 4, 8), valid=(2, 8), pong=True))
    loads, stores = moves[::2], moves[1::2]
    assert [one.pipe for one in moves] == [MTE2, MTE3] * 4
    assert [one.awaits for one in stores] == loads
    assert [one.awaits for one in loads] == [None, None, *stores[:2]]
    assert [one.flag[2] for one in stores] == [0, 1, 0, 1]
    assert (drain.pipe, drain.awaits) == (MTE2, stores[-1])


def test_a_reduction_goes_by_way_of_v() -> None:
    moves = steps_of(Case(op="treduce", ranks=3, root=1, slice=(1, 1, 1, 2, 8), valid=(2, 8)))[:-1]
    assert [one.pipe for one in moves] == [MTE2, MTE2, V, MTE2, V, MTE3]


def test_with_two_tiles_the_modelled_time_is_shorter() -> None:
    case = Case(slice=(1, 1, 1, 64, 64), valid=(16, 64))
    one, two = holds(case), holds(replace(case, pong=True))
    assert two.cycles.total < one.cycles.total
    assert two.cycles["MTE2"] == pytest.approx(one.cycles["MTE2"])


def test_the_trace_has_a_load_and_a_store_of_every_chunk() -> None:
    run = holds(Case(ranks=2, slice=(1, 1, 1, 4, 8), valid=(2, 8), pong=True))
    assert [(one.pipe, one.nbytes) for one in run.trace] == [("MTE2", 64)] * 4 + [("MTE3", 64)] * 4
    assert {one.name for one in run.trace} == {"tscatter"}
    assert [one.name for one in run.trace.flows][:1] == ["MTE2->MTE3, event 0"]


def test_without_data_the_record_is_the_same_and_nothing_moves() -> None:
    case = Case(op="treduce", ranks=3, slice=(1, 2, 1, 9, 40), valid=(4, 16), pong=True, more_rows=1)
    run, _, _ = case.play()
    bare, held, _ = case.play(data=False)
    untouched = [case.tensor(case.local, 1)[1], *(case.tensor(case.slice, 2 + rank)[1] for rank in range(3))]
    assert [one.tobytes() for one in held] == [one.tobytes() for one in untouched]
    assert [(one.id, one.message) for one in bare.findings] == [(one.id, one.message) for one in run.findings]
    assert (bare.cycles, bare.ub) == (run.cycles, run.ub)
    seen = [[(one.pipe, one.start, one.end, one.nbytes) for one in each.trace] for each in (bare, run)]
    assert seen[0] == seen[1]


def test_an_illegal_call_stops_and_moves_nothing() -> None:
    case = Case(valid=(3, 13), is_static=True)
    run, held, _ = case.play()
    assert ids(run) == ["PTO-R011"]
    assert [one.tobytes() for one in held[1:]] == [case.tensor(case.slice, 2 + rank)[1].tobytes() for rank in range(3)]


# In a kernel

ROWS, COLS = 4, 16


def arrays() -> tuple[Array, Array, Array]:
    """A source of two slices, and the two destinations."""
    source = np.arange(2 * ROWS * COLS, dtype=np.float32).reshape(2 * ROWS, COLS)
    return source, np.zeros((ROWS, COLS), np.float32), np.zeros((ROWS, COLS), np.float32)


def spread(k: Any, src: Any, g0: Any, g1: Any) -> None:
    ping, pong = k.tile("float32", 2, COLS), k.tile("float32", 2, COLS)
    k.tscatter(src, [g0, g1], ping, pong)


def gather(k: Any, dst: Any, g0: Any, g1: Any) -> None:
    k.tgather(dst, (g0, g1), k.tile("float32", 2, COLS), root=1)


def broadcast(k: Any, src: Any, g0: Any, g1: Any) -> None:
    k.tbroadcast(src[0:ROWS, 0:COLS], [g0, g1], k.tile("float32", 2, COLS))


def reduce(k: Any, dst: Any, g0: Any, g1: Any) -> None:
    acc, ping = k.tile("float32", 2, COLS), k.tile("float32", 2, COLS)
    k.treduce(dst[0:ROWS, 0:COLS], acc, [g0, g1], ping, op="max", root=1)


@pytest.mark.parametrize("kernel", [spread, gather, broadcast, reduce])
@pytest.mark.parametrize("target", ["cpu", "a2a3", "a5"])
def test_a_kernel_calls_it(kernel: Callable[..., None], target: str) -> None:
    source, g0, g1 = arrays()
    g0 += 1000
    run = pto.launch(kernel, source, g0, g1, target=target)
    assert run.findings == []
    high = np.arange(2 * ROWS * COLS, dtype=np.float32).reshape(2, ROWS, COLS)
    wanted = {
        "spread": (high.reshape(-1, COLS), high[0], high[1]),
        "gather": (np.concatenate([g0, g1]), g0, g1),
        "broadcast": (high.reshape(-1, COLS), high[0], high[0]),
        "reduce": (np.concatenate([g0, high[1]]), g0, g1),
    }[kernel.__name__]
    for held, right in zip((source, g0, g1), wanted, strict=True):
        assert np.array_equal(held, right)


def test_the_tiles_have_their_valid_extents_afterwards() -> None:
    seen = []

    def kernel(k: Any, src: Any, g0: Any, g1: Any) -> None:
        tile = k.tile("float32", 4, COLS, valid=(-1, -1))
        tile.set_valid(3, 16)
        k.tscatter(src, [g0, g1], tile)
        seen.append(tile.valid)

    run = pto.launch(kernel, *arrays(), target="a5")
    assert (seen, ids(run)) == ([(3, 16)], [])
    assert told(run, "PTO-R022").severity == "note"


@pytest.mark.parametrize("event", [0, 1])
@pytest.mark.parametrize("pair", [("MTE2", "MTE3"), ("MTE3", "MTE2")])
@pytest.mark.parametrize("pong", [False, True])
def test_a_flag_that_is_held_across_the_call(event: int, pair: tuple[str, str], pong: bool) -> None:
    def kernel(k: Any, src: Any, g0: Any, g1: Any) -> None:
        ping, other = k.tile("float32", 2, COLS), k.tile("float32", 2, COLS)
        k.set_flag(*pair, event)
        k.tscatter(src, [g0, g1], ping, other if pong else None)
        k.wait_flag(*pair, event)

    run = pto.launch(kernel, *arrays(), target="a5")
    assert ids(run) == (["PTO-S008"] if event == 0 or pong else [])


def test_what_v_left_in_the_staging_tile_must_be_waited_for() -> None:
    def kernel(k: Any, src: Any, g0: Any, g1: Any, ordered: bool) -> None:
        ping = k.tile("float32", 2, COLS)
        k.texpands(ping, 3.0)
        k.set_flag("V", "MTE2", 0)
        if ordered:
            k.wait_flag("V", "MTE2", 0)
        k.tscatter(src, [g0, g1], ping)
        if not ordered:
            k.wait_flag("V", "MTE2", 0)

    assert pto.launch(kernel, *arrays(), True, target="a5").findings == []
    run = pto.launch(kernel, *arrays(), False, target="a5")
    assert (ids(run), line(loud(run)[0])) == (["PTO-S001"], line_of(kernel, "k.tscatter"))


def test_a_source_that_is_still_being_stored() -> None:
    def kernel(k: Any, src: Any, g0: Any, g1: Any, ordered: bool) -> None:
        ones, ping = k.tile("float32", 2 * ROWS, COLS), k.tile("float32", 2, COLS)
        k.texpands(ones, 1.0)
        k.set_flag("V", "MTE3", 0)
        k.wait_flag("V", "MTE3", 0)
        stored = k.tstore(src, ones)
        k.tscatter(src, [g0, g1], ping, wait=stored if ordered else ())

    for ordered, wanted in ((True, []), (False, ["PTO-S002"])):
        source, g0, g1 = arrays()
        run = pto.launch(kernel, source, g0, g1, ordered, target="a5")
        assert ids(run) == wanted
        assert bool((g0 == 1).all()) is ordered


def test_a_source_that_stands_in_the_data_cache() -> None:
    def kernel(k: Any, src: Any, g0: Any, g1: Any) -> None:
        k.store_scalar(src, 3, 9.0)
        k.tscatter(src, [g0, g1], k.tile("float32", 2, COLS))
        k.dcci()
        k.dsb()

    source, g0, g1 = arrays()
    run = pto.launch(kernel, source, g0, g1, target="a5", schedule="program")
    assert ids(run) == ["PTO-H004"]
    assert (source[0, 3], g0[0, 3]) == (9, 3)


def test_an_index_that_a_collective_left_in_the_tile_is_told_as_its_own() -> None:
    def kernel(k: Any, src: Any, g0: Any, table: Any) -> None:
        rows, values = k.tile("int32", 1, 8), k.tile("int32", 8, 8)
        k.texpands(values, 1)
        k.tscatter(src, [g0], rows)
        k.set_flag("MTE2", "V", 0)
        k.wait_flag("MTE2", "V", 0)
        k.mscatter(table, values, rows, oob="clamp")
        k.pipe_barrier("ALL")
        k.dcci()
        k.dsb()

    row = np.array([[0, 1, -2, 3, 4, 5, 6, 7]], np.int32)
    run = pto.launch(kernel, row, np.zeros((1, 8), np.int32), np.zeros((9, 8), np.int32), target="a5")
    (found,) = loud(run)
    assert (found.id, found.facts["written_by"]) == ("PTO-I004", "tscatter")


def test_a_load_of_what_was_scattered_needs_nothing() -> None:
    def kernel(k: Any, src: Any, g0: Any, g1: Any) -> None:
        ping, back = k.tile("float32", 2, COLS), k.tile("float32", ROWS, COLS)
        k.tscatter(src, [g0, g1], ping)
        k.tload(back, g1)
        k.set_flag("MTE2", "MTE3", 1)
        k.wait_flag("MTE2", "MTE3", 1)
        k.tstore(g0, back)

    source, g0, g1 = arrays()
    assert pto.launch(kernel, source, g0, g1, target="a5").findings == []
    assert np.array_equal(g0, source[ROWS:])


def test_v_must_wait_for_what_it_reads_of_the_staging_tile() -> None:
    def kernel(k: Any, src: Any, g0: Any, g1: Any) -> None:
        ping = k.tile("float32", ROWS, COLS)
        k.tscatter(src, [g0, g1], ping)
        k.tadds(ping, ping, 1.0)

    run = pto.launch(kernel, *arrays(), target="a5")
    assert set(ids(run)) == {"PTO-S001"}


def test_the_tiles_count_in_the_ledger() -> None:
    def kernel(k: Any, src: Any, g0: Any, g1: Any) -> None:
        k.tscatter(src, [g0, g1], k.tile("float32", 2, COLS, at=0x1000), k.tile("float32", 2, COLS, at=0x2000))

    run = pto.launch(kernel, *arrays(), target="a5")
    assert run.findings == []
    assert run.ub.peak == 0x2000 + 2 * COLS * 4


def test_tiles_on_each_other_are_refused() -> None:
    def kernel(k: Any, src: Any, g0: Any, g1: Any) -> None:
        k.tscatter(src, [g0, g1], k.tile("float32", 2, COLS, at=0), k.tile("float32", 2, COLS, at=64))

    assert ids(pto.launch(kernel, *arrays(), target="a5")) == ["PTO-R014"]


@pytest.mark.parametrize(
    ("op", "local", "slices", "told"),
    [
        ("tscatter", (0, 8), ((8, 12), (12, 16)), None),
        ("tscatter", (0, 8), ((8, 12), (11, 15)), "the destination of rank 0 and the destination of rank 1"),
        ("tscatter", (0, 8), ((8, 12), (8, 12)), "the destination of rank 0 and the destination of rank 1"),
        # In place: the root's slice stands where it is.
        ("tscatter", (0, 8), ((0, 4), (12, 16)), None),
        ("tscatter", (0, 8), ((4, 8), (12, 16)), "the source and the destination of rank 0"),
        ("tscatter", (0, 8), ((1, 5), (12, 16)), "the source and the destination of rank 0"),
        ("tgather", (0, 8), ((8, 12), (8, 12)), None),
        ("tgather", (0, 8), ((8, 12), (4, 8)), None),
        ("tgather", (0, 8), ((8, 12), (0, 4)), "the destination and the source of rank 1"),
        ("tbroadcast", (0, 4), ((0, 4), (8, 12)), None),
        ("tbroadcast", (0, 4), ((3, 7), (8, 12)), "the source and the destination of rank 0"),
        ("treduce", (0, 4), ((8, 12), (0, 4)), None),
        ("treduce", (0, 4), ((8, 12), (2, 6)), "the destination and the source of rank 1"),
    ],
)
def test_tensors_that_lie_on_each_other(op: str, local: Any, slices: Any, told: str | None) -> None:
    def kernel(k: Any, memory: Any) -> None:
        def rows(pair: tuple[int, int]) -> Any:
            return memory[pair[0] : pair[1], 0:COLS]

        more = {"acc": k.tile("float32", ROWS, COLS)} if op == "treduce" else {}
        own = {"src" if op in ("tscatter", "tbroadcast") else "dst": rows(local)}
        getattr(k, op)(**own, slices=[rows(one) for one in slices], ping=k.tile("float32", ROWS, COLS), **more)

    run = pto.launch(kernel, np.zeros((16, COLS), np.float32), target="a5")
    assert [one.id for one in run.findings] == ([] if told is None else ["PTO-R024"])
    assert told is None or told in run.findings[0].message


def test_columns_of_one_matrix_do_not_lie_on_each_other() -> None:
    def kernel(k: Any, src: Any, wide: Any) -> None:
        k.tscatter(src, [wide[0:ROWS, 0:COLS], wide[0:ROWS, COLS : 2 * COLS]], k.tile("float32", ROWS, COLS))

    source, wide = arrays()[0], np.zeros((ROWS, 2 * COLS), np.float32)
    assert pto.launch(kernel, source, wide, target="a5").findings == []
    assert np.array_equal(wide, np.concatenate([source[:ROWS], source[ROWS:]], axis=1))


def test_elements_that_alternate_do_not_lie_on_each_other() -> None:
    def kernel(k: Any, src: Any, even: Any, odd: Any) -> None:
        k.tscatter(src, [even, odd], k.tile("float32", ROWS, COLS))

    source, memory = arrays()[0], np.zeros(2 * ROWS * COLS, np.float32)
    shape, stride = (1, 1, 1, ROWS, COLS), (2 * ROWS * COLS,) * 3 + (2 * COLS, 2)
    members = [pto.GlobalTensor(memory, "float32", shape, stride, base=base) for base in (0, 1)]
    assert pto.launch(kernel, source, *members, target="a5").findings == []
    assert np.array_equal(memory.reshape(ROWS, COLS, 2), np.stack([source[:ROWS], source[ROWS:]], axis=2))


def test_what_is_loaded_between_the_elements_of_a_store_need_not_wait() -> None:
    def kernel(k: Any, dst: Any, even: Any, odd: Any) -> None:
        ones = k.tile("float32", ROWS, COLS)
        filled = k.texpands(ones, 1.0)
        k.tstore(odd, ones, wait=filled)
        k.tgather(dst, [even], k.tile("float32", ROWS, COLS))

    memory, shape = np.zeros(2 * ROWS * COLS, np.float32), (1, 1, 1, ROWS, COLS)
    members = [pto.GlobalTensor(memory, "float32", shape, (0, 0, 0, 2 * COLS, 2), base=base) for base in (0, 1)]
    assert pto.launch(kernel, np.zeros((ROWS, COLS), np.float32), *members, target="a5").findings == []


def test_bytes_count_in_and_out() -> None:
    moved = 2 * 2 * ROWS * COLS * 4
    assert pto.launch(spread, *arrays(), target="a5", max_bytes=moved).findings == []
    assert ids(pto.launch(spread, *arrays(), target="a5", max_bytes=moved - 1)) == ["PTO-H006"]


def test_read_only_destinations_are_refused() -> None:
    source, g0, g1 = arrays()
    g1.flags.writeable = False
    with pytest.raises(pto.PtoValueError, match="read-only"):
        pto.launch(spread, source, g0, g1, target="a5")


def test_thousands_of_chunks_are_one_instruction() -> None:
    def kernel(k: Any, src: Any, g0: Any, g1: Any) -> None:
        k.tscatter(src, [g0, g1], k.tile("float32", 1, 8))

    source = np.arange(2 * 512 * 32, dtype=np.float32).reshape(-1, 32)
    g0, g1 = np.zeros((512, 32), np.float32), np.zeros((512, 32), np.float32)
    run = pto.launch(kernel, source, g0, g1, target="a5", max_instructions=1)
    assert run.findings == []
    assert np.array_equal(np.concatenate([g0, g1]), source)
    assert math.prod((2, 512, 4)) * 2 + 1 == len(run.blocks[0].steps)


@pytest.mark.parametrize("kernel", [spread, gather, reduce])
def test_no_mutant_of_a_kernel_with_a_collective_is_missed(kernel: Callable[..., None]) -> None:
    score = mutate(kernel, arrays, target="a5")
    assert score.missed == []
    assert {one.fate for one in score.verdicts} <= {Fate.CAUGHT, Fate.EQUIVALENT}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda k, src, g0, g1: k.tscatter(src, [g0, g1], pto.Tile("float32", 2, 16)), "make it with k.tile"),
        (lambda k, src, g0, g1: k.tscatter(src, [g0, g1], None), "ping is"),
        (lambda k, src, g0, g1: k.tscatter(src, g0, k.tile("float32", 2, 16)), "a list of one GlobalTensor per rank"),
        (lambda k, src, g0, g1: k.tscatter(src, [g0, g1], k.tile("float32", 2, 16), rot=1), "root"),
        (lambda k, src, g0, g1: k.tscatter(src, [g0, g1]), "ping is missing"),
    ],
)
def test_what_is_no_operand_is_refused(call: Callable[..., Any], words: str) -> None:
    with pytest.raises(pto.PtoTypeError, match=words):
        pto.launch(call, *arrays(), target="a5")
