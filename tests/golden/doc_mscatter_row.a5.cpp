// Written by ptokit for a5.
#include <pto/pto-inst.hpp>

using namespace pto;

AICORE PTO_INLINE void FlushScatterOutput()
{
    dcci(static_cast<__gm__ void *>(0), ENTIRE_DATA_CACHE);
    dsb(DSB_DDR);
}

template <typename TableT, typename SrcT, typename IdxT>
AICORE PTO_INLINE void doc_mscatter_row(TableT &table, SrcT &src, IdxT &idx)
{
    MSCATTER<Coalesce::Row, ScatterAtomicOp::None, ScatterOOB::Undefined, ScatterConflict::Last>(table, src, idx);
    pipe_barrier(PIPE_ALL);
    FlushScatterOutput();
}
