"""The same work said in other ways, and what each would cost: Row or Elem, Last or Default, larger or smaller tiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ptokit.access.call import Access
from ptokit.access.instructions import legality, read_call
from ptokit.access.plan import U32, Array, Machine, Plan, make_plan
from ptokit.cost.cycles import transfer
from ptokit.cost.parameters import Parameters, parameters
from ptokit.cost.pricing import of_plan
from ptokit.errors import IllegalInstruction, PtoValueError
from ptokit.findings import Severity, in_order
from ptokit.policies import Coalesce, ScatterAtomicOp, ScatterConflict, word
from ptokit.targets import machine
from ptokit.targets.a2a3 import nz_columns
from ptokit.tensors import FRACTAL_ROWS, Tile, whole

BANK_BYTES = 32
"""What the contiguous extent of a tile is a multiple of."""


@dataclass(frozen=True)
class Choice:
    """One way to do the work: `ratio` compares it with the first of its kind, above 1 is dearer."""

    about: str  # "mode", "conflict" or "tile"
    name: str
    cycles: float
    ratio: float
    facts: dict[str, Any] = field(default_factory=dict)


def compare_choices(
    op: str,
    *operands: object,
    target: str = "a5",
    parameters: Parameters | None = None,
    tile_rows: Sequence[int] | None = None,
    **policies: Any,
) -> list[Choice]:
    """Price a call, and what could stand in its place; nothing is written.

    Mode: a Row call as Elem, where it can be said so. Conflict: Last and Default, where the target has both. Tile:
    the same rows in chunks of so many, the transfers that a chunk needs included, one after another and in ping-pong.

    >>> import ptokit as pto
    >>> src, idx = pto.Tile("float32", 16, 64), pto.Tile("int32", 1, 16)
    >>> table = pto.GlobalTensor(np.zeros((32, 64), np.float32), "float32", shape=(1, 1, 1, 32, 64))
    >>> choices = compare_choices("mscatter", table, src, idx, target="a2a3", tile_rows=[16])
    >>> [choice.name for choice in choices][:3]
    ['row', 'elem', '16 rows']
    >>> choices[1].ratio > 5
    True
    """
    where = machine(target)
    call = where.effective(read_call(op, operands, policies))
    findings = legality(call, where)
    if any(f.severity is Severity.ERROR for f in findings):
        raise IllegalInstruction(call.op, where.name, in_order(findings))
    numbers = parameters or _shipped(where)
    whole_plan = make_plan(call, where)
    return [
        *_ranked("mode", _modes(whole_plan, where, numbers)),
        *_ranked("conflict", _conflicts(whole_plan, where, numbers)),
        *_ranked("tile", _tiles(call, where, numbers, tile_rows)),
    ]


Priced = tuple[str, float, dict[str, Any]]


def _ranked(about: str, priced: Iterator[Priced]) -> list[Choice]:
    """The choices of a kind, beside the first of them."""
    told = list(priced)
    return [Choice(about, name, cycles, cycles / told[0][1], facts) for name, cycles, facts in told]


def _shipped(where: Machine) -> Parameters:
    return parameters(where.name)


def _modes(plan: Plan, where: Machine, numbers: Parameters) -> Iterator[Priced]:
    """The call as it is, and a Row call element by element."""
    mode = "row" if plan.runs_are_rows else "elem"
    yield mode, of_plan(plan, numbers).total, {"given": True}
    elem = as_elem(plan, where) if plan.runs_are_rows else None
    if elem is not None:
        yield "elem", of_plan(make_plan(elem, where), numbers).total, {"indices": elem.tile.valid}


def _conflicts(plan: Plan, where: Machine, numbers: Parameters) -> Iterator[Priced]:
    """Both policies, that of the call first."""
    call = plan.call
    decides = call.is_scatter and call.atomic is ScatterAtomicOp.None_ and not call.is_static_scalar
    if not where.has_default_conflict or not decides:
        return
    for policy in sorted(ScatterConflict, key=lambda one: one is not call.conflict):
        other = make_plan(replace(call, conflict=policy), where)
        yield word(policy), of_plan(other, numbers).total, {"given": policy is call.conflict}


def as_elem(plan: Plan, where: Machine) -> Access | None:
    """A Row call with an index for every element, or None where no Elem call reaches the same elements."""
    call = plan.call
    words = element_indices(plan)
    live = plan.lane_live
    if words is None or (live.any() and int(words[live].max()) >= where.elem_capacity(call.table).counted):
        return None
    # A row that is dropped stays one: no table has so many elements.
    words[~live] = U32 - 1
    layout = "dn" if call.tile.layout == "dn" else "nd"
    idx = Tile("uint32", call.tile.rows, call.tile.cols, call.tile.valid, layout)
    idx.store(words)
    elem = replace(call, coalesce=Coalesce.Elem, idx=idx)
    refused = any(f.severity is Severity.ERROR for f in legality(elem, where))
    return None if refused else elem


def element_indices(plan: Plan) -> Array | None:
    """Per row and column of a Row call: the linear index of the element."""
    call, columns = plan.call, plan.call.tile.valid_cols
    if not call.is_nz:
        return plan.runs.dst[:, None] + np.arange(columns)
    if columns != nz_columns(call.table):
        # Row moves whole rows of the table, padding columns of the tile included.
        return None
    return plan.slot[:, None] * columns + np.arange(columns)


def _tiles(call: Access, where: Machine, numbers: Parameters, sizes: Sequence[int] | None) -> Iterator[Priced]:
    """All rows at once, and in chunks: load, instruction, store; in ping-pong the steps of neighbours overlap."""
    if not where.has_policies:
        return
    rows = call.tile.valid_rows
    for size in dict.fromkeys([rows, *_sizes(rows, sizes)]):
        stages = [_stage(part, where, numbers) for part in _chunks(call, where, size)]
        facts = {"rows": size, "calls": len(stages), "bytes": _bytes_on_chip(call, size)}
        name = f"{size} row{'s' if size > 1 else ''}"
        yield name, sum(map(sum, stages)), facts
        if len(stages) > 1:
            twice = facts | {"bytes": 2 * facts["bytes"]}
            yield f"{name}, ping-pong", pingpong(stages), twice


def _sizes(rows: int, given: Sequence[int] | None) -> list[int]:
    """The chunks to try: halves of halves, unless asked for."""
    if given is None:
        return [rows >> step for step in range(1, 5) if rows >> step]
    sizes = [whole(size, "tile_rows") for size in given]
    for size in sizes:
        if not 1 <= size <= rows:
            raise PtoValueError(f"tile_rows={size} for a call of {rows} rows; 1 to {rows} are wanted")
    return sizes


Stage = tuple[float, float, float]


def pingpong(stages: Sequence[Stage]) -> float:
    """Load, instruction and store of a row of chunks with two tiles: each beside what its neighbours do.

    >>> pingpong([(10.0, 4.0, 0.0), (10.0, 4.0, 0.0)])
    24.0
    """
    loads = [load for load, _, _ in stages] + [0.0]
    stores = [0.0] + [store for _, _, store in stages]
    beside = [max(body, load, store) for (_, body, _), load, store in zip(stages, loads[1:], stores, strict=False)]
    return loads[0] + sum(beside) + stores[-1]


def _stage(call: Access, where: Machine, numbers: Parameters) -> Stage:
    """What one chunk takes: its loads, the instruction, its store."""
    tile = move(call.tile, "load" if call.is_scatter else "store", numbers)
    load = move(call.idx, "load", numbers) + (tile if call.is_scatter else 0.0)
    return load, of_plan(make_plan(call, where), numbers).total, 0.0 if call.is_scatter else tile


def move(tile: Tile, direction: str, numbers: Parameters) -> float:
    """The TLOAD or TSTORE of a tile: one burst where nothing lies between its rows, else one a row."""
    rows, cols = tile.valid
    size = tile.dtype.itemsize
    if tile.layout == "nz":
        return transfer(numbers, direction, -(-cols // tile.dtype.c0), rows * BANK_BYTES)
    if tile.layout == "dn":
        rows, cols, padded = cols, rows, tile.rows
    else:
        padded = tile.cols
    return (
        transfer(numbers, direction, 1, rows * cols * size)
        if cols == padded
        else transfer(numbers, direction, rows, cols * size)
    )


def _chunks(call: Access, where: Machine, size: int) -> Iterator[Access]:
    rows = call.tile.valid_rows
    for first in range(0, rows, size):
        yield rows_of(call, where, first, min(size, rows - first))


def rows_of(call: Access, where: Machine, first: int, count: int) -> Access:
    """The part of a call that has these rows, with tiles of its own."""
    columns = call.tile.valid_cols
    row = np.arange(first, first + count)
    if not call.is_row:
        words = call.idx.storage[call.idx.offsets(row[:, None], np.arange(columns))]
        idx = cut(call.idx, count)
    else:
        words = call.idx.storage[where.index_offsets(call, row, np.zeros_like(row))][None, :]
        idx = Tile(call.idx.dtype, 1, _rounded(count, BANK_BYTES // call.idx.dtype.itemsize), (1, count))
    idx.store(words)
    return replace(call, tile=cut(call.tile, count), idx=idx)


def cut(tile: Tile, count: int) -> Tile:
    """An empty tile like this one, of so many rows, as small as its layout allows."""
    grain = {"nd": 1, "dn": BANK_BYTES // tile.dtype.itemsize, "nz": FRACTAL_ROWS}[tile.layout]
    valid = (count, tile.valid_cols)
    short = Tile(
        tile.dtype,
        _rounded(count, grain),
        tile.cols,
        valid if tile.is_static else (-1, -1),
        tile.layout,
        tile.loc,
        tile.fractal,
    )
    short.set_valid(*valid)
    return short


def _rounded(count: int, grain: int) -> int:
    return -(-count // grain) * grain


def _bytes_on_chip(call: Access, rows: int) -> int:
    """Source or destination, and indices."""
    index = _rounded(rows * call.idx.dtype.itemsize, BANK_BYTES) if call.is_row else cut(call.idx, rows).nbytes
    return cut(call.tile, rows).nbytes + index
