"""Elem scatters: every element has an index of its own into the table taken as one line."""

import numpy as np

from kernels.frame import (
    A5,
    Case,
    any_indices,
    case,
    distinct_indices,
    indices,
    numbers,
    scatter_elems,
    tensor,
)


def sparse_update(k, table, values, where):
    """Sparse update: values at scattered places, entries past the end dropped."""
    v = k.tile("float32", 8, 32, at=0x0000)
    i = k.tile("int32", 8, 32, at=0x0800)
    k.tload(v, values)
    k.tload(i, where)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, v, i, coalesce="elem", oob="skip")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def histogram(k, counts, ones, bins):
    """A histogram: every sample adds one to its bin."""
    n = k.tile("int32", 16, 16)
    i = k.tile("int32", 16, 16)
    k.tload(n, ones)
    k.tload(i, bins)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(counts, n, i, coalesce="elem", atomic="add")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def depth_buffer(k, depth, candidates, pixels):
    """The nearest candidate of each pixel: atomic minimum of unsigned depths."""
    d = k.tile("uint32", 8, 16)
    i = k.tile("int32", 8, 16)
    k.tload(d, candidates)
    k.tload(i, pixels)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(depth, d, i, coalesce="elem", atomic="min", oob="skip")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def running_maximum(k, best, scores, where):
    """The best score of each key: atomic maximum of int32."""
    s = k.tile("int32", 4, 40)
    i = k.tile("int32", 4, 40)
    k.tload(s, scores)
    k.tload(i, where)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(best, s, i, coalesce="elem", atomic="max")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def one_element(k, table, value, where):
    """The degenerate call: one value at one place, without a SIMT launch on a5."""
    v = k.tile("float32", 1, 8, valid=(1, 1), at=0x00)
    i = k.tile("int32", 1, 8, valid=(1, 1), at=0x80)
    k.tload(v, value)
    k.tload(i, where)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, v, i, coalesce="elem")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def half_elements(k, table, values, where):
    """Half-precision elements, as a list of 48 pairs; indices wrap around a ring buffer."""
    v = k.tile("float16", 1, 48)
    i = k.tile("uint32", 1, 48)
    k.tload(v, values)
    k.tload(i, where)
    k.set_flag("MTE2", "V", 2)
    k.wait_flag("MTE2", "V", 2)
    k.mscatter(table, v, i, coalesce="elem", oob="wrap")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def narrow_elements(k, table, values, where):
    """3 x 3 bytes in tiles that are padded to what each type needs."""
    v = k.tile("uint8", 3, 32, valid=(3, 3))
    i = k.tile("int32", 3, 8, valid=(3, 3))
    k.tload(v, values)
    k.tload(i, where)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, v, i, coalesce="elem")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def transposed_values(k, table, values, where):
    """Values column by column (DN), indices row by row: the kernel reads each through its own layout."""
    v = k.tile("float32", 8, 12, layout="dn", at=0x0000)
    i = k.tile("int32", 8, 16, valid=(8, 12), at=0x0200)
    k.tload(v, values)
    k.tload(i, where)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, v, i, coalesce="elem")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def permutation(k, out, values, order):
    """A permutation has no duplicates: Conflict Default is safe, and cheaper than Last."""
    v = k.tile("int16", 16, 64)
    i = k.tile("int32", 16, 64)
    k.tload(v, values)
    k.tload(i, order)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(out, v, i, coalesce="elem", conflict="default")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def chunked_2048x8(k, table, values, where):
    """2048 x 8 elements in 16 chunks of 128 x 8: within a chunk and over all of them the last one wins."""
    v = k.tile("float32", 128, 8, at=0x0000)
    i = k.tile("int32", 128, 8, at=0x1000)
    for top in range(0, 2048, 128):
        k.tload(v, values[top : top + 128, :])
        k.tload(i, where[top : top + 128, :])
        k.set_flag("MTE2", "V", 0)
        k.wait_flag("MTE2", "V", 0)
        k.mscatter(table, v, i, coalesce="elem")
        k.set_flag("V", "MTE2", 0)
        k.wait_flag("V", "MTE2", 0)
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def single_shot_2304x8(k, table, values, where):
    """2304 x 8 elements at once: 144 KiB of tiles, so the launch must ask for dynamic UB."""
    v = k.tile("float32", 2304, 8, at=0x00000)
    i = k.tile("int32", 2304, 8, at=0x12000)
    k.tload(v, values)
    k.tload(i, where)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, v, i, coalesce="elem", atomic="none", oob="skip")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


CASES: list[Case] = [
    case(
        sparse_update,
        lambda: [numbers((256,)), numbers((8, 32), seed=1), any_indices((8, 32), 300, seed=2)],
        lambda args: {0: scatter_elems(*args)},
    ),
    case(
        histogram,
        lambda: [numbers((20,), "int32"), np.ones((16, 16), np.int32), any_indices((16, 16), 20, seed=3)],
        lambda args: {0: scatter_elems(*args, merge=np.add)},
    ),
    case(
        depth_buffer,
        lambda: [
            numbers((5, 16), "uint32", most=1000) + np.uint32(2**31),
            numbers((8, 16), "uint32", seed=4, most=1000) + np.uint32(2**31),
            any_indices((8, 16), 90, seed=5),
        ],
        lambda args: {0: scatter_elems(*args, merge=np.minimum)},
        A5,
    ),
    case(
        running_maximum,
        lambda: [numbers((50,), "int32"), numbers((4, 40), "int32", seed=6), any_indices((4, 40), 50, seed=7)],
        lambda args: {0: scatter_elems(*args, merge=np.maximum)},
        A5,
    ),
    case(
        one_element,
        lambda: [numbers((32,)), np.array([12.5], np.float32), indices(21)],
        lambda args: {0: scatter_elems(*args)},
    ),
    case(
        half_elements,
        lambda: [
            numbers((33,), "float16"),
            numbers((48,), "float16", seed=8),
            any_indices((48,), 500, seed=9).astype(np.uint32),
        ],
        lambda args: {0: scatter_elems(*args, oob="wrap")},
    ),
    case(
        narrow_elements,
        lambda: [
            numbers((100,), "uint8"),
            numbers((3, 3), "uint8", seed=10),
            indices(3, 99, 0, 7, 3, 50, 51, 52, 7).reshape(3, 3),
        ],
        lambda args: {0: scatter_elems(*args)},
    ),
    case(
        transposed_values,
        lambda: [
            numbers((10, 10)),
            tensor(np.arange(96, dtype=np.float32), "float32", (8, 12), layout="dn"),
            any_indices((8, 12), 100, seed=11),
        ],
        lambda args: {0: scatter_elems(args[0], args[1].memory.reshape(12, 8).T, args[2])},
        A5,
    ),
    case(
        permutation,
        lambda: [
            numbers((1100,), "int16"),
            numbers((16, 64), "int16", seed=12, most=30000),
            distinct_indices((16, 64), 1100, seed=13),
        ],
        lambda args: {0: scatter_elems(*args)},
        A5,
    ),
    case(
        chunked_2048x8,
        lambda: [numbers((3000,)), numbers((2048, 8), seed=14, most=10**6), any_indices((2048, 8), 3000, seed=15)],
        lambda args: {0: scatter_elems(*args)},
    ),
    case(
        single_shot_2304x8,
        lambda: [numbers((4096,)), numbers((2304, 8), seed=16, most=10**6), any_indices((2304, 8), 5000, seed=17)],
        lambda args: {0: scatter_elems(*args)},
        A5,
        dyn_ub=2304 * 64,
    ),
]
