"""Findings as JSON, by a schema of our own that stands beside this file."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

from ptokit.report.checked import Checked
from ptokit.report.suppress import fingerprints

VERSION = 1
SCHEMA_ID = f"urn:ptokit:check:{VERSION}"


@cache
def schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of what `as_json` writes.

    >>> schema()["$id"]
    'urn:ptokit:check:1'
    """
    text = (resources.files("ptokit.report") / "check.schema.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def as_document(checked: Checked, version: str) -> dict[str, Any]:
    """What a check has to say, in JSON's own types; `version` is ptokit's."""
    names = fingerprints(checked.findings, checked.sources)
    return {
        "schema": SCHEMA_ID,
        "tool": {"name": "ptokit", "version": version},
        "targets": list(checked.targets),
        "severity": str(checked.threshold),
        "exit_code": checked.exit_code,
        "files": [{"file": one.name, "form": one.form, "readable": one.is_readable} for one in checked.files],
        "findings": [{**one.as_dict(), "fingerprint": name} for one, name in zip(checked.findings, names, strict=True)],
        "silenced": [
            {"finding": one.finding.as_dict(), "by": one.by, "reason": one.reason} for one in checked.silenced
        ],
        "summary": {**checked.counts, "hidden": checked.hidden, "silenced": len(checked.silenced)},
    }


def as_json(checked: Checked, version: str) -> str:
    """The document as text."""
    return json.dumps(as_document(checked, version), indent=2, ensure_ascii=False, default=str) + "\n"
