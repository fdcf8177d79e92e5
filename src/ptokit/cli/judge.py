"""`ptokit judge`: is what a board gave a legal result of this program, and which order explains it?"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np

from ptokit.access.plan import Array
from ptokit.access.report import Report
from ptokit.cli import console
from ptokit.cli.programs import Played, Program, count, program_of, targets_of, told_if_unread
from ptokit.cli.texts import shown
from ptokit.cli.values import as_type, read_array
from ptokit.core.run import Run
from ptokit.dtypes import element_type
from ptokit.errors import PtoError, PtoValueError, listed, nearest
from ptokit.findings import Severity
from ptokit.policies import ScatterAtomicOp

SEEDS = 8
SECONDS = 60.0
MOST_TOLD = 4
LEGAL, ILLEGAL, UNKNOWN, REFUSED = "legal", "illegal", "not reproduced", "refused"
SAYS = {
    LEGAL: "a legal result",
    ILLEGAL: "no legal result",
    UNKNOWN: "not reproduced",
    REFUSED: "this target does not execute the program to its end",
}
COLOURS = {LEGAL: "bold green", ILLEGAL: "bold red", UNKNOWN: "bold yellow", REFUSED: "bold yellow"}


@dataclass(frozen=True)
class Verdict:
    """What one target says of the dump."""

    target: str
    verdict: str
    explained_by: str | None
    """`program`, `late`, `random, seed 3`: the schedule that gives these very bits; `another order`; None."""
    reasons: tuple[str, ...]
    facts: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """In JSON's own types."""
        return {
            "target": self.target,
            "verdict": self.verdict,
            "explained_by": self.explained_by,
            "reasons": list(self.reasons),
            **self.facts,
        }


@click.command("judge", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", metavar="FILE")
@click.option("--result", required=True, metavar="[NAME=]DUMP.npy", help="What the board gave: an argument afterwards.")
@click.option("--arg", "args", multiple=True, metavar="NAME=VALUE", help="An argument as it was before: as in run.")
@click.option("--func", metavar="NAME", help="The function  [default: the entry, or the only one].")
@click.option("--target", default="all", show_default=True, metavar="TARGETS", help="cpu, a2a3, a5, several, or all.")
@click.option("--blocks", type=click.IntRange(1), help="How many cores  [default: 1].")
@click.option("--dyn-ub", type=click.IntRange(0), help="Bytes of the unified buffer to ask for (a5).")
@click.option(
    "--seeds", type=click.IntRange(0), default=SEEDS, show_default=True, help="How many random orders to try."
)
@click.option("--launch", "number", type=int, default=None, help="Which launch of a script  [default: the first].")
@click.option("--max-seconds", type=click.FloatRange(0, min_open=True), default=SECONDS, show_default=True)
@click.option("--quiet", is_flag=True, help="Drop what a script prints; else it goes to stderr.")
@click.option("--json", "as_json", is_flag=True, help="Print every verdict as JSON.")
def command(
    file: str,
    result: str,
    args: tuple[str, ...],
    func: str | None,
    target: str,
    blocks: int | None,
    dyn_ub: int | None,
    seeds: int,
    number: int | None,
    max_seconds: float,
    quiet: bool,
    as_json: bool,
) -> None:
    """Hold a dump of a board's result against what each target may legally give.

    A program with one scatter into the array has a set of legal results, and the dump is in it or not. Any other is
    executed in the order of the program, in that of the adversary and in random ones, and the dump is compared with
    each. NAME may be left out where the program writes one array. Exit code 0 where a target explains the dump, 1 where
    none does, 2 where something cannot be read.

    \b
    Examples:
      ptokit judge kernel.pto --result table=board.npy --arg "table=zeros(100x64)" --arg rows=rows.npy
      ptokit judge kernel.pto --result board.npy --arg "x=arange(64)" --target a5 --seeds 100
      ptokit judge kernel.py --result board.npy --target a2a3,a5 --json
    """
    unread: dict[str, Any] = {"file": shown(file), "result": result, "argument": None, "verdicts": []}
    launch = 1 if number is None and file.endswith(".py") else number
    with told_if_unread(unread, as_json=as_json):
        programs = program_of(file, args, func, launch, quiet=quiet)
    program = programs[0]
    options = {"blocks": blocks, "dyn_ub": dyn_ub, "max_seconds": max_seconds}
    judge = Judge(program, options, seeds, *_named(result))
    told = [judge.on(one) for one in targets_of(program, target)]
    if as_json:
        about = {"file": program.name, "result": str(judge.path), "argument": judge.name}
        click.echo(json.dumps({**about, "verdicts": [one.as_dict() for one in told]}, indent=2, default=str))
    else:
        _show(judge, told)
    sys.exit(not any(one.verdict == LEGAL for one in told))


def _named(result: str) -> tuple[str | None, Path]:
    name, equals, path = result.partition("=")
    if equals and not Path(result).exists():
        return name.strip().removeprefix("%"), Path(path.strip())
    return None, Path(result)


def _show(judge: Judge, told: Sequence[Verdict]) -> None:
    from rich.text import Text

    to = console()
    to.print(f"{judge.path} as {judge.name or 'the result'} of {judge.program.name}", markup=False, soft_wrap=True)
    for one in told:
        order = f", explained by: {one.explained_by}" if one.explained_by else ""
        said = (SAYS[one.verdict], COLOURS[one.verdict])
        to.print(Text.assemble("  ", (f"{one.target:<5}", "bold"), said, order), soft_wrap=True)
        for reason in one.reasons:
            to.print(f"        {reason}", markup=False, soft_wrap=True)


class Judge:
    """A dump, and the program that should have given it."""

    def __init__(self, program: Program, options: dict[str, Any], seeds: int, name: str | None, path: Path) -> None:
        self.program, self.options, self.seeds = program, options, seeds
        self.name, self.path = name, path
        self.raw = read_array(path, None, "--result")

    def on(self, target: str) -> Verdict:
        """What one target says."""
        try:
            played = self.program.play(target, schedule="program", seed=0, **self.options)
        except PtoError as mistake:
            return Verdict(target, REFUSED, None, (str(mistake),))
        if played.run is None or any(block.stopped for block in played.run.blocks):
            worst = [one for one in played.findings if one.severity is Severity.ERROR]
            return Verdict(target, REFUSED, None, tuple(f"{one.id}: {one.message}" for one in worst[:MOST_TOLD]))
        self.name = self.name or self._written(played)
        dump = self._dump(played)
        found = _only_scatter(played, self.name)
        if found is not None:
            return self._by_outcomes(played, found, dump)
        if self.name in played.tensors and not _writes(played, self.name):
            same = count(played.after[self.name], dump) == 0
            reason = f"The program never writes {self.name}."
            return Verdict(target, LEGAL if same else ILLEGAL, "program" if same else None, (reason,), {"by": "orders"})
        return self._by_orders(played, dump)

    # The dump

    def _written(self, played: Played) -> str:
        """The array that the program writes, where it is one."""
        written = [name for name in played.after if name not in played.tensors or _writes(played, name)]
        fits = [name for name in written if played.after[name].size == self.raw.size]
        if len(written) == 1:
            return written[0]
        if len(fits) != 1:
            names = listed(fits or written) or "no array"
            raise PtoValueError(f"--result: the program writes {names}; say which this is: --result NAME={self.path}")
        return fits[0]

    def _dump(self, played: Played) -> Array:
        assert self.name is not None
        if self.name not in played.after:
            known = listed(played.after) or "none"
            raise PtoValueError(
                f"--result {self.name}: no such array.{nearest(self.name, played.after)} Known: {known}"
            )
        after = played.after[self.name]
        dump = as_type(self.raw, element_type(after.dtype), f"--result {self.path}")
        if dump.size != after.size:
            raise PtoValueError(
                f"--result: {self.path} has {dump.size} elements, shape {dump.shape}; {self.name} has {after.size}, "
                f"shape {after.shape}"
            )
        return dump.reshape(after.shape)

    # One scatter: the set of legal results

    def _by_outcomes(self, played: Played, report: Report, dump: Array) -> Verdict:
        assert self.name is not None
        facts: dict[str, Any] = {"by": "outcomes", "exact": report.outcomes.exact}
        stale = _stale(played, self.name)
        flat = np.ascontiguousarray(dump).reshape(-1)
        if report.outcomes.contains(flat):
            if count(_device(played, self.name), dump) == 0:
                return Verdict(played.target, LEGAL, "program", stale, facts)
            return Verdict(played.target, LEGAL, "another order", (*_who(report, flat), *stale), facts)
        if stale and report.outcomes.contains(_flushed(played, self.name, dump)):
            return Verdict(played.target, LEGAL, "stores that were not flushed", stale, facts)
        why = f"{report.outcomes.why_not(flat)}.".replace("..", ".")
        return Verdict(played.target, ILLEGAL, None, (f"{why[:1].upper()}{why[1:]}", *stale), facts)

    # Anything else: the orders that were tried

    def _by_orders(self, played: Played, dump: Array) -> Verdict:
        assert self.name is not None
        tried: list[str] = []
        for word, one in self._orders(played):
            tried.append(word)
            if one.run is None:
                continue
            for what, array in ((None, one.after[self.name]), ("before any flush", _device(one, self.name))):
                if count(array, dump) == 0:
                    by = word if what is None else f"{word}, {what} is missing"
                    return Verdict(played.target, LEGAL, by, (), {"by": "orders", "tried": len(tried)})
        where = _first_difference(played.after[self.name], dump)
        reason = f"None of the {len(tried)} orders tried ({_listed(tried)}) gives these bits. {where}"
        return Verdict(played.target, UNKNOWN, None, (reason,), {"by": "orders", "tried": len(tried)})

    def _orders(self, program: Played) -> Iterator[tuple[str, Played]]:
        yield "program", program
        yield "late", self.program.play(program.target, schedule="late", seed=0, **self.options)
        for seed in range(1, self.seeds + 1):
            again = self.program.play(program.target, schedule="random", seed=seed, **self.options)
            yield f"random, seed {seed}", again


def _listed(tried: Sequence[str]) -> str:
    seeds = len(tried) - 2
    return ", ".join([*tried[:2], *([f"{seeds} random ones"] if seeds > 0 else [])])


def _first_difference(after: Array, dump: Array) -> str:
    size = after.dtype.itemsize
    a, b = (np.ascontiguousarray(one).reshape(-1).view(np.uint8).reshape(-1, size) for one in (after, dump))
    at = int(np.flatnonzero((a != b).any(axis=1))[0])
    place = tuple(int(one) for one in np.unravel_index(at, after.shape))
    return f"At {place} the dump holds {dump[place]}, and the order of the program gives {after[place]}."


# Looking into a run


def _buffer(played: Played, name: str) -> int | None:
    """The stretch of global memory behind an argument."""
    run, at = played.run, played.tensors.get(name)
    if run is None or at is None:
        return None
    tensor = run.tensors[at]
    return None if tensor is None or not run.blocks else run.blocks[0].gm.place(tensor).buffer.number


def _writes(played: Played, name: str) -> bool:
    """The program writes that argument."""
    space = _buffer(played, name)
    assert played.run is not None
    return any(
        touch.writes and region.space == space
        for block in played.run.blocks
        for step in block.steps
        for touch in step.touches
        for region in touch.regions
    )


def _device(played: Played, name: str) -> Array:
    """The argument as the device has it; a tile has but one side."""
    at = played.tensors.get(name)
    if played.run is None or at is None:
        return played.after[name]
    return played.run.device(at).reshape(played.after[name].shape)


def _stale(played: Played, name: str) -> tuple[str, ...]:
    """The host does not see all of what the device has: a flush is missing."""
    number = count(_device(played, name), played.after[name])
    if not number:
        return ()
    return (
        f"The program lacks a flush: {number} elements of {name} need not reach the host, and may hold old values.",
    )


def _flushed(played: Played, name: str, dump: Array) -> Array:
    """The dump, with the old values that a missing flush explains taken for what the device has."""
    device = _device(played, name)
    bits = np.dtype(f"u{dump.dtype.itemsize}")
    has, old, new = (np.ascontiguousarray(one).reshape(-1).view(bits) for one in (dump, played.before[name], device))
    return np.asarray(np.where(has == old, new, has)).view(dump.dtype)


def _only_scatter(played: Played, name: str) -> Report | None:
    """The report of the one scatter that writes an argument, where nothing else does."""
    space, run = _buffer(played, name), played.run
    assert run is not None
    if space is None or len(run.blocks) != 1:
        return None
    writers = {
        id(step.instruction): step
        for step in run.blocks[0].steps
        if any(touch.writes and region.space == space for touch in step.touches for region in touch.regions)
    }
    if len(writers) != 1:
        return None
    (step,) = writers.values()
    return _report(run, step.instruction.number)


def _report(run: Run, number: int) -> Report | None:
    one = run.blocks[0].instructions[number]
    for step in run.blocks[0].steps:
        running = (
            step.cost[1]
            if step.instruction is one and isinstance(step.cost, tuple) and step.cost[0] == "plan"
            else None
        )
        report = getattr(running, "report", None)
        if isinstance(report, Report) and report.op == "mscatter":
            return report
    return None


def _who(report: Report, dump: Array) -> tuple[str, ...]:
    """Whose values stand where the dump is not what the order of the program gives."""
    call, runs = report.plan.call, (report.moved or report.plan)
    if call.atomic is not ScatterAtomicOp.None_:
        return ("The sums were made in another order, or rounded in another one.",)
    address, row, length = runs.address, runs.runs.row, runs.runs.length
    left = np.asarray(report.result).reshape(-1)
    values = call.tile.storage
    told = []
    for at in np.unique(address):
        stretch = slice(int(at), int(at) + length)
        if dump[stretch].tobytes() == left[stretch].tobytes():
            continue
        writers = np.flatnonzero(address == at)
        places = runs.runs.src[writers][:, None] + np.arange(length) * runs.runs.src_step
        same = [bool(values[place].tobytes() == dump[stretch].tobytes()) for place in places]
        others = len(writers)
        if any(same):
            lane = writers[same.index(True)]
            who = f"source row {row[lane]}" if call.is_row else f"source element ({row[lane]}, {runs.runs.col[lane]})"
            told.append(f"Element {int(at)} on: what {who} wrote, one of {others} writers.")
        else:
            told.append(f"Element {int(at)} on: torn between {others} writers.")
    return (*told[:MOST_TOLD], *([f"... and {len(told) - MOST_TOLD} more"] if len(told) > MOST_TOLD else []))
