"""What a user can get wrong: one exception of the package, what was passed, what would be right; nothing written."""

from __future__ import annotations

import array
import mmap
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ptokit as pto
from calls import row_index, row_source, table


def call(**change: Any) -> pto.Report:
    keywords: dict[str, Any] = {"table": table((4, 8))[0], "src": row_source(2), "idx": row_index(1, 2), **change}
    return pto.mscatter(keywords.pop("table"), keywords.pop("src"), keywords.pop("idx"), **keywords)


def read_only() -> pto.GlobalTensor:
    buffer = np.zeros(32, np.float32)
    buffer.flags.writeable = False
    return pto.GlobalTensor(buffer, "float32", (1, 1, 1, 4, 8))


def read_only_tile() -> pto.Tile:
    data = np.zeros(8, np.int32)
    data.flags.writeable = False
    return pto.Tile("int32", 1, 8, data=data)


def overlapping() -> dict[str, Any]:
    src = row_source(2)
    return {"src": src, "table": pto.GlobalTensor(src.data, "float32", (1, 1, 1, 2, 8))}


CALLS: list[tuple[str, Callable[[], object], type[Exception], str]] = [
    ("an array as table", lambda: call(table=np.zeros((4, 8))), TypeError, "ndarray; a GlobalTensor"),
    ("an array as tile", lambda: call(src=np.zeros((2, 8))), TypeError, "src is an ndarray; a Tile"),
    ("a list as index", lambda: call(idx=[1, 2]), TypeError, "idx is a list; a Tile"),
    ("an unknown policy", lambda: call(oob="clmap"), ValueError, "Did you mean 'clamp'"),
    ("an unknown coalesce", lambda: call(coalesce="rows"), ValueError, "Did you mean 'row'"),
    ("an integer policy", lambda: call(oob=1), TypeError, "oob=1 is an int"),
    ("the other instruction's enum", lambda: call(oob=pto.GatherOOB.Clamp), TypeError, "ScatterOOB is wanted"),
    ("the other instruction's policy", lambda: call(oob="zero"), ValueError, "'skip' drops the write"),
    ("an unknown target", lambda: call(target="a6"), ValueError, "Did you mean"),
    ("a target that is no name", lambda: call(target=5), TypeError, "target=5"),
    ("an unknown schedule", lambda: call(schedule="lat"), ValueError, "schedule='lat'"),
    ("a negative seed", lambda: call(schedule="random", seed=-1), ValueError, "seed=-1"),
    ("a seed that is no number", lambda: call(schedule="random", seed="x"), ValueError, "seed='x'"),
    ("a read-only table", lambda: call(table=read_only()), ValueError, "read-only"),
    ("a table on the tile's memory", lambda: call(**overlapping()), ValueError, "share memory"),
    ("an unknown instruction", lambda: pto.check("mscater", 1, 2, 3), ValueError, "Did you mean 'mscatter'"),
    ("an instruction that is no name", lambda: pto.check(3, 1, 2, 3), ValueError, "not an instruction"),
    ("too few operands", lambda: pto.check("mgather", table((4, 8))[0]), TypeError, "dst, table, idx"),
    (
        "operands in the other order",
        lambda: pto.check("mgather", table((4, 8))[0], row_source(2), row_index(1, 2)),
        TypeError,
        "dst is a GlobalTensor",
    ),
    (
        "an unknown keyword",
        lambda: pto.check("mscatter", *[None] * 3, atomics="add"),
        TypeError,
        "Did you mean 'atomic'",
    ),
    (
        "an empty list of targets",
        lambda: pto.check("mscatter", table((4, 8))[0], row_source(2), row_index(1, 2), targets=()),
        ValueError,
        "targets is empty",
    ),
    (
        "a keyword of the other instruction",
        lambda: pto.mgather(row_source(2), table((4, 8))[0], row_index(1, 2), conflict="last"),  # type: ignore[call-arg]
        TypeError,
        "A gather has no conflicts",
    ),
    (
        "an atomic of a gather, asked for in a check",
        lambda: pto.check("mgather", *[None] * 3, atomic="add"),
        TypeError,
        "A gather has no atomics",
    ),
    ("no instruction", pto.check, TypeError, "op is missing"),  # type: ignore[call-arg]
    ("a tile without extents", lambda: pto.Tile("int32"), TypeError, "rows, cols are missing"),  # type: ignore[call-arg]
    (
        "a misspelt keyword of a tile",
        lambda: pto.Tile("int32", 1, 8, vaild=(1, 2)),  # type: ignore[call-arg]
        TypeError,
        "Tile has no keyword 'vaild'. Did you mean 'valid'?",
    ),
    (
        "a misspelt keyword of a tensor",
        lambda: pto.GlobalTensor(bytearray(32), "int32", shpe=(1, 1, 1, 1, 8)),  # type: ignore[call-arg]
        TypeError,
        "Did you mean 'shape'?",
    ),
    (
        "a misspelt keyword of the first custom form",
        lambda: pto.older.mscatter_custom_a5(table((4, 8))[0], row_source(2), row_index(1, 2), obb="skip"),  # type: ignore[call-arg]
        TypeError,
        "Did you mean 'oob'?",
    ),
    ("a type that is None", lambda: pto.Tile(None, 1, 8), TypeError, "not None"),
    ("an integer of any size", lambda: pto.Tile("int32", 1, 8).store([[10**30] * 8]), ValueError, "the value 10000"),
    ("a float of any size", lambda: pto.Tile("float32", 1, 8).store([[10**400] * 8]), ValueError, "too large for"),
    ("values with None", lambda: pto.Tile("int32", 1, 8).store([[1, None] * 4]), TypeError, "the value None at"),
    ("a view from the end", lambda: table((4, 8))[0][-3:, :], IndexError, "count from the start"),
    ("a read-only tile", lambda: read_only_tile().store([[1] * 8]), ValueError, "is read-only"),
    ("an unknown element type", lambda: pto.Tile("float33", 1, 8), ValueError, "Did you mean 'float32'"),
    ("a type that is none", lambda: pto.Tile(object(), 1, 8), TypeError, "element type"),
    ("a 64-bit type", lambda: pto.Tile(np.float64, 1, 8), TypeError, "float64 is not an element type"),
    ("the other e4m3", lambda: pto.Tile(ml_dtypes.float8_e4m3, 1, 32), TypeError, "float8_e4m3fn"),
    ("foreign byte order", lambda: pto.Tile(np.dtype(">f4"), 1, 8), TypeError, "foreign byte order"),
    ("no rows", lambda: pto.Tile("int32", 0, 8), ValueError, "no elements"),
    ("half a row", lambda: pto.Tile("int32", 1.5, 8), TypeError, "rows is 1.5"),
    ("true rows", lambda: pto.Tile("int32", True, 8), TypeError, "rows is True"),
    ("valid beyond padded", lambda: pto.Tile("int32", 4, 8, valid=(5, 8)), ValueError, "5 valid rows"),
    ("valid below -1", lambda: pto.Tile("int32", 4, 8, valid=(-2, 8)), ValueError, "-2 valid rows"),
    ("valid of three", lambda: pto.Tile("int32", 4, 8, valid=(1, 2, 3)), ValueError, "2 are wanted"),
    ("valid as a word", lambda: pto.Tile("int32", 4, 8, valid="all"), TypeError, "valid is 'all'"),
    ("an unknown layout", lambda: pto.Tile("int32", 4, 8, layout="zn"), ValueError, "Did you mean 'nz'"),
    ("a layout that is no name", lambda: pto.Tile("int32", 4, 8, layout=1), TypeError, "layout=1"),
    ("an unknown location", lambda: pto.Tile("int32", 4, 8, loc="ub"), ValueError, "loc='ub'"),
    (
        "data of another size",
        lambda: pto.Tile("int32", 4, 8, data=np.zeros(31, np.int32)),
        ValueError,
        "flat array of 32 int32",
    ),
    ("values of another shape", lambda: pto.Tile("int32", 4, 8).store(np.zeros((4, 7))), ValueError, r"\(4, 7\)"),
    ("fractions as indices", lambda: pto.Tile("int32", 1, 8).store([[0.5] * 8]), ValueError, "0.5 at"),
    ("an index beyond 32 bits", lambda: pto.Tile("int32", 1, 8).store([[2**40] * 8]), ValueError, "1099511627776"),
    ("a negative unsigned", lambda: pto.Tile("uint8", 1, 2).store([[-1, 0]]), ValueError, "-1 at"),
    ("a nan as integer", lambda: pto.Tile("int8", 1, 2).store([[np.nan, 0]]), ValueError, "nan at"),
    ("too large for a half", lambda: pto.Tile("float16", 1, 2).store([[1e6, 0]]), ValueError, "too large for float16"),
    ("words as numbers", lambda: pto.Tile("int32", 1, 2).store([["a", "b"]]), TypeError, "numbers are wanted"),
    ("complex numbers", lambda: pto.Tile("float32", 1, 1).store([[1j]]), TypeError, "numbers are wanted"),
    ("ragged values", lambda: pto.Tile("int32", 2, 2).store([[1], [2, 3]]), ValueError, "values"),
    ("a dynamic tile without a value", lambda: pto.Tile("int32", 4, 8, valid=(-1, 8)).load(), ValueError, "set_valid"),
    ("a static extent changed", lambda: pto.Tile("int32", 4, 8).set_valid(3, 8), ValueError, "is static"),
    ("a dynamic extent too large", lambda: pto.Tile("int32", 4, 8, (-1, -1)).set_valid(5, 8), ValueError, "5 valid"),
    ("a value of -1", lambda: pto.Tile("int32", 4, 8, (-1, -1)).set_valid(-1, 8), ValueError, "-1 valid"),
    (
        "an NZ tile of half a fractal",
        lambda: pto.Tile("float32", 16, 12, layout="nz").load(),
        ValueError,
        "divisible by 8",
    ),
    (
        "a buffer too small",
        lambda: pto.GlobalTensor(np.zeros(31, np.float32), "float32", (1, 1, 1, 4, 8)),
        ValueError,
        "32 are needed",
    ),
    (
        "a buffer too small for the stride",
        lambda: pto.GlobalTensor(np.zeros(32, np.float32), "float32", (1, 1, 1, 4, 8), (0, 0, 0, 9, 1)),
        ValueError,
        "35 are needed",
    ),
    (
        "a buffer of another type",
        lambda: pto.GlobalTensor(np.zeros(32), "float32", (1, 1, 1, 4, 8)),
        TypeError,
        "float64; the tensor's element type is float32",
    ),
    (
        "a buffer of no type",
        lambda: pto.GlobalTensor([0.0] * 32, "float32", (1, 1, 1, 4, 8)),
        TypeError,
        "buffer protocol",
    ),
    ("odd bytes", lambda: pto.GlobalTensor(bytearray(30), "float32", (1, 1, 1, 1, 7)), ValueError, "30 bytes"),
    (
        "a buffer with gaps",
        lambda: pto.GlobalTensor(np.zeros((8, 8), np.float32)[:, :4], "float32", (1, 1, 1, 8, 4)),
        ValueError,
        "not contiguous",
    ),
    (
        "a shape of two",
        lambda: pto.GlobalTensor(np.zeros(32, np.int32), "int32", (4, 8)),
        ValueError,
        "ones on the left",
    ),
    (
        "a negative extent",
        lambda: pto.GlobalTensor(np.zeros(32, np.int32), "int32", (1, 1, 1, -4, 8)),
        ValueError,
        r"shape\[3\] is -4",
    ),
    (
        "a negative stride",
        lambda: pto.GlobalTensor(np.zeros(32, np.int32), "int32", (1, 1, 1, 4, 8), (1, 1, 1, -8, 1)),
        ValueError,
        r"stride\[3\] is -8",
    ),
    (
        "actual that contradicts",
        lambda: pto.GlobalTensor(np.zeros(32, np.int32), "int32", (1, 1, 1, 4, 8), actual=(1, 1, 1, 3, 8)),
        ValueError,
        "contradicts",
    ),
    (
        "a dynamic tensor without a value",
        lambda: pto.GlobalTensor(np.zeros(32, np.int32), "int32", (1, 1, 1, -1, 8)).size,
        ValueError,
        "actual",
    ),
    ("a sub-view beyond the table", lambda: table((4, 8))[0][2:5, 0:8], IndexError, "2 to 5"),
    ("a sub-view backwards", lambda: table((4, 8))[0][3:1, 0:8], IndexError, "S3: 3:1 is no sub-view"),
    ("a sub-view with a step", lambda: table((4, 8))[0][0:4:2, 0:8], IndexError, "step of 2"),
    ("one slice", lambda: table((4, 8))[0][0:4], IndexError, "two slices"),
    ("a number", lambda: table((4, 8))[0][0, 0], IndexError, "two slices"),
]


@pytest.mark.parametrize(("what", "wrong", "builtin", "quoted"), CALLS, ids=[c[0] for c in CALLS])
def test_a_mistake_is_one_clear_exception(
    what: str, wrong: Callable[[], object], builtin: type[Exception], quoted: str
) -> None:
    with pytest.raises(builtin, match=quoted) as raised:
        wrong()
    assert isinstance(raised.value, pto.PtoError), what


def test_nothing_is_written_when_a_call_is_refused() -> None:
    tab, buffer = table((4, 8))
    for wrong in ({"oob": "x"}, {"atomic": 3}, {"target": "b"}, {"schedule": "late"}, {"seed": 1.5}):
        with pytest.raises(pto.PtoError):
            call(table=tab, **{"schedule": "random", **wrong})
    assert not buffer.any()


def test_a_gather_refuses_to_overwrite_its_own_indices() -> None:
    idx = row_index(1, 2)
    dst = pto.Tile("int32", 1, 8, valid=(1, 2), data=idx.data)
    with pytest.raises(pto.PtoValueError, match="share memory"):
        pto.mgather(dst, table((4, 8), "int32")[0], idx, target="a2a3", coalesce="elem")


def test_a_gather_needs_a_writable_tile_and_a_scatter_an_unshared_one() -> None:
    dst = pto.Tile("float32", 2, 8)
    dst.data.flags.writeable = False
    with pytest.raises(pto.PtoValueError, match="read-only"):
        pto.mgather(dst, table((4, 8))[0], row_index(1, 2))
    idx = row_index(1, 2)
    with pytest.raises(pto.PtoValueError, match=r"index tile .* share memory"):
        src = pto.Tile("int32", 2, 8)
        pto.mscatter(pto.GlobalTensor(idx.data, "int32", (1, 1, 1, 1, 8)), src, idx)
    with pytest.raises(pto.PtoValueError, match=r"index tile .* share memory"):
        pto.mgather(pto.Tile("int32", 2, 8), pto.GlobalTensor(idx.data, "int32", (1, 1, 1, 1, 8)), idx)


def test_gathering_from_read_only_memory_is_fine() -> None:
    dst = pto.Tile("float32", 2, 8)
    tab = pto.GlobalTensor(bytes(4 * 32), "float32", (1, 1, 1, 4, 8))
    pto.mgather(dst, tab, row_index(1, 2))
    assert dst.holds_data


@pytest.mark.parametrize("make", [bytearray, lambda n: memoryview(bytearray(n)), lambda n: mmap.mmap(-1, n)])
def test_any_buffer_is_a_view_never_a_copy(make: Callable[[int], Any]) -> None:
    buffer = make(4 * 32)
    tab = pto.GlobalTensor(buffer, "float32", (1, 1, 1, 4, 8))
    pto.mscatter(tab, row_source(1), row_index(2))
    assert np.frombuffer(buffer, np.float32)[16:24].tolist() == [100.0] * 8
    del tab


def test_array_array_is_a_buffer() -> None:
    buffer = array.array("f", [0.0] * 32)
    pto.mscatter(pto.GlobalTensor(buffer, "float32", (1, 1, 1, 4, 8)), row_source(1), row_index(2))
    assert buffer[16] == 100.0


def test_policies_are_names_in_any_case_or_the_right_enum() -> None:
    for oob in ("SKIP", "Skip", pto.ScatterOOB.Skip):
        assert call(oob=oob, atomic=pto.ScatterAtomicOp.Add, coalesce=pto.Coalesce.Row).deterministic
