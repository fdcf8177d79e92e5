"""What `ptokit run` and `ptokit judge` execute: a function of a text, or a launch of a script, again and again."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click
import numpy as np

from ptokit.access.plan import Array
from ptokit.cli.scripts import Launch, copies, run_script
from ptokit.cli.texts import UNREADABLE, parse_input, show
from ptokit.cli.values import named, values_for
from ptokit.core.launch import launch
from ptokit.core.run import Run
from ptokit.errors import PtoError, PtoValueError
from ptokit.findings import Finding
from ptokit.report.settings import target_names
from ptokit.tensors import GlobalTensor

if TYPE_CHECKING:
    from ptokit.ir.arguments import Argument
    from ptokit.ir.module import Module

TARGETS = ("cpu", "a2a3", "a5")
ALL = "all"
ARCHES = {"a2": "a2a3", "a3": "a2a3", "a2a3": "a2a3", "a5": "a5"}
"""What a text says of its target -> the target's name."""


@dataclass(frozen=True, eq=False)
class Played:
    """One execution: the run, or why there is none, and the arrays before and after it, by name."""

    target: str
    run: Run | None
    findings: list[Finding]
    before: Mapping[str, Array]
    after: Mapping[str, Array]
    tensors: Mapping[str, int] = field(default_factory=dict)
    """Per array in global memory: which of the run's tensors it is."""

    @property
    def changed(self) -> dict[str, int]:
        """How many elements of each array the execution has changed."""
        return {name: count(self.before[name], after) for name, after in self.after.items()}


class Program(Protocol):
    """Something that can be executed on a target."""

    @property
    def name(self) -> str:
        """The file."""

    @property
    def form(self) -> str | None:
        """How it was written."""

    @property
    def sources(self) -> dict[str, str]:
        """The texts that are no files, by name."""

    @property
    def findings(self) -> list[Finding]:
        """What its reading has to say."""

    def default_targets(self) -> tuple[str, ...]:
        """Where it is executed when nobody says where."""

    def play(self, target: str | None, **options: Any) -> Played:
        """Execute it once, on arrays of its own."""


def count(before: Array, after: Array) -> int:
    """How many elements differ, bit for bit."""
    size = before.dtype.itemsize
    a, b = (np.ascontiguousarray(one).reshape(-1).view(np.uint8).reshape(-1, size) for one in (before, after))
    return int((a != b).any(axis=1).sum())


@dataclass(eq=False)
class TextProgram:
    """A function of a text, with what was given for its arguments."""

    module: Module
    func: str | None
    values: dict[str, Any]
    arguments: Sequence[Argument]

    @property
    def name(self) -> str:
        """The file."""
        return self.module.file

    @property
    def form(self) -> str | None:
        """How it was written."""
        return self.module.form

    @property
    def sources(self) -> dict[str, str]:
        """Its text."""
        return {self.module.file: self.module.source}

    @property
    def findings(self) -> list[Finding]:
        """What its reading has to say."""
        return self.module.findings

    def default_targets(self) -> tuple[str, ...]:
        """What the text says, else a5."""
        return (ARCHES.get(self.module.arch or "", "a5"),)

    def play(self, target: str | None, **options: Any) -> Played:
        """Execute it on copies of the arrays."""
        from ptokit.ir.errors import RunError
        from ptokit.ir.play import play

        where = target or self.default_targets()[0]
        names, given = list(self.values), copies(list(self.values.values()))
        values = dict(zip(names, given, strict=True))
        before = {name: one.copy() for name, one in values.items() if isinstance(one, np.ndarray)}
        after = {name: one for name, one in values.items() if isinstance(one, np.ndarray)}
        in_memory = [one.name for one in self.arguments if one.kind in ("pointer", "view") and one.name in values]
        tensors = {name: at for at, name in enumerate(in_memory)}
        words = {name: value for name, value in options.items() if value is not None}
        try:
            run = play(self.module, values, func=self.func, target=where, **words)
        except RunError as refused:
            found = getattr(refused, "ptokit_run", None)
            told = [*(found.findings if found is not None else ()), *refused.findings]
            return Played(where, None, told, before, after, tensors)
        return Played(run.target, run, run.findings, before, after, tensors)


@dataclass(eq=False)
class ScriptProgram:
    """A launch of a Python script."""

    file: Path
    launch: Launch
    number: int
    form: str | None = "python"
    sources: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The file."""
        return str(self.file)

    def default_targets(self) -> tuple[str, ...]:
        """The one for which the script launches it."""
        return (self.launch.run.target,)

    def play(self, target: str | None, **options: Any) -> Played:
        """Launch it again, on copies of what it was given."""
        arguments = self.launch.fresh()
        words = {name: value for name, value in {**options, "target": target}.items() if value is not None}
        run = launch(self.launch.kernel, *arguments, **{**self.launch.keywords, **words})
        before: dict[str, Array] = {}
        after: dict[str, Array] = {}
        tensors: dict[str, int] = {}
        for at, (name, given, copied) in enumerate(zip(run.names, self.launch.arguments, arguments, strict=True)):
            old, new = _array(given), _array(copied)
            if old is not None and new is not None:
                before[name], after[name], tensors[name] = old, new, at
        return Played(run.target, run, run.findings, before, after, tensors)


def _array(given: object) -> Array | None:
    if isinstance(given, GlobalTensor):
        return given.buffer if isinstance(given.buffer, np.ndarray) else given.memory
    return given if isinstance(given, np.ndarray) else None


# Which program a command means


@contextmanager
def told_if_unread(document: Mapping[str, Any], *, as_json: bool) -> Iterator[None]:
    """A text that cannot be read or begun ends the command with exit code 2: its findings are shown, or are JSON."""
    try:
        yield
    except PtoError as unread:
        findings = getattr(unread, "findings", None)
        if findings is None:
            raise
        if as_json:
            told = {**document, "exit_code": UNREADABLE, "findings": [one.as_dict() for one in findings]}
            click.echo(json.dumps(told, indent=2, default=str))
        else:
            show(findings)
        sys.exit(UNREADABLE)


def program_of(
    file: str, args: Sequence[str], func: str | None, number: int | None, *, lenient: bool = False, quiet: bool = False
) -> list[Program]:
    """The function of a text, or the launches of a script, that a command line names."""
    if file.endswith(".py"):
        if args or func:
            raise PtoValueError(f"{file} is a script and makes its own arrays: --arg and --func go with a text")
        launches = run_script(file, quiet=quiet)
        if number is not None and not 1 <= number <= len(launches):
            raise PtoValueError(f"--launch {number}: {file} makes {len(launches)}; they count from 1")
        wanted = range(1, len(launches) + 1) if number is None else [number]
        return [ScriptProgram(Path(file), launches[at - 1], at) for at in wanted]
    if number is not None:
        raise PtoValueError("--launch goes with a script: a text has functions (--func)")
    if Path(file).is_dir():
        raise PtoValueError(f"{file} is a folder; a text or a script is wanted")
    return [_text(file, args, func, lenient=lenient)]


def _text(file: str, args: Sequence[str], func: str | None, *, lenient: bool) -> Program:
    module = parse_input(file, lenient=lenient)
    from ptokit.ir.arguments import entry_of, given_for

    entry = entry_of(module, func)
    values = values_for(entry.arguments, named(args))
    given_for(entry, values)
    return TextProgram(module, func, values, entry.arguments)


def targets_of(program: Program, asked: str | None) -> tuple[str, ...]:
    """The targets that were asked for: names with commas, or all."""
    if asked is None:
        return program.default_targets()
    named = target_names(asked, "--target", known=(*TARGETS, ALL))
    return TARGETS if ALL in named else named
