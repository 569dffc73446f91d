// frontends/python/src/index.cpp: x[key], x[key] = value, len, in, and iteration.
#include "index.hpp"

#include "convert.hpp"
#include "dtype.hpp"
#include "methods.hpp"
#include "op.hpp"
#include "seen.hpp"

namespace adjoin::py {
namespace {

Row select_row("select"), index_row("index"), index_put_row("index_put_"), fill_row("fill_"),
    copy_row("copy_"), masked_fill_row("masked_fill_"), eq_row("eq"), any_row("any");

aj_value as_list(const Indexed& x, std::vector<aj_tensor*>& pointers) {
  pointers.reserve(x.tensors.size());
  for (const HeldTensor& t : x.tensors) pointers.push_back(t.get());
  aj_value v{};
  v.tag = AJ_TENSORS;
  v.aux = static_cast<uint32_t>(pointers.size());
  v.v.tensors = pointers.data();
  return v;
}

// A subclass with its own __torch_function__ sees the access as a call of Tensor's slot.
PyObject* override_access(const char* name, PyObject* const* args, Py_ssize_t n) {
  PyObject* slot = PyDict_GetItemString(tensor_type.tp_dict, name);
  return call_override(slot, args, n, nullptr);
}

PyObject* subscript(PyObject* self, PyObject* key) {
  if (unlikely(looked_on(self))) {
    PyObject* args[] = {self, key};
    return override_access("__getitem__", args, 2);
  }
  aj_tensor* t = tensor_of(self);
  if (likely(PyLong_CheckExact(key) && t->dl.ndim > 0)) {
    int overflow;
    int64_t index = PyLong_AsLongLongAndOverflow(key, &overflow);
    int64_t n = t->dl.shape[0];
    if (likely(!overflow && index >= -n && index < n)) {
      aj_tensor* row = call_row(select_row, t, int64_t{0}, index);
      return row ? wrap(row) : nullptr;
    }
  }
  Indexed x = apply_key(t, key);
  if (!x.view) return nullptr;
  if (!x.advanced()) return wrap(x.view.release());
  std::vector<aj_tensor*> pointers;
  aj_tensor* result = call_row(index_row, x.view.get(), as_list(x, pointers));
  return result ? wrap(result) : nullptr;
}

// Leading dimensions of size 1 that the target lacks do not count: x[0] = ones(1, 3).
HeldTensor without_leading_ones(aj_tensor* v, int wanted) {
  int extra = v->dl.ndim - wanted;
  bool ones = extra > 0;
  for (int i = 0; i < extra; ++i) ones = ones && v->dl.shape[i] == 1;
  if (!ones) {
    core->retain(v);
    return HeldTensor(v);
  }
  Ref o(wrap_borrowed(v));
  Ref shape(size_object(v->dl.shape + extra, wanted));
  Ref changed(o && shape ? PyObject_CallMethod(o.get(), "reshape", "(O)", shape.get()) : nullptr);
  if (!changed) return HeldTensor();
  core->retain(tensor_of(changed.get()));
  return HeldTensor(tensor_of(changed.get()));
}

HeldTensor value_tensor(PyObject* value, aj_tensor* target) {
  if (is_tensor(value)) {
    core->retain(tensor_of(value));
    return HeldTensor(tensor_of(value));
  }
  return HeldTensor(tensor_from_data(value, &target->dl.dtype, target->dl.device));
}

bool done(aj_tensor* result) {
  if (result) core->release(result);
  return result != nullptr;
}

bool assign_view(aj_tensor* target, PyObject* value, const aj_value* number) {
  if (number) return done(call_row(fill_row, target, *number));
  HeldTensor v = value_tensor(value, target);
  if (v) v = without_leading_ones(v.get(), target->dl.ndim);
  return v && done(call_row(copy_row, target, v.get()));
}

// x[mask] = number, with a mask of x's own shape.
bool is_whole_mask(const Indexed& x) {
  if (x.tensors.size() != 1 || !x.tensors[0]) return false;
  const aj_tensor* m = x.tensors[0].get();
  const DLDevice here = m->dl.device, there = x.view->dl.device;
  return m->dl.dtype.code == kDLBool && m->dl.ndim == x.view->dl.ndim &&
         here.device_type == there.device_type && here.device_id == there.device_id;
}

bool assign_at(const Indexed& x, PyObject* value, const aj_value* number) {
  if (number && is_whole_mask(x))
    return done(call_row(masked_fill_row, x.view.get(), x.tensors[0].get(), *number));
  const DLDataType into = x.view->dl.dtype;
  if (number && number->tag == AJ_COMPLEX && into.code != kDLComplex) {
    DtypeObject* dtype = dtype_object(into);
    PyErr_Format(PyExc_RuntimeError,
                 "x[...] = %R: a complex number does not fit into %U; give its real part", value,
                 dtype->name);
    return false;
  }
  HeldTensor v = value_tensor(value, x.view.get());
  if (!v) return false;
  std::vector<aj_tensor*> pointers;
  return done(call_row(index_put_row, x.view.get(), as_list(x, pointers), v.get()));
}

int assign(PyObject* self, PyObject* key, PyObject* value) {
  if (!value) {
    PyErr_SetString(PyExc_TypeError,
                    "Tensor does not support deleting items: its memory has no holes; index what "
                    "is to stay, or cat() the rest");
    return -1;
  }
  if (unlikely(looked_on(self))) {
    PyObject* args[] = {self, key, value};
    Ref result(override_access("__setitem__", args, 3));
    return result ? 0 : -1;
  }
  Scratch scratch;
  aj_value number;
  bool is_number = as_number(value, &number, scratch);
  if (PyErr_Occurred()) return -1;
  aj_tensor* t = tensor_of(self);
  if (const int32_t l = layout_of(t); unlikely(l != AJ_LAYOUT_STRIDED && l != AJ_LAYOUT_OPAQUE)) {
    // What an index gives is no window into it: the write would be lost.
    PyErr_SetString(PyExc_TypeError,
                    "Cannot assign to a sparse tensor; make one of changed indices and values, or "
                    "write to to_dense()");
    return -1;
  }
  if (PyLong_CheckExact(key) && t->dl.ndim > 0) {
    HeldTensor row(call_row(select_row, t, int64_t{0}, int64_t{PyLong_AsLongLong(key)}));
    return row && assign_view(row.get(), value, is_number ? &number : nullptr) ? 0 : -1;
  }
  Indexed x = apply_key(t, key);
  if (!x.view) return -1;
  const aj_value* n = is_number ? &number : nullptr;
  bool good = x.advanced() ? assign_at(x, value, n) : assign_view(x.view.get(), value, n);
  return good ? 0 : -1;
}

Py_ssize_t length(PyObject* self) {
  if (unlikely(looked_on(self))) {
    Ref answer(override_slot("__len__", self));
    return answer ? PyNumber_AsSsize_t(answer.get(), PyExc_OverflowError) : -1;
  }
  aj_tensor* t = tensor_of(self);
  if (t->dl.ndim > 0) return t->dl.shape[0];
  PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
  return -1;
}

int contains(PyObject* self, PyObject* item) {
  if (unlikely(looked_on(self))) {
    PyObject* args[] = {self, item};
    Ref answer(override_access("__contains__", args, 2));
    return answer ? PyObject_IsTrue(answer.get()) : -1;
  }
  Scratch scratch;
  aj_value v;
  if (is_tensor(item)) {
    v = value(tensor_of(item));
  } else if (!as_number(item, &v, scratch)) {
    if (PyLong_Check(item))
      PyErr_Format(PyExc_OverflowError, "in: %R is too large for 64 bits", item);
    else if (!PyErr_Occurred())
      PyErr_Format(PyExc_RuntimeError,
                   "in: Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
                   "<class '%s'>.",
                   Py_TYPE(item)->tp_name);
    return -1;
  }
  HeldTensor equal(call_row(eq_row, tensor_of(self), v));
  HeldTensor some(equal ? call_row(any_row, equal.get()) : nullptr);
  Ref result(some ? wrap(some.release()) : nullptr);
  return result ? PyObject_IsTrue(result.get()) : -1;
}

}  // namespace

PySequenceMethods sequence_methods = {.sq_length = length, .sq_contains = contains};
PyMappingMethods mapping_methods = {
    .mp_length = length, .mp_subscript = subscript, .mp_ass_subscript = assign};

PyObject* iterate(PyObject* self) {
  if (unlikely(looked_on(self))) {
    Ref rows(PyObject_CallMethod(self, "unbind", "i", 0));
    return rows ? PyObject_GetIter(rows.get()) : nullptr;
  }
  if (tensor_of(self)->dl.ndim == 0) {
    PyErr_SetString(
        PyExc_TypeError,
        "iteration over a 0-d tensor: it has one number and no rows; use .item(), or .reshape(1)");
    return nullptr;
  }
  PyObject* unbind = find_function("unbind");
  Ref parts(unbind ? PyObject_CallOneArg(unbind, self) : nullptr);
  return parts ? PyObject_GetIter(parts.get()) : nullptr;
}

int init_index(PyObject*) { return 0; }

}  // namespace adjoin::py
