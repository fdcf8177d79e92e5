"""What happened before what: vector clocks over the record of a block, and the pairs of accesses that nothing orders.

The record is gone through once, in an order that respects every wait. An access is held against what the other pipes
did and this one has not heard of.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ptokit.core.block import Block, free_event
from ptokit.core.coherence import Coherence
from ptokit.core.pipes import MTE2, NAMES, Clock, Instruction, S, Site, Step, Touch, V, W
from ptokit.core.regions import UB, Region, meet
from ptokit.core.shadow import Shadow
from ptokit.core.ub import UbTile
from ptokit.findings import Finding, Severity
from ptokit.tensors import GlobalTensor

PAIRS = (S, V, MTE2, 4)


@dataclass(frozen=True, eq=False)
class Seen:
    """An access that has been gone through: when, on which pipe, and what it touched."""

    step: Step
    touch: Touch
    region: Region
    when: int


@dataclass
class Race:
    """Two accesses that nothing orders: the first example, and how often."""

    earlier: Seen
    later: Seen
    byte: int
    count: int = 1


@dataclass
class Order:
    """The clocks of one block, and what they show."""

    block: Block
    clocks: dict[int, list[int]] = field(default_factory=lambda: {pipe: [0] * 5 for pipe in range(5)})
    count: list[int] = field(default_factory=lambda: [0] * 5)
    seen: dict[tuple[int, int], dict[object, Seen]] = field(default_factory=dict)
    waiting: dict[int, deque[Step]] = field(default_factory=lambda: {pipe: deque() for pipe in range(5)})
    passed: set[int] = field(default_factory=set)
    races: dict[tuple[object, ...], Race] = field(default_factory=dict)
    arrived: int = 0
    """S's writes that another pipe has heard of, and S from it: they are there for everything that S issues."""
    raced: set[tuple[int, int]] = field(default_factory=set)
    told: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """Per step and instruction that race: the first step of the instruction that did, as pipe and place there."""
    notes: dict[object, tuple[Step, Seen]] = field(default_factory=dict)
    coherence: Coherence = field(init=False)
    shadow: Shadow = field(init=False)

    def __post_init__(self) -> None:
        self.coherence = Coherence(self.block)
        self.shadow = Shadow(self.block)

    def findings(self) -> list[Finding]:
        """Go through the record."""
        for step in self.block.steps:
            if step.pipe in (S, W):
                self._pass(step)
                self._release()
            else:
                step.issued = self._known_to_s()
                self.waiting[step.pipe].append(step)
                self._release()
        told: list[Finding] = [*self.shadow.findings]
        if self.block.checks.races:
            told += [race_finding(self.block, races) for races in _one_pair_each(self.races.values())]
            told += [needless_pair(self.block, step, seen) for step, seen in self._last_notes()]
        return told + (self.coherence.findings() if self.block.checks.coherence else [])

    def _known_to_s(self) -> Clock:
        s, _, v, mte2, mte3 = self.clocks[S]
        return (s, self.arrived, v, mte2, mte3)

    def _release(self) -> None:
        """Steps whose wait has been answered go on."""
        moved = True
        while moved:
            moved = False
            for queue in self.waiting.values():
                while queue and self._may_pass(queue[0]):
                    self._pass(queue.popleft())
                    moved = True

    def _may_pass(self, step: Step) -> bool:
        return not step.is_blocked and (step.awaits is None or id(step.awaits) in self.passed)

    def _pass(self, step: Step) -> None:
        pipe = step.pipe
        if "v_should_know" in step.instruction.facts:
            # What S knew before the instruction's own handshakes.
            step.instruction.facts.setdefault("s_knew", self.clocks[S][MTE2])
        clock = self.clocks[S if pipe == W else pipe]
        if step.awaits is not None:
            _join(clock, step.awaits.clock)
            if pipe == S and step.awaits.pipe != W:
                self.arrived = max(self.arrived, step.awaits.clock[W])
        _join(clock, step.issued)
        if step.joins_all:
            for other in self.clocks.values():
                _join(clock, other)
        self.count[pipe] += 1
        clock[pipe] = self.count[pipe]
        if step.joins_all:
            for other in self.clocks.values():
                _join(other, clock)
            self.arrived = clock[W]
        step.clock = (clock[0], clock[1], clock[2], clock[3], clock[4])
        self.passed.add(id(step))
        if step.touches and "v_should_know" in step.instruction.facts:
            self._note(step.instruction, step)
        if step.done:
            self._look(step)

    def _look(self, step: Step) -> None:
        self.coherence.passed(step)
        if self.block.checks.memory:
            self.shadow.passed(step)
        for touch in step.touches:
            for region in touch.regions:
                if region.space != UB:
                    self.coherence.touched(step, touch, region)
                if self.block.checks.races and self.block.has_pipes:
                    self._hold(step, touch, region)

    def _hold(self, step: Step, touch: Touch, region: Region) -> None:
        met: list[tuple[Seen, int]] = []
        for other in self._unheard(step, region.space):
            if not (touch.writes or other.touch.writes) or other.step.instruction is step.instruction:
                continue
            byte = meet(region, other.region)
            if byte is not None:
                met.append((other, byte))
        for other, byte in met:
            # What comes before another access of the same race is ordered as soon as that one is.
            if not self._is_told(other, step) and not any(
                self._comes_before(other, one) for one, _ in met if one.step is not other.step
            ):
                self._race(other, Seen(step, touch, region, step.clock[step.pipe]), byte)
        mine = self.seen.setdefault((step.pipe, region.space), {})
        shape = (region.low, region.high, region.length, region.count, region.pitch)
        key: tuple[object, ...] = (*shape, touch.writes, id(step.instruction.site))
        if region.places is not None:
            key = (step.number, *key)
        mine.pop(key, None)
        mine[key] = Seen(step, touch, region, step.clock[step.pipe])

    def _is_told(self, one: Seen, step: Step) -> bool:
        """An earlier step of the same instruction races with it, and this one comes behind that."""
        pipe, when = self.told.setdefault(
            (one.step.number, step.instruction.number), (step.pipe, step.clock[step.pipe])
        )
        return (pipe, when) != (step.pipe, step.clock[step.pipe]) and step.clock[pipe] >= when

    def _comes_before(self, one: Seen, other: Seen) -> bool:
        """Ordered already, or by the pair that the finding about these two asks for."""
        return other.step.clock[one.step.pipe] >= one.when or (one.step.number, other.step.number) in self.raced

    def _unheard(self, step: Step, space: int) -> Iterator[Seen]:
        """What other pipes did there, and this step's pipe has not heard of."""
        for pipe in range(5):
            if pipe == step.pipe:
                continue
            there = self.seen.get((pipe, space))
            if not there:
                continue
            heard = step.clock[pipe]
            for one in reversed(there.values()):
                if one.when <= heard:
                    break
                yield one

    def _race(self, one: Seen, other: Seen, byte: int) -> None:
        early, late = sorted((one, other), key=lambda seen: seen.step.instruction.number)
        if self.coherence.explains(early, late):
            return
        key = (
            early.step.instruction.site,
            late.step.instruction.site,
            early.region.space,
            early.step.pipe,
            late.step.pipe,
        )
        self.raced.add((early.step.number, late.step.number))
        found = self.races.get(key)
        if found is None:
            self.races[key] = Race(early, late, byte)
        else:
            found.count += 1

    def _note(self, instruction: Instruction, step: Step) -> None:
        """Operands that MTE2 loaded and V has not heard of: a2a3 waits itself, a5 would not."""
        operands = instruction.facts.pop("v_should_know")
        assert isinstance(operands, list)
        heard = max(self.clocks[V][MTE2], instruction.facts["s_knew"])
        for touch in operands:
            for region in touch.regions:
                for one in reversed(self.seen.get((MTE2, UB), {}).values()):
                    if one.when <= heard:
                        break
                    if one.touch.writes and meet(one.region, region) is not None:
                        self.notes.setdefault((one.step.instruction.site, instruction.site), (step, one))

    def _last_notes(self) -> list[tuple[Step, Seen]]:
        """One note for each instruction: a pair after the last of the loads is enough."""
        last: dict[object, tuple[Step, Seen]] = {}
        for step, seen in self.notes.values():
            kept = last.get(step.instruction.site)
            if kept is None or kept[1].step.number < seen.step.number:
                last[step.instruction.site] = (step, seen)
        return list(last.values())


def _one_pair_each(races: Iterable[Race]) -> list[list[Race]]:
    """Races that one set and one wait mend: behind the last of the early accesses, before the same late one."""
    together: dict[tuple[object, ...], list[Race]] = {}
    for race in races:
        early, late = race.earlier, race.later
        key = (late.step.instruction.site, early.step.pipe, sink_of(late.step), early.region.space == UB)
        together.setdefault(key, []).append(race)
    return [sorted(group, key=lambda race: -race.earlier.step.instruction.number) for group in together.values()]


def _join(clock: list[int], other: Clock | list[int]) -> None:
    for pipe in range(5):
        if other[pipe] > clock[pipe]:
            clock[pipe] = other[pipe]


# The sentences


def _called(touch: Touch) -> str:
    if isinstance(touch.what, UbTile):
        return touch.what.name
    return repr(touch.what) if isinstance(touch.what, GlobalTensor) else str(touch.what)


def sink_of(late: Step) -> int:
    """The pipe that a caller's flag should reach: the instruction's own where it hands on what it hears."""
    nominal = late.instruction.pipe
    if nominal == V and late.pipe in (S, W) and late.instruction.name in ("mscatter", "mgather"):
        return V
    return S if late.pipe == W else late.pipe


def race_finding(block: Block, races: list[Race]) -> Finding:
    """Both accesses, both lines, the bytes, and the pair that would order them; the others that it would order too."""
    race, *others = races
    early, late = race.earlier, race.later
    on_chip = early.region.space == UB
    first, second = early.step.instruction, late.step.instruction
    source, sink = (S if early.step.pipe == W else early.step.pipe), sink_of(late.step)
    names = NAMES[source], NAMES[sink]
    number = free_event(block, source, sink)
    does = {True: "writes", False: "reads"}
    low, high = max(early.region.low, late.region.low), min(early.region.high, late.region.high)
    more = f" (and {race.count - 1} more times)" if race.count > 1 else ""
    more += "".join(f"; nor {_called(one.earlier.touch)} at {one.earlier.step.instruction.site}" for one in others[:3])
    what = _called(late.touch)
    other = "" if _called(early.touch) == what else f" {_called(early.touch)},"
    place = f"UB bytes {low:#x} to {high:#x}" if on_chip else f"bytes {low} to {high} of its memory"
    message = (
        f"{second.name} on {NAMES[late.step.pipe]} {does[late.touch.writes]} {what} while {first.name} at {first.site} "
        f"({NAMES[early.step.pipe]}) may not have {'written' if early.touch.writes else 'read'}{other} "
        f"{place}: nothing orders them{more}."
    )
    message = message.replace("  ", " ")
    event = "a free id" if number is None else number
    pair = f'"{names[0]}", "{names[1]}", {event}'
    fix = _pair_fix(pair, first.site, second.site) if source != sink else _barrier_fix(first.site, second.site)
    facts: dict[str, Any] = {
        "block": block.number,
        "pipes": [NAMES[early.step.pipe], NAMES[late.step.pipe]],
        "lines": [first.site.line, second.site.line],
        "instructions": [first.name, second.name],
        "operands": [_called(early.touch), _called(late.touch)],
        "writes": [early.touch.writes, late.touch.writes],
        "bytes": [low, high],
        "first_byte": race.byte,
        "insert": [names[0], names[1], number],
        "count": race.count,
        "also": [[one.earlier.step.instruction.site.line, _called(one.earlier.touch)] for one in others],
    }
    id_ = "PTO-S001" if on_chip else "PTO-S002"
    return Finding(id_, Severity.ERROR, block.target, message, facts, second.site.where, fix)


def _pair_fix(pair: str, first: Site, second: Site) -> str:
    """Where the pair goes; an access of the next round stands above that of this one."""
    if first.file == second.file and second.line <= first.line:
        return (
            f"Between the rounds of the loop: k.set_flag({pair}) once before the loop, k.wait_flag({pair}) before "
            f"{second}, k.set_flag({pair}) after {first}, and k.wait_flag({pair}) once after the loop; an id for each "
            "buffer."
        )
    return f"Insert k.set_flag({pair}) after {first} and k.wait_flag({pair}) before {second}."


def _barrier_fix(first: Site, second: Site) -> str:
    return f'Insert k.pipe_barrier("ALL") between {first} and {second}.'


def needless_pair(block: Block, step: Step, seen: Seen) -> Finding:
    """A kernel that a2a3 forgives."""
    first, second = seen.step.instruction, step.instruction
    number = free_event(block, MTE2, V)
    pair = f'"MTE2", "V", {"a free id" if number is None else number}'
    return Finding(
        "PTO-S011",
        Severity.NOTE,
        block.target,
        f"{second.name} uses {_called(seen.touch)} from {first.name} at {first.site} without an MTE2->V pair: "
        f"{block.target} waits for MTE2 itself here, a5 does not.",
        {"block": block.number, "lines": [first.site.line, second.site.line]},
        second.site.where,
        f"For a5, insert k.set_flag({pair}) after {first.site} and k.wait_flag({pair}) before {second.site}.",
    )
