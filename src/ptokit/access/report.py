"""What one executed instruction gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ptokit.access.outcomes import Outcomes
from ptokit.access.plan import Array, Plan
from ptokit.errors import PtoValueError
from ptokit.findings import Finding, is_clean


@dataclass(frozen=True)
class Report:
    """The result of `mscatter` or `mgather` on one target: findings, determinism, plan, outcomes.

    `result` is the memory that the call wrote: the whole buffer of the table, or the destination's valid region.
    As an array (`np.asarray(rep)`) a report is its result.
    """

    op: str
    target: str
    findings: list[Finding]
    deterministic: bool
    deterministic_reason: str
    plan: Plan = field(repr=False)
    result: Array = field(repr=False)
    legal: Outcomes | None = field(default=None, repr=False)

    @property
    def outcomes(self) -> Outcomes:
        """The set of legal results (MSCATTER; a gather has exactly one)."""
        if self.legal is None:
            raise PtoValueError("mgather writes each element of its tile once: the tile is its only legal outcome")
        return self.legal

    @property
    def is_clean(self) -> bool:
        """No error and no warning."""
        return is_clean(self.findings)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.result, dtype=dtype, copy=copy)


@dataclass(frozen=True)
class Refused:
    """A target that refused the call: its findings, and no result."""

    op: str
    target: str
    findings: list[Finding]
    result: None = None


@dataclass(frozen=True)
class Difference:
    """The first element on which two targets disagree, and the rule that explains it."""

    element: tuple[int, ...]
    values: dict[str, Any]
    rule: str
    sentence: str

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Comparison:
    """One call on several targets: whether they agree, and where they first do not.

    `equal` compares the sequential results. Where a target may give several, `deterministic` is False.
    """

    op: str
    equal: bool
    first_difference: Difference | None
    findings: list[Finding]
    results: dict[str, Report | Refused] = field(repr=False)

    @property
    def deterministic(self) -> bool:
        """Every target that executed the call has exactly one legal result."""
        return all(result.deterministic for result in self.results.values() if isinstance(result, Report))

    @property
    def targets(self) -> Sequence[str]:
        """The targets, in the order asked for."""
        return list(self.results)
