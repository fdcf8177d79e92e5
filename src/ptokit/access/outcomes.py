"""What may legally stand in the table after the call, slot by slot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptokit.access import sums
from ptokit.access.cells import Cells
from ptokit.access.collide import Collisions, Verdict
from ptokit.access.commit import bits_of, memory_bits, window
from ptokit.access.plan import Array, Lanes, Mask
from ptokit.dtypes import describe
from ptokit.errors import PtoIndexError, PtoTypeError, PtoValueError
from ptokit.findings import json_value
from ptokit.tensors import GlobalTensor, whole

AddressOf = Callable[[int, int], int]

SNAPSHOT_BYTES = 64 << 20
"""Buffers up to this size are remembered whole; of larger ones, what the call wrote."""


@dataclass(frozen=True)
class After:
    """The memory as one execution left it: what it wrote, and (for all but huge buffers) everything."""

    written: Cells
    bits: Array  # per written cell
    whole: Array | None

    @classmethod
    def of(cls, written: Cells) -> After:
        """Remember the memory now."""
        memory = memory_bits(written.plan.call)
        whole_memory = memory.copy() if memory.nbytes <= SNAPSHOT_BYTES else None
        return cls(written, window(memory, written.length)[written.address], whole_memory)

    def at(self, address: int) -> int:
        """The bits of one element."""
        cell, column, inside = locate(self.written, np.array([address]))
        if inside[0]:
            return int(self.bits[cell[0], column[0]])
        memory = memory_bits(self.written.plan.call) if self.whole is None else self.whole
        return int(memory[address])

    def differences(self, dump: Array) -> Lanes:
        """Where a dump differs; of a huge buffer, what was not written is compared with the table as it is now."""
        if self.whole is not None:
            return np.flatnonzero(dump != self.whole)
        elsewhere = np.flatnonzero(dump != memory_bits(self.written.plan.call))
        elsewhere = elsewhere[~locate(self.written, elsewhere)[2]]
        cell, column = np.nonzero(window(dump, self.written.length)[self.written.address] != self.bits)
        return np.sort(np.concatenate([elsewhere, self.written.address[cell] + column]))


def locate(cells: Cells, address: Lanes) -> tuple[Lanes, Lanes, Mask]:
    """Per address: the cell that it lies in, the column there, and whether there is one."""
    if not len(cells.count):
        nothing = np.zeros(len(address), np.int64)
        return nothing, nothing, np.zeros(len(address), np.bool_)
    cell = np.searchsorted(cells.address, address, side="right") - 1
    column = address - cells.address[cell]
    return cell, column, (cell >= 0) & (column < cells.length)


class Outcomes:
    """The set of legal results of one call: `.values(slot)`, `.bounds(slot)`, `.contains(dump)`.

    What no two lanes wrote has one legal value: the one that the call left there.

    >>> import ptokit as pto
    >>> src, idx = pto.Tile("float32", 2, 8), pto.Tile("int32", 1, 8, valid=(1, 2))
    >>> src.store(np.arange(16.0).reshape(2, 8))
    >>> idx.store([[3, 3]])
    >>> table = pto.GlobalTensor(np.zeros((4, 8), np.float32), "float32", shape=(1, 1, 1, 4, 8))
    >>> rep = pto.mscatter(table, src, idx, conflict="default", target="a5")
    >>> rep.outcomes.slots, rep.outcomes.values(3)
    ([3], [np.float32(0.0), np.float32(8.0)])
    """

    def __init__(self, found: Collisions, after: After, address_of: AddressOf) -> None:
        self._found = found
        self._after = after
        self._address_of = address_of

    @property
    def slots(self) -> list[int]:
        """Every slot with more than one writer, ascending."""
        return [int(slot) for slot in self._found.by_slot.slot]

    @property
    def exact(self) -> bool:
        """Every set is exact; False where some sums are known by their bounds only."""
        return not self._found.bounded.any()

    @sums.quiet
    def values(self, slot: int, column: int = 0) -> list[np.generic]:
        """Every legal value of an element, ascending (a NaN last)."""
        address = self._address(slot, column)
        legal = self.at(address)
        if legal is None:
            legal = {self._after.at(address)}
        if not legal:
            raise PtoValueError(
                f"slot {slot}, column {column} has too many writers to enumerate the set of its sums; "
                f"ask for bounds({slot}, {column})"
            )
        return list(self._numbers(legal))

    @sums.quiet
    def bounds(self, slot: int, column: int = 0) -> tuple[np.generic, np.generic]:
        """The lowest and the highest legal value of an element."""
        cell, at, inside = self._contested(self._address(slot, column))
        if inside and self._found.bounded[cell, at]:
            low, high, _ = self._sum_bounds(np.array([cell]), np.array([at]))
            return low[0], high[0]
        values = self.values(slot, column)
        return values[0], values[-1]

    @sums.quiet
    def contains(self, table: object) -> bool:
        """Whether this table is a legal result: an array like the whole buffer, or a GlobalTensor on one."""
        return not len(self._illegal(self._dump(table)))

    def _illegal(self, dump: Array) -> Lanes:
        """Where a dump holds what no legal execution leaves."""
        differs = self._after.differences(dump)
        if self._adds_floats:
            differs = differs[~self._same_nan(differs, dump)]
        cell, column, inside = locate(self._found.cells, differs)
        contested = np.flatnonzero(inside)
        legal = np.zeros(len(differs), np.bool_)
        legal[contested] = self._legal_bits(cell[contested], column[contested], dump[differs[contested]])
        return differs[~legal]

    @sums.quiet
    def why_not(self, table: object) -> str | None:
        """Why a dump is not a legal result: its first element that is not, and what would be; None where it is.

        >>> import ptokit as pto
        >>> src, idx = pto.Tile("int32", 1, 8, valid=(1, 2)), pto.Tile("int32", 1, 8, valid=(1, 2))
        >>> src.store([[5, 6]])
        >>> idx.store([[3, 3]])
        >>> table = pto.GlobalTensor(np.zeros(8, np.int32), "int32", shape=(1, 1, 1, 1, 8))
        >>> rep = pto.mscatter(table, src, idx, coalesce="elem", conflict="default", target="a5")
        >>> rep.outcomes.why_not(np.array([0, 0, 0, 9, 0, 0, 0, 0], np.int32))
        'element 3 of the buffer is 9; legal: 5, 6'
        """
        dump = self._dump(table)
        illegal = self._illegal(dump)
        if not len(illegal):
            return None
        at = int(illegal[0])
        legal = self.at(at)
        number = self._found.dtype.numpy
        if legal is None:
            expected = str(np.array([self._after.at(at)], self._found.dtype.bits).view(number)[0])
        elif legal:
            expected = ", ".join(str(v) for v in self._numbers(legal))
        else:
            cell, column, _ = self._contested(at)
            low, high, _ = self._sum_bounds(np.array([cell]), np.array([column]))
            expected = f"{low[0]} to {high[0]}"
        return f"element {at} of the buffer is {dump[at : at + 1].view(number)[0]}; legal: {expected}"

    @sums.quiet
    def at(self, address: int) -> set[int] | None:
        """The legal bits of one element of the buffer, or None where at most one lane writes it.

        The set is empty where only its bounds are known.
        """
        cell, column, inside = self._contested(address)
        if not inside:
            return None
        return set() if self._found.bounded[cell, column] else self._legal(cell, column)

    def verdict(self, slot: int) -> str:
        """`benign`, `defined`, `order-sensitive`, `undefined`, or `single` where at most one lane writes.

        The worst of the slot's elements.
        """
        self._address(slot, 0)
        worst = self._found.by_slot.of(slot)
        return "single" if worst is None else worst.word

    @sums.quiet
    def facts(self, cell: int, column: int) -> dict[str, Any]:
        """The set of a contested cell's column, or its bounds, for a finding."""
        if not self._found.bounded[cell, column]:
            return {"exact": True, "outcomes": json_value(self._numbers(self._legal(cell, column)))}
        low, high, _ = self._sum_bounds(np.array([cell]), np.array([column]))
        return {"exact": False, "bounds": [json_value(low[0]), json_value(high[0])]}

    @property
    def _adds_floats(self) -> bool:
        return self._found.cells.plan.call.adds_floats

    def _same_nan(self, address: Lanes, dump: Array) -> Mask:
        """Per difference: both are a NaN that an addition may have made; its payload is not promised."""
        cell, column, inside = locate(self._after.written, address)
        number, written = self._found.dtype.numpy, np.flatnonzero(inside)
        left = self._after.bits[cell[written], column[written]]
        same = np.zeros(len(address), np.bool_)
        same[written] = np.isnan(dump[address[written]].view(number)) & np.isnan(left.view(number))
        return same

    def _legal_bits(self, cell: Lanes, column: Lanes, bits: Array) -> Mask:
        """Per element of contested cells that differs from this execution: another one could have left these bits."""
        legal = np.zeros(len(cell), np.bool_)
        verdict = self._found.verdicts[cell]
        stores = np.flatnonzero(verdict == Verdict.UNDEFINED)
        if len(stores):
            elements = self._found.elements(cell[stores], column[stores])
            legal[stores] = elements.any_writer(elements.survives & (elements.bits == bits[stores][elements.owner]))
        folds = np.flatnonzero(verdict == Verdict.ORDER_SENSITIVE)
        if len(folds):
            judge = self._legal_sums if self._adds_floats else self._legal_zeros
            legal[folds] = judge(cell[folds], column[folds], bits[folds])
        return legal

    def _legal_zeros(self, cell: Lanes, column: Lanes, bits: Array) -> Mask:
        """Max and Min: only the sign of a zero can differ, and only that of a zero that can come first."""
        elements = self._found.elements(cell, column)
        came = elements.any_writer(elements.is_first_zero & (elements.bits == bits[elements.owner]))
        return np.asarray(came & self._found.mixed_extremes[cell, column])

    def _legal_sums(self, cell: Lanes, column: Lanes, bits: Array) -> Mask:
        legal = np.zeros(len(cell), np.bool_)
        bounded = self._found.bounded[cell, column]
        # Where nothing depends on the order, only this execution's bits are legal, and these differ.
        wide, exact = np.flatnonzero(bounded), np.flatnonzero(~bounded & self._found.undecided[cell, column])
        if len(wide):
            low, high, nan = self._sum_bounds(cell[wide], column[wide])
            number = bits[wide].view(self._found.dtype.numpy)
            legal[wide] = ((number >= low) & (number <= high)) | (np.isnan(number) & nan)
        wanted = sums.canonical(bits[exact], self._found.dtype)
        for group in self._found.elements(cell[exact], column[exact]).alike():
            legal[exact[group.numbers]] = group.can_be(wanted[group.numbers][:, None], self._found.dtype)
        return legal

    def _legal(self, cell: int, column: int) -> set[int]:
        """The bits that may stand in one element, exactly."""
        found = self._found
        left = int(self._after.bits[locate(self._after.written, found.cells.address[[cell]])[0][0], column])
        verdict = found.verdicts[cell]
        elements = found.elements(np.array([cell]), np.array([column]))
        if verdict == Verdict.UNDEFINED:
            return {int(b) for b in elements.bits[elements.survives]}
        if verdict == Verdict.ORDER_SENSITIVE and found.mixed_or_sum(cell, column):
            if not self._adds_floats:
                return {int(b) for b in elements.bits[elements.is_first_zero]}
            (group,) = elements.alike()
            return {int(t[0, 0]) for t in sums.every_total(group.before, group.values, group.thread, found.dtype)}
        return {int(sums.canonical(np.array([left], found.dtype.bits), found.dtype)[0]) if self._adds_floats else left}

    def _sum_bounds(self, cell: Lanes, column: Lanes) -> tuple[Array, Array, Mask]:
        elements = self._found.elements(cell, column)
        return sums.bounds(elements.before, elements.bits, elements.start, self._found.dtype)

    def _numbers(self, legal: set[int]) -> Array:
        number = np.array(sorted(legal), self._found.dtype.bits).view(self._found.dtype.numpy)
        # float32 holds every narrower float exactly, and is what all of them can be cast to.
        sortable = number.astype(np.float32) if self._found.dtype.is_float else number
        return number[np.argsort(sortable, kind="stable")]

    def _address(self, slot: object, column: object) -> int:
        at = self._address_of(whole(slot, "slot"), whole(column, "column"))
        if not 0 <= at < self._found.cells.plan.memory_size:
            raise PtoIndexError(f"slot {slot}, column {column} lies outside the table's memory")
        return at

    def _contested(self, address: int) -> tuple[int, int, bool]:
        cell, column, inside = locate(self._found.cells, np.array([address]))
        return int(cell[0]), int(column[0]), bool(inside[0])

    def _dump(self, table: object) -> Array:
        call = self._found.cells.plan.call
        dtype, size = self._found.dtype, self._found.cells.plan.memory_size
        given = table.memory if isinstance(table, GlobalTensor) else table
        if not isinstance(given, np.ndarray):
            raise PtoTypeError(f"a dump is an ndarray or a GlobalTensor, not {type(table).__name__}")
        if given.dtype.type is not dtype.numpy.type or not given.dtype.isnative:
            raise PtoTypeError(f"the dump is {describe(given.dtype)}; the table holds {dtype}")
        if given.size != size:
            raise PtoValueError(
                f"the dump has {given.size} elements, shape {given.shape}; the whole buffer of {call.table} has {size}"
            )
        return bits_of(np.ascontiguousarray(given).reshape(-1), dtype)
