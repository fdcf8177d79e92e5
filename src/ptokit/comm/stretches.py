"""Where the tensors of a collective lie on each other, so that the order of the chunks decides what comes out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ptokit.comm.rules import Collective
from ptokit.comm.words import address_of
from ptokit.core.regions import Region, meet, of_tensor
from ptokit.findings import Finding, Severity
from ptokit.tensors import GlobalTensor


@dataclass(frozen=True, eq=False)
class Stretch:
    """The memory of one tensor that takes part, or the rows of one rank in the root's own."""

    name: str
    region: Region
    rank: int
    is_local: bool
    is_written: bool


@dataclass(frozen=True)
class Meeting:
    """Two stretches that may not meet, and the byte at which they do."""

    first: str
    second: str
    byte: int


def stretches(call: Collective, members: Iterable[tuple[int, Region]], local: Iterable[Region]) -> list[Stretch]:
    """The members that are seen, by their rank, and each rank's rows of the root's own tensor."""
    kind, written = call.kind, call.kind.local_is_written
    found = [Stretch(call.tensors[1 + rank][0], region, rank, False, not written) for rank, region in members]
    found += [Stretch(f"the {kind.local}", region, rank, True, written) for rank, region in enumerate(local)]
    return found


def in_memory(tensor: GlobalTensor) -> Region:
    """The bytes of a tensor where they are in this process."""
    return of_tensor(tensor, 0, address_of(tensor.memory))


def span(tensor: GlobalTensor) -> tuple[int, int]:
    """The first address of a tensor, and one past its last."""
    start, size = address_of(tensor.memory) + tensor.base * tensor.dtype.itemsize, tensor.dtype.itemsize
    low, high = tensor.footprint
    return start + low * size, start + high * size


def meeting(call: Collective, given: Iterable[Stretch]) -> Meeting | None:
    """The first two that meet and may not, and where."""
    near: list[Stretch] = []
    for one in sorted(given, key=lambda one: (one.region.space, one.region.low)):
        here = one.region
        near = [other for other in near if other.region.space == here.space and other.region.high > here.low]
        for other in near:
            byte = meet(other.region, here) if _may_not_meet(other, one, call) else None
            if byte is not None:
                first, second = sorted((other, one), key=lambda each: (not each.is_local, each.rank))
                return Meeting(first.name, second.name, byte)
        near.append(one)
    return None


def _may_not_meet(one: Stretch, other: Stretch, call: Collective) -> bool:
    """One of them is written, and not exactly where it is read: what is loaded there is what is stored."""
    if one.is_local == other.is_local:
        return not one.is_local and one.is_written
    belongs = one.rank == other.rank or not call.kind.splits
    return not (belongs and _is_same(one.region, other.region))


def _is_same(one: Region, other: Region) -> bool:
    return one.length == other.length and np.array_equal(one.starts, other.starts)


def told(call: Collective, met: Meeting, where: str) -> Finding:
    """The finding of it; `where` says from where on they lie on each other."""
    return Finding(
        "PTO-R024",
        Severity.WARNING,
        call.target,
        f"{call.op}: {met.first} and {met.second} lie on each other{where}: which chunk comes last decides what stands "
        "there.",
        {"first": met.first, "second": met.second, "first_byte": met.byte},
        None,
        "Give each rank memory of its own; only a rank's slice may stand where the root has it.",
    )
