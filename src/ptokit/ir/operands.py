"""What a text says of its operands before anything runs: numbers that follow from constants, tiles, views.

An extent that only a run knows stays dynamic; the rules of the targets know what to do with it.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects import builtin
from xdsl.ir import Operation

from ptokit.access.plan import Array
from ptokit.dtypes import ELEMENT_TYPES, ElementType, element_type
from ptokit.errors import PtoError
from ptokit.ir.arithmetic import ARITHMETIC, Number
from ptokit.ir.dialect.attributes import word
from ptokit.ir.dialect.ops import AllocTileOp, MakeTensorViewOp, PartitionViewOp, SetValidShapeOp, TAssignOp
from ptokit.ir.dialect.types import (
    DocType,
    GroupType,
    MemrefDocType,
    PartitionTensorViewType,
    TensorViewType,
    TileBuf,
    TileBufType,
    TileType,
    dtype_of,
)
from ptokit.tensors import DYNAMIC, FRACTAL_ROWS, LAYOUTS, GlobalTensor, Tile

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

MOST_DIMS = 5
MOST_TILE_BYTES = 1 << 24
"""No chip has a tile of so many bytes."""
DEEPEST = 200
"""How many ops a number may follow from."""


class Unfit(Exception):  # noqa: N818 - it never leaves the room
    """No tile, or no tensor, of ptokit's can stand for the operand: the reason, and what it is about."""

    def __init__(self, reason: str, about: str = "") -> None:
        super().__init__(reason)
        self.reason, self.about = reason, about


# Numbers


@dataclass
class Numbers:
    """What values are, as far as constants say it; `known` holds those that somebody has chosen.

    >>> from ptokit.ir import parse
    >>> mod = parse("%a = arith.constant 6 : index  %b = arith.muli %a, %a : index")
    >>> Numbers().of(list(mod.walk())[1].results[0])
    36
    """

    known: dict[SSAValue, Number] = field(default_factory=dict)
    _found: dict[SSAValue, Number | None] = field(default_factory=dict)

    def of(self, value: SSAValue, depth: int = 0) -> Number | None:
        """The number, or None where only a run knows it."""
        if value in self.known:
            return self.known[value]
        if value not in self._found:
            self._found[value] = self._computed(value, depth)
        return self._found[value]

    def whole(self, value: SSAValue | None) -> int | None:
        """The same for an integer."""
        found = None if value is None else self.of(value)
        return found if isinstance(found, int) else None

    def extent(self, value: SSAValue | None) -> int:
        """The same for an extent: -1 where it is not known."""
        found = self.whole(value)
        return DYNAMIC if found is None or found < 0 else found

    def _computed(self, value: SSAValue, depth: int) -> Number | None:
        op = value.owner
        if not isinstance(op, Operation) or depth > DEEPEST:
            return None
        dialect, _, name = op.name.partition(".")
        compute = ARITHMETIC.get(name) if dialect == "arith" else None
        if compute is None:
            return None
        given = [self.of(one, depth + 1) for one in op.operands]
        if None in given:
            return None
        try:
            return compute(op, *given)
        except (PtoError, ArithmeticError, KeyError, AssertionError):
            return None


# Tiles


def is_open(kind: Attribute) -> bool:
    """A placeholder that leaves its extents or its element type open."""
    return isinstance(kind, DocType) and (
        kind.dims is None or kind.dtype is None or not isinstance(kind, TileType | MemrefDocType | GroupType)
    )


def is_tile(kind: Attribute) -> bool:
    """A tile, or what the documents write for one."""
    return isinstance(kind, TileBufType | TileType)


def is_view(kind: Attribute) -> bool:
    """A view on global memory, or what the documents write for one."""
    return isinstance(kind, TensorViewType | PartitionTensorViewType | MemrefDocType | builtin.MemRefType)


def is_group(kind: Attribute) -> bool:
    """The tensors of all ranks, as the documents write them."""
    return isinstance(kind, GroupType)


def dtype_in(kind: Attribute) -> str | None:
    """The element type of a tile, a view or a pointer, by its name."""
    if isinstance(kind, builtin.MemRefType):
        return dtype_of(kind.element_type)
    found = getattr(kind, "dtype", None)
    return found if isinstance(found, str) else None


def dims_in(kind: Attribute) -> tuple[int, ...]:
    """The extents of a view, -1 where dynamic."""
    if isinstance(kind, builtin.MemRefType):
        return tuple(kind.get_shape())
    found = getattr(kind, "dims", None)
    return tuple(found) if found else ()


def element_in(kind: Attribute) -> ElementType:
    """The same as one of ptokit's own."""
    name = dtype_in(kind)
    if name not in ELEMENT_TYPES:
        raise Unfit(f"no target has {name}", "dtype")
    made = element_type(name)
    try:
        made.numpy  # noqa: B018 - hifloat8 needs a package that not every Python has
    except PtoError as missing:
        raise Unfit(str(missing), "package") from None
    return made


def tile_of(value: SSAValue, numbers: Numbers) -> Tile:
    """The tile with the valid extents that constants give it; `Unfit` where there is none."""
    kind = value.type
    if isinstance(kind, TileType) and kind.dims is not None and len(kind.dims) == 2:
        rows, cols = kind.dims
        record = TileBuf("vec", "", rows, cols, rows, cols)
    elif isinstance(kind, TileBufType):
        record = kind.data
        if kind.layout not in LAYOUTS:
            raise Unfit(f"a tile with blayout={kind.blayout} and slayout={kind.slayout} is none of ND, DN and NZ")
    else:
        raise Unfit(f"{kind} is no tile")
    layout = kind.layout if isinstance(kind, TileBufType) else "nd"
    return _tile(element_in(kind).name, record, layout, given_valid(value, numbers))


@lru_cache(maxsize=1024)
def _tile(dtype: str, record: TileBuf, layout: str, valid: tuple[int, int]) -> Tile:
    if record.rows * record.cols * element_type(dtype).itemsize > MOST_TILE_BYTES:
        raise Unfit(f"a tile of {record.rows} x {record.cols} {dtype} is larger than any chip's memory")
    declared = (record.v_row, record.v_col)
    try:
        tile = Tile(dtype, record.rows, record.cols, declared, layout, record.loc, record.fractal)
        if DYNAMIC in declared and DYNAMIC not in valid:
            tile.set_valid(*valid)
    except PtoError as wrong:
        raise Unfit(str(wrong)) from None
    return tile


def given_valid(value: SSAValue, numbers: Numbers) -> tuple[int, int]:
    """The valid extents of a tile: those of its type, or what `alloc_tile` was given; -1 where not known."""
    kind = value.type
    if not isinstance(kind, TileBufType):
        return (DYNAMIC, DYNAMIC)
    if DYNAMIC not in kind.valid:
        return kind.valid
    root = root_of(value)
    changed = any(isinstance(use.operation, SetValidShapeOp) for use in root.uses)
    owner = root.owner
    if changed or not isinstance(owner, AllocTileOp):
        return kind.valid
    given = (owner.valid_row, owner.valid_col)
    first, second = (
        numbers.extent(one) if declared == DYNAMIC else declared
        for one, declared in zip(given, kind.valid, strict=True)
    )
    return (first, second)


def root_of(value: SSAValue) -> SSAValue:
    """The tile before `tassign` placed it anew."""
    while isinstance(value.owner, TAssignOp):
        value = value.owner.tile
    return value


# Views


@dataclass(frozen=True)
class Lie:
    """How a view lies in memory: extents, strides in elements (-1: packed, or not known), the layout if written."""

    dims: tuple[int, ...]
    strides: tuple[int, ...] | None
    layout: str | None = None

    def seen_with(self, tile: Tile, *, follows: bool) -> str:
        """The layout; where none is written it follows from extents and strides, and for a transfer from the tile."""
        if self.layout is not None:
            return self.layout
        rows, cols = (1, 1, *self.dims)[-2:]
        if tile.layout == "nz" and (rows, cols) == (FRACTAL_ROWS, tile.dtype.c0):
            return "nz"
        down, right = (1, 1, *self.strides)[-2:] if self.strides else (cols, 1)
        is_column_major = down == 1 and (right not in (1, DYNAMIC) or cols == 1)
        if rows not in (0, 1) and cols not in (0, 1):
            return "dn" if is_column_major else "nd"
        return "dn" if follows and tile.layout == "dn" and (rows in (0, 1) or down == 1) else "nd"


def lie_of(value: SSAValue, numbers: Numbers) -> Lie:
    """Extents from the type and from constants, strides and layout from the view that it is a part of."""
    owner, dims = value.owner, dims_in(value.type)
    if isinstance(owner, PartitionViewOp):
        whole = lie_of(owner.view, numbers)
        sizes = tuple(numbers.extent(one) for one in owner.sizes)
        return Lie(_first_known(dims, sizes), packed(whole), whole.layout)
    if isinstance(owner, MakeTensorViewOp):
        shape = tuple(numbers.extent(one) for one in owner.shape)
        strides = tuple(numbers.extent(one) for one in owner.strides)
        return Lie(_first_known(dims, shape), strides, word(owner.layout))
    return Lie(dims, None)


def _first_known(dims: tuple[int, ...], given: tuple[int, ...]) -> tuple[int, ...]:
    if len(dims) != len(given):
        return dims
    return tuple(there if known == DYNAMIC else known for known, there in zip(dims, given, strict=True))


def packed(lie: Lie) -> tuple[int, ...]:
    """The strides; those that are not known are packed as far as the extents say."""
    if lie.strides is not None and DYNAMIC not in lie.strides:
        return lie.strides
    found = []
    for dim in range(len(lie.dims)):
        below = lie.dims[dim + 1 :]
        given = lie.strides[dim] if lie.strides is not None else DYNAMIC
        dense = DYNAMIC if DYNAMIC in below else prod(below)
        found.append(dense if given == DYNAMIC else given)
    return tuple(found)


def tensor_of(
    value: SSAValue, numbers: Numbers, tile: Tile, *, follows: bool, extents: tuple[int, int] | None = None
) -> GlobalTensor:
    """The view as a tensor on memory that cannot be written; `Unfit` where there is none.

    `extents` stand in for the last two dimensions where only a run knows them, and the tile says what they must be.
    """
    dtype = element_in(value.type)
    lie = lie_of(value, numbers)
    if not lie.dims or len(lie.dims) > MOST_DIMS:
        raise Unfit(f"a view has 1 to {MOST_DIMS} dimensions on the targets, and this one {len(lie.dims)}")
    layout = lie.seen_with(tile, follows=follows)
    if layout not in LAYOUTS:
        raise Unfit(f"no vector core reads the layout {layout}")
    dims = lie.dims
    if extents is not None and DYNAMIC in dims:
        inner = tuple(
            there if has == DYNAMIC else has for has, there in zip(dims[-2:], extents[-len(dims) :], strict=True)
        )
        dims = tuple(1 if one == DYNAMIC else one for one in dims[:-2]) + inner
    return _tensor(dtype.name, dims, lie.strides, layout)


@lru_cache(maxsize=1024)
def _tensor(dtype: str, dims: tuple[int, ...], strides: tuple[int, ...] | None, layout: str) -> GlobalTensor:
    pad = MOST_DIMS - len(dims)
    shape = (1,) * pad + dims
    stride = None if strides is None else (DYNAMIC,) * pad + strides
    try:
        return GlobalTensor(_memory(dtype, shape, stride), dtype, shape, stride, layout)
    except (PtoError, OSError, MemoryError, OverflowError, ValueError) as wrong:
        raise Unfit(str(wrong)) from None


def _memory(dtype: str, shape: tuple[int, ...], stride: tuple[int, ...] | None) -> Array:
    """As much as the view says, and none of it is there: pages that nobody may write cost nothing."""
    kind = element_type(dtype)
    if DYNAMIC in shape:
        return np.zeros(1, kind.numpy)
    outer = max(prod(max(extent, 1) for extent in shape), 1)
    given = stride or ()
    reach = 1 + sum((extent - 1) * step for extent, step in zip(shape, given, strict=False) if extent > 0 and step > 0)
    elements = outer + reach
    nbytes = elements * kind.itemsize
    if nbytes >= 1 << 46:
        raise Unfit(f"a view of {shape} {dtype} is larger than any memory")
    if nbytes <= 1 << 16:
        return np.zeros(elements, kind.numpy)
    pages: Any = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)
    return np.frombuffer(pages, kind.numpy, elements)
