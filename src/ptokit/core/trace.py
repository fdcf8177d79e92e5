"""Every instruction on its pipe, from when to when, and who waited for whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ptokit import cost
from ptokit.core.block import Block, flag_name
from ptokit.core.pipes import NAMES, Step
from ptokit.core.timeline import schedule
from ptokit.core.ub import UbTile
from ptokit.findings import Where
from ptokit.tensors import GlobalTensor

LANES = ("S", "V", "MTE2", "MTE3")
INNER = ("sync", "indices", "dsb")
"""Steps inside an instruction, which show only where they take time."""


@dataclass(frozen=True)
class Slice:
    """One piece of work on one pipe, in cycles."""

    block: int
    pipe: str
    name: str
    start: float
    end: float
    nbytes: int
    where: Where
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Flow:
    """A flag or a handshake: one pipe went on when another had got so far."""

    block: int
    name: str
    from_pipe: str
    from_time: float
    to_pipe: str
    to_time: float


@dataclass(frozen=True)
class Trace:
    """The slices and flows of a launch, block by block, each pipe in the order of time."""

    target: str
    frequency_ghz: float
    blocks: int
    slices: tuple[Slice, ...]
    flows: tuple[Flow, ...]

    def __iter__(self) -> Iterator[Slice]:
        return iter(self.slices)

    def __len__(self) -> int:
        return len(self.slices)

    def to_perfetto(self, path: str | Path) -> Path:
        """Write it for ui.perfetto.dev (Chrome JSON)."""
        from ptokit.report.perfetto import write

        return write(self, Path(path))


def trace_of(target: str, blocks: Sequence[Block]) -> Trace:
    """The trace of these blocks by the cost model of their target."""
    numbers = cost.parameters(target)
    slices: list[Slice] = []
    flows: list[Flow] = []
    for block in blocks:
        schedule(block, numbers)
        steps = [step for step in block.steps if step.done]
        slices += [_slice(block, step) for step in steps if step.word not in INNER or step.end > step.start]
        flows += [_flow(block, step) for step in steps if step.awaits is not None and step.awaits.pipe != step.pipe]
    slices.sort(key=lambda one: (one.block, LANES.index(one.pipe), one.start))
    return Trace(target, numbers.clock.frequency_ghz, len(blocks), tuple(slices), tuple(flows))


def _slice(block: Block, step: Step) -> Slice:
    one = step.instruction
    touched = [region for touch in step.touches for region in touch.regions if touch.writes]
    args: dict[str, Any] = {"operands": [_called(operand) for operand in one.operands]}
    if step.flag is not None:
        args["flag"] = flag_name(step.flag)
    return Slice(
        block=block.number,
        pipe=NAMES[step.pipe],
        name=one.name,
        start=step.start,
        end=step.end,
        nbytes=sum(region.nbytes for region in touched),
        where=one.site.where,
        args=args,
    )


def _flow(block: Block, step: Step) -> Flow:
    assert step.awaits is not None
    name = flag_name(step.flag) if step.flag is not None else f"{NAMES[step.awaits.pipe]}->{NAMES[step.pipe]}"
    return Flow(
        block.number, name, NAMES[step.awaits.pipe], step.awaits.end, NAMES[step.pipe], max(step.start, step.awaits.end)
    )


def _called(operand: object) -> str:
    if isinstance(operand, UbTile):
        return operand.name
    return repr(operand) if isinstance(operand, GlobalTensor) else str(operand)
