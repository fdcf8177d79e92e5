// Written by ptokit for a5.
#include <pto/pto-inst.hpp>
#include <pto/comm/pto_comm_inst.hpp>

using namespace pto;

extern "C" __global__ AICORE void example_scatter(__gm__ float *local_data, __gm__ float *rank0, __gm__ float *rank1)
{
    using SrcGShape = Shape<1, 1, 1, 16, 64>;
    using SrcGStride = Stride<1, 1, 1, 64, 1>;
    using SrcGTensor = GlobalTensor<float, SrcGShape, SrcGStride, Layout::ND>;
    SrcGTensor srcG(local_data);
    using Tensor0Shape = Shape<1, 1, 1, 8, 64>;
    using Tensor0Stride = Stride<1, 1, 1, 64, 1>;
    using Tensor0Tensor = GlobalTensor<float, Tensor0Shape, Tensor0Stride, Layout::ND>;
    Tensor0Tensor tensor0(rank0);
    using Tensor1Shape = Shape<1, 1, 1, 8, 64>;
    using Tensor1Stride = Stride<1, 1, 1, 64, 1>;
    using Tensor1Tensor = GlobalTensor<float, Tensor1Shape, Tensor1Stride, Layout::ND>;
    Tensor1Tensor tensor1(rank1);
    using StagingTile = Tile<TileType::Vec, float, 4, 32, BLayout::RowMajor, 4, 32>;
    StagingTile stagingTile;
    TASSIGN(stagingTile, 0x0);
    Tensor0Tensor group_tensors[2] = {tensor0, tensor1};
    comm::ParallelGroup<Tensor0Tensor> group(group_tensors, 2, 0);
    comm::TSCATTER(group, srcG, stagingTile);
}

void launch_example_scatter(uint32_t blocks, void *stream, float *local_data, float *rank0, float *rank1)
{
    example_scatter<<<blocks, nullptr, stream>>>(local_data, rank0, rank1);
}
