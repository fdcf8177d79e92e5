"""The types that the documents leave out: of a result without `-> T`, of the staging tile of a collective."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from xdsl.ir import Attribute, SSAValue

from ptokit.core.vector import FORMS, OPS
from ptokit.dtypes import element_type
from ptokit.errors import PtoError
from ptokit.ir.dialect.attributes import word
from ptokit.ir.dialect.ops import DpsOp, MGatherOp, TLoadOp
from ptokit.ir.dialect.types import (
    DYNAMIC,
    PartitionTensorViewType,
    TensorViewType,
    TileBufType,
    TileType,
)

OPEN_TILE = TileType("...")
_ALIKE = ("binary", "tile-scalar", "unary", "select")
"""Forms whose result has the type of their last source."""

View = PartitionTensorViewType | TensorViewType


def result_type(made: type[DpsOp], values: Mapping[str, SSAValue], known: Mapping[str, Attribute]) -> Attribute:
    """What the result is, as far as the operands say it; else a placeholder.

    >>> print(OPEN_TILE)
    !pto.tile<...>
    """
    if made is MGatherOp:
        return _gathered(values["mem"].type, values["idx"].type, word(known.get("coalesce")))
    if made is TLoadOp:
        return _loaded(values["src"].type)
    row = OPS.get(made.name.removeprefix("pto."))
    if row is not None and row.form in _ALIKE:
        return values[FORMS[row.form].sources[-1]].type
    return OPEN_TILE


def _gathered(mem: Attribute, idx: Attribute, mode: str | None) -> Attribute:
    """Elem: the shape of the index; Row: a row of the table for each index."""
    if not (isinstance(mem, View) and isinstance(idx, TileBufType)) or DYNAMIC in idx.valid:
        return OPEN_TILE
    if mode is None:
        mode = "row" if 1 in idx.valid else "elem"
    if mode == "elem":
        v_row, v_col = idx.valid
        return TileBufType("vec", mem.elem, idx.rows, idx.cols, v_row, v_col, idx.blayout, idx.slayout, idx.fractal)
    width = mem.dims[-1]
    return OPEN_TILE if width in (DYNAMIC, 0) else TileBufType("vec", mem.elem, prod(idx.valid), width)


def _loaded(src: Attribute) -> Attribute:
    """The rows and columns of the view."""
    if not isinstance(src, View) or DYNAMIC in src.dims or 0 in src.dims:
        return OPEN_TILE
    return TileBufType("vec", src.elem, prod(src.dims[:-1]), src.dims[-1])


def staging_type(tensor: Attribute) -> Attribute:
    """A tile of one row of the tensor: it divides whatever each rank gets."""
    if not isinstance(tensor, View) or tensor.dims[-1] in (DYNAMIC, 0):
        return OPEN_TILE
    try:
        lanes = element_type(tensor.dtype).c0
    except PtoError:
        return OPEN_TILE
    width = tensor.dims[-1]
    return TileBufType("vec", tensor.elem, 1, -(-width // lanes) * lanes, 1, width)
