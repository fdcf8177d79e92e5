"""A trace for ui.perfetto.dev: Chrome's trace event format, a process for each block, a thread for each pipe.

Perfetto counts whole nanoseconds (it has cut off the rest, and rounds today, starts and lengths apart), drops slices of
one thread that overlap, and ties an arrow to the slice that is open at its time. So everything is laid out in whole
nanoseconds first: no slice shorter than a nanosecond or a cycle, none over another, every end of an arrow inside its
slice. What an instruction really took stands in the slice's arguments, in cycles.
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
from ptokit.findings import Where

THREADS = 1000
"""Thread ids of block b: from b * 1000 on; Perfetto wants them to differ between processes."""
NOTE = (
    "A model, no measurement: cycles by ptokit's parameters of the target. Slices are drawn in whole nanoseconds, the "
    "shortest one cycle or one nanosecond long; args has the cycles of the model."
)
NOWHERE = Where("", 0)
"""Of a handshake: no line of the kernel says it."""

Event = dict[str, Any]
Lane = tuple[int, str]


def write(trace: Trace, path: str | Path) -> Path:
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
    other = {"target": trace.target, "frequency_ghz": trace.frequency_ghz, "blocks": trace.blocks, "note": NOTE}
    lines = ",\n".join(json.dumps(event, allow_nan=False) for event in events(trace))
    _replace(file, f'{{"displayTimeUnit": "ns",\n"otherData": {json.dumps(other)},\n"traceEvents": [\n{lines}\n]}}\n')
    return file


def events(trace: Trace) -> list[Event]:
    """The events of the file: names of processes and threads first, then slices and arrows in the order of time.

    >>> import ptokit as pto
    >>> run = pto.launch(lambda k: k.pipe_barrier("ALL"), target="a5")
    >>> [event["args"]["name"] for event in events(run.trace) if event["name"] == "thread_name"]
    ['1 S', '2 V', '3 MTE2', '4 MTE3']
    """
    sheet = Sheet(trace)
    timed = [_complete(one) for one in sheet.drawn()]
    for number, arrow in enumerate(sheet.arrows(), start=1):
        timed += _ends(arrow, number)
    timed.sort(key=lambda pair: pair[0])
    return [*_names(trace, sheet), *(event for _, event in timed)]


# The layout


@dataclass(frozen=True, eq=False)
class Drawn:
    """A slice as it is drawn: in nanoseconds, on a row of its lane (the second where the first is taken)."""

    slice: Slice
    row: int
    start: int
    end: int
    begun: int
    ended: int
    """Start and end as the model has them; the drawn ones may lie a little later."""


@dataclass(frozen=True)
class Arrow:
    """A flow that has found its slices."""

    flow: Flow
    source: Drawn
    leaves: int
    sink: Drawn
    arrives: int


class Sheet:
    """A trace on its way to the file: where each slice is drawn, and where each arrow leaves and arrives."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.least = max(1, math.ceil(1 / trace.frequency_ghz))
        """What can be seen: a cycle, and a nanosecond."""

    def at(self, cycles: float) -> int:
        """A time in nanoseconds."""
        return round(cycles / self.trace.frequency_ghz)

    @cached_property
    def lanes(self) -> dict[Lane, DrawnLane]:
        """Every lane that has slices, in order; a handshake that nothing else shows has one of its own."""
        slices: dict[Lane, list[Slice]] = defaultdict(list)
        for one in self.trace.slices:
            slices[one.block, one.pipe].append(one)
        for lane, extra in self._handshakes(slices).items():
            slices[lane] += extra
        in_order = sorted(slices, key=lambda lane: (lane[0], LANES.index(lane[1])))
        return {lane: DrawnLane(self._lay(slices[lane])) for lane in in_order}

    def drawn(self) -> Iterator[Drawn]:
        """Every slice."""
        return (one for lane in self.lanes.values() for one in lane.by_start)

    def rows(self, lane: Lane) -> int:
        """How many threads a lane takes: one, unless its slices overlap."""
        return 1 + max((one.row for one in self.lanes[lane].by_start), default=0) if lane in self.lanes else 1

    def _handshakes(self, slices: dict[Lane, list[Slice]]) -> dict[Lane, list[Slice]]:
        """Slices for arrows that would arrive where nothing is drawn."""
        begun = {
            lane: sorted((self.at(one.start), self.at(one.end)) for one in those) for lane, those in slices.items()
        }
        extra: dict[Lane, dict[int, Slice]] = defaultdict(dict)
        for flow in self.trace.flows:
            lane, time = (flow.block, flow.to_pipe), self.at(flow.to_time)
            there = begun.get(lane, [])
            before = bisect_right(there, (time, math.inf)) - 1
            if before < 0 or (there[before][0] < time and there[before][1] <= time):
                waits = Slice(*lane, f"wait {flow.name}", flow.to_time, flow.to_time, 0, NOWHERE)
                extra[lane].setdefault(time, waits)
        return {lane: list(those.values()) for lane, those in extra.items()}

    def _lay(self, slices: Iterable[Slice]) -> list[Drawn]:
        """Slices side by side in rows: one that is too short to be seen pushes the next by as little as it needs."""
        model_ends: list[int] = []
        drawn_ends: list[int] = []
        laid = []
        timed = [(self.at(one.start), self.at(one.end), one) for one in slices]
        for begun, ended, one in sorted(timed, key=lambda each: (each[0], each[0] < each[1], -each[1])):
            row = next((number for number, end in enumerate(model_ends) if end <= begun), len(model_ends))
            if row == len(model_ends):
                model_ends.append(0)
                drawn_ends.append(0)
            start = max(begun, drawn_ends[row])
            end = max(ended, start + self.least)
            model_ends[row], drawn_ends[row] = ended, end
            laid.append(Drawn(one, row, start, end, begun, ended))
        return laid

    # Arrows

    def arrows(self) -> Iterator[Arrow]:
        """Every flow that has a slice to leave from, in the order of the trace."""
        for flow in self.trace.flows:
            sink = self.lanes[flow.block, flow.to_pipe].begins(self.at(flow.to_time), flow.name)
            lane = self.lanes.get((flow.block, flow.from_pipe))
            source = lane.ends(self.at(flow.from_time), flow.name) if lane else None
            if source is not None and source is not sink:
                # Where slices without length have pushed one another, the arrow leaves one that stands before.
                leaves = min(source.end, sink.end) - 1
                yield Arrow(flow, source, leaves, sink, max(min(sink.start + 1, sink.end - 1), leaves))


class DrawnLane:
    """The slices of one pipe of one block."""

    def __init__(self, drawn: Sequence[Drawn]) -> None:
        self.by_start = drawn
        self.by_end = sorted(drawn, key=lambda one: (one.ended, one.start))
        self._begun = [one.begun for one in self.by_start]
        self._ended = [one.ended for one in self.by_end]

    def begins(self, time: int, flag: str) -> Drawn:
        """The slice at which an arrow arrives: the wait for that flag, or the last that has begun by then."""
        first, last = bisect_left(self._begun, time), bisect_right(self._begun, time)
        return next((one for one in self.by_start[first:last] if _flag(one) == flag), self.by_start[max(last - 1, 0)])

    def ends(self, time: int, flag: str) -> Drawn | None:
        """The slice that an arrow leaves: the set of that flag, or the last that has ended by then."""
        first, last = bisect_left(self._ended, time), bisect_right(self._ended, time)
        sets = (one for one in self.by_end[first:last] if _flag(one) == flag)
        return next(sets, self.by_end[last - 1] if last else None)


def _flag(one: Drawn) -> object:
    return one.slice.args.get("flag")


# The events


def _names(trace: Trace, sheet: Sheet) -> Iterator[Event]:
    """What the processes and threads are called, and in which order they stand."""
    for block in range(trace.blocks):
        pid = block + 1
        title = f"block {block} of {trace.blocks}, {trace.target}"
        yield _metadata("process_name", pid, 0, name=title)
        yield _metadata("process_sort_index", pid, 0, sort_index=block)
        for place, pipe in enumerate(LANES):
            for row in range(sheet.rows((block, pipe))):
                tid = _thread(block, pipe, row)
                beside = f" ({row + 1})" if row else ""
                yield _metadata("thread_name", pid, tid, name=f"{place + 1} {pipe}{beside}")
                yield _metadata("thread_sort_index", pid, tid, sort_index=100 * (place + 1) + row)


def _metadata(what: str, pid: int, tid: int, **args: object) -> Event:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": args}


def _thread(block: int, pipe: str, row: int) -> int:
    return (block + 1) * THREADS + row * len(LANES) + LANES.index(pipe) + 1


def _complete(one: Drawn) -> tuple[tuple[int, ...], Event]:
    made = one.slice
    args: Event = {"cycles": made.end - made.start, "start_cycle": made.start, "bytes": made.nbytes, **made.args}
    if made.where is not NOWHERE:
        args["where"] = f"{made.where.file}:{made.where.line}"
    tid = _thread(made.block, made.pipe, one.row)
    event = {
        "ph": "X",
        "name": made.name,
        "cat": "flag" if "flag" in made.args else "handshake" if made.where is NOWHERE else "instruction",
        "pid": made.block + 1,
        "tid": tid,
        "ts": _microseconds(one.start),
        "dur": _microseconds(one.end - one.start),
        "args": args,
    }
    return (one.start, 0, tid, 0), event


def _ends(arrow: Arrow, number: int) -> Iterator[tuple[tuple[int, ...], Event]]:
    """Where an arrow leaves ("s") and where it arrives ("f", tied to the slice around it)."""
    ends = (("s", arrow.source, arrow.leaves, 1), ("f", arrow.sink, arrow.arrives, 2))
    for phase, at, time, order in ends:
        tid = _thread(at.slice.block, at.slice.pipe, at.row)
        event: Event = {
            "ph": phase,
            "name": arrow.flow.name,
            "cat": "flow",
            "id": number,
            "pid": at.slice.block + 1,
            "tid": tid,
            "ts": _microseconds(time),
        }
        yield (time, order, tid, number), event | ({"bp": "e"} if phase == "f" else {})


def _microseconds(nanoseconds: int) -> float:
    """The number that gives this nanosecond when a reader multiplies by 1000, be it that it rounds or cuts off.

    >>> int(1001 / 1000 * 1000), int(_microseconds(1001) * 1000)
    (1000, 1001)
    """
    found = nanoseconds / 1000
    return found if int(found * 1000.0) == nanoseconds else math.nextafter(found, math.inf)


# The file


def _replace(file: Path, text: str) -> None:
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
