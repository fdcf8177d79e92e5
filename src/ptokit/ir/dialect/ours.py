"""Ours: ops for what the public assembler has none for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from xdsl.dialects.builtin import StringAttr
from xdsl.irdl import (
    irdl_op_definition,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser

from ptokit.ir.dialect import assembly as asm
from ptokit.ir.dialect.base import PtoOp

if TYPE_CHECKING:
    from xdsl.printer import Printer


class _BareOp(PtoOp):
    """`pto.OP`, and nothing else."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Attributes at the most."""
        known, others = asm.attribute_dict(parser, cls)
        return cls.of_operands({}, known, others)

    def print(self, printer: Printer) -> None:
        """Attributes at the most."""
        self.print_told(printer)


@irdl_op_definition
class DcciOp(_BareOp):
    """`pto.dcci`: the data cache is cleaned and invalidated, all of it."""

    name = "pto.dcci"


@irdl_op_definition
class DsbOp(_BareOp):
    """`pto.dsb`: what was written reaches the memory before anything else happens."""

    name = "pto.dsb"


@irdl_op_definition
class ArgOp(PtoOp):
    """`%a = pto.arg : T`: a value that comes from outside, where a text has no function around it."""

    name = "pto.arg"
    value = result_def()

    @classmethod
    def parse(cls, parser: Parser) -> ArgOp:
        """Its type is all there is."""
        known, others = asm.attribute_dict(parser, cls)
        parser.parse_characters(":")
        return cls.of_operands({}, known, others, [parser.parse_type()])

    def print(self, printer: Printer) -> None:
        """The reverse of `parse`."""
        self.print_told(printer)
        printer.print_string(" : ")
        printer.print_attribute(self.value.type)


@irdl_op_definition
class SkippedOp(PtoOp):
    """An op that ptokit does not know, kept as its text: `%{0}` in it is its first operand, and so on."""

    name = "pto.skipped"
    values = var_operand_def()
    made = var_result_def()
    op_name = prop_def(StringAttr)
    text = prop_def(StringAttr)

    # Printed by `ptokit.ir.printing`, under the name that it has.
