"""What a case is, the numbers that go in, and the plain loops that say what must come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

import ptokit as pto

Array = np.ndarray[Any, Any]
Kernel = Callable[..., None]
Expected = dict[int, Array]
Merge = Callable[[Array, Array], Array]

BOTH = ("a2a3", "a5")
A2A3 = ("a2a3",)
A5 = ("a5",)


@dataclass(frozen=True)
class Case:
    """One kernel, its arguments and what must come out.

    `make` gives fresh arguments, the same every time; `expect` takes fresh arguments and gives, by position,
    what the host array must hold after the launch. An array that it does not name must not change.
    """

    name: str
    kernel: Kernel
    make: Callable[[], list[Any]]
    expect: Callable[[list[Any]], Expected]
    targets: tuple[str, ...] = BOTH
    launch: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def case(
    kernel: Kernel,
    make: Callable[[], list[Any]],
    expect: Callable[[list[Any]], Expected],
    targets: tuple[str, ...] = BOTH,
    **launch: Any,
) -> Case:
    """A case that is named after its kernel."""
    return Case(kernel.__name__, kernel, make, expect, targets, launch)


# What goes in


def numpy_type(name: str) -> np.dtype[Any]:
    """The NumPy type of an element type."""
    special = {"bfloat16": ml_dtypes.bfloat16, "float8_e4m3": ml_dtypes.float8_e4m3fn}
    return np.dtype(special.get(name, name))


def numbers(shape: tuple[int, ...], dtype: str = "float32", *, seed: int = 0, most: int = 50) -> Array:
    """Whole numbers up to `most`: exact in every type, and so are their sums where `most` is small."""
    least = 0 if dtype.startswith("uint") else -most
    return np.random.default_rng(seed).integers(least, most + 1, shape).astype(numpy_type(dtype))


def indices(*words: int, dtype: str = "int32") -> Array:
    """These indices, as they stand."""
    return np.array(words, np.int64).astype(dtype)


def any_indices(shape: tuple[int, ...], below: int, *, seed: int = 0) -> Array:
    """Indices below a bound, duplicates among them."""
    return np.random.default_rng(seed).integers(0, below, shape).astype(np.int32)


def distinct_indices(shape: tuple[int, ...], below: int, *, seed: int = 0) -> Array:
    """Indices below a bound, no two alike."""
    count = int(np.prod(shape))
    return np.random.default_rng(seed).permutation(below)[:count].astype(np.int32).reshape(shape)


def tensor(buffer: Array, dtype: str, shape: tuple[int, ...], **more: Any) -> pto.GlobalTensor:
    """A tensor on a buffer, its shape padded with ones on the left."""
    return pto.GlobalTensor(buffer, dtype, (1,) * (5 - len(shape)) + shape, **more)


# What must come out: plain loops, which share nothing with the package


def remapped(index: int, capacity: int, oob: str) -> int | None:
    """The slot that an index stands for, its 32 bits taken as unsigned; None where nothing is moved."""
    word = int(index) % 2**32
    if word < capacity:
        return word
    return {"clamp": capacity - 1, "wrap": word % capacity}.get(oob)


def replace(_old: Array, new: Array) -> Array:
    """The merge of a plain store."""
    return new


def scatter_rows(table: Array, src: Array, idx: Array, oob: str = "skip", merge: Merge = replace) -> Array:
    """`table[idx[r]] = src[r]`, one row after the other."""
    out = table.copy()
    for r, index in enumerate(idx.ravel()):
        slot = remapped(index, len(out), oob)
        if slot is not None:
            out[slot] = merge(out[slot], src[r])
    return out


def scatter_elems(table: Array, src: Array, idx: Array, oob: str = "skip", merge: Merge = replace) -> Array:
    """`table.flat[idx[r, c]] = src[r, c]`, in row-major order."""
    out = table.ravel().copy()
    for value, index in zip(src.ravel(), idx.ravel(), strict=True):
        slot = remapped(index, out.size, oob)
        if slot is not None:
            out[slot : slot + 1] = merge(out[slot : slot + 1], np.asarray([value]))
    return out.reshape(table.shape)


def gather_rows(table: Array, idx: Array, oob: str = "zero") -> Array:
    """`table[idx[r]]`, row under row."""
    out = np.zeros((idx.size, table.shape[1]), table.dtype)
    for r, index in enumerate(idx.ravel()):
        slot = remapped(index, len(table), oob)
        if slot is not None:
            out[r] = table[slot]
    return out


def gather_elems(table: Array, idx: Array, oob: str = "zero") -> Array:
    """`table.flat[idx[r, c]]`."""
    out = np.zeros(idx.size, table.dtype)
    for at, index in enumerate(idx.ravel()):
        slot = remapped(index, table.size, oob)
        if slot is not None:
            out[at] = table.flat[slot]
    return out.reshape(idx.shape)


def from_nz(flat: Array, rows: int, cols: int) -> Array:
    """The logical matrix of packed NZ fractals with one outer batch."""
    out = np.zeros((rows, cols), flat.dtype)
    for r in range(rows):
        for c in range(cols):
            out[r, c] = flat[nz_place(r, c, rows, flat.dtype.itemsize)]
    return out


def to_nz(matrix: Array) -> Array:
    """The packed NZ fractals of a matrix, flat."""
    rows, cols = matrix.shape
    out = np.zeros(rows * cols, matrix.dtype)
    for r in range(rows):
        for c in range(cols):
            out[nz_place(r, c, rows, matrix.dtype.itemsize)] = matrix[r, c]
    return out


def nz_place(row: int, col: int, rows: int, itemsize: int) -> int:
    """Where (row, col) lies: block columns of 32 bytes, in each the rows one under the other."""
    wide = 32 // itemsize
    return (col // wide) * rows * wide + row * wide + col % wide
