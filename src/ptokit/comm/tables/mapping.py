"""The folder of a table whose shards are memory-mapped: larger than memory, and there when the ranks are gone."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ptokit.comm.agree import together
from ptokit.comm.rank import Rank
from ptokit.comm.tables.routing import Array
from ptokit.comm.tables.shards import (
    CLOSED,
    MANIFEST,
    OPEN,
    SAVED,
    FolderLock,
    Manifest,
    Shard,
    cannot,
    damaged,
    map_shard,
    parsed,
    read_text,
    sweep,
    write_manifest,
)


@dataclass(eq=False)
class Mapping:
    """This rank's part of it. Rank 0 holds the lock and writes the manifest."""

    rank: Rank
    folder: Path
    manifest: Manifest
    local: Array
    view: mmap.mmap | None
    lock: FolderLock | None

    def flush(self) -> None:
        """What was written is on the disk."""
        if self.view is not None:
            self.view.flush()

    def close(self, table: str) -> None:
        """On the disk, and said to be: whoever opens it finds whole rows."""
        together(self.rank, table, "close()", self.flush, nbytes=self.local.nbytes)
        together(self.rank, table, "close()", self._say_closed)

    def _say_closed(self) -> None:
        if self.lock is not None:
            write_manifest(self.folder, replace(self.manifest, state=CLOSED))
            self.let_go()

    def let_go(self) -> None:
        """Of the lock; the manifest still says that the table is open."""
        if self.lock is not None:
            self.lock.release()

    def abandon(self) -> None:
        """The folder holds no table."""
        if self.lock is not None:
            (self.folder / MANIFEST).unlink(missing_ok=True)
            sweep(self.folder, None)
            self.let_go()


def open_mapping(
    rank: Rank, wanted: Manifest, folder: Path, fill: Callable[[Array, int], None], call: str, recover: bool
) -> Mapping:
    """The table of a folder, or a new one where the folder holds none."""
    peer = rank.peers[rank.rank]
    lock: FolderLock | None = None

    def prepare() -> Manifest | None:
        nonlocal lock
        if rank.rank:
            return None
        folder.mkdir(parents=True, exist_ok=True)
        lock = FolderLock(folder, peer)
        text = read_text(folder)
        return None if text is None else _usable(parsed(text, folder, peer), wanted, folder, rank, recover)

    try:
        found = together(rank, wanted.token, call, prepare)[0]
        manifest = found or wanted
        mine = manifest.shards[rank.rank]
        make = partial(_shard, rank, folder, manifest, mine, None if found else fill)
        local, view = _keep_own(rank, wanted.token, call, make, mine.nbytes)
        opened = Mapping(rank, folder, replace(manifest, state=OPEN), local, view, lock)
        together(rank, wanted.token, call, partial(_say_open, opened))
    except BaseException:
        if lock is not None:
            lock.release()
        raise
    return opened


def _usable(found: Manifest, wanted: Manifest, folder: Path, rank: Rank, recover: bool) -> Manifest:
    """The table of the folder is the one that is wanted, and was closed."""
    peer = rank.peers[rank.rank]
    if found.state == SAVED:
        raise cannot(peer, folder, "holds a save: ShardedTable.load(world, folder, into=another folder) maps a copy")
    theirs, ours = ((one.rows, one.width, one.dtype) for one in (found, wanted))
    if theirs != ours:
        told = " x ".join(map(str, theirs[:2]))
        raise cannot(peer, folder, f"holds a table of {told} {theirs[2]}, not {ours[0]} x {ours[1]} {ours[2]}")
    if found.blocks != wanted.blocks:
        raise cannot(
            peer,
            folder,
            f"holds shards of {list(found.blocks.counts)} rows, and {list(wanted.blocks.counts)} are wanted; "
            "ShardedTable.load(world, folder, into=another folder) shares them out anew",
        )
    if found.state == OPEN and not recover:
        raise cannot(
            peer,
            folder,
            "was not closed the last time, so that its rows may be from the middle of a scatter; load a save, or take "
            "them as they are with recover=True",
        )
    return found


def _shard(
    rank: Rank, folder: Path, manifest: Manifest, mine: Shard, fill: Callable[[Array, int], None] | None
) -> tuple[Array, mmap.mmap | None]:
    """This rank's shard, opened, or made and filled."""
    path, shape = folder / mine.file, (mine.rows, manifest.width)
    if fill is None:
        if not path.exists():
            raise damaged(rank.peers[rank.rank], path, "it is not there")
        if path.stat().st_size != mine.nbytes:
            there = path.stat().st_size
            raise damaged(rank.peers[rank.rank], path, f"it has {there} bytes, and the manifest says {mine.nbytes}")
        return map_shard(path, shape, manifest.element, new=False)
    local, view = map_shard(path, shape, manifest.element, new=True)
    try:
        fill(local, mine.first)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return local, view


def _keep_own(
    rank: Rank, table: str, call: str, make: Callable[[], tuple[Array, mmap.mmap | None]], nbytes: int
) -> tuple[Array, mmap.mmap | None]:
    """Do it on every rank, and keep what came of it here."""
    kept: list[tuple[Array, mmap.mmap | None]] = []
    together(rank, table, call, lambda: kept.append(make()), nbytes=nbytes)
    return kept[0]


def _say_open(opened: Mapping) -> None:
    if opened.lock is not None:
        write_manifest(opened.folder, opened.manifest)
        sweep(opened.folder, opened.manifest)
