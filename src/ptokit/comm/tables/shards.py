"""The files of a table: one for each shard, and a manifest that says which belong together.

A save writes new files beside the old ones; then the new manifest takes the place of the old one in one step. Whoever
reads has the one or the other, and a save that is interrupted leaves the one before.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import mmap
import os
import re
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from pathlib import Path

import numpy as np

from ptokit.comm.faults import Peer, error
from ptokit.comm.rank import Rank
from ptokit.comm.tables.routing import Array, Blocks
from ptokit.comm.words import Bytes
from ptokit.dtypes import ELEMENT_TYPES, ElementType, element_type

MANIFEST = "manifest.json"
LOCK = "lock"
FORMAT = "ptokit-sharded-table"
VERSION = 1
CHECKSUM = "sha256"
"""So that `sha256sum` can be asked too."""
PIECE = 1 << 24
"""Bytes that are read or written at once."""

SAVED, OPEN, CLOSED = "saved", "open", "closed"
"""What a folder holds: a save, or the memory-mapped shards of a table, in use or not."""

FILE_NAME = re.compile(r"shard-\d{5}\.[0-9a-f]{16}\.bin")


@dataclass(frozen=True)
class Shard:
    """A file of a table: so many rows from `first` on; a mapped one has no checksum."""

    file: str
    first: int
    rows: int
    nbytes: int
    sha256: str | None


@dataclass(frozen=True)
class Manifest:
    """What a folder holds."""

    token: str
    rows: int
    width: int
    dtype: str
    state: str
    shards: tuple[Shard, ...]
    format: str = FORMAT
    version: int = VERSION
    byte_order: str = "little"
    checksum: str = CHECKSUM

    @property
    def blocks(self) -> Blocks:
        """The rows of each shard."""
        return Blocks(tuple(shard.rows for shard in self.shards))

    @property
    def element(self) -> ElementType:
        """The type of its elements."""
        return element_type(self.dtype)

    @property
    def row_bytes(self) -> int:
        """Of one row."""
        return self.width * self.element.itemsize

    def text(self) -> str:
        """As the file has it."""
        return json.dumps(asdict(self), indent=1) + "\n"


def manifest_of(
    token: str, width: int, element: ElementType, blocks: Blocks, state: str, checksums: Sequence[str | None] = ()
) -> Manifest:
    """One file for each block; no two tables, and no two saves, have the same token."""
    row_bytes = width * element.itemsize
    parts = zip_longest(blocks.firsts, blocks.counts, checksums)
    shards = tuple(
        Shard(f"shard-{rank:05}.{token}.bin", first, rows, rows * row_bytes, checksum)
        for rank, (first, rows, checksum) in enumerate(parts)
    )
    return Manifest(token, blocks.rows, width, element.name, state, shards)


# The manifest


def read_manifest(folder: Path, peer: Peer) -> Manifest:
    """What the folder holds, or an error that says what is wrong with it."""
    text = read_text(folder)
    if text is None:
        raise cannot(peer, folder, f"holds no table: there is no {MANIFEST} in it")
    return parsed(text, folder, peer)


def read_text(folder: Path) -> str | None:
    """The manifest as it stands there; None: no manifest."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return (folder / MANIFEST).read_text("utf-8")
    return None


def parsed(text: str, folder: Path, peer: Peer) -> Manifest:
    """A manifest that holds together."""
    try:
        given = json.loads(text)
        if (given["format"], given["version"]) != (FORMAT, VERSION):
            raise cannot(
                peer, folder, f"holds {given['format']} version {given['version']}; this is {FORMAT} version {VERSION}"
            )
        given["shards"] = tuple(Shard(**shard) for shard in given["shards"])
        found = Manifest(**given)
        wrong = _contradiction(found)
    except (ValueError, KeyError, TypeError, AttributeError) as broken:
        wrong = f"{type(broken).__name__}: {broken}"
    if wrong:
        raise damaged(peer, folder / MANIFEST, f"it is no manifest of a table ({wrong})")
    return found


def _contradiction(found: Manifest) -> str:
    """What in a manifest cannot be, or nothing."""
    if found.dtype not in ELEMENT_TYPES or found.state not in (SAVED, OPEN, CLOSED):
        return f"dtype {found.dtype!r}, state {found.state!r}"
    next_row = 0
    for shard in found.shards:
        if shard.first != next_row or shard.rows < 0 or shard.nbytes != shard.rows * found.row_bytes:
            return f"{shard.file!r} has rows {shard.first} to {shard.first + shard.rows} in {shard.nbytes} bytes"
        if not FILE_NAME.fullmatch(shard.file):
            return f"{shard.file!r} is no name of a shard"
        next_row += shard.rows
    return "" if next_row == found.rows else f"its shards have {next_row} rows, the table {found.rows}"


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """In one step: whoever reads has the old one or this one, whole."""
    draft = folder / f"{MANIFEST}.{manifest.token}"
    try:
        with draft.open("w", encoding="utf-8") as file:
            file.write(manifest.text())
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, folder / MANIFEST)  # noqa: PTH105 - the one step that everything hangs on
    finally:
        draft.unlink(missing_ok=True)
    with suppress(OSError):  # it is there; not every file system can promise that it survives a loss of power
        _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sweep(folder: Path, manifest: Manifest | None) -> None:
    """Remove the shards of other saves, finished or not; only while the folder is locked."""
    kept = {shard.file for shard in manifest.shards} if manifest else set()
    for path in folder.iterdir():
        stray = FILE_NAME.fullmatch(path.name) or path.name.startswith(f"{MANIFEST}.")
        if stray and path.name not in kept:
            with suppress(OSError):  # what cannot be removed does no harm
                path.unlink()


# Errors


def cannot(peer: Peer, folder: Path, why: str) -> Exception:
    """The folder is not what is wanted."""
    return error("PTO-R063", f"{peer}: {folder} {why}.", rank=peer.rank, folder=str(folder))


def damaged(peer: Peer, file: Path, why: str) -> Exception:
    """A file is not as it was written."""
    return error("PTO-R062", f"{peer} cannot use {file}: {why}.", rank=peer.rank, file=str(file))


# One world at a time


class FolderLock:
    """A folder in use. It goes with the object, and with the process; two readers may share it."""

    def __init__(self, folder: Path, peer: Peer, *, shared: bool = False) -> None:
        fd = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            raise cannot(peer, folder, "is in use: a table is mapped there, or being saved") from None
        self.release = weakref.finalize(self, os.close, fd)
        """Others may have it."""


# Shards in files


def write_shard(path: Path, rows: Array) -> str:
    """Write a shard and see it to the disk; return its checksum. What cannot be finished is removed."""
    memory: Bytes = rows.reshape(-1).view(np.uint8)
    digest = hashlib.new(CHECKSUM)
    try:
        with path.open("wb") as file:
            for start in range(0, memory.nbytes, PIECE):
                piece = memory[start : start + PIECE].tobytes()
                digest.update(piece)
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
    except OSError as refused:
        path.unlink(missing_ok=True)
        raise OSError(refused.errno, refused.strerror, str(path)) from None
    return digest.hexdigest()


@dataclass(frozen=True)
class Opened:
    """A shard that is being read: once it is open, a later save cannot take it away."""

    number: int
    shard: Shard
    path: Path
    fd: int

    def copy_rows(self, first: int, out: Array, row_bytes: int) -> bool:
        """The rows from `first` of the table on, as many as `out` has; False: the file ends before."""
        memory: Bytes = out.reshape(-1).view(np.uint8)
        start, done = (first - self.shard.first) * row_bytes, 0
        while done < memory.nbytes:
            got = os.preadv(self.fd, [memory[done : done + PIECE]], start + done)  # type: ignore[list-item]
            if not got:
                return False
            done += got
        return True

    def checksum(self) -> str:
        """Of all of it."""
        digest, at = hashlib.new(CHECKSUM), 0
        while piece := os.pread(self.fd, PIECE, at):
            digest.update(piece)
            at += len(piece)
        return digest.hexdigest()


@dataclass
class Reading:
    """The shards that one rank reads: those with rows of its own, and those that it verifies."""

    folder: Path
    manifest: Manifest
    rank: Rank
    lock: FolderLock | None = None
    opened: list[Opened] = field(default_factory=list)

    def verifies(self, number: int) -> bool:
        """Each shard is verified by one rank."""
        return number % self.rank.size == self.rank.rank

    def open(self, low: int, high: int) -> str:
        """Open what this rank needs for rows `low` to `high`; the first file that is not there, or nothing."""
        for number, shard in enumerate(self.manifest.shards):
            has_rows = max(low, shard.first) < min(high, shard.first + shard.rows)
            if has_rows or self.verifies(number):
                path = self.folder / shard.file
                try:
                    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                except FileNotFoundError:
                    return shard.file
                self.opened.append(Opened(number, shard, path, fd))
        return ""

    def must_be_whole(self) -> None:
        """Sizes of all that is read, checksums of what this rank verifies."""
        for one in self.opened:
            there, shard = os.fstat(one.fd).st_size, one.shard
            if there != shard.nbytes:
                raise self._damaged(one, f"it has {there} bytes, and the manifest says {shard.nbytes}")
            if shard.sha256 is not None and self.verifies(one.number) and (found := one.checksum()) != shard.sha256:
                raise self._damaged(one, f"its SHA-256 is {found}, and the manifest says {shard.sha256}")

    def fill(self, local: Array, first: int) -> None:
        """This rank's rows, from whichever shards have them."""
        for one in self.opened:
            low = max(first, one.shard.first)
            high = min(first + len(local), one.shard.first + one.shard.rows)
            if low < high and not one.copy_rows(low, local[low - first : high - first], self.manifest.row_bytes):
                raise self._damaged(one, "it ends before its last row")

    def _damaged(self, one: Opened, why: str) -> Exception:
        return damaged(self.rank.peers[self.rank.rank], one.path, why)

    def close(self) -> None:
        """Let go of the files."""
        for one in self.opened:
            os.close(one.fd)
        self.opened.clear()
        if self.lock is not None:
            self.lock.release()


# Shards that are mapped


def map_shard(path: Path, shape: tuple[int, int], element: ElementType, *, new: bool) -> tuple[Array, mmap.mmap | None]:
    """A shard that lives in a file. A new one has all of its room on the disk from the beginning.

    Without that, a full disk would end the process at some later write, without a word.
    """
    nbytes = shape[0] * shape[1] * element.itemsize
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if new else 0), 0o666)
    try:
        if new and nbytes:
            _reserve(fd, nbytes, path)
        view = mmap.mmap(fd, nbytes) if nbytes else None
    except OSError as refused:
        if new:
            path.unlink(missing_ok=True)
        raise OSError(refused.errno, refused.strerror, str(path)) from None
    finally:
        os.close(fd)
    if view is None:
        return np.empty(shape, element.numpy), None
    return np.frombuffer(view, np.uint8).view(element.numpy).reshape(shape), view


def _reserve(fd: int, nbytes: int, path: Path) -> None:
    try:
        os.posix_fallocate(fd, 0, nbytes)
    except OSError as refused:
        found = os.statvfs(path)
        left = found.f_bavail * found.f_frsize
        why = f"{refused.strerror}: {nbytes} bytes are needed, {left} are left"
        raise OSError(refused.errno, why) from None
