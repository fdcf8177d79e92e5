"""Tiles on chip and tensors in global memory: extents, layouts, and where each element lies."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ptokit.dtypes import ElementType, as_array, convert, describe, element_type
from ptokit.errors import (
    PtoAttributeError,
    PtoIndexError,
    PtoTypeError,
    PtoValueError,
    UnknownExtentError,
    a_kind,
    listed,
    nearest,
    well_called,
)

Array = npt.NDArray[Any]
Offsets = npt.NDArray[np.int64]

DYNAMIC = -1
FRACTAL_ROWS = 16
MOST_BYTES = 1 << 34
"""More than any tile needs: a size beyond it is a slip of the pen."""
MOST_STRIDE = 1 << 62
LAYOUTS = ("nd", "dn", "nz")
LOCATIONS = ("vec", "mat", "left", "right", "acc", "bias", "scaling")
DIMS = ("S0", "S1", "S2", "S3", "S4")


def whole(value: object, what: str) -> int:
    """An integer, or an error that names what should have been one."""
    if isinstance(value, (bool, np.bool_)):
        raise PtoTypeError(f"{what} is {value!r}; a whole number is wanted")
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise PtoTypeError(f"{what} is {value!r}; a whole number is wanted") from None


def _whole_tuple(values: object, count: int, what: str) -> tuple[int, ...]:
    is_row = isinstance(values, Sequence) or (isinstance(values, np.ndarray) and values.ndim == 1)
    if isinstance(values, (str, bytes)) or not is_row:
        raise PtoTypeError(f"{what} is {values!r}; {count} whole numbers are wanted")
    assert isinstance(values, Sequence | np.ndarray)
    if len(values) != count:
        hint = " (pad a shape with ones on the left)" if count == 5 else ""
        raise PtoValueError(f"{what} has {len(values)} numbers, {tuple(values)}; {count} are wanted{hint}")
    return tuple(whole(v, f"{what}[{i}]") for i, v in enumerate(values))


def _word(given: object, known: Sequence[str], what: str) -> str:
    if not isinstance(given, str):
        raise PtoTypeError(f"{what}={given!r} is {a_kind(given)}; known: {listed(known)}")
    if given.lower() not in known:
        raise PtoValueError(f"{what}={given!r} is unknown.{nearest(given, known)} Known: {listed(known)}")
    return given.lower()


def tile_offsets(layout: str, rows: int, cols: int, c0: int, r: Array, c: Array) -> Offsets:
    """Element offset of (r, c) in a padded tile of that layout (broadcasts)."""
    row, col = np.asarray(r, np.int64), np.asarray(c, np.int64)
    if layout == "nd":
        return row * cols + col
    if layout == "dn":
        return col * rows + row
    return (col // c0) * (rows * c0) + row * c0 + col % c0


class Tile:
    """A 2-D block of on-chip memory: padded `rows x cols`, of which the valid region counts.

    `data` is live: one flat array in storage order, padding included.

    >>> tile = Tile("float32", 16, 64, valid=(16, 60))
    >>> tile.store(np.ones((16, 60)))
    >>> float(tile.data.sum())
    960.0
    """

    @well_called
    def __init__(
        self,
        dtype: object,
        rows: int,
        cols: int,
        valid: Sequence[int] | None = None,
        layout: str = "nd",
        loc: str = "vec",
        fractal: int = 512,
        *,
        data: Array | None = None,
    ) -> None:
        self.dtype: ElementType = element_type(dtype)
        self.rows = whole(rows, "rows")
        self.cols = whole(cols, "cols")
        if self.rows < 1 or self.cols < 1:
            raise PtoValueError(f"a tile of {self.rows} x {self.cols} has no elements; both must be at least 1")
        self.layout = _word(layout, LAYOUTS, "layout")
        self.loc = _word(loc, LOCATIONS, "loc")
        self.fractal = whole(fractal, "fractal")
        declared = (self.rows, self.cols) if valid is None else _whole_tuple(valid, 2, "valid")
        self.declared_valid: tuple[int, int] = (declared[0], declared[1])
        self._valid = self.declared_valid
        self._check_valid(self.declared_valid, dynamic_allowed=True)
        self._holds_data = data is not None
        self.storage: Array = self._own(data)

    def _own(self, data: object) -> Array:
        size = self.rows * self.cols
        if size * self.dtype.itemsize > MOST_BYTES:
            raise PtoValueError(f"a tile of {self.rows} x {self.cols} {self.dtype} is larger than any chip's memory")
        if data is None:
            return np.zeros(size, self.dtype.numpy)
        if not isinstance(data, np.ndarray):
            raise PtoTypeError(f"data is {a_kind(data)}; a flat ndarray of {size} {self.dtype} is wanted")
        fits = data.shape == (size,) and data.flags.c_contiguous
        if not fits or data.dtype.type is not self.dtype.numpy.type or not data.dtype.isnative:
            raise PtoValueError(
                f"data is an array of shape {data.shape}, strides {data.strides} and dtype {data.dtype}; "
                f"a flat array of {size} {self.dtype} without gaps is wanted"
            )
        return data

    @property
    def data(self) -> Array:
        """The live elements in storage order, padding included; from now on the tile counts as holding data."""
        self._holds_data = True
        return self.storage

    @data.setter
    def data(self, values: object) -> None:
        raise PtoAttributeError("tile.data is the tile's own memory: write tile.data[:] = ..., or tile.store(a)")

    def _check_valid(self, valid: tuple[int, int], *, dynamic_allowed: bool) -> None:
        for name, extent, padded in zip(("rows", "columns"), valid, (self.rows, self.cols), strict=True):
            if extent == DYNAMIC and dynamic_allowed:
                continue
            if not 0 <= extent <= padded:
                raise PtoValueError(f"{extent} valid {name} do not fit a tile of {self.rows} x {self.cols}")

    @property
    def is_static(self) -> bool:
        """Both valid extents are known at compile time."""
        return DYNAMIC not in self.declared_valid

    @property
    def is_known(self) -> bool:
        """Every valid extent has a value by now."""
        return DYNAMIC not in self._valid

    @property
    def holds_data(self) -> bool:
        """Something was stored, or `data` was handed out for writing."""
        return self._holds_data

    @property
    def valid(self) -> tuple[int, int]:
        """The valid extents, or an error where a dynamic one has no value yet."""
        return (self.valid_rows, self.valid_cols)

    @property
    def valid_rows(self) -> int:
        """ValidRow."""
        return self._extent(0)

    @property
    def valid_cols(self) -> int:
        """ValidCol."""
        return self._extent(1)

    def _extent(self, dim: int) -> int:
        if self._valid[dim] == DYNAMIC:
            raise UnknownExtentError(f"{self} has a dynamic valid extent without a value: call set_valid(rows, cols)")
        return self._valid[dim]

    @property
    def nbytes(self) -> int:
        """Bytes of the padded tile."""
        return self.rows * self.cols * self.dtype.itemsize

    @property
    def contiguous_extent(self) -> tuple[str, int]:
        """The padded extent that lies contiguous in memory, and its name."""
        return ("Rows", self.rows) if self.layout == "dn" else ("Cols", self.cols)

    def set_valid(self, rows: int, cols: int) -> None:
        """Give the dynamic valid extents their values; a static one must be repeated as it is."""
        wanted = (whole(rows, "rows"), whole(cols, "cols"))
        for declared, given in zip(self.declared_valid, wanted, strict=True):
            if declared not in (DYNAMIC, given):
                raise PtoValueError(
                    f"set_valid{wanted} on {self}: the extent {declared} is static; declare it -1 to change it"
                )
        self._check_valid(wanted, dynamic_allowed=False)
        self._valid = wanted

    def offsets(self, r: Array, c: Array) -> Offsets:
        """Element offset of (r, c) in `data` (broadcasts)."""
        return tile_offsets(self.layout, self.rows, self.cols, self.dtype.c0, r, c)

    def valid_offsets(self) -> Offsets:
        """Offsets of the valid region, shape `valid`."""
        rows, cols = self.valid
        return self.offsets(np.arange(rows)[:, None], np.arange(cols)[None, :])

    @property
    def is_mapped(self) -> bool:
        """Every valid element has a place in `data` (an NZ tile of half fractals has not)."""
        offsets = self.valid_offsets()
        return not offsets.size or int(offsets.max()) < self.storage.size

    def _mapped_offsets(self) -> Offsets:
        offsets = self.valid_offsets()
        if not self.is_mapped:
            raise PtoValueError(
                f"{self} has no place for its last column: an NZ tile needs Cols divisible by {self.dtype.c0}"
            )
        return offsets

    def store(self, values: object) -> None:
        """Put values into the valid region; its shape must match, padding stays as it is."""
        given = as_array(values)
        if given.shape != self.valid:
            raise PtoValueError(
                f"values of shape {given.shape} for the valid region {self.valid} of {self}: "
                "a tile takes a list of rows"
            )
        if not self.storage.flags.writeable:
            raise PtoValueError(f"the memory of {self} is read-only: make the tile on a writable array")
        self.storage[self._mapped_offsets()] = convert(given, self.dtype)
        self.mark_stored()

    def load(self) -> Array:
        """A copy of the valid region.

        >>> Tile("int32", 2, 8, valid=(1, 3)).load()
        array([[0, 0, 0]], dtype=int32)
        """
        return np.asarray(self.storage[self._mapped_offsets()])

    def mark_stored(self) -> None:
        """The tile holds data now, zeros included."""
        self._holds_data = True

    def copy(self) -> Tile:
        """The same tile with data of its own."""
        other = Tile(
            self.dtype,
            self.rows,
            self.cols,
            self.declared_valid,
            self.layout,
            self.loc,
            self.fractal,
            data=self.storage.copy(),
        )
        other._valid, other._holds_data = self._valid, self._holds_data
        return other

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.load(), dtype=dtype)

    def __repr__(self) -> str:
        parts = [repr(self.dtype.name), str(self.rows), str(self.cols)]
        if self._valid != (self.rows, self.cols):
            parts.append(f"valid={self._valid}")
        if self.layout != "nd":
            parts.append(f"layout={self.layout!r}")
        if self.loc != "vec":
            parts.append(f"loc={self.loc!r}")
        return f"Tile({', '.join(parts)})"


def packed_stride(shape: Sequence[int], layout: str) -> tuple[int, ...]:
    """The strides of a tensor without gaps: row-major, or with rows contiguous for DN.

    >>> packed_stride((1, 1, 2, 4, 8), "nd"), packed_stride((1, 1, 2, 4, 8), "dn")
    ((64, 64, 32, 8, 1), (64, 64, 32, 1, 4))
    """
    order = (0, 1, 2, 4, 3) if layout == "dn" else (0, 1, 2, 3, 4)
    stride = [0] * 5
    step = 1
    for dim in reversed(order):
        stride[dim] = step
        step *= max(shape[dim], 1)
    return tuple(stride)


class GlobalTensor:
    """A 5-D view on the caller's buffer in global memory; never a copy.

    `memory` is the whole buffer, flat; `base` is the element at which this view starts.

    >>> rows = np.zeros((100, 64), np.float32)
    >>> GlobalTensor(rows, "float32", shape=(1, 1, 1, 100, 64)).stride
    (6400, 6400, 6400, 64, 1)
    """

    @well_called
    def __init__(
        self,
        buffer: object,
        dtype: object,
        shape: Sequence[int],
        stride: Sequence[int] | None = None,
        layout: str = "nd",
        actual: Sequence[int] | None = None,
        *,
        base: int = 0,
    ) -> None:
        self.dtype: ElementType = element_type(dtype)
        self.layout = _word(layout, LAYOUTS, "layout")
        self.buffer, self.memory = _flat_view(buffer, self.dtype)
        self.declared_shape = _whole_tuple(shape, 5, "shape")
        _check_extents(self.declared_shape, "shape", DYNAMIC)
        self.declared_stride = None if stride is None else _whole_tuple(stride, 5, "stride")
        if self.declared_stride is not None:
            _check_extents(self.declared_stride, "stride", DYNAMIC)
        self._actual = None if actual is None else _whole_tuple(actual, 5, "actual")
        self.base = whole(base, "base")
        if not 0 <= self.base <= self.memory.size:
            raise PtoValueError(f"base={self.base} does not lie in a buffer of {self.memory.size} elements")
        self._check_actual()
        if self.is_known:
            self._check_room()

    def _check_actual(self) -> None:
        if self._actual is None:
            return
        _check_extents(self._actual, "actual", 0)
        for dim, declared, given in zip(DIMS, self.declared_shape, self._actual, strict=True):
            if declared not in (DYNAMIC, given):
                raise PtoValueError(
                    f"actual {self._actual} contradicts the shape {self.declared_shape}: {dim} is {declared}"
                )

    def _check_room(self) -> None:
        if not self.size:
            return
        last = sum((extent - 1) * step for extent, step in zip(self.shape, self.stride, strict=True))
        if self.base + last >= self.memory.size:
            raise PtoValueError(
                f"a buffer of {self.memory.size} elements is too small for shape {self.shape} and stride "
                f"{self.stride}{f' from element {self.base}' if self.base else ''}: "
                f"{self.base + last + 1} are needed"
            )

    @property
    def is_known(self) -> bool:
        """Every extent has a value by now."""
        return self._actual is not None or DYNAMIC not in self.declared_shape

    @property
    def shape(self) -> tuple[int, ...]:
        """The five extents, or an error where a dynamic one has no value."""
        if not self.is_known:
            raise UnknownExtentError(f"shape {self.declared_shape} is dynamic and has no value: pass actual=(...)")
        return self._actual or self.declared_shape

    def extent(self, dim: int) -> int:
        """One extent; the others need no value."""
        known = self.declared_shape[dim]
        return self.shape[dim] if known == DYNAMIC else known

    @property
    def stride(self) -> tuple[int, ...]:
        """The five strides in elements; what was not given, or given as -1, is packed."""
        packed = packed_stride(self.shape, self.layout)
        given = self.declared_stride or packed
        return tuple(p if g == DYNAMIC else g for g, p in zip(given, packed, strict=True))

    @property
    def size(self) -> int:
        """Logical elements."""
        return math.prod(self.shape)

    @property
    def is_packed(self) -> bool:
        """No gap between any two elements: the linear order is the logical one."""
        packed = packed_stride(self.shape, "nd")
        return all(
            extent == 1 or given == want for extent, given, want in zip(self.shape, self.stride, packed, strict=True)
        )

    @property
    def footprint(self) -> tuple[int, int]:
        """First and one past the last element of the view, counted from its base."""
        if not self.size:
            return (0, 0)
        return (0, 1 + sum((e - 1) * s for e, s in zip(self.shape, self.stride, strict=True)))

    def logical_offset(self, flat: int) -> int:
        """Offset of the flat row-major element `flat`, as the strides have it."""
        offset = 0
        for extent, step in zip(reversed(self.shape), reversed(self.stride), strict=True):
            flat, at = divmod(flat, extent)
            offset += at * step
        return offset

    def copy(self) -> GlobalTensor:
        """The same view on a copy of the whole buffer."""
        shape = self.buffer.shape if isinstance(self.buffer, np.ndarray) else self.memory.shape
        return GlobalTensor(
            self.memory.copy().reshape(shape),
            self.dtype,
            self.declared_shape,
            self.declared_stride,
            self.layout,
            self._actual,
            base=self.base,
        )

    def partition(self, offsets: Sequence[int], sizes: Sequence[int]) -> GlobalTensor:
        """A sub-view: five offsets and five sizes, on the same buffer.

        >>> table = GlobalTensor(np.zeros(64, np.int32), "int32", shape=(1, 1, 1, 8, 8))
        >>> table.partition((0, 0, 0, 2, 0), (1, 1, 1, 3, 8)).base
        16
        """
        start = _whole_tuple(offsets, 5, "offsets")
        extent = _whole_tuple(sizes, 5, "sizes")
        for dim, first, count, size in zip(DIMS, start, extent, self.shape, strict=True):
            if first < 0 or count < 0 or first + count > size:
                raise PtoIndexError(f"{dim}: {first} to {first + count} does not lie within 0 to {size}")
        base = self.base + sum(f * s for f, s in zip(start, self.stride, strict=True))
        return GlobalTensor(self.buffer, self.dtype, extent, self.stride, self.layout, base=base)

    def __getitem__(self, key: object) -> GlobalTensor:
        """`tensor[a:b, c:d]` (the last two dimensions) or five slices: a sub-view."""
        slices = key if isinstance(key, tuple) else (key,)
        if len(slices) not in (2, 5) or not all(isinstance(s, slice) for s in slices):
            raise PtoIndexError(f"tensor[{key!r}]: two slices [rows, columns] or five are wanted")
        if len(slices) == 2:
            slices = (slice(None),) * 3 + slices
        start, extent = [], []
        for dim, part, size in zip(DIMS, slices, self.shape, strict=True):
            first = 0 if part.start is None else whole(part.start, dim)
            end = size if part.stop is None else whole(part.stop, dim)
            if end < first or first < 0:
                raise PtoIndexError(
                    f"{dim}: {first}:{end} is no sub-view; count from the start, and end where it begins or later"
                )
            if part.step is not None and whole(part.step, f"the step of {dim}") != 1:
                raise PtoIndexError(f"{dim}: a step of {part.step} is not a sub-view; give a stride instead")
            start.append(first)
            extent.append(end - first)
        return self.partition(start, extent)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """The five-dimensional view."""
        strides = tuple(step * self.dtype.itemsize for step in self.stride)
        # As plain bits, since NumPy strides no element type of others.
        plain = self.memory[self.base :].view(self.dtype.bits)
        view = np.lib.stride_tricks.as_strided(plain, self.shape, strides).view(self.dtype.numpy)
        return np.array(view, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        shape = self._actual or self.declared_shape
        layout = f", layout={self.layout!r}" if self.layout != "nd" else ""
        base = f", base={self.base}" if self.base else ""
        return f"GlobalTensor({self.dtype.name!r}, shape={shape}{layout}{base})"


def _check_extents(extents: tuple[int, ...], what: str, least: int) -> None:
    for i, extent in enumerate(extents):
        if extent >= MOST_STRIDE:
            raise PtoValueError(f"{what}[{i}] is {extent}: no 64-bit address reaches that far")
        if extent < least:
            raise PtoValueError(f"{what}[{i}] is {extent}; it must be at least 0, or -1 where it is dynamic")


def _flat_view(buffer: object, dtype: ElementType) -> tuple[object, Array]:
    """The buffer as one flat array of `dtype`, without a copy."""
    if isinstance(buffer, np.ndarray):
        if buffer.dtype.type is not dtype.numpy.type or not buffer.dtype.isnative:
            raise PtoTypeError(f"the buffer is {describe(buffer.dtype)}; the tensor's element type is {dtype}")
        if not buffer.flags.c_contiguous:
            raise PtoValueError(
                f"the buffer, shape {buffer.shape} with strides {buffer.strides} in bytes, is not contiguous: "
                "pass the whole array and give stride=..., or pass a contiguous copy"
            )
        return buffer, np.asarray(buffer).reshape(-1)
    try:
        form = memoryview(buffer).format  # type: ignore[arg-type]
        raw = np.frombuffer(buffer, np.uint8)  # type: ignore[call-overload]
    except (TypeError, ValueError, BufferError) as unusable:
        hint = ": pass its array (numpy.asarray(it), tensor.numpy())" if hasattr(buffer, "__array__") else ""
        raise PtoTypeError(
            f"a buffer is an ndarray or an object with the buffer protocol, not {type(buffer).__name__} "
            f"({unusable}){hint}"
        ) from None
    if form not in ("B", "b", "c") and form != np.dtype(dtype.bits).char:
        _same_format(form, dtype)
    if raw.size % dtype.itemsize:
        raise PtoValueError(f"a buffer of {raw.size} bytes does not hold whole {dtype} elements")
    return buffer, raw.view(dtype.numpy)


def _same_format(form: str, dtype: ElementType) -> None:
    """A buffer of typed elements must hold the tensor's type; plain bytes hold any."""
    try:
        held = np.dtype(form)
    except (TypeError, ValueError):
        held = None
    if held is None or held.type is not dtype.numpy.type or not held.isnative:
        raise PtoTypeError(f"the buffer holds elements of format {form!r}; the tensor's element type is {dtype}")
