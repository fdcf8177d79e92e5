"""Element types: one table, and the one place where names become types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ptokit.errors import PtoTypeError, PtoValueError, listed, nearest

type_of = type  # `type` is a word of the domain below

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class ElementType:
    """One element type: its name, its size, how NumPy stores it, and what others call it."""

    name: str
    itemsize: int
    kind: str  # "int", "uint" or "float"
    precision: int  # significant bits of a float, value bits of an integer
    load: Callable[[], np.dtype[Any]]
    aliases: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[Callable[[object], ElementType], tuple[str]]:
        return element_type, (self.name,)

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype; hifloat8 needs the extra `ptokit[hif8]`."""
        return self.load()

    @property
    def bits(self) -> np.dtype[Any]:
        """The unsigned integer of the same size: what is compared and moved."""
        return np.dtype(f"u{self.itemsize}")

    @property
    def c0(self) -> int:
        """Columns of an NZ fractal: 32 bytes' worth of elements."""
        return 32 // self.itemsize

    @property
    def is_float(self) -> bool:
        """Floating point of any width."""
        return self.kind == "float"

    def __str__(self) -> str:
        return self.name


def _numpy(name: str) -> Callable[[], np.dtype[Any]]:
    return lambda: np.dtype(name)


def _ml(scalar: Any) -> Callable[[], np.dtype[Any]]:
    return lambda: np.dtype(scalar)


def _hifloat8() -> np.dtype[Any]:
    try:
        import en_dtypes
    except ImportError as missing:
        raise PtoTypeError(
            "hifloat8 needs the package en_dtypes, which exists for Python 3.11 and 3.12: pip install 'ptokit[hif8]'"
        ) from missing
    found: np.dtype[Any] = np.dtype(en_dtypes.hifloat8)
    return found


ELEMENT_TYPES: dict[str, ElementType] = {
    t.name: t
    for t in (
        ElementType("int8", 1, "int", 7, _numpy("int8"), ("i8", "si8", "s8", "int8_t")),
        ElementType("uint8", 1, "uint", 8, _numpy("uint8"), ("ui8", "u8", "uint8_t")),
        ElementType("int16", 2, "int", 15, _numpy("int16"), ("i16", "si16", "s16", "int16_t")),
        ElementType("uint16", 2, "uint", 16, _numpy("uint16"), ("ui16", "u16", "uint16_t")),
        ElementType("int32", 4, "int", 31, _numpy("int32"), ("i32", "si32", "s32", "int32_t")),
        ElementType("uint32", 4, "uint", 32, _numpy("uint32"), ("ui32", "u32", "uint32_t")),
        ElementType("float16", 2, "float", 11, _numpy("float16"), ("f16", "fp16", "half")),
        ElementType("bfloat16", 2, "float", 8, _ml(ml_dtypes.bfloat16), ("bf16", "bfloat16_t")),
        ElementType("float32", 4, "float", 24, _numpy("float32"), ("f32", "fp32", "float")),
        ElementType(
            "float8_e4m3",
            1,
            "float",
            4,
            _ml(ml_dtypes.float8_e4m3fn),
            ("float8_e4m3fn", "f8e4m3", "f8e4m3fn", "float8_e4m3_t", "fp8_e4m3"),
        ),
        ElementType(
            "float8_e5m2",
            1,
            "float",
            3,
            _ml(ml_dtypes.float8_e5m2),
            ("f8e5m2", "float8_e5m2_t", "fp8_e5m2"),
        ),
        ElementType("hifloat8", 1, "float", 4, _hifloat8, ("hif8", "hifloat8_t")),
    )
}
"""Every element type of the three targets, by name."""

INDEX_TYPES = frozenset({"int32", "uint32"})

_BY_WORD = {word: t for t in ELEMENT_TYPES.values() for word in (t.name, *t.aliases)}

# The other 8-bit types with a name so close that bits would be read wrongly: refused by name.
_LOOKALIKES = {"float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e3m4"}


_HINTS = {
    **dict.fromkeys(("int64", "i64", "long", "uint64", "u64"), " Elements have 32 bits at most: int32, uint32."),
    **dict.fromkeys(("float64", "f64", "double"), " Elements have 32 bits at most: float32."),
    **dict.fromkeys(("float8", "fp8", "f8"), " There are float8_e4m3 and float8_e5m2."),
    "bool": " A mask is stored as int8 or uint8.",
}


def element_type(what: object) -> ElementType:
    """The element type that a name, an alias, a NumPy dtype or a scalar class stands for.

    >>> element_type("half").name, element_type("bf16").itemsize
    ('float16', 2)
    >>> element_type(np.float32).name
    'float32'
    """
    if isinstance(what, ElementType):
        return what
    if isinstance(what, str):
        found = _BY_WORD.get(what.lower())
        if found is None:
            hint = _HINTS.get(what.lower()) or nearest(what, ELEMENT_TYPES) or nearest(what, _BY_WORD)
            raise PtoValueError(f"unknown element type {what!r}.{hint} Known: {listed(ELEMENT_TYPES)}")
        return found
    try:
        if what is None:  # NumPy would take it as float64
            raise TypeError
        dtype = np.dtype(what)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise PtoTypeError(
            f"an element type is a name or a NumPy dtype, not {what!r}. Known: {listed(ELEMENT_TYPES)}"
        ) from None
    return _of_dtype(dtype)


def _of_dtype(dtype: np.dtype[Any]) -> ElementType:
    """By the identity of the scalar class: dtype chars of different packages collide."""
    for candidate in ELEMENT_TYPES.values():
        if candidate.name == "hifloat8":
            # Its package is optional: it is present where such a dtype exists.
            if dtype.type.__name__ == "hifloat8":
                return candidate
        elif candidate.numpy.type is dtype.type and dtype.isnative:
            return candidate
    raise PtoTypeError(f"{describe(dtype)} is not an element type. Known: {listed(ELEMENT_TYPES)}")


def describe(dtype: np.dtype[Any]) -> str:
    """The dtype as an error should quote it."""
    if dtype.name in _LOOKALIKES and dtype.type.__module__ == "ml_dtypes":
        return f"ml_dtypes.{dtype.type.__name__} (float8_e4m3 here is ml_dtypes.float8_e4m3fn)"
    if not dtype.isnative:
        return f"dtype {dtype} in foreign byte order"
    return f"dtype {dtype}"


def as_array(values: object) -> Array:
    """The values as an array, or an error where they are ragged."""
    if isinstance(values, np.ma.MaskedArray):
        raise PtoTypeError("a masked array has no value at its masked places: fill it first (.filled(value))")
    try:
        return np.asarray(values)
    except ValueError as ragged:
        raise PtoValueError(f"the values do not make an array: {ragged}") from None


def convert(values: object, to: ElementType) -> Array:
    """`values` as an array of `to`: exact for integers, rounded for floats, else refused.

    >>> convert([1, 2, 3], element_type("int32")).dtype
    dtype('int32')
    """
    given = as_array(values)
    if given.dtype == to.numpy and given.dtype.type is to.numpy.type:
        return given
    if given.dtype.kind == "O":
        _all_numbers(given)
    elif given.dtype.kind in "USMmcV" and not _is_extension_float(given.dtype):
        raise PtoTypeError(f"cannot store {describe(given.dtype)} as {to}: numbers are wanted")
    return _as_float(given, to) if to.is_float else _as_integer(given, to)


def _all_numbers(given: Array) -> None:
    """An array of objects may hold integers of any size; whatever else it holds is told."""
    for at, value in np.ndenumerate(given):
        if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
            raise PtoTypeError(f"the value {value!r} at {at} is no number")


def _is_extension_float(dtype: np.dtype[Any]) -> bool:
    return dtype.type.__module__ in ("ml_dtypes", "en_dtypes")


def _as_float(given: Array, to: ElementType) -> Array:
    with np.errstate(all="ignore"):
        try:
            wide = given.astype(np.float32 if _is_extension_float(given.dtype) else np.float64)
        except OverflowError:
            raise PtoValueError(f"an integer among the values is too large for {to}") from None
        # Only NumPy's own casts round once from float64; the others go through float32, so round to odd first.
        narrow = wide if to.numpy.type.__module__ == "numpy" else _round_to_odd(wide)
        stored = narrow.astype(to.numpy)
        back = stored.astype(np.float32)
    lost = (np.isfinite(wide) & ~np.isfinite(back)) | (np.isinf(wide) & np.isnan(back))
    if lost.any():
        what = "too large for" if np.isfinite(wide[lost][0]) else "not a value of"
        raise PtoValueError(f"{_first(given, lost)} is {what} {to}")
    return stored


def _round_to_odd(wide: Array) -> Array:
    """float32 from which a second rounding gives what one rounding of the original would have given."""
    if wide.dtype == np.float32:
        return wide
    near = wide.astype(np.float32)
    inexact = np.isfinite(wide) & (near.astype(np.float64) != wide)
    away = inexact & (np.abs(near.astype(np.float64)) > np.abs(wide))
    bits = near.view(np.uint32) - away.astype(np.uint32)
    odd: Array = np.where(inexact, bits | 1, bits).astype(np.uint32)
    return odd.view(np.float32)


def _as_integer(given: Array, to: ElementType) -> Array:
    wide = given.astype(np.float32) if _is_extension_float(given.dtype) else given
    limits = np.iinfo(to.numpy)
    with np.errstate(all="ignore"):
        fits = (wide >= limits.min) & (wide <= limits.max)
        stored = np.where(fits, wide, 0).astype(to.numpy)
    lost = ~fits | (stored != wide)
    if lost.any():
        raise PtoValueError(
            f"{_first(given, lost)} cannot be stored as {to} without changing it "
            f"({limits.min} to {limits.max}, whole numbers)"
        )
    return stored


def _first(given: Array, lost: Array) -> str:
    at = tuple(int(i) for i in np.argwhere(lost)[0])
    return f"the value {given[at]} at {at}"
