"""Would a mistake be found? Every kernel of the library is changed in every way, and what matters is noticed."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ptokit as pto
from kernels import CASES, Case
from launches import flush, int32, line_of, pair
from ptokit.core.mutate import Fate, Score, mutants, mutate

ROOMS = {"flag": "SH", "barrier": "SH", "flush": "H", "shift": "MISR", "range": "I"}
FATES = {"caught": 8, "equivalent": 12, "missed": 8}
ON_TARGETS = [(case, target) for case in CASES for target in case.targets]


@pytest.fixture(scope="module")
def scores() -> dict[tuple[str, str], Score]:
    """The scores of the whole library."""
    return {
        (case.name, target): mutate(case.kernel, case.make, target=target, **case.launch) for case, target in ON_TARGETS
    }


def test_no_mutant_of_the_library_goes_unnoticed(
    scores: dict[tuple[str, str], Score], record_property: Callable[[str, object], None]
) -> None:
    tally: Counter[tuple[str, str]] = Counter()
    for score in scores.values():
        tally.update((one.mutant.kind, str(one.fate)) for one in score.verdicts)
    lines = ["mutants of tests/kernels on all targets", f"{'':10}{'caught':>8}{'equivalent':>12}{'missed':>8}"]
    lines += [f"{kind:10}" + "".join(f"{tally[kind, fate]:{width}}" for fate, width in FATES.items()) for kind in ROOMS]
    record_property("told", "\n".join(lines))
    missed = [f"{name}: {one.mutant.about}, {one.reason}" for name, score in scores.items() for one in score.missed]
    assert not missed, "\n".join(missed)
    assert len({name for name, _ in scores}) >= 25
    for kind in ROOMS:
        assert tally[kind, "caught"] > 20, f"hardly any mutant of kind {kind!r} was caught"


def test_what_is_caught_is_told_in_the_right_room_at_a_line_of_the_kernel(scores: dict[tuple[str, str], Score]) -> None:
    for case, target in ON_TARGETS:
        code = case.kernel.__code__
        for one in scores[case.name, target].verdicts:
            if one.fate is not Fate.CAUGHT:
                continue
            assert all(finding.id[4] in ROOMS[one.mutant.kind] for finding in one.findings), (case.name, one)
            files = {finding.where.file for finding in one.findings if finding.where is not None}
            assert files == {code.co_filename}, (case.name, one)
            assert f"{one.findings[0].id} at line" in one.reason


def test_a_pair_that_is_left_out_is_told_behind_its_wait_and_asked_for(scores: dict[tuple[str, str], Score]) -> None:
    for case, target in ON_TARGETS:
        has_a_loop = any(word in inspect.getsource(case.kernel) for word in ("for ", "while "))
        for one in scores[case.name, target].verdicts:
            if one.mutant.kind != "flag" or one.fate is not Fate.CAUGHT:
                continue
            left_out = one.mutant.about.partition("pair ")[2].partition(",")[0].split("->")
            found = {finding.id for finding in one.findings}
            assert found <= {"PTO-S001", "PTO-S002", "PTO-S011", "PTO-H002", "PTO-H004"}, (case.name, one)
            lines = [finding.where.line for finding in one.findings if finding.where is not None]
            assert has_a_loop or max(lines) > one.mutant.lines[1], (case.name, one)
            if found & {"PTO-S001", "PTO-S002"}:
                asked = [finding.facts["insert"][:2] for finding in one.findings if "insert" in finding.facts]
                assert left_out in asked, (case.name, one)
            elif found == {"PTO-S011"}:
                assert (left_out, target) == (["MTE2", "V"], "a2a3"), (case.name, one)
            else:
                assert left_out in (["V", "S"], ["S", "MTE2"]), (case.name, one)


def test_the_flush_is_missed_at_the_store_or_at_what_is_left_of_it(scores: dict[tuple[str, str], Score]) -> None:
    for (name, _), score in scores.items():
        for one in score.verdicts:
            if one.mutant.kind == "flush" and one.fate is Fate.CAUGHT:
                assert {finding.id for finding in one.findings} <= {"PTO-H001", "PTO-H003", "PTO-H004"}, name


# One kernel, mutant by mutant


def update(k, table, values, rows):
    """Rows through indices: one pair, one barrier, one flush, two tiles, one range."""
    v, i = k.tile("int32", 2, 8, at=0), k.tile("int32", 1, 8, (1, 2), at=64)
    k.tload(v, values)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, v, i, oob="skip")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def arguments() -> list[Any]:
    return [np.zeros((4, 8), np.int32), int32(2, 8), np.array([3, 1], np.int32)]


def test_the_mutants_of_a_kernel_and_what_becomes_of_them() -> None:
    at = {text: line_of(update, f"k.{text}") for text in ("tile", "set_flag", "wait_flag", "mscatter", "dcci", "dsb")}
    barrier = line_of(update, "k.pipe_barrier")
    on_a5 = [
        (one.mutant.kind, one.mutant.lines, str(one.fate), one.findings[0].id if one.findings else "")
        for one in mutate(update, arguments, target="a5").verdicts
    ]
    assert on_a5 == [
        ("flag", (at["set_flag"], at["wait_flag"]), "caught", "PTO-S001"),
        ("barrier", (barrier,), "caught", "PTO-H002"),
        ("flush", (at["dcci"],), "caught", "PTO-H003"),
        ("flush", (at["dsb"],), "caught", "PTO-H003"),
        ("shift", (at["tile"],), "caught", "PTO-M004"),
        ("shift", (at["tile"],), "equivalent", ""),
        ("range", (at["mscatter"],), "caught", "PTO-I003"),
    ]


def test_on_a2a3_the_pair_is_a_note_and_the_flush_does_not_matter() -> None:
    verdicts = mutate(update, arguments, target="a2a3").verdicts
    fates = [(one.mutant.kind, str(one.fate), [finding.id for finding in one.findings][:1]) for one in verdicts]
    assert fates[:4] == [
        ("flag", "caught", ["PTO-S011"]),
        ("barrier", "equivalent", []),
        ("flush", "equivalent", []),
        ("flush", "equivalent", []),
    ]


def test_a_pair_in_a_loop_is_left_out_in_every_round() -> None:
    def rounds(k, x, out):
        t = k.tile("int32", 1, 8)
        for chunk in range(3):
            k.tload(t, x[chunk : chunk + 1, :])
            pair(k, "MTE2", "MTE3")
            k.tstore(out[chunk : chunk + 1, :], t)
            pair(k, "MTE3", "MTE2")

    run = pto.launch(rounds, int32(3, 8), np.zeros((3, 8), np.int32))
    flags = [one for one in mutants(run) if one.kind == "flag"]
    assert len(flags) == 1, "both pairs stand at the same two lines of the same function"
    score = mutate(rounds, lambda: [int32(3, 8), np.zeros((3, 8), np.int32)])
    assert [str(one.fate) for one in score.verdicts if one.mutant.kind == "flag"] == ["caught"]


def test_a_kernel_with_findings_of_its_own_is_refused() -> None:
    def wrong(k, x, out):
        t = k.tile("int32", 1, 8)
        k.tload(t, x)
        k.tstore(out, t)

    with pytest.raises(pto.PtoValueError, match=r"mend them first.*PTO-S001"):
        mutate(wrong, lambda: [int32(8), int32(8)])


def test_a_mutant_whose_result_changes_in_silence_is_missed() -> None:
    """With every check turned off nobody says that the store comes too early: the changed result gives it away."""

    def silent(k, out):
        t = k.tile("int32", 1, 8, at=0)
        k.texpands(t, 1)
        pair(k, "V", "MTE3")
        k.tstore(out, t)

    score = mutate(silent, lambda: [np.zeros(8, np.int32)], checks=[])
    assert (score.verdicts[0].mutant.kind, str(score.verdicts[0].fate)) == ("flag", "missed")
    assert score.missed
    assert score.count(Fate.MISSED) == len(score.missed)
    assert "another one" in score.missed[0].reason


def test_a_flag_that_orders_nothing_is_equivalent() -> None:
    def careful(k, out):
        t = k.tile("int32", 1, 8)
        k.texpands(t, 1)
        k.pipe_barrier("ALL")
        pair(k, "V", "MTE3")
        k.tstore(out, t)
        flush(k)

    score = mutate(careful, lambda: [np.zeros(8, np.int32)], target="a5")
    assert {one.mutant.kind: str(one.fate) for one in score.verdicts if one.mutant.kind == "flag"} == {
        "flag": "equivalent"
    }
    assert not score.missed


@pytest.mark.parametrize("case", CASES[:3], ids=str)
def test_verdicts_can_be_given_as_json(case: Case) -> None:
    score = mutate(case.kernel, case.make, target=case.targets[0], **case.launch)
    for one in score.verdicts:
        data = json.loads(json.dumps(one.as_dict()))
        assert (data["kind"], data["fate"]) == (one.mutant.kind, str(one.fate))
        assert data["lines"] == list(one.mutant.lines)
