"""The numbers of the link model: a commented TOML file, and what a user puts in their place."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from ptokit.cost.tables import Table, replaced
from ptokit.errors import PtoTypeError, PtoValueError, listed, nearest
from ptokit.targets import machine, machines

GIB = 1 << 30
SHORT = {"latency": "latency_us", "bandwidth": "bandwidth_gib_s", "root": "root_gib_s"}
"""Short words for the three numbers of the link."""


@dataclass(frozen=True)
class Link:
    """From one rank's memory to another's."""

    latency_us: float
    bandwidth_gib_s: float
    root_gib_s: float
    read_trips: float

    @property
    def latency(self) -> float:
        """Seconds from the end of a transfer until the other side has it."""
        return self.latency_us * 1e-6

    def wire(self, nbytes: float) -> float:
        """Seconds on the link between two ranks."""
        return nbytes / (self.bandwidth_gib_s * GIB)

    def port(self, nbytes: float) -> float:
        """Seconds at a rank's port, which all of its links share."""
        return nbytes / (self.root_gib_s * GIB)


@dataclass(frozen=True)
class Ccu:
    """The unit of a5 that writes slices from memory to memory."""

    most_ranks: int
    gate_us: float
    issue_us: float
    barrier_trips: float


@dataclass(frozen=True)
class Route:
    """What a message of a routed table costs besides its bytes."""

    message_us: float
    index_bytes: float


@dataclass(frozen=True)
class Links:
    """Everything between ranks."""

    link: Link
    ccu: Ccu
    route: Route


def links(target: str, override: Mapping[str, Any] | str | Path | None = None) -> Links:
    """The shipped numbers, with some of them replaced by a mapping or by a TOML file.

    `latency` (microseconds), `bandwidth` and `root` (GiB/s) are short for the numbers of the table `link`.

    >>> links("a5").link.latency_us, links("a5", {"latency": 1.5}).link.latency_us
    (2.0, 1.5)
    >>> links("a5", {"ccu": {"gate_us": 5}}).ccu.gate_us
    5.0
    """
    if isinstance(override, Mapping):
        override = _spelt_out(override)
    table = replaced(_shipped(), override, machine(target).name, "link")
    ccu = dict(table["ccu"])
    most = int(ccu.pop("most_ranks"))
    return Links(Link(**_floats(table["link"])), Ccu(most, **_floats(ccu)), Route(**_floats(table["route"])))


def _shipped() -> Table:
    return tomllib.loads((files("ptokit.comm.prices") / "link.toml").read_text(encoding="utf-8"))


def _spelt_out(given: Mapping[str, Any]) -> Table:
    """The short words in their place."""
    known = [*SHORT, *_shipped()]
    for key in given:
        if key not in known and key not in machines():
            raise PtoValueError(f"the link has no {key!r}.{nearest(str(key), known)} Known: {listed(known)}")
    long = {key: value for key, value in given.items() if key not in SHORT}
    short = {SHORT[key]: value for key, value in given.items() if key in SHORT}
    table = long.get("link", {})
    if not isinstance(table, Mapping):
        raise PtoTypeError(f"link is {table!r}; a table of its numbers is wanted")
    return long | ({"link": {**table, **short}} if short or table else {})


def _floats(table: Mapping[str, Any]) -> dict[str, float]:
    return {key: float(value) for key, value in table.items()}
