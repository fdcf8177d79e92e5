"""Traces as files: names and order of the lanes, slices side by side, arrows that hold; `ptokit trace`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import ptokit as pto
from kernels import CASES
from ptokit.cli import group
from ptokit.cli.scripts import Launch, captured_launches, copies, cycles_table, run_script
from ptokit.core.trace import Flow, Slice, Trace
from ptokit.errors import PtoError
from ptokit.findings import Where
from ptokit.report.perfetto import events, write
from ptokit.timelines import Arrow, Process, Span, Timeline, merged

HERE = Where("kernel.py", 3, 1)


def update(k, table, grads, rows):
    """Each block adds its gradients to its part of the table, and stores a copy of them."""
    b = k.block_idx
    g, i = k.tile("float32", 8, 32, name="g"), k.tile("int32", 1, 8, name="i")
    k.tload(g, grads[8 * b : 8 * b + 8, :])
    k.tload(i, rows[b : b + 1, :])
    k.set_flag("MTE2", "V", 3)
    k.wait_flag("MTE2", "V", 3)
    k.tadds(g, g, 1.0)
    k.set_flag("V", "MTE3", 1)
    k.wait_flag("V", "MTE3", 1)
    k.mscatter(table[16 * b : 16 * b + 16, :], g, i, coalesce="row", atomic="add")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


def arguments(blocks: int = 2) -> list[Any]:
    rows = np.random.default_rng(1).integers(0, 16, (blocks, 8)).astype(np.int32)
    return [np.zeros((16 * blocks, 32), np.float32), np.ones((8 * blocks, 32), np.float32), rows]


def traced(target: str = "a2a3", blocks: int = 2) -> Trace:
    return pto.launch(update, *arguments(blocks), target=target, blocks=blocks).trace


def of(phase: str, made: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in made if one["ph"] == phase]


def by_thread(made: list[dict[str, Any]]) -> dict[tuple[int, int], list[dict[str, Any]]]:
    threads = defaultdict(list)
    for one in of("X", made):
        threads[one["pid"], one["tid"]].append(one)
    return threads


def nanoseconds(number: float) -> int:
    """As Perfetto reads a time: it has cut off the rest, and it rounds today."""
    assert int(number * 1000.0) == round(number * 1000.0)
    return int(number * 1000.0)


def around(end: dict[str, Any], made: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The slices in which the end of an arrow lies."""
    there = by_thread(made)[end["pid"], end["tid"]]
    return [
        one
        for one in there
        if nanoseconds(one["ts"]) <= nanoseconds(end["ts"]) < nanoseconds(one["ts"]) + nanoseconds(one["dur"])
    ]


def assert_sound(made: list[dict[str, Any]]) -> None:
    """What Perfetto needs: slices that it can see, none over another, arrows that leave and arrive inside slices."""
    for slices in by_thread(made).values():
        assert all(nanoseconds(one["dur"]) >= 1 for one in slices)
        for one, after in pairwise(slices):
            assert nanoseconds(one["ts"]) + nanoseconds(one["dur"]) <= nanoseconds(after["ts"]), (one, after)
    starts, finishes = of("s", made), of("f", made)
    assert len({one["id"] for one in starts}) == len(starts)
    assert sorted(one["id"] for one in starts) == sorted(one["id"] for one in finishes)
    finish = {one["id"]: one for one in finishes}
    for start in starts:
        end = finish[start["id"]]
        assert (start["name"], start["cat"], start["pid"]) == (end["name"], end["cat"], end["pid"])
        assert end["bp"] == "e"
        assert start["ts"] <= end["ts"]
        assert made.index(start) < made.index(end)
        assert len(around(start, made)) == 1, start
        assert len(around(end, made)) == 1, end


def names(made: list[dict[str, Any]], what: str) -> dict[tuple[int, int], Any]:
    return {(one["pid"], one["tid"]): next(iter(one["args"].values())) for one in made if one["name"] == what}


# The file


def test_the_file_says_what_it_is_and_holds_the_events(tmp_path: Path) -> None:
    trace = traced()
    file = trace.to_perfetto(tmp_path / "trace.json")
    read = json.loads(file.read_text())
    assert read["displayTimeUnit"] == "ns"
    assert read["otherData"]["target"] == "a2a3"
    assert read["otherData"]["frequency_ghz"] == trace.frequency_ghz == 1.85
    assert "model" in read["otherData"]["note"]
    assert read["traceEvents"] == events(trace)


def test_every_block_is_a_process_and_its_pipes_are_lanes_in_order() -> None:
    made = events(traced(blocks=3))
    processes = names(made, "process_name")
    assert list(processes.values()) == [f"block {number} of 3, a2a3" for number in range(3)]
    assert sorted(names(made, "process_sort_index").values()) == [0, 1, 2]
    place = names(made, "thread_sort_index")
    for pid, _ in processes:
        threads = {key: name for key, name in names(made, "thread_name").items() if key[0] == pid}
        in_order = sorted(threads, key=lambda key: place[key])
        assert [threads[key] for key in in_order] == ["1 S", "2 V", "3 MTE2", "4 MTE3"]
    assert {one["pid"] for one in of("X", made)} == {pid for pid, _ in processes}
    # Thread ids are the whole system's in this format, and a thread with the process's number is its main one.
    threads = [tid for _, tid in names(made, "thread_name")]
    assert len(set(threads)) == len(threads) == 12
    assert not set(threads) & ({0} | {pid for pid, _ in processes})


def test_an_instruction_is_a_slice_with_its_time_its_place_and_its_operands() -> None:
    trace = traced()
    made = events(trace)
    model = next(one for one in trace if one.name == "tload" and one.block == 1)
    drawn = next(one for one in of("X", made) if one["name"] == "tload" and one["pid"] == 2)
    assert names(made, "thread_name")[drawn["pid"], drawn["tid"]] == "3 MTE2"
    assert drawn["ts"] == pytest.approx(model.start / 1850, abs=0.6e-3)
    assert drawn["dur"] == pytest.approx((model.end - model.start) / 1850, abs=1.1e-3)
    assert drawn["args"]["cycles"] == model.end - model.start > 0
    assert drawn["args"]["start_cycle"] == model.start
    assert drawn["args"]["bytes"] == 8 * 32 * 4
    assert drawn["args"]["operands"][0] == "g"
    line = update.__code__.co_firstlineno + 4
    assert drawn["args"]["where"] == f"{__file__}:{line}"


def test_the_arrow_of_a_flag_goes_from_its_set_to_its_wait() -> None:
    made = events(traced())
    for flag, pipes in (("MTE2->V, event 3", ("3 MTE2", "2 V")), ("V->MTE3, event 1", ("2 V", "4 MTE3"))):
        starts = [one for one in of("s", made) if one["name"] == flag]
        assert len(starts) == 2
        for start in starts:
            end = next(one for one in of("f", made) if one["id"] == start["id"])
            (set_, wait) = around(start, made)[0], around(end, made)[0]
            assert (set_["name"], wait["name"]) == ("set_flag", "wait_flag")
            assert set_["args"]["flag"] == wait["args"]["flag"] == flag
            assert tuple(names(made, "thread_name")[one["pid"], one["tid"]] for one in (set_, wait)) == pipes


@pytest.mark.parametrize("target", ["a2a3", "a5", "cpu"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_kernel_makes_a_file_that_holds_together(case: Any, target: str) -> None:
    if target not in (*case.targets, "cpu"):
        pytest.skip("not a kernel of this target")
    trace = pto.launch(case.kernel, *case.make(), target=target, **case.launch).trace
    made = events(trace)
    assert_sound(made)
    assert len(of("s", made)) == len(trace.flows)
    assert len([one for one in of("X", made) if one["cat"] != "handshake"]) == len(trace)
    assert [one["ts"] for one in made if "ts" in one] == sorted(one["ts"] for one in made if "ts" in one)


def test_the_same_launch_makes_the_same_file(tmp_path: Path) -> None:
    one, other = (write(traced(), tmp_path / name).read_bytes() for name in ("one.json", "other.json"))
    assert one == other


def a_trace(slices: list[tuple[str, str, float, float]], flows: list[Flow], ghz: float = 1.0) -> Trace:
    """A trace by hand; what is called `set flag a` carries the flag `a`."""
    made = []
    for pipe, name, start, end in slices:
        _, is_flag, flag = name.partition(" flag ")
        made.append(Slice(0, pipe, name, start, end, 0, HERE, {"flag": flag} if is_flag else {}))
    return Trace("a5", ghz, 1, tuple(made), tuple(flows))


@pytest.mark.parametrize("ghz", [0.5, 1.0, 1.65, 1.85])
def test_slices_without_length_can_be_seen_and_tell_their_true_time(ghz: float) -> None:
    nothing = [("V", f"nothing {n}", 10.0, 10.0) for n in range(4)]
    made = events(a_trace([*nothing, ("V", "long", 10.0, 90.0), ("V", "after", 90.0, 91.0)], [], ghz))
    assert_sound(made)
    slices = of("X", made)
    assert [one["name"] for one in slices] == ["nothing 0", "nothing 1", "nothing 2", "nothing 3", "long", "after"]
    assert len(by_thread(made)) == 1
    assert [one["args"]["cycles"] for one in slices] == [0, 0, 0, 0, 80, 1]
    assert [one["args"]["start_cycle"] for one in slices] == [10, 10, 10, 10, 10, 90]
    least = max(1.0, 1 / ghz) / 1000
    assert all(one["dur"] >= least * 0.999 for one in slices)
    assert slices[4]["ts"] + slices[4]["dur"] == pytest.approx(90 / ghz / 1000, abs=0.6e-3)


def test_what_runs_at_the_same_time_on_one_pipe_has_a_lane_of_its_own_below_it() -> None:
    made = events(a_trace([("S", "store", 0.0, 40.0), ("S", "dcci", 10.0, 90.0), ("S", "dsb", 90.0, 95.0)], []))
    assert_sound(made)
    assert sorted(names(made, "thread_name").values()) == ["1 S", "1 S (2)", "2 V", "3 MTE2", "4 MTE3"]
    place, name = names(made, "thread_sort_index"), names(made, "thread_name")
    assert [name[key] for key in sorted(place, key=lambda key: place[key])][:3] == ["1 S", "1 S (2)", "2 V"]
    assert {one["name"]: name[one["pid"], one["tid"]] for one in of("X", made)} == {
        "store": "1 S",
        "dcci": "1 S (2)",
        "dsb": "1 S",
    }


def test_times_survive_a_reader_that_cuts_off() -> None:
    # 1.001 * 1000 is a little less than 1001: such a slice would begin before the one before it has ended.
    turns = [("V", "turn", float(n), float(n + 1)) for n in range(5000)]
    made = of("X", events(a_trace(turns, [])))
    assert [nanoseconds(one["ts"]) for one in made] == list(range(5000))
    assert all(nanoseconds(one["dur"]) == 1 for one in made)


def test_a_handshake_arrives_where_the_pipe_waits_and_not_at_the_next_thing_it_does() -> None:
    slices = [("V", "tadd", 0.0, 50.0), ("S", "pipe_barrier", 4000.0, 4032.0)]
    made = events(a_trace(slices, [Flow(0, "V->S", "V", 50.0, "S", 50.0)]))
    assert_sound(made)
    (start,), (end,) = of("s", made), of("f", made)
    assert around(start, made)[0]["name"] == "tadd"
    (there,) = around(end, made)
    assert (there["name"], there["cat"], there["ts"]) == ("wait V->S", "handshake", 0.05)
    assert "where" not in there["args"]


def test_an_arrow_between_slices_without_length_does_not_go_backwards() -> None:
    nothing = [("V", f"nothing {n}", 10.0, 10.0) for n in range(5)]
    made = events(a_trace([*nothing, ("S", "dsb", 10.0, 10.0)], [Flow(0, "V->S", "V", 10.0, "S", 10.0)]))
    assert_sound(made)
    assert len(of("s", made)) == 1


def test_an_arrow_takes_the_set_and_the_wait_of_its_flag_among_others_at_that_time() -> None:
    slices = [
        ("V", "set flag a", 0.0, 16.0),
        ("V", "set flag b", 16.0, 16.0),
        ("V", "set flag c", 16.0, 16.0),
        ("MTE3", "wait flag c", 16.0, 16.0),
        ("MTE3", "wait flag b", 16.0, 16.0),
        ("MTE3", "wait flag a", 16.0, 32.0),
    ]
    made = events(a_trace(slices, [Flow(0, flag, "V", 16.0, "MTE3", 16.0) for flag in "ab"]))
    assert_sound(made)
    for start, end in zip(of("s", made), of("f", made), strict=True):
        assert around(start, made)[0]["name"] == f"set flag {start['name']}"
        assert around(end, made)[0]["name"] == f"wait flag {end['name']}"


def test_a_launch_that_does_nothing_makes_a_file_with_names_only(tmp_path: Path) -> None:
    run = pto.launch(lambda k: None, target="a5")
    read = json.loads(run.trace.to_perfetto(tmp_path / "nothing.json").read_text())
    assert {one["ph"] for one in read["traceEvents"]} == {"M"}


# Timelines of any origin


RANKS = tuple(Process(number, f"rank {number}", ("puts", "arrivals")) for number in range(3))


def two_puts(**more: Any) -> Timeline:
    """Rank 0 puts into ranks 1 and 2."""
    spans = (
        Span(0, "puts", "put", 0.0, 50.0, {"to": 1}, mark="put 1"),
        Span(0, "puts", "put", 50.0, 50.0, {"to": 2}, mark="put 2"),
        Span(1, "arrivals", "slice", 20.0, 60.0, {"bytes": 64}),
    )
    arrows = tuple(Arrow(f"put {rank}", 0, "puts", 50.0, rank, "arrivals", 58.0 + rank) for rank in (1, 2))
    return Timeline(RANKS, spans, arrows, **more)


def test_ranks_are_processes_with_their_own_lanes_in_one_file(tmp_path: Path) -> None:
    read = json.loads(write(two_puts(facts={"ranks": 3}), tmp_path / "ranks.json").read_text())
    made = read["traceEvents"]
    assert read["otherData"] == {"ranks": 3}
    assert list(names(made, "process_name").values()) == ["rank 0", "rank 1", "rank 2"]
    assert list(names(made, "thread_name").values()) == ["1 puts", "2 arrivals"] * 3
    assert len(set(names(made, "thread_name"))) == 6
    assert [(one["pid"], one["name"], one["args"]) for one in of("X", made)] == [
        (1, "put", {"to": 1}),
        (2, "slice", {"bytes": 64}),
        (1, "put", {"to": 2}),
        (3, "wait put 2", {}),
    ]


def test_an_arrow_goes_from_the_put_of_one_rank_to_the_arrival_at_another() -> None:
    made = events(two_puts())
    finish = {one["id"]: one for one in of("f", made)}
    told = {}
    for start in of("s", made):
        end = finish[start["id"]]
        (source,), (sink,) = around(start, made), around(end, made)
        told[start["name"]] = (source["pid"], source["args"], sink["pid"], sink["name"])
    assert told == {"put 1": (1, {"to": 1}, 2, "slice"), "put 2": (1, {"to": 2}, 3, "wait put 2")}


def test_timelines_of_several_ranks_become_one() -> None:
    whole = two_puts()
    parts = [
        Timeline((RANKS[n],), tuple(span for span in whole.spans if span.process == n), facts={f"rank {n}": n})
        for n in (2, 0, 1)
    ]
    parts[1] = Timeline((RANKS[0], *RANKS[1:]), parts[1].spans, whole.arrows, parts[1].facts, shortest=3)
    joined = merged(parts)
    assert joined.processes == RANKS
    assert joined.spans == whole.spans
    assert joined.arrows == whole.arrows
    assert joined.facts == {"rank 0": 0, "rank 1": 1, "rank 2": 2}
    assert joined.shortest == 3


def test_an_arrow_that_would_go_back_in_time_is_left_out() -> None:
    spans = (Span(0, "puts", "put", 100.0, 150.0), Span(1, "arrivals", "slice", 20.0, 60.0))
    for arrives, drawn in ((60.0, 0), (160.0, 1)):
        made = events(Timeline(RANKS, spans, (Arrow("put", 0, "puts", 150.0, 1, "arrivals", arrives),)))
        assert len(of("s", made)) == len(of("f", made)) == drawn


@pytest.mark.parametrize(
    "line",
    [
        Timeline(RANKS, (Span(7, "puts", "put", 0, 1),)),
        Timeline(RANKS, (Span(0, "put", "put", 0, 1),)),
        Timeline(RANKS, (), (Arrow("a", 0, "puts", 0, 0, "nowhere", 1),)),
        Timeline((RANKS[0], RANKS[0]), ()),
    ],
)
def test_a_timeline_that_does_not_hold_together_is_refused(line: Timeline) -> None:
    with pytest.raises(PtoError, match=r"which it does not name|have one number"):
        events(line)


# Writing


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    file, old = tmp_path / "trace.json", tmp_path / "old.json"
    file.write_text("what was there")
    os.link(file, old)
    assert write(traced(), str(file)) == file
    assert old.read_text() == "what was there"
    assert json.loads(file.read_text())["traceEvents"]
    assert sorted(tmp_path.iterdir()) == [old, file]


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    file = tmp_path / "trace.json"
    file.write_text("what was there")
    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(PtoError, match="No space left"):
        write(traced(), file)
    assert [one.name for one in tmp_path.iterdir()] == ["trace.json"]
    assert file.read_text() == "what was there"


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("{}")
    link.symlink_to(real)
    write(traced(), link)
    assert link.is_symlink()
    assert json.loads(real.read_text())["traceEvents"]


def test_a_device_is_written_to_and_never_replaced() -> None:
    write(traced(), os.devnull)
    assert Path(os.devnull).is_char_device()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nowhere/trace.json", "nowhere does not exist"),
        ("file/trace.json", "file is a file, no folder"),
        ("folder", "is a folder"),
        ("a" * 300, "cannot be written"),
    ],
)
def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path, name: str, told: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(PtoError, match=told) as refused:
        write(traced(), tmp_path / name)
    assert "\n" not in str(refused.value)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "folder"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_read_only_is_one_sentence(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(PtoError, match="Permission denied"):
        write(traced(), tmp_path / "trace.json")


# Launches of a script


def plus_one(k, x):
    tile = k.tile("float32", 1, 8)
    k.tload(tile, x)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.tadds(tile, tile, 1.0)
    k.set_flag("V", "MTE3", 0)
    k.wait_flag("V", "MTE3", 0)
    k.tstore(x, tile)


def test_launches_are_captured_with_their_arguments_as_they_were() -> None:
    x = np.zeros(8, np.float32)
    with captured_launches() as launches:
        first = pto.launch(plus_one, x, target="a2a3")
        second = pto.launch(plus_one, x, target="a5", seed=7)
    pto.launch(plus_one, x, target="a5")
    assert [one.run for one in launches] == [first, second]
    assert [one.arguments[0][0] for one in launches] == [0, 1]
    assert x[0] == 3
    assert launches[1].kernel is plus_one
    assert (launches[1].keywords["target"], launches[1].keywords["seed"]) == ("a5", 7)


def test_a_captured_launch_can_be_launched_again() -> None:
    x = np.zeros(8, np.float32)
    with captured_launches() as launches:
        pto.launch(plus_one, x, target="a2a3", host_reads=[x])
    one: Launch = launches[0]
    for _ in range(2):
        again = one.fresh()
        pto.launch(one.kernel, *again, **one.keywords)
        assert again[0].tolist() == [1.0] * 8
    assert one.arguments[0].tolist() == [0.0] * 8


def test_a_launch_that_is_refused_is_no_launch() -> None:
    with captured_launches() as launches, pytest.raises(PtoError):
        pto.launch(plus_one, np.zeros(8, np.float32), target="a7")
    assert launches == []


def test_copies_share_what_their_originals_share() -> None:
    memory = np.arange(64, dtype=np.float32)
    table = pto.GlobalTensor(memory, "float32", (1, 1, 1, 8, 8))
    given = (table, table[2:4, 0:8], memory[16:32], memory, np.arange(3), 5, "word")
    copied = copies(given)
    assert copied[1].base == 16
    assert [np.array_equal(one, other) for one, other in zip(copied, given, strict=True)] == [True] * 7
    copied[2][:] = -1.0
    assert np.asarray(copied[1]).ravel().tolist() == [-1.0] * 16
    assert copied[3][15:17].tolist() == [15.0, -1.0]
    assert memory.tolist() == list(range(64))
    assert not np.shares_memory(copied[4], copied[3])


def test_copies_keep_strides_extents_and_permissions() -> None:
    locked = np.arange(4, dtype=np.int32)
    locked.flags.writeable = False
    loose = pto.GlobalTensor(
        np.arange(32, dtype=np.int32), "int32", (1, 1, 1, -1, 4), (32, 32, 32, 8, 1), actual=(1, 1, 1, 3, 4)
    )
    again, columns, tensor = copies((locked, np.arange(12).reshape(3, 4).T, loose))
    assert not again.flags.writeable
    assert columns.flags.f_contiguous
    assert columns.tolist() == np.arange(12).reshape(3, 4).T.tolist()
    assert (tensor.shape, tensor.stride) == (loose.shape, loose.stride)
    assert np.array_equal(tensor, loose)


SCRIPT = """
    import sys
    import numpy as np
    import ptokit as pto
    from constants import STEP

    def kernel(k, x):
        tile = k.tile("float32", 1, 8)
        k.tload(tile, x)
        k.set_flag("MTE2", "V", 0); k.wait_flag("MTE2", "V", 0)
        k.tadds(tile, tile, STEP)
        k.set_flag("V", "MTE3", 0); k.wait_flag("V", "MTE3", 0)
        k.tstore(x, tile)

    if __name__ == "__main__":
        print("hello from", sys.argv)
        pto.launch(kernel, np.zeros(8, np.float32), target="a2a3")
        pto.launch(kernel, np.zeros(8, np.float32), target="a5", blocks=2)
"""


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], Path]:
    def made(text: str) -> Path:
        (tmp_path / "constants.py").write_text("STEP = 2.0\n")
        file = tmp_path / "kernel.py"
        file.write_text(dedent(text))
        return file

    yield made
    sys.modules.pop("constants", None)


def test_a_script_runs_as_itself_and_leaves_nothing_behind(script: Any, capsys: pytest.CaptureFixture[str]) -> None:
    file = script(SCRIPT)
    before = sys.argv, list(sys.path), sys.modules["__main__"]
    launches = run_script(file)
    assert (sys.argv, sys.path, sys.modules["__main__"]) == before
    assert [one.run.target for one in launches] == ["a2a3", "a5"]
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"hello from {[str(file)]}\n"
    again = launches[0].fresh()
    pto.launch(launches[0].kernel, *again, **launches[0].keywords)
    assert again[0].tolist() == [2.0] * 8


def test_a_quiet_script_says_nothing(script: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run_script(script(SCRIPT + "        print('and goodbye', file=sys.stderr)\n"), quiet=True)
    assert capsys.readouterr() == ("", "")


def test_an_exit_with_0_is_the_end_of_a_script(script: Any) -> None:
    assert len(run_script(script(SCRIPT + "        sys.exit(0)\n"), quiet=True)) == 2


# The command


def ptokit(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ptokit", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "100"},
    )


def test_the_command_writes_beside_the_script_and_prints_a_table(script: Any, tmp_path: Path) -> None:
    file = script(SCRIPT)
    done = CliRunner().invoke(group, ["trace", str(file)])
    assert done.exit_code == 0, done.output
    made = json.loads((tmp_path / "kernel.perfetto.json").read_text())
    assert made["otherData"]["target"] == "a2a3"
    assert_sound(made["traceEvents"])
    assert "launch 1 of 2 on a2a3" in done.stdout
    assert "hello" not in done.stdout
    for pipe in ("S", "V", "MTE2", "MTE3"):
        assert any(pipe in line.split() for line in done.stdout.replace("|", " ").replace("│", " ").splitlines())
    assert "kernel.perfetto.json" in done.stdout
    assert "\x1b" not in done.stdout


def test_the_command_as_json_for_a_later_launch(script: Any, tmp_path: Path) -> None:
    out = tmp_path / "second.json"
    done = CliRunner().invoke(
        group, ["trace", str(script(SCRIPT)), "--launch", "2", "--out", str(out), "--quiet", "--json"]
    )
    told = json.loads(done.stdout)
    assert (told["launch"], told["launches"], told["target"], told["blocks"]) == (2, 2, "a5", 2)
    assert told["out"] == str(out)
    assert [one["pipe"] for one in told["pipes"]] == ["S", "V", "MTE2", "MTE3"]
    assert json.loads(out.read_text())["otherData"]["blocks"] == 2
    # Both blocks write the same array.
    assert told["findings"]
    assert all(one.startswith("PTO-S") for one in told["findings"])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1\n", "launches no kernel"),
        ("import ptokit\n\n\ndef f():\n    raise ValueError('the words')\n\n\nf()\n", "line 5: ValueError: the words"),
        ("x = (\n", "line 1: SyntaxError: "),
        ("import sys\nsys.exit(3)\n", "exit code 3"),
        ("import nobody_has_this\n", "line 1: ModuleNotFoundError: No module named 'nobody_has_this'"),
        ("raise KeyError\n", "line 1: KeyError"),
        ("import ptokit as pto\npto.launch(3)\n", "line 2: PtoTypeError: "),
    ],
)
def test_a_script_that_cannot_be_used_is_one_sentence_and_exit_code_2(script: Any, text: str, told: str) -> None:
    file = script(text)
    done = ptokit("trace", file)
    assert done.returncode == 2
    assert told in done.stderr
    assert str(file) in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert not file.with_suffix(".perfetto.json").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--launch", "3"], "makes 2"),
        (["--launch", "0"], "makes 2"),
        (["--out", "nowhere/at/all.json"], "nowhere/at does not exist"),
    ],
)
def test_what_cannot_be_had_is_one_sentence_and_exit_code_2(script: Any, words: list[str], told: str) -> None:
    done = ptokit("trace", script(SCRIPT), "--quiet", *words)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_script_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(PtoError, match="does not exist"):
        run_script(tmp_path / "nobody.py")
    with pytest.raises(PtoError, match="is a folder"):
        run_script(tmp_path)


# Cycles


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_the_table_of_cycles_adds_up(target: str) -> None:
    run = pto.launch(update, *arguments(3), target=target, blocks=3)
    table = cycles_table(run)
    assert [one["pipe"] for one in table] == ["S", "V", "MTE2", "MTE3"]
    for one in table:
        assert one["cycles"] == run.cycles[one["pipe"]]
        assert one["share"] == one["cycles"] / run.cycles.total <= 1
        assert sum(site["cycles"] for site in one["sites"]) == pytest.approx(one["cycles"])
        assert [site["cycles"] for site in one["sites"]] == sorted((s["cycles"] for s in one["sites"]), reverse=True)
        assert one["instructions"] == sum(site["count"] for site in one["sites"] if site["where"])
    loads = {site["where"]: site for site in table[2]["sites"] if site["name"] == "tload"}
    first = update.__code__.co_firstlineno + 4
    assert sorted(loads) == [f"{__file__}:{first}", f"{__file__}:{first + 1}"]
    mover = table[1 if target == "a5" else 3]["sites"][0]
    assert (mover["name"], mover["count"]) == ("mscatter", 1)


def test_a_place_in_a_loop_counts_every_turn() -> None:
    def loop(k, x):
        tile = k.tile("float32", 1, 8)
        for _ in range(5):
            k.texpands(tile, 0.0)
        k.dsb()

    table = cycles_table(pto.launch(loop, np.zeros(8, np.float32), target="a5"))
    (site,) = table[1]["sites"]
    assert (site["name"], site["count"]) == ("texpands", 5)
    assert table[0]["instructions"] == 1


def test_the_table_is_that_of_the_slowest_block() -> None:
    def uneven(k, x):
        tile = k.tile("float32", 1, 8)
        for _ in range((1, 7, 3)[k.block_idx]):
            k.texpands(tile, 0.0)

    table = cycles_table(pto.launch(uneven, np.zeros(8, np.float32), target="a5", blocks=3))
    assert table[1]["instructions"] == 7


def test_a_launch_that_does_nothing_has_an_empty_table() -> None:
    table = cycles_table(pto.launch(lambda k: None, target="a5"))
    assert [(one["cycles"], one["share"], one["sites"]) for one in table] == [(0.0, 0.0, [])] * 4
