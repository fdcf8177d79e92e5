"""What the ranks of `rank_works.py` have to find, on any engine."""

from __future__ import annotations

from typing import Any

WANTED: dict[str, Any] = {
    "exchanges": [True, True],
    "barriers": True,
    "sends_to_all": [True, True, True],
    "signals": [True, True, True],
    "moves_much": [True, True, True],
    "bounds": [["PTO-R038", "PTO-R038"], True],
    "freed": ["PTO-R036", True],
    "collects": [True] * 8,
}
"""Every rank."""

BY_THE_ROOT = {
    "shapes": "PTO-R003",
    "smaller": "PTO-R003",
    "dtypes": "PTO-R003",
    "strides": "PTO-R003",
    "fewer rows": "PTO-R007",
    "two roots": "PTO-R035",
}
"""Misuse that rank 0 is told of; the last one calls without being the root."""


def compare(found: dict[str, Any], n: int) -> None:
    """Hold the results of n ranks against what they have to be."""
    for work, wanted in WANTED.items():
        assert (work, found[work]) == (work, [wanted] * n)
    for work in ("moves_shared", "moves_ordinary"):
        assert (work, found[work]) == (work, [[True, [True] * (2 * n)]] * n)
    if n > 1:
        assert found["misuses"] == [misused(rank, n) for rank in range(n)]


def misused(rank: int, n: int) -> dict[str, Any]:
    """What a rank is told of calls that are wrong."""
    told: dict[str, Any] = {"roots differ": "PTO-R033", "no such root": "PTO-R041"}
    told |= BY_THE_ROOT if rank == 0 else {"not the root": "PTO-R034"} if rank == n - 1 else {}
    return told | {f"{what} wrote nothing": True for what in (*BY_THE_ROOT, "not the root")}
