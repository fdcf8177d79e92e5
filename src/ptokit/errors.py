"""The exceptions that a user can cause: each is a `PtoError` and the built-in that fits."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from ptokit.findings import Finding


class PtoError(Exception):
    """Everything that ptokit raises because of what it was given."""


class PtoTypeError(PtoError, TypeError):
    """A value of the wrong kind."""


class PtoValueError(PtoError, ValueError):
    """A value of the right kind that cannot be used."""


class UnknownExtentError(PtoValueError):
    """A dynamic extent was asked for before it had a value."""


class PtoIndexError(PtoError, IndexError):
    """An index that lies outside what it indexes."""


class PtoAttributeError(PtoError, AttributeError):
    """An attribute that cannot be assigned."""


class IllegalInstruction(PtoValueError):  # noqa: N818 - the public name is fixed
    """The target refuses this call; `findings` says why, all of it, and nothing was written.

    >>> import numpy as np
    >>> import ptokit as pto
    >>> tile, idx = pto.Tile("float32", 16, 60), pto.Tile("int32", 1, 16)
    >>> table = pto.GlobalTensor(np.zeros(6400, np.float32), "float32", shape=(1, 1, 1, 100, 64))
    >>> try:
    ...     pto.mscatter(table, tile, idx, target="a2a3")
    ... except pto.IllegalInstruction as refused:
    ...     print(refused.findings[0].id)
    PTO-L015
    """

    def __init__(self, instruction: str, target: str, findings: Sequence[Finding]) -> None:
        self.findings = list(findings)
        told = [f for f in self.findings if f.severity == "error"] or self.findings
        lines = [f"{instruction} is not legal on {target}:"]
        lines += [f"  {f.id}: {f.message} {f.fix}" for f in told]
        lines += [f"More: ptokit explain {told[0].id}"] if told else []
        self._made_of = (instruction, target, self.findings)
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[type[IllegalInstruction], tuple[str, str, list[Finding]]]:
        return type(self), self._made_of


def nearest(word: str, known: Iterable[str]) -> str:
    """` Did you mean 'clamp'?`, or nothing where nothing is near."""
    close = difflib.get_close_matches(word.lower(), list(known), n=3, cutoff=0.5)
    # Of those that are as near, people get the first letter right.
    close.sort(key=lambda one: one[:1] != word[:1].lower())
    return f" Did you mean {close[0]!r}?" if close else ""


def a_kind(given: object) -> str:
    """What kind of value was given, as a sentence says it.

    >>> a_kind(3), a_kind([])
    ('an int', 'a list')
    """
    name = type(given).__name__
    return f"{'an' if name[0].lower() in 'aeio' or name.startswith('nd') else 'a'} {name}"


Given = ParamSpec("Given")
Back = TypeVar("Back")


FOREIGN_WORDS = {
    ("mgather", "atomic"): " A gather has no atomics.",
    ("mgather", "conflict"): " A gather has no conflicts.",
}
"""Keywords of another instruction: the reason is worth more than a spelling."""


def no_such_keyword(function: str, given: str, known: Iterable[str]) -> PtoTypeError:
    """The error of a keyword that a function does not have."""
    hint = FOREIGN_WORDS.get((function, given)) or nearest(given, known)
    return PtoTypeError(f"{function} has no keyword {given!r}.{hint} Known: {listed(known)}")


def well_called(function: Callable[Given, Back]) -> Callable[Given, Back]:
    """A misspelt keyword, a missing or a surplus operand is an error of the package, with what is near."""
    form = inspect.signature(function).parameters
    called_name = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
    own = [name for name in form if name != "self"]
    kinds = {one.kind for one in form.values()}
    by_place = [n for n, one in form.items() if one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    needed = [name for name in by_place if form[name].default is inspect.Parameter.empty]

    def diagnosed(args: Sequence[object], kwargs: Mapping[str, object]) -> PtoTypeError | None:
        """What is wrong with how it was called."""
        unknown = [name for name in kwargs if name not in form]
        if unknown and inspect.Parameter.VAR_KEYWORD not in kinds:
            return no_such_keyword(called_name, unknown[0], own)
        missing = [name for name in needed if name not in by_place[: len(args)] and name not in kwargs]
        surplus = len(args) > len(by_place) and inspect.Parameter.VAR_POSITIONAL not in kinds
        if missing or surplus or any(name in kwargs for name in by_place[: len(args)]):
            places = [name for name in by_place if name != "self"]
            given = len(args) - (len(by_place) - len(places))
            lack = f"{listed(missing)} {'is' if len(missing) == 1 else 'are'} missing; " if missing else ""
            takes = f"{listed(places)}, once each" if places else "no operands"
            return PtoTypeError(f"{called_name} takes {takes}; {lack}{given} were given by place")
        return None

    @wraps(function)
    def called(*args: Given.args, **kwargs: Given.kwargs) -> Back:
        try:
            return function(*args, **kwargs)
        except TypeError:  # looked at only now, so that a right call costs nothing
            wrong = diagnosed(args, kwargs)
            if wrong is None:
                raise
        raise wrong

    return called


def listed(names: Iterable[str]) -> str:
    """The names in one readable row."""
    return ", ".join(names)
