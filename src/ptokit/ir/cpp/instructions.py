"""Each op of the dialect as a statement of C++: one small function for each, in a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xdsl.ir import Operation, SSAValue

from ptokit.ir.cpp.types import element
from ptokit.ir.cpp.views import Number, View
from ptokit.ir.dialect import ops
from ptokit.ir.dialect.attributes import word

if TYPE_CHECKING:
    from ptokit.ir.cpp.bodies import Body

SCATTER_ATOMICS = {"none": "None", "add": "Add", "max": "Max", "min": "Min"}
MODES = {"row": "Row", "elem": "Elem"}
OOB = {"undefined": "Undefined", "skip": "Skip", "clamp": "Clamp", "wrap": "Wrap", "zero": "Zero"}
CONFLICTS = {"last": "Last", "default": "Default"}
DEFAULTS = {"coalesce": "row", "atomic": "none", "oob": "undefined", "conflict": "last"}
EVENT_PIPES = {
    "TLOAD": "PIPE_MTE2",
    "TSTORE_ACC": "PIPE_FIX",
    "TSTORE_VEC": "PIPE_MTE3",
    "TMOV_M2L": "PIPE_MTE1",
    "TMOV_M2S": "PIPE_FIX",
    "TMOV_M2B": "PIPE_MTE1",
    "TMOV_M2V": "PIPE_V",
    "TMOV_V2M": "PIPE_V",
    "TMATMUL": "PIPE_M",
    "TVEC": "PIPE_V",
    "TVECWAIT_EVENT": "PIPE_V",
}
"""The pipe that an instruction of that kind runs on."""
FLUSH = ("dcci(static_cast<__gm__ void *>(0), ENTIRE_DATA_CACHE);", "dsb(DSB_DDR);")


# Views and tiles


def make_tensor_view(body: Body, op: ops.MakeTensorViewOp) -> None:
    """A GlobalTensor where an instruction takes the whole view; parts are made of its numbers."""
    dtype = getattr(op.view.type, "dtype", None)
    if dtype is None:
        return body.refuse(op, f"the type {op.view.type} leaves open what the view holds")
    dims = getattr(op.view.type, "dims", ()) or ()
    shape = [dim if dim >= 0 else body.number(given) for dim, given in zip(dims, op.shape, strict=False)]
    strides = [body.number(given) for given in op.strides]
    view = View(body.word(op.ptr), dtype, tuple(shape), tuple(strides), word(op.layout, "nd"))
    return body.view(
        op.view, view, declared=any(not isinstance(u.operation, ops.PartitionViewOp) for u in op.view.uses)
    )


def partition_view(body: Body, op: ops.PartitionViewOp) -> None:
    """A GlobalTensor of its own, further on in the same memory."""
    whole = body.views.get(op.view)
    if whole is None:
        return body.refuse(op, f"the view that it is a part of ({op.view.type}) has no address here")
    dims = getattr(op.partition.type, "dims", None) or (-1,) * len(op.sizes)
    sizes = [dim if dim >= 0 else body.number(given) for dim, given in zip(dims, op.sizes, strict=True)]
    part = whole.part([body.number(offset) for offset in op.offsets], sizes)
    return body.view(op.partition, part, declared=bool(op.partition.uses))


def alloc_tile(body: Body, op: ops.AllocTileOp) -> None:
    """A Tile, and TASSIGN with its address."""
    body.tile(op, op.tile, op.addr, [one for one in (op.valid_row, op.valid_col) if one is not None])


def tassign(body: Body, op: ops.TAssignOp) -> None:
    """The same tile at another address; as another type it is a tile of its own."""
    if op.placed.type == op.tile.type:
        body.assign(op)
    else:
        body.tile(op, op.placed, op.addr, [])


def set_validshape(body: Body, op: ops.SetValidShapeOp) -> None:
    """Extents of a tile that is dynamic."""
    body.line(f"{body.word(op.tile)}.SetValidShape({body.word(op.row)}, {body.word(op.col)});")


# Transfers


def tload(body: Body, op: ops.TLoadOp) -> None:
    """TLOAD(tile, tensor)."""
    if op.pad_mode is not None or len(op.operands) > 2:
        return body.refuse(op, "the padding of a load is not among the intrinsics of the documents")
    return body.call("TLOAD", op.dst, op.src)


def tstore(body: Body, op: ops.TStoreOp) -> None:
    """TSTORE(tensor, tile), with its atomic as a template argument."""
    if op.st_phase is not None or op.relu_pre_mode is not None:
        return body.refuse(op, "stPhase and reluPreMode are not among the intrinsics of the documents")
    if op.fp is not None:
        return body.call("TSTORE_FP", op.dst, op.src, op.fp)
    operands = [op.dst, op.src, *([op.quant] if op.quant is not None else [])]
    if op.atomic == "none":
        return body.call("TSTORE", *operands)
    tile, tensor = body.type_of(op.src), body.type_of(op.dst)
    return body.call(f"TSTORE<{tile}, {tensor}, AtomicType::Atomic{SCATTER_ATOMICS[op.atomic]}>", *operands)


# Indexed access


def mscatter(body: Body, op: ops.MScatterOp) -> None:
    """MSCATTER<..>(table, src, idx): each target has the policies that its header has."""
    told = op.policies
    if op.coalesce is None and told == DEFAULTS:
        # What the text leaves open is left to the defaults of the template.
        return body.call("MSCATTER", op.mem, op.src, op.idx)
    if body.target == "cpu":
        return _cpu(body, op, "MSCATTER", told, (op.mem, op.src, op.idx))
    words = [f"Coalesce::{MODES[told['coalesce']]}", f"ScatterAtomicOp::{SCATTER_ATOMICS[told['atomic']]}"]
    words.append(f"ScatterOOB::{OOB[told['oob']]}")
    if body.target == "a5":
        words.append(f"ScatterConflict::{CONFLICTS[told['conflict']]}")
    elif told["conflict"] != "last":
        body.refuse(op, "MSCATTER of a2a3 has no ScatterConflict: the last write wins", "scatterConflict")
    elif told["atomic"] in ("max", "min"):
        name = SCATTER_ATOMICS[told["atomic"]]
        body.refuse(op, f"the header of a2a3 refuses ScatterAtomicOp::{name}", "scatterAtomicOp")
    return body.call(f"MSCATTER<{', '.join(words)}>", op.mem, op.src, op.idx)


def mgather(body: Body, op: ops.MGatherOp) -> None:
    """MGATHER<..>(dst, table, idx)."""
    told = op.policies
    if op.scratch is not None:
        return body.refuse(op, "MGATHER of the documents takes no scratch tile", "scratch")
    if op.coalesce is None and told["oob"] == "undefined":
        return body.call("MGATHER", op.dst, op.mem, op.idx)
    if body.target == "cpu":
        return _cpu(body, op, "MGATHER", told, (op.dst, op.mem, op.idx))
    words = f"Coalesce::{MODES[told['coalesce']]}, GatherOOB::{OOB[told['oob']]}"
    return body.call(f"MGATHER<{words}>", op.dst, op.mem, op.idx)


PLAIN = {"coalesce": "elem", "atomic": "none", "oob": "undefined", "conflict": "last"}
"""What the form without template arguments means on cpu."""
GIVEN_AS = {"coalesce": "coalesce", "atomic": "scatterAtomicOp", "oob": "scatterOob", "conflict": "scatterConflict"}


def _cpu(body: Body, op: Operation, name: str, told: dict[str, str], operands: Sequence[SSAValue]) -> None:
    other = [policy for policy, usual in PLAIN.items() if told.get(policy, usual) != usual]
    if other:
        asked = ", ".join(f"{policy} {told[policy]}" for policy in other)
        body.refuse(op, f"{name} of cpu takes no policies, and this one asks for {asked}", GIVEN_AS[other[0]])
    body.call(name, *operands)


# The vector family


def vector(body: Body, op: ops.VectorFamilyOp) -> None:
    """TADD(dst, a, b), TADDS(dst, a, scalar), ..: the destination first, then tiles, then scalars, then modes."""
    name, form = op.row.name.upper(), op.row.form
    sources = [body.word(one) for one in op.sources]
    scalars = [body.word(one) for one in op.scalars.values()]
    (into,) = op.given(op.OUTS)
    dst = body.word(into)
    more: list[str] = []
    if form == "convert":
        more = [f"RoundMode::CAST_{op.options.get('mode', op.row.default_mode).upper()}"]
    elif form == "compare":
        more = [f"CmpMode::{op.options.get('mode', op.row.default_mode).upper()}"]
    elif form == "row-reduce" or op.operand_called("tmp") is not None:
        more = [_temporary(body, op)]
    elif form == "iota":
        held = element(getattr(into.type, "dtype", "")) or "int32_t"
        name += f"<{body.type_of(into)}, {held}, {int(op.options.get('descending', False))}>"
    body.line(f"{name}({', '.join([dst, *sources, *scalars, *more])});")


def _temporary(body: Body, op: ops.VectorFamilyOp) -> str:
    """The temporary tile that the intrinsic wants; where the text has none, one like the source is placed."""
    given = op.operand_called("tmp")
    return body.word(given) if given is not None else body.extra_tile(op, op.sources[0], "tmp")


def tscatter(body: Body, op: ops.TScatterOp) -> None:
    """TSCATTER(dst, src, idx), from tile to tile."""
    if op.idx is None:
        return body.refuse(op, "a scatter by a mask pattern is not among the intrinsics of the documents")
    return body.call("TSCATTER", op.dst, op.src, op.idx)


# Collectives


def comm(body: Body, op: ops.CommOp) -> None:
    """comm::TSCATTER(group, tensor, ping[, pong]) and its kin, with the ParallelGroup that they take."""
    first, tiles, members = op.given_operands
    if not tiles:
        return body.refuse(op, "C++ needs a staging tile, and the text has none (write recv(%ping))")
    name = op.name.removeprefix("pto.comm.").upper()
    group = body.group(op, members)
    order = [group, *(body.word(one) for one in (*first, *tiles))]
    if name == "TREDUCE":
        order.append(f"comm::ReduceOp::{str(word(op.properties.get('reduceOp'), 'sum')).title()}")
    body.uses_comm = True
    return body.line(f"comm::{name}({', '.join(order)});")


# Order


def flag(body: Body, op: ops.SetFlagOp | ops.WaitFlagOp) -> None:
    """set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)."""
    name = op.name.removeprefix("pto.")
    body.line(f"{name}({op.src_pipe.data}, {op.dst_pipe.data}, {op.event_id.data});")


def dynamic_flag(body: Body, op: ops.SetFlagDynOp | ops.WaitFlagDynOp) -> None:
    """The same with an id that is known at run time."""
    name = op.name.removeprefix("pto.").removesuffix("_dyn")
    event = f"static_cast<event_t>({body.word(op.event_id)})"
    body.line(f"{name}({op.src_pipe.data}, {op.dst_pipe.data}, {event});")


def event(body: Body, op: ops.RecordEventOp | ops.WaitEventOp) -> None:
    """The flag between the pipes of the two kinds of instruction."""
    name = "set_flag" if isinstance(op, ops.RecordEventOp) else "wait_flag"
    source, sink = EVENT_PIPES[op.src_op.data], EVENT_PIPES[op.dst_op.data]
    if source == sink:
        return body.line(f"pipe_barrier({sink});") if name == "wait_flag" else None
    return body.line(f"{name}({source}, {sink}, {op.event_id.data});")


def barrier(body: Body, op: ops.BarrierOp) -> None:
    """pipe_barrier(PIPE_ALL)."""
    body.line(f"pipe_barrier({op.pipe.data});")


def barrier_sync(body: Body, op: ops.BarrierSyncOp) -> None:
    """The barrier of the pipe that runs instructions of that kind."""
    body.line(f"pipe_barrier({EVENT_PIPES[op.op_type.data]});")


def tsync(body: Body, op: ops.TSyncOp) -> None:
    """Everything is waited for: the intrinsics give their events to nobody here."""
    body.line("pipe_barrier(PIPE_ALL);")


def dcci(body: Body, op: ops.DcciOp) -> None:
    """The data cache is cleaned."""
    body.line(FLUSH[0])


def dsb(body: Body, op: ops.DsbOp) -> None:
    """And has arrived."""
    body.line(FLUSH[1])


# Scalars


def block_number(body: Body, op: ops.GetBlockIdxOp | ops.GetBlockNumOp) -> None:
    """get_block_idx()."""
    body.constant(op, op.results[0], f"static_cast<int64_t>({op.name.removeprefix('pto.')}())")


def addptr(body: Body, op: ops.AddPtrOp) -> None:
    """A pointer further on."""
    body.constant(op, op.moved, f"{body.word(op.ptr)} + {body.word(op.offset)}")


def load_scalar(body: Body, op: ops.LoadScalarOp) -> None:
    """An element by the scalar pipe."""
    body.constant(op, op.value, f"{body.word(op.ptr)}[{body.word(op.offset)}]")


def store_scalar(body: Body, op: ops.StoreScalarOp) -> None:
    """An element by the scalar pipe."""
    body.line(f"{body.word(op.ptr)}[{body.word(op.offset)}] = {body.word(op.value)};")


Statement = Callable[["Body", Any], None]

STATEMENTS: dict[type[Operation], Statement] = {
    ops.MakeTensorViewOp: make_tensor_view,
    ops.PartitionViewOp: partition_view,
    ops.AllocTileOp: alloc_tile,
    ops.TAssignOp: tassign,
    ops.SetValidShapeOp: set_validshape,
    ops.TLoadOp: tload,
    ops.TStoreOp: tstore,
    ops.MScatterOp: mscatter,
    ops.MGatherOp: mgather,
    **dict.fromkeys(ops.VECTOR_OPS.values(), vector),
    ops.TScatterOp: tscatter,
    **dict.fromkeys(ops.COMM_OPS, comm),
    ops.SetFlagOp: flag,
    ops.WaitFlagOp: flag,
    ops.SetFlagDynOp: dynamic_flag,
    ops.WaitFlagDynOp: dynamic_flag,
    ops.RecordEventOp: event,
    ops.WaitEventOp: event,
    ops.BarrierOp: barrier,
    ops.BarrierSyncOp: barrier_sync,
    ops.TSyncOp: tsync,
    ops.DcciOp: dcci,
    ops.DsbOp: dsb,
    ops.GetBlockIdxOp: block_number,
    ops.GetBlockNumOp: block_number,
    ops.AddPtrOp: addptr,
    ops.LoadScalarOp: load_scalar,
    ops.StoreScalarOp: store_scalar,
}
"""The statement of each op; control flow stands in `bodies`."""

__all__ = ["FLUSH", "STATEMENTS", "Number"]
