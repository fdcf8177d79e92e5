"""What is wrong with a module on a target: its structure, its attributes, the rules of the target.

The rules are those of `ptokit.access`, `ptokit.core.transfers` and `ptokit.core.vector`: tiles and tensors are made
from the types, and the same ids come out as everywhere. What only a run knows is judged by a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ptokit.errors import PtoValueError, listed, nearest
from ptokit.findings import Finding, Severity, in_order
from ptokit.ir.dialect import ops
from ptokit.ir.dialect.attributes import word
from ptokit.ir.legality import JUDGES, Asked, legal
from ptokit.ir.operands import is_open
from ptokit.ir.structure import Structure, Told
from ptokit.targets import machine

if TYPE_CHECKING:
    from ptokit.ir.module import Module

TARGETS = ("cpu", "a2a3", "a5", "ptoas")


def verify(module: Module, target: str = "a5") -> list[Finding]:
    """What is wrong with the module on one target: cpu, a2a3, a5, or ptoas, the public assembler.

    >>> from ptokit.ir import parse
    >>> tiles = "!pto.tile_buf<vec, 16x64xf32>, !pto.tile_buf<vec, 1x16xi32>"
    >>> mod = parse(
    ...     f"pto.mscatter ins(%s, %i : {tiles}) outs(%m : !pto.partition_tensor_view<99x64xf32>) "
    ...     "{scatterAtomicOp = #pto<scatter_atomic_op max>}"
    ... )
    >>> [(one.id, one.target, one.where.column) for one in mod.verify("a2a3") if one.severity == "error"]
    [('PTO-L024', 'a2a3', 138)]
    """
    chosen = target_named(target)
    return in_order([*module.findings, *(finding for _, finding in judged(module, chosen))])


def target_named(target: object) -> str:
    """A target by its name."""
    if not isinstance(target, str) or target.lower() not in TARGETS:
        hint = nearest(target, TARGETS) if isinstance(target, str) else ""
        raise PtoValueError(f"target={target!r} is unknown.{hint} Known: {listed(TARGETS)}")
    return target.lower()


def judged(module: Module, target: str) -> Iterator[Told]:
    """Every finding with the op that it is about."""
    if target == "ptoas":
        from ptokit.ir import ptoas

        yield from ptoas.judged(module)
        return
    shape = Structure(module, target)
    broken: set[Operation] = set()
    for op, finding in shape.findings():
        if finding.severity is Severity.ERROR:
            broken.add(op)
        yield op, finding
    where = machine(target)
    sound = (op for op in module.walk() if op not in broken and type(op) in JUDGES)
    for op in sound:
        if not in_cube(op) and not any(is_open(value.type) for value in op.operands):
            yield from ((op, finding) for finding in legal(Asked(module, op, where, shape.numbers)))


def in_cube(op: Operation) -> bool:
    """The op runs on a cube core, which these targets do not have."""
    above: Operation | None = op
    while above is not None:
        kind = word(above.attributes.get("pto.kernel_kind")) if isinstance(above, FuncOp) else None
        if isinstance(above, ops.SectionCubeOp) or kind == "cube":
            return True
        above = above.parent_op()
    return False
