"""The vector family, one class for each row of the table of the simulated core; the scatter from tile to tile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
)
from xdsl.parser import Parser

from ptokit.core.vector import FORMS, OPS, VectorOp
from ptokit.ir.dialect import assembly as asm
from ptokit.ir.dialect import attributes as attrs
from ptokit.ir.dialect.attributes import word
from ptokit.ir.dialect.base import DpsOp

if TYPE_CHECKING:
    from xdsl.printer import Printer


MODES = {"tcvt": ("rmode", attrs.RoundModeAttr), "tcmp": ("cmpMode", attrs.CmpModeAttr)}
"""Which attribute says the mode of an instruction."""
_TEMPORARY = ("row-reduce", "select")
"""Forms whose instructions take a temporary tile beside their sources."""


class VectorFamilyOp(DpsOp):
    """An instruction of `ptokit.core.vector`: source tiles and scalars in, one tile out."""

    SOURCES: ClassVar[tuple[str, ...]] = ()
    SCALARS: ClassVar[tuple[str, ...]] = ()

    @property
    def row(self) -> VectorOp:
        """The instruction in the table of the simulated core."""
        return OPS[self.name.removeprefix("pto.")]

    @property
    def sources(self) -> list[SSAValue]:
        """The source tiles, in the order of the table."""
        return self.given(self.SOURCES)

    @property
    def scalars(self) -> dict[str, SSAValue]:
        """The scalar operands, by the name of the option that they give."""
        return dict(zip(self.SCALARS, self.given(self.SCALARS), strict=True))

    @property
    def options(self) -> dict[str, Any]:
        """The options that are written as attributes: `mode`, `descending`."""
        told: dict[str, Any] = {}
        for name, attr in self.properties.items():
            if name in ("rmode", "cmpMode"):
                told["mode"] = str(word(attr)).lower().removeprefix("cast_")
            elif name == "descending":
                told[name] = bool(word(attr))
        return told


def _vector_class(op: VectorOp) -> type[VectorFamilyOp]:
    form = FORMS[op.form]
    scalars = tuple(name for name in ("scalar", "first") if name in form.options)
    body: dict[str, Any] = {name: operand_def() for name in (*form.sources, *scalars)}
    if op.form in _TEMPORARY:
        body["tmp"] = opt_operand_def()
    body["dst"] = operand_def()
    if op.name in MODES:
        name, made = MODES[op.name]
        body["mode"] = opt_prop_def(made, prop_name=name)
    if "descending" in form.options:
        body["descending"] = opt_prop_def(IntegerAttr)
    words = (*form.sources, *scalars, *(("tmp",) if op.form in _TEMPORARY else ()))
    given = ", ".join(f"%{name}" for name in words)
    body |= {
        "name": f"pto.{op.name}",
        "INS": words,
        "SOURCES": form.sources,
        "SCALARS": scalars,
        "__doc__": f"`pto.{op.name} ins({given} : ..) outs(%dst : TILE)`: {op.does}.",
        "__module__": __name__,
        "__annotations__": dict.fromkeys(("INS", "SOURCES", "SCALARS"), ClassVar),
    }
    made_class: type[VectorFamilyOp] = type(f"{op.name.title()}Op", (VectorFamilyOp,), body)
    return irdl_op_definition(made_class)


VECTOR_OPS: dict[str, type[VectorFamilyOp]] = {name: _vector_class(op) for name, op in OPS.items()}
"""The class of each vector instruction, by its name without the dialect."""


@irdl_op_definition
class TScatterOp(DpsOp):
    """The scatter from tile to tile: by indices, or by a mask pattern. The collective is `pto.comm.tscatter`."""

    name = "pto.tscatter"
    src = operand_def()
    idx = opt_operand_def()
    dst = operand_def()
    mask_pattern = opt_prop_def(attrs.MaskPatternAttr, prop_name="maskPattern")
    mask_axis = opt_prop_def(StringAttr, prop_name="maskAxis")

    INS: ClassVar = ("src", "idx")
    MASKED: ClassVar = ("maskPattern", "maskAxis")

    @classmethod
    def parse_ins(cls, parser: Parser) -> tuple[dict[str, SSAValue], dict[str, Attribute]]:
        """`ins(%src, %idx : S, I)` or `ins(%src, {maskPattern = ..} : S, "row")`."""
        parser.parse_keyword("ins")
        start = parser._current_token.span
        parser.parse_characters("(")
        names = [parser.parse_unresolved_operand()]
        known: dict[str, Attribute] = {}
        while parser.parse_optional_characters(","):
            if parser._current_token.text == "{":
                known, _ = asm.attribute_dict(parser, cls)
                break
            names.append(parser.parse_unresolved_operand())
        parser.parse_characters(":")
        types: list[Attribute] = [parser.parse_type()]
        while parser.parse_optional_characters(","):
            if (axis := parser.parse_optional_str_literal()) is not None:
                known["maskAxis"] = StringAttr(axis)
                break
            types.append(parser.parse_type())
        values = asm.resolved(parser, names, types)
        parser.parse_characters(")")
        return cls.named(parser, cls.INS, values, "ins", start), known

    @property
    def told(self) -> dict[str, Attribute]:
        """Without what stands inside `ins`."""
        return {name: attr for name, attr in super().told.items() if name not in self.MASKED}

    def print(self, printer: Printer) -> None:
        """The reverse of `parse`."""
        ins = self.given(self.INS)
        printer.print_string(" ins(")
        asm.print_operands(printer, ins)
        if self.mask_pattern is not None:
            printer.print_string(", ")
            printer.print_attr_dict({"maskPattern": self.mask_pattern})
        printer.print_string(" : ")
        asm.print_types(printer, ins)
        if self.mask_axis is not None:
            printer.print_string(", ")
            printer.print_string_literal(self.mask_axis.data)
        printer.print_string(") outs(")
        asm.print_typed(printer, [self.dst])
        printer.print_string(")")
        self.print_told(printer)
