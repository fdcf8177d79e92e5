// Written by ptokit for a2a3.
#include <pto/pto-inst.hpp>

using namespace pto;

template <typename MemT, typename IdxT, typename DstT>
AICORE PTO_INLINE void doc_mgather_ssa(MemT &mem, IdxT &idx, DstT &dst)
{
    MGATHER(dst, mem, idx);
}
