"""From a module to text: the dialect's pretty form, and MLIR's generic one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from io import StringIO
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove

from ptokit.ir.dialect.ops import SkippedOp

if TYPE_CHECKING:
    from ptokit.ir.module import Module

_NUMBERED = re.compile(r"%\{(\d+)\}")


class PtoPrinter(Printer):
    """xDSL's printer with the names that the text gave, `module` and `return` as MLIR prints them, skipped ops as read.

    Without names (None) every value is numbered.
    """

    def __init__(self, stream: StringIO, names: Mapping[SSAValue, str] | None, *, generic: bool = False) -> None:
        super().__init__(stream=stream, print_generic_format=generic)
        self.names = names
        self._taken: list[set[str]] = [set()]

    def print_ssa_value(self, value: SSAValue) -> str:
        """The name from the text; where two values share it, or none has one, a new one."""
        name = self._ssa_values.get(value)
        if name is None:
            name = self._ssa_values[value] = self._free(self._wanted(value))
            self._taken[-1].add(name)
        self.print_string(f"%{name}")
        return name

    def _wanted(self, value: SSAValue) -> str:
        return "" if self.names is None else self.names.get(value) or value.name_hint or ""

    def _free(self, wanted: str) -> str:
        taken = self._taken[-1]
        if wanted and wanted not in taken:
            return wanted
        if not wanted or wanted.isdigit():
            while (name := self._get_new_valid_name_id()) in taken:
                pass
            return name
        number = 1
        while f"{wanted}_{number}" in taken:
            number += 1
        return f"{wanted}_{number}"

    def _populate_block_name(self, block: Block, block_index: int | None = None) -> None:
        if self.names is None:
            self._blocks[block] = f"bb{self._get_new_valid_block_id() if block_index is None else block_index}"
        else:
            super()._populate_block_name(block, block_index)

    def print_attr_dict(self, attr_dict: Mapping[str, Attribute]) -> None:
        """As they come; without names, which is for comparing, sorted."""
        super().print_attr_dict(dict(sorted(attr_dict.items())) if self.names is None else attr_dict)

    def print_op(self, op: Operation) -> None:
        """An op with its results."""
        isolated = op.has_trait(IsolatedFromAbove)
        if isolated:
            self._taken.append(set())
        if isinstance(op, SkippedOp) and not self.print_generic_format:
            self._print_skipped(op)
        elif _goes_without_dialect(op) and not self.print_generic_format:
            self.print_string(op.name.split(".")[1])
            op.print(self)
        else:
            super().print_op(op)
        if isolated:
            self._taken.pop()

    def _print_skipped(self, op: SkippedOp) -> None:
        self._print_results(op)
        first, *more = op.text.data.split("\n")
        self._print_line(op, first)
        with self.indented():
            for line in more:
                self._print_new_line()
                self._print_line(op, line)

    def _print_line(self, op: SkippedOp, text: str) -> None:
        at = 0
        for found in _NUMBERED.finditer(text):
            number = int(found[1])
            if number < len(op.values):
                self.print_string(text[at : found.start()])
                self.print_ssa_value(op.values[number])
                at = found.end()
        self.print_string(text[at:])


def _goes_without_dialect(op: Operation) -> bool:
    return isinstance(op, ModuleOp) or (isinstance(op, ReturnOp) and isinstance(op.parent_op(), FuncOp))


def _printed(op: Operation, names: Mapping[SSAValue, str] | None, *, generic: bool) -> str:
    stream = StringIO()
    PtoPrinter(stream, names, generic=generic).print_op(op)
    return stream.getvalue().rstrip() + "\n"


def to_dps(op: Operation, names: Mapping[SSAValue, str] | None = None) -> str:
    """The pretty form, which the public assembler reads."""
    return _printed(op, names or {}, generic=False)


def to_generic(op: Operation, names: Mapping[SSAValue, str] | None = None) -> str:
    """MLIR's generic form, which every MLIR tool reads."""
    return _printed(op, names or {}, generic=True)


def canonical(op: Operation) -> str:
    """The generic form with numbers for names: equal for ops that say the same.

    xDSL's `is_structurally_equivalent` does not follow values that a text uses before it defines them.
    """
    return _printed(op, None, generic=True)


def module_to_dps(module: Module) -> str:
    """`to_dps` of a module, with the names that its text gave."""
    return to_dps(module.op, module.names)


def module_to_generic(module: Module) -> str:
    """`to_generic` of a module, with the names that its text gave."""
    return to_generic(module.op, module.names)
