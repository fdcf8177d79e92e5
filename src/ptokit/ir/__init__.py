"""The text room: programs as text, read, verified, converted, run and printed.

>>> from ptokit.ir import parse
>>> parse("pto.barrier <PIPE_ALL>").to("dps")
'module {\\n  pto.barrier <PIPE_ALL>\\n}\\n'
"""

from __future__ import annotations

from ptokit.ir.errors import ConvertError, ParseError
from ptokit.ir.module import Module, parse

__all__ = ["ConvertError", "Module", "ParseError", "parse"]
