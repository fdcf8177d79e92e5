"""Ops made from Python: one small function for each, and a `Body` that puts them in a row.

>>> kernel = func("copy", {"src": PtrType("float32"), "dst": PtrType("float32")}, entry=True)
>>> body = Body(kernel)
>>> tile = body.add(alloc_tile(TileBufType("vec", "float32", 16, 64), addr=body.constant(0, "int64")), "tile")
>>> for pointer, move in (("src", tload), ("dst", lambda view, tile: tstore(tile, view))):
...     view = body.view(body.args[pointer], (16, 64), (64, 1))
...     part = body.part(view, (0, 0), (16, 64))
...     _ = body.add(move(part, tile))
>>> _ = body.add(ret())
>>> print(module(kernel).to("dps"), end="")
module {
  func.func @copy(%src: !pto.ptr<f32, gm>, %dst: !pto.ptr<f32, gm>) attributes {pto.entry} {
    %c0_i64 = arith.constant 0 : i64
    %tile = pto.alloc_tile addr = %c0_i64 : !pto.tile_buf<vec, 16x64xf32>
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %c1 = arith.constant 1 : index
    %0 = pto.make_tensor_view %src, shape = [%c16, %c64], strides = [%c64, %c1] : !pto.tensor_view<16x64xf32>
    %c0 = arith.constant 0 : index
    %1 = pto.partition_view %0, offsets = [%c0, %c0], sizes = [%c16, %c64] : !pto.tensor_view<16x64xf32>
    pto.tload ins(%1 : !pto.partition_tensor_view<16x64xf32>) outs(%tile : !pto.tile_buf<vec, 16x64xf32>)
    %2 = pto.make_tensor_view %dst, shape = [%c16, %c64], strides = [%c64, %c1] : !pto.tensor_view<16x64xf32>
    %3 = pto.partition_view %2, offsets = [%c0, %c0], sizes = [%c16, %c64] : !pto.tensor_view<16x64xf32>
    pto.tstore ins(%tile : !pto.tile_buf<vec, 16x64xf32>) outs(%3 : !pto.partition_tensor_view<16x64xf32>)
    return
  }
}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects import func as _func
from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    UnitAttr,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ptokit.core.vector import FORMS, vector_op
from ptokit.errors import PtoTypeError, PtoValueError
from ptokit.ir.dialect import attributes as attrs
from ptokit.ir.dialect import ops
from ptokit.ir.dialect.types import (
    DYNAMIC,
    PartitionTensorViewType,
    PtrType,
    ShapedText,
    TensorViewType,
    TileBufType,
    scalar_type,
)
from ptokit.ir.module import Module

Value: TypeAlias = SSAValue | Operation
Attributes: TypeAlias = Mapping[str, Attribute] | None
Operands: TypeAlias = dict[str, SSAValue | Sequence[SSAValue] | None]
INDEX = IndexType()


def value_of(what: Value) -> SSAValue:
    """The value itself, or the one result of an op."""
    return SSAValue.get(what)


def _values(what: Sequence[Value]) -> list[SSAValue]:
    return [value_of(one) for one in what]


def _optional(what: Value | None) -> SSAValue | None:
    return None if what is None else value_of(what)


def _known(**given: Attribute | None) -> dict[str, Attribute]:
    return {name: attr for name, attr in given.items() if attr is not None}


# The frame


def module(*inside: Operation, arch: str | None = None) -> Module:
    """A module of those functions (or ops)."""
    known = {"pto.target_arch": StringAttr(arch)} if arch else {}
    return Module(ModuleOp(list(inside), known))


def func(
    name: str,
    args: Mapping[str, Attribute],
    *,
    results: Sequence[Attribute] = (),
    private: bool = False,
    entry: bool = False,
    kind: str | None = None,
) -> _func.FuncOp:
    """A function with an empty body and arguments of those names; `kind` is vector or cube."""
    made = _func.FuncOp(name, (list(args.values()), list(results)), visibility="private" if private else None)
    for arg, called in zip(made.args, args, strict=True):
        arg.name_hint = called
    if entry:
        made.attributes["pto.entry"] = UnitAttr()
    if kind:
        made.attributes["pto.kernel_kind"] = attrs.KernelKindAttr(kind)
    return made


def ret(*values: Value) -> _func.ReturnOp:
    """The end of a function."""
    return _func.ReturnOp(*_values(values))


def constant(value: float, dtype: object = "index") -> arith.ConstantOp:
    """`arith.constant`; signs are left out, as that dialect wants it."""
    scalar = scalar_type(dtype)
    if isinstance(scalar, IntegerType):
        return arith.ConstantOp(IntegerAttr(int(value), IntegerType(scalar.width.data), truncate_bits=True))
    if isinstance(scalar, IndexType):
        return arith.ConstantOp(IntegerAttr(int(value), scalar))
    if isinstance(scalar, AnyFloat):
        return arith.ConstantOp(FloatAttr(float(value), scalar))
    raise PtoTypeError(f"there is no constant of type {dtype}")


def arg(of: Attribute) -> ops.ArgOp:
    """A value that comes from outside, where a text has no function."""
    return ops.ArgOp.of_operands({}, result_types=[of])


# Views and tiles


def make_tensor_view(
    ptr: Value,
    shape: Sequence[Value],
    strides: Sequence[Value],
    result: Attribute | None = None,
    *,
    layout: str | None = None,
    attributes: Attributes = None,
) -> ops.MakeTensorViewOp:
    """A view on a pointer; its type follows from constants where it is not given."""
    base, extents = value_of(ptr), _values(shape)
    if result is None:
        if not isinstance(base.type, PtrType):
            raise PtoTypeError(f"a view of {base.type} needs its type")
        result = TensorViewType(_extents(extents), base.type.elem)
    operands: Operands = {"ptr": base, "shape": extents, "strides": _values(strides)}
    known = _known(layout=attrs.LayoutAttr(layout) if layout else None)
    return ops.MakeTensorViewOp.of_operands(operands, known, attributes, [result])


def partition_view(
    view: Value,
    offsets: Sequence[Value],
    sizes: Sequence[Value],
    result: Attribute | None = None,
    *,
    attributes: Attributes = None,
) -> ops.PartitionViewOp:
    """A part of a view; its type follows from the sizes where it is not given."""
    of, extents = value_of(view), _values(sizes)
    made = result or ops.sized_view_type(of.type, extents)
    if made is None:
        raise PtoTypeError(f"a part of {of.type} needs its type")
    operands: Operands = {"view": of, "offsets": _values(offsets), "sizes": extents}
    return ops.PartitionViewOp.of_operands(operands, None, attributes, [made])


def _extents(values: Sequence[SSAValue]) -> tuple[int, ...]:
    known = [ops.constant_value(value) for value in values]
    return tuple(extent if isinstance(extent, int) and extent >= 0 else DYNAMIC for extent in known)


def alloc_tile(
    tile: Attribute,
    *,
    addr: Value | None = None,
    valid_row: Value | None = None,
    valid_col: Value | None = None,
    attributes: Attributes = None,
) -> ops.AllocTileOp:
    """A tile, placed by hand or not."""
    operands = {"addr": _optional(addr), "valid_row": _optional(valid_row), "valid_col": _optional(valid_col)}
    return ops.AllocTileOp.of_operands(operands, None, attributes, [tile])


def tassign(tile: Value, addr: Value, result: Attribute | None = None) -> ops.TAssignOp:
    """The tile at that address (an i64)."""
    of = value_of(tile)
    return ops.TAssignOp.of_operands({"tile": of, "addr": value_of(addr)}, result_types=[result or of.type])


def set_validshape(tile: Value, row: Value, col: Value) -> ops.SetValidShapeOp:
    """Values for dynamic valid extents."""
    return ops.SetValidShapeOp.of_operands({"tile": value_of(tile), "row": value_of(row), "col": value_of(col)})


# Instructions


def tload(src: Value, dst: Value, *, attributes: Attributes = None) -> ops.TLoadOp:
    """GM to a tile."""
    return ops.TLoadOp.of_operands({"src": value_of(src), "dst": value_of(dst)}, None, attributes)


def tstore(
    src: Value,
    dst: Value,
    *,
    fp: Value | None = None,
    quant: Value | None = None,
    atomic: str = "none",
    attributes: Attributes = None,
) -> ops.TStoreOp:
    """A tile to GM."""
    operands = {"src": value_of(src), "dst": value_of(dst), "fp": _optional(fp), "quant": _optional(quant)}
    kind = attrs.AtomicTypeAttr(f"atomic_{atomic}") if atomic != "none" else None
    return ops.TStoreOp.of_operands(operands, _known(atomicType=kind), attributes)


def mscatter(
    src: Value,
    idx: Value,
    mem: Value,
    *,
    coalesce: str | None = None,
    atomic: str = "none",
    oob: str = "undefined",
    conflict: str | None = None,
    attributes: Attributes = None,
) -> ops.MScatterOp:
    """Scatter; without `coalesce` the mode follows from the shapes."""
    operands = {"src": value_of(src), "idx": value_of(idx), "mem": value_of(mem)}
    known = _known(
        coalesce=attrs.CoalesceAttr(coalesce) if coalesce else None,
        scatterAtomicOp=attrs.ScatterAtomicOpAttr(atomic),
        scatterOob=attrs.ScatterOobAttr(oob),
        scatterConflict=attrs.ScatterConflictAttr(conflict) if conflict else None,
    )
    return ops.MScatterOp.of_operands(operands, ops.MScatterOp.completed(operands, known), attributes)


def mgather(
    mem: Value,
    idx: Value,
    dst: Value,
    *,
    scratch: Value | None = None,
    coalesce: str | None = None,
    oob: str = "undefined",
    attributes: Attributes = None,
) -> ops.MGatherOp:
    """Gather; without `coalesce` the mode follows from the shapes."""
    operands = {"mem": value_of(mem), "idx": value_of(idx), "dst": value_of(dst)}
    known = _known(coalesce=attrs.CoalesceAttr(coalesce) if coalesce else None, gatherOob=attrs.GatherOobAttr(oob))
    every = {**operands, "scratch": _optional(scratch)}
    return ops.MGatherOp.of_operands(every, ops.MGatherOp.completed(operands, known), attributes)


def vector(
    name: str,
    dst: Value,
    *sources: Value,
    scalar: Value | None = None,
    first: Value | None = None,
    mode: str | None = None,
    descending: bool | None = None,
    attributes: Attributes = None,
) -> ops.VectorFamilyOp:
    """An instruction of `ptokit.core.vector.OPS`, by its name: "tadd", "tcvt", .."""
    row = vector_op(name)
    made = ops.VECTOR_OPS[row.name]
    wanted = FORMS[row.form].sources
    if len(sources) != len(wanted):
        raise PtoTypeError(f"{row.name} takes {len(wanted)} source tiles, not {len(sources)}")
    tiles = dict(zip(wanted, _values(sources), strict=True))
    operands = {**tiles, "dst": value_of(dst), "scalar": _optional(scalar), "first": _optional(first)}
    known: dict[str, Attribute] = {}
    if mode is not None:
        called, kind = ops.MODES[row.name]
        spelt = attrs.spelt_alike(kind.name.removeprefix("pto."), mode)
        if spelt is None:
            raise PtoValueError(f"{row.name} has no mode {mode!r}; known: {', '.join(kind.words)}")
        known[called] = kind(spelt)
    if descending is not None:
        known["descending"] = IntegerAttr(int(descending), i1)
    return made.of_operands(operands, known, attributes)


# Order and memory


def set_flag(src: str, dst: str, event: int | str) -> ops.SetFlagOp:
    """`set_flag("MTE2", "V", 0)`."""
    return ops.SetFlagOp.of_operands({}, _flag(src, dst, event))


def wait_flag(src: str, dst: str, event: int | str) -> ops.WaitFlagOp:
    """`wait_flag("MTE2", "V", 0)`."""
    return ops.WaitFlagOp.of_operands({}, _flag(src, dst, event))


def _flag(src: str, dst: str, event: int | str) -> dict[str, Attribute]:
    return {"src_pipe": attrs.pipe(src), "dst_pipe": attrs.pipe(dst), "event_id": attrs.event(event)}


def barrier(pipe: str = "ALL") -> ops.BarrierOp:
    """`barrier("ALL")`."""
    return ops.BarrierOp.of_operands({}, {"pipe": attrs.pipe(pipe)})


def record_event(src: str, dst: str, event: int | str) -> ops.RecordEventOp:
    """`record_event("TLOAD", "TVEC", 0)`."""
    return ops.RecordEventOp.of_operands({}, _event(src, dst, event))


def wait_event(src: str, dst: str, event: int | str) -> ops.WaitEventOp:
    """`wait_event("TLOAD", "TVEC", 0)`."""
    return ops.WaitEventOp.of_operands({}, _event(src, dst, event))


def _event(src: str, dst: str, event: int | str) -> dict[str, Attribute]:
    ends = {"src_op": attrs.PipeEventTypeAttr(src), "dst_op": attrs.PipeEventTypeAttr(dst)}
    return {**ends, "event_id": attrs.event(event)}


def tsync(*events: Value) -> ops.TSyncOp:
    """The wait for the events of those values."""
    return ops.TSyncOp.of_operands({"events": _values(events)})


def dcci() -> ops.DcciOp:
    """The whole data cache, cleaned and invalidated."""
    return ops.DcciOp.of_operands({})


def dsb() -> ops.DsbOp:
    """The barrier of the memory."""
    return ops.DsbOp.of_operands({})


def get_block_idx() -> ops.GetBlockIdxOp:
    """Which block this is, an i64."""
    return ops.GetBlockIdxOp.of_operands({}, result_types=[i64])


def get_block_num() -> ops.GetBlockNumOp:
    """How many blocks there are, an i64."""
    return ops.GetBlockNumOp.of_operands({}, result_types=[i64])


def addptr(ptr: Value, offset: Value) -> ops.AddPtrOp:
    """The pointer, `offset` elements on."""
    base = value_of(ptr)
    return ops.AddPtrOp.of_operands({"ptr": base, "offset": value_of(offset)}, result_types=[base.type])


def load_scalar(ptr: Value, offset: Value, result: Attribute | None = None) -> ops.LoadScalarOp:
    """One element of GM."""
    base = value_of(ptr)
    if result is None:
        if not isinstance(base.type, PtrType):
            raise PtoTypeError(f"what is loaded from {base.type} needs its type")
        result = scalar_type(base.type.elem)
    return ops.LoadScalarOp.of_operands({"ptr": base, "offset": value_of(offset)}, result_types=[result])


def store_scalar(value: Value, ptr: Value, offset: Value) -> ops.StoreScalarOp:
    """One element to GM."""
    operands = {"value": value_of(value), "ptr": value_of(ptr), "offset": value_of(offset)}
    return ops.StoreScalarOp.of_operands(operands)


def section(kind: str, inside: Sequence[Operation]) -> ops.SectionVectorOp | ops.SectionCubeOp:
    """`pto.section.vector { .. }`, or cube."""
    region = Region(Block(list(inside)))
    if kind == "vector":
        return ops.SectionVectorOp.of_operands({}, regions=[region])
    return ops.SectionCubeOp.of_operands({}, regions=[region])


# Collectives


def comm(
    name: str,
    *first: Value,
    ping: Value,
    group: Sequence[Value],
    pong: Value | None = None,
    root: int | None = 0,
    reduce_op: str | None = None,
    attributes: Attributes = None,
) -> ops.CommOp:
    """`comm("tscatter", src, ping=tile, group=[..], root=0)`; also tgather, tbroadcast, treduce (dst, acc)."""
    made = next((one for one in ops.COMM_OPS if one.name == f"pto.comm.{name}"), None)
    if made is None:
        raise PtoValueError(f"there is no collective {name!r}")
    operands: Operands = dict(zip(made.FIRST, _values(first), strict=True))
    operands |= {"ping": value_of(ping), "pong": _optional(pong), "group": _values(group)}
    known = _known(
        reduceOp=attrs.ReduceOpAttr(reduce_op) if reduce_op else None,
        root=IntegerAttr(root, i32) if root is not None else None,
    )
    return made.of_operands(operands, known, attributes)


# In a row


class Body:
    """The body of a function that is being written: ops in a row, constants made once."""

    def __init__(self, kernel: _func.FuncOp) -> None:
        self.func = kernel
        block = kernel.body.blocks.first
        if block is None:
            raise PtoValueError("a function without a body cannot be written into")
        self.block = block
        self._constants: dict[tuple[object, str], SSAValue] = {}

    @property
    def args(self) -> dict[str, SSAValue]:
        """The function's arguments by name."""
        return {arg.name_hint or str(arg.index): arg for arg in self.block.args}

    def add(self, op: Operation, name: str | None = None) -> SSAValue:
        """The op at the end; gives its result (or, of an op without one, nothing to use)."""
        self.block.add_op(op)
        if not op.results:
            return _NOTHING
        if name:
            op.results[0].name_hint = name
        return op.results[0]

    def constant(self, value: float, dtype: object = "index") -> SSAValue:
        """A constant, made where it is first asked for."""
        key = value, str(dtype)
        if key not in self._constants:
            made = constant(value, dtype)
            suffix = "" if dtype == "index" else f"_{made.result.type}"
            text = str(value).replace("-", "m").replace(".", "p").replace("+", "")
            self._constants[key] = self.add(made, f"c{text}{suffix}")
        return self._constants[key]

    def view(self, ptr: Value, shape: Sequence[int], strides: Sequence[int], layout: str | None = None) -> SSAValue:
        """A view with static extents."""
        extents = [self.constant(n) for n in shape]
        steps = [self.constant(n) for n in strides]
        return self.add(make_tensor_view(ptr, extents, steps, layout=layout))

    def part(self, view: Value, offsets: Sequence[int], sizes: Sequence[int]) -> SSAValue:
        """A part of a view with static offsets and sizes."""
        begin = [self.constant(n) for n in offsets]
        return self.add(partition_view(view, begin, [self.constant(n) for n in sizes]))


_NOTHING: SSAValue = arith.ConstantOp(IntegerAttr(0, i1)).result
__all__ = [
    "Body",
    "PartitionTensorViewType",
    "PtrType",
    "ShapedText",
    "TensorViewType",
    "TileBufType",
    "addptr",
    "alloc_tile",
    "arg",
    "barrier",
    "comm",
    "constant",
    "dcci",
    "dsb",
    "func",
    "get_block_idx",
    "get_block_num",
    "load_scalar",
    "make_tensor_view",
    "mgather",
    "module",
    "mscatter",
    "partition_view",
    "record_event",
    "ret",
    "section",
    "set_flag",
    "set_validshape",
    "store_scalar",
    "tassign",
    "tload",
    "tstore",
    "tsync",
    "vector",
    "wait_event",
    "wait_flag",
]
