"""Several instructions on the same data: reloads, two tables, kernels in parts, one place used twice."""

import numpy as np

from kernels.frame import (
    A2A3,
    Array,
    Case,
    any_indices,
    case,
    indices,
    numbers,
    replace,
    scatter_elems,
    scatter_rows,
)


def scatter_then_reload(k, table, values, where, out):
    """The same core reads what it has scattered: on a5 through flush and S->MTE2 pair."""
    v = k.tile("float32", 2, 16)
    i = k.tile("int32", 2, 16)
    t = k.tile("float32", 8, 16)
    k.tload(v, values)
    k.tload(i, where)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, v, i, coalesce="elem")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()
    k.set_flag("S", "MTE2", 0)
    k.wait_flag("S", "MTE2", 0)
    k.tload(t, table)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.tneg(t, t)
    k.set_flag("V", "MTE3", 0)
    k.wait_flag("V", "MTE3", 0)
    k.tstore(out, t)


def reload_rows_at_once(k, table, values, rows, out):
    """On a2a3 a Row scatter orders its DMAs before later loads and stores by itself, and needs no flush."""
    v = k.tile("float32", 8, 16)
    i = k.tile("int32", 1, 8)
    t = k.tile("float32", 20, 16)
    k.tload(v, values)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, v, i, coalesce="row", atomic="add")
    k.tload(t, table)
    k.set_flag("MTE2", "MTE3", 0)
    k.wait_flag("MTE2", "MTE3", 0)
    k.tstore(out, t)


def reload_elements_at_once(k, table, values, where, out):
    """On a2a3 an Elem scatter lets later loads see its scalar stores; the host still needs the flush."""
    v = k.tile("int16", 2, 16)
    i = k.tile("int32", 2, 16)
    t = k.tile("int16", 4, 16)
    k.tload(v, values)
    k.tload(i, where)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, v, i, coalesce="elem", atomic="add")
    k.tload(t, table)
    k.set_flag("MTE2", "MTE3", 0)
    k.wait_flag("MTE2", "MTE3", 0)
    k.tstore(out, t)
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def weights_and_moments(k, weights, moments, grads, halves, rows):
    """Two tables in one kernel: weights are replaced, moments in half precision accumulate."""
    w = k.tile("float32", 8, 32)
    m = k.tile("float16", 8, 32)
    i = k.tile("int32", 1, 8)
    k.tload(w, grads)
    k.tload(m, halves)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(weights, w, i, coalesce="row", oob="skip")
    k.mscatter(moments, m, i, coalesce="row", atomic="add", oob="skip")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def _pair(k, source, target, event):
    """One pipe waits for another."""
    k.set_flag(source, target, event)
    k.wait_flag(source, target, event)


def _flush(k):
    """What was stored on chip becomes what the host reads."""
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def with_small_functions(k, table, values, rows, live):
    """A kernel in parts: pairs and flush are functions, and chunks that are not live are left out."""
    v = k.tile("float32", 8, 8)
    i = k.tile("int32", 1, 8)

    def chunk(number):
        k.tload(v, values[8 * number : 8 * number + 8, :])
        k.tload(i, rows[number : number + 1, :])
        _pair(k, "MTE2", "V", 0)
        k.mscatter(table, v, i, coalesce="row", atomic="add" if number % 2 else "none")
        _pair(k, "V", "MTE2", 0)

    for number in range(6):
        if live >> number & 1:
            chunk(number)
    _flush(k)


def distances(k, points, centre, out):
    """Absolute and squared distances to a centre: a chain of vector operations, two results."""
    p = k.tile("float32", 8, 16)
    c = k.tile("float32", 8, 16)
    d = k.tile("float32", 8, 16)
    q = k.tile("float32", 8, 16)
    k.tload(p, points)
    k.tload(c, centre)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.tsub(d, p, c)
    k.tmul(q, d, d)
    k.tsqrt(d, q)
    k.tmov(p, d)
    k.tadd(p, p, q)
    k.set_flag("V", "MTE3", 4)
    k.wait_flag("V", "MTE3", 4)
    k.tstore(out, p)


def two_phases_in_one_place(k, table, grads, rows, halves, out):
    """UB used twice: when the scatter is through, tiles of another type take the place of its tiles."""
    g = k.tile("float32", 8, 32, at=0x000)
    i = k.tile("int32", 1, 8, at=0x400)
    h = k.tile("float16", 20, 32, at=0x000)
    k.tload(g, grads)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, g, i, coalesce="row")
    k.set_flag("V", "MTE2", 0)
    k.wait_flag("V", "MTE2", 0)
    k.tload(h, halves)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.tmaxs(h, h, 0.0)
    k.set_flag("V", "MTE3", 0)
    k.wait_flag("V", "MTE3", 0)
    k.tstore(out, h)
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def one_tile_in_two_places(k, x, out):
    """Ping-pong by TASSIGN: one tile object that changes its address; pipes and events by their long names."""
    t = k.tile("int16", 4, 32)
    for step in range(4):
        event, top = f"EVENT_ID{step % 2}", 4 * step
        k.tassign(t, 0x200 * (step % 2))
        if step > 1:
            k.wait_flag("PIPE_MTE3", "PIPE_MTE2", event)
        k.tload(t, x[top : top + 4, :])
        k.set_flag("PIPE_MTE2", "PIPE_V", event)
        k.wait_flag("PIPE_MTE2", "PIPE_V", event)
        k.tabs(t, t)
        k.set_flag("PIPE_V", "PIPE_MTE3", event)
        k.wait_flag("PIPE_V", "PIPE_MTE3", event)
        k.tstore(out[top : top + 4, :], t)
        if step < 2:
            k.set_flag("PIPE_MTE3", "PIPE_MTE2", event)


def _live_chunks(table: Array, values: Array, rows: Array, live: int) -> Array:
    after = table
    for number in range(6):
        if live >> number & 1:
            part = values[8 * number : 8 * number + 8]
            after = scatter_rows(after, part, rows[number], merge=np.add if number % 2 else replace)
    return after


CASES: list[Case] = [
    case(
        scatter_then_reload,
        lambda: [numbers((8, 16)), numbers((2, 16), seed=1), any_indices((2, 16), 128, seed=2), numbers((8, 16))],
        lambda args: {0: scatter_elems(*args[:3]), 3: -scatter_elems(*args[:3])},
    ),
    case(
        reload_rows_at_once,
        lambda: [numbers((20, 16)), numbers((8, 16), seed=1), indices(3, 19, 3, 0, 7, 8, 0, 3), numbers((20, 16))],
        lambda args: dict.fromkeys((0, 3), scatter_rows(*args[:3], merge=np.add)),
        A2A3,
    ),
    case(
        reload_elements_at_once,
        lambda: [
            numbers((4, 16), "int16"),
            numbers((2, 16), "int16", seed=1),
            any_indices((2, 16), 64, seed=2),
            numbers((4, 16), "int16", seed=3),
        ],
        lambda args: dict.fromkeys((0, 3), scatter_elems(*args[:3], merge=np.add)),
        A2A3,
    ),
    case(
        weights_and_moments,
        lambda: [
            numbers((20, 32)),
            numbers((20, 32), "float16", seed=1),
            numbers((8, 32), seed=2),
            numbers((8, 32), "float16", seed=3),
            indices(5, 19, 5, 20, 0, 7, 1, 5),
        ],
        lambda args: {
            0: scatter_rows(args[0], args[2], args[4]),
            1: scatter_rows(args[1], args[3], args[4], merge=np.add),
        },
    ),
    case(
        with_small_functions,
        lambda: [numbers((16, 8)), numbers((48, 8), seed=1), any_indices((6, 8), 16, seed=2), 0b101101],
        lambda args: {0: _live_chunks(*args)},
    ),
    case(
        distances,
        lambda: [numbers((8, 16)), numbers((8, 16), seed=1), numbers((8, 16), seed=2)],
        lambda args: {2: np.abs(args[0] - args[1]) + (args[0] - args[1]) ** 2},
    ),
    case(
        two_phases_in_one_place,
        lambda: [
            numbers((20, 32)),
            numbers((8, 32), seed=1),
            indices(5, 19, 5, 2, 0, 7, 1, 5),
            numbers((20, 32), "float16", seed=2),
            numbers((20, 32), "float16", seed=3),
        ],
        lambda args: {0: scatter_rows(*args[:3]), 4: np.maximum(args[3], np.float16(0))},
    ),
    case(
        one_tile_in_two_places,
        lambda: [numbers((16, 32), "int16"), numbers((16, 32), "int16", seed=1)],
        lambda args: {1: np.abs(args[0])},
    ),
]
