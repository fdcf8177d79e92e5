"""`ptokit ranks`: what a collective, or a sharded table, would take on more ranks than there are here."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptokit.cli import console
from ptokit.comm.prices.picture import timeline
from ptokit.comm.prices.pricing import (
    COLLECTIVES,
    MOST_RANKS,
    TABLES,
    TOPOLOGIES,
    VARIANTS,
    Curve,
    Prices,
    asked,
    duration,
    limit,
    price,
)
from ptokit.comm.prices.routing import Routed
from ptokit.comm.prices.ways import WAYS
from ptokit.dtypes import ELEMENT_TYPES
from ptokit.errors import PtoValueError
from ptokit.report.chart import Line, letters, svg, write_svg
from ptokit.report.perfetto import write

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

OPS = COLLECTIVES + TABLES
SPAN = re.compile(r"(\d+)\.\.(\d+)")
SIZE = re.compile(r"(\d+)[x×](\d+)")  # noqa: RUF001 - people paste it


@click.command("ranks", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--op", default="tscatter", show_default=True, help=f"{', '.join(OPS)}; the last two are sharded tables.")
@click.option("--ranks", default="8..16384", show_default=True, help="8..16384 doubles each step; 2,3,5 is a list.")
@click.option("--rows", type=click.IntRange(1), default=64, show_default=True, help="Of one rank's slice, or lookups.")
@click.option("--width", type=click.IntRange(1), default=64, show_default=True, help="Elements of a row.")
@click.option("--dtype", default="float32", show_default=True, help=f"Element type: {', '.join(ELEMENT_TYPES)}.")
@click.option("--tile", default="16x64", show_default=True, help="Valid rows and columns of the staging tile.")
@click.option("--link", help="latency=US,bandwidth=GIB_S,root=GIB_S, or a TOML file  [default: assumptions].")
@click.option("--variant", default="all", show_default=True, help="single, pingpong, ccu or all.")
@click.option("--topology", default="flat", show_default=True, help="flat, tree (a what-if) or both.")
@click.option("--target", default="a5", show_default=True, help="a2a3 or a5.")
@click.option("--table-rows", type=click.IntRange(1), default=1 << 20, show_default=True, help="Of a sharded table.")
@click.option("--skew", default="uniform", show_default=True, help="Which rows of it: uniform, zipf, zipf:1.2.")
@click.option("--parameters", "file", type=click.Path(path_type=Path), help="A TOML file with numbers of the target.")
@click.option("--chart", type=click.Path(path_type=Path), metavar="FILE.svg", help="Time against ranks as a picture.")
@click.option("--trace", type=click.Path(path_type=Path), metavar="FILE.json", help="One way, few ranks, for Perfetto.")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def command(
    op: str,
    ranks: str,
    rows: int,
    width: int,
    dtype: str,
    tile: str,
    link: str | None,
    variant: str,
    topology: str,
    target: str,
    table_rows: int,
    skew: str,
    file: Path | None,
    chart: Path | None,
    trace: Path | None,
    as_json: bool,
) -> None:
    """Price TSCATTER, TGATHER or a sharded table on many ranks: time against ranks, and where the root holds all back.

    A model, no measurement: the same chunk schedule that the collectives run, the parameters of the target, and a link
    whose numbers are assumptions until you replace them. Exit code 1 where nothing can be priced.

    \b
    Examples:
      ptokit ranks
      ptokit ranks --ranks 2..4096 --rows 1 --width 256 --topology both --chart ranks.svg
      ptokit ranks --op tgather --target a2a3 --link latency=1.5,bandwidth=40,root=160 --json
      ptokit ranks --op gather --rows 4096 --table-rows 50000000 --skew zipf:1.2
      ptokit ranks --ranks 4 --variant pingpong --trace ranks.json
    """
    counts = counts_of(ranks)
    described: dict[str, Any] = {
        "rows": rows,
        "width": width,
        "dtype": dtype,
        "tile": tile_of(tile),
        "target": target,
        "link": link_of(link),
        "parameters": file,
    }
    ways: dict[str, Any] = {"variant": variant, "topology": topology, "table_rows": table_rows, "skew": skew}
    found = price(op, ranks=counts, **described, **ways)
    files = _write_files(found, op, described, counts, ways, chart, trace)
    if as_json:
        click.echo(json.dumps({**found.as_dict(), **files}, indent=2))
    else:
        _show(found, files)
    sys.exit(not any(curve.prices for curve in found.curves))


# What was written


def counts_of(text: str) -> list[int]:
    """Numbers of ranks: single ones, and ranges that double each step and end where they say.

    >>> counts_of("2,3,8..50")
    [2, 3, 8, 16, 32, 50]
    """
    found: set[int] = set()
    for word in text.replace(" ", "").split(","):
        span = SPAN.fullmatch(word)
        first, last = (span[1], span[2]) if span else (word, word)
        if not first.isdecimal() or not last.isdecimal():
            raise PtoValueError(f"--ranks {text}: {word!r} is no number of ranks; write 8..16384, or 2,3,5")
        low, high = int(first), int(last)
        if not 1 <= low <= high:
            raise PtoValueError(f"--ranks {text}: {word} is empty; a range goes from 1 or more upwards, as in 8..16384")
        if high > MOST_RANKS:
            raise PtoValueError(f"--ranks {text}: {high} ranks are too many; at most {MOST_RANKS} are priced")
        while low < high:
            found.add(low)
            low *= 2
        found.add(high)
    return sorted(found)


def tile_of(text: str) -> tuple[int, int]:
    """Rows and columns, as in 16x64."""
    size = SIZE.fullmatch(text.replace(" ", ""))
    if size is None:
        raise PtoValueError(f"--tile {text}: rows and columns are wanted, as in 16x64")
    return int(size[1]), int(size[2])


def link_of(text: str | None) -> dict[str, Any] | Path | None:
    """Numbers by their names, or the file that has them; `ccu.gate_us=5` is a number of another table.

    >>> link_of("latency=2,ccu.gate_us=5")
    {'latency': 2.0, 'ccu': {'gate_us': 5.0}}
    """
    if text is None:
        return None
    if "=" not in text:
        if not Path(text).exists():
            raise PtoValueError(f"--link {text}: neither a file nor NAME=NUMBER, as in latency=2,bandwidth=26")
        return Path(text)
    found: dict[str, Any] = {}
    for word in text.split(","):
        name, _, number = (part.strip() for part in word.partition("="))
        try:
            value = float(number)
        except ValueError:
            raise PtoValueError(f"--link {text}: {word!r} is no NAME=NUMBER, as in latency=2,bandwidth=26") from None
        table, dot, key = name.partition(".")
        place = found.setdefault(table, {}) if dot else found
        place[key if dot else name] = int(value) if value.is_integer() and key == "most_ranks" else value
    return found


# Files


def _write_files(
    found: Prices,
    op: str,
    described: dict[str, Any],
    counts: list[int],
    ways: dict[str, Any],
    chart: Path | None,
    trace: Path | None,
) -> dict[str, str]:
    """The files that were asked for, by what they are."""
    wrote = {}
    lines = _lines(found)
    if chart is not None:
        if not lines:
            raise PtoValueError(f"--chart {chart}: nothing could be priced, so there is nothing to draw")
        wrote["chart"] = str(write_svg(chart, svg(_title(found), "ranks", lines, duration)))
    if trace is not None:
        wrote["trace"] = str(_write_trace(op, described, counts, ways, trace))
    return wrote


def _write_trace(op: str, described: dict[str, Any], counts: list[int], ways: dict[str, Any], trace: Path) -> Path:
    """One way on one number of ranks."""
    variant, topology = ways["variant"].lower(), ways["topology"].lower()
    work = asked(op, **described)
    if work.op in TABLES:
        raise PtoValueError(f"--trace draws {' and '.join(COLLECTIVES)}; a routed table has no schedule of chunks")
    if len(counts) > 1 or variant not in VARIANTS or topology not in TOPOLOGIES or (variant, topology) not in WAYS:
        raise PtoValueError("--trace draws one way on one number of ranks: add --ranks 4 --variant pingpong, say")
    most, why_not = limit(work, variant)
    if counts[0] > most:
        raise PtoValueError(f"--trace: {counts[0]} ranks cannot be drawn. {why_not}")
    return write(timeline(work, variant, topology, counts[0]), trace)


def _lines(found: Prices) -> list[Line]:
    return [
        Line(curve.name, tuple((one.ranks, one.seconds) for one in curve.prices))
        for curve in found.curves
        if curve.prices
    ]


# The screen


def _title(found: Prices) -> str:
    told = found.asked
    size = f"{told['rows']} x {told['width']} {told['dtype']} a rank"
    tile = f"tile {told['tile'][0]} x {told['tile'][1]}"
    table = f", table of {told['table_rows']:,} rows, {told['skew']}" if "table_rows" in told else ""
    return f"{told['op']} on {told['target']}: {size}, {tile}{table}"


def _show(found: Prices, files: dict[str, str]) -> None:
    to = console()
    to.print(_title(found), style="bold", markup=False, soft_wrap=True)
    lines = _lines(found)
    if lines:
        to.print(_table(found, plain=not to.encoding.startswith("utf")))
        _show_chart(to, lines)
    for sentence in found.sentences:
        to.print(f"- {sentence}", markup=False, soft_wrap=True)
    for what, path in files.items():
        hint = "; open it in https://ui.perfetto.dev" if what == "trace" else ""
        to.print(f"Wrote {path}{hint}", markup=False, soft_wrap=True)
    to.print(
        "A model, no measurement: the numbers of the link stand in ptokit/comm/prices/link.toml and are assumptions; "
        "--link replaces any of them.",
        style="dim",
        soft_wrap=True,
    )


def _show_chart(to: Console, lines: list[Line]) -> None:
    if len({x for line in lines for x, _ in line.points}) > 1:
        to.print(*letters("ranks", lines, duration), sep="\n", markup=False, soft_wrap=True)
        to.print()


def _table(found: Prices, *, plain: bool) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.ASCII if plain else box.ROUNDED)
    first = found.curves[0].prices
    routed = [one for one in first if isinstance(one, Routed)]
    for name in ("ranks", *(ROUTED if routed else [curve.name for curve in found.curves])):
        table.add_column(name, justify="right")
    if routed:
        for one in routed:
            table.add_row(f"{one.ranks:,}", *_routed(one))
        return table
    for ranks in sorted({one.ranks for curve in found.curves for one in curve.prices}):
        table.add_row(f"{ranks:,}", *(_cell(curve, ranks) for curve in found.curves))
    return table


ROUTED = ("time", "slowest", "most out, bytes", "most in, bytes", "x least")
"""Of the ranks: which is the slowest, and the most that one sends and receives; what crosses, to what has to."""


def _routed(one: Routed) -> tuple[str, ...]:
    ratio = f"{one.nbytes / one.minimum_bytes:.2f}" if one.minimum_bytes else "-"
    return duration(one.seconds), str(one.slowest), f"{one.out_bytes.max():,.0f}", f"{one.in_bytes.max():,.0f}", ratio


def _cell(curve: Curve, ranks: int) -> str:
    found = curve.at(ranks)
    return "-" if found is None else duration(found.seconds)
