"""What may stand at a place: names of ops, of attributes and of their values, types, pipes and events, suffixes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ptokit.core.vector import OPS
from ptokit.ir.dialect.attributes import WORD_ATTRS, EventAttr, PipeAttr, PipeEventTypeAttr, WordAttr
from ptokit.ir.dialect.types import BLAYOUTS, ELEMENTS, LOCS, SLAYOUTS, TYPE_NAMES
from ptokit.lsp.words import ATTRIBUTE_OF, PIPES, POLICIES, TYPES, attributes_of, op_named, ops_by_name

LINES_BEFORE = 12
"""How far back an op may have begun."""


@dataclass(frozen=True)
class Offer:
    """One word that may be written: `text` replaces the last `length` characters before the cursor."""

    label: str
    kind: str  # op, attribute, value, type
    length: int
    detail: str = ""
    text: str = ""

    @property
    def inserted(self) -> str:
        """What is written."""
        return self.text or self.label


Finder = Callable[[re.Match[str], str], Iterable[Offer]]


def complete(text: str, line: int, column: int) -> list[Offer]:
    """What may be written at a place (both from 0).

    >>> [one.label for one in complete("pto.mscatter ins(%s) {scatterOob = #pto<scatter_oob ", 0, 52)]
    ['undefined', 'skip', 'clamp', 'wrap']
    """
    lines = text.split("\n")
    before = lines[line][:column] if line < len(lines) else ""
    if "//" in before.replace('"//', ""):
        return []
    statement = "\n".join([*lines[max(line - LINES_BEFORE, 0) : line], before])
    for pattern, finder in CONTEXTS:
        if found := pattern.search(before):
            return list(finder(found, statement))
    return list(_names_in_braces(statement, before))


# Attributes in full


def _kinds(*, spaced: bool) -> list[type[WordAttr]]:
    return [kind for kind in WORD_ATTRS if kind.spaced == spaced]


def _name(kind: type[WordAttr]) -> str:
    return kind.name.removeprefix("pto.")


def _words_of(found: re.Match[str], statement: str) -> Iterator[Offer]:
    kind = next((one for one in WORD_ATTRS if _name(one) == found[1]), None)
    for word in kind.words if kind else ():
        yield Offer(word, "value", len(found[2]), _meaning(word) or POLICIES.get(ATTRIBUTE_OF.get(found[1], ""), ""))


def _meaning(word: str) -> str:
    return PIPES.get(word, "")


def _spaced_names(found: re.Match[str], statement: str) -> Iterator[Offer]:
    for kind in _kinds(spaced=True):
        yield Offer(_name(kind), "attribute", len(found[1]), POLICIES.get(ATTRIBUTE_OF.get(_name(kind), ""), ""))


def _dotted_names(found: re.Match[str], statement: str) -> Iterator[Offer]:
    for kind in _kinds(spaced=False):
        yield Offer(_name(kind), "attribute", len(found[1]), " ".join(kind.words))


def full(kind: type[WordAttr], word: str) -> str:
    """An attribute as it is written.

    >>> full(PipeAttr, "PIPE_V")
    '#pto.pipe<PIPE_V>'
    """
    return f"#pto<{_name(kind)} {word}>" if kind.spaced else f"#pto.{_name(kind)}<{word}>"


# Between square brackets

POINTS = {
    "set_flag": (PipeAttr, PipeAttr, EventAttr),
    "wait_flag": (PipeAttr, PipeAttr, EventAttr),
    "set_flag_dyn": (PipeAttr, PipeAttr),
    "wait_flag_dyn": (PipeAttr, PipeAttr),
    "record_event": (PipeEventTypeAttr, PipeEventTypeAttr, EventAttr),
    "wait_event": (PipeEventTypeAttr, PipeEventTypeAttr, EventAttr),
}


def _point(found: re.Match[str], statement: str) -> Iterator[Offer]:
    kinds = POINTS[found[1]]
    at = found[2].count(",")
    for word in kinds[at].words if at < len(kinds) else ():
        yield Offer(word, "value", len(found[3]), _meaning(word))


def _barrier(found: re.Match[str], statement: str) -> Iterator[Offer]:
    for word in PipeAttr.words:
        yield Offer(word, "value", len(found[1]), _meaning(word))


# Types


def _types(found: re.Match[str], statement: str) -> Iterator[Offer]:
    for name in TYPE_NAMES:
        yield Offer(name, "type", len(found[1]), TYPES.get(name, ""))


TILE_KEYS = {
    "valid": (),
    "blayout": BLAYOUTS,
    "slayout": SLAYOUTS,
    "fractal": ("512", "32", "1024"),
    "pad": ("0", "1", "2", "3"),
    "compact": ("0", "1", "2"),
}


def _tile(found: re.Match[str], statement: str) -> Iterator[Offer]:
    """Inside `!pto.tile_buf<`: a location first, then what is not the default."""
    given, last = found[1], found[1].rpartition(",")[2].lstrip()
    if "," not in given:
        yield from (Offer(loc, "value", len(last)) for loc in LOCS)
        return
    key, equals, word = last.partition("=")
    if equals:
        yield from (Offer(one, "value", len(word)) for one in TILE_KEYS.get(key.strip(), ()))
    elif given.count(",") == 1:
        dims = re.match(r"(?:(?:\d+|\?)x)*", last)
        rest = last[dims.end() :] if dims else last
        yield from (Offer(one, "type", len(rest)) for one in ELEMENTS if not one.startswith("!"))
    else:
        yield from (Offer(one, "attribute", len(last), text=f"{one}=") for one in TILE_KEYS)


# Names


def _suffixes(found: re.Match[str], statement: str) -> Iterator[Offer]:
    from ptokit.ir.documents.forms import SUFFIXES

    given = found[2].split(".")[1:]
    slots = SUFFIXES[found[1]]
    taken = max((at for at, slot in enumerate(slots) if set(given) & set(slot.suffixes)), default=-1)
    for slot in slots[taken + 1 :]:
        yield from (Offer(word, "value", len(found[3]), POLICIES.get(slot.attribute, "")) for word in slot.suffixes)


def _ops(found: re.Match[str], statement: str) -> Iterator[Offer]:
    for name, op in ops_by_name().items():
        vector = OPS.get(name.removeprefix("pto."))
        about = vector.does if vector else " ".join((op.__doc__ or "").split())
        yield Offer(name, "op", len(found[0]), about)


def _names_in_braces(statement: str, before: str) -> Iterator[Offer]:
    """Inside the braces after an op: the attributes that it has and the text does not give yet; after `=` its words."""
    found = re.search(r"\{([^{}]*)$", statement)
    if found is None:
        return
    named = re.findall(
        r"(?:^|[\s=;])((?:pto\.)?[a-z][\w.]*)(?=\s*(?:ins\b|outs\b|\(|%|\[|:|<))", statement[: found.start()]
    )
    op = next((one for one in map(op_named, reversed(named)) if one is not None), None)
    if op is None:
        return
    known = attributes_of(op)
    inside = found[1].rpartition(",")[2]
    name, equals, value = inside.partition("=")
    if equals:
        kind = known.get(name.strip())
        given = value.lstrip()
        for word in kind.words if kind else ():
            yield Offer(word, "value", len(given), POLICIES.get(name.strip(), ""), full(kind, word) if kind else "")
        return
    given = set(re.findall(r"(\w+)\s*=", found[1]))
    for one in known:
        if one not in given:
            yield Offer(one, "attribute", len(inside.lstrip()), POLICIES.get(one, ""), f"{one} = ")


CONTEXTS: tuple[tuple[re.Pattern[str], Finder], ...] = (
    (re.compile(r"#pto<\s*(\w+)\s+(\w*)$"), _words_of),
    (re.compile(r"#pto\.(\w+)<(\w*)$"), _words_of),
    (re.compile(r"#pto<\s*(\w*)$"), _spaced_names),
    (re.compile(r"#pto\.(\w*)$"), _dotted_names),
    (re.compile(rf"\b({'|'.join(POINTS)})\s*\[([^\]]*?)<?(\w*)$"), _point),
    (re.compile(r"\bbarrier\s*<(\w*)$"), _barrier),
    (re.compile(r"!pto\.tile_buf<([^>]*)$"), _tile),
    (re.compile(r"!pto\.(\w*)$"), _types),
    (re.compile(r"\b(mscatter|mgather)((?:\.\w+)*)\.(\w*)$"), _suffixes),
    (re.compile(r"\bpto(?:\.[\w.]*)?$"), _ops),
)
"""What stands before the cursor -> what may follow; the first that fits."""
