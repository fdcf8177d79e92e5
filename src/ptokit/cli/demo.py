"""`ptokit demo`: an embedding-gradient update on the three targets, with all that can go wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

import ptokit as pto
from ptokit.access.report import Refused

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
    return {"title": act.title, "why": act.why, "policies": act.policies, "targets": told, "equal": compared.equal}


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
    from rich.console import Console

    console = Console(highlight=False)
    console.print(f"[bold]A table of {ROWS} rows, and gradients for the tokens {TOKENS}[/bold]".replace("[3,", r"\[3,"))
    for number, act in enumerate(acts, 1):
        console.print()
        console.rule(f"[bold]{number}. {act['title']}[/bold]", align="left")
        console.print(act["why"])
        console.print(_outcome_table(act))
        console.print(_finding_table(act))
        agree = (
            "agree, bit for bit" if act["equal"] else "do not agree: what runs on one board is not what another does"
        )
        console.print(f"The targets {agree}.")
    console.print("\nWhat an id means: [bold]ptokit explain PTO-C004[/bold]. Yours: [bold]pto.check(...)[/bold].")


def _outcome_table(act: dict[str, Any]) -> Any:
    """Per target: whether there is one result, and the legal values of each contested row."""
    from rich.table import Table

    table = Table(title="What may stand in column 0 afterwards", title_justify="left")
    for heading in ("target", "one result?", "why", "slot", "verdict", "legal values"):
        table.add_column(heading)
    for target, told in act["targets"].items():
        if not told["legal"]:
            table.add_row(target, "[red]refused[/red]", told["findings"][0]["id"], "", "", "")
            continue
        answer = "[green]yes[/green]" if told["deterministic"] else "[red]no[/red]"
        first = (target, answer, told["reason"])
        for slot in told["slots"] or [{"slot": "", "verdict": "", "values": []}]:
            colour = VERDICTS.get(slot["verdict"], "white")
            values = "\n".join(str(v) for v in slot["values"])
            table.add_row(*first, str(slot["slot"]), f"[{colour}]{slot['verdict']}[/{colour}]", values)
            first = ("", "", "")
    return table


def _finding_table(act: dict[str, Any]) -> Any:
    """Every error and warning of every target, and the ids of the notes."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(title="Findings", title_justify="left", show_lines=False)
    for heading in ("target", "id", "severity", "what, and what to do"):
        table.add_column(heading)
    notes = set()
    for target, told in act["targets"].items():
        for finding in told["findings"]:
            if finding["severity"] == "note":
                notes.add(finding["id"])
                continue
            colour = COLOURS[finding["severity"]]
            text = f"{escape(finding['message'])} [green]{escape(finding['fix'])}[/green]"
            table.add_row(target, finding["id"], f"[{colour}]{finding['severity']}[/{colour}]", text)
    table.caption = f"and notes: {', '.join(sorted(notes))}" if notes else None
    table.caption_justify = "left"
    return table
