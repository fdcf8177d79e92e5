"""Scalar arithmetic: each op of `arith` as an expression of C++."""

from __future__ import annotations

import math
from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ptokit.ir.cpp.types import scalar

INFIX = {
    "addi": "+",
    "subi": "-",
    "muli": "*",
    "divsi": "/",
    "remsi": "%",
    "andi": "&",
    "ori": "|",
    "xori": "^",
    "shli": "<<",
    "shrsi": ">>",
    "addf": "+",
    "subf": "-",
    "mulf": "*",
    "divf": "/",
}
UNSIGNED = {"divui": "/", "remui": "%", "shrui": ">>"}
LESSER = {"minsi": "<", "maxsi": ">", "minimumf": "<", "maximumf": ">", "minnumf": "<", "maxnumf": ">"}
UNSIGNED_LESSER = {"minui": "<", "maxui": ">"}
CASTS = frozenset({"index_cast", "trunci", "extsi", "sitofp", "fptosi", "fptoui", "extf", "truncf"})
UNSIGNED_CASTS = frozenset({"extui", "uitofp", "index_castui"})
INTEGER_TESTS = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
FIRST_UNSIGNED = 6
FLOAT_TESTS = {1: "==", 2: ">", 3: ">=", 4: "<", 5: "<=", 13: "!="}
"""The predicates that a comparison of C++ has: the ordered ones, and `une`."""

Word = Callable[[SSAValue], str]


def literal(attr: Attribute) -> str | None:
    """A constant in C++.

    >>> from xdsl.dialects.builtin import f32, i64
    >>> literal(IntegerAttr(4096, i64)), literal(FloatAttr(0.5, f32))
    ('4096', '0.5f')
    """
    of = scalar(attr.type) if isinstance(attr, IntegerAttr | FloatAttr) else None
    if isinstance(attr, IntegerAttr):
        value = attr.value.data
        return {0: "false"}.get(value, "true") if of == "bool" else _whole(value)
    if not isinstance(attr, FloatAttr) or of is None:
        return None
    number = attr.value.data
    if math.isnan(number):
        word = '__builtin_nanf("")'
    elif math.isinf(number):
        word = "-__builtin_inff()" if number < 0 else "__builtin_inff()"
    else:
        word = repr(number) if of == "double" else f"{number!r}f"
    return word if of in ("float", "double") else f"static_cast<{of}>({word})"


def _whole(value: int) -> str:
    lowest = -(1 << 63)
    if value == lowest:
        return f"({lowest + 1} - 1)"
    return str(value)


def expression(op: Operation, word: Word) -> str | None:
    """What the op computes, or None where C++ has no expression for it that is known here."""
    name = op.name.removeprefix("arith.")
    if isinstance(op, arith.ConstantOp):
        return literal(op.value)
    if isinstance(op, arith.CmpiOp | arith.CmpfOp):
        return _comparison(op, word)
    if isinstance(op, arith.SelectOp):
        return f"{word(op.cond)} ? {word(op.lhs)} : {word(op.rhs)}"
    if name == "negf":
        return f"-{word(op.operands[0])}"
    if name in CASTS or name in UNSIGNED_CASTS:
        given = word(op.operands[0])
        given = _unsigned(op.operands[0], given) if name in UNSIGNED_CASTS else given
        to = scalar(op.results[0].type)
        if to is not None and scalar(op.operands[0].type) == to and name not in UNSIGNED_CASTS:
            return given
        return None if to is None else f"static_cast<{to}>({given})"
    return _binary(op, name, word)


def _binary(op: Operation, name: str, word: Word) -> str | None:
    if len(op.operands) != 2:
        return None
    a, b = (word(operand) for operand in op.operands)
    if name in UNSIGNED or name in UNSIGNED_LESSER:
        ua, ub = (_unsigned(operand, given) for operand, given in zip(op.operands, (a, b), strict=True))
        if name in UNSIGNED_LESSER:
            return f"{ua} {UNSIGNED_LESSER[name]} {ub} ? {a} : {b}"
        return f"{ua} {UNSIGNED[name]} {ub}"
    if name in LESSER:
        return f"{a} {LESSER[name]} {b} ? {a} : {b}"
    if name == "ceildivsi":
        return f"{a} / {b} + ({a} % {b} != 0 && ({a} < 0) == ({b} < 0) ? 1 : 0)"
    if name == "floordivsi":
        return f"{a} / {b} - ({a} % {b} != 0 && ({a} < 0) != ({b} < 0) ? 1 : 0)"
    return f"{a} {INFIX[name]} {b}" if name in INFIX else None


def _comparison(op: arith.CmpiOp | arith.CmpfOp, word: Word) -> str | None:
    a, b = word(op.lhs), word(op.rhs)
    number = op.predicate.value.data
    if isinstance(op, arith.CmpfOp):
        return f"{a} {FLOAT_TESTS[number]} {b}" if number in FLOAT_TESTS else None
    if number >= FIRST_UNSIGNED:
        a, b = _unsigned(op.lhs, a), _unsigned(op.rhs, b)
    return f"{a} {INTEGER_TESTS[number]} {b}"


def _unsigned(value: SSAValue, word: str) -> str:
    of = scalar(value.type)
    return f"static_cast<u{of}>({word})" if of and of.startswith("int") else word


FOLDS: dict[str, Callable[[int, int], int | None]] = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "divsi": lambda a, b: a // b if b > 0 <= a else None,
    "remsi": lambda a, b: a % b if b > 0 <= a else None,
    "minsi": min,
    "maxsi": max,
}


def known(value: SSAValue, depth: int = 32) -> int | None:
    """The whole number that a value always is, as far as constants tell."""
    owner = value.owner
    if not isinstance(owner, Operation) or depth == 0:
        return None
    if isinstance(owner, arith.ConstantOp):
        return owner.value.value.data if isinstance(owner.value, IntegerAttr) else None
    name = owner.name.removeprefix("arith.")
    if name == "index_cast":
        return known(owner.operands[0], depth - 1)
    if name not in FOLDS:
        return None
    a, b = (known(operand, depth - 1) for operand in owner.operands)
    return None if a is None or b is None else FOLDS[name](a, b)
