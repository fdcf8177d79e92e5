"""Worlds for the tests of ranks, and what must be true after each of them."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ptokit as pto

TIMEOUT = 3.0
"""Seconds: what a fault may take until every rank has said so."""
SLACK = 2.0
"""A busy machine takes a little longer."""


def play(n: int, work: Callable[..., Any], *args: Any, threads: bool = False, timeout: float = TIMEOUT) -> list[Any]:
    """A run on a world of its own."""
    with pto.comm.local(n, threads=threads, timeout=timeout) as world:
        return world.run(work, *args)


def fails(n: int, work: Callable[..., Any], *args: Any, threads: bool = False, timeout: float = TIMEOUT) -> Any:
    """The error of a run that fails, within the timeout."""
    begun = time.monotonic()
    try:
        play(n, work, *args, threads=threads, timeout=timeout)
    except pto.comm.RankError as failed:
        assert time.monotonic() - begun < timeout + SLACK
        return failed
    raise AssertionError("nothing failed")


def ids(failed: Any) -> list[str]:
    """The ids of an error's findings, the first one first."""
    return [one.id for one in failed.findings]


def children() -> set[int]:
    """The processes that this one has made and that still are there, zombies included."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        if int(text.rpartition(")")[2].split()[1]) == os.getpid():
            found.add(int(stat.parent.name))
    return found


def open_files() -> int:
    """How many files this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def left_clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A fixture. After a test: no process, no file of shared memory, no open file that was not there before."""
    shared = tmp_path / "shm"
    shared.mkdir()
    monkeypatch.setenv("PTOKIT_SHM_DIR", str(shared))
    before = children(), open_files()
    yield
    gc.collect()
    assert children() <= before[0]
    assert list(shared.iterdir()) == []
    assert open_files() <= before[1]
