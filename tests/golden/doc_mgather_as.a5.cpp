// Written by ptokit for a5.
#include <pto/pto-inst.hpp>

using namespace pto;

template <typename MemT, typename IdxT, typename DstT>
AICORE PTO_INLINE void doc_mgather_as(MemT &mem, IdxT &idx, DstT &dst)
{
    MGATHER(dst, mem, idx);
}
