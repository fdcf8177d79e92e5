"""What can go wrong between ranks: each is an error that names the rank, its host and its process, and a finding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ptokit.errors import PtoError, PtoIndexError, PtoTypeError, PtoValueError
from ptokit.findings import Finding, Severity


@dataclass(frozen=True)
class Peer:
    """Who a rank is: `str(peer)` is how every message names it."""

    rank: int
    host: str
    pid: int

    def __str__(self) -> str:
        return f"rank {self.rank} (host {self.host}, pid {self.pid})"


class RankError(PtoError, RuntimeError):
    """Something between ranks went wrong; `findings` has it as data, `failures` what each rank had to say.

    >>> from ptokit.comm import local
    >>> def work(rank):
    ...     return 1 // rank.rank
    >>> with local(2, threads=True) as world:
    ...     try:
    ...         world.run(work)
    ...     except RankError as failed:
    ...         print(sorted(failed.failures), failed.findings[0].id)
    [0] PTO-R031
    """

    def __init__(
        self, message: str, findings: Iterable[Finding] = (), failures: Mapping[int, BaseException] | None = None
    ) -> None:
        self.findings = list(findings)
        self.failures = dict(failures or {})
        self.is_echo = False
        """Another rank has failed, and this one has been told."""
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.findings, self.failures)


class RankTimeout(RankError, TimeoutError):  # noqa: N818 - reads as what it is
    """A rank has not come, or has not answered, within the timeout."""


class RankTypeError(RankError, PtoTypeError):
    """A rank has given a value of the wrong kind; every rank that makes the call with it raises this."""


class RankValueError(RankError, PtoValueError):
    """A rank has given a value that cannot be used; every rank that makes the call with it raises this."""


class RankIndexError(RankError, PtoIndexError):
    """A rank has given an index that lies outside; every rank that makes the call with it raises this."""


FIXES = {
    "PTO-R030": "Look at what ended that rank; every other rank of the world has to be started anew with it.",
    "PTO-R031": "Mend the exception in that rank; the others have nobody to work with.",
    "PTO-R032": "See that every rank comes to this call, or give a longer timeout= where the work takes longer.",
    "PTO-R033": "Give the same root= on every rank.",
    "PTO-R034": "Call it on the root only: if rank.rank == group.root: ...; the others keep their memory alive.",
    "PTO-R035": "Let one root write to a destination at a time: rank.barrier() between the two calls.",
    "PTO-R036": "Keep the group until every rank has got its part: rank.barrier() before group.free().",
    "PTO-R037": "Free shared memory, ask for less, or name a larger place in the variable PTOKIT_SHM_DIR.",
    "PTO-R038": "Stay within the memory that the rank has registered.",
    "PTO-R039": "Allocate that memory with rank.zeros(shape, dtype), which every rank can reach.",
    "PTO-R040": "Let every rank make the same calls in the same order.",
    "PTO-R050": "Call pto.comm.register(group) on every rank before the collective.",
    "PTO-R051": "Give gate=pto.comm.CcuGate(slot, mask) on every rank, and let every rank make the call.",
    "PTO-R052": "Register the same payload on every rank: the bytes of one slice.",
    "PTO-R041": "Name one of the ranks of the world as root.",
    "PTO-R060": "Let every rank make the same calls on a table, with the same settings; only the rows may differ.",
    "PTO-R061": "To let such indices pass: oob='skip', 'clamp' or 'wrap' (a gather: 'zero').",
    "PTO-R062": "Bring the file back from a copy, or load another save.",
    "PTO-R063": "Name another folder, or call it as the message says.",
    "PTO-R064": "Free some room, or give the rows to more ranks; nothing that was saved before is lost.",
}


def fault(id_: str, message: str, **facts: Any) -> Finding:
    """The finding of a fault between ranks."""
    return Finding(id_, Severity.ERROR, None, message, facts, None, FIXES[id_])


def error(id_: str, message: str, **facts: Any) -> RankError:
    """The exception of a fault between ranks; a rank that does not come is a `TimeoutError` too."""
    finding = fault(id_, message, **facts)
    kind = RankTimeout if id_ == "PTO-R032" else RankError
    return kind(f"{finding.id}: {message} {finding.fix}", [finding])


def named(peers: Sequence[object]) -> str:
    """The ranks as a sentence lists them."""
    words = [str(one) for one in peers]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
