"""Where the tiles of a kernel lie: the unified buffer and the ledger of the simulated core, and nothing else."""

from __future__ import annotations

from ptokit.core.pipes import Site
from ptokit.core.placement import KIB, SIZE, Landlord, Ledger, ledger
from ptokit.core.ub import NoRoomError, UbTile, UnifiedBuffer
from ptokit.findings import Finding
from ptokit.ir.cpp.types import ITEMSIZE
from ptokit.ir.dialect.types import TileBufType

MOST = 256 * KIB
"""No memory on a chip is larger."""


class Places:
    """The tiles of one kernel, placed in the order in which it allocates them."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.memories: dict[str, UnifiedBuffer] = {}
        self.findings: list[Finding] = []

    def place(self, name: str, type_: TileBufType, at: int | None = None) -> tuple[int, UbTile] | None:
        """The address of a new tile: the one that is asked for, else the lowest that is free; None without room."""
        size = ITEMSIZE.get(type_.dtype, 1)
        if type_.rows * type_.cols * size > MOST:
            return None
        memory = self.memories.setdefault(type_.loc, UnifiedBuffer(0))
        # The address depends on nothing but the bytes: types without a NumPy dtype are placed as others of their size.
        wide = max(size // 4, 1)
        site = Site(None, 0, name, 0)
        made = UbTile(memory, site, name, f"uint{8 * min(size, 4)}", type_.rows, type_.cols * wide)
        try:
            memory.add(made, at)
        except NoRoomError:
            return None
        self._judge(made)
        return made.address, made

    def move(self, tile: UbTile, address: int) -> bool:
        """TASSIGN of a tile that has a place already; false where nothing can lie there."""
        try:
            tile.ub.place(tile, address, manual=True)
        except NoRoomError:
            return False
        self._judge(tile)
        return True

    def _judge(self, tile: UbTile) -> None:
        # In C++ every address is written out with TASSIGN: to the compiler nothing is static.
        tile.is_manual = True
        vec = self.memories.get("vec")
        if tile.ub is vec and self.target in SIZE:
            told = Landlord(self.target, vec, 0).judge(tile, tile.site)
            self.findings += [finding for finding in told if finding.id != "PTO-M007"]

    @property
    def ledger(self) -> Ledger | None:
        """The budget of the unified buffer; None where nothing lies in it."""
        vec = self.memories.get("vec")
        return None if vec is None else ledger(self.target, vec, 0)
