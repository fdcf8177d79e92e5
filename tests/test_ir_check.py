"""check: flags, memory and flushes of a text by a dry run; and what --fix makes of it."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from checked_texts import KERNEL, ids, loud, only, without
from ptokit.cli import group
from ptokit.findings import Finding
from ptokit.ir import parse
from ptokit.ir.arguments import entry_of
from ptokit.ir.check import check, targets_of
from ptokit.ir.madeup import MadeUp
from ptokit.ir.mend import fix

EXAMPLES = Path(__file__).parent.parent / "examples"
TEXTS = sorted(one for one in EXAMPLES.iterdir() if one.suffix in (".pto", ".mlir"))
WORDS = ("set_flag", "wait_flag", "barrier", "dcci", "dsb")


def found(text: str, targets: str = "a5") -> list[Finding]:
    return loud(check(parse(text), targets))


# Targets


@pytest.mark.parametrize(
    ("arch", "expected"), [("a2", ("a2a3",)), ("a3", ("a2a3",)), ("a5", ("a5",)), (None, ("a2a3", "a5"))]
)
def test_the_text_says_for_whom_it_is(arch: str | None, expected: tuple[str, ...]) -> None:
    text = f'module attributes {{pto.target_arch = "{arch}"}} {{}}' if arch else "pto.dsb"
    assert targets_of(parse(text)) == expected


def test_targets_can_be_asked_for() -> None:
    assert targets_of(parse(KERNEL), "cpu, ptoas") == ("cpu", "ptoas")


# Flags, memory, flushes


def test_the_kernel_is_clean() -> None:
    assert found(KERNEL, "a2a3,a5") == []


def test_a_missing_pair_is_an_error_on_a5_and_a_note_on_a2a3() -> None:
    text = without(KERNEL, "_flag")
    race = only(check(parse(text), "a5"))
    assert (race.id, race.where.line, race.facts["insert"]) == ("PTO-S001", 6, ["MTE2", "V", 0])  # type: ignore[union-attr]
    assert race.facts["line_text"].lstrip().startswith("pto.mscatter")
    assert [(one.id, one.severity) for one in check(parse(text), "a2a3")] == [("PTO-S011", "note")]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("barrier", "dcci", "dsb"), ["PTO-H001"]),
        (("barrier",), ["PTO-H002"]),
        (("dsb",), ["PTO-H003"]),
        (("dcci",), ["PTO-H003"]),
        (("wait_flag",), ["PTO-S001", "PTO-S005"]),
        (("set_flag",), ["PTO-S003"]),
    ],
)
def test_what_a_kernel_lacks(words: tuple[str, ...], expected: list[str]) -> None:
    assert ids(check(parse(without(KERNEL, *words)), "a5")) == expected


LOOP = """\
func.func @copy(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %xv = pto.make_tensor_view %x, shape = [%n, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x64xf32>
  %yv = pto.make_tensor_view %y, shape = [%n, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x64xf32>
  %t = pto.alloc_tile : !pto.tile_buf<vec, 1x64xf32>
  scf.for %i = %c0 to %n step %c1 {
    %xp = pto.partition_view %xv, offsets = [%i, %c0], sizes = [%c1, %c64] : !pto.tensor_view<?x64xf32>
    %yp = pto.partition_view %yv, offsets = [%i, %c0], sizes = [%c1, %c64] : !pto.tensor_view<?x64xf32>
    pto.tload ins(%xp : !pto.partition_tensor_view<1x64xf32>) outs(%t : !pto.tile_buf<vec, 1x64xf32>)
    pto.set_flag[<PIPE_MTE2>, <PIPE_MTE3>, <EVENT_ID0>]
    pto.wait_flag[<PIPE_MTE2>, <PIPE_MTE3>, <EVENT_ID0>]
    pto.tstore ins(%t : !pto.tile_buf<vec, 1x64xf32>) outs(%yp : !pto.partition_tensor_view<1x64xf32>)
    pto.set_flag[<PIPE_MTE3>, <PIPE_MTE2>, <EVENT_ID0>]
    pto.wait_flag[<PIPE_MTE3>, <PIPE_MTE2>, <EVENT_ID0>]
  }
  return
}
"""


def test_loops_are_gone_through() -> None:
    assert found(LOOP, "a2a3,a5") == []
    carried = only(check(parse(without(LOOP, "<PIPE_MTE3>, <PIPE_MTE2>")), "a5"))
    assert (carried.id, carried.where.line, carried.facts["lines"]) == ("PTO-S001", 11, [14, 11])  # type: ignore[union-attr]


def test_long_loops_are_cut_short() -> None:
    many = LOOP.replace("%c0 to %n", "%c0 to %many").replace(
        "  %c64 =", "  %many = arith.constant 100000 : index\n  %c64 ="
    )
    many = many.replace("shape = [%n,", "shape = [%many,")
    begun = time.perf_counter()
    assert found(many) == []
    assert time.perf_counter() - begun < 120  # a guard against hanging, not a measurement


def test_the_budget_of_the_unified_buffer() -> None:
    def text(rows: int) -> str:
        return f"""
func.func @f(%x: !pto.partition_tensor_view<{rows}x64xf32>) {{
  %t = pto.alloc_tile : !pto.tile_buf<vec, {rows}x64xf32>
  pto.tload ins(%x : !pto.partition_tensor_view<{rows}x64xf32>) outs(%t : !pto.tile_buf<vec, {rows}x64xf32>)
  return
}}
"""

    assert found(text(256)) == []
    asked = only(check(parse(text(640)), "a5"))
    assert (asked.id, asked.severity, "dyn_ub=" in asked.fix) == ("PTO-M007", "warning", True)
    assert "PTO-M006" in ids(check(parse(text(1024)), "a5"))
    assert "PTO-M006" in ids(check(parse(text(1024)), "a2a3"))


@pytest.mark.parametrize("rows", [4_000_000, 70_000_000])
def test_a_large_table_costs_neither_time_nor_memory(rows: int) -> None:
    text = KERNEL.replace("1024x64", f"{rows}x64")
    begun = time.process_time()
    assert [one for one in check(parse(without(text, "_flag")), "a5") if one.id == "PTO-S001"]
    assert {one[:5] for one in ids(check(parse(text), "a2a3,a5"))} <= {"PTO-I"}, (
        "2^32 elements are a hazard by themselves"
    )
    assert time.process_time() - begun < 2


def test_a_large_view_keeps_its_two_ends() -> None:
    many = LOOP.replace("%n", "%many").replace("%many: index", "%m: index")
    many = many.replace("  %c64 =", "  %many = arith.constant 3000000 : index\n  %c64 =")
    assert found(many) == []
    carried = only(check(parse(without(many, "<PIPE_MTE3>, <PIPE_MTE2>")), "a5"))
    assert (carried.id, carried.facts["insert"][:2]) == ("PTO-S001", ["MTE3", "MTE2"])


def test_indices_that_constants_give_are_judged() -> None:
    tile, index, view = (
        "!pto.tile_buf<vec, 16x64xf32>",
        "!pto.tile_buf<vec, 1x16xi32>",
        "!pto.partition_tensor_view<20x64xf32>",
    )

    def text(first: int) -> str:
        return f"""
func.func @f(%m: {view}, %x: !pto.partition_tensor_view<16x64xf32>) {{
  %first = arith.constant {first} : i32
  %s = pto.alloc_tile : {tile}
  %i = pto.alloc_tile : {index}
  pto.tload ins(%x : !pto.partition_tensor_view<16x64xf32>) outs(%s : {tile})
  pto.tci ins(%first : i32) outs(%i : {index})
  pto.barrier <PIPE_ALL>
  pto.mscatter ins(%s, %i : {tile}, {index}) outs(%m : {view}) {{coalesce = #pto<coalesce row>}}
  pto.barrier <PIPE_ALL>
  pto.dcci
  pto.dsb
  return
}}
"""

    assert found(text(4)) == []
    assert all(one.startswith("PTO-I") for one in ids(check(parse(text(5)), "a2a3")))
    assert ids(check(parse(text(5)), "a2a3"))


def test_indices_that_are_made_up_are_not_judged() -> None:
    assert not [one for one in check(parse(KERNEL), "a2a3,a5") if one.id.startswith(("PTO-I", "PTO-C", "PTO-N"))]


def test_a_text_that_cannot_be_played_is_still_judged() -> None:
    tile = "!pto.tile_buf<vec, 16x64xf32>"
    text = (
        f"func.func @f() {{\n  %t = pto.alloc_tile : {tile}\n  %i = pto.alloc_tile : {tile}\n"
        f'  pto.tscatter ins(%t, {{maskPattern = #pto.mask_pattern<P0101>}} : {tile}, "row") outs(%i : {tile})\n'
        "  return\n}\n"
    )
    assert [(one.id, one.severity) for one in check(parse(text), "a5")] == [("PTO-P014", "note")]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_the_examples_are_clean(path: Path) -> None:
    if path.name != "placeholders.pto":
        assert loud(check(parse(path))) == []


def test_small_texts_are_checked_fast() -> None:
    module = parse(KERNEL)
    taken = []
    for _ in range(20):
        begun = time.process_time()
        check(module)
        taken.append(time.process_time() - begun)
    assert len(list(module.walk())) / min(taken) > 500


@pytest.mark.parametrize(
    "body",
    [
        "%t = arith.constant true\n  scf.while () : () -> () {\n    scf.condition(%t)\n  } do {\n    scf.yield\n  }",
        "cf.br ^again\n^again:\n  cf.br ^again",
        "%t = arith.constant true\n  scf.while () : () -> () {\n    pto.dsb\n    scf.condition(%t)\n  } do {\n"
        "    scf.yield\n  }",
    ],
)
def test_a_loop_that_does_not_end_is_left(body: str) -> None:
    end = "" if "cf.br" in body else "\n  return"
    begun = time.process_time()
    assert loud(check(parse(f"func.func @f() {{\n  {body}{end}\n}}\n"))) == []
    assert time.process_time() - begun < 3


# fix


def played(text: str, target: str) -> dict[str, Any]:
    """The arrays after a run under the adversary's schedule, from made-up arguments."""
    module = parse(text, file="kernel.pto")
    arguments = MadeUp(module, entry_of(module), 16, 1, 1).arguments()
    module.run(arguments, target=target, schedule="late")
    return arguments


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_what_was_taken_out_is_mended_and_gives_the_right_result(path: Path) -> None:
    if path.name == "placeholders.pto":
        return
    whole = path.read_text("utf-8")
    mended = fix(without(whole, *WORDS))
    module = parse(mended, file=path.name)
    assert loud(check(module)) == []
    for target in targets_of(module):
        was, got = played(whole, target), played(mended, target)
        for name in was:
            assert np.array_equal(was[name], got[name]), (target, name)


@pytest.mark.parametrize("number", range(25))
def test_each_line_of_a_pipeline_that_is_taken_out_is_mended(number: int) -> None:
    lines = (EXAMPLES / "ping_pong.pto").read_text("utf-8").splitlines(keepends=True)
    at = [n for n, line in enumerate(lines) if any(word in line for word in WORDS)]
    if number < len(at):
        mended = fix("".join(line for n, line in enumerate(lines) if n != at[number]))
        assert loud(check(parse(mended))) == []


def test_comments_and_layout_stay() -> None:
    text = without(KERNEL, "_flag").replace("  pto.tload", "  // a load\n      pto.tload")
    mended = fix(text)
    assert without(mended, "_flag") == without(text, "_flag")
    assert "      pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]\n  pto.wait_flag" in mended


def test_a_free_event_id_is_taken() -> None:
    pair = "".join(f"  pto.{word}_flag[<PIPE_V>, <PIPE_S>, <EVENT_ID1>]\n" for word in ("set", "wait"))
    text = KERNEL.replace("  pto.barrier <PIPE_ALL>\n", pair)
    assert found(text) == []
    busy = without(text, "<PIPE_V>, <EVENT_ID0>").replace("<PIPE_V>, <PIPE_S>", "<PIPE_MTE2>, <PIPE_V>")
    assert "<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>" in fix(busy)


def test_what_is_clean_stays_as_it_is() -> None:
    assert fix(KERNEL) == KERNEL


def test_what_cannot_be_mended_stays_as_it_is() -> None:
    text = KERNEL.replace("1x16xi32", "1x16xi16")
    assert fix(text) == text


def test_several_ops_on_a_line() -> None:
    text = "pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID1>]  pto.dsb\n"
    assert loud(check(parse(fix(text)))) == []


# The command


def run(*args: object, text: str | bytes | None = None) -> Result:
    return CliRunner().invoke(group, ["check", *map(str, args)], input=text, catch_exceptions=False)


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.pto"
    path.write_text(KERNEL)
    return path


def test_exit_codes(kernel: Path) -> None:
    assert run(kernel).exit_code == 0
    kernel.write_text(without(KERNEL, "_flag"))
    assert run(kernel).exit_code == 1
    assert run(kernel, "--target", "a2a3").exit_code == 0
    assert run(kernel, "--target", "a2a3", "--severity", "note").exit_code == 1
    kernel.write_text("pto.mscater")
    assert run(kernel).exit_code == 2


def test_the_line_is_shown_and_the_token_underlined(kernel: Path) -> None:
    kernel.write_text(KERNEL.replace("coalesce =", "coalesc ="))
    told = run(kernel, "--target", "a5").output
    assert re.search(r"kernel\.pto:8:\d+: error PTO-P010 \[a5\]: .* Did you mean 'coalesce'\?\n", told)
    number, marks = told.splitlines()[1:3]
    at = marks.index("^")
    assert number[at:].startswith("coalesc = #pto<coalesce row>")
    assert "1 error in 1 file" in told


def test_stdin(kernel: Path) -> None:
    assert run("-", text=KERNEL).exit_code == 0
    assert "<stdin>:6:3" in run("-", "--target", "a5", text=without(KERNEL, "_flag")).output


def test_a_folder_is_all_its_texts(kernel: Path) -> None:
    (kernel.parent / "deep").mkdir()
    (kernel.parent / "deep" / "other.mlir").write_text(without(KERNEL, "dsb"))
    (kernel.parent / "notes.txt").write_text("not a text")
    told = run(kernel.parent, "--target", "a5")
    assert (told.exit_code, "other.mlir" in told.output, "in 2 files" in told.output) == (1, True, True)


def test_a_folder_without_texts_is_a_mistake(tmp_path: Path) -> None:
    done = CliRunner().invoke(group, ["check", str(tmp_path)])
    assert "holds no text" in str(done.exception)


def test_fix_prints_the_diff_and_writes_the_file(kernel: Path) -> None:
    kernel.write_text(without(KERNEL, "_flag"))
    told = run(kernel, "--fix")
    assert told.exit_code == 0
    assert "+  pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]" in told.output
    assert kernel.read_text() == KERNEL


def test_a_script_is_run_and_its_launches_are_told(tmp_path: Path) -> None:
    script = tmp_path / "kernel.py"
    script.write_text(
        "import numpy as np\nimport ptokit as pto\n\ndef kernel(k, x):\n    k.store_scalar(x, 0, 1)\n\n"
        "pto.launch(kernel, np.zeros(8, np.int32), target='a5')\n"
    )
    told = run(script)
    assert (told.exit_code, "kernel.py:5:" in told.output, "PTO-H001" in told.output) == (1, True, True)
    assert run(script, "--target", "a2a3").exit_code == 0
    script.write_text("import numpy as np\nraise ValueError('no')\n")
    assert run(script).exit_code == 2


def test_one_broken_file_does_not_hide_the_others(kernel: Path) -> None:
    other = kernel.parent / "broken.pto"
    other.write_bytes(b"\xff\xfe\x00binary")
    kernel.write_text(without(KERNEL, "_flag"))
    told = run(kernel, other, kernel.parent / "missing.pto")
    assert told.exit_code == 2
    assert {"PTO-S001", "PTO-P001"} <= set(re.findall(r"PTO-\w\d{3}", told.output))
    assert "2 could not be read" in told.output


def test_lenient_skips_what_nobody_knows(kernel: Path) -> None:
    kernel.write_text(KERNEL.replace("  return", "  pto.mystery %g, %i : i32, i32\n  return"))
    assert run(kernel).exit_code == 2
    told = run(kernel, "--lenient", "--severity", "note")
    assert (told.exit_code, "PTO-P002" in told.output) == (1, True)
    assert run(kernel, "--lenient").exit_code == 0


def test_without_xdsl_it_says_what_to_install(kernel: Path) -> None:
    code = (
        "import sys; sys.modules['xdsl'] = None; sys.argv = ['ptokit', 'check', sys.argv[1]]\n"
        "from ptokit.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code, str(kernel)], capture_output=True, text=True, check=False)
    assert (done.returncode, "pip install 'ptokit[ir]'" in done.stderr) == (2, True)
    assert "Traceback" not in done.stderr


def test_an_unknown_target_is_told_with_the_nearest(kernel: Path) -> None:
    done = CliRunner().invoke(group, ["check", str(kernel), "--target", "a2a"])
    assert "Did you mean 'a2a3'?" in str(done.exception)


@pytest.mark.parametrize("seed", range(40))
def test_broken_input_is_a_finding_and_never_a_traceback(seed: int, tmp_path: Path) -> None:
    from ptokit.ir import ParseError

    rng = np.random.default_rng(seed)
    raw = bytearray(TEXTS[seed % len(TEXTS)].read_bytes())
    for _ in range(int(rng.integers(1, 6))):
        at, kind = int(rng.integers(len(raw))), int(rng.integers(4))
        if kind == 0:
            raw[at] = int(rng.integers(32, 127))
        elif kind == 1:
            del raw[at : at + int(rng.integers(1, 9))]
        elif kind == 2:
            raw[at:at] = raw[max(at - 12, 0) : at]
        else:
            raw[at:at] = b"%01<>x?"[int(rng.integers(7)) :]
    begun = time.perf_counter()
    try:
        for target in ("cpu", "a2a3", "a5", "ptoas"):
            check(parse(raw.decode("utf-8", "replace"), file="broken.pto", lenient=bool(seed % 2)), target)
    except ParseError as refused:
        assert refused.findings[0].where is not None
    assert time.perf_counter() - begun < 120  # a guard against hanging, not a measurement


RECURSIVE = """func.func @k(%p: !pto.ptr<f32>) attributes {pto.entry} {
  func.call @k(%p) : (!pto.ptr<f32>) -> ()
  return
}
"""
NO_STEP = """func.func @k(%p: !pto.ptr<f32>) {
  %c0 = arith.constant 0 : index
  %c7 = arith.constant 7 : index
  scf.for %i = %c0 to %c7 step %c0 {
  }
  return
}
"""


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (RECURSIVE, 2, "a kernel does not call itself"),
        (NO_STEP, 4, "steps of 0"),
        (NO_STEP.replace("scf.for %i = %c0 to %c7 step %c0 {\n  }", "%z = arith.divsi %c7, %c0 : index"), 4, "by zero"),
    ],
)
def test_what_no_argument_could_make_right_is_an_error(text: str, line: int, words: str) -> None:
    (one,) = check(parse(text), "a5")
    assert (one.id, one.severity) == ("PTO-P014", "error")
    assert one.where is not None
    assert one.where.line == line
    assert words in one.message


def test_what_a_made_up_argument_may_be_the_reason_of_is_a_note() -> None:
    text = NO_STEP.replace("(%p: !pto.ptr<f32>)", "(%p: !pto.ptr<f32>, %n: index)").replace("step %c0", "step %s")
    text = text.replace("  scf.for", "  %s = arith.subi %n, %n : index\n  scf.for")
    assert {str(one.severity) for one in check(parse(text), "a5") if one.id == "PTO-P014"} <= {"note"}


# What the text itself decides

IN_PARTS = """\
func.func @f(%x: !pto.ptr<f32>, %n: !pto.ptr<i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rounds = arith.constant 5 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %some = pto.load_scalar %n[%c0] : !pto.ptr<i32> -> i32
  %loaded = arith.index_cast %some : i32 to index
  %v = pto.make_tensor_view %x, shape = [%c32, %c8], strides = [%c8, %c1] : !pto.tensor_view<32x8xf32>
  scf.for %k = %c0 to %rounds step %c1 {
    %at = arith.muli %k, %c8 : index
    %p = pto.partition_view %v, offsets = [%at, %c0], sizes = [%c8, %c8] : !pto.tensor_view<32x8xf32>
  }
  return
}
"""


def test_a_part_that_leaves_its_view_in_some_round_of_a_loop_is_an_error() -> None:
    for target in ("cpu", "a2a3", "a5"):
        part = only(check(parse(IN_PARTS), target))
        assert (part.id, part.severity, part.where.line) == ("PTO-P013", "error", 12)  # type: ignore[union-attr]
        assert part.message == "Dimension 0 of the part goes from 32 to 40; the view has 0 to 32."
        assert part.fix
    assert found(IN_PARTS.replace("constant 5", "constant 4"), "cpu,a2a3,a5") == []


@pytest.mark.parametrize("bound", ["to %loaded", "to %rounds step %loaded"])
def test_a_part_that_data_decides_about_is_no_error(bound: str) -> None:
    text = IN_PARTS.replace("to %rounds step %c1" if "step" in bound else "to %rounds", bound)
    assert loud(check(parse(text), "a2a3,a5")) == []


def test_a_division_by_what_memory_holds_is_no_error() -> None:
    text = IN_PARTS.replace("constant 5", "constant 4").replace(
        "  scf.for", "  %q = arith.divsi %c8, %loaded : index\n  scf.for"
    )
    assert loud(check(parse(text), "a2a3,a5")) == []


def test_a_part_is_followed_into_the_one_function_that_takes_it() -> None:
    view = "!pto.tensor_view<32x8xf32>"
    text = f"""\
func.func private @inner(%v: {view}, %at: index) {{
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %p = pto.partition_view %v, offsets = [%at, %c0], sizes = [%c8, %c8] : {view}
  return
}}
func.func @outer(%v: {view}) {{
  %c30 = arith.constant 30 : index
  func.call @inner(%v, %c30) : ({view}, index) -> ()
  return
}}
"""
    part = only(check(parse(text), "a5"))
    assert (part.id, part.where.line) == ("PTO-P013", 4)  # type: ignore[union-attr]
    assert found(text.replace("constant 30", "constant 24")) == []


def test_tiles_that_no_launch_could_make_room_for_are_told_once() -> None:
    kind = "!pto.tile_buf<vec, 512x96xi32>"
    text = f"func.func @f() {{\n  %a = pto.alloc_tile : {kind}\n  %b = pto.alloc_tile : {kind}\n  return\n}}\n"
    past = only(check(parse(text), "a5"))
    assert (past.id, past.where.line) == ("PTO-M006", 3)  # type: ignore[union-attr]


def test_rules_speak_of_a_text_in_its_own_words() -> None:
    text = KERNEL.replace("<coalesce row>", "<coalesce row>, scatterConflict = #pto<scatter_conflict default>")
    assert only(parse(text).verify("a2a3")).fix.startswith("Leave scatterConflict out")
