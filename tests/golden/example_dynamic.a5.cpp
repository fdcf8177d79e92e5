// Written by ptokit for a5.
#include <pto/pto-inst.hpp>

using namespace pto;

AICORE PTO_INLINE void FlushScatterOutput()
{
    dcci(static_cast<__gm__ void *>(0), ENTIRE_DATA_CACHE);
    dsb(DSB_DDR);
}

extern "C" __global__ AICORE void example_dynamic(__gm__ float *table, __gm__ float *src_in, __gm__ int32_t *idx_in, int64_t tableR, int64_t tableC, int64_t validCols)
{
    using TableGMShape = Shape<1, 1, 1, -1, -1>;
    using TableGMStride = Stride<1, 1, 1, -1, 1>;
    using TableGMTensor = GlobalTensor<float, TableGMShape, TableGMStride, Layout::ND>;
    TableGMTensor tableGM(table, TableGMShape(tableR, tableC), TableGMStride(tableC));
    using SrcGMShape = Shape<1, 1, 1, 1, -1>;
    using SrcGMStride = Stride<1, 1, 1, -1, 1>;
    using SrcGMTensor = GlobalTensor<float, SrcGMShape, SrcGMStride, Layout::ND>;
    SrcGMTensor srcGM(src_in, SrcGMShape(validCols), SrcGMStride(validCols));
    using IdxGMShape = Shape<1, 1, 1, 1, -1>;
    using IdxGMStride = Stride<1, 1, 1, -1, 1>;
    using IdxGMTensor = GlobalTensor<int32_t, IdxGMShape, IdxGMStride, Layout::ND>;
    IdxGMTensor idxGM(idx_in, IdxGMShape(validCols), IdxGMStride(validCols));
    using SrcTile = Tile<TileType::Vec, float, 1, 16, BLayout::RowMajor, -1, -1>;
    SrcTile srcTile(1, validCols);
    TASSIGN(srcTile, 0x0);
    using IdxTile = Tile<TileType::Vec, int32_t, 1, 16, BLayout::RowMajor, -1, -1>;
    IdxTile idxTile(1, validCols);
    TASSIGN(idxTile, 0x40);
    TLOAD(srcTile, srcGM);
    TLOAD(idxTile, idxGM);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    MSCATTER<Coalesce::Elem, ScatterAtomicOp::None, ScatterOOB::Skip, ScatterConflict::Last>(tableGM, srcTile, idxTile);
    pipe_barrier(PIPE_ALL);
    FlushScatterOutput();
}

void launch_example_dynamic(uint32_t blocks, void *stream, float *table, float *src_in, int32_t *idx_in, int64_t tableR, int64_t tableC, int64_t validCols)
{
    example_dynamic<<<blocks, nullptr, stream>>>(table, src_in, idx_in, tableR, tableC, validCols);
}
