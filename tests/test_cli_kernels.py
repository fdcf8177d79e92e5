"""`ptokit mutate` and `ptokit cost` on a user's script."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ptokit.cli import group

UPDATE = """
import numpy as np
import ptokit as pto

def update(k, table, grads, rows):
    g = k.tile("float32", 16, 64)
    i = k.tile("int32", 1, 16)
    k.tload(g, grads)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, g, i, atomic="add", oob="skip")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()

table, grads = np.zeros((100, 64), np.float32), np.ones((16, 64), np.float32)
pto.launch(update, table, grads, np.arange(16, dtype=np.int32), target="a5")
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.py"
    path.write_text(UPDATE)
    return path


def run(*args: object) -> Result:
    return CliRunner().invoke(group, [str(arg) for arg in args], catch_exceptions=True)


def test_every_mutant_of_a_script_is_judged(script: Path) -> None:
    done = run("mutate", script, "--json", "--quiet")
    assert done.exit_code == 0, done.output
    (launch,) = json.loads(done.stdout)
    assert launch["score"] == {"caught": 6, "equivalent": 1, "missed": 0}
    told = {(one["kind"], tuple(one["lines"])): one["fate"] for one in launch["mutants"]}
    assert told[("flag", (10, 11))] == "caught"
    assert told[("flush", (14,))] == told[("flush", (15,))] == told[("barrier", (13,))] == "caught"
    (flag,) = [one for one in launch["mutants"] if one["kind"] == "flag"]
    assert [(one["id"], one["where"]["line"]) for one in flag["findings"]] == [("PTO-S001", 12)]


def test_the_table_shows_what_matters(script: Path) -> None:
    assert "7 mutants, 6 caught, 1 equivalent, 0 missed" in run("mutate", script).output
    assert "i 32 bytes further on" not in run("mutate", script).output
    assert "i 32 bytes further on" in run("mutate", script, "--all").output


def test_a_kernel_with_findings_is_not_mutated(script: Path) -> None:
    script.write_text(UPDATE.replace('    k.wait_flag("MTE2", "V", 0)\n', ""))
    done = run("mutate", script)
    assert done.exit_code != 0
    assert "mend them first" in str(done.exception)


def test_a_script_without_a_launch_is_told(tmp_path: Path) -> None:
    empty = tmp_path / "empty.py"
    empty.write_text("x = 1\n")
    for command in ("mutate", "cost"):
        done = run(command, empty)
        assert done.exit_code != 0
        assert "launches no kernel" in str(done.exception)


def test_the_cost_of_a_script_place_by_place(script: Path) -> None:
    (launch,) = json.loads(run("cost", script, "--json").stdout)
    sites = {site["name"]: site for pipe in launch["pipes"] for site in pipe["sites"]}
    assert sites["tload"]["count"] == 1  # a place each
    assert sites["mscatter"]["where"].endswith("kernel.py:12")
    assert launch["cycles"] > sites["mscatter"]["cycles"] > 0
    assert "kernel.py:12" in run("cost", script).output


def test_parameters_change_the_cost_of_a_script(script: Path, tmp_path: Path) -> None:
    slow = tmp_path / "slow.toml"
    slow.write_text("[sync]\ndcci_cycles = 1000000\n")
    (launch,) = json.loads(run("cost", script, "--json", "--parameters", slow).stdout)
    assert launch["cycles"] > 1_000_000
