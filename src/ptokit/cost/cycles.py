"""What single steps take, in cycles: transfers, vector and scalar instructions, flags, barriers, flushes."""

from __future__ import annotations

from ptokit.cost.parameters import Parameters
from ptokit.errors import PtoValueError, listed, nearest

GIB = 1 << 30
DIRECTIONS = {"load": "GM -> UB", "store": "UB -> GM"}
FLUSHES = {"dcci": "dcci_cycles", "dsb": "dsb_cycles"}
MEMORIES = {"ub": "ub_cycles", "gm_load": "gm_load_cycles", "gm_store": "gm_store_cycles"}


def transfer(parameters: Parameters, direction: str, bursts: int, burst_bytes: int) -> float:
    """A TLOAD or TSTORE of so many bursts: what passes before the first byte, then the bytes, then the gaps.

    In the saturating model one burst of n bytes takes `n / bandwidth(n)`, with the bandwidth at that size.

    >>> from ptokit.cost import parameters
    >>> round(transfer(parameters("a2a3"), "load", 1, 30_643) / transfer(parameters("a2a3"), "load", 1, 1), 3)
    2.0
    """
    if bursts < 0 or burst_bytes < 0:
        raise PtoValueError(f"{bursts} bursts of {burst_bytes} bytes; neither can be negative")
    start, rate = startup(parameters, direction), bytes_per_cycle(parameters, direction)
    if not bursts * burst_bytes:
        return 0.0
    return start + (bursts - 1) * parameters.dma.burst_cycles + bursts * burst_bytes / rate


def startup(parameters: Parameters, direction: str) -> float:
    """What passes before the first byte: half / peak in the saturating model, a parameter in the flat one."""
    if parameters.bandwidth.model == "flat":
        return parameters.dma.startup_cycles
    half = (parameters.bandwidth.load if direction == "load" else parameters.bandwidth.store).half_bytes
    return half / bytes_per_cycle(parameters, direction)


def bytes_per_cycle(parameters: Parameters, direction: str) -> float:
    """How fast bytes follow one another once they flow."""
    _known(direction, DIRECTIONS, "direction")
    link = parameters.bandwidth.load if direction == "load" else parameters.bandwidth.store
    speed = link.flat_gib_s if parameters.bandwidth.model == "flat" else link.peak_gib_s
    return speed * GIB / (parameters.clock.frequency_ghz * 1e9)


def issue(parameters: Parameters) -> float:
    """The scalar pipe sends one descriptor to a DMA pipe."""
    return parameters.dma.issue_cycles


def vector(parameters: Parameters, op: str, elements: int, itemsize: int) -> float:
    """One vector instruction; an `op` without a factor of its own costs what an addition does.

    >>> from ptokit.cost import parameters
    >>> vector(parameters("a2a3"), "tadd", 1024, 4)
    30.0
    """
    numbers = parameters.vector
    return numbers.issue_cycles + elements * itemsize / numbers.bytes_per_cycle * numbers.factor.get(op, 1.0)


def scalar(parameters: Parameters, accesses: int, memory: str = "ub") -> float:
    """So many accesses of the scalar pipe: to "ub", or to GM as "gm_load" or "gm_store"."""
    _known(memory, MEMORIES, "memory")
    cycles: float = getattr(parameters.scalar, MEMORIES[memory])
    return accesses * cycles


def flag(parameters: Parameters) -> float:
    """One set_flag / wait_flag pair, beside what it waits for."""
    return parameters.sync.flag_cycles


def barrier(parameters: Parameters) -> float:
    """One pipe_barrier, beside what it waits for."""
    return parameters.sync.barrier_cycles


def flush(parameters: Parameters, what: str) -> float:
    """A dcci (the whole data cache) or a dsb."""
    _known(what, FLUSHES, "what")
    cycles: float = getattr(parameters.sync, FLUSHES[what])
    return cycles


def _known(word: str, known: dict[str, str], keyword: str) -> None:
    if word not in known:
        raise PtoValueError(f"{keyword}={word!r} is unknown.{nearest(str(word), known)} Known: {listed(known)}")
