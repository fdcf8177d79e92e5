"""`ptokit run` and `ptokit judge`: arguments, files, several targets, verdicts, exit codes."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner, Result

import ptokit as pto
from ptokit.cli import group

pytest.importorskip("xdsl")

SCATTER = """\
func.func @update(%table: !pto.ptr<f32>, %grads: !pto.ptr<f32>, %rows: !pto.ptr<i32>, %n: index) \
attributes {pto.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %t = pto.make_tensor_view %table, shape = [%n, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
  %tp = pto.partition_view %t, offsets = [%c0, %c0], sizes = [%n, %c64] : !pto.tensor_view<?x?xf32>
  %g = pto.make_tensor_view %grads, shape = [%c16, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
  %gp = pto.partition_view %g, offsets = [%c0, %c0], sizes = [%c16, %c64] : !pto.tensor_view<?x?xf32>
  %i = pto.make_tensor_view %rows, shape = [%c1, %c16], strides = [%c16, %c1] : !pto.tensor_view<?x?xi32>
  %ip = pto.partition_view %i, offsets = [%c0, %c0], sizes = [%c1, %c16] : !pto.tensor_view<?x?xi32>
  %src = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>
  %idx = pto.alloc_tile : !pto.tile_buf<vec, 1x16xi32>
  pto.tload ins(%gp : !pto.partition_tensor_view<16x64xf32>) outs(%src : !pto.tile_buf<vec, 16x64xf32>)
  pto.tload ins(%ip : !pto.partition_tensor_view<1x16xi32>) outs(%idx : !pto.tile_buf<vec, 1x16xi32>)
  pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
  pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
  pto.mscatter ins(%src, %idx : !pto.tile_buf<vec, 16x64xf32>, !pto.tile_buf<vec, 1x16xi32>) \
outs(%tp : !pto.partition_tensor_view<?x64xf32>) {scatterOob = #pto<scatter_oob skip>POLICY}
  pto.barrier <PIPE_ALL>
  pto.dcci
  pto.dsb
  func.return
}
"""
DEFAULT = ", scatterConflict = #pto<scatter_conflict default>"
ARGS = ("table=zeros(100x64)", "grads=random(16x64, 1)", "rows=ints(0, 8, 1x16, 3)", "n=100")
SCRIPT = """
import numpy as np
import ptokit as pto

def add_one(k, x, y):
    a = k.tile("float32", 1, 64)
    k.tload(a, x)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.tadds(a, a, 1.0)
    k.set_flag("V", "MTE3", 0)
    k.wait_flag("V", "MTE3", 0)
    k.tstore(y, a)

x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
pto.launch(add_one, x, y, target="a2a3")
"""


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.pto"
    path.write_text(SCATTER.replace("POLICY", ""))
    return path


def invoke(*args: object) -> Result:
    return CliRunner().invoke(group, [str(arg) for arg in args], catch_exceptions=True)


def with_args(*given: str) -> list[str]:
    return [word for one in given or ARGS for word in ("--arg", one)]


def reference() -> tuple[Any, Any]:
    """The gradients and rows that ARGS describe."""
    grads = np.random.default_rng(1).random((16, 64), np.float32)
    return grads, np.random.default_rng(3).integers(0, 8, (1, 16))


# run


def test_json_is_written_of_what_cannot_be_read_too(tmp_path: Path) -> None:
    text = tmp_path / "broken.pto"
    text.write_text("pto.dsb\npto.barier <PIPE_ALL>\n")
    done = invoke("run", str(text), "--json")
    told = json.loads(done.stdout)
    assert (done.exit_code, done.stderr) == (2, "")
    assert (told["file"], told["exit_code"], told["runs"]) == (str(text), 2, [])
    assert [(one["id"], one["where"]["line"]) for one in told["findings"]] == [("PTO-P002", 2)]


def test_a_text_is_run_and_its_result_is_written(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "after.npy"
    done = invoke("run", text, *with_args(), "--out", f"table={out}", "--severity", "error")
    assert done.exit_code == 0, done.output
    assert "a5: " in done.output
    assert "table 384 of 6400 elements changed" in done.output
    grads, rows = reference()
    expected = np.zeros((100, 64), np.float32)
    for lane, row in enumerate(rows[0]):
        expected[row] = grads[lane]
    np.testing.assert_array_equal(np.load(out), expected)


def test_findings_are_shown_with_their_line_and_make_the_exit_code_1(text: Path) -> None:
    text.write_text("\n".join(line for line in text.read_text().split("\n") if "flag" not in line))
    done = invoke("run", text, *with_args("table=zeros(100x64)", "grads=random(16x64)", "rows=arange(16)", "n=100"))
    assert done.exit_code == 1
    assert "error PTO-S001 [a5]: mscatter on V reads idx" in done.output
    assert "16 |   pto.mscatter ins(%src, %idx" in done.output
    assert "^^^^^^^^^^^^" in done.output
    assert "Fix: Insert pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>] after line 15" in done.output


def test_all_targets_stand_side_by_side(text: Path, tmp_path: Path) -> None:
    given = with_args("table=zeros(100x64)", "grads=random(16x64)", "rows=arange(16)", "n=100")
    done = invoke("run", text, *given, "--target", "all", "--json", "--out", f"table={tmp_path / 'o.npy'}")
    told = json.loads(done.stdout)
    assert [one["target"] for one in told["runs"]] == ["cpu", "a2a3", "a5"]
    assert [one["executed"] for one in told["runs"]] == [True, True, True]
    assert told["runs"][1]["arguments"]["table"] == {"dtype": "float32", "shape": [100, 64], "changed": 1024}
    assert told["exit_code"] == done.exit_code == 1  # cpu says that the index tile is not of its contract
    assert {one["id"] for one in told["runs"][0]["findings"]} >= {"PTO-L010"}
    assert told["runs"][2]["findings"] == []
    assert [Path(one).name for one in told["wrote"]] == ["o.cpu.npy", "o.a2a3.npy", "o.a5.npy"]
    np.testing.assert_array_equal(np.load(tmp_path / "o.a5.npy"), np.load(tmp_path / "o.a2a3.npy"))


def test_the_text_says_its_target(text: Path) -> None:
    text.write_text('module attributes {pto.target_arch = "a3"} {\n' + text.read_text() + "}\n")
    done = invoke("run", text, *with_args("table=zeros(100x64)", "grads=ones(16x64)", "rows=arange(16)", "n=100"))
    assert done.exit_code == 0, done.output
    assert "a2a3: " in done.output


def test_a_comment_with_a_reason_silences_a_finding(text: Path) -> None:
    lines = [line for line in text.read_text().split("\n") if "flag" not in line]
    at = next(n for n, line in enumerate(lines) if "pto.mscatter" in line)
    lines[at] += "  // ptokit: ignore[PTO-S001] shown on purpose"
    text.write_text("\n".join(lines))
    given = with_args("table=zeros(100x64)", "grads=ones(16x64)", "rows=arange(16)", "n=100")
    done = invoke("run", text, *given, "--schedule", "program", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["silenced"] == [{"id": "PTO-S001", "by": "comment", "reason": "shown on purpose"}]


def test_a_timeline_is_written(text: Path, tmp_path: Path) -> None:
    trace = tmp_path / "t.json"
    given = with_args("table=zeros(100x64)", "grads=ones(16x64)", "rows=arange(16)", "n=100")
    assert invoke("run", text, *given, "--trace", trace).exit_code == 0
    assert any(one.get("name") == "mscatter" for one in json.loads(trace.read_text())["traceEvents"])


def test_a_script_is_launched_on_other_targets(tmp_path: Path) -> None:
    script = tmp_path / "kernel.py"
    script.write_text(SCRIPT)
    assert "launch 1, a2a3: " in invoke("run", script).output
    told = json.loads(invoke("run", script, "--target", "a2a3,a5", "--json").stdout)
    assert [one["target"] for one in told["runs"]] == ["a2a3", "a5"]
    assert told["runs"][1]["arguments"]["y"]["changed"] == 64


def test_a_text_that_cannot_be_read_ends_with_2(tmp_path: Path) -> None:
    broken = tmp_path / "broken.pto"
    broken.write_text("pto.barier <PIPE_ALL>")
    done = invoke("run", broken)
    assert done.exit_code == 2
    assert "Did you mean 'pto.barrier'?" in done.stderr


def test_a_text_that_cannot_go_on_is_a_finding(text: Path) -> None:
    done = invoke("run", text, *with_args("table=zeros(99x64)", "grads=ones(16x64)", "rows=arange(16)", "n=100"))
    assert done.exit_code == 1
    assert "error PTO-P014: A buffer of 6336 elements is too small" in done.output
    assert "a5: not executed to its end" in done.output


def test_a_loop_without_an_end_is_stopped(tmp_path: Path) -> None:
    endless = tmp_path / "endless.pto"
    endless.write_text("""
    func.func @f() {
      %yes = arith.constant true
      scf.while (%a = %yes) : (i1) -> i1 {
        scf.condition(%a) %a : i1
      } do {
      ^bb0(%b: i1):
        scf.yield %b : i1
      }
      func.return
    }
    """)
    done = invoke("run", endless, "--max-seconds", "0.2")
    assert done.exit_code == 1, done.output
    assert "PTO-H006" in done.output


# Arguments


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("table=zeros(100x64)",), "grads, rows, n are missing"),
        ((*ARGS, "x=1"), "--arg x: there is no such argument"),
        ((*ARGS, "n=2"), "--arg n: given twice"),
        (("table",), "--arg 'table': NAME=VALUE is wanted"),
        (("table=nothing.npy",), "nothing.npy cannot be read: No such file"),
        (("table=zeroes(3)",), "'zeroes' makes nothing. Did you mean 'zeros'?"),
        (("table=zeros()",), "the text does not say its shape"),
        (("table=zeros(many)",), "'many' is neither a number nor a shape like 16x64"),
        (("table=zeros(99999999x99999999)",), "too large"),
        (("rows=random(16)",), "for int32 write ints(LO, HI, SHAPE, SEED)"),
        (("rows=ints(5, 2, 16)",), "ints(LO, HI, SHAPE, SEED) is wanted"),
        (("rows=full(16, 1.5)",), "cannot be stored as int32"),
        (("n=many",), "'many' is no number (n: index)"),
        (("n=1.5", *ARGS[:3]), "n is 1.5; a whole number is wanted"),
    ],
    ids=str,
)
def test_an_argument_that_does_not_fit_is_told(text: Path, given: tuple[str, ...], told: str) -> None:
    done = invoke("run", text, *with_args(*given))
    assert isinstance(done.exception, pto.PtoError)
    assert told in str(done.exception)


def store_of(dtype: str) -> str:
    """A text with one argument of that type, which is stored where it comes from."""
    tile = f"!pto.tile_buf<vec, 4x32x{dtype}>"
    view = f"!pto.partition_tensor_view<4x32x{dtype}>"
    return f"""
    func.func @f(%x: !pto.partition_tensor_view<4x32x{dtype}>) {{
      %t = pto.alloc_tile : {tile}
      pto.tload ins(%x : {view}) outs(%t : {tile})
      pto.barrier <PIPE_ALL>
      pto.tstore ins(%t : {tile}) outs(%x : {view})
      func.return
    }}
    """


@pytest.mark.parametrize(
    ("spelt", "dtype", "stored"),
    [
        ("bf16", ml_dtypes.bfloat16, "|V2"),
        ("f8E4M3FN", ml_dtypes.float8_e4m3fn, "|u1"),
        ("f8E5M2", ml_dtypes.float8_e5m2, "|u1"),
    ],
)
def test_types_that_a_file_cannot_name_go_as_raw_bytes(tmp_path: Path, spelt: str, dtype: Any, stored: str) -> None:
    file, given, out = tmp_path / "k.pto", tmp_path / "x.npy", tmp_path / "y.npy"
    file.write_text(store_of(spelt))
    x = np.arange(128).reshape(4, 32).astype(dtype)
    for saved in (x, x.view(f"u{x.itemsize}")):
        np.save(given, saved)
        done = invoke("run", file, "--arg", f"x={given}", "--out", f"x={out}")
        assert done.exit_code == 0, done.output
        back = np.load(out)
        assert back.dtype == np.dtype(stored)
        np.testing.assert_array_equal(back.view(dtype), x)
    note = (tmp_path / "y.npy.txt").read_text()
    assert "raw bytes" in note
    assert f"ml_dtypes.{np.dtype(dtype).name}" in note


def test_a_file_of_another_type_is_refused(tmp_path: Path) -> None:
    file, given = tmp_path / "k.pto", tmp_path / "x.npy"
    file.write_text(store_of("f32"))
    np.save(given, np.zeros((4, 32)))
    done = invoke("run", file, "--arg", f"x={given}")
    assert "holds dtype float64; float32 is wanted" in str(done.exception)
    given.write_bytes(b"no array")
    assert "is no array that can be read" in str(invoke("run", file, "--arg", f"x={given}").exception)


def test_the_text_gives_the_shape_where_it_has_one(tmp_path: Path) -> None:
    file = tmp_path / "k.pto"
    file.write_text(store_of("f32"))
    for made in ("zeros()", "arange()", "random()", "full(4x32, 2.5)", "arange(128)", "ones((4, 32))", "zeros(4, 32)"):
        done = invoke("run", file, "--arg", f"x={made}")
        assert done.exit_code == 0, done.output
    assert "wanted: x: float32, 4 x 32" in str(invoke("run", file, "--arg", "x=zeros(32x4)").exception)


# judge


def saved(tmp_path: Path, table: Any) -> Path:
    path = tmp_path / "board.npy"
    np.save(path, table)
    return path


def scattered(order: Any) -> Any:
    grads, rows = reference()
    table = np.zeros((100, 64), np.float32)
    for lane in order:
        table[rows[0, lane]] = grads[lane]
    return table


def verdicts(*args: object) -> tuple[int, list[dict[str, Any]]]:
    done = invoke("judge", *args, "--json")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, json.loads(done.stdout)["verdicts"]


def test_the_order_of_the_program_explains_a_dump_everywhere(text: Path, tmp_path: Path) -> None:
    code, told = verdicts(text, *with_args(), "--result", f"table={saved(tmp_path, scattered(range(16)))}")
    assert code == 0
    by_target = {one["target"]: (one["verdict"], one["explained_by"]) for one in told}
    assert by_target["a2a3"] == by_target["a5"] == ("legal", "program")
    assert by_target["cpu"][0] == "illegal"  # one index for each element there


def test_another_order_is_legal_where_nothing_decides_it(text: Path, tmp_path: Path) -> None:
    dump = saved(tmp_path, scattered(reversed(range(16))))
    code, told = verdicts(text, *with_args(), "--result", dump, "--target", "a5")
    assert (code, told[0]["verdict"]) == (1, "illegal")
    assert "legal: " in told[0]["reasons"][0]
    text.write_text(SCATTER.replace("POLICY", DEFAULT))
    code, told = verdicts(text, *with_args(), "--result", dump, "--target", "a5,a2a3")
    assert code == 0
    assert (told[0]["verdict"], told[0]["explained_by"]) == ("legal", "another order")
    assert told[0]["reasons"][0].startswith("Element 0 on: what source row 1 wrote, one of 3 writers")
    assert told[1]["verdict"] == "refused"
    assert "PTO-L025" in told[1]["reasons"][0]


def test_values_of_before_are_explained_by_a_missing_flush(text: Path, tmp_path: Path) -> None:
    text.write_text(text.read_text().replace("  pto.dcci\n", ""))
    dump = scattered(range(16))
    dump[2] = 0
    code, told = verdicts(text, *with_args(), "--result", saved(tmp_path, dump), "--target", "a5")
    assert (code, told[0]["verdict"], told[0]["explained_by"]) == (0, "legal", "stores that were not flushed")
    dump[50] = 1
    code, told = verdicts(text, *with_args(), "--result", saved(tmp_path, dump), "--target", "a5")
    assert (code, told[0]["verdict"]) == (1, "illegal")


def test_a_program_without_a_scatter_is_held_against_the_orders_that_are_tried(tmp_path: Path) -> None:
    script = tmp_path / "kernel.py"
    script.write_text(SCRIPT)
    dump = saved(tmp_path, np.arange(64, dtype=np.float32) + 1)
    code, told = verdicts(script, "--result", dump, "--target", "a5")
    assert (code, told[0]["verdict"], told[0]["explained_by"], told[0]["tried"]) == (0, "legal", "program", 1)
    dump = saved(tmp_path, np.arange(64, dtype=np.float32))
    code, told = verdicts(script, "--result", f"y={dump}", "--target", "a5", "--seeds", "2")
    assert (code, told[0]["verdict"], told[0]["tried"]) == (1, "not reproduced", 4)
    assert "At (0,) the dump holds 0.0, and the order of the program gives 1.0" in told[0]["reasons"][0]


def test_a_race_is_explained_by_the_order_that_gives_it(tmp_path: Path) -> None:
    script = tmp_path / "kernel.py"
    lines = [line for line in SCRIPT.split("\n") if '"V", "MTE3"' not in line]
    script.write_text("\n".join(lines))
    dump = saved(tmp_path, np.arange(64, dtype=np.float32))
    code, told = verdicts(script, "--result", f"y={dump}", "--target", "a5", "--seeds", "30")
    assert code == 0
    assert told[0]["explained_by"] != "program"


def test_an_array_that_the_program_never_writes(text: Path, tmp_path: Path) -> None:
    grads, _ = reference()
    code, told = verdicts(text, *with_args(), "--result", f"grads={saved(tmp_path, grads + 1)}", "--target", "a5")
    assert (code, told[0]["verdict"], told[0]["reasons"]) == (1, "illegal", ["The program never writes grads."])


def test_a_dump_of_another_form_is_told(text: Path, tmp_path: Path) -> None:
    done = invoke("judge", text, *with_args(), "--result", f"table={saved(tmp_path, np.zeros(3, np.float32))}")
    assert "has 3 elements, shape (3,); table has 6400" in str(done.exception)
    done = invoke("judge", text, *with_args(), "--result", f"tabel={saved(tmp_path, np.zeros(3, np.float32))}")
    assert "Did you mean 'table'?" in str(done.exception)
    done = invoke("judge", text, *with_args(), "--result", "nowhere.npy")
    assert "cannot be read" in str(done.exception)


def test_verdicts_are_told_in_words(text: Path, tmp_path: Path) -> None:
    dump = saved(tmp_path, scattered(range(16)))
    done = invoke("judge", text, *with_args(), "--result", dump, "--target", "a5")
    assert "as table of" in done.output
    assert "a5   a legal result, explained by: program" in done.output


# Texts that cannot be read or begun


@pytest.mark.parametrize("text", ["", "\n// nothing\n", "module {}\n", "func.func private @f(%x: index)\n"])
def test_a_text_with_nothing_to_execute_says_so(text: str, tmp_path: Path) -> None:
    file = tmp_path / "empty.pto"
    file.write_text(text)
    for args in (["run", file], ["judge", file, "--result", "x=none.npy"]):
        done = invoke(*args)
        assert (done.exit_code, done.stdout) == (2, "")
        assert "empty.pto has nothing to execute: neither an op nor a function with a body." in done.stderr
    assert invoke("check", file).exit_code == 0


@pytest.mark.parametrize(
    ("text", "id_"), [("pto.tlod ins(%a", "PTO-P002"), ("", "PTO-P014"), (None, "PTO-P001"), ("\0", "PTO-P001")]
)
def test_what_cannot_be_begun_is_json_where_json_was_asked_for(text: str | None, id_: str, tmp_path: Path) -> None:
    file = tmp_path / "broken.pto"
    if text is not None:
        file.write_text(text)
    for args in (["run", file], ["judge", file, "--result", "x=none.npy"]):
        done = invoke(*args, "--json")
        told = json.loads(done.stdout)
        assert (done.exit_code, told["exit_code"], told["file"]) == (2, 2, str(file))
        assert [one["id"] for one in told["findings"]] == [id_]
        assert told["runs" if args[0] == "run" else "verdicts"] == []


# Arguments that make no sense, and those that do


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("rows=arange(nan)", "arange(STOP), arange(START, STOP) or arange(START, STOP, STEP) is wanted"),
        ("rows=arange(0, 16, nan)", "is wanted"),
        ("rows=zeros", "'zeros' is neither a file nor a call like zeros(..)"),
        ("rows=ints(0, 3, 1x16", "is neither a file nor a call like ints(..)"),
    ],
)
def test_an_argument_that_makes_no_sense_is_refused(written: str, words: str, text: Path) -> None:
    done = invoke("run", text, *with_args("table=zeros(100x64)", "grads=random(16x64)", "n=100", written))
    assert (done.exit_code, type(done.exception)) == (1, pto.PtoValueError)
    assert words in str(done.exception)


def test_what_stands_in_a_call_may_be_named(text: Path, tmp_path: Path) -> None:
    rows = (
        "rows=ints(0, 8, 1x16, 3)",
        "rows=ints(lo=0, hi=8, shape=1x16, seed=3)",
        "rows=ints(0, 8, shape=(1, 16), seed=3)",
    )
    tables = []
    for one in rows:
        given = with_args("table=zeros(100x64)", "grads=random(shape=16x64, seed=1)", "n=100", one)
        assert invoke("run", text, *given, "--out", f"table={tmp_path / 'o.npy'}").exit_code == 0
        tables.append(np.load(tmp_path / "o.npy"))
    assert np.count_nonzero(tables[0])
    np.testing.assert_array_equal(tables[0], tables[1])
    np.testing.assert_array_equal(tables[0], tables[2])


@pytest.mark.parametrize("targets", ["", "ptoas", "a5,bogus", "all,bogus"])
@pytest.mark.parametrize("name", ["run", "judge"])
def test_targets_that_nothing_runs_on_are_refused(name: str, targets: str, text: Path) -> None:
    dump = ("--result", f"table={text}") if name == "judge" else ()
    done = invoke(name, text, *with_args(), *dump, "--target", targets)
    assert isinstance(done.exception, pto.PtoValueError)
    if name == "run":
        assert "is unknown." in str(done.exception)
        assert str(done.exception).endswith("Known: cpu, a2a3, a5, all")


def test_all_may_stand_among_targets(text: Path) -> None:
    told = json.loads(invoke("run", text, *with_args(), "--target", "a5,ALL", "--json").stdout)
    assert [one["target"] for one in told["runs"]] == ["cpu", "a2a3", "a5"]


def test_a_limit_may_be_as_large_as_one_likes(text: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert invoke("run", text, *with_args(), "--max-seconds", "inf").exit_code == 0


def test_a_severity_is_named_in_any_case(text: Path) -> None:
    assert invoke("run", text, *with_args(), "--severity", "ERROR").exit_code == 0
