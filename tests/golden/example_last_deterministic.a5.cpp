// Written by ptokit for a5.
#include <pto/pto-inst.hpp>

using namespace pto;

AICORE PTO_INLINE void FlushScatterOutput()
{
    dcci(static_cast<__gm__ void *>(0), ENTIRE_DATA_CACHE);
    dsb(DSB_DDR);
}

extern "C" __global__ AICORE void example_last_deterministic(__gm__ half *table, __gm__ half *src_in, __gm__ int32_t *idx_in)
{
    using TableGMShape = Shape<1, 1, 1, 65536, 64>;
    using TableGMStride = Stride<1, 1, 1, 64, 1>;
    using TableGMTensor = GlobalTensor<half, TableGMShape, TableGMStride, Layout::ND>;
    TableGMTensor tableGM(table);
    using SrcGMShape = Shape<1, 1, 1, 8, 64>;
    using SrcGMStride = Stride<1, 1, 1, 64, 1>;
    using SrcGMTensor = GlobalTensor<half, SrcGMShape, SrcGMStride, Layout::ND>;
    SrcGMTensor srcGM(src_in);
    using IdxGMShape = Shape<1, 1, 1, 8, 1>;
    using IdxGMStride = Stride<1, 1, 1, 1, 8>;
    using IdxGMTensor = GlobalTensor<int32_t, IdxGMShape, IdxGMStride, Layout::DN>;
    IdxGMTensor idxGM(idx_in);
    using SrcTile = Tile<TileType::Vec, half, 8, 64, BLayout::RowMajor, 8, 64>;
    SrcTile src;
    TASSIGN(src, 0x0);
    using IdxTile = Tile<TileType::Vec, int32_t, 8, 1, BLayout::ColMajor, 8, 1>;
    IdxTile idx;
    TASSIGN(idx, 0x1000);
    TLOAD(src, srcGM);
    TLOAD(idx, idxGM);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    MSCATTER<Coalesce::Row, ScatterAtomicOp::None, ScatterOOB::Clamp, ScatterConflict::Last>(tableGM, src, idx);
    pipe_barrier(PIPE_ALL);
    FlushScatterOutput();
}

void launch_example_last_deterministic(uint32_t blocks, void *stream, half *table, half *src_in, int32_t *idx_in)
{
    example_last_deterministic<<<blocks, nullptr, stream>>>(table, src_in, idx_in);
}
