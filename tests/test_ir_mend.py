"""What `ptokit check --fix` makes of texts whose flags are computed, lie in another function, or wait in a circle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from checked_texts import KERNEL, loud, spelt, without
from ptokit.ir import parse
from ptokit.ir.check import check
from ptokit.ir.mend import fix

ROTATING = """\
func.func @rotating(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c6 = arith.constant 6 : index
  %c8 = arith.constant 8 : index
  %c48 = arith.constant 48 : index
  %one = arith.constant 1.0 : f32
  %xv = pto.make_tensor_view %x, shape = [%c48, %c8], strides = [%c8, %c1] : !pto.tensor_view<48x8xf32>
  %yv = pto.make_tensor_view %y, shape = [%c48, %c8], strides = [%c8, %c1] : !pto.tensor_view<48x8xf32>
  %even = pto.alloc_tile : !pto.tile_buf<vec, 8x8xf32>
  %odd = pto.alloc_tile : !pto.tile_buf<vec, 8x8xf32>
  pto.set_flag[<PIPE_MTE3>, <PIPE_MTE2>, <EVENT_ID0>]
  pto.set_flag[<PIPE_MTE3>, <PIPE_MTE2>, <EVENT_ID1>]
  scf.for %k = %c0 to %c6 step %c1 {
    %at = arith.muli %k, %c8 : index
    %b = arith.remsi %k, %c2 : index
    %xp = pto.partition_view %xv, offsets = [%at, %c0], sizes = [%c8, %c8] : !pto.tensor_view<48x8xf32>
    %yp = pto.partition_view %yv, offsets = [%at, %c0], sizes = [%c8, %c8] : !pto.tensor_view<48x8xf32>
    %is_even = arith.cmpi eq, %b, %c0 : index
    %t = scf.if %is_even -> (!pto.tile_buf<vec, 8x8xf32>) {
      scf.yield %even : !pto.tile_buf<vec, 8x8xf32>
    } else {
      scf.yield %odd : !pto.tile_buf<vec, 8x8xf32>
    }
    pto.wait_flag_dyn[<PIPE_MTE3>, <PIPE_MTE2>, %b]
    pto.tload ins(%xp : !pto.partition_tensor_view<8x8xf32>) outs(%t : !pto.tile_buf<vec, 8x8xf32>)
    pto.set_flag_dyn[<PIPE_MTE2>, <PIPE_V>, %b]
    pto.wait_flag_dyn[<PIPE_MTE2>, <PIPE_V>, %b]
    pto.tadds ins(%t, %one : !pto.tile_buf<vec, 8x8xf32>, f32) outs(%t : !pto.tile_buf<vec, 8x8xf32>)
    pto.set_flag_dyn[<PIPE_V>, <PIPE_MTE3>, %b]
    pto.wait_flag_dyn[<PIPE_V>, <PIPE_MTE3>, %b]
    pto.tstore ins(%t : !pto.tile_buf<vec, 8x8xf32>) outs(%yp : !pto.partition_tensor_view<8x8xf32>)
    pto.set_flag_dyn[<PIPE_MTE3>, <PIPE_MTE2>, %b]
  }
  pto.wait_flag[<PIPE_MTE3>, <PIPE_MTE2>, <EVENT_ID0>]
  pto.wait_flag[<PIPE_MTE3>, <PIPE_MTE2>, <EVENT_ID1>]
  return
}
"""
"""Two tiles in turn, and event ids that are computed. Clean on a2a3 and a5."""
ORDER = [at for at, line in enumerate(ROTATING.splitlines()) if "_flag" in line]

INNER = spelt("""\
func.func private @inner(%g: TILE, %i: INDEX, %mem: TABLE) {
  pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
  pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
  pto.mscatter ins(%g, %i : TILE, INDEX) outs(%mem : TABLE) {coalesce = #pto<coalesce row>}
  return
}
func.func @outer(%mem: TABLE, %grads: GRADS, %rows: ROWS) attributes {pto.entry} {
  %g = pto.alloc_tile : TILE
  %i = pto.alloc_tile : INDEX
  pto.tload ins(%grads : GRADS) outs(%g : TILE)
  pto.tload ins(%rows : ROWS) outs(%i : INDEX)
  func.call @inner(%g, %i, %mem) : (TILE, INDEX, TABLE) -> ()
  pto.barrier <PIPE_ALL>
  pto.dcci
  pto.dsb
  return
}
""")
"""The loads stand in one function, what needs them in another. Clean on a2a3 and a5."""

BRANCHES = spelt("""\
func.func @branches(%mem: TABLE, %grads: GRADS, %rows: ROWS, %n: index) {
  %c4 = arith.constant 4 : index
  %two = arith.constant 2.0 : f32
  %many = arith.cmpi sgt, %n, %c4 : index
  %g = pto.alloc_tile : TILE
  %i = pto.alloc_tile : INDEX
  pto.tload ins(%grads : GRADS) outs(%g : TILE)
  pto.tload ins(%rows : ROWS) outs(%i : INDEX)
  scf.if %many {
    pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
    pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
    pto.tmuls ins(%g, %two : TILE, f32) outs(%g : TILE)
  } else {
    pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID1>]
    pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID1>]
  }
  pto.mscatter ins(%g, %i : TILE, INDEX) outs(%mem : TABLE) {coalesce = #pto<coalesce row>}
  pto.barrier <PIPE_ALL>
  pto.dcci
  pto.dsb
  return
}
""")


def errors(text: str, target: str) -> list[tuple[str, int]]:
    return [(one.id, one.where.line if one.where else 0) for one in loud(check(parse(text), target))]


def after(text: str, arrays: dict[str, Any], target: str, schedule: str) -> dict[str, Any]:
    """The arguments after a run, on copies."""
    given = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in arrays.items()}
    parse(text).run(given, target=target, schedule=schedule)
    return given


def is_as_before(whole: str, mended: str, arrays: dict[str, Any]) -> None:
    """The mended text is clean, and under the adversary gives what the whole text gives in its own order."""
    for target in ("a2a3", "a5"):
        assert errors(mended, target) == []
        wanted, got = after(whole, arrays, target, "program"), after(mended, arrays, target, "late")
        for name, value in wanted.items():
            np.testing.assert_array_equal(got[name], value)


def rows_and_gradients() -> dict[str, Any]:
    return {
        "mem": np.zeros((1024, 64), np.float32),
        "grads": np.arange(1024, dtype=np.float32).reshape(16, 64),
        "rows": np.arange(0, 160, 10, dtype=np.int32).reshape(1, 16),
    }


def without_lines(text: str, *numbers: int) -> str:
    return "".join(line for at, line in enumerate(text.splitlines(keepends=True)) if at not in numbers)


@pytest.mark.parametrize("at", ORDER)
def test_a_flag_with_a_computed_id_that_is_taken_out_is_mended(at: int) -> None:
    arrays = {"x": np.arange(384, dtype=np.float32), "y": np.zeros(384, np.float32)}
    broken = without_lines(ROTATING, at)
    assert errors(broken, "a5")
    is_as_before(ROTATING, fix(broken), arrays)


def test_ids_that_no_pair_of_pipes_has_are_replaced() -> None:
    arrays = {"x": np.arange(384, dtype=np.float32), "y": np.zeros(384, np.float32)}
    broken = ROTATING.replace("%b = arith.remsi %k, %c2", "%b = arith.addi %k, %c8")
    assert "PTO-S006" in {id_ for id_, _ in errors(broken, "a5")}
    mended = fix(
        broken.replace(
            "%is_even = arith.cmpi eq, %b", "%r = arith.remsi %k, %c2 : index\n    %is_even = arith.cmpi eq, %r"
        )
    )
    assert "_dyn" not in mended
    is_as_before(ROTATING, mended, arrays)


@pytest.mark.parametrize("ids", ["9 and 9", "3 and 4"])
def test_ids_that_are_constants_are_mended_like_written_ones(ids: str) -> None:
    first, second = ids.split(" and ")
    pair = (
        f"  %first = arith.constant {first} : index\n  %second = arith.constant {second} : index\n"
        "  pto.set_flag_dyn[<PIPE_MTE2>, <PIPE_V>, %first]\n  pto.wait_flag_dyn[<PIPE_MTE2>, <PIPE_V>, %second]\n"
    )
    broken = without(KERNEL, "_flag").replace("  pto.mscatter", f"{pair}  pto.mscatter")
    assert errors(broken, "a5")
    is_as_before(KERNEL, fix(broken), rows_and_gradients())


def test_a_circle_of_waits_goes_and_what_it_ordered_is_found_anew() -> None:
    circle = (
        "  pto.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID3>]\n  pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]\n"
        "  pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]\n  pto.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID3>]\n"
    )
    broken = without(KERNEL, "_flag").replace("  pto.mscatter", f"{circle}  pto.mscatter")
    assert errors(broken, "a5") == [("PTO-S012", 8)]
    is_as_before(KERNEL, fix(broken), rows_and_gradients())


@pytest.mark.parametrize("words", [("_flag",), ("_flag", "barrier", "dcci", "dsb"), ("set_flag",)])
def test_nothing_is_written_between_functions(words: tuple[str, ...]) -> None:
    mended = fix(without(INNER, *words))
    assert "}\nfunc.func @outer" in mended
    assert mended.rstrip().endswith("}")
    is_as_before(INNER, mended, rows_and_gradients())


@pytest.mark.parametrize("n", [64, 2])
def test_a_deadlock_in_one_branch_is_found_and_mended(n: int) -> None:
    id_ = "<EVENT_ID0>" if n > 4 else "<EVENT_ID1>"
    broken = BRANCHES.replace(f"    pto.set_flag[<PIPE_MTE2>, <PIPE_V>, {id_}]\n", "")
    assert ("PTO-S003", 10 if n > 4 else 14) in errors(broken, "a5")
    is_as_before(BRANCHES, fix(broken), rows_and_gradients() | {"n": n})


@pytest.mark.parametrize("form", ["dps", "generic"])
def test_a_text_keeps_its_form(form: str) -> None:
    arrays = {"x": np.arange(384, dtype=np.float32), "y": np.zeros(384, np.float32)}
    whole = parse(ROTATING).to(form)
    numbers = [at for at, line in enumerate(whole.splitlines()) if "_flag" in line]
    for broken in (without(whole, "<PIPE_V>, <PIPE_MTE3>", "<PIPE_V>, dst"), without_lines(whole, numbers[3])):
        assert errors(broken, "a5")
        mended = fix(broken)
        assert parse(mended).form == parse(whole).form == form
        is_as_before(whole, mended, arrays)


def test_lines_of_pto_as_stay_such() -> None:
    gather = (
        ".arg %table : !pto.memref<1x256xf32>;\n.arg %place : !pto.tile<4x16xi32>;\n"
        ".arg %out : !pto.memref<4x16xf32>;\n"
        "%picked = mgather.elem.zero %table, %place : (!pto.memref<1x256xf32>, !pto.tile<4x16xi32>) -> "
        "!pto.tile<4x16xf32>\ntstore %picked, %out : !pto.tile<4x16xf32>, !pto.memref<4x16xf32>\n"
    )
    mended = fix(gather)
    assert "\nset_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID1>]\nwait_flag[" in mended
    assert parse(mended).form == "as"
    assert errors(mended, "a5") == []


def test_a_flag_from_a_pipe_to_itself_goes() -> None:
    broken = KERNEL.replace("pto.set_flag[<PIPE_MTE2>, <PIPE_V>", "pto.set_flag[<PIPE_V>, <PIPE_V>")
    assert ("PTO-P012", 6) in errors(broken, "a5")
    is_as_before(KERNEL, fix(broken), rows_and_gradients())
