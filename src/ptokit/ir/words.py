"""Tokens, types and attributes of a text, with their places: what `PtoParser` reads ops with."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

from xdsl.dialects.builtin import UnregisteredAttr
from xdsl.ir import Attribute, TypeAttribute
from xdsl.parser import Parser
from xdsl.parser.generic_parser import ParserState
from xdsl.utils.exceptions import ParseError as XdslParseError
from xdsl.utils.lexer import Input, Span, Token
from xdsl.utils.mlir_lexer import MLIRTokenKind

from ptokit.errors import nearest
from ptokit.findings import Finding, Severity
from ptokit.ir.dialect import context
from ptokit.ir.dialect.attributes import attribute_of_text
from ptokit.ir.dialect.refused import (
    SYNTAX,
    TOO_LARGE,
    UNKNOWN_WORD,
    Misread,
    Refused,
)
from ptokit.ir.dialect.types import SMALL_FLOATS, TYPE_NAMES, type_of_text
from ptokit.ir.lexing import PtoLexer
from ptokit.ir.places import Place, Source

if TYPE_CHECKING:
    from xdsl.context import Context

MOST_ELEMENTS = 1_000_000
"""How many elements a `dense<..>` constant may have."""

_WIDE = re.compile(r"[su]?i(\d{4,})")
_BODY = re.compile(r"\s*<([^<>()\[\]{}\"]*)>")
_WORD = re.compile(r"\s*<\s*(\w+)\s*>")
_SPACED = re.compile(r"\s*<\s*(\w+)\s+(\w+)\s*>")
_OPAQUE = re.compile(r"\s*<\s*([A-Za-z_]\w*)")
_NO_BODY = {made.name.removeprefix("pto."): made() for made in SMALL_FLOATS}


@lru_cache(maxsize=256)
def _foreign(name: str, is_type: bool) -> type[UnregisteredAttr]:
    """xDSL makes a class for each name; one class a name makes equal attributes equal."""
    return UnregisteredAttr.with_name_and_type(name, is_type)


class WordParser(Parser):
    """xDSL's parser, with the places of what it reads, and types and attributes of the dialect by their text."""

    def __init__(self, text: str, file: str = "<text>", *, lenient: bool = False, ctx: Context | None = None) -> None:
        super().__init__(ctx or context(), "", file)
        self.lenient = lenient
        self.findings: list[Finding] = []
        self.source = Source(text, file)
        self._last_end = 0
        self._place = Place(0)
        self._parser_state = ParserState(PtoLexer(Input(text, file)))

    # Tokens and places

    def _consume_token(self, expected_kind: MLIRTokenKind | None = None) -> Any:
        state = self._parser_state
        consumed = state.current_token
        self._last_end = consumed.span.end
        state.current_token = state.lexer.lex()
        return consumed

    def _go_on_at(self, end: int) -> None:
        self._last_end = end
        self.lexer.pos = end
        self._parser_state.current_token = self.lexer.lex()

    def span(self, start: int, end: int) -> Span[str]:
        """A part of the text."""
        return Span(start, end, self.lexer.input)

    def mark(self, name: str, start: int) -> None:
        """The attribute `name` of the op that is being read stands from `start` to here."""
        self._place.attributes[name] = (start, max(self._last_end, start))

    def place_of_attribute(self, name: str) -> Span[str] | None:
        """Where the op that is being read has that attribute."""
        found = self._place.attributes.get(name)
        return self.span(*found) if found else None

    def refuse(self, sentence: str, rule: str = SYNTAX, span: Span[str] | None = None, fix: str = "") -> NoReturn:
        """Stop reading: at `span`, or at the token that comes next."""
        raise Refused(span or self._current_token.span, sentence, rule, fix)

    def note(self, rule: str, severity: Severity, sentence: str, span: Span[str], fix: str = "") -> None:
        """A finding that does not stop reading."""
        self.findings.append(self.source.finding(rule, severity, sentence, span.start, span.end, fix))

    # Types and attributes

    def parse_optional_type(self) -> TypeAttribute | None:
        """Types of the dialect by their text; `pto.tile<..>` without its `!` is one too."""
        token = self._current_token
        if token.kind is MLIRTokenKind.EXCLAMATION_IDENT:
            text = token.text
            if text.startswith("!pto."):
                return self._pto_type(text[5:], token.span)
            if text == "!pto" and (found := _OPAQUE.match(self.lexer.input.content, token.span.end)):
                return self._opaque_type(found[1], self.span(*found.span(1)))
            if "." in text:
                return self._foreign_type(token)
        elif token.kind is MLIRTokenKind.BARE_IDENT and self._is_bare_type(token):
            return self._pto_type(token.text[4:], token.span)
        return super().parse_optional_type()

    def _opaque_type(self, name: str, span: Span[str]) -> TypeAttribute:
        """`!pto<tile_buf<..>>`: the long spelling of MLIR."""
        self._go_on_at(span.end)
        read = self._pto_type(name, span)
        self.parse_punctuation(">")
        return read

    def _foreign_type(self, token: Token[MLIRTokenKind, str]) -> TypeAttribute | None:
        """A type of a dialect that nobody knows is kept where the reader is lenient."""
        name = token.text[1:]
        if token.text in self.attribute_aliases or self.ctx.get_optional_type(name) is not None:
            known: TypeAttribute | None = super().parse_optional_type()
            return known
        if not self.lenient:
            self.refuse(f"Unknown type {token.text}.", UNKNOWN_WORD, token.span)
        self._consume_token()
        body = self._parse_dialect_symbol_body() if self._current_token.kind is MLIRTokenKind.LESS else ""
        made: Any = _foreign(name, True)
        kept: TypeAttribute = made(name, True, False, body)
        return kept

    def _is_bare_type(self, token: Token[MLIRTokenKind, str]) -> bool:
        text = token.text
        is_name = text.startswith("pto.") and text[4:] in TYPE_NAMES
        return is_name and self.lexer.input.content.startswith("<", token.span.end)

    def _pto_type(self, name: str, span: Span[str]) -> TypeAttribute:
        if (whole := _NO_BODY.get(name)) is not None:
            self._go_on_at(span.end)
            return whole
        content = self.lexer.input.content
        found = _BODY.match(content, span.end)
        if found:
            start, end = found.span(1)
            body = found[1]
        elif content.startswith("<", span.end):
            start = span.end + 1
            end = self._end_of_type(start, span)
            body = content[start:end]
        else:
            start, end, body = span.end + 1, span.end - 1, ""
            if name not in ("event", "unknown"):
                known = name in TYPE_NAMES
                sentence = f"!pto.{name} needs <..> after it." if known else f"Unknown type !pto.{name}."
                self.refuse(sentence + nearest(name, TYPE_NAMES) * (not known), UNKNOWN_WORD, span)
        try:
            made: Any = type_of_text(name, body)
        except Misread as wrong:
            if self.lenient and name not in TYPE_NAMES:
                made = _foreign(f"pto.{name}", True)(f"pto.{name}", True, False, body)
            else:
                self._misread(wrong, span, start)
        self._go_on_at(end + 1)
        read: TypeAttribute = made
        return read

    def _end_of_type(self, start: int, span: Span[str]) -> int:
        try:
            return self._raw_scan_balanced(start)
        except XdslParseError:
            self.refuse("This type does not end: its '>' is missing.", SYNTAX, span)

    def _misread(self, wrong: Misread, span: Span[str], start: int) -> NoReturn:
        if wrong.start < 0:  # the name, not the text after it
            self.refuse(wrong.sentence, wrong.rule, span, wrong.fix)
        length = max(wrong.length, 1)
        self.refuse(wrong.sentence, wrong.rule, self.span(start + wrong.start, start + wrong.start + length), wrong.fix)

    def parse_optional_attribute(self) -> Attribute | None:
        """Attributes of the dialect by their text."""
        token = self._current_token
        if token.kind is MLIRTokenKind.HASH_IDENT:
            text = token.text
            content = self.lexer.input.content
            if text == "#pto" and (found := _SPACED.match(content, token.span.end)):
                return self._pto_attribute(found[1], found[2], token.span, found.start(2), found.end())
            if text.startswith("#pto.") and (found := _WORD.match(content, token.span.end)):
                return self._pto_attribute(text[5:], found[1], token.span, found.start(1), found.end())
            if "." in text and not text.startswith("#pto.") and not self._known_attribute(text[1:]):
                return self._foreign_attribute(text[1:])
        elif token.kind is MLIRTokenKind.EXCLAMATION_IDENT:
            return self.parse_optional_type()
        return super().parse_optional_attribute()

    def _pto_attribute(self, name: str, word: str, span: Span[str], start: int, end: int) -> Attribute:
        try:
            made = attribute_of_text(name, word)
        except Misread as wrong:
            self._misread(wrong, self.span(span.start, end), start)
        self._go_on_at(end)
        return made

    def _known_attribute(self, name: str) -> bool:
        return self.ctx.get_optional_attr(name) is not None

    def _foreign_attribute(self, name: str) -> Attribute:
        """An attribute of a dialect that nobody knows is kept as it is."""
        self._consume_token()
        body = self._parse_dialect_symbol_body() if self._current_token.kind is MLIRTokenKind.LESS else ""
        self._last_end = max(self._last_end, self._current_token.span.start)
        return _foreign(name, False)(name, False, False, body)

    def _find_duplicated_key(self, attrs: list[tuple[str, Attribute]]) -> str | None:
        if (key := super()._find_duplicated_key(attrs)) is not None:
            self.refuse(f"{key} is given twice.", SYNTAX, self.place_of_attribute(key))
        return None

    def _parse_attribute_entry(self) -> tuple[str, Attribute]:
        start = self.pos
        name, attr = super()._parse_attribute_entry()
        self.mark(name, start)
        return name, attr

    def _parse_optional_integer_or_float_type(self) -> TypeAttribute | None:
        token = self._current_token
        if token.kind is MLIRTokenKind.BARE_IDENT and (found := _WIDE.fullmatch(token.text)):
            self.refuse(f"An integer of {found[1]} bits is too wide.", TOO_LARGE, token.span)
        return super()._parse_optional_integer_or_float_type()

    def _parse_dense_literal_type(self) -> Any:
        span = self._current_token.span
        found = super()._parse_dense_literal_type()
        count = math.prod(found.get_shape())
        if count > MOST_ELEMENTS:
            self.refuse(f"A constant of {count} elements is too large; {MOST_ELEMENTS} are read.", TOO_LARGE, span)
        return found
