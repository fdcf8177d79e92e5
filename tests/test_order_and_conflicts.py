"""SEMANTICS 2.3: the order of the walk, duplicates, atomics, numerics, and what may come out."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ptokit as pto
from calls import elem_source, ids, only, row_index, row_source, table
from ptokit.access import sums
from ptokit.dtypes import element_type

TARGETS = ("cpu", "a2a3", "a5")


def elem(
    values: list[float], slots: list[int], *, before: float = 0, dtype: str = "float32", size: int = 8, **policies: Any
) -> tuple[np.ndarray[Any, Any], pto.Report]:
    """An Elem call of one row; slot 7 of 8 gets a lane of its own, so that it is never a scalar call."""
    tab, buffer = table((size,), dtype)
    buffer[:] = before
    src, idx = elem_source(*values, dtype=dtype), row_index(*slots, cols=-(-len(slots) // 32) * 32)
    return buffer, pto.mscatter(tab, src, idx, coalesce="elem", **policies)


# The order of the walk


@pytest.mark.parametrize("target", TARGETS)
def test_the_last_writer_in_row_major_order_wins(target: str) -> None:
    buffer, rep = elem([1, 2, 3, 4], [5, 2, 5, 2], target=target)
    assert (buffer[5], buffer[2]) == (3, 4)
    assert rep.deterministic
    assert only(rep.findings, "PTO-C002").severity == "note"


def test_a2a3_nz_elem_walks_block_columns_and_another_lane_wins() -> None:
    # Lanes (0, 8) and (1, 0): row-major ends with (1, 0), block-column order with (0, 8).
    src = pto.Tile("float32", 16, 16, valid=(2, 9), layout="nz")
    src.store(np.arange(18).reshape(2, 9))
    idx = pto.Tile("int32", 2, 16, valid=(2, 9))
    words = np.arange(18).reshape(2, 9) + 100
    words[0, 8] = words[1, 0] = 3
    idx.store(words)
    tab, buffer = table((1, 1, 1, 16, 8), layout="nz")
    buffer = np.zeros(16 * 16, np.float32)
    tab = pto.GlobalTensor(buffer, "float32", (1, 2, 1, 16, 8), layout="nz")
    rep = pto.mscatter(tab, src, idx, coalesce="elem", target="a2a3")
    assert buffer[3] == 8
    facts = only(rep.findings, "PTO-C002").facts
    assert (facts["winner"], facts["winner_last"]) == ([0, 8], [1, 0])


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_row_duplicates_the_largest_row_wins(target: str) -> None:
    tab, buffer = table((4, 8))
    pto.mscatter(tab, row_source(3), row_index(2, 1, 2), target=target)
    assert buffer.reshape(4, 8)[:, 0].tolist() == [0, 101, 102, 0]


# The verdicts


def test_benign_duplicates_bring_equal_bits() -> None:
    _, rep = elem([4, 4, 1], [5, 5, 0], conflict="default", target="a5")
    assert rep.deterministic
    assert rep.outcomes.verdict(5) == "benign"
    assert ids(rep.findings) == {"PTO-C001"}


def test_a5_default_leaves_the_winner_to_the_scheduler() -> None:
    buffer, rep = elem([1, 2, 3], [5, 5, 0], conflict="default", target="a5")
    told = only(rep.findings, "PTO-C004")
    assert told.severity == "warning"
    assert told.facts["lanes"] == [[0, 0], [0, 1]]
    assert told.facts["values"] == [1.0, 2.0]
    assert told.facts["winner_last"] == [0, 1]
    assert told.facts["survivors"] == [[0, 0], [0, 1]]
    assert "conflict='last'" in told.fix
    assert not rep.deterministic
    assert "slot 5" in rep.deterministic_reason
    assert rep.outcomes.slots == [5]
    assert rep.outcomes.values(5) == [1, 2]
    assert rep.outcomes.values(0) == [3]
    assert rep.outcomes.verdict(0) == "single"
    for value, legal in ((1, True), (2, True), (3, False)):
        dump = buffer.copy()
        dump[5] = value
        assert rep.outcomes.contains(dump) is legal


def test_rows_of_one_thread_keep_their_order() -> None:
    # Rows 0 and 32 are accesses of warp 0: its last one stays, whatever the scheduler does.
    rows = 33
    tab, _ = table((rows, 8))
    slots = list(range(rows))
    slots[32] = 0
    rep = pto.mscatter(tab, row_source(rows), row_index(*slots), conflict="default", target="a5")
    assert rep.outcomes.values(0) == [132]
    assert rep.outcomes.verdict(0) == "defined"
    assert rep.deterministic
    assert "one thread" in rep.deterministic_reason


def test_survivors_are_the_last_rows_of_each_residue() -> None:
    rows = 70
    tab, _ = table((rows, 8))
    slots = list(range(rows))
    for r in (0, 32, 64, 5, 37):
        slots[r] = 9
    rep = pto.mscatter(tab, row_source(rows), row_index(*slots), conflict="default", target="a5")
    assert rep.outcomes.values(9) == [109, 137, 164]  # row 9 itself, row 37 of residue 5, row 64 of residue 0


def test_a_row_can_end_torn_between_writers_and_chunks_are_decided_apart() -> None:
    tab, buffer = table((4, 64))
    rep = pto.mscatter(tab, row_source(2, width=64), row_index(1, 1), conflict="default", target="a5")
    torn = buffer.reshape(4, 64).copy()
    torn[1, :32], torn[1, 32:] = 100, 101
    assert rep.outcomes.contains(torn)
    seen = set()
    for seed in range(40):
        fresh, result = table((4, 64))
        by_chance = {"conflict": "default", "schedule": "random", "seed": seed}
        pto.mscatter(fresh, row_source(2, width=64), row_index(1, 1), target="a5", **by_chance)
        seen.add((result[64], result[96]))
        assert len(set(result[64:96])) == len(set(result[96:128])) == 1
    assert seen == {(a, b) for a in (100, 101) for b in (100, 101)}


def test_elem_threads_and_the_narrower_set_of_lockstep_warps() -> None:
    # 1100 elements run on 1024 threads; elements 3 and 1027 share a thread, 40 is of another warp.
    src = pto.Tile("int32", 11, 104, valid=(11, 100))
    src.store(np.arange(1100).reshape(11, 100))
    idx = pto.Tile("int32", 11, 104, valid=(11, 100))
    words = np.arange(1100)
    words[[3, 1027, 40, 5]] = 2000
    idx.store(words.reshape(11, 100))
    tab, _ = table((2001,), "int32")
    rep = pto.mscatter(tab, src, idx, coalesce="elem", conflict="default", target="a5")
    assert rep.outcomes.values(2000) == [5, 40, 1027]
    facts = only(rep.findings, "PTO-C004").facts
    assert facts["survivors"] == [[0, 5], [0, 40], [10, 27]]
    assert facts["lockstep"] == [[0, 40], [10, 27]]


# Atomics


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("dtype", ["int32", "float32", "float16", "bfloat16"])
def test_add_accumulates_duplicates(target: str, dtype: str) -> None:
    buffer, rep = elem([1, 2, 4, 8], [5, 5, 0, 5], before=16, dtype=dtype, atomic="add", target=target)
    assert buffer.astype(np.float32).tolist() == [20, 16, 16, 16, 16, 27, 16, 16]
    assert rep.deterministic


@pytest.mark.parametrize(("atomic", "value"), [("max", 9), ("min", -3)])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_max_and_min(atomic: str, value: int, dtype: str) -> None:
    buffer, rep = elem([9, -3, 4], [5, 5, 0], before=1, dtype=dtype, atomic=atomic, target="a5")
    assert buffer[5] == value
    assert rep.deterministic


def test_unsigned_max_on_a5() -> None:
    buffer, _ = elem([2**31, 3, 4], [5, 5, 0], dtype="uint32", atomic="max", target="a5")
    assert buffer[5] == 2**31


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32"])
def test_integer_add_wraps(dtype: str) -> None:
    top = int(np.iinfo(dtype).max)
    buffer, _ = elem([1, 1], [5, 0], before=top, dtype=dtype, atomic="add", target="a2a3")
    assert buffer[5] == -top - 1


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_a_narrow_sum_that_overflows_through_the_dma_unit_is_reported(dtype: str) -> None:
    top = int(np.iinfo(dtype).max)
    tab, buffer = table((2, 32), dtype)
    buffer[:32] = top - 2
    rep = pto.mscatter(tab, row_source(3, 32, dtype, first=1), row_index(0, 0, 1), atomic="add", target="a2a3")
    assert buffer[0] == -top - 1 + 0
    told = only(rep.findings, "PTO-N002")
    assert (told.severity, told.facts["slot"], told.facts["sum"], told.facts["lane"]) == ("warning", 0, top + 1, [0, 0])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_single_addition_rounds_to_nearest_even(dtype: str) -> None:
    # 1 + u + u: each half step is a tie and falls back to 1; summed first it would not.
    unit = 2.0 ** -element_type(dtype).precision
    buffer, rep = elem([unit, unit, 0], [5, 5, 0], before=1, dtype=dtype, atomic="add", target="a2a3")
    assert float(buffer[5]) == 1
    assert rep.deterministic


def test_the_plain_bit_trick_rounds_bfloat16_sums_like_nearest_even() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2**16, (2, 400_000), dtype=np.uint16)
    with np.errstate(all="ignore"):
        wide = (a.astype(np.uint32) << 16).view(np.float32) + (b.astype(np.uint32) << 16).view(np.float32)
        bits = wide.view(np.uint32).astype(np.uint64)
        trick = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
        ours = (a.view(ml_dtypes.bfloat16) + b.view(ml_dtypes.bfloat16)).view(np.uint16)
    nan = np.isnan(wide)
    assert np.array_equal(trick[~nan], ours[~nan])
    assert np.isnan(trick[nan].view(ml_dtypes.bfloat16).astype(np.float32)).all()


@pytest.mark.parametrize("where", ["source", "table"])
@pytest.mark.parametrize("atomic", ["max", "min"])
def test_a_nan_under_max_or_min_keeps_the_table_and_is_reported(atomic: str, where: str) -> None:
    nan = float("nan")
    source, before = (nan, 2.0) if where == "source" else (5.0, nan)
    buffer, rep = elem([source, 1], [5, 0], before=before, atomic=atomic, target="a5")
    assert np.array_equal(buffer[5], np.float32(before), equal_nan=True)
    told = only(rep.findings, "PTO-N003")
    assert (told.severity, told.facts["nan_in"]) == ("warning", where)


def test_zeros_of_both_signs_under_max_depend_on_the_order() -> None:
    buffer, rep = elem([0.0, -0.0, 1], [5, 5, 0], before=-1, atomic="max", target="a5")
    assert not rep.deterministic
    assert only(rep.findings, "PTO-C003").facts["slot"] == 5
    assert [str(v) for v in rep.outcomes.values(5)] == ["-0.0", "0.0"] or len(rep.outcomes.values(5)) == 2
    for zero in (0.0, -0.0):
        dump = buffer.copy()
        dump[5] = zero
        assert rep.outcomes.contains(dump)


def test_zeros_in_one_thread_come_in_its_order() -> None:
    rows = 33
    tab, _ = table((rows, 8))
    tab.memory[:] = -1
    src = row_source(rows)
    values = np.zeros((rows, 8), np.float32)
    values[32] = -0.0
    src.store(values)
    slots = list(range(rows))
    slots[32] = 0
    rep = pto.mscatter(tab, src, row_index(*slots), atomic="max", target="a5")
    assert rep.deterministic
    assert rep.outcomes.verdict(0) == "defined"
    assert not np.signbit(rep.outcomes.values(0)[0])


# Float Add on a5: sets and bounds


def every_order(before: float, values: list[float], dtype: str) -> set[int]:
    """The bits of every order, one scalar addition after the other."""
    kind = element_type(dtype).numpy.type
    found = set()
    for order in permutations(values):
        total = kind(before)
        for value in order:
            total = kind(total + kind(value))
        found.add(int(np.array(total).view(element_type(dtype).bits)))
    return found


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("count", [2, 3, 6])
def test_the_exact_set_of_sums_up_to_six_writers(dtype: str, count: int) -> None:
    rng = np.random.default_rng(count)
    values = [float(v) for v in (rng.standard_normal(count) * 10.0 ** rng.integers(-2, 3, count))]
    stored = [float(np.array(v, element_type(dtype).numpy)) for v in values]
    buffer, rep = elem([*values, 1], [5] * count + [0], before=1, dtype=dtype, atomic="add", target="a5")
    expected = every_order(1, stored, dtype)
    assert rep.outcomes.exact
    assert {int(np.array(v).view(element_type(dtype).bits)) for v in rep.outcomes.values(5)} == expected
    assert rep.deterministic is (len(expected) == 1)
    assert ids(rep.findings, "warning") == (set() if len(expected) == 1 else {"PTO-C003"})
    assert int(buffer.view(element_type(dtype).bits)[5]) in expected


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_beyond_six_writers_there_are_bounds_that_hold_every_order(dtype: str) -> None:
    rng = np.random.default_rng(1)
    values = [float(v) for v in rng.standard_normal(40)]
    buffer, rep = elem([*values, 1], [5] * 40 + [0], before=1, dtype=dtype, atomic="add", target="a5")
    assert not rep.outcomes.exact
    low, high = rep.outcomes.bounds(5)
    facts = only(rep.findings, "PTO-C003").facts
    assert facts["exact"] is False
    assert facts["bounds"] == [float(low), float(high)]
    assert float(high) - float(low) < 2.0 ** (8 - element_type(dtype).precision) * 60
    with pytest.raises(pto.PtoValueError, match="bounds"):
        rep.outcomes.values(5)
    for seed in range(30):
        shuffled = rng.permutation(values)
        again, _ = elem([*shuffled, 1], [5] * 40 + [0], before=1, dtype=dtype, atomic="add", target="a2a3")
        assert low <= again[5] <= high
        dump = buffer.copy()
        dump[5] = again[5]
        assert rep.outcomes.contains(dump), seed
    dump = buffer.copy()
    dump[5] = float(high) * 2 + 1
    assert not rep.outcomes.contains(dump)


def test_sums_that_are_exact_in_every_order_are_defined() -> None:
    _, rep = elem([*range(1, 31), 1], [5] * 30 + [0], dtype="float32", atomic="add", target="a5")
    assert rep.deterministic
    assert rep.outcomes.verdict(5) == "defined"
    assert rep.outcomes.values(5) == [465]


@pytest.mark.parametrize(
    ("values", "legal"),
    [
        ([np.inf, 1, 2, 3, 4, 5, 6], "inf"),
        ([np.inf, -np.inf, 1, 2, 3, 4, 5], "nan"),
        ([np.nan, 1, 2, 3, 4, 5, 6], "nan"),
    ],
)
def test_one_infinity_or_a_nan_swallows_the_rest(values: list[float], legal: str) -> None:
    buffer, rep = elem([*values, 1], [5] * 7 + [0], atomic="add", target="a5")
    assert rep.deterministic
    assert [str(v) for v in rep.outcomes.values(5)] == [legal]
    assert rep.outcomes.contains(buffer)


def test_bounds_of_sums_that_may_overflow_admit_infinity_and_nan() -> None:
    big = 60000.0
    values = [big, big, -big, -big, big, -big, 1.0, 2.0]
    buffer, rep = elem([*values, 1], [5] * 8 + [0], dtype="float16", atomic="add", target="a5")
    low, high = rep.outcomes.bounds(5)
    assert (float(low), float(high)) == (-np.inf, np.inf)
    dump = buffer.copy()
    dump[5] = np.nan
    assert rep.outcomes.contains(dump)


def test_orders_keep_each_thread() -> None:
    assert len(list(sums.orders((0, 1, 2)))) == 6
    assert list(sums.orders((0, 0, 0))) == [(0, 1, 2)]


def test_a_thread_that_adds_twice_keeps_its_own_order() -> None:
    rows = 34
    tab, _ = table((rows, 8), "float16")
    src = pto.Tile("float16", rows, 16, valid=(rows, 8))
    values = np.ones((rows, 8))
    values[0], values[32], values[1] = 2048, 1, 1
    src.store(values)
    slots = list(range(rows))
    slots[32] = slots[1] = 0
    rep = pto.mscatter(tab, src, row_index(*slots), atomic="add", target="a5")
    # Row 32 is of warp 0 and comes after row 0: 2048 (+1 is lost, twice); row 1 first: 1 + 2048 -> 2048, 1 lost.
    legal = set()
    for order in ((2048, 1, 1), (1, 2048, 1)):
        total = np.float16(0)
        for value in order:
            total = np.float16(total + np.float16(value))
        legal.add(float(total))
    assert {float(v) for v in rep.outcomes.values(0)} == legal


def test_a2a3_adds_in_walk_order() -> None:
    buffer, rep = elem([2048, 1, 1, 5], [5, 5, 5, 0], dtype="float16", atomic="add", target="a2a3")
    assert buffer[5] == 2048
    assert rep.deterministic
    assert "order of its walk" in rep.deterministic_reason


def test_hundreds_of_writers_of_one_slot_are_added_in_order() -> None:
    rng = np.random.default_rng(3)
    values = rng.standard_normal(300).astype(np.float16)
    buffer, _ = elem([float(v) for v in values], [5] * 300, dtype="float16", atomic="add", target="a2a3")
    total = np.float16(0)
    for value in values:
        total = np.float16(total + value)
    assert buffer[5] == total


@pytest.mark.parametrize(
    ("atomic", "dtype"), [("max", "float32"), ("min", "float32"), ("max", "int32"), ("add", "int32")]
)
def test_hundreds_of_writers_under_every_atomic(atomic: str, dtype: str) -> None:
    rng = np.random.default_rng(4)
    values = [float(v) for v in rng.integers(-1000, 1000, 300)]
    values[17] = values[17] if dtype == "int32" else float("nan")
    buffer, _ = elem(values, [5] * 300, before=3, dtype=dtype, atomic=atomic, target="a5")
    finite = [3.0, *(v for v in values if v == v)]
    assert buffer[5] == {"max": max, "min": min, "add": sum}[atomic](finite)


@pytest.mark.parametrize("schedule", ["program", "random"])
def test_rows_that_overlap_partly_are_decided_element_by_element(schedule: str) -> None:
    tab, buffer = table((4, 8))
    rep = pto.mscatter(tab, row_source(2, width=12), row_index(1, 0), target="a2a3", schedule=schedule)
    # Row 0 comes last: its 12 columns run over the first 4 of row 1.
    assert buffer.tolist() == [101] * 12 + [100] * 8 + [0] * 12
    assert rep.outcomes.slots == [0, 1]
    assert rep.outcomes.verdict(0) == "defined"
    assert rep.outcomes.values(1, 0) == [101]


def test_a_narrow_sum_that_stays_in_range_is_not_reported() -> None:
    tab, _ = table((2, 32), "int8")
    rep = pto.mscatter(tab, row_source(2, 32, "int8", first=60), row_index(0, 0), atomic="add", target="a2a3")
    assert "PTO-N002" not in ids(rep.findings)


def test_only_the_columns_with_zeros_of_both_signs_depend_on_the_order() -> None:
    tab, _ = table((4, 8))
    tab.memory[:] = -1
    src = row_source(2)
    src.store(np.array([[0.0, 5.0] * 4, [-0.0, 7.0] * 4]))
    rep = pto.mscatter(tab, src, row_index(1, 1), atomic="max", target="a5")
    assert len(rep.outcomes.values(1, 0)) == 2
    assert rep.outcomes.values(1, 1) == [7]


# Judging a dump


def test_a_dump_with_the_wrong_winner_is_not_legal() -> None:
    buffer, rep = elem([1, 2, 3], [5, 5, 0], conflict="last", target="a5")
    assert rep.outcomes.contains(buffer)
    wrong = buffer.copy()
    wrong[5] = 1
    assert not rep.outcomes.contains(wrong)


def test_contains_refuses_what_it_cannot_judge() -> None:
    buffer, rep = elem([1, 2, 3], [5, 5, 0], conflict="default", target="a5")
    with pytest.raises(pto.PtoTypeError, match="float64"):
        rep.outcomes.contains(buffer.astype(np.float64))
    with pytest.raises(pto.PtoValueError, match="whole buffer"):
        rep.outcomes.contains(buffer[:-1])
    with pytest.raises(pto.PtoTypeError, match="list"):
        rep.outcomes.contains(buffer.tolist())
    assert rep.outcomes.contains(pto.GlobalTensor(buffer, "float32", (1, 1, 1, 1, 8)))
    changed = buffer.copy()
    changed[6] = 1
    assert not rep.outcomes.contains(changed)
    with pytest.raises(pto.PtoIndexError):
        rep.outcomes.values(99)
    with pytest.raises(pto.PtoIndexError, match="column"):
        rep.outcomes.values(5, 1)


def test_outcomes_of_a_row_by_column() -> None:
    tab, _ = table((4, 40))
    src = row_source(2, width=40)
    rep = pto.mscatter(tab, src, row_index(1, 1), conflict="default", target="a5")
    assert rep.outcomes.values(1, 39) == [100, 101]
    assert rep.outcomes.bounds(1, 39) == (100, 101)
    with pytest.raises(pto.PtoIndexError, match="column 40"):
        rep.outcomes.values(1, 40)


def test_a_gather_has_one_outcome() -> None:
    tab, _ = table((4, 8))
    rep = pto.mgather(pto.Tile("float32", 2, 8), tab, row_index(1, 1), target="a5")
    assert rep.deterministic
    assert list(rep.outcomes.slots) == []
    assert rep.outcomes.exact
    assert rep.outcomes.verdict(1) == "single"
    assert rep.outcomes.contains(rep.result)
    assert rep.outcomes.why_not(rep.result) is None
    assert not rep.outcomes.contains(rep.result + 1)
    assert rep.outcomes.why_not(rep.result + 1) is not None
    for ask in (rep.outcomes.values, rep.outcomes.bounds):
        with pytest.raises(pto.PtoValueError, match="mgather writes no slot"):
            ask(1)
    with pytest.raises(pto.PtoValueError, match="shape"):
        rep.outcomes.contains(rep.result[:1])


def test_deterministic_reasons() -> None:
    assert elem([1, 2], [5, 0], target="a5")[1].deterministic_reason == "no two lanes write the same element"
    assert "last writer" in elem([1, 2], [5, 5], target="a5")[1].deterministic_reason
    assert "equal bits" in elem([1, 1], [5, 5], target="a5")[1].deterministic_reason
    sums_alike = elem([1, 2, 0], [5, 5, 0], atomic="add", target="a5")[1]
    assert "every order" in sums_alike.deterministic_reason
    assert "every order" in elem([1, 2, 0], [5, 5, 0], dtype="int32", atomic="add", target="a5")[1].deterministic_reason
    sensitive = elem([1, 1e8, -1e8, 0], [5, 5, 5, 0], atomic="add", target="a5")[1]
    assert "depends on their order" in sensitive.deterministic_reason


# The launch geometry (3.2)


@pytest.mark.parametrize(
    ("rows", "cols", "row_warps", "warps_per_row"),
    [
        (1, 8, 1, 1),
        (1, 40, 1, 2),
        (3, 72, 3, 3),
        (1, 64, 1, 2),
        (1, 2048, 1, 32),
        (4, 512, 4, 8),
        (16, 64, 16, 2),
        (16, 128, 16, 2),
        (40, 64, 32, 1),
    ],
)
def test_row_warps(rows: int, cols: int, row_warps: int, warps_per_row: int) -> None:
    src, idx = pto.Tile("float32", rows, cols), pto.Tile("int32", 1, 40, valid=(1, rows))
    rep = pto.mscatter(table((rows, cols))[0], src, idx, conflict="default", target="a5")
    assert rep.plan.threads is not None
    assert (rep.plan.threads.row_threads, rep.plan.threads.column_threads) == (row_warps, 32 * warps_per_row)


@pytest.mark.parametrize(("count", "threads"), [(8, 32), (32, 32), (40, 64), (1024, 1024), (1032, 1024)])
def test_elem_threads(count: int, threads: int) -> None:
    src, idx = pto.Tile("float32", 1, count), pto.Tile("int32", 1, count)
    rep = pto.mscatter(table((count,))[0], src, idx, coalesce="elem", atomic="add", target="a5")
    assert rep.plan.threads is not None
    assert rep.plan.threads.row_threads == threads


def test_last_has_a_thread_per_slot_and_no_order_among_writers() -> None:
    assert elem([1, 2], [5, 5], conflict="last", target="a5")[1].plan.threads is None


def test_a_gather_has_no_threads_to_order() -> None:
    rep = pto.mgather(row_source(2), table((4, 8))[0], row_index(1, 2), target="a5")
    assert rep.plan.threads is None
