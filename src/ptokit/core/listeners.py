"""Who wants to hear of launches: told before the kernel runs, and again when there is a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ptokit.core.run import Run

Heard = Callable[[Run], None]
"""What a listener wants to be told when the launch is over."""
Listener = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Heard]
"""Called with the kernel, its arguments as they are before the launch, and the keywords."""

_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell this listener of every launch of this thread until the block ends.

    >>> import ptokit as pto
    >>> seen = []
    >>> with listening(lambda kernel, arguments, keywords: seen.append):
    ...     run = pto.launch(lambda k: None, target="a5")
    >>> seen == [run]
    True
    """
    before = _listeners.set((*_listeners.get(), listener))
    try:
        yield
    finally:
        _listeners.reset(before)


def announce(kernel: Callable[..., Any], tensors: tuple[Any, ...], **keywords: Any) -> Sequence[Heard]:
    """A launch begins: what to call with its run, one for each listener."""
    return [listener(kernel, tensors, keywords) for listener in _listeners.get()]
