"""Mending a text: what the findings ask for is inserted where they ask for it, until there is nothing left to insert.

Flag pairs with free event ids, waits and sets that lack their other half, flushes. Comments and layout stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from xdsl.dialects.func import FuncOp

from ptokit.findings import Finding, Severity
from ptokit.ir.check import check, targets_of
from ptokit.ir.dialect import ops
from ptokit.ir.dialect.attributes import word
from ptokit.ir.module import Module, parse
from ptokit.ir.operands import Numbers
from ptokit.ir.player import PIPE_OF_EVENT

if TYPE_CHECKING:
    from xdsl.ir import Block, Operation

EVENTS = 8
MOST_TURNS = 40
BARRIER = "pto.barrier <PIPE_ALL>"
FLUSH = (BARRIER, "pto.dcci", "pto.dsb")

STATIC = (ops.SetFlagOp, ops.WaitFlagOp)
DYNAMIC = (ops.SetFlagDynOp, ops.WaitFlagDynOp)
EVENT = (ops.RecordEventOp, ops.WaitEventOp)

Pair = tuple[str, str]
Flag = tuple[str, str, int]


@dataclass(frozen=True, order=True)
class Edit:
    """Text that replaces `text[start:end]`."""

    start: int
    end: int
    text: str


def fix(source: Module | str, targets: str | Iterable[str] | None = None) -> str:
    """The text with what its findings ask for: flags, event ids, flushes; the text itself where they ask for nothing.

    >>> mended = fix("pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID1>]\\n")
    >>> print(mended, end="")
    pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID1>]
    pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID1>]
    """
    module = source if isinstance(source, Module) else parse(source)
    chosen = [one for one in targets_of(module, targets) if one != "ptoas"]
    text, file, tried = module.source, module.file, Tried()
    for _ in range(MOST_TURNS):
        findings = [one for one in check(module, chosen) if one.severity is not Severity.NOTE]
        mended = Turn(module, findings, tried).text()
        if mended == text:
            break
        text = mended
        module = _again(text, file)
    return text


def _again(text: str, file: str) -> Module:
    """The text read once more; a one-line text is no file name."""
    return parse(text if "\n" in text else f"{text}\n", file=file, lenient=True)


@dataclass
class Tried:
    """What the turns before have done: a pair that did not help is followed by a barrier."""

    races: dict[tuple[object, ...], int] = field(default_factory=dict)

    def again(self, key: tuple[object, ...]) -> int:
        """How often this was tried before."""
        self.races[key] = self.races.get(key, 0) + 1
        return self.races[key] - 1


class Turn:
    """One go over the findings of a text."""

    def __init__(self, module: Module, findings: list[Finding], tried: Tried) -> None:
        self.module, self.findings, self.tried = module, findings, tried
        self.source = module.source
        self.edits: dict[Edit, None] = {}
        self.done: set[tuple[object, ...]] = set()
        self.numbers = Numbers()
        self.event_type = "index"
        self.used = self._used_events()
        self.at: dict[tuple[int, int], list[Operation]] = {}
        for op in module.walk():
            where = module.where(op)
            if op in module.places and where is not None:
                self.at.setdefault((where.line, where.column), []).append(op)

    def text(self) -> str:
        """The text after this turn."""
        if self._without(self._beyond_help()):
            return self._edited()
        # Races first: a flag that is set and not waited for may be what one of them lacks.
        for one in sorted(self.findings, key=lambda one: ORDER.index(one.id) if one.id in ORDER else len(ORDER)):
            mend = MENDERS.get(one.id)
            if mend is not None:
                mend(self, one)
        if not self.edits:
            # What nothing can be inserted for is beyond help at once.
            self._without(self._beyond_help())
        return self._edited()

    def _without(self, flags: set[Flag]) -> bool:
        """Without what sets these flags, or waits for them; where an id is computed, without all of its pair."""
        every = list(self.module.walk())
        pairs = {flag[:2] for flag in flags} & {pair_of(op) for op in every if self.computed(op) is not None}
        for op in every:
            if self.flag(op) in flags or pair_of(op) in pairs:
                self.drop(op)
        return bool(self.edits)

    def _edited(self) -> str:
        text = self.source
        for edit in sorted(self.edits, reverse=True):
            text = text[: edit.start] + edit.text + text[edit.end :]
        return text

    def _beyond_help(self) -> set[Flag]:
        """Flags whose sets and waits do not come right by another one: they go, and what they ordered is found anew."""
        told: set[Flag] = set()
        for one in self.findings:
            if one.id in FLAG_IDS:
                flags = [flag_in(one.facts.get(name)) for name in ("flag", "left_set")]
                told.update(flag for flag in flags if flag is not None)
            elif one.id == NO_SUCH_EVENT and (op := self.op_of(one)) is not None:
                told.update(self._flags_of(op))
            elif one.id == CIRCLE:
                told.update(self._flags_at(one.facts.get("lines")))
        return {flag for flag in sorted(told) if self.tried.again(("flag", flag))}

    def _flags_at(self, lines: object) -> Iterator[Flag]:
        """The flags of what stands on these lines."""
        wanted = lines if isinstance(lines, list) else []
        for op in (op for (line, _), some in self.at.items() if line in wanted for op in some):
            yield from self._flags_of(op)

    def _flags_of(self, op: Operation) -> Iterator[Flag]:
        """The flag of an op; one whose id is computed stands for all of its pair."""
        pair = pair_of(op)
        if pair is not None:
            yield self.flag(op) or (*pair, EVENTS)

    # Ops and places

    def op_of(self, finding: Finding) -> Operation | None:
        """The op that a finding points at."""
        where = finding.where
        found = self.at.get((where.line, where.column), []) if where is not None else []
        return found[0] if found else None

    def op_at(self, line: int, name: str) -> Operation | None:
        """The op of that name on a line."""
        every = [op for (at, _), some in self.at.items() if at == line for op in some]
        named = [op for op in every if op.name.removeprefix("pto.").endswith(name)]
        return next(iter(named or every), None)

    def before(self, op: Operation, *lines: str) -> None:
        """Lines before an op: with its indentation, where it begins its line."""
        start = self.module.places[op].start
        line = self.source.rfind("\n", 0, start) + 1
        indent = self.source[line:start]
        if indent.strip():
            indent = indent[: len(indent) - len(indent.lstrip())]
            self._insert(start, "".join(f"{one}\n{indent}" for one in self._spelt(lines)))
        else:
            self._insert(line, "".join(f"{indent}{one}\n" for one in self._spelt(lines)))

    def after(self, op: Operation, *lines: str) -> None:
        """Lines behind an op, past a comment that ends its line."""
        place = self.module.places[op]
        first = self.source.rfind("\n", 0, place.start) + 1
        head = self.source[first : place.start]
        indent = head[: len(head) - len(head.lstrip())]
        newline = self.source.find("\n", place.end)
        end = newline if newline >= 0 else len(self.source)
        rest = self.source[place.end : end].strip()
        if rest and not rest.startswith(("//", "#", ";")):
            self._insert(place.end, "".join(f"\n{indent}{one}" for one in self._spelt(lines)) + f"\n{indent}")
        else:
            self._insert(end, "".join(f"\n{indent}{one}" for one in self._spelt(lines)))

    def _spelt(self, lines: Iterable[str]) -> Iterator[str]:
        """The lines in the form in which the text is written."""
        return (in_form(line, self.module.form, self.event_type) for line in lines)

    def _insert(self, at: int, text: str) -> None:
        self.edits[Edit(at, at, text)] = None

    def replace(self, op: Operation, text: str) -> None:
        """Other text for an op."""
        place = self.module.places[op]
        self.edits[Edit(place.start, place.end, next(self._spelt((text,))))] = None

    def drop(self, op: Operation) -> None:
        """Without an op: without its line, where it stands alone there."""
        place = self.module.places.get(op)
        if place is None:
            return
        line = self.source.rfind("\n", 0, place.start) + 1
        newline = self.source.find("\n", place.end)
        end = len(self.source) if newline < 0 else newline + 1
        alone = not (self.source[line : place.start] + self.source[place.end : end]).strip()
        start, stop = (line, end) if alone else (place.start, place.end)
        self.edits[Edit(start, stop, "")] = None

    def once(self, *key: object) -> bool:
        """Whether this is new in this turn: several targets may ask for the same."""
        if key in self.done:
            return False
        self.done.add(key)
        return True

    # Events

    def flag(self, op: Any) -> Flag | None:
        """The flag that an op sets or waits for, as far as constants say it."""
        pair = pair_of(op)
        if pair is None:
            return None
        number = self.numbers.whole(op.event_id) if isinstance(op, DYNAMIC) else word(op.event_id)
        return None if number is None else (*pair, number)

    def _used_events(self) -> dict[Pair, set[int]]:
        """The event ids that the text names, by pair; one that is computed may be any."""
        used: dict[Pair, set[int]] = {}
        for op in self.module.walk():
            pair, flag = pair_of(op), self.flag(op)
            if pair is not None:
                used.setdefault(pair, set()).update(range(EVENTS) if flag is None else (flag[2],))
        return used

    def computed(self, op: Operation) -> str | None:
        """The value that holds the event id of an op, where only a run knows what it is."""
        if not isinstance(op, DYNAMIC) or self.numbers.whole(op.event_id) is not None:
            return None
        self.event_type = str(op.event_id.type)
        return self.module.name(op.event_id) or None

    def other_half(self, op: Operation, flag: Flag) -> str:
        """The wait for what an op sets, the set of what it waits for."""
        name = self.computed(op)
        if name is None:
            return wait_of(flag) if is_set(op) else set_of(flag)
        half = "wait" if is_set(op) else "set"
        return f"pto.{half}_flag_dyn[<PIPE_{flag[0]}>, <PIPE_{flag[1]}>, %{name}]"

    def free(self, pair: Pair) -> int | None:
        """An event id of the pair that nothing uses; 0 is left to the instructions that use it themselves."""
        used = self.used.setdefault(pair, set())
        order = range(EVENTS) if pair == ("MTE2", "V") else (*range(1, EVENTS), 0)
        found = next((number for number in order if number not in used), None)
        if found is not None:
            used.add(found)
        return found

    def order(self, early: Operation, late: Operation, pair: Pair) -> None:
        """A pair of flags between two ops, or a barrier where there is no id left or a pair has not helped."""
        tried = self.tried.again((pair, early.name, late.name, _said(self, early), _said(self, late)))
        first, second, is_forward = together(early, late)
        if isinstance(first, FuncOp):
            # Nothing stands between two functions: the pair stands before the later one.
            first, second, is_forward = late, late, True
        open_flag = self.open_flag(pair, first, second) if is_forward else None
        if open_flag is not None:
            self.before(second, wait_of((*pair, open_flag)))
            return
        number = self.free(pair) if tried < 2 and pair[0] != pair[1] else None
        if number is None:
            if is_forward:
                self.before(second, BARRIER)
            else:
                self.after(first, BARRIER)
            return
        flag = (*pair, number)
        if not is_forward:
            self.after(first, set_of(flag), wait_of(flag))
        elif first.parent is early.parent and second.parent is late.parent and first is early and second is late:
            self.after(early, set_of(flag))
            self.before(late, wait_of(flag))
        else:
            self.before(second, set_of(flag), wait_of(flag))

    def open_flag(self, pair: Pair, first: Operation, second: Operation) -> int | None:
        """A flag of the pair that is set between the two, and that nobody waits for."""
        for one in self.findings:
            if one.id not in ("PTO-S004", "PTO-S005"):
                continue
            flag, op = flag_in(one.facts.get("flag")), self.op_of(one)
            if flag is None or flag[:2] != pair or op is None or op.parent is not second.parent:
                continue
            if first.is_before_in_block(op) and op.is_before_in_block(second):
                self.done.add(("flag", flag))
                return flag[2]
        return None


@cache
def in_form(line: str, form: str, event_type: str = "index") -> str:
    """A line of the dialect as a form has it: what is inserted is read by whoever reads the rest.

    >>> in_form("pto.barrier <PIPE_ALL>", "generic"), in_form("pto.dsb", "as")
    ('"pto.barrier"() <{pipe = #pto.pipe<PIPE_ALL>}> : () -> ()', 'dsb')
    """
    if form not in ("generic", "as"):
        return line
    used = re.findall(r"%[\w.$-]+", line)
    text = "".join(f"{one} = arith.constant 0 : {event_type}\n" for one in used) + line
    name = line.partition("[")[0].partition(" ")[0].removeprefix("pto.")
    printed = parse(f"{text}\n").to(form).splitlines()
    return next(one.strip() for one in printed if one.strip().removeprefix('"pto.').startswith(name))


def _said(turn: Turn, op: Operation) -> str:
    place = turn.module.places[op]
    return turn.source[place.start : place.end]


# Flags


def set_of(flag: Flag) -> str:
    """The line that sets it."""
    return f"pto.set_flag[<PIPE_{flag[0]}>, <PIPE_{flag[1]}>, <EVENT_ID{flag[2]}>]"


def wait_of(flag: Flag) -> str:
    """The line that waits for it."""
    return f"pto.wait_flag[<PIPE_{flag[0]}>, <PIPE_{flag[1]}>, <EVENT_ID{flag[2]}>]"


def flag_in(told: object) -> Flag | None:
    """`MTE2->V, event 0` as its parts.

    >>> flag_in("MTE2->V, event 0")
    ('MTE2', 'V', 0)
    """
    if not isinstance(told, str) or ", event " not in told:
        return None
    pair, _, number = told.partition(", event ")
    source, _, sink = pair.partition("->")
    return (source, sink, int(number)) if number.isdigit() else None


def pair_of(op: Operation) -> Pair | None:
    """The pipes between which an op sets a flag, or waits for one."""
    if isinstance(op, (*STATIC, *DYNAMIC)):
        return word(op.src_pipe), word(op.dst_pipe)
    if isinstance(op, EVENT):
        source, sink = (PIPE_OF_EVENT.get(word(end)) for end in (op.src_op, op.dst_op))
        return None if source is None or sink is None else (source, sink)
    return None


def is_set(op: Operation) -> bool:
    """It sets a flag, rather than waiting for one."""
    return isinstance(op, ops.SetFlagOp | ops.SetFlagDynOp | ops.RecordEventOp)


def together(early: Operation, late: Operation) -> tuple[Operation, Operation, bool]:
    """The two ops, or what they stand in, in the innermost block that has both; and whether the first comes first."""
    above: dict[Block | None, Operation] = {}
    at: Operation | None = early
    while at is not None:
        above[at.parent] = at
        at = at.parent_op()
    at = late
    while at is not None and at.parent not in above:
        at = at.parent_op()
    if at is None:
        return early, late, True
    first = above[at.parent]
    return first, at, first is not at and first.is_before_in_block(at)


# What each finding asks for


def _race(turn: Turn, one: Finding) -> None:
    facts: Mapping[str, Any] = one.facts
    insert, lines, names = facts.get("insert"), facts.get("lines"), facts.get("instructions")
    late = turn.op_of(one)
    if late is None or not (isinstance(insert, list) and isinstance(lines, list) and isinstance(names, list)):
        return
    early = turn.op_at(lines[0], names[0])
    if early is not None and turn.once("pair", insert[0], insert[1], late):
        turn.order(early, late, (insert[0], insert[1]))


def _never_set(turn: Turn, one: Finding) -> None:
    """A wait that nothing sets: it is set before."""
    flag, op = flag_in(one.facts.get("flag")), turn.op_of(one)
    if flag is not None and op is not None and turn.once("flag", flag if turn.computed(op) is None else op):
        turn.before(op, turn.other_half(op, flag))


def _mistaken(turn: Turn, one: Finding) -> None:
    """A wait for another flag than the one that is set."""
    flag, op = flag_in(one.facts.get("left_set")), turn.op_of(one)
    if op is not None and turn.computed(op) is not None:
        _never_set(turn, one)
    elif flag is not None and op is not None and turn.once("flag", flag):
        turn.replace(op, wait_of(flag))


def _set_twice(turn: Turn, one: Finding) -> None:
    """A set that comes before somebody has waited for the last one."""
    flag, op = flag_in(one.facts.get("flag")), turn.op_of(one)
    if flag is None or op is None or not turn.once("flag", flag if turn.computed(op) is None else op):
        return
    where = turn.module.where(op)
    if where is not None and one.facts.get("first") == where.line:
        turn.after(op, turn.other_half(op, flag))
    else:
        turn.before(op, wait_of(flag))


def _left_set(turn: Turn, one: Finding) -> None:
    """A set that nobody waits for."""
    flag, op = flag_in(one.facts.get("flag")), turn.op_of(one)
    if flag is not None and op is not None and turn.once("flag", flag if turn.computed(op) is None else op):
        turn.after(op, turn.other_half(op, flag))


def _held_across(turn: Turn, one: Finding) -> None:
    """A flag that an instruction uses itself: the text takes another one."""
    flag = flag_in(one.facts.get("flag"))
    if flag is None or not turn.once("flag", flag):
        return
    number = turn.free((flag[0], flag[1]))
    if number is None:
        return
    for op in turn.module.walk():
        if turn.flag(op) == flag:
            turn.replace(op, (set_of if is_set(op) else wait_of)((flag[0], flag[1], number)))


def _unflushed(turn: Turn, one: Finding) -> None:
    """Stores that nobody flushes: at the end of the function."""
    op = turn.op_of(one)
    if op is None:
        return
    while (above := op.parent_op()) is not None and above in turn.module.places and not _is_frame(above):
        op = above
    block = op.parent
    inside = [one for one in block.ops if one in turn.module.places] if block is not None else []
    if not inside or not turn.once("flush", inside[-1]):
        return
    last = inside[-1]
    if last.name in ("func.return", "scf.yield"):
        turn.before(last, *FLUSH)
    else:
        turn.after(last, *FLUSH)


def _is_frame(op: Operation) -> bool:
    return op.name in ("func.func", "builtin.module", "pto.section.vector")


def _unordered_flush(turn: Turn, one: Finding) -> None:
    op = turn.op_of(one)
    if op is not None and turn.once("barrier", op):
        turn.before(op, BARRIER)


def _half_flush(turn: Turn, one: Finding) -> None:
    op = turn.op_of(one)
    if op is None or not turn.once("half", op):
        return
    if isinstance(op, ops.DcciOp):
        turn.after(op, "pto.dsb")
    else:
        turn.before(op, BARRIER, "pto.dcci")


def _too_early(turn: Turn, one: Finding) -> None:
    """A load of what stands in the data cache."""
    op = turn.op_of(one)
    if op is None or not turn.once("load", op):
        return
    number = turn.free(("S", "MTE2"))
    pair = () if number is None else (set_of(("S", "MTE2", number)), wait_of(("S", "MTE2", number)))
    flush = () if one.facts.get("flushed") else FLUSH
    turn.before(op, *flush, *(pair or (BARRIER,)))


def _idle(turn: Turn, one: Finding) -> None:
    """A flag from a pipe to itself orders nothing."""
    if turn.once("idle"):
        for op in turn.module.walk():
            if isinstance(op, (*STATIC, *DYNAMIC)) and op.src_pipe == op.dst_pipe:
                turn.drop(op)


MENDERS: dict[str, Callable[[Turn, Finding], None]] = {
    "PTO-S001": _race,
    "PTO-S002": _race,
    "PTO-S003": _never_set,
    "PTO-S004": _set_twice,
    "PTO-S005": _left_set,
    "PTO-S007": _mistaken,
    "PTO-S008": _held_across,
    "PTO-H001": _unflushed,
    "PTO-H002": _unordered_flush,
    "PTO-H003": _half_flush,
    "PTO-H004": _too_early,
    "PTO-P012": _idle,
}
"""What is done for each finding that can be mended by inserting something."""
ORDER = list(MENDERS)
FLAG_IDS = ("PTO-S003", "PTO-S004", "PTO-S005", "PTO-S007")
NO_SUCH_EVENT, CIRCLE = "PTO-S006", "PTO-S012"
