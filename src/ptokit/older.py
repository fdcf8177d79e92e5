"""The older spellings of the two instructions (SEMANTICS 2.4), as calls of today's.

First edition: no modes, no policies. That is Row, None, Undefined, Last on a2a3 and a5, and Elem on cpu.

First custom form of a5, `MSCATTER<ScatterAtomicOp, ScatterOOB>(table, src, idx)`: the mode follows from the
index tile, and None with duplicates is left to the scheduler, so it means Conflict Default.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ptokit.access.call import Access
from ptokit.access.instructions import PolicyName, mgather, mscatter, read_call
from ptokit.access.report import Report
from ptokit.access.rules import (
    EXTENTS_KNOWN_RULE,
    PADDED_ROWS_RULE,
    TWO_DIMENSIONAL_RULE,
    Rule,
    atomic_type,
    element_type_listed,
    index_layout,
    judge,
)
from ptokit.dtypes import ELEMENT_TYPES
from ptokit.errors import IllegalInstruction, well_called
from ptokit.findings import in_order
from ptokit.policies import Coalesce, word
from ptokit.targets import machine
from ptokit.tensors import GlobalTensor, Tile

ELEMENTS = frozenset(ELEMENT_TYPES) - {"hifloat8"}

ATOMICS = {
    "none": ELEMENTS,
    "add": frozenset({"int32", "uint32", "float32", "float16"}),
    "max": frozenset({"int32", "float32"}),
    "min": frozenset({"int32", "float32"}),
}


def mode_is_clear(call: Access) -> str | None:
    """`idx.Cols == 1` is Row, else `idx.Cols == src.Cols` is Elem."""
    if call.idx.cols in (1, call.tile.cols):
        return None
    return (
        f"the index tile has {call.idx.cols} columns; the first custom form takes 1 (Row) or the source's "
        f"{call.tile.cols} (Elem)."
    )


RULES = (
    Rule(
        "PTO-L001",
        "an element type of the first custom form",
        element_type_listed(ELEMENTS, "the first custom form"),
        "Use today's MSCATTER, which also moves hifloat8.",
    ),
    Rule(
        "PTO-L009",
        "index tile ND or DN",
        index_layout(("nd", "dn"), "the first custom form reads it linearly"),
        "Declare the index tile ND or DN.",
    ),
    EXTENTS_KNOWN_RULE,
    PADDED_ROWS_RULE,
    TWO_DIMENSIONAL_RULE,
    Rule(
        "PTO-L024",
        "an atomic that exists for the type",
        atomic_type(ATOMICS, "the first custom form"),
        "Use today's MSCATTER, which has more atomics.",
    ),
    Rule(
        "PTO-L026",
        "idx.Cols == 1 (Row) or idx.Cols == src.Cols (Elem)",
        mode_is_clear,
        "Use today's MSCATTER and name the mode.",
    ),
)


@dataclass(frozen=True)
class Converted:
    """A call of the first custom form in today's words."""

    coalesce: str
    atomic: str
    oob: str
    conflict: str
    idx: Tile


@well_called
def convert_custom_a5(
    table: GlobalTensor, src: Tile, idx: Tile, *, atomic: PolicyName = "none", oob: PolicyName = "undefined"
) -> Converted:
    """Today's call for one of the first custom form; raises `IllegalInstruction` where the form forbids it.

    An index tile of one column becomes an `[R,1]` tile in DN on the same words.

    >>> table = GlobalTensor(bytearray(8 * 64 * 4), "float32", shape=(1, 1, 1, 8, 64))
    >>> new = convert_custom_a5(table, Tile("float32", 16, 64), Tile("int32", 16, 1), oob="skip")
    >>> new.coalesce, new.conflict, new.idx
    ('row', 'default', Tile('int32', 16, 1, layout='dn'))
    """
    call = read_call("mscatter", (table, src, idx), {"atomic": atomic, "oob": oob, "conflict": "default"})
    is_row = call.idx.cols == 1
    today = replace(
        call,
        coalesce=Coalesce.Row if is_row else Coalesce.Elem,
        idx=_as_column(call.idx) if is_row else call.idx,
    )
    broken = judge(call, "a5", RULES)
    if broken:
        # What is wrong with it today as well, so that all of it is told at once.
        told = {finding.id for finding in broken} | ({"PTO-L014"} if mode_is_clear(call) else set())
        broken += [finding for finding in judge(today, "a5", machine("a5").rules) if finding.id not in told]
        raise IllegalInstruction("mscatter (first custom form)", "a5", in_order(broken))
    return Converted(word(today.coalesce), word(today.atomic), word(today.oob), word(today.conflict), today.idx)


@well_called
def mscatter_custom_a5(
    table: GlobalTensor,
    src: Tile,
    idx: Tile,
    *,
    atomic: PolicyName = "none",
    oob: PolicyName = "undefined",
    schedule: PolicyName = "program",
    seed: int = 0,
) -> Report:
    """Run a call of the first custom form on a5."""
    new = convert_custom_a5(table, src, idx, atomic=atomic, oob=oob)
    return mscatter(
        table,
        src,
        new.idx,
        coalesce=new.coalesce,
        atomic=new.atomic,
        oob=new.oob,
        conflict=new.conflict,
        target="a5",
        schedule=schedule,
        seed=seed,
    )


@well_called
def mscatter_first_edition(table: GlobalTensor, src: Tile, idx: Tile, *, target: str = "a5") -> Report:
    """Run MSCATTER as its first edition wrote it: no modes, no policies."""
    return mscatter(table, src, idx, coalesce=_first_mode(target), target=target)


@well_called
def mgather_first_edition(dst: Tile, table: GlobalTensor, idx: Tile, *, target: str = "a5") -> Report:
    """Run MGATHER as its first edition wrote it: no modes, no policies."""
    return mgather(dst, table, idx, coalesce=_first_mode(target), target=target)


def _first_mode(target: str) -> str:
    return "row" if machine(target).row_runs is not None else "elem"


def _as_column(idx: Tile) -> Tile:
    """The same words as `[R,1]` in DN: with one column both layouts are linear."""
    column = Tile(idx.dtype, idx.rows, 1, idx.declared_valid, "dn", idx.loc, idx.fractal, data=idx.storage)
    if idx.is_known:
        column.set_valid(*idx.valid)
    return column
