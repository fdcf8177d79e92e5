// Written by ptokit for a2a3.
#include <pto/pto-inst.hpp>

using namespace pto;

template <typename TableT, typename SrcT, typename IdxT>
AICORE PTO_INLINE void doc_mscatter_row_clamp_add(TableT &table, SrcT &src, IdxT &idx)
{
    MSCATTER<Coalesce::Row, ScatterAtomicOp::Add, ScatterOOB::Clamp>(table, src, idx);
}
