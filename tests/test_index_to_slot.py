"""SEMANTICS 2.1: from a raw index to a slot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptokit as pto
from calls import elem_source, ids, only, row_index, row_source, table
from ptokit.targets import machine

NPU = ("a2a3", "a5")


def scatter_one(index: int, capacity: int, oob: str, target: str, extra: int = 0) -> tuple[list[int], pto.Report]:
    """Elem: the value 1 through one index (and 2 through index 0, so that it is not a scalar call)."""
    tab, buffer = table((capacity,), "int32", extra=extra)
    src, idx = elem_source(1, 2), row_index(index, 0, cols=32)
    rep = pto.mscatter(tab, src, idx, coalesce="elem", oob=oob, atomic="add", target=target)
    return np.flatnonzero(buffer == 1).tolist(), rep


@pytest.mark.parametrize("target", NPU)
@pytest.mark.parametrize(
    ("oob", "index", "slots"),
    [
        ("undefined", 6, [6]),
        ("undefined", -1, []),  # slot 2^32-1: far behind the table, not owned
        ("skip", 6, [6]),
        ("skip", 7, []),
        ("skip", -1, []),
        ("clamp", 6, [6]),
        ("clamp", 7, [6]),
        ("clamp", -1, [6]),  # the LAST slot
        ("wrap", 6, [6]),
        ("wrap", 9, [2]),
        ("wrap", -1, [3]),  # (2^32 - 1) mod 7, where people expect 6
    ],
)
def test_each_policy_on_a2a3_and_a5(target: str, oob: str, index: int, slots: list[int]) -> None:
    assert scatter_one(index, 7, oob, target)[0] == slots


@pytest.mark.parametrize("target", NPU)
@pytest.mark.parametrize(
    ("oob", "index", "value"), [("zero", 7, 0), ("zero", -1, 0), ("clamp", -1, 16), ("wrap", -1, 13)]
)
def test_each_policy_of_a_gather(target: str, oob: str, index: int, value: int) -> None:
    tab = pto.GlobalTensor(np.arange(10, 17, dtype=np.int32), "int32", (1, 1, 1, 1, 7))
    dst = pto.Tile("int32", 1, 8, valid=(1, 2))
    pto.mgather(dst, tab, row_index(index, 1), coalesce="elem", oob=oob, target=target)
    assert dst.load().tolist() == [[value, 11]]


def test_cpu_extends_the_sign_and_addresses_the_element_before_the_table() -> None:
    buffer = np.zeros(9, np.int32)
    tab = pto.GlobalTensor(buffer, "int32", (1, 1, 1, 1, 8), base=1)
    rep = pto.mscatter(tab, elem_source(5), row_index(-1), coalesce="elem", target="cpu")
    assert buffer.tolist() == [5] + [0] * 8
    assert only(rep.findings, "PTO-I001").facts["taken"] == -1


def test_cpu_takes_uint32_as_it_is() -> None:
    tab, buffer = table((8,), "int32")
    idx = pto.Tile("uint32", 1, 8, valid=(1, 1))
    idx.store([[2**32 - 1]])
    rep = pto.mscatter(tab, elem_source(5), idx, coalesce="elem", target="cpu")
    assert not buffer.any()
    assert only(rep.findings, "PTO-I002").facts["taken"] == 2**32 - 1


@pytest.mark.parametrize("oob", ["skip", "clamp", "wrap"])
def test_cpu_ignores_every_policy_and_says_so(oob: str) -> None:
    tab, buffer = table((8,), "int32", extra=4)
    rep = pto.mscatter(tab, elem_source(5), row_index(9), coalesce="elem", oob=oob, target="cpu")
    assert buffer.tolist() == [0] * 9 + [5, 0, 0]
    assert {"PTO-N001", "PTO-I001"} <= ids(rep.findings)


@pytest.mark.parametrize(
    ("target", "coalesce", "shape", "layout", "capacity"),
    [
        ("cpu", "elem", (2, 1, 1, 4, 8), "nd", 64),
        ("a2a3", "row", (2, 1, 1, 4, 8), "nd", 8),
        ("a2a3", "elem", (2, 1, 1, 4, 8), "nd", 64),
        ("a2a3", "row", (2, 1, 3, 16, 8), "nz", 48),
        ("a2a3", "elem", (2, 1, 3, 16, 8), "nz", 48 * 16),
        ("a5", "row", (2, 1, 1, 4, 8), "nd", 4),
        ("a5", "elem", (2, 1, 1, 4, 8), "nd", 64),
    ],
)
def test_capacity(target: str, coalesce: str, shape: tuple[int, ...], layout: str, capacity: int) -> None:
    tab, _ = table(shape, layout=layout)
    width = shape[0] * shape[1] * 8 if layout == "nz" else 8
    rows = 16 if layout == "nz" else 1
    tile = pto.Tile("float32", rows, width, valid=(1, width), layout=layout)
    idx = pto.Tile("int32", rows, width, valid=(1, width)) if coalesce == "elem" else row_index(0)
    rep = pto.mgather(tile, tab, idx, coalesce=coalesce, target=target)
    assert rep.plan.capacity.true == capacity


def test_the_same_shape_has_eight_rows_on_a2a3_and_four_on_a5() -> None:
    src, idx = row_source(1), row_index(5)
    for target, written in (("a2a3", [5]), ("a5", [])):
        tab, buffer = table((2, 1, 1, 4, 8))
        pto.mscatter(tab, src, idx, oob="skip", target=target)
        assert np.flatnonzero(buffer.reshape(8, 8).any(axis=1)).tolist() == written


def sparse(tmp_path: Path, elements: int) -> np.ndarray[Any, Any]:
    """A file of int8 that takes no room until it is written."""
    path = tmp_path / "table"
    with path.open("wb") as file:
        file.truncate(elements)
    return np.memmap(path, np.int8, "r+")


@pytest.mark.parametrize("target", NPU)
@pytest.mark.parametrize(
    ("oob", "written"),
    [("undefined", [3, 70]), ("skip", []), ("clamp", [2**32 - 1]), ("wrap", [])],
)
def test_a_product_that_truncates_to_zero(tmp_path: Path, target: str, oob: str, written: list[int]) -> None:
    memory = sparse(tmp_path, 2**32)
    tab = pto.GlobalTensor(memory, "int8", (1, 1, 1, 2**26, 64))
    src, idx = elem_source(1, 1, dtype="int8"), row_index(3, 70, cols=32)
    rep = pto.mscatter(tab, src, idx, coalesce="elem", oob=oob, target=target, **default_on(target))
    told = only(rep.findings, "PTO-I005")
    assert (told.severity, told.facts) == ("error", {"capacity": 2**32, "counted": 0})
    assert [at for at in (3, 70, 2**32 - 1) if memory[at]] == written


def default_on(target: str) -> dict[str, str]:
    return {"conflict": "default"} if target == "a5" else {}


def test_indices_at_or_above_the_truncated_count_are_out_of_bounds(tmp_path: Path) -> None:
    memory = sparse(tmp_path, 2**32 + 64)
    tab = pto.GlobalTensor(memory, "int8", (1, 1, 1, 2**26 + 1, 64))
    src, idx = elem_source(1, 1, dtype="int8"), row_index(3, 70, cols=32)
    rep = pto.mscatter(tab, src, idx, coalesce="elem", oob="skip", target="a2a3")
    assert [memory[3], memory[70]] == [1, 0]
    assert only(rep.findings, "PTO-I005").facts["counted"] == 64
    assert only(rep.findings, "PTO-I003").facts["index"] == 70


def test_last_drops_what_undefined_would_write() -> None:
    src, idx = row_source(2), row_index(1, 5)
    results = {}
    for conflict in ("last", "default"):
        tab, buffer = table((4, 8), extra=16)
        results[conflict] = pto.mscatter(tab, src, idx, conflict=conflict, target="a5")
        assert np.flatnonzero(buffer.reshape(6, 8).any(axis=1)).tolist() == ([1] if conflict == "last" else [1, 5])
    assert only(results["last"].findings, "PTO-I011").severity == "warning"
    assert only(results["default"].findings, "PTO-I001").severity == "error"


def test_last_with_an_atomic_is_another_kernel_and_writes_out_there() -> None:
    tab, buffer = table((4, 8), extra=16)
    pto.mscatter(tab, row_source(1), row_index(5), atomic="add", conflict="last", target="a5")
    assert buffer[40:48].tolist() == [100.0] * 8


def test_a_static_scalar_call_has_no_scan_and_stores_out_of_bounds() -> None:
    for static, written in ((True, [9]), (False, [])):
        tab, buffer = table((8,), "int32", extra=4)
        src, idx = pto.Tile("int32", 1, 8, valid=(1, 1) if static else (-1, -1)), row_index(9)
        src.set_valid(1, 1)
        src.store([[5]])
        pto.mscatter(tab, src, idx, coalesce="elem", target="a5")
        assert np.flatnonzero(buffer).tolist() == written


@pytest.mark.parametrize("target", ["cpu", "a2a3", "a5"])
@pytest.mark.parametrize("coalesce", ["row", "elem"])
def test_a_capacity_of_zero_is_an_error(target: str, coalesce: str) -> None:
    tab, _ = table((0, 8))
    with pytest.raises(pto.IllegalInstruction) as refused:
        pto.mscatter(
            tab,
            row_source(1),
            row_index(0) if coalesce == "row" else row_index(*[0] * 8),
            coalesce=coalesce,
            target=target,
        )
    assert "PTO-L007" in ids(refused.value.findings, "error")


@pytest.mark.parametrize(
    ("target", "layout", "shape", "coalesce"),
    [
        ("a2a3", "nd", (1, 1, 1, 2**32 + 5, 8), "row"),
        ("a5", "nd", (1, 1, 1, 2**32 + 5, 8), "row"),
        ("a2a3", "nz", (1, 2**12 + 1, 2**13, 16, 8), "elem"),
    ],
)
def test_a_capacity_is_counted_in_32_bits(target: str, layout: str, shape: tuple[int, ...], coalesce: str) -> None:
    # A stride of 0 makes the table large and its buffer small.
    stride = (0, 0, 0, 8, 1) if layout == "nz" else (0, 0, 0, 0, 1)
    tab = pto.GlobalTensor(np.zeros(256, np.float32), "float32", shape, stride, layout)
    counting = machine(target).row_capacity if coalesce == "row" else machine(target).elem_capacity
    assert counting is not None
    found = counting(tab)
    assert found.counted == found.true % 2**32 != found.true
