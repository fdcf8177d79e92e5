"""The command line: one file a command, each imported when it is called."""

from __future__ import annotations

import importlib
import io
import os
import sys
from typing import TYPE_CHECKING

import click

from ptokit.errors import PtoError, listed, nearest

if TYPE_CHECKING:
    from rich.console import Console

COMMANDS = {
    "check": "What is wrong with a text or a script: rules, flags, memory, flushes; and --fix.",
    "convert": "A text in another of its forms (dps, ssa, as, generic), or as C++.",
    "cost": "Where the cycles of a call go, and what other ways to say it would cost.",
    "demo": "An embedding-gradient update on the three targets, with all that can go wrong.",
    "doctor": "What this installation can do, what it lacks, and how to get it.",
    "explain": "What a finding means, with a failing example and its mended twin.",
    "judge": "Is what a board gave a legal result, and which order explains it?",
    "lsp": "A language server for the text forms, over stdin and stdout.",
    "mutate": "Would a mistake in this kernel be found? Every flag, tile, index and flush is broken in turn.",
    "ranks": "What TSCATTER, TGATHER or a sharded table would take on thousands of ranks, by a model.",
    "run": "A text, or a script, on the simulated core of one target or of all, with all findings.",
    "trace": "A launch of a script as a timeline for ui.perfetto.dev, and how busy each pipe is.",
}
"""Every command and its line in the help; the code is in the module of the same name."""


class Commands(click.Group):
    """A group that knows its commands by name, and imports one when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, without importing anything."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        if cmd_name not in COMMANDS:
            ctx.fail(f"No such command {cmd_name!r}.{nearest(cmd_name, COMMANDS)} Known: {listed(COMMANDS)}")
        command = importlib.import_module(f"ptokit.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands from the table: no imports for `--help`."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: ptokit demo",
)
@click.version_option(package_name="ptokit", message="ptokit %(version)s")
def group() -> None:
    """Run, check and explain indexed memory access (MSCATTER, MGATHER) on tile machines."""


def main() -> None:
    """The entry point: a user's mistake is one sentence and exit code 2, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows a question mark, not a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        group.main(prog_name="ptokit", standalone_mode=True)
    except PtoError as mistake:
        click.echo(f"ptokit: {mistake}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        # The reader (head, less) has gone; what is left in the buffer has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as trouble:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        click.echo(f"ptokit: the output could not be written: {trouble.strerror}", err=True)
        sys.exit(1)


def console() -> Console:
    """Where a command prints: it knows a terminal from a pipe, and NO_COLOR means no escape codes at all."""
    from rich.console import Console

    return Console(highlight=False, color_system=None if os.environ.get("NO_COLOR") else "auto")
