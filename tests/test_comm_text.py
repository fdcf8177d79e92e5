"""Collectives in texts: run, checked, and written from what a kernel did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("xdsl")

import ptokit as pto
from checked_texts import ids, loud
from ptokit.core.moves import Moves
from ptokit.ir import parse
from ptokit.ir.check import check
from ptokit.ir.errors import RunError
from ptokit.ir.mend import fix

RANKS = Path(__file__).parents[1] / "examples" / "ranks.pto"
Array = np.ndarray[Any, Any]
PART, TILE = "!pto.tensor_view<4x32xf32>", "!pto.tile_buf<vec, 4x32xf32>"


def text(
    op: str, attributes: str, *, first: str = "%whole", types: str = "!pto.tensor_view<8x32xf32>", body: str = ""
) -> str:
    """A function with one collective over two ranks of 4 x 32."""
    return f"""\
func.func @f(%all: !pto.ptr<f32>, %part0: !pto.ptr<f32>, %part1: !pto.ptr<f32>) {{
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %whole = pto.make_tensor_view %all, shape = [%c8, %c32], strides = [%c32, %c1] : !pto.tensor_view<8x32xf32>
  %half = pto.make_tensor_view %all, shape = [%c4, %c32], strides = [%c32, %c1] : {PART}
  %g0 = pto.make_tensor_view %part0, shape = [%c4, %c32], strides = [%c32, %c1] : {PART}
  %g1 = pto.make_tensor_view %part1, shape = [%c4, %c32], strides = [%c32, %c1] : {PART}
  %acc = pto.alloc_tile : {TILE}
  %t = pto.alloc_tile : {TILE}
{body}  pto.comm.{op}({first}, recv(%t), group(%g0, %g1) : {types}, {TILE}, {PART}, {PART}) {attributes}
  return
}}
"""


def arrays() -> dict[str, Array]:
    rng = np.random.default_rng(3)
    shapes = {"all": (8, 32), "part0": (4, 32), "part1": (4, 32)}
    return {name: rng.random(shape, np.float32) for name, shape in shapes.items()}


PROGRAMS = {
    "tscatter": text("tscatter", "{root = 1 : i32}"),
    "tgather": text("tgather", "{root = 0 : i32}"),
    "tbroadcast": text("tbroadcast", "{root = 0 : i32}", first="%half", types=PART),
    "treduce": text(
        "treduce",
        "{reduceOp = #pto<reduce_op min>, root = 1 : i32}",
        first="%half, %acc",
        types=f"{PART}, {TILE}",
    ),
}


def wanted(op: str, given: dict[str, Array]) -> dict[str, Array]:
    whole, first, second = given["all"], given["part0"], given["part1"]
    return {
        "tscatter": {"all": whole, "part0": whole[:4], "part1": whole[4:]},
        "tgather": {"all": np.concatenate([first, second]), "part0": first, "part1": second},
        "tbroadcast": {"all": whole, "part0": whole[:4], "part1": whole[:4]},
        "treduce": {"all": np.concatenate([np.minimum(first, second), whole[4:]]), "part0": first, "part1": second},
    }[op]


@pytest.mark.parametrize("op", PROGRAMS)
@pytest.mark.parametrize("target", ["cpu", "a2a3", "a5"])
@pytest.mark.parametrize("schedule", ["late", "program", "random"])
def test_a_collective_of_a_text_is_run(op: str, target: str, schedule: str) -> None:
    given = arrays()
    right = wanted(op, {name: one.copy() for name, one in given.items()})
    run = parse(PROGRAMS[op]).run(given, target=target, schedule=schedule)
    assert run.findings == []
    for name, one in given.items():
        assert np.array_equal(one, right[name]), name


def test_the_root_of_a_text_is_the_root_of_the_call() -> None:
    run = parse(PROGRAMS["treduce"]).run(arrays())
    assert "root = 1 : i32" in run.to("dps")
    first = run.blocks[0].steps[0].touches[0].what
    assert first is run.tensors[2] or first.memory.ctypes.data == run.tensors[2].memory.ctypes.data


@pytest.mark.parametrize("op", PROGRAMS)
def test_a_collective_of_a_text_is_checked_to_its_end(op: str) -> None:
    assert check(parse(PROGRAMS[op])) == []


def test_the_example_runs() -> None:
    whole, first, second = arrays().values()
    run = parse(RANKS).run({"all": whole, "part0": first, "part1": second}, target="a5")
    assert run.findings == []
    assert np.array_equal(np.concatenate([first, second]), whole)


def test_a_rule_points_at_its_operand() -> None:
    broken = PROGRAMS["tscatter"].replace("vec, 4x32xf32", "vec, 3x32xf32")
    found = [one for one in parse(broken).verify("a5") if one.severity == "error"]
    assert ids(found) == ["PTO-R011"]
    assert found[0].where is not None
    line = broken.splitlines()[found[0].where.line - 1]
    assert line[found[0].where.column - 1 :].startswith("%t")
    assert ids(loud(check(parse(broken), "a5"))) == ["PTO-R011"]


def test_a_tile_that_is_given_twice_is_told() -> None:
    broken = (
        PROGRAMS["tscatter"].replace("recv(%t)", "recv(%t, %t)").replace(f"{TILE}, {PART}", f"{TILE}, {TILE}, {PART}")
    )
    assert ids(loud(check(parse(broken), "a5"))) == ["PTO-R014"]
    apart = broken.replace("recv(%t, %t)", "recv(%t, %acc)")
    assert loud(check(parse(apart), "a5")) == []


def test_a_flag_that_is_missing_before_a_collective_is_found_and_mended() -> None:
    begins = f"  pto.tload ins(%half_part : !pto.partition_tensor_view<4x32xf32>) outs(%acc : {TILE})\n"
    for word in ("set", "wait"):
        begins += f"  pto.{word}_flag[<PIPE_MTE2>, <PIPE_MTE3>, <EVENT_ID1>]\n"
    begins += f"  pto.tstore ins(%acc : {TILE}) outs(%half_part : !pto.partition_tensor_view<4x32xf32>)\n"
    part = f"  %half_part = pto.partition_view %half, offsets = [%c0, %c0], sizes = [%c4, %c32] : {PART}\n"
    broken = text("tscatter", "{root = 0 : i32}", body=f"  %c0 = arith.constant 0 : index\n{part}{begins}")
    (found,) = loud(check(parse(broken), "a5"))
    assert (found.id, found.facts["insert"]) == ("PTO-S002", ["MTE3", "MTE2", 0])
    assert loud(check(parse(fix(broken)), "a5")) == []


def test_a_large_collective_is_checked_by_a_few_of_its_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    large = PROGRAMS["tscatter"].replace("tensor_view<8x32xf32>", "tensor_view<65536x4096xf32>")
    large = large.replace("tensor_view<4x32xf32>", "tensor_view<32768x4096xf32>")
    large = large.replace("constant 8 :", "constant 65536 :").replace("constant 4 :", "constant 32768 :")
    large = large.replace("constant 32 :", "constant 4096 :")
    loads = []
    load = Moves.load

    def counted(*args: Any) -> Any:
        loads.append(args)
        return load(*args)

    monkeypatch.setattr(Moves, "load", counted)
    assert check(parse(large), "a5") == []
    assert 2 < len(loads) < 50


# What the documents write


def test_the_documents_form_is_run_on_the_tensors_of_a_group() -> None:
    module = parse("pto.tscatter %group, %src : (!pto.group<4x32xf32>, !pto.memref<8x32xf32>)")
    assert loud(check(module)) == []
    whole = arrays()["all"]
    listed = [np.zeros((4, 32), np.float32) for _ in range(2)]
    assert module.run({"group": listed, "src": whole}).findings == []
    assert np.array_equal(np.concatenate(listed), whole)
    stacked = np.zeros((2, 4, 32), np.float32)
    assert module.run({"group": stacked, "src": whole}).findings == []
    assert np.array_equal(stacked.reshape(8, 32), whole)


def test_a_gather_of_the_documents_leaves_further_rows_alone() -> None:
    module = parse("tgather %group, %dst : (!pto.group<4x32xf32>, !pto.memref<9x32xf32>)")
    parts = [np.full((4, 32), rank, np.float32) for rank in (1, 2)]
    whole = np.full((9, 32), 7, np.float32)
    run = module.run({"group": parts, "dst": whole})
    assert [one.id for one in run.findings] == ["PTO-R023"]
    assert np.array_equal(whole, np.concatenate([*parts, np.full((1, 32), 7, np.float32)]))


@pytest.mark.parametrize(
    ("group", "told"),
    [
        (3, "group is an int; a list of one array per rank is wanted (group: float32, 4 x 32 for each rank)"),
        ([np.zeros((3, 32), np.float32)], "group[0] is an array of shape (3, 32); wanted: group[0]: float32, 4 x 32"),
        ([np.zeros((4, 32))], "group[0] is an array of dtype float64; wanted: group[0]: float32, 4 x 32"),
    ],
)
def test_a_group_that_does_not_fit_is_told(group: Any, told: str) -> None:
    module = parse("pto.tscatter %group, %src : (!pto.group<4x32xf32>, !pto.memref<8x32xf32>)")
    with pytest.raises(pto.PtoError) as refused:
        module.run({"group": group, "src": arrays()["all"]})
    assert str(refused.value) == told


def test_too_few_tensors_are_a_note_and_too_many_an_error() -> None:
    module = parse("pto.tscatter %group, %src : (!pto.group<4x32xf32>, !pto.memref<8x32xf32>)")
    for count, told in ((1, ["PTO-R023"]), (3, ["PTO-R007"])):
        group = [np.zeros((4, 32), np.float32) for _ in range(count)]
        assert [one.id for one in module.run({"group": group, "src": arrays()["all"]}).findings] == told


def test_placeholders_of_a_collective_are_told_as_such() -> None:
    module = parse("pto.tscatter %group, %src : (!pto.group<...>, !pto.memref<...>)")
    with pytest.raises(RunError) as refused:
        module.run({})
    assert [one.id for one in refused.value.findings] == ["PTO-P007"]
    assert set(ids(loud(check(module)))) == {"PTO-P007"}


# What a kernel did


def test_a_kernel_with_a_collective_becomes_text() -> None:
    def spread(k: Any, src: Any, g0: Any, g1: Any) -> None:
        ping, pong = k.tile("float32", 2, 32), k.tile("float32", 2, 32)
        k.tscatter(src, [g0, g1[0:4, 0:32]], ping, pong, root=1)

    args = [np.zeros((8, 32), np.float32), np.zeros((4, 32), np.float32), np.zeros((6, 32), np.float32)]
    run = pto.launch(spread, *args, target="a5")
    written = run.to("dps")
    line = next(one.strip() for one in written.splitlines() if "comm" in one)
    assert line.startswith("pto.comm.tscatter(%src_part, recv(%ping, %pong), group(%g0_view, %g1_view) : ")
    assert line.endswith("!pto.tensor_view<4x32xf32>, !pto.tensor_view<4x32xf32>) {root = 1 : i32}")
    assert loud(check(parse(written))) == []
    assert "comm::TSCATTER(group, src_part, ping, pong);" in run.to("cpp")
