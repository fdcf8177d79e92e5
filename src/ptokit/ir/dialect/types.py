"""The types of the dialect: plain Python data behind xDSL's attributes, read from their text and cached.

The text between `<` and `>` is taken apart by hand, since a dimension list like `8x32xf32` is not made of MLIR tokens.
What the documents leave open (`!pto.tile<...>`, `!pto.partition_tensor_view<MxNxdtype>`) stays as text: a `DocType`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from xdsl.ir import Attribute

from ptokit.errors import PtoValueError, nearest
from ptokit.ir.dialect.doc_types import (
    Doc,
    DocType,
    EventDocType,
    GroupType,
    MemrefDocType,
    PartitionTensorViewDocType,
    PtrDocType,
    TensorViewDocType,
    TileBufDocType,
    TileType,
    UnknownType,
)
from ptokit.ir.dialect.elements import ELEMENTS, SMALL_FLOATS, dtype_of, scalar_type, spelling_of
from ptokit.ir.dialect.raw import DYNAMIC, RawType, dims_text, element, fields, shaped
from ptokit.ir.dialect.refused import TOO_LARGE, Misread
from ptokit.ir.dialect.tile_buf import BLAYOUTS, FRACTALS, LOCS, SLAYOUTS, TileBuf, TileBufType

if TYPE_CHECKING:
    pass


SPACES = {
    **{word: word for word in ("gm", "ub", "l1", "l0a", "l0b", "l0c", "bt", "fb")},
    "vec": "ub",
    "mat": "l1",
    "left": "l0a",
    "right": "l0b",
    "acc": "l0c",
    "bias": "bt",
    "scaling": "fb",
}
"""How the text names a memory -> the canonical name."""


@dataclass(frozen=True)
class Ptr:
    """An element's spelling and the memory it points into."""

    elem: str
    space: str = "gm"


class PtrType(RawType[Ptr]):
    """`!pto.ptr<f32, gm>`."""

    name = "pto.ptr"

    def __init__(self, dtype: object, space: str = "gm") -> None:
        if space not in SPACES:
            raise PtoValueError(f"unknown memory {space!r}.{nearest(space, SPACES)}")
        super().__init__(Ptr(spelling_of(dtype), SPACES[space]))

    @property
    def elem(self) -> str:
        """The element type as the text spells it."""
        return self.data.elem

    @property
    def dtype(self) -> str:
        """The element type by its name."""
        return ELEMENTS[self.data.elem]

    @property
    def space(self) -> str:
        """The memory, by its canonical name."""
        return self.data.space

    @classmethod
    def read(cls, text: str) -> Ptr:
        """`f32` or `f32, gm`."""
        elem, *more = fields(text)
        if len(more) > 1:
            raise Misread("A pointer has an element type and a memory.", more[1][1], len(more[1][0]))
        space = "gm"
        if more:
            space = more[0][0].strip()
            if space not in SPACES:
                raise Misread(f"Unknown memory {space!r}.{nearest(space, SPACES)}", more[0][1], len(more[0][0]))
        return Ptr(element(*elem), SPACES[space])

    def written(self) -> str:
        """With its memory."""
        return f"{self.elem}, {self.space}"


@dataclass(frozen=True)
class Shaped:
    """Dims (-1 where the text has `?`) and an element's spelling."""

    dims: tuple[int, ...]
    elem: str


class ShapedText(RawType[Shaped]):
    """What the views have in common: `<8x?xf32>`."""

    def __init__(self, dims: tuple[int, ...], dtype: object) -> None:
        super().__init__(Shaped(tuple(dims), spelling_of(dtype)))

    @property
    def dims(self) -> tuple[int, ...]:
        """Extents, -1 where dynamic."""
        return self.data.dims

    @property
    def elem(self) -> str:
        """The element type as the text spells it."""
        return self.data.elem

    @property
    def dtype(self) -> str:
        """The element type by its name."""
        return ELEMENTS[self.data.elem]

    @classmethod
    def read(cls, text: str) -> Shaped:
        """Dims, then the element type."""
        return Shaped(*shaped(text))

    def written(self) -> str:
        """Dims, then the element type."""
        return dims_text(self.dims, self.elem)


class TensorViewType(ShapedText):
    """`!pto.tensor_view<1024x64xf32>`."""

    name = "pto.tensor_view"


class PartitionTensorViewType(ShapedText):
    """`!pto.partition_tensor_view<16x64xf32>`; older: `!pto.tile_view<..>`."""

    name = "pto.partition_tensor_view"


# By name

REAL_TYPES: tuple[type[RawType[Any]], ...] = (PtrType, TensorViewType, PartitionTensorViewType, TileBufType)
DOC_TYPES: tuple[type[DocType], ...] = (TileType, GroupType, MemrefDocType, EventDocType, UnknownType)
OPEN_TYPES: dict[str, type[DocType]] = {
    made.kind: made for made in (TileBufDocType, TensorViewDocType, PartitionTensorViewDocType, PtrDocType)
}
_BY_NAME: dict[str, type[RawType[Any]]] = {
    **{made.name.removeprefix("pto."): made for made in (*REAL_TYPES, *DOC_TYPES)},
    "tile_view": PartitionTensorViewType,
}
TYPE_NAMES = (*_BY_NAME, *(made.name.removeprefix("pto.") for made in SMALL_FLOATS))
"""Every type of the dialect, as it is spelt after `!pto.`."""


_PLACEHOLDER = re.compile(
    r"\.\.\.|^\s*(?:(?:[A-Z](?:(?!x)\w)*+|\d++|\?)x)++(?:T|\w*[dD][tT]ype|elem|[A-Z]\w*|u?i\d+|b?f\d+)\s*$"
    r"|(?:^|,)\s*(?:loc|dtype|rows|cols|T|DType)\s*(?:,|$)"
)


@lru_cache(maxsize=4096)
def type_of_text(name: str, body: str) -> Attribute:
    """The type `!pto.NAME<BODY>`; `Misread` (with places in `body`) where there is none.

    >>> type_of_text("ptr", "f32").dtype
    'float32'
    """
    made = _BY_NAME.get(name)
    if made is None:
        raise Misread(f"Unknown type !pto.{name}.{nearest(name, TYPE_NAMES)}", -len(name) - 1, len(name))
    try:
        return made.new(made.read(body))
    except Misread as wrong:
        is_open = made.name.removeprefix("pto.") in OPEN_TYPES and _PLACEHOLDER.search(body)
        if wrong.rule == TOO_LARGE or not is_open:
            raise
        return OPEN_TYPES[made.name.removeprefix("pto.")](body)


def is_placeholder(what: Attribute) -> bool:
    """A type that leaves something open: it converts, and can be neither verified nor run."""
    return isinstance(what, DocType)


__all__ = [
    "BLAYOUTS",
    "DOC_TYPES",
    "DYNAMIC",
    "ELEMENTS",
    "FRACTALS",
    "LOCS",
    "OPEN_TYPES",
    "REAL_TYPES",
    "SLAYOUTS",
    "SMALL_FLOATS",
    "SPACES",
    "TYPE_NAMES",
    "Doc",
    "DocType",
    "EventDocType",
    "GroupType",
    "MemrefDocType",
    "PartitionTensorViewDocType",
    "PartitionTensorViewType",
    "Ptr",
    "PtrDocType",
    "PtrType",
    "RawType",
    "Shaped",
    "ShapedText",
    "TensorViewDocType",
    "TensorViewType",
    "TileBuf",
    "TileBufDocType",
    "TileBufType",
    "TileType",
    "UnknownType",
    "dims_text",
    "dtype_of",
    "is_placeholder",
    "scalar_type",
    "shaped",
    "spelling_of",
    "type_of_text",
]
