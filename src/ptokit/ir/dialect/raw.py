"""Types whose parameters are plain Python, read from their text: `8x32xf32` is not made of tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

from xdsl.ir import Data, TypeAttribute

from ptokit.ir.dialect.elements import ELEMENTS
from ptokit.ir.dialect.refused import TOO_LARGE, Misread, near

if TYPE_CHECKING:
    from xdsl.parser import AttrParser
    from xdsl.printer import Printer


DYNAMIC = -1
Record = TypeVar("Record", covariant=True)

MOST_DIMS = 64
"""How many dimensions a type may have; no instruction takes more than six."""
_MOST_DIGITS = 18
_DIMENSION = re.compile(r"\s*(\?|\d+)\s*x")


def whole_number(text: str, start: int) -> int:
    """The number that `text` spells, which stands at `start`."""
    word = text.strip()
    if not re.fullmatch(r"[0-9]+", word):
        raise Misread(f"{text.strip()!r} is not a whole number.", start, len(text))
    if len(word) > _MOST_DIGITS:
        raise Misread(f"A number of {len(word)} digits is no extent.", start, len(text))
    return int(word)


def element(text: str, start: int) -> str:
    """The spelling of an element type that stands at `start`."""
    word = text.strip()
    if word not in ELEMENTS:
        raise Misread(f"Unknown element type {word!r}.{near(word, ELEMENTS)}", start + indent(text), len(word))
    return word


def indent(text: str) -> int:
    """How many blanks it begins with."""
    return len(text) - len(text.lstrip())


def shaped(text: str, start: int = 0) -> tuple[tuple[int, ...], str]:
    """`8x?xf32` as dims (-1 where `?`) and element spelling.

    >>> shaped("8x?xf32")
    ((8, -1), 'f32')
    """
    dims: list[int] = []
    at = 0
    while found := _DIMENSION.match(text, at):
        dims.append(DYNAMIC if found[1] == "?" else whole_number(found[1], start + found.start(1)))
        at = found.end()
    if len(dims) > MOST_DIMS:
        raise Misread(f"{len(dims)} dimensions are too many; {MOST_DIMS} are read.", start, at, TOO_LARGE)
    if not dims:
        raise Misread("Dimensions and an element type are wanted, as in 8x32xf32.", start, len(text))
    return tuple(dims), element(text[at:], start + at)


def dims_text(dims: tuple[int, ...], elem: str) -> str:
    """The reverse of `shaped`."""
    return "".join("?x" if d == DYNAMIC else f"{d}x" for d in dims) + elem


def fields(text: str) -> Iterator[tuple[str, int]]:
    """The parts between commas, each with its place."""
    at = 0
    for part in text.split(","):
        yield part, at
        at += len(part) + 1


class RawType(Data[Record], TypeAttribute):
    """A type whose parameters are one frozen Python value, read from the text between the brackets."""

    @classmethod
    def read(cls, text: str) -> Record:
        """The value that the text between the brackets says; `Misread` where it says none."""
        raise NotImplementedError

    def written(self) -> str:
        """The canonical text between the brackets."""
        raise NotImplementedError

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Record:
        """Called by xDSL after the name; ptokit's own parser goes by `read` and a cache."""
        start = parser.pos + 1
        text = parser._parse_dialect_symbol_body()
        try:
            return cls.read(text)
        except Misread as wrong:
            return wrong.at(parser, start)

    def print_parameter(self, printer: Printer) -> None:
        """Called by xDSL after the name."""
        printer.print_string(f"<{self.written()}>")

    def __str__(self) -> str:
        return f"!{self.name}<{self.written()}>"
