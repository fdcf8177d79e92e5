"""`ptokit convert`: files and stdin, forms, exit codes, files that are written whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("xdsl")

from ptokit.cli import group
from ptokit.ir import parse

EXAMPLES = Path(__file__).parents[1] / "examples"
LINES = str(EXAMPLES / "scatter_lines.pto")
LOOKUP = str(EXAMPLES / "lookup.pto")


def convert(*words: str, text: bytes | None = None) -> Result:
    return CliRunner().invoke(group, ["convert", *words], input=text)


@pytest.mark.parametrize("form", ["dps", "ssa", "as", "generic", "cpp"])
def test_every_form_is_written(form: str) -> None:
    done = convert(LINES, "--to", form)
    assert done.exit_code == 0, done.output
    wanted = parse(Path(LINES)).to(form)
    assert done.stdout == wanted


def test_stdin_is_read_and_has_a_name() -> None:
    done = convert("-", "--to", "dps", text=b"pto.barrier <PIPE_ALL>")
    assert (done.exit_code, done.stdout) == (0, "module {\n  pto.barrier <PIPE_ALL>\n}\n")
    broken = convert("-", "--to", "dps", text=b"pto.barier <PIPE_ALL>")
    assert broken.exit_code == 2
    assert broken.stderr.startswith("<stdin>:1:1: error PTO-P002")
    assert "pto.barier <PIPE_ALL>" in broken.stderr


def test_a_line_on_stdin_is_never_the_name_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pto.dsb").write_text("pto.dcci\n")
    assert "pto.dsb" in convert("-", "--to", "dps", text=b"pto.dsb").stdout


@pytest.mark.parametrize("text", [b"\xff\xfe\x00", b"\0", b"{" * 5000, b"pto.", b""])
def test_no_input_is_a_traceback(text: bytes) -> None:
    done = convert("-", "--to", "cpp", text=text)
    assert done.exit_code in (0, 2)
    assert done.exception is None or isinstance(done.exception, SystemExit)


def test_what_is_not_there_is_told() -> None:
    done = convert("nowhere.pto", "--to", "dps")
    assert done.exit_code == 2
    assert "nowhere.pto" in done.stderr
    assert "Traceback" not in done.output


def test_a_form_that_cannot_say_it_is_exit_code_1_and_writes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out.pto"
    out.write_text("before")
    done = convert(LOOKUP, "--to", "as", "-o", str(out))
    assert done.exit_code == 1
    assert "PTO-P008" in done.stderr
    assert done.stdout == ""
    assert out.read_text() == "before"


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    out = tmp_path / "kernel.cpp"
    out.write_text("before")
    done = convert(LOOKUP, "--to", "cpp", "--target", "a2a3", "-o", str(out))
    assert (done.exit_code, done.stdout) == (0, "")
    assert out.read_text().startswith("// Written by ptokit for a2a3.")
    assert [one.name for one in tmp_path.iterdir()] == ["kernel.cpp"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "there.pto").write_text("before")
    (tmp_path / "link.pto").symlink_to("there.pto")
    assert convert(LOOKUP, "--to", "dps", "-o", str(tmp_path / "link.pto")).exit_code == 0
    assert (tmp_path / "link.pto").is_symlink()
    assert "func.func @lookup" in (tmp_path / "there.pto").read_text()


def test_a_file_that_can_be_written_nowhere_is_told(tmp_path: Path) -> None:
    for out in (tmp_path, tmp_path / "no" / "folder.pto"):
        done = convert(LOOKUP, "--to", "dps", "-o", str(out))
        assert done.exit_code != 0
        assert "Traceback" not in done.output


def test_a_target_goes_with_cpp_only() -> None:
    assert convert(LINES, "--to", "dps", "--target", "a5").exit_code == 2


def test_json_has_the_text_and_the_findings() -> None:
    done = convert(LINES, "--to", "dps", "--json")
    told = json.loads(done.stdout)
    assert (told["form"], told["to"], told["text"]) == ("as", "dps", parse(Path(LINES)).to("dps"))
    refused = json.loads(convert(LOOKUP, "--to", "as", "--json").stdout)
    assert refused["text"] is None
    assert {one["id"] for one in refused["findings"]} == {"PTO-P008"}


def test_json_is_written_of_what_cannot_be_read_too() -> None:
    done = convert("-", "--to", "dps", "--json", text=b"pto.dsb\npto.barier <PIPE_ALL>")
    told = json.loads(done.stdout)
    assert (done.exit_code, done.stderr) == (2, "")
    assert (told["file"], told["form"], told["to"], told["text"]) == ("<stdin>", None, "dps", None)
    assert [(one["id"], one["where"]["line"]) for one in told["findings"]] == [("PTO-P002", 2)]


def test_unknown_ops_are_kept_where_one_is_lenient() -> None:
    text = b"pto.brand_new %x : i32\npto.dsb\n"
    strict = convert("-", "--to", "dps", text=text)
    assert strict.exit_code == 2
    lenient = convert("-", "--to", "dps", "--lenient", text=b"%x = arith.constant 1 : i32\n" + text)
    assert lenient.exit_code == 0, lenient.stderr
    assert "brand_new" in lenient.stdout
    assert "note" in lenient.stderr
    cpp = convert("-", "--to", "cpp", "--lenient", text=b"%x = arith.constant 1 : i32\n" + text)
    assert cpp.exit_code == 1
    assert "brand_new" in cpp.stderr
