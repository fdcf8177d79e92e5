"""Several blocks over one global memory: who owns what, and what they may share."""

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


def own_rows(k, table, grads, rows):
    """Data parallel update: each block has 16 rows of the table to itself, indices count from its first."""
    b = k.block_idx
    g = k.tile("float32", 8, 32)
    i = k.tile("int32", 1, 8)
    k.tload(g, grads[8 * b : 8 * b + 8, :])
    k.tload(i, rows[b : b + 1, :])
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table[16 * b : 16 * b + 16, :], g, i, coalesce="row")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def shared_sums(k, table, grads, rows):
    """Gradients of all blocks meet in the same rows: atomic additions of int32."""
    b = k.block_idx
    g = k.tile("int32", 8, 32)
    i = k.tile("int32", 1, 8)
    k.tload(g, grads[8 * b : 8 * b + 8, :])
    k.tload(i, rows[b : b + 1, :])
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, g, i, coalesce="row", atomic="add")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def column_totals(k, matrix, totals):
    """A reduction over blocks: each sums its rows on the chip, and stores with atomic add."""
    b = k.block_idx
    x = k.tile("float32", 8, 32)
    s = k.tile("float32", 1, 32)
    k.tload(x, matrix[8 * b : 8 * b + 8, :])
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.tcolsum(s, x)
    k.set_flag("V", "MTE3", 0)
    k.wait_flag("V", "MTE3", 0)
    k.tstore(totals, s, atomic="add")


def chunks_in_turn(k, table, rows, out):
    """Grid-stride lookup: 7 chunks over the blocks in turn, the last blocks have fewer."""
    i = k.tile("int32", 1, 8)
    d = k.tile("float32", 8, 16)
    for chunk in range(k.block_idx, 7, k.block_num):
        k.tload(i, rows[chunk : chunk + 1, :])
        k.set_flag("MTE2", "V", 0)
        k.wait_flag("MTE2", "V", 0)
        k.mgather(d, table, i, coalesce="row")
        k.set_flag("V", "MTE3", 0)
        k.wait_flag("V", "MTE3", 0)
        k.tstore(out[8 * chunk : 8 * chunk + 8, :], d)
        k.set_flag("V", "MTE2", 0)
        k.wait_flag("V", "MTE2", 0)
        k.set_flag("MTE3", "V", 0)
        k.wait_flag("MTE3", "V", 0)


def one_counter_each(k, counters, work):
    """Each block counts in a line of 128 bytes of its own; the scalar pipe stores and then flushes by itself."""
    b = k.block_idx
    done = int(k.load_scalar(counters, 32 * b))
    for item in range(8):
        if int(k.load_scalar(work, 8 * b + item)) >= 0:
            done += 1
    k.store_scalar(counters, 32 * b, done)
    k.dcci()
    k.dsb()


def private_histograms(k, counts, samples):
    """Each block counts into a histogram of its own; the host adds them up."""
    b = k.block_idx
    i = k.tile("int32", 4, 16)
    ones = k.tile("int32", 4, 16)
    k.tload(i, samples[4 * b : 4 * b + 4, :])
    k.texpands(ones, 1)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(counts[b : b + 1, :], ones, i, coalesce="elem", atomic="add")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def first_block_writes_the_header(k, header, x, out):
    """The blocks share the work, and block 0 alone writes the header."""
    b = k.block_idx
    t = k.tile("float32", 4, 8)
    k.tload(t, x[4 * b : 4 * b + 4, :])
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.tmaxs(t, t, 0.0)
    k.set_flag("V", "MTE3", 0)
    k.wait_flag("V", "MTE3", 0)
    k.tstore(out[4 * b : 4 * b + 4, :], t)
    if b == 0:
        k.store_scalar(header, 0, k.block_num)
        k.pipe_barrier("ALL")
        k.dcci()
        k.dsb()


def _own_rows_after(table: Array, grads: Array, rows: Array) -> Array:
    parts = [
        scatter_rows(table[16 * b : 16 * b + 16], grads[8 * b : 8 * b + 8], rows[b]) for b in range(len(table) // 16)
    ]
    return np.concatenate(parts)


def _counted(counters: Array, work: Array) -> Array:
    after = counters.copy()
    for b in range(len(work)):
        after[b, 0] += (work[b] >= 0).sum()
    return after


def _histograms_after(counts: Array, samples: Array) -> Array:
    after = counts.copy()
    for r, row in enumerate(samples):
        for sample in row:
            after[r // 4, sample] += 1
    return after


def _header_and_parts(args: list) -> dict[int, Array]:
    return {0: np.array([3, 0], np.int32), 2: np.maximum(args[1], np.float32(0))}


CASES: list[Case] = [
    case(
        own_rows,
        lambda: [numbers((64, 32)), numbers((32, 32), seed=1), any_indices((4, 8), 16, seed=2)],
        lambda args: {0: _own_rows_after(*args)},
        blocks=4,
    ),
    case(
        shared_sums,
        lambda: [numbers((10, 32), "int32"), numbers((32, 32), "int32", seed=1), any_indices((4, 8), 10, seed=2)],
        lambda args: {0: scatter_rows(*args, merge=np.add)},
        blocks=4,
    ),
    case(
        column_totals,
        lambda: [numbers((40, 32)), numbers((1, 32), seed=1)],
        lambda args: {1: args[1] + args[0].sum(axis=0, keepdims=True)},
        blocks=5,
    ),
    case(
        chunks_in_turn,
        lambda: [numbers((30, 16)), any_indices((7, 8), 30, seed=1), numbers((56, 16), seed=2)],
        lambda args: {2: gather_rows(args[0], args[1])},
        blocks=3,
    ),
    case(
        one_counter_each,
        lambda: [numbers((4, 32), "int32"), numbers((4, 8), "int32", seed=1)],
        lambda args: {0: _counted(*args)},
        blocks=4,
    ),
    case(
        private_histograms,
        lambda: [numbers((2, 64), "int32"), distinct_indices((8, 16), 128, seed=1) // 2],
        lambda args: {0: _histograms_after(*args)},
        blocks=2,
    ),
    case(
        first_block_writes_the_header,
        lambda: [np.zeros(2, np.int32), numbers((12, 8)), numbers((12, 8), seed=1)],
        _header_and_parts,
        blocks=3,
    ),
]
