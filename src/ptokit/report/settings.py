"""What a project has settled: `[tool.ptokit]` of pyproject.toml, or ptokit.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ptokit.errors import PtoTypeError, PtoValueError, a_kind, listed, nearest
from ptokit.explain import pages
from ptokit.findings import Severity

TARGETS = ("cpu", "a2a3", "a5", "ptoas")
"""Whom a text can be checked for: the three machines, and the public assembler."""

FILES = ("ptokit.toml", "pyproject.toml")


@dataclass(frozen=True)
class Settings:
    """Everything has a default; a command line wins over it."""

    targets: tuple[str, ...] | None = None
    severity: Severity | None = None
    ignore: Mapping[str, str] = field(default_factory=dict)
    baseline: Path | None = None
    file: Path | None = None


def target_names(given: object, what: str = "targets", *, known: Sequence[str] = TARGETS) -> tuple[str, ...]:
    """Names of targets: one, several in a row, or several between commas.

    >>> target_names("a2a3, a5"), target_names(["cpu"])
    (('a2a3', 'a5'), ('cpu',))
    """
    words = given.split(",") if isinstance(given, str) else given
    if not isinstance(words, Iterable):
        raise PtoTypeError(f"{what} is {a_kind(given)}; names are wanted: {listed(known)}")
    found = []
    for one in words:
        if not isinstance(one, str):
            raise PtoTypeError(f"{what} has {one!r}, {a_kind(one)}; names are wanted: {listed(known)}")
        name = one.strip().lower()
        if name not in known:
            raise PtoValueError(f"{what}: {one.strip()!r} is unknown.{nearest(name, known)} Known: {listed(known)}")
        found.append(name)
    if not found:
        raise PtoValueError(f"{what} is empty; known: {listed(known)}")
    return tuple(dict.fromkeys(found))


def severity_named(given: object, what: str = "severity") -> Severity:
    """A severity by its name."""
    names = [str(one) for one in Severity]
    if not isinstance(given, str):
        raise PtoTypeError(f"{what} is {a_kind(given)}; known: {listed(names)}")
    if given.lower() not in names:
        raise PtoValueError(f"{what}: {given!r} is unknown.{nearest(given, names)} Known: {listed(names)}")
    return Severity(given.lower())


def _ignored(given: object) -> dict[str, str]:
    """Ids and why: a finding is not silenced without a reason."""
    if not isinstance(given, Mapping):
        raise PtoTypeError(
            f"ignore is {a_kind(given)}; a table of ids and reasons is wanted: "
            'ignore = { "PTO-S011" = "we build for a2a3 only" }'
        )
    known = pages()
    for id_, reason in given.items():
        if id_ not in known:
            near = (
                nearest(str(id_), {one.lower(): one for one in known}).upper().replace("DID YOU MEAN", "Did you mean")
            )
            shown = near if re.search("PTO-", near) else ""
            raise PtoValueError(f"ignore: {id_!r} is not the id of a finding.{shown} All ids: ptokit explain")
        if not isinstance(reason, str) or not reason.strip():
            raise PtoValueError(f"ignore: {id_} has no reason; say why: {id_!r} = {'why it may stay'!r}")
    return {str(id_): str(reason).strip() for id_, reason in given.items()}


def _path(given: object) -> Path:
    if not isinstance(given, str) or not given:
        raise PtoTypeError(f"baseline is {a_kind(given)}; the path of a file is wanted")
    return Path(given)


READERS: dict[str, Callable[[object], Any]] = {
    "targets": target_names,
    "severity": severity_named,
    "ignore": _ignored,
    "baseline": _path,
}
"""Every key, and what reads it."""


def find_settings(start: Path) -> Settings:
    """The nearest settings at a folder or above it; where there are none, the defaults."""
    folder = start if start.is_dir() else start.parent
    for above in (folder.resolve(), *folder.resolve().parents):
        for name in FILES:
            if (above / name).is_file():
                table = read_table(above / name)
                if table is not None:
                    return settings_of(table, above / name)
    return Settings()


def read_table(path: Path) -> Mapping[str, Any] | None:
    """The table that is ours: all of ptokit.toml, `[tool.ptokit]` of pyproject.toml, or None."""
    try:
        told = tomllib.loads(path.read_text("utf-8"))
    except OSError as trouble:
        raise PtoValueError(f"{path} cannot be read: {trouble.strerror}") from None
    except (ValueError, RecursionError) as wrong:
        raise PtoValueError(f"{path} is not TOML: {wrong}") from None
    tool = told.get("tool", {})
    ours = tool.get("ptokit") if isinstance(tool, dict) else None
    if path.name == "pyproject.toml":
        if ours is not None and not isinstance(ours, dict):
            raise PtoTypeError(f"{path}: tool.ptokit is {a_kind(ours)}; a table is wanted: [tool.ptokit]")
        return ours
    return ours if isinstance(ours, dict) else told


def settings_of(table: Mapping[str, Any], file: Path) -> Settings:
    """The settings of a table; an unknown key is an error.

    >>> settings_of({"targets": "a5"}, Path("ptokit.toml")).targets
    ('a5',)
    """
    found: dict[str, Any] = {}
    for key, value in table.items():
        if key not in READERS:
            raise PtoValueError(f"{file}: there is no setting {key!r}.{nearest(key, READERS)} Known: {listed(READERS)}")
        try:
            found[key] = READERS[key](value)
        except (PtoTypeError, PtoValueError) as wrong:
            raise type(wrong)(f"{file}: {wrong}") from None
    if "baseline" in found:
        found["baseline"] = file.parent / found["baseline"]
    return Settings(**found, file=file)
