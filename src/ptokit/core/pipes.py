"""Pipes, their steps, and who waits for whom: the queues from which a schedule takes its next step.

S issues every instruction and does its own work at once. The other pipes are queues, and so are S's writes: they reach
another pipe only through a flag from S (SEMANTICS 3.1).
"""

from __future__ import annotations

import ast
import linecache
import sys
import textwrap
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from types import CodeType, FrameType
from typing import Any

import numpy as np

from ptokit.core.regions import Region
from ptokit.errors import PtoTypeError, PtoValueError, a_kind, listed, nearest
from ptokit.findings import Where

S, W, V, MTE2, MTE3 = range(5)
"""What runs side by side: S (its reads and waits), W (S's writes), and the three pipes that S feeds."""

NAMES = ("S", "S", "V", "MTE2", "MTE3")
PIPES = {"S": S, "V": V, "MTE2": MTE2, "MTE3": MTE3}
QUEUES = (W, V, MTE2, MTE3)
EVENT_IDS = 8
AHEAD = 16
"""How many steps of a pipe the adversary looks ahead for something that could run first."""
RECENT = 32
"""How many writes it remembers."""
DEPTH = 8
"""How often it does so within itself."""

Clock = tuple[int, int, int, int, int]
START: Clock = (0, 0, 0, 0, 0)


def pipe_named(given: object, what: str, *, all_too: bool = False) -> int:
    """The pipe of a name, `"V"` or `"PIPE_V"`; -1 is all of them."""
    known = [*PIPES, "ALL"] if all_too else list(PIPES)
    if not isinstance(given, str):
        raise PtoTypeError(f"{what}={given!r} is {a_kind(given)}; a pipe is one of {listed(known)}")
    name = given.upper().removeprefix("PIPE_")
    if all_too and name == "ALL":
        return -1
    if name not in PIPES:
        raise PtoValueError(
            f"{what}={given!r} is no pipe of a vector core.{_nearest(name, known)} Known: {listed(known)}"
        )
    return PIPES[name]


def _nearest(name: str, known: list[str]) -> str:
    lower = {one.lower(): one for one in known}
    return nearest(name, lower).upper().replace("DID YOU MEAN", "Did you mean")


def event_number(given: object) -> int:
    """The number of an event id: 3, "EVENT_ID3"; whether it exists is judged where it is used."""
    if isinstance(given, str) and given.upper().removeprefix("EVENT_ID").isdigit():
        return int(given.upper().removeprefix("EVENT_ID"))
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)):
        raise PtoTypeError(
            f"event_id={given!r} is {a_kind(given)}; an event id is 0 to 7, or 'EVENT_ID0' to 'EVENT_ID7'"
        )
    return int(given)


@dataclass(frozen=True)
class Site:
    """A call in the kernel's source; its column is looked up when somebody asks.

    Without code it is a place in a program that is no Python source, and its column is given.
    """

    code: CodeType | None
    lasti: int
    file: str
    line: int
    given_column: int = 0

    @cached_property
    def where(self) -> Where:
        """The place, with its column."""
        column = self.given_column
        if self.code is not None:
            position = next(islice(self.code.co_positions(), self.lasti // 2, None), None)
            column = (position[2] or 0) + 1 if position else 0
        return Where(self.file, self.line, column)

    @cached_property
    def target(self) -> str | None:
        """The name that the source gives to what this call returns, where it gives one."""
        if self.code is None:
            return None
        line, end, column, _ = next(islice(self.code.co_positions(), self.lasti // 2, None), (None,) * 4)
        if line is None or end is None:
            return None
        source = textwrap.dedent("".join(linecache.getline(self.file, number) for number in range(line, end + 1)))
        indent = len(linecache.getline(self.file, line)) - len(linecache.getline(self.file, line).lstrip())
        with suppress(SyntaxError, ValueError):
            return _target_of(ast.parse(source), (column or 0) - indent)
        return None

    def __str__(self) -> str:
        return f"line {self.line}"


def _target_of(module: ast.Module, column: int) -> str | None:
    """The name on the left of the call that begins at this column of the first line."""
    for statement in ast.walk(module):
        if not isinstance(statement, ast.Assign):
            continue
        for target in statement.targets:
            sides = [(target, statement.value)]
            if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
                sides = list(zip(target.elts, statement.value.elts, strict=False))
            for name, value in sides:
                if isinstance(name, ast.Name) and isinstance(value, ast.Call) and value.col_offset == column:
                    return name.id
    return None


_PACKAGE = __name__.partition(".")[0] + "."


@dataclass
class Sites:
    """The places of a kernel, each made once."""

    known: dict[tuple[CodeType, int], Site] = field(default_factory=dict)
    fixed: Site | None = None
    """Set while a program that is no Python source is played: its own place."""

    def here(self) -> Site:
        """Where the kernel calls: the first frame that is not the package's."""
        if self.fixed is not None:
            return self.fixed
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
            frame = frame.f_back
        if frame is None:
            return Site(None, 0, "<unknown>", 0)
        key = (frame.f_code, frame.f_lasti)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = Site(frame.f_code, frame.f_lasti, frame.f_code.co_filename, frame.f_lineno)
        return found


@dataclass(slots=True, eq=False)
class Instruction:
    """One instruction as it was issued."""

    number: int
    name: str
    pipe: int  # its nominal pipe: what events of it belong to
    site: Site
    operands: tuple[object, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Touch:
    """What a step reads or writes: regions, known at once or when the step has run."""

    regions: list[Region]
    writes: bool
    what: object  # the tile or the tensor
    atomic: str = ""
    """`dma` or `simt`: what another core may add at the same time; `scalar`: a read, an addition and a write."""
    op: str = ""
    """What an atomic does: add, max or min."""
    address: int = 0
    """Where the tile lay when this was issued."""
    as_index: bool = False
    kind: str = ""
    """`simt` or `scalar`: a write of global memory that stays in the data cache until it is flushed."""


@dataclass(slots=True, eq=False)
class Step:
    """A piece of work on one pipe: it runs after the step before it there, and after what it awaits."""

    number: int
    pipe: int
    instruction: Instruction
    work: Callable[[], None] | None = None
    awaits: Step | None = None
    is_wait: bool = False
    word: str = ""  # set, wait, barrier, or the work's name
    flag: tuple[int, int, int] | None = None
    touches: list[Touch] = field(default_factory=list)
    done: bool = False
    joins_all: bool = False
    cost: object = None
    issued: Clock = START
    clock: Clock = START
    start: float = 0.0
    end: float = 0.0

    @property
    def is_blocked(self) -> bool:
        """It waits for something that nobody has issued."""
        return self.is_wait and self.awaits is None


def _collide(one: Step, other: Step) -> bool:
    """Both touch the same bytes, and one of them writes."""
    return any(
        (a.writes or b.writes) and _may_meet(first, second)
        for a in one.touches
        for b in other.touches
        for first in a.regions
        for second in b.regions
    )


def _may_meet(one: Region, other: Region) -> bool:
    return one.space == other.space and one.low < other.high and other.low < one.high


class DeadlockError(Exception):
    """A step that can never run; `steps` is the circle, or the one wait that nothing sets."""

    def __init__(self, steps: list[Step]) -> None:
        super().__init__(steps)
        self.steps = steps


class Queues:
    """The steps that have been issued and have not run."""

    def __init__(self) -> None:
        self.queue: dict[int, deque[Step]] = {pipe: deque() for pipe in QUEUES}
        self.looks_ahead = False
        """What later steps of a pipe wait for runs before an earlier step of it, where that is allowed: the load of the
        next round comes before the reader of this one, if no flag holds it back."""
        self.landed: deque[tuple[int, Region]] = deque(maxlen=RECENT)
        self.depth = 0

    def add(self, step: Step) -> None:
        """Behind the others of its pipe."""
        self.queue[step.pipe].append(step)

    def pending(self) -> Iterable[Step]:
        """Everything that has not run."""
        return (step for queue in self.queue.values() for step in queue)

    def ready(self, pipe: int) -> Step | None:
        """The pipe's next step, where nothing holds it back."""
        queue = self.queue[pipe]
        if not queue or queue[0].is_blocked or (queue[0].awaits is not None and not queue[0].awaits.done):
            return None
        return queue[0]

    def run(self, step: Step) -> None:
        """The first of its queue."""
        self.queue[step.pipe].popleft()
        step.done = True
        if step.work is not None:
            step.work()
        if self.looks_ahead:
            self.landed.extend(
                (step.number, region) for touch in step.touches if touch.writes for region in touch.regions
            )

    def force(self, target: Step) -> None:
        """Run a step, and before it only what must run before it."""
        stack, waiting = [target], {id(target)}
        while stack:
            wanted = stack[-1]
            if wanted.done:
                stack.pop()
                waiting.discard(id(wanted))
                continue
            head = self.queue[wanted.pipe][0]
            if head.is_blocked:
                raise DeadlockError([head])
            need = head.awaits
            if need is None or need.done:
                if self.looks_ahead and head.work is not None:
                    self._let_others_go_first(wanted, head)
                    self._let_old_writes_land(head)
                if not head.done:
                    self.run(head)
                continue
            if id(need) in waiting:
                raise DeadlockError(self._circle(stack))
            if self.looks_ahead:
                self._let_others_go_first(wanted, self._next_work(need.pipe))
            if not need.done:
                stack.append(need)
                waiting.add(id(need))

    def _circle(self, stack: list[Step]) -> list[Step]:
        """The waits that hold each other back."""
        heads = [self.queue[one.pipe][0] for one in stack if not one.done]
        return list({id(head): head for head in heads if head.is_wait}.values())

    def _let_others_go_first(self, target: Step, rival: Step | None) -> None:
        """What the next waits of this pipe need, where it is younger than the step that comes next by rights, and both
        want the same bytes: nothing but flags may keep them apart."""
        if self.depth >= DEPTH or rival is None:
            return
        self.depth += 1
        head = self.queue[target.pipe][0]
        try:
            for step in list(islice(self.queue[target.pipe], 1, AHEAD)):
                need = step.awaits
                if need is not None and not need.done and self._overtakes(need, rival):
                    with suppress(DeadlockError):
                        self.force(need)
                if step is target or head.done:
                    break
        finally:
            self.depth -= 1

    def _overtakes(self, need: Step, rival: Step) -> bool:
        """On the way to it lies younger work that wants the rival's bytes, and no older one that does."""
        younger = False
        for step in islice(self.queue[need.pipe], AHEAD):
            # One instruction orders its own steps.
            if step.touches and step.instruction is not rival.instruction and _collide(step, rival):
                if step.number < rival.number:
                    return False
                younger = True
            if step is need:
                break
        return younger

    def _next_work(self, pipe: int) -> Step | None:
        """The first step of a pipe that touches anything."""
        return next((step for step in islice(self.queue[pipe], AHEAD) if step.touches), None)

    def _let_old_writes_land(self, reader: Step) -> None:
        """A write that is still under way lands on top of a newer one, just before somebody reads."""
        read = [region for touch in reader.touches if not touch.writes for region in touch.regions]
        if not read or self.depth >= DEPTH:
            return
        others = [step for pipe in QUEUES if pipe != reader.pipe for step in islice(self.queue[pipe], AHEAD)]
        for step in others:
            if not step.done and not reader.done and step.number < reader.number and self._buries(step, read):
                self.depth += 1
                with suppress(DeadlockError):
                    self.force(step)
                self.depth -= 1

    def _buries(self, old: Step, read: list[Region]) -> bool:
        """It writes what is about to be read, and something younger has been written there."""
        for touch in old.touches:
            for region in touch.regions if touch.writes else ():
                for wanted in read:
                    if _may_meet(region, wanted) and any(
                        number > old.number and _may_meet(region, there) for number, there in self.landed
                    ):
                        return True
        return False

    def force_all(self, pipes: Iterable[int] = QUEUES) -> None:
        """Run everything on these pipes; what was issued last goes first where the adversary may choose."""
        if self.looks_ahead:
            for step in sorted(self.pending(), key=lambda one: -one.number):
                if not step.done:
                    self.force(step)
            return
        for pipe in pipes:
            while self.queue[pipe]:
                self.force(self.queue[pipe][-1])


class Program:
    """The polite order: every step as soon as it may."""

    def __init__(self, seed: int = 0) -> None:
        self.chance = np.random.default_rng(seed)

    def issued(self, queues: Queues, step: Step) -> None:
        """Run whatever can run; a wait may let another pipe go on."""
        del step
        self._run_ready(queues)

    def _run_ready(self, queues: Queues) -> None:
        moved = True
        while moved:
            moved = False
            for pipe in QUEUES:
                while (head := queues.ready(pipe)) is not None:
                    queues.run(head)
                    moved = True

    def drain(self, queues: Queues) -> None:
        """Run everything that can ever run."""
        self._run_ready(queues)


class Late(Program):
    """The adversary: a step runs when the order demands it, and what is left at the end runs in reverse."""

    def issued(self, queues: Queues, step: Step) -> None:
        """Nothing runs before it must."""

    def drain(self, queues: Queues) -> None:
        """The last issued first: every pair that nothing orders has changed places."""
        for step in sorted(queues.pending(), key=lambda one: -one.number):
            try:
                queues.force(step)
            except DeadlockError:
                continue


class Chance(Program):
    """Any order that the flags allow, by chance."""

    def issued(self, queues: Queues, step: Step) -> None:
        """A few steps run, or none."""
        for _ in range(int(self.chance.integers(0, 3))):
            self._one(queues)

    def _one(self, queues: Queues) -> bool:
        heads = [head for pipe in QUEUES if (head := queues.ready(pipe)) is not None]
        if heads:
            queues.run(heads[int(self.chance.integers(len(heads)))])
        return bool(heads)

    def drain(self, queues: Queues) -> None:
        """Until nothing can run."""
        while self._one(queues):
            pass


SCHEDULES: dict[str, type[Program]] = {"late": Late, "program": Program, "random": Chance}
