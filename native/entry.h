// The front door in C: a callable that does the ordinary call at once and leaves every other to Python.
#pragma once

#include <Python.h>

namespace ptokit {

// False, with a Python error set, where NumPy or the type could not be had.
bool prepare_entries();

// A callable with the behaviour of `function` (pto.scatter or pto.gather): the same signature, the same results.
PyObject* make_entry(PyObject* function, bool is_gather);

// From now on arrays of this NumPy type number hold elements of that type.
bool register_type(int type_number, int type);

}  // namespace ptokit
