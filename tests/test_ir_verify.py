"""What verify says of a text: structure, attributes, placeholders, and each target's own rules."""

from __future__ import annotations

import pytest

import ptokit as pto
from checked_texts import INDEX, KERNEL, TILE, VIEW, gather, ids, only, scatter, token, verified
from ptokit.errors import PtoValueError
from ptokit.findings import Severity
from ptokit.ir import parse
from ptokit.ir.operands import Numbers


def tile(shape: str, rest: str = "") -> str:
    return f"!pto.tile_buf<vec, {shape}{rest}>"


def view(shape: str) -> str:
    return f"!pto.partition_tensor_view<{shape}>"


@pytest.mark.parametrize("target", ["a2a3", "a5", "ptoas"])
def test_a_plain_scatter_is_clean(target: str) -> None:
    assert verified(scatter(), target) == []


def test_an_unknown_target_is_refused_with_the_nearest() -> None:
    with pytest.raises(PtoValueError, match="Did you mean 'a2a3'"):
        parse(KERNEL).verify("a2a")


# Attributes


def test_an_unknown_attribute_is_told_with_the_nearest_spelling() -> None:
    found = only(parse(scatter(attributes="coalesc = #pto<coalesce row>")).verify("a5"))
    assert (found.id, found.severity, found.where.line) == ("PTO-P010", "error", 3)  # type: ignore[union-attr]
    assert "Did you mean 'coalesce'?" in found.message
    assert token(found).startswith("coalesc")


def test_the_assembler_lets_an_unknown_attribute_pass_with_a_warning() -> None:
    attributes = "coalesc = #pto<coalesce elem>, coalesce = #pto<coalesce row>"
    found = only(parse(scatter(attributes=attributes)).verify("ptoas"))
    assert (found.id, found.severity) == ("PTO-P010", "warning")
    assert "in silence" in found.message


def test_attributes_of_other_dialects_are_nobodys_business() -> None:
    assert verified(scatter(attributes="coalesce = #pto<coalesce row>, mine.note = 3 : i32")) == []


def test_a_slip_in_an_attribute_of_the_module_is_told() -> None:
    found = only(parse('module attributes {pto.target_arhc = "a5"} {}').verify("a5"))
    assert (found.id, "pto.target_arch" in found.message) == ("PTO-P010", True)


# Placeholders


def test_placeholders_are_told_once_each() -> None:
    text = (
        "pto.mscatter %src, %idx, %mem : (!pto.tile<...>, !pto.tile<...>, !pto.partition_tensor_view<MxNxdtype>) -> ()"
    )
    found = [one for one in parse(text).verify("a5") if one.severity == "error"]
    assert [(one.id, token(one)) for one in found] == [("PTO-P007", name) for name in ("%src", "%idx", "%mem")]


# Structure


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (scatter(view=TILE), "mem is !pto.tile_buf<vec, 16x64xf32>; a view on global memory is wanted"),
        (scatter(index=VIEW), "idx is !pto.partition_tensor_view<1024x64xf32>; a tile is wanted"),
        ("%t = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32, valid=?x64>", "leaves valid_row open"),
        (
            "%n = arith.constant 3 : index\n%t = pto.alloc_tile valid_row = %n : !pto.tile_buf<vec, 16x64xf32>",
            "valid_row is given, and the type says 16 already",
        ),
        (
            "%n = arith.constant 30 : index\n"
            "%t = pto.alloc_tile valid_row = %n : !pto.tile_buf<vec, 16x64xf32, valid=?x64>",
            "valid_row is 30; the tile has 16",
        ),
        ("pto.set_flag[<PIPE_V>, <PIPE_V>, <EVENT_ID0>]", "a pipe is in order with itself"),
        ("pto.set_flag[<PIPE_ALL>, <PIPE_V>, <EVENT_ID0>]", "PIPE_ALL is no end of a flag"),
        (
            "%p = pto.arg : !pto.ptr<f32>\n%c = arith.constant 8 : index\n"
            "%v = pto.make_tensor_view %p, shape = [%c, %c], strides = [%c, %c] : !pto.tensor_view<8x9xf32>",
            "dimension 1 is 8, and the type says 9",
        ),
        (
            "func.func @f(%s: !pto.tensor_view<8x32xf32>, %t: !pto.tile_buf<vec, 4x32xf32>, "
            "%g: !pto.tensor_view<4x32xf32>) {\n pto.comm.tscatter(%s, recv(%t), group(%g, %g) : "
            "!pto.tensor_view<8x32xf32>, !pto.tile_buf<vec, 4x32xf32>, !pto.tensor_view<4x32xf32>, "
            "!pto.tensor_view<4x32xf32>) {root = 2 : i32}\n return }",
            "the root is 2; the group has ranks 0 to 1",
        ),
    ],
)
def test_structure(text: str, said: str) -> None:
    found = [one for one in parse(text).verify("a5") if one.severity == "error"]
    assert [one.id for one in found] == ["PTO-P012"]
    assert said in found[0].message


def test_a_part_outside_of_its_view_is_told_where_constants_say_it() -> None:
    text = (
        "func.func @f(%v: !pto.tensor_view<100x64xf32>) {\n"
        "  %a = arith.constant 45 : index\n  %two = arith.constant 2 : index\n  %b = arith.muli %a, %two : index\n"
        "  %z = arith.constant 0 : index\n  %r = arith.constant 16 : index\n  %c = arith.constant 64 : index\n"
        "  %p = pto.partition_view %v, offsets = [%b, %z], sizes = [%r, %c] : !pto.tensor_view<100x64xf32>\n"
        "  return\n}\n"
    )
    found = only(parse(text).verify("a5"))
    assert (found.id, token(found), found.where.line) == ("PTO-P013", "%b", 8)  # type: ignore[union-attr]
    assert "goes from 90 to 106; the view has 0 to 100" in found.message


def test_numbers_follow_from_constants() -> None:
    mod = parse("%a = arith.constant 6 : i64\n%b = arith.index_cast %a : i64 to index\n%c = arith.muli %b, %b : index")
    assert [Numbers().of(op.results[0]) for op in mod.walk()] == [6, 6, 36]


# The rules of the targets


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        (
            scatter(attributes="coalesce = #pto<coalesce row>, scatterAtomicOp = #pto<scatter_atomic_op max>"),
            "a2a3",
            "PTO-L024",
        ),
        (
            scatter(attributes="coalesce = #pto<coalesce row>, scatterConflict = #pto<scatter_conflict default>"),
            "a2a3",
            "PTO-L025",
        ),
        (scatter(index=tile("1x16xi16")), "a5", "PTO-L002"),
        (scatter(view=view("1024x64xi32")), "a5", "PTO-L004"),
        (scatter(view=view("1024x60xf32")), "a5", "PTO-L017"),
        (scatter(tile=tile("16x64xf32", ", blayout=col_major, slayout=row_major")), "a5", "PTO-L008"),
        (scatter(index=tile("16x8xi32", ", valid=16x1")), "a5", "PTO-L013"),
        (scatter(tile=tile("16x60xf16"), view=view("1024x60xf16")), "a5", "PTO-L015"),
        (scatter(tile=tile("16x64xf64"), view=view("1024x64xf64")), "a5", "PTO-L001"),
        (gather(index=tile("1x16xf32")), "a2a3", "PTO-L002"),
    ],
)
def test_a_rule_of_a_target(text: str, target: str, expected: str) -> None:
    assert expected in ids(parse(text).verify(target))


def test_the_same_ids_come_out_as_from_python() -> None:
    text = scatter(attributes="coalesce = #pto<coalesce row>, scatterAtomicOp = #pto<scatter_atomic_op max>")
    import numpy as np

    table = pto.GlobalTensor(np.zeros((1024, 64), np.float32), "float32", (1, 1, 1, 1024, 64))
    src, idx = pto.Tile("float32", 16, 64), pto.Tile("int32", 1, 16)
    for target in ("cpu", "a2a3", "a5"):
        there = pto.check("mscatter", table, src, idx, atomic="max", targets=target)
        assert [(one.id, one.message) for one in parse(text).verify(target)] == [(one.id, one.message) for one in there]


@pytest.mark.parametrize(
    ("rule", "pointed"),
    [
        (
            scatter(attributes="coalesce = #pto<coalesce row>, scatterAtomicOp = #pto<scatter_atomic_op min>"),
            "scatterAtomicOp",
        ),
        (scatter(index=tile("1x16xi8")), "%i"),
        (scatter(tile=tile("16x64xf64"), view=view("1024x64xf64")), "pto.mscatter"),
    ],
)
def test_a_rule_points_at_what_it_is_about(rule: str, pointed: str) -> None:
    assert token(next(one for one in parse(rule).verify("a2a3") if one.severity == "error")).startswith(pointed)


def test_dynamic_extents_are_left_to_the_run() -> None:
    open_tile = tile("16x64xf32", ", valid=?x64")
    assert verified(scatter(tile=open_tile, index=tile("1x16xi32", ", valid=1x?"), view=view("?x64xf32"))) == []


def test_what_is_static_is_judged_beside_what_is_not() -> None:
    text = scatter(tile=tile("16x64xf32", ", valid=?x64"), index=tile("1x16xi16"), view=view("?x64xf32"))
    assert "PTO-L002" in ids(parse(text).verify("a5"))


def test_constants_give_dynamic_extents_their_values() -> None:
    kinds = (tile("16x64xf32", ", valid=?x64"), INDEX, VIEW)
    text = (
        f"func.func @f(%i: {kinds[1]}, %m: {kinds[2]}) {{\n  %n = arith.constant 5 : index\n"
        f"  %s = pto.alloc_tile valid_row = %n : {kinds[0]}\n"
        f"  pto.mscatter ins(%s, %i : {kinds[0]}, {kinds[1]}) outs(%m : {kinds[2]}) {{coalesce = #pto<coalesce row>}}\n"
        "  return\n}\n"
    )
    found = only(parse(text).verify("a5"))
    assert (found.id, "5 valid rows needs 5 indices" in found.message) == ("PTO-L013", True)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (f"pto.tload ins(%m : {VIEW}) outs(%t : {TILE})", ["PTO-L028"]),
        (f"pto.tstore ins(%t : {TILE}) outs(%m : {VIEW})", ["PTO-L028"]),
        (f"pto.tadd ins(%t, %i : {TILE}, {INDEX}) outs(%t : {TILE})", ["PTO-L031", "PTO-L032"]),
        (f"pto.tabs ins(%t : {TILE}) outs(%t : {TILE})", []),
    ],
)
def test_transfers_and_vector_instructions_have_their_rules(op: str, expected: list[str]) -> None:
    text = f"func.func @f(%t: {TILE}, %i: {INDEX}, %m: {VIEW}) {{\n  {op}\n  return\n}}\n"
    assert ids(parse(text).verify("a5")) == expected


def test_a_table_too_large_for_32_bits_costs_no_memory() -> None:
    wide = parse(scatter(tile=tile("16x64xf32"), view=view("67108865x64xf32")))
    assert "PTO-I" in "".join(ids(wide.verify("a5")))


def test_cube_code_is_not_judged_as_vector_code() -> None:
    mat = "!pto.tile_buf<mat, 16x16xf16, blayout=col_major, slayout=row_major>"
    text = (
        f"func.func @f(%v: !pto.partition_tensor_view<16x16xf16>, %t: {mat}) "
        "attributes {pto.kernel_kind = #pto.kernel_kind<cube>} {\n"
        f"  pto.tload ins(%v : !pto.partition_tensor_view<16x16xf16>) outs(%t : {mat})\n  return\n}}\n"
    )
    assert verified(text) == []


def test_skipped_ops_are_notes() -> None:
    found = parse("pto.mystery %a, %b\npto.dsb\n", lenient=True).verify("a5")
    assert {one.severity for one in found} <= {Severity.NOTE}
