"""A dry run: a text is played with arguments that are made up, for what does not depend on them.

Memory is as large as the views say, indices are distinct and in bounds, extents and bounds that only a caller knows are
tried with several small values. Findings that depend on such data are dropped; flags, the unified buffer and the data
cache do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from xdsl.dialects.func import CallOp, FuncOp

from ptokit.core.launch import launch
from ptokit.core.run import Run
from ptokit.errors import PtoError
from ptokit.findings import Finding, Severity
from ptokit.ir.arguments import Entry, entry_of, given_for, is_empty
from ptokit.ir.dialect import ops
from ptokit.ir.dialect.attributes import word
from ptokit.ir.errors import RunError
from ptokit.ir.madeup import MadeUp
from ptokit.ir.operands import Numbers
from ptokit.ir.play import Performance
from ptokit.ir.shortened import TOO_LONG, Shortened
from ptokit.tensors import DYNAMIC

if TYPE_CHECKING:
    from xdsl.ir import Operation, SSAValue

    from ptokit.ir.module import Module

CANNOT = "PTO-P014"
SIZES = (64, 2, 16, 1)
"""What an extent or a bound is taken to be, where nothing limits it: one after the other."""
MOST_INSTRUCTIONS = 2000
GROWTH = (1, 1 << 6, 1 << 13)
"""How often the memory behind a pointer is made larger, where it was too small."""
BY_DATA = ("PTO-I", "PTO-C")
"""Findings about what indices say: kept where constants say it."""
DEADLOCKS = ("PTO-S003", "PTO-S007", "PTO-S012")
NEVER = ("PTO-N", "PTO-H006")
TROUBLES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What made-up arguments may lead to: no text is broken because nothing fitting could be made up for it."""


def rehearse(module: Module, target: str) -> list[Finding]:
    """What a dry run of every function that nobody calls has to say on one target.

    >>> from ptokit.ir import parse
    >>> mod = parse('''
    ... func.func @f(%x: !pto.partition_tensor_view<1x8xf32>, %y: !pto.partition_tensor_view<1x8xf32>) {
    ...   %t = pto.alloc_tile : !pto.tile_buf<vec, 1x8xf32>
    ...   pto.tload ins(%x : !pto.partition_tensor_view<1x8xf32>) outs(%t : !pto.tile_buf<vec, 1x8xf32>)
    ...   pto.tstore ins(%t : !pto.tile_buf<vec, 1x8xf32>) outs(%y : !pto.partition_tensor_view<1x8xf32>)
    ...   return
    ... }''')
    >>> [(f.id, f.where.line, f.facts["insert"]) for f in rehearse(mod, "a5")]
    [('PTO-S001', 5, ['MTE2', 'MTE3', 0])]
    """
    found: list[Finding] = []
    for name in entries(module):
        try:
            entry = entry_of(module, name)
        except RunError as refused:
            found += [as_note(one, target) for one in refused.findings]
            continue
        except PtoError:
            continue
        found += Rehearsal(module, entry, target).findings()
    return found


def entries(module: Module) -> list[str | None]:
    """The functions that no other one calls, and those that say so; without functions the text itself."""
    funcs = {name: op for name, op in module.funcs.items() if not _is_cube(op)}
    if not module.funcs:
        return [] if is_empty(module) else [None]
    called = {callee for name, op in module.funcs.items() for callee in _callees(op) if callee != name}
    found: list[str | None] = [name for name, op in funcs.items() if name not in called or "pto.entry" in op.attributes]
    # Where all call each other, each is looked at by itself.
    return found or list(funcs)


def _callees(op: FuncOp) -> set[str]:
    return {str(word(one.callee)) for one in op.walk() if isinstance(one, CallOp)}


def _is_cube(op: FuncOp) -> bool:
    return bool(word(op.attributes.get("pto.kernel_kind")) == "cube")


def as_note(finding: Finding, target: str) -> Finding:
    """A text that cannot be played may still be right."""
    message = f"flags and memory are not checked past this place: {finding.message}"
    return replace(finding, id=CANNOT, severity=Severity.NOTE, target=target, message=message)


@dataclass(frozen=True, eq=False)
class Trial:
    """One dry run: what came out, and why it did not come to its end, if it did not."""

    run: Run | None
    findings: tuple[Finding, ...]
    refused: tuple[Finding, ...] = ()

    @property
    def is_through(self) -> bool:
        """It came to its end."""
        return self.run is not None and not self.refused and not any(block.stopped for block in self.run.blocks)

    @property
    def is_deadlocked(self) -> bool:
        """It came to a place where it waits for ever: what it was given is only one of the ways there."""
        return any(one.id in DEADLOCKS for one in self.findings)

    @property
    def is_telling(self) -> bool:
        """What it found is so, whatever was made up."""
        return self.is_through or self.is_deadlocked

    @property
    def wrong(self) -> tuple[Finding, ...]:
        """Where the text could not be played on, and nothing that was made up can be the reason."""
        return tuple(one for one in self.refused if one.facts.get("is_wrong"))

    @property
    def is_endless(self) -> bool:
        """It was stopped at a limit."""
        told = (*self.refused, *(() if self.run is None else self.run.findings))
        return any(one.id == "PTO-H006" or TOO_LONG in one.message.lower() for one in told)

    @property
    def length(self) -> int:
        """Instructions."""
        return 0 if self.run is None else sum(len(block.instructions) for block in self.run.blocks)


@dataclass(eq=False)
class Rehearsal:
    """The dry runs of one function on one target."""

    module: Module
    entry: Entry
    target: str
    constant: set[Operation] = field(init=False)
    blocks: int = field(init=False)
    is_shortened: bool = False
    """Some view was made smaller than it is."""

    def __post_init__(self) -> None:
        inside = list(self.module.walk())
        self.constant = constant_indices(inside)
        uses_blocks = any(isinstance(op, ops.GetBlockIdxOp) for op in inside)
        self.blocks = 2 if uses_blocks and self.target != "cpu" else 1

    def findings(self) -> list[Finding]:
        """The findings of the runs that came to their end or to a deadlock; where none did, of the longest, and why."""
        trials = []
        for size in self._sizes():
            trials.append(self._trial(size))
            if trials[-1].is_endless:
                break
        wrong = [replace(finding, target=self.target) for one in trials for finding in one.wrong]
        telling = [one for one in trials if one.is_telling]
        if telling:
            return _once([*wrong, *(finding for one in telling for finding in one.findings)])
        longest = max(trials, key=lambda one: one.length)
        refused = [as_note(one, self.target) for one in longest.refused if not one.facts.get("is_wrong")]
        return _once([*longest.findings, *wrong, *refused])

    def _sizes(self) -> Sequence[int]:
        return SIZES if self.is_open else SIZES[:1]

    @property
    def is_open(self) -> bool:
        """Something has to be made up that decides about more than data."""
        return any(one.kind == "scalar" or (one.dims and DYNAMIC in one.dims) for one in self.entry.arguments)

    def _trial(self, size: int) -> Trial:
        for growth in GROWTH:
            try:
                made = MadeUp(self.module, self.entry, size, self.blocks, growth)
                arguments = made.arguments()
                self.is_shortened = self.is_shortened or made.is_shortened
            except (PtoError, *TROUBLES) as trouble:
                return Trial(None, (), (self._cannot(trouble),))
            trial = self._played(arguments)
            if not any("too small" in one.message or "outside the memory" in one.message for one in trial.refused):
                break
        return trial

    def _played(self, arguments: Mapping[str, Any], dyn_ub: int = 0) -> Trial:
        refused: tuple[Finding, ...] = ()
        run: Run | None
        try:
            shortened = Shortened(self.module, self.entry, given_for(self.entry, arguments))
            try:
                run = self._launch(shortened, dyn_ub)
            except (PtoError, *TROUBLES) as trouble:
                run = getattr(trouble, "ptokit_run", None)
                told = trouble.findings if isinstance(trouble, RunError) else [self._cannot(trouble)]
                refused = tuple(told)
        except (PtoError, *TROUBLES) as trouble:
            return Trial(None, (), (self._cannot(trouble),))
        if run is None:
            return Trial(None, (), refused)
        if any(one.id == "PTO-M007" for one in run.findings) and not dyn_ub and run.ub.needed_dyn_ub:
            return self._asking_for(arguments, run.ub.needed_dyn_ub, run)
        return Trial(run, tuple(self._kept(shortened.worded(one) for one in run.findings)), refused)

    def _launch(self, shortened: Shortened, dyn_ub: int) -> Run:
        return launch(
            shortened.kernel(),
            *shortened.tensors,
            target=self.target,
            blocks=self.blocks,
            dyn_ub=dyn_ub,
            schedule="program",
            max_instructions=MOST_INSTRUCTIONS,
        )

    def _asking_for(self, arguments: Mapping[str, Any], dyn_ub: int, before: Run) -> Trial:
        """A text does not say what its launch asks for: with what it needs, and a warning that it must be asked for."""
        trial = self._played(arguments, dyn_ub)
        told = [replace(one, severity=Severity.WARNING) for one in before.findings if one.id == "PTO-M007"]
        worded = Performance(self.module, self.entry, ()).worded
        # Tiles that do not fit whatever a launch asks for say so themselves, and what was asked for here is our own.
        kept = [one for one in trial.findings if one.id != "PTO-M009"]
        fits = not any(one.id == "PTO-M006" for one in kept)
        return replace(trial, findings=(*kept, *(map(worded, told) if fits else ())))

    def _cannot(self, trouble: BaseException) -> Finding:
        text = " ".join(str(trouble).split()) or type(trouble).__name__
        return self.module.finding(CANNOT, Severity.NOTE, f"{text.rstrip('.')}.", self.entry.op, target=self.target)

    def _kept(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Without what depends on made-up data."""
        constant = {str(self.module.where(op)) for op in self.constant}
        for one in findings:
            if one.id.startswith(NEVER) or (
                one.id.startswith(("PTO-L", "PTO-R")) and (self.is_open or self.is_shortened)
            ):
                continue
            if one.id.startswith(BY_DATA) and (str(one.where) not in constant or self.is_shortened):
                continue
            if one.id in ("PTO-S009", "PTO-S010") and any(name in one.message for name in ("mscatter", "mgather")):
                continue  # which rows two blocks hit is in the indices
            yield one


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """What several runs say of one place is said once."""
    kept: dict[tuple[object, ...], Finding] = {}
    for one in findings:
        about = tuple(str(one.facts.get(name)) for name in ("lines", "flag", "tile", "insert"))
        kept.setdefault((one.id, one.where, *about), one)
    return list(kept.values())


# What indices constants give


def constant_indices(inside: Iterable[Operation]) -> set[Operation]:
    """The scatters and gathers whose index tile holds what constants say, and nothing else writes it."""
    numbers = Numbers()
    written: dict[SSAValue, list[Operation]] = {}
    accesses = []
    for op in inside:
        if isinstance(op, ops.MScatterOp | ops.MGatherOp):
            accesses.append(op)
        if isinstance(op, ops.DpsOp):
            for value in op.given(op.OUTS):
                written.setdefault(value, []).append(op)
        if isinstance(op, ops.TAssignOp):
            written.setdefault(op.tile, []).append(op)

    def is_constant(tile: SSAValue, depth: int = 0) -> bool:
        writers = written.get(tile, [])
        return len(writers) == 1 and depth < 20 and _says(writers[0], depth)

    def _says(op: Operation, depth: int) -> bool:
        if not isinstance(op, ops.VectorFamilyOp):
            return False
        known = all(numbers.of(value) is not None for value in op.scalars.values())
        return known and all(is_constant(one, depth + 1) for one in op.sources)

    return {op for op in accesses if is_constant(op.idx)}
