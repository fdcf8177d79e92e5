"""Looking after the processes of a world: who has ended and how, telling the others, and leaving nothing behind."""

from __future__ import annotations

import ctypes
import math
import os
import pickle
import selectors
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from ptokit.comm.boards import Boards
from ptokit.comm.faults import Peer, RankError, error
from ptokit.comm.transport import FAILED, LEFT, Layout, packed_error, tell

LOOK_EVERY = 0.02


@dataclass(eq=False)
class Child:
    """A process that is a rank."""

    peer: Peer
    pipe: int = -1
    """Where its answer comes from; -1 where it gives none but its exit code."""
    answer: bytearray = field(default_factory=bytearray)
    code: int | None = None
    """How it ended: its exit code, or minus the signal that killed it."""
    stopped_since: float | None = None
    mistake: RankError | None = None
    when: float = 0.0
    """Of the mistake, among those of other ranks: a death comes first, an end that was made comes last."""

    @property
    def has_ended(self) -> bool:
        """It is gone, and everything that it said has been heard."""
        return self.code is not None and self.pipe < 0


def attend(boards: Boards, children: Sequence[Child], timeout: float) -> None:
    """Wait until every rank has ended; a rank that dies is told to all, and after that nobody goes on for ever."""
    over: float | None = None
    with selectors.DefaultSelector() as pipes:
        for child in children:
            if child.pipe >= 0:
                os.set_blocking(child.pipe, False)
                pipes.register(child.pipe, selectors.EVENT_READ, child)
        try:
            while not all(child.has_ended for child in children):
                for key, _ in pipes.select(LOOK_EVERY):
                    if not _hear(key.data):
                        _hang_up(pipes, key.data)
                if not pipes.get_map():
                    time.sleep(LOOK_EVERY / 4)
                for child in children:
                    _look(boards, children, child)
                    if child.code is not None and child.pipe >= 0:
                        # Its answer is in the pipe as a whole; another process may hold the other end open.
                        while _hear(child, block=False):
                            pass
                        _hang_up(pipes, child)
                over = over or _when_over(boards, children, timeout)
                _end_who_cannot(boards, children, over, timeout)
        finally:
            for child in children:
                end(child)


def _hear(child: Child, *, block: bool = True) -> bool:
    """Read what there is; False at the end, and where nothing is there and more need not be waited for."""
    try:
        piece = os.read(child.pipe, 1 << 20)
    except BlockingIOError:
        return block
    child.answer += piece
    return bool(piece)


def _hang_up(pipes: selectors.BaseSelector, child: Child) -> None:
    pipes.unregister(child.pipe)
    _close(child)


def _close(child: Child) -> None:
    os.close(child.pipe)
    child.pipe = -1


def _look(boards: Boards, children: Sequence[Child], child: Child) -> None:
    """What has become of a process since the last look."""
    if child.code is not None:
        return
    try:
        pid, told = os.waitpid(child.peer.pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
    except ChildProcessError:  # somebody else has waited for it
        child.code = 0
        return
    if not pid:
        return
    if os.WIFSTOPPED(told):
        child.stopped_since = time.monotonic()
    elif os.WIFCONTINUED(told):
        child.stopped_since = None
    else:
        child.code = os.waitstatus_to_exitcode(told)
        if child.code and child.mistake is None:
            child.mistake = died(child.peer, child.code)
            announce(boards, child.peer.rank, child.mistake)
        elif boards.load(child.peer.rank, Layout.STATE) != FAILED:
            boards.store(child.peer.rank, Layout.STATE, LEFT)


def died(peer: Peer, code: int) -> RankError:
    """The error of a rank whose process ended before its work was done."""
    if code < 0:
        name = f" ({signal.Signals(-code).name})" if -code in set(signal.Signals) else ""
        return error("PTO-R030", f"{peer} was killed by signal {-code}{name}.", rank=peer.rank, signal=-code)
    return error("PTO-R030", f"{peer} exited with code {code} before its work was done.", rank=peer.rank, code=code)


def announce(boards: Boards, failed: int, mistake: RankError) -> None:
    """Every rank that waits, or waits later, ends with this error."""
    text = packed_error(mistake)
    for rank in range(boards.layout.size):
        tell(boards, rank, failed, text)


def what_was_told(boards: Boards) -> tuple[int, RankError | None]:
    """The rank that said first that something failed, and what it said; -1 and None where all was well."""
    for rank in range(boards.layout.size):
        failed = boards.load(rank, Layout.FAILURE)
        if failed > 0:
            text = boards.read(rank, Layout.TEXT, boards.load(rank, Layout.TEXT_LENGTH))
            return failed - 1, pickle.loads(text)
    return -1, None


def _when_over(boards: Boards, children: Sequence[Child], timeout: float) -> float | None:
    """The time at which whoever still runs is ended: some time after the first failure."""
    failed = any(child.mistake or child.code for child in children)
    told = any(boards.load(child.peer.rank, boards.layout.FAILURE) > 0 for child in children)
    return time.monotonic() + timeout if failed or told else None


def _end_who_cannot(boards: Boards, children: Sequence[Child], over: float | None, timeout: float) -> None:
    """A rank that is stopped ends when nobody else is at work; any rank, long after another has failed."""
    now = time.monotonic()
    left = [child for child in children if child.code is None and child.mistake is None]
    at_work = [one for one in left if not one.stopped_since and boards.load(one.peer.rank, Layout.STATE) != LEFT]
    for child in left:
        stopped = child.stopped_since
        if stopped is not None and not at_work and (over or now - stopped > timeout):
            _give_up(boards, child, f"{child.peer} is stopped, and was ended.")
        elif over and now > over:
            _give_up(
                boards, child, f"{child.peer} still ran {timeout:g} s after another rank had failed, and was ended."
            )


def _give_up(boards: Boards, child: Child, message: str) -> None:
    child.mistake, child.when = error("PTO-R032", message, rank=child.peer.rank), math.inf
    announce(boards, child.peer.rank, child.mistake)
    _kill(child)


def _kill(child: Child) -> None:
    with suppress(ProcessLookupError):
        os.kill(child.peer.pid, signal.SIGKILL)


def end(child: Child) -> None:
    """Whatever happens, no process is left."""
    if child.pipe >= 0:
        _close(child)
    if child.code is None:
        _kill(child)
        with suppress(ChildProcessError):
            os.waitpid(child.peer.pid, 0)
        child.code = -signal.SIGKILL


def ends_with_parent(parent: int | None = None) -> None:
    """This process is killed when the one that made it goes; it ends now where `parent` is gone already."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    if parent is not None and os.getppid() != parent:
        os._exit(1)
