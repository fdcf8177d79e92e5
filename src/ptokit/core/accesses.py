"""MSCATTER and MGATHER on a core: the steps that each target makes of them, SEMANTICS 3.1 as a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ptokit.access.call import Access
from ptokit.access.cells import performed
from ptokit.access.commit import bits_of, memory_bits
from ptokit.access.instructions import legality, perform
from ptokit.access.plan import Array, Lanes, Machine, Mask, Plan, make_plan
from ptokit.access.report import Report
from ptokit.core.block import Block, Pair
from ptokit.core.gm import Dirty, Place
from ptokit.core.pipes import MTE2, MTE3, Instruction, S, Step, Touch, V, W
from ptokit.core.regions import UB, Region, scattered, solid
from ptokit.core.shadow import provenance, words_written_by
from ptokit.core.ub import UbTile, touch
from ptokit.findings import Finding, Severity
from ptokit.policies import ScatterAtomicOp, word
from ptokit.tensors import Tile


@dataclass(frozen=True)
class Sequence:
    """What one instruction does itself: handshakes, who reads the indices, who moves, handshakes."""

    before: tuple[Pair, ...]
    indices: int
    moves: int
    after: tuple[Pair, ...] = ()
    ready: tuple[Pair, ...] = ()
    """Handshakes between the reading of the indices and the movement."""
    after_add: tuple[Pair, ...] = ()
    """Row Add: back to plain stores."""
    waits_each_row: bool = False
    """Without an atomic S waits for every row that was issued."""


SEQUENCES: dict[tuple[str, str, str], Sequence] = {
    ("a2a3", "mscatter", "row"): Sequence(
        before=((V, S), (MTE2, S)),
        indices=S,
        ready=((S, MTE3),),
        moves=MTE3,
        after_add=((MTE3, S), (S, V), (S, MTE2)),
        after=((MTE3, V), (MTE3, MTE2)),
        waits_each_row=True,
    ),
    ("a2a3", "mscatter", "elem"): Sequence(
        before=((V, S), (MTE3, S), (MTE2, S)), indices=S, moves=S, after=((S, V), (S, MTE2), (S, MTE3))
    ),
    ("a2a3", "mgather", "row"): Sequence(
        before=((V, S), (MTE3, S)),
        indices=S,
        moves=MTE2,
        after=((S, MTE2), (MTE2, V), (MTE2, MTE3), (S, V), (S, MTE3)),
    ),
    ("a2a3", "mgather", "elem"): Sequence(
        before=((V, S), (MTE3, S), (MTE2, S)), indices=S, moves=S, after=((S, V), (S, MTE2), (S, MTE3))
    ),
    ("a5", "simt", ""): Sequence(before=(), indices=V, moves=V),
    ("a5", "scalar", ""): Sequence(before=((V, S),), indices=S, moves=S, after=((S, V),)),
    ("cpu", "", ""): Sequence(before=(), indices=S, moves=S),
}


def sequence_of(call: Access, target: str) -> Sequence:
    """The row of the table for this call."""
    if target == "cpu":
        return SEQUENCES["cpu", "", ""]
    if target == "a5":
        return SEQUENCES["a5", "scalar" if call.is_static_scalar else "simt", ""]
    return SEQUENCES[target, call.op, "row" if call.is_row else "elem"]


@dataclass(eq=False)
class Running:
    """One call under way: how its steps find its operands, and what came out."""

    block: Block
    machine: Machine
    instruction: Instruction
    call: Access
    tile: UbTile
    idx: UbTile
    place: Place
    told: list[Finding]
    table_touch: Touch
    words: Array | None = None
    report: Report | None = None
    seed: int | None = None
    widens: bool = False
    late: frozenset[int] = frozenset()
    filled: Mask | None = None
    span: tuple[int, int] = (0, 0)
    """Where the tile lay when the call was issued."""

    # The moment at which the indices are read

    def read_indices(self) -> None:
        """S has the words; what is written over them later does not matter to it."""
        self.block.sees_own_writes()
        self.note_what_has_landed()
        self.call = replace(self.call, idx=self.call.idx.copy())

    def note_what_has_landed(self) -> None:
        """Which of the instructions that should have written the words have not done so."""
        if self.words is None or self.block.schedule_is_polite:
            return
        first, last = int(self.words.min()), int(self.words.max())
        numbers = (first,) if first == last else np.unique(self.words).tolist()
        steps = self.block.writers
        self.late = frozenset(number for number in numbers if number in steps and not steps[number].done)

    def live_rows(self) -> Mask:
        """Per row: a DMA moves it; Skip and Zero leave those out whose index is out of bounds."""
        rows = self.call.tile.valid_rows
        if not self.call.drops:
            return np.ones(rows, np.bool_)
        words = self.machine.widen(np.asarray(self.call.idx.load()).ravel())
        return np.asarray(words < self.machine.capacity(self.call).counted)

    def rows_region(self, rows: Mask, *, moved: bool = False) -> list[Region]:
        """The bytes of these rows of the tile; an NZ tile is taken as a whole, be it filled or moved."""
        tile = self.tile
        if tile.layout != "nd" or bool(rows.all()):
            return tile.regions() if moved else [solid(UB, tile.address, tile.end)]
        size = tile.dtype.itemsize
        starts = tile.address + np.flatnonzero(rows) * (tile.cols * size)
        return [scattered(UB, starts, tile.valid_cols * size)]

    # The moment at which data moves

    def move(self) -> None:
        """The whole movement, on the memory as it is now."""
        if self.widens:
            self.call = widened(self.call, self.machine)
        if not self.late:
            self.note_what_has_landed()
        filled = self._filled_rows()
        kept = [row.copy() for row in filled]
        done = perform(self.call, self.machine, self.told, self.seed)
        for row, values in zip(filled, kept, strict=True):
            row[...] = values
        self.report = done
        region = self._reached(done.moved or done.plan)
        self.table_touch.regions[:] = [region] if region.count else []
        if self.block.checks.indices:
            self._tell(done)
        if self.call.is_scatter:
            self._publish(region)
        else:
            self.block.spoil(*self.span)

    # Rows that S fills with zeros

    def fill(self) -> None:
        """Zero: what no DMA brings."""
        for row in self._filled_rows():
            row[...] = 0

    def _filled_rows(self) -> list[Array]:
        """The rows of the tile that S has filled: the movement leaves them alone."""
        tile = self.call.tile
        if self.filled is None or tile.layout != "nd":
            return []
        memory = bits_of(tile.storage, tile.dtype).reshape(tile.rows, tile.cols)
        return [memory[row, : tile.valid_cols] for row in np.flatnonzero(self.filled)]

    def _reached(self, runs: Plan) -> Region:
        size = self.call.table.dtype.itemsize
        return scattered(self.place.buffer.number, runs.address * size + self.place.offset, runs.runs.length * size)

    def _publish(self, region: Region) -> None:
        """A DMA writes what the host sees; a store goes into the data cache."""
        if not region.count:
            return
        if self.table_touch.kind:
            step = self.instruction.facts["mover"]
            assert isinstance(step, Step)
            self.place.buffer.dirty.append(Dirty(step, region, self.block.number))
        else:
            self.place.buffer.publish(region)

    def move_as_scalar(self) -> None:
        """S reads and computes now; its writes become visible to the other pipes later."""
        if not self.block.is_adversary:
            self.move()
            return
        keep, at = self._written()
        old = keep[at].copy()
        self.move()
        new = keep[at].copy()
        keep[at] = old
        self._land = (keep, at, new)

    _land: tuple[Array, Lanes, Array] | None = None

    def land(self) -> None:
        """S's writes arrive."""
        if self._land is not None:
            keep, at, new = self._land
            keep[at] = new

    def _written(self) -> tuple[Array, Lanes]:
        """The memory that the call writes, and the places in it."""
        if not self.call.is_scatter:
            tile = self.call.tile
            return bits_of(tile.storage, tile.dtype), np.asarray(tile.valid_offsets().ravel())
        runs = performed(make_plan(self.call, self.machine))
        at = runs.address if runs.runs.length == 1 else (runs.address[:, None] + np.arange(runs.runs.length)).ravel()
        return memory_bits(self.call), np.unique(at)

    # What there is to say

    def _tell(self, report: Report) -> None:
        for finding in report.findings:
            self.block.tell(self._placed(finding, report))

    def _placed(self, finding: Finding, report: Report) -> Finding:
        """The finding at its place, with the instruction that wrote the word of a bad index."""
        facts: dict[str, Any] = {**finding.facts, "block": self.block.number}
        message = finding.message
        lane = facts.get("lane")
        if finding.id.startswith("PTO-I") and lane is not None and self.words is not None:
            sentence, more = self._origin(report.plan, lane)
            if finding.severity is not Severity.NOTE:
                message += sentence
            facts |= more
        return replace(finding, where=self.instruction.site.where, message=message, facts=facts)

    def _origin(self, plan: Plan, lane: list[int]) -> tuple[str, dict[str, Any]]:
        assert self.words is not None
        if plan.runs_are_rows:
            number = lane[0]
        else:
            found = np.flatnonzero((plan.runs.row == lane[0]) & (plan.runs.col == lane[1]))
            number = int(found[0]) if len(found) else 0
        return provenance(self.block, self.idx, self.words, int(plan.word_at[number]), self.late)


def widened(call: Access, machine: Machine) -> Access:
    """The call with its first index one past the table, if there is an index so large."""
    idx = call.idx.copy()
    past = machine.capacity(call).true
    if past < 1 << 31:
        idx.storage[int(idx.offsets(np.asarray(0), np.asarray(0)))] = past
    return replace(call, idx=idx)


def run_access(
    block: Block,
    machine: Machine,
    instruction: Instruction,
    call: Access,
    tile: UbTile,
    idx: UbTile,
    place: Place,
) -> None:
    """Issue the steps of one MSCATTER or MGATHER."""
    widens = block.mutation is not None and block.mutation.widens()
    told = block.judged(_key(call), lambda: legality(call, machine))
    if any(one.severity is Severity.ERROR for one in told):
        block.stop(*(replace(one, where=instruction.site.where) for one in told))
    sequence = sequence_of(call, block.target)
    if block.function_call and block.target == "a5" and sequence.moves == V:
        block.stop(_hang(block, instruction))
    rows, cols = call.tile.valid
    block.spend(instruction, rows * cols * call.tile.dtype.itemsize)
    running = Running(
        block=block,
        machine=machine,
        instruction=instruction,
        call=call,
        tile=tile,
        idx=idx,
        place=place,
        told=told,
        table_touch=_table_touch(call, place, sequence, block.target),
        words=words_written_by(block, idx) if block.checks.indices and block.target != "cpu" else None,
        seed=block.random_seed(),
        widens=widens,
        span=(tile.address, tile.end),
    )
    _issue(running, sequence)


def _issue(running: Running, sequence: Sequence) -> None:
    block, instruction, call = running.block, running.instruction, running.call
    ub_write = touch(running.tile, writes=True)
    reads = [touch(running.idx, writes=False, as_index=True)]
    if call.is_scatter:
        data, written = [touch(running.tile, writes=False)], [running.table_touch]
    else:
        data, written = [running.table_touch], [ub_write]
    _note_a5(block, instruction, sequence, reads + ([data[0]] if call.is_scatter else []))
    for source, sink in sequence.before:
        block.handshake(instruction, source, sink)

    if sequence.indices == S and sequence.moves == S:
        _scalar(running, [*reads, *data], written)
    elif sequence.indices == S:
        _dma(running, sequence, reads, [*data, *written])
    else:
        _step(running, sequence.moves, running.move, [*reads, *data, *written])

    for source, sink in sequence.after:
        block.handshake(instruction, source, sink)
    if not call.is_scatter:
        block.wrote(instruction, running.tile)


def _step(running: Running, pipe: int, work: Callable[[], None], touches: list[Touch]) -> Step:
    """The step that moves; it knows itself before it runs, since what it writes may stay in a cache."""
    return running.block.mover(pipe, running.instruction, work, touches, ("plan", running))


def _scalar(running: Running, reads: list[Touch], written: list[Touch]) -> None:
    """S reads, computes and writes."""
    block = running.block
    block.sees_own_writes()
    if not block.has_pipes:
        _step(running, S, running.move, [*reads, *written])
        return
    step = block.prepare(W, running.instruction, running.land, written)
    running.instruction.facts["mover"] = step
    block.on(S, running.instruction, running.move_as_scalar, reads, word="move", cost=("plan", running))
    block.send(step)


def _dma(running: Running, sequence: Sequence, reads: list[Touch], touches: list[Touch]) -> None:
    """S reads the indices and feeds a DMA pipe."""
    block, instruction = running.block, running.instruction
    adds = running.call.atomic is not ScatterAtomicOp.None_
    block.on(S, instruction, running.read_indices, reads, word="indices")
    live = running.live_rows()
    if not running.call.is_scatter and not live.all():
        # Zero: S fills the rows that no DMA brings; NZ: the whole tile, once.
        running.filled = ~live
        block.on(
            W,
            instruction,
            running.fill,
            [touch(running.tile, writes=True, regions=running.rows_region(~live))],
            word="zero",
        )
    if not live.any():
        touches = []
    elif not running.call.is_scatter:
        touches = [running.table_touch, touch(running.tile, writes=True, regions=running.rows_region(live, moved=True))]
    for source, sink in sequence.ready:
        block.handshake(instruction, source, sink)
    _step(running, sequence.moves, running.move, touches)
    if sequence.waits_each_row and not adds and live.any():
        block.handshake(instruction, sequence.moves, S)
    for source, sink in sequence.after_add if adds else ():
        block.handshake(instruction, source, sink)


def _table_touch(call: Access, place: Place, sequence: Sequence, target: str) -> Touch:
    """What the call does to global memory: where exactly is known when it has run."""
    atomic = kind = ""
    if call.is_scatter and target != "cpu":
        kind = {S: "scalar", V: "simt"}.get(sequence.moves, "")
        if call.atomic is not ScatterAtomicOp.None_:
            atomic = {S: "scalar", V: "simt"}.get(sequence.moves, "dma")
            if target == "a5":
                atomic = "simt"
    op = word(call.atomic) if atomic else ""
    return Touch([], call.is_scatter, call.table, atomic, op, kind=kind)


def _note_a5(block: Block, instruction: Instruction, sequence: Sequence, operands: list[Touch]) -> None:
    """a2a3 instructions that wait for MTE2 themselves: the same kernel may be broken on a5."""
    if block.target == "a2a3" and (MTE2, S) in sequence.before:
        instruction.facts["v_should_know"] = operands


def _key(call: Access) -> tuple[object, ...]:
    """What legality depends on."""
    table = call.table
    return (
        call.op,
        call.coalesce,
        call.atomic,
        call.oob,
        call.conflict,
        call.conflict_given,
        tile_key(call.tile),
        tile_key(call.idx),
        (table.dtype.name, table.declared_shape, table.is_known and table.shape, table.declared_stride, table.layout),
    )


def tile_key(tile: Tile) -> tuple[object, ...]:
    """What the rules look at of a tile."""
    return (
        tile.dtype.name,
        tile.rows,
        tile.cols,
        tile.layout,
        tile.loc,
        tile.fractal,
        tile.declared_valid,
        tile.is_known and tile.valid,
    )


def _hang(block: Block, instruction: Instruction) -> Finding:
    return Finding(
        "PTO-H005",
        Severity.ERROR,
        block.target,
        f"{instruction.name} is a SIMT instruction, and a kernel that is called as a plain function has no warp "
        "scheduler: the core hangs here, without an error code.",
        {"block": block.number, "dispatch": "function"},
        instruction.site.where,
        "Launch the kernel with the standard launch syntax (dispatch='standard').",
    )
