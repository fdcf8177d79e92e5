"""A trace for ui.perfetto.dev: Chrome's trace event format, a process for each block or rank, a thread for each lane.

Perfetto counts whole nanoseconds (it has cut off the rest, and rounds today, starts and lengths apart), drops slices of
one thread that overlap, and ties an arrow to the slice that is open at its time. So everything is laid out in whole
nanoseconds first: no slice shorter than a nanosecond or a cycle, none over another, every end of an arrow inside its
slice. What a step really took stands in the slice's arguments.
"""

from __future__ import annotations

import json
import math
import os
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ptokit.core.trace import LANES, Flow, Slice, Trace
from ptokit.errors import PtoValueError
from ptokit.timelines import Arrow, Process, Span, Timeline

THREADS = 1000
"""Thread ids of process p: from (p + 1) * 1000 on; Perfetto wants them to differ between processes."""
NOTE = (
    "A model, no measurement: cycles by ptokit's parameters of the target. Slices are drawn in whole nanoseconds, the "
    "shortest one cycle or one nanosecond long; args has the cycles of the model."
)

Event = dict[str, Any]
Lane = tuple[int, str]


def write(trace: Trace | Timeline, path: str | Path) -> Path:
    """Write a trace as JSON for ui.perfetto.dev; the file is there as a whole, or as it was before.

    >>> import tempfile
    >>> import ptokit as pto
    >>> run = pto.launch(lambda k: k.pipe_barrier("ALL"), target="a5")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = write(run.trace, Path(folder) / "barrier.json")
    ...     len(json.loads(file.read_text())["traceEvents"])
    11
    """
    file = Path(path)
    line = _as_timeline(trace)
    lines = ",\n".join(json.dumps(event, allow_nan=False) for event in events(line))
    other = json.dumps(dict(line.facts), allow_nan=False)
    replace(file, f'{{"displayTimeUnit": "ns",\n"otherData": {other},\n"traceEvents": [\n{lines}\n]}}\n')
    return file


def events(trace: Trace | Timeline) -> list[Event]:
    """The events of the file: names of processes and threads first, then slices and arrows in the order of time.

    An arrow that would go back in time, since the clocks of two hosts differ, is left out.

    >>> import ptokit as pto
    >>> run = pto.launch(lambda k: k.pipe_barrier("ALL"), target="a5")
    >>> [event["args"]["name"] for event in events(run.trace) if event["name"] == "thread_name"]
    ['1 S', '2 V', '3 MTE2', '4 MTE3']
    """
    sheet = Sheet(_as_timeline(trace))
    timed = [sheet.slice_event(one) for one in sheet.drawn()]
    for number, arrow in enumerate(sheet.arrows(), start=1):
        timed += sheet.end_events(arrow, number)
    timed.sort(key=lambda pair: pair[0])
    return [*sheet.name_events(), *(event for _, event in timed)]


def _as_timeline(trace: Trace | Timeline) -> Timeline:
    return of_launch(trace) if isinstance(trace, Trace) else trace


# A launch as a timeline


def of_launch(trace: Trace) -> Timeline:
    """The blocks of a launch as processes, their pipes as lanes; cycles become nanoseconds.

    >>> import ptokit as pto
    >>> of_launch(pto.launch(lambda k: k.pipe_barrier("ALL"), target="a5").trace).processes[0].name
    'block 0 of 1, a5'
    """
    ghz = trace.frequency_ghz
    facts = {"target": trace.target, "frequency_ghz": ghz, "blocks": trace.blocks, "note": NOTE}
    titles = [f"block {block} of {trace.blocks}, {trace.target}" for block in range(trace.blocks)]
    return Timeline(
        processes=tuple(Process(block, title, LANES) for block, title in enumerate(titles)),
        spans=tuple(_span(one, ghz) for one in trace.slices),
        arrows=tuple(_arrow(one, ghz) for one in trace.flows),
        facts=facts,
        # What can be seen: a cycle, and a nanosecond.
        shortest=max(1, math.ceil(1 / ghz)),
    )


def _span(one: Slice, ghz: float) -> Span:
    args: Event = {"cycles": one.end - one.start, "start_cycle": one.start, "bytes": one.nbytes, **one.args}
    return Span(
        process=one.block,
        lane=one.pipe,
        name=one.name,
        start=one.start / ghz,
        end=one.end / ghz,
        args=args | {"where": f"{one.where.file}:{one.where.line}"},
        kind="flag" if "flag" in one.args else "instruction",
        mark=str(one.args.get("flag", "")),
    )


def _arrow(one: Flow, ghz: float) -> Arrow:
    leaves, arrives = one.from_time / ghz, one.to_time / ghz
    return Arrow(one.name, one.block, one.from_pipe, leaves, one.block, one.to_pipe, arrives)


# The layout


@dataclass(frozen=True, eq=False)
class Drawn:
    """A span as it is drawn: in whole nanoseconds, on a row of its lane (the second where the first is taken)."""

    span: Span
    row: int
    start: int
    end: int
    begun: int
    ended: int
    """Start and end as they are; the drawn ones may lie a little later."""


@dataclass(frozen=True)
class DrawnArrow:
    """An arrow that has found its spans."""

    name: str
    source: Drawn
    leaves: int
    sink: Drawn
    arrives: int


class Sheet:
    """A timeline on its way to the file: where each span is drawn, and where each arrow leaves and arrives."""

    def __init__(self, line: Timeline) -> None:
        self.line = line
        self.processes = {process.number: process for process in line.processes}
        if len(self.processes) < len(line.processes):
            raise PtoValueError("two processes of a timeline have one number; ptokit.timelines.merged joins them")
        ends = ((arrow.to_process, arrow.to_lane) for arrow in line.arrows)
        for number, lane in (*((span.process, span.lane) for span in line.spans), *ends):
            if number not in self.processes or lane not in self.processes[number].lanes:
                raise PtoValueError(f"a timeline draws on lane {lane!r} of process {number}, which it does not name")

    @cached_property
    def lanes(self) -> dict[Lane, DrawnLane]:
        """Every lane that has spans, in order; a handshake that nothing else shows has one of its own."""
        spans: dict[Lane, list[Span]] = defaultdict(list)
        for one in self.line.spans:
            spans[one.process, one.lane].append(one)
        for lane, extra in self._handshakes(spans).items():
            spans[lane] += extra
        in_order = ((process.number, lane) for process in self.line.processes for lane in process.lanes)
        return {lane: DrawnLane(self._lay(spans[lane])) for lane in in_order if lane in spans}

    def drawn(self) -> Iterator[Drawn]:
        """Every span."""
        return (one for lane in self.lanes.values() for one in lane.by_start)

    def rows(self, lane: Lane) -> int:
        """How many threads a lane takes: one, unless its spans overlap."""
        return 1 + max((one.row for one in self.lanes[lane].by_start), default=0) if lane in self.lanes else 1

    def _handshakes(self, spans: dict[Lane, list[Span]]) -> dict[Lane, list[Span]]:
        """Spans for arrows that would arrive where nothing is drawn."""
        begun = {lane: sorted((round(one.start), round(one.end)) for one in those) for lane, those in spans.items()}
        extra: dict[Lane, dict[int, Span]] = defaultdict(dict)
        for arrow in self.line.arrows:
            lane, time = (arrow.to_process, arrow.to_lane), round(arrow.to_time)
            there = begun.get(lane, [])
            before = bisect_right(there, (time, math.inf)) - 1
            if before < 0 or (there[before][0] < time and there[before][1] <= time):
                waits = Span(*lane, f"wait {arrow.name}", arrow.to_time, arrow.to_time, kind="handshake")
                extra[lane].setdefault(time, waits)
        return {lane: list(those.values()) for lane, those in extra.items()}

    def _lay(self, spans: Iterable[Span]) -> list[Drawn]:
        """Spans side by side in rows: one that is too short to be seen pushes the next by as little as it needs."""
        true_ends: list[int] = []
        drawn_ends: list[int] = []
        laid = []
        timed = [(round(one.start), round(one.end), one) for one in spans]
        for begun, ended, one in sorted(timed, key=lambda each: (each[0], each[0] < each[1], -each[1])):
            row = next((number for number, end in enumerate(true_ends) if end <= begun), len(true_ends))
            if row == len(true_ends):
                true_ends.append(begun)
                drawn_ends.append(begun)
            start = max(begun, drawn_ends[row])
            end = max(ended, start + self.line.shortest)
            true_ends[row], drawn_ends[row] = ended, end
            laid.append(Drawn(one, row, start, end, begun, ended))
        return laid

    # Arrows

    def arrows(self) -> Iterator[DrawnArrow]:
        """Every arrow that has a span to leave from, in the order of the timeline."""
        for arrow in self.line.arrows:
            sink = self.lanes[arrow.to_process, arrow.to_lane].begins(round(arrow.to_time), arrow.name)
            lane = self.lanes.get((arrow.from_process, arrow.from_lane))
            source = lane.ends(round(arrow.from_time), arrow.name) if lane else None
            if source is None or source is sink or source.begun >= sink.end:
                continue
            # Where spans without length have pushed one another, the arrow leaves one that stands before.
            leaves = min(source.end, sink.end) - 1
            yield DrawnArrow(arrow.name, source, leaves, sink, max(min(sink.start + 1, sink.end - 1), leaves))

    # The events

    def name_events(self) -> Iterator[Event]:
        """What the processes and threads are called, and in which order they stand."""
        for place, process in enumerate(self.line.processes):
            pid = process.number + 1
            yield _metadata("process_name", pid, 0, name=process.name)
            yield _metadata("process_sort_index", pid, 0, sort_index=place)
            for at, lane in enumerate(process.lanes, start=1):
                for row in range(self.rows((process.number, lane))):
                    tid = self._thread(process.number, lane, row)
                    beside = f" ({row + 1})" if row else ""
                    yield _metadata("thread_name", pid, tid, name=f"{at} {lane}{beside}")
                    yield _metadata("thread_sort_index", pid, tid, sort_index=100 * at + row)

    def slice_event(self, one: Drawn) -> tuple[tuple[int, ...], Event]:
        """A span, and its place in the order of the file."""
        made = one.span
        tid = self._thread(made.process, made.lane, one.row)
        event = {
            "ph": "X",
            "name": made.name,
            "cat": made.kind,
            "pid": made.process + 1,
            "tid": tid,
            "ts": _microseconds(one.start),
            "dur": _microseconds(one.end - one.start),
            "args": dict(made.args),
        }
        return (one.start, 0, tid, 0), event

    def end_events(self, arrow: DrawnArrow, number: int) -> Iterator[tuple[tuple[int, ...], Event]]:
        """Where an arrow leaves ("s") and where it arrives ("f", tied to the slice around it)."""
        ends = (("s", arrow.source, arrow.leaves, 1), ("f", arrow.sink, arrow.arrives, 2))
        for phase, at, time, order in ends:
            tid = self._thread(at.span.process, at.span.lane, at.row)
            event: Event = {
                "ph": phase,
                "name": arrow.name,
                "cat": "flow",
                "id": number,
                "pid": at.span.process + 1,
                "tid": tid,
                "ts": _microseconds(time),
            }
            yield (time, order, tid, number), event | ({"bp": "e"} if phase == "f" else {})

    def _thread(self, process: int, lane: str, row: int) -> int:
        lanes = self.processes[process].lanes
        return (process + 1) * THREADS + row * len(lanes) + lanes.index(lane) + 1


class DrawnLane:
    """The spans of one lane of one process."""

    def __init__(self, drawn: Sequence[Drawn]) -> None:
        self.by_start = drawn
        self.by_end = sorted(drawn, key=lambda one: (one.ended, one.start))
        self._begun = [one.begun for one in self.by_start]
        self._ended = [one.ended for one in self.by_end]

    def begins(self, time: int, name: str) -> Drawn:
        """The span at which an arrow arrives: the one with its mark, or the last that has begun by then."""
        first, last = bisect_left(self._begun, time), bisect_right(self._begun, time)
        marked = (one for one in self.by_start[first:last] if one.span.mark == name)
        return next(marked, self.by_start[max(last - 1, 0)])

    def ends(self, time: int, name: str) -> Drawn | None:
        """The span that an arrow leaves: the one with its mark, or the last that has ended by then."""
        first, last = bisect_left(self._ended, time), bisect_right(self._ended, time)
        marked = (one for one in self.by_end[first:last] if one.span.mark == name)
        return next(marked, self.by_end[last - 1] if last else None)


def _metadata(what: str, pid: int, tid: int, **args: object) -> Event:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": args}


def _microseconds(nanoseconds: int) -> float:
    """The number that gives this nanosecond when a reader multiplies by 1000, be it that it rounds or cuts off.

    >>> int(1001 / 1000 * 1000), int(_microseconds(1001) * 1000)
    (1000, 1001)
    """
    found = nanoseconds / 1000
    return found if int(found * 1000.0) == nanoseconds else math.nextafter(found, math.inf)


# The file


def replace(file: Path, text: str) -> None:
    """Put a file where it belongs in one step: a reader sees the old one or the new one."""
    try:
        _check_place(file)
        if file.exists() and not file.is_file():
            # A terminal, a pipe, /dev/null: nothing that could be replaced.
            file.write_text(text, encoding="utf-8")
        else:
            _swap(file.resolve(), text)
    except OSError as trouble:
        raise PtoValueError(f"{file} cannot be written: {trouble.strerror}") from None


def _check_place(file: Path) -> None:
    folder = file.parent
    if file.is_dir():
        raise PtoValueError(f"{file} is a folder; the name of a file is wanted")
    if not folder.is_dir():
        what = "is a file, no folder" if folder.exists() else "does not exist; make it first"
        raise PtoValueError(f"{file} cannot be written: {folder} {what}")


def _swap(file: Path, text: str) -> None:
    beside = file.with_name(f".ptokit-{os.getpid()}-{os.urandom(4).hex()}.tmp")
    try:
        with beside.open("x", encoding="utf-8") as to:
            to.write(text)
        beside.replace(file)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
