"""`ptokit trace`: a launch of a script as a file for ui.perfetto.dev, and how busy each pipe is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptokit.cli import console
from ptokit.cli.scripts import chosen, cycles_table, run_script
from ptokit.report.perfetto import write

if TYPE_CHECKING:
    from rich.table import Table

    from ptokit.core.run import Run


@click.command("trace", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE.py")
@click.option("--out", type=click.Path(path_type=Path), help="The file to write  [default: FILE.perfetto.json].")
@click.option("--launch", "number", type=int, help="Which launch of the script, from 1  [default: the first].")
@click.option("--quiet", is_flag=True, help="Drop what the script prints; else it goes to stderr.")
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
def command(file: Path, out: Path | None, number: int | None, quiet: bool, as_json: bool) -> None:
    """Run a script, and write one of its launches as a timeline for ui.perfetto.dev.

    Each block is a process, each pipe a lane; flags and handshakes are arrows. Modelled cycles, no measurement. Exit
    code 2 where the script raises or launches nothing.

    \b
    Examples:
      ptokit trace kernel.py
      ptokit trace kernel.py --launch 2 --out second.json
      ptokit trace kernel.py --quiet --json
    """
    launches = run_script(file, quiet=quiet)
    run = chosen(launches, number, file).run
    written = write(run.trace, out or file.with_suffix(".perfetto.json"))
    told = _told(run, launch=number or 1, launches=len(launches), out=written)
    if as_json:
        click.echo(json.dumps(told, indent=2))
    else:
        _show(told)


def _told(run: Run, **more: Any) -> dict[str, Any]:
    """Everything that is said, in JSON's own types."""
    return {
        **more,
        "out": str(more["out"]),
        "target": run.target,
        "blocks": len(run.blocks),
        "cycles": run.cycles.total,
        "microseconds": run.cycles.microseconds,
        "findings": sorted({finding.id for finding in run.findings}),
        "pipes": cycles_table(run),
    }


def _show(told: dict[str, Any]) -> None:
    to = console()
    blocks = "1 block" if told["blocks"] == 1 else f"{told['blocks']} blocks, of the slowest"
    to.print(
        f"launch {told['launch']} of {told['launches']} on {told['target']}, {blocks}: {told['cycles']:,.0f} cycles, "
        f"{told['microseconds']:.2f} us",
        style="bold",
        soft_wrap=True,
    )
    to.print(_pipes(told["pipes"], plain=not to.encoding.startswith("utf")))
    if told["findings"]:
        to.print(f"Findings in this launch: {', '.join(told['findings'])}. Read: ptokit explain ID", soft_wrap=True)
    to.print(f"Wrote {told['out']}; open it in https://ui.perfetto.dev", markup=False, soft_wrap=True)


def _pipes(pipes: list[dict[str, Any]], *, plain: bool) -> Table:
    """Pipe by pipe, and where most of each one's cycles go."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.ASCII if plain else box.ROUNDED)
    table.add_column("pipe")
    for heading in ("instructions", "busy cycles", "share"):
        table.add_column(heading, justify="right")
    table.add_column("most of it", overflow="fold")
    for one in pipes:
        most = one["sites"][0] if one["cycles"] else None
        told = f"{most['name']}, line {most['where'].rpartition(':')[2]}" if most else ""
        table.add_row(one["pipe"], str(one["instructions"]), f"{one['cycles']:,.0f}", f"{one['share']:.0%}", Text(told))
    return table
