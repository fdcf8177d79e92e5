"""What the text itself decides: is an op reached, and with these operands, whatever a caller gives and memory holds?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects import scf
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ptokit.ir.dialect import ops
from ptokit.ir.dialect.attributes import word
from ptokit.ir.operands import dims_in, is_view
from ptokit.tensors import DYNAMIC

Reasons = Sequence[SSAValue] | None
"""The values that something follows from; None where it follows from more than the text."""


def is_settled(op: Operation) -> bool:
    """Whether constants alone say that an op is reached, and what is in those of its operands that can be wrong.

    >>> from ptokit.ir import parse
    >>> mod = parse('''
    ... %p = pto.arg : !pto.ptr<i32>
    ... %zero = arith.constant 0 : index
    ... %data = pto.load_scalar %p[%zero] : <i32, gm> -> i32
    ... %a = arith.divsi %zero, %zero : index
    ... %b = arith.divsi %data, %data : i32
    ... ''')
    >>> [is_settled(op) for op in mod.walk()][-2:]
    [True, False]
    """
    reasons = _of_op(op)
    if reasons is None:
        return False
    todo, seen = [*_decisive(op), *reasons], set[SSAValue]()
    while todo:
        value = todo.pop()
        if value in seen:
            continue
        seen.add(value)
        found = _of_value(value)
        if found is None:
            return False
        todo += found
    return True


def _decisive(op: Operation) -> Sequence[SSAValue]:
    """The operands that can be wrong: a divisor, a step; that a function calls itself is wrong whatever it hands on."""
    if isinstance(op, CallOp):
        return ()
    if isinstance(op, scf.ForOp):
        return (op.step,)
    return op.operands[1:] if op.name.startswith("arith.") else op.operands


def _of_op(op: Operation, calls: int = 0) -> Reasons:
    """Why an op is reached: the loops and conditions that it stands in, up to the function that nobody calls."""
    found: list[SSAValue] = []
    above = op.parent_op()
    while above is not None and not isinstance(above, FuncOp):
        reasons = _of_frame(above)
        if reasons is None:
            return None
        found += reasons
        above = above.parent_op()
    if not isinstance(above, FuncOp):
        return found
    if len(above.body.blocks) > 1:
        return None
    callers = _calls_of(above)
    if not callers or calls > len(callers):
        return found
    outer = _of_op(callers[0], calls + 1) if len(callers) == 1 else None
    return None if outer is None else [*found, *outer]


def _of_frame(op: Operation) -> Reasons:
    """Why the body of an op is played."""
    if isinstance(op, scf.ForOp):
        return (op.lb, op.ub, op.step)
    if isinstance(op, scf.IfOp):
        return (op.cond,)
    if isinstance(op, scf.IndexSwitchOp):
        return (op.arg,)
    return None if isinstance(op, scf.WhileOp) or any(len(one.blocks) > 1 for one in op.regions) else ()


def _calls_of(called: FuncOp) -> list[Operation]:
    """Where other functions call this one."""
    top: Operation = called
    while (above := top.parent_op()) is not None:
        top = above
    name = called.sym_name.data
    return [
        op
        for op in top.walk()
        if isinstance(op, CallOp) and str(word(op.callee)) == name and not called.is_ancestor(op)
    ]


def _of_value(value: SSAValue) -> Reasons:
    """What a value follows from."""
    if isinstance(value, BlockArgument):
        return _of_argument(value)
    op = value.owner
    assert isinstance(op, Operation)
    if op.name.startswith("arith.") or isinstance(op, ops.PartitionViewOp):
        return op.operands
    if isinstance(op, ops.MakeTensorViewOp):
        return (*op.shape, *op.strides)
    if isinstance(op, ops.ArgOp):
        return _of_type(value)
    if isinstance(op, scf.ForOp):
        at = op.results.index(value)
        return (op.lb, op.ub, op.step, op.iter_args[at], *_handed_on(op.body.blocks, at))
    if isinstance(op, scf.IfOp):
        at = op.results.index(value)
        return (op.cond, *_handed_on(op.true_region.blocks, at), *_handed_on(op.false_region.blocks, at))
    return None


def _of_argument(value: BlockArgument) -> Reasons:
    op = value.block.parent_op()
    if isinstance(op, scf.ForOp):
        carried = value.index - 1
        inside = () if carried < 0 else (op.iter_args[carried], *_handed_on(op.body.blocks, carried))
        return (op.lb, op.ub, op.step, *inside)
    if isinstance(op, FuncOp):
        callers = _calls_of(op)
        return (callers[0].operands[value.index],) if len(callers) == 1 else None if callers else _of_type(value)
    return None


def _of_type(value: SSAValue) -> Reasons:
    """What comes from outside: a view whose extents its type gives."""
    return () if is_view(value.type) and DYNAMIC not in dims_in(value.type) else None


def _handed_on(blocks: Iterable[Block], at: int) -> list[SSAValue]:
    lasts = [block.last_op for block in blocks]
    return [last.operands[at] for last in lasts if isinstance(last, scf.YieldOp)]
