// frontends/python/src/convert.cpp: nested Python data in two passes: shape and dtype first, then
// straight into the memory.
#include "convert.hpp"

#include <adjoin/kit/narrow.hpp>
#include <cstring>
#include <limits>

#include "buffer.hpp"
#include "device.hpp"
#include "dtype.hpp"
#include "op.hpp"
#include "value.hpp"

namespace adjoin::py {
namespace {

enum Category { kNothing = -1, kBools, kInts, kFloats, kComplexes };
constexpr int kMaxDepth = 64;

struct Scan {
  int ndim = -1;  // depth at which numbers were found
  int64_t shape[kMaxDepth];
  int known = 0;  // sizes known so far
  int category = kNothing;
  bool foreign = false;  // arrays, tensors or NumPy's numbers among the data
};

int category_of(PyObject* o) {
  if (PyFloat_CheckExact(o)) return kFloats;
  if (PyLong_CheckExact(o)) return kInts;
  if (PyBool_Check(o)) return kBools;
  if (PyComplex_CheckExact(o)) return kComplexes;
  return kNothing;
}

bool is_sequence(PyObject* o) { return PyList_Check(o) || PyTuple_Check(o); }

bool ragged(int depth, int64_t wanted, int64_t got) {
  PyErr_Format(PyExc_ValueError,
               "tensor: expected a sequence of length %lld at dimension %d, got %lld; a tensor has "
               "rows of one length: cut or pad them",
               static_cast<long long>(wanted), depth, static_cast<long long>(got));
  return false;
}

bool scan(PyObject* o, int depth, Scan& s);

bool scan_sequence(PyObject* o, int depth, Scan& s) {
  Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  PyObject** items = PySequence_Fast_ITEMS(o);
  if (depth == kMaxDepth || (s.ndim >= 0 && depth >= s.ndim)) {
    PyErr_Format(PyExc_ValueError, "tensor: the data is nested unevenly at depth %d", depth);
    return false;
  }
  if (depth == s.known) {
    s.shape[s.known++] = n;
  } else if (s.shape[depth] != n) {
    return ragged(depth, s.shape[depth], n);
  }
  Py_ssize_t i = 0;
  if (s.ndim == depth + 1) {  // a row of numbers like the first: the common case in one tight loop
    while (i < n && PyFloat_CheckExact(items[i])) ++i;
    if (i) s.category = std::max<int>(s.category, kFloats);
  }
  for (; i < n; ++i)
    if (!scan(items[i], depth + 1, s)) return false;
  return true;
}

bool scan(PyObject* o, int depth, Scan& s) {
  int c = category_of(o);
  if (c != kNothing) {
    if (s.ndim < 0) s.ndim = depth;
    if (s.ndim != depth || s.known > depth) {
      if (s.known > depth) return ragged(depth, s.shape[depth], 0);
      PyErr_Format(PyExc_ValueError, "tensor: a number stands at depth %d, others at %d", depth,
                   s.ndim);
      return false;
    }
    s.category = std::max(s.category, c);
    return true;
  }
  if (is_sequence(o)) return scan_sequence(o, depth, s);
  s.foreign = true;
  return true;
}

template <class T>
void put(char* to, T x) {
  std::memcpy(to, &x, sizeof x);
}

bool store_int(PyObject* o, char* to, DLDataType d) {
  int overflow = 0;
  bool is_float = PyFloat_Check(o);
  if (is_float && !(PyFloat_AS_DOUBLE(o) == PyFloat_AS_DOUBLE(o))) {
    PyErr_SetString(PyExc_ValueError, "tensor: nan cannot become an integer");
    return false;
  }
  Ref number(is_float ? PyNumber_Long(o) : Py_NewRef(o));
  if (!number) return false;
  if (d.code == kDLUInt && d.bits == 64) {
    put(to, PyLong_AsUnsignedLongLong(number.get()));
    if (!PyErr_Occurred()) return true;
    if (PyErr_ExceptionMatches(PyExc_OverflowError))
      PyErr_Format(PyExc_OverflowError, "tensor: %R does not fit into uint64", o);
    return false;
  }
  int64_t x = PyLong_AsLongLongAndOverflow(number.get(), &overflow);
  if (x == -1 && !overflow && PyErr_Occurred()) return false;  // a complex number
  bool is_signed = d.code == kDLInt;
  int64_t high =
      d.bits == 64 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << (d.bits - is_signed)) - 1;
  int64_t low = is_signed ? -high - 1 : is_float ? 0 : -high;  // -1 of uint8 is 255, as in fill_
  if (overflow || x < low || x > high) {
    DtypeObject* dtype = dtype_object(d);
    PyErr_Format(PyExc_RuntimeError,
                 "tensor: %R does not fit into %U, which holds %lld to %lld; take a wider dtype", o,
                 dtype->name, static_cast<long long>(is_signed ? low : 0),
                 static_cast<long long>(high));
    return false;
  }
  std::memcpy(to, &x, d.bits / 8);  // little-endian: the low bytes come first
  return true;
}

bool store(PyObject* o, char* to, DLDataType d) {
  if (PyComplex_Check(o) && d.code != kDLComplex && d.code != kDLBool) {
    PyErr_Format(PyExc_TypeError,
                 "tensor: %R is a complex number, which does not fit into %U; give its real part",
                 o, dtype_object(d)->name);
    return false;
  }
  if (d.code == kDLFloat || d.code == kDLBfloat) {
    double x = PyFloat_CheckExact(o) ? PyFloat_AS_DOUBLE(o) : PyFloat_AsDouble(o);
    if (x == -1 && PyErr_Occurred()) return false;
    if (d.bits == 32)
      put(to, static_cast<float>(x));
    else if (d.bits == 64)
      put(to, x);
    else if (d.code == kDLBfloat)
      put(to, float_to_bfloat(static_cast<float>(x)));
    else
      put(to, float_to_half(static_cast<float>(x)));
    return true;
  }
  if (d.code == kDLBool) {
    int truth = PyObject_IsTrue(o);
    put(to, static_cast<uint8_t>(truth == 1));
    return truth >= 0;
  }
  if (d.code == kDLComplex || kit::is_narrow(d)) {
    Py_complex c = PyComplex_AsCComplex(o);
    if (PyErr_Occurred()) return false;
    if (kit::is_narrow(d)) {
      kit::to_narrow(to, d, {static_cast<float>(c.real), static_cast<float>(c.imag)});
    } else if (d.bits == 64) {
      put(to, static_cast<float>(c.real));
      put(to + 4, static_cast<float>(c.imag));
    } else {
      put(to, c.real);
      put(to + 8, c.imag);
    }
    return true;
  }
  if (d.code == kDLInt || d.code == kDLUInt) return store_int(o, to, d);
  PyErr_SetString(PyExc_TypeError, "tensor: numbers cannot be stored in this dtype");
  return false;
}

bool fill(PyObject* o, char*& to, int left, DLDataType d, int64_t step) {
  if (left == 0) {
    if (!store(o, to, d)) return false;
    to += step;
    return true;
  }
  Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  PyObject** items = PySequence_Fast_ITEMS(o);
  Py_ssize_t i = 0;
  if (left == 1 && same(d, kFloat32)) {
    char* at = to;  // a place of its own, which what is written cannot change
    for (; i < n && PyFloat_CheckExact(items[i]); ++i, at += 4)
      put(at, static_cast<float>(PyFloat_AS_DOUBLE(items[i])));
    to = at;
  }
  for (; i < n; ++i)
    if (!fill(items[i], to, left - 1, d, step)) return false;
  return true;
}

DLDataType dtype_of(int category) {
  switch (category) {
    case kBools:
      return kBool;
    case kInts:
      return kInt64;
    case kComplexes: {
      DLDataType real = core->default_dtype();
      if (real.code == kDLFloat && real.bits == 16) return {kDLComplex, 32, 1};
      return real.bits == 64 ? kComplex128 : kComplex64;
    }
    default:
      return core->default_dtype();
  }
}

aj_tensor* empty_on_host(DLDataType d, int ndim, int64_t* shape) {
  DLTensor like{nullptr, host_device(), ndim, d, shape, nullptr, 0};
  aj_tensor* t = nullptr;
  return failed(core->tensor_empty(&like, 0, &t)) ? nullptr : t;
}

// Data with arrays or tensors in it becomes plain lists; they have a say about the dtype.
PyObject* plain_copy(PyObject* o) {
  if (category_of(o) != kNothing) return Py_NewRef(o);
  if (is_sequence(o)) {
    Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    Ref list(PyList_New(n));
    for (Py_ssize_t i = 0; list && i < n; ++i) {
      PyObject* item = plain_copy(PySequence_Fast_ITEMS(o)[i]);
      if (!item) return nullptr;
      PyList_SET_ITEM(list.get(), i, item);
    }
    return list.release();
  }
  return call_helper("adjoin._tensor", "_plain_data", &o, 1);
}

aj_tensor* from_foreign(PyObject* data, const DLDataType* dtype, DLDevice device) {
  Ref hint(call_helper("adjoin._tensor", "_dtype_of_data", &data, 1));
  if (!hint) return nullptr;
  const bool whole =
      dtype && (dtype->code == kDLInt || dtype->code == kDLUInt || dtype->code == kDLBool);
  Ref fits(whole ? call_helper("adjoin._tensor", "_want_whole", &data, 1) : Py_NewRef(Py_None));
  if (!fits) return nullptr;
  Ref plain(plain_copy(data));
  DLDataType d;
  if (!dtype && as_dtype(hint.get(), &d)) dtype = &d;
  if (!plain || Py_EnterRecursiveCall(" while the data of a tensor was read"))
    return nullptr;  // an array may hold itself
  aj_tensor* t = tensor_from_data(plain.get(), dtype, device);
  Py_LeaveRecursiveCall();
  return t;
}

aj_tensor* from_python(PyObject* data, const DLDataType* dtype, DLDevice device) {
  Scan s;
  if (!scan(data, 0, s)) return nullptr;
  if (s.foreign) return from_foreign(data, dtype, device);
  DLDataType d = dtype ? *dtype : dtype_of(s.category);
  int ndim = s.ndim < 0 ? s.known : s.ndim;
  HeldTensor t(empty_on_host(d, ndim, s.shape));
  if (!t) return nullptr;
  char* to = data_of(t.get());
  if (core->tensor_numel(t.get()) > 0 && !fill(data, to, ndim, d, item_bytes(d))) return nullptr;
  return cast_to(t.release(), nullptr, &device);
}

}  // namespace

aj_tensor* cast_to(aj_tensor* steal, const DLDataType* dtype, const DLDevice* device) {
  HeldTensor t(steal);
  DLDevice now = t->dl.device;
  bool moves =
      device && (device->device_type != now.device_type || device->device_id != now.device_id);
  if (!moves && (!dtype || same(*dtype, t->dl.dtype))) return t.release();
  Ref o(wrap(t.release()));
  PyObject* to = o ? find_function("to") : nullptr;
  if (!to) return nullptr;
  PyObject* args[3] = {o.get()};
  Ref names(PyTuple_New(moves + (dtype != nullptr)));
  Ref where, what;
  Py_ssize_t n = 0;
  if (dtype) {
    what = Ref::borrow(reinterpret_cast<PyObject*>(dtype_object(*dtype)));
    args[1 + n] = what.get();
    PyTuple_SET_ITEM(names.get(), n++, PyUnicode_InternFromString("dtype"));
  }
  if (moves) {
    where = Ref(device_object(*device));
    args[1 + n] = where.get();
    PyTuple_SET_ITEM(names.get(), n++, PyUnicode_InternFromString("device"));
  }
  Ref result(PyObject_Vectorcall(to, args, 1, names.get()));
  if (!result) return nullptr;
  core->retain(tensor_of(result.get()));
  return tensor_of(result.get());
}

aj_tensor* tensor_from_data(PyObject* data, const DLDataType* dtype, DLDevice device) {
  if (is_tensor(data)) {
    aj_tensor* copy = nullptr;
    Ref detached(PyObject_CallMethod(data, "detach", nullptr));
    Ref cloned(detached ? PyObject_CallMethod(detached.get(), "clone", nullptr) : nullptr);
    if (!cloned) return nullptr;
    copy = tensor_of(cloned.get());
    core->retain(copy);
    return cast_to(copy, dtype, &device);
  }
  if (category_of(data) == kNothing && !is_sequence(data)) {
    aj_tensor* t = copy_of_memory(data);
    if (t) return cast_to(t, dtype, &device);
    if (PyErr_Occurred()) return nullptr;
    if (aj_tensor* shared = tensor_on_memory(data)) {
      Ref o(wrap(shared));
      return o ? tensor_from_data(o.get(), dtype, device) : nullptr;
    }
    if (PyErr_Occurred()) return nullptr;
  }
  return from_python(data, dtype, device);
}

}  // namespace adjoin::py
