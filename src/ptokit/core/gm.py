"""Global memory: what the device sees, what the host would see, and what still stands in a data cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ptokit.access.plan import Array
from ptokit.core import transfers
from ptokit.core.pipes import Step
from ptokit.core.regions import Region, of_tensor
from ptokit.errors import PtoValueError
from ptokit.tensors import GlobalTensor


@dataclass
class Dirty:
    """Bytes that were stored through the data cache and have not been flushed."""

    step: Step
    region: Region
    block: int
    cleaned: bool = False  # a dcci has come by; a dsb completes it


@dataclass
class Buffer:
    """One stretch of global memory. `host` is the caller's own, which shows what has left the caches."""

    number: int
    low: int  # address of the host's first byte
    host: Array
    device: Array
    dirty: list[Dirty] = field(default_factory=list)

    @property
    def high(self) -> int:
        """One past the last address."""
        return self.low + self.host.size

    def publish(self, region: Region) -> None:
        """These bytes have left the caches."""
        copy_bytes(self.device, self.host, region)


def copy_bytes(from_: Array, to: Array, region: Region) -> None:
    """The bytes of a region from one memory to another of the same extent."""
    if region.count == 0 or region.length == 0:
        return
    if region.is_solid:
        to[region.low : region.high] = from_[region.low : region.high]
        return
    starts, length = region.starts if region.places is None else region.places, region.length
    for size in (8, 4, 2, 1):
        if length % size == 0 and not (starts % size).any() and to.size >= size:
            break
    words = starts // size
    whole = to.size // size * size
    source, sink = from_[:whole].view(f"u{size}"), to[:whole].view(f"u{size}")
    if length == size:
        sink[words] = source[words]
        return
    at = (words[:, None] + np.arange(length // size)).ravel()
    sink[at] = source[at]


def address_of(array: Array) -> int:
    """Where an array's memory begins."""
    found: int = array.__array_interface__["data"][0]
    return found


@dataclass(frozen=True, eq=False)
class Place:
    """A tensor in its buffer: the view on the device, and how far into the buffer its memory begins."""

    tensor: GlobalTensor
    buffer: Buffer
    offset: int
    given: GlobalTensor

    @cached_property
    def region(self) -> Region:
        """The bytes of the tensor."""
        return of_tensor(self.tensor, self.buffer.number, self.offset)

    @cached_property
    def stride(self) -> tuple[int, ...]:
        """The strides of the tensor, in elements."""
        return self.tensor.stride

    @cached_property
    def bursts(self) -> tuple[int, int]:
        """How a DMA moves it."""
        return transfers.bursts(self.tensor)

    @cached_property
    def on_device(self) -> Array:
        """Its logical rows and columns, as the device has them."""
        return transfers.tensor_view(self.tensor, self.buffer.device[self.offset :])

    @cached_property
    def on_host(self) -> Array:
        """The same, as what has left the caches has them."""
        return transfers.tensor_view(self.tensor, self.buffer.host[self.offset :])


class GlobalMemory:
    """All that the kernel's arguments own; arguments that share memory share a buffer."""

    is_hollow = False
    """Nothing is moved: a kernel leaves its record and no data."""

    def __init__(self, tensors: Sequence[GlobalTensor]) -> None:
        self.buffers: list[Buffer] = []
        for low, high, parts in _groups([t.memory for t in tensors]):
            self.buffers.append(self._buffer(low, high, parts))
        self._device_at = [(address_of(b.device), b) for b in self.buffers if b.host.size]
        self._places: dict[int, Place] = {}

    def _buffer(self, low: int, high: int, parts: list[Array]) -> Buffer:
        host = np.zeros(0, np.uint8)
        if high > low:
            widest = max(parts, key=lambda part: (part.nbytes, part.flags.writeable))
            host = widest.view(np.uint8) if widest.nbytes == high - low else _span(low, high, parts)
        if any(part.flags.writeable for part in parts) and not host.flags.writeable:
            host = _span(low, high, [part for part in parts if part.flags.writeable])
        return Buffer(len(self.buffers), low, host, self._device_of(host))

    @staticmethod
    def _device_of(host: Array) -> Array:
        return host.copy()

    def place(self, tensor: GlobalTensor) -> Place:
        """Where a tensor lies, be it on the device or (from outside of the kernel) on the host."""
        known = self._places.get(id(tensor))
        if known is not None and known.given is tensor:
            return known
        buffer, offset, is_device = self._find(tensor)
        found = Place(tensor if is_device else _twin(tensor, buffer, offset), buffer, offset, tensor)
        self._places[id(tensor)] = found
        return found

    def _find(self, tensor: GlobalTensor) -> tuple[Buffer, int, bool]:
        if not tensor.memory.nbytes:
            return self.buffers[0] if self.buffers else _nothing(), 0, True
        address, size = address_of(tensor.memory), tensor.memory.nbytes
        for low, buffer in self._device_at:
            if low <= address and address + size <= low + buffer.device.size:
                return buffer, address - low, True
        for buffer in self.buffers:
            if buffer.low <= address and address + size <= buffer.high:
                return buffer, address - buffer.low, False
        raise PtoValueError(
            f"{tensor!r} is on memory that is no argument of this launch: pass its array to launch(...)"
        )


class HollowMemory(GlobalMemory):
    """Memory that has addresses and no contents of its own: no page of it is ever touched."""

    is_hollow = True

    @staticmethod
    def _device_of(host: Array) -> Array:
        return host


def _twin(tensor: GlobalTensor, buffer: Buffer, offset: int) -> GlobalTensor:
    """The same view on the device's memory."""
    memory = buffer.device[offset : offset + tensor.memory.nbytes].view(tensor.dtype.numpy)
    memory.flags.writeable = tensor.memory.flags.writeable
    shape = tensor.buffer.shape if isinstance(tensor.buffer, np.ndarray) else memory.shape
    return GlobalTensor(
        memory.reshape(shape),
        tensor.dtype,
        tensor.declared_shape,
        tensor.declared_stride,
        tensor.layout,
        tensor.shape if tensor.is_known else None,
        base=tensor.base,
    )


def _nothing() -> Buffer:
    empty = np.zeros(0, np.uint8)
    return Buffer(0, 0, empty, empty)


def _groups(parts: list[Array]) -> list[tuple[int, int, list[Array]]]:
    """Memory that overlaps, together: (first address, one past the last, its parts)."""
    found: list[tuple[int, int, list[Array]]] = []
    for part in sorted(parts, key=address_of):
        low = address_of(part)
        high = low + part.nbytes
        if found and low < found[-1][1]:
            first, last, others = found[-1]
            found[-1] = (first, max(last, high), [*others, part])
        else:
            found.append((low, high, [part]))
    return found


def _span(low: int, high: int, parts: list[Array]) -> Array:
    """One array over parts that overlap: the memory that they are views of."""
    for part in parts:
        owner: Any = part
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        first = address_of(owner)
        if owner.flags.c_contiguous and first <= low and high <= first + owner.nbytes:
            return np.asarray(owner.reshape(-1).view(np.uint8)[low - first : high - first])
    raise PtoValueError("arguments of the kernel overlap partly in memory, and belong to no common array")
