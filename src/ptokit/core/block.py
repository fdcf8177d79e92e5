"""One core that plays one block of a kernel: it issues steps, runs them as its schedule likes, and keeps the record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ptokit.core.checks import Checks
from ptokit.core.gm import GlobalMemory
from ptokit.core.limits import Meter
from ptokit.core.mutation import Applied
from ptokit.core.pipes import (
    EVENT_IDS,
    MTE2,
    NAMES,
    QUEUES,
    DeadlockError,
    Instruction,
    Late,
    Program,
    Queues,
    S,
    Site,
    Sites,
    Step,
    Touch,
    W,
)
from ptokit.core.placement import Landlord
from ptokit.core.regions import Region
from ptokit.core.ub import UbTile, UnifiedBuffer
from ptokit.errors import PtoTypeError, PtoValueError
from ptokit.findings import Finding, Severity

SPOILT = 0xA5
"""What the adversary leaves in bytes that the board does not keep for the program."""

Flag = tuple[int, int, int]
Pair = tuple[int, int]


class BlockStopped(BaseException):
    """The block goes no further: an illegal instruction, a deadlock, a limit. What to say stands in its findings."""


@dataclass(frozen=True, eq=False, repr=False)
class Event:
    """What an instruction gives back: a later one can wait for it."""

    step: Step | None
    pipe: int
    block: Block

    def __repr__(self) -> str:
        return f"<event on {NAMES[self.pipe]} of block {self.block.number}>"


@dataclass
class Flags:
    """Sets that no wait has taken yet, and waits that no set has answered."""

    sets: dict[Flag, list[Step]] = field(default_factory=dict)
    waits: dict[Flag, list[Step]] = field(default_factory=dict)
    used: set[Flag] = field(default_factory=set)


@dataclass(eq=False)
class Block:
    """The state of one core."""

    number: int
    target: str
    ub: UnifiedBuffer
    gm: GlobalMemory
    schedule: Program
    checks: Checks
    meter: Meter
    sites: Sites
    function_call: bool = False
    read_back: set[int] = field(default_factory=set)
    """The buffers that the host reads when the kernel has ended."""
    queues: Queues = field(default_factory=Queues)
    flags: Flags = field(default_factory=Flags)
    steps: list[Step] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    tail: dict[int, Step] = field(default_factory=dict)
    joined: dict[Pair, Step] = field(default_factory=dict)
    stopped: bool = False
    ended: bool = False
    writers: dict[int, Step] = field(default_factory=dict)
    """Per instruction that writes a tile: the step that does it."""
    landlord: Landlord | None = None
    overflow: int | None = None
    seed: int | None = None
    mutation: Applied | None = None
    _judged: dict[tuple[object, ...], list[Finding]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.queues.looks_ahead = self.is_adversary

    @property
    def has_pipes(self) -> bool:
        """cpu runs one statement after the other."""
        return self.target != "cpu"

    @property
    def is_adversary(self) -> bool:
        """The schedule is out to show what is wrong."""
        return isinstance(self.schedule, Late)

    @property
    def schedule_is_polite(self) -> bool:
        """Every step runs as soon as it may."""
        return type(self.schedule) is Program

    # Issuing

    def instruction(self, name: str, pipe: int, operands: tuple[object, ...] = (), wait: object = ()) -> Instruction:
        """A new instruction, and what it has to wait for."""
        if self.stopped:
            raise BlockStopped  # the kernel has caught what ended it, and goes on
        if self.ended:
            raise PtoValueError(f"{name}: the launch of this core has ended")
        one = Instruction(len(self.instructions), name, pipe if self.has_pipes else S, self.sites.here(), operands)
        self.instructions.append(one)
        self._within(self.meter.count(one))
        for event in _events(wait):
            self.await_event(one, event)
        return one

    def spend(self, instruction: Instruction, nbytes: int) -> None:
        """The instruction moves so many bytes."""
        self._within(self.meter.move(instruction, nbytes))

    def _within(self, exceeded: Finding | None) -> None:
        if exceeded is not None:
            self.stop(exceeded)

    def on(
        self,
        pipe: int,
        instruction: Instruction,
        work: Callable[[], None] | None = None,
        touches: Sequence[Touch] = (),
        word: str = "",
        cost: object = None,
    ) -> Step:
        """A step on a pipe: S does it at once, the others when their turn comes."""
        if not self.has_pipes:
            pipe = S
        step = Step(len(self.steps), pipe, instruction, work, None, False, word, None, list(touches))
        step.cost = cost
        return self._issue(step)

    def mover(
        self, pipe: int, instruction: Instruction, work: Callable[[], None], touches: Sequence[Touch], cost: object
    ) -> Step:
        """The step that moves the data of an instruction: the instruction knows it."""
        step = self.prepare(pipe if self.has_pipes else S, instruction, work, touches)
        step.cost = cost
        instruction.facts["mover"] = step
        return self.send(step)

    def prepare(
        self, pipe: int, instruction: Instruction, work: Callable[[], None] | None, touches: Sequence[Touch]
    ) -> Step:
        """A step that is known before it is issued."""
        return Step(-1, pipe, instruction, work, None, False, "move", None, list(touches))

    def send(self, step: Step) -> Step:
        """Issue a prepared step."""
        step.number = len(self.steps)
        return self._issue(step)

    def _issue(self, step: Step) -> Step:
        self.steps.append(step)
        self.tail[step.pipe] = step
        if step.pipe == S:
            step.done = True
            if step.work is not None:
                step.work()
            return step
        self.queues.add(step)
        self.schedule.issued(self.queues, step)
        return step

    def sees_own_writes(self) -> None:
        """S reads what it has written itself."""
        if self.queues.queue[W]:
            self.force(self.queues.queue[W][-1])

    # Order

    def handshake(self, instruction: Instruction, source: int, sink: int) -> None:
        """A set and a wait that belong to an instruction itself; id 0 of their pair."""
        self.reserve(instruction, (source, sink, 0))
        self.order(instruction, W if source == S else source, sink)

    def order(self, instruction: Instruction, source: int, sink: int) -> None:
        """What comes next on one pipe waits for everything so far on another."""
        last = self.tail.get(source)
        if last is None or not self.has_pipes or self.joined.get((source, sink)) is last:
            return
        self.joined[source, sink] = last
        self.wait_for(instruction, sink, last, "sync")

    def wait_for(
        self, instruction: Instruction, sink: int, last: Step | None, word: str, flag: Flag | None = None
    ) -> Step:
        """A step that waits for another; without one it waits until somebody sets its flag."""
        step = Step(len(self.steps), sink, instruction, None, last, True, word, flag)
        if sink == S:
            if last is None:
                self.steps.append(step)
                self.deadlock([step])
            assert last is not None
            if not last.done:
                self.force(last)
        return self._issue(step)

    def await_event(self, instruction: Instruction, event: Event) -> None:
        """`wait=`: the instruction's pipe waits for the pipe of the event."""
        if event.block is not self:
            raise PtoValueError(f"wait={event!r}: it belongs to another core or launch; nothing orders cores")
        if event.step is not None and event.pipe != instruction.pipe and self.has_pipes:
            instruction.facts.setdefault("waits", []).append(event)
            self.wait_for(instruction, instruction.pipe, event.step, "sync")

    def event(self, instruction: Instruction) -> Event:
        """What the instruction gives back."""
        return Event(self.tail.get(W if instruction.pipe == S else instruction.pipe), instruction.pipe, self)

    def force(self, step: Step) -> None:
        """S waits until this step has run."""
        try:
            self.queues.force(step)
        except DeadlockError as circle:
            self.deadlock(circle.steps, self.instructions[-1])

    def force_all(self, pipes: Iterable[int] = QUEUES) -> None:
        """S waits until these pipes have nothing left."""
        try:
            self.queues.force_all(pipes)
        except DeadlockError as circle:
            self.deadlock(circle.steps, self.instructions[-1])

    # Memory

    def wrote(self, instruction: Instruction, tile: UbTile) -> None:
        """An instruction writes a tile: the shadow knows, in the order of the program."""
        instruction.facts["writes"], instruction.facts["writes_at"] = tile, tile.address
        self.writers[instruction.number] = instruction.facts["mover"]
        self.ub.wrote(tile, tile.regions(), instruction)

    def wrote_bytes(self, instruction: Instruction, tile: UbTile, region: Region) -> None:
        """An instruction writes a part of a tile."""
        instruction.facts["writes"], instruction.facts["writes_at"] = tile, tile.address
        self.writers[instruction.number] = instruction.facts["mover"]
        self.ub.wrote_bytes(tile, region, instruction)

    def spoil(self, low: int, high: int) -> None:
        """What lies past the memory that the program has is not kept (the adversary's schedule only)."""
        if self.overflow is not None and high > self.overflow:
            self.ub.bytes[max(low, self.overflow) : high] = SPOILT

    def judged(self, key: tuple[object, ...], judge: Callable[[], list[Finding]]) -> list[Finding]:
        """Findings that depend on nothing but the key, judged once."""
        found = self._judged.get(key)
        if found is None:
            found = self._judged[key] = judge()
        return found

    def random_seed(self) -> int | None:
        """A seed for a legal order of a SIMT call, where orders are drawn by chance."""
        return None if self.seed is None else int(self.schedule.chance.integers(1 << 31))

    # Flags

    def set_flag(self, instruction: Instruction, flag: Flag) -> None:
        """`set_flag`: behind everything so far on its source pipe."""
        source = flag[0]
        if not self.has_pipes or not self._exists(instruction, flag):
            return
        self.flags.used.add(flag)
        held = self.flags.sets.get(flag)
        if held:
            self.tell(twice(self, instruction, held[-1], flag))
        step = self.on(W if source == S else source, instruction, word="set", cost=("flag",))
        step.flag = flag
        waiting = self.flags.waits.get(flag)
        if waiting:
            waiting.pop(0).awaits = step
            self.schedule.issued(self.queues, step)
        else:
            self.flags.sets.setdefault(flag, []).append(step)

    def wait_flag(self, instruction: Instruction, flag: Flag) -> None:
        """`wait_flag`: the sink pipe goes no further until the flag has been set."""
        if not self.has_pipes or not self._exists(instruction, flag):
            return
        self.flags.used.add(flag)
        held = self.flags.sets.get(flag)
        found = held.pop(0) if held else None
        step = self.wait_for(instruction, flag[1], found, "wait", flag)
        step.cost = ("flag",)
        if found is None:
            self.flags.waits.setdefault(flag, []).append(step)

    def _exists(self, instruction: Instruction, flag: Flag) -> bool:
        if 0 <= flag[2] < EVENT_IDS:
            return True
        self.tell(no_such_event(self, instruction, flag))
        return False

    def reserve(self, instruction: Instruction, flag: Flag) -> None:
        """An instruction's own handshake: the caller must not hold that flag across the call."""
        held = self.flags.sets.get(flag)
        if held:
            self.tell(held_across(self, instruction, held[-1], flag))

    def barrier(self, instruction: Instruction, pipe: int) -> None:
        """`pipe_barrier`: of one pipe, which is in order anyway, or of all."""
        if not self.has_pipes:
            return
        if pipe >= 0:
            self.on(W if pipe == S else pipe, instruction, word="barrier", cost=("barrier",))
            return
        self.force_all()
        step = self.on(S, instruction, word="barrier", cost=("barrier",))
        step.joins_all = True

    # Findings

    def finding(self, id_: str, severity: Severity, site: Site, message: str, fix: str, **facts: Any) -> Finding:
        """A finding of this block, at a place of its kernel."""
        return Finding(id_, severity, self.target, message, {"block": self.number, **facts}, site.where, fix)

    def tell(self, finding: Finding) -> None:
        """One more finding."""
        self.findings.append(finding)

    def stop(self, *findings: Finding) -> None:
        """The block ends here."""
        self.findings += findings
        self.stopped = True
        raise BlockStopped

    def deadlock(self, steps: list[Step], at: Instruction | None = None) -> None:
        """S waits (`at`) for something that will never come: what S has not issued by now it never will."""
        self.stop(stuck(self, steps, at))

    def finish(self) -> None:
        """The kernel has returned, or was stopped: what is under way lands, what is left over is told."""
        self.schedule.drain(self.queues)
        self.ended = True
        if self.stopped:
            return
        told: set[str] = set()
        for queue in QUEUES:
            waiting = self.queues.queue[queue]
            if not waiting:
                continue
            try:
                self.queues.force(waiting[-1])
            except DeadlockError as circle:
                finding = stuck(self, circle.steps)
                if finding.message not in told:
                    told.add(finding.message)
                    self.tell(finding)
        told_flags = {finding.facts.get("left_set") for finding in self.findings}
        told_flags |= {finding.facts["flag"] for finding in self.findings if finding.id == "PTO-S004"}
        for flag, held in self.flags.sets.items():
            if held and flag_name(flag) not in told_flags:
                self.tell(left_set(self, held[-1], flag))


def _events(wait: object) -> Sequence[Event]:
    """One event or several: what instructions give back."""
    if isinstance(wait, Event):
        return (wait,)
    several = tuple(wait) if isinstance(wait, (tuple, list, set, frozenset)) else (wait,)
    for one in several:
        if not isinstance(one, Event):
            raise PtoTypeError(f"wait={wait!r}: an event is wanted, or several; every instruction gives one back")
    return several


# The sentences


def flag_name(flag: Flag) -> str:
    """`MTE2->V, event 0`."""
    return f"{NAMES[flag[0]]}->{NAMES[flag[1]]}, event {flag[2]}"


def _call(word: str, flag: Flag) -> str:
    return f'k.{word}("{NAMES[flag[0]]}", "{NAMES[flag[1]]}", {flag[2]})'


def _error(id_: str, block: Block, site: Site, message: str, fix: str, **facts: Any) -> Finding:
    return block.finding(id_, Severity.ERROR, site, message, fix, **facts)


def twice(block: Block, instruction: Instruction, held: Step, flag: Flag) -> Finding:
    """A flag is set again before anybody has waited for it."""
    return _error(
        "PTO-S004",
        block,
        instruction.site,
        f"the flag {flag_name(flag)} is set again; it was set at {held.instruction.site} and nobody has waited for it.",
        f"Wait for it first ({_call('wait_flag', flag)}), or use another event id.",
        flag=flag_name(flag),
        first=held.instruction.site.line,
    )


def left_set(block: Block, step: Step, flag: Flag) -> Finding:
    """A flag that nobody has waited for when the kernel ends."""
    return _error(
        "PTO-S005",
        block,
        step.instruction.site,
        f"the flag {flag_name(flag)} is still set when the kernel ends: the next kernel on this core finds it set.",
        f"Add {_call('wait_flag', flag)} before the end, or drop the set.",
        flag=flag_name(flag),
    )


def no_such_event(block: Block, instruction: Instruction, flag: Flag) -> Finding:
    """An event id that the hardware does not have."""
    return _error(
        "PTO-S006",
        block,
        instruction.site,
        f"{instruction.name} names event {flag[2]}; a pair of pipes has events 0 to {EVENT_IDS - 1}, so this "
        "orders nothing.",
        f"Use another id of the pair ({_use_another(block, flag)}).",
        event=flag[2],
    )


def held_across(block: Block, instruction: Instruction, held: Step, flag: Flag) -> Finding:
    """The caller holds a flag that the instruction uses itself."""
    return _error(
        "PTO-S008",
        block,
        instruction.site,
        f"{instruction.name} uses the flag {flag_name(flag)} itself, and it is still set from {held.instruction.site}.",
        f"Wait for it before the call, or use another event id ({_use_another(block, flag)}).",
        flag=flag_name(flag),
        first=held.instruction.site.line,
    )


def stuck(block: Block, steps: list[Step], at: Instruction | None = None) -> Finding:
    """A deadlock: a wait that nothing sets, one whose flag was set for others, or a circle of waits."""
    step = next((one for one in steps if one.is_blocked), steps[0])
    flag, site = step.flag, step.instruction.site
    if not step.is_blocked or flag is None:
        lines = sorted({one.instruction.site.line for one in steps})
        return _error(
            "PTO-S012",
            block,
            site,
            f"deadlock: the waits at lines {', '.join(map(str, lines))} wait for each other.",
            "Set each flag before anything that waits for what comes after it.",
            lines=lines,
        )
    other = _mistaken(block, flag)
    if other is not None:
        wrong, setter = other
        return _error(
            "PTO-S007",
            block,
            site,
            f"deadlock: {step.instruction.name} waits for {flag_name(flag)}, which nothing sets; "
            f"{setter.instruction.site} sets {flag_name(wrong)}, which nobody has waited for.",
            f"Wait for the flag that is set: {_call('wait_flag', wrong)}.",
            flag=flag_name(flag),
            left_set=flag_name(wrong),
        )
    return _error(
        "PTO-S003",
        block,
        site,
        f"deadlock: {step.instruction.name} waits for {flag_name(flag)}, and nothing sets it{_since(step, at)}; "
        "the core would hang.",
        f"Set it on {NAMES[flag[0]]} before: {_call('set_flag', flag)}, or drop the wait.",
        flag=flag_name(flag),
    )


def _since(step: Step, at: Instruction | None) -> str:
    """Why a set that stands further down does not help."""
    if at is None or at is step.instruction:
        return ""
    return f" before {at.name} at {at.site}, where S waits for it"


def _mistaken(block: Block, flag: Flag) -> tuple[Flag, Step] | None:
    """A flag that is set, that nobody waits for, and that shares the pair or the id with this one."""
    left = [(f, held[-1]) for f, held in block.flags.sets.items() if held]
    same_pair = [one for one in left if one[0][:2] == flag[:2]]
    same_source = [one for one in left if one[0][0] == flag[0] and one[0][2] == flag[2]]
    near = same_pair or same_source
    return near[0] if near else None


def free_event(block: Block, source: int, sink: int) -> int | None:
    """An event id of the pair that the kernel does not use; 0 is left to the instructions that use it themselves."""
    used = {number for a, b, number in block.flags.used if (a, b) == (source, sink)}
    own = [number for number in range(EVENT_IDS) if number not in used]
    if block.target == "a5" or (source, sink) == (MTE2, NAMES.index("V")):
        return own[0] if own else None
    return next((number for number in own if number), own[0] if own else None)


def _use_another(block: Block, flag: Flag) -> str:
    free = free_event(block, flag[0], flag[1])
    return "all eight of the pair are in use: wait for one of them first" if free is None else f"{free} is free"
