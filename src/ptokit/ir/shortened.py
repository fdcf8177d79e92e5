"""A text played in short: long loops without their middle, no loop for ever, large views without their middle.

What is left out decides about data only: flags, the unified buffer and the data cache see the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xdsl.dialects import scf

from ptokit.comm.rules import KINDS
from ptokit.core.playing import stand_at
from ptokit.errors import PtoValueError
from ptokit.ir.arguments import Given
from ptokit.ir.dialect.ops import CommOp, MakeTensorViewOp
from ptokit.ir.play import Performance
from ptokit.ir.player import Player
from ptokit.ir.values import DIMS, View
from ptokit.tensors import DYNAMIC

if TYPE_CHECKING:
    from xdsl.ir import Block, Operation

MOST_STEPS = 10_000
"""Ops of the host and blocks that are entered: a loop that does not end is left."""
TOO_LONG = "it goes on for too long to be played here"
ROUNDS = 4
"""So many rounds of a loop are played at its beginning, and as many at its end."""
MOST_ELEMENTS = 1 << 20
"""A view that reaches further loses its middle."""


class Shortened(Performance):
    """A performance by players in a hurry."""

    def kernel(self) -> Callable[..., None]:
        """The function that a launch calls on each block."""

        def kernel(core: Any, *tensors: Any) -> None:
            player = ShortPlayer(self.program, core)
            self.players.append(player)
            player.bind(self.given, tensors)
            try:
                if self.entry.is_func:
                    player.region(self.entry.region, player.of(one.value for one in self.entry.arguments))
                else:
                    player.region(self.entry.region)
            finally:
                stand_at(core, None)

        return kernel


class ShortPlayer(Player):
    """It plays the first rounds of a loop and the last ones, and not for ever."""

    spent = 0

    def _spend(self) -> None:
        self.spent += 1
        if self.spent > MOST_STEPS:
            raise PtoValueError(TOO_LONG)

    def _block(self, block: Block) -> tuple[Operation | None, Block | None, list[Any]]:
        self._spend()
        return super()._block(block)

    def step(self, op: Operation) -> None:
        """One op."""
        self._spend()
        if isinstance(op, scf.ForOp):
            first, last, step = self.of((op.lb, op.ub, op.step))
            if isinstance(step, int) and step > 0:
                carried = self.of(op.iter_args)
                for at in shortened(range(first, last, step)):
                    _, carried = self.region(op.body, [at, *carried])
                self.values.update(zip(op.results, carried, strict=True))
                return
        super().step(op)
        if isinstance(op, MakeTensorViewOp):
            self.values[op.view] = small(self.values[op.view])

    def parts(self, op: CommOp, local: View, members: list[View]) -> tuple[View, list[View]]:
        """Of each rank's rows and columns a few chunks, and the last one as it is."""
        if not members:
            return local, members
        ping = self.tile(op.given_operands[1][0])
        true = [getattr(one, "true", ()) or one.shape for one in (local, *members)]
        front = true[1][:3]
        few = tuple(few_chunks(extent, step) for extent, step in zip(true[1][3:], ping.valid, strict=True))
        rows = few[0] * (len(members) if KINDS[op.collective].splits else 1)
        is_plain = all(one == true[1] for one in true[1:]) and true[0][:3] == front and true[0][4] == true[1][4]
        needed = true[1][3] * (len(members) if KINDS[op.collective].splits else 1)
        if few == true[1][3:] or not is_plain or true[0][3] < needed:
            return local, members
        start = (0,) * DIMS
        return local.part(start, (*front, rows, few[1])), [one.part(start, (*front, *few)) for one in members]

    def bind(self, given: Iterable[Given], on_device: Sequence[Any]) -> None:
        """The arguments; a view whose tensor was made smaller than its type says knows how large it should be."""
        every = list(given)
        super().bind(every, on_device)
        for one in every:
            dims, view = one.argument.dims, self.values.get(one.argument.value)
            if isinstance(view, View) and dims is not None:
                true = (*(1,) * (DIMS - len(dims)), *dims)
                wanted = tuple(has if want == DYNAMIC else want for want, has in zip(true, view.shape, strict=True))
                if wanted != view.shape:
                    made = SmallView(view.pointer, view.shape, view.strides, view.layout, true=wanted)
                    self.values[one.argument.value] = made


def shortened(rounds: range) -> list[int]:
    """The first rounds and the last; a multiple of four is left out, so that what alternates still does.

    >>> shortened(range(0, 100)), shortened(range(3))
    ([0, 1, 2, 3, 96, 97, 98, 99], [0, 1, 2])
    """
    skipped = max((len(rounds) - 2 * ROUNDS) // ROUNDS * ROUNDS, 0)
    return [*rounds[:ROUNDS], *rounds[ROUNDS + skipped :]]


def few_chunks(extent: int, step: int) -> int:
    """Two whole chunks and what is left for the last one, where there are more.

    >>> few_chunks(100, 8), few_chunks(96, 8), few_chunks(20, 8)
    (20, 16, 20)
    """
    return extent if step < 1 or extent <= 3 * step else 2 * step + extent % step


# Views


@dataclass(frozen=True, eq=False)
class SmallView(View):
    """A view without its middle: its first elements and its last ones lie where they lay, as far as they are there."""

    true: tuple[int, ...] = ()

    def part(self, offsets: Sequence[int], sizes: Sequence[int]) -> View:
        """A part, by offsets and sizes as the text has them."""
        View(self.pointer, self.true, self.strides, self.layout).part(offsets, sizes)  # within the whole?
        front = DIMS - len(offsets)
        start, wanted = (*(0,) * front, *offsets), (*self.true[:front], *sizes)
        counts = tuple(min(count, most) for count, most in zip(wanted, self.shape, strict=True))
        places = [moved(*one) for one in zip(start, counts, self.true, self.shape, strict=True)]
        found = super().part(places, counts)
        if counts == wanted:
            return found
        return SmallView(found.pointer, found.shape, found.strides, found.layout, true=wanted)


def moved(first: int, count: int, true: int, there: int) -> int:
    """Where a part of a dimension begins that has only its two ends.

    >>> moved(3, 2, 1000, 100), moved(990, 10, 1000, 100), moved(500, 10, 1000, 100)
    (3, 90, 45)
    """
    last = there - count
    if first > last // 2:
        first = first - (true - there) if true - first <= there - there // 2 else first % (last + 1)
    return min(max(first, 0), last)


def small(view: View) -> View:
    """The view, without its middle where it is large."""
    dims = ends(view.shape, view.strides)
    if dims == tuple(view.shape):
        return view
    return SmallView(view.pointer, dims, view.strides, view.layout, true=tuple(view.shape))


def reach(dims: Sequence[int], strides: Sequence[int]) -> int:
    """How many elements a view spans."""
    return 1 + sum((max(extent, 1) - 1) * step for extent, step in zip(dims, strides, strict=True))


def ends(dims: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Extents so small that the view does not reach too far: the outermost dimension gives first.

    >>> ends((4_000_000, 64), (64, 1)), ends((1000, 64), (64, 1))
    ((16384, 64), (1000, 64))
    """
    found = list(dims)
    for dim in sorted(range(len(found)), key=lambda dim: -strides[dim]):
        over = reach(found, strides) - MOST_ELEMENTS
        if over > 0 and strides[dim] > 0:
            found[dim] = max(found[dim] - -(-over // strides[dim]), 1)
    return tuple(found)
