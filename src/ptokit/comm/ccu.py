"""The other engine of a5: a collective unit that moves the slices by itself, once every rank has registered and rung.

The host of each rank registers; its vector core rings the rank's own gate, by writing `mask | 1 << 63` to a slot. The
root's unit then writes (or, for a gather, reads) each rank's slice as flat bytes, and a barrier of all ends it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ptokit.comm.faults import RankError, RankTimeout, error, named
from ptokit.comm.group import Group
from ptokit.errors import PtoTypeError, PtoValueError, a_kind, well_called
from ptokit.tensors import whole

if TYPE_CHECKING:
    from ptokit.comm.collectives import Collected, Prepared

MASK_BITS = 16
RUNG = 1 << 63
SLOT_BYTES = 8


class CcuGate:
    """A rank's gate: the slot that its kernel waits on, and the mask of 16 bits that opens it.

    >>> hex(CcuGate(slot=0x1000, mask=0x3).word)
    '0x8000000000000003'
    """

    @well_called
    def __init__(self, slot: int, mask: int) -> None:
        self.slot, self.mask = whole(slot, "slot"), whole(mask, "mask")
        if self.slot <= 0 or self.slot % SLOT_BYTES or self.slot >= 1 << 64:
            raise PtoValueError(f"slot={self.slot:#x} is no address of a slot: it is above 0 and divisible by 8")
        if not 0 < self.mask < 1 << MASK_BITS:
            raise PtoValueError(f"mask={self.mask:#x}; a gate has 16 bits, and needs one at least")

    @property
    def word(self) -> int:
        """What is written to the slot to ring it."""
        return self.mask | RUNG

    def __repr__(self) -> str:
        return f"CcuGate(slot={self.slot:#x}, mask={self.mask:#x})"


@well_called
def register(group: Group, payload: int | None = None) -> None:
    """Register and launch the CCU's kernel for this group on this rank; every rank does it, before the collective.

    `payload` is what each rank gets, in bytes: that of the group's slices, where it is not given.
    """
    if not isinstance(group, Group):
        raise PtoTypeError(f"register: the group is {a_kind(group)}; make it with rank.group(...)")
    slice_bytes = group.slice_bytes
    told = slice_bytes if payload is None else whole(payload, "payload")
    if told < 0:
        raise PtoValueError(f"register: payload={told}; it is a number of bytes, {slice_bytes} for this group")
    transport = group.rank.transport
    transport.must_be_open()
    transport.store(transport.rank, transport.layout.window_registered(_slot(group)), 1 + told)


def _slot(group: Group) -> int:
    """Where the group stands on this rank's board."""
    return group.window.slots[group.rank.rank]


def on_ccu(prepared: Prepared, gate: CcuGate | None, stores_input: bool) -> Collected:
    """One rank's side of a collective on the CCU. Whoever forgets something is named, and nobody hangs."""
    group, op = prepared.group, prepared.call.op
    transport = group.rank.transport
    _must_have_gate(op, group, gate)
    if not transport.load(transport.rank, transport.layout.window_registered(_slot(group))):
        raise _unregistered(op, group, [transport.rank])
    if stores_input and (group.is_root or op == "tgather"):
        prepared.store_input()
    rung = transport.layout.window_rung(_slot(group))
    turn = transport.load(transport.rank, rung) + 1
    transport.store(transport.rank, rung, turn)
    if group.is_root:
        _all_registered(op, group)
    if op == "tgather":  # which, unlike a scatter, has a barrier before the data path
        _all_rung(op, group, turn)
    if group.is_root:
        prepared()
    _all_rung(op, group, turn)
    transport.barrier()
    return prepared.report


def _must_have_gate(op: str, group: Group, gate: object) -> None:
    if gate is None:
        raise error(
            "PTO-R051",
            f"{op}: {group.rank.peers[group.rank.rank]} has no gate to ring; its kernel would wait for ever.",
            rank=group.rank.rank,
        )
    if not isinstance(gate, CcuGate):
        raise PtoTypeError(f"{op}: gate is {a_kind(gate)}; a CcuGate(slot, mask) is wanted")


def _all_registered(op: str, group: Group) -> None:
    """The root's unit reaches every rank's kernel, and all of them mean the same."""
    transport = group.rank.transport
    words = [transport.layout.window_registered(slot) for slot in group.window.slots]

    def missing() -> list[int]:
        return [rank for rank, word in enumerate(words) if not transport.load(rank, word)]

    _await(group, missing, f"the registration of {op}", lambda ranks: _unregistered(op, group, ranks))
    told = [transport.load(rank, word) - 1 for rank, word in enumerate(words)]
    others = [rank for rank, one in enumerate(told) if one != told[transport.rank]]
    if others:
        said = named([f"{group.rank.peers[rank]} {told[rank]}" for rank in others])
        raise error(
            "PTO-R052",
            f"{op}: {group.rank.peers[transport.rank]} has registered a payload of {told[transport.rank]} bytes, "
            f"{said}.",
            ranks=others,
            payloads=told,
        )
    wanted = group.slice_bytes
    if told[transport.rank] != wanted:
        raise error(
            "PTO-R052",
            f"{op}: {group.rank.peers[transport.rank]} and all others have registered a payload of "
            f"{told[transport.rank]} bytes, and a slice has {wanted}.",
            ranks=list(range(group.size)),
            payloads=told,
        )


def _all_rung(op: str, group: Group, turn: int) -> None:
    transport = group.rank.transport
    words = [transport.layout.window_rung(slot) for slot in group.window.slots]

    def missing() -> list[int]:
        return [rank for rank, word in enumerate(words) if transport.load(rank, word) < turn]

    def never(ranks: list[int]) -> RankError:
        return error(
            "PTO-R051",
            f"{op}: the gate of {named([group.rank.peers[rank] for rank in ranks])} was never rung, and "
            f"{group.rank.peers[transport.rank]} has waited for it.",
            ranks=ranks,
        )

    _await(group, missing, f"the gates of {op}", never)


def _await(group: Group, missing: Callable[[], list[int]], what: str, never: Callable[[list[int]], RankError]) -> None:
    transport = group.rank.transport

    def left() -> list[int]:
        ranks = missing()
        if any(transport.is_elsewhere(rank) for rank in ranks):
            # Who is at a call that all make together never comes here, unless it came before it went there.
            lost = [rank for rank in missing() if transport.is_elsewhere(rank)]
            if lost:
                raise never(lost)
        return ranks

    try:
        transport.await_ranks(left, what)
    except RankError as late:
        facts = late.findings[0].facts
        ranks = facts.get("left") or (facts["missing"] if isinstance(late, RankTimeout) else [])
        if late.is_echo or not ranks:
            raise
        raise never(ranks) from None


def _unregistered(op: str, group: Group, ranks: list[int]) -> RankError:
    peers = named([group.rank.peers[rank] for rank in ranks])
    verb = "has" if len(ranks) == 1 else "have"
    return error("PTO-R050", f"{op}: {peers} {verb} not registered with the CCU.", ranks=ranks)
