// Written by ptokit for a2a3.
#include <pto/pto-inst.hpp>

using namespace pto;

extern "C" __global__ AICORE void example_scalar(__gm__ float *table, __gm__ float *src_in, __gm__ int32_t *idx_in)
{
    using TableGMShape = Shape<1, 1, 1, 1, 32>;
    using TableGMStride = Stride<1, 1, 1, 32, 1>;
    using TableGMTensor = GlobalTensor<float, TableGMShape, TableGMStride, Layout::ND>;
    TableGMTensor tableGM(table);
    using SrcGMShape = Shape<1, 1, 1, 1, 1>;
    using SrcGMStride = Stride<1, 1, 1, 1, 1>;
    using SrcGMTensor = GlobalTensor<float, SrcGMShape, SrcGMStride, Layout::ND>;
    SrcGMTensor srcGM(src_in);
    using IdxGMShape = Shape<1, 1, 1, 1, 1>;
    using IdxGMStride = Stride<1, 1, 1, 1, 1>;
    using IdxGMTensor = GlobalTensor<int32_t, IdxGMShape, IdxGMStride, Layout::ND>;
    IdxGMTensor idxGM(idx_in);
    using SrcTile = Tile<TileType::Vec, float, 1, 8, BLayout::RowMajor, 1, 1>;
    SrcTile src;
    TASSIGN(src, 0x0);
    using IdxTile = Tile<TileType::Vec, int32_t, 1, 8, BLayout::RowMajor, 1, 1>;
    IdxTile idx;
    TASSIGN(idx, 0x80);
    TLOAD(src, srcGM);
    TLOAD(idx, idxGM);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    MSCATTER<Coalesce::Elem, ScatterAtomicOp::None, ScatterOOB::Undefined>(tableGM, src, idx);
}

void launch_example_scalar(uint32_t blocks, void *stream, float *table, float *src_in, int32_t *idx_in)
{
    example_scalar<<<blocks, nullptr, stream>>>(table, src_in, idx_in);
}
