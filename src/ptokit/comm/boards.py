"""Boards in memory that every rank sees: of the threads of one process, or of the processes of one machine."""

from __future__ import annotations

import mmap
from collections.abc import Sequence

import numpy as np

from ptokit.comm.transport import Layout
from ptokit.comm.words import WORD, Bytes, Lock, Words


class Boards:
    """The boards of all ranks, or of some, in one stretch of memory."""

    def __init__(self, size: int, memory: Bytes, lock: Lock, ranks: Sequence[int] | None = None) -> None:
        self.layout = Layout(size)
        step = self.layout.nbytes
        members = range(size) if ranks is None else ranks
        self._memory = {rank: memory[at * step : (at + 1) * step] for at, rank in enumerate(members)}
        self._words = {rank: Words(one, lock) for rank, one in self._memory.items()}

    @classmethod
    def of_file(cls, size: int, fd: int, ranks: Sequence[int] | None = None) -> Boards:
        """Boards in a file that the ranks' processes share."""
        view = mmap.mmap(fd, Layout(size).nbytes * (size if ranks is None else len(ranks)))
        return cls(size, np.frombuffer(view, np.uint8), Lock(fd), ranks)

    @classmethod
    def of_process(cls, size: int) -> Boards:
        """Boards of threads."""
        return cls(size, np.zeros(Layout(size).nbytes * size, np.uint8), Lock())

    def words_of(self, rank: int) -> Words:
        """A rank's board as words."""
        return self._words[rank]

    def load(self, rank: int, word: int) -> int:
        """A word of a rank's board."""
        return self._words[rank].load(word)

    def store(self, rank: int, word: int, value: int) -> None:
        """Write it, after everything that was written before."""
        self._words[rank].store(word, value)

    def add(self, rank: int, word: int, value: int) -> int:
        """Add to it; return what stood there before."""
        return self._words[rank].add(word, value)

    def exchange_word(self, rank: int, word: int, expected: int, value: int) -> int:
        """Write `value` where `expected` stands; return what stood there."""
        return self._words[rank].exchange(word, expected, value)

    def write(self, rank: int, word: int, data: bytes) -> None:
        """Bytes from a word on."""
        start = word * WORD
        self._memory[rank][start : start + len(data)] = np.frombuffer(data, np.uint8)

    def read(self, rank: int, word: int, nbytes: int) -> bytes:
        """Bytes from a word on."""
        return self._memory[rank][word * WORD : word * WORD + nbytes].tobytes()

    def memory(self, rank: int) -> Bytes:
        """A rank's whole board."""
        return self._memory[rank]

    def address(self, rank: int, word: int) -> int:
        """Where a word stands, for the compiled module."""
        return self._words[rank].address + word * WORD
