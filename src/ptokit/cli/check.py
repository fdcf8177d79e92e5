"""`ptokit check`: what is wrong with texts, and with the launches of scripts, by everybody who is to run them."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ptokit.cli import console
from ptokit.cli.texts import STDIN, STDIN_NAME, parse_input, write_text
from ptokit.errors import PtoError, PtoValueError
from ptokit.findings import Finding, Severity, Where
from ptokit.report.checked import Checked, CheckedFile
from ptokit.report.settings import TARGETS, Settings, find_settings, severity_named, target_names
from ptokit.report.suppress import Baseline, read_baseline, silence, write_baseline

if TYPE_CHECKING:
    from ptokit.ir.module import Module

TEXTS = ("*.pto", "*.mlir")
FORMATS = ("text", "json", "sarif", "github")
UNREADABLE = "PTO-P001"


@click.command("check", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--target", "target", metavar="NAMES", help=f"Of {', '.join(TARGETS)}  [default: the text's, else a2a3,a5]."
)
@click.option("--format", "form", type=click.Choice(FORMATS, case_sensitive=False), default="text", show_default=True)
@click.option(
    "--severity",
    type=click.Choice([str(one) for one in Severity], case_sensitive=False),
    help="The threshold of the exit code; what is lower is not shown  [default: warning].",
)
@click.option("--lenient", is_flag=True, help="Skip ops that nobody knows, with a note.")
@click.option("--fix", "fixes", is_flag=True, help="Insert missing flags and flushes; print the diff.")
@click.option("--baseline", type=click.Path(path_type=Path), help="Findings that are known already.")
@click.option("--write-baseline", "to_write", type=click.Path(path_type=Path), help="Write such a file.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def command(
    files: tuple[str, ...],
    target: str | None,
    form: str,
    severity: str | None,
    lenient: bool,
    fixes: bool,
    baseline: Path | None,
    to_write: Path | None,
    as_json: bool,
) -> None:
    """Check texts (FILE, a folder of *.pto and *.mlir, or - for stdin) and Python scripts that launch kernels.

    Texts are checked by each target's rules, and played on its simulated core with made-up data: flags, the unified
    buffer and the data cache. The target ptoas is the public assembler: would it take the text? Scripts are run; what
    their launches find is told.

    A finding is silenced by a comment on its line or above it, // ptokit: ignore[PTO-S003] with a reason, by a
    baseline, or by the settings: [tool.ptokit] of pyproject.toml, or ptokit.toml, with targets, severity, ignore and
    baseline. Exit code 0: nothing at or above the threshold, 1: findings, 2: an input could not be read.

    \b
    Examples:
      ptokit check kernel.pto
      ptokit check kernels/ --target a5,ptoas --format sarif > findings.sarif
      ptokit check kernel.pto --fix
      ptokit check kernels/ --write-baseline known.json
      cat kernel.pto | ptokit check - --json
    """
    settings = find_settings(_start(files))
    asked = Asked(
        targets=settings.targets if target is None else target_names(target, "--target"),
        severity=severity_named(severity) if severity else settings.severity or Severity.WARNING,
        lenient=lenient,
        fixes=fixes,
        form="json" if as_json else form.lower(),
    )
    found = [_examined(name, asked) for name in _inputs(files)]
    known = baseline or settings.baseline
    checked = _told(found, asked, settings, read_baseline(known) if known and not to_write else Baseline())
    if to_write is not None:
        count = write_baseline(to_write, checked.findings, checked.sources)
        click.echo(f"Wrote {to_write}: {count} finding{'s' * (count != 1)}.", err=True)
        sys.exit(2 if checked.exit_code == 2 else 0)
    _print(checked, asked.form)
    sys.exit(checked.exit_code)


@dataclass(frozen=True)
class Asked:
    """What the command line and the settings ask for."""

    targets: tuple[str, ...] | None
    severity: Severity
    lenient: bool
    fixes: bool
    form: str


@dataclass(frozen=True)
class Examined:
    """One input, what was found in it, and its text where it has one."""

    file: CheckedFile
    findings: list[Finding]
    targets: tuple[str, ...] = ()
    sources: dict[str, str] = field(default_factory=dict)


# Which files


def _start(files: tuple[str, ...]) -> Path:
    """Where settings are looked for: at the first file, or here."""
    first = next((Path(one) for one in files if one != STDIN), Path.cwd())
    return first if first.exists() else Path.cwd()


def _inputs(files: Iterable[str]) -> Iterator[str]:
    """Each file once; folders by what they hold."""
    seen: set[str] = set()
    for name in files:
        path = Path(name)
        inside = [str(one) for one in _texts_in(path)] if name != STDIN and path.is_dir() else [name]
        for one in inside:
            if one not in seen:
                seen.add(one)
                yield one


def _texts_in(folder: Path) -> list[Path]:
    found = sorted(one for pattern in TEXTS for one in folder.rglob(pattern) if one.is_file())
    if not found:
        raise PtoValueError(f"{folder} holds no text: no file of it is called {' or '.join(TEXTS)}")
    return found


# One of them


def _examined(name: str, asked: Asked) -> Examined:
    if name.endswith(".py"):
        return _script(name, asked)
    from ptokit.ir.errors import ParseError

    try:
        module = parse_input(name, lenient=asked.lenient)
    except ParseError as unread:
        shown = STDIN_NAME if name == STDIN else name
        return Examined(CheckedFile(shown, is_readable=False), unread.findings)
    return _text(name, module, asked)


def _text(name: str, module: Module, asked: Asked) -> Examined:
    from ptokit.ir.check import check, targets_of

    targets = targets_of(module, asked.targets)
    if asked.fixes:
        module = _mended(name, module, targets, asked)
    file = CheckedFile(module.file, module.form)
    return Examined(file, check(module, targets), targets, {module.file: module.source})


def _mended(name: str, module: Module, targets: tuple[str, ...], asked: Asked) -> Module:
    """The text with what its findings ask for; the diff is printed, the file written."""
    from ptokit.ir.mend import fix
    from ptokit.ir.module import parse

    text = fix(module, targets)
    if text == module.source:
        return module
    lines = (module.source.splitlines(keepends=True), text.splitlines(keepends=True))
    for line in difflib.unified_diff(*lines, fromfile=module.file, tofile=f"{module.file} (mended)"):
        click.echo(line.rstrip("\n"), err=asked.form != "text")
    if name != STDIN:
        write_text(text, name)
    return parse(text, file=module.file, lenient=asked.lenient)


def _script(name: str, asked: Asked) -> Examined:
    """A script's own launches say what is wrong, on the targets that it names."""
    from ptokit.cli.scripts import run_script

    try:
        launches = run_script(name)
    except PtoError as failed:
        where, facts = Where(name, 1, 1), {"line_text": "", "length": 1}
        told = Finding(UNREADABLE, Severity.ERROR, None, f"{failed}.".replace("..", "."), facts, where)
        return Examined(CheckedFile(name, "python", is_readable=False), [told])
    runs = [launch.run for launch in launches if asked.targets is None or launch.run.target in asked.targets]
    findings = [_at(one, name) for run in runs for one in run.findings]
    return Examined(CheckedFile(name, "python"), findings, tuple(dict.fromkeys(run.target for run in runs)))


def _at(one: Finding, name: str) -> Finding:
    """A script's own lines are told under the name that it was given by."""
    if one.where is None or Path(one.where.file).resolve() != Path(name).resolve():
        return one
    return replace(one, where=replace(one.where, file=name))


# All together


def _told(found: list[Examined], asked: Asked, settings: Settings, baseline: Baseline) -> Checked:
    sources = {file: text for one in found for file, text in one.sources.items()}
    every = [finding for one in found for finding in one.findings]
    left, silenced = silence(every, sources=sources, ignored=settings.ignore, baseline=baseline)
    targets = asked.targets or tuple(name for name in TARGETS if any(name in one.targets for one in found))
    files = [one.file for one in found]
    return Checked.of(files, left, targets=targets, threshold=asked.severity, silenced=silenced, sources=sources)


def _print(checked: Checked, form: str) -> None:
    from ptokit import __version__

    if form == "text":
        from ptokit.report.text import print_text

        print_text(checked, console())
    elif form == "json":
        from ptokit.report.json_report import as_json

        click.echo(as_json(checked, __version__), nl=False)
    elif form == "sarif":
        from ptokit.report.sarif import as_sarif

        click.echo(as_sarif(checked, __version__), nl=False)
    else:
        from ptokit.report.github import as_github

        click.echo(as_github(checked), nl=False)
