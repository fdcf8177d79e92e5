"""Cycles from a plan: a model with its parameters laid open, no measurement."""

from __future__ import annotations

from ptokit.cost.choices import Choice, compare_choices
from ptokit.cost.cycles import barrier, bytes_per_cycle, flag, flush, issue, scalar, startup, transfer, vector
from ptokit.cost.parameters import Parameters, parameters
from ptokit.cost.parts import Cost, Part
from ptokit.cost.pricing import explain, of_plan

__all__ = [
    "Choice",
    "Cost",
    "Parameters",
    "Part",
    "barrier",
    "bytes_per_cycle",
    "compare_choices",
    "explain",
    "flag",
    "flush",
    "issue",
    "of_plan",
    "parameters",
    "scalar",
    "startup",
    "transfer",
    "vector",
]
