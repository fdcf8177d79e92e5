"""Several cores over one global memory: nothing orders them; what two of them share must be read-only or atomic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ptokit.access.plan import Array, Lanes
from ptokit.core.block import Block
from ptokit.core.pipes import Instruction, Touch
from ptokit.findings import Finding, Severity
from ptokit.tensors import GlobalTensor


@dataclass(frozen=True, eq=False)
class Shared:
    """One access of global memory by one block."""

    block: int
    instruction: Instruction
    touch: Touch
    starts: Lanes
    length: int


def between_blocks(target: str, cores: list[Block]) -> list[Finding]:
    """Pairs of accesses of different blocks, one a write and not both atomic, that meet."""
    told: dict[tuple[object, ...], Finding] = {}
    for accesses in _by_buffer(cores).values():
        for note in _sums(target, accesses):
            told.setdefault((note.id, note.where), note)
        for one, other, byte in _collisions(accesses):
            finding = _finding(target, one, other, byte)
            key = (finding.id, *sorted((id(one.instruction.site), id(other.instruction.site))))
            told.setdefault(key, finding)
    return list(told.values())


def _sums(target: str, accesses: list[Shared]) -> Iterator[Finding]:
    """Floats that several blocks add to one element: rounded, the sum depends on which block came first."""
    groups: dict[int, list[Shared]] = {}
    for one in accesses:
        tensor = one.touch.what
        if one.touch.op == "add" and isinstance(tensor, GlobalTensor) and tensor.dtype.is_float:
            groups.setdefault(id(one.instruction.site), []).append(one)
    for members in groups.values():
        hit = _meeting(members, members)
        if hit is not None:
            yield _order_of_blocks(target, *hit)


def _order_of_blocks(target: str, one: Shared, other: Shared, byte: int) -> Finding:
    what = other.instruction
    return Finding(
        "PTO-C005",
        Severity.NOTE,
        target,
        f"blocks {one.block} and {other.block} add floats to byte {byte} of {other.touch.what!r} with {what.name}: "
        "nothing orders blocks, so where a sum is rounded it may differ from run to run.",
        {"blocks": sorted((one.block, other.block)), "first_byte": byte, "line": what.site.line},
        what.site.where,
        "Nothing where the sums are exact; else let one block add up, or add integers.",
    )


def _by_buffer(cores: list[Block]) -> dict[int, list[Shared]]:
    found: dict[int, list[Shared]] = {}
    for block in cores:
        for step in block.steps:
            if not step.done:
                continue
            for touch in step.touches:
                for region in touch.regions:
                    if region.space >= 0 and region.length:
                        shared = Shared(block.number, step.instruction, touch, region.starts, region.length)
                        found.setdefault(region.space, []).append(shared)
    return found


def _kind(touch: Touch) -> str:
    return touch.atomic if touch.writes and touch.atomic else "write" if touch.writes else "read"


def _may_meet(one: Touch, other: Touch) -> bool:
    """Two reads, or two atomics of the hardware that do the same; a scalar read-modify-write is none."""
    kinds = {_kind(one), _kind(other)}
    return kinds == {"read"} or (kinds <= {"dma", "simt"} and one.op == other.op)


def _collisions(accesses: list[Shared]) -> Iterator[tuple[Shared, Shared, int]]:
    """Accesses by kind and place in the source: every two groups that may not meet are held against each other."""
    groups: dict[tuple[str, str, int], list[Shared]] = {}
    for one in accesses:
        groups.setdefault((_kind(one.touch), one.touch.op, id(one.instruction.site)), []).append(one)
    kinds = list(groups.values())
    for number, members in enumerate(kinds):
        for others in kinds[number:]:
            if _may_meet(members[0].touch, others[0].touch):
                continue
            hit = _meeting(members, others)
            if hit is not None:
                yield hit


@dataclass
class Reach:
    """How far the intervals of a group have reached: the farthest, and the farthest of any other block."""

    end: int = -1
    who: int = -1
    block: int = -1
    next_end: int = -1
    next_who: int = -1

    def of_others(self, block: int) -> tuple[int, int]:
        """The farthest end of a block other than this one, and whose it is."""
        return (self.end, self.who) if self.block != block else (self.next_end, self.next_who)

    def add(self, end: int, who: int, block: int) -> None:
        """One more interval."""
        if block == self.block:
            if end > self.end:
                self.end, self.who = end, who
        elif end > self.end:
            self.next_end, self.next_who = self.end, self.who
            self.end, self.who, self.block = end, who, block
        elif end > self.next_end:
            self.next_end, self.next_who = end, who


def _meeting(members: list[Shared], others: list[Shared]) -> tuple[Shared, Shared, int] | None:
    """The first two accesses of different blocks, one of each group, that touch one byte."""
    same = members is others
    every = members if same else [*members, *others]
    low, high, block, who = _intervals(every)
    order = np.lexsort((high, low))
    low, high, block, who = low[order], high[order], block[order], who[order]
    if not _any_overlap(low, high):
        return None
    reach = (Reach(), Reach())
    for begin, end, core, one in zip(low.tolist(), high.tolist(), block.tolist(), who.tolist(), strict=True):
        group = 0 if same or one < len(members) else 1
        farthest, candidate = reach[group if same else 1 - group].of_others(core)
        if farthest > begin:
            return every[candidate], every[one], begin
        reach[group].add(end, one, core)
    return None


def _any_overlap(low: Array, high: Array) -> bool:
    return bool((np.maximum.accumulate(high)[:-1] > low[1:]).any())


def _intervals(every: list[Shared]) -> tuple[Array, Array, Array, Array]:
    low = np.concatenate([one.starts for one in every])
    count = np.array([len(one.starts) for one in every])
    high = low + np.repeat(np.array([one.length for one in every]), count)
    block = np.repeat(np.array([one.block for one in every]), count)
    return low, high, block, np.repeat(np.arange(len(every)), count)


def _finding(target: str, one: Shared, other: Shared, byte: int) -> Finding:
    kinds = {_kind(one.touch), _kind(other.touch)}
    scalar = "scalar" in kinds and not kinds & {"read", "write"} and one.touch.op == other.touch.op
    facts = {
        "blocks": sorted((one.block, other.block)),
        "lines": sorted((one.instruction.site.line, other.instruction.site.line)),
        "first_byte": byte,
    }
    does = {"read": "reads", "write": "writes", "dma": "adds to", "simt": "updates", "scalar": "adds to"}
    first = f"block {one.block} {does[_kind(one.touch)]} it with {one.instruction.name} at {one.instruction.site}"
    second = (
        f"block {other.block} {does[_kind(other.touch)]} it with {other.instruction.name} at {other.instruction.site}"
    )
    if scalar:
        return Finding(
            "PTO-S010",
            Severity.ERROR,
            target,
            f"byte {byte} of {other.touch.what!r}: {first}, and {second}; on {target} that is a scalar read, an "
            "addition and a write, so updates get lost.",
            facts,
            other.instruction.site.where,
            "Add whole rows (coalesce='row': the DMA unit adds), or give each block its own part of the table.",
        )
    return Finding(
        "PTO-S009",
        Severity.ERROR,
        target,
        f"byte {byte} of {other.touch.what!r}: {first}, and {second}; nothing orders blocks.",
        facts,
        other.instruction.site.where,
        "Give each block its own part, or use the same atomic on both sides.",
    )
