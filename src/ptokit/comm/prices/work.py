"""What is priced: a collective on slices of one shape, and what each of its chunks takes on its target."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Any

from ptokit import cost
from ptokit.comm.prices import staging
from ptokit.comm.prices.link import GIB, Links
from ptokit.comm.prices.staging import Step, Times
from ptokit.comm.schedule import chunked, fits
from ptokit.core.placement import MOST_USABLE, SIZE
from ptokit.cost import Parameters
from ptokit.dtypes import ElementType
from ptokit.errors import PtoValueError, listed, nearest
from ptokit.tensors import MOST_BYTES

TARGETS = ("a2a3", "a5")
USABLE = {"a2a3": SIZE["a2a3"], "a5": MOST_USABLE}
"""Bytes of UB that staging tiles may take."""
MOST_CHUNKS = 1 << 20
"""Of one row of chunks."""


@dataclass(frozen=True)
class Run:
    """So many chunks of one size in a row."""

    rows: int
    cols: int
    count: int


@dataclass(frozen=True)
class Part:
    """Runs that come again so many times."""

    runs: tuple[Run, ...]
    times: int


@lru_cache(maxsize=4096)
def parts(rows: int, width: int, tile: tuple[int, int]) -> tuple[Part, ...]:
    """The chunk schedule of `rows` rows, read row of chunks by row of chunks: all but the last are alike.

    >>> parts(35, 100, (16, 64))  # doctest: +NORMALIZE_WHITESPACE
    (Part(runs=(Run(rows=16, cols=64, count=1), Run(rows=16, cols=36, count=1)), times=2),
     Part(runs=(Run(rows=3, cols=64, count=1), Run(rows=3, cols=36, count=1)), times=1))
    """
    bands = ((min(rows, tile[0]), rows // tile[0]), (rows % tile[0], 1 if rows % tile[0] else 0))
    return tuple(Part(_runs(height, width, tile), times) for height, times in bands if times)


@lru_cache(maxsize=4096)
def _runs(rows: int, width: int, tile: tuple[int, int]) -> tuple[Run, ...]:
    wide = -(-width // tile[1])
    if wide > MOST_CHUNKS:
        raise PtoValueError(f"{width} columns through a tile of {tile[1]} are {wide} chunks a row; take a wider tile")
    schedule = chunked((1, 1, 1, rows, width), 1, tile)
    sizes = zip(schedule.column("rows").tolist(), schedule.column("cols").tolist(), strict=True)
    return tuple(Run(*size, len(list(those))) for size, those in groupby(sizes))


@dataclass(frozen=True)
class Work:
    """A collective, the shape of a slice, the tile it goes through, and the numbers of the model."""

    op: str
    rows: int
    width: int
    dtype: ElementType
    tile: tuple[int, int]
    target: str
    links: Links
    numbers: Parameters

    @property
    def is_scatter(self) -> bool:
        """From the root to the ranks; else from the ranks to the root."""
        return self.op in ("tscatter", "scatter")

    @property
    def slice_bytes(self) -> int:
        """What one rank gets, or gives."""
        return self.rows * self.width * self.dtype.itemsize

    @property
    def chunks(self) -> int:
        """Chunks of one slice."""
        return sum(run.count * part.times for part in parts(self.rows, self.width, self.tile) for run in part.runs)

    def tiles(self, variant: str, slices: int = 1) -> int:
        """Staging tiles in use: a block that fits goes through ping alone."""
        whole = fits((1, 1, 1, slices * self.rows, self.width), self.tile)
        return 2 if variant == "pingpong" and not whole else 1

    def seconds(self, cycles: float) -> float:
        """Cycles of the target as time."""
        return cycles / (self.numbers.clock.frequency_ghz * 1e9)

    def moved(self, direction: str, rows: int, cols: int) -> float:
        """Seconds between GM and UB: one burst where the rows lie one behind the other, else one a row."""
        return self.bursts(direction, *((1, rows * cols) if cols == self.width else (rows, cols)))

    def bursts(self, direction: str, count: int, elements: int) -> float:
        """Seconds of so many bursts between GM and UB."""
        return self.seconds(cost.transfer(self.numbers, direction, count, elements * self.dtype.itemsize))

    def crossed(self, rows: int, cols: int) -> float:
        """Seconds on the way between two ranks: the link's, or the port's where that is slower."""
        link, nbytes = self.links.link, rows * cols * self.dtype.itemsize
        return max(link.wire(nbytes), link.port(nbytes))

    def step(self, rows: int, cols: int, *, remote: bool) -> Step:
        """One chunk: the root's own stays in its memory, another rank's crosses the link."""
        load, store, flag = self.moved("load", rows, cols), self.moved("store", rows, cols), self.flag
        if not remote:
            return Step(load, 0.0, store, 0.0, flag)
        crossing, link = self.crossed(rows, cols), self.links.link
        if self.is_scatter:
            return Step(load, 0.0, max(store, crossing), link.latency, flag)
        return Step(max(load, crossing), link.read_trips * link.latency, store, 0.0, flag)

    @cached_property
    def flag(self) -> float:
        """One set_flag / wait_flag pair."""
        return self.seconds(cost.flag(self.numbers))

    def steps(self, slices: int, *, remote: bool) -> Iterator[Step]:
        """A block of slices, chunk by chunk."""
        for part in parts(slices * self.rows, self.width, self.tile):
            for _ in range(part.times):
                for run in part.runs:
                    yield from [self.step(run.rows, run.cols, remote=remote)] * run.count

    def block(self, slices: int, tiles: int, *, remote: bool) -> Times:
        """What a block of slices makes of a state."""
        made = staging.NOTHING
        for part in parts(slices * self.rows, self.width, self.tile):
            once = staging.NOTHING
            for run in part.runs:
                one = staging.matrix(self.step(run.rows, run.cols, remote=remote), tiles)
                once = staging.then(once, staging.repeated(one, run.count))
            made = staging.then(made, staging.repeated(once, part.times))
        return made

    def first_chunk(self, slices: int, tiles: int, *, remote: bool) -> Times:
        """What the first chunk of a block makes of a state."""
        run = parts(slices * self.rows, self.width, self.tile)[0].runs[0]
        return staging.matrix(self.step(run.rows, run.cols, remote=remote), tiles)

    def bounds(self, slices: int, tiles: int) -> dict[str, float]:
        """What no order could beat, for a block that goes to, or comes from, another rank."""
        link, trips = self.links.link, 1.0 if self.is_scatter else self.links.link.read_trips
        load = store = count = 0.0
        for part in parts(slices * self.rows, self.width, self.tile):
            for run in part.runs:
                load += part.times * run.count * self.moved("load", run.rows, run.cols)
                store += part.times * run.count * self.moved("store", run.rows, run.cols)
                count += part.times * run.count
        nbytes = slices * self.slice_bytes
        return {
            UB: load + store if tiles == 1 else max(load, store),
            LATENCY: count * trips * link.latency / tiles,
            LINK: link.wire(nbytes),
            PORT: link.port(nbytes),
        }


UB, LATENCY, LINK, PORT = "UB staging", "latency", "the link", "the root's port"
"""What can hold a root back."""


def checked(op: str, known: tuple[str, ...], what: str) -> str:
    """A word of a list."""
    word = str(op).lower()
    if word not in known:
        raise PtoValueError(f"{what}={op!r} is unknown.{nearest(word, known)} Known: {listed(known)}")
    return word


def check_size(rows: int, width: int, itemsize: int) -> None:
    """A slice that somebody could hold."""
    if rows * width * itemsize > MOST_BYTES:
        raise PtoValueError(
            f"a slice of {rows} x {width} elements is {rows * width * itemsize / GIB:,.0f} GiB: too large"
        )


def check_tile(tile: tuple[int, int], dtype: ElementType, target: str, tiles: int) -> None:
    """So many staging tiles have room in UB."""
    nbytes = tile[0] * tile[1] * dtype.itemsize * tiles
    if nbytes > USABLE[target]:
        several = "one tile" if tiles == 1 else "two tiles (ping-pong)"
        raise PtoValueError(
            f"{several} of {tile[0]} x {tile[1]} {dtype} are {nbytes} bytes; a kernel on {target} has {USABLE[target]} "
            "in UB; take a smaller tile"
        )


def facts(work: Work) -> dict[str, Any]:
    """What was asked, in JSON's own types."""
    return {
        "op": work.op,
        "rows": work.rows,
        "width": work.width,
        "dtype": str(work.dtype),
        "tile": list(work.tile),
        "target": work.target,
        "slice_bytes": work.slice_bytes,
    }
