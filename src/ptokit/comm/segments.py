"""Memory that the processes of one machine share: files without a name, gone with the last process that has them."""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
import weakref
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ptokit.comm.faults import error
from ptokit.comm.words import Bytes, address_of

DIR_NAME = "PTOKIT_SHM_DIR"


@dataclass(frozen=True)
class Piece:
    """Memory as its process describes it to others: a part of a segment, or an address of its own."""

    pid: int
    address: int
    nbytes: int
    fd: int = -1
    offset: int = 0


class Segment(NamedTuple):
    """A shared stretch of memory: its first address, and the file descriptor by which others open it."""

    fd: int
    low: int
    nbytes: int
    file: tuple[int, int]
    """Which file it is: a rank may have closed the descriptor, and opened another file by the same number."""


def _which(fd: int) -> tuple[int, int] | None:
    with suppress(OSError):
        told = os.fstat(fd)
        return told.st_dev, told.st_ino
    return None


def _close(fd: int, file: tuple[int, int]) -> None:
    if _which(fd) == file:
        os.close(fd)


def folder() -> Path:
    """Where segments are made: `PTOKIT_SHM_DIR`, `/dev/shm`, or where temporary files go."""
    given = os.environ.get(DIR_NAME)
    if given:
        return Path(given)
    shm = Path("/dev/shm")
    return shm if shm.is_dir() and os.access(shm, os.W_OK) else Path(tempfile.gettempdir())


def nameless_file(nbytes: int, who: str) -> int:
    """A file of so many bytes, all of them there, that no folder shows."""
    where = folder()
    fd = -1
    try:
        fd = _open(where)
        os.posix_fallocate(fd, 0, max(nbytes, 1))
    except OSError as refused:
        if fd >= 0:
            os.close(fd)
        if refused.errno != errno.ENOSPC:
            raise error(
                "PTO-R037",
                f"{who} cannot make {nbytes} bytes of shared memory in {where}: {refused.strerror}.",
                nbytes=nbytes,
                folder=str(where),
            ) from None
        raise error(
            "PTO-R037",
            f"{who} needs {nbytes} bytes of shared memory; {where} has {_free(where)} left.",
            nbytes=nbytes,
            folder=str(where),
        ) from None
    return fd


def _open(where: Path) -> int:
    with suppress(OSError, AttributeError):  # a file system, or a system, without files that have no name
        return os.open(where, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fd, name = tempfile.mkstemp(prefix="ptokit-", dir=where)
    os.unlink(name)  # noqa: PTH108 - a name of mkstemp, not a path of ours
    return fd


def _free(where: Path) -> str:
    with suppress(OSError):
        found = os.statvfs(where)
        return f"{found.f_bavail * found.f_frsize} bytes"
    return "too few"


class Segments:
    """The segments of a process: those that it made, and those of others that it has opened."""

    def __init__(self) -> None:
        self._own: weakref.WeakKeyDictionary[mmap.mmap, Segment] = weakref.WeakKeyDictionary()
        self._opened: weakref.WeakValueDictionary[tuple[int, int, int, int], mmap.mmap] = weakref.WeakValueDictionary()
        """What was opened of others, as long as an array on it lives."""

    def make(self, nbytes: int, who: str) -> Bytes:
        """New memory, zeroed. It goes when no array is left on it."""
        fd = nameless_file(nbytes, who)
        view = mmap.mmap(fd, max(nbytes, 1))
        file = _which(fd)
        assert file is not None
        weakref.finalize(view, _close, fd, file)
        memory: Bytes = np.frombuffer(view, np.uint8)[:nbytes]
        self._own[view] = Segment(fd, address_of(memory), nbytes, file)
        return memory

    def describe(self, memory: Bytes) -> Piece:
        """How others reach this memory."""
        low, pid = address_of(memory), os.getpid()
        for segment in list(self._own.values()):
            inside = segment.low <= low and low + memory.nbytes <= segment.low + segment.nbytes
            if inside and _which(segment.fd) == segment.file:
                return Piece(pid, low, memory.nbytes, segment.fd, low - segment.low)
        return Piece(pid, low, memory.nbytes)

    def open(self, piece: Piece) -> Bytes | None:
        """The memory itself, where it lies in a segment that can be opened."""
        if piece.fd < 0:
            return None
        try:
            fd = os.open(f"/proc/{piece.pid}/fd/{piece.fd}", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            told = os.fstat(fd)
            key = (piece.pid, piece.fd, told.st_dev, told.st_ino)
            view = self._opened.get(key)
            if view is None:
                view = self._opened[key] = mmap.mmap(fd, told.st_size)
        finally:
            os.close(fd)
        return np.frombuffer(view, np.uint8)[piece.offset : piece.offset + piece.nbytes]
