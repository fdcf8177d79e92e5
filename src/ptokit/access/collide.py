"""COLLIDE: elements with more than one writer, and a verdict for each (SEMANTICS 2.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np

from ptokit.access import sums
from ptokit.access.cells import Cells, sorted_with_places
from ptokit.access.commit import memory_bits, window
from ptokit.access.plan import Array, Lanes, Mask
from ptokit.dtypes import ElementType
from ptokit.policies import ScatterAtomicOp


class Verdict(IntEnum):
    """What more than one writer of an element means for the result; a larger one is worse."""

    BENIGN = 0  # all writers bring equal bits
    DEFINED = 1  # an order, or an operation for which no order matters, decides
    ORDER_SENSITIVE = 2  # the result of an atomic depends on an order that nobody promises
    UNDEFINED = 3  # any one of several writers survives

    @property
    def word(self) -> str:
        """The verdict as it is written: `order-sensitive`."""
        return self.name.lower().replace("_", "-")


@dataclass(frozen=True)
class SlotVerdicts:
    """Contested slots, ascending: the worst verdict of each, and the first of its cells that has it."""

    slot: Lanes
    verdict: Array
    cell: Lanes

    def of(self, slot: int) -> Verdict | None:
        """The slot's verdict, or None where at most one lane writes it."""
        at = int(np.searchsorted(self.slot, slot))
        return Verdict(int(self.verdict[at])) if at < len(self.slot) and self.slot[at] == slot else None


@dataclass(frozen=True)
class Collisions:
    """The contested cells of a scatter, what their writers bring, and what was there before."""

    cells: Cells  # contested only; `order` numbers runs of `cells.plan`
    values: Array  # per entry of `cells.order`: the run's bits
    before: Array  # per cell: the bits before the call
    thread: Lanes | None  # per entry: its SIMT thread, None on a sequential walk

    @property
    def dtype(self) -> ElementType:
        """The table's element type."""
        return self.cells.plan.call.table.dtype

    @property
    def count(self) -> int:
        """Contested cells."""
        return len(self.cells.count)

    def lanes_of(self, cell: int) -> Lanes:
        """The lanes (row, column) that write the cell, in walk order."""
        runs, of_plan = self.runs_of(cell), self.cells.plan.runs
        return np.stack([of_plan.row[runs], of_plan.col[runs]], axis=1)

    def runs_of(self, cell: int) -> Lanes:
        """The runs that write the cell, in walk order."""
        first = self.cells.start[cell]
        return self.cells.order[first : first + self.cells.count[cell]]

    def entries_of(self, cell: int) -> slice:
        """The cell's entries in `values` and `thread`."""
        first = int(self.cells.start[cell])
        return slice(first, first + int(self.cells.count[cell]))

    def elements(self, cell: Lanes, column: Lanes) -> Elements:
        """Single elements of contested cells, with all their writers."""
        return Elements(self, cell, column)

    def per_cell_any(self, entries: Array) -> Mask:
        """Whether any entry of a cell is true, along the first axis."""
        return np.asarray(np.logical_or.reduceat(entries, self.cells.start))

    @cached_property
    def survives(self) -> Mask:
        """Per entry: this writer's value can be what remains (a thread's last hit of the element)."""
        if self.thread is None:
            last = np.zeros(len(self.cells.order), np.bool_)
            last[self.cells.start + self.cells.count - 1] = True
            return last
        # From behind, the first of each (cell, thread) is its last.
        return first_of_each(self.cells.cell_of_writer[::-1], self.thread[::-1])[::-1]

    @cached_property
    def verdicts(self) -> Array:
        """Per cell: its `Verdict` (the worst of its columns)."""
        if not self.count:
            return np.zeros(0, np.int64)
        if self.atomic is ScatterAtomicOp.None_:
            return self._stores()
        return np.where(self._order_matters(), Verdict.ORDER_SENSITIVE, Verdict.DEFINED)

    @cached_property
    def by_slot(self) -> SlotVerdicts:
        """The worst verdict of every contested slot, and the first cell that has it."""
        plan, cells = self.cells.plan, self.cells
        slot = plan.slot[plan.lane_of_run[cells.order]]
        cell = cells.cell_of_writer
        in_pieces = plan.runs_are_rows and (plan.call.is_nz or cells.length < plan.call.tile.valid_cols)
        if in_pieces or self.has_aliases:
            # A slot is several cells here, or a cell is hit through several slots: the worst comes first.
            order = np.lexsort((-self.verdicts[cell], slot))
            slot, first = np.unique(slot[order], return_index=True)
            cell = cell[order[first]]
        else:
            slot, cell = np.unique(slot[cells.start], return_index=True)
        return SlotVerdicts(slot, self.verdicts[cell], cell)

    @property
    def has_aliases(self) -> bool:
        """Some cell is hit through several slots."""
        plan, cells = self.cells.plan, self.cells
        slot = plan.slot[plan.lane_of_run[cells.order]]
        return bool((slot != slot[cells.start][cells.cell_of_writer]).any())

    @property
    def atomic(self) -> ScatterAtomicOp:
        """The call's atomic."""
        return self.cells.plan.call.atomic

    def _stores(self) -> Array:
        differ = self._differ(np.ones(len(self.values), np.bool_))
        verdict = np.where(differ, Verdict.DEFINED, Verdict.BENIGN)
        if self.thread is None:
            return verdict
        return np.where(self._differ(self.survives), Verdict.UNDEFINED, verdict)

    def _differ(self, among: Mask) -> Mask:
        """Per cell: the writers among these bring different bits in some column."""
        first = np.repeat(self.cells.start + self._first(among), self.cells.count)
        unlike = (self.values != self.values[first]).any(axis=1) & among
        return self.per_cell_any(unlike)

    def _first(self, among: Mask) -> Lanes:
        """Per cell: the rank of its first writer among these."""
        rank = np.where(among, self.cells.rank, len(among))
        return np.asarray(np.minimum.reduceat(rank, self.cells.start))

    def _order_matters(self) -> Mask:
        """Per cell: an order that nobody promises decides the result of an atomic."""
        if self.thread is None or not self.dtype.is_float:
            return np.zeros(self.count, np.bool_)
        if self.atomic is ScatterAtomicOp.Add:
            return self._sum_depends_on_order()
        return np.asarray(self.mixed_extremes.any(axis=1))

    # Max and Min: zeros of both signs

    @cached_property
    def mixed_extremes(self) -> Mask:
        """Per cell and column: a zero comes to stay, and its sign is that of whichever zero comes first."""
        largest = self.atomic is ScatterAtomicOp.Max
        number = self.values.view(self.dtype.numpy)
        there = self.before.view(self.dtype.numpy)
        if largest:
            best = np.maximum.reduceat(np.where(np.isnan(number), -np.inf, number), self.cells.start)
        else:
            best = np.minimum.reduceat(np.where(np.isnan(number), np.inf, number), self.cells.start)
        zero_stays = (best == 0) & ((there < 0) if largest else (there > 0))
        zero, negative = number == 0, np.signbit(number)
        mixed = np.zeros(there.shape, np.bool_)
        mixed |= zero_stays & self.per_cell_any(zero & negative) & self.per_cell_any(zero & ~negative)
        cell, column = np.nonzero(mixed)
        if len(cell):
            mixed[cell, column] = self.elements(cell, column).first_zeros_differ()
        return mixed

    # Add: sums that depend on the order

    @cached_property
    def undecided(self) -> Mask:
        """Per cell and column: nothing shows that the sum is the same in every order."""
        exact = sums.exact_whatever_order(self.before, self.values, self.cells.start, self.dtype)
        return ~exact & ~self._one_thread()[:, None]

    @cached_property
    def bounded(self) -> Mask:
        """Per cell and column: too many addends to try every order; the sum is known by its bounds."""
        if self.thread is None or self.atomic is not ScatterAtomicOp.Add or not self.dtype.is_float or not self.count:
            return np.zeros(self.before.shape, np.bool_)
        many = self.cells.count > sums.MOST_EXACT
        if not many.any():
            return np.zeros(self.before.shape, np.bool_)
        addends = np.add.reduceat((~sums.is_zero(self.values, self.dtype)).astype(np.int64), self.cells.start)
        return np.asarray(self.undecided & many[:, None] & (addends > sums.MOST_EXACT))

    def _sum_depends_on_order(self) -> Mask:
        undecided = self.undecided
        matters: Mask = np.asarray(self.bounded.any(axis=1))
        few = np.flatnonzero(undecided.any(axis=1) & (self.cells.count <= sums.MOST_EXACT))
        for group in self._alike_cells(few):
            matters[group.numbers] = group.depends_on_order(self.dtype)
        sparse = undecided & ~self.bounded & (self.cells.count > sums.MOST_EXACT)[:, None]
        cell, column = np.nonzero(sparse & ~matters[:, None])
        for group in self.elements(cell, column).alike():
            matters[cell[group.numbers[group.depends_on_order(self.dtype)]]] = True
        return matters

    def sensitive_column(self, cell: int) -> int:
        """The first column of an order-sensitive cell in which the order shows."""
        if self.atomic is not ScatterAtomicOp.Add:
            return int(self.mixed_extremes[cell].argmax())
        if self.bounded[cell].any():
            return int(self.bounded[cell].argmax())
        columns = np.flatnonzero(self.undecided[cell])
        matters = np.zeros(len(columns), np.bool_)
        for group in self.elements(np.full(len(columns), cell), columns).alike():
            matters[group.numbers] = group.depends_on_order(self.dtype)
        return int(columns[matters.argmax()])

    def mixed_or_sum(self, cell: int, column: int) -> bool:
        """Whether this column of an order-sensitive cell is one that the order may touch."""
        undecided = self.undecided if self.atomic is ScatterAtomicOp.Add else self.mixed_extremes
        return bool(undecided[cell, column])

    def _one_thread(self) -> Mask:
        """Per cell: all writers are accesses of one thread."""
        assert self.thread is not None
        first = np.repeat(self.thread[self.cells.start], self.cells.count)
        return ~self.per_cell_any(self.thread != first)

    def _alike_cells(self, numbers: Lanes) -> list[Alike]:
        """These cells, whole, in groups of the same count of writers and the same pattern of threads."""
        assert self.thread is not None
        found = []
        for count in np.unique(self.cells.count[numbers]):
            same = numbers[self.cells.count[numbers] == count]
            entries = self.cells.start[same][:, None] + np.arange(count)
            for thread, part in by_pattern(self.thread[entries]):
                found.append(Alike(same[part], thread, self.before[same[part]], self.values[entries[part]]))
        return found


@dataclass(frozen=True)
class Elements:
    """Single elements of contested cells, and the entries of all their writers in one row."""

    found: Collisions
    cell: Lanes
    column: Lanes

    @cached_property
    def count(self) -> Lanes:
        """Per element: its writers."""
        return np.asarray(self.found.cells.count[self.cell])

    @cached_property
    def start(self) -> Lanes:
        """Per element: where its writers begin."""
        return np.asarray(np.cumsum(self.count) - self.count)

    @cached_property
    def owner(self) -> Lanes:
        """Per writer: its element."""
        return np.repeat(np.arange(len(self.cell)), self.count)

    @cached_property
    def entry(self) -> Lanes:
        """Per writer: its entry in the collisions."""
        inside = np.arange(int(self.count.sum())) - np.repeat(self.start, self.count)
        return np.repeat(self.found.cells.start[self.cell], self.count) + inside

    @cached_property
    def bits(self) -> Array:
        """Per writer: what it brings."""
        return np.asarray(self.found.values[self.entry, self.column[self.owner]])

    @cached_property
    def before(self) -> Array:
        """Per element: what was there."""
        return np.asarray(self.found.before[self.cell, self.column])

    @cached_property
    def thread(self) -> Lanes:
        """Per writer: its thread."""
        assert self.found.thread is not None
        return np.asarray(self.found.thread[self.entry])

    def any_writer(self, test: Mask) -> Mask:
        """Per element: some writer passes."""
        return np.asarray(np.logical_or.reduceat(test, self.start))

    @cached_property
    def survives(self) -> Mask:
        """Per writer: its store can be what remains."""
        return np.asarray(self.found.survives[self.entry])

    @cached_property
    def is_first_zero(self) -> Mask:
        """Per writer: it brings the first zero of its thread, so that it can be the first of all."""
        zero = sums.is_zero(self.bits, self.found.dtype)
        first = np.zeros(len(self.bits), np.bool_)
        first[zero] = first_of_each(self.owner[zero], self.thread[zero])
        return first

    def first_zeros_differ(self) -> Mask:
        """Per element: zeros of both signs can come first."""
        return self.any_writer(self.is_first_zero & (self.bits == 0)) & self.any_writer(
            self.is_first_zero & (self.bits != 0)
        )

    def alike(self) -> list[Alike]:
        """The elements in groups of as many addends (zeros change no sum) and the same pattern of threads."""
        addend = np.flatnonzero(~sums.is_zero(self.bits, self.found.dtype))
        owner = self.owner[addend]
        count = np.bincount(owner, minlength=len(self.cell))
        first = np.cumsum(count) - count
        groups = []
        for size in np.unique(count):
            same = np.flatnonzero(count == size)
            writers = addend[first[same][:, None] + np.arange(size)]
            for thread, part in by_pattern(self.thread[writers]):
                values = self.bits[writers[part]][:, :, None]
                groups.append(Alike(same[part], thread, self.before[same[part]][:, None], values))
        return groups


@dataclass(frozen=True)
class Alike:
    """Cells (or elements) whose writers are as many and share threads in the same way."""

    numbers: Lanes
    thread: tuple[int, ...]
    before: Array  # [cells, columns]
    values: Array  # [cells, writers, columns]

    def depends_on_order(self, dtype: ElementType) -> Mask:
        """Per cell: two orders give different sums in some column."""
        matters = np.zeros(len(self.numbers), np.bool_)
        still = np.arange(len(self.numbers))
        before, values = self.before, self.values
        first: Array | None = None
        for order in sums.orders(self.thread):
            total = sums.total(before, values, order, dtype)
            if first is None:
                first = total
                continue
            differs = (total != first).any(axis=1)
            if differs.any():
                matters[still[differs]] = True
                still, before, values, first = (part[~differs] for part in (still, before, values, first))
            if not len(still):
                break
        return matters

    def can_be(self, bits: Array, dtype: ElementType) -> Mask:
        """Per cell: some order gives these bits [cells, columns] in every column."""
        found = np.zeros(len(self.numbers), np.bool_)
        still = np.arange(len(self.numbers))
        before, values = self.before, self.values
        for order in sums.orders(self.thread):
            same = (sums.total(before, values, order, dtype) == bits).all(axis=1)
            if same.any():
                found[still[same]] = True
                still, before, values, bits = (part[~same] for part in (still, before, values, bits))
            if not len(still):
                break
        return found


def first_of_each(group: Lanes, thread: Lanes) -> Mask:
    """Per entry: the first of its (group, thread)."""
    order, key = sorted_with_places(group * (int(thread.max(initial=0)) + 1) + thread)
    first = np.ones(len(order), np.bool_)
    first[1:] = key[1:] != key[:-1]
    out = np.empty_like(first)
    out[order] = first
    return out


def by_pattern(thread: Array) -> Iterator[tuple[tuple[int, ...], Lanes]]:
    """Rows of threads in groups that share threads in the same way: (7, 3, 7) is (0, 1, 0)."""
    pattern = (thread[:, :, None] == thread[:, None, :]).argmax(axis=2)
    # One number per pattern: a digit below MOST_EXACT for each writer.
    code = pattern @ sums.MOST_EXACT ** np.arange(thread.shape[1])
    for kind in np.unique(code):
        part = np.flatnonzero(code == kind)
        yield tuple(int(t) for t in pattern[part[0]]), part


def collide(cells: Cells, values: Array) -> Collisions:
    """The contested cells of a scatter that is about to be committed."""
    contested = cells.contested()
    plan = cells.plan
    writers = contested.order
    thread = None
    if plan.threads is not None:
        thread = plan.threads.of(plan.runs.row[writers], plan.runs.col[writers])
    there = window(memory_bits(plan.call), plan.runs.length)
    return Collisions(contested, values[writers], there[contested.address].copy(), thread)
