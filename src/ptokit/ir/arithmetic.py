"""The host arithmetic of a kernel: the ops of `arith` on Python's numbers, as their types have it.

A signless integer is a Python int in two's complement, an i1 is 0 or 1, an index has 64 bits. A float is a Python float
that its type can hold.

>>> from xdsl.dialects.builtin import i32
>>> wrapped(0xFFFFFFFF, 32), as_unsigned(-1, 32), width_of(i32)
(-1, 4294967295, 32)
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
from xdsl.dialects import builtin

from ptokit.errors import PtoTypeError, PtoValueError
from ptokit.ir.errors import WrongProgramError

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation

INDEX_BITS = 64

Number = int | float
Compute = Callable[..., Number]


def width_of(of: Attribute) -> int:
    """Bits of an integer type, an index included."""
    if isinstance(of, builtin.IndexType):
        return INDEX_BITS
    if isinstance(of, builtin.IntegerType):
        return int(of.width.data)
    raise PtoTypeError(f"an integer is wanted, not a value of type {of}")


def wrapped(value: int, bits: int) -> int:
    """The value in so many bits, as a signed number (one bit: 0 or 1)."""
    low = value & ((1 << bits) - 1)
    return low if bits == 1 or low < 1 << (bits - 1) else low - (1 << bits)


def as_unsigned(value: int, bits: int) -> int:
    """The same bits as an unsigned number."""
    return value & ((1 << bits) - 1)


ROUNDED: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": float}


def rounded(value: float, of: Attribute) -> float:
    """The value as the float type holds it."""
    made = ROUNDED.get(str(of))
    if made is None:
        raise PtoTypeError(f"there is no host arithmetic in {of}")
    with np.errstate(all="ignore"):
        return float(made(value))


def typed(value: Number, of: Attribute) -> Number:
    """A number as its type holds it."""
    if isinstance(of, builtin.IntegerType | builtin.IndexType):
        return wrapped(int(value), width_of(of))
    return rounded(float(value), of)


# Integers


def _divided(a: int, b: int) -> int:
    """Towards zero."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


SIGNED: dict[str, Callable[[int, int], int]] = {
    "addi": operator.add,
    "subi": operator.sub,
    "muli": operator.mul,
    "andi": operator.and_,
    "ori": operator.or_,
    "xori": operator.xor,
    "divsi": _divided,
    "remsi": lambda a, b: a - b * _divided(a, b),
    "floordivsi": operator.floordiv,
    "ceildivsi": lambda a, b: -(-a // b),
    "minsi": min,
    "maxsi": max,
    "shrsi": lambda a, b: a >> min(b, INDEX_BITS),
}
UNSIGNED: dict[str, Callable[[int, int], int]] = {
    "divui": operator.floordiv,
    "remui": operator.mod,
    "ceildivui": lambda a, b: -(-a // b),
    "minui": min,
    "maxui": max,
    "shli": lambda a, b: a << min(b, INDEX_BITS),
    "shrui": lambda a, b: a >> min(b, INDEX_BITS),
}
SIGNED_PREDICATES = {
    0: operator.eq,
    1: operator.ne,
    2: operator.lt,
    3: operator.le,
    4: operator.gt,
    5: operator.ge,
}
UNSIGNED_PREDICATES = {6: operator.lt, 7: operator.le, 8: operator.gt, 9: operator.ge}


def _integers(of: Callable[[int, int], int], *, signed: bool) -> Compute:
    def compute(op: Operation, a: int, b: int) -> int:
        bits = width_of(op.results[0].type)
        try:
            return wrapped(of(a, b) if signed else of(as_unsigned(a, bits), as_unsigned(b, bits)), bits)
        except ZeroDivisionError:
            raise WrongProgramError(f"{op.name} divides {a} by zero") from None

    return compute


def _compared(op: Operation, a: int, b: int) -> int:
    predicate = _number(op.properties["predicate"])
    if predicate in SIGNED_PREDICATES:
        return int(SIGNED_PREDICATES[predicate](a, b))
    bits = width_of(op.operands[0].type)
    return int(UNSIGNED_PREDICATES[predicate](as_unsigned(a, bits), as_unsigned(b, bits)))


def _number(attr: Attribute) -> int:
    assert isinstance(attr, builtin.IntegerAttr)
    return int(attr.value.data)


# Floats


def _quotient(a: float, b: float) -> float:
    return float(np.float64(a) / np.float64(b))


def _quiet_nan(pick: Callable[[float, float], float], *, nan_wins: bool) -> Callable[[float, float], float]:
    def of(a: float, b: float) -> float:
        if math.isnan(a) or math.isnan(b):
            return math.nan if nan_wins else (b if math.isnan(a) else a)
        if a == b == 0:  # which of two zeros
            negative = [one for one in (a, b) if math.copysign(1, one) < 0]
            return -0.0 if len(negative) > (pick is max) else 0.0
        return pick(a, b)

    return of


FLOATS: dict[str, Callable[[float, float], float]] = {
    "addf": operator.add,
    "subf": operator.sub,
    "mulf": operator.mul,
    "divf": _quotient,
    "minimumf": _quiet_nan(min, nan_wins=True),
    "maximumf": _quiet_nan(max, nan_wins=True),
    "minnumf": _quiet_nan(min, nan_wins=False),
    "maxnumf": _quiet_nan(max, nan_wins=False),
}
ORDERED = (None, operator.eq, operator.gt, operator.ge, operator.lt, operator.le, operator.ne)
"""Predicates 1 to 6 hold for two numbers, 8 to 13 also where one is a NaN; 7 and 14 ask for just that."""


def _floats(of: Callable[[float, float], float]) -> Compute:
    def compute(op: Operation, a: float, b: float) -> float:
        with np.errstate(all="ignore"):
            return rounded(of(a, b), op.results[0].type)

    return compute


def _compared_floats(op: Operation, a: float, b: float) -> int:
    predicate = _number(op.properties["predicate"])
    if predicate in (0, 15):
        return int(predicate == 15)
    unordered = math.isnan(a) or math.isnan(b)
    if predicate in (7, 14):
        return int(unordered == (predicate == 14))
    if unordered:
        return int(predicate > 7)
    compare = ORDERED[predicate if predicate < 7 else predicate - 7]
    assert compare is not None
    return int(compare(a, b))


# Between types


def _signed(op: Operation, a: Number) -> Number:
    """One bit that is set is -1 where it is taken as signed."""
    of = op.operands[0].type
    return -a if isinstance(of, builtin.IntegerType) and width_of(of) == 1 else a


def _cast(op: Operation, a: int) -> int:
    return wrapped(int(_signed(op, a)), width_of(op.results[0].type))


def _cast_unsigned(op: Operation, a: int) -> int:
    return wrapped(as_unsigned(a, width_of(op.operands[0].type)), width_of(op.results[0].type))


def _to_float(op: Operation, a: Number) -> float:
    return rounded(float(_signed(op, a)), op.results[0].type)


def _unsigned_to_float(op: Operation, a: int) -> float:
    return rounded(float(as_unsigned(a, width_of(op.operands[0].type))), op.results[0].type)


def _to_integer(op: Operation, a: float) -> int:
    if not math.isfinite(a):
        raise PtoValueError(f"{op.name} of {a}: there is no such integer")
    return wrapped(int(a), width_of(op.results[0].type))


LETTERS = {16: ("e", "h"), 32: ("f", "i"), 64: ("d", "q")}


def _bitcast(op: Operation, a: Number) -> Number:
    of, to = op.operands[0].type, op.results[0].type
    was_float, is_float = (not isinstance(one, builtin.IntegerType | builtin.IndexType) for one in (of, to))
    if was_float == is_float:
        return typed(a, to)
    bits = width_of(of if is_float else to)
    if bits not in LETTERS or "bf16" in (str(of), str(to)):
        raise PtoTypeError(f"arith.bitcast from {of} to {to} is not played")
    letters = LETTERS[bits]
    source, sink = reversed(letters) if is_float else letters
    found: Number = struct.unpack(f"<{sink}", struct.pack(f"<{source}", a))[0]
    return found


def _chosen(op: Operation, condition: int, a: Any, b: Any) -> Any:
    return a if condition else b


def _constant(op: Operation) -> Number:
    value = op.properties["value"]
    if isinstance(value, builtin.IntegerAttr | builtin.FloatAttr):
        return typed(value.value.data, op.results[0].type)
    raise PtoTypeError(f"arith.constant {value} is not a number")


ARITHMETIC: dict[str, Compute] = {
    "constant": _constant,
    **{name: _integers(of, signed=True) for name, of in SIGNED.items()},
    **{name: _integers(of, signed=False) for name, of in UNSIGNED.items()},
    **{name: _floats(of) for name, of in FLOATS.items()},
    "negf": lambda op, a: -a,
    "cmpi": _compared,
    "cmpf": _compared_floats,
    "select": _chosen,
    "index_cast": _cast,
    "trunci": _cast,
    "extsi": _cast,
    "extui": _cast_unsigned,
    "index_castui": _cast_unsigned,
    "sitofp": _to_float,
    "uitofp": _unsigned_to_float,
    "extf": _to_float,
    "truncf": _to_float,
    "fptosi": _to_integer,
    "fptoui": _to_integer,
    "bitcast": _bitcast,
}
"""What each op of `arith` computes, by its name without the dialect."""
