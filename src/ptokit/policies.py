"""The policies of MSCATTER and MGATHER, and the one place where their names are read."""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import TypeVar

from ptokit.errors import PtoTypeError, PtoValueError, a_kind, listed, nearest


class Coalesce(Enum):
    """One index per row, or one per element."""

    Row = 0
    Elem = 1


class ScatterAtomicOp(Enum):
    """What a scatter does with what is already there."""

    None_ = 0
    Add = 1
    Max = 2
    Min = 3


class ScatterOOB(Enum):
    """What a scatter does with an index past the capacity."""

    Undefined = 0
    Skip = 1
    Clamp = 2
    Wrap = 3


class GatherOOB(Enum):
    """What a gather does with an index past the capacity."""

    Undefined = 0
    Clamp = 1
    Wrap = 2
    Zero = 3


class ArrayScatterOOB(Enum):
    """What `pto.scatter` does with an index past the table; Raise looks at all of them before the first write."""

    Raise = 0
    Skip = 1
    Clamp = 2
    Wrap = 3


class ArrayGatherOOB(Enum):
    """What `pto.gather` does with an index past the table."""

    Raise = 0
    Zero = 1
    Clamp = 2
    Wrap = 3


class ScatterConflict(Enum):
    """Which writer of an element survives (a5 only)."""

    Last = 0
    Default = 1


class Schedule(Enum):
    """Which legal order a simulated call takes."""

    Program = 0
    Random = 1


Policy = TypeVar("Policy", bound=Enum)


def word(policy: Enum) -> str:
    """The policy's name as it is written in a call.

    >>> word(ScatterAtomicOp.None_), word(ScatterOOB.Clamp)
    ('none', 'clamp')
    """
    return policy.name.rstrip("_").lower()


@cache
def _names(kind: type[Enum]) -> dict[str, Enum]:
    return {word(member): member for member in kind}


def read(kind: type[Policy], given: object, keyword: str) -> Policy:
    """The policy that a case-insensitive name or an enum member stands for.

    >>> read(ScatterOOB, "CLAMP", "oob")
    <ScatterOOB.Clamp: 2>
    """
    names: dict[str, Policy] = _names(kind)  # type: ignore[assignment]
    if isinstance(given, kind):
        return given
    if isinstance(given, str):
        found = names.get(given.lower())
        if found is not None:
            return found
        hint = _HINTS.get((kind, given.lower())) or nearest(given, names)
        raise PtoValueError(f"{keyword}={given!r} is unknown.{hint} Known: {listed(names)}")
    if given is None:
        raise PtoTypeError(f"{keyword}=None is no policy: leave {keyword} out for the default")
    raise PtoTypeError(
        f"{keyword}={given!r} is {a_kind(given)}; a name ({listed(names)}) or a {kind.__name__} is wanted"
    )


def read_array_oob(kind: type[Policy], instruction: type[Enum], given: object) -> Policy:
    """The bounds policy of a host array: a name, or the instruction's own enum where it means the same.

    >>> read_array_oob(ArrayScatterOOB, ScatterOOB, ScatterOOB.Clamp)
    <ArrayScatterOOB.Clamp: 2>
    """
    return read(kind, word(given) if isinstance(given, instruction) else given, "oob")


# Names that belong to the other instruction: the reason is worth more than a spelling.
_HINTS = {
    (ScatterOOB, "zero"): " A scatter has no destination to zero; 'skip' drops the write.",
    (GatherOOB, "skip"): " A gather has to put something there; 'zero' writes zero.",
    (ScatterOOB, "raise"): " 'raise' belongs to pto.scatter; on a target, 'skip' drops the write.",
    (ScatterAtomicOp, "sum"): " A sum is 'add'.",
    (ScatterAtomicOp, "plus"): " A sum is 'add'.",
    (ArrayScatterOOB, "zero"): " A scatter has no destination to zero; 'skip' drops the write.",
    (ArrayScatterOOB, "undefined"): " On host arrays nothing is undefined: 'raise' is the default.",
    (ArrayGatherOOB, "skip"): " A gather has to put something there; 'zero' writes zero.",
    (ArrayGatherOOB, "undefined"): " On host arrays nothing is undefined: 'raise' is the default.",
    (GatherOOB, "raise"): " 'raise' belongs to pto.gather; on a target, 'zero' writes zero.",
}
