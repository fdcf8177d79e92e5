"""The documents' forms: read into the dialect's ops, printed, and read back."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ptokit.ir import ConvertError, ParseError, parse
from ptokit.ir.printing import canonical

MEM, TILE, VIEW = "!pto.memref<...>", "!pto.tile<...>", "!pto.partition_tensor_view<MxNxdtype>"
BUF = "!pto.tile_buf<...>"
TABLE, SRC, ROWS, LIKE = (
    "!pto.memref<100x64xf32>",
    "!pto.tile<16x64xf32>",
    "!pto.tile<1x16xi32>",
    "!pto.tile<16x64xi32>",
)

SEEDS = {
    "first form of MSCATTER": f"mscatter %src, %mem, %idx : {MEM}, {TILE}, {TILE}",
    "row": f"mscatter.row %table, %src, %idx : ({MEM}, !pto.tile<RxCxT>, !pto.tile<1xRxi32>)",
    "elem": f"mscatter.elem %table, %src, %idx : ({MEM}, !pto.tile<RxCxT>, !pto.tile<RxCxi32>)",
    "row of the custom form": f"mscatter.row %table, %src, %idx : ({MEM}, !pto.tile<NxMxT>, !pto.tile<Nx1xi32>)",
    "elem of the custom form": f"mscatter.elem %table, %src, %idx : ({MEM}, !pto.tile<NxMxT>, !pto.tile<NxMxi32>)",
    "atomic": f"mscatter.row.atomic_add %table, %src, %idx : ({MEM}, !pto.tile<NxMxT>, !pto.tile<Nx1xi32>)",
    "level 1": f"pto.mscatter %src, %idx, %mem : ({TILE}, {TILE}, {VIEW}) -> ()",
    "level 2": f"pto.mscatter ins(%src, %idx : {BUF}, {BUF}) outs(%mem : {VIEW})",
    "version 0.1.1": "pto.mscatter %src, %mem, %idx : memref, memref, memref",
    "MGATHER": f"%dst = mgather %mem, %idx : {MEM}, {TILE} -> {TILE}",
    "MGATHER row": f"%dst = mgather.row %table, %idx : ({MEM}, {TILE}) -> {TILE}",
    "MGATHER into": f"mgather.row %dst, %table, %idx : (!pto.tile<RxCxT>, {MEM}, !pto.tile<1xRxi32>)",
    "MGATHER level 1": f"%dst = pto.mgather %mem, %idx : ({VIEW}, pto.tile<...>)\n"
    "-> !pto.tile<loc, dtype, rows, cols, blayout, slayout, fractal, pad>",
    "MGATHER auto": "# Auto mode: compiler/runtime-managed placement and scheduling.\n"
    f"%dst = pto.mgather %mem, %idx : ({VIEW}, pto.tile<...>)",
    "MGATHER manual": "# Manual mode: bind resources explicitly before issuing the instruction.\n"
    "# Optional for tile operands:\n# pto.tassign %arg0, @tile(0x1000)\n# pto.tassign %arg1, @tile(0x2000)\n"
    f"%dst = pto.mgather %mem, %idx : ({VIEW}, pto.tile<...>)",
    "MGATHER level 2": f"pto.mgather ins(%mem, %idx : {VIEW}, {BUF}) outs(%dst : {BUF})",
    "collective": f"pto.tscatter %group, %src : (!pto.group<...>, {MEM})",
    "collective without prefix": f"tgather %group, %dst : (!pto.group<...>, {MEM})",
    "manual": f"pto.tassign %arg0, @tile(0x1000)\npto.mscatter %arg0, %idx, %mem : ({TILE}, {TILE}, {VIEW}) -> ()",
    "short types": "mscatter %src, %mem, %idx : !pto.memref, !pto.tile, !pto.tile",
}

PROGRAM = """
# A row update
.arg %table : !pto.memref<100x64xf32>;
.arg %grads : !pto.memref<16x64xf32>;
.arg %rows : !pto.memref<1x16xi32>;
.const %zero = 0 : index;
%g = tload %grads : (!pto.memref<16x64xf32>) -> !pto.tile<16x64xf32>
%i = tload %rows                                  #the indices
set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>];
%h = tadd %g, %g : (!pto.tile<16x64xf32>, !pto.tile<16x64xf32>) -> !pto.tile<16x64xf32>
mscatter.row.clamp.atomic_add.conflict_default %table, %h, %i : (!pto.memref<100x64xf32>, !pto.tile<16x64xf32>, \
!pto.tile<1x16xi32>)
barrier <PIPE_ALL>
tstore %h, %grads #atomic=add
"""


def same(one, other):
    return canonical(one.op) == canonical(other.op)


def ops(module, name):
    return [op for op in module.walk() if op.name == name]


def scatter(text):
    return ops(parse(text), "pto.mscatter")[0]


def warned(module):
    return [f.id for f in module.findings if f.severity == "warning"]


def refused(text):
    with pytest.raises(ParseError) as raised:
        parse(text)
    (finding,) = raised.value.findings
    return finding


def at(finding):
    start = finding.where.column - 1
    return finding.where.line, finding.facts["line_text"][start : start + finding.facts["length"]]


@pytest.mark.parametrize("name", SEEDS)
@pytest.mark.parametrize("form", ["dps", "ssa", "as", "generic"])
def test_seed_prints_and_reads_back(name, form):
    module = parse(SEEDS[name])
    again = parse(module.to(form))
    assert same(again, module)
    assert not warned(again)


def test_the_forms_of_one_scatter_are_one_module():
    types = dict(zip(("src", "idx", "mem"), (SRC, ROWS, TABLE), strict=True))
    args = "".join(f".arg %{name} : {kind};\n" for name, kind in types.items())
    written = [
        f"mscatter.row %mem, %src, %idx : ({TABLE}, {SRC}, {ROWS})",
        f"mscatter %src, %mem, %idx : {TABLE}, {SRC}, {ROWS}",
        f"mscatter %src, %mem, %idx : {SRC}, {TABLE}, {ROWS}",
        f"pto.mscatter %src, %idx, %mem : ({SRC}, {ROWS}, {TABLE}) -> ()",
        f"pto.mscatter %src, %idx, %mem : ({SRC}, {ROWS}, {TABLE})",
        f"pto.mscatter ins(%src, %idx : {SRC}, {ROWS}) outs(%mem : {TABLE})",
        f"mscatter ins(%src, %idx : {SRC}, {ROWS}) outs(%mem : {TABLE})",
        f"pto.mscatter.row %mem, %src, %idx : ({TABLE}, {SRC}, {ROWS})",
        "mscatter.row %mem, %src, %idx",
        "mscatter.row %src, %idx, %mem",
        "pto.mscatter %src, %mem, %idx : !pto.memref<...>, !pto.tile<...>, !pto.tile<...>",
        "mscatter %src, %mem, %idx #coalesce=row",
    ]
    modules = [parse(args + line) for line in written]
    assert [line for line, module in zip(written, modules, strict=True) if not same(module, modules[0])] == []
    kinds = [bool(warned(module)) for module in modules]
    assert kinds == [False, True, False, False, False, False, False, False, False, True, True, False]


def test_types_out_of_order_are_matched_by_kind_with_a_warning():
    module = parse(SEEDS["first form of MSCATTER"])
    op = ops(module, "pto.mscatter")[0]
    assert [str(one.type) for one in (op.src, op.idx, op.mem)] == [TILE, TILE, MEM]
    assert [module.name(one) for one in (op.src, op.idx, op.mem)] == ["src", "idx", "mem"]
    assert warned(module) == ["PTO-P006"]


def test_defined_operands_in_another_order_are_matched_by_kind():
    module = parse(f".arg %a : {SRC};\n.arg %b : {ROWS};\n.arg %c : {TABLE};\nmscatter.row.skip %a, %b, %c")
    op = ops(module, "pto.mscatter")[0]
    assert [module.name(one) for one in (op.src, op.idx, op.mem)] == ["a", "b", "c"]
    (finding,) = [f for f in module.findings if f.id == "PTO-P006"]
    assert (finding.where.line, "mem, src, idx" in finding.fix) == (4, True)


def test_tile_types_out_of_order_find_their_operands():
    module = parse(f".arg %s : {SRC};\n.arg %i : {ROWS};\n.arg %t : {TABLE};\n"
                   f"mscatter.row %t, %s, %i : ({TABLE}, {ROWS}, {SRC})")  # fmt: skip
    op = ops(module, "pto.mscatter")[0]
    assert (module.name(op.src), module.name(op.idx)) == ("s", "i")
    assert warned(module) == ["PTO-P006"]


MODES, SCATTER_OOB, GATHER_OOB = (
    ("row", "elem"),
    ("", "undefined", "skip", "clamp", "wrap"),
    ("", "undefined", "clamp", "wrap", "zero"),
)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("oob", SCATTER_OOB)
@pytest.mark.parametrize("atomic", ["", "add", "max", "min"])
@pytest.mark.parametrize("conflict", ["", "default"])
@pytest.mark.parametrize("prefix", ["", "pto."])
def test_every_row_of_suffixes_of_mscatter(mode, oob, atomic, conflict, prefix):
    words = [mode, oob, atomic and f"atomic_{atomic}", conflict and f"conflict_{conflict}"]
    name = ".".join(["mscatter", *filter(None, words)])
    module = parse(f"{prefix}{name} %t, %s, %i : ({TABLE}, {SRC}, {ROWS if mode == 'row' else LIKE})")
    op = ops(module, "pto.mscatter")[0]
    assert op.policies == {
        "coalesce": mode,
        "oob": oob or "undefined",
        "atomic": atomic or "none",
        "conflict": conflict or "last",
    }
    assert module.to("as").startswith(name.replace(".undefined", "") + " ")
    for form in ("dps", "ssa", "as", "generic"):
        assert same(parse(module.to(form)), module)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("oob", GATHER_OOB)
@pytest.mark.parametrize("bound", [True, False])
@pytest.mark.parametrize("prefix", ["", "pto."])
def test_every_row_of_suffixes_of_mgather(mode, oob, bound, prefix):
    name = ".".join(["mgather", *filter(None, [mode, oob])])
    idx = ROWS if mode == "row" else LIKE
    if bound:
        text = f"%d = {prefix}{name} %t, %i : ({TABLE}, {idx}) -> {SRC}"
    else:
        text = f"{prefix}{name} %d, %t, %i : ({SRC}, {TABLE}, {idx})"
    module = parse(text)
    op = ops(module, "pto.mgather")[0]
    assert op.policies == {"coalesce": mode, "oob": oob or "undefined"}
    assert [module.name(one) for one in (op.mem, op.idx, op.dst)] == ["t", "i", "d"]
    assert len(ops(module, "pto.alloc_tile")) == bound
    for form in ("dps", "ssa", "as", "generic"):
        assert same(parse(module.to(form)), module)


def test_a_result_left_out_follows_from_the_operands():
    def result(text):
        return str(ops(parse(text), "pto.alloc_tile")[0].tile.type)

    assert result(f"%d = pto.mgather %t, %i : ({TABLE}, {ROWS})") == "!pto.tile_buf<vec, 16x64xf32>"
    assert result(f"%d = mgather.elem %t, %i : ({TABLE}, {ROWS})") == "!pto.tile_buf<vec, 1x16xf32>"
    assert result(f"%d = pto.mgather %t, %i : ({TABLE}, {LIKE})") == "!pto.tile_buf<vec, 16x64xf32>"
    assert result(f"%d = pto.mgather %t, %i : (!pto.memref<?x?xf32>, {ROWS})") == TILE
    assert result(f"%d = tload %t : {TABLE}") == "!pto.tile_buf<vec, 100x64xf32>"
    assert result(f"%d = tmuls %a, %x : {SRC}, f32") == "!pto.tile_buf<vec, 16x64xf32>"


def test_a_program_of_pto_as_is_a_function():
    module = parse(PROGRAM)
    assert (list(module.funcs), module.form) == (["main"], "as")
    assert [arg.name_hint for arg in module.funcs["main"].args] == ["table", "grads", "rows"]
    assert [op.name for op in module.funcs["main"].body.block.ops][-2:] == ["pto.tstore", "func.return"]
    assert str(ops(module, "pto.tstore")[0].atomic) == "add"
    for form in ("dps", "ssa", "as", "generic"):
        assert same(parse(module.to(form)), module)


def test_pto_as_prints_as_it_was_written():
    lines = [line.split("  ")[0].rstrip(";") for line in PROGRAM.strip().splitlines()[1:]]
    printed = [line.rstrip(";") for line in parse(PROGRAM).to("as").splitlines()]
    lines[5] += " : (!pto.memref<1x16xi32>) -> !pto.tile<1x16xi32>"
    lines[7] = lines[7].removeprefix("pto.")
    lines[11] = (
        "tstore %h, %grads {atomicType = #pto<atomic_type atomic_add>} : (!pto.tile<16x64xf32>, !pto.memref<16x64xf32>)"
    )
    assert printed == lines


def test_labels_begin_functions():
    text = (
        f"one:\n.arg %t : {TABLE};\n%a = tload %t\ntwo: .arg %t : {TABLE};\nmiddle:\n%a = tload %t : {TABLE} -> {SRC}\n"
    )
    module = parse(text)
    assert list(module.funcs) == ["one", "two"]
    (note,) = module.findings
    assert (note.id, note.where.line, note.severity) == ("PTO-P016", 5, "note")
    assert same(parse(module.to("as")), module)
    assert module.to("as").splitlines()[0] == "one:"


def test_a_function_takes_what_it_does_not_define():
    module = parse("f:\nmscatter.row %t, %s, %i : (!pto.memref<8x64xf32>, !pto.tile<16x64xf32>, !pto.tile<1x16xi32>)")
    assert [arg.name_hint for arg in module.funcs["f"].args] == ["t", "s", "i"]
    assert {f.id for f in module.findings} == {"PTO-P004"}


def test_the_first_custom_form_leaves_duplicates_to_the_scheduler():
    text = f"mscatter.row %t, %s, %i : ({TABLE}, {SRC}, !pto.tile<16x1xi32>)"
    op = scatter(text)
    assert op.policies["conflict"] == "default"
    assert str(op.idx.type) == "!pto.tile_buf<vec, 16x1xi32, blayout=col_major>"
    assert "PTO-P016" in [f.id for f in parse(text).findings]
    assert scatter(SEEDS["row of the custom form"]).policies["conflict"] == "default"
    assert scatter(SEEDS["row"]).policies["conflict"] == "last"
    today = scatter(text.replace("!pto.tile<16x1xi32>", "!pto.tile_buf<vec, 16x1xi32, blayout=col_major>"))
    assert (today.policies["conflict"], str(today.idx.type)) == ("last", str(op.idx.type))


def test_the_first_custom_form_agrees_with_python():
    import ptokit as pto
    from ptokit.older import convert_custom_a5

    table = pto.GlobalTensor(bytearray(100 * 64 * 4), "float32", shape=(1, 1, 1, 100, 64))
    for idx, mode, spelt in ((pto.Tile("int32", 16, 1), "row", "16x1"), (pto.Tile("int32", 16, 64), "elem", "16x64")):
        new = convert_custom_a5(table, pto.Tile("float32", 16, 64), idx, oob="skip")
        op = scatter(f"mscatter.{mode}.skip %t, %s, %i : ({TABLE}, {SRC}, !pto.tile<{spelt}xi32>)")
        assert (op.policies["coalesce"], op.idx.type.layout) == (new.coalesce, new.idx.layout)


@pytest.mark.parametrize(
    ("spelt", "meant"),
    [
        ("!pto.tile<f32, 16, 16>", "!pto.tile_buf<vec, 16x16xf32>"),
        ("!pto.tile<loc=vec, f32, 16, 16, RowMajor, NoneBox, None, Zero>", "!pto.tile_buf<vec, 16x16xf32, pad=1>"),
        ("!pto.tile<vec, f16, 16, 16, col_major, row_major, 512, 0>",
         "!pto.tile_buf<vec, 16x16xf16, blayout=col_major, slayout=row_major>"),
        ("!pto.tile<16x16xf32>", "!pto.tile_buf<vec, 16x16xf32>"),
        ("pto.tile<16x16xf32>", "!pto.tile_buf<vec, 16x16xf32>"),
        ("!pto.tile<loc, dtype, rows, cols, blayout, slayout, fractal, pad>",
         "!pto.tile<loc, dtype, rows, cols, blayout, slayout, fractal, pad>"),
        ("!pto.tile<0x16xf32>", "!pto.tile<0x16xf32>"),
        ("!pto.tile<vec, f32, 16, 16, sideways>", "!pto.tile<vec, f32, 16, 16, sideways>"),
        ("!pto.memref<4x8x16xi8>", "!pto.partition_tensor_view<4x8x16xi8>"),
        ("!pto.memref<?x8xi8>", "!pto.partition_tensor_view<?x8xi8>"),
    ],
)  # fmt: skip
def test_types_of_the_documents(spelt, meant):
    module = parse(f".arg %a : {spelt};")
    assert str(module.funcs["main"].args[0].type) == meant
    assert same(parse(module.to("as")), module)


def test_a_document_type_in_level_2_is_noted():
    (note,) = [f for f in parse("%a = pto.alloc_tile : !pto.tile<16x64xf32>").findings if f.id == "PTO-P016"]
    assert at(note) == (1, "!pto.tile<16x64xf32>")


def test_manual_mode_renames():
    module = parse(f"f:\n.arg %s : {SRC};\npto.tassign %s, @tile(0x1000)\n%d = tadd %s, %s\n%e = tneg %s")
    assign = ops(module, "pto.tassign")[0]
    assert {use.operation.name for use in assign.placed.uses} == {"pto.tadd", "pto.tneg"}
    assert assign.addr.owner.value.value.data == 0x1000
    for form in ("ssa", "as"):
        assert "tassign %s, @tile(0x1000)\n" in module.to(form)
        assert same(parse(module.to(form)), module)


def test_a_tile_is_placed_before_its_definition():
    module = parse(f"pto.tassign %d, @tile(0x40)\n%d = pto.mgather %t, %i : ({TABLE}, {ROWS}) -> {SRC}")
    assert ops(module, "pto.alloc_tile")[0].addr.owner.value.value.data == 0x40
    assert not ops(module, "pto.tassign")


@pytest.mark.parametrize("text", ["%t, %a : !pto.tile<16x64xf32>, dtype", "ins(%t, %a : !pto.tile<16x64xf32>, i64)",
                                  "%t, %a : !pto.tile<16x64xf32>", "%t, @tile(32) : !pto.tile<16x64xf32>"])  # fmt: skip
def test_other_spellings_of_tassign(text):
    module = parse(f"pto.tassign {text}")
    assert str(ops(module, "pto.tassign")[0].placed.type) == "!pto.tile_buf<vec, 16x64xf32>"
    for form in ("dps", "ssa", "as", "generic"):
        assert same(parse(module.to(form)), module)


def test_the_collective_is_told_from_the_tile_op():
    module = parse("pto.tscatter %group, %src : (!pto.group<...>, !pto.memref<64x100xf32>)")
    (op,) = ops(module, "pto.comm.tscatter")
    assert str(op.ping.type) == "!pto.tile_buf<vec, 1x104xf32, valid=1x100>"
    (note,) = [f for f in module.findings if f.id == "PTO-P011"]
    assert (note.severity, at(note)) == ("note", (1, "pto.tscatter"))
    tile = parse(f"pto.tscatter ins(%s, %i : {SRC}, {LIKE}) outs(%d : {SRC})")
    assert len(ops(tile, "pto.tscatter")) == 1
    flat = parse(f"pto.tscatter %s, %i, %d : ({SRC}, {LIKE}, {SRC}) -> ()")
    assert same(flat, tile)
    swapped = parse("pto.tscatter %src, %group : (!pto.memref<64x100xf32>, !pto.group<...>)")
    assert warned(swapped) == ["PTO-P006"]
    assert len(ops(swapped, "pto.comm.tscatter")) == 1


def test_forms_may_be_mixed():
    module = parse(
        f"func.func @f(%t: {TABLE}, %i: {ROWS}) {{\n"
        f"  %a = mgather.row %t, %i : ({TABLE}, {ROWS}) -> {SRC}\n"
        f"  %b = pto.tneg %a : ({SRC}) -> {SRC}\n"
        "  %one = arith.constant 1 : index\n"
        "  scf.for %k = %one to %one step %one {\n"
        f"    pto.mscatter ins(%b, %i : {SRC}, {ROWS}) outs(%t : {TABLE})  #back again\n"
        "  }\n  return\n}"
    )
    assert module.form == "mixed"
    assert same(parse(module.to("ssa")), module)
    with pytest.raises(ConvertError) as cannot:
        module.to("as")
    assert [(f.id, f.where.line) for f in cannot.value.findings] == [("PTO-P008", 5)]


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (SEEDS["row"], "as"),
        (SEEDS["level 1"], "ssa"),
        (SEEDS["level 2"], "dps"),
        (SEEDS["row"] + "\n" + SEEDS["level 1"].replace("%", "%x"), "mixed"),
        ('"pto.dsb"() : () -> ()', "generic"),
    ],
)
def test_the_form_is_told(text, form):
    assert parse(text).form == form


CANNOT_SAY = {
    "module": "module attributes {pto.target_arch = \"a5\"} {\n}",
    "attributes": "func.func @f(%a: index) attributes {pto.entry} { return }",
    "private": "func.func private @f(%a: index) { return }",
    "declaration": "func.func private @f(index)",
    "results": "func.func @f(%a: index) -> index { return %a : index }",
    "blocks": "func.func @f(%a: index) { cf.br ^bb1\n^bb1:\n return }",
    "without arguments": "func.func @f(%a: index) { return }\nfunc.func @g() { return }",
    "after": "func.func @f(%a: index) { return }\npto.dsb",
    "section": "pto.section.vector {\n pto.dsb\n}",
    "padding": f"pto.tload ins(%p : {TABLE}) outs(%t : {SRC}) pad_value = %x : f32",
    "mask": f"pto.tscatter ins(%s, {{maskPattern = #pto.mask_pattern<P0101>}} : {SRC}, \"row\") outs(%d : {SRC})",
    "quant": f"pto.tstore ins(%s : {SRC}, %q : i64) outs(%d : {TABLE})",
}  # fmt: skip


@pytest.mark.parametrize("name", CANNOT_SAY)
def test_what_pto_as_cannot_say(name):
    module = parse(CANNOT_SAY[name])
    with pytest.raises(ConvertError) as cannot:
        module.to("as")
    assert {f.id for f in cannot.value.findings} == {"PTO-P008"}
    assert all(f.fix for f in cannot.value.findings)
    assert same(parse(module.to("ssa")), module)


def test_explicit_last_and_unknown_attributes_survive():
    module = parse(
        f"pto.mscatter ins(%s, %i : {SRC}, {ROWS}) outs(%t : {TABLE}) "
        "{coalesc = 1 : i32, scatterConflict = #pto<scatter_conflict last>}"
    )
    for form in ("ssa", "as"):
        assert same(parse(module.to(form)), module)


WRONG = {
    f"mscatter.row.clmap %t, %s, %i : ({MEM}, {TILE}, {TILE})": ("PTO-P003", 1, "clmap", "clamp"),
    f"mscatter.row.atomic_add.clamp %t, %s, %i : ({MEM}, {TILE}, {TILE})": (
        "PTO-P001", 1, "clamp", "mscatter.row.clamp.atomic_add"),
    f"\n  mscatter.row.row %t, %s, %i : ({MEM}, {TILE}, {TILE})": ("PTO-P001", 2, "row", "mscatter.row"),
    f"mgather.row.atomic_add %d, %t, %i : ({TILE}, {MEM}, {TILE})": ("PTO-P003", 1, "atomic_add", "no atomics"),
    f"mgather.row.skip %d, %t, %i : ({TILE}, {MEM}, {TILE})": ("PTO-P003", 1, "skip", "zero"),
    f"mscatter.row.zero %t, %s, %i : ({MEM}, {TILE}, {TILE})": ("PTO-P003", 1, "zero", "skip"),
    f"mscatter.row.conflict_last %t, %s, %i : ({MEM}, {TILE}, {TILE})": ("PTO-P003", 1, "conflict_last", "default"),
    f"mscatter.row %t, %s : ({MEM}, {TILE})": ("PTO-P005", 1, "%t, %s", "mem, src, idx"),
    f"mscatter.row %t, %s, %i : ({MEM}, {TILE})": ("PTO-P005", 1, "%i", "2 types"),
    "mscatter.row %t, %s, %i": ("PTO-P005", 1, "%t", "':'"),
    f"%x = mscatter.row %s, %i : ({TILE}, {TILE})": ("PTO-P005", 1, "mscatter.row", "no result"),
    f"%x = pto.mgather %t, %i : ({MEM}, {TILE}) -> ()": ("PTO-P012", 1, "(", "()"),
    f"mscater.row %t, %s, %i : ({MEM}, {TILE}, {TILE})": ("PTO-P002", 1, "mscater.row", "mscatter"),
    f"pto.tgather ins(%a, %b : {TILE}, {TILE}) outs(%c : {TILE})": ("PTO-P011", 1, "pto.tgather", "%group"),
    f"tgather %a, %b : ({TILE}, {MEM})": ("PTO-P012", 1, "%a", "group"),
    f"tscatter %g, %a, %b : (!pto.group<...>, {MEM}, {MEM})": ("PTO-P005", 1, "%g, %a, %b", "a group and a tensor"),
    ".arg table : index;": ("PTO-P001", 1, "table", "name"),
    ".const %c = index;": ("PTO-P001", 1, "index", ""),
    "pto.tassign %t, @tiel(0x1000)": ("PTO-P001", 1, "@tiel", "@tile"),
    f".arg %s : {SRC};\ntassign %s, @tile(0xFFFFFFFFFFFFFFFF)": ("PTO-P012", 2, "0xFFFFFFFFFFFFFFFF", "64 bits"),
    f".arg %s : {SRC};\n.arg %t : {TABLE};\ntstore %s, %t #atomc=add": ("PTO-P003", 3, "#atomc", "atomic"),
    f".arg %s : {SRC};\n.arg %t : {TABLE};\ntstore %s, %t #atomic=ad": ("PTO-P003", 3, "ad", "atomic_add"),
    f".arg %s : {SRC};\n.arg %s : {SRC};": ("PTO-P012", 2, "%s", "twice"),
    f".arg %s : {SRC};\n%d = tneg %s : ({LIKE}) -> {LIKE}": ("PTO-P012", 2, "%s", "16x64xi32"),
    ".param %s : index;": ("PTO-P001", 1, ".", ""),
}  # fmt: skip


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_said_with_its_place(text):
    rule, line, token, words = WRONG[text]
    finding = refused(text)
    assert (finding.id, *at(finding)) == (rule, line, token)
    assert words in f"{finding.message} {finding.fix}"


def test_where_finds_a_suffix():
    module = parse(f"mscatter.row.clamp %t, %s, %i : ({MEM}, {TILE}, {TILE})")
    op = ops(module, "pto.mscatter")[0]
    assert module.where(op, "scatterOob").column == 14
    assert module.is_written(op, "coalesce")


@pytest.mark.parametrize("tail", ["#Scatter the rows", "# Scatter", "// Scatter", "  #rows: all of them"])
def test_comments_behind_an_op(tail):
    text = f"mscatter.row %t, %s, %i : ({MEM}, {TILE}, {TILE})"
    assert same(parse(f"{text} {tail}\npto.dsb"), parse(f"{text}\npto.dsb"))


# Generated programs

ELEMENTS = st.sampled_from(["f32", "f16", "bf16", "i32", "ui8", "!pto.hif8"])
NAMES = st.lists(st.from_regex(r"[a-z][a-z0-9_]{0,4}", fullmatch=True), min_size=6, max_size=6, unique=True)


@st.composite
def tile_types(draw, elem=None):
    rows, cols = draw(st.integers(1, 64)), draw(st.integers(1, 64))
    elem = elem or draw(ELEMENTS)
    spelt = draw(st.sampled_from(["tile", "compact", "open", "positional"]))
    valid = f"{draw(st.integers(1, rows))}x{draw(st.integers(1, cols))}"
    return {
        "tile": f"!pto.tile<{rows}x{cols}x{elem}>",
        "compact": f"!pto.tile_buf<vec, {rows}x{cols}x{elem}, valid={valid}>",
        "positional": f"!pto.tile<loc=vec, {elem}, {rows}, {cols}, RowMajor, NoneBox, None, Zero>",
        "open": draw(st.sampled_from([TILE, BUF, "!pto.tile<RxCxT>", "pto.tile<...>"])),
    }[spelt]


@st.composite
def view_types(draw):
    dims = draw(st.lists(st.one_of(st.just("?"), st.integers(1, 99).map(str)), min_size=1, max_size=5))
    elem = draw(ELEMENTS)
    name = draw(st.sampled_from(["memref", "partition_tensor_view", "tensor_view"]))
    return draw(st.sampled_from([f"!pto.{name}<{'x'.join([*dims, elem])}>", MEM, VIEW]))


def suffixes(draw, *slots):
    return "".join(f".{draw(st.sampled_from(slot))}" for slot in slots if draw(st.booleans()))


@st.composite
def lines(draw, names):
    """One line of a document: an op on values that are there, or on new ones."""
    t, s, i, d, e, x = names
    mem, src, idx, dst = draw(view_types()), draw(tile_types()), draw(tile_types("i32")), draw(tile_types())
    prefix = draw(st.sampled_from(["", "pto."]))
    scatter = suffixes(draw, MODES, SCATTER_OOB[1:], ("atomic_add", "atomic_max", "atomic_min"), ("conflict_default",))
    gather = suffixes(draw, MODES, GATHER_OOB[1:])
    return draw(
        st.sampled_from(
            [
                f"mscatter{scatter or '.row'} %{t}, %{s}, %{i} : ({mem}, {src}, {idx})",
                f"mscatter %{s}, %{t}, %{i} : {mem}, {src}, {idx}",
                f"{prefix}mscatter %{s}, %{i}, %{t} : ({src}, {idx}, {mem}) -> ()",
                f"pto.mscatter ins(%{s}, %{i} : {src}, {idx}) outs(%{t} : {mem})",
                f"%{d} = {prefix}mgather{gather} %{t}, %{i} : ({mem}, {idx}) -> {dst}",
                f"%{d} = {prefix}mgather{gather} %{t}, %{i} : {mem}, {idx}",
                f"mgather{gather or '.elem'} %{d}, %{t}, %{i} : ({dst}, {mem}, {idx})",
                f"pto.mgather ins(%{t}, %{i} : {mem}, {idx}) outs(%{d} : {dst})",
                f"%{d} = {prefix}tload %{t} : ({mem}) -> {dst}",
                f"{prefix}tload %{d}, %{t} : {dst}, {mem}",
                f"{prefix}tstore %{s}, %{t} : {src}, {mem}",
                f"%{e} = {prefix}tadd %{s}, %{s} : ({src}, {src}) -> {src}",
                f"%{e} = tmuls %{s}, %{x} : ({src}, f32) -> {src}",
                f"{prefix}tassign %{s}, @tile(0x{draw(st.integers(0, 9999)):x})",
                f".const %{e} = {draw(st.integers(-9, 9))} : index;",
                f"{prefix}set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID{draw(st.integers(0, 7))}>]",
            ]
        )
    )


@st.composite
def programs(draw):
    head = draw(st.sampled_from(["", "f:\n", ".const %zero = 0 : i64;\n"]))
    body = [draw(lines([f"{name}{n}" for name in draw(NAMES)])) for n in range(draw(st.integers(1, 4)))]
    return head + "\n".join(body)


ARGUMENTS = {
    "t": "!pto.memref<100x64xf32>",
    "s": "!pto.tile<16x64xf32>",
    "r": "!pto.tile<1x16xi32>",
    "e": "!pto.tile<16x64xi32>",
    "d": "!pto.tile<16x64xf32>",
}
"""A table, a source, indices of rows and of elements, a destination."""


def typed(draw, names):
    """The operands with their types: in order, by kind, left open, or left out."""
    types = [ARGUMENTS[name] for name in names]
    how = draw(st.sampled_from(["in order", "shuffled", "open", "none"]))
    if how == "shuffled":
        types = draw(st.permutations(types))
    elif how == "open":
        types = [MEM if name == "t" else TILE for name in names]
    listed = ", ".join(types)
    around = f"({listed})" if draw(st.booleans()) else listed
    return ", ".join(f"%{name}" for name in names) + ("" if how == "none" else f" : {around}")


@st.composite
def scatters(draw):
    """One scatter in any form, and the same in level 2."""
    mode, prefix = draw(st.sampled_from(MODES)), draw(st.sampled_from(["", "pto."]))
    idx = "r" if mode == "row" else "e"
    oob, conflict = draw(st.sampled_from(SCATTER_OOB)), draw(st.sampled_from(["", ".conflict_default"]))
    suffixed = draw(st.booleans())
    if suffixed:
        name = f"{prefix}mscatter.{mode}{'.' * bool(oob)}{oob}{conflict}"
        order = draw(st.sampled_from([("t", "s", idx), ("s", idx, "t"), ("s", "t", idx)]))
        attributes = [f"coalesce = #pto<coalesce {mode}>", f"scatterOob = #pto<scatter_oob {oob or 'undefined'}>"]
        attributes += ["scatterConflict = #pto<scatter_conflict default>"] * bool(conflict)
    else:
        name, attributes = f"{prefix}mscatter", [f"coalesce = #pto<coalesce {mode}>"]
        order = draw(st.permutations(["t", "s", idx]).filter(lambda o: o.index("s") < o.index(idx)))
    flat = typed(draw, order)
    dps = f"pto.mscatter ins(%s, %{idx} : {ARGUMENTS['s']}, {ARGUMENTS[idx]}) outs(%t : {ARGUMENTS['t']})"
    return f"{name} {flat}", f"{dps} {{{', '.join(attributes)}}}"


@st.composite
def gathers(draw):
    mode, oob = draw(st.sampled_from(MODES)), draw(st.sampled_from(GATHER_OOB))
    idx = "r" if mode == "row" else "e"
    name = f"{draw(st.sampled_from(['', 'pto.']))}mgather.{mode}{'.' * bool(oob)}{oob}"
    flat = typed(draw, ("d", "t", idx))
    dps = f"pto.mgather ins(%t, %{idx} : {ARGUMENTS['t']}, {ARGUMENTS[idx]}) outs(%d : {ARGUMENTS['d']})"
    attributes = [f"coalesce = #pto<coalesce {mode}>", f"gatherOob = #pto<gather_oob {oob or 'undefined'}>"]
    return f"{name} {flat}", f"{dps} {{{', '.join(attributes)}}}"


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(scatters(), gathers()), min_size=1, max_size=3))
def test_any_order_of_operands_and_types_is_the_same_op(pairs):
    head = "".join(f".arg %{name} : {kind};\n" for name, kind in ARGUMENTS.items())
    flat, dps = (parse(head + "\n".join(rows)) for rows in zip(*pairs, strict=True))
    assert same(flat, dps)
    for form in ("dps", "ssa", "generic", "as"):
        assert same(parse(flat.to(form)), dps)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs())
def test_printing_and_reading_back_is_the_identity(text):
    module = parse(text)
    for form in ("dps", "ssa", "generic", "as"):
        try:
            printed = module.to(form)
        except ConvertError as cannot:
            assert form == "as", cannot
            continue
        again = parse(printed)
        assert same(again, module), (form, printed)
        assert again.to(form) == printed
        assert not warned(again)


def test_unknown_ops_are_skipped_up_to_the_next_line():
    module = parse(f"%q = pto.foo %a\nmscatter.row %t, %s, %i : ({MEM}, {TILE}, {TILE})\nzork 3\ndsb", lenient=True)
    names = [op.name for op in module.walk()]
    assert [name for name in names if name != "pto.arg"] == ["pto.skipped", "pto.mscatter", "pto.skipped", "pto.dsb"]
    with pytest.raises(ConvertError):
        module.to("as")
    open_type = parse("mscatter %s, %t, %i : !pto.memref<...>, !pto.til<...>, !pto.tile<...>", lenient=True)
    assert same(parse(open_type.to("ssa"), lenient=True), open_type)


def test_functions_keep_their_names_apart():
    module = parse(
        f"%t = pto.arg : {TABLE}\nf:\n.arg %t : {TABLE};\n%a = tload %t\ng:\n.arg %t : {TABLE};\n%a = tload %t"
    )
    assert list(module.funcs) == ["f", "g"]
    assert same(parse(module.to("as")), module)


def test_a_tile_placed_in_a_region_stays_there():
    text = (
        "func.func @f(%n: index) {\n  %z = arith.constant 0 : index\n  scf.for %k = %z to %n step %n {\n"
        f"    pto.tassign %d, @tile(0x80)\n    %d = tload %v : {TABLE} -> {SRC}\n    %e = tneg %d\n  }}\n"
        f"  %v = pto.arg : {TABLE}\n  return\n}}"
    )
    module = parse(text.replace(f"  %v = pto.arg : {TABLE}\n", "").replace("(%n: index)", f"(%n: index, %v: {TABLE})"))
    assert ops(module, "pto.alloc_tile")[0].addr.owner.value.value.data == 0x80
    assert same(parse(module.to("ssa")), module)
    unknown = refused("func.func @f() {\n  pto.tassign %d, @tile(0x80)\n  return\n}")
    assert (unknown.id, at(unknown)) == ("PTO-P004", (2, "%d"))
