"""Findings as annotations of a pull request: GitHub's workflow commands, one a line."""

from __future__ import annotations

from collections.abc import Iterator

from ptokit.findings import Finding, Severity
from ptokit.report.checked import Checked
from ptokit.report.lines import shown

COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_IN_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def as_github(checked: Checked) -> str:
    """One command for each finding, each on a line of its own.

    >>> from ptokit.findings import Where
    >>> wrong = Finding("PTO-L024", Severity.ERROR, "a2a3", "no atomic max.", {"length": 4}, Where("a.pto", 3, 5))
    >>> print(as_github(Checked.of([], [wrong])), end="")
    ::error file=a.pto,line=3,col=5,title=PTO-L024 [a2a3]::no atomic max.
    """
    return "".join(f"{line}\n" for line in map(_command, checked.findings, [checked] * len(checked.findings)))


def _command(one: Finding, checked: Checked) -> str:
    properties = ",".join(f"{name}={value.translate(_IN_PROPERTY)}" for name, value in _properties(one, checked))
    data = one.message + (f" Fix: {one.fix}" if one.fix else "")
    return f"::{COMMANDS[one.severity]} {properties}::{data.translate(_IN_DATA)}"


def _properties(one: Finding, checked: Checked) -> Iterator[tuple[str, str]]:
    where = one.where
    if where is not None:
        yield "file", where.file
        if where.line:
            yield "line", str(where.line)
        if where.column:
            yield "col", str(where.column)
            place = shown(one, checked.sources)
            if place is not None and place.length:
                yield "endColumn", str(where.column + place.length)
    yield "title", one.id + (f" [{one.target}]" if one.target else "")
