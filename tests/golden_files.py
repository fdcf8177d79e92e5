"""The golden files: what each text in tests/golden becomes. Refresh them with `python tests/golden_files.py`.

A line of the instruction documents (doc_*.pto) is printed in every form, an example of theirs (example_*.pto) as dps;
both become C++ for a2a3 and a5. Where a form cannot say it, the finding stands there instead.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from ptokit.ir import ConvertError, Module, parse
from ptokit.ir.cpp import to_cpp

FOLDER = Path(__file__).parent / "golden"
TARGETS = ("a2a3", "a5")
FORMS = {"doc": ("dps", "ssa", "as", "generic"), "example": ("dps",)}


def texts() -> list[Path]:
    return sorted(FOLDER.glob("*.pto"))


def made(path: Path) -> Iterator[tuple[str, str]]:
    """The name and the text of every golden file of one text."""
    module = parse(path.read_text(), file=path.name)
    kind = path.name.partition("_")[0]
    parts = [f"// {form}\n{said(module, lambda one, form=form: one.to(form))}" for form in FORMS[kind]]
    yield f"{path.stem}.forms.txt", "\n".join(parts)
    for target in TARGETS:
        yield f"{path.stem}.{target}.cpp", said(module, lambda one, target=target: to_cpp(one, target))


def said(module: Module, how: Callable[[Module], str]) -> str:
    """The text, or the findings that say why there is none."""
    try:
        return how(module)
    except ConvertError as refused:
        return "".join(f"// {finding}\n" for finding in refused.findings)


def refresh() -> None:
    wanted = {name: text for path in texts() for name, text in made(path)}
    for old in (*FOLDER.glob("*.cpp"), *FOLDER.glob("*.txt")):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text)
    sys.stdout.write(f"{len(wanted)} files\n")


if __name__ == "__main__":
    refresh()
