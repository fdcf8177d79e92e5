"""PTO-AS: `.arg` and `.const` lines, ops without `pto.`, policies as suffixes.

It has no regions and no attributes of functions and modules: what needs them cannot be said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from io import StringIO
from typing import TYPE_CHECKING

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import IsTerminator

from ptokit.findings import Finding, Severity
from ptokit.ir.dialect.attributes import WordAttr
from ptokit.ir.dialect.ops import ArgOp, CommOp, DpsOp, MScatterOp, PtoOp, SkippedOp, TAssignOp, TStoreOp
from ptokit.ir.documents.forms import SUFFIXES
from ptokit.ir.documents.printing import FlatPrinter, collective, fresh_tile, is_flat, is_implied, placed_by_name
from ptokit.ir.documents.reading import MAIN
from ptokit.ir.documents.types import document_type, is_open_column
from ptokit.ir.errors import ConvertError
from ptokit.ir.printing import canonical

if TYPE_CHECKING:
    from ptokit.ir.module import Module

CANNOT_SAY = "PTO-P008"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")
_FUNCTION_PARTS = {"sym_name", "function_type"}


def to_as(module: Module) -> str:
    """The module in PTO-AS; `ConvertError` where it cannot say it.

    >>> from ptokit.ir import parse
    >>> print(parse("func.func @main(%t: !pto.tile_buf<vec, 16x64xf32>) {  %u = pto.alloc_tile : "
    ...             "!pto.tile_buf<vec, 16x64xf32>  pto.tneg ins(%t : !pto.tile_buf<vec, 16x64xf32>) "
    ...             "outs(%u : !pto.tile_buf<vec, 16x64xf32>)  return }").to("as"), end="")
    .arg %t : !pto.tile<16x64xf32>;
    %u = tneg %t : (!pto.tile<16x64xf32>) -> !pto.tile<16x64xf32>
    """
    problems = list(unsayable(module))
    if problems:
        raise ConvertError(problems)
    text = _printed(module, implied_arguments=True)
    return text if _says_the_same(text, module) else _printed(module, implied_arguments=False)


def _printed(module: Module, *, implied_arguments: bool) -> str:
    stream = StringIO()
    AssemblyPrinter(stream, module.names).print_program(module, implied_arguments)
    return stream.getvalue()


def _says_the_same(text: str, module: Module) -> bool:
    """Whether leaving out `pto.arg` gives the same arguments in the same order; asked only where there are some."""
    if not any(isinstance(op, ArgOp) for op in _top(module)):
        return True
    from ptokit.ir.documents import read
    from ptokit.ir.errors import ParseError

    try:
        return canonical(read(text).op) == canonical(module.op)
    except ParseError:
        return False


def _top(module: Module) -> list[Operation]:
    return [op for block in module.op.body.blocks for op in block.ops]


# Printing


class AssemblyPrinter(FlatPrinter):
    """One op a line, without `pto.`, types as the documents spell them."""

    lead = ""
    is_begun = False
    """Whether anything is printed yet: a text that begins with a directive holds a function."""

    def print_attribute(self, attribute: Attribute) -> None:
        """A type in the documents' spelling, any other attribute as it is."""
        super().print_attribute(document_type(attribute))

    def print_program(self, module: Module, implied_arguments: bool) -> None:
        """Functions one after the other, and what stands before them."""
        ops = _top(module)
        if implied_arguments:
            for op in ops:
                self._name_arguments(op)
        for number, op in enumerate(ops):
            if isinstance(op, FuncOp):
                self._print_function(op, number == 0)
            elif not (isinstance(op, ArgOp) and implied_arguments) and not is_implied(op):
                self._print_one(op)

    def _name_arguments(self, op: Operation) -> None:
        """The names that nothing prints before they are used."""
        if isinstance(op, ArgOp):
            name = self._ssa_values[op.value] = self._free(self._wanted(op.value))
            self._taken[-1].add(name)

    def _print_function(self, op: FuncOp, is_first: bool) -> None:
        self.enter_scope()
        self._taken.append(set())
        self.is_begun = True
        block = op.body.block
        if not (is_first and op.sym_name.data == MAIN and block.args):
            self.print_string(f"{op.sym_name.data}:\n")
        for value in block.args:
            self.print_string(".arg ")
            self.print_ssa_value(value)
            self.print_string(" : ")
            self.print_attribute(value.type)
            self.print_string(";\n")
        for inner in block.ops:
            if not isinstance(inner, ReturnOp) and not is_implied(inner):
                self._print_one(inner)
        self._taken.pop()
        self.exit_scope()

    def _print_one(self, op: Operation) -> None:
        self.print_op(op)
        self.print_string("\n")
        self.is_begun = True

    def print_op(self, op: Operation) -> None:
        """An op with its result."""
        if isinstance(op, ConstantOp) and not op.attributes and self.is_begun:
            self._print_constant(op)
        elif isinstance(op, TAssignOp) and (address := placed_by_name(op)) is not None:
            self.print_placed(op, address)
        elif (ranks := collective(op)) is not None:
            self.print_collective(ranks)
        elif isinstance(op, DpsOp):
            self._print_flat(op)
        elif isinstance(op, ArgOp) or not isinstance(op, PtoOp):
            super().print_op(op)
        else:
            self._print_results(op)
            self.print_string(op.name.removeprefix("pto."))
            op.print(self)

    def _print_constant(self, op: ConstantOp) -> None:
        self.print_string(".const ")
        self.print_ssa_value(op.result)
        self.print_string(" = ")
        self.print_attribute(op.value)
        self.print_string(";")

    def _print_flat(self, op: DpsOp) -> None:
        dst = fresh_tile(op)
        base = op.name.removeprefix("pto.")
        suffixes, told = policies(base, op.told)
        if dst is not None:
            self.print_result(dst)
        self.print_string(".".join([base, *suffixes]) + " ")
        # The first form has its types without parentheses, all others have them within.
        is_first = base in SUFFIXES and not suffixes
        self.print_row(_in_order(op, dst is not None, bool(suffixes)), told, in_parentheses=not is_first)
        if dst is not None:
            self.print_string(" -> ")
            self.print_attribute(dst.type)


def policies(base: str, told: dict[str, Attribute]) -> tuple[list[str], dict[str, Attribute]]:
    """The suffixes that say some of the attributes, and the attributes that are left."""
    suffixes, left = [], dict(told)
    for slot in SUFFIXES.get(base, ()):
        given = told.get(slot.attribute)
        if isinstance(given, WordAttr) and given.data in slot.words:
            suffixes.append(slot.lead + given.data)
            del left[slot.attribute]
    return suffixes, left


def _in_order(op: DpsOp, bound: bool, suffixed: bool) -> Sequence[SSAValue]:
    """The operands as PTO-AS writes them: the destination first, but for TSTORE and the first form of MSCATTER."""
    ins, outs = op.given(op.INS), op.given(op.OUTS)
    if bound:
        return ins
    if isinstance(op, MScatterOp) and not suffixed:
        return [op.src, op.mem, op.idx]
    return [*ins, *outs] if isinstance(op, TStoreOp) else [*outs, *ins]


# What it has no form for


def unsayable(module: Module) -> Iterator[Finding]:
    """One finding for each thing that PTO-AS cannot say."""
    if told := [*module.op.attributes, *module.op.properties]:
        yield _finding(module, module.op, f"PTO-AS has no attributes of a module: {', '.join(told)}.")
    seen_function = False
    for number, op in enumerate(_top(module)):
        if isinstance(op, FuncOp):
            yield from _function_problems(module, op, number == 0)
            seen_function = True
        elif seen_function:
            yield _finding(module, op, "In PTO-AS whatever follows a function belongs to it.")
        else:
            yield from _op_problems(module, op)


def _finding(module: Module, op: Operation, sentence: str, fix: str = "") -> Finding:
    return module.finding(CANNOT_SAY, Severity.ERROR, sentence, op, fix=fix or "Convert it to dps, ssa or generic.")


def _function_problems(module: Module, op: FuncOp, is_first: bool) -> Iterator[Finding]:
    name, blocks = op.sym_name.data, list(op.body.blocks)
    told = [*op.attributes, *(one for one in op.properties if one not in _FUNCTION_PARTS)]
    if told:
        yield _finding(module, op, f"PTO-AS has no attributes of a function: {', '.join(told)} of @{name}.")
    if not _NAME.fullmatch(name):
        yield _finding(module, op, f"PTO-AS has no label like {name!r}.")
    if len(blocks) != 1:
        what = "a function without a body" if not blocks else f"a function of {len(blocks)} blocks"
        yield _finding(module, op, f"PTO-AS has no form for {what}: @{name}.")
        return
    if not blocks[0].args and not is_first:
        yield _finding(module, op, f"PTO-AS cannot tell where @{name} begins: it has no argument.")
    last = blocks[0].last_op
    if not isinstance(last, ReturnOp) or last.operands or last.attributes or op.function_type.outputs.data:
        yield _finding(module, op, f"PTO-AS has functions without results only, unlike @{name}.")
    for inner in blocks[0].ops:
        if inner is not last:
            yield from _op_problems(module, inner)


def _op_problems(module: Module, op: Operation) -> Iterator[Finding]:
    if op.regions or op.successors or op.has_trait(IsTerminator, value_if_unregistered=False):
        yield _finding(module, op, f"PTO-AS is a straight line: it has no form for {op.name}.")
    elif isinstance(op, SkippedOp):
        yield _finding(module, op, f"What {op.op_name.data} says is not known, and where it ends in PTO-AS neither.")
    elif isinstance(op, DpsOp) and not is_flat(op):
        yield _finding(module, op, f"PTO-AS has no form for these operands and attributes of {op.name}.")
    elif isinstance(op, CommOp) and len(op.results):
        yield _finding(module, op, f"PTO-AS has no form for {op.name}.")
    elif isinstance(op, MScatterOp) and _reads_as_older(op):
        fix = "Give the index tile its type."
        yield _finding(module, op, "PTO-AS reads an index of one column as the first custom form of a5.", fix)


def _reads_as_older(op: MScatterOp) -> bool:
    is_default = op.scatter_conflict is not None and op.scatter_conflict.data == "default"
    is_row = op.coalesce is not None and op.coalesce.data == "row"
    return is_row and not is_default and op.scatter_conflict is None and is_open_column(op.idx.type)
