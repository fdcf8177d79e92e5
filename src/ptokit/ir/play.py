"""Executing a function of a module on the simulated core: every finding points into the text."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ptokit.core.block import Block
from ptokit.core.kernel import Core
from ptokit.core.launch import launch
from ptokit.core.playing import stand_at
from ptokit.core.run import Run
from ptokit.core.ub import UbTile
from ptokit.findings import Finding
from ptokit.ir.arguments import Entry, Given, copy_back, entry_of, given_for
from ptokit.ir.player import Player, Program
from ptokit.ir.wording import in_text

if TYPE_CHECKING:
    from ptokit.ir.module import Module


def play(module: Module, arrays: Mapping[str, Any], func: str | None = None, target: str = "a5", **options: Any) -> Run:
    """Execute a function with these arrays and numbers; the arrays hold afterwards what the host sees.

    `options` are the keywords of `pto.launch`. A text without a function is one itself: what it does not define is an
    argument, and its tiles may be named.

    >>> import numpy as np
    >>> from ptokit.ir import parse
    >>> mod = parse('''
    ... %x = pto.arg : !pto.ptr<i32>
    ... %at = arith.constant 1 : index
    ... %seven = arith.constant 7 : i32
    ... pto.store_scalar %seven, %x[%at] : <i32, gm>, i32
    ... pto.dcci
    ... pto.dsb
    ... ''')
    >>> x = np.zeros(3, np.int32)
    >>> play(mod, {"x": x}).findings, x.tolist()
    ([], [0, 7, 0])
    """
    entry = entry_of(module, func)
    given = given_for(entry, arrays)
    performance = Performance(module, entry, given)
    run = launch(performance.kernel(), *performance.tensors, target=target, **options)
    performance.read_back(run.blocks)
    return replace(run, findings=[performance.worded(one) for one in run.findings])


run = play
"""The name under which `Module.run` finds it."""


WORD = re.compile(r"[\w.$]+")


class Performance:
    """One execution: the program, what was given for it, and the player of each block."""

    def __init__(self, module: Module, entry: Entry, given: Sequence[Given]) -> None:
        self.program, self.entry, self.given = Program(module), entry, given
        named = [(name, tensor) for one in given for name, tensor in one.tensors.items()]
        self.names, self.tensors = [name for name, _ in named], [tensor for _, tensor in named]
        self.players: list[Player] = []

    def kernel(self) -> Callable[..., None]:
        """The function that a launch calls on each block."""

        def kernel(core: Core, *tensors: Any) -> None:
            player = Player(self.program, core)
            self.players.append(player)
            player.bind(self.given, tensors)
            try:
                if self.entry.is_func:
                    player.region(self.entry.region, player.of(one.value for one in self.entry.arguments))
                else:
                    player.region(self.entry.region)
                    if self.entry.is_part:
                        player.flush(self.entry.op)
            finally:
                stand_at(core, None)

        names = ["k", *self.names]
        kind = inspect.Parameter.POSITIONAL_ONLY
        made = [inspect.Parameter(name if name.isidentifier() else f"arg_{n}", kind) for n, name in enumerate(names)]
        if len({one.name for one in made}) == len(made):
            kernel.__signature__ = inspect.Signature(made)  # type: ignore[attr-defined]
        kernel.__name__ = self.entry.name or "text"
        return kernel

    def read_back(self, blocks: Sequence[Block]) -> None:
        """Tiles that came from outside go back there, as block 0 left them."""
        first = next((one for one in self.players if one.core.block_idx == 0), None)
        for one in self.given:
            outside = None if first is None else first.outside.get(one.argument.name)
            tile = None if outside is None else outside.tile
            if tile is None or not tile.is_mapped or not _was_written(blocks[0], tile):
                continue
            values = tile.load()
            if values.tobytes() != one.value.tobytes():
                copy_back(one, values)

    def worded(self, finding: Finding) -> Finding:
        """The finding in the words of the text, with the line that it points at."""
        facts = dict(finding.facts)
        where, text = finding.where, self.program.module.text
        if where is not None and where.file == text.file and where.line and "line_text" not in facts:
            start = text.offset(where.line, where.column)
            name = WORD.match(text.text, start)
            facts |= text.facts(start, name.end() if name else start + 1)
        return replace(finding, message=in_text(finding.message), fix=in_text(finding.fix), facts=facts)


def _was_written(block: Block, tile: UbTile) -> bool:
    return any(touch.writes and touch.what is tile for step in block.steps for touch in step.touches)
