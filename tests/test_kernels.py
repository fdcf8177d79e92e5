"""The kernel library: right kernels give the expected arrays and nothing to find, wrong ones are found out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptokit as pto
from kernels import CASES, Case
from kernels.broken import BROKEN, Faulty

SCHEDULES = [("late", 0), ("program", 0), ("random", 1), ("random", 2), ("random", 3)]

every_schedule = pytest.mark.parametrize(("schedule", "seed"), SCHEDULES, ids=str)


def _on_targets(cases: list[Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("case", "target"), [pytest.param(c, target, id=f"{c.name}-{target}") for c in cases for target in c.targets]
    )


def _host_array(argument: Any) -> Any:
    """The array behind an argument, or None for a number."""
    if isinstance(argument, pto.GlobalTensor):
        return argument.buffer
    return argument if isinstance(argument, np.ndarray) else None


def _loud(findings: list[pto.Finding]) -> list[str]:
    return [str(f) for f in findings if f.severity is not pto.Severity.NOTE]


@every_schedule
@_on_targets(CASES)
def test_a_right_kernel_gives_what_it_should_and_nothing_is_found(case: Case, target: str, schedule: str, seed: int):
    args, untouched = case.make(), case.make()
    run = pto.launch(case.kernel, *args, target=target, schedule=schedule, seed=seed, **case.launch)
    assert not _loud(run.findings), "\n".join(_loud(run.findings))
    expected = case.expect(case.make())
    for at, argument in enumerate(args):
        found = _host_array(argument)
        if found is None:
            continue
        wanted = expected.get(at, _host_array(untouched[at]))
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape
        differs = np.flatnonzero(found.ravel().view(np.uint8) != np.ascontiguousarray(wanted).ravel().view(np.uint8))
        assert not differs.size, (
            f"argument {at} of {case.name} differs at {differs.size} bytes, first in element "
            f"{differs[0] // found.itemsize}\nfound\n{found}\nexpected\n{wanted}"
        )


@every_schedule
@_on_targets(BROKEN)
def test_a_wrong_kernel_is_found_out(case: Faulty, target: str, schedule: str, seed: int):
    run = pto.launch(case.kernel, *case.make(), target=target, schedule=schedule, seed=seed, **case.launch)
    loud = [f for f in run.findings if f.severity is not pto.Severity.NOTE]
    letters = {f.id.removeprefix("PTO-")[0] for f in loud}
    assert case.letter in letters, f"{case.fault}: expected PTO-{case.letter}..., found {_loud(run.findings)}"


def test_every_case_changes_something_and_names_are_unique():
    names = [case.name for case in (*CASES, *BROKEN)]
    assert len(names) == len(set(names))
    for case in CASES:
        before = case.make()
        for at, wanted in case.expect(case.make()).items():
            assert _host_array(before[at]).tobytes() != wanted.tobytes(), case.name


def test_arguments_are_the_same_every_time():
    for case in (*CASES, *BROKEN):
        for one, other in zip(case.make(), case.make(), strict=True):
            first, second = _host_array(one), _host_array(other)
            assert one == other if first is None else first.tobytes() == second.tobytes()
