"""Every op of the dialect, by its class."""

from __future__ import annotations

from xdsl.ir import Operation

from ptokit.ir.dialect.base import INDEX, SEGMENTS, DpsOp, PtoOp, other_form
from ptokit.ir.dialect.collectives import CommOp, CommTBroadcastOp, CommTGatherOp, CommTReduceOp, CommTScatterOp
from ptokit.ir.dialect.indexed import MGatherOp, MScatterOp, coalesce_of
from ptokit.ir.dialect.moves import TLoadOp, TStoreOp
from ptokit.ir.dialect.order import (
    BarrierOp,
    BarrierSyncOp,
    RecordEventOp,
    SectionCubeOp,
    SectionVectorOp,
    SetFlagDynOp,
    SetFlagOp,
    TSyncOp,
    WaitEventOp,
    WaitFlagDynOp,
    WaitFlagOp,
)
from ptokit.ir.dialect.ours import ArgOp, DcciOp, DsbOp, SkippedOp
from ptokit.ir.dialect.scalars import AddPtrOp, GetBlockIdxOp, GetBlockNumOp, LoadScalarOp, StoreScalarOp
from ptokit.ir.dialect.tiles import AllocTileOp, SetValidShapeOp, TAssignOp
from ptokit.ir.dialect.vector import MODES, VECTOR_OPS, TScatterOp, VectorFamilyOp
from ptokit.ir.dialect.views import MakeTensorViewOp, PartitionViewOp, constant_value, known_type, sized_view_type

COMM_OPS = (CommTScatterOp, CommTGatherOp, CommTBroadcastOp, CommTReduceOp)
OPERATIONS: tuple[type[Operation], ...] = (
    MakeTensorViewOp,
    PartitionViewOp,
    AllocTileOp,
    TAssignOp,
    SetValidShapeOp,
    TLoadOp,
    TStoreOp,
    MScatterOp,
    MGatherOp,
    *VECTOR_OPS.values(),
    TScatterOp,
    *COMM_OPS,
    SetFlagOp,
    WaitFlagOp,
    SetFlagDynOp,
    WaitFlagDynOp,
    RecordEventOp,
    WaitEventOp,
    BarrierSyncOp,
    BarrierOp,
    TSyncOp,
    SectionVectorOp,
    SectionCubeOp,
    GetBlockIdxOp,
    GetBlockNumOp,
    AddPtrOp,
    LoadScalarOp,
    StoreScalarOp,
    DcciOp,
    DsbOp,
    ArgOp,
    SkippedOp,
)
"""Every op of the dialect."""


__all__ = [
    "COMM_OPS",
    "INDEX",
    "MODES",
    "OPERATIONS",
    "SEGMENTS",
    "VECTOR_OPS",
    "AddPtrOp",
    "AllocTileOp",
    "ArgOp",
    "BarrierOp",
    "BarrierSyncOp",
    "CommOp",
    "CommTBroadcastOp",
    "CommTGatherOp",
    "CommTReduceOp",
    "CommTScatterOp",
    "DcciOp",
    "DpsOp",
    "DsbOp",
    "GetBlockIdxOp",
    "GetBlockNumOp",
    "LoadScalarOp",
    "MGatherOp",
    "MScatterOp",
    "MakeTensorViewOp",
    "PartitionViewOp",
    "PtoOp",
    "RecordEventOp",
    "SectionCubeOp",
    "SectionVectorOp",
    "SetFlagDynOp",
    "SetFlagOp",
    "SetValidShapeOp",
    "SkippedOp",
    "StoreScalarOp",
    "TAssignOp",
    "TLoadOp",
    "TScatterOp",
    "TStoreOp",
    "TSyncOp",
    "VectorFamilyOp",
    "WaitEventOp",
    "WaitFlagDynOp",
    "WaitFlagOp",
    "coalesce_of",
    "constant_value",
    "known_type",
    "other_form",
    "sized_view_type",
]
