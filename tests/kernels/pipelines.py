"""Loops over many tiles, and what keeps their pipes apart."""

import numpy as np

from kernels.frame import (
    Array,
    Case,
    any_indices,
    case,
    distinct_indices,
    gather_rows,
    numbers,
    scatter_rows,
)


def ping_pong_scatter(k, table, grads, rows):
    """The ping-pong loop: while one pair of tiles is scattered, the other is loaded; an event id for each."""
    g = [k.tile("float32", 16, 32, at=0x0000), k.tile("float32", 16, 32, at=0x0800)]
    i = [k.tile("int32", 1, 16, at=0x1000), k.tile("int32", 1, 16, at=0x1040)]
    k.set_flag("V", "MTE2", 0)
    k.set_flag("V", "MTE2", 1)
    for step in range(10):
        b, top = step % 2, 16 * step
        k.wait_flag("V", "MTE2", b)
        k.tload(g[b], grads[top : top + 16, :])
        k.tload(i[b], rows[0:1, top : top + 16])
        k.set_flag("MTE2", "V", b)
        k.wait_flag("MTE2", "V", b)
        k.mscatter(table, g[b], i[b], coalesce="row")
        k.set_flag("V", "MTE2", b)
    k.wait_flag("V", "MTE2", 0)
    k.wait_flag("V", "MTE2", 1)
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def ping_pong_scale(k, x, out):
    """Load, compute in place, store: a tile is loaded again when its store is through."""
    t = [k.tile("float32", 8, 32), k.tile("float32", 8, 32)]
    k.set_flag("MTE3", "MTE2", 0)
    k.set_flag("MTE3", "MTE2", 1)
    for step in range(6):
        b, top = step % 2, 8 * step
        k.wait_flag("MTE3", "MTE2", b)
        k.tload(t[b], x[top : top + 8, :])
        k.set_flag("MTE2", "V", b)
        k.wait_flag("MTE2", "V", b)
        k.tmuls(t[b], t[b], 2.0)
        k.tadds(t[b], t[b], -1.0)
        k.set_flag("V", "MTE3", b)
        k.wait_flag("V", "MTE3", b)
        k.tstore(out[top : top + 8, :], t[b])
        k.set_flag("MTE3", "MTE2", b)
    k.wait_flag("MTE3", "MTE2", 0)
    k.wait_flag("MTE3", "MTE2", 1)


def three_stages(k, a, b, out):
    """Load, compute, store with tiles of their own in each stage: four flags in every round."""
    left, right = k.tile("int32", 4, 16), k.tile("int32", 4, 16)
    result = k.tile("int32", 4, 16)
    k.set_flag("V", "MTE2", 0)
    k.set_flag("MTE3", "V", 0)
    for top in range(0, 20, 4):
        k.wait_flag("V", "MTE2", 0)
        k.tload(left, a[top : top + 4, :])
        k.tload(right, b[top : top + 4, :])
        k.set_flag("MTE2", "V", 0)
        k.wait_flag("MTE2", "V", 0)
        k.wait_flag("MTE3", "V", 0)
        k.tmax(result, left, right)
        k.set_flag("V", "MTE2", 0)
        k.set_flag("V", "MTE3", 0)
        k.wait_flag("V", "MTE3", 0)
        k.tstore(out[top : top + 4, :], result)
        k.set_flag("MTE3", "V", 0)
    k.wait_flag("V", "MTE2", 0)
    k.wait_flag("MTE3", "V", 0)


def prefetched_lookup(k, table, rows, out):
    """Lookup with the next indices on their way: event ids 1 and 2, since a gather needs id 0 for itself."""
    i = [k.tile("int32", 1, 16, at=0x0000), k.tile("int32", 1, 16, at=0x0040)]
    d = [k.tile("float32", 16, 16, at=0x0400), k.tile("float32", 16, 16, at=0x0800)]
    steps = 5
    k.tload(i[0], rows[0:1, :])
    k.set_flag("MTE2", "V", 1)
    for step in range(steps):
        b, other = step % 2, (step + 1) % 2
        mine, theirs = 1 + b, 1 + other
        if step + 1 < steps:
            if step > 0:
                k.wait_flag("V", "MTE2", theirs)
            k.tload(i[other], rows[step + 1 : step + 2, :])
            k.set_flag("MTE2", "V", theirs)
        k.wait_flag("MTE2", "V", mine)
        if step > 1:
            k.wait_flag("MTE3", "V", mine)
        k.mgather(d[b], table, i[b], coalesce="row")
        if step + 2 < steps:
            k.set_flag("V", "MTE2", mine)
        k.set_flag("V", "MTE3", mine)
        k.wait_flag("V", "MTE3", mine)
        k.tstore(out[16 * step : 16 * step + 16, :], d[b])
        if step + 2 < steps:
            k.set_flag("MTE3", "V", mine)


def partial_last_chunk(k, table, grads, rows, count):
    """Chunks of 16 rows, and a shorter one at the end: the valid extents change from chunk to chunk."""
    g = k.tile("float32", 16, 24, valid=(-1, 24))
    i = k.tile("int32", 1, 16, valid=(1, -1))
    for top in range(0, count, 16):
        size = min(16, count - top)
        g.set_valid(size, 24)
        i.set_valid(1, size)
        k.tload(g, grads[top : top + size, :])
        k.tload(i, rows[0:1, top : top + size])
        k.set_flag("MTE2", "V", 0)
        k.wait_flag("MTE2", "V", 0)
        k.mscatter(table, g, i, coalesce="row", atomic="add")
        k.set_flag("V", "MTE2", 0)
        k.wait_flag("V", "MTE2", 0)
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def events_instead_of_flags(k, table, grads, rows):
    """The same loop with events: each instruction names those that it waits for."""
    g = k.tile("float32", 8, 16)
    i = k.tile("int32", 1, 8)
    through = ()
    for top in range(0, 32, 8):
        loaded = k.tload(g, grads[top : top + 8, :], wait=through)
        indexed = k.tload(i, rows[0:1, top : top + 8], wait=through)
        through = (k.mscatter(table, g, i, coalesce="row", wait=(loaded, indexed)),)
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def lookup_with_events(k, table, rows, out):
    """Indices, gather, store: two events carry the order."""
    i = k.tile("int32", 1, 16)
    d = k.tile("float16", 16, 64)
    loaded = k.tload(i, rows)
    gathered = k.mgather(d, table, i, coalesce="row", oob="clamp", wait=(loaded,))
    k.tstore(out, d, wait=(gathered,))


def barriers_instead_of_flags(k, table, rows, out):
    """The cautious way: a barrier over all pipes before the gather, and before the store."""
    i = k.tile("int32", 1, 8)
    d = k.tile("float32", 8, 8)
    for step in range(3):
        k.tload(i, rows[step : step + 1, :])
        k.pipe_barrier("ALL")
        k.mgather(d, table, i, coalesce="row")
        k.tabs(d, d)
        k.pipe_barrier("ALL")
        k.tstore(out[8 * step : 8 * step + 8, :], d)


def accumulate_on_store(k, parts, total):
    """TSTORE that adds: the parts of a sum are stored over each other."""
    p = k.tile("float32", 4, 16)
    for part in range(4):
        k.tload(p, parts[4 * part : 4 * part + 4, :])
        k.set_flag("MTE2", "MTE3", 0)
        k.wait_flag("MTE2", "MTE3", 0)
        k.tstore(total, p, atomic="add")
        k.set_flag("MTE3", "MTE2", 0)
        k.wait_flag("MTE3", "MTE2", 0)


def _accumulated(table: Array, grads: Array, rows: Array, count: int) -> Array:
    return scatter_rows(table, grads[:count], rows[:count], merge=np.add)


CASES: list[Case] = [
    case(
        ping_pong_scatter,
        lambda: [numbers((50, 32)), numbers((160, 32), seed=1), any_indices((160,), 50, seed=2)],
        lambda args: {0: scatter_rows(*args)},
    ),
    case(
        ping_pong_scale,
        lambda: [numbers((48, 32)), numbers((48, 32), seed=1)],
        lambda args: {1: args[0] * np.float32(2) - np.float32(1)},
    ),
    case(
        three_stages,
        lambda: [
            numbers((20, 16), "int32"),
            numbers((20, 16), "int32", seed=1),
            numbers((20, 16), "int32", seed=2),
        ],
        lambda args: {2: np.maximum(args[0], args[1])},
    ),
    case(
        prefetched_lookup,
        lambda: [numbers((30, 16)), any_indices((5, 16), 30, seed=1), numbers((80, 16), seed=2)],
        lambda args: {2: gather_rows(args[0], args[1])},
    ),
    case(
        partial_last_chunk,
        lambda: [numbers((40, 24)), numbers((43, 24), seed=1), distinct_indices((43,), 60, seed=2) % 40, 43],
        lambda args: {0: _accumulated(*args)},
    ),
    case(
        events_instead_of_flags,
        lambda: [numbers((12, 16)), numbers((32, 16), seed=1), any_indices((32,), 12, seed=2)],
        lambda args: {0: scatter_rows(*args)},
    ),
    case(
        lookup_with_events,
        lambda: [
            numbers((10, 64), "float16"),
            any_indices((16,), 14, seed=1),
            numbers((16, 64), "float16", seed=2),
        ],
        lambda args: {2: gather_rows(args[0], args[1], oob="clamp")},
    ),
    case(
        barriers_instead_of_flags,
        lambda: [numbers((30, 8)), any_indices((3, 8), 30, seed=1), numbers((24, 8), seed=2)],
        lambda args: {2: np.abs(gather_rows(args[0], args[1]))},
    ),
    case(
        accumulate_on_store,
        lambda: [numbers((16, 16)), numbers((4, 16), seed=1)],
        lambda args: {1: args[1] + args[0].reshape(4, 4, 16).sum(axis=0)},
    ),
]
