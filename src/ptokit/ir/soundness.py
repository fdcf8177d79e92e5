"""Whether an op is sound in itself: the generic form says more than the pretty one has words for."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from xdsl.dialects.arith import CmpfOp, CmpiOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, OpTraits
from xdsl.irdl import IRDLOperation, OpDef
from xdsl.traits import SingleBlockImplicitTerminator
from xdsl.utils.exceptions import VerifyException

from ptokit.ir.dialect.ops import PtoOp

_PREDICATES: dict[type[Operation], int] = {CmpiOp: 10, CmpfOp: 16}
"""How many comparisons an op knows: the generic form has their numbers."""
_VISIBILITIES = ("public", "private", "nested")


@lru_cache(maxsize=512)
def _own_structure(made: type[IRDLOperation]) -> OpDef:
    """What the op itself has to be like; what is around it is for `verify` to judge."""
    return replace(made.get_irdl_definition(), traits=OpTraits(tuple))


def ill_formed(op: IRDLOperation) -> str:
    """What is wrong with the op itself; nothing where it is sound."""
    try:
        _own_structure(type(op)).verify(op)
        if isinstance(op, PtoOp) or op.dialect_name() == "scf":
            op.verify_()
        for trait in op.get_traits_of_type(SingleBlockImplicitTerminator):
            trait.verify(op)
    except VerifyException as wrong:
        return one_sentence(str(wrong))
    except Exception:  # xDSL's own ops stumble over what they verify: an IndexError, a plain Exception, ..
        return "It is not well formed."
    if isinstance(op, FuncOp) and op.sym_visibility is not None and op.sym_visibility.data not in _VISIBILITIES:
        return f"There is no visibility {op.sym_visibility.data!r}."
    if isinstance(op, CmpiOp | CmpfOp) and not 0 <= op.predicate.value.data < _PREDICATES[type(op)]:
        return f"There is no predicate {op.predicate.value.data}."
    return ""


def one_sentence(text: str) -> str:
    """A message of xDSL's as a sentence."""
    told = " ".join(text.split()).strip()[:300]
    return f"{told[:1].upper()}{told[1:].rstrip('.!')}." if told else "This cannot be read."
