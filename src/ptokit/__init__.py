"""ptokit: indexed memory access on tile machines, run and checked bit for bit.

>>> import ptokit as pto
"""

from __future__ import annotations

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
