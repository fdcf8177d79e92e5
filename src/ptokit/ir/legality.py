"""The rules of the targets, on tiles and tensors that are made from the types of a text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xdsl.ir import Operation, SSAValue

from ptokit.access.instructions import judge_call, legality, read_call
from ptokit.access.plan import Machine
from ptokit.comm.rules import KINDS, collective
from ptokit.comm.rules import judge as judge_collective
from ptokit.core import transfers, vector
from ptokit.errors import PtoError
from ptokit.findings import Finding, Severity
from ptokit.ir.arithmetic import Number
from ptokit.ir.dialect import ops
from ptokit.ir.dialect.attributes import word
from ptokit.ir.operands import Numbers, Unfit, is_group, is_view, lie_of, root_of, tensor_of, tile_of
from ptokit.ir.wording import in_text
from ptokit.tensors import DYNAMIC, GlobalTensor, Tile

if TYPE_CHECKING:
    from ptokit.ir.module import Module

STRUCTURE = "PTO-P012"
CANNOT = "PTO-P014"
NEEDS_A_RUN = frozenset({"PTO-L006", "PTO-R008"})
"""The rules that every dynamic extent has a value: only a run knows."""


@dataclass(frozen=True, eq=False)
class Asked:
    """One op, judged for one machine."""

    module: Module
    op: Any
    machine: Machine
    numbers: Numbers

    def tile(self, value: SSAValue) -> Tile:
        """An operand as a tile."""
        return tile_of(value, self.numbers)

    def finding(self, told: Finding, operands: Mapping[str, str]) -> Finding:
        """The finding of a rule, at the token that it is about."""
        about = TOKENS.get(told.id, "")
        token = operands.get(about, about) or None
        return self.module.finding(
            told.id,
            told.severity,
            in_text(told.message),
            self.op,
            token,
            target=told.target,
            facts=dict(told.facts),
            fix=in_text(told.fix),
        )


TOKENS = {
    "PTO-L001": "tile",
    "PTO-L002": "idx",
    "PTO-L005": "tile",
    "PTO-L007": "table",
    "PTO-L008": "tile",
    "PTO-L009": "idx",
    "PTO-L011": "table",
    "PTO-L012": "table",
    "PTO-L013": "idx",
    "PTO-L014": "idx",
    "PTO-L015": "tile",
    "PTO-L016": "idx",
    "PTO-L017": "table",
    "PTO-L018": "table",
    "PTO-L019": "table",
    "PTO-L020": "tile",
    "PTO-L024": "scatterAtomicOp",
    "PTO-L025": "scatterConflict",
    "PTO-L027": "table",
    "PTO-L028": "table",
    "PTO-L029": "table",
    "PTO-L030": "atomicType",
    "PTO-R002": "root",
    "PTO-R003": "group",
    "PTO-R005": "ping",
    "PTO-R006": "local",
    "PTO-R007": "local",
    "PTO-R009": "ping",
    "PTO-R010": "pong",
    "PTO-R011": "ping",
    "PTO-R012": "local",
    "PTO-R013": "ping",
    "PTO-R014": "pong",
    "PTO-R015": "local",
    "PTO-R020": "reduceOp",
    "PTO-R021": "ping",
    "PTO-R022": "ping",
    "PTO-R023": "local",
}
"""Which operand, or which attribute, a rule is about."""


def legal(asked: Asked) -> list[Finding]:
    """What the rules of a target say of an op; where no tile or tensor can be made, why."""
    try:
        told = JUDGES[type(asked.op)](asked)
    except Unfit as unfit:
        return [_unfit(asked, unfit)]
    except (PtoError, MemoryError, OverflowError) as wrong:
        return [
            asked.module.finding(
                STRUCTURE, Severity.ERROR, f"{asked.op.name}: {wrong}.", asked.op, target=asked.machine.name
            )
        ]
    return [one for one in told if one.id not in NEEDS_A_RUN]


def _unfit(asked: Asked, unfit: Unfit) -> Finding:
    id_ = {"dtype": "PTO-L001", "package": CANNOT}.get(unfit.about, STRUCTURE)
    severity = Severity.NOTE if unfit.about == "package" else Severity.ERROR
    message = f"{asked.op.name}: {unfit.reason.rstrip('.')}."
    if unfit.about == "package":
        message = f"{asked.op.name} is not judged: {unfit.reason.rstrip('.')}."
    return asked.module.finding(id_, severity, message, asked.op, target=asked.machine.name)


def _access(asked: Asked, name: str, tile_name: str) -> list[Finding]:
    op = asked.op
    tile_value, policies = getattr(op, tile_name), dict(op.policies)
    tile, idx = asked.tile(tile_value), asked.tile(op.idx)
    if op.coalesce is None:
        same = tile.declared_valid == idx.declared_valid
        policies["coalesce"] = "elem" if same or 1 not in idx.declared_valid else "row"
    if name == "mscatter" and op.scatter_conflict is None:
        policies["conflict"] = None
    table = tensor_of(op.mem, asked.numbers, tile, follows=False)
    operands = (table, tile, idx) if name == "mscatter" else (tile, table, idx)
    call = read_call(name, operands, policies)
    known = table.is_known and tile.is_known and idx.is_known
    told = judge_call(call, asked.machine) if known else legality(call, asked.machine)
    return [asked.finding(one, {"tile": tile_name, "table": "mem"}) for one in told]


def _scattered(asked: Asked) -> list[Finding]:
    return _access(asked, "mscatter", "src")


def _gathered(asked: Asked) -> list[Finding]:
    return [] if asked.op.scratch is not None or is_view(asked.op.idx.type) else _access(asked, "mgather", "dst")


def _transferred(asked: Asked, tile_name: str, tensor_name: str, *, adds: bool) -> list[Finding]:
    tile = asked.tile(getattr(asked.op, tile_name))
    view = getattr(asked.op, tensor_name)
    tensor = tensor_of(view, asked.numbers, tile, follows=True)
    if not (tile.is_known and tensor.is_known):
        tile, tensor = _filled(asked, tile, view, tensor)
    name = asked.op.name.removeprefix("pto.")
    told = transfers.judge(transfers.Transfer(name, tile, tensor, adds, asked.machine.name), asked.machine.name)
    return [asked.finding(one, {"tile": tile_name, "table": tensor_name}) for one in told]


def _filled(asked: Asked, tile: Tile, view: SSAValue, tensor: GlobalTensor) -> tuple[Tile, GlobalTensor]:
    """Extents that only a run knows are taken to be right: those of the other side."""
    static = tile.declared_valid if not tile.is_known else tile.valid
    dims = lie_of(view, asked.numbers).dims
    plain = dims if tensor.layout != "nz" and all(one == 1 for one in dims[:-2]) else ()
    wanted = ((1, *plain)[-2], plain[-1]) if plain else (DYNAMIC, DYNAMIC)
    padded = (tile.rows, tile.cols)
    valid = tuple(
        mine if mine != DYNAMIC else min(there, most) if there != DYNAMIC else most
        for mine, there, most in zip(static, wanted, padded, strict=True)
    )
    if not tile.is_known:
        record = (tile.dtype, tile.rows, tile.cols, (valid[0], valid[1]), tile.layout, tile.loc, tile.fractal)
        tile = Tile(*record)
    if not tensor.is_known:
        tensor = tensor_of(view, asked.numbers, tile, follows=True, extents=(valid[0], valid[1]))
    return tile, tensor


def _loaded(asked: Asked) -> list[Finding]:
    return _transferred(asked, "dst", "src", adds=False)


def _stored(asked: Asked) -> list[Finding]:
    return _transferred(asked, "src", "dst", adds=asked.op.atomic == "add")


def _computed(asked: Asked) -> list[Finding]:
    op, row = asked.op, asked.op.row
    dst, sources = asked.tile(op.operand_called("dst")), [asked.tile(one) for one in op.sources]
    scalars = {name: _scalar(asked, value, dst) for name, value in op.scalars.items()}
    told = vector.judge_vector(row, dst, sources, row.asked(**scalars, **op.options), asked.machine.name)
    return [asked.finding(one, {}) for one in told]


def _scalar(asked: Asked, value: SSAValue, dst: Tile) -> Number:
    """What constants say; 0, which every type holds, where a run says it, or takes the bits without their sign."""
    found = asked.numbers.of(value)
    return 0 if found is None or (dst.dtype.kind == "uint" and isinstance(found, int) and found < 0) else found


def _collected(asked: Asked) -> list[Finding]:
    op = asked.op
    first, _, members = op.given_operands
    places = {name: value for name in ("ping", "pong", "acc") if (value := op.operand_called(name)) is not None}
    roots = {root_of(value): asked.tile(value) for value in places.values()}
    # Tiles of one type are one object until each gets memory of its own.
    apart = {root: tile.copy() for root, tile in roots.items()}
    tiles = {name: apart[root_of(value)] for name, value in places.items()}
    ping = tiles.pop("ping")
    local = tensor_of(first[0], asked.numbers, ping, follows=True)
    slices = [tensor_of(one, asked.numbers, ping, follows=True) for one in members]
    if any(is_group(one.type) for one in members):
        slices = slices[:1] * ranks_of(op, local, slices[0])
    options = {"root": op.root_rank or 0, "reduce": word(op.properties.get("reduceOp"), "sum")}
    call = collective(op.collective, local, slices, ping, target=asked.machine.name, **tiles, **options)
    return [asked.finding(one, {"local": op.FIRST[0]}) for one in judge_collective(call)]


def ranks_of(op: ops.CommOp, local: GlobalTensor, slice_: GlobalTensor) -> int:
    """How many ranks a group has of which only the tensors' type is known: as many as the local tensor has rows for."""
    if not KINDS[op.collective].splits or not (local.is_known and slice_.is_known) or not slice_.extent(3):
        return max((op.root_rank or 0) + 1, 1)
    return max(local.extent(3) // slice_.extent(3), 1)


JUDGES: dict[type[Operation], Callable[[Asked], list[Finding]]] = {
    ops.MScatterOp: _scattered,
    ops.MGatherOp: _gathered,
    ops.TLoadOp: _loaded,
    ops.TStoreOp: _stored,
    **dict.fromkeys(ops.VECTOR_OPS.values(), _computed),
    **dict.fromkeys(ops.COMM_OPS, _collected),
}
"""What the targets have rules for."""
