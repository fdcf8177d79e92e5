"""Tiles: made, placed, given their valid extents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    result_def,
)
from xdsl.parser import Parser

from ptokit.ir.dialect import assembly as asm
from ptokit.ir.dialect.base import INDEX, PtoOp, other_form

if TYPE_CHECKING:
    from xdsl.printer import Printer


@irdl_op_definition
class AllocTileOp(PtoOp):
    """`%t = pto.alloc_tile addr = %a valid_row = %r : !pto.tile_buf<vec, 16x64xf32, valid=?x64>`."""

    name = "pto.alloc_tile"
    addr = opt_operand_def(i64)
    valid_row = opt_operand_def(INDEX)
    valid_col = opt_operand_def(INDEX)
    tile = result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    PARTS: ClassVar[Mapping[str, Attribute]] = {"addr": i64, "valid_row": INDEX, "valid_col": INDEX}

    @classmethod
    def parse(cls, parser: Parser) -> AllocTileOp:
        """`addr`, `valid_row` and `valid_col` in this order, each where it is needed."""
        found: dict[str, SSAValue] = {}
        for name, kind in cls.PARTS.items():
            if parser.parse_optional_keyword(name):
                parser.parse_characters("=")
                found[name] = parser.resolve_operand(parser.parse_unresolved_operand(), kind)
        if parser._current_token.text not in ("{", ":"):
            asm.unknown_keyword(parser, tuple(cls.PARTS))
        known, others = asm.attribute_dict(parser, cls)
        parser.parse_characters(":")
        return cls.of_operands(found, known, others, [parser.parse_type()])

    def print(self, printer: Printer) -> None:
        """The reverse of `parse`."""
        for name in self.PARTS:
            if (value := self.operand_called(name)) is not None:
                printer.print_string(f" {name} = ")
                printer.print_ssa_value(value)
        self.print_told(printer)
        printer.print_string(" : ")
        printer.print_attribute(self.tile.type)


@irdl_op_definition
class TAssignOp(PtoOp):
    """`%u = pto.tassign %t, %addr : TILE -> TILE`."""

    name = "pto.tassign"
    tile = operand_def()
    addr = operand_def(i64)
    placed = result_def()

    @classmethod
    def parse(cls, parser: Parser) -> Any:
        """The documents' `@tile(0x1000)` is another reader's."""
        if parser._current_token.text in ("ins", "outs"):
            return other_form(parser, cls)
        start = parser._current_token.span.start
        tile = parser.parse_unresolved_operand()
        parser.parse_characters(",")
        if not parser._current_token.text.startswith("%"):
            parser._resume_from(start)
            return other_form(parser, cls)
        addr = parser.resolve_operand(parser.parse_unresolved_operand(), i64)
        known, others = asm.attribute_dict(parser, cls)
        parser.parse_characters(":")
        of = parser.parse_type()
        to: Attribute = of
        if parser.parse_optional_characters("->"):
            to = parser.parse_type()
        elif parser._current_token.text == ",":
            parser._resume_from(start)
            return other_form(parser, cls)
        return cls.of_operands({"tile": parser.resolve_operand(tile, of), "addr": addr}, known, others, [to])

    def print(self, printer: Printer) -> None:
        """The reverse of `parse`."""
        printer.print_string(" ")
        asm.print_operands(printer, [self.tile, self.addr])
        self.print_told(printer)
        printer.print_string(" : ")
        printer.print_attribute(self.tile.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.placed.type)


@irdl_op_definition
class SetValidShapeOp(PtoOp):
    """`pto.set_validshape %t, %r, %c : TILE`."""

    name = "pto.set_validshape"
    tile = operand_def()
    row = operand_def(INDEX)
    col = operand_def(INDEX)

    @classmethod
    def parse(cls, parser: Parser) -> SetValidShapeOp:
        """Extents are of type index."""
        tile = parser.parse_unresolved_operand()
        parser.parse_characters(",")
        row = parser.resolve_operand(parser.parse_unresolved_operand(), INDEX)
        parser.parse_characters(",")
        col = parser.resolve_operand(parser.parse_unresolved_operand(), INDEX)
        known, others = asm.attribute_dict(parser, cls)
        parser.parse_characters(":")
        value = parser.resolve_operand(tile, parser.parse_type())
        return cls.of_operands({"tile": value, "row": row, "col": col}, known, others)

    def print(self, printer: Printer) -> None:
        """The reverse of `parse`."""
        printer.print_string(" ")
        asm.print_operands(printer, self.operands)
        self.print_told(printer)
        printer.print_string(" : ")
        printer.print_attribute(self.tile.type)
