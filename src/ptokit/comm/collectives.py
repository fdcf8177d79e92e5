"""TSCATTER, TGATHER, TBROADCAST, TREDUCE over ranks: the root alone calls, and moves what the others have registered.

`mode="fast"` moves whole slices; `mode="tile"` moves chunk by chunk through the staging tiles, as the schedule says,
and plays the same schedule once on a simulated core, whose findings it brings. Both mean the same.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit.comm import moving, stretches
from ptokit.comm.ccu import CcuGate, on_ccu
from ptokit.comm.engines import Embedded
from ptokit.comm.faults import error
from ptokit.comm.group import Group
from ptokit.comm.moving import Box, box_of
from ptokit.comm.oncore import order_of_ranks, staged_run
from ptokit.comm.recording import CALLS, Recorder
from ptokit.comm.rules import REDUCTIONS, Collective, collective, judge, one_word
from ptokit.comm.schedule import Chunk, Schedule
from ptokit.comm.transport import Claim, live
from ptokit.comm.words import _native
from ptokit.core.vector import NOTHING_ASKED, OPS, Wanted
from ptokit.dtypes import element_type
from ptokit.errors import IllegalInstruction, PtoTypeError, PtoValueError, a_kind, well_called
from ptokit.findings import Finding, Severity
from ptokit.tensors import GlobalTensor, Tile

if TYPE_CHECKING:
    from ptokit.core.placement import Ledger
    from ptokit.core.run import Run
    from ptokit.core.timeline import Cycles
    from ptokit.core.trace import Trace

MODES = ("fast", "tile")
WRITES = frozenset({"tscatter", "tbroadcast"})
"""These write to the members; the others read them."""


@dataclass(frozen=True, eq=False)
class Collected:
    """What a collective did: which bytes, by which schedule, and what there is to say of it."""

    op: str
    mode: str
    engine: str
    target: str
    root: int
    ranks: int
    nbytes: int
    """Moved between the root and all ranks."""
    findings: list[Finding] = field(repr=False)
    call: Collective = field(repr=False)

    @property
    def schedule(self) -> Schedule:
        """In what chunks the staging tiles take it."""
        return self.call.schedule

    @cached_property
    def run(self) -> Run:
        """The schedule on a simulated core: pipes, events, the unified buffer."""
        return _played(self.call)

    @property
    def cycles(self) -> Cycles:
        """Modelled time on the root's core."""
        return self.run.cycles

    @property
    def trace(self) -> Trace:
        """Every load and store on its pipe."""
        return self.run.trace

    @property
    def ub(self) -> Ledger:
        """What the staging tiles take of the unified buffer."""
        return self.run.ub


@dataclass(frozen=True)
class Pair:
    """A slice of the root's tensor and the same slice at a rank."""

    rank: int
    here: Box
    there: Box
    is_direct: bool


# The calls


@well_called
def tscatter(
    group: Group,
    src: object,
    ping: object,
    pong: object = None,
    *,
    engine: str = "aiv",
    target: str = "a5",
    mode: str = "fast",
    gate: CcuGate | None = None,
    stores_input: bool = False,
) -> Collected:
    """Give each rank its rows: `dst[r][d0,d1,d2,i,j] = src[d0,d1,d2, r*H + i, j]`. The root alone calls it.

    On engine "ccu" every rank calls it, with its own gate.

    >>> import numpy as np, ptokit as pto
    >>> def work(rank):
    ...     part = rank.zeros((2, 4), "int32")
    ...     group = rank.group(part, root=0)
    ...     if rank.rank == group.root:
    ...         whole = np.arange(16, dtype=np.int32).reshape(4, 4)
    ...         pto.comm.tscatter(group, whole, pto.Tile("int32", 2, 8, valid=(2, 4)))
    ...     rank.barrier()
    ...     return part.tolist()
    >>> with pto.comm.local(2, threads=True) as world:
    ...     world.run(work)
    [[[0, 1, 2, 3], [4, 5, 6, 7]], [[8, 9, 10, 11], [12, 13, 14, 15]]]
    """
    known = _known("tscatter", group, mode) if gate is None and not stores_input else None
    if known is not None and known.is_for(src, ping, pong, engine, target, mode):
        return known()
    return _collect("tscatter", group, src, ping, pong, engine, target, mode, gate, stores_input)


@well_called
def tgather(
    group: Group,
    dst: object,
    ping: object,
    pong: object = None,
    *,
    engine: str = "aiv",
    target: str = "a5",
    mode: str = "fast",
    gate: CcuGate | None = None,
    stores_input: bool = False,
) -> Collected:
    """Put the ranks' rows together: `dst[d0,d1,d2, r*H + i, j] = src[r][d0,d1,d2,i,j]`. The root alone calls it.

    Rows of `dst` beyond those of the ranks stay as they are.
    """
    known = _known("tgather", group, mode) if gate is None and not stores_input else None
    if known is not None and known.is_for(dst, ping, pong, engine, target, mode):
        return known()
    return _collect("tgather", group, dst, ping, pong, engine, target, mode, gate, stores_input)


@well_called
def tbroadcast(
    group: Group, src: object, ping: object, pong: object = None, *, target: str = "a5", mode: str = "fast"
) -> Collected:
    """Give every rank all of `src`. The root alone calls it."""
    return _collect("tbroadcast", group, src, ping, pong, "aiv", target, mode)


@well_called
def treduce(
    group: Group,
    dst: object,
    acc: object,
    ping: object,
    pong: object = None,
    *,
    op: str = "sum",
    target: str = "a5",
    mode: str = "fast",
) -> Collected:
    """Fold what the ranks have into `dst`: "sum", "max" or "min". The root alone calls it.

    The root's part comes first, then the others by their rank, each result rounded to the type: the same bits always.
    """
    return _collect("treduce", group, dst, ping, pong, "aiv", target, mode, acc=acc, reduce=op)


def _known(op: str, group: object, mode: object) -> Prepared | None:
    """What was worked out for an earlier call."""
    return group.prepared.get((op, mode)) if type(group) is Group and type(mode) is str else None


def _collect(
    op: str,
    group: Group,
    local: object,
    ping: object,
    pong: object,
    engine: object,
    target: str,
    mode: object,
    gate: CcuGate | None = None,
    stores_input: bool = False,
    acc: object = None,
    reduce: object = "sum",
) -> Collected:
    """Judge the call, work out its moves, keep them for the next call with the same operands, and move."""
    if not isinstance(group, Group):
        raise PtoTypeError(f"{op}: the group is {a_kind(group)}; make it with rank.group(...)")
    way, how = one_word(engine, ("aiv", "ccu"), "engine"), one_word(mode, MODES, "mode")
    for keyword, is_given in (("gate", gate is not None), ("stores_input", stores_input)):
        if way == "aiv" and is_given:
            raise PtoValueError(f"{op}: {keyword}= belongs to engine='ccu'; this is engine='aiv'")
    if way == "aiv":
        _root_calls(op, group)
    tensor = as_tensor(local, f"the tensor of {op}") if group.is_root else _of_the_root(group)
    members = [_member(group, rank) for rank in range(group.size)]
    call = collective(
        op, tensor, members, ping, pong, root=group.root, engine=way, target=target, acc=acc, reduce=reduce
    )
    prepared = Prepared(group, call, how, (local, ping, pong, engine, target, mode))
    if way == "ccu":
        return on_ccu(prepared, gate, stores_input)
    group.prepared[op, mode] = prepared
    return prepared()


def _of_the_root(group: Group) -> GlobalTensor:
    """What the root's tensor looks like to a rank that has none: rows for all, on memory that nobody touches."""
    part = group.parts[group.rank.rank]
    d0, d1, d2, rows, cols = part.shape
    shape = (d0, d1, d2, rows * group.size, cols)
    return GlobalTensor(
        np.zeros(math.prod(shape), element_type(part.dtype).numpy), part.dtype, shape, None, part.layout
    )


def _root_calls(op: str, group: Group) -> None:
    me = group.rank.peers[group.rank.rank]
    if not group.is_root:
        raise error(
            "PTO-R034",
            f"{op}: {me} called it, and the root is {group.rank.peers[group.root]}.",
            rank=me.rank,
            root=group.root,
        )


def as_tensor(given: object, what: str) -> GlobalTensor:
    """An ndarray as a packed ND tensor; a tensor as it is."""
    if isinstance(given, GlobalTensor):
        return given
    if not isinstance(given, np.ndarray):
        raise PtoTypeError(f"{what} is {a_kind(given)}; an ndarray or a GlobalTensor is wanted")
    if given.ndim > 5:
        raise PtoValueError(f"{what} has {given.ndim} dimensions; a tensor has 5 at most")
    return GlobalTensor(given, given.dtype, (1,) * (5 - given.ndim) + given.shape)


def _member(group: Group, rank: int) -> GlobalTensor:
    return group.tensor(rank) or group.form(rank)


# What is worked out once


class Prepared:
    """A legal call with its moves, to be made as often as its operands are the same."""

    def __init__(self, group: Group, call: Collective, mode: str, given: tuple[Any, ...]) -> None:
        told = judge(call)
        if any(one.severity is Severity.ERROR for one in told):
            raise IllegalInstruction(call.op.upper(), call.target, told)
        self.group, self.call, self.mode = group, call, mode
        self.given = given
        self.form = _form(given[0])
        self.tiles = [(tile, tile._valid) for _, tile in call.tiles]
        if mode == "tile" and call.engine == "aiv":
            judged = {one.message for one in told}  # the core judges the same call again
            told = [*told, *(one for one in _played(call).findings if one.message not in judged)]
            if any(one.severity is Severity.ERROR for one in told):
                raise IllegalInstruction(call.op.upper(), call.target, told)
        self.pairs = list(_pairs(group, call))
        self.met = _lying_on_each_other(call, self.pairs)
        if self.met is not None:
            told = [*told, stretches.told(call, self.met, " in the memory of this process")]
        nbytes = sum(pair.here.nbytes for pair in self.pairs)
        self.report = Collected(call.op, mode, call.engine, call.target, call.root, call.ranks, nbytes, told, call)
        _must_be_writable(group, call)
        self.move = self._mover()

    def is_for(self, *given: object) -> bool:
        """The same operands as before, with the same valid extents."""
        for mine, theirs in zip(self.given, given, strict=True):
            if mine is not theirs and not (isinstance(theirs, str) and mine == theirs):
                return False
        for tile, valid in self.tiles:
            if tile._valid != valid:
                return False
        return _form(given[0]) == self.form

    def __call__(self) -> Collected:
        """Move."""
        transport = self.group.rank.transport
        transport.must_be_open()
        transport.must_be_well()
        if transport.recorder is None:
            self.move()
        else:
            self._recorded(transport.recorder)
        return self.report

    def _recorded(self, recorder: Recorder) -> None:
        """The same, slice by slice where it can be, so that a trace shows each."""
        start, into_members = recorder.now(), self.call.op in WRITES
        if self.call.op == "treduce" or self.call.is_empty:
            self.move()
        else:
            with claimed(self.group, into_members):
                for pair in self.pairs:
                    begun = recorder.now()
                    for step in self._steps(pair):
                        step.make(self.group.window, into_members)
                    recorder.moved(pair.rank, begun, pair.here.nbytes, into_member=into_members)
                self.group.rank.transport.fence()
        recorder.span(CALLS, self.call.op, start, bytes=self.report.nbytes, mode=self.mode, ranks=self.call.ranks)

    def store_input(self) -> None:
        """On the CCU: the vector core stores the staging tile into the input first."""
        tile, group = self.call.ping, self.group
        tensor = self.call.local if self.call.op == "tscatter" else group.local
        if not tensor.memory.flags.writeable:
            raise PtoValueError(f"{self.call.op}: the input's memory is read-only and cannot be stored to first")
        rows, cols = tile.valid
        box = box_of(tensor)
        if cols != box.shape[4] or rows > box.shape[3]:
            raise PtoValueError(
                f"{self.call.op}: a tile of {rows} x {cols} valid elements is no input of shape {box.shape}: "
                f"it has {box.shape[4]} columns and {box.shape[3]} rows at most"
            )
        extents = (1, 1, 1, rows, cols)
        moving.copy(box.part((0, 0, 0, 0, 0), extents), _tile_box(tile, extents))

    def _mover(self) -> Callable[[], None]:
        if self.call.is_empty:
            return lambda: None
        if self.call.op == "treduce":
            return self._reduce if self.mode == "fast" else self._reduce_in_tiles
        if self._goes_through_tiles:
            return self._by_steps([step for pair in self.pairs for step in self._steps(pair)])
        return self._whole()

    @property
    def _goes_through_tiles(self) -> bool:
        """Chunk by chunk; also where the order of the chunks matters, so that both modes mean the same."""
        return self.call.engine == "aiv" and (self.mode == "tile" or self.met is not None)

    def _steps(self, pair: Pair) -> Iterable[Step]:
        """What moves one slice."""
        if self._goes_through_tiles:
            return self._chunks(pair)
        return [Step(pair.rank, pair.here, pair.there, None, pair.is_direct)]

    # Whole slices

    def _whole(self) -> Callable[[], None]:
        into_members = self.call.op in WRITES
        steps = [step for pair in self.pairs for step in self._steps(pair)]
        all_direct = all(step.is_direct for step in steps)
        if _native is None or not all_direct or not isinstance(self.group.rank.transport, Embedded):
            return self._by_steps(steps)
        table, nbytes = moving.together(step.moves(into_members) for step in steps), self.report.nbytes
        claims = self.group.window.claims
        words = self._words_of(claims)
        me, count, held = self.group.rank.rank + 1 if into_members else 0, len(table), len(words)
        apart = self.met is None
        moves_at, words_at, scatter = table.ctypes.data, words.ctypes.data, _native.scatter_slices

        def move(_kept: object = (table, words)) -> None:
            stopped = scatter(moves_at, count, words_at, held, me, nbytes, apart)
            if stopped < -1:
                self.group.window.must_be_live(claims[-2 - stopped].rank)
            elif stopped >= 0:
                raise two_roots(self.group, claims[stopped])

        return move

    def _words_of(self, claims: Sequence[Claim]) -> Any:
        """For the mover: where each claim stands, what is there while its window is live, and whether it must be."""
        transport = self.group.rank.transport
        assert isinstance(transport, Embedded)
        rows = [[transport.state_address(one.rank, one.slot), live(one.number), one.is_own] for one in claims]
        return np.array(rows, np.int64)

    # Step by step: through tiles, or to memory that cannot be seen

    def _chunks(self, pair: Pair) -> Iterator[Step]:
        """The schedule's chunks of one pair, each with the tile that it goes through."""
        tiles = [tile for name, tile in self.call.tiles if name in ("ping", "pong")]
        schedule = self.call.schedule
        for chunk in schedule:
            if chunk.rank != pair.rank and self.call.kind.splits:
                continue
            starts, extents = _extent(schedule, chunk)
            staged = _tile_box(tiles[chunk.tile], extents)
            yield Step(
                pair.rank, pair.here.part(starts, extents), pair.there.part(starts, extents), staged, pair.is_direct
            )

    def _by_steps(self, steps: Sequence[Step]) -> Callable[[], None]:
        into_members = self.call.op in WRITES
        window, transport = self.group.window, self.group.rank.transport
        if _native and all(step.is_direct for step in steps):
            table = moving.together(step.moves(into_members) for step in steps)

            def move_all() -> None:
                with claimed(self.group, into_members):
                    _native.move_all(table.ctypes.data, len(table), False)

            return move_all

        def move() -> None:
            with claimed(self.group, into_members):
                for step in steps:
                    step.make(window, into_members)
                transport.fence()

        return move

    def _brought(self, boxes: Sequence[Box]) -> None:
        """Every rank's slice, brought into these boxes."""
        with claimed(self.group, False):
            for pair, own in zip(self.pairs, boxes, strict=True):
                Step(pair.rank, own, pair.there, None, pair.is_direct).make(self.group.window, False)

    def _reduce_in_tiles(self) -> None:
        """On the simulated core, which folds chunk by chunk."""
        forms = [self.group.form(rank) for rank in range(self.group.size)]
        self._brought([box_of(form) for form in forms])
        _played(replace(self.call, slices=tuple(forms)), data=True)

    def _reduce(self) -> None:
        """Root first, then by rank, whole slices at a time: every element is folded in the same order."""
        fold, local = OPS[REDUCTIONS[self.call.reduce]].compute, self.call.local
        shape, size = self.call.slice, local.dtype.itemsize
        boxes = [moving.packed(shape, size) for _ in self.pairs]
        self._brought(boxes)
        values = [box.memory.view(local.dtype.numpy)[None, :] for box in boxes]
        root, *others = order_of_ranks(self.group.root, self.group.size)
        total, wanted = values[root], _wanted(local, values[root].size)
        for rank in others:
            total = fold(wanted, NOTHING_ASKED, total, values[rank])
        flat = np.ascontiguousarray(total).reshape(-1).view(np.uint8)
        moving.copy(self.pairs[0].here, moving.packed(shape, size, flat))


def _wanted(local: GlobalTensor, count: int) -> Wanted:
    return Wanted.of(Tile(local.dtype, 1, count))


@dataclass(frozen=True)
class Step:
    """One box here, the same there, and the tile between them."""

    rank: int
    here: Box
    there: Box
    staged: Box | None
    is_direct: bool

    def moves(self, into_member: bool) -> moving.Table:
        """The rows for the compiled mover."""
        to, from_ = (self.there, self.here) if into_member else (self.here, self.there)
        if self.staged is None:
            return moving.moves(to, from_)
        return moving.together((moving.moves(self.staged, from_, stays=True), moving.moves(to, self.staged)))

    def make(self, window: Any, into_member: bool) -> None:
        """Make it, whatever way the member can be reached."""
        if self.is_direct:
            to, from_ = (self.there, self.here) if into_member else (self.here, self.there)
            if self.staged is not None:
                moving.copy(self.staged, from_)
                from_ = self.staged
            moving.copy(to, from_)
            return
        parcel = moving.packed(self.here.shape, self.here.itemsize)
        if into_member:
            if self.staged is not None:
                moving.copy(self.staged, self.here)
            moving.copy(parcel, self.staged or self.here)
        self._over_there(window, parcel, into_member)
        if not into_member:
            if self.staged is not None:
                moving.copy(self.staged, parcel)
            moving.copy(self.here, self.staged or parcel)

    def _over_there(self, window: Any, parcel: Box, into_member: bool) -> None:
        offsets, length, is_one = moving.runs(self.there)
        window.check(self.rank, int(offsets.min()), int(offsets.max() - offsets.min()) + length)
        reach = window.reaches[self.rank]
        if is_one:
            (reach.put if into_member else reach.get)(int(offsets[0]), parcel.memory)
        else:
            (reach.put_runs if into_member else reach.get_runs)(offsets, length, parcel.memory)


def _form(given: object) -> tuple[object, ...] | None:
    """What can be changed of an array in place."""
    if isinstance(given, np.ndarray):
        return given.shape, given.strides, given.dtype, given.flags.writeable
    return None


def _pairs(group: Group, call: Collective) -> Iterator[Pair]:
    """For every rank: which part of the root's tensor belongs to its slice."""
    whole = box_of(call.local)
    for rank, member in enumerate(call.slices):
        first = rank * call.slice[3] if call.kind.splits else 0
        here = whole.part((0, 0, 0, first, 0), call.slice)
        view = group.window.view(rank)
        yield Pair(rank, here, box_of(member, view), view is not None)


def _lying_on_each_other(call: Collective, pairs: Sequence[Pair]) -> stretches.Meeting | None:
    """Tensors of this process that share memory where they should not."""
    direct = [pair.rank for pair in pairs if pair.is_direct]
    spans = sorted(stretches.span(one) for one in (call.local, *(call.slices[rank] for rank in direct)))
    if call.is_empty or all(one[1] <= other[0] for one, other in itertools.pairwise(spans)):
        return None
    seen = [(rank, stretches.in_memory(call.slices[rank])) for rank in direct]
    whole = call.local
    rows = [
        whole.partition((0, 0, 0, rank * call.slice[3], 0), call.slice)
        for rank in range(call.ranks if call.kind.splits else 1)
    ]
    return stretches.meeting(call, stretches.stretches(call, seen, map(stretches.in_memory, rows)))


def _extent(schedule: Schedule, chunk: Chunk) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Where a chunk begins in its slice, and its extents."""
    if schedule.fits:
        return (0, 0, 0, 0, 0), schedule.slice
    return (chunk.d0, chunk.d1, chunk.d2, chunk.row, chunk.col), (1, 1, 1, chunk.rows, chunk.cols)


def _tile_box(tile: Tile, extents: Sequence[int]) -> Box:
    """The place of a chunk in a staging tile: its rows one below the other."""
    size = tile.dtype.itemsize
    row, col = (size, tile.rows * size) if tile.layout == "dn" else (tile.cols * size, size)
    d0, d1, d2, rows, cols = extents
    strides = (d1 * d2 * rows * row, d2 * rows * row, rows * row, row, col)
    return Box(tile.storage.view(np.uint8), 0, (d0, d1, d2, rows, cols), strides, size)


def _played(call: Collective, *, data: bool = False) -> Run:
    """The schedule on a simulated core; without data, for what there is to say of it."""
    return staged_run(
        call.op,
        call.local,
        call.slices,
        call.ping,
        call.pong,
        target=call.target,
        root=call.root,
        acc=call.acc,
        reduce=call.reduce,
        data=data,
    )


def _must_be_writable(group: Group, call: Collective) -> None:
    if call.op in WRITES:
        closed = [rank for rank, part in enumerate(group.parts) if not part.writable]
        if closed:
            raise PtoValueError(
                f"{call.op}: the memory of {group.rank.peers[closed[0]]} is read-only: register a writable array"
            )
    elif not call.local.memory.flags.writeable:
        raise PtoValueError(f"{call.op}: the destination's memory is read-only: pass a writable array")


@contextmanager
def claimed(group: Group, writes: bool) -> Iterator[None]:
    """Nobody else writes to the members meanwhile; members that are freed are told."""
    transport = group.rank.transport
    for rank in range(group.size):
        group.window.must_be_live(rank)
    if not writes:
        yield
        return
    layout, me, held = transport.layout, group.rank.rank + 1, list[Claim]()
    try:
        for claim in group.window.claims:
            if not claim.is_own and transport.load(claim.rank, layout.window_state(claim.slot)) != live(claim.number):
                continue  # another window has this place by now
            if transport.exchange_word(claim.rank, layout.window_busy(claim.slot), 0, me):
                raise two_roots(group, claim)
            held.append(claim)
        yield
    finally:
        for claim in held:
            transport.store(claim.rank, layout.window_busy(claim.slot), 0)


def two_roots(group: Group, claim: Claim) -> Exception:
    """The error of a destination to which another root writes just now."""
    transport, rank = group.rank.transport, claim.rank
    other = transport.load(rank, transport.layout.window_busy(claim.slot)) - 1
    who = transport.peers[other] if 0 <= other < group.size else "another root"
    return error(
        "PTO-R035",
        f"{transport.peers[transport.rank]} and {who} write to the destination of {transport.peers[rank]} at once.",
        rank=transport.rank,
        other=other,
        destination=rank,
    )


# From one rank to one other


@well_called
def tput(group: Group, rank: int, src: object) -> int:
    """Write `src` into a rank's tensor, one-sided; it has arrived when this returns. Returns the bytes."""
    return _one_sided("tput", group, rank, src, into_member=True)


@well_called
def tget(group: Group, rank: int, dst: object) -> int:
    """Read a rank's tensor into `dst`, one-sided. Returns the bytes."""
    return _one_sided("tget", group, rank, dst, into_member=False)


def _one_sided(op: str, group: Group, rank: int, local: object, *, into_member: bool) -> int:
    if not isinstance(group, Group):
        raise PtoTypeError(f"{op}: the group is {a_kind(group)}; make it with rank.group(...)")
    if isinstance(rank, bool) or not isinstance(rank, (int, np.integer)) or not 0 <= rank < group.size:
        raise PtoValueError(f"{op}: rank={rank!r} is none of the {group.size} ranks")
    tensor = as_tensor(local, f"the tensor of {op}")
    part = group.parts[rank]
    if tuple(tensor.shape) != part.shape or tensor.dtype.name != part.dtype:
        raise PtoValueError(
            f"{op}: the local tensor is {tensor.dtype} {tuple(tensor.shape)}, that of {group.rank.peers[rank]} "
            f"{part.dtype} {part.shape}; they are the same"
        )
    if not (part.writable if into_member else tensor.memory.flags.writeable):
        raise PtoValueError(f"{op}: the memory that is written is read-only")
    transport = group.rank.transport
    transport.must_be_open()
    transport.must_be_well()
    view = group.window.view(rank)
    group.window.must_be_live(int(rank))
    step = Step(int(rank), box_of(tensor), box_of(_member(group, rank), view), None, view is not None)
    recorder = transport.recorder
    start = recorder.now() if recorder else 0
    if step.here.nbytes:
        step.make(group.window, into_member)
        transport.fence()
    if recorder:
        recorder.moved(int(rank), start, step.here.nbytes, into_member=into_member)
    return step.here.nbytes
