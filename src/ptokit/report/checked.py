"""What a check has to say, as data: what the reports are written from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from ptokit.findings import Finding, Severity


@dataclass(frozen=True)
class Silenced:
    """A finding that somebody has silenced: how (`comment`, `settings` or `baseline`), and why."""

    finding: Finding
    by: str
    reason: str


@dataclass(frozen=True)
class CheckedFile:
    """One input: its name, the form in which it was written, and whether it could be read."""

    name: str
    form: str | None = None
    is_readable: bool = True


@dataclass(frozen=True)
class Checked:
    """The findings of a check at or above the threshold, in the order of files and lines, and what is not shown.

    >>> at = Finding("PTO-L024", Severity.ERROR, "a2a3", "no atomic max.")
    >>> below = Finding("PTO-S011", Severity.NOTE, "a2a3", "a5 would need a pair.")
    >>> told = Checked.of([CheckedFile("a.pto", "dps")], [at, below], threshold=Severity.WARNING)
    >>> told.exit_code, len(told.findings), told.hidden
    (1, 1, 1)
    """

    files: tuple[CheckedFile, ...]
    findings: tuple[Finding, ...]
    targets: tuple[str, ...] = ()
    threshold: Severity = Severity.WARNING
    silenced: tuple[Silenced, ...] = ()
    hidden: int = 0
    sources: dict[str, str] = field(default_factory=dict, compare=False, repr=False)
    """The texts that are no files, by name: what came from standard input."""

    @classmethod
    def of(
        cls,
        files: Iterable[CheckedFile],
        findings: Iterable[Finding],
        *,
        targets: Iterable[str] = (),
        threshold: Severity = Severity.WARNING,
        silenced: Iterable[Silenced] = (),
        sources: dict[str, str] | None = None,
    ) -> Checked:
        """What is below the threshold is counted and left out."""
        inputs, every, asked = tuple(files), list(findings), tuple(targets)
        shown = [one for one in every if one.severity.rank <= threshold.rank]
        return cls(
            inputs,
            tuple(by_place(shown, [one.name for one in inputs], asked)),
            asked,
            threshold,
            tuple(silenced),
            len(every) - len(shown),
            sources or {},
        )

    @property
    def counts(self) -> dict[str, int]:
        """How many errors, warnings and notes are shown."""
        found = Counter(one.severity for one in self.findings)
        return {str(severity): found[severity] for severity in Severity}

    @property
    def exit_code(self) -> int:
        """0 nothing at or above the threshold, 1 findings, 2 an input could not be read."""
        if not all(one.is_readable for one in self.files):
            return 2
        return 1 if self.findings else 0


def by_place(findings: Iterable[Finding], files: list[str], targets: tuple[str, ...]) -> list[Finding]:
    """In the order of the files, then of lines and columns; at one place by severity, id and target."""
    file_rank = {name: at for at, name in enumerate(files)}
    target_rank = {name: at for at, name in enumerate(targets)}

    def key(one: Finding) -> tuple[object, ...]:
        where = one.where
        file, line, column = (where.file, where.line, where.column) if where else ("", 0, 0)
        target = target_rank.get(one.target or "", len(targets))
        return file_rank.get(file, len(files)), file, line, column, one.severity.rank, one.id, target, one.message

    return sorted(findings, key=key)
