"""When each step begins and ends, by the cost model: pipes overlap, waits hold them back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ptokit import cost
from ptokit.core.block import Block
from ptokit.core.pipes import NAMES, QUEUES, S, Step
from ptokit.cost import Parameters


@dataclass(frozen=True)
class Cycles:
    """Modelled cycles of a launch: `total` from the first issue to the last end, `cycles["MTE2"]` while a pipe works.

    With several blocks, those of the slowest.
    """

    total: float
    pipes: dict[str, float] = field(default_factory=dict)
    frequency_ghz: float = 1.0

    def __getitem__(self, pipe: str) -> float:
        """Cycles in which a pipe works."""
        return self.pipes[pipe.upper().removeprefix("PIPE_")]

    @property
    def microseconds(self) -> float:
        """The total as time."""
        return self.total / self.frequency_ghz / 1e3


def cycles_of(target: str, blocks: Sequence[Block], parameters: Parameters | None = None) -> Cycles:
    """The cycles of the slowest block."""
    numbers = parameters or cost.parameters(target)
    each = [_of_block(block, numbers) for block in blocks]
    return max(each, key=lambda one: one.total, default=Cycles(0.0))


def _of_block(block: Block, numbers: Parameters) -> Cycles:
    schedule(block, numbers)
    busy = dict.fromkeys(("S", "V", "MTE2", "MTE3"), 0.0)
    for step in block.steps:
        busy[NAMES[step.pipe]] += step.end - step.start
    busy["S"] += cost.issue(numbers) * sum(is_issued(step) for step in block.steps)
    total = max((step.end for step in block.steps), default=0.0)
    return Cycles(total, busy, numbers.clock.frequency_ghz)


def schedule(block: Block, numbers: Parameters) -> None:
    """Give every step its start and its end: a pipe begins when it is free and what it waits for has ended."""
    free = dict.fromkeys(range(5), 0.0)
    clock = 0.0
    issue = cost.issue(numbers)
    for step in _in_order(block.steps):
        waits = step.awaits.end if step.awaits is not None else 0.0
        if step.pipe == S:
            if step.joins_all:
                waits = max(waits, *(free[pipe] for pipe in QUEUES))
            step.start = max(clock, waits)
            step.end = clock = step.start + _duration(step, numbers)
            continue
        clock += issue if is_issued(step) else 0.0
        own = free[step.pipe]
        step.start = max(own, clock, waits)
        step.end = free[step.pipe] = step.start + _duration(step, numbers)


def is_issued(step: Step) -> bool:
    """S hands it to another pipe, which takes a moment of S."""
    return step.pipe != S and step.word in ("set", "wait", "move")


def _in_order(steps: Sequence[Step]) -> Sequence[Step]:
    """The order of issue; a wait that was issued before its set stands behind it."""
    placed: set[int] = set()
    late: list[Step] = []
    out: list[Step] = []
    for step in steps:
        blocked = step.awaits is not None and step.awaits.number > step.number
        if blocked or any(one.pipe == step.pipe for one in late):
            late.append(step)
        else:
            out.append(step)
            placed.add(id(step))
        moved = True
        while moved and late:
            moved = False
            for one in list(late):
                first = next(other for other in late if other.pipe == one.pipe)
                if one is first and (one.awaits is None or id(one.awaits) in placed):
                    late.remove(one)
                    out.append(one)
                    placed.add(id(one))
                    moved = True
    return [*out, *late]


def _duration(step: Step, numbers: Parameters) -> float:
    """Cycles of one step, from what it says of itself."""
    what = step.cost
    if not isinstance(what, tuple):
        return 0.0
    kind = what[0]
    if kind == "plan":
        return _of_plan(step, what[1], numbers)
    return PRICES[kind](numbers, *what[1:])


def _of_plan(step: Step, running: object, numbers: Parameters) -> float:
    report = getattr(running, "report", None)
    if report is None:
        return 0.0
    priced = cost.of_plan(report.plan, numbers)
    name = NAMES[step.pipe]
    own = sum(part.exposed for part in priced.parts if part.pipe == name)
    return float(own if step.instruction.facts.get("mover") is step or step.pipe == S else 0.0)


PRICES: dict[str, Callable[..., float]] = {
    "load": lambda numbers, bursts, size: cost.transfer(numbers, "load", bursts, size),
    "store": lambda numbers, bursts, size: cost.transfer(numbers, "store", bursts, size),
    "vector": cost.vector,
    "scalar": cost.scalar,
    "flag": cost.flag,
    "barrier": cost.barrier,
    "flush": cost.flush,
}
