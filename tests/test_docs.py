"""Every Python block of the README and of docs/ runs, and prints what stands below it."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(
    r"(?:<!-- needs: (?P<needs>\w+) -->\n)?```python\n(?P<code>.*?)```(?:\n\n```text\n(?P<output>.*?)```)?", re.DOTALL
)


def blocks(page: Path) -> list[tuple[str, str | None]]:
    """The code and output of a page; a block that needs a package which is not there is left out."""
    found = BLOCK.finditer(page.read_text())
    return [(m["code"], m["output"]) for m in found if not m["needs"] or importlib.util.find_spec(m["needs"])]


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.name)
def test_the_code_of_a_page_runs_and_prints_what_it_says(page: Path) -> None:
    namespace: dict[str, object] = {}
    for code, output in blocks(page):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page.name, "exec"), namespace)
        if output is not None:
            assert printed.getvalue() == output


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
