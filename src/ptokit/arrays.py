"""Scatter and gather on host arrays: in place, deterministic, fast.

The compiled module does the ordinary call at once; what it does not understand comes here, is looked at, and goes back
to it as addresses and strides. Where it is missing, the moves and folds of `ptokit.access` do the work.
"""

from __future__ import annotations

import logging
import math
import operator
import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from ptokit.access.cells import Groups
from ptokit.access.commit import Folding, accumulate
from ptokit.access.sums import quiet
from ptokit.dtypes import ELEMENT_TYPES, ElementType, describe, element_type
from ptokit.errors import PtoIndexError, PtoTypeError, PtoValueError, well_called
from ptokit.foreign import host_array, read_indices
from ptokit.policies import (
    ArrayGatherOOB,
    ArrayScatterOOB,
    Coalesce,
    GatherOOB,
    ScatterAtomicOp,
    ScatterOOB,
    read,
    read_array_oob,
    word,
)

if TYPE_CHECKING:
    from ptokit import _native
else:
    try:
        _native = import_module("ptokit._native")
    except ImportError:  # no compiler when it was installed, or a platform without one
        _native = None

Array = npt.NDArray[Any]
Given = ParamSpec("Given")
Back = TypeVar("Back")
PolicyName = str | Enum

GATHER = 0
OP_CODES = {op: 1 + op.value for op in ScatterAtomicOp}
"""How the compiled module counts what is done: 0 is a gather."""

TYPE_CODES = {name: code for code, name in enumerate(ELEMENT_TYPES)}

MOVED_ONLY = frozenset({"float8_e4m3", "float8_e5m2", "hifloat8"})
"""Types without arithmetic: their sums would have to be rounded, and no target defines how."""

MOST_SLOTS = 1 << 44
"""What the kernels can count; no address space of today holds more."""

MOST_THREADS = 1 << 16
"""What the compiled module is asked for at the most; it takes fewer."""

MOST_WORK: Any = 100_000
"""How hard to look whether two interleaved views really share an element."""

log = logging.getLogger("ptokit")


def fast(*, is_gather: bool) -> Callable[[Callable[Given, Back]], Callable[Given, Back]]:
    """The compiled front door of a function, or the function itself where there is none."""
    return lambda function: _native.entry(function, is_gather) if _native else function


@fast(is_gather=False)
@well_called
def scatter(
    table: Any,
    src: Any,
    idx: Any,
    *,
    coalesce: PolicyName = "row",
    atomic: PolicyName = "none",
    oob: PolicyName = "raise",
) -> Any:
    """`table[idx] = src` in place, or `+=`, max, min: the same bits on every run, any thread count, any CPU.

    Row: `idx` of any shape, `src` of shape `idx.shape + table.shape[1:]`. Elem: `idx` and `src` of one shape, linear
    into the C-contiguous table. Duplicates: the last in row-major order wins; float additions happen in that order,
    each rounded to the type. An index past the table raises IndexError before anything is written, or is dropped
    (skip), moved to the last slot (clamp) or taken modulo the slots (wrap). A negative index is a large unsigned one,
    never "from the end". Returns `table`.

    >>> table = np.zeros((4, 2), np.float32)
    >>> scatter(table, np.ones((3, 2), np.float32), [1, 3, 1], atomic="add")[:, 0].tolist()
    [0.0, 2.0, 0.0, 1.0]
    """
    by_row = read(Coalesce, coalesce, "coalesce") is Coalesce.Row
    op = read(ScatterAtomicOp, atomic, "atomic")
    policy = read_array_oob(ArrayScatterOOB, ScatterOOB, oob)
    target, source, index = host_array(table, "table"), host_array(src, "src"), read_indices(idx)
    slots = Slots.of(target, by_row)
    _check_writable(target, "table")
    if op is not ScatterAtomicOp.None_ and slots.dtype.name in MOVED_ONLY:
        raise PtoTypeError(f"atomic={word(op)!r} on {slots.dtype}, which is only moved: atomic='none', or a wider type")
    _check_tile(source, "src", index, target, slots)
    if slots.overlap_each_other:
        raise PtoValueError(f"the rows of the table, {_told(target)}, overlap in memory: pass a copy")
    _check_apart(source, "src", target)
    _check_apart(index, "idx", target)
    _run(slots, Lanes.read(source, index.ndim, slots), index, OP_CODES[op], op, policy)
    return table


@fast(is_gather=True)
@well_called
def gather(
    table: Any,
    idx: Any,
    *,
    coalesce: PolicyName = "row",
    oob: PolicyName = "raise",
    out: Any = None,
) -> Any:
    """`table[idx]`, into a new array or into `out`.

    Row: a result of shape `idx.shape + table.shape[1:]`. Elem: of `idx.shape`, linear into the C-contiguous table. An
    index past the table raises IndexError before anything is written, or gives zero, the last slot (clamp) or the slot
    modulo their number (wrap). A negative index is a large unsigned one, never "from the end".

    >>> gather(np.arange(6, dtype=np.int32).reshape(3, 2), [2, 9], oob="zero").tolist()
    [[4, 5], [0, 0]]
    """
    by_row = read(Coalesce, coalesce, "coalesce") is Coalesce.Row
    policy = read_array_oob(ArrayGatherOOB, GatherOOB, oob)
    source, index = host_array(table, "table"), read_indices(idx)
    slots = Slots.of(source, by_row)
    result = _fresh(slots, index) if out is None else host_array(out, "out")
    if out is not None:
        _check_tile(result, "out", index, source, slots)
        _check_writable(result, "out")
        _check_apart(result, "out", source)
        _check_apart(result, "out", index, "idx")
    _run(slots, Lanes.write(result, index.ndim, slots), index, GATHER, None, policy)
    return result if out is None else out


@well_called
def set_num_threads(n: int) -> None:
    """How many threads `scatter` and `gather` may use from now on; the result never depends on it.

    >>> set_num_threads(get_num_threads())
    """
    count = _whole(n)
    if count < 1:
        raise PtoValueError(f"set_num_threads({n}): at least 1 thread is needed")
    if _native:
        _native.set_threads(min(count, MOST_THREADS))


def get_num_threads() -> int:
    """How many threads `scatter` and `gather` may use: at first PTOKIT_NUM_THREADS, else every usable CPU."""
    return _native.threads() if _native else 1


def level() -> str:
    """The instruction set whose kernels are used: PTOKIT_CPU where this CPU has it, else the best; `python` is none."""
    return _native.level() if _native else "python"


def levels() -> list[str]:
    """Every instruction set that this CPU has kernels for, the best last."""
    return _native.levels() if _native else ["python"]


def usable_cpus() -> int:
    """The CPUs that this process may use: its affinity, and the quota of its control group."""
    return _native.usable_cpus() if _native else 1


def _whole(n: object) -> int:
    try:
        if isinstance(n, bool):
            raise TypeError
        return operator.index(n)  # type: ignore[arg-type]
    except TypeError:
        raise PtoTypeError(f"set_num_threads({n!r}): a whole number is wanted") from None


# The operands as the kernels see them


@dataclass(frozen=True)
class Slots:
    """The table: `count` slots of `width` elements, `stride` bytes apart."""

    array: Array
    dtype: ElementType
    count: int
    width: int
    stride: int
    row: tuple[int, ...] | None  # the shape of a row; None: slots are elements

    @classmethod
    def of(cls, table: Array, by_row: bool) -> Slots:
        """Rows along axis 0, or all elements in C order."""
        try:
            dtype = element_type(table.dtype)
        except PtoTypeError as unknown:
            raise PtoTypeError(f"the table cannot be used: {unknown}") from None
        if not table.flags.aligned:
            raise PtoValueError(f"the table, {_told(table)}, is not aligned to its elements: pass an aligned copy")
        if not by_row:
            if not table.flags.c_contiguous:
                raise PtoValueError(
                    f"the table, {_told(table)}, is not C-contiguous, and elem counts its elements linearly: a hidden "
                    "copy would be needed; pass a contiguous one"
                )
            found = cls(table, dtype, table.size, 1, dtype.itemsize, None)
        else:
            if table.ndim == 0:
                raise PtoValueError("the table has no axis 0, so no rows: pass coalesce='elem', or at least one axis")
            row = table.shape[1:]
            width = math.prod(row)
            if table.size and not table[0].flags.c_contiguous:
                raise PtoValueError(
                    f"the rows of the table, {_told(table)}, are not contiguous: a hidden copy would be needed; only "
                    "axis 0 may have gaps"
                )
            packed = width * dtype.itemsize
            found = cls(table, dtype, len(table), width, table.strides[0] if len(table) > 1 else packed, row)
        if found.count > MOST_SLOTS:
            raise PtoValueError(f"the table, {_told(table)}, has more than 2**44 slots: split it")
        return found

    @property
    def nbytes(self) -> int:
        """Bytes of a slot."""
        return self.width * self.dtype.itemsize

    @property
    def overlap_each_other(self) -> bool:
        """A write into one slot would show in another."""
        return self.count > 1 and abs(self.stride) < self.nbytes

    def tile_shape(self, index: Array) -> tuple[int, ...]:
        """The shape of the source or the destination."""
        return (*index.shape, *(self.row or ()))

    def grid(self) -> Array:
        """Row s is slot s, as bits."""
        bits = self.array.view(self.dtype.bits)
        return np.lib.stride_tricks.as_strided(bits, (self.count, self.width), (self.stride, self.dtype.itemsize))


@dataclass(frozen=True)
class Lanes:
    """The source or the destination: one lane an index, `step` bytes apart."""

    array: Array
    step: int

    @classmethod
    def read(cls, source: Array, index_ndim: int, slots: Slots) -> Lanes:
        """A source; where its rows have gaps of several kinds it is copied."""
        step = _step(source, index_ndim, slots)
        return cls(source, step) if step is not None else cls(np.ascontiguousarray(source), slots.nbytes)

    @classmethod
    def write(cls, out: Array, index_ndim: int, slots: Slots) -> Lanes:
        """A destination; it is written where it is."""
        step = _step(out, index_ndim, slots)
        if step is None or (abs(step) < slots.nbytes and len(out) > 1):
            raise PtoValueError(f"out, {_told(out)}, is not contiguous: only axis 0 of a 1-D idx may have gaps")
        return cls(out, step)

    def grid(self, count: int, slots: Slots) -> Array:
        """Row i is lane i, as bits."""
        bits = self.array.view(slots.dtype.bits)
        return np.lib.stride_tricks.as_strided(bits, (count, slots.width), (self.step, slots.dtype.itemsize))


def _step(tile: Array, index_ndim: int, slots: Slots) -> int | None:
    """Bytes from a lane to the next, or None where they are not evenly apart or not contiguous in themselves."""
    if not tile.flags.aligned:
        return None
    if tile.flags.c_contiguous:
        return slots.nbytes
    return tile.strides[0] if index_ndim == 1 and tile[0].flags.c_contiguous else None


def _fresh(slots: Slots, index: Array) -> Array:
    """A destination of its own, for NumPy to give or to refuse."""
    shape = slots.tile_shape(index)
    try:
        return np.empty(shape, slots.dtype.numpy)
    except ValueError as refused:  # more dimensions, or more elements, than an array can have
        raise PtoValueError(f"the result would have shape {shape}: {refused}") from None


# What is checked before anything is written


def _told(array: Array) -> str:
    return f"shape {array.shape} with strides {array.strides} in bytes"


def _check_writable(array: Array, name: str) -> None:
    if not array.flags.writeable:
        raise PtoValueError(f"{name}, shape {array.shape} of {array.dtype}, is read-only: pass a writable array")


def _check_tile(tile: Array, name: str, index: Array, table: Array, slots: Slots) -> None:
    wanted = slots.tile_shape(index)
    if tile.dtype.type is not table.dtype.type or not tile.dtype.isnative:
        raise PtoTypeError(
            f"{name} holds {describe(tile.dtype)} and the table {table.dtype}: they must agree; "
            f"{name}.astype(table.dtype) is a converted copy"
        )
    if tile.shape != wanted:
        made = "idx.shape" if slots.row is None else f"idx.shape + table.shape[1:] = {index.shape} + {slots.row}"
        raise PtoValueError(f"{name} has shape {tile.shape}; {made} is wanted: {wanted}")


def _check_apart(tile: Array, name: str, other: Array, other_name: str = "the table") -> None:
    if not np.may_share_memory(tile, other):
        return
    try:
        shares = np.shares_memory(tile, other, max_work=MOST_WORK)
    except np.exceptions.TooHardError:
        shares = True
    if shares:
        raise PtoValueError(
            f"{name} shares memory with {other_name}: what is read would depend on what was written; pass {name}.copy()"
        )


# Execution


def _run(
    slots: Slots,
    lanes: Lanes,
    index: Array,
    op_code: int,
    op: ScatterAtomicOp | None,
    policy: ArrayScatterOOB | ArrayGatherOOB,
) -> None:
    index = np.require(index, requirements=["C", "A"])
    if policy.name in ("Clamp", "Wrap") and not slots.count and index.size:
        raise PtoValueError(f"oob={word(policy)!r} needs a slot, and the table has none: shape {slots.array.shape}")
    if not (slots.count and slots.width and index.size):
        # Nothing to move, but a bad index is one all the same, and a table without slots has zeros to give.
        inside = policy.name != "Raise" or bool((_unsigned(index) < np.uint64(slots.count)).all())
        if policy is ArrayGatherOOB.Zero:
            lanes.grid(index.size, slots)[:] = 0
    elif _native:
        inside = _native.run(
            op=op_code,
            oob=policy.value,
            type=TYPE_CODES[slots.dtype.name],
            table=slots.array.ctypes.data,
            stride=slots.stride,
            slots=slots.count,
            tile=lanes.array.ctypes.data,
            step=lanes.step,
            index=index.ctypes.data,
            wide=index.dtype.itemsize == 8,
            count=index.size,
            width=slots.width,
        )
    else:
        _say_once_that_it_is_slow()
        inside = _run_here(slots, lanes, index, op, policy)
    if not inside:
        _raise_out_of_bounds(index, slots)


def _unsigned(index: Array) -> Array:
    """The words as they are taken: unsigned, in a flat row."""
    return index.reshape(-1).view(f"u{index.dtype.itemsize}")


@quiet
def _run_here(
    slots: Slots, lanes: Lanes, index: Array, op: ScatterAtomicOp | None, policy: ArrayScatterOOB | ArrayGatherOOB
) -> bool:
    """The same with the moves and folds of `ptokit.access`."""
    # REMAP: what the policy makes of each index
    taken = _unsigned(index).astype(np.uint64)
    out = taken >= np.uint64(slots.count)
    if policy.name == "Raise" and out.any():
        return False
    if policy.name == "Clamp":
        taken = np.where(out, np.uint64(slots.count - 1), taken)
    if policy.name == "Wrap":
        taken = taken % np.uint64(slots.count)
    live = np.flatnonzero(~out) if policy.name in ("Skip", "Zero") else np.arange(index.size)
    slot = taken[live].astype(np.int64)

    # COMMIT: in the order of the lanes
    there, comes = slots.grid(), lanes.grid(index.size, slots)
    if op is None:
        comes[out if policy.name == "Zero" else slice(0)] = 0
        comes[live] = there[slot]
    elif op is ScatterAtomicOp.None_:
        there[slot] = comes[live]
    else:
        groups, address = Groups.by_key(slot)
        accumulate(Folding(op, slots.dtype), there, address, groups, comes[live])
    return True


def _raise_out_of_bounds(index: Array, slots: Slots) -> NoReturn:
    """The first index that is no slot, its place and the bound."""
    words = _unsigned(index)
    first = int((words >= np.uint64(slots.count)).argmax())
    value = int(index.reshape(-1)[first])
    place = ", ".join(str(int(i)) for i in np.unravel_index(first, index.shape))
    unit = "rows" if slots.row is not None else "elements"
    negative = " A negative index is not counted from the end: add the number of slots to it." if value < 0 else ""
    policies = "oob='skip', 'clamp' or 'wrap' (a gather: 'zero')"
    raise PtoIndexError(
        f"idx[{place}] is {value}, and the table has {slots.count} {unit}; nothing was written.{negative} "
        f"To let such indices pass: {policies}."
    )


said: set[str] = set()


def _say_once_that_it_is_slow() -> None:
    if "slow" not in said:
        said.add("slow")
        log.warning("ptokit has no compiled module here: scatter and gather are right, but slow (see `ptokit doctor`)")


# Set-up


def _take_threads_from_environment() -> None:
    asked = os.environ.get("PTOKIT_NUM_THREADS")
    if asked is None or _native is None:
        return
    digits = asked.strip().lstrip("0")
    if digits.isdecimal():
        _native.set_threads(int(digits) if len(digits) < len(str(MOST_THREADS)) else MOST_THREADS)
    else:
        log.warning(
            "PTOKIT_NUM_THREADS=%r is no whole number from 1 on; all %d CPUs are used", asked, _native.threads()
        )


def _register_types() -> None:
    """The compiled front door knows arrays by NumPy's type numbers; those of ml_dtypes are given out at import."""
    for name, code in TYPE_CODES.items():
        if _native is not None and name != "hifloat8":  # en_dtypes is optional, and slow to import
            _native.register_type(ELEMENT_TYPES[name].numpy.num, code)


_take_threads_from_environment()
_register_types()
