"""In what pieces a collective moves its slices: data that the mover, the simulated core, prices and traces read.

A slice is what one rank gets, or gives: `<d0, d1, d2, H, W>`. It goes through a staging tile whole where the tile has
room, else in chunks of the tile's valid extents, row chunks outside of column chunks (SEMANTICS 4).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Extents = tuple[int, int, int, int, int]


class Chunk(NamedTuple):
    """One load and one store through a staging tile."""

    rank: int
    d0: int
    d1: int
    d2: int
    row: int
    rows: int
    col: int
    cols: int
    tile: int
    """0 is ping, 1 is pong."""


@dataclass(frozen=True, eq=False)
class Schedule:
    """Every chunk of a collective, in the order in which the root moves them; a row of `table` is a `Chunk`."""

    slice: Extents
    ranks: int
    tile: tuple[int, int]
    fits: bool
    """A whole slice goes through the tile: `rows` then counts those of all outer dimensions."""
    uses_pong: bool
    table: Numbers

    def __iter__(self) -> Iterator[Chunk]:
        return (Chunk(*row) for row in self.table.tolist())

    def __len__(self) -> int:
        return len(self.table)

    def column(self, name: str) -> Numbers:
        """One number of every chunk: `schedule.column("rows")`."""
        found: Numbers = self.table[:, Chunk._fields.index(name)]
        return found

    @property
    def chunks_per_rank(self) -> int:
        """How many chunks one slice takes."""
        return len(self.table) // self.ranks if self.ranks else 0


def fits(slice_: Extents, valid: tuple[int, int]) -> bool:
    """A whole slice has room in the tile."""
    return math.prod(slice_[:4]) <= valid[0] and slice_[4] <= valid[1]


def chunked(slice_: Extents, ranks: int, valid: tuple[int, int], pong: bool = False) -> Schedule:
    """The schedule of slices of this shape through tiles of these valid extents.

    >>> [(c.rank, c.row, c.rows, c.tile) for c in chunked((1, 1, 1, 6, 8), 2, (4, 8), pong=True)]
    [(0, 0, 4, 0), (0, 4, 2, 1), (1, 0, 4, 0), (1, 4, 2, 1)]
    """
    if not ranks or not math.prod(slice_):
        return Schedule(slice_, ranks, valid, True, False, np.zeros((0, len(Chunk._fields)), np.int64))
    if fits(slice_, valid):
        return Schedule(slice_, ranks, valid, True, False, _whole_slices(slice_, ranks))
    rows, cols = (np.arange(0, extent, step) for extent, step in zip(slice_[3:], valid, strict=True))
    outer: Any = (np.arange(ranks), *(np.arange(extent) for extent in slice_[:3]), rows, cols)
    rank, d0, d1, d2, row, col = (axis.reshape(-1) for axis in np.meshgrid(*outer, indexing="ij"))
    high, wide = np.minimum(valid[0], slice_[3] - row), np.minimum(valid[1], slice_[4] - col)
    turn = np.arange(len(rank)) % 2 if pong else np.zeros(len(rank), np.int64)
    table = np.stack([rank, d0, d1, d2, row, high, col, wide, turn], axis=1).astype(np.int64)
    return Schedule(slice_, ranks, valid, False, pong, table)


def _whole_slices(slice_: Extents, ranks: int) -> Numbers:
    table = np.zeros((ranks, len(Chunk._fields)), np.int64)
    table[:, 0] = np.arange(ranks)
    table[:, Chunk._fields.index("rows")] = math.prod(slice_[:4])
    table[:, Chunk._fields.index("cols")] = slice_[4]
    return table
