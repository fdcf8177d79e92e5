"""Kernels on the simulated core with every check on, beside the plain access path and plain NumPy.

Neither of those knows of pipes, of memory that nobody wrote, or of caches: they show what the checking costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import ptokit as pto
from benchmarks.frame import Contender, Workload

Array = np.ndarray[Any, Any]


def workloads(quick: bool) -> Iterator[Workload]:
    """Small tiles in a long loop, small scatters, and the largest scatter that fits."""
    yield pipeline(200 if quick else 1250)
    yield small_scatters(50 if quick else 500)
    yield largest_scatter()
    yield from single_checks(200 if quick else 1250)


def add_one(k: Any, x: Any, y: Any, rounds: int) -> None:
    """Load, add, store: eight instructions a round."""
    a, b = k.tile("float32", 16, 64), k.tile("float32", 16, 64)
    k.set_flag("MTE3", "V", 0)
    for _ in range(rounds):
        k.tload(a, x)
        k.set_flag("MTE2", "V", 0)
        k.wait_flag("MTE2", "V", 0)
        k.wait_flag("MTE3", "V", 0)
        k.tadds(b, a, 1.0)
        k.pipe_barrier("V")
        k.set_flag("V", "MTE3", 0)
        k.wait_flag("V", "MTE3", 0)
        k.set_flag("V", "MTE2", 1)
        k.wait_flag("V", "MTE2", 1)
        k.tstore(y, b)
        k.set_flag("MTE3", "V", 0)
    k.wait_flag("MTE3", "V", 0)


PER_ROUND = 12


def pipeline(rounds: int) -> Workload:
    """Instructions on small tiles: time for each."""
    x, y, plain = np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32), np.zeros((16, 64), np.float32)
    count = rounds * PER_ROUND

    def numpy_loop() -> None:
        a = np.empty_like(x)
        for _ in range(rounds):
            a[...] = x
            plain[...] = a + np.float32(1)

    def ours(schedule: str) -> Contender:
        return Contender(
            f"launch, {schedule}",
            lambda: pto.launch(add_one, x, y, rounds, schedule=schedule),
            None,
            lambda: y,
            ours=True,
        )

    title = f"{count} instructions on tiles of 16x64, all checks"
    contenders = (
        Contender("NumPy, the same arithmetic", numpy_loop, None, lambda: plain),
        ours("late"),
        ours("program"),
    )
    return Workload("C1", title, contenders, goal=f"25 us an instruction: {count * 25 / 1000:.0f} ms")


def single_checks(rounds: int) -> Iterator[Workload]:
    """The same with single checks turned off: where the time goes."""
    x, y = np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32)

    def without(name: str) -> Contender:
        checks = None if name == "nothing" else {one: False for one in ALL if name in (one, "all")}
        return Contender(
            f"without {name}", lambda: pto.launch(add_one, x, y, rounds, checks=checks), None, lambda: y, ours=True
        )

    contenders = tuple(without(name) for name in ("nothing", *ALL, "all"))
    yield Workload("C4", f"the loop of C1, {rounds * PER_ROUND} instructions, with checks turned off", contenders)


ALL = ("races", "memory", "budget", "coherence", "indices")


def scatter_often(k: Any, table: Any, grads: Any, rows: Any, rounds: int) -> None:
    """One load, many scatters."""
    g, i = k.tile("float32", 16, 64), k.tile("int32", 1, 16)
    k.tload(g, grads)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    for _ in range(rounds):
        k.mscatter(table, g, i, oob="skip")
    flush(k)


def flush(k: Any) -> None:
    """What the host needs to see it."""
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def small_scatters(rounds: int) -> Workload:
    """MSCATTER of 16 rows of 64 on a5, in a kernel and alone."""
    grads = np.random.default_rng(1).standard_normal((16, 64)).astype(np.float32)
    rows = np.random.default_rng(2).permutation(100)[:16].astype(np.int32)
    one, other = np.zeros((100, 64), np.float32), np.zeros((100, 64), np.float32)
    src, idx = pto.Tile("float32", 16, 64), pto.Tile("int32", 1, 16)
    src.store(grads)
    idx.store(rows[None])
    table = pto.GlobalTensor(other, "float32", (1, 1, 1, 100, 64))

    def alone() -> None:
        for _ in range(rounds):
            pto.mscatter(table, src, idx, oob="skip", target="a5")

    contenders = (
        Contender("pto.mscatter, no core", alone, lambda: other.fill(0), lambda: other),
        Contender(
            "launch, late",
            lambda: pto.launch(scatter_often, one, grads, rows, rounds, target="a5"),
            lambda: one.fill(0),
            lambda: one,
            ours=True,
        ),
    )
    goal = f"25 us more each: {rounds * 25 / 1000:.1f} ms more"
    return Workload("C2", f"{rounds} MSCATTER of 16x64 rows", contenders, goal=goal)


def largest_scatter() -> Workload:
    """27,648 float32 elements and as many indices: all of the 216 KiB."""
    rows, cols = 216, 128
    rng = np.random.default_rng(3)
    values = rng.standard_normal((rows, cols)).astype(np.float32)
    places = rng.integers(0, 1 << 20, (rows, cols)).astype(np.int32)
    one, other = np.zeros(1 << 20, np.float32), np.zeros(1 << 20, np.float32)
    src, idx = pto.Tile("float32", rows, cols), pto.Tile("int32", rows, cols)
    src.store(values)
    idx.store(places)
    table = pto.GlobalTensor(other, "float32", (1, 1, 1, 1, 1 << 20))

    def kernel(k: Any, out: Any, v: Any, p: Any) -> None:
        s, i = k.tile("float32", rows, cols, at=0), k.tile("int32", rows, cols, at=rows * cols * 4)
        k.tload(s, v)
        k.tload(i, p)
        k.set_flag("MTE2", "V", 0)
        k.wait_flag("MTE2", "V", 0)
        k.mscatter(out, s, i, coalesce="elem", oob="skip")
        flush(k)

    def alone() -> Callable[[], object]:
        return lambda: pto.mscatter(table, src, idx, coalesce="elem", oob="skip", target="a5")

    contenders = (
        Contender("pto.mscatter, no core", alone(), lambda: other.fill(0), lambda: other),
        Contender(
            "launch, late",
            lambda: pto.launch(kernel, one, values, places, target="a5", dyn_ub=216 << 10),
            lambda: one.fill(0),
            lambda: one,
            ours=True,
        ),
    )
    return Workload("C3", "MSCATTER Elem of 27,648 elements, the whole of 216 KiB", contenders, goal="5 ms")
