"""Control flow: loops, branches, sections and calls as those of C++."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xdsl.dialects import func, scf
from xdsl.ir import Operation

from ptokit.ir.cpp import types
from ptokit.ir.dialect import ops
from ptokit.ir.dialect.attributes import word

if TYPE_CHECKING:
    from ptokit.ir.cpp.bodies import Body

INDENT = "    "


def for_loop(body: Body, op: scf.ForOp) -> None:
    """`for (int64_t i = a; i < b; i += c)`; what it carries stands in variables before it."""
    block = op.body.block
    names = body.carried(op, block.args[1:], list(op.iter_args))
    for name, inside, result in zip(names, block.args[1:], op.res, strict=True):
        body.words[inside] = body.words[result] = name
    counter = block.args[0]
    of, name = types.scalar(counter.type) or "int64_t", body.fresh(counter, "i")
    body.words[counter] = name
    low, high, step = (body.word(one) for one in (op.lb, op.ub, op.step))
    with body.block(f"for ({of} {name} = {low}; {name} < {high}; {name} += {step}) {{"):
        body.write(block, lambda end: body.store(names, list(end.operands)))


def branch(body: Body, op: scf.IfOp) -> None:
    """`if (..) { .. } else { .. }`; what it gives stands in variables before it."""
    names = body.carried(op, op.output, [None] * len(op.output))
    body.words.update(zip(op.output, names, strict=True))

    def store(end: Operation) -> None:
        body.store(names, list(end.operands))

    body.line(f"if ({body.word(op.cond)}) {{")
    for region, head in ((op.true_region, ""), (op.false_region, "} else {")):
        if not region.blocks or (head and region.block.is_empty):
            continue
        if head:
            body.line(head)
        body.depth += 1
        body.write(region.block, store)
        body.depth -= 1
    body.line("}")


def while_loop(body: Body, op: scf.WhileOp) -> None:
    """`while (true) { before; if (!condition) break; after; }`."""
    before, after = op.before_region.block, op.after_region.block
    names = body.carried(op, before.args, list(op.arguments))
    body.words.update(zip(before.args, names, strict=True))
    given = body.carried(op, op.res, [None] * len(op.res))
    body.words.update(zip(op.res, given, strict=True))
    body.words.update(zip(after.args, given, strict=True))

    def decide(end: Operation) -> None:
        body.store(given, list(end.operands[1:]))
        body.line(f"if (!({body.word(end.operands[0])})) {{")
        body.line(f"{INDENT}break;")
        body.line("}")

    with body.block("while (true) {"):
        body.write(before, decide)
        body.write(after, lambda end: body.store(names, list(end.operands)))


def section(body: Body, op: Any) -> None:
    """What is compiled for one kind of core only."""
    kind = "VEC" if isinstance(op, ops.SectionVectorOp) else "CUBE"
    body.lines.append(f"#if defined(__DAV_{kind}__)")
    with body.block("{"):
        body.region(op.regions[0])
    body.lines.append("#endif")


def switch(body: Body, op: scf.IndexSwitchOp) -> None:
    """`switch (..) { case 0: { .. break; } default: { .. } }`; what it gives stands in variables before it."""
    names = body.carried(op, op.output, [None] * len(op.output))
    body.words.update(zip(op.output, names, strict=True))
    heads = [f"case {number}: {{" for number in op.cases.get_values()]
    with body.block(f"switch ({body.word(op.arg)}) {{"):
        for head, region in zip([*heads, "default: {"], [*op.case_regions, op.default_region], strict=True):
            with body.block(head):
                body.region(region, lambda end: body.store(names, list(end.operands)))
                body.line("break;")


def execute_region(body: Body, op: scf.ExecuteRegionOp) -> None:
    """Braces around one block."""
    region = op.regions[0]
    if len(region.blocks) > 1:
        body.refuse(op, "branches between blocks have no counterpart")
        return
    names = body.carried(op, op.results, [None] * len(op.results))
    body.words.update(zip(op.results, names, strict=True))
    with body.block("{"):
        body.region(region, lambda end: body.store(names, list(end.operands)))


def called(op: func.CallOp) -> str:
    """The name of the function that is called."""
    return str(word(op.callee))


def call(body: Body, op: func.CallOp) -> None:
    """A call of another function of the text."""
    callee = called(op)
    if len(op.res) > 1:
        body.refuse(op, f"{callee} returns {len(op.res)} values")
        return
    given = f"{body.names.function(callee)}({', '.join(body.word(one) for one in op.arguments)})"
    if op.res:
        body.constant(op, op.res[0], given)
    else:
        body.line(f"{given};")


ENDS = (scf.YieldOp, scf.ConditionOp, func.ReturnOp)
CONTROL: dict[type[Operation], Callable[[Body, Any], None]] = {
    scf.ForOp: for_loop,
    scf.IfOp: branch,
    scf.WhileOp: while_loop,
    scf.IndexSwitchOp: switch,
    scf.ExecuteRegionOp: execute_region,
    ops.SectionVectorOp: section,
    ops.SectionCubeOp: section,
    func.CallOp: call,
}
"""Ops with regions, and calls."""
