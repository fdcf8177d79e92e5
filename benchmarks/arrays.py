"""pto.scatter and pto.gather beside NumPy, PyTorch and JAX on host arrays, and beside what the memory can do.

Workloads W1 to W9; contenders that do not keep the order of duplicates, or round another way, are shown but are no rivals.
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


# The limit of this machine


@cache
def streaming(write: bool) -> float:
    """Bytes a second, on the better of one thread and all."""
    return max(_native.streaming_rate(1 << 29, threads, write) for threads in (1, _native.usable_cpus()))


@cache
def lines(nbytes: int, write: bool) -> float:
    """Random lines a second in a table of that size, on the better of one thread and all."""
    return max(_native.random_rate(nbytes, threads, write) for threads in (1, _native.usable_cpus()))


def streamed_ms(read: float, written: float = 0) -> float:
    """The compulsory bytes at the measured bandwidth."""
    return (read + written) / streaming(False) * 1e3


def random_ms(count: int, table: Array, write: bool, per_lane: int) -> float:
    """So many random lines, and the traffic of indices and source or destination."""
    return count / lines(table.nbytes, write) * 1e3 + count * per_lane / streaming(False) * 1e3


# Contenders


def torch_of(array: Array) -> Any:
    """The same memory as a PyTorch tensor."""
    import torch

    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


class Jax:
    """A jitted update of a donated table, kept on the device between calls."""

    def __init__(self, start: Array, update: Callable[..., Any], *operands: Array) -> None:
        import jax

        jax.config.update("jax_enable_x64", True)
        self.jax, self.start = jax, start
        self.operands = [jax.device_put(o) for o in operands]
        self.step = jax.jit(update, donate_argnums=0)
        self.table = jax.device_put(start)

    def prepare(self) -> None:
        """The table as it was, in memory of JAX's own."""
        self.table = self.jax.device_put(self.start.copy()).block_until_ready()

    def run(self) -> None:
        """One update."""
        self.table = self.step(self.table, *self.operands).block_until_ready()

    def result(self) -> Array:
        """The table."""
        return np.asarray(self.table)


def jax_update(name: str, start: Array, update: Callable[..., Any], *operands: Array, **more: Any) -> Contender:
    """A contender that updates its table in JAX."""
    state = Jax(start, update, *operands)
    return Contender(f"JAX {name}", state.run, state.prepare, state.result, **more)


def in_place(name: str, start: Array, update: Callable[[Array], object], **more: Any) -> Contender:
    """A contender that updates an array of its own."""
    table = start.copy()
    return Contender(name, lambda: update(table), lambda: np.copyto(table, start), lambda: table, **more)


def ours(start: Array, src: Array, idx: Array, **how: str) -> list[Contender]:
    """pto.scatter on one thread and on all."""

    def on(threads: int) -> Contender:
        table = start.copy()

        def prepare() -> None:
            np.copyto(table, start)
            pto.set_num_threads(threads)

        name = f"ptokit, {threads} thread{'s' if threads > 1 else ''}"
        return Contender(name, lambda: pto.scatter(table, src, idx, **how), prepare, lambda: table, ours=True)

    return [on(threads) for threads in sorted({1, _native.usable_cpus()})]


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

    table, _, idx = rows_of(sizes)
    out, theirs, t, i = np.empty((len(idx), sizes.width), np.float32), torch.empty(0), torch_of(table), torch_of(idx)
    theirs = torch.empty(out.shape)
    kept: dict[str, Any] = {}

    def keep(name: str, value: Any) -> None:
        kept[name] = value

    def mine(threads: int, into: Array | None) -> Contender:
        name = f"ptokit, {threads} thread{'s' if threads > 1 else ''}"

        def run() -> None:
            keep(name, pto.gather(table, idx, out=into))

        return Contender(
            name, run, lambda: (kept.pop(name, None), pto.set_num_threads(threads)), lambda: kept[name], ours=True
        )

    moved = 2 * out.nbytes
    every = sorted({1, _native.usable_cpus()})
    yield Workload(
        "W1a",
        f"gather {len(idx)} rows of {sizes.rows} x {sizes.width}, out=",
        (
            Contender("NumPy take(out=)", lambda: np.take(table, idx, 0, out, "clip"), None, lambda: out),
            Contender(
                "PyTorch index_select(out=)", lambda: torch.index_select(t, 0, i, out=theirs), None, theirs.numpy
            ),
            *(mine(n, out) for n in every),
        ),
        moved,
        streamed_ms(out.nbytes, out.nbytes),
        "1.3x, 0.7",
    )
    step, device = jax_gather(lambda table, idx: table[idx], table, idx)
    yield Workload(
        "W1b",
        "the same into a fresh array",
        (
            Contender(
                "NumPy take",
                lambda: keep("np", np.take(table, idx, 0)),
                lambda: kept.pop("np", None),
                lambda: kept["np"],
            ),
            Contender(
                "PyTorch t[i]", lambda: keep("pt", t[i]), lambda: kept.pop("pt", None), lambda: kept["pt"].numpy()
            ),
            Contender(
                "JAX t[i]",
                lambda: keep("jax", step(*device)),
                lambda: kept.pop("jax", None),
                lambda: np.asarray(kept["jax"]),
            ),
            *(mine(n, None) for n in every),
        ),
        moved,
        streamed_ms(out.nbytes, out.nbytes),
        "1.6x",
    )


def jax_gather(pick: Callable[..., Any], *operands: Array) -> tuple[Callable[..., Any], list[Any]]:
    """A jitted gather and its operands on the device."""
    import jax

    jax.config.update("jax_enable_x64", True)
    step = jax.jit(pick)
    return (lambda *on: step(*on).block_until_ready()), [jax.device_put(o) for o in operands]


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
            *ours(table, src, idx),
        ),
        2 * src.nbytes,
        streamed_ms(src.nbytes, src.nbytes),
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
            *ours(table, src, idx, atomic="add"),
        ),
        3 * src.nbytes,
        limit,
        goal,
    )


def gather_elements(sizes: Sizes) -> Workload:
    """W4."""
    import torch

    table, _, idx = elements_of(sizes)
    out, t, i = np.empty(len(idx), np.float32), torch_of(table), torch_of(idx)
    theirs = torch.empty(len(idx))
    step, device = jax_gather(lambda table, idx: table[idx], table, idx)
    kept: dict[str, Any] = {}

    def mine(threads: int) -> Contender:
        name = f"ptokit, {threads} thread{'s' if threads > 1 else ''}"
        got = np.empty_like(out)
        return Contender(
            name,
            lambda: pto.gather(table, idx, coalesce="elem", out=got),
            lambda: pto.set_num_threads(threads),
            lambda: got,
            ours=True,
        )

    def jax_run() -> None:
        kept["jax"] = step(*device)

    return Workload(
        "W4",
        f"gather {len(idx)} elements of {len(table)}",
        (
            Contender("NumPy take(out=)", lambda: np.take(table, idx, out=out, mode="clip"), None, lambda: out),
            Contender("PyTorch take(out=)", lambda: torch.take(t, i, out=theirs), None, theirs.numpy),
            Contender("JAX t[i]", jax_run, lambda: kept.pop("jax", None), lambda: np.asarray(kept["jax"])),
            *(mine(n) for n in sorted({1, _native.usable_cpus()})),
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
            *ours(table, src, idx, coalesce="elem"),
        ),
        12 * len(idx),
        random_ms(len(idx), table, True, 12),
        "1.6x, 0.95",
    )


def add_elements(sizes: Sizes) -> Iterator[Workload]:
    """W6."""
    table, src, uniform = elements_of(sizes)
    for id_, kind, idx, goal in (
        ("W6a", "uniform", uniform, "3.2x, 0.95"),
        ("W6b", "Zipf", zipf(sizes.touched, sizes.elements), "4.2x"),
    ):
        i, s = torch_of(idx), torch_of(src)
        yield Workload(
            id_,
            f"scatter the same, add, {kind}",
            (
                in_place("NumPy add.at", table, lambda t, idx=idx: np.add.at(t, idx, src)),  # type: ignore[misc]
                in_place("PyTorch scatter_add_", table, lambda t, i=i, s=s: torch_of(t).scatter_add_(0, i, s)),  # type: ignore[misc]
                jax_update(".at.add", table, lambda t, i, s: t.at[i].add(s), idx, src),
                *ours(table, src, idx, coalesce="elem", atomic="add"),
            ),
            12 * len(idx),
            random_ms(len(idx), table, True, 12),
            goal,
        )


def max_elements(sizes: Sizes) -> Iterator[Workload]:
    """W7."""
    for id_, dtype in (("W7a", np.float32), ("W7b", np.int32)):
        table, src, idx = elements_of(sizes, dtype)
        i, s = torch_of(idx), torch_of(src)
        yield Workload(
            id_,
            f"scatter the same, max, {np.dtype(dtype)}",
            (
                in_place("NumPy maximum.at", table, lambda t, idx=idx, src=src: np.maximum.at(t, idx, src)),  # type: ignore[misc]
                in_place(
                    "PyTorch scatter_reduce_",
                    table,
                    lambda t, i=i, s=s: torch_of(t).scatter_reduce_(0, i, s, "amax"),  # type: ignore[misc]
                ),
                jax_update(".at.max", table, lambda t, i, s: t.at[i].max(s), idx, src),
                *ours(table, src, idx, coalesce="elem", atomic="max"),
            ),
            12 * len(idx),
            random_ms(len(idx), table, True, 12),
            "3.6x, 0.95",
        )


def small_calls(calls: int) -> Iterator[Workload]:
    """W8."""
    rng = np.random.default_rng(6)
    for id_, how, shape, of, goal in (
        ("W8a", "elem", (4096,), (16, 16), "0.25 us"),
        ("W8b", "row", (4096, 64), (16,), "0.25 us"),
    ):
        table, idx = np.zeros(shape, np.float32), rng.integers(0, 4096, of)
        src = rng.standard_normal((*of, *shape[1:])).astype(np.float32)
        flat = (idx.ravel(), src.reshape(-1, *shape[1:]))
        i, s = torch_of(flat[0]), torch_of(flat[1])
        t = torch_of(table)
        what = "16x16 elements into 4,096" if how == "elem" else "16 rows of 64"
        yield Workload(
            id_,
            f"small calls: {what}",
            (
                Contender("NumPy t[i] = s", lambda: table.__setitem__(idx, src), None, lambda: table, calls=calls),  # noqa: B023
                Contender(
                    "PyTorch index_copy_",
                    lambda: t.index_copy_(0, i, s),
                    None,
                    lambda: table,
                    comparable=False,
                    calls=calls,
                ),
                Contender(
                    "ptokit",
                    lambda: pto.scatter(table, src, idx, coalesce=how, oob="raise"),  # noqa: B023
                    None,
                    lambda: table,  # noqa: B023
                    ours=True,
                    calls=calls,
                ),
            ),
            goal=goal,
        )


def add_narrow_rows(sizes: Sizes) -> Iterator[Workload]:
    """W9."""
    for id_, dtype, goal in (("W9a", np.float16, "3.0x"), ("W9b", ml_dtypes.bfloat16, "5.5x, 25x exact")):
        table, src, idx = rows_of(sizes, dtype)
        yield row_sums(id_, f"row add, {np.dtype(dtype)}", table, src, idx, goal)
