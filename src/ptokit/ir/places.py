"""Where things stand in a text: offsets of ops and of their parts, lines and columns, findings with the line shown."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

from ptokit.findings import Finding, Severity, Where
from ptokit.ir.errors import ParseError

MOST_CHARACTERS = 16_000_000
"""A larger text is refused."""
LONGEST_LINE = 1_000_000
"""A longer line is refused: no editor shows it, and no tool writes it."""
LONGEST_AFFINE = 400
"""A longer affine map is refused: what prints it goes one step deeper for each of its sums."""
_AFFINE = re.compile(r"affine_(?:map|set)\s*<(?:->|>=|[^>])*+")
_SHOWN = 240
_BRACKET = re.compile(r"//[^\n]*+|\"(?:[^\"\\\n]++|\\.)*+\"|->|[(\[{<]|[)\]}>]")

Range = tuple[int, int]


@dataclass(slots=True)
class Place:
    """Where an op stands: the whole of it, its name, its attributes, operands and results, as offsets."""

    start: int
    end: int = 0
    name: Range = (0, 0)
    attributes: dict[str, Range] = field(default_factory=dict)
    operands: list[Range] = field(default_factory=list)
    results: list[Range] = field(default_factory=list)
    isolated: bool = False


class Source:
    """A text with its file's name: offsets become lines and columns."""

    def __init__(self, text: str, file: str) -> None:
        self.text, self.file = text, file

    @cached_property
    def _lines(self) -> array[int]:
        return array("q", chain((0,), (found.end() for found in re.finditer("\n", self.text))))

    def where(self, offset: int) -> Where:
        """The line and the column, both from 1."""
        line = bisect_right(self._lines, offset)
        return Where(self.file, line, offset - self._lines[line - 1] + 1)

    def offset(self, line: int, column: int) -> int:
        """The reverse of `where`."""
        return self._lines[min(line, len(self._lines)) - 1] + column - 1

    def line_text(self, offset: int) -> tuple[str, int]:
        """The line around an offset, without its end; and how much of its beginning is left out for its length."""
        start = self._lines[bisect_right(self._lines, offset) - 1]
        end = self.text.find("\n", start)
        line = self.text[start : end if end >= 0 else len(self.text)].rstrip("\r")
        if len(line) <= _SHOWN:
            return line, 0
        cut = max(0, min(offset - start - _SHOWN // 3, len(line) - _SHOWN))
        return line[cut : cut + _SHOWN], cut

    def facts(self, start: int, end: int) -> dict[str, Any]:
        """What a report needs to show the place: the line, how many characters are meant, what is cut off before."""
        line, cut = self.line_text(start)
        to_line_end = len(line) + cut - (self.where(start).column - 1)
        length = max(1, min(end - start, to_line_end))
        return {"line_text": line, "length": length, **({"line_text_from": cut + 1} if cut else {})}

    def finding(self, rule: str, severity: Severity, sentence: str, start: int, end: int, fix: str = "") -> Finding:
        """A finding at that place."""
        start = min(max(start, 0), len(self.text))
        return Finding(rule, severity, None, sentence, self.facts(start, end), self.where(start), fix)

    def check(self, most_depth: int) -> None:
        """Refuse what is too large, too long or nested too deeply, before anything looks at it."""
        if len(self.text) > MOST_CHARACTERS:
            sentence = f"The text has {len(self.text)} characters; {MOST_CHARACTERS} are read."
            facts = {"line_text": self.text[:_SHOWN].partition("\n")[0], "length": 1}
            raise ParseError([Finding("PTO-P009", Severity.ERROR, None, sentence, facts, Where(self.file, 1, 1))])
        if len(self.text) > LONGEST_LINE:
            self._check_lines()
        if (zero := self.text.find("\0")) >= 0:
            sentence = "This is not text: it holds a zero byte."
            raise ParseError([self.finding("PTO-P001", Severity.ERROR, sentence, zero, zero + 1)])
        self._check_depth(most_depth)
        for found in _AFFINE.finditer(self.text):
            if len(found[0]) > LONGEST_AFFINE:
                self._too_much(
                    f"This affine map has {len(found[0])} characters; {LONGEST_AFFINE} are read.", found.start()
                )

    def _check_lines(self) -> None:
        ends = chain(self._lines[1:], (len(self.text),))
        for start, end in zip(self._lines, ends, strict=True):
            if end - start > LONGEST_LINE:
                self._too_much(f"This line has {end - start} characters; {LONGEST_LINE} are read.", start)

    def _check_depth(self, most: int) -> None:
        depth = 0
        for found in _BRACKET.finditer(self.text):
            char = found[0]
            if char in "([{<":
                depth += 1
                if depth > most:
                    self._too_much(f"Brackets stand {depth} deep here; {most} are read.", found.start())
            elif char in ")]}>":
                depth = max(0, depth - 1)

    def _too_much(self, sentence: str, at: int) -> None:
        raise ParseError([self.finding("PTO-P009", Severity.ERROR, sentence, at, at + 1)])
