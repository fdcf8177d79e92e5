"""Texts on the simulated core: what they compute, what they take, and that each finding points into the text."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ptokit as pto
from kernels import CASES, Case
from kernels.broken import BROKEN, Faulty

pytest.importorskip("xdsl")

from ptokit.ir import ConvertError, parse
from ptokit.ir.arguments import entry_of, signature
from ptokit.ir.arithmetic import ARITHMETIC
from ptokit.ir.dialect.ops import OPERATIONS
from ptokit.ir.errors import RunError
from ptokit.ir.player import HANDLERS

Array = Any

UPDATE = """\
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
outs(%tp : !pto.partition_tensor_view<?x64xf32>) \
{scatterAtomicOp = #pto<scatter_atomic_op add>, scatterOob = #pto<scatter_oob skip>}
  pto.barrier <PIPE_ALL>
  pto.dcci
  pto.dsb
  func.return
}
"""


def update_arguments(seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "table": np.zeros((100, 64), np.float32),
        "grads": rng.integers(0, 9, (16, 64)).astype(np.float32),
        "rows": rng.integers(-2, 104, 16).astype(np.int32),
        "n": 100,
    }


def loud(findings: list[pto.Finding]) -> list[str]:
    return [str(one) for one in findings if one.severity is not pto.Severity.NOTE]


def scalar_program(lines: str, result: str, of: str, *, given: str = "") -> str:
    """A program that stores one scalar in the first element of `x`."""
    return (
        f"func.func @f(%x: !pto.ptr<{of}>{given}) {{\n%at = arith.constant 0 : index\n{lines}\n"
        f"pto.store_scalar {result}, %x[%at] : <{of}, gm>, {of}\npto.dcci\npto.dsb\nfunc.return\n}}"
    )


def value_of(lines: str, result: str = "%r", of: str = "i32", **arguments: Any) -> Any:
    dtype = {"i32": np.int32, "f32": np.float32, "i16": np.int16, "f16": np.float16, "i8": np.int8}[of]
    given = "".join(f", %{name}: index" for name in arguments)
    x = np.zeros(1, dtype)
    parse(scalar_program(lines, result, of, given=given)).run({"x": x, **arguments})
    return x[0]


# What it computes


@pytest.mark.parametrize("schedule", ["late", "program", "random"])
@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_a_function_does_on_the_core_what_it_says(target: str, schedule: str) -> None:
    given = update_arguments()
    run = parse(UPDATE).run(given, target=target, schedule=schedule)
    expected = np.zeros((100, 64), np.float32)
    inside = (given["rows"] >= 0) & (given["rows"] < 100)
    np.add.at(expected, given["rows"][inside], given["grads"][inside])
    assert loud(run.findings) == []
    np.testing.assert_array_equal(given["table"], expected)
    assert run.target == target
    assert run.cycles.total > 0


def test_every_op_of_the_dialect_is_played_or_refused_by_name() -> None:
    assert {op.name for op in OPERATIONS} <= set(HANDLERS)


def test_a_function_can_be_named_with_or_without_its_sign() -> None:
    text = "func.func @a() { func.return }\nfunc.func @b() { func.return }"
    for name in ("a", "@b"):
        assert parse(text).run({}, func=name).findings == []
    with pytest.raises(pto.PtoValueError, match=r"several functions that could be meant: a, b"):
        parse(text).run({})
    with pytest.raises(pto.PtoValueError, match=r"no function 'c'"):
        parse(text).run({}, func="c")


def test_a_function_that_another_calls_is_not_the_entry() -> None:
    text = """
    func.func private @twice(%a: i32) -> i32 {
      %r = arith.addi %a, %a : i32
      func.return %r : i32
    }
    func.func @f(%x: !pto.ptr<i32>) {
      %at = arith.constant 0 : index
      %a = pto.load_scalar %x[%at] : <i32, gm> -> i32
      %b = func.call @twice(%a) : (i32) -> i32
      pto.store_scalar %b, %x[%at] : <i32, gm>, i32
      pto.dcci
      pto.dsb
      func.return
    }
    """
    x = np.array([21], np.int32)
    parse(text).run({"x": x})
    assert x[0] == 42


def test_a_function_that_calls_itself_is_refused() -> None:
    text = "func.func @f() {\n  func.call @f() : () -> ()\n  func.return\n}"
    with pytest.raises(RunError, match=r"<text>:2:3: error PTO-P014: @f is called 64 deep"):
        parse(text).run({}, func="f")


def test_loops_carry_values() -> None:
    lines = """
    %one = arith.constant 1 : index
    %zero = arith.constant 0 : i32
    %r = scf.for %i = %at to %n step %one iter_args(%sum = %zero) -> (i32) {
      %word = arith.index_cast %i : index to i32
      %next = arith.addi %sum, %word : i32
      scf.yield %next : i32
    }"""
    assert value_of(lines, n=5) == 10
    assert value_of(lines, n=0) == 0


def test_a_while_loop_goes_on_as_long_as_its_condition_holds() -> None:
    lines = """
    %start = arith.constant 1 : i32
    %most = arith.constant 100 : i32
    %r = scf.while (%a = %start) : (i32) -> i32 {
      %goes_on = arith.cmpi slt, %a, %most : i32
      scf.condition(%goes_on) %a : i32
    } do {
    ^bb0(%b: i32):
      %twice = arith.addi %b, %b : i32
      scf.yield %twice : i32
    }"""
    assert value_of(lines) == 128


@pytest.mark.parametrize(("n", "expected"), [(3, 7), (9, 8)])
def test_a_branch_is_taken_by_its_condition(n: int, expected: int) -> None:
    lines = """
    %five = arith.constant 5 : index
    %less = arith.cmpi slt, %n, %five : index
    %r = scf.if %less -> (i32) {
      %seven = arith.constant 7 : i32
      scf.yield %seven : i32
    } else {
      %eight = arith.constant 8 : i32
      scf.yield %eight : i32
    }"""
    assert value_of(lines, n=n) == expected


def test_branches_between_blocks_are_followed() -> None:
    text = """
    func.func @f(%x: !pto.ptr<i32>, %n: index) {
      %at = arith.constant 0 : index
      %three = arith.constant 3 : index
      %low = arith.constant 1 : i32
      %high = arith.constant 2 : i32
      %less = arith.cmpi slt, %n, %three : index
      cf.cond_br %less, ^end(%low : i32), ^end(%high : i32)
    ^end(%word: i32):
      pto.store_scalar %word, %x[%at] : <i32, gm>, i32
      pto.dcci
      pto.dsb
      func.return
    }
    """
    for n, expected in ((0, 1), (5, 2)):
        x = np.zeros(1, np.int32)
        parse(text).run({"x": x, "n": n})
        assert x[0] == expected


INTEGER_CASES = [
    ("divsi", -7, 2, -3),
    ("remsi", -7, 2, -1),
    ("floordivsi", -7, 2, -4),
    ("ceildivsi", 7, 2, 4),
    ("divui", -1, 2, 0x7FFFFFFF),
    ("remui", -1, 10, 0xFFFFFFFF % 10),
    ("addi", 0x7FFFFFFF, 1, -(1 << 31)),
    ("muli", 1 << 20, 1 << 20, 0),
    ("shrsi", -8, 1, -4),
    ("shrui", -8, 28, 15),
    ("minui", -1, 3, 3),
    ("minsi", -1, 3, -1),
    ("xori", 12, 10, 6),
]


@pytest.mark.parametrize(("name", "a", "b", "expected"), INTEGER_CASES, ids=[one[0] for one in INTEGER_CASES])
def test_integers_are_twos_complement(name: str, a: int, b: int, expected: int) -> None:
    lines = f"%a = arith.constant {a} : i32\n%b = arith.constant {b} : i32\n%r = arith.{name} %a, %b : i32"
    assert value_of(lines) == expected


def test_casts_keep_or_drop_the_sign() -> None:
    byte = "%a = arith.constant -1 : i8\n"
    assert value_of(byte + "%r = arith.extsi %a : i8 to i32") == -1
    assert value_of(byte + "%r = arith.extui %a : i8 to i32") == 255
    assert value_of("%a = arith.constant 300 : i32\n%r = arith.trunci %a : i32 to i8", of="i8") == 44
    assert value_of("%a = arith.constant 3.75 : f32\n%r = arith.fptosi %a : f32 to i32") == 3
    assert value_of("%a = arith.constant true\n%r = arith.extsi %a : i1 to i32") == -1


def test_floats_are_rounded_to_their_type_after_every_op() -> None:
    lines = "%a = arith.constant 0.1 : f32\n%b = arith.constant 0.2 : f32\n%r = arith.addf %a, %b : f32"
    assert value_of(lines, of="f32") == np.float32(0.1) + np.float32(0.2)
    half = "%a = arith.constant 2048.0 : f16\n%b = arith.constant 1.0 : f16\n%r = arith.addf %a, %b : f16"
    assert value_of(half, of="f16") == 2048
    zero = "%a = arith.constant 1.0 : f32\n%b = arith.constant 0.0 : f32\n%r = arith.divf %a, %b : f32"
    assert value_of(zero, of="f32") == np.inf


@pytest.mark.parametrize(
    ("predicate", "expected"), [("oeq", 0), ("une", 1), ("olt", 0), ("ult", 1), ("uno", 1), ("ord", 0), ("true", 1)]
)
def test_comparisons_know_of_nan(predicate: str, expected: int) -> None:
    lines = f"""
    %nan = arith.constant 0x7FC00000 : f32
    %one = arith.constant 1.0 : f32
    %bit = arith.cmpf {predicate}, %nan, %one : f32
    %r = arith.extui %bit : i1 to i32"""
    assert value_of(lines) == expected


def test_a_division_by_zero_is_told_at_its_place() -> None:
    text = scalar_program("%z = arith.constant 0 : i32\n%r = arith.divsi %z, %z : i32", "%r", "i32")
    with pytest.raises(RunError, match=r"<text>:4:6: error PTO-P014: Arith.divsi divides 0 by zero"):
        parse(text).run({"x": np.zeros(1, np.int32)})


def test_all_of_arith_that_gives_one_value_is_there() -> None:
    from xdsl.dialects import arith

    names = {op.name.removeprefix("arith.") for op in arith.Arith.operations}
    assert {name for name in names if not name.endswith("_extended")} <= set(ARITHMETIC)


# Memory, order, blocks


def copy_text(body: str, *, tile: str = "1x64xf32") -> str:
    return f"""\
func.func @f(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %xv = pto.make_tensor_view %x, shape = [%c1, %c64], strides = [%c64, %c1] : !pto.tensor_view<1x64xf32>
  %yv = pto.make_tensor_view %y, shape = [%c1, %c64], strides = [%c64, %c1] : !pto.tensor_view<1x64xf32>
  %xp = pto.partition_view %xv, offsets = [%c0, %c0], sizes = [%c1, %c64] : !pto.tensor_view<1x64xf32>
  %yp = pto.partition_view %yv, offsets = [%c0, %c0], sizes = [%c1, %c64] : !pto.tensor_view<1x64xf32>
  %t = pto.alloc_tile : !pto.tile_buf<vec, {tile}>
  pto.tload ins(%xp : !pto.partition_tensor_view<1x64xf32>) outs(%t : !pto.tile_buf<vec, {tile}>)
  {body}
  pto.tstore ins(%t : !pto.tile_buf<vec, {tile}>) outs(%yp : !pto.partition_tensor_view<1x64xf32>)
  func.return
}}"""


def copied(body: str, target: str = "a5") -> tuple[pto.Run, Array]:
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    return parse(copy_text(body)).run({"x": x, "y": y}, target=target), y


ORDERED = {
    "flags": "pto.set_flag[<PIPE_MTE2>, <PIPE_MTE3>, <EVENT_ID0>]\n"
    "pto.wait_flag[<PIPE_MTE2>, <PIPE_MTE3>, <EVENT_ID0>]",
    "dynamic flags": "pto.set_flag_dyn[<PIPE_MTE2>, <PIPE_MTE3>, %c1]\n"
    "pto.wait_flag_dyn[<PIPE_MTE2>, <PIPE_MTE3>, %c1]",
    "events": "pto.record_event[#pto.pipe_event_type<TLOAD>, #pto.pipe_event_type<TSTORE_VEC>, <EVENT_ID2>]\n"
    "pto.wait_event[#pto.pipe_event_type<TLOAD>, #pto.pipe_event_type<TSTORE_VEC>, <EVENT_ID2>]",
    "barrier": "pto.barrier <PIPE_ALL>",
    "tsync": "pto.tsync ins(%t : !pto.tile_buf<vec, 1x64xf32>)",
}


@pytest.mark.parametrize("body", ORDERED.values(), ids=ORDERED)
def test_what_is_ordered_is_found_in_order(body: str) -> None:
    run, y = copied(body)
    assert loud(run.findings) == []
    np.testing.assert_array_equal(y, np.arange(64))


def test_a_missing_pair_is_a_finding_that_points_at_the_op_and_says_what_to_insert() -> None:
    run, y = copied("")
    (race,) = run.findings
    assert race.id == "PTO-S001"
    assert str(race.where) == "<text>:12:3"
    assert "reads t while tload at line 10" in race.message
    assert (
        race.fix
        == (
            "Insert pto.set_flag[<PIPE_MTE2>, <PIPE_MTE3>, <EVENT_ID1>] after line 10 and "
            "pto.wait_flag[<PIPE_MTE2>, <PIPE_MTE3>, <EVENT_ID1>] before line 12."
        )
        or "pto.set_flag[<PIPE_MTE2>, <PIPE_MTE3>, <EVENT_ID0>]" in race.fix
    )
    shown = race.facts["line_text"]
    assert shown[2 : 2 + race.facts["length"]] == "pto.tstore"
    assert not np.array_equal(y, np.arange(64))


def test_the_flush_that_is_missing_is_named_as_the_text_has_it() -> None:
    given = update_arguments()
    text = UPDATE.replace("  pto.dcci\n", "").replace("  pto.dsb\n", "")
    (finding,) = [one for one in parse(text).run(given, target="a5").findings if one.severity is pto.Severity.ERROR]
    assert finding.id == "PTO-H001"
    assert "pto.dcci; pto.dsb" in finding.fix
    assert not given["table"].any()


def test_blocks_know_their_number_and_pointers_move() -> None:
    text = """
    func.func @f(%x: !pto.ptr<i32>) {
      %me = pto.get_block_idx
      %all = pto.get_block_num
      %at = arith.index_cast %me : i64 to index
      %zero = arith.constant 0 : index
      %mine = pto.addptr %x, %at : <i32, gm> -> <i32, gm>
      %word = arith.trunci %all : i64 to i32
      pto.store_scalar %word, %mine[%zero] : <i32, gm>, i32
      pto.dcci
      pto.dsb
      func.return
    }
    """
    x = np.zeros(5, np.int32)
    run = parse(text).run({"x": x}, blocks=3)
    assert x.tolist() == [3, 3, 3, 0, 0]
    assert loud(run.findings) == []


def test_a_tile_in_a_loop_is_one_tile_and_one_with_an_address_lies_there() -> None:
    text = """
    func.func @f(%n: index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %place = arith.constant 4096 : i64
      %one = arith.constant 1.0 : f32
      scf.for %i = %c0 to %n step %c1 {
        %t = pto.alloc_tile : !pto.tile_buf<vec, 8x64xf32>
        pto.texpands ins(%one : f32) outs(%t : !pto.tile_buf<vec, 8x64xf32>)
        %u = pto.alloc_tile addr = %place : !pto.tile_buf<vec, 8x64xf32>
        pto.tmov ins(%t : !pto.tile_buf<vec, 8x64xf32>) outs(%u : !pto.tile_buf<vec, 8x64xf32>)
      }
      func.return
    }
    """
    run = parse(text).run({"n": 100}, target="a2a3")
    assert [(tile.name, tile.address, tile.is_manual) for tile in run.ub.tiles] == [("t", 0, False), ("u", 4096, True)]
    assert run.findings == []


def test_dynamic_extents_come_from_the_text() -> None:
    text = """
    func.func @f(%x: !pto.ptr<i32>, %n: index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %seven = arith.constant 7 : i32
      %t = pto.alloc_tile valid_col = %n : !pto.tile_buf<vec, 1x16xi32, valid=1x?>
      pto.texpands ins(%seven : i32) outs(%t : !pto.tile_buf<vec, 1x16xi32, valid=1x?>)
      %v = pto.make_tensor_view %x, shape = [%c1, %n], strides = [%n, %c1] : !pto.tensor_view<1x?xi32>
      %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c1, %n] : !pto.tensor_view<1x?xi32>
      pto.barrier <PIPE_ALL>
      pto.tstore ins(%t : !pto.tile_buf<vec, 1x16xi32, valid=1x?>) outs(%p : !pto.partition_tensor_view<1x?xi32>)
      %c3 = arith.constant 3 : index
      pto.barrier <PIPE_ALL>
      pto.set_validshape %t, %c1, %c3 : !pto.tile_buf<vec, 1x16xi32, valid=1x?>
      %eight = arith.constant 8 : i32
      pto.texpands ins(%eight : i32) outs(%t : !pto.tile_buf<vec, 1x16xi32, valid=1x?>)
      %q = pto.partition_view %v, offsets = [%c0, %c1], sizes = [%c1, %c3] : !pto.tensor_view<1x?xi32>
      pto.barrier <PIPE_ALL>
      pto.tstore ins(%t : !pto.tile_buf<vec, 1x16xi32, valid=1x?>) outs(%q : !pto.partition_tensor_view<1x3xi32>)
      func.return
    }
    """
    x = np.zeros(6, np.int32)
    run = parse(text).run({"x": x, "n": 5})
    assert run.findings == []
    assert x.tolist() == [7, 8, 8, 8, 7, 0]


def test_a_scalar_of_signless_bits_fits_an_unsigned_tile() -> None:
    text = """
    func.func @f(%x: !pto.ptr<ui32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %all = arith.constant -1 : i32
      %t = pto.alloc_tile : !pto.tile_buf<vec, 1x8xui32>
      pto.texpands ins(%all : i32) outs(%t : !pto.tile_buf<vec, 1x8xui32>)
      %v = pto.make_tensor_view %x, shape = [%c1, %c8], strides = [%c8, %c1] : !pto.tensor_view<1x8xui32>
      %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c1, %c8] : !pto.tensor_view<1x8xui32>
      pto.barrier <PIPE_ALL>
      pto.tstore ins(%t : !pto.tile_buf<vec, 1x8xui32>) outs(%p : !pto.partition_tensor_view<1x8xui32>)
      func.return
    }
    """
    x = np.zeros(8, np.uint32)
    assert parse(text).run({"x": x}).findings == []
    assert (x == 0xFFFFFFFF).all()


def test_a_column_major_tile_takes_a_column_major_view() -> None:
    text = """
    func.func @f(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %c8 = arith.constant 8 : index
      %t = pto.alloc_tile : !pto.tile_buf<vec, 8x3xf32, blayout=col_major>
      %xv = pto.make_tensor_view %x, shape = [%c8, %c3], strides = [%c1, %c8] : !pto.tensor_view<8x3xf32>
      %xp = pto.partition_view %xv, offsets = [%c0, %c0], sizes = [%c8, %c3] : !pto.tensor_view<8x3xf32>
      %yv = pto.make_tensor_view %y, shape = [%c8, %c3], strides = [%c1, %c8] : !pto.tensor_view<8x3xf32>
      %yp = pto.partition_view %yv, offsets = [%c0, %c0], sizes = [%c8, %c3] : !pto.tensor_view<8x3xf32>
      pto.tload ins(%xp : !pto.partition_tensor_view<8x3xf32>) outs(%t : !pto.tile_buf<vec, 8x3xf32, blayout=col_major>)
      pto.barrier <PIPE_ALL>
      pto.tstore ins(%t : !pto.tile_buf<vec, 8x3xf32, blayout=col_major>)
        outs(%yp : !pto.partition_tensor_view<8x3xf32>)
      func.return
    }
    """
    x, y = np.arange(24, dtype=np.float32), np.zeros(24, np.float32)
    assert parse(text).run({"x": x, "y": y}).findings == []
    np.testing.assert_array_equal(x, y)


def test_the_vector_section_is_played_and_the_cube_section_is_not() -> None:
    text = """\
%x = pto.arg : !pto.ptr<i32>
%at = arith.constant 0 : index
%one = arith.constant 1 : i32
pto.section.cube {
  pto.store_scalar %one, %x[%at] : <i32, gm>, i32
}
pto.section.vector {
  %two = arith.constant 2 : i32
  pto.store_scalar %two, %x[%at] : <i32, gm>, i32
}
pto.dcci
pto.dsb
"""
    x = np.zeros(1, np.int32)
    (note,) = parse(text).run({"x": x}).findings
    assert x[0] == 2
    assert (note.id, note.severity, str(note.where)) == ("PTO-P015", "note", "<text>:4:1")


# Texts without a function


def test_a_line_of_the_documents_is_run_on_what_it_names() -> None:
    mod = parse(
        "mscatter.row.skip %table, %src, %idx : (!pto.memref<10x8xf32>, !pto.tile<4x8xf32>, !pto.tile<1x8xi32>)"
    )
    with pytest.raises(pto.PtoError):
        mod.run({})
    mod = parse(
        "pto.mscatter ins(%src, %idx : !pto.tile_buf<vec, 4x8xf32>, !pto.tile_buf<vec, 1x8xi32, valid=1x4>) "
        "outs(%mem : !pto.partition_tensor_view<10x8xf32>)"
    )
    assert signature(entry_of(mod)) == "src: float32, 4 x 8; idx: int32, 1 x 4; mem: float32, 10 x 8"
    mem = np.zeros((10, 8), np.float32)
    src = np.arange(32, dtype=np.float32).reshape(4, 8)
    run = mod.run({"%mem": mem, "src": src, "idx": np.array([[3, 1, 9, 0]], np.int32)})
    assert [one.id for one in run.findings] == ["PTO-P015"]
    np.testing.assert_array_equal(mem[[3, 1, 9, 0]], src)


def test_a_tile_that_a_text_writes_is_read_back_where_it_is_named() -> None:
    mod = parse(
        "%dst = pto.mgather %mem, %idx : (!pto.partition_tensor_view<10x8xf32>, !pto.tile_buf<vec, 1x8xi32, "
        "valid=1x4>) -> !pto.tile_buf<vec, 4x8xf32>"
    )
    mem = np.arange(80, dtype=np.float32).reshape(10, 8)
    idx = np.array([[3, 1, 9, 0]], np.int32)
    assert loud(mod.run({"mem": mem, "idx": idx}).findings) == []
    dst = np.zeros((4, 8), np.float32)
    mod.run({"mem": mem, "idx": idx, "dst": dst})
    np.testing.assert_array_equal(dst, mem[idx[0]])


def test_tassign_places_a_tile_that_comes_from_outside() -> None:
    mod = parse(
        "pto.tassign %idx, @tile(0x1000)\npto.tassign %src, @tile(0x2000)\n"
        "pto.mscatter %src, %idx, %mem : (!pto.tile<4x8xf32>, !pto.tile<4x8xi32>, "
        "!pto.partition_tensor_view<10x8xf32>) -> ()"
    )
    mem, src = np.zeros((10, 8), np.float32), np.ones((4, 8), np.float32)
    run = mod.run({"mem": mem, "src": src, "idx": np.arange(32, dtype=np.int32).reshape(4, 8)})
    assert {tile.name: tile.address for tile in run.ub.tiles} == {"idx": 0x1000, "src": 0x2000}
    assert mem.reshape(-1)[:32].all()


def test_a_placeholder_cannot_be_run_and_says_where() -> None:
    mod = parse("mscatter %src, %mem, %idx : !pto.memref<...>, !pto.tile<...>, !pto.tile<...>")
    with pytest.raises(RunError) as refused:
        mod.run({})
    (finding,) = refused.value.findings
    assert finding.id == "PTO-P007"
    assert str(finding.where) == "<text>:1:10"


# Arguments


def test_arguments_that_do_not_fit_are_told_with_what_is_wanted() -> None:
    mod, good = parse(UPDATE), update_arguments()
    wanted = "@update takes table: float32, any shape; grads: float32, any shape; rows: int32, any shape; n: index"
    for given, kind, told in (
        ({"table": good["table"]}, ValueError, f"grads, rows, n are missing. {wanted}"),
        ({**good, "tabel": 1}, ValueError, f"there is no argument 'tabel'. Did you mean 'table'? {wanted}"),
        ({**good, "grads": [1.0]}, TypeError, "grads is a list; an ndarray is wanted (grads: float32, any shape)"),
        (
            {**good, "rows": np.zeros(16)},
            TypeError,
            "rows is an array of dtype float64; wanted: rows: int32, any shape",
        ),
        ({**good, "n": 1.5}, TypeError, "n is 1.5; a whole number is wanted (n: index)"),
        ({**good, "n": 1 << 64}, ValueError, f"n is {1 << 64}, which index does not hold"),
    ):
        with pytest.raises(kind) as refused:
            mod.run(given)
        assert isinstance(refused.value, pto.PtoError)
        assert str(refused.value) == told
    view = parse(
        "pto.mscatter ins(%s, %i : !pto.tile_buf<vec, 1x8xf32>, !pto.tile_buf<vec, 1x8xi32>) "
        "outs(%m : !pto.partition_tensor_view<?x8xf32>)"
    )
    with pytest.raises(pto.PtoValueError, match=r"m is an array of shape \(4, 4\); wanted: m: float32, \? x 8"):
        view.run(
            {"s": np.zeros((1, 8), np.float32), "i": np.zeros((1, 8), np.int32), "m": np.zeros((4, 4), np.float32)}
        )


def test_a_view_past_the_array_is_told_at_the_op() -> None:
    given = update_arguments() | {"n": 101}
    with pytest.raises(RunError, match=r"<text>:18:3: error PTO-P014: A buffer of 6400 elements is too small"):
        parse(UPDATE).run(given)


def test_a_misspelt_keyword_is_told() -> None:
    with pytest.raises(pto.PtoTypeError, match="has no keyword 'shedule'"):
        parse(UPDATE).run(update_arguments(), shedule="late")


def test_bfloat16_goes_through() -> None:
    text = UPDATE.replace("xf32", "xbf16").replace("ptr<f32>", "ptr<bf16>")
    given = update_arguments()
    given |= {name: given[name].astype(ml_dtypes.bfloat16) for name in ("table", "grads")}
    given["rows"] = np.arange(16, dtype=np.int32)
    run = parse(text).run(given)
    assert loud(run.findings) == []
    np.testing.assert_array_equal(given["table"][:16], given["grads"])


# From a launch to text


def copy_of(argument: Any) -> Array | None:
    if isinstance(argument, pto.GlobalTensor):
        return argument.buffer
    return argument if isinstance(argument, np.ndarray) else None


def on_targets(cases: list[Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("case", "target"), [pytest.param(c, target, id=f"{c.name}-{target}") for c in cases for target in c.targets]
    )


NOT_SAID = ("k.get has no op", "k.set has no op", "does not do what block 0 does", "There is no event")


def played_again(case: Any, target: str) -> tuple[pto.Run, pto.Run, list[tuple[Array, Array]]] | None:
    """A kernel, the text of what it did, and the arrays of both; None where no text says it."""
    args, again = case.make(), case.make()
    run = pto.launch(case.kernel, *args, target=target, **case.launch)
    try:
        text = run.to("dps")
    except ConvertError as cannot:
        (finding,) = cannot.findings
        assert finding.id == "PTO-P008"
        assert any(reason in finding.message for reason in NOT_SAID)
        return None
    named = {name: copy_of(argument) for name, argument in zip(run.names, again, strict=True)}
    arrays = {name: one for name, one in named.items() if one is not None}
    second = parse(text).run(arrays, target=target, **case.launch)
    both = [(copy_of(one), copy_of(two)) for one, two in zip(args, again, strict=True)]
    return run, second, [(one, two) for one, two in both if one is not None and two is not None]


@on_targets(CASES)
def test_what_a_kernel_did_does_the_same_again_as_text(case: Case, target: str) -> None:
    played = played_again(case, target)
    if played is None:
        return
    first, second, arrays = played
    assert sorted(one.id for one in first.findings) == sorted(one.id for one in second.findings)
    for one, two in arrays:
        assert one.tobytes() == two.tobytes()
    assert second.to("dps") == parse(second.to("dps")).to("dps")


@on_targets(BROKEN)
def test_what_is_wrong_with_a_kernel_is_wrong_with_its_text(case: Faulty, target: str) -> None:
    played = played_again(case, target)
    if played is not None:
        assert {one.id for one in played[0].findings} == {one.id for one in played[1].findings}


def test_most_kernels_can_be_said() -> None:
    said = [played_again(case, case.targets[0]) is not None for case in CASES]
    assert sum(said) > 0.7 * len(said)


def test_a_launch_becomes_readable_text() -> None:
    def update(k: Any, table: Any, grads: Any) -> None:
        g = k.tile("float32", 2, 8, at=0x100)
        i = k.tile("int32", 1, 8, (1, 2))
        loaded = k.tload(g, grads)
        k.tci(i, 3)
        k.tmuls(g, g, 0.5, wait=loaded)
        k.mscatter(table, g, i, atomic="add", oob="clamp")

    run = pto.launch(update, np.zeros((9, 8), np.float32), np.ones((2, 8), np.float32))
    assert (
        run.to("dps")
        == """\
module attributes {pto.target_arch = "a5"} {
  func.func @update(%table: !pto.ptr<f32, gm>, %grads: !pto.ptr<f32, gm>) attributes {pto.entry} {
    %c256_i64 = arith.constant 256 : i64
    %g = pto.alloc_tile addr = %c256_i64 : !pto.tile_buf<vec, 2x8xf32>
    %i = pto.alloc_tile : !pto.tile_buf<vec, 1x8xi32, valid=1x2>
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c1 = arith.constant 1 : index
    %grads_view = pto.make_tensor_view %grads, shape = [%c2, %c8], strides = [%c8, %c1] : !pto.tensor_view<2x8xf32>
    %c0 = arith.constant 0 : index
    %grads_part = pto.partition_view %grads_view, offsets = [%c0, %c0], sizes = [%c2, %c8] : !pto.tensor_view<2x8xf32>
    %c3_i32 = arith.constant 3 : i32
    %cst = arith.constant 5.000000e-01 : f32
    %c9 = arith.constant 9 : index
    %table_view = pto.make_tensor_view %table, shape = [%c9, %c8], strides = [%c8, %c1] : !pto.tensor_view<9x8xf32>
    %table_part = pto.partition_view %table_view, offsets = [%c0, %c0], sizes = [%c9, %c8] : !pto.tensor_view<9x8xf32>
    pto.tload ins(%grads_part : !pto.partition_tensor_view<2x8xf32>) outs(%g : !pto.tile_buf<vec, 2x8xf32>)
    pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID7>]
    pto.tci ins(%c3_i32 : i32) outs(%i : !pto.tile_buf<vec, 1x8xi32, valid=1x2>)
    pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID7>]
    pto.tmuls ins(%g, %cst : !pto.tile_buf<vec, 2x8xf32>, f32) outs(%g : !pto.tile_buf<vec, 2x8xf32>)
    pto.mscatter ins(%g, %i : !pto.tile_buf<vec, 2x8xf32>, !pto.tile_buf<vec, 1x8xi32, valid=1x2>) \
outs(%table_part : !pto.partition_tensor_view<9x8xf32>) {coalesce = #pto<coalesce row>, \
scatterAtomicOp = #pto<scatter_atomic_op add>, scatterOob = #pto<scatter_oob clamp>}
    return
  }
}
"""
    )


def test_what_no_text_says_stops_with_its_line() -> None:
    def by_hand(k: Any) -> None:
        t = k.tile("int32", 1, 8)
        k.set(t, 0, 0, 1)

    with pytest.raises(ConvertError, match=r"PTO-P008: k.set has no op") as refused:
        pto.launch(by_hand).to("dps")
    assert refused.value.findings[0].where is not None


def test_blocks_that_differ_are_no_straight_line() -> None:
    def own(k: Any, x: Any) -> None:
        k.store_scalar(x, k.block_idx, 1)

    with pytest.raises(ConvertError, match="block 1 does not do what block 0 does"):
        pto.launch(own, np.zeros(4, np.int32), blocks=2).to("dps")


def test_what_a_target_refuses_is_refused_again_as_text() -> None:
    def refused(k: Any, x: Any) -> None:
        k.tload(k.tile("float32", 1, 7), x)
        k.pipe_barrier("ALL")

    run = pto.launch(refused, np.zeros(7, np.float32))
    again = parse(run.to("dps")).run({"x": np.zeros(7, np.float32)})
    assert [one.id for one in run.findings] == [one.id for one in again.findings] == ["PTO-L015"]


@pytest.mark.parametrize(
    "body",
    ["scf.yield", "scf.yield %i, %i : index, index"],
)
def test_values_that_do_not_match_are_told(body: str) -> None:
    text = f"""
    func.func @f(%n: index) {{
      %c1 = arith.constant 1 : index
      %r = scf.for %i = %n to %n step %c1 iter_args(%a = %n) -> (index) {{
        scf.yield %a : index
      }}
      %s = scf.for %i = %c1 to %n step %c1 iter_args(%a = %n) -> (index) {{
        {body}
      }}
      func.return
    }}
    """
    with pytest.raises(pto.PtoError) as refused:
        parse(text).run({"n": 5})
    assert any("7:12" in str(one.where) or "8:" in str(one.where) for one in refused.value.findings)
