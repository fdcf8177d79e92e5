"""`pto.launch`: a plain Python function as a kernel on simulated cores."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from ptokit.access.plan import Machine
from ptokit.core.block import Block, BlockStopped
from ptokit.core.blocks import between_blocks
from ptokit.core.checks import Checks
from ptokit.core.gm import GlobalMemory
from ptokit.core.kernel import Core
from ptokit.core.limits import Meter, TimeUp, Watched, limit
from ptokit.core.listeners import announce
from ptokit.core.mutation import Applied, Mutation
from ptokit.core.order import Order
from ptokit.core.pipes import SCHEDULES, Sites
from ptokit.core.placement import MOST_USABLE, Landlord, judge_dyn_ub, ledger
from ptokit.core.run import Run
from ptokit.core.ub import BACKING, HOST_BACKING, UnifiedBuffer
from ptokit.dtypes import element_type
from ptokit.errors import PtoTypeError, PtoValueError, a_kind, listed, nearest, well_called
from ptokit.findings import Finding, Severity, in_order
from ptokit.targets import machine
from ptokit.tensors import GlobalTensor, whole

DISPATCHES = ("standard", "function")
MOST_BLOCKS = 4096
GARBAGE = 0xFF
"""What stands in the unified buffer before anybody wrote it, unless the schedule is the polite one."""

PLAIN = (int, float, str, bool, np.generic, type(None), tuple, list, dict)


@well_called
def launch(
    kernel: Callable[..., Any],
    *tensors: Any,
    target: str = "a5",
    blocks: int = 1,
    dyn_ub: int = 0,
    schedule: str = "late",
    seed: int = 0,
    dispatch: str = "standard",
    host_reads: object = None,
    checks: object = None,
    max_instructions: int | None = None,
    max_bytes: int | None = None,
    max_seconds: float | None = None,
    mutation: Mutation | None = None,
    memory: type[GlobalMemory] = GlobalMemory,
) -> Run:
    """Run a kernel, `kernel(k, *tensors)`, on the simulated cores of a target, and say all that is wrong with it.

    `schedule="late"` is the adversary: what no flag orders happens as late as it can. `"program"` is the polite order,
    `"random"` draws one (`seed`). Findings never raise; an exception of the kernel does, with the run so far as its
    attribute `ptokit_run`.

    >>> import numpy as np
    >>> import ptokit as pto
    >>> def double(k, x):
    ...     tile = k.tile("float32", 1, 8)
    ...     k.tload(tile, x)
    ...     k.set_flag("MTE2", "V", 0); k.wait_flag("MTE2", "V", 0)
    ...     k.tadd(tile, tile, tile)
    ...     k.set_flag("V", "MTE3", 0); k.wait_flag("V", "MTE3", 0)
    ...     k.tstore(x, tile)
    >>> x = np.arange(8, dtype=np.float32)
    >>> pto.launch(double, x, target="a2a3").findings, x.tolist()
    ([], [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0])
    """
    heard = announce(**locals())
    where = machine(target)
    order = _word(schedule, SCHEDULES, "schedule")
    way = _word(dispatch, DISPATCHES, "dispatch")
    count, asked = _within(blocks, "blocks", 1, MOST_BLOCKS), _within(dyn_ub, "dyn_ub", 0, 1 << 40)
    start = _within(seed, "seed", 0, 1 << 62)
    if not callable(kernel):
        raise PtoTypeError(f"kernel is {a_kind(kernel)}; a function of a core and its tensors is wanted")
    _takes(kernel, len(tensors))
    making = Checks.read(checks)
    limits = (
        limit(max_instructions, "max_instructions"),
        limit(max_bytes, "max_bytes"),
        limit(max_seconds, "max_seconds"),
    )

    given = [_tensor(one, number) for number, one in enumerate(tensors)]
    gm = memory([one for one in given if one is not None])
    on_device = [None if one is None else gm.place(one).tensor for one in given]
    arguments = [one if here is None else here for one, here in zip(tensors, on_device, strict=True)]
    read_back = _read_back(host_reads, kernel, tensors, given, gm)

    sites, meter = Sites(), Meter(where.name, *limits)  # type: ignore[arg-type]
    cores = [
        _block(number, where, gm, order, start + number, making, meter, sites, asked, read_back, way, mutation)
        for number in range(count)
    ]
    failed: BaseException | None = None
    for block in _in_turn(cores, order, start):
        try:
            with Watched(meter.seconds_left()):
                _refuse_lazy(kernel(Core(block, where, count), *arguments))
        except BlockStopped:
            pass
        except TimeUp:
            block.stopped = True
            block.tell(meter.out_of_time(block.instructions[-1] if block.instructions else None))
        except BaseException as mistake:
            block.stopped, failed = True, mistake
        if failed is not None or meter.is_exhausted:
            break
    for block in reversed(cores) if order == "late" else cores:
        block.finish()
    run = Run(
        target=where.name,
        findings=_findings(where, cores, asked, making),
        ub=ledger(where.name, max(cores, key=lambda one: max((t.end for t in one.ub.tiles), default=0)).ub, asked),
        blocks=cores,
        tensors=on_device,
        shapes=[_shape(one) for one in tensors],
        schedule=order,
        seed=start,
        kernel=getattr(kernel, "__name__", ""),
        names=_names(kernel, len(tensors)),
    )
    if failed is not None:
        with suppress(Exception):  # an exception that takes no attributes
            failed.ptokit_run = run  # type: ignore[attr-defined]
        raise failed
    for tell in heard:
        tell(run)
    return run


def _block(
    number: int,
    where: Machine,
    gm: GlobalMemory,
    order: str,
    seed: int,
    checks: Checks,
    meter: Meter,
    sites: Sites,
    dyn_ub: int,
    read_back: set[int],
    dispatch: str,
    mutation: Mutation | None,
) -> Block:
    polite = order == "program" or where.name == "cpu"
    ub = UnifiedBuffer(0 if polite else GARBAGE, HOST_BACKING if where.name == "cpu" else BACKING)
    return Block(
        number=number,
        target=where.name,
        ub=ub,
        gm=gm,
        schedule=SCHEDULES[order](seed),
        checks=checks,
        meter=meter,
        sites=sites,
        function_call=dispatch == "function",
        read_back=read_back,
        landlord=Landlord(where.name, ub, dyn_ub) if where.name != "cpu" else None,
        seed=seed if order == "random" else None,
        mutation=Applied(mutation, number) if mutation is not None else None,
    )


def _in_turn(cores: list[Block], order: str, seed: int) -> Iterable[Block]:
    """Blocks are issued one after the other; what they have under way lands when the schedule likes."""
    if order != "random":
        return cores
    chance = np.random.default_rng(seed)
    return [cores[int(number)] for number in chance.permutation(len(cores))]


def _findings(where: Machine, cores: list[Block], dyn_ub: int, checks: Checks) -> list[Finding]:
    told = judge_dyn_ub(where.name, dyn_ub) if checks.budget else []
    for block in cores:
        told += block.findings
        told += Order(block).findings()
        if checks.budget:
            told += _static_and_dynamic(block, dyn_ub)
    if checks.races and len(cores) > 1:
        told += between_blocks(where.name, cores)
    return in_order(_once(told))


def _static_and_dynamic(block: Block, dyn_ub: int) -> list[Finding]:
    """Static memory and what was asked for must fit together."""
    static = ledger(block.target, block.ub, dyn_ub).static
    if block.target != "a5" or not dyn_ub or dyn_ub > MOST_USABLE or static + dyn_ub <= MOST_USABLE:
        return []
    return [
        Finding(
            "PTO-M009",
            Severity.ERROR,
            block.target,
            f"dyn_ub={dyn_ub} beside {static} bytes of static tiles is more than the {MOST_USABLE} bytes that "
            "a program may use.",
            {"dyn_ub": dyn_ub, "static": static, "most": MOST_USABLE - static},
            None,
            f"Ask for {MOST_USABLE - static} at most, or place the tiles with at=.",
        )
    ]


SAID_ONCE = frozenset({"PTO-M005", "PTO-M006", "PTO-M007"})
"""Each tile of a loop has an address of its own, and the same to say."""


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """What several blocks, or rounds of a loop, have to say at one place is said once, with how often."""
    kept: dict[tuple[object, ...], Finding] = {}
    often: dict[tuple[object, ...], int] = {}
    for finding in findings:
        key = (finding.id, finding.where, "" if finding.id in SAID_ONCE else finding.message)
        kept.setdefault(key, finding)
        often[key] = often.get(key, 0) + 1
    return [
        one if often[key] == 1 else replace(one, facts={**one.facts, "occurrences": often[key]})
        for key, one in kept.items()
    ]


# What was given


def _takes(kernel: Callable[..., Any], count: int) -> None:
    """The kernel can be called with a core and so many arguments, and does its work when it is."""
    if inspect.isgeneratorfunction(kernel) or inspect.iscoroutinefunction(kernel) or inspect.isasyncgenfunction(kernel):
        raise PtoTypeError(
            f"{_name(kernel)} is a generator or a coroutine: calling it runs nothing; write a plain function"
        )
    with suppress(ValueError):  # a callable that does not say what it takes
        try:
            inspect.signature(kernel).bind(None, *range(count))
        except TypeError as unfit:
            raise PtoTypeError(f"{_name(kernel)} is called with a core and {count} arguments: {unfit}") from None


def _name(kernel: Callable[..., Any]) -> str:
    return str(getattr(kernel, "__name__", type(kernel).__name__))


def _refuse_lazy(result: object) -> None:
    if inspect.isgenerator(result) or inspect.iscoroutine(result):
        raise PtoTypeError("the kernel has returned a generator or a coroutine: nothing of it has run")


def _word(given: object, known: Iterable[str], what: str) -> str:
    names = list(known)
    if not isinstance(given, str):
        raise PtoTypeError(f"{what}={given!r} is {a_kind(given)}; known: {listed(names)}")
    if given.lower() not in names:
        raise PtoValueError(f"{what}={given!r} is unknown.{nearest(given, names)} Known: {listed(names)}")
    return given.lower()


def _within(given: object, what: str, least: int, most: int) -> int:
    number = whole(given, what)
    if not least <= number <= most:
        raise PtoValueError(f"{what}={number}; it lies between {least} and {most}")
    return number


def _tensor(given: object, number: int) -> GlobalTensor | None:
    """An argument as a tensor: an ndarray is a packed ND one, plain values pass as they are."""
    if isinstance(given, GlobalTensor):
        return given
    if isinstance(given, PLAIN) or callable(given):
        return None
    if not isinstance(given, np.ndarray):
        raise PtoTypeError(
            f"argument {number} of the kernel is {a_kind(given)}; an ndarray, a GlobalTensor or a plain value is wanted"
        )
    if given.ndim > 5:
        raise PtoValueError(f"argument {number} of the kernel has {given.ndim} dimensions; a tensor has 5 at most")
    shape = (1,) * (5 - given.ndim) + given.shape
    return GlobalTensor(given, element_type(given.dtype), shape)


def _shape(given: object) -> tuple[int, ...] | None:
    if isinstance(given, np.ndarray):
        return tuple(given.shape)
    if isinstance(given, GlobalTensor) and isinstance(given.buffer, np.ndarray):
        return tuple(given.buffer.shape)
    return None


def _read_back(
    host_reads: object,
    kernel: Callable[..., Any],
    tensors: Sequence[object],
    given: list[GlobalTensor | None],
    gm: GlobalMemory,
) -> set[int]:
    """The buffers of the tensors that the host reads: all, or those named by position, by parameter, or themselves."""
    if host_reads is None:
        return {buffer.number for buffer in gm.buffers}
    one_by_one = [host_reads] if isinstance(host_reads, (int, str, GlobalTensor, np.ndarray)) else host_reads
    if not isinstance(one_by_one, Iterable):
        raise PtoTypeError(f"host_reads={host_reads!r}; positions, names of parameters or the tensors are wanted")
    found = set()
    for one in one_by_one:
        tensor = given[_position(one, kernel, tensors)]
        if tensor is None:
            raise PtoValueError(f"host_reads: {one!r} is no tensor")
        found.add(gm.place(tensor).buffer.number)
    return found


def _names(kernel: Callable[..., Any], count: int) -> list[str]:
    """What the kernel calls its arguments; what it takes by `*args` has a number."""
    try:
        known = list(inspect.signature(kernel).parameters.values())[1:]
    except (TypeError, ValueError):  # a callable that does not say
        known = []
    names = [one.name for one in known if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD, one.KEYWORD_ONLY)]
    return [names[at] if at < len(names) else f"arg{at}" for at in range(count)]


def _position(one: object, kernel: Callable[..., Any], tensors: Sequence[object]) -> int:
    for number, tensor in enumerate(tensors):
        if tensor is one:
            return number
    if isinstance(one, str):
        names = _names(kernel, len(tensors))
        if one in names:
            return names.index(one)
        raise PtoValueError(
            f"host_reads: the kernel has no tensor {one!r}.{nearest(one, names)} It has {listed(names)}"
        )
    if isinstance(one, int) and not isinstance(one, bool) and 0 <= one < len(tensors):
        return one
    raise PtoValueError(f"host_reads: {one!r} is none of the {len(tensors)} arguments of the kernel")
