"""ptokit against the naive model: the same legality, the same bits, the same set of outcomes."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, note, settings

import naive
import ptokit as pto
from cases import Built, build, cases

EXAMPLES = int(os.environ.get("PTOKIT_EXAMPLES", "700"))
calls = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def comparable(case: naive.Case, bits: np.ndarray[Any, Any]) -> list[int]:
    """Every NaN as one where an addition may have made it: its payload is not promised."""
    if case.atomic == "add":
        return [naive.canonical(case.dtype, int(b)) for b in bits]
    return [int(b) for b in bits]


def memory_of(built: Built) -> np.ndarray[Any, Any]:
    return built.buffer.view(built.bits)


@given(cases())
@calls
def test_the_result_is_the_naive_one_bit_for_bit(case: naive.Case) -> None:
    built = build(case)
    assert naive.legal(case)
    expected = naive.run(case)
    built.run()
    assert comparable(case, memory_of(built)) == comparable(case, np.array(expected.memory, built.bits))
    assert [int(b) for b in built.tile.data.view(built.bits)] == expected.tile


@given(cases(fitting=False))
@calls
def test_what_is_legal_is_legal_in_the_naive_model_too(case: naive.Case) -> None:
    built = build(case)
    try:
        report = built.run()
    except pto.IllegalInstruction as refused:
        note(str(refused))
        assert not naive.legal(case)
        assert comparable(case, memory_of(built)) == comparable(case, np.array(case.memory, built.bits))
        assert {f.id for f in refused.findings} <= {f.id for f in built.check()}
        return
    assert naive.legal(case)
    expected = naive.run(case)
    assert comparable(case, memory_of(built)) == comparable(case, np.array(expected.memory, built.bits))
    assert [int(b) for b in built.tile.data.view(built.tile.dtype.bits)] == expected.tile
    assert report.plan.target == case.target


@given(cases())
@calls
def test_the_set_of_outcomes_is_the_naive_one(case: naive.Case) -> None:
    case.op = "mscatter"
    case.oob = {"zero": "skip"}.get(case.oob, case.oob)
    built = build(case)
    if not naive.legal(case):
        return
    expected = naive.run(case)
    report = built.run()
    after = memory_of(built).copy()
    assert report.outcomes.contains(built.buffer)
    contested = set(expected.outcomes) | expected.unbounded
    found = {a: report.outcomes.at(a) for a in range(len(case.memory)) if report.outcomes.at(a) is not None}
    assert set(found) == contested
    for position, bits in expected.outcomes.items():
        legal = found[position]
        assert legal is not None
        assert sorted(comparable(case, np.array(sorted(legal), built.bits))) == sorted(
            {naive.canonical(case.dtype, b) if case.atomic == "add" else b for b in bits}
        )
    assert (
        report.deterministic
        or case.target == "cpu"
        or not all(len(bits) == 1 for bits in expected.outcomes.values())
        or expected.unbounded
    )
    assert not report.deterministic or all(len(bits) == 1 for bits in expected.outcomes.values())
    spoiled = after.copy()
    spoiled[0] ^= 1
    if 0 not in contested and comparable(case, spoiled[:1]) != comparable(case, after[:1]):
        assert not report.outcomes.contains(spoiled.view(built.buffer.dtype))


@given(cases())
@calls
def test_a_random_schedule_executes_a_legal_outcome_and_always_the_same(case: naive.Case) -> None:
    case.op, case.target = "mscatter", "a5"
    case.oob = {"zero": "skip"}.get(case.oob, case.oob)
    case.conflict = "default"
    if not naive.legal(case):
        return
    expected = naive.run(case)
    sequential = build(case)
    outcomes = sequential.run().outcomes
    for seed in range(3):
        once, again = build(case), build(case)
        once.run(schedule="random", seed=seed)
        again.run(schedule="random", seed=seed)
        assert comparable(case, memory_of(once)) == comparable(case, memory_of(again))
        assert outcomes.contains(once.buffer)
        for position, bits in expected.outcomes.items():
            legal = {naive.canonical(case.dtype, b) if case.atomic == "add" else b for b in bits}
            assert comparable(case, memory_of(once)[position : position + 1])[0] in legal


@given(cases())
@calls
def test_check_says_what_the_call_says_and_writes_nothing(case: naive.Case) -> None:
    built = build(case)
    told = built.check()
    assert comparable(case, memory_of(built)) == comparable(case, np.array(case.memory, built.bits))
    findings = built.run().findings
    if built.idx.holds_data:
        assert [f for f in told if not f.id.startswith("PTO-C")] == [
            f for f in findings if not f.id.startswith("PTO-C")
        ]
        assert {(f.id, f.facts.get("slot")) for f in told} == {(f.id, f.facts.get("slot")) for f in findings}
