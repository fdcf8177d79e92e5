"""COMMIT: a plan's effect on memory, in the order of its runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from ptokit.access.call import Access
from ptokit.access.cells import CHUNK, Cells, group
from ptokit.access.plan import Array, Lanes, Plan
from ptokit.dtypes import ElementType
from ptokit.policies import ScatterAtomicOp

Fold = Callable[[Array, Array], Array]

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


def fold_of(plan: Plan) -> Fold:
    """How an atomic combines what is there with what comes: bits in, bits out.

    Sums of the 16-bit floats are made in float32 and rounded to nearest even after every addition.
    """
    call, dtype = plan.call, plan.call.table.dtype
    number, bits = dtype.numpy, dtype.bits
    if plan.sums_by_bit_trick and call.atomic is ScatterAtomicOp.Add:
        return bit_trick_sum

    def add(there: Array, comes: Array) -> Array:
        return np.asarray(there.view(number) + comes.view(number)).view(bits)

    def keep_unless(better: Callable[[Array, Array], Array]) -> Fold:
        # Where the comparison is false (a NaN on either side) the table keeps its value.
        return lambda there, comes: np.where(better(comes.view(number), there.view(number)), comes, there)

    folds: dict[ScatterAtomicOp, Fold] = {
        ScatterAtomicOp.Add: add,
        ScatterAtomicOp.Max: keep_unless(np.greater),
        ScatterAtomicOp.Min: keep_unless(np.less),
    }
    return folds[call.atomic]


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
    _accumulate(cells, values, there)


def _accumulate(cells: Cells, values: Array, there: Array) -> None:
    """Round k adds the k-th writer of every cell: the walk's order, many cells at a time."""
    fold = fold_of(cells.plan)
    most = int(cells.count.max(initial=0))
    busy = np.arange(len(cells.count))
    for rank in range(min(most, ROUNDS)):
        busy = busy[cells.count[busy] > rank]
        runs, at = cells.order[cells.start[busy] + rank], cells.address[busy]
        there[at] = fold(there[at], values[runs])
    for cell in np.flatnonzero(cells.count > ROUNDS):
        first = cells.start[cell]
        runs = cells.order[first + ROUNDS : first + cells.count[cell]]
        place = int(cells.address[cell])
        there[place] = fold_all(cells.plan, there[place], values[runs])


def fold_all(plan: Plan, there: Array, comes: Array) -> Array:
    """Many writers of one cell, one after the other."""
    call = plan.call
    number, bits = call.table.dtype.numpy, call.table.dtype.bits
    if call.atomic is ScatterAtomicOp.Add:
        stack = np.concatenate([there[None], comes]).view(number)
        total = np.asarray(np.add.accumulate(stack, axis=0, dtype=number)[-1])
        if plan.sums_by_bit_trick and np.isnan(total).any():
            return reduce(bit_trick_sum, comes, there)
        return total.view(bits)
    largest = call.atomic is ScatterAtomicOp.Max
    numbers = comes.view(number)
    if call.table.dtype.is_float:
        # A NaN never wins a comparison; the first of the best keeps its place (signed zeros).
        numbers = np.where(np.isnan(numbers), -np.inf if largest else np.inf, numbers)
    best = numbers.argmax(axis=0) if largest else numbers.argmin(axis=0)
    candidate = np.take_along_axis(comes, best[None], axis=0)[0]
    return fold_of(plan)(there, candidate)


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
