"""Would the public assembler (PTOAS 0.60) take it? Its own rules, narrower here and wider there than a target's.

A rule is a row: id, the ops it is about, what it needs, the sentence, the fix. The facts were read off that assembler's
behaviour; unknown attributes are among what it lets pass, so they are a warning here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from xdsl.dialects import builtin
from xdsl.ir import Attribute, Operation, SSAValue

from ptokit.errors import listed
from ptokit.findings import Severity
from ptokit.ir.dialect import ops
from ptokit.ir.dialect.attributes import word
from ptokit.ir.dialect.types import (
    DocType,
    PartitionTensorViewType,
    TensorViewType,
    TileBufType,
    UnknownType,
)
from ptokit.ir.operands import Numbers, dtype_in
from ptokit.ir.places import Source
from ptokit.ir.structure import Structure, Told
from ptokit.tensors import DYNAMIC

if TYPE_CHECKING:
    from ptokit.ir.module import Module

TARGET = "ptoas"
OLDER_FORM = "PTO-P016"
MOST_RANK = 6
SMALL = frozenset({"float8_e4m3", "float8_e5m2", "hifloat8"})
MOVED = frozenset({"int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "bfloat16", "float32"})
WORDS = frozenset({"int32", "uint32"})
ATOMICS = {
    "add": frozenset({"int32", "uint32", "float16", "float32"}),
    "max": frozenset({"int32", "uint32", "float32"}),
    "min": frozenset({"int32", "uint32", "float32"}),
}
"""Which elements each atomic takes, on both architectures."""
OURS = (ops.DcciOp, ops.DsbOp, ops.ArgOp)
FORMS = {"dps": "its own form", "generic": "MLIR's generic form"}


@dataclass(frozen=True)
class OldSpelling:
    """What ptokit reads and the assembler does not: how it looks, and what to write."""

    pattern: re.Pattern[str]
    sentence: str
    fix: str


_SAID = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"')
"""Comments and strings, in which nothing is read."""

OLD_SPELLINGS = (
    OldSpelling(
        re.compile(r"!pto\.(?:event|group)\b"),
        "the type stands in the documents only.",
        "Name the operands themselves: a collective takes its tensors in group(..).",
    ),
    OldSpelling(
        re.compile(r"!pto\.tile_view\b"), "version 0.1.1 called it so.", "Write !pto.partition_tensor_view<..>."
    ),
    OldSpelling(re.compile(r"!pto\.tile_buf<\s*((?:loc\s*=\s*)?ub)\b"), "version 0.1.1 called it so.", "Write vec."),
    OldSpelling(
        re.compile(r"\]\s+(strides)\s*="), "there is no comma before strides.", "Write shape = [..], strides = [..]."
    ),
    OldSpelling(
        re.compile(r"pto\.(?:record|wait)_event\s*\[\s*(<\w+>)"),
        "the endpoints of an event are written in full.",
        "Write #pto.pipe_event_type<..>.",
    ),
    OldSpelling(re.compile(r"#(?![\w])[^\n]*"), "it is a comment of PTO-AS.", "Write // for a comment."),
    OldSpelling(re.compile(r";"), "a semicolon ends an op in PTO-AS only.", "Leave it out."),
)


@dataclass(frozen=True, eq=False)
class Asked:
    """One op, as a rule sees it."""

    module: Module
    op: Any
    arch: str
    numbers: Numbers = field(default_factory=Numbers)

    @property
    def is_a5(self) -> bool:
        """The assembler knows a3 and a5; without a word it takes a3."""
        return self.arch == "a5"

    @property
    def moved(self) -> frozenset[str]:
        """Elements that mscatter and mgather move."""
        return MOVED | SMALL if self.is_a5 else MOVED

    @property
    def tile(self) -> SSAValue:
        """The tile with the data."""
        found: SSAValue = self.op.src if isinstance(self.op, ops.MScatterOp) else self.op.dst
        return found

    @property
    def tile_name(self) -> str:
        """What the op calls it."""
        return "src" if isinstance(self.op, ops.MScatterOp) else "dst"

    @property
    def is_mat(self) -> bool:
        """A gather into the cube core's memory."""
        kind = self.tile.type
        return isinstance(self.op, ops.MGatherOp) and isinstance(kind, TileBufType) and kind.loc == "mat"


Broken = Callable[[Asked], "Iterator[tuple[str, str | None]]"]
"""Sentences, each with the token that it is about."""


@dataclass(frozen=True)
class Rule:
    """One line of what the assembler asks for."""

    id: str
    ops: tuple[type[Operation], ...]
    needs: str
    broken: Broken
    fix: str


def judged(module: Module) -> Iterator[Told]:
    """What the assembler would say, op by op."""
    arch = "a5" if module.arch == "a5" else "a3"
    structure = Structure(module, TARGET)
    broken: set[Operation] = set()
    for op, finding in structure.findings():
        if finding.severity is Severity.ERROR:
            broken.add(op)
        yield op, finding
    yield from _form(module)
    yield from _older(module)
    for op in module.walk():
        if op in broken or isinstance(op, ops.SkippedOp):
            continue
        asked = Asked(module, op, arch, structure.numbers)
        for rule in _rules_of(type(op)):
            for message, token in rule.broken(asked):
                facts = {"needs": rule.needs, "arch": arch}
                finding = module.finding(
                    rule.id, Severity.ERROR, message, op, token, target=TARGET, facts=facts, fix=rule.fix
                )
                yield op, finding


_KNOWN: dict[type[Operation], tuple[Rule, ...]] = {}


def _rules_of(kind: type[Operation]) -> tuple[Rule, ...]:
    found = _KNOWN.get(kind)
    if found is None:
        found = _KNOWN[kind] = tuple(rule for rule in RULES if issubclass(kind, rule.ops))
    return found


def _form(module: Module) -> Iterator[Told]:
    """The documents' forms are nobody's input."""
    first = next(module.walk(), None)
    if module.form in FORMS or first is None:
        return
    spoken = {"as": "PTO-AS", "ssa": "level 1 (SSA)"}.get(module.form, "several forms at once")
    message = f"This text is written in {spoken}; the assembler reads {listed(FORMS.values())}."
    fix = "Convert it: ptokit convert FILE --to dps."
    yield first, module.finding("PTO-P020", Severity.ERROR, message, first, target=TARGET, fix=fix)


def _older(module: Module) -> Iterator[Told]:
    """Spellings of the documents that were read as what they mean: the assembler reads what is written."""
    if module.form not in FORMS:
        return
    for note in module.findings:
        if note.id == OLDER_FORM:
            message = f"The assembler does not read this: {note.message}"
            yield module.op, replace(note, id="PTO-P022", severity=Severity.ERROR, target=TARGET, message=message)
    source = Source(module.source, module.file)
    plain = _SAID.sub(lambda found: " " * len(found[0]), module.source)
    for spelling in OLD_SPELLINGS:
        for found in spelling.pattern.finditer(plain):
            start, end = found.span(1) if found.re.groups else found.span()
            sentence = f"The assembler does not read this: {spelling.sentence}"
            finding = source.finding("PTO-P022", Severity.ERROR, sentence, start, end, spelling.fix)
            yield module.op, replace(finding, target=TARGET)


# The sentences


def _called(asked: Asked, value: SSAValue) -> str:
    return f"%{asked.module.name(value) or '?'}"


def ours(asked: Asked) -> Iterator[tuple[str, str | None]]:
    """Ops that ptokit has and the assembler has not."""
    if not isinstance(asked.op, ops.ArgOp):
        yield f"The assembler has no op {asked.op.name}.", None
    elif asked.module.form in FORMS:
        name = _called(asked, asked.op.value)
        yield f"{name} comes from outside; the assembler takes that as an argument of a function.", None


def real_types(asked: Asked) -> Iterator[tuple[str, str | None]]:
    """Types that only documents have, or that no op takes."""
    values = asked.op.operands if isinstance(asked.op, ops.ArgOp) else (*asked.op.operands, *asked.op.results)
    for value in values:
        kind = value.type
        if isinstance(kind, DocType) and not isinstance(kind, UnknownType):
            yield f"{asked.op.name}: no op of the assembler takes {_short(kind)}.", _called(asked, value)
        elif isinstance(kind, builtin.MemRefType):
            yield f"{asked.op.name}: memrefs are not taken any more ({_called(asked, value)}).", _called(asked, value)


def _short(kind: Attribute) -> str:
    return f"{str(kind)[:60]}"


def data_tile(asked: Asked) -> Iterator[tuple[str, str | None]]:
    """In vec, row_major, none_box."""
    kind = asked.tile.type
    if asked.is_mat or not isinstance(kind, TileBufType):
        return
    if (kind.loc, kind.blayout, kind.slayout) != ("vec", "row_major", "none_box"):
        seen = f"{kind.loc}, {kind.blayout}, {kind.slayout}"
        yield f"{asked.op.name}: {asked.tile_name} is {seen}; vec, row_major, none_box is wanted.", asked.tile_name


def index_tile(asked: Asked) -> Iterator[tuple[str, str | None]]:
    """In vec, none_box, 32-bit integers of any sign."""
    kind, held = asked.op.idx.type, dtype_in(asked.op.idx.type)
    is_boxed = isinstance(kind, TileBufType) and (kind.loc, kind.slayout) != ("vec", "none_box")
    if is_boxed and not asked.is_mat:
        yield f"{asked.op.name}: idx is {kind.loc}, {kind.slayout}; vec, none_box is wanted.", "idx"
    if held is not None and held not in WORDS:
        yield f"{asked.op.name}: idx holds {held}; a 32-bit integer is wanted.", "idx"


def memory(asked: Asked) -> Iterator[tuple[str, str | None]]:
    """A partition of any extents, rank 1 to 6."""
    kind = asked.op.mem.type
    if isinstance(kind, TensorViewType):
        yield f"{asked.op.name}: mem is a whole tensor_view; a partition_tensor_view is wanted.", "mem"
    elif isinstance(kind, PartitionTensorViewType) and len(kind.dims) > MOST_RANK:
        yield f"{asked.op.name}: mem has rank {len(kind.dims)}; 1 to {MOST_RANK} are taken.", "mem"


def elements(asked: Asked) -> Iterator[tuple[str, str | None]]:
    """An element that is moved, the same on both sides."""
    held, there = dtype_in(asked.tile.type), dtype_in(asked.op.mem.type)
    if held is not None and held not in asked.moved:
        more = "" if asked.is_a5 or held not in SMALL else "; on a5 it does"
        yield f"{asked.op.name}: the assembler does not move {held} for {asked.arch}{more}.", asked.tile_name
    if held is not None and there is not None and held != there:
        yield f"{asked.op.name}: {asked.tile_name} holds {held} and mem {there}; they must agree.", "mem"


def plain_view(asked: Asked) -> Iterator[tuple[str, str | None]]:
    """No `layout` of dn or nz on the view behind the memory; strides may say what they like."""
    value = asked.op.mem
    while isinstance(value.owner, ops.PartitionViewOp):
        value = value.owner.view
    if isinstance(value.owner, ops.MakeTensorViewOp) and word(value.owner.layout, "nd") != "nd":
        layout = word(value.owner.layout)
        yield f"{asked.op.name}: the view behind mem is written with layout {layout}; only nd is taken.", "mem"


def atomic_elements(asked: Asked) -> Iterator[tuple[str, str | None]]:
    """The atomic exists for the element."""
    atomic, held = word(asked.op.scatter_atomic_op), dtype_in(asked.tile.type)
    if atomic in ATOMICS and held is not None and held not in ATOMICS[atomic]:
        takes = listed(sorted(ATOMICS[atomic]))
        yield f"{asked.op.name}: {atomic} of {held} is refused; it takes {takes}.", "scatterAtomicOp"


def conflict_on_a5(asked: Asked) -> Iterator[tuple[str, str | None]]:
    """`scatterConflict` for a5 only."""
    if asked.op.scatter_conflict is not None and not asked.is_a5:
        yield f"{asked.op.name}: scatterConflict is refused for {asked.arch}; a5 has it.", "scatterConflict"


def _fits(extent: int, wanted: int) -> bool:
    return DYNAMIC in (extent, wanted) or extent == wanted


def _as_column(idx: TileBufType, rows: int, blayout: str) -> bool:
    """Valid `[R, 0|1]`."""
    return idx.blayout == blayout and _fits(idx.v_row, rows) and idx.v_col in (0, 1)


def _as_row(idx: TileBufType, rows: int) -> bool:
    """Valid `[0|1, R]`, row_major."""
    return idx.blayout == "row_major" and idx.v_row in (0, 1) and _fits(idx.v_col, rows)


def _as_tile(idx: TileBufType, tile: TileBufType) -> bool:
    return _fits(idx.v_row, tile.v_row) and _fits(idx.v_col, tile.v_col)


def mode_given(asked: Asked) -> Iterator[tuple[str, str | None]]:
    """A gather says its mode; a scatter may leave it out only where the shapes say it and nothing else is asked."""
    op, idx, tile = asked.op, asked.op.idx.type, asked.tile.type
    if asked.module.form not in FORMS or asked.module.is_written(op, "coalesce"):
        return
    if isinstance(op, ops.MGatherOp):
        yield f"{op.name}: coalesce is not given; the assembler wants it.", None
        return
    policies = ("scatterAtomicOp", "scatterOob", "scatterConflict")
    others = [name for name in policies if asked.module.is_written(op, name)]
    if others:
        yield f"{op.name}: coalesce is not given, and {others[0]} is; then the assembler wants it.", others[0]
    elif (
        isinstance(idx, TileBufType)
        and isinstance(tile, TileBufType)
        and not (_as_column(idx, tile.v_row, "row_major") or _as_tile(idx, tile))
    ):
        message = (
            f"{op.name}: coalesce is not given, and idx is valid {_valid(idx)}; then it has to be "
            f"{_extent(tile.v_row)}x1 row_major, or {_valid(tile)} as the tile is."
        )
        yield message, "idx"


def _extent(number: int) -> str:
    return "?" if number == DYNAMIC else str(number)


def _valid(tile: TileBufType) -> str:
    return f"{_extent(tile.v_row)}x{_extent(tile.v_col)}"


def index_shape(asked: Asked) -> Iterator[tuple[str, str | None]]:
    """Row: one index a row, in a row, or column by column; Elem: one an element."""
    op, idx, tile = asked.op, asked.op.idx.type, asked.tile.type
    mode = word(op.coalesce) if asked.module.is_written(op, "coalesce") else None
    if mode is None or asked.is_mat or not (isinstance(idx, TileBufType) and isinstance(tile, TileBufType)):
        return
    rows, seen = tile.v_row, f"idx is valid {_valid(idx)} {idx.blayout}"
    if mode == "row" and not (_as_row(idx, rows) or _as_column(idx, rows, "col_major")):
        wanted = f"1x{_extent(rows)} row_major or {_extent(rows)}x1 col_major"
        yield f"{op.name}: {seen}; row wants {wanted}.", "idx"
    if mode == "elem" and not _as_tile(idx, tile):
        yield f"{op.name}: {seen}; elem wants {_valid(tile)}, as the tile is.", "idx"


def gather_to_mat(asked: Asked) -> Iterator[tuple[str, str | None]]:
    """A destination in mat: indices in GM, an NZ tile of whole fractals, a scratch tile for elem."""
    op, kind = asked.op, asked.op.dst.type
    if not asked.is_mat:
        if op.scratch is not None:
            yield f"{op.name}: a scratch tile is for a destination in mat; dst is in vec.", "scratch"
        return
    if not isinstance(op.idx.type, PartitionTensorViewType):
        yield f"{op.name}: for a destination in mat idx lies in GM, a partition_tensor_view.", "idx"
    if (kind.blayout, kind.slayout, kind.fractal) != ("col_major", "row_major", 512):
        yield f"{op.name}: a destination in mat is col_major, row_major, fractal 512.", "dst"
    width = 32 // max(_size(kind.dtype), 1)
    if kind.rows % 16 or kind.cols % width:
        yield f"{op.name}: {kind.rows} x {kind.cols} is not made of fractals of 16 x {width}.", "dst"
    mode = word(op.coalesce)
    if mode == "elem" and (op.scratch is None or dtype_in(op.scratch.type) != kind.dtype):
        yield (
            f"{op.name}: elem into mat needs a scratch tile of {kind.dtype}.",
            None if op.scratch is None else "scratch",
        )
    if mode == "row" and op.scratch is not None:
        yield f"{op.name}: row into mat takes no scratch tile.", "scratch"


def _size(dtype: str) -> int:
    digits = "".join(one for one in dtype.split("_")[0] if one.isdigit())
    return int(digits) // 8 if digits else 4


def fractal_known(asked: Asked) -> Iterator[tuple[str, str | None]]:
    """32, 512 or 1024."""
    for value in asked.op.results:
        if isinstance(value.type, TileBufType) and value.type.fractal == 16:
            yield f"{asked.op.name}: fractal 16 was taken by older versions only; 32, 512 and 1024 are.", None


def static_collective(asked: Asked) -> Iterator[tuple[str, str | None]]:
    """Source and group are views of static extents; the staging tile is static and in vec."""
    first, tiles, members = asked.op.given_operands
    for value in (*first, *members):
        if DYNAMIC in (getattr(value.type, "dims", None) or ()):
            yield (
                f"{asked.op.name}: {_called(asked, value)} has a dynamic extent; only static ones are taken.",
                _called(asked, value),
            )
    for value in tiles:
        kind = value.type
        if isinstance(kind, TileBufType) and (kind.loc != "vec" or DYNAMIC in kind.valid):
            yield f"{asked.op.name}: {_called(asked, value)} is no static tile in vec.", _called(asked, value)
    if asked.op.root_rank is None:
        yield f"{asked.op.name}: the root is not given.", None


# The table

ACCESSES = (ops.MScatterOp, ops.MGatherOp)

RULES = (
    Rule(
        "PTO-P021", OURS, "an op of the assembler", ours, "Leave it to the kernel's C++: ptokit convert FILE --to cpp."
    ),
    Rule(
        "PTO-P022",
        (Operation,),
        "types of the assembler",
        real_types,
        "Use !pto.tile_buf<..> for tiles and !pto.partition_tensor_view<..> for memory.",
    ),
    Rule(
        "PTO-P023",
        ACCESSES,
        "a data tile in vec, row_major, none_box",
        data_tile,
        "Move the data to such a tile first (pto.tmov).",
    ),
    Rule(
        "PTO-P024",
        ACCESSES,
        "an index tile in vec, none_box, of 32-bit integers",
        index_tile,
        "Convert the indices to i32 (pto.tcvt), in a tile in vec.",
    ),
    Rule(
        "PTO-P025",
        ACCESSES,
        "memory as a partition_tensor_view of rank 1 to 6",
        memory,
        "Take a part of the view: pto.partition_view.",
    ),
    Rule(
        "PTO-P026",
        ACCESSES,
        "an element type that is moved, the same in tile and memory",
        elements,
        "Use a listed type, or move the bits as the integer of the same size.",
    ),
    Rule(
        "PTO-P027",
        ACCESSES,
        "a view without layout dn or nz",
        plain_view,
        "Leave the layout out, or use the C++ intrinsic.",
    ),
    Rule(
        "PTO-P028",
        (ops.MScatterOp,),
        "an atomic that exists for the element",
        atomic_elements,
        "Use a listed type, or combine the duplicates first.",
    ),
    Rule(
        "PTO-P029",
        (ops.MScatterOp,),
        "scatterConflict for a5 only",
        conflict_on_a5,
        'Leave it out, or say pto.target_arch = "a5".',
    ),
    Rule(
        "PTO-P030",
        ACCESSES,
        "coalesce given (a plain scatter with idx [R,1] or as the tile may leave it out)",
        mode_given,
        "Write {coalesce = #pto<coalesce row>} or elem; ptokit convert FILE --to dps prints it.",
    ),
    Rule(
        "PTO-P031",
        ACCESSES,
        "row: idx [1,R] row_major or [R,1] col_major; elem: idx as the tile",
        index_shape,
        "Give the index tile the valid extents that the mode wants.",
    ),
    Rule(
        "PTO-P032",
        (ops.MGatherOp,),
        "a gather to mat as the cube core wants it; no scratch for vec",
        gather_to_mat,
        "See the op's rules for mat, or gather into a tile in vec.",
    ),
    Rule(
        "PTO-P033",
        ops.COMM_OPS,
        "static views, static tiles in vec, a root",
        static_collective,
        "Write the extents as numbers, and {root = 0 : i32}.",
    ),
    Rule(
        "PTO-P034",
        (ops.AllocTileOp, ops.TAssignOp),
        "fractal 32, 512 or 1024",
        fractal_known,
        "Write fractal=512, or leave it out.",
    ),
)
"""GRAMMAR 6, line by line."""
