"""Kernels that are wrong, each in one way, and the room of the finding that must say so."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernels.frame import A2A3, A5, BOTH, Kernel, any_indices, indices, numbers


@dataclass(frozen=True)
class Faulty:
    """A kernel with one fault: its docstring names it, `letter` is that of the finding's id."""

    name: str
    kernel: Kernel
    make: Callable[[], list[Any]]
    letter: str
    fault: str
    targets: tuple[str, ...] = BOTH
    launch: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


# S: pipes, flags, races


def scatter_before_the_load(k, table, values, rows):
    """No MTE2->V pair between the loads and the scatter."""
    v, i = _load_rows(k, values, rows, wait=False)
    k.mscatter(table, v, i, coalesce="row")
    _flush(k)


def gather_before_the_load(k, table, values, rows):
    """No MTE2->V pair between the load of the indices and the gather."""
    i = k.tile("int32", 1, 8)
    d = k.tile("float32", 8, 16)
    k.tload(i, rows)
    k.mgather(d, table, i, coalesce="row")
    k.set_flag("V", "MTE3", 0)
    k.wait_flag("V", "MTE3", 0)
    k.tstore(values, d)


def store_before_the_sum(k, x, out):
    """No V->MTE3 pair between the sum and its store."""
    t = k.tile("float32", 8, 16)
    k.tload(t, x)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.tadds(t, t, 1.0)
    k.tstore(out, t)


def load_over_what_v_reads(k, x, out):
    """No V->MTE2 pair before a tile is loaded again."""
    t, u = k.tile("float32", 8, 16), k.tile("float32", 8, 16)
    for _ in range(2):
        k.tload(t, x)
        k.set_flag("MTE2", "V", 0)
        k.wait_flag("MTE2", "V", 0)
        k.tadds(u, t, 1.0)
    k.set_flag("V", "MTE3", 0)
    k.wait_flag("V", "MTE3", 0)
    k.tstore(out, u)


def load_over_what_is_stored(k, x, out):
    """No MTE3->MTE2 pair before a tile is loaded again."""
    t = k.tile("float32", 4, 16)
    for top in (0, 4):
        k.tload(t, x[top : top + 4, :])
        k.set_flag("MTE2", "MTE3", 0)
        k.wait_flag("MTE2", "MTE3", 0)
        k.tstore(out[top : top + 4, :], t)


def scalar_reads_before_the_load(k, x, out):
    """No MTE2->S pair before the scalar pipe reads a tile."""
    t = k.tile("float32", 8, 16)
    k.tload(t, x)
    k.store_scalar(out, 0, float(k.get(t, 0, 0)))
    k.dcci()
    k.dsb()


def indices_by_hand_untold(k, table, values, rows):
    """No S->V pair after the scalar pipe wrote the indices."""
    v, _ = _load_rows(k, values, rows)
    i = k.tile("int32", 1, 8)
    for r in range(8):
        k.set(i, 0, r, r)
    k.mscatter(table, v, i, coalesce="row")
    _flush(k)


def load_back_too_early(k, x, out):
    """No MTE3->MTE2 pair between the store and the load of one place."""
    t, u = k.tile("float32", 8, 16), k.tile("float32", 8, 16)
    k.tload(t, x)
    k.set_flag("MTE2", "MTE3", 0)
    k.wait_flag("MTE2", "MTE3", 0)
    k.tstore(out, t)
    k.tload(u, out)


def flag_set_twice(k, x, out):
    """A flag is set again before anybody waited for it."""
    t = k.tile("float32", 8, 16)
    k.tload(t, x)
    k.set_flag("MTE2", "MTE3", 0)
    k.set_flag("MTE2", "MTE3", 0)
    k.wait_flag("MTE2", "MTE3", 0)
    k.tstore(out, t)


def flag_left_set(k, x, out):
    """A flag is still set at the end."""
    t = k.tile("float32", 8, 16)
    k.tload(t, x)
    k.set_flag("MTE2", "MTE3", 0)
    k.set_flag("MTE2", "MTE3", 1)
    k.wait_flag("MTE2", "MTE3", 0)
    k.tstore(out, t)


def wait_that_nothing_sets(k, x, out):
    """A wait for a flag that nothing sets."""
    t = k.tile("float32", 8, 16)
    k.tload(t, x)
    k.wait_flag("MTE2", "MTE3", 0)
    k.tstore(out, t)


def wait_for_another_pair(k, x, out):
    """Set for MTE2->V, waited for as MTE2->MTE3."""
    t = k.tile("float32", 8, 16)
    k.tload(t, x)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "MTE3", 0)
    k.tstore(out, t)


def event_nine(k, x, out):
    """Event ids end at 7."""
    t = k.tile("float32", 8, 16)
    k.tload(t, x)
    k.set_flag("MTE2", "MTE3", 9)
    k.wait_flag("MTE2", "MTE3", 9)
    k.tstore(out, t)


def id_zero_held(k, table, values, rows):
    """The scatter uses id 0 of MTE3->MTE2 itself."""
    v, i = _load_rows(k, values, rows)
    k.set_flag("MTE3", "MTE2", 0)
    k.mscatter(table, v, i, coalesce="row")
    k.wait_flag("MTE3", "MTE2", 0)


def two_blocks_one_row(k, table, values, rows):
    """Two blocks write the same rows without atomics."""
    v, i = _load_rows(k, values, rows)
    k.mscatter(table, v, i, coalesce="row")
    _flush(k)


def two_blocks_one_store(k, x, out):
    """Two blocks store to one place."""
    t = k.tile("float32", 8, 16)
    k.tload(t, x)
    k.set_flag("MTE2", "MTE3", 0)
    k.wait_flag("MTE2", "MTE3", 0)
    k.tstore(out, t)


def two_blocks_one_sum(k, counts, ones, bins):
    """Scalar read-modify-writes of two blocks lose updates."""
    n, i = k.tile("int32", 4, 16), k.tile("int32", 4, 16)
    k.tload(n, ones)
    k.tload(i, bins)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(counts, n, i, coalesce="elem", atomic="add")
    _flush(k)


# M: the unified buffer


def past_the_end(k, x, out):
    """The tile reaches past the end of UB."""
    t = k.tile("float32", 8, 16, at=256 * 1024 - 64)
    k.tload(t, x)
    k.set_flag("MTE2", "MTE3", 0)
    k.wait_flag("MTE2", "MTE3", 0)
    k.tstore(out, t)


def into_the_data_cache(k, x, out):
    """The tile lies behind what a launch can ask for."""
    t = k.tile("float32", 8, 16, at=216 * 1024)
    k.tload(t, x)
    k.set_flag("MTE2", "MTE3", 0)
    k.wait_flag("MTE2", "MTE3", 0)
    k.tstore(out, t)


def not_on_32_bytes(k, x, out):
    """The tile's address is no multiple of 32."""
    t = k.tile("float32", 8, 16, at=0x110)
    k.tload(t, x)
    k.set_flag("MTE2", "MTE3", 0)
    k.wait_flag("MTE2", "MTE3", 0)
    k.tstore(out, t)


def nobody_wrote_the_indices(k, table, values, rows):
    """The index tile was never written."""
    v, _ = _load_rows(k, values, rows)
    i = k.tile("int32", 1, 8)
    k.mscatter(table, v, i, coalesce="row", oob="skip")
    _flush(k)


def nobody_wrote_the_source(k, table, values, rows):
    """The source tile was never written."""
    _, i = _load_rows(k, values, rows)
    v = k.tile("float32", 8, 16)
    k.mscatter(table, v, i, coalesce="row")
    _flush(k)


def half_of_the_indices(k, table, values, rows):
    """The last four indices were never loaded."""
    v = k.tile("float32", 8, 16)
    i = k.tile("int32", 1, 8, valid=(1, -1))
    k.tload(v, values)
    i.set_valid(1, 4)
    k.tload(i, rows[0:1, 0:4])
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    i.set_valid(1, 8)
    k.mscatter(table, v, i, coalesce="row", oob="skip")
    _flush(k)


def indices_under_the_source(k, table, values, rows):
    """The index tile lies over the end of the source tile."""
    v = k.tile("float32", 8, 16, at=0x000)
    i = k.tile("int32", 1, 8, at=0x1E0)
    k.tload(v, values)
    k.tload(i, rows)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, v, i, coalesce="row", oob="skip")
    _flush(k)


def no_dynamic_ub(k, table, values, where):
    """144 KiB of tiles, and no dynamic UB asked for."""
    v = k.tile("float32", 2304, 8, at=0x00000)
    i = k.tile("int32", 2304, 8, at=0x12000)
    k.tload(v, values)
    k.tload(i, where)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, v, i, coalesce="elem")
    _flush(k)


# I: indices


def past_the_table(k, table, values, rows):
    """Row 20 of a table of 20 rows, unchecked."""
    v, i = _load_rows(k, values, rows)
    k.mscatter(table, v, i, coalesce="row", atomic="add")
    _flush(k)


def from_the_end(k, table, values, rows):
    """-1 under wrap is not the last row."""
    v, i = _load_rows(k, values, rows)
    k.mscatter(table, v, i, coalesce="row", oob="wrap")
    _flush(k)


# H: coherence and launch


def no_flush(k, table, values, where):
    """No flush after the scatter."""
    v, i = _load_elements(k, values, where)
    k.mscatter(table, v, i, coalesce="elem")


def half_a_flush(k, table, values, where):
    """Dcci without dsb."""
    v, i = _load_elements(k, values, where)
    k.mscatter(table, v, i, coalesce="elem")
    k.pipe_barrier("ALL")
    k.dcci()


def flush_backwards(k, table, values, where):
    """Dsb before dcci."""
    v, i = _load_elements(k, values, where)
    k.mscatter(table, v, i, coalesce="elem")
    k.pipe_barrier("ALL")
    k.dsb()
    k.dcci()


def flush_before_the_barrier(k, table, values, where):
    """The flush is not ordered after the scatter."""
    v, i = _load_elements(k, values, where)
    k.mscatter(table, v, i, coalesce="elem")
    k.dcci()
    k.dsb()
    k.pipe_barrier("ALL")


def counter_without_flush(k, counter):
    """No flush after a scalar store."""
    k.store_scalar(counter, 0, k.load_scalar(counter, 0) + 1)


def reload_without_flush(k, table, values, where):
    """The table is loaded back before it was flushed."""
    v, i = _load_elements(k, values, where)
    t = k.tile("float32", 4, 16)
    k.mscatter(table, v, i, coalesce="elem")
    k.set_flag("V", "MTE2", 0)
    k.wait_flag("V", "MTE2", 0)
    k.tload(t, table)
    _flush(k)


def called_as_a_function(k, table, values, rows):
    """SIMT needs the standard launch."""
    v, i = _load_rows(k, values, rows)
    k.mscatter(table, v, i, coalesce="row")
    _flush(k)


def _load_rows(k, values, rows, wait=True):
    v = k.tile("float32", 8, 16)
    i = k.tile("int32", 1, 8)
    k.tload(v, values)
    k.tload(i, rows)
    if wait:
        k.set_flag("MTE2", "V", 0)
        k.wait_flag("MTE2", "V", 0)
    return v, i


def _load_elements(k, values, where):
    v = k.tile("float32", 2, 16)
    i = k.tile("int32", 2, 16)
    k.tload(v, values)
    k.tload(i, where)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    return v, i


def _flush(k):
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def _rows() -> list[Any]:
    return [numbers((20, 16)), numbers((8, 16), seed=1), indices(5, 2, 19, 0, 7, 11, 3, 4)]


def _rows_from(*words: int) -> Callable[[], list[Any]]:
    return lambda: [*_rows()[:2], indices(*words)]


def _elements() -> list[Any]:
    return [numbers((4, 16)), numbers((2, 16), seed=1), any_indices((2, 16), 64, seed=2)]


def _copy() -> list[Any]:
    return [numbers((8, 16)), numbers((8, 16), seed=1)]


def _sums() -> list[Any]:
    return [numbers((9,), "int32"), np.ones((4, 16), np.int32), any_indices((4, 16), 9, seed=1)]


def _large() -> list[Any]:
    return [numbers((4096,)), numbers((2304, 8), seed=1), any_indices((2304, 8), 4096, seed=2)]


def _faulty(
    kernel: Kernel,
    make: Callable[[], list[Any]],
    letter: str,
    targets: tuple[str, ...] = BOTH,
    **launch: Any,
) -> Faulty:
    return Faulty(kernel.__name__, kernel, make, letter, kernel.__doc__ or "", targets, launch)


BROKEN: list[Faulty] = [
    _faulty(scatter_before_the_load, _rows, "S", A5),
    _faulty(gather_before_the_load, _rows, "S"),
    _faulty(store_before_the_sum, _copy, "S"),
    _faulty(load_over_what_v_reads, _copy, "S"),
    _faulty(load_over_what_is_stored, _copy, "S"),
    _faulty(scalar_reads_before_the_load, _copy, "S"),
    _faulty(indices_by_hand_untold, _rows, "S", A5),
    _faulty(load_back_too_early, _copy, "S"),
    _faulty(flag_set_twice, _copy, "S"),
    _faulty(flag_left_set, _copy, "S"),
    _faulty(wait_that_nothing_sets, _copy, "S"),
    _faulty(wait_for_another_pair, _copy, "S"),
    _faulty(event_nine, _copy, "S"),
    _faulty(id_zero_held, _rows, "S", A2A3),
    _faulty(two_blocks_one_row, _rows, "S", blocks=2),
    _faulty(two_blocks_one_store, _copy, "S", blocks=2),
    _faulty(two_blocks_one_sum, _sums, "S", A2A3, blocks=2),
    _faulty(past_the_end, _copy, "M"),
    _faulty(into_the_data_cache, _copy, "M"),
    _faulty(not_on_32_bytes, _copy, "M"),
    _faulty(nobody_wrote_the_indices, _rows, "M"),
    _faulty(nobody_wrote_the_source, _rows, "M"),
    _faulty(half_of_the_indices, _rows, "M"),
    _faulty(indices_under_the_source, _rows, "M"),
    _faulty(no_dynamic_ub, _large, "M", A5),
    _faulty(past_the_table, _rows_from(5, 2, 19, 0, 20, 11, 3, 4), "I"),
    _faulty(from_the_end, _rows_from(5, 2, 18, 0, -1, 11, 3, 4), "I"),
    _faulty(no_flush, _elements, "H"),
    _faulty(half_a_flush, _elements, "H"),
    _faulty(flush_backwards, _elements, "H"),
    _faulty(flush_before_the_barrier, _elements, "H", A5),
    _faulty(counter_without_flush, lambda: [indices(3, 0)], "H"),
    _faulty(reload_without_flush, _elements, "H", A5),
    _faulty(called_as_a_function, _rows, "H", A5, dispatch="function"),
]
