"""Float Add in any order: which sums can come out (SEMANTICS 2.3).

Bits go in and bits come out. Every NaN that an addition makes is one value: its payload is not promised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import permutations

import numpy as np

from ptokit.access.plan import Array, Lanes, Mask
from ptokit.dtypes import ElementType

quiet = np.errstate(all="ignore")
"""NaN and infinity are values like any other here: NumPy need not warn of them (a decorator)."""

MOST_EXACT = 6
"""Addends up to which every order is tried (a zero changes no sum and does not count)."""


def canonical(bits: Array, dtype: ElementType) -> Array:
    """The bits, with every NaN as one."""
    number = bits.view(dtype.numpy)
    nan = np.asarray(np.nan, np.float32).astype(dtype.numpy).view(dtype.bits)
    return np.where(np.isnan(number), nan, bits)


@lru_cache(maxsize=1024)
def orders(thread: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Every order of the writers that keeps the order of each thread.

    >>> orders((0, 0, 1))
    ((0, 1, 2), (0, 2, 1), (2, 0, 1))
    """
    own = {t: [i for i, other in enumerate(thread) if other == t] for t in set(thread)}
    return tuple(
        order
        for order in permutations(range(len(thread)))
        if all([i for i in order if thread[i] == t] == kept for t, kept in own.items())
    )


def total(before: Array, values: Array, order: tuple[int, ...], dtype: ElementType) -> Array:
    """The sum of [cells, writers, ...] in one order, rounded after every addition."""
    result = before.view(dtype.numpy)
    for writer in order:
        result = result + values[:, writer].view(dtype.numpy)
    return canonical(result.view(dtype.bits), dtype)


def every_total(before: Array, values: Array, thread: tuple[int, ...], dtype: ElementType) -> Iterator[Array]:
    """The sum of every order."""
    for order in orders(thread):
        yield total(before, values, order, dtype)


def is_zero(bits: Array, dtype: ElementType) -> Mask:
    """Zeros of both signs."""
    return np.asarray(bits << np.asarray(1, dtype.bits) == 0)


def exact_whatever_order(before: Array, values: Array, start: Lanes, dtype: ElementType) -> Mask:
    """Per cell and column: no order can matter.

    That is so where every partial sum is exact (all addends are multiples of one power of two, and their magnitudes
    add up to what the significand holds), where all addends that are not zero are equal, and where one infinity or
    a NaN swallows the rest. `values` are [all writers, columns] by cell, `start` where each cell begins.
    """
    there = before.view(dtype.numpy).astype(np.float64)
    comes = values.view(dtype.numpy).astype(np.float64)

    def any_of(test: Callable[[Array], Mask]) -> Mask:
        return np.asarray(test(there) | np.logical_or.reduceat(test(comes), start))

    def finite(numbers: Array) -> Array:
        return np.where(np.isfinite(numbers), np.abs(numbers), 0.0)

    quantum = np.minimum(lowest_bit(there), np.minimum.reduceat(lowest_bit(comes), start))
    magnitude = finite(there) + np.add.reduceat(finite(comes), start)
    exact = magnitude <= np.minimum(quantum * 2.0**dtype.precision, largest(dtype))
    plus, minus = any_of(np.isposinf), any_of(np.isneginf)
    one_infinity = (plus ^ minus) & (magnitude <= largest(dtype) / 2)
    swallowed = any_of(np.isnan) | (plus & minus) | one_infinity
    least = np.minimum.reduceat(np.where(comes == 0, np.inf, comes), start)
    most = np.maximum.reduceat(np.where(comes == 0, -np.inf, comes), start)
    return np.asarray((exact & ~plus & ~minus) | swallowed | (least == most))


def lowest_bit(number: Array) -> Array:
    """The value of the lowest set bit (infinite for 0: it is a multiple of everything)."""
    magnitude = np.abs(number)
    significand, exponent = np.frexp(np.where(np.isfinite(magnitude), magnitude, 1.0))
    whole = (significand * 2.0**53).astype(np.int64)
    bit = np.ldexp((whole & -whole).astype(np.float64), exponent - 53)
    return np.where(magnitude == 0, np.inf, bit)


def largest(dtype: ElementType) -> float:
    """The largest finite value."""
    bits = np.array([{"float16": 0x7BFF, "bfloat16": 0x7F7F, "float32": 0x7F7FFFFF}[dtype.name]], dtype.bits)
    return float(bits.view(dtype.numpy)[0])


def bounds(before: Array, values: Array, start: Lanes, dtype: ElementType) -> tuple[Array, Array, Mask]:
    """Per element: low and high bound of every order's sum, and whether a NaN may come out.

    `values` are the addends of all elements in a row, `start` where each element's begin. Each of n additions is off
    by at most u times its result, so a sum of magnitude A is off by at most A*((1+u)^n - 1), whatever the order.
    """
    there = before.view(dtype.numpy).astype(np.float64)
    comes = values.view(dtype.numpy).astype(np.float64)

    def summed(part: Callable[[Array], Array]) -> Array:
        return np.asarray(part(there) + np.add.reduceat(part(comes), start))

    def any_of(test: Callable[[Array], Mask]) -> Mask:
        return np.asarray(test(there) | np.logical_or.reduceat(test(comes), start))

    count = np.diff(np.append(start, len(values)))
    up = summed(lambda x: np.where(np.isfinite(x) & (x > 0), x, 0.0))
    down = summed(lambda x: np.where(np.isfinite(x) & (x < 0), x, 0.0))
    # 2^-40 covers what the float64 sums of this very function round away.
    slack = (up - down) * (np.expm1(count * np.log1p(2.0**-dtype.precision)) + 2.0**-40)
    plus, minus = any_of(np.isposinf), any_of(np.isneginf)
    to_plus, to_minus = plus | (up + slack > largest(dtype)), minus | (down - slack < -largest(dtype))
    nan = any_of(np.isnan) | (to_plus & to_minus)
    # An infinity among the addends stays, unless the other one comes about.
    low = np.where(to_minus, -np.inf, np.where(plus, np.inf, up + down - slack))
    high = np.where(to_plus, np.inf, np.where(minus, -np.inf, up + down + slack))
    return _outward(low, dtype, -np.inf), _outward(high, dtype, np.inf), nan


def _outward(value: Array, dtype: ElementType, towards: float) -> Array:
    """The nearest value of the type that lies outside, or is the value itself."""
    near = np.asarray(value.astype(np.float32).astype(dtype.numpy))
    inside = near.astype(np.float64) > value if towards < 0 else near.astype(np.float64) < value
    beyond = np.nextafter(near, np.asarray(towards, np.float32).astype(dtype.numpy))
    return np.where(inside, beyond, near)
