#include "entry.h"

#include <structmember.h>

#include <algorithm>
#include <array>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

#include "job.h"
#include "memory.h"

namespace ptokit {
namespace {

// Below so many bytes, letting other Python threads run costs more than it gives.
constexpr std::int64_t bytes_worth_letting_go = 64 << 10;

std::array<signed char, 512> type_of_number = [] {
  std::array<signed char, 512> types{};
  types.fill(-1);
  return types;
}();

struct Words {
  PyObject *coalesce, *atomic, *oob, *out;
  PyObject *row, *elem, *none, *add, *max, *min, *raise, *skip, *zero, *clamp, *wrap;
} words;

struct Entry {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject* function;
};

// What was asked for. Whatever is not understood here is left to Python, which has the words for it.
struct Asked {
  PyObject* operand[3] = {nullptr, nullptr, nullptr};  // table, src, idx; or table, idx
  PyObject* out = nullptr;
  bool rows = true;
  Op op = Op::set;
  Oob oob = Oob::raise;
};

// A name that was made at run time (read from a file, say) is another object than the word that it spells.
PyObject* known(PyObject* value) {
  if (!PyUnicode_CheckExact(value) || PyUnicode_CHECK_INTERNED(value)) return value;
  for (PyObject* word : {words.row, words.elem, words.none, words.add, words.max, words.min, words.raise, words.skip,
                         words.zero, words.clamp, words.wrap}) {
    if (PyUnicode_Compare(value, word) == 0) return word;
  }
  return value;
}

bool read_word(Asked& asked, PyObject* name, PyObject* value, bool is_gather) {
  value = known(value);
  if (name == words.coalesce) {
    asked.rows = value == words.row;
    return asked.rows || value == words.elem;
  }
  if (name == words.oob) {
    if (value == words.raise) asked.oob = Oob::raise;
    else if (value == words.clamp) asked.oob = Oob::clamp;
    else if (value == words.wrap) asked.oob = Oob::wrap;
    else if (value == (is_gather ? words.zero : words.skip)) asked.oob = Oob::drop;
    else return false;
    return true;
  }
  if (is_gather && name == words.out) {
    asked.out = value == Py_None ? nullptr : value;
    return true;
  }
  if (!is_gather && name == words.atomic) {
    if (value == words.none) asked.op = Op::set;
    else if (value == words.add) asked.op = Op::add;
    else if (value == words.max) asked.op = Op::max;
    else if (value == words.min) asked.op = Op::min;
    else return false;
    return true;
  }
  return false;
}

bool read_call(Asked& asked, PyObject* const* args, Py_ssize_t given, PyObject* names, bool is_gather) {
  const Py_ssize_t operands = is_gather ? 2 : 3;
  if (given != operands) return false;
  if (is_gather) asked.op = Op::gather;
  std::copy_n(args, operands, asked.operand);
  const Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
  for (Py_ssize_t k = 0; k < named; k++) {
    if (!read_word(asked, PyTuple_GET_ITEM(names, k), args[given + k], is_gather)) return false;
  }
  return true;
}

// An ndarray itself, not a subclass: aligned, C-contiguous, in this machine's byte order.
PyArrayObject* plain_array(PyObject* object) {
  if (!PyArray_CheckExact(object)) return nullptr;
  PyArrayObject* array = reinterpret_cast<PyArrayObject*>(object);
  return PyArray_ISCARRAY_RO(array) ? array : nullptr;
}

int element_type(PyArrayObject* array) {
  const int number = PyArray_TYPE(array);
  return number >= 0 && number < static_cast<int>(type_of_number.size()) ? type_of_number[number] : -1;
}

bool is_index(PyArrayObject* array, bool& wide) {
  switch (PyArray_TYPE(array)) {
    case NPY_INT: case NPY_UINT: wide = sizeof(int) == 8; return true;
    case NPY_LONG: case NPY_ULONG: wide = sizeof(long) == 8; return true;
    case NPY_LONGLONG: case NPY_ULONGLONG: wide = sizeof(long long) == 8; return true;
    default: return false;
  }
}

bool overlap(PyArrayObject* a, PyArrayObject* b) {
  const char *at = PyArray_BYTES(a), *bt = PyArray_BYTES(b);
  return at < bt + PyArray_NBYTES(b) && bt < at + PyArray_NBYTES(a);
}

// The shape of source or destination: that of the indices, and in a row call that of a row behind it.
struct Shape {
  int ndim = 0;
  npy_intp dims[NPY_MAXDIMS];
};

bool tile_shape(Shape& shape, PyArrayObject* table, PyArrayObject* index, bool rows) {
  const int more = rows ? PyArray_NDIM(table) - 1 : 0;
  if (more < 0 || PyArray_NDIM(index) + more > NPY_MAXDIMS) return false;
  std::copy_n(PyArray_DIMS(index), PyArray_NDIM(index), shape.dims);
  if (rows) std::copy_n(PyArray_DIMS(table) + 1, more, shape.dims + PyArray_NDIM(index));
  shape.ndim = PyArray_NDIM(index) + more;
  return true;
}

bool has_shape(PyArrayObject* array, const Shape& shape) {
  return PyArray_NDIM(array) == shape.ndim && std::equal(shape.dims, shape.dims + shape.ndim, PyArray_DIMS(array));
}

bool go(const Job& job) {
  bool inside;
  if (job.count * job.slot_bytes() < bytes_worth_letting_go) return run(job);
  Py_BEGIN_ALLOW_THREADS
  inside = run(job);
  Py_END_ALLOW_THREADS
  return inside;
}

// The job of a call, without its tile; false where Python has to look.
bool make_job(Job& job, const Asked& asked, PyArrayObject* table, PyArrayObject* index) {
  const int type = element_type(table);
  if (type < 0 || !is_index(index, job.wide)) return false;
  const npy_intp size = PyArray_SIZE(table), item = PyArray_ITEMSIZE(table);
  if (size == 0) return false;
  job.op = asked.op;
  job.oob = asked.oob;
  job.type = static_cast<Type>(type);
  job.slots = static_cast<std::uint64_t>(asked.rows ? PyArray_DIM(table, 0) : size);
  job.width = asked.rows ? size / PyArray_DIM(table, 0) : 1;
  job.stride = job.step = job.width * item;
  job.table = PyArray_BYTES(table);
  job.index = PyArray_DATA(index);
  job.count = PyArray_SIZE(index);
  return job.slots <= most_slots && (job.op < Op::add || job.type <= Type::f32);
}

// New references, or null: without an error set, Python has to look.

PyObject* scatter(const Asked& asked) {
  PyArrayObject *table = plain_array(asked.operand[0]), *source = plain_array(asked.operand[1]),
                *index = plain_array(asked.operand[2]);
  if (!table || !source || !index || !PyArray_ISWRITEABLE(table)) return nullptr;
  if (asked.rows && PyArray_NDIM(table) == 0) return nullptr;
  Job job;
  Shape shape;
  if (!make_job(job, asked, table, index) || !tile_shape(shape, table, index, asked.rows)) return nullptr;
  if (PyArray_TYPE(source) != PyArray_TYPE(table) || !has_shape(source, shape)) return nullptr;
  if (overlap(table, source) || overlap(table, index)) return nullptr;
  job.tile = PyArray_BYTES(source);
  if (!go(job)) return nullptr;
  return Py_NewRef(asked.operand[0]);
}

PyObject* gather(const Asked& asked) {
  PyArrayObject *table = plain_array(asked.operand[0]), *index = plain_array(asked.operand[1]);
  if (!table || !index || (asked.rows && PyArray_NDIM(table) == 0)) return nullptr;
  Job job;
  Shape shape;
  if (!make_job(job, asked, table, index) || !tile_shape(shape, table, index, asked.rows)) return nullptr;
  PyObject* result;
  if (asked.out) {
    PyArrayObject* out = plain_array(asked.out);
    if (!out || !PyArray_ISWRITEABLE(out) || PyArray_TYPE(out) != PyArray_TYPE(table)) return nullptr;
    if (!has_shape(out, shape) || overlap(out, table) || overlap(out, index)) return nullptr;
    result = Py_NewRef(asked.out);
  } else {
    result = new_array(PyArray_DESCR(table), shape.ndim, shape.dims);
    if (!result) {
      // Too large for any array: Python has the words for it.
      if (PyErr_ExceptionMatches(PyExc_ValueError)) PyErr_Clear();
      return nullptr;
    }
  }
  job.tile = PyArray_BYTES(reinterpret_cast<PyArrayObject*>(result));
  if (go(job)) return result;
  Py_DECREF(result);
  return nullptr;
}

template <bool is_gather>
PyObject* call(PyObject* self, PyObject* const* args, size_t flagged, PyObject* names) {
  Asked asked;
  if (read_call(asked, args, PyVectorcall_NARGS(flagged), names, is_gather)) {
    PyObject* result = is_gather ? gather(asked) : scatter(asked);
    if (result || PyErr_Occurred()) return result;
  }
  return PyObject_Vectorcall(reinterpret_cast<Entry*>(self)->function, args, flagged, names);
}

// ---- The type: to everybody but a caller, an entry is its Python function.

PyObject* get_attribute(PyObject* self, PyObject* name) {
  PyObject* own = PyObject_GenericGetAttr(self, name);
  if (own || !PyErr_ExceptionMatches(PyExc_AttributeError)) return own;
  PyErr_Clear();
  return PyObject_GetAttr(reinterpret_cast<Entry*>(self)->function, name);
}

PyObject* function_attribute(PyObject* self, void* name) {
  return PyObject_GetAttrString(reinterpret_cast<Entry*>(self)->function, static_cast<const char*>(name));
}

PyObject* wrapped(PyObject* self, void*) { return Py_NewRef(reinterpret_cast<Entry*>(self)->function); }

PyObject* show(PyObject* self) { return PyObject_Repr(reinterpret_cast<Entry*>(self)->function); }

// A name: pickle and copy find the entry again where its function is defined.
PyObject* reduce(PyObject* self, PyObject*) {
  return PyObject_GetAttrString(reinterpret_cast<Entry*>(self)->function, "__qualname__");
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(reinterpret_cast<Entry*>(self)->function);
  Py_VISIT(Py_TYPE(self));
  return 0;
}

int clear(PyObject* self) {
  Py_CLEAR(reinterpret_cast<Entry*>(self)->function);
  return 0;
}

void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyGetSetDef attributes[] = {
    {"__doc__", function_attribute, nullptr, nullptr, const_cast<char*>("__doc__")},
    {"__module__", function_attribute, nullptr, nullptr, const_cast<char*>("__module__")},
    {"__wrapped__", wrapped, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Entry, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_getattro, reinterpret_cast<void*>(get_attribute)},
    {Py_tp_repr, reinterpret_cast<void*>(show)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_getset, attributes},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, nullptr},
};

PyType_Spec spec = {
    "ptokit._native.Entry", sizeof(Entry), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots,
};

PyTypeObject* entry_type = nullptr;

bool intern(PyObject*& place, const char* word) {
  place = PyUnicode_InternFromString(word);
  return place != nullptr;
}

}  // namespace

bool register_type(int number, int type) {
  if (number < 0 || number >= static_cast<int>(type_of_number.size()) || type < 0 || type >= type_count) return false;
  type_of_number[number] = static_cast<signed char>(type);
  return true;
}

bool prepare_entries() {
  import_array1(false);
  if (!prepare_memory()) return false;
  entry_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return entry_type && intern(words.coalesce, "coalesce") && intern(words.atomic, "atomic") &&
         intern(words.oob, "oob") && intern(words.out, "out") && intern(words.row, "row") &&
         intern(words.elem, "elem") && intern(words.none, "none") && intern(words.add, "add") &&
         intern(words.max, "max") && intern(words.min, "min") && intern(words.raise, "raise") &&
         intern(words.skip, "skip") && intern(words.zero, "zero") && intern(words.clamp, "clamp") &&
         intern(words.wrap, "wrap");
}

PyObject* make_entry(PyObject* function, bool is_gather) {
  PyObject* self = entry_type->tp_alloc(entry_type, 0);
  if (!self) return nullptr;
  Entry* entry = reinterpret_cast<Entry*>(self);
  entry->vectorcall = is_gather ? call<true> : call<false>;
  entry->function = Py_NewRef(function);
  return self;
}

}  // namespace ptokit
