"""ptokit: indexed memory access on tile machines, run and checked bit for bit.

>>> import ptokit as pto
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ptokit.errors import IllegalInstruction, PtoAttributeError, PtoError, PtoIndexError, PtoTypeError, PtoValueError
from ptokit.policies import Coalesce, GatherOOB, ScatterAtomicOp, ScatterConflict, ScatterOOB

if TYPE_CHECKING:
    from ptokit import older
    from ptokit.access.compare import compare
    from ptokit.access.instructions import check, mgather, mscatter
    from ptokit.access.report import Comparison, Difference, Report
    from ptokit.arrays import gather, get_num_threads, scatter, set_num_threads
    from ptokit.core.launch import launch
    from ptokit.core.run import Run
    from ptokit.findings import Finding, Severity, Where
    from ptokit.tensors import GlobalTensor, Tile

__version__ = "0.1.0"

LAZY = {
    "compare": "access.compare",
    "check": "access.instructions",
    "mgather": "access.instructions",
    "mscatter": "access.instructions",
    "Comparison": "access.report",
    "Difference": "access.report",
    "Report": "access.report",
    "gather": "arrays",
    "get_num_threads": "arrays",
    "scatter": "arrays",
    "set_num_threads": "arrays",
    "launch": "core.launch",
    "Run": "core.run",
    "Finding": "findings",
    "Severity": "findings",
    "Where": "findings",
    "GlobalTensor": "tensors",
    "Tile": "tensors",
    "ParseError": "ir.errors",
    "ConvertError": "ir.errors",
}
"""Where each name is: it is imported when somebody asks for it, so that `ptokit --help` need not wait for NumPy."""
ROOMS = ("access", "arrays", "comm", "core", "dtypes", "findings", "foreign", "ir", "older", "targets", "tensors")
"""Modules that are there without an import of their own."""

__all__ = [
    "Coalesce",
    "Comparison",
    "Difference",
    "Finding",
    "GatherOOB",
    "GlobalTensor",
    "IllegalInstruction",
    "PtoAttributeError",
    "PtoError",
    "PtoIndexError",
    "PtoTypeError",
    "PtoValueError",
    "Report",
    "Run",
    "ScatterAtomicOp",
    "ScatterConflict",
    "ScatterOOB",
    "Severity",
    "Tile",
    "Where",
    "__version__",
    "check",
    "compare",
    "gather",
    "get_num_threads",
    "launch",
    "mgather",
    "mscatter",
    "older",
    "scatter",
    "set_num_threads",
]


def __getattr__(name: str) -> Any:
    """What is imported on first use; the text room needs the extra `ptokit[ir]`."""
    if name not in LAZY and name not in ROOMS:
        raise AttributeError(f"module 'ptokit' has no attribute {name!r}")
    try:
        room = import_module(f"ptokit.{LAZY.get(name, name)}")
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "xdsl":
            raise
        raise PtoError("programs as text need the package xdsl: pip install 'ptokit[ir]'") from missing
    found = globals()[name] = getattr(room, name) if name in LAZY else room
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *LAZY, *ROOMS})
