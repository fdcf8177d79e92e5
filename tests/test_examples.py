"""The examples: each is read, converted into every form that can say it, checked, run, and compared with NumPy."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("xdsl")

from ptokit.findings import Severity
from ptokit.ir import ConvertError, parse
from ptokit.ir.check import check

FOLDER = Path(__file__).parents[1] / "examples"
Arrays = dict[str, Any]
EVERY = ("a2a3", "a5")


@dataclass(frozen=True)
class Example:
    """What an example is given, what must come out, and which findings it has by design."""

    given: Callable[[], Arrays] | None = None
    wanted: Callable[[Arrays], dict[str, np.ndarray]] | None = None
    targets: tuple[str, ...] = EVERY
    found: frozenset[str] = frozenset()
    run_found: frozenset[str] = frozenset()
    cannot: frozenset[str] = frozenset()
    options: Arrays = field(default_factory=dict)


def chance() -> np.random.Generator:
    return np.random.default_rng(7)


def floats(*shape: int) -> np.ndarray:
    return chance().integers(-50, 50, shape).astype(np.float32)


def distinct(most: int, *shape: int) -> np.ndarray:
    return chance().permutation(most)[: int(np.prod(shape))].reshape(shape).astype(np.int32)


# What NumPy makes of each


def embedding_update(given: Arrays) -> dict[str, np.ndarray]:
    table = given["table"].copy()
    for grad, row in zip(given["grads"], given["rows"][0], strict=True):
        if 0 <= row < len(table):
            table[row] += grad
    return {"table": table}


def lookup(given: Arrays) -> dict[str, np.ndarray]:
    table, rows = given["table"], given["rows"][0]
    inside = (rows >= 0) & (rows < len(table))
    return {"out": np.where(inside[:, None], table[np.where(inside, rows, 0)], 0).astype(table.dtype)}


def double_rows(given: Arrays) -> dict[str, np.ndarray]:
    table = given["table"].copy()
    table[given["rows"][0]] *= 2
    return {"table": table}


def ping_pong(given: Arrays) -> dict[str, np.ndarray]:
    rows = np.minimum(given["rows"].astype(np.uint32), len(given["table"]) - 1).ravel()
    return {"out": given["table"][rows]}


def dynamic_rows(given: Arrays) -> dict[str, np.ndarray]:
    flat = given["table"].copy().reshape(-1)
    for at in range(given["count"]):
        place = given["places"][0, at]
        if 0 <= place < flat.size:
            flat[place] = given["values"][0, at]
    return {"table": flat.reshape(given["table"].shape)}


def blocks(given: Arrays) -> dict[str, np.ndarray]:
    done = given["done"].copy()
    for block in range(3):
        done[32 * block] += len(range(block, given["rows"], 3))
    return {"dst": np.maximum(given["src"], 0), "done": done}


def elem_update(given: Arrays) -> dict[str, np.ndarray]:
    flat = given["table"].copy().reshape(-1)
    places = given["places"].astype(np.uint32).astype(np.int64).ravel() % flat.size
    np.add.at(flat, places, given["values"].ravel())
    return {"table": flat.reshape(given["table"].shape)}


def clamped_add(given: Arrays) -> dict[str, np.ndarray]:
    table = given["table"].copy()
    np.add.at(table, np.minimum(given["row"][0], len(table) - 1), given["grad"])
    return {"table": table}


def picked(given: Arrays) -> dict[str, np.ndarray]:
    flat, place = given["table"].reshape(-1), given["place"]
    inside = (place >= 0) & (place < flat.size)
    return {"out": np.where(inside, flat[np.where(inside, place, 0)], 0).astype(np.float32)}


def scattered(given: Arrays, source: str, index: str, by_row: bool) -> dict[str, np.ndarray]:
    table = given["mem"].copy()
    if by_row:
        table[given[index][0]] = given[source]
    else:
        table.reshape(-1)[given[index].ravel()] = given[source].ravel()
    return {"mem": table}


NO_LINES = frozenset({"as"})
"""PTO-AS is a straight line of instructions: functions with attributes, loops and regions it cannot say."""

EXAMPLES: dict[str, Example] = {
    "embedding_update.pto": Example(
        lambda: {
            "table": floats(128, 64),
            "grads": floats(16, 64),
            "rows": np.array([[3, 5, 3, 7, 120, 127, 128, 900, 0, 1, 2, 4, 6, 8, 9, 10]], np.int32),
        },
        embedding_update,
        cannot=NO_LINES,
    ),
    "lookup.pto": Example(
        lambda: {
            "table": floats(100, 32).astype(np.float16),
            "rows": np.array([[0, 99, 100, -1, 7, 7, 50, 2]], np.int32),
            "out": np.ones((8, 32), np.float16),
        },
        lookup,
        cannot=NO_LINES,
    ),
    "gather_scale_scatter.pto": Example(
        lambda: {"table": floats(64, 16), "rows": distinct(64, 1, 8)}, double_rows, cannot=NO_LINES
    ),
    "ping_pong.pto": Example(
        lambda: {
            "table": floats(64, 16),
            "rows": chance().integers(0, 70, (6, 8), np.int32),
            "out": np.zeros((48, 16), np.float32),
        },
        ping_pong,
        cannot=NO_LINES,
    ),
    "dynamic_rows.pto": Example(
        lambda: {
            "table": np.zeros((5, 16), np.int32),
            "values": np.arange(1, 17, dtype=np.int32).reshape(1, 16),
            "places": np.array([[0, 79, 80, 5, 6, 7, 8, 9, 10, 1, 2, 3, 4, 11, 12, 13]], np.int32),
            "capacity": 5,
            "count": 9,
        },
        dynamic_rows,
        cannot=NO_LINES,
    ),
    "blocks.pto": Example(
        lambda: {
            "src": floats(7, 16),
            "dst": np.zeros((7, 16), np.float32),
            "done": np.zeros(96, np.int32),
            "rows": 7,
        },
        blocks,
        cannot=NO_LINES,
        options={"blocks": 3},
    ),
    "sections_events.pto": Example(
        lambda: {"src": floats(16, 16), "dst": np.zeros((16, 16), np.float32)},
        lambda given: {"dst": given["src"] * 2},
        cannot=NO_LINES,
    ),
    "elem_update.mlir": Example(
        lambda: {
            "table": np.arange(256, dtype=np.int32).reshape(1, 256),
            "values": np.arange(32, dtype=np.int32).reshape(4, 8),
            "places": chance().integers(0, 600, (4, 8), np.int32),
        },
        elem_update,
        cannot=NO_LINES,
    ),
    "scatter_lines.pto": Example(
        lambda: {
            "table": floats(64, 16),
            "grad": floats(8, 16),
            "row": np.array([[1, 2, 3, 64, 2, 900, 5, 6]], np.int32),
        },
        clamped_add,
    ),
    "gather_lines.pto": Example(
        lambda: {
            "table": floats(1, 256),
            "place": chance().integers(0, 300, (4, 16), np.int32),
            "out": np.zeros((4, 16), np.float32),
        },
        picked,
    ),
    "level1.pto": Example(
        lambda: {"src": floats(8, 16), "idx": distinct(64, 1, 8), "mem": floats(64, 16)},
        lambda given: scattered(given, "src", "idx", True),
    ),
    "auto_mode.pto": Example(
        lambda: {
            "mem": floats(64, 16),
            "idx": distinct(1024, 8, 16),
            "dst": np.zeros((8, 16), np.float32),
        },
        lambda given: {"dst": given["mem"].reshape(-1)[given["idx"]]},
    ),
    "manual_mode.pto": Example(
        lambda: {"arg0": floats(8, 16), "arg1": distinct(1024, 8, 16), "mem": floats(64, 16)},
        lambda given: scattered(given, "arg0", "arg1", False),
    ),
    "placeholders.pto": Example(found=frozenset({"PTO-P007"})),
    "ranks.pto": Example(
        lambda: {"all": floats(8, 32), "part0": np.zeros((4, 32), np.float32), "part1": np.zeros((4, 32), np.float32)},
        lambda given: {"part0": given["all"][:4], "part1": given["all"][4:]},
        targets=("cpu", *EVERY),
        cannot=NO_LINES,
    ),
}


def path(name: str) -> Path:
    return FOLDER / name


def serious(found: list[Any]) -> set[str]:
    return {one.id for one in found if one.severity is not Severity.NOTE}


def test_every_example_is_here() -> None:
    there = {one.name for one in FOLDER.iterdir() if one.suffix in (".pto", ".mlir")}
    assert there == set(EXAMPLES)
    assert len(there) >= 10
    assert {parse(path(name)).form for name in there} >= {"dps", "ssa", "as", "generic"}


def test_the_readme_names_every_example() -> None:
    readme = (FOLDER / "README.md").read_text()
    for one in FOLDER.iterdir():
        assert one.name == "README.md" or one.is_dir() or one.name in readme, one.name


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_has_the_findings_that_it_should_have(name: str) -> None:
    assert serious(check(parse(path(name)))) == EXAMPLES[name].found


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("form", ["dps", "ssa", "as", "generic"])
def test_an_example_comes_back_from_each_form(name: str, form: str) -> None:
    module = parse(path(name))
    if form in EXAMPLES[name].cannot:
        with pytest.raises(ConvertError) as refused:
            module.to(form)
        assert {one.id for one in refused.value.findings} == {"PTO-P008"}
        return
    assert parse(module.to(form)).to("generic") == module.to("generic")


RUNS = [(name, target) for name, one in EXAMPLES.items() if one.given for target in one.targets]


@pytest.mark.parametrize(("name", "target"), RUNS)
@pytest.mark.parametrize("schedule", ["late", "program", "random"])
def test_an_example_computes_what_numpy_says(name: str, target: str, schedule: str) -> None:
    example = EXAMPLES[name]
    assert example.given is not None
    assert example.wanted is not None
    arrays = example.given()
    wanted = example.wanted({key: one.copy() if isinstance(one, np.ndarray) else one for key, one in arrays.items()})
    run = parse(path(name)).run(arrays, target=target, schedule=schedule, seed=3, **example.options)
    for key, value in wanted.items():
        assert np.array_equal(arrays[key].reshape(value.shape), value), key
    assert not [one for one in run.findings if one.severity is Severity.ERROR]


@pytest.mark.parametrize("name", sorted(one.name for one in FOLDER.glob("*.py")))
def test_a_python_example_runs(name: str) -> None:
    done = subprocess.run([sys.executable, str(path(name))], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def commands() -> list[str]:
    """The lines of the README, and of the page about texts, that call ptokit."""
    pages = (FOLDER / "README.md", FOLDER.parent / "docs" / "text.md")
    blocks = [block for page in pages for block in re.findall(r"```sh\n(.*?)```", page.read_text(), re.DOTALL)]
    joined = "".join(blocks).replace("\\\n", " ")
    return [line for line in joined.splitlines() if line.startswith(("ptokit", "python"))]


@pytest.mark.parametrize("line", commands())
def test_what_the_readme_says_to_type_works(line: str, tmp_path: Path) -> None:
    if re.match(r"ptokit lsp", line):
        pytest.skip("it waits for an editor")
    there = tmp_path / "examples"
    there.symlink_to(FOLDER)
    bin_folder = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}
    done = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
