"""The language server, asked by a real client over a pipe; and its answers as functions of a text."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("pygls")
pytest.importorskip("xdsl")

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from ptokit.cli import group
from ptokit.findings import Severity
from ptokit.lsp.completion import complete
from ptokit.lsp.diagnostics import marks, read, read_file
from ptokit.lsp.hover import hover

EXAMPLES = Path(__file__).parents[1] / "examples"
GOOD = (EXAMPLES / "embedding_update.pto").read_text()
URI = "file:///kernel.pto"
PATIENCE = 20


class Editor:
    """A client that keeps the diagnostics it was sent."""

    def __init__(self) -> None:
        self.client = LanguageClient("editor", "1")
        self.told: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def told(params: types.PublishDiagnosticsParams) -> None:
            self.told.put_nowait(params)

    async def start(self) -> types.InitializeResult:
        await self.client.start_io(sys.executable, "-m", "ptokit", "lsp")
        capabilities = types.ClientCapabilities()
        found = await self.client.initialize_async(types.InitializeParams(capabilities=capabilities, root_uri=None))
        self.client.initialized(types.InitializedParams())
        return found

    async def stop(self) -> None:
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await self.client.stop()

    def open(self, text: str, uri: str = URI) -> None:
        document = types.TextDocumentItem(uri=uri, language_id="pto", version=1, text=text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(document))

    def change(self, text: str, version: int) -> None:
        document = types.VersionedTextDocumentIdentifier(uri=URI, version=version)
        changes = [types.TextDocumentContentChangeWholeDocument(text)]
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, changes))

    async def diagnostics(self) -> list[types.Diagnostic]:
        found = await asyncio.wait_for(self.told.get(), PATIENCE)
        return list(found.diagnostics)

    async def hover(self, line: int, character: int) -> types.Hover | None:
        document, position = types.TextDocumentIdentifier(URI), types.Position(line, character)
        return await self.client.text_document_hover_async(types.HoverParams(document, position))

    async def complete(self, line: int, character: int) -> list[types.CompletionItem]:
        document, position = types.TextDocumentIdentifier(URI), types.Position(line, character)
        found = await self.client.text_document_completion_async(types.CompletionParams(document, position))
        assert isinstance(found, types.CompletionList)
        return list(found.items)


def edited(what: Callable[[Editor], Awaitable[Any]]) -> Any:
    """One session of an editor."""

    async def session() -> Any:
        editor = Editor()
        await editor.start()
        try:
            return await asyncio.wait_for(what(editor), 3 * PATIENCE)
        finally:
            await editor.stop()

    return asyncio.run(session())


def errors(found: list[types.Diagnostic]) -> list[types.Diagnostic]:
    return [one for one in found if one.severity == types.DiagnosticSeverity.Error]


def test_diagnostics_come_as_one_types_and_go_when_it_is_mended() -> None:
    async def what(editor: Editor) -> Any:
        editor.open(GOOD)
        good = await editor.diagnostics()
        editor.change(GOOD.replace("pto.dsb", "pto.dbs"), 2)
        broken = await editor.diagnostics()
        editor.change(GOOD, 3)
        return good, broken, await editor.diagnostics()

    good, broken, mended = edited(what)
    assert errors(good) == errors(mended) == []
    (one,) = errors(broken)
    line = next(n for n, text in enumerate(GOOD.split("\n")) if "pto.dsb" in text)
    assert (one.code, one.source, one.range.start.line) == ("PTO-P002", "ptokit", line)
    assert GOOD.split("\n")[line][one.range.start.character : one.range.end.character] == "pto.dsb"


def test_only_the_last_of_several_quick_keystrokes_is_checked() -> None:
    async def what(editor: Editor) -> Any:
        editor.open("pto.dsb\n")
        await editor.diagnostics()
        for version in range(2, 7):
            editor.change("pto.dbs\n" * version, version)
        await editor.diagnostics()
        await asyncio.sleep(0.5)
        return editor.told.qsize()

    assert edited(what) == 0


def test_hover_and_completion_of_a_text_that_is_open() -> None:
    text = "// naïve 🙂 words\npto.mscatter ins(%s) outs(%m) {\n"

    async def what(editor: Editor) -> Any:
        editor.open(text)
        await editor.diagnostics()
        return await editor.hover(1, 6), await editor.complete(1, 31), await editor.hover(5, 0)

    over, offered, nothing = edited(what)
    assert "table[idx[r], :] = src[r, :]" in over.contents.value
    assert (over.range.start.character, over.range.end.character) == (0, 12)
    assert [one.label for one in offered] == ["coalesce", "scatterAtomicOp", "scatterOob", "scatterConflict"]
    assert offered[0].text_edit.new_text == "coalesce = "
    assert nothing is None


def test_columns_are_counted_in_utf16_as_clients_do() -> None:
    text = 'pto.barrier <PIPE_ALL> // 🙂\n"🙂" pto.dbs\n'

    async def what(editor: Editor) -> Any:
        editor.open(text.replace('"🙂" ', "/* */ "))
        await editor.diagnostics()
        editor.change("%a = arith.constant 1 : index // 🙂\npto.dsb // 🙂 PTO-S003\n", 2)
        await editor.diagnostics()
        return await editor.hover(1, 17)

    over = edited(what)
    # The smiley is two units: PTO-S003 begins at 14, not at 13.
    assert over.contents.value.startswith("# PTO-S003")
    assert over.range.start.character == 14


def test_closing_a_text_takes_its_diagnostics_away() -> None:
    async def what(editor: Editor) -> Any:
        editor.open("pto.dbs\n")
        first = await editor.diagnostics()
        document = types.TextDocumentIdentifier(URI)
        editor.client.text_document_did_close(types.DidCloseTextDocumentParams(document))
        return first, await editor.diagnostics()

    first, last = edited(what)
    assert len(first) == 1
    assert last == []


def test_the_server_says_what_it_can_do() -> None:
    async def session() -> types.InitializeResult:
        editor = Editor()
        found = await editor.start()
        await editor.stop()
        return found

    found = asyncio.run(session())
    assert found.server_info is not None
    assert found.server_info.name == "ptokit"
    assert found.capabilities.hover_provider
    assert found.capabilities.completion_provider is not None
    assert "." in (found.capabilities.completion_provider.trigger_characters or [])


# The answers themselves


def labels(text: str) -> list[str]:
    """What is offered at the end of the text."""
    lines = text.split("\n")
    return [one.label for one in complete(text, len(lines) - 1, len(lines[-1]))]


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("pto.mgather ins(%m, %i : M, I) outs(%d : D) {", ["coalesce", "gatherOob"]),
        ("pto.mgather ins(%m, %i : M, I) outs(%d : D) {coalesce = #pto<coalesce row>, ", ["gatherOob"]),
        ("pto.mgather ins(%m, %i : M, I)\n  outs(%d : D)\n  {gatherOob = ", ["undefined", "clamp", "wrap", "zero"]),
        ("{x = #pto<scatter_oob s", ["undefined", "skip", "clamp", "wrap"]),
        ("#pto.kernel_kind<", ["cube", "vector"]),
        ("pto.set_flag[<PIPE_V>, <PIPE_V>, <EV", [f"EVENT_ID{i}" for i in range(8)]),
        ("mgather.row.", ["undefined", "clamp", "wrap", "zero"]),
        ("mscatter.row.clamp.", ["atomic_add", "atomic_max", "atomic_min", "conflict_default"]),
        ("!pto.tile_buf<", ["vec", "mat", "left", "right", "acc", "bias", "scaling"]),
        ("!pto.tile_buf<vec, 16x64xf32, slayout=", ["none_box", "row_major", "col_major"]),
        ("// pto.", []),
        ("%x = arith.constant {", []),
    ],
)
def test_completion_offers_what_may_stand_there(text: str, offered: list[str]) -> None:
    assert labels(text) == offered


def test_completion_offers_every_op_after_the_dialect() -> None:
    assert {"pto.mscatter", "pto.tadds", "pto.comm.tscatter", "pto.section.vector"} <= set(labels("  %x = pto."))


def test_what_is_offered_replaces_what_was_typed() -> None:
    (offer,) = [one for one in complete("  pto.msc", 0, 9) if one.label == "pto.mscatter"]
    assert offer.length == len("pto.msc")


def test_hover_tells_ops_types_values_policies_and_findings() -> None:
    text = "%c = arith.constant 7 : index\n%t = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf16> // PTO-M005\n"
    reading = read(text, "a.pto")

    def told(line: int, column: int) -> str:
        found = hover(text, line, column, reading)
        return found.text if found else ""

    assert "Always 7" in told(0, 1)
    assert "16 x 64 float16 in vec, nd: 2048 bytes" in told(1, 1)
    assert "alloc_tile" in told(1, 8)
    assert "2048 bytes" in told(1, 25)
    assert told(1, text.split("\n")[1].index("PTO-")).startswith("# PTO-M005")
    assert "clamp" in (hover("{scatterOob = 1}", 0, 3) or pytest.fail()).text
    assert hover(text, 9, 0) is None


def test_several_targets_say_one_thing_once() -> None:
    text = "%t = pto.alloc_tile : !pto.tile_buf<vec, 16x63xf32>\n"
    found = read(text, "a.pto", ("a2a3", "a5")).findings
    told = [one for one in marks(text, found) if one.severity is not Severity.NOTE]
    assert len(told) == len({(one.line, one.start, one.id, one.message) for one in told})


@pytest.mark.parametrize("text", ["", "\0", "pto.", "%", "{" * 500, "pto.tload ins(", "é" * 300, "<<<>>>\n" * 50])
def test_no_text_is_too_broken(text: str) -> None:
    found = read(text, "a.pto")
    marks(text, found.findings)
    for column in (0, len(text) // 2, len(text)):
        complete(text, 0, column)
        hover(text, 0, column, found)


# Settings and comments


UNFLUSHED = GOOD.replace("  pto.dsb\n", "")


def told_of(text: str, path: Path) -> list[tuple[str, str]]:
    return [(one.id, str(one.severity)) for one in read_file(text, path).findings]


def test_what_a_comment_silences_is_not_shown(tmp_path: Path) -> None:
    assert ("PTO-H003", "error") in told_of(UNFLUSHED, tmp_path / "a.pto")
    silent = UNFLUSHED.replace("  pto.dcci\n", "  pto.dcci  // ptokit: ignore[PTO-H003] the next kernel waits\n")
    assert not [id_ for id_, severity in told_of(silent, tmp_path / "a.pto") if severity != "note"]
    unfounded = silent.replace(" the next kernel waits", "")
    assert {"PTO-H003", "PTO-P040"} <= {id_ for id_, _ in told_of(unfounded, tmp_path / "a.pto")}


def test_the_settings_of_the_project_count(tmp_path: Path) -> None:
    (tmp_path / "ptokit.toml").write_text('targets = ["a2a3"]\nseverity = "error"\n')
    inside = tmp_path / "kernels" / "a.pto"
    inside.parent.mkdir()
    assert told_of(UNFLUSHED, inside) == []
    (tmp_path / "ptokit.toml").write_text('[ignore]\n"PTO-H003" = "the next kernel waits"\n')
    assert "PTO-H003" not in dict(told_of(UNFLUSHED, inside))
    (tmp_path / "ptokit.toml").write_text("targets = 3\n")
    assert told_of(UNFLUSHED, inside)[0] == ("PTO-P040", "warning")


def test_what_the_baseline_knows_is_not_shown(tmp_path: Path) -> None:
    inside = tmp_path / "a.pto"
    inside.write_text(UNFLUSHED)
    told = CliRunner().invoke(group, ["check", str(inside), "--write-baseline", str(tmp_path / "known.json")])
    assert told.exit_code == 0
    (tmp_path / "ptokit.toml").write_text('baseline = "known.json"\n')
    assert "PTO-H003" not in dict(told_of(UNFLUSHED, inside))


def test_an_editor_is_shown_what_the_settings_leave(tmp_path: Path) -> None:
    (tmp_path / "ptokit.toml").write_text('[ignore]\n"PTO-H003" = "the next kernel waits"\n')
    uri = (tmp_path / "with space é.pto").as_uri()

    async def what(editor: Editor) -> Any:
        editor.open(UNFLUSHED)
        elsewhere = await editor.diagnostics()
        editor.open(UNFLUSHED, uri)
        return elsewhere, await editor.diagnostics()

    elsewhere, there = edited(what)
    assert [one.code for one in errors(elsewhere)] == ["PTO-H003"]
    assert errors(there) == []


def test_a_text_that_is_not_open_has_no_answers() -> None:
    async def what(editor: Editor) -> Any:
        return await editor.hover(0, 0), await editor.complete(0, 0)

    assert edited(what) == (None, [])
