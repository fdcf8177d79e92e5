"""`pto.comm.local(n)`: a world of ranks on this machine, as processes or as threads."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, NoReturn

from ptokit.comm.attend import Child, announce, attend, end, ends_with_parent
from ptokit.comm.boards import Boards
from ptokit.comm.engines import Meeting, Processes, Threads
from ptokit.comm.faults import Peer, RankError, error
from ptokit.comm.rank import Rank, as_rank_error
from ptokit.comm.segments import nameless_file
from ptokit.comm.transport import Layout, default_timeout, seconds
from ptokit.errors import PtoTypeError, PtoValueError, well_called
from ptokit.findings import Finding
from ptokit.tensors import whole

MOST_RANKS = 256


@well_called
def local(n: int, *, threads: bool = False, timeout: float | None = None) -> World:
    """A world of `n` ranks on this machine: processes, or threads of this one for tests and notebooks.

    >>> import ptokit as pto
    >>> with pto.comm.local(2, threads=True) as world:
    ...     world.run(lambda rank: rank.rank + 1)
    [1, 2]
    """
    count = whole(n, "n")
    if not 1 <= count <= MOST_RANKS:
        raise PtoValueError(f"n={count}; between 1 and {MOST_RANKS} ranks run on one machine")
    limit = default_timeout() if timeout is None else seconds(timeout, "timeout")
    return World(count, threads, limit)


@dataclass(eq=False)
class World:
    """Ranks on this machine. `run` starts them anew each time, and leaves nothing behind."""

    size: int
    threads: bool
    timeout: float
    is_closed: bool = False

    def run(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """`function(rank, *args)` on every rank at once; what each returned, in their order.

        Processes are forked: function and arguments need not be pickled, results must. What a rank writes to an
        argument stays in its own process.
        """
        if self.is_closed:
            raise PtoValueError("this world has been closed: make a new one with pto.comm.local(n)")
        if not callable(function):
            raise PtoTypeError(f"{function!r} cannot be called; a function of a rank is wanted")
        outcomes = (_by_threads if self.threads else _by_processes)(self, function, args)
        if any(one.mistake is not None for one in outcomes):
            raise _failed(outcomes)
        return [one.value for one in outcomes]

    def check(self, function: Callable[..., Any], *args: Any) -> list[Finding]:
        """Run it, and return what went wrong between the ranks as findings; none where nothing did.

        >>> import ptokit as pto
        >>> with pto.comm.local(2, threads=True) as world:
        ...     [one.id for one in world.check(lambda rank: rank.group(rank.zeros(4), root=rank.rank))]
        ['PTO-R033']
        """
        try:
            self.run(function, *args)
        except RankError as failed:
            return failed.findings
        return []

    def close(self) -> None:
        """No more runs."""
        self.is_closed = True

    def __enter__(self) -> World:
        return self

    def __exit__(self, kind: type | None, mistake: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<world of {self.size} {'threads' if self.threads else 'processes'}>"


@dataclass
class Outcome:
    """What became of a rank."""

    value: Any = None
    mistake: RankError | None = None
    when: float = field(default_factory=time.monotonic)


def _failed(outcomes: Sequence[Outcome]) -> RankError:
    """One error for a run: what failed first, and what every other rank had to say."""
    failures = {rank: one.mistake for rank, one in enumerate(outcomes) if one.mistake is not None}
    # A rank that only reports another's failure is never the first.
    order = sorted(failures, key=lambda rank: (failures[rank].is_echo, outcomes[rank].when))
    first = failures[order[0]]
    findings = []
    for rank in order:
        findings += [one for one in failures[rank].findings if one not in findings]
    failed = type(first)(str(first), findings, failures)
    failed.__cause__ = first.__cause__
    for note in getattr(first, "__notes__", ()):
        failed.add_note(note)
    return failed


def _play(rank: Rank, function: Callable[..., Any], args: tuple[Any, ...]) -> Outcome:
    """One rank's work, from its first line to its last."""
    try:
        with one_process():
            outcome = Outcome(function(rank, *args))
        rank.transport.linger()
        return outcome
    except BaseException as mistake:
        failed = rank.abort(mistake)
        if failed is not mistake:
            failed.__cause__ = mistake
            failed.add_note(f"{rank.transport.peers[rank.rank]}:\n{''.join(traceback.format_exception(mistake))}")
        return Outcome(mistake=failed)
    finally:
        rank.close()


@contextmanager
def one_process() -> Iterator[None]:
    """A process that is forked in here, and comes to the end of it, ends: it is no rank, and says nothing for one."""
    process = os.getpid()
    try:
        yield
    except BaseException:
        if os.getpid() != process:
            traceback.print_exc()
            os._exit(1)
        raise
    if os.getpid() != process:
        os._exit(0)


# Threads


def _by_threads(world: World, function: Callable[..., Any], args: tuple[Any, ...]) -> list[Outcome]:
    boards, meeting = Boards.of_process(world.size), Meeting()
    outcomes: list[Outcome] = [Outcome() for _ in range(world.size)]

    def work(number: int) -> None:
        try:
            outcomes[number] = _play(Rank(Threads(number, boards, meeting, world.timeout)), function, args)
        except BaseException as mistake:
            outcomes[number] = Outcome(mistake=as_rank_error(Peer(number, "", os.getpid()), mistake))

    workers = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(world.size)]
    try:
        for number, worker in enumerate(workers):
            try:
                worker.start()
            except RuntimeError as refused:
                raise not_started(number, world.size, str(refused)) from None
        for worker in workers:
            worker.join()
    except BaseException as mistake:  # an interrupt, or no more threads: nobody waits for those who do not come
        who = f"process {os.getpid()}, which started the ranks,"
        announce(boards, world.size, error("PTO-R030", f"{who} has ended them: {type(mistake).__name__}."))
        raise
    return outcomes


# Processes


def _by_processes(world: World, function: Callable[..., Any], args: tuple[Any, ...]) -> list[Outcome]:
    nbytes = Layout(world.size).nbytes * world.size
    fd = nameless_file(nbytes, f"process {os.getpid()}, which starts the ranks,")
    children: list[Child] = []
    try:
        boards = Boards.of_file(world.size, fd)
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
        for number in range(world.size):
            _start(number, boards, world, function, args, children)
        attend(boards, children, world.timeout)
    finally:
        for child in children:
            end(child)
        os.close(fd)
    return [_outcome(child) for child in children]


def _start(
    number: int,
    boards: Boards,
    world: World,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    children: list[Child],
) -> None:
    """One more child. No interrupt comes between: a child that nobody knows of would stay, or go on as its parent."""
    parent, free = os.getpid(), signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        pid, back, out = _forked(number, world.size)
        if not pid:
            _be_rank(
                number, boards, world, function, args, out, (back, *(child.pipe for child in children)), parent, free
            )
        os.close(out)
        children.append(Child(Peer(number, socket.gethostname(), pid), back))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, free)


def _forked(number: int, size: int) -> tuple[int, int, int]:
    """As `os.fork`, with a pipe from the child: the end that is read, and the one that is written."""
    pipe: tuple[int, ...] = ()
    try:
        pipe = os.pipe()
        with warnings.catch_warnings():
            # Python 3.12 warns of forks beside threads; a rank uses none that it has not made itself.
            warnings.simplefilter("ignore", DeprecationWarning)
            return os.fork(), *pipe
    except OSError as refused:
        for fd in pipe:
            os.close(fd)
        raise not_started(number, size, refused.strerror or str(refused)) from None


def not_started(number: int, size: int, reason: str) -> RankError:
    """The error of a world whose ranks are more than the system allows."""
    return error(
        "PTO-R030",
        f"rank {number} of {size} (host {socket.gethostname()}) could not be started by process {os.getpid()}: "
        f"{reason}; the limits that `ulimit -n` and `ulimit -u` show allow fewer ranks.",
        rank=number,
    )


def _be_rank(
    number: int,
    boards: Boards,
    world: World,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    out: int,
    others: Iterable[int],
    parent: int,
    signals: Iterable[int],
) -> NoReturn:
    """The whole life of a forked rank; it never returns to what its parent was doing."""
    try:
        for fd in others:
            os.close(fd)
        ends_with_parent(parent)
        signal.pthread_sigmask(signal.SIG_SETMASK, signals)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        try:
            outcome = _play(Rank(Processes(number, boards, world.timeout)), function, args)
        except BaseException as mistake:
            outcome = Outcome(mistake=as_rank_error(Peer(number, socket.gethostname(), os.getpid()), mistake))
        with os.fdopen(out, "wb") as pipe:
            pipe.write(_packed(outcome, number))
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
    finally:
        os._exit(0)


def _packed(outcome: Outcome, number: int) -> bytes:
    """An outcome on its way to the parent. A cause that cannot be pickled stays behind; its text is in the notes."""
    mistake = outcome.mistake
    notes = list(getattr(mistake, "__notes__", ()))
    for cause in (mistake.__cause__ if mistake else None, None):
        with suppress(Exception):
            is_echo = mistake is not None and mistake.is_echo
            packed = pickle.dumps((outcome.value, mistake, cause, notes, outcome.when, is_echo))
            pickle.loads(packed)
            return packed
    what = type(outcome.value).__name__
    peer = Peer(number, socket.gethostname(), os.getpid())
    refused = error(
        "PTO-R031",
        f"{peer} returned a {what}, which cannot be pickled: return arrays and plain values.",
        rank=number,
        pid=peer.pid,
    )
    return pickle.dumps((None, refused, None, [], outcome.when, False))


def _outcome(child: Child) -> Outcome:
    if not child.answer:
        lost = error("PTO-R030", f"{child.peer} ended without a word.", rank=child.peer.rank)
        return Outcome(mistake=child.mistake or lost, when=child.when)
    try:
        value, mistake, cause, notes, when, is_echo = pickle.loads(child.answer)
    except Exception as refused:  # of a class that the rank alone has, or cut off
        what = f"the answer of {child.peer} cannot be read: {type(refused).__name__}: {refused}."
        return Outcome(mistake=child.mistake or error("PTO-R031", what, rank=child.peer.rank), when=child.when)
    if mistake is not None:
        mistake.__cause__, mistake.is_echo = cause, is_echo
        for note in notes:
            mistake.add_note(note)
    return Outcome(value, mistake, when)
