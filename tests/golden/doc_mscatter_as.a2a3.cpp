// Written by ptokit for a2a3.
#include <pto/pto-inst.hpp>

using namespace pto;

template <typename SrcT, typename MemT, typename IdxT>
AICORE PTO_INLINE void doc_mscatter_as(SrcT &src, MemT &mem, IdxT &idx)
{
    MSCATTER(mem, src, idx);
}
