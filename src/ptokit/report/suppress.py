"""Findings that are silenced: by a comment with a reason, by the settings, or by a baseline."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ptokit.errors import PtoValueError
from ptokit.explain import pages
from ptokit.findings import Finding, Severity, Where
from ptokit.report.checked import Silenced
from ptokit.report.lines import shown

VERSION = 1
_COMMENT = re.compile(r"(?://|#)\s*ptokit:\s*ignore\b(?:\[(?P<ids>[^\]\n]*)\])?(?P<reason>[^\n]*)")
_ID = re.compile(r"PTO-[A-Z]\d{3}")
_ALONE = re.compile(r"\s*(?://|#)")


# Comments


@dataclass(frozen=True)
class Ignore:
    """One comment `ptokit: ignore[PTO-S003] reason`: which lines it covers, which ids, and why."""

    line: int
    column: int
    ids: tuple[str, ...]
    reason: str
    covers: int
    text: str
    line_text: str


def ignores(text: str, *, python: bool = False) -> list[Ignore]:
    """The comments of a text. One that stands alone covers the next line that is no comment, another its own.

    >>> [(one.ids, one.covers, one.reason) for one in ignores("pto.dsb  // ptokit: ignore[PTO-H003] flushed above")]
    [(('PTO-H003',), 1, 'flushed above')]
    """
    if "ptokit" not in text:
        return []
    lines = text.split("\n")
    real = _comments_of_python(text) if python else None
    found = []
    for number, line in enumerate(lines, 1):
        said = _COMMENT.search(line) if "ptokit" in line else None
        if said is None or (real is not None and (number, said.start()) not in real):
            continue
        ids = tuple(one.strip().upper() for one in (said["ids"] or "").split(",") if one.strip())
        alone = not line[: said.start()].strip()
        reason = said["reason"].strip(" \t\r-:;")
        covers = _next_line(lines, number) if alone else number
        found.append(Ignore(number, said.start() + 1, ids, reason, covers, said[0].rstrip(), line.rstrip("\r")))
    return found


def _next_line(lines: Sequence[str], number: int) -> int:
    """The next line with something other than a comment on it."""
    for at in range(number, len(lines)):
        if lines[at].strip() and not _ALONE.match(lines[at]):
            return at + 1
    return number


def _comments_of_python(text: str) -> set[tuple[int, int]] | None:
    """Where comments begin, so that strings are not read as such; None where the text is no Python."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return None
    return {token.start for token in tokens if token.type == tokenize.COMMENT}


def unfounded(one: Ignore, file: str) -> Finding | None:
    """A comment that silences nothing: without a reason, without an id, or with one that does not exist."""
    where, facts = Where(file, one.line, one.column), {"line_text": one.line_text, "length": len(one.text)}
    known = pages()
    unknown = [id_ for id_ in one.ids if id_ not in known]
    if not one.ids:
        sentence, fix = "This comment names no finding.", "Name what it silences: ptokit: ignore[PTO-S003] reason."
    elif unknown:
        sentence, fix = f"{unknown[0]} is not the id of a finding.", "See `ptokit explain` for all ids."
    elif not one.reason:
        ids = ", ".join(one.ids)
        sentence, fix = f"{ids} is ignored here without a reason.", "Say why, after the bracket."
    else:
        return None
    return Finding("PTO-P040", Severity.WARNING, None, sentence, facts, where, fix)


# Fingerprints


def fingerprints(
    findings: Iterable[Finding], sources: Mapping[str, str] | None = None, folder: Path | None = None
) -> Iterator[str]:
    """A name for each finding that survives when lines are added above it: id, target, file, the line's text.

    Files go by their way from `folder`, where one is given: by whatever name somebody called them.
    """
    often: Counter[str] = Counter()
    for one in findings:
        place = shown(one, sources)
        text = " ".join(place.line.split()) if place else one.message
        file = _way_to(one.where.file, folder) if one.where else ""
        key = "\0".join((one.id, one.target or "", file, text))
        often[key] += 1
        yield hashlib.sha256(f"{key}\0{often[key]}".encode()).hexdigest()[:20]


def _way_to(file: str, folder: Path | None) -> str:
    """A file as it is called from a folder; what is no file keeps its name."""
    path = Path(file)
    if folder is not None and path.exists():
        with suppress(ValueError):  # on another drive
            path = Path(os.path.relpath(path.resolve(), folder.resolve()))
    return path.as_posix()


# The baseline


def write_baseline(path: Path, findings: Iterable[Finding], sources: Mapping[str, str] | None = None) -> int:
    """Everything that there is today, so that only what is new is told; how many."""
    every, folder = list(findings), path.parent
    entries = [
        {
            "fingerprint": name,
            "id": one.id,
            "target": one.target,
            "file": _way_to(one.where.file, folder) if one.where else None,
            "message": one.message,
            "reason": "known when the baseline was written",
        }
        for one, name in zip(every, fingerprints(every, sources, folder), strict=True)
    ]
    text = json.dumps({"version": VERSION, "findings": entries}, indent=2, ensure_ascii=False) + "\n"
    try:
        path.write_text(text, "utf-8")
    except OSError as trouble:
        raise PtoValueError(f"the baseline {path} cannot be written: {trouble.strerror}") from None
    return len(entries)


@dataclass(frozen=True)
class Baseline:
    """What is known already: fingerprints and their reasons, and the folder that they were taken from."""

    known: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None


def read_baseline(path: Path) -> Baseline:
    """A baseline as `write_baseline` has written it."""
    try:
        told = json.loads(path.read_text("utf-8"))
    except OSError as trouble:
        raise PtoValueError(
            f"the baseline {path} cannot be read: {trouble.strerror}. Write one with --write-baseline {path}"
        ) from None
    except (ValueError, RecursionError) as wrong:
        raise PtoValueError(f"the baseline {path} is not JSON: {wrong}") from None
    return Baseline(_entries(path, told), path.parent)


def _entries(path: Path, told: Any) -> dict[str, str]:
    listed = told.get("findings") if isinstance(told, dict) else None
    if not isinstance(listed, list):
        raise PtoValueError(f"the baseline {path} has no list `findings`: write it with --write-baseline")
    if told.get("version") != VERSION:
        raise PtoValueError(f"the baseline {path} has version {told.get('version')!r}; {VERSION} is read")
    found: dict[str, str] = {}
    for entry in listed:
        name = entry.get("fingerprint") if isinstance(entry, dict) else None
        if not isinstance(name, str):
            raise PtoValueError(f"the baseline {path} has an entry without a fingerprint: {str(entry)[:80]}")
        found[name] = str(entry.get("reason") or "in the baseline")
    return found


# All together


def silence(
    findings: Iterable[Finding],
    *,
    sources: Mapping[str, str] | None = None,
    ignored: Mapping[str, str] | None = None,
    baseline: Baseline = Baseline(),
) -> tuple[list[Finding], list[Silenced]]:
    """What is left, with what is wrong with the comments themselves; and what was silenced, and by what.

    `sources` are the texts by name; a file that is not among them is read.
    """
    every, texts = list(findings), dict(sources or {})
    files = {one.where.file for one in every if one.where} | set(texts)
    comments = {file: _ignores_of(file, texts) for file in files}
    left = [wrong for file in sorted(files) for one in comments[file] if (wrong := unfounded(one, file))]
    silenced = []
    for one, name in zip(every, fingerprints(every, texts, baseline.folder), strict=True):
        because = _reason(one, name, comments, ignored or {}, baseline.known)
        if because is None:
            left.append(one)
        else:
            silenced.append(Silenced(one, *because))
    return left, silenced


def _reason(
    one: Finding,
    name: str,
    comments: Mapping[str, Sequence[Ignore]],
    ignored: Mapping[str, str],
    baseline: Mapping[str, str],
) -> tuple[str, str] | None:
    if one.where is not None:
        for said in comments[one.where.file]:
            if said.reason and one.id in said.ids and one.where.line in (said.covers, said.line):
                return "comment", said.reason
    if one.id in ignored:
        return "settings", ignored[one.id]
    return ("baseline", baseline[name]) if name in baseline else None


def _ignores_of(file: str, sources: Mapping[str, str]) -> list[Ignore]:
    text = sources.get(file)
    if text is None:
        try:
            text = Path(file).read_text("utf-8")
        except (OSError, ValueError):
            return []
    return ignores(text, python=file.endswith(".py"))
