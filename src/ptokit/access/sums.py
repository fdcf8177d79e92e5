"""Float Add in any order: which sums can come out (SEMANTICS 2.3).

Writers of a cell are an array [writers, columns] of bits; many cells of the same kind are stacked as
[cells, writers, columns]. Every NaN that an addition makes is one value: its payload is not promised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations

import numpy as np

from ptokit.access.plan import Array, Mask
from ptokit.dtypes import ElementType

quiet = np.errstate(all="ignore")
"""NaN and infinity are values like any other here: NumPy need not warn of them (a decorator)."""

MOST_EXACT = 6
"""Writers up to which every order is tried."""


def canonical(bits: Array, dtype: ElementType) -> Array:
    """The bits, with every NaN as one."""
    number = bits.view(dtype.numpy)
    nan = np.asarray(np.nan, np.float32).astype(dtype.numpy).view(dtype.bits)
    return np.where(np.isnan(number), nan, bits)


def orders(thread: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Every order of the writers that keeps the order of each thread.

    >>> list(orders((0, 0, 1)))
    [(0, 1, 2), (0, 2, 1), (2, 0, 1)]
    """
    own = {t: [i for i, other in enumerate(thread) if other == t] for t in set(thread)}
    for order in permutations(range(len(thread))):
        if all([i for i in order if thread[i] == t] == kept for t, kept in own.items()):
            yield order


def sums(before: Array, values: Array, thread: tuple[int, ...], dtype: ElementType) -> Iterator[Array]:
    """The sum of every order: bits [cells, columns], rounded after every addition."""
    number = dtype.numpy
    for order in orders(thread):
        total = before.view(number)
        for writer in order:
            total = total + values[:, writer].view(number)
        yield canonical(total.view(dtype.bits), dtype)


def exact_whatever_order(before: Array, values: Array, start: Array, dtype: ElementType) -> Mask:
    """Per cell: no order can matter: every partial sum is exact, or one infinity or a NaN swallows the rest.

    `values` are [all writers, columns] by cell, `start` where each cell begins. A partial sum is exact when all
    addends are multiples of one power of two and their magnitudes add up to what the significand holds.
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
    return np.asarray(((exact & ~plus & ~minus) | swallowed).all(axis=1))


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


def bounds(before: Array, values: Array, dtype: ElementType) -> tuple[Array, Array, Mask]:
    """Low and high bound of every order's sum, per column, and where a NaN may come out.

    Each of n additions is off by at most u times its result, so a sum of magnitude A is off by at most
    A*((1+u)^n - 1), whatever the order.
    """
    stack = np.concatenate([before[None], values]).view(dtype.numpy).astype(np.float64)
    unit = 2.0**-dtype.precision
    up, down = np.where(stack > 0, stack, 0).sum(axis=0), np.where(stack < 0, stack, 0).sum(axis=0)
    growth = np.expm1(len(values) * np.log1p(unit))
    # 2^-40 covers what the float64 sums of this very function round away.
    slack = (up - down) * (growth + 2.0**-40)
    to_plus, to_minus = up + slack > largest(dtype), down - slack < -largest(dtype)
    nan = np.isnan(stack).any(axis=0) | (to_plus & to_minus)
    low = np.where(to_minus, -np.inf, up + down - slack)
    high = np.where(to_plus, np.inf, up + down + slack)
    # An infinity among the addends stays.
    low = np.where(np.isposinf(stack).any(axis=0) & ~to_minus, np.inf, low)
    high = np.where(np.isneginf(stack).any(axis=0) & ~to_plus, -np.inf, high)
    return _outward(low, dtype, -np.inf), _outward(high, dtype, np.inf), nan


def _outward(value: Array, dtype: ElementType, towards: float) -> Array:
    """The nearest value of the type that lies outside, or is the value itself."""
    near = np.asarray(value.astype(np.float32).astype(dtype.numpy))
    inside = near.astype(np.float64) > value if towards < 0 else near.astype(np.float64) < value
    beyond = np.nextafter(near, np.asarray(towards, np.float32).astype(dtype.numpy))
    return np.where(inside, beyond, near)
