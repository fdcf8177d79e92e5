"""Legality of a collective: SEMANTICS 4 as a table. A rule is a row: id, what it needs, the sentence, the fix.

The same rows judge a call on host tiles, on the tiles of a simulated core, and in a text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptokit.access.rules import BURST
from ptokit.comm.schedule import Extents, Schedule, chunked, fits
from ptokit.core.vector import OPS
from ptokit.dtypes import ELEMENT_TYPES
from ptokit.errors import PtoTypeError, PtoValueError, UnknownExtentError, a_kind, listed, nearest
from ptokit.findings import Finding, Severity, in_order
from ptokit.targets import machine
from ptokit.tensors import DIMS, DYNAMIC, GlobalTensor, Tile, whole

ENGINES = ("aiv", "ccu")
CCU_RANKS = 16
"""The mask of a gate has so many bits."""
CCU_OPS = ("tscatter", "tgather")

REDUCTIONS = {"sum": "tadd", "max": "tmax", "min": "tmin"}
"""What TREDUCE does, and the vector instruction that does it."""


@dataclass(frozen=True)
class Kind:
    """What sets one collective apart from the others."""

    local: str
    """What the root's own tensor is called."""
    local_is_written: bool
    splits: bool
    """The local tensor holds the slices of all ranks, one below the other."""

    @property
    def keyword(self) -> str:
        """What a kernel calls the local tensor."""
        return "dst" if self.local_is_written else "src"

    @property
    def member(self) -> str:
        """What the tensors of the group are."""
        return "source" if self.local_is_written else "destination"


KINDS: dict[str, Kind] = {
    "tscatter": Kind("source", local_is_written=False, splits=True),
    "tgather": Kind("destination", local_is_written=True, splits=True),
    "tbroadcast": Kind("source", local_is_written=False, splits=False),
    "treduce": Kind("destination", local_is_written=True, splits=False),
}


@dataclass(frozen=True, eq=False)
class Collective:
    """One call of a collective, as the root makes it: `slices[r]` is the tensor of rank r."""

    op: str
    local: GlobalTensor
    slices: tuple[GlobalTensor, ...]
    ping: Tile
    pong: Tile | None = None
    root: int = 0
    engine: str = "aiv"
    target: str = "a5"
    acc: Tile | None = None
    """Where TREDUCE adds up."""
    reduce: str = "sum"

    @property
    def kind(self) -> Kind:
        """The row of the table for this op."""
        return KINDS[self.op]

    @property
    def ranks(self) -> int:
        """How many there are."""
        return len(self.slices)

    @property
    def slice(self) -> Extents:
        """`<d0, d1, d2, H, W>` of the first rank, which holds for all."""
        s0, s1, s2, s3, s4 = self.slices[0].shape
        return (s0, s1, s2, s3, s4)

    @property
    def rows_needed(self) -> int:
        """Rows of the local tensor that take part: N*H, or H where every rank has all of it."""
        return self.slices[0].extent(3) * (self.ranks if self.kind.splits else 1)

    @property
    def is_empty(self) -> bool:
        """Nothing to move."""
        return not self.slices or math.prod(self.slice) == 0

    @property
    def fits(self) -> bool:
        """A whole slice has room in the staging tile."""
        return fits(self.slice, self.ping.valid)

    @property
    def tiles(self) -> tuple[tuple[str, Tile], ...]:
        """The staging tiles by name."""
        named = (("ping", self.ping), ("pong", self.pong), ("acc", self.acc))
        return tuple((name, tile) for name, tile in named if tile is not None)

    @property
    def tensors(self) -> tuple[tuple[str, GlobalTensor], ...]:
        """The local tensor and those of the group by name; the first of the group stands for the others."""
        members = ((f"the {self.kind.member} of rank {rank}", one) for rank, one in enumerate(self.slices))
        return ((f"the {self.kind.local}", self.local), *members)

    @property
    def schedule(self) -> Schedule:
        """In what pieces the data goes through the tiles; where all ranks share one slice, its pieces alone."""
        return chunked(self.slice, self.ranks if self.kind.splits else 1, self.ping.valid, self.pong is not None)


def collective(
    op: object,
    local: object,
    slices: object,
    ping: object,
    pong: object = None,
    *,
    root: object = 0,
    engine: object = "aiv",
    target: object = "a5",
    acc: object = None,
    reduce: object = "sum",
) -> Collective:
    """The call that these operands make; refuses what is no such operand at all."""
    name = one_word(op, KINDS, "op")
    if not isinstance(slices, Iterable) or isinstance(slices, (str, bytes, np.ndarray, Tile, GlobalTensor)):
        raise PtoTypeError(f"{name}: the group is {a_kind(slices)}; a list of one GlobalTensor per rank is wanted")
    kind = KINDS[name]
    members = tuple(_tensor(one, f"the tensor of rank {rank}", name) for rank, one in enumerate(slices))
    if name == "treduce" and acc is None:
        raise PtoTypeError("treduce: acc is missing; a tile to add up in is wanted")
    if name != "treduce" and acc is not None:
        raise PtoTypeError(f"{name} takes no acc: only treduce adds up")
    return Collective(
        name,
        _tensor(local, f"the {kind.local}", name),
        members,
        _tile(ping, "ping", name),
        None if pong is None else _tile(pong, "pong", name),
        whole(root, "root"),
        one_word(engine, ENGINES, "engine"),
        machine(target).name,
        None if acc is None else _tile(acc, "acc", name),
        one_word(reduce, REDUCTIONS, "reduce"),
    )


def one_word(given: object, known: Iterable[str], what: str) -> str:
    """One of the known words, in any case."""
    if not isinstance(given, str):
        raise PtoTypeError(f"{what}={given!r} is {a_kind(given)}; known: {listed(known)}")
    if given.lower() not in known:
        raise PtoValueError(f"{what}={given!r} is unknown.{nearest(given, known)} Known: {listed(known)}")
    return given.lower()


def _tensor(given: object, what: str, op: str) -> GlobalTensor:
    if not isinstance(given, GlobalTensor):
        raise PtoTypeError(f"{op}: {what} is {a_kind(given)}; a GlobalTensor is wanted")
    return given


def _tile(given: object, what: str, op: str) -> Tile:
    if not isinstance(given, Tile):
        raise PtoTypeError(f"{op}: {what} is {a_kind(given)}; a tile is wanted")
    return given


# The sentences. Each says what was seen and what is wanted.

Broken = Callable[[Collective], "str | None"]


def a_group(call: Collective) -> str | None:
    """There is at least one rank."""
    return None if call.slices else "the group has no ranks; at least one is wanted."


def root_in_group(call: Collective) -> str | None:
    """The root is one of the ranks."""
    if 0 <= call.root < call.ranks:
        return None
    return f"the root is {call.root}; the group has ranks 0 to {call.ranks - 1}."


def extents_known(call: Collective) -> str | None:
    """Every dynamic extent has a value."""
    for name, tensor in call.tensors:
        if not tensor.is_known:
            return f"{name} has the dynamic shape {tensor.declared_shape} without a value."
    for name, tile in call.tiles if call.engine == "aiv" else ():
        if not tile.is_known:
            return f"the valid extents {tile.declared_valid} of {name} are dynamic and without a value."
    return None


def one_form(call: Collective) -> str | None:
    """All members of the group have one shape, the same strides, one layout and one element type."""
    first = call.slices[0]
    for rank, other in enumerate(call.slices):
        for what, mine, theirs in (
            ("shape", first.shape, other.shape),
            ("strides", _strides(first), _strides(other)),
            ("layout", first.layout, other.layout),
            ("element type", first.dtype.name, other.dtype.name),
        ):
            if mine != theirs:
                return (
                    f"rank {rank} differs from rank 0: its {call.kind.member} has {what} {theirs}, that of rank 0 "
                    f"{mine}; all are the same."
                )
    return None


def _strides(tensor: GlobalTensor) -> tuple[int, ...]:
    """The strides that matter: one of an extent of 1 is never taken."""
    return tuple(step if size > 1 else 0 for size, step in zip(tensor.shape, tensor.stride, strict=True))


def one_type(call: Collective) -> str | None:
    """Bits are moved, not converted."""
    wanted = call.local.dtype
    tiles = call.tiles if call.engine == "aiv" else call.tiles[:1]  # the CCU ignores pong
    holders: list[tuple[str, GlobalTensor | Tile]] = [*call.tensors[:2], *tiles]
    for name, other in holders:
        if other.dtype is not wanted:
            return f"{name} holds {other.dtype} and the {call.kind.local} {wanted}; all agree."
    return None


def type_listed(call: Collective) -> str | None:
    """The target has the element type."""
    if call.local.dtype.name in machine(call.target).elements:
        return None
    return f"{call.target} does not have {call.local.dtype}."


def not_fractal(call: Collective) -> str | None:
    """Rows are split along S3, which a fractal has fixed."""
    for name, tensor in call.tensors:
        if tensor.layout == "nz":
            return (
                f"{name} is NZ: there S3 is the 16 rows of a fractal, and a collective takes the ranks' rows from S3, "
                f"{call.rows_needed} of them here."
            )
    return None


def one_layout(call: Collective) -> str | None:
    """ND tensors through ND tiles, DN through DN."""
    wanted = call.local.layout
    lying: list[tuple[str, GlobalTensor | Tile]] = [*call.tensors[:2], *_staging(call)]
    for name, other in lying:
        if other.layout != wanted:
            return f"{name} is {other.layout.upper()} and the {call.kind.local} {wanted.upper()}; all agree."
    for name, tensor in call.tensors[:2] if wanted == "dn" else ():
        if tensor.extent(3) > 1 and tensor.stride[3] != 1:
            return f"{name} is DN and has stride3 = {tensor.stride[3]}; a column is contiguous there, stride3 = 1."
    return None


def _staging(call: Collective) -> tuple[tuple[str, Tile], ...]:
    """The tiles that the data goes through: on the CCU none."""
    return call.tiles if call.engine == "aiv" else ()


def same_outer(call: Collective) -> str | None:
    """All dimensions but the rows agree."""
    for dim in (0, 1, 2, 4):
        mine, theirs = call.local.extent(dim), call.slices[0].extent(dim)
        if mine != theirs:
            return f"{DIMS[dim]} of the {call.kind.local} is {mine} and that of rank 0's {call.kind.member} {theirs}."
    return None


def enough_rows(call: Collective) -> str | None:
    """The local tensor has rows for every rank."""
    rows, needed, high = call.local.extent(3), call.rows_needed, call.slices[0].extent(3)
    if rows >= needed:
        return None
    of = f"{call.ranks} ranks of {high} rows need {needed}" if call.kind.splits else f"a slice needs {needed}"
    return f"the {call.kind.local} has {rows} rows; {of}."


def room_in_tiles(call: Collective) -> str | None:
    """A staging tile takes something."""
    for name, tile in call.tiles:
        if min(tile.valid) < 1:
            return f"{name} has {tile.valid_rows} x {tile.valid_cols} valid elements: nothing goes through it."
    return None


def one_tile_type(call: Collective) -> str | None:
    """Every staging tile is of ping's type."""
    for name, tile in call.tiles[1:]:
        for what, attribute in (("type", "dtype"), ("rows", "rows"), ("columns", "cols"), ("layout", "layout")):
            mine, theirs = getattr(call.ping, attribute), getattr(tile, attribute)
            if mine != theirs:
                return f"{name} has {what} {theirs} and ping {mine}; {name} is of ping's type."
        if tile.declared_valid != call.ping.declared_valid:
            return (
                f"{name} declares the valid extents {tile.declared_valid} and ping {call.ping.declared_valid}; "
                f"{name} is of ping's type."
            )
    return None


def tiles_in_ub(call: Collective) -> str | None:
    """The tiles live in the unified buffer, aligned to 32 bytes."""
    for name, tile in call.tiles:
        if tile.loc != "vec":
            return f"{name} is in {tile.loc!r}; only 'vec' is UB."
        dim, extent = tile.contiguous_extent
        nbytes = extent * tile.dtype.itemsize
        if nbytes % BURST and call.target != "cpu":
            return f"{name} has {dim} = {extent} of {tile.dtype}, {nbytes} bytes, not a multiple of {BURST}."
    return None


def tiles_apart(call: Collective) -> str | None:
    """No tile lies on another."""
    tiles = call.tiles
    for number, (name, tile) in enumerate(tiles):
        for other_name, other in tiles[:number]:
            if tile is other or np.may_share_memory(tile.storage, other.storage):
                return f"{name} and {other_name} lie on the same memory: each overwrites what the other holds."
    return None


def whole_chunks(call: Collective) -> str | None:
    """Once chunked, static extents divide the slice, even one that would fit."""
    if call.fits or min(call.ping.valid) < 1:
        return None
    for dim, name in ((0, "rows"), (1, "columns")):
        declared, extent = call.ping.declared_valid[dim], call.slice[3 + dim]
        if declared != DYNAMIC and extent % declared:
            return (
                f"a slice has {extent} {name} and goes through the tile in chunks of {declared}, which is static: the "
                f"last chunk would have {extent % declared}."
            )
    return None


def ccu_on_a5(call: Collective) -> str | None:
    """Only a5 has a CCU."""
    if call.target == "a5":
        return None
    return f"engine 'ccu' on {call.target}: the collective communication unit exists on a5 only."


def ccu_ranks(call: Collective) -> str | None:
    """The mask has 16 bits."""
    if call.ranks <= CCU_RANKS:
        return None
    return f"the group has {call.ranks} ranks; the mask of a CCU gate has {CCU_RANKS} bits."


def ccu_flat(call: Collective) -> str | None:
    """The CCU moves flat bytes: base + r*payload."""
    outer = math.prod(call.slice[:3])
    if outer != 1:
        return f"d0*d1*d2 is {outer}; the CCU moves one flat stretch of bytes per rank, so it must be 1."
    for name, tensor in call.tensors:
        if not tensor.is_packed:
            return f"{name} has strides {tensor.stride}: the CCU moves flat bytes and knows no strides."
    return None


def ccu_op(call: Collective) -> str | None:
    """What the CCU does."""
    if call.op in CCU_OPS:
        return None
    return f"{call.op} on the CCU: its kernels are those of {listed(CCU_OPS)}."


def reduced_type(call: Collective) -> str | None:
    """The vector unit adds and compares the type."""
    if call.op != "treduce":
        return None
    does = OPS[REDUCTIONS[call.reduce]]
    if call.local.dtype.name in does.types:
        return None
    names = listed(name for name in ELEMENT_TYPES if name in does.types)
    return f"{does.name}, which {call.reduce} is made of, does not take {call.local.dtype}; it takes {names}."


def vendor_fits(call: Collective) -> str | None:
    """The vendor's fitting path stores bursts of the tile's width, and steps by the tensor's gap."""
    if not call.fits:
        return None
    (rows, cols), (high, wide) = call.slice[3:], call.ping.valid
    bursts, burst, across = (cols, rows, high) if call.local.layout == "dn" else (rows, cols, wide)
    past = bursts * (across - burst)
    if past <= 0:
        return None
    written = "the destination" if call.op == "treduce" else "each rank's part of the destination"
    return (
        f"the tile's valid extents, {high} x {wide}, are larger than the slice, {rows} x {cols}: the device's library "
        f"stores {bursts} bursts of {across} elements, {past} elements past {written}."
    )


def last_chunk(call: Collective) -> str | None:
    """The vendor leaves the last chunk's extents in the tile."""
    if call.fits or DYNAMIC not in call.ping.declared_valid:
        return None
    last = tuple((extent - 1) % step + 1 for extent, step in zip(call.slice[3:], call.ping.valid, strict=True))
    if last == call.ping.valid:
        return None
    return (
        f"the last chunk is {last[0]} x {last[1]}: the device's library leaves these valid extents in the tile, and "
        f"the next call with it goes by them; here it has {call.ping.valid[0]} x {call.ping.valid[1]} again."
    )


def more_rows(call: Collective) -> str | None:
    """Rows that nobody gets, or gives."""
    rows, needed = call.local.extent(3), call.rows_needed
    if rows <= needed:
        return None
    what = "stay as they are" if call.kind.local_is_written else "are ignored"
    return f"the {call.kind.local} has {rows} rows and {needed} take part: the rows from {needed} on {what}."


@dataclass(frozen=True)
class Rule:
    """One line of what a collective needs: `broken` gives the sentence, or None."""

    id: str
    needs: str
    broken: Broken
    fix: str
    severity: Severity = Severity.ERROR
    engines: tuple[str, ...] = ENGINES
    moves: bool = False
    """It is asked only where there is something to move."""
    ends: bool = False
    """What comes behind it cannot be judged where it is broken."""


_AIV, _CCU = ("aiv",), ("ccu",)

RULES: tuple[Rule, ...] = (
    Rule("PTO-R001", "a group of at least one rank", a_group, "Give the tensor of every rank.", ends=True),
    Rule("PTO-R002", "a root in the group", root_in_group, "Name a rank of the group as root."),
    Rule(
        "PTO-R008",
        "every dynamic extent has a value",
        extents_known,
        "Give a tile its extents with set_valid(rows, cols), a tensor its shape with actual=(...).",
        ends=True,
    ),
    Rule(
        "PTO-R003",
        "one shape, strides, layout and type in the group",
        one_form,
        "Register tensors of one form on all ranks.",
    ),
    Rule(
        "PTO-R004",
        "one element type everywhere",
        one_type,
        "Declare group, local tensor and tiles with one type; convert before or after (TCVT).",
    ),
    Rule(
        "PTO-R015",
        "an element type of the target",
        type_listed,
        "Use a type of the target, or move the bits as the integer of the same size.",
    ),
    Rule(
        "PTO-R012",
        "tensors in ND or DN",
        not_fractal,
        "Declare the same memory as ND, rows of whole fractals, and move that.",
        ends=True,
    ),
    Rule("PTO-R005", "one layout everywhere", one_layout, "Declare tensors and tiles in one layout, ND or DN."),
    Rule(
        "PTO-R006",
        "d0, d1, d2 and W agree",
        same_outer,
        "Take the part of the local tensor that fits (tensor[a:b, c:d]), or register other slices.",
    ),
    Rule(
        "PTO-R007",
        "rows for every rank in the local tensor",
        enough_rows,
        "Make the local tensor longer, or the slices shorter.",
    ),
    Rule(
        "PTO-R013",
        "tiles in 'vec', aligned to 32 bytes",
        tiles_in_ub,
        "Use tiles in UB, padded to 32 bytes; the valid extents may stay.",
        engines=_AIV,
    ),
    Rule("PTO-R010", "tiles of ping's type", one_tile_type, "Make the tiles alike.", engines=_AIV),
    Rule("PTO-R014", "tiles that do not overlap", tiles_apart, "Give each tile a place of its own.", engines=_AIV),
    Rule(
        "PTO-R009",
        "valid extents above 0 in the staging tiles",
        room_in_tiles,
        "Give the tile valid extents of at least 1 x 1.",
        engines=_AIV,
        moves=True,
        ends=True,
    ),
    Rule(
        "PTO-R011",
        "static valid extents that divide a chunked slice",
        whole_chunks,
        "Choose extents that divide, or declare the tile's valid extents dynamic (-1): the last chunk may be partial.",
        engines=_AIV,
        moves=True,
    ),
    Rule(
        "PTO-R016",
        "engine 'ccu' on a5",
        ccu_on_a5,
        "Use engine='aiv' here.",
        engines=_CCU,
    ),
    Rule("PTO-R017", "at most 16 ranks on the CCU", ccu_ranks, "Use engine='aiv', or smaller groups.", engines=_CCU),
    Rule(
        "PTO-R018",
        "packed tensors with d0*d1*d2 == 1 on the CCU",
        ccu_flat,
        "Use engine='aiv', which honours strides, or pack the tensors.",
        engines=_CCU,
        moves=True,
    ),
    Rule("PTO-R019", "a collective that the CCU has", ccu_op, "Use engine='aiv'.", engines=_CCU),
    Rule(
        "PTO-R020",
        "a type that can be reduced",
        reduced_type,
        "Convert to a listed type first (TCVT).",
    ),
    Rule(
        "PTO-R021",
        "valid extents no wider than a slice that fits",
        vendor_fits,
        "Give the tile the slice's extents before the call (set_valid), or a tile of that size.",
        Severity.WARNING,
        _AIV,
        moves=True,
    ),
    Rule(
        "PTO-R022",
        "the caller's valid extents after the call",
        last_chunk,
        "On the device, set the tile's valid extents again before its next use.",
        Severity.NOTE,
        _AIV,
        moves=True,
    ),
    Rule(
        "PTO-R023",
        "no rows beside those of the ranks",
        more_rows,
        "Nothing, if that is meant; else take the part of the tensor that belongs to the ranks.",
        Severity.NOTE,
        moves=True,
    ),
)


def judge(call: Collective) -> list[Finding]:
    """Every rule that the call breaks, errors first; a device's habits are told only where the call is legal.

    >>> whole, parts = np.zeros((8, 16), np.float32), np.zeros((2, 4, 16), np.float32)
    >>> slices = [GlobalTensor(one, "float32", (1, 1, 1, 4, 16)) for one in parts]
    >>> local = GlobalTensor(whole, "float32", (1, 1, 1, 8, 16))
    >>> print(judge(collective("tscatter", local, slices, Tile("float32", 4, 16), root=2))[0].message)
    tscatter: the root is 2; the group has ranks 0 to 1.
    """
    told: list[Finding] = []
    for rule in RULES:
        if call.engine not in rule.engines or (rule.severity is not Severity.ERROR and told):
            continue
        with suppress(UnknownExtentError):
            if rule.moves and call.is_empty:
                continue
            sentence = rule.broken(call)
            if sentence is None:
                continue
            message = f"{call.op}: {sentence}"
            told.append(Finding(rule.id, rule.severity, call.target, message, _facts(rule, call), None, rule.fix))
            if rule.ends:
                break
    return in_order(told)


def _facts(rule: Rule, call: Collective) -> dict[str, Any]:
    return {
        "needs": rule.needs,
        "op": call.op,
        "ranks": call.ranks,
        "root": call.root,
        "engine": call.engine,
        "local": repr(call.local),
        "slice": repr(call.slices[0]) if call.slices else None,
        "ping": repr(call.ping),
    }


def key_of(call: Collective) -> tuple[object, ...]:
    """What the rules look at: calls with equal keys have equal findings."""
    return (
        call.op,
        call.root,
        call.engine,
        call.target,
        call.reduce,
        tuple(_tensor_key(one) for _, one in call.tensors),
        tuple((name, _tile_key(one)) for name, one in call.tiles),
    )


def _tensor_key(tensor: GlobalTensor) -> tuple[object, ...]:
    shape = tensor.is_known and tensor.shape
    return (tensor.dtype.name, tensor.declared_shape, shape, tensor.declared_stride, tensor.layout)


def _tile_key(tile: Tile) -> tuple[object, ...]:
    place = tile.storage.__array_interface__["data"][0]
    valid = tile.is_known and tile.valid
    return (tile.dtype.name, tile.rows, tile.cols, tile.layout, tile.loc, tile.declared_valid, valid, place)
