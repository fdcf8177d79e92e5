// One scatter or gather on host memory: what is moved, between where and where, and by which rule.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ptokit {

enum class Op { gather, set, add, max, min };

// What becomes of an index that is not one of the slots. `drop` is Skip in a scatter and Zero in a gather. `raise` was
// checked before the first write; in the walk itself it drops, so that an index array which another thread changes
// meanwhile can never reach memory that is not the table's.
enum class Oob { raise, drop, clamp, wrap };

// In the order of the package's own table of element types.
enum class Type { i8, u8, i16, u16, i32, u32, f16, bf16, f32, f8e4m3, f8e5m2, hif8 };

constexpr int type_count = 12;
constexpr int itemsize[type_count] = {1, 1, 2, 2, 4, 4, 2, 2, 4, 1, 1, 1};

// The kernels queue (slot, lane) in one word: the lane, counted within a stretch, has the low bits.
constexpr unsigned lane_bits = 20;
constexpr std::uint64_t most_slots = std::uint64_t{1} << (64 - lane_bits);

struct Job {
  Op op;
  Oob oob;
  Type type;
  char* table;          // slot 0
  std::int64_t stride;  // bytes from a slot to the next
  std::uint64_t slots;
  char* tile;         // the source of a scatter, the destination of a gather
  std::int64_t step;  // bytes from one lane of it to the next
  const void* index;
  bool wide;  // indices have 64 bits, else 32; both are taken as unsigned
  std::int64_t count;
  std::int64_t width;  // elements of a slot

  std::int64_t slot_bytes() const { return width * itemsize[static_cast<int>(type)]; }
};

// The part of a job that one thread does: lanes first..last, and of their slots those whose bucket is its own. Whoever
// owns a slot sees all its writers in their order: no result depends on how many threads there are.
struct Share {
  const Job* job;
  std::int64_t first, last;
  unsigned shift;       // neighbouring slots that are owned together
  std::uint64_t owned;  // a bit for each bucket
  bool stream;          // write around the caches

  bool owns_all() const { return owned == ~std::uint64_t{0}; }
};

constexpr unsigned buckets = 64;

// What one instruction set has to offer; the kernels are compiled once for each.
struct Level {
  const char* name;
  // Whether every index of these lanes is a slot.
  bool (*inside)(const Job&, std::int64_t first, std::int64_t last);
  // The kernel of a job, or null where there is none.
  void (*(*kernel)(const Job&))(const Share&);
  // The same for few elements whose indices are all slots; null where slots have several elements.
  void (*(*direct)(const Job&))(const Job&);
};

extern const Level baseline;
#ifdef PTOKIT_X86_LEVELS
extern const Level avx2;
extern const Level avx512;
#endif

const Level& level();                // the best that this CPU has, or what PTOKIT_CPU asks for
const Level* level(const char* name);  // null where this CPU has not got it

// Moves and folds; false where `raise` found an index that is not a slot (then nothing was written).
bool run(const Job& job);

}  // namespace ptokit
