"""Flat ops: `[%d =] OP %a, %b {..} : (A, B) -> D`, each part after the operands optional.

Level 1 and the lines of PTO-AS are both of this make; `forms` says what differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from xdsl.ir import Attribute, Operation, Region, SSAValue, TypeAttribute
from xdsl.parser import UnresolvedOperand
from xdsl.parser.core import ForwardDeclaredValue
from xdsl.parser.generic_parser import ParserState
from xdsl.utils.lexer import Input, Span
from xdsl.utils.mlir_lexer import MLIRTokenKind

from ptokit.errors import nearest
from ptokit.findings import Severity
from ptokit.ir.dialect import assembly as asm
from ptokit.ir.dialect.attributes import attribute_of_text
from ptokit.ir.dialect.ops import AllocTileOp, DpsOp, MScatterOp
from ptokit.ir.dialect.refused import COUNTS, STRUCTURE, SYNTAX, UNKNOWN_WORD, Misread
from ptokit.ir.dialect.types import DocType, MemrefDocType, UnknownType, is_placeholder, type_of_text
from ptokit.ir.documents.forms import (
    FLAGS,
    FOREIGN_SUFFIXES,
    SUFFIXES,
    Order,
    Style,
    expected_kinds,
    flat_ins,
    orders,
)
from ptokit.ir.documents.lexing import DocumentLexer
from ptokit.ir.documents.matching import Matched, Written, match
from ptokit.ir.documents.results import result_type
from ptokit.ir.documents.types import GM, agree, real_type
from ptokit.ir.parsing import PtoParser
from ptokit.ir.places import Place, Source

BY_KIND = "PTO-P006"
OLDER_FORM = "PTO-P016"

OPEN_NAMES = ("memref", "tile", "group")
"""Types that may be written without anything in brackets."""

Attributes = dict[str, Attribute]
Names = list[UnresolvedOperand]


@dataclass
class Signature:
    """What follows the `:` of a flat op."""

    types: list[Written] = field(default_factory=list)
    in_parentheses: bool = False
    has_arrow: bool = False
    result: Attribute | None = None
    result_span: Span[str] | None = None


class FlatParser(PtoParser):
    """The dialect's parser with the types of the documents, and with flat ops."""

    def __init__(self, text: str, file: str = "<text>", *, lenient: bool = False) -> None:
        super().__init__("", file, lenient=lenient)
        self.source = Source(text, file)
        self.counts = {"dps": 0, "ssa": 0, "as": 0}
        """How many ops were written in each form."""
        self.document_types: list[Span[str]] = []
        self._other_forms: set[Operation] = set()
        self._implied: dict[Operation, Operation] = {}
        """An op -> the one that its text says too, and that belongs before it."""
        self._bound_names: list[str] = []
        self._parser_state = ParserState(DocumentLexer(Input(text, file)))

    @property
    def _op_text(self) -> str:
        """The name of the op that is being read, as it is written."""
        return self.lexer.input.content[slice(*self._place.name)]

    @property
    def _is_prefixed(self) -> bool:
        return self._op_text.startswith("pto.")

    @property
    def _is_bound(self) -> bool:
        return self._place.start != self._place.name[0]

    def _parse_op_result_list(self) -> list[tuple[Span[str], int]]:
        found = super()._parse_op_result_list()
        self._bound_names = [span.text[1:] for span, _ in found]
        return found

    # Types

    def parse_optional_type(self) -> TypeAttribute | None:
        """A type; `memref` alone is a placeholder."""
        token = self._current_token
        if token.text == "memref" and not self.lexer.input.content.startswith("<", token.span.end):
            self._consume_token()
            return MemrefDocType("...")
        return super().parse_optional_type()

    def _pto_type(self, name: str, span: Span[str]) -> Any:
        if name in OPEN_NAMES and not self.lexer.input.content.startswith("<", span.end):
            self._go_on_at(span.end)
            return type_of_text(name, "...")
        written: Attribute = super()._pto_type(name, span)
        if name in OPEN_NAMES and isinstance(written, DocType) and not written.text:
            return type_of_text(name, "...")
        meant = real_type(written)
        if meant != written:
            self.document_types.append(self.span(span.start, self._last_end))
        return meant

    def _of_type(self, value: SSAValue, wanted: Attribute, operand: UnresolvedOperand) -> SSAValue:
        """A placeholder contradicts nothing of its kind."""
        if isinstance(value.type, UnknownType) or not agree(value.type, wanted):
            return super()._of_type(value, wanted, operand)
        if isinstance(value, ForwardDeclaredValue) and is_placeholder(value.type):
            value._type = wanted
        return value

    def known(self, name: UnresolvedOperand) -> Attribute | None:
        """The type that a name has already."""
        values = self.ssa_values.get(name.operand_name)
        if values is None:
            early = self.forward_ssa_references.get(name.operand_name, {}).get(name.index)
            found = None if early is None else early.type
        else:
            found = values[name.index].type if name.index < len(values) else None
        return None if isinstance(found, UnknownType) else found

    def parse_optional_unresolved_operand(self) -> UnresolvedOperand | None:
        """`%a` or `%a#1`; what follows a blank is a flag, `%a #atomic=add`."""
        token = self._current_token
        if token.kind is not MLIRTokenKind.PERCENT_IDENT:
            return None
        if self.lexer.input.content.startswith("#", token.span.end):
            return super().parse_optional_unresolved_operand()
        self._consume_token()
        return UnresolvedOperand(token.span, 0)

    # Suffixes and flags

    def suffixes(self, base: str, given: Sequence[str], span: Span[str]) -> Attributes:
        """`.row.clamp.atomic_add` as attributes: each word in its place."""
        slots = SUFFIXES[base]
        found: Attributes = {}
        at, next_slot = span.end - sum(len(word) + 1 for word in given), 0
        for word in given:
            place = self.span(at + 1, at + 1 + len(word))
            number = next((i for i, slot in enumerate(slots) if word in slot.suffixes), None)
            if number is None:
                self._no_suffix(base, word, place)
            if number < next_slot:
                self._misplaced_suffix(base, given, word, place)
            slot, next_slot, at = slots[number], number + 1, place.end
            found[slot.attribute] = attribute_of_text(slot.kind, word.removeprefix(slot.lead))
            self._place.attributes[slot.attribute] = (place.start, place.end)
        return found

    def _no_suffix(self, base: str, word: str, place: Span[str]) -> NoReturn:
        known = [one for slot in SUFFIXES[base] for one in slot.suffixes]
        reasons = [why for (op, lead), why in FOREIGN_SUFFIXES.items() if op == base and word.startswith(lead)]
        why = f" {reasons[-1]}" if reasons else nearest(word, known)
        shown = place if word else self.span(place.start - 1, place.end)
        self.refuse(f"{base} has no suffix .{word}.{why}", UNKNOWN_WORD, shown, f"Known: {', '.join(known)}.")

    def _misplaced_suffix(self, base: str, given: Sequence[str], word: str, place: Span[str]) -> NoReturn:
        rank = {one: i for i, slot in enumerate(SUFFIXES[base]) for one in slot.suffixes}
        in_order = {rank.get(one, len(rank)): one for one in reversed(given)}
        spelt = ".".join([base, *(in_order[i] for i in sorted(in_order))])
        sentence = f"The suffix .{word} cannot stand here: mode, out of bounds, atomic, conflict, once each."
        self.refuse(sentence, SYNTAX, place, f"Write {spelt}.")

    def _flags(self, made: type[DpsOp]) -> Attributes:
        """`#atomic=add`."""
        found: Attributes = {}
        known = FLAGS.get(made.name, {})
        while self._current_token.kind is MLIRTokenKind.HASH_IDENT:
            flag = self._current_token
            name = flag.text[1:]
            if name not in known:
                self.refuse(f"{made.name} has no {flag.text}.{nearest(name, known)}", UNKNOWN_WORD, flag.span)
            attribute, kind_of, lead = known[name]
            self._consume_token()
            self.parse_characters("=")
            word = self._current_token
            self._consume_token()
            try:
                found[attribute] = attribute_of_text(kind_of, lead + word.text)
            except Misread as wrong:
                self.refuse(wrong.sentence, UNKNOWN_WORD, word.span)
            self._place.attributes[attribute] = (flag.span.start, word.span.end)
        return found

    # The op

    def flat(self, made: type[DpsOp], suffixes: Attributes) -> Operation:
        """The op after its name."""
        names = asm.operand_names(self)
        given, others, signature = self.after_operands(made)
        return self.flat_op(made, names, {**suffixes, **given}, others, signature, suffixed=bool(suffixes))

    def after_operands(self, made: type[DpsOp]) -> tuple[Attributes, Attributes, Signature]:
        """Flags, attributes and types, flags among all of them."""
        given = self._flags(made)
        known, others = asm.attribute_dict(self, made)
        given |= known | self._flags(made)
        signature = self.signature()
        return given | self._flags(made), others, signature

    def flat_op(
        self,
        made: type[DpsOp],
        names: Names,
        known: Attributes,
        others: Attributes,
        signature: Signature,
        *,
        suffixed: bool = False,
    ) -> Operation:
        """The op from its parts."""
        says_nothing = signature.has_arrow and signature.result is None
        style = Style(self._is_prefixed, suffixed, signature.in_parentheses, says_nothing, self._is_bound)
        self.count("ssa" if style.prefixed and not suffixed else "as")
        matched = self._matched(made, names, signature, style)
        values: dict[str, SSAValue] = {
            role: self.resolve_operand(name, one.type)
            for role, name, one in zip(matched.order, names, matched.types, strict=True)
        }
        if made is MScatterOp and suffixed and "coalesce" in known:
            self._first_custom_form(matched, known)
        alloc = self._destination(made, values, known, signature) if style.bound else None
        op = made.of_operands(values, made.completed(values, known), others)
        self._other_forms.add(op)
        if alloc is not None:
            self._implied[op] = alloc
        return op

    def count(self, form: str) -> None:
        """One more op in that form."""
        self.counts[form] += 1

    def signature(self) -> Signature:
        """`: A, B` or `: (A, B)`, either with `-> D` or `-> ()`; or nothing."""
        found = Signature()
        if not self.parse_optional_characters(":"):
            return found
        found.in_parentheses = self.parse_optional_characters("(") is not None
        if not (found.in_parentheses and self._current_token.text == ")"):
            found.types.append(self._written())
            while self.parse_optional_characters(","):
                found.types.append(self._written())
        if found.in_parentheses:
            self.parse_characters(")")
        if self.parse_optional_characters("->"):
            found.has_arrow = True
            found.result_span = self._current_token.span
            found.result = self._result()
        return found

    def _written(self) -> Written:
        start = self._current_token.span.start
        read = self.parse_type()
        return Written(read, self.lexer.input.content[start : self._last_end])

    def _result(self) -> Attribute | None:
        if not self.parse_optional_characters("("):
            return self.parse_type()
        if self.parse_optional_characters(")"):
            return None
        read = self.parse_type()
        self.parse_characters(")")
        return read

    # Operands

    def _matched(self, made: type[DpsOp], names: Names, signature: Signature, style: Style) -> Matched:
        possible = self._orders(made, names, style)
        found = match(made, possible, [self.known(name) for name in names], self.types_of(names, signature))
        if found.moved:
            fix = (
                f"Write the types as {', '.join(one.text for one in found.types)}."
                if found.moved == "types"
                else f"Write the operands in the order {', '.join(possible[0])}."
            )
            self.matched_by_kind(found.moved, found.order, names, fix)
        return found

    def matched_by_kind(self, what: str, order: Order, names: Names, fix: str) -> None:
        """Say that the text is not in the form's order."""
        sentence = f"The {what} of {self._op_text} are not in its order; matched by kind they are {', '.join(order)}."
        self.note(BY_KIND, Severity.WARNING, sentence, self.span(names[0].span.start, self._last_end), fix)

    def _orders(self, made: type[DpsOp], names: Names, style: Style) -> list[Order]:
        ins, outs = flat_ins(made), () if style.bound else made.OUTS
        count, needed = len(names) - len(outs), len(ins) - len(made.optional(ins))
        if not needed <= count <= len(ins):
            takes = [f"{name}?" if name in ins[needed:] else name for name in orders(made, ins, style)[0]]
            sentence = f"{self._op_text} takes {', '.join(takes)}, not {len(names)} operand{'s' * (len(names) != 1)}."
            self.refuse(sentence, COUNTS, self.span(names[0].span.start, names[-1].span.end))
        return orders(made, ins[:count], style)

    def types_of(self, names: Names, signature: Signature) -> list[Written]:
        """The written types; where there are none, those of the definitions."""
        if signature.types:
            if len(signature.types) != len(names):
                sentence = f"{len(names)} operands are followed by {len(signature.types)} types."
                self.refuse(sentence, COUNTS, names[-1].span, "Write one type for each operand.")
            return signature.types
        return [Written(self._needed(name)) for name in names]

    def _needed(self, name: UnresolvedOperand) -> Attribute:
        found = self.known(name)
        if found is None:
            sentence = f"%{name.operand_name} has no type here and is not defined before."
            self.refuse(sentence, COUNTS, name.span, "Write the types after a ':'.")
        return found

    def _first_custom_form(self, matched: Matched, known: Attributes) -> None:
        """An index of one column under `.row`: the first custom form of a5 (SEMANTICS 2.4)."""
        index = dict(zip(matched.order, matched.types, strict=True))["idx"]
        is_row = known["coalesce"] == attribute_of_text("coalesce", "row")
        if not is_row or "scatterConflict" in known or not index.is_column_of_documents:
            return
        known["scatterConflict"] = attribute_of_text("scatter_conflict", "default")
        sentence = (
            "The index has one column: this is the first custom form of a5, where duplicates are left to the "
            "scheduler; it is read with conflict default."
        )
        fix = "Today's form has an index of one row, 1xR."
        self.note(OLDER_FORM, Severity.NOTE, sentence, self.span(*self._place.name), fix)

    # Results

    def _destination(
        self, made: type[DpsOp], values: dict[str, SSAValue], known: Mapping[str, Attribute], signature: Signature
    ) -> Operation:
        """The tile that a result stands for: allocated before the op, and its operand."""
        if expected_kinds(made, made.OUTS)[0] == GM:
            sentence = f"{self._op_text} has no result: it writes to its {made.OUTS[0]}."
            self.refuse(sentence, COUNTS, self.span(*self._place.name))
        if signature.has_arrow and signature.result is None:
            sentence = f"{self._op_text} has a name for its result, and the type ()."
            self.refuse(sentence, STRUCTURE, signature.result_span)
        result = signature.result or result_type(made, values, known)
        alloc = AllocTileOp.of_operands({"addr": self.address_of_result()}, result_types=[result])
        values["dst"] = alloc.tile
        return alloc

    def address_of_result(self) -> SSAValue | None:
        """Where the text has placed the tile that this op defines."""
        return None

    def _bind(self, op: Operation, bound: list[tuple[Span[str], int]], place: Place) -> None:
        before = self._implied.get(op)
        if before is None or before.results[0] is not getattr(op, "dst", None):
            super()._bind(op, bound, place)
            return
        self.places[before] = place
        super()._bind(before, bound, place)

    def _end_scope(self, region: Region, takes_arguments: bool) -> None:
        for op, before in list(self._implied.items()):
            if op.parent is not None:
                op.parent.insert_op_before(before, op)
                self.places.setdefault(before, self.places[op])
                del self._implied[op]
        super()._end_scope(region, takes_arguments)
