#include "measure.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>

#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "pool.h"

namespace ptokit {
namespace {

constexpr std::uint64_t line = 64, huge = std::uint64_t{2} << 20;
constexpr int ahead = 128;
constexpr int words_of_line = line / sizeof(std::uint64_t);
constexpr int stream_ahead = 32;  // lines
constexpr std::uint64_t row = 256;
constexpr int rows_ahead = 24;
constexpr std::uint64_t touches = std::uint64_t{1} << 23;

struct Freed {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::uint64_t, Freed>;

struct Walk {
  std::uint64_t* words;
  std::uint64_t bytes;
  int parts;
  bool write;
  std::uint64_t sums[256 * 8];  // a cache line a thread
};

Memory memory_of(std::uint64_t bytes) {
  Memory memory(static_cast<std::uint64_t*>(std::aligned_alloc(huge, (bytes + huge - 1) / huge * huge)));
  if (!memory) return memory;
#if defined(__linux__)
  madvise(memory.get(), bytes, MADV_HUGEPAGE);
#endif
  std::memset(memory.get(), 1, bytes);
  return memory;
}

void stream(void* context, int part) {
  Walk& walk = *static_cast<Walk*>(context);
  const std::uint64_t lines = walk.bytes / line / static_cast<std::uint64_t>(walk.parts);
  std::uint64_t* at = walk.words + lines * static_cast<std::uint64_t>(part) * words_of_line;
  std::uint64_t* const end = at + lines * words_of_line;
  std::uint64_t sum = 0;
  for (; at < end; at += words_of_line) {
    __builtin_prefetch(at + stream_ahead * words_of_line, 0, 2);
    // A word of each line brings all of it.
    if (walk.write) *at += 1;
    else sum |= *at;
  }
  walk.sums[part * 8] += sum;
}

void jump(void* context, int part) {
  Walk& walk = *static_cast<Walk*>(context);
  const std::uint64_t lines = std::bit_floor(walk.bytes / line);
  const int shift = 64 - std::bit_width(lines - 1);
  std::uint64_t state = 0x9E3779B97F4A7C15u * static_cast<std::uint64_t>(part + 1), sum = 0;
  std::uint64_t* queue[ahead] = {};
  for (std::uint64_t k = 0; k < touches / static_cast<std::uint64_t>(walk.parts) + ahead; k++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::uint64_t* next = walk.words + (state >> shift) * (line / sizeof(std::uint64_t));
    __builtin_prefetch(next, 0, 2);
    std::uint64_t*& place = queue[k % ahead];
    if (place) {
      if (walk.write) *place += 1;
      else sum += *place;
    }
    place = next;
  }
  walk.sums[part * 8] += sum;
}

// Writes around the caches where the CPU can: what is copied is read and written once, and nothing else.
void copy_around(char* to, const char* from, std::uint64_t bytes) {
#if defined(__SSE2__)
  for (std::uint64_t k = 0; k < bytes; k += 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + k), _mm_load_si128(reinterpret_cast<const __m128i*>(from + k)));
  }
#else
  std::memcpy(to, from, bytes);
#endif
}

// The last fifth of the memory is filled with rows of the rest: the next ones, or (`write`) any.
void copy(void* context, int part) {
  Walk& walk = *static_cast<Walk*>(context);
  const std::uint64_t rows = std::bit_floor(walk.bytes / row), picked = walk.bytes / row / 5;
  const std::uint64_t share = picked / static_cast<std::uint64_t>(walk.parts);
  const char* const table = reinterpret_cast<const char*>(walk.words);
  char* to = reinterpret_cast<char*>(walk.words) + (rows + share * static_cast<std::uint64_t>(part)) * row;
  const int shift = 64 - std::bit_width(rows - 1);
  std::uint64_t state = 0x9E3779B97F4A7C15u * static_cast<std::uint64_t>(part + 1);
  const char* queue[rows_ahead] = {};
  for (std::uint64_t k = 0; k < share + rows_ahead; k++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const std::uint64_t next = walk.write ? state >> shift : (share * static_cast<std::uint64_t>(part) + k) % rows;
    for (std::uint64_t byte = 0; byte < row; byte += line) __builtin_prefetch(table + next * row + byte, 0, 2);
    const char*& place = queue[k % rows_ahead];
    if (place) {
      copy_around(to, place, row);
      to += row;
    }
    place = table + next * row;
  }
}

double seconds_of(Walk& walk, void (*work)(void*, int)) {
  const auto start = std::chrono::steady_clock::now();
  in_parts(walk.parts, work, &walk);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The best of several walks: the first one also brings the pages into the TLB.
double rate(std::uint64_t bytes, int threads, bool write, void (*work)(void*, int), double units) {
  bytes = std::max(bytes, huge);
  const Memory memory = memory_of(bytes);
  if (!memory) return 0;
  const auto walk = std::make_unique<Walk>(Walk{memory.get(), bytes, std::clamp(threads, 1, 256), write, {}});
  double best = seconds_of(*walk, work);
  for (int turn = 0; turn < 4; turn++) best = std::min(best, seconds_of(*walk, work));
  return units / best;
}

}  // namespace

double streaming_rate(std::uint64_t bytes, int threads, bool write) {
  return rate(bytes, threads, write, stream, static_cast<double>(std::max(bytes, huge)));
}

double copy_rate(std::uint64_t bytes, int threads, bool any) {
  // Four parts to copy from, a power of two, and one to copy to.
  bytes = std::bit_floor(std::max(bytes, huge));
  return rate(bytes / 4 * 5, threads, any, copy, static_cast<double>(bytes / 4) * 2);
}

double random_rate(std::uint64_t bytes, int threads, bool write) {
  return rate(bytes, threads, write, jump, static_cast<double>(touches));
}

}  // namespace ptokit
