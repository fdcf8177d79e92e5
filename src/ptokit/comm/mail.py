"""Boards and memory of ranks on other nodes: one-sided MPI calls, made by a courier."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptokit.comm.courier import Courier, StuckError
from ptokit.comm.faults import RankError, error, named
from ptokit.comm.transport import GONE, Layout, Pause, Transport
from ptokit.comm.words import WORD, Bytes, address_of

PROGRESS_TAG = 32001
"""Of messages that nobody sends: looking for one lets MPI work."""
MOST_BYTES = 1 << 26
MOST_RUNS = 1 << 14
"""Of one errand, which has to be over within the timeout."""
LOOK_EVERY = 0.05
HELD_BYTES = 1 << 22
"""So much may be on its way."""


@dataclass(frozen=True, eq=False)
class Shared:
    """Memory of every rank behind an MPI window."""

    mpi: Any


@dataclass(frozen=True, eq=False)
class Far:
    """The memory of a rank that this process cannot see."""

    mail: Mail
    window: Shared
    rank: int
    view: None = None

    def put(self, offset: int, data: Bytes) -> None:
        """Write there; `data` may change when this is over, and has arrived after `fence`."""
        whole = np.ascontiguousarray(data).reshape(-1)
        for start in range(0, whole.nbytes, MOST_BYTES):
            self.mail.put(self.window, self.rank, offset + start, whole[start : start + MOST_BYTES])

    def get(self, offset: int, out: Bytes) -> None:
        """Read from there."""
        whole = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
        flat = whole.reshape(-1)
        for start in range(0, whole.nbytes, MOST_BYTES):
            self.mail.get(self.window, self.rank, offset + start, flat[start : start + MOST_BYTES])
        if whole is not out:
            out[...] = whole

    def put_runs(self, offsets: Any, length: int, data: Bytes) -> None:
        """Runs of equal length, one after the other in `data`."""
        for group, part in self._groups(offsets, length, np.ascontiguousarray(data).reshape(-1)):
            self.mail.put_runs(self.window, self.rank, group, length, part)

    def get_runs(self, offsets: Any, length: int, out: Bytes) -> None:
        """The reverse."""
        whole = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
        for group, part in self._groups(offsets, length, whole.reshape(-1)):
            self.mail.get_runs(self.window, self.rank, group, length, part)
        if whole is not out:
            out[...] = whole

    def _groups(self, offsets: Any, length: int, data: Bytes) -> Iterator[tuple[Any, Bytes]]:
        """As many runs as go in one errand, and their bytes."""
        starts = np.asarray(offsets, np.int64).reshape(-1)
        most = max(1, min(MOST_RUNS, MOST_BYTES // max(length, 1)))
        for first in range(0, len(starts) if length else 0, most):
            group = starts[first : first + most]
            yield group, data[first * length : (first + len(group)) * length]


def bytes_of(data: bytes) -> Bytes:
    """Bytes as MPI takes them for every call: in memory that may be written to."""
    return np.frombuffer(bytearray(data), np.uint8)


class Mail:
    """One-sided access to the other ranks of an MPI world, none of which may be on this node.

    An MPI call that waits for a rank which is stopped cannot be given up, and takes all others of this process with it;
    and while it waits it leaves no processor to anybody. So nothing is waited for by a flush: a word of the rank is
    asked for first, by a request that can be looked at now and then. What was put before has arrived when it comes.
    """

    def __init__(self, transport: Transport, mpi: Any, world: Any, board: Bytes, *, swaps: bool) -> None:
        self._own, self._mpi, self._world = transport, mpi, world
        self._swaps = swaps
        """A swap tells when it has arrived; where a flush is dear, it replaces the put of what is small."""
        self._courier = Courier(lambda: world.Iprobe(mpi.ANY_SOURCE, PROGRESS_TAG))
        self.patience = math.inf
        """Seconds that a rank has to answer, where they are fewer than the timeout."""
        self._dirty: dict[Shared, set[int]] = {}
        self._held: list[Bytes] = []
        self._held_bytes = 0
        self._marks: list[Any] = []
        self._windows: list[Shared] = []
        self._boards = self.window(board).mpi

    # Words and messages of boards

    def load(self, rank: int, word: int) -> int:
        """A word of a rank's board."""
        return int(self._carry([rank], lambda: self._peek(rank, word)))

    def store(self, rank: int, word: int, value: int) -> None:
        """Write it."""
        self._carry([rank], lambda: self._fetch(rank, word, value, self._mpi.REPLACE))

    def add(self, rank: int, word: int, value: int) -> int:
        """Add to it; return what stood there before."""
        return int(self._carry([rank], lambda: self._fetch(rank, word, value, self._mpi.SUM)))

    def exchange_word(self, rank: int, word: int, expected: int, value: int) -> int:
        """Write `value` where `expected` stands; return what stood there."""

        def call() -> int:
            self._must_answer([rank])
            new, old, back = (np.array([one], np.int64) for one in (value, expected, 0))
            self._boards.Compare_and_swap(new, old, back, rank, word * WORD)
            self._boards.Flush(rank)
            return int(back[0])

        return int(self._carry([rank], call))

    def write(self, rank: int, word: int, data: bytes) -> None:
        """Bytes onto a rank's board, from a word on."""

        self._carry([rank], lambda: self._bring([rank], word, bytes_of(data)))

    def deliver(self, ranks: Sequence[int], word: int, data: bytes, number: int) -> None:
        """A message: its bytes behind a word, and then its number into the word, which may still be on its way."""
        text, mark = bytes_of(data), np.array([number], np.int64)

        def call() -> None:
            self._bring(ranks, word + 1, text)
            for rank in ranks:
                self._boards.Put(mark, rank, word * WORD)
            self._marks = [mark, *self._marks[:1]]  # the last but one has arrived: who sent for it has answered since

        if ranks:
            self._carry(ranks, call)

    def _peek(self, rank: int, word: int) -> int:
        """Read a word."""
        out = np.zeros(1, np.int64)
        self._await({rank: self._boards.Rget(out, rank, word * WORD)})
        return int(out[0])

    def _must_answer(self, ranks: Sequence[int]) -> None:
        """Every one of these ranks is there."""
        self._await({rank: self._boards.Rget(np.zeros(1, np.int64), rank, Layout.STATE * WORD) for rank in ranks})

    def _await(self, requests: dict[int, Any]) -> None:
        """Look at requests until they are done."""
        pause, begun = Pause(most=1e-4), time.monotonic()
        looked = begun
        while requests := {rank: request for rank, request in requests.items() if not request.Test()}:
            now = time.monotonic()
            if now - looked > LOOK_EVERY:
                looked = now
                self._must_be_there(requests)
            if now - begun > min(self._own.timeout, self.patience):
                raise self._no_answer(list(requests))
            pause()

    def _must_be_there(self, ranks: Iterable[int]) -> None:
        """No rank that is asked has gone, as far as this node can tell."""
        for rank in ranks:
            if self._own.status(rank) == GONE:
                raise error("PTO-R030", f"{self._own.peers[rank]} is gone.", ranks=[rank], rank=self._own.rank)

    def _arrive(self, window: Any, ranks: Sequence[int]) -> None:
        """What was put into memory of these ranks has arrived."""
        self._must_answer(ranks)
        for rank in ranks:
            window.Flush(rank)

    def _bring(self, ranks: Sequence[int], word: int, text: Bytes) -> None:
        """Bytes onto boards, where they have arrived when this is over."""
        if self._swaps:
            self._await({rank: self._swap(rank, word, text, np.empty_like(text), self._mpi.REPLACE) for rank in ranks})
            return
        for rank in ranks:
            self._boards.Put(text, rank, word * WORD)
        self._arrive(self._boards, ranks)

    def _swap(self, rank: int, word: int, given: Any, back: Any, operation: Any) -> Any:
        return self._boards.Rget_accumulate(given, back, rank, word * WORD, op=operation)

    def _fetch(self, rank: int, word: int, value: int, operation: Any) -> int:
        """Change a word; what stood there before."""
        given, back = np.array([value], np.int64), np.zeros(1, np.int64)
        if self._swaps:
            self._await({rank: self._swap(rank, word, given, back, operation)})
        else:
            self._must_answer([rank])
            self._boards.Fetch_and_op(given, back, rank, word * WORD, operation)
            self._boards.Flush(rank)
        return int(back[0])

    # Memory

    def window(self, memory: Bytes) -> Shared:
        """Make memory reachable; all ranks together."""

        def call() -> Any:
            place = self._mpi.memory.fromaddress(address_of(memory), memory.nbytes)
            made = self._mpi.Win.Create(place, 1, comm=self._world)
            made.Lock_all(self._mpi.MODE_NOCHECK)
            return made

        made = Shared(self._carry(self._others(), call))
        self._windows.append(made)
        return made

    def free(self, window: Shared) -> None:
        """The reverse; all ranks together, and in the same order."""

        def call() -> None:
            window.mpi.Unlock_all()
            window.mpi.Free()

        self._windows.remove(window)
        self._dirty.pop(window, None)
        self._carry(self._others(), call)

    def put(self, window: Shared, rank: int, offset: int, data: Bytes) -> None:
        """Write into a rank's memory; `data` may change when this is over."""
        where = (offset, data.nbytes, self._mpi.BYTE)
        self._put(window, rank, data, lambda part: window.mpi.Put(part, rank, where))

    def put_runs(self, window: Shared, rank: int, offsets: Any, length: int, data: Bytes) -> None:
        """Runs of equal length into a rank's memory."""

        def put(part: Bytes) -> None:
            with self._runs(offsets, length) as runs:
                window.mpi.Put(part, rank, (0, 1, runs))

        self._put(window, rank, data, put)

    def _put(self, window: Shared, rank: int, data: Bytes, put: Callable[[Bytes], None]) -> None:
        """What is small is copied, and may be on its way until `fence`; what is large has arrived after this."""
        if self._held_bytes + data.nbytes > HELD_BYTES:
            self.fence()
        if data.nbytes <= HELD_BYTES:
            part = data.copy()
            self._held.append(part)
            self._held_bytes += part.nbytes
            self._dirty.setdefault(window, set()).add(rank)
            self._carry([rank], lambda: put(part))
            return

        def call() -> None:
            put(data)
            self._arrive(window.mpi, [rank])

        self._carry([rank], call)

    def get(self, window: Shared, rank: int, offset: int, out: Bytes) -> None:
        """Read a rank's memory."""
        where = (offset, out.nbytes, self._mpi.BYTE)
        self._carry([rank], lambda: self._await({rank: window.mpi.Rget(out, rank, where)}))

    def get_runs(self, window: Shared, rank: int, offsets: Any, length: int, out: Bytes) -> None:
        """Runs of equal length of a rank's memory."""

        def call() -> None:
            with self._runs(offsets, length) as runs:
                self._await({rank: window.mpi.Rget(out, rank, (0, 1, runs))})

        self._carry([rank], call)

    @contextmanager
    def _runs(self, offsets: Any, length: int) -> Iterator[Any]:
        """The datatype of runs: one with a stride where there is one, which is short to send."""
        steps, byte = np.diff(offsets), self._mpi.BYTE
        if len(steps) and steps[0] >= length and (steps == steps[0]).all():
            even = byte.Create_hvector(len(offsets), length, int(steps[0]))
            made = even.Create_hindexed([1], [int(offsets[0])])
            even.Free()
        else:
            made = byte.Create_hindexed_block(length, offsets.tolist())
        made.Commit()
        try:
            yield made
        finally:
            made.Free()

    def fence(self) -> None:
        """Everything that was put has arrived."""
        dirty, self._dirty = self._dirty, {}
        if dirty:

            def call() -> None:
                for window, ranks in dirty.items():
                    self._arrive(window.mpi, sorted(ranks))

            self._carry(sorted(set().union(*dirty.values())), call)
            self._held.clear()
            self._held_bytes = 0

    # The end

    def close(self) -> None:
        """Give everything back; all ranks together."""
        for window in reversed(list(self._windows)):
            self.free(window)
        self.rest()

    def rest(self) -> None:
        """No more calls; MPI does not notice in this process either that others are gone."""
        self._courier.end(min(self._own.timeout, self.patience))

    # Calls

    def _carry(self, ranks: Sequence[int], call: Callable[[], Any]) -> Any:
        """Make a call that has to do with these ranks."""
        try:
            return self._courier.carry(call, 1.2 * min(self._own.timeout, self.patience) + 0.5)
        except StuckError:
            raise self._no_answer(ranks) from None
        except self._mpi.Exception as refused:
            self._must_be_there(ranks)
            reason = refused.Get_error_string().split("\n")[0].rstrip(":. ")
            raise error(
                "PTO-R039",
                f"{self._own.peers[self._own.rank]} cannot reach the memory of {self._named(ranks)}: {reason}.",
                rank=self._own.rank,
                others=list(ranks),
            ) from None

    def _no_answer(self, ranks: Sequence[int]) -> RankError:
        own, limit = self._own.peers[self._own.rank], min(self._own.timeout, self.patience)
        return error(
            "PTO-R032",
            f"{own} has waited {limit:g} s for an answer of {self._named(ranks)}.",
            rank=own.rank,
            missing=list(ranks),
            seconds=limit,
        )

    def _others(self) -> list[int]:
        return [rank for rank in range(self._own.size) if rank != self._own.rank]

    def _named(self, ranks: Sequence[int]) -> str:
        said = [f"{self._own.peers[r]}{', which ' + how if (how := self._own.status(r)) else ''}" for r in ranks]
        return named(said)
