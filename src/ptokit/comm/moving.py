"""Slices as the mover has them: where from, where to, and in which loops; data, worked out once for many calls."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ptokit.comm.words import Bytes, _native, address_of
from ptokit.tensors import GlobalTensor

LOOPS = 4
COLUMNS = 4 + 3 * LOOPS
Table = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Box:
    """Elements of a memory in five dimensions; offsets and strides in bytes."""

    memory: Bytes
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    @property
    def nbytes(self) -> int:
        """Of its elements."""
        return math.prod(self.shape) * self.itemsize

    @property
    def address(self) -> int:
        """Of its first element."""
        return address_of(self.memory) + self.offset

    def part(self, starts: Sequence[int], shape: Sequence[int]) -> Box:
        """A part of it."""
        offset = self.offset + sum(s * step for s, step in zip(starts, self.strides, strict=True))
        return Box(self.memory, offset, tuple(shape), self.strides, self.itemsize)

    def array(self) -> Any:
        """It, as an array of elements without a type."""
        element = np.dtype(f"V{self.itemsize}")
        if not self.nbytes:
            return np.empty(self.shape, element)
        first = self.memory[self.offset : self.offset + self.itemsize].view(element)
        return np.lib.stride_tricks.as_strided(first, self.shape, self.strides)


def box_of(tensor: GlobalTensor, memory: Bytes | None = None) -> Box:
    """A tensor as a box, on its own memory or on a memory of the same form."""
    size = tensor.dtype.itemsize
    return Box(
        tensor.memory.view(np.uint8) if memory is None else memory,
        tensor.base * size,
        tuple(tensor.shape),
        tuple(step * size for step in tensor.stride),
        size,
    )


def packed(shape: Sequence[int], itemsize: int, memory: Bytes | None = None) -> Box:
    """A box without gaps, on new memory where none is given."""
    strides, step = [], itemsize
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    if memory is None:
        memory = np.empty(math.prod(shape) * itemsize, np.uint8)
    return Box(memory, 0, tuple(shape), tuple(reversed(strides)), itemsize)


@dataclass(frozen=True)
class Loops:
    """A run of bytes without a gap, in loops from the outermost to the innermost: count, step here, step there."""

    run: int
    loops: tuple[tuple[int, int, int], ...]


def loops_of(to: Box, from_: Box) -> Loops:
    """The fewest loops in which one box is copied to another."""
    dims = [d for d in zip(to.shape, to.strides, from_.strides, strict=True) if d[0] != 1]
    dims.sort(key=lambda d: (-abs(d[2]), -abs(d[1])))
    run, loops = to.itemsize, list[tuple[int, int, int]]()
    for count, here, there in reversed(dims):
        if not loops and here == run and there == run:
            run *= count
        elif loops and (here, there) == tuple(step * loops[-1][0] for step in loops[-1][1:]):
            loops[-1] = (loops[-1][0] * count, *loops[-1][1:])
        else:
            loops.append((count, here, there))
    return Loops(run, tuple(reversed(loops)))


def moves(to: Box, from_: Box, *, stays: bool = False) -> Table:
    """The rows that the compiled mover reads for one copy; one, but for five loops.

    What `stays` is read again soon, and is kept in the caches.
    """
    if not to.nbytes:
        return np.zeros((0, COLUMNS), np.int64)
    found = loops_of(to, from_)
    outer, inner = found.loops[:-LOOPS], found.loops[-LOOPS:]
    inner = ((1, 0, 0),) * (LOOPS - len(inner)) + inner
    rows = []
    for at in itertools.product(*(range(count) for count, _, _ in outer)):
        here = sum(k * loop[1] for k, loop in zip(at, outer, strict=True))
        there = sum(k * loop[2] for k, loop in zip(at, outer, strict=True))
        columns = [number for column in range(3) for number in (loop[column] for loop in inner)]
        rows.append([to.address + here, from_.address + there, found.run, *columns, not stays])
    return np.array(rows, np.int64)


def together(tables: Iterable[Table]) -> Table:
    """Several copies, one after the other."""
    return np.concatenate([*tables, np.zeros((0, COLUMNS), np.int64)])


def copy(to: Box, from_: Box) -> None:
    """Copy one box to another of the same shape."""
    if not to.nbytes:
        return
    if _native:
        table = moves(to, from_)
        _native.move_all(table.ctypes.data, len(table), False)
    else:
        to.array()[...] = from_.array()


def runs(box: Box) -> tuple[npt.NDArray[np.int64], int, bool]:
    """The runs without a gap of a box in the order of its elements: offsets, length, and whether it is only one."""
    length, kept = box.itemsize, len(box.shape)
    while kept and (box.shape[kept - 1] == 1 or box.strides[kept - 1] == length):
        kept -= 1
        length *= box.shape[kept]
    offsets = np.array([box.offset], np.int64)
    for extent, step in zip(box.shape[:kept], box.strides[:kept], strict=True):
        offsets = (offsets[:, None] + np.arange(extent) * step).reshape(-1)
    return offsets, length, len(offsets) == 1
