"""What a launch gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ptokit.access.plan import Array
from ptokit.core.block import Block
from ptokit.core.placement import Ledger
from ptokit.errors import PtoIndexError
from ptokit.findings import Finding, is_clean
from ptokit.tensors import GlobalTensor

if TYPE_CHECKING:
    from ptokit.core.timeline import Cycles
    from ptokit.core.trace import Trace
    from ptokit.cost import Parameters


@dataclass(frozen=True, eq=False)
class Run:
    """One launch: what there is to say of it, and what it did.

    The caller's arrays hold what the host would see; `device(i)` is global memory itself.
    """

    target: str
    findings: list[Finding]
    ub: Ledger
    blocks: Sequence[Block] = field(repr=False)
    tensors: Sequence[GlobalTensor | None] = field(repr=False)
    """Per argument: the tensor on the device, or None where it is no tensor."""
    shapes: Sequence[tuple[int, ...] | None] = field(repr=False)
    schedule: str = "late"
    seed: int = 0
    kernel: str = ""
    names: Sequence[str] = field(default=(), repr=False)
    """Per argument: what the kernel calls it."""

    @property
    def is_clean(self) -> bool:
        """No error and no warning."""
        return is_clean(self.findings)

    def device(self, argument: int) -> Array:
        """Global memory behind an argument as the device has it, in the shape in which it was given."""
        if not 0 <= argument < len(self.tensors) or self.tensors[argument] is None:
            raise PtoIndexError(
                f"argument {argument} of the kernel is no tensor; there are {len(self.tensors)} arguments"
            )
        tensor, shape = self.tensors[argument], self.shapes[argument]
        assert tensor is not None
        memory = tensor.memory.copy()
        return memory if shape is None else np.asarray(memory.reshape(shape))

    @cached_property
    def cycles(self) -> Cycles:
        """Modelled time: `cycles.total`, `cycles["MTE2"]`."""
        return self.priced()

    def priced(self, parameters: Parameters | None = None) -> Cycles:
        """The cycles by other parameters: `run.priced(ptokit.cost.parameters("a5", {...}))`."""
        from ptokit.core.timeline import cycles_of

        return cycles_of(self.target, self.blocks, parameters)

    @cached_property
    def trace(self) -> Trace:
        """Every instruction on its pipe, from when to when."""
        from ptokit.core.trace import trace_of

        return trace_of(self.target, self.blocks)

    def to(self, form: str) -> str:
        """What block 0 did as a program of straight-line text: "dps", "ssa", "as", "generic", "cpp".

        Loops come out unrolled, and what the kernel read and decided stands there as it went.
        """
        from ptokit.ir.traced import module_of

        return module_of(self).to(form)

    def __repr__(self) -> str:
        count = len(self.findings)
        return f"Run(target={self.target!r}, blocks={len(self.blocks)}, findings={count})"
