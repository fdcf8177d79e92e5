"""The numbers of the model: one commented TOML file a target, and what a user puts in their place."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from ptokit.errors import PtoTypeError, PtoValueError, a_kind, listed, nearest
from ptokit.targets import machine, machines

MODELS = ("saturating", "flat")
"""How a bandwidth depends on the size of a transfer."""

Section = TypeVar("Section")


@dataclass(frozen=True)
class Clock:
    """What a cycle is."""

    frequency_ghz: float


@dataclass(frozen=True)
class Link:
    """One direction between GM and UB."""

    flat_gib_s: float
    peak_gib_s: float
    half_bytes: float


@dataclass(frozen=True)
class Bandwidth:
    """Both directions, and which of the two models counts."""

    model: str
    load: Link
    store: Link


@dataclass(frozen=True)
class Dma:
    """MTE2 and MTE3."""

    startup_cycles: float
    burst_cycles: float
    issue_cycles: float
    outstanding: int
    atomic_mode_cycles: float


@dataclass(frozen=True)
class Scalar:
    """The scalar pipe, an access or a turn of a loop at a time."""

    walk_cycles: float
    ub_cycles: float
    gm_load_cycles: float
    gm_store_cycles: float
    policy_cycles: float
    split_cycles: float
    add_cycles: float


@dataclass(frozen=True)
class Sync:
    """Flags, barriers and flushes."""

    flag_cycles: float
    barrier_cycles: float
    dcci_cycles: float
    dsb_cycles: float


@dataclass(frozen=True)
class Vector:
    """The vector pipe: `factor` says how much longer than an addition an instruction takes."""

    issue_cycles: float
    bytes_per_cycle: float
    factor: Mapping[str, float]


@dataclass(frozen=True)
class Simt:
    """Warps of a5."""

    launch_cycles: float
    step_cycles: float
    step_latency_cycles: float
    load_latency_cycles: float
    scan_cycles: float
    scan_latency_cycles: float
    transaction_cycles: float
    conflict_cycles: float
    ub_bytes_per_cycle: float


@dataclass(frozen=True)
class Loop:
    """The plain loop of cpu."""

    element_cycles: float


@dataclass(frozen=True)
class Parameters:
    """Everything that the prices of one target are made of; `simt` is a5's, `loop` is cpu's."""

    target: str
    clock: Clock
    bandwidth: Bandwidth
    dma: Dma
    scalar: Scalar
    sync: Sync
    vector: Vector
    simt: Simt | None = None
    loop: Loop | None = None


def parameters(target: str, override: Mapping[str, Any] | str | Path | None = None) -> Parameters:
    """The parameters of a target, with some of them replaced by a mapping or by a TOML file.

    What stands under a target's name is for that target only, so that one file serves several.

    >>> parameters("a2a3").clock.frequency_ghz
    1.85
    >>> parameters("a5", {"simt": {"launch_cycles": 250}}).simt.launch_cycles
    250.0
    >>> parameters("a2a3", {"a5": {"simt": {"launch_cycles": 250}}}) == parameters("a2a3")
    True
    """
    name = machine(target).name
    if override is None:
        return _shipped(name)
    if isinstance(override, Mapping):
        given, source = override, f"parameters of {name}"
    elif isinstance(override, str | Path):
        given, source = _read(Path(override)), str(override)
    else:
        raise PtoTypeError(f"override is {a_kind(override)}; a mapping or the path of a TOML file is wanted")
    table = _table(name)
    for part in (_common(given), _own(given, name, source)):
        table = _merged(table, part, source, "")
    return _build(Parameters, {"target": name, **table})


@cache
def _shipped(name: str) -> Parameters:
    return _build(Parameters, {"target": name, **_table(name)})


def _table(name: str) -> dict[str, Any]:
    """The file of a target, as it is shipped."""
    file = files("ptokit.cost") / f"{name}.toml"
    if not file.is_file():
        raise PtoValueError(f"target={name!r} has no cost parameters: ptokit/cost/{name}.toml is missing")
    return tomllib.loads(file.read_text(encoding="utf-8"))


def _read(path: Path) -> dict[str, Any]:
    """A user's file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as trouble:
        raise PtoValueError(f"{path} cannot be read: {trouble.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as wrong:
        raise PtoValueError(f"{path} is not TOML: {wrong}") from None


def _common(given: Mapping[str, Any]) -> dict[str, Any]:
    """What is meant for every target."""
    return {key: value for key, value in given.items() if key not in machines()}


def _own(given: Mapping[str, Any], name: str, source: str) -> Mapping[str, Any]:
    """What is meant for this one."""
    own = given.get(name, {})
    if not isinstance(own, Mapping):
        raise PtoTypeError(f"{source}: {name} is {own!r}; a table is wanted")
    return own


def _merged(table: Mapping[str, Any], given: Mapping[str, Any], source: str, path: str) -> dict[str, Any]:
    """The shipped table with what was given in its place; the shipped one says which keys there are."""
    merged = dict(table)
    for key, value in given.items():
        full = f"{path}{key}"
        if key not in table:
            hint = nearest(key, table) if isinstance(key, str) else ""
            raise PtoValueError(f"{source}: {full!r} is no parameter.{hint} Known: {listed(table)}")
        if not isinstance(table[key], Mapping):
            merged[key] = _value(value, f"{source}: {full}", like=table[key], whole=key == "outstanding")
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


def _build(kind: type[Section], table: Mapping[str, Any]) -> Section:
    """A table as its dataclass, and the tables in it as theirs."""
    hints = get_type_hints(kind)
    assert is_dataclass(kind)
    known = {one.name: _field(hints[one.name], table[one.name]) for one in fields(kind) if one.name in table}
    return kind(**known)


SECTIONS: dict[Any, type[Any]] = {
    Simt | None: Simt,
    Loop | None: Loop,
    **{kind: kind for kind in (Clock, Link, Bandwidth, Dma, Scalar, Sync, Vector)},
}
"""The dataclass of a field that is a table of its own."""


def _field(hint: Any, value: Any) -> Any:
    if hint in SECTIONS:
        return _build(SECTIONS[hint], value)
    if isinstance(value, Mapping):
        return {op: float(factor) for op, factor in value.items()}
    return float(value) if hint is float else value
