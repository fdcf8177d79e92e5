// Written by ptokit for a5.
#include <pto/pto-inst.hpp>
#include <pto/comm/pto_comm_inst.hpp>

using namespace pto;

template <typename GroupT, typename SrcT, typename ArgT>
AICORE PTO_INLINE void doc_tscatter(GroupT &group, SrcT &src, ArgT &arg)
{
    comm::TSCATTER(group, src, arg);
}
