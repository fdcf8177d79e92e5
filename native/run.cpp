// How a job is shared out, and what has to be so before it may start.

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "job.h"
#include "pool.h"

namespace ptokit {
namespace {

// Below these, one thread is faster: starting the others costs tens of microseconds.
constexpr std::int64_t gather_bytes_worth_sharing = 1 << 20;
constexpr std::int64_t scatter_lanes_worth_sharing = 1 << 19;
constexpr std::int64_t scatter_bytes_worth_sharing = 8 << 20;
constexpr std::uint64_t table_worth_sharing = 16 << 20;
constexpr std::int64_t check_lanes_worth_sharing = 1 << 19;
// From so many bytes on, whole rows are written around the caches.
constexpr std::int64_t bytes_worth_streaming = 16 << 20;
// Few elements, all of them in bounds, are not worth a queue.
constexpr std::int64_t few_lanes = 2048;
// Every thread of a scatter reads all indices: more of them than this gain nothing.
constexpr int most_owners = 8;
constexpr std::uint64_t bytes_owned_together = 4096;
constexpr std::int64_t samples = 2048;

// The mode of the FPU in which the results are promised: nearest even, subnormal numbers kept. Others may have changed
// it for their own threads.
class FloatMode {
 public:
#if defined(__x86_64__)
  FloatMode() : saved_(_mm_getcsr()) { _mm_setcsr(0x1F80); }
  ~FloatMode() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
#elif defined(__aarch64__)
  FloatMode() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" ::"r"(std::uint64_t{0}));
  }
  ~FloatMode() { asm volatile("msr fpcr, %0" ::"r"(saved_)); }

 private:
  std::uint64_t saved_;
#else
  FloatMode() {}
#endif
};

bool counts(const Job& job) { return job.op != Op::gather && job.op != Op::set; }

std::int64_t bytes_of(const Job& job) { return job.count * job.slot_bytes(); }

struct Sharing {
  const Job& job;
  int parts;
  bool stream;
  void (*kernel)(const Share&);
  unsigned shift = 0;
  std::array<std::uint64_t, most_owners> owned{};

  // A gather is divided by where it writes: its lanes. So is a scatter: its slots.
  Share of(int part) const {
    if (job.op == Op::gather) {
      const std::int64_t first = job.count * part / parts, last = job.count * (part + 1) / parts;
      return {&job, first, last, 0, ~std::uint64_t{0}, stream};
    }
    return {&job, 0, job.count, shift, owned[part], stream};
  }
};

std::uint64_t index_of(const Job& job, std::int64_t lane) {
  return job.wide ? static_cast<const std::uint64_t*>(job.index)[lane]
                  : static_cast<const std::uint32_t*>(job.index)[lane];
}

// Which buckets of slots each thread owns: of a sample of the indices each gets about as many. A few slots that come
// very often then keep one thread busy, and the others do all the rest.
void share_out(Sharing& sharing) {
  const Job& job = sharing.job;
  const std::uint64_t slot = static_cast<std::uint64_t>(std::max<std::int64_t>(job.slot_bytes(), 1));
  sharing.shift = slot >= bytes_owned_together ? 0 : std::bit_width(bytes_owned_together / slot) - 1;
  std::array<std::pair<std::int64_t, unsigned>, buckets> load;
  for (unsigned bucket = 0; bucket < buckets; bucket++) load[bucket] = {1, bucket};
  const std::int64_t step = std::max<std::int64_t>(job.count / samples, 1);
  for (std::int64_t lane = 0; lane < job.count; lane += step) {
    load[index_of(job, lane) >> sharing.shift & (buckets - 1)].first++;
  }
  std::sort(load.begin(), load.end(), std::greater<>());
  std::array<std::int64_t, most_owners> busy{};
  for (const auto& [count, bucket] : load) {
    const auto least = std::min_element(busy.begin(), busy.begin() + sharing.parts) - busy.begin();
    busy[least] += count;
    sharing.owned[least] |= std::uint64_t{1} << bucket;
  }
}

void do_part(void* context, int part) {
  const Sharing& sharing = *static_cast<const Sharing*>(context);
  const FloatMode mode;
  sharing.kernel(sharing.of(part));
#if defined(__x86_64__)
  if (sharing.stream) _mm_sfence();
#endif
}

int parts_for(const Job& job) {
  const std::int64_t bytes = bytes_of(job);
  if (job.op == Op::gather) {
    return static_cast<int>(std::clamp<std::int64_t>(bytes / (gather_bytes_worth_sharing / 2), 1, threads()));
  }
  const bool large = job.count >= scatter_lanes_worth_sharing || bytes >= scatter_bytes_worth_sharing;
  const std::uint64_t table = job.slots * static_cast<std::uint64_t>(job.slot_bytes());
  if (!large || table < table_worth_sharing) return 1;
  return std::min(threads(), most_owners);
}

bool streams(const Job& job) {
  const bool whole_lines = job.op == Op::gather ? job.step == job.slot_bytes() : true;
  return !counts(job) && job.slot_bytes() >= 64 && whole_lines && bytes_of(job) >= bytes_worth_streaming;
}

struct Check {
  const Job& job;
  int parts;
  std::atomic<bool> out{false};
};

void check_part(void* context, int part) {
  Check& check = *static_cast<Check*>(context);
  const std::int64_t first = check.job.count * part / check.parts, last = check.job.count * (part + 1) / check.parts;
  if (!level().inside(check.job, first, last)) check.out.store(true, std::memory_order_relaxed);
}

bool all_inside(const Job& job) {
  if (job.count < check_lanes_worth_sharing) return level().inside(job, 0, job.count);
  Check check{job, threads()};
  in_parts(check.parts, check_part, &check);
  return !check.out.load(std::memory_order_relaxed);
}

}  // namespace

bool run(const Job& job) {
  const bool few = job.count <= few_lanes;
  if (few || job.oob == Oob::raise) {
    const bool inside = all_inside(job);
    if (!inside && job.oob == Oob::raise) return false;
    if (inside && few) {
      if (const auto direct = level().direct(job)) {
        if (!counts(job)) {
          direct(job);
        } else {
          const FloatMode mode;
          direct(job);
        }
        return true;
      }
    }
  }
  Sharing sharing{job, parts_for(job), streams(job), level().kernel(job)};
  if (sharing.parts > 1 && job.op != Op::gather) share_out(sharing);
  else sharing.owned[0] = ~std::uint64_t{0};
  in_parts(sharing.parts, do_part, &sharing);
  return true;
}

namespace {

const Level* best() {
#ifdef PTOKIT_X86_LEVELS
  if (const Level* found = level("avx512")) return found;
  if (const Level* found = level("avx2")) return found;
#endif
  return &baseline;
}

const Level* chosen() {
  const char* asked = std::getenv("PTOKIT_CPU");
  const Level* found = asked ? level(asked) : nullptr;
  return found ? found : best();
}

}  // namespace

const Level* level(const char* name) {
  if (std::strcmp(name, "baseline") == 0) return &baseline;
#ifdef PTOKIT_X86_LEVELS
  if (std::strcmp(name, "avx2") == 0) {
    const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c") &&
                     __builtin_cpu_supports("popcnt");
    return has ? &avx2 : nullptr;
  }
  if (std::strcmp(name, "avx512") == 0) {
    const bool has = level("avx2") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                     __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
    return has ? &avx512 : nullptr;
  }
#endif
  return nullptr;
}

const Level& level() {
  static const Level* const used = chosen();
  return *used;
}

}  // namespace ptokit
