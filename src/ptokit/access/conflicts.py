"""What there is to say about contested slots, and whether the call has one result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptokit.access.collide import Collisions, Verdict
from ptokit.access.outcomes import Outcomes
from ptokit.access.plan import Lanes, Plan
from ptokit.findings import Finding, Severity, json_value
from ptokit.policies import ScatterAtomicOp, word

FEW = 4
"""Slots that a finding tells in full."""

MANY_WRITERS = 16
"""Writers of a slot that a finding lists."""

KINDS: dict[Verdict, tuple[str, Severity]] = {
    Verdict.BENIGN: ("PTO-C001", Severity.NOTE),
    Verdict.DEFINED: ("PTO-C002", Severity.NOTE),
    Verdict.ORDER_SENSITIVE: ("PTO-C003", Severity.WARNING),
    Verdict.UNDEFINED: ("PTO-C004", Severity.WARNING),
}
"""One row a verdict: id and severity."""

STORE, SUM, EXTREME = "store", "sum", "extreme"

FIXES = {
    (Verdict.BENIGN, STORE): "Nothing: every order gives the same bits.",
    (Verdict.DEFINED, STORE): "Nothing, if this is the winner that was meant.",
    (Verdict.DEFINED, SUM): "Nothing, if the duplicates were meant to be added up.",
    (Verdict.DEFINED, EXTREME): "Nothing: the order of the writers does not show.",
    (Verdict.ORDER_SENSITIVE, SUM): (
        "No policy orders additions: combine the duplicates before the call, or accumulate in int32."
    ),
    (Verdict.ORDER_SENSITIVE, EXTREME): "Replace -0 by 0 before the call.",
    (Verdict.UNDEFINED, STORE): "Ask for conflict='last': the largest source index wins.",
}
"""What to do about a verdict, by what the writers do."""


def _deed(atomic: ScatterAtomicOp) -> str:
    return {ScatterAtomicOp.None_: STORE, ScatterAtomicOp.Add: SUM}.get(atomic, EXTREME)


def conflict_findings(found: Collisions, outcomes: Outcomes) -> list[Finding]:
    """One finding per verdict, with a count and the first few slots."""
    by_slot = found.by_slot
    told = []
    for verdict, (id_, severity) in KINDS.items():
        slots = np.flatnonzero(by_slot.verdict == verdict)
        if not len(slots):
            continue
        examples = [
            _slot_facts(found, outcomes, int(by_slot.slot[at]), int(by_slot.cell[at]), verdict) for at in slots[:FEW]
        ]
        facts = {**examples[0], "verdict": verdict.word, "count": len(slots)}
        facts["examples"] = examples
        message = _sentence(found.cells.plan, facts, verdict)
        fix = FIXES[verdict, _deed(found.atomic)]
        if verdict is Verdict.UNDEFINED and facts["winner_last"] is None:
            fix = f"Keep these indices in bounds first; conflict='last' would drop them. {fix}"
        told.append(Finding(id_, severity, found.cells.plan.target, message, facts, None, fix))
    return told


def _slot_facts(found: Collisions, outcomes: Outcomes, slot: int, cell: int, verdict: Verdict) -> dict[str, Any]:
    entries = found.entries_of(cell)
    survives = found.survives[entries]
    plan, column = found.cells.plan, _telling_column(found, cell, verdict)
    lanes = found.lanes_of(cell)
    address = int(found.cells.address[cell]) + column
    facts: dict[str, Any] = {
        "slot": slot,
        "slots": np.unique(plan.slot[plan.lane_of_run[found.runs_of(cell)]])[:MANY_WRITERS].tolist(),
        "address": address,
        "column": _row_column(found, slot, cell) + column,
        "writers": len(lanes),
        "lanes": lanes[:MANY_WRITERS].tolist(),
        "values": json_value(found.values[entries, column].view(found.dtype.numpy)[:MANY_WRITERS]),
        "winner_last": _winner_under_last(found, cell),
    }
    if found.cells.plan.call.atomic is not ScatterAtomicOp.None_:
        facts["before"] = json_value(found.before[cell, column : column + 1].view(found.dtype.numpy)[0])
    elif verdict is Verdict.UNDEFINED:
        facts["survivors"] = lanes[survives][:MANY_WRITERS].tolist()
        facts["lockstep"] = _lockstep(found, cell)[:MANY_WRITERS]
    else:
        facts["winner"] = lanes[-1].tolist()
    if verdict >= Verdict.ORDER_SENSITIVE:
        facts.update(outcomes.facts(cell, column))
    return facts


def _winner_under_last(found: Collisions, cell: int) -> list[int] | None:
    """The lane with the largest source index; the scan of Last visits real slots only, so there may be none."""
    plan, runs = found.cells.plan, found.runs_of(cell)
    visited = np.flatnonzero(plan.slot[plan.lane_of_run[runs]] < plan.capacity.counted)
    if not len(visited):
        return None
    lanes = found.lanes_of(cell)[visited]
    return list(lanes[(lanes[:, 0] * plan.call.tile.cols + lanes[:, 1]).argmax()].tolist())


def _row_column(found: Collisions, slot: int, cell: int) -> int:
    """Row: the column of the slot at which the cell begins (NZ blocks, rows that overlap); Elem: 0."""
    plan = found.cells.plan
    if not plan.runs_are_rows:
        return 0
    runs = found.runs_of(cell)
    return int(plan.runs.col[runs[plan.slot[plan.lane_of_run[runs]] == slot][0]])


def _telling_column(found: Collisions, cell: int, verdict: Verdict) -> int:
    """A column in which the writers that matter differ."""
    values = found.values[found.entries_of(cell)]
    if verdict is Verdict.UNDEFINED:
        values = values[found.survives[found.entries_of(cell)]]
    if verdict is Verdict.ORDER_SENSITIVE:
        return found.sensitive_column(cell)
    differs = np.flatnonzero((values != values[0]).any(axis=0))
    return int(differs[0]) if len(differs) else 0


def _lockstep(found: Collisions, cell: int) -> list[list[int]]:
    """The narrower set that no document promises: lanes of a warp step together (Elem)."""
    plan = found.cells.plan
    assert plan.threads is not None
    runs = found.runs_of(cell)
    row, col = plan.runs.row[runs], plan.runs.col[runs]
    if plan.runs_are_rows:
        keep: Lanes = np.flatnonzero(found.survives[found.entries_of(cell)])
    else:
        warp = plan.threads.of(row, col) // 32
        step = plan.threads.step_of(row, col)
        last = {int(w): int(step[warp == w].max()) for w in np.unique(warp)}
        keep = np.flatnonzero(step == np.array([last[int(w)] for w in warp]))
    return [[int(row[k]), int(col[k])] for k in keep]


def _sentence(plan: Plan, facts: dict[str, Any], verdict: Verdict) -> str:
    op = word(plan.call.atomic)
    lanes = " and ".join(str(tuple(lane)) for lane in facts["lanes"][:2])
    more = f" and {facts['writers'] - 2} more" if facts["writers"] > 2 else ""
    values = ", ".join(f"{v:.7g}" if isinstance(v, float) else str(v) for v in facts["values"][:2])
    slots = "1 slot" if facts["count"] == 1 else f"{facts['count']} slots"
    where = f"slot {facts['slot']}" if len(facts["slots"]) == 1 else f"element {facts['address']} of the buffer"
    where += f", column {facts['column']}" if facts["column"] else ""
    head = f"{slots} with several writers: {where} gets {values} from lanes {lanes}{more}"
    last = f"lane {tuple(facts['winner_last'])}" if facts["winner_last"] else "none, it visits real slots only"
    tails: dict[Verdict, Callable[[], str]] = {
        Verdict.BENIGN: lambda: "all bring equal bits",
        Verdict.DEFINED: lambda: (
            f"lane {tuple(facts['winner'])} wins" if "winner" in facts else f"{op} has one result here"
        ),
        Verdict.ORDER_SENSITIVE: lambda: (
            f"the result of {op} {'depends' if facts['exact'] else 'may depend'} on an order that nobody promises"
        ),
        Verdict.UNDEFINED: lambda: (
            f"any of {len(facts['survivors'])} may survive, the scheduler decides (under Last: {last})"
        ),
    }
    return f"{head}; {tails[verdict]()}."


def determinism(plan: Plan, found: Collisions | None) -> tuple[bool, str]:
    """Whether the call has exactly one legal result, and why."""
    if not plan.words_are_defined:
        return False, "some index words come from padding or from outside the index tile, where nothing defines them"
    if found is None:
        return True, "a gather writes each element of its tile once"
    if not found.count:
        return True, "no two lanes write the same element"
    if plan.scans_slots and found.has_aliases:
        return False, "two slots have the same 32-bit row address, and nothing orders the threads that visit them"
    by_slot = found.by_slot
    at = int(by_slot.verdict.argmax())
    worst, slot = Verdict(int(by_slot.verdict[at])), int(by_slot.slot[at])
    writers = int(found.cells.count[by_slot.cell[at]])
    if worst is Verdict.UNDEFINED:
        return False, f"slot {slot} has {writers} writers, and the warp scheduler decides which one survives"
    if worst is Verdict.ORDER_SENSITIVE:
        op = word(plan.call.atomic)
        depends = "may depend" if found.bounded[by_slot.cell[at]].any() else "depends"
        return False, f"slot {slot} has {writers} writers, and the result of {op} {depends} on their order"
    if worst is Verdict.BENIGN:
        return True, "all writers of a slot bring equal bits"
    return True, _why_defined(plan, found)


def _why_defined(plan: Plan, found: Collisions) -> str:
    atomic = plan.call.atomic
    if plan.threads is not None:
        if atomic is ScatterAtomicOp.None_:
            return "the writers of a slot that differ are accesses of one thread, and its last one stays"
        if atomic is ScatterAtomicOp.Add and found.dtype.is_float:
            return "the sums of the duplicates come out the same in every order"
        return f"{word(atomic)} gives the same result in every order"
    if not plan.obeys_policies or atomic is ScatterAtomicOp.None_:
        return "the last writer of a slot wins"
    return f"{plan.target} applies {word(atomic)} in the order of its walk"
