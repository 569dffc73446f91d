// frontends/python/src/modes.cpp: no_grad, enable_grad, set_grad_enabled and inference_mode:
// context managers and decorators.
#include "parse.hpp"

namespace adjoin::py {
namespace {

extern PyTypeObject no_grad_type, enable_grad_type, set_grad_type, inference_type;

struct ModeObject {
  PyObject_HEAD bool value;  // the mode that is wanted
  int8_t old_grad, old_inference;
};
ModeObject* cast(PyObject* o) { return reinterpret_cast<ModeObject*>(o); }

constexpr int kRecycled = 8;
PyObject* recycled[kRecycled];
int recycled_count = 0;

PyObject* make(PyTypeObject* type, bool value) {
  PyObject* o;
  if (recycled_count > 0) {
    o = PyObject_Init(recycled[--recycled_count], type);
  } else if (!(o = reinterpret_cast<PyObject*>(PyObject_New(ModeObject, type)))) {
    return nullptr;
  }
  cast(o)->value = value;
  cast(o)->old_grad = cast(o)->old_inference = 0;
  return o;
}

void dealloc(PyObject* self) {
  if (recycled_count < kRecycled) {
    recycled[recycled_count++] = self;
  } else {
    PyObject_Free(self);
  }
}

PyObject* enter(PyObject* self, PyObject*) {
  ModeObject* m = cast(self);
  if (Py_TYPE(self) == &inference_type) {
    m->old_inference = static_cast<int8_t>(autograd->set_inference_mode(m->value));
    m->old_grad =
        static_cast<int8_t>(m->value ? autograd->set_grad_mode(0) : autograd->grad_mode());
  } else if (Py_TYPE(self) == &set_grad_type) {
    autograd->set_grad_mode(m->value);  // the old mode was noted when the object was made
  } else {
    m->old_grad = static_cast<int8_t>(autograd->set_grad_mode(m->value));
  }
  Py_RETURN_NONE;
}

PyObject* leave(PyObject* self, PyObject* const*, Py_ssize_t) {
  if (Py_TYPE(self) == &inference_type) autograd->set_inference_mode(cast(self)->old_inference);
  autograd->set_grad_mode(cast(self)->old_grad);
  Py_RETURN_NONE;
}

// As a decorator: a function that runs in the mode.
PyObject* decorate(PyTypeObject* type, bool value, PyObject* f) {
  PyObject* args[] = {reinterpret_cast<PyObject*>(type), value ? Py_True : Py_False, f};
  return call_helper("adjoin.autograd.grad_mode", "_decorate", args, 3);
}

PyObject* call(PyObject* self, PyObject* args, PyObject*) {
  if (PyTuple_GET_SIZE(args) != 1) {
    PyErr_SetString(PyExc_TypeError, "a grad mode decorates one function");
    return nullptr;
  }
  if (Py_TYPE(self) == &set_grad_type) autograd->set_grad_mode(cast(self)->old_grad);
  return decorate(Py_TYPE(self), cast(self)->value, PyTuple_GET_ITEM(args, 0));
}

// no_grad(), or @no_grad without brackets.
PyObject* call_type(PyObject* type, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  auto* t = reinterpret_cast<PyTypeObject*>(type);
  Py_ssize_t n = PyVectorcall_NARGS(nargsf);
  bool value = t != &no_grad_type;
  if (likely(n == 0 && !kwnames)) return make(t, value);
  if (n == 1 && !kwnames && PyCallable_Check(args[0])) return decorate(t, value, args[0]);
  return PyErr_Format(PyExc_TypeError, "%s() takes no arguments", t->tp_name);
}

PyObject* call_with_mode(PyObject* type, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  auto* t = reinterpret_cast<PyTypeObject*>(type);
  static const Signature signature("mode", 1, 0, {"mode"});
  PyObject* a[1];
  if (!signature.parse(args, PyVectorcall_NARGS(nargsf), kwnames, a)) return nullptr;
  bool inference = t == &inference_type;
  if (!a[0] && !inference) {
    PyErr_SetString(PyExc_TypeError, "set_grad_enabled() missing 1 required argument: 'mode'");
    return nullptr;
  }
  if (inference && a[0] && !PyBool_Check(a[0]) && PyCallable_Check(a[0]))
    return decorate(t, true, a[0]);
  bool on = truth(a[0], true);
  if (PyErr_Occurred()) return nullptr;
  PyObject* o = make(t, on);
  if (o && !inference)
    cast(o)->old_grad = static_cast<int8_t>(autograd->set_grad_mode(cast(o)->value));
  return o;
}

PyMethodDef methods[] = {
    {"__enter__", enter, METH_NOARGS, nullptr},
    {"__exit__", method(leave), METH_FASTCALL, nullptr},
    {},
};

#define MODE(variable, name, doc, vector)         \
  PyTypeObject variable = {                       \
      .ob_base = {PyObject_HEAD_INIT(nullptr) 0}, \
      .tp_name = "adjoin.autograd." name,         \
      .tp_basicsize = sizeof(ModeObject),         \
      .tp_dealloc = dealloc,                      \
      .tp_call = call,                            \
      .tp_flags = Py_TPFLAGS_DEFAULT,             \
      .tp_doc = doc,                              \
      .tp_methods = methods,                      \
      .tp_vectorcall = vector,                    \
  }
MODE(no_grad_type, "no_grad", "Nothing is recorded inside.", call_type);
MODE(enable_grad_type, "enable_grad", "Recording is on inside, also within no_grad.", call_type);
MODE(set_grad_type, "set_grad_enabled",
     "Turns recording on or off, for good or for a with statement.", call_with_mode);
MODE(inference_type, "inference_mode", "No recording, and tensors that never take part in it.",
     call_with_mode);
#undef MODE

PyObject* is_grad_enabled(PyObject*, PyObject*) { return PyBool_FromLong(autograd->grad_mode()); }
PyObject* is_inference(PyObject*, PyObject*) { return PyBool_FromLong(autograd->inference_mode()); }

PyObject* set_anomaly(PyObject*, PyObject* flags) {
  long f = PyLong_AsLong(flags);
  if (f == -1 && PyErr_Occurred()) return nullptr;
  return PyLong_FromLong(autograd->set_anomaly_mode(static_cast<int32_t>(f)));
}

PyMethodDef functions[] = {
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS, "Whether operations are recorded now."},
    {"is_inference_mode_enabled", is_inference, METH_NOARGS, "Whether inference mode is on."},
    {"set_anomaly_mode", set_anomaly, METH_O, nullptr},
    {},
};

}  // namespace

int init_modes(PyObject* module) {
  if (add_type(module, &no_grad_type, "no_grad") < 0 ||
      add_type(module, &enable_grad_type, "enable_grad") < 0 ||
      add_type(module, &set_grad_type, "set_grad_enabled") < 0 ||
      add_type(module, &inference_type, "inference_mode") < 0)
    return -1;
  return PyModule_AddFunctions(module, functions);
}

}  // namespace adjoin::py
