"""`pto.comm.check`: what is wrong with a collective, before anybody calls it."""

from __future__ import annotations

from collections.abc import Sequence

from ptokit.comm.rules import collective, judge
from ptokit.errors import well_called
from ptokit.findings import Finding
from ptokit.tensors import GlobalTensor, Tile


@well_called
def check(
    op: str,
    local: GlobalTensor,
    slices: Sequence[GlobalTensor],
    ping: Tile,
    pong: Tile | None = None,
    *,
    root: int = 0,
    engine: str = "aiv",
    target: str = "a5",
    acc: Tile | None = None,
    reduce: str = "sum",
) -> list[Finding]:
    """The findings of one collective as the root would call it; nothing is moved.

    `op` is tscatter, tgather, tbroadcast or treduce; `local` the root's own tensor (the source of a scatter or
    broadcast, the destination of a gather or reduction), `slices` one tensor per rank.

    >>> import numpy as np
    >>> whole, parts = np.zeros((8, 16), np.float32), np.zeros((3, 4, 16), np.float32)
    >>> source = GlobalTensor(whole, "float32", (1, 1, 1, 8, 16))
    >>> slices = [GlobalTensor(one, "float32", (1, 1, 1, 4, 16)) for one in parts]
    >>> print(check("tscatter", source, slices, Tile("float32", 4, 16))[0].message)
    tscatter: the source has 8 rows; 3 ranks of 4 rows need 12.
    """
    call = collective(op, local, slices, ping, pong, root=root, engine=engine, target=target, acc=acc, reduce=reduce)
    return judge(call)
