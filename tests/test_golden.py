"""What the texts of the instruction documents become; `python tests/golden_files.py` writes the files."""

from __future__ import annotations

import pytest

pytest.importorskip("xdsl")

from cpp_compiler import COMPILER, complaints
from golden_files import FOLDER, TARGETS, made, texts
from ptokit.ir import parse

TEXTS = texts()


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_a_text_becomes_what_its_golden_files_say(path) -> None:
    for name, text in made(path):
        file = FOLDER / name
        assert file.exists(), f"{name} is missing: python tests/golden_files.py"
        assert text == file.read_text(), f"{name} has changed: python tests/golden_files.py"


def test_no_golden_file_is_left_over() -> None:
    wanted = {name for path in TEXTS for name, _ in made(path)}
    assert {one.name for one in FOLDER.iterdir()} == wanted | {path.name for path in TEXTS}


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_every_printed_form_reads_back(path) -> None:
    module = parse(path)
    for form in ("dps", "ssa", "generic"):
        assert parse(module.to(form)).to("generic") == module.to("generic"), form


@pytest.mark.skipif(COMPILER is None, reason="no g++")
@pytest.mark.parametrize("target", TARGETS)
def test_the_golden_cpp_compiles(target: str) -> None:
    for file in sorted(FOLDER.glob(f"*.{target}.cpp")):
        text = file.read_text()
        if "#include" in text:
            assert complaints(text, target) == "", file.name
