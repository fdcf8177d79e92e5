// Arrays that the package itself allocates: large ones on huge pages.
#pragma once

#include <Python.h>

#include <cstdint>

struct _PyArray_Descr;

namespace ptokit {

bool prepare_memory();

// An ndarray with undefined contents; null with a Python error set where memory is short.
PyObject* new_array(struct _PyArray_Descr* descr, int ndim, const std::intptr_t* dims);

}  // namespace ptokit
