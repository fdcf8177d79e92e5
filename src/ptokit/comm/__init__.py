"""Ranks: TSCATTER, TGATHER and their family, over processes of this machine or over MPI."""

from ptokit.comm.ccu import CcuGate, register
from ptokit.comm.checking import check
from ptokit.comm.collectives import Collected, tbroadcast, tgather, tget, tput, treduce, tscatter
from ptokit.comm.faults import Peer, RankError, RankTimeout
from ptokit.comm.group import Group
from ptokit.comm.prices.pricing import price
from ptokit.comm.rank import Rank
from ptokit.comm.recording import Recording
from ptokit.comm.signals import tnotify, ttest, twait
from ptokit.comm.start import world
from ptokit.comm.tables.routing import Traffic
from ptokit.comm.tables.sharded import ShardedTable
from ptokit.comm.worlds import World, local

__all__ = [
    "CcuGate",
    "Collected",
    "Group",
    "Peer",
    "Rank",
    "RankError",
    "RankTimeout",
    "Recording",
    "ShardedTable",
    "Traffic",
    "World",
    "check",
    "local",
    "price",
    "register",
    "tbroadcast",
    "tgather",
    "tget",
    "tnotify",
    "tput",
    "treduce",
    "tscatter",
    "ttest",
    "twait",
    "world",
]
