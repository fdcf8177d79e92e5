"""`ptokit explain`: the list of all findings, or the pages of some."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from ptokit.cli import console
from ptokit.explain import Page, page, pages

if TYPE_CHECKING:
    from rich.console import Console

COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: a list of pages.")
def command(ids: tuple[str, ...], as_json: bool) -> None:
    """Explain what findings mean, each with a failing example and its mended twin.

    Without an ID, list them all. The case of an ID does not matter, nor whether it has its prefix.

    \b
    Examples:
      ptokit explain
      ptokit explain PTO-L012
      ptokit explain i004 c003
      ptokit explain --json PTO-C004
    """
    chosen = [page(id_) for id_ in ids]
    if as_json:
        told = [_whole(one) for one in chosen] if ids else [_line(one) for one in pages().values()]
        click.echo(json.dumps(told, indent=2, ensure_ascii=False))
    elif ids:
        _print_pages(console(), chosen)
    else:
        _print_list(console(), pages().values())


def _line(one: Page) -> dict[str, Any]:
    """What the list says of a page, in JSON's own types."""
    return {
        "id": one.id,
        "title": one.title,
        "severity": one.severity,
        "room": one.room,
        "targets": list(one.targets),
    }


def _whole(one: Page) -> dict[str, Any]:
    """All of a page, in JSON's own types."""
    return {
        **_line(one),
        "ids": list(one.ids),
        "body": one.body,
        "failing": one.failing,
        "mended": one.mended,
    }


def _print_pages(to: Console, chosen: Iterable[Page]) -> None:
    """Pages as rich text on a terminal, as plain Markdown elsewhere."""
    if not to.is_terminal:
        click.echo("\n".join(one.markdown for one in chosen), nl=False)
        return
    from rich.markdown import Markdown

    for one in chosen:
        to.print(Markdown(one.markdown, code_theme="ansi_dark"))
        to.print()


def _print_list(to: Console, every: Iterable[Page]) -> None:
    """One line a page, under the name of its room."""
    from rich.text import Text

    for room, members in groupby(every, key=lambda one: one.room):
        to.print(Text(room, style="bold"))
        for one in members:
            severity = (f"{one.severity:<9}", COLOURS[one.severity])
            to.print(Text.assemble("  ", (one.id, "bold"), "  ", severity, one.title), soft_wrap=True)
        to.print()
    to.print(Text("Read a page with: ptokit explain ID"))
