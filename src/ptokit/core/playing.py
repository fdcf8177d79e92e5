"""What the player of a program that is no Python source asks of a core beside its instructions."""

from __future__ import annotations

from ptokit.access.plan import Array
from ptokit.core.kernel import Core
from ptokit.core.pipes import S, Site
from ptokit.core.ub import UbTile, touch
from ptokit.dtypes import convert
from ptokit.errors import PtoValueError
from ptokit.findings import Finding


def stand_at(core: Core, site: Site | None) -> None:
    """What comes next stands there, and not where Python is."""
    core._block.sites.fixed = site


def hold(core: Core, tile: UbTile, values: Array) -> None:
    """The tile is an argument: it holds these values, and everything that comes next knows of it."""
    if values.shape != tile.valid:
        raise PtoValueError(f"values of shape {values.shape} for {tile!r}, whose valid region is {tile.valid}")
    block, stored = core._block, convert(values, tile.dtype)
    one = block.instruction("argument", S, (tile,))

    def work() -> None:
        tile.storage[tile.valid_offsets()] = stored
        block.spoil(tile.address, tile.end)

    block.mover(S, one, work, [touch(tile, writes=True)], None)
    block.wrote(one, tile)


def tell(core: Core, finding: Finding) -> None:
    """The player has something to say itself."""
    core._block.tell(finding)
