"""Ranks: TSCATTER, TGATHER and their family, over processes of this machine or over MPI."""

from ptokit.comm.checking import check
from ptokit.comm.faults import Peer, RankError, RankTimeout
from ptokit.comm.group import Group
from ptokit.comm.pricing import price
from ptokit.comm.rank import Rank
from ptokit.comm.world import World, local

__all__ = ["Group", "Peer", "Rank", "RankError", "RankTimeout", "World", "check", "local", "price"]
