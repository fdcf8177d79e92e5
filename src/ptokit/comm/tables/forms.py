"""What a sharded table is made of: its form, as every rank must say it, and what its rows begin with."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ptokit.arrays import MOST_SLOTS
from ptokit.comm.rank import Rank
from ptokit.comm.tables.routing import Array, Blocks
from ptokit.dtypes import ElementType, element_type
from ptokit.errors import PtoTypeError, PtoValueError, a_kind
from ptokit.foreign import host_array
from ptokit.tensors import whole

PIECE = 1 << 24
"""Bytes of a shard that are filled, or sent whole, at once."""

Fill = float | Callable[[Array], Array]


@dataclass(frozen=True)
class Form:
    """What a table is, as every rank must say it."""

    token: str
    rows: int
    width: int
    dtype: str
    blocks: Blocks
    path: str | None
    recover: bool

    @property
    def call(self) -> str:
        """The call that makes it."""
        more = f", path={self.path!r}" if self.path is not None else ""
        more += ", recover=True" if self.recover else ""
        return f"ShardedTable({self.rows}, {self.width}, {self.dtype!r}, blocks={list(self.blocks.counts)}{more})"


def a_rank(world: object) -> Rank:
    """The rank that makes the table."""
    if isinstance(world, Rank):
        return world
    hint = ": call it in a function that world.run(function) runs on every rank" if hasattr(world, "run") else ""
    raise PtoTypeError(f"world is {a_kind(world)}; the rank that a function of world.run is given is wanted{hint}")


def form_of(
    rank: Rank,
    rows: object,
    width: object,
    dtype: object,
    blocks: object,
    path: object,
    fill: Fill,
    recover: bool,
) -> Form:
    """What the caller has asked for."""
    count, columns = whole(rows, "rows"), whole(width, "width")
    if not 0 <= count <= MOST_SLOTS:
        raise PtoValueError(f"rows={count}; 0 to 2**44 are possible")
    if columns < 1:
        raise PtoValueError(f"width={columns}; a row has at least 1 element")
    element = element_type(dtype)
    if path is not None and not isinstance(path, (str, Path)):
        raise PtoTypeError(f"path is {a_kind(path)}; the name of a folder is wanted")
    if not callable(fill):
        number_of(fill, element)
    where = None if path is None else str(path)
    shared = Blocks.given(blocks, count, rank.size)
    return Form(secrets.token_hex(8), count, columns, element.name, shared, where, bool(recover))


def number_of(fill: object, element: ElementType) -> Array:
    """A number as the type has it; an integer type takes whole numbers that it can hold."""
    try:
        given = np.asarray(fill)
        if given.ndim or given.dtype.kind not in "iufb":
            raise PtoTypeError(f"fill={fill!r}; a number, or a function of row numbers, is wanted")
        with np.errstate(all="ignore"):
            found = given.astype(element.numpy)
        if element.is_float or found == given:
            return found
    except (TypeError, OverflowError):
        raise PtoTypeError(f"fill={fill!r}; a number, or a function of row numbers, is wanted") from None
    raise PtoValueError(f"fill={fill!r} is no {element}")


def fill_rows(fill: Fill, element: ElementType, local: Array, first: int) -> None:
    """Fill new rows, of which `local` has zeros now; a piece at a time, so that memory is enough for any shard."""
    if not callable(fill):
        number = number_of(fill, element)
        if number.view(element.bits) != 0:
            local[:] = number
        return
    step = max(1, PIECE // (local.shape[1] * element.itemsize))
    for low in range(0, len(local), step):
        there = local[low : low + step]
        rows = np.asarray(fill(np.arange(first + low, first + low + len(there))))
        if rows.shape != there.shape or rows.dtype != there.dtype:
            raise PtoValueError(
                f"fill gave shape {rows.shape} of {rows.dtype} for {len(there)} rows; shape {there.shape} of "
                f"{there.dtype} is wanted"
            )
        there[:] = rows


def described_array(array: Any) -> tuple[int, int, str]:
    """The form of a table of these rows."""
    given = host_array(array, "array")
    if given.ndim != 2:
        raise PtoValueError(f"array has shape {given.shape}; rows and width are wanted")
    return len(given), given.shape[1], element_type(given.dtype).name


def check_root(root: int | None, size: int) -> None:
    """One of the ranks, or None: all of them."""
    if root is not None and not 0 <= whole(root, "root") < size:
        raise PtoValueError(f"root={root} is none of the {size} ranks; they count from 0")
