"""a5: one SIMT launch; warps of 32 lanes, bursts of 128 bytes from the addresses of each warp step (SEMANTICS 3.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ptokit.access.plan import Lanes, Mask, Plan
from ptokit.cost.parameters import Parameters, Simt
from ptokit.cost.parts import Part, overlapped
from ptokit.cost.vector_core import element_walk, flags
from ptokit.policies import GatherOOB, ScatterAtomicOp
from ptokit.targets.a5 import LANES, MOST_WARPS, geometry

BURST_BYTES = 128
"""GM accesses of the lanes of one warp step that fall into the same aligned 128 bytes are one burst."""

NOBODY = -1
"""The place of a lane that accesses nothing."""


@dataclass(frozen=True)
class Steps:
    """What the warps of a launch do: all steps together, and those of the busiest warp."""

    warps: int
    total: int
    longest: int

    def part(self, name: str, slot_cycles: float, latency: float, **more: int) -> Part:
        """All warps share the issue slots; each has to wait for its own steps."""
        issue, own = self.total * slot_cycles, self.longest * latency
        facts = {
            "warps": self.warps,
            "steps": self.total,
            "longest_warp": self.longest,
            "bound": "issue" if issue >= own else "latency",
            **more,
        }
        return Part("V", name, max(issue, own), facts)


@dataclass(frozen=True)
class Kernel:
    """One launch: strands of work that go on at the same time, and the elements that cross between GM and UB."""

    warps: int
    elements: int
    strands: list[list[Part]]


def price(plan: Plan, parameters: Parameters) -> list[Part]:
    """The parts of one call."""
    if plan.call.is_static_scalar:
        return [
            flags("flags before", ("V->S",), parameters),
            element_walk(plan, parameters),
            flags("flags after", ("S->V",), parameters),
        ]
    simt = parameters.simt
    assert simt is not None
    kernel = _last if plan.scans_slots else _rows if plan.runs_are_rows else _elements
    work = kernel(plan, simt)
    launch = Part("V", "launch", simt.launch_cycles, {"warps": work.warps})
    return [launch, *overlapped(*work.strands, [_ub(plan, work.elements, simt)])]


def _rows(plan: Plan, simt: Simt) -> Kernel:
    """Row, not Last: a warp step is 32 columns of a row; of a dropped row, the look at its index."""
    grid, size = geometry(plan.call), plan.call.tile.dtype.itemsize
    per_row = grid.column_threads // LANES
    chunks = -(-plan.runs.length // LANES)
    works = plan.live | (plan.call.oob is GatherOOB.Zero)
    of_warp = np.where(works, -(-chunks // per_row), 1)
    steps = Steps(
        warps=grid.row_threads * per_row,
        total=int(np.where(works, chunks, per_row).sum()),
        longest=int(np.bincount(plan.runs.row % grid.row_threads, weights=of_warp).max(initial=0)),
    )
    address = plan.address[plan.live]
    moved = len(address) * plan.runs.length
    bursts = bursts_of_rows(address * size, plan.runs.length, size)
    strands = [[_steps(plan, steps, simt)], [_bursts(bursts, moved * size, simt)]]
    if _combines(plan):
        strands.append([_chain(address, simt)])
    return Kernel(steps.warps, moved, strands)


def _elements(plan: Plan, simt: Simt) -> Kernel:
    """Elem, not Last: a warp step is 32 consecutive flat lanes."""
    warps, size = geometry(plan.call).row_threads // LANES, plan.call.tile.dtype.itemsize
    total = -(-plan.count // LANES)
    steps = Steps(warps, total, longest=-(-total // warps))
    place = by_warp_step(plan.address * size, plan.live)
    moved = int(plan.live.sum())
    strands = [[_steps(plan, steps, simt)], [_bursts(distinct(place // BURST_BYTES), moved * size, simt)]]
    if _combines(plan):
        again = int((most_alike(place) - 1).clip(0).sum())
        inside = Part("V", "atomics on one address in a warp step", again * simt.conflict_cycles, {"replays": again})
        strands[1].append(inside)
        strands.append([_chain(plan.address[plan.live], simt)])
    return Kernel(warps, moved, strands)


def _last(plan: Plan, simt: Simt) -> Kernel:
    """Last: a thread a slot. It scans the indices from the end to its owner, then stores what that one brings."""
    owners, columns, size = Owners.of(plan), plan.runs.length, plan.call.tile.dtype.itemsize
    search = owners.scan_steps()
    scan = search.part(
        "reverse scan",
        simt.scan_cycles,
        simt.scan_latency_cycles,
        slots=owners.slots,
        indices=owners.indices,
        owned=owners.owned,
        comparisons=owners.comparisons,
    )
    group = np.unique(owners.group)
    busiest = int(np.bincount(group % MOST_WARPS).max(initial=0))
    stores = Steps(search.warps, len(group) * columns, busiest * columns)
    moved = owners.owned * columns
    bursts = owners.bursts(plan.address[owners.lane], columns, size)
    strands = [[scan, _steps(plan, stores, simt)], [_bursts(bursts, moved * size, simt)]]
    return Kernel(search.warps, moved, strands)


@dataclass(frozen=True)
class Owners:
    """The slots that some lane writes, ascending, and the last lane of each; slots without one are not listed."""

    slots: int
    indices: int
    slot: Lanes
    lane: Lanes

    @classmethod
    def of(cls, plan: Plan) -> Owners:
        """Who wins which slot."""
        live = np.flatnonzero(plan.lane_live)[::-1]
        slot, first = np.unique(plan.slot[live], return_index=True)
        return cls(plan.capacity.counted, len(plan.raw), slot, live[first])

    @property
    def owned(self) -> int:
        """Slots that have an owner."""
        return len(self.slot)

    @property
    def group(self) -> Lanes:
        """Per owned slot: the 32 slots that a warp looks after at one time."""
        return self.slot // LANES

    @property
    def scanned(self) -> Lanes:
        """Per owned slot: how many indices its thread has looked at when it meets the owner."""
        return self.indices - self.lane

    @property
    def comparisons(self) -> int:
        """Of all threads together: slots times indices, less what is not looked at any more."""
        return self.slots * self.indices - int((self.indices - self.scanned).sum())

    def scan_steps(self) -> Steps:
        """A warp goes on until the last of its 32 slots has met its owner: to the end, if one has none."""
        groups = -(-self.slots // LANES)
        warps = min(groups, MOST_WARPS)
        if not groups:
            return Steps(0, 0, 0)
        number, start, count = np.unique(self.group, return_index=True, return_counts=True)
        whole = count == np.minimum(LANES, self.slots - number * LANES)
        longest = np.maximum.reduceat(self.scanned, start) if len(start) else np.zeros(0, np.int64)
        spared = np.where(whole, self.indices - longest, 0)
        turns = groups // warps + (np.arange(warps) < groups % warps)
        of_warp = self.indices * turns - np.bincount(number % warps, weights=spared, minlength=warps)
        return Steps(warps, self.indices * groups - int(spared.sum()), int(of_warp.max()))

    def bursts(self, address: Lanes, columns: int, itemsize: int) -> int:
        """At each column the threads of a warp store to different slots: only neighbours share a burst."""
        place, group = address * itemsize, self.group
        alone = columns * self.owned
        near = np.flatnonzero((np.diff(place) < BURST_BYTES) & (np.diff(place) >= 0) & (np.diff(group) == 0))
        before, after = place[near], place[near + 1]
        shared = 0
        for offset in range(0, columns * itemsize if near.size else 0, itemsize):
            shared += int(((before + offset) // BURST_BYTES == (after + offset) // BURST_BYTES).sum())
        return alone - shared


def by_warp_step(place: Lanes, live: Mask) -> Lanes:
    """Flat lanes as warp steps of 32, a lane that accesses nothing as NOBODY.

    >>> by_warp_step(np.arange(33), np.ones(33, bool)).shape
    (2, 32)
    """
    steps = np.full(-(-len(place) // LANES) * LANES, NOBODY, np.int64)
    steps[: len(place)] = np.where(live, place, NOBODY)
    return steps.reshape(-1, LANES)


def distinct(keys: Lanes) -> int:
    """How many different keys each warp step has, all steps together.

    >>> distinct(np.array([[0, 1, 0, -1], [5, 5, 5, 5]]))
    3
    """
    ascending = np.sort(keys, axis=1)
    fresh = ascending >= 0
    fresh[:, 1:] &= ascending[:, 1:] != ascending[:, :-1]
    return int(fresh.sum())


def most_alike(places: Lanes) -> Lanes:
    """Per warp step: how many lanes share the place that most of them share.

    >>> most_alike(np.array([[7, 3, 7, 7], [-1, -1, -1, 4], [-1, -1, -1, -1]])).tolist()
    [3, 1, 0]
    """
    ascending = np.sort(places, axis=1)
    at = np.arange(places.shape[1])
    fresh = np.ones(places.shape, np.bool_)
    fresh[:, 1:] = ascending[:, 1:] != ascending[:, :-1]
    first = np.maximum.accumulate(np.where(fresh, at, 0), axis=1)
    return np.asarray(np.where(ascending >= 0, at - first + 1, 0).max(axis=1))


def bursts_of_rows(first_byte: Lanes, columns: int, itemsize: int) -> int:
    """Bursts of rows that are written 32 columns at a step.

    >>> bursts_of_rows(np.array([0, 4]), 32, 4)  # the second row lies across two lines of 128 bytes
    3
    """
    column = np.arange(0, columns, LANES)
    width = np.minimum(columns - column, LANES) * itemsize
    start = first_byte[:, None] + column * itemsize
    return int(((start + width - 1) // BURST_BYTES - start // BURST_BYTES + 1).sum())


def _steps(plan: Plan, steps: Steps, simt: Simt) -> Part:
    latency = simt.step_latency_cycles if plan.call.is_scatter else simt.load_latency_cycles
    return steps.part("warp steps", simt.step_cycles, latency)


def _bursts(bursts: int, wanted: int, simt: Simt) -> Part:
    """GM traffic in bursts, and how much of them was wanted."""
    facts = {"bursts": bursts, "bytes": wanted, "used": wanted / (bursts * BURST_BYTES or 1)}
    return Part("V", "bursts of 128 bytes", bursts * simt.transaction_cycles, facts)


def _chain(address: Lanes, simt: Simt) -> Part:
    """Atomics on one address follow one another, wherever they come from."""
    _, hits = np.unique(address, return_counts=True)
    most = int(hits.max(initial=0))
    return Part("V", "atomics on the hottest address", max(most - 1, 0) * simt.conflict_cycles, {"hits": most})


def _ub(plan: Plan, elements: int, simt: Simt) -> Part:
    """Values and index words to and from UB."""
    moved = elements * plan.call.tile.dtype.itemsize + len(plan.raw) * plan.call.idx.dtype.itemsize
    return Part("V", "UB reads and writes", moved / simt.ub_bytes_per_cycle, {"bytes": moved})


def _combines(plan: Plan) -> bool:
    """Stores that are atomic: Add, Max, Min."""
    return plan.call.atomic is not ScatterAtomicOp.None_
