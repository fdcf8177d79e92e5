"""Programs of the dialect, made at random: whatever the grammar allows (`program`), and kernels that run (`kernel`).

A choice is made by a `Pick`: of `random.Random` (`by_seed`), or of hypothesis (`modules`, `kernels`), which shrinks.
"""

import random
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr, i32
from xdsl.ir import Block, Region

from ptokit.core.vector import FORMS, OPS
from ptokit.ir import build
from ptokit.ir.dialect import attributes as attrs
from ptokit.ir.dialect.types import PtrType, TensorViewType, TileBufType, spelling_of

DTYPES = ("float32", "float16", "bfloat16", "int32", "uint32", "int8", "uint8", "int16", "uint16", "hifloat8", "si32")
SCALARS = {"float32", "float16", "bfloat16", "int32", "int8", "int16", "int64"}
PIPES = ("S", "V", "MTE2", "MTE3", "ALL")


class Pick:
    """Choices by a seed."""

    def __init__(self, seed=0):
        self.random = random.Random(seed)

    def number(self, low, high):
        return self.random.randint(low, high)

    def one(self, choices):
        return self.random.choice(list(choices))

    def maybe(self):
        return self.random.random() < 0.5


class DrawnPick(Pick):
    """Choices by hypothesis."""

    def __init__(self, draw):
        self.draw = draw

    def number(self, low, high):
        return self.draw(st.integers(low, high))

    def one(self, choices):
        return self.draw(st.sampled_from(list(choices)))

    def maybe(self):
        return self.draw(st.booleans())


@dataclass
class Values:
    """What an op of a program may use."""

    index: list[Any]
    pointers: list[Any]
    views: list[Any]
    parts: list[Any]
    tiles: list[Any]
    addresses: list[Any]

    def inside(self):
        return Values(*(list(getattr(self, name)) for name in self.__dataclass_fields__))


def a_type(pick):
    """Any type of a tile."""
    rows, cols = pick.one((1, 2, 8, 16, 32)), pick.one((1, 8, 16, 64))
    v_row = pick.one((None, -1, 1, rows))
    v_col = pick.one((None, -1, cols))
    return TileBufType(
        pick.one(("vec", "vec", "vec", "mat", "left", "acc")),
        pick.one(DTYPES),
        rows,
        cols,
        v_row,
        v_col,
        pick.one(("row_major", "col_major")),
        pick.one(("none_box", "none_box", "row_major")),
        pick.one((512, 512, 32, 1024)),
        pick.one((0, 0, 1, 2, 3)),
        pick.one((0, 0, 0, 2)),
    )


def extra(pick):
    """Attributes that no op has."""
    if not pick.one((False, False, True)):
        return None
    return {pick.one(("foo", "pto.note", "coalesc")): pick.one((UnitAttr(), IntegerAttr(4, i32), StringAttr('a "b"')))}


def constant(pick, dtype):
    value = pick.number(-5, 100) if "int" in dtype else pick.one((0.0, 1.5, -2.25, 1e-7, 3.0))
    return build.constant(value, dtype)


class Program:
    """Ops into a block, one after the other."""

    def __init__(self, pick, block, values, depth=0):
        self.pick, self.block, self.values, self.depth = pick, block, values, depth
        self.count = 0

    def add(self, op, name=None):
        self.block.add_op(op)
        for result in op.results:
            result.name_hint = name
        return op.results[0] if op.results else None

    def ops(self, most):
        for _ in range(self.pick.number(1, most)):
            getattr(self, self.pick.one(STEPS))()

    def some(self, kind, make):
        have = getattr(self.values, kind)
        return self.pick.one(have) if have else make()

    def index(self):
        made = self.add(build.constant(self.pick.number(0, 200)), self.pick.one(("c", None, "i")))
        self.values.index.append(made)
        return made

    def an_index(self):
        return self.some("index", self.index)

    def address(self):
        made = self.add(build.constant(32 * self.pick.number(0, 64), "int64"))
        self.values.addresses.append(made)
        return made

    def view(self):
        pick = self.pick
        pointer = self.some("pointers", self.pointer)
        rank = pick.number(1, 5)
        extents = [self.an_index() for _ in range(rank)]
        steps = [self.an_index() for _ in range(rank)]
        dims = tuple(pick.one((-1, 1, 8, 64, 1024)) for _ in range(rank))
        kind = pick.one((None, TensorViewType(dims, pointer.type.elem)))
        layout = pick.one((None, "nd", "dn", "nz"))
        made = build.make_tensor_view(pointer, extents, steps, kind, layout=layout, attributes=extra(pick))
        self.values.views.append(self.add(made, pick.one((None, "view"))))
        return self.values.views[-1]

    def pointer(self):
        made = self.add(build.arg(PtrType(self.pick.one(DTYPES))))
        self.values.pointers.append(made)
        return made

    def part(self):
        view = self.some("views", self.view)
        rank = len(view.type.dims)
        begin, sizes = ([self.an_index() for _ in range(rank)] for _ in range(2))
        self.values.parts.append(self.add(build.partition_view(view, begin, sizes, attributes=extra(self.pick))))
        return self.values.parts[-1]

    def a_part(self):
        return self.some("parts", self.part)

    def tile(self):
        pick = self.pick
        kind = a_type(pick)
        row = self.an_index() if kind.v_row == -1 else None
        col = self.an_index() if kind.v_col == -1 else None
        addr = self.some("addresses", self.address) if pick.maybe() else None
        made = build.alloc_tile(kind, addr=addr, valid_row=row, valid_col=col, attributes=extra(pick))
        self.values.tiles.append(self.add(made, pick.one(("t", "tile_1", None))))
        return self.values.tiles[-1]

    def a_tile(self):
        return self.some("tiles", self.tile)

    def assign(self):
        self.values.tiles.append(self.add(build.tassign(self.a_tile(), self.some("addresses", self.address))))

    def shape(self):
        self.add(build.set_validshape(self.a_tile(), self.an_index(), self.an_index()))

    def load(self):
        self.add(build.tload(self.a_part(), self.a_tile(), attributes=extra(self.pick)))

    def store(self):
        atomic = self.pick.one(("none", "add"))
        factor = self.a_tile() if self.pick.maybe() else None
        quant = self.some("addresses", self.address) if self.pick.maybe() else None
        self.add(build.tstore(self.a_tile(), self.a_part(), fp=factor, quant=quant, atomic=atomic))

    def scatter(self):
        pick = self.pick
        self.add(
            build.mscatter(
                self.a_tile(),
                self.a_tile(),
                self.a_part(),
                coalesce=pick.one(("row", "elem", None)),
                atomic=pick.one(("none", "add", "max", "min")),
                oob=pick.one(("undefined", "skip", "clamp", "wrap")),
                conflict=pick.one((None, "last", "default")),
                attributes=extra(pick),
            )
        )

    def gather(self):
        pick = self.pick
        self.add(
            build.mgather(
                self.a_part(),
                self.a_tile(),
                self.a_tile(),
                scratch=self.a_tile() if pick.maybe() else None,
                coalesce=pick.one(("row", "elem", None)),
                oob=pick.one(("undefined", "clamp", "wrap", "zero")),
                attributes=extra(pick),
            )
        )

    def vector(self):
        pick = self.pick
        row = OPS[pick.one(OPS)]
        form = FORMS[row.form]
        sources = [self.a_tile() for _ in form.sources]
        given = {}
        for name in ("scalar", "first"):
            if name in form.options:
                given[name] = self.add(constant(pick, pick.one(sorted(SCALARS))))
        if row.modes and pick.maybe():
            given["mode"] = pick.one(row.modes)
        if "descending" in form.options and pick.maybe():
            given["descending"] = pick.maybe()
        self.add(build.vector(row.name, self.a_tile(), *sources, **given, attributes=extra(pick)))

    def flag(self):
        pick = self.pick
        make = pick.one((build.set_flag, build.wait_flag))
        self.add(make(pick.one(PIPES), pick.one(PIPES), pick.number(0, 7)))

    def event(self):
        pick = self.pick
        make = pick.one((build.record_event, build.wait_event))
        self.add(make(pick.one(("TLOAD", "TVEC")), pick.one(("TSTORE_VEC", "TVEC")), pick.number(0, 7)))

    def order(self):
        tile = self.a_tile()
        self.add(self.pick.one((build.barrier("V"), build.barrier(), build.dcci(), build.dsb(), build.tsync(tile))))

    def block(self):
        self.add(self.pick.one((build.get_block_idx, build.get_block_num))())

    def scalars(self):
        pointer = self.some("pointers", self.pointer)
        moved = self.add(build.addptr(pointer, self.an_index()))
        self.values.pointers.append(moved)
        loaded = self.add(build.load_scalar(moved, self.an_index()))
        self.add(build.store_scalar(loaded, pointer, self.an_index()))

    def collective(self):
        pick = self.pick
        view = self.some("views", self.view)
        group = [self.a_part() for _ in range(pick.number(1, 3))]
        name = pick.one(("tscatter", "tgather", "tbroadcast", "treduce"))
        first = [view, self.a_tile()] if name == "treduce" else [view]
        pong = self.a_tile() if pick.maybe() else None
        fold = pick.one(("sum", "max")) if name == "treduce" else None
        self.add(build.comm(name, *first, ping=self.a_tile(), pong=pong, group=group, root=0, reduce_op=fold))

    def section(self):
        if self.depth < 3:
            self.add(build.section(self.pick.one(("vector", "cube")), []))
            self.inner(self.block.last_op.regions[0].block)

    def loop(self):
        if self.depth < 3:
            inside = Block(arg_types=[build.INDEX])
            begin, end, step = (self.an_index() for _ in range(3))
            self.add(scf.ForOp(begin, end, step, [], Region(inside)))
            self.inner(inside, inside.args[0])
            inside.add_op(scf.YieldOp())

    def choice(self):
        if self.depth < 3:
            asked = self.add(arith.CmpiOp(self.an_index(), self.an_index(), "slt"))
            yes, no = Block(), Block()
            self.add(scf.IfOp(asked, [], Region(yes), Region(no)))
            for block in (yes, no):
                self.inner(block)
                block.add_op(scf.YieldOp())

    def inner(self, block, counter=None):
        values = self.values.inside()
        if counter is not None:
            values.index.append(counter)
        Program(self.pick, block, values, self.depth + 1).ops(4)


STEPS = (
    *("index", "view", "part", "tile", "assign", "shape", "load", "store", "scatter", "gather", "vector", "vector"),
    *("flag", "event", "order", "scalars", "collective", "section", "loop", "choice"),
)


def program(pick, most=25):
    """A module with whatever the grammar allows; it need not mean anything."""
    functions = []
    for number in range(pick.number(1, 2)):
        args = {"table": PtrType(pick.one(DTYPES)), "rows": PtrType("int32"), "n": build.INDEX}
        called = pick.one(("kernel", "update", "a.b"))
        made = build.func(
            f"{called}{number}",
            args,
            private=pick.maybe(),
            entry=pick.maybe(),
            kind=pick.one((None, "vector", "cube")),
        )
        block = made.body.blocks.first
        values = Values([block.args[2]], [*block.args[:2]], [], [], [], [])
        Program(pick, block, values).ops(most)
        block.add_op(build.ret())
        functions.append(made)
    return build.module(*functions, arch=pick.one((None, "a3", "a5")))


def kernel(pick, gather=None):
    """A kernel of one function that is legal on a2a3 and a5: load the tiles, scatter or gather, flush, return.

    Its arguments are `table` (rows x cols), `values` (the tile) and `index`, all packed.
    """
    dtype = pick.one(("float32", "int32", "float16"))
    size = {"float32": 4, "int32": 4, "float16": 2}[dtype]
    count, rows = pick.one((8, 16, 24)), pick.one((8, 20, 100))
    cols = pick.one((1, 2, 4)) * 32 // size
    row = pick.maybe()
    shape = (1, count) if row else (count, cols)
    made = build.func(
        "kernel", {"table": PtrType(dtype), "values": PtrType(dtype), "index": PtrType("int32")}, entry=True
    )
    body = build.Body(made)

    def part(name, extents):
        view = body.view(body.args[name], extents, (extents[1], 1))
        return body.part(view, (0, 0), extents)

    index = part("index", shape)
    values = part("values", (count, cols))
    table = part("table", (rows, cols))
    idx_tile = body.add(build.alloc_tile(TileBufType("vec", "int32", *shape), addr=body.constant(0, "int64")), "idx")
    place = body.constant(0x4000, "int64")
    tile = body.add(build.alloc_tile(TileBufType("vec", dtype, count, cols), addr=place), "tile")
    body.add(build.tload(index, idx_tile))
    gathers = pick.maybe() if gather is None else gather
    if not gathers:
        body.add(build.tload(values, tile))
    body.add(build.set_flag("MTE2", "V", 0))
    body.add(build.wait_flag("MTE2", "V", 0))
    mode = "row" if row else "elem"
    if gathers:
        oob = pick.one(("clamp", "wrap", "zero"))
        body.add(build.mgather(table, idx_tile, tile, coalesce=mode, oob=oob))
        body.add(build.set_flag("V", "MTE3", 0))
        body.add(build.wait_flag("V", "MTE3", 0))
        body.add(build.tstore(tile, values))
    else:
        atomic, oob = pick.one(("none", "add")), pick.one(("skip", "clamp", "wrap"))
        body.add(build.mscatter(tile, idx_tile, table, coalesce=mode, atomic=atomic, oob=oob))
        body.add(build.barrier())
        body.add(build.dcci())
        body.add(build.dsb())
    body.add(build.ret())
    return build.module(made, arch=pick.one((None, "a5")))


def by_seed(seed, most=25):
    """The program of that seed."""
    return program(Pick(seed), most)


@st.composite
def modules(draw, most=8):
    """Programs for hypothesis."""
    return program(DrawnPick(draw), most)


@st.composite
def kernels(draw, gather=None):
    """Kernels for hypothesis."""
    return kernel(DrawnPick(draw), gather)


__all__ = ["Pick", "attrs", "by_seed", "kernel", "kernels", "modules", "program", "spelling_of"]
