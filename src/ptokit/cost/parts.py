"""A price: parts, each the work of one pipe, in the sequence in which an instruction does them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Part:
    """One thing that an instruction does: the pipe is busy with it for `cycles`.

    Of these, `hidden` run beneath another part and add nothing to the total.
    """

    pipe: str  # "S", "V", "MTE2" or "MTE3"
    name: str
    cycles: float
    facts: dict[str, Any] = field(default_factory=dict)
    hidden: float = 0.0

    @property
    def exposed(self) -> float:
        """What the part adds to the total."""
        return self.cycles - self.hidden


@dataclass(frozen=True)
class Cost:
    """The modelled price of one call on one target.

    >>> cost = Cost("a5", 2.0, (Part("V", "launch", 400.0), Part("V", "steps", 100.0, hidden=50.0)))
    >>> cost.total, cost.microseconds, cost.pipes
    (450.0, 0.225, {'V': 500.0})
    """

    target: str
    frequency_ghz: float
    parts: tuple[Part, ...]
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """Cycles from the first to the last."""
        return sum(part.exposed for part in self.parts)

    @property
    def microseconds(self) -> float:
        """The same as time."""
        return self.total / self.frequency_ghz / 1000

    @property
    def pipes(self) -> dict[str, float]:
        """Per pipe: how long it is busy. Pipes overlap, so these may add up to more than the total."""
        return {
            pipe: sum(part.cycles for part in self.parts if part.pipe == pipe)
            for pipe in dict.fromkeys(part.pipe for part in self.parts)
        }

    def rows(self) -> list[dict[str, Any]]:
        """Where the cycles go, the largest share first."""
        total = self.total or 1.0
        told = sorted(self.parts, key=lambda part: (-part.exposed, -part.cycles))
        return [
            {
                "pipe": part.pipe,
                "part": part.name,
                "cycles": part.cycles,
                "hidden": part.hidden,
                "share": part.exposed / total,
                "facts": part.facts,
            }
            for part in told
        ]

    def as_dict(self) -> dict[str, Any]:
        """The price in JSON's own types."""
        return {
            "target": self.target,
            "cycles": self.total,
            "microseconds": self.microseconds,
            "pipes": self.pipes,
            "parts": self.rows(),
            "facts": self.facts,
        }


def overlapped(*strands: Sequence[Part]) -> list[Part]:
    """Strands of work at the same time: the longest one counts, the others are hidden beneath it.

    >>> [part.hidden for part in overlapped([Part("V", "steps", 5.0)], [Part("V", "bursts", 8.0)])]
    [5.0, 0.0]
    """
    longest = max(strands, key=lambda strand: sum(part.cycles for part in strand))
    return [part if strand is longest else replace(part, hidden=part.cycles) for strand in strands for part in strand]
