"""An indexed access as a plan: who moves which elements from where to where, in what order.

A plan is arrays of runs. A run is `length` elements: a row of a Row call (one burst per block column
for NZ), one element of an Elem call. Runs stand in the order of the target's walk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ptokit.access.call import Access
from ptokit.access.rules import Rule
from ptokit.policies import GatherOOB, ScatterAtomicOp, ScatterOOB
from ptokit.tensors import GlobalTensor

Array = npt.NDArray[Any]
Lanes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

U32 = 1 << 32

FAR = 1 << 60
"""Farther than any memory reaches, and small enough to be added to."""


@dataclass(frozen=True)
class Capacity:
    """The bound that an index is held against: what is there, and what the target counts."""

    true: int
    counted: int

    @classmethod
    def modulo_32(cls, true: int) -> Capacity:
        """A product that the target takes modulo 2^32 (SEMANTICS 2.1)."""
        return cls(true, true % U32)


@dataclass(frozen=True)
class Runs:
    """Where the runs of a walk start, and how they go on. `row`, `col`: the lane of the first element."""

    row: Lanes
    col: Lanes
    src: Lanes  # element offset in the tile
    dst: Lanes  # element offset from the table's base
    length: int
    src_step: int = 1


@dataclass(frozen=True)
class Machine:
    """One target: what it takes, and what it makes of an index. Each target file fills one in."""

    name: str
    title: str
    elements: frozenset[str]
    atomics: Mapping[str, frozenset[str]]
    has_policies: bool
    has_default_conflict: bool
    widen: Callable[[Array], Lanes]
    row_capacity: Callable[[GlobalTensor], Capacity] | None
    elem_capacity: Callable[[GlobalTensor], Capacity]
    index_offsets: Callable[[Access, Array, Array], Lanes]
    row_runs: Callable[[Access, Lanes], Runs] | None
    elem_runs: Callable[[Access, Array, Array, Lanes], Runs]
    elem_walk: Callable[[Access], tuple[Lanes, Lanes]]
    scans_slots: Callable[[Access], bool]
    threads: Callable[[Access], Threads | None] | None
    row_address_in_32_bits: bool
    elem_sums_by_bit_trick: bool  # Elem Add of bfloat16 rounds without a look at NaN
    dma_atomics: bool  # Row atomics go through the DMA unit
    rules: tuple[Rule, ...]

    def effective(self, call: Access) -> Access:
        """The call as the target executes it: what it does not model is as if it had not been asked for."""
        if self.has_policies:
            return call
        nothing = ScatterOOB.Undefined if call.is_scatter else GatherOOB.Undefined
        return replace(call, atomic=ScatterAtomicOp.None_, oob=nothing)

    def walks_rows(self, call: Access) -> bool:
        """A Row call on a target that has a Row path."""
        return call.is_row and self.row_runs is not None

    def capacity(self, call: Access) -> Capacity:
        """What this call's indices are held against."""
        if call.is_row and self.row_capacity is not None:
            return self.row_capacity(call.table)
        return self.elem_capacity(call.table)


@dataclass(frozen=True)
class Threads:
    """Which SIMT thread and warp accesses element (row, column): the only order that a5 guarantees."""

    row_threads: int  # Row: warps that own rows; Elem: all threads
    column_threads: int  # Row: columns that one sweep of the warps covers; Elem: 1
    is_row: bool
    cols: int  # ValidCol, to flatten an Elem lane

    def of(self, row: Lanes, col: Lanes) -> Lanes:
        """Thread of the element; accesses of one thread happen in (row, column) order."""
        if self.is_row:
            return (row % self.row_threads) * self.column_threads + col % self.column_threads
        return (row * self.cols + col) % self.row_threads

    def step_of(self, row: Lanes, col: Lanes) -> Lanes:
        """Elem: at which step of its loop a thread reaches the element."""
        return (row * self.cols + col) // self.row_threads


@dataclass(frozen=True)
class Remap:
    """What became of the raw indices: `slot`, and which lanes still access something."""

    slot: Lanes
    live: Mask
    out: Mask  # out of bounds for this target's count


@dataclass(frozen=True)
class Plan:
    """The runs of one call on one target, in walk order, and what is known of each.

    `live` runs are performed where the memory is owned; the others were dropped by a policy, or
    by a kernel that never visits their slot.
    """

    target: str
    call: Access
    capacity: Capacity
    word_at: Lanes  # per lane: offset of its index word in the index tile
    word_known: Mask  # the word lies inside the index tile's buffer
    raw: Array  # per lane: the index as written
    taken: Lanes  # per lane: as the target takes it
    slot: Lanes  # per lane
    lane_out: Mask  # per lane: out of bounds
    lane_live: Mask  # per lane
    lane_of_run: Lanes
    runs: Runs
    threads: Threads | None
    memory_size: int
    tile_size: int
    obeys_policies: bool
    scans_slots: bool  # by slot: a thread visits a slot and takes its last lane
    runs_are_rows: bool  # the target has a Row path and the call takes it
    sums_by_bit_trick: bool  # bfloat16 sums are rounded without a look at NaN

    @cached_property
    def address(self) -> Lanes:
        """Per run: its first element in the owned memory."""
        return self.runs.dst + self.call.table.base

    @cached_property
    def live(self) -> Mask:
        """Per run: a policy lets it happen."""
        return np.asarray(self.lane_live[self.lane_of_run])

    @cached_property
    def owned(self) -> Mask:
        """Per run: it lies wholly in memory that the caller owns, and in the tile."""
        last = self.address + (self.runs.length - 1)
        tile_last = self.runs.src + (self.runs.length - 1) * self.runs.src_step
        return (self.address >= 0) & (last < self.memory_size) & (tile_last < self.tile_size)

    @cached_property
    def straddles(self) -> Mask:
        """Per run: live, and only partly in memory that the caller owns."""
        last = self.address + (self.runs.length - 1)
        across_start = (self.address < 0) != (last < 0)
        across_end = (self.address < self.memory_size) != (last < self.memory_size)
        return np.asarray(self.live & (across_start | across_end))

    @cached_property
    def word_is_padding(self) -> Mask:
        """Per lane: its index word lies in the index tile, but outside the valid region (cpu reads on regardless)."""
        idx = self.call.idx
        defined = np.zeros(idx.storage.size + 1, np.bool_)
        defined[np.minimum(idx.valid_offsets(), idx.storage.size)] = True
        return self.word_known & ~defined[np.where(self.word_known, self.word_at, 0)]

    @property
    def words_are_defined(self) -> bool:
        """Every index word comes from the valid region of the index tile."""
        return self.obeys_policies or bool((self.word_known & ~self.word_is_padding).all())

    @property
    def count(self) -> int:
        """Runs."""
        return len(self.runs.src)

    def lane(self, run: int) -> tuple[int, int]:
        """(row, column) of the run's first element."""
        return int(self.runs.row[run]), int(self.runs.col[run])

    def split(self, piece: int = 1) -> Plan:
        """The same plan with its runs in pieces of so many elements, of which a run has a whole number."""
        runs, pieces = self.runs, self.runs.length // piece
        step = np.arange(pieces) * piece
        return replace(
            self,
            lane_of_run=np.repeat(self.lane_of_run, pieces),
            runs=Runs(
                row=np.repeat(runs.row, pieces),
                col=(runs.col[:, None] + step).ravel(),
                src=(runs.src[:, None] + step * runs.src_step).ravel(),
                dst=(runs.dst[:, None] + step).ravel(),
                length=piece,
                src_step=runs.src_step,
            ),
        )

    def columns(self, first: int, length: int) -> Plan:
        """The part of every run from its element `first` on."""
        runs = self.runs
        return replace(
            self,
            runs=replace(
                runs,
                col=runs.col + first,
                src=runs.src + first * runs.src_step,
                dst=runs.dst + first,
                length=length,
            ),
        )

    def take(self, keep: Lanes | Mask) -> Plan:
        """The plan of some of the runs, in the order given."""
        runs = self.runs
        return replace(
            self,
            lane_of_run=self.lane_of_run[keep],
            runs=replace(runs, row=runs.row[keep], col=runs.col[keep], src=runs.src[keep], dst=runs.dst[keep]),
        )


def remap(call: Access, machine: Machine, taken: Lanes, capacity: Capacity) -> Remap:
    """REMAP: what the bounds policy makes of each index (SEMANTICS 2.1)."""
    everything = np.ones(taken.shape, np.bool_)
    if not machine.has_policies:
        # The raw index is used, whatever was asked for (2.4).
        return Remap(taken, everything, (taken < 0) | (taken >= capacity.true))
    counted = capacity.counted
    out = taken >= (capacity.true if call.is_undefined else counted)
    if call.is_undefined:
        return Remap(taken, everything, out)
    if call.drops:
        return Remap(taken, ~out, out)
    if call.oob in (ScatterOOB.Clamp, GatherOOB.Clamp):
        # A count that truncated to 0 makes 2^32 - 1 of its "last slot".
        return Remap(np.where(out, (counted - 1) % U32, taken), everything, out)
    if counted == 0:
        # Wrap divides by zero there: nothing is executed.
        return Remap(taken, ~everything, out)
    return Remap(taken % counted, everything, out)


def make_plan(call: Access, machine: Machine) -> Plan:
    """The plan of a call: INDEX, REMAP, ADDRESS. Needs a call that the target accepts."""
    call = machine.effective(call)
    capacity = machine.capacity(call)
    by_row = machine.walks_rows(call)

    # INDEX: what the tile says
    if by_row:
        row, col = np.arange(call.tile.valid_rows), np.zeros(call.tile.valid_rows, np.int64)
    else:
        row, col = machine.elem_walk(call)
    word_at = machine.index_offsets(call, row, col)
    word_known = (word_at >= 0) & (word_at < call.idx.storage.size)
    raw = call.idx.storage[word_at] if bool(word_known.all()) else _words(call.idx.storage, word_at, word_known)
    taken = machine.widen(raw)

    # REMAP: what the policy makes of it
    mapped = remap(call, machine, taken, capacity)
    live = mapped.live & word_known
    if machine.scans_slots(call):
        # The scan visits real slots only: whatever is not one is never written (SEMANTICS 2.1).
        live &= mapped.slot < capacity.counted

    # ADDRESS: where that is
    if by_row:
        assert machine.row_runs is not None
        runs = machine.row_runs(call, mapped.slot)
        lane_of_run = runs.row
    else:
        runs = machine.elem_runs(call, row, col, mapped.slot)
        lane_of_run = np.arange(len(row))
    return Plan(
        target=machine.name,
        call=call,
        capacity=capacity,
        word_at=word_at,
        word_known=word_known,
        raw=raw,
        taken=taken,
        slot=mapped.slot,
        lane_out=mapped.out,
        lane_live=live,
        lane_of_run=lane_of_run,
        runs=runs,
        threads=machine.threads(call) if machine.threads else None,
        memory_size=call.table.memory.size,
        tile_size=call.tile.storage.size,
        obeys_policies=machine.has_policies,
        scans_slots=machine.scans_slots(call),
        runs_are_rows=by_row,
        sums_by_bit_trick=machine.elem_sums_by_bit_trick and not by_row and call.tile.dtype.name == "bfloat16",
    )


def _words(data: Array, at: Lanes, known: Mask) -> Array:
    """Index words, zero where the tile has none."""
    words = np.zeros(at.shape, data.dtype)
    words[known] = data[at[known]]
    return words


def far_product(slot: Lanes, step: int) -> Lanes:
    """`slot * step`, where 64 bits would not do: some place that nobody owns."""
    most = FAR // max(step, 1)
    return np.where(slot > most, FAR, np.minimum(slot, most) * step)


def row_major(call: Access) -> tuple[Lanes, Lanes]:
    """The walk r, then c."""
    rows, cols = call.tile.valid
    return np.repeat(np.arange(rows), cols), np.tile(np.arange(cols), rows)


def element_runs(call: Access, row: Lanes, col: Lanes, slot: Lanes) -> Runs:
    """Elem on a linear table: the slot is the element (SEMANTICS 2.2)."""
    return Runs(row, col, call.tile.offsets(row, col), slot, length=1)


def tile_word(call: Access, row: Lanes, col: Lanes) -> Lanes:
    """Where the index word of an Elem lane lies, by the index tile's own layout."""
    return call.idx.offsets(row, col)


def product(table: GlobalTensor) -> int:
    """S0*S1*S2*S3*S4."""
    return table.size
