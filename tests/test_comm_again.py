"""A collective that is called again goes the prepared way only with what it was prepared for; tensors that meet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptokit as pto
from ranks import fails, ids, left_clean, play

both = pytest.mark.parametrize("threads", [False, True], ids=["processes", "threads"])
modes = pytest.mark.parametrize("mode", ["fast", "tile"])
nothing_is_left = pytest.fixture(autouse=True)(left_clean)


def tile(dtype: str = "float32") -> pto.Tile:
    return pto.Tile(dtype, 4, 8)


def reshape_in_place(src: Any) -> None:
    src.shape = (4, 16)


def retype_in_place(src: Any) -> None:
    src.dtype = np.int32


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@modes
@pytest.mark.parametrize(("change", "told"), [(reshape_in_place, "PTO-R006"), (retype_in_place, "PTO-R004")])
def test_a_source_that_has_changed_in_place_is_judged_anew(change: Any, told: str, mode: str) -> None:
    def work(rank: Any) -> None:
        group = rank.group(rank.zeros((4, 8)))
        src, ping = np.ones((8, 8), np.float32), tile()
        if rank.rank == 0:
            pto.comm.tscatter(group, src, ping, mode=mode)
            change(src)
            pto.comm.tscatter(group, src, ping, mode=mode)

    assert told in ids(fails(2, work))


def test_a_destination_that_is_locked_after_the_first_call_is_not_written() -> None:
    def work(rank: Any) -> Any:
        part = np.ones((4, 8), np.float32)
        group = rank.group(part)
        whole, ping = np.zeros((8, 8), np.float32), tile()
        if rank.rank == 0:
            pto.comm.tgather(group, whole, ping)
            whole[:] = 0
            whole.flags.writeable = False
            with pytest.raises(pto.PtoError, match="read-only"):
                pto.comm.tgather(group, whole, ping)
        rank.barrier()
        return float(whole.sum())

    assert play(2, work) == [0.0, 0.0]


@pytest.mark.parametrize("op", ["tscatter", "tgather"])
@pytest.mark.parametrize("more", [{"gate": pto.comm.CcuGate(8, 1)}, {"stores_input": True}], ids=["gate", "input"])
def test_words_of_the_ccu_are_refused_on_the_vector_core_the_first_time_and_later(
    more: dict[str, Any], op: str
) -> None:
    def work(rank: Any) -> list[str]:
        group = rank.group(rank.zeros((4, 8)))
        whole, ping = np.zeros((8, 8), np.float32), tile()
        said = []
        call = getattr(pto.comm, op)
        for _ in range(2 if rank.rank == 0 else 0):
            with pytest.raises(ValueError, match="belongs to engine='ccu'") as refused:
                call(group, whole, ping, **more)
            said.append(str(refused.value))
            call(group, whole, ping)
        rank.barrier()
        return said

    assert len(play(2, work)[0]) == 2


# The CCU


def on_ccu(rank: Any, payload: int | None = None, pong: Any = None, **more: Any) -> Any:
    part, src = rank.zeros((4, 8)), np.ones((8, 8), np.float32)
    src.flags.writeable = False
    group = rank.group(part)
    pto.comm.register(group, payload)
    whole = src if rank.rank == 0 else None
    pto.comm.tscatter(group, whole, tile(), pong, engine="ccu", gate=pto.comm.CcuGate(8, 1), **more)
    return float(part.sum())


@both
def test_a_payload_that_is_no_slice_is_told_though_all_ranks_agree(threads: bool) -> None:
    failed = fails(2, lambda rank: on_ccu(rank, payload=4), threads=threads)
    assert ids(failed)[0] == "PTO-R052"
    assert "and all others have registered a payload of 4 bytes, and a slice has 128." in str(failed)


@both
def test_the_ccu_ignores_pong_whatever_it_is(threads: bool) -> None:
    pong = pto.Tile("int32", 1, 8)
    assert play(2, lambda rank: on_ccu(rank, pong=pong), threads=threads) == [32.0, 32.0]


def test_an_input_that_is_read_only_is_not_stored_to() -> None:
    failed = fails(2, lambda rank: on_ccu(rank, stores_input=True))
    assert "rank 0 (host " in str(failed)
    assert "tscatter: the input's memory is read-only" in str(failed)


# Tensors that lie on each other


def one_after_the_other(memory: Any, moves: list[tuple[slice, slice]], step: int) -> Any:
    """Chunks of `step` rows, each read whole and then written, in the order of the ranks."""
    found = memory.copy()
    for to, from_ in moves:
        for at in range(0, to.stop - to.start, step):
            found[to.start + at : to.start + at + step] = found[from_.start + at : from_.start + at + step].copy()
    return found


@modes
@pytest.mark.parametrize("rows", [4, 40_000], ids=["small", "what several threads would move"])
def test_a_slice_that_lies_on_the_source_is_told_and_goes_chunk_by_chunk(rows: int, mode: str) -> None:
    """The root's own slice is written over the slice that rank 1 is to get."""
    step = min(rows // 4, 1000)
    first = np.random.default_rng(rows).integers(0, 1 << 30, (3 * rows, 8), np.int32)

    def work(rank: Any) -> Any:
        memory = first.copy()
        part = memory[rows // 2 : rows // 2 + rows] if rank.rank == 0 else rank.zeros((rows, 8), "int32")
        group = rank.group(part)
        told: list[Any] = []
        if rank.rank == 0:
            for _ in range(1 if rows > 4 else 2):
                memory[:] = first
                report = pto.comm.tscatter(group, memory[: 2 * rows], pto.Tile("int32", step, 8), mode=mode)
                told = [(one.id, one.message) for one in report.findings if one.id == "PTO-R024"]
        rank.barrier()
        return (memory if rank.rank == 0 else part), told

    (memory, told), (part, _) = play(2, work, timeout=30)
    wanted = one_after_the_other(first, [(slice(rows // 2, rows // 2 + rows), slice(0, rows))], step)
    assert memory.tolist() == wanted.tolist()
    assert part.tolist() == wanted[rows : 2 * rows].tolist()
    assert [one[0] for one in told] == ["PTO-R024"]
    assert told[0][1].startswith(
        "tscatter: the source and the destination of rank 0 lie on each other in the memory of this process: "
    )


@modes
@pytest.mark.parametrize("op", ["tscatter", "tgather"])
def test_a_slice_that_stands_where_the_root_has_it_is_no_matter(op: str, mode: str) -> None:
    def work(rank: Any) -> Any:
        memory = np.arange(64, dtype=np.float32).reshape(8, 8)
        group = rank.group(memory[4 * rank.rank : 4 * rank.rank + 4] if rank.rank == 1 else memory[4:] + 100, root=1)
        ids = None
        if rank.rank == 1:
            ids = [one.id for one in getattr(pto.comm, op)(group, memory, tile(), mode=mode).findings]
        rank.barrier()
        return ids

    assert play(2, work)[1] == []


def test_columns_that_interleave_do_not_meet() -> None:
    def work(rank: Any) -> Any:
        memory = np.zeros(4 * 16, np.float32)
        memory[:] = np.arange(64)
        five = (1, 1, 1, 4, 8)
        left = pto.GlobalTensor(memory, "float32", five, (64, 64, 64, 16, 1))
        right = pto.GlobalTensor(memory[8:], "float32", five, (64, 64, 64, 16, 1))
        group = rank.group(left)
        return [one.id for one in pto.comm.tscatter(group, right, tile()).findings], memory[:8].tolist()

    assert play(1, work) == [([], [float(k) for k in range(8, 16)])]


@both
@pytest.mark.parametrize("op", ["tscatter", "tgather"])
def test_a_rank_that_went_on_to_a_barrier_without_ringing_is_named_at_once(op: str, threads: bool) -> None:
    """The one that has forgotten its gate is the culprit, whoever gives up waiting first."""

    def work(rank: Any) -> None:
        group = rank.group(rank.zeros((4, 8)))
        pto.comm.register(group)
        if rank.rank == 2:
            rank.barrier()
        whole = np.ones((12, 8), np.float32) if rank.rank == 0 else None
        getattr(pto.comm, op)(group, whole, tile(), engine="ccu", gate=pto.comm.CcuGate(8, 1))
        rank.barrier()

    failed = fails(3, work, threads=threads)
    assert ids(failed)[0] == "PTO-R051"
    assert "the gate of rank 2 (host " in str(failed)


@both
def test_a_rank_that_went_on_to_a_barrier_without_registering_is_named(threads: bool) -> None:
    def work(rank: Any) -> None:
        group = rank.group(rank.zeros((4, 8)))
        if rank.rank == 1:
            rank.barrier()
        pto.comm.register(group)
        whole = np.ones((8, 8), np.float32) if rank.rank == 0 else None
        pto.comm.tscatter(group, whole, tile(), engine="ccu", gate=pto.comm.CcuGate(8, 1))

    failed = fails(2, work, threads=threads)
    assert ids(failed)[0] == "PTO-R050"
    assert "rank 1 (host " in str(failed)
