"""a5: Ascend A5 SIMT. Up to 32 warps of 32 lanes; addresses of rows are made in 32 bits."""

from __future__ import annotations

import numpy as np

from ptokit.access.call import Access
from ptokit.access.plan import (
    U32,
    Array,
    Capacity,
    Lanes,
    Machine,
    Runs,
    Threads,
    element_runs,
    product,
    row_major,
    tile_word,
)
from ptokit.access.rules import (
    ELEM_INDEX_RULE,
    INDEX_ALIGNMENT_RULE,
    Rule,
    common_rules,
    index_layout,
    is_linear_vector,
    packed_rows,
    row_index_shape,
    row_width,
    table_layout,
    tile_alignment_rule,
    tile_layout,
    vec_rule,
)
from ptokit.dtypes import ELEMENT_TYPES
from ptokit.policies import ScatterAtomicOp, ScatterConflict
from ptokit.tensors import GlobalTensor

ELEMENTS = frozenset(ELEMENT_TYPES)

ATOMICS = {
    "none": frozenset(ELEMENT_TYPES),
    "add": frozenset({"int32", "uint32", "float16", "bfloat16", "float32"}),
    "max": frozenset({"int32", "uint32", "float32"}),
    "min": frozenset({"int32", "uint32", "float32"}),
}

LANES = 32
MOST_WARPS = 32


def widen(words: Array) -> Lanes:
    """The 32 bits are taken as unsigned: -1 is 4294967295."""
    return words.view(np.uint32).astype(np.int64)


def row_capacity(table: GlobalTensor) -> Capacity:
    """S3 rows, whatever the batches."""
    return Capacity.modulo_32(table.shape[3])


def elem_capacity(table: GlobalTensor) -> Capacity:
    """S0*S1*S2*S3*S4."""
    return Capacity.modulo_32(product(table))


def index_offsets(call: Access, row: Lanes, col: Lanes) -> Lanes:
    """Row: word r, along a [1,R] in ND or an [R,1] in DN. Elem: (r, c)."""
    if call.is_row:
        return row
    return tile_word(call, row, col)


def row_runs(call: Access, slot: Lanes) -> Runs:
    """`slot * ValidCol` in 32-bit arithmetic: the table's own strides are not looked at."""
    row = np.arange(len(slot))
    start = np.zeros_like(row)
    dst = (slot * call.tile.valid_cols) % U32
    step = call.tile.rows if call.tile.layout == "dn" else 1
    return Runs(row, start, call.tile.offsets(row, start), dst, length=call.tile.valid_cols, src_step=step)


def elem_runs(call: Access, row: Lanes, col: Lanes, slot: Lanes) -> Runs:
    """Linear."""
    return element_runs(call, row, col, slot)


def elem_walk(call: Access) -> tuple[Lanes, Lanes]:
    """r, then c: the sequential reading of a SIMT call."""
    return row_major(call)


def scans_slots(call: Access) -> bool:
    """The Last kernel: a thread per slot. A static (1,1) Elem call has no scan (SEMANTICS 2.1)."""
    return (
        call.is_scatter
        and call.atomic is ScatterAtomicOp.None_
        and call.conflict is ScatterConflict.Last
        and not call.is_static_scalar
    )


def threads(call: Access) -> Threads | None:
    """Who writes what: the geometry of a scatter, but of Last, where a thread owns a slot."""
    return geometry(call) if call.is_scatter and not scans_slots(call) else None


def geometry(call: Access) -> Threads:
    """The launch geometry of every kernel but Last (SEMANTICS 3.2)."""
    rows, cols = call.tile.valid
    if not call.is_row:
        warps = min(-(-rows * cols // LANES), MOST_WARPS)
        return Threads(LANES * warps, 1, is_row=False, cols=cols)
    row_warps = min(rows, MOST_WARPS)
    warps_per_row = max(min(MOST_WARPS // row_warps, -(-cols // LANES)), 1)
    return Threads(row_warps, LANES * warps_per_row, is_row=True, cols=cols)


def capacity(call: Access) -> int:
    """What is there, before any truncation."""
    return (row_capacity if call.is_row else elem_capacity)(call.table).true


RULES = (
    *common_rules(ELEMENTS, ATOMICS, capacity, "a5"),
    vec_rule(),
    Rule(
        "PTO-L008",
        "tile ND or DN",
        tile_layout(("nd", "dn"), "the SIMT kernels know no fractals"),
        "Move the data to an ND tile first (TMOV).",
    ),
    Rule(
        "PTO-L009",
        "index tile ND or DN",
        index_layout(("nd", "dn"), "the SIMT kernels know no fractals"),
        "Declare the index tile ND or DN.",
    ),
    Rule(
        "PTO-L011",
        "table ND",
        table_layout(("nd",), "a5 addresses every table as flat row-major memory"),
        "Repack the table into ND.",
    ),
    Rule(
        "PTO-L013",
        "index valid [1,R] in ND or [R,1] in DN for Row",
        row_index_shape(is_linear_vector, "a5 reads [1,{rows}] in ND or [{rows},1] in DN; the others read padding"),
        "Lay the indices [1,R] row-major, or [R,1] column-major (layout='dn').",
    ),
    ELEM_INDEX_RULE,
    tile_alignment_rule("the tile's contiguous dimension a multiple of 32 bytes", by_layout=True),
    INDEX_ALIGNMENT_RULE,
    Rule(
        "PTO-L017",
        "Row: table S4 == ValidCol",
        row_width,
        "Give the tile as many valid columns as a table row has.",
    ),
    Rule(
        "PTO-L018",
        "Row: packed table rows",
        packed_rows,
        "Pack the table, or scatter element by element with computed indices.",
    ),
)


MACHINE = Machine(
    name="a5",
    title="Ascend A5 SIMT",
    elements=ELEMENTS,
    atomics=ATOMICS,
    has_policies=True,
    has_default_conflict=True,
    widen=widen,
    row_capacity=row_capacity,
    elem_capacity=elem_capacity,
    index_offsets=index_offsets,
    row_runs=row_runs,
    elem_runs=elem_runs,
    elem_walk=elem_walk,
    scans_slots=scans_slots,
    threads=threads,
    row_address_in_32_bits=True,
    elem_sums_by_bit_trick=False,
    dma_atomics=False,
    rules=RULES,
)
