"""What the tests of the simulated core ask of a launch: which findings, at which lines, with which fix."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import ptokit as pto

Array = np.ndarray[Any, Any]
Kernel = Callable[..., Any]

SCHEDULES = [("late", 0), ("program", 0), ("random", 1), ("random", 2)]


def loud(run: pto.Run) -> list[pto.Finding]:
    """Errors and warnings."""
    return [one for one in run.findings if one.severity is not pto.Severity.NOTE]


def ids(run: pto.Run) -> list[str]:
    """The ids of errors and warnings, sorted; a finding that comes twice counts twice."""
    return sorted(one.id for one in loud(run))


def told(run: pto.Run, id_: str) -> pto.Finding:
    """The one finding of that id."""
    (found,) = [one for one in run.findings if one.id == id_]
    return found


def line_of(function: Kernel, text: str, nth: int = 0) -> int:
    """The line of the n-th statement of a function that contains this text."""
    source, first = inspect.getsourcelines(function)
    return [first + number for number, line in enumerate(source) if text in line][nth]


def line(finding: pto.Finding) -> int:
    """The line at which a finding points."""
    assert finding.where is not None
    return finding.where.line


def essence(run: pto.Run, rooms: str = "SH") -> list[tuple[str, str, int, Any]]:
    """The findings of some rooms by id, severity, line and fix pair: what no schedule may change."""
    return sorted(
        (one.id, str(one.severity), line(one) if one.where else 0, str(one.facts.get("insert")))
        for one in run.findings
        if one.id[4] in rooms
    )


def int32(*shape: int, first: int = 1) -> Array:
    """first, first + 1, ... in this shape."""
    return np.arange(first, first + int(np.prod(shape)), dtype=np.int32).reshape(shape)


def pair(k: Any, source: str, sink: str, event_id: int = 0) -> None:
    """A flag, set and waited for at once."""
    k.set_flag(source, sink, event_id)
    k.wait_flag(source, sink, event_id)


def flush(k: Any) -> None:
    """What makes stores through the data cache visible to the host."""
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()
