#include "pool.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <system_error>
#include <thread>

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ptokit {
namespace {

constexpr int most_threads = 256;
constexpr int patience = 4000;  // pauses before a wait goes to sleep: about what a wake-up costs

inline void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins for a while, then sleeps, until `value` is no longer `old`.
int changed(const std::atomic<int>& value, int old) {
  for (int turn = 0; turn < patience; turn++) {
    const int now = value.load(std::memory_order_acquire);
    if (now != old) return now;
    pause();
  }
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

class Pool {
 public:
  void run(int parts, void (*work)(void*, int), void* context) {
    std::unique_lock<std::mutex> alone(busy_, std::try_to_lock);
    if (!alone.owns_lock() || !grow(parts - 1)) {
      for (int part = 0; part < parts; part++) work(context, part);
      return;
    }
    work_ = work;
    context_ = context;
    parts_ = parts;
    left_.store(made_, std::memory_order_relaxed);
    turn_.fetch_add(1, std::memory_order_release);
    turn_.notify_all();
    work(context, 0);
    for (int left = left_.load(std::memory_order_acquire); left;) left = changed(left_, left);
  }

 private:
  // Threads are detached: at exit they are asleep, and nothing waits for them.
  bool grow(int wanted) {
    while (made_ < wanted) {
      try {
        const int turn = turn_.load(std::memory_order_relaxed), part = made_ + 1;
        std::thread([this, part, turn] { serve(part, turn); }).detach();
      } catch (const std::system_error&) {
        return false;
      }
      made_++;
    }
    return true;
  }

  void serve(int part, int turn) {
    for (;;) {
      int now = turn_.load(std::memory_order_acquire);
      while (now == turn) {
        turn_.wait(turn, std::memory_order_acquire);
        now = turn_.load(std::memory_order_acquire);
      }
      turn = now;
      if (part < parts_) work_(context_, part);
      if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_one();
    }
  }

  std::mutex busy_;
  int made_ = 0, parts_ = 0;
  void (*work_)(void*, int) = nullptr;
  void* context_ = nullptr;
  std::atomic<int> turn_{0}, left_{0};
};

// Never destroyed: threads may outlive static objects. Replaced in a forked child, which has none of its threads.
Pool* pool = new Pool;
std::atomic<int> wanted_threads{0};

int quota() {
#if defined(__linux__)
  if (std::FILE* file = std::fopen("/sys/fs/cgroup/cpu.max", "r")) {
    long long most = 0, period = 0;
    const int read = std::fscanf(file, "%lld %lld", &most, &period);
    std::fclose(file);
    if (read == 2 && most > 0 && period > 0) return static_cast<int>(std::max(1LL, (most + period - 1) / period));
  }
#endif
  return most_threads;
}

#if defined(__linux__)
[[maybe_unused]] const int forks = pthread_atfork(nullptr, nullptr, [] { pool = new Pool; });
#endif

}  // namespace

int usable_cpus() {
  int cpus = static_cast<int>(std::thread::hardware_concurrency());
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) cpus = CPU_COUNT(&set);
#endif
  return std::clamp(std::min(cpus, quota()), 1, most_threads);
}

int threads() {
  int count = wanted_threads.load(std::memory_order_relaxed);
  if (count == 0) {
    count = usable_cpus();
    wanted_threads.store(count, std::memory_order_relaxed);
  }
  return count;
}

void set_threads(int count) { wanted_threads.store(std::clamp(count, 1, most_threads), std::memory_order_relaxed); }

void in_parts(int parts, void (*work)(void*, int), void* context) {
  if (parts > 1) return pool->run(parts, work, context);
  work(context, 0);
}

}  // namespace ptokit
