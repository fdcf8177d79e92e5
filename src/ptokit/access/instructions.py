"""The front door: MSCATTER and MGATHER on one target, and the same call judged without executing it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptokit.access import commit
from ptokit.access.call import Access
from ptokit.access.cells import Cells, group, performed
from ptokit.access.collide import Collisions, collide
from ptokit.access.conflicts import conflict_findings, determinism
from ptokit.access.indices import address_of_slot, index_findings
from ptokit.access.numerics import Arithmetic, not_modelled, numeric_findings
from ptokit.access.outcomes import After, Outcomes
from ptokit.access.plan import Machine, Plan, make_plan
from ptokit.access.report import Report
from ptokit.access.rules import judge
from ptokit.access.sums import quiet
from ptokit.errors import (
    IllegalInstruction,
    PtoTypeError,
    PtoValueError,
    a_kind,
    listed,
    nearest,
    no_such_keyword,
    well_called,
)
from ptokit.findings import Finding, Severity, in_order
from ptokit.policies import Coalesce, GatherOOB, ScatterAtomicOp, ScatterConflict, ScatterOOB, Schedule, read
from ptokit.targets import machine, named
from ptokit.tensors import GlobalTensor, Tile

PolicyName = str | Coalesce | ScatterAtomicOp | ScatterOOB | GatherOOB | ScatterConflict | Schedule
TARGETS = ("cpu", "a2a3", "a5")
KEYWORDS = {
    "mscatter": ("coalesce", "atomic", "oob", "conflict", "schedule", "seed"),
    "mgather": ("coalesce", "oob"),
}
"""What an instruction is told beside its operands and its target; a check needs no schedule and no seed."""


@well_called
@quiet
def mscatter(
    table: GlobalTensor,
    src: Tile,
    idx: Tile,
    *,
    coalesce: PolicyName = "row",
    atomic: PolicyName = "none",
    oob: PolicyName = "undefined",
    conflict: PolicyName | None = None,
    target: str = "a5",
    schedule: PolicyName = "program",
    seed: int = 0,
) -> Report:
    """Run MSCATTER on one target: `table[idx] = src` (or `+=`, max, min), in place.

    `conflict` is Last where it is not given. `schedule="program"` is the sequential result, `"random"` executes one
    legal outcome, the same for the same `seed`. An illegal call raises `IllegalInstruction` and writes nothing.

    >>> import ptokit as pto
    >>> src, idx = pto.Tile("int32", 2, 8), pto.Tile("int32", 1, 8, valid=(1, 2))
    >>> src.store(np.arange(16).reshape(2, 8))
    >>> idx.store([[2, 0]])
    >>> rows = np.zeros((3, 8), np.int32)
    >>> rep = pto.mscatter(pto.GlobalTensor(rows, "int32", (1, 1, 1, 3, 8)), src, idx, oob="skip", target="a5")
    >>> rows[:, 0].tolist(), rep.deterministic
    ([8, 0, 0], True)
    """
    call = scatter_call(table, src, idx, coalesce, atomic, oob, conflict)
    where = machine(target)
    by_chance = read(Schedule, schedule, "schedule") is Schedule.Random
    seed = _seed(seed)
    findings = _legal_or_raise(call, where)
    _writable(call.table.memory, f"the buffer of the table {call.table!r}")
    _apart(call.table, call.tile, "the source tile")
    _apart(call.table, call.idx, "the index tile")
    return perform(call, where, findings, seed if by_chance else None)


@well_called
@quiet
def mgather(
    dst: Tile,
    table: GlobalTensor,
    idx: Tile,
    *,
    coalesce: PolicyName = "row",
    oob: PolicyName = "undefined",
    target: str = "a5",
) -> Report:
    """Run MGATHER on one target: `dst = table[idx]`, in place.

    >>> import ptokit as pto
    >>> dst, idx = pto.Tile("int32", 2, 8), pto.Tile("int32", 1, 8, valid=(1, 2))
    >>> idx.store([[2, 9]])
    >>> rows = np.arange(24, dtype=np.int32)
    >>> rep = pto.mgather(dst, pto.GlobalTensor(rows, "int32", (1, 1, 1, 3, 8)), idx, oob="zero", target="a2a3")
    >>> dst.load()[:, 0].tolist(), [f.id for f in rep.findings]
    ([16, 0], ['PTO-I003'])
    """
    call = gather_call(dst, table, idx, coalesce, oob)
    where = machine(target)
    findings = _legal_or_raise(call, where)
    _writable(call.tile.storage, f"the memory of the destination {call.tile!r}")
    _apart(call.table, call.tile, "the destination tile")
    _apart(call.table, call.idx, "the index tile")
    if np.may_share_memory(call.tile.storage, call.idx.storage):
        raise PtoValueError(
            f"the destination {call.tile!r} and the index tile {call.idx!r} share memory: use two tiles"
        )

    return perform(call, where, findings)


@quiet
def perform(call: Access, where: Machine, told: Sequence[Finding] = (), seed: int | None = None) -> Report:
    """Execute a call that the target accepts; with a seed, a scatter takes one legal order by chance.

    `told` is what legality had to say of the call: it stands in the report with the rest.
    """
    return _scatter(call, where, told, seed) if call.is_scatter else _gather(call, where, told)


def _scatter(call: Access, where: Machine, told: Sequence[Finding], seed: int | None) -> Report:
    plan = make_plan(call, where)
    cells, found, values, judged = _judged(plan, where)
    parts = [cells] if seed is None else commit.interleaved(cells, seed)
    for part in parts:
        commit.scatter(part, values if part is cells else commit.source_bits(part.plan))

    outcomes = _outcomes(found, cells, plan, where)
    fixed, reason = determinism(plan, found)
    return Report(
        op=call.op,
        target=where.name,
        findings=in_order([*told, *judged, *conflict_findings(found, outcomes)]),
        deterministic=fixed,
        deterministic_reason=reason,
        plan=plan,
        result=_as_given(call.table),
        legal=outcomes,
        moved=cells.plan,
    )


def _gather(call: Access, where: Machine, told: Sequence[Finding]) -> Report:
    plan, dst = make_plan(call, where), call.tile
    findings = [*told, *index_findings(plan, where, with_data=True)]
    moved = performed(plan)
    commit.gather(plan, moved)
    dst.mark_stored()
    fixed, reason = determinism(plan, None)
    return Report(
        op=call.op,
        target=where.name,
        findings=in_order(findings),
        deterministic=fixed,
        deterministic_reason=reason,
        plan=plan,
        result=dst.load() if dst.is_mapped else dst.storage,
        moved=moved,
    )


@well_called
def check(
    op: str,
    *operands: object,
    targets: str | Sequence[str] = TARGETS,
    **policies: Any,
) -> list[Finding]:
    """What each target would say to the call; nothing is written, and an illegal call does not raise.

    Findings are ordered by target, severity and id. Index, conflict and numeric findings are among them when the
    index tile holds data. What only this process cares for, read-only memory and operands that share memory, is no
    finding: the call itself refuses it.

    >>> import ptokit as pto
    >>> src, idx = pto.Tile("float32", 16, 64), pto.Tile("int32", 1, 16)
    >>> table = pto.GlobalTensor(np.zeros((9, 64), np.float32), "float32", shape=(1, 1, 1, 9, 64))
    >>> [(f.target, f.id) for f in pto.check("mscatter", table, src, idx, atomic="max", targets=("a2a3", "a5"))]
    [('a2a3', 'PTO-L024')]
    """
    call = read_call(op, operands, policies)
    chosen = named(targets)
    found: list[Finding] = []
    for where in chosen:
        found += judge_call(call, where)
    return in_order(found, [where.name for where in chosen])


@quiet
def judge_call(call: Access, where: Machine) -> list[Finding]:
    """Everything there is to say about a call on one target, without executing it."""
    findings = legality(call, where)
    if any(f.severity is Severity.ERROR for f in findings):
        return findings
    plan = make_plan(call, where)
    if not call.idx.holds_data:
        return findings + index_findings(plan, where, with_data=False)
    if not call.is_scatter:
        return findings + index_findings(plan, where, with_data=True)
    cells, found, _, told = _judged(plan, where)
    return findings + told + conflict_findings(found, _outcomes(found, cells, plan, where))


def read_call(op: object, operands: Sequence[object], policies: dict[str, Any]) -> Access:
    """An instruction by name, its operands in its own order, and its policies."""
    makers = {"mscatter": scatter_call, "mgather": gather_call}
    if not isinstance(op, str) or op.lower() not in makers:
        hint = nearest(op, makers) if isinstance(op, str) else ""
        raise PtoValueError(f"{op!r} is not an instruction.{hint} Known: {listed(makers)}")
    known = KEYWORDS[op.lower()]
    unknown = [name for name in policies if name not in known]
    if unknown and unknown[0] == "target":
        raise PtoTypeError("several targets are asked at once: targets='a5' or targets=('a2a3', 'a5')")
    if unknown:
        raise no_such_keyword(op.lower(), unknown[0], known)
    if len(operands) != 3:
        order = "table, src, idx" if op.lower() == "mscatter" else "dst, table, idx"
        raise PtoTypeError(f"{op} takes {order}; {len(operands)} operands were given")
    read(Schedule, policies.get("schedule", "program"), "schedule")
    _seed(policies.get("seed", 0))
    defaults: dict[str, Any] = {"coalesce": "row", "atomic": "none", "oob": "undefined", "conflict": None}
    chosen = {name: policies.get(name, default) for name, default in defaults.items() if name in known}
    return makers[op.lower()](*operands, **chosen)  # type: ignore[operator,no-any-return]


def scatter_call(
    table: object,
    src: object,
    idx: object,
    coalesce: object,
    atomic: object,
    oob: object,
    conflict: object,
) -> Access:
    """A call of MSCATTER from what its caller wrote."""
    return Access(
        op="mscatter",
        tile=_tile(src, "src"),
        table=_tensor(table),
        idx=_tile(idx, "idx"),
        coalesce=read(Coalesce, coalesce, "coalesce"),
        atomic=read(ScatterAtomicOp, atomic, "atomic"),
        oob=read(ScatterOOB, oob, "oob"),
        conflict=ScatterConflict.Last if conflict is None else read(ScatterConflict, conflict, "conflict"),
        conflict_given=conflict is not None,
    )


def gather_call(dst: object, table: object, idx: object, coalesce: object, oob: object) -> Access:
    """A call of MGATHER from what its caller wrote."""
    return Access(
        op="mgather",
        tile=_tile(dst, "dst"),
        table=_tensor(table),
        idx=_tile(idx, "idx"),
        coalesce=read(Coalesce, coalesce, "coalesce"),
        oob=read(GatherOOB, oob, "oob"),
    )


def _tile(given: object, name: str) -> Tile:
    if isinstance(given, Tile):
        return given
    raise PtoTypeError(f"{name} is {a_kind(given)}; a Tile is wanted")


def _tensor(given: object) -> GlobalTensor:
    if isinstance(given, GlobalTensor):
        return given
    raise PtoTypeError(f"table is {a_kind(given)}; a GlobalTensor(array, dtype, shape) is wanted")


def _seed(seed: object) -> int:
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise PtoValueError(f"seed={seed!r}; a whole number from 0 on is wanted")
    return int(seed)


def legality(call: Access, where: Machine) -> list[Finding]:
    """What the rules have to say, and which policies the target does not model."""
    return judge(call, where.name, where.rules) + not_modelled(call, where)


def _legal_or_raise(call: Access, where: Machine) -> list[Finding]:
    """What the rules have to say; an error among it refuses the call."""
    findings = legality(call, where)
    if any(f.severity is Severity.ERROR for f in findings):
        raise IllegalInstruction(call.op, where.name, in_order(findings))
    return findings


def _writable(array: np.ndarray[Any, Any], what: str) -> None:
    if not array.flags.writeable:
        raise PtoValueError(f"{what} is read-only: pass a writable array (a copy, or not bytes but a bytearray)")


def _apart(table: GlobalTensor, tile: Tile, what: str) -> None:
    if np.may_share_memory(table.memory, tile.storage):
        raise PtoValueError(
            f"the table {table!r} and {what} {tile!r} share memory: a tile lives on chip, give it data of its own"
        )


def _judged(plan: Plan, where: Machine) -> tuple[Cells, Collisions, np.ndarray[Any, Any], list[Finding]]:
    """The cells of a scatter, its collisions, the source's bits, and the index and numeric findings."""
    findings = index_findings(plan, where, with_data=True)
    cells = group(performed(plan))
    values = commit.source_bits(cells.plan)
    found = collide(cells, values)
    return cells, found, values, findings + numeric_findings(Arithmetic(cells, values), where)


def _outcomes(found: Collisions, cells: Cells, plan: Plan, where: Machine) -> Outcomes:
    return Outcomes(found, After.of(cells), SlotMap(plan, where.name))


@dataclass(frozen=True)
class SlotMap:
    """Where a plan's target puts (slot, column); it knows the target by name, so that it can be pickled."""

    plan: Plan
    target: str

    def __call__(self, slot: int, column: int) -> int:
        """The element of the owned memory."""
        return address_of_slot(self.plan, machine(self.target), slot, column)


def _as_given(table: GlobalTensor) -> np.ndarray[Any, Any]:
    """The table's whole buffer in the shape in which the caller gave it."""
    return table.buffer if isinstance(table.buffer, np.ndarray) else table.memory
