"""A text that was read: its ops, where they stand, and what can be done with it."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptokit.errors import PtoError, PtoTypeError, PtoValueError, nearest
from ptokit.findings import Finding, Severity, Where
from ptokit.ir.errors import ConvertError, ParseError
from ptokit.ir.places import MOST_CHARACTERS, Place, Range, Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xdsl.dialects.builtin import ModuleOp
    from xdsl.dialects.func import FuncOp
    from xdsl.ir import Operation, SSAValue

FORMS = {
    "dps": ("ptokit.ir.printing", "module_to_dps"),
    "generic": ("ptokit.ir.printing", "module_to_generic"),
    "ssa": ("ptokit.ir.documents", "to_ssa"),
    "as": ("ptokit.ir.documents", "to_as"),
    "cpp": ("ptokit.ir.cpp", "to_cpp"),
}
"""Where each form is printed: a module of the package, and its function of a `Module`."""


@dataclass(eq=False)
class Module:
    """Ops with their text.

    >>> mod = parse("%t = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>")
    >>> print(mod.to("dps"), end="")
    module {
      %t = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>
    }
    """

    op: ModuleOp
    source: str = ""
    file: str = "<text>"
    form: str = "dps"
    findings: list[Finding] = field(default_factory=list)
    places: dict[Operation, Place] = field(default_factory=dict, repr=False)
    names: dict[SSAValue, str] = field(default_factory=dict, repr=False)

    @cached_property
    def text(self) -> Source:
        """The source with its lines."""
        return Source(self.source, self.file)

    # What it holds

    @property
    def arch(self) -> str | None:
        """What `pto.target_arch` says: "a2", "a3", "a5", .., or None."""
        from ptokit.ir.dialect.attributes import word

        found = word(self.op.attributes.get("pto.target_arch"))
        return found if isinstance(found, str) else None

    @property
    def funcs(self) -> dict[str, FuncOp]:
        """The functions with a body, by name."""
        from xdsl.dialects.func import FuncOp

        return {op.sym_name.data: op for op in self.op.walk() if isinstance(op, FuncOp) and op.body.blocks}

    def walk(self) -> Iterator[Operation]:
        """Every op inside, in the order of the text."""
        inside = self.op.walk()
        next(inside)
        yield from inside

    def name(self, value: SSAValue) -> str:
        """What the text calls a value, without its `%`; "" where it has no name."""
        return self.names.get(value) or value.name_hint or ""

    def says_the_same(self, other: Module) -> bool:
        """Whether both hold the same ops, whatever their values are called and whatever form they were written in.

        >>> parse("%a = pto.get_block_idx").says_the_same(parse('%b = "pto.get_block_idx"() : () -> i64'))
        True
        """
        from ptokit.ir.printing import canonical

        return canonical(self.op) == canonical(other.op)

    # Where it stands

    def where(self, op: Operation, token: str | None = None) -> Where | None:
        """The place of an op, or of its attribute, operand or result `token`; None where it came from no text.

        >>> mod = parse("pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]")
        >>> str(mod.where(mod.op.body.block.first_op, "dst_pipe"))
        '<text>:1:27'
        """
        span = self.span(op, token)
        return None if span is None else self.text.where(span[0])

    def span(self, op: Operation, token: str | None = None) -> Range | None:
        """The offsets behind `where`: of the token, else of the op's name."""
        at: Operation | None = op
        while at is not None and at not in self.places:
            at, token = at.parent_op(), None
        if at is None:
            return None
        place = self.places[at]
        return (token and self._token(at, place, token)) or (place.name if place.name[1] else (place.start, place.end))

    def _token(self, op: Operation, place: Place, token: str) -> Range | None:
        if token in place.attributes:
            return place.attributes[token]
        spelt = token.removeprefix("%")
        value = getattr(op, token, None) if token.isidentifier() else None
        if value is not None and value in self.names:
            spelt = self.names[value]
        for start, end in (*place.operands, *place.results):
            if self.source[start + 1 : end] == spelt:
                return start, end
        return None

    def is_written(self, op: Operation, name: str) -> bool:
        """Whether the text itself gives the attribute, rather than that it follows from something."""
        place = self.places.get(op)
        return place is not None and name in place.attributes

    def finding(
        self,
        rule: str,
        severity: Severity,
        message: str,
        op: Operation,
        token: str | None = None,
        *,
        target: str | None = None,
        facts: dict[str, Any] | None = None,
        fix: str = "",
    ) -> Finding:
        """A finding that points at an op or at one of its tokens, with the line to be shown."""
        span = self.span(op, token)
        if span is None:
            return Finding(rule, severity, target, message, facts or {}, None, fix)
        shown = self.text.facts(*span)
        return Finding(rule, severity, target, message, {**(facts or {}), **shown}, self.text.where(span[0]), fix)

    # What can be done with it

    def verify(self, target: str = "a5", **options: Any) -> list[Finding]:
        """What is wrong with it on a target; "ptoas" is the public assembler."""
        found: list[Finding] = _late("ptokit.ir.verify", "verify")(self, target, **options)
        return found

    def run(self, arrays: dict[str, Any], func: str | None = None, target: str = "a5", **options: Any) -> Any:
        """Execute a function on the simulated core; the arrays are changed in place."""
        return _late("ptokit.ir.play", "run")(self, arrays, func=func, target=target, **options)

    def to(self, form: str) -> str:
        """The module as text: dps, ssa, as, generic or cpp; `ConvertError` where the form cannot say it."""
        if form not in FORMS:
            raise PtoValueError(f"unknown form {form!r}.{nearest(str(form), FORMS)} Known: {', '.join(FORMS)}")
        printed: str = _late(*FORMS[form])(self)
        return printed


def _late(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def parse(source: str | Path, *, file: str | None = None, lenient: bool = False) -> Module:
    """Read a text, or a file: a Path, or a one-line string that names one.

    `lenient` keeps ops that nobody knows as skipped ones, with a note.

    >>> parse("pto.barrier <PIPE_ALL>").form
    'dps'
    >>> try:
    ...     parse("pto.barier <PIPE_ALL>")
    ... except ParseError as error:
    ...     print(error)
    <text>:1:1: error PTO-P002: Unknown op 'pto.barier'. Did you mean 'pto.barrier'?
    """
    text, name = load(source, file)
    found: Module = _documents().read(text, name, lenient=lenient)
    return found


def _documents() -> Any:
    """The reader of every form; it needs xdsl."""
    try:
        return importlib.import_module("ptokit.ir.documents")
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "xdsl":
            raise
        raise PtoError("the text forms need the package xdsl; install it with: pip install 'ptokit[ir]'") from None


def load(source: str | Path, file: str | None = None) -> tuple[str, str]:
    """The text and its name."""
    if isinstance(source, Path):
        return _file(source), file or str(source)
    if not isinstance(source, str):
        raise PtoTypeError(f"a text or a Path is wanted, not a {type(source).__name__}")
    if source and "\n" not in source and len(source) < 1000 and _is_file(source):
        return _file(Path(source)), file or source
    return source.removeprefix("\ufeff"), file or "<text>"


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False


def _file(path: Path) -> str:
    try:
        if path.stat().st_size > 4 * MOST_CHARACTERS:
            raise _unreadable(path, f"has {path.stat().st_size} bytes, which is too much", "PTO-P009")
        raw = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, f"cannot be read: {error.strerror or error}") from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        good = raw[: error.start].decode("utf-8", "replace")
        line, column = good.count("\n") + 1, len(good) - (good.rfind("\n") + 1) + 1
        raise _unreadable(path, "is not UTF-8 text", "PTO-P001", Where(str(path), line, column)) from None


def _unreadable(path: Path, why: str, rule: str = "PTO-P001", where: Where | None = None) -> ParseError:
    place = where or Where(str(path), 1, 1)
    facts = {"line_text": "", "length": 1}
    return ParseError([Finding(rule, Severity.ERROR, None, f"{path} {why}.", facts, place)])


__all__ = ["FORMS", "ConvertError", "Module", "load", "parse"]
