"""A second meaning of pto.scatter and pto.gather: one element after the other, sharing no code with the package."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def slot_of(word: int, bits: int, slots: int, oob: str) -> int | None:
    """The slot of an index word, None where it is dropped; 'raise' is an IndexError."""
    taken = int(word % 2**bits)
    if taken < slots:
        return taken
    if oob == "raise":
        raise IndexError(word)
    if oob == "clamp":
        return slots - 1
    return taken % slots if oob == "wrap" else None


def fold(there: Any, comes: Any, atomic: str) -> Any:
    """What stands in an element after one writer."""
    if atomic == "none":
        return comes
    if atomic == "add":
        with np.errstate(all="ignore"):
            return (np.asarray([there]) + np.asarray([comes]))[0]
    better = comes > there if atomic == "max" else comes < there
    return comes if better else there


def scatter(table: Array, src: Array, idx: Array, coalesce: str, atomic: str, oob: str) -> Array:
    """The table after the call."""
    result = table.copy()
    rows = result.reshape(len(table), -1) if coalesce == "row" else result.reshape(-1, 1)
    lanes = src.reshape(idx.size, rows.shape[1])
    slots = [slot_of(int(word), idx.dtype.itemsize * 8, len(rows), oob) for word in idx.ravel()]
    for lane, slot in enumerate(slots):
        if slot is None:
            continue
        for column in range(rows.shape[1]):
            rows[slot, column] = fold(rows[slot, column], lanes[lane, column], atomic)
    return result


def gather(table: Array, idx: Array, coalesce: str, oob: str) -> Array:
    """The result of the call."""
    rows = table.reshape(len(table), -1) if coalesce == "row" else table.reshape(-1, 1)
    result = np.zeros((idx.size, rows.shape[1]), table.dtype)
    for lane, word in enumerate(idx.ravel()):
        slot = slot_of(int(word), idx.dtype.itemsize * 8, len(rows), oob)
        if slot is not None:
            result[lane] = rows[slot]
    return result.reshape(idx.shape + (table.shape[1:] if coalesce == "row" else ()))
