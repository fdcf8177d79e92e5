"""The embedded engines: ranks that are threads of this process, or processes of this machine."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace

import numpy as np

from ptokit.comm.boards import Boards
from ptokit.comm.faults import error
from ptokit.comm.reach import Direct, Foreign, may_be_reached
from ptokit.comm.segments import Piece, Segments
from ptokit.comm.transport import Layout, Reach, Transport
from ptokit.comm.words import Bytes


class Embedded(Transport):
    """What threads and processes have in common: boards that every rank sees."""

    def __init__(self, rank: int, boards: Boards, timeout: float | None) -> None:
        super().__init__(rank, boards.layout.size, timeout)
        self.boards = boards
        self._own = boards.words_of(rank)

    def load(self, rank: int, word: int) -> int:
        """A word of a rank's board."""
        return self.boards.load(rank, word)

    def store(self, rank: int, word: int, value: int) -> None:
        """Write it."""
        self.boards.store(rank, word, value)

    def must_be_well(self) -> None:
        """No rank has failed: asked at every call, and so by the shortest way."""
        if self._own.load(Layout.FAILURE) > 0:
            super().must_be_well()

    def add(self, rank: int, word: int, value: int) -> int:
        """Add to it."""
        return self.boards.add(rank, word, value)

    def exchange_word(self, rank: int, word: int, expected: int, value: int) -> int:
        """Write `value` where `expected` stands."""
        return self.boards.exchange_word(rank, word, expected, value)

    def write(self, rank: int, word: int, data: bytes) -> None:
        """Bytes onto a rank's board."""
        self.boards.write(rank, word, data)

    def read_own(self, word: int, nbytes: int) -> bytes:
        """Bytes of this rank's own board."""
        return self.boards.read(self.rank, word, nbytes)

    def fence(self) -> None:
        """What is written here is there at once."""

    def status(self, rank: int) -> str:
        """As above; a rank that has never come may still have left its process number on its board."""
        if not self.peers[rank].pid:
            self.peers[rank] = replace(self.peers[rank], pid=self.load(rank, Layout.PID))
        return super().status(rank)

    def state_address(self, rank: int, slot: int) -> int:
        """Where the state of a window of a rank stands; the word that says who writes to it is the next."""
        return self.boards.address(rank, self.layout.window_state(slot))


class Processes(Embedded):
    """One rank of a world of processes."""

    engine = "local"

    def __init__(self, rank: int, boards: Boards, timeout: float | None = None) -> None:
        super().__init__(rank, boards, timeout)
        self.segments = Segments()
        may_be_reached()
        self.begin()

    def shared(self, nbytes: int) -> Bytes:
        """New memory in a segment."""
        return self.segments.make(nbytes, str(self.peers[self.rank]))

    def register(self, memory: Bytes) -> list[Reach]:
        """Segments are opened; any other memory is left where it is, and copied to by the system."""
        pieces: list[Piece] = self.exchange(self.segments.describe(memory), "the registration of memory")
        return [self._reach(rank, piece, memory) for rank, piece in enumerate(pieces)]

    def _reach(self, rank: int, piece: Piece, own: Bytes) -> Reach:
        if rank == self.rank:
            return Direct(own)
        view = self.segments.open(piece)
        return Foreign(self.peers[rank], piece.address) if view is None else Direct(view)


@dataclass
class Meeting:
    """Where the threads of a world leave their arrays for each other."""

    arrays: dict[tuple[int, int], Bytes] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Threads(Embedded):
    """One rank of a world of threads: memory is seen as it is."""

    engine = "threads"

    def __init__(self, rank: int, boards: Boards, meeting: Meeting, timeout: float | None = None) -> None:
        super().__init__(rank, boards, timeout)
        self.meeting = meeting
        self.begin()

    def shared(self, nbytes: int) -> Bytes:
        """New memory."""
        try:
            return np.zeros(nbytes, np.uint8)
        except MemoryError:
            who = self.peers[self.rank]
            raise error(
                "PTO-R037", f"{who} needs {nbytes} bytes of memory, which there are not.", nbytes=nbytes
            ) from None

    def register(self, memory: Bytes) -> list[Reach]:
        """The arrays themselves."""
        number = self.windows
        self.meeting.arrays[number, self.rank] = memory
        self.barrier()
        found: list[Reach] = [Direct(self.meeting.arrays[number, rank]) for rank in range(self.size)]
        # Whoever makes the next window has seen everybody take this one.
        self.meeting.arrays.pop((number - 1, self.rank), None)
        return found
