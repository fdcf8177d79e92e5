"""Words in memory that several ranks share: read and written whole, added to and exchanged by one rank at a time."""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

_native: ModuleType | None
try:
    _native = import_module("ptokit._native")
except ImportError:  # the package works without its compiled half, only slower
    _native = None

WORD = 8


class Words:
    """The 64-bit words of a stretch of memory; `lock` stands in for atomics where the compiled module is missing."""

    def __init__(self, memory: Bytes, lock: Lock) -> None:
        self.memory = memory
        self._words: npt.NDArray[np.int64] = memory[: memory.size // WORD * WORD].view(np.int64)
        self.address = int(self._words.__array_interface__["data"][0])
        self._lock = lock

    def load(self, word: int) -> int:
        """What stands there; everything that was written before it is there too."""
        if _native:
            return int(_native.word_load(self.address + word * WORD))
        return int(self._words[word])

    def store(self, word: int, value: int) -> None:
        """Write it, after everything that was written before."""
        if _native:
            _native.word_store(self.address + word * WORD, value)
        else:
            self._words[word] = value

    def add(self, word: int, value: int) -> int:
        """Add, and return what stood there before."""
        if _native:
            return int(_native.word_add(self.address + word * WORD, value))
        with self._lock.held():
            before = int(self._words[word])
            self._words[word] = before + value
        return before

    def exchange(self, word: int, expected: int, value: int) -> int:
        """Write `value` where `expected` stands; return what stood there."""
        if _native:
            return int(_native.word_exchange(self.address + word * WORD, expected, value))
        with self._lock.held():
            before = int(self._words[word])
            if before == expected:
                self._words[word] = value
        return before


class Lock:
    """One holder at a time: of the threads of a process, and of the processes that share a file."""

    def __init__(self, fd: int | None = None) -> None:
        self._fd = fd
        self._threads = threading.Lock()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold it."""
        with self._threads:
            if self._fd is not None:
                fcntl.lockf(self._fd, fcntl.LOCK_EX)
            try:
                yield
            finally:
                if self._fd is not None:
                    fcntl.lockf(self._fd, fcntl.LOCK_UN)


def address_of(array: npt.NDArray[Any]) -> int:
    """Where an array's memory begins."""
    return int(array.__array_interface__["data"][0])
