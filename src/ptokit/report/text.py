"""Findings for people: the line shown, the token underlined, what to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ptokit.findings import Finding, Severity
from ptokit.report.checked import Checked
from ptokit.report.lines import Shown, shown

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

COLOURS = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold cyan"}
TAB = "    "


def print_text(checked: Checked, to: Console) -> None:
    """Every finding with its place, then one line that counts them.

    >>> from rich.console import Console
    >>> from ptokit.report.checked import CheckedFile
    >>> from ptokit.findings import Where
    >>> facts = {"line_text": "pto.barrier <PIPE_X>", "length": 6}
    >>> wrong = Finding("PTO-P003", Severity.ERROR, None, "Unknown pipe.", facts, Where("a.pto", 1, 14), "Name a pipe.")
    >>> print_text(Checked.of([CheckedFile("a.pto")], [wrong]), Console(width=80))
    a.pto:1:14: error PTO-P003: Unknown pipe.
      1 | pto.barrier <PIPE_X>
        |              ^^^^^^
      Fix: Name a pipe.
    <BLANKLINE>
    1 error in 1 file
    """
    for one, targets in _told_once(checked.findings):
        to.print(_head(one, targets), soft_wrap=True)
        place = shown(one, checked.sources)
        if place is not None and one.where is not None:
            to.print(_excerpt(place, one.where.line, COLOURS[one.severity]), soft_wrap=True)
        if one.fix:
            to.print(_line(("  Fix: ", "bold"), one.fix), soft_wrap=True)
        to.print()
    to.print(_line((summary(checked), "bold")), soft_wrap=True)


def _line(*parts: str | tuple[str, str]) -> Text:
    from rich.text import Text

    return Text.assemble(*parts)


def _told_once(findings: Iterable[Finding]) -> list[tuple[Finding, list[str]]]:
    """What several targets say of one place in the same words is said once, with their names."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for one in findings:
        groups.setdefault((one.where, one.severity, one.id, one.message, one.fix), []).append(one)
    return [(group[0], list(dict.fromkeys(one.target for one in group if one.target))) for group in groups.values()]


def _head(one: Finding, targets: list[str]) -> Text:
    place = f"{_place(one)}: " if one.where else ""
    on = f" [{', '.join(targets)}]" if targets else ""
    return _line((place, "bold"), (f"{one.severity} {one.id}", COLOURS[one.severity]), f"{on}: {one.message}")


def _place(one: Finding) -> str:
    """`file:line:column`; without what is not known."""
    where = one.where
    assert where is not None
    numbers = [number for number in (where.line, where.column) if number]
    return ":".join([where.file, *map(str, numbers)])


def _excerpt(place: Shown, number: int, colour: str) -> Text:
    """The line under its number, and carets under the token."""
    before = place.line[: place.start].replace("\t", TAB)
    token = place.token.replace("\t", TAB)
    after = place.line[place.start + place.length :].replace("\t", TAB)
    mark = "..." if place.first_column > 1 else ""
    margin = " " * len(str(number))
    parts: list[str | tuple[str, str]] = [(f"  {number} | ", "dim"), mark, before, (token, colour), after]
    if token:
        blank = " " * (_width(before) + len(mark))
        parts += [(f"\n  {margin} | ", "dim"), blank, ("^" * max(_width(token), 1), colour)]
    return _line(*parts)


def _width(text: str) -> int:
    """Columns of a terminal."""
    from rich.cells import cell_len

    return cell_len(text)


def summary(checked: Checked) -> str:
    """`2 errors, 1 warning in 3 files (4 below warning, 1 silenced)`."""
    counted = [f"{count} {word}{'s' * (count != 1)}" for word, count in checked.counts.items() if count]
    files = f"{len(checked.files)} file{'s' * (len(checked.files) != 1)}"
    aside = [f"{checked.hidden} below {checked.threshold} not shown"] if checked.hidden else []
    aside += [f"{len(checked.silenced)} silenced"] if checked.silenced else []
    unread = sum(not one.is_readable for one in checked.files)
    aside += [f"{unread} could not be read"] if unread else []
    return f"{', '.join(counted) or 'no findings'} in {files}" + (f" ({', '.join(aside)})" if aside else "")
