"""The ways in which a root can serve its ranks, and what each would take: flat, as a tree, by the CCU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptokit.comm.prices import staging
from ptokit.comm.prices.staging import START, Times
from ptokit.comm.prices.work import LATENCY, LINK, PORT, Work


@dataclass(frozen=True, eq=False)
class Price:
    """One collective on so many ranks, in seconds from the root's first step; `first` and `last` have a time a rank.

    Of TSCATTER, the times at which the first piece and all of a rank's slice are there; of TGATHER, the times at which
    they are in the root's memory. `bounds` are times that nothing could beat, by what is in the way: the longest is the
    bottleneck.
    """

    ranks: int
    seconds: float
    root_seconds: float
    first: Times
    last: Times
    bounds: Mapping[str, float]
    nbytes: int

    @property
    def bottleneck(self) -> str:
        """What takes the longest whatever else there is."""
        return max(self.bounds, key=lambda name: self.bounds[name])

    def as_dict(self) -> dict[str, Any]:
        """The price in JSON's own types; of the arrivals the first, the middle and the last rank's."""
        told = {
            name: {"earliest": float(at.min()), "median": float(np.median(at)), "latest": float(at.max())}
            for name, at in (("first_piece", self.first), ("whole_slice", self.last))
        }
        return {
            "ranks": self.ranks,
            "seconds": self.seconds,
            "root_seconds": self.root_seconds,
            "bytes": self.nbytes,
            "bottleneck": self.bottleneck,
            "bounds": dict(self.bounds),
            "arrivals": told,
        }


# The flat root: a slice after the other


def _flat_total(work: Work, variant: str, ranks: int) -> float:
    tiles = work.tiles(variant)
    own = staging.after(work.block(1, tiles, remote=False), START)
    others = staging.repeated(work.block(1, tiles, remote=True), ranks - 1)
    return float(staging.after(others, own)[staging.DONE])


def _flat(work: Work, variant: str, ranks: int) -> Price:
    tiles = work.tiles(variant)
    own, first_own = (make(1, tiles, remote=False) for make in (work.block, work.first_chunk))
    one, first = (make(1, tiles, remote=True) for make in (work.block, work.first_chunk))
    ends = staging.states(one, staging.after(own, START), ranks)
    begins = staging.after(first, ends[:-1])
    last = ends[:, staging.DONE]
    begun = np.concatenate([staging.after(first_own, START)[None], begins])[:, staging.DONE]
    bounds = {name: (ranks - 1) * seconds for name, seconds in work.bounds(1, tiles).items()}
    total = float(last[-1])
    return Price(ranks, total, total, begun, last, bounds, (ranks - 1) * work.slice_bytes)


# The tree: whoever holds slices hands on half of them


def _halves(ranks: int) -> Iterator[int]:
    """What the root hands over, round by round.

    >>> list(_halves(11))
    [5, 3, 1, 1]
    """
    while ranks > 1:
        yield ranks // 2
        ranks -= ranks // 2


def _sent(work: Work, variant: str, slices: int) -> float:
    """Seconds for one block of slices from one rank to another, begun and ended with empty tiles."""
    made = work.block(slices, work.tiles(variant, slices), remote=True)
    return float(staging.after(made, START)[staging.DONE])


def _own(work: Work, variant: str) -> float:
    """Seconds for the root's own slice."""
    return float(staging.after(work.block(1, work.tiles(variant), remote=False), START)[staging.DONE])


def _own_piece(work: Work, variant: str) -> float:
    """Seconds for the first chunk of it."""
    return float(staging.after(work.first_chunk(1, work.tiles(variant), remote=False), START)[staging.DONE])


def _tree_total(work: Work, variant: str, ranks: int) -> float:
    # A rank that got fewer slices than its sender kept is done before it, so the root's own rounds are all.
    return sum(_sent(work, variant, half) for half in _halves(ranks)) + _own(work, variant)


def _tree(work: Work, variant: str, ranks: int) -> Price:
    first, last = _descent(work, variant, ranks)
    total = _tree_total(work, variant, ranks)
    if work.is_scatter:
        first[0], last[0] = total - _own(work, variant) + _own_piece(work, variant), total
    else:
        first, last = _ascent(work, variant, ranks)
    bounds: dict[str, float] = {}
    for half in _halves(ranks):
        for name, seconds in work.bounds(half, work.tiles(variant, half)).items():
            bounds[name] = bounds.get(name, 0.0) + seconds
    bounds = bounds or dict.fromkeys(work.bounds(1, 1), 0.0)
    return Price(ranks, total, total, first, last, bounds, _tree_bytes(ranks) * work.slice_bytes)


def _tree_bytes(ranks: int) -> int:
    """How often a slice crosses a link: once for each holder on its way.

    >>> [_tree_bytes(ranks) for ranks in (1, 2, 3, 4, 8)]
    [0, 1, 2, 4, 12]
    """
    moved, blocks = 0, {ranks: 1}
    while blocks:
        following: dict[int, int] = {}
        for slices, count in blocks.items():
            if slices > 1:
                half = slices // 2
                moved += half * count
                for part in (half, slices - half):
                    following[part] = following.get(part, 0) + count
        blocks = following
    return moved


def _descent(work: Work, variant: str, ranks: int) -> tuple[Times, Times]:
    """When the first piece of each rank's block, and all of it, arrives; the root's own are 0 here."""
    first, last = np.zeros(ranks), np.zeros(ranks)
    holder, slices, now = np.zeros(1, np.int64), np.full(1, ranks), np.zeros(1)
    while (slices > 1).any():
        half = slices // 2
        sent, begun = np.zeros(len(half)), np.zeros(len(half))
        for size in np.unique(half[half > 0]).tolist():
            tiles = work.tiles(variant, size)
            piece = staging.after(work.first_chunk(size, tiles, remote=True), START)
            sent[half == size], begun[half == size] = _sent(work, variant, size), piece[staging.DONE]
        to = (holder + slices - half)[half > 0]
        first[to], last[to] = (now + begun)[half > 0], (now + sent)[half > 0]
        holder = np.concatenate([holder, to])
        now = np.concatenate([now + sent, last[to]])
        slices = np.concatenate([slices - half, half[half > 0]])
    return first, last


def _ascent(work: Work, variant: str, ranks: int) -> tuple[Times, Times]:
    """When each rank's slice is in the root's memory: as the descent, from its end to its beginning.

    A rank collects from the nearest first, so what the root collects last is the largest block.
    """
    first, last = np.zeros(ranks), np.zeros(ranks)
    now = _own(work, variant)
    first[0], last[0] = _own_piece(work, variant), now
    place = 1
    for half in reversed(list(_halves(ranks))):
        piece = staging.after(work.first_chunk(half, work.tiles(variant, half), remote=True), START)[staging.DONE]
        first[place : place + half] = now + piece
        now += _sent(work, variant, half)
        last[place : place + half] = now
        place += half
    return first, last


# The CCU: every slice from the root's memory into the rank's, without UB


@dataclass(frozen=True, eq=False)
class ByCcu:
    """When each slice leaves, and when it is there: through the one port in turn, each over a link of its own."""

    gates: float
    trip: float
    barrier: float
    leaves: Times
    there: Times

    @classmethod
    def of(cls, work: Work, ranks: int) -> ByCcu:
        """A call on so many ranks; a barrier of all ends it."""
        link, unit = work.links.link, work.links.ccu
        wire, port, issue = link.wire(work.slice_bytes), link.port(work.slice_bytes), unit.issue_us * 1e-6
        barrier = unit.barrier_trips * link.latency
        # A gather has a barrier before its data path too: every rank may have stored its own input first.
        gates = unit.gate_us * 1e-6 + (0.0 if work.is_scatter else barrier)
        trip = link.latency * (1.0 if work.is_scatter else link.read_trips)
        sent, other = gates + np.arange(1, ranks + 1) * issue, np.arange(1, ranks)
        # A slice has passed the port when it has been sent off and those before it have passed.
        passed = np.maximum(sent[1:], gates + 2 * issue + (other - 1) * port) + port
        there = np.maximum(passed, sent[1:] + wire) + trip
        # The root's own slice takes no link; its memory is taken to be as fast as the port.
        return cls(
            gates=gates,
            trip=trip,
            barrier=barrier,
            leaves=np.concatenate([sent[:1], passed - port]),
            there=np.concatenate([sent[:1] + port, there]),
        )

    @property
    def end(self) -> float:
        """When all slices are there."""
        return float(self.there.max())


def _ccu_total(work: Work, variant: str, ranks: int) -> float:
    return _ccu(work, variant, ranks).seconds


def _ccu(work: Work, variant: str, ranks: int) -> Price:
    times, link = ByCcu.of(work, ranks), work.links.link
    bounds = {
        "gates and barrier": times.gates + times.barrier,
        LATENCY: times.trip,
        LINK: link.wire(work.slice_bytes) if ranks > 1 else 0.0,
        PORT: (ranks - 1) * link.port(work.slice_bytes),
        "sending slices off": ranks * work.links.ccu.issue_us * 1e-6,
    }
    first = times.leaves + np.where(np.arange(ranks) > 0, times.trip, 0.0)
    nbytes = (ranks - 1) * work.slice_bytes
    return Price(ranks, times.end + times.barrier, times.end - times.gates, first, times.there, bounds, nbytes)


@dataclass(frozen=True)
class Way:
    """How one combination of variant and topology is priced, and its total alone."""

    price: Callable[[Work, str, int], Price]
    total: Callable[[Work, str, int], float]


WAYS: dict[tuple[str, str], Way] = {
    ("single", "flat"): Way(_flat, _flat_total),
    ("single", "tree"): Way(_tree, _tree_total),
    ("pingpong", "flat"): Way(_flat, _flat_total),
    ("pingpong", "tree"): Way(_tree, _tree_total),
    ("ccu", "flat"): Way(_ccu, _ccu_total),
}
"""What can be done; a CCU has no tree."""
