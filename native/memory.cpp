#include "memory.h"

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

struct Mapping {
  void* start;
  std::size_t bytes;
};

void unmap(PyObject* capsule) {
  Mapping* mapping = static_cast<Mapping*>(PyCapsule_GetPointer(capsule, nullptr));
  munmap(mapping->start, mapping->bytes);
  delete mapping;
}

// Anonymous memory that starts where a huge page may; null where there is none.
void* map(std::size_t bytes, PyObject*& owner) {
  const std::size_t room = bytes + huge;
  void* start = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  char* data = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(start) + huge - 1) & ~(huge - 1));
  madvise(data, bytes, MADV_HUGEPAGE);
  owner = PyCapsule_New(new Mapping{start, room}, nullptr, unmap);
  if (!owner) munmap(start, room);
  return owner ? data : nullptr;
}

}  // namespace

PyObject* new_array(PyArray_Descr* descr, int ndim, const npy_intp* dims) {
  npy_intp bytes = PyDataType_ELSIZE(descr);
  for (int k = 0; k < ndim; k++) bytes *= dims[k];
  PyObject* owner = nullptr;
  void* data = bytes >= worth_huge_pages ? map(static_cast<std::size_t>(bytes), owner) : nullptr;
  PyErr_Clear();
  Py_INCREF(descr);
  PyObject* array = PyArray_NewFromDescr(&PyArray_Type, descr, ndim, dims, nullptr, data, NPY_ARRAY_CARRAY, nullptr);
  if (owner && (!array || PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), owner) < 0)) {
    if (!array) Py_DECREF(owner);
    Py_CLEAR(array);
  }
  return array;
}

#else

PyObject* new_array(PyArray_Descr* descr, int ndim, const npy_intp* dims) {
  Py_INCREF(descr);
  return PyArray_NewFromDescr(&PyArray_Type, descr, ndim, dims, nullptr, nullptr, NPY_ARRAY_CARRAY, nullptr);
}

#endif

}  // namespace ptokit
