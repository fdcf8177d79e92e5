"""Order: flags, events, barriers; sections, which say where an op runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Self

from xdsl.ir import Attribute, Block, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.traits import NoTerminator

from ptokit.ir.dialect import assembly as asm
from ptokit.ir.dialect import attributes as attrs
from ptokit.ir.dialect.base import INDEX, PtoOp
from ptokit.ir.dialect.refused import STRUCTURE

if TYPE_CHECKING:
    from xdsl.printer import Printer


def _endpoints(parser: Parser, points: Sequence[tuple[str, str]]) -> list[Attribute]:
    """`[<A>, <B>, <C>]`."""
    parser.parse_characters("[")
    found: list[Attribute] = []
    for i, (name, kind) in enumerate(points):
        if i:
            parser.parse_characters(",")
        start = parser.pos
        found.append(asm.word_in_brackets(parser, kind))
        asm.mark(parser, name, start)
    parser.parse_characters("]")
    return found


class _EndpointsOp(PtoOp):
    """`pto.OP[<A>, <B>, <C>]`: the attributes are the operands."""

    POINTS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("src_pipe", "pipe"),
        ("dst_pipe", "pipe"),
        ("event_id", "event"),
    )
    """The property and the attribute that it holds."""
    IN_FULL: ClassVar[tuple[str, ...]] = ()
    """Attributes that are always written in full."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Short and long spellings."""
        found = _endpoints(parser, cls.POINTS)
        known, others = asm.attribute_dict(parser, cls)
        points = {name: attr for (name, _), attr in zip(cls.POINTS, found, strict=True)}
        return cls.of_operands({}, points | known, others)

    @property
    def told(self) -> dict[str, Attribute]:
        """Without what stands between the brackets."""
        return {name: attr for name, attr in super().told.items() if name not in dict(self.POINTS)}

    def print(self, printer: Printer) -> None:
        """The reverse of `parse`."""
        printer.print_string("[")
        printer.print_list(self.POINTS, lambda point: self.print_point(printer, *point))
        printer.print_string("]")
        self.print_told(printer)

    def print_point(self, printer: Printer, name: str, kind: str) -> None:
        """One of the endpoints."""
        attr = self.properties[name]
        if kind in self.IN_FULL or not isinstance(attr, attrs.WordAttr):
            printer.print_attribute(attr)
        else:
            printer.print_string(f"<{attr.data}>")


@irdl_op_definition
class SetFlagOp(_EndpointsOp):
    """`pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]`."""

    name = "pto.set_flag"
    src_pipe = prop_def(attrs.PipeAttr)
    dst_pipe = prop_def(attrs.PipeAttr)
    event_id = prop_def(attrs.EventAttr)


@irdl_op_definition
class WaitFlagOp(_EndpointsOp):
    """`pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]`."""

    name = "pto.wait_flag"
    src_pipe = prop_def(attrs.PipeAttr)
    dst_pipe = prop_def(attrs.PipeAttr)
    event_id = prop_def(attrs.EventAttr)


class _DynamicFlagOp(PtoOp):
    """`pto.OP[<A>, <B>, %id]`."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """The event id is a value of type index."""
        parser.parse_characters("[")
        src = asm.word_in_brackets(parser, "pipe")
        parser.parse_characters(",")
        dst = asm.word_in_brackets(parser, "pipe")
        parser.parse_characters(",")
        event = parser.resolve_operand(parser.parse_unresolved_operand(), INDEX)
        parser.parse_characters("]")
        known, others = asm.attribute_dict(parser, cls)
        return cls.of_operands({"event_id": event}, {"src_pipe": src, "dst_pipe": dst} | known, others)

    @property
    def told(self) -> dict[str, Attribute]:
        """Without what stands between the brackets."""
        return {name: attr for name, attr in super().told.items() if name not in ("src_pipe", "dst_pipe")}

    def print(self, printer: Printer) -> None:
        """The reverse of `parse`."""
        ends = (self.properties["src_pipe"], self.properties["dst_pipe"])
        printer.print_string("[" + "".join(f"<{one.data}>, " for one in ends if isinstance(one, attrs.WordAttr)))
        asm.print_operands(printer, self.operands)
        printer.print_string("]")
        self.print_told(printer)


@irdl_op_definition
class SetFlagDynOp(_DynamicFlagOp):
    """`pto.set_flag_dyn[<PIPE_MTE2>, <PIPE_V>, %id]`."""

    name = "pto.set_flag_dyn"
    event_id = operand_def(INDEX)
    src_pipe = prop_def(attrs.PipeAttr)
    dst_pipe = prop_def(attrs.PipeAttr)


@irdl_op_definition
class WaitFlagDynOp(_DynamicFlagOp):
    """`pto.wait_flag_dyn[<PIPE_MTE2>, <PIPE_V>, %id]`."""

    name = "pto.wait_flag_dyn"
    event_id = operand_def(INDEX)
    src_pipe = prop_def(attrs.PipeAttr)
    dst_pipe = prop_def(attrs.PipeAttr)


class _EventOp(_EndpointsOp):
    """`pto.OP[#pto.pipe_event_type<A>, #pto.pipe_event_type<B>, <EVENT_ID1>]`."""

    POINTS: ClassVar = (("src_op", "pipe_event_type"), ("dst_op", "pipe_event_type"), ("event_id", "event"))
    IN_FULL: ClassVar = ("pipe_event_type",)


@irdl_op_definition
class RecordEventOp(_EventOp):
    """What comes after an instruction of the first kind may be waited for by one of the second."""

    name = "pto.record_event"
    src_op = prop_def(attrs.PipeEventTypeAttr)
    dst_op = prop_def(attrs.PipeEventTypeAttr)
    event_id = prop_def(attrs.EventAttr)


@irdl_op_definition
class WaitEventOp(_EventOp):
    """The wait for a recorded event."""

    name = "pto.wait_event"
    src_op = prop_def(attrs.PipeEventTypeAttr)
    dst_op = prop_def(attrs.PipeEventTypeAttr)
    event_id = prop_def(attrs.EventAttr)


@irdl_op_definition
class BarrierSyncOp(_EndpointsOp):
    """`pto.barrier_sync[#pto.pipe_event_type<TVEC>]`."""

    name = "pto.barrier_sync"
    op_type = prop_def(attrs.PipeEventTypeAttr)

    POINTS: ClassVar = (("op_type", "pipe_event_type"),)
    IN_FULL: ClassVar = ("pipe_event_type",)


@irdl_op_definition
class BarrierOp(PtoOp):
    """`pto.barrier <PIPE_ALL>`."""

    name = "pto.barrier"
    pipe = prop_def(attrs.PipeAttr)

    @classmethod
    def parse(cls, parser: Parser) -> BarrierOp:
        """Short and long spellings."""
        found = asm.word_in_brackets(parser, "pipe")
        known, others = asm.attribute_dict(parser, cls)
        return cls.of_operands({}, {"pipe": found} | known, others)

    @property
    def told(self) -> dict[str, Attribute]:
        """Without the pipe."""
        return {name: attr for name, attr in super().told.items() if name != "pipe"}

    def print(self, printer: Printer) -> None:
        """The reverse of `parse`."""
        printer.print_string(f" <{self.pipe.data}>")
        self.print_told(printer)


@irdl_op_definition
class TSyncOp(PtoOp):
    """`pto.tsync ins(%a, .. : A, ..)`: the wait for the events of those values."""

    name = "pto.tsync"
    events = var_operand_def()

    @classmethod
    def parse(cls, parser: Parser) -> TSyncOp:
        """`ins` may be left out, and then nothing is named."""
        values: list[SSAValue] = []
        if parser.parse_optional_keyword("ins"):
            parser.parse_characters("(")
            values = asm.typed_operands(parser)
            parser.parse_characters(")")
        known, others = asm.attribute_dict(parser, cls)
        return cls.of_operands({"events": values}, known, others)

    def print(self, printer: Printer) -> None:
        """The reverse of `parse`."""
        if self.events:
            printer.print_string(" ins(")
            asm.print_typed(printer, self.events)
            printer.print_string(")")
        self.print_told(printer)


# Regions


class _SectionOp(PtoOp):
    """`pto.section.KIND { .. }`."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Attributes may stand before the braces of the body."""
        parsed = parser.parse_optional_attr_dict_with_keyword()
        at = parser._current_token.span
        body = parser.parse_region()
        if len(body.blocks) > 1:
            asm.refuse(parser, f"{cls.name} has one block, not {len(body.blocks)}.", STRUCTURE, at)
        if not body.blocks:
            body.add_block(Block())
        known, others = asm.split_attributes(cls, parsed.data if parsed else {})
        return cls.of_operands({}, known, others, regions=[body])

    def print(self, printer: Printer) -> None:
        """The reverse of `parse`."""
        printer.print_op_attributes(self.told, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.regions[0], print_empty_block=False)


@irdl_op_definition
class SectionVectorOp(_SectionOp):
    """What runs on the vector cores."""

    name = "pto.section.vector"
    body = region_def()
    traits = traits_def(NoTerminator())


@irdl_op_definition
class SectionCubeOp(_SectionOp):
    """What runs on the cube cores."""

    name = "pto.section.cube"
    body = region_def()
    traits = traits_def(NoTerminator())
