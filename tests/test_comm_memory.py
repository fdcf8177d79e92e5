"""Memory that ranks register: groups over the same memory, groups that are freed, and more groups than places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ptokit as pto
from ptokit.comm import collectives, transport
from ranks import fails, ids, left_clean, play

both = pytest.mark.parametrize("threads", [False, True], ids=["processes", "threads"])
movers = pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "step by step"])
nothing_is_left = pytest.fixture(autouse=True)(left_clean)


@pytest.fixture
def by(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Choose the mover: that of the compiled module, or the one that goes step by step."""

    def chosen(compiled: bool) -> None:
        if not compiled:
            monkeypatch.setattr(collectives, "_native", None)

    return chosen


def tile() -> pto.Tile:
    return pto.Tile("float32", 4, 8)


def ones(rank: Any) -> Any:
    return np.ones((4 * rank.size, 8), np.float32)


@both
@movers
def test_a_group_outlives_a_freed_one_over_the_same_memory(threads: bool, compiled: bool, by: Any) -> None:
    def work(rank: Any) -> float:
        part = rank.zeros((4, 8))
        first, second = rank.group(part), rank.group(part)
        first.free()
        rank.barrier()
        if rank.rank == 0:
            pto.comm.tscatter(second, ones(rank), tile())
        rank.barrier()
        return float(part.sum())

    by(compiled)
    assert play(2, work, threads=threads) == [32.0, 32.0]


@both
@movers
def test_a_freed_group_is_told_though_another_over_the_same_memory_lives(
    threads: bool, compiled: bool, by: Any
) -> None:
    def work(rank: Any) -> None:
        part = rank.zeros((4, 8))
        rank.group(part)
        second = rank.group(part)
        if rank.rank == 1:
            second.free()
        rank.barrier()
        if rank.rank == 0:
            pto.comm.tscatter(second, ones(rank), tile())

    by(compiled)
    failed = fails(2, work, threads=threads)
    assert ids(failed)[0] == "PTO-R036"
    assert str(failed).startswith("PTO-R036: rank 1 (host ")


@both
@movers
@pytest.mark.parametrize("held", [0, 1])
def test_groups_whose_memory_meets_in_part_have_one_writer_at_a_time(
    threads: bool, compiled: bool, held: int, by: Any
) -> None:
    """The third group lies on the end of the first and on the beginning of the second, which do not meet."""

    def work(rank: Any) -> None:
        memory = rank.zeros((8, 8))
        groups = [rank.group(memory[:4]), rank.group(memory[4:]), rank.group(memory[2:6])]
        rank.barrier()
        if rank.rank == 0:
            word = rank.transport.layout.window_busy(groups[held].window.slots[1])
            rank.transport.store(1, word, 1 + 1)  # the other root is in the middle of its call
            pto.comm.tscatter(groups[2], ones(rank), tile())

    by(compiled)
    assert ids(fails(2, work, threads=threads))[0] == "PTO-R035"


@both
@movers
def test_many_may_read_at_once(threads: bool, compiled: bool, by: Any) -> None:
    def work(rank: Any) -> Any:
        group = rank.group(np.full((4, 8), 5, np.float32), root=0)
        word = rank.transport.layout.window_busy(group.window.slots[rank.rank])
        rank.transport.store(rank.rank, word, 2)  # somebody else is at work there
        rank.barrier()
        whole = np.zeros((8, 8), np.float32)
        if rank.rank == 0:
            pto.comm.tgather(group, whole, tile())
        rank.barrier()
        return float(whole.sum())

    by(compiled)
    assert play(2, work, threads=threads) == [320.0, 0.0]


def few_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "WINDOWS", 6)


@both
@movers
def test_a_group_that_is_kept_is_not_disturbed_by_many_that_come_and_go(
    threads: bool, compiled: bool, by: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(rank: Any) -> float:
        part = rank.zeros((4, 8))
        kept = rank.group(part)
        for turn in range(20):
            passing = rank.group(np.zeros((1, 8), np.float32))
            if turn % 2 == rank.rank % 2:  # ranks need not free in step
                rank.barrier()
                passing.free()
            else:
                passing.free()
                rank.barrier()
        if rank.rank == 0:
            pto.comm.tscatter(kept, ones(rank), tile())
        rank.barrier()
        return float(part.sum())

    few_places(monkeypatch)
    by(compiled)
    assert play(2, work, threads=threads) == [32.0, 32.0]


@both
@movers
def test_a_freed_group_is_told_though_its_place_has_been_given_away(
    threads: bool, compiled: bool, by: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(rank: Any) -> None:
        part = rank.zeros((4, 8))
        first = rank.group(part)
        if rank.rank == 1:
            first.free()
        for _ in range(5):  # on rank 1 the last of these has the place of the first
            rank.group(np.zeros((1, 8), np.float32))
        if rank.rank == 0:
            pto.comm.tscatter(first, ones(rank), tile())

    few_places(monkeypatch)
    by(compiled)
    failed = fails(2, work, threads=threads)
    assert ids(failed)[0] == "PTO-R036"


@both
def test_more_groups_than_places_are_told_on_every_rank(threads: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(rank: Any) -> list[str]:
        kept = [rank.group(np.zeros((1, 8), np.float32)) for _ in range(6)]
        if rank.rank == 0:
            kept[2].free()
        told = []
        for _ in range(2):
            try:
                rank.group(np.zeros((1, 8), np.float32))
            except pto.comm.RankError as failed:
                told.append(str(failed))
        if rank.rank == 1:
            kept[0].free()
        rank.group(np.zeros((1, 8), np.float32))
        return told

    few_places(monkeypatch)
    for told in play(2, work, threads=threads):
        assert len(told) == 2
        for sentence in told:
            assert sentence.startswith("rank 1 (host ")
            assert sentence.endswith(
                "has memory registered 6 times, which is the most: call group.free() on every rank when a group is no "
                "longer used"
            )


def test_the_gates_of_a_group_are_its_own_whatever_place_it_has_on_each_rank() -> None:
    def work(rank: Any) -> float:
        if rank.rank == 1:  # its places are other ones than those of rank 0
            rank.transport.free_slots.rotate(3)
        part = rank.zeros((4, 8))
        group = rank.group(part)
        pto.comm.register(group)
        src = ones(rank) if rank.rank == 0 else None
        pto.comm.tscatter(group, src, tile(), engine="ccu", gate=pto.comm.CcuGate(8, 1))
        return float(part.sum())

    assert play(2, work) == [32.0, 32.0]
