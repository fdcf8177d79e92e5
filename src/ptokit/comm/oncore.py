"""Collectives on a simulated core: the chunks of the schedule, each a load and a store with what they wait for.

Group members are tensors of the launch: remote global memory as the root sees it. A staging tile is filled on MTE2 and
emptied on MTE3 (TREDUCE: by way of V); with ping and pong the load of the next chunk overlaps the store of this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ptokit.comm.rules import REDUCTIONS, Collective, collective, judge, key_of
from ptokit.comm.schedule import Chunk
from ptokit.comm.stretches import meeting, stretches, told
from ptokit.core.gm import GlobalMemory, HollowMemory, Place
from ptokit.core.launch import launch
from ptokit.core.moves import Box, Moves, TensorPart, TilePart, writable
from ptokit.core.pipes import MTE2, MTE3, Instruction, Step, V
from ptokit.core.ub import UbTile
from ptokit.findings import Severity
from ptokit.tensors import GlobalTensor, Tile

if TYPE_CHECKING:
    from ptokit.core.block import Block, Event
    from ptokit.core.kernel import Core
    from ptokit.core.run import Run

HANDSHAKES: dict[str, tuple[tuple[int, int], ...]] = {
    "treduce": ((MTE2, V), (V, MTE2), (V, MTE3), (MTE2, MTE3), (MTE3, MTE2)),
}
"""The pairs of pipes that an instruction joins itself; id 0 each, and 1 with ping and pong."""
ROUND_TRIP = ((MTE2, MTE3), (MTE3, MTE2))


@dataclass(eq=False)
class Collecting:
    """One collective under way on a core."""

    call: Collective
    moves: Moves
    local: Place
    members: tuple[Place, ...]
    tiles: tuple[UbTile, ...]
    """ping, and pong where there is one."""
    acc: UbTile | None

    def of_slice(self, rank: int, chunk: Chunk) -> TensorPart:
        """What a chunk is in a rank's tensor."""
        return TensorPart.of(self.members[rank], self._box(chunk, 0))

    def of_local(self, chunk: Chunk) -> TensorPart:
        """What a chunk is in the root's own tensor."""
        below = chunk.rank * self.call.slice[3] if self.call.kind.splits else 0
        return TensorPart.of(self.local, self._box(chunk, below))

    def rows_of(self, rank: int) -> TensorPart:
        """All that a rank has to do with in the root's own tensor."""
        d0, d1, d2, high, wide = self.call.slice
        below = rank * high if self.call.kind.splits else 0
        box = (_first(d0), _first(d1), _first(d2), slice(below, below + high), _first(wide))
        return TensorPart.of(self.local, box)

    def _box(self, chunk: Chunk, below: int) -> Box:
        d0, d1, d2, high, wide = self.call.slice
        if self.call.fits:
            return (_first(d0), _first(d1), _first(d2), slice(below, below + high), _first(wide))
        row = below + chunk.row
        a, b, c = (slice(at, at + 1) for at in (chunk.d0, chunk.d1, chunk.d2))
        return (a, b, c, slice(row, row + chunk.rows), slice(chunk.col, chunk.col + chunk.cols))

    def staged(self, chunk: Chunk, number: int) -> TilePart:
        """The part of a staging tile that a chunk fills."""
        return self.moves.tile(self.tiles[number], chunk.rows, chunk.cols)


def _first(count: int) -> slice:
    return slice(0, count)


def issue(block: Block, call: Collective, places: Callable[[GlobalTensor], Place], wait: object = ()) -> Event:
    """One collective as an instruction of a core: judged, then played chunk by chunk."""
    local, members = places(call.local), tuple(places(one) for one in call.slices)
    call = replace(call, local=local.tensor, slices=tuple(one.tensor for one in members))
    for place in (local,) if call.kind.local_is_written else members:
        writable(place)
    one = block.instruction(call.op, MTE2, (call.local, *(tile for _, tile in call.tiles)), wait)
    one.facts |= {"frozen": tuple(_frozen(tile) for _, tile in call.tiles), "call": call}
    _legal(block, one, call)
    schedule = call.schedule
    if not len(schedule):
        return block.event(one)
    running = Collecting(call, Moves(block, one), local, members, *_staging(call))
    if block.checks.memory:
        _tell_overlap(running)
    one.facts["schedule"] = schedule
    _reserve(block, one, call.op, 2 if schedule.uses_pong else 1)
    block.spend(one, _bytes(call))
    last = PLAYED[call.op](running)
    return running.moves.drain(MTE2, last)


def _frozen(tile: Tile) -> Tile:
    return tile.frozen() if isinstance(tile, UbTile) else tile


def _staging(call: Collective) -> tuple[tuple[UbTile, ...], UbTile | None]:
    tiles = tuple(tile for name, tile in call.tiles if name != "acc" and isinstance(tile, UbTile))
    return tiles, call.acc if isinstance(call.acc, UbTile) else None


def _bytes(call: Collective) -> int:
    """What goes through the tiles, in and out."""
    size = call.slices[0].size * call.local.dtype.itemsize
    return size * (2 * call.ranks if call.kind.splits else call.ranks + 1)


def _legal(block: Block, one: Instruction, call: Collective) -> None:
    told = block.judged(key_of(call), lambda: judge(call))
    placed = [replace(finding, where=one.site.where) for finding in told]
    if any(finding.severity is Severity.ERROR for finding in placed):
        block.stop(*placed)
    for finding in placed:
        block.tell(finding)


def _tell_overlap(running: Collecting) -> None:
    """What is written lies on what somebody else reads or writes: the order of the chunks decides what comes out."""
    call, block, one = running.call, running.moves.block, running.moves.instruction
    members = ((rank, place.region) for rank, place in enumerate(running.members))
    rows = (running.rows_of(rank).region for rank in range(call.ranks if call.kind.splits else 1))
    met = meeting(call, stretches(call, members, rows))
    if met is None:
        return
    finding = told(call, met, f" from byte {met.byte} of their memory on")
    block.tell(replace(finding, facts={"block": block.number, **finding.facts}, where=one.site.where))


def _reserve(block: Block, one: Instruction, op: str, events: int) -> None:
    """The caller must not hold what the instruction uses itself."""
    for source, sink in HANDSHAKES.get(op, ROUND_TRIP):
        for event in range(events):
            block.reserve(one, (source, sink, event))


# What each collective does with its chunks

Pending = tuple[TilePart, Step, tuple[TensorPart, ...], int]
"""A filled part of a tile, the load that fills it, where it goes, and which tile it is."""


def _through(running: Collecting, loads: Iterator[tuple[Chunk, TensorPart, tuple[TensorPart, ...]]]) -> Step:
    """Every chunk into a staging tile and out of it: the pending stores are issued, then the next load."""
    moves = running.moves
    emptied: dict[int, Step] = {}
    pending: Pending | None = None
    for chunk, source, sinks in loads:
        if pending is not None:
            _store(moves, pending, emptied)
        part = running.staged(chunk, chunk.tile)
        loaded = moves.load(part, source, emptied.get(chunk.tile), chunk.tile)
        pending = (part, loaded, sinks, chunk.tile)
    assert pending is not None
    return _store(moves, pending, emptied)


def _store(moves: Moves, pending: Pending, emptied: dict[int, Step]) -> Step:
    part, loaded, sinks, tile = pending
    for sink in sinks:
        emptied[tile] = moves.store(sink, part, loaded, tile)
    return emptied[tile]


def _scattered(running: Collecting) -> Step:
    """TSCATTER: each rank's rows, from the root's tensor into the rank's."""
    return _through(
        running, ((one, running.of_local(one), (running.of_slice(one.rank, one),)) for one in running.call.schedule)
    )


def _gathered(running: Collecting) -> Step:
    """TGATHER: the other way round."""
    return _through(
        running, ((one, running.of_slice(one.rank, one), (running.of_local(one),)) for one in running.call.schedule)
    )


def _broadcast(running: Collecting) -> Step:
    """TBROADCAST: each chunk is loaded once and stored to every rank."""
    ranks = range(running.call.ranks)
    return _through(
        running,
        (
            (one, running.of_local(one), tuple(running.of_slice(rank, one) for rank in ranks))
            for one in running.call.schedule
        ),
    )


def order_of_ranks(root: int, ranks: int) -> list[int]:
    """Root first, then ranks ascending: the order in which TREDUCE adds up.

    >>> order_of_ranks(2, 4)
    [2, 0, 1, 3]
    """
    return [root, *(rank for rank in range(ranks) if rank != root)]


def _reduced(running: Collecting) -> Step:
    """TREDUCE: each chunk of the root into acc, then rank after rank on top of it, then out."""
    moves, call = running.moves, running.call
    assert running.acc is not None
    name = REDUCTIONS[call.reduce]
    root, *others = order_of_ranks(call.root, call.ranks)
    free: dict[int, Step] = {}
    stored: Step | None = None
    turn = 0
    for chunk in call.schedule:
        acc = moves.tile(running.acc, chunk.rows, chunk.cols)
        full = moves.load(acc, running.of_slice(root, chunk), stored)
        for rank in others:
            at = turn % (2 if call.schedule.uses_pong else 1)
            turn += 1
            part = running.staged(chunk, at)
            loaded = moves.load(part, running.of_slice(rank, chunk), free.get(at), at)
            full = free[at] = moves.fold(name, acc, part, loaded, at)
        stored = moves.store(running.of_local(chunk), acc, full)
    assert stored is not None
    return stored


PLAYED: dict[str, Callable[[Collecting], Step]] = {
    "tscatter": _scattered,
    "tgather": _gathered,
    "tbroadcast": _broadcast,
    "treduce": _reduced,
}


# A collective by itself


def staged_run(
    op: str,
    local: GlobalTensor,
    slices: Sequence[GlobalTensor],
    ping: Tile,
    pong: Tile | None = None,
    *,
    target: str = "a5",
    root: int = 0,
    schedule: str = "late",
    seed: int = 0,
    acc: Tile | None = None,
    reduce: str = "sum",
    data: bool = True,
) -> Run:
    """The collective alone on one simulated core, on the caller's arrays; the tiles say what kind the core's are.

    `data=False` moves nothing and touches no memory: the run has the findings, the ledger of the unified buffer, the
    cycles and the trace of this geometry.

    >>> whole, parts = np.arange(8, dtype=np.int32), np.zeros((2, 4), np.int32)
    >>> slices = [GlobalTensor(one, "int32", (1, 1, 1, 1, 4)) for one in parts]
    >>> run = staged_run("tscatter", GlobalTensor(whole, "int32", (1, 1, 1, 2, 4)), slices, Tile("int32", 1, 8, (1, 4)))
    >>> run.findings, parts.tolist()
    ([], [[0, 1, 2, 3], [4, 5, 6, 7]])
    """
    call = collective(op, local, slices, ping, pong, root=root, target=target, acc=acc, reduce=reduce)
    tensors = [call.local, *call.slices]
    if not data:
        tensors = [_hollow(one) for one in tensors]

    def kernel(k: Core, local: GlobalTensor, *slices: GlobalTensor) -> None:
        tiles = {name: _twin(k, name, tile) for name, tile in call.tiles}
        more = {"acc": tiles["acc"], "op": call.reduce} if call.op == "treduce" else {}
        operands = {call.kind.keyword: local, "slices": slices, "ping": tiles["ping"], "pong": tiles.get("pong")}
        getattr(k, call.op)(**operands, **more, root=call.root)

    kernel.__name__ = call.op
    memory, order = (GlobalMemory, schedule) if data else (HollowMemory, "program")
    return launch(kernel, *tensors, target=call.target, schedule=order, seed=seed, memory=memory)


def _twin(k: Core, name: str, tile: Tile) -> UbTile:
    """A tile of the core like this one."""
    made = k.tile(tile.dtype, tile.rows, tile.cols, tile.declared_valid, tile.layout, loc=tile.loc, name=name)
    if tile.is_known and not tile.is_static:
        made.set_valid(*tile.valid)
    return made


def _hollow(tensor: GlobalTensor) -> GlobalTensor:
    """The same form on memory that nobody has touched."""
    memory = np.zeros(tensor.footprint[1], tensor.dtype.numpy)
    return GlobalTensor(memory, tensor.dtype, tensor.shape, tensor.stride, tensor.layout)
