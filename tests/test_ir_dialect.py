"""The dialect: every spelling of types, attributes and ops that is read, and the one that is printed."""

import pytest
from hypothesis import HealthCheck, given, settings

from ir_programs import Pick, by_seed, kernel, modules
from ptokit import ir
from ptokit.core.vector import OPS
from ptokit.errors import PtoTypeError, PtoValueError
from ptokit.ir import build
from ptokit.ir.dialect import attributes as attrs
from ptokit.ir.dialect import ops
from ptokit.ir.dialect.attributes import word
from ptokit.ir.dialect.types import (
    DocType,
    PartitionTensorViewType,
    PtrType,
    TensorViewType,
    TileBufType,
    dtype_of,
    is_placeholder,
    scalar_type,
    type_of_text,
)
from ptokit.ir.printing import to_dps

TILE = "!pto.tile_buf<vec, 16x64xf32>"
INDEX = "!pto.tile_buf<vec, 1x16xi32>"
TABLE = "!pto.partition_tensor_view<1024x64xf32>"
LONG = "loc={loc}, dtype=f32, rows=16, cols=64, v_row={v}, v_col=64, blayout={b}, slayout={s}, fractal={f}, pad={p}"


def long(loc="vec", v="16", b="row_major", s="none_box", f=512, p=0, more=""):
    return LONG.format(loc=loc, v=v, b=b, s=s, f=f, p=p) + more


def line(text, **keywords):
    """What the last op of the text is printed as."""
    module = ir.parse(text, **keywords)
    return to_dps(module.op.body.block.last_op, module.names).strip()


def typed(spelling):
    return ir.parse(f"%a = pto.arg : {spelling}").op.body.block.first_op.results[0].type


TYPES = [
    (f"!pto.tile_buf<{long()}>", TILE),
    (f"!pto.tile_buf<{long(loc='ub')}>", TILE),
    (f"!pto.tile_buf<{long(more=', compact=0')}>", TILE),
    (f"!pto.tile_buf<{long(v='?')}>", "!pto.tile_buf<vec, 16x64xf32, valid=?x64>"),
    (f"!pto.tile_buf<{long(v='-1')}>", "!pto.tile_buf<vec, 16x64xf32, valid=?x64>"),
    (
        f"!pto.tile_buf<{long(b='col_major', s='row_major', f=1024, p=2, more=', compact=1')}>",
        "!pto.tile_buf<vec, 16x64xf32, blayout=col_major, slayout=row_major, fractal=1024, pad=2, compact=1>",
    ),
    ("!pto.tile_buf<  vec ,16x64xf32,pad=0,  valid=16x64>", TILE),
    (
        "!pto.tile_buf<mat, 16x64xbf16, pad=1, blayout=col_major, valid=?x?>",
        "!pto.tile_buf<mat, 16x64xbf16, valid=?x?, blayout=col_major, pad=1>",
    ),
    ("!pto.tile_buf<vec, 0016x64xf32>", TILE),
    ("!pto.tile_buf<vec, 16x64x!pto.hif8>", "!pto.tile_buf<vec, 16x64x!pto.hif8>"),
    ("!pto.tile_buf<vec, 16x64xf8E4M3FN>", "!pto.tile_buf<vec, 16x64xf8E4M3FN>"),
    ("!pto.tile_buf<vec, 16x64xsi32>", "!pto.tile_buf<vec, 16x64xsi32>"),
    ("!pto.ptr<f32>", "!pto.ptr<f32, gm>"),
    ("!pto.ptr<f32,gm>", "!pto.ptr<f32, gm>"),
    ("!pto.ptr<i8, vec>", "!pto.ptr<i8, ub>"),
    ("!pto.ptr<i8, left>", "!pto.ptr<i8, l0a>"),
    ("!pto.ptr<i8, scaling>", "!pto.ptr<i8, fb>"),
    ("!pto.tensor_view<?x64xf32>", "!pto.tensor_view<?x64xf32>"),
    ("!pto.tensor_view<2xf32>", "!pto.tensor_view<2xf32>"),
    ("!pto.tensor_view<0x64xf32>", "!pto.tensor_view<0x64xf32>"),
    ("!pto.tile_view<16x64xf32>", "!pto.partition_tensor_view<16x64xf32>"),
    ("!pto.hif8", "!pto.hif8"),
    ("!pto.event", "!pto.event"),
    ("memref<16x64xf32, #pto.address_space<gm>>", "memref<16x64xf32, #pto.address_space<gm>>"),
    ("ui32", "ui32"),
]


@pytest.mark.parametrize(("given", "printed"), TYPES)
def test_each_spelling_of_a_type_is_read_and_one_is_printed(given, printed):
    assert line(f"%a = pto.arg : {given}") == f"%a = pto.arg : {printed}"


PLACEHOLDERS = [
    "!pto.tile_buf<...>",
    "!pto.partition_tensor_view<MxNxdtype>",
    "!pto.tile<...>",
    "!pto.tile<RxCxT>",
    "!pto.tile<1xRxi32>",
    "!pto.tile<loc, dtype, rows, cols, blayout, slayout, fractal, pad>",
    "!pto.memref<...>",
    "!pto.group<...>",
]


@pytest.mark.parametrize("spelling", PLACEHOLDERS)
def test_what_the_documents_leave_open_is_kept_as_text(spelling):
    found = typed(spelling)
    assert is_placeholder(found) and isinstance(found, DocType)
    assert str(found) == spelling


def test_a_type_without_its_mark_is_a_type_of_the_documents():
    assert str(typed("pto.tile<...>")) == "!pto.tile<...>"


WRONG_TYPES = [
    ("!pto.tile_buf<vec, 16x64xf23>", "f23", "'f32'"),
    ("!pto.tile_buf<vek, 16x64xf32>", "vek", "'vec'"),
    ("!pto.tile_buf<vec, 16x64xf32, vali=1x1>", "vali", "'valid'"),
    ("!pto.tile_buf<vec, 16x64xf32, pad=1, pad=1>", "pad", "twice"),
    ("!pto.tile_buf<vec, 16x64xf32, pad=7>", "7", "known: 0, 1, 2, 3"),
    ("!pto.tile_buf<vec, 16x64xf32, blayout=rowmajor>", "rowmajor", "'row_major'"),
    ("!pto.tile_buf<vec, 16x64xf32, fractal=100>", "100", "512"),
    ("!pto.tile_buf<vec, 16x?xf32>", " 16x?xf32", "static"),
    ("!pto.tile_buf<vec, 0x64xf32>", "vec, 0x64xf32", "holds nothing"),
    ("!pto.tile_buf<vec, 8x8xf32, valid=9x8>", "vec, 8x8xf32, valid=9x8", "exceed"),
    ("!pto.tile_buf<rows=16>", "rows=16", "vec, 16x64xf32"),
    (f"!pto.tile_buf<{long().replace('pad=0', 'pad=0, x=1')}>", "x", "'v_row'|no 'x'"),
    ("!pto.tile_buf<loc=vec, dtype=f32>", "l", "missing"),
    ("!pto.ptr<f32, vecc>", "vecc", "'vec'"),
    ("!pto.ptr<f32, gm, 1>", "1", "a memory"),
    ("!pto.tilebuf<vec, 16x64xf32>", "!pto.tilebuf", "'tile_buf'"),
    ("!pto.tensor_view", "!pto.tensor_view", "needs <..>"),
    ("!pto.tensor_view<64xf32", "!pto.tensor_view", "does not end"),
]


@pytest.mark.parametrize(("spelling", "token", "says"), WRONG_TYPES)
def test_a_wrong_type_is_shown_at_its_wrong_part(spelling, token, says):
    with pytest.raises(ir.ParseError) as error:
        typed(spelling)
    (found,) = error.value.findings
    text = found.facts["line_text"]
    shown = text[found.where.column - 1 :][: found.facts["length"]]
    assert shown.strip() == token.strip()
    assert any(part in found.message for part in says.split("|"))


def test_types_are_plain_python():
    tile = typed("!pto.tile_buf<vec, 16x64xbf16, valid=?x32, blayout=col_major, slayout=row_major>")
    assert (tile.loc, tile.dtype, tile.elem, tile.rows, tile.cols) == ("vec", "bfloat16", "bf16", 16, 64)
    assert (tile.valid, tile.layout, tile.fractal, tile.pad, tile.compact) == ((-1, 32), "nz", 512, 0, 0)
    assert tile == TileBufType("vec", "bfloat16", 16, 64, -1, 32, "col_major", "row_major")
    assert len({tile, TileBufType("vec", "bf16", 16, 64, -1, 32, "col_major", "row_major")}) == 1
    view = typed("!pto.tensor_view<?x64xsi32>")
    assert (view.dims, view.dtype, view.elem) == ((-1, 64), "int32", "si32")
    pointer = typed("!pto.ptr<!pto.hif8, mat>")
    assert (pointer.dtype, pointer.space) == ("hifloat8", "l1")
    assert type_of_text("tile", "16x?xf32").dims == (16, -1) and type_of_text("tile", "16x?xf32").dtype == "float32"
    assert type_of_text("tile", "...").dims is None


def test_layouts_follow_from_both_orders():
    made = {
        (b, s): TileBufType("vec", "float32", 16, 64, blayout=b, slayout=s).layout
        for b in ("row_major", "col_major")
        for s in ("none_box", "row_major", "col_major")
    }
    assert made["row_major", "none_box"] == "nd" and made["col_major", "none_box"] == "dn"
    assert made["col_major", "row_major"] == "nz" and len(set(made.values())) == 6


def test_scalars_and_their_names():
    for name in ("float32", "bfloat16", "uint8", "int64", "hifloat8", "float8_e5m2", "index", "bool"):
        assert dtype_of(scalar_type(name)) == name
    assert dtype_of(typed("!pto.tile<...>")) is None
    with pytest.raises(PtoValueError, match="Did you mean 'float32'"):
        scalar_type("float3")


ATTRIBUTES = [
    ("#pto<coalesce row>", "#pto<coalesce row>", "row"),
    ("#pto.coalesce<elem>", "#pto<coalesce elem>", "elem"),
    ("#pto< coalesce   row >", "#pto<coalesce row>", "row"),
    ("#pto<scatter_atomic_op max>", "#pto<scatter_atomic_op max>", "max"),
    ("#pto<scatter_conflict default>", "#pto<scatter_conflict default>", "default"),
    ("#pto<gather_oob zero>", "#pto<gather_oob zero>", "zero"),
    ("#pto<atomic_type atomic_add>", "#pto<atomic_type atomic_add>", "add"),
    ("#pto<reduce_op sum>", "#pto<reduce_op sum>", "sum"),
    ("#pto.layout<mx_a_zz>", "#pto.layout<mx_a_zz>", "mx_a_zz"),
    ("#pto.pipe<PIPE_MTE2>", "#pto.pipe<PIPE_MTE2>", "MTE2"),
    ("#pto.event<EVENT_ID7>", "#pto.event<EVENT_ID7>", 7),
    ("#pto.sync_op_type<TVEC>", "#pto.pipe_event_type<TVEC>", "TVEC"),
    ("#pto.kernel_kind<cube>", "#pto.kernel_kind<cube>", "cube"),
    ("#pto.pad_value<zero>", "#pto.pad_value<zero>", "zero"),
    ("#pto.tile_buf_config<blayout=row_major, pad=0>", "#pto.tile_buf_config<blayout=row_major, pad=0>", None),
    ("#hivm.unknown<a<b>>", "#hivm.unknown<a<b>>", None),
    ("3 : i32", "3 : i32", 3),
    ("true", "true", True),
    ("1.5 : f32", "1.500000e+00 : f32", 1.5),
    ('"a \\22"', '"a \\22"', 'a "'),
    ('"\\C3\\A9"', '"\\C3\\A9"', "é"),
    ("@kernel", "@kernel", "kernel"),
    ("[1 : i32, 2 : i32]", "[1 : i32, 2 : i32]", [1, 2]),
]


@pytest.mark.parametrize(("given", "printed", "plain"), ATTRIBUTES)
def test_each_spelling_of_an_attribute(given, printed, plain):
    module = ir.parse(f"pto.dsb {{a = {given}}}")
    assert f"{{a = {printed}}}" in module.to("dps")
    if plain is not None:
        assert word(module.op.body.block.first_op.attributes["a"]) == plain


def test_words_from_python():
    assert attrs.pipe("V") == attrs.pipe("PIPE_V") and attrs.event(3) == attrs.event("EVENT_ID3")
    assert word(None, "last") == "last"
    with pytest.raises(PtoValueError, match="Did you mean 'row'"):
        attrs.CoalesceAttr("rwo")


OPS_READ = [
    (
        "%v = pto.make_tensor_view %p, shape = [%r, %c] strides = [%c, %one] : !pto.tensor_view<1024x64xf32>",
        "%v = pto.make_tensor_view %p, shape = [%r, %c], strides = [%c, %one] : !pto.tensor_view<1024x64xf32>",
    ),
    (
        "%v = pto.make_tensor_view %p, shape = [%r], strides = [%c] {layout = #pto.layout<nd>, a} "
        ": !pto.tensor_view<?xf32>",
        "%v = pto.make_tensor_view %p, shape = [%r], strides = [%c] {a, layout = #pto.layout<nd>} "
        ": !pto.tensor_view<?xf32>",
    ),
    (
        "%q = pto.partition_view %v, offsets = [%i], sizes = [%n] : !pto.tensor_view<?xf32> "
        "-> !pto.partition_tensor_view<?xf32>",
        "%q = pto.partition_view %v, offsets = [%i], sizes = [%n] : !pto.tensor_view<?xf32>",
    ),
    (
        "%q = pto.partition_view %v, offsets = [%i], sizes = [%n] : !pto.tensor_view<?xf32> "
        "-> !pto.partition_tensor_view<16xf32>",
        None,
    ),
    (f"%t = pto.alloc_tile : {TILE}", None),
    ("%t = pto.alloc_tile addr = %a valid_row = %r valid_col = %c {x} : !pto.tile_buf<vec, 8x8xf32, valid=?x?>", None),
    (f"%u = pto.tassign %t, %a : {TILE} -> {TILE}", None),
    (f"%u = pto.tassign %t, %a : {TILE}", f"%u = pto.tassign %t, %a : {TILE} -> {TILE}"),
    (f"pto.set_validshape %t, %r, %c : {TILE}", None),
    (f"pto.tload ins(%p : {TABLE}) outs(%t : {TILE})", None),
    (
        f"pto.tload ins(%p : {TABLE}) outs(%t : {TILE}) {{a}} pad_mode = #pto<pad_mode pad_value> "
        "pad_value = %x : f32 left_padding_num = %n : index right_padding_num = %m : index init_out_buffer = true "
        "init_condition = %b : i1",
        None,
    ),
    (f"pto.tstore ins(%t : {TILE}) outs(%p : {TABLE})", None),
    (
        f"pto.tstore ins(%t : {TILE} fp %f : {TILE}, %q : i64) outs(%p : {TABLE}) "
        "{atomicType = #pto<atomic_type atomic_add>, stPhase = #pto<st_phase final>, x}",
        f"pto.tstore ins(%t : {TILE} fp %f : {TILE}, %q : i64) outs(%p : {TABLE}) "
        "{x, stPhase = #pto<st_phase final>, atomicType = #pto<atomic_type atomic_add>}",
    ),
    (f"pto.tstore ins(%t : {TILE}, %q : i64) outs(%p : {TABLE})", None),
    (
        f"pto.mscatter ins(%s, %i : {TILE}, {INDEX}) outs(%m : {TABLE}) "
        "{scatterConflict = #pto<scatter_conflict last>, scatterOob = #pto<scatter_oob skip>, "
        "scatterAtomicOp = #pto<scatter_atomic_op add>, coalesce = #pto<coalesce row>, z = 1 : i32}",
        f"pto.mscatter ins(%s, %i : {TILE}, {INDEX}) outs(%m : {TABLE}) {{z = 1 : i32, coalesce = #pto<coalesce row>, "
        "scatterAtomicOp = #pto<scatter_atomic_op add>, scatterOob = #pto<scatter_oob skip>, "
        "scatterConflict = #pto<scatter_conflict last>}",
    ),
    (
        f"pto.mscatter ins(%s, %i : {TILE}, {INDEX}) outs(%m : {TABLE}) "
        "{scatterOob = #pto<scatter_oob undefined>, scatterAtomicOp = #pto<scatter_atomic_op none>}",
        f"pto.mscatter ins(%s, %i : {TILE}, {INDEX}) outs(%m : {TABLE}) {{coalesce = #pto<coalesce row>}}",
    ),
    (
        f"pto.mgather ins(%m, %i : {TABLE}, {TILE}) outs(%d : {TILE})",
        f"pto.mgather ins(%m, %i : {TABLE}, {TILE}) outs(%d : {TILE}) {{coalesce = #pto<coalesce elem>}}",
    ),
    (
        f"pto.mgather ins(%m, %i, %s : {TABLE}, {INDEX}, {TILE}) outs(%d : {TILE}) "
        "{coalesce = #pto<coalesce row>, gatherOob = #pto<gather_oob zero>}",
        None,
    ),
    (f"pto.tadd ins(%a, %b : {TILE}, {TILE}) outs(%d : {TILE})", None),
    (f"pto.tadds ins(%a, %s : {TILE}, f32) outs(%d : {TILE})", None),
    (f"pto.texpands ins(%s : f32) outs(%d : {TILE})", None),
    (f"pto.trowsum ins(%a, %tmp : {TILE}, {TILE}) outs(%d : {TILE})", None),
    (f"pto.trowsum ins(%a : {TILE}) outs(%d : {TILE})", None),
    (
        f"pto.tcvt ins(%a {{rmode = #pto<round_mode CAST_RINT>}} : {TILE}) outs(%d : {TILE})",
        f"pto.tcvt ins(%a : {TILE}) outs(%d : {TILE}) {{rmode = #pto<round_mode CAST_RINT>}}",
    ),
    (f"pto.tcmp ins(%a, %b : {TILE}, {TILE}) outs(%d : {TILE}) {{cmpMode = #pto<cmp lt>}}", None),
    (f"pto.tci ins(%s : i32) outs(%d : {INDEX}) {{descending = true}}", None),
    (f"pto.tscatter ins(%s, %i : {TILE}, {TILE}) outs(%d : {TILE})", None),
    (
        f'pto.tscatter ins(%s, {{maskPattern = #pto.mask_pattern<P0101>}} : {TILE}, "row") outs(%d : {TILE})',
        None,
    ),
    (
        f"pto.comm.tscatter(%s, recv(%p, %q), group(%g, %h) : {TABLE}, {TILE}, {TILE}, {TABLE}, {TABLE}) "
        "{root = 1 : i32}",
        None,
    ),
    (f"pto.comm.tgather(%d, recv(%p), group(%g) : {TABLE}, {TILE}, {TABLE}) {{root = 0 : i32}}", None),
    (
        f"pto.comm.treduce(%d, %a, recv(%p), group(%g) : {TABLE}, {TILE}, {TILE}, {TABLE}) "
        "{reduceOp = #pto<reduce_op sum>, root = 0 : i32}",
        None,
    ),
    ("pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]", None),
    (
        "pto.wait_flag[#pto.pipe<PIPE_MTE2>, #pto.pipe<PIPE_V>, #pto.event<EVENT_ID3>] {a}",
        "pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID3>] {a}",
    ),
    ("pto.set_flag_dyn[<PIPE_V>, <PIPE_S>, %i]", None),
    ("pto.wait_flag_dyn[#pto.pipe<PIPE_V>, <PIPE_S>, %i]", "pto.wait_flag_dyn[<PIPE_V>, <PIPE_S>, %i]"),
    (
        "pto.record_event[<TLOAD>, #pto.sync_op_type<TVEC>, <EVENT_ID1>]",
        "pto.record_event[#pto.pipe_event_type<TLOAD>, #pto.pipe_event_type<TVEC>, <EVENT_ID1>]",
    ),
    ("pto.barrier <PIPE_ALL>", None),
    ("pto.barrier #pto.pipe<PIPE_V>", "pto.barrier <PIPE_V>"),
    ("pto.barrier_sync[<TVEC>]", "pto.barrier_sync[#pto.pipe_event_type<TVEC>]"),
    (f"pto.tsync ins(%a, %b : {TILE}, {TILE})", None),
    ("pto.tsync", None),
    ("pto.section.vector {\n  pto.dsb\n}", None),
    ("pto.section.cube attributes {a} {\n}", None),
    ("%i = pto.get_block_idx", None),
    ("%q = pto.addptr %p, %i : !pto.ptr<f32> -> <f32, gm>", "%q = pto.addptr %p, %i : <f32, gm> -> <f32, gm>"),
    ("%x = pto.load_scalar %p[%i] : !pto.ptr<f32, gm> -> f32", "%x = pto.load_scalar %p[%i] : <f32, gm> -> f32"),
    ("pto.store_scalar %x, %p[%i] : <f32>, f32", "pto.store_scalar %x, %p[%i] : <f32, gm>, f32"),
    ("pto.dcci", None),
    ("pto.dsb {a = 1 : i32}", None),
]


@pytest.mark.parametrize(("given", "printed"), OPS_READ)
def test_each_op_is_read_and_printed(given, printed):
    assert line(given) == (printed or given)


@pytest.mark.parametrize(("given", "printed"), OPS_READ)
def test_each_op_survives_the_generic_form(given, printed):
    module = ir.parse(given)
    generic = module.to("generic")
    again = ir.parse(generic)
    assert again.form == "generic" and again.says_the_same(module)
    assert again.to("dps") == module.to("dps")


def test_every_vector_instruction_has_its_op():
    assert set(ops.VECTOR_OPS) == set(OPS)
    for name, made in ops.VECTOR_OPS.items():
        assert made.name == f"pto.{name}" and made.INS[: len(made.SOURCES)] == made.SOURCES


def test_a_vector_op_knows_its_row_of_the_table():
    op = ir.parse(f"pto.tcvt ins(%a : {TILE}) outs(%d : {TILE}) {{rmode = #pto<round_mode CAST_RINT>}}").op
    op = op.body.block.last_op
    assert op.row is OPS["tcvt"] and op.options == {"mode": "rint"} and len(op.sources) == 1
    op = ir.parse(f"pto.tadds ins(%a, %s : {TILE}, f32) outs(%d : {TILE})").op.body.block.last_op
    assert list(op.scalars) == ["scalar"] and op.scalars["scalar"].type == scalar_type("float32")


def test_generic_form_with_segments_among_the_attributes():
    text = '%v = "pto.alloc_tile"() {operandSegmentSizes = array<i32: 0, 0, 0>} : () -> ' + TILE
    assert line(text) == f"%v = pto.alloc_tile : {TILE}"


COALESCE = [
    ((16, 64), (1, 16), "row"),
    ((16, 64), (16, 1), "row"),
    ((16, 64), (16, 64), "elem"),
    ((1, 1), (1, 1), "elem"),
    ((1, 64), (1, 64), "elem"),
    ((1, 64), (1, 1), "row"),
    ((16, 1), (16, 1), "row"),
    ((-1, 64), (1, -1), "row"),
    ((-1, 64), (-1, 64), "elem"),
    ((16, 64), (8, 64), None),
    ((16, 64), (1, 8), None),
]


@pytest.mark.parametrize(("tile", "idx", "mode"), COALESCE)
def test_the_mode_follows_from_the_shapes(tile, idx, mode):
    src = TileBufType("vec", "float32", 16, 64, *tile)
    index = TileBufType("vec", "int32", 16, 64, *idx)
    assert ops.coalesce_of(src, index) == mode
    made = line(f"pto.mscatter ins(%s, %i : {src}, {index}) outs(%m : {TABLE})")
    assert (f"#pto<coalesce {mode}>" in made) == (mode is not None)


def test_a_mode_that_was_not_written_is_told_from_one_that_was():
    plain = f"pto.mscatter ins(%s, %i : {TILE}, {INDEX}) outs(%m : {TABLE})"
    module = ir.parse(plain)
    assert not module.is_written(module.op.body.block.last_op, "coalesce")
    module = ir.parse(plain + " {coalesce = #pto<coalesce row>}")
    assert module.is_written(module.op.body.block.last_op, "coalesce")


def test_policies_are_the_words_of_python():
    text = f"pto.mscatter ins(%s, %i : {TILE}, {INDEX}) outs(%m : {TABLE}) {{scatterOob = #pto<scatter_oob wrap>}}"
    op = ir.parse(text).op.body.block.last_op
    assert op.policies == {"coalesce": "row", "atomic": "none", "oob": "wrap", "conflict": "last"}
    op = ir.parse(f"pto.mgather ins(%m, %i : {TABLE}, {INDEX}) outs(%d : {TILE})").op.body.block.last_op
    assert op.policies == {"coalesce": "row", "oob": "undefined"}


def test_the_result_of_a_partition_follows_from_constants():
    text = """
    %c16 = arith.constant 16 : index
    %p = pto.partition_view %v, offsets = [%n, %n], sizes = [%n, %c16] : !pto.tensor_view<?x64xf32>
    """
    op = ir.parse(text).op.body.block.last_op
    assert op.partition.type == PartitionTensorViewType((-1, 16), "float32")


def test_the_pointer_of_a_view_has_the_type_of_its_elements():
    op = ir.parse("%v = pto.make_tensor_view %p, shape = [%n], strides = [%n] : !pto.tensor_view<?xbf16>").op
    assert op.body.block.last_op.ptr.type == PtrType("bfloat16")
    text = """
    %p = pto.arg : !pto.ptr<f32>
    %v = pto.make_tensor_view %p, shape = [%n], strides = [%n] : !pto.tensor_view<?xbf16>
    """
    with pytest.raises(ir.ParseError, match=r"%p is !pto\.ptr<bf16, gm> here"):
        ir.parse(text)


def test_unknown_attributes_are_kept():
    text = f"pto.mscatter ins(%s, %i : {TILE}, {INDEX}) outs(%m : {TABLE}) {{coalesc = #pto<coalesce row>}}"
    op = ir.parse(text).op.body.block.last_op
    assert list(op.attributes) == ["coalesc"]


def test_module_and_function_attributes():
    text = """module attributes {pto.target_arch = "a5"} {
  func.func private @f(%a: !pto.ptr<f32, gm>) attributes {pto.entry, pto.kernel_kind = #pto.kernel_kind<vector>} {
    return
  }
}
"""
    module = ir.parse(text)
    assert module.arch == "a5" and list(module.funcs) == ["f"]
    assert module.to("dps") == text
    assert ir.parse("pto.dsb").arch is None


def test_host_code_is_printed_as_it_was():
    text = """module {
  func.func @f(%n: index, %x: i32) -> i32 {
    %c0 = arith.constant 0 : index
    %more = arith.cmpi slt, %c0, %n : index
    %sum = scf.for %i = %c0 to %n step %n iter_args(%s = %x) -> (i32) {
      %next = arith.addi %s, %x : i32
      scf.yield %next : i32
    }
    scf.if %more {
      pto.dsb
    }
    %y = func.call @f(%n, %sum) : (index, i32) -> i32
    cf.br ^bb1(%y : i32)
  ^bb1(%z: i32):
    return %z : i32
  }
}
"""
    assert ir.parse(text).to("dps") == text


def test_names_of_the_text_are_kept_and_made_distinct():
    text = """module {
  func.func @f(%n: index, %b: i1) {
    scf.if %b {
      %x_1 = arith.constant 1 : index
    }
    scf.if %b {
      %x_1 = arith.constant 2 : index
    }
    %x = arith.constant 3 : index
    return
  }
}
"""
    printed = ir.parse(text).to("dps")
    assert "%x_1 = arith.constant 1" in printed and "%x_1_1 = arith.constant 2" in printed
    assert "%x = arith.constant 3" in printed
    assert ir.parse(printed).to("dps") == printed


def test_modules_that_differ_do_not_say_the_same():
    one, other = "pto.set_flag[<PIPE_S>, <PIPE_V>, <EVENT_ID0>]", "pto.set_flag[<PIPE_S>, <PIPE_V>, <EVENT_ID1>]"
    assert not ir.parse(one).says_the_same(ir.parse(other))
    assert ir.parse(one).says_the_same(ir.parse(one + " // the same"))


def test_a_form_that_does_not_exist():
    with pytest.raises(PtoValueError, match="Did you mean 'dps'"):
        ir.parse("pto.dsb").to("dpss")


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(modules())
def test_printing_and_reading_back_is_the_identity(module):
    for form in ("dps", "generic"):
        again = ir.parse(module.to(form))
        assert again.says_the_same(module)
        assert again.to(form) == ir.parse(again.to(form)).to(form)


@pytest.mark.parametrize("seed", range(60))
def test_larger_programs_survive_both_forms(seed):
    module = by_seed(seed, 60)
    for form in ("dps", "generic"):
        assert ir.parse(module.to(form)).says_the_same(module)


@pytest.mark.parametrize("seed", range(10))
def test_kernels_survive_both_forms(seed):
    module = kernel(Pick(seed))
    assert ir.parse(ir.parse(module.to("generic")).to("dps")).says_the_same(module)


# Made from Python


def test_builders_say_what_they_cannot_make():
    tile = build.alloc_tile(TileBufType("vec", "float32", 8, 8))
    with pytest.raises(PtoTypeError, match="2 source tiles, not 1"):
        build.vector("tadd", tile, tile)
    with pytest.raises(PtoValueError, match="no collective 'tscater'"):
        build.comm("tscater", tile, ping=tile, group=[tile])
    with pytest.raises(PtoValueError, match="no mode 'nearest'"):
        build.vector("tcvt", tile, tile, mode="nearest")
    with pytest.raises(PtoTypeError, match="needs its type"):
        build.make_tensor_view(tile, [], [])


def test_builders_fill_in_what_follows():
    table = build.arg(PartitionTensorViewType((1024, 64), "float32"))
    tile, index = (build.alloc_tile(TileBufType("vec", t, r, c)) for t, r, c in (("float32", 16, 64), ("int32", 1, 16)))
    assert build.mscatter(tile, index, table).policies["coalesce"] == "row"
    size = build.constant(16)
    view = build.make_tensor_view(build.arg(PtrType("float32")), [size, size], [size, size])
    assert view.view.type == TensorViewType((16, 16), "float32")
    assert build.partition_view(view, [size, size], [size, size]).partition.type.dims == (16, 16)
    assert build.load_scalar(build.arg(PtrType("uint8")), size).value.type == scalar_type("uint8")


def test_a_type_by_its_text():
    assert type_of_text("tile_buf", "vec, 16x64xf32") == TileBufType("vec", "float32", 16, 64)
