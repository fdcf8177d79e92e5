"""One call of MSCATTER or MGATHER: its operands and its policies."""

from __future__ import annotations

from dataclasses import dataclass

from ptokit.policies import Coalesce, GatherOOB, ScatterAtomicOp, ScatterConflict, ScatterOOB
from ptokit.tensors import GlobalTensor, Tile


@dataclass(frozen=True)
class Access:
    """One call: its operands and its policies, as they were read."""

    op: str  # "mscatter" or "mgather"
    tile: Tile  # the source of a scatter, the destination of a gather
    table: GlobalTensor
    idx: Tile
    coalesce: Coalesce = Coalesce.Row
    atomic: ScatterAtomicOp = ScatterAtomicOp.None_
    oob: ScatterOOB | GatherOOB = ScatterOOB.Undefined
    conflict: ScatterConflict = ScatterConflict.Last
    conflict_given: bool = False  # written in the call, not the default

    @property
    def is_scatter(self) -> bool:
        """MSCATTER, not MGATHER."""
        return self.op == "mscatter"

    @property
    def is_row(self) -> bool:
        """One index per row."""
        return self.coalesce is Coalesce.Row

    @property
    def is_nz(self) -> bool:
        """The table lies in fractals."""
        return self.table.layout == "nz"

    @property
    def is_undefined(self) -> bool:
        """No bounds policy was asked for."""
        return self.oob in (ScatterOOB.Undefined, GatherOOB.Undefined)

    @property
    def drops(self) -> bool:
        """The policy leaves out-of-bounds lanes out: Skip, or Zero of a gather."""
        return self.oob in (ScatterOOB.Skip, GatherOOB.Zero)

    @property
    def adds_floats(self) -> bool:
        """A float Add: sums are rounded, and a NaN may be made."""
        return self.atomic is ScatterAtomicOp.Add and self.table.dtype.is_float

    @property
    def is_static_scalar(self) -> bool:
        """A static (1,1) Elem call: no SIMT launch on a5 (SEMANTICS 3.2)."""
        return not self.is_row and self.tile.is_static and self.tile.valid == (1, 1)
