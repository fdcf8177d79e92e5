"""A whole file of C++: includes, the functions with their parameters, the flush, the launch wrappers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from ptokit.errors import PtoValueError, listed, nearest
from ptokit.findings import Finding, Severity
from ptokit.ir.cpp import types
from ptokit.ir.cpp.bodies import CANNOT, Body
from ptokit.ir.cpp.control import called
from ptokit.ir.cpp.instructions import FLUSH
from ptokit.ir.cpp.memory import Places
from ptokit.ir.cpp.names import Functions, Local
from ptokit.ir.cpp.parameters import Function, Parameters
from ptokit.ir.dialect import ops
from ptokit.ir.errors import ConvertError

if TYPE_CHECKING:
    from ptokit.ir.module import Module

TARGETS = {"cpu": "cpu", "a2": "a2a3", "a3": "a2a3", "a2a3": "a2a3", "a5": "a5"}
DEFAULT_TARGET = "a5"
SNIPPET = "kernel"


def to_cpp(module: Module, target: str | None = None) -> str:
    """The module as C++ for a target: what the text says, else a5.

    >>> from ptokit.ir import parse
    >>> print(to_cpp(parse("pto.barrier <PIPE_ALL>")))  # doctest: +ELLIPSIS
    // Written by ptokit for a5.
    #include <pto/pto-inst.hpp>
    <BLANKLINE>
    using namespace pto;
    <BLANKLINE>
    extern "C" __global__ AICORE void kernel()
    {
        pipe_barrier(PIPE_ALL);
    }
    ...
    """
    return File(module, chosen_target(module, target)).text()


def chosen_target(module: Module, target: str | None) -> str:
    """The target that is asked for, else the module's own, else a5."""
    if target is None:
        return TARGETS.get(module.arch or "", DEFAULT_TARGET)
    if target not in TARGETS:
        raise PtoValueError(f"unknown target {target!r}.{nearest(str(target), TARGETS)} Known: {listed(TARGETS)}")
    return TARGETS[target]


class File:
    """Writes one module."""

    def __init__(self, module: Module, target: str) -> None:
        self.module = module
        self.target = target
        self.findings: list[Finding] = []
        self.names = Functions()
        self.functions = list(self._functions())
        for one in self.functions:
            # A text of loose lines is read as @main, which is no name for a kernel of C++.
            self.names.function(one.name, self._snippet_name() if one.name == "main" else one.name)
        self.shared = Places(target) if any(one.is_called for one in self.functions) else None
        self.uses_comm = False
        self.uses_flush = False

    # What there is

    def _functions(self) -> Iterator[Function]:
        """The functions, those that are called before those that call them; loose ops are one of their own."""
        calls = {called(op) for op in self.module.walk() if isinstance(op, func.CallOp)}
        found = [self._function(op, calls) for op in self.module.walk() if isinstance(op, func.FuncOp)]
        yield from self._callees_first(found)
        for holder in self._modules():
            loose = [op for op in holder.body.block.ops if not isinstance(op, func.FuncOp | ModuleOp)]
            if loose:
                args: list[SSAValue] = [op.value for op in loose if isinstance(op, ops.ArgOp)]
                yield Function(holder, self._snippet_name(), args, holder.body.block)

    def _modules(self) -> list[ModuleOp]:
        return [self.module.op, *(op for op in self.module.walk() if isinstance(op, ModuleOp))]

    def _snippet_name(self) -> str:
        file = self.module.file
        return SNIPPET if file.startswith(("<", "-")) else Path(file).name.partition(".")[0] or SNIPPET

    @staticmethod
    def _function(op: func.FuncOp, calls: set[str]) -> Function:
        name = op.sym_name.data
        block = op.body.blocks[0] if op.body.blocks else None
        args: list[SSAValue] = list(block.args) if block is not None else []
        return Function(op, name, args, block, list(op.function_type.outputs), name in calls)

    def _callees_first(self, found: Sequence[Function]) -> list[Function]:
        by_name = {one.name: one for one in found}
        done: dict[str, Function] = {}

        def visit(one: Function, above: tuple[str, ...]) -> None:
            if one.name in done:
                return
            for call in _calls(one):
                callee = by_name.get(called(call))
                if callee is not None and callee.name in (*above, one.name):
                    self.refuse(call, "a kernel cannot call itself")
                elif callee is not None:
                    visit(callee, (*above, one.name))
            done[one.name] = one

        for one in found:
            visit(one, ())
        return list(done.values())

    def refuse(self, op: Operation, why: str) -> None:
        """Something that C++ cannot say."""
        sentence = f"C++ cannot say this {op.name}: {why}."
        self.findings.append(self.module.finding(CANNOT, Severity.ERROR, sentence, op))

    # The text

    def text(self) -> str:
        """All of it, or ConvertError with everything that cannot be said."""
        pieces = ["\n".join(self._written(one)) for one in self.functions]
        if self.findings:
            raise ConvertError(self.findings)
        head = [f"// Written by ptokit for {self.target}.", "#include <pto/pto-inst.hpp>"]
        if self.uses_comm:
            head.append("#include <pto/comm/pto_comm_inst.hpp>")
        head += ["", "using namespace pto;"]
        if self.uses_flush:
            flush = [f"    {line}" for line in FLUSH]
            pieces.insert(0, "\n".join(["AICORE PTO_INLINE void FlushScatterOutput()", "{", *flush, "}"]))
        return "\n\n".join(["\n".join(head), *pieces]) + "\n"

    def _written(self, one: Function) -> list[str]:
        places = self.shared or Places(self.target)
        body = Body(self.module, self.target, Local(self.names), places, self.findings)
        parameters = Parameters(one, body)
        if one.block is None:
            return [self._prototype(one)]
        if len(one.block.parent.blocks if one.block.parent else [one.block]) > 1:
            self.refuse(one.op, "branches between blocks have no counterpart; use scf.if, scf.for and scf.while")
            return []
        parameters.declare_views()
        body.write(one.block, lambda end: _return(body, end))
        self._flush(one, body)
        self.uses_comm |= body.uses_comm
        told = [f"// {finding.id}: {finding.message}" for finding in places.findings]
        lines = [*told, *parameters.preamble, *self._head(one, parameters), "{", *body.lines, "}"]
        return lines + (self._wrapper(one, parameters, places) if one.is_kernel else [])

    def _head(self, one: Function, parameters: Parameters) -> list[str]:
        name, given = self.names.function(one.name), ", ".join(parameters.words)
        if one.is_kernel:
            return [f'extern "C" __global__ AICORE void {name}({given})']
        back = types.scalar(one.results[0]) if len(one.results) == 1 else "void"
        if back is None or len(one.results) > 1:
            self.refuse(one.op, f"it returns {', '.join(map(str, one.results))}")
        template = ", ".join(f"typename {word}" for word in parameters.templates)
        return [*([f"template <{template}>"] if template else []), f"AICORE PTO_INLINE {back} {name}({given})"]

    def _prototype(self, one: Function) -> str:
        assert isinstance(one.op, func.FuncOp)
        given = [types.scalar(of) for of in one.op.function_type.inputs]
        back = types.scalar(one.results[0]) if one.results else "void"
        if None in given or back is None or len(one.results) > 1:
            self.refuse(one.op, "a function without a body takes and gives pointers and scalars only")
        return f"AICORE {back} {self.names.function(one.name)}({', '.join(str(word) for word in given)});"

    def _flush(self, one: Function, body: Body) -> None:
        """a5: what was scattered reaches the host only so; a text that flushes by itself is left alone."""
        within = list(self._reached(one))
        writes = any(isinstance(op, ops.MScatterOp | ops.StoreScalarOp) for op in within)
        flushes = any(isinstance(op, ops.DcciOp) for op in within)
        if self.target != "a5" or one.is_called or not writes or flushes:
            return
        self.uses_flush = True
        body.line("pipe_barrier(PIPE_ALL);")
        body.line("FlushScatterOutput();")

    def _reached(self, one: Function, seen: frozenset[str] = frozenset()) -> Iterator[Operation]:
        """Every op that a function runs, those of the functions that it calls too."""
        assert one.block is not None
        yield from _inside(one)
        for call in _calls(one):
            name = called(call)
            for callee in self.functions:
                if callee.name == name and name not in seen and callee.block is not None:
                    yield from self._reached(callee, seen | {name})

    def _wrapper(self, one: Function, parameters: Parameters, places: Places) -> list[str]:
        """What the host calls: the launch with what the ledger says the tiles need."""
        name = self.names.function(one.name)
        ledger = places.ledger
        needed = ledger.needed_dyn_ub if ledger is not None else 0
        given = ["uint32_t blocks", "void *stream", *(word.replace("__gm__ ", "") for word in parameters.words)]
        lines = ["", f"void {self.names.fresh(f'launch_{name}')}({', '.join(given)})", "{"]
        size = "nullptr"
        if needed:
            size = "dynUBufSize"
            lines.append(f"    constexpr uint32_t dynUBufSize = {needed};")
        lines.append(f"    {name}<<<blocks, {size}, stream>>>({', '.join(parameters.called)});")
        return [*lines, "}"]


def _inside(one: Function) -> Iterator[Operation]:
    assert one.block is not None
    for op in one.block.ops:
        if not (isinstance(one.op, ModuleOp) and isinstance(op, func.FuncOp | ModuleOp)):
            yield from op.walk()


def _calls(one: Function) -> list[func.CallOp]:
    return [] if one.block is None else [op for op in _inside(one) if isinstance(op, func.CallOp)]


def _return(body: Body, end: Operation) -> None:
    if end.operands:
        body.line(f"return {body.word(end.operands[0])};")
