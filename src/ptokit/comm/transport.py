"""What every engine offers, and what is the same on all: meeting, exchanging, waiting, noticing who is gone.

An engine brings ranks together, gives each a board (memory that the others can write to, below) and makes memory
reachable. Everything else stands here, once, and no wait in it is without an end.
"""

from __future__ import annotations

import math
import os
import pickle
import socket
import struct
import threading
import time
import zlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ptokit.comm.faults import Peer, RankError, RankValueError, error, named
from ptokit.comm.recording import WAITS, Recorder
from ptokit.comm.words import WORD, Bytes, address_of
from ptokit.errors import PtoIndexError, PtoValueError

SLOT_BYTES = 2048
"""Of one message; longer ones go in several."""
TEXT_BYTES = 2048
WINDOWS = 2048
WINDOW_WORDS = 4
SIGNALS = 1024
HERE, LEFT, FAILED = 1, 2, 3

DEFAULT_TIMEOUT = 30.0
TIMEOUT_NAME = "PTOKIT_COMM_TIMEOUT"


@dataclass(frozen=True)
class Layout:
    """Where things stand on a board, in words of 8 bytes; a board is zero when its rank begins."""

    size: int

    STATE = 0
    PID = 1
    FAILURE = 2
    """0, or 1 + the rank that failed; below 0 while somebody is still writing the text."""
    TEXT_LENGTH = 3
    TEXT = 4
    WINDOW = TEXT + TEXT_BYTES // WORD
    SIGNAL = WINDOW + WINDOW_WORDS * WINDOWS
    INBOX = SIGNAL + SIGNALS

    @property
    def nbytes(self) -> int:
        """Of a board, on whole pages."""
        words = self.INBOX + 2 * self.size * self.slot_words
        return -(-words * WORD // 4096) * 4096

    @property
    def slot_words(self) -> int:
        """A message: its number, its length, its subject, its bytes."""
        return 3 + SLOT_BYTES // WORD

    def inbox(self, turn: int, sender: int) -> int:
        """The word at which the message of a sender begins; messages alternate between two places."""
        return self.INBOX + ((turn % 2) * self.size + sender) * self.slot_words

    def window_state(self, slot: int) -> int:
        """Which window has this place on the board, and whether it is live or freed."""
        return self.WINDOW + WINDOW_WORDS * slot

    def window_busy(self, slot: int) -> int:
        """0, or 1 + the root that writes to it just now; always the word behind the state."""
        return self.window_state(slot) + 1

    def window_registered(self, slot: int) -> int:
        """0, or what the rank has registered with the CCU."""
        return self.window_state(slot) + 2

    def window_rung(self, slot: int) -> int:
        """How often the rank has rung its gate."""
        return self.window_state(slot) + 3


class Reach(Protocol):
    """The memory that a rank has registered, as another rank can reach it."""

    @property
    def view(self) -> Bytes | None:
        """The memory itself, where this rank sees it directly."""

    def put(self, offset: int, data: Bytes) -> None:
        """Write there; it has arrived after `fence`."""

    def get(self, offset: int, out: Bytes) -> None:
        """Read from there."""

    def put_runs(self, offsets: Any, length: int, data: Bytes) -> None:
        """Runs of equal length, one after the other in `data`."""

    def get_runs(self, offsets: Any, length: int, out: Bytes) -> None:
        """The reverse."""


def live(number: int) -> int:
    """What stands on a board as the state of a window that is registered; its place may have been another's before."""
    return 2 * number + 1


def freed(number: int) -> int:
    """The same of a window that its rank has given back."""
    return live(number) + 1


@dataclass(frozen=True)
class Claim:
    """A place on a rank's board that says who writes to some memory of that rank."""

    rank: int
    slot: int
    number: int
    """The window that has this place."""
    is_own: bool
    """Of the window itself; else of another one over the same memory, which may be freed by now."""


@dataclass(eq=False)
class Window:
    """Memory that every rank has registered: each its own, all in one call."""

    transport: Transport
    number: int
    local: Bytes
    reaches: list[Reach]
    sizes: list[int]
    slots: list[int]
    """Where the window stands on each rank's board."""
    claims: list[Claim]
    """What whoever writes to it holds meanwhile."""
    owner: object = None
    """Keeps the caller's memory alive."""
    is_freed: bool = False

    def view(self, rank: int) -> Bytes | None:
        """The memory of a rank, where it can be seen directly."""
        return self.reaches[rank].view

    def put(self, rank: int, offset: int, data: Bytes) -> None:
        """Write bytes into a rank's memory; they have arrived after `transport.fence()`."""
        self.check(rank, offset, data.nbytes)
        self.reaches[rank].put(offset, data)

    def get(self, rank: int, offset: int, out: Bytes) -> None:
        """Read bytes of a rank's memory."""
        self.check(rank, offset, out.nbytes)
        self.reaches[rank].get(offset, out)

    def check(self, rank: int, offset: int, nbytes: int) -> None:
        """A put or get stays within what the rank has registered, and has not freed; no engine looks at that."""
        if not 0 <= rank < len(self.sizes):
            raise PtoIndexError(f"rank {rank} is none of the {len(self.sizes)} ranks")
        if offset < 0 or nbytes < 0 or offset + nbytes > self.sizes[rank]:
            peer = self.transport.peers[rank]
            raise error(
                "PTO-R038",
                f"bytes {offset} to {offset + nbytes} of {peer} were asked for, which has registered "
                f"{self.sizes[rank]} bytes.",
                rank=rank,
                offset=offset,
                nbytes=nbytes,
                registered=self.sizes[rank],
            )
        self.must_be_live(rank)

    def must_be_live(self, rank: int) -> None:
        """The rank still has this memory registered."""
        if self.transport.load(rank, self.transport.layout.window_state(self.slots[rank])) != live(self.number):
            raise error(
                "PTO-R036",
                f"{self.transport.peers[rank]} has freed this memory already, and "
                f"{self.transport.peers[self.transport.rank]} still uses it.",
                rank=rank,
            )

    def free(self) -> None:
        """This rank gives its memory back; whoever uses it from now on is told."""
        if not self.is_freed:
            self.is_freed = True
            transport, slot = self.transport, self.slots[self.transport.rank]
            transport.store(transport.rank, transport.layout.window_state(slot), freed(self.number))
            transport.live.pop(self.number, None)
            transport.free_slots.append(slot)
            self.owner = None

    @cached_property
    def span(self) -> tuple[int, int]:
        """The addresses of this rank's memory in it."""
        start = address_of(self.local)
        return start, start + self.local.nbytes

    def overlaps(self, low: int, high: int) -> bool:
        """This rank's memory in it has bytes at these addresses."""
        return self.span[0] < high and low < self.span[1]


class Transport(ABC):
    """The engine of one rank. `peers` says who the others are; every wait ends within `timeout` seconds."""

    engine: str
    ends_by_signal = False
    """Somebody outside ends this process by a signal where another rank fails."""

    def __init__(self, rank: int, size: int, timeout: float | None = None) -> None:
        self.rank, self.size = rank, size
        self.timeout = default_timeout() if timeout is None else timeout
        self.layout = Layout(size)
        self.peers = [Peer(number, socket.gethostname(), 0) for number in range(size)]
        self.turn = 0
        self.windows = 0
        self.free_slots = deque(range(WINDOWS))
        """Places for windows on this rank's board; the one that has been free for longest is taken next."""
        self.is_closed = False
        self.lock = threading.RLock()
        self.landing: Window | None = None
        self.recorder: Recorder | None = None
        self.live: dict[int, Window] = {}
        """What is registered is kept: another rank may write there at any time."""

    # What an engine brings

    @abstractmethod
    def load(self, rank: int, word: int) -> int:
        """A word of a rank's board."""

    @abstractmethod
    def store(self, rank: int, word: int, value: int) -> None:
        """Write it, after everything that this rank has written to that board before."""

    @abstractmethod
    def add(self, rank: int, word: int, value: int) -> int:
        """Add to it; return what stood there before."""

    @abstractmethod
    def exchange_word(self, rank: int, word: int, expected: int, value: int) -> int:
        """Write `value` where `expected` stands; return what stood there."""

    @abstractmethod
    def write(self, rank: int, word: int, data: bytes) -> None:
        """Bytes onto a rank's board, from a word on."""

    @abstractmethod
    def read_own(self, word: int, nbytes: int) -> bytes:
        """Bytes of this rank's own board."""

    @abstractmethod
    def register(self, memory: Bytes) -> list[Reach]:
        """Make memory reachable, on every rank at once."""

    @abstractmethod
    def shared(self, nbytes: int) -> Bytes:
        """New memory, zeroed, which the ranks of this machine see directly once it is registered. Not collective."""

    @abstractmethod
    def fence(self) -> None:
        """Everything that this rank has put has arrived."""

    def deliver(self, ranks: Sequence[int], word: int, data: bytes, number: int) -> None:
        """A message onto the boards of ranks: its bytes behind a word, and then its number into the word."""
        for rank in ranks:
            self.write(rank, word + 1, data)
            self.store(rank, word, number)

    def status(self, rank: int) -> str:
        """What is known of a rank that does not come: "", or "is stopped", "is gone" ..."""
        peer = self.peers[rank]
        if not peer.pid or peer.host != socket.gethostname() or peer.pid == os.getpid():
            return ""
        return process_status(peer.pid)

    # Meeting

    def begin(self) -> None:
        """Say who this rank is, and learn who the others are."""
        self.peers[self.rank] = Peer(self.rank, socket.gethostname(), os.getpid())
        self.store(self.rank, Layout.PID, os.getpid())
        self.store(self.rank, Layout.STATE, HERE)
        self.peers = self.exchange(self.peers[self.rank], "the start")

    def exchange(self, value: Any, what: str = "exchange", timeout: float | None = None) -> list[Any]:
        """The values of all ranks, in their order, on every rank."""
        with self.lock:
            packed = pickle.dumps(value)
            parts = [b""] * self.size
            start, most = 0, 1
            while start < most:
                pieces, most = self._round(packed, start, what, timeout)
                parts = [so_far + piece for so_far, piece in zip(parts, pieces, strict=True)]
                start += SLOT_BYTES
            return [pickle.loads(part) for part in parts]

    def barrier(self, timeout: float | None = None) -> None:
        """Go on when every rank has come."""
        self.fence()
        with self.lock:
            self._round(b"", 0, "barrier", timeout)

    def _round(self, message: bytes, start: int, what: str, timeout: float | None) -> tuple[list[bytes], int]:
        """One piece from each to each, and how long the longest message is.

        Two places for each sender suffice: who sends the next but one has seen that everybody has read this one.
        """
        self.must_be_open()
        turn = self.turn
        self.turn += 1
        subject = zlib.crc32(what.encode())
        head = struct.pack("<qq", len(message), subject)
        piece = head + message[start : start + SLOT_BYTES]
        self.deliver(self._from_here_on(), self.layout.inbox(turn, self.rank), piece, turn + 1)
        inboxes = [self.layout.inbox(turn, sender) for sender in range(self.size)]
        self.await_ranks(
            lambda: [rank for rank, at in enumerate(inboxes) if self.load(self.rank, at) <= turn], what, timeout
        )
        self._in_step(inboxes, turn, what)
        self._one_subject(inboxes, subject, what)
        lengths = [self.load(self.rank, at + 1) for at in inboxes]
        pieces = [
            self.read_own(at + 3, max(0, min(length - start, SLOT_BYTES)))
            for at, length in zip(inboxes, lengths, strict=True)
        ]
        self._in_step(inboxes, turn, what)
        return pieces, max(lengths)

    def is_elsewhere(self, rank: int) -> bool:
        """The rank waits at the next call that all make together, where this one is not yet."""
        return self.load(self.rank, self.layout.inbox(self.turn, rank)) == self.turn + 1

    def _in_step(self, inboxes: Sequence[int], turn: int, what: str) -> None:
        """Nobody has given up on this meeting and sent what belongs to a later one into the same place."""
        ahead = [rank for rank, at in enumerate(inboxes) if self.load(self.rank, at) != turn + 1]
        if ahead:
            raise error(
                "PTO-R040",
                f"{self.peers[self.rank]} is at {what}, which {named([self.peers[rank] for rank in ahead])} "
                f"{'has' if len(ahead) == 1 else 'have'} given up and gone on from.",
                rank=self.rank,
                others=ahead,
                at=what,
            )

    def _from_here_on(self) -> list[int]:
        """The ranks, beginning with this one, so that not all write to the same board at once."""
        return [(self.rank + step) % self.size for step in range(self.size)]

    def _one_subject(self, expected: Sequence[int], subject: int, what: str) -> None:
        others = [rank for rank, at in enumerate(expected) if self.load(self.rank, at + 2) != subject]
        if others:
            raise error(
                "PTO-R040",
                f"{self.peers[self.rank]} is at {what}, while {named([self.peers[r] for r in others])} "
                f"{'is' if len(others) == 1 else 'are'} at another call that all ranks make together.",
                rank=self.rank,
                others=others,
                at=what,
            )

    # Waiting

    def await_ranks(
        self, missing: Callable[[], list[int]], what: str, timeout: float | None = None, *, any_of: bool = False
    ) -> None:
        """Wait until no rank is missing; end with an error that names those who are, or the one that failed.

        Where `any_of` the missing could bring it, it is over when all of them are gone.
        """
        limit = self.timeout if timeout is None else timeout
        pause, begun = Pause(), time.monotonic()
        start = self.recorder.now() if self.recorder else 0
        looked = begun
        while True:
            left = missing()
            if not left:
                if self.recorder:
                    self.recorder.span(WAITS, what, start)
                return
            self.must_be_well()
            now = time.monotonic()
            if now - looked > 0.05:
                looked = now
                self._must_be_there(missing, what, any_of)
            if now - begun > limit:
                raise self._nobody_came(left, what, limit)
            pause()

    def has_been_told(self) -> bool:
        """Another rank has failed, and has said so."""
        return self.load(self.rank, Layout.FAILURE) > 0

    def must_be_well(self) -> None:
        """No rank has failed, as far as this one has been told."""
        failed = self.load(self.rank, Layout.FAILURE)
        if failed > 0:
            length = self.load(self.rank, Layout.TEXT_LENGTH)
            told: RankError = pickle.loads(self.read_own(Layout.TEXT, length))
            told.is_echo = True
            raise told

    def _must_be_there(self, missing: Callable[[], list[int]], what: str, any_of: bool) -> None:
        """Who is waited for can still come."""
        ways = {rank: how for rank in missing() if (how := self._way_out(rank))}
        left = missing()  # who has left may have brought it before
        gone = [rank for rank in left if rank in ways]
        if not gone or (any_of and len(gone) < len(left)) or self.load(self.rank, Layout.FAILURE):
            return
        peers = named([f"{self.peers[rank]} {ways[rank]}" for rank in gone])
        raise error(
            "PTO-R030",
            f"{peers}; {self.peers[self.rank]} was waiting at {what}.",
            ranks=gone,
            left=[rank for rank in gone if ways[rank] != GONE],
            at=what,
            rank=self.rank,
        )

    def _way_out(self, rank: int) -> str:
        seen = self.status(rank)
        return "has ended without coming" if self.load(rank, Layout.STATE) == LEFT else seen if seen == GONE else ""

    def _nobody_came(self, left: Sequence[int], what: str, limit: float) -> RankError:
        said = [f"{self.peers[rank]}{', which ' + how if (how := self.status(rank)) else ''}" for rank in left]
        return error(
            "PTO-R032",
            f"{self.peers[self.rank]} has waited {limit:g} s at {what} for {named(said)}.",
            rank=self.rank,
            missing=list(left),
            at=what,
            seconds=limit,
        )

    # Moving

    def window(self, memory: Bytes, owner: object = None) -> Window:
        """Register memory of each rank, on all ranks at once."""
        with self.lock:
            number = self.windows
            self.windows += 1
            slot = self._place(number)
            low = address_of(memory)
            over = [one for one in list(self.live.values()) if one.overlaps(low, low + memory.nbytes)]
            others = [(one.slots[self.rank], one.number) for one in over]
            told = self.exchange((memory.nbytes, slot, others), "the registration of memory")
            sizes, slots = ([one[k] for one in told] for k in range(2))
            self._all_have_places(slots)
            claims = [Claim(rank, at, number, True) for rank, at in enumerate(slots)]
            claims += [Claim(rank, at, of, False) for rank, one in enumerate(told) for at, of in one[2]]
            found = Window(self, number, memory, self.register(memory), sizes, slots, claims, owner)
            self.live[number] = found
            self.barrier()  # nobody lets go of memory that another is about to open
            return found

    def _place(self, number: int) -> int:
        """A place for a window on this rank's board, or -1."""
        if not self.free_slots:
            return -1
        slot = self.free_slots.popleft()
        for word in (self.layout.window_busy, self.layout.window_registered, self.layout.window_rung):
            self.store(self.rank, word(slot), 0)
        self.store(self.rank, self.layout.window_state(slot), live(number))
        return slot

    def _all_have_places(self, slots: Sequence[int]) -> None:
        full = [self.peers[rank] for rank, slot in enumerate(slots) if slot < 0]
        if full:
            if slots[self.rank] >= 0:
                self.free_slots.append(slots[self.rank])
            raise RankValueError(
                f"{named(full)} {'has' if len(full) == 1 else 'have'} memory registered {WINDOWS} times, which is the "
                "most: call group.free() on every rank when a group is no longer used"
            )

    def alltoallv(self, parts: Sequence[Bytes]) -> list[Bytes]:
        """`parts[r]` goes to rank r; what the ranks have sent here, in their order."""
        if len(parts) != self.size:
            raise PtoValueError(f"{len(parts)} parts for {self.size} ranks; one for each is wanted, empty or not")
        with self.lock:
            counts = self.exchange([part.nbytes for part in parts], "alltoallv")
            arriving = [counts[sender][self.rank] for sender in range(self.size)]
            landing = self._landing(max(sum(row[rank] for row in counts) for rank in range(self.size)))
            for rank in self._from_here_on():
                start = sum(counts[sender][rank] for sender in range(self.rank))
                if parts[rank].nbytes:
                    landing.put(rank, start, np.ascontiguousarray(parts[rank]).reshape(-1).view(np.uint8))
            self.barrier()
            starts = np.cumsum([0, *arriving])
            return [landing.local[starts[k] : starts[k + 1]].copy() for k in range(self.size)]

    def _landing(self, most: int) -> Window:
        """Memory where parts arrive. Every rank knows what every other gets, so all grow theirs in the same call."""
        if self.landing is None or self.landing.local.nbytes < most:
            if self.landing is not None:
                self.landing.free()
            self.landing = self.window(self.shared(1 << max(16, math.ceil(math.log2(most + 1)))))
        return self.landing

    # Signals

    def notify(self, rank: int, signal: int, value: int = 1, *, adds: bool = False) -> None:
        """Set a signal of a rank, or add to it; what was put there before has arrived then."""
        start = self.recorder.now() if self.recorder else 0
        self.fence()
        if adds:
            self.add(rank, self.signal(signal), value)
        else:
            self.store(rank, self.signal(signal), value)
        if self.recorder:
            self.recorder.notified(rank, signal, start, value)

    def test(self, signal: int, holds: Callable[[int], bool]) -> bool:
        """Whether this rank's own signal is as wanted."""
        self.must_be_well()
        return holds(self._seen(self.signal(signal)))

    def wait(self, signal: int, holds: Callable[[int], bool], timeout: float | None = None) -> int:
        """Wait until this rank's own signal is as wanted; return it."""
        others = [rank for rank in range(self.size) if rank != self.rank]
        word = self.signal(signal)
        self.await_ranks(
            lambda: [] if holds(self._seen(word)) else others or [self.rank],
            f"signal {signal}",
            timeout,
            any_of=True,
        )
        return self._seen(word)

    def _seen(self, word: int) -> int:
        """A signal of this rank: 32 bits with a sign, whatever was added up in its word."""
        low = 1 << 31
        return (self.load(self.rank, word) + low) % (2 * low) - low

    @staticmethod
    def signal(number: int) -> int:
        """The word of a signal."""
        if not 0 <= number < SIGNALS:
            raise PtoIndexError(f"signal {number} does not exist; there are 0 to {SIGNALS - 1}")
        return Layout.SIGNAL + number

    # The end

    def abort(self, failed: RankError) -> None:
        """Tell every rank that this one has failed; the first to say so is heard."""
        with suppress(Exception):
            self.store(self.rank, Layout.STATE, FAILED)
        text = packed_error(failed)
        for rank in range(self.size):
            with suppress(Exception):  # a rank that is gone needs no word
                tell(self, rank, self.rank, text)

    def leave(self, has_failed: bool) -> None:
        """The process of this rank ends."""
        if not has_failed:
            self.linger()
            self.close()

    def what_failed(self) -> str:
        """Which rank has failed and how, as far as this one has been told or can see; "" where all is well."""
        try:
            self.must_be_well()
        except RankError as told:
            return str(told)
        gone = [str(peer) for peer in self.peers if self.status(peer.rank) == GONE]
        return str(error("PTO-R030", f"{named(gone)} {'is' if len(gone) == 1 else 'are'} gone.")) if gone else ""

    def close(self) -> None:
        """This rank is done with the others."""
        if not self.is_closed:
            self.is_closed = True
            with suppress(Exception):
                self.store(self.rank, Layout.STATE, LEFT)

    def linger(self) -> None:
        """This rank has nothing more to do, and keeps its memory for the others until they have nothing more either."""
        self.store(self.rank, Layout.STATE, LEFT)
        pause = Pause(most=5e-3)
        while not self.load(self.rank, Layout.FAILURE) and any(self._is_at_work(rank) for rank in range(self.size)):
            pause()

    def _is_at_work(self, rank: int) -> bool:
        return self.load(rank, Layout.STATE) in (0, HERE) and self.status(rank) != GONE

    def must_be_open(self) -> None:
        """The engine has not been closed."""
        if self.is_closed:
            raise PtoValueError(f"{self.peers[self.rank]}: this world has been closed")


class Telling(Protocol):
    """What it takes to write onto a board."""

    def exchange_word(self, rank: int, word: int, expected: int, value: int) -> int:
        """As an engine does it."""

    def store(self, rank: int, word: int, value: int) -> None:
        """As an engine does it."""

    def write(self, rank: int, word: int, data: bytes) -> None:
        """As an engine does it."""


def tell(boards: Telling, rank: int, failed: int, text: bytes) -> None:
    """Write onto a rank's board that another has failed, unless somebody was first."""
    mine = -(failed + 1)
    # A rank that has died while it wrote its own text has left its mark there: it is told of in its place.
    if boards.exchange_word(rank, Layout.FAILURE, 0, mine) in (0, mine):
        boards.write(rank, Layout.TEXT, text)
        boards.store(rank, Layout.TEXT_LENGTH, len(text))
        boards.store(rank, Layout.FAILURE, failed + 1)


def packed_error(failed: RankError) -> bytes:
    """An error as a board has room for it: shortened where it is long, down to its first finding and who it is of."""
    text, findings = str(failed), failed.findings
    for room in (TEXT_BYTES, TEXT_BYTES // 4, 200):
        packed = pickle.dumps(RankError(text, findings))
        if len(packed) <= TEXT_BYTES:
            return packed
        text = shortened(text, room)
        findings = [
            replace(one, message=shortened(one.message, room), facts={"rank": one.facts.get("rank")})
            for one in findings[:1]
        ]
    return pickle.dumps(RankError(shortened(text, 200)))


def shortened(text: str, room: int) -> str:
    """The beginning of a long text."""
    return text if len(text) <= room else f"{text[:room]} ..."


GONE = "is gone"
STATES = {"T": "is stopped", "t": "is stopped by a debugger", "Z": GONE, "X": GONE}


def process_status(pid: int) -> str:
    """What the system says of a process of this machine."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return GONE if Path("/proc/self/stat").exists() else ""
    except OSError:
        return ""
    return STATES.get(line.rpartition(")")[2].split()[0], "")


@dataclass
class Pause:
    """Longer and longer: first a look again at once, then a short sleep, so that waiting costs no processor."""

    spins: int = 20
    seconds: float = 20e-6
    most: float = 1e-3
    _done: int = field(default=0)

    def __call__(self) -> None:
        """Pause once."""
        self._done += 1
        if self._done <= self.spins:
            time.sleep(0)
            return
        time.sleep(self.seconds)
        self.seconds = min(self.seconds * 1.5, self.most)


def default_timeout() -> float:
    """The seconds after which a wait ends: `PTOKIT_COMM_TIMEOUT`, or 30."""
    return seconds(os.environ.get(TIMEOUT_NAME, DEFAULT_TIMEOUT), TIMEOUT_NAME)


def seconds(given: object, what: str) -> float:
    """A positive number of seconds."""
    try:
        number = float(given)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise PtoValueError(f"{what}={given!r}; a number of seconds is wanted") from None
    if not 0 < number < 1e9:
        raise PtoValueError(f"{what}={given!r}; a number of seconds above 0 is wanted")
    return number
