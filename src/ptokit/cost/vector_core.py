"""a2a3: one scalar walk; rows go by DMA, elements one by one (SEMANTICS 3.1)."""

from __future__ import annotations

from dataclasses import dataclass

from ptokit.access.plan import Plan
from ptokit.cost import cycles
from ptokit.cost.parameters import Parameters
from ptokit.cost.parts import Part
from ptokit.policies import GatherOOB, ScatterAtomicOp


@dataclass(frozen=True)
class Handshake:
    """The flags that an instruction sets and waits for itself."""

    before: tuple[str, ...]
    after: tuple[str, ...]


ELEMENTS = Handshake(("V->S", "MTE3->S", "MTE2->S"), ("S->V", "S->MTE2", "S->MTE3"))

HANDSHAKES = {
    ("mscatter", "row"): Handshake(("V->S", "MTE2->S", "S->MTE3"), ("MTE3->V", "MTE3->MTE2")),
    ("mscatter", "elem"): ELEMENTS,
    ("mgather", "row"): Handshake(("V->S", "MTE3->S"), ("S->MTE2", "MTE2->V", "MTE2->MTE3", "S->V", "S->MTE3")),
    ("mgather", "elem"): ELEMENTS,
}

AFTER_ADD = ("MTE3->S", "S->V", "S->MTE2")
"""What a Row Add has besides, when its rows are out."""


@dataclass(frozen=True)
class Rows:
    """The transfers of a Row call: `groups` of them, each of `depth` that need not wait for one another."""

    lanes: int
    live: int
    batches: int  # NZ: outer batches, a transfer each
    bursts: int
    burst_bytes: int
    waits: bool  # with None a scatter waits for each row before it goes on

    @classmethod
    def of(cls, plan: Plan) -> Rows:
        """From the runs of a plan."""
        call = plan.call
        batches, bursts = (call.table.shape[0], call.table.shape[1]) if call.is_nz else (1, 1)
        return cls(
            lanes=len(plan.raw),
            live=int(plan.lane_live.sum()),
            batches=batches,
            bursts=bursts,
            burst_bytes=plan.runs.length * call.tile.dtype.itemsize,
            waits=call.is_scatter and call.atomic is ScatterAtomicOp.None_,
        )

    @property
    def transfers(self) -> int:
        """DMA commands."""
        return self.live * self.batches

    @property
    def groups(self) -> int:
        """How often the queue runs dry."""
        return self.live if self.waits else min(self.live, 1)


def price(plan: Plan, parameters: Parameters) -> list[Part]:
    """The parts of one call."""
    call = plan.call
    hands = HANDSHAKES[call.op, "row" if plan.runs_are_rows else "elem"]
    body = rows(plan, parameters) if plan.runs_are_rows else [element_walk(plan, parameters)]
    return [
        flags("flags before", hands.before, parameters),
        *body,
        flags("flags after", hands.after, parameters),
    ]


def flags(name: str, pairs: tuple[str, ...], parameters: Parameters) -> Part:
    """Handshakes in a row, each with nothing left to wait for."""
    return Part("S", name, len(pairs) * cycles.flag(parameters), {"pairs": list(pairs)})


def rows(plan: Plan, parameters: Parameters) -> list[Part]:
    """Row: the scalar pipe walks the rows and sends a transfer for each; atomic mode on and off for Add."""
    work = Rows.of(plan)
    parts = _zero_fill(plan, parameters) + _walk_and_transfers(plan, work, parameters)
    if work.waits and work.live:
        # Two stores of one row may overlap, of two rows never: the last one has to win.
        parts.append(Part("S", "wait after each row", work.live * cycles.flag(parameters), {"waits": work.live}))
    if plan.call.is_scatter and not work.waits:
        switch = parameters.dma.atomic_mode_cycles
        ends = [flags("flags after the sum", AFTER_ADD, parameters), Part("S", "atomic mode off", switch)]
        return [Part("S", "atomic mode on", switch), *parts, *ends]
    return parts


def _walk_and_transfers(plan: Plan, work: Rows, parameters: Parameters) -> list[Part]:
    scalar = parameters.scalar
    each = scalar.walk_cycles + scalar.ub_cycles + policy(plan, parameters)
    walk = work.lanes * each + work.transfers * cycles.issue(parameters)
    facts = {"rows": work.lanes, "dropped": work.lanes - work.live, "transfers": work.transfers}
    if not work.transfers:
        return [Part("S", "row walk", walk, facts)]
    direction, pipe = ("store", "MTE3") if plan.call.is_scatter else ("load", "MTE2")
    whole = cycles.transfer(parameters, direction, work.bursts, work.burst_bytes)
    start = cycles.startup(parameters, direction)
    paces = {
        "issue": walk / work.transfers,
        "bytes": whole - start,
        "outstanding": whole / parameters.dma.outstanding,
    }
    bound = max(paces, key=lambda name: paces[name])
    behind = work.transfers - work.groups
    busy = work.groups * whole + behind * paces[bound]
    moved = {
        "transfers": work.transfers,
        "bursts": work.transfers * work.bursts,
        "bytes": work.transfers * work.bursts * work.burst_bytes,
        "cycles_each": whole,
        "startup_each": start,
        "bound": "wait" if work.waits and work.batches == 1 else bound,
    }
    # What is sent while an earlier transfer is under way costs no time of its own.
    hidden = walk * behind / work.transfers
    return [Part("S", "row walk", walk, facts, hidden), Part(pipe, "row transfers", busy, moved)]


def _zero_fill(plan: Plan, parameters: Parameters) -> list[Part]:
    """Zero in Row mode: ND fills the dropped rows on the scalar pipe, NZ the whole tile once."""
    call = plan.call
    if call.oob is not GatherOOB.Zero:
        return []
    dropped = int((~plan.lane_live).sum())
    elements = call.tile.rows * call.tile.cols if call.is_nz else dropped * call.tile.valid_cols
    return [Part("S", "zero fill", cycles.scalar(parameters, elements), {"elements": elements})] if elements else []


def element_walk(plan: Plan, parameters: Parameters) -> Part:
    """Elem: index, policy, and for every live lane one value from here to there; Add reads, adds, writes."""
    call, scalar = plan.call, parameters.scalar
    lanes, live = len(plan.raw), int(plan.lane_live.sum())
    split = scalar.split_cycles if call.is_nz else 0.0
    each = scalar.walk_cycles + scalar.ub_cycles + policy(plan, parameters) + split
    gm = scalar.gm_store_cycles if call.is_scatter else scalar.gm_load_cycles
    sums = call.atomic is not ScatterAtomicOp.None_
    value = scalar.ub_cycles + gm + (scalar.gm_load_cycles + scalar.add_cycles if sums else 0.0)
    zeros = lanes - live if call.oob is GatherOOB.Zero else 0
    facts = {
        "lanes": lanes,
        "dropped": lanes - live,
        "cycles_each": each + value,
        "gm_loads": live if sums or not call.is_scatter else 0,
        "gm_stores": live if call.is_scatter else 0,
    }
    return Part("S", "element walk", lanes * each + live * value + cycles.scalar(parameters, zeros), facts)


def policy(plan: Plan, parameters: Parameters) -> float:
    """A branch or a remap per index; Undefined has none."""
    return 0.0 if plan.call.is_undefined else parameters.scalar.policy_cycles
