// Written by ptokit for a2a3.
#include <pto/pto-inst.hpp>

using namespace pto;

extern "C" __global__ AICORE void example_large_elem(__gm__ float *table, __gm__ float *src_in, __gm__ int32_t *idx_in)
{
    using TableGMShape = Shape<1, 1, 1, 1, 65536>;
    using TableGMStride = Stride<1, 1, 1, 65536, 1>;
    using TableGMTensor = GlobalTensor<float, TableGMShape, TableGMStride, Layout::ND>;
    TableGMTensor tableGM(table);
    using SrcGMShape = Shape<1, 1, 1, 2304, 8>;
    using SrcGMStride = Stride<1, 1, 1, 8, 1>;
    using SrcGMTensor = GlobalTensor<float, SrcGMShape, SrcGMStride, Layout::ND>;
    SrcGMTensor srcGM(src_in);
    using IdxGMShape = Shape<1, 1, 1, 2304, 8>;
    using IdxGMStride = Stride<1, 1, 1, 8, 1>;
    using IdxGMTensor = GlobalTensor<int32_t, IdxGMShape, IdxGMStride, Layout::ND>;
    IdxGMTensor idxGM(idx_in);
    using SrcTile = Tile<TileType::Vec, float, 2304, 8, BLayout::RowMajor, 2304, 8>;
    SrcTile src;
    TASSIGN(src, 0x0);
    using IdxTile = Tile<TileType::Vec, int32_t, 2304, 8, BLayout::RowMajor, 2304, 8>;
    IdxTile idx;
    TASSIGN(idx, 0x12000);
    TLOAD(src, srcGM);
    TLOAD(idx, idxGM);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    MSCATTER<Coalesce::Elem, ScatterAtomicOp::None, ScatterOOB::Skip>(tableGM, src, idx);
}

void launch_example_large_elem(uint32_t blocks, void *stream, float *table, float *src_in, int32_t *idx_in)
{
    example_large_elem<<<blocks, nullptr, stream>>>(table, src_in, idx_in);
}
