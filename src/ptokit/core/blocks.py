"""Several cores over one global memory: nothing orders them; what two of them share must be read-only or atomic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ptokit.access.plan import Array, Lanes
from ptokit.core.block import Block
from ptokit.core.pipes import Instruction, Touch
from ptokit.findings import Finding, Severity


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
        for one, other, byte in _collisions(accesses):
            finding = _finding(target, one, other, byte)
            key = (finding.id, *sorted((id(one.instruction.site), id(other.instruction.site))))
            told.setdefault(key, finding)
    return list(told.values())


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


def _may_meet(one: str, other: str) -> bool:
    """Two reads, or two atomics of the hardware; a scalar read-modify-write is none."""
    if one == other == "read":
        return True
    return {one, other} <= {"dma", "simt"}


def _collisions(accesses: list[Shared]) -> Iterator[tuple[Shared, Shared, int]]:
    """Accesses by kind and place in the source: every two groups that may not meet are held against each other."""
    groups: dict[tuple[str, int], list[Shared]] = {}
    for one in accesses:
        groups.setdefault((_kind(one.touch), id(one.instruction.site)), []).append(one)
    kinds = list(groups.items())
    for number, (key, members) in enumerate(kinds):
        for other_key, others in kinds[number:]:
            if _may_meet(key[0], other_key[0]):
                continue
            hit = _meeting(members, others)
            if hit is not None:
                yield hit


def _meeting(members: list[Shared], others: list[Shared]) -> tuple[Shared, Shared, int] | None:
    """The first two accesses of different blocks that touch one byte."""
    low, high, block, who = _intervals([*members, *others])
    order = np.lexsort((high, low))
    low, high, block, who = low[order], high[order], block[order], who[order]
    # The farthest end so far, and the farthest of any other block: a block of two suffices to find some pair.
    best_end, best_who, second_end, second_who = -1, -1, -1, -1
    if not _any_overlap(low, high):
        return None
    every = [*members, *others]
    mine = len(members)
    for at in range(len(low)):
        for end, candidate in ((best_end, best_who), (second_end, second_who)):
            if (
                end > low[at]
                and every[candidate].block != block[at]
                and _crosses(candidate, int(who[at]), mine, members is others)
            ):
                return every[candidate], every[int(who[at])], int(low[at])
        if high[at] > best_end:
            if best_who >= 0 and every[best_who].block != block[at]:
                second_end, second_who = best_end, best_who
            best_end, best_who = int(high[at]), int(who[at])
        elif high[at] > second_end and (best_who < 0 or every[best_who].block != block[at]):
            second_end, second_who = int(high[at]), int(who[at])
    return None


def _crosses(one: int, other: int, mine: int, same_group: bool) -> bool:
    return same_group or (one < mine) != (other < mine)


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
    scalar = "scalar" in kinds and not kinds & {"read", "write"}
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
        "Give each block its own part, or use an atomic on both sides.",
    )
