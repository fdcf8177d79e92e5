#include "memory.h"

#include <atomic>
#include <cstddef>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace ptokit {

bool prepare_memory() {
  import_array1(false);
  return true;
}

#if defined(__linux__)

namespace {

constexpr std::size_t huge = std::size_t{2} << 20;
constexpr npy_intp worth_huge_pages = npy_intp{4} << 20;
constexpr std::size_t worth_keeping = std::size_t{1} << 30;

struct Mapping {
  char* start;
  std::size_t bytes;
};

void release(Mapping* mapping) {
  if (!mapping) return;
  munmap(mapping->start, mapping->bytes);
  delete mapping;
}

// The mapping that was given back last. Its pages are the kernel's as soon as it needs them (MADV_FREE); until then the
// next array of about that size has them without a page fault, which costs as much as filling it.
std::atomic<Mapping*> spare{nullptr};

void give_back(PyObject* capsule) {
  Mapping* mapping = static_cast<Mapping*>(PyCapsule_GetPointer(capsule, nullptr));
  const bool kept = mapping->bytes <= worth_keeping && madvise(mapping->start, mapping->bytes, MADV_FREE) == 0;
  release(kept ? spare.exchange(mapping) : mapping);
}

// A whole number of huge pages and one more, so that there is a place in it where one may start.
Mapping* take(std::size_t bytes) {
  const std::size_t room = (bytes + huge - 1) / huge * huge + huge;
  Mapping* kept = spare.exchange(nullptr);
  if (kept && kept->bytes >= room && kept->bytes / 2 <= room) return kept;
  release(kept);
  void* start = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  madvise(start, room, MADV_HUGEPAGE);
  return new Mapping{static_cast<char*>(start), room};
}

// Memory that starts where a huge page may; null where there is none.
void* map(std::size_t bytes, PyObject*& owner) {
  Mapping* mapping = take(bytes);
  if (!mapping) return nullptr;
  owner = PyCapsule_New(mapping, nullptr, give_back);
  if (!owner) {
    release(mapping);
    return nullptr;
  }
  const std::size_t misplaced = reinterpret_cast<std::uintptr_t>(mapping->start) % huge;
  return mapping->start + (misplaced ? huge - misplaced : 0);
}

}  // namespace

PyObject* new_array(PyArray_Descr* descr, int ndim, const npy_intp* dims) {
  npy_intp bytes = PyDataType_ELSIZE(descr);
  for (int k = 0; k < ndim; k++) {
    if (__builtin_mul_overflow(bytes, dims[k], &bytes)) {
      PyErr_SetString(PyExc_ValueError, "more bytes than there are addresses");
      return nullptr;
    }
  }
  PyObject* owner = nullptr;
  void* data = bytes >= worth_huge_pages ? map(static_cast<std::size_t>(bytes), owner) : nullptr;
  PyErr_Clear();
  Py_INCREF(descr);
  // Without data, any flag would ask for Fortran order.
  const int flags = data ? NPY_ARRAY_CARRAY : 0;
  PyObject* array = PyArray_NewFromDescr(&PyArray_Type, descr, ndim, dims, nullptr, data, flags, nullptr);
  if (owner && (!array || PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), owner) < 0)) {
    if (!array) Py_DECREF(owner);
    Py_CLEAR(array);
  }
  return array;
}

#else

PyObject* new_array(PyArray_Descr* descr, int ndim, const npy_intp* dims) {
  Py_INCREF(descr);
  return PyArray_NewFromDescr(&PyArray_Type, descr, ndim, dims, nullptr, nullptr, 0, nullptr);
}

#endif

}  // namespace ptokit
