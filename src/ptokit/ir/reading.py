"""From text to a module: the dialect's own forms, pretty and generic, with the place of every op kept.

`read` gives what was read or raises a `ParseError` whose findings say where and why; nothing of xDSL's gets out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import MultipleSpansParseError, VerifyException
from xdsl.utils.exceptions import ParseError as XdslParseError

from ptokit.findings import Finding, Severity
from ptokit.ir.dialect.refused import (
    STRUCTURE,
    SYNTAX,
    TOO_LARGE,
    UNDEFINED,
    Refused,
)
from ptokit.ir.errors import ParseError
from ptokit.ir.places import Place, Source

if TYPE_CHECKING:
    pass

from ptokit.ir.parsing import PtoParser
from ptokit.ir.soundness import one_sentence

MOST_DEPTH = 48
"""How deep brackets may stand in brackets: far more than any kernel, and less than Python's stack."""


@dataclass
class Read:
    """What reading gives: the module op, where everything stood, what values were called, findings."""

    op: ModuleOp
    places: dict[Operation, Place]
    names: dict[SSAValue, str]
    findings: list[Finding]
    generic: bool


def read(text: str, file: str = "<text>", *, lenient: bool = False) -> Read:
    """What the text says; `ParseError` where it cannot be read.

    >>> read("%t = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>").op.body.block.first_op.name
    'pto.alloc_tile'
    """
    with guarded(text, file) as source:
        parser = PtoParser(text, file, lenient=lenient)
        source.parser = parser
        return finish(parser)


def finish(parser: PtoParser) -> Read:
    """Read to the end."""
    op = parser.parse_module()
    generic = parser.generic_count > 0 and parser.pretty_count == 0
    return Read(op, parser.places, parser.names, parser.findings, generic)


class guarded:  # noqa: N801 - used as `with guarded(..)`
    """Whatever goes wrong inside becomes a `ParseError` with a place in the text.

    A reader sets `.parser` as soon as it has one: errors without a place of their own are put where it stands.
    """

    def __init__(self, text: str, file: str) -> None:
        self.source = Source(text, file)
        self.parser: PtoParser | None = None

    def __enter__(self) -> guarded:
        self.source.check(MOST_DEPTH)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None or not isinstance(error, Exception) or isinstance(error, ParseError):
            return
        told = isinstance(error, XdslParseError | RecursionError | VerifyException)
        raise ParseError([self.as_finding(error)]) from (None if told else error)

    def as_finding(self, error: Exception) -> Finding:
        """The error as a finding."""
        match error:
            case Refused():
                sentence, rule, fix = error.sentence, error.rule, error.fix
            case MultipleSpansParseError() if "missing block" in error.msg and error.refs:
                sentence, rule, fix = f"{error.refs[0][0].text} is not defined.", UNDEFINED, ""
                error = Refused(error.refs[0][0], sentence, rule)
            case XdslParseError():
                sentence, rule, fix = self._with_token(error), SYNTAX, ""
            case RecursionError():
                sentence, rule, fix = "This is nested too deeply.", TOO_LARGE, "Take the inner blocks out."
            case VerifyException():
                sentence, rule, fix = one_sentence(str(error)), STRUCTURE, ""
            case _:
                # xDSL's own ops raise whatever they stumble over: a KeyError, an AssertionError, ..
                sentence, rule, fix = "This op is not well formed.", STRUCTURE, ""
        span = error.span if isinstance(error, XdslParseError) else None
        start, end = (span.start, span.end) if span is not None else self._here()
        return self.source.finding(rule, Severity.ERROR, sentence, start, end, fix)

    def _with_token(self, error: XdslParseError) -> str:
        told = one_sentence(error.msg)
        token = self.source.text[error.span.start : error.span.end]
        if token and len(token) < 40 and "\n" not in token and token not in told:
            return f"{told.removesuffix('.')}, not {token!r}."
        return told

    def _here(self) -> tuple[int, int]:
        if self.parser is None:
            return 0, 0
        start, end = self.parser._place.name
        return (start, end) if end else (self.parser.pos, self.parser.pos + 1)


__all__ = ["MOST_DEPTH", "PtoParser", "Read", "finish", "guarded", "read"]
