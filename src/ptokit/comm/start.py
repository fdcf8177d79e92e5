"""`pto.comm.world()`: the world that a script was started in, by `python -m ptokit.comm` or by an `mpiexec`."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cache

from ptokit.comm.attend import announce
from ptokit.comm.boards import Boards
from ptokit.comm.ending import Brief, ends_well
from ptokit.comm.engines import Meeting, Processes, Threads
from ptokit.comm.faults import RankError
from ptokit.comm.rank import Rank
from ptokit.comm.transport import seconds
from ptokit.errors import PtoValueError, well_called

PLACE_NAME = "PTOKIT_COMM_PLACE"
"""What the launcher tells a rank: who it is, and where the boards are."""

MPIEXEC_NAMES = ("OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_FD", "PALS_RANKID")
"""Set by an mpiexec, whichever it is."""


@dataclass(frozen=True)
class Place:
    """A rank of the launcher, as the environment says it."""

    fd: int
    inode: int
    rank: int
    size: int
    timeout: float

    def __str__(self) -> str:
        return f"{self.fd}:{self.inode}:{self.rank}:{self.size}:{self.timeout}"

    @classmethod
    def of(cls, told: str) -> Place:
        """Read it back."""
        fd, inode, rank, size, timeout = told.split(":")
        return cls(int(fd), int(inode), int(rank), int(size), float(timeout))

    @property
    def is_ours(self) -> bool:
        """The boards are there: a process that a rank has started inherits the words, and not the file."""
        try:
            return os.fstat(self.fd).st_ino == self.inode
        except OSError:
            return False


@dataclass
class Membership:
    """The one world of this process."""

    rank: Rank | None = None
    pid: int = 0


@cache
def _membership() -> Membership:
    return Membership()


@well_called
def world(*, timeout: float | None = None) -> Rank:
    """The world that this script was started in, and this process's rank in it; the same one at every call.

    Under `python -m ptokit.comm -n 4 script.py` a rank of four processes of this machine; under
    `mpiexec -n 4 python -m mpi4py script.py` one of an MPI world; otherwise the only rank of a world of one.
    Every wait ends after `timeout` seconds, for all ranks that say the same.

    >>> import ptokit as pto
    >>> rank = pto.comm.world()
    >>> rank.rank, rank.size, rank.exchange("me")
    (0, 1, ['me'])
    """
    limit = None if timeout is None else seconds(timeout, "timeout")
    member = _membership()
    if member.rank is None:
        member.rank, member.pid = _join(limit), os.getpid()
    if member.pid != os.getpid():
        raise PtoValueError(
            f"{member.rank.transport.peers[member.rank.rank]} has started this process (pid {os.getpid()}), which is "
            f"no rank itself: call pto.comm.world() in the script that was launched"
        )
    if limit is not None:
        member.rank.transport.timeout = limit
    return member.rank


def _join(limit: float | None) -> Rank:
    place, brief = _place(), Brief()
    if place is not None:
        rank = _rank_of_launcher(place, limit)
    elif under_mpiexec():
        from ptokit.comm.mpi import joined

        rank = Rank(joined(limit))
    else:
        rank = Rank(Threads(0, Boards.of_process(1), Meeting(), limit))
    brief.joined()
    return ends_well(rank) if rank.size > 1 or rank.engine != Threads.engine else rank


def _place() -> Place | None:
    """What the launcher has said to this very process."""
    told = os.environ.pop(PLACE_NAME, "")
    place = Place.of(told) if told else None
    return place if place is not None and place.is_ours else None


def _rank_of_launcher(place: Place, limit: float | None) -> Rank:
    os.set_inheritable(place.fd, False)
    boards = Boards.of_file(place.size, place.fd)
    try:
        return Rank(Processes(place.rank, boards, limit or place.timeout))
    except RankError as failed:
        announce(boards, place.rank, failed)
        raise


def under_mpiexec() -> bool:
    """This process was started by an mpiexec, or has begun MPI by itself with others."""
    if any(name in os.environ for name in MPIEXEC_NAMES):
        return True
    loaded = sys.modules.get("mpi4py.MPI")
    return loaded is not None and loaded.Is_initialized() and loaded.COMM_WORLD.Get_size() > 1
