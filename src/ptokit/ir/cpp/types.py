"""The types of the dialect as C++ spells them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute

from ptokit.ir.dialect.types import DYNAMIC, PtrType, TileBufType, dtype_of
from ptokit.ir.documents.types import real_type

ELEMENTS = {
    "bool": "bool",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "uint8": "uint8_t",
    "uint16": "uint16_t",
    "uint32": "uint32_t",
    "uint64": "uint64_t",
    "float16": "half",
    "bfloat16": "bfloat16_t",
    "float32": "float",
    "float64": "double",
    "float8_e4m3": "float8_e4m3_t",
    "float8_e5m2": "float8_e5m2_t",
    "hifloat8": "hifloat8_t",
    "index": "int64_t",
}
"""Element types; the others of the dialect have no name that the documents give."""

ITEMSIZE = {
    "bool": 1,
    "int64": 8,
    "uint64": 8,
    "float64": 8,
    "index": 8,
    **dict.fromkeys(("int32", "uint32", "float32"), 4),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16"), 2),
}
"""Bytes of an element; 1 where it is not here."""

SPACES = {
    "gm": "__gm__",
    "ub": "__ubuf__",
    "l1": "__cbuf__",
    "l0a": "__ca__",
    "l0b": "__cb__",
    "l0c": "__cc__",
    "bt": "__biasbuf__",
    "fb": "__fbuf__",
}
LOCATIONS = {
    "vec": "Vec",
    "mat": "Mat",
    "left": "Left",
    "right": "Right",
    "acc": "Acc",
    "bias": "Bias",
    "scaling": "Scaling",
}
BOXES = {"row_major": "RowMajor", "col_major": "ColMajor", "none_box": "NoneBox"}
PADS = ("Null", "Zero", "Max", "Min")
COMPACTS = ("Null", "Normal", "RowPlusOne")


def element(dtype: str) -> str | None:
    """The element type in C++, or None where it has no name there."""
    return ELEMENTS.get(dtype)


def scalar(type_: Attribute) -> str | None:
    """A scalar's or a pointer's type, or None where the type is neither.

    >>> scalar(PtrType("float32"))
    '__gm__ float *'
    """
    if isinstance(type_, PtrType):
        name = element(type_.dtype)
        return None if name is None else f"{SPACES[type_.space]} {name} *"
    return element(dtype_of(type_) or "")


LEFT_LAYOUTS = {"a2a3": "row_major", "a5": "col_major"}
"""A tile in L0A lies as its machine wants it: the assembler does not ask what the text says of it (GRAMMAR 2)."""


def tile(type_: TileBufType, target: str = "") -> str | None:
    """`Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, 16, 64>`; what is the default at the end is left out.

    >>> tile(TileBufType("vec", "float32", 16, 64, -1, 64))
    'Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, -1, 64>'
    >>> tile(TileBufType("left", "float16", 16, 64), "a5")
    'Tile<TileType::Left, half, 16, 64, BLayout::ColMajor, 16, 64>'
    """
    name = element(type_.dtype)
    if name is None:
        return None
    valid = [str(extent) for extent in type_.valid]
    words = [f"TileType::{LOCATIONS[type_.loc]}", name, str(type_.rows), str(type_.cols)]
    blayout = LEFT_LAYOUTS.get(target, type_.blayout) if type_.loc == "left" else type_.blayout
    words += [f"BLayout::{BOXES[blayout]}", *valid]
    options = [
        (f"SLayout::{BOXES[type_.slayout]}", type_.slayout == "none_box"),
        (str(type_.fractal), type_.fractal == 512),
        (f"PadValue::{PADS[type_.pad]}", type_.pad == 0),
        (f"CompactMode::{COMPACTS[type_.compact]}", type_.compact == 0),
    ]
    while options and options[-1][1]:
        options.pop()
    words += [word for word, _ in options]
    return f"Tile<{', '.join(words)}>"


def held_tile(type_: Attribute) -> TileBufType | None:
    """The tile's type, where the text says everything of it."""
    meant = type_ if isinstance(type_, TileBufType) else real_type(type_)
    return meant if isinstance(meant, TileBufType) else None


def five(word: str, numbers: Sequence[int | str]) -> str:
    """`Shape<1, 1, 1, -1, 64>`: -1 where the number is known at run time only.

    >>> five("Shape", [1, 1, 1, "rows", 64])
    'Shape<1, 1, 1, -1, 64>'
    """
    return f"{word}<{', '.join(str(n if isinstance(n, int) else DYNAMIC) for n in numbers)}>"
