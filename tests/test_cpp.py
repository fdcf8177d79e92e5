"""C++ out of texts: what it says, that it compiles, and what it refuses to say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("xdsl")

from cpp_compiler import COMPILER, complaints
from ptokit.errors import PtoValueError
from ptokit.ir import ConvertError, parse
from ptokit.ir.cpp import to_cpp

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.pto"))
TILE = "!pto.tile_buf<vec, 16x64xf32>"
INDEX = "!pto.tile_buf<vec, 1x16xi32>"
TABLE = "!pto.partition_tensor_view<99x64xf32>"
SCATTER = f"pto.mscatter ins(%s, %i : {TILE}, {INDEX}) outs(%m : {TABLE})"
SCALARS = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
"""


def func(body: str, arguments: str = "%p: !pto.ptr<i32>, %n: index", name: str = "f") -> str:
    return f"func.func @{name}({arguments}) {{\n{SCALARS}\n{body}\n  return\n}}"


def cpp(text: str, target: str = "a5") -> str:
    """The C++ of a text, which compiles."""
    made = to_cpp(parse(text), target)
    if COMPILER is not None:
        assert complaints(made, target) == ""
    return made


def refusals(text: str, target: str = "a5") -> list[str]:
    with pytest.raises(ConvertError) as refused:
        to_cpp(parse(text), target)
    assert {one.id for one in refused.value.findings} == {"PTO-P008"}
    assert all(one.where is not None and one.where.line >= 1 for one in refused.value.findings)
    return [one.message for one in refused.value.findings]


# Indexed access

POLICIES = (
    "{coalesce = #pto<coalesce row>, scatterAtomicOp = #pto<scatter_atomic_op add>, "
    "scatterOob = #pto<scatter_oob skip>}"
)


def test_a5_gets_all_four_policies() -> None:
    wanted = "MSCATTER<Coalesce::Row, ScatterAtomicOp::Add, ScatterOOB::Skip, ScatterConflict::Last>(m, s, i);"
    assert wanted in cpp(f"{SCATTER} {POLICIES}")


def test_a2a3_has_no_conflict() -> None:
    assert "MSCATTER<Coalesce::Row, ScatterAtomicOp::Add, ScatterOOB::Skip>(m, s, i);" in cpp(
        f"{SCATTER} {POLICIES}", "a2a3"
    )


def test_conflicts_are_mapped_by_name() -> None:
    text = f"{SCATTER} {{coalesce = #pto<coalesce row>, scatterConflict = #pto<scatter_conflict default>}}"
    assert "ScatterConflict::Default>" in cpp(text)
    assert "no ScatterConflict" in refusals(text, "a2a3")[0]


def test_cpu_takes_no_policies() -> None:
    elem = "!pto.tile_buf<vec, 16x64xi32>"
    text = f"pto.mscatter ins(%s, %i : {TILE}, {elem}) outs(%m : {TABLE})"
    assert "    MSCATTER(m, s, i);" in cpp(text, "cpu")
    assert "asks for coalesce row" in refusals(SCATTER, "cpu")[0]


def test_max_is_refused_where_the_header_refuses_it() -> None:
    text = f"{SCATTER} {{scatterAtomicOp = #pto<scatter_atomic_op max>}}"
    assert "ScatterAtomicOp::Max" in cpp(text)
    assert "refuses ScatterAtomicOp::Max" in refusals(text, "a2a3")[0]


@pytest.mark.parametrize("oob", ["undefined", "clamp", "wrap", "zero"])
@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_gathers(oob: str, target: str) -> None:
    text = (
        f"pto.mgather ins(%m, %i : {TABLE}, {INDEX}) outs(%d : {TILE}) "
        f"{{coalesce = #pto<coalesce row>, gatherOob = #pto<gather_oob {oob}>}}"
    )
    assert f"MGATHER<Coalesce::Row, GatherOOB::{oob.title()}>(d, m, i);" in cpp(text, target)


# The flush, and the launch


def test_a5_flushes_what_a_text_does_not_flush_itself() -> None:
    made = cpp(SCATTER)
    assert made.index("MSCATTER<") < made.index("    pipe_barrier(PIPE_ALL);\n    FlushScatterOutput();")
    assert "dcci(static_cast<__gm__ void *>(0), ENTIRE_DATA_CACHE);\n    dsb(DSB_DDR);" in made
    assert "dcci" not in cpp(SCATTER, "a2a3")
    by_hand = cpp(f"{SCATTER}\npto.barrier <PIPE_ALL>\npto.dcci\npto.dsb")
    assert "FlushScatterOutput" not in by_hand
    assert by_hand.count("dcci(") == 1


def launch(*tiles: str) -> str:
    body = "\n".join(f"  %t{n} = pto.alloc_tile {tile}" for n, tile in enumerate(tiles))
    constants = "\n".join(f"  %at{at} = arith.constant {at} : i64" for at in (0, 65536, 131072, 196608))
    return cpp(func(f"{constants}\n{body}"))


def test_the_launch_asks_for_what_the_ledger_says() -> None:
    block = "!pto.tile_buf<vec, 256x64xf32>"  # 64 KiB
    assert "f<<<blocks, nullptr, stream>>>(p, n);" in launch(f": {block}", f": {block}")
    made = launch(*(f"addr = %at{at} : {block}" for at in (0, 65536, 131072)))
    assert "constexpr uint32_t dynUBufSize = 196608;" in made
    assert "f<<<blocks, dynUBufSize, stream>>>(p, n);" in made
    # Tiles that ptokit places get TASSIGN too: to the compiler they are not static.
    assert "dynUBufSize = 196608;" in launch(*[f": {block}"] * 3)


def test_a2a3_has_nothing_to_ask_for() -> None:
    made = cpp(func("\n".join(f"  %t{n} = pto.alloc_tile : !pto.tile_buf<vec, 256x64xf32>" for n in range(3))), "a2a3")
    assert "<<<blocks, nullptr, stream>>>" in made


def test_tiles_that_do_not_fit_are_told_in_a_comment() -> None:
    tiles = "\n".join(f"  %t{n} = pto.alloc_tile : !pto.tile_buf<vec, 256x64xf32>" for n in range(4))
    assert "// PTO-M006: t3 ends at 0x40000" in cpp(func(tiles))


def test_tiles_are_placed_as_the_simulated_core_places_them() -> None:
    import numpy as np

    tiles = ["16x8xf32", "1x8xi32", "3x16xf16", "4x32xi8", "1x8xi32"]
    body = "\n".join(f"  %t{n} = pto.alloc_tile : !pto.tile_buf<vec, {tile}>" for n, tile in enumerate(tiles))
    text = func(body, "%p: !pto.ptr<i32>")
    run = parse(text).run({"p": np.zeros(4, np.int32)}, target="a5")
    wanted = [one.address for one in run.ub.tiles]
    assert [int(at, 16) for at in re.findall(r"TASSIGN\(\w+, (0x\w+)\)", cpp(text))] == wanted
    assert len(wanted) == len(tiles)


# Control flow


def test_loops_that_swap_what_they_carry() -> None:
    made = cpp(
        func(
            "  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero, %b = %one) -> (i32, i32) {\n"
            "    scf.yield %b, %a : i32, i32\n  }\n  pto.store_scalar %r#0, %p[%c0] : <i32>, i32"
        )
    )
    assert "const auto next_a = b;\n        const auto next_b = a;\n        a = next_a;\n        b = next_b;" in made
    assert "p[0] = a;" in made


def test_branches_whiles_and_switches() -> None:
    body = """
  %some = arith.cmpi ult, %n, %c4 : index
  %x = scf.if %some -> (i32) { scf.yield %one : i32 } else { scf.yield %zero : i32 }
  scf.if %some { pto.store_scalar %x, %p[%c0] : <i32>, i32 }
  %w = scf.while (%k = %x) : (i32) -> i32 {
    %on = arith.cmpi slt, %k, %one : i32
    scf.condition(%on) %k : i32
  } do {
  ^bb0(%k2: i32):
    %k3 = arith.addi %k2, %one : i32
    scf.yield %k3 : i32
  }
  %y = scf.index_switch %n -> i32 case 2 { scf.yield %w : i32 } default { scf.yield %one : i32 }
  pto.store_scalar %y, %p[%c1] : <i32>, i32"""
    made = cpp(func(body))
    assert "if (some) {\n        x = 1;\n    } else {\n        x = 0;\n    }" in made
    assert "while (true) {" in made
    assert "switch (n) {" in made
    assert "static_cast<uint64_t>(n) < static_cast<uint64_t>(4)" in made


def test_functions_come_before_those_that_call_them() -> None:
    inner = "func.func private @inner(%v: !pto.partition_tensor_view<1x16xf32>, %k: i32) -> i32 { return %k : i32 }"
    outer = func(
        "  %c16 = arith.constant 16 : index\n"
        "  %v = pto.make_tensor_view %q, shape = [%c1, %c16], strides = [%c16, %c1] : !pto.tensor_view<1x16xf32>\n"
        "  %t = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c1, %c16] : !pto.tensor_view<1x16xf32>\n"
        "  %k = func.call @inner(%t, %one) : (!pto.partition_tensor_view<1x16xf32>, i32) -> i32",
        "%q: !pto.ptr<f32>",
    )
    made = cpp(f"{outer}\n{inner}")
    assert made.index("int32_t inner(") < made.index("void f(")
    assert "template <typename VT>" in made
    assert made.count("<<<") == 1


def test_a_function_that_calls_itself_is_refused() -> None:
    text = "func.func @f() { func.call @f() : () -> ()\n return }"
    assert "cannot call itself" in refusals(text)[0]


def test_sections_are_compiled_for_their_cores() -> None:
    made = cpp(func("  pto.section.vector { pto.barrier <PIPE_V> }\n  pto.section.cube { }"))
    assert "#if defined(__DAV_VEC__)\n    {\n        pipe_barrier(PIPE_V);\n    }\n#endif" in made
    assert "#if defined(__DAV_CUBE__)" in made


# Names and types


def test_names_are_escaped() -> None:
    given = "%float: index, %TADD: !pto.ptr<f32>, %0: index, %a.b: index, %a_b: index, %stream: index"
    text = f"func.func @half({given}) {{ return }}"
    made = cpp(text)
    given = "int64_t float_, __gm__ float *TADD_, int64_t arg0, int64_t a_b, int64_t a_b_1, int64_t stream_"
    assert f"void half_({given})" in made
    assert "half_<<<blocks, nullptr, stream>>>(float_, TADD_, arg0, a_b, a_b_1, stream_);" in made


def test_tile_types_say_what_is_not_the_default() -> None:
    made = cpp(
        func("  %nz = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf16, blayout=col_major, slayout=row_major, pad=2>")
    )
    assert "Tile<TileType::Vec, half, 16, 64, BLayout::ColMajor, 16, 64, SLayout::RowMajor, 512, PadValue::Max>" in made


@pytest.mark.parametrize("written", ["", ", blayout=col_major"])
def test_a_left_tile_lies_as_its_machine_wants_it(written: str) -> None:
    module = parse(
        f"func.func @f() {{\n  %t = pto.alloc_tile : !pto.tile_buf<left, 16x64xf16{written}>\n  return\n}}\n"
    )
    assert f"left, 16x64xf16{written}>" in module.to("dps"), "the text itself stays as it is"
    assert "TileType::Left, half, 16, 64, BLayout::ColMajor" in to_cpp(module, "a5")
    assert "TileType::Left, half, 16, 64, BLayout::RowMajor" in to_cpp(module, "a2a3")


def test_what_is_known_at_run_time_is_given_to_the_constructors() -> None:
    body = """
  %v = pto.make_tensor_view %p, shape = [%n, %c4], strides = [%n, %c1] : !pto.tensor_view<?x4xi32>
  %w = pto.partition_view %v, offsets = [%c4, %n], sizes = [%n, %c4] : !pto.tensor_view<?x4xi32>
  %t = pto.alloc_tile valid_row = %n : !pto.tile_buf<vec, 16x8xi32, valid=?x4>
  pto.tload ins(%w : !pto.partition_tensor_view<?x4xi32>) outs(%t : !pto.tile_buf<vec, 16x8xi32, valid=?x4>)"""
    made = cpp(func(body))
    assert "using WShape = Shape<1, 1, 1, -1, 4>;" in made
    assert "using WStride = Stride<1, 1, 1, -1, 1>;" in made
    assert "WTensor w(p + 4 * n + n, WShape(n), WStride(n));" in made
    assert "TTile t(n);" in made


def test_a_kernel_that_takes_views_gets_their_pointers() -> None:
    text = "func.func @f(%m: !pto.partition_tensor_view<?x64xf32>) { return }"
    made = cpp(text)
    assert "void f(__gm__ float *m_data, int64_t m_dim0)" in made
    assert "void launch_f(uint32_t blocks, void *stream, float *m_data, int64_t m_dim0)" in made


def test_what_is_left_open_is_a_parameter_of_a_template() -> None:
    text = (
        "pto.mscatter %src, %idx, %mem : (!pto.tile<...>, !pto.tile<...>, !pto.partition_tensor_view<MxNxdtype>) -> ()"
    )
    made = cpp(text)
    assert "template <typename SrcT, typename IdxT, typename MemT>" in made
    assert "    MSCATTER(mem, src, idx);" in made


def test_arguments_on_the_chip_make_a_device_function() -> None:
    made = cpp(f"func.func @f(%t: {TILE}) {{ return }}")
    assert "AICORE PTO_INLINE void f(TTile &t)" in made
    assert "<<<" not in made


# Which target


def test_the_text_names_its_target() -> None:
    for arch, name in (("a2", "a2a3"), ("a3", "a2a3"), ("a5", "a5")):
        text = f'module attributes {{pto.target_arch = "{arch}"}} {{}}'
        assert parse(text).to("cpp").startswith(f"// Written by ptokit for {name}.")
    assert parse("module {}").to("cpp").startswith("// Written by ptokit for a5.")


def test_an_unknown_target_is_told() -> None:
    with pytest.raises(PtoValueError, match="Did you mean 'a5'"):
        to_cpp(parse("module {}"), "a55")


# What cannot be said


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (func("  cf.br ^b1\n^b1:"), "branches between blocks"),
        (func("  %t = pto.alloc_tile : !pto.tile_buf<vec, 999x999xf32>"), "no memory on the chip"),
        (func("  %t = pto.alloc_tile : !pto.tile_buf<vec, 8x32x!pto.f8E8M0>"), "has no name in C++"),
        (f"pto.mgather ins(%m, %i, %x : {TABLE}, {INDEX}, {TILE}) outs(%d : {TILE})", "no scratch"),
        ("func.func @f() -> (i32, i32) {\n%a = arith.constant 1 : i32\nreturn %a, %a : i32, i32 }", "it returns"),
    ],
)
def test_what_cpp_cannot_say(text: str, why: str) -> None:
    assert any(why in one for one in refusals(text))


def test_everything_that_cannot_be_said_is_told_at_once() -> None:
    tiles = "\n".join(f"  %t{n} = pto.alloc_tile : !pto.tile_buf<vec, 999x{n}xf32>" for n in (998, 999))
    text = func(tiles)
    assert len(refusals(text)) == 2


@pytest.mark.skipif(COMPILER is None, reason="no g++")
@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_compile(path: Path, target: str) -> None:
    assert complaints(to_cpp(parse(path), target), target) == ""
