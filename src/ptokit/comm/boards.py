"""Boards in memory that every rank sees: of the threads of one process, or of the processes of one machine."""

from __future__ import annotations

import mmap

import numpy as np

from ptokit.comm.transport import Layout
from ptokit.comm.words import WORD, Bytes, Lock, Words


class Boards:
    """The boards of all ranks in one stretch of memory."""

    def __init__(self, size: int, memory: Bytes, lock: Lock) -> None:
        self.layout = Layout(size)
        step = self.layout.nbytes
        self._memory = [memory[rank * step : (rank + 1) * step] for rank in range(size)]
        self._words = [Words(one, lock) for one in self._memory]

    @classmethod
    def of_file(cls, size: int, fd: int) -> Boards:
        """Boards in a file that the ranks' processes share."""
        view = mmap.mmap(fd, Layout(size).nbytes * size)
        return cls(size, np.frombuffer(view, np.uint8), Lock(fd))

    @classmethod
    def of_process(cls, size: int) -> Boards:
        """Boards of threads."""
        return cls(size, np.zeros(Layout(size).nbytes * size, np.uint8), Lock())

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

    def address(self, rank: int, word: int) -> int:
        """Where a word stands, for the compiled module."""
        return self._words[rank].address + word * WORD
