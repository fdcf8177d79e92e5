"""The pages: what each finding means, with a failing example and its mended twin."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

from ptokit.errors import PtoValueError

PREFIX = "PTO-"

ROOMS = {
    "L": "Legality",
    "I": "Index and portability",
    "C": "Conflict",
    "S": "Synchronisation",
    "M": "Memory",
    "H": "Coherence, launch and limits",
    "N": "Numerics",
    "R": "Ranks",
    "P": "Parsing",
}
"""What the letter of an id stands for, in the order in which the rooms are listed."""


@dataclass(frozen=True)
class Page:
    """One page: its front matter, its Markdown, and its two examples.

    `ids` are the ids that the failing example gives, all of them, notes included.
    """

    id: str
    title: str
    severity: str
    targets: tuple[str, ...]
    ids: tuple[str, ...]
    body: str
    failing: str
    mended: str

    @property
    def room(self) -> str:
        """The room of the id: `Legality`, `Conflict`...

        >>> page("C004").room
        'Conflict'
        """
        return ROOMS[self.id[len(PREFIX)]]

    @property
    def markdown(self) -> str:
        """The whole page as Markdown that stands alone: a heading, severity and targets, the body."""
        return f"# {self.id}: {self.title}\n\n*{self.severity}* on {', '.join(self.targets)}\n\n{self.body}\n"


def page(id: str) -> Page:  # noqa: A002 - the domain's word
    """The page of a finding; the case of the id does not matter, nor whether it has its prefix.

    >>> page("l012").id, page("PTO-L012").severity
    ('PTO-L012', 'warning')
    """
    code = _code(str(id))
    found = _pages().get(PREFIX + code)
    if found is None:
        raise PtoValueError(f"{id!r} is not the id of a finding.{_hint(code)} All ids: ptokit explain")
    return found


def pages() -> dict[str, Page]:
    """Every page by its id, by room and number.

    >>> list(pages())[0]
    'PTO-L001'
    """
    return dict(_pages())


@cache
def _pages() -> dict[str, Page]:
    """The pages, read once."""
    folder = resources.files(__name__) / "pages"
    read = [read_page(file.read_text("utf-8")) for file in folder.iterdir() if file.name.endswith(".md")]
    rooms = list(ROOMS)
    read.sort(key=lambda page: (rooms.index(page.id[len(PREFIX)]), page.id))
    return {page.id: page for page in read}


def read_page(text: str) -> Page:
    """A page from its text: `key: value` lines between two lines of dashes, then Markdown."""
    _, front, body = text.split("---\n", 2)
    said = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in front.splitlines())}
    return Page(
        id=said["id"],
        title=said["title"],
        severity=said["severity"],
        targets=_listed(said["targets"]),
        ids=_listed(said["ids"]),
        body=body.strip(),
        failing=_example(body, "Failing"),
        mended=_example(body, "Mended"),
    )


def _listed(value: str) -> tuple[str, ...]:
    """The words of a comma-separated line."""
    return tuple(word.strip() for word in value.split(","))


def _example(body: str, heading: str) -> str:
    """The Python block under a heading, or nothing where there is none."""
    section = body.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    block = re.search(r"^```python\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    return block.group(1) if block else ""


def _code(id_: str) -> str:
    """The id without its prefix, in capitals, its number in three digits: `l12`, `PTO_L012,` are L012."""
    code = id_.strip(" ,;:.").upper().replace("_", "-").removeprefix(PREFIX)
    return f"{code[0]}{int(code[1:]):03}" if re.fullmatch("[A-Z][0-9]{1,3}", code) else code


def _hint(code: str) -> str:
    """` Did you mean 'PTO-L012'?`, or nothing where nothing is near."""
    close = _nearest(code, [_code(known) for known in _pages()])
    return f" Did you mean {PREFIX + close!r}?" if close else ""


def _nearest(code: str, known: list[str]) -> str:
    """The known code with the nearest number in the same room, else the one that looks most alike, if any."""
    room, number = code[:1], code[1:]
    same = [other for other in known if other[0] == room]
    if same and re.fullmatch("[0-9]{1,9}", number):
        close = min(same, key=lambda other: abs(int(other[1:]) - int(number)))
        return close if abs(int(close[1:]) - int(number)) < 10 else ""
    return next(iter(difflib.get_close_matches(code, same or known, n=1, cutoff=0.5)), "")
