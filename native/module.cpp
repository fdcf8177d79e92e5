// ptokit._native: the compiled half of ptokit.arrays.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "entry.h"
#include "job.h"
#include "measure.h"
#include "memory.h"
#include "pool.h"

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
  module.def("level", [] { return ptokit::level().name; });
  module.def("levels", &levels);
  module.def("streaming_rate", &ptokit::streaming_rate, "bytes"_a, "threads"_a, "write"_a,
             nb::call_guard<nb::gil_scoped_release>());
  module.def("copy_rate", &ptokit::copy_rate, "bytes"_a, "threads"_a, "any"_a,
             nb::call_guard<nb::gil_scoped_release>());
  module.def("random_rate", &ptokit::random_rate, "bytes"_a, "threads"_a, "write"_a,
             nb::call_guard<nb::gil_scoped_release>());
}
