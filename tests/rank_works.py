"""What a rank of a launched world does in the tests of engines: `rank_works.py OUT NAME...` writes all results."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import ptokit as pto

SIZE = 70_000


def refusal(call: Any, *args: Any) -> str:
    """The id of the error of a call, or what came back."""
    try:
        return f"went through: {call(*args)!r}"
    except (pto.comm.RankError, pto.IllegalInstruction) as refused:
        return refused.findings[0].id


def knows(rank: Any) -> Any:
    peers = rank.exchange((rank.rank, os.getpid()))
    return pto.comm.world() is rank, [(one.rank, one.pid) for one in rank.peers] == peers, rank.engine


def exchanges(rank: Any) -> Any:
    turns = [rank.exchange((turn, rank.rank)) == [(turn, r) for r in range(rank.size)] for turn in range(30)]
    long = rank.exchange(bytes([rank.rank]) * (1 + 3000 * rank.rank))
    return all(turns), long == [bytes([r]) * (1 + 3000 * r) for r in range(rank.size)]


def barriers(rank: Any) -> Any:
    if rank.rank == rank.size - 1:
        time.sleep(0.2)
    come = time.monotonic()
    rank.barrier()
    return rank.rank == rank.size - 1 or time.monotonic() - come > 0.1


def sends_to_all(rank: Any) -> Any:
    n, found = rank.size, []
    for turn in (1, 5_000, 0):
        parts = [np.full(turn * (rank.rank + 2 * to), 16 * rank.rank + to, np.uint8) for to in range(n)]
        got = [part.tolist() for part in rank.transport.alltoallv(parts)]
        found.append(got == [[16 * r + rank.rank] * (turn * (r + 2 * rank.rank)) for r in range(n)])
    return found


def signals(rank: Any) -> Any:
    t, n = rank.transport, rank.size
    for _ in range(20):
        t.notify(0, 5, 1, adds=True)
    for to in range(n):
        t.notify(to, 7 + rank.rank, 70 + rank.rank)
    seen = [t.wait(7 + r, lambda seen: seen != 0) for r in range(n)]
    total = t.wait(5, lambda seen: seen >= 20 * n) if rank.rank == 0 else 20 * n
    return seen == [70 + r for r in range(n)], total == 20 * n, t.test(6, lambda seen: seen == 0)


def of_rank(rank: int, nbytes: int) -> Any:
    """Bytes that only this rank has."""
    return np.random.default_rng(rank).integers(0, 256, nbytes).astype(np.uint8)


def moves(rank: Any, own: Any) -> Any:
    """Every rank puts into every rank, whole and in runs, even and uneven; all memory is compared."""
    n, t = rank.size, rank.transport
    own[:] = 255 - rank.rank
    window = t.window(own[1000:-1000])
    rank.barrier()
    even, uneven = np.arange(50) * 64 + rank.rank * 16, np.array([300, 40, 1700, 990]) + rank.rank * 4_000
    for to in range(n):
        window.put(to, 40_000 + 500 * rank.rank, of_rank(rank.rank, 500))
        window.reaches[to].put_runs(even, 7, of_rank(rank.rank, 350))
        window.reaches[to].put_runs(uneven + 20_000, 3, of_rank(rank.rank, 12))
    rank.barrier()
    wanted = np.full(SIZE, 255 - rank.rank, np.uint8)
    for r in range(n):
        inner = wanted[1000:-1000]
        inner[40_000 + 500 * r : 40_500 + 500 * r] = of_rank(r, 500)
        for k in range(50):
            inner[k * 64 + r * 16 :][:7] = of_rank(r, 350)[7 * k : 7 * k + 7]
        for k, start in enumerate((300, 40, 1700, 990)):
            inner[20_000 + start + r * 4_000 :][:3] = of_rank(r, 12)[3 * k : 3 * k + 3]
    back = []
    for to in range(n):
        part, runs = np.zeros(502, np.uint8), np.zeros(12, np.uint8)
        window.get(to, 39_999, part)
        window.reaches[to].get_runs(uneven + 20_000, 3, runs)
        back.append(part[0] == 255 - to and (part[1:501] == of_rank(0, 500)).all())
        back.append((runs == of_rank(rank.rank, 12)).all())
    rank.barrier()
    return bool((own == wanted).all()), [bool(one) for one in back]


def moves_shared(rank: Any) -> Any:
    return moves(rank, rank.zeros(SIZE, "uint8"))


def moves_ordinary(rank: Any) -> Any:
    return moves(rank, np.zeros(SIZE, np.uint8))


def moves_much(rank: Any) -> Any:
    """More than is copied on its way."""
    own = rank.zeros((3, 3_000_000), "uint8")
    window = rank.transport.window(own.reshape(-1))
    if rank.rank == 0:
        for to in range(rank.size):
            for row in range(3):
                window.put(to, row * 3_000_000, of_rank(row, 3_000_000))
                rank.transport.notify(to, 100 + row)
    rank.transport.wait(102, lambda seen: seen == 1)
    return [bool((own[row] == of_rank(row, 3_000_000)).all()) for row in range(3)]


def bounds(rank: Any) -> Any:
    """Nothing is moved past the end of what the other has registered, which is not as long for all."""
    own = rank.zeros(100 + 10 * rank.rank, "uint8")
    window = rank.transport.window(own)
    to = (rank.rank + 1) % rank.size
    end = 100 + 10 * to
    said = [refusal(window.put, to, end - 3, np.ones(4, np.uint8)), refusal(window.get, to, -1, np.ones(4, np.uint8))]
    window.put(to, end - 4, np.full(4, 9, np.uint8))
    rank.barrier()
    return said, own.tolist() == [0] * (own.size - 4) + [9] * 4


def freed(rank: Any) -> Any:
    """Memory that its rank has given back is not written to; what comes after it is."""
    window = rank.transport.window(rank.zeros(64, "uint8"))
    to = (rank.rank + 1) % rank.size
    window.free()
    rank.barrier()
    said = refusal(window.put, to, 0, np.ones(4, np.uint8))
    own = rank.zeros(64, "uint8")
    later = rank.transport.window(own)
    later.put(to, 0, np.full(64, 3, np.uint8))
    rank.barrier()
    return said, own.tolist() == [3] * 64


def groups(rank: Any) -> Any:
    own = rank.zeros((4, 8), "float32")
    own[:] = rank.rank
    group = rank.group(own, root=rank.size - 1)
    seen = [None if (one := group.tensor(r)) is None else float(one.memory[0]) for r in range(rank.size)]
    rank.barrier()
    return group.size, group.is_root == (rank.rank == rank.size - 1), seen


def collects(rank: Any) -> Any:
    """The rows of the last rank reach all, strided and packed, and come back."""
    n, root, found = rank.size, rank.size - 1, []
    whole = np.arange(n * 4 * 32, dtype=np.int32).reshape(n * 4, 32)
    for mode in ("fast", "tile"):
        for strided in (False, True):
            own = rank.zeros((4, 64 if strided else 32), "int32")
            part = own[:, :32]
            width = own.shape[1]
            tensor = pto.GlobalTensor(own, "int32", (1, 1, 1, 4, 32), (4 * width, 4 * width, 4 * width, width, 1))
            group = rank.group(tensor, root=root)
            ping, pong = (pto.Tile("int32", 2, 16) for _ in range(2))
            if rank.rank == root:
                pto.comm.tscatter(group, whole, ping, pong, mode=mode)
            rank.barrier()
            found.append(bool((part == whole[4 * rank.rank : 4 * rank.rank + 4]).all() and not own[:, 32:].any()))
            part *= 2
            rank.barrier()
            back = np.zeros_like(whole)
            if rank.rank == root:
                pto.comm.tgather(group, back, ping, pong, mode=mode)
            rank.barrier()
            found.append(bool((back == whole * 2).all()) or rank.rank != root)
            group.free()
    return found


def a_part(rank: Any, what: str) -> Any:
    """A rank's part of a group; that of the last rank is another where they are to differ."""
    last = rank.rank == rank.size - 1
    rows = 3 if what == "shapes" and last else 1 if what == "smaller" and last else 2
    own = rank.zeros((rows, 16), "int32" if what == "dtypes" and last else "float32")
    row = 16 if what == "strides" and last else 8
    return pto.GlobalTensor(own, own.dtype, (1, 1, 1, rows, 8), (16 * rows, 16 * rows, 16 * rows, row, 1))


def misuses(rank: Any) -> Any:
    """What is no collective: who is told, and by which id. Nothing is written by any of them."""
    n, ping, said = rank.size, pto.Tile("float32", 2, 8), {}
    source = np.ones((2 * n, 8), np.float32)
    said["roots differ"] = refusal(lambda: rank.group(a_part(rank, ""), root=rank.rank % 2) if n > 1 else None)
    said["no such root"] = refusal(lambda: rank.group(a_part(rank, ""), root=n))
    for what in ("shapes", "smaller", "dtypes", "strides", "fewer rows", "not the root", "two roots"):
        part = a_part(rank, what)
        group = rank.group(part, root=0)
        if what == "two roots" and rank.rank == 0:  # the other one is in the middle of its call
            word = rank.transport.layout.window_busy(group.window.slots[n - 1])
            before = rank.transport.exchange_word(n - 1, word, 0, n + 1)
            assert before == 0
        if rank.rank == (n - 1 if what == "not the root" else 0):
            rows = source[:-1] if what == "fewer rows" else source
            said[what] = refusal(lambda: pto.comm.tscatter(group, rows, ping))  # noqa: B023 - called at once
        rank.barrier()
        said.setdefault(f"{what} wrote nothing", not part.memory.any())
        group.free()
    return said


WORKS = (knows, exchanges, barriers, sends_to_all, signals, moves_shared, moves_ordinary, moves_much, bounds, freed)
WORKS += (groups, collects, misuses)


# Faults: rank 1 fails, the others come to a barrier


def raises(rank: Any) -> None:
    raise ValueError("this is not the way")


def exits(rank: Any) -> None:
    sys.exit(3)


def vanishes(rank: Any) -> None:
    os._exit(4)


def vanishes_quietly(rank: Any) -> None:
    os._exit(0)


def is_killed(rank: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def is_stopped(rank: Any) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def never_arrives(rank: Any) -> None:
    time.sleep(60)


def calls_another(rank: Any) -> None:
    rank.exchange(1)


def asks_for_too_much(rank: Any) -> None:
    rank.zeros(1 << 50, "uint8")


def rings_no_gate(rank: Any) -> None:
    """All ranks make this call; rank 1 has forgotten its gate."""
    group = rank.group(rank.zeros((2, 8), "int32"), root=0)
    pto.comm.register(group)
    gate = None if rank.rank == 1 else pto.comm.CcuGate(0x100 + 8 * rank.rank, 0b11)
    whole = np.arange(rank.size * 16, dtype=np.int32).reshape(2 * rank.size, 8)
    ping = pto.Tile("int32", 2 * rank.size, 8)
    pto.comm.tscatter(group, whole if rank.rank == 0 else None, ping, engine="ccu", gate=gate)
    rank.barrier()


def never_begins(rank: Any) -> None:
    time.sleep(60)


FAULTS = (raises, exits, vanishes, vanishes_quietly, is_killed, is_stopped, never_arrives, calls_another)
FAULTS += (asks_for_too_much, rings_no_gate)


def main(out: str, *names: str) -> None:
    known = {work.__name__: work for work in (*WORKS, *FAULTS, never_begins)}
    if names == ("never_begins",) and os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK")) == "1":
        never_begins(None)
    rank = pto.comm.world()
    results = {}
    for name in names:
        if known[name] in WORKS:
            results[name] = rank.exchange(known[name](rank))
        else:
            rank.barrier()  # all have joined
            if rank.rank == 1:
                Path(out).write_text(str(rank.peers[1]))
            if rank.rank == 1 or name == "rings_no_gate":
                known[name](rank)
            rank.barrier()
    if rank.rank == 0 and names[0] in {work.__name__ for work in WORKS}:
        Path(out).write_text(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
