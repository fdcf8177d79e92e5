"""What a function of a module wants from outside: its arguments, and the arrays and numbers that are given for them.

A text without a function is one itself: what it does not define comes from outside, and so does a tile that it reads
before anything has written it. Tiles that it writes may be named too: then they are read back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects import builtin
from xdsl.dialects.func import CallOp, FuncOp

from ptokit.access.plan import Array
from ptokit.dtypes import ELEMENT_TYPES, describe, element_type
from ptokit.errors import PtoTypeError, PtoValueError, a_kind, listed, nearest
from ptokit.findings import Finding, Severity, Where
from ptokit.ir.arithmetic import Number, typed, width_of
from ptokit.ir.dialect.attributes import word
from ptokit.ir.dialect.ops import (
    AllocTileOp,
    ArgOp,
    DcciOp,
    DpsOp,
    DsbOp,
    MScatterOp,
    SetValidShapeOp,
    StoreScalarOp,
    TAssignOp,
)
from ptokit.ir.dialect.types import (
    DocType,
    GroupType,
    PartitionTensorViewType,
    PtrType,
    TensorViewType,
    TileBufType,
    TileType,
    dtype_of,
)
from ptokit.ir.errors import RunError
from ptokit.tensors import DYNAMIC, GlobalTensor

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation, Region, SSAValue

    from ptokit.ir.module import Module

VIEWS = (TensorViewType, PartitionTensorViewType, DocType, builtin.MemRefType)
ENTRY = "pto.entry"
STORES = frozenset({MScatterOp.name, StoreScalarOp.name})
FLUSHES = frozenset({DcciOp.name, DsbOp.name})
MOST_DIMS = 5


@dataclass(frozen=True)
class Argument:
    """One value from outside."""

    name: str
    value: SSAValue
    kind: str  # pointer, view, tile, group or scalar
    dtype: str
    dims: tuple[int, ...] | None = None
    """The shape that is wanted, -1 where any extent will do; None where any shape will do."""
    is_output: bool = False
    """A tile that the text writes first: it need not be given."""

    def __str__(self) -> str:
        if self.kind == "scalar":
            return f"{self.name}: {self.dtype}"
        shape = "any shape" if self.dims is None else " x ".join("?" if d == DYNAMIC else str(d) for d in self.dims)
        return f"{self.name}: {self.dtype}, {shape}{' for each rank' * (self.kind == 'group')}"

    def fits(self, shape: tuple[int, ...]) -> bool:
        """An array of that shape will do."""
        if self.dims is None:
            return len(shape) <= MOST_DIMS
        return len(shape) == len(self.dims) and all(
            want in (DYNAMIC, has) for want, has in zip(self.dims, shape, strict=True)
        )


@dataclass(frozen=True, eq=False)
class Entry:
    """The function that is executed, or the text itself."""

    name: str
    region: Region
    arguments: tuple[Argument, ...]
    op: Operation
    is_func: bool = True

    @property
    def is_part(self) -> bool:
        """A text without a function that stores and does not flush: it stands for a part of a kernel."""
        if self.is_func:
            return False
        has = {op.name for op in self.region.walk()}
        return bool(has & STORES) and not has & FLUSHES

    @property
    def needed(self) -> tuple[Argument, ...]:
        """Those that must be given."""
        return tuple(one for one in self.arguments if not one.is_output)


# Which function


def entry_of(module: Module, func: str | None = None) -> Entry:
    """The function of that name; without one the only one that may be meant, or the text itself.

    >>> from ptokit.ir import parse
    >>> mod = parse("func.func @f(%x: !pto.ptr<f32>, %n: index) { return }")
    >>> [str(one) for one in entry_of(mod).arguments]
    ['x: float32, any shape', 'n: index']
    """
    if func is not None and not isinstance(func, str):
        raise PtoTypeError(f"func={func!r} is {a_kind(func)}; the name of a function is wanted")
    funcs = module.funcs
    if func is None and not funcs:
        return _implicit(module)
    return _of_func(module, _chosen(module, funcs, func))


def _chosen(module: Module, funcs: Mapping[str, FuncOp], func: str | None) -> FuncOp:
    if func is not None:
        found = funcs.get(func.removeprefix("@"))
        if found is None:
            has = f"it has {listed(funcs)}" if funcs else "it has none"
            raise PtoValueError(f"{module.file} has no function {func!r} with a body.{nearest(func, funcs)} {has}")
        return found
    called = {str(word(op.callee)) for op in module.walk() if isinstance(op, CallOp)}
    marked = [one for one in funcs.values() if ENTRY in one.attributes]
    candidates = marked or [one for name, one in funcs.items() if name not in called]
    if len(candidates) != 1:
        names = listed(one.sym_name.data for one in candidates or funcs.values())
        raise PtoValueError(f"{module.file} has several functions that could be meant: {names}; say which (func=...)")
    return candidates[0]


def _of_func(module: Module, op: FuncOp) -> Entry:
    name = op.sym_name.data
    kind = word(op.attributes.get("pto.kernel_kind"))
    if kind == "cube":
        why = f"@{name} is a cube kernel; vector cores are simulated."
        raise RunError([module.finding("PTO-P014", Severity.ERROR, why, op)])
    arguments = tuple(
        _argument(module, value, module.name(value) or f"arg{number}", op)
        for number, value in enumerate(op.body.blocks[0].args)
    )
    return Entry(name, op.body, arguments, op)


def is_empty(module: Module) -> bool:
    """A text without an op to execute; functions without a body are none."""
    return not any(not isinstance(op, FuncOp) or op.body.blocks for op in module.walk())


def _implicit(module: Module) -> Entry:
    if is_empty(module):
        why = f"{module.file} has nothing to execute: neither an op nor a function with a body."
        at = {"line_text": "", "length": 1}
        raise RunError([Finding("PTO-P014", Severity.ERROR, None, why, at, Where(module.file, 1, 1))])
    arguments = [
        _of_text(_argument(module, op.value, module.name(op.value) or f"arg{number}", op))
        for number, op in enumerate(op for op in module.walk() if isinstance(op, ArgOp))
    ]
    known = {one.name for one in arguments}
    arguments += [one for one in _tiles(module) if one.name and one.name not in known]
    return Entry("", module.op.body, tuple(arguments), module.op, is_func=False)


def _tiles(module: Module) -> Iterator[Argument]:
    """The tiles that a text without a function allocates: read first they are wanted, written first they may be."""
    for op in module.op.body.block.ops:
        if isinstance(op, AllocTileOp) and isinstance(op.tile.type, TileBufType | TileType):
            yield _of_text(_argument(module, op.tile, module.name(op.tile), op))


def _of_text(one: Argument) -> Argument:
    """An argument of a text without a function: a tile that is written first need not be given."""
    if one.kind != "tile":
        return one
    first = _first_use(one.value)
    return replace(one, is_output=first is None or _writes(*first))


def _first_use(tile: SSAValue) -> tuple[Operation, SSAValue] | None:
    """The first op that takes the tile for what it holds, be it under another name after `tassign`."""
    block = tile.owner.parent if not hasattr(tile.owner, "ops") else None
    if block is None:
        return None
    same = {tile}
    for op in block.walk():
        taken = next((value for value in op.operands if value in same), None)
        if isinstance(op, TAssignOp) and taken is not None:
            same.add(op.placed)
        elif taken is not None and not isinstance(op, SetValidShapeOp):
            return op, next((value for value in reversed(op.operands) if value in same), taken)
    return None


def _writes(op: Operation, tile: SSAValue) -> bool:
    if not isinstance(op, DpsOp):
        return False
    reads = any(value is tile for name in op.INS for value in op.given((name,)))
    return not reads and any(value is tile for value in op.given(op.OUTS))


# What each of them wants


def _argument(module: Module, value: SSAValue, name: str, op: Operation) -> Argument:
    of = value.type
    if isinstance(of, PtrType):
        if of.space != "gm":
            raise _refused(module, op, name, f"points into {of.space}; only global memory comes from outside")
        return Argument(name, value, "pointer", _element(module, op, name, of.dtype))
    if isinstance(of, TileBufType):
        return Argument(name, value, "tile", _element(module, op, name, of.dtype), of.valid)
    if isinstance(of, builtin.MemRefType):
        dims = tuple(of.get_shape())
        return Argument(name, value, "view", _element(module, op, name, dtype_of(of.element_type)), dims)
    if isinstance(of, VIEWS):
        return _shaped(module, value, name, op)
    dtype = dtype_of(of)
    if dtype is None:
        raise _refused(module, op, name, f"has the type {of}, for which nothing can be given")
    return Argument(name, value, "scalar", dtype)


def _shaped(module: Module, value: SSAValue, name: str, op: Operation) -> Argument:
    """A view, or a tile or a group of the documents: with extents, or a placeholder."""
    of: Any = value.type
    if of.dims is None or of.dtype is None:
        message = f"%{name} is {of}: a placeholder has no extents and no element type, and cannot be run."
        fix = "Write its extents and its element type, as in 8x32xf32."
        raise RunError([module.finding("PTO-P007", Severity.ERROR, message, op, name, fix=fix)])
    kind = "tile" if isinstance(of, TileType) else "group" if isinstance(of, GroupType) else "view"
    if kind == "tile" and len(of.dims) != 2:
        raise _refused(module, op, name, f"is {of}; a tile has two extents")
    return Argument(name, value, kind, _element(module, op, name, of.dtype), tuple(of.dims))


def _element(module: Module, op: Operation, name: str, dtype: str | None) -> str:
    if dtype not in ELEMENT_TYPES:
        known = listed(ELEMENT_TYPES)
        raise _refused(module, op, name, f"holds {dtype}, which no target has; known: {known}")
    assert dtype is not None
    return dtype


def _refused(module: Module, op: Operation, name: str, why: str) -> RunError:
    return RunError([_cannot(module, op, f"%{name} {why}.", name)])


def _cannot(module: Module, op: Operation, message: str, token: str | None = None) -> Finding:
    return module.finding("PTO-P014", Severity.ERROR, message, op, token)


# What is given for them


@dataclass(frozen=True)
class Given:
    """An argument with what was given for it."""

    argument: Argument
    value: Any

    @property
    def tensors(self) -> dict[str, GlobalTensor]:
        """The argument in global memory, by name: flat behind a pointer, else with its extents; a group has several."""
        name, kind = self.argument.name, self.argument.kind
        if kind == "group":
            return {f"{name}{rank}": self._tensor(one) for rank, one in enumerate(self.value)}
        return {name: self._tensor(self.value)} if kind in ("pointer", "view") else {}

    def _tensor(self, value: Any) -> GlobalTensor:
        if isinstance(value, GlobalTensor):
            return value
        extents = (value.size,) if self.argument.kind == "pointer" else value.shape
        return GlobalTensor(value, self.argument.dtype, (1,) * (MOST_DIMS - len(extents)) + tuple(extents))


def given_for(entry: Entry, arrays: Mapping[str, Any]) -> list[Given]:
    """Each argument with its array or number; one that is missing, surplus or of another form is told."""
    if not isinstance(arrays, Mapping):
        raise PtoTypeError(f"the arguments are {a_kind(arrays)}; a dict of names is wanted, {{{signature(entry)}}}")
    known = {one.name: one for one in entry.arguments}
    named: dict[str, Any] = {}
    for name, value in arrays.items():
        plain = str(name).removeprefix("%")
        if plain not in known:
            raise PtoValueError(f"there is no argument {name!r}.{nearest(plain, known)} {_wanted(entry)}")
        named[plain] = value
    missing = [one for one in entry.needed if one.name not in named]
    if missing:
        names = listed(one.name for one in missing)
        raise PtoValueError(f"{names} {'is' if len(missing) == 1 else 'are'} missing. {_wanted(entry)}")
    return [Given(one, _checked(one, named[one.name])) for one in entry.arguments if one.name in named]


def signature(entry: Entry) -> str:
    """What is wanted, in one line."""
    return "; ".join(str(one) + (" (may be left out)" if one.is_output else "") for one in entry.arguments)


def _wanted(entry: Entry) -> str:
    what = f"@{entry.name}" if entry.is_func else "This text"
    return f"{what} takes {signature(entry)}" if entry.arguments else f"{what} takes no arguments"


def _checked(argument: Argument, value: Any) -> Any:
    if argument.kind == "scalar":
        return _scalar(argument, value)
    if argument.kind == "group":
        return _members(argument, value)
    if isinstance(value, GlobalTensor) and argument.kind != "tile":
        if value.dtype.name != argument.dtype:
            raise PtoTypeError(f"{argument.name} is a tensor of {value.dtype}; {argument.dtype} is wanted")
        return value
    if not isinstance(value, np.ndarray):
        raise PtoTypeError(f"{argument.name} is {a_kind(value)}; an ndarray is wanted ({argument})")
    if value.dtype.type is not element_type(argument.dtype).numpy.type or not value.dtype.isnative:
        raise PtoTypeError(f"{argument.name} is an array of {describe(value.dtype)}; wanted: {argument}")
    if not argument.fits(value.shape):
        raise PtoValueError(f"{argument.name} is an array of shape {value.shape}; wanted: {argument}")
    return value


def _members(argument: Argument, value: Any) -> list[Any]:
    """The tensors of a group, one per rank: a list, or an array with the ranks in front."""
    if not isinstance(value, list | tuple) and not (isinstance(value, np.ndarray) and value.ndim):
        raise PtoTypeError(f"{argument.name} is {a_kind(value)}; a list of one array per rank is wanted ({argument})")
    one = replace(argument, kind="view")
    return [_checked(replace(one, name=f"{argument.name}[{rank}]"), each) for rank, each in enumerate(value)]


def _scalar(argument: Argument, value: Any) -> Number:
    number = value.item() if isinstance(value, np.generic | np.ndarray) and np.ndim(value) == 0 else value
    is_whole = isinstance(number, int)
    of: Attribute = argument.value.type
    wants_whole = isinstance(of, builtin.IntegerType | builtin.IndexType)
    if not isinstance(number, int | float) or (wants_whole and not is_whole):
        raise PtoTypeError(f"{argument.name} is {value!r}; a {'whole ' * wants_whole}number is wanted ({argument})")
    if wants_whole:
        bits = width_of(of)
        if not -(1 << (bits - 1)) <= number < 1 << bits:
            raise PtoValueError(f"{argument.name} is {number}, which {argument.dtype} does not hold")
    return typed(number, of)


def copy_back(given: Given, values: Array) -> None:
    """A tile's valid region as it was at the end, into the array that was given for it."""
    array = given.value
    if not array.flags.writeable:
        raise PtoValueError(f"{given.argument.name} is read-only, and the text writes it: pass a writable array")
    array[...] = values
