"""`ptokit demo`: an embedding-gradient update on the three targets, with all that can go wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
import numpy as np

import ptokit as pto
from ptokit.access.report import Refused
from ptokit.cli import console

if TYPE_CHECKING:
    from rich.console import Console

TOKENS = [3, 7, 3, 9, -1, 12, 7, 3]
"""Rows to update: 3 three times, 7 twice, one negative, one past the end of ten rows."""

ROWS, WIDTH = 10, 8
TARGETS = ("cpu", "a2a3", "a5")


@dataclass(frozen=True)
class Act:
    """One call of the story."""

    title: str
    why: str
    policies: dict[str, str]


ACTS = (
    Act(
        "Add the gradients of 8 tokens to a table of 10 rows",
        "MSCATTER<Row, Add, Skip>. Token -1 is garbage, token 12 is past the end, tokens 3 and 7 come again.",
        {"atomic": "add", "oob": "skip"},
    ),
    Act(
        "Write the rows instead of adding them, and let the scheduler choose",
        "MSCATTER<Row, None, Clamp, Default>: which duplicate survives, and where do -1 and 12 land?",
        {"oob": "clamp", "conflict": "default"},
    ),
    Act(
        "The same with Conflict Last",
        "MSCATTER<Row, None, Clamp, Last>: one word more, one result.",
        {"oob": "clamp", "conflict": "last"},
    ),
)


def operands() -> tuple[pto.GlobalTensor, pto.Tile, pto.Tile]:
    """The table, the gradients and the token tile."""
    rng = np.random.default_rng(7)
    table = rng.standard_normal((ROWS, WIDTH)).astype(np.float32)
    grads, tokens = pto.Tile("float32", len(TOKENS), WIDTH), pto.Tile("int32", 1, len(TOKENS))
    grads.store(rng.standard_normal((len(TOKENS), WIDTH)).astype(np.float32) / 3)
    tokens.store([TOKENS])
    return pto.GlobalTensor(table, "float32", shape=(1, 1, 1, ROWS, WIDTH)), grads, tokens


def play(act: Act) -> dict[str, Any]:
    """Run one act on every target: findings, verdicts and outcome sets, as data."""
    table, grads, tokens = operands()
    compared = pto.compare("mscatter", table, grads, tokens, targets=TARGETS, **act.policies)
    told = {}
    for target, result in compared.results.items():
        if isinstance(result, Refused):
            told[target] = {"legal": False, "findings": [f.as_dict() for f in result.findings]}
            continue
        told[target] = {
            "legal": True,
            "deterministic": result.deterministic,
            "reason": result.deterministic_reason,
            "slots": [_slot(result, slot) for slot in result.outcomes.slots],
            "findings": [f.as_dict() for f in result.findings],
        }
    boards = pto.compare("mscatter", table, grads, tokens, targets=("a2a3", "a5"), **act.policies)
    return {
        "title": act.title,
        "why": act.why,
        "policies": act.policies,
        "targets": told,
        "equal": compared.equal,
        "boards_equal": boards.equal,
    }


def _slot(result: pto.Report, slot: int) -> dict[str, Any]:
    # The shortest digits that tell the float32 apart: sums that differ in the last bit must look different.
    values = [float(str(v)) for v in result.outcomes.values(slot)]
    return {"slot": slot, "verdict": result.outcomes.verdict(slot), "values": values}


@click.command(
    "demo",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Examples:  ptokit demo   |   ptokit demo --json",
)
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def command(as_json: bool) -> None:
    """Run an embedding-gradient update on cpu, a2a3 and a5 and show what each would do to it."""
    acts = [play(act) for act in ACTS]
    if as_json:
        click.echo(json.dumps(acts, indent=2))
        return
    _show(acts)


COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}
VERDICTS = {"benign": "green", "defined": "green", "order-sensitive": "yellow", "undefined": "red"}


def _show(acts: list[dict[str, Any]]) -> None:
    to = console()
    to.print(f"A table of {ROWS} rows, and gradients for the tokens {TOKENS}.", style="bold", markup=False)
    for number, act in enumerate(acts, 1):
        to.print()
        to.print(f"{number}. {act['title']}", style="bold underline")
        to.print(act["why"])
        to.print()
        to.print(_outcome_table(act, plain=not to.encoding.startswith("utf")))
        for target, told in act["targets"].items():
            if told["legal"]:
                to.print(f"  {target}: {told['reason']}.", style="dim", soft_wrap=True)
        _print_findings(to, act, seen=acts[: number - 1])
        to.print(_agreement(act))
    to.print("\nWhat an id means: [bold]ptokit explain PTO-C004[/bold]. Your own calls: [bold]pto.check(...)[/bold].")


def _outcome_table(act: dict[str, Any], *, plain: bool) -> Any:
    """Per target: whether there is one result, and the legal values of each contested row."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.ASCII if plain else box.ROUNDED, title="What may stand in column 0", title_justify="left")
    for heading in ("target", "one result?", "slot", "verdict", "legal values"):
        table.add_column(heading, overflow="fold")
    for target, told in act["targets"].items():
        if not told["legal"]:
            table.add_row(target, "[red]refused[/red]", "", told["findings"][0]["id"], "")
            continue
        first = (target, "[green]yes[/green]" if told["deterministic"] else "[red]no[/red]" + _why_below(told))
        for slot in told["slots"]:
            colour = VERDICTS[slot["verdict"]]
            values = "\n".join(str(v) for v in slot["values"])
            table.add_row(*first, str(slot["slot"]), f"[{colour}]{slot['verdict']}[/{colour}]", values)
            first = ("", "")
    return table


def _why_below(told: dict[str, Any]) -> str:
    """Where no verdict shows why there are several results, the sentence under the table does."""
    shows = any(slot["verdict"] in ("order-sensitive", "undefined") for slot in told["slots"])
    return "" if shows else ", see below"


def _print_findings(to: Console, act: dict[str, Any], seen: list[dict[str, Any]]) -> None:
    """Errors and warnings that no earlier act had, a paragraph each; of the rest the ids."""
    before = {(t, f["id"]) for earlier in seen for t, told in earlier["targets"].items() for f in told["findings"]}
    rest = []
    for target, told in act["targets"].items():
        for finding in told["findings"]:
            if finding["severity"] == "note" or (target, finding["id"]) in before:
                rest.append(f"{target} {finding['id']}")
                continue
            colour = COLOURS[finding["severity"]]
            to.print()
            to.print(f"[{colour}]{finding['severity']}[/{colour}] [bold]{finding['id']}[/bold] on {target}")
            to.print(f"  {finding['message']}", markup=False)
            to.print(f"  Fix: {finding['fix']}", style="green", markup=False)
    if rest:
        to.print()
        to.print(f"  Also (notes, and what was told above): {', '.join(rest)}.", style="dim")


def _agreement(act: dict[str, Any]) -> str:
    """Which targets end with the same table."""
    if act["equal"]:
        return "All targets end with the same table, bit for bit."
    boards = "a2a3 and a5 end with the same table; cpu does not." if act["boards_equal"] else ""
    return boards or "The targets do not end with the same table."
