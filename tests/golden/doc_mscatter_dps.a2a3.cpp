// Written by ptokit for a2a3.
#include <pto/pto-inst.hpp>

using namespace pto;

template <typename SrcT, typename IdxT, typename MemT>
AICORE PTO_INLINE void doc_mscatter_dps(SrcT &src, IdxT &idx, MemT &mem)
{
    MSCATTER(mem, src, idx);
}
