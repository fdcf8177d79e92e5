"""How chunks follow one another through one staging tile, or two: when each load and each store begins and ends.

A chunk waits for its tile (the chunk that was there last must be stored), for its pipe, and for its data. All of that
is additions and maxima, so a whole slice is one small matrix of them, and N slices are a power of it: the time of
16,384 ranks takes as long to compute as that of 16.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.float64]

LOAD_FREE, STORE_FREE, DONE, DONE_BEFORE = range(4)
"""What a state holds: when either pipe is free, and when the last chunk and the one before it were done."""
START: Times = np.zeros(4)


@dataclass(frozen=True)
class Step:
    """What one chunk takes, in seconds: each pipe is busy for a while, and the data arrive a while later."""

    load: float
    load_wait: float
    store: float
    store_wait: float
    flag: float


@dataclass(frozen=True)
class Timed:
    """When one chunk did what."""

    load_start: float
    load_end: float
    loaded: float
    store_start: float
    store_end: float
    done: float


def walk(steps: Iterable[Step], tiles: int, state: Times = START) -> Iterator[Timed]:
    """Chunk by chunk, as the matrices have it: for pictures, and for those who want to check them.

    >>> [one.done for one in walk([Step(2.0, 0.0, 3.0, 0.0, 0.0)] * 3, tiles=2)]
    [5.0, 8.0, 11.0]
    """
    load_free, store_free, *done = (float(one) for one in state)
    for step in steps:
        load_start = max(load_free, done[tiles - 1])
        load_free = load_start + step.load
        loaded = load_free + step.load_wait
        store_start = max(loaded + step.flag, store_free)
        store_free = store_start + step.store
        done = [store_free + step.store_wait + step.flag, done[0]]
        yield Timed(load_start, load_free, loaded, store_start, store_free, done[0])


def matrix(step: Step, tiles: int) -> Times:
    """What one chunk makes of a state."""
    made = np.full((4, 4), -np.inf)
    tile = DONE + tiles - 1
    through = step.load + step.load_wait + step.flag + step.store
    made[LOAD_FREE, [LOAD_FREE, tile]] = step.load
    made[STORE_FREE, [LOAD_FREE, tile]] = through
    made[STORE_FREE, STORE_FREE] = step.store
    made[DONE] = made[STORE_FREE] + step.store_wait + step.flag
    made[DONE_BEFORE, DONE] = 0.0
    return made


NOTHING: Times = np.where(np.eye(4, dtype=bool), 0.0, -np.inf)


def then(first: Times, second: Times) -> Times:
    """What both make of a state, one after the other."""
    found: Times = (second[:, :, None] + first[None, :, :]).max(axis=1)
    return found


def repeated(once: Times, times: int) -> Times:
    """What so many of them make of a state."""
    made = NOTHING
    while times:
        if times & 1:
            made = then(made, once)
        once = then(once, once)
        times >>= 1
    return made


def after(made: Times, state: Times) -> Times:
    """The state after it; of many states at once, a row each."""
    found: Times = (made + state[..., None, :]).max(axis=-1)
    return found


def states(once: Times, state: Times, count: int) -> Times:
    """The states after 0, 1, 2 ... `count - 1` of them, a row each."""
    found = state[None, :]
    while len(found) < count:
        found = np.concatenate([found, after(repeated(once, len(found)), found)])
    return found[:count]
