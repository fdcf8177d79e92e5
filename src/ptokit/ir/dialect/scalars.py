"""Blocks, pointers and scalars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    result_def,
)
from xdsl.parser import Parser

from ptokit.ir.dialect import assembly as asm
from ptokit.ir.dialect.base import INDEX, PtoOp
from ptokit.ir.dialect.refused import Misread
from ptokit.ir.dialect.types import (
    PtrType,
    type_of_text,
)

if TYPE_CHECKING:
    from xdsl.printer import Printer


class _BlockNumberOp(PtoOp):
    """`%i = pto.OP`: an i64."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """No type is written."""
        known, others = asm.attribute_dict(parser, cls)
        return cls.of_operands({}, known, others, [i64])

    def print(self, printer: Printer) -> None:
        """No type is written."""
        self.print_told(printer)


@irdl_op_definition
class GetBlockIdxOp(_BlockNumberOp):
    """Which of the blocks this is."""

    name = "pto.get_block_idx"
    index = result_def(i64)


@irdl_op_definition
class GetBlockNumOp(_BlockNumberOp):
    """How many blocks there are."""

    name = "pto.get_block_num"
    number = result_def(i64)


def _pointer_type(parser: Parser) -> Attribute:
    """`!pto.ptr<f32, gm>` or `<f32, gm>`."""
    if parser._current_token.text != "<":
        return parser.parse_type()
    start = parser.pos
    body = parser._parse_dialect_symbol_body()
    try:
        return type_of_text("ptr", body)
    except Misread as wrong:
        return wrong.at(parser, start + 1)


def _print_pointer(printer: Printer, pointer: Attribute) -> None:
    if isinstance(pointer, PtrType):
        printer.print_string(f"<{pointer.written()}>")
    else:
        printer.print_attribute(pointer)


@irdl_op_definition
class AddPtrOp(PtoOp):
    """`%q = pto.addptr %p, %i : <f32, gm> -> <f32, gm>`."""

    name = "pto.addptr"
    ptr = operand_def()
    offset = operand_def(INDEX)
    moved = result_def()

    @classmethod
    def parse(cls, parser: Parser) -> AddPtrOp:
        """The offset is of type index."""
        name = parser.parse_unresolved_operand()
        parser.parse_characters(",")
        offset = parser.resolve_operand(parser.parse_unresolved_operand(), INDEX)
        known, others = asm.attribute_dict(parser, cls)
        parser.parse_characters(":")
        ptr = parser.resolve_operand(name, _pointer_type(parser))
        parser.parse_characters("->")
        return cls.of_operands({"ptr": ptr, "offset": offset}, known, others, [_pointer_type(parser)])

    def print(self, printer: Printer) -> None:
        """With the types in their short spelling."""
        printer.print_string(" ")
        asm.print_operands(printer, self.operands)
        self.print_told(printer)
        printer.print_string(" : ")
        _print_pointer(printer, self.ptr.type)
        printer.print_string(" -> ")
        _print_pointer(printer, self.moved.type)


def _place(parser: Parser) -> tuple[Any, SSAValue]:
    """`%p[%i]`."""
    name = parser.parse_unresolved_operand()
    parser.parse_characters("[")
    offset = parser.resolve_operand(parser.parse_unresolved_operand(), INDEX)
    parser.parse_characters("]")
    return name, offset


def _print_place(printer: Printer, ptr: SSAValue, offset: SSAValue) -> None:
    printer.print_ssa_value(ptr)
    printer.print_string("[")
    printer.print_ssa_value(offset)
    printer.print_string("]")


@irdl_op_definition
class LoadScalarOp(PtoOp):
    """`%x = pto.load_scalar %p[%i] : <f32, gm> -> f32`."""

    name = "pto.load_scalar"
    ptr = operand_def()
    offset = operand_def(INDEX)
    value = result_def()

    @classmethod
    def parse(cls, parser: Parser) -> LoadScalarOp:
        """The offset is of type index."""
        name, offset = _place(parser)
        known, others = asm.attribute_dict(parser, cls)
        parser.parse_characters(":")
        ptr = parser.resolve_operand(name, _pointer_type(parser))
        parser.parse_characters("->")
        return cls.of_operands({"ptr": ptr, "offset": offset}, known, others, [parser.parse_type()])

    def print(self, printer: Printer) -> None:
        """The reverse of `parse`."""
        printer.print_string(" ")
        _print_place(printer, self.ptr, self.offset)
        self.print_told(printer)
        printer.print_string(" : ")
        _print_pointer(printer, self.ptr.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.value.type)


@irdl_op_definition
class StoreScalarOp(PtoOp):
    """`pto.store_scalar %x, %p[%i] : <f32, gm>, f32`."""

    name = "pto.store_scalar"
    value = operand_def()
    ptr = operand_def()
    offset = operand_def(INDEX)

    @classmethod
    def parse(cls, parser: Parser) -> StoreScalarOp:
        """The pointer's type stands before the value's."""
        value_name = parser.parse_unresolved_operand()
        parser.parse_characters(",")
        name, offset = _place(parser)
        known, others = asm.attribute_dict(parser, cls)
        parser.parse_characters(":")
        ptr = parser.resolve_operand(name, _pointer_type(parser))
        parser.parse_characters(",")
        value = parser.resolve_operand(value_name, parser.parse_type())
        return cls.of_operands({"value": value, "ptr": ptr, "offset": offset}, known, others)

    def print(self, printer: Printer) -> None:
        """The reverse of `parse`."""
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_string(", ")
        _print_place(printer, self.ptr, self.offset)
        self.print_told(printer)
        printer.print_string(" : ")
        _print_pointer(printer, self.ptr.type)
        printer.print_string(", ")
        printer.print_attribute(self.value.type)
