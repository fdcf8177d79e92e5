"""The embedded engines: ranks meet, exchange, reach each other's memory; and what fails says who and why, in time."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptokit as pto
from ptokit.comm.attend import died
from ptokit.comm.faults import Peer
from ptokit.comm.reach import Foreign
from ptokit.comm.transport import SIGNALS, Layout, packed_error, process_status
from ranks import TIMEOUT, fails, ids, left_clean, open_files, play

both = pytest.mark.parametrize("threads", [False, True], ids=["processes", "threads"])
sizes = pytest.mark.parametrize("n", [1, 2, 3, 4])


nothing_is_left = pytest.fixture(autouse=True)(left_clean)


# Meeting


@both
@sizes
def test_every_rank_knows_itself_and_the_others(n: int, threads: bool) -> None:
    def work(rank: Any) -> Any:
        return rank.rank, rank.size, [peer.rank for peer in rank.peers], rank.peers[rank.rank].pid == os.getpid()

    assert play(n, work, threads=threads) == [(r, n, list(range(n)), True) for r in range(n)]


@both
@sizes
def test_exchange_brings_all_values_in_the_order_of_ranks(n: int, threads: bool) -> None:
    def work(rank: Any) -> Any:
        first = rank.exchange({"rank": rank.rank})
        long = rank.exchange(bytes([rank.rank]) * (1 + 3000 * rank.rank))
        return [one["rank"] for one in first], [(len(one), one[:1]) for one in long]

    wanted = (list(range(n)), [(1 + 3000 * r, bytes([r])) for r in range(n)])
    assert play(n, work, threads=threads) == [wanted] * n


@both
def test_exchanges_do_not_overtake_each_other(threads: bool) -> None:
    def work(rank: Any) -> bool:
        for turn in range(200):
            if (turn + rank.rank) % 7 == 0:
                time.sleep(0.0005)
            if rank.exchange((turn, rank.rank)) != [(turn, r) for r in range(rank.size)]:
                return False
        return True

    assert play(3, work, threads=threads) == [True] * 3


@both
def test_a_barrier_holds_until_the_last_has_come(threads: bool) -> None:
    def work(rank: Any) -> float:
        if rank.rank == 1:
            time.sleep(0.2)
        come = time.monotonic()
        rank.barrier()
        return time.monotonic() - come

    waited = play(3, work, threads=threads)
    assert min(waited[0], waited[2]) > 0.1


@both
@sizes
def test_alltoallv_brings_to_each_what_each_has_sent(n: int, threads: bool) -> None:
    def work(rank: Any) -> Any:
        found = []
        for turn in (1, 40_000, 0):
            parts = [np.full(turn * (rank.rank + 2 * to), 16 * rank.rank + to, np.uint8) for to in range(n)]
            found.append([part.tolist() for part in rank.transport.alltoallv(parts)])
        return found

    for me, found in enumerate(play(n, work, threads=threads)):
        for turn, got in zip((1, 40_000, 0), found, strict=True):
            assert got == [[16 * r + me] * (turn * (r + 2 * me)) for r in range(n)]


@both
def test_signals_are_set_added_to_tested_and_waited_for(threads: bool) -> None:
    def work(rank: Any) -> Any:
        t = rank.transport
        t.notify(0, 5, 1 << rank.rank, adds=True)
        if rank.rank:
            return t.wait(7, lambda seen: seen == 70 + rank.rank)
        total = t.wait(5, lambda seen: seen == 0b111)
        before = t.test(6, lambda seen: seen == 0)
        for other in (1, 2):
            t.notify(other, 7, 70 + other)
        return total, before

    assert play(3, work, threads=threads) == [(7, True), 71, 72]


def test_many_additions_from_many_ranks_lose_nothing() -> None:
    def work(rank: Any) -> int:
        for _ in range(3000):
            rank.transport.notify(0, 1, 1, adds=True)
        rank.barrier()
        return rank.transport.load(0, Layout.SIGNAL + 1)

    assert play(4, work) == [12_000] * 4


# Memory


@both
@pytest.mark.parametrize("private", [False, True], ids=["shared", "ordinary"])
def test_a_put_lands_in_the_memory_of_the_other_and_nowhere_else(threads: bool, private: bool) -> None:
    def work(rank: Any) -> Any:
        own = np.zeros(3000, np.uint8) if private else rank.zeros(3000, "uint8")
        own[:] = rank.rank
        window = rank.transport.window(own[1000:2000])
        if rank.rank == 0:
            window.put(1, 10, np.full(20, 7, np.uint8))
            window.reaches[1].put_runs(np.array([100, 300, 200]), 4, np.arange(12, dtype=np.uint8))
        rank.barrier()
        back = np.zeros(12, np.uint8)
        window.reaches[1].get_runs(np.array([300, 200, 100]), 4, back)
        part = np.zeros(22, np.uint8)
        window.get(1, 9, part)
        return own.tobytes(), back.tolist(), part.tolist()

    wanted = np.full(3000, 1, np.uint8)
    wanted[1010:1030] = 7
    wanted[1100:1104], wanted[1300:1304], wanted[1200:1204] = range(4), range(4, 8), range(8, 12)
    for r, (own, back, part) in enumerate(play(2, work, threads=threads)):
        assert own == (wanted.tobytes() if r else bytes(3000))
        assert back == [4, 5, 6, 7, 8, 9, 10, 11, 0, 1, 2, 3]
        assert part == [1, *[7] * 20, 1]


def test_more_runs_than_one_system_call_takes() -> None:
    def work(rank: Any) -> Any:
        own = np.zeros(100_000, np.uint8)
        window = rank.transport.window(own)
        offsets = np.arange(0, 90_000, 30)
        if rank.rank == 0:
            window.reaches[1].put_runs(offsets, 3, np.arange(9000, dtype=np.uint16).view(np.uint8)[:9000])
            back = np.zeros(9000, np.uint8)
            window.reaches[1].get_runs(offsets, 3, back)
            return back.tobytes()
        return None

    sent = np.arange(9000, dtype=np.uint16).view(np.uint8)[:9000].tobytes()

    def with_barrier(rank: Any) -> Any:
        found = work(rank)
        rank.barrier()
        return found

    assert play(2, with_barrier) == [sent, None]


def test_zeros_are_shared_with_the_processes_of_the_machine() -> None:
    def work(rank: Any) -> Any:
        own = rank.zeros((4, 8), "bfloat16")
        window = rank.transport.window(own.reshape(-1).view(np.uint8))
        return own.shape, str(own.dtype), bool((own == 0).all()), window.view(1 - rank.rank) is not None

    assert play(2, work) == [((4, 8), "bfloat16", True, True)] * 2


def test_ordinary_memory_of_another_process_is_written_by_the_system() -> None:
    def work(rank: Any) -> Any:
        window = rank.transport.window(np.zeros(8, np.uint8))
        return window.view(rank.rank) is not None, window.view(1 - rank.rank) is None

    assert play(2, work) == [(True, True)] * 2


def test_shared_memory_goes_with_its_last_array() -> None:
    def work(rank: Any) -> int:
        before = open_files()
        for _ in range(20):
            rank.zeros(1000)
        return open_files() - before

    assert play(1, work) == [0]


# Faults: one clear error, that names rank, host and process, in time


def the_one(failed: Any, rank: int) -> None:
    """The message names the rank with its host and process, and every survivor has said something."""
    peer = next(word for word in str(failed).split("rank ")[1:] if word.startswith(f"{rank} (host "))
    assert "pid " in peer


@both
def test_a_rank_that_raises(threads: bool) -> None:
    def work(rank: Any) -> None:
        if rank.rank == 1:
            raise KeyError("row 7")
        rank.barrier()

    failed = fails(3, work, threads=threads)
    assert ids(failed) == ["PTO-R031"]
    assert "KeyError: 'row 7'" in str(failed)
    assert isinstance(failed.__cause__, KeyError)
    assert sorted(failed.failures) == [0, 1, 2]
    assert "in work" in "".join(failed.__notes__)
    the_one(failed, 1)


@both
def test_findings_of_a_rank_are_those_of_the_run(threads: bool) -> None:
    def work(rank: Any) -> None:
        if rank.rank == 1:
            tile, idx = pto.Tile("float32", 16, 60), pto.Tile("int32", 1, 16)
            pto.mscatter(pto.GlobalTensor(np.zeros(6400, np.float32), "float32", (1, 1, 1, 100, 64)), tile, idx)
        rank.barrier()

    failed = fails(2, work, threads=threads)
    assert "PTO-R031" in ids(failed)
    assert any(one.startswith("PTO-L") for one in ids(failed))
    assert isinstance(failed.__cause__, pto.IllegalInstruction)


def test_a_rank_that_is_killed() -> None:
    def work(rank: Any) -> None:
        if rank.rank == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        rank.barrier()

    failed = fails(3, work)
    assert ids(failed) == ["PTO-R030"]
    assert "SIGKILL" in str(failed)
    assert sorted(failed.failures) == [0, 1, 2]
    the_one(failed, 2)


def test_a_rank_that_is_killed_while_nobody_waits() -> None:
    def work(rank: Any) -> None:
        if rank.rank == 0:
            os.kill(os.getpid(), signal.SIGTERM)

    failed = fails(2, work)
    assert ids(failed) == ["PTO-R030"]
    assert list(failed.failures) == [0]
    the_one(failed, 0)


@pytest.mark.parametrize("how", ["exit", "_exit"])
def test_a_rank_that_exits(how: str) -> None:
    def work(rank: Any) -> None:
        if rank.rank == 1:
            sys.exit(3) if how == "exit" else os._exit(3)
        rank.barrier()

    failed = fails(3, work)
    assert ids(failed) == ["PTO-R030"]
    assert "code 3" in str(failed)
    the_one(failed, 1)


def test_a_rank_that_exits_with_0_before_its_work_is_done() -> None:
    def work(rank: Any) -> None:
        if rank.rank == 1:
            os._exit(0)

    failed = fails(2, work)
    assert ids(failed) == ["PTO-R030"]
    the_one(failed, 1)


def test_a_rank_that_is_stopped() -> None:
    def work(rank: Any) -> None:
        if rank.rank == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        rank.barrier()

    failed = fails(3, work, timeout=1.0)
    assert ids(failed)[0] == "PTO-R032"
    assert isinstance(failed, pto.comm.RankTimeout)
    assert isinstance(failed, TimeoutError)
    assert "is stopped" in str(failed)
    the_one(failed, 1)


def test_a_rank_that_is_stopped_while_nobody_waits() -> None:
    def work(rank: Any) -> None:
        if rank.rank == 1:
            os.kill(os.getpid(), signal.SIGSTOP)

    failed = fails(2, work, timeout=0.5)
    assert ids(failed) == ["PTO-R032"]
    the_one(failed, 1)


def test_a_rank_that_is_stopped_and_goes_on() -> None:
    def work(rank: Any) -> int:
        if rank.rank == 1:
            if os.fork() == 0:
                time.sleep(0.3)
                os.kill(os.getppid(), signal.SIGCONT)
                os._exit(0)
            os.kill(os.getpid(), signal.SIGSTOP)
            os.wait()
        rank.barrier()
        return int(rank.rank)

    assert play(2, work) == [0, 1]


@both
def test_a_rank_that_never_arrives(threads: bool) -> None:
    def work(rank: Any) -> None:
        if rank.rank == 1:
            rank.transport.wait(0, lambda seen: False)
        rank.barrier()

    failed = fails(2, work, threads=threads, timeout=0.5)
    assert ids(failed)[0] == "PTO-R032"
    assert "0.5 s" in str(failed)


@both
def test_a_rank_that_has_ended(threads: bool) -> None:
    def work(rank: Any) -> None:
        if rank.rank != 1:
            rank.barrier()

    failed = fails(3, work, threads=threads)
    assert ids(failed)[0] == "PTO-R030"
    assert "has ended without coming" in str(failed)
    the_one(failed, 1)


@both
def test_a_signal_that_nobody_is_left_to_send(threads: bool) -> None:
    def work(rank: Any) -> None:
        if rank.rank == 0:
            rank.transport.wait(0, lambda seen: seen == 1)

    failed = fails(3, work, threads=threads)
    assert ids(failed)[0] == "PTO-R030"


@both
def test_a_signal_that_one_of_the_others_may_still_send(threads: bool) -> None:
    def work(rank: Any) -> None:
        if rank.rank == 0:
            rank.transport.wait(0, lambda seen: seen == 1)
        if rank.rank == 2:
            time.sleep(0.3)
            rank.transport.notify(0, 0, 1)

    assert play(3, work, threads=threads) == [None] * 3


@both
def test_ranks_that_make_different_calls(threads: bool) -> None:
    def work(rank: Any) -> None:
        rank.exchange(1) if rank.rank == 1 else rank.barrier()

    failed = fails(3, work, threads=threads)
    assert ids(failed)[0] == "PTO-R040"
    the_one(failed, 1)


@both
def test_bounds_are_held_at_the_origin(threads: bool) -> None:
    def work(rank: Any, offset: int, count: int) -> None:
        window = rank.transport.window(np.zeros(100 + rank.rank, np.uint8))
        if rank.rank == 0:
            window.put(1, offset, np.zeros(count, np.uint8))

    assert play(2, work, 100, 1, threads=threads) == [None, None]
    for offset, count in ((101, 1), (0, 102), (-1, 1)):
        failed = fails(2, work, offset, count, threads=threads)
        assert ids(failed) == ["PTO-R038"]
        the_one(failed, 1)


@both
def test_memory_that_is_freed_early(threads: bool) -> None:
    def work(rank: Any) -> None:
        window = rank.transport.window(rank.zeros(8, "uint8"))
        if rank.rank == 1:
            window.free()
        rank.barrier()
        if rank.rank == 0:
            window.put(1, 0, np.zeros(8, np.uint8))

    failed = fails(2, work, threads=threads)
    assert ids(failed) == ["PTO-R036"]
    the_one(failed, 1)


@both
def test_no_room_for_shared_memory(threads: bool) -> None:
    def work(rank: Any) -> None:
        if rank.rank == 1:
            rank.zeros(1 << 50, "uint8")
        rank.barrier()

    failed = fails(2, work, threads=threads)
    assert "PTO-R037" in ids(failed)
    the_one(failed, 1)


def test_memory_that_is_gone_cannot_be_reached() -> None:
    def work(rank: Any) -> None:
        reach = Foreign(rank.peers[rank.rank], 64)
        reach.put(0, np.zeros(8, np.uint8))

    failed = fails(1, work)
    assert "PTO-R039" in ids(failed)


def test_the_first_failure_is_the_one_that_is_told() -> None:
    def work(rank: Any) -> None:
        if rank.rank == 3:
            time.sleep(0.2)
            raise ValueError("the cause")
        rank.barrier()

    failed = fails(4, work)
    assert ids(failed) == ["PTO-R031"]
    assert "the cause" in str(failed)


def test_a_rank_that_goes_on_for_ever_after_another_has_failed_is_ended() -> None:
    def work(rank: Any) -> None:
        if rank.rank == 0:
            raise ValueError("no")
        time.sleep(60)

    failed = fails(2, work, timeout=0.5)
    assert ids(failed)[0] == "PTO-R031"
    assert ids(failed) == ["PTO-R031", "PTO-R032"]


def test_a_result_that_cannot_be_pickled() -> None:
    failed = fails(1, lambda rank: lambda: rank)
    assert ids(failed) == ["PTO-R031"]
    assert "cannot be pickled" in str(failed)


def test_large_results_come_back() -> None:
    found = play(2, lambda rank: np.full(3_000_000, rank.rank))
    assert [(one.size, one[0], one[-1]) for one in found] == [(3_000_000, 0, 0), (3_000_000, 1, 1)]


# Bad input


@pytest.mark.parametrize("given", [0, -1, 257, 1.5, "2", True])
def test_a_number_of_ranks_that_cannot_be(given: Any) -> None:
    with pytest.raises(pto.PtoError, match="n"):
        pto.comm.local(given)


@pytest.mark.parametrize("given", [0, -1, "soon", float("nan")])
def test_a_timeout_that_cannot_be(given: Any) -> None:
    with pytest.raises(pto.PtoValueError, match="seconds"):
        pto.comm.local(2, timeout=given)


def test_the_timeout_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTOKIT_COMM_TIMEOUT", "7.5")
    assert pto.comm.local(1).timeout == 7.5
    monkeypatch.setenv("PTOKIT_COMM_TIMEOUT", "long")
    with pytest.raises(pto.PtoValueError, match="PTOKIT_COMM_TIMEOUT='long'"):
        pto.comm.local(1)


def test_a_world_that_has_ended_is_not_used_again() -> None:
    with pto.comm.local(1, threads=True) as world:
        pass
    with pytest.raises(pto.PtoValueError, match="closed"):
        world.run(lambda rank: None)


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(pto.PtoTypeError, match="cannot be called"):
        pto.comm.local(1).run(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [-1, (2, -3), "ab", (2.5,)])
def test_a_shape_that_cannot_be(shape: Any) -> None:
    failed = fails(1, lambda rank: rank.zeros(shape), threads=True)
    assert isinstance(failed.__cause__, pto.PtoError)


def test_a_signal_that_does_not_exist() -> None:
    failed = fails(1, lambda rank: rank.transport.notify(0, SIGNALS), threads=True)
    assert isinstance(failed.__cause__, pto.PtoIndexError)


# Pieces


def test_the_state_of_a_process() -> None:
    assert process_status(os.getpid()) == ""
    assert process_status(1 << 30) == "is gone"


def test_how_a_process_died_is_said_in_words() -> None:
    assert "SIGSEGV" in str(died(Peer(0, "h", 5), -11))
    assert "signal 37." in str(died(Peer(0, "h", 5), -37))


def test_a_long_error_still_has_room_on_a_board() -> None:
    long = pto.comm.RankError("x" * 10_000)
    assert len(packed_error(long)) <= 2048


def test_the_timeout_is_what_the_tests_say() -> None:
    assert TIMEOUT == 3.0


def test_a_world_ends_though_another_process_holds_its_pipe() -> None:
    def work(rank: Any) -> int:
        if os.fork() == 0:
            time.sleep(1.5)
            os._exit(0)
        return int(rank.rank)

    begun = time.monotonic()
    assert play(2, work) == [0, 1]
    assert time.monotonic() - begun < 1.2


def test_memory_of_others_is_let_go_with_its_last_window() -> None:
    def work(rank: Any) -> Any:
        def mapped() -> int:
            return sum("/dev/shm" in line or "shm" in line for line in Path("/proc/self/maps").read_text().splitlines())

        before = mapped()
        for _ in range(10):
            window = rank.transport.window(rank.zeros(100_000, "uint8"))
            rank.barrier()
            window.free()
            del window
        gc.collect()
        return mapped() - before

    assert play(2, work) == [0, 0]
