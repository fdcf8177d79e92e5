"""`pto.comm.ShardedTable`: a table larger than one process, its rows in blocks over the ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from ptokit.arrays import MOVED_ONLY, gather, scatter
from ptokit.comm.agree import Step, attempt, meet, together
from ptokit.comm.faults import RankIndexError, fault
from ptokit.comm.rank import Rank
from ptokit.comm.tables.forms import PIECE, Fill, a_rank, check_root, described_array, fill_rows, form_of
from ptokit.comm.tables.mapping import Mapping, open_mapping
from ptokit.comm.tables.routing import Array, Routes, Taken, Traffic, take, unpacked
from ptokit.comm.tables.saving import open_save, save_rows
from ptokit.comm.tables.shards import OPEN, SAVED, Manifest, Reading, manifest_of
from ptokit.comm.words import Bytes
from ptokit.dtypes import describe, element_type
from ptokit.errors import PtoIndexError, PtoTypeError, PtoValueError, well_called
from ptokit.foreign import host_array, read_indices
from ptokit.policies import (
    ArrayGatherOOB,
    ArrayScatterOOB,
    GatherOOB,
    ScatterAtomicOp,
    ScatterOOB,
    read,
    read_array_oob,
    word,
)


@dataclass(frozen=True)
class Asked:
    """One rank's part of a gather or a scatter."""

    call: str
    taken: Taken
    shape: tuple[int, ...]
    src: Array | None = None
    atomic: ScatterAtomicOp = ScatterAtomicOp.None_


class ShardedTable:
    """A table of `rows` x `width`, its rows in blocks over the ranks; all ranks make it, and call it, together.

    `blocks` are the rows of each rank (default: as even as possible). `fill` is a number, or a function of row numbers
    that gives those rows. With `path` the shards are memory-mapped files in that folder, larger than memory if need be;
    a folder that holds the table already is opened, and keeps its rows.

    >>> import numpy as np
    >>> import ptokit as pto
    >>> def work(rank):
    ...     table = pto.comm.ShardedTable(rank, 5, 2)
    ...     table.scatter([4, 0], np.ones((2, 2), np.float32), atomic="add")
    ...     return table.gather([0, 1, 4])[:, 0].tolist()
    >>> with pto.comm.local(2, threads=True) as world:
    ...     world.run(work)
    [[2.0, 0.0, 2.0], [2.0, 0.0, 2.0]]
    """

    @well_called
    def __init__(
        self,
        world: Rank,
        rows: int,
        width: int,
        dtype: object = "float32",
        *,
        blocks: Sequence[int] | None = None,
        path: str | Path | None = None,
        fill: Fill = 0,
        recover: bool = False,
    ) -> None:
        self._rank = a_rank(world)
        form, mistake = attempt(
            self._rank, partial(form_of, self._rank, rows, width, dtype, blocks, path, fill, recover)
        )
        step = Step("", form.call, form.token) if form else Step("", "", None, mistake)
        self._token: str = meet(self._rank, step)[0]
        assert form is not None
        self._form = form
        self._element = element_type(form.dtype)
        self._mapping: Mapping | None = None
        self._local: Array | None = None
        self._traffic = self._count_traffic([0] * self._rank.size, [0] * self._rank.size, None, None)
        self._make_room(fill)

    def _make_room(self, fill: Fill) -> None:
        """This rank's rows, in memory or in a file."""
        form, me = self._form, self._rank.rank
        filled = partial(fill_rows, fill, self._element)
        if form.path is not None:
            wanted = manifest_of(self._token, form.width, self._element, form.blocks, OPEN)
            self._mapping = open_mapping(self._rank, wanted, Path(form.path), filled, form.call, form.recover)
            self._local = self._mapping.local
            return

        def allocate() -> None:
            self._local = np.zeros((form.blocks.counts[me], form.width), self._element.numpy)
            filled(self._local, form.blocks.firsts[me])

        together(self._rank, self._token, form.call, allocate)

    # What it is

    @property
    def rows(self) -> int:
        """Of all ranks."""
        return self._form.rows

    @property
    def width(self) -> int:
        """Elements of a row."""
        return self._form.width

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and width of the whole table."""
        return self._form.rows, self._form.width

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type of the elements."""
        return self._element.numpy

    @property
    def blocks(self) -> tuple[int, ...]:
        """The rows of each rank."""
        return self._form.blocks.counts

    @property
    def first(self) -> int:
        """The number of this rank's first row."""
        return self._form.blocks.firsts[self._rank.rank]

    @property
    def local(self) -> Array:
        """This rank's rows: the memory itself."""
        if self._local is None:
            raise PtoValueError(f"{self!r} has been closed")
        return self._local

    @property
    def path(self) -> Path | None:
        """The folder of its memory-mapped shards."""
        return self._mapping.folder if self._mapping else None

    @property
    def last_traffic(self) -> Traffic:
        """What the last gather or scatter of this rank has moved, beside the least that had to be."""
        return self._traffic

    @well_called
    def owner(self, rows: Any) -> Any:
        """The rank that owns a row; of an array of rows, an array of ranks."""
        index = read_indices(rows)
        taken = take(index, self.rows, ArrayScatterOOB.Raise)
        if taken.bad is not None:
            place, value = taken.bad
            raise PtoIndexError(f"rows{_told(place)} is {value}, and the table has {self.rows} rows")
        found = self._form.blocks.owners(taken.rows).reshape(index.shape)
        return found if index.ndim else int(found)

    # What it does

    @well_called
    def scatter(self, idx: Any = (), src: Any = None, atomic: str | Enum = "none", oob: str | Enum = "raise") -> None:
        """`pto.scatter` of every rank's rows into the one table, with its policies on the rows of all.

        As if one process had applied the rows of rank 0, then those of rank 1, and so on: the same bits on any number
        of ranks. A rank without rows calls it without `idx` and `src`.
        """
        # AGREE: nothing moves before every rank has seen that all of them can go on
        asked = self._agree(partial(self._scatter_asked, idx, src, atomic, oob))
        assert asked.src is not None

        # ROUTE: one message to each owner, rows in their order
        routes = Routes.of(asked.taken, self._form.blocks)
        me, src = self._rank.rank, asked.src
        messages = [self._nothing() if rank == me else routes.packed(rank, src) for rank in range(self._rank.size)]
        came = self._rank.transport.alltoallv(messages)
        sent, received = [len(one) for one in messages], [len(one) for one in came]
        self._traffic = self._count_traffic(sent, received, self._form.blocks.wire.itemsize, None)

        # APPLY: the ranks in their order
        for sender, message in enumerate(came):
            if sender == me:
                rows, lanes = routes.rows[me], routes.lanes[me]
                values = src if lanes is None else gather(src, lanes)
            else:
                rows, values = unpacked(message, self._form.blocks.wire, self.width, self.dtype)
            if len(rows):
                scatter(self.local, values, rows, atomic=asked.atomic)

    @well_called
    def gather(self, idx: Any = (), oob: str | Enum = "raise") -> Array:
        """`pto.gather` from the one table: an array of shape `idx.shape + (width,)`, each rank its own."""
        # AGREE
        asked = self._agree(partial(self._gather_asked, idx, oob))
        routes, me = Routes.of(asked.taken, self._form.blocks), self._rank.rank
        everyone = range(self._rank.size)

        # ASK the owners
        questions = [self._nothing() if rank == me else routes.rows[rank].view(np.uint8) for rank in everyone]
        asking = self._rank.transport.alltoallv(questions)

        # ANSWER
        wire = self._form.blocks.wire
        answers = [_flat(gather(self.local, one.view(wire))) if len(one) else self._nothing() for one in asking]
        came = self._rank.transport.alltoallv(answers)
        sent = [len(a) + len(b) for a, b in zip(questions, answers, strict=True)]
        received = [len(a) + len(b) for a, b in zip(asking, came, strict=True)]
        self._traffic = self._count_traffic(sent, received, None, (answers, came))

        # PLACE
        out = np.empty((asked.taken.count, self.width), self.dtype)
        if asked.taken.lanes is not None:
            out[asked.taken.dropped] = 0
        for rank in everyone:
            self._place(out, routes, rank, came[rank])
        return out.reshape(*asked.shape, self.width)

    def _place(self, out: Array, routes: Routes, owner: int, message: Bytes) -> None:
        """The rows of one owner into their lanes."""
        rows, lanes = routes.rows[owner], routes.lanes[owner]
        if not len(rows):
            return
        if owner == self._rank.rank and lanes is None:
            gather(self.local, rows, out=out)
            return
        found = (
            gather(self.local, rows) if owner == self._rank.rank else message.view(self.dtype).reshape(len(rows), -1)
        )
        if lanes is None:
            out[:] = found
        else:
            scatter(out, found, lanes)

    def _nothing(self) -> Bytes:
        return np.empty(0, np.uint8)

    def _agree(self, read_operands: Callable[[], Asked]) -> Asked:
        """Every rank's operands can be used, the calls are the same, and under `raise` every index is a row."""
        asked, mistake = attempt(self._rank, read_operands)
        step = Step(self._token, asked.call, asked.taken.bad) if asked else Step(self._token, "", None, mistake)
        for rank, bad in enumerate(meet(self._rank, step)):
            if bad is not None:
                raise self._out_of_bounds(rank, *bad)
        assert asked is not None
        return asked

    def _out_of_bounds(self, rank: int, place: tuple[int, ...], value: int) -> RankIndexError:
        negative = " A negative index is not counted from the end: add the number of rows to it." if value < 0 else ""
        finding = fault(
            "PTO-R061",
            f"{self._rank.peers[rank]}: idx{_told(place)} is {value}, and the table has {self.rows} rows; nothing was "
            f"written on any rank.{negative}",
            rank=rank,
            position=list(place),
            index=value,
            rows=self.rows,
        )
        return RankIndexError(f"{finding.id}: {finding.message} {finding.fix}", [finding])

    # What it is given

    def _scatter_asked(self, idx: Any, src: Any, atomic: str | Enum, oob: str | Enum) -> Asked:
        op = read(ScatterAtomicOp, atomic, "atomic")
        policy = read_array_oob(ArrayScatterOOB, ScatterOOB, oob)
        if op is not ScatterAtomicOp.None_ and self._element.name in MOVED_ONLY:
            raise PtoTypeError(
                f"atomic={word(op)!r} on {self._element}, which is only moved: atomic='none', or a wider type"
            )
        index = read_indices(idx)
        source = self._rows_of(src, index)
        call = f"scatter(atomic={word(op)!r}, oob={word(policy)!r})"
        return Asked(call, self._taken(index, policy), index.shape, source, op)

    def _gather_asked(self, idx: Any, oob: str | Enum) -> Asked:
        policy = read_array_oob(ArrayGatherOOB, GatherOOB, oob)
        index = read_indices(idx)
        return Asked(f"gather(oob={word(policy)!r})", self._taken(index, policy), index.shape)

    def _taken(self, index: Array, policy: ArrayScatterOOB | ArrayGatherOOB) -> Taken:
        self.local  # noqa: B018 - says so where the table has been closed
        return take(index, self.rows, policy)

    def _rows_of(self, src: Any, index: Array) -> Array:
        """The source as rows, one for each index; a copy where they are not contiguous, or are the table's own."""
        if src is None and not index.size:
            return np.empty((0, self.width), self.dtype)
        source, wanted = host_array(src, "src"), (*index.shape, self.width)
        if source.dtype != self.dtype:
            raise PtoTypeError(
                f"src holds {describe(source.dtype)} and the table {self.dtype}: they must agree; "
                "src.astype(table.dtype) is a converted copy"
            )
        if source.shape != wanted:
            raise PtoValueError(f"src has shape {source.shape}; idx.shape + (table.width,) is wanted: {wanted}")
        rows = np.require(source.reshape(index.size, self.width), requirements=["C", "A"])
        return rows.copy() if np.may_share_memory(rows, self.local) else rows

    def _count_traffic(
        self,
        sent: Sequence[int],
        received: Sequence[int],
        wire: int | None,
        answers: tuple[Sequence[Bytes], Sequence[Bytes]] | None,
    ) -> Traffic:
        """A scatter's messages have `wire` bytes beside each row; of a gather only the answers are rows."""
        row = self.width * self._element.itemsize
        least_sent, least_received = sent, received
        if wire is not None:
            least_sent, least_received = ([n // (row + wire) * row for n in way] for way in (sent, received))
        if answers is not None:
            least_sent, least_received = ([len(one) for one in way] for way in answers)
        return Traffic(tuple(sent), tuple(received), tuple(least_sent), tuple(least_received))

    # The whole table

    @well_called
    def to_array(self, root: int | None = 0) -> Array | None:
        """The whole table as one array on `root`, or on every rank (None); elsewhere nothing."""
        size, me = self._rank.size, self._rank.rank
        call = f"to_array(root={root!r})"
        out: list[Array] = []

        def allocate() -> None:
            check_root(root, size)
            self.local  # noqa: B018
            if root in (None, me):
                out.append(np.empty(self.shape, self.dtype))

        together(self._rank, self._token, call, allocate)
        for low, high in self._pieces():
            mine = _flat(self.local[low:high])
            came = self._rank.transport.alltoallv(
                [mine if root in (None, rank) else self._nothing() for rank in range(size)]
            )
            for rank, part in enumerate(came):
                if out and len(part):
                    at = self._form.blocks.firsts[rank] + low
                    rows = part.view(self.dtype).reshape(-1, self.width)
                    out[0][at : at + len(rows)] = rows
        return out[0] if out else None

    @staticmethod
    @well_called
    def from_array(
        world: Rank,
        array: Any = None,
        root: int = 0,
        *,
        blocks: Sequence[int] | None = None,
        path: str | Path | None = None,
    ) -> ShardedTable:
        """A table of the rows of an array that `root` has; the others give none."""
        rank = a_rank(world)

        def described() -> tuple[int, int, str] | None:
            check_root(root, rank.size)
            return described_array(array) if rank.rank == root else None

        rows, width, dtype = together(rank, "", f"from_array(root={root!r})", described)[root] or (0, 0, "")
        table = ShardedTable(rank, rows, width, dtype, blocks=blocks, path=path)
        source = host_array(array, "array") if rank.rank == root else None
        for low, high in table._pieces():
            parts = [table._nothing()] * rank.size
            if source is not None:
                starts = zip(table._form.blocks.firsts, table.blocks, strict=True)
                parts = [_flat(source[first + min(low, n) : first + min(high, n)]) for first, n in starts]
            came = rank.transport.alltoallv(parts)[root]
            table.local[low:high] = came.view(table.dtype).reshape(-1, width)
        return table

    def _pieces(self) -> list[tuple[int, int]]:
        """The rows of the longest block, a piece at a time."""
        longest = max(self.blocks)
        step = max(1, PIECE // (self.width * self._element.itemsize))
        return [(low, min(low + step, longest)) for low in range(0, longest, step)]

    # On the disk

    @well_called
    def save(self, path: str | Path) -> None:
        """One file per shard and a manifest with their SHA-256 into a folder that all ranks see.

        The folder has the save before, whole, until this one is whole; load it on any number of ranks.
        """

        def manifest(token: str, checksums: Sequence[str | None]) -> Manifest:
            return manifest_of(token, self.width, self._element, self._form.blocks, SAVED, checksums)

        save_rows(self._rank, self._token, path, manifest, lambda: self.local)

    @staticmethod
    @well_called
    def load(
        world: Rank, path: str | Path, blocks: Sequence[int] | None = None, *, into: str | Path | None = None
    ) -> ShardedTable:
        """The table of a folder, on the ranks of this world; `into` a folder of memory-mapped shards, or in memory."""
        rank = a_rank(world)
        reading = open_save(rank, path, blocks, into)
        try:
            held = reading.manifest
            table = ShardedTable(rank, held.rows, held.width, held.dtype, blocks=blocks, path=into)
            table._read(reading, f"load({str(path)!r})")
        finally:
            reading.close()
        return table

    def _read(self, reading: Reading, call: str) -> None:
        """The rows of a save; a folder of mapped shards that could not be filled holds no table."""
        try:
            together(self._rank, self._token, call, lambda: reading.fill(self.local, self.first), nbytes=self._nbytes)
        except BaseException:
            if self._mapping is not None:
                self._mapping.abandon()
            raise

    def flush(self) -> None:
        """What was written to memory-mapped shards is on the disk; all ranks together."""
        mapping = self._mapping
        together(self._rank, self._token, "flush()", mapping.flush if mapping else lambda: None, nbytes=self._nbytes)

    @property
    def _nbytes(self) -> int:
        return max(self.blocks) * self.width * self._element.itemsize

    def close(self) -> None:
        """Give its memory back. Memory-mapped shards are flushed and said to be closed: all ranks together."""
        if self._local is None:
            return
        if self._mapping is not None:
            self._mapping.close(self._token)
        self._local = None
        self._mapping = None

    def __len__(self) -> int:
        return self.rows

    def __enter__(self) -> ShardedTable:
        return self

    def __exit__(self, kind: type | None, mistake: BaseException | None, trace: TracebackType | None) -> None:
        if mistake is None:
            self.close()
        elif self._mapping is not None:  # who comes next is told that it was not closed
            self._mapping.let_go()

    def __repr__(self) -> str:
        here = f"{self.blocks[self._rank.rank]} rows from {self.first} on rank {self._rank.rank} of {self._rank.size}"
        there = f", in {self.path}" if self.path else ""
        state = ", closed" if self._local is None else ""
        return f"<sharded table of {self.rows} x {self.width} {self._form.dtype}, {here}{there}{state}>"


def _flat(rows: Array) -> Bytes:
    """The bytes of rows."""
    found: Bytes = np.ascontiguousarray(rows).reshape(-1).view(np.uint8)
    return found


def _told(place: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, place))}]"
