"""Gathers, alone and together with the scatter that brings the rows back."""

import numpy as np

from kernels.frame import (
    A2A3,
    A5,
    Case,
    any_indices,
    case,
    distinct_indices,
    from_nz,
    gather_elems,
    gather_rows,
    indices,
    numbers,
    scatter_rows,
    tensor,
    to_nz,
)


def embedding_lookup(k, table, rows, out):
    """Embedding lookup: the rows of a batch of tokens."""
    i = k.tile("int32", 1, 16, at=0x0000)
    d = k.tile("float32", 16, 32, at=0x0100)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mgather(d, table, i, coalesce="row")
    k.set_flag("V", "MTE3", 0)
    k.wait_flag("V", "MTE3", 0)
    k.tstore(out, d)


def lookup_with_padding_tokens(k, table, rows, out):
    """Embedding lookup in which an unknown token has a row of zeros; half precision."""
    i = k.tile("int32", 1, 24)
    d = k.tile("float16", 24, 16)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mgather(d, table, i, coalesce="row", oob="zero")
    k.set_flag("V", "MTE3", 0)
    k.wait_flag("V", "MTE3", 0)
    k.tstore(out, d)


def sparse_read(k, table, where, out):
    """Single elements of a sparse vector; what is not stored reads as zero."""
    i = k.tile("int32", 8, 24)
    d = k.tile("float32", 8, 24)
    k.tload(i, where)
    k.set_flag("MTE2", "V", 1)
    k.wait_flag("MTE2", "V", 1)
    k.mgather(d, table, i, coalesce="elem", oob="zero")
    k.set_flag("V", "MTE3", 1)
    k.wait_flag("V", "MTE3", 1)
    k.tstore(out, d)


def table_of_samples(k, samples, where, out):
    """A lookup table that continues with its last entry: indices clamp."""
    i = k.tile("uint32", 2, 32)
    d = k.tile("bfloat16", 2, 32)
    k.tload(i, where)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mgather(d, samples, i, coalesce="elem", oob="clamp")
    k.set_flag("V", "MTE3", 0)
    k.wait_flag("V", "MTE3", 0)
    k.tstore(out, d)


def periodic_rows(k, codes, rows, out):
    """Rows of a periodic code book of bytes: indices wrap."""
    i = k.tile("int32", 1, 16)
    d = k.tile("int8", 16, 64)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mgather(d, codes, i, coalesce="row", oob="wrap")
    k.set_flag("V", "MTE3", 0)
    k.wait_flag("V", "MTE3", 0)
    k.tstore(out, d)


def nz_lookup(k, table, rows, out):
    """Rows of a fractal weight, into a fractal tile."""
    i = k.tile("int32", 1, 16)
    d = k.tile("float32", 16, 24, layout="nz")
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mgather(d, table, i, coalesce="row", oob="zero")
    k.set_flag("V", "MTE3", 0)
    k.wait_flag("V", "MTE3", 0)
    k.tstore(out, d)


def lookup_into_columns(k, table, rows, out):
    """A lookup that transposes on its way: DN tile, column of indices."""
    i = k.tile("int32", 16, 1, layout="dn")
    d = k.tile("float32", 16, 6, layout="dn")
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mgather(d, table, i, coalesce="row", oob="clamp")
    k.set_flag("V", "MTE3", 0)
    k.wait_flag("V", "MTE3", 0)
    k.tstore(out, d)


def learn_in_place(k, table, rows):
    """Gather, compute, scatter: the rows of a batch decay and move by a step."""
    i = k.tile("int32", 1, 16)
    w = k.tile("float32", 16, 32)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mgather(w, table, i, coalesce="row")
    k.tmuls(w, w, 0.5)
    k.tadds(w, w, 3.0)
    k.mscatter(table, w, i, coalesce="row")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def apply_gradients(k, table, grads, rows):
    """Sparse SGD: the rows are gathered while the gradients still load, then updated and scattered back."""
    i = k.tile("int32", 1, 16, at=0x0000)
    g = k.tile("float32", 16, 16, at=0x0400)
    w = k.tile("float32", 16, 16, at=0x0800)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.tload(g, grads)
    k.set_flag("MTE2", "V", 1)
    k.wait_flag("MTE2", "V", 0)
    k.mgather(w, table, i, coalesce="row")
    k.wait_flag("MTE2", "V", 1)
    k.tmuls(g, g, 0.25)
    k.tsub(w, w, g)
    k.mscatter(table, w, i, coalesce="row")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def store_then_look_up(k, fresh, table, rows, out):
    """A table is rewritten by TSTORE and read by index right after: the gather waits for the store."""
    x = k.tile("int32", 8, 16)
    i = k.tile("int32", 1, 8)
    d = k.tile("int32", 8, 16)
    k.tload(x, fresh)
    k.set_flag("MTE2", "MTE3", 0)
    k.wait_flag("MTE2", "MTE3", 0)
    k.tstore(table, x)
    k.set_flag("MTE3", "V", 0)
    k.wait_flag("MTE3", "V", 0)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mgather(d, table, i, coalesce="row")
    k.set_flag("V", "MTE3", 0)
    k.wait_flag("V", "MTE3", 0)
    k.tstore(out, d)


def pointer_chase(k, links, start, out):
    """Three hops along a linked list: what one gather brings is the index of the next."""
    here = k.tile("int32", 2, 16)
    there = k.tile("int32", 2, 16)
    k.tload(here, start)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    for _ in range(3):
        k.mgather(there, links, here, coalesce="elem")
        here, there = there, here
    k.set_flag("V", "MTE3", 0)
    k.wait_flag("V", "MTE3", 0)
    k.tstore(out, here)


def _three_hops(links: np.ndarray, start: np.ndarray) -> np.ndarray:
    here = start
    for _ in range(3):
        here = gather_elems(links, here)
    return here


def _moved(table: np.ndarray, rows: np.ndarray) -> np.ndarray:
    brought = gather_rows(table, rows)
    return scatter_rows(table, (brought * np.float32(0.5) + np.float32(3.0)).astype(np.float32), rows)


CASES: list[Case] = [
    case(
        embedding_lookup,
        lambda: [numbers((40, 32)), any_indices((16,), 40, seed=1), numbers((16, 32), seed=2)],
        lambda args: {2: gather_rows(args[0], args[1])},
    ),
    case(
        lookup_with_padding_tokens,
        lambda: [
            numbers((10, 16), "float16"),
            np.where(np.arange(24) % 5 == 0, -1, any_indices((24,), 12, seed=3)).astype(np.int32),
            numbers((24, 16), "float16", seed=4),
        ],
        lambda args: {2: gather_rows(args[0], args[1])},
    ),
    case(
        sparse_read,
        lambda: [numbers((150,)), any_indices((8, 24), 200, seed=5), numbers((8, 24), seed=6)],
        lambda args: {2: gather_elems(args[0], args[1])},
    ),
    case(
        table_of_samples,
        lambda: [
            numbers((25,), "bfloat16"),
            any_indices((2, 32), 40, seed=7).astype(np.uint32),
            numbers((2, 32), "bfloat16", seed=8),
        ],
        lambda args: {2: gather_elems(args[0], args[1], oob="clamp")},
    ),
    case(
        periodic_rows,
        lambda: [
            numbers((7, 64), "int8", most=127),
            any_indices((16,), 100, seed=9),
            numbers((16, 64), "int8", seed=10),
        ],
        lambda args: {2: gather_rows(args[0], args[1], oob="wrap")},
    ),
    case(
        nz_lookup,
        lambda: [
            tensor(numbers((3 * 2 * 128,)), "float32", (3, 2, 16, 8), layout="nz"),
            any_indices((16,), 36, seed=11),
            tensor(numbers((3 * 128,), seed=12), "float32", (3, 1, 16, 8), layout="nz"),
        ],
        lambda args: {2: to_nz(gather_rows(from_nz(args[0].memory, 32, 24), args[1]))},
        A2A3,
    ),
    case(
        lookup_into_columns,
        lambda: [
            numbers((9, 6)),
            tensor(any_indices((16,), 12, seed=13), "int32", (16, 1), layout="dn"),
            tensor(numbers((96,), seed=14), "float32", (16, 6), layout="dn"),
        ],
        lambda args: {2: gather_rows(args[0], args[1].memory, oob="clamp").T.ravel()},
        A5,
    ),
    case(
        learn_in_place,
        lambda: [numbers((40, 32)), distinct_indices((16,), 40, seed=15)],
        lambda args: {0: _moved(*args)},
    ),
    case(
        apply_gradients,
        lambda: [numbers((20, 16)), numbers((16, 16), seed=16), distinct_indices((16,), 20, seed=17)],
        lambda args: {
            0: scatter_rows(args[0], gather_rows(args[0], args[2]) - args[1] * np.float32(0.25), args[2]),
        },
    ),
    case(
        store_then_look_up,
        lambda: [
            numbers((8, 16), "int32"),
            numbers((8, 16), "int32", seed=18),
            indices(7, 0, 0, 3, 5, 2, 1, 7),
            numbers((8, 16), "int32", seed=19),
        ],
        lambda args: {1: args[0], 3: gather_rows(args[0], args[2])},
    ),
    case(
        pointer_chase,
        lambda: [
            any_indices((100,), 100, seed=20),
            any_indices((2, 16), 100, seed=21),
            numbers((2, 16), "int32", seed=22),
        ],
        lambda args: {2: _three_hops(args[0], args[1])},
    ),
]
