"""What the shadow of the unified buffer tells: bytes that nobody wrote, words of somebody else, tiles that collide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ptokit.access.plan import Array
from ptokit.core.block import Block
from ptokit.core.pipes import Instruction
from ptokit.core.regions import Region
from ptokit.core.ub import NOBODY, UbTile
from ptokit.dtypes import INDEX_TYPES
from ptokit.findings import Finding, Severity


def look(
    block: Block,
    instruction: Instruction,
    tile: UbTile,
    *,
    as_index: bool = False,
    part: Region | None = None,
) -> None:
    """An instruction reads a tile (or a part of it): are its bytes somebody's, and whose?"""
    if not block.checks.memory:
        return
    regions = tuple(tile.regions()) if part is None else (part,)
    if regions in tile.filled and not tile.aliases:
        return
    writer = _writers(block, regions)
    if len(writer) and not writer.all():
        block.tell(_unwritten(block, instruction, tile, writer == 0, as_index=as_index))
        return
    own = True
    for number in np.unique(writer) - 1:
        other = _written_tile(block, int(number))
        if other is None or other is tile:
            continue
        own = False
        finding = _foreign(block, instruction, tile, other, int(number), as_index=as_index)
        if finding is not None:
            block.tell(finding)
            return
    if own and not tile.aliases:
        tile.filled.add(regions)


def _writers(block: Block, regions: Sequence[Region]) -> Array:
    return np.concatenate([region.of(block.ub.writer).ravel() for region in regions] or [np.zeros(0, np.int32)])


def words_written_by(block: Block, tile: UbTile) -> Array:
    """Per element of the whole tile: the instruction that wrote its first byte last, in the order of the program."""
    size = tile.dtype.itemsize
    return np.asarray(block.ub.writer[tile.address : tile.end : size] - 1)


def _written_tile(block: Block, number: int) -> UbTile | None:
    written = block.instructions[number].facts.get("writes")
    return written if isinstance(written, UbTile) else None


def _finding(
    block: Block, id_: str, severity: Severity, instruction: Instruction, message: str, fix: str, **facts: Any
) -> Finding:
    facts = {"block": block.number, **facts}
    return Finding(id_, severity, block.target, message, facts, instruction.site.where, fix)


def _unwritten(block: Block, instruction: Instruction, tile: UbTile, unwritten: Array, *, as_index: bool) -> Finding:
    count, first = int(unwritten.sum()), int(unwritten.argmax())
    of = f"{count} of the {len(unwritten)} bytes"
    if as_index:
        size = tile.dtype.itemsize
        words = np.asarray(unwritten.reshape(-1, size).any(axis=1))
        return _finding(
            block,
            "PTO-M002",
            Severity.ERROR,
            instruction,
            f"{instruction.name} takes indices from {tile.name}, and {int(words.sum())} of its {len(words)} words were "
            f"never written, the first is number {int(words.argmax())}: garbage becomes an index.",
            "Load or compute every index before the call, or narrow the valid extents of the index tile.",
            tile=tile.name,
            bytes=count,
            first_byte=first,
        )
    return _finding(
        block,
        "PTO-M001",
        Severity.WARNING,
        instruction,
        f"{instruction.name} reads {tile.name}, and {of} were never written.",
        "Write the tile first (TLOAD, TEXPANDS), or narrow its valid extents.",
        tile=tile.name,
        bytes=count,
        first_byte=first,
    )


def _foreign(
    block: Block, instruction: Instruction, tile: UbTile, other: UbTile, number: int, *, as_index: bool
) -> Finding | None:
    """Bytes that were last written through another tile."""
    writer = block.instructions[number]
    facts = {"tile": tile.name, "other": other.name, "written_by": writer.name, "line": writer.site.line}
    there = writer.facts.get("writes_at", other.address)
    same_place = there == tile.address
    if same_place and other.nbytes == tile.nbytes and not as_index:
        return None  # two views of one place
    if tile.first_write != NOBODY and number > tile.first_write:
        return _finding(
            block,
            "PTO-M004",
            Severity.ERROR,
            instruction,
            f"{instruction.name} reads {tile.name} (at {tile.address:#x}), but {writer.name} at {writer.site} has "
            f"written {other.name} (at {there:#x}) over it: both are live, and they overlap.",
            f"Place {other.name} elsewhere; {tile.name} ends at {tile.end:#x}.",
            **facts,
        )
    if as_index and not (same_place and other.dtype.name in INDEX_TYPES):
        return _finding(
            block,
            "PTO-M003",
            Severity.ERROR,
            instruction,
            f"{instruction.name} takes indices from {tile.name}, and they are what {writer.name} at {writer.site} "
            f"left there of {other.name}.",
            "Load or compute the indices into their own tile before the call.",
            **facts,
        )
    if not as_index and not same_place:
        return _finding(
            block,
            "PTO-M008",
            Severity.WARNING,
            instruction,
            f"{instruction.name} reads {tile.name}, which nothing wrote: its bytes are what {writer.name} at "
            f"{writer.site} left there of {other.name}.",
            f"Write {tile.name} first, or place it where {other.name} is if that is what is meant.",
            **facts,
        )
    return None


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
