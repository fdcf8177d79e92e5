"""SEMANTICS 1 and 2.2: layouts, and from a slot to an address."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptokit as pto
from calls import elem_source, ids, only, row_index, row_source, table
from test_index_to_slot import sparse

TILE_MAPS = {
    "nd": lambda r, c: r * 24 + c,
    "dn": lambda r, c: c * 32 + r,
    "nz": lambda r, c: (c // 8) * 256 + r * 8 + c % 8,
}


@pytest.mark.parametrize(("layout", "offset"), TILE_MAPS.items())
def test_tile_offsets(layout: str, offset: object) -> None:
    tile = pto.Tile("float32", 32, 24, valid=(30, 21), layout=layout)
    values = np.arange(30 * 21, dtype=np.float32).reshape(30, 21)
    tile.store(values)
    assert callable(offset)
    for r, c in ((0, 0), (1, 0), (0, 1), (29, 20), (17, 8), (3, 15)):
        assert tile.data[offset(r, c)] == values[r, c]
    assert np.array_equal(tile.load(), values)
    assert np.count_nonzero(tile.data) == 30 * 21 - 1


def rows_hit(tab: pto.GlobalTensor, src: pto.Tile, idx: pto.Tile, target: str, **more: str) -> pto.Report:
    return pto.mscatter(tab, src, idx, target=target, **more)


def test_a2a3_row_honours_stride3_and_leaves_the_gap_alone() -> None:
    tab, buffer = table((4, 8), stride=(48, 48, 48, 12, 1))
    rep = rows_hit(tab, row_source(2), row_index(1, 3), "a2a3")
    assert np.flatnonzero(buffer).tolist() == [*range(12, 20), *range(36, 44)]
    assert not rep.findings


def test_a2a3_row_uses_stride3_even_across_batches() -> None:
    tab, buffer = table((2, 1, 1, 4, 8), stride=(48, 48, 48, 8, 1))
    rep = rows_hit(tab, row_source(1), row_index(5), "a2a3")
    assert np.flatnonzero(buffer).tolist() == list(range(40, 48))
    told = only(rep.findings, "PTO-I007")
    assert (told.severity, told.facts["slot"], told.facts["offset"], told.facts["hit"]) == ("warning", 4, 48, 32)


@pytest.mark.parametrize("target", ["cpu", "a2a3", "a5"])
def test_elem_is_linear_and_padded_strides_are_not_honoured(target: str) -> None:
    tab, buffer = table((4, 6), "int32", stride=(32, 32, 32, 8, 1))
    rep = pto.mscatter(tab, elem_source(1, 2), row_index(7, 8, cols=32), coalesce="elem", target=target)
    assert np.flatnonzero(buffer).tolist() == [7, 8]
    told = only(rep.findings, "PTO-I007")
    assert (told.severity, told.facts["slot"], told.facts["offset"], told.facts["hit"]) == ("warning", 6, 8, 6)


def test_a_valid_width_that_runs_into_the_next_row() -> None:
    tab, buffer = table((4, 8))
    rep = rows_hit(tab, row_source(1, width=12), row_index(1), "a2a3")
    assert np.flatnonzero(buffer).tolist() == list(range(8, 20))
    assert only(rep.findings, "PTO-I008").facts["address"] == 8
    assert ids(rep.findings, "error") == set()


def test_a_run_past_the_end_of_the_table_inside_the_buffer_is_performed_and_an_error() -> None:
    tab, buffer = table((4, 8), extra=8)
    rep = rows_hit(tab, row_source(1, width=12), row_index(3), "a2a3")
    assert np.flatnonzero(buffer).tolist() == list(range(24, 36))
    assert ids(rep.findings, "error") == {"PTO-I009"}


def test_what_lies_outside_the_buffer_is_not_moved_and_the_rest_of_the_run_is() -> None:
    tab, buffer = table((4, 8))
    rep = rows_hit(tab, row_source(1, width=12), row_index(3), "a2a3")
    assert np.flatnonzero(buffer).tolist() == list(range(24, 32))
    assert ids(rep.findings, "error") == {"PTO-I002"}
    assert only(rep.findings, "PTO-I002").facts["address"] == 32


def test_a5_row_address_wraps_at_two_to_the_32_elements(tmp_path: Path) -> None:
    memory = sparse(tmp_path, 2**32 + 64)
    tab = pto.GlobalTensor(memory, "int8", (1, 1, 1, 2**26 + 1, 64))
    src, idx = row_source(1, width=64, dtype="int8"), row_index(2**26)
    rep = pto.mscatter(tab, src, idx, target="a5")
    assert memory[0] == 100  # row 0
    assert memory[2**32] == 0
    told = only(rep.findings, "PTO-I006")
    assert (told.severity, told.facts["address"], told.facts["meant"]) == ("error", 0, 2**32)
    again = pto.mscatter(tab, src, idx, target="a2a3")
    assert memory[2**32] == 100
    assert "PTO-I006" not in ids(again.findings)


def test_a_burst_does_not_honour_stride4() -> None:
    tab, buffer = table((4, 8), stride=(64, 64, 64, 16, 2))
    rep = rows_hit(tab, row_source(1), row_index(1), "a2a3")
    assert np.flatnonzero(buffer).tolist() == list(range(16, 24))
    facts = only(rep.findings, "PTO-I007").facts
    assert (facts["column"], facts["offset"], facts["hit"]) == (1, 2, 1)


def nz_table(shape: tuple[int, ...], stride: tuple[int, ...] | None = None) -> tuple[pto.GlobalTensor, np.ndarray]:  # type: ignore[type-arg]
    return table(shape, stride=stride, layout="nz")


def nz_place(tab: pto.GlobalTensor, row: int, col: int) -> int:
    """SEMANTICS 1, GM NZ, written out once more."""
    st = tab.stride
    blk = col // 8
    return (
        (blk // tab.shape[1]) * st[0]
        + (blk % tab.shape[1]) * st[1]
        + (row // 16) * st[2]
        + (row % 16) * st[3]
        + (col % 8) * st[4]
    )


@pytest.mark.parametrize("stride", [None, (1600, 800, 192, 8, 1)])
def test_a2a3_nz_row_with_two_outer_batches_packed_and_padded(stride: tuple[int, ...] | None) -> None:
    tab, buffer = nz_table((2, 2, 3, 16, 8), stride)
    src = pto.Tile("float32", 16, 32, valid=(2, 32), layout="nz")
    values = np.arange(1, 65, dtype=np.float32).reshape(2, 32)
    src.store(values)
    rep = pto.mscatter(tab, src, row_index(37, 3), target="a2a3")
    for r, row in enumerate((37, 3)):
        assert [buffer[nz_place(tab, row, c)] for c in range(32)] == values[r].tolist()
    assert np.count_nonzero(buffer) == 64
    assert not rep.findings


def test_nz_row_writes_the_padding_columns_too() -> None:
    tab, buffer = nz_table((1, 2, 1, 16, 8))
    src = pto.Tile("float32", 16, 16, valid=(1, 10), layout="nz")
    src.data[:] = 7
    rep = pto.mscatter(tab, src, row_index(4), target="a2a3")
    assert np.count_nonzero(buffer == 7) == 16
    assert only(rep.findings, "PTO-I010").severity == "warning"


def test_nz_row_does_not_move_columns_that_the_table_has_not() -> None:
    tab, buffer = nz_table((1, 1, 1, 16, 8))
    src = pto.Tile("float32", 16, 16, valid=(1, 16), layout="nz")
    src.data[:] = 7
    rep = pto.mscatter(tab, src, row_index(4), target="a2a3")
    assert np.count_nonzero(buffer) == 8
    assert "columns 8 to 15" in only(rep.findings, "PTO-I010").message


def test_an_nz_gather_overwrites_the_padding_of_its_tile() -> None:
    tab, _ = nz_table((1, 2, 1, 16, 8))
    dst = pto.Tile("float32", 16, 16, valid=(1, 10), layout="nz")
    dst.data[:] = 7
    rep = pto.mgather(dst, tab, row_index(4), target="a2a3")
    assert np.count_nonzero(dst.data == 0) == 16
    assert "overwritten" in only(rep.findings, "PTO-I010").message


def test_nz_row_ignores_stride4() -> None:
    tab, buffer = nz_table((1, 1, 1, 16, 8), (256, 256, 256, 16, 2))
    src = pto.Tile("float32", 16, 8, valid=(1, 8), layout="nz")
    src.data[:] = 7
    rep = pto.mscatter(tab, src, row_index(4), target="a2a3")
    assert np.flatnonzero(buffer).tolist() == list(range(64, 72))
    assert only(rep.findings, "PTO-I007").facts["offset"] == 2


def test_nz_elem_splits_the_index_and_honours_every_stride() -> None:
    tab, buffer = nz_table((2, 2, 3, 16, 8), (3200, 1600, 400, 16, 2))
    src = pto.Tile("float32", 16, 8, valid=(1, 3), layout="nz")
    src.store([[1, 2, 3]])
    words = [37 * 32 + 21, 0, 3 * 32 + 31]
    rep = pto.mscatter(tab, src, row_index(*words), coalesce="elem", target="a2a3")
    assert [buffer[nz_place(tab, *divmod(w, 32))] for w in words] == [1, 2, 3]
    assert np.count_nonzero(buffer) == 3
    assert not rep.findings


def test_a5_takes_dn_tiles_and_column_indices() -> None:
    tab, buffer = table((9, 8))
    src = pto.Tile("float32", 8, 8, valid=(3, 8), layout="dn")
    src.store(np.arange(24).reshape(3, 8))
    idx = pto.Tile("int32", 8, 1, valid=(3, 1), layout="dn")
    idx.store([[7], [2], [5]])
    pto.mscatter(tab, src, idx, target="a5")
    expected = np.zeros((9, 8), np.float32)
    expected[[7, 2, 5]] = np.arange(24).reshape(3, 8)
    assert np.array_equal(buffer.reshape(9, 8), expected)


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_zero_fills_rows_and_leaves_tile_padding(target: str) -> None:
    tab = pto.GlobalTensor(np.arange(32, dtype=np.float32), "float32", (1, 1, 1, 4, 8))
    dst = pto.Tile("float32", 3, 16, valid=(2, 8))
    dst.data[:] = -9
    pto.mgather(dst, tab, row_index(4, 1), oob="zero", target=target)
    assert dst.load().tolist() == [[0] * 8, list(range(8, 16))]
    assert np.count_nonzero(dst.data == -9) == 48 - 16


def test_nz_zero_fills_the_whole_tile_once() -> None:
    tab = pto.GlobalTensor(np.arange(128, dtype=np.float32), "float32", (1, 1, 1, 16, 8), layout="nz")
    dst = pto.Tile("float32", 16, 16, valid=(2, 8), layout="nz")
    dst.data[:] = -9
    pto.mgather(dst, tab, row_index(99, 1), oob="zero", target="a2a3")
    assert np.count_nonzero(dst.data) == 8
    assert dst.load().tolist() == [[0] * 8, list(range(8, 16))]


def test_a5_rows_are_as_wide_as_the_tile_whatever_the_stride_says() -> None:
    # One row is packed at any stride; a slot behind it is still slot * ValidCol.
    tab, buffer = table((1, 8), stride=(64, 64, 64, 64, 1), extra=200)
    pto.mscatter(tab, row_source(1, 8), row_index(2), conflict="default", target="a5")
    assert np.flatnonzero(buffer).tolist() == list(range(16, 24))
