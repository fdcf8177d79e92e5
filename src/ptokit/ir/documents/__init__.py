"""The forms of the documents: PTO-AS and level 1, read into the ops of the dialect and printed from them."""

from __future__ import annotations

from ptokit.ir.documents.level1 import to_ssa
from ptokit.ir.documents.pto_as import to_as
from ptokit.ir.documents.reading import DocumentParser
from ptokit.ir.module import Module
from ptokit.ir.reading import finish, guarded


def read(text: str, file: str = "<text>", *, lenient: bool = False) -> Module:
    """The module that a text in any of the forms holds; `ParseError` where it cannot be read.

    >>> read("mscatter %src, %mem, %idx : !pto.memref<...>, !pto.tile<...>, !pto.tile<...>").form
    'as'
    """
    with guarded(text, file) as source:
        parser = DocumentParser(text, file, lenient=lenient)
        source.parser = parser
        got = finish(parser)
    form = "generic" if got.generic else parser.form
    return Module(got.op, text, file, form, got.findings, got.places, got.names)


__all__ = ["read", "to_as", "to_ssa"]
