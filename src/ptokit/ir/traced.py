"""From a launch to text: what block 0 of a Python kernel did, as straight-line ops.

Loops come out unrolled, and what the kernel read and decided stands there as it went. `wait=` becomes a pair of flags.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects import arith, builtin, func
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ptokit.access.call import Access
from ptokit.comm.rules import KINDS, Collective
from ptokit.core.block import Block as CoreBlock
from ptokit.core.gm import address_of
from ptokit.core.pipes import EVENT_IDS, NAMES, Instruction
from ptokit.core.run import Run
from ptokit.core.ub import UbTile
from ptokit.core.vector import OPS, Options
from ptokit.dtypes import ElementType
from ptokit.findings import Finding, Severity, Where
from ptokit.ir.dialect import attributes as attrs
from ptokit.ir.dialect import ops
from ptokit.ir.dialect.types import (
    PartitionTensorViewType,
    PtrType,
    TensorViewType,
    TileBufType,
    scalar_type,
)
from ptokit.ir.errors import ConvertError
from ptokit.ir.module import Module, parse
from ptokit.ir.printing import to_dps
from ptokit.tensors import DYNAMIC, GlobalTensor, Tile

if TYPE_CHECKING:
    from collections.abc import Mapping

ARCHES = {"a2a3": "a3", "a5": "a5"}
BOXES = {"nd": ("row_major", "none_box"), "dn": ("col_major", "none_box"), "nz": ("col_major", "row_major")}
Operands = dict[str, "SSAValue | Sequence[SSAValue] | None"]
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
CANNOT = "PTO-P008"
VIEW_DIMS = 2


def module_of(run: Run) -> Module:
    """What block 0 of a launch did, as a module; blocks that differ cannot be said by one straight line.

    >>> import ptokit as pto
    >>> def clear(k, x):
    ...     k.store_scalar(x, 2, 0); k.dcci(); k.dsb()
    >>> run = pto.launch(clear, np.ones(4, np.int32), target="a5")
    >>> print(module_of(run).to("dps"), end="")
    module attributes {pto.target_arch = "a5"} {
      func.func @clear(%x: !pto.ptr<i32, gm>) attributes {pto.entry} {
        %c0_i32 = arith.constant 0 : i32
        %c2 = arith.constant 2 : index
        pto.store_scalar %c0_i32, %x[%c2] : <i32, gm>, i32
        pto.dcci
        pto.dsb
        return
      }
    }
    """
    texts = [_text(run, block) for block in run.blocks]
    for number, (text, block) in enumerate(zip(texts, run.blocks, strict=True)):
        if text != texts[0]:
            one = _first_different(run.blocks[0], block)
            message = f"block {number} does not do what block 0 does: one straight line of text cannot say both."
            raise ConvertError([_finding(message, one)])
    return parse(texts[0], file=f"<{run.kernel or 'kernel'}>")


def _text(run: Run, block: CoreBlock) -> str:
    written = Writer(run, block)
    return to_dps(written.module(), written.names)


def _first_different(one: CoreBlock, other: CoreBlock) -> Instruction | None:
    """The first instruction that stands elsewhere, or the last one."""
    for a, b in zip_longest(one.instructions, other.instructions):
        if a is None or b is None or a.site is not b.site:
            return a or b
    return other.instructions[-1] if other.instructions else None


def _finding(message: str, one: Instruction | None) -> Finding:
    where: Where | None = None if one is None else one.site.where
    return Finding(CANNOT, Severity.ERROR, None, message, {}, where)


@dataclass(frozen=True)
class Pair:
    """A flag that stands for an event: set behind one instruction, waited for before another."""

    source: str
    sink: str
    event: int


@dataclass(eq=False)
class Writer:
    """One block's instructions, becoming ops."""

    run: Run
    block: CoreBlock
    head: list[Operation] = field(default_factory=list)
    body: list[Operation] = field(default_factory=list)
    names: dict[SSAValue, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    constants: dict[tuple[object, ...], SSAValue] = field(default_factory=dict)
    pointers: dict[int, SSAValue] = field(default_factory=dict)
    views: dict[tuple[object, ...], SSAValue] = field(default_factory=dict)
    tiles: dict[int, SSAValue] = field(default_factory=dict)
    state: dict[int, tuple[int, tuple[int, int]]] = field(default_factory=dict)
    """Per tile: where the text has put it, and its valid extents there."""

    def module(self) -> builtin.ModuleOp:
        """Everything."""
        arguments = [(n, one) for n, one in enumerate(self.run.tensors) if one is not None]
        entry = Block(arg_types=[PtrType(one.dtype.name) for _, one in arguments])
        for (number, _), value in zip(arguments, entry.args, strict=True):
            given = self.run.names[number] if number < len(self.run.names) else ""
            self.pointers[number] = self._named(value, given or f"arg{number}")
        self._alloc()
        self._instructions()
        entry.add_ops([*self.head, *self.body, func.ReturnOp()])
        name = self.run.kernel if NAME.fullmatch(self.run.kernel) else "kernel"
        types = [value.type for value in entry.args]
        kernel = func.FuncOp(name, (types, []), Region(entry))
        kernel.attributes["pto.entry"] = builtin.UnitAttr()
        arch = ARCHES.get(self.run.target)
        about: dict[str, Attribute] = {} if arch is None else {"pto.target_arch": builtin.StringAttr(arch)}
        return builtin.ModuleOp([kernel], about)

    # Names and constants

    def _named(self, value: SSAValue, wanted: str) -> SSAValue:
        name = wanted if NAME.fullmatch(wanted) else re.sub(r"\W+", "_", wanted, flags=re.ASCII).strip("_") or "v"
        number = 1
        while name in self.taken:
            number += 1
            name = f"{wanted}_{number}" if NAME.fullmatch(wanted) else f"v{number}"
        self.taken.add(name)
        self.names[value] = name
        return value

    def _constant(self, value: Any, of: Attribute) -> SSAValue:
        is_whole = isinstance(of, builtin.IntegerType | builtin.IndexType)
        key = (np.float64(value).tobytes() if not is_whole else int(value), of)
        found = self.constants.get(key)
        if found is None:
            attr: Any = builtin.IntegerAttr(int(value), of) if is_whole else builtin.FloatAttr(float(value), of)
            op = arith.ConstantOp(attr, of)
            self.head.append(op)
            found = self.constants[key] = self._named(op.result, _constant_name(value, of) if is_whole else "cst")
        return found

    def _index(self, value: int) -> SSAValue:
        return self._constant(value, ops.INDEX)

    def _scalar(self, value: Any, dtype: ElementType) -> SSAValue:
        """A scalar of an element type: signless bits, or a float (float32 for the 8-bit ones)."""
        if not dtype.is_float:
            bits = 8 * dtype.itemsize
            low = int(value) & ((1 << bits) - 1)
            return self._constant(low - (1 << bits) if low >> (bits - 1) else low, builtin.IntegerType(bits))
        return self._constant(float(value), scalar_type("float32" if dtype.itemsize == 1 else dtype.name))

    # Tiles

    def _alloc(self) -> None:
        """Every tile, as it was when an instruction first took it."""
        first: dict[int, tuple[int, tuple[int, int]]] = {}
        for one in self.block.instructions:
            for tile, frozen in _tiles_of(one):
                first.setdefault(tile.number, (self._address(frozen), _extents(frozen, one)))
        for tile in self.block.ub.tiles:
            address, valid = first.get(tile.number, (tile.address, tile.valid if tile.is_known else (0, 0)))
            self.state[tile.number] = (address, valid)
            at = self._constant(address, builtin.i64) if tile.is_manual else None
            row, col = (
                self._index(has) if declared == DYNAMIC else None
                for declared, has in zip(tile.declared_valid, valid, strict=True)
            )
            op = ops.AllocTileOp.of_operands(
                {"addr": at, "valid_row": row, "valid_col": col}, result_types=[_tile_type(tile)]
            )
            self.head.append(op)
            self.tiles[tile.number] = self._named(op.tile, tile.name.replace(" ", "_"))

    def _address(self, frozen: Tile) -> int:
        return address_of(frozen.storage) - address_of(self.block.ub.bytes)

    def _tile(self, tile: UbTile, frozen: Tile) -> SSAValue:
        """A tile as it is by now: placed again, or with other extents, where that has changed."""
        value, (address, valid) = self.tiles[tile.number], self.state[tile.number]
        now = self._address(frozen)
        if now != address:
            op = ops.TAssignOp.of_operands(
                {"tile": value, "addr": self._constant(now, builtin.i64)}, result_types=[value.type]
            )
            self.body.append(op)
            value = self.tiles[tile.number] = self._named(op.placed, tile.name.replace(" ", "_"))
        extents = _extents(frozen, self._current)
        if extents != valid:
            rows, cols = (self._index(extent) for extent in extents)
            self.body.append(ops.SetValidShapeOp.of_operands({"tile": value, "row": rows, "col": cols}))
        self.state[tile.number] = (now, extents)
        return value

    def _taken(self, one: Instruction) -> list[SSAValue]:
        """The tiles of an instruction, in its order."""
        return [self._tile(tile, frozen) for tile, frozen in _tiles_of(one)]

    # Tensors

    def _argument(self, tensor: GlobalTensor) -> tuple[int, int]:
        """The argument whose memory a tensor lies in, and its first element there."""
        low = address_of(tensor.memory)
        for number, one in enumerate(self.run.tensors):
            if one is None or one.dtype is not tensor.dtype:
                continue
            offset = low - address_of(one.memory)
            if offset >= 0 and offset + tensor.memory.nbytes <= one.memory.nbytes:
                return number, offset // one.dtype.itemsize + tensor.base
        raise ConvertError([_finding(f"{tensor!r} is in no argument of its element type.", self._current)])

    def _view(self, tensor: GlobalTensor) -> SSAValue:
        """The tensor as a part of its argument."""
        number, element = self._argument(tensor)
        key = (number, element, tensor.shape, tensor.stride, tensor.layout)
        found = self.views.get(key)
        if found is None:
            found = self.views[key] = self._made_view(number, element, tensor)
        return found

    def _whole_view(self, tensor: GlobalTensor) -> SSAValue:
        """A view of this tensor and nothing else."""
        number, element = self._argument(tensor)
        return self._tensor_view(number, element, tensor)

    def _made_view(self, number: int, element: int, tensor: GlobalTensor) -> SSAValue:
        whole = self.run.tensors[number]
        assert whole is not None
        offsets = _offsets(whole, tensor, element)
        if offsets is not None:
            view = self._tensor_view(number, whole.base, whole)
        else:
            offsets, view = (0,) * 5, self._tensor_view(number, element, tensor)
        assert isinstance(view.type, TensorViewType)
        rank = len(view.type.dims)
        parts: Operands = {
            "view": view,
            "offsets": [self._index(one) for one in offsets[-rank:]],
            "sizes": [self._index(one) for one in tensor.shape[-rank:]],
        }
        made = PartitionTensorViewType(tensor.shape[-rank:], tensor.dtype.name)
        op = ops.PartitionViewOp.of_operands(parts, result_types=[made])
        self.head.append(op)
        name = self.names[self.pointers[number]]
        return self._named(op.partition, f"{name}_part")

    def _tensor_view(self, number: int, element: int, tensor: GlobalTensor) -> SSAValue:
        key = ("view", number, element, tensor.shape, tensor.stride, tensor.layout)
        found = self.views.get(key)
        if found is None:
            pointer = self.pointers[number]
            if element:
                moved = ops.AddPtrOp.of_operands(
                    {"ptr": pointer, "offset": self._index(element)}, result_types=[pointer.type]
                )
                self.head.append(moved)
                pointer = self._named(moved.moved, f"{self.names[pointer]}_at")
            rank = _rank(tensor)
            parts: Operands = {
                "ptr": pointer,
                "shape": [self._index(one) for one in tensor.shape[-rank:]],
                "strides": [self._index(one) for one in tensor.stride[-rank:]],
            }
            about = {"layout": attrs.LayoutAttr(tensor.layout)} if _needs_layout(tensor) else {}
            made = TensorViewType(tensor.shape[-rank:], tensor.dtype.name)
            op = ops.MakeTensorViewOp.of_operands(parts, about, result_types=[made])
            self.head.append(op)
            found = self.views[key] = self._named(op.view, f"{self.names[self.pointers[number]]}_view")
        return found

    # Instructions

    _current: Instruction | None = None

    def _instructions(self) -> None:
        before, behind = _pairs(self.block)
        for one in self.block.instructions:
            self._current = one
            for pair in before.get(one.number, ()):
                self.body.append(_flag(ops.WaitFlagOp, pair))
            write = WRITERS.get(one.name) or (_vector if one.name in OPS else None)
            if write is None:
                raise ConvertError([_finding(f"k.{one.name} has no op that would say it.", one)])
            tiles = [operand for operand in one.operands if isinstance(operand, UbTile)]
            if len(tiles) != len(one.facts.get("frozen", ())):
                raise ConvertError([_finding(f"{one.name} was refused, and the kernel stopped there.", one)])
            write(self, one)
            for pair in behind.get(one.number, ()):
                self.body.append(_flag(ops.SetFlagOp, pair))


def _extents(frozen: Tile, one: Instruction | None) -> tuple[int, int]:
    """The valid extents that a tile had; without a value no text says them."""
    if not frozen.is_known:
        raise ConvertError([_finding(f"{frozen!r} has a dynamic extent without a value.", one)])
    return frozen.valid


def _constant_name(value: int, of: Attribute) -> str:
    """`c64`, `cm1_i32`: as MLIR names them."""
    return f"c{value}".replace("-", "m") + ("" if isinstance(of, builtin.IndexType) else f"_{of}")


def _tiles_of(one: Instruction) -> list[tuple[UbTile, Tile]]:
    """The tiles of an instruction, and each as it was then."""
    tiles = [operand for operand in one.operands if isinstance(operand, UbTile)]
    return list(zip(tiles, one.facts.get("frozen", ()), strict=False))


def _tile_type(tile: UbTile) -> TileBufType:
    row, col = tile.declared_valid
    boxes = BOXES[tile.layout]
    return TileBufType(tile.loc, tile.dtype.name, tile.rows, tile.cols, row, col, *boxes, fractal=tile.fractal)


def _rank(tensor: GlobalTensor) -> int:
    if tensor.layout == "nz":
        return len(tensor.shape)
    front = next((at for at, extent in enumerate(tensor.shape) if extent != 1), len(tensor.shape))
    return max(len(tensor.shape) - front, VIEW_DIMS)


def _needs_layout(tensor: GlobalTensor) -> bool:
    """Whether it would be taken for another layout if none were written."""
    return tensor.layout != "nd" or (tensor.stride[3] == 1 and min(tensor.shape[3:]) > 1)


def _offsets(whole: GlobalTensor, part: GlobalTensor, element: int) -> tuple[int, ...] | None:
    """Where in a tensor a part of it begins, dimension by dimension; None where it is no such part."""
    same = all(a == b for a, b, size in zip(whole.stride, part.stride, part.shape, strict=True) if size > 1)
    if not same or whole.layout != part.layout or _rank(part) > _rank(whole):
        return None
    left, offsets = element - whole.base, [0] * 5
    for dim in sorted(range(5), key=lambda at: -whole.stride[at]):
        if whole.shape[dim] > 1 and whole.stride[dim] > 0:
            offsets[dim], left = divmod(left, whole.stride[dim])
    fits = all(first + count <= size for first, count, size in zip(offsets, part.shape, whole.shape, strict=True))
    return tuple(offsets) if left == 0 and fits and min(offsets) >= 0 else None


# Events


def _pairs(block: CoreBlock) -> tuple[Mapping[int, list[Pair]], Mapping[int, list[Pair]]]:
    """The flags that stand for `wait=`: per instruction those before it, and those behind it."""
    before: dict[int, list[Pair]] = {}
    behind: dict[int, list[Pair]] = {}
    used = set(block.flags.used)
    held: dict[tuple[str, str, int], int] = {}
    known: set[tuple[int, int]] = set()
    for one in block.instructions:
        for event in one.facts.get("waits", ()):
            if (id(event.step), one.pipe) in known:
                continue  # the pipe is in order: it has waited
            known.add((id(event.step), one.pipe))
            first = event.step.instruction.number
            free = next(
                (
                    number
                    for number in reversed(range(EVENT_IDS))
                    if (event.pipe, one.pipe, number) not in used
                    and held.get((NAMES[event.pipe], NAMES[one.pipe], number), -1) <= first
                ),
                None,
            )
            if free is None:
                raise ConvertError([_finding("All event ids of the pair are in use: no flag is left for wait=.", one)])
            pair = Pair(NAMES[event.pipe], NAMES[one.pipe], free)
            held[pair.source, pair.sink, free] = one.number
            before.setdefault(one.number, []).append(pair)
            behind.setdefault(first, []).append(pair)
    return before, behind


def _flag(made: type[Any], pair: Pair) -> Operation:
    points = {
        "src_pipe": attrs.pipe(pair.source),
        "dst_pipe": attrs.pipe(pair.sink),
        "event_id": attrs.event(pair.event),
    }
    op: Operation = made.of_operands({}, points)
    return op


# What each instruction becomes


def _word(policy: Enum) -> str:
    return policy.name.lower().rstrip("_")


def _tload(to: Writer, one: Instruction) -> None:
    (tile,) = to._taken(one)
    tensor: Any = one.operands[1]
    to.body.append(ops.TLoadOp.of_operands({"src": to._view(tensor), "dst": tile}))


def _tstore(to: Writer, one: Instruction) -> None:
    (tile,) = to._taken(one)
    tensor: Any = one.operands[0]
    about = {"atomicType": attrs.AtomicTypeAttr("atomic_add")} if one.facts.get("adds") else {}
    to.body.append(ops.TStoreOp.of_operands({"src": tile, "dst": to._view(tensor)}, about))


def _access(to: Writer, one: Instruction) -> None:
    call: Access = one.facts["call"]
    tile, idx = to._taken(one)
    tensor: Any = one.operands[0]
    coalesce = {"coalesce": attrs.CoalesceAttr(_word(call.coalesce))}
    if not call.is_scatter:
        about = {**coalesce, "gatherOob": attrs.GatherOobAttr(_word(call.oob))}
        to.body.append(ops.MGatherOp.of_operands({"mem": to._view(tensor), "idx": idx, "dst": tile}, about))
        return
    about = {
        **coalesce,
        "scatterAtomicOp": attrs.ScatterAtomicOpAttr(_word(call.atomic)),
        "scatterOob": attrs.ScatterOobAttr(_word(call.oob)),
    }
    if call.conflict_given:
        about["scatterConflict"] = attrs.ScatterConflictAttr(_word(call.conflict))
    to.body.append(ops.MScatterOp.of_operands({"src": tile, "idx": idx, "mem": to._view(tensor)}, about))


def _vector(to: Writer, one: Instruction) -> None:
    made, options = ops.VECTOR_OPS[one.name], one.facts["options"]
    assert isinstance(options, Options)
    dst, *sources = to._taken(one)
    tile: Any = one.operands[0]
    operands: dict[str, SSAValue] = {"dst": dst, **dict(zip(made.SOURCES, sources, strict=True))}
    for name in made.SCALARS:
        operands[name] = to._scalar(getattr(options, name), tile.dtype)
    about: dict[str, Attribute] = {}
    if one.name in ops.MODES:
        name, attr = ops.MODES[one.name]
        about[name] = attr(attrs.spelt_alike(attr.name.removeprefix("pto."), options.mode) or options.mode)
    if options.descending:
        about["descending"] = builtin.IntegerAttr(1, builtin.i1)
    to.body.append(made.of_operands(operands, about))


def _collective(to: Writer, one: Instruction) -> None:
    call: Collective = one.facts["call"]
    made: Any = next(op for op in ops.COMM_OPS if op.name == f"pto.comm.{one.name}")
    names = [name for name, _ in call.tiles]
    operands: Operands = dict(zip(names, to._taken(one), strict=True))
    # The members of a group have one type: views of their own extents, whatever the arguments look like.
    operands |= {made.FIRST[0]: to._view(call.local), "group": [to._whole_view(member) for member in call.slices]}
    about: dict[str, Attribute] = {"root": builtin.IntegerAttr(call.root, builtin.i32)}
    if call.acc is not None:
        about["reduceOp"] = attrs.ReduceOpAttr(call.reduce)
    to.body.append(made.of_operands(operands, about))


def _flags(to: Writer, one: Instruction) -> None:
    source, sink, event = one.operands
    made = ops.SetFlagOp if one.name == "set_flag" else ops.WaitFlagOp
    assert isinstance(event, int)
    if not 0 <= event < EVENT_IDS:
        raise ConvertError([_finding(f"There is no event {event}: no text says it.", one)])
    to.body.append(_flag(made, Pair(str(source), str(sink), event)))


def _barrier(to: Writer, one: Instruction) -> None:
    pipe = str(one.operands[0]).upper().removeprefix("PIPE_")
    to.body.append(ops.BarrierOp.of_operands({}, {"pipe": attrs.pipe(pipe)}))


def _load_scalar(to: Writer, one: Instruction) -> None:
    tensor: Any = one.operands[0]
    number, element = to._argument(tensor)
    at = to._index(element + int(one.facts["offset"]))
    dtype = tensor.dtype
    of = scalar_type(dtype.name) if dtype.is_float else builtin.IntegerType(8 * dtype.itemsize)
    op = ops.LoadScalarOp.of_operands({"ptr": to.pointers[number], "offset": at}, result_types=[of])
    to._named(op.value, f"{to.names[to.pointers[number]]}_read")
    to.body.append(op)


def _store_scalar(to: Writer, one: Instruction) -> None:
    tensor: Any = one.operands[0]
    number, element = to._argument(tensor)
    value = to._scalar(one.facts["value"], tensor.dtype)
    at = to._index(element + int(one.facts["offset"]))
    to.body.append(ops.StoreScalarOp.of_operands({"value": value, "ptr": to.pointers[number], "offset": at}))


WRITERS: dict[str, Callable[[Writer, Instruction], None]] = {
    "tload": _tload,
    "tstore": _tstore,
    "mscatter": _access,
    "mgather": _access,
    **dict.fromkeys(KINDS, _collective),
    "set_flag": _flags,
    "wait_flag": _flags,
    "pipe_barrier": _barrier,
    "load_scalar": _load_scalar,
    "store_scalar": _store_scalar,
    "dcci": lambda to, one: to.body.append(ops.DcciOp.of_operands({})),
    "dsb": lambda to, one: to.body.append(ops.DsbOp.of_operands({})),
}
"""What writes each instruction; the vector family has one for all."""
