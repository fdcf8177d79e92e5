"""Which engines of ranks can be used here, and what the others lack."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ptokit.comm.beginning import INSTALL
from ptokit.comm.faults import Peer, RankError
from ptokit.comm.reach import Foreign, may_be_reached
from ptokit.comm.segments import DIR_NAME, folder
from ptokit.comm.words import address_of

LITTLE = 64 << 20
"""Bytes: Docker gives /dev/shm so many, unless it is told otherwise."""
SECONDS = 30


@dataclass(frozen=True)
class Usable:
    """What was found out about an engine, or a part of it."""

    is_well: bool
    seen: str
    fix: str = ""


def shared_memory() -> Usable:
    """Where the ranks of this machine share memory, and how much there is."""
    where = folder()
    try:
        found = os.statvfs(where)
    except OSError as refused:
        return Usable(False, f"{where}: {refused.strerror}", f"Name a folder that can be written to in {DIR_NAME}.")
    free = found.f_bavail * found.f_frsize
    seen = f"{where}, {free >> 20} MiB free"
    if free <= LITTLE:
        more = "docker run --shm-size=8g, or a larger place"
        return Usable(False, f"{seen}, which is little", f"Give it more ({more} in {DIR_NAME}).")
    return Usable(True, seen)


def foreign_memory() -> Usable:
    """Whether a process may write to the memory of another one of the same user: try it on one that waits."""
    memory = np.zeros(8, np.uint8)
    back, out = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            may_be_reached()
            os.write(out, b"!")
            time.sleep(SECONDS)
        finally:
            os._exit(0)
    try:
        os.close(out)
        os.read(back, 1)
        os.close(back)
        Foreign(Peer(0, socket.gethostname(), pid), address_of(memory)).put(0, np.ones(8, np.uint8))
    except RankError as refused:
        return Usable(
            False,
            f"ordinary arrays of another process cannot be reached ({refused.findings[0].message})",
            "Allocate with rank.zeros, which needs no permission; or let the container trace its processes.",
        )
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return Usable(True, "every array of another process of this machine can be reached")


ASK = """
import json, mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
level = MPI.Init_thread(MPI.THREAD_MULTIPLE)
names = [name for name in ("SINGLE", "FUNNELED", "SERIALIZED", "MULTIPLE") if getattr(MPI, "THREAD_" + name) == level]
print(json.dumps([mpi4py.__version__, MPI.Get_library_version(), names[0]]), flush=True)
MPI.Finalize()
"""


def mpi() -> Usable:
    """What mpi4py has found; asked for in a process of its own, since MPI begins once in a process."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", ASK],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return Usable(
            False, f"MPI has not begun within {SECONDS} s", "Try it by itself: python -m mpi4py.bench helloworld"
        )
    if done.returncode or not done.stdout.strip():
        reason = (done.stderr.strip() or "no answer").splitlines()[-1]
        return Usable(False, f"it cannot be used ({reason})", INSTALL)
    version, library, level = json.loads(done.stdout.strip().splitlines()[-1])
    words = library.splitlines()[0].partition(",")[0].replace("Version:", "").split()
    seen = f"mpi4py {version}, {' '.join(words)}, THREAD_{level}, {_mpiexec()}"
    if level != "MULTIPLE":
        return Usable(False, f"{seen}: worlds of one node only", "Take a library that was built with THREAD_MULTIPLE.")
    return Usable(True, seen)


def _mpiexec() -> str:
    found = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
    return found or "no mpiexec on the path"
