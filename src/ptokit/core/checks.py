"""Which checks a launch makes: each can be turned off by its name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

from ptokit.errors import PtoTypeError, PtoValueError, a_kind, listed, nearest


@dataclass(frozen=True)
class Checks:
    """Everything is checked unless told otherwise."""

    races: bool = True
    memory: bool = True
    budget: bool = True
    coherence: bool = True
    indices: bool = True

    @classmethod
    def read(cls, given: object) -> Checks:
        """None is all of them; names are those to make; a mapping turns single ones on or off.

        >>> Checks.read({"races": False}).races, Checks.read(["races"]).memory
        (False, False)
        """
        if given is None:
            return cls()
        if isinstance(given, Checks):
            return given
        known = [one.name for one in fields(cls)]
        if isinstance(given, Mapping):
            return cls(**{_known(name, known): bool(on) for name, on in given.items()})
        names = [given] if isinstance(given, str) else given
        if not isinstance(names, Iterable):
            raise PtoTypeError(f"checks={given!r} is {a_kind(given)}; names or a mapping are wanted: {listed(known)}")
        chosen = {_known(name, known) for name in names}
        return cls(**{name: name in chosen for name in known})


def _known(name: object, known: list[str]) -> str:
    if not isinstance(name, str) or name.lower() not in known:
        hint = nearest(name, known) if isinstance(name, str) else ""
        raise PtoValueError(f"there is no check {name!r}.{hint} Known: {listed(known)}")
    return name.lower()
