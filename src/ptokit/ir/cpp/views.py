"""Views of global memory: a pointer, extents and strides, and the GlobalTensor that they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Number = int | str
"""What is known while the C++ is written, or the expression that gives it at run time."""

RANK = 5


@dataclass(frozen=True)
class View:
    """What a view is made of; `shape` and `strides` have the rank of the text."""

    pointer: str
    dtype: str
    shape: tuple[Number, ...]
    strides: tuple[Number, ...]
    layout: str = "nd"

    def part(self, offsets: Sequence[Number], sizes: Sequence[Number]) -> View:
        """A part of it: the same strides, further on."""
        moved = total(times(offset, stride) for offset, stride in zip(offsets, self.strides, strict=True))
        pointer = self.pointer if moved == 0 else f"{self.pointer} + {moved}"
        return View(pointer, self.dtype, tuple(sizes), self.strides, self.layout)

    @property
    def five_extents(self) -> list[Number]:
        """The shape with ones on the left."""
        return [1] * (RANK - len(self.shape)) + list(self.shape)

    @property
    def five_strides(self) -> list[Number]:
        """The strides of five dimensions; those of extents that are not in the text are 1, and a row's its width."""
        missing = RANK - len(self.strides)
        lead: list[Number] = [1] * missing
        if missing == RANK - 1 and self.strides == (1,):
            lead[-1] = self.shape[0]
        return lead + list(self.strides)


def times(a: Number, b: Number) -> Number:
    """The product, as far as it is known.

    >>> times(16, 64), times(1, "rows"), times("rows", 64)
    (1024, 'rows', 'rows * 64')
    """
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if 0 in (a, b):
        return 0
    if a == 1:
        return b
    return a if b == 1 else f"{a} * {b}"


def total(numbers: object) -> Number:
    """The sum, as far as it is known.

    >>> total([0, "a * 4", 2, 3])
    'a * 4 + 5'
    """
    assert hasattr(numbers, "__iter__")
    every = list(numbers)
    known = sum(number for number in every if isinstance(number, int))
    words = [number for number in every if isinstance(number, str)]
    if not words:
        return known
    return " + ".join([*words, *([str(known)] if known else [])])


def packed(shape: Sequence[Number]) -> tuple[Number, ...]:
    """The strides of a tensor without gaps.

    >>> packed((4, "rows", 64))
    ('rows * 64', 64, 1)
    """
    strides: list[Number] = []
    reach: Number = 1
    for extent in reversed(shape):
        strides.insert(0, reach)
        reach = times(extent, reach)
    return tuple(strides)
