"""Corners: sums with many writers, outcomes after the table has changed, odd strides and buffers, odd arguments."""

from __future__ import annotations

import array
import pickle
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ptokit as pto
from calls import elem_source, ids, only, row_index, row_source, table
from ptokit.access import outcomes
from test_index_to_slot import sparse
from test_order_and_conflicts import elem, every_order

# Sums of many writers, element by element


@pytest.mark.parametrize("values", [[0.1] * 8, [0.1, 0.1, 0.0, -0.0, 0.0, 0.1, 0.0], [-0.0] * 9])
def test_equal_addends_and_zeros_give_one_sum_however_many_they_are(values: list[float]) -> None:
    buffer, rep = elem([*values, 1], [5] * len(values) + [0], atomic="add", target="a5")
    assert rep.deterministic
    assert rep.outcomes.exact
    off = buffer.copy()
    off[5] = np.nextafter(off[5], np.float32(9))
    assert not rep.outcomes.contains(off)


def test_zeros_do_not_count_as_addends() -> None:
    values = [0.0, -0.0, -3e4, 0.3, -0.0, 3.0, 0.0, 0.0]
    buffer, rep = elem([*values, 1], [5] * 8 + [0], before=0.7, dtype="float16", atomic="add", target="a5")
    expected = every_order(0.7, [-3e4, 0.3, 3.0], "float16")
    assert rep.outcomes.exact
    assert {int(np.array(v).view(np.uint16)) for v in rep.outcomes.values(5)} == expected
    assert rep.outcomes.verdict(5) == ("order-sensitive" if len(expected) > 1 else "defined")
    for bits in expected:
        dump = buffer.copy()
        dump.view(np.uint16)[5] = bits
        assert rep.outcomes.contains(dump)


def columns_apart() -> tuple[np.ndarray[Any, Any], pto.Report]:
    """Eight duplicates: column 0 random, column 1 exact, column 2 with one infinity, column 3 sparse."""
    rng = np.random.default_rng(2)
    values = np.zeros((8, 8), np.float32)
    values[:, 0] = rng.standard_normal(8)
    values[:, 1] = np.arange(8)
    values[:, 2] = 1
    values[3, 2] = np.inf
    values[2:5, 3] = [1e8, 1, -1e8]
    src = pto.Tile("float32", 8, 8)
    src.store(values)
    tab, buffer = table((1, 8))
    return buffer, pto.mscatter(tab, src, row_index(*[0] * 8), atomic="add", target="a5")


def test_every_column_of_a_row_is_judged_by_itself() -> None:
    buffer, rep = columns_apart()
    assert not rep.outcomes.exact
    assert [float(v) for v in rep.outcomes.values(0, 1)] == [28]
    assert [float(v) for v in rep.outcomes.values(0, 2)] == [np.inf]
    assert sorted(float(v) for v in rep.outcomes.values(0, 3)) == [0, 1]
    with pytest.raises(pto.PtoValueError, match="column 0 has too many"):
        rep.outcomes.values(0, 0)
    judged = [(0, float(buffer[0]), True), (1, 29.0, False), (2, 5.0, False), (3, 0.0, True), (3, 2.0, False)]
    for column, value, legal in judged:
        dump = buffer.copy()
        dump[column] = value
        assert rep.outcomes.contains(dump) is legal, column
    dump = buffer.copy()
    dump[2] = np.nan
    assert not rep.outcomes.contains(dump)
    assert only(rep.findings, "PTO-C003").facts["column"] == 0


def test_a_sparse_column_alone_is_found_and_told() -> None:
    values = np.zeros((8, 8), np.float32)
    values[2:5, 3] = [1e8, 1, -1e8]
    src = pto.Tile("float32", 8, 8)
    src.store(values)
    tab, _ = table((1, 8))
    rep = pto.mscatter(tab, src, row_index(*[0] * 8), atomic="add", target="a5")
    facts = only(rep.findings, "PTO-C003").facts
    assert (facts["column"], facts["exact"], facts["outcomes"]) == (3, True, [0.0, 1.0])
    assert "depends on" in rep.deterministic_reason


def test_an_infinity_among_many_stays_in_the_bounds() -> None:
    rng = np.random.default_rng(5)
    values = [float(v) for v in rng.standard_normal(9) * 8e37]
    buffer, rep = elem([*values, np.inf, 1], [5] * 10 + [0], atomic="add", target="a5")
    _, high = rep.outcomes.bounds(5)
    assert np.isinf(high)
    assert rep.outcomes.contains(buffer)


# Outcomes do not change when the table does


def test_a_report_remembers_what_it_left() -> None:
    tab, buffer = table((3, 8))
    rep = pto.mscatter(tab, row_source(1), row_index(1), target="a5")
    right = buffer.copy()
    buffer[:] = 0
    assert rep.outcomes.contains(right)
    assert not rep.outcomes.contains(buffer)
    assert rep.outcomes.values(1) == [100]
    assert rep.outcomes.values(0) == [0]


def test_of_a_huge_table_what_was_written_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "SNAPSHOT_BYTES", 16)
    tab, buffer = table((4, 8))
    rep = pto.mscatter(tab, row_source(3), row_index(1, 2, 2), conflict="default", target="a5")
    right = buffer.copy()
    assert rep.outcomes.contains(right)
    other = right.copy()
    other[16:24] = 101
    assert rep.outcomes.contains(other)
    other[0] = 5
    assert not rep.outcomes.contains(other)
    buffer[8:16] = 0
    assert rep.outcomes.contains(right)
    assert rep.outcomes.values(1) == [100]
    assert rep.outcomes.values(0) == [0]
    wrong = right.copy()
    wrong[8] = 7
    assert not rep.outcomes.contains(wrong)


def test_a_nan_of_an_addition_is_any_nan_and_a_moved_one_is_itself() -> None:
    for atomic, legal in (("add", True), ("none", False)):
        buffer, rep = elem([np.nan, 1], [5, 0], before=1, atomic=atomic, target="a5")
        dump = buffer.copy()
        dump.view(np.uint32)[5] = 0x7FC12345
        assert rep.outcomes.contains(dump) is legal


# Slots that share an address


def test_every_slot_of_a_shared_address_is_told() -> None:
    tab = pto.GlobalTensor(np.zeros(64, np.float32), "float32", (1, 1, 1, 8, 8), (0, 0, 0, 0, 1))
    rep = pto.mscatter(tab, row_source(2), row_index(3, 5), target="a2a3")
    assert rep.outcomes.slots == [3, 5]
    assert rep.outcomes.verdict(5) == rep.outcomes.verdict(3) == "defined"


def test_rows_that_overlap_name_the_column_of_their_slot() -> None:
    tab = pto.GlobalTensor(np.zeros(64, np.float32), "float32", (1, 1, 1, 8, 8), (0, 0, 0, 3, 1))
    rep = pto.mscatter(tab, row_source(2), row_index(0, 1), target="a2a3")
    facts = only(rep.findings, "PTO-C002").facts
    assert (facts["slot"], facts["column"], facts["address"]) == (0, 3, 3)


# Addresses that no memory has


def test_an_address_past_64_bits_is_nobodys() -> None:
    buffer = np.zeros(64, np.float32)
    tab = pto.GlobalTensor(buffer, "float32", (1, 1, 1, 1, 8), (1, 1, 1, 2**61, 1))
    rep = pto.mscatter(tab, row_source(2), row_index(0, 8), target="a2a3")
    assert np.flatnonzero(buffer).tolist() == list(range(8))
    assert only(rep.findings, "PTO-I002").facts["index"] == 8


@pytest.mark.parametrize("stride", [2**62, 2**70])
def test_a_stride_beyond_every_address_is_refused(stride: int) -> None:
    with pytest.raises(pto.PtoValueError, match="64-bit"):
        pto.GlobalTensor(np.zeros(8, np.float32), "float32", (1, 1, 1, 1, 8), (1, 1, 1, stride, 1))


def test_a_base_outside_the_buffer_is_refused() -> None:
    with pytest.raises(pto.PtoValueError, match="base=9"):
        pto.GlobalTensor(np.zeros(8, np.float32), "float32", (1, 1, 1, 0, 8), base=9)


# Batches and truncated counts


def test_a5_says_that_it_counts_one_batch_without_any_index() -> None:
    tab, _ = table((2, 1, 1, 4, 8))
    told = only(pto.check("mscatter", tab, row_source(1), pto.Tile("int32", 1, 8, (1, 1)), targets="a5"), "PTO-I015")
    assert (told.severity, told.facts) == ("warning", {"rows": 8, "capacity": 4})


def test_an_access_past_the_count_may_be_another_row_of_the_same_table() -> None:
    tab, _ = table((2, 1, 1, 4, 8))
    rep = pto.mscatter(tab, row_source(1), row_index(5), conflict="default", target="a5")
    assert "another place of the same table" in only(rep.findings, "PTO-I001").message
    tab, _ = table((4, 8), extra=32)
    rep = pto.mscatter(tab, row_source(1), row_index(5), conflict="default", target="a5")
    assert "not the table's" in only(rep.findings, "PTO-I001").message


@pytest.mark.parametrize(
    ("oob", "words"),
    [
        ("undefined", "drops everything from there on (Last)"),
        ("wrap", "divides by zero"),
        ("clamp", "scan of Last finds no slot"),
        ("skip", "dropped by skip"),
    ],
)
def test_sentences_about_a_count_of_zero_are_true(tmp_path: Path, oob: str, words: str) -> None:
    tab = pto.GlobalTensor(sparse(tmp_path, 2**32), "int8", (1, 1, 1, 2**26, 64))
    src, idx = elem_source(1, 1, dtype="int8"), row_index(3, -70, cols=32)
    told = pto.check("mscatter", tab, src, idx, coalesce="elem", oob=oob, targets="a5")
    assert words in " ".join(f.message for f in told)
    assert "divides by zero of it" not in " ".join(f.message for f in told)
    if oob == "wrap":
        assert "PTO-I004" not in ids(told)
        assert "not executed" in only(told, "PTO-I003").message
    if oob == "undefined":
        assert only(told, "PTO-I011").facts["capacity"] == 0


def test_a_table_of_too_many_elements_for_row_addresses_is_told_without_an_index(tmp_path: Path) -> None:
    tab = pto.GlobalTensor(sparse(tmp_path, 2**32 + 64), "int8", (1, 1, 1, 2**26 + 1, 64))
    src = row_source(1, width=64, dtype="int8")
    told = only(pto.check("mscatter", tab, src, pto.Tile("int32", 1, 8, (1, 1)), targets="a5"), "PTO-I005")
    assert told.facts["first_row"] == 2**26


def test_a_far_index_is_not_an_overflow_of_the_row_address() -> None:
    tab, _ = table((1000, 64))
    told = pto.check("mgather", pto.Tile("float32", 1, 64), tab, row_index(-1), targets="a5")
    assert ids(told) == {"PTO-I002"}


def test_an_elem_access_past_the_end_names_one_element() -> None:
    tab = pto.GlobalTensor(np.zeros(500, np.float32), "float32", (1, 1, 1, 8, 64), (0, 0, 0, 32, 1))
    rep = pto.mgather(pto.Tile("float32", 1, 8, (1, 1)), tab, row_index(400), coalesce="elem", target="a2a3")
    assert "reads element 400 of" in only(rep.findings, "PTO-I009").message


# Buffers and values


def test_typed_buffers_must_hold_the_tensors_type() -> None:
    for buffer in (array.array("d", [1.0] * 4), memoryview(np.zeros(4, np.float64)), memoryview(np.zeros(8, ">f4"))):
        with pytest.raises(pto.PtoTypeError, match="format"):
            pto.GlobalTensor(buffer, "float32", (1, 1, 1, 1, 8))
    assert pto.GlobalTensor(memoryview(np.zeros(8, np.float32)), "float32", (1, 1, 1, 1, 8)).size == 8


@pytest.mark.parametrize(
    "data", [np.arange(64, dtype=np.float32)[::2], np.arange(32, dtype=np.float32)[::-1], np.zeros(32, ">f4")]
)
def test_tile_data_must_lie_without_gaps_in_native_order(data: np.ndarray[Any, Any]) -> None:
    with pytest.raises(pto.PtoValueError, match="without gaps"):
        pto.Tile("float32", 4, 8, data=data)


@pytest.mark.parametrize("data", [[0] * 32, "a", 5])
def test_tile_data_is_an_array(data: Any) -> None:
    with pytest.raises(pto.PtoTypeError, match="ndarray"):
        pto.Tile("float32", 4, 8, data=data)


def test_tile_data_cannot_be_replaced() -> None:
    tile = pto.Tile("float32", 4, 8)
    with pytest.raises(AttributeError, match=r"tile.data\[:\] = ") as raised:
        tile.data = np.zeros(32, np.float32)
    assert isinstance(raised.value, pto.PtoError)


def test_indices_of_zero_written_through_data_count_as_data() -> None:
    tab, _ = table((4, 8))
    idx = pto.Tile("int32", 1, 8, valid=(1, 2))
    policies = {"conflict": "default", "targets": "a5"}
    assert pto.check("mscatter", tab, row_source(2), idx, **policies) == []
    idx.data[:] = 0
    assert ids(pto.check("mscatter", tab, row_source(2), idx, **policies)) == {"PTO-C004"}


@pytest.mark.parametrize(
    ("dtype", "value", "stored"),
    [
        ("bfloat16", 1 + 2**-8 + 2**-30, 1.0078125),
        ("bfloat16", 1 + 2**-8 - 2**-30, 1.0),
        ("bfloat16", -(1 + 2**-8 + 2**-30), -1.0078125),
        ("float16", 1 + 2**-11 + 2**-30, 1 + 2**-10),
        ("float8_e5m2", 1 + 2**-3 + 2**-30, 1.25),
    ],
)
def test_a_store_rounds_once(dtype: str, value: float, stored: float) -> None:
    tile = pto.Tile(dtype, 1, 32, valid=(1, 1))
    tile.store([[value]])
    assert float(tile.load()[0, 0]) == stored


def test_what_a_type_cannot_hold_is_refused() -> None:
    tile = pto.Tile("float8_e4m3", 1, 32, valid=(1, 1))
    with pytest.raises(pto.PtoValueError, match="not a value of float8_e4m3"):
        tile.store([[np.inf]])
    with pytest.raises(pto.PtoTypeError, match="masked"):
        tile.store(np.ma.masked_array([[1.0]], [[True]]))
    pto.Tile("bfloat16", 1, 16, valid=(1, 1)).store(np.array([[1]], ml_dtypes.float8_e5m2))


def test_tiles_beyond_any_chip_are_refused() -> None:
    for rows in (2**40, 2**62, 2**70):
        with pytest.raises(pto.PtoValueError, match="larger than any"):
            pto.Tile("float32", rows, 8)


def test_odd_element_types_and_shapes() -> None:
    with pytest.raises(pto.PtoTypeError):
        pto.Tile((np.int32, -1), 8, 8)
    for wrong in (np.array(3), 3, None):
        with pytest.raises(pto.PtoTypeError, match="whole numbers are wanted"):
            pto.GlobalTensor(np.zeros(8, np.int32), "int32", wrong)  # type: ignore[arg-type]


# Odd arguments


def test_targets_are_a_name_or_several() -> None:
    tab, _ = table((4, 8))
    operands = ("mscatter", tab, row_source(2), row_index(1, 2))
    for wrong in (None, 5, b"a5"):
        with pytest.raises(pto.PtoTypeError, match="targets="):
            pto.check(*operands, targets=wrong)  # type: ignore[arg-type]
    assert list(pto.compare(*operands, targets=(t for t in ["a5", "A2A3"])).results) == ["a5", "a2a3"]


def test_check_is_told_of_several_targets() -> None:
    with pytest.raises(pto.PtoTypeError, match="targets='a5'"):
        pto.check("mscatter", *[None] * 3, target="a5")


def test_why_a_dump_is_not_a_legal_result() -> None:
    buffer, rep = columns_apart()
    assert rep.outcomes.why_not(buffer) is None
    for column, legal in ((0, " to "), (1, "28"), (3, "0.0, 1.0")):
        dump = buffer.copy()
        dump[column] = 77
        told = rep.outcomes.why_not(dump)
        assert told is not None
        assert told.startswith(f"element {column} of the buffer is 77.0; legal: ")
        assert legal in told
    tab, buffer = table((4, 8))
    rep = pto.mscatter(tab, row_source(1), row_index(2), target="a5")
    dump = buffer.copy()
    dump[0] = 5
    assert rep.outcomes.why_not(dump) == "element 0 of the buffer is 5.0; legal: 0.0"


def test_a_comparison_says_whether_every_target_has_one_result() -> None:
    tab, _ = table((4, 8))
    operands = ("mscatter", tab, row_source(2), row_index(1, 1))
    assert pto.compare(*operands, targets=("a2a3", "a5")).deterministic
    loose = pto.compare(*operands, conflict="default", targets="a5")
    assert loose.equal
    assert not loose.deterministic


def test_a_report_and_an_operand_can_be_pickled_and_seen_as_arrays() -> None:
    tab, buffer = table((4, 8))
    src = row_source(2)
    rep = pto.mscatter(tab, src, row_index(1, 1), conflict="default", target="a5")
    again = pickle.loads(pickle.dumps(rep))
    assert again.outcomes.values(1) == [100, 101]
    assert np.array_equal(np.asarray(src), src.load())
    assert np.asarray(tab).shape == (1, 1, 1, 4, 8)
    assert np.asarray(tab[1:2, 2:4]).tolist() == [[[[[101.0, 101.0]]]]]
    assert len(repr(rep)) < 1500
    assert buffer[8] == 101


def test_comparing_on_a_memoryview_copies_it() -> None:
    tab = pto.GlobalTensor(memoryview(bytearray(128)), "float32", (1, 1, 1, 4, 8))
    assert pto.compare("mscatter", tab, row_source(2), row_index(1, 2), targets=("a5", "a2a3")).equal


@pytest.mark.parametrize("slot", [None, "a", [1], 1.5, True, float("nan")])
def test_slots_are_whole_numbers(slot: Any) -> None:
    _, rep = elem([1, 2], [5, 5], target="a5")
    for ask in (rep.outcomes.values, rep.outcomes.bounds, rep.outcomes.verdict):
        with pytest.raises(pto.PtoTypeError, match="slot"):
            ask(slot)
    with pytest.raises(pto.PtoTypeError, match="column"):
        rep.outcomes.values(5, "a")  # type: ignore[arg-type]


@pytest.mark.parametrize("slot", [2**32, 2**70, -(2**40)])
def test_a_slot_that_no_index_reaches(slot: int) -> None:
    tab, _ = table((4, 8))
    rep = pto.mscatter(tab, row_source(1), row_index(1), target="a5")
    with pytest.raises(pto.PtoIndexError):
        rep.outcomes.values(slot)


def test_a_dump_in_foreign_byte_order_is_refused() -> None:
    buffer, rep = elem([1, 2], [5, 5], target="a5")
    with pytest.raises(pto.PtoTypeError, match="foreign byte order"):
        rep.outcomes.contains(buffer.astype(">f4"))


def test_a_refusal_survives_pickling() -> None:
    with pytest.raises(pto.IllegalInstruction) as refused:
        pto.mscatter(table((4, 8))[0], row_source(1), row_index(1), atomic="max", target="a2a3")
    again = pickle.loads(pickle.dumps(refused.value))
    assert str(again) == str(refused.value)
    assert ids(again.findings) == ids(refused.value.findings)


def test_a_row_kernel_on_cpu_has_no_one_result() -> None:
    tab, _ = table((4, 8))
    rep = pto.mscatter(tab, row_source(2), row_index(1, 2), target="cpu")
    assert not rep.deterministic
    assert "nothing defines them" in rep.deterministic_reason


def test_a_policy_outside_the_contract_is_an_error_and_not_a_note_too() -> None:
    tab, _ = table((4, 16), "bfloat16")
    src = pto.Tile("bfloat16", 1, 16)
    told = pto.check("mscatter", tab, src, row_index(*range(16)), coalesce="elem", atomic="add", targets="cpu")
    assert ids(told, "error") == {"PTO-L024"}
    assert "PTO-N001" not in ids(told)
