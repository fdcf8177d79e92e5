"""Arguments on the command line: `name=file.npy`, `name=zeros(16x64)`, `name=ints(0, 100, 1x16, seed)`, `name=3`.

The signature of the text decides the element type. bfloat16 and the 8-bit floats come back from `.npy` as raw bytes,
and are written as such, with a note beside the file that says what they are.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit.access.plan import Array
from ptokit.dtypes import ElementType, convert, describe, element_type
from ptokit.errors import PtoError, PtoTypeError, PtoValueError, listed, nearest
from ptokit.tensors import DYNAMIC, MOST_BYTES

if TYPE_CHECKING:
    from ptokit.ir.arguments import Argument

Shape = tuple[int, ...]
Maker = Callable[["Wanted", list[Any]], Array]

CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*\((.*)\)\s*", re.DOTALL)
DIMS = re.compile(r"\d+(?:\s*[x×]\s*\d+)+")  # noqa: RUF001 - people paste it
NUMBER = re.compile(r"[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|0[xX][0-9a-fA-F]+|[+-]?(?:inf|nan)")
NAMED = re.compile(r"[A-Za-z_]\w*\s*=\s*")
"""`seed=3`: the name is for whoever reads it, the order counts."""
WORDS = {"true": 1, "false": 0}
MOST_FILE = 4 * MOST_BYTES


class Wanted:
    """What a maker has to know: the argument's name, its element type, and the shape where the text has one."""

    def __init__(self, name: str, dtype: ElementType, dims: Shape | None) -> None:
        self.name, self.dtype = name, dtype
        self.dims = None if dims is None or DYNAMIC in dims else dims

    def refuse(self, why: str) -> PtoValueError:
        """What is wrong with what was written for it."""
        return PtoValueError(f"--arg {self.name}: {why}")

    def shape(self, given: Sequence[Any]) -> Shape:
        """The shape that was written, else the text's own."""
        if not given:
            if self.dims is None:
                raise self.refuse("the text does not say its shape; write one, as in zeros(16x64)")
            return self.dims
        whole = given[0] if len(given) == 1 and isinstance(given[0], tuple) else tuple(given)
        if not all(isinstance(one, int) and one >= 0 for one in whole):
            raise self.refuse(f"{given!r} is no shape; write 16x64")
        if math.prod(whole) * self.dtype.itemsize > MOST_BYTES:
            raise self.refuse(f"an array of shape {whole} is too large to be held here")
        return whole

    def made(self, values: Array) -> Array:
        """The values in the argument's type."""
        try:
            return convert(values, self.dtype)
        except PtoError as unfit:
            raise self.refuse(str(unfit)) from None


def _split_shape(given: list[Any], others: int) -> tuple[list[Any], list[Any]]:
    """A shape and what stands after it: a shape in brackets or with an x is one word."""
    for at, one in enumerate(given):
        if isinstance(one, tuple):
            return given[: at + 1], given[at + 1 :]
    return (given[: -others or None], given[-others:]) if len(given) > others else (given, [])


def _filled(value: int) -> Maker:
    return lambda wanted, given: wanted.made(np.full(wanted.shape(given), value))


def _full(wanted: Wanted, given: list[Any]) -> Array:
    if not given:
        raise wanted.refuse("full(SHAPE, VALUE) is wanted")
    return wanted.made(np.full(wanted.shape(given[:-1]), given[-1]))


def _arange(wanted: Wanted, given: list[Any]) -> Array:
    shape = next((one for one in given if isinstance(one, tuple)), wanted.dims)
    numbers = [one for one in given if not isinstance(one, tuple)]
    if not numbers:
        numbers = [math.prod(wanted.shape([] if shape is None else [shape]))]
    if len(numbers) > 3 or (len(numbers) == 3 and not numbers[2]) or any(math.isnan(one) for one in numbers):
        raise wanted.refuse("arange(STOP), arange(START, STOP) or arange(START, STOP, STEP) is wanted")
    start, stop, step = (0, numbers[0], 1) if len(numbers) == 1 else (*numbers, 1)[:3]
    if abs((stop - start) / step) * wanted.dtype.itemsize > MOST_BYTES:
        raise wanted.refuse("this range is too large to be held here")
    counted = np.arange(start, stop, step)
    return wanted.made(counted.reshape(shape) if shape is not None and math.prod(shape) == counted.size else counted)


def _seed(wanted: Wanted, given: Sequence[Any]) -> int:
    if len(given) > 1 or not all(isinstance(one, int) and one >= 0 for one in given):
        raise wanted.refuse(f"{given!r}: one seed is wanted, a whole number from 0 on")
    return given[0] if given else 0


def _random(wanted: Wanted, given: list[Any]) -> Array:
    shape, seed = _split_shape(given, 1 if len(given) > 1 else 0)
    if not wanted.dtype.is_float:
        raise wanted.refuse(
            f"random(...) gives numbers from 0 to 1; for {wanted.dtype} write ints(LO, HI, SHAPE, SEED)"
        )
    return wanted.made(np.random.default_rng(_seed(wanted, seed)).random(wanted.shape(shape), np.float32))


def _ints(wanted: Wanted, given: list[Any]) -> Array:
    if len(given) < 2 or not all(isinstance(one, int) for one in given[:2]) or given[0] >= given[1]:
        raise wanted.refuse("ints(LO, HI, SHAPE, SEED) is wanted: from LO up to, and without, HI")
    shape, seed = _split_shape(given[2:], 1 if len(given) > 3 else 0)
    rng = np.random.default_rng(_seed(wanted, seed))
    return wanted.made(rng.integers(given[0], given[1], wanted.shape(shape)))


MAKERS: dict[str, Maker] = {
    "zeros": _filled(0),
    "ones": _filled(1),
    "full": _full,
    "arange": _arange,
    "random": _random,
    "ints": _ints,
}
"""What makes an array."""


# Reading what was written


def named(given: Iterable[str], option: str = "--arg") -> dict[str, str]:
    """`NAME=VALUE`, each name once."""
    found: dict[str, str] = {}
    for one in given:
        name, equals, value = one.partition("=")
        name = name.strip().removeprefix("%")
        if not equals or not name or not value.strip():
            raise PtoValueError(f"{option} {one!r}: NAME=VALUE is wanted")
        if name in found:
            raise PtoValueError(f"{option} {name}: given twice")
        found[name] = value.strip()
    return found


def values_for(arguments: Sequence[Argument], given: Mapping[str, str]) -> dict[str, Any]:
    """What was written for each argument, as arrays and numbers."""
    known = {one.name: one for one in arguments}
    values: dict[str, Any] = {}
    for name, written in given.items():
        if name not in known:
            raise PtoValueError(
                f"--arg {name}: there is no such argument.{nearest(name, known)} Known: {listed(known)}"
            )
        values[name] = value_of(known[name], written)
    return values


def value_of(argument: Argument, written: str) -> Any:
    """One argument."""
    if argument.kind == "scalar":
        number = _number(written)
        if number is None:
            raise PtoValueError(f"--arg {argument.name}: {written!r} is no number ({argument})")
        return number
    # A group is written as one array, the ranks in front: only who writes it knows how many there are.
    dims = None if argument.kind == "group" else argument.dims
    wanted = Wanted(argument.name, element_type(argument.dtype), dims)
    call = CALL.fullmatch(written)
    if call is None:
        meant = next((one for one in MAKERS if re.match(rf"{one}\b", written)), None)
        if meant is not None and not Path(written).exists():
            raise wanted.refuse(f"{written!r} is neither a file nor a call like {meant}(..)")
        return read_array(Path(written), wanted.dtype, f"--arg {argument.name}")
    maker = MAKERS.get(call[1])
    if maker is None:
        raise wanted.refuse(f"{call[1]!r} makes nothing.{nearest(call[1], MAKERS)} Known: {listed(MAKERS)}")
    return maker(wanted, _words(wanted, call[2]))


def _number(word: str) -> int | float | None:
    word = word.strip()
    if word.lower() in WORDS:
        return WORDS[word.lower()]
    if not NUMBER.fullmatch(word):
        return None
    try:
        return int(word, 0)
    except ValueError:
        return float(word)


def _words(wanted: Wanted, text: str) -> list[Any]:
    """What stands between the brackets of a call: numbers and shapes."""
    found: list[Any] = []
    for word in re.findall(r"(?:[A-Za-z_]\w*\s*=\s*)?[(\[][^()\[\]]*[)\]]|[^,\s][^,]*", text):
        word = NAMED.sub("", word.strip())
        if not word:
            continue
        if word[0] in "([":
            inside = [_number(one) for one in word[1:-1].split(",") if one.strip()]
        elif DIMS.fullmatch(word):
            inside = [int(one) for one in re.split(r"\s*[x×]\s*", word)]  # noqa: RUF001
        else:
            number = _number(word)
            if number is None:
                raise wanted.refuse(f"{word!r} is neither a number nor a shape like 16x64")
            found.append(number)
            continue
        if None in inside:
            raise wanted.refuse(f"{word!r} is no shape; write 16x64")
        found.append(tuple(inside))
    return found


# Files


def read_array(path: Path, dtype: ElementType | None, what: str) -> Array:
    """The array in a `.npy` file; raw bytes of the right size are taken as the type that is wanted."""
    try:
        if path.stat().st_size > MOST_FILE:
            raise PtoValueError(f"{what}: {path} has {path.stat().st_size} bytes, which is too much")
        found = _load(path)
    except OSError as error:
        raise PtoValueError(f"{what}: {path} cannot be read: {error.strerror or error}") from None
    except (ValueError, EOFError, MemoryError, TypeError) as broken:
        if isinstance(broken, PtoError):
            raise
        raise PtoValueError(f"{what}: {path} is no array that can be read: {_first_line(broken)}") from None
    if not isinstance(found, np.ndarray):
        raise PtoValueError(f"{what}: {path} holds several arrays; a .npy file with one is wanted")
    array = np.array(found, order="C", copy=True)
    return array if dtype is None else as_type(array, dtype, f"{what}: {path}")


def _load(path: Path) -> Any:
    raw = path.read_bytes()
    # NumPy writes float8_e5m2 under a name that it does not read.
    header = raw[:256]
    if raw.startswith(b"\x93NUMPY") and b"'<f1'" in header:
        raw = header.replace(b"'<f1'", b"'|u1'") + raw[256:]
    return np.load(io.BytesIO(raw), allow_pickle=False)


def _first_line(mistake: Exception) -> str:
    return (str(mistake) or type(mistake).__name__).splitlines()[0]


def as_type(array: Array, dtype: ElementType, what: str) -> Array:
    """The array in that type: its own, or raw bytes that stand for it."""
    native = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    if native.dtype.type is dtype.numpy.type:
        return native
    if is_raw(dtype) and native.dtype.itemsize == dtype.itemsize and native.dtype.kind in "Vu":
        return native.view(dtype.numpy)
    hint = f" or raw bytes of that size ({raw_type(dtype)})" if is_raw(dtype) else ""
    raise PtoTypeError(f"{what} holds {describe(native.dtype)}; {dtype} is wanted{hint}")


def is_raw(dtype: ElementType) -> bool:
    """A type whose name a `.npy` file cannot say."""
    return dtype.numpy.type.__module__ != "numpy"


def raw_type(dtype: ElementType) -> str:
    """How such a type stands in a file."""
    return "|u1" if dtype.itemsize == 1 else f"|V{dtype.itemsize}"


def write_array(path: Path, array: Array, what: str) -> Path | None:
    """Write an array as `.npy`; for a type that the file cannot name, a note beside it, which is given back."""
    dtype = element_type(array.dtype)
    stored = array.view(raw_type(dtype)) if is_raw(dtype) else array
    try:
        with path.open("wb") as file:
            np.save(file, stored, allow_pickle=False)
        if not is_raw(dtype):
            return None
        note = path.with_name(f"{path.name}.txt")
        note.write_text(
            f"{path.name}: {what}, {dtype}, shape {' x '.join(map(str, array.shape))}.\n"
            f"The file holds raw bytes ({raw_type(dtype)}), since .npy has no name for {dtype}.\n"
            f"In Python: numpy.load({path.name!r}).view({dtype.numpy.type.__module__}.{dtype.numpy.name})\n",
            encoding="utf-8",
        )
    except OSError as error:
        raise PtoValueError(f"--out: {path} cannot be written: {error.strerror or error}") from None
    return note
