"""Views on global memory, and parts of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects.arith import ConstantOp
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    result_def,
    var_operand_def,
)
from xdsl.parser import Parser

from ptokit.ir.dialect import assembly as asm
from ptokit.ir.dialect import attributes as attrs
from ptokit.ir.dialect.attributes import word
from ptokit.ir.dialect.base import INDEX, PtoOp
from ptokit.ir.dialect.refused import COUNTS
from ptokit.ir.dialect.types import (
    DYNAMIC,
    DocType,
    PartitionTensorViewType,
    PtrType,
    TensorViewType,
    type_of_text,
)

if TYPE_CHECKING:
    from xdsl.printer import Printer


def sized_view_type(view: Attribute, sizes: Sequence[SSAValue]) -> Attribute | None:
    """The type of a partition whose sizes are those: constants are extents, all else is dynamic."""
    if isinstance(view, TensorViewType | PartitionTensorViewType):
        return PartitionTensorViewType(tuple(_constant(size) for size in sizes), view.elem)
    return type_of_text("partition_tensor_view", "...") if isinstance(view, DocType) else None


def constant_value(value: SSAValue) -> int | float | None:
    """What an `arith.constant` says, or None where the value is none."""
    owner = value.owner if not _is_forward(value) else None
    if isinstance(owner, ConstantOp):
        told = word(owner.value)
        return told if isinstance(told, int | float) else None
    return None


def _is_forward(value: SSAValue) -> bool:
    from xdsl.parser.core import ForwardDeclaredValue

    return isinstance(value, ForwardDeclaredValue)


def _constant(size: SSAValue) -> int:
    found = constant_value(size)
    return found if isinstance(found, int) and found >= 0 else DYNAMIC


def _print_list(printer: Printer, name: str, values: Sequence[SSAValue]) -> None:
    printer.print_string(f", {name} = [")
    asm.print_operands(printer, values)
    printer.print_string("]")


def _parse_list(parser: Parser, name: str) -> list[SSAValue]:
    parser.parse_optional_characters(",")
    start = parser.pos
    parser.parse_keyword(name)
    parser.parse_characters("=")
    values = asm.bracketed_operands(parser, INDEX)
    asm.mark(parser, name, start)
    return values


@irdl_op_definition
class MakeTensorViewOp(PtoOp):
    """`%v = pto.make_tensor_view %p, shape = [%r, %c], strides = [%c, %one] : !pto.tensor_view<?x?xf32>`."""

    name = "pto.make_tensor_view"
    ptr = operand_def()
    shape = var_operand_def()
    strides = var_operand_def()
    layout = opt_prop_def(attrs.LayoutAttr)
    view = result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @classmethod
    def parse(cls, parser: Parser) -> MakeTensorViewOp:
        """The pointer's type is not written: it follows from the view's."""
        ptr = parser.parse_unresolved_operand()
        shape = _parse_list(parser, "shape")
        strides = _parse_list(parser, "strides")
        known, others = asm.attribute_dict(parser, cls)
        parser.parse_characters(":")
        at = parser._current_token.span
        view = parser.parse_type()
        if isinstance(view, DocType):
            pointer: Attribute = type_of_text("ptr", "...")
        elif isinstance(view, TensorViewType):
            pointer = PtrType(view.elem)
            if not len(view.dims) == len(shape) == len(strides):
                ranks = f"{len(shape)} extents and {len(strides)} strides for {len(view.dims)} dimensions"
                asm.refuse(parser, f"pto.make_tensor_view has {ranks}.", COUNTS, at, "Give one of each a dimension.")
        else:
            asm.refuse(parser, f"pto.make_tensor_view makes a !pto.tensor_view, not {view}.", COUNTS, at)
        base = parser.resolve_operand(ptr, known_type(parser, ptr, pointer))
        return cls.of_operands({"ptr": base, "shape": shape, "strides": strides}, known, others, [view])

    def print(self, printer: Printer) -> None:
        """Without the pointer's type."""
        printer.print_string(" ")
        printer.print_ssa_value(self.ptr)
        _print_list(printer, "shape", self.shape)
        _print_list(printer, "strides", self.strides)
        self.print_told(printer)
        printer.print_string(" : ")
        printer.print_attribute(self.view.type)


def known_type(parser: Parser, name: Any, otherwise: Attribute) -> Attribute:
    """The type of a value that the text has defined already, where it is a placeholder; else the one that follows."""
    found = parser.ssa_values.get(name.operand_name)
    if found and isinstance(found[0].type, DocType):
        return found[0].type
    return otherwise


@irdl_op_definition
class PartitionViewOp(PtoOp):
    """`%p = pto.partition_view %v, offsets = [%i, %j], sizes = [%r, %c] : VIEW -> PARTITION`."""

    name = "pto.partition_view"
    view = operand_def()
    offsets = var_operand_def()
    sizes = var_operand_def()
    partition = result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @classmethod
    def parse(cls, parser: Parser) -> PartitionViewOp:
        """The result may be left out: it follows from the sizes."""
        name = parser.parse_unresolved_operand()
        offsets = _parse_list(parser, "offsets")
        sizes = _parse_list(parser, "sizes")
        known, others = asm.attribute_dict(parser, cls)
        parser.parse_characters(":")
        at = parser._current_token.span
        view = parser.resolve_operand(name, parser.parse_type())
        if parser.parse_optional_characters("->"):
            result: Attribute | None = parser.parse_type()
        else:
            result = sized_view_type(view.type, sizes)
        if result is None:
            asm.refuse(parser, f"pto.partition_view takes a view, not {view.type}.", COUNTS, at)
        rank = getattr(view.type, "dims", None)
        if not isinstance(view.type, DocType) and rank is not None and not len(rank) == len(offsets) == len(sizes):
            given = f"{len(offsets)} offsets and {len(sizes)} sizes for {len(rank)} dimensions"
            asm.refuse(parser, f"pto.partition_view has {given}.", COUNTS, at, "Give one of each a dimension.")
        return cls.of_operands({"view": view, "offsets": offsets, "sizes": sizes}, known, others, [result])

    def print(self, printer: Printer) -> None:
        """Without the result's type where it follows from the sizes."""
        printer.print_string(" ")
        printer.print_ssa_value(self.view)
        _print_list(printer, "offsets", self.offsets)
        _print_list(printer, "sizes", self.sizes)
        self.print_told(printer)
        printer.print_string(" : ")
        printer.print_attribute(self.view.type)
        if self.partition.type != sized_view_type(self.view.type, self.sizes):
            printer.print_string(" -> ")
            printer.print_attribute(self.partition.type)
