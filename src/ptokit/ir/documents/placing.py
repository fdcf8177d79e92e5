"""Manual mode: `pto.tassign %t, @tile(0x1000)`.

The name stands for the placed tile from there on. A tile may be placed before the op that defines it, as the
documents do: `pto.tassign %d, @tile(0x1000)`, then `%d = pto.mgather ..`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.utils.lexer import Span

from ptokit.ir.dialect.ops import TAssignOp
from ptokit.ir.dialect.refused import STRUCTURE, SYNTAX
from ptokit.ir.dialect.types import UnknownType
from ptokit.ir.documents.flat import FlatParser
from ptokit.ir.documents.results import OPEN_TILE
from ptokit.ir.places import Place


@dataclass(frozen=True)
class EarlyPlace:
    """A TASSIGN of a name that nothing has defined yet."""

    name: UnresolvedOperand
    constant: ConstantOp
    place: Place
    type: Attribute | None


class PlacingParser(FlatParser):
    """The parser of flat ops with TASSIGN as the documents write it."""

    def __init__(self, text: str, file: str = "<text>", *, lenient: bool = False) -> None:
        super().__init__(text, file, lenient=lenient)
        self._early_places: dict[str, EarlyPlace] = {}
        self._after: dict[Operation, Operation] = {}

    def tassign(self) -> Operation:
        """`%t, @tile(0x1000)`, `%t, %addr : T, dtype` or `ins(%t, %addr : T, i64)`.

        Without a result the name stands for the placed tile from here on.
        """
        in_ins = self.parse_optional_keyword("ins") is not None
        if in_ins:
            self.parse_characters("(")
        name = self.parse_unresolved_operand()
        self.parse_characters(",")
        constant: ConstantOp | None = None
        if self._current_token.text.startswith("%"):
            address: SSAValue = self.resolve_operand(self.parse_unresolved_operand(), i64)
        else:
            constant = self._address()
            address = constant.result
        of_type = self._assigned_type()
        if in_ins:
            self.parse_characters(")")
        self.count("ssa" if self._is_prefixed else "as")
        if constant is not None and not self._is_bound and self._is_new(name):
            self._early_places[name.operand_name] = EarlyPlace(name, constant, self._place, of_type)
            return constant
        tile = self.resolve_operand(name, of_type or self.known(name) or UnknownType(""))
        op = TAssignOp.of_operands({"tile": tile, "addr": address}, result_types=[tile.type])
        if constant is not None:
            self._implied[op] = constant
        if not self._is_bound:
            self._rename(name.operand_name, op)
        return op

    def _address(self) -> ConstantOp:
        """`@tile(0x1000)`."""
        token = self._current_token
        if token.text != "@tile":
            self.refuse(f"An address is wanted here, not {token.text!r}.", SYNTAX, token.span, "Write @tile(0x1000).")
        self._consume_token()
        self.parse_characters("(")
        at = self._current_token.span
        address = self.parse_integer(allow_boolean=False, allow_negative=False)
        if address >= 1 << 63:
            self.refuse("The address does not fit into 64 bits.", STRUCTURE, at)
        self.parse_characters(")")
        return ConstantOp(IntegerAttr(address, i64))

    def _assigned_type(self) -> Attribute | None:
        """`: T, dtype`, where it is written."""
        if not self.parse_optional_characters(":"):
            return None
        of_type = self.parse_type()
        if self.parse_optional_characters(","):
            at = self._current_token
            if at.text == "dtype":
                self._consume_token()
            elif self.parse_type() != i64:
                self.refuse("An address is an i64.", STRUCTURE, at.span)
        return of_type

    def _is_new(self, name: UnresolvedOperand) -> bool:
        return name.operand_name not in self.ssa_values and name.operand_name not in self.forward_ssa_references

    def _rename(self, name: str, op: TAssignOp) -> None:
        self.ssa_values[name] = (op.placed,)
        self.names[op.placed] = name

    # Tiles that are placed before anything defines them

    def resolve_operand(self, operand: UnresolvedOperand, wanted: Any) -> Any:
        """The value of that name; one that is placed and not defined comes from outside."""
        early = self._early_places.pop(operand.operand_name, None)
        if early is not None:
            self._from_outside(early, early.type or wanted)
        return super().resolve_operand(operand, wanted)

    def _from_outside(self, early: EarlyPlace, of_type: Attribute) -> None:
        tile = self._stand_in(early.name, of_type)
        op = TAssignOp.of_operands({"tile": tile, "addr": early.constant.result}, result_types=[tile.type])
        self.places[op] = early.place
        self._after[early.constant] = op
        self._rename(early.name.operand_name, op)

    def address_of_result(self) -> SSAValue | None:
        """`pto.tassign %d, @tile(0x1000)` before `%d = ..`."""
        names = [name for name in self._bound_names if name in self._early_places]
        return self._early_places.pop(names[0]).constant.result if names else None

    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span[str]) -> None:
        if name in self._early_places:
            fix = "Place the tile after its definition, or with addr = on it."
            self.refuse(f"%{name} is placed before it is defined.", STRUCTURE, span, fix)
        super()._register_ssa_definition(name, values, span)

    def parse_optional_region(self, arguments: Iterable[Parser.Argument] | None = None) -> Region | None:
        """A region; what is placed in it and not defined comes from outside."""
        outside = self._early_places
        self._early_places = {} if self._place.isolated else dict(outside)
        region = super().parse_optional_region(arguments)
        for name in [name for name in self._early_places if name not in outside]:
            early = self._early_places.pop(name)
            self._from_outside(early, early.type or OPEN_TILE)
        self._early_places = {n: e for n, e in outside.items() if self._place.isolated or n in self._early_places}
        return region

    def end_early_places(self) -> None:
        """What is placed and never defined comes from outside."""
        for early in self._early_places.values():
            self._from_outside(early, early.type or OPEN_TILE)
        self._early_places = {}

    def _end_scope(self, region: Region, takes_arguments: bool) -> None:
        self.end_early_places()
        for constant, op in list(self._after.items()):
            if constant.parent is not None:
                constant.parent.insert_op_after(op, constant)
                del self._after[constant]
        super()._end_scope(region, takes_arguments)
