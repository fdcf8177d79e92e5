"""A change to a kernel that is made while it runs: a flag pair left out, a tile shifted, an index out of range.

What is changed is counted as each block issues it: the fourth `set_flag` of block 0, its second tile, its first access.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

SHIFT = 32
"""Bytes by which a tile is moved: the smallest step that keeps it aligned."""

Occurrence = tuple[str, int]


@dataclass(frozen=True)
class Mutation:
    """What is left out or changed, block by block."""

    dropped: Mapping[int, frozenset[Occurrence]] = field(default_factory=dict)
    """Per block: (`set_flag`, 3) is the fourth set_flag that it issues."""
    shifted: int | None = None
    """The tile, by its number, that lies 32 bytes further on."""
    widened: int | None = None
    """The access, by its number among the block's, whose first index is one past the table."""


@dataclass
class Applied:
    """A mutation as one block goes through it."""

    mutation: Mutation
    block: int
    seen: Counter[str] = field(default_factory=Counter)

    def drops(self, name: str) -> bool:
        """Whether this occurrence is left out."""
        return (name, self._number(name)) in self.mutation.dropped.get(self.block, frozenset())

    def widens(self) -> bool:
        """Whether this access gets an index out of range."""
        return self._number("access") == self.mutation.widened

    def shift(self, tile: int) -> int:
        """How many bytes further on this tile lies."""
        return SHIFT if tile == self.mutation.shifted else 0

    def _number(self, name: str) -> int:
        number = self.seen[name]
        self.seen[name] += 1
        return number
