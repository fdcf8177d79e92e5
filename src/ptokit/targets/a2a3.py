"""a2a3: the Ascend A2/A3 vector core. One scalar walk; rows go out by DMA, elements one by one."""

from __future__ import annotations

import numpy as np

from ptokit.access.call import Access
from ptokit.access.plan import (
    Array,
    Capacity,
    Lanes,
    Machine,
    Runs,
    element_runs,
    far_product,
    product,
    row_major,
    tile_word,
)
from ptokit.access.rules import (
    ELEM_INDEX_RULE,
    INDEX_ALIGNMENT_RULE,
    NZ_RULES,
    Rule,
    common_rules,
    conflict_rule,
    index_layout,
    is_row_vector,
    paired_layout,
    row_index_shape,
    table_layout,
    tile_alignment_rule,
    vec_rule,
)
from ptokit.dtypes import ELEMENT_TYPES
from ptokit.tensors import FRACTAL_ROWS, GlobalTensor

ELEMENTS = frozenset(ELEMENT_TYPES) - {"hifloat8", "float8_e4m3", "float8_e5m2"}

ATOMICS = {
    "none": frozenset(ELEMENT_TYPES),
    "add": frozenset({"int8", "int16", "int32", "float16", "bfloat16", "float32"}),
    "max": frozenset[str](),
    "min": frozenset[str](),
}


def widen(words: Array) -> Lanes:
    """The 32 bits are taken as unsigned: -1 is 4294967295."""
    return words.view(np.uint32).astype(np.int64)


def row_capacity(table: GlobalTensor) -> Capacity:
    """ND: S0*S1*S2*S3 rows. NZ: S2*16 logical rows."""
    s0, s1, s2, s3, _ = table.shape
    rows = s2 * FRACTAL_ROWS if table.layout == "nz" else s0 * s1 * s2 * s3
    return Capacity.modulo_32(rows)


def elem_capacity(table: GlobalTensor) -> Capacity:
    """ND: S0*S1*S2*S3*S4. NZ: logical rows times logical columns."""
    if table.layout == "nz":
        return Capacity.modulo_32(table.shape[2] * FRACTAL_ROWS * nz_columns(table))
    return Capacity.modulo_32(product(table))


def index_offsets(call: Access, row: Lanes, col: Lanes) -> Lanes:
    """Row: word r of the valid [1,R]. Elem: (r, c)."""
    if call.is_row:
        return tile_word(call, np.zeros_like(row), row)
    return tile_word(call, row, col)


def row_runs(call: Access, slot: Lanes) -> Runs:
    """ND: a burst of ValidCol elements at `slot * stride3`. NZ: every block column of the row."""
    row = np.arange(len(slot))
    if call.is_nz:
        return nz_row_runs(call, row, slot)
    start = np.zeros_like(row)
    dst = far_product(slot, call.table.stride[3])
    return Runs(row, start, call.tile.offsets(row, start), dst, length=call.tile.valid_cols)


def elem_runs(call: Access, row: Lanes, col: Lanes, slot: Lanes) -> Runs:
    """ND: linear, strides are not honoured. NZ: (row, col) = divmod(idx, logical columns)."""
    if not call.is_nz:
        return element_runs(call, row, col, slot)
    logical_row, logical_col = np.divmod(slot, nz_columns(call.table))
    dst = nz_offset(call.table, logical_row, logical_col)
    return Runs(row, col, call.tile.offsets(row, col), dst, length=1)


def elem_walk(call: Access) -> tuple[Lanes, Lanes]:
    """ND: r, then c. NZ: block column, then r, then c inside the block; not row-major."""
    if not call.is_nz:
        return row_major(call)
    (rows, cols), c0 = call.tile.valid, call.tile.dtype.c0
    whole = cols // c0 * c0
    blocks, inside = np.arange(0, whole, c0), np.arange(c0)
    row = np.tile(np.repeat(np.arange(rows), c0), len(blocks))
    col = (blocks[:, None, None] + np.broadcast_to(inside, (rows, c0))).ravel()
    rest = np.arange(whole, cols)
    return (
        np.concatenate([row, np.repeat(np.arange(rows), len(rest))]),
        np.concatenate([col, np.tile(rest, rows)]),
    )


def scans_slots(call: Access) -> bool:
    """It walks the source."""
    return False


def nz_columns(table: GlobalTensor) -> int:
    """Logical columns of an NZ table: B*BCols*C0."""
    return table.shape[0] * table.shape[1] * table.dtype.c0


def nz_offset(table: GlobalTensor, row: Lanes, col: Lanes) -> Lanes:
    """Element offset of (row, col) in an NZ table (SEMANTICS 1)."""
    c0 = table.dtype.c0
    st0, st1, st2, st3, st4 = table.stride
    outer0, outer1 = np.divmod(col // c0, table.shape[1])
    block = far_product(outer0, st0) + far_product(outer1, st1) + far_product(row // FRACTAL_ROWS, st2)
    return block + far_product(row % FRACTAL_ROWS, st3) + far_product(col % c0, st4)


def nz_row_runs(call: Access, row: Lanes, slot: Lanes) -> Runs:
    """A run of C0 elements for each row, outer batch and block column; stride4 is not honoured."""
    table, c0 = call.table, call.table.dtype.c0
    blocks = table.shape[0] * table.shape[1]
    lane_row = np.repeat(row, blocks)
    first_col = np.tile(np.arange(blocks) * c0, len(row))
    return Runs(
        row=lane_row,
        col=first_col,
        src=call.tile.offsets(lane_row, first_col),
        dst=nz_offset(table, np.repeat(slot, blocks), first_col),
        length=c0,
    )


def capacity(call: Access) -> int:
    """What is there, before any truncation."""
    return (row_capacity if call.is_row else elem_capacity)(call.table).true


RULES = (
    *common_rules(ELEMENTS, ATOMICS, capacity, "a2a3"),
    conflict_rule(),
    vec_rule(),
    Rule(
        "PTO-L008",
        "ND tile with ND table, NZ tile (fractal 512) with NZ table",
        paired_layout,
        "Declare tile and table in the same layout.",
    ),
    Rule(
        "PTO-L009",
        "index tile ND",
        index_layout(("nd",), "a2a3 reads indices from row-major tiles only, whatever the table's layout"),
        "Declare the index tile row-major (layout='nd').",
    ),
    Rule(
        "PTO-L011",
        "table ND or NZ",
        table_layout(("nd", "nz"), "a2a3 scatters into ND and NZ tables"),
        "Use an ND or NZ table.",
    ),
    Rule(
        "PTO-L013",
        "index valid [1,R] for Row",
        row_index_shape(is_row_vector, "a2a3 wants [1,{rows}]"),
        "Lay the indices in one row: valid=(1, R).",
    ),
    ELEM_INDEX_RULE,
    tile_alignment_rule("tile Cols * sizeof(T) % 32 == 0, in both layouts", by_layout=False),
    INDEX_ALIGNMENT_RULE,
    *NZ_RULES,
)


MACHINE = Machine(
    name="a2a3",
    title="Ascend A2/A3 vector core",
    elements=ELEMENTS,
    atomics=ATOMICS,
    has_policies=True,
    has_default_conflict=False,
    widen=widen,
    row_capacity=row_capacity,
    elem_capacity=elem_capacity,
    index_offsets=index_offsets,
    row_runs=row_runs,
    elem_runs=elem_runs,
    elem_walk=elem_walk,
    scans_slots=scans_slots,
    threads=None,
    row_address_in_32_bits=False,
    elem_sums_by_bit_trick=True,
    dma_atomics=True,
    rules=RULES,
)
