"""The line of a finding and the token in it that is meant."""

from __future__ import annotations

import linecache
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ptokit.findings import Finding

LONGEST = 240
_TOKEN = re.compile(r"[%@#!]?[\w.]+|\S")


@dataclass(frozen=True)
class Shown:
    """A line, where in it the token begins (from 0), how long it is, and which column the line's first character is."""

    line: str
    start: int
    length: int
    first_column: int = 1

    @property
    def token(self) -> str:
        """What is meant.

        >>> Shown("pto.barrier <PIPE_V>", 13, 6).token
        'PIPE_V'
        """
        return self.line[self.start : self.start + self.length]


def shown(finding: Finding, sources: Mapping[str, str] | None = None) -> Shown | None:
    """The line that a finding points at: from its facts, else from the text or the file that it names."""
    where = finding.where
    if where is None or where.line < 1:
        return None
    told = finding.facts.get("line_text")
    first = finding.facts.get("line_text_from", 1)
    line = told if isinstance(told, str) else _line(where.file, where.line, sources or {})
    if not line.strip():
        return None
    start = max(where.column - (first if isinstance(first, int) else 1), 0)
    if start > len(line):
        return None
    length = finding.facts.get("length")
    if not isinstance(length, int):
        token = _TOKEN.match(line, start) if where.column else None
        length = len(token[0]) if token else 0
    return _cut(Shown(line, start, min(length, len(line) - start), first if isinstance(first, int) else 1))


def _line(file: str, number: int, sources: Mapping[str, str]) -> str:
    if file in sources:
        lines = sources[file].split("\n")
        return lines[number - 1].rstrip("\r") if number <= len(lines) else ""
    return linecache.getline(file, number).rstrip("\r\n")


def _cut(one: Shown) -> Shown:
    """A long line around its token."""
    if len(one.line) <= LONGEST:
        return one
    first = max(0, min(one.start - LONGEST // 3, len(one.line) - LONGEST))
    line = one.line[first : first + LONGEST]
    start = one.start - first
    return Shown(line, start, min(one.length, len(line) - start), one.first_column + first)
