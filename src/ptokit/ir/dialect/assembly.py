"""Pieces of which the assembly of the ops is made: reading and printing, one beside the other."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.utils.lexer import Span

from ptokit.errors import listed, nearest
from ptokit.ir.dialect.attributes import WordAttr, attribute_of_text
from ptokit.ir.dialect.refused import COUNTS, SYNTAX, UNKNOWN_WORD, Misread, Refused

if TYPE_CHECKING:
    from xdsl.printer import Printer

Operands = Sequence[SSAValue]
Attributes = dict[str, Attribute]


def refuse(parser: Parser, sentence: str, rule: str = SYNTAX, span: Span[str] | None = None, fix: str = "") -> NoReturn:
    """Stop reading: at `span`, or at the token that comes next."""
    raise Refused(span or parser._current_token.span, sentence, rule, fix)


# Operands and their types


def operand_names(parser: Parser) -> list[UnresolvedOperand]:
    """`%a, %b`: at least one."""
    names = [parser.parse_unresolved_operand()]
    while parser.parse_optional_characters(","):
        names.append(parser.parse_unresolved_operand())
    return names


def type_list(parser: Parser) -> list[Attribute]:
    """`T, U`: at least one."""
    types: list[Attribute] = [parser.parse_type()]
    while parser.parse_optional_characters(","):
        types.append(parser.parse_type())
    return types


def resolved(parser: Parser, names: Sequence[UnresolvedOperand], types: Sequence[Attribute]) -> list[SSAValue]:
    """The values of those names; as many types as names are needed."""
    if len(names) != len(types):
        last = names[-1].span if names else parser._current_token.span
        sentence = f"{len(names)} operands are followed by {len(types)} types."
        refuse(parser, sentence, COUNTS, last, "Write one type for each operand, in their order.")
    return [parser.resolve_operand(*one) for one in zip(names, types, strict=True)]


def typed_operands(parser: Parser) -> list[SSAValue]:
    """`%a, %b : A, B`."""
    names = operand_names(parser)
    parser.parse_characters(":")
    return resolved(parser, names, type_list(parser))


def typed_operand(parser: Parser) -> SSAValue:
    """`%a : A`."""
    name = parser.parse_unresolved_operand()
    parser.parse_characters(":")
    return parser.resolve_operand(name, parser.parse_type())


def bracketed_operands(parser: Parser, known: Attribute) -> list[SSAValue]:
    """`[%i, %j]`, all of one known type."""
    names = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_unresolved_operand)
    return [parser.resolve_operand(name, known) for name in names]


def print_operands(printer: Printer, operands: Iterable[SSAValue]) -> None:
    """`%a, %b`."""
    printer.print_list(operands, printer.print_ssa_value)


def print_types(printer: Printer, operands: Iterable[SSAValue]) -> None:
    """`A, B`."""
    printer.print_list([operand.type for operand in operands], printer.print_attribute)


def print_typed(printer: Printer, operands: Operands) -> None:
    """`%a, %b : A, B`."""
    print_operands(printer, operands)
    printer.print_string(" : ")
    print_types(printer, operands)


# Attributes


def word_in_brackets(parser: Parser, name: str) -> WordAttr:
    """`<PIPE_V>`, or the attribute in full: `#pto.pipe<PIPE_V>`."""
    start = parser.pos
    if parser.parse_optional_characters("<"):
        at, text = parser.pos, parser.parse_identifier()
        try:
            found = attribute_of_text(name, text)
        except Misread as wrong:
            wrong.at(parser, at)
        parser.parse_characters(">")
        return found
    attr = parser.parse_attribute() if parser._current_token.text.startswith("#") else None
    if not isinstance(attr, WordAttr) or attr.name != attribute_of_any(name).name:
        span = Span(start, max(parser.pos, start + 1), parser.lexer.input)
        refuse(parser, f"A {name} is wanted here, as in <{attribute_of_any(name).words[0]}>.", SYNTAX, span)
    return attr


def mark(parser: Parser, name: str, start: int) -> None:
    """The attribute `name` of the op that is being read stands from `start` to here, for who asks."""
    if (keep := getattr(parser, "mark", None)) is not None:
        keep(name, start)


def attribute_of_any(name: str) -> type[WordAttr]:
    """The class of the attributes called `name`."""
    from ptokit.ir.dialect.attributes import WORD_ATTRS

    return next(made for made in WORD_ATTRS if made.name == f"pto.{name}")


def split_attributes(made: type[IRDLOperation], given: Mapping[str, Attribute]) -> tuple[Attributes, Attributes]:
    """Those that the op has a name for, and all others."""
    known = made.get_irdl_definition().properties
    properties = {name: attr for name, attr in given.items() if name in known}
    return properties, {name: attr for name, attr in given.items() if name not in known}


def check_properties(
    parser: Parser, made: type[IRDLOperation], given: Mapping[str, Attribute], span: Span[str]
) -> None:
    """An attribute with a known name holds what that name stands for."""
    known = made.get_irdl_definition().properties
    for name, attr in given.items():
        if not known[name].constr.verifies(attr):
            place = getattr(parser, "place_of_attribute", lambda _: None)(name) or span
            refuse(parser, f"{name} of {made.name} cannot be {attr}.", UNKNOWN_WORD, place)


def attribute_dict(parser: Parser, made: type[IRDLOperation]) -> tuple[Attributes, Attributes]:
    """The optional `{..}`: what the op knows, and what it does not."""
    if parser._current_token.text != "{":
        return {}, {}
    span = parser._current_token.span
    known, others = split_attributes(made, parser.parse_optional_attr_dict())
    check_properties(parser, made, known, span)
    return known, others


def print_attribute_dict(printer: Printer, attributes: Mapping[str, Attribute]) -> None:
    """` {..}`, or nothing."""
    printer.print_op_attributes(attributes)


def segments(*sizes: int) -> Attributes:
    """The property that says how many operands each name has."""
    return {"operandSegmentSizes": DenseArrayBase.from_list(i32, list(sizes))}


def sizes_of(operands: Iterable[SSAValue | Collection[SSAValue] | None]) -> tuple[list[SSAValue], tuple[int, ...]]:
    """The operands in one row, and how many each of them was."""
    flat: list[SSAValue] = []
    sizes = []
    for one in operands:
        if one is None:
            more: Sequence[SSAValue] = ()
        elif isinstance(one, SSAValue):
            more = (one,)
        else:
            more = tuple(one)
        flat += more
        sizes.append(len(more))
    return flat, tuple(sizes)


def unknown_keyword(parser: Parser, known: Sequence[str]) -> NoReturn:
    """The next word is none of those, or stands behind one that it comes before."""
    text = parser._current_token.text
    if text in known:
        refuse(parser, f"{text!r} stands out of its order, or twice.", fix=f"The order is {listed(known)}.")
    refuse(parser, f"Unexpected {text!r}.{nearest(text, known)}", SYNTAX)
