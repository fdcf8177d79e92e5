"""One instruction that moves data in many steps: parts of tensors through parts of tiles, each step after another one.

What makes the steps says which part goes where and what it waits for; here are their bytes, their work and their cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ptokit.core import transfers
from ptokit.core.block import Block, Event
from ptokit.core.gm import Place
from ptokit.core.pipes import MTE2, MTE3, Instruction, Step, Touch, V
from ptokit.core.regions import Region, of_tensor, of_tile, solid
from ptokit.core.ub import UbTile
from ptokit.core.vector import NOTHING_ASKED, OPS, Wanted
from ptokit.errors import PtoValueError
from ptokit.tensors import GlobalTensor, Tile

Box = tuple[slice, slice, slice, slice, slice]
"""Five ranges: a part of a tensor."""


@dataclass(frozen=True, eq=False)
class TilePart:
    """The first rows and columns of a tile: what one step moves, whatever the tile's own valid extents are."""

    tile: UbTile
    frozen: Tile
    regions: list[Region]
    address: int

    @classmethod
    def of(cls, tile: UbTile, rows: int, cols: int) -> TilePart:
        """So many rows and columns of a tile where it lies now."""
        record = (tile.dtype, tile.rows, tile.cols, (rows, cols), tile.layout, tile.loc, tile.fractal)
        frozen = Tile(*record, data=tile.storage)
        return cls(tile, frozen, of_tile(frozen, tile.address), tile.address)

    def touch(self, *, writes: bool) -> Touch:
        """An access of these bytes."""
        return Touch(self.regions, writes, self.tile, address=self.address)


@dataclass(frozen=True, eq=False)
class TensorPart:
    """A box of a tensor: its bytes, how a DMA moves them, and its elements on both sides of the caches."""

    place: Place
    box: Box
    region: Region
    bursts: tuple[int, int]

    @classmethod
    def of(cls, place: Place, box: Box) -> TensorPart:
        """This part of a tensor in ND or DN."""
        tensor = place.tensor
        extents = [part.stop - part.start for part in box]
        rows, cols, size = math.prod(extents[:4]), extents[4], tensor.dtype.itemsize
        region = _rectangle(place, box, extents)
        if region is None:
            first = [part.start for part in box]
            region = of_tensor(tensor.partition(first, extents), place.buffer.number, place.offset)
        if tensor.layout == "dn":
            return cls(place, box, region, (cols, rows * size))
        return cls(place, box, region, (1, region.nbytes) if region.is_solid else (rows, cols * size))

    def touch(self, *, writes: bool) -> Touch:
        """An access of these bytes."""
        return Touch([self.region], writes, self.place.tensor)


def _rectangle(place: Place, box: Box, extents: Sequence[int]) -> Region | None:
    """Rows (DN: columns) of neighbouring elements, one pitch apart; None where the part is no such rectangle."""
    tensor: GlobalTensor = place.tensor
    if math.prod(extents[:3]) != 1:
        return None
    down, across = (4, 3) if tensor.layout == "dn" else (3, 4)
    size, stride = tensor.dtype.itemsize, place.stride
    length, count, pitch = extents[across] * size, extents[down], stride[down] * size
    if (extents[across] > 1 and stride[across] != 1) or (count > 1 and pitch < length):
        return None
    first = tensor.base + sum(part.start * step for part, step in zip(box, stride, strict=True))
    low, space = place.offset + first * size, place.buffer.number
    if count == 1 or pitch == length:
        return solid(space, low, low + count * length)
    return Region(space, low, low + (count - 1) * pitch + length, length, count, pitch)


@dataclass(eq=False)
class Moves:
    """The steps of one instruction, as they are issued."""

    block: Block
    instruction: Instruction
    parts: dict[tuple[int, int, int], TilePart] = field(default_factory=dict)

    def tile(self, tile: UbTile, rows: int, cols: int) -> TilePart:
        """So many rows and columns of a tile, made once."""
        key = (tile.number, rows, cols)
        found = self.parts.get(key)
        if found is None:
            found = self.parts[key] = TilePart.of(tile, rows, cols)
        return found

    def load(self, to: TilePart, source: TensorPart, after: Step | None = None, event: int = 0) -> Step:
        """TLOAD on MTE2: once the step that used the tile before has run."""
        block, place = self.block, source.place
        # A DMA does not look into the data cache of a5.
        there = (place.on_host if block.target == "a5" else place.on_device)[source.box]

        def work() -> None:
            transfers.load(to.frozen, there)
            block.spoil(to.address, to.tile.end)

        touches = [source.touch(writes=False), to.touch(writes=True)]
        step = self._issue(MTE2, work, touches, ("load", *source.bursts), after, event)
        self._wrote(to, step)
        return step

    def store(self, to: TensorPart, source: TilePart, after: Step, event: int = 0) -> Step:
        """TSTORE on MTE3, once the step that filled the tile has run."""
        views = to.place.on_device[to.box], to.place.on_host[to.box]

        def work() -> None:
            transfers.store(source.frozen, views, adds=False)

        touches = [source.touch(writes=False), to.touch(writes=True)]
        return self._issue(MTE3, work, touches, ("store", *to.bursts), after, event)

    def fold(self, name: str, into: TilePart, comes: TilePart, after: Step, event: int = 0) -> Step:
        """A vector instruction on V: `into = into op comes`, once that has been loaded."""
        block, op, wanted = self.block, OPS[name], Wanted.of(into.frozen)

        def work() -> None:
            sources = [transfers.take(one.frozen).view(one.frozen.dtype.numpy) for one in (into, comes)]
            out = op.compute(wanted, NOTHING_ASKED, *sources)
            transfers.put(into.frozen, out.view(into.frozen.dtype.bits))
            block.spoil(into.address, into.tile.end)

        touches = [into.touch(writes=False), comes.touch(writes=False), into.touch(writes=True)]
        count = math.prod(into.frozen.valid)
        step = self._issue(V, work, touches, ("vector", name, count, into.frozen.dtype.itemsize), after, event)
        self._wrote(into, step)
        return step

    def _issue(
        self,
        pipe: int,
        work: Callable[[], None],
        touches: list[Touch],
        cost: object,
        after: Step | None,
        event: int,
    ) -> Step:
        block = self.block
        if not block.has_pipes:
            pipe = 0
        step = block.prepare(pipe, self.instruction, None if block.gm.is_hollow else work, touches)
        step.cost = cost
        if after is not None and after.pipe != pipe:
            step.awaits, step.flag = after, (after.pipe, pipe, event)
        return block.send(step)

    def _wrote(self, part: TilePart, step: Step) -> None:
        block, one = self.block, self.instruction
        block.writers[one.number] = step
        written = one.facts.setdefault("also_writes", {})
        written[part.tile.number] = (part.tile, part.address)
        block.ub.wrote(part.tile, part.regions, one)

    def drain(self, sink: int, last: Step) -> Event:
        """The pipe goes no further until the last step has run; the event is that step's."""
        block = self.block
        if block.has_pipes and last.pipe != sink:
            block.wait_for(self.instruction, sink, last, "sync", (last.pipe, sink, 0))
        return Event(last, last.pipe, block)


def writable(place: Place) -> None:
    """Refuse memory that nobody may write."""
    if not place.tensor.memory.flags.writeable:
        raise PtoValueError(f"the memory of {place.tensor!r} is read-only: pass a writable array to launch(...)")
