"""The vector instructions against a model of one element at a time, and the rules with their smallest neighbours.

The model knows a number as a Python int, float or Fraction, decodes and encodes bits on its own, and rounds exact
values; it shares no code with the package.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptokit.core.vector import (
    EVERY_TYPE,
    FLOATS,
    FORMS,
    INTEGERS,
    NUMBERS,
    OPS,
    ROUNDINGS,
    RULES,
    Options,
    Wanted,
    convert_elements,
    judge_vector,
    scalar_value,
    sources_of,
    vector_op,
)
from ptokit.dtypes import ELEMENT_TYPES, Array, element_type
from ptokit.errors import PtoTypeError, PtoValueError
from ptokit.findings import Severity
from ptokit.tensors import Tile

Number = int | float

# ---------------------------------------------------------------------------------------------
# The model: numbers
# ---------------------------------------------------------------------------------------------

INT_RANGE = {f"{u}int{n}": (0, 2**n - 1) if u else (-(2 ** (n - 1)), 2 ** (n - 1) - 1) for u in ("", "u") for n in (8, 16, 32)}  # fmt: skip  # noqa: E501

# name: significant bits, exponent of the smallest normal, the largest value
FLOAT_FORM = {
    "float32": (24, -126, Fraction(2**24 - 1) * 2**104),
    "float16": (11, -14, Fraction(65504)),
    "bfloat16": (8, -126, Fraction(2**8 - 1) * 2**120),
    "float8_e5m2": (3, -14, Fraction(57344)),
    "float8_e4m3": (4, -6, Fraction(448)),
}
CONVERTIBLE = sorted(INT_RANGE) + sorted(FLOAT_FORM)
SIZE = {name: t.itemsize for name, t in ELEMENT_TYPES.items()}


def e4m3(bits: int) -> float:
    sign = -1.0 if bits & 0x80 else 1.0
    exponent, fraction = bits >> 3 & 15, bits & 7
    if bits & 0x7F == 0x7F:
        return math.nan
    return sign * (fraction * 2.0**-9 if exponent == 0 else (8 + fraction) * 2.0 ** (exponent - 10))


DECODE: dict[str, Callable[[int], float]] = {
    "float32": lambda bits: float(struct.unpack("<f", struct.pack("<I", bits))[0]),
    "float16": lambda bits: float(struct.unpack("<e", struct.pack("<H", bits))[0]),
    "bfloat16": lambda bits: float(struct.unpack("<f", struct.pack("<I", bits << 16))[0]),
    "float8_e5m2": lambda bits: float(struct.unpack("<e", struct.pack("<H", bits << 8))[0]),
    "float8_e4m3": e4m3,
}


def numbers(array: Array, name: str) -> list[list[Number]]:
    """Rows of Python numbers."""
    if name in INT_RANGE:
        return [[int(v) for v in row] for row in array]
    return [[DECODE[name](int(v)) for v in row] for row in array.view(f"u{SIZE[name]}")]


def key(value: Number) -> object:
    """What makes two numbers the same bits: the sign of a zero counts, every NaN is one."""
    if isinstance(value, int):
        return value
    return "nan" if math.isnan(value) else (value, math.copysign(1.0, value))


def wrap(value: int, name: str) -> int:
    low, high = INT_RANGE[name]
    return (value - low) % (high - low + 1) + low


def hold(value: int, name: str) -> int:
    low, high = INT_RANGE[name]
    return min(max(value, low), high)


def whole_part(size: Fraction, negative: bool, mode: str) -> int:
    """A magnitude rounded to a whole number."""
    low = math.floor(size)
    rest = size - low
    if mode in ("none", "rint"):
        up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low % 2 == 1)
    else:
        up = {
            "round": rest >= Fraction(1, 2),
            "floor": rest > 0 and negative,
            "ceil": rest > 0 and not negative,
            "trunc": False,
            "odd": rest > 0 and low % 2 == 0,
        }[mode]
    return low + int(up)


def to_float(value: Number | Fraction, name: str, mode: str = "rint") -> float:
    """Rounded once to a float type."""
    if isinstance(value, float) and (math.isnan(value) or math.isinf(value)):
        return math.nan if name == "float8_e4m3" else value
    negative = math.copysign(1.0, value) < 0 if isinstance(value, float) else value < 0
    size = abs(Fraction(value))
    if size == 0:
        return -0.0 if negative else 0.0
    precision, smallest, top = FLOAT_FORM[name]
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, smallest) - precision + 1)
    rounded = whole_part(size / unit, negative, mode) * unit
    if rounded > top:
        cuts = mode in ("trunc", "odd") or mode == ("ceil" if negative else "floor")
        rest = math.nan if name == "float8_e4m3" else math.inf
        got = float(top) if cuts else rest
    else:
        got = float(rounded)
    return -got if negative else got


def single(value: Number) -> float:
    return to_float(value, "float32")


# ---------------------------------------------------------------------------------------------
# The model: instructions
# ---------------------------------------------------------------------------------------------


def int_quotient(a: int, b: int) -> int:
    if b == 0:
        return 0
    size = abs(a) // abs(b)
    return -size if (a < 0) != (b < 0) else size


def float_quotient(a: float, b: float) -> float:
    if b != 0 or math.isnan(a):
        return a / b if b != 0 else math.nan
    return math.nan if a == 0 else math.copysign(math.inf, math.copysign(1, a) * math.copysign(1, b))


def larger(a: Number, b: Number) -> Number:
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.nan
        if a == b == 0:
            return -0.0 if math.copysign(1, a) < 0 and math.copysign(1, b) < 0 else 0.0
    return a if a > b else b


def smaller(a: Number, b: Number) -> Number:
    if isinstance(a, float) and isinstance(b, float):
        return -larger(-a, -b)
    return a if a < b else b


PAIRS: dict[str, tuple[Callable[[int, int], int], Callable[[float, float], float]]] = {
    "add": (lambda a, b: a + b, lambda a, b: a + b),
    "sub": (lambda a, b: a - b, lambda a, b: a - b),
    "mul": (lambda a, b: a * b, lambda a, b: a * b),
    "div": (int_quotient, float_quotient),
    "max": (larger, larger),  # type: ignore[dict-item]
    "min": (smaller, smaller),  # type: ignore[dict-item]
}


def pair(word: str, a: Number, b: Number, name: str) -> Number:
    """One element of the arithmetic on two."""
    on_ints, on_floats = PAIRS[word]
    if name in INT_RANGE:
        return wrap(on_ints(int(a), int(b)), name)
    return to_float(single(on_floats(float(a), float(b))), name)


def exponential(a: float) -> float:
    try:
        return math.exp(a)
    except OverflowError:
        return math.inf


def logarithm(a: float) -> float:
    if math.isnan(a) or a < 0:
        return math.nan
    return math.log(a) if a else -math.inf


def root(a: float) -> float:
    return math.nan if math.isnan(a) or a < 0 else math.sqrt(a)


CURVES = {"texp": exponential, "tlog": logarithm, "tsqrt": root}


def alone(op: str, a: Number, name: str) -> Number:
    """One element of the arithmetic on one."""
    if op in CURVES:
        return to_float(single(CURVES[op](float(a))), name)
    if name in INT_RANGE:
        return wrap(abs(int(a)) if op == "tabs" else -int(a), name)
    return abs(a) if op == "tabs" else -a


def total(row: Sequence[Number], name: str) -> Number:
    if name in INT_RANGE:
        return wrap(sum(int(v) for v in row), name)
    acc = float(row[0])
    for value in row[1:]:
        acc = single(acc + float(value))
    return to_float(acc, name)


def top_of(row: Sequence[Number], name: str) -> Number:
    best = row[0]
    for value in row[1:]:
        best = larger(best, value)
    return best


def converted(a: Number, source: str, to: str, mode: str) -> Number:
    if isinstance(a, float) and to in INT_RANGE:
        if math.isnan(a):
            return 0
        if math.isinf(a):
            return INT_RANGE[to][a > 0]
        size = whole_part(abs(Fraction(a)), a < 0, mode)
        return hold(-size if a < 0 else size, to)
    if to in INT_RANGE:
        return hold(int(a), to)
    if source != to:
        return to_float(a, to, mode)
    if mode == "none" or math.isnan(a) or math.isinf(a):
        return a
    return math.copysign(float(whole_part(abs(Fraction(a)), math.copysign(1, a) < 0, mode)), a)


COMPARE: dict[str, Callable[[Number, Number], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}

# ---------------------------------------------------------------------------------------------
# Operands
# ---------------------------------------------------------------------------------------------

SPECIAL_BITS = {
    "float32": (0, 0x80000000, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 1, 0x80000001, 0x7F7FFFFF,
                0xFF7FFFFF, 0x00800000, 0x3EFFFFFF, 0x3F000000, 0xBF000000, 0x4B000001, 0x477FF000, 0x4F000000),
    "float16": (0, 0x8000, 0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x7E00, 1, 0x8001, 0x7BFF, 0xFBFF, 0x0400, 0x3800, 0xB800),
    "bfloat16": (0, 0x8000, 0x3F80, 0xBF80, 0x7F80, 0xFF80, 0x7FC0, 1, 0x8001, 0x7F7F, 0xFF7F, 0x0080, 0x3F00, 0xBF00),
}  # fmt: skip


@cache
def edges(name: str) -> tuple[int, ...]:
    """Bits of the values where things go wrong."""
    if name in SPECIAL_BITS:
        return SPECIAL_BITS[name]
    if SIZE[name] == 1:
        return tuple(range(256))
    low, high = INT_RANGE[name]
    return tuple(v % 2 ** (8 * SIZE[name]) for v in (0, 1, 2, 3, -1, -2, -3, 7, low, low + 1, high, high - 1, 129, 300))


def from_bits(bits: Sequence[int] | Array, name: str) -> Array:
    """A row of that type."""
    return np.array(bits, f"u{SIZE[name]}").reshape(1, -1).view(ELEMENT_TYPES[name].numpy)


def random_bits(name: str, count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, 2 ** (8 * SIZE[name]), count, np.uint64)


def of_size_one(name: str, count: int, seed: int = 0) -> Array:
    """Values that do not swallow each other: floats near 1, any integers."""
    if name in INT_RANGE:
        return from_bits(random_bits(name, count, seed), name)
    return np.random.default_rng(seed).normal(size=(1, count)).astype(np.float32).astype(ELEMENT_TYPES[name].numpy)


def pairs_of(name: str) -> tuple[Array, Array]:
    """Every edge with every edge (of 8-bit types with some), random bits with random bits, ordinary with ordinary."""
    first = edges(name)
    second = first if len(first) < 50 else (0, 1, 2, 3, 5, 127, 128, 129, 254, 255)
    a = [x for x in first for _ in second] + [int(v) for v in random_bits(name, 200, 1)]
    b = [y for _ in first for y in second] + [int(v) for v in random_bits(name, 200, 2)]
    ordinary = [of_size_one(name, 200, seed) for seed in (3, 4)]
    return (
        np.concatenate([from_bits(a, name), ordinary[0]], axis=1),
        np.concatenate([from_bits(b, name), ordinary[1]], axis=1),
    )


def compute(op: str, name: str, *arrays: Array, shape: tuple[int, int] | None = None, **asked: object) -> Array:
    """What the table computes; the shape is that of the last operand where none is given."""
    row = vector_op(op)
    wanted = Wanted(element_type(name), shape or (arrays[-1].shape[0], arrays[-1].shape[1]))
    got = row.compute(wanted, row.asked(**asked), *arrays)
    assert got.dtype == wanted.dtype.numpy
    assert got.shape == wanted.shape
    assert got.flags.writeable
    assert not any(np.shares_memory(got, one) for one in arrays)
    return got


def assert_same(got: Array, name: str, expected: list[list[Number]]) -> None:
    assert [[key(v) for v in row] for row in numbers(got, name)] == [[key(v) for v in row] for row in expected]


# ---------------------------------------------------------------------------------------------
# What is computed
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(NUMBERS))
@pytest.mark.parametrize("word", PAIRS)
def test_arithmetic_on_two_tiles_is_that_of_the_model(word: str, name: str) -> None:
    a, b = pairs_of(name)
    (left,), (right,) = numbers(a, name), numbers(b, name)
    expected = [[pair(word, x, y, name) for x, y in zip(left, right, strict=True)]]
    assert_same(compute(f"t{word}", name, a, b), name, expected)


@pytest.mark.parametrize("name", sorted(NUMBERS))
@pytest.mark.parametrize("word", PAIRS)
def test_arithmetic_with_a_scalar_is_that_of_the_model(word: str, name: str) -> None:
    a = pairs_of(name)[0]
    scalars: list[Number] = [0, 1, 3]
    scalars += [0.1, -0.0, 0.0, -2.5, math.inf, math.nan] if name in FLOATS else [*INT_RANGE[name]]
    for scalar in scalars:
        as_held = to_float(scalar, name) if name in FLOATS else scalar
        expected = [[pair(word, x, as_held, name) for x in numbers(a, name)[0]]]
        assert_same(compute(f"t{word}s", name, a, scalar=scalar), name, expected)


@pytest.mark.parametrize(("op", "name"), [(op, n) for op in ("tabs", "tneg", *CURVES) for n in sorted(OPS[op].types)])
def test_arithmetic_on_one_tile_is_that_of_the_model(op: str, name: str) -> None:
    a = np.concatenate(pairs_of(name), axis=1)
    assert_same(compute(op, name, a), name, [[alone(op, x, name) for x in numbers(a, name)[0]]])


def test_every_float16_has_the_root_the_logarithm_and_the_power_of_the_model() -> None:
    a = from_bits(range(65536), "float16")
    for op in CURVES:
        assert_same(compute(op, "float16", a), "float16", [[alone(op, x, "float16") for x in numbers(a, "float16")[0]]])


@pytest.mark.parametrize("name", sorted(EVERY_TYPE))
def test_moving_and_selecting_keep_every_bit(name: str) -> None:
    if name == "hifloat8":
        pytest.importorskip("en_dtypes")
    a, b = (from_bits(random_bits(name, 500, seed), name) for seed in (1, 2))
    raw = f"u{SIZE[name]}"
    assert np.array_equal(compute("tmov", name, a).view(raw), a.view(raw))
    for mask_type in ("int8", "uint8"):
        mask = (random_bits("uint8", 500, 3) % 3 * 100).astype(np.uint8).view(mask_type).reshape(1, -1)
        expected = [x if m else y for m, x, y in zip(mask[0], a.view(raw)[0], b.view(raw)[0], strict=True)]
        assert np.array_equal(compute("tsel", name, mask, a, b).view(raw)[0], expected)


@pytest.mark.parametrize("name", sorted(NUMBERS))
@pytest.mark.parametrize("mode", COMPARE)
def test_a_comparison_gives_ones_and_zeros(mode: str, name: str) -> None:
    a, b = pairs_of(name)
    (left,), (right,) = numbers(a, name), numbers(b, name)
    expected: list[list[Number]] = [[int(COMPARE[mode](x, y)) for x, y in zip(left, right, strict=True)]]
    for into in ("int8", "uint8"):
        assert_same(compute("tcmp", into, a, b, mode=mode), into, expected)


@pytest.mark.parametrize("name", sorted(EVERY_TYPE - {"hifloat8"}))
def test_a_fill_is_the_scalar_everywhere(name: str) -> None:
    for scalar in (0, 1, 5.0 if name not in INT_RANGE else 5, np.float32(3), np.int64(2), np.array(4)):
        expected: Number = to_float(float(scalar), name) if name not in INT_RANGE else int(scalar)
        assert_same(compute("texpands", name, shape=(2, 3), scalar=scalar), name, [[expected] * 3] * 2)


def test_a_fill_of_hifloat8() -> None:
    pytest.importorskip("en_dtypes")
    assert compute("texpands", "hifloat8", shape=(1, 2), scalar=1.5).astype(np.float32).tolist() == [[1.5, 1.5]]


@pytest.mark.parametrize("name", ["int16", "uint16", "int32", "uint32"])
@pytest.mark.parametrize("descending", [False, True])
def test_counting_goes_row_by_row_and_wraps(name: str, descending: bool) -> None:
    step = -1 if descending else 1
    for first in (0, 5, *INT_RANGE[name]):
        expected: list[list[Number]] = [[wrap(first + step * (4 * r + c), name) for c in range(4)] for r in range(3)]
        assert_same(compute("tci", name, shape=(3, 4), first=first, descending=descending), name, expected)


REDUCTIONS = {"sum": total, "max": top_of}


@pytest.mark.parametrize("name", sorted(NUMBERS))
@pytest.mark.parametrize("word", REDUCTIONS)
@pytest.mark.parametrize(("rows", "cols"), [(16, 64), (1, 1000), (1000, 1), (1, 1), (7, 9)])
def test_reductions_go_from_first_to_last(word: str, name: str, rows: int, cols: int) -> None:
    a = of_size_one(name, rows * cols, rows).reshape(rows, cols)
    held, fold = numbers(a, name), REDUCTIONS[word]
    by_row: list[list[Number]] = [[fold(row, name)] for row in held]
    by_column: list[list[Number]] = [[fold(column, name) for column in zip(*held, strict=True)]]
    assert_same(compute(f"trow{word}", name, a, shape=(rows, 1)), name, by_row)
    assert_same(compute(f"tcol{word}", name, a, shape=(1, cols)), name, by_column)


@pytest.mark.parametrize("name", sorted(FLOATS))
@pytest.mark.parametrize("word", REDUCTIONS)
def test_reductions_of_zeros_infinities_and_nan(word: str, name: str) -> None:
    special = [bits for bits in SPECIAL_BITS[name] for _ in SPECIAL_BITS[name]]
    other = [bits for _ in SPECIAL_BITS[name] for bits in SPECIAL_BITS[name]]
    a = np.concatenate([from_bits(special, name), from_bits(other, name)])
    held, fold = numbers(a, name), REDUCTIONS[word]
    expected: list[list[Number]] = [[fold(column, name) for column in zip(*held, strict=True)]]
    assert_same(compute(f"tcol{word}", name, a, shape=(1, len(special))), name, expected)
    down = np.ascontiguousarray(a.T)
    assert_same(compute(f"trow{word}", name, down, shape=(len(special), 1)), name, [[v] for v in expected[0]])


def test_sums_of_16_bit_floats_round_once_at_the_end() -> None:
    a = np.full((1, 4096), 1.0, np.float16)
    assert float(compute("trowsum", "float16", a, shape=(1, 1))[0, 0]) == 4096  # rounding each time stops at 2048


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(NUMBERS)), st.sampled_from(sorted(PAIRS)), st.data())
def test_any_bits_give_what_the_model_gives(name: str, word: str, data: st.DataObject) -> None:
    words = st.integers(0, 2 ** (8 * SIZE[name]) - 1)
    cells = st.lists(st.tuples(words, words), min_size=1, max_size=30)
    drawn = data.draw(cells)
    a, b = from_bits([x for x, _ in drawn], name), from_bits([y for _, y in drawn], name)
    (left,), (right,) = numbers(a, name), numbers(b, name)
    expected = [[pair(word, x, y, name) for x, y in zip(left, right, strict=True)]]
    assert_same(compute(f"t{word}", name, a, b), name, expected)


@pytest.mark.parametrize("op", sorted(OPS))
def test_views_with_other_strides_give_the_same(op: str) -> None:
    row = OPS[op]
    name = "int32" if op == "tci" else "float32"
    into = "int8" if op == "tcmp" else name
    plain = [of_size_one("float32", 48, seed).reshape(6, 8) for seed in range(row.sources)]
    if op == "tsel":
        plain[0] = (plain[0] > 0).view(np.int8)
    shape = FORMS[row.form].gives((6, 8))
    asked = {option: 2 for option in row.takes if option in ("scalar", "first")}
    turned = [np.ascontiguousarray(one.T).T for one in plain]
    expected = compute(op, into, *plain, shape=shape, **asked)
    assert np.array_equal(compute(op, into, *turned, shape=shape, **asked), expected, equal_nan=True)


@pytest.mark.parametrize("op", sorted(set(OPS) - {"trowsum", "trowmax", "tcolsum", "tcolmax"}))
def test_nothing_valid_gives_nothing(op: str) -> None:
    row = OPS[op]
    name = "int16" if "int16" in row.types else "float32"
    into = "int8" if op == "tcmp" else name
    sources = [np.zeros((0, 8), ELEMENT_TYPES[name].numpy)] * row.sources
    asked = {option: 2 for option in row.takes if option in ("scalar", "first")}
    assert compute(op, into, *sources, shape=(0, 8), **asked).size == 0


# Conversion


@cache
def conversion_inputs(name: str) -> Array:
    """Edges, random bits, whole numbers and halves, and the middles between float16 and bfloat16 neighbours."""
    bits = [*edges(name), *(int(v) for v in random_bits(name, 60, 5))]
    if name == "float32":
        middles = random_bits("uint16", 60, 6)
        bits += [int(v) << 16 | 0x8000 for v in middles]
        bits += [(int(v) & 0x8FFF | 0x3000) << 16 | 0x1000 | int(v) << 13 & 0x6000 for v in middles]
        bits += [0x33000000, 0x33800000, 0x33000001, 0x477FEFFF, 0x477FE001, 0x7F7F8000, 0x7F7F7FFF, 0x00008000]
    if name in ("int32", "uint32"):
        bits += [2**24 + 1, 2**24 + 3, 2**25 + 2, 2**25 + 6, 65519, 65520, 65535, 0x01010000, 0x01010001, 0x01008001,
                 0x7F800000, 0x7FFFFFC0, 0x7FFFFFBF, 2**31 + 128]  # fmt: skip
    row = from_bits(bits, name)
    if name in FLOATS:
        halves = np.arange(-20, 20, dtype=np.float32) / 2
        big = np.array([126.5, 127.5, 128, 255.5, 32767.5, 65535, 2147483500, 2147483648, 4294967296], np.float32)
        extra = np.concatenate([halves, halves * np.float32(1.001), big, -big]).reshape(1, -1)
        if name == "float16":
            extra = extra[np.abs(extra) < 65504].reshape(1, -1)
        row = np.concatenate([row, extra.astype(row.dtype)], axis=1)
    return row


def has_mode(source: str, to: str, mode: str) -> bool:
    if mode == "odd":
        return source == "float32" and to in ("float16", "bfloat16")
    return mode in ("none", "rint") or to not in ("float8_e4m3", "float8_e5m2", "hifloat8")


@pytest.mark.parametrize("to", CONVERTIBLE)
@pytest.mark.parametrize("source", CONVERTIBLE)
def test_a_conversion_rounds_once_and_holds_to_the_range(source: str, to: str) -> None:
    a = conversion_inputs(source)
    for mode in ROUNDINGS:
        if has_mode(source, to, mode):
            expected = [[converted(x, source, to, mode) for x in numbers(a, source)[0]]]
            assert_same(compute("tcvt", to, a, mode=mode), to, expected)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=30),
    st.sampled_from(["float16", "bfloat16"]),
    st.sampled_from(ROUNDINGS),
)
def test_any_float32_narrows_as_in_the_model(bits: list[int], to: str, mode: str) -> None:
    a = from_bits(bits, "float32")
    expected = [[converted(x, "float32", to, mode) for x in numbers(a, "float32")[0]]]
    assert_same(compute("tcvt", to, a, mode=mode), to, expected)


def test_rounding_modes_of_a_half() -> None:
    a = np.array([[-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]], np.float32)
    told = {mode: compute("tcvt", "int32", a, mode=mode)[0].tolist() for mode in ROUNDINGS if mode != "odd"}
    assert told == {
        "none": [-2, -2, 0, 0, 2, 2],
        "rint": [-2, -2, 0, 0, 2, 2],
        "round": [-3, -2, -1, 1, 2, 3],
        "floor": [-3, -2, -1, 0, 1, 2],
        "ceil": [-2, -1, 0, 1, 2, 3],
        "trunc": [-2, -1, 0, 0, 1, 2],
    }


def test_hifloat8_is_converted_by_way_of_float32() -> None:
    pytest.importorskip("en_dtypes")
    a = np.array([[1.5, -2, 0, 16]], np.float32)
    narrow = convert_elements(a, element_type("hifloat8"))
    assert narrow.dtype == element_type("hifloat8").numpy
    assert np.array_equal(convert_elements(narrow, element_type("float32")), a)
    assert convert_elements(narrow, element_type("int8"), "floor").tolist() == [[1, -2, 0, 16]]


# Scalars


def test_a_scalar_keeps_the_sign_of_its_zero_whatever_came_before() -> None:
    for _ in range(2):
        signs = [bool(np.signbit(scalar_value(zero, element_type("float32")))) for zero in (0.0, -0.0, 0)]
        assert signs == [False, True, False]


def test_a_scalar_that_was_handed_out_cannot_be_changed() -> None:
    assert not scalar_value(1.0, element_type("float32")).flags.writeable


@pytest.mark.parametrize(("value", "name"), [(300, "int8"), (-1, "uint8"), (0.5, "int32"), (1e39, "float32"),
                                             (65520, "float16"), (math.nan, "int16"), (10**400, "float32"),
                                             (np.float32(0.5), "int8")])  # fmt: skip
def test_a_scalar_outside_the_type_is_refused(value: Any, name: str) -> None:
    with pytest.raises(PtoValueError, match=r"^(the value|an integer among) [^(]*"):
        scalar_value(value, element_type(name))


# ---------------------------------------------------------------------------------------------
# The table, options and operands
# ---------------------------------------------------------------------------------------------


def test_the_table_holds_the_instructions_that_surround_a_scatter() -> None:
    names = (
        "tadd tsub tmul tdiv tmax tmin tadds tsubs tmuls tdivs tmaxs tmins tabs tneg texp tlog tsqrt tmov "
        "texpands tcvt tcmp tsel tci trowsum trowmax tcolsum tcolmax"
    )
    assert list(OPS) == names.split()
    assert {name: OPS[name].sources for name in ("tadd", "tadds", "tci", "tsel", "trowsum")} == {
        "tadd": 2, "tadds": 1, "tci": 0, "tsel": 3, "trowsum": 1,
    }  # fmt: skip
    for name, op in OPS.items():
        assert (op.name, op.types <= EVERY_TYPE) == (name, True)
        assert op.form in FORMS
        assert op.does
        assert bool(op.modes) == ("mode" in op.takes)
    assert NUMBERS == INTEGERS | FLOATS


def test_an_instruction_is_found_by_any_case_and_its_misspelling_gets_the_nearest() -> None:
    assert vector_op("TROWSUM") is OPS["trowsum"]
    with pytest.raises(PtoValueError, match=r"'trowsun'.*Did you mean 'trowsum'\?"):
        vector_op("trowsun")


def test_options_have_defaults_and_are_read_in_any_case() -> None:
    assert OPS["tcvt"].asked() == Options(mode="rint")
    assert OPS["tcmp"].asked() == Options(mode="eq")
    assert OPS["tcvt"].asked(mode="Floor").mode == "floor"
    assert OPS["tci"].asked(first=3) == Options(first=3)
    assert OPS["tci"].asked(first=3, descending=np.True_).descending is True
    assert OPS["tadd"].asked() == Options()


@pytest.mark.parametrize(
    ("op", "given_", "error", "sentence"),
    [
        ("tcvt", {"mode": "flor"}, PtoValueError, r"tcvt: mode='flor' is unknown. Did you mean 'floor'\?"),
        ("tcmp", {"mode": "gte"}, PtoValueError, r"tcmp: mode='gte' is unknown. Did you mean 'g[te]'\?"),
        ("tcmp", {"mode": 3}, PtoTypeError, "mode=3 is an int; known: eq, ne"),
        ("tadds", {}, PtoTypeError, "tadds: scalar is missing"),
        ("tadds", {"scalar": "1"}, PtoTypeError, "scalar='1' is a str; a number is wanted"),
        ("tadds", {"scalar": None}, PtoTypeError, "scalar=None"),
        ("tadds", {"scalar": 1j}, PtoTypeError, "a number is wanted"),
        ("tadds", {"scalar": np.complex64(1)}, PtoTypeError, "a number is wanted"),
        ("tadds", {"scalar": np.str_("1")}, PtoTypeError, "a number is wanted"),
        ("tadds", {"scalar": np.ones(2)}, PtoTypeError, "is an ndarray; a number is wanted"),
        ("tadds", {"scalr": 1}, PtoTypeError, r"tadds has no keyword 'scalr'. Did you mean 'scalar'\?"),
        ("tadd", {"scalar": 1}, PtoTypeError, "tadd has no keyword 'scalar'"),
        ("tci", {"first": 0, "descending": 1}, PtoTypeError, "descending=1 is an int; True or False is wanted"),
    ],
)
def test_a_wrong_option_is_told_at_once(op: str, given_: dict[str, Any], error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        OPS[op].asked(**given_)


def test_the_number_and_the_kind_of_the_sources_are_told() -> None:
    a = Tile("float32", 4, 8)
    assert sources_of(OPS["tadd"], [a, a]) == (a, a)
    assert sources_of(OPS["tci"], []) == ()
    with pytest.raises(PtoTypeError, match=r"tadd reads 2 tiles \(a, b\); 1 were given"):
        sources_of(OPS["tadd"], [a])
    with pytest.raises(PtoTypeError, match="tci reads 0 tiles; 1 were given"):
        sources_of(OPS["tci"], [a])
    with pytest.raises(PtoTypeError, match="tadd: b is an ndarray; a tile is wanted"):
        sources_of(OPS["tadd"], [a, np.zeros(8)])
    with pytest.raises(PtoTypeError, match="tadd reads 2 tiles"):
        judge_vector(OPS["tadd"], a, [a], Options())


# ---------------------------------------------------------------------------------------------
# The rules: one legal call, and its smallest illegal neighbour
# ---------------------------------------------------------------------------------------------


def tile(dtype: str = "float32", valid: tuple[int, int] = (16, 60)) -> Tile:
    return Tile(dtype, 16, 64, valid=valid)


def told(op: str, dst: Tile, *sources: Tile, target: str = "a5", **asked: Any) -> list[tuple[str, str]]:
    row = vector_op(op)
    found = judge_vector(row, dst, sources, row.asked(**asked), target)
    for one in found:
        assert (one.severity, one.target, one.where) == (Severity.ERROR, target, None)
        assert one.fix
        assert one.facts["dst"] == repr(dst)
        assert one.facts["needs"]
    return [(one.id, one.message) for one in found]


TYPES_TOLD = [
    ("tadd", ["float32"] * 3, ["float32", "float32", "float16"],
     "tadd: dst holds float32 and b float16; they must agree."),
    ("tadd", ["int8"] * 3, ["float8_e5m2"] * 3,
     "tadd: dst holds float8_e5m2; it takes int8, uint8, int16, uint16, int32, uint32, float16, bfloat16, float32."),
    ("tadds", ["int16"] * 2, ["int16", "uint16"], "tadds: dst holds int16 and a uint16; they must agree."),
    ("texp", ["float16"] * 2, ["int16"] * 2, "texp: dst holds int16; it takes float16, bfloat16, float32."),
    ("tmov", ["float8_e4m3"] * 2, ["float8_e4m3", "uint8"],
     "tmov: dst holds float8_e4m3 and a uint8; they must agree."),
    ("tci", ["uint16"], ["uint8"], "tci: dst holds uint8; it takes int16, uint16, int32, uint32."),
    ("tcmp", ["int8", "float32", "float32"], ["int16", "float32", "float32"],
     "tcmp: dst is a mask and holds int16; it takes int8, uint8."),
    ("tcmp", ["uint8", "int32", "int32"], ["uint8", "int32", "uint32"],
     "tcmp: a holds int32 and b uint32; they must agree."),
    ("tsel", ["float32", "uint8", "float32", "float32"], ["float32", "int32", "float32", "float32"],
     "tsel: mask is a mask and holds int32; it takes int8, uint8."),
    ("tsel", ["int8"] * 4, ["int8", "int8", "uint8", "int8"], "tsel: dst holds int8 and a uint8; they must agree."),
]  # fmt: skip


@pytest.mark.parametrize(("op", "legal", "illegal", "sentence"), TYPES_TOLD)
def test_element_types_are_listed_and_agree(op: str, legal: list[str], illegal: list[str], sentence: str) -> None:
    asked: dict[str, Any] = {option: 1 for option in OPS[op].takes if option in ("scalar", "first")}
    assert told(op, *(tile(name) for name in legal), **asked) == []
    assert told(op, *(tile(name) for name in illegal), **asked) == [("PTO-L031", sentence)]


def test_a_target_without_the_type_refuses_it() -> None:
    operands = [tile("float8_e4m3"), tile("float8_e4m3")]
    assert told("tmov", *operands, target="a5") == []
    assert told("tmov", *operands, target="a2a3") == [
        ("PTO-L031", "tmov: dst holds float8_e4m3, which a2a3 does not have.")
    ]


def test_a_conversion_takes_any_pair_of_types() -> None:
    names = sorted(EVERY_TYPE - {"hifloat8"})
    assert not [pair for pair in ((x, y) for x in names for y in names) if told("tcvt", tile(pair[0]), tile(pair[1]))]


SHAPES_TOLD = [
    ("tadd", [(16, 60)] * 3, [(16, 60), (16, 60), (16, 61)],
     "tadd: b has valid (16, 61) and dst (16, 60); they must be the same, nothing is broadcast."),
    ("tabs", [(16, 60)] * 2, [(15, 60), (16, 60)],
     "tabs: a has valid (16, 60) and dst (15, 60); they must be the same, nothing is broadcast."),
    ("trowsum", [(16, 1), (16, 60)], [(16, 60), (16, 60)],
     "trowsum: a has valid (16, 60) and dst (16, 60); dst must have (16, 1)."),
    ("trowmax", [(16, 1), (16, 60)], [(1, 16), (16, 60)],
     "trowmax: a has valid (16, 60) and dst (1, 16); dst must have (16, 1)."),
    ("tcolsum", [(1, 60), (16, 60)], [(1, 59), (16, 60)],
     "tcolsum: a has valid (16, 60) and dst (1, 59); dst must have (1, 60)."),
    ("tcolmax", [(1, 60), (1, 60)], [(2, 60), (1, 60)],
     "tcolmax: a has valid (1, 60) and dst (2, 60); dst must have (1, 60)."),
    ("trowsum", [(16, 1), (16, 1)], [(16, 1), (16, 0)],
     "trowsum: a has valid (16, 0); there must be at least 1 element to fold."),
    ("tcolmax", [(1, 60), (1, 60)], [(1, 60), (0, 60)],
     "tcolmax: a has valid (0, 60); there must be at least 1 element to fold."),
]  # fmt: skip


@pytest.mark.parametrize(("op", "legal", "illegal", "sentence"), SHAPES_TOLD)
def test_valid_shapes_agree(
    op: str, legal: list[tuple[int, int]], illegal: list[tuple[int, int]], sentence: str
) -> None:
    assert told(op, *(tile(valid=valid) for valid in legal)) == []
    assert told(op, *(tile(valid=valid) for valid in illegal)) == [("PTO-L032", sentence)]


def test_a_mask_has_the_shape_of_what_it_selects() -> None:
    assert told("tsel", tile(), tile("int8"), tile(), tile()) == []
    assert [one[0] for one in told("tsel", tile(), tile("int8", (16, 59)), tile(), tile())] == ["PTO-L032"]


def test_a_dynamic_extent_needs_a_value() -> None:
    open_tile = tile(valid=(-1, 60))
    assert told("tneg", tile(), open_tile) == [
        ("PTO-L006", "tneg: the valid extents (-1, 60) of a are dynamic and have no value.")
    ]
    open_tile.set_valid(16, 60)
    assert told("tneg", tile(), open_tile) == []


def test_tiles_of_other_padding_and_layout_may_meet() -> None:
    wide = Tile("float32", 16, 128, valid=(16, 60), layout="nz")
    assert told("tadd", tile(), wide, Tile("float32", 64, 64, valid=(16, 60), layout="dn")) == []


SCALARS_TOLD = [
    ("tadds", "int8", "scalar", 127, 128,
     "tadds: scalar: the value 128 cannot be stored as int8 without changing it (-128 to 127, whole numbers)."),
    ("tmuls", "int32", "scalar", 2, 2.5,
     "tmuls: scalar: the value 2.5 cannot be stored as int32 without changing it (-2147483648 to 2147483647, "
     "whole numbers)."),
    ("tmaxs", "float16", "scalar", 65519, 65520, "tmaxs: scalar: the value 65520.0 is too large for float16."),
    ("texpands", "uint16", "scalar", 0, -1,
     "texpands: scalar: the value -1 cannot be stored as uint16 without changing it (0 to 65535, whole numbers)."),
    ("tci", "int16", "first", 32767, 32768,
     "tci: first: the value 32768 cannot be stored as int16 without changing it (-32768 to 32767, whole numbers)."),
]  # fmt: skip


@pytest.mark.parametrize(("op", "dtype", "option", "legal", "illegal", "sentence"), SCALARS_TOLD)
def test_a_scalar_is_a_value_of_the_type(
    op: str, dtype: str, option: str, legal: Any, illegal: Any, sentence: str
) -> None:
    operands = [tile(dtype)] * (1 + OPS[op].sources)
    assert told(op, *operands, **{option: legal}) == []
    refused: dict[str, Any] = {option: float(illegal) if "float" in dtype else illegal}
    assert told(op, *operands, **refused) == [("PTO-L033", sentence)]


MODES_TOLD = [
    (("float32", "bfloat16", "odd"), ("float32", "int32", "odd")),
    (("float32", "float16", "odd"), ("bfloat16", "float16", "odd")),
    (("float32", "float32", "floor"), ("float32", "float32", "odd")),
    (("float32", "float8_e4m3", "rint"), ("float32", "float8_e4m3", "ceil")),
    (("float8_e5m2", "float8_e5m2", "none"), ("float8_e5m2", "float8_e5m2", "trunc")),
    (("float8_e5m2", "int8", "trunc"), ("float8_e5m2", "int8", "odd")),
]


@pytest.mark.parametrize(("legal", "illegal"), MODES_TOLD)
def test_a_rounding_mode_exists_for_its_pair_of_types(legal: tuple[str, ...], illegal: tuple[str, ...]) -> None:
    source, to, mode = legal
    assert told("tcvt", tile(to), tile(source), mode=mode) == []
    source, to, mode = illegal
    ((id_, sentence),) = told("tcvt", tile(to), tile(source), mode=mode)
    assert id_ == "PTO-L033"
    assert sentence.startswith(f"tcvt: mode '{mode}' from {source} to {to}; ")


def test_every_rule_that_is_broken_is_told_in_order() -> None:
    crooked = Tile("int8", 12, 32, layout="nz", loc="acc")
    found = told("tadds", crooked, tile("int16", (1, 1)), scalar=1000)
    in_order = [rule.id for rule in RULES if rule.id != "PTO-L006"]  # without extents nothing else of them is judged
    assert [id_ for id_, _ in found] == in_order


def test_judging_writes_nothing() -> None:
    a = tile()
    told("tadds", a, a, scalar=1)
    assert not a.holds_data


def test_what_a_destination_wants_is_taken_as_it_is_now() -> None:
    dst = tile("int8", (-1, 60))
    dst.set_valid(3, 60)
    assert Wanted.of(dst) == Wanted(element_type("int8"), (3, 60))
