"""Stretches of bytes: what an access touches, and where two of them meet."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ptokit.access.plan import Array, Lanes
from ptokit.tensors import GlobalTensor, Tile

UB = -1
"""The space of the unified buffer; the buffers of global memory count from 0."""


@dataclass(frozen=True)
class Region:
    """Bytes of one space: `count` stretches of `length` bytes, `pitch` apart, or wherever `places` says."""

    space: int
    low: int
    high: int  # one past the last byte
    length: int
    count: int = 1
    pitch: int = 0
    places: Lanes | None = field(default=None, compare=False)

    @cached_property
    def starts(self) -> Lanes:
        """Where the stretches begin, ascending."""
        if self.places is not None:
            return np.unique(self.places)
        return self.low + np.arange(self.count, dtype=np.int64) * self.pitch

    @property
    def is_solid(self) -> bool:
        """One stretch without gaps."""
        return self.places is None and (self.count == 1 or self.pitch == self.length)

    @property
    def nbytes(self) -> int:
        """Bytes that are touched."""
        return self.length * (self.count if self.places is None else len(self.places))

    def of(self, memory: Array) -> Array:
        """These elements of a memory with one entry per byte (a rectangle: without places)."""
        if self.count == 1:
            return memory[self.low : self.high]
        # The last row has no gap behind it that must exist: memory has slack behind the last address.
        whole = memory[self.low : self.low + self.count * self.pitch]
        return whole.reshape(self.count, self.pitch)[:, : self.length]


def solid(space: int, low: int, high: int) -> Region:
    """One stretch."""
    return Region(space, low, high, high - low)


def scattered(space: int, places: Lanes, length: int) -> Region:
    """Stretches of equal length, anywhere."""
    if not len(places):
        return Region(space, 0, 0, 0, 0)
    return Region(space, int(places.min()), int(places.max()) + length, length, len(places), 0, places)


def meet(one: Region, other: Region) -> int | None:
    """The first byte that both touch, or None."""
    low, high = max(one.low, other.low), min(one.high, other.high)
    if one.space != other.space or low >= high:
        return None
    if one.is_solid and other.is_solid:
        return low
    a, b = one.starts, other.starts
    before = np.searchsorted(a, b, "right") - 1
    reach = np.where(before >= 0, a[np.maximum(before, 0)] + one.length, np.iinfo(np.int64).min)
    hit = np.flatnonzero(reach > b)
    after = np.minimum(before + 1, len(a) - 1)
    ahead = np.flatnonzero((a[after] > b) & (a[after] < b + other.length))
    found = [int(b[hit[0]])] if len(hit) else []
    found += [int(a[after[ahead[0]]])] if len(ahead) else []
    return min(found, default=None)


def of_tile(tile: Tile, address: int) -> list[Region]:
    """The bytes of a tile's valid region, from where the tile begins: one rectangle, NZ one per block of columns."""
    (rows, cols), size = tile.valid, tile.dtype.itemsize
    if not rows or not cols:
        return []
    if tile.layout == "nd":
        return [_rectangle(address, rows, cols * size, tile.cols * size)]
    if tile.layout == "dn":
        return [_rectangle(address, cols, rows * size, tile.rows * size)]
    block, c0 = tile.rows * 32, tile.dtype.c0
    return [
        _rectangle(address + first // c0 * block, rows, min(c0, cols - first) * size, 32)
        for first in range(0, cols, c0)
    ]


def _rectangle(low: int, count: int, length: int, pitch: int) -> Region:
    if count == 1 or pitch == length:
        return solid(UB, low, low + count * length)
    return Region(UB, low, low + (count - 1) * pitch + length, length, count, pitch)


def _is_dense(tensor: GlobalTensor) -> bool:
    """Packed in some order of its dimensions: no gap, and no element twice."""
    step = 1
    for stride, extent in sorted(zip(tensor.stride, tensor.shape, strict=True)):
        if extent > 1 and stride != step:
            return False
        step *= extent
    return True


def of_tensor(tensor: GlobalTensor, space: int, offset: int) -> Region:
    """The bytes of a tensor in its buffer; `offset` is where the tensor's memory begins in it."""
    size = tensor.dtype.itemsize
    low, high = tensor.footprint
    first, last = offset + (tensor.base + low) * size, offset + (tensor.base + high) * size
    if tensor.is_packed or (tensor.size == high - low and _is_dense(tensor)):
        return solid(space, first, last)
    rows = (
        np.arange(extent, dtype=np.int64) * step
        for extent, step in zip(tensor.shape[:4], tensor.stride[:4], strict=True)
    )
    total = np.zeros(1, np.int64)
    for dim in rows:
        total = (total[:, None] + dim).ravel()
    length = size
    if tensor.stride[4] == 1 or tensor.shape[4] == 1:
        length = tensor.shape[4] * size
    else:
        total = (total[:, None] + np.arange(tensor.shape[4]) * tensor.stride[4]).ravel()
    return scattered(space, first + total * size, length)
