"""What ranks really did and when: one timeline of all of them, a process for each rank."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ptokit.errors import PtoValueError
from ptokit.timelines import Arrow, Process, Span, Timeline, merged

CALLS, PUTS, WAITS, ARRIVALS = LANES = ("1 calls", "2 puts and gets", "3 waits", "4 arrivals")


@dataclass(eq=False)
class Recorder:
    """What one rank notes. Times are nanoseconds since all ranks began to record."""

    rank: int
    begun: int = field(default_factory=time.perf_counter_ns)
    spans: list[Span] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)

    def now(self) -> int:
        """The time."""
        return time.perf_counter_ns() - self.begun

    def span(self, lane: str, name: str, start: int, **args: Any) -> None:
        """Something that began at `start` and ends now."""
        self.spans.append(Span(self.rank, lane, name, start, self.now(), args))

    def moved(self, rank: int, start: int, nbytes: int, *, into_member: bool) -> None:
        """Bytes that this rank has put to another, or got from it."""
        end = self.now()
        word = "put to" if into_member else "get from"
        self.spans.append(Span(self.rank, PUTS, f"{word} rank {rank}", start, end, {"bytes": nbytes}))
        if rank == self.rank:
            return
        name = f"{self.rank}->{rank}" if into_member else f"{rank}->{self.rank}"
        there = Span(rank, ARRIVALS, f"{'from' if into_member else 'to'} rank {self.rank}", start, end, {})
        self.spans.append(there)
        if into_member:
            self.arrows.append(Arrow(name, self.rank, PUTS, end, rank, ARRIVALS, end))
        else:
            self.arrows.append(Arrow(name, rank, ARRIVALS, end, self.rank, PUTS, end))

    def notified(self, rank: int, signal: int, start: int, value: int) -> None:
        """A signal that this rank has sent."""
        end = self.now()
        name = f"signal {signal}"
        self.spans.append(Span(self.rank, CALLS, f"notify rank {rank}", start, end, {"signal": signal, "value": value}))
        self.arrows.append(Arrow(name, self.rank, CALLS, end, rank, WAITS, end))

    def timeline(self, peers: Sequence[object]) -> Timeline:
        """What this rank has to tell of itself and of the others."""
        processes = tuple(Process(number, str(peer), LANES) for number, peer in enumerate(peers))
        note = "Measured; the clocks of several hosts are set by a barrier at the beginning, no better."
        return Timeline(processes, tuple(self.spans), tuple(self.arrows), {"ranks": len(peers), "note": note})


class Recording:
    """`with rank.recording() as trace:` on every rank; afterwards each has the timeline of all.

    >>> import tempfile
    >>> import numpy as np, ptokit as pto
    >>> def work(rank, folder):
    ...     with rank.recording() as trace:
    ...         pto.comm.tnotify(rank, 1 - rank.rank, signal=0)
    ...         pto.comm.twait(rank, signal=0)
    ...     return trace.to_perfetto(f"{folder}/ranks.json").name if rank.rank == 0 else len(trace.timeline.processes)
    >>> with tempfile.TemporaryDirectory() as folder, pto.comm.local(2, threads=True) as world:
    ...     world.run(work, folder)
    ['ranks.json', 2]
    """

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._timeline: Timeline | None = None

    def __enter__(self) -> Recording:
        if self._transport.recorder is not None:
            raise PtoValueError("this rank is recording already: end that recording first")
        self._transport.barrier()
        self._transport.recorder = Recorder(self._transport.rank)
        return self

    def __exit__(self, kind: object, mistake: BaseException | None, trace: object) -> None:
        recorder, self._transport.recorder = self._transport.recorder, None
        own = recorder.timeline(self._transport.peers)
        self._timeline = own if mistake else merged(self._transport.exchange(own, "the end of a recording"))

    @property
    def timeline(self) -> Timeline:
        """All that was recorded."""
        if self._timeline is None:
            raise PtoValueError("nothing has been recorded yet: the timeline is there when the with block has ended")
        return self._timeline

    def to_perfetto(self, path: str | Path) -> Path:
        """Write it for ui.perfetto.dev (Chrome JSON); one rank is enough."""
        from ptokit.report.perfetto import write

        return write(self.timeline, Path(path))
