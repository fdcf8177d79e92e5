"""Arguments that are made up for a dry run: memory as large as the views say, distinct indices, small extents."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects import builtin, scf

from ptokit.access.plan import Array
from ptokit.dtypes import element_type
from ptokit.ir.arguments import Argument, Entry
from ptokit.ir.dialect import ops
from ptokit.ir.dialect.attributes import word
from ptokit.ir.dialect.types import TileBufType
from ptokit.ir.operands import Lie, Numbers, dims_in, is_view, lie_of, packed
from ptokit.ir.shortened import ends, reach
from ptokit.tensors import DYNAMIC, GlobalTensor

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from ptokit.ir.module import Module

MOST_BYTES = 1 << 28
"""More memory than this is not made up."""
LEAST_ELEMENTS = 1 << 10
MOST_SLOTS = 1 << 12
DIMS = 5


class MadeUp:
    """Arguments for a function: as small as may be, as large as its views say."""

    def __init__(self, module: Module, entry: Entry, size: int, blocks: int, growth: int) -> None:
        self.module, self.entry, self.size, self.growth = module, entry, size, growth
        self.inside = list(entry.region.walk())
        self.numbers = Numbers()
        self.is_shortened = False
        """Some view is larger than what is made up for it."""
        for one in entry.arguments:
            if one.kind == "scalar":
                self.numbers.known[one.value] = self._scalar(one)
        self._bound_loops(blocks)
        self.slots = self._slots()

    def arguments(self) -> dict[str, Any]:
        """By name."""
        made = {one.name: self._made(one) for one in self.entry.needed}
        every = [one for given in made.values() for one in (given if isinstance(given, list) else [given])]
        total = sum(one.nbytes for one in every if isinstance(one, np.ndarray))
        if total > MOST_BYTES:
            raise MemoryError(f"its views need {total} bytes, more than are made up for a dry run")
        return made

    def _made(self, one: Argument) -> Any:
        if one.kind == "scalar":
            return self.numbers.known[one.value]
        if one.kind == "pointer":
            return self._values(self._elements(one), one.dtype)
        dims = self._dims(one)
        if one.kind == "group":
            return [self._view(one, dims) for _ in range(self._ranks(one, dims))]
        return self._view(one, dims) if one.kind == "view" else self._values(prod(dims), one.dtype).reshape(dims)

    def _view(self, one: Argument, dims: tuple[int, ...]) -> Any:
        """An array; of a large view its two ends."""
        strides = packed(Lie(dims, None))
        there = ends(dims, strides)
        if there == dims or len(dims) > DIMS:
            return self._values(prod(dims), one.dtype).reshape(dims)
        self.is_shortened = True
        front = DIMS - len(dims)
        shape, stride = (*(1,) * front, *there), (*(DYNAMIC,) * front, *strides)
        return GlobalTensor(self._values(reach(there, strides), one.dtype), one.dtype, shape, stride)

    def _ranks(self, one: Argument, dims: tuple[int, ...]) -> int:
        """As many ranks as there are rows for in what the collective takes apart, or puts together."""
        counts = [2]
        for use in one.value.uses:
            op = use.operation
            if isinstance(op, ops.CommTScatterOp | ops.CommTGatherOp):
                rows = (1, 1, *lie_of(op.operands[0], self.numbers).dims)[-2]
                counts.append((self.size if rows == DYNAMIC else rows) // max((1, 1, *dims)[-2], 1))
        return max(counts[-1], 1)

    def _dims(self, one: Argument) -> tuple[int, ...]:
        """Extents that are open: what fits."""
        most: tuple[int, ...] = ()
        if isinstance(one.value.type, TileBufType):
            most = (one.value.type.rows, one.value.type.cols)
        wanted = one.dims or ()
        return tuple(
            (min(self.size, most[at]) if most else self.size) if extent == DYNAMIC else extent
            for at, extent in enumerate(wanted)
        )

    def _values(self, count: int, dtype: str) -> Array:
        """Distinct as far as may be, and slots of every table that is indexed."""
        made = element_type(dtype)
        if count * made.itemsize > MOST_BYTES:
            raise MemoryError(f"its views need {count * made.itemsize} bytes, more than are made up for a dry run")
        few = min(count, 1 << 16)
        values = np.arange(few, dtype=np.int64) % min(self.slots, 1 << (8 * made.itemsize - 1))
        out = np.zeros(count, made.numpy)
        out[:few] = values.astype(made.numpy)
        return out

    # Numbers

    def _scalar(self, one: Argument) -> int | float:
        kind = one.value.type
        if not isinstance(kind, builtin.IntegerType | builtin.IndexType):
            return 1.0
        if isinstance(kind, builtin.IntegerType) and kind.width.data == 1:
            return int(self.size > 2)
        return min([self.size, *_limits(one.value)])

    def _bound_loops(self, blocks: int) -> None:
        """A loop's variable is as large as it gets; so is the number of the block."""
        for op in self.inside:
            if isinstance(op, ops.GetBlockIdxOp):
                self.numbers.known[op.index] = blocks - 1
            elif isinstance(op, ops.GetBlockNumOp):
                self.numbers.known[op.number] = blocks
            elif isinstance(op, scf.ForOp):
                first, last, step = (self.numbers.whole(value) for value in (op.lb, op.ub, op.step))
                if first is not None and last is not None and step:
                    rounds = range(first, last, step)
                    self.numbers.known[op.body.blocks[0].args[0]] = rounds[-1] if rounds else first

    # Memory

    def _elements(self, one: Argument) -> int:
        """As many as the views on a pointer reach."""
        found = [LEAST_ELEMENTS * self.growth]
        todo: list[tuple[SSAValue, int]] = [(one.value, 0)]
        while todo:
            value, offset = todo.pop()
            for use in value.uses:
                op = use.operation
                if isinstance(op, ops.AddPtrOp):
                    todo.append((op.moved, offset + max(self.numbers.extent(op.offset), 0)))
                elif isinstance(op, ops.MakeTensorViewOp):
                    found.append(offset + self._reach(op.view))
                elif isinstance(op, ops.LoadScalarOp | ops.StoreScalarOp):
                    found.append(offset + max(self.numbers.extent(op.offset), 0) + 1)
        return max(found)

    def _reach(self, view: SSAValue) -> int:
        lie = lie_of(view, self.numbers)
        dims = tuple(max(extent, 1) if extent != DYNAMIC else self.size for extent in lie.dims)
        strides = tuple(step if step != DYNAMIC else self.size for step in packed(lie))
        if len(strides) != len(dims):
            return LEAST_ELEMENTS
        there = ends(dims, strides)
        self.is_shortened = self.is_shortened or there != dims
        return reach(there, strides)

    def _slots(self) -> int:
        """The fewest slots of a table that is indexed."""
        counts = []
        for op in self.inside:
            if isinstance(op, ops.MScatterOp | ops.MGatherOp) and is_view(op.mem.type):
                dims = [one if one != DYNAMIC else self.size for one in lie_of(op.mem, self.numbers).dims]
                is_row = word(op.coalesce, "row") == "row"
                counts.append(prod(dims[:-1]) if is_row and len(dims) > 1 else prod(dims))
        return max(min([*counts, MOST_SLOTS]), 1)


def _limits(value: SSAValue, depth: int = 0) -> Iterator[int]:
    """What a number must not exceed: it becomes the valid extent of a tile, or a part of a static view."""
    for use in value.uses:
        op = use.operation
        if isinstance(op, ops.AllocTileOp) and isinstance(op.tile.type, TileBufType):
            if value is op.valid_row:
                yield op.tile.type.rows
            elif value is op.valid_col:
                yield op.tile.type.cols
        elif isinstance(op, ops.SetValidShapeOp) and isinstance(op.tile.type, TileBufType):
            yield op.tile.type.rows if value is op.row else op.tile.type.cols
        elif isinstance(op, ops.PartitionViewOp):
            dims = dims_in(op.view.type)
            yield from (most for one, most in zip(op.sizes, dims, strict=False) if one is value and most != DYNAMIC)
        elif op.name in ("arith.index_cast", "arith.extsi", "arith.extui", "arith.trunci") and depth < 8:
            yield from _limits(op.results[0], depth + 1)
