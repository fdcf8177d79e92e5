"""What there is to say about the indices of a plan: out of bounds, negative, past 2^32, off the strides.

One finding per kind, with a count and the first few lanes. A check is a row of `SHAPE_CHECKS` (it needs
no index data) or of `DATA_CHECKS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ptokit.access.plan import U32, Lanes, Machine, Mask, Plan
from ptokit.errors import PtoIndexError
from ptokit.findings import Finding, Severity
from ptokit.policies import Coalesce, GatherOOB, ScatterOOB, word

FEW = 4
"""Lanes that a finding tells in full."""

Check = Callable[[Plan, Machine], "Finding | None"]

CLAMPS = (ScatterOOB.Clamp, GatherOOB.Clamp)
WRAPS = (ScatterOOB.Wrap, GatherOOB.Wrap)


def index_findings(plan: Plan, machine: Machine, *, with_data: bool) -> list[Finding]:
    """Everything that the index checks have to say about a plan."""
    checks = (*SHAPE_CHECKS, *DATA_CHECKS) if with_data else SHAPE_CHECKS
    return [told for told in (check(plan, machine) for check in checks) if told is not None]


# Facts


def lane_facts(plan: Plan, machine: Machine, lane: int) -> dict[str, Any]:
    """One lane: what its index says, and what each policy would make of it."""
    written, taken = int(plan.raw[lane]), int(plan.taken[lane])
    checked = not plan.call.is_undefined or machine.scans_slots(plan.call)
    capacity = plan.capacity.counted if checked else plan.capacity.true
    return {
        "lane": _lane(plan, lane),
        "index": written,
        "taken": taken,
        "capacity": capacity,
        # Slots past the last one, or (negative) before the first.
        "distance": max(taken - capacity + 1, 0) if taken >= 0 else taken,
        **_under_each_policy(plan, machine, taken),
    }


def _under_each_policy(plan: Plan, machine: Machine, taken: int) -> dict[str, Any]:
    place = address_of_slot(plan, machine, taken)
    undefined = place if plan.memory_size > place >= 0 else f"{place} (outside the buffer)"
    if not machine.has_policies:
        # The policies are ignored: whatever is asked for, the raw index is used.
        return dict.fromkeys(("undefined", "skip", "clamp", "wrap", "zero"), undefined)
    counted = plan.capacity.counted
    out = taken >= counted
    return {
        "undefined": "dropped" if machine.scans_slots(plan.call) and out else undefined,
        "skip": "dropped" if out else taken,
        "clamp": (counted - 1) % U32 if out else taken,
        "wrap": taken % counted if counted else "divides by zero",
        "zero": "zero" if out else taken,
    }


def address_of_slot(plan: Plan, machine: Machine, slot: int, column: int = 0) -> int:
    """Where this plan puts (slot, column), counted in the owned memory."""
    call = plan.call
    if abs(slot) >= U32:
        raise PtoIndexError(f"slot {slot}: no 32-bit index reaches it")
    zero, slots = np.zeros(1, np.int64), np.array([slot], np.int64)
    if machine.walks_rows(call):
        assert machine.row_runs is not None
        runs = machine.row_runs(call, slots)
        run, inside = divmod(column, runs.length)
        if not 0 <= run < len(runs.dst):
            raise PtoIndexError(f"column {column} is not one of the {len(runs.dst) * runs.length} that a row moves")
        offset = int(runs.dst[run]) + inside
    elif column:
        raise PtoIndexError(f"column {column}: an Elem slot is one element, its column is 0")
    else:
        offset = int(machine.elem_runs(call, zero, zero, slots).dst[0])
    return offset + call.table.base


def _lane(plan: Plan, lane: int) -> list[int]:
    if plan.runs_are_rows:
        return [lane, 0]
    return [int(plan.runs.row[lane]), int(plan.runs.col[lane])]


def _told(
    plan: Plan,
    machine: Machine,
    id_: str,
    severity: Severity,
    lanes: Lanes,
    message: str,
    fix: str,
    more: dict[str, Any] | None = None,
) -> Finding | None:
    """A finding about these lanes, or nothing where there are none."""
    if not len(lanes):
        return None
    examples = [lane_facts(plan, machine, int(lane)) for lane in lanes[:FEW]]
    facts = {**examples[0], "count": len(lanes), "examples": examples, **(more or {})}
    first = examples[0]
    text = message.format(
        lanes=_counted(len(lanes), "lane"),
        lane=tuple(first["lane"]),
        unit="row" if plan.runs_are_rows else "element",
        verb="writes" if plan.call.is_scatter else "reads",
        **{k: first[k] for k in ("index", "taken", "capacity", "undefined", "clamp", "wrap")},
    )
    return Finding(id_, severity, plan.target, text, facts, None, fix)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _unchecked(plan: Plan) -> Mask:
    """Per lane: out of bounds, and no policy has made a slot of the table of it."""
    return plan.lane_out & plan.call.is_undefined


def _lanes_of_runs(plan: Plan, runs: Lanes) -> Lanes:
    return np.unique(plan.lane_of_run[runs])


# Checks that need index data


def performed_out_of_bounds(plan: Plan, machine: Machine) -> Finding | None:
    """An index past the capacity whose access is performed, in memory that the caller owns."""
    if not plan.call.is_undefined:
        return None
    out = plan.lane_out[plan.lane_of_run] & plan.live
    first = plan.address
    touches = (first < plan.memory_size) & (first + plan.runs.length > 0)
    runs = np.flatnonzero(out & touches)
    lanes = _lanes_of_runs(plan, runs)
    return _told(
        plan,
        machine,
        "PTO-I001",
        Severity.ERROR,
        lanes,
        "{lanes} out of bounds: the index {index} at {lane}, taken as {taken}, is not one of the {capacity} "
        f"{{unit}}s and {{verb}} element {{undefined}} of the buffer, {_whose(plan, runs)}"
        f"{_wrapped(plan, machine, runs)}.",
        _keep_inside(machine),
        {"address": int(first[runs[0]])} if len(runs) else None,
    )


def _wrapped(plan: Plan, machine: Machine, runs: Lanes) -> str:
    """Why the first of these runs lands at the front again, where it does."""
    if not (machine.row_address_in_32_bits and plan.runs_are_rows and len(runs)):
        return ""
    product = int(plan.slot[plan.lane_of_run[runs[0]]]) * plan.call.tile.valid_cols
    return f" (a row address has 32 bits, and {product} starts at the front again)" if product >= U32 else ""


def _keep_inside(machine: Machine) -> str:
    """What keeps an index in bounds on this target."""
    if machine.has_policies:
        return "Check the indices before the call, or ask for a bounds policy."
    return f"Check or clamp the indices before the call: {machine.name} knows no bounds policy."


def _whose(plan: Plan, runs: Lanes) -> str:
    """Whether the first of these runs lands in the table after all."""
    if not len(runs):
        return ""
    low, high = plan.call.table.footprint
    inside = low <= int(plan.runs.dst[runs[0]]) < high
    return "another place of the same table" if inside else "which is not the table's"


def not_owned(plan: Plan, machine: Machine) -> Finding | None:
    """An access outside the caller's buffer: not performed here, memory corruption on the board."""
    last = plan.address + plan.runs.length
    outside = plan.live & ((plan.address < 0) | (last > plan.memory_size))
    lanes = _lanes_of_runs(plan, np.flatnonzero(outside))
    if not len(lanes):
        return None
    run = int(np.flatnonzero(outside)[0])
    first = int(plan.address[run])
    done = max(min(first + plan.runs.length, plan.memory_size) - max(first, 0), 0)
    address = first if done == 0 or first < 0 else plan.memory_size
    moved = f"here {done} of its {plan.runs.length} elements are moved" if done else "here nothing is moved"
    wide = not plan.lane_out[plan.lane_of_run[run]]
    return _told(
        plan,
        machine,
        "PTO-I002",
        Severity.ERROR,
        lanes,
        "{lanes} outside the buffer: the index {index} at {lane}, taken as {taken}, "
        f"{{verb}} element {address}, and the buffer has {plan.memory_size}; that is memory of somebody else "
        f"({moved}).",
        "Narrow the tile to the table's row." if wide else _keep_inside(machine),
        {"address": address, "buffer": plan.memory_size},
    )


def handled_out_of_bounds(plan: Plan, machine: Machine) -> Finding | None:
    """Out-of-bounds lanes that the policy took care of."""
    if plan.call.is_undefined:
        return None
    policy = word(plan.call.oob)
    wrapped = "wrapped to {wrap} by wrap"
    if not plan.capacity.counted:
        wrapped = "not executed, since wrap divides by zero"
    did = {
        "skip": "dropped by skip",
        "zero": "filled with zero by zero",
        "clamp": "moved to {clamp} by clamp",
        "wrap": wrapped,
    }[policy]
    if policy == "clamp" and machine.scans_slots(plan.call) and not plan.live.all():
        did += " (where the scan of Last finds no slot)"
    return _told(
        plan,
        machine,
        "PTO-I003",
        Severity.NOTE,
        np.flatnonzero(plan.lane_out),
        "{lanes} out of bounds: the index {index} at {lane}, taken as {taken}, is not one of the {capacity} "
        f"{{unit}}s and was {did}.",
        "Nothing, if these lanes were meant to be caught."
        if plan.capacity.counted == plan.capacity.true
        else "Split the table first: its slots are counted modulo 2^32 (PTO-I005).",
    )


def negative_remapped(plan: Plan, machine: Machine) -> Finding | None:
    """A negative index under Clamp or Wrap: it is large and unsigned, not "from the end"."""
    if plan.call.oob not in (*CLAMPS, *WRAPS) or plan.raw.dtype.kind != "i":
        return None
    lanes = np.flatnonzero(plan.raw < 0)
    if not len(lanes) or not plan.capacity.counted:
        return None
    written, counted = int(plan.raw[lanes[0]]), plan.capacity.counted
    python = written + counted if -counted <= written else None
    came = "{clamp}" if plan.call.oob in CLAMPS else "{wrap}"
    expected = f"Python's meaning would be {python}" if python is not None else "Python would refuse it"
    return _told(
        plan,
        machine,
        "PTO-I004",
        Severity.WARNING,
        lanes,
        "{lanes} with a negative index: {index} at {lane} is taken as {taken}, and "
        f"{word(plan.call.oob)} makes slot {came} of it; {expected}.",
        "Add the capacity to negative indices before the call, or drop them with skip (gather: zero).",
        {"python": python},
    )


def row_address_overflow(plan: Plan, machine: Machine) -> Finding | None:
    """a5 makes `slot * ValidCol` in 32 bits: from 2^32 elements on it lands at the front again."""
    if not (machine.row_address_in_32_bits and plan.runs_are_rows):
        return None
    width = plan.runs.length
    lanes = np.flatnonzero(plan.lane_live & ~_unchecked(plan) & (plan.slot * width >= U32))
    if not len(lanes):
        return None
    slot = int(plan.slot[lanes[0]])
    return _told(
        plan,
        machine,
        "PTO-I006",
        Severity.ERROR,
        lanes,
        f"{{lanes}} past what a 32-bit row address holds: slot {slot} of width {width} is element {slot * width}, "
        f"but {{verb}} element {slot * width % U32} of the table.",
        "Split the table so that each part has fewer than 2^32 elements.",
        {"slot": slot, "address": slot * width % U32, "meant": slot * width},
    )


def run_past_table(plan: Plan, machine: Machine) -> Finding | None:
    """A run that starts in the table and goes on behind its last element, in the caller's buffer."""
    low, high = (edge + plan.call.table.base for edge in plan.call.table.footprint)
    first, last = plan.address, plan.address + plan.runs.length - 1
    inside = plan.live & ~_unchecked(plan)[plan.lane_of_run]
    past = (np.minimum(last, plan.memory_size - 1) >= high) | (np.maximum(first, 0) < low)
    runs = np.flatnonzero(inside & past & (first < plan.memory_size) & (last >= 0))
    if not len(runs):
        return None
    slot = int(plan.slot[plan.lane_of_run[runs[0]]])
    return _told(
        plan,
        machine,
        "PTO-I009",
        Severity.ERROR,
        _lanes_of_runs(plan, runs),
        f"{{lanes}} past the end of the table: slot {slot} {{verb}} {_stretch(first[runs[0]], last[runs[0]])} "
        f"of the buffer, and the table ends at {high - 1}.",
        "Narrow the tile to the table's row." if plan.runs_are_rows else "Give the table its real strides, or pack it.",
        {"slot": slot, "address": int(first[runs[0]]), "end": high},
    )


def _stretch(first: np.int64, last: np.int64) -> str:
    return f"element {first}" if first == last else f"elements {first} to {last}"


def dropped_by_last(plan: Plan, machine: Machine) -> Finding | None:
    """The a5 Last kernel scans real slots: what Undefined would have written out there is dropped."""
    if not (machine.scans_slots(plan.call) and plan.call.is_undefined):
        return None
    return _told(
        plan,
        machine,
        "PTO-I011",
        Severity.WARNING,
        np.flatnonzero(~plan.lane_live),
        "{lanes} dropped: the index {index} at {lane}, taken as {taken}, is not one of the {capacity} {unit}s; "
        "Conflict Last only visits real slots, every other kernel would write out there.",
        "Ask for oob='skip': the same result here, and every kernel of the boards does it.",
    )


# Checks that need no index data


def past_32_bits(plan: Plan, machine: Machine) -> Finding | None:
    """A capacity that the target counts modulo 2^32."""
    true, counted = plan.capacity.true, plan.capacity.counted
    if true == counted:
        return _past_32_bit_rows(plan, machine)
    unchecked = "checks nothing" if not machine.scans_slots(plan.call) else "drops everything from there on (Last)"
    means = {
        "skip": "drops everything from there on",
        "zero": "zeroes everything from there on",
        "clamp": f"takes slot {(counted - 1) % U32} for them",
        "wrap": "divides by zero" if counted == 0 else f"wraps at {counted}",
        "undefined": unchecked,
    }[word(plan.call.oob)]
    unit = "rows" if plan.runs_are_rows else "elements"
    return Finding(
        "PTO-I005",
        Severity.ERROR,
        plan.target,
        f"the table has {true} {unit}; {plan.target} counts them in 32 bits as {counted}, and "
        f"{word(plan.call.oob)} {means}.",
        {"capacity": true, "counted": counted},
        None,
        f"Split the table so that each part has fewer than 2^32 {unit}.",
    )


def _past_32_bit_rows(plan: Plan, machine: Machine) -> Finding | None:
    """Fewer than 2^32 rows, but more elements than the row address can tell apart."""
    rows, width = plan.capacity.true, plan.runs.length
    if not (machine.row_address_in_32_bits and plan.runs_are_rows and rows * width > U32):
        return None
    return Finding(
        "PTO-I005",
        Severity.ERROR,
        plan.target,
        f"the table has {rows} rows of {width}, {rows * width} elements; {plan.target} makes row addresses in 32 bits, "
        f"and from row {-(-U32 // width)} on they start at the front again.",
        {"capacity": rows, "elements": rows * width, "first_row": -(-U32 // width)},
        None,
        "Split the table so that each part has fewer than 2^32 elements.",
    )


def batches_not_counted(plan: Plan, machine: Machine) -> Finding | None:
    """A table of several batches of which the target's Row path counts one: the other rows are out of bounds."""
    table = plan.call.table
    rows = math.prod(table.shape[:4])
    if not plan.runs_are_rows or plan.call.is_nz or plan.capacity.true == rows:
        return None
    return Finding(
        "PTO-I015",
        Severity.WARNING,
        plan.target,
        f"the table {table.shape} has {rows} rows in batches, and {plan.target} Row counts S3 = {plan.capacity.true}: "
        f"an index from {plan.capacity.true} on is out of bounds there.",
        {"rows": rows, "capacity": plan.capacity.true},
        None,
        f"Fold the batches into one: shape (1, 1, 1, {rows}, {table.shape[4]}).",
    )


def strides_ignored(plan: Plan, machine: Machine) -> Finding | None:
    """The table has gaps that the address arithmetic of this call does not know."""
    miss = _first_off_stride(plan, machine)
    if miss is None:
        return None
    slot, column, logical, hit = miss
    table = plan.call.table
    where = f"slot {slot}" + (f", column {column}" if column else "")
    how = f"slot * {table.stride[3]}, without a look at the others" if plan.runs_are_rows else "linearly"
    if column:
        how = "in bursts of neighbouring elements"
    return Finding(
        "PTO-I007",
        Severity.WARNING,
        plan.target,
        f"the table {table.shape} has strides {table.stride}, and {plan.target} "
        f"{word(Coalesce.Row if plan.runs_are_rows else Coalesce.Elem)} addresses it {how}: {where} is at offset "
        f"{logical}, but offset {hit} is hit.",
        {"slot": slot, "column": column, "offset": logical, "hit": hit, "stride": list(table.stride)},
        None,
        "Pack the table.",
    )


def _first_off_stride(plan: Plan, machine: Machine) -> tuple[int, int, int, int] | None:
    """(slot, column, offset by the strides, offset that is hit) of the first disagreement."""
    call, table = plan.call, plan.call.table
    if call.is_nz and not plan.runs_are_rows and machine.row_runs is not None:
        return None  # the element path of fractals honours every stride
    if call.is_nz and plan.runs_are_rows:
        step = table.stride[4]
        return None if step == 1 else (0, 1, step, 1)
    inner = 1 if plan.runs_are_rows else 0
    if inner and min(table.shape[4], plan.runs.length) > 1 and table.stride[4] != 1:
        return (0, 1, table.stride[4], 1)
    flat = 1
    for dim in range(4 - inner, -1, -1):
        if table.shape[dim] > 1 and flat < min(plan.capacity.true, U32):
            logical = table.stride[dim]
            hit = address_of_slot(plan, machine, flat) - table.base
            if logical != hit:
                return (flat, 0, logical, hit)
        flat *= table.shape[dim]
    return None


def run_past_row(plan: Plan, machine: Machine) -> Finding | None:
    """ValidCol is wider than a table row: a burst goes on behind it."""
    table, width = plan.call.table, plan.runs.length
    if not plan.runs_are_rows or plan.call.is_nz or width <= table.shape[4]:
        return None
    after = address_of_slot(plan, machine, 0) + table.shape[4]
    verb = "writes" if plan.call.is_scatter else "reads"
    return Finding(
        "PTO-I008",
        Severity.WARNING,
        plan.target,
        f"the tile has {width} valid columns and a table row {table.shape[4]} elements: each burst {verb} "
        f"{width - table.shape[4]} elements behind its row (row 0: from element {after} of the buffer on).",
        {"valid_cols": width, "row_width": table.shape[4], "address": after, "stride": table.stride[3]},
        None,
        "Narrow the tile's valid columns to the table's row.",
    )


def padding_moved(plan: Plan, machine: Machine) -> Finding | None:
    """NZ Row moves every block column, whatever ValidCol says."""
    if not (plan.call.is_nz and plan.runs_are_rows):
        return None
    shape, valid = plan.call.table.shape, plan.call.tile.valid_cols
    columns = shape[0] * shape[1] * plan.call.table.dtype.c0
    if columns == valid:
        return None
    hit = address_of_slot(plan, machine, 0, min(valid, columns - 1))
    if valid > columns:
        told = f"columns {columns} to {valid - 1} of the tile are not moved at all"
    elif plan.call.is_scatter:
        told = f"the padding columns {valid} to {columns - 1} are written into the table too"
    else:
        told = f"the padding columns {valid} to {columns - 1} of the tile are overwritten too"
    return Finding(
        "PTO-I010",
        Severity.WARNING,
        plan.target,
        f"NZ Row moves the {columns} columns of a table row and ignores the tile's {valid} valid columns: {told} "
        f"(row 0, column {min(valid, columns - 1)}: element {hit} of the buffer).",
        {"columns": columns, "valid_cols": valid, "address": hit},
        None,
        "Make the valid columns those of the table, or fill the padding with what may be written.",
    )


def words_from_padding(plan: Plan, machine: Machine) -> Finding | None:
    """cpu reads `r*idx.Cols + c` of the index tile, valid or not."""
    idx = plan.call.idx
    if plan.obeys_policies:
        return None
    padding = plan.word_is_padding
    if not padding.any():
        return None
    lane = int(np.flatnonzero(padding)[0])
    count = int(np.count_nonzero(padding))
    return Finding(
        "PTO-I012",
        Severity.ERROR,
        plan.target,
        f"{_counted(count, 'index word')} from padding: element {tuple(_lane(plan, lane))} takes word "
        f"{int(plan.word_at[lane])} of an index tile of {idx.rows} x {idx.cols} {idx.layout.upper()} with valid "
        f"{idx.valid}; cpu has no Row path and takes word r*Cols + c for element (r, c).",
        {"lane": _lane(plan, lane), "word": int(plan.word_at[lane]), "count": count, "valid": list(idx.valid)},
        None,
        "Give every element its index in a row-major tile (Elem) on cpu, or run the kernel on a2a3 and a5 only.",
    )


def words_outside_tile(plan: Plan, machine: Machine) -> Finding | None:
    """cpu reads past the index tile: what lies there is anybody's guess."""
    lanes = np.flatnonzero(~plan.word_known)
    if not len(lanes):
        return None
    lane, idx = int(lanes[0]), plan.call.idx
    return Finding(
        "PTO-I013",
        Severity.ERROR,
        plan.target,
        f"{_counted(len(lanes), 'index word')} from outside the index tile: element {tuple(_lane(plan, lane))} takes "
        f"word {int(plan.word_at[lane])} of a tile of {idx.storage.size} words (here these elements are not moved).",
        {"lane": _lane(plan, lane), "word": int(plan.word_at[lane]), "count": len(lanes), "words": idx.storage.size},
        None,
        "Give every element its index (Elem) on cpu, or run Row kernels on a2a3 and a5 only.",
    )


def elements_outside_tile(plan: Plan, machine: Machine) -> Finding | None:
    """A tile whose layout puts valid elements behind its own buffer (cpu only warns of such tiles)."""
    outside = np.flatnonzero(plan.runs.src + (plan.runs.length - 1) * plan.runs.src_step >= plan.tile_size)
    if not len(outside):
        return None
    run = int(outside[0])
    return Finding(
        "PTO-I014",
        Severity.ERROR,
        plan.target,
        f"{_counted(len(outside), 'element')} outside the tile: {plan.lane(run)} lies at offset "
        f"{int(plan.runs.src[run])} of {plan.call.tile!r}, which has {plan.tile_size} elements (here not moved).",
        {"lane": list(plan.lane(run)), "offset": int(plan.runs.src[run]), "count": len(outside)},
        None,
        "Pad an NZ tile to whole fractals: Cols divisible by 32 bytes' worth of elements.",
    )


SHAPE_CHECKS: tuple[Check, ...] = (
    past_32_bits,
    batches_not_counted,
    strides_ignored,
    run_past_row,
    padding_moved,
    words_from_padding,
    words_outside_tile,
    elements_outside_tile,
)

DATA_CHECKS: tuple[Check, ...] = (
    performed_out_of_bounds,
    not_owned,
    handled_out_of_bounds,
    negative_remapped,
    row_address_overflow,
    run_past_table,
    dropped_by_last,
)
