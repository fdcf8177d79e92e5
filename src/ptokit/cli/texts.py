"""What commands that take a text share: reading it (a file, or - for stdin), showing findings, writing atomically."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ptokit.errors import PtoError
from ptokit.findings import Finding, Severity, Where

if TYPE_CHECKING:
    from ptokit.ir.module import Module

STDIN = "-"
STDIN_NAME = "<stdin>"
UNREADABLE = 2


def shown(file: str) -> str:
    """What a command calls its input."""
    return STDIN_NAME if file == STDIN else file


def parse_input(file: str, *, lenient: bool = False) -> Module:
    """The module in a file or on stdin; a `ParseError` where it cannot be read."""
    from ptokit.ir.module import parse

    if file == STDIN:
        return parse(_stdin(), file=STDIN_NAME, lenient=lenient)
    return parse(Path(file), lenient=lenient)


def _stdin() -> str:
    from ptokit.ir.errors import ParseError

    raw = sys.stdin.buffer.read()
    try:
        # A text of one line must not be taken for the name of a file.
        return raw.decode("utf-8-sig").rstrip("\n") + "\n"
    except UnicodeDecodeError as error:
        good = raw[: error.start].decode("utf-8", "replace")
        where = Where(STDIN_NAME, good.count("\n") + 1, len(good) - (good.rfind("\n") + 1) + 1)
        facts = {"line_text": "", "length": 1}
        told = Finding("PTO-P001", Severity.ERROR, None, "The input is not UTF-8 text.", facts, where)
        raise ParseError([told]) from None


def show(findings: Iterable[Finding]) -> None:
    """Findings on stderr, each with its line and the token underlined."""
    from rich.console import Console

    from ptokit.report.checked import Checked, CheckedFile
    from ptokit.report.text import print_text

    found = list(findings)
    if not found:
        return
    files = dict.fromkeys(one.where.file for one in found if one.where)
    told = Checked.of([CheckedFile(name) for name in files], found, threshold=Severity.NOTE)
    colours = None if os.environ.get("NO_COLOR") else "auto"
    print_text(told, Console(stderr=True, highlight=False, color_system=colours))  # type: ignore[arg-type]


def write_text(text: str, out: str | None) -> None:
    """To a file, whole or not at all; to stdout where none is named."""
    if out in (None, STDIN):
        click.echo(text, nl=False)
        return
    assert out is not None
    path = Path(out).resolve()
    if path.is_dir():
        raise PtoError(f"{out} is a folder; the name of a file is wanted")
    if not path.parent.is_dir():
        raise PtoError(f"{out}: there is no folder {path.parent}")
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
