// frontends/python/src/size.cpp: a shape is a tuple of ints that knows its product and keeps its
// type.
#include "size.hpp"

#include <utility>

#include "package.hpp"

namespace adjoin::py {
namespace {

PyObject* as_size(PyObject* tuple) {  // takes the reference
  Ref t(tuple);
  if (!t || !PyTuple_CheckExact(t.get())) return t.release();
  return PyObject_CallOneArg(reinterpret_cast<PyObject*>(&size_type), t.get());
}

PyObject* new_size(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  Ref self(PyTuple_Type.tp_new(type, args, kwargs));
  if (!self) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self.get()); ++i) {
    PyObject* item = PyTuple_GET_ITEM(self.get(), i);
    if (PyLong_Check(item)) continue;
    Ref number(PyNumber_Index(item));
    if (!number) {
      PyErr_Format(PyExc_TypeError, "Size(): item %zd must be int, not %s", i,
                   Py_TYPE(item)->tp_name);
      return nullptr;
    }
    PyTuple_SET_ITEM(self.get(), i, number.release());
    Py_DECREF(item);
  }
  return self.release();
}

PyObject* repr(PyObject* self) {
  Ref list(PySequence_List(self)), package = package_name();
  return list && package ? PyUnicode_FromFormat("%U.Size(%R)", package.get(), list.get()) : nullptr;
}

PyObject* numel(PyObject* self, PyObject*) {
  int64_t n = 1;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i)
    n *= PyLong_AsLongLong(PyTuple_GET_ITEM(self, i));
  return PyErr_Occurred() ? nullptr : PyLong_FromLongLong(n);
}

PyObject* reduce(PyObject* self, PyObject*) {
  Ref plain(PyTuple_GetSlice(self, 0, PyTuple_GET_SIZE(self)));
  return plain ? Py_BuildValue("O(O)", &size_type, plain.get()) : nullptr;
}

PyObject* add(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(a) || !PyTuple_Check(b)) Py_RETURN_NOTIMPLEMENTED;
  return as_size(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
}

PyObject* concat(PyObject* a, PyObject* b) {
  return as_size(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
}
PyObject* repeat(PyObject* a, Py_ssize_t n) {
  return as_size(PyTuple_Type.tp_as_sequence->sq_repeat(a, n));
}

PyObject* subscript(PyObject* self, PyObject* key) {
  return as_size(PyTuple_Type.tp_as_mapping->mp_subscript(self, key));
}

// Asking for a shape is frequent and short-lived: one object of each usual length is kept for the
// next.
constexpr Py_ssize_t kKeptSizes = 5;
PyObject* kept[kKeptSizes + 1] = {};

void dealloc(PyObject* self) {
  Py_ssize_t n = Py_SIZE(self);
  if (Py_TYPE(self) != &size_type || n > kKeptSizes || kept[n])
    return PyTuple_Type.tp_dealloc(self);
  if (PyObject_GC_IsTracked(self)) PyObject_GC_UnTrack(self);
  for (Py_ssize_t i = 0; i < n; ++i) {
    Py_DECREF(PyTuple_GET_ITEM(self, i));
    PyTuple_SET_ITEM(self, i, nullptr);
  }
  kept[n] = self;
}

PyObject* unfilled(int32_t n) {
  if (n <= kKeptSizes && kept[n]) {
    PyObject* t = std::exchange(kept[n], nullptr);
    _Py_NewReference(t);
    return t;
  }
  PyObject* t = size_type.tp_alloc(&size_type, n);
  if (t) PyObject_GC_UnTrack(t);  // ints cannot make a cycle
  return t;
}

PyNumberMethods number = {.nb_add = add};
PySequenceMethods sequence = {.sq_concat = concat, .sq_repeat = repeat};
PyMappingMethods mapping = {.mp_subscript = subscript};
// While this thread makes a program for several sizes: the class of numbers.
constinit thread_local PyObject* noted_as __attribute__((tls_model("initial-exec"))) = nullptr;

PyObject* note_sizes(PyObject*, PyObject* cls) {
  Py_XSETREF(noted_as, cls == Py_None ? nullptr : Py_NewRef(cls));
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"note_sizes", note_sizes, METH_O,
     "note_sizes(cls, /)\n--\n\nIn this thread sizes of tensors are of this class of ints from now "
     "on; None: "
     "ints."},
    {},
};

PyMethodDef methods[] = {
    {"numel", numel, METH_NOARGS, "The number of elements of a tensor of this size."},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {},
};

}  // namespace

PyTypeObject size_type = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "adjoin.Size",
    .tp_dealloc = dealloc,
    .tp_repr = repr,
    .tp_as_number = &number,
    .tp_as_sequence = &sequence,
    .tp_as_mapping = &mapping,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "A tensor's shape.",
    .tp_methods = methods,
    .tp_base = &PyTuple_Type,
    .tp_new = new_size,
};

PyObject* one_size(int64_t n) {
  if (likely(!noted_as)) return PyLong_FromLongLong(n);
  return PyObject_CallFunction(noted_as, "L", static_cast<long long>(n));
}

PyObject* size_object(const int64_t* sizes, int32_t n) {
  PyObject* t = unfilled(n);
  if (!t) return nullptr;
  for (int32_t i = 0; i < n; ++i) {
    PyObject* item = one_size(sizes[i]);
    if (!item) {
      Py_DECREF(t);
      return nullptr;
    }
    PyTuple_SET_ITEM(t, i, item);
  }
  return t;
}

PyObject* tuple_of(const int64_t* values, int32_t n) {
  PyObject* t = PyTuple_New(n);
  if (!t) return nullptr;
  for (int32_t i = 0; i < n; ++i) PyTuple_SET_ITEM(t, i, PyLong_FromLongLong(values[i]));
  return t;
}

int init_size(PyObject* module) {
  return PyModule_AddFunctions(module, functions) < 0 ? -1 : add_type(module, &size_type, "Size");
}

}  // namespace adjoin::py
