"""Everything that can be said of a text before it meets a board: its structure, the rules, flags, memory, flushes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ptokit.findings import Finding, Severity, in_order
from ptokit.ir.structure import Told
from ptokit.ir.verify import TARGETS, judged, target_named

if TYPE_CHECKING:
    from ptokit.ir.module import Module

USUAL = ("a2a3", "a5")
ARCHS = {"a2": "a2a3", "a3": "a2a3", "a2a3": "a2a3", "a5": "a5"}
"""What `pto.target_arch` says -> the target."""


def targets_of(module: Module, targets: str | Iterable[str] | None = None) -> tuple[str, ...]:
    """Those that are asked for; else the module's own; else the two machines.

    >>> from ptokit.ir import parse
    >>> targets_of(parse('module attributes {pto.target_arch = "a3"} {}')), targets_of(parse("pto.dsb"))
    (('a2a3',), ('a2a3', 'a5'))
    """
    if targets is None:
        own = ARCHS.get(module.arch or "")
        return (own,) if own else USUAL
    words = targets.split(",") if isinstance(targets, str) else targets
    named = [target_named(word.strip() if isinstance(word, str) else word) for word in words]
    return tuple(dict.fromkeys(named))


def check(module: Module, targets: str | Iterable[str] | None = None) -> list[Finding]:
    """What is wrong with a module: by each target's rules, and by a dry run on its simulated core.

    >>> from ptokit.ir import parse
    >>> [(f.target, f.id) for f in check(parse("pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID1>]"))]
    [('a2a3', 'PTO-S003'), ('a5', 'PTO-S003')]
    """
    from ptokit.ir.rehearsal import rehearse

    chosen = targets_of(module, targets)
    found = list(module.findings)
    for target in chosen:
        told = list(judged(module, target))
        found += [finding for _, finding in told]
        if target != "ptoas" and not _is_broken(told):
            found += _new(module, rehearse(module, target), told)
    return in_order(found, chosen)


def _is_broken(told: Sequence[Told]) -> bool:
    """What is not well formed is not played."""
    return any(one.id.startswith("PTO-P") and one.severity is Severity.ERROR for _, one in told)


def _new(module: Module, found: Iterable[Finding], told: Sequence[Told]) -> list[Finding]:
    """What the rules have not said of the same op already."""
    said = {(one.id, module.where(op)) for op, one in told}
    stopped = {module.where(op) for op, one in told if one.severity is Severity.ERROR}
    return [
        one for one in found if (one.id, one.where) not in said and not (one.id == "PTO-P014" and one.where in stopped)
    ]


__all__ = ["TARGETS", "check", "targets_of"]
