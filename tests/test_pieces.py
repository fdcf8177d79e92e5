"""Runs that are taken apart (across the edge of the buffer, or overlapping), and slots that a policy made."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptokit as pto
from calls import elem_source, ids, only, row_index, table
from test_index_to_slot import sparse

WIDE = 24


def two_writers(last: int, width: int = WIDE, extra: int = 0, *, atomic: str = "none") -> pto.Report:
    """Rows 0 and 1 write slot 1, and bring different bits in column 9 only; row 2 goes to `last`."""
    tab, buffer = table((4, width), extra=extra)
    src = pto.Tile("float32", 3, 32, valid=(3, width))
    values = np.zeros((3, width))
    values[0, 9], values[1, 9] = 3e7, 1.0
    src.store(values)
    buffer[width + 9] = 0.25
    return pto.mscatter(tab, src, row_index(1, 1, last), conflict="default", atomic=atomic, target="a5")


@pytest.mark.parametrize("last", [3, -1, 4])
@pytest.mark.parametrize("extra", [0, 10], ids=["ends with the table", "ends within a run"])
def test_a_slot_is_judged_by_its_worst_column_however_runs_are_taken_apart(last: int, extra: int) -> None:
    rep = two_writers(last, extra=extra)
    assert rep.outcomes.values(1, 9) == [1.0, 3e7]
    assert rep.outcomes.slots == [1]
    assert rep.outcomes.verdict(1) == "undefined"
    assert not rep.deterministic
    assert only(rep.findings, "PTO-C004").facts["column"] == 9


@pytest.mark.parametrize("last", [3, -1, 4])
def test_a_sum_is_judged_by_its_worst_column_however_runs_are_taken_apart(last: int) -> None:
    rep = two_writers(last, extra=10, atomic="add")
    assert len(rep.outcomes.values(1, 9)) == 2
    assert rep.outcomes.verdict(1) == "order-sensitive"
    assert not rep.deterministic


def test_a_run_across_the_end_of_the_buffer_moves_what_lies_inside() -> None:
    tab, buffer = table((4, WIDE), extra=10)
    src = pto.Tile("float32", 2, 32, valid=(2, WIDE))
    src.store(np.arange(2.0 * WIDE).reshape(2, WIDE) + 1)
    rep = pto.mscatter(tab, src, row_index(2, 4), target="a2a3")
    assert np.array_equal(buffer[2 * WIDE : 3 * WIDE], src.load()[0])
    assert np.array_equal(buffer[4 * WIDE :], src.load()[1, :10])
    assert not buffer[: 2 * WIDE].any()
    assert "PTO-I002" in ids(rep.findings, "error")


@pytest.mark.parametrize("width", [8, 12, 40], ids=lambda w: f"stride {w}")
def test_rows_that_overlap_end_as_the_walk_leaves_them(width: int) -> None:
    """Bursts of 48 on rows of 8, 12 and 40: element by element, the later row wins."""
    stride = (0, 0, 0, width, 1)
    tab, buffer = table((6, width), stride=stride, extra=100)
    src = pto.Tile("float32", 5, 48)
    src.store(np.arange(5.0 * 48).reshape(5, 48) + 1)
    expected = buffer.copy()
    for row, slot in enumerate([3, 0, 2, 5, 0]):
        expected[slot * width : slot * width + 48] = src.load()[row]
    rep = pto.mscatter(tab, src, row_index(3, 0, 2, 5, 0), target="a2a3")
    assert np.array_equal(buffer, expected)
    assert rep.deterministic
    assert rep.outcomes.contains(expected)


@pytest.mark.parametrize(("index", "oob"), [(3, "clamp"), (-1, "clamp"), (7, "wrap")])
def test_a_burst_past_the_table_is_an_error_however_its_slot_came_about(index: int, oob: str) -> None:
    tab, buffer = table((4, 4), extra=84)
    src = pto.Tile("float32", 1, 8)
    src.store(np.arange(8.0)[None] + 1)
    rep = pto.mscatter(tab, src, row_index(index), oob=oob, target="a2a3")
    assert np.array_equal(buffer[12:20], src.load()[0])
    assert only(rep.findings, "PTO-I009").severity == "error"


@pytest.mark.parametrize("index", [2**26 + 1, -1])
def test_a_clamped_index_past_two_to_the_32_elements_is_an_error_on_a5(tmp_path: Path, index: int) -> None:
    tab = pto.GlobalTensor(sparse(tmp_path, 2**32 + 128), "int8", (1, 1, 1, 2**26 + 2, 64))
    src = pto.Tile("int8", 1, 64)
    src.store(np.ones((1, 64)))
    rep = pto.mscatter(tab, src, row_index(index), oob="clamp", target="a5")
    assert tab.memory[64] == 1
    assert only(rep.findings, "PTO-I006").facts["slot"] == 2**26 + 1


def test_an_unchecked_index_that_starts_at_the_front_again_says_why() -> None:
    tab, _ = table((4, 64))
    src = pto.Tile("float32", 1, 64)
    rep = pto.mscatter(tab, src, row_index(2**26), conflict="default", target="a5")
    told = only(rep.findings, "PTO-I001")
    assert "a row address has 32 bits, and 4294967296 starts at the front again" in told.message
    assert told.facts["address"] == 0


@pytest.mark.parametrize("target", ["cpu", "a2a3", "a5"])
def test_a_packed_table_past_two_to_the_32_elements_in_two_batches(tmp_path: Path, target: str) -> None:
    tab = pto.GlobalTensor(sparse(tmp_path, 2**33), "int8", (2, 1, 1, 2**26, 64))
    src = elem_source(1, 2, dtype="int8")
    told = pto.check("mscatter", tab, src, row_index(0, 1), coalesce="elem", targets=target)
    assert ("PTO-I005" in ids(told, "error")) == (target != "cpu")
    assert "PTO-I007" not in ids(told)


@pytest.mark.parametrize(
    ("there", "comes", "sum_"),
    [(0x7F81, 0x3F80, 0x7FC1), (0xFFA5, 0x3F80, 0xFFE5), (0x7FFF, 0x3F80, 0x7FFF), (0x3F80, 0x3C00, 0x3F81)],
)
@pytest.mark.parametrize("writers", [1, 100])
def test_a2a3_elem_rounds_bfloat16_by_the_bit_trick(there: int, comes: int, sum_: int, writers: int) -> None:
    """`0x3F80 + 0x3C00` is 1 + 1/128: a tie that goes nowhere, one unit in the last place up."""
    tab, buffer = table((1, 16), "bfloat16")
    bits = buffer.view(np.uint16)
    bits[0] = there
    src = pto.Tile("bfloat16", 1, 128, valid=(1, writers))
    src.data.view(np.uint16)[:writers] = [comes, *[0x8000] * (writers - 1)]
    idx = row_index(*[0] * writers)
    pto.mscatter(tab, src, idx, coalesce="elem", atomic="add", target="a2a3")
    assert bits[0] == sum_


def test_a_misspelt_keyword_is_an_error_of_the_package() -> None:
    tab, buffer = table((4, 8))
    src = pto.Tile("float32", 1, 8)
    with pytest.raises(pto.PtoTypeError, match=r"no keyword 'oobb'\. Did you mean 'oob'"):
        pto.mscatter(tab, src, row_index(0), oobb="skip")  # type: ignore[call-arg]
    with pytest.raises(pto.PtoTypeError, match="once each; idx is missing; 2 were given by place"):
        pto.mscatter(tab, src)  # type: ignore[call-arg]
    with pytest.raises(pto.PtoTypeError, match="once each"):
        pto.mgather(src, tab, row_index(0), idx=row_index(0))  # type: ignore[misc]
    assert not buffer.any()


def test_compare_and_check_take_every_keyword_of_the_instruction() -> None:
    tab, _ = table((4, 8))
    src = pto.Tile("float32", 2, 8)
    src.store([[1.0] * 8, [2.0] * 8])
    call = ("mscatter", tab, src, row_index(1, 1))
    how = {"conflict": "default", "schedule": "random", "seed": 3}
    compared = pto.compare(*call, **how, targets=("a5",))
    again = pto.mscatter(tab.copy(), src, row_index(1, 1), **how, target="a5")
    assert np.array_equal(np.asarray(compared.results["a5"]), np.asarray(again))
    assert ids(pto.check(*call, **how, targets="a5")) == {"PTO-C004"}
    with pytest.raises(pto.PtoValueError, match="schedule"):
        pto.check(*call, schedule="late")
    with pytest.raises(pto.PtoValueError, match="seed"):
        pto.compare(*call, seed=-1)
