"""Settings, comments that silence, baselines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from checked_texts import KERNEL, without
from ptokit.cli import group
from ptokit.errors import PtoError
from ptokit.findings import Finding, Severity, Where
from ptokit.report.settings import find_settings, settings_of
from ptokit.report.suppress import fingerprints, ignores, read_baseline, silence, write_baseline


def run(*args: object, text: str | None = None) -> Result:
    return CliRunner().invoke(group, ["check", *map(str, args)], input=text)


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """A race on a5, a note on a2a3."""
    path = tmp_path / "kernel.pto"
    path.write_text(without(KERNEL, "_flag"))
    return path


def at(line: int, file: str = "a.pto", id_: str = "PTO-S001", text: str = "") -> Finding:
    return Finding(id_, Severity.ERROR, "a5", "a race.", {"line_text": text or f"line {line}"}, Where(file, line, 1))


# Settings


def test_settings_are_found_above_the_file(tmp_path: Path) -> None:
    (tmp_path / "deep" / "deeper").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[tool.ptokit]\ntargets = ["a2a3"]\nbaseline = "known.json"\n')
    found = find_settings(tmp_path / "deep" / "deeper")
    assert (found.targets, found.baseline) == (("a2a3",), tmp_path / "known.json")
    (tmp_path / "deep" / "ptokit.toml").write_text('severity = "error"\n')
    assert (find_settings(tmp_path / "deep" / "deeper").severity, find_settings(tmp_path).severity) == ("error", None)


def test_a_pyproject_of_somebody_else_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.ptokit]\nseverity = "note"\n')
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "pyproject.toml").write_text("[tool.black]\nline-length = 3\n")
    assert find_settings(tmp_path / "sub").severity == "note"


def test_a_ptokit_toml_may_have_the_long_name_too(tmp_path: Path) -> None:
    (tmp_path / "ptokit.toml").write_text('[tool.ptokit]\nseverity = "note"\n')
    assert find_settings(tmp_path).severity == "note"


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"target": "a5"}, "there is no setting 'target'. Did you mean 'targets'?"),
        ({"targets": "a6"}, "'a6' is unknown. Did you mean 'a5'?"),
        ({"targets": 5}, "targets is an int"),
        ({"targets": []}, "targets is empty"),
        ({"severity": "warn"}, "Did you mean 'warning'?"),
        ({"ignore": ["PTO-S011"]}, "a table of ids and reasons is wanted"),
        ({"ignore": {"PTO-S011": " "}}, "PTO-S011 has no reason"),
        ({"ignore": {"PTO-S999": "why"}}, "'PTO-S999' is not the id of a finding"),
        ({"baseline": 3}, "the path of a file is wanted"),
    ],
)
def test_a_mistake_in_the_settings_is_told_with_its_file(table: dict[str, object], said: str) -> None:
    with pytest.raises(PtoError) as told:
        settings_of(table, Path("here") / "ptokit.toml")
    assert str(told.value).startswith(str(Path("here") / "ptokit.toml"))
    assert said in str(told.value)


@pytest.mark.parametrize("text", ["[tool", "[tool]\nptokit = 3\n", "\x00"])
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(PtoError, match=r"pyproject\.toml"):
        find_settings(tmp_path)


def test_the_command_obeys_the_settings_and_its_line_wins(kernel: Path) -> None:
    assert run(kernel).exit_code == 1
    (kernel.parent / "ptokit.toml").write_text('targets = "a2a3"\n')
    assert run(kernel).exit_code == 0
    assert run(kernel, "--target", "a5").exit_code == 1
    (kernel.parent / "ptokit.toml").write_text('targets = "a2a3"\nseverity = "note"\n')
    assert run(kernel).exit_code == 1
    (kernel.parent / "ptokit.toml").write_text('ignore = { "PTO-S001" = "the board orders them" }\n')
    told = run(kernel)
    assert (told.exit_code, "1 silenced" in told.output) == (0, True)
    (kernel.parent / "ptokit.toml").write_text('tragets = "a5"\n')
    assert "Did you mean 'targets'?" in str(run(kernel).exception)


# Comments


@pytest.mark.parametrize(
    ("text", "covers"),
    [
        ("pto.dsb // ptokit: ignore[PTO-H003] why", 1),
        ("pto.dsb # ptokit: ignore[PTO-H003] why", 1),
        ("// ptokit: ignore[PTO-H003] why\npto.dsb", 2),
        ("// ptokit: ignore[PTO-H003] why\n// more\n\npto.dsb", 4),
        ("//ptokit:ignore[ PTO-H003 ]  - why\npto.dsb", 2),
    ],
)
def test_a_comment_covers_its_line_or_the_next(text: str, covers: int) -> None:
    (one,) = ignores(text)
    assert (one.ids, one.reason, one.covers) == (("PTO-H003",), "why", covers)


def test_a_comment_silences_only_what_it_names_where_it_stands() -> None:
    source = "one\ntwo // ptokit: ignore[PTO-S001, PTO-S002] they meet nowhere\nthree\n"
    every = [at(1), at(2), at(3), at(2, id_="PTO-H001")]
    left, silenced = silence(every, sources={"a.pto": source})
    assert left == [every[0], every[2], every[3]]
    assert [(one.finding, one.by, one.reason) for one in silenced] == [(every[1], "comment", "they meet nowhere")]


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("// ptokit: ignore[PTO-S001]", "PTO-S001 is ignored here without a reason"),
        ("// ptokit: ignore[PTO-S999] why", "PTO-S999 is not the id of a finding"),
        ("// ptokit: ignore why", "names no finding"),
    ],
)
def test_a_comment_that_silences_nothing_is_a_finding_of_its_own(comment: str, said: str) -> None:
    left, silenced = silence([at(1)], sources={"a.pto": f"pto.dsb {comment}\n"})
    assert silenced == []
    (told,) = [one for one in left if one.id == "PTO-P040"]
    assert (told.severity, told.where, said in told.message) == ("warning", Where("a.pto", 1, 9), True)


def test_strings_of_python_are_no_comments(tmp_path: Path) -> None:
    script = tmp_path / "k.py"
    script.write_text('a = "# ptokit: ignore[PTO-S001] why"\nb = 1  # ptokit: ignore[PTO-S001] why\n')
    left, silenced = silence([at(1, str(script)), at(2, str(script))])
    assert ([one.where.line for one in left], len(silenced)) == ([1], 1)  # type: ignore[union-attr]


def test_comments_in_a_text_of_the_command(kernel: Path) -> None:
    text = kernel.read_text()
    kernel.write_text(
        text.replace("  pto.mscatter", "  // ptokit: ignore[PTO-S001] the board orders them\n  pto.mscatter")
    )
    told = run(kernel)
    assert (told.exit_code, "1 silenced" in told.output) == (0, True)
    kernel.write_text(text.replace("  pto.mscatter", "  // ptokit: ignore[PTO-S001]\n  pto.mscatter"))
    told = run(kernel)
    assert (told.exit_code, "PTO-P040" in told.output, "PTO-S001" in told.output) == (1, True, True)


def test_comments_in_a_script_of_the_command(tmp_path: Path) -> None:
    script = tmp_path / "kernel.py"
    script.write_text(
        "import numpy as np\nimport ptokit as pto\n\ndef kernel(k, x):\n"
        "    k.store_scalar(x, 0, 1)  # ptokit: ignore[PTO-H001] the next kernel flushes\n\n"
        "pto.launch(kernel, np.zeros(8, np.int32), target='a5')\n"
    )
    assert run(script).exit_code == 0


# Baselines


def test_a_baseline_knows_what_was_there_and_tells_what_is_new(kernel: Path) -> None:
    known = kernel.parent / "known.json"
    assert run(kernel, "--write-baseline", known).exit_code == 0
    assert [one["id"] for one in json.loads(known.read_text())["findings"]] == ["PTO-S001"]
    assert run(kernel, "--baseline", known).exit_code == 0
    kernel.write_text("// a line more\n" + kernel.read_text())
    assert run(kernel, "--baseline", known).exit_code == 0, "lines above change nothing"
    kernel.write_text(without(kernel.read_text(), "dsb"))
    told = run(kernel, "--baseline", known)
    assert (told.exit_code, "PTO-H003" in told.output, "PTO-S001" in told.output) == (1, True, False)
    (kernel.parent / "ptokit.toml").write_text('baseline = "known.json"\n')
    assert run(kernel).exit_code == 1
    assert run(kernel, "--write-baseline", known).exit_code == 0
    assert run(kernel).exit_code == 0


def test_a_baseline_knows_a_file_by_any_name(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = kernel.parent
    monkeypatch.chdir(folder)
    assert run(kernel.name, "--write-baseline", "known.json").exit_code == 0
    (folder / "ptokit.toml").write_text('baseline = "known.json"\n')
    monkeypatch.chdir(folder.parent)
    for name in (kernel, kernel.relative_to(folder.parent), folder.name):
        told = run(name)
        assert (told.exit_code, "1 silenced" in told.output) == (0, True)
    (folder / "copy.pto").write_text(kernel.read_text())
    assert run(folder / "copy.pto").exit_code == 1


def test_what_comes_twice_has_two_fingerprints() -> None:
    twice = list(fingerprints([at(1, text="same"), at(5, text="same"), at(1, text="other")]))
    assert len(set(twice)) == 3
    assert list(fingerprints([at(9, text="  same ")])) == twice[:1]


def test_a_baseline_is_written_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    assert write_baseline(path, [at(1), at(2)]) == 2
    assert list(read_baseline(path).known) == list(fingerprints([at(1), at(2)]))
    assert all(read_baseline(path).known.values()), "each has a reason"


@pytest.mark.parametrize("text", ["", "[]", "{", '{"version": 2, "findings": []}', '{"version": 1, "findings": [{}]}'])
def test_a_broken_baseline_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "known.json"
    path.write_text(text)
    with pytest.raises(PtoError, match=r"known\.json"):
        read_baseline(path)


def test_a_missing_baseline_says_how_to_write_one(kernel: Path) -> None:
    assert "--write-baseline" in str(run(kernel, "--baseline", kernel.parent / "none.json").exception)
