"""pto.scatter and pto.gather: the same bits as a naive model, whatever the type, the policy, the path, the layout."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import array_model as model
import ptokit as pto
from cases import HAS_HIFLOAT8, contents
from ptokit import arrays
from ptokit.dtypes import ELEMENT_TYPES, element_type

Array = np.ndarray[Any, Any]

TYPES = [name for name in ELEMENT_TYPES if name != "hifloat8" or HAS_HIFLOAT8]
COUNTED = [name for name in TYPES if name not in arrays.MOVED_ONLY]
INDICES = ["int32", "uint32", "int64", "uint64"]
WAYS = ["compiled", "python"]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """The compiled module, and what works without it."""
    with without_native(request.param == "python"):
        yield request.param


class without_native:  # noqa: N801 - reads as a word
    """Where asked for: as if the compiled module were not there."""

    def __init__(self, asked: bool = True) -> None:
        self.asked = asked

    def __enter__(self) -> None:
        self.kept = arrays._native
        if self.asked:
            arrays._native = None  # type: ignore[assignment]
            arrays.said.add("slow")

    def __exit__(self, *_: object) -> None:
        arrays._native = self.kept


def scatter(*args: Any, **how: Any) -> Any:
    """pto.scatter by the way that is being tested."""
    return pto.scatter(*args, **how) if arrays._native else pto.scatter.__wrapped__(*args, **how)


def gather(*args: Any, **how: Any) -> Any:
    return pto.gather(*args, **how) if arrays._native else pto.gather.__wrapped__(*args, **how)


def bits(array: Array) -> Array:
    """What is compared: the bits, with every NaN of a float as one."""
    kind = element_type(array.dtype)
    found = np.ascontiguousarray(array).view(kind.bits).copy()
    if kind.is_float:
        found[np.isnan(np.ascontiguousarray(array).astype(np.float32))] = 1
    return found


def exact(array: Array) -> bytes:
    return np.ascontiguousarray(array).tobytes()


def filled(rng: np.random.Generator, name: str, shape: tuple[int, ...], flavour: str) -> Array:
    kind = element_type(name)
    return np.array(contents(rng, name, int(np.prod(shape)), flavour), kind.bits).view(kind.numpy).reshape(shape)


def words(rng: np.random.Generator, dtype: str, shape: tuple[int, ...], slots: int, wild: float) -> Array:
    """Indices, many of them equal, some out of bounds."""
    count = int(np.prod(shape))
    found = rng.integers(0, max(1, rng.integers(1, slots + 1)), count)
    strange = rng.random(count) < wild
    edge = np.array([slots - 1, slots, slots + 1, -1, -slots, 2**31 - 1, -(2**31), 2 * slots + 3])
    found[strange] = rng.choice(edge, int(strange.sum()))
    return found.astype(dtype).reshape(shape)


@st.composite
def calls(draw: st.DrawFn) -> dict[str, Any]:
    """Operands and policies of one legal call."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    atomic = draw(st.sampled_from(["none", "add", "max", "min"]))
    dtype = draw(st.sampled_from(TYPES if atomic == "none" else COUNTED))
    coalesce = draw(st.sampled_from(["row", "elem"]))
    slots = draw(st.integers(1, 40))
    width = draw(st.sampled_from([(), (1,), (2,), (3,), (4,), (7,), (8,), (16,), (17,), (33,), (64,), (2, 5), (3, 0)]))
    shape = draw(st.sampled_from([(), (1,), (7,), (3, 4), (2, 1, 5), (0,), (65,), (300,)]))
    flavour = draw(st.sampled_from(["few", "numbers", "any"]))
    table = filled(rng, dtype, (slots, *width), flavour)
    if coalesce == "elem" and not table.size:
        table = filled(rng, dtype, (slots,), flavour)
    count = slots if coalesce == "row" else table.size
    idx = words(rng, draw(st.sampled_from(INDICES)), shape, count, draw(st.sampled_from([0.0, 0.2])))
    row = table.shape[1:] if coalesce == "row" else ()
    return {
        "table": table,
        "src": filled(rng, dtype, (*shape, *row), flavour),
        "idx": idx,
        "coalesce": coalesce,
        "atomic": atomic,
        "oob": draw(st.sampled_from(["raise", "drop", "clamp", "wrap"])),
    }


many = settings(max_examples=500, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("how", WAYS)
@given(call=calls())
@many
def test_a_scatter_gives_the_bits_of_the_naive_model(how: str, call: dict[str, Any]) -> None:
    table, src, idx = call["table"], call["src"], call["idx"]
    policies = {name: call[name] for name in ("coalesce", "atomic", "oob")}
    policies["oob"] = policies["oob"].replace("drop", "skip")
    before = exact(table)
    with without_native(how == "python"):
        try:
            expected = model.scatter(table, src, idx, **policies)
        except IndexError:
            with pytest.raises(pto.PtoIndexError):
                scatter(table, src, idx, **policies)
            assert exact(table) == before
            return
        assert scatter(table, src, idx, **policies) is table
    if policies["atomic"] == "none":
        assert exact(table) == exact(expected)
    assert np.array_equal(bits(table), bits(expected))


@pytest.mark.parametrize("how", WAYS)
@given(call=calls(), into=st.booleans())
@many
def test_a_gather_gives_the_bits_of_the_naive_model(how: str, call: dict[str, Any], into: bool) -> None:
    table, idx, oob = call["table"], call["idx"], call["oob"].replace("drop", "zero")
    out = call["src"] if into else None
    before = exact(call["src"])
    with without_native(how == "python"):
        try:
            expected = model.gather(table, idx, call["coalesce"], oob)
        except IndexError:
            with pytest.raises(pto.PtoIndexError):
                gather(table, idx, coalesce=call["coalesce"], oob=oob, out=out)
            assert exact(call["src"]) == before
            return
        result = gather(table, idx, coalesce=call["coalesce"], oob=oob, out=out)
    assert result is out or not into
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    assert exact(result) == exact(expected)


# Held to the definition


def on_target(call: dict[str, Any], target: str, oob: str) -> Array:
    """The same scatter as one instruction on a target: the table after it."""
    table, src, idx = call["table"].copy(), call["src"], call["idx"]
    kind = element_type(table.dtype)
    rows, cols = (idx.size, table.size // len(table)) if call["coalesce"] == "row" else (1, idx.size)
    pad = -(-cols * kind.itemsize // 32) * 32 // kind.itemsize
    tile = pto.Tile(kind, rows, pad, (rows, cols))
    tile.data.reshape(rows, pad)[:, :cols] = src.reshape(rows, cols)
    index = pto.Tile(idx.dtype, 1, -(-idx.size // 8) * 8, (1, idx.size))
    index.data[: idx.size] = idx.ravel()
    slots = (len(table), cols) if call["coalesce"] == "row" else (1, table.size)
    tensor = pto.GlobalTensor(table, kind, (1, 1, 1, *slots))
    pto.mscatter(
        tensor, tile, index, coalesce=call["coalesce"], atomic=call["atomic"], oob=oob, conflict="last", target=target
    )
    return table


@given(call=calls(), target=st.sampled_from(["a2a3", "a5"]))
@many
def test_the_compiled_path_equals_the_instruction_on_the_targets(call: dict[str, Any], target: str) -> None:
    call["idx"] = call["idx"].astype(np.int32 if call["idx"].dtype.kind == "i" else np.uint32)
    if not call["idx"].size or not call["table"].size:
        return
    oob = call["oob"].replace("drop", "skip").replace("raise", "skip")
    try:
        expected = on_target(call, target, oob)
    except pto.IllegalInstruction:
        return
    pto.scatter(call["table"], call["src"], call["idx"], coalesce=call["coalesce"], atomic=call["atomic"], oob=oob)
    assert np.array_equal(bits(call["table"]), bits(expected))


# Every operation on every type, by every kernel


@pytest.mark.parametrize("dtype", COUNTED)
@pytest.mark.parametrize("atomic", ["none", "add", "max", "min"])
@pytest.mark.parametrize("width", [1, 24])
def test_every_fold_of_every_type(dtype: str, atomic: str, width: int, way: str) -> None:
    rng = np.random.default_rng(7)
    for flavour in ("any", "numbers", "few"):
        # More lanes than the direct path takes.
        table, src = filled(rng, dtype, (50, width), flavour), filled(rng, dtype, (2500, width), flavour)
        idx = rng.integers(0, 50, 2500)
        expected = model.scatter(table[:, :3], src[:, :3], idx, "row", atomic, "raise")
        scatter(table, src, idx, atomic=atomic)
        assert np.array_equal(bits(table[:, :3]), bits(expected))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_16_bit_floats_are_rounded_to_nearest_even(dtype: str, way: str) -> None:
    # Every value of the type meets a few others, so that halves, subnormal numbers and overflows are among the sums.
    kind = element_type(dtype)
    every = np.arange(1 << 16, dtype=np.uint16).view(kind.numpy)
    for other in np.array([0x0001, 0x3C00, 0x8400, 0x3F80, 0x7BFF, 0x0080, 0xB955], np.uint16).view(kind.numpy):
        table = every.copy()
        with np.errstate(all="ignore"):
            expected = table + np.full_like(table, other)
        scatter(table, np.full_like(table, other), np.arange(1 << 16), coalesce="elem", atomic="add")
        assert np.array_equal(bits(table), bits(expected))
        rows = every.reshape(-1, 64).copy()
        scatter(rows, np.full_like(rows, other), np.arange(1 << 10), atomic="add")
        assert np.array_equal(bits(rows.ravel()), bits(expected))


# Layouts


def padded(table: Array) -> Array:
    """The same rows with a gap behind each."""
    room = np.zeros((len(table), table.shape[1] + 5), table.dtype)
    room[:, : table.shape[1]] = table
    return room[:, : table.shape[1]]


@pytest.mark.parametrize("view", [padded, lambda t: np.repeat(t, 2, axis=0)[::2], lambda t: t[::-1].copy()[::-1]])
@pytest.mark.parametrize("width", [1, 6])
def test_rows_that_are_not_contiguous_with_each_other_work_in_place(
    view: Callable[[Array], Array], width: int, way: str
) -> None:
    rng = np.random.default_rng(8)
    plain = rng.standard_normal((30, width)).astype(np.float32)
    src, idx = rng.standard_normal((100, width)).astype(np.float32), rng.integers(0, 30, 100)
    for atomic in ("none", "add"):
        table = view(plain)
        assert scatter(table, src, idx, atomic=atomic) is table
        assert exact(table) == exact(model.scatter(plain, src, idx, "row", atomic, "raise"))
    assert exact(gather(view(plain), idx)) == exact(plain[idx])
    out = view(np.zeros((100, width), np.float32))
    assert gather(plain, idx, out=out) is out
    assert exact(out) == exact(plain[idx])
    table = plain.copy()
    scatter(table, view(src), idx)
    assert exact(table) == exact(model.scatter(plain, src, idx, "row", "none", "raise"))


def test_a_source_of_any_strides_is_read_right(way: str) -> None:
    rng = np.random.default_rng(9)
    src = rng.standard_normal((3, 4, 6)).astype(np.float32)
    idx = rng.integers(0, 20, (3, 4))
    for odd in (np.asfortranarray(src), src[:, ::-1][:, ::-1], np.broadcast_to(src[0], (3, 4, 6))):
        table = np.zeros((20, 6), np.float32)
        scatter(table, odd, np.asfortranarray(idx))
        assert exact(table) == exact(model.scatter(np.zeros_like(table), odd, idx, "row", "none", "raise"))


def test_a_table_of_one_row_and_rows_without_width(way: str) -> None:
    one = np.zeros((1, 3), np.int32)
    scatter(one, np.full((4, 3), 2, np.int32), [0, 0, 0, 0], atomic="add")
    assert one.tolist() == [[8, 8, 8]]
    nothing = np.zeros((5, 0), np.float32)
    assert scatter(nothing, np.zeros((2, 0), np.float32), [0, 4]) is nothing
    assert gather(nothing, [1, 2, 3]).shape == (3, 0)
    with pytest.raises(pto.PtoIndexError, match=r"idx\[1\] is 5, and the table has 5 rows"):
        gather(nothing, [1, 5])


def test_no_indices_at_all(way: str) -> None:
    table = np.ones((4, 3), np.float32)
    for empty in ([], np.zeros(0, np.int64), np.zeros((2, 0), np.uint32)):
        shape = np.shape(empty)
        scatter(table, np.zeros((*shape, 3), np.float32), empty)
        assert gather(table, empty).shape == (*shape, 3)
    assert gather(np.zeros((0, 3), np.float32), []).shape == (0, 3)
    assert gather(np.zeros((0, 3), np.int8), [7], oob="zero").tolist() == [[0, 0, 0]]


def test_a_table_without_slots_has_zeros_to_give(way: str) -> None:
    far = np.arange(1, 40) << 33  # where nobody's memory is
    nothing = np.zeros((0, 3), np.float32)
    for out in (None, np.ones((39, 3), np.float32), np.ones((39, 5), np.float32)[::-1, 1:4]):
        assert not gather(nothing, far, oob="zero", out=out).any()
    assert scatter(nothing, np.ones((39, 3), np.float32), far, oob="skip") is nothing
    with pytest.raises(pto.PtoIndexError, match="the table has 0 rows"):
        gather(nothing, far)


def test_scalars_and_lists_as_indices(way: str) -> None:
    table = np.arange(12, dtype=np.int16).reshape(4, 3)
    assert gather(table, 2).tolist() == [6, 7, 8]
    assert gather(table, np.int32(2) + np.zeros((), np.int32)).tolist() == [6, 7, 8]
    assert gather(table, [[0, 1], (2, 3)]).shape == (2, 2, 3)
    assert gather(table, [3, 3], coalesce="elem").tolist() == [3, 3]


# Large tables and many lanes


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_many_lanes_on_any_number_of_threads(dtype: str) -> None:
    rng = np.random.default_rng(10)
    size, count = 1 << 25, (1 << 20) + 4321
    start = rng.integers(-100, 100, size).astype(dtype)
    src = rng.integers(-100, 100, count).astype(dtype)
    kept = pto.get_num_threads()
    for draw in (lambda: rng.integers(-50, size + 50, count), lambda: (rng.zipf(1.2, count) - 1) % size):
        idx = draw()
        with without_native():
            expected = {
                a: scatter(start.copy(), src, idx, coalesce="elem", atomic=a, oob="wrap") for a in ("none", "add")
            }
            found = gather(start, idx, coalesce="elem", oob="zero")
        try:
            for threads in (1, 2, 3, 8):
                pto.set_num_threads(threads)
                for atomic, wanted in expected.items():
                    table = start.copy()
                    pto.scatter(table, src, idx, coalesce="elem", atomic=atomic, oob="wrap")
                    assert np.array_equal(table, wanted)
                assert np.array_equal(pto.gather(start, idx, coalesce="elem", oob="zero"), found)
        finally:
            pto.set_num_threads(kept)


@pytest.mark.parametrize("offset", [0, 1, 4])
def test_many_rows_on_any_number_of_threads(offset: int) -> None:
    """Rows that are written around the caches, at places that fit a vector and at others."""
    rng = np.random.default_rng(11)
    rows, width, count = 1 << 16, 96, 1 << 16
    room = np.zeros(rows * width + 16, np.float32)
    start = room[offset : offset + rows * width].reshape(rows, width)
    src = rng.standard_normal((count, width), np.float32)
    idx = (rng.zipf(1.3, count) - 1) % rows
    kept = pto.get_num_threads()
    try:
        for threads in (1, 2, 5):
            pto.set_num_threads(threads)
            for atomic in ("none", "add"):
                start[:] = 1
                pto.scatter(start, src, idx, atomic=atomic)
                expected = np.ones_like(start)
                with without_native():
                    scatter(expected, src, idx, atomic=atomic)
                assert np.array_equal(start, expected)
                assert not room[:offset].any()
                assert not room[offset + rows * width :].any()
            assert np.array_equal(pto.gather(start, idx), start[idx])
    finally:
        pto.set_num_threads(kept)


def test_a_result_may_outlive_its_neighbours() -> None:
    """Large results share one spare mapping when they are given back, never while they live."""
    table = np.arange(1 << 21, dtype=np.int32).reshape(-1, 8)
    idx = np.arange(len(table))
    first = pto.gather(table, idx)
    second = pto.gather(table, idx[::-1].copy())
    assert np.array_equal(first, table)
    del second
    third = pto.gather(table, idx[::-1].copy())
    assert np.array_equal(first, table)
    assert np.array_equal(third, table[::-1])


@pytest.mark.parametrize("index", ["uint32", "int64"])
def test_a_table_past_2_to_the_32(index: str, tmp_path: Any) -> None:
    size = 2**32 + 4096
    table = np.memmap(tmp_path / "table", np.int8, "w+", shape=(size,))  # a sparse file
    places = np.array([0, 2**31, 2**32 - 1], index)
    if index == "int64":
        places = np.append(places, [2**32, size - 1])
    values = np.arange(1, len(places) + 1, dtype=np.int8)
    pto.scatter(table, values, places, coalesce="elem")
    pto.scatter(table, values, places, coalesce="elem", atomic="add")
    assert [int(table[int(p)]) for p in places] == (2 * values).tolist()
    assert pto.gather(table, places, coalesce="elem").tolist() == (2 * values).tolist()
    # -1 is the last 32-bit index, which is a slot here; as 64 bits it is none.
    assert pto.gather(table, np.array([-1], np.int32), coalesce="elem").tolist() == [6]
    rows = table.reshape(-1, 2)
    assert pto.gather(rows, np.array([2**31 - 1, 0], np.uint32))[:, 1].tolist() == [6, 0]
    if index == "int64":
        with pytest.raises(pto.PtoIndexError, match=rf"the table has {size} elements"):
            pto.gather(table, [size], coalesce="elem")
        assert pto.gather(table, [-1], coalesce="elem", oob="clamp").tolist() == [10]
        assert pto.gather(rows, [2**31])[0].tolist() == [8, 0]


# What it is to Python


def test_the_front_door_is_a_function_to_everybody() -> None:
    for function in (pto.scatter, pto.gather):
        assert "oob" in inspect.signature(function).parameters
        assert function.__doc__
        assert "Row:" in function.__doc__
        assert function.__module__ == "ptokit.arrays"
        assert pickle.loads(pickle.dumps(function)) is function
        assert copy.deepcopy(function) is function
    assert pto.scatter.__name__ == "scatter"


def test_operands_by_name() -> None:
    table = np.zeros(4, np.float32)
    pto.scatter(idx=[1], src=np.ones(1, np.float32), table=table, coalesce="elem")
    assert pto.gather(idx=np.array([1]), table=table, coalesce="elem").tolist() == [1]


def test_policies_in_any_case_and_as_enums(way: str) -> None:
    table = np.zeros((2, 2), np.int32)
    src = np.ones((3, 2), np.int32)
    scatter(table, src, [0, 0, 9], coalesce="ROW", atomic=pto.ScatterAtomicOp.Add, oob=pto.ScatterOOB.Skip)
    scatter(table, src, [9, 9, 9], coalesce=pto.Coalesce.Row, atomic="Max", oob=pto.ScatterOOB.Clamp)
    assert table.tolist() == [[2, 2], [1, 1]]
    assert gather(table, [9], oob=pto.GatherOOB.Zero).tolist() == [[0, 0]]
    text = "".join(["sk", "ip"])  # not the interned word
    scatter(table, src, [9, 9, 9], oob=text)
