"""Tables of numbers in TOML: the shipped one, and what a user puts in the place of some of them."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ptokit.errors import PtoTypeError, PtoValueError, a_kind, listed, nearest
from ptokit.targets import machines

Table = dict[str, Any]

MODELS = ("saturating", "flat")
"""How a bandwidth depends on the size of a transfer."""
WHOLE = frozenset({"outstanding", "most_ranks"})
"""Parameters that count something."""


def replaced(shipped: Mapping[str, Any], override: object, target: str, what: str) -> Table:
    """The shipped table with what a mapping or the path of a TOML file puts in the place of some of it.

    What stands under a target's name is for that target only, so that one file serves several.

    >>> replaced({"link": {"latency_us": 2.0}}, {"a5": {"link": {"latency_us": 1}}}, "a5", "link")
    {'link': {'latency_us': 1}}
    """
    if override is None:
        return dict(shipped)
    if isinstance(override, Mapping):
        given, source = override, f"{what} of {target}"
    elif isinstance(override, str | Path):
        given, source = read_toml(Path(override)), str(override)
    else:
        raise PtoTypeError(f"override is {a_kind(override)}; a mapping or the path of a TOML file is wanted")
    table: Mapping[str, Any] = shipped
    for part in (_common(given), _own(given, target, source)):
        table = _merged(table, part, source, "")
    return dict(table)


def read_toml(path: Path) -> Table:
    """A user's file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as trouble:
        raise PtoValueError(f"{path} cannot be read: {trouble.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as wrong:
        raise PtoValueError(f"{path} is not TOML: {wrong}") from None


def _common(given: Mapping[str, Any]) -> Table:
    """What is meant for every target."""
    return {key: value for key, value in given.items() if key not in machines()}


def _own(given: Mapping[str, Any], name: str, source: str) -> Mapping[str, Any]:
    """What is meant for this one."""
    own = given.get(name, {})
    if not isinstance(own, Mapping):
        raise PtoTypeError(f"{source}: {name} is {own!r}; a table is wanted")
    return own


def _merged(table: Mapping[str, Any], given: Mapping[str, Any], source: str, path: str) -> Table:
    """The shipped table with what was given in its place; the shipped one says which keys there are."""
    merged = dict(table)
    for key, value in given.items():
        full = f"{path}{key}"
        if key not in table:
            hint = nearest(key, table) if isinstance(key, str) else ""
            raise PtoValueError(f"{source}: {full!r} is no parameter.{hint} Known: {listed(table)}")
        if not isinstance(table[key], Mapping):
            merged[key] = _value(value, f"{source}: {full}", like=table[key], whole=key in WHOLE)
        elif isinstance(value, Mapping):
            merged[key] = _merged(table[key], value, source, f"{full}.")
        else:
            raise PtoTypeError(f"{source}: {full} is {value!r}; a table with {listed(table[key])} is wanted")
    return merged


def _value(given: object, what: str, *, like: object, whole: bool) -> object:
    """One parameter: the name of a model, or a number above zero."""
    if isinstance(like, str):
        if not isinstance(given, str):
            raise PtoTypeError(f"{what} is {given!r}; a name is wanted: {listed(MODELS)}")
        if given not in MODELS:
            raise PtoValueError(f"{what} is {given!r}.{nearest(given, MODELS)} Known: {listed(MODELS)}")
        return given
    kinds = int if whole else (int, float)
    if isinstance(given, bool) or not isinstance(given, kinds):
        raise PtoTypeError(f"{what} is {given!r}; a {'whole ' if whole else ''}number is wanted")
    if not (math.isfinite(given) and given > 0):
        raise PtoValueError(f"{what} is {given!r}; a number above zero is wanted")
    return given
