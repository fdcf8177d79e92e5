"""The pages of `ptokit explain`: complete, in order, and their examples do what they say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

import ptokit
from ptokit import older
from ptokit.cli import group
from ptokit.core import transfers, vector
from ptokit.errors import PtoValueError
from ptokit.explain import ROOMS, Page, page, pages, read_page
from ptokit.findings import Finding, Severity, is_clean
from ptokit.targets import machines

PACKAGE = Path(ptokit.__file__).parent
ID = re.compile(r"PTO-[A-Z]\d{3}")
HEADINGS = ["What happens on the board", "Failing", "Mended"]

ids_of_pages = pytest.mark.parametrize("id_", pages())


def ids_in_code() -> set[str]:
    """The ids that the code can give: string literals, not mentions in prose."""
    sources = [f for f in PACKAGE.rglob("*.py") if f.relative_to(PACKAGE).parts[0] not in ("explain", "cli")]
    return {id_ for f in sources for id_ in re.findall(r'"(PTO-[A-Z]\d{3})"', f.read_text("utf-8"))}


def findings_of(one: Page, which: str) -> list[Finding]:
    """What an example assigns to `findings`."""
    names: dict[str, Any] = {}
    exec(compile(getattr(one, which), f"{one.id}, {which}", "exec"), names)
    found: list[Finding] = names["findings"]
    return found


def section(one: Page, heading: str) -> str:
    return one.body.partition(f"## {heading}\n")[2].partition("\n## ")[0].strip()


# The pages


def test_every_id_of_the_code_has_a_page_and_every_page_an_id_of_the_code() -> None:
    assert ids_in_code() == set(pages())


def test_the_code_was_found() -> None:
    assert {"PTO-L001", "PTO-I020", "PTO-C004", "PTO-N003"} <= ids_in_code()


def test_a_page_stands_in_the_file_of_its_id() -> None:
    files = {f.stem: read_page(f.read_text("utf-8")).id for f in (PACKAGE / "explain" / "pages").iterdir()}
    assert files
    assert files == {name: name for name in files}


def test_pages_are_listed_room_by_room() -> None:
    letters = [id_[4] for id_ in pages()]
    assert letters == sorted(letters, key=list(ROOMS).index)
    assert all(list(pages()).index(id_) == i for i, id_ in enumerate(pages()))


@ids_of_pages
def test_front_matter(id_: str) -> None:
    one = page(id_)
    assert ID.fullmatch(one.id)
    assert one.title
    assert not one.title.endswith(".")
    assert len(one.title) <= 80
    assert one.severity in list(Severity)
    # The room of texts has one target more: the public assembler.
    known = [*machines(), "ptoas"] if one.id.startswith("PTO-P") else [*machines()]
    assert list(one.targets) == [name for name in known if name in one.targets]
    assert list(one.ids) == sorted(set(one.ids))
    assert one.id in one.ids


@ids_of_pages
def test_sections_stand_in_order(id_: str) -> None:
    one = page(id_)
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", one.body, flags=re.DOTALL), re.MULTILINE)
    assert headings in (HEADINGS, [*HEADINGS, "See also"])
    meaning = one.body.partition("\n## ")[0].strip()
    assert meaning
    assert "\n\n" not in meaning, "one paragraph says what it means"
    for heading in ("Failing", "Mended"):
        assert section(one, heading).count("```") == 2, f"one block under {heading}"


@ids_of_pages
def test_the_board_is_told_in_two_to_five_sentences(id_: str) -> None:
    told = section(page(id_), "What happens on the board")
    assert 2 <= len(re.findall(r"\.(?=\s|$)", told)) <= 5


@ids_of_pages
def test_pages_point_to_other_pages_that_exist(id_: str) -> None:
    one = page(id_)
    assert set(ID.findall(one.body)) <= set(pages())
    assert one.id not in ID.findall(section(one, "See also"))


@ids_of_pages
def test_examples_are_small_and_complete(id_: str) -> None:
    one = page(id_)
    assert one.failing != one.mended
    for example in (one.failing, one.mended):
        assert 8 <= len(example.splitlines()) <= 25
        assert "import numpy as np\nimport ptokit as pto\n" in example
        assert all(len(line) <= 120 for line in example.splitlines())
        last = [line for line in example.splitlines() if line.strip()][-1]
        assert last.strip().startswith("findings = ")


@ids_of_pages
def test_the_failing_example_gives_exactly_the_ids_of_the_front_matter(id_: str) -> None:
    one = page(id_)
    found = findings_of(one, "failing")
    assert {f.id for f in found} == set(one.ids)
    own = [f for f in found if f.id == id_]
    assert min(own, key=lambda f: f.severity.rank).severity == one.severity
    assert {f.target for f in own} <= {*one.targets, None}


@pytest.mark.parametrize("id_", [id_ for id_ in pages() if id_.startswith("PTO-L")])
def test_a_rule_names_every_target_that_has_it(id_: str) -> None:
    on_a_core = {rule.id for rule in (*transfers.RULES, *vector.RULES)}
    columns = {name: {rule.id for rule in machine.rules} | on_a_core for name, machine in machines().items()}
    columns["a5"] |= {rule.id for rule in older.RULES}
    assert set(page(id_).targets) == {name for name, ids in columns.items() if id_ in ids}


@ids_of_pages
def test_the_mended_example_is_clean(id_: str) -> None:
    found = findings_of(page(id_), "mended")
    assert is_clean(found), [str(f) for f in found]
    assert id_ not in {f.id for f in found}


# Reading a page


@pytest.mark.parametrize("given", ["PTO-L012", "pto-l012", "L012", "l012", " l012 ", "L12", "PTO_L012,"])
def test_an_id_is_read_in_any_case_and_without_its_prefix(given: str) -> None:
    assert page(given).id == "PTO-L012"


@pytest.mark.parametrize(
    ("given", "near"),
    [
        ("pto-i0", "PTO-I001"),
        ("PTO-L0013", "PTO-L013"),
        ("LO12", "PTO-L012"),
        ("Z012", "PTO-S012"),
    ],
)
def test_an_unknown_id_is_refused_with_the_nearest(given: str, near: str) -> None:
    with pytest.raises(PtoValueError, match=re.escape(f"{given!r} is not the id of a finding. Did you mean '{near}'?")):
        page(given)


@pytest.mark.parametrize("given", ["", "banana", "PTO-", None, 12])
def test_what_is_no_id_at_all_is_refused(given: Any) -> None:
    with pytest.raises(PtoValueError, match=re.escape(f"{given!r} is not the id of a finding.")):
        page(given)


def test_pages_can_be_changed_without_harm() -> None:
    pages().clear()
    assert page("L001").id == "PTO-L001"


# The command


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output goes to a pipe, whatever the surroundings of the tests say."""
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


def run(*args: str) -> str:
    told = CliRunner().invoke(group, ["explain", *args], catch_exceptions=False)
    assert told.exit_code == 0, told.output
    return told.stdout


def test_the_list_names_every_id_under_its_room() -> None:
    told = run()
    for one in pages().values():
        assert re.search(rf"^  {one.id}  {one.severity} +{re.escape(one.title)}$", told, re.MULTILINE)
        assert told.index(f"{one.room}\n") < told.index(one.id)
    assert "\x1b" not in told


def test_a_page_is_plain_markdown_when_piped() -> None:
    assert run("l012") == page("L012").markdown


def test_several_pages_follow_each_other() -> None:
    assert run("C004", "i001") == page("C004").markdown + "\n" + page("I001").markdown


def on_terminal(monkeypatch: pytest.MonkeyPatch, *args: str, no_color: bool) -> str:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    return CliRunner().invoke(group, ["explain", *args], color=True, catch_exceptions=False).stdout


COLOUR = re.compile(r"\x1b\[[\d;]*(?:3[0-7]|4[0-7]|9[0-7]|[34]8;)[\d;]*m")


@pytest.mark.parametrize("args", [(), ("L012",)])
def test_a_terminal_gets_rich_text(monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...]) -> None:
    told = on_terminal(monkeypatch, *args, no_color=False)
    assert COLOUR.search(told)
    assert "```" not in told


@pytest.mark.parametrize("args", [(), ("L012",)])
def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...]) -> None:
    told = on_terminal(monkeypatch, *args, no_color=True)
    assert "PTO-L012" in told
    assert not COLOUR.search(told)


def test_json_of_the_list() -> None:
    told = json.loads(run("--json"))
    assert [entry["id"] for entry in told] == list(pages())
    assert told[0] == {
        "id": "PTO-L001",
        "title": page("L001").title,
        "severity": "error",
        "room": "Legality",
        "targets": ["cpu", "a2a3", "a5"],
    }


def test_json_of_pages() -> None:
    (told,) = json.loads(run("--json", "c004"))
    one = page("C004")
    assert told["ids"] == list(one.ids)
    assert (told["body"], told["failing"], told["mended"]) == (one.body, one.failing, one.mended)


def test_help_has_examples() -> None:
    assert "ptokit explain PTO-L012\n" in run("--help")
    assert run("-h") == run("--help")


def test_the_command_is_one_of_the_group() -> None:
    assert isinstance(group.get_command(click.Context(group), "explain"), click.Command)


def ptokit_explain(*args: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "ptokit", "explain", *args]
    return subprocess.run(line, capture_output=True, text=True, encoding="utf-8", check=False)


def test_as_a_program() -> None:
    done = ptokit_explain("I004")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == page("I004").markdown


def test_an_unknown_id_is_one_sentence_and_exit_code_2() -> None:
    done = ptokit_explain("L012", "lo12")
    assert done.returncode == 2
    assert done.stdout == ""
    assert (
        done.stderr == "ptokit: 'lo12' is not the id of a finding. Did you mean 'PTO-L012'? All ids: ptokit explain\n"
    )
