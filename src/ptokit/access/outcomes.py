"""What may legally stand in the table after the call, slot by slot."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ptokit.access import sums
from ptokit.access.collide import Alike, Collisions, Verdict
from ptokit.access.commit import bits_of, memory_bits
from ptokit.access.plan import Array, Lanes, Mask
from ptokit.dtypes import describe
from ptokit.errors import PtoIndexError, PtoTypeError, PtoValueError
from ptokit.findings import json_value
from ptokit.policies import ScatterAtomicOp
from ptokit.tensors import GlobalTensor

AddressOf = Callable[[int, int], int]


class Outcomes:
    """The set of legal results of one call: `.values(slot)`, `.bounds(slot)`, `.contains(dump)`.

    What no two lanes wrote has one legal value: the one that the table holds now.

    >>> import ptokit as pto
    >>> src, idx = pto.Tile("float32", 2, 8), pto.Tile("int32", 1, 8, valid=(1, 2))
    >>> src.store(np.arange(16.0).reshape(2, 8))
    >>> idx.store([[3, 3]])
    >>> table = pto.GlobalTensor(np.zeros((4, 8), np.float32), "float32", shape=(1, 1, 1, 4, 8))
    >>> rep = pto.mscatter(table, src, idx, conflict="default", target="a5")
    >>> rep.outcomes.slots, rep.outcomes.values(3)
    ([3], [np.float32(0.0), np.float32(8.0)])
    """

    def __init__(self, collisions: Collisions, final: Array, address_of: AddressOf) -> None:
        self._found = collisions
        self._final = final  # per contested cell: its bits after this execution
        self._address_of = address_of

    @property
    def slots(self) -> list[int]:
        """Every slot with more than one writer, ascending."""
        return [int(slot) for slot in self._found.by_slot.slot]

    @property
    def exact(self) -> bool:
        """Every set is exact; False where some sums are known by their bounds only."""
        return not self._bounded.any()

    @sums.quiet
    def values(self, slot: int, column: int = 0) -> list[np.generic]:
        """Every legal value of an element, ascending (a NaN last)."""
        cell, at = self._locate(slot, column)
        if cell is None:
            return list(self._numbers(memory_bits(self._found.cells.plan.call)[at : at + 1]))
        if self._bounded[cell]:
            raise PtoValueError(
                f"slot {slot} has {self._found.cells.count[cell]} writers: the set of its sums is not enumerated; "
                f"ask for bounds({slot}, {column})"
            )
        return list(self._numbers(np.array(sorted(self._legal(cell, at)), self._found.dtype.bits)))

    @sums.quiet
    def bounds(self, slot: int, column: int = 0) -> tuple[np.generic, np.generic]:
        """The lowest and the highest legal value of an element."""
        cell, at = self._locate(slot, column)
        if cell is None or not self._bounded[cell]:
            values = self.values(slot, column)
            return values[0], values[-1]
        low, high, _ = self._sum_bounds(cell)
        return low[at], high[at]

    @sums.quiet
    def contains(self, table: object) -> bool:
        """Whether this table is a legal result: an array like the whole buffer, or a GlobalTensor on one."""
        dump = self._dump(table)
        differs = np.flatnonzero(dump != memory_bits(self._found.cells.plan.call))
        cells, columns, inside = self._cells_at(differs)
        if not inside.all():
            return False
        verdicts = self._found.verdicts[cells]
        decided = verdicts < Verdict.ORDER_SENSITIVE
        if decided.any() and not self._same_as_final(cells[decided], columns[decided], dump[differs[decided]]).all():
            return False
        return all(self._cell_holds(int(cell), dump) for cell in np.unique(cells[~decided]))

    @sums.quiet
    def at(self, address: int) -> set[int] | None:
        """The legal bits of one element of the buffer, or None where at most one lane writes it.

        The set is empty where only its bounds are known.
        """
        cells, columns, inside = self._cells_at(np.array([address]))
        if not inside[0]:
            return None
        return set() if self._bounded[cells[0]] else self._legal(int(cells[0]), int(columns[0]))

    def verdict(self, slot: int) -> str:
        """`benign`, `defined`, `order-sensitive`, `undefined`, or `single` where at most one lane writes.

        The worst of the slot's elements.
        """
        worst = self._found.by_slot.of(slot)
        return "single" if worst is None else worst.word

    @sums.quiet
    def facts(self, cell: int, column: int) -> dict[str, Any]:
        """The set of a contested cell's column, or its bounds, for a finding."""
        if not self._bounded[cell]:
            legal = np.array(sorted(self._legal(cell, column)), self._found.dtype.bits)
            return {"exact": True, "outcomes": json_value(self._numbers(legal))}
        low, high, _ = self._sum_bounds(cell)
        return {"exact": False, "bounds": [json_value(low[column]), json_value(high[column])]}

    def _same_as_final(self, cells: Lanes, columns: Lanes, bits: Array) -> Mask:
        return np.asarray(self._comparable(bits) == self._comparable(self._final[cells, columns]))

    def _comparable(self, bits: Array) -> Array:
        """Moved bits as they are; results of a float addition with every NaN as one."""
        call = self._found.cells.plan.call
        if call.atomic is ScatterAtomicOp.Add and self._found.dtype.is_float:
            return sums.canonical(bits, self._found.dtype)
        return bits

    def _cell_holds(self, cell: int, dump: Array) -> bool:
        """A legal value in every column of the cell."""
        first = int(self._found.cells.address[cell])
        bits = dump[first : first + self._found.cells.length]
        if self._bounded[cell]:
            low, high, nan = self._sum_bounds(cell)
            number = bits.view(self._found.dtype.numpy)
            return bool((((number >= low) & (number <= high)) | (np.isnan(number) & nan)).all())
        bits = self._comparable(bits)
        return all(int(bits[column]) in self._legal(cell, column) for column in range(len(bits)))

    def _legal(self, cell: int, column: int) -> set[int]:
        """The bits that may stand there, exactly."""
        found = self._found
        verdict, entries = found.verdicts[cell], found.entries_of(cell)
        if verdict == Verdict.UNDEFINED:
            return {int(b) for b in found.values[entries, column][found.survives[entries]]}
        if verdict < Verdict.ORDER_SENSITIVE:
            return {int(self._final[cell, column])}
        if found.cells.plan.call.atomic is not ScatterAtomicOp.Add:
            return found.extremes(cell, column)
        assert found.thread is not None
        group = Alike(
            np.array([cell]),
            tuple(int(t) for t in found.thread[entries]),
            found.before[cell : cell + 1, column : column + 1],
            found.values[None, entries, column : column + 1],
        )
        return {int(total[0, 0]) for total in sums.sums(group.before, group.values, group.thread, found.dtype)}

    @cached_property
    def _bounded(self) -> Mask:
        """Per cell: too many writers to try every order of a sum that depends on it."""
        found = self._found
        is_sum = found.cells.plan.call.atomic is ScatterAtomicOp.Add
        many = found.cells.count > sums.MOST_EXACT
        return np.asarray((found.verdicts == Verdict.ORDER_SENSITIVE) & many & is_sum)

    def _sum_bounds(self, cell: int) -> tuple[Array, Array, Mask]:
        found = self._found
        return sums.bounds(found.before[cell], found.values[found.entries_of(cell)], found.dtype)

    def _numbers(self, bits: Array) -> Array:
        number = bits.view(self._found.dtype.numpy)
        # float32 holds every narrower float exactly, and is what all of them can be cast to.
        sortable = number.astype(np.float32) if self._found.dtype.is_float else number
        return number[np.argsort(sortable, kind="stable")]

    def _locate(self, slot: int, column: int) -> tuple[int | None, int]:
        """(cell, column in it) of an element, or (None, its place in memory)."""
        at = self._address_of(slot, column)
        if not 0 <= at < self._found.cells.plan.memory_size:
            raise PtoIndexError(f"slot {slot}, column {column} lies outside the table's memory")
        cells, columns, inside = self._cells_at(np.array([at]))
        return (int(cells[0]), int(columns[0])) if inside[0] else (None, at)

    def _cells_at(self, addresses: Lanes) -> tuple[Lanes, Lanes, Mask]:
        """Per address: the contested cell that it lies in, the column there, and whether there is one."""
        cells = self._found.cells
        if not self._found.count:
            nothing = np.zeros(len(addresses), np.int64)
            return nothing, nothing, np.zeros(len(addresses), np.bool_)
        cell = np.searchsorted(cells.address, addresses, side="right") - 1
        column = addresses - cells.address[cell]
        return cell, column, (cell >= 0) & (column < cells.length)

    def _dump(self, table: object) -> Array:
        call = self._found.cells.plan.call
        dtype, size = self._found.dtype, self._found.cells.plan.memory_size
        given = table.memory if isinstance(table, GlobalTensor) else table
        if not isinstance(given, np.ndarray):
            raise PtoTypeError(f"a dump is an ndarray or a GlobalTensor, not {type(table).__name__}")
        if given.dtype.type is not dtype.numpy.type:
            raise PtoTypeError(f"the dump is {describe(given.dtype)}; the table holds {dtype}")
        if given.size != size:
            raise PtoValueError(
                f"the dump has {given.size} elements, shape {given.shape}; the whole buffer of {call.table} has {size}"
            )
        return bits_of(np.ascontiguousarray(given).reshape(-1), dtype)
