"""`ptokit cost`: where the cycles of one described call go, and what other ways to say it would cost."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from ptokit.access.instructions import read_call
from ptokit.access.plan import Array, make_plan
from ptokit.cli import console
from ptokit.cli.scripts import cycles_table, run_script
from ptokit.cost import compare_choices, of_plan, parameters
from ptokit.dtypes import ELEMENT_TYPES, element_type
from ptokit.errors import IllegalInstruction, PtoValueError, listed, nearest
from ptokit.findings import Finding
from ptokit.targets import machine, named
from ptokit.tensors import MOST_BYTES, GlobalTensor, Tile

if TYPE_CHECKING:
    from rich.console import Console

Made = Callable[[np.random.Generator, int, int], Array]


def _uniform(rng: np.random.Generator, count: int, capacity: int) -> Array:
    return rng.integers(0, capacity, count)


def _unique(rng: np.random.Generator, count: int, capacity: int) -> Array:
    if count > capacity:
        raise PtoValueError(f"--indices unique: {count} indices cannot all differ in a table of {capacity}")
    return rng.choice(capacity, count, replace=False)


def _zipf(rng: np.random.Generator, count: int, capacity: int) -> Array:
    return (rng.zipf(1.2, count) - 1) % capacity


def _same(rng: np.random.Generator, count: int, capacity: int) -> Array:
    return np.full(count, rng.integers(0, capacity))


OPS = ("mscatter", "mgather")
INDICES: dict[str, Made] = {"uniform": _uniform, "unique": _unique, "zipf": _zipf, "same": _same}
"""Where the indices point."""


@dataclass(frozen=True)
class Described:
    """A call as the options describe it."""

    op: str
    rows: int
    cols: int
    table_rows: int
    dtype: str
    coalesce: str
    indices: str
    seed: int

    def operands(self) -> tuple[object, object, object]:
        """Tiles and table; the indices are drawn, the values do not matter."""
        dtype = element_type(self.dtype)
        padded = -(-self.cols // dtype.c0) * dtype.c0
        tile = Tile(dtype, self.rows, padded, (self.rows, self.cols))
        shape = (1, 1, 1, self.table_rows, self.cols)
        if self.table_rows * self.cols * dtype.itemsize > MOST_BYTES:
            raise PtoValueError(f"a table of {self.table_rows} x {self.cols} {dtype} is too large to be held here")
        table = GlobalTensor(np.zeros(self.table_rows * self.cols, dtype.numpy), dtype, shape)
        return (table, tile, self._index()) if self.op == "mscatter" else (tile, table, self._index())

    def _index(self) -> Tile:
        by_row = self.coalesce == "row"
        count, capacity = (
            (self.rows, self.table_rows) if by_row else (self.rows * self.cols, self.table_rows * self.cols)
        )
        words = INDICES[self.indices](np.random.default_rng(self.seed), count, capacity)
        valid = (1, self.rows) if by_row else (self.rows, self.cols)
        idx = Tile("uint32", valid[0], -(-valid[1] // 8) * 8, valid)
        idx.store(words.reshape(valid))
        return idx


@click.command("cost", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("op", metavar="mscatter|mgather|FILE.py")
@click.option("--target", default="a2a3,a5", show_default=True, help="One target, or several with commas.")
@click.option("--rows", type=click.IntRange(1), default=16, show_default=True, help="Valid rows of the tile.")
@click.option("--cols", type=click.IntRange(1), default=64, show_default=True, help="Valid columns, the table's too.")
@click.option("--table-rows", type=click.IntRange(1), default=1024, show_default=True, help="Rows of the table.")
@click.option("--dtype", default="float32", show_default=True, help=f"Element type: {', '.join(ELEMENT_TYPES)}.")
@click.option("--coalesce", type=click.Choice(["row", "elem"]), default="row", show_default=True)
@click.option("--atomic", default="none", show_default=True, help="none, add, max, min; of a scatter only.")
@click.option("--oob", default="undefined", show_default=True, help="undefined, skip, zero, clamp, wrap.")
@click.option("--conflict", default=None, help="last or default; of a scatter on a5 only.")
@click.option("--indices", type=click.Choice(list(INDICES)), default="uniform", show_default=True)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the indices that are drawn.")
@click.option("--tile-rows", default=None, help="Chunks to compare, with commas; else halves of halves.")
@click.option("--parameters", "file", type=click.Path(path_type=Path), help="A TOML file with numbers of your own.")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def command(
    op: str,
    target: str,
    rows: int,
    cols: int,
    table_rows: int,
    dtype: str,
    coalesce: str,
    atomic: str,
    oob: str,
    conflict: str | None,
    indices: str,
    seed: int,
    tile_rows: str | None,
    file: Path | None,
    as_json: bool,
) -> None:
    """Price one call in cycles: where they go, and what other ways to say it would cost. Or the launches of a script.

    A model, no measurement: what is public of a chip is taken, the rest is assumed, and all of it can be replaced.
    Exit code 1 where every target refuses the call.

    \b
    Examples:
      ptokit cost mscatter
      ptokit cost mscatter --target a5 --rows 64 --table-rows 100000 --conflict last
      ptokit cost mscatter --atomic add --indices zipf --json
      ptokit cost mgather --target a2a3 --coalesce elem --parameters mine.toml
      ptokit cost kernel.py
    """
    if op.endswith(".py"):
        _price_script(Path(op), file, as_json=as_json)
        return
    if op not in OPS:
        raise PtoValueError(f"{op!r} is no instruction and no FILE.py.{nearest(op, OPS)} Known: {listed(OPS)}")
    described = Described(op, rows, cols, table_rows, dtype, coalesce, indices, seed)
    policies = {"coalesce": coalesce, "oob": oob}
    policies |= {"atomic": atomic} if op == "mscatter" or atomic != "none" else {}
    policies |= {"conflict": conflict} if conflict else {}
    sizes = _sizes(tile_rows)
    told = [price(described, one.name, policies, file, sizes) for one in named(target.split(","))]
    if as_json:
        click.echo(json.dumps(told, indent=2))
    else:
        _show(told)
    sys.exit(not any(one["legal"] for one in told))


def _price_script(script: Path, file: Path | None, *, as_json: bool) -> None:
    """Where the cycles of a script's launches go, place by place."""
    told = []
    for number, launch in enumerate(run_script(script), 1):
        run = launch.run
        numbers = parameters(run.target, file)
        total = run.priced(numbers).total
        told.append({"launch": number, "target": run.target, "cycles": total, "pipes": cycles_table(run, numbers)})
    if as_json:
        click.echo(json.dumps(told, indent=2))
        return
    for one in told:
        _show_launch(console(), one)


def _show_launch(to: Console, one: dict[str, Any]) -> None:
    from rich import box
    from rich.table import Table

    to.print(f"launch {one['launch']} on {one['target']}: {one['cycles']:,.0f} cycles", style="bold", markup=False)
    table = Table(box=box.ROUNDED if to.encoding.startswith("utf") else box.ASCII)
    for name in ("pipe", "place", "instruction", "times", "cycles", "of the launch"):
        table.add_column(name, justify="left" if name in ("pipe", "place", "instruction") else "right")
    for pipe in one["pipes"]:
        for site in pipe["sites"]:
            share = site["cycles"] / one["cycles"] if one["cycles"] else 0.0
            place = site["where"].rsplit("/", 1)[-1]
            table.add_row(
                pipe["pipe"], place, site["name"], str(site["count"]), f"{site['cycles']:,.0f}", f"{share:.0%}"
            )
    to.print(table)


def _sizes(given: str | None) -> list[int] | None:
    try:
        return None if given is None else [int(size) for size in given.split(",")]
    except ValueError:
        raise PtoValueError(f"--tile-rows {given}: whole numbers with commas are wanted, as in 8,16") from None


def price(
    described: Described, target: str, policies: dict[str, Any], file: Path | None, sizes: list[int] | None
) -> dict[str, Any]:
    """One call on one target: its parts and its alternatives as data, or why the target refuses it."""
    numbers, where = parameters(target, file), machine(target)
    operands = described.operands()
    try:
        choices = compare_choices(
            described.op, *operands, target=target, parameters=numbers, tile_rows=sizes, **policies
        )
    except IllegalInstruction as refused:
        errors: list[Finding] = [f for f in refused.findings if f.severity == "error"]
        return {"target": target, "legal": False, "findings": [f.as_dict() for f in errors]}
    cost = of_plan(make_plan(read_call(described.op, operands, policies), where), numbers)
    return {"legal": True, "call": asdict(described), **cost.as_dict(), "choices": [asdict(one) for one in choices]}


ABOUT = {
    "mode": "Row or Elem",
    "conflict": "Last or Default",
    "tile": "Tile sizes, with the transfers between GM and UB",
}


def _show(told: list[dict[str, Any]]) -> None:
    to = console()
    for one in told:
        if not one["legal"]:
            to.print(f"{one['target']} refuses the call:", style="bold", markup=False)
            for finding in one["findings"]:
                to.print(f"  {finding['id']}: {finding['message']} {finding['fix']}", markup=False, soft_wrap=True)
        else:
            _show_price(to, one)
        to.print()
    to.print(
        "A model, no measurement: the numbers and where each comes from stand in the parameter files of ptokit.cost; "
        "--parameters replaces any of them.",
        style="dim",
    )


def _show_price(to: Console, one: dict[str, Any]) -> None:
    facts, call = one["facts"], one["call"]
    policies = " ".join(facts[key] for key in ("coalesce", "atomic", "oob", "conflict") if key in facts)
    to.print(
        f"{one['target']}: {facts['op']} {policies}, {call['rows']} x {call['cols']} {call['dtype']}, "
        f"{call['indices']} indices: {_cycles(one['cycles'])} cycles, {one['microseconds']:.2f} us",
        style="bold",
        markup=False,
        soft_wrap=True,
    )
    to.print(_parts(one, plain=not to.encoding.startswith("utf")))
    for about, choices in groupby(one["choices"], key=lambda choice: choice["about"]):
        to.print(f"  {ABOUT[about]}:")
        for choice in choices:
            line = f"    {choice['name']:<22} {_cycles(choice['cycles']):>14} cycles   x {choice['ratio']:.2f}"
            to.print(line, markup=False, soft_wrap=True)


def _parts(one: dict[str, Any], *, plain: bool) -> Any:
    """Part by part, the largest share first; what is hidden runs beneath another part."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.ASCII if plain else box.ROUNDED)
    table.add_column("pipe")
    table.add_column("part", overflow="fold")
    for heading in ("cycles", "hidden", "share"):
        table.add_column(heading, justify="right")
    table.add_column("what it is made of", overflow="fold")
    for part in one["parts"]:
        made = ", ".join(f"{key} {_fact(value)}" for key, value in part["facts"].items())
        numbers = (_cycles(part["cycles"]), _cycles(part["hidden"]), f"{part['share']:.0%}")
        table.add_row(part["pipe"], part["part"], *numbers, Text(made))
    return table


def _fact(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _cycles(number: float) -> str:
    return f"{number:,.0f}"
