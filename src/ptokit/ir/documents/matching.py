"""Which operand is which, and which type belongs to it: by their places, else by their kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute

from ptokit.ir.dialect.ops import DpsOp
from ptokit.ir.dialect.types import type_of_text
from ptokit.ir.documents.forms import Order, expected_kinds
from ptokit.ir.documents.types import GM, agree, is_column, is_open_column, kind

Known = Sequence[Attribute | None]
"""The types that the operands have already; None where one is not defined yet."""


@dataclass(frozen=True)
class Written:
    """A type, and how the text spells it: `real_type` may have changed it."""

    type: Attribute
    text: str = ""

    @property
    def is_column_of_documents(self) -> bool:
        """`!pto.tile<16x1xi32>` or `!pto.tile<Nx1xi32>`, in the documents' own spelling."""
        if not self.text.lstrip("!").startswith("pto.tile<"):
            return False
        spelt = as_spelt(self.text)
        return is_open_column(spelt) or is_column(getattr(spelt, "dims", None) or ())


def as_spelt(text: str) -> Attribute:
    """A type of the dialect before `real_type` changes it.

    >>> print(as_spelt("pto.tile<16x64xf32>"))
    !pto.tile<16x64xf32>
    """
    name, _, body = text.lstrip("!").removeprefix("pto.").partition("<")
    return type_of_text(name, body.removesuffix(">"))


@dataclass(frozen=True)
class Matched:
    """What each operand is for, its type, and what had to be matched by kind ("types", "operands" or nothing)."""

    order: Order
    types: Sequence[Written]
    moved: str = ""


def match(made: type[DpsOp], orders: Sequence[Order], defined: Known, written: Sequence[Written]) -> Matched:
    """The first of the orders in which everything fits; else the one that goes by the kinds."""
    for order in orders:
        if (
            _fits(made, order, defined)
            and _fits(made, order, [one.type for one in written])
            and _agree(defined, written)
        ):
            return Matched(order, written)
    chosen = next((order for order in orders if _fits(made, order, defined)), None)
    moved = "types" if chosen else "operands"
    chosen = chosen or _order_by_kind(made, orders[0], defined)
    types = None if chosen is None else _types_by_kind(expected_kinds(made, chosen), defined, written)
    if chosen is None or types is None:
        return Matched(chosen or orders[0], written)
    return Matched(chosen, types, moved)


def _agree(defined: Known, written: Sequence[Written]) -> bool:
    return all(has is None or agree(has, one.type) for has, one in zip(defined, written, strict=True))


def _fits(made: type[DpsOp], order: Order, types: Known) -> bool:
    wanted = expected_kinds(made, order)
    return all(
        want is None or (has := kind(one)) is None or has == want for want, one in zip(wanted, types, strict=True)
    )


def _order_by_kind(made: type[DpsOp], usual: Order, defined: Known) -> Order | None:
    """The usual order with the operand in GM where the definitions have it."""
    kinds = [kind(one) for one in defined]
    in_gm = [i for i, one in enumerate(kinds) if one == GM]
    places = in_gm or [i for i, one in enumerate(kinds) if one is None]
    wanted = expected_kinds(made, usual)
    if len(places) != 1 or wanted.count(GM) != 1:
        return None
    role = usual[wanted.index(GM)]
    others = [one for one in usual if one != role]
    others.insert(places[0], role)
    return tuple(others)


def _types_by_kind(
    wanted: Sequence[str | None], defined: Known, written: Sequence[Written]
) -> Sequence[Written] | None:
    """Each operand's type: of its kind, and that of its definition where it has one; None where they do not add up."""
    left = list(written)
    found: list[Written] = []
    for want, has in zip(wanted, defined, strict=True):
        of_kind = [one for one in left if want is None or kind(one.type) == want]
        alike = [one for one in of_kind if has is not None and agree(has, one.type)]
        if not of_kind:
            return None
        found.append((alike or of_kind)[0])
        left.remove(found[-1])
    return found
