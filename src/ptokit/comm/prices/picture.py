"""One priced call chunk by chunk, as a timeline: a process for each rank, an arrow for each put or read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ptokit.comm.prices.staging import START, Step, Timed, walk
from ptokit.comm.prices.ways import ByCcu
from ptokit.comm.prices.work import Work, facts
from ptokit.errors import PtoValueError
from ptokit.timelines import Arrow, Process, Span, Timeline

MOST_RANKS = 64
MOST_CHUNKS = 20_000
NOTE = "A model, no measurement: cycles by ptokit's parameters of the target, the link by those of ptokit.comm."

MTE2, MTE3, CCU, ARRIVALS, READS, SYNC = "MTE2", "MTE3", "CCU", "arrivals", "reads", "gates and barrier"
LANES = (MTE2, MTE3, CCU, ARRIVALS, READS, SYNC)


@dataclass(frozen=True)
class Handover:
    """A block of slices from one rank's memory to another's; `mover` is the rank whose pipes do it."""

    mover: int
    other: int
    slices: int
    start: float
    """When the mover may begin."""


def timeline(work: Work, variant: str, topology: str, ranks: int) -> Timeline:
    """The call on so many ranks, drawn in full: few ranks, and few chunks.

    >>> from ptokit.comm.prices.pricing import asked
    >>> drawn = timeline(asked("tscatter", rows=16, width=64), "single", "flat", 3)
    >>> [process.name for process in drawn.processes]
    ['rank 0, root', 'rank 1', 'rank 2']
    >>> [arrow.name for arrow in drawn.arrows]
    ['put to rank 1', 'put to rank 2']
    """
    if ranks > MOST_RANKS:
        raise PtoValueError(f"a trace of {ranks} ranks would be unreadable; at most {MOST_RANKS} are drawn")
    chunks = ranks * work.chunks
    if chunks > MOST_CHUNKS and variant != "ccu":
        raise PtoValueError(
            f"a trace of {chunks} chunks is too large; at most {MOST_CHUNKS} are drawn: fewer ranks, or a larger tile"
        )
    draw = {"flat": flat, "tree": tree}[topology] if variant != "ccu" else by_ccu
    spans, arrows = draw(work, variant, ranks)
    used = {(span.process, span.lane) for span in spans}
    processes = tuple(
        Process(rank, f"rank {rank}" + (", root" if not rank else ""), _lanes(rank, used)) for rank in range(ranks)
    )
    told = {**facts(work), "variant": variant, "topology": topology, "ranks": ranks, "note": NOTE}
    return Timeline(processes, tuple(spans), tuple(arrows), told)


def _lanes(rank: int, used: set[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(lane for lane in LANES if (rank, lane) in used)


Drawing = tuple[list[Span], list[Arrow]]


def flat(work: Work, variant: str, ranks: int) -> Drawing:
    """The root moves a slice after the other; with two tiles, chunks of neighbours overlap."""
    tiles = work.tiles(variant)
    steps: list[tuple[Step, int]] = [(step, 0) for step in work.steps(1, remote=False)]
    for rank in range(1, ranks):
        steps += [(step, rank) for step in work.steps(1, remote=True)]
    timed = walk((step for step, _ in steps), tiles)
    spans: list[Span] = []
    arrows: list[Arrow] = []
    for number, (one, (_, rank)) in enumerate(zip(timed, steps, strict=True)):
        _draw(work, one, 0, rank, f"chunk {number}, tile {number % tiles}", spans, arrows)
    return spans, arrows


def tree(work: Work, variant: str, ranks: int) -> Drawing:
    """Whoever holds slices hands half of them on, or collects them."""
    spans: list[Span] = []
    arrows: list[Arrow] = []
    hands = handovers(work, variant, ranks)
    end = 0.0
    for one in hands:
        tiles = work.tiles(variant, one.slices)
        for number, timed in enumerate(walk(work.steps(one.slices, remote=True), tiles, START + one.start)):
            _draw(work, timed, one.mover, one.other, f"{one.slices} slices, chunk {number}", spans, arrows)
            end = max(end, timed.done) if not one.mover else end
    own = 0.0 if not work.is_scatter else end
    for number, timed in enumerate(walk(work.steps(1, remote=False), work.tiles(variant), START + own)):
        _draw(work, timed, 0, 0, f"own slice, chunk {number}", spans, arrows)
    return spans, arrows


def handovers(work: Work, variant: str, ranks: int) -> list[Handover]:
    """Every block that changes hands.

    A scatter goes from the largest block to the smallest. A gather collects each block as soon as it is there.
    """
    if work.is_scatter:
        return list(_down(work, variant, 0, ranks, 0.0))
    found: list[Handover] = []
    own = _end(work, variant, 1, remote=False)
    _up(work, variant, 0, ranks, own, found)
    return found


def _end(work: Work, variant: str, slices: int, *, remote: bool) -> float:
    return [one.done for one in walk(work.steps(slices, remote=remote), work.tiles(variant, slices))][-1]


def _down(work: Work, variant: str, rank: int, slices: int, now: float) -> Iterator[Handover]:
    while slices > 1:
        half = slices // 2
        slices -= half
        yield Handover(rank, rank + slices, half, now)
        now += _end(work, variant, half, remote=True)
        yield from _down(work, variant, rank + slices, half, now)


def _up(work: Work, variant: str, rank: int, slices: int, now: float, found: list[Handover]) -> float:
    """When a rank has collected its block; `now` is when it can begin."""
    if slices == 1:
        return now
    half = slices // 2
    kept = _up(work, variant, rank, slices - half, now, found)
    other = _up(work, variant, rank + slices - half, half, 0.0, found)
    start = max(kept, other)
    found.append(Handover(rank, rank + slices - half, half, start))
    return start + _end(work, variant, half, remote=True)


def _draw(work: Work, one: Timed, mover: int, other: int, what: str, spans: list[Span], arrows: list[Arrow]) -> None:
    """One chunk: its load and its store at the rank that moves it, and at the other rank what it sees of that."""
    spans.append(_span(mover, MTE2, "load", one.load_start, one.load_end, chunk=what, rank=other))
    spans.append(_span(mover, MTE3, "store", one.store_start, one.store_end, chunk=what, rank=other))
    if mover == other:
        return
    if work.is_scatter:
        first, last = (time + work.links.link.latency for time in (one.store_start, one.store_end))
        spans.append(_span(other, ARRIVALS, "arrives", first, last, chunk=what, rank=mover))
        arrows.append(_arrow(f"put to rank {other}", mover, MTE3, one.store_end, other, ARRIVALS, first))
    else:
        spans.append(_span(other, READS, "is read", one.load_start, one.load_end, chunk=what, rank=mover))
        arrows.append(_arrow(f"read of rank {other}", other, READS, one.load_end, mover, MTE3, one.store_start))


def by_ccu(work: Work, variant: str, ranks: int) -> Drawing:
    """The gates, the slices as they leave the port or come to it, and the barrier that ends it."""
    times = ByCcu.of(work, ranks)
    bounds = ((0.0, times.gates, "gate"), (times.end, times.end + times.barrier, "barrier"))
    spans = [_span(rank, SYNC, name, start, end) for rank in range(ranks) for start, end, name in bounds]
    arrows: list[Arrow] = []
    for rank, (leaves, there) in enumerate(zip(times.leaves.tolist(), times.there.tolist(), strict=True)):
        late = times.trip if rank else 0.0
        name = f"put to rank {rank}" if work.is_scatter else f"read of rank {rank}"
        if not work.is_scatter:
            spans.append(replace(_span(0, CCU, f"slice {rank}", leaves, there, rank=rank), mark=name))
            if rank:
                spans.append(_span(rank, READS, "is read", leaves, there - late))
                arrows.append(_arrow(name, rank, READS, there - late, 0, CCU, leaves))
            continue
        spans.append(replace(_span(0, CCU, f"slice {rank}", leaves, there - late, rank=rank), mark=name))
        if rank:
            spans.append(_span(rank, ARRIVALS, "arrives", leaves + late, there))
            arrows.append(_arrow(name, 0, CCU, there - late, rank, ARRIVALS, leaves + late))
    return spans, arrows


def _span(process: int, lane: str, name: str, start: float, end: float, **args: object) -> Span:
    return Span(process, lane, name, start * 1e9, end * 1e9, {**args, "nanoseconds": (end - start) * 1e9})


def _arrow(name: str, source: int, lane: str, leaves: float, sink: int, to: str, arrives: float) -> Arrow:
    return Arrow(name, source, lane, leaves * 1e9, sink, to, arrives * 1e9)
