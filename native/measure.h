// What the memory of this machine can do at best: the measure that the benchmarks hold the kernels against.
#pragma once

#include <cstdint>

namespace ptokit {

// Bytes a second that `threads` threads read from a buffer in order (`write`: read, change and write back).
double streaming_rate(std::uint64_t bytes, int threads, bool write);

// Bytes a second, those read and those written, of a copy of 256-byte rows out of a table of so many bytes: of
// neighbouring rows, or of `any`.
double copy_rate(std::uint64_t bytes, int threads, bool any);

// Lines of 64 bytes a second that they touch at random, as many under way as the CPU allows.
double random_rate(std::uint64_t bytes, int threads, bool write);

}  // namespace ptokit
