"""TLOAD and TSTORE: what they need, and how they move logical (row, column)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ptokit.access.commit import Folding
from ptokit.access.plan import Array
from ptokit.access.rules import BURST
from ptokit.dtypes import ELEMENT_TYPES, ElementType
from ptokit.errors import listed
from ptokit.findings import Finding, Severity
from ptokit.policies import ScatterAtomicOp
from ptokit.targets import machine
from ptokit.tensors import FRACTAL_ROWS, GlobalTensor, Tile

ADDED_BY_DMA = frozenset({"int8", "int16", "int32", "float16", "bfloat16", "float32"})


@dataclass(frozen=True)
class Transfer:
    """One TLOAD or TSTORE."""

    name: str
    tile: Tile
    tensor: GlobalTensor
    adds: bool = False
    target: str = "a5"


Broken = Callable[[Transfer], "str | None"]


@dataclass(frozen=True)
class TransferRule:
    """One line of what a transfer needs."""

    id: str
    needs: str
    broken: Broken
    fix: str


def extents_known(call: Transfer) -> str | None:
    """Every dynamic extent has a value."""
    if call.tile.is_known and call.tensor.is_known:
        return None
    what = "tile's valid extents are" if call.tensor.is_known else "tensor's shape is"
    return f"{call.name}: the {what} dynamic and without a value ({call.tile!r}, {call.tensor!r})."


def type_listed(call: Transfer) -> str | None:
    """The target has the element type."""
    if call.tile.dtype.name in machine(call.target).elements:
        return None
    return f"{call.name}: {call.target} does not have {call.tile.dtype}."


def whole_fractals(call: Transfer) -> str | None:
    """An NZ tile is made of 16 x C0 fractals."""
    tile = call.tile
    if tile.layout != "nz" or (tile.cols % tile.dtype.c0 == 0 and tile.rows % FRACTAL_ROWS == 0):
        return None
    size = f"{tile.rows} x {tile.cols} {tile.dtype}"
    return f"{call.name}: an NZ tile of {size} is not made of 16 x {tile.dtype.c0} fractals."


def same_type(call: Transfer) -> str | None:
    """Bits are moved, not converted."""
    if call.tile.dtype is call.tensor.dtype:
        return None
    return f"{call.name}: the tensor holds {call.tensor.dtype} and the tile {call.tile.dtype}; they must agree."


def paired_layout(call: Transfer) -> str | None:
    """ND with ND, DN with DN, NZ with NZ."""
    if call.tile.layout == call.tensor.layout:
        return None
    return (
        f"{call.name}: the tile is {call.tile.layout.upper()} and the tensor {call.tensor.layout.upper()}; "
        "ND pairs with ND, DN with DN, NZ with NZ."
    )


def contiguous_column(call: Transfer) -> str | None:
    """A DN tensor has contiguous columns."""
    if call.tensor.layout != "dn" or call.tensor.extent(3) <= 1 or call.tensor.stride[3] == 1:
        return None
    return (
        f"{call.name}: the DN tensor has stride3 = {call.tensor.stride[3]}; a column is contiguous there, stride3 = 1."
    )


def extents(tensor: GlobalTensor) -> tuple[int, int]:
    """Logical rows and columns: NZ `S2*S3` by `S0*S1*S4`, else `S0*S1*S2*S3` by `S4`."""
    s0, s1, s2, s3, s4 = tensor.shape
    return (s2 * s3, s0 * s1 * s4) if tensor.layout == "nz" else (s0 * s1 * s2 * s3, s4)


def equal_extents(call: Transfer) -> str | None:
    """The tensor's extents are the tile's valid extents."""
    there = extents(call.tensor)
    if there == call.tile.valid:
        return None
    return (
        f"{call.name}: the tensor has {there[0]} x {there[1]} elements and the tile {call.tile.valid[0]} x "
        f"{call.tile.valid[1]} valid ones; they must be the same."
    )


def in_vec(call: Transfer) -> str | None:
    """The tile lives in the unified buffer."""
    return None if call.tile.loc == "vec" else f"{call.name}: the tile is in {call.tile.loc!r}; only 'vec' is UB."


def aligned(call: Transfer) -> str | None:
    """The tile's contiguous dimension is a multiple of 32 bytes."""
    dim, extent = call.tile.contiguous_extent
    nbytes = extent * call.tile.dtype.itemsize
    if nbytes % BURST == 0:
        return None
    return f"{call.name}: the tile has {dim} = {extent} of {call.tile.dtype}, {nbytes} bytes, not a multiple of 32."


def added_type(call: Transfer) -> str | None:
    """The DMA unit can add this type."""
    if not call.adds or call.tile.dtype.name in ADDED_BY_DMA:
        return None
    names = listed(name for name in ELEMENT_TYPES if name in ADDED_BY_DMA)
    return f"{call.name}: the DMA unit does not add {call.tile.dtype}; it adds {names}."


RULES = (
    TransferRule(
        "PTO-L006",
        "every dynamic extent has a value",
        extents_known,
        "Give a tile its extents with set_valid(rows, cols), a tensor its shape with actual=(...).",
    ),
    TransferRule(
        "PTO-L001",
        "an element type of the target",
        type_listed,
        "Use a type of the target, or move the bits as the integer of the same size.",
    ),
    TransferRule(
        "PTO-L020", "an NZ tile of whole fractals", whole_fractals, "Pad the tile to whole fractals; valid may stay."
    ),
    TransferRule("PTO-L003", "a tile in 'vec'", in_vec, "Use a tile in UB."),
    TransferRule(
        "PTO-L027", "the same layout on both sides", paired_layout, "Declare tile and tensor in the same layout."
    ),
    TransferRule("PTO-L027", "a DN tensor with stride3 = 1", contiguous_column, "Give the tensor contiguous columns."),
    TransferRule(
        "PTO-L028",
        "tensor extents equal to the tile's valid extents",
        equal_extents,
        "Take the part of the tensor that fits (tensor[a:b, c:d]), or set the tile's valid extents.",
    ),
    TransferRule("PTO-L029", "the same element type on both sides", same_type, "Convert in the tile (TCVT)."),
    TransferRule("PTO-L015", "a tile aligned to 32 bytes", aligned, "Pad the tile; the valid extents may stay."),
    TransferRule(
        "PTO-L030",
        "a type that the DMA unit adds",
        added_type,
        "Use a listed type, or add in a tile and store plainly.",
    ),
)


def judge(call: Transfer, target: str) -> list[Finding]:
    """Every rule that the transfer breaks; on cpu alignment is not asked for."""
    told: list[Finding] = []
    for rule in RULES:
        if told and told[0].id == "PTO-L006":
            break
        if target == "cpu" and rule.id == "PTO-L015":
            continue
        sentence = rule.broken(call)
        if sentence is not None:
            facts = {"needs": rule.needs, "tile": repr(call.tile), "tensor": repr(call.tensor)}
            told.append(Finding(rule.id, Severity.ERROR, target, sentence, facts, None, rule.fix))
    return told


def tensor_view(tensor: GlobalTensor, memory: Array) -> Array:
    """Logical rows and columns of a tensor on this memory (its own, or the other side's), as bits."""
    bits = tensor.dtype.bits
    strides = tuple(step * bits.itemsize for step in tensor.stride)
    view: Array = np.ndarray(tensor.shape, bits, memory, tensor.base * bits.itemsize, strides)
    if tensor.layout == "nz":
        view = view.transpose(2, 3, 0, 1, 4)
    return view


def tile_bits(tile: Tile) -> Array:
    """The tile's memory as bits."""
    return tile.storage.view(tile.dtype.bits)


def load(tile: Tile, there: Array) -> None:
    """GM to UB: a tensor's logical view into the valid region."""
    put(tile, there.reshape(tile.valid))


def put(tile: Tile, values: Array) -> None:
    """Bits into the valid region."""
    rows, cols = tile.valid
    if tile.layout == "nd":
        tile_bits(tile).reshape(tile.rows, tile.cols)[:rows, :cols] = values
    elif tile.layout == "dn":
        tile_bits(tile).reshape(tile.cols, tile.rows).T[:rows, :cols] = values
    else:
        tile_bits(tile)[tile.valid_offsets()] = values


def take(tile: Tile) -> Array:
    """Bits of the valid region (a view where the layout has one)."""
    rows, cols = tile.valid
    if tile.layout == "nd":
        return np.asarray(tile_bits(tile).reshape(tile.rows, tile.cols)[:rows, :cols])
    if tile.layout == "dn":
        return np.asarray(tile_bits(tile).reshape(tile.cols, tile.rows).T[:rows, :cols])
    return np.asarray(tile_bits(tile)[tile.valid_offsets()])


def store(tile: Tile, views: Sequence[Array], *, adds: bool) -> None:
    """UB to GM: into each of these views of one tensor, sums made from what the first one holds."""
    values = take(tile).reshape(views[0].shape)
    if adds:
        values = added(tile.dtype, np.ascontiguousarray(views[0]), np.ascontiguousarray(values))
    for view in views:
        view[...] = values


def added(dtype: ElementType, there: Array, comes: Array) -> Array:
    """Bits plus bits, rounded to the type."""
    with np.errstate(all="ignore"):
        return Folding(ScatterAtomicOp.Add, dtype).one(there, comes)


def bursts(tensor: GlobalTensor) -> tuple[int, int]:
    """How a DMA moves the tensor: so many bursts of so many bytes."""
    rows, cols = extents(tensor)
    size = tensor.dtype.itemsize
    if tensor.layout == "nz":
        return tensor.shape[0] * tensor.shape[1], tensor.shape[2] * tensor.shape[3] * tensor.shape[4] * size
    if tensor.layout == "dn":
        return cols, rows * size
    return (1, rows * cols * size) if tensor.is_packed else (rows, cols * size)
