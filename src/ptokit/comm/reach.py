"""The memory of another rank: seen directly, or written to in the memory of its process."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ptokit.comm.faults import Peer, error
from ptokit.comm.words import Bytes, address_of

MOST_RUNS = 1024
"""Of one system call (IOV_MAX)."""
MOST_BYTES = 1 << 30


@dataclass(frozen=True, eq=False)
class Direct:
    """Memory that this process sees."""

    view: Bytes

    def put(self, offset: int, data: Bytes) -> None:
        """Write there."""
        self.view[offset : offset + data.nbytes] = data

    def get(self, offset: int, out: Bytes) -> None:
        """Read from there."""
        out[:] = self.view[offset : offset + out.nbytes]

    def put_runs(self, offsets: Any, length: int, data: Bytes) -> None:
        """Runs of equal length."""
        self._rows(length)[offsets] = data.reshape(-1, length)

    def get_runs(self, offsets: Any, length: int, out: Bytes) -> None:
        """Runs of equal length."""
        out.reshape(-1, length)[:] = self._rows(length)[offsets]

    def _rows(self, length: int) -> Bytes:
        """The run that begins at each byte."""
        return np.lib.stride_tricks.sliding_window_view(self.view, length, writeable=True)


@dataclass(frozen=True, eq=False)
class Foreign:
    """Memory of another process of this machine, which the system copies: any memory will do."""

    peer: Peer
    address: int
    view: None = None

    def put(self, offset: int, data: Bytes) -> None:
        """Write there."""
        for start in range(0, data.nbytes, MOST_BYTES):
            part = data[start : start + MOST_BYTES]
            self._copy("process_vm_writev", part, np.array([offset + start]), part.nbytes)

    def get(self, offset: int, out: Bytes) -> None:
        """Read from there."""
        for start in range(0, out.nbytes, MOST_BYTES):
            part = out[start : start + MOST_BYTES]
            self._copy("process_vm_readv", part, np.array([offset + start]), part.nbytes)

    def put_runs(self, offsets: Any, length: int, data: Bytes) -> None:
        """Runs of equal length."""
        self._in_groups("process_vm_writev", offsets, length, data)

    def get_runs(self, offsets: Any, length: int, out: Bytes) -> None:
        """Runs of equal length."""
        self._in_groups("process_vm_readv", offsets, length, out)

    def _in_groups(self, call: str, offsets: Any, length: int, data: Bytes) -> None:
        many = max(1, min(MOST_RUNS, MOST_BYTES // max(length, 1)))
        for first in range(0, len(offsets), many):
            group = offsets[first : first + many]
            self._copy(call, data[first * length : (first + len(group)) * length], group, length)

    def _copy(self, call: str, data: Bytes, offsets: Any, length: int) -> None:
        """One system call; an `iovec` is an address and a length."""
        if not data.nbytes:
            return
        own = np.array([address_of(data), data.nbytes], np.uint64)
        theirs = np.empty((len(offsets), 2), np.uint64)
        theirs[:, 0], theirs[:, 1] = self.address + np.asarray(offsets), length
        moved = _system(call)(self.peer.pid, own.ctypes.data, 1, theirs.ctypes.data, len(theirs), 0)
        if moved != data.nbytes:
            raise self._refused(ctypes.get_errno() if moved < 0 else 0, moved)

    def _refused(self, code: int, moved: int) -> Exception:
        reason = os.strerror(code) if code else f"only {moved} bytes were moved"
        gone = code == 3  # ESRCH
        return error(
            "PTO-R030" if gone else "PTO-R039",
            f"{self.peer} is gone." if gone else f"the memory of {self.peer} cannot be reached: {reason}.",
            rank=self.peer.rank,
        )


@cache
def _system(name: str) -> Callable[..., int]:
    function = getattr(ctypes.CDLL(None, use_errno=True), name)
    function.restype = ctypes.c_ssize_t
    word, vector = ctypes.c_ulong, ctypes.c_void_p
    function.argtypes = [ctypes.c_int, vector, word, vector, word, word]
    found: Callable[..., int] = function
    return found


def may_be_reached() -> None:
    """Let the other ranks of this user write to this process, where the system asks for that (Yama)."""
    any_process = ctypes.c_ulong(-1 & 0xFFFFFFFFFFFFFFFF)
    ctypes.CDLL(None, use_errno=True).prctl(0x59616D61, any_process, 0, 0, 0)  # PR_SET_PTRACER
