"""The MPI engine on Open MPI and MPICH: on one node, on two that are pretended, and on MPICH without shared memory."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

import rank_works
from mpi import ACROSS, FLAVOURS, Done, Flavour, needs, run
from rank_wanted import compare

SCRIPT = Path(rank_works.__file__)
TIMEOUT = 3.0


RUNS = [(one, n) for one in FLAVOURS for n in (1, 2, 3, 4) if n >= int(one.extra.get("PTOKIT_COMM_NODES", 1))]


@pytest.mark.parametrize(("flavour", "n"), RUNS, ids=[f"{one}-{n}" for one, n in RUNS])
def test_ranks_find_what_they_have_to(flavour: Flavour, n: int, tmp_path: Path) -> None:
    """All works in one run: starting takes longer than working."""
    done = run(flavour, n, SCRIPT, tmp_path / "results", *[work.__name__ for work in rank_works.WORKS], tmp=tmp_path)
    assert done.code == 0, done.out
    found = json.loads((tmp_path / "results").read_text())
    assert found["knows"] == [[True, True, flavour.library]] * n
    compare(found, n)
    for number, (size, _, seen) in enumerate(found["groups"]):
        assert size == n
        assert seen == [float(r) if r in near(flavour, n, number) else None for r in range(n)]


def near(flavour: Flavour, n: int, rank: int) -> set[int]:
    """The ranks whose memory a rank sees: those of its node."""
    if flavour.extra == ACROSS:
        return {rank}
    nodes = int(flavour.extra.get("PTOKIT_COMM_NODES", 1))
    return {other for other in range(n) if other * nodes // n == rank * nodes // n}


# Faults

FAULTY = [one for one in FLAVOURS if one.name in ("openmpi", "mpich", "openmpi-two-nodes", "mpich-across")]
faulty = pytest.mark.parametrize("flavour", FAULTY, ids=str)


def fails(flavour: Flavour, fault: str, tmp: Path) -> tuple[Done, str]:
    """A run of three ranks in which rank 1 fails; and how rank 1 is named."""
    done = run(flavour, 3, SCRIPT, tmp / "who", fault, timeout=TIMEOUT, tmp=tmp)
    assert done.code != 0, done.out
    who = (tmp / "who").read_text()
    assert re.fullmatch(r"rank 1 \(host \S+, pid \d+\)", who)
    return done, who


def said(done: Done, rank: int) -> str:
    """The sentence of a rank."""
    found = re.findall(rf"rank {rank}: (PTO-.*)", done.out)
    assert found, f"rank {rank} said nothing:\n{done.out}"
    return str(found[0])


SAID_BY_ALL = {
    "raises": ("PTO-R031", "raised ValueError: this is not the way"),
    "exits": ("PTO-R030", "has ended without coming"),
    "is_stopped": ("PTO-R032", "which is stopped"),
    "never_arrives": ("PTO-R032", "has waited 3 s at barrier for"),
    "calls_another": ("PTO-R040", "at another call that all ranks make together"),
    "asks_for_too_much": ("PTO-R037", "bytes of shared memory"),
}


@faulty
@pytest.mark.parametrize("fault", SAID_BY_ALL)
def test_every_rank_that_is_left_says_who_failed_and_how(flavour: Flavour, fault: str, tmp_path: Path) -> None:
    done, who = fails(flavour, fault, tmp_path)
    id_, words = SAID_BY_ALL[fault]
    for rank in (0, 2):
        sentence = said(done, rank)
        assert sentence.startswith(id_)
        assert who in sentence
        assert words in sentence


@faulty
def test_a_gate_that_is_never_rung_is_told_by_its_rank(flavour: Flavour, tmp_path: Path) -> None:
    done, who = fails(flavour, "rings_no_gate", tmp_path)
    assert re.search(rf"PTO-R051: .*{re.escape(who)}", done.out), done.out


@faulty
@pytest.mark.parametrize("fault", ["vanishes", "vanishes_quietly", "is_killed"])
def test_a_rank_without_a_last_word_is_named_by_the_others_or_by_mpiexec(
    flavour: Flavour, fault: str, tmp_path: Path
) -> None:
    """An mpiexec that sees a process die ends the others, sometimes before they have looked."""
    done, who = fails(flavour, fault, tmp_path)
    pid = who.rpartition(" ")[2].rstrip(")")
    by_ranks = re.search(rf"PTO-R03[01]: .*{re.escape(who)}", done.out)
    by_mpiexec = re.search(rf"PID {pid}|EXIT STRING: Killed|process manager error", done.out)
    assert by_ranks or by_mpiexec, done.out


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
def test_a_rank_that_never_begins_is_not_waited_for(library: str, tmp_path: Path) -> None:
    """MPI itself waits at its beginning for every process, without an end."""
    flavour = Flavour(library, library)
    done = run(flavour, 3, SCRIPT, tmp_path / "who", "never_begins", timeout=TIMEOUT, tmp=tmp_path)
    assert done.code != 0
    assert re.search(r"PTO-R032: rank [02] \(host \S+, pid \d+\) has waited 3 s for MPI to begin", done.out)


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
def test_a_rank_that_begins_and_does_not_join_is_named(library: str, tmp_path: Path) -> None:
    code = "import time; from mpi4py import MPI; MPI.COMM_WORLD.rank == 1 and time.sleep(60); import ptokit as pto; "
    done = run(Flavour(library, library), 3, "-c", code + "pto.comm.world()", timeout=TIMEOUT, tmp=tmp_path)
    assert done.code != 0
    assert re.search(r"PTO-R032: rank [02] \(host \S+, pid \d+\) has waited 3 s at the start for rank 1 ", done.out)


def test_an_mpiexec_of_another_library_is_noticed(tmp_path: Path) -> None:
    """MPICH's mpiexec starts ranks of Open MPI: each of them believes to be alone."""
    mpich, openmpi = Flavour("mpich", "mpich"), Flavour("openmpi", "openmpi")
    needs(openmpi)
    mixed = Flavour("mixed", "mpich", openmpi.environment)
    needs(mpich)
    begin = [str(openmpi.bin / "python"), "-c", "import ptokit as pto; pto.comm.world()"]
    code = f"import os; del os.environ['HWLOC_XMLFILE']; os.execv({begin[0]!r}, {begin!r})"
    done = run(mixed, 2, "-c", code, tmp=tmp_path, module=False)
    assert done.code != 0
    assert "mpiexec has started 2 ranks, and the MPI library of mpi4py (Open MPI" in done.out


def test_a_number_of_nodes_that_cannot_be(tmp_path: Path) -> None:
    flavour = Flavour("mpich", "mpich", {"PTOKIT_COMM_NODES": "3"})
    done = run(flavour, 2, "-c", "import ptokit as pto; pto.comm.world()", tmp=tmp_path)
    assert done.code != 0
    assert "PTOKIT_COMM_NODES='3'; a number of nodes from 1 to 2 is wanted" in done.out


def test_between_nodes_a_thread_is_needed(tmp_path: Path) -> None:
    flavour = Flavour("mpich", "mpich", {"PTOKIT_COMM_NODES": "2"})
    code = "import mpi4py; mpi4py.rc.thread_level = 'funneled'; import ptokit as pto; pto.comm.world()"
    done = run(flavour, 2, "-c", code, tmp=tmp_path, module=False)
    assert done.code != 0
    assert "needs MPI with THREAD_MULTIPLE, and this process has begun it with THREAD_FUNNELED" in done.out


@pytest.mark.parametrize(("library", "name"), [("openmpi", "Open MPI v"), ("mpich", "MPICH ")])
def test_doctor_names_the_library(library: str, name: str) -> None:
    flavour = Flavour(library, library)
    needs(flavour)
    done = subprocess.run(
        [flavour.bin / "python", "-m", "ptokit", "doctor", "--json"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **flavour.environment},
    )
    found = next(one for one in json.loads(done.stdout)["answers"] if one["about"] == "ranks: MPI")
    assert found["state"] == "ok"
    assert f", {name}" in found["seen"]
    assert "THREAD_MULTIPLE" in found["seen"]
    assert str(flavour.bin / "mpiexec") in found["seen"]
