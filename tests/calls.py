"""Small calls for the tests that stand beside the tables of the semantics."""

from __future__ import annotations

from typing import Any

import numpy as np

import ptokit as pto

Array = np.ndarray[Any, Any]


def row_index(*words: int, cols: int | None = None, dtype: str = "int32") -> pto.Tile:
    """A `[1,R]` index tile, padded to whole 32 bytes."""
    padded = cols or -(-len(words) // 8) * 8
    idx = pto.Tile(dtype, 1, padded, valid=(1, len(words)))
    idx.store(np.array([words], np.int64))
    return idx


def row_source(rows: int, width: int = 8, dtype: str = "float32", first: float = 100) -> pto.Tile:
    """Row r holds first + r in every column."""
    src = pto.Tile(dtype, rows, -(-width // 32) * 32, valid=(rows, width))
    src.store(np.repeat(first + np.arange(rows)[:, None], width, axis=1))
    return src


def elem_source(*values: float, dtype: str = "int32") -> pto.Tile:
    """One row of values."""
    src = pto.Tile(dtype, 1, -(-len(values) // 32) * 32, valid=(1, len(values)))
    src.store(np.array([values]))
    return src


def table(
    shape: tuple[int, ...],
    dtype: str = "float32",
    *,
    stride: tuple[int, ...] | None = None,
    extra: int = 0,
    **more: Any,
) -> tuple[pto.GlobalTensor, Array]:
    """A zeroed table with `extra` elements of owned memory behind it, and its buffer."""
    full = (1,) * (5 - len(shape)) + shape
    if stride is None:
        size = int(np.prod(full))
    else:
        size = 1 + sum((e - 1) * s for e, s in zip(full, stride, strict=True))
    buffer = np.zeros(size + extra, pto.Tile(dtype, 1, 32).dtype.numpy)
    return pto.GlobalTensor(buffer, dtype, full, stride, **more), buffer


def ids(findings: list[pto.Finding], *severities: str) -> set[str]:
    """The ids, of all or of these severities."""
    return {f.id for f in findings if not severities or f.severity in severities}


def only(findings: list[pto.Finding], id_: str) -> pto.Finding:
    """The one finding of that id."""
    (found,) = [f for f in findings if f.id == id_]
    return found
