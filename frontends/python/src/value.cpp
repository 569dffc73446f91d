// frontends/python/src/value.cpp: item, tolist and the conversions that Python asks of a tensor of
// one element.
#include "value.hpp"

#include <adjoin/kit/narrow.hpp>
#include <bit>
#include <cmath>
#include <cstring>

#include "device.hpp"
#include "dispatch.hpp"
#include "dtype.hpp"
#include "methods.hpp"
#include "seen.hpp"

namespace adjoin::py {

float bfloat_to_float(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

uint16_t float_to_bfloat(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  if (x != x) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float half_to_float(uint16_t bits) {
  float sign = bits & 0x8000 ? -1.0f : 1.0f;
  int exponent = bits >> 10 & 31;
  int fraction = bits & 0x3ff;
  if (exponent == 31) return fraction ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
}

uint16_t float_to_half(float x) {
  auto sign = static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16 & 0x8000);
  float a = std::fabs(x);
  if (x != x) return sign | 0x7e00;
  if (a >= 65520.0f) return sign | 0x7c00;
  if (a == 0) return sign;  // zero has no exponent
  int exponent;
  std::frexp(a, &exponent);
  exponent = std::max(exponent, -13);  // below it the spacing stays 2^-24
  auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(a, 11 - exponent)));
  return static_cast<uint16_t>(sign | (static_cast<uint32_t>(exponent + 13) * 1024 + units));
}

namespace {

template <class T>
T load(const void* p) {
  T x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

PyObject* float_at(const void* p, unsigned bits) {
  if (bits == 32) return PyFloat_FromDouble(load<float>(p));
  if (bits == 64) return PyFloat_FromDouble(load<double>(p));
  return PyFloat_FromDouble(half_to_float(load<uint16_t>(p)));
}

PyObject* int_at(const void* p, unsigned bits) {
  switch (bits) {
    case 64:
      return PyLong_FromLongLong(load<int64_t>(p));
    case 32:
      return PyLong_FromLong(load<int32_t>(p));
    case 16:
      return PyLong_FromLong(load<int16_t>(p));
    default:
      return PyLong_FromLong(load<int8_t>(p));
  }
}

PyObject* uint_at(const void* p, unsigned bits) {
  switch (bits) {
    case 64:
      return PyLong_FromUnsignedLongLong(load<uint64_t>(p));
    case 32:
      return PyLong_FromUnsignedLong(load<uint32_t>(p));
    case 16:
      return PyLong_FromLong(load<uint16_t>(p));
    default:
      return PyLong_FromLong(load<uint8_t>(p));
  }
}

// The only element of t, which may be on another device.
// Of tensors with one dimension at most the core is not asked.
bool is_single(const aj_tensor* t) {
  if (likely(t->dl.ndim < 2)) return t->dl.ndim == 0 || t->dl.shape[0] == 1;
  return core->tensor_numel(t) == 1;
}

bool read_one(aj_tensor* t, void* out) {
  if (unlikely(!is_single(t))) {
    PyErr_Format(
        PyExc_RuntimeError,
        "item: a tensor with %lld elements is no single number; index it, or use .tolist()",
        static_cast<long long>(core->tensor_numel(t)));
    return false;
  }
  auto bytes = static_cast<size_t>(item_bytes(t->dl.dtype));
  if (likely(on_host(t) && is_strided(t))) {
    std::memcpy(out, data_of(t), bytes);
    return true;
  }
  HeldTensor values(strided(t, "item"));
  return values && !failed(core->tensor_copy_bytes(values.get(), out, bytes, 1));
}

struct Element {
  alignas(16) char bytes[16];
};

}  // namespace

PyObject* number_at(const void* p, DLDataType d) {
  switch (d.code) {
    case kDLFloat:
      return float_at(p, d.bits);
    case kDLInt:
      return int_at(p, d.bits);
    case kDLBool:
      return PyBool_FromLong(load<uint8_t>(p));
    case kDLUInt:
      return uint_at(p, d.bits);
    case kDLBfloat:
      return PyFloat_FromDouble(bfloat_to_float(load<uint16_t>(p)));
    case kDLComplex: {
      if (kit::is_complex32(d)) break;
      bool wide = d.bits == 128;
      auto at = static_cast<const char*>(p);
      double re = wide ? load<double>(at) : load<float>(at);
      double im = wide ? load<double>(at + 8) : load<float>(at + 4);
      return PyComplex_FromDoubles(re, im);
    }
    default:
      break;
  }
  if (kit::is_narrow(d)) {
    kit::Complex64 z = kit::from_narrow(d, static_cast<const char*>(p));
    return kit::is_complex32(d) ? PyComplex_FromDoubles(z.re, z.im) : PyFloat_FromDouble(z.re);
  }
  DtypeObject* o = dtype_object(d);
  return o ? PyErr_Format(PyExc_TypeError, "item: elements of %U are no Python numbers", o->name)
           : nullptr;
}

namespace {

// Is a __torch_dispatch__ to be asked: that of a tensor without memory, or of a mode?
bool told_by_others(aj_tensor* t) {
  return !is_strided(t) || watching.load(std::memory_order_relaxed) != 0;
}

// What it says; NULL without an error if there is none.
PyObject* number_told(aj_tensor* t) {
  Ref self(wrap_borrowed(t));
  if (!self || (is_exact_tensor(self.get()) && !watching.load(std::memory_order_relaxed)))
    return nullptr;
  PyObject* object = self.get();
  Ref told(call_helper("adjoin.utils._python_dispatch", "_number", &object, 1));
  return told.get() == Py_NotImplemented ? nullptr : told.release();
}

}  // namespace

PyObject* item_of(aj_tensor* t) {
  Element e;
  if (unlikely(told_by_others(t) && is_single(t))) {
    PyObject* told = number_told(t);
    if (told || PyErr_Occurred()) return told;
  }
  return read_one(t, &e) ? number_at(&e, t->dl.dtype) : nullptr;
}

aj_tensor* host_copy(aj_tensor* t) {
  HeldTensor values;
  if (!is_strided(t)) {
    values = HeldTensor(strided(t, "tolist"));
    if (!values) return nullptr;
    t = values.get();
  }
  if (on_host(t) && is_strided(t)) {
    core->retain(t);
    return t;
  }
  DLTensor like = t->dl;
  like.device = host_device();
  like.strides = nullptr;
  HeldTensor copy;
  if (failed(core->tensor_empty(&like, 0, copy.out()))) return nullptr;
  Ref source(wrap_borrowed(t));
  if (!source) return nullptr;
  Ref dense(PyObject_CallMethod(source.get(), "contiguous", nullptr));
  if (!dense) return nullptr;
  auto bytes = static_cast<uint64_t>(core->tensor_numel(t) * item_bytes(t->dl.dtype));
  if (failed(core->tensor_copy_bytes(tensor_of(dense.get()), data_of(copy.get()), bytes, 1)))
    return nullptr;
  return copy.release();
}

namespace {

template <class Make>
PyObject* list_along(const char* at, int64_t n, int64_t step, Make make) {
  PyObject* list = PyList_New(n);
  if (unlikely(!list)) return nullptr;
  for (int64_t i = 0; i < n; ++i, at += step) {
    PyObject* item = make(at);
    if (unlikely(!item)) {
      Py_DECREF(list);
      return nullptr;
    }
    PyList_SET_ITEM(list, i, item);
  }
  return list;
}

// The innermost lists: the dtype is looked at once a list, not once an element.
PyObject* numbers(const char* at, int64_t n, int64_t step, DLDataType d) {
  if (same(d, kFloat32))
    return list_along(at, n, step, [](auto p) { return PyFloat_FromDouble(load<float>(p)); });
  if (d.code == kDLInt && d.bits == 64)
    return list_along(at, n, step, [](auto p) { return PyLong_FromLongLong(load<int64_t>(p)); });
  if (d.code == kDLBool)
    return list_along(at, n, step,
                      [](auto p) { return Py_NewRef(load<uint8_t>(p) ? Py_True : Py_False); });
  if (d.code == kDLFloat && d.bits == 64)
    return list_along(at, n, step, [](auto p) { return PyFloat_FromDouble(load<double>(p)); });
  if (d.code == kDLInt) return list_along(at, n, step, [d](auto p) { return int_at(p, d.bits); });
  return list_along(at, n, step, [d](auto p) { return number_at(p, d); });
}

PyObject* nested(const char* data, const DLTensor& dl, int dim) {
  if (dim == dl.ndim) return number_at(data, dl.dtype);
  int64_t n = dl.shape[dim];
  int64_t step = dl.strides[dim] * item_bytes(dl.dtype);
  if (dim + 1 == dl.ndim) return numbers(data, n, step, dl.dtype);
  return list_along(data, n, step, [&](const char* at) { return nested(at, dl, dim + 1); });
}

// The newest list of few floats, which may be one of lists. Making and freeing them is most of what
// tolist takes, so what nobody else holds of it any more is written again, as zip() does with its
// tuple.
PyObject* newest_floats = nullptr;
constexpr int64_t kFewFloats = 256;

// `old` as a list of n items, some of them NULL, if that is seen by nobody; else a new one.
Ref list_again(Ref old, int64_t n) {
  bool ours = old && Py_REFCNT(old.get()) == 1 && PyList_CheckExact(old.get()) &&
              PyList_GET_SIZE(old.get()) == n;
  return ours ? std::move(old) : Ref(PyList_New(n));
}

template <class T>
PyObject* floats_again(Ref old, const char* at, const DLTensor& dl, int dim) {
  int64_t n = dl.shape[dim], step = dl.strides[dim] * static_cast<int64_t>(sizeof(T));
  Ref list = list_again(std::move(old), n);
  for (int64_t i = 0; list && i < n; ++i, at += step) {
    Ref item(std::exchange(PyList_GET_ITEM(list.get(), i), nullptr));
    if (dim + 1 < dl.ndim) {
      item = Ref(floats_again<T>(std::move(item), at, dl, dim + 1));
    } else if (item && Py_REFCNT(item.get()) == 1 && PyFloat_CheckExact(item.get())) {
      reinterpret_cast<PyFloatObject*>(item.get())->ob_fval = load<T>(at);
    } else {
      item = Ref(PyFloat_FromDouble(load<T>(at)));
    }
    if (!item) return nullptr;
    PyList_SET_ITEM(list.get(), i, item.release());
  }
  return list.release();
}

template <class T>
PyObject* few_floats(const char* data, const DLTensor& dl) {
  PyObject* made = floats_again<T>(Ref(std::exchange(newest_floats, nullptr)), data, dl, 0);
  Py_XDECREF(std::exchange(newest_floats, Py_XNewRef(made)));
  return made;
}

PyObject* to_list(PyObject* self, PyObject*) {
  HeldTensor t(host_copy(tensor_of(self)));
  int64_t n = t ? core->tensor_numel(t.get()) : 0;
  if (n > 0 && n <= kFewFloats && t->dl.ndim > 0) {
    if (same(t->dl.dtype, kFloat32)) return few_floats<float>(data_of(t.get()), t->dl);
    if (same(t->dl.dtype, kFloat64)) return few_floats<double>(data_of(t.get()), t->dl);
  }
  return t ? nested(data_of(t.get()), t->dl, 0) : nullptr;
}

PyObject* item(PyObject* self, PyObject*) { return item_of(tensor_of(self)); }

// What int(), float() and complex() take: their error for several elements is that of a value.
PyObject* only_number(PyObject* self) {
  aj_tensor* t = tensor_of(self);
  if (likely(is_single(t))) return item_of(t);
  return PyErr_Format(
      PyExc_ValueError,
      "item: a tensor with %lld elements is no single number; index it, or use .tolist()",
      static_cast<long long>(core->tensor_numel(t)));
}

PyObject* to_complex(PyObject* self, PyObject*) {
  Ref number(only_number(self));
  if (!number || PyComplex_Check(number.get())) return number.release();
  double x = PyFloat_AsDouble(number.get());
  return PyErr_Occurred() ? nullptr : PyComplex_FromDoubles(x, 0);
}

}  // namespace

int tensor_bool(PyObject* self) {
  if (unlikely(looked_on(self))) {
    Ref answer(override_slot("__bool__", self));
    return answer ? PyObject_IsTrue(answer.get()) : -1;
  }
  aj_tensor* t = tensor_of(self);
  if (unlikely(!is_single(t))) {
    PyErr_SetString(
        PyExc_RuntimeError,
        core->tensor_numel(t) == 0
            ? "bool: Boolean value of Tensor with no values is ambiguous; use .numel() > 0, "
              ".any() or .all()"
            : "bool: Boolean value of Tensor with more than one value is ambiguous; "
              "use .any() or .all()");
    return -1;
  }
  Element e;
  if (unlikely(told_by_others(t))) {
    Ref number(item_of(t));
    return number ? PyObject_IsTrue(number.get()) : -1;
  }
  if (!read_one(t, &e)) return -1;
  if (same(t->dl.dtype, kFloat32)) return load<float>(&e) != 0;
  Ref number(number_at(&e, t->dl.dtype));
  return number ? PyObject_IsTrue(number.get()) : -1;
}

PyObject* tensor_float(PyObject* self) {
  aj_tensor* t = tensor_of(self);
  const bool plain = is_exact_tensor(self) && !modes_entered && is_single(t) && on_host(t);
  if (likely(plain && !told_by_others(t) && same(t->dl.dtype, kFloat32)))
    return PyFloat_FromDouble(load<float>(data_of(t)));
  if (unlikely(looked_on(self))) return override_slot("__float__", self);
  Ref number(only_number(self));
  if (!number || PyFloat_CheckExact(number.get())) return number.release();
  return PyNumber_Float(number.get());
}

PyObject* tensor_int(PyObject* self) {
  if (unlikely(looked_on(self))) return override_slot("__int__", self);
  Ref number(only_number(self));
  if (!number || PyLong_CheckExact(number.get())) return number.release();
  return PyNumber_Long(number.get());
}

PyObject* tensor_index(PyObject* self) {
  if (unlikely(looked_on(self))) return override_slot("__index__", self);
  aj_tensor* t = tensor_of(self);
  bool integral =
      t->dl.dtype.code == kDLInt || t->dl.dtype.code == kDLUInt || t->dl.dtype.code == kDLBool;
  if (!integral || core->tensor_numel(t) != 1) {
    Ref shape(PyObject_GetAttrString(self, "shape")),
        dims(shape ? PySequence_List(shape.get()) : nullptr);
    DtypeObject* dtype = dims ? dtype_object(t->dl.dtype) : nullptr;
    if (!dtype) return nullptr;
    return PyErr_Format(
        PyExc_TypeError,
        "index: a tensor of shape %R and dtype %U stands where a whole number is wanted: only "
        "integer "
        "tensors of a single element can be converted to an index; use int(), or .item()",
        dims.get(), dtype->name);
  }
  return tensor_int(self);
}

PyMethodDef value_methods[] = {
    {"item", seen<item>, METH_NOARGS, "The only element as a Python number."},
    {"tolist", seen<to_list>, METH_NOARGS, "The elements as nested lists of Python numbers."},
    {"__complex__", seen<to_complex>, METH_NOARGS, nullptr},
    {},
};

}  // namespace adjoin::py
