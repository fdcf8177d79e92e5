"""The memory of a collective: every rank's part, registered, and the root."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ptokit.comm.faults import RankTypeError, RankValueError, error, named
from ptokit.comm.transport import Window
from ptokit.comm.words import Bytes
from ptokit.dtypes import element_type
from ptokit.errors import PtoError, a_kind
from ptokit.tensors import GlobalTensor, whole

if TYPE_CHECKING:
    from ptokit.comm.collectives import Prepared
    from ptokit.comm.rank import Rank


@dataclass(frozen=True)
class Part:
    """A rank's tensor as the other ranks know it."""

    dtype: str
    layout: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    base: int
    nbytes: int
    writable: bool
    root: int
    mistake: str = ""
    """Why this rank has nothing to give."""


class Group:
    """Every rank's part in a collective. `group.local` is this rank's; `group.parts` describes all.

    The memory stays registered until `free()`, or until the world ends.
    """

    def __init__(self, rank: Rank, tensor: GlobalTensor, root: int, parts: Sequence[Part], window: Window) -> None:
        self.rank = rank
        self.local = tensor
        self.root = root
        self.parts = tuple(parts)
        self.window = window
        self.prepared: dict[tuple[str, object], Prepared] = {}
        """What a collective has worked out, by its name and mode, for the next call with the same operands."""

    @property
    def size(self) -> int:
        """How many ranks."""
        return len(self.parts)

    @property
    def is_root(self) -> bool:
        """This rank is the root."""
        return self.rank.rank == self.root

    @property
    def slice_bytes(self) -> int:
        """The bytes of this rank's tensor, without gaps."""
        part = self.parts[self.rank.rank]
        return math.prod(part.shape) * element_type(part.dtype).itemsize

    def tensor(self, rank: int) -> GlobalTensor | None:
        """A rank's part as a tensor, where this process sees its memory directly."""
        view = self.window.view(rank)
        return None if view is None else self._on(view, rank)

    def form(self, rank: int) -> GlobalTensor:
        """A tensor like a rank's, on memory that nobody touches: what rules are held against."""
        return self._on(np.zeros(self.parts[rank].nbytes, np.uint8), rank)

    def _on(self, memory: Bytes, rank: int) -> GlobalTensor:
        part = self.parts[rank]
        element = element_type(part.dtype)
        return GlobalTensor(memory.view(element.numpy), element, part.shape, part.stride, part.layout, base=part.base)

    def free(self) -> None:
        """This rank's memory is no longer part of it; a root that goes on is told."""
        self.window.free()

    def __repr__(self) -> str:
        part = self.parts[self.rank.rank]
        return f"<group of {self.size} {part.dtype} tensors {part.shape}, root {self.root}>"


def make_group(rank: Rank, dst: object, root: object) -> Group:
    """Register every rank's tensor, and see that the ranks mean the same."""
    tensor, mistake = _read(dst)
    number = whole(root, "root")
    parts: list[Part] = rank.transport.exchange(_part(tensor, number, mistake), "rank.group")
    _one_root(rank, parts)
    _all_there(rank, parts)
    assert tensor is not None
    if not 0 <= number < rank.size:
        raise error(
            "PTO-R041",
            f"root={number} is none of the {rank.size} ranks; they count from 0.",
            root=number,
            size=rank.size,
        )
    window = rank.transport.window(tensor.memory.view(np.uint8), tensor)
    return Group(rank, tensor, number, parts, window)


def _read(given: object) -> tuple[GlobalTensor | None, str]:
    """The tensor, or why there is none: the other ranks are told before this one gives up."""
    if isinstance(given, GlobalTensor):
        return (given, "") if given.is_known else (None, f"{given!r} has a dynamic extent without a value")
    if not isinstance(given, np.ndarray):
        return None, f"dst is {a_kind(given)}; an ndarray or a GlobalTensor is wanted"
    if given.ndim > 5:
        return None, f"dst has {given.ndim} dimensions; a tensor has 5 at most"
    try:
        return GlobalTensor(given, element_type(given.dtype), (1,) * (5 - given.ndim) + given.shape), ""
    except PtoError as refused:
        return None, str(refused)


def _part(tensor: GlobalTensor | None, root: int, mistake: str) -> Part:
    if tensor is None:
        return Part("", "", (), (), 0, 0, False, root, mistake)
    return Part(
        tensor.dtype.name,
        tensor.layout,
        tuple(tensor.shape),
        tuple(tensor.stride),
        tensor.base,
        tensor.memory.nbytes,
        bool(tensor.memory.flags.writeable),
        root,
    )


def _one_root(rank: Rank, parts: Sequence[Part]) -> None:
    roots = {part.root for part in parts}
    if len(roots) > 1:
        said = named([f"{rank.peers[r]} says {part.root}" for r, part in enumerate(parts)])
        raise error("PTO-R033", f"the roots differ: {said}.", roots=[part.root for part in parts])


def _all_there(rank: Rank, parts: Sequence[Part]) -> None:
    wrong = [(rank.peers[r], part.mistake) for r, part in enumerate(parts) if part.mistake]
    if wrong:
        peer, mistake = wrong[0]
        kind = RankTypeError if "is wanted" in mistake else RankValueError
        raise kind(f"{peer}: {mistake}")
