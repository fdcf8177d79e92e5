"""TSCATTER, TGATHER and their family over real ranks: against the formula, bit for bit; and each misuse by name."""

from __future__ import annotations

import itertools
import time
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ptokit as pto
from ptokit.comm import collectives
from ptokit.comm.moving import Box, copy, runs
from ranks import fails, ids, left_clean, play

both = pytest.mark.parametrize("threads", [False, True], ids=["processes", "threads"])
modes = pytest.mark.parametrize("mode", ["fast", "tile"])
sizes = pytest.mark.parametrize("n", [1, 2, 3, 4])
nothing_is_left = pytest.fixture(autouse=True)(left_clean)

DTYPES = {
    **{name: np.dtype(name) for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "float32")},
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float8_e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "float8_e5m2": np.dtype(ml_dtypes.float8_e5m2),
}


def pattern(shape: Any, dtype: Any, seed: int = 0) -> Any:
    """Bits of all kinds: what moves data must not care what they mean."""
    dtype = np.dtype(dtype)
    raw = np.random.default_rng(seed).integers(0, 256, int(np.prod(shape)) * dtype.itemsize, np.uint8)
    return raw.view(dtype).reshape(shape)


def bits(array: Any) -> Any:
    """The bytes of an array."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).tobytes()


def scattered(src: Any, dst: Any, rank: int) -> Any:
    """The formula, element by element: what a rank's destination holds afterwards."""
    wanted = dst.copy()
    d0, d1, d2, rows, cols = dst.shape
    for a, b, c, i, j in itertools.product(range(d0), range(d1), range(d2), range(rows), range(cols)):
        wanted[a, b, c, i, j] = src[a, b, c, rank * rows + i, j]
    return wanted


# The formula


@both
@modes
@sizes
def test_every_rank_gets_its_rows_and_only_the_root_calls(n: int, mode: str, threads: bool) -> None:
    src = pattern((n * 5 + 2, 16), "float32")

    def work(rank: Any) -> Any:
        part = rank.zeros((5, 16))
        group = rank.group(part, root=n - 1)
        if rank.rank == n - 1:
            report = pto.comm.tscatter(group, src, dyn(), mode=mode)
            assert report.ranks == n
        rank.barrier()
        return bits(part)

    def dyn() -> pto.Tile:
        tile = pto.Tile("float32", 4, 16, valid=(-1, -1))
        tile.set_valid(2, 8)
        return tile

    assert play(n, work, threads=threads) == [bits(src[5 * r : 5 * r + 5]) for r in range(n)]


@both
@modes
@sizes
def test_a_gather_is_the_inverse_and_further_rows_stay(n: int, mode: str, threads: bool) -> None:
    parts = [pattern((3, 8), "int32", r) for r in range(n)]

    def work(rank: Any) -> Any:
        group = rank.group(parts[rank.rank].copy(), root=0)
        whole = np.full((3 * n + 2, 8), 77, np.int32)
        if rank.rank == 0:
            pto.comm.tgather(group, whole, pto.Tile("int32", 3, 8), pto.Tile("int32", 3, 8), mode=mode)
        return bits(whole)

    untouched = np.full((2, 8), 77, np.int32)
    assert play(n, work, threads=threads)[0] == bits(np.concatenate([*parts, untouched]))


@both
@modes
def test_a_broadcast_gives_everything_to_everybody(mode: str, threads: bool) -> None:
    src = pattern((6, 16), "float16")

    def work(rank: Any) -> Any:
        part = np.zeros((6, 16), np.float16)
        group = rank.group(part, root=1)
        if rank.rank == 1:
            pto.comm.tbroadcast(group, src, pto.Tile("float16", 3, 16), mode=mode)
        rank.barrier()
        return bits(part)

    assert play(3, work, threads=threads) == [bits(src)] * 3


@both
@modes
@pytest.mark.parametrize("op", ["sum", "max", "min"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_a_reduction_takes_the_root_first_and_then_rank_by_rank(op: str, dtype: str, mode: str, threads: bool) -> None:
    parts = [pattern((4, 16), "int32", r).view(np.int32) for r in range(3)]
    parts = [(one % 1000 / (1 if dtype == "int32" else 7)).astype(dtype) for one in parts]

    def work(rank: Any) -> Any:
        group = rank.group(parts[rank.rank], root=1)
        out = np.zeros((4, 16), dtype)
        if rank.rank == 1:
            tiles = [pto.Tile(dtype, 2, 16) for _ in range(2)]
            pto.comm.treduce(group, out, *tiles, op=op, mode=mode)
        rank.barrier()
        return bits(out)

    fold = {"sum": np.add, "max": np.maximum, "min": np.minimum}[op]
    wanted = fold(fold(parts[1], parts[0]).astype(dtype), parts[2]).astype(dtype)
    assert play(3, work, threads=threads)[1] == bits(wanted)


extents = st.tuples(*[st.integers(1, 3)] * 3, st.integers(1, 6), st.integers(1, 9))


@st.composite
def calls(draw: Any) -> dict[str, Any]:
    """A scatter or gather of any shape, strides, tile and type."""
    shape = draw(extents)
    gaps = draw(st.tuples(*[st.integers(0, 3)] * 5))
    name = draw(st.sampled_from(sorted(DTYPES)))
    least = 32 // DTYPES[name].itemsize
    return {
        "shape": shape,
        "gaps": gaps,
        "own_gaps": draw(st.tuples(*[st.integers(0, 3)] * 5)),
        "dtype": name,
        "n": draw(st.integers(1, 4)),
        "root": draw(st.integers(0, 3)),
        "tile": (draw(st.integers(1, 60)), least * draw(st.integers(1, 2))),
        "valid": (draw(st.integers(1, 60)), draw(st.integers(1, 9))),
        "pong": draw(st.booleans()),
        "mode": draw(st.sampled_from(["fast", "tile"])),
        "private": draw(st.booleans()),
        "gather": draw(st.booleans()),
        "extra": draw(st.integers(0, 2)),
        "seed": draw(st.integers(0, 1000)),
    }


def strided(shape: Any, gaps: Any) -> tuple[Any, int]:
    """Strides with gaps behind every dimension but the last (a DMA takes rows), and the elements that they span."""
    stride, step = [0] * 5, 1
    for dim in reversed(range(5)):
        stride[dim] = step
        step = step * shape[dim] + (gaps[dim] if dim else 0)
    return tuple(stride), step + 8


def dynamic_tile(case: dict[str, Any]) -> pto.Tile:
    rows, cols = case["tile"]
    tile = pto.Tile(case["dtype"], rows, cols, valid=(-1, -1))
    tile.set_valid(min(case["valid"][0], rows), min(case["valid"][1], cols))
    return tile


def as_five(memory: Any, shape: Any, stride: Any) -> Any:
    """A five-dimensional view of the bits: NumPy strides no float8."""
    plain = memory.view(f"u{memory.itemsize}")
    return np.lib.stride_tricks.as_strided(plain, shape, [s * memory.itemsize for s in stride])


def play_case(case: dict[str, Any], threads: bool) -> None:
    n, root = case["n"], case["root"] % case["n"]
    dtype = DTYPES[case["dtype"]]
    d0, d1, d2, rows, cols = case["shape"]
    stride, size = strided(case["shape"], case["gaps"])
    whole_shape = (d0, d1, d2, n * rows + case["extra"], cols)
    own_stride, own_size = strided(whole_shape, case["own_gaps"])
    whole = pattern(own_size, dtype, case["seed"])
    memories = [pattern(size, dtype, case["seed"] + 1 + r) for r in range(n)]

    def work(rank: Any) -> Any:
        if case["private"]:
            memory = memories[rank.rank].copy()
        else:
            memory = rank.zeros(size, case["dtype"])
            memory[:] = memories[rank.rank]
        own = whole.copy()
        group = rank.group(pto.GlobalTensor(memory, case["dtype"], case["shape"], stride), root=root)
        if rank.rank == root:
            local = pto.GlobalTensor(own, case["dtype"], whole_shape, own_stride)
            ping, pong = dynamic_tile(case), dynamic_tile(case) if case["pong"] else None
            before = ping.valid
            op = pto.comm.tgather if case["gather"] else pto.comm.tscatter
            for _ in range(2):  # the second takes the prepared way
                op(group, local, ping, pong, mode=case["mode"])
            assert ping.valid == before
        rank.barrier()
        return bits(memory), bits(own)

    wanted_own, wanted = whole.copy(), [one.copy() for one in memories]
    five = as_five(wanted_own, whole_shape, own_stride)
    for r in range(n):
        part = as_five(wanted[r], case["shape"], stride)
        if case["gather"]:
            five[:, :, :, r * rows : (r + 1) * rows] = part
        else:
            part[...] = scattered(five, part, r)
    for r, (memory, own) in enumerate(play(n, work, threads=threads)):
        assert memory == bits(wanted[r])
        assert own == bits(wanted_own if r == root else whole)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(calls())
def test_any_shape_stride_tile_and_type_over_threads(case: dict[str, Any]) -> None:
    play_case(case, threads=True)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(calls())
def test_any_shape_stride_tile_and_type_over_processes(case: dict[str, Any]) -> None:
    play_case(case, threads=False)


@both
def test_without_the_compiled_module_it_is_the_same(threads: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("collectives", "moving", "words"):
        monkeypatch.setattr(f"ptokit.comm.{module}._native", None)
    test_every_rank_gets_its_rows_and_only_the_root_calls(3, "tile", threads)
    test_every_rank_gets_its_rows_and_only_the_root_calls(3, "fast", threads)
    test_a_gather_is_the_inverse_and_further_rows_stay(2, "fast", threads)


def test_large_slices_that_several_threads_move() -> None:
    src = pattern((4, 2_000_000), "float32")

    def work(rank: Any) -> Any:
        part = rank.zeros((2, 2_000_000))
        group = rank.group(part)
        if rank.rank == 0:
            pto.comm.tscatter(group, src, pto.Tile("float32", 1, 4000))
        rank.barrier()
        return bits(part)

    assert play(2, work) == [bits(src[:2]), bits(src[2:])]


@both
def test_nothing_to_move(threads: bool) -> None:
    def work(rank: Any) -> Any:
        group = rank.group(rank.zeros((0, 8)))
        if rank.rank == 0:
            return pto.comm.tscatter(group, np.zeros((4, 8), np.float32), pto.Tile("float32", 1, 8)).nbytes
        return None

    assert play(2, work, threads=threads) == [0, None]


def test_puts_and_gets_of_any_rank() -> None:
    parts = [pattern((3, 4), "int16", r) for r in range(3)]

    def work(rank: Any) -> Any:
        own = parts[rank.rank].copy()
        group = rank.group(own)
        got = np.zeros((3, 4), np.int16)
        pto.comm.tget(group, (rank.rank + 1) % 3, got)
        rank.barrier()
        pto.comm.tput(group, (rank.rank + 2) % 3, got)
        rank.barrier()
        return bits(own)

    # r puts what it got from r + 1 into r + 2, so each ends with what its predecessor had: of r - 1.
    assert play(3, work) == [bits(parts[(r - 1) % 3]) for r in range(3)]


# What the tests above must catch


@pytest.mark.parametrize("fault", ["others get nothing", "slices go to the wrong ranks"])
def test_a_mover_that_is_wrong_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = collectives._pairs

    def wrong(group: Any, call: Any) -> Any:
        pairs = list(right(group, call))
        if fault == "others get nothing":
            return iter(pairs[call.root : call.root + 1])
        return (collectives.Pair(p.rank, pairs[p.rank - 1].here, p.there, p.is_direct) for p in pairs)

    monkeypatch.setattr(collectives, "_pairs", wrong)
    for threads, mode in itertools.product((False, True), ("fast", "tile")):
        with pytest.raises(AssertionError):
            test_every_rank_gets_its_rows_and_only_the_root_calls(2, mode, threads)


# Misuse


def call_with(change: dict[str, Any], op: str = "tscatter") -> Any:
    """The work of a call of three ranks that is right but for one thing."""

    def work(rank: Any) -> Any:
        mine = {key: one for key, one in change.items() if not callable(one)}
        mine |= {key: one(rank) for key, one in change.items() if callable(one)}
        part = mine.get("part", np.zeros((2, 8), np.float32))
        group = rank.group(part, root=mine.get("root", 0))
        if rank.rank in mine.get("callers", (0,)):
            src = mine.get("src", np.zeros((6, 8), np.float32))
            getattr(pto.comm, op)(group, src, mine.get("ping", pto.Tile("float32", 2, 8)), **mine.get("more", {}))
        rank.barrier()

    return work


WRONG: dict[str, tuple[dict[str, Any], str, int | None]] = {
    "roots differ": ({"root": lambda rank: rank.rank % 2}, "PTO-R033", 1),
    "a root that is no rank": ({"root": 3}, "PTO-R041", None),
    "a root below 0": ({"root": -1}, "PTO-R041", None),
    "a rank that is not the root calls": ({"callers": (2,)}, "PTO-R034", 2),
    "two ranks call": ({"callers": (0, 1)}, "PTO-R034", 1),
    "shapes differ": ({"part": lambda rank: np.zeros((2 + rank.rank // 2, 8), np.float32)}, "PTO-R003", 2),
    "a destination is too small": ({"part": lambda rank: np.zeros((2 - rank.rank % 2, 8), np.float32)}, "PTO-R003", 1),
    "dtypes differ": (
        {"part": lambda rank: np.zeros((2, 8), np.float32 if rank.rank < 2 else np.int32)},
        "PTO-R003",
        2,
    ),
    "strides differ": (
        {
            "part": lambda rank: pto.GlobalTensor(
                np.zeros(40, np.float32), "float32", (1, 1, 1, 2, 8), (1, 1, 1, 8 + 4 * (rank.rank == 1), 1)
            )
        },
        "PTO-R003",
        1,
    ),
    "the source has too few rows": ({"src": np.zeros((5, 8), np.float32)}, "PTO-R007", None),
}


@both
@pytest.mark.parametrize("name", WRONG)
def test_misuse_is_one_error_that_names_who(name: str, threads: bool) -> None:
    change, id_, rank = WRONG[name]
    failed = fails(3, call_with(change), threads=threads)
    assert id_ in ids(failed)
    assert sorted(failed.failures) == [0, 1, 2]
    if rank is not None:
        assert f"rank {rank} " in str(failed)
    if name not in ("a root that is no rank", "a root below 0"):
        assert "(host " in str(failed)
        assert "pid " in str(failed)


@both
def test_two_roots_at_once(threads: bool) -> None:
    """Two groups over the same destinations, whose roots write at the same time."""

    def work(rank: Any) -> None:
        part = rank.zeros((2, 8))
        group = rank.group(part, root=0)
        rank.barrier()
        if rank.rank == 0:
            # The other root is in the middle of its call.
            word = rank.transport.layout.window_busy(group.window.slots[1])
            rank.transport.store(1, word, 1 + 1)
            pto.comm.tscatter(group, np.zeros((4, 8), np.float32), pto.Tile("float32", 2, 8))
        rank.barrier()

    failed = fails(2, work, threads=threads)
    assert ids(failed)[0] == "PTO-R035"
    assert "rank 1 (host " in str(failed)


@both
def test_two_groups_of_different_roots_over_the_same_memory(threads: bool) -> None:
    """Each root keeps scattering whole slices of its own: either one is told, or no slice is ever torn."""

    def work(rank: Any) -> Any:
        part = rank.zeros((64, 4096), "int32")
        groups = [rank.group(part, root=root) for root in (0, 1)]
        src = np.full((128, 4096), 1 + rank.rank, np.int32)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            pto.comm.tscatter(groups[rank.rank], src, pto.Tile("int32", 1, 4096))

    failed = fails(2, work, threads=threads, timeout=20)
    assert ids(failed)[0] == "PTO-R035"


@both
def test_a_group_that_is_freed_early(threads: bool) -> None:
    def work(rank: Any) -> None:
        group = rank.group(rank.zeros((2, 8)))
        if rank.rank == 1:
            group.free()
        rank.barrier()
        if rank.rank == 0:
            pto.comm.tscatter(group, np.zeros((4, 8), np.float32), pto.Tile("float32", 2, 8))
        rank.barrier()

    failed = fails(2, work, threads=threads)
    assert ids(failed) == ["PTO-R036"]
    assert "rank 1 (host " in str(failed)


@both
@pytest.mark.parametrize("part", [3, "rows", np.zeros((1,) * 6), np.zeros((4, 4))[:, ::2], np.zeros(4, "complex64")])
def test_what_is_no_tensor_is_told_to_all(part: Any, threads: bool) -> None:
    def work(rank: Any) -> None:
        rank.group(part if rank.rank == 1 else np.zeros((2, 8), np.float32))

    failed = fails(2, work, threads=threads)
    assert "rank 1 (host " in str(failed)
    assert isinstance(failed, (TypeError, ValueError))
    assert sorted(failed.failures) == [0, 1]


BAD_OPERANDS: list[dict[str, Any]] = [
    {"src": [1, 2]},
    {"ping": 3},
    {"ping": None},
    {"more": {"pong": "pong"}},
    {"more": {"mode": "slow"}},
    {"more": {"mode": ["fast"]}},
    {"more": {"engine": "dma"}},
    {"more": {"target": "a7"}},
    {"more": {"gate": pto.comm.CcuGate(8, 1)}},
    {"more": {"mood": "good"}},
]


@pytest.mark.parametrize("change", BAD_OPERANDS, ids=str)
@pytest.mark.parametrize("op", ["tscatter", "tgather", "tbroadcast"])
def test_operands_that_are_none(change: dict[str, Any], op: str) -> None:
    failed = fails(2, call_with(change, op), threads=True)
    assert isinstance(failed.__cause__, pto.PtoError)


def test_memory_that_must_not_be_written() -> None:
    closed = np.zeros((2, 8), np.float32)
    closed.flags.writeable = False
    failed = fails(2, call_with({"part": closed}), threads=True)
    assert isinstance(failed.__cause__, pto.PtoValueError)
    assert "read-only" in str(failed)


def test_what_a_call_says_of_itself() -> None:
    def work(rank: Any) -> Any:
        group = rank.group(rank.zeros((4, 8)))
        if rank.rank:
            return None
        report = pto.comm.tscatter(group, np.zeros((8, 8), np.float32), pto.Tile("float32", 2, 8), mode="tile")
        return len(report.schedule), report.ranks, report.findings, report.cycles.total > 0, report.ub.peak

    assert play(2, work, threads=True)[0] == (4, 2, [], True, 64)


# The collective unit


def on_ccu(change: dict[str, Any], op: str = "tscatter", n: int = 3) -> Any:
    """A collective on the CCU; `change` says what a rank does otherwise."""

    def work(rank: Any) -> Any:
        part = rank.zeros((2, 8), "int32")
        part[:] = 100 * rank.rank
        group = rank.group(part, root=1)
        if rank.rank not in change.get("unregistered", ()):
            pto.comm.register(group, payload=change.get("payloads", {}).get(rank.rank))
        gate = None if rank.rank in change.get("no_gate", ()) else pto.comm.CcuGate(0x100 + 8 * rank.rank, 0b11)
        whole = np.arange(n * 16, dtype=np.int32).reshape(2 * n, 8)
        ping = pto.Tile("int32", 2 * n if op == "tscatter" else 2, 8)
        ping.store(np.full(ping.valid, 5 + rank.rank))
        if rank.rank not in change.get("absent", ()):
            getattr(pto.comm, op)(
                group,
                whole if rank.rank == 1 else None,
                ping,
                engine="ccu",
                target=change.get("target", "a5"),
                gate=gate,
                stores_input=change.get("stores_input", False),
            )
        return part.tolist(), whole.tolist()

    return work


@both
@pytest.mark.parametrize("stores_input", [False, True])
def test_the_ccu_scatters_what_the_host_or_the_core_has_filled(stores_input: bool, threads: bool) -> None:
    whole = np.full((6, 8), 6) if stores_input else np.arange(48).reshape(6, 8)
    found = play(3, on_ccu({"stores_input": stores_input}), threads=threads)
    assert [part for part, _ in found] == [whole[2 * r : 2 * r + 2].tolist() for r in range(3)]


@both
@pytest.mark.parametrize("stores_input", [False, True])
def test_the_ccu_gathers(stores_input: bool, threads: bool) -> None:
    found = play(3, on_ccu({"stores_input": stores_input}, "tgather"), threads=threads)
    rows = [[5 + r if stores_input else 100 * r] * 8 for r in range(3) for _ in range(2)]
    assert found[1][1] == rows


CCU_FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "a gate that was forgotten": ({"no_gate": (2,)}, "PTO-R051"),
    "a rank that never calls": ({"absent": (2,)}, "PTO-R051"),
    "a rank that has not registered": ({"unregistered": (2,)}, "PTO-R050"),
    "a rank that has not registered and does not call": ({"unregistered": (2,), "absent": (2,)}, "PTO-R050"),
    "a root that has not registered": ({"unregistered": (1,)}, "PTO-R050"),
    "another payload": ({"payloads": {2: 63}}, "PTO-R052"),
    "another target": ({"target": "a2a3"}, "PTO-R016"),
    "the reference": ({"target": "cpu"}, "PTO-R016"),
}


@both
@pytest.mark.parametrize("op", ["tscatter", "tgather"])
@pytest.mark.parametrize("name", CCU_FAULTS)
def test_a_fault_on_the_ccu_names_the_rank_and_nobody_hangs(name: str, op: str, threads: bool) -> None:
    change, id_ = CCU_FAULTS[name]
    failed = fails(3, on_ccu(change, op), threads=threads, timeout=1.0)
    wanted = {id_, "PTO-R051"} if "and does not call" in name else {id_}
    assert wanted & set(ids(failed)), failed
    if not id_.startswith("PTO-R01"):
        assert "rank 2 (host " in str(failed) or "rank 1 (host " in str(failed)


@pytest.mark.parametrize(
    ("slot", "mask"), [(0, 1), (4, 1), (-8, 1), (1 << 64, 1), (8, 0), (8, 1 << 16), (8, -1), ("8", 1)]
)
def test_a_gate_that_cannot_be(slot: Any, mask: Any) -> None:
    with pytest.raises(pto.PtoError):
        pto.comm.CcuGate(slot, mask)


def test_a_gate_is_rung_by_its_mask_and_the_highest_bit() -> None:
    assert pto.comm.CcuGate(0x40, 0xFFFF).word == 0xFFFF | 1 << 63


# Signals


@both
def test_signals_by_name(threads: bool) -> None:
    def work(rank: Any) -> Any:
        if rank.rank == 0:
            first = pto.comm.twait(rank, 4, 12)
            return first, pto.comm.ttest(rank, 4, 12, cmp="ne"), pto.comm.ttest(rank, 4, 11, cmp="gt")
        for _ in range(6):
            pto.comm.tnotify(rank, 0, 4, 1, op="add")
        return None

    assert play(3, work, threads=threads)[0] == (12, False, True)


@pytest.mark.parametrize(
    "call",
    [
        lambda rank: pto.comm.tnotify(rank, 5, 0),
        lambda rank: pto.comm.tnotify(rank, 0, -1),
        lambda rank: pto.comm.tnotify(rank, 0, 0, 1 << 40),
        lambda rank: pto.comm.tnotify(rank, 0, 0, op="mul"),
        lambda rank: pto.comm.tnotify(3, 0, 0),
        lambda rank: pto.comm.twait(rank, 0, cmp="is"),
        lambda rank: pto.comm.twait(rank, 0, timeout=-1),
        lambda rank: pto.comm.ttest(rank, 1024),
    ],
)
def test_signals_that_cannot_be(call: Any) -> None:
    failed = fails(1, call, threads=True)
    assert isinstance(failed.__cause__, pto.PtoError)


# Pieces


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_boxes_are_copied_in_any_order_of_dimensions(data: Any) -> None:
    shape = data.draw(st.tuples(*[st.integers(1, 4)] * 5))
    size = data.draw(st.sampled_from([1, 2, 4]))

    def box(seed: int) -> Box:
        order = data.draw(st.permutations(range(5)))
        strides, step = [0] * 5, size
        for dim in reversed(order):
            strides[dim] = step
            step = step * shape[dim] + size * data.draw(st.integers(0, 2))
        memory = np.random.default_rng(seed).integers(0, 256, step + 8, np.uint8)
        return Box(memory, size * data.draw(st.integers(0, 1)), shape, tuple(strides), size)

    to, from_ = box(1), box(2)
    wanted = Box(to.memory.copy(), to.offset, shape, to.strides, size)
    wanted.array()[...] = from_.array()
    copy(to, from_)
    assert to.memory.tobytes() == wanted.memory.tobytes()
    offsets, length, _ = runs(to)
    assert b"".join(to.memory[at : at + length].tobytes() for at in offsets) == bits(to.array())
