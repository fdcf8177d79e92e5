"""MkDocs hook: the page of findings is made from the pages that `ptokit explain` prints."""

from __future__ import annotations

import re
from typing import Any

from ptokit.explain import pages

MARK = "<!-- every finding -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the mark by every page, each under its id."""
    if MARK not in markdown:
        return markdown
    parts = [f"## {page.id}: {page.title} {{#{page.id}}}\n\n{_demoted(page.body)}" for page in pages().values()]
    return markdown.replace(MARK, "\n\n".join(parts))


def _demoted(body: str) -> str:
    """Headings one level down, ids as links; what looks like one inside a code block stays."""
    lines, fenced = [], False
    for line in body.splitlines():
        fenced ^= line.startswith("```")
        line = f"#{line}" if line.startswith("#") and not fenced else line
        lines.append(line if fenced else re.sub(r"(PTO-[A-Z]\d{3})", r"[\1](#\1)", line))
    return "\n".join(lines)
