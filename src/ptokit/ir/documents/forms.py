"""The spellings of the documents as tables: suffixes, flags, and in which order each form writes its operands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ptokit.ir.dialect.ops import DpsOp, MGatherOp, MScatterOp, TLoadOp, TStoreOp
from ptokit.ir.documents.types import GM, TILE


@dataclass(frozen=True)
class Slot:
    """One place in the row of suffixes: the attribute that it gives, and the words that may stand there."""

    attribute: str
    kind: str
    words: tuple[str, ...]
    lead: str = ""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The words as they are written."""
        return tuple(self.lead + word for word in self.words)


_COALESCE = Slot("coalesce", "coalesce", ("row", "elem"))
SUFFIXES: dict[str, tuple[Slot, ...]] = {
    "mscatter": (
        _COALESCE,
        Slot("scatterOob", "scatter_oob", ("undefined", "skip", "clamp", "wrap")),
        Slot("scatterAtomicOp", "scatter_atomic_op", ("add", "max", "min"), "atomic_"),
        # The one extension of ours: no suffix of the documents carries Conflict.
        Slot("scatterConflict", "scatter_conflict", ("default",), "conflict_"),
    ),
    "mgather": (_COALESCE, Slot("gatherOob", "gather_oob", ("undefined", "clamp", "wrap", "zero"))),
}
"""The suffixes of each instruction, in the order in which they stand."""

FOREIGN_SUFFIXES = {
    ("mgather", "atomic"): "A gather has no atomics.",
    ("mgather", "conflict"): "A gather has no conflicts.",
    ("mgather", "skip"): "A gather cannot skip: its destination gets something; 'zero' is what is near.",
    ("mscatter", "zero"): "A scatter has no 'zero'; 'skip' drops what is out of bounds.",
    ("mscatter", "conflict_last"): "Last is the default and has no suffix.",
}
"""Words of the other instruction: the reason is worth more than a spelling."""

FLAGS: dict[str, dict[str, tuple[str, str, str]]] = {
    "pto.tstore": {"atomic": ("atomicType", "atomic_type", "atomic_")},
    "pto.mscatter": {
        "coalesce": ("coalesce", "coalesce", ""),
        "oob": ("scatterOob", "scatter_oob", ""),
        "atomic": ("scatterAtomicOp", "scatter_atomic_op", ""),
        "conflict": ("scatterConflict", "scatter_conflict", ""),
    },
    "pto.mgather": {"coalesce": ("coalesce", "coalesce", ""), "oob": ("gatherOob", "gather_oob", "")},
    "pto.tcmp": {"cmpMode": ("cmpMode", "cmp", "")},
    "pto.tcvt": {"rmode": ("rmode", "round_mode", "")},
}
"""`#atomic=add` after the operands: which attribute that is, and what its word begins with."""

_IN_GM = {MScatterOp: "mem", MGatherOp: "mem", TLoadOp: "src", TStoreOp: "dst"}

Order = tuple[str, ...]


def gm_role(made: type[DpsOp]) -> str | None:
    """The operand that is in GM, where there is one."""
    return next((role for op, role in _IN_GM.items() if issubclass(made, op)), None)


def expected_kinds(made: type[DpsOp], order: Sequence[str]) -> list[str | None]:
    """What kind each operand is; None where nothing follows from it."""
    in_gm = gm_role(made)
    return [None if in_gm is None else GM if role == in_gm else TILE for role in order]


def flat_ins(made: type[DpsOp]) -> Order:
    """The sources that a flat form can name: those of a TSTORE beside the tile differ in type only."""
    return made.INS[:1] if made is TStoreOp else made.INS


@dataclass(frozen=True)
class Style:
    """How a flat op is written: with the dialect's name, suffixes, `(types)`, `-> ()`, a result."""

    prefixed: bool
    suffixed: bool
    in_parentheses: bool
    has_arrow: bool
    bound: bool


def orders(made: type[DpsOp], ins: Order, style: Style) -> list[Order]:
    """The orders in which the documents write the operands of such an op, the usual one first.

    With a result the destination is not named. Without, level 1 (`-> ()`) has the sources first, PTO-AS the
    destination; the first form of MSCATTER has `src, mem, idx`.
    """
    if style.bound:
        return [ins]
    sources_first, destination_first = (*ins, *made.OUTS), (*made.OUTS, *ins)
    if made is MScatterOp:
        return _scatter_orders(sources_first, destination_first, style)
    if style.has_arrow:
        return [sources_first]
    if made is TStoreOp:
        return [sources_first, destination_first]
    if made is TLoadOp or (made is MGatherOp and not style.suffixed):
        return [destination_first, sources_first]
    return [destination_first]


def _scatter_orders(level1: Order, suffixed: Order, style: Style) -> list[Order]:
    first_form = ("src", "mem", "idx")
    if style.suffixed:
        return [suffixed, level1] if style.has_arrow else [suffixed]
    if style.has_arrow:
        return [level1]
    return [level1, first_form, suffixed] if style.prefixed and style.in_parentheses else [first_form]
