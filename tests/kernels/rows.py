"""Row scatters: whole rows of a batch go to the rows of a table that their indices name."""

import numpy as np

from kernels.frame import A5, Case, case, distinct_indices, indices, numbers, scatter_rows, tensor


def embedding_update(k, table, grads, rows):
    """Embedding update: the rows of a batch replace those of the table, unknown tokens are dropped."""
    g = k.tile("float32", 16, 64, at=0x0000)
    i = k.tile("int32", 1, 16, at=0x1000)
    k.tload(g, grads)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, g, i, coalesce="row", oob="skip")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def last_version_wins(k, table, versions, rows):
    """Replaying a log: a row that occurs twice keeps its last version."""
    v = k.tile("int32", 16, 8)
    i = k.tile("int32", 1, 16)
    k.tload(v, versions)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 3)
    k.wait_flag("MTE2", "V", 3)
    k.mscatter(table, v, i)
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def aggregate_hashed_rows(k, table, values, hashes):
    """Atomic aggregation into hash buckets: sums wrap around at 32 bits, hashes at the table's end."""
    v = k.tile("int32", 16, 32, at=0x0000)
    h = k.tile("int32", 1, 16, at=0x0800)
    k.tload(v, values)
    k.tload(h, hashes)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, v, h, coalesce="row", atomic="add", oob="wrap")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def accumulate_half_gradients(k, table, grads, rows):
    """Gradient accumulation in half precision, the pad tokens skipped."""
    g = k.tile("float16", 16, 32)
    i = k.tile("int32", 1, 16)
    k.tload(g, grads)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, g, i, coalesce="row", atomic="add", oob="skip")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def accumulate_bfloat16_gradients(k, table, grads, rows):
    """Gradient accumulation in bfloat16; the flush is ordered by a V->S pair instead of a barrier."""
    g = k.tile("bfloat16", 8, 48)
    i = k.tile("int32", 1, 8)
    k.tload(g, grads)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, g, i, coalesce="row", atomic="add")
    k.set_flag("V", "S", 1)
    k.wait_flag("V", "S", 1)
    k.dcci()
    k.dsb()


def overflow_bucket(k, table, values, keys):
    """A table whose last row takes every key that is too large; unsigned keys."""
    v = k.tile("float32", 8, 16, at=0x200)
    i = k.tile("uint32", 1, 8, at=0x000)
    k.tload(v, values)
    k.tload(i, keys)
    k.set_flag("MTE2", "V", 7)
    k.wait_flag("MTE2", "V", 7)
    k.mscatter(table, v, i, coalesce="row", oob="clamp")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def quantised_rows(k, table, codes, rows):
    """A table of int8 codes: rows of 32 bytes are replaced."""
    c = k.tile("int8", 24, 32, at=0x0000)
    i = k.tile("int32", 1, 24, at=0x0300)
    k.tload(c, codes)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, c, i, coalesce="row")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def narrow_rows(k, table, values, rows):
    """Rows of 5 floats in a tile padded to 8: what is padding stays behind."""
    v = k.tile("float32", 8, 8, valid=(6, 5))
    i = k.tile("int32", 1, 8, valid=(1, 6))
    k.tload(v, values)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, v, i, coalesce="row")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def one_row(k, table, value, row):
    """A key-value cache: one token's row is put in its place."""
    v = k.tile("float16", 1, 128)
    i = k.tile("int32", 1, 8, valid=(1, 1))
    k.tload(v, value)
    k.tload(i, row)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, v, i, coalesce="row")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def index_column(k, table, grads, rows):
    """Deterministic update through a column of indices, [R,1] in DN."""
    g = k.tile("float16", 8, 64, at=0x0000)
    i = k.tile("int32", 8, 1, layout="dn", at=0x1000)
    k.tload(g, grads)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, g, i, coalesce="row", oob="clamp", conflict="last")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def rows_from_columns(k, table, columns, rows):
    """The batch lies column by column (DN), the table row by row."""
    v = k.tile("float32", 16, 5, layout="dn", at=0x0000)
    i = k.tile("int32", 1, 16, at=0x0200)
    k.tload(v, columns)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, v, i, coalesce="row")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def any_order_will_do(k, table, grads, rows):
    """Conflict Default, the cheap kernel: no row occurs twice, so the scheduler has nothing to decide."""
    g = k.tile("float32", 40, 40)
    i = k.tile("int32", 1, 40)
    k.tload(g, grads)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, g, i, coalesce="row", conflict="default")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def best_score_per_row(k, table, scores, rows):
    """Max pooling over the members of a cluster."""
    s = k.tile("float32", 16, 16)
    i = k.tile("int32", 1, 16)
    k.tload(s, scores)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, s, i, coalesce="row", atomic="max", oob="skip")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def float8_rows(k, table, codes, rows):
    """Rows of an 8-bit float cache are replaced."""
    c = k.tile("float8_e4m3", 8, 64)
    i = k.tile("int32", 1, 8)
    k.tload(c, codes)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, c, i, coalesce="row", oob="wrap")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


FEW_DUPLICATES = (3, 9, 3, 1, 0, 11, 9, 7, 3, 2, 11, 6, 5, 4, 0, 10)
NEAR_THE_TOP = 2**31 - 100


def _columns() -> list:
    rows = distinct_indices((16,), 20, seed=31)
    return [numbers((20, 5)), tensor(numbers((5 * 16,), seed=30), "float32", (16, 5), layout="dn"), rows]


CASES: list[Case] = [
    case(
        embedding_update,
        lambda: [
            numbers((48, 64)),
            numbers((16, 64), seed=1),
            indices(5, 47, 0, 48, 9, 9, 100, 31, 2, -1, 17, 30, 8, 46, 1, 5),
        ],
        lambda args: {0: scatter_rows(*args)},
    ),
    case(
        last_version_wins,
        lambda: [numbers((12, 8), "int32"), numbers((16, 8), "int32", seed=2), indices(*FEW_DUPLICATES)],
        lambda args: {0: scatter_rows(*args)},
    ),
    case(
        aggregate_hashed_rows,
        lambda: [
            numbers((7, 32), "int32") + np.int32(NEAR_THE_TOP),
            numbers((16, 32), "int32", seed=3),
            indices(0, 7, 14, 21, 28, 35, 42, 49, 1, 8, 6, 13, 1000, 2**31 - 1, 3, 3),
        ],
        lambda args: {0: scatter_rows(*args, oob="wrap", merge=np.add)},
    ),
    case(
        accumulate_half_gradients,
        lambda: [
            numbers((12, 32), "float16"),
            numbers((16, 32), "float16", seed=4),
            indices(3, 9, 3, 1, 12, 11, 9, 7, 3, 2, 11, 99, 5, 4, 12, 10),
        ],
        lambda args: {0: scatter_rows(*args, merge=np.add)},
    ),
    case(
        accumulate_bfloat16_gradients,
        lambda: [
            numbers((4, 48), "bfloat16", most=8),
            numbers((8, 48), "bfloat16", seed=5, most=8),
            indices(0, 3, 0, 1, 0, 3, 1, 0),
        ],
        lambda args: {0: scatter_rows(*args, merge=np.add)},
    ),
    case(
        overflow_bucket,
        lambda: [
            numbers((10, 16)),
            numbers((8, 16), seed=6),
            indices(4, 9, 10, 2**32 - 1, 0, 77, 8, 3, dtype="uint32"),
        ],
        lambda args: {0: scatter_rows(*args, oob="clamp")},
    ),
    case(
        quantised_rows,
        lambda: [
            numbers((40, 32), "int8", most=127),
            numbers((24, 32), "int8", seed=7, most=127),
            distinct_indices((24,), 40, seed=8),
        ],
        lambda args: {0: scatter_rows(*args)},
    ),
    case(
        narrow_rows,
        lambda: [numbers((9, 5)), numbers((6, 5), seed=9), indices(8, 0, 3, 8, 7, 1)],
        lambda args: {0: scatter_rows(*args)},
    ),
    case(
        one_row,
        lambda: [numbers((10, 128), "float16"), numbers((1, 128), "float16", seed=10), indices(6)],
        lambda args: {0: scatter_rows(*args)},
    ),
    case(
        index_column,
        lambda: [
            numbers((30, 64), "float16"),
            numbers((8, 64), "float16", seed=11),
            tensor(indices(1, 29, 30, 7, 1, 500, 12, 13), "int32", (8, 1), layout="dn"),
        ],
        lambda args: {0: scatter_rows(args[0], args[1], args[2].memory, oob="clamp")},
        A5,
    ),
    case(
        rows_from_columns,
        _columns,
        lambda args: {0: scatter_rows(args[0], args[1].memory.reshape(5, 16).T, args[2])},
        A5,
    ),
    case(
        any_order_will_do,
        lambda: [numbers((64, 40)), numbers((40, 40), seed=12), distinct_indices((40,), 64, seed=13)],
        lambda args: {0: scatter_rows(*args)},
        A5,
    ),
    case(
        best_score_per_row,
        lambda: [
            numbers((12, 16)),
            numbers((16, 16), seed=14),
            indices(*FEW_DUPLICATES[:-2], 12, 1000),
        ],
        lambda args: {0: scatter_rows(*args, merge=np.maximum)},
        A5,
    ),
    case(
        float8_rows,
        lambda: [
            numbers((6, 64), "float8_e4m3", most=16),
            numbers((8, 64), "float8_e4m3", seed=15, most=16),
            indices(0, 7, 2, 3, 10, 5, 11, 0),
        ],
        lambda args: {0: scatter_rows(*args, oob="wrap")},
        A5,
    ),
]
