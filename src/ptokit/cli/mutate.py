"""`ptokit mutate`: would the checks catch a mistake in this kernel? It is broken in every small way, one at a time."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptokit.cli import console
from ptokit.cli.scripts import Launch, chosen, run_script
from ptokit.core.mutate import Fate, Verdict, verdicts

if TYPE_CHECKING:
    from rich.table import Table

COLOURS = {Fate.CAUGHT: "green", Fate.EQUIVALENT: "cyan", Fate.MISSED: "red"}


@click.command("mutate", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE.py")
@click.option("--launch", "number", type=int, help="Which launch of the script, from 1  [default: all of them].")
@click.option("--all", "show_all", is_flag=True, help="Show every mutant, not only those that matter.")
@click.option("--quiet", is_flag=True, help="Drop what the script prints; else it goes to stderr.")
@click.option("--json", "as_json", is_flag=True, help="Print every verdict as JSON.")
def command(file: Path, number: int | None, show_all: bool, quiet: bool, as_json: bool) -> None:
    """Break the kernels of a script in every small way, and see whether a finding tells of it.

    Each flag pair, barrier, dcci and dsb is left out, each tile is moved by 32 bytes, each scatter and gather gets an
    index one past its table. A mutant is caught by a finding, or equivalent: nothing is unordered without it, and the
    result is the same. Exit code 1 where one is missed, 2 where the script raises, launches nothing or has findings.

    \b
    Examples:
      ptokit mutate kernel.py
      ptokit mutate kernel.py --launch 2 --all
      ptokit mutate kernel.py --quiet --json
    """
    launches = run_script(file, quiet=quiet)
    wanted = launches if number is None else [chosen(launches, number, file)]
    told = [(number or at, list(_progress(one))) for at, one in enumerate(wanted, 1)]
    if as_json:
        click.echo(json.dumps([_as_dict(at, found) for at, found in told], indent=2))
    else:
        _show(told, show_all=show_all)
    if any(one.fate is Fate.MISSED for _, found in told for one in found):
        sys.exit(1)


def _progress(launch: Launch) -> Iterator[Verdict]:
    """The verdicts of one launch, counted on a terminal as they come."""
    from rich.console import Console

    with Console(stderr=True).status("the kernel itself ...") as status:
        every = verdicts(launch.kernel, lambda: list(launch.fresh()), **launch.keywords)
        for count, verdict in enumerate(every, 1):
            status.update(f"{count} mutants, last: {verdict.mutant.about}")
            yield verdict


def _as_dict(at: int, found: Sequence[Verdict]) -> dict[str, Any]:
    return {
        "launch": at,
        "score": {str(fate): sum(one.fate is fate for one in found) for fate in Fate},
        "mutants": [one.as_dict() for one in found],
    }


def _show(told: Sequence[tuple[int, Sequence[Verdict]]], *, show_all: bool) -> None:
    to = console()
    for at, found in told:
        count = {fate: sum(one.fate is fate for one in found) for fate in Fate}
        to.print(
            f"launch {at}: {len(found)} mutants, {count[Fate.CAUGHT]} caught, {count[Fate.EQUIVALENT]} equivalent, "
            f"{count[Fate.MISSED]} missed",
            style="bold",
            soft_wrap=True,
        )
        shown = [one for one in found if show_all or one.fate is not Fate.EQUIVALENT]
        if shown:
            to.print(_table(shown, plain=not to.encoding.startswith("utf")))
        if count[Fate.EQUIVALENT] and not show_all:
            to.print("Equivalent ones change nothing that anybody could see; --all shows them.", soft_wrap=True)


def _table(found: Sequence[Verdict], *, plain: bool) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.ASCII if plain else box.ROUNDED)
    for name in ("lines", "mutant", "fate", "why"):
        table.add_column(name)
    for one in found:
        lines = ", ".join(map(str, one.mutant.lines))
        fate = Text(str(one.fate), style=COLOURS[one.fate])
        table.add_row(lines, Text(one.mutant.about), fate, Text(one.reason))
    return table
