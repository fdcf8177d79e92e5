"""The type of a tile, in its long and its short form."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ptokit.errors import nearest
from ptokit.ir.dialect.elements import ELEMENTS, spelling_of
from ptokit.ir.dialect.raw import DYNAMIC, RawType, element, fields, indent, shaped, whole_number
from ptokit.ir.dialect.refused import Misread

if TYPE_CHECKING:
    pass


LOCS = ("vec", "mat", "left", "right", "acc", "bias", "scaling")
_OLD_LOCS = {"ub": "vec"}
BLAYOUTS = ("row_major", "col_major")
SLAYOUTS = ("none_box", "row_major", "col_major")
FRACTALS = (16, 32, 512, 1024)
_LAYOUTS = {
    ("row_major", "none_box"): "nd",
    ("col_major", "none_box"): "dn",
    ("col_major", "row_major"): "nz",
    ("row_major", "row_major"): "zz",
    ("row_major", "col_major"): "zn",
    ("col_major", "col_major"): "nn",
}
_VERBOSE = ("loc", "dtype", "rows", "cols", "v_row", "v_col", "blayout", "slayout", "fractal", "pad", "compact")


@dataclass(frozen=True)
class TileBuf:
    """What a tile's type says; a valid extent of -1 is dynamic."""

    loc: str
    elem: str
    rows: int
    cols: int
    v_row: int
    v_col: int
    blayout: str = "row_major"
    slayout: str = "none_box"
    fractal: int = 512
    pad: int = 0
    compact: int = 0


def _one_of(words: tuple[str, ...], what: str, also: dict[str, str] | None = None) -> Callable[[str, int], str]:
    def read(text: str, start: int) -> str:
        word = text.strip()
        word = (also or {}).get(word, word)
        if word not in words:
            raise Misread(f"Unknown {what} {word!r}.{nearest(word, words)}", start + indent(text), len(text.strip()))
        return word

    return read


def _number_of(numbers: tuple[int, ...], what: str) -> Callable[[str, int], int]:
    def read(text: str, start: int) -> int:
        number = whole_number(text, start)
        if number not in numbers:
            known = ", ".join(map(str, numbers))
            raise Misread(f"{what} {number} does not exist; known: {known}.", start + indent(text), len(text.strip()))
        return number

    return read


def _extent(text: str, start: int) -> int:
    return DYNAMIC if text.strip() in ("?", "-1") else whole_number(text, start)


def _valid(text: str, start: int) -> tuple[int, int]:
    found = re.fullmatch(r"\s*(\?|-1|\d+)\s*x\s*(\?|-1|\d+)\s*", text)
    if found is None:
        raise Misread("Valid extents are written like 16x64 or ?x64.", start, len(text))
    return _extent(found[1], start), _extent(found[2], start)


_READ_LOC = _one_of(LOCS, "location", _OLD_LOCS)
_READERS: dict[str, Callable[[str, int], Any]] = {
    "loc": _READ_LOC,
    "dtype": element,
    "rows": whole_number,
    "cols": whole_number,
    "v_row": _extent,
    "v_col": _extent,
    "valid": _valid,
    "blayout": _one_of(BLAYOUTS, "blayout"),
    "slayout": _one_of(SLAYOUTS, "slayout"),
    "fractal": _number_of(FRACTALS, "Fractal"),
    "pad": _number_of((0, 1, 2, 3), "Pad"),
    "compact": _number_of((0, 1, 2), "Compact"),
}
_COMPACT_KEYS = ("valid", "blayout", "slayout", "fractal", "pad", "compact")


def _key_values(parts: list[tuple[str, int]], known: tuple[str, ...]) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for part, start in parts:
        key, equals, value = part.partition("=")
        name = key.strip()
        place = (start + indent(part), max(len(name), 1))
        if not equals:
            raise Misread(f"KEY=VALUE is wanted here, not {part.strip()!r}.", *place)
        if name not in known:
            raise Misread(f"A tile has no {name!r}.{nearest(name, known)}", *place)
        if name in read:
            raise Misread(f"{name} is given twice.", *place)
        read[name] = _READERS[name](value, start + len(key) + 1)
    return read


def _verbose(parts: list[tuple[str, int]]) -> dict[str, Any]:
    read = _key_values(parts, _VERBOSE)
    if tuple(read) not in (_VERBOSE, _VERBOSE[:-1]):
        missing = [key for key in _VERBOSE[:-1] if key not in read]
        reason = f"{', '.join(missing)} missing" if missing else "its keys in another order"
        raise Misread(f"The long form of a tile has {reason}; it is {', '.join(_VERBOSE)}.")
    return read


def _compact(parts: list[tuple[str, int]]) -> dict[str, Any]:
    if len(parts) < 2:
        raise Misread("A tile is written like vec, 16x64xf32.", 0, len(parts[0][0]))
    (loc, loc_at), (shape, shape_at), *options = parts
    where = _READ_LOC(loc, loc_at)
    dims, elem = shaped(shape, shape_at)
    if len(dims) != 2 or DYNAMIC in dims:
        raise Misread("A tile has two static extents, rows x columns.", shape_at, len(shape))
    read = _key_values(options, _COMPACT_KEYS)
    v_row, v_col = read.pop("valid", dims)
    return {"loc": where, "dtype": elem, "rows": dims[0], "cols": dims[1], "v_row": v_row, "v_col": v_col, **read}


class TileBufType(RawType[TileBuf]):
    """`!pto.tile_buf<vec, 16x64xf32, valid=?x64>`; the long form is read too.

    >>> str(TileBufType("vec", "float32", 16, 64, v_row=-1))
    '!pto.tile_buf<vec, 16x64xf32, valid=?x64>'
    """

    name = "pto.tile_buf"

    def __init__(
        self,
        loc: str,
        dtype: object,
        rows: int,
        cols: int,
        v_row: int | None = None,
        v_col: int | None = None,
        blayout: str = "row_major",
        slayout: str = "none_box",
        fractal: int = 512,
        pad: int = 0,
        compact: int = 0,
    ) -> None:
        valid = rows if v_row is None else v_row, cols if v_col is None else v_col
        record = TileBuf(loc, spelling_of(dtype), rows, cols, *valid, blayout, slayout, fractal, pad, compact)
        super().__init__(record)

    @property
    def loc(self) -> str:
        """vec, mat, left, right, acc, bias or scaling."""
        return self.data.loc

    @property
    def elem(self) -> str:
        """The element type as the text spells it."""
        return self.data.elem

    @property
    def dtype(self) -> str:
        """The element type by its name."""
        return ELEMENTS[self.data.elem]

    @property
    def rows(self) -> int:
        """Padded rows."""
        return self.data.rows

    @property
    def cols(self) -> int:
        """Padded columns."""
        return self.data.cols

    @property
    def v_row(self) -> int:
        """Valid rows, -1 where dynamic."""
        return self.data.v_row

    @property
    def v_col(self) -> int:
        """Valid columns, -1 where dynamic."""
        return self.data.v_col

    @property
    def valid(self) -> tuple[int, int]:
        """Valid rows and columns, -1 where dynamic."""
        return self.data.v_row, self.data.v_col

    @property
    def blayout(self) -> str:
        """row_major or col_major."""
        return self.data.blayout

    @property
    def slayout(self) -> str:
        """none_box, row_major or col_major."""
        return self.data.slayout

    @property
    def fractal(self) -> int:
        """Bytes of a fractal."""
        return self.data.fractal

    @property
    def pad(self) -> int:
        """0 null, 1 zero, 2 max, 3 min."""
        return self.data.pad

    @property
    def compact(self) -> int:
        """0 null, 1 normal, 2 row_plus_one."""
        return self.data.compact

    @property
    def layout(self) -> str:
        """nd, dn or nz (or zz, zn, nn, which no vector instruction takes)."""
        return _LAYOUTS[self.blayout, self.slayout]

    @classmethod
    def read(cls, text: str) -> TileBuf:
        """Either form."""
        parts = list(fields(text))
        read = _verbose(parts) if re.match(r"\s*loc\s*=", text) else _compact(parts)
        tile = TileBuf(elem=read.pop("dtype"), **read)
        if tile.rows < 1 or tile.cols < 1:
            raise Misread(f"A tile of {tile.rows} x {tile.cols} holds nothing.", 0, len(text))
        if tile.v_row > tile.rows or tile.v_col > tile.cols:
            valid = f"{tile.v_row} x {tile.v_col}"
            raise Misread(f"The valid extents {valid} exceed the tile's {tile.rows} x {tile.cols}.", 0, len(text))
        return tile

    def written(self) -> str:
        """The compact form without what is the default."""
        tile = self.data
        valid = f"{_or_unknown(tile.v_row)}x{_or_unknown(tile.v_col)}"
        told = {"valid": valid, **{key: getattr(tile, key) for key in _COMPACT_KEYS[1:]}}
        shape = f"{tile.rows}x{tile.cols}"
        usual = {"valid": shape, "blayout": "row_major", "slayout": "none_box", "fractal": 512, "pad": 0, "compact": 0}
        options = [f", {key}={value}" for key, value in told.items() if value != usual[key]]
        return f"{tile.loc}, {shape}x{tile.elem}{''.join(options)}"


def _or_unknown(extent: int) -> str:
    return "?" if extent == DYNAMIC else str(extent)
