// ptokit._native: the compiled half of ptokit.arrays.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <string>
#include <vector>

#include "entry.h"
#include "job.h"
#include "measure.h"
#include "memory.h"
#include "pool.h"
#include "ranks.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T>
T* pointer(std::uintptr_t address) {
  return reinterpret_cast<T*>(address);
}

// Operands that `ptokit.arrays` has looked at: addresses, strides in bytes, counts.
bool run(int op, int oob, int type, std::uintptr_t table, std::int64_t stride, std::uint64_t slots,
         std::uintptr_t tile, std::int64_t step, std::uintptr_t index, bool wide, std::int64_t count,
         std::int64_t width) {
  const ptokit::Job job{static_cast<ptokit::Op>(op), static_cast<ptokit::Oob>(oob), static_cast<ptokit::Type>(type),
                        pointer<char>(table), stride, slots, pointer<char>(tile), step,
                        pointer<const void>(index), wide, count, width};
  nb::gil_scoped_release others_may_run;
  return ptokit::run(job);
}

// Words that several processes share: what was written before a store is there for whoever loads it.
std::atomic_ref<std::int64_t> word(std::uintptr_t address) {
  return std::atomic_ref<std::int64_t>(*pointer<std::int64_t>(address));
}

std::int64_t word_exchange(std::uintptr_t address, std::int64_t expected, std::int64_t value) {
  word(address).compare_exchange_strong(expected, value);
  return expected;
}

// Below so many bytes, letting other Python threads run costs more than it gives.
constexpr std::int64_t bytes_worth_letting_go = 256 << 10;

// A place on a rank's board: a word that says which window has it, and behind it one that says who writes there.
struct Claim {
  std::uintptr_t state;
  std::int64_t live;
  std::int64_t is_own;  // Else of another window over the same memory, which may be freed by now.

  std::uintptr_t busy() const { return state + sizeof(std::int64_t); }
};

// Slices for ranks, held by `me` as long as they are written; 0 only reads. Returns -1; or the claim that another root
// holds; or -2 less the claim whose window is freed. In both cases nothing has been written.
std::int64_t scatter_slices(std::uintptr_t moves, std::int64_t count, std::uintptr_t claims, std::int64_t many,
                            std::int64_t me, std::int64_t bytes, bool together) {
  const auto* claim = pointer<const Claim>(claims);
  std::vector<std::uintptr_t> held;
  held.reserve(static_cast<std::size_t>(many));
  std::int64_t stopped = -1;
  for (std::int64_t k = 0; k < many && stopped == -1; k++) {
    const bool is_live = word(claim[k].state).load() == claim[k].live;
    if (!is_live && claim[k].is_own) {
      stopped = -2 - k;
    } else if (is_live && me) {
      if (word_exchange(claim[k].busy(), 0, me) != 0) {
        stopped = k;
      } else {
        held.push_back(claim[k].busy());
      }
    }
  }
  if (stopped == -1) {
    const auto* all = pointer<const ptokit::Move>(moves);
    if (bytes >= bytes_worth_letting_go) {
      nb::gil_scoped_release others_may_run;
      ptokit::move_all(all, count, together);
    } else {
      ptokit::move_all(all, count, false);
    }
  }
  for (const std::uintptr_t busy : held) word(busy).store(0);
  return stopped;
}

void move_all(std::uintptr_t moves, std::int64_t count, bool together) {
  nb::gil_scoped_release others_may_run;
  ptokit::move_all(pointer<const ptokit::Move>(moves), count, together);
}

std::vector<std::string> levels() {
  std::vector<std::string> names;
  for (const char* name : {"baseline", "avx2", "avx512"}) {
    if (ptokit::level(name)) names.emplace_back(name);
  }
  return names;
}

}  // namespace

NB_MODULE(_native, module) {
  if (!ptokit::prepare_entries()) throw nb::python_error();
  module.def("run", run, "op"_a, "oob"_a, "type"_a, "table"_a, "stride"_a, "slots"_a, "tile"_a, "step"_a, "index"_a,
             "wide"_a, "count"_a, "width"_a);
  module.def("entry", [](nb::object function, bool is_gather) {
    return nb::steal(ptokit::make_entry(function.ptr(), is_gather));
  }, "function"_a, "is_gather"_a);
  module.def("register_type", &ptokit::register_type, "number"_a, "type"_a);
  module.def("threads", &ptokit::threads);
  module.def("set_threads", &ptokit::set_threads, "count"_a);
  module.def("usable_cpus", &ptokit::usable_cpus);
  module.def("word_load", [](std::uintptr_t address) { return word(address).load(); }, "address"_a);
  module.def("word_store", [](std::uintptr_t address, std::int64_t value) { word(address).store(value); },
             "address"_a, "value"_a);
  module.def("word_add", [](std::uintptr_t address, std::int64_t value) { return word(address).fetch_add(value); },
             "address"_a, "value"_a);
  module.def("word_exchange", &word_exchange, "address"_a, "expected"_a, "value"_a);
  module.def("scatter_slices", &scatter_slices, "moves"_a, "count"_a, "claims"_a, "many"_a, "me"_a,
             "bytes"_a, "together"_a);
  module.def("move_all", &move_all, "moves"_a, "count"_a, "together"_a);
  module.def("level", [] { return ptokit::level().name; });
  module.def("levels", &levels);
  module.def("streaming_rate", &ptokit::streaming_rate, "bytes"_a, "threads"_a, "write"_a,
             nb::call_guard<nb::gil_scoped_release>());
  module.def("copy_rate", &ptokit::copy_rate, "bytes"_a, "threads"_a, "any"_a,
             nb::call_guard<nb::gil_scoped_release>());
  module.def("random_rate", &ptokit::random_rate, "bytes"_a, "threads"_a, "write"_a,
             nb::call_guard<nb::gil_scoped_release>());
}
