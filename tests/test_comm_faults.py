"""Worlds that are begun, interrupted and ended in unusual ways: nobody waits, nothing is left, and it is said why."""

from __future__ import annotations

import itertools
import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptokit as pto
from ptokit.comm import reach
from ptokit.comm.attend import announce, ends_with_parent
from ptokit.comm.boards import Boards
from ptokit.comm.faults import error
from ptokit.comm.segments import Segments
from ptokit.comm.transport import Layout
from ranks import children, fails, ids, left_clean, play

both = pytest.mark.parametrize("threads", [False, True], ids=["processes", "threads"])
nothing_is_left = pytest.fixture(autouse=True)(left_clean)


# The beginning


@contextmanager
def few_files(more: int) -> Iterator[None]:
    """This process may open so many files more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = {int(one.name) for one in Path("/proc/self/fd").iterdir()}
    free = itertools.filterfalse(taken.__contains__, itertools.count())
    resource.setrlimit(resource.RLIMIT_NOFILE, (next(itertools.islice(free, more, None)), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_world_with_more_ranks_than_files_says_so_and_leaves_none_behind() -> None:
    before = children()
    with few_files(8):
        failed = fails(40, lambda rank: rank.barrier())
    assert ids(failed) == ["PTO-R030"]
    assert "of 40 (host " in str(failed)
    assert f"could not be started by process {os.getpid()}: Too many open files" in str(failed)
    assert children() <= before


def test_a_world_with_more_threads_than_the_system_allows_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    right, begun = threading.Thread.start, []

    def start(self: threading.Thread) -> None:
        if len(begun) == 2:
            raise RuntimeError("can't start new thread")
        begun.append(self)
        right(self)

    monkeypatch.setattr(threading.Thread, "start", start)
    failed = fails(4, lambda rank: rank.barrier(), threads=True)
    assert "rank 2 of 4 (host " in str(failed)
    assert "can't start new thread" in str(failed)
    for thread in begun:  # they have been told, and wait for nobody
        thread.join(1.0)
        assert not thread.is_alive()


def test_a_rank_whose_parent_has_gone_before_it_began_ends() -> None:
    pid = os.fork()
    if not pid:
        ends_with_parent(os.getppid() + 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1


# The end of the parent

SCRIPT = """
    import os, pathlib, time
    import ptokit as pto

    def work(rank):
        rank.zeros(1000)
        pathlib.Path(os.environ["NOTES"], str(os.getpid())).touch()
        time.sleep(60)

    with pto.comm.local(3) as world:
        world.run(work)
"""


def is_alive(pid: int) -> bool:
    """A process that is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda one: one.name)
def test_ranks_end_with_the_process_that_started_them(by: signal.Signals, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    with subprocess.Popen([sys.executable, script], env={**os.environ, "NOTES": str(notes)}, stderr=-3) as parent:
        end = time.monotonic() + 20
        while len(list(notes.iterdir())) < 3:
            assert time.monotonic() < end
            time.sleep(0.01)
        pids = [int(one.name) for one in notes.iterdir()]
        parent.send_signal(by)
        parent.wait(10)
    end = time.monotonic() + 5
    while any(map(is_alive, pids)):
        assert time.monotonic() < end, "a rank has outlived its parent"
        time.sleep(0.01)


# What a rank does


@both
def test_a_process_forked_in_a_rank_that_comes_back_is_no_rank(threads: bool) -> None:
    def work(rank: Any) -> str:
        if rank.rank == 1:
            pid = os.fork()
            if not pid:
                return "I am nobody"
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        rank.barrier()
        return f"rank {rank.rank}"

    assert play(3, work, threads=threads) == ["rank 0", "rank 1", "rank 2"]


@both
def test_a_process_forked_in_a_rank_that_raises_fails_for_itself_alone(threads: bool, capfd: Any) -> None:
    def work(rank: Any) -> str:
        if rank.rank == 1:
            pid = os.fork()
            if not pid:
                raise KeyError("nobody")
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
        rank.barrier()
        return f"rank {rank.rank}"

    assert play(2, work, threads=threads) == ["rank 0", "rank 1"]
    assert "KeyError: 'nobody'" in capfd.readouterr().err


class Odd(Exception):  # noqa: N818
    """Has findings of its own kind."""

    findings = 5


class Silent(Exception):  # noqa: N818
    """Cannot say what it is."""

    def __str__(self) -> str:
        raise ValueError("no words")


@both
@pytest.mark.parametrize(
    ("mistake", "said"),
    [(Odd("left"), "raised Odd: left"), (Silent(), "raised Silent: (its text cannot be read: ValueError)")],
    ids=["odd", "silent"],
)
def test_exceptions_that_cannot_be_read_are_told_all_the_same(mistake: Exception, said: str, threads: bool) -> None:
    def work(rank: Any) -> None:
        if rank.rank == 1:
            raise mistake
        rank.barrier()

    failed = fails(2, work, threads=threads)
    assert ids(failed) == ["PTO-R031"]
    assert said in str(failed)
    assert sorted(failed.failures) == [0, 1]


def test_a_long_text_is_shortened_in_what_is_said_of_a_rank() -> None:
    def work(rank: Any) -> None:
        if rank.rank == 1:
            raise ValueError("y" * 100_000)
        rank.barrier()

    assert len(str(fails(2, work))) < 20_000


def test_a_result_that_cannot_be_pickled_names_its_rank_and_process() -> None:
    failed = fails(2, lambda rank: (lambda: 0) if rank.rank else os.getpid())
    assert str(failed).startswith("PTO-R031: rank 1 (host ")
    assert ", pid " in str(failed)


def test_a_result_of_a_class_that_only_the_rank_knows_is_told() -> None:
    def work(rank: Any) -> Any:
        module = types.ModuleType("known_to_the_rank")
        module.__dict__["Own"] = type("Own", (), {"__module__": "known_to_the_rank"})
        sys.modules["known_to_the_rank"] = module
        return module.Own()

    failed = fails(1, work)
    assert ids(failed) == ["PTO-R031"]
    assert "the answer of rank 0 (host " in str(failed)
    assert "cannot be read: ModuleNotFoundError" in str(failed)


def test_a_rank_that_dies_while_it_writes_what_failed_is_told_of_by_who_looks_after_it() -> None:
    boards = Boards.of_process(2)
    boards.store(0, Layout.FAILURE, -(1 + 1))  # rank 1 was writing onto the board of rank 0
    announce(boards, 1, error("PTO-R030", "rank 1 was killed.", rank=1))
    assert [boards.load(rank, Layout.FAILURE) for rank in (0, 1)] == [2, 2]
    assert boards.load(0, Layout.TEXT_LENGTH) > 0


# Meeting again after somebody has given up


@both
def test_who_comes_to_a_meeting_that_others_have_given_up_is_told(threads: bool) -> None:
    """Two meetings later the place of the message is another's: its value is not taken for the one that is missing."""

    def work(rank: Any) -> Any:
        if rank.rank == 0:
            for value in ("first", "second", "third"):
                with pytest.raises(pto.comm.RankTimeout):
                    rank.exchange(value, timeout=0.05)
            rank.transport.notify(1, 0)
            return None
        rank.transport.wait(0, lambda seen: seen == 1)
        return rank.exchange("mine")

    failed = fails(2, work, threads=threads)
    assert ids(failed)[0] == "PTO-R040"
    assert "which rank 0 (host " in str(failed)
    assert "has given up and gone on from." in str(failed)


# Signals


@both
def test_a_signal_has_32_bits_with_a_sign(threads: bool) -> None:
    def work(rank: Any) -> Any:
        most = (1 << 31) - 1
        for _ in range(2):
            pto.comm.tnotify(rank, rank.rank, 4, most, op="add")
        pto.comm.tnotify(rank, rank.rank, 4, 1, op="add")
        return pto.comm.ttest(rank, 4, -1), pto.comm.twait(rank, 4, 0, cmp="lt")

    assert play(1, work, threads=threads) == [(True, -1)]


# Memory


def test_a_file_that_has_the_number_of_a_closed_segment_is_not_written_to(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"x" * 8192)

    def work(rank: Any) -> float:
        part = rank.zeros((4, 8))
        if rank.rank == 1:
            (segment,) = rank.transport.segments._own.values()
            fd = os.open(victim, os.O_RDWR)
            os.dup2(fd, segment.fd)
        group = rank.group(part)
        if rank.rank == 0:
            pto.comm.tscatter(group, np.ones((8, 8), np.float32), pto.Tile("float32", 4, 8))
        rank.barrier()
        return float(part.sum())

    assert play(2, work) == [32.0, 32.0]
    assert victim.read_bytes() == b"x" * 8192


def test_a_segment_closes_no_file_that_has_its_number_by_now(tmp_path: Path) -> None:
    segments = Segments()
    memory = segments.make(4096, "a test")
    (segment,) = segments._own.values()
    other = os.open(tmp_path, os.O_RDONLY)
    os.dup2(other, segment.fd)
    os.close(other)
    del memory
    os.fstat(segment.fd)
    os.close(segment.fd)


def test_one_call_of_the_system_moves_no_more_than_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    right, seen = reach._system, []

    def counted(name: str) -> Any:
        def call(pid: int, own: int, one: int, theirs: int, many: int, flags: int) -> int:
            seen.append(right(name)(pid, own, one, theirs, many, flags))
            return seen[-1]

        return call

    def work(rank: Any) -> Any:
        memory = np.zeros(12 * 32, np.uint8)
        group = rank.group(pto.GlobalTensor(memory, "uint8", (1, 1, 1, 6, 32), (384, 384, 384, 64, 1)))
        if rank.rank == 0:
            monkeypatch.setattr(reach, "MOST_BYTES", 100)
            monkeypatch.setattr(reach, "_system", counted)
            whole = np.arange(12 * 32, dtype=np.uint8).reshape(12, 32)
            pto.comm.tscatter(group, whole, pto.Tile("uint8", 6, 32))
        rank.barrier()
        return memory.reshape(6, 64)[:, :32].tolist(), seen

    (_, moved), (part, _) = play(2, work)
    assert moved == [96, 96]
    assert part == (np.arange(12 * 32) % 256).reshape(12, 32)[6:].tolist()


@both
def test_puts_and_gets_are_recorded(threads: bool) -> None:
    def work(rank: Any) -> Any:
        group = rank.group(rank.zeros((2, 8)))
        own = np.ones((2, 8), np.float32)
        with rank.recording() as trace:
            if rank.rank == 0:
                pto.comm.tput(group, 1, own)
                pto.comm.tget(group, 1, own)
            rank.barrier()
        spans = [(one.process, one.name) for one in trace.timeline.spans if one.name.endswith("rank 1")]
        return spans, len(trace.timeline.arrows)

    assert play(2, work, threads=threads) == [([(0, "put to rank 1"), (0, "get from rank 1")], 2)] * 2


def test_a_world_of_threads_that_is_interrupted_tells_its_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    told = threading.Event()

    def work(rank: Any) -> None:
        if rank.rank == 0:
            try:
                rank.barrier(timeout=30)
            except pto.comm.RankError:
                told.set()
        else:
            told.wait(10)

    def interrupted(self: threading.Thread, timeout: float | None = None) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "join", interrupted)
        with pytest.raises(KeyboardInterrupt):
            play(2, work, threads=True)
    assert told.wait(5)
