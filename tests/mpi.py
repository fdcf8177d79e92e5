"""Scripts on ranks of an MPI, as the tests start them: with a limit, and with a look at what is left afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MARK = "PTOKIT_TEST_MARK"
LIMIT = 90.0
"""Seconds for a script, on a machine that has other work: a guard against hanging, and no measurement."""

OPENMPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_btl": "^ofi,uct",
    "OMPI_MCA_osc": "^ucx",
    "OMPI_MCA_pml": "ob1",
}
MPICH = {"HWLOC_XMLFILE": "/dev/null"}
"""Its mpiexec writes the topology of the machine into /tmp, and leaves it there after an abort; not if it has one."""
ACROSS = {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self", "UCX_LOG_LEVEL": "error"}


@dataclass(frozen=True)
class Flavour:
    """An MPI, and how its ranks reach each other."""

    name: str
    library: str
    extra: dict[str, str] = field(default_factory=dict, hash=False)
    before: tuple[str, ...] = ()
    """Where its mpiexec is started."""
    after: tuple[str, ...] = ()
    """What its mpiexec is told."""

    @property
    def bin(self) -> Path:
        """Where its mpiexec and its Python are."""
        return ROOT / f".venv-{self.library}" / "bin"

    @property
    def environment(self) -> dict[str, str]:
        """What it needs."""
        return {**(OPENMPI if self.library == "openmpi" else MPICH), **self.extra}

    @property
    def options(self) -> Sequence[str]:
        """MPICH kills the others at once where one dies, unless it is asked not to; on several hosts it must not be."""
        one_host = self.library == "mpich" and not self.before
        return ["-disable-auto-cleanup", *self.after] if one_host else self.after

    def __str__(self) -> str:
        return self.name


FLAVOURS = (
    Flavour("openmpi", "openmpi"),
    Flavour("mpich", "mpich"),
    Flavour("openmpi-two-nodes", "openmpi", {"PTOKIT_COMM_NODES": "2"}),
    Flavour("openmpi-tcp", "openmpi", {"PTOKIT_COMM_NODES": "2", "OMPI_MCA_btl": "tcp,self"}),
    Flavour("mpich-two-nodes", "mpich", {"PTOKIT_COMM_NODES": "2"}),
    Flavour("mpich-across", "mpich", ACROSS),
)


@dataclass(frozen=True)
class Done:
    """What became of a script."""

    code: int
    out: str
    seconds: float


def needs(flavour: Flavour) -> None:
    """Skip where the environment of an MPI has not been made."""
    if not (flavour.bin / "mpiexec").exists():
        pytest.skip(f"{flavour.bin.parent.name} is missing: make .stamps/{flavour.library}")


def run(flavour: Flavour, n: int, *args: object, timeout: float = 20.0, tmp: Path, module: bool = True) -> Done:
    """A script on n ranks; nothing of it is left behind, and the test fails where something was."""
    needs(flavour)
    shared = tmp / "shm"
    shared.mkdir(exist_ok=True)
    told = {MARK: uuid.uuid4().hex, "PTOKIT_SHM_DIR": str(shared), "PTOKIT_COMM_TIMEOUT": str(timeout)}
    begin = [str(flavour.bin / "python"), *(["-m", "mpi4py"] if module else [])]
    whole = [*flavour.before, str(flavour.bin / "mpiexec"), *flavour.options, "-n", str(n), *begin, *map(str, args)]
    done = finish(whole, {**os.environ, **flavour.environment, **told}, tmp)
    assert list(shared.iterdir()) == []
    return done


def shared_files(mark: str) -> set[Path]:
    """What the processes with a mark have in shared memory, by name."""
    found = set()
    for pid in marked(mark):
        with suppress(OSError):
            lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
            found |= {Path(line.split(None, 5)[5]) for line in lines if " /dev/shm/" in line}
    return {one for one in found if not one.name.endswith("(deleted)")}


def finish(command: Sequence[str], environment: dict[str, str], tmp: Path) -> Done:
    """Run a command to its end, all of it into one text; whatever it has started must be gone with it."""
    begun = time.monotonic()
    out = tmp / "out.txt"
    with out.open("wb") as to:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=to, stderr=subprocess.STDOUT, cwd=tmp
        )
        named = set[Path]()
        while process.poll() is None and time.monotonic() - begun < LIMIT:
            named |= shared_files(environment[MARK])
            time.sleep(0.1)
        if process.poll() is None:
            process.kill()
            process.wait()
        seconds = time.monotonic() - begun
    text = out.read_text(errors="replace").replace("\0", "")
    left = end_marked(environment[MARK])
    assert seconds < LIMIT, f"it hangs: {text}"
    assert not left, f"left behind: {left}\n{text}"
    assert not (files := {one for one in named if one.exists()}), f"left behind: {files}\n{text}"
    return Done(process.returncode, text, seconds)


def end_marked(mark: str) -> list[int]:
    """The processes with this mark that a moment has not ended; they are killed."""
    for _ in range(40):
        left = marked(mark)
        if not left:
            return []
        time.sleep(0.05)
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return left


def marked(mark: str) -> list[int]:
    """The processes that have been started with this mark."""
    word, found = f"{MARK}={mark}".encode(), []
    for one in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if word in one.read_bytes() and int(one.parent.name) != os.getpid():
                found.append(int(one.parent.name))
    return found


def launch(n: int, *args: object, timeout: float = 20.0, tmp: Path, options: Sequence[str] = ()) -> Done:
    """The same with the launcher of the embedded engine."""
    shared = tmp / "shm"
    shared.mkdir(exist_ok=True)
    told = {MARK: uuid.uuid4().hex, "PTOKIT_SHM_DIR": str(shared)}
    begin = [sys.executable, "-m", "ptokit.comm", "-n", str(n), "--timeout", str(timeout), *options]
    done = finish([*begin, *map(str, args)], {**os.environ, **told}, tmp)
    assert list(shared.iterdir()) == []
    return done
