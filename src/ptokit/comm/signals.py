"""TNOTIFY, TWAIT, TTEST: a rank's own signals, which any other sets or adds to, and which it waits for."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ptokit.comm.rank import Rank
from ptokit.comm.rules import one_word
from ptokit.comm.transport import Transport, seconds
from ptokit.errors import PtoTypeError, PtoValueError, a_kind, well_called
from ptokit.tensors import whole

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "ge": operator.ge,
    "lt": operator.lt,
    "le": operator.le,
}
OPERATIONS = ("set", "add")
LOW, HIGH = -(1 << 31), (1 << 31) - 1


@well_called
def tnotify(rank: Rank, peer: int, signal: int, value: int = 1, *, op: str = "set") -> None:
    """Set a signal of a rank, or add to it. Whatever this rank has put there before has arrived then.

    >>> import ptokit as pto
    >>> def work(rank):
    ...     pto.comm.tnotify(rank, 0, signal=3, value=rank.rank + 1, op="add")
    ...     return pto.comm.twait(rank, signal=3, value=6) if rank.rank == 0 else None
    >>> with pto.comm.local(3, threads=True) as world:
    ...     world.run(work)
    [6, None, None]
    """
    transport = _of(rank, "tnotify")
    number = whole(peer, "peer")
    if not 0 <= number < transport.size:
        raise PtoValueError(f"tnotify: peer={number} is none of the {transport.size} ranks")
    transport.must_be_open()
    adds = one_word(op, OPERATIONS, "op") == "add"
    transport.notify(number, whole(signal, "signal"), _value(value), adds=adds)


@well_called
def twait(rank: Rank, signal: int, value: int = 1, *, cmp: str = "eq", timeout: float | None = None) -> int:
    """Wait until this rank's own signal compares with `value` as asked; return what it is then."""
    transport = _of(rank, "twait")
    limit = None if timeout is None else seconds(timeout, "timeout")
    return transport.wait(whole(signal, "signal"), _holds(cmp, value), limit)


@well_called
def ttest(rank: Rank, signal: int, value: int = 1, *, cmp: str = "eq") -> bool:
    """Whether this rank's own signal compares with `value` as asked, now."""
    return _of(rank, "ttest").test(whole(signal, "signal"), _holds(cmp, value))


def _of(rank: object, op: str) -> Transport:
    if not isinstance(rank, Rank):
        raise PtoTypeError(f"{op}: rank is {a_kind(rank)}; the handle of this rank is wanted")
    return rank.transport


def _holds(cmp: object, value: object) -> Callable[[int], bool]:
    compare, wanted = COMPARISONS[one_word(cmp, COMPARISONS, "cmp")], _value(value)
    return lambda seen: compare(seen, wanted)


def _value(given: object) -> int:
    number = whole(given, "value")
    if not LOW <= number <= HIGH:
        raise PtoValueError(f"value={number}; a signal has 32 bits with a sign")
    return number
