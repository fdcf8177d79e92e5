"""pto.scatter and pto.gather beside NumPy, PyTorch and JAX on host arrays, and beside what the memory can do.

Contenders that do not keep the order of duplicates, or round another way, are shown but are no rivals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

import ptokit as pto
from benchmarks.frame import Contender, Workload
from ptokit import _native

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Sizes:
    """How large the workloads are."""

    rows: int = 1 << 20
    width: int = 64
    picked: int = 1 << 18
    elements: int = 1 << 26
    touched: int = 1 << 23


def workloads(quick: bool) -> Iterator[Workload]:
    """W1 to W9, each made when it is its turn."""
    sizes = Sizes(rows=1 << 16, picked=1 << 14, elements=1 << 22, touched=1 << 19) if quick else Sizes()
    yield from gather_rows(sizes)
    yield set_rows(sizes)
    yield from add_rows(sizes)
    yield gather_elements(sizes)
    yield set_elements(sizes)
    yield from add_elements(sizes)
    yield from max_elements(sizes)
    yield from small_calls(1 if quick else 2000)
    yield from add_narrow_rows(sizes)


THREADS = sorted({1, _native.usable_cpus()})

# The limit of this machine


@cache
def streaming(write: bool) -> float:
    """Bytes a second, on the better of one thread and all."""
    return max(_native.streaming_rate(1 << 29, threads, write) for threads in THREADS)


@cache
def lines(nbytes: int, write: bool) -> float:
    """Random lines a second in a table of that size, on the better of one thread and all."""
    return max(_native.random_rate(nbytes, threads, write) for threads in THREADS)


def limits() -> dict[str, str]:
    """What the memory of this machine can do, measured in this run."""
    told = {}
    for threads in THREADS:
        on = f"{threads} thread{'s' if threads > 1 else ''}"
        told[f"streaming read, {on}"] = f"{_native.streaming_rate(1 << 29, threads, False) / 1e9:.1f} GB/s"
        for kind, scattered in (("neighbouring", False), ("random", True)):
            rate = _native.copy_rate(1 << 28, threads, scattered) / 1e9
            told[f"copy of {kind} rows of 256 bytes, {on}"] = f"{rate:.1f} GB/s"
        told[f"streaming read-modify-write, {on}"] = f"{_native.streaming_rate(1 << 29, threads, True) / 1e9:.1f} GB/s"
        for mebibytes in (64, 256, 1024):
            rate = _native.random_rate(mebibytes << 20, threads, False) / 1e6
            changed = _native.random_rate(mebibytes << 20, threads, True) / 1e6
            told[f"random lines of {mebibytes} MiB, {on}"] = f"{rate:.0f} M/s read, {changed:.0f} M/s changed"
    return told


def streamed_ms(nbytes: float) -> float:
    """The compulsory bytes at the measured bandwidth."""
    return nbytes / streaming(False) * 1e3


def random_ms(count: int, table: Array, write: bool, per_lane: int) -> float:
    """So many random lines, and the traffic of indices and source or destination."""
    return count / lines(table.nbytes, write) * 1e3 + streamed_ms(count * per_lane)


# Contenders


def name_of(threads: int) -> str:
    """What ptokit on so many threads is called."""
    return f"ptokit, {threads} thread{'s' if threads > 1 else ''}"


def torch_of(array: Array) -> Any:
    """The same memory as a PyTorch tensor."""
    import torch

    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def jax_with_64_bits() -> Any:
    """JAX, which takes 32 bits of an index unless told otherwise."""
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax


class JaxUpdate:
    """A jitted update of a donated table, which stays JAX's between calls."""

    def __init__(self, start: Array, update: Callable[..., Any], *operands: Array) -> None:
        self.jax, self.start = jax_with_64_bits(), start
        self.operands = [self.jax.device_put(o) for o in operands]
        self.step = self.jax.jit(update, donate_argnums=0)
        self.table = self.jax.device_put(start)

    def prepare(self) -> None:
        """The table as it was, in memory of JAX's own."""
        self.table = self.jax.device_put(self.start.copy()).block_until_ready()

    def run(self) -> None:
        """One update."""
        self.table = self.step(self.table, *self.operands).block_until_ready()

    def result(self) -> Array:
        """The table."""
        return np.asarray(self.table)


class Made:
    """A gather that makes a new array every time; the last one is let go before the clock starts."""

    def __init__(self, make: Callable[[], Any], threads: int = 0) -> None:
        self.make, self.threads, self.made = make, threads, None

    def prepare(self) -> None:
        """Nothing is left of the call before."""
        self.made = None
        if self.threads:
            pto.set_num_threads(self.threads)

    def run(self) -> None:
        """One gather."""
        self.made = self.make()

    def result(self) -> Array:
        """What it gave."""
        return np.asarray(self.made)

    def contender(self, name: str) -> Contender:
        """The gather as a contender."""
        return Contender(name, self.run, self.prepare, self.result, ours=self.threads > 0)


def jax_update(name: str, start: Array, update: Callable[..., Any], *operands: Array, **more: Any) -> Contender:
    """A contender that updates its table in JAX."""
    state = JaxUpdate(start, update, *operands)
    return Contender(f"JAX {name}", state.run, state.prepare, state.result, **more)


def jax_gather(table: Array, idx: Array) -> Contender:
    """A contender that gathers in JAX."""
    jax = jax_with_64_bits()
    step, t, i = jax.jit(lambda table, idx: table[idx]), jax.device_put(table), jax.device_put(idx)
    return Made(lambda: step(t, i).block_until_ready()).contender("JAX t[i]")


def in_place(name: str, start: Array, update: Callable[[Array], object], **more: Any) -> Contender:
    """A contender that updates an array of its own."""
    table = start.copy()
    return Contender(name, lambda: update(table), lambda: np.copyto(table, start), lambda: table, **more)


def into(name: str, like: Array, gather: Callable[[Array], object], threads: int = 0) -> Contender:
    """A contender that gathers into an array of its own."""
    out = np.zeros_like(like)
    prepare = (lambda: pto.set_num_threads(threads)) if threads else None
    return Contender(name, lambda: gather(out), prepare, lambda: out, ours=threads > 0)


def scatters(start: Array, src: Array, idx: Array, **how: str) -> list[Contender]:
    """pto.scatter on one thread and on all."""

    def on(threads: int) -> Contender:
        table = start.copy()

        def prepare() -> None:
            np.copyto(table, start)
            pto.set_num_threads(threads)

        return Contender(
            name_of(threads), lambda: pto.scatter(table, src, idx, **how), prepare, lambda: table, ours=True
        )

    return [on(threads) for threads in THREADS]


# Data


def rows_of(sizes: Sizes, dtype: Any = np.float32) -> tuple[Array, Array, Array]:
    """Table, source and uniform row indices."""
    rng = np.random.default_rng(3)
    table = rng.standard_normal((sizes.rows, sizes.width), np.float32).astype(dtype)
    src = rng.standard_normal((sizes.picked, sizes.width), np.float32).astype(dtype)
    return table, src, rng.integers(0, sizes.rows, sizes.picked)


def elements_of(sizes: Sizes, dtype: Any = np.float32) -> tuple[Array, Array, Array]:
    """Table, source and uniform element indices."""
    rng = np.random.default_rng(4)
    draw = rng.standard_normal if dtype == np.float32 else lambda n, _: rng.integers(-1000, 1000, n)
    table, src = (draw(n, np.float32).astype(dtype) for n in (sizes.elements, sizes.touched))
    return table, src, rng.integers(0, sizes.elements, sizes.touched)


def zipf(count: int, most: int) -> Array:
    """Indices of which a few come very often."""
    return (np.random.default_rng(5).zipf(1.2, count) - 1) % most


# The workloads


def gather_rows(sizes: Sizes) -> Iterator[Workload]:
    """W1."""
    import torch

    table, src, idx = rows_of(sizes)
    t, i = torch_of(table), torch_of(idx)
    title, limit = f"gather {len(idx)} rows of {sizes.rows} x {sizes.width}", streamed_ms(2 * src.nbytes)
    yield Workload(
        "W1a",
        f"{title}, out=",
        (
            into("NumPy take(out=)", src, lambda out: np.take(table, idx, 0, out, "clip")),
            into("PyTorch index_select(out=)", src, lambda out: torch.index_select(t, 0, i, out=torch_of(out))),
            *(into(name_of(n), src, lambda out: pto.gather(table, idx, out=out), n) for n in THREADS),
        ),
        2 * src.nbytes,
        limit,
        "1.3x, 0.7",
    )
    yield Workload(
        "W1b",
        "the same into a fresh array",
        (
            Made(lambda: np.take(table, idx, 0)).contender("NumPy take"),
            Made(lambda: t[i]).contender("PyTorch t[i]"),
            jax_gather(table, idx),
            *(Made(lambda: pto.gather(table, idx), n).contender(name_of(n)) for n in THREADS),
        ),
        2 * src.nbytes,
        limit,
        "1.6x",
    )


def set_rows(sizes: Sizes) -> Workload:
    """W2."""
    table, src, idx = rows_of(sizes)
    i, s = torch_of(idx), torch_of(src)
    return Workload(
        "W2",
        "scatter the same, set",
        (
            in_place("NumPy t[i] = s", table, lambda t: t.__setitem__(idx, src)),
            in_place("PyTorch index_copy_", table, lambda t: torch_of(t).index_copy_(0, i, s), comparable=False),
            jax_update(".at.set", table, lambda t, i, s: t.at[i].set(s), idx, src),
            *scatters(table, src, idx),
        ),
        2 * src.nbytes,
        streamed_ms(2 * src.nbytes),
        "2.2x, 0.85",
    )


def add_rows(sizes: Sizes) -> Iterator[Workload]:
    """W3."""
    table, src, uniform = rows_of(sizes)
    for id_, kind, idx, goal in (
        ("W3a", "uniform", uniform, "1.8x, 0.65"),
        ("W3b", "Zipf", zipf(sizes.picked, sizes.rows), "2.2x"),
    ):
        yield row_sums(id_, f"scatter the same, add, {kind}", table, src, idx, goal)


def row_sums(id_: str, title: str, table: Array, src: Array, idx: Array, goal: str) -> Workload:
    """Rows added; PyTorch adds 16-bit floats in another way."""
    i, s = torch_of(idx), torch_of(src)
    nbytes = src.nbytes // len(src)
    # A row of several lines: the first is a random one, the others follow it.
    limit = random_ms(len(idx) * max(1, nbytes // 64), table, True, 64)
    return Workload(
        id_,
        title,
        (
            in_place("NumPy add.at", table, lambda t: np.add.at(t, idx, src)),
            in_place("PyTorch index_add_", table, lambda t: torch_of(t).index_add_(0, i, s), comparable=False),
            jax_update(".at.add", table, lambda t, i, s: t.at[i].add(s), idx, src),
            *scatters(table, src, idx, atomic="add"),
        ),
        3 * src.nbytes,
        limit,
        goal,
    )


def gather_elements(sizes: Sizes) -> Workload:
    """W4."""
    import torch

    table, src, idx = elements_of(sizes)
    t, i = torch_of(table), torch_of(idx)
    return Workload(
        "W4",
        f"gather {len(idx)} elements of {len(table)}",
        (
            into("NumPy take(out=)", src, lambda out: np.take(table, idx, out=out, mode="clip")),
            into("PyTorch take(out=)", src, lambda out: torch.take(t, i, out=torch_of(out))),
            jax_gather(table, idx),
            *(into(name_of(n), src, lambda out: pto.gather(table, idx, coalesce="elem", out=out), n) for n in THREADS),
        ),
        12 * len(idx),
        random_ms(len(idx), table, False, 12),
        "2.2x, 0.95",
    )


def set_elements(sizes: Sizes) -> Workload:
    """W5."""
    table, src, idx = elements_of(sizes)
    i, s = torch_of(idx), torch_of(src)
    return Workload(
        "W5",
        "scatter the same, set",
        (
            in_place("NumPy t[i] = s", table, lambda t: t.__setitem__(idx, src)),
            in_place("PyTorch index_copy_", table, lambda t: torch_of(t).index_copy_(0, i, s), comparable=False),
            jax_update(".at.set", table, lambda t, i, s: t.at[i].set(s), idx, src),
            *scatters(table, src, idx, coalesce="elem"),
        ),
        12 * len(idx),
        random_ms(len(idx), table, True, 12),
        "1.6x, 0.95",
    )


def add_elements(sizes: Sizes) -> Iterator[Workload]:
    """W6."""
    table, src, uniform = elements_of(sizes)
    yield element_sums("W6a", "uniform", table, src, uniform, "3.2x, 0.95")
    yield element_sums("W6b", "Zipf", table, src, zipf(sizes.touched, sizes.elements), "4.2x")


def element_sums(id_: str, kind: str, table: Array, src: Array, idx: Array, goal: str) -> Workload:
    """Elements added."""
    i, s = torch_of(idx), torch_of(src)
    return Workload(
        id_,
        f"scatter the same, add, {kind}",
        (
            in_place("NumPy add.at", table, lambda t: np.add.at(t, idx, src)),
            in_place("PyTorch scatter_add_", table, lambda t: torch_of(t).scatter_add_(0, i, s)),
            jax_update(".at.add", table, lambda t, i, s: t.at[i].add(s), idx, src),
            *scatters(table, src, idx, coalesce="elem", atomic="add"),
        ),
        12 * len(idx),
        random_ms(len(idx), table, True, 12),
        goal,
    )


def max_elements(sizes: Sizes) -> Iterator[Workload]:
    """W7."""
    yield element_maxima("W7a", sizes, np.float32)
    yield element_maxima("W7b", sizes, np.int32)


def element_maxima(id_: str, sizes: Sizes, dtype: Any) -> Workload:
    """The larger of both stays."""
    table, src, idx = elements_of(sizes, dtype)
    i, s = torch_of(idx), torch_of(src)
    return Workload(
        id_,
        f"scatter the same, max, {np.dtype(dtype)}",
        (
            in_place("NumPy maximum.at", table, lambda t: np.maximum.at(t, idx, src)),
            in_place("PyTorch scatter_reduce_", table, lambda t: torch_of(t).scatter_reduce_(0, i, s, "amax")),
            jax_update(".at.max", table, lambda t, i, s: t.at[i].max(s), idx, src),
            *scatters(table, src, idx, coalesce="elem", atomic="max"),
        ),
        12 * len(idx),
        random_ms(len(idx), table, True, 12),
        "3.6x, 0.95",
    )


def small_calls(calls: int) -> Iterator[Workload]:
    """W8."""
    rng = np.random.default_rng(6)
    for id_, title, how, shape, of in (
        ("W8a", "16x16 elements into 4,096", "elem", (4096,), (16, 16)),
        ("W8b", "16 rows of 64", "row", (4096, 64), (16,)),
    ):
        idx = rng.integers(0, 4096, of)
        src = rng.standard_normal((*of, *shape[1:])).astype(np.float32)
        yield small_call(id_, f"small calls: {title}", np.zeros(shape, np.float32), src, idx, how, calls)


def small_call(id_: str, title: str, table: Array, src: Array, idx: Array, how: str, calls: int) -> Workload:
    """One of them: the time of a call with keyword arguments."""
    t, s, i = torch_of(table), torch_of(src.reshape(-1, *table.shape[1:])), torch_of(idx.ravel())

    def run(name: str, call: Callable[[], object], **more: Any) -> Contender:
        return Contender(name, call, None, lambda: table, calls=calls, **more)

    return Workload(
        id_,
        title,
        (
            run("NumPy t[i] = s", lambda: table.__setitem__(idx, src)),
            run("PyTorch index_copy_", lambda: t.index_copy_(0, i, s), comparable=False),
            run("ptokit", lambda: pto.scatter(table, src, idx, coalesce=how, oob="raise"), ours=True),
        ),
        goal="0.25 us",
    )


def add_narrow_rows(sizes: Sizes) -> Iterator[Workload]:
    """W9."""
    for id_, dtype, goal in (("W9a", np.float16, "3.0x"), ("W9b", ml_dtypes.bfloat16, "5.5x, 25x exact")):
        table, src, idx = rows_of(sizes, dtype)
        yield row_sums(id_, f"row add, {np.dtype(dtype)}", table, src, idx, goal)
