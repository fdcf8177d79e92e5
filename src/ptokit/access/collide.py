"""COLLIDE: elements with more than one writer, and a verdict for each (SEMANTICS 2.3)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np

from ptokit.access import sums
from ptokit.access.cells import Cells, sorted_with_places
from ptokit.access.commit import fold_all, memory_bits, window
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

    def lanes_of(self, cell: int) -> list[tuple[int, int]]:
        """The lanes that write the cell, in walk order."""
        return [self.cells.plan.lane(run) for run in self.runs_of(cell)]

    def runs_of(self, cell: int) -> Lanes:
        """The runs that write the cell, in walk order."""
        first = self.cells.start[cell]
        return self.cells.order[first : first + self.cells.count[cell]]

    def entries_of(self, cell: int) -> slice:
        """The cell's entries in `values` and `thread`."""
        first = int(self.cells.start[cell])
        return slice(first, first + int(self.cells.count[cell]))

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
        own = self.cells.cell_of_writer * (int(self.thread.max(initial=0)) + 1) + self.thread
        by_thread, own = sorted_with_places(own)
        last = np.ones(len(by_thread), np.bool_)
        last[:-1] = own[1:] != own[:-1]
        out = np.empty_like(last)
        out[by_thread] = last
        return out

    @cached_property
    def verdicts(self) -> Array:
        """Per cell: its `Verdict` (the worst of its columns)."""
        if not self.count:
            return np.zeros(0, np.int64)
        if self.cells.plan.call.atomic is ScatterAtomicOp.None_:
            return self._stores()
        return np.where(self._order_matters(), Verdict.ORDER_SENSITIVE, Verdict.DEFINED)

    @cached_property
    def by_slot(self) -> SlotVerdicts:
        """The worst verdict of every contested slot, and the first cell that has it."""
        plan, cells = self.cells.plan, self.cells
        slot = plan.slot[plan.lane_of_run[cells.order]]
        cell = cells.cell_of_writer
        if (plan.runs_are_rows and plan.call.is_nz) or cells.was_split:
            # A slot is several cells here, or a cell is hit through several slots: the worst comes first.
            order = np.lexsort((-self.verdicts[cell], slot))
            slot, first = np.unique(slot[order], return_index=True)
            cell = cell[order[first]]
        else:
            slot, first = np.unique(slot[cells.start], return_index=True)
            cell = first
        return SlotVerdicts(slot, self.verdicts[cell], cell)

    def _differ(self, among: Mask) -> Mask:
        """Per cell: the writers among these bring different bits in some column."""
        first = np.repeat(self.cells.start + self._first(among), self.cells.count)
        unlike = (self.values != self.values[first]).any(axis=1) & among
        return self.per_cell_any(unlike)

    def _first(self, among: Mask) -> Lanes:
        """Per cell: the rank of its first writer among these."""
        rank = np.where(among, self.cells.rank, len(among))
        return np.asarray(np.minimum.reduceat(rank, self.cells.start))

    def _stores(self) -> Array:
        verdict = np.where(self._differ(np.ones(len(self.values), np.bool_)), Verdict.DEFINED, Verdict.BENIGN)
        if self.thread is None:
            return verdict
        return np.where(self._differ(self.survives), Verdict.UNDEFINED, verdict)

    def _order_matters(self) -> Mask:
        """Per cell: an order that nobody promises decides the result of an atomic."""
        if self.thread is None or not self.dtype.is_float:
            return np.zeros(self.count, np.bool_)
        if self.cells.plan.call.atomic is ScatterAtomicOp.Add:
            return self._sum_depends_on_order()
        return self._extreme_depends_on_order()

    def _extreme_depends_on_order(self) -> Mask:
        """Per cell: zeros of both signs come, one of them stays, and it is whichever comes first."""
        largest = self.cells.plan.call.atomic is ScatterAtomicOp.Max
        number = self.values.view(self.dtype.numpy)
        there = self.before.view(self.dtype.numpy)
        if largest:
            best = np.maximum.reduceat(np.where(np.isnan(number), -np.inf, number), self.cells.start)
        else:
            best = np.minimum.reduceat(np.where(np.isnan(number), np.inf, number), self.cells.start)
        zero_stays = (best == 0) & ((there < 0) if largest else (there > 0))
        zero = number == 0
        minus, plus = self.per_cell_any(zero & np.signbit(number)), self.per_cell_any(zero & ~np.signbit(number))
        mixed = zero_stays & minus & plus
        matters = np.asarray(mixed.any(axis=1))
        for cell in np.flatnonzero(matters & ~self._own_threads()):
            columns = np.flatnonzero(mixed[cell])
            matters[cell] = any(len(self.extremes(int(cell), int(column))) > 1 for column in columns)
        return matters

    def _own_threads(self) -> Mask:
        """Per cell: every writer is an access of another thread, so that any of them can be the first."""
        return np.asarray(np.logical_and.reduceat(self.survives, self.cells.start))

    def sensitive_column(self, cell: int) -> int:
        """The first column of an order-sensitive cell in which the order shows."""
        columns = range(self.cells.length)
        if self.cells.plan.call.atomic is not ScatterAtomicOp.Add:
            return next(column for column in columns if len(self.extremes(cell, column)) > 1)
        return next(column for column in columns if self._column(cell, column)._sum_depends_on_order()[0])

    def _column(self, cell: int, column: int) -> Collisions:
        """One column of one cell, as collisions of its own."""
        entries = self.entries_of(cell)
        assert self.thread is not None
        return Collisions(
            self.cells.some(np.array([cell])),
            self.values[entries, column : column + 1],
            self.before[cell : cell + 1, column : column + 1],
            self.thread[entries],
        )

    def extremes(self, cell: int, column: int) -> set[int]:
        """The bits that Max or Min can leave: where a zero comes to stay, the first zero of any thread."""
        assert self.thread is not None
        entries = self.entries_of(cell)
        comes, thread = self.values[entries, column], self.thread[entries]
        there = self.before[cell, column : column + 1]
        result = fold_all(self.cells.plan.call, there, comes[:, None])
        if result.view(self.dtype.numpy)[0] != 0 or there.view(self.dtype.numpy)[0] == 0:
            return {int(result[0])}
        zeros = np.flatnonzero(comes.view(self.dtype.numpy) == 0)
        _, heads = np.unique(thread[zeros], return_index=True)
        return {int(bits) for bits in comes[zeros[heads]]}

    def _sum_depends_on_order(self) -> Mask:
        assert self.thread is not None
        cells = self.cells
        undecided = ~sums.exact_whatever_order(self.before, self.values, cells.start, self.dtype)
        matters = undecided & (cells.count > sums.MOST_EXACT) & ~self._one_thread()
        for group in self.alike(np.flatnonzero(undecided & (cells.count <= sums.MOST_EXACT))):
            matters[group.numbers] = group.depends_on_order(self.dtype)
        return matters

    def _one_thread(self) -> Mask:
        """Per cell: all writers are accesses of one thread."""
        assert self.thread is not None
        first = np.repeat(self.thread[self.cells.start], self.cells.count)
        return ~self.per_cell_any(self.thread != first)

    def alike(self, numbers: Lanes) -> list[Alike]:
        """These cells in groups of the same count of writers and the same pattern of threads."""
        assert self.thread is not None
        found = []
        for count in np.unique(self.cells.count[numbers]):
            same = numbers[self.cells.count[numbers] == count]
            entries = self.cells.start[same][:, None] + np.arange(count)
            pattern = _pattern(self.thread[entries])
            # One number per pattern: a digit below MOST_EXACT for each writer.
            code = pattern @ sums.MOST_EXACT ** np.arange(count)
            for kind in np.unique(code):
                part = np.flatnonzero(code == kind)
                thread = tuple(int(t) for t in pattern[part[0]])
                found.append(Alike(same[part], thread, self.before[same[part]], self.values[entries[part]]))
        return found


@dataclass(frozen=True)
class Alike:
    """Cells whose writers are as many and share threads in the same way."""

    numbers: Lanes
    thread: tuple[int, ...]
    before: Array  # [cells, columns]
    values: Array  # [cells, writers, columns]

    def depends_on_order(self, dtype: ElementType) -> Mask:
        """Per cell: two orders give different sums in some column."""
        matters = np.zeros(len(self.numbers), np.bool_)
        first: Array | None = None
        for total in sums.sums(self.before, self.values, self.thread, dtype):
            first = total if first is None else first
            matters |= (total != first).any(axis=1)
            if matters.all():
                break
        return matters


def _pattern(thread: Array) -> Array:
    """Threads by the first writer that shares them: (7, 3, 7) becomes (0, 1, 0)."""
    return np.asarray((thread[:, :, None] == thread[:, None, :]).argmax(axis=2))


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
