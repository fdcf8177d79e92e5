// Declarations only, for -fsyntax-only: the collectives that the instruction documents give.
#pragma once
#include <pto/pto-inst.hpp>

namespace pto::comm {
enum class ReduceOp { Sum, Max, Min };
template <typename Tensor>
struct ParallelGroup {
    using value_type = Tensor;
    ParallelGroup(Tensor *tensors, int size, int root);
};
#define STUB_COLLECTIVE(name)                                                                                          \
    template <typename Group, typename Tensor, typename T, typename... Pong>                                           \
    RecordEvent name(Group &group, Tensor &tensor, T &ping, Pong &...pong);
STUB_COLLECTIVE(TSCATTER)
STUB_COLLECTIVE(TGATHER)
STUB_COLLECTIVE(TBROADCAST)
template <typename Group, typename Tensor, typename A, typename T>
RecordEvent TREDUCE(Group &group, Tensor &tensor, A &accumulator, T &ping, ReduceOp op);
template <typename Group, typename Tensor, typename A, typename T>
RecordEvent TREDUCE(Group &group, Tensor &tensor, A &accumulator, T &ping, T &pong, ReduceOp op);
} // namespace pto::comm
