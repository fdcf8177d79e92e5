"""What is wrong with a text, as an editor shows it while one types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ptokit.errors import PtoError
from ptokit.findings import Finding, Severity, Where
from ptokit.report.lines import shown
from ptokit.report.settings import Settings, find_settings
from ptokit.report.suppress import Baseline, read_baseline, silence

if TYPE_CHECKING:
    from ptokit.ir.module import Module


@dataclass(frozen=True)
class Mark:
    """A finding at a place: line and columns from 0, in characters."""

    line: int
    start: int
    end: int
    id: str
    severity: Severity
    message: str


@dataclass(frozen=True)
class Reading:
    """A text as far as it can be read."""

    module: Module | None
    findings: list[Finding]


def read(text: str, name: str, targets: Sequence[str] = ()) -> Reading:
    """Parse and check a text; without targets on the one that it names, else on a2a3 and a5.

    >>> [str(one.id) for one in read("pto.barier <PIPE_ALL>", "a.pto").findings]
    ['PTO-P002']
    """
    from ptokit.ir.check import check
    from ptokit.ir.errors import ParseError
    from ptokit.ir.module import parse

    try:
        # A text of one line must not be taken for the name of a file.
        module = parse(text + "\n", file=name)
    except ParseError as unread:
        return Reading(None, unread.findings)
    return Reading(module, check(module, tuple(targets) or None))


WRONG_SETTINGS = "PTO-P040"


def read_file(text: str, path: Path) -> Reading:
    """The text of a file, by the settings of its project, its comments and its baseline, as in `ptokit check`.

    Notes are shown, unless the settings say from where on.
    """
    try:
        settings = find_settings(path)
        known = read_baseline(settings.baseline) if settings.baseline else Baseline()
    except PtoError as wrong:
        reading = read(text, str(path))
        told = Finding(WRONG_SETTINGS, Severity.WARNING, None, f"{wrong}.", {}, Where(str(path), 1, 1))
        return Reading(reading.module, [told, *reading.findings])
    return judged(read(text, str(path), settings.targets or ()), text, str(path), settings, known)


def judged(reading: Reading, text: str, name: str, settings: Settings, known: Baseline) -> Reading:
    """Without what is silenced or below the threshold; with what is wrong with the comments that silence."""
    left, _ = silence(reading.findings, sources={name: text}, ignored=settings.ignore, baseline=known)
    least = settings.severity or Severity.NOTE
    return Reading(reading.module, [one for one in left if one.severity.rank <= least.rank])


def marks(text: str, findings: Iterable[Finding]) -> list[Mark]:
    """Where each finding stands; what several targets say of one place is said once.

    >>> found = read("pto.barier <PIPE_ALL>", "a.pto").findings
    >>> [(one.line, one.start, one.end, one.message) for one in marks("pto.barier <PIPE_ALL>", found)]
    [(0, 0, 10, "Unknown op 'pto.barier'. Did you mean 'pto.barrier'?")]
    """
    told: dict[tuple[int, int, int, str, Severity, str], list[str]] = {}
    for finding in findings:
        line, start, end = _range(text, finding)
        message = f"{finding.message} {finding.fix}".strip()
        targets = told.setdefault((line, start, end, finding.id, finding.severity, message), [])
        targets += [finding.target] if finding.target else []
    return [
        Mark(*key[:5], f"{key[5]} [{', '.join(dict.fromkeys(targets))}]" if targets else key[5])
        for key, targets in told.items()
    ]


def _range(text: str, finding: Finding) -> tuple[int, int, int]:
    where = finding.where
    if where is None or where.line < 1:
        return 0, 0, 0
    start = max(where.column - 1, 0)
    place = shown(finding, {where.file: text})
    return where.line - 1, start, start + max(place.length if place else 0, 1)
