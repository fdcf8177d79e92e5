"""What the shadow of the unified buffer tells: bytes that nobody wrote, words of somebody else, tiles that collide."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ptokit.access.plan import Array
from ptokit.core.block import Block
from ptokit.core.pipes import Instruction, Step, Touch
from ptokit.core.ub import NOBODY, UbTile
from ptokit.dtypes import INDEX_TYPES
from ptokit.findings import Finding, Severity

MANY_TILES = 32
"""With more tiles, looking at the bytes is cheaper than asking when each was written."""


@dataclass
class Shadow:
    """Who wrote each byte, in an order that the flags allow: the record of a block is gone through step by step."""

    block: Block
    writer: Array = field(init=False)
    """Per byte: 1 + the number of the instruction that wrote it last; 0 is nobody."""
    first_write: dict[int, int] = field(default_factory=dict)
    """Per tile: the first instruction that wrote it."""
    findings: list[Finding] = field(default_factory=list)
    version: int = 0
    """Counts the writes."""
    last_write: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """Per tile: where it lay when it was written last, and which write that was."""
    found_fine: dict[tuple[int, ...], int] = field(default_factory=dict)
    """Reads that had nothing to tell, and the version at which they were looked at."""

    def __post_init__(self) -> None:
        self.writer = np.zeros(self.block.ub.writer.shape, np.int32)  # not zeros_like, which touches every page

    def passed(self, step: Step) -> None:
        """A step reads, then it writes."""
        for touch in step.touches:
            if not touch.writes and isinstance(touch.what, UbTile):
                self._read(step.instruction, touch, touch.what)
        for touch in step.touches:
            if touch.writes and isinstance(touch.what, UbTile):
                self._written(step.instruction, touch, touch.what)

    def _written(self, instruction: Instruction, touch: Touch, tile: UbTile) -> None:
        for region in touch.regions:
            if region.places is None:
                region.of(self.writer)[...] = instruction.number + 1
                continue
            for start in region.places:
                self.writer[start : start + region.length] = instruction.number + 1
        self.first_write.setdefault(tile.number, instruction.number)
        self.version += 1
        self.last_write[tile.number] = (touch.address, touch.address + tile.nbytes, self.version)

    def _read(self, instruction: Instruction, touch: Touch, tile: UbTile) -> None:
        if not touch.regions:
            return
        low_byte, high_byte = touch.regions[0].low, touch.regions[-1].high
        key = (tile.number, touch.address, low_byte, high_byte, touch.regions[0].length)
        if self._is_unchanged(self.found_fine.get(key), low_byte, high_byte):
            return
        before = len(self.findings)
        self._look(instruction, touch, tile)
        if len(self.findings) == before:
            self.found_fine[key] = self.version

    def _is_unchanged(self, version: int | None, low: int, high: int) -> bool:
        """Nothing was written there since."""
        if version is None or len(self.last_write) > MANY_TILES:
            return False
        return not any(v > version and a < high and low < b for a, b, v in self.last_write.values())

    def _look(self, instruction: Instruction, touch: Touch, tile: UbTile) -> None:
        low_byte = touch.regions[0].low
        parts = [region.of(self.writer) for region in touch.regions if region.places is None]
        low, high = min((int(p.min()) for p in parts), default=1), max((int(p.max()) for p in parts), default=0)
        if low == 0:
            unwritten = np.concatenate([part.ravel() for part in parts]) == 0
            self.findings.append(_unwritten(self.block, instruction, tile, unwritten, as_index=touch.as_index))
            return
        numbers = [high] if low == high else np.unique(np.concatenate([part.ravel() for part in parts])).tolist()
        for number in numbers:
            written = _written_tiles(self.block, number - 1) if number else []
            if not written or any(other is tile for other, _ in written):
                continue
            finding = self._foreign(instruction, touch, tile, *_nearest(written, low_byte), number - 1)
            if finding is not None:
                self.findings.append(finding)
                return

    def _foreign(
        self, instruction: Instruction, touch: Touch, tile: UbTile, other: UbTile, there: int, number: int
    ) -> Finding | None:
        """Bytes that were last written through another tile."""
        writer = self.block.instructions[number]
        facts = {"tile": tile.name, "other": other.name, "written_by": writer.name, "line": writer.site.line}
        same_place = there == touch.address
        if same_place and other.nbytes == tile.nbytes and not touch.as_index:
            return None  # two views of one place
        if number > self.first_write.get(tile.number, number):
            return self.block.finding(
                "PTO-M004",
                Severity.ERROR,
                instruction.site,
                f"{instruction.name} reads {tile.name} (at {touch.address:#x}), but {writer.name} at {writer.site} has "
                f"written {other.name} (at {there:#x}) over it: both are live, and they overlap.",
                f"Place {other.name} elsewhere; {tile.name} ends at {touch.address + tile.nbytes:#x}.",
                **facts,
            )
        if touch.as_index and not (same_place and other.dtype.name in INDEX_TYPES):
            return self.block.finding(
                "PTO-M003",
                Severity.ERROR,
                instruction.site,
                f"{instruction.name} takes indices from {tile.name}, and they are what {writer.name} at {writer.site} "
                f"left there of {other.name}.",
                "Load or compute the indices into their own tile before the call.",
                **facts,
            )
        if not touch.as_index and not same_place:
            return self.block.finding(
                "PTO-M008",
                Severity.WARNING,
                instruction.site,
                f"{instruction.name} reads {tile.name}, which nothing wrote: its bytes are what {writer.name} at "
                f"{writer.site} left there of {other.name}.",
                f"Write {tile.name} first, or place it where {other.name} is if that is what is meant.",
                **facts,
            )
        return None


def words_written_by(block: Block, tile: UbTile) -> Array:
    """Per element of the whole tile: the instruction that wrote its first byte last, in the order of the program."""
    size = tile.dtype.itemsize
    return np.asarray(block.ub.writer[tile.address : tile.end : size] - 1)


def _written_tiles(block: Block, number: int) -> list[tuple[UbTile, int]]:
    """The tiles that an instruction wrote, and where each of them lay."""
    facts = block.instructions[number].facts
    written = facts.get("writes")
    several: dict[int, tuple[UbTile, int]] = facts.get("also_writes", {})
    own = [(written, facts.get("writes_at", written.address))] if isinstance(written, UbTile) else []
    return [*own, *several.values()]


def _nearest(written: list[tuple[UbTile, int]], low: int) -> tuple[UbTile, int]:
    """Of several tiles the one that lies where the reader looks."""
    return next((one for one in written if one[1] <= low < one[1] + one[0].nbytes), written[0])


def _unwritten(block: Block, instruction: Instruction, tile: UbTile, unwritten: Array, *, as_index: bool) -> Finding:
    count, first = int(unwritten.sum()), int(unwritten.argmax())
    of = f"{count} of the {len(unwritten)} bytes"
    if as_index:
        size = tile.dtype.itemsize
        words = np.asarray(unwritten.reshape(-1, size).any(axis=1))
        return block.finding(
            "PTO-M002",
            Severity.ERROR,
            instruction.site,
            f"{instruction.name} takes indices from {tile.name}, and {int(words.sum())} of its {len(words)} words were "
            f"never written, the first is number {int(words.argmax())}: garbage becomes an index.",
            "Load or compute every index before the call, or narrow the valid extents of the index tile.",
            tile=tile.name,
            bytes=count,
            first_byte=first,
        )
    return block.finding(
        "PTO-M001",
        Severity.WARNING,
        instruction.site,
        f"{instruction.name} reads {tile.name}, and {of} were never written.",
        "Write the tile first (TLOAD, TEXPANDS), or narrow its valid extents.",
        tile=tile.name,
        bytes=count,
        first_byte=first,
    )


def provenance(
    block: Block, idx: UbTile, written: Array, word: int, late: frozenset[int]
) -> tuple[str, dict[str, Any]]:
    """Which instruction wrote an index word, as a sentence and as facts."""
    address = idx.address + word * idx.dtype.itemsize
    if block.overflow is not None and address >= block.overflow:
        return f" The word lies at {address:#x}, past what the launch keeps for tiles.", {"written_by": None}
    number = int(written[word]) if 0 <= word < len(written) else NOBODY
    if number == NOBODY:
        return " Nothing ever wrote that word.", {"written_by": None}
    writer = block.instructions[number]
    facts = {"written_by": writer.name, "written_at": writer.site.line}
    if number in late:
        return f" {writer.name} at {writer.site} should have written that word, and had not landed.", facts
    return f" The word was written by {writer.name} at {writer.site}.", facts
