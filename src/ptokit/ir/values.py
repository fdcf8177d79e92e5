"""What the values of a module are while it is played: pointers, views, tiles that come from outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ptokit.access.plan import Array
from ptokit.core.ub import UbTile
from ptokit.errors import PtoValueError
from ptokit.ir.dialect.types import TileBufType, TileType
from ptokit.ir.errors import OutsideViewError
from ptokit.tensors import FRACTAL_ROWS, LAYOUTS, GlobalTensor

DIMS = 5


@dataclass(frozen=True, eq=False)
class Pointer:
    """A place in global memory: so many elements from the base of an argument."""

    tensor: GlobalTensor
    offset: int = 0

    def moved(self, by: int) -> Pointer:
        """The pointer further on."""
        return Pointer(self.tensor, self.offset + by)

    @property
    def element(self) -> int:
        """The element of the argument's memory."""
        return self.tensor.base + self.offset


@dataclass(frozen=True, eq=False)
class View:
    """Extents and strides on a pointer; the layout, where none is written, follows from them and from the tile."""

    pointer: Pointer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    layout: str | None = None
    made: dict[str, GlobalTensor] = field(default_factory=dict)

    @classmethod
    def of(cls, pointer: Pointer, shape: Sequence[int], strides: Sequence[int], layout: str | None = None) -> View:
        """A view with its dimensions put right: five, ones in front."""
        if len(shape) > DIMS:
            raise PtoValueError(f"a view of {len(shape)} dimensions; {DIMS} are played")
        if layout is not None and layout not in LAYOUTS:
            raise PtoValueError(f"a view in layout {layout}; a vector core has {', '.join(LAYOUTS)}")
        missing = DIMS - len(shape)
        outer = shape[0] * strides[0] if shape else 1
        return cls(pointer, (*(1,) * missing, *shape), (*(outer,) * missing, *strides), layout)

    @classmethod
    def of_tensor(cls, tensor: GlobalTensor) -> View:
        """All of a tensor."""
        layout = None if tensor.layout == "nd" else tensor.layout
        return cls(Pointer(tensor), tensor.shape, tensor.stride, layout)

    def part(self, offsets: Sequence[int], sizes: Sequence[int]) -> View:
        """A part of it."""
        front = DIMS - len(offsets)
        start, extent = (*(0,) * front, *offsets), (*self.shape[:front], *sizes)
        for at, (first, count, size) in enumerate(zip(start, extent, self.shape, strict=True)):
            if first < 0 or count < 0 or first + count > size:
                raise OutsideViewError(
                    f"dimension {at - front} of the part goes from {first} to {first + count}; the view has 0 to {size}"
                )
        by = sum(first * step for first, step in zip(start, self.strides, strict=True))
        return View(self.pointer.moved(by), extent, self.strides, self.layout)

    def tensor(self, tile: UbTile, *, follows: bool) -> GlobalTensor:
        """The tensor that an instruction with this tile sees; a transfer follows the tile where both readings fit."""
        layout = self.layout or self._inferred(tile, follows=follows)
        found = self.made.get(layout)
        if found is None:
            whole = self.pointer.tensor
            buffer, base = whole.memory, self.pointer.element
            found = GlobalTensor(buffer, whole.dtype, self.shape, self.strides, layout, base=base)
            self.made[layout] = found
        return found

    def _inferred(self, tile: UbTile, *, follows: bool) -> str:
        if tile.layout == "nz" and self.shape[3:] == (FRACTAL_ROWS, tile.dtype.c0):
            return "nz"
        rows, cols = self.shape[3:]
        down, right = self.strides[3:]
        is_column_major = down == 1 and (right != 1 or cols == 1)
        if rows > 1 and cols > 1:
            return "dn" if is_column_major else "nd"
        return "dn" if follows and tile.layout == "dn" and (rows <= 1 or down == 1) else "nd"


@dataclass(eq=False)
class Outside:
    """A tile that comes from outside: it is made when it is first used, wherever it has been placed by then."""

    name: str
    type: TileBufType | TileType
    values: Array | None
    valid: tuple[int, int] | None = None
    tile: UbTile | None = None

    def made(self, make: Callable[[Outside], UbTile]) -> UbTile:
        """The tile."""
        if self.tile is None:
            self.tile = make(self)
        return self.tile
