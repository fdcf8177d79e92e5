"""The dialect of the text room, on xDSL: types, attributes, ops."""

from __future__ import annotations

from functools import lru_cache

from xdsl.context import Context
from xdsl.dialects import arith, builtin, cf, func, scf
from xdsl.ir import Dialect

from ptokit.ir.dialect.attributes import WORD_ATTRS, TileBufConfigAttr
from ptokit.ir.dialect.ops import OPERATIONS
from ptokit.ir.dialect.types import DOC_TYPES, REAL_TYPES, SMALL_FLOATS

PTO = Dialect("pto", list(OPERATIONS), [*REAL_TYPES, *DOC_TYPES, *SMALL_FLOATS, *WORD_ATTRS, TileBufConfigAttr])
"""Ours."""

HOSTS = (builtin.Builtin, func.Func, arith.Arith, scf.Scf, cf.Cf)
"""The dialects of xDSL that a kernel uses beside ours."""


@lru_cache(maxsize=1)
def _loaded() -> Context:
    made = Context()
    for dialect in (*HOSTS, PTO):
        made.load_dialect(dialect)
    return made


def context() -> Context:
    """A context that knows the dialect and those of the host code."""
    return _loaded().clone()
