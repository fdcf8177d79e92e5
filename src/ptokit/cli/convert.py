"""`ptokit convert`: a text in another of its forms, or as C++."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ptokit.cli.texts import UNREADABLE, parse_input, show, shown, write_text
from ptokit.errors import PtoError

if TYPE_CHECKING:
    from ptokit.findings import Finding
    from ptokit.ir.module import Module

FORMS = {
    "dps": "the dialect's own form, which the public assembler reads",
    "ssa": "level 1 of the instruction documents",
    "as": "PTO-AS lines: mscatter.row.skip %table, %src, %idx",
    "generic": "MLIR's generic form, which every MLIR tool reads",
    "cpp": "a C++ kernel with the vendor's intrinsics, and its launch",
}
"""What a text can become."""
TARGETS = ("cpu", "a2a3", "a5")
CANNOT_SAY = 1


@click.command("convert", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", metavar="FILE")
@click.option("--to", "form", type=click.Choice(list(FORMS), case_sensitive=False), required=True, help="The form.")
@click.option(
    "--target",
    type=click.Choice(TARGETS, case_sensitive=False),
    help="Whose C++, with --to cpp  [default: what the text says, else a5].",
)
@click.option("-o", "--out", metavar="OUT", help="The file to write, whole or not at all  [default: stdout].")
@click.option("--lenient", is_flag=True, help="Keep ops that nobody knows, with a note.")
@click.option("--json", "as_json", is_flag=True, help="Print the text with everything that was found as JSON.")
def command(file: str, form: str, target: str | None, out: str | None, lenient: bool, as_json: bool) -> None:
    """Write a text in another of its forms. FILE may be - for stdin.

    dps is the form of the public assembler, ssa and as are those of the instruction documents, generic is MLIR's, cpp
    is a kernel for the vendor's headers. Exit code 1 where the form cannot say what the text says (nothing is written
    then), 2 where the text cannot be read.

    \b
    Examples:
      ptokit convert kernel.pto --to as
      ptokit convert kernel.pto --to cpp --target a2a3 -o kernel.cpp
      cat kernel.pto | ptokit convert - --to generic
    """
    if target is not None and form != "cpp":
        raise click.UsageError("--target goes with --to cpp; the other forms are the same for every target.")

    def tell(name: str, findings: Sequence[Finding], read_as: str | None = None, text: str | None = None) -> None:
        told = [finding.as_dict() for finding in findings]
        made = {"file": name, "form": read_as, "to": form, "text": text, "findings": told}
        write_text(json.dumps(made, indent=2) + "\n", out)

    from ptokit.ir.errors import ParseError

    try:
        module = parse_input(file, lenient=lenient)
    except ParseError as unread:
        tell(shown(file), unread.findings) if as_json else show(unread.findings)
        sys.exit(UNREADABLE)
    text, refused = _converted(module, form, target)
    if as_json:
        tell(module.file, (*module.findings, *refused), module.form, text)
    else:
        show((*module.findings, *refused))
        if text is not None:
            write_text(text, out)
    if refused:
        sys.exit(CANNOT_SAY)


def _converted(module: Module, form: str, target: str | None) -> tuple[str | None, list[Finding]]:
    """The text in that form, or why there is none."""
    from ptokit.ir.errors import ConvertError

    try:
        if form == "cpp":
            from ptokit.ir.cpp import to_cpp

            return to_cpp(module, target), []
        return module.to(form), []
    except ConvertError as refused:
        return None, refused.findings
    except ModuleNotFoundError as missing:
        raise PtoError(f"the form {form} needs {missing.name}, which is not installed") from None
