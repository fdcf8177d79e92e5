"""Saving a table's shards and reading them back, on as many ranks as there are then."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from ptokit.comm.agree import together
from ptokit.comm.rank import Rank
from ptokit.comm.tables.routing import Array, Blocks
from ptokit.comm.tables.shards import (
    OPEN,
    SAVED,
    FolderLock,
    Manifest,
    Reading,
    cannot,
    damaged,
    parsed,
    read_manifest,
    read_text,
    sweep,
    write_manifest,
    write_shard,
)
from ptokit.errors import PtoTypeError, a_kind

ATTEMPTS = 8
"""How often a load begins anew because a save has just taken the place of what it was about to read."""


def a_folder(path: object) -> Path:
    """The folder that is meant."""
    if not isinstance(path, (str, Path)):
        raise PtoTypeError(f"path is {a_kind(path)}; the name of a folder is wanted")
    return Path(path)


# Saving


def save_rows(
    rank: Rank,
    table: str,
    path: str | Path,
    manifest: Callable[[str, Sequence[str | None]], Manifest],
    local: Callable[[], Array],
) -> None:
    """New files beside the old ones, then the new manifest in the place of the old one, then the old files go."""
    call = f"save({str(path)!r})"
    lock: FolderLock | None = None
    before: Manifest | None = None
    unfinished = False

    def begin() -> str:
        nonlocal lock, before
        folder = a_folder(path)
        local()
        if rank.rank == 0:
            folder.mkdir(parents=True, exist_ok=True)
            lock = FolderLock(folder, rank.peers[0])
            before = _replaceable(rank, folder)
        return secrets.token_hex(8)

    def finish() -> None:
        nonlocal unfinished
        if lock is not None:
            whole = manifest(token, checksums)
            write_manifest(Path(path), whole)
            unfinished = False
            sweep(Path(path), whole)

    try:
        token = together(rank, table, call, begin)[0]
        unfinished = True
        shards = manifest(token, ()).shards
        mine, most = Path(path) / shards[rank.rank].file, max(shard.nbytes for shard in shards)
        checksums = together(rank, table, call, lambda: write_shard(mine, local()), nbytes=most)
        together(rank, table, call, finish)
    finally:
        if lock is not None:
            if unfinished:
                sweep(Path(path), before)
            lock.release()


def _replaceable(rank: Rank, folder: Path) -> Manifest | None:
    """The save that a new one takes the place of, if there is one; nothing else may be replaced."""
    text, peer = read_text(folder), rank.peers[rank.rank]
    if text is None:
        return None
    found = parsed(text, folder, peer)
    if found.state != SAVED:
        raise cannot(peer, folder, "holds the memory-mapped shards of a table, which a save would replace")
    return found


# Loading


def open_save(rank: Rank, path: str | Path, blocks: object, into: str | Path | None) -> Reading:
    """The files that this rank reads, open and verified, each by one rank. No later save can take them away."""
    call, last = f"load({str(path)!r})", ""
    for _ in range(ATTEMPTS):
        reading = _looked(rank, call, path, into)
        try:
            missing = together(rank, "", call, partial(_open, rank, reading, blocks))
            if not any(missing):
                most = max(shard.nbytes for shard in reading.manifest.shards)
                together(rank, "", call, reading.must_be_whole, nbytes=most)
                return reading
        except BaseException:
            reading.close()
            raise
        reading.close()
        if reading.manifest.token == last:
            break
        last = reading.manifest.token
    first = next(number for number, name in enumerate(missing) if name)
    raise damaged(rank.peers[first], Path(path) / missing[first], "it is not there")


def _looked(rank: Rank, call: str, path: str | Path, into: str | Path | None) -> Reading:
    """What the folder holds, as rank 0 reads it for all."""
    lock: FolderLock | None = None
    peer = rank.peers[rank.rank]

    def look() -> Manifest | None:
        nonlocal lock
        folder = a_folder(path)
        if rank.rank:
            return None
        if into is not None and read_text(a_folder(into)) is not None:
            raise cannot(peer, a_folder(into), "holds a table already; into= wants a new folder")
        found = read_manifest(folder, peer)
        if found.state != SAVED:
            lock = FolderLock(folder, peer, shared=True)
            found = read_manifest(folder, peer)
        if found.state == OPEN:
            raise cannot(peer, folder, "was not closed: its rows may be from the middle of a scatter")
        return found

    try:
        found = together(rank, "", call, look)[0]
    except BaseException:
        if lock is not None:
            lock.release()
        raise
    assert found is not None
    return Reading(Path(path), found, rank, lock)


def _open(rank: Rank, reading: Reading, blocks: object) -> str:
    """Open what this rank verifies, and what has rows of its own."""
    shared = Blocks.given(blocks, reading.manifest.rows, rank.size)
    low = shared.firsts[rank.rank]
    return reading.open(low, low + shared.counts[rank.rank])
