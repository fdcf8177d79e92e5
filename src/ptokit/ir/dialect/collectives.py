"""Collectives: `pto.comm.tscatter`, `tgather`, `tbroadcast`, `treduce`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from ptokit.ir.dialect import assembly as asm
from ptokit.ir.dialect import attributes as attrs
from ptokit.ir.dialect.attributes import word
from ptokit.ir.dialect.base import PtoOp
from ptokit.ir.dialect.refused import COUNTS

if TYPE_CHECKING:
    from xdsl.printer import Printer


class CommOp(PtoOp):
    """`pto.comm.OP(%a, recv(%ping[, %pong]), group(%g0, ..) : A, PING[, PONG], G0, ..) {root = 0 : i32}`."""

    FIRST: ClassVar[tuple[str, ...]] = ("src",)
    """The operands before `recv`."""
    LAST: ClassVar[tuple[str, ...]] = ("reduceOp", "root")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Types stand at the end, in the order of the operands."""
        start = parser._current_token.span
        parser.parse_characters("(")
        names = []
        for _ in cls.FIRST:
            names.append(parser.parse_unresolved_operand())
            parser.parse_characters(",")
        received = cls._list(parser, "recv")
        parser.parse_characters(",")
        members = cls._list(parser, "group")
        parser.parse_characters(":")
        values = asm.resolved(parser, names + received + members, asm.type_list(parser))
        parser.parse_characters(")")
        if len(received) > 2:
            asm.refuse(parser, f"{cls.name} receives by one tile or two, not {len(received)}.", COUNTS, start)
        known, others = asm.attribute_dict(parser, cls)
        found: dict[str, SSAValue | Sequence[SSAValue] | None] = dict(zip(cls.FIRST, values, strict=False))
        tiles = values[len(cls.FIRST) :][: len(received)]
        found |= {"ping": tiles[0], "pong": tiles[1] if len(tiles) > 1 else None}
        found["group"] = values[len(names) + len(received) :]
        return cls.of_operands(found, known, others)

    @classmethod
    def _list(cls, parser: Parser, keyword: str) -> list[Any]:
        parser.parse_keyword(keyword)
        parser.parse_characters("(")
        names = asm.operand_names(parser)
        parser.parse_characters(")")
        return names

    def print(self, printer: Printer) -> None:
        """The reverse of `parse`."""
        first, tiles, members = self.given_operands
        printer.print_string("(")
        asm.print_operands(printer, first)
        for name, values in (("recv", tiles), ("group", members)):
            printer.print_string(f", {name}(")
            asm.print_operands(printer, values)
            printer.print_string(")")
        printer.print_string(" : ")
        asm.print_types(printer, [*first, *tiles, *members])
        printer.print_string(")")
        self.print_told(printer)

    def verify_(self) -> None:
        """The pretty form has no word for a group of nobody."""
        if not self.given_operands[2]:
            raise VerifyException("the group is empty")

    @property
    def given_operands(self) -> tuple[list[SSAValue], list[SSAValue], list[SSAValue]]:
        """The operands before `recv`, the tiles in it, the members of the group."""
        first = [value for name in self.FIRST if (value := self.operand_called(name)) is not None]
        tiles = [value for name in ("ping", "pong") if (value := self.operand_called(name)) is not None]
        return first, tiles, list(getattr(self, "group", ()))

    @property
    def collective(self) -> str:
        """Which of them it is: `tscatter`."""
        return self.name.rpartition(".")[2]

    @property
    def root_rank(self) -> int | None:
        """Which rank is the root."""
        found = word(self.properties.get("root"))
        return found if isinstance(found, int) else None


@irdl_op_definition
class CommTScatterOp(CommOp):
    """The root gives each rank its part of `src`."""

    name = "pto.comm.tscatter"
    src = operand_def()
    ping = operand_def()
    pong = opt_operand_def()
    group = var_operand_def()
    root = opt_prop_def(IntegerAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)


@irdl_op_definition
class CommTGatherOp(CommOp):
    """The root puts the ranks' parts together in `dst`."""

    name = "pto.comm.tgather"
    dst = operand_def()
    ping = operand_def()
    pong = opt_operand_def()
    group = var_operand_def()
    root = opt_prop_def(IntegerAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    FIRST: ClassVar = ("dst",)


@irdl_op_definition
class CommTBroadcastOp(CommOp):
    """The root gives every rank all of `src`."""

    name = "pto.comm.tbroadcast"
    src = operand_def()
    ping = operand_def()
    pong = opt_operand_def()
    group = var_operand_def()
    root = opt_prop_def(IntegerAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)


@irdl_op_definition
class CommTReduceOp(CommOp):
    """The root folds what the ranks hold into `dst`."""

    name = "pto.comm.treduce"
    dst = operand_def()
    acc = operand_def()
    ping = operand_def()
    pong = opt_operand_def()
    group = var_operand_def()
    reduce_op = opt_prop_def(attrs.ReduceOpAttr, prop_name="reduceOp")
    root = opt_prop_def(IntegerAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    FIRST: ClassVar = ("dst", "acc")
