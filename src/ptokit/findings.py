"""What ptokit has to say about a call, as data: nothing here prints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np


class Severity(StrEnum):
    """How bad it is; compare with `.rank` (0 is the worst)."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """0 for an error, 1 for a warning, 2 for a note."""
        return list(Severity).index(self)


@dataclass(frozen=True)
class Where:
    """A place in a source file."""

    file: str
    line: int
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong or worth knowing: an id, a sentence, the facts, a place and a fix."""

    id: str
    severity: Severity
    target: str | None
    message: str
    facts: Mapping[str, Any] = field(default_factory=dict, compare=False)
    where: Where | None = None
    fix: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The finding in JSON's own types."""
        place = None
        if self.where is not None:
            place = {"file": self.where.file, "line": self.where.line, "column": self.where.column}
        return {
            "id": self.id,
            "severity": str(self.severity),
            "target": self.target,
            "message": self.message,
            "facts": dict(self.facts),
            "where": place,
            "fix": self.fix,
        }

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        target = f" [{self.target}]" if self.target else ""
        fix = f" Fix: {self.fix}" if self.fix else ""
        return f"{place}{self.severity} {self.id}{target}: {self.message}{fix}"


def in_order(findings: Iterable[Finding], targets: Iterable[str] = ()) -> list[Finding]:
    """Findings by target (in the order asked for), then severity, then id."""
    rank = {name: i for i, name in enumerate(targets)}
    return sorted(findings, key=lambda f: (rank.get(f.target or "", len(rank)), f.target or "", f.severity.rank, f.id))


def is_clean(findings: Iterable[Finding]) -> bool:
    """No error and no warning."""
    return all(f.severity is Severity.NOTE for f in findings)


def json_value(value: Any) -> Any:
    """A NumPy scalar or array in JSON's own types; what is not finite becomes a word."""
    if isinstance(value, np.ndarray):
        return [json_value(v) for v in value]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    number = float(value)
    return number if math.isfinite(number) else str(number)
