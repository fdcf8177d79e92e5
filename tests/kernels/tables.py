"""Tables that are more than a packed matrix: views, batches, fractals, dynamic extents."""

import numpy as np

from kernels.frame import (
    A2A3,
    Array,
    Case,
    any_indices,
    case,
    distinct_indices,
    from_nz,
    indices,
    numbers,
    replace,
    scatter_elems,
    scatter_rows,
    tensor,
    to_nz,
)


def rows_of_a_shard(k, table, grads, rows):
    """A shard of a larger table: indices count from the shard's first row."""
    shard = table[16:32, :]
    g = k.tile("float32", 8, 16)
    i = k.tile("int32", 1, 8)
    k.tload(g, grads)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(shard, g, i, coalesce="row", oob="skip")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def head_of_an_attention_cache(k, cache, values, rows):
    """A sub-view in both directions: one head's columns of a cache that holds all heads."""
    v = k.tile("float16", 8, 32)
    i = k.tile("int32", 1, 8)
    k.tload(v, values)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(cache[4:20, 32:64], v, i, coalesce="row", oob="skip")


def rows_of_two_batches(k, table, grads, rows):
    """A table of two batches: its rows count through."""
    g = k.tile("float32", 8, 8)
    i = k.tile("int32", 1, 8)
    k.tload(g, grads)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, g, i, coalesce="row", atomic="add")


def copy_a_corner(k, matrix, out):
    """TLOAD and TSTORE on sub-views: a corner of one matrix goes to another place of the next."""
    x = k.tile("float32", 8, 16, valid=(6, 10))
    k.tload(x, matrix[2:8, 3:13])
    k.set_flag("MTE2", "MTE3", 0)
    k.wait_flag("MTE2", "MTE3", 0)
    k.tstore(out[1:7, 20:30], x)


def extents_at_run_time(k, table, values, where):
    """The shapes are known at the call only: 1 x 9 elements into a table of 3 x 10."""
    v = k.tile("float32", 1, 16, valid=(-1, -1))
    i = k.tile("int32", 1, 16, valid=(-1, -1))
    v.set_valid(1, 9)
    i.set_valid(1, 9)
    k.tload(v, values)
    k.tload(i, where)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, v, i, coalesce="elem", oob="skip")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def nz_rows(k, table, values, rows):
    """Rows of a weight that is stored in fractals, for the cube unit."""
    v = k.tile("float16", 16, 32, layout="nz")
    i = k.tile("int32", 1, 16)
    k.tload(v, values)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, v, i, coalesce="row", oob="skip")


def nz_row_sums(k, table, values, rows):
    """Accumulation into fractals of float32: C0 is 8."""
    v = k.tile("float32", 16, 16, layout="nz")
    i = k.tile("int32", 1, 16)
    k.tload(v, values)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, v, i, coalesce="row", atomic="add", oob="wrap")


def nz_elements(k, table, values, where):
    """Single elements of a fractal weight; the walk goes by block columns, and it decides who is last."""
    v = k.tile("float32", 16, 16, layout="nz")
    i = k.tile("int32", 16, 16)
    k.tload(v, values)
    k.tload(i, where)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, v, i, coalesce="elem")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def _nz_rows_after(args: list, oob: str, merge=replace) -> Array:
    table, values, idx = args
    shape = table.shape
    rows, cols = shape[2] * 16, shape[1] * shape[4]
    after = scatter_rows(from_nz(table.memory, rows, cols), from_nz(values.memory, 16, cols), idx, oob, merge)
    return to_nz(after)


def _nz_elements_after(args: list) -> Array:
    table, values, idx = args
    source, out = from_nz(values.memory, 16, 16), from_nz(table.memory, 32, 16)
    for block in range(2):
        for r in range(16):
            for c in range(8 * block, 8 * block + 8):
                out.flat[idx[r, c]] = source[r, c]
    return to_nz(out)


def _two_batches() -> list:
    table = tensor(numbers((64,)), "float32", (2, 4, 8))
    return [table, numbers((8, 8), seed=1), indices(7, 0, 5, 5, 3, 4, 7, 1)]


def _with_corner(matrix: Array, top: int, left: int, corner: Array) -> Array:
    """The matrix with a corner laid over it."""
    out = matrix.copy()
    out[top : top + corner.shape[0], left : left + corner.shape[1]] = corner
    return out


CASES: list[Case] = [
    case(
        rows_of_a_shard,
        lambda: [numbers((48, 16)), numbers((8, 16), seed=1), indices(0, 15, 16, 3, 3, -1, 8, 40)],
        lambda args: {0: np.concatenate([args[0][:16], scatter_rows(args[0][16:32], args[1], args[2]), args[0][32:]])},
    ),
    case(
        head_of_an_attention_cache,
        lambda: [
            numbers((24, 96), "float16"),
            numbers((8, 32), "float16", seed=1),
            indices(0, 15, 16, 3, 3, 19, 8, 2),
        ],
        lambda args: {0: _with_corner(args[0], 4, 32, scatter_rows(args[0][4:20, 32:64], args[1], args[2]))},
        A2A3,
    ),
    case(
        rows_of_two_batches,
        _two_batches,
        lambda args: {0: scatter_rows(args[0].memory.reshape(8, 8), args[1], args[2], merge=np.add).ravel()},
        A2A3,
    ),
    case(
        copy_a_corner,
        lambda: [numbers((9, 17)), numbers((8, 32), seed=1)],
        lambda args: {1: _with_corner(args[1], 1, 20, args[0][2:8, 3:13])},
    ),
    case(
        extents_at_run_time,
        lambda: [
            tensor(numbers((30,)), "float32", (-1, -1), stride=(-1,) * 5, actual=(1, 1, 1, 3, 10)),
            numbers((1, 9), seed=1),
            indices(3, 29, 30, 7, 0, 11, 3, 100, 12),
        ],
        lambda args: {0: scatter_elems(args[0].memory, args[1], args[2])},
    ),
    case(
        nz_rows,
        lambda: [
            tensor(numbers((2 * 3 * 256,), "float16"), "float16", (2, 3, 16, 16), layout="nz"),
            tensor(numbers((2 * 256,), "float16", seed=1), "float16", (2, 1, 16, 16), layout="nz"),
            indices(47, 0, 16, 15, 48, 31, 32, 8, 8, 9, 40, 1000, 2, 3, 20, 33),
        ],
        lambda args: {0: _nz_rows_after(args, "skip")},
        A2A3,
    ),
    case(
        nz_row_sums,
        lambda: [
            tensor(numbers((2 * 2 * 128,)), "float32", (2, 2, 16, 8), layout="nz"),
            tensor(numbers((2 * 128,), seed=1), "float32", (2, 1, 16, 8), layout="nz"),
            indices(31, 0, 16, 15, 63, 31, 32, 8, 8, 9, 40, 100, 2, 3, 20, 33),
        ],
        lambda args: {0: _nz_rows_after(args, "wrap", np.add)},
        A2A3,
    ),
    case(
        nz_elements,
        lambda: [
            tensor(numbers((2 * 2 * 128,)), "float32", (2, 2, 16, 8), layout="nz"),
            tensor(np.arange(2 * 128, dtype=np.float32), "float32", (2, 1, 16, 8), layout="nz"),
            np.concatenate([any_indices((8, 16), 512, seed=2), distinct_indices((8, 16), 512, seed=3)]),
        ],
        lambda args: {0: _nz_elements_after(args)},
        A2A3,
    ),
]
