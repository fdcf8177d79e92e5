"""COMMIT: a plan's effect on memory, in the order of its runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from ptokit.access.call import Access
from ptokit.access.cells import CHUNK, Cells, Groups, group
from ptokit.access.plan import Array, Lanes, Plan
from ptokit.dtypes import ElementType
from ptokit.policies import ScatterAtomicOp

ROUNDS = 64
"""Cells with more writers than this are folded one by one."""


def bits_of(array: Array, dtype: ElementType) -> Array:
    """The array's elements as unsigned integers: moving them never changes them."""
    return array.view(dtype.bits)


def window(array: Array, length: int, step: int = 1) -> Array:
    """Row i is the run of `length` elements that starts at i. Overlapping views of one array."""
    rows = max(array.size - (length - 1) * step, 0)
    return np.lib.stride_tricks.as_strided(array, (rows, length), (array.itemsize, array.itemsize * step))


def source_bits(plan: Plan) -> Array:
    """What the runs bring: one row of bits per run."""
    tile = plan.call.tile
    data = bits_of(tile.storage, tile.dtype)
    if plan.runs.length == 1:
        return data[plan.runs.src][:, None]
    return np.asarray(window(data, plan.runs.length, plan.runs.src_step)[plan.runs.src])


def memory_bits(call: Access) -> Array:
    """The whole owned memory as bits."""
    return bits_of(call.table.memory, call.table.dtype)


def bit_trick_sum(there: Array, comes: Array) -> Array:
    """bfloat16 as a2a3 Elem adds it: in float32, then half a unit up and the lower half off, NaN or not.

    For every sum that is a number this is rounding to nearest even; a NaN keeps its payload (SEMANTICS 2.3).
    """
    wide = (_as_float32(there) + _as_float32(comes)).view(np.uint32)
    return ((wide + 0x7FFF + ((wide >> 16) & 1)) >> 16).astype(np.uint16)


def _as_float32(bfloat16: Array) -> Array:
    return (bfloat16.astype(np.uint32) << 16).view(np.float32)


@dataclass(frozen=True)
class Folding:
    """How an atomic combines what is there with what comes: bits in, bits out.

    Sums of the 16-bit floats are made in float32 and rounded to nearest even after every addition.
    """

    atomic: ScatterAtomicOp
    dtype: ElementType
    by_bit_trick: bool = False

    @classmethod
    def of(cls, plan: Plan) -> Folding:
        """The folding of a plan."""
        return cls(plan.call.atomic, plan.call.table.dtype, plan.sums_by_bit_trick)

    def one(self, there: Array, comes: Array) -> Array:
        """One writer for each element."""
        number = self.dtype.numpy
        if self.atomic is ScatterAtomicOp.Add and self.by_bit_trick:
            return bit_trick_sum(there, comes)
        if self.atomic is ScatterAtomicOp.Add:
            return np.asarray(there.view(number) + comes.view(number)).view(self.dtype.bits)
        # Where the comparison is false (a NaN on either side) the table keeps its value.
        better = np.greater if self.atomic is ScatterAtomicOp.Max else np.less
        return np.where(better(comes.view(number), there.view(number)), comes, there)

    def many(self, there: Array, comes: Array) -> Array:
        """Many writers of one cell, one after the other."""
        if self.atomic is ScatterAtomicOp.Add:
            return self._sum(there, comes)
        largest = self.atomic is ScatterAtomicOp.Max
        numbers = comes.view(self.dtype.numpy)
        if self.dtype.is_float:
            # A NaN never wins a comparison; the first of the best keeps its place (signed zeros).
            numbers = np.where(np.isnan(numbers), -np.inf if largest else np.inf, numbers)
        best = numbers.argmax(axis=0) if largest else numbers.argmin(axis=0)
        return self.one(there, np.take_along_axis(comes, best[None], axis=0)[0])

    def _sum(self, there: Array, comes: Array) -> Array:
        number = self.dtype.numpy
        stack = np.concatenate([there[None], comes]).view(number)
        total = np.asarray(np.add.accumulate(stack, axis=0, dtype=number)[-1])
        if self.by_bit_trick and np.isnan(total).any():
            return reduce(bit_trick_sum, comes, there)
        return total.view(self.dtype.bits)


def scatter(cells: Cells, values: Array) -> None:
    """Write the performed runs of `cells.plan`; `values` are the bits of each run."""
    plan = cells.plan
    memory = memory_bits(plan.call)
    there = window(memory, plan.runs.length)
    if plan.call.atomic is ScatterAtomicOp.None_:
        if plan.runs.length == 1:
            memory[plan.address] = values[:, 0]
        else:
            there[plan.address] = values
        return
    accumulate(Folding.of(plan), there, cells.address, cells, values)


def accumulate(fold: Folding, there: Array, address: Lanes, groups: Groups, values: Array) -> None:
    """Round k folds the k-th writer of every cell: the order of the walk, many cells at a time.

    Row `address[c]` of `there` is cell c, row i of `values` what run i brings.
    """
    most = int(groups.count.max(initial=0))
    busy = np.arange(len(groups.count))
    for rank in range(min(most, ROUNDS)):
        busy = busy[groups.count[busy] > rank]
        runs, at = groups.order[groups.start[busy] + rank], address[busy]
        there[at] = fold.one(there[at], values[runs])
    for cell in np.flatnonzero(groups.count > ROUNDS):
        first = groups.start[cell]
        runs = groups.order[first + ROUNDS : first + groups.count[cell]]
        place = int(address[cell])
        there[place] = fold.many(there[place], values[runs])


def gather(plan: Plan, runs: Plan) -> None:
    """Read the performed `runs` of `plan` into the destination tile; Zero fills what is out of bounds."""
    call = plan.call
    tile = bits_of(call.tile.storage, call.tile.dtype)
    if call.drops:
        _zero(plan, tile)
    memory, length = memory_bits(call), runs.runs.length
    if length == 1:
        tile[runs.runs.src] = memory[runs.address]
    else:
        window(tile, length, runs.runs.src_step)[runs.runs.src] = window(memory, length)[runs.address]


def _zero(plan: Plan, tile: Array) -> None:
    """ND Row fills the row, NZ Row the whole tile once (SEMANTICS 3.1), Elem the element."""
    call = plan.call
    if call.is_nz and call.is_row:
        tile[:] = 0
        return
    dropped = plan.runs.src[~plan.live]
    window(tile, plan.runs.length, plan.runs.src_step)[dropped] = 0


def interleaved(cells: Cells, seed: int) -> list[Cells]:
    """One legal order of a SIMT call, by chance: each thread's accesses keep their own order.

    Chunks of 32 columns of a row are independent, so each gets an order of its own.
    """
    plan, chance = cells.plan, np.random.default_rng(seed)
    if plan.threads is None:
        return [cells]
    return [group(part.take(_order(part, chance))) for part in _chunks(plan)]


def _order(plan: Plan, chance: np.random.Generator) -> Lanes:
    """A random order that keeps the order of each thread."""
    assert plan.threads is not None
    thread = plan.threads.of(plan.runs.row, plan.runs.col)
    count = int(thread.max(initial=0)) + 1
    # Every thread starts when it likes and is as fast as it likes; else all would walk side by side.
    start = chance.random(count)
    moment = start[thread] + (1 - start[thread]) * chance.random(count)[thread] * chance.random(plan.count)
    # Within a thread, hand its moments out in its own order; the runs stand in that order already.
    by_thread = np.argsort(thread, kind="stable")
    by_moment = np.lexsort((moment, thread))
    due = np.empty(plan.count)
    due[by_thread] = moment[by_moment]
    return np.argsort(due, kind="stable")


def _chunks(plan: Plan) -> list[Plan]:
    """A Row plan as the plans of its 32-column chunks."""
    return [plan.columns(first, min(CHUNK, plan.runs.length - first)) for first in range(0, plan.runs.length, CHUNK)]
