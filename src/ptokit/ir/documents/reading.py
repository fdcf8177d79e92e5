"""From the documents' forms to the ops of the dialect.

PTO-AS, level 1 and the dialect's own form may stand in one text: each op is recognised by itself. A text that begins
with `.arg`, `.const` or a label holds functions: `name:` begins one, and without a label it is called `main`.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator
from xdsl.utils.lexer import Span
from xdsl.utils.mlir_lexer import MLIRTokenKind

from ptokit.findings import Severity
from ptokit.ir.dialect import assembly as asm
from ptokit.ir.dialect.ops import (
    AllocTileOp,
    ArgOp,
    CommOp,
    CommTGatherOp,
    CommTScatterOp,
    DpsOp,
    SkippedOp,
    TAssignOp,
    TScatterOp,
)
from ptokit.ir.dialect.refused import COUNTS, OTHER_OP, STRUCTURE, SYNTAX, UNDEFINED
from ptokit.ir.dialect.types import UnknownType
from ptokit.ir.documents.flat import OLDER_FORM, Names, Signature
from ptokit.ir.documents.forms import SUFFIXES
from ptokit.ir.documents.lexing import DIRECTIVE, DocumentLexer
from ptokit.ir.documents.matching import as_spelt
from ptokit.ir.documents.placing import PlacingParser
from ptokit.ir.documents.results import staging_type
from ptokit.ir.documents.types import GROUP, kind, real_type
from ptokit.ir.parsing import _Scope
from ptokit.ir.places import Place

MAIN = "main"
"""The name of a function that has none."""

_COLLECTIVES: dict[str, type[CommTScatterOp | CommTGatherOp]] = {"tscatter": CommTScatterOp, "tgather": CommTGatherOp}


class DocumentParser(PlacingParser):
    """The dialect's parser with the forms of the documents."""

    def __init__(self, text: str, file: str = "<text>", *, lenient: bool = False) -> None:
        super().__init__(text, file, lenient=lenient)
        self._depth = 0
        self._has_ops = False

    @property
    def form(self) -> str:
        """dps, ssa or as; mixed where several are used."""
        used = [form for form, count in self.counts.items() if count]
        return (used or ["dps"])[0] if len(used) < 2 else "mixed"

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        """The whole text."""
        module = super().parse_module(allow_implicit_module)
        for op in module.walk():
            if isinstance(op, TAssignOp):
                _same_type(op.tile, op.placed)
        if self.form == "dps":
            for span in self.document_types:
                meant = real_type(as_spelt(span.text))
                sentence = f"{span.text} is a type of the documents; it is read as {meant}."
                self.note(OLDER_FORM, Severity.NOTE, sentence, span, f"Write {meant}.")
        return module

    # Labels and functions

    def parse_top_level(self) -> Operation | None:
        """The next op, function or alias."""
        self._skip_labels()
        if self._current_token.kind is MLIRTokenKind.EOF:
            return None
        op = super().parse_top_level()
        self._has_ops = self._has_ops or op is not None
        return op

    def parse_optional_operation(self) -> Operation | None:
        """The next op; a function where one begins."""
        self._skip_labels()
        return self._parse_function() if self._begins_function() else super().parse_optional_operation()

    def _parse_block_body(self, block: Block) -> None:
        self._depth += 1
        super()._parse_block_body(block)
        self._depth -= 1

    def _at_label(self) -> bool:
        token = self._current_token
        is_name = token.kind is MLIRTokenKind.BARE_IDENT and "." not in token.text
        return is_name and self.lexer.input.content.startswith(":", token.span.end)

    def _skip_labels(self) -> None:
        while self._at_label() and not self._begins_function():
            span = self._current_token.span
            sentence = f"Nothing refers to the label {span.text!r}; it is not kept."
            fix = "A label that begins a function stands first in the text or before `.arg`."
            self.note(OLDER_FORM, Severity.NOTE, sentence, span, fix)
            self._read_label()

    def _read_label(self) -> str:
        name = self._current_token.text
        self._consume_token()
        self._consume_token()
        return name

    def _begins_function(self) -> bool:
        """At a label or directive that stands first, or at a label before `.arg`, outside of everything."""
        token = self._current_token
        if self._depth or token.kind is not MLIRTokenKind.BARE_IDENT:
            return False
        if not self._at_label():
            return not self._has_ops and DIRECTIVE.fullmatch(token.text) is not None
        if not self._has_ops:
            return True
        lexer = self.lexer
        return isinstance(lexer, DocumentLexer) and lexer.word_after(token.span.end + 1) == ".arg"

    def _parse_function(self) -> Operation:
        """`name:`, then `.arg` lines and ops, up to the next function."""
        span = self._current_token.span
        name = self._read_label() if self._at_label() else MAIN
        outside = self.ssa_values, self.forward_ssa_references, self._scope, self._place
        self.ssa_values, self.forward_ssa_references, self._scope = {}, {}, _Scope()
        place = self._place = Place(span.start, name=(span.start, span.end), isolated=True)
        block = Block()
        self._has_ops = True
        self.count("as")
        self._parser_state.dialect_stack.append("func")
        self._parse_function_body(block)
        self._parser_state.dialect_stack.pop()
        self._take_arguments(block)
        region = Region(block)
        self._end_scope(region, False)
        self.ssa_values, self.forward_ssa_references, self._scope, self._place = outside
        place.end = self._last_end
        op = FuncOp(name, (list(block.arg_types), []), region)
        self.places[op] = place
        return op

    def _parse_function_body(self, block: Block) -> None:
        while True:
            self._skip_labels()
            if self._current_token.kind is MLIRTokenKind.EOF or self._begins_function():
                break
            if self._current_token.text == ".arg":
                span, of_type = self._named_type()
                self._register_ssa_definition(span.text[1:], [block.insert_arg(of_type, len(block.args))], span)
            elif (op := super().parse_optional_operation()) is not None:
                self._come_after(block.last_op, op)
                block.add_op(op)
            else:
                self.refuse("An op is wanted here.", SYNTAX)
        if block.last_op is None or not block.last_op.has_trait(IsTerminator):
            block.add_op(ReturnOp())

    def _take_arguments(self, block: Block) -> None:
        """What a function of PTO-AS does not define is an argument of it."""
        self.end_early_places()
        for (name, _), early in self._scope.early.items():
            of_type = early.stand_in.type
            sentence = f"%{name} is not defined; it is taken as an argument."
            self.note(UNDEFINED, Severity.NOTE, sentence, early.span, f"Write .arg %{name} : {of_type};")
            value = block.insert_arg(of_type, len(block.args))
            early.stand_in.replace_all_uses_with(value)
            self._scope.tell_skipped(name, value)
            self.names[value] = name
            if SSAValue.is_valid_name(name):
                value.name_hint = name
        self._scope.early.clear()
        self.forward_ssa_references.clear()

    # Directives

    def parse_operation(self) -> Operation:
        """An op in any form, or a directive."""
        text = self._current_token.text
        if text.startswith("."):
            self.count("as")
            return self._parse_arg() if text == ".arg" else self._parse_const()
        op = super().parse_operation()
        if isinstance(op, DpsOp | CommOp) and op not in self._other_forms:
            self.count("dps")
        return op

    def _parse_generic_operation(self, op_type: type[Operation]) -> Operation:
        op = super()._parse_generic_operation(op_type)
        self._other_forms.add(op)
        return op

    def _name_after_directive(self) -> Span[str]:
        directive = self._current_token.text
        self._consume_token()
        found = self._current_token
        if found.kind is not MLIRTokenKind.PERCENT_IDENT:
            self.refuse(f"The name of a value is wanted after {directive}, not {found.text!r}.", SYNTAX)
        self._consume_token()
        return found.span

    def _named_type(self) -> tuple[Span[str], Attribute]:
        """`.arg %a : T`."""
        span = self._name_after_directive()
        self.parse_characters(":")
        return span, self.parse_type()

    def _parse_arg(self) -> Operation:
        start = self.pos
        span, of_type = self._named_type()
        return self._defined(ArgOp.of_operands({}, result_types=[of_type]), span, start)

    def _parse_const(self) -> Operation:
        """`.const %c = 0 : index`."""
        start = self.pos
        span = self._name_after_directive()
        self.parse_characters("=")
        at = self._current_token.span
        value = self.parse_attribute()
        if not isinstance(value, IntegerAttr | FloatAttr | DenseIntOrFPElementsAttr):
            self.refuse(f"A constant is a number with its type, not {value}.", SYNTAX, at, "Write it like 0 : index.")
        return self._defined(ConstantOp(value), span, start)

    def _defined(self, op: Operation, span: Span[str], start: int) -> Operation:
        self.places[op] = Place(start, self._last_end, (start, span.end), results=[(span.start, span.end)])
        self._register_ssa_definition(span.text[1:], op.results, span)
        return op

    # Ops by other names, and in other forms

    def unknown_op(self, name: str, span: Span[str], bound: list[tuple[Span[str], int]]) -> Operation:
        """The op without `pto.`, with suffixes, or a collective."""
        bare = name.removeprefix("pto.")
        base, *suffixes = bare.split(".")
        if base in SUFFIXES and suffixes:
            made = self.ctx.get_optional_op(f"pto.{base}")
            assert made is not None
            assert issubclass(made, DpsOp)
            return self.flat(made, self.suffixes(base, suffixes, span))
        if bare == "tgather" and not (self.lenient and self._current_token.text == "ins"):
            return self._tgather(span)
        known = self.ctx.get_optional_op(f"pto.{bare}")
        if known is None or known is SkippedOp or bare != name:
            return super().unknown_op(name, span, bound)
        self.count("as")
        self._parser_state.dialect_stack.append("pto")
        op: Operation = known.parse(self)
        self._parser_state.dialect_stack.pop()
        return op

    def _begins_op(self, token: Any) -> bool:
        """Whether a skipped op ends before this token: the documents' ops have no dot in their names."""
        if super()._begins_op(token):
            return True
        starts_line = "\n" in self.lexer.input.content[self._last_end : token.span.start]
        if not starts_line or token.kind is not MLIRTokenKind.BARE_IDENT:
            return False
        is_known = self.ctx.get_optional_op(f"pto.{token.text}") is not None or token.text in _COLLECTIVES
        return is_known or self._at_label()

    def _tgather(self, span: Span[str]) -> Operation:
        if self._current_token.kind is not MLIRTokenKind.PERCENT_IDENT:
            sentence = "The gather from tile to tile is no op of this dialect; the collective is not written like that."
            self.refuse(sentence, OTHER_OP, span, "Write tgather %group, %dst : (!pto.group<..>, !pto.memref<..>).")
        return self._collective("tgather", asm.operand_names(self), self.signature())

    def parse_other_form(self, made: type[Any]) -> Any:
        """The op `made`, its name read, in a form that is not the dialect's own."""
        if made is TAssignOp:
            return self.tassign()
        if self._current_token.kind is not MLIRTokenKind.PERCENT_IDENT or not issubclass(made, DpsOp):
            return super().parse_other_form(made)
        if made is not TScatterOp:
            return self.flat(made, {})
        names = asm.operand_names(self)
        given, others, signature = self.after_operands(made)
        types = [*(one.type for one in signature.types), *map(self.known, names)]
        if any(kind(one) == GROUP for one in types):
            return self._collective("tscatter", names, signature)
        return self.flat_op(made, names, given, others, signature)

    # Collectives

    def _collective(self, base: str, names: Names, signature: Signature) -> Operation:
        """`tscatter %group, %src : (!pto.group<..>, !pto.memref<..>)`: the staging tile is ours to place."""
        written = self.types_of(names, signature)
        if len(names) != 2 or self._is_bound:
            sentence = f"The collective {self._op_text} takes a group and a tensor, and has no result."
            self.refuse(sentence, COUNTS, self.span(names[0].span.start, names[-1].span.end))
        kinds = [kind(self.known(name)) or kind(one.type) for name, one in zip(names, written, strict=True)]
        if kinds.count(GROUP) != 1:
            self.refuse(f"{self._op_text} %group, %tensor needs one !pto.group.", STRUCTURE, names[0].span)
        if kinds[0] != GROUP:
            self.matched_by_kind("operands", ("tensor", "group"), names, "Write the group first.")
            names = names[::-1]
        if kind(written[0].type) != GROUP:
            written = written[::-1]
        group, tensor = (self.resolve_operand(name, one.type) for name, one in zip(names, written, strict=True))
        made = _COLLECTIVES[base]
        staging = AllocTileOp.of_operands({}, result_types=[staging_type(tensor.type)])
        op = made.of_operands({made.FIRST[0]: tensor, "ping": staging.tile, "group": [group]})
        self._implied[op] = staging
        self._other_forms.add(op)
        self.count("ssa" if self._is_prefixed else "as")
        sentence = f"{self._op_text} with a group is the collective {made.name}, not the op from tile to tile."
        fix = "The op from tile to tile is written with ins(..) outs(..)."
        self.note(OTHER_OP, Severity.NOTE, sentence, self.span(*self._place.name), fix)
        return op


def _same_type(one: SSAValue, other: SSAValue) -> None:
    """What one of them does not know the other says."""
    if isinstance(one.type, UnknownType):
        one._type = other.type
    elif isinstance(other.type, UnknownType):
        other._type = one.type
