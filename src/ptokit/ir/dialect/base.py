"""What the ops of the dialect share: attributes in braces, and the form `pto.OP ins(..) outs(..)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
)
from xdsl.parser import Parser

from ptokit.ir.dialect import assembly as asm
from ptokit.ir.dialect.attributes import word
from ptokit.ir.dialect.refused import COUNTS, SYNTAX

if TYPE_CHECKING:
    from xdsl.printer import Printer


SEGMENTS = "operandSegmentSizes"
INDEX = IndexType()


class PtoOp(IRDLOperation):
    """What all ops share: attributes in braces, those without a name of their own first."""

    LAST: ClassVar[tuple[str, ...]] = ()
    """Attributes that are printed after all others, in this order."""
    USUAL: ClassVar[Mapping[str, str]] = {}
    """The word of an attribute that goes without saying."""

    def __post_init__(self) -> None:
        """Defaults, and an order that does not depend on the text."""
        super().__post_init__()  # type: ignore[no-untyped-call]
        if len(self.properties) > 1:
            known = type(self).get_irdl_definition().properties
            self.properties = {
                name: self.properties.pop(name) for name in known if name in self.properties
            } | self.properties

    @property
    def told(self) -> dict[str, Attribute]:
        """The attributes as they are printed."""
        known = {name: attr for name, attr in self.properties.items() if name != SEGMENTS}
        first = {name: attr for name, attr in known.items() if name not in self.LAST}
        last = {
            name: known[name]
            for name in self.LAST
            if name in known and (name not in self.USUAL or word(known[name]) != self.USUAL[name])
        }
        return self.attributes | first | last

    def print_told(self, printer: Printer) -> None:
        """The braces, where there is anything to say."""
        asm.print_attribute_dict(printer, self.told)

    @classmethod
    def is_segmented(cls) -> bool:
        """Whether a property says how many operands each name has."""
        return SEGMENTS in cls.get_irdl_definition().properties

    @classmethod
    def of_operands(
        cls,
        operands: Mapping[str, SSAValue | Sequence[SSAValue] | None],
        properties: Mapping[str, Attribute] | None = None,
        attributes: Mapping[str, Attribute] | None = None,
        result_types: Sequence[Attribute] = (),
        regions: Sequence[Region] = (),
    ) -> Self:
        """The op with its operands by name, in the order in which they are stored."""
        names = [name for name, _ in cls.get_irdl_definition().operands]
        flat, sizes = asm.sizes_of(operands.get(name) for name in names)
        known = dict(properties or {})
        if cls.is_segmented():
            known |= asm.segments(*sizes)
        return cls.create(
            operands=flat,
            result_types=result_types,
            properties=known,
            attributes=attributes or {},
            regions=regions,
        )

    def operand_called(self, name: str) -> SSAValue | None:
        """The operand of that name, or None where it is left out."""
        return getattr(self, name, None)


class DpsOp(PtoOp):
    """`pto.OP ins(%a, .. : A, ..) outs(%d : D) {..}`."""

    INS: ClassVar[tuple[str, ...]] = ()
    OUTS: ClassVar[tuple[str, ...]] = ("dst",)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Or, where no `ins` follows, whatever the parser makes of another form."""
        if parser._current_token.text not in ("ins", "outs"):
            made: Self = other_form(parser, cls)
            return made
        found, known = cls.parse_ins(parser)
        found |= cls.parse_outs(parser)
        more, others = asm.attribute_dict(parser, cls)
        trailing, tail = cls.parse_tail(parser)
        return cls.of_operands(found | trailing, cls.completed(found, known | more | tail), others)

    @classmethod
    def parse_ins(cls, parser: Parser) -> tuple[dict[str, SSAValue], dict[str, Attribute]]:
        """`ins(%a, %b : A, B)`; attributes may stand before the types."""
        if not parser.parse_optional_keyword("ins"):
            return {}, {}
        start = parser._current_token.span
        parser.parse_characters("(")
        names = asm.operand_names(parser)
        known, _ = asm.attribute_dict(parser, cls)
        parser.parse_characters(":")
        values = asm.resolved(parser, names, asm.type_list(parser))
        parser.parse_characters(")")
        return cls.named(parser, cls.INS, values, "ins", start), known

    @classmethod
    def parse_outs(cls, parser: Parser) -> dict[str, SSAValue]:
        """`outs(%d : D)`."""
        parser.parse_keyword("outs")
        start = parser._current_token.span
        parser.parse_characters("(")
        values = asm.typed_operands(parser)
        parser.parse_characters(")")
        return cls.named(parser, cls.OUTS, values, "outs", start)

    @classmethod
    def parse_tail(cls, parser: Parser) -> tuple[dict[str, SSAValue], dict[str, Attribute]]:
        """What some ops have after their attributes."""
        return {}, {}

    @classmethod
    def named(
        cls, parser: Parser, names: Sequence[str], values: Sequence[SSAValue], what: str, span: Any
    ) -> dict[str, SSAValue]:
        """The operands by name; a wrong number of them is refused."""
        needed = len(names) - len(cls.optional(names))
        if not needed <= len(values) <= len(names):
            takes = ", ".join(f"{name}?" if name in cls.optional(names) else name for name in names) or "nothing"
            asm.refuse(parser, f"{cls.name} takes {takes} in {what}, not {len(values)} operands.", COUNTS, span)
        return dict(zip(names, values, strict=False))

    @classmethod
    def optional(cls, names: Sequence[str]) -> list[str]:
        """Those of the operands that may be left out."""
        from xdsl.irdl import OptOperandDef

        definitions = dict(cls.get_irdl_definition().operands)
        return [name for name in names if isinstance(definitions[name], OptOperandDef)]

    @classmethod
    def completed(cls, operands: Mapping[str, SSAValue], known: dict[str, Attribute]) -> dict[str, Attribute]:
        """The attributes with what follows from the operands."""
        return known

    def print(self, printer: Printer) -> None:
        """The reverse of `parse`."""
        if ins := self.given(self.INS):
            printer.print_string(" ins(")
            asm.print_typed(printer, ins)
            printer.print_string(")")
        printer.print_string(" outs(")
        asm.print_typed(printer, self.given(self.OUTS))
        printer.print_string(")")
        self.print_told(printer)
        self.print_tail(printer)

    def print_tail(self, printer: Printer) -> None:
        """The reverse of `parse_tail`."""

    def given(self, names: Sequence[str]) -> list[SSAValue]:
        """The operands of those names that are there."""
        return [value for name in names if (value := self.operand_called(name)) is not None]


def other_form(parser: Parser, made: type[Any]) -> Any:
    """The op in a form that is not this dialect's own: a reader of the documents may know it."""
    reader = getattr(parser, "parse_other_form", None)
    if reader is None:
        asm.refuse(parser, f"'ins' is wanted after {made.name}, not {parser._current_token.text[:40]!r}.", SYNTAX)
    return reader(made)
