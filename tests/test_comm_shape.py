"""The model of many ranks beside the measured engine at 2 and 4 ranks: their shape, never their absolute times.

What is compared is the least of many turns, which other work on the machine leaves alone, and only where the model sees
a difference of a factor of 1.25 or more.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import ptokit as pto
from ptokit.comm.prices.pricing import predicted_order
from ranks import play

WIDTH, TILE = 128, (128, 128)
SMALL, LARGE = 128, 65_536
TURNS = 9


def measured(rank: Any, rows: int) -> dict[str, float]:
    """The least seconds of each way, as the root sees them; the others take part where they have to."""
    part = rank.zeros((rows, WIDTH))
    group = rank.group(part)
    pto.comm.register(group)
    whole = np.ones((rows * rank.size, WIDTH), np.float32) if rank.rank == 0 else None
    gate = pto.comm.CcuGate(8, 1)
    tiles = [pto.Tile("float32", *TILE) for _ in range(2)]
    ways: dict[str, Any] = {
        "single flat": lambda: pto.comm.tscatter(group, whole, tiles[0], mode="tile"),
        "pingpong flat": lambda: pto.comm.tscatter(group, whole, *tiles, mode="tile"),
    }
    least = dict.fromkeys([*ways, "ccu flat"], float("inf"))
    for _ in range(TURNS):
        for name, call in ways.items():
            if rank.rank == 0:
                call()  # the first of two ways with other operands works out its moves
                least[name] = min(least[name], seconds(call))
        rank.barrier()
        on_ccu = seconds(lambda: pto.comm.tscatter(group, whole, tiles[0], engine="ccu", gate=gate))
        least["ccu flat"] = min(least["ccu flat"], on_ccu)
    return least


def seconds(call: Any) -> float:
    """Of one call."""
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


@pytest.fixture(scope="module")
def engine() -> dict[tuple[int, int], dict[str, float]]:
    return {(n, rows): play(n, measured, rows, timeout=60)[0] for n in (2, 4) for rows in (SMALL, LARGE)}


def prices(rows: int) -> pto.comm.prices.pricing.Prices:
    return pto.comm.price(
        "tscatter", ranks=[2, 4], rows=rows, width=WIDTH, tile=TILE, target="a5", topology="flat", variant="all"
    )


@pytest.mark.parametrize("way", ["single flat", "pingpong flat", "ccu flat"])
def test_more_bytes_take_longer_in_the_model_and_on_the_engine(way: str, engine: Any) -> None:
    for n in (2, 4):
        modelled = [prices(rows)[way].at(n).seconds for rows in (SMALL, LARGE)]
        assert modelled[0] < modelled[1]
        assert engine[n, SMALL][way] < engine[n, LARGE][way]


@pytest.mark.parametrize("way", ["single flat", "pingpong flat", "ccu flat"])
def test_more_ranks_take_longer_in_the_model_and_on_the_engine(way: str, engine: Any) -> None:
    modelled = [prices(LARGE)[way].at(n).seconds for n in (2, 4)]
    assert modelled[0] < modelled[1]
    assert engine[2, LARGE][way] < engine[4, LARGE][way]


def test_the_engine_contradicts_no_order_that_the_model_sees(engine: Any) -> None:
    """The engine has neither two pipes nor a CCU, so that these win nothing there; they must not lose twice over."""
    for n in (2, 4):
        pairs = predicted_order(prices(LARGE), n)
        assert ("pingpong flat", "single flat") in pairs
        for faster, slower in pairs:
            assert engine[n, LARGE][faster] < 2 * engine[n, LARGE][slower], (n, faster, slower, engine)
