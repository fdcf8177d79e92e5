"""The vector instructions that surround a scatter: one table, and the rules of their operands.

A row of `OPS` says which element types an instruction takes and what it computes. `compute` is a function of arrays:
it is given the valid regions (shape `[rows, cols]`, logical order, so layouts do not matter) and gives a new array of
the destination's valid shape and type. Nothing here knows of memory, of pipes or of time.

What the numbers are:

- Integers wrap (two's complement). `tdiv` of integers cuts off towards zero, and a division by 0 gives 0.
- float16 and bfloat16 are computed in float32 and rounded to nearest even once for each instruction. Overflow and
  division by zero give the infinities and NaN of IEEE 754. Payload and sign of a NaN that is computed are not promised.
- `texp`, `tlog`: computed in float64, rounded to float32, then to the tile's type.
- `tmax`, `tmin`, `trowmax`, `tcolmax` are `maximum` and `minimum` of IEEE 754-2019: a NaN wins, and +0 is above -0.
- `trowsum`, `tcolsum` of floats add up in float32, from the first element to the last, and round once at the end.
- `tcmp` with a NaN: only `ne` holds. `tsel` takes `a` where the mask is not 0.
- `tci` counts through the valid region row by row, and wraps.
- A scalar is first made a value of the tile's type: whole and in range for integers, rounded for floats.
- `tcvt`: see `convert_elements`.

>>> from ptokit.tensors import FRACTAL_ROWS, Tile
>>> dst, a = Tile("float16", 1, 16, valid=(1, 3)), np.array([[1, 2, 3]], np.float16)
>>> op = vector_op("tmuls")
>>> op.compute(Wanted.of(dst), op.asked(scalar=0.5), a)
array([[0.5, 1. , 1.5]], dtype=float16)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np

from ptokit.dtypes import ELEMENT_TYPES, Array, ElementType, convert, element_type
from ptokit.errors import PtoTypeError, PtoValueError, a_kind, listed, nearest, no_such_keyword
from ptokit.findings import Finding, Severity
from ptokit.targets import machine
from ptokit.tensors import FRACTAL_ROWS, Tile

Extents = tuple[int, int]
Elementwise = Callable[..., Array]

FLOATS = frozenset({"float16", "bfloat16", "float32"})
INTEGERS = frozenset(name for name, t in ELEMENT_TYPES.items() if not t.is_float)
NUMBERS = INTEGERS | FLOATS
"""What arithmetic takes; the 8-bit floats are moved and converted only."""
COUNTERS = frozenset({"int16", "uint16", "int32", "uint32"})
EVERY_TYPE = frozenset(ELEMENT_TYPES)
MASKS = frozenset({"int8", "uint8"})

FLOAT32 = element_type("float32")

quiet = np.errstate(all="ignore")
"""Infinity and NaN are results like any other (a decorator)."""


# What is asked of an instruction besides its tiles


@dataclass(frozen=True)
class Options:
    """What an instruction was told besides its tiles; `VectorOp.asked` makes it."""

    scalar: object = None
    first: object = None
    mode: str = ""
    descending: bool = False


@dataclass(frozen=True)
class Wanted:
    """What `compute` has to give: the destination's element type and valid extents."""

    dtype: ElementType
    shape: Extents

    @classmethod
    def of(cls, dst: Tile) -> Wanted:
        """What this destination wants, as it is now."""
        return cls(dst.dtype, dst.valid)


Compute = Callable[..., Array]
"""`compute(wanted, options, *sources)`: a new array, never a view of a source."""

PLAIN_NUMBERS = (int, float, np.generic)


def _number(op: VectorOp, name: str, given: object) -> object:
    value = given[()] if isinstance(given, np.ndarray) and given.ndim == 0 else given
    if isinstance(value, PLAIN_NUMBERS) and not isinstance(value, str | bytes | np.flexible | np.complexfloating):
        return value
    raise PtoTypeError(f"{op.name}: {name}={given!r} is {a_kind(given)}; a number is wanted")


def _mode(op: VectorOp, name: str, given: object) -> str:
    if not isinstance(given, str):
        raise PtoTypeError(f"{op.name}: {name}={given!r} is {a_kind(given)}; known: {listed(op.modes)}")
    if given.lower() not in op.modes:
        raise PtoValueError(
            f"{op.name}: {name}={given!r} is unknown.{nearest(given, op.modes)} Known: {listed(op.modes)}"
        )
    return given.lower()


def _truth(op: VectorOp, name: str, given: object) -> bool:
    if isinstance(given, bool | np.bool_):
        return bool(given)
    raise PtoTypeError(f"{op.name}: {name}={given!r} is {a_kind(given)}; True or False is wanted")


READERS: dict[str, Callable[[VectorOp, str, object], Any]] = {
    "scalar": _number,
    "first": _number,
    "mode": _mode,
    "descending": _truth,
}
NEEDED = frozenset({"scalar", "first"})
NOTHING_ASKED = Options()


# The forms: which operands there are, and how they belong together


def _as_it_is(valid: Extents) -> Extents:
    return valid


def _one_column(valid: Extents) -> Extents:
    return (valid[0], 1)


def _one_row(valid: Extents) -> Extents:
    return (1, valid[1])


@dataclass(frozen=True)
class Form:
    """A shape of instruction: its source tiles, who shares a type, who is a mask, which options it takes."""

    sources: tuple[str, ...]
    alike: tuple[str, ...]
    mask: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    gives: Callable[[Extents], Extents] = _as_it_is  # a source's valid extents -> the destination's
    reduces: int | None = None  # the dimension that a reduction folds


FORMS: dict[str, Form] = {
    "binary": Form(("a", "b"), ("dst", "a", "b")),
    "tile-scalar": Form(("a",), ("dst", "a"), options=("scalar",)),
    "unary": Form(("a",), ("dst", "a")),
    "fill": Form((), ("dst",), options=("scalar",)),
    "convert": Form(("a",), (), options=("mode",)),
    "compare": Form(("a", "b"), ("a", "b"), mask=("dst",), options=("mode",)),
    "select": Form(("mask", "a", "b"), ("dst", "a", "b"), mask=("mask",)),
    "iota": Form((), ("dst",), options=("first", "descending")),
    "row-reduce": Form(("a",), ("dst", "a"), gives=_one_column, reduces=1),
    "col-reduce": Form(("a",), ("dst", "a"), gives=_one_row, reduces=0),
}


@dataclass(frozen=True)
class VectorOp:
    """One vector instruction: a row of the table."""

    name: str
    form: str
    types: frozenset[str]
    compute: Compute
    does: str
    modes: tuple[str, ...] = ()
    default_mode: str = ""

    @property
    def sources(self) -> int:
        """How many source tiles it reads."""
        return len(FORMS[self.form].sources)

    @property
    def takes(self) -> tuple[str, ...]:
        """The names of its options, in the order in which a call gives them after the tiles."""
        return FORMS[self.form].options

    def asked(self, **given: object) -> Options:
        """The options of a call: a misspelt word or a value of the wrong kind is an error at once.

        >>> vector_op("tcmp").asked(mode="LT").mode
        'lt'
        """
        takes = self.takes
        if not (takes or given):
            return NOTHING_ASKED
        for name in given:
            if name not in takes:
                raise no_such_keyword(self.name, name, takes or ("no options at all",))
        missing = [name for name in takes if name in NEEDED and name not in given]
        if missing:
            raise PtoTypeError(f"{self.name}: {listed(missing)} is missing; a number is wanted")
        read = {name: READERS[name](self, name, value) for name, value in given.items()}
        if self.modes:
            read.setdefault("mode", self.default_mode)
        return Options(**read)


def sources_of(op: VectorOp, operands: Sequence[object]) -> tuple[Tile, ...]:
    """The source tiles of a call, once their number and kind are right.

    >>> len(sources_of(vector_op("tadd"), [Tile("int32", 1, 8), Tile("int32", 1, 8)]))
    2
    """
    names = FORMS[op.form].sources
    if len(operands) != len(names):
        row = f" ({listed(names)})" if names else ""
        raise PtoTypeError(f"{op.name} reads {len(names)} tiles{row}; {len(operands)} were given")
    tiles = tuple(one for one in operands if isinstance(one, Tile))
    for name, one in zip(names, operands, strict=True):
        if not isinstance(one, Tile):
            raise PtoTypeError(f"{op.name}: {name} is {a_kind(one)}; a tile is wanted")
    return tiles


# The scalar of a call


@lru_cache(maxsize=1024, typed=True)
def _plain_scalar(value: float, is_negative_zero: bool, type_name: str) -> Array:
    made = np.array(convert(value, ELEMENT_TYPES[type_name]))
    made.setflags(write=False)
    return made


def scalar_value(value: object, dtype: ElementType) -> Array:
    """The scalar as the tile's type has it: a read-only array without dimensions, or PtoValueError.

    >>> scalar_value(0.1, element_type("float16"))
    array(0.1, dtype=float16)
    """
    kind = type(value)
    try:
        if kind is float or kind is int:
            number = cast(float, value)
            # 0.0 and -0.0 would be one key.
            return _plain_scalar(number, number == 0 and str(number)[0] == "-", dtype.name)
        return convert(value, dtype)
    except PtoValueError as unfit:
        raise PtoValueError(str(unfit).replace(" at ()", "")) from None


# What is computed


def _divide(a: Array, b: Array) -> Array:
    if a.dtype.kind not in "iu":
        return np.asarray(a / b)
    # A quotient of 32-bit integers that is not whole is further from the next whole number than float64 rounds.
    quotient = np.divide(a, b, dtype=np.float64)
    quotient[np.broadcast_to(b == 0, quotient.shape)] = 0
    # Towards zero, and by way of 64 bits: the lowest integer divided by -1 wraps. (What a cast makes of a float that
    # the integer cannot hold, infinity above included, differs by processor.)
    return quotient.astype(np.int64).astype(a.dtype)


def _bits(a: Array) -> Array:
    return a.view(f"u{a.dtype.itemsize}")


def _largest(a: Array, b: Array) -> Array:
    best = np.maximum(a, b)
    if a.dtype.kind in "iu":
        return np.asarray(best)
    # Which of two zeros NumPy gives is not promised: the larger is negative where both are.
    return np.asarray(np.copysign(best, (_bits(a) & _bits(b)).view(a.dtype)))


def _smallest(a: Array, b: Array) -> Array:
    best = np.minimum(a, b)
    if a.dtype.kind in "iu":
        return np.asarray(best)
    return np.asarray(np.copysign(best, (_bits(a) | _bits(b)).view(a.dtype)))


ARITHMETIC: dict[str, tuple[Elementwise, str]] = {
    "add": (np.add, "a + {b}"),
    "sub": (np.subtract, "a - {b}"),
    "mul": (np.multiply, "a * {b}"),
    "div": (_divide, "a / {b}"),
    "max": (_largest, "the larger of a and {b}"),
    "min": (_smallest, "the smaller of a and {b}"),
}


def _binary(of: Elementwise) -> Compute:
    @quiet
    def compute(wanted: Wanted, options: Options, a: Array, b: Array) -> Array:
        return of(a, b)

    return compute


def _with_scalar(of: Elementwise) -> Compute:
    @quiet
    def compute(wanted: Wanted, options: Options, a: Array) -> Array:
        return of(a, scalar_value(options.scalar, wanted.dtype))

    return compute


def _unary(of: Elementwise) -> Compute:
    @quiet
    def compute(wanted: Wanted, options: Options, a: Array) -> Array:
        return of(a)

    return compute


def _by_float64(of: Elementwise) -> Elementwise:
    """A float64 result rounded to float32 does not depend on the processor, a float32 one does."""

    def rounded(a: Array) -> Array:
        return np.asarray(of(a.astype(np.float64)).astype(np.float32).astype(a.dtype, copy=False))

    return rounded


def _square_root(a: Array) -> Array:
    return np.asarray(np.sqrt(a.astype(np.float32, copy=False)).astype(a.dtype, copy=False))


def _copy(a: Array) -> Array:
    return a.copy()


def _fill(wanted: Wanted, options: Options) -> Array:
    return np.full(wanted.shape, scalar_value(options.scalar, wanted.dtype), wanted.dtype.numpy)


def _count(wanted: Wanted, options: Options) -> Array:
    rows, cols = wanted.shape
    first = int(scalar_value(options.first, wanted.dtype))
    step = -1 if options.descending else 1
    every = np.arange(first, first + step * rows * cols, step, dtype=np.int64)
    return every.astype(wanted.dtype.numpy).reshape(wanted.shape)


COMPARISONS: dict[str, Elementwise] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@quiet
def _compare(wanted: Wanted, options: Options, a: Array, b: Array) -> Array:
    return COMPARISONS[options.mode](a, b).view(wanted.dtype.numpy)


def _select(wanted: Wanted, options: Options, mask: Array, a: Array, b: Array) -> Array:
    return np.where(mask, _bits(a), _bits(b)).view(wanted.dtype.numpy)


def _sum(axis: int) -> Elementwise:
    last = (slice(None), slice(-1, None)) if axis else (slice(-1, None),)

    def summed(a: Array) -> Array:
        if a.dtype.kind in "iu":
            return np.asarray(np.add.reduce(a, axis=axis, dtype=a.dtype, keepdims=True))
        # accumulate goes from element to element; reduce adds in pairs, as it likes.
        return np.asarray(np.add.accumulate(a, axis=axis, dtype=np.float32)[last].astype(a.dtype))

    return summed


def _most(axis: int) -> Elementwise:
    def most(a: Array) -> Array:
        best = np.maximum.reduce(a, axis=axis, keepdims=True)
        if a.dtype.kind in "iu":
            return np.asarray(best)
        sign = np.bitwise_and.reduce(_bits(a), axis=axis, keepdims=True)
        return np.asarray(np.copysign(best, sign.view(a.dtype)))

    return most


# Conversion

NEAREST = ("none", "rint")
ROUNDINGS = (*NEAREST, "round", "floor", "ceil", "trunc", "odd")
AWAY_FROM_ZERO: dict[str, Elementwise] = {
    "floor": lambda wide: wide < 0,
    "ceil": lambda wide: wide > 0,
    "trunc": lambda wide: np.zeros(wide.shape, np.bool_),
}
"""Where a directed rounding goes to the larger magnitude."""


def _half_away(wide: Array) -> Array:
    cut = np.trunc(wide)
    return np.asarray(cut + np.copysign((np.abs(wide - cut) >= 0.5).astype(wide.dtype), wide))


WHOLE: dict[str, Elementwise] = {
    "none": np.rint,
    "rint": np.rint,
    "round": _half_away,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
}


def _directed(wide: Array, near: Array, to: ElementType, mode: str) -> Array:
    """`near`, the nearest values of the type, moved to where the mode wants them."""
    bits, size = near.view(to.bits), np.abs(wide)
    got = np.abs(near.astype(wide.dtype))
    if mode == "round":  # differs from nearest even where that went from the middle towards zero
        after = np.abs((bits + 1).view(to.numpy).astype(wide.dtype))
        moved = bits + ((got < size) & (size - got == after - size))
    else:
        inexact = (got > size) | (got < size)
        cut = bits - (got > size)
        moved = cut | inexact if mode == "odd" else cut + (inexact & AWAY_FROM_ZERO[mode](wide))
    return np.asarray(moved.view(to.numpy))


def _narrowed(wide: Array, to: ElementType, mode: str) -> Array:
    """float32 or float64 values, rounded once to the type."""
    if wide.dtype == np.float64 and to.name not in ("float16", "float32"):
        # The cast of these types goes through float32: rounded to odd, its second rounding is the only one.
        wide = _narrowed(wide, FLOAT32, "odd")
    near = wide.astype(to.numpy)
    return near if mode in NEAREST else _directed(wide, near, to, mode)


def _saturated(whole: Array, to: ElementType) -> Array:
    """Whole numbers held to the type's range, NaN as 0."""
    limits = np.iinfo(to.numpy)
    # float32 has no 2^31 - 1 to hold a value to.
    wide = whole.astype(np.float64) if to.itemsize == 4 else whole
    held = np.maximum(np.minimum(wide, limits.max), limits.min)
    held[np.isnan(held)] = 0
    return np.asarray(held.astype(to.numpy))


def _between_integers(a: Array, to: ElementType) -> Array:
    has, takes = np.iinfo(a.dtype), np.iinfo(to.numpy)
    held = a
    if has.max > takes.max:
        held = np.minimum(held, takes.max)
    if has.min < takes.min:
        held = np.maximum(held, takes.min)
    return held.astype(to.numpy)


@quiet
def convert_elements(a: Array, to: ElementType, mode: str = "rint") -> Array:
    """`tcvt`: the values in another type, rounded as the mode says.

    none, rint: to nearest, ties to even; round: ties away from zero; floor; ceil; trunc; odd: cut off, and the last
    bit set where something was lost (float32 to float16 and bfloat16 only).

    - float to integer: rounded to a whole number, then held to the range; NaN becomes 0.
    - integer to integer: held to the range.
    - integer to float, float to float: rounded once. What is too large becomes infinity or the largest value, as the
      mode says; in float8_e4m3, which has no infinity, NaN.
    - a float to its own type: `none` copies, the other modes round to whole numbers.

    >>> convert_elements(np.array([[2.5, -300, np.nan]], np.float32), element_type("int8"))
    array([[   2, -128,    0]], dtype=int8)
    """
    if a.dtype.kind in "iu":
        if not to.is_float:
            return _between_integers(a, to)
        return _narrowed(a.astype(np.float64 if a.dtype.itemsize == 4 else np.float32), to, mode)
    wide = a.astype(np.float32, copy=False)
    if not to.is_float:
        return _saturated(WHOLE[mode](wide), to)
    if a.dtype.type is not to.numpy.type:
        return _narrowed(wide, to, mode)
    return a.copy() if mode == "none" else np.asarray(WHOLE[mode](wide).astype(to.numpy))


def _converted(wanted: Wanted, options: Options, a: Array) -> Array:
    return convert_elements(a, wanted.dtype, options.mode)


# The table

OPS: dict[str, VectorOp] = {
    op.name: op
    for op in (
        *(
            VectorOp(f"t{word}", "binary", NUMBERS, _binary(of), does.format(b="b"))
            for word, (of, does) in ARITHMETIC.items()
        ),
        *(
            VectorOp(f"t{word}s", "tile-scalar", NUMBERS, _with_scalar(of), does.format(b="the scalar"))
            for word, (of, does) in ARITHMETIC.items()
        ),
        VectorOp("tabs", "unary", NUMBERS, _unary(np.abs), "the magnitude of a (the lowest integer stays)"),
        VectorOp("tneg", "unary", NUMBERS, _unary(np.negative), "-a (unsigned integers wrap)"),
        VectorOp("texp", "unary", FLOATS, _unary(_by_float64(np.exp)), "e to the power of a"),
        VectorOp("tlog", "unary", FLOATS, _unary(_by_float64(np.log)), "the natural logarithm of a"),
        VectorOp("tsqrt", "unary", FLOATS, _unary(_square_root), "the square root of a"),
        VectorOp("tmov", "unary", EVERY_TYPE, _unary(_copy), "the bits of a"),
        VectorOp("texpands", "fill", EVERY_TYPE, _fill, "the scalar everywhere"),
        VectorOp("tcvt", "convert", EVERY_TYPE, _converted, "a in the type of dst", ROUNDINGS, "rint"),
        VectorOp("tcmp", "compare", NUMBERS, _compare, "1 where the comparison holds, else 0", (*COMPARISONS,), "eq"),
        VectorOp("tsel", "select", EVERY_TYPE, _select, "a where the mask is not 0, else b"),
        VectorOp("tci", "iota", COUNTERS, _count, "first, first + 1, ... (or downwards), row by row"),
        VectorOp("trowsum", "row-reduce", NUMBERS, _unary(_sum(1)), "the sum of each row"),
        VectorOp("trowmax", "row-reduce", NUMBERS, _unary(_most(1)), "the largest of each row"),
        VectorOp("tcolsum", "col-reduce", NUMBERS, _unary(_sum(0)), "the sum of each column"),
        VectorOp("tcolmax", "col-reduce", NUMBERS, _unary(_most(0)), "the largest of each column"),
    )
}
"""Every vector instruction, by name."""


def vector_op(name: str) -> VectorOp:
    """The instruction of that name.

    >>> vector_op("TADD").does
    'a + b'
    """
    found = OPS.get(name.lower())
    if found is None:
        raise PtoValueError(f"there is no vector instruction {name!r}.{nearest(name, OPS)} Known: {listed(OPS)}")
    return found


# Legality


@dataclass(frozen=True)
class VectorCall:
    """One instruction with its operands, as a rule sees it."""

    op: VectorOp
    dst: Tile
    sources: tuple[Tile, ...]
    options: Options
    target: str

    @property
    def operands(self) -> dict[str, Tile]:
        """Every tile by the name that a sentence uses."""
        return {"dst": self.dst, **dict(zip(FORMS[self.op.form].sources, self.sources, strict=True))}


Broken = Callable[[VectorCall], "str | None"]


@dataclass(frozen=True)
class VectorRule:
    """One line of the legality table: `broken` gives the sentence, or None."""

    id: str
    needs: str
    broken: Broken
    fix: str


def types_agree(call: VectorCall) -> str | None:
    """Every operand has a type that the instruction and the target take, and those that must agree do."""
    op, form, tiles = call.op, FORMS[call.op.form], call.operands
    on_target = machine(call.target).elements
    for name, tile in tiles.items():
        is_mask = name in form.mask
        held, takes = tile.dtype.name, MASKS if is_mask else op.types
        if held not in takes:
            names = listed(t for t in ELEMENT_TYPES if t in takes)
            role = f"{name} is a mask and holds" if is_mask else f"{name} holds"
            return f"{op.name}: {role} {held}; it takes {names}."
        if held not in on_target:
            return f"{op.name}: {name} holds {held}, which {call.target} does not have."
    if form.alike:
        first, *others = form.alike
        for name in others:
            if tiles[name].dtype is not tiles[first].dtype:
                return f"{op.name}: {first} holds {tiles[first].dtype} and {name} {tiles[name].dtype}; they must agree."
    return None


def shapes_agree(call: VectorCall) -> str | None:
    """Every valid extent has a value, and the destination's are what the sources give."""
    op, form, tiles = call.op, FORMS[call.op.form], call.operands
    if not all(tile.is_known for tile in tiles.values()):
        return None
    has = call.dst.valid
    for name, tile in zip(form.sources, call.sources, strict=True):
        valid = tile.valid
        if form.reduces is not None and not valid[form.reduces]:
            return f"{op.name}: {name} has valid {valid}; there must be at least 1 element to fold."
        wanted = form.gives(valid)
        if has != wanted and form.reduces is not None:
            return f"{op.name}: {name} has valid {valid} and dst {has}; dst must have {wanted}."
        if has != wanted:
            return f"{op.name}: {name} has valid {valid} and dst {has}; they must be the same, nothing is broadcast."
    return None


def extents_known(call: VectorCall) -> str | None:
    """Every valid extent has a value."""
    for name, tile in call.operands.items():
        if not tile.is_known:
            return f"{call.op.name}: the valid extents {tile.declared_valid} of {name} are dynamic and have no value."
    return None


def in_vec(call: VectorCall) -> str | None:
    """V reaches the unified buffer only."""
    for name, tile in call.operands.items():
        if tile.loc != "vec":
            return f"{call.op.name}: {name} is in {tile.loc!r}; only 'vec' is UB."
    return None


def whole_fractals(call: VectorCall) -> str | None:
    """An NZ tile is made of 16 x C0 fractals."""
    for name, tile in call.operands.items():
        if tile.layout == "nz" and (tile.cols % tile.dtype.c0 or tile.rows % FRACTAL_ROWS):
            return (
                f"{call.op.name}: {name} is an NZ tile of {tile.rows} x {tile.cols} {tile.dtype}, not made of "
                f"16 x {tile.dtype.c0} fractals."
            )
    return None


def scalar_fits(call: VectorCall) -> str | None:
    """The scalar is a value of the destination's type."""
    for name in NEEDED.intersection(call.op.takes):
        try:
            scalar_value(getattr(call.options, name), call.dst.dtype)
        except PtoValueError as unfit:
            return f"{call.op.name}: {name}: {unfit}."
    return None


def rounding_exists(call: VectorCall) -> str | None:
    """The conversion has the rounding mode."""
    if call.op.form != "convert":
        return None
    mode, source, to = call.options.mode, call.sources[0].dtype.name, call.dst.dtype.name
    if mode == "odd" and (source != "float32" or to not in ("float16", "bfloat16")):
        return f"tcvt: mode 'odd' from {source} to {to}; it exists from float32 to float16 and bfloat16."
    if mode not in NEAREST and call.dst.dtype.is_float and to not in FLOATS:
        return f"tcvt: mode {mode!r} from {source} to {to}; {to} is rounded to nearest even ({listed(NEAREST)})."
    return None


def option_known(call: VectorCall) -> str | None:
    """Nothing to read for the instructions without options."""
    return scalar_fits(call) or rounding_exists(call) if call.op.takes else None


RULES = (
    VectorRule(
        "PTO-L006",
        "every dynamic extent has a value",
        extents_known,
        "Give the tile its extents with set_valid(rows, cols).",
    ),
    VectorRule("PTO-L003", "tiles in 'vec'", in_vec, "Use a tile in UB."),
    VectorRule(
        "PTO-L020", "NZ tiles of whole fractals", whole_fractals, "Pad the tile to whole fractals; valid may stay."
    ),
    VectorRule(
        "PTO-L031",
        "element types that the instruction takes, and that agree",
        types_agree,
        "Declare the tiles with types that it takes (a mask: int8 or uint8), or convert first (TCVT).",
    ),
    VectorRule(
        "PTO-L032",
        "valid extents that agree: dst as the sources, [R,1] for row and [1,C] for column reductions",
        shapes_agree,
        "Give the tiles the same valid extents (valid=, set_valid); a row reduction wants dst [R,1], one of columns "
        "[1,C].",
    ),
    VectorRule(
        "PTO-L033",
        "a scalar that the type can hold, a rounding mode that the conversion has",
        option_known,
        "Give a number of the destination's type and range, or a mode that this pair of types has.",
    ),
)


def judge_vector(
    op: VectorOp, dst: Tile, sources: Sequence[Tile], options: Options, target: str = "a5"
) -> list[Finding]:
    """Every rule that the call breaks; whoever runs it knows where it stands and says so.

    >>> a, dst = Tile("int32", 4, 8), Tile("float32", 4, 8)
    >>> [f.message for f in judge_vector(vector_op("tabs"), dst, [a], Options())]
    ['tabs: dst holds float32 and a int32; they must agree.']
    """
    call = VectorCall(op, dst, sources_of(op, sources), options, target)
    told = []
    for rule in RULES:
        sentence = rule.broken(call)
        if sentence is not None:
            facts = {"needs": rule.needs, **{name: repr(tile) for name, tile in call.operands.items()}}
            told.append(Finding(rule.id, Severity.ERROR, target, sentence, facts, None, rule.fix))
    return told
