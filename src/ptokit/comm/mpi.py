"""The engine of MPI worlds: memory of this node is shared, memory of other nodes is reached by one-sided calls.

`mpiexec -n 4 python -m mpi4py script.py`, with mpi4py and an MPI library of the registry: nothing of the system.
"""

from __future__ import annotations

import atexit
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptokit.comm.beginning import forget_names, library
from ptokit.comm.boards import Boards
from ptokit.comm.ending import say
from ptokit.comm.engines import Processes
from ptokit.comm.faults import Peer, RankError, error, named
from ptokit.comm.mail import Far, Mail, Shared
from ptokit.comm.segments import Piece, nameless_file
from ptokit.comm.transport import FAILED, GONE, LEFT, SIGNALS, Layout, Pause, Reach, default_timeout
from ptokit.comm.words import Bytes
from ptokit.errors import PtoError, PtoValueError

HELLO_TAG = 32000
HELLO_BYTES = 4096
NODES_NAME = "PTOKIT_COMM_NODES"
"""So many nodes are pretended, to try on one machine what happens between several."""

ABORT_SECONDS = 3
FORWARD_SECONDS = 0.1
"""In which mpiexec forwards what the ranks have printed; an abort makes it forget that."""
YIELD_SECONDS = 2.0
"""In which another rank may end the world: Open MPI's mpiexec may hang where several hosts do so at once."""
SETTLE_SECONDS = 0.3
"""In which ranks of other nodes stop to look: Open MPI takes a connection that is closed for a fault of its own."""
PATIENCE = 0.5
"""Seconds that a rank of another node has to answer when this one has failed."""
REGISTRATION = "the registration of memory"
FLUSH_IS_DEAR = ("mpich",)
"""It waits without leaving the processor to anybody: 26 ms a barrier of 3 ranks on 2 processors, and 1.5 ms without."""
SIZE_NAMES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


def engine_name(version: str) -> str:
    """How a library calls itself, in one word."""
    return next((name for words, name in (("Open MPI", "openmpi"), ("MPICH", "mpich")) if words in version), "mpi")


@dataclass(frozen=True)
class Crew:
    """The ranks of an MPI world, as they have met: which of them are on this node, and their boards."""

    mpi: Any
    world: Any
    peers: Sequence[Peer]
    near: frozenset[int]
    boards: Boards

    @property
    def rank(self) -> int:
        """This one."""
        return int(self.world.Get_rank())

    @property
    def is_on_one_node(self) -> bool:
        """All ranks see each other's memory."""
        return len(self.near) == int(self.world.Get_size())


class Mpi(Processes):
    """One rank of an MPI world."""

    ends_by_signal = True

    def __init__(self, timeout: float | None = None) -> None:
        limit = default_timeout() if timeout is None else timeout
        self.crew = meet(library(limit), limit)
        self.engine = engine_name(self.crew.mpi.Get_library_version())
        self.near = self.crew.near
        self.mail: Mail | None = None
        self.far_windows: dict[int, Shared] = {}
        """By the number of the window."""
        super().__init__(self.crew.rank, self.crew.boards, limit)

    def begin(self) -> None:
        """The ranks have met already; between nodes, the boards have to be reachable first."""
        self.peers = list(self.crew.peers)
        if not self.crew.is_on_one_node:
            must_allow_threads(self.crew.mpi)
            board = self.boards.memory(self.rank)
            self.mail = Mail(self, self.crew.mpi, self.crew.world, board, swaps=self.engine in FLUSH_IS_DEAR)
        super().begin()
        forget_names()

    # Words: those that several ranks change are changed by MPI alone where one of them can do no other.

    def load(self, rank: int, word: int) -> int:
        """A word of a rank's board."""
        return self.boards.load(rank, word) if rank in self.near else self._mail.load(rank, word)

    def store(self, rank: int, word: int, value: int) -> None:
        """Write it."""
        if rank in self.near and (self.mail is None or not _is_signal(word)):
            self.boards.store(rank, word, value)
        else:
            self._mail.store(rank, word, value)

    def add(self, rank: int, word: int, value: int) -> int:
        """Add to it."""
        return self.boards.add(rank, word, value) if self.mail is None else self.mail.add(rank, word, value)

    def exchange_word(self, rank: int, word: int, expected: int, value: int) -> int:
        """Write `value` where `expected` stands."""
        by = self.boards if self.mail is None else self.mail
        return by.exchange_word(rank, word, expected, value)

    def write(self, rank: int, word: int, data: bytes) -> None:
        """Bytes onto a rank's board."""
        (self.boards if rank in self.near else self._mail).write(rank, word, data)

    def deliver(self, ranks: Sequence[int], word: int, data: bytes, number: int) -> None:
        """A message onto the boards of ranks."""
        super().deliver([rank for rank in ranks if rank in self.near], word, data, number)
        if self.mail is not None:
            self.mail.deliver([rank for rank in ranks if rank not in self.near], word, data, number)

    @property
    def _mail(self) -> Mail:
        assert self.mail is not None
        return self.mail

    # Memory

    def register(self, memory: Bytes) -> list[Reach]:
        """Memory of this node as the local engine does it; between nodes, an MPI window over it."""
        if self.mail is not None:
            self._forget_freed(self.mail)
            self.far_windows[self.windows - 1] = self.mail.window(memory)
        return super().register(memory)

    def _reach(self, rank: int, piece: Piece, own: Bytes) -> Reach:
        if rank in self.near:
            return super()._reach(rank, piece, own)
        return Far(self._mail, self.far_windows[self.windows - 1], rank)

    def _forget_freed(self, mail: Mail) -> None:
        """MPI takes a window back from all ranks together: those that every rank has freed by now."""
        freed = [set(one) for one in self.exchange(sorted(self.far_windows.keys() - self.live.keys()), REGISTRATION)]
        for number in sorted(set.intersection(*freed)):
            mail.free(self.far_windows.pop(number))

    def fence(self) -> None:
        """Everything that this rank has put has arrived."""
        if self.mail is not None:
            self.mail.fence()

    # The end

    def abort(self, failed: RankError) -> None:
        """Tell every rank; one that does not answer now is not waited for."""
        if self.mail is not None:
            self.mail.patience = PATIENCE
        super().abort(failed)

    def leave(self, has_failed: bool) -> None:
        """End together with the other ranks; where that cannot be, end them all."""
        if not has_failed:
            self.close()
            try:
                self._await_end()
                if self.mail is not None:
                    self.mail.close()
            except RankError as failed:
                say(f"rank {self.rank}: {failed}")
                self.abort(failed)
            else:
                return
        self._break_off()

    def _await_end(self) -> None:
        """Until every rank has left, however long that takes: they may have work to do, with this rank's memory."""
        pause = Pause(most=0.02)
        moving = time.monotonic()
        while left := [rank for rank in range(self.size) if self.load(rank, Layout.STATE) != LEFT]:
            self.must_be_well()
            how = {rank: self.status(rank) for rank in left}
            moving = moving if all(how.values()) else time.monotonic()
            if GONE in how.values() or time.monotonic() - moving > self.timeout:
                peers = named([f"{self.peers[rank]} {way}" for rank, way in how.items() if way])
                raise error("PTO-R030", f"{peers}; {self.peers[self.rank]} was waiting for the end.", rank=self.rank)
            pause()

    def _break_off(self) -> None:
        """Let the other ranks say what they have to say, for a while; then end whatever is left of this world."""
        with suppress(ValueError):  # not the main thread
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
        self._await_last_words()
        is_first = self._is_first_to_end()
        if self.mail is not None:
            time.sleep(SETTLE_SECONDS if is_first else 0)
            self.mail.rest()
        time.sleep(0 if is_first else YIELD_SECONDS)
        forget_names()
        signal.alarm(ABORT_SECONDS)  # in case MPI itself hangs
        for rank in self.near - {self.rank}:  # not every mpiexec ends what is stopped, or what it was told to leave
            if self.load(rank, Layout.STATE) not in (LEFT, FAILED) and self.status(rank) != GONE:
                with suppress(OSError):
                    os.kill(self.peers[rank].pid, signal.SIGKILL)
        self.crew.mpi.COMM_WORLD.Abort(1)
        os._exit(1)

    def _await_last_words(self) -> None:
        """Until all others have said what they have to say, for a while; and mpiexec has forwarded it."""
        end = time.monotonic() + self.timeout
        with suppress(RankError):
            while time.monotonic() < end and not all(self._is_over(rank) for rank in range(self.size)):
                time.sleep(0.01)
        time.sleep(FORWARD_SECONDS)

    def _is_first_to_end(self) -> bool:
        """No lower rank is about to end this world."""
        with suppress(RankError):
            return not any(
                not self.status(rank) and self.load(rank, Layout.STATE) == FAILED for rank in range(self.rank)
            )
        return True

    def _is_over(self, rank: int) -> bool:
        if rank == self.rank or self.status(rank):
            return True
        return self.load(rank, Layout.STATE) in (LEFT, FAILED)


def _is_signal(word: int) -> bool:
    return Layout.SIGNAL <= word < Layout.SIGNAL + SIGNALS


def must_allow_threads(mpi: Any) -> None:
    """A rank whose memory others reach through MPI makes its calls in a thread of its own."""
    levels = ("SINGLE", "FUNNELED", "SERIALIZED", "MULTIPLE")
    given = next(name for name in levels if getattr(mpi, f"THREAD_{name}") == mpi.Query_thread())
    if given != "MULTIPLE":
        raise PtoError(
            f"between nodes ptokit needs MPI with THREAD_MULTIPLE, and this process has begun it with THREAD_{given}: "
            f"leave mpi4py.rc.threads and mpi4py.rc.thread_level as they are, or take a library that has it"
        )


# Meeting


def joined(limit: float | None) -> Mpi:
    """This process as a rank; where that fails, the end of this script is the end of the world: nobody can join it."""
    try:
        return Mpi(limit)
    except BaseException:
        atexit.register(_end_all)
        raise


def _end_all() -> None:
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized():
        time.sleep(FORWARD_SECONDS)
        forget_names()
        mpi.COMM_WORLD.Abort(1)


def meet(mpi: Any, limit: float) -> Crew:
    """Wait for all ranks, find those of this node, and share boards with them."""
    world = mpi.COMM_WORLD
    _must_know_each_other(mpi, world.Get_size())
    peers = say_hello(world, limit)
    node = _node(mpi, world)
    members = node.allgather(world.Get_rank())
    boards = _boards_of_node(node, members, world.Get_size())
    if boards is None:  # processes of one node that cannot reach each other, as in containers, are nodes of their own
        node = world.Split(world.Get_rank())
        members = [world.Get_rank()]
        boards = _boards_of_node(node, members, world.Get_size())
        assert boards is not None
    return Crew(mpi, world.Dup(), peers, frozenset(members), boards)


def _must_know_each_other(mpi: Any, size: int) -> None:
    """An mpiexec of one library starts processes of another, which then are alone, all of them."""
    told = next((os.environ[name] for name in SIZE_NAMES if name in os.environ), "")
    if told.isdigit() and int(told) != size:
        version = mpi.Get_library_version().splitlines()[0].strip()
        raise PtoValueError(
            f"mpiexec has started {told} ranks, and the MPI library of mpi4py ({version}) knows of {size}: use the "
            f"mpiexec that belongs to it, as installed beside this Python ({Path(sys.executable).parent})"
        )


def say_hello(world: Any, limit: float) -> list[Peer]:
    """A message from each to each, who it is: what comes after it is entered by all. No wait is without an end."""
    rank, size = world.Get_rank(), world.Get_size()
    own = Peer(rank, socket.gethostname(), os.getpid())
    coming = {other: world.irecv(HELLO_BYTES, other, HELLO_TAG) for other in range(size) if other != rank}
    going = [world.isend(own, other, HELLO_TAG) for other in coming]
    found, pause, end = {rank: own}, Pause(), time.monotonic() + limit
    while len(found) < size:
        for other in coming.keys() - found.keys():
            has_come, peer = coming[other].test()
            if has_come:
                found[other] = peer
        if len(found) < size and time.monotonic() > end:
            missing = sorted(coming.keys() - found.keys())
            raise error(
                "PTO-R032",
                f"{own} has waited {limit:g} s at the start for {named([f'rank {other}' for other in missing])} of "
                f"this MPI world.",
                rank=rank,
                missing=missing,
                at="the start",
                seconds=limit,
            )
        pause()
    for request in going:
        request.wait()
    return [found[other] for other in range(size)]


def _node(mpi: Any, world: Any) -> Any:
    """The ranks that share memory with this one."""
    rank, size = world.Get_rank(), world.Get_size()
    pretended = os.environ.get(NODES_NAME, "")
    if pretended:
        if not pretended.isdigit() or not 1 <= int(pretended) <= size:
            raise PtoValueError(f"{NODES_NAME}={pretended!r}; a number of nodes from 1 to {size} is wanted")
        return world.Split(rank * int(pretended) // size, rank)
    return world.Split_type(mpi.COMM_TYPE_SHARED, rank)


def _boards_of_node(node: Any, members: Sequence[int], size: int) -> Boards | None:
    """One file without a name, made by the first rank of the node and opened by the others; None where they cannot."""
    nbytes, fd = Layout(size).nbytes * len(members), -1
    who = f"rank {members[0]} (host {socket.gethostname()}, pid {os.getpid()})"
    made: tuple[int, int] | PtoError = (0, 0)
    if node.Get_rank() == 0:
        try:
            fd = nameless_file(nbytes, who)
            made = (os.getpid(), fd)
        except PtoError as refused:
            made = refused
    made = node.bcast(made)
    if isinstance(made, PtoError):
        raise made
    if fd < 0:
        with suppress(OSError):
            fd = os.open(f"/proc/{made[0]}/fd/{made[1]}", os.O_RDWR | os.O_CLOEXEC)
    everybody = node.allgather(fd >= 0)
    return Boards.of_file(size, fd, members) if all(everybody) else None
