"""What can be said of an op without a machine: kinds of operands, attributes, placeholders, static extents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from xdsl.dialects import builtin
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ptokit.errors import listed, nearest
from ptokit.findings import Finding, Severity
from ptokit.ir.dialect import ops
from ptokit.ir.dialect.attributes import word
from ptokit.ir.dialect.types import PtrType, TileBufType, UnknownType, dtype_of
from ptokit.ir.operands import Numbers, dtype_in, is_group, is_open, is_tile, is_view, lie_of
from ptokit.ir.soundness import one_sentence
from ptokit.tensors import DYNAMIC

if TYPE_CHECKING:
    from ptokit.ir.module import Module

UNKNOWN_ATTRIBUTE = "PTO-P010"
STRUCTURE = "PTO-P012"
PLACEHOLDER = "PTO-P007"
OUTSIDE = "PTO-P013"
MOVE_IT = "Move the part, or make it smaller."

Told = tuple[Operation, Finding]
Sentence = tuple[Any, ...]
"""The message, and where it is known the token, the id and the fix."""


@dataclass(eq=False)
class Structure:
    """Everything that can be said without a machine: kinds of operands, attributes, placeholders, static extents."""

    module: Module
    target: str
    numbers: Numbers = field(default_factory=Numbers)
    open_told: set[SSAValue] = field(default_factory=set)

    def findings(self) -> Iterator[Told]:
        """Op by op."""
        yield from self._attributes(self.module.op)
        for op in self.module.walk():
            yield from self._attributes(op)
            if isinstance(op, ops.SkippedOp):
                continue
            is_left_open = False
            for told in self._placeholders(op):
                is_left_open = True
                yield told
            if is_left_open or any(is_open(value.type) for value in (*op.operands, *op.results)):
                continue
            sentences: list[Sentence] = [*self._kinds(op)] or [*self._well_formed(op)]
            for sentence in sentences or STRUCTURAL.get(type(op), _nothing)(self, op):
                yield op, self._told(op, *sentence)

    def _told(
        self, op: Operation, message: str, token: str | None = None, id_: str = STRUCTURE, fix: str = ""
    ) -> Finding:
        return self.module.finding(id_, Severity.ERROR, message, op, token, target=self.target, fix=fix)

    def _attributes(self, op: Operation) -> Iterator[Told]:
        for name, known in unknown_attributes(op):
            severity = Severity.WARNING if self.target == "ptoas" else Severity.ERROR
            near = nearest(name, known)
            silently = "; the assembler lets it pass in silence" if self.target == "ptoas" else ""
            message = f"{op.name} has no attribute {name!r}{silently}.{near}"
            fix = f"It takes {listed(known)}." if known else "Leave it out: it takes none."
            yield op, self.module.finding(UNKNOWN_ATTRIBUTE, severity, message, op, name, target=self.target, fix=fix)

    def _placeholders(self, op: Operation) -> Iterator[Told]:
        for value in (*op.operands, *op.results):
            if value in self.open_told or not is_open(value.type) or isinstance(value.type, UnknownType):
                continue
            if isinstance(op, ops.ArgOp) and value.uses:
                continue  # told where it is used
            self.open_told.add(value)
            name = self.module.name(value)
            message = (
                f"%{name} is {value.type}: a placeholder leaves extents or element type open, and cannot be verified."
            )
            fix = "Write its extents and its element type, as in 16x64xf32."
            yield op, self._told(op, message, f"%{name}", PLACEHOLDER, fix)

    def _kinds(self, op: Operation) -> Iterator[Sentence]:
        for name, kind in KINDS.get(type(op), {}).items():
            found = getattr(op, name, None)
            values = [] if found is None else [found] if isinstance(found, SSAValue) else list(found)
            for value in values:
                if not isinstance(value.type, UnknownType) and not KIND[kind](value.type):
                    yield f"{op.name}: {name} is {_short(value.type)}; {kind} is wanted.", name
        if isinstance(op, ops.VectorFamilyOp):
            wanted = dict.fromkeys((*op.sources, *op.given(op.OUTS)), TILE) | dict.fromkeys(op.scalars.values(), NUMBER)
            for value, kind in wanted.items():
                if not KIND[kind](value.type):
                    name = self.module.name(value)
                    yield f"{op.name}: %{name} is {_short(value.type)}; {kind} is wanted.", f"%{name}"

    def _well_formed(self, op: Operation) -> Iterator[Sentence]:
        """What the ops of the host's dialects ask for."""
        if isinstance(op, ops.PtoOp):
            return
        try:
            op.verify(verify_nested_ops=False)
        except VerifyException as wrong:
            yield (f"{op.name}: {one_sentence(str(wrong))}",)
        except Exception:  # an op of xDSL's that stumbles over what it verifies
            yield (f"{op.name} is not well formed.",)


def _short(kind: object) -> str:
    text = str(kind)
    return text if len(text) <= 60 else f"{text[:57]}..."


MODULE_ATTRIBUTES = ("pto.target_arch",)
FUNC_ATTRIBUTES = ("pto.kernel_kind", "pto.entry")
OF_OTHERS: dict[type[Operation], tuple[str, ...]] = {builtin.ModuleOp: MODULE_ATTRIBUTES, FuncOp: FUNC_ATTRIBUTES}


def unknown_attributes(op: Operation) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The attributes that an op does not have, each with those that it has."""
    if isinstance(op, ops.SkippedOp):
        return
    if isinstance(op, ops.PtoOp):
        known = tuple(name for name in type(op).get_irdl_definition().properties if name != ops.SEGMENTS)
        yield from ((name, known) for name in op.attributes if "." not in name)
    elif type(op) in OF_OTHERS:
        known = OF_OTHERS[type(op)]
        for name in op.attributes:
            # Other tools leave attributes of their own; one letter off is a slip.
            if name.startswith("pto.") and name not in known and nearest(name, known):
                yield name, known


KIND: dict[str, Callable[[Any], bool]] = {
    "a tile": is_tile,
    "a view on global memory": is_view,
    "a tile or a view": lambda kind: is_tile(kind) or is_view(kind),
    "a view on global memory, or a group of them": lambda kind: is_view(kind) or is_group(kind),
    "a pointer": lambda kind: isinstance(kind, PtrType),
    "a number": lambda kind: dtype_of(kind) is not None,
}
"""What an operand has to be, by the words of the sentence."""

TILE, VIEW, POINTER, NUMBER = "a tile", "a view on global memory", "a pointer", "a number"
MEMBERS = "a view on global memory, or a group of them"
COLLECTIVE = {"src": VIEW, "dst": VIEW, "acc": TILE, "ping": TILE, "pong": TILE, "group": MEMBERS}
KINDS: dict[type[Operation], Mapping[str, str]] = {
    ops.MakeTensorViewOp: {"ptr": POINTER, "view": VIEW},
    ops.PartitionViewOp: {"view": VIEW, "partition": VIEW},
    ops.AllocTileOp: {"tile": TILE},
    ops.TAssignOp: {"tile": TILE, "placed": TILE},
    ops.SetValidShapeOp: {"tile": TILE},
    ops.TLoadOp: {"src": VIEW, "dst": TILE},
    ops.TStoreOp: {"src": TILE, "dst": VIEW, "fp": TILE, "quant": NUMBER},
    ops.MScatterOp: {"src": TILE, "idx": TILE, "mem": VIEW},
    ops.MGatherOp: {"mem": VIEW, "idx": "a tile or a view", "dst": TILE, "scratch": TILE},
    ops.TScatterOp: {"src": TILE, "idx": TILE, "dst": TILE},
    ops.AddPtrOp: {"ptr": POINTER, "moved": POINTER},
    ops.LoadScalarOp: {"ptr": POINTER, "value": NUMBER},
    ops.StoreScalarOp: {"ptr": POINTER, "value": NUMBER},
    **dict.fromkeys(ops.COMM_OPS, COLLECTIVE),
}
"""What each operand and result of an op has to be; the vector family has its own table."""


def _nothing(structure: Structure, op: Any) -> Iterable[Sentence]:
    return ()


def _tile_allocated(structure: Structure, op: ops.AllocTileOp) -> Iterator[Sentence]:
    """An extent is given exactly where the type leaves it open."""
    kind = op.tile.type
    if not isinstance(kind, TileBufType):
        return
    for name, declared, padded in (("valid_row", kind.v_row, kind.rows), ("valid_col", kind.v_col, kind.cols)):
        given = op.operand_called(name)
        if given is not None and declared != DYNAMIC:
            yield (
                f"pto.alloc_tile: {name} is given, and the type says {declared} already.",
                name,
                STRUCTURE,
                "Write ? in the type.",
            )
        number = structure.numbers.whole(given)
        if number is not None and not 0 <= number <= padded:
            yield f"pto.alloc_tile: {name} is {number}; the tile has {padded}.", name
    missing = [
        n
        for n, d in (("valid_row", kind.v_row), ("valid_col", kind.v_col))
        if d == DYNAMIC and op.operand_called(n) is None
    ]
    sets = any(isinstance(use.operation, ops.SetValidShapeOp) for use in op.tile.uses)
    if missing and not sets:
        yield (
            f"pto.alloc_tile: the type leaves {listed(missing)} open, and nothing gives a value.",
            None,
            STRUCTURE,
            f"Write {missing[0]} = %n before the colon.",
        )


def _valid_set(structure: Structure, op: ops.SetValidShapeOp) -> Iterator[Sentence]:
    """The new extents fit the tile."""
    kind = op.tile.type
    if not isinstance(kind, TileBufType):
        return
    for name, padded in (("row", kind.rows), ("col", kind.cols)):
        number = structure.numbers.whole(getattr(op, name))
        if number is not None and not 0 <= number <= padded:
            yield f"pto.set_validshape: {number} valid {name}s do not fit a tile of {kind.rows} x {kind.cols}.", name


def _viewed(structure: Structure, op: ops.MakeTensorViewOp) -> Iterator[Sentence]:
    """Static extents are what the operands say; the elements are the pointer's."""
    pointer, view = op.ptr.type, op.view.type
    if isinstance(pointer, PtrType):
        if pointer.dtype != dtype_in(view):
            yield f"pto.make_tensor_view: the pointer is to {pointer.dtype} and the view holds {dtype_in(view)}.", "ptr"
        if pointer.space != "gm":
            yield f"pto.make_tensor_view: the pointer is into {pointer.space}; a view is on gm.", "ptr"
    yield from _extents_agree(structure, op.name, getattr(view, "dims", ()), op.shape)


def _extents_agree(
    structure: Structure, name: str, dims: Sequence[int], given: Sequence[SSAValue]
) -> Iterator[Sentence]:
    if len(dims) != len(given):
        yield (f"{name}: {len(given)} extents are given for {len(dims)} dimensions.",)
        return
    for at, (declared, value) in enumerate(zip(dims, given, strict=True)):
        number = structure.numbers.whole(value)
        if number is not None and declared not in (DYNAMIC, number):
            token = f"%{structure.module.name(value)}"
            yield f"{name}: dimension {at} is {number}, and the type says {declared}.", token


def _parted(structure: Structure, op: ops.PartitionViewOp) -> Iterator[Sentence]:
    """A part lies within its view, as far as constants say."""
    dims = lie_of(op.view, structure.numbers).dims
    if not len(dims) == len(op.offsets) == len(op.sizes):
        yield (f"{op.name}: {len(op.offsets)} offsets and {len(op.sizes)} sizes for {len(dims)} dimensions.",)
        return
    if dtype_in(op.view.type) != dtype_in(op.partition.type):
        yield (f"{op.name}: the view holds {dtype_in(op.view.type)} and the part {dtype_in(op.partition.type)}.",)
    yield from _extents_agree(structure, op.name, getattr(op.partition.type, "dims", ()), op.sizes)
    declared = getattr(op.partition.type, "dims", ())
    for at, (extent, offset, size) in enumerate(zip(dims, op.offsets, op.sizes, strict=True)):
        first, count = structure.numbers.whole(offset), structure.numbers.extent(size)
        if count == DYNAMIC and len(declared) == len(dims):
            count = declared[at]
        if first is None or DYNAMIC in (extent, count):
            first, count = (first if first is not None and first < 0 else 0), max(count, 0)
        if first < 0 or (extent != DYNAMIC and first + count > extent):
            reach = f"goes from {first} to {first + count}"
            message = f"{op.name}: dimension {at} of the part {reach}; the view has 0 to {extent}."
            token = f"%{structure.module.name(offset if first else size)}"
            yield message, token, OUTSIDE, MOVE_IT


def _flagged(structure: Structure, op: Any) -> Iterator[Sentence]:
    """A flag joins two pipes."""
    if word(op.src_pipe) == word(op.dst_pipe):
        yield (
            f"{op.name}: both ends are PIPE_{word(op.src_pipe)}; a pipe is in order with itself, a flag joins two.",
            "dst_pipe",
        )
    for name in ("src_pipe", "dst_pipe"):
        if word(getattr(op, name)) == "ALL":
            yield (
                f"{op.name}: PIPE_ALL is no end of a flag.",
                name,
                STRUCTURE,
                "Name the pipe, or use pto.barrier <PIPE_ALL>.",
            )


def _scalar_moved(structure: Structure, op: ops.LoadScalarOp | ops.StoreScalarOp) -> Iterator[Sentence]:
    """The value is what the pointer points to."""
    of, held = dtype_in(op.ptr.type), dtype_of(op.value.type)
    if of is not None and held is not None and of.removeprefix("u") != held.removeprefix("u"):
        yield f"{op.name}: the pointer is to {of} and the value is {held}.", "value"


def _advanced(structure: Structure, op: ops.AddPtrOp) -> Iterator[Sentence]:
    if op.ptr.type != op.moved.type:
        yield (f"{op.name}: the pointer is {op.ptr.type} before and {op.moved.type} after.",)


def _collective(structure: Structure, op: ops.CommOp) -> Iterator[Sentence]:
    """The root is one of the group; everybody has the same type; the elements agree."""
    first, tiles, members = op.given_operands
    if not members:
        yield (f"{op.name}: the group is empty.",)
        return
    root = op.root_rank
    is_counted = not any(is_group(one.type) for one in members)
    if root is not None and is_counted and not 0 <= root < len(members):
        yield f"{op.name}: the root is {root}; the group has ranks 0 to {len(members) - 1}.", "root"
    if len({str(one.type) for one in members}) > 1:
        yield f"{op.name}: the members of the group have different types.", "group"
    held = {dtype_in(one.type) for one in (*first, *tiles, *members)}
    if len(held) > 1:
        yield (f"{op.name}: the operands hold {listed(sorted(map(str, held)))}; the elements must agree.",)
    if len({str(one.type) for one in tiles}) > 1:
        yield f"{op.name}: the two tiles have different types.", "pong"


STRUCTURAL: dict[type[Operation], Callable[[Structure, Any], Iterable[Sentence]]] = {
    ops.AllocTileOp: _tile_allocated,
    ops.SetValidShapeOp: _valid_set,
    ops.MakeTensorViewOp: _viewed,
    ops.PartitionViewOp: _parted,
    ops.SetFlagOp: _flagged,
    ops.WaitFlagOp: _flagged,
    ops.SetFlagDynOp: _flagged,
    ops.WaitFlagDynOp: _flagged,
    ops.LoadScalarOp: _scalar_moved,
    ops.StoreScalarOp: _scalar_moved,
    ops.AddPtrOp: _advanced,
    **dict.fromkeys(ops.COMM_OPS, _collective),
}
"""What an op asks for beside the kinds of its operands."""
