"""The definition of MSCATTER and MGATHER with every index and conflict check, beside plain NumPy indexing.

NumPy does none of the checks and is no rival: it shows what the bare movement of the data costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import ptokit as pto
from benchmarks.frame import Contender, Workload

Array = np.ndarray[Any, Any]
Draw = Callable[[np.random.Generator, int, int], Array]

INDICES: dict[str, Draw] = {
    "every index once": lambda rng, count, most: rng.permutation(most)[:count],
    "uniform, with duplicates": lambda rng, count, most: rng.integers(0, most, count),
    "Zipf, with duplicates": lambda rng, count, most: (rng.zipf(1.3, count) - 1) % most,
    "some out of bounds": lambda rng, count, most: rng.integers(-most // 50, most + most // 50, count),
}


def workloads(quick: bool) -> Iterator[Workload]:
    """Elem 1024x1024 and Row 16384x256, on each target and with each kind of indices."""
    side = 256 if quick else 1024
    rows, width = (2048, 64) if quick else (16384, 256)
    for number, (kind, draw) in enumerate(INDICES.items()):
        yield _scatter(f"E{number}", f"Elem {side}x{side}, {kind}", "elem", (side, side), side * side, draw)
    for number, (kind, draw) in enumerate(INDICES.items()):
        yield _scatter(f"R{number}", f"Row {rows}x{width}, {kind}", "row", (rows, width), rows, draw)
    yield _gather("G0", f"MGATHER Elem {side}x{side}, some out of bounds", side)


def _operands(mode: str, shape: tuple[int, int], slots: int, draw: Draw) -> tuple[pto.Tile, pto.Tile, Array]:
    rng = np.random.default_rng(1)
    tile = pto.Tile("float32", *shape)
    tile.store(rng.standard_normal(shape, np.float32))
    idx = pto.Tile("int32", 1, shape[0]) if mode == "row" else pto.Tile("int32", *shape)
    idx.store(draw(rng, idx.rows * idx.cols, slots).reshape(idx.rows, idx.cols))
    return tile, idx, np.zeros((slots, shape[1] if mode == "row" else 1), np.float32)


def _scatter(id_: str, title: str, mode: str, shape: tuple[int, int], slots: int, draw: Draw) -> Workload:
    src, idx, start = _operands(mode, shape, slots, draw)
    contenders = [_plain_scatter(src, idx, start)]
    for target, atomic in (("a2a3", "none"), ("a5", "none"), ("a5", "add")):
        contenders.append(_our_scatter(src, idx, start, mode, target, atomic))
    return Workload(id_, title, tuple(contenders), nbytes=8 * shape[0] * shape[1])


def _our_scatter(src: pto.Tile, idx: pto.Tile, start: Array, mode: str, target: str, atomic: str) -> Contender:
    memory = start.copy()
    extents = (1, 1, 1, *start.shape) if mode == "row" else (1, 1, 1, 1, start.size)
    table = pto.GlobalTensor(memory, "float32", extents)
    return Contender(
        f"ptokit mscatter, {target}{', add' if atomic == 'add' else ''}",
        lambda: pto.mscatter(table, src, idx, coalesce=mode, atomic=atomic, oob="skip", target=target),
        prepare=lambda: memory.fill(0),
        result=lambda: memory,
        ours=True,
        comparable=atomic == "none",
    )


def _plain_scatter(src: pto.Tile, idx: pto.Tile, start: Array) -> Contender:
    memory, words, values = start.copy(), idx.load().ravel(), src.load()
    values = values if start.shape[1] > 1 else values.reshape(-1, 1)

    def run() -> None:
        inside = (words >= 0) & (words < len(memory))
        memory[words[inside]] = values[inside]

    return Contender("NumPy t[i] = s, unchecked", run, lambda: memory.fill(0), lambda: memory)


def _gather(id_: str, title: str, side: int) -> Workload:
    dst, idx, memory = _operands("elem", (side, side), side * side, INDICES["some out of bounds"])
    memory[:, 0] = np.arange(len(memory))
    table = pto.GlobalTensor(memory, "float32", (1, 1, 1, 1, side * side))
    words, flat, got = idx.load(), memory[:, 0], np.zeros((side, side), np.float32)

    def plain() -> None:
        inside = (words >= 0) & (words < flat.size)
        got[...] = np.where(inside, flat[np.where(inside, words, 0)], 0)

    def ours(target: str) -> Contender:
        return Contender(
            f"ptokit mgather, {target}",
            lambda: pto.mgather(dst, table, idx, coalesce="elem", oob="zero", target=target),
            result=dst.load,
            ours=True,
        )

    contenders = (Contender("NumPy t[i], unchecked", plain, result=lambda: got), ours("a2a3"), ours("a5"))
    return Workload(id_, title, contenders, nbytes=8 * side * side)
