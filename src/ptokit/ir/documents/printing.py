"""What level 1 and PTO-AS have in common when they are printed: flat ops, results, tiles placed by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import StringIO

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from ptokit.ir.dialect import assembly as asm
from ptokit.ir.dialect.ops import (
    AllocTileOp,
    CommOp,
    CommTGatherOp,
    CommTScatterOp,
    DpsOp,
    TAssignOp,
    TLoadOp,
    TScatterOp,
    TStoreOp,
)
from ptokit.ir.dialect.types import GroupType
from ptokit.ir.documents.forms import expected_kinds, flat_ins
from ptokit.ir.documents.results import staging_type
from ptokit.ir.documents.types import GM, GROUP, kind
from ptokit.ir.printing import PtoPrinter

_WITH_TAIL = {
    TLoadOp: ("pad_value", "left_padding_num", "right_padding_num", "init_condition", "pad_mode", "init_out_buffer"),
    TScatterOp: ("mask_pattern", "mask_axis"),
}
"""What a flat form has no place for."""


def is_flat(op: Operation) -> bool:
    """Whether a flat form can say the op: one row of operands, and attributes."""
    if not isinstance(op, DpsOp):
        return False
    ins, outs = op.given(op.INS), op.given(op.OUTS)
    made = type(op)
    if len(ins) > len(flat_ins(made)) or len(ins) + len(outs) != len(op.operands):
        return False
    if made is TStoreOp and len(op.operands) != 2:
        return False
    if any(getattr(op, name, None) is not None for name in _WITH_TAIL.get(made, ())):
        return False
    return _is_recognised(op, [*ins, *outs])


def _is_recognised(op: DpsOp, values: Sequence[SSAValue]) -> bool:
    """Whether a reader that goes by the kinds of the operands finds them again."""
    kinds = [kind(value.type) for value in values]
    if type(op) is TScatterOp:
        return GROUP not in kinds
    wanted = expected_kinds(type(op), [*op.INS[: len(op.given(op.INS))], *op.OUTS])
    if all(want is None or has is None or has == want for want, has in zip(wanted, kinds, strict=True)):
        return True
    # Where not exactly one operand is in GM, the reader goes by the places.
    return None not in kinds and kinds.count(GM) != 1


def fresh_tile(op: Operation) -> SSAValue | None:
    """The destination, where the op before does nothing but allocate it: it is written as a result."""
    if not isinstance(op, DpsOp) or op.OUTS != ("dst",) or not is_flat(op):
        return None
    dst, before = op.given(op.OUTS)[0], op.prev_op
    is_plain = isinstance(before, AllocTileOp) and not before.operands and not before.attributes
    if not is_plain or dst.owner is not before or dst in op.given(op.INS):
        return None
    return dst


def placed_by_name(op: Operation) -> int | None:
    """The address of a TASSIGN that can be written `%t, @tile(0x1000)`: the name then stands for the placed tile."""
    if not isinstance(op, TAssignOp) or op.attributes or op.tile.type != op.placed.type:
        return None
    before = op.prev_op
    is_constant = isinstance(before, ConstantOp) and before.results[0] is op.addr and not before.attributes
    if not is_constant or not isinstance(before, ConstantOp) or not op.addr.has_one_use():
        return None
    value = before.value
    if not isinstance(value, IntegerAttr) or value.type != i64 or value.value.data < 0:
        return None
    others = [use.operation for use in op.tile.uses if use.operation is not op]
    if any(one.parent is not op.parent or not one.is_before_in_block(op) for one in others):
        return None
    return int(value.value.data)


def collective(op: Operation) -> CommOp | None:
    """A collective that the documents' form can say: one group, and the staging tile that the form implies."""
    if not isinstance(op, CommTScatterOp | CommTGatherOp) or op.attributes or op.root is not None:
        return None
    first, tiles, members = op.given_operands
    before = op.prev_op
    if len(tiles) != 1 or len(members) != 1 or not isinstance(members[0].type, GroupType):
        return None
    is_plain = isinstance(before, AllocTileOp) and not before.operands and not before.attributes
    if not is_plain or tiles[0].owner is not before or not tiles[0].has_one_use():
        return None
    return op if tiles[0].type == staging_type(first[0].type) and kind(first[0].type) != GROUP else None


def is_implied(op: Operation) -> bool:
    """Whether the op after says this one too."""
    after = op.next_op
    if after is None:
        return False
    if isinstance(op, AllocTileOp):
        return fresh_tile(after) is not None or collective(after) is not None
    return isinstance(op, ConstantOp) and placed_by_name(after) is not None


class FlatPrinter(PtoPrinter):
    """Ops in a row, the implied ones left out; `lead` is what stands before an op's own name."""

    lead = "pto."

    def __init__(self, stream: StringIO, names: Mapping[SSAValue, str]) -> None:
        super().__init__(stream, names)

    def print_block(self, block: Block, print_block_args: bool = True, print_block_terminator: bool = True) -> None:
        """xDSL's, without what is implied."""
        if print_block_args:
            self._print_block_head(block)
        with self.indented():
            for op in block.ops:
                is_left_out = not print_block_terminator and op.has_trait(IsTerminator, value_if_unregistered=False)
                if is_left_out or is_implied(op):
                    continue
                self._print_new_line()
                self.print_op(op)

    def _print_block_head(self, block: Block) -> None:
        self._print_new_line()
        if block not in self._blocks:
            self._populate_block_name(block)
        self.print_block_name(block)
        if block.args:
            with self.in_parens():
                self.print_list(block.args, self.print_block_argument)
        self.print_string(":")

    def print_placed(self, op: TAssignOp, address: int) -> None:
        """`pto.tassign %t, @tile(0x1000)`."""
        self.print_string(f"{self.lead}tassign ")
        name = self.print_ssa_value(op.tile)
        self._ssa_values[op.placed] = name
        self.print_string(f", @tile({address:#x})")

    def print_collective(self, op: CommOp) -> None:
        """`pto.tscatter %group, %src : (GROUP, SRC)`."""
        first, _, members = op.given_operands
        self.print_string(f"{self.lead}{op.name.rpartition('.')[2]} ")
        self.print_row([*members, *first])

    def print_row(
        self,
        values: Sequence[SSAValue],
        attributes: Mapping[str, Attribute] | None = None,
        *,
        in_parentheses: bool = True,
    ) -> None:
        """`%a, %b {..} : (A, B)`."""
        asm.print_operands(self, values)
        asm.print_attribute_dict(self, attributes or {})
        self.print_string(" : (" if in_parentheses else " : ")
        asm.print_types(self, values)
        self.print_string(")" * in_parentheses)

    def print_result(self, value: SSAValue) -> None:
        """`%d = `."""
        self.print_ssa_value(value)
        self.print_string(" = ")
