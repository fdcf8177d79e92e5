"""Would the public assembler take it? Each rule: one text that it takes, and its smallest neighbour that it refuses."""

from __future__ import annotations

import pytest

from checked_texts import INDEX, TILE, VIEW, gather, ids, scatter, verified
from ptokit.ir import parse

ROW, ELEM = "coalesce = #pto<coalesce row>", "coalesce = #pto<coalesce elem>"


def tile(shape: str, rest: str = "", loc: str = "vec") -> str:
    return f"!pto.tile_buf<{loc}, {shape}{rest}>"


def view(shape: str) -> str:
    return f"!pto.partition_tensor_view<{shape}>"


def atomic(word: str, more: str = ROW) -> str:
    return f"{more}, scatterAtomicOp = #pto<scatter_atomic_op {word}>"


TAKEN = {
    "plain": scatter(),
    "an unaligned tile": scatter(tile=tile("16x60xf32"), view=view("9x7xf32")),
    "any row width": scatter(view=view("1024x99xf32")),
    "rank 6": scatter(view=view("1x1x1x2x512x64xf32")),
    "max on a3": scatter(attributes=atomic("max"), arch="a3"),
    "unsigned indices": scatter(index=tile("1x16xui32")),
    "a column of indices on a3": scatter(index=tile("16x1xi32", ", blayout=col_major"), arch="a3"),
    "no mode, a column": scatter(index=tile("16x1xi32"), attributes=""),
    "no mode, as the tile": scatter(index=tile("16x64xi32"), attributes=""),
    "float8 on a5": scatter(tile=tile("16x64xf8E4M3FN"), view=view("1024x64xf8E4M3FN"), arch="a5"),
    "conflict on a5": scatter(attributes=f"{ROW}, scatterConflict = #pto<scatter_conflict default>", arch="a5"),
    "an empty extent of the index tile": scatter(index=tile("1x16xi32", ", valid=0x16")),
    "a gather": gather(),
    "an element-wise gather": gather(index=tile("16x64xi32"), attributes=ELEM),
}

REFUSED = {
    "PTO-P021": "func.func @f() {\n  pto.dcci\n  return\n}\n",
    "PTO-P022": scatter(view="!pto.memref<1024x64xf32>"),
    "PTO-P023": scatter(tile=tile("16x64xf32", ", blayout=col_major")),
    "PTO-P024": scatter(index=tile("1x16xi64")),
    "PTO-P025": scatter(view="!pto.tensor_view<1024x64xf32>"),
    "PTO-P026": scatter(tile=tile("16x64xi64"), view=view("1024x64xi64")),
    "PTO-P028": scatter(tile=tile("16x64xbf16"), view=view("1024x64xbf16"), attributes=atomic("add"), arch="a5"),
    "PTO-P029": scatter(attributes=f"{ROW}, scatterConflict = #pto<scatter_conflict last>", arch="a3"),
    "PTO-P030": gather(attributes=""),
    "PTO-P031": scatter(index=tile("16x1xi32")),
    "PTO-P032": gather(tile=tile("16x64xf32", ", blayout=col_major, slayout=row_major", "mat")),
    "PTO-P033": (
        "func.func @f(%s: !pto.tensor_view<?x32xf32>, %t: !pto.tile_buf<vec, 4x32xf32>) {\n  pto.comm.tscatter(%s, "
        "recv(%t), group(%s) : !pto.tensor_view<?x32xf32>, !pto.tile_buf<vec, 4x32xf32>, !pto.tensor_view<?x32xf32>) "
        "{root = 0 : i32}\n  return\n}\n"
    ),
    "PTO-P034": "%t = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32, fractal=16>",
}


@pytest.mark.parametrize("name", TAKEN)
def test_taken(name: str) -> None:
    assert verified(TAKEN[name], "ptoas") == []


@pytest.mark.parametrize("rule", REFUSED)
def test_refused(rule: str) -> None:
    assert set(ids(parse(REFUSED[rule]).verify("ptoas"))) == {rule}


@pytest.mark.parametrize(
    ("element", "op", "arch", "taken"),
    [
        ("f32", "add", "a3", True),
        ("f16", "add", "a5", True),
        ("i8", "add", "a3", False),
        ("bf16", "add", "a3", False),
        ("ui32", "max", "a3", True),
        ("f16", "max", "a5", False),
    ],
)
def test_atomics_are_the_same_on_both_architectures(element: str, op: str, arch: str, taken: bool) -> None:
    text = scatter(tile=tile(f"16x64x{element}"), view=view(f"1024x64x{element}"), attributes=atomic(op), arch=arch)
    assert (ids(parse(text).verify("ptoas")) == []) is taken


def test_without_a_mode_nothing_else_may_be_asked() -> None:
    column = tile("16x1xi32")
    asked = scatter(index=column, attributes="scatterOob = #pto<scatter_oob skip>")
    assert ids(parse(asked).verify("ptoas")) == ["PTO-P030"]
    assert ids(parse(scatter(attributes="")).verify("ptoas")) == ["PTO-P030"], "[1,R] needs the mode"


def test_a_layout_on_the_view_is_refused_and_strides_are_not() -> None:
    def strided(attributes: str, strides: str) -> str:
        return (
            f"func.func @f(%p: !pto.ptr<f32>, %s: {TILE}, %i: {INDEX}) {{\n  %z = arith.constant 0 : index\n"
            "  %r = arith.constant 1024 : index\n  %c = arith.constant 64 : index\n  %one = arith.constant 1 : index\n"
            f"  %v = pto.make_tensor_view %p, shape = [%r, %c], strides = [{strides}]{attributes} : "
            "!pto.tensor_view<1024x64xf32>\n"
            "  %m = pto.partition_view %v, offsets = [%z, %z], sizes = [%r, %c] : !pto.tensor_view<1024x64xf32>\n"
            f"  pto.mscatter ins(%s, %i : {TILE}, {INDEX}) outs(%m : {VIEW}) {{{ROW}}}\n  return\n}}\n"
        )

    assert ids(parse(strided("", "%one, %r")).verify("ptoas")) == []
    assert ids(parse(strided(" {layout = #pto.layout<nd>}", "%c, %one")).verify("ptoas")) == []
    assert ids(parse(strided(" {layout = #pto.layout<dn>}", "%one, %r")).verify("ptoas")) == ["PTO-P027"]


@pytest.mark.parametrize(
    "text",
    [
        ".arg %t : !pto.memref<64x16xf32>;\n.arg %s : !pto.tile<8x16xf32>;\n.arg %i : !pto.tile<1x8xi32>;\n"
        "mscatter.row %t, %s, %i : (!pto.memref<64x16xf32>, !pto.tile<8x16xf32>, !pto.tile<1x8xi32>)\n",
        "pto.mscatter %s, %i, %m : (!pto.tile<8x16xf32>, !pto.tile<1x8xi32>, "
        "!pto.partition_tensor_view<64x16xf32>) -> ()\n",
    ],
)
def test_the_forms_of_the_documents_are_nobodys_input(text: str) -> None:
    found = [one for one in parse(text).verify("ptoas") if one.severity == "error"]
    assert found[0].id == "PTO-P020"
    assert "--to dps" in found[0].fix


def test_every_rule_says_what_to_do() -> None:
    from ptokit.ir.ptoas import RULES

    assert all(rule.needs and rule.fix.endswith(".") for rule in RULES)
    assert len({rule.id for rule in RULES}) == len(RULES)


OLD = """func.func @k(%p: !pto.ptr<f32>, %v: !pto.event, %w: !pto.tile_view<4x4xf32>) {
  %c1 = arith.constant 1 : index // here a semicolon; and "!pto.group" say nothing
  %c4 = arith.constant 4 : index
  # c
  %t = pto.alloc_tile : !pto.tile_buf<ub, 8x16xf32>
  %m = pto.make_tensor_view %p, shape = [%c4, %c4] strides = [%c4, %c1] : !pto.tensor_view<4x4xf32>
  pto.record_event[<TLOAD>, <TVEC>, <EVENT_ID1>]
  pto.barrier <PIPE_ALL>;
  return
}
"""


def test_older_spellings_are_read_here_and_not_by_the_assembler() -> None:
    from ptokit.ir import parse
    from ptokit.ir.check import check

    told = [one for one in check(parse(OLD), "ptoas") if one.id == "PTO-P022"]
    assert sorted(one.where.line for one in told if one.where is not None) == [1, 1, 4, 5, 6, 7, 8]
    assert not [
        one
        for one in check(parse(parse(OLD.replace(", %v: !pto.event", "")).to("dps")), "ptoas")
        if one.id == "PTO-P022"
    ]


def test_a_collective_of_placeholders_that_is_written_twice_is_told_and_nothing_worse() -> None:
    line = "tscatter %group, %src : (!pto.group<...>, !pto.memref<...>)\n"
    assert {one.id for one in parse(2 * line).verify("ptoas")} >= {"PTO-P007"}


def test_indices_in_global_memory_are_32_bits_wide_as_well() -> None:
    kind = tile("16x32xf16", ", blayout=col_major, slayout=row_major", "mat")

    def to_mat(index: str) -> str:
        return gather(tile=kind, index=view(f"1x16x{index}"), view=view("64x32xf16"))

    assert ids(parse(to_mat("i32")).verify("ptoas")) == ids(parse(to_mat("ui32")).verify("ptoas")) == []
    assert ids(parse(to_mat("i64")).verify("ptoas")) == ids(parse(to_mat("f32")).verify("ptoas")) == ["PTO-P024"]
