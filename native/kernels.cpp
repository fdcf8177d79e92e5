// The kernels of one instruction set: this file is compiled once for each, with PTOKIT_LEVEL naming it.
//
// A share of a job is walked in blocks. Each block is first made into a queue of (slot, lane) by the bounds policy and
// by ownership, then the queue is applied in its order while the slots further back in it are on their way from memory.
// Nothing here may come from a header that other files instantiate too: the linker would keep one copy for all CPUs.

#include <cstring>

#include "job.h"
#include "numbers.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define PTOKIT_NAMED(name) PTOKIT_NAMED_(name)
#define PTOKIT_NAMED_(name) #name

namespace {

using ptokit::Job;
using ptokit::Level;
using ptokit::Oob;
using ptokit::Share;
using ptokit::Type;

using i64 = std::int64_t;
using u64 = std::uint64_t;

// An entry of the queue: the slot, and below it the lane counted from the start of its chunk.
using ptokit::lane_bits;
constexpr i64 chunk = i64{1} << lane_bits;
constexpr i64 block = 128;
constexpr i64 line = 64;
constexpr i64 slack = 8;  // what a vector store writes past the last entry

inline i64 slot_of(u64 entry) { return static_cast<i64>(entry >> lane_bits); }
inline i64 lane_of(u64 entry) { return static_cast<i64>(entry & (chunk - 1)); }

// What only fetches has no effect in the eyes of GCC, which drops a call of it that it has not inlined yet.
#define PTOKIT_FETCH [[gnu::always_inline]] inline

// Into the second cache: it has several times as many lines under way as the first.
PTOKIT_FETCH void prefetch(const char* at) { __builtin_prefetch(at, 0, 2); }
PTOKIT_FETCH void prefetch_near(const char* at) { __builtin_prefetch(at, 0, 3); }

// What is read in order: the CPU fetches it ahead by itself, but not as far, and not across the end of a page.
constexpr i64 stream_ahead = 2048;
PTOKIT_FETCH void fetch_stream(const void* at) { prefetch(static_cast<const char*>(at) + stream_ahead); }

// ---- Indices

template <class Word>
bool inside_of(const Word* index, i64 count, u64 slots) {
  if (slots > static_cast<Word>(-1)) return true;
  const Word bound = static_cast<Word>(slots);
  i64 at = 0;
#if defined(__AVX512F__)
  if constexpr (sizeof(Word) == 8) {
    const __m512i limit = _mm512_set1_epi64(static_cast<long long>(bound));
    __mmask8 out = 0;
    for (; at + 8 <= count; at += 8) {
      fetch_stream(index + at);
      out |= _mm512_cmpge_epu64_mask(_mm512_loadu_si512(index + at), limit);
    }
    if (out) return false;
  } else {
    const __m512i limit = _mm512_set1_epi32(static_cast<int>(bound));
    __mmask16 out = 0;
    for (; at + 16 <= count; at += 16) {
      fetch_stream(index + at);
      out |= _mm512_cmpge_epu32_mask(_mm512_loadu_si512(index + at), limit);
    }
    if (out) return false;
  }
#endif
  bool out = false;
  for (; at < count; at++) out |= index[at] >= bound;
  return !out;
}

bool inside(const Job& job, i64 first, i64 last) {
  if (job.wide) return inside_of(static_cast<const u64*>(job.index) + first, last - first, job.slots);
  return inside_of(static_cast<const std::uint32_t*>(job.index) + first, last - first, job.slots);
}

// The slot that a policy makes of an index, or nothing.
inline bool remap(const Job& job, u64& slot) {
  if (slot < job.slots) return true;
  if (job.oob == Oob::clamp) {
    slot = job.slots - 1;
    return true;
  }
  if (job.oob == Oob::wrap) {
    slot %= job.slots;
    return true;
  }
  return false;
}

inline bool owns(const Share& share, u64 slot) {
  return share.owned >> (slot >> share.shift & (ptokit::buckets - 1)) & 1;
}

inline void zero_lane(const Job& job, i64 lane) { std::memset(job.tile + lane * job.step, 0, job.slot_bytes()); }

// Appends `count` entries, whose indices may be anything.
template <class Word>
i64 fill_any(const Share& share, const Word* index, i64 count, i64 lane, i64 base, u64* queue) {
  const Job& job = *share.job;
  i64 filled = 0;
  for (i64 k = 0; k < count; k++) {
    u64 slot = index[k];
    if (!remap(job, slot)) {
      if (job.op == Op::gather && job.oob == Oob::drop) zero_lane(job, base + lane + k);
      continue;
    }
    if (!owns(share, slot)) continue;
    queue[filled++] = slot << lane_bits | static_cast<u64>(lane + k);
  }
  return filled;
}

#if defined(__AVX512F__) && defined(__AVX512VL__)

inline __m512i eight(const u64* from) { return _mm512_loadu_si512(from); }
inline __m512i eight(const std::uint32_t* from) {
  return _mm512_cvtepu32_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}

// Appends eight at a time, as long as all eight are slots.
template <bool owned, class Word>
i64 fill_eight(const Share& share, const Word* index, i64 count, i64 lane, u64* queue, i64& done) {
  const __m512i slots = _mm512_set1_epi64(static_cast<long long>(share.job->slots));
  const __m512i mask = _mm512_set1_epi64(ptokit::buckets - 1), one = _mm512_set1_epi64(1);
  const __m512i mine = _mm512_set1_epi64(static_cast<long long>(share.owned));
  const __m128i shift = _mm_cvtsi32_si128(static_cast<int>(share.shift));
  const __m512i step = _mm512_set1_epi64(8);
  __m512i at = _mm512_add_epi64(_mm512_set1_epi64(lane), _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0));
  i64 filled = 0, k = 0;
  for (; k + 8 <= count; k += 8) {
    fetch_stream(index + k);
    const __m512i slot = eight(index + k);
    if (_mm512_cmpge_epu64_mask(slot, slots)) break;
    const __m512i entry = _mm512_or_si512(_mm512_slli_epi64(slot, lane_bits), at);
    at = _mm512_add_epi64(at, step);
    if constexpr (owned) {
      const __m512i bucket = _mm512_and_si512(_mm512_srl_epi64(slot, shift), mask);
      const __mmask8 ours = _mm512_test_epi64_mask(_mm512_srlv_epi64(mine, bucket), one);
      _mm512_storeu_si512(queue + filled, _mm512_maskz_compress_epi64(ours, entry));
      filled += __builtin_popcount(ours);
    } else {
      _mm512_storeu_si512(queue + filled, entry);
      filled += 8;
    }
  }
  done = k;
  return filled;
}

#elif defined(__AVX2__)

// Where the chosen of four 64-bit lanes go: pairs of 32-bit lanes, chosen ones first.
struct Chosen {
  alignas(32) int lanes[16][8];
  constexpr Chosen() : lanes{} {
    for (int set = 0; set < 16; set++) {
      int to = 0;
      for (int from = 0; from < 4; from++) {
        if (!(set >> from & 1)) continue;
        lanes[set][2 * to] = 2 * from;
        lanes[set][2 * to + 1] = 2 * from + 1;
        to++;
      }
    }
  }
};
constexpr Chosen chosen;

inline __m256i four(const u64* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }
inline __m256i four(const std::uint32_t* from) {
  return _mm256_cvtepu32_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

template <bool owned, class Word>
i64 fill_eight(const Share& share, const Word* index, i64 count, i64 lane, u64* queue, i64& done) {
  done = 0;
  if (!share.job->slots) return 0;
  const __m256i sign = _mm256_set1_epi64x(static_cast<long long>(u64{1} << 63));
  const __m256i last = _mm256_xor_si256(_mm256_set1_epi64x(static_cast<long long>(share.job->slots - 1)), sign);
  const __m256i mask = _mm256_set1_epi64x(ptokit::buckets - 1);
  const __m256i mine = _mm256_set1_epi64x(static_cast<long long>(share.owned));
  const __m128i shift = _mm_cvtsi32_si128(static_cast<int>(share.shift));
  const __m256i step = _mm256_set1_epi64x(4);
  __m256i at = _mm256_add_epi64(_mm256_set1_epi64x(lane), _mm256_set_epi64x(3, 2, 1, 0));
  i64 filled = 0, k = 0;
  for (; k + 4 <= count; k += 4) {
    fetch_stream(index + k);
    const __m256i slot = four(index + k);
    const __m256i out = _mm256_cmpgt_epi64(_mm256_xor_si256(slot, sign), last);
    if (!_mm256_testz_si256(out, out)) break;
    __m256i entry = _mm256_or_si256(_mm256_slli_epi64(slot, lane_bits), at);
    at = _mm256_add_epi64(at, step);
    i64 count_here = 4;
    if constexpr (owned) {
      const __m256i bucket = _mm256_and_si256(_mm256_srl_epi64(slot, shift), mask);
      const __m256i lowest = _mm256_slli_epi64(_mm256_srlv_epi64(mine, bucket), 63);
      const int ours = _mm256_movemask_pd(_mm256_castsi256_pd(lowest));
      const __m256i places = _mm256_load_si256(reinterpret_cast<const __m256i*>(chosen.lanes[ours]));
      entry = _mm256_permutevar8x32_epi32(entry, places);
      count_here = __builtin_popcount(static_cast<unsigned>(ours));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(queue + filled), entry);
    filled += count_here;
  }
  done = k;
  return filled;
}

#else

template <bool owned, class Word>
i64 fill_eight(const Share& share, const Word* index, i64 count, i64 lane, u64* queue, i64& done) {
  i64 filled = 0, k = 0;
  for (; k < count; k++) {
    const u64 slot = index[k];
    if (slot >= share.job->slots) break;
    queue[filled] = slot << lane_bits | static_cast<u64>(lane + k);
    filled += owned ? owns(share, slot) : true;
  }
  done = k;
  return filled;
}

#endif

// Appends the entries of lanes base+lane .. base+lane+count.
template <class Word>
i64 fill(const Share& share, i64 base, i64 lane, i64 count, u64* queue) {
  const Word* index = static_cast<const Word*>(share.job->index) + base + lane;
  i64 filled = 0, at = 0;
  while (at < count) {
    i64 done = 0;
    filled += share.owns_all() ? fill_eight<false>(share, index + at, count - at, lane + at, queue + filled, done)
                               : fill_eight<true>(share, index + at, count - at, lane + at, queue + filled, done);
    at += done;
    const i64 rest = count - at < 8 ? count - at : 8;
    filled += fill_any(share, index + at, rest, lane + at, base, queue + filled);
    at += rest;
  }
  return filled;
}

// ---- The walk

// `Motion` moves or folds one entry, and knows what to have fetched `ahead` entries before it.
template <class Motion>
void walk(const Share& share) {
  constexpr i64 ahead = Motion::ahead, near = Motion::near;
  alignas(64) u64 queue[ahead + 2 * block + slack];
  const auto refill = share.job->wide ? fill<u64> : fill<std::uint32_t>;
  for (i64 base = share.first; base < share.last; base += chunk) {
    const i64 lanes = share.last - base < chunk ? share.last - base : chunk;
    const Motion motion(share, base);
    i64 held = 0, taken = 0, fetched = 0;
    while (taken < lanes || held) {
      while (taken < lanes && held < ahead + block) {
        const i64 more = lanes - taken < block ? lanes - taken : block;
        held += refill(share, base, taken, more, queue + held);
        motion.fetch_lanes(taken, more);
        taken += more;
      }
      for (; fetched < ahead && fetched < held; fetched++) motion.fetch(queue[fetched]);
      const i64 far = held > ahead ? held - ahead : 0;
      for (i64 k = 0; k < far; k++) {
        motion.fetch(queue[k + ahead]);
        motion.fetch_near(queue[k + near]);
        motion.move(queue[k]);
      }
      i64 ready = far;
      if (taken == lanes) {
        for (; ready < held; ready++) motion.move(queue[ready]);
      }
      held -= ready;
      std::memmove(queue, queue + ready, static_cast<std::size_t>(held) * sizeof *queue);
      fetched = held;
    }
  }
}

// ---- Slots of one element

template <class Element>
struct Elements {
  static constexpr i64 ahead = 128, near = 0;
  char* table;
  char* tile;
  Elements(const Share& share, i64 base)
      : table(share.job->table), tile(share.job->tile + base * static_cast<i64>(sizeof(Element))) {}
  explicit Elements(const Job& job) : table(job.table), tile(job.tile) {}
  PTOKIT_FETCH void fetch_lanes(i64 lane, i64 count) const {
    const char* at = comes(lane);
    for (i64 k = 0; k < count * static_cast<i64>(sizeof(Element)); k += line) fetch_stream(at + k);
  }
  PTOKIT_FETCH void fetch_near(u64) const {}  // the second cache is near enough
  char* there(i64 slot) const { return table + slot * static_cast<i64>(sizeof(Element)); }
  char* comes(i64 lane) const { return tile + lane * static_cast<i64>(sizeof(Element)); }
};

template <class Element>
struct GatherElement : Elements<Element> {
  using Elements<Element>::Elements;
  PTOKIT_FETCH void fetch(u64 entry) const { prefetch(this->there(slot_of(entry))); }
  void one(i64 slot, i64 lane) const { store(this->comes(lane), load<Element>(this->there(slot))); }
  void move(u64 entry) const { one(slot_of(entry), lane_of(entry)); }
};

template <class Element>
struct SetElement : Elements<Element> {
  using Elements<Element>::Elements;
  PTOKIT_FETCH void fetch(u64 entry) const { prefetch(this->there(slot_of(entry))); }
  void one(i64 slot, i64 lane) const { store(this->there(slot), load<Element>(this->comes(lane))); }
  void move(u64 entry) const { one(slot_of(entry), lane_of(entry)); }
};

template <class T, Op op>
struct FoldElement : Elements<typename T::Stored> {
  using Stored = typename T::Stored;
  using Elements<Stored>::Elements;
  PTOKIT_FETCH void fetch(u64 entry) const { prefetch(this->there(slot_of(entry))); }
  void one(i64 slot, i64 lane) const {
    char* at = this->there(slot);
    store(at, fold_alone<T, op>(load<Stored>(at), load<Stored>(this->comes(lane))));
  }
  void move(u64 entry) const { one(slot_of(entry), lane_of(entry)); }
};

template <class Motion, class Word>
void direct_by(const Job& job) {
  const Motion motion(job);
  const Word* index = static_cast<const Word*>(job.index);
  for (i64 k = 0; k < job.count; k++) {
    // All were inside when they were looked at; an index array that somebody changes meanwhile still reaches nothing else.
    const u64 slot = index[k];
    if (slot < job.slots) motion.one(static_cast<i64>(slot), k);
  }
}

template <class Motion>
void direct(const Job& job) {
  job.wide ? direct_by<Motion, u64>(job) : direct_by<Motion, std::uint32_t>(job);
}

// ---- Slots of several elements: rows

constexpr i64 most_lines = 16;  // of a row; what follows is found by the CPU itself

inline i64 lines_of(i64 bytes) {
  const i64 lines = (bytes + line - 1) / line;
  return lines < most_lines ? lines : most_lines;
}

#if defined(__AVX512F__)
constexpr i64 vector = 64;
inline void copy_vector(char* __restrict to, const char* __restrict from) {
  _mm512_storeu_si512(to, _mm512_loadu_si512(from));
}
inline void stream_vector(char* __restrict to, const char* __restrict from) {
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
}
#elif defined(__AVX2__)
constexpr i64 vector = 32;
inline void copy_vector(char* __restrict to, const char* __restrict from) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
inline void stream_vector(char* __restrict to, const char* __restrict from) {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
#else
constexpr i64 vector = 16;
inline void copy_vector(char* __restrict to, const char* __restrict from) { std::memcpy(to, from, vector); }
inline void stream_vector(char* __restrict to, const char* __restrict from);
#endif

constexpr i64 piece = 16;
inline void stream_piece(char* __restrict to, const char* __restrict from) {
#if defined(__x86_64__)
  _mm_stream_si128(reinterpret_cast<__m128i*>(to), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#else
  std::memcpy(to, from, piece);
#endif
}

inline void copy_row(char* __restrict to, const char* __restrict from, i64 bytes) {
  if (bytes < vector || bytes >= 4096) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return;
  }
  i64 at = 0;
  for (; at + vector <= bytes; at += vector) copy_vector(to + at, from + at);
  if (at < bytes) copy_vector(to + bytes - vector, from + bytes - vector);
}

#if !defined(__AVX2__)
inline void stream_vector(char* __restrict to, const char* __restrict from) { stream_piece(to, from); }
#endif

// Around the caches, to the last byte: a line of which one end is written through them costs more than all of it.
inline void stream_row(char* __restrict to, const char* __restrict from, i64 bytes) {
  const auto misplaced = reinterpret_cast<std::uintptr_t>(to) | static_cast<std::uintptr_t>(bytes);
  if (misplaced & (piece - 1)) {
    copy_row(to, from, bytes);
    return;
  }
  const i64 head = static_cast<i64>(-reinterpret_cast<std::uintptr_t>(to) & (line - 1));
  i64 at = 0;
  for (; at < head && at < bytes; at += piece) stream_piece(to + at, from + at);
  for (; at + line <= bytes; at += line) {
    for (i64 part = 0; part < line; part += vector) stream_vector(to + at + part, from + at + part);
  }
  for (; at < bytes; at += piece) stream_piece(to + at, from + at);
}

struct Rows {
  static constexpr i64 ahead = 64, near = 3;
  char* table;
  char* tile;
  i64 stride, step, bytes, lines;
  bool stream;
  Rows(const Share& share, i64 base)
      : table(share.job->table),
        tile(share.job->tile + base * share.job->step),
        stride(share.job->stride),
        step(share.job->step),
        bytes(share.job->slot_bytes()),
        lines(lines_of(share.job->slot_bytes())),
        stream(share.stream) {}
  PTOKIT_FETCH void fetch_lanes(i64, i64) const {}  // each with its entry
  char* there(u64 entry) const { return table + slot_of(entry) * stride; }
  char* comes(u64 entry) const { return tile + lane_of(entry) * step; }
  // First into the second cache, and from there into the first shortly before it is used.
  PTOKIT_FETCH void fetch_row(const char* at) const {
    for (i64 k = 0; k < lines; k++) prefetch(at + k * line);
    prefetch(at + bytes - 1);
  }
  PTOKIT_FETCH void fetch_row_near(const char* at) const {
    for (i64 k = 0; k < lines; k++) prefetch_near(at + k * line);
    prefetch_near(at + bytes - 1);
  }
};

struct GatherRow : Rows {
  using Rows::Rows;
  PTOKIT_FETCH void fetch(u64 entry) const { fetch_row(there(entry)); }
  PTOKIT_FETCH void fetch_near(u64 entry) const { fetch_row_near(there(entry)); }
  void move(u64 entry) const {
    stream ? stream_row(comes(entry), there(entry), bytes) : copy_row(comes(entry), there(entry), bytes);
  }
};

struct SetRow : Rows {
  using Rows::Rows;
  PTOKIT_FETCH void fetch(u64 entry) const {
    fetch_row(comes(entry));
    if (!stream) fetch_row(there(entry));
  }
  PTOKIT_FETCH void fetch_near(u64 entry) const {
    fetch_row_near(comes(entry));
    if (!stream) fetch_row_near(there(entry));
  }
  void move(u64 entry) const {
    stream ? stream_row(there(entry), comes(entry), bytes) : copy_row(there(entry), comes(entry), bytes);
  }
};

// Folds that the compiler cannot be trusted to make vectors of: sums of the 16-bit floats.
#if defined(__AVX512F__)
inline i64 sum_vectors(Float16, std::uint16_t* there, const std::uint16_t* comes, i64 width) {
  i64 k = 0;
  for (; k + 16 <= width; k += 16) {
    const __m512 a = _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(there + k)));
    const __m512 b = _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(comes + k)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(there + k),
                        _mm512_cvtps_ph(_mm512_add_ps(a, b), _MM_FROUND_TO_NEAREST_INT));
  }
  return k;
}

inline __m512 widened(const std::uint16_t* from) {
  const __m256i narrow = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(narrow), 16));
}

inline i64 sum_vectors(Brain16, std::uint16_t* there, const std::uint16_t* comes, i64 width) {
  const __m512i half = _mm512_set1_epi32(0x7FFF), one = _mm512_set1_epi32(1), quiet = _mm512_set1_epi32(0x400000);
  i64 k = 0;
  for (; k + 16 <= width; k += 16) {
    const __m512 sum = _mm512_add_ps(widened(there + k), widened(comes + k));
    const __m512i bits = _mm512_castps_si512(sum);
    const __m512i even = _mm512_and_si512(_mm512_srli_epi32(bits, 16), one);
    __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, half), even);
    rounded = _mm512_mask_or_epi32(rounded, _mm512_cmp_ps_mask(sum, sum, _CMP_UNORD_Q), bits, quiet);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(there + k),
                        _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16)));
  }
  return k;
}
#elif defined(__AVX2__)
inline i64 sum_vectors(Float16, std::uint16_t* there, const std::uint16_t* comes, i64 width) {
  i64 k = 0;
  for (; k + 8 <= width; k += 8) {
    const __m256 a = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(there + k)));
    const __m256 b = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(comes + k)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(there + k),
                     _mm256_cvtps_ph(_mm256_add_ps(a, b), _MM_FROUND_TO_NEAREST_INT));
  }
  return k;
}

inline __m256 widened(const std::uint16_t* from) {
  const __m128i narrow = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(narrow), 16));
}

inline i64 sum_vectors(Brain16, std::uint16_t* there, const std::uint16_t* comes, i64 width) {
  const __m256i half = _mm256_set1_epi32(0x7FFF), one = _mm256_set1_epi32(1), quiet = _mm256_set1_epi32(0x400000);
  i64 k = 0;
  for (; k + 8 <= width; k += 8) {
    const __m256 sum = _mm256_add_ps(widened(there + k), widened(comes + k));
    const __m256i bits = _mm256_castps_si256(sum);
    const __m256i even = _mm256_and_si256(_mm256_srli_epi32(bits, 16), one);
    const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, half), even);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(sum, sum, _CMP_UNORD_Q));
    const __m256i kept = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, _mm256_or_si256(bits, quiet), nan), 16);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(kept, kept), 0x08);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(there + k), _mm256_castsi256_si128(packed));
  }
  return k;
}
#endif

template <class T, Op op>
inline void fold_row(typename T::Stored* __restrict there, const typename T::Stored* __restrict comes, i64 width) {
  i64 k = 0;
#if defined(__AVX2__)
  if constexpr (op == Op::add && !T::is_integer && !T::is_float32) {
    k = sum_vectors(T{}, there, comes, width);
  }
#endif
  for (; k < width; k++) there[k] = fold<T, op>(there[k], comes[k]);
}

template <class T, Op op>
struct FoldRow : Rows {
  using Rows::Rows;
  PTOKIT_FETCH void fetch(u64 entry) const {
    fetch_row(comes(entry));
    fetch_row(there(entry));
  }
  PTOKIT_FETCH void fetch_near(u64 entry) const {
    fetch_row_near(comes(entry));
    fetch_row_near(there(entry));
  }
  void move(u64 entry) const {
    using Stored = typename T::Stored;
    fold_row<T, op>(reinterpret_cast<Stored*>(there(entry)), reinterpret_cast<const Stored*>(comes(entry)),
                    bytes / static_cast<i64>(sizeof(Stored)));
  }
};

// ---- The tables

using Kernel = void (*)(const Share&);
using Direct = void (*)(const Job&);

struct Pair {
  Kernel kernel;
  Direct direct;
};

struct alignas(8) Sixteen {
  u64 low, high;
};

template <class Element>
Pair moves(Op op) {
  using Gather = GatherElement<Element>;
  using Set = SetElement<Element>;
  return op == Op::gather ? Pair{walk<Gather>, direct<Gather>} : Pair{walk<Set>, direct<Set>};
}

// What only moves does not care for the type: a small row is an element of its size.
Pair move_of(const Job& job) {
  const i64 bytes = job.slot_bytes();
  if (job.stride == bytes && job.step == bytes) {
    switch (bytes) {
      case 1: return moves<std::uint8_t>(job.op);
      case 2: return moves<std::uint16_t>(job.op);
      case 4: return moves<std::uint32_t>(job.op);
      case 8: return moves<u64>(job.op);
      case 16: return moves<Sixteen>(job.op);
      default: break;
    }
  }
  return {job.op == Op::gather ? walk<GatherRow> : walk<SetRow>, nullptr};
}

template <class T, Op op>
Pair folds(const Job& job) {
  constexpr i64 bytes = sizeof(typename T::Stored);
  if (job.width == 1 && job.stride == bytes && job.step == bytes) {
    return {walk<FoldElement<T, op>>, direct<FoldElement<T, op>>};
  }
  return {walk<FoldRow<T, op>>, nullptr};
}

template <class T>
Pair fold_of(const Job& job) {
  switch (job.op) {
    case Op::add: return folds<T, Op::add>(job);
    case Op::max: return folds<T, Op::max>(job);
    case Op::min: return folds<T, Op::min>(job);
    default: return {nullptr, nullptr};
  }
}

Pair pair_of(const Job& job) {
  if (job.op == Op::gather || job.op == Op::set) return move_of(job);
  switch (job.type) {
    case Type::i8: return fold_of<Integer<std::int8_t>>(job);
    case Type::u8: return fold_of<Integer<std::uint8_t>>(job);
    case Type::i16: return fold_of<Integer<std::int16_t>>(job);
    case Type::u16: return fold_of<Integer<std::uint16_t>>(job);
    case Type::i32: return fold_of<Integer<std::int32_t>>(job);
    case Type::u32: return fold_of<Integer<std::uint32_t>>(job);
    case Type::f16: return fold_of<Float16>(job);
    case Type::bf16: return fold_of<Brain16>(job);
    case Type::f32: return fold_of<Float32>(job);
    default: return {nullptr, nullptr};
  }
}

Kernel kernel(const Job& job) { return pair_of(job).kernel; }
Direct direct(const Job& job) { return pair_of(job).direct; }

}  // namespace

namespace ptokit {
extern const Level PTOKIT_LEVEL;
const Level PTOKIT_LEVEL{PTOKIT_NAMED(PTOKIT_LEVEL), inside, kernel, direct};
}  // namespace ptokit
