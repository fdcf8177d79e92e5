"""The numbers of the model: one commented TOML file a target, and what a user puts in their place."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from ptokit.cost.tables import replaced
from ptokit.errors import PtoValueError
from ptokit.targets import machine

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
    table = replaced(_table(name), override, name, "parameters")
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
