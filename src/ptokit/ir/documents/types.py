"""The types as the documents write them, and the types of the dialect that they mean.

`!pto.tile<16x64xf32>` is a tile in UB, `!pto.memref<1024x64xf32>` a view on GM. What leaves something open
(`!pto.tile<...>`, `!pto.tile<NxMxT>`) stays a placeholder.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute

from ptokit.errors import PtoValueError
from ptokit.ir.dialect.attributes import word
from ptokit.ir.dialect.types import (
    BLAYOUTS,
    DYNAMIC,
    FRACTALS,
    LOCS,
    SLAYOUTS,
    GroupType,
    MemrefDocType,
    PartitionTensorViewDocType,
    PartitionTensorViewType,
    TensorViewDocType,
    TensorViewType,
    TileBufDocType,
    TileBufType,
    TileType,
    UnknownType,
    is_placeholder,
    spelling_of,
)

GM, TILE, GROUP = "gm", "tile", "group"
"""The kinds by which an operand and its type find each other."""

_KINDS: dict[type[Attribute], str] = {
    **dict.fromkeys((TileType, TileBufType, TileBufDocType), TILE),
    **dict.fromkeys((MemrefDocType, PartitionTensorViewType, PartitionTensorViewDocType), GM),
    **dict.fromkeys((TensorViewType, TensorViewDocType), GM),
    GroupType: GROUP,
}
_GM_SPACES = ("gm", "zero", None)


def kind(of: Attribute | None) -> str | None:
    """gm, tile or group; None where a type is none of them.

    >>> kind(TileType("...")), kind(MemrefDocType("8x64xf32"))
    ('tile', 'gm')
    """
    if isinstance(of, MemRefType):
        return GM if _space(of) in _GM_SPACES else TILE
    return None if of is None else _KINDS.get(type(of))


def _space(memref: MemRefType[Attribute]) -> object:
    told = word(memref.memory_space)
    return None if told == "none" else told


# What a type of the documents means

_PADS = ("null", "zero", "max", "min")


def _plain(text: str) -> str:
    return text.strip().replace("_", "").lower()


def _one_of(words: tuple[str, ...], text: str) -> str | None:
    return next((known for known in words if _plain(known) == _plain(text)), None)


def _number(text: str, known: tuple[int, ...] = ()) -> int | None:
    found = re.fullmatch(r"\s*([0-9]{1,9})\s*", text)
    number = int(found[1]) if found else None
    return number if not known or number in known else None


def _fractal(text: str) -> int | None:
    return 512 if _plain(text) == "none" else _number(text, FRACTALS)


def _pad(text: str) -> int | None:
    named = _one_of(_PADS, text)
    return _PADS.index(named) if named else _number(text, (0, 1, 2, 3))


_POSITIONS: tuple[tuple[str, Callable[[str], str | int | None]], ...] = (
    ("blayout", lambda text: _one_of(BLAYOUTS, text)),
    ("slayout", lambda text: _one_of(SLAYOUTS, text)),
    ("fractal", _fractal),
    ("pad", _pad),
)
"""What may follow `rows, cols` in a positional tile, in this order."""


def _positional(text: str) -> TileBufType | None:
    """`loc=vec, f32, 16, 16, RowMajor, NoneBox, None, Zero` or `f32, 16, 16`; None where anything is left open."""
    parts = [part.strip() for part in text.split(",")]
    loc = _one_of(LOCS, parts[0].removeprefix("loc=").strip())
    dtype, *numbers = (parts[1:] if loc else parts) or [""]
    if len(numbers) < 2 or len(numbers) > 2 + len(_POSITIONS):
        return None
    rows, cols = _number(numbers[0]), _number(numbers[1])
    options: dict[str, Any] = {name: read(part) for (name, read), part in zip(_POSITIONS, numbers[2:], strict=False)}
    if not rows or not cols or None in options.values():
        return None
    try:
        return TileBufType(loc or "vec", spelling_of(dtype), rows, cols, **options)
    except PtoValueError:
        return None


def _tile(of: TileType) -> Attribute:
    dims, elem = of.dims, of.data.elem
    if dims is None or elem is None:
        return _positional(of.text) or of
    if len(dims) != 2 or DYNAMIC in dims or 0 in dims:
        return of
    # One column is legal in DN only: ND wants rows of 32 bytes (SEMANTICS 1).
    blayout = "col_major" if is_column(dims) else "row_major"
    return TileBufType("vec", elem, dims[0], dims[1], blayout=blayout)


def is_column(dims: tuple[int, ...]) -> bool:
    """`[R,1]` of more than one row."""
    return len(dims) == 2 and dims[1] == 1 and dims[0] > 1


@lru_cache(maxsize=4096)
def real_type(written: Attribute) -> Attribute:
    """The type of the dialect that a type of the documents means; any other, and a placeholder, is itself.

    >>> print(real_type(TileType("16x64xf32")), real_type(TileType("16x1xi32")))
    !pto.tile_buf<vec, 16x64xf32> !pto.tile_buf<vec, 16x1xi32, blayout=col_major>
    >>> print(real_type(TileType("loc=vec, f32, 16, 16, RowMajor, NoneBox, None, Zero")), real_type(TileType("...")))
    !pto.tile_buf<vec, 16x16xf32, pad=1> !pto.tile<...>
    """
    if isinstance(written, TileType):
        return _tile(written)
    if isinstance(written, MemrefDocType) and written.dims and written.data.elem:
        return PartitionTensorViewType(written.dims, written.data.elem)
    return written


def document_type(real: Attribute) -> Attribute:
    """How PTO-AS spells a type: the reverse of `real_type`, where it can say it.

    >>> print(document_type(TileBufType("vec", "float32", 16, 64)))
    !pto.tile<16x64xf32>
    """
    if isinstance(real, TileBufType):
        spelt: Attribute = TileType(f"{real.rows}x{real.cols}x{real.elem}")
        # `[R,1]` in the documents' spelling is the first custom form of a5: today's is written in full.
        return spelt if real_type(spelt) == real and not is_column((real.rows, real.cols)) else real
    return MemrefDocType(real.written()) if isinstance(real, PartitionTensorViewType) else real


def is_open_column(spelt: Attribute) -> bool:
    """`!pto.tile<Nx1xi32>`."""
    if not isinstance(spelt, TileType) or not re.fullmatch(r"\w+", spelt.text):
        return False
    rows, _, rest = spelt.text.partition("x1x")
    return bool(rows and rest) and not spelt.text.startswith("1x")


def agree(one: Attribute, other: Attribute) -> bool:
    """Whether a value of one type may be written with the other: a placeholder stands for anything of its kind."""
    one, other = real_type(one), real_type(other)
    if one == other or UnknownType in (one.__class__, other.__class__):
        return True
    kinds = kind(one), kind(other)
    if kinds[0] is None or kinds[0] != kinds[1]:
        return False
    if is_placeholder(one) or is_placeholder(other):
        return True
    views = (PartitionTensorViewType, TensorViewType)
    return isinstance(one, views) and isinstance(other, views) and one.data == other.data
