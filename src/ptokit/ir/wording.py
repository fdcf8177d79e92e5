"""What findings call an instruction in Python, in the words of the text."""

from __future__ import annotations

import re
from collections.abc import Callable


def _flag(found: re.Match[str]) -> str:
    name, source, sink, event = found.groups()
    number = f"<EVENT_ID{event}>" if event.isdigit() else event
    return f"pto.{name}[<PIPE_{source}>, <PIPE_{sink}>, {number}]"


def _policy(found: re.Match[str]) -> str:
    name, kind = POLICIES[found[1]]
    return f"{name} = #pto<{kind} {found[2]}>"


POLICIES = {
    "conflict": ("scatterConflict", "scatter_conflict"),
    "atomic": ("scatterAtomicOp", "scatter_atomic_op"),
    "oob": ("scatterOob", "scatter_oob"),
    "coalesce": ("coalesce", "coalesce"),
}
WORDS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"""k\.(set_flag|wait_flag)\("(\w+)", "(\w+)", ([\w ]+)\)"""), _flag),
    (re.compile(r"""k\.pipe_barrier\("(\w+)"\)"""), lambda found: f"pto.barrier <PIPE_{found[1]}>"),
    (re.compile(r"""k\.(dcci|dsb)\(\)"""), lambda found: f"pto.{found[1]}"),
    (re.compile(r"""\bset_valid\(rows, cols\)"""), lambda found: "pto.set_validshape"),
    (re.compile(r"""\bset_valid\b"""), lambda found: "set_validshape"),
    (re.compile(r"""\b(conflict|atomic|oob|coalesce)='(\w+)'"""), _policy),
    (re.compile(r"""\bconflict= out\b"""), lambda found: "scatterConflict out"),
    (re.compile(r"""\blayout='(nd|dn)'"""), lambda found: f"blayout={'row' if found[1] == 'nd' else 'col'}_major"),
    (re.compile(r"""\bvalid=\((\w+), (\w+)\)"""), lambda found: f"valid={found[1]}x{found[2]}"),
    (re.compile(r"""\btensor\[a:b, c:d\]"""), lambda found: "pto.partition_view"),
    (re.compile(r"""\bat="""), lambda found: "addr ="),
)
"""What findings call an instruction in Python -> what the text calls it."""


def in_text(sentence: str) -> str:
    """A sentence with its Python in the words of the text.

    >>> in_text('Insert k.set_flag("MTE2", "V", 0) after line 3.')
    'Insert pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>] after line 3.'
    """
    for pattern, said in WORDS:
        sentence = pattern.sub(said, sentence)
    return sentence
