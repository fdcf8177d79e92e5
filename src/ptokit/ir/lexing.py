"""The tokens of a text: MLIR's, with the comments and the `;` of the documents, by one regular expression."""

from __future__ import annotations

import re

from xdsl.utils.lexer import Input, Span, Token
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRTokenKind, StringLiteral

from ptokit.ir.dialect.refused import TOO_LARGE, Refused

BLANK = re.compile(r"(?:[\s;]++|//[^\n]*+|#(?![\w$.\-])[^\n]*+)*+", re.ASCII)
"""What stands between tokens. A `#` that begins no attribute begins a comment."""
OPENS_BLANK = frozenset(" \t\n\r\v\f;/#")
LINE_COMMENT = re.compile(r"#(?!pto\b|-\})[^\n=<]*+(?=\n|\Z)")
"""`#Manual mode`: at the beginning of a line, where no attribute is defined."""
ALIAS = re.compile(r"#[\w$.\-]++[ \t]*(?:[),}\]>:]|\Z)")
"""An attribute by its alias, which something follows that no sentence has there."""
TOKEN = re.compile(
    r"""
    (?P<BARE_IDENT>[A-Za-z_][\w$.]*+)
  | (?P<PERCENT_IDENT>%[\w$.\-]++)
  | (?P<PUNCTUATION>->|\.\.\.|\{-\#|\#-\}|[:,()\[\]{}<>=+\-?*/|])
  | (?P<INTEGER_LIT>0x[0-9a-fA-F]++|[0-9]++(?!\.))
  | (?P<FLOAT_LIT>[0-9]++\.[0-9]*+(?:[eE][+-]?[0-9]++)?)
  | (?P<HASH_IDENT>\#(?:[0-9]++|[A-Za-z$._\-][\w$.\-]*+))
  | (?P<EXCLAMATION_IDENT>!(?:[0-9]++|[A-Za-z$._\-][\w$.\-]*+))
  | (?P<AT_IDENT>@(?:[A-Za-z_][\w$.]*+|"[^"\n\v\f]*+"))
  | (?P<CARET_IDENT>\^(?:[0-9]++|[A-Za-z$._\-][\w$.\-]*+))
  | (?P<STRING_LIT>"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+")
    """,
    re.VERBOSE | re.ASCII,
)
MOST_DIGITS = 400
_KINDS = {name: getattr(MLIRTokenKind, name) for name in TOKEN.groupindex if name != "PUNCTUATION"}
_PUNCTUATION = {kind.value: kind for kind in MLIRTokenKind if isinstance(kind.value, str)}
_STRANGE = {
    '"': "This string does not end on its line.",
    "@": "A name is wanted after '@'.",
    "%": "A name is wanted after '%'.",
    "!": "A type is wanted after '!'.",
    "^": "A name is wanted after '^'.",
    ".": "A single '.' has no meaning here.",
}


class PtoLexer(MLIRLexer):
    """xDSL's lexer, five times as fast, and open to the comments of the documents."""

    def lex(self) -> Token[MLIRTokenKind, str]:
        """The next token."""
        content = self.input.content
        start = self._after_blank(self.pos)
        found = TOKEN.match(content, start)
        if found is None:
            return self._strange(start)
        name = found.lastgroup or ""
        self.pos = end = found.end()
        if name == "PUNCTUATION":
            return Token(_PUNCTUATION[content[start:end]], _span(start, end, self.input))
        if name == "STRING_LIT":
            return self._string(start, end)
        if name == "INTEGER_LIT" and end - start > MOST_DIGITS:
            raise Refused(Span(start, end, self.input), f"A number of {end - start} digits is too large.", TOO_LARGE)
        return Token(_KINDS[name], _span(start, end, self.input))

    def _after_blank(self, start: int) -> int:
        content = self.input.content
        if content[start : start + 1] not in OPENS_BLANK:
            return start
        if content[start + 1 : start + 2] not in OPENS_BLANK and content[start] == " ":
            return start + 1
        found = BLANK.match(content, start)
        at = found.end() if found else start
        while content.startswith("#", at) and self._opens_line(at):
            comment = LINE_COMMENT.match(content, at)
            if comment is None or ALIAS.match(content, at):
                break
            found = BLANK.match(content, comment.end())
            at = found.end() if found else comment.end()
        return at

    def _opens_line(self, at: int) -> bool:
        content = self.input.content
        while at and content[at - 1] in " \t":
            at -= 1
        return at == 0 or content[at - 1] == "\n"

    def _string(self, start: int, end: int) -> Token[MLIRTokenKind, str]:
        literal = StringLiteral(start, end, self.input)
        return Token(MLIRTokenKind.STRING_LIT if _is_text(literal) else MLIRTokenKind.BYTES_LIT, literal)

    def _strange(self, start: int) -> Token[MLIRTokenKind, str]:
        if start >= len(self.input.content):
            self.pos = start
            return Token(MLIRTokenKind.EOF, Span(start, start, self.input))
        char = self.input.content[start]
        self.pos = start + 1
        sentence = _STRANGE.get(char, f"Unexpected character {char!r}.")
        raise Refused(Span(start, start + 1, self.input), sentence)


def _is_text(literal: StringLiteral) -> bool:
    """Escapes may spell what is no UTF-8."""
    if "\\" not in literal.text:
        return True
    try:
        literal.bytes_contents.decode()
    except UnicodeDecodeError:
        return False
    return True


def _span(start: int, end: int, source: Input[str]) -> Span[str]:
    """A span without the detour of a frozen dataclass."""
    made = object.__new__(Span)
    made.__dict__.update(start=start, end=end, input=source, line_offset=0)
    return made
