"""cpu: the reference simulator. One plain loop over the elements, no policies (SEMANTICS 2.4)."""

from __future__ import annotations

import numpy as np

from ptokit.access.call import Access
from ptokit.access.plan import (
    Array,
    Capacity,
    Lanes,
    Machine,
    element_runs,
    product,
    row_major,
)
from ptokit.access.rules import (
    ELEM_INDEX_RULE,
    INDEX_ALIGNMENT_RULE,
    PADDED_ROWS_RULE,
    TWO_DIMENSIONAL_RULE,
    Rule,
    as_contract,
    common_rules,
    conflict_rule,
    index_layout,
    is_column_vector,
    row_index_shape,
    table_layout,
    tile_alignment_rule,
    tile_layout,
    vec_rule,
)
from ptokit.dtypes import ELEMENT_TYPES
from ptokit.tensors import GlobalTensor

ELEMENTS = frozenset(ELEMENT_TYPES) - {"hifloat8"}

# What the ABI contract allows to be asked for; the simulator ignores it.
ATOMICS = {
    "none": frozenset(ELEMENT_TYPES),
    "add": frozenset({"int32", "uint32", "float32", "float16"}),
    "max": frozenset({"int32", "float32"}),
    "min": frozenset({"int32", "float32"}),
}


def widen(words: Array) -> Lanes:
    """An int32 is sign-extended to 64 bits."""
    return words.astype(np.int64)


def elem_capacity(table: GlobalTensor) -> Capacity:
    """S0*S1*S2*S3*S4, in 64 bits."""
    return Capacity(product(table), product(table))


def index_offsets(call: Access, row: Lanes, col: Lanes) -> Lanes:
    """`r*idx.Cols + c`, whatever the shape of idx."""
    return row * call.idx.cols + col


def elem_walk(call: Access) -> tuple[Lanes, Lanes]:
    """r, then c."""
    return row_major(call)


def scans_slots(call: Access) -> bool:
    """It walks the source."""
    return False


def float8_build(call: Access) -> str | None:
    """float8 exists in AICore builds of the simulator only."""
    if not call.tile.dtype.name.startswith("float8"):
        return None
    return f"{call.tile.dtype} exists on cpu only in builds of the simulator with the AICore types."


RULES = (
    *common_rules(ELEMENTS, ATOMICS, lambda call: elem_capacity(call.table).true, "cpu"),
    conflict_rule(),
    *as_contract(
        (
            vec_rule(),
            Rule(
                "PTO-L008",
                "source or destination tile ND",
                tile_layout(("nd",), "the cpu contract is row-major tiles"),
                "Declare the tile row-major (layout='nd').",
            ),
            Rule(
                "PTO-L009",
                "index tile ND",
                index_layout(("nd",), "the cpu simulator reads it as r*Cols + c"),
                "Declare the index tile row-major (layout='nd').",
            ),
            PADDED_ROWS_RULE,
            Rule(
                "PTO-L011",
                "table ND",
                table_layout(("nd",), "the cpu simulator addresses it linearly"),
                "Use an ND table.",
            ),
            TWO_DIMENSIONAL_RULE,
            Rule(
                "PTO-L013",
                "index valid [R,1] for Row",
                row_index_shape(is_column_vector, "the cpu contract is [{rows},1]"),
                "Call Elem on cpu with one index per element: even [R,1] is read element by element there.",
            ),
            ELEM_INDEX_RULE,
            tile_alignment_rule("tile Cols * sizeof(T) % 32 == 0", by_layout=False),
            INDEX_ALIGNMENT_RULE,
            Rule(
                "PTO-L023",
                "an element type of every build",
                float8_build,
                "Use float16 for the simulator, or build it with the AICore types.",
            ),
        )
    ),
)


MACHINE = Machine(
    name="cpu",
    title="the reference simulator",
    elements=ELEMENTS,
    atomics=ATOMICS,
    has_policies=False,
    has_default_conflict=False,
    widen=widen,
    row_capacity=None,
    elem_capacity=elem_capacity,
    index_offsets=index_offsets,
    row_runs=None,
    elem_runs=element_runs,
    elem_walk=elem_walk,
    scans_slots=scans_slots,
    threads=None,
    row_address_in_32_bits=False,
    elem_sums_by_bit_trick=False,
    dma_atomics=False,
    rules=RULES,
)
