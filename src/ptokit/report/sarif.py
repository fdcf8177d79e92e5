"""Findings as SARIF 2.1.0: what code hosts and editors read. Rules carry the pages of `ptokit explain`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ptokit.explain import Page, pages
from ptokit.findings import Finding, Severity
from ptokit.report.checked import Checked, Silenced
from ptokit.report.lines import shown
from ptokit.report.suppress import fingerprints

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}
ROOT = "%SRCROOT%"
SUPPRESSION = {"comment": "inSource", "settings": "external", "baseline": "external"}


def as_sarif(checked: Checked, version: str) -> str:
    """The log as text; `version` is ptokit's."""
    return json.dumps(as_log(checked, version), indent=2, ensure_ascii=False, default=str) + "\n"


def as_log(checked: Checked, version: str) -> dict[str, Any]:
    """The log in JSON's own types: one run, a rule for each id that it names.

    >>> log = as_log(Checked.of([], [Finding("PTO-L024", Severity.ERROR, "a2a3", "no max.")]), "1.0")
    >>> log["runs"][0]["results"][0]["message"]
    {'text': 'no max.'}
    """
    told = [*checked.findings, *(one.finding for one in checked.silenced)]
    ids = sorted({one.id for one in told})
    known = pages()
    names = list(fingerprints(told, checked.sources))
    results = [_result(one, ids, name, checked) for one, name in zip(told, names, strict=True)]
    for result, one in zip(results[len(checked.findings) :], checked.silenced, strict=True):
        result["suppressions"] = [_suppression(one)]
    driver = {
        "name": "ptokit",
        "version": version,
        "rules": [_rule(id_, known.get(id_)) for id_ in ids],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"uri": Path.cwd().as_uri().rstrip("/") + "/"}},
        "invocations": [{"executionSuccessful": checked.exit_code != 2, "exitCode": checked.exit_code}],
        "artifacts": [{"location": _location(one.name)} for one in checked.files],
        "results": results,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(id_: str, page: Page | None) -> dict[str, Any]:
    if page is None:
        return {"id": id_}
    about = page.body.partition("\n## ")[0].strip()
    return {
        "id": id_,
        "shortDescription": {"text": page.title},
        "fullDescription": {"text": about},
        "help": {"text": page.markdown, "markdown": page.markdown},
        "defaultConfiguration": {"level": page.severity},
        "properties": {"tags": [page.room], "targets": list(page.targets)},
    }


def _result(one: Finding, ids: list[str], name: str, checked: Checked) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": one.id,
        "ruleIndex": ids.index(one.id),
        "level": LEVELS[one.severity],
        "message": {"text": one.message + (f" Fix: {one.fix}" if one.fix else "")},
        "partialFingerprints": {"ptokit/v1": name},
        "properties": {"target": one.target, "facts": dict(one.facts)},
    }
    if one.where is not None:
        physical: dict[str, Any] = {"artifactLocation": _location(one.where.file)}
        if one.where.line:
            physical["region"] = _region(one, checked)
        result["locations"] = [{"physicalLocation": physical}]
    return result


def _region(one: Finding, checked: Checked) -> dict[str, Any]:
    assert one.where is not None
    region: dict[str, Any] = {"startLine": one.where.line}
    place = shown(one, checked.sources)
    if one.where.column:
        region["startColumn"] = one.where.column
        if place is not None and place.length:
            region["endColumn"] = one.where.column + place.length
            region["snippet"] = {"text": place.token}
    return region


def _location(name: str) -> dict[str, Any]:
    """A path below the folder that ptokit was called in is given relative to it."""
    path = Path(name)
    if not path.is_absolute():
        return {"uri": quote(path.as_posix()), "uriBaseId": ROOT}
    try:
        return {"uri": quote(path.relative_to(Path.cwd()).as_posix()), "uriBaseId": ROOT}
    except ValueError:
        return {"uri": path.as_uri()}


def _suppression(one: Silenced) -> dict[str, Any]:
    return {"kind": SUPPRESSION[one.by], "justification": one.reason}
