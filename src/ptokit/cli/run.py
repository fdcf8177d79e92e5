"""`ptokit run`: a text, or the launches of a script, on the simulated core, with everything that is wrong with it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ptokit.cli import console
from ptokit.cli.programs import Played, Program, ScriptProgram, program_of, targets_of, told_if_unread
from ptokit.cli.texts import STDIN, shown
from ptokit.cli.values import named, write_array
from ptokit.core.pipes import SCHEDULES
from ptokit.errors import PtoValueError, listed, nearest
from ptokit.findings import Finding, Severity

SECONDS = 60.0


@click.command("run", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", metavar="FILE")
@click.option("--func", metavar="NAME", help="The function  [default: the entry, or the only one].")
@click.option("--target", metavar="TARGETS", help="cpu, a2a3, a5, several with commas, or all  [default: FILE's, a5].")
@click.option("--arg", "args", multiple=True, metavar="NAME=VALUE", help="An argument; see below.")
@click.option("--out", "outs", multiple=True, metavar="NAME=FILE.npy", help="Write an argument as it is afterwards.")
@click.option("--schedule", type=click.Choice(list(SCHEDULES)), help="What no flag orders  [default: late].")
@click.option("--seed", type=click.IntRange(0), help="Of --schedule random.")
@click.option("--blocks", type=click.IntRange(1), help="How many cores  [default: 1].")
@click.option("--dyn-ub", type=click.IntRange(0), help="Bytes of the unified buffer to ask for (a5).")
@click.option("--trace", metavar="FILE.json", help="Write a timeline for ui.perfetto.dev.")
@click.option("--launch", "number", type=int, help="Which launch of a script, from 1  [default: all of them].")
@click.option("--max-seconds", type=click.FloatRange(0, min_open=True), default=SECONDS, show_default=True)
@click.option(
    "--severity",
    type=click.Choice([str(one) for one in Severity], case_sensitive=False),
    default="warning",
    show_default=True,
    help="What counts for the exit code; lower ones are hidden.",
)
@click.option("--lenient", is_flag=True, help="Read ops that nobody knows; they cannot be executed.")
@click.option("--quiet", is_flag=True, help="Drop what a script prints; else it goes to stderr.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def command(
    file: str,
    func: str | None,
    target: str | None,
    args: tuple[str, ...],
    outs: tuple[str, ...],
    schedule: str | None,
    seed: int | None,
    blocks: int | None,
    dyn_ub: int | None,
    trace: str | None,
    number: int | None,
    max_seconds: float,
    severity: str,
    lenient: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Execute a text, or the launches of a script, on the simulated core of one target or of all.

    An argument is name=file.npy, a number, or zeros(16x64), ones(16x64), full(16x64, 7), arange(100),
    random(16x64, SEED) from 0 to 1, ints(LO, HI, 1x16, SEED). The text decides the element type; where it gives the
    shape, zeros() will do. bfloat16 and the 8-bit floats stand in .npy files as raw bytes. FILE may be - for stdin.
    Exit code 1 where something is found, 2 where FILE cannot be read.

    \b
    Examples:
      ptokit run kernel.pto --arg "table=zeros(100x64)" --arg rows=rows.npy --arg n=100
      ptokit run kernel.pto --target all --arg "x=random(64)" --out x=after.npy
      ptokit run kernel.pto --arg "x=arange(64)" --schedule random --seed 3 --trace x.perfetto.json
      ptokit run kernel.py --target a2a3
    """
    unread: dict[str, Any] = {
        "file": shown(file),
        "form": None,
        "severity": severity,
        "runs": [],
        "silenced": [],
        "wrote": [],
    }
    with told_if_unread(unread, as_json=as_json):
        programs = program_of(file, args, func, number, lenient=lenient, quiet=quiet)
    if len(programs) > 1 and (outs or trace):
        raise PtoValueError(f"{file} makes {len(programs)} launches; say which (--launch) for --out and --trace")
    options = {"schedule": schedule, "seed": seed, "blocks": blocks, "dyn_ub": dyn_ub, "max_seconds": max_seconds}
    targets = targets_of(programs[0], target)
    told = [(one, _played(one, (None,) if target is None else targets, options)) for one in programs]
    wrote = [] if len(programs) > 1 else _write(told[0][1], named(outs, "--out"), trace)
    report = Told(programs, told, Severity(severity), wrote)
    report.print_json() if as_json else report.print_text()
    sys.exit(report.exit_code)


def _played(program: Program, targets: Sequence[str | None], options: dict[str, Any]) -> list[Played]:
    return [program.play(target, **options) for target in targets]


# Files


def _write(played: Sequence[Played], outs: dict[str, str], trace: str | None) -> list[str]:
    """The arrays and the timeline that were asked for; with several targets each name gets the target's."""
    wrote: list[str] = []
    for one in played:
        for name, file in outs.items():
            if name not in one.after:
                known = listed(one.after) or "none"
                raise PtoValueError(f"--out {name}: there is no such array.{nearest(name, one.after)} Known: {known}")
            path = _path(file, one.target, several=len(played) > 1)
            note = write_array(path, one.after[name], f"{name} after the run on {one.target}")
            wrote += [str(path), *([str(note)] if note else [])]
        if trace is not None and one.run is not None:
            path = _path(trace, one.target, several=len(played) > 1)
            wrote.append(str(one.run.trace.to_perfetto(path)))
    return wrote


def _path(file: str, target: str, *, several: bool) -> Path:
    if file == STDIN:
        raise PtoValueError("an array cannot be written to stdout: name a file")
    path = Path(file)
    return path.with_name(f"{path.stem}.{target}{path.suffix}") if several else path


# What is told


class Told:
    """The outcome of a command: findings by place, and a line for each execution."""

    def __init__(
        self,
        programs: Sequence[Program],
        played: Sequence[tuple[Program, Sequence[Played]]],
        threshold: Severity,
        wrote: Sequence[str],
    ) -> None:
        from ptokit.report.checked import Checked, CheckedFile
        from ptokit.report.suppress import silence

        self.played, self.wrote, self.threshold = played, wrote, threshold
        first = programs[0]
        every: list[Finding] = [*first.findings]
        every += [finding for _, runs in played for one in runs for finding in one.findings]
        left, silenced = silence(every, sources=first.sources)
        self.left = {id(one) for one in left}
        self.checked = Checked.of(
            [CheckedFile(first.name, first.form)],
            left,
            targets=list(dict.fromkeys(one.target for _, runs in played for one in runs)),
            threshold=threshold,
            silenced=silenced,
            sources=first.sources,
        )

    @property
    def exit_code(self) -> int:
        """0 nothing at or above the threshold, 1 findings."""
        return 1 if self.checked.findings else 0

    def print_text(self) -> None:
        """Findings with their lines, then what each execution did."""
        from ptokit.report.text import print_text

        to = console()
        print_text(self.checked, to)
        for program, runs in self.played:
            for one in runs:
                to.print(self._line(program, one), markup=False, soft_wrap=True)
        if self.wrote:
            to.print(f"Wrote {', '.join(self.wrote)}", markup=False, soft_wrap=True)

    def _line(self, program: Program, one: Played) -> str:
        launch = f"launch {program.number}, " if isinstance(program, ScriptProgram) else ""
        if one.run is None:
            return f"{launch}{one.target}: not executed to its end"
        changed = [
            f"{name} {number} of {one.after[name].size} elements changed"
            for name, number in one.changed.items()
            if number
        ]
        cycles = f"{one.run.cycles.total:,.0f} cycles"
        stopped = " (stopped)" if any(block.stopped for block in one.run.blocks) else ""
        return f"{launch}{one.target}: {cycles}{stopped}; {'; '.join(changed) or 'nothing changed'}"

    def print_json(self) -> None:
        """The same as data."""
        runs = [self._as_dict(program, one) for program, played in self.played for one in played]
        told = {
            "file": self.checked.files[0].name,
            "form": self.checked.files[0].form,
            "severity": str(self.threshold),
            "exit_code": self.exit_code,
            "runs": runs,
            "silenced": [{"id": one.finding.id, "by": one.by, "reason": one.reason} for one in self.checked.silenced],
            "wrote": list(self.wrote),
        }
        click.echo(json.dumps(told, indent=2, default=str))

    def _as_dict(self, program: Program, one: Played) -> dict[str, Any]:
        shown = [
            finding.as_dict()
            for finding in one.findings
            if id(finding) in self.left and finding.severity.rank <= self.threshold.rank
        ]
        run = one.run
        return {
            "target": one.target,
            **({"launch": program.number} if isinstance(program, ScriptProgram) else {}),
            "executed": run is not None and not any(block.stopped for block in run.blocks),
            "findings": shown,
            "cycles": None if run is None else run.cycles.total,
            "microseconds": None if run is None else run.cycles.microseconds,
            "ub": None if run is None else {"peak": run.ub.peak, "needed_dyn_ub": run.ub.needed_dyn_ub},
            "arguments": {
                name: {"dtype": str(after.dtype), "shape": list(after.shape), "changed": one.changed[name]}
                for name, after in one.after.items()
            },
        }
