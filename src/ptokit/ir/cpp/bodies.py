"""The body of a function: declarations, statements, loops and branches, in the order of the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, Region, SSAValue

from ptokit.findings import Finding, Severity
from ptokit.ir.cpp import types
from ptokit.ir.cpp.control import CONTROL, ENDS, INDENT
from ptokit.ir.cpp.instructions import STATEMENTS
from ptokit.ir.cpp.memory import Places
from ptokit.ir.cpp.names import Local, camel
from ptokit.ir.cpp.scalars import expression, known
from ptokit.ir.cpp.views import RANK, Number, View
from ptokit.ir.dialect import ops
from ptokit.ir.dialect.types import DYNAMIC, TileBufType

if TYPE_CHECKING:
    from ptokit.core.ub import UbTile
    from ptokit.ir.module import Module

CANNOT = "PTO-P008"


class Body:
    """Writes the statements of one function; what C++ cannot say is collected in `findings`."""

    def __init__(self, module: Module, target: str, names: Local, places: Places, findings: list[Finding]) -> None:
        self.module = module
        self.target = target
        self.names = names
        self.places = places
        self.findings = findings
        self.lines: list[str] = []
        self.depth = 1
        self.words: dict[SSAValue, str] = {}
        self.views: dict[SSAValue, View] = {}
        self.types: dict[SSAValue, str] = {}
        self.tiles: dict[str, UbTile] = {}
        self.uses_comm = False

    # Lines

    def line(self, text: str) -> None:
        """A line at the present depth."""
        self.lines.append(f"{INDENT * self.depth}{text}")

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        """What stands between braces."""
        self.line(head)
        self.depth += 1
        yield
        self.depth -= 1
        self.line(tail)

    def refuse(self, op: Operation, why: str, token: str | None = None, fix: str = "") -> None:
        """The op cannot be said in C++."""
        name = getattr(op, "op_name", None)
        called = op.name if name is None else name.data
        sentence = f"C++ cannot say this {called}: {why}."
        self.findings.append(self.module.finding(CANNOT, Severity.ERROR, sentence, op, token, fix=fix))

    # Values

    def word(self, value: SSAValue) -> str:
        """The expression that gives a value."""
        found = self.words.get(value)
        return found if found is not None else "0 /* missing */"

    def number(self, value: SSAValue) -> Number:
        """A whole number where it is known, else its expression; in brackets where it is not one word."""
        found = known(value)
        return self.word(value) if found is None else found

    def fresh(self, value: SSAValue, otherwise: str = "v") -> str:
        """A new name for a value, like the one that the text has."""
        called = self.module.name(value)
        return self.names.fresh(called if called and not called.isdigit() else f"{otherwise}{called}")

    def constant(self, op: Operation, value: SSAValue, given: str | None) -> None:
        """A value that is computed once."""
        of = types.scalar(value.type)
        if given is None or of is None:
            self.refuse(op, f"a value of type {value.type} has no such expression")
            return
        name = self.words[value] = self.fresh(value)
        self.line(f"{of}{name} = {given};" if of.endswith("*") else f"const {of} {name} = {given};")

    def type_of(self, value: SSAValue) -> str:
        """The C++ type of a tile or of a tensor."""
        return self.types.get(value) or f"decltype({self.word(value)})"

    def call(self, name: str, *operands: SSAValue) -> None:
        """An intrinsic with its operands."""
        self.line(f"{name}({', '.join(self.word(one) for one in operands)});")

    # Tiles

    def tile(self, op: Operation, value: SSAValue, addr: SSAValue | None, valid: Sequence[SSAValue]) -> None:
        """A tile of its own, declared and placed; one that the caller has is there already."""
        if value in self.words:
            if addr is not None:
                self.line(f"TASSIGN({self.words[value]}, {self.word(addr)});")
            return
        name = self.words[value] = self.fresh(value, "tile")
        held = types.held_tile(value.type)
        of = None if held is None else types.tile(held, self.target)
        if of is None or held is None:
            why = f"the type {value.type} has no name in C++"
            self.refuse(op, why, fix="Give the tile a type that says everything.")
            return
        self._declare(value, name, of, valid)
        is_moved = any(isinstance(use.operation, ops.TAssignOp) and use.index == 0 for use in value.uses)
        if addr is None and is_moved and not isinstance(op, ops.TAssignOp):
            return
        at = None if addr is None else known(addr)
        if addr is not None and at is None:
            self.line(f"TASSIGN({name}, {self.word(addr)});")
            return
        self._place(op, name, held, at)

    def _declare(self, value: SSAValue, name: str, of: str, valid: Sequence[SSAValue]) -> None:
        called = self.types[value] = self.names.fresh(_type_name(name, "Tile"))
        self.line(f"using {called} = {of};")
        extents = ", ".join(self.word(one) for one in valid)
        self.line(f"{called} {name}({extents});" if valid else f"{called} {name};")

    def _place(self, op: Operation, name: str, held: TileBufType, at: int | None) -> None:
        placed = self.places.place(name, held, at)
        if placed is None:
            self.refuse(op, f"no memory on the chip holds {name} ({held})", fix="Use smaller tiles.")
            return
        address, self.tiles[name] = placed
        self.line(f"TASSIGN({name}, {address:#x});")

    def assign(self, op: ops.TAssignOp) -> None:
        """TASSIGN of a tile that exists: the result is the same tile."""
        name = self.words[op.placed] = self.word(op.tile)
        if op.tile in self.types:
            self.types[op.placed] = self.types[op.tile]
        at, held = known(op.addr), types.held_tile(op.tile.type)
        if at is None:
            self.line(f"TASSIGN({name}, {self.word(op.addr)});")
        elif name not in self.tiles and held is not None:
            self._place(op, name, held, at)
        else:
            if name in self.tiles and not self.places.move(self.tiles[name], at):
                self.refuse(op, f"nothing can lie at {at:#x}", "addr")
            self.line(f"TASSIGN({name}, {at:#x});")

    def extra_tile(self, op: Operation, like: SSAValue, wanted: str) -> str:
        """A tile that the text does not have: the intrinsic needs it."""
        name = self.names.fresh(wanted)
        held = types.held_tile(like.type)
        of = None if held is None else types.tile(held, self.target)
        if of is None or held is None or DYNAMIC in held.valid:
            self.refuse(op, "the intrinsic needs a temporary tile, and its type does not follow from the source")
            return name
        called = self.names.fresh(_type_name(name, "Tile"))
        self.line(f"using {called} = {of};")
        self.line(f"{called} {name};")
        self._place(op, name, held, None)
        return name

    # Tensors

    def view(self, value: SSAValue, view: View, *, declared: bool) -> None:
        """What a view is made of; `declared`: a GlobalTensor too."""
        self.views[value] = view
        if declared:
            self.declare_view(value, view)

    def declare_view(self, value: SSAValue, view: View) -> None:
        """`GlobalTensor<float, Shape<..>, Stride<..>, Layout::ND> table(pointer, shape, strides)`."""
        of = types.element(view.dtype)
        if of is None or len(view.shape) > RANK:
            owner = value.owner
            what = f"{view.dtype} has no name there" if of is None else f"{len(view.shape)} dimensions are more than 5"
            self.refuse(owner if isinstance(owner, Operation) else self.module.op, what)
            return
        name = self.words[value] = self.fresh(value, "view")
        shape, stride = (self.names.fresh(_type_name(name, word)) for word in ("Shape", "Stride"))
        called = self.types[value] = self.names.fresh(_type_name(name, "Tensor"))
        self.line(f"using {shape} = {types.five('Shape', view.five_extents)};")
        self.line(f"using {stride} = {types.five('Stride', view.five_strides)};")
        self.line(f"using {called} = GlobalTensor<{of}, {shape}, {stride}, Layout::{view.layout.upper()}>;")
        given = [view.pointer]
        runtime = [[n for n in numbers if isinstance(n, str)] for numbers in (view.five_extents, view.five_strides)]
        if any(runtime):
            given += [f"{word}({', '.join(row)})" for word, row in zip((shape, stride), runtime, strict=True)]
        self.line(f"{called} {name}({', '.join(given)});")

    def group(self, op: Operation, members: Sequence[SSAValue]) -> str:
        """The ParallelGroup of a collective; a group of the documents is one already."""
        if len(members) == 1 and members[0] not in self.views:
            return self.word(members[0])
        made = [self.views[one] for one in members if one in self.views]
        if len(made) != len(members) or len({_tensor_type(view) for view in made}) != 1:
            self.refuse(op, "the tensors of a group are of one type, and these are not", "group")
            return "group"
        of = self.type_of(members[0])
        tensors, name = self.names.fresh("group_tensors"), self.names.fresh("group")
        listed = ", ".join(self.word(one) for one in members)
        self.line(f"{of} {tensors}[{len(members)}] = {{{listed}}};")
        root = getattr(op, "root_rank", 0) or 0
        self.line(f"comm::ParallelGroup<{of}> {name}({tensors}, {len(members)}, {root});")
        return name

    # Ops

    def write(self, block: Block, at_end: Callable[[Operation], None] | None = None) -> None:
        """Every op of a block; `at_end` takes its terminator."""
        for op in block.ops:
            if at_end is not None and op is block.last_op and isinstance(op, ENDS):
                at_end(op)
            else:
                self.statement(op)

    def region(self, region: Region, at_end: Callable[[Operation], None] | None = None) -> None:
        """The one block of a region; an empty region has none."""
        if region.blocks:
            self.write(region.blocks[0], at_end)

    def statement(self, op: Operation) -> None:
        """One op."""
        made = STATEMENTS.get(type(op)) or CONTROL.get(type(op))
        if made is not None:
            made(self, op)
        elif op.name.startswith("arith."):
            self._arithmetic(op)
        elif isinstance(op, ops.SkippedOp):
            self.refuse(op, "ptokit does not know this op")
        elif not isinstance(op, ops.ArgOp):
            self.refuse(op, "it has no counterpart")

    def _arithmetic(self, op: Operation) -> None:
        given = expression(op, self.word)
        if given is not None and (isinstance(op, arith.ConstantOp) or given == self.word(op.operands[0])):
            self.words[op.results[0]] = given
        else:
            self.constant(op, op.results[0], given)

    # Values that a region gives back

    def carried(self, op: Operation, values: Sequence[SSAValue], initial: Sequence[SSAValue | None]) -> list[str]:
        """Variables for what a loop or a branch gives."""
        names = []
        for value, given in zip(values, initial, strict=True):
            of = types.scalar(value.type)
            if of is None:
                self.refuse(op, f"a {value.type} cannot be carried from one turn to the next")
            name = self.fresh(value)
            start = "" if given is None else f" = {self.word(given)}"
            space = "" if of and of.endswith("*") else " "
            self.line(f"{of or 'int64_t'}{space}{name}{start};")
            names.append(name)
        return names

    def store(self, names: Sequence[str], values: Sequence[SSAValue]) -> None:
        """The next value of each variable; they change together."""
        moves = [(name, self.word(value)) for name, value in zip(names, values, strict=True)]
        moves = [(name, given) for name, given in moves if name != given]
        targets = {name for name, _ in moves}
        if any(given in targets for _, given in moves):
            kept = [(self.names.fresh(f"next_{name}"), given) for name, given in moves]
            for word, given in kept:
                self.line(f"const auto {word} = {given};")
            moves = [(name, word) for (name, _), (word, _) in zip(moves, kept, strict=True)]
        for name, given in moves:
            self.line(f"{name} = {given};")


def _tensor_type(view: View) -> tuple[str, ...]:
    """Two tensors are of one type where this is the same."""
    shape, stride = types.five("Shape", view.five_extents), types.five("Stride", view.five_strides)
    return view.dtype, shape, stride, view.layout


def _type_name(name: str, suffix: str) -> str:
    base = camel(name)
    return base if base.endswith(suffix) else f"{base}{suffix}"
