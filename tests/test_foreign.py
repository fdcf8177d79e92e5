"""Arrays of other libraries: without a copy, and with an error that says what to do."""

from __future__ import annotations

import array
import ctypes
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ptokit as pto
from ptokit.foreign import host_array

NO_TORCH = "PyTorch is installed by `make test` where its CPU build can be had"
NO_JAX = "JAX is installed by `make bench` only"


def test_buffers_are_written_in_place() -> None:
    for table in (array.array("f", [0] * 4), (ctypes.c_float * 4)(), memoryview(bytearray(16)).cast("f")):
        assert pto.scatter(table, np.array([5], np.float32), [2], coalesce="elem") is table
        assert list(table) == [0, 0, 5, 0]
        assert pto.gather(table, array.array("q", [2, 0]), coalesce="elem").tolist() == [5, 0]


def test_a_memory_map_is_written_in_place(tmp_path: Any) -> None:
    table = np.memmap(tmp_path / "t", np.float32, "w+", shape=(4, 2))
    pto.scatter(table, np.ones((1, 2), np.float32), [3])
    table.flush()
    assert np.fromfile(tmp_path / "t", np.float32).tolist() == [0] * 6 + [1, 1]


def test_what_has_an_array_only_is_refused_with_the_way_out() -> None:
    class Frame:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.zeros(3, np.float32)

    with pytest.raises(pto.PtoTypeError, match=r"table is a Frame; .* pass its array"):
        pto.gather(Frame(), [0])


class Capsule:
    """An object with DLPack, whose capsule NumPy makes; `device` and `error` as asked for."""

    def __init__(self, made_of: Any, device: int = 1, error: Exception | None = None, versions: bool = True) -> None:
        self.made_of, self.device, self.error, self.versions = made_of, device, error, versions

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.device, 0)

    def __dlpack__(self, **how: Any) -> Any:
        if self.error:
            raise self.error
        if not self.versions and how:
            raise TypeError("an older DLPack")
        return self.made_of.__dlpack__(**how)


class Odd:
    """An object that gives what it likes for a device and for a capsule."""

    def __init__(self, device: Any, capsule: Any = None) -> None:
        self.device, self.capsule = device, capsule

    def __dlpack_device__(self) -> Any:
        if isinstance(self.device, Exception):
            raise self.device
        return self.device

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule


USED = np.zeros(3, np.float32).__dlpack__()
np.from_dlpack(Odd((1, 0), USED))


def test_a_capsule_is_a_view_that_keeps_its_owner_alive() -> None:
    owner = np.arange(24, dtype=np.float32).reshape(4, 6)
    for made_of in (owner, owner[:, ::2], owner[::-1, 1:], owner.T):
        seen = host_array(Capsule(made_of), "table")
        assert np.shares_memory(seen, owner)
        assert seen.strides == made_of.strides
        assert np.array_equal(seen, made_of)
    seen = host_array(Capsule(np.arange(5)), "table")  # its array is gone by now
    assert seen.tolist() == [0, 1, 2, 3, 4]
    assert host_array(Capsule(np.zeros((3, 0), np.int16)), "table").shape == (3, 0)


def test_a_capsule_says_whether_it_may_be_written() -> None:
    fixed = np.zeros(3, np.float32)
    fixed.flags.writeable = False
    with pytest.raises(pto.PtoValueError, match="read-only"):
        pto.scatter(Capsule(fixed), np.ones(1, np.float32), [0])
    with pytest.raises(pto.PtoValueError, match="read-only"):
        pto.scatter(Capsule(np.zeros(3, np.float32), versions=False), np.ones(1, np.float32), [0])
    table = np.zeros(3, np.float32)
    pto.scatter(Capsule(table), np.ones(1, np.float32), [1])
    assert table.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (Capsule(np.zeros(3), device=2), "on another device"),
        (Capsule(np.zeros(3), error=BufferError("it requires grad: detach() it")), "it requires grad"),
        (Capsule(np.zeros(3, np.complex64)), "DLPack code 5"),
        (Capsule(np.zeros(3, np.bool_)), "DLPack code 6"),
        (Capsule(np.zeros(3), error=AttributeError("it was deleted")), "it was deleted"),
        (Odd(ValueError("no such device as meta")), "no such device as meta"),
        (Odd(None), "cannot be shared"),
        (Odd((1, 0), 5), "no DLPack capsule"),
        (Odd((1, 0), USED), "still unused"),
        (np.ndarray, "cannot be shared"),
    ],
)
def test_a_capsule_that_cannot_be_used(given: Any, says: str) -> None:
    with pytest.raises(pto.PtoTypeError, match=says):
        pto.gather(given, [0])


# PyTorch


def tensor(*values: float, dtype: str = "float32") -> Any:
    torch = pytest.importorskip("torch", reason=NO_TORCH)
    return torch.tensor(values, dtype=getattr(torch, dtype))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "float16", "bfloat16", "float32"])
def test_tensors_are_written_in_place(dtype: str) -> None:
    table, src = tensor(*range(8), dtype=dtype).reshape(4, 2), tensor(7, 8, 9, 10, dtype=dtype).reshape(2, 2)
    idx = tensor(3, 3, dtype="int64")
    assert pto.scatter(table, src, idx) is table
    pto.scatter(table, src, idx, atomic="add")
    assert table[3].tolist() == [9 + 7 + 9, 10 + 8 + 10]
    out = tensor(*[0] * 4, dtype=dtype).reshape(2, 2)
    assert pto.gather(table, tensor(3, 0, dtype="int32"), out=out) is out
    assert out.tolist() == [table[3].tolist(), [0, 1]]
    assert pto.gather(table, [1]).tolist() == [[2, 3]]


def test_tensors_of_float8_are_moved() -> None:
    torch = pytest.importorskip("torch", reason=NO_TORCH)
    for name, other in (("float8_e4m3fn", ml_dtypes.float8_e4m3fn), ("float8_e5m2", ml_dtypes.float8_e5m2)):
        table = torch.arange(6, dtype=torch.float32).to(getattr(torch, name)).reshape(3, 2)
        got = pto.gather(table, [2, 0])
        assert got.dtype == other
        assert got.astype(np.float32).tolist() == [[4, 5], [0, 1]]


def test_strided_tensors_work_without_a_copy() -> None:
    table = tensor(*[0] * 12).reshape(4, 3)
    pto.scatter(table[:, :2], tensor(1, 2).reshape(1, 2), [3])
    assert table[3].tolist() == [1, 2, 0]
    with pytest.raises(pto.PtoValueError, match="not C-contiguous"):
        pto.scatter(table.T, tensor(1), [0], coalesce="elem")


def test_a_tensor_without_the_memory_that_it_stands_for_is_refused() -> None:
    ones = tensor(1, 1)
    for given, says in ((ones.to("meta"), "cannot be shared"), (ones._neg_view(), "resolve_neg")):
        with pytest.raises(pto.PtoTypeError, match=says):
            pto.gather(given, [0])


def test_a_tensor_that_requires_grad_is_told_to_detach() -> None:
    table = tensor(1, 2).requires_grad_()
    with pytest.raises(pto.PtoTypeError, match="detach"):
        pto.scatter(table, tensor(1), [0])


def test_subnormal_numbers_stay_where_others_flush_them() -> None:
    torch = pytest.importorskip("torch", reason=NO_TORCH)
    tiny = np.full(3000, 1e-40, np.float32)
    if not torch.set_flush_denormal(True):
        pytest.skip("this CPU cannot flush subnormal numbers")
    try:
        few, many = np.zeros(2, np.float32), np.zeros((2, 3), np.float32)
        pto.scatter(few, tiny[:2], [1, 1], coalesce="elem", atomic="add")
        pto.scatter(many, tiny.reshape(1000, 3), np.ones(1000, np.int64), atomic="max")
        assert few.view(np.uint32)[1] == 2 * tiny.view(np.uint32)[0]
        assert many.view(np.uint32)[1, 0] == tiny.view(np.uint32)[0]
    finally:
        torch.set_flush_denormal(False)


# JAX


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_jax_arrays_are_read_and_never_written(dtype: str) -> None:
    jax = pytest.importorskip("jax", reason=NO_JAX)
    table = jax.numpy.arange(8, dtype=dtype).reshape(4, 2)
    assert pto.gather(table, jax.numpy.array([3, 1])).astype(np.float32).tolist() == [[6, 7], [2, 3]]
    with pytest.raises(pto.PtoValueError, match="read-only"):
        pto.scatter(table, table[:1], [0])
