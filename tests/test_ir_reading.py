"""Reading text: where things stand, what an error says, and that nothing breaks it."""

import random
import re
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ir_programs import Pick, by_seed, kernel
from ptokit import ir
from ptokit.errors import PtoError, PtoTypeError
from ptokit.findings import Severity
from ptokit.ir import reading

TILE = "!pto.tile_buf<vec, 16x64xf32>"
PROGRAM = """module {
  func.func @update(%table: !pto.ptr<f32>, %n: index) {
    %c1 = arith.constant 1 : index
    %v = pto.make_tensor_view %table,
         shape = [%n, %c1], strides = [%c1, %c1]
         : !pto.tensor_view<?x?xf32>
    %src = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>
    %idx = pto.alloc_tile : !pto.tile_buf<vec, 1x16xi32>
    %mem = pto.partition_view %v, offsets = [%n, %n], sizes = [%n, %n] : !pto.tensor_view<?x?xf32>
    scf.for %i = %c1 to %n step %c1 {
      pto.mscatter ins(%src, %idx : !pto.tile_buf<vec, 16x64xf32>, !pto.tile_buf<vec, 1x16xi32>)
        outs(%mem : !pto.partition_tensor_view<?x?xf32>) {coalesce = #pto<coalesce row>,
        coalesc = 3 : i32}
    }
    return
  }
}
"""


def parse(text, file="<text>", lenient=False):
    """By the reader of the dialect alone: the documents' own forms have theirs, and tests of their own."""
    got = reading.read(text, file, lenient=lenient)
    return ir.Module(got.op, text, file, "dps", got.findings, got.places, got.names)


def refused(text, **keywords):
    """The one finding of a text that cannot be read, and the characters that it shows."""
    with pytest.raises(ir.ParseError) as error:
        parse(text, **keywords)
    assert error.value.__cause__ is None  # one of xDSL's own would be an error that nobody thought of
    (found,) = error.value.findings
    assert found.severity is Severity.ERROR and found.id.startswith("PTO-P")
    at = found.where.column - found.facts.get("line_text_from", 1)
    return found, found.facts["line_text"][at:][: found.facts["length"]]


def op_called(module, name):
    return next(op for op in module.walk() if op.name == name)


# Places


def test_an_op_stands_at_its_name():
    module = parse(PROGRAM)
    where = module.where(op_called(module, "pto.mscatter"))
    assert (where.file, where.line, where.column) == ("<text>", 11, 7)
    where = module.where(op_called(module, "pto.make_tensor_view"))
    assert (where.line, where.column) == (4, 10)


@pytest.mark.parametrize(
    ("token", "line", "column"),
    [
        ("src", 11, 24),
        ("idx", 11, 30),
        ("mem", 12, 14),
        ("%idx", 11, 30),
        ("coalesce", 12, 59),
        ("coalesc", 13, 9),
        ("scatterOob", 11, 7),
    ],
)
def test_a_token_of_an_op_has_its_own_place(token, line, column):
    module = parse(PROGRAM)
    where = module.where(op_called(module, "pto.mscatter"), token)
    assert (where.line, where.column) == (line, column)


def test_every_op_has_a_place_and_what_was_made_has_that_of_what_holds_it():
    module = parse(PROGRAM)
    for op in module.walk():
        start, end = module.span(op)
        assert module.source[start:end].split(".")[-1] == op.name.split(".")[-1] or op.name == "scf.yield"
    ended = op_called(module, "scf.yield")  # implied by the closing brace
    assert module.where(ended) == module.where(ended.parent_op())
    assert ir.Module(module.op).where(ended) is None


def test_an_endpoint_of_a_flag_has_its_place():
    module = parse("pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]")
    assert module.where(module.op.body.block.first_op, "event_id").column == 37


def test_a_finding_shows_its_line_and_token():
    module = parse(PROGRAM, file="kernel.pto")
    found = module.finding("PTO-P010", Severity.ERROR, "No.", op_called(module, "pto.mscatter"), "coalesc", target="a5")
    assert str(found.where) == "kernel.pto:13:9" and found.target == "a5"
    line, length = found.facts["line_text"], found.facts["length"]
    assert line[found.where.column - 1 :][:length] == "coalesc = 3 : i32"
    nowhere = ir.Module(module.op).finding("PTO-P010", Severity.NOTE, "No.", module.op)
    assert nowhere.where is None


def test_values_keep_their_names():
    module = parse(
        "%two:2 = scf.if %b -> (i32, i32) { scf.yield %x, %x : i32, i32 } else { scf.yield %x, %y : i32, i32 }"
    )
    op = op_called(module, "scf.if")
    assert [module.name(value) for value in op.results] == ["two.0", "two.1"]
    assert module.name(op.cond) == "b"


# Errors

REFUSED = [
    ("pto.mscater ins()", "PTO-P002", "pto.mscater", "Did you mean 'pto.mscatter'?"),
    ("func.fun @f() {}", "PTO-P002", "func.fun", "Did you mean 'func.func'?"),
    ("%a = arith.mull %b, %c : i32", "PTO-P002", "arith.mull", "Did you mean 'arith.muli'?"),
    ('"pto.mscater"() : () -> ()', "PTO-P002", '"pto.mscater"', "Did you mean 'pto.mscatter'?"),
    ("func.func @f() {\n  pto.set_validshape %t, %n, %n : f32\n  return\n}", "PTO-P004", "%t", "%t is not defined."),
    (
        "func.func @f(%index: index) {\n  %x = arith.addi %indx, %index : index\n  return\n}",
        "PTO-P004",
        "%indx",
        "%indx is not defined. Did you mean 'index'?",
    ),
    (
        "func.func @f() {\n  %x = arith.addi %y, %y : i32\n  %y = arith.constant 1 : i32\n  return\n}",
        "PTO-P004",
        "%y",
        "before it is defined",
    ),
    (
        "func.func @f(%b: i1) {\n  pto.tsync ins(%y : i32)\n  scf.if %b {\n    %y = arith.constant 1 : i32\n  }\n"
        "  return\n}",
        "PTO-P004",
        "%y",
        "outside of where it is",
    ),
    (
        "func.func @f() {\n  scf.if %b {\n    %b = arith.constant true\n  }\n  return\n}",
        "PTO-P004",
        "%b",
        "inside the op that uses it",
    ),
    ("%a = pto.get_block_idx\n%a = pto.get_block_num", "PTO-P012", "%a", "%a is defined twice."),
    ("pto.tload ins(%a, %b : f32, f32) outs(%c : f32)", "PTO-P005", "(", "takes src in ins, not 2"),
    ("pto.tadd ins(%a, %b : f32) outs(%c : f32)", "PTO-P005", "%b", "2 operands are followed by 1 types."),
    ("%x = pto.dsb", "PTO-P005", "%x", "pto.dsb has 0 results; 1 are named."),
    ("%x, %y = pto.get_block_idx", "PTO-P005", "%x", "has 1 result; 2 are named."),
    ("%a = pto.get_block_idx\npto.tsync ins(%a#1 : i64)", "PTO-P005", "%a", "there is no %a#1"),
    (
        "%a = pto.get_block_idx\npto.tsync ins(%a : i32)",
        "PTO-P012",
        "%a",
        "%a is i32 here, and i64 where it is defined",
    ),
    (
        "%v = pto.make_tensor_view %p, shape = [%n], strides = [%n] : !pto.tensor_view<?x?xf32>",
        "PTO-P005",
        "!pto.tensor_view",
        "1 extents and 1 strides for 2 dimensions",
    ),
    ("pto.set_flag[<PIPE_V>, <PIPE_W>, <EVENT_ID0>]", "PTO-P003", "PIPE_W", "Unknown pipe 'PIPE_W'"),
    ("pto.set_flag[<PIPE_V>, <PIPE_S>, <EVENT_ID8>]", "PTO-P003", "EVENT_ID8", "Did you mean 'EVENT_ID"),
    ("pto.barrier [PIPE_V]", "PTO-P001", "[", "A pipe is wanted here"),
    ("pto.dsb {a = #pto<coalesce rwo>}", "PTO-P003", "rwo", "Did you mean 'row'?"),
    ("pto.dsb {a = #pto<coalesc row>}", "PTO-P003", "#pto<coalesc row>", "Did you mean 'coalesce'?"),
    ("pto.dsb {a = 1 : i32, a = 2 : i32}", "PTO-P001", "a = 2 : i32", "a is given twice."),
    ("pto.alloc_tile adr = %x : f32", "PTO-P001", "adr", "Did you mean 'addr'?"),
    (
        "%t = pto.alloc_tile valid_col = %c valid_row = %r : !pto.tile_buf<vec, 16x64xf32, valid=?x?>",
        "PTO-P001",
        "valid_row",
        "'valid_row' stands out of its order",
    ),
    (
        "pto.tload ins(%a : f32) outs(%c : f32) right_padding_num = %r : index left_padding_num = %l : index",
        "PTO-P001",
        "left_padding_num",
        "'left_padding_num' stands out of its order",
    ),
    ('"pto.mscatter"(%a) : (f32) -> ()', "PTO-P012", '"pto.mscatter"', "Expected 3 operands, but got 1."),
    ('"pto.set_flag"() : () -> ()', "PTO-P012", '"pto.set_flag"', "Property 'src_pipe' expected"),
    ('"scf.for"() : () -> ()', "PTO-P012", '"scf.for"', "Expected at least 3 operands"),
    ('%t = "pto.alloc_tile"() : () -> f32', "PTO-P012", '"pto.alloc_tile"', "operandSegmentSizes"),
    (
        '"func.func"() <{sym_name = "f", function_type = (i32) -> ()}> ({\n^bb0(%a: i64):\n'
        '  "func.return"() : () -> ()\n}) : () -> ()',
        "PTO-P012",
        '"func.func"',
        "@f has other arguments",
    ),
    ("pto.tload ins(%a : f32", "PTO-P001", "", "')' expected."),
    ('pto.dsb {a = "b', "PTO-P001", '"', "This string does not end on its line."),
    ("pto.dsb é", "PTO-P001", "é", "Unexpected character 'é'."),
    ("pto.dsb\0", "PTO-P001", "\0", "a zero byte"),
    ("arith.constant", "PTO-P001", "", "Attribute expected."),
    ("}", "PTO-P001", "}", "An op is wanted here."),
    ("func.func @f() {", "PTO-P001", "", "and a '}' is missing"),
    (
        "func.func @f() {\n  cf.br ^a\n}",
        "PTO-P004",
        "^a",
        "^a is not defined.",
    ),
    ("arith.constant 5 : i99999999", "PTO-P009", "i99999999", "too wide"),
    (f"arith.constant {'9' * 5000} : i64", "PTO-P009", None, "5000 digits"),
    ("%a:5000 = pto.dsb", "PTO-P009", "%a", "5000 results"),
    (f"%a = pto.arg : !pto.tensor_view<{'8x' * 65}f32>", "PTO-P009", None, "65 dimensions are too many"),
    (f"%a = pto.arg : memref<4xf32, affine_map<(d) -> (d{' + d' * 999})>>", "PTO-P009", "a", "affine map has"),
    (
        "!t0 = tuple<i32>\n" + "".join(f"!t{i + 1} = tuple<!t{i}, !t{i}>\n" for i in range(60)) + "%a = pto.arg : !t60",
        "PTO-P009",
        None,
        "stands for",
    ),
    ("arith.constant dense<0> : tensor<99999999xi8>", "PTO-P009", "tensor", "99999999 elements"),
]


@pytest.mark.parametrize(("text", "rule", "token", "says"), REFUSED)
def test_an_error_has_its_id_its_place_and_one_sentence(text, rule, token, says):
    found, shown = refused(text)
    assert found.id == rule
    assert says in found.message
    assert re.fullmatch(r"[^\n]*[.?]", found.message)
    if token is not None:
        assert shown == token
        assert text.split("\n")[found.where.line - 1].startswith(token, found.where.column - 1)


def test_the_error_is_one_of_the_package_with_its_place_in_the_text():
    with pytest.raises(PtoError) as error:
        parse("pto.dsb\n  pto.dbs\n", file="a.pto")
    assert str(error.value).startswith("a.pto:2:3: error PTO-P002: Unknown op 'pto.dbs'.")
    assert isinstance(error.value, ValueError)


def test_the_block_after_a_jump_may_define_what_the_text_uses_before():
    text = """
    func.func @f(%p: !pto.ptr<f32>, %i: index) {
      cf.br ^later
    ^sooner:
      pto.store_scalar %x, %p[%i] : <f32>, f32
      return
    ^later:
      %x = arith.constant 1.0 : f32
      cf.br ^sooner
    }
    """
    module = parse(text)
    assert parse(module.to("dps")).says_the_same(module)


def test_a_function_does_not_see_the_values_of_another():
    text = "func.func @f(%n: index) {\n return\n}\nfunc.func @g() {\n pto.tsync ins(%n : index)\n return\n}"
    found, shown = refused(text)
    assert (found.id, shown, found.where.line) == ("PTO-P004", "%n", 5)


def test_what_a_text_without_a_function_does_not_define_is_an_argument():
    module = parse(f"pto.tabs ins(%a : {TILE}) outs(%d : {TILE})")
    assert [op.name for op in module.walk()] == ["pto.arg", "pto.arg", "pto.tabs"]
    assert [(f.id, f.severity) for f in module.findings] == [("PTO-P004", "note")] * 2
    again = parse(module.to("dps"))
    assert again.says_the_same(module) and not again.findings


# Comments and the like


def test_comments_of_both_kinds_and_semicolons_are_blank():
    text = "# PTO-AS\n#no blank after it\npto.dsb; // MLIR\n  # indented\npto.dcci  ## twice\n;;\n"
    assert [op.name for op in parse(text).walk()] == ["pto.dsb", "pto.dcci"]


def test_an_attribute_at_the_beginning_of_a_line_is_no_comment():
    text = "#row = #pto<coalesce row>\npto.dsb {a =\n#pto<coalesce row>, b =\n#row}"
    op = parse(text).op.body.block.first_op
    assert op.attributes["a"] == op.attributes["b"]


def test_line_ends_of_other_systems_and_a_mark_at_the_beginning():
    module = ir.parse("\ufeffpto.dsb\r\npto.dcci\r\n")
    assert [module.where(op).line for op in module.walk()] == [1, 2]


def test_an_empty_text_is_an_empty_module():
    assert parse("// nothing\n").to("dps") == "module {\n}\n"


# Files


def test_a_file_by_its_path_and_by_its_name(tmp_path):
    path = tmp_path / "kernel.pto"
    path.write_text("pto.dsb\npto.dbs\n")
    for source in (path, str(path)):
        with pytest.raises(ir.ParseError) as error:
            ir.parse(source)
        assert error.value.findings[0].where.file == str(path)


def test_what_cannot_be_read_is_a_finding_too(tmp_path):
    with pytest.raises(ir.ParseError, match="cannot be read"):
        ir.parse(tmp_path / "none.pto")
    with pytest.raises(ir.ParseError, match="cannot be read"):
        ir.parse(tmp_path)
    path = tmp_path / "binary"
    path.write_bytes(b"pto.dsb\n  \xff\xfe")
    with pytest.raises(ir.ParseError, match="UTF-8") as error:
        ir.parse(path)
    assert (error.value.findings[0].where.line, error.value.findings[0].where.column) == (2, 3)
    with pytest.raises(PtoTypeError, match="a text or a Path is wanted, not a bytes"):
        ir.parse(b"pto.dsb")


# Lenient

UNKNOWN = """module {
  func.func @k(%a: !pto.ptr<f32>, %n: index) {
    %t = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>
    %x, %y = pto.mystery %t, %n : !pto.tile_buf<vec, 16x64xf32>, index
       -> !pto.weird<3>
    pto.other ins(%t : !pto.tile_buf<vec, 16x64xf32>)
      outs(%x : !pto.tile_buf<vec, 16x64xf32>) {
      a = 3 : i32
    }
    other.region {
      %z = foo.bar %t
      pto.dsb
    }
    pto.tabs ins(%x : !pto.tile_buf<vec, 16x64xf32>) outs(%t : !pto.tile_buf<vec, 16x64xf32>)
    %q = "foo.generic"(%n) {x = 1 : i32} : (index) -> index
    %w = memref.load %a[%q] : memref<3xf32>
    %u = pto.arg : !pto.strange<7>
    pto.last
    return
  }
}
"""


def test_lenient_reading_skips_what_it_does_not_know():
    module = parse(UNKNOWN, lenient=True)
    skipped = [op for op in module.walk() if op.name == "pto.skipped"]
    names = ["pto.mystery", "pto.other", "other.region", "foo.generic", "memref.load", "pto.last"]
    assert [op.op_name.data for op in skipped] == names
    assert [(f.id, f.severity, f.message) for f in module.findings] == [
        ("PTO-P002", "note", f"Unknown op {name!r}, skipped.") for name in names
    ]
    known = op_called(module, "pto.tabs")
    assert known.sources[0] is skipped[0].results[0] and str(known.sources[0].type) == TILE
    assert module.where(skipped[4]).line == 16


def test_skipped_ops_are_printed_as_they_were():
    module = parse(UNKNOWN, lenient=True)
    printed = module.to("dps")
    assert "%x, %y = pto.mystery %t, %n : !pto.tile_buf<vec, 16x64xf32>, index\n      -> !pto.weird<3>\n" in printed
    for form in ("dps", "generic"):
        again = parse(module.to(form), lenient=True)
        assert again.says_the_same(module) and again.to("dps") == printed
    assert refused(printed)[0].id == "PTO-P002"


def test_lenient_reading_still_refuses_what_is_wrong():
    assert refused("pto.other {", lenient=True)[0].message == "This op does not end: a bracket is not closed."
    assert refused("pto.other )", lenient=True)[1] == ")"


# Robustness

SECONDS = 120.0  # a guard against hanging, not a measurement


def guarded(text, lenient=False):
    """Read it; an error is a finding with a place. Gives the module or None."""
    began = time.monotonic()
    try:
        return ir.parse(text + "\n", lenient=lenient)
    except ir.ParseError as error:
        for found in error.findings:
            assert found.where.line >= 1 and found.where.column >= 1
            assert found.facts["length"] >= 1 and "\n" not in found.facts["line_text"]
            assert len(found.facts["line_text"]) <= 240
            assert len(str(found)) < 2000
        return None
    finally:
        assert time.monotonic() - began < SECONDS


# fmt: off
WORDS = (
    "%", "!pto.", "#pto<", "<", ">", "{", "}", "(", ")", "[", "]", "->", ",", ":", "=", "ins", "outs", '"',
    "0x", "-1", "99999999999999999999", "i99999", "dense<0>", "affine_map<", "x", "?", "//", "#", "@", "^bb0",
    "...", "{-#", "#-}", "loc(", "true", "1e5", "1.0", "tensor<8xf32>", "index", "none", "vector<", "module",
    "func.func", "scf.for", "scf.while", "scf.if", "cf.br", "return", "arith.constant", "attributes", "!",
    '"pto.mscatter"', "strided<", "complex<", "tuple<", "array<i32:", "opaque<", "%0#1", "%a:2", '\\', '\x01',
    "é", "½",
)
# fmt: on


def mutated(pick, text):
    """The text with some damage."""
    for _ in range(pick.choice((1, 1, 1, 2, 3, 8))):
        a, b = sorted(pick.randrange(len(text) + 1) for _ in range(2))
        b = min(b, a + 40)
        words = [found.span() for found in re.finditer(r"[\w.]+", text)] or [(0, 0)]
        (start, end), (other, last) = pick.choice(words), pick.choice(words)
        text = pick.choice(
            (
                text[:a] + text[b:],
                text[:a],
                text[:a] + pick.choice(WORDS) + text[a:],
                text[:a] + pick.choice(WORDS) + text[b:],
                text[:a] + text[a:b] * pick.randrange(2, 5) + text[b:],
                text[:a] + chr(pick.randrange(1, 0x2FF)) + text[a + 1 :],
                text[:start] + text[other:last] + text[end:],
            )
        )
    return text


@pytest.mark.parametrize("seed", range(8))
def test_mutations_are_findings_and_what_is_read_can_be_printed(seed):
    pick = random.Random(seed)
    bases = [PROGRAM, UNKNOWN, kernel(Pick(seed)).to("dps")]
    bases += [by_seed(8 * seed + i, 12).to(form) for i, form in enumerate(("dps", "dps", "generic"))]
    for _ in range(400):
        module = guarded(mutated(pick, pick.choice(bases)), lenient=pick.random() < 0.25)
        if module is not None:
            for form in ("dps", "generic"):
                assert module.to(form)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=200), st.booleans())
def test_any_text_is_read_or_refused(text, lenient):
    guarded(text, lenient)


@pytest.mark.parametrize("cut", range(0, len(PROGRAM), 7))
def test_a_text_that_ends_too_early(cut):
    guarded(PROGRAM[:cut])


def test_random_bytes(tmp_path):
    path = tmp_path / "noise"
    for seed in range(20):
        path.write_bytes(random.Random(seed).randbytes(5000))
        with pytest.raises(ir.ParseError):
            ir.parse(path)


@pytest.mark.parametrize(
    "bracket", ["{", "(", "[", "<", "pto.section.vector {", "scf.if %b {", "dense<[", '"a"(', "f("]
)
def test_deep_nesting_is_too_deep_and_nothing_worse(bracket):
    for count in (40, 60, 5000):
        assert guarded(bracket * count) is None
    found, _ = refused(bracket * 5000)
    assert found.id in ("PTO-P009", "PTO-P002", "PTO-P001")


def test_nesting_that_is_read_is_also_printed():
    module = parse("pto.section.vector {" * 40 + "}" * 40)
    assert parse(module.to("dps")).says_the_same(module)


def test_a_caller_that_is_deep_itself_gets_a_finding():
    text = "pto.section.vector {" * 40 + "}" * 40
    found = []

    def descend(depth):
        if depth:
            return descend(depth - 1)
        return guarded(text)

    def run():
        for depth in range(0, sys.getrecursionlimit() - 100, 50):
            try:
                descend(depth)
            except RecursionError:  # of `descend`, and then of everything
                found.append(depth)
                break

    ir.parse("pto.dsb")
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert not found or found[0] > 600


@pytest.mark.parametrize(
    "text",
    [
        "pto.dsb " + "x" * 10_000_000,
        " " * 10_000_000,
        "(" * 900_000,
        "#" * 900_000,
        "#a\n" * 100_000,
        '"' * 500_000,
        "%" * 500_000,
        "pto.dsb {a = [" + "1, " * 20_000 + "1]}",
        "arith.constant affine_map<() -> (" + "-" * 20_000 + "1)>",
        "pto.dsb {a = " + "-" * 100_000 + "1}",
        "pto.dsb // x\n" * 20_000,
        "a\n" * 9_000_000,
    ],
    ids=lambda text: f"{text[:16]!r}",
)
def test_long_lines_and_long_texts_take_no_long_time(text):
    guarded(text)


@pytest.mark.parametrize("body", ["Ax" * 60, "1x" * 60, "AxAxxA" * 20, "x1x" * 60])
@pytest.mark.parametrize("name", ["tile_buf", "tensor_view", "ptr", "tile"])
def test_what_is_nearly_a_placeholder_takes_no_long_time(name, body):
    guarded(f"%a = pto.arg : !pto.{name}<{body}$>")
    guarded(f"mscatter.row %t, %s, %i : (!pto.memref<...>, !pto.tile<...>, !pto.{name}<{body}$>)")


def test_a_long_line_is_shown_in_part():
    text = "pto.dsb {" + ", ".join(f"a{i} = 1 : i32" for i in range(1000)) + ", b = #pto<coalesce rwo>}"
    found, shown = refused(text)
    assert shown == "rwo" and len(found.facts["line_text"]) == 240
    assert found.facts["line_text_from"] > 1000


def test_reading_leaves_nothing_of_xdsl_behind_in_the_message():
    found, _ = refused("arith.constant 5 : f3")
    assert "xdsl" not in str(found).lower() and "Traceback" not in str(found)


def test_the_package_does_not_load_xdsl_by_itself():
    import subprocess

    code = "import sys, ptokit; sys.exit('xdsl' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_base_reader_reads_without_the_documents():
    got = reading.read(PROGRAM, str(Path("x.pto")))
    assert not got.generic and not got.findings and got.names
