// Written by ptokit for a5.
#include <pto/pto-inst.hpp>

using namespace pto;

AICORE PTO_INLINE void FlushScatterOutput()
{
    dcci(static_cast<__gm__ void *>(0), ENTIRE_DATA_CACHE);
    dsb(DSB_DDR);
}

template <typename SrcT, typename IdxT, typename MemT>
AICORE PTO_INLINE void doc_mscatter_dps(SrcT &src, IdxT &idx, MemT &mem)
{
    MSCATTER(mem, src, idx);
    pipe_barrier(PIPE_ALL);
    FlushScatterOutput();
}
