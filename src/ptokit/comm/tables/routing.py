"""From global rows to their owners: whose a row is, what a policy makes of an index, and who gets which lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from ptokit.arrays import gather
from ptokit.comm.words import Bytes
from ptokit.errors import PtoTypeError, PtoValueError
from ptokit.policies import ArrayGatherOOB, ArrayScatterOOB, word
from ptokit.tensors import whole

Array = npt.NDArray[Any]

FEW_RANKS = 16
"""Up to so many, comparing with each border is faster than searching among them."""


@dataclass(frozen=True)
class Blocks:
    """How many rows each rank owns; rank r has those from `firsts[r]` on."""

    counts: tuple[int, ...]

    @classmethod
    def even(cls, rows: int, size: int) -> Blocks:
        """As even as possible, the longer ones first.

        >>> Blocks.even(7, 3).counts
        (3, 2, 2)
        """
        least, more = divmod(rows, size)
        return cls(tuple(least + (rank < more) for rank in range(size)))

    @classmethod
    def given(cls, blocks: object, rows: int, size: int) -> Blocks:
        """Blocks as the caller wants them; None: even ones."""
        if blocks is None:
            return cls.even(rows, size)
        if isinstance(blocks, (str, bytes)) or not isinstance(blocks, (Sequence, np.ndarray)):
            raise PtoTypeError(f"blocks={blocks!r}; the rows of each rank are wanted, as a list of {size} numbers")
        counts = tuple(whole(count, f"blocks[{rank}]") for rank, count in enumerate(blocks))
        if len(counts) != size:
            raise PtoValueError(f"blocks={list(counts)} is for {len(counts)} ranks, and this world has {size}")
        if min(counts) < 0:
            raise PtoValueError(f"blocks={list(counts)} has a negative number of rows")
        if sum(counts) != rows:
            raise PtoValueError(f"blocks={list(counts)} has {sum(counts)} rows, and the table {rows}")
        return cls(counts)

    @cached_property
    def firsts(self) -> tuple[int, ...]:
        """The first row of each rank."""
        return tuple(accumulate(self.counts, initial=0))[:-1]

    @property
    def rows(self) -> int:
        """Of all ranks."""
        return sum(self.counts)

    @property
    def wire(self) -> np.dtype[Any]:
        """The integer that a row within a block is sent as."""
        return np.dtype(np.uint32 if max(self.counts) <= 1 << 32 else np.uint64)

    def owners(self, rows: Array) -> npt.NDArray[np.uint16]:
        """The rank that owns each of these rows (uint64, all of them in the table)."""
        ends = [np.uint64(end) for end in accumulate(self.counts)][:-1]
        if len(self.counts) > FEW_RANKS:
            return np.searchsorted(np.array(ends, np.uint64), rows, side="right").astype(np.uint16)
        owner = np.zeros(len(rows), np.uint16)
        for end in ends:
            owner += rows >= end
        return owner


@dataclass(frozen=True)
class Taken:
    """What a policy makes of a rank's indices: lane `lanes[i]` moves row `rows[i]`; no `lanes`: lane i does."""

    rows: Array
    lanes: Array | None
    count: int
    bad: tuple[tuple[int, ...], int] | None = None
    """Under `raise`: the place and the value of the first index that is no row."""

    @property
    def dropped(self) -> Array:
        """The lanes that move nothing."""
        left_out = np.ones(self.count, bool)
        left_out[slice(None) if self.lanes is None else self.lanes] = False
        return left_out


def take(index: Array, capacity: int, policy: ArrayScatterOOB | ArrayGatherOOB) -> Taken:
    """The rows that indices stand for; by the rules of `pto.scatter` and `pto.gather`.

    >>> take(np.array([2, -1], np.int32), 3, ArrayScatterOOB.Skip).rows
    array([2], dtype=uint64)
    """
    words = np.ascontiguousarray(index).reshape(-1).view(f"u{index.dtype.itemsize}")
    out = words >= np.uint64(capacity)
    rows = words.astype(np.uint64, copy=False)
    if not out.any():
        return Taken(rows, None, index.size)
    if policy.name == "Raise":
        first = int(out.argmax())
        place = tuple(int(at) for at in np.unravel_index(first, index.shape))
        return Taken(rows[:0], None, index.size, (place, int(index.reshape(-1)[first])))
    if policy.name in ("Skip", "Zero"):
        lanes = np.flatnonzero(~out)
        return Taken(rows[lanes], lanes, index.size)
    if not capacity:
        raise PtoValueError(f"oob={word(policy)!r} needs a row, and the table has none")
    moved = np.minimum(rows, np.uint64(capacity - 1)) if policy.name == "Clamp" else rows % np.uint64(capacity)
    return Taken(moved, None, index.size)


@dataclass(frozen=True)
class Routes:
    """A rank's lanes, sorted by owner and within an owner in their own order: `lanes[r]` move rows `rows[r]` of r.

    `lanes[r]` is None where r owns the rows of all lanes: nothing has to be sorted or packed.
    """

    lanes: tuple[Array | None, ...]
    rows: tuple[Array, ...]

    @classmethod
    def of(cls, taken: Taken, blocks: Blocks) -> Routes:
        """One stable sort; the rows of each owner are counted from its first."""
        owners = blocks.owners(taken.rows)
        counts = np.bincount(owners, minlength=len(blocks.counts))
        only = int(counts.argmax()) if counts.max() == taken.count else -1
        narrow = owners.astype(np.uint8) if len(counts) <= 256 else owners
        order = None if only >= 0 else np.argsort(narrow, kind="stable")  # a radix sort for so narrow a type
        ends = np.cumsum(counts)
        lanes: list[Array | None] = []
        rows: list[Array] = []
        for rank, first in enumerate(blocks.firsts):
            mine = slice(int(ends[rank] - counts[rank]), int(ends[rank]))
            chosen = None if order is None else order[mine]
            there = taken.rows[mine] if chosen is None else taken.rows[chosen]
            rows.append((there - np.uint64(first)).astype(blocks.wire))
            lanes.append(None if rank == only else cls._in_call(taken, chosen))
        return cls(tuple(lanes), tuple(rows))

    @staticmethod
    def _in_call(taken: Taken, chosen: Array | None) -> Array:
        """Which lanes of the call these are, where some were dropped before."""
        if chosen is None:
            return np.empty(0, np.intp)
        return chosen if taken.lanes is None else taken.lanes[chosen]

    def packed(self, rank: int, src: Array) -> Bytes:
        """The message of a scatter to a rank: its rows' numbers, then what comes into them."""
        rows, lanes = self.rows[rank], self.lanes[rank]
        nbytes = len(rows) * src.shape[1] * src.itemsize
        message: Bytes = np.empty(rows.nbytes + nbytes, np.uint8)
        if len(rows):
            message[: rows.nbytes] = rows.view(np.uint8)
            there = message[rows.nbytes :].view(src.dtype).reshape(len(rows), src.shape[1])
            if lanes is None:
                there[:] = src
            else:
                gather(src, lanes, out=there)
        return message


def unpacked(message: Bytes, wire: np.dtype[Any], width: int, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """The rows' numbers and what comes into them, as `Routes.packed` has put them."""
    count = message.nbytes // (wire.itemsize + width * dtype.itemsize)
    split = count * wire.itemsize
    return message[:split].view(wire), message[split:].view(dtype).reshape(count, width)


@dataclass(frozen=True)
class Traffic:
    """The bytes of the last call of a rank, to and from each rank; its own are not counted.

    `least_sent` and `least_received` are the rows alone, each lane's once: what has to cross however it is routed.
    """

    sent: tuple[int, ...]
    received: tuple[int, ...]
    least_sent: tuple[int, ...]
    least_received: tuple[int, ...]

    @property
    def over(self) -> float:
        """How many times the least was moved; 1.0 where nothing had to."""
        least = sum(self.least_sent) + sum(self.least_received)
        return (sum(self.sent) + sum(self.received)) / least if least else 1.0

    def __str__(self) -> str:
        return f"{sum(self.sent)} bytes sent, {sum(self.received)} received: {self.over:.3f} of the least"
