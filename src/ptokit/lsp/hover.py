"""What an editor shows over a word: the meaning of an op, a type, an attribute, a finding; the type of a value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ptokit.dtypes import ELEMENT_TYPES
from ptokit.errors import PtoError
from ptokit.ir.dialect.types import TileBufType
from ptokit.lsp.diagnostics import Mark, Reading
from ptokit.lsp.words import ATTRIBUTE_OF, PIPES, POLICIES, TYPES, about_op, op_named, word_at

if TYPE_CHECKING:
    from xdsl.ir import SSAValue


@dataclass(frozen=True)
class Hover:
    """Markdown for the characters from `start` to `end` of the line."""

    text: str
    start: int
    end: int


def hover(
    text: str, line: int, column: int, reading: Reading | None = None, marks: tuple[Mark, ...] = ()
) -> Hover | None:
    """What there is to say of the word at a place (both from 0), and of the findings there.

    >>> hover("pto.barrier <PIPE_ALL>", 0, 3).text.splitlines()[0]
    '**pto.barrier**'
    """
    lines = text.split("\n")
    if line >= len(lines):
        return None
    found = word_at(lines[line], column)
    told = [_page(one.id) for one in marks if one.line == line and one.start <= column <= one.end]
    if found is None:
        return Hover("\n\n---\n\n".join(told), column, column) if told else None
    word, start, end = found
    about = _about(word, lines[line], start, line, reading)
    parts = [one for one in (about, *told) if one]
    return Hover("\n\n---\n\n".join(parts), start, end) if parts else None


def _about(word: str, text: str, start: int, line: int, reading: Reading | None) -> str:
    if word.startswith("PTO-"):
        return _page(word)
    if word.startswith("%"):
        return _value(word[1:], line, reading)
    if word.startswith("!"):
        return _type(word, text[start:])
    for known in (_operation, _attribute, _pipe):
        if told := known(word):
            return told
    return ""


def _page(id_: str) -> str:
    from ptokit.explain import page

    try:
        return page(id_).markdown
    except PtoError:
        return ""


def _operation(word: str) -> str:
    op = op_named(word)
    return about_op(op) if op is not None else ""


def _attribute(word: str) -> str:
    name = ATTRIBUTE_OF.get(word, word)
    return f"**{name}**\n\n{POLICIES[name]}" if name in POLICIES else ""


def _pipe(word: str) -> str:
    return f"**{word}**: {PIPES[word]}." if word in PIPES else ""


# Types and values


def _type(word: str, text: str) -> str:
    name = word.removeprefix("!pto.")
    about = TYPES.get(name, "")
    from ptokit.ir.dialect.refused import Misread
    from ptokit.ir.dialect.types import type_of_text

    opened, _, rest = text.partition("<")
    if not rest or opened != word:
        return about
    try:
        return f"{about}\n\n{describe(type_of_text(name, rest.partition('>')[0]))}".strip()
    except Misread:
        return about


def describe(type_: Any) -> str:
    """A type in a sentence.

    >>> describe(TileBufType("vec", "float32", 16, 64))
    '16 x 64 float32 in vec, nd: 4096 bytes.'
    """
    if isinstance(type_, TileBufType):
        known = ELEMENT_TYPES.get(type_.dtype)
        size = f": {type_.rows * type_.cols * known.itemsize} bytes" if known else ""
        valid = "" if type_.valid == (type_.rows, type_.cols) else f", valid {_extents(type_.valid)}"
        return f"{type_.rows} x {type_.cols} {type_.dtype} in {type_.loc}, {type_.layout}{valid}{size}."
    dims = getattr(type_, "dims", None)
    if dims:
        return f"{_extents(dims)} {type_.dtype} in global memory."
    return ""


def _extents(dims: tuple[int, ...]) -> str:
    return " x ".join("?" if dim < 0 else str(dim) for dim in dims)


def _value(name: str, line: int, reading: Reading | None) -> str:
    """The type of a value, and its number where it is a constant."""
    module = reading.module if reading else None
    if module is None:
        return ""
    told = [value for value, known in module.names.items() if known == name]
    if not told:
        return ""
    value = _nearest(told, line + 1, lambda one: _line_of(module, one))
    about = f"`%{name} : {value.type}`\n\n{describe(value.type)}"
    from ptokit.ir.dialect.ops import constant_value

    number = constant_value(value)
    return about.rstrip() + (f"\n\nAlways {number}." if number is not None else "")


def _nearest(values: list[SSAValue], line: int, line_of: Callable[[SSAValue], int]) -> SSAValue:
    """The last one that is defined above the line: functions use the same names."""
    above = [value for value in values if line_of(value) <= line]
    return max(above, key=line_of) if above else values[0]


def _line_of(module: Any, value: Any) -> int:
    owner = value.owner
    op = owner if hasattr(owner, "operands") else owner.parent_op()
    where = module.where(op) if op is not None else None
    return where.line if where is not None else 0
