"""Limits of a launch: instructions, bytes and seconds, so that a runaway kernel ends in a finding."""

from __future__ import annotations

import ctypes
import math
import threading
import time
from dataclasses import dataclass, field

from ptokit.core.pipes import Instruction
from ptokit.errors import PtoTypeError, PtoValueError, a_kind
from ptokit.findings import Finding, Severity

GRACE = 0.05
"""Seconds after the limit in which an instruction may still notice by itself."""
HEARING = 100
"""Looks, a millisecond apart: an exception for a thread is raised at its next step."""


@dataclass
class Meter:
    """What all blocks of a launch have used, and how much they may."""

    target: str
    most_instructions: int | None = None
    most_bytes: int | None = None
    most_seconds: float | None = None
    instructions: int = 0
    bytes: int = 0
    is_exhausted: bool = False
    began: float = field(default_factory=time.monotonic)

    def count(self, instruction: Instruction) -> Finding | None:
        """One more instruction; a finding where it is one too many."""
        self.instructions += 1
        if self.most_instructions is not None and self.instructions > self.most_instructions:
            return self.exceeded(instruction, "max_instructions", self.most_instructions, self.instructions)
        if self.most_seconds is not None:
            spent = time.monotonic() - self.began
            if spent > self.most_seconds:
                return self.exceeded(instruction, "max_seconds", self.most_seconds, math.ceil(spent * 1000) / 1000)
        return None

    def move(self, instruction: Instruction, nbytes: int) -> Finding | None:
        """So many bytes more between the memories; a finding where they are too many."""
        self.bytes += nbytes
        if self.most_bytes is not None and self.bytes > self.most_bytes:
            return self.exceeded(instruction, "max_bytes", self.most_bytes, self.bytes)
        return None

    def seconds_left(self) -> float | None:
        """How long the kernel may still go on."""
        if self.most_seconds is None:
            return None
        return max(self.most_seconds - (time.monotonic() - self.began), 0.0)

    def out_of_time(self, last: Instruction | None) -> Finding:
        """The kernel did not come back from something that is no instruction."""
        self.is_exhausted = True
        behind = f"after {last.name} at {last.site}" if last is not None else "before its first instruction"
        return Finding(
            "PTO-H006",
            Severity.ERROR,
            self.target,
            f"the kernel was stopped {behind}: it went on for more than max_seconds={self.most_seconds} without "
            "another instruction.",
            {"limit": "max_seconds", "most": self.most_seconds, "used": round(time.monotonic() - self.began, 3)},
            last.site.where if last is not None else None,
            "Look for a loop that does not end, or raise max_seconds.",
        )

    def exceeded(self, instruction: Instruction, what: str, most: float, used: float) -> Finding:
        """The limit that was reached, and where."""
        self.is_exhausted = True
        return Finding(
            "PTO-H006",
            Severity.ERROR,
            self.target,
            f"the kernel was stopped at {instruction.name}: it has used {used} of {what}={most}.",
            {"limit": what, "most": most, "used": used},
            instruction.site.where,
            f"Look for a loop that does not end, or raise {what}.",
        )


def limit(given: object, name: str) -> float | None:
    """A limit as it was given: a positive number, or None."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise PtoTypeError(f"{name}={given!r} is {a_kind(given)}; a number or None is wanted")
    if not given > 0:
        raise PtoValueError(f"{name}={given!r}: a limit is above 0; None is no limit")
    return given


class TimeUp(BaseException):
    """The kernel's time is up, and it is not in any instruction that could say so."""


class Watched:
    """Raise `TimeUp` in this thread when the time is up: a loop without instructions ends too.

    A class, not a generator: what the kernel raises passes through it untouched.
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self.thread, self.lock = threading.get_ident(), threading.Lock()
        self.is_armed, self.fired = True, threading.Event()
        self.bell: threading.Timer | None = None

    def __enter__(self) -> None:
        if self.seconds is not None:
            # A little later than the check that every instruction makes: that one knows the place.
            self.bell = threading.Timer(min(self.seconds + GRACE, threading.TIMEOUT_MAX), self._ring)
            self.bell.daemon = True
            self.bell.start()

    def _ring(self) -> None:
        with self.lock:
            if self.is_armed:
                self.fired.set()
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.thread), ctypes.py_object(TimeUp))

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if self.bell is None:
            return
        if kind is TimeUp:
            self.fired.clear()
        self.bell.cancel()
        with self.lock:
            self.is_armed = False
        _take(self.fired)


def _take(fired: threading.Event) -> None:
    """It has rung and has not been heard: hear it here. If it is on its way it comes at once; it may have come already,
    and given way to another exception that was raised while it was under way.
    """
    try:
        for _ in range(HEARING):
            if not fired.is_set():
                return
            time.sleep(0.001)
    except TimeUp:
        pass
