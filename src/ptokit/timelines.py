"""Who did what from when to when, and who waited for whom: data of any origin that `ptokit.report.perfetto` draws.

A process is a block of a launch, or a rank; a lane is a pipe, or a queue. Times are nanoseconds of one common clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Process:
    """A process, by a number from 0 on: its name, and its lanes from top to bottom."""

    number: int
    name: str
    lanes: tuple[str, ...]


@dataclass(frozen=True)
class Span:
    """One piece of work on one lane."""

    process: int
    lane: str
    name: str
    start: float
    end: float
    args: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "work"
    mark: str = ""
    """Among several spans that end, or begin, at the time of an arrow, one with the arrow's name is its span."""


@dataclass(frozen=True)
class Arrow:
    """It leaves the last span that has ended by `from_time`, and arrives at the one that is open at `to_time`.

    Where none is open there, a short span `wait NAME` is drawn.
    """

    name: str
    from_process: int
    from_lane: str
    from_time: float
    to_process: int
    to_lane: str
    to_time: float


@dataclass(frozen=True)
class Timeline:
    """What becomes one file.

    >>> root, other = Process(0, "rank 0, root", ("puts",)), Process(1, "rank 1", ("arrivals",))
    >>> spans = (Span(0, "puts", "put", 0.0, 90.0), Span(1, "arrivals", "slice", 40.0, 100.0))
    >>> line = Timeline((root, other), spans, (Arrow("put 1", 0, "puts", 90.0, 1, "arrivals", 99.0),))
    >>> len(line.spans), line.shortest
    (2, 1)
    """

    processes: tuple[Process, ...]
    spans: tuple[Span, ...]
    arrows: tuple[Arrow, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the file says of itself, in JSON's own types."""
    shortest: int = 1
    """No span is drawn shorter than so many nanoseconds."""


def merged(parts: Iterable[Timeline]) -> Timeline:
    """One timeline from those of several ranks: a process that several know stands once, with the first one's name.

    >>> one = Timeline((Process(0, "rank 0", ("a",)),), (Span(0, "a", "x", 0, 1),))
    >>> two = Timeline((Process(0, "?", ("b",)), Process(1, "rank 1", ("a",))), (), facts={"ranks": 2})
    >>> merged([one, two]).processes
    (Process(number=0, name='rank 0', lanes=('a', 'b')), Process(number=1, name='rank 1', lanes=('a',)))
    """
    all_parts = list(parts)
    known: dict[int, Process] = {}
    for process in (one for part in all_parts for one in part.processes):
        first = known.setdefault(process.number, process)
        lanes = tuple(dict.fromkeys((*first.lanes, *process.lanes)))
        known[process.number] = Process(first.number, first.name, lanes)
    return Timeline(
        processes=tuple(known[number] for number in sorted(known)),
        spans=tuple(span for part in all_parts for span in part.spans),
        arrows=tuple(arrow for part in all_parts for arrow in part.arrows),
        facts={key: value for part in all_parts for key, value in part.facts.items()},
        shortest=max((part.shortest for part in all_parts), default=1),
    )
