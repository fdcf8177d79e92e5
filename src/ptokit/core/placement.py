"""Where tiles may lie, and what is left of the unified buffer: SEMANTICS 3.3 as a ledger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptokit.core.pipes import Site
from ptokit.core.ub import GRAIN, UbTile, UnifiedBuffer
from ptokit.findings import Finding, Severity

KIB = 1 << 10
SIZE = {"a2a3": 192 * KIB, "a5": 256 * KIB}
TOOLCHAIN_SIZE = 253_952
"""What some toolchains count as the unified buffer of a5 (248 KiB)."""
RESERVED = 8 * KIB
LEAST_CACHE = 32 * KIB
MOST_USABLE = 256 * KIB - RESERVED - LEAST_CACHE
UNASKED = 128 * KIB
"""What src and idx may take on a5 when the launch asks for nothing."""


@dataclass(frozen=True)
class TileEntry:
    """One tile in the ledger."""

    name: str
    dtype: str
    rows: int
    cols: int
    address: int
    nbytes: int
    is_manual: bool
    line: int


@dataclass(frozen=True)
class Ledger:
    """The budget of the unified buffer: all in bytes.

    `size` is the whole buffer, `toolchain_size` what some toolchains count; `peak` is the highest end of a tile.
    """

    target: str
    tiles: tuple[TileEntry, ...]
    static: int
    dynamic: int
    working_set: int
    reserved: int
    dcache: int
    peak: int
    needed_dyn_ub: int
    size: int
    toolchain_size: int


def covered(tiles: list[UbTile]) -> int:
    """Bytes that belong to some tile."""
    total, reach = 0, 0
    for tile in sorted(tiles, key=lambda one: one.address):
        low, high = max(tile.address, reach), tile.end
        total += max(high - low, 0)
        reach = max(reach, high)
    return total


def needed_dyn_ub(peak: int, static: int) -> int:
    """What a launch has to ask for: what lies above the static tiles, or the least that makes it ask at all."""
    return max(peak - static, GRAIN)


def ledger(target: str, ub: UnifiedBuffer, dyn_ub: int) -> Ledger:
    """The budget as the tiles of one core leave it."""
    placed = [tile for tile in ub.tiles if tile.is_placed]
    automatic = [tile for tile in placed if not tile.is_manual]
    manual = [tile for tile in placed if tile.is_manual]
    static, working = covered(automatic), covered(placed)
    peak = max((tile.end for tile in placed), default=0)
    size = SIZE.get(target, 0)
    is_a5 = target == "a5"
    needed = needed_dyn_ub(peak, static) if is_a5 and working > UNASKED else 0
    granted = dyn_ub if dyn_ub else min(max(peak, UNASKED), MOST_USABLE)
    return Ledger(
        target=target,
        tiles=tuple(
            TileEntry(t.name, t.dtype.name, t.rows, t.cols, t.address, t.nbytes, t.is_manual, t.site.line)
            for t in placed
        ),
        static=static,
        dynamic=max((tile.end for tile in manual), default=0),
        working_set=working,
        reserved=RESERVED if is_a5 else 0,
        dcache=max(size - RESERVED - static - granted, LEAST_CACHE) if is_a5 else 0,
        peak=peak,
        needed_dyn_ub=needed,
        size=size,
        toolchain_size=TOOLCHAIN_SIZE if is_a5 else size,
    )


@dataclass
class Landlord:
    """Judges where tiles are put, as the kernel puts them there."""

    target: str
    ub: UnifiedBuffer
    dyn_ub: int
    told_budget: bool = False

    @property
    def limit(self) -> int:
        """One past the last byte that the program may use."""
        if self.target != "a5":
            return SIZE[self.target]
        if self.dyn_ub:
            static = covered([t for t in self.ub.tiles if t.is_placed and not t.is_manual])
            return min(static + self.dyn_ub, MOST_USABLE)
        return MOST_USABLE

    def judge(self, tile: UbTile, site: Site) -> list[Finding]:
        """What there is to say of a tile that has just been placed (or could not be)."""
        if self.target not in SIZE:
            return []
        told = []
        if tile.address % GRAIN:
            told.append(self._misaligned(tile, site))
        if tile.end > self.limit:
            told.append(self._past_the_end(tile, site))
        elif not self.told_budget and self.overflow() is not None and not self.dyn_ub:
            self.told_budget = True
            told.append(self._unasked(tile, site))
        return told

    def overflow(self) -> int | None:
        """The first byte that the board does not keep for the program, where the tiles need more than they have."""
        placed = [tile for tile in self.ub.tiles if tile.is_placed]
        if self.target == "a5" and not self.dyn_ub and covered(placed) > UNASKED:
            return self._address_of_byte(placed, UNASKED)
        if any(tile.end > self.limit for tile in placed):
            return self.limit
        return None

    @staticmethod
    def _address_of_byte(placed: list[UbTile], number: int) -> int:
        """The address of the n-th byte that belongs to some tile."""
        reach, left = 0, number
        for tile in sorted(placed, key=lambda one: one.address):
            low, high = max(tile.address, reach), tile.end
            if high - low > left:
                return low + left
            left -= max(high - low, 0)
            reach = max(reach, high)
        return reach

    def _tell(self, id_: str, tile: UbTile, site: Site, message: str, fix: str, **facts: Any) -> Finding:
        facts = {"tile": tile.name, "address": tile.address, "end": tile.end, **facts}
        return Finding(id_, Severity.ERROR, self.target, message, facts, site.where, fix)

    def _misaligned(self, tile: UbTile, site: Site) -> Finding:
        up = -(-tile.address // GRAIN) * GRAIN
        return self._tell(
            "PTO-M005",
            tile,
            site,
            f"{tile.name} lies at {tile.address:#x}; the address of a tile is a multiple of 32 bytes.",
            f"Place it at {tile.address // GRAIN * GRAIN:#x} or {up:#x}.",
        )

    def _past_the_end(self, tile: UbTile, site: Site) -> Finding:
        size, limit = SIZE[self.target], self.limit
        if self.target != "a5":
            what, fix = f"the unified buffer has {size} bytes", "Use smaller tiles, or process the data in chunks."
        elif self.dyn_ub and tile.end <= MOST_USABLE:
            what = f"the launch asked for dyn_ub={self.dyn_ub}"
            static = covered([t for t in self.ub.tiles if t.is_placed and not t.is_manual])
            fix = f"Launch with dyn_ub={needed_dyn_ub(tile.end, static)}."
        else:
            what = (
                f"a program may use {limit} of the {size} bytes ({TOOLCHAIN_SIZE} as some toolchains count); the rest "
                "is reserved or data cache"
            )
            fix = "Use smaller tiles, or process the data in chunks."
        return self._tell(
            "PTO-M006",
            tile,
            site,
            f"{tile.name} ends at {tile.end:#x} ({tile.end} bytes), and {what}: past {limit:#x} it overwrites what is "
            "not its own.",
            fix,
            limit=limit,
            size=size,
            toolchain_size=TOOLCHAIN_SIZE if self.target == "a5" else size,
        )

    def _unasked(self, tile: UbTile, site: Site) -> Finding:
        placed = [one for one in self.ub.tiles if one.is_placed]
        working = covered(placed)
        static = covered([one for one in placed if not one.is_manual])
        needed = needed_dyn_ub(max(one.end for one in placed), static)
        return self._tell(
            "PTO-M007",
            tile,
            site,
            f"with {tile.name} the tiles take {working} bytes; without dyn_ub the board keeps {UNASKED} (128 KiB) for "
            "them and corrupts the rest in silence.",
            f"Launch with dyn_ub={needed} (at most {MOST_USABLE} minus static memory).",
            working_set=working,
            needed_dyn_ub=needed,
        )


def judge_dyn_ub(target: str, dyn_ub: int) -> list[Finding]:
    """Whether the launch may ask for that much."""
    if not dyn_ub or target not in SIZE:
        return []
    if target != "a5":
        return [
            Finding(
                "PTO-M010",
                Severity.ERROR,
                target,
                f"dyn_ub={dyn_ub}: {target} has no dynamic part of the unified buffer, all of its {SIZE[target]} bytes "
                "are static.",
                {"dyn_ub": dyn_ub},
                None,
                "Leave dyn_ub out on this target.",
            )
        ]
    if dyn_ub > MOST_USABLE:
        return [
            Finding(
                "PTO-M009",
                Severity.ERROR,
                target,
                f"dyn_ub={dyn_ub} is more than the {MOST_USABLE} bytes (216 KiB) that a launch may ask for: 256 KiB "
                "less 8 KiB reserved and 32 KiB of data cache.",
                {"dyn_ub": dyn_ub, "most": MOST_USABLE},
                None,
                f"Ask for {MOST_USABLE} at most, less what is static.",
            )
        ]
    return []
