"""Between global memory and tiles: `pto.tload`, `pto.tstore`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
)
from xdsl.parser import Parser

from ptokit.ir.dialect import assembly as asm
from ptokit.ir.dialect import attributes as attrs
from ptokit.ir.dialect.attributes import word
from ptokit.ir.dialect.base import DpsOp

if TYPE_CHECKING:
    from xdsl.printer import Printer


@irdl_op_definition
class TLoadOp(DpsOp):
    """`pto.tload ins(%p : PARTITION) outs(%t : TILE)`, with `pad_value = %x : T` and the like at its end."""

    name = "pto.tload"
    src = operand_def()
    dst = operand_def()
    pad_value = opt_operand_def()
    left_padding_num = opt_operand_def()
    right_padding_num = opt_operand_def()
    init_condition = opt_operand_def()
    pad_mode = opt_prop_def(attrs.PadModeAttr)
    init_out_buffer = opt_prop_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    INS: ClassVar = ("src",)
    TAIL: ClassVar = (
        ("pad_mode", False),
        ("pad_value", True),
        ("left_padding_num", True),
        ("right_padding_num", True),
        ("init_out_buffer", False),
        ("init_condition", True),
    )
    """What may follow, and whether it is an operand."""

    @classmethod
    def parse_tail(cls, parser: Parser) -> tuple[dict[str, SSAValue], dict[str, Attribute]]:
        """`pad_mode = A pad_value = %x : T ..`."""
        operands: dict[str, SSAValue] = {}
        known: dict[str, Attribute] = {}
        for name, is_operand in cls.TAIL:
            span = parser._current_token.span
            if not parser.parse_optional_keyword(name):
                continue
            parser.parse_characters("=")
            if is_operand:
                operands[name] = asm.typed_operand(parser)
            else:
                known[name] = parser.parse_attribute()
                asm.check_properties(parser, cls, {name: known[name]}, span)
        if parser._current_token.text in dict(cls.TAIL):
            asm.unknown_keyword(parser, tuple(dict(cls.TAIL)))
        return operands, known

    @property
    def told(self) -> dict[str, Attribute]:
        """Without what stands at the end."""
        tail = {name for name, _ in self.TAIL}
        return {name: attr for name, attr in super().told.items() if name not in tail}

    def print_tail(self, printer: Printer) -> None:
        """The reverse of `parse_tail`."""
        for name, is_operand in self.TAIL:
            given = self.operand_called(name) if is_operand else self.properties.get(name)
            if given is None:
                continue
            printer.print_string(f" {name} = ")
            if isinstance(given, SSAValue):
                asm.print_typed(printer, [given])
            else:
                printer.print_attribute(given)


@irdl_op_definition
class TStoreOp(DpsOp):
    """`pto.tstore ins(%t : TILE [fp %f : TILE] [, %q : i64]) outs(%p : PARTITION)`."""

    name = "pto.tstore"
    src = operand_def()
    dst = operand_def()
    fp = opt_operand_def()
    quant = opt_operand_def()
    st_phase = opt_prop_def(attrs.StPhaseAttr, prop_name="stPhase")
    atomic_type = opt_prop_def(attrs.AtomicTypeAttr, prop_name="atomicType")
    relu_pre_mode = opt_prop_def(attrs.ReluPreModeAttr, prop_name="reluPreMode")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    INS: ClassVar = ("src", "fp", "quant")
    LAST: ClassVar = ("stPhase", "atomicType", "reluPreMode")

    @classmethod
    def parse_ins(cls, parser: Parser) -> tuple[dict[str, SSAValue], dict[str, Attribute]]:
        """Each operand with its type beside it."""
        parser.parse_keyword("ins")
        parser.parse_characters("(")
        found = {"src": asm.typed_operand(parser)}
        if parser.parse_optional_keyword("fp"):
            found["fp"] = asm.typed_operand(parser)
        if parser.parse_optional_characters(","):
            found["quant"] = asm.typed_operand(parser)
        parser.parse_characters(")")
        return found, {}

    def print(self, printer: Printer) -> None:
        """The reverse of `parse`."""
        printer.print_string(" ins(")
        for lead, name in (("", "src"), (" fp ", "fp"), (", ", "quant")):
            if (value := self.operand_called(name)) is not None:
                printer.print_string(lead)
                asm.print_typed(printer, [value])
        printer.print_string(") outs(")
        asm.print_typed(printer, [self.dst])
        printer.print_string(")")
        self.print_told(printer)

    @property
    def atomic(self) -> str:
        """none, add, max or min."""
        return str(word(self.atomic_type, "none"))
