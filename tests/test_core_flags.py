"""Flags, events and barriers: what matches what, what is told of those that do not, and what a missing pair does."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ptokit as pto
from launches import SCHEDULES, Array, Kernel, essence, flush, ids, int32, line, line_of, loud, pair, told

PAIRS = [(a, b) for a in ("S", "V", "MTE2", "MTE3") for b in ("S", "V", "MTE2", "MTE3") if a != b]
TARGETS = ("a2a3", "a5")


def flags(*calls: tuple[Any, ...]) -> Kernel:
    """A kernel of these flag calls: ("set" or "wait", source, sink, id)."""

    def kernel(k):
        for word, *flag in calls:
            (k.set_flag if word == "set" else k.wait_flag)(*flag)

    return kernel


# What matches


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("source", "sink"), PAIRS)
def test_every_pair_has_eight_flags_of_its_own(source: str, sink: str, target: str) -> None:
    def kernel(k):
        for event in range(8):
            k.set_flag(source, sink, event)
        for event in (3, 0, 7, 5, 1, 2, 6, 4):
            k.wait_flag(source, sink, event)

    for schedule, seed in SCHEDULES:
        assert pto.launch(kernel, target=target, schedule=schedule, seed=seed).findings == []


def test_a_flag_can_be_used_again_after_its_wait() -> None:
    def kernel(k):
        for _ in range(5):
            pair(k, "V", "MTE3", 2)

    assert pto.launch(kernel).findings == []


@pytest.mark.parametrize(("source", "sink"), [p for p in PAIRS if p[1] != "S" and p[0] != "S"])
def test_a_wait_may_be_issued_before_its_set_where_the_pipes_are_queues(source: str, sink: str) -> None:
    assert pto.launch(flags(("wait", source, sink, 0), ("set", source, sink, 0))).findings == []


def test_a_wait_before_its_set_still_orders_the_data() -> None:
    def kernel(k, x, out):
        t = k.tile("int32", 1, 8)
        k.wait_flag("MTE2", "MTE3", 4)
        k.tload(t, x)
        k.set_flag("MTE2", "MTE3", 4)
        k.tstore(out, t)

    for schedule, seed in SCHEDULES:
        out = int32(8)
        run = pto.launch(kernel, int32(8, first=70), out, schedule=schedule, seed=seed)
        assert loud(run) == []
        np.testing.assert_array_equal(out, int32(8, first=70))


def test_flags_of_different_pairs_share_no_ids() -> None:
    calls = [(word, *p, 0) for word in ("set", "wait") for p in PAIRS]
    assert pto.launch(flags(*calls)).findings == []


def test_flags_of_one_block_are_not_those_of_another() -> None:
    def kernel(k):
        if k.block_idx == 0:
            k.set_flag("V", "MTE3", 0)
        else:
            k.wait_flag("V", "MTE3", 0)

    run = pto.launch(kernel, blocks=2)
    assert ids(run) == ["PTO-S003", "PTO-S005"]
    assert {one.id: one.facts["block"] for one in run.findings} == {"PTO-S003": 1, "PTO-S005": 0}


# Names


@pytest.mark.parametrize(
    ("source", "sink", "event"),
    [
        ("PIPE_V", "PIPE_MTE3", "EVENT_ID3"),
        ("pipe_v", "pipe_mte3", "event_id3"),
        ("V", "mte3", "3"),
        ("v", "MTE3", np.int32(3)),
    ],
)
def test_pipes_and_events_have_long_names_too(source: str, sink: str, event: Any) -> None:
    assert pto.launch(flags(("set", source, sink, event), ("wait", "V", "MTE3", 3))).findings == []
    run = pto.launch(flags(("set", source, sink, event)))
    assert told(run, "PTO-S005").facts["flag"] == "V->MTE3, event 3"


def refused(kernel: Callable[..., Any], *arguments: Any, **keywords: Any) -> pto.PtoError:
    """The error of a kernel that cannot be played, with the run so far."""
    with pytest.raises(pto.PtoError) as caught:
        pto.launch(kernel, *arguments, **keywords)
    assert isinstance(caught.value.ptokit_run, pto.Run)
    return caught.value


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda k: k.set_flag("MTE", "V", 0), ValueError, ["'MTE'", "Did you mean 'MTE", "S, V, MTE2, MTE3"]),
        (lambda k: k.wait_flag("V", "PIPE_MET3", 0), ValueError, ["'PIPE_MET3'", "Did you mean 'MTE3'"]),
        (lambda k: k.set_flag("M", "V", 0), ValueError, ["'M'", "no pipe of a vector core"]),
        (lambda k: k.set_flag("ALL", "V", 0), ValueError, ["'ALL'"]),
        (lambda k: k.set_flag(2, "V", 0), TypeError, ["2", "an int"]),
        (lambda k: k.set_flag("V", "V", 0), ValueError, ["'V'", "in order with itself"]),
        (lambda k: k.set_flag("V", "MTE3", "EVENT_IDX"), TypeError, ["'EVENT_IDX'", "0 to 7"]),
        (lambda k: k.set_flag("V", "MTE3", 1.0), TypeError, ["1.0", "0 to 7"]),
        (lambda k: k.set_flag("V", "MTE3", True), TypeError, ["True", "0 to 7"]),
        (lambda k: k.set_flag("V"), TypeError, ["sink is missing"]),
        (lambda k: k.set_flag("V", "MTE3", event=2), TypeError, ["'event'", "Did you mean 'event_id'"]),
        (lambda k: k.pipe_barrier("AL"), ValueError, ["'AL'", "Did you mean 'ALL'"]),
        (lambda k: k.pipe_barrier(None), TypeError, ["None"]),
        (lambda k: k.setflag("V", "MTE3", 0), AttributeError, ["'setflag'", "Did you mean 'set_flag'"]),
    ],
)
def test_a_mistake_in_a_flag_is_an_error_that_quotes_it(call: Kernel, kind: type, words: list[str]) -> None:
    error = refused(call)
    assert isinstance(error, kind)
    for word in words:
        assert word in str(error)


# What does not match


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("source", "sink"), PAIRS)
def test_a_wait_that_nothing_sets_is_a_deadlock_and_not_a_hang(source: str, sink: str, target: str) -> None:
    def kernel(k, out):
        k.wait_flag(source, sink, 5)
        t = k.tile("int32", 1, 8)
        k.texpands(t, 3)
        pair(k, "V", "MTE3")
        k.tstore(out, t)

    for schedule, seed in SCHEDULES:
        run = pto.launch(kernel, int32(8), target=target, schedule=schedule, seed=seed)
        finding = told(run, "PTO-S003")
        assert ids(run) == ["PTO-S003"]
        assert (finding.severity, line(finding)) == (pto.Severity.ERROR, line_of(kernel, "k.wait_flag"))
        assert finding.facts["flag"] == f"{source}->{sink}, event 5"
        assert f'k.set_flag("{source}", "{sink}", 5)' in finding.fix


def test_what_does_not_depend_on_the_deadlock_has_happened() -> None:
    def kernel(k, x, out, other):
        t, u = k.tile("int32", 1, 8), k.tile("int32", 1, 8)
        k.tload(t, x)
        pair(k, "MTE2", "MTE3")
        k.tstore(out, t)
        k.wait_flag("V", "MTE3", 1)
        k.tstore(other, t)
        k.texpands(u, 1)

    for schedule, seed in SCHEDULES:
        out, other = int32(8), int32(8)
        run = pto.launch(kernel, int32(8, first=40), out, other, schedule=schedule, seed=seed)
        assert ids(run) == ["PTO-S003"]
        np.testing.assert_array_equal(out, int32(8, first=40))
        np.testing.assert_array_equal(other, int32(8))


def test_a_wait_of_s_for_a_flag_of_a_stuck_pipe_names_the_wait_that_is_stuck() -> None:
    def kernel(k):
        k.wait_flag("MTE2", "V", 0)
        k.set_flag("V", "S", 0)
        k.wait_flag("V", "S", 0)

    finding = told(pto.launch(kernel), "PTO-S003")
    assert (line(finding), finding.facts["flag"]) == (line_of(kernel, "k.wait_flag"), "MTE2->V, event 0")


def test_a_flag_that_is_set_twice_names_both_lines() -> None:
    def kernel(k, waits):
        k.set_flag("V", "MTE3", 1)
        k.set_flag("V", "MTE3", 1)
        for _ in range(waits):
            k.wait_flag("V", "MTE3", 1)

    for (schedule, seed), waits in itertools.product(SCHEDULES, (1, 2)):
        run = pto.launch(kernel, waits, schedule=schedule, seed=seed)
        finding = told(run, "PTO-S004")
        first = line_of(kernel, "k.set_flag")
        assert ids(run) == ["PTO-S004"]
        assert (finding.facts["first"], line(finding)) == (first, first + 1)
        assert f"line {first}" in finding.message


def test_a_wait_that_was_issued_between_two_sets_keeps_them_apart() -> None:
    assert pto.launch(flags(*[("set", "V", "MTE3", 1), ("wait", "V", "MTE3", 1)] * 2)).findings == []
    calls = [("wait", "V", "MTE3", 1)] * 2 + [("set", "V", "MTE3", 1)] * 2
    assert pto.launch(flags(*calls)).findings == []


def test_a_flag_left_set_at_the_end_is_told_where_it_was_set() -> None:
    def kernel(k):
        pair(k, "MTE3", "MTE2", 6)
        k.set_flag("MTE3", "MTE2", 6)

    run = pto.launch(kernel)
    finding = told(run, "PTO-S005")
    assert ids(run) == ["PTO-S005"]
    assert (line(finding), finding.facts["flag"]) == (line_of(kernel, "k.set_flag"), "MTE3->MTE2, event 6")
    assert 'k.wait_flag("MTE3", "MTE2", 6)' in finding.fix


@pytest.mark.parametrize("event", [8, 9, 255, -1])
@pytest.mark.parametrize("word", ["set", "wait"])
def test_an_event_that_does_not_exist_is_told_and_orders_nothing(word: str, event: int) -> None:
    run = pto.launch(flags((word, "V", "MTE3", event)))
    finding = told(run, "PTO-S006")
    assert ids(run) == ["PTO-S006"]
    assert finding.facts["event"] == event
    assert "0 to 7" in finding.message


def test_a_pair_with_an_event_that_does_not_exist_leaves_the_race() -> None:
    def kernel(k, x, out):
        t = k.tile("int32", 1, 8)
        k.tload(t, x)
        pair(k, "MTE2", "MTE3", 8)
        k.tstore(out, t)

    run = pto.launch(kernel, int32(8), int32(8))
    assert ids(run) == ["PTO-S001", "PTO-S006", "PTO-S006"]


@pytest.mark.parametrize(
    ("set_", "wait", "is_near"),
    [
        (("MTE2", "V", 1), ("MTE2", "V", 2), True),  # another id of the pair
        (("MTE2", "MTE3", 3), ("MTE2", "V", 3), True),  # another pipe
        (("V", "MTE2", 1), ("MTE2", "V", 1), False),  # the pair turned round
        (("MTE2", "MTE3", 3), ("V", "S", 4), False),
        (("MTE2", "MTE3", 3), ("V", "MTE3", 4), False),
    ],
)
def test_a_wait_on_another_pair_or_id_than_was_set(set_: tuple[Any, ...], wait: tuple[Any, ...], is_near: bool) -> None:
    def kernel(k):
        k.set_flag(*set_)
        k.wait_flag(*wait)

    names = ["{}->{}, event {}".format(*flag) for flag in (set_, wait)]
    for schedule, seed in SCHEDULES:
        run = pto.launch(kernel, schedule=schedule, seed=seed)
        if not is_near:
            stops = wait[1] == "S"  # S itself hangs: the kernel does not reach its end
            assert ids(run) == (["PTO-S003"] if stops else ["PTO-S003", "PTO-S005"])
            assert [one.facts["flag"] for one in run.findings] == (names[1:] if stops else names[::-1])
            continue
        assert ids(run) == ["PTO-S007"], "one mistake, one finding"
        finding = told(run, "PTO-S007")
        assert (finding.facts["left_set"], finding.facts["flag"]) == tuple(names)
        assert line(finding) == line_of(kernel, "k.wait_flag")
        assert 'k.wait_flag("{}", "{}", {})'.format(*set_) in finding.fix


def test_pipes_that_wait_for_each_other_are_told_as_a_circle() -> None:
    def kernel(k):
        k.wait_flag("MTE2", "V", 0)
        k.set_flag("V", "MTE2", 0)
        k.wait_flag("V", "MTE2", 0)
        k.set_flag("MTE2", "V", 0)

    for schedule, seed in SCHEDULES:
        run = pto.launch(kernel, schedule=schedule, seed=seed)
        assert ids(run) == ["PTO-S012"]
        first, second = line_of(kernel, "k.wait_flag"), line_of(kernel, "k.wait_flag", 1)
        assert set(told(run, "PTO-S012").facts["lines"]) >= {first, second}


def test_a_circle_over_three_pipes_stops_s_when_it_waits_for_them() -> None:
    ring = [("V", "MTE2"), ("MTE2", "MTE3"), ("MTE3", "V")]

    def kernel(k):
        for source, sink in ring:
            k.wait_flag(source, sink, 0)
        for source, sink in ring:
            k.set_flag(source, sink, 0)
        k.pipe_barrier("ALL")
        k.tile("int32", 1, 8, at=1)

    for schedule, seed in SCHEDULES:
        run = pto.launch(kernel, schedule=schedule, seed=seed)
        assert ids(run) == ["PTO-S012"], "the block stops at the barrier"


# The flags that instructions use themselves (SEMANTICS 3.1)

INSIDE = {
    ("a2a3", "mscatter", "row", "none"): "V>S MTE2>S S>MTE3 MTE3>S MTE3>V MTE3>MTE2",
    ("a2a3", "mscatter", "row", "add"): "V>S MTE2>S S>MTE3 MTE3>S S>V S>MTE2 MTE3>V MTE3>MTE2",
    ("a2a3", "mscatter", "elem", "none"): "V>S MTE3>S MTE2>S S>V S>MTE2 S>MTE3",
    ("a2a3", "mgather", "row", "none"): "V>S MTE3>S S>MTE2 MTE2>V MTE2>MTE3 S>V S>MTE3",
    ("a2a3", "mgather", "elem", "none"): "V>S MTE3>S MTE2>S S>V S>MTE2 S>MTE3",
    ("a5", "mscatter", "row", "none"): "",
    ("a5", "mscatter", "elem", "add"): "",
    ("a5", "mgather", "row", "none"): "",
    ("a5", "mscatter", "scalar", "none"): "V>S S>V",
    ("a5", "mgather", "scalar", "none"): "V>S S>V",
}


@pytest.mark.parametrize("call", INSIDE, ids=" ".join)
@pytest.mark.parametrize(("source", "sink"), PAIRS)
def test_a_flag_that_an_instruction_uses_itself_must_not_be_held_across_it(
    source: str, sink: str, call: tuple[str, str, str, str]
) -> None:
    target, op, coalesce, atomic = call
    valid, count = {"row": ((2, 8), 2), "elem": ((2, 8), 8), "scalar": ((1, 1), 1)}[coalesce]
    coalesce = "elem" if coalesce == "scalar" else coalesce
    index_rows = valid[0] if coalesce == "elem" else 1

    def kernel(k, table, event):
        data, idx = k.tile("int32", 2, 8, valid), k.tile("int32", 2, 8, (index_rows, count))
        k.texpands(data, 3)
        k.tci(idx, 0)
        k.set_flag(source, sink, event)
        if op == "mscatter":
            k.mscatter(table, data, idx, coalesce=coalesce, atomic=atomic)
        else:
            k.mgather(data, table, idx, coalesce=coalesce)
        k.wait_flag(source, sink, event)
        flush(k)

    for event in (0, 1, 7):
        run = pto.launch(kernel, int32(4, 8), event, target=target)
        is_used = event == 0 and f"{source}>{sink}" in INSIDE[call].split()
        assert set(ids(run)) == ({"PTO-S008"} if is_used else set())
        if is_used:
            finding = next(one for one in run.findings if one.id == "PTO-S008")
            assert finding.facts["flag"] == f"{source}->{sink}, event 0"
            assert finding.facts["first"] == line_of(kernel, "k.set_flag")
            assert line(finding) == line_of(kernel, f"k.{op}(")


# Barriers and events


def test_a_barrier_of_all_pipes_orders_everything() -> None:
    def kernel(k, x, y, out):
        t, u = k.tile("int32", 1, 8), k.tile("int32", 1, 8)
        k.tload(t, x)
        k.tload(u, y)
        k.pipe_barrier()
        k.tadd(t, t, u)
        k.pipe_barrier("PIPE_ALL")
        k.tstore(out, t)
        k.pipe_barrier("all")
        k.tload(t, x)

    for schedule, seed in SCHEDULES:
        out = np.zeros(8, np.int32)
        run = pto.launch(kernel, int32(8), int32(8, first=10), out, schedule=schedule, seed=seed)
        assert loud(run) == []
        np.testing.assert_array_equal(out, int32(8) + int32(8, first=10))


@pytest.mark.parametrize("pipe", ["V", "MTE2", "MTE3", "S"])
def test_a_barrier_of_one_pipe_orders_nothing_between_pipes(pipe: str) -> None:
    def kernel(k, x, out):
        t = k.tile("int32", 1, 8)
        k.tload(t, x)
        k.pipe_barrier(pipe)
        k.tstore(out, t)

    assert told(pto.launch(kernel, int32(8), int32(8)), "PTO-S001").facts["insert"] == ["MTE2", "MTE3", 0]


def test_an_event_orders_what_waits_for_it_and_needs_no_flag() -> None:
    def kernel(k, x, out):
        t, u = k.tile("int32", 1, 8), k.tile("int32", 1, 8)
        summed = stored = ()
        for chunk in range(4):
            loaded = k.tload(t, x[chunk : chunk + 1, :], wait=summed)
            summed = k.tadds(u, t, 5, wait=(loaded, stored) if stored else loaded)
            stored = k.tstore(out[chunk : chunk + 1, :], u, wait=[summed])

    for schedule, seed in SCHEDULES:
        x, out = int32(4, 8), np.zeros((4, 8), np.int32)
        run = pto.launch(kernel, x, out, schedule=schedule, seed=seed)
        assert loud(run) == []
        np.testing.assert_array_equal(out, x + 5)


def test_an_event_does_not_reach_what_does_not_wait_for_it() -> None:
    def kernel(k, x, y, out):
        t, u = k.tile("int32", 1, 8), k.tile("int32", 1, 8)
        first = k.tload(t, x)
        k.tload(u, y)
        k.tadd(t, t, u, wait=first)

    finding = told(pto.launch(kernel, int32(8), int32(8), int32(8)), "PTO-S001")
    assert finding.facts["operands"] == ["u", "u"]
    assert finding.facts["insert"] == ["MTE2", "V", 0]


@pytest.mark.parametrize("given", [3, "MTE2", [1], 1.5], ids=repr)
def test_only_events_can_be_waited_for(given: Any) -> None:
    def kernel(k, x):
        k.tload(k.tile("int32", 1, 8), x, wait=given)

    error = refused(kernel, int32(8))
    assert isinstance(error, TypeError)
    assert "wait" in str(error)


def test_order_is_handed_on_from_pipe_to_pipe() -> None:
    """MTE2 to MTE3 by way of V; what S wrote and V has seen, S has seen too when it has waited for V."""

    def by_v(k, x, out):
        t = k.tile("int32", 1, 8)
        k.tload(t, x)
        pair(k, "MTE2", "V")
        pair(k, "V", "MTE3")
        k.tstore(out, t)

    def by_v_and_s(k, x, out):
        t = k.tile("int32", 1, 8)
        k.texpands(t, 0)
        pair(k, "V", "S")
        k.set(t, 0, 0, 5)
        pair(k, "S", "V")
        pair(k, "V", "S")
        k.tload(t, x)
        pair(k, "MTE2", "MTE3")
        k.tstore(out, t)

    for kernel in (by_v, by_v_and_s):
        for schedule, seed in SCHEDULES:
            out = np.zeros(8, np.int32)
            run = pto.launch(kernel, int32(8), out, schedule=schedule, seed=seed)
            assert loud(run) == [], kernel.__name__
            np.testing.assert_array_equal(out, int32(8))


# Missing pairs: the adversary shows what can happen, the polite order what was meant


def raw(k, x, y, out):
    """The sum is stored before it is computed."""
    t = k.tile("int32", 1, 8)
    k.tload(t, x)
    pair(k, "MTE2", "V")
    k.tadds(t, t, 100)
    k.tstore(out, t)


def war(k, x, y, out):
    """The tile is loaded again before its first value was stored."""
    t = k.tile("int32", 1, 8)
    k.tload(t, x)
    pair(k, "MTE2", "MTE3")
    k.tstore(out, t)
    k.tload(t, y)


def waw(k, x, y, out):
    """What V writes should replace what was loaded."""
    t = k.tile("int32", 1, 8)
    k.tload(t, x)
    k.texpands(t, 7)
    pair(k, "MTE2", "MTE3")
    pair(k, "V", "MTE3")
    k.tstore(out, t)


def raw_in_memory(k, x, y, out):
    """A tensor is loaded before it was stored."""
    t, u = k.tile("int32", 1, 8), k.tile("int32", 1, 8)
    k.tload(t, y)
    pair(k, "MTE2", "MTE3")
    k.tstore(x, t)
    k.tload(u, x)
    pair(k, "MTE2", "MTE3", 1)
    k.tstore(out, u)


def war_in_memory(k, x, y, out):
    """A tensor is overwritten before it was loaded."""
    t, u = k.tile("int32", 1, 8), k.tile("int32", 1, 8)
    k.texpands(u, 3)
    pair(k, "V", "MTE3")
    k.tload(t, x)
    k.tstore(x, u)
    pair(k, "MTE2", "MTE3")
    k.tstore(out, t)


def waw_in_memory(k, x, y, out):
    """V scatters what should replace a store."""
    t, i = k.tile("int32", 1, 8), k.tile("int32", 1, 8)
    k.texpands(t, 3)
    k.tci(i, 0)
    pair(k, "V", "MTE3")
    k.tload(k.tile("int32", 1, 8, name="y"), y)
    k.tstore(out, t)
    u = k.tile("int32", 1, 8)
    k.texpands(u, 4)
    k.mscatter(out, u, i, coalesce="elem")
    flush(k)


MISSING: list[tuple[Kernel, str, str, str, list[str]]] = [
    (raw, "k.tadds", "k.tstore", "PTO-S001", ["V", "MTE3", 0]),
    (war, "k.tstore", "k.tload(t, y)", "PTO-S001", ["MTE3", "MTE2", 0]),
    (waw, "k.tload", "k.texpands", "PTO-S001", ["MTE2", "V", 0]),
    (raw_in_memory, "k.tstore(x", "k.tload(u", "PTO-S002", ["MTE3", "MTE2", 0]),
    (war_in_memory, "k.tload(t", "k.tstore(x", "PTO-S002", ["MTE2", "MTE3", 1]),
    (waw_in_memory, "k.tstore(out", "k.mscatter", "PTO-S002", ["MTE3", "V", 0]),
]


def result_of(kernel: Kernel, schedule: str, seed: int = 0, target: str = "a5") -> tuple[pto.Run, list[Array]]:
    arguments = [int32(8), int32(8, first=50), np.zeros(8, np.int32)]
    return pto.launch(kernel, *arguments, target=target, schedule=schedule, seed=seed), arguments


@pytest.mark.parametrize(
    ("kernel", "first", "second", "id_", "insert"), MISSING, ids=[one[0].__name__ for one in MISSING]
)
def test_a_missing_pair_is_told_with_both_lines_and_shown_by_the_adversary(
    kernel: Kernel, first: str, second: str, id_: str, insert: list[Any]
) -> None:
    run, shown = result_of(kernel, "late")
    finding = told(run, id_)
    assert ids(run) == [id_]
    assert finding.facts["lines"] == [line_of(kernel, first), line_of(kernel, second)]
    assert finding.facts["insert"] == insert
    assert (finding.facts["pipes"], line(finding)) == (insert[:2], line_of(kernel, second))
    polite_run, meant = result_of(kernel, "program")
    assert essence(polite_run) == essence(run)
    assert any((a != b).any() for a, b in zip(shown, meant, strict=True)), "the adversary shows nothing"


MEANT = {
    raw: [int32(8), int32(8, first=50), int32(8) + 100],
    war: [int32(8), int32(8, first=50), int32(8)],
    waw: [int32(8), int32(8, first=50), np.full(8, 7)],
    raw_in_memory: [int32(8, first=50), int32(8, first=50), int32(8, first=50)],
    war_in_memory: [np.full(8, 3), int32(8, first=50), int32(8)],
    waw_in_memory: [int32(8), int32(8, first=50), np.full(8, 4)],
}
SHOWN = {
    raw: [int32(8), int32(8, first=50), np.full(8, -1)],  # not even the load has landed
    war: [int32(8), int32(8, first=50), int32(8, first=50)],
    waw: [int32(8), int32(8, first=50), int32(8)],
    raw_in_memory: [int32(8, first=50), int32(8, first=50), int32(8)],
    war_in_memory: [np.full(8, 3), int32(8, first=50), np.full(8, 3)],
    waw_in_memory: [int32(8), int32(8, first=50), np.full(8, 3)],
}


@pytest.mark.parametrize("kernel", MEANT, ids=lambda kernel: kernel.__name__)
def test_the_polite_order_gives_what_was_meant_and_the_late_one_the_opposite(kernel: Kernel) -> None:
    for schedule, expected in (("program", MEANT), ("late", SHOWN)):
        for found, wanted in zip(result_of(kernel, schedule)[1], expected[kernel], strict=True):
            np.testing.assert_array_equal(found, wanted, err_msg=schedule)


@pytest.mark.parametrize("kernel", MEANT, ids=lambda kernel: kernel.__name__)
def test_findings_do_not_depend_on_the_schedule(kernel: Kernel) -> None:
    expected = essence(result_of(kernel, "late")[0])
    assert all(essence(result_of(kernel, "random", seed)[0]) == expected for seed in range(10))


@pytest.mark.parametrize("kernel", MEANT, ids=lambda kernel: kernel.__name__)
def test_random_orders_find_more_than_one_result_and_a_seed_always_the_same(kernel: Kernel) -> None:
    outcomes = set()
    for seed in range(40):
        _, once = result_of(kernel, "random", seed)
        _, again = result_of(kernel, "random", seed)
        assert [a.tobytes() for a in once] == [a.tobytes() for a in again]
        outcomes.add(tuple(a.tobytes() for a in once))
    meant = tuple(np.asarray(a, np.int32).tobytes() for a in MEANT[kernel])
    assert meant in outcomes
    assert len(outcomes) > 1


# The same in loops


def rounds(k, x, out, left_out):
    """Load, add, store, round after round; one of the four pairs may be left out."""
    t = k.tile("int32", 1, 8)
    for chunk in range(4):
        if chunk:
            if left_out != "V>MTE2":
                k.wait_flag("V", "MTE2", 0)
            if left_out != "MTE3>V":
                k.wait_flag("MTE3", "MTE2", 0)
        k.tload(t, x[chunk : chunk + 1, :])
        if left_out != "MTE2>V":
            pair(k, "MTE2", "V")
        k.tadds(t, t, 100)
        if left_out != "V>MTE2" and chunk < 3:
            k.set_flag("V", "MTE2", 0)
        if left_out != "V>MTE3":
            pair(k, "V", "MTE3")
        k.tstore(out[chunk : chunk + 1, :], t)
        if left_out != "MTE3>V" and chunk < 3:
            k.set_flag("MTE3", "MTE2", 0)


@pytest.mark.parametrize(
    ("left_out", "first", "second", "insert"),
    [
        ("MTE2>V", "k.tload", "k.tadds", ["MTE2", "V", 0]),
        ("V>MTE3", "k.tadds", "k.tstore", ["V", "MTE3", 0]),
        ("MTE3>V", "k.tstore", "k.tload", ["MTE3", "MTE2", 0]),
    ],
)
def test_a_pair_missing_in_a_loop_gives_wrong_data(left_out: str, first: str, second: str, insert: list[Any]) -> None:
    x, late, polite = int32(4, 8), np.zeros((4, 8), np.int32), np.zeros((4, 8), np.int32)
    run = pto.launch(rounds, x, late, left_out)
    pto.launch(rounds, x, polite, left_out, schedule="program")
    lines = [line_of(rounds, first), line_of(rounds, second)]
    assert [lines, insert] in [
        [one.facts["lines"], one.facts["insert"]] for one in run.findings if one.id == "PTO-S001"
    ]
    np.testing.assert_array_equal(polite, x + 100)
    assert (late != x + 100).any()


@pytest.mark.parametrize("left_out", ["nothing", "V>MTE2"])
def test_a_loop_with_enough_pairs_is_right_in_every_order(left_out: str) -> None:
    """The store comes after the sum and the load after the store: a pair from V to MTE2 adds nothing."""
    for schedule, seed in SCHEDULES:
        x, out = int32(4, 8), np.zeros((4, 8), np.int32)
        assert loud(pto.launch(rounds, x, out, left_out, schedule=schedule, seed=seed)) == []
        np.testing.assert_array_equal(out, x + 100)


def ping_pong(k, x, out, left_out):
    """Two tiles in turn; the tile of round n is loaded again in round n + 2."""
    tiles = [k.tile("int32", 1, 8) for _ in range(2)]
    for chunk in range(6):
        b = chunk % 2
        if chunk >= 2 and left_out != "reload":
            k.wait_flag("MTE3", "MTE2", b)
        k.tload(tiles[b], x[chunk : chunk + 1, :])
        if left_out != "load":
            pair(k, "MTE2", "V", b)
        k.tadds(tiles[b], tiles[b], 100)
        pair(k, "V", "MTE3", b)
        k.tstore(out[chunk : chunk + 1, :], tiles[b])
        if chunk < 4 and left_out != "reload":
            k.set_flag("MTE3", "MTE2", b)


@pytest.mark.parametrize("left_out", ["reload", "load"])
def test_a_missing_pair_between_rounds_of_a_ping_pong_gives_wrong_data(left_out: str) -> None:
    x, late, polite = int32(6, 8), np.zeros((6, 8), np.int32), np.zeros((6, 8), np.int32)
    run = pto.launch(ping_pong, x, late, left_out)
    polite_run = pto.launch(ping_pong, x, polite, left_out, schedule="program")
    assert set(ids(run)) == {"PTO-S001"}
    assert essence(run) == essence(polite_run)
    np.testing.assert_array_equal(polite, x + 100)
    assert (late != x + 100).any()


def test_a_right_ping_pong_is_right_in_every_order() -> None:
    for schedule, seed in SCHEDULES:
        x, out = int32(6, 8), np.zeros((6, 8), np.int32)
        assert loud(pto.launch(ping_pong, x, out, "nothing", schedule=schedule, seed=seed)) == []
        np.testing.assert_array_equal(out, x + 100)


# What a finding says


def test_a_race_names_tiles_bytes_pipes_and_how_often_it_happens() -> None:
    def kernel(k, x, out):
        first = k.tile("int32", 2, 8, at=0x100)
        for _ in range(3):
            k.tload(first, x)
            k.pipe_barrier("MTE2")
            k.tstore(out, first)
            k.pipe_barrier("ALL")

    finding = told(pto.launch(kernel, int32(2, 8), int32(2, 8)), "PTO-S001")
    facts = dict(finding.facts)
    assert facts["instructions"] == ["tload", "tstore"]
    assert facts["operands"] == ["first", "first"]
    assert facts["writes"] == [True, False]
    assert facts["bytes"] == [0x100, 0x140]
    assert facts["first_byte"] == 0x100
    assert facts["count"] == 3
    for word in ("tstore on MTE3 reads first", "tload", f"line {line_of(kernel, 'k.tload')}", "(MTE2)", "2 more times"):
        assert word in finding.message
    assert "  " not in finding.message


def test_only_bytes_that_meet_are_a_race() -> None:
    def kernel(k, x, out, low):
        left = k.tile("int32", 4, 16, (4, 8), at=0)
        right = k.tile("int32", 4, 16, (4, 8), at=low)
        k.texpands(left, 1)
        k.tload(right, x)
        k.tstore(out, left, wait=k.texpands(left, 1))

    x, out = int32(4, 8), int32(4, 8)
    assert loud(pto.launch(kernel, x, out, 32)) == []  # the other half of each row
    run = pto.launch(kernel, x, out, 64)
    assert "PTO-S001" in ids(run)
    assert {one.facts["first_byte"] for one in run.findings if one.id == "PTO-S001"} == {64}


INTERLEAVED = {
    "columns": ((1, 1, 1, 4, 8), (64, 64, 64, 16, 1), 8),
    "every second element": ((1, 1, 1, 4, 8), (64, 64, 64, 16, 2), 1),
    "outer dimensions": ((2, 1, 2, 1, 8), (32, 32, 16, 16, 1), 8),
}


@pytest.mark.parametrize("way", INTERLEAVED)
def test_parts_of_a_tensor_that_lie_between_each_other_are_no_race(way: str) -> None:
    shape, stride, step = INTERLEAVED[way]

    def kernel(k, mine, others):
        t, u = k.tile("int32", 4, 8), k.tile("int32", 4, 8)
        k.texpands(u, 1)
        pair(k, "V", "MTE3")
        k.tload(t, mine)
        k.tstore(others, u)

    buffer = int32(80)
    mine, others, same = (pto.GlobalTensor(buffer, "int32", shape, stride, base=base) for base in (0, step, 2 * step))
    assert loud(pto.launch(kernel, mine, others)) == []
    assert ids(pto.launch(kernel, mine, mine)) == ["PTO-S002"]
    assert ids(pto.launch(kernel, mine, same)) == ["PTO-S002"], "the second row of one is the first of the other"


def test_an_access_that_comes_again_is_held_against_by_its_last_time() -> None:
    """Four loads by one line: the first and the last of one tile, and only the last is not waited for."""

    def kernel(k, x):
        tiles = [k.tile("int32", 1, 8) for _ in range(3)]
        for number in (0, 1, 2, 0):
            k.pipe_barrier("ALL")
            k.tload(tiles[number], x)
        k.tadds(tiles[1], tiles[0], 1)

    finding = told(pto.launch(kernel, int32(8)), "PTO-S001")
    assert finding.facts["lines"] == [line_of(kernel, "k.tload"), line_of(kernel, "k.tadds")]
    assert finding.facts["bytes"] == [0, 32]


def test_random_orders_draw_the_winner_of_a_conflict_too() -> None:
    def kernel(k, table):
        t, i = k.tile("int32", 8, 8), k.tile("int32", 1, 8)
        k.tci(t, 0)
        k.texpands(i, 0)
        k.mscatter(table, t, i, conflict="default")
        flush(k)

    winners = set()
    for seed in range(12):
        table = np.full((1, 8), -1, np.int32)
        pto.launch(kernel, table, schedule="random", seed=seed)
        assert table[0, 0] % 8 == 0
        winners.add(int(table[0, 0]))
    assert len(winners) > 1


def test_two_loads_of_one_tile_need_no_pair_and_two_readers_neither() -> None:
    def kernel(k, x, y, out):
        t = k.tile("int32", 1, 8)
        k.tload(t, x)
        k.tload(t, y)
        k.pipe_barrier("ALL")
        k.tstore(out, t)
        k.tadds(k.tile("int32", 1, 8, name="u"), t, 1)
        assert k.get(t, 0, 0) == 50

    run = pto.launch(kernel, int32(8), int32(8, first=50), int32(8))
    assert loud(run) == []
