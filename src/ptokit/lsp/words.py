"""What the words of a text mean, and where the word under a cursor begins and ends."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from ptokit.core.vector import OPS
from ptokit.ir.dialect.attributes import WORD_ATTRS, WordAttr
from ptokit.ir.dialect.ops import OPERATIONS, SEGMENTS, PtoOp, SkippedOp

_WORD = re.compile(r"PTO-[A-Z]\d{3}|[%@#!]?[A-Za-z_0-9][\w.$\-]*|[%@][\w.$\-]+")

MEANINGS = {
    "pto.make_tensor_view": "A pointer with extents and strides (in elements): a tensor in global memory.",
    "pto.partition_view": "A part of a view, from `offsets` on, of the extents `sizes`.",
    "pto.alloc_tile": "A tile on the chip; without `addr` it is placed behind the others.",
    "pto.tassign": "Puts a tile at an address.",
    "pto.set_validshape": "Gives dynamic valid extents their values.",
    "pto.tload": "TLOAD: global memory to a tile, on MTE2. V sees it after a flag from MTE2 to V.",
    "pto.tstore": "TSTORE: a tile to global memory, on MTE3. It wants a flag from V to MTE3 before it.",
    "pto.mscatter": "MSCATTER, on V. row: `table[idx[r], :] = src[r, :]`; elem: `table[idx[r, c]] = src[r, c]`, the "
    "table taken as flat. On a5 the host sees it only after `pto.dcci` and `pto.dsb`.",
    "pto.mgather": "MGATHER, on V. row: `dst[r, :] = table[idx[r], :]`; elem: `dst[r, c] = table[idx[r, c]]`, the "
    "table taken as flat.",
    "pto.set_flag": "Set behind everything that the first pipe has got so far; ids 0 to 7 for each pair of pipes.",
    "pto.wait_flag": "The second pipe goes no further until the first has set the flag.",
    "pto.barrier": "Waits for one pipe, or for all of them.",
    "pto.dcci": "Cleans the data cache; complete after `pto.dsb`. The stores must be ordered before it (a barrier).",
    "pto.dsb": "Waits until what was cleaned has arrived in memory.",
}
"""What the ops do that everybody meets; their form stands with their class."""

POLICIES = {
    "coalesce": "What one index names: `row` a whole row of the table, `elem` one element of it, counted linearly.",
    "scatterAtomicOp": "What a write does with what stands there: `none` replaces, `add`, `max` and `min` combine. "
    "On a2a3 there is no `max` and `min`.",
    "scatterOob": "What becomes of an index outside the table: `undefined` is not checked, `skip` writes nothing, "
    "`clamp` takes the last slot, `wrap` the index modulo the capacity.",
    "scatterConflict": "Which of several writers of one slot wins on a5: `last`, the largest index of the source; or "
    "`default`, any one. The other targets have no such choice: the last wins.",
    "gatherOob": "What comes for an index outside the table: `undefined` whatever lies there, `clamp` the last slot, "
    "`wrap` the index modulo the capacity, `zero` a zero.",
    "atomicType": "Whether a store adds to what stands there.",
    "layout": "How the tensor lies in global memory: `nd`, `dn` or `nz`.",
    "root": "The rank that gives (a scatter) or gets (a gather).",
    "cmpMode": "Which comparison.",
    "rmode": "How a conversion rounds.",
}
"""Attributes by name, in one sentence each."""

ATTRIBUTE_OF = {
    "coalesce": "coalesce",
    "scatter_atomic_op": "scatterAtomicOp",
    "scatter_oob": "scatterOob",
    "scatter_conflict": "scatterConflict",
    "gather_oob": "gatherOob",
    "atomic_type": "atomicType",
    "layout": "layout",
    "cmp": "cmpMode",
    "round_mode": "rmode",
}
"""The name of an attribute's kind -> the name under which ops carry it."""

PIPES = {
    "PIPE_S": "the scalar pipe",
    "PIPE_V": "the vector pipe: arithmetic on tiles, MSCATTER and MGATHER",
    "PIPE_MTE2": "the pipe from global memory to tiles: TLOAD",
    "PIPE_MTE3": "the pipe from tiles to global memory: TSTORE",
    "PIPE_ALL": "all pipes",
    "PIPE_M": "the matrix pipe of a cube core",
    "PIPE_MTE1": "a pipe of a cube core",
    "PIPE_FIX": "a pipe of a cube core",
}

TYPES = {
    "ptr": "A pointer: `!pto.ptr<f32, gm>`.",
    "tensor_view": "A view on global memory: extents (`?` where they are known at run time) and element type.",
    "partition_tensor_view": "A part of a view: what loads, stores, gathers and scatters take.",
    "tile_buf": "A tile on the chip: location, padded extents and element type, then what is not the default.",
    "tile": "A tile as the instruction documents write it; `<...>` leaves it open.",
    "memref": "Global memory as the instruction documents write it.",
    "group": "A group of ranks as the instruction documents write it.",
}


def word_at(line: str, column: int) -> tuple[str, int, int] | None:
    """The word at a column (from 0) and where it begins and ends.

    >>> word_at("  pto.barrier <PIPE_ALL>", 5)
    ('pto.barrier', 2, 13)
    """
    for found in _WORD.finditer(line):
        if found.start() <= column <= found.end():
            return found[0], found.start(), found.end()
    return None


@cache
def ops_by_name() -> dict[str, type[PtoOp]]:
    """The ops of the dialect, by name."""
    return {op.name: op for op in OPERATIONS if issubclass(op, PtoOp) and op is not SkippedOp}


def op_named(word: str) -> type[PtoOp] | None:
    """The op that a word names, with or without the dialect and PTO-AS suffixes.

    >>> op_named("mscatter.row.clamp").name, op_named("pto.comm.tgather").name, op_named("row")
    ('pto.mscatter', 'pto.comm.tgather', None)
    """
    known = ops_by_name()
    name = word if word.startswith("pto.") else f"pto.{word}"
    while name and name not in known:
        name = name.rpartition(".")[0]
    return known.get(name)


@cache
def attributes_of(op: type[PtoOp]) -> dict[str, type[WordAttr] | None]:
    """The attributes that an op has by name: the kind of word that each takes, None where it takes something else."""
    properties = op.get_irdl_definition().properties
    written = [name for name in properties if name not in (SEGMENTS, *_between_brackets(op))]
    return {name: _kind(properties[name].constr) for name in written}


def _between_brackets(op: Any) -> list[str]:
    return [name for name, _ in getattr(op, "POINTS", ())] + ["pipe", "src_pipe", "dst_pipe"]


def _kind(constraint: Any) -> type[WordAttr] | None:
    held = getattr(constraint, "attr", None) or getattr(constraint, "base_attr", None)
    held = held if isinstance(held, type) else type(held)
    return held if held in WORD_ATTRS else None


def about_op(op: type[PtoOp]) -> str:
    """An op in Markdown: its form, what it does, the attributes that it takes."""
    doc = " ".join((op.__doc__ or "").split())
    lines = [f"**{op.name}**", "", MEANINGS.get(op.name, ""), "", doc]
    vector = OPS.get(op.name.removeprefix("pto."))
    if vector is not None:
        lines += ["", f"Runs on V, for {', '.join(sorted(vector.types))}."]
    for name, kind in attributes_of(op).items():
        words = f": {', '.join(kind.words)}" if kind else ""
        lines.append(f"\n- `{name}`{words}. {POLICIES.get(name, '')}".rstrip())
    return "\n".join(lines)
