// Written by ptokit for a2a3.
#include <pto/pto-inst.hpp>

using namespace pto;

template <typename TableT, typename SrcT, typename IdxT>
AICORE PTO_INLINE void doc_custom_elem(TableT &table, SrcT &src, IdxT &idx)
{
    MSCATTER<Coalesce::Elem, ScatterAtomicOp::None, ScatterOOB::Undefined>(table, src, idx);
}
