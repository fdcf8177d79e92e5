"""Level 1: `pto.mscatter %src, %idx, %mem {..} : (S, I, M) -> ()`, a destination that is new as a result.

What level 1 has no form for (a region, a view, a flag) is printed as in level 2: both may stand in one file.
"""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from xdsl.ir import Operation

from ptokit.ir.dialect.ops import DpsOp, TAssignOp
from ptokit.ir.documents.printing import FlatPrinter, collective, fresh_tile, is_flat, placed_by_name

if TYPE_CHECKING:
    from ptokit.ir.module import Module


class Level1Printer(FlatPrinter):
    """The dialect's printer with flat ops."""

    def print_op(self, op: Operation) -> None:
        """An op with its result."""
        if isinstance(op, TAssignOp) and (address := placed_by_name(op)) is not None:
            self.print_placed(op, address)
        elif (ranks := collective(op)) is not None:
            self.print_collective(ranks)
        elif isinstance(op, DpsOp) and is_flat(op):
            self._print_flat(op)
        else:
            super().print_op(op)

    def _print_flat(self, op: DpsOp) -> None:
        dst = fresh_tile(op)
        if dst is not None:
            self.print_result(dst)
        self.print_string(f"{op.name} ")
        self.print_row([*op.given(op.INS), *(() if dst is not None else op.given(op.OUTS))], op.told)
        self.print_string(" -> ")
        if dst is None:
            self.print_string("()")
        else:
            self.print_attribute(dst.type)


def to_ssa(module: Module) -> str:
    """The module in level 1.

    >>> from ptokit.ir import parse
    >>> mod = parse("mscatter.row.skip %t, %s, %i : (!pto.memref<...>, !pto.tile<...>, !pto.tile<...>)")
    >>> print(mod.to("ssa"), end="")
    module {
      %t = pto.arg : !pto.memref<...>
      %s = pto.arg : !pto.tile<...>
      %i = pto.arg : !pto.tile<...>
      pto.mscatter %s, %i, %t {coalesce = #pto<coalesce row>, scatterOob = #pto<scatter_oob skip>} : \
(!pto.tile<...>, !pto.tile<...>, !pto.memref<...>) -> ()
    }
    """
    stream = StringIO()
    Level1Printer(stream, module.names).print_op(module.op)
    return stream.getvalue().rstrip() + "\n"
