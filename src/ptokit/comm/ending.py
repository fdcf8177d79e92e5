"""How a script that is a rank ends: whatever it is, the other ranks are told."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType

from ptokit.comm.faults import RankError
from ptokit.comm.rank import Rank, as_rank_error

PACKAGE = str(Path(__file__).parent.parent)


def ends_well(rank: Rank) -> Rank:
    """From now on an exception that nobody catches, and the end of the script, are told to the other ranks."""
    ending = Ending(rank, os.getpid(), sys.excepthook)
    sys.excepthook = ending.mistaken
    atexit.register(ending.over)
    ours = threading.current_thread() is threading.main_thread()
    if rank.transport.ends_by_signal and ours and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, ending.ended)
    return rank


@dataclass
class Ending:
    """The end of this process's script."""

    rank: Rank
    pid: int
    """A process that this one has forked ends without a word."""
    before: Callable[[type[BaseException], BaseException, TracebackType | None], object]
    """The hook that shows exceptions."""
    has_failed: bool = False

    def mistaken(self, kind: type[BaseException], mistake: BaseException, trace: TracebackType | None) -> None:
        """In place of `sys.excepthook`: a fault between ranks is one sentence, any other mistake has its traceback."""
        if self.pid != os.getpid():
            self.before(kind, mistake, trace)
            return
        transport = self.rank.transport
        self.has_failed = True
        if isinstance(mistake, RankError):
            say(f"{place_of(trace)}rank {self.rank.rank}: {mistake}")
        elif not isinstance(mistake, KeyboardInterrupt):
            self.before(kind, mistake, trace)
        # Only now: who is told may end the whole world, and nothing that comes later is heard.
        transport.abort(as_rank_error(transport.peers[self.rank.rank], mistake))

    def over(self) -> None:
        """The script has come to its end."""
        if self.pid == os.getpid():
            for stream in (sys.stdout, sys.stderr):
                with suppress(Exception):
                    stream.flush()
            self.rank.transport.leave(self.has_failed)

    def ended(self, number: int, frame: FrameType | None) -> None:
        """Somebody ends this process, most often an mpiexec because of another rank: say which one."""
        if self.pid == os.getpid() and not self.has_failed:
            transport = self.rank.transport
            why = f": {told}" if (told := transport.what_failed()) else "."
            say(f"{transport.peers[self.rank.rank]} was ended by {signal.Signals(number).name}{why}")
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


class Brief:
    """In place of `sys.excepthook` while a rank joins its world: a fault between ranks is one sentence."""

    def __init__(self) -> None:
        self.before = sys.excepthook
        sys.excepthook = self

    def __call__(self, kind: type[BaseException], mistake: BaseException, trace: TracebackType | None) -> None:
        """Show it."""
        if isinstance(mistake, RankError):
            say(f"{place_of(trace)}{mistake}")
        else:
            self.before(kind, mistake, trace)

    def joined(self) -> None:
        """It has joined; what becomes of its mistakes from now on is another's affair."""
        if sys.excepthook is self:
            sys.excepthook = self.before


def place_of(trace: TracebackType | None) -> str:
    """The line of the user's own code that an exception came through last."""
    own = [one for one in traceback.extract_tb(trace) if not one.filename.startswith((PACKAGE, "<frozen"))]
    return f"{own[-1].filename}:{own[-1].lineno}: " if own else ""


def say(line: str) -> None:
    """One line on stderr, whole, whoever else writes there."""
    with suppress(OSError, ValueError):
        sys.stderr.flush()
        os.write(sys.stderr.fileno(), f"{line}\n".encode(errors="replace"))
