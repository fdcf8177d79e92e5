// Written by ptokit for a2a3.
#include <pto/pto-inst.hpp>

using namespace pto;

template <typename MemT, typename IdxT, typename Arg0T, typename Arg1T, typename DstT>
AICORE PTO_INLINE void doc_mgather_manual(MemT &mem, IdxT &idx, Arg0T &arg0, Arg1T &arg1, DstT &dst)
{
    TASSIGN(arg0, 0x1000);
    TASSIGN(arg1, 0x2000);
    MGATHER(dst, mem, idx);
}
