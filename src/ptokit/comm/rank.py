"""The handle of one rank: what a function that runs on every rank is given."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptokit.comm.faults import Peer, RankError, error, fault
from ptokit.comm.recording import Recording
from ptokit.comm.transport import Transport, shortened
from ptokit.dtypes import element_type
from ptokit.errors import PtoTypeError, PtoValueError, well_called
from ptokit.findings import Finding
from ptokit.tensors import whole

if TYPE_CHECKING:
    from ptokit.comm.group import Group

LONGEST_TEXT = 10_000
"""Of an exception, in what is said of the rank that raised it; the note has all of it."""


class Rank:
    """One rank of a world. `rank.rank` of `rank.size`; `rank.peers` says who and where the others are.

    >>> import numpy as np, ptokit as pto
    >>> def work(rank):
    ...     return rank.exchange(rank.rank * 10)
    >>> with pto.comm.local(3, threads=True) as world:
    ...     world.run(work)
    [[0, 10, 20], [0, 10, 20], [0, 10, 20]]
    """

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.rank, self.size = transport.rank, transport.size

    @property
    def engine(self) -> str:
        """Which engine carries this world: local, threads, openmpi, mpich."""
        return self.transport.engine

    @property
    def peers(self) -> Sequence[Peer]:
        """The ranks of the world: number, host and process."""
        return tuple(self.transport.peers)

    @property
    def timeout(self) -> float:
        """Seconds after which a wait ends with an error."""
        return self.transport.timeout

    @well_called
    def group(self, dst: object, root: int = 0) -> Group:
        """Every rank's destination (or source) of a collective, and its root; all ranks call this together."""
        from ptokit.comm.group import make_group

        return make_group(self, dst, root)

    @well_called
    def zeros(self, shape: int | Sequence[int], dtype: object = "float32") -> npt.NDArray[Any]:
        """An array of zeros in memory that the other ranks of this machine reach at full speed. Not collective."""
        extents = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        extents = tuple(whole(extent, "an extent of the shape") for extent in extents)
        if any(extent < 0 for extent in extents):
            raise PtoValueError(f"shape={shape!r} has a negative extent")
        element = element_type(dtype)
        count = 1
        for extent in extents:
            count *= extent
        memory = self.transport.shared(count * element.itemsize)
        return np.asarray(memory[: count * element.itemsize].view(element.numpy).reshape(extents))

    def barrier(self, timeout: float | None = None) -> None:
        """Go on when every rank has come here; what was written to other ranks before has arrived."""
        self.transport.barrier(timeout)

    def exchange(self, value: Any, timeout: float | None = None) -> list[Any]:
        """The values of all ranks, in their order; any that can be pickled."""
        return self.transport.exchange(value, timeout=timeout)

    def recording(self) -> Recording:
        """Note what every rank does inside a `with` block, for one trace of all; all ranks enter it together."""
        return Recording(self.transport)

    def run(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Call `function(rank, *args)` here, as every rank does, and return the results of all."""
        if not callable(function):
            raise PtoTypeError(f"{function!r} cannot be called; a function of a rank is wanted")
        with self:
            return self.exchange(function(self, *args))

    def abort(self, mistake: BaseException) -> RankError:
        """Tell all others that this rank has failed."""
        failed = as_rank_error(self.transport.peers[self.rank], mistake)
        # Whatever fails after another rank has said that it failed, failed because of that.
        failed.is_echo = failed.is_echo or self.transport.has_been_told()
        if not failed.is_echo:
            self.transport.abort(failed)
        return failed

    def close(self) -> None:
        """This rank is done."""
        self.transport.close()

    def __enter__(self) -> Rank:
        return self

    def __exit__(self, kind: object, mistake: BaseException | None, trace: object) -> None:
        if mistake is not None:
            self.abort(mistake)

    def __repr__(self) -> str:
        return f"<rank {self.rank} of {self.size}, {self.engine}, pid {os.getpid()}>"


def as_rank_error(peer: Peer, mistake: BaseException) -> RankError:
    """What others are told of an exception of a rank."""
    if isinstance(mistake, RankError):
        return mistake
    if isinstance(mistake, SystemExit):
        code = mistake.code if isinstance(mistake.code, int) else 0 if mistake.code is None else 1
        return error("PTO-R030", f"{peer} exited with code {code} before its work was done.", rank=peer.rank)
    said = f"{peer} raised {type(mistake).__name__}: {_text_of(mistake)}"
    finding = fault("PTO-R031", said, rank=peer.rank, pid=peer.pid)
    given = getattr(mistake, "findings", ())
    told = [one for one in given if isinstance(one, Finding)] if isinstance(given, (list, tuple)) else []
    return RankError(f"{finding.id}: {finding.message}", [finding, *told])


def _text_of(mistake: BaseException) -> str:
    """What an exception says, as far as it can say it."""
    try:
        return shortened(str(mistake), LONGEST_TEXT)
    except Exception as unsaid:
        return f"(its text cannot be read: {type(unsaid).__name__})"
