"""The server itself: texts that are open, and the answers of the other modules in the words of the protocol."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlparse

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path
from pygls.workspace import TextDocument

from ptokit.errors import PtoError
from ptokit.findings import Severity
from ptokit.lsp import completion, diagnostics
from ptokit.lsp import hover as hovering
from ptokit.report.settings import Settings
from ptokit.report.suppress import Baseline

PAUSE = 0.15
"""Seconds without a keystroke before a text is checked again."""
SOURCE = "ptokit"
SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTE: types.DiagnosticSeverity.Information,
}
KINDS = {
    "op": types.CompletionItemKind.Function,
    "attribute": types.CompletionItemKind.Property,
    "value": types.CompletionItemKind.EnumMember,
    "type": types.CompletionItemKind.Class,
}


@dataclass
class Open:
    """What is known of an open text: as it was read last, and its marks."""

    reading: diagnostics.Reading
    marks: tuple[diagnostics.Mark, ...]


@dataclass
class State:
    """The open texts by their URI."""

    texts: dict[str, Open] = field(default_factory=dict)


def make_server(pause: float = PAUSE) -> LanguageServer:
    """A server that has not been started; `start_io()` does."""
    server = LanguageServer(SOURCE, version("ptokit"))
    state = State()

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        _publish(server, state, params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        _publish(server, state, params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: types.DidChangeTextDocumentParams) -> None:
        document = params.text_document
        await asyncio.sleep(pause)
        there = server.workspace.text_documents.get(document.uri)
        if there is not None and there.version == document.version:
            _publish(server, state, document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        state.texts.pop(uri, None)
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hovered(params: types.HoverParams) -> types.Hover | None:
        return _hover(server, state, params)

    @server.feature(
        types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=[".", "<", "#", "{", " ", "!", "["])
    )
    def completed(params: types.CompletionParams) -> types.CompletionList:
        return _completions(server, params)

    return server


def file_of(uri: str) -> Path | None:
    """The file that a text is saved in; None where it is in none."""
    return Path(to_fs_path(uri) or "") if urlparse(uri).scheme == "file" else None


def _publish(server: LanguageServer, state: State, uri: str) -> None:
    document = server.workspace.get_text_document(uri)
    text = document.source
    reading = _reading(text, uri)
    marks = tuple(diagnostics.marks(text, reading.findings))
    before = state.texts.get(uri)
    if reading.module is None and before is not None:
        # While a line is half typed, values keep the types that they had.
        reading = diagnostics.Reading(before.reading.module, reading.findings)
    state.texts[uri] = Open(reading, marks)
    told = [_diagnostic(document, mark) for mark in marks]
    server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, told, document.version))


def _reading(text: str, uri: str) -> diagnostics.Reading:
    path = file_of(uri)
    try:
        if path is not None:
            return diagnostics.read_file(text, path)
        return diagnostics.judged(diagnostics.read(text, uri), text, uri, Settings(), Baseline())
    except PtoError:
        return diagnostics.Reading(None, [])


def _range(document: TextDocument, line: int, start: int, end: int) -> types.Range:
    """Characters as the client counts them."""
    given = types.Range(types.Position(line, start), types.Position(line, end))
    return document.position_codec.range_to_client_units(document.lines, given)


def _diagnostic(document: TextDocument, mark: diagnostics.Mark) -> types.Diagnostic:
    return types.Diagnostic(
        range=_range(document, mark.line, mark.start, mark.end),
        message=mark.message,
        severity=SEVERITIES[mark.severity],
        code=mark.id,
        source=SOURCE,
    )


def _place(document: TextDocument, position: types.Position) -> tuple[int, int]:
    found = document.position_codec.position_from_client_units(document.lines, position)
    return found.line, found.character


def _hover(server: LanguageServer, state: State, params: types.HoverParams) -> types.Hover | None:
    uri = params.text_document.uri
    document = server.workspace.text_documents.get(uri)
    if document is None:
        return None
    line, column = _place(document, params.position)
    known = state.texts.get(uri)
    reading, marks = (known.reading, known.marks) if known else (None, ())
    found = hovering.hover(document.source, line, column, reading, marks)
    if found is None:
        return None
    content = types.MarkupContent(types.MarkupKind.Markdown, found.text)
    return types.Hover(content, _range(document, line, found.start, found.end))


def _completions(server: LanguageServer, params: types.CompletionParams) -> types.CompletionList:
    document = server.workspace.text_documents.get(params.text_document.uri)
    if document is None:
        return types.CompletionList(is_incomplete=False, items=[])
    line, column = _place(document, params.position)
    items = [
        types.CompletionItem(
            label=offer.label,
            kind=KINDS[offer.kind],
            detail=offer.detail or None,
            sort_text=f"{at:04}",
            filter_text=offer.label,
            text_edit=types.TextEdit(_range(document, line, column - offer.length, column), offer.inserted),
        )
        for at, offer in enumerate(completion.complete(document.source, line, column))
    ]
    return types.CompletionList(is_incomplete=False, items=items)
