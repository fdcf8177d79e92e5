"""Sharded tables on 1, 2 and 4 ranks beside `pto.scatter` and `pto.gather` in one process: the same rows and bits.

On one machine sharding is for capacity: rows travel through memory once more, and ranks share its cores. What scales is
the work of a rank, which stands beside each line, with the bytes that were moved against the least that had to be.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from multiprocessing import Pipe
from typing import Any

import numpy as np

import ptokit as pto
from benchmarks.frame import Contender, Workload
from ptokit.comm import Rank, ShardedTable, local

Array = np.ndarray[Any, Any]

RANKS = (1, 2, 4)
WIDTH = 64


def workloads(quick: bool) -> Iterator[Workload]:
    """Every rank has its part of the lanes; together they are what the one process has."""
    rows, lanes = (1 << 12, 1 << 13) if quick else (1 << 20, 1 << 20)
    chance = np.random.default_rng(1)
    idx = chance.integers(0, rows, lanes)
    src = chance.standard_normal((lanes, WIDTH), np.float32)
    title = f"{lanes} rows of {WIDTH} float32, a table of {rows}"
    for id_, call, reads in (("S1", "add", 3), ("S2", "none", 2), ("S3", "gather", 2)):
        name = "gather of" if call == "gather" else f"scatter, atomic={call!r}, of"
        with ExitStack() as stack:
            teams = [stack.enter_context(Team(ranks, call, rows, idx, src)) for ranks in RANKS]
            contenders = (one_process(call, rows, idx, src), *(team.contender() for team in teams))
            yield Workload(id_, f"{name} {title}", contenders, nbytes=reads * src.nbytes)


def one_process(call: str, rows: int, idx: Array, src: Array) -> Contender:
    """What a table that is not shared out takes."""
    table, out = np.ones((rows, WIDTH), np.float32), np.empty_like(src)
    if call == "gather":
        return Contender("pto.gather, one process", lambda: pto.gather(table, idx, out=out), None, lambda: out)
    return Contender(
        f"pto.scatter, one process, {pto.get_num_threads()} threads",
        lambda: pto.scatter(table, src, idx, atomic=call),
        lambda: table.fill(1),
        lambda: table,
    )


class Team:
    """Ranks that stay, and do what they are told; starting processes is not measured."""

    def __init__(self, ranks: int, call: str, rows: int, idx: Array, src: Array) -> None:
        self.ranks, self.call, self.lanes = ranks, call, len(idx)
        pipes = [Pipe() for _ in range(ranks)]
        self.ends = [here for here, _ in pipes]
        self.taken: list[list[tuple[float, float]]] = []
        world = local(ranks, timeout=600)
        work = (serve, [there for _, there in pipes], call, rows, idx, src)
        self.thread = threading.Thread(target=world.run, args=work, daemon=True)

    def __enter__(self) -> Team:
        self.thread.start()
        self.ask("prepare")  # all of its ranks are there before the next team starts
        return self

    def __exit__(self, *_: object) -> None:
        for here in self.ends:
            here.send("stop")
        self.thread.join()

    def ask(self, what: str) -> list[Any]:
        """Every rank does it; what each gives back."""
        for here in self.ends:
            here.send(what)
        return [here.recv() for here in self.ends]

    def contender(self) -> Contender:
        """The ranks as one way to do the work."""
        name = f"ShardedTable, {self.ranks} rank{'s' * (self.ranks > 1)}"
        return Contender(name, self.run, lambda: self.ask("prepare"), self.result, ours=True, told=self.told)

    def run(self) -> None:
        self.taken.append(self.ask("run"))

    def result(self) -> Array:
        return np.concatenate(self.ask("result"))

    def told(self) -> str:
        """Rows a second, the processor time of the rank that had most to do, and the bytes of all."""
        rate = self.lanes / statistics.median(max(wall for wall, _ in turn) for turn in self.taken) / 1e6
        own = statistics.median(max(busy for _, busy in turn) for turn in self.taken) * 1e3
        moved, least = (sum(each) for each in zip(*self.ask("traffic"), strict=True))
        over = f"{moved / 1e6:.1f} MB moved, {moved / least:.3f} of the least" if least else "nothing moved"
        return f"{rate:.2f} M rows/s, {own:.1f} ms of a rank, {over}"


def serve(rank: Rank, ends: list[Any], call: str, rows: int, idx: Array, src: Array) -> None:
    """A rank's life."""
    pto.set_num_threads(max(1, pto.get_num_threads() // rank.size))
    share = slice(len(idx) * rank.rank // rank.size, len(idx) * (rank.rank + 1) // rank.size)
    mine, values, here = idx[share], src[share], ends[rank.rank]
    table = ShardedTable(rank, rows, WIDTH, fill=1)
    out: Array = values[:0]
    while (what := here.recv()) != "stop":
        if what == "prepare" and call != "gather":
            table.local.fill(1)
        answer: Any = None
        if what == "run":
            wall, busy = time.perf_counter(), time.process_time()
            if call == "gather":
                out = table.gather(mine)
            else:
                table.scatter(mine, values, atomic=call)
            answer = time.perf_counter() - wall, time.process_time() - busy
        if what == "result":
            answer = out if call == "gather" else table.local
        if what == "traffic":
            moved = table.last_traffic
            answer = sum(moved.sent), sum(moved.least_sent)
        here.send(answer)
