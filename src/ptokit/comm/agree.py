"""What all ranks do together, each its part: they make the same call, or all of them are told what went wrong."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ptokit.comm.faults import (
    Peer,
    RankError,
    RankIndexError,
    RankTypeError,
    RankValueError,
    error,
    fault,
    named,
)
from ptokit.errors import PtoIndexError, PtoTypeError, PtoValueError

if TYPE_CHECKING:
    from ptokit.comm.rank import Rank

Part = TypeVar("Part")

SUBJECT = "a call on a ShardedTable"
"""All of these calls meet under one subject, so that two different ones can be told by name."""

KINDS: dict[type[Exception], type[RankError]] = {
    PtoIndexError: RankIndexError,
    PtoTypeError: RankTypeError,
    PtoValueError: RankValueError,
}
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM)
SLOWEST_DISK = 10e6
"""Bytes per second that a rank is given where the others wait for what it writes or reads."""


@dataclass(frozen=True)
class Step:
    """One rank's part: which call it makes on which table, and what came of it."""

    table: str
    call: str
    value: Any = None
    mistake: RankError | None = None


def together(rank: Rank, table: str, call: str, work: Callable[[], Part], *, nbytes: int = 0) -> list[Part]:
    """Do `work` here; return what it gave on every rank. If it failed on one, every rank raises that.

    `call` says what is called, and must be the same on all ranks; `nbytes` of a disk give the others time to wait.
    """
    value, mistake = attempt(rank, work)
    return meet(rank, Step(table, call, value, mistake), nbytes)


def attempt(rank: Rank, work: Callable[[], Part]) -> tuple[Part | None, RankError | None]:
    """What `work` gives, or the mistake that the other ranks have to hear of before this one gives up."""
    try:
        return work(), None
    except (RankError, PtoTypeError, PtoValueError, PtoIndexError, OSError, MemoryError) as mistake:
        return None, told_to_all(rank.peers[rank.rank], mistake)


def meet(rank: Rank, mine: Step, nbytes: int = 0) -> list[Any]:
    """The values of all ranks, where none has made a mistake and all are at the same call."""
    steps: list[Step] = rank.transport.exchange(mine, SUBJECT, rank.timeout + nbytes / SLOWEST_DISK)
    for step in steps:
        if step.mistake is not None:
            raise step.mistake
    _one_call(rank, steps)
    return [step.value for step in steps]


def told_to_all(peer: Peer, mistake: Exception) -> RankError:
    """A rank's mistake as every rank raises it: of the same built-in kind, with the rank's name."""
    if isinstance(mistake, RankError):
        return mistake
    if isinstance(mistake, MemoryError):
        return error("PTO-R064", f"{peer} has no memory left: {mistake or 'an allocation failed'}.", rank=peer.rank)
    if isinstance(mistake, OSError):
        return _of_system(peer, mistake)
    kind = next(ours for theirs, ours in KINDS.items() if isinstance(mistake, theirs))
    return kind(f"{peer}: {mistake}")


def _of_system(peer: Peer, refused: OSError) -> RankError:
    full = refused.errno in NO_ROOM
    where = f" {refused.filename}" if refused.filename else ""
    what = f"{peer} cannot write{where}: the disk is full" if full else f"{peer} cannot use{where}"
    reason = refused.strerror or str(refused)
    return error(
        "PTO-R064" if full else "PTO-R063",
        f"{what} ({reason}).",
        rank=peer.rank,
        file=str(refused.filename or ""),
        reason=reason,
    )


def _one_call(rank: Rank, steps: Sequence[Step]) -> None:
    """Every rank is at the same call on the same table."""
    if len({(step.table, step.call) for step in steps}) == 1:
        return
    if len({step.call for step in steps}) == 1:
        tables = [step.table for step in steps]
        numbers = {table: 1 + tables.index(table) for table in tables}
        said = [f"{rank.peers[r]} on table {numbers[table]} of these" for r, table in enumerate(tables)]
        message = f"the ranks call {steps[0].call} on different tables: {named(said)}."
    else:
        said = [f"{rank.peers[r]} calls {step.call}" for r, step in enumerate(steps)]
        message = f"the ranks do not make the same call: {named(said)}."
    finding = fault("PTO-R060", message, calls=[step.call for step in steps])
    raise RankValueError(f"{finding.id}: {message} {finding.fix}", [finding])
