"""What a measurement leaves behind: a table for people, JSON for programs, a bar chart for the documentation."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape as plain
from rich.table import Table

from benchmarks import machine
from benchmarks.frame import Row


def show(suite: str, rows: list[Row], console: Console) -> None:
    """The table: ms, GB/s, ratio to the best contender, fraction of the machine's limit."""
    console.print(f"[bold]{suite}[/bold]: medians of one interleaved run; {plain(machine.sentence())}")
    table = Table(pad_edge=False)
    table.add_column("contender", no_wrap=True)
    for name in ("ms", "GB/s", "x best other", "of limit"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("wanted")
    for _, group in groupby(rows, key=lambda row: row.workload):
        for number, row in enumerate(group):
            if number == 0:
                table.add_row(f"[bold cyan]{plain(row.workload)} {plain(row.title)}[/bold cyan]")
            told = "  " + plain(row.contender) + ("" if row.comparable else " (another result)")
            table.add_row(
                f"[bold]{told}[/bold]" if row.ours else told,
                _figure(row.ms),
                _figure(row.gb_per_s),
                _figure(row.ratio),
                _figure(row.of_limit),
                row.goal,
            )
            if row.told:
                table.add_row(f"    [dim]{plain(row.told)}[/dim]")
        table.add_section()
    console.print(table)


def _figure(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.5f}" if value < 0.01 else f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def write(suite: str, rows: list[Row], folder: Path, settings: dict[str, Any], limits: dict[str, str]) -> list[Path]:
    """`SUITE.json` and `SUITE.svg` in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    data = {
        "suite": suite,
        "command": f"python -m benchmarks {suite}",
        "settings": settings,
        "machine": machine.describe(),
        "limits": limits,
        "rows": [row.as_json() for row in rows],
    }
    as_json, as_svg = folder / f"{suite}.json", folder / f"{suite}.svg"
    as_json.write_text(json.dumps(data, indent=1) + "\n")
    as_svg.write_text(chart(suite, rows))
    return [as_json, as_svg]


WIDTH, LEFT, BAR, GAP = 860, 330, 15, 12


def chart(suite: str, rows: Iterable[Row]) -> str:
    """Horizontal bars, each workload on a scale of its own: shorter is faster."""
    body, top = [], 44
    for _, group in groupby(rows, key=lambda row: row.workload):
        several = list(group)
        longest = max(row.ms for row in several)
        body.append(
            f'<text x="10" y="{top + 4}" class="w">{escape(several[0].workload + " " + several[0].title)}</text>'
        )
        top += 12
        for row in several:
            body += _bar(row, top, longest)
            top += BAR + 3
        top += GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top + 10}" font-family="sans-serif">'
        "<style>text{font-size:11px;fill:#333}.w{font-weight:bold}.t{font-size:13px;font-weight:bold}</style>"
        f'<rect width="{WIDTH}" height="{top + 10}" fill="#fff"/>'
        f'<text x="10" y="20" class="t">{escape(suite)}: time per call, shorter is faster</text>'
        + "".join(body)
        + "</svg>\n"
    )


def _bar(row: Row, top: int, longest: float) -> list[str]:
    length = max(1.0, (WIDTH - LEFT - 110) * row.ms / longest)
    colour = "#2f6fb5" if row.ours else "#b9c2cc" if row.comparable else "#e2d6c3"
    middle = top + BAR - 4
    return [
        f'<text x="{LEFT - 8}" y="{middle}" text-anchor="end">{escape(row.contender)}</text>',
        f'<rect x="{LEFT}" y="{top}" width="{length:.1f}" height="{BAR}" fill="{colour}"/>',
        f'<text x="{LEFT + length + 5:.1f}" y="{middle}">{_figure(row.ms)} ms</text>',
    ]
