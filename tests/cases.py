"""Calls for the property tests: drawn as `naive.Case`, and built as ptokit objects from the same bits."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import naive
import ptokit as pto
from ptokit.dtypes import element_type

HAS_HIFLOAT8 = importlib.util.find_spec("en_dtypes") is not None  # no wheels from Python 3.13 on
TYPES = tuple(t for t in naive.SIZEOF if HAS_HIFLOAT8 or t != "hifloat8")
MAX_SIDE = 40


@dataclass
class Built:
    """The call of a case, ready for ptokit, and the arrays that it works on."""

    case: naive.Case
    buffer: np.ndarray[Any, Any]
    table: pto.GlobalTensor
    tile: pto.Tile
    idx: pto.Tile

    def keywords(self) -> dict[str, Any]:
        case = self.case
        words = {"coalesce": case.coalesce, "oob": case.oob}
        return words if case.op == "mgather" else words | {"atomic": case.atomic, "conflict": case.conflict}

    def run(self, **more: Any) -> pto.Report:
        if self.case.op == "mscatter":
            return pto.mscatter(self.table, self.tile, self.idx, **self.keywords(), target=self.case.target, **more)
        return pto.mgather(self.tile, self.table, self.idx, **self.keywords(), target=self.case.target)

    def check(self) -> list[pto.Finding]:
        order = (self.table, self.tile) if self.case.op == "mscatter" else (self.tile, self.table)
        return pto.check(self.case.op, *order, self.idx, **self.keywords(), targets=self.case.target)

    @property
    def bits(self) -> np.dtype[Any]:
        return element_type(self.case.dtype).bits


def build(case: naive.Case) -> Built:
    dtype = element_type(case.dtype)
    buffer = np.array(case.memory, dtype.bits).view(dtype.numpy)
    table = pto.GlobalTensor(buffer, dtype, case.shape, case.stride, case.table_layout, base=case.offset)
    return Built(case, buffer, table, build_tile(case.tile), build_tile(case.idx))


def build_tile(drawn: naive.TileCase) -> pto.Tile:
    declared = (drawn.valid_rows, drawn.valid_cols) if drawn.static else (-1, -1)
    tile = pto.Tile(drawn.dtype, drawn.rows, drawn.cols, declared, drawn.layout, drawn.loc, drawn.fractal)
    tile.set_valid(drawn.valid_rows, drawn.valid_cols)
    tile.data.view(tile.dtype.bits)[:] = np.array(drawn.data, tile.dtype.bits)
    return tile


def round_up(value: int, step: int) -> int:
    return -(-value // step) * step


@st.composite
def tiles(draw: st.DrawFn, dtype: str, layout: str, valid: tuple[int, int]) -> naive.TileCase:
    """A tile with room for its valid extents, aligned for its layout."""
    size, c0 = naive.SIZEOF[dtype], 32 // naive.SIZEOF[dtype]
    rows, cols = valid
    if layout == "dn":
        rows = round_up(rows, 32 // size)
        cols += draw(st.integers(0, 2))
    else:
        cols = round_up(cols, c0) + c0 * draw(st.integers(0, 1))
        rows = round_up(rows, 16) if layout == "nz" else rows + draw(st.integers(0, 2))
    return naive.TileCase(dtype, rows, cols, *valid, layout, draw(st.booleans()), [0] * (rows * cols))


SPECIAL = {
    "float32": [0x00000000, 0x80000000, 0x7FC00000, 0x7F800000, 0xFF800000, 0x3F800000, 0xBF800000, 0x00000001],
    "float16": [0x0000, 0x8000, 0x7E00, 0x7C00, 0xFC00, 0x3C00, 0xBC00, 0x7BFF, 0x0001],
    "bfloat16": [0x0000, 0x8000, 0x7FC0, 0x7F80, 0xFF80, 0x3F80, 0xBF80, 0x7F7F, 0x0001],
}


def contents(rng: np.random.Generator, dtype: str, count: int, flavour: str) -> list[int]:
    """Bits of `count` elements: any bits, ordinary numbers, or a few values that meet often."""
    bits = np.dtype(f"u{naive.SIZEOF[dtype]}")
    if flavour == "few" and dtype in SPECIAL:
        return [int(v) for v in rng.choice(np.array(SPECIAL[dtype], bits), count)]
    if flavour == "few":
        return [int(v) for v in rng.integers(0, 3, count)]
    if flavour == "numbers" and dtype in SPECIAL:
        numbers = rng.standard_normal(count).astype(np.float32) * np.float32(10) ** rng.integers(-3, 4, count)
        return [int(v) for v in numbers.astype(np.float32).astype(element_type(dtype).numpy).view(bits)]
    return [int(v) for v in rng.integers(0, np.iinfo(bits).max, count, dtype=bits, endpoint=True)]


def index_words(rng: np.random.Generator, count: int, capacity: int, wild: float) -> list[int]:
    """Raw 32-bit words: mostly in bounds and often equal, some near the edge, negative or anything."""
    pool = max(1, min(capacity, int(rng.integers(1, max(capacity, 1) + 1))))
    words = rng.integers(0, pool, count)
    strange = rng.random(count) < wild
    edge = np.array([capacity - 1, capacity, capacity + 1, -1, -capacity, 2**31 - 1, -(2**31), 2 * capacity + 3])
    words[strange] = rng.choice(edge, int(strange.sum()))
    return [int(w) % 2**32 for w in words]


@st.composite
def nd_tables(draw: st.DrawFn, width: int | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and stride of an ND table, sometimes with batches and padding."""
    batches = draw(st.sampled_from([(1, 1, 1), (1, 1, 1), (2, 1, 1), (1, 3, 2), (2, 2, 1)]))
    rows = draw(st.integers(1, 9))
    cols = width if width is not None and draw(st.integers(0, 3)) else draw(st.integers(1, MAX_SIDE))
    pad = draw(st.sampled_from([0, 0, 0, 1, 8]))
    gap = draw(st.sampled_from([0, 0, 0, 16]))
    s3 = cols + pad
    s2 = rows * s3 + gap
    s1 = batches[2] * s2
    s0 = batches[1] * s1
    step = draw(st.sampled_from([1] * 9 + [2]))
    return (*batches, rows, cols), tuple(step * s for s in (s0, s1, s2, s3, 1))


@st.composite
def nz_tables(draw: st.DrawFn, dtype: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and stride of an NZ table, packed or padded."""
    c0 = 32 // naive.SIZEOF[dtype]
    shape = (draw(st.integers(1, 2)), draw(st.integers(1, 2)), draw(st.integers(1, 2)), 16, c0)
    pad = draw(st.sampled_from([0, 0, c0]))
    inner = draw(st.sampled_from([1] * 9 + [2]))
    s3 = c0 * inner
    s2 = 16 * s3 + pad
    s1 = shape[2] * s2 + pad
    s0 = shape[1] * s1 + pad
    return shape, (s0, s1, s2, s3, inner)


@st.composite
def legal_shapes(draw: st.DrawFn, case_target: str, dtype: str, coalesce: str) -> dict[str, Any]:
    """Table, tile and index tile that fit each other on the target."""
    nz = case_target == "a2a3" and draw(st.booleans())
    rows = draw(st.integers(1, MAX_SIDE) if draw(st.booleans()) else st.integers(1, 6))
    cols = draw(st.integers(1, MAX_SIDE) if draw(st.booleans()) else st.integers(1, 4))
    scale = draw(st.sampled_from([(1, 1), (1, 1), (1, 1), (8, 8)])) if coalesce == "elem" else (1, 1)
    rows, cols = min(rows * scale[0], 70), min(cols * scale[1], 70)
    if nz:
        shape, stride = draw(nz_tables(dtype))
        columns = shape[0] * shape[1] * shape[4]
        if coalesce == "row":
            cols = draw(st.integers(1, columns + 3))
        tile = draw(tiles(dtype, "nz", (rows, cols)))
        if coalesce == "row" and tile.cols < columns:
            tile = naive.TileCase(dtype, tile.rows, columns, rows, cols, "nz", tile.static, [0] * (tile.rows * columns))
    else:
        packed = case_target == "a5" and coalesce == "row"
        shape, stride = draw(nd_tables(cols))
        if packed:
            shape = (*shape[:4], cols)
            stride = tuple(int(np.prod(shape[d + 1 :])) for d in range(5))
        layout = draw(st.sampled_from(["nd", "dn"])) if case_target == "a5" else "nd"
        tile = draw(tiles(dtype, layout, (rows, cols)))
    index_layout = draw(st.sampled_from(["nd", "dn"])) if case_target == "a5" else "nd"
    if coalesce == "elem":
        valid = (rows, cols)
    else:
        valid = (rows, 1) if index_layout == "dn" else (1, rows)
    idx = draw(tiles(draw(st.sampled_from(["int32", "uint32"])), index_layout, valid))
    return {"shape": shape, "stride": stride, "table_layout": "nz" if nz else "nd", "tile": tile, "idx": idx}


@st.composite
def any_shapes(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    """Operands that need not fit: most of them are refused somewhere."""
    table_layout = draw(st.sampled_from(["nd", "nd", "nz", "dn"]))
    shape, stride = draw(nz_tables(dtype)) if table_layout == "nz" else draw(nd_tables(None))
    sides = st.integers(1, 20)

    def loose(kind: str) -> naive.TileCase:
        rows, cols = draw(sides), draw(sides)
        if draw(st.booleans()):
            cols = round_up(cols, 32 // naive.SIZEOF[kind])
            rows = round_up(rows, 32 // naive.SIZEOF[kind])
        valid = (draw(st.integers(0, rows)), draw(st.integers(0, cols)))
        layout = draw(st.sampled_from(["nd", "dn", "nz"]))
        return naive.TileCase(
            kind,
            rows,
            cols,
            *valid,
            layout,
            draw(st.booleans()),
            [0] * (rows * cols),
            draw(st.sampled_from(["vec"] * 5 + ["mat"])),
            draw(st.sampled_from([512] * 5 + [1024])),
        )

    tile = loose(dtype if draw(st.integers(0, 7)) else draw(st.sampled_from(TYPES)))
    idx = loose(draw(st.sampled_from(["int32"] * 5 + ["uint32", "int16", "float32"])))
    if draw(st.booleans()):
        fit = {"row": (1, tile.valid_rows), "col": (tile.valid_rows, 1), "elem": (tile.valid_rows, tile.valid_cols)}
        valid = fit[draw(st.sampled_from(sorted(fit)))]
        rows, cols = max(idx.rows, valid[0]), max(idx.cols, valid[1])
        idx = naive.TileCase(
            idx.dtype, rows, cols, *valid, idx.layout, idx.static, [0] * (rows * cols), idx.loc, idx.fractal
        )
    return {"shape": shape, "stride": stride, "table_layout": table_layout, "tile": tile, "idx": idx}


@st.composite
def cases(draw: st.DrawFn, *, fitting: bool = True) -> naive.Case:
    """A whole call with its memory."""
    target = draw(st.sampled_from(["cpu", "a2a3", "a5"]))
    op = draw(st.sampled_from(["mscatter", "mscatter", "mgather"]))
    coalesce = draw(st.sampled_from(["row", "elem"]))
    atomic, conflict = "none", "last"
    oob = draw(st.sampled_from(["undefined", "clamp", "wrap", "zero" if op == "mgather" else "skip"]))
    dtype = draw(st.sampled_from(TYPES))
    if op == "mscatter":
        atomic = draw(st.sampled_from(["none", "none", "add", "max", "min"]))
        conflict = draw(st.sampled_from(["last", "default"])) if target == "a5" or not fitting else "last"
    if fitting:
        allowed = naive.ELEMENT_TYPES[target] if atomic == "none" else naive.ATOMIC_TYPES[target][atomic]
        if not allowed:
            atomic, allowed = "none", naive.ELEMENT_TYPES[target]
        dtype = draw(st.sampled_from(sorted(allowed & set(TYPES))))
    operands = draw(legal_shapes(target, dtype, coalesce) if fitting else any_shapes(dtype))
    shape, stride = operands["shape"], operands["stride"]
    span = 1 + sum((e - 1) * s for e, s in zip(shape, stride, strict=True))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    front, behind = draw(st.sampled_from([0, 0, 5])), draw(st.sampled_from([0, 0, 3, 70]))
    flavour = draw(st.sampled_from(["few", "numbers", "any"]))
    tile, idx = operands["tile"], operands["idx"]
    tile.data = contents(rng, tile.dtype, tile.rows * tile.cols, flavour)
    case = naive.Case(
        op=op,
        target=target,
        coalesce=coalesce,
        atomic=atomic,
        oob=oob,
        conflict=conflict,
        dtype=dtype,
        offset=front,
        memory=contents(rng, dtype, front + span + behind, flavour),
        **operands,
    )
    count = idx.rows * idx.cols
    if idx.dtype in ("int32", "uint32"):
        wild = draw(st.sampled_from([0.0, 0.1, 0.5]))
        idx.data = index_words(rng, count, naive.true_capacity(case), wild)
    else:
        idx.data = contents(rng, idx.dtype, count, "few")
    return case
