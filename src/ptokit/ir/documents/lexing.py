"""The tokens of PTO-AS: `.arg` and `.const`, and `#comments` behind an op."""

from __future__ import annotations

import re
from functools import cached_property

from xdsl.utils.lexer import Span, Token
from xdsl.utils.mlir_lexer import MLIRTokenKind

from ptokit.ir.lexing import PtoLexer

DIRECTIVE = re.compile(r"\.(arg|const)\b", re.ASCII)
_WORD = re.compile(r"#(?!pto\b|-\})[A-Za-z_][^\s=<>(),\[\]{}:]*+", re.ASCII)
_ATTRIBUTE_FOLLOWS = re.compile(r"[ \t]*[=<]")
_DEFINED = re.compile(r"^[ \t]*(#[\w$.\-]+)[ \t]*=", re.MULTILINE | re.ASCII)
_ATTRIBUTE_BEFORE = "=,[({<:%"


class DocumentLexer(PtoLexer):
    """The dialect's lexer, open to what only the documents write."""

    @cached_property
    def aliases(self) -> frozenset[str]:
        """The attributes that the text defines: `#name = ..`."""
        return frozenset(_DEFINED.findall(self.input.content))

    def _after_blank(self, start: int) -> int:
        at = super()._after_blank(start)
        content = self.input.content
        while content.startswith("#", at) and self._is_comment(at):
            line_end = content.find("\n", at)
            at = super()._after_blank(line_end if line_end >= 0 else len(content))
        return at

    def word_after(self, at: int) -> str:
        """The directive that stands next after `at`, or nothing."""
        found = DIRECTIVE.match(self.input.content, self._after_blank(at))
        return found[0] if found else ""

    def _is_comment(self, at: int) -> bool:
        """`#Scatter the rows` behind an op: no attribute of ours, no alias, and nothing that wants an attribute."""
        content = self.input.content
        if at == 0 or content[at - 1] not in " \t;\n":
            return False
        found = _WORD.match(content, at)
        if found is None or found[0] in self.aliases or _ATTRIBUTE_FOLLOWS.match(content, found.end()):
            return False
        before = at - 1
        while before >= 0 and content[before] in " \t":
            before -= 1
        return before < 0 or content[before] not in _ATTRIBUTE_BEFORE

    def _strange(self, start: int) -> Token[MLIRTokenKind, str]:
        found = DIRECTIVE.match(self.input.content, start)
        if found is None:
            return super()._strange(start)
        self.pos = found.end()
        return Token(MLIRTokenKind.BARE_IDENT, Span(start, self.pos, self.input))
