"""Runs grouped by where they land: a cell is a stretch of memory that the same runs write."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ptokit.access.plan import Array, Lanes, Plan


@dataclass(frozen=True)
class Cells:
    """The performed runs by cell. `order` lists runs by (address, walk); cell k is `order[start[k]:][:count[k]]`."""

    plan: Plan
    order: Lanes
    start: Lanes
    count: Lanes
    was_split: bool  # runs overlapped partly, and were taken apart into elements

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
        return Cells(self.plan, order, start, count, self.was_split)

    @cached_property
    def cell_of_writer(self) -> Lanes:
        """Per entry of `order`: its cell."""
        return np.repeat(np.arange(len(self.count)), self.count)

    @cached_property
    def rank(self) -> Lanes:
        """Per entry of `order`: how many writers of its cell came before."""
        return np.arange(len(self.order)) - np.repeat(self.start, self.count)


def performed(plan: Plan) -> Plan:
    """The runs that really happen: live, and wholly in owned memory (else taken apart first)."""
    wanted = plan.live & plan.owned
    if bool(wanted.all()):
        return plan
    if plan.runs.length > 1 and bool((plan.live & ~plan.owned).any()):
        plan = plan.split()
        wanted = plan.live & plan.owned
    return plan.take(np.flatnonzero(wanted))


def group(plan: Plan) -> Cells:
    """The cells of a plan of performed runs."""
    order, address = sorted_with_places(plan.address)
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = address[1:] != address[:-1]
    if plan.runs.length > 1 and bool((np.diff(address)[fresh[1:]] < plan.runs.length).any()):
        # Rows that overlap partly: only single elements are the same or apart.
        split = group(plan.split())
        return Cells(split.plan, split.order, split.start, split.count, was_split=True)
    start = np.flatnonzero(fresh)
    count = np.diff(np.append(start, len(order)))
    return Cells(plan, order, start, count, was_split=False)


def sorted_with_places(keys: Lanes) -> tuple[Lanes, Lanes]:
    """Order by (key, position), and the keys in that order, by one packed sort.

    63 bits hold both: owned memory has fewer than 2^40 elements, a tile fewer than 2^23 runs.
    """
    shift = max(len(keys) - 1, 1).bit_length()
    packed: Array = (keys << shift) | np.arange(len(keys))
    packed.sort()
    return packed & ((1 << shift) - 1), packed >> shift
