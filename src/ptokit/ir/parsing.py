"""Ops, values and scopes: the parser of the dialect."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import WhileOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.parser.core import ForwardDeclaredValue
from xdsl.traits import IsolatedFromAbove, IsTerminator
from xdsl.utils.lexer import Span
from xdsl.utils.mlir_lexer import MLIRTokenKind

from ptokit.errors import nearest
from ptokit.findings import Severity
from ptokit.ir.dialect.ops import ArgOp, DpsOp, PtoOp, SkippedOp
from ptokit.ir.dialect.refused import (
    COUNTS,
    OTHER_OP,
    STRUCTURE,
    SYNTAX,
    TOO_LARGE,
    UNDEFINED,
    UNKNOWN_OP,
)
from ptokit.ir.dialect.types import UnknownType
from ptokit.ir.places import Place
from ptokit.ir.soundness import ill_formed
from ptokit.ir.words import WordParser

if TYPE_CHECKING:
    from xdsl.context import Context

MOST_RESULTS = 1000
"""How many results an op may have."""


LONGEST_ALIAS = 20_000
"""How many characters an alias may stand for, when all that it is made of is written out."""

_ALIAS = re.compile(r"[#!][\w$.\-]+")
_NAMES_RESULTS = re.compile(r"(?::\d+)?\s*(?:,\s*%[\w$.\-]+(?::\d+)?\s*)*=")
_VALUE = re.compile(r"%[\w$.\-]+(?:#\d+)?")


@dataclass
class _Early:
    """A use of a value before its definition: the stand-in, and where it was named."""

    stand_in: SSAValue
    span: Span[str]


@dataclass
class _Scope:
    """What belongs to one function or module: uses that came before their definitions."""

    early: dict[tuple[str, int], _Early] = field(default_factory=dict)
    every: list[_Early] = field(default_factory=list)
    to_order: list[tuple[Operation, SSAValue, Span[str], str]] = field(default_factory=list)
    skipped: list[SkippedOp] = field(default_factory=list)

    def tell_skipped(self, name: str, value: SSAValue) -> None:
        """What was found out about a name belongs to the skipped ops that have it too."""
        spelt = re.compile(rf"%{re.escape(name)}(?![\w$.\-])")
        for op in self.skipped:
            if spelt.search(op.text.data):
                text = spelt.sub(f"%{{{len(op.operands)}}}", op.text.data)
                op.operands = [*op.operands, value]
                op.properties["text"] = StringAttr(text)


class PtoParser(WordParser):
    """The parser of the dialect: ops in either form, the place and the name of everything kept.

    A reader of another form may subclass it: `parse_other_form(made)` is called after the name of an op of the
    dialect that is not followed by `ins`, `unknown_op(name, span, bound)` for a name that no dialect has.
    """

    def __init__(self, text: str, file: str = "<text>", *, lenient: bool = False, ctx: Context | None = None) -> None:
        super().__init__(text, file, lenient=lenient, ctx=ctx)
        self.places: dict[Operation, Place] = {}
        self.names: dict[SSAValue, str] = {}
        self.generic_ops: list[Operation] = []
        self.pretty_count = self.generic_count = 0
        self._alias_sizes: dict[str, int] = {}
        self._scope = _Scope()

    # Operands

    def _parse_op_result(self) -> tuple[Span[str], int]:
        span, size = super()._parse_op_result()
        if size > MOST_RESULTS:
            self.refuse(f"An op with {size} results is too large.", TOO_LARGE, span)
        return span, size

    def resolve_operand(self, operand: UnresolvedOperand, wanted: Any) -> Any:
        """The value of that name; before its definition a stand-in."""
        name = operand.operand_name
        self._place.operands.append((operand.span.start, operand.span.end))
        values = self.ssa_values.get(name)
        if values is None:
            return self._stand_in(operand, wanted)
        if operand.index >= len(values):
            count = f"{len(values)} value{'s' if len(values) > 1 else ''}"
            self.refuse(f"%{name} is {count}; there is no %{name}#{operand.index}.", COUNTS, operand.span)
        return self._of_type(values[operand.index], wanted, operand)

    def _stand_in(self, operand: UnresolvedOperand, wanted: Attribute) -> SSAValue:
        known = self.forward_ssa_references.setdefault(operand.operand_name, {})
        found = known.get(operand.index)
        if found is None:
            found = known[operand.index] = ForwardDeclaredValue(wanted)
            early = _Early(found, operand.span)
            self._scope.early[operand.operand_name, operand.index] = early
            self._scope.every.append(early)
        return self._of_type(found, wanted, operand)

    def _of_type(self, value: SSAValue, wanted: Attribute, operand: UnresolvedOperand) -> SSAValue:
        has = value.type
        if isinstance(has, UnknownType):
            value._type = wanted
        elif has is not wanted and has != wanted and not isinstance(wanted, UnknownType):
            sentence = f"%{operand.operand_name} is {wanted} here, and {has} where it is defined or used first."
            self.refuse(sentence, STRUCTURE, operand.span, "Give it one type.")
        return value

    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span[str]) -> None:
        if name in self.ssa_values:
            self.refuse(f"%{name} is defined twice.", STRUCTURE, span, "Give the second value another name.")
        waiting = self.forward_ssa_references.get(name, {})
        for index, stand_in in waiting.items():
            early = self._scope.early.pop((name, index), None)
            if index >= len(values):
                self.refuse(f"%{name} is {len(values)} values; %{name}#{index} was used.", COUNTS, span)
            self._retype(stand_in, values[index])
            if early is not None:
                uses = [use.operation for use in stand_in.uses]
                self._scope.to_order += [(user, values[index], early.span, name) for user in uses]
            if stand_in.type != values[index].type:
                sentence = f"%{name} is defined as {values[index].type}, and was used as {stand_in.type}."
                self.refuse(sentence, STRUCTURE, span, "Give it one type.")
        super()._register_ssa_definition(name, values, span)
        for i, value in enumerate(values):
            self.names[value] = name if len(values) == 1 else f"{name}.{i}"

    def _retype(self, stand_in: SSAValue, value: SSAValue) -> None:
        if isinstance(value.type, UnknownType):
            value._type = stand_in.type

    # Ops

    def parse_operation(self) -> Operation:
        """An op in either form; where it stood is kept."""
        outer, place = self._place, Place(self.pos)
        self._place = place
        bound = self._parse_op_result_list()
        is_generic = self._current_token.kind is MLIRTokenKind.STRING_LIT
        op = self._skipped_or_parsed(place, is_generic, bound)
        place.end = self._last_end
        self.places[op] = place
        self._bind(op, bound, place)
        self._place = outer
        return op

    def _skipped_or_parsed(self, place: Place, is_generic: bool, bound: list[tuple[Span[str], int]]) -> Operation:
        token = self._current_token
        if is_generic:
            name = self.expect(self.parse_optional_str_literal, "the name of an op is wanted")
        elif token.kind is MLIRTokenKind.BARE_IDENT:
            name = token.text
            self._consume_token()
        else:
            self.refuse("The name of an op is wanted here.", SYNTAX)
        place.name = (token.span.start, token.span.end)
        made = self.ctx.get_optional_op(name, dialect_stack=self._parser_state.dialect_stack)
        if made is None or (made is SkippedOp and not (is_generic and self.lenient)):
            return self.unknown_op(name, token.span, bound)
        place.isolated = made.has_trait(IsolatedFromAbove)
        stack = self._parser_state.dialect_stack
        stack.append(made.dialect_name())
        if is_generic:
            op = self._parse_generic_operation(made)
        else:
            op = self._parse_while() if made is WhileOp else made.parse(self)
        stack.pop()
        self.pretty_count += not is_generic
        if (location := self.parse_optional_location()) is not None:
            op.location = location
        return op

    def _bind(self, op: Operation, bound: list[tuple[Span[str], int]], place: Place) -> None:
        wanted = sum(size for _, size in bound)
        if wanted and wanted != len(op.results):
            has = f"{len(op.results)} result{'s' * (len(op.results) != 1)}"
            self.refuse(f"{op.name} has {has}; {wanted} are named.", COUNTS, bound[0][0])
        at = 0
        for span, size in bound:
            self._register_ssa_definition(span.text[1:], op.results[at : at + size], span)
            place.results.append((span.start, span.end))
            at += size

    def _parse_generic_operation(self, op_type: type[Operation]) -> Operation:
        op = super()._parse_generic_operation(op_type)
        if isinstance(op, PtoOp):
            for region in op.regions:
                if not region.blocks:
                    region.add_block(Block())
            known = type(op).get_irdl_definition().properties
            op.attributes |= {name: op.properties.pop(name) for name in list(op.properties) if name not in known}
            self._verified(op)
            if isinstance(op, DpsOp):
                names = [name for name, _ in type(op).get_irdl_definition().operands]
                operands = {name: value for name in names if (value := op.operand_called(name)) is not None}
                op.properties = op.completed(operands, op.properties)
        else:
            self.generic_ops.append(op)
        self.generic_count += 1
        return op

    def _parse_while(self) -> WhileOp:
        """`scf.while (%i = %n) : (T) -> U {..} do {..}`; xDSL's own wants the parentheses around nothing too."""

        def pair() -> tuple[Parser.UnresolvedArgument, UnresolvedOperand]:
            argument = self.parse_argument(expect_type=False)
            self.parse_punctuation("=")
            return argument, self.parse_unresolved_operand()

        pairs = self.parse_optional_comma_separated_list(self.Delimiter.PAREN, pair) or []
        self.parse_punctuation(":")
        at = self._current_token.span
        told = self.parse_function_type()
        types = told.inputs.data
        if len(pairs) != len(types):
            self.refuse(f"{len(pairs)} values are carried, and {len(types)} types are written.", COUNTS, at)
        carried = [self.resolve_operand(value, kind) for (_, value), kind in zip(pairs, types, strict=True)]
        before = self.parse_region([argument.resolve(kind) for (argument, _), kind in zip(pairs, types, strict=True)])
        self.parse_characters("do")
        after = self.parse_region()
        op = WhileOp(carried, told.outputs.data, before, after)
        if (more := self.parse_optional_attr_dict_with_keyword()) is not None:
            op.attributes |= more.data
        return op

    def _verified(self, op: Operation) -> None:
        """The generic form says more than the pretty one has words for: what could not be printed is refused."""
        if not isinstance(op, IRDLOperation):
            return
        if wrong := ill_formed(op):
            self.refuse(f"{op.name}: {wrong}", STRUCTURE, self.span(*self.places.get(op, self._place).name))

    def _fitting(self, op: Operation) -> None:
        """A function's arguments are of the types that it declares: the pretty form says them once."""
        entry = op.body.blocks.first if isinstance(op, FuncOp) else None
        if isinstance(op, FuncOp) and entry is not None and tuple(entry.arg_types) != op.function_type.inputs.data:
            span = self.span(*self.places[op].name)
            self.refuse(f"@{op.sym_name.data} has other arguments than its type says.", STRUCTURE, span)

    def _parse_block(self) -> Block:
        """A block with its label; xDSL's own takes no label that begins with a digit."""
        span = self._current_token.span
        if self._current_token.kind is not MLIRTokenKind.CARET_IDENT:
            told = (
                "The text ends, and a '}' is missing."
                if not span.text
                else f"An op or '}}' is wanted here, not {span.text[:40]!r}."
            )
            self.refuse(told, SYNTAX, span)
        block = self._get_block_from_name(span)
        name = span.text[1:]
        if self.blocks[name][1] is not None:
            self.refuse(f"{span.text} is defined twice.", STRUCTURE, span, "Give the second block another name.")
        self.blocks[name] = (block, span)
        self.forward_block_references.pop(name)
        self._consume_token()
        self._parse_optional_block_arg_list(block)
        self.parse_punctuation(":")
        self._parse_block_body(block)
        return block

    def parse_optional_successor(self) -> Block | None:
        """A block by its label."""
        token = self._current_token
        if token.kind is not MLIRTokenKind.CARET_IDENT:
            return None
        self._consume_token()
        return self._get_block_from_name(token.span)

    def _parse_block_body(self, block: Block) -> None:
        while (op := self.parse_optional_operation()) is not None:
            self._come_after(block.last_op, op)
            block.add_op(op)

    def _come_after(self, before: Operation | None, op: Operation) -> None:
        """Nothing stands after the op that ends a block."""
        if before is None or not before.has_trait(IsTerminator, value_if_unregistered=False):
            return
        span = self.span(*self.places[op].name) if op in self.places else None
        sentence = f"{op.name} stands after {before.name}, which ends its block."
        self.refuse(sentence, STRUCTURE, span, "Take it out, or give it a block of its own.")

    def unknown_op(self, name: str, span: Span[str], bound: list[tuple[Span[str], int]]) -> Operation:
        """No dialect has the name: refused, or skipped where the reader is lenient."""
        if not self.lenient:
            self.refuse(f"Unknown op {name!r}.{self._near(name)}", UNKNOWN_OP, span)
        text, operands = self._skip(span)
        self.note(UNKNOWN_OP, Severity.NOTE, f"Unknown op {name!r}, skipped.", span)
        count = sum(size for _, size in bound)
        op = SkippedOp.of_operands(
            {"values": operands},
            {"op_name": StringAttr(name), "text": StringAttr(text)},
            result_types=[UnknownType()] * count,
        )
        self._scope.skipped.append(op)
        return op

    def _near(self, name: str) -> str:
        known = {op.name for op in self.ctx.loaded_ops} - {SkippedOp.name}
        if "." in name:
            return nearest(name, known)
        near = nearest(name, {one.removeprefix("pto.") for one in known if one.startswith("pto.")})
        return near.replace("'", "'pto.", 1)

    def _skip(self, name: Span[str]) -> tuple[str, list[SSAValue]]:
        """Past the op whose name that is: to the first line that begins with another op, or closes the block."""
        depth = 0
        while self._current_token.kind is not MLIRTokenKind.EOF:
            token = self._current_token
            if depth == 0 and (token.text in (")", "]", "}") or self._begins_op(token)):
                break
            depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
            self._consume_token()
        if depth:
            self.refuse("This op does not end: a bracket is not closed.", SYNTAX, name)
        lines = self.lexer.input.content[name.start : self._last_end].split("\n")
        text = "\n".join(line.strip() for line in lines)
        operands: list[SSAValue] = []

        def numbered(found: re.Match[str]) -> str:
            name, _, number = found[0][1:].partition("#")
            values = dict(enumerate(self.ssa_values.get(name, ()))) or self.forward_ssa_references.get(name, {})
            value = values.get(int(number or 0))
            if value is None:
                return found[0]
            operands.append(value)
            return f"%{{{len(operands) - 1}}}"

        return _VALUE.sub(numbered, text), operands

    def _begins_op(self, token: Any) -> bool:
        content = self.lexer.input.content
        if "\n" not in content[self._last_end : token.span.start]:
            return False
        if token.kind in (MLIRTokenKind.CARET_IDENT, MLIRTokenKind.STRING_LIT):
            return True
        if token.kind is MLIRTokenKind.PERCENT_IDENT:
            return _NAMES_RESULTS.match(content, token.span.end) is not None
        return token.kind is MLIRTokenKind.BARE_IDENT and ("." in token.text or token.text in ("return", "module"))

    def parse_other_form(self, made: type[Any]) -> Any:
        """The op `made` is not followed by `ins`: a reader of the documents may know better."""
        name, found = made.name, self._current_token
        if name == "pto.tscatter" and found.kind is MLIRTokenKind.PERCENT_IDENT:
            sentence = "pto.tscatter is the scatter from tile to tile; the collective is pto.comm.tscatter."
            self.refuse(sentence, OTHER_OP, fix="Write pto.comm.tscatter(%src, recv(%tile), group(..) : ..).")
        self.refuse(f"'ins' is wanted after {name}, not {found.text[:40]!r}.", SYNTAX)

    # Scopes

    def parse_optional_region(self, arguments: Iterable[Parser.Argument] | None = None) -> Region | None:
        """A region; what a function uses it has to define."""
        if not self._place.isolated or self._current_token.kind is not MLIRTokenKind.L_BRACE:
            return super().parse_optional_region(arguments)
        outside = self.ssa_values, self.forward_ssa_references, self._scope
        self.ssa_values, self.forward_ssa_references, self._scope = {}, {}, _Scope()
        isolated_by = self.lexer.input.content[slice(*self._place.name)]
        region = super().parse_optional_region(arguments)
        if region is not None:
            self._end_scope(region, "module" in isolated_by)
        self.ssa_values, self.forward_ssa_references, self._scope = outside
        return region

    def _end_scope(self, region: Region, takes_arguments: bool) -> None:
        missing = [(name, index, early) for (name, index), early in self._scope.early.items()]
        if missing and not takes_arguments:
            name, _, early = min(missing, key=lambda one: one[2].span.start)
            near = nearest(name, self._names_in_scope())
            self.refuse(f"%{name} is not defined.{near}", UNDEFINED, early.span)
        if missing:
            self._make_arguments(region, missing)
        for user, value, span, name in self._scope.to_order:
            if not _may_see(user, value):
                self.refuse(f"%{name} is used before it is defined, or outside of where it is.", UNDEFINED, span)
        for early in self._scope.every:
            if any(True for _ in early.stand_in.uses):  # by an op in whose own region the definition stands
                sentence = f"{early.span.text} is defined inside the op that uses it."
                self.refuse(sentence, UNDEFINED, early.span)

    def _names_in_scope(self) -> list[str]:
        return list(dict.fromkeys([*self.ssa_values, *self.names.values()]))[-500:]

    def _make_arguments(self, region: Region, missing: list[tuple[str, int, _Early]]) -> None:
        """A text without a function: what it does not define comes from outside."""
        block = region.blocks.first
        first = block.first_op if block is not None else None
        for name, _, early in missing:
            arg = ArgOp.of_operands({}, result_types=[early.stand_in.type])
            early.stand_in.replace_all_uses_with(arg.value)
            self._scope.tell_skipped(name, arg.value)
            self.names[arg.value] = name
            if SSAValue.is_valid_name(name):
                arg.value.name_hint = name
            span = (early.span.start, early.span.end)
            self.places[arg] = Place(*span, name=span, results=[span])
            if block is not None and first is not None:
                block.insert_op_before(arg, first)
            sentence = f"%{name} is not defined; it is taken as an argument."
            self.note(UNDEFINED, Severity.NOTE, sentence, early.span)
        self.forward_ssa_references.clear()

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        """The whole text; a module is put around it where it has none."""
        ops: list[Operation] = []
        while self._current_token.kind is not MLIRTokenKind.EOF:
            if (op := self.parse_top_level()) is not None:
                self._come_after(ops[-1] if ops else None, op)
                ops.append(op)
        is_module = len(ops) == 1 and isinstance(ops[0], ModuleOp)
        module = ops[0] if is_module and isinstance(ops[0], ModuleOp) else ModuleOp(ops)
        self._end_scope(module.body, True)
        for op in self.generic_ops:
            self._verified(op)
            self._fitting(op)
        for op in module.walk():
            if op.name.startswith("scf."):
                self._verified(op)
            if isinstance(op, ModuleOp) and (len(op.body.blocks) > 1 or any(block.args for block in op.body.blocks)):
                self.refuse("A module has one block, and no arguments.", STRUCTURE, self.span(*self.places[op].name))
        if self.forward_block_references:
            span = next(iter(self.forward_block_references.values()))[0]
            self.refuse(f"{span.text} is not defined.", UNDEFINED, span)
        return module

    def _parse_alias(self) -> None:
        """`#name = ..` or `!name = ..`; aliases of aliases may double each time, and stay small."""
        name = self._current_token
        self._parse_alias_def()  # type: ignore[no-untyped-call]
        meant = self.lexer.input.content[name.span.end : self._last_end]
        size = len(meant) + sum(self._alias_sizes.get(found, 0) for found in _ALIAS.findall(meant))
        if size > LONGEST_ALIAS:
            self.refuse(f"{name.text} stands for {size} characters; {LONGEST_ALIAS} are read.", TOO_LARGE, name.span)
        self._alias_sizes[name.text] = size

    def parse_top_level(self) -> Operation | None:
        """The next op outside of everything, or an alias."""
        kind = self._current_token.kind
        if kind in (MLIRTokenKind.HASH_IDENT, MLIRTokenKind.EXCLAMATION_IDENT):
            self._parse_alias()
            return None
        if kind is MLIRTokenKind.FILE_METADATA_BEGIN:
            self._parse_file_metadata_dictionary()
            return None
        if (op := self.parse_optional_operation()) is None:
            self.refuse("An op is wanted here.", SYNTAX)
        return op


def _may_see(user: Operation, value: SSAValue) -> bool:
    """Whether a use that stands before the definition in the text may be right.

    It is inside the region of the definition, and in another block of it: between the blocks of a control flow graph
    the order of the text says nothing.
    """
    owner = value.owner
    home = owner if isinstance(owner, Block) else owner.parent
    at: Operation | None = user
    while at is not None and home is not None:
        block = at.parent
        if block is home:
            return False
        if block is not None and block.parent is home.parent:
            return True
        at = at.parent_op()
    return False
