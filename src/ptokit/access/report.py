"""What one executed instruction gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit.access.outcomes import Outcomes
from ptokit.access.plan import Array, Plan
from ptokit.dtypes import describe
from ptokit.errors import PtoValueError
from ptokit.findings import Finding, is_clean
from ptokit.tensors import Tile

if TYPE_CHECKING:
    from ptokit.cost import Cost


@dataclass(frozen=True)
class OnlyOutcome:
    """The outcomes of a gather: it writes each element of its tile once, so there is one."""

    result: Array = field(repr=False)
    slots: tuple[int, ...] = ()
    exact: bool = True

    def contains(self, tile: object) -> bool:
        """Whether this is the valid region that the call gave, bit for bit: an array of its shape, or a Tile."""
        given = np.asarray(tile.load() if isinstance(tile, Tile) else tile)
        if given.dtype.type is not self.result.dtype.type or given.shape != self.result.shape:
            raise PtoValueError(
                f"the dump has shape {given.shape} and {describe(given.dtype)}; the destination's valid region has "
                f"shape {self.result.shape} and dtype {self.result.dtype}"
            )
        return np.ascontiguousarray(given).tobytes() == np.ascontiguousarray(self.result).tobytes()

    def values(self, slot: int, column: int = 0) -> list[np.generic]:
        """Nothing is written into the table."""
        raise PtoValueError(
            f"slot {slot}, column {column}: mgather writes no slot of the table, and its tile has one legal result"
        )

    bounds = values

    def verdict(self, slot: int) -> str:
        """At most one lane writes anything."""
        return "single"

    def why_not(self, tile: object) -> str | None:
        """Why a dump is not the legal result, or None where it is."""
        return None if self.contains(tile) else "the dump is not what the tile holds after the call"


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
    moved: Plan | None = field(default=None, repr=False)
    """The runs that were performed, perhaps in pieces: live, and in memory that is owned."""

    @property
    def outcomes(self) -> Outcomes | OnlyOutcome:
        """The set of legal results (a gather has exactly one)."""
        return OnlyOutcome(self.result) if self.legal is None else self.legal

    @property
    def is_clean(self) -> bool:
        """No error and no warning."""
        return is_clean(self.findings)

    @property
    def cost(self) -> Cost:
        """What the call would cost on its target: a model in cycles, no measurement."""
        from ptokit.cost import of_plan

        return of_plan(self.plan)

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

    `equal` compares the results, which are the sequential ones where nothing else was asked for; where no target
    executes the call there is nothing to be equal. Where a target may give several results, `deterministic` is False.
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
