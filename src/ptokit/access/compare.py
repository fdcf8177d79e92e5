"""The same call on several targets, and the rule behind the first difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ptokit.access.call import Access
from ptokit.access.commit import bits_of
from ptokit.access.instructions import TARGETS, mgather, mscatter, read_call
from ptokit.access.plan import Array, Plan
from ptokit.access.report import Comparison, Difference, Refused, Report
from ptokit.access.sums import canonical
from ptokit.errors import IllegalInstruction, well_called
from ptokit.findings import Finding, Severity, in_order, json_value
from ptokit.policies import word
from ptokit.targets import named


@well_called
def compare(op: str, *operands: object, targets: str | Sequence[str] = TARGETS, **policies: Any) -> Comparison:
    """Run a copy of the call on each target; the operands stay as they are.

    >>> import ptokit as pto
    >>> src, idx = pto.Tile("int32", 1, 8), pto.Tile("int32", 1, 8)
    >>> src.store([[1, 2, 3, 4, 5, 6, 7, 8]])
    >>> idx.store([[0, 1, 2, 3, 4, 5, 6, -1]])
    >>> table = pto.GlobalTensor(np.zeros(7, np.int32), "int32", shape=(1, 1, 1, 1, 7))
    >>> both = pto.compare("mscatter", table, src, idx, coalesce="elem", oob="wrap", targets=("cpu", "a2a3"))
    >>> both.equal, both.first_difference.element
    (False, (3,))
    """
    call = read_call(op, operands, policies)
    chosen = named(targets)
    results: dict[str, Report | Refused] = {where.name: _run(call, where.name, policies) for where in chosen}
    difference = _first_difference(call, results)
    findings = [f for result in results.values() for f in result.findings]
    if difference is not None:
        findings.append(_finding(difference))
    ran = any(isinstance(result, Report) for result in results.values())
    return Comparison(call.op, ran and difference is None, difference, in_order(findings, list(results)), results)


def _run(call: Access, target: str, policies: dict[str, Any]) -> Report | Refused:
    """The call on copies of everything that it could write."""
    try:
        if call.is_scatter:
            return mscatter(call.table.copy(), call.tile, call.idx, **policies, target=target)
        dst = call.tile.copy()
        return mgather(dst, call.table, call.idx, **policies, target=target)
    except IllegalInstruction as refused:
        return Refused(call.op, target, refused.findings)


def _first_difference(call: Access, results: dict[str, Report | Refused]) -> Difference | None:
    names = list(results)
    for name, result in results.items():
        if isinstance(result, Refused):
            error = next(f for f in result.findings if f.severity is Severity.ERROR)
            if all(isinstance(other, Refused) for other in results.values()):
                return None
            return Difference((), {name: None}, error.id, f"{name} refuses the call: {error.message}")
    first = results[names[0]]
    for name in names[1:]:
        other = results[name]
        assert isinstance(first, Report)
        assert isinstance(other, Report)
        differs = np.flatnonzero(_bits(call, first) != _bits(call, other))
        if len(differs):
            return _difference(call, first, other, int(differs[0]))
    return None


def _bits(call: Access, report: Report) -> Array:
    bits = bits_of(np.ascontiguousarray(report.result).reshape(-1), call.tile.dtype)
    # The payload of a NaN that an addition makes is not promised, so it is no difference.
    return canonical(bits, call.tile.dtype) if call.adds_floats else bits


def _difference(call: Access, one: Report, other: Report, at: int) -> Difference:
    shape = one.result.shape
    element = tuple(int(i) for i in np.unravel_index(at, shape))
    values = {r.target: json_value(r.result.reshape(-1)[at]) for r in (one, other)}
    offset = at if call.is_scatter else int(call.tile.valid_offsets().reshape(-1)[at])
    rule, because = _explain(call, one, other, offset)
    what = "the table" if call.is_scatter else "the destination tile"
    told = " and ".join(f"{value} on {target}" for target, value in values.items())
    return Difference(element, values, rule, f"element {element} of {what} is {told}: {because}.")


def _hits(call: Access, plan: Plan, at: int) -> list[tuple[int, int]]:
    """Places (row, column) of the lanes that really move something to the element, in walk order."""
    runs = plan.runs
    first, step = (plan.address, 1) if call.is_scatter else (runs.src, runs.src_step)
    far = at - first
    touched = (far >= 0) & (far < runs.length * step) & (far % step == 0) & plan.live
    # The other end of the move exists too: a run may lie partly outside what is owned.
    other = runs.src + far * runs.src_step if call.is_scatter else plan.address + far // step
    touched &= (other >= 0) & (other < (plan.tile_size if call.is_scatter else plan.memory_size))
    return [_lane_place(plan, int(lane)) for lane in plan.lane_of_run[touched]]


def _lanes_of(plan: Plan, at: int) -> list[tuple[int, int]]:
    """Places of the lanes of a gather whose element of the tile this is, whether they move something or not."""
    runs = plan.runs
    far = at - runs.src
    its = (far >= 0) & (far < runs.length * runs.src_step) & (far % runs.src_step == 0)
    return [_lane_place(plan, int(lane)) for lane in plan.lane_of_run[its]]


def _explain(call: Access, one: Report, other: Report, at: int) -> tuple[str, str]:
    """(short name of the rule, the sentence that explains the difference)."""
    a, b = one.plan, other.plan
    if a.runs_are_rows != b.runs_are_rows:
        rowless = one.target if not a.runs_are_rows else other.target
        return "no Row path", f"{rowless} has no Row path and takes one index per element"
    hits_a, hits_b = _hits(call, a, at), _hits(call, b, at)
    places = sorted(set(hits_a) ^ set(hits_b)) if call.is_scatter else hits_a or hits_b or _lanes_of(a, at)
    if places:
        return _explain_lane(call, one, other, places[0])
    if (a.call.atomic, a.call.oob) != (b.call.atomic, b.call.oob):
        return "policies", f"{word(call.atomic)} and {word(call.oob)} are not modelled by the reference simulator"
    if hits_a == hits_b:
        return "schedule", "the same lanes write it, in an order that the random schedule chose"
    return "walk order", (
        f"the lanes that write it come in another order: {one.target} ends with {hits_a[-1]}, "
        f"{other.target} with {hits_b[-1]}"
    )


def _lane_place(plan: Plan, lane: int) -> tuple[int, int]:
    return (lane, 0) if plan.runs_are_rows else plan.lane(lane)


def _lane_at(plan: Plan, place: tuple[int, int]) -> int:
    """The lane of this plan that stands at (row, column)."""
    if plan.runs_are_rows:
        return place[0]
    return int(np.flatnonzero((plan.runs.row == place[0]) & (plan.runs.col == place[1]))[0])


def _explain_lane(call: Access, one: Report, other: Report, place: tuple[int, int]) -> tuple[str, str]:
    """What the two targets make of one lane's index."""
    a, b = one.plan, other.plan
    i, j = _lane_at(a, place), _lane_at(b, place)
    index = int(a.raw[i])
    if a.capacity.counted != b.capacity.counted and (a.lane_out[i] or b.lane_out[j]):
        return "capacity", (
            f"index {index} of lane {place} meets a capacity of {a.capacity.counted} on {one.target} and "
            f"{b.capacity.counted} on {other.target}"
        )
    if int(a.raw[i]) != int(b.raw[j]):
        return "index word", f"lane {place} reads index {index} on {one.target} and {int(b.raw[j])} on {other.target}"
    if a.lane_live[i] != b.lane_live[j]:
        drops = one.target if b.lane_live[j] else other.target
        return "bounds", f"index {index} of lane {place} is out of bounds, and {drops} drops it"
    if int(a.slot[i]) != int(b.slot[j]):
        return "remap", (
            f"index {index} of lane {place} becomes slot {int(a.slot[i])} on {one.target} and "
            f"{int(b.slot[j])} on {other.target} ({word(call.oob)})"
        )
    return "address", (
        f"slot {int(a.slot[i])} of lane {place} is another address on {one.target} than on {other.target}"
    )


def _finding(difference: Difference) -> Finding:
    return Finding(
        "PTO-I020",
        Severity.WARNING,
        None,
        f"the targets disagree: {difference.sentence}",
        {"element": list(difference.element), "values": difference.values, "rule": difference.rule},
        None,
        "Write the kernel so that no target-dependent rule decides, or keep it for one target.",
    )
