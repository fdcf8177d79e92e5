"""The unified buffer: bytes, a shadow that knows who wrote each of them, and the tiles that lie in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ptokit.access.plan import Array
from ptokit.core.pipes import Instruction, Site, Touch
from ptokit.core.regions import Region, of_tile
from ptokit.errors import PtoValueError
from ptokit.tensors import DYNAMIC, Tile, whole

BACKING = 1 << 20
"""Bytes that are simulated: a tile past the end of the chip still has some place to be wrong in."""
HOST_BACKING = 1 << 26
"""The same where tiles live in host memory (cpu)."""
GRAIN = 32
SLACK = 1 << 16
"""Behind the last byte: the gap after the last row of a rectangle."""
NOBODY = -1


class UbTile(Tile):
    """A tile in the unified buffer of a simulated core. Its memory changes when instructions run."""

    def __init__(
        self, ub: UnifiedBuffer, site: Site, name: str | None, dtype: object, *shape: Any, **more: Any
    ) -> None:
        super().__init__(dtype, *shape, **more)
        self.ub = ub
        self.site = site
        self.number = len(ub.tiles)
        self.given_name = name
        self.address = 0
        self.shifted = 0
        self.is_manual = False
        self.is_placed = False
        self._frozen: dict[tuple[int, ...], Tile] = {}
        self._regions: dict[tuple[int, ...], list[Region]] = {}

    @property
    def name(self) -> str:
        """What the kernel calls it."""
        if self.given_name:
            return self.given_name
        return self.site.target or f"tile {self.number}"

    @property
    def end(self) -> int:
        """One past its last byte."""
        return self.address + self.nbytes

    def put(self, address: int) -> None:
        """Place it there."""
        self.address, self.is_placed = address, True
        self.storage = self.ub.view(address, self.rows * self.cols, self.dtype.numpy)
        self._frozen.clear()
        self._regions.clear()

    def frozen(self) -> Tile:
        """The tile as it is now: its valid extents may change later."""
        key = self._valid
        found = self._frozen.get(key)
        if found is None:
            found = Tile(
                self.dtype,
                self.rows,
                self.cols,
                self.declared_valid,
                self.layout,
                self.loc,
                self.fractal,
                data=self.storage,
            )
            if DYNAMIC in self.declared_valid and self.is_known:
                found.set_valid(*self.valid)
            self._frozen[key] = found
        return found

    def regions(self) -> list[Region]:
        """The bytes of its valid region."""
        key = self._valid
        found = self._regions.get(key)
        if found is None:
            found = self._regions[key] = of_tile(self, self.address)
        return found

    def store(self, values: object) -> None:
        """Only instructions write a tile of a core."""
        raise PtoValueError(
            f"{self.name} lives on the simulated core: write it with an instruction (k.tload, k.set, ...)"
        )

    def look(self) -> Array:
        """A copy of its memory as it is now, which no instruction takes part in."""
        return self.storage.copy()

    def __repr__(self) -> str:
        return super().__repr__().replace("Tile(", f"{self.name}(", 1)


def touch(tile: UbTile, *, writes: bool, as_index: bool = False, regions: Sequence[Region] | None = None) -> Touch:
    """An access of a tile where it lies now: its valid region, or a part."""
    where = list(tile.regions() if regions is None else regions)
    return Touch(where, writes, tile, address=tile.address, as_index=as_index)


class NoRoomError(Exception):
    """A tile lies so far out that nothing of it can be simulated."""

    def __init__(self, tile: UbTile) -> None:
        super().__init__(tile)
        self.tile = tile


class UnifiedBuffer:
    """The on-chip memory of one core."""

    def __init__(self, fill: int, backing: int = BACKING) -> None:
        self.backing = backing
        self.bytes = np.zeros(backing + SLACK, np.uint8)
        if fill:
            self.bytes[: 256 << 10] = fill
        self.writer = np.zeros(backing + SLACK, np.int32)
        """Per byte: 1 + the number of the instruction that wrote it last, in the order of the program; 0 is nobody."""
        self.tiles: list[UbTile] = []
        self.free = 0

    def view(self, address: int, count: int, dtype: np.dtype[Any]) -> Array:
        """So many elements from an address on."""
        return np.asarray(self.bytes[address : address + count * dtype.itemsize].view(dtype))

    def add(self, tile: UbTile, at: object, shift: int = 0) -> None:
        """Place a new tile: where the kernel says, or behind the others (a mutation shifts it)."""
        self.tiles.append(tile)
        address = self._next_free(tile.nbytes) if at is None else address_of(at)
        self.place(tile, address + shift, manual=at is not None)
        tile.shifted = shift

    def place(self, tile: UbTile, address: int, *, manual: bool) -> None:
        """Put a tile there."""
        if address + tile.nbytes > self.backing:
            tile.address = address
            raise NoRoomError(tile)
        tile.is_manual = manual
        tile.put(address)

    def _next_free(self, nbytes: int) -> int:
        """The lowest address with room, clear of every tile so far."""
        taken = sorted((one.address - one.shifted, one.end - one.shifted) for one in self.tiles[:-1] if one.is_placed)
        at = 0
        for low, high in taken:
            if at + nbytes <= low:
                break
            at = max(at, -(-high // GRAIN) * GRAIN)
        return at

    def wrote(self, tile: UbTile, regions: Sequence[Region], instruction: Instruction) -> None:
        """The program's order of writes: this instruction wrote these bytes of the tile."""
        for region in regions:
            region.of(self.writer)[...] = instruction.number + 1

    def wrote_bytes(self, tile: UbTile, region: Region, instruction: Instruction) -> None:
        """A part of a tile."""
        self.writer[region.low : region.high] = instruction.number + 1


def address_of(given: object) -> int:
    """An address in bytes; whether it is aligned is judged as a finding."""
    address = whole(given, "the address of a tile")
    if address < 0:
        raise PtoValueError(f"the address of a tile is {address}; it must be at least 0")
    return address
