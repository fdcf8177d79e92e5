"""The handle `k` of a kernel: its methods are the instructions of a vector core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from ptokit.access.call import Access
from ptokit.access.instructions import gather_call, scatter_call
from ptokit.access.plan import Machine
from ptokit.core import transfers, vector
from ptokit.core.accesses import run_access, tile_key
from ptokit.core.block import Block, Event
from ptokit.core.gm import Dirty, Place
from ptokit.core.moves import writable
from ptokit.core.pipes import (
    MTE2,
    MTE3,
    NAMES,
    Instruction,
    S,
    Site,
    Step,
    Touch,
    V,
    W,
    event_number,
    pipe_named,
)
from ptokit.core.regions import Region, solid
from ptokit.core.ub import NoRoomError, UbTile, address_of, touch
from ptokit.dtypes import convert
from ptokit.errors import PtoAttributeError, PtoIndexError, PtoTypeError, PtoValueError, a_kind, nearest, well_called
from ptokit.findings import Finding, Severity
from ptokit.policies import ScatterAtomicOp, read
from ptokit.tensors import GlobalTensor, whole

if TYPE_CHECKING:

    @dataclass
    class _Vector:
        """Every vector instruction is a method of the core."""

        def __getattr__(self, name: str) -> Callable[..., Event]: ...
else:

    class _Vector:
        """The vector instructions are made from their table, below."""


STORES = ("none", "add")

Given = ParamSpec("Given")
Back = TypeVar("Back")


def instruction(method: Callable[Given, Back]) -> Callable[Given, Back]:
    """A method of the core: a misspelt keyword or a missing operand is told in the words of the package."""
    worded = well_called(method)

    @wraps(method)
    def called(*args: Given.args, **kwargs: Given.kwargs) -> Back:
        try:
            return method(*args, **kwargs)
        except TypeError as mistake:
            if mistake.__traceback__ is not None and mistake.__traceback__.tb_next is None:
                return worded(*args, **kwargs)
            raise

    return called


class Core(_Vector):
    """One core under a kernel: `k.block_idx` of `k.block_num`, on one target.

    Every instruction returns an event; a later one waits for it with `wait=`.
    """

    def __init__(self, block: Block, machine: Machine, block_num: int) -> None:
        self._block = block
        self._machine = machine
        self.block_idx = block.number
        self.block_num = block_num
        self.target = block.target

    def __getattr__(self, name: str) -> Any:
        known = ["block_idx", "block_num", "target", *(one for one in dir(type(self)) if not one.startswith("_"))]
        raise PtoAttributeError(f"a core has no instruction {name!r}.{nearest(name, known)}")

    def __repr__(self) -> str:
        return f"<core {self.block_idx} of {self.block_num}, {self.target}>"

    # Tiles

    @instruction
    def tile(
        self,
        dtype: object,
        rows: int,
        cols: int,
        valid: Sequence[int] | None = None,
        layout: str = "nd",
        *,
        at: int | None = None,
        loc: str = "vec",
        fractal: int = 512,
        name: str | None = None,
    ) -> UbTile:
        """A tile in the unified buffer: at an address, or where there is room."""
        block = self._block
        site = block.sites.here()
        tile = UbTile(block.ub, site, name, dtype, rows, cols, valid=valid, layout=layout, loc=loc, fractal=fractal)
        shift = block.mutation.shift(tile.number) if block.mutation is not None else 0
        self._place(tile, lambda: block.ub.add(tile, at, shift))
        return tile

    @instruction
    def tassign(self, tile: UbTile, address: int) -> UbTile:
        """Place a tile (again): what it held stays where it was."""
        self._tile(tile, "tile")
        at = address_of(address)
        self._place(tile, lambda: self._block.ub.place(tile, at, manual=True))
        return tile

    def _place(self, tile: UbTile, put: Callable[[], None]) -> None:
        block, site = self._block, self._block.sites.here()
        try:
            put()
        except NoRoomError:
            told = block.landlord.judge(tile, site) if block.landlord is not None else []
            block.stop(*(told or [_nowhere(block, tile, site)]))
        if block.landlord is not None:
            told = block.landlord.judge(tile, site)
            if block.checks.budget:
                block.findings += told
            block.overflow = block.landlord.overflow() if block.is_adversary else None

    # GM and UB

    @instruction
    def tload(self, tile: UbTile, tensor: GlobalTensor, *, wait: object = ()) -> Event:
        """TLOAD: global memory to a tile, on MTE2."""
        place = self._tensor(tensor)
        block = self._block
        self._tile(tile, "tile")
        one = block.instruction("tload", MTE2, (tile, place.tensor), wait)
        frozen, low, high = tile.frozen(), tile.address, tile.end
        one.facts["frozen"] = (frozen,)
        self._legal(one, transfers.Transfer("tload", tile, place.tensor, False, self.target))
        if not place.region.nbytes:
            return block.event(one)
        # A DMA does not look into the data cache of a5.
        there = place.on_host if self.target == "a5" else place.on_device

        def work() -> None:
            transfers.load(frozen, there)
            block.spoil(low, high)

        block.spend(one, place.region.nbytes)
        touches = [Touch([place.region], False, place.tensor), touch(tile, writes=True)]
        block.mover(MTE2, one, work, touches, ("load", *place.bursts))
        block.wrote(one, tile)
        return block.event(one)

    @instruction
    def tstore(self, tensor: GlobalTensor, tile: UbTile, *, atomic: object = "none", wait: object = ()) -> Event:
        """TSTORE: a tile to global memory, on MTE3; `atomic="add"` adds there."""
        place = self._tensor(tensor)
        block = self._block
        self._tile(tile, "tile")
        adds = _adds(atomic)
        writable(place)
        one = block.instruction("tstore", MTE3, (place.tensor, tile), wait)
        frozen = tile.frozen()
        one.facts |= {"frozen": (frozen,), "adds": adds}
        self._legal(one, transfers.Transfer("tstore", tile, place.tensor, adds, self.target))
        if not place.region.nbytes:
            return block.event(one)
        # What the DMA unit adds to is what it sees: on a5 that is not what stands in the data cache.
        views = (place.on_host, place.on_device) if self.target == "a5" else (place.on_device, place.on_host)
        block.spend(one, place.region.nbytes)
        touches = [
            touch(tile, writes=False),
            Touch([place.region], True, place.tensor, "dma" if adds else "", "add" if adds else ""),
        ]
        block.mover(MTE3, one, lambda: transfers.store(frozen, views, adds=adds), touches, ("store", *place.bursts))
        return block.event(one)

    @instruction
    def mscatter(
        self,
        table: GlobalTensor,
        src: UbTile,
        idx: UbTile,
        *,
        coalesce: object = "row",
        atomic: object = "none",
        oob: object = "undefined",
        conflict: object = None,
        wait: object = (),
    ) -> Event:
        """MSCATTER: a tile into a table, through indices."""
        place = self._tensor(table)
        writable(place)
        call = scatter_call(
            place.tensor, self._tile(src, "src"), self._tile(idx, "idx"), coalesce, atomic, oob, conflict
        )
        return self._access("mscatter", call, place, src, idx, wait)

    @instruction
    def mgather(
        self,
        dst: UbTile,
        table: GlobalTensor,
        idx: UbTile,
        *,
        coalesce: object = "row",
        oob: object = "undefined",
        wait: object = (),
    ) -> Event:
        """MGATHER: from a table into a tile, through indices."""
        place = self._tensor(table)
        call = gather_call(self._tile(dst, "dst"), place.tensor, self._tile(idx, "idx"), coalesce, oob)
        return self._access("mgather", call, place, dst, idx, wait)

    def _access(self, name: str, call: Access, place: Place, tile: UbTile, idx: UbTile, wait: object) -> Event:
        block = self._block
        one = block.instruction(name, V, (place.tensor, tile, idx), wait)
        call = replace(call, tile=tile.frozen(), idx=idx.frozen())
        one.facts |= {"frozen": (call.tile, call.idx), "call": call}
        run_access(block, self._machine, one, call, tile, idx, place)
        return block.event(one)

    # Ranks: the tensors of a group are remote global memory as the root sees it

    @instruction
    def tscatter(
        self,
        src: GlobalTensor,
        slices: Sequence[GlobalTensor],
        ping: UbTile,
        pong: UbTile | None = None,
        *,
        root: int = 0,
        wait: object = (),
    ) -> Event:
        """TSCATTER: rank r gets the r-th part of the rows of `src`, through the tiles."""
        return self._collective("tscatter", src, slices, ping, pong, root=root, wait=wait)

    @instruction
    def tgather(
        self,
        dst: GlobalTensor,
        slices: Sequence[GlobalTensor],
        ping: UbTile,
        pong: UbTile | None = None,
        *,
        root: int = 0,
        wait: object = (),
    ) -> Event:
        """TGATHER: the ranks' tensors one below the other into `dst`, through the tiles."""
        return self._collective("tgather", dst, slices, ping, pong, root=root, wait=wait)

    @instruction
    def tbroadcast(
        self,
        src: GlobalTensor,
        slices: Sequence[GlobalTensor],
        ping: UbTile,
        pong: UbTile | None = None,
        *,
        root: int = 0,
        wait: object = (),
    ) -> Event:
        """TBROADCAST: every rank gets all of `src`, through the tiles."""
        return self._collective("tbroadcast", src, slices, ping, pong, root=root, wait=wait)

    @instruction
    def treduce(
        self,
        dst: GlobalTensor,
        acc: UbTile,
        slices: Sequence[GlobalTensor],
        ping: UbTile,
        pong: UbTile | None = None,
        op: str = "sum",
        *,
        root: int = 0,
        wait: object = (),
    ) -> Event:
        """TREDUCE: sum, max or min over the ranks into `dst`: the root's first, then rank after rank, in `acc`."""
        return self._collective("treduce", dst, slices, ping, pong, root=root, wait=wait, acc=acc, reduce=op)

    def _collective(
        self, op: str, local: object, slices: object, ping: object, pong: object, *, wait: object, **more: object
    ) -> Event:
        from ptokit.comm.oncore import issue  # the room above this one: imported when a kernel asks for it
        from ptokit.comm.rules import collective

        for name, tile in (("ping", ping), ("pong", pong), ("acc", more.get("acc"))):
            if tile is not None:
                self._tile(tile, name)
        call = collective(op, local, slices, ping, pong, target=self.target, **more)
        return issue(self._block, call, self._tensor, wait)

    # Order

    @instruction
    def set_flag(self, source: str, sink: str, event_id: int | str = 0) -> None:
        """Set a flag on one pipe for another, behind everything that pipe has got so far."""
        self._flag("set_flag", source, sink, event_id)

    @instruction
    def wait_flag(self, source: str, sink: str, event_id: int | str = 0) -> None:
        """The pipe `sink` goes no further until `source` has set the flag."""
        self._flag("wait_flag", source, sink, event_id)

    def _flag(self, name: str, source: str, sink: str, event_id: int | str) -> None:
        flag = (pipe_named(source, "source"), pipe_named(sink, "sink"), event_number(event_id))
        if flag[0] == flag[1]:
            raise PtoValueError(f"{name}({source!r}, {sink!r}): a pipe is in order with itself, a flag joins two pipes")
        block = self._block
        if self._left_out(name):
            return
        one = block.instruction(
            name, flag[0] if name == "set_flag" else flag[1], (NAMES[flag[0]], NAMES[flag[1]], flag[2])
        )
        (block.set_flag if name == "set_flag" else block.wait_flag)(one, flag)

    @instruction
    def pipe_barrier(self, pipe: str = "ALL") -> None:
        """Wait for one pipe, or for all of them."""
        number = pipe_named(pipe, "pipe", all_too=True)
        block = self._block
        if self._left_out("pipe_barrier"):
            return
        block.barrier(block.instruction("pipe_barrier", S if number < 0 else number, (pipe,)), number)

    @instruction
    def dcci(self) -> None:
        """Push what stands in the data cache out to memory; complete after `dsb`."""
        block = self._block
        if self._left_out("dcci"):
            return
        one = block.instruction("dcci", S)
        block.sees_own_writes()
        block.on(S, one, self._clean, word="dcci", cost=("flush", "dcci"))

    def _clean(self) -> None:
        for dirty in self._dirty():
            dirty.cleaned = True

    def _dirty(self) -> list[Dirty]:
        number = self._block.number
        return [dirty for buffer in self._block.gm.buffers for dirty in buffer.dirty if dirty.block == number]

    @instruction
    def dsb(self) -> None:
        """Wait until what `dcci` pushed out has arrived in memory."""
        block = self._block
        if self._left_out("dsb"):
            return
        one = block.instruction("dsb", S)
        block.on(S, one, self._arrive, cost=("flush", "dsb"))
        block.on(W, one, word="dsb")

    def _arrive(self) -> None:
        for buffer in self._block.gm.buffers:
            kept = []
            for dirty in buffer.dirty:
                if dirty.cleaned and dirty.block == self._block.number:
                    buffer.publish(dirty.region)
                else:
                    kept.append(dirty)
            buffer.dirty = kept

    def _left_out(self, name: str) -> bool:
        """A mutation leaves this instruction out."""
        mutation = self._block.mutation
        return mutation is not None and mutation.drops(name)

    # Scalars

    @instruction
    def get(self, tile: UbTile, row: int, col: int) -> Any:
        """One element of a tile, read by the scalar pipe."""
        self._tile(tile, "tile")
        block = self._block
        at, region = self._element(tile, row, col)
        one = block.instruction("get", S, (tile,))
        block.sees_own_writes()
        found: list[Any] = []
        block.on(
            S,
            one,
            lambda: found.append(tile.storage[at]),
            [touch(tile, writes=False, regions=[region])],
            "get",
            ("scalar", 1),
        )
        return found[0].item() if found[0].dtype.kind in "iu" else float(found[0])

    @instruction
    def set(self, tile: UbTile, row: int, col: int, value: Any) -> Event:
        """One element of a tile, written by the scalar pipe."""
        self._tile(tile, "tile")
        block = self._block
        at, region = self._element(tile, row, col)
        stored = convert([value], tile.dtype)[0]
        one = block.instruction("set", S, (tile,))

        storage, low, high = tile.storage, tile.address, tile.end

        def work() -> None:
            storage[at] = stored
            block.spoil(low, high)

        block.mover(W, one, work, [touch(tile, writes=True, regions=[region])], ("scalar", 1))
        block.wrote_bytes(one, tile, region)
        return block.event(one)

    def _element(self, tile: UbTile, row: int, col: int) -> tuple[int, Region]:
        r, c = whole(row, "row"), whole(col, "col")
        rows, cols = tile.valid
        if not (0 <= r < rows and 0 <= c < cols):
            raise PtoIndexError(f"({r}, {c}) is not in the valid region {tile.valid} of {tile!r}")
        at = int(tile.offsets(np.asarray(r), np.asarray(c)))
        size = tile.dtype.itemsize
        low = tile.address + at * size
        return at, solid(-1, low, low + size)

    @instruction
    def load_scalar(self, tensor: GlobalTensor, offset: int) -> Any:
        """One element of a tensor, `offset` elements from its base, read by the scalar pipe."""
        place = self._tensor(tensor)
        tensor = place.tensor
        at, region = self._scalar_place(place, offset)
        block = self._block
        one = block.instruction("load_scalar", S, (tensor,))
        one.facts["offset"] = offset
        block.sees_own_writes()
        found: list[Any] = []
        block.on(
            S, one, lambda: found.append(tensor.memory[at]), [Touch([region], False, tensor)], "get", ("scalar", 1)
        )
        return found[0].item() if found[0].dtype.kind in "iu" else float(found[0])

    @instruction
    def store_scalar(self, tensor: GlobalTensor, offset: int, value: Any) -> Event:
        """One element of a tensor, written by the scalar pipe through its cache."""
        place = self._tensor(tensor)
        tensor = place.tensor
        writable(place)
        at, region = self._scalar_place(place, offset)
        stored = convert([value], tensor.dtype)[0]
        block = self._block
        one = block.instruction("store_scalar", S, (tensor,))
        one.facts |= {"offset": offset, "value": stored}
        steps: list[Step] = []

        def work() -> None:
            tensor.memory[at] = stored
            if self.target == "cpu":
                place.buffer.publish(region)
            else:
                place.buffer.dirty.append(Dirty(steps[0], region, block.number))

        stored_there = Touch([region], True, tensor, kind="" if self.target == "cpu" else "scalar")
        steps.append(block.prepare(W if block.has_pipes else S, one, work, [stored_there]))
        steps[0].cost = ("scalar", 1)
        block.send(steps[0])
        return block.event(one)

    @staticmethod
    def _scalar_place(place: Place, offset: int) -> tuple[int, Region]:
        tensor = place.tensor
        at = tensor.base + whole(offset, "offset")
        if not 0 <= at < tensor.memory.size:
            raise PtoIndexError(f"offset {offset} is outside the memory of {tensor!r}, {tensor.memory.size} elements")
        size = tensor.dtype.itemsize
        low = place.offset + at * size
        return at, solid(place.buffer.number, low, low + size)

    # What every instruction asks

    def _tile(self, given: object, what: str) -> UbTile:
        if not isinstance(given, UbTile):
            hint = ": make it with k.tile(...)" if type(given).__name__ == "Tile" else ""
            raise PtoTypeError(f"{what} is {a_kind(given)}; a tile of this core is wanted{hint}")
        if given.ub is not self._block.ub:
            raise PtoValueError(f"{what} {given!r} belongs to another core")
        return given

    def _tensor(self, given: object) -> Place:
        if not isinstance(given, GlobalTensor):
            hint = (
                ": pass the array to launch(...), the kernel gets a GlobalTensor"
                if isinstance(given, np.ndarray)
                else ""
            )
            raise PtoTypeError(f"{a_kind(given)} was given for a tensor; a GlobalTensor is wanted{hint}")
        return self._block.gm.place(given)

    def _legal(self, one: Instruction, call: transfers.Transfer) -> None:
        block = self._block
        told = block.judged(_transfer_key(call), lambda: transfers.judge(call, self.target))
        if told:
            block.stop(*(replace(finding, where=one.site.where) for finding in told))

    def _vector(
        self, op: vector.VectorOp, dst: UbTile, sources: Sequence[UbTile], options: vector.Options, wait: object
    ) -> Event:
        """One vector instruction: judged, looked at, computed on V."""
        block = self._block
        self._tile(dst, "dst")
        for number, source in enumerate(sources):
            self._tile(source, f"source {number}")
        one = block.instruction(op.name, V, (dst, *sources), wait)
        frozen, inputs = dst.frozen(), [source.frozen() for source in sources]
        one.facts |= {"frozen": (frozen, *inputs), "options": options}
        key = (op.name, tile_key(dst), *(tile_key(source) for source in sources), options)
        told = block.judged(key, lambda: vector.judge_vector(op, dst, sources, options, self.target))
        if told:
            block.stop(*(replace(finding, where=one.site.where) for finding in told))
        wanted, low, high = vector.Wanted.of(frozen), dst.address, dst.end

        def work() -> None:
            values = [transfers.take(tile).view(tile.dtype.numpy) for tile in inputs]
            out = op.compute(wanted, options, *values)
            transfers.put(frozen, out.view(frozen.dtype.bits))
            block.spoil(low, high)

        touches = [touch(source, writes=False) for source in sources]
        touches.append(touch(dst, writes=True))
        rows, cols = (sources[0] if sources else dst).valid
        block.mover(V, one, work, touches, ("vector", op.name, rows * cols, dst.dtype.itemsize))
        block.wrote(one, dst)
        return block.event(one)


def _vector_method(op: vector.VectorOp) -> Callable[..., Event]:
    """`k.tadd(dst, a, b)`: the tiles, then the options in their order or by name."""

    def method(self: Core, dst: UbTile, *operands: Any, wait: object = (), **options: Any) -> Event:
        tiles, rest = operands[: op.sources], operands[op.sources :]
        if len(rest) > len(op.takes) or len(tiles) < op.sources:
            wanted = ["dst", *vector.FORMS[op.form].sources, *op.takes]
            raise PtoTypeError(f"{op.name} takes {', '.join(wanted)}; {1 + len(operands)} were given by place")
        options.update(zip(op.takes, rest, strict=False))
        return self._vector(op, dst, tiles, op.asked(**options), wait)

    method.__name__ = op.name
    method.__qualname__ = f"Core.{op.name}"
    method.__doc__ = f"{op.name.upper()}: {op.does}; on V."
    return instruction(method)


for _op in vector.OPS.values():
    setattr(Core, _op.name, _vector_method(_op))


def _transfer_key(call: transfers.Transfer) -> tuple[object, ...]:
    tensor = call.tensor
    shape = tensor.is_known and tensor.shape
    return (call.name, call.adds, tile_key(call.tile), tensor.dtype.name, shape, tensor.declared_stride, tensor.layout)


def _adds(atomic: object) -> bool:
    """The atomic of a store: none or add, by name or enum."""
    policy = read(ScatterAtomicOp, atomic, "atomic")
    if policy not in (ScatterAtomicOp.None_, ScatterAtomicOp.Add):
        raise PtoValueError(f"atomic={atomic!r}: a store adds or replaces. Known: {', '.join(STORES)}")
    return policy is ScatterAtomicOp.Add


def _nowhere(block: Block, tile: UbTile, site: Site) -> Finding:
    return Finding(
        "PTO-M006",
        Severity.ERROR,
        block.target,
        f"{tile.name} would end at {tile.end} bytes; {block.ub.backing} are simulated.",
        {"block": block.number, "tile": tile.name, "address": tile.address, "end": tile.end},
        site.where,
        "Make tiles once, before the loop, and process the data in chunks.",
    )
