"""A thread that makes this rank's MPI calls, and in between lets what other ranks have begun go on."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

BUSY_PAUSE, IDLE_PAUSE = 50e-6, 1e-3
"""Seconds between two looks, while calls come and while none does."""
BUSY_FOR = 0.02


class StuckError(Exception):
    """A call has not come back in time."""


@dataclass(eq=False)
class Errand:
    """A call, and what came of it."""

    call: Callable[[], Any]
    done: threading.Event = field(default_factory=threading.Event)
    value: Any = None
    mistake: BaseException | None = None

    def run(self) -> None:
        """Make the call."""
        try:
            self.value = self.call()
        except BaseException as mistake:
            self.mistake = mistake
        self.done.set()


class Courier:
    """Makes calls one after the other; `progress` is called all the time in between.

    MPI calls that wait for another rank have no timeout. Here they wait in this thread, and whoever has asked for them
    goes on with an error. A thread that is stuck in one stays so: no further calls are made for this rank.
    """

    def __init__(self, progress: Callable[[], object]) -> None:
        self._progress = progress
        self._errands: queue.SimpleQueue[Errand | None] = queue.SimpleQueue()
        self.is_stuck = False
        self._thread = threading.Thread(target=self._work, name="ptokit-courier", daemon=True)
        self._thread.start()

    def carry(self, call: Callable[[], Any], seconds: float) -> Any:
        """The result of a call, or StuckError where it takes longer."""
        if self.is_stuck or not self._thread.is_alive():
            raise StuckError
        errand = Errand(call)
        self._errands.put(errand)
        if not errand.done.wait(seconds):
            self.is_stuck = True
            raise StuckError
        if errand.mistake is not None:
            raise errand.mistake
        return errand.value

    def end(self, seconds: float) -> None:
        """No more calls."""
        self._errands.put(None)
        self._thread.join(seconds)

    def _work(self) -> None:
        busy_until = 0.0
        while True:
            try:
                pause = BUSY_PAUSE if time.monotonic() < busy_until else IDLE_PAUSE
                errand = self._errands.get(timeout=pause)
            except queue.Empty:
                self._progress()
                continue
            if errand is None:
                return
            errand.run()
            busy_until = time.monotonic() + BUSY_FOR
