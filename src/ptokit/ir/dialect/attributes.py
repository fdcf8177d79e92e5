"""The attributes of the dialect: words of a closed list, spelt `#pto<coalesce row>` or `#pto.pipe<PIPE_V>`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from xdsl.dialects import builtin
from xdsl.ir import Attribute, Data, SpacedOpaqueSyntaxAttribute

from ptokit.errors import PtoValueError, nearest
from ptokit.ir.dialect.refused import Misread, near

if TYPE_CHECKING:
    from xdsl.parser import AttrParser
    from xdsl.printer import Printer


class WordAttr(Data[str]):
    """One word of `words`."""

    words: ClassVar[tuple[str, ...]] = ()
    spaced: ClassVar[bool] = False

    def __init__(self, word: str) -> None:
        if word not in self.words:
            raise PtoValueError(f"{self.name}: {word!r} is unknown.{near(word, self.words)}")
        super().__init__(word)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        """`row` or `<row>`: each attribute is read in either spelling."""
        bracketed = parser.parse_optional_characters("<") is not None
        start = parser.pos
        word = parser.parse_identifier()
        try:
            of_word(cls, word)
        except Misread as wrong:
            wrong.at(parser, start)
        if bracketed:
            parser.parse_characters(">")
        return word

    def print_parameter(self, printer: Printer) -> None:
        """The word, in brackets where the spelling has a dot."""
        printer.print_string(self.data if self.spaced else f"<{self.data}>")


def of_word(made: type[WordAttr], word: str) -> WordAttr:
    """The attribute of that word; `Misread` where the list has none."""
    if word not in made.words:
        name = made.name.removeprefix("pto.")
        raise Misread(f"Unknown {name} {word!r}.{near(word, made.words)}", 0, len(word))
    return made(word)


class TextAttr(Data[str]):
    """An attribute that is kept as its text."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        """Everything between the brackets."""
        return parser._parse_dialect_symbol_body()

    def print_parameter(self, printer: Printer) -> None:
        """As it was."""
        printer.print_string(f"<{self.data}>")


class TileBufConfigAttr(TextAttr):
    """`#pto.tile_buf_config<blayout=.., ..>`: older files carry it; nothing reads it."""

    name = "pto.tile_buf_config"


def _words(name: str, words: str, *, spaced: bool = False) -> type[WordAttr]:
    bases: tuple[type, ...] = (WordAttr, SpacedOpaqueSyntaxAttribute) if spaced else (WordAttr,)
    title = "".join(part.title() for part in name.split("_"))
    about = f"`#pto<{name} ..>`: {words}." if spaced else f"`#pto.{name}<..>`: {words}."
    body = {"name": f"pto.{name}", "words": tuple(words.split()), "spaced": spaced, "__doc__": about}
    return type(f"{title}Attr", bases, {**body, "__module__": __name__})


def _spaced(name: str, words: str) -> type[WordAttr]:
    return _words(name, words, spaced=True)


CoalesceAttr = _spaced("coalesce", "row elem")
ScatterAtomicOpAttr = _spaced("scatter_atomic_op", "none add max min")
ScatterOobAttr = _spaced("scatter_oob", "undefined skip clamp wrap")
ScatterConflictAttr = _spaced("scatter_conflict", "default last")
GatherOobAttr = _spaced("gather_oob", "undefined clamp wrap zero")
AtomicTypeAttr = _spaced("atomic_type", "atomic_none atomic_add atomic_max atomic_min")
ReduceOpAttr = _spaced("reduce_op", "sum max min")
StPhaseAttr = _spaced("st_phase", "unspecified partial final")
ReluPreModeAttr = _spaced("relu_pre_mode", "no_relu normal_relu scalar_relu vector_relu")
CmpModeAttr = _spaced("cmp", "eq ne lt le gt ge")
RoundModeAttr = _spaced("round_mode", "NONE RINT ROUND FLOOR CEIL TRUNC ODD CAST_RINT")
PadModeAttr = _spaced("pad_mode", "pad_null pad_first_elem pad_value")
LayoutAttr = _words("layout", "nd dn nz mx_a_zz mx_b_nn")
KernelKindAttr = _words("kernel_kind", "cube vector")
PipeAttr = _words(
    "pipe",
    "PIPE_S PIPE_V PIPE_M PIPE_MTE1 PIPE_MTE2 PIPE_MTE3 PIPE_ALL PIPE_MTE4 PIPE_MTE5 PIPE_V2 PIPE_FIX",
)
EventAttr = _words("event", " ".join(f"EVENT_ID{i}" for i in range(8)))
_EVENT_TYPES = "TLOAD TSTORE_ACC TSTORE_VEC TMOV_M2L TMOV_M2S TMOV_M2B TMOV_M2V TMOV_V2M TMATMUL TVEC TVECWAIT_EVENT"
PipeEventTypeAttr = _words("pipe_event_type", _EVENT_TYPES)
AddressSpaceAttr = _words("address_space", "zero gm mat left right acc vec bias scaling")
BLayoutAttr = _words("blayout", "row_major col_major")
SLayoutAttr = _words("slayout", "none_box row_major col_major")
PadValueAttr = _words("pad_value", "null zero max min")
MaskPatternAttr = _words("mask_pattern", "P0101 P1010 P0001 P0010 P0100 P1000 P1111")

WORD_ATTRS: tuple[type[WordAttr], ...] = (
    CoalesceAttr,
    ScatterAtomicOpAttr,
    ScatterOobAttr,
    ScatterConflictAttr,
    GatherOobAttr,
    AtomicTypeAttr,
    ReduceOpAttr,
    StPhaseAttr,
    ReluPreModeAttr,
    CmpModeAttr,
    RoundModeAttr,
    PadModeAttr,
    LayoutAttr,
    KernelKindAttr,
    PipeAttr,
    EventAttr,
    PipeEventTypeAttr,
    AddressSpaceAttr,
    BLayoutAttr,
    SLayoutAttr,
    PadValueAttr,
    MaskPatternAttr,
)
_BY_NAME = {made.name.removeprefix("pto."): made for made in WORD_ATTRS} | {"sync_op_type": PipeEventTypeAttr}
_CACHE = {(name, word): made(word) for name, made in _BY_NAME.items() for word in made.words}
ATTRIBUTE_NAMES = (*_BY_NAME, "tile_buf_config")


def attribute_of_text(name: str, word: str) -> WordAttr:
    """The attribute `#pto<NAME WORD>`; `Misread` (with places in `word`) where there is none.

    >>> attribute_of_text("coalesce", "row").data
    'row'
    """
    found = _CACHE.get((name, word))
    if found is not None:
        return found
    made = _BY_NAME.get(name)
    if made is None:
        raise Misread(f"Unknown attribute #pto.{name}.{nearest(name, ATTRIBUTE_NAMES)}", -len(name) - 1, len(name))
    return of_word(made, word)


def spelt_alike(name: str, word: str) -> str | None:
    """The word as the attribute `name` spells it, letter case aside."""
    return next((known for known in _BY_NAME[name].words if known.lower() == word.lower()), None)


_NUMBERED = {"pto.event": "EVENT_ID"}
_PREFIXED = {"pto.pipe": "PIPE_", "pto.atomic_type": "atomic_"}


def word(attr: Attribute | None, default: Any = None) -> Any:
    """An attribute as plain Python: "row", "V" for PIPE_V, 3 for EVENT_ID3, numbers, strings, booleans.

    >>> word(PipeAttr("PIPE_V")), word(EventAttr("EVENT_ID3")), word(CoalesceAttr("row")), word(None, "last")
    ('V', 3, 'row', 'last')
    """
    match attr:
        case None:
            return default
        case WordAttr() if attr.name in _NUMBERED:
            return int(attr.data.removeprefix(_NUMBERED[attr.name]))
        case WordAttr():
            return attr.data.removeprefix(_PREFIXED.get(attr.name, ""))
        case builtin.IntegerAttr() if attr.type == builtin.i1:
            return bool(attr.value.data)
        case builtin.IntegerAttr() | builtin.FloatAttr():
            return attr.value.data
        case builtin.StringAttr() | TextAttr():
            return attr.data
        case builtin.SymbolRefAttr():
            return ".".join([attr.root_reference.data, *(one.data for one in attr.nested_references.data)])
        case builtin.UnitAttr():
            return True
        case builtin.ArrayAttr():
            return [word(one) for one in attr.data]
    return str(attr)


def pipe(name: str) -> WordAttr:
    """The pipe, with or without its prefix.

    >>> pipe("MTE2") == pipe("PIPE_MTE2")
    True
    """
    return PipeAttr(name if name.startswith("PIPE_") else f"PIPE_{name}")


def event(number: int | str) -> WordAttr:
    """The event id, by its number or its name."""
    return EventAttr(number if isinstance(number, str) and number.startswith("EVENT") else f"EVENT_ID{number}")
