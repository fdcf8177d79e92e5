"""What a collective would take on more ranks than there are here: a model, no measurement.

The chunk schedule says what moves, the parameters of the target what each load and store takes, the link what lies
between two ranks. For thousands of ranks nothing is made for each chunk: see `staging`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ptokit import cost
from ptokit.comm.prices import routing
from ptokit.comm.prices.link import links
from ptokit.comm.prices.routing import Routed, Table
from ptokit.comm.prices.ways import WAYS, Price, Way
from ptokit.comm.prices.work import TARGETS, Work, check_size, check_tile, checked, facts
from ptokit.dtypes import element_type
from ptokit.errors import PtoTypeError, PtoValueError
from ptokit.targets import machine
from ptokit.tensors import whole

COLLECTIVES = ("tscatter", "tgather")
TABLES = ("gather", "scatter")
VARIANTS = ("single", "pingpong", "ccu")
TOPOLOGIES = ("flat", "tree")
MOST_RANKS = 1 << 20
NO_TREE = "does not pay here; it saves transfers where several slices fit in a tile, and moves no fewer bytes"


@dataclass(frozen=True)
class Curve:
    """One way to do it, on more and more ranks: a price for each number of ranks that it can do."""

    name: str
    prices: tuple[Price, ...] | tuple[Routed, ...]
    root_from: int | None = None
    """From so many ranks on the last rank waits for its turn longer than a whole call with one other rank takes."""
    why_not: str = ""
    """Why some numbers of ranks have no price."""
    note: str = ""

    def at(self, ranks: int) -> Price | Routed | None:
        """The price for so many ranks."""
        return next((one for one in self.prices if one.ranks == ranks), None)

    @property
    def sentence(self) -> str:
        """Where this way leads."""
        told = [one for one in (self.note, self.why_not) if one]
        if self.prices:
            most = self.prices[-1]
            told.insert(
                0, f"On {most.ranks:,} ranks {duration(most.seconds)}; what takes the most is {self._of_turns()}."
            )
        return " ".join([*told, *self._of_root()])

    @property
    def turns(self) -> list[tuple[int, str]]:
        """From which of the numbers of ranks on which bottleneck."""
        told = [(one.ranks, one.bottleneck) for one in self.prices]
        return [one for at, one in enumerate(told) if not at or told[at - 1][1] != one[1]]

    def _of_turns(self) -> str:
        first, *later = self.turns
        return "".join([first[1], *(f", from {ranks:,} ranks on {what}" for ranks, what in later)])

    def _of_root(self) -> list[str]:
        if not self.prices or isinstance(self.prices[0], Routed):
            return []
        if self.root_from is None:
            return ["No number of ranks that this can do makes the root the bottleneck."]
        return [
            f"From {self.root_from:,} ranks on the root is the bottleneck: the last rank waits for its turn longer "
            "than a whole call with one other rank takes."
        ]

    def as_dict(self) -> dict[str, Any]:
        """The curve in JSON's own types."""
        why = {"why_not": self.why_not} if self.why_not else {}
        return {
            "name": self.name,
            "root_from": self.root_from,
            "sentence": self.sentence,
            **why,
            "prices": [one.as_dict() for one in self.prices],
        }


@dataclass(frozen=True)
class Prices:
    """Every way that was asked for, side by side."""

    asked: Mapping[str, Any]
    curves: tuple[Curve, ...]
    tree_from: Mapping[str, int | None] = field(default_factory=dict)
    """By variant: from how many ranks on, up to the most that were asked for, the tree is faster than the flat root."""

    def __getitem__(self, name: str) -> Curve:
        """A curve by its name: "single flat", "pingpong tree", "ccu flat", "routed"."""
        found = {curve.name: curve for curve in self.curves}
        return found[checked(name, tuple(found), "curve")]

    @property
    def sentences(self) -> list[str]:
        """What there is to say, a curve at a time, and where the tree pays."""
        told = [f"{curve.name}: {curve.sentence}" for curve in self.curves]
        for variant, ranks in self.tree_from.items():
            where = f"is faster than the flat root from {ranks:,} ranks on" if ranks else NO_TREE
            told.append(f"{variant}: the tree {where}.")
        return told

    def as_dict(self) -> dict[str, Any]:
        """All of it in JSON's own types."""
        curves = [curve.as_dict() for curve in self.curves]
        return {"asked": dict(self.asked), "curves": curves, "tree_from": dict(self.tree_from)}


def price(
    op: str = "tscatter",
    *,
    ranks: int | Sequence[int] = (2, 4, 8, 16),
    rows: int = 64,
    width: int = 64,
    dtype: object = "float32",
    tile: tuple[int, int] = (16, 64),
    target: str = "a5",
    variant: str = "all",
    topology: str = "flat",
    link: Mapping[str, Any] | str | Path | None = None,
    parameters: Mapping[str, Any] | str | Path | None = None,
    table_rows: int = 1 << 20,
    skew: str = "uniform",
) -> Prices:
    """Price a collective, or a routed table, by the model of the link and of the target; nothing is moved.

    `op` is "tscatter" or "tgather": `rows` x `width` is the slice of one rank, `variant` is single, pingpong,
    ccu or all, `topology` flat, tree or both. Or "gather" or "scatter": every rank at once looks up, or updates, `rows`
    rows of a table of `table_rows` rows that is sharded over all; `skew` says which rows, "uniform" or "zipf:1.2".

    >>> found = price("tscatter", ranks=[4, 8], rows=16, width=64, target="a2a3", variant="single")
    >>> found["single flat"].root_from, found["single flat"].at(8).bottleneck
    (4, 'latency')
    """
    work = asked(op, rows=rows, width=width, dtype=dtype, tile=tile, target=target, link=link, parameters=parameters)
    counts = _counts(ranks)
    if work.op in TABLES:
        table = Table(_above_zero(table_rows, "table_rows"), skew)
        routed = tuple(routing.price(work, table, count) for count in counts)
        return Prices({**facts(work), "table_rows": table_rows, "skew": skew}, (Curve("routed", routed),))
    variants = VARIANTS if variant == "all" else (checked(variant, VARIANTS, "variant"),)
    shapes = TOPOLOGIES if topology == "both" else (checked(topology, TOPOLOGIES, "topology"),)
    check_tile(work.tile, work.dtype, work.target, max(work.tiles(one) for one in variants))
    curves = [_curve(work, one, shape, counts) for one in variants for shape in shapes if (one, shape) in WAYS]
    if not curves:
        raise PtoValueError("the CCU writes every slice from the root: topology='tree' is for single and pingpong")
    pays = {one: _tree_from(work, one, counts) for one in variants if len(shapes) == 2 and (one, "tree") in WAYS}
    return Prices(facts(work), tuple(curves), pays)


def predicted_order(prices: Prices, ranks: int, apart: float = 1.25) -> list[tuple[str, str]]:
    """Which way the model says is faster than which other, on so many ranks: pairs that differ by that factor at least.

    What holds a measurement against the model: of each pair the first should not be measured slower than the second.

    >>> found = price(ranks=[4], rows=16, width=16, topology="both", variant="pingpong", link={"latency": 50})
    >>> predicted_order(found, 4)
    [('pingpong tree', 'pingpong flat')]
    """
    told = {curve.name: one.seconds for curve in prices.curves if (one := curve.at(ranks)) is not None}
    by_time = sorted(told, key=lambda name: told[name])
    return [
        (fast, slow)
        for at, fast in enumerate(by_time)
        for slow in by_time[at + 1 :]
        if told[slow] >= apart * told[fast]
    ]


UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(0.00000125), duration(0.42), duration(180)
    ('1.25 us', '420 ms', '180 s')
    """
    unit, size = next((one for one in UNITS if seconds >= one[1]), UNITS[-1])
    told = seconds / size
    return f"{told:,.0f} {unit}" if told >= 100 else f"{told:.3g} {unit}"


# What was asked


def asked(
    op: str = "tscatter",
    *,
    rows: object = 64,
    width: object = 64,
    dtype: object = "float32",
    tile: object = (16, 64),
    target: str = "a5",
    link: Mapping[str, Any] | str | Path | None = None,
    parameters: Mapping[str, Any] | str | Path | None = None,
) -> Work:
    """What `price` is asked for, checked, with the numbers of the model.

    >>> asked("tscatter", rows=40).chunks
    3
    """
    name = machine(target).name
    if name not in TARGETS:
        raise PtoValueError(f"target={target!r} has no pipes that could be priced; take a2a3 or a5")
    element = element_type(dtype)
    if not isinstance(tile, Sequence) or isinstance(tile, str) or len(tile) != 2:
        raise PtoTypeError(f"tile is {tile!r}; its valid rows and columns are wanted, as in (16, 64)")
    work = Work(
        op=checked(op, COLLECTIVES + TABLES, "op"),
        rows=_above_zero(rows, "rows"),
        width=_above_zero(width, "width"),
        dtype=element,
        tile=(_above_zero(tile[0], "tile[0]"), _above_zero(tile[1], "tile[1]")),
        target=name,
        links=links(name, link),
        numbers=cost.parameters(name, parameters),
    )
    check_size(work.rows, work.width, element.itemsize)
    check_tile(work.tile, element, name, 1)
    return work


def _above_zero(value: object, what: str) -> int:
    number = whole(value, what)
    if number < 1:
        raise PtoValueError(f"{what} is {number}; 1 or more is wanted")
    return number


def _counts(ranks: object) -> list[int]:
    if isinstance(ranks, str):
        raise PtoTypeError(f"ranks is {ranks!r}; a number, or a list of numbers, is wanted")
    given = ranks if isinstance(ranks, Sequence | np.ndarray) else [ranks]
    counts = sorted({_above_zero(one, "ranks") for one in given})
    if not counts:
        raise PtoValueError("ranks is empty; a number of ranks is wanted")
    if counts[-1] > MOST_RANKS:
        raise PtoValueError(f"ranks has {counts[-1]}; at most {MOST_RANKS} are priced")
    return counts


# Curves


def _curve(work: Work, variant: str, shape: str, counts: Sequence[int]) -> Curve:
    most, why_not = limit(work, variant)
    way = WAYS[variant, shape]
    prices = tuple(way.price(work, variant, count) for count in counts if count <= most)
    refused = why_not if counts[-1] > most else ""
    alone = variant == "pingpong" and shape == "flat" and work.tiles(variant) == 1
    note = "A slice fits in the tile, so it goes through ping alone." if alone else ""
    return Curve(f"{variant} {shape}", prices, _root_from(work, variant, way, most), refused, note)


def limit(work: Work, variant: str) -> tuple[int, str]:
    """How many ranks a variant can do, and the sentence where that is not all."""
    if variant != "ccu":
        return MOST_RANKS, ""
    if work.target != "a5":
        return 0, f"{work.target} has no CCU: it is a unit of a5."
    most = work.links.ccu.most_ranks
    return most, f"The CCU takes at most {most} ranks, since the mask of a gate has no more bits."


def _root_from(work: Work, variant: str, way: Way, most: int) -> int | None:
    """The fewest ranks on which the last one waits for its turn longer than a call with one other rank takes."""
    if most < 3:
        return None
    alone = way.total(work, variant, 2)
    return _fewest(lambda ranks: way.total(work, variant, ranks) > 2 * alone, 3, most)


def _tree_from(work: Work, variant: str, counts: Sequence[int]) -> int | None:
    """Where the tree becomes faster for good, as far as was asked: between two of the numbers the curves cross once."""

    def pays(ranks: int) -> bool:
        tree, flat = (WAYS[variant, shape].total(work, variant, ranks) for shape in ("tree", "flat"))
        # What differs in the last digits is the same.
        return tree < flat * (1 - 1e-9)

    verdicts = [pays(count) for count in counts]
    if not verdicts[-1]:
        return None
    at = max((place for place, verdict in enumerate(verdicts) if not verdict), default=-1)
    low = counts[at] + 1 if at >= 0 else 2
    return _fewest(pays, low, counts[at + 1])


def _fewest(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """The smallest number for which it holds, of something that goes on to hold; mostly it is near the low end."""
    step = 1
    while not holds(probe := min(low + step - 1, high)):
        if probe == high:
            return None
        low, step = probe + 1, 2 * step
    high = probe
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
