"""ptokit: indexed memory access on tile machines, run and checked bit for bit.

>>> import ptokit as pto
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ptokit import older
from ptokit.access.compare import compare
from ptokit.access.instructions import check, mgather, mscatter
from ptokit.access.report import Comparison, Difference, Report
from ptokit.arrays import gather, get_num_threads, scatter, set_num_threads
from ptokit.core.launch import launch
from ptokit.core.run import Run
from ptokit.errors import IllegalInstruction, PtoAttributeError, PtoError, PtoIndexError, PtoTypeError, PtoValueError
from ptokit.findings import Finding, Severity, Where
from ptokit.policies import Coalesce, GatherOOB, ScatterAtomicOp, ScatterConflict, ScatterOOB
from ptokit.tensors import GlobalTensor, Tile

__version__ = "0.1.0"

ROOMS = ("comm", "ir")
LAZY = {"comm": "ptokit.comm", "ir": "ptokit.ir", "ParseError": "ptokit.ir.errors", "ConvertError": "ptokit.ir.errors"}
"""Imported when somebody asks for it; the text room needs the extra `ptokit[ir]`."""

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
    """`pto.comm`, `pto.ir`, `pto.ParseError`: imported on first use."""
    if name not in LAZY:
        raise AttributeError(f"module 'ptokit' has no attribute {name!r}")
    try:
        found = import_module(LAZY[name])
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "xdsl":
            raise
        raise PtoError("programs as text need the package xdsl: pip install 'ptokit[ir]'") from missing
    return found if name in ROOMS else getattr(found, name)
