// Written by ptokit for a2a3.
#include <pto/pto-inst.hpp>

using namespace pto;

template <typename Arg0T, typename Arg1T, typename MemT>
AICORE PTO_INLINE void doc_mscatter_manual(Arg0T &arg0, Arg1T &arg1, MemT &mem)
{
    TASSIGN(arg0, 0x1000);
    TASSIGN(arg1, 0x2000);
    MSCATTER(mem, arg0, arg1);
}
