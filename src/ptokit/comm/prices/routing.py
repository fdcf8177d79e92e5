"""What a sharded gather or scatter would take: indices and rows go to the ranks that own them, and back.

Nothing is drawn: the numbers are what is expected of rows that are chosen as the skew says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ptokit.comm.prices.staging import Times
from ptokit.comm.prices.work import LATENCY, LINK, UB, Work
from ptokit.errors import PtoTypeError, PtoValueError

EXPONENT = 1.1
"""Of a skew that is only called zipf."""
EXACT = 4096
"""So many of the most wanted rows are counted one by one, the others in bins."""
BINS = 512


@dataclass(frozen=True)
class Table:
    """A table in blocks of rows over all ranks, and which of its rows are wanted.

    `skew` is "uniform", or "zipf:1.2": row i, from 1 on, is wanted in proportion to `1 / i ** 1.2`, so that the first
    block has the most wanted rows, as where tokens are numbered by how frequent they are.

    >>> Table(1000, "uniform").shares(4).tolist()
    [0.25, 0.25, 0.25, 0.25]
    >>> Table(1000, "zipf:1").shares(2).round(2).tolist()
    [0.91, 0.09]
    """

    rows: int
    skew: str = "uniform"
    exponent: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "exponent", _exponent(self.skew))

    def shares(self, ranks: int) -> Times:
        """The part of all wanted rows that each rank owns."""
        borders = np.arange(ranks + 1) * self.rows // ranks
        found: Times = np.diff(_weight(borders, self.exponent)) / self.weight
        return found

    @property
    def weight(self) -> float:
        """The sum that makes shares of weights."""
        return float(_weight(np.array([self.rows]), self.exponent)[0])

    def distinct(self, wanted: int) -> float:
        """How many different rows are expected among so many.

        >>> Table(2).distinct(2), Table(1).distinct(5)
        (1.5, 1.0)
        """
        exact = np.arange(1, min(self.rows, EXACT) + 1, dtype=np.float64)
        edges = np.geomspace(EXACT + 0.5, self.rows + 0.5, BINS + 1) if self.rows > EXACT else np.zeros(1)
        middles = np.sqrt(edges[1:] * edges[:-1])
        place, count = np.concatenate([exact, middles]), np.concatenate([np.ones(len(exact)), np.diff(edges)])
        with np.errstate(divide="ignore"):
            missed = np.log1p(-np.minimum(place**-self.exponent / self.weight, 1.0))
        return float((count * -np.expm1(wanted * missed)).sum())


def _exponent(skew: object) -> float:
    if not isinstance(skew, str):
        raise PtoTypeError(f"skew is {skew!r}; uniform, zipf or zipf:1.2 is wanted")
    word, colon, number = skew.lower().partition(":")
    if (word, colon) == ("uniform", ""):
        return 0.0
    try:
        exponent = float(number) if colon else EXPONENT
    except ValueError:
        exponent = math.nan
    if word != "zipf" or not 0 < exponent <= 10:
        raise PtoValueError(f"skew={skew!r} is unknown; uniform, zipf or zipf:1.2 (above 0, at most 10) is wanted")
    return exponent


def _weight(upto: Any, exponent: float) -> Times:
    """The sum of `1 / i ** exponent` over the first so many rows: one by one, then as an integral."""
    head = np.concatenate([[0.0], np.cumsum(np.arange(1, EXACT + 1, dtype=np.float64) ** -exponent)])
    low, high = EXACT + 0.5, np.maximum(upto, EXACT) + 0.5
    if exponent == 1.0:
        tail = np.log(high / low)
    else:
        tail = (high ** (1 - exponent) - low ** (1 - exponent)) / (1 - exponent)
    found: Times = head[np.minimum(upto, EXACT)] + tail
    return found


@dataclass(frozen=True, eq=False)
class Routed:
    """One sharded access of every rank at once: seconds from the first message to the last rank that is done.

    `out_bytes` and `in_bytes` have a number a rank. `minimum_bytes` is what has to cross in any case: every row that a
    rank wants of another once, however often it wants it, with its index.
    """

    ranks: int
    seconds: float
    rank_seconds: Times
    phases: Mapping[str, float]
    bounds: Mapping[str, float]
    out_bytes: Times
    in_bytes: Times
    minimum_bytes: float

    @property
    def bottleneck(self) -> str:
        """What takes the longest whatever else there is."""
        return max(self.bounds, key=lambda name: self.bounds[name])

    @property
    def slowest(self) -> int:
        """The rank with the most to do."""
        return int(self.rank_seconds.argmax())

    @property
    def nbytes(self) -> float:
        """What crosses in all."""
        return float(self.out_bytes.sum())

    def as_dict(self) -> dict[str, Any]:
        """The price in JSON's own types; of the ranks the least, the median and the most."""
        told = {
            name: {"least": float(at.min()), "median": float(np.median(at)), "most": float(at.max())}
            for name, at in (("out", self.out_bytes), ("in", self.in_bytes))
        }
        return {
            "ranks": self.ranks,
            "seconds": self.seconds,
            "slowest_rank": {"rank": self.slowest, "seconds": float(self.rank_seconds.max())},
            "bytes": self.nbytes,
            "minimum_bytes": self.minimum_bytes,
            "bytes_of_a_rank": told,
            "bottleneck": self.bottleneck,
            "bounds": dict(self.bounds),
            "phases": dict(self.phases),
        }


@dataclass(frozen=True, eq=False)
class Exchange:
    """One alltoallv: what each rank sends and receives, and the most between two ranks."""

    out: Times
    into: Times
    pair: float

    def seconds(self, work: Work, ranks: int) -> Times:
        """Of each rank: its messages, then its bytes through its port and over its fullest link."""
        if ranks == 1:
            return np.zeros(1)
        link = work.links.link
        bytes_ = np.maximum(link.port(1.0) * np.maximum(self.out, self.into), link.wire(self.pair))
        found: Times = link.latency + (ranks - 1) * work.links.route.message_us * 1e-6 + bytes_
        return found


def price(work: Work, table: Table, ranks: int) -> Routed:
    """A sharded gather or scatter on so many ranks, each wanting `work.rows` rows."""
    shares = table.shares(ranks)
    exchanges = _exchanges(work, shares, ranks)
    applied = _applied(work, work.rows * ranks * shares)
    phases = {name: one.seconds(work, ranks) for name, one in exchanges.items()}
    # What a rank owns is read, or written, once all indices have come, and before rows go back.
    phases = {**phases, "rows at their owner": applied}
    link, several = work.links.link, len(exchanges) if ranks > 1 else 0
    bounds = {
        "the number of messages": several * (ranks - 1) * work.links.route.message_us * 1e-6,
        LATENCY: several * link.latency,
        "the port of the fullest rank": sum(link.port(_most(one)) for one in exchanges.values()),
        LINK: sum(link.wire(one.pair) for one in exchanges.values()),
        UB: float(applied.max()),
    }
    each = work.slice_bytes / work.rows + work.links.route.index_bytes
    return Routed(
        ranks=ranks,
        seconds=float(sum(one.max() for one in phases.values())),
        rank_seconds=np.sum(list(phases.values()), axis=0),
        phases={name: float(one.max()) for name, one in phases.items()},
        bounds=bounds,
        out_bytes=np.sum([one.out for one in exchanges.values()], axis=0),
        in_bytes=np.sum([one.into for one in exchanges.values()], axis=0),
        minimum_bytes=(ranks - 1) * table.distinct(work.rows) * each,
    )


def _most(one: Exchange) -> float:
    return float(max(one.out.max(), one.into.max()))


def _exchanges(work: Work, shares: Times, ranks: int) -> dict[str, Exchange]:
    """What is sent: how many come, then indices (a scatter sends the rows with them), then the rows of a gather."""
    index, row = work.links.route.index_bytes, work.slice_bytes / work.rows
    counts = np.full(ranks, (ranks - 1) * index)
    asks, asked = work.rows * (1 - shares), work.rows * (ranks - 1) * shares
    fullest = work.rows * float(shares.max()) if ranks > 1 else 0.0
    told = {"counts": Exchange(counts, counts, index if ranks > 1 else 0.0)}
    if work.op == "scatter":
        each = index + row
        return {**told, "indices and rows": Exchange(asks * each, asked * each, fullest * each)}
    return {
        **told,
        "indices": Exchange(asks * index, asked * index, fullest * index),
        "rows back": Exchange(asked * row, asks * row, fullest * row),
    }


def _applied(work: Work, rows: Times) -> Times:
    """Seconds in which each owner moves its rows: a tile at a time, row by row on the side of the table."""
    whole = np.ceil(rows - 1e-9)
    high = np.minimum(whole, work.tile[0]).astype(np.int64)
    each = {height: _tile_of_rows(work, height) for height in np.unique(high).tolist()}
    found: Times = np.ceil(whole / work.tile[0]) * np.array([each[height] for height in high.tolist()])
    return found


def _tile_of_rows(work: Work, rows: int) -> float:
    """One tile of rows in every column chunk: a burst a row in the table, one burst in what is sent or has come."""
    wide, rest = divmod(work.width, work.tile[1])
    chunks = [(work.tile[1], wide), (rest, 1 if rest else 0)]
    table, packed = ("load", "store") if work.op == "gather" else ("store", "load")
    return sum(
        count * (work.bursts(table, rows, cols) + work.moved(packed, rows, cols))
        for cols, count in chunks
        if count and rows
    )
