"""Arrays of other libraries, without a copy: the buffer protocol, and DLPack capsules read here.

NumPy refuses both for bfloat16 and the 8-bit floats, so the capsules are taken apart with ctypes.
"""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ptokit.dtypes import as_array, describe
from ptokit.errors import PtoTypeError, a_kind

Array = npt.NDArray[Any]

HOST_DEVICES = {1: "cpu", 3: "pinned memory"}
READ_ONLY = 1
NEWEST = (1, 1)
"""The version of DLPack that is read here."""


class _Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_NUMPY_CODES = {0: "i", 1: "u", 2: "f"}
_OTHER_TYPES: dict[tuple[int, int], Any] = {
    (4, 16): ml_dtypes.bfloat16,
    (8, 8): ml_dtypes.float8_e4m3,  # the other e4m3: refused by name later on
    (10, 8): ml_dtypes.float8_e4m3fn,
    (12, 8): ml_dtypes.float8_e5m2,
}

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
_capsule_is = ctypes.pythonapi.PyCapsule_IsValid
_capsule_is.restype = ctypes.c_int
_capsule_is.argtypes = (ctypes.py_object, ctypes.c_char_p)


def host_array(given: object, name: str) -> Array:
    """An ndarray on the memory of what was given: never a copy.

    >>> import array
    >>> host_array(array.array("f", [1, 2]), "table").dtype
    dtype('float32')
    """
    if isinstance(given, np.ndarray):
        if isinstance(given, np.ma.MaskedArray):
            as_array(given)  # refuses it
        return np.asarray(given)
    if isinstance(given, (list, tuple)):
        raise PtoTypeError(f"{name} is {a_kind(given)}, which has no dtype: pass numpy.array(it, dtype)")
    try:
        return np.asarray(memoryview(given))  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError):
        pass
    if hasattr(given, "__dlpack__"):
        return _from_dlpack(given, name)
    hint = ": pass its array (numpy.asarray(it))" if hasattr(given, "__array__") else ""
    raise PtoTypeError(
        f"{name} is {a_kind(given)}; an ndarray, or an object with the buffer protocol or DLPack, is wanted{hint}"
    )


def _from_dlpack(given: Any, name: str) -> Array:
    what = f"{name} is {a_kind(given)}"
    try:
        device = int(given.__dlpack_device__()[0])
        capsule = _capsule_of(given) if device in HOST_DEVICES else None
    except Exception as refused:  # each library has its own
        raise PtoTypeError(f"{what} that cannot be shared: {refused}") from None
    if device not in HOST_DEVICES:
        raise PtoTypeError(f"{what} on another device (kind {device}): move it to the CPU first")
    tensor, writeable = _tensor_in(capsule, what)
    if not tensor.data and all(tensor.shape[i] for i in range(tensor.ndim)):
        raise PtoTypeError(f"{what} that cannot be shared: it has no memory")
    return _view(tensor, capsule, writeable, what)


def _tensor_in(capsule: object, what: str) -> tuple[_Tensor, bool]:
    """The tensor of a capsule, and whether it may be written."""
    if _capsule_is(capsule, b"dltensor_versioned"):
        owner = _Versioned.from_address(_capsule_pointer(capsule, b"dltensor_versioned"))
        if owner.major == NEWEST[0]:
            return owner.tensor, not owner.flags & READ_ONLY
        raise PtoTypeError(f"{what} that cannot be shared: its DLPack is version {owner.major}, not {NEWEST[0]}")
    if _capsule_is(capsule, b"dltensor"):
        # The older capsule does not say whether it may be written: NumPy takes it as read-only, and so is it here.
        return _Tensor.from_address(_capsule_pointer(capsule, b"dltensor")), False
    raise PtoTypeError(f"{what} that cannot be shared: it gives no DLPack capsule that is still unused")


def _capsule_of(given: Any) -> object:
    if hasattr(given, "is_neg") and given.is_neg():  # PyTorch negates some views when they are read, not in memory
        raise BufferError("its negation is not in memory yet, use tensor.resolve_neg()")
    try:
        return given.__dlpack__(max_version=NEWEST)
    except TypeError:
        return given.__dlpack__()


def _view(tensor: _Tensor, capsule: object, writeable: bool, what: str) -> Array:
    """The tensor's memory as an ndarray; the capsule lives as long as it does."""
    dtype = _dtype_of(tensor, what)
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if 0 in shape:
        return np.empty(shape, dtype)
    if tensor.strides:
        strides = tuple(tensor.strides[i] * dtype.itemsize for i in range(tensor.ndim))
    else:
        strides = np.empty(shape, np.dtype(f"u{dtype.itemsize}")).strides if tensor.ndim else ()
    reach = [(extent - 1) * step for extent, step in zip(shape, strides, strict=True)]
    before, after = -sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
    start = tensor.data + tensor.byte_offset - before
    memory = (ctypes.c_uint8 * (before + after + dtype.itemsize)).from_address(start)
    memory.owner = capsule
    bits: Array = np.ndarray(shape, np.dtype(f"u{dtype.itemsize}"), memory, before, strides)
    found: Array = bits.view(dtype)
    found.flags.writeable = writeable
    return found


def _dtype_of(tensor: _Tensor, what: str) -> np.dtype[Any]:
    code, bits = tensor.code, tensor.bits
    if tensor.lanes == 1:
        if (code, bits) in _OTHER_TYPES:
            other: np.dtype[Any] = np.dtype(_OTHER_TYPES[code, bits])
            return other
        if code in _NUMPY_CODES and bits in (8, 16, 32, 64):
            return np.dtype(f"{_NUMPY_CODES[code]}{bits // 8}")
    raise PtoTypeError(f"{what} of an element type (DLPack code {code}, {bits} bits) that is not known here")


def read_indices(given: object) -> Array:
    """The indices as an array of 32 or 64 bits; a list is taken as int64.

    >>> read_indices([3, 1]).dtype
    dtype('int64')
    """
    if isinstance(given, (list, tuple, int)):
        return _listed(given)
    indices = host_array(given, "idx")
    if indices.dtype.kind not in "iu" or indices.dtype.itemsize not in (4, 8) or not indices.dtype.isnative:
        raise PtoTypeError(f"idx holds {describe(indices.dtype)}; indices are int32, uint32, int64 or uint64")
    return indices


def _listed(given: object) -> Array:
    numbers = as_array(given)
    if not numbers.size:
        return numbers.astype(np.int64)
    if numbers.dtype.kind not in "iu":
        raise PtoTypeError(f"idx is {a_kind(given)} of {describe(numbers.dtype)}; whole numbers of 64 bits are wanted")
    if numbers.dtype.kind == "u" and bool((numbers >> np.uint64(63)).any()):
        raise PtoTypeError("idx is a list, taken as int64, and holds a number of 2**63 or more: pass a uint64 array")
    return numbers.astype(np.int64)
