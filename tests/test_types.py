"""Element types, tiles, tensors and their views."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import ptokit as pto
from calls import table
from ptokit.dtypes import ELEMENT_TYPES, element_type

ALIASES = {
    "float32": "f32 fp32 float",
    "float16": "f16 half FP16",
    "bfloat16": "bf16 bfloat16_t",
    "int8": "i8 si8 int8_t",
    "uint32": "ui32 u32 uint32_t",
    "float8_e4m3": "f8E4M3 float8_e4m3fn",
    "float8_e5m2": "f8E5M2",
    "hifloat8": "hif8",
}


@pytest.mark.parametrize(("name", "alias"), [(n, a) for n, row in ALIASES.items() for a in [n, *row.split()]])
def test_aliases_resolve_in_one_place(name: str, alias: str) -> None:
    assert element_type(alias).name == name


@pytest.mark.parametrize("dtype", [t for t in ELEMENT_TYPES.values() if t.name != "hifloat8"], ids=str)
def test_numpy_dtypes_are_recognised_by_identity(dtype: object) -> None:
    kind = element_type(dtype)
    assert element_type(kind.numpy) is kind
    assert element_type(kind.numpy.type) is kind
    assert kind.numpy.itemsize == kind.itemsize == kind.bits.itemsize


def test_hifloat8_is_stored_through_float32_and_told_from_the_type_that_shares_its_char() -> None:
    en_dtypes = pytest.importorskip("en_dtypes", reason="the extra [hif8] exists for Python 3.11 and 3.12 only")
    assert np.dtype(en_dtypes.hifloat8).char == np.dtype(ml_dtypes.float8_e4m3).char
    assert element_type(en_dtypes.hifloat8).name == "hifloat8"
    assert element_type(ml_dtypes.float8_e4m3fn).name == "float8_e4m3"
    tile = pto.Tile("hifloat8", 1, 32, valid=(1, 3))
    tile.store(np.array([[1, 2, 0.5]], ml_dtypes.bfloat16))
    assert tile.load().astype(np.float32).tolist() == [[1, 2, 0.5]]
    whole = pto.Tile("int8", 1, 32, valid=(1, 3))
    whole.store(np.array([[1, 2, 4]], en_dtypes.hifloat8))
    assert whole.load().tolist() == [[1, 2, 4]]


def test_the_other_e4m3_is_refused_by_name() -> None:
    with pytest.raises(pto.PtoTypeError, match=r"ml_dtypes\.float8_e4m3 .*float8_e4m3fn"):
        pto.GlobalTensor(np.zeros(32, ml_dtypes.float8_e4m3), "float8_e4m3", (1, 1, 1, 1, 32))


@pytest.mark.parametrize(
    ("dtype", "given"),
    [
        ("int8", np.arange(8.0).reshape(1, 8)),
        ("uint8", np.arange(8, dtype=np.int64).reshape(1, 8)),
        ("float32", np.arange(8).reshape(1, 8)),
        ("float16", (np.arange(8) / 10).reshape(1, 8)),
        ("bfloat16", np.arange(8).reshape(1, 8) > 3),
        ("int32", np.arange(8).reshape(1, 8).astype(ml_dtypes.bfloat16)),
        ("float8_e5m2", [[0, 1, 2, 3, np.inf, -np.inf, 0.5, 0.25]]),
        ("float8_e4m3", [[0, 1, 2, 3, 448, -448, 0.5, 0.25]]),
    ],
)
def test_store_takes_values_that_survive_and_rounds_floats(dtype: str, given: object) -> None:
    tile = pto.Tile(dtype, 2, 32, valid=(1, 8))
    tile.data[:] = 1
    tile.store(given)
    kind = element_type(dtype).numpy
    assert np.array_equal(tile.load().astype(np.float32), np.asarray(given).astype(kind).astype(np.float32))
    assert np.count_nonzero(tile.data.astype(np.float32) == 1) >= 56


def test_store_keeps_the_bits_of_its_own_type() -> None:
    bits = np.array([[0x7FC1, 0xFFFF, 0x0001]], np.uint16)
    tile = pto.Tile("bfloat16", 1, 16, valid=(1, 3))
    tile.store(bits.view(ml_dtypes.bfloat16))
    assert tile.load().view(np.uint16).tolist() == bits.tolist()


def test_a_tile_starts_zeroed_and_data_is_live() -> None:
    tile = pto.Tile("float32", 2, 8, valid=(1, 3))
    assert not tile.holds_data
    assert not tile.data.any()
    assert tile.holds_data
    tile.data[1] = 5
    assert tile.load().tolist() == [[0, 5, 0]]
    assert tile.holds_data


def test_a_copy_has_data_of_its_own() -> None:
    tile = pto.Tile("float32", 2, 8, valid=(-1, 3), layout="nd")
    tile.set_valid(2, 3)
    other = tile.copy()
    other.data[:] = 1
    assert not tile.data.any()
    assert (other.valid, other.declared_valid) == ((2, 3), (-1, 3))


def test_dynamic_extents_get_values_again_and_again() -> None:
    tile = pto.Tile("int32", 4, 8, valid=(-1, -1))
    tile.set_valid(2, 3)
    tile.store([[1, 2, 3], [4, 5, 6]])
    tile.set_valid(1, 2)
    assert tile.load().tolist() == [[1, 2]]
    assert not tile.is_static


@pytest.mark.parametrize(
    ("layout", "stride"), [("nd", (64, 64, 32, 8, 1)), ("dn", (64, 64, 32, 1, 4)), ("nz", (64, 64, 32, 8, 1))]
)
def test_strides_default_to_packed(layout: str, stride: tuple[int, ...]) -> None:
    assert table((1, 1, 2, 4, 8), layout=layout)[0].stride == stride


def test_dynamic_shape_and_stride() -> None:
    buffer = np.zeros(64, np.float32)
    tab = pto.GlobalTensor(buffer, "float32", (1, 1, 1, -1, 8), (-1, -1, -1, 16, 1), actual=(1, 1, 1, 4, 8))
    assert tab.shape == (1, 1, 1, 4, 8)
    assert tab.stride == (32, 32, 32, 16, 1)
    assert not tab.is_packed


def test_sub_views_share_the_buffer() -> None:
    buffer = np.arange(64, dtype=np.int32)
    tab = pto.GlobalTensor(buffer, "int32", (1, 1, 1, 8, 8))
    for view in (tab[2:4, 3:8], tab.partition((0, 0, 0, 2, 3), (1, 1, 1, 2, 5)), tab[0:1, 0:1, 0:1, 2:4, 3:8]):
        assert (view.base, view.shape, view.stride[3:]) == (19, (1, 1, 1, 2, 5), (8, 1))
        assert np.shares_memory(view.memory, buffer)
    assert tab[:, 1:].shape == (1, 1, 1, 8, 7)
    assert tab[2:4, 3:8][1:2, 1:].base == 28


def test_a_sub_view_of_a_sub_view_is_addressed_from_its_own_base() -> None:
    buffer = np.zeros(64, np.float32)
    tab = pto.GlobalTensor(buffer, "float32", (1, 1, 1, 8, 8))[4:, :]
    src, idx = pto.Tile("float32", 1, 8), pto.Tile("int32", 1, 8, valid=(1, 1))
    src.data[:] = 1
    idx.store([[2]])
    pto.mscatter(tab, src, idx, target="a5")
    assert np.flatnonzero(buffer).tolist() == list(range(48, 56))


def test_an_out_of_bounds_write_of_a_sub_view_lands_in_the_rest_of_the_buffer() -> None:
    buffer = np.zeros(64, np.float32)
    tab = pto.GlobalTensor(buffer, "float32", (1, 1, 1, 8, 8))[0:4, :]
    src, idx = pto.Tile("float32", 1, 8), pto.Tile("int32", 1, 8, valid=(1, 1))
    src.data[:] = 1
    idx.store([[5]])
    rep = pto.mscatter(tab, src, idx, target="a2a3")
    assert np.flatnonzero(buffer).tolist() == list(range(40, 48))
    assert [f.id for f in rep.findings] == ["PTO-I001"]


def test_reprs_read_like_calls() -> None:
    assert repr(pto.Tile("half", 4, 16, valid=(3, 5), layout="dn", loc="mat")) == (
        "Tile('float16', 4, 16, valid=(3, 5), layout='dn', loc='mat')"
    )
    assert repr(table((4, 8), layout="nz")[0]) == "GlobalTensor('float32', shape=(1, 1, 1, 4, 8), layout='nz')"
    assert repr(pto.GlobalTensor(np.zeros(8, np.int8), "i8", (1, 1, 1, -1, 8))) == (
        "GlobalTensor('int8', shape=(1, 1, 1, -1, 8))"
    )


def test_a_finding_as_text_and_as_json() -> None:
    finding = pto.Finding(
        "PTO-L012", pto.Severity.ERROR, "a5", "It is wrong.", {"a": 1}, pto.Where("k.py", 3, 4), "Mend."
    )
    assert str(finding) == "k.py:3:4: error PTO-L012 [a5]: It is wrong. Fix: Mend."
    assert finding.as_dict()["where"] == {"file": "k.py", "line": 3, "column": 4}
    assert pto.Finding("PTO-L012", pto.Severity.NOTE, None, "Hm.").as_dict()["where"] is None


def test_a_tensor_of_any_type_becomes_an_array_with_its_gaps_left_out() -> None:
    for name in ("float8_e4m3", "float8_e5m2", "bfloat16", "float32", "int8"):
        memory = np.arange(24).astype(element_type(name).numpy)
        tensor = pto.GlobalTensor(memory, name, (1, 1, 1, 3, 5), (24, 24, 24, 8, 1))
        found = np.array(tensor)
        assert found.dtype == memory.dtype
        assert found.tobytes() == memory.reshape(3, 8)[:, :5].tobytes()
