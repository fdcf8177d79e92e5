"""A user's script, run for the launches that it makes; what commands that take a FILE.py share."""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ptokit.access.plan import Array
from ptokit.core.listeners import Heard, listening
from ptokit.core.pipes import NAMES, Step
from ptokit.core.run import Run
from ptokit.core.timeline import is_issued
from ptokit.core.trace import LANES
from ptokit.cost import Parameters, issue, parameters
from ptokit.errors import PtoError, PtoIndexError, PtoValueError
from ptokit.tensors import GlobalTensor


class ScriptError(PtoError):
    """A script that cannot be used: it raised, or it launches nothing."""


@dataclass(frozen=True, eq=False)
class Launch:
    """One call of `pto.launch`: what it was given, as it was before the kernel ran, and what came out."""

    kernel: Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    run: Run

    def fresh(self) -> tuple[Any, ...]:
        """The arguments again, copied: a launch may write them."""
        return copies(self.arguments)


# Capture


@contextmanager
def captured_launches() -> Iterator[list[Launch]]:
    """Every launch that happens inside, in the order in which they end.

    >>> import ptokit as pto
    >>> def clear(k, x):
    ...     k.store_scalar(x, 0, 7); k.dcci(); k.dsb()
    >>> x = np.zeros(1, np.int32)
    >>> with captured_launches() as launches:
    ...     run = pto.launch(clear, x, target="a5")
    >>> launches[0].run is run, launches[0].arguments[0].tolist(), x.tolist()
    (True, [0], [7])
    """
    found: list[Launch] = []

    def begun(kernel: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Heard:
        before = copies(arguments)
        words = {**keywords, "host_reads": _by_position(keywords.get("host_reads"), arguments)}
        return lambda run: found.append(Launch(kernel, before, words, run))

    with listening(begun):
        yield found


def _by_position(host_reads: object, arguments: tuple[Any, ...]) -> object:
    """Tensors that are named by themselves, named by their position: the copies are others."""
    if isinstance(host_reads, (GlobalTensor, np.ndarray)):
        host_reads = [host_reads]
    if not isinstance(host_reads, (list, tuple, set)):
        return host_reads
    return [next((n for n, given in enumerate(arguments) if given is one), one) for one in host_reads]


def copies(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Arrays and tensors copied, what shared memory still shares it; everything else as it is."""
    memories = [_memory(one) for one in arguments]
    copied = _copied(list({id(one): one for one in memories if one is not None}.values()))
    return tuple(
        one if memory is None else _on(one, copied[id(memory)]) for one, memory in zip(arguments, memories, strict=True)
    )


def _memory(given: object) -> Array | None:
    buffer = given.buffer if isinstance(given, GlobalTensor) else given
    if isinstance(buffer, np.ndarray):
        return None if buffer.dtype.hasobject else buffer
    return given.memory if isinstance(given, GlobalTensor) else None


def _on(given: object, memory: Array) -> object:
    """The same argument on other memory."""
    if not isinstance(given, GlobalTensor):
        return memory
    actual = given.shape if given.is_known else None
    form = (given.dtype, given.declared_shape, given.declared_stride, given.layout, actual)
    return GlobalTensor(memory, *form, base=given.base)


def _copied(arrays: Sequence[Array]) -> dict[int, Array]:
    """By the id of each array, its copy; arrays that overlap lie in one new stretch, as far apart as they were."""
    spans = sorted(((*np.lib.array_utils.byte_bounds(one), one) for one in arrays), key=lambda span: span[:2])
    groups: list[tuple[int, int, list[Array]]] = []
    for low, high, one in spans:
        if groups and low < groups[-1][1]:
            first, last, members = groups.pop()
            groups.append((first, max(last, high), [*members, one]))
        else:
            groups.append((low, high, [one]))
    return {id(one): copy for low, high, members in groups for one, copy in _twins(low, high, members)}


LINE = 64
"""Copies are aligned as the originals are, up to a cache line."""


def _twins(low: int, high: int, members: Sequence[Array]) -> Iterator[tuple[Array, Array]]:
    fresh = np.zeros(high - low + LINE, np.uint8)
    shift = (low - _address(fresh)) % LINE
    for one in members:
        twin: Array = np.ndarray(one.shape, one.dtype, fresh, shift + _address(one) - low, one.strides)
        twin[...] = one
        twin.flags.writeable = one.flags.writeable
        yield one, twin


def _address(array: Array) -> int:
    found: int = array.__array_interface__["data"][0]
    return found


# Scripts


def run_script(file: str | Path, *, quiet: bool = False) -> list[Launch]:
    """Run a script as `python FILE` would, and give its launches; what it prints goes to stderr, or nowhere."""
    script = Path(file)
    if not script.is_file():
        what = "is a folder" if script.is_dir() else "does not exist"
        raise PtoValueError(f"{script} {what}; a Python file is wanted")
    with captured_launches() as launches, _surroundings(script, quiet=quiet):
        failed = _failure(script)
    if failed:
        raise ScriptError(failed)
    if not launches:
        raise ScriptError(
            f"{script} launches no kernel. A script is wanted that calls pto.launch(kernel, ...) when it is run, "
            "in the thread in which it starts."
        )
    return launches


def chosen(launches: Sequence[Launch], number: int | None, file: str | Path) -> Launch:
    """One launch of a script by its number from 1; the first where none is asked for."""
    if number is not None and not 1 <= number <= len(launches):
        raise PtoIndexError(f"--launch {number}: {file} makes {len(launches)}; they count from 1")
    return launches[(number or 1) - 1]


@contextmanager
def _surroundings(script: Path, *, quiet: bool) -> Iterator[None]:
    """What a script finds: its own name in sys.argv, its folder on sys.path."""
    argv, path = sys.argv, sys.path
    sys.argv, sys.path = [str(script)], [str(script.resolve().parent), *path]
    try:
        with ExitStack() as stack:
            to = sys.stderr
            if quiet:
                to = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123
                stack.enter_context(redirect_stderr(to))
            stack.enter_context(redirect_stdout(to))
            yield
    finally:
        sys.argv, sys.path = argv, path


def _failure(script: Path) -> str:
    """Run it; the sentence that says how it failed, or nothing."""
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as end:
        return f"{script} ended with exit code {end.code}" if end.code not in (None, 0) else ""
    except Exception as mistake:
        text = mistake.msg if isinstance(mistake, SyntaxError) else str(mistake)
        said = f"{type(mistake).__name__}: {text}" if text else type(mistake).__name__
        return f"{script} raised, {_place(script, mistake)}: {said}"
    return ""


def _place(script: Path, mistake: Exception) -> str:
    """The innermost line of the script itself."""
    if isinstance(mistake, SyntaxError) and mistake.filename == str(script):
        return f"line {mistake.lineno}"
    frames = traceback.extract_tb(mistake.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(script)]
    return f"line {lines[-1]}" if lines else "before its first line"


# Cycles


def cycles_table(run: Run, numbers: Parameters | None = None) -> list[dict[str, Any]]:
    """Where the cycles of a launch go: pipe by pipe, and on each the places of the kernel, the dearest first.

    Of the slowest block, as `run.cycles` is. `share` is of its total; pipes overlap, so shares need not add up to 1.
    """
    priced = run.priced(numbers)
    total = priced.total
    steps = max((block.steps for block in run.blocks), key=lambda those: max((s.end for s in those), default=0.0))
    told = []
    for pipe in LANES:
        sites = _sites(steps, pipe)
        if pipe == "S":
            sites += _issue(steps, numbers or parameters(run.target))
            sites.sort(key=lambda site: -site["cycles"])
        cycles = priced[pipe]
        told.append(
            {
                "pipe": pipe,
                "instructions": sum(site["count"] for site in sites if site["where"]),
                "cycles": cycles,
                "share": cycles / total if total else 0.0,
                "sites": sites,
            }
        )
    return told


def _issue(steps: Sequence[Step], numbers: Parameters) -> list[dict[str, Any]]:
    """What S spends on handing instructions to the other pipes."""
    count = sum(is_issued(step) for step in steps)
    return [{"where": "", "name": "issue", "cycles": count * issue(numbers), "count": count}] if count else []


def _sites(steps: Sequence[Step], pipe: str) -> list[dict[str, Any]]:
    """Each place whose instructions have work on a pipe; handshakes that cost nothing are no work."""
    cycles: dict[tuple[str, str], float] = defaultdict(float)
    numbers: dict[tuple[str, str], set[int]] = defaultdict(set)
    for step in steps:
        if NAMES[step.pipe] != pipe or (step.word in ("sync", "indices") and step.end == step.start):
            continue
        where = step.instruction.site
        key = (f"{where.file}:{where.line}", step.instruction.name)
        cycles[key] += step.end - step.start
        numbers[key].add(step.instruction.number)
    return [
        {"where": where, "name": name, "cycles": cycles[where, name], "count": len(numbers[where, name])}
        for where, name in sorted(cycles, key=lambda key: (-cycles[key], key))
    ]
