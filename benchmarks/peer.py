"""One rank of a measurement: does what it is told, together with the others, and says how long the root took.

`python -m ptokit.comm -n 4 -m benchmarks.peer local SOCKET`, or
`mpiexec -n 4 python -m mpi4py -m benchmarks.peer mpi SOCKET`.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Client
from pathlib import Path
from typing import Any

import numpy as np

import ptokit as pto
from ptokit.comm import Group, Rank

Array = np.ndarray[Any, Any]
WIDTH = 128
TILE_ROWS = 128
FOREVER = 3600.0


class Peer:
    """A rank, its part, and at the root all of the data."""

    def __init__(self, rank: Rank, kind: str, folder: Path) -> None:
        self.rank, self.kind = rank, kind
        self.group: Group | None = None
        self.part: Array = np.zeros(0, np.float32)
        self.whole = self.copied = self.part
        self.tiles: dict[str, Any] = {}
        self.others: Any = None
        if kind == "gloo":
            self.others = _gloo(rank, folder)
        if kind == "mpi":
            from mpi4py import MPI

            self.others = MPI.COMM_WORLD

    def prepare(self, nbytes: int) -> None:
        """Slices of so many bytes for each rank."""
        rows = nbytes // 4 // WIDTH
        if self.group is not None:
            self.group.free()
        self.part = self.rank.zeros((rows, WIDTH))
        self.group = self.rank.group(self.part)
        if self.rank.rank == 0:
            self.whole = np.random.default_rng(1).standard_normal((rows * self.rank.size, WIDTH), np.float32)
            self.copied = np.zeros_like(self.whole) if self.kind == "local" else self.part
        tile_rows = min(rows, TILE_ROWS)
        self.tiles = {mode: pto.Tile("float32", tile_rows, WIDTH) for mode in ("fast", "tile")}

    def clear(self) -> None:
        """Nothing of the last way is left."""
        self.part.fill(0)
        self.copied.fill(0)

    def run(self, way: str, calls: int) -> float:
        """Milliseconds of a call, as the root sees it."""
        once = WAYS[way](self)
        self.rank.barrier(FOREVER)
        start = time.perf_counter_ns()
        for _ in range(calls):
            once()
        taken = (time.perf_counter_ns() - start) / 1e6 / calls
        self.rank.barrier(FOREVER)
        return taken

    def result(self, way: str) -> Array:
        """What every rank has got, as digests."""
        got = [digest(self.part)]
        found = [one[0] for one in self.rank.exchange(got, FOREVER)]
        if way == "memcpy" and self.rank.rank == 0:
            found = [digest(piece) for piece in np.split(self.copied, self.rank.size)]
        return np.frombuffer(b"".join(found), np.uint8)


def digest(part: Array) -> bytes:
    """Of its bytes."""
    return hashlib.sha256(part.tobytes()).digest()


def _gloo(rank: Rank, folder: Path) -> Any:
    import torch.distributed as dist

    store = dist.FileStore(str(folder / "gloo"), rank.size)
    dist.init_process_group("gloo", store=store, rank=rank.rank, world_size=rank.size)
    return dist


def _nothing() -> None:
    """What the others do while the root alone works."""


def scattered(mode: str) -> Callable[[Peer], Callable[[], object]]:
    """TSCATTER: the root alone."""

    def of(peer: Peer) -> Callable[[], object]:
        if peer.rank.rank:
            return _nothing
        group, whole, tile, tscatter = peer.group, peer.whole, peer.tiles[mode], pto.comm.tscatter
        assert group is not None
        return lambda: tscatter(group, whole, tile, mode=mode)

    return of


def moved(peer: Peer) -> Callable[[], object]:
    """The part of TSCATTER behind its front door."""
    once = scattered("fast")(peer)
    if peer.rank.rank:
        return once
    once()
    assert peer.group is not None
    return peer.group.prepared["tscatter", "fast"].move


def copied(peer: Peer) -> Callable[[], object]:
    """The same bytes from one array of the root to another, by one thread."""
    if peer.rank.rank:
        return _nothing
    return lambda: np.copyto(peer.copied, peer.whole)


def by_gloo(peer: Peer) -> Callable[[], object]:
    """PyTorch's scatter: every rank calls it."""
    import torch

    part = torch.from_numpy(peer.part)
    pieces = list(torch.from_numpy(peer.whole).chunk(peer.rank.size)) if peer.rank.rank == 0 else None
    return lambda: peer.others.scatter(part, scatter_list=pieces, src=0)


def by_mpi(peer: Peer) -> Callable[[], object]:
    """MPI_Scatter: every rank calls it."""
    whole = peer.whole if peer.rank.rank == 0 else None
    return lambda: peer.others.Scatter(whole, peer.part, root=0)


WAYS: dict[str, Callable[[Peer], Callable[[], object]]] = {
    "fast": scattered("fast"),
    "tile": scattered("tile"),
    "mover": moved,
    "memcpy": copied,
    "gloo": by_gloo,
    "MPI_Scatter": by_mpi,
}


def main() -> None:
    """Do what the other end of the socket says, until it says stop."""
    kind, address = sys.argv[1:]
    rank = pto.comm.world(timeout=FOREVER)
    peer = Peer(rank, kind, Path(address).parent)
    line = Client(address, "AF_UNIX") if rank.rank == 0 else None
    while (told := rank.exchange(line.recv() if line else None)[0])[0] != "stop":
        answer = getattr(peer, told[0])(*told[1:])
        if line:
            line.send(answer)
    rank.barrier()
    if kind == "gloo":
        peer.others.destroy_process_group()


if __name__ == "__main__":
    main()
