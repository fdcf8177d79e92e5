"""The frame of a measurement: contenders of one workload in one run, interleaved, medians, results equal first."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Contender:
    """One way to do the work. `prepare` is not timed; `result` is what must equal the others', bit for bit."""

    name: str
    run: Callable[[], object]
    prepare: Callable[[], object] | None = None
    result: Callable[[], Array] | None = None
    ours: bool = False
    comparable: bool = True  # promises the same result; one that does not is shown, but is no rival
    calls: int = 1  # calls per timing, for those that take microseconds
    clock: Callable[[], float] | None = None  # does the work in another process, and gives the milliseconds of a call
    goal: str = ""  # its own, where it has one
    told: Callable[[], str] | None = None  # what else there is to say once it has been measured


@dataclass(frozen=True)
class Workload:
    """One piece of work: `limit_ms` is what the machine could do at best, where that was measured."""

    id: str
    title: str
    contenders: tuple[Contender, ...]
    nbytes: int = 0
    limit_ms: float | None = None
    goal: str = ""


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    workload: str
    title: str
    contender: str
    ms: float
    low: float
    high: float
    ours: bool
    comparable: bool
    equal: bool | None
    gb_per_s: float | None
    ratio: float | None  # best comparable contender that is not ours / this
    of_limit: float | None
    goal: str = ""
    told: str = ""

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


class UnequalResultsError(Exception):
    """Two contenders that must agree do not: no figure is worth anything."""


def measure(workload: Workload, repetitions: int) -> list[Row]:
    """Medians of interleaved repetitions, after the results were seen to be equal."""
    equal = _compare(workload)
    times: dict[str, list[float]] = {one.name: [] for one in workload.contenders}
    gc.collect()
    gc.disable()
    try:
        for turn in range(repetitions):
            for one in _rotated(workload.contenders, turn):
                times[one.name].append(_timed(one))
    finally:
        gc.enable()
    middle = {name: statistics.median(taken) for name, taken in times.items()}
    others = [middle[one.name] for one in workload.contenders if not one.ours and one.comparable]
    best = min(others, default=None)
    return [_row(workload, one, times[one.name], middle[one.name], best, equal) for one in workload.contenders]


def _compare(workload: Workload) -> dict[str, bool | None]:
    """Every contender once: who gives the same bits as the first comparable one."""
    equal: dict[str, bool | None] = {}
    wanted: Array | None = None
    for one in workload.contenders:
        if one.prepare:
            one.prepare()
        one.run()
        if one.result is None:
            equal[one.name] = None
            continue
        got = np.ascontiguousarray(one.result()).view(np.uint8).copy()
        if wanted is None and one.comparable:
            wanted = got
        equal[one.name] = None if wanted is None else bool(np.array_equal(got, wanted))
        if one.comparable and equal[one.name] is False:
            raise UnequalResultsError(f"{workload.id} {workload.title}: {one.name} gives another result")
    return equal


def _rotated(contenders: tuple[Contender, ...], turn: int) -> Iterator[Contender]:
    first = turn % len(contenders)
    yield from contenders[first:]
    yield from contenders[:first]


def _timed(one: Contender) -> float:
    if one.prepare:
        one.prepare()
    if one.clock:
        return one.clock()
    run, calls = one.run, range(one.calls)
    start = time.perf_counter_ns()
    for _ in calls:
        run()
    return (time.perf_counter_ns() - start) / 1e6 / one.calls


def _row(
    workload: Workload, one: Contender, taken: list[float], ms: float, best: float | None, equal: dict[str, bool | None]
) -> Row:
    return Row(
        workload=workload.id,
        title=workload.title,
        contender=one.name,
        ms=ms,
        low=min(taken),
        high=max(taken),
        ours=one.ours,
        comparable=one.comparable,
        equal=equal[one.name],
        gb_per_s=workload.nbytes / ms / 1e6 if workload.nbytes else None,
        ratio=best / ms if best is not None and one.ours else None,
        of_limit=workload.limit_ms / ms if workload.limit_ms is not None else None,
        goal=one.goal or (workload.goal if one.ours else ""),
        told=one.told() if one.told else "",
    )
