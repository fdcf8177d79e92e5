// Memory that several ranks share: words, and slices that are moved as their strides say.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ptokit {

// One slice: `run` bytes at a time, in four loops. `ptokit.comm.moving` writes these, one row of 64-bit numbers each.
struct Move {
  std::int64_t to, from, run;
  std::int64_t count[4], to_step[4], from_step[4];
  std::int64_t streams;  // where much is moved, it may go around the caches: nobody here reads it again
};
static_assert(sizeof(Move) == 16 * sizeof(std::int64_t));

// In order; where `together` is given, large ones are shared out to the threads, which is for slices that do not meet.
void move_all(const Move* moves, std::int64_t count, bool together);

std::int64_t bytes_of(const Move* moves, std::int64_t count);

}  // namespace ptokit
