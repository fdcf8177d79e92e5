// Written by ptokit for a5.
#include <pto/pto-inst.hpp>

using namespace pto;

AICORE PTO_INLINE void FlushScatterOutput()
{
    dcci(static_cast<__gm__ void *>(0), ENTIRE_DATA_CACHE);
    dsb(DSB_DDR);
}

extern "C" __global__ AICORE void example_gradient_accumulation(__gm__ float *table, __gm__ float *src_in, __gm__ int32_t *idx_in)
{
    using TableGMShape = Shape<1, 1, 1, 65536, 64>;
    using TableGMStride = Stride<1, 1, 1, 64, 1>;
    using TableGMTensor = GlobalTensor<float, TableGMShape, TableGMStride, Layout::ND>;
    TableGMTensor tableGM(table);
    using SrcGMShape = Shape<1, 1, 1, 16, 64>;
    using SrcGMStride = Stride<1, 1, 1, 64, 1>;
    using SrcGMTensor = GlobalTensor<float, SrcGMShape, SrcGMStride, Layout::ND>;
    SrcGMTensor srcGM(src_in);
    using IdxGMShape = Shape<1, 1, 1, 1, 16>;
    using IdxGMStride = Stride<1, 1, 1, 16, 1>;
    using IdxGMTensor = GlobalTensor<int32_t, IdxGMShape, IdxGMStride, Layout::ND>;
    IdxGMTensor idxGM(idx_in);
    using SrcTile = Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, 16, 64>;
    SrcTile src;
    TASSIGN(src, 0x1000);
    using IdxTile = Tile<TileType::Vec, int32_t, 1, 16, BLayout::RowMajor, 1, 16>;
    IdxTile idx;
    TASSIGN(idx, 0x0);
    TLOAD(src, srcGM);
    TLOAD(idx, idxGM);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    MSCATTER<Coalesce::Row, ScatterAtomicOp::Add, ScatterOOB::Skip, ScatterConflict::Last>(tableGM, src, idx);
    pipe_barrier(PIPE_ALL);
    FlushScatterOutput();
}

void launch_example_gradient_accumulation(uint32_t blocks, void *stream, float *table, float *src_in, int32_t *idx_in)
{
    example_gradient_accumulation<<<blocks, nullptr, stream>>>(table, src_in, idx_in);
}
