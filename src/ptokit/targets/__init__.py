"""The targets, one file each; adding a target is adding a file that defines `MACHINE`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from functools import cache

from ptokit.access.plan import Machine
from ptokit.errors import PtoTypeError, PtoValueError, a_kind, listed, nearest


@cache
def machines() -> dict[str, Machine]:
    """Every target by name, cpu first: it is the reference."""
    found = [importlib.import_module(f"{__name__}.{m.name}").MACHINE for m in pkgutil.iter_modules(__path__)]
    found.sort(key=lambda machine: (machine.name != "cpu", machine.name))
    return {machine.name: machine for machine in found}


def machine(name: object) -> Machine:
    """The target of that name.

    >>> machine("A5").name
    'a5'
    """
    if not isinstance(name, str):
        raise PtoTypeError(f"target={name!r} is {a_kind(name)}; known: {listed(machines())}")
    found = machines().get(name.lower())
    if found is None:
        raise PtoValueError(f"target={name!r} is unknown.{nearest(name, machines())} Known: {listed(machines())}")
    return found


def _is_several(targets: object) -> bool:
    return isinstance(targets, Iterable) and not isinstance(targets, bytes | bytearray)


def named(targets: str | Iterable[str]) -> list[Machine]:
    """Several targets, in the order asked for, each once."""
    if not _is_several(targets):
        raise PtoTypeError(f"targets={targets!r}; a name or several are wanted: {listed(machines())}")
    names = [targets] if isinstance(targets, str) else list(targets)
    if not names:
        raise PtoValueError(f"targets is empty; known: {listed(machines())}")
    return list({found.name: found for found in map(machine, names)}.values())
