"""Legality: SEMANTICS 2.5 as a table. A rule is a row: id, what it needs, the sentence, the fix.

The rules that every target shares stand here, with the makers of those that differ by target;
each target file lists its own column. Adding a rule is adding a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

from ptokit.access.call import Access
from ptokit.dtypes import INDEX_TYPES
from ptokit.errors import UnknownExtentError, listed
from ptokit.findings import Finding, Severity
from ptokit.policies import ScatterAtomicOp, ScatterConflict, word
from ptokit.tensors import FRACTAL_ROWS, Tile

BURST = 32
"""Bytes of the smallest transfer between GM and UB."""

MOST_BURSTS = 4096
"""The count field of one multi-burst transfer has 12 bits."""

Broken = Callable[[Access], "str | None"]


@dataclass(frozen=True)
class Rule:
    """One line of the legality table, for one target: `broken` gives the sentence, or None."""

    id: str
    needs: str
    broken: Broken
    fix: str
    severity: Severity = Severity.ERROR


def as_contract(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Rules that a target's ABI contract states but its code does not enforce: warnings."""
    return tuple(replace(rule, severity=Severity.WARNING) for rule in rules)


def judge(call: Access, target: str, rules: Iterable[Rule]) -> list[Finding]:
    """Every rule that the call breaks on this target.

    A rule about an extent that has no value yet cannot be judged; that it has none is a rule of its own.
    """
    told = []
    for rule in rules:
        with suppress(UnknownExtentError):
            sentence = rule.broken(call)
            if sentence is None:
                continue
            facts = {
                "needs": rule.needs,
                "tile": repr(call.tile),
                "table": repr(call.table),
                "idx": repr(call.idx),
            }
            told.append(Finding(rule.id, rule.severity, target, sentence, facts, None, rule.fix))
    return told


# The sentences. Each says what was seen and what the target wants.


def _tile_word(call: Access) -> str:
    return "source tile" if call.is_scatter else "destination tile"


def element_type_listed(elements: frozenset[str], target: str) -> Broken:
    """The element type is one that the target moves."""

    def broken(call: Access) -> str | None:
        if call.tile.dtype.name in elements:
            return None
        return f"{target} does not move {call.tile.dtype} ({listed(sorted(elements))})."

    return broken


def index_type(call: Access) -> str | None:
    """Indices are 32-bit integers."""
    if call.idx.dtype.name in INDEX_TYPES:
        return None
    return f"the index tile holds {call.idx.dtype}; an index is int32 or uint32."


def vec_tiles(call: Access) -> str | None:
    """Both tiles live in the unified buffer of the vector core."""
    for name, tile in ((_tile_word(call), call.tile), ("index tile", call.idx)):
        if tile.loc != "vec":
            return f"the {name} is in {tile.loc!r}; only tiles in 'vec' (UB) can be scattered or gathered."
    return None


def same_type(call: Access) -> str | None:
    """Bits are moved, not converted."""
    if call.table.dtype is call.tile.dtype:
        return None
    return f"the table holds {call.table.dtype} and the {_tile_word(call)} {call.tile.dtype}; they must agree."


def extents_known(call: Access) -> str | None:
    """Every dynamic extent has a value at the call."""
    if not call.table.is_known:
        return f"the table's shape {call.table.declared_shape} is dynamic and has no value."
    for name, tile in ((_tile_word(call), call.tile), ("index tile", call.idx)):
        if not tile.is_known:
            return f"the valid extents {tile.declared_valid} of the {name} are dynamic and have no value."
    return None


def extents_positive(call: Access) -> str | None:
    """There is something to move."""
    rows, cols = call.tile.valid
    if rows >= 1 and cols >= 1:
        return None
    return f"the {_tile_word(call)} has {rows} valid rows and {cols} valid columns; both must be at least 1."


def capacity_positive(capacity: Callable[[Access], int]) -> Broken:
    """There is a slot to address."""

    def broken(call: Access) -> str | None:
        if capacity(call) > 0 and call.table.size > 0:
            return None
        return f"the table {call.table.shape} has no elements, or a capacity of 0: no index can be in bounds."

    return broken


def tile_layout(layouts: tuple[str, ...], why: str) -> Broken:
    """The tile lies in one of the layouts."""

    def broken(call: Access) -> str | None:
        if call.tile.layout in layouts:
            return None
        return f"the {_tile_word(call)} is {call.tile.layout.upper()}; {why}."

    return broken


def index_layout(layouts: tuple[str, ...], why: str) -> Broken:
    """The index tile lies in one of the layouts."""

    def broken(call: Access) -> str | None:
        if call.idx.layout in layouts:
            return None
        return f"the index tile is {call.idx.layout.upper()}; {why}."

    return broken


def table_layout(layouts: tuple[str, ...], why: str) -> Broken:
    """The table lies in one of the layouts."""

    def broken(call: Access) -> str | None:
        if call.table.layout in layouts:
            return None
        return f"the table is {call.table.layout.upper()}; {why}."

    return broken


def paired_layout(call: Access) -> str | None:
    """ND with ND, NZ (fractal 512) with NZ."""
    tile, table = call.tile, call.table
    if tile.layout != table.layout:
        return (
            f"the {_tile_word(call)} is {tile.layout.upper()} and the table {table.layout.upper()}; "
            "ND pairs with ND, NZ with NZ."
        )
    if tile.layout == "nz" and tile.fractal != 512:
        return f"the NZ {_tile_word(call)} has fractals of {tile.fractal} bytes; 512 are wanted."
    return None


def padded_rows_agree(call: Access) -> str | None:
    """`src.Rows == idx.Rows`."""
    if call.tile.rows == call.idx.rows:
        return None
    return f"the {_tile_word(call)} has {call.tile.rows} padded rows and the index tile {call.idx.rows}."


def two_dimensional(call: Access) -> str | None:
    """`<1,1,1,TableRows,RowWidth>`."""
    if call.table.shape[:3] == (1, 1, 1):
        return None
    return f"the table {call.table.shape} has batches; the contract is <1,1,1,TableRows,RowWidth>."


def row_index_shape(accepted: Callable[[Tile, int], bool], wanted: str) -> Broken:
    """The index tile of a Row call."""

    def broken(call: Access) -> str | None:
        rows = call.tile.valid_rows
        if not call.is_row or accepted(call.idx, rows):
            return None
        words = call.idx.valid_rows * call.idx.valid_cols
        if words != rows:
            return f"a Row call with {rows} valid rows needs {rows} indices; the index tile has {words}."
        return (
            f"a Row call with {rows} valid rows has an index tile of valid {call.idx.valid} in "
            f"{call.idx.layout.upper()}; {wanted.format(rows=rows)}."
        )

    return broken


def is_row_vector(idx: Tile, rows: int) -> bool:
    """Valid `[1,R]`."""
    return idx.valid == (1, rows)


def is_column_vector(idx: Tile, rows: int) -> bool:
    """Valid `[R,1]`."""
    return idx.valid == (rows, 1)


def is_linear_vector(idx: Tile, rows: int) -> bool:
    """Valid `[1,R]` in ND or `[R,1]` in DN: R words that follow each other (R = 1: either)."""
    if rows == 1:
        return idx.valid == (1, 1)
    return idx.valid == (1, rows) if idx.layout == "nd" else idx.valid == (rows, 1)


def elem_index_shape(call: Access) -> str | None:
    """The index tile of an Elem call has the tile's valid shape."""
    if call.is_row or call.idx.valid == call.tile.valid:
        return None
    return (
        f"an Elem call has an index tile of valid {call.idx.valid} for a {_tile_word(call)} of valid "
        f"{call.tile.valid}; they must be the same."
    )


def _unaligned(name: str, tile: Tile, dim: str, extent: int) -> str | None:
    size = tile.dtype.itemsize
    if extent * size % BURST == 0:
        return None
    up = -(-extent * size // BURST) * BURST // size
    return (
        f"the {name} has {dim} = {extent} of {tile.dtype}, {extent * size} bytes, not a multiple of 32; "
        f"the next that fits is {up}."
    )


def tile_alignment(*, by_layout: bool) -> Broken:
    """The contiguous dimension (or always Cols) is a multiple of 32 bytes."""

    def broken(call: Access) -> str | None:
        dim, extent = call.tile.contiguous_extent if by_layout else ("Cols", call.tile.cols)
        return _unaligned(_tile_word(call), call.tile, dim, extent)

    return broken


def index_alignment(call: Access) -> str | None:
    """An index tile is a tile like any other."""
    return _unaligned("index tile", call.idx, *call.idx.contiguous_extent)


def row_width(call: Access) -> str | None:
    """`S4 == ValidCol`: rows are addressed as `slot * ValidCol`."""
    if not call.is_row or call.table.extent(4) in (0, call.tile.valid_cols):
        return None
    return (
        f"a table row has {call.table.extent(4)} elements and the tile {call.tile.valid_cols} valid columns; "
        f"rows are addressed as slot * ValidCol, so row 1 would be sought at element {call.tile.valid_cols}, "
        "where it does not begin."
    )


def packed_rows(call: Access) -> str | None:
    """No gap between rows."""
    table = call.table
    rows, width = table.shape[3], table.shape[4]
    stride3, stride4 = table.stride[3:]
    if not call.is_row or not table.size or ((rows <= 1 or stride3 == width) and (width <= 1 or stride4 == 1)):
        return None
    return (
        f"table rows of {width} elements lie at strides {(stride3, stride4)}; rows are addressed as "
        f"slot * ValidCol, so row 1 would be sought at element {width} instead of {stride3}."
    )


def _nz(check: Broken) -> Broken:
    """A rule of NZ tables only."""
    return lambda call: check(call) if call.is_nz else None


def nz_fractal(call: Access) -> str | None:
    """`S3 == 16`, `S4 == C0`."""
    rows, cols, c0 = call.table.extent(3), call.table.extent(4), call.table.dtype.c0
    if (rows, cols) == (FRACTAL_ROWS, c0):
        return None
    return f"{call.table!r} has fractals of {rows} x {cols}; {call.table.dtype} has 16 x {c0}."


def nz_tile_blocks(call: Access) -> str | None:
    """`Cols % C0 == 0`, `Rows % 16 == 0`."""
    tile = call.tile
    if tile.cols % tile.dtype.c0 == 0 and tile.rows % FRACTAL_ROWS == 0:
        return None
    return f"an NZ tile of {tile.rows} x {tile.cols} {tile.dtype} is not made of 16 x {tile.dtype.c0} fractals."


def nz_tile_covers_row(call: Access) -> str | None:
    """`Cols >= S0*S1*C0`: a Row call moves every block column of the table."""
    columns = call.table.extent(0) * call.table.extent(1) * call.table.dtype.c0
    if not call.is_row or call.tile.cols >= columns:
        return None
    past = "reads" if call.is_scatter else "writes"
    return (
        f"a table row has {columns} columns (S0*S1*C0) and the tile {call.tile.cols}: "
        f"NZ Row moves all of them and {past} past the tile, from its column {call.tile.cols} on."
    )


def nz_burst_count(call: Access) -> str | None:
    """`S1 < 4096`: one transfer has a 12-bit burst count."""
    if not call.is_row or call.table.extent(1) < MOST_BURSTS:
        return None
    return f"the NZ table has S1 = {call.table.extent(1)} block columns; one transfer takes fewer than 4096."


def atomic_type(machine_atomics: dict[str, frozenset[str]], target: str) -> Broken:
    """The atomic exists for the element type."""

    def broken(call: Access) -> str | None:
        op, name = word(call.atomic), call.tile.dtype.name
        types = machine_atomics[op]
        if call.atomic is ScatterAtomicOp.None_ or name in types:
            return None
        has = f"has it for {listed(sorted(types))}" if types else f"has no {op} at all"
        return f"{target} has no atomic {op} for {name}; it {has}."

    return broken


def no_default_conflict(call: Access) -> str | None:
    """The target has one order and no Conflict parameter."""
    if not call.is_scatter or call.conflict is ScatterConflict.Last:
        return None
    return "Conflict Default exists on a5 only; here the last writer always wins."


ELEM_INDEX_RULE = Rule(
    "PTO-L014",
    "index valid == tile valid for Elem",
    elem_index_shape,
    "Give every element its index: the same valid extents on both tiles.",
)

INDEX_ALIGNMENT_RULE = Rule(
    "PTO-L016",
    "index tile aligned to 32 bytes",
    index_alignment,
    "Pad the index tile; its valid extents may stay.",
)

EXTENTS_KNOWN_RULE = Rule(
    "PTO-L006",
    "every dynamic extent has a value",
    extents_known,
    "Give a tile its extents with set_valid(rows, cols), a tensor its shape with actual=(...).",
)

PADDED_ROWS_RULE = Rule(
    "PTO-L010",
    "src.Rows == idx.Rows (padded)",
    padded_rows_agree,
    "Pad both tiles to the same number of rows.",
)

TWO_DIMENSIONAL_RULE = Rule(
    "PTO-L012",
    "table shape <1,1,1,TableRows,RowWidth>",
    two_dimensional,
    "Fold the batches into the rows.",
)


def tile_alignment_rule(needs: str, *, by_layout: bool) -> Rule:
    """The tile's own alignment."""
    return Rule("PTO-L015", needs, tile_alignment(by_layout=by_layout), "Pad the tile; the valid extents may stay.")


NZ_RULES = (
    Rule(
        "PTO-L019",
        "NZ table: S3 == 16 and S4 == C0",
        _nz(nz_fractal),
        "Shape the table <B, BCols, BRows, 16, 32/sizeof(T)>.",
    ),
    Rule(
        "PTO-L020",
        "NZ tile: Cols % C0 == 0 and Rows % 16 == 0",
        _nz(nz_tile_blocks),
        "Pad the tile to whole fractals; the valid extents may stay.",
    ),
    Rule(
        "PTO-L021",
        "NZ Row: tile Cols >= S0*S1*C0",
        _nz(nz_tile_covers_row),
        "Widen the tile to the table's logical columns, or partition the table.",
    ),
    Rule(
        "PTO-L022",
        "NZ Row: S1 < 4096",
        _nz(nz_burst_count),
        "Split the table along its block columns.",
    ),
)


def common_rules(
    elements: frozenset[str],
    atomics: dict[str, frozenset[str]],
    capacity: Callable[[Access], int],
    target: str,
) -> tuple[Rule, ...]:
    """The lines of SEMANTICS 2.5 that every target enforces."""
    return (
        Rule(
            "PTO-L001",
            "an element type of the target",
            element_type_listed(elements, target),
            "Use a listed type, or move the bits as the integer of the same size.",
        ),
        Rule(
            "PTO-L002",
            "index type int32 or uint32",
            index_type,
            "Convert the indices to int32 (TCVT) before the call.",
        ),
        Rule(
            "PTO-L004",
            "table and tile hold the same element type",
            same_type,
            "Convert the tile (TCVT), or declare the table with the tile's type.",
        ),
        Rule(
            "PTO-L005",
            "both valid extents of the tile at least 1",
            extents_positive,
            "Skip the call when there is nothing to move.",
        ),
        EXTENTS_KNOWN_RULE,
        Rule(
            "PTO-L007",
            "a capacity above 0",
            capacity_positive(capacity),
            "Give the table at least one row and one column.",
        ),
        Rule(
            "PTO-L024",
            "an atomic that exists for the type",
            atomic_type(atomics, target),
            "Use a listed type, or combine the duplicates before the call and store with atomic='none'.",
        ),
    )


def vec_rule() -> Rule:
    """Tiles live in UB."""
    return Rule(
        "PTO-L003",
        "source or destination and index tile in 'vec'",
        vec_tiles,
        "Move the tile to UB first (TMOV).",
    )


def conflict_rule() -> Rule:
    """No Conflict parameter."""
    return Rule(
        "PTO-L025",
        "Conflict Last, or no Conflict",
        no_default_conflict,
        "Leave conflict= out: the last writer wins here anyway.",
    )
