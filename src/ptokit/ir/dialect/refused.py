"""How the dialect refuses a text: a parse error of xDSL's with the id of the finding that it becomes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, NoReturn

from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Span

from ptokit.errors import nearest

if TYPE_CHECKING:
    from xdsl.parser import AttrParser

SYNTAX = "PTO-P001"
UNKNOWN_OP = "PTO-P002"
UNKNOWN_WORD = "PTO-P003"
UNDEFINED = "PTO-P004"
COUNTS = "PTO-P005"
TOO_LARGE = "PTO-P009"
OTHER_OP = "PTO-P011"
STRUCTURE = "PTO-P012"


def near(word: str, known: Iterable[str]) -> str:
    """`nearest`, for words of which some have capitals.

    >>> near("PIPE_W", ["PIPE_V", "ALL"])
    " Did you mean 'PIPE_V'?"
    """
    folded = {one.lower(): one for one in known}
    told = nearest(word, folded)
    return re.sub("'(.*)'", lambda found: repr(folded[found[1]]), told)


class Refused(ParseError):  # noqa: N818 - it never leaves the text room
    """A parse error with the id of its finding and what to do."""

    def __init__(self, span: Span[str], sentence: str, rule: str = SYNTAX, fix: str = "") -> None:
        super().__init__(span, sentence)
        self.sentence, self.rule, self.fix = sentence, rule, fix


class Misread(Exception):  # noqa: N818 - it never leaves the dialect
    """The text inside a type or an attribute is wrong: from which character of it, over how many."""

    def __init__(self, sentence: str, start: int = 0, length: int = 0, rule: str = UNKNOWN_WORD, fix: str = "") -> None:
        super().__init__(sentence)
        self.sentence, self.start, self.length, self.rule, self.fix = sentence, start, length, rule, fix

    def at(self, parser: AttrParser, offset: int) -> NoReturn:
        """The same as a parse error of the text that begins at `offset` of the source."""
        start = offset + self.start
        raise Refused(
            Span(start, start + self.length, parser.lexer.input), self.sentence, self.rule, self.fix
        ) from None
