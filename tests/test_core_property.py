"""Random straight-line kernels: what no finding speaks of gives one result under every schedule, that of plain lists.

A kernel is data, a list of instructions. `play` plays it on the simulated core; `naive` below plays it on lists of
words, one instruction after the other, and knows nothing of pipes, caches or the package.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import ptokit as pto
from launches import SCHEDULES, essence

EXAMPLES = int(os.environ.get("PTOKIT_EXAMPLES", "300"))
kernels = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

Step = tuple[Any, ...]
Words = list[int]


class Spot(NamedTuple):
    """A tile: where it lies in the unified buffer (in words), and its extents."""

    at: int
    rows: int
    cols: int
    valid: tuple[int, int]


class View(NamedTuple):
    """A part of a tensor: rows from `top`, columns from `left`."""

    tensor: str
    top: int
    left: int
    rows: int
    cols: int


TILES = {
    "a": Spot(0, 2, 8, (2, 8)),
    "b": Spot(16, 2, 8, (2, 8)),
    "c": Spot(8, 2, 8, (2, 8)),  # the second row of a, the first of b
    "d": Spot(32, 2, 8, (2, 5)),
    "e": Spot(48, 2, 8, (2, 5)),
    "row": Spot(64, 1, 8, (1, 2)),
    "one": Spot(40, 1, 8, (1, 2)),  # in the second row of d
    "scalar": Spot(72, 1, 8, (1, 1)),
    "lone": Spot(80, 1, 8, (1, 1)),
}
FIXED = {  # index tiles that nothing but the prologue writes: (place, the words)
    "rows": (Spot(96, 1, 8, (1, 2)), [3, 1]),
    "same": (Spot(104, 1, 8, (1, 2)), [2, 2]),
    "cells": (Spot(112, 2, 8, (2, 8)), [5, 6, 7, 8, 31, 30, 29, 28, 5, 0, 1, 2, 40, 3, 4, 9]),
    "few": (Spot(128, 2, 8, (2, 5)), [0, 19, 2, 2, 3, 0, 0, 0, 30, 4, 5, 6, 7, 0, 0, 0]),
    "cell": (Spot(144, 1, 8, (1, 1)), [11]),
}
SPOTS = TILES | {name: spot for name, (spot, _) in FIXED.items()}
TENSORS = {"t": (4, 8), "u": (4, 5), "v": (1, 2)}
VALID = {
    valid: [name for name, spot in TILES.items() if spot.valid == valid] for valid in [(2, 8), (2, 5), (1, 2), (1, 1)]
}
ALL_VALID = {valid: [name for name, spot in SPOTS.items() if spot.valid == valid] for valid in VALID}
VIEWS = {
    (2, 8): [View("t", top, 0, 2, 8) for top in range(3)],
    (2, 5): [View("t", 0, 3, 2, 5), View("t", 2, 0, 2, 5), View("u", 0, 0, 2, 5), View("u", 2, 0, 2, 5)],
    (1, 2): [View("v", 0, 0, 1, 2), View("t", 1, 2, 1, 2)],
    (1, 1): [View("v", 0, 1, 1, 1), View("u", 1, 1, 1, 1)],
}
PIPES = ("S", "V", "MTE2", "MTE3")
PIPE_OF = {"tload": "MTE2", "tstore": "MTE3", "set": "S", "copy": "S", "move": "S", "flush": "S", "barrier": "S"}


# The drawing


def numbers() -> st.SearchStrategy[int]:
    return st.sampled_from([0, 1, 2, 7, -1, 31, 100, 2**31 - 1, -(2**31)])


@st.composite
def accesses(draw: Any, indices: dict[tuple[int, int], list[str]]) -> Step:
    """MSCATTER or MGATHER, by rows or by elements; every index has somewhere to go."""
    op, coalesce = draw(st.sampled_from(["mscatter", "mgather"])), draw(st.sampled_from(["row", "elem"]))
    if coalesce == "row":
        valid, shape = draw(st.sampled_from([((2, 8), "t"), ((2, 5), "u")]))
        idx = draw(st.sampled_from(indices[1, 2]))
    else:
        valid, shape = draw(st.sampled_from(list(VALID))), draw(st.sampled_from(["t", "u"]))
        idx = draw(st.sampled_from(indices[valid] if valid in indices else indices[1, 2]))
    data = draw(st.sampled_from(VALID[valid]))
    oob = draw(st.sampled_from(["clamp", "wrap", "skip" if op == "mscatter" else "zero"]))
    atomic = draw(st.sampled_from(["none", "add"])) if op == "mscatter" else "none"
    return (op, shape, data, idx, coalesce, atomic, oob)


@st.composite
def instructions(draw: Any, indices: dict[tuple[int, int], list[str]]) -> Step:
    """One instruction that moves or computes."""
    valid = draw(st.sampled_from(list(VALID)))
    tile = st.sampled_from(VALID[valid])
    rows, cols = valid
    cell = st.tuples(st.integers(0, rows - 1), st.integers(0, cols - 1))
    word = draw(
        st.sampled_from(
            ["tload", "tstore", "texpands", "tadds", "tadd", "tmov", "tci", "set", "copy", "move", *["at"] * 6]
        )
    )
    match word:
        case "tload":
            return (word, draw(tile), draw(st.sampled_from(VIEWS[valid])))
        case "tstore":
            return (
                word,
                draw(st.sampled_from(VIEWS[valid])),
                draw(tile),
                draw(st.sampled_from(["none", "none", "add"])),
            )
        case "texpands" | "tci":
            return (word, draw(tile), draw(numbers()))
        case "tadds":
            return (word, draw(tile), draw(tile), draw(numbers()))
        case "tadd":
            return (word, draw(tile), draw(tile), draw(tile))
        case "tmov":
            return (word, draw(tile), draw(tile))
        case "set":
            return (word, draw(tile), *draw(cell), draw(numbers()))
        case "copy":  # from a tile to a tensor, by the scalar pipe
            return (word, draw(st.sampled_from(["t", "u"])), draw(st.integers(0, 19)), draw(tile), *draw(cell))
        case "move":  # from a tensor to a tile
            return (word, draw(tile), *draw(cell), draw(st.sampled_from(["t", "u"])), draw(st.integers(0, 19)))
    return draw(accesses(indices))


def orders() -> st.SearchStrategy[Step]:
    """Flags, barriers and flushes, most of them with a purpose."""
    flags = st.tuples(st.sampled_from(PIPES), st.sampled_from(PIPES), st.integers(0, 2)).filter(lambda f: f[0] != f[1])
    return st.one_of(
        flags.map(lambda flag: ("pair", *flag)),
        flags.map(lambda flag: ("set_flag", *flag)),
        flags.map(lambda flag: ("wait_flag", *flag)),
        st.sampled_from([("barrier",), ("flush",)]),
        st.sampled_from([("dcci",), ("dsb",)]),
    )


@st.composite
def programs(draw: Any, *, fixed_indices: bool = False) -> list[Step]:
    """A kernel. Mostly each instruction waits for the one before it; some of these waits are left out."""
    indices = {valid: [n for n in names if not fixed_indices or n in FIXED] for valid, names in ALL_VALID.items()}
    left_out = draw(st.sampled_from([0, 0, 1, 5]))
    stray = draw(st.sampled_from([0, 0, 3]))
    program: list[Step] = []
    last = ""
    for step in draw(st.lists(instructions(indices), min_size=1, max_size=9)):
        pipe = PIPE_OF.get(step[0], "V")
        if last not in ("", pipe) and draw(st.integers(0, 9)) >= left_out:
            program.append(("pair", last, pipe, draw(st.integers(1, 3))))
        if draw(st.integers(0, 9)) < stray:
            program.append(draw(orders()))
        if draw(st.integers(0, 3)) == 0 and left_out < 5:
            program += [("flush",), ("pair", "S", "MTE2", 4)]
        program.append(step)
        last = pipe
    return program if draw(st.integers(0, 9)) < stray else [*program, ("flush",)]


# On the simulated core


def play(k: Any, program: list[Step], t: Any, u: Any, v: Any) -> None:
    """The kernel: a prologue that fills the unified buffer, and then the program."""
    tensors = {"t": t, "u": u, "v": v}
    k.tci(k.tile("int32", 20, 8, at=0), 1000)
    tiles = {name: k.tile("int32", spot.rows, spot.cols, spot.valid, at=4 * spot.at) for name, spot in SPOTS.items()}
    k.pipe_barrier("ALL")
    for name, (spot, words) in FIXED.items():
        for at, word in enumerate(words):
            row, col = divmod(at, 8)
            if row < spot.valid[0] and col < spot.valid[1]:
                k.set(tiles[name], row, col, word)
    k.pipe_barrier("ALL")
    for step in program:
        PLAYS[step[0]](k, tiles, tensors, *step[1:])


def _view(tensors: dict[str, Any], view: View) -> Any:
    return tensors[view.tensor][view.top : view.top + view.rows, view.left : view.left + view.cols]


def _flush(k: Any, *_: Any) -> None:
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def _pair(k: Any, _x: Any, _g: Any, *flag: Any) -> None:
    k.set_flag(*flag)
    k.wait_flag(*flag)


PLAYS: dict[str, Callable[..., Any]] = {
    "tload": lambda k, x, g, tile, view: k.tload(x[tile], _view(g, view)),
    "tstore": lambda k, x, g, view, tile, atomic: k.tstore(_view(g, view), x[tile], atomic=atomic),
    "texpands": lambda k, x, g, tile, value: k.texpands(x[tile], value),
    "tci": lambda k, x, g, tile, value: k.tci(x[tile], value),
    "tadds": lambda k, x, g, dst, a, value: k.tadds(x[dst], x[a], value),
    "tadd": lambda k, x, g, dst, a, b: k.tadd(x[dst], x[a], x[b]),
    "tmov": lambda k, x, g, dst, a: k.tmov(x[dst], x[a]),
    "set": lambda k, x, g, tile, row, col, value: k.set(x[tile], row, col, value),
    "copy": lambda k, x, g, name, at, tile, row, col: k.store_scalar(g[name], at, k.get(x[tile], row, col)),
    "move": lambda k, x, g, tile, row, col, name, at: k.set(x[tile], row, col, k.load_scalar(g[name], at)),
    "mscatter": lambda k, x, g, name, data, idx, coalesce, atomic, oob: k.mscatter(
        g[name], x[data], x[idx], coalesce=coalesce, atomic=atomic, oob=oob
    ),
    "mgather": lambda k, x, g, name, data, idx, coalesce, _, oob: k.mgather(
        x[data], g[name], x[idx], coalesce=coalesce, oob=oob
    ),
    "pair": _pair,
    "set_flag": lambda k, x, g, *flag: k.set_flag(*flag),
    "wait_flag": lambda k, x, g, *flag: k.wait_flag(*flag),
    "barrier": lambda k, x, g: k.pipe_barrier("ALL"),
    "flush": _flush,
    "dcci": lambda k, x, g: k.dcci(),
    "dsb": lambda k, x, g: k.dsb(),
}


def launched(program: list[Step], target: str, schedule: str, seed: int) -> tuple[pto.Run, list[Words]]:
    arrays = [np.array(words, np.int32).reshape(TENSORS[name]) for name, words in start().items()]
    run = pto.launch(
        lambda k, *tensors: play(k, program, *tensors), *arrays, target=target, schedule=schedule, seed=seed
    )
    return run, [array.ravel().tolist() for array in arrays]


# On plain lists


def start() -> dict[str, Words]:
    return {
        name: [100 * (number + 1) + at for at in range(r * c)] for number, (name, (r, c)) in enumerate(TENSORS.items())
    }


def int32(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def naive(program: list[Step]) -> list[Words]:
    """One instruction after the other, on lists of words."""
    ub = [1000 + at for at in range(160)]
    memory = start()

    def cells(tile: str) -> list[int]:
        spot = SPOTS[tile]
        return [spot.at + spot.cols * r + c for r in range(spot.valid[0]) for c in range(spot.valid[1])]

    def places(view: View) -> list[int]:
        width = TENSORS[view.tensor][1]
        return [width * (view.top + r) + view.left + c for r in range(view.rows) for c in range(view.cols)]

    def values(tile: str) -> Words:
        return [ub[at] for at in cells(tile)]

    def write(tile: str, new: Words) -> None:
        for at, value in zip(cells(tile), new, strict=True):
            ub[at] = int32(value)

    def slot(word: int, capacity: int, oob: str) -> int | None:
        word %= 2**32
        if word < capacity:
            return word
        return {"clamp": capacity - 1, "wrap": word % capacity}.get(oob)

    for name, (spot, words) in FIXED.items():
        for at in cells(name):
            ub[at] = words[at - spot.at]
    for word, *rest in program:
        match word:
            case "tload":
                write(rest[0], [memory[rest[1].tensor][at] for at in places(rest[1])])
            case "tstore":
                view, tile, atomic = rest
                for at, value in zip(places(view), values(tile), strict=True):
                    memory[view.tensor][at] = int32(value + (memory[view.tensor][at] if atomic == "add" else 0))
            case "texpands":
                write(rest[0], [rest[1]] * len(cells(rest[0])))
            case "tci":
                write(rest[0], [rest[1] + at for at in range(len(cells(rest[0])))])
            case "tadds":
                write(rest[0], [value + rest[2] for value in values(rest[1])])
            case "tadd":
                write(rest[0], [a + b for a, b in zip(values(rest[1]), values(rest[2]), strict=True)])
            case "tmov":
                write(rest[0], values(rest[1]))
            case "set":
                tile, row, col, value = rest
                ub[SPOTS[tile].at + 8 * row + col] = value
            case "copy":
                name, at, tile, row, col = rest
                memory[name][at] = ub[SPOTS[tile].at + 8 * row + col]
            case "move":
                tile, row, col, name, at = rest
                ub[SPOTS[tile].at + 8 * row + col] = memory[name][at]
            case "mscatter" | "mgather":
                name, data, idx, coalesce, atomic, oob = rest
                width = TENSORS[name][1] if coalesce == "row" else 1
                table, spot = memory[name], SPOTS[data]
                lanes = [(r, c) for r in range(spot.valid[0]) for c in range(spot.valid[1])]
                words, new = values(idx), values(data)
                for number, (r, c) in enumerate(lanes):
                    found = slot(words[r if coalesce == "row" else number], len(table) // width, oob)
                    at = None if found is None else found * width + (c if coalesce == "row" else 0)
                    if word == "mgather":
                        new[number] = 0 if at is None else table[at]
                    elif at is not None:
                        table[at] = int32(new[number] + (table[at] if atomic == "add" else 0))
                if word == "mgather":
                    write(data, new)
    return list(memory.values())


# The properties


def has_order_findings(run: pto.Run) -> bool:
    return any(one.id[4] in "SH" and one.severity is not pto.Severity.NOTE for one in run.findings)


targets = st.sampled_from(["a2a3", "a5"])


@given(programs(), targets)
@kernels
def test_what_no_finding_speaks_of_is_the_same_under_every_schedule(program: list[Step], target: str) -> None:
    expected = naive(program)
    runs = [(schedule, *launched(program, target, schedule, seed)) for schedule, seed in SCHEDULES]
    assert not any(one.id[4] == "L" for _, run, _ in runs for one in run.findings), "the drawing draws legal kernels"
    assert len({has_order_findings(run) for _, run, _ in runs}) == 1, "one schedule has a finding, another has none"
    for schedule, run, held in runs:
        if not has_order_findings(run):
            note(f"{target}, {schedule}")
            assert held == expected
            assert [run.device(number).ravel().tolist() for number in range(3)] == expected


@given(programs(fixed_indices=True), targets)
@kernels
def test_findings_of_order_and_coherence_do_not_depend_on_the_schedule(program: list[Step], target: str) -> None:
    runs = [launched(program, target, schedule, seed)[0] for schedule, seed in (*SCHEDULES, ("random", 3))]
    found = [essence(run) for run in runs]
    assert all(one == found[0] for one in found)


@given(programs(), targets, st.integers(0, 5))
@settings(kernels, max_examples=EXAMPLES // 3)
def test_a_seed_gives_the_same_run_again(program: list[Step], target: str, seed: int) -> None:
    (run, held), (again, held_again) = (launched(program, target, "random", seed) for _ in range(2))
    assert held == held_again
    assert [one.as_dict() for one in run.findings] == [one.as_dict() for one in again.findings]
    assert run.cycles.total == again.cycles.total


@given(programs(), targets)
@settings(kernels, max_examples=EXAMPLES // 2)
def test_the_polite_order_is_the_naive_one_whatever_is_missing(program: list[Step], target: str) -> None:
    """Steps run as soon as they may: where no wait holds one back, that is the order of the program."""
    if any(word in ("set_flag", "wait_flag") for word, *_ in program):
        return
    run, _ = launched(program, target, "program", 0)
    if any(one.id in ("PTO-H004", "PTO-S003", "PTO-S012") for one in run.findings):
        return
    assert [run.device(number).ravel().tolist() for number in range(3)] == naive(program)


@given(programs())
@settings(kernels, max_examples=EXAMPLES // 3)
def test_on_cpu_every_kernel_of_vectors_and_transfers_is_the_naive_one(program: list[Step]) -> None:
    program = [step for step in program if step[0] not in ("mscatter", "mgather")]
    for schedule, seed in SCHEDULES:
        run, held = launched(program, "cpu", schedule, seed)
        assert not has_order_findings(run)
        assert held == naive(program)


def test_the_drawing_gives_clean_kernels_and_broken_ones() -> None:
    tally: dict[bool, int] = {True: 0, False: 0}
    words: set[str] = set()

    @given(programs(), targets)
    @settings(kernels, max_examples=200)
    def draw(program: list[Step], target: str) -> None:
        run, _ = launched(program, target, "program", 0)
        tally[has_order_findings(run)] += 1
        words.update(step[0] for step in program)

    draw()
    assert min(tally.values()) > 30, tally
    assert set(PLAYS) - words <= {"dcci", "dsb"}, "these two alone are drawn seldom"
