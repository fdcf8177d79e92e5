"""Indexed access: `pto.mscatter`, `pto.mgather`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
)

from ptokit.ir.dialect import attributes as attrs
from ptokit.ir.dialect.attributes import word
from ptokit.ir.dialect.base import DpsOp
from ptokit.ir.dialect.types import (
    DYNAMIC,
    TileBufType,
)

if TYPE_CHECKING:
    pass


def coalesce_of(tile: Attribute, idx: Attribute) -> str | None:
    """The mode that the shapes give: `[1,R]` or `[R,1]` is row, the tile's own valid shape elem.

    >>> tile = TileBufType("vec", "float32", 16, 64)
    >>> coalesce_of(tile, TileBufType("vec", "int32", 1, 16)), coalesce_of(tile, TileBufType("vec", "int32", 16, 64))
    ('row', 'elem')
    """
    if not (isinstance(tile, TileBufType) and isinstance(idx, TileBufType)):
        return None
    (rows, cols), (first, second) = tile.valid, idx.valid
    if (rows, cols) == (first, second) == (1, 1):
        return "elem"

    def fits(extent: int, wanted: int, known: bool) -> bool:
        return extent == wanted or (not known and DYNAMIC in (extent, wanted))

    for known in (True, False):
        if (first == 1 and fits(second, rows, known)) or (second == 1 and fits(first, rows, known)):
            return "row"
        if fits(first, rows, known) and fits(second, cols, known):
            return "elem"
    return None


def _with_coalesce(known: dict[str, Attribute], tile: SSAValue, idx: SSAValue) -> dict[str, Attribute]:
    if "coalesce" not in known and (mode := coalesce_of(tile.type, idx.type)):
        return {"coalesce": attrs.CoalesceAttr(mode), **known}
    return known


@irdl_op_definition
class MScatterOp(DpsOp):
    """`pto.mscatter ins(%src, %idx : S, I) outs(%mem : M) {coalesce = #pto<coalesce row>}`."""

    name = "pto.mscatter"
    src = operand_def()
    idx = operand_def()
    mem = operand_def()
    coalesce = opt_prop_def(attrs.CoalesceAttr)
    scatter_atomic_op = prop_def(
        attrs.ScatterAtomicOpAttr, default_value=attrs.ScatterAtomicOpAttr("none"), prop_name="scatterAtomicOp"
    )
    scatter_oob = prop_def(
        attrs.ScatterOobAttr, default_value=attrs.ScatterOobAttr("undefined"), prop_name="scatterOob"
    )
    scatter_conflict = opt_prop_def(attrs.ScatterConflictAttr, prop_name="scatterConflict")

    INS: ClassVar = ("src", "idx")
    OUTS: ClassVar = ("mem",)
    LAST: ClassVar = ("coalesce", "scatterAtomicOp", "scatterOob", "scatterConflict")
    USUAL: ClassVar = {"scatterAtomicOp": "none", "scatterOob": "undefined"}

    @classmethod
    def completed(cls, operands: Mapping[str, SSAValue], known: dict[str, Attribute]) -> dict[str, Attribute]:
        """The mode follows from the shapes."""
        return _with_coalesce(known, operands["src"], operands["idx"])

    @property
    def policies(self) -> dict[str, str]:
        """coalesce, atomic, oob and conflict, as Python calls them; what is not given has its default."""
        return {
            "coalesce": word(self.coalesce, "row"),
            "atomic": word(self.scatter_atomic_op),
            "oob": word(self.scatter_oob),
            "conflict": word(self.scatter_conflict, "last"),
        }


@irdl_op_definition
class MGatherOp(DpsOp):
    """`pto.mgather ins(%mem, %idx[, %scratch] : M, I[, S]) outs(%dst : D) {coalesce = #pto<coalesce row>}`."""

    name = "pto.mgather"
    mem = operand_def()
    idx = operand_def()
    dst = operand_def()
    scratch = opt_operand_def()
    coalesce = opt_prop_def(attrs.CoalesceAttr)
    gather_oob = prop_def(attrs.GatherOobAttr, default_value=attrs.GatherOobAttr("undefined"), prop_name="gatherOob")

    INS: ClassVar = ("mem", "idx", "scratch")
    LAST: ClassVar = ("coalesce", "gatherOob")
    USUAL: ClassVar = {"gatherOob": "undefined"}

    @classmethod
    def completed(cls, operands: Mapping[str, SSAValue], known: dict[str, Attribute]) -> dict[str, Attribute]:
        """The mode follows from the shapes."""
        return _with_coalesce(known, operands["dst"], operands["idx"])

    @property
    def policies(self) -> dict[str, str]:
        """coalesce and oob, as Python calls them."""
        return {"coalesce": word(self.coalesce, "row"), "oob": word(self.gather_oob)}
