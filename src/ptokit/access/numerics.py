"""What there is to say about numbers: policies that are not modelled, sums that overflow, NaN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ptokit.access.call import Access
from ptokit.access.cells import Cells
from ptokit.access.commit import memory_bits, window
from ptokit.access.plan import Array, Machine
from ptokit.errors import listed
from ptokit.findings import Finding, Severity
from ptokit.policies import ScatterAtomicOp, ScatterConflict, word


def not_modelled(call: Access, machine: Machine) -> list[Finding]:
    """Policies that were asked for and that the target ignores."""
    if machine.has_policies:
        return []
    asked = {
        f"oob={word(call.oob)}": not call.is_undefined,
        f"atomic={word(call.atomic)}": call.atomic is not ScatterAtomicOp.None_ and _within_contract(call, machine),
        "conflict=last": call.conflict_given and call.conflict is ScatterConflict.Last,
    }
    ignored = [name for name, given in asked.items() if given]
    if not ignored:
        return []
    return [
        Finding(
            "PTO-N001",
            Severity.NOTE,
            machine.name,
            f"{listed(ignored)} {'is' if len(ignored) == 1 else 'are'} not modelled by {machine.name} and ignored: "
            "the raw index is used, the last writer wins.",
            {"ignored": ignored},
            None,
            "Judge these policies on a2a3 or a5.",
        )
    ]


def _within_contract(call: Access, machine: Machine) -> bool:
    return call.tile.dtype.name in machine.atomics[word(call.atomic)]


@dataclass(frozen=True)
class Arithmetic:
    """The performed runs of an atomic call, and what they bring."""

    cells: Cells
    values: Array

    @property
    def call(self) -> Access:
        """The call."""
        return self.cells.plan.call

    def before(self) -> Array:
        """Per cell: the bits before the call."""
        return np.asarray(window(memory_bits(self.call), self.cells.length)[self.cells.address])

    def example(self, cell: int, column: int) -> dict[str, Any]:
        """Where the first case stands."""
        plan = self.cells.plan
        run = int(self.cells.order[self.cells.start[cell]])
        return {
            "slot": int(plan.slot[plan.lane_of_run[run]]),
            "column": column,
            "address": int(self.cells.address[cell]) + column,
            "lane": list(plan.lane(run)),
        }


def numeric_findings(work: Arithmetic, machine: Machine) -> list[Finding]:
    """Everything that the numeric checks have to say about an atomic scatter."""
    told = (narrow_overflow(work, machine), nan_compared(work, machine))
    return [finding for finding in told if finding is not None]


def narrow_overflow(work: Arithmetic, machine: Machine) -> Finding | None:
    """An int8 or int16 sum through the DMA unit leaves its range: whether the unit saturates is not public."""
    call = work.call
    dtype = call.table.dtype
    through_dma = machine.dma_atomics and call.is_row and call.atomic is ScatterAtomicOp.Add
    if not through_dma or dtype.name not in ("int8", "int16") or not len(work.values):
        return None
    cells = work.cells
    comes = work.values[cells.order].view(dtype.numpy).astype(np.int64)
    total = np.cumsum(comes, axis=0)
    earlier = total[cells.start] - comes[cells.start]
    there = work.before().view(dtype.numpy).astype(np.int64)
    running = total + (there - earlier)[cells.cell_of_writer]
    limits = np.iinfo(dtype.numpy)
    over = np.argwhere((running < limits.min) | (running > limits.max))
    if not len(over):
        return None
    entry, column = (int(i) for i in over[0])
    facts = work.example(int(cells.cell_of_writer[entry]), column)
    facts["sum"] = int(running[entry, column])
    facts["count"] = len(over)
    return Finding(
        "PTO-N002",
        Severity.WARNING,
        machine.name,
        f"{len(over)} {dtype} sums leave their range: slot {facts['slot']}, column {column} reaches {facts['sum']}; "
        "here they wrap, whether the DMA unit saturates is not public.",
        facts,
        None,
        "Accumulate in int32.",
    )


def nan_compared(work: Arithmetic, machine: Machine) -> Finding | None:
    """A NaN under Max or Min: the comparison is false and the table keeps its value; hardware does not promise it."""
    call = work.call
    dtype = call.table.dtype
    compares = call.atomic in (ScatterAtomicOp.Max, ScatterAtomicOp.Min)
    if not (compares and dtype.is_float):
        return None
    comes = np.isnan(work.values[work.cells.order].view(dtype.numpy))
    there = np.isnan(work.before().view(dtype.numpy))
    met = np.argwhere(comes | there[work.cells.cell_of_writer])
    if not len(met):
        return None
    entry, column = (int(i) for i in met[0])
    facts = work.example(int(work.cells.cell_of_writer[entry]), column)
    facts["count"] = len(met)
    facts["nan_in"] = "source" if bool(comes[entry, column]) else "table"
    return Finding(
        "PTO-N003",
        Severity.WARNING,
        machine.name,
        f"{len(met)} comparisons of {word(call.atomic)} meet a NaN: slot {facts['slot']}, column {column} has one in "
        f"the {facts['nan_in']}; here the table keeps its value, which hardware does not promise.",
        facts,
        None,
        "Replace NaN before the call (TCMP and TSEL).",
    )
