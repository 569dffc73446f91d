// frontends/python/src/override.cpp: __torch_function__: subclasses and strangers that want to see
// calls with their objects.
#include "program.hpp"

namespace adjoin::py {

thread_local bool overrides_disabled = false;
int modes_entered = 0;

namespace {

PyObject* protocol;  // "__torch_function__", interned
PyObject* disabled;  // the implementation that means: treat me as a plain tensor

PyObject* disabled_impl(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n < 2) {
    PyErr_SetString(PyExc_TypeError, "__torch_function__: wanted func, types, args, kwargs");
    return nullptr;
  }
  Ref empty(PyTuple_New(0));
  bool old = std::exchange(overrides_disabled, true);
  PyObject* kwargs = n > 3 && PyDict_Check(args[3]) ? args[3] : nullptr;
  PyObject* result = PyObject_Call(args[0], n > 2 ? args[2] : empty.get(), kwargs);
  overrides_disabled = old;
  return result;
}

PyMethodDef disabled_def = {"_disabled_torch_function_impl", method(disabled_impl), METH_FASTCALL,
                            "Runs the function as if its arguments were plain tensors."};

bool type_overrides(PyTypeObject* type) {
  PyObject* found = _PyType_Lookup(type, protocol);  // borrowed
  if (!found) return false;
  if (found == PyDict_GetItem(tensor_type.tp_dict, protocol)) return type != &tensor_type;
  if (Py_TYPE(found) == &PyClassMethod_Type || Py_TYPE(found) == &PyStaticMethod_Type) {
    Ref inner(PyObject_GetAttrString(found, "__func__"));
    return inner.get() != disabled;
  }
  return found != disabled;
}

struct Cached {
  PyTypeObject* type;
  unsigned int version;
  bool overrides;
};
Cached cache[64];

// Adds the type of o to the list if it overrides; subclasses stand before their bases.
bool note_type(std::vector<PyObject*>& found, PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  bool wants = is_tensor(o) ? overrides(type)
                            : _PyType_Lookup(type, protocol) != nullptr && !PyType_Check(o);
  if (!wants) return false;
  size_t at = found.size();
  for (size_t i = 0; i < found.size(); ++i) {
    if (Py_TYPE(found[i]) == type) return true;
    if (at == found.size() && PyType_IsSubtype(type, Py_TYPE(found[i]))) at = i;
  }
  found.insert(found.begin() + static_cast<std::ptrdiff_t>(at), o);
  return true;
}

void note_types(std::vector<PyObject*>& found, PyObject* const* args, Py_ssize_t n) {
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (PyTuple_CheckExact(args[i]) || PyList_CheckExact(args[i])) {
      for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(args[i]); ++k)
        note_type(found, PySequence_Fast_ITEMS(args[i])[k]);
    } else {
      note_type(found, args[i]);
    }
  }
}

PyObject* types_tuple(const std::vector<PyObject*>& found) {
  PyObject* t = PyTuple_New(static_cast<Py_ssize_t>(found.size()));
  for (size_t i = 0; t && i < found.size(); ++i)
    PyTuple_SET_ITEM(t, static_cast<Py_ssize_t>(i),
                     Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(found[i]))));
  return t;
}

struct GuardObject {
  PyObject_HEAD bool old;
};

PyObject* guard_enter(PyObject* self, PyObject*) {
  reinterpret_cast<GuardObject*>(self)->old = std::exchange(overrides_disabled, true);
  Py_RETURN_NONE;
}
PyObject* guard_exit(PyObject* self, PyObject*) {
  overrides_disabled = reinterpret_cast<GuardObject*>(self)->old;
  Py_RETURN_NONE;
}
PyMethodDef guard_methods[] = {
    {"__enter__", guard_enter, METH_NOARGS, nullptr},
    {"__exit__", guard_exit, METH_VARARGS, nullptr},
    {},
};
PyTypeObject guard_type = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "adjoin.DisableTorchFunctionSubclass",
    .tp_basicsize = sizeof(GuardObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Inside, subclasses of Tensor are treated as plain tensors.",
    .tp_methods = guard_methods,
    .tp_new = PyType_GenericNew,
};

thread_local std::vector<PyObject*> mode_stack;  // owned; the last one sees calls first

// The last mode's answer; meanwhile the ones before it stand alone.
PyObject* call_mode(PyObject* const* a, PyObject* types) {
  PyObject* mode = mode_stack.back();
  mode_stack.pop_back();
  PyObject* result = PyObject_CallMethodObjArgs(mode, protocol, a[0], types, a[2], a[3], nullptr);
  mode_stack.push_back(mode);
  return result;
}

PyObject* push_mode(PyObject*, PyObject* mode) {
  mode_stack.push_back(Py_NewRef(mode));
  ++modes_entered;
  Py_RETURN_NONE;
}

PyObject* pop_mode(PyObject*, PyObject*) {
  if (mode_stack.empty())
    return PyErr_Format(PyExc_RuntimeError, "no TorchFunctionMode was entered");
  PyObject* mode = mode_stack.back();
  mode_stack.pop_back();
  --modes_entered;
  return mode;
}

PyObject* modes(PyObject*, PyObject*) {
  PyObject* list = PyList_New(0);
  for (PyObject* mode : mode_stack)
    if (list && PyList_Append(list, mode) < 0) Py_CLEAR(list);
  return list;
}

// call_torch_function(func, relevant, args, kwargs): None if nobody overrides. For functions
// written in Python.
PyObject* call_from_python(PyObject*, PyObject* const* a, Py_ssize_t n) {
  if (n != 4 || !PyTuple_Check(a[1]) || !PyTuple_Check(a[2])) {
    PyErr_SetString(PyExc_TypeError, "handle_torch_function: wanted func, relevant, args, kwargs");
    return nullptr;
  }
  std::vector<PyObject*> found;
  note_types(found, PySequence_Fast_ITEMS(a[1]), PyTuple_GET_SIZE(a[1]));
  Ref types(types_tuple(found));
  if (types && mode_on()) {
    Ref result(call_mode(a, types.get()));
    if (!result || result.get() != Py_NotImplemented) return result.release();
  }
  for (PyObject* o : found) {
    Ref f(PyObject_GetAttr(o, protocol));
    Ref result(f && types
                   ? PyObject_CallFunctionObjArgs(f.get(), a[0], types.get(), a[2], a[3], nullptr)
                   : nullptr);
    if (!result || result.get() != Py_NotImplemented) return result.release();
  }
  return PyErr_Format(PyExc_TypeError,
                      "no implementation found for %R on the types of its arguments", a[0]);
}

// redispatch_function(): the function's next question for an override is answered with no.
thread_local bool passes_next = false;

PyObject* pass_next(PyObject*, PyObject* on) {
  return PyBool_FromLong(std::exchange(passes_next, on == Py_True));
}

PyObject* has_override_among(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (unlikely(std::exchange(passes_next, false))) Py_RETURN_FALSE;
  return PyBool_FromLong(any_override(args, n));
}

PyObject* has_override(PyObject* module, PyObject* given) {
  Ref args(PySequence_Fast(given, "has_torch_function: wanted a sequence of arguments"));
  if (!args) return nullptr;
  return has_override_among(module, PySequence_Fast_ITEMS(args.get()),
                            PySequence_Fast_GET_SIZE(args.get()));
}

PyObject* has_override_unary(PyObject* module, PyObject* o) {
  return has_override_among(module, &o, 1);
}

PyMethodDef functions[] = {
    {"handle_torch_function", method(call_from_python), METH_FASTCALL, nullptr},
    {"has_torch_function", has_override, METH_O,
     "Whether a mode is active, or one of a sequence of arguments has a __torch_function__."},
    {"has_torch_function_unary", has_override_unary, METH_O,
     "Whether a mode is active, or the argument has a __torch_function__ of its own."},
    {"has_torch_function_variadic", method(has_override_among), METH_FASTCALL,
     "Whether a mode is active, or one of the arguments has a __torch_function__ of its own."},
    {"pass_next_override", pass_next, METH_O, nullptr},
    {"push_mode", push_mode, METH_O, nullptr},
    {"pop_mode", pop_mode, METH_NOARGS, nullptr},
    {"modes", modes, METH_NOARGS, nullptr},
    {},
};

}  // namespace

bool overrides(PyTypeObject* type) {
  if (overrides_disabled) return false;
  Cached& c = cache[reinterpret_cast<uintptr_t>(type) >> 5 & 63];
  if (likely(c.type == type && c.version == type->tp_version_tag && c.version)) return c.overrides;
  bool answer = type_overrides(type);
  c = {type, type->tp_version_tag, answer};
  return answer;
}

bool mode_here() { return !mode_stack.empty(); }

bool any_override(PyObject* const* args, Py_ssize_t n) {
  if (mode_on()) return true;
  if (overrides_disabled) return false;
  while (n && (*args == Py_None || is_exact_tensor(*args))) ++args, --n;  // what most calls have
  if (!n) return false;
  std::vector<PyObject*> found;
  note_types(found, args, n);
  return !found.empty();
}

PyObject* call_override(PyObject* func, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  Ref positional(PyTuple_New(n)), keywords(PyDict_New());
  if (!positional || !keywords) return nullptr;
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(positional.get(), i, Py_NewRef(args[i]));
  Py_ssize_t nkw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t k = 0; k < nkw; ++k)
    if (PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(kwnames, k), args[n + k]) < 0)
      return nullptr;
  Ref relevant(PyTuple_New(n + nkw));
  for (Py_ssize_t i = 0; relevant && i < n + nkw; ++i)
    PyTuple_SET_ITEM(relevant.get(), i, Py_NewRef(args[i]));
  if (!relevant) return nullptr;
  PyObject* all[] = {func, relevant.get(), positional.get(), keywords.get()};
  return call_from_python(nullptr, all, 4);
}

int init_override(PyObject* module) {
  protocol = PyUnicode_InternFromString("__torch_function__");
  disabled = PyCFunction_New(&disabled_def, nullptr);
  if (!protocol || !disabled || PyModule_AddObjectRef(module, disabled_def.ml_name, disabled) < 0)
    return -1;
  if (add_type(module, &guard_type, "DisableTorchFunctionSubclass") < 0) return -1;
  return PyModule_AddFunctions(module, functions);
}

}  // namespace adjoin::py
