// frontends/python/src/arguments.cpp: one Python object becomes one argument of an op.
#include "device.hpp"
#include "dtype.hpp"
#include "generator.hpp"
#include "object.hpp"
#include "program.hpp"
#include "value.hpp"

namespace adjoin::py {
namespace {

Match no_or_error() { return PyErr_Occurred() ? Match::Error : Match::No; }

bool too_big(PyObject* o) {
  PyErr_Format(PyExc_OverflowError,
               "%R is too large for 64 bits: write it as a float where a float is meant", o);
  return false;
}

// NumPy's scalars are no subclasses of Python's numbers, float64 aside, but say what they are.
bool is_numpy_scalar(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (strncmp(type->tp_name, "numpy.", 6) != 0) return false;
  return !PyObject_HasAttrString(o, "__setitem__");  // arrays have it, scalars do not
}

bool foreign_number(PyObject* o, aj_value* v, Scratch& scratch) {
  if (PyLong_Check(o)) {  // of a class of its own, an IntEnum for one
    Ref number(PyNumber_Index(o));
    return number && plain_number(number.get(), v);
  }
  if (!PyFloat_Check(o) && !PyComplex_Check(o) && !is_numpy_scalar(o)) return false;
  if (strcmp(Py_TYPE(o)->tp_name, "numpy.bool_") == 0 ||
      strcmp(Py_TYPE(o)->tp_name, "numpy.bool") == 0) {
    v->tag = AJ_BOOL;
    v->v.i = PyObject_IsTrue(o);
    return true;
  }
  if (PyIndex_Check(o)) {
    Ref number(PyNumber_Index(o));
    if (number) return plain_number(number.get(), v);
    forget_error();
  }
  if (PyComplex_Check(o) || strstr(Py_TYPE(o)->tp_name, "complex")) {
    auto* pair = static_cast<double*>(scratch.take(2));
    Py_complex c = PyComplex_AsCComplex(o);
    pair[0] = c.real;
    pair[1] = c.imag;
    v->tag = AJ_COMPLEX;
    v->v.c128 = pair;
    return !PyErr_Occurred();
  }
  v->tag = AJ_FLOAT;
  v->v.f = PyFloat_AsDouble(o);
  if (!PyErr_Occurred()) return true;
  forget_error();
  return false;
}

Match tensor_argument(PyObject* o, aj_value* v, Frame& f) {
  if (likely(is_exact_tensor(o))) {
  } else if (!PyType_IsSubtype(Py_TYPE(o), &tensor_type)) {
    return Match::No;
  } else if (overrides(Py_TYPE(o))) {
    return Match::Override;
  }
  aj_tensor* t = tensor_of(o);
  v->tag = AJ_TENSOR;
  v->aux = 0;
  v->v.tensor = t;
  f.keys |= t->keys;
  return Match::Bound;
}

}  // namespace

Match large_number(PyObject* o, aj_value* v, const DLDataType* among) {
  Ref whole(PyNumber_Index(o));
  unsigned long long bits = whole ? PyLong_AsUnsignedLongLong(whole.get()) : 0;
  if (PyErr_Occurred() || !among) {
    forget_error();
    too_big(o);
    return Match::Error;
  }
  uint8_t code = among->code;
  v->aux = 0;
  if (code == kDLFloat || code == kDLBfloat || code == kDLComplex) {
    v->tag = AJ_FLOAT;
    v->v.f = static_cast<double>(bits);
  } else if (code == kDLUInt && among->bits == 64) {
    v->tag = AJ_INT;
    v->v.i = static_cast<int64_t>(bits);
  } else {
    DtypeObject* dtype = dtype_object(*among);
    if (dtype)
      PyErr_Format(PyExc_OverflowError, "%R does not fit into %U, the dtype that it meets", o,
                   dtype->name);
    return Match::Error;
  }
  return Match::Bound;
}

Match settle_large(const Program& p, Frame& f) {
  const DLDataType* among = nullptr;
  for (int i = 0; i < p.nparams && (!among || among->code == kDLBool);
       ++i)  // a condition says nothing
    if (f.values[i].tag == AJ_TENSOR) among = &f.values[i].v.tensor->dl.dtype;
  for (int i = 0; i < p.nparams; ++i)
    if (f.values[i].tag == AJ_DTYPE) among = &f.values[i].v.dtype;
  return large_number(f.large, &f.values[f.large_at], among);
}

namespace {

// An int of more than 63 bits waits for the other arguments, which say what it can be.
Match not_a_number(PyObject* o, aj_value* v, Frame& f) {
  if (!PyLong_Check(o) && !(is_numpy_scalar(o) && PyIndex_Check(o))) return Match::No;
  if (f.large) return too_big(o), Match::Error;
  f.large = o;
  f.large_at = static_cast<int8_t>(v - f.values);
  v->tag = AJ_NONE;
  return Match::Bound;
}

// A tensor of one element where a number is wanted.
bool number_of_tensor(PyObject* o, aj_value* v, Scratch& scratch) {
  if (!is_tensor(o) || tensor_of(o)->dl.ndim != 0 || requires_grad(tensor_of(o))) return false;
  Ref number(item_of(tensor_of(o)));
  if (number && as_number(number.get(), v, scratch)) return true;
  forget_error();
  return false;
}

// False, with an error set if it is whole but has more than 64 bits.
bool int_argument(PyObject* o, int64_t* out) {
  if (likely(PyLong_CheckExact(o))) {
    int overflow;
    *out = PyLong_AsLongLongAndOverflow(o, &overflow);
    return likely(overflow == 0) || too_big(o);
  }
  if (PyBool_Check(o) || PyFloat_Check(o) || !PyIndex_Check(o)) return false;
  if (is_tensor(o) && (tensor_of(o)->dl.ndim != 0 || tensor_of(o)->dl.dtype.code == kDLBool))
    return false;
  Ref number(PyNumber_Index(o));
  if (number && PyLong_CheckExact(number.get())) return int_argument(number.get(), out);
  forget_error();
  return false;
}

bool float_argument(PyObject* o, double* out, Scratch& scratch) {
  if (likely(PyFloat_CheckExact(o))) {
    *out = PyFloat_AS_DOUBLE(o);
    return true;
  }
  aj_value v{};
  if (PyLong_CheckExact(o)) {  // of any size
    *out = PyLong_AsDouble(o);
    return *out != -1 || !PyErr_Occurred();
  }
  if (!as_number(o, &v, scratch) && !number_of_tensor(o, &v, scratch)) return false;
  if (v.tag == AJ_COMPLEX) return false;
  *out = v.tag == AJ_FLOAT ? v.v.f : static_cast<double>(v.v.i);
  return true;
}

bool bool_argument(PyObject* o, int64_t* out) {
  if (o == Py_True || o == Py_False) {
    *out = o == Py_True;
    return true;
  }
  if (strncmp(Py_TYPE(o)->tp_name, "numpy.bool", 10) == 0) {
    *out = PyObject_IsTrue(o);
    return true;
  }
  return false;
}

Match ints_argument(const Param& p, PyObject* o, aj_value* v, Frame& f) {
  bool sequence = PyTuple_Check(o) || PyList_Check(o);
  Py_ssize_t n = sequence ? PySequence_Fast_GET_SIZE(o) : p.list > 0 ? p.list : 1;
  auto* data = static_cast<int64_t*>(f.scratch.take(static_cast<size_t>(n)));
  if (sequence) {
    PyObject** items = PySequence_Fast_ITEMS(o);
    for (Py_ssize_t i = 0; i < n; ++i)
      if (unlikely(!int_argument(items[i], &data[i]))) return no_or_error();
  } else {
    if (!int_argument(o, &data[0])) return no_or_error();
    for (Py_ssize_t i = 1; i < n; ++i) data[i] = data[0];
  }
  v->tag = AJ_INTS;
  v->aux = static_cast<uint32_t>(n);
  v->v.ints = data;
  return Match::Bound;
}

Match floats_argument(const Param& p, PyObject* o, aj_value* v, Frame& f) {
  bool sequence = PyTuple_Check(o) || PyList_Check(o);
  Py_ssize_t n = sequence ? PySequence_Fast_GET_SIZE(o) : p.list > 0 ? p.list : 1;
  auto* data = static_cast<double*>(f.scratch.take(static_cast<size_t>(n)));
  for (Py_ssize_t i = 0; i < n; ++i)
    if (!float_argument(sequence ? PySequence_Fast_ITEMS(o)[i] : o, &data[i], f.scratch))
      return no_or_error();
  v->tag = AJ_FLOATS;
  v->aux = static_cast<uint32_t>(n);
  v->v.floats = data;
  return Match::Bound;
}

Match bools_argument(PyObject* o, aj_value* v, Frame& f) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) return Match::No;
  Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  auto* data = static_cast<uint8_t*>(f.scratch.take(static_cast<size_t>(n) / 8 + 1));
  for (Py_ssize_t i = 0; i < n; ++i) {
    int64_t b;
    if (!bool_argument(PySequence_Fast_ITEMS(o)[i], &b)) return Match::No;
    data[i] = static_cast<uint8_t>(b);
  }
  v->tag = AJ_BOOLS;
  v->aux = static_cast<uint32_t>(n);
  v->v.bools = data;
  return Match::Bound;
}

Match tensors_argument(const Param& p, PyObject* o, aj_value* v, Frame& f) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) return Match::No;
  Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  auto** data = static_cast<aj_tensor**>(f.scratch.take(static_cast<size_t>(n)));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PySequence_Fast_ITEMS(o)[i];
    if (item == Py_None && p.optional_items) {
      data[i] = nullptr;
      continue;
    }
    aj_value one;
    Match m = tensor_argument(item, &one, f);
    if (m != Match::Bound) return m;
    data[i] = one.v.tensor;
  }
  v->tag = AJ_TENSORS;
  v->aux = static_cast<uint32_t>(n);
  v->v.tensors = data;
  return Match::Bound;
}

Match list_argument(const Param& p, PyObject* o, aj_value* v, Frame& f) {
  switch (p.kind) {
    case AJ_PARAM_TENSOR:
    case AJ_PARAM_OPERAND:
      return tensors_argument(p, o, v, f);
    case AJ_PARAM_INT:
    case AJ_PARAM_DIM:
    case AJ_PARAM_SIZE:
      return ints_argument(p, o, v, f);
    case AJ_PARAM_SCALAR:
    case AJ_PARAM_FLOAT:
      return floats_argument(p, o, v, f);
    case AJ_PARAM_BOOL:
      return bools_argument(o, v, f);
    default:
      return Match::No;
  }
}

Match rare_argument(const Param& p, PyObject* o, aj_value* v, Frame& f) {
  bool good = false;
  switch (p.kind) {
    case AJ_PARAM_STR: {
      Py_ssize_t n = 0;
      good = PyUnicode_Check(o) && (v->v.str = PyUnicode_AsUTF8AndSize(o, &n));
      v->tag = AJ_STRING;
      v->aux = static_cast<uint32_t>(n);
      break;
    }
    case AJ_PARAM_DTYPE:
      good = as_dtype(o, &v->v.dtype);
      v->tag = AJ_DTYPE;
      break;
    case AJ_PARAM_DEVICE:
      good = as_device(o, &v->v.device);
      v->v.device = concrete(v->v.device);
      v->tag = AJ_DEVICE;
      break;
    case AJ_PARAM_LAYOUT:
    case AJ_PARAM_MEMORY_FORMAT: {
      bool layout = p.kind == AJ_PARAM_LAYOUT;
      good = Py_TYPE(o) == (layout ? &layout_type : &memory_format_type);
      v->tag = layout ? AJ_LAYOUT : AJ_MEMORY_FORMAT;
      if (good) v->v.i = reinterpret_cast<TagObject*>(o)->value;
      break;
    }
    case AJ_PARAM_GENERATOR:
      good = Py_TYPE(o) == &generator_type;
      v->tag = AJ_GENERATOR;
      if (good) v->v.object = reinterpret_cast<GeneratorObject*>(o)->object;
      break;
    case AJ_PARAM_STREAM:
    case AJ_PARAM_FUNCTION:
    case AJ_PARAM_OBJECT:
      return object_argument(p, o, v, f);
    default:
      break;  // newer than this module: nothing but None and the default goes there
  }
  return good ? Match::Bound : no_or_error();
}

}  // namespace

bool as_number(PyObject* o, aj_value* v, Scratch& scratch) {
  if (likely(plain_number(o, v))) return true;
  if (PyBool_Check(o)) {
    v->tag = AJ_BOOL;
    v->v.i = o == Py_True;
    return true;
  }
  return foreign_number(o, v, scratch);
}

Match convert(const Param& p, PyObject* o, aj_value* v, Frame& f) {
  if (unlikely(o == Py_None)) {
    if (!p.optional && p.value.tag != AJ_NONE) return Match::No;
    v->tag = AJ_NONE;
    v->aux = 0;
    return Match::Bound;
  }
  if (p.list != 0) return list_argument(p, o, v, f);
  v->aux = 0;
  switch (p.kind) {
    case AJ_PARAM_TENSOR:
      return tensor_argument(o, v, f);
    case AJ_PARAM_OPERAND: {
      if (likely(is_exact_tensor(o))) return tensor_argument(o, v, f);
      if (plain_number(o, v)) return Match::Bound;
      Match m = tensor_argument(o, v, f);
      if (m != Match::No) return m;
      return as_number(o, v, f.scratch) ? Match::Bound : not_a_number(o, v, f);
    }
    case AJ_PARAM_SCALAR:
      if (as_number(o, v, f.scratch) || number_of_tensor(o, v, f.scratch)) return Match::Bound;
      return not_a_number(o, v, f);
    case AJ_PARAM_INT:
    case AJ_PARAM_DIM:
    case AJ_PARAM_SIZE:
      v->tag = AJ_INT;
      return int_argument(o, &v->v.i) ? Match::Bound : no_or_error();
    case AJ_PARAM_FLOAT:
      v->tag = AJ_FLOAT;
      return float_argument(o, &v->v.f, f.scratch) ? Match::Bound : no_or_error();
    case AJ_PARAM_BOOL:
      v->tag = AJ_BOOL;
      return bool_argument(o, &v->v.i) ? Match::Bound : Match::No;
    default:
      return rare_argument(p, o, v, f);
  }
}

}  // namespace adjoin::py
