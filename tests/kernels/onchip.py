"""Indices that are made on the chip, and numbers that the scalar pipe looks at."""

import numpy as np

from kernels.frame import (
    Array,
    Case,
    any_indices,
    case,
    distinct_indices,
    gather_elems,
    indices,
    numbers,
    scatter_rows,
)


def append_to_cache(k, cache, fresh):
    """A cache grows: 16 new rows go behind the first 24; V makes the indices and V (or S, which waits) reads them."""
    f = k.tile("float16", 16, 32)
    i = k.tile("int32", 1, 16)
    k.tload(f, fresh)
    k.tci(i, 0)
    k.tadds(i, i, 24)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(cache, f, i, coalesce="row")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def flip_rows(k, image, out):
    """An image upside down: descending indices, and no load at all before the gather."""
    i = k.tile("int32", 1, 24)
    d = k.tile("uint8", 24, 32)
    k.tci(i, 23, descending=True)
    k.mgather(d, image, i, coalesce="row")
    k.set_flag("V", "MTE3", 0)
    k.wait_flag("V", "MTE3", 0)
    k.tstore(out, d)


def every_third_row(k, table, out):
    """A strided read: tci and tmuls make 0, 3, 6 and so on."""
    i = k.tile("int32", 1, 8)
    d = k.tile("float32", 8, 8)
    k.tci(i, 0)
    k.tmuls(i, i, 3)
    k.mgather(d, table, i, coalesce="row", oob="zero")
    k.set_flag("V", "MTE3", 0)
    k.wait_flag("V", "MTE3", 0)
    k.tstore(out, d)


def rows_by_hand(k, table, values):
    """The scalar pipe writes the indices one by one, then tells V."""
    v = k.tile("float32", 4, 16)
    i = k.tile("int32", 1, 8, valid=(1, 4))
    k.tload(v, values)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    for r, row in enumerate((11, 2, 2, 5)):
        k.set(i, 0, r, row)
    k.set_flag("S", "V", 0)
    k.wait_flag("S", "V", 0)
    k.mscatter(table, v, i, coalesce="row")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def two_rounds_by_hand(k, table, values):
    """The scalar pipe rewrites an index tile that a scatter has read: it waits for V first."""
    v = k.tile("float32", 4, 16)
    i = k.tile("int32", 1, 8, valid=(1, 4))
    k.tload(v, values)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    for first in (0, 6):
        for r in range(4):
            k.set(i, 0, r, first + r)
        k.set_flag("S", "V", 0)
        k.wait_flag("S", "V", 0)
        k.mscatter(table, v, i, coalesce="row", atomic="add")
        k.set_flag("V", "S", 0)
        k.wait_flag("V", "S", 0)
    k.dcci()
    k.dsb()


def only_the_pages_in_use(k, used, pages, out):
    """A page table decides: the scalar pipe reads a word per page, and copies the pages that are in use."""
    u = k.tile("int32", 1, 8)
    p = k.tile("float32", 4, 16)
    k.tload(u, used)
    k.set_flag("MTE2", "S", 0)
    k.wait_flag("MTE2", "S", 0)
    for page in range(8):
        if not k.get(u, 0, page):
            continue
        k.tload(p, pages[4 * page : 4 * page + 4, :])
        k.set_flag("MTE2", "MTE3", 0)
        k.wait_flag("MTE2", "MTE3", 0)
        k.tstore(out[4 * page : 4 * page + 4, :], p)
        k.set_flag("MTE3", "MTE2", 0)
        k.wait_flag("MTE3", "MTE2", 0)


def move_pages(k, moves, pages, out):
    """Block copy by a list of (from, to) pairs that the scalar pipe reads until it meets a negative one."""
    m = k.tile("int32", 8, 8, valid=(8, 2))
    p = k.tile("int32", 4, 8)
    k.tload(m, moves)
    k.set_flag("MTE2", "S", 0)
    k.wait_flag("MTE2", "S", 0)
    step = 0
    while step < 8 and (source := int(k.get(m, step, 0))) >= 0:
        target = int(k.get(m, step, 1))
        k.tload(p, pages[4 * source : 4 * source + 4, :])
        k.set_flag("MTE2", "MTE3", 1)
        k.wait_flag("MTE2", "MTE3", 1)
        k.tstore(out[4 * target : 4 * target + 4, :], p)
        k.set_flag("MTE3", "MTE2", 1)
        k.wait_flag("MTE3", "MTE2", 1)
        step += 1


def sample_nearest(k, signal, positions, out):
    """Nearest-sample interpolation: positions are floats, rounded down to indices on the chip."""
    p = k.tile("float32", 4, 32)
    i = k.tile("int32", 4, 32)
    d = k.tile("float32", 4, 32)
    k.tload(p, positions)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.tcvt(i, p, mode="floor")
    k.mgather(d, signal, i, coalesce="elem", oob="zero")
    k.set_flag("V", "MTE3", 0)
    k.wait_flag("V", "MTE3", 0)
    k.tstore(out, d)


def keep_the_positive(k, table, scores, where):
    """Masked update: where the score is negative, select puts an index that skip drops."""
    s = k.tile("float32", 2, 32)
    i = k.tile("int32", 2, 32)
    zero = k.tile("float32", 2, 32)
    nowhere = k.tile("int32", 2, 32)
    mask = k.tile("uint8", 2, 32)
    kept = k.tile("int32", 2, 32)
    k.tload(s, scores)
    k.tload(i, where)
    k.texpands(zero, 0.0)
    k.texpands(nowhere, 1 << 30)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.tcmp(mask, s, zero, mode="ge")
    k.tsel(kept, mask, i, nowhere)
    k.mscatter(table, s, kept, coalesce="elem", oob="skip")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def hash_into_buckets(k, counts, keys):
    """Counting by a hash: the keys are spread by vector arithmetic, wrap makes buckets of them."""
    x = k.tile("int32", 4, 16, at=0x000)
    ones = k.tile("int32", 4, 16, at=0x100)
    k.tload(x, keys)
    k.texpands(ones, 1)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.tmuls(x, x, 37)
    k.tadds(x, x, 11)
    k.mscatter(counts, ones, x, coalesce="elem", atomic="add", oob="wrap")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def half_arithmetic(k, halves, out):
    """Mixed precision: half up to float, averaged with its own negative part, and rounded back."""
    h = k.tile("float16", 4, 32)
    x = k.tile("float32", 4, 32)
    y = k.tile("float32", 4, 32)
    k.tload(h, halves)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.tcvt(x, h)
    k.tmins(y, x, 0.0)
    k.tadd(x, x, y)
    k.tmuls(x, x, 0.5)
    k.tcvt(h, x, mode="rint")
    k.set_flag("V", "MTE3", 0)
    k.wait_flag("V", "MTE3", 0)
    k.tstore(out, h)


def masked_softmax(k, logits, out):
    """Softmax of one row after the other: maximum and sum go through the scalar pipe."""
    x = k.tile("float32", 1, 32)
    y = k.tile("float32", 1, 32)
    one = k.tile("float32", 1, 8, valid=(1, 1))
    for r in range(4):
        k.tload(x, logits[r : r + 1, :])
        k.set_flag("MTE2", "V", 0)
        k.wait_flag("MTE2", "V", 0)
        k.trowmax(one, x)
        k.set_flag("V", "S", 0)
        k.wait_flag("V", "S", 0)
        k.tsubs(x, x, float(k.get(one, 0, 0)))
        k.texp(x, x)
        k.trowsum(one, x)
        k.set_flag("V", "S", 0)
        k.wait_flag("V", "S", 0)
        k.tdivs(y, x, float(k.get(one, 0, 0)))
        k.set_flag("V", "MTE3", 0)
        k.wait_flag("V", "MTE3", 0)
        k.tstore(out[r : r + 1, :], y)
        k.set_flag("V", "MTE2", 0)
        k.wait_flag("V", "MTE2", 0)
        k.set_flag("MTE3", "V", 0)
        k.wait_flag("MTE3", "V", 0)


def row_and_column_sums(k, matrix, row_sums, col_maxima):
    """The marginals of a matrix: a column of row sums, a row of column maxima."""
    x = k.tile("float32", 8, 16)
    s = k.tile("float32", 8, 8, valid=(8, 1))
    m = k.tile("float32", 1, 16)
    k.tload(x, matrix)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.trowsum(s, x)
    k.tcolmax(m, x)
    k.set_flag("V", "MTE3", 0)
    k.wait_flag("V", "MTE3", 0)
    k.tstore(row_sums, s)
    k.tstore(col_maxima, m)


def next_ticket(k, counter, tickets):
    """A ticket counter in global memory: the scalar pipe loads it, hands out eight, and stores it back."""
    t = k.tile("int32", 1, 8)
    first = int(k.load_scalar(counter, 0))
    k.tci(t, first)
    k.set_flag("V", "MTE3", 0)
    k.wait_flag("V", "MTE3", 0)
    k.tstore(tickets, t)
    k.store_scalar(counter, 0, first + 8)
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def as_many_as_the_header_says(k, header, table, values, where):
    """A count in global memory says how many of the rows are real."""
    count = int(k.load_scalar(header, 1))
    v = k.tile("float32", 16, 8, valid=(-1, 8))
    i = k.tile("int32", 1, 16, valid=(1, -1))
    v.set_valid(count, 8)
    i.set_valid(1, count)
    k.tload(v, values[0:count, :])
    k.tload(i, where[0:1, 0:count])
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, v, i, coalesce="row")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def _pages_after(used: Array, pages: Array, out: Array) -> Array:
    after = out.copy()
    for page in range(8):
        if used[page]:
            after[4 * page : 4 * page + 4] = pages[4 * page : 4 * page + 4]
    return after


def _moved_pages(moves: Array, pages: Array, out: Array) -> Array:
    after = out.copy()
    for source, target in moves:
        if source < 0:
            break
        after[4 * target : 4 * target + 4] = pages[4 * source : 4 * source + 4]
    return after


def _two_rounds(table: Array, values: Array) -> Array:
    once = scatter_rows(table, values, indices(0, 1, 2, 3), merge=np.add)
    return scatter_rows(once, values, indices(6, 7, 8, 9), merge=np.add)


def _kept(table: Array, scores: Array, where: Array) -> Array:
    after = table.copy()
    for score, place in zip(scores.ravel(), where.ravel(), strict=True):
        if score >= 0:
            after[place] = score
    return after


def _hashed(counts: Array, keys: Array) -> Array:
    after = counts.copy()
    for key in keys.ravel().tolist():
        after[(key * 37 + 11) % len(counts)] += 1
    return after


def _averaged(halves: Array) -> Array:
    wide = halves.astype(np.float32)
    return ((wide + np.minimum(wide, np.float32(0))) * np.float32(0.5)).astype(np.float16)


MASKED = -1000.0


def _masked_logits() -> Array:
    """Each row has one largest value, several times; the others are masked, and their exponentials exactly 0."""
    keep = np.random.default_rng(9).integers(0, 2, (4, 32)).astype(bool)
    keep[:, 5] = True
    keep[3] = np.arange(32) == 17
    return np.where(keep, np.array([[0.0], [3.5], [-7.25], [100.0]]), MASKED).astype(np.float32)


def _softmax_of_masked(logits: Array) -> Array:
    after = np.zeros_like(logits)
    for r, row in enumerate(logits):
        after[r] = np.where(row == MASKED, np.float32(0), np.float32(1) / np.float32((row != MASKED).sum()))
    return after


CASES: list[Case] = [
    case(
        append_to_cache,
        lambda: [numbers((64, 32), "float16"), numbers((16, 32), "float16", seed=1)],
        lambda args: {0: np.concatenate([args[0][:24], args[1], args[0][40:]])},
    ),
    case(
        flip_rows,
        lambda: [numbers((24, 32), "uint8", most=255), numbers((24, 32), "uint8", seed=1)],
        lambda args: {1: args[0][::-1].copy()},
    ),
    case(
        every_third_row,
        lambda: [numbers((20, 8)), numbers((8, 8), seed=1)],
        lambda args: {1: np.concatenate([args[0][::3], np.zeros((1, 8), np.float32)])},
    ),
    case(
        rows_by_hand,
        lambda: [numbers((12, 16)), numbers((4, 16), seed=1)],
        lambda args: {0: scatter_rows(*args, indices(11, 2, 2, 5))},
    ),
    case(
        two_rounds_by_hand,
        lambda: [numbers((12, 16)), numbers((4, 16), seed=1)],
        lambda args: {0: _two_rounds(*args)},
    ),
    case(
        only_the_pages_in_use,
        lambda: [indices(1, 0, 0, 1, 1, 0, 0, 1), numbers((32, 16), seed=1), numbers((32, 16), seed=2)],
        lambda args: {2: _pages_after(*args)},
    ),
    case(
        move_pages,
        lambda: [
            indices(3, 0, 0, 3, 7, 2, 3, 3, 1, 7, -1, -1, 5, 5, 0, 1).reshape(8, 2),
            numbers((32, 8), "int32", seed=1),
            numbers((32, 8), "int32", seed=2),
        ],
        lambda args: {2: _moved_pages(*args)},
    ),
    case(
        sample_nearest,
        lambda: [
            numbers((100,)),
            any_indices((4, 32), 420, seed=3).astype(np.float32) / 4,
            numbers((4, 32), seed=4),
        ],
        lambda args: {2: gather_elems(args[0], np.floor(args[1]).astype(np.int32))},
    ),
    case(
        keep_the_positive,
        lambda: [numbers((90,)), numbers((2, 32), seed=5), any_indices((2, 32), 90, seed=6)],
        lambda args: {0: _kept(*args)},
    ),
    case(
        hash_into_buckets,
        lambda: [numbers((13,), "int32"), any_indices((4, 16), 10**6, seed=7)],
        lambda args: {0: _hashed(*args)},
    ),
    case(
        half_arithmetic,
        lambda: [
            (numbers((4, 32), "float32", seed=8, most=2000) / 8).astype(np.float16),
            np.zeros((4, 32), np.float16),
        ],
        lambda args: {1: _averaged(args[0])},
    ),
    case(
        masked_softmax,
        lambda: [_masked_logits(), numbers((4, 32))],
        lambda args: {1: _softmax_of_masked(args[0])},
    ),
    case(
        row_and_column_sums,
        lambda: [numbers((8, 16)), numbers((8, 1), seed=1), numbers((1, 16), seed=2)],
        lambda args: {1: args[0].sum(axis=1, keepdims=True), 2: args[0].max(axis=0, keepdims=True)},
    ),
    case(
        next_ticket,
        lambda: [indices(40, 0, 0, 0), numbers((8,), "int32")],
        lambda args: {0: indices(48, 0, 0, 0), 1: np.arange(40, 48, dtype=np.int32)},
    ),
    case(
        as_many_as_the_header_says,
        lambda: [indices(16, 11), numbers((20, 8)), numbers((16, 8), seed=1), distinct_indices((16,), 20, seed=2)],
        lambda args: {1: scatter_rows(args[1], args[2][:11], args[3][:11])},
    ),
]
