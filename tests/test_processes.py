"""What concerns a whole process: instruction sets, threads, forks, and life without the compiled module."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import ptokit as pto
from ptokit import arrays

HERE = Path(__file__).parent


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PTOKIT_", "COV_CORE"))}
    return subprocess.run(
        [sys.executable, *arguments],
        env={**kept, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )


def test_the_compiled_module_is_there() -> None:
    # Whoever has no compiler says so; what these tests say is then of little worth.
    assert arrays._native is not None or os.environ.get("PTOKIT_WITHOUT_NATIVE") == "1"


@pytest.mark.skipif(arrays._native is None, reason="the package was built without its compiled module")
def test_the_same_bits_on_every_instruction_set_and_any_number_of_threads() -> None:
    ways = [(level, "1") for level in arrays.levels()] + [(arrays.levels()[-1], n) for n in ("2", "5")]
    told = [run(str(HERE / "battery.py"), PTOKIT_CPU=level, PTOKIT_NUM_THREADS=n).stdout.split() for level, n in ways]
    assert [(level, n) for level, n, _ in told] == ways
    assert len({digest for *_, digest in told}) == 1


SLOW = """
import sys
sys.modules["ptokit._native"] = None
import numpy as np, ptokit as pto
table = np.zeros(3, np.float32)
for _ in range(2):
    pto.scatter(table, np.ones(2, np.float32), [1, 1], coalesce="elem", atomic="add")
print(table.tolist(), pto.gather(table, [1], coalesce="elem").tolist(), pto.get_num_threads())
pto.set_num_threads(3)
"""


def test_without_the_compiled_module_everything_works_and_says_so_once() -> None:
    done = run("-c", SLOW)
    assert done.stdout.strip() == "[0.0, 4.0, 0.0] [4.0] 1"
    assert done.stderr.count("ptokit doctor") == 1
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.skipif(arrays._native is None, reason="the package was built without its compiled module")
@pytest.mark.parametrize(
    ("asked", "used", "said"),
    [("3", "3", 0), (" 2 ", "2", 0), ("9" * 5000, "256", 0), ("many", None, 1), ("0", None, 1)],
    ids=["one", "spaces", "too many", "a word", "none"],
)
def test_the_environment_chooses_the_number_of_threads(asked: str, used: str | None, said: int) -> None:
    done = run("-c", "import ptokit as pto; print(pto.get_num_threads())", PTOKIT_NUM_THREADS=asked)
    assert done.stdout.strip() == (used or str(arrays.usable_cpus()))
    assert done.stderr.count("PTOKIT_NUM_THREADS") == said


def big_call() -> bool:
    """A call that several threads share; whether its result is right."""
    table, idx = np.zeros(1 << 23, np.float32), np.arange(1 << 20)[::-1].copy()
    pto.scatter(table, np.arange(1 << 20, dtype=np.float32), idx, coalesce="elem", atomic="add")
    got = pto.gather(table, idx, coalesce="elem")
    return bool(np.array_equal(got, np.arange(1 << 20)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # JAX, where another test has imported it
def test_a_forked_child_has_threads_of_its_own() -> None:
    kept = pto.get_num_threads()
    pto.set_num_threads(4)
    try:
        assert big_call()
        child = os.fork()
        if child == 0:
            os._exit(0 if big_call() and big_call() else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert big_call()
    finally:
        pto.set_num_threads(kept)


def test_several_callers_at_once() -> None:
    right: list[bool] = []
    callers = [threading.Thread(target=lambda: right.extend(big_call() for _ in range(3))) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert right == [True] * 12
