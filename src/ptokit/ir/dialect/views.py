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
from xdsl.utils.exceptions import VerifyException

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
    shape = var_operand_def(INDEX)
    strides = var_operand_def(INDEX)
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
        if wrong := _no_view(view, len(shape), len(strides)):
            asm.refuse(parser, f"pto.make_tensor_view {wrong}.", COUNTS, at, _how_to_view(view, len(shape)))
        base = parser.resolve_operand(ptr, known_type(parser, ptr, _pointer_to(view)))
        return cls.of_operands({"ptr": base, "shape": shape, "strides": strides}, known, others, [view])

    def verify_(self) -> None:
        """What the pretty form cannot say otherwise, since it does not write the pointer's type."""
        view, ptr = self.view.type, self.ptr.type
        if wrong := _no_view(view, len(self.shape), len(self.strides)):
            raise VerifyException(wrong)
        if not isinstance(view, DocType) and not isinstance(ptr, DocType) and ptr != _pointer_to(view):
            raise VerifyException(f"the pointer is {ptr}; a view of that type is of {_pointer_to(view)}")

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
    """The type of a value that the text has defined already, where one of both is a placeholder; else what follows."""
    found = parser.ssa_values.get(name.operand_name)
    if found and (isinstance(found[0].type, DocType) or isinstance(otherwise, DocType)):
        return found[0].type
    return otherwise


def _no_view(view: Attribute, extents: int, strides: int) -> str:
    """Why that is no type of a view of so many extents and strides; nothing where it is one."""
    if isinstance(view, DocType):
        return ""
    if not isinstance(view, TensorViewType):
        return f"makes a !pto.tensor_view, not {view}"
    rank = len(view.dims)
    return "" if rank == extents == strides else f"has {extents} extents and {strides} strides for {rank} dimensions"


def _how_to_view(view: Attribute, extents: int) -> str:
    """What to do about a type of another rank: version 0.1.1 wrote the rank where the extents stand today."""
    if isinstance(view, TensorViewType) and view.dims == (extents,) and extents > 1:
        return f"Version 0.1.1 wrote the rank; write !pto.tensor_view<{'?x' * extents}{view.elem}>."
    return "Give one of each a dimension."


def _pointer_to(view: Attribute) -> Attribute:
    """The type of the pointer that a view is made from."""
    return PtrType(view.elem) if isinstance(view, TensorViewType) else type_of_text("ptr", "...")


def _no_part(view: Attribute, offsets: int, sizes: int) -> str:
    """Why so many offsets and sizes make no part of the view; nothing where they do."""
    dims = None if isinstance(view, DocType) else getattr(view, "dims", None)
    if dims is None or len(dims) == offsets == sizes:
        return ""
    return f"has {offsets} offsets and {sizes} sizes for {len(dims)} dimensions"


@irdl_op_definition
class PartitionViewOp(PtoOp):
    """`%p = pto.partition_view %v, offsets = [%i, %j], sizes = [%r, %c] : VIEW -> PARTITION`."""

    name = "pto.partition_view"
    view = operand_def()
    offsets = var_operand_def(INDEX)
    sizes = var_operand_def(INDEX)
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
        if wrong := _no_part(view.type, len(offsets), len(sizes)):
            asm.refuse(parser, f"pto.partition_view {wrong}.", COUNTS, at, "Give one of each a dimension.")
        return cls.of_operands({"view": view, "offsets": offsets, "sizes": sizes}, known, others, [result])

    def verify_(self) -> None:
        """One offset and one size a dimension."""
        if wrong := _no_part(self.view.type, len(self.offsets), len(self.sizes)):
            raise VerifyException(wrong)

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
