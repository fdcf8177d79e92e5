"""Runs grouped by where they land: a cell is a stretch of memory that the same runs write."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ptokit.access.plan import Array, Lanes, Plan

CHUNK = 32
"""Columns that a warp of a5 writes at one step: chunks of a row are independent."""


@dataclass(frozen=True)
class Groups:
    """Runs in groups: `order` lists them by (group, walk); group k is `order[start[k]:][:count[k]]`."""

    order: Lanes
    start: Lanes
    count: Lanes

    @classmethod
    def by_key(cls, keys: Lanes) -> tuple[Groups, Lanes]:
        """Runs of equal keys, and the key of each group, ascending."""
        order, ascending = sorted_with_places(keys)
        fresh = np.ones(len(order), np.bool_)
        fresh[1:] = ascending[1:] != ascending[:-1]
        start = np.flatnonzero(fresh)
        return cls(order, start, np.diff(np.append(start, len(order)))), ascending[start]


@dataclass(frozen=True)
class Cells(Groups):
    """The performed runs, grouped by the cell of memory that they write."""

    plan: Plan

    @cached_property
    def address(self) -> Lanes:
        """Per cell: its first element in memory."""
        return np.asarray(self.plan.address[self.order[self.start]])

    @property
    def length(self) -> int:
        """Elements of a cell."""
        return self.plan.runs.length

    def contested(self) -> Cells:
        """The cells with more than one writer."""
        many = np.flatnonzero(self.count > 1)
        count = self.count[many]
        start = np.concatenate([[0], np.cumsum(count)[:-1]]).astype(np.int64) if many.size else many
        inside = np.arange(int(count.sum())) - np.repeat(start, count)
        order = self.order[np.repeat(self.start[many], count) + inside]
        return Cells(order, start, count, self.plan)

    @cached_property
    def cell_of_writer(self) -> Lanes:
        """Per entry of `order`: its cell."""
        return np.repeat(np.arange(len(self.count)), self.count)

    @cached_property
    def rank(self) -> Lanes:
        """Per entry of `order`: how many writers of its cell came before."""
        return np.arange(len(self.order)) - np.repeat(self.start, self.count)


def performed(plan: Plan) -> Plan:
    """The runs that really happen: live, and wholly in owned memory (those across its edge are taken apart first)."""
    if bool(plan.straddles.any()):
        plan = plan.split(_piece_between_edges(plan))
    wanted = plan.live & plan.owned
    return plan if bool(wanted.all()) else plan.take(np.flatnonzero(wanted))


def _piece_between_edges(plan: Plan) -> int:
    """The longest piece of which every run across an edge of the memory has a whole number on each side."""
    address = plan.address[plan.straddles]
    return _common(plan, np.concatenate([address, plan.memory_size - address]))


def _common(plan: Plan, distances: Lanes) -> int:
    """The longest piece that divides a run, these distances, and the 32 columns that threads take at a time."""
    return int(np.gcd.reduce(distances, initial=math.gcd(plan.runs.length, CHUNK)))


def group(plan: Plan) -> Cells:
    """The cells of a plan of performed runs."""
    groups, address = Groups.by_key(plan.address)
    distance = np.diff(address)
    if plan.runs.length > 1 and bool((distance < plan.runs.length).any()):
        # Rows that overlap partly: in pieces that are the same or apart.
        return group(plan.split(_common(plan, distance)))
    return Cells(groups.order, groups.start, groups.count, plan)


def sorted_with_places(keys: Lanes) -> tuple[Lanes, Lanes]:
    """Order by (key, position), and the keys in that order, by one packed sort.

    63 bits hold both: owned memory has fewer than 2^40 elements, a tile fewer than 2^23 runs.
    """
    shift = max(len(keys) - 1, 1).bit_length()
    packed: Array = (keys << shift) | np.arange(len(keys))
    packed.sort()
    return packed & ((1 << shift) - 1), packed >> shift
