#include "ranks.h"

#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "pool.h"

namespace ptokit {
namespace {

// From so many bytes on they would push everything else out of the caches, and be gone before anybody reads them there.
constexpr std::int64_t bytes_past_caches = std::int64_t{8} << 20;
constexpr std::int64_t run_worth_streaming = 4 << 10;
constexpr std::int64_t piece = 64 << 10;

std::int64_t bytes_of(const Move& move) {
  return move.run * move.count[0] * move.count[1] * move.count[2] * move.count[3];
}

char* at(std::int64_t address) { return reinterpret_cast<char*>(address); }

// Written around the caches: a store into one would fetch the line first, and so move half as much again.
void stream(char* to, const char* from, std::int64_t bytes) {
#if defined(__SSE2__)
  const std::int64_t head = -reinterpret_cast<std::intptr_t>(to) & 63;
  std::memcpy(to, from, head);
  to += head, from += head, bytes -= head;
  for (; bytes >= 64; to += 64, from += 64, bytes -= 64) {
    const auto* line = reinterpret_cast<const __m128i*>(from);
    const __m128i a = _mm_loadu_si128(line), b = _mm_loadu_si128(line + 1);
    const __m128i c = _mm_loadu_si128(line + 2), d = _mm_loadu_si128(line + 3);
    auto* out = reinterpret_cast<__m128i*>(to);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
  }
#endif
  std::memcpy(to, from, bytes);
}

void streamed() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

template <class Size>
void copy_rows(char* to, const char* from, std::int64_t count, std::int64_t to_step, std::int64_t from_step,
               Size run) {
  for (std::int64_t k = 0; k < count; k++) std::memcpy(to + k * to_step, from + k * from_step, run);
}

template <std::size_t size>
struct Fixed {
  constexpr operator std::size_t() const { return size; }
};

// The innermost loop; small elements get a copy of their own size.
void copy_innermost(const Move& move, char* to, const char* from, bool streams) {
  if (streams && move.run >= run_worth_streaming) {
    for (std::int64_t k = 0; k < move.count[3]; k++) {
      stream(to + k * move.to_step[3], from + k * move.from_step[3], move.run);
    }
    return;
  }
  const auto rows = [&](auto run) { copy_rows(to, from, move.count[3], move.to_step[3], move.from_step[3], run); };
  switch (move.run) {
    case 1: return rows(Fixed<1>{});
    case 2: return rows(Fixed<2>{});
    case 4: return rows(Fixed<4>{});
    default: return rows(static_cast<std::size_t>(move.run));
  }
}

void move_one(const Move& move, bool is_large) {
  const bool streams = is_large && move.streams;
  for (std::int64_t i = 0; i < move.count[0]; i++) {
    for (std::int64_t j = 0; j < move.count[1]; j++) {
      for (std::int64_t k = 0; k < move.count[2]; k++) {
        copy_innermost(move, at(move.to) + i * move.to_step[0] + j * move.to_step[1] + k * move.to_step[2],
                       at(move.from) + i * move.from_step[0] + j * move.from_step[1] + k * move.from_step[2], streams);
      }
    }
  }
  if (streams) streamed();
}

struct Shared {
  const Move* moves;
  std::int64_t count;
  int parts;
};

// A part of every slice: of one without gaps, a stretch of its bytes; of any other, some of its innermost rows.
void move_part(void* context, int part) {
  const Shared& shared = *static_cast<const Shared*>(context);
  for (std::int64_t m = 0; m < shared.count; m++) {
    Move own = shared.moves[m];
    const bool solid = own.count[0] == 1 && own.count[1] == 1 && own.count[2] == 1 && own.count[3] == 1;
    std::int64_t& whole = solid ? own.run : own.count[3];
    const std::int64_t grain = solid ? piece : 1;
    const std::int64_t grains = (whole + grain - 1) / grain;
    const std::int64_t first = grains * part / shared.parts * grain;
    std::int64_t last = grains * (part + 1) / shared.parts * grain;
    if (last > whole) last = whole;
    own.to += first * (solid ? 1 : own.to_step[3]);
    own.from += first * (solid ? 1 : own.from_step[3]);
    whole = last - first;
    if (whole > 0) move_one(own, true);
  }
}

}  // namespace

std::int64_t bytes_of(const Move* moves, std::int64_t count) {
  std::int64_t bytes = 0;
  for (std::int64_t m = 0; m < count; m++) bytes += bytes_of(moves[m]);
  return bytes;
}

void move_all(const Move* moves, std::int64_t count, bool together) {
  const bool large = bytes_of(moves, count) >= bytes_past_caches;
  Shared shared{moves, count, large && together ? threads() : 1};
  if (shared.parts > 1) return in_parts(shared.parts, move_part, &shared);
  for (std::int64_t m = 0; m < count; m++) move_one(moves[m], large);
}

}  // namespace ptokit
