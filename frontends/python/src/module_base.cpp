// frontends/python/src/module_base.cpp: ModuleBase, whose call goes straight to forward while no
// hook is set.
#include "errors.hpp"
#include "line.hpp"
#include "parse.hpp"

namespace adjoin::py {
namespace {

struct ModuleObject {
  PyObject_HEAD vectorcallfunc call;
};

PyObject *forward_name, *full_name, *getattr_name, *hook_names[4], *part_names[3];
PyObject* global_hooks;  // a tuple of dictionaries

bool is_empty(PyObject* d) { return !d || (PyDict_Check(d) && PyDict_GET_SIZE(d) == 0); }

bool has_hooks(PyObject* self) {
  for (Py_ssize_t i = 0; global_hooks && i < PyTuple_GET_SIZE(global_hooks); ++i)
    if (!is_empty(PyTuple_GET_ITEM(global_hooks, i))) return true;
  PyObject** place = _PyObject_GetDictPtr(self);
  if (!place || !*place) return true;  // __init__ did not run: the long way says so
  for (PyObject* name : hook_names) {
    PyObject* hooks = PyDict_GetItemWithError(*place, name);
    if (!hooks || !is_empty(hooks)) return true;
  }
  return false;
}

// The line that called the outermost module, so that what modules record is known by the user's
// line.
class SiteScope {
 public:
  SiteScope() {
    if (!autograd->grad_mode()) return;
    PyFrameObject* frame = PyEval_GetFrame();
    LineEntry* e = frame ? line_of(frame) : nullptr;
    if (!e || e->ours) return;
    set_ = true;
    old_ = std::exchange(call_site, e->id);
  }
  ~SiteScope() {
    if (set_) call_site = old_;
  }

 private:
  bool set_ = false;
  uint32_t old_ = 0;
};

// Which part of the network it was, told by each module that the exception passes: names are the
// outer ones' business.
PyObject* name_module(PyObject* self) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  Ref calls(PyImport_ImportModule("adjoin.nn.modules._calls"));
  Ref told(calls ? PyObject_CallMethod(calls.get(), "name_module", "OO", value, self) : nullptr);
  if (!told) forget_error();
  PyErr_Restore(type, value, traceback);
  return nullptr;
}

PyObject* told(PyObject* self, PyObject* result) {
  return unlikely(!result) && is_device_mismatch() ? name_module(self) : result;
}

PyObject* call_slot(PyObject* self, PyObject* args, PyObject* kwargs);
bool direct;  // the next call is that of ModuleBase, whatever __call__ the class has

// Somebody has set a __call__ on a class after it was made (tracers do, on Module for a while): its
// objects are still called by the fast way, which asks for it.
PyObject* call_replaced(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  Ref plain(PyTuple_New(n)), named(kwnames ? PyDict_New() : nullptr);
  if (!plain || (kwnames && !named)) return nullptr;
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(plain.get(), i, Py_NewRef(args[i]));
  for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); ++i)
    if (PyDict_SetItem(named.get(), PyTuple_GET_ITEM(kwnames, i), args[n + i]) < 0) return nullptr;
  return Py_TYPE(self)->tp_call(self, plain.get(), named.get());
}

PyObject* call_module(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  Py_ssize_t n = PyVectorcall_NARGS(nargsf), nkw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  if (unlikely(Py_TYPE(self)->tp_call != call_slot) && !std::exchange(direct, false))
    return call_replaced(self, args, n, kwnames);
  SiteScope scope;
  PyObject* name = likely(!has_hooks(self)) ? forward_name : full_name;
  if (nargsf & PY_VECTORCALL_ARGUMENTS_OFFSET) {
    auto** from = const_cast<PyObject**>(args) - 1;
    PyObject* kept = std::exchange(from[0], self);
    PyObject* result = PyObject_VectorcallMethod(
        name, from, static_cast<size_t>(n + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, kwnames);
    from[0] = kept;
    return told(self, result);
  }
  PyObject* few[8];
  std::unique_ptr<PyObject*[]> many;
  PyObject** all = few;
  if (n + nkw + 1 > 8) {
    many = std::make_unique<PyObject*[]>(static_cast<size_t>(n + nkw + 1));
    all = many.get();
  }
  all[0] = self;
  for (Py_ssize_t i = 0; i < n + nkw; ++i) all[i + 1] = args[i];
  return told(self, PyObject_VectorcallMethod(name, all, static_cast<size_t>(n + 1), kwnames));
}

// What ModuleBase.__call__ is to Python: always the call above, also where a class has another.
PyObject* call_slot(PyObject* self, PyObject* args, PyObject* kwargs) {
  direct = Py_TYPE(self)->tp_call != call_slot;
  PyObject* result = PyVectorcall_Call(self, args, kwargs);
  direct = false;
  return result;
}

// Python looks for a name that is alike when it shows the error, and not before: many only ask
// whether there is one.
PyObject* no_attribute(PyObject* self, PyObject* name) {
  Ref text(PyUnicode_FromFormat("'%s' object has no attribute '%U'", Py_TYPE(self)->tp_name, name));
  Ref error(text ? PyObject_CallOneArg(PyExc_AttributeError, text.get()) : nullptr);
  if (!error || PyObject_SetAttrString(error.get(), "name", name) < 0 ||
      PyObject_SetAttrString(error.get(), "obj", self) < 0)
    return nullptr;
  PyErr_SetObject(PyExc_AttributeError, error.get());
  return nullptr;
}

// A parameter, buffer or child module of that name; a new reference, NULL with AttributeError if
// there is none.
PyObject* get_part(PyObject* self, PyObject* name) {
  PyObject** place = _PyObject_GetDictPtr(self);
  for (PyObject* part : part_names) {
    PyObject* parts = place && *place ? PyDict_GetItemWithError(*place, part) : nullptr;
    PyObject* found = parts && PyDict_Check(parts) ? PyDict_GetItemWithError(parts, name) : nullptr;
    if (found) return Py_NewRef(found);
    if (PyErr_Occurred()) return nullptr;
  }
  return no_attribute(self, name);
}

// Most look-ups of a network are for its parts, so no AttributeError is made on the way to them. A
// class with a __getattr__ of its own is asked for them first.
PyObject* get_attribute(PyObject* self, PyObject* name) {
  if (unlikely(Py_TYPE(self)->tp_getattro != get_attribute))
    return PyObject_GenericGetAttr(self, name);
  PyObject* found = _PyObject_GenericGetAttrWithDict(self, name, nullptr, 1);
  return found || PyErr_Occurred() ? found : get_part(self, name);
}

PyMethodDef part_method = {"__getattr__", get_part, METH_O, nullptr};

PyObject* make(PyTypeObject* type, PyObject*, PyObject* kwargs) {
  if (kwargs && PyDict_GET_SIZE(kwargs)) {
    PyObject* args[] = {reinterpret_cast<PyObject*>(type), kwargs};
    Ref good(call_helper("adjoin._hints", "check_keywords", args, 2));
    if (!good) return nullptr;
  }
  PyObject* o = type->tp_alloc(type, 0);
  if (o) reinterpret_cast<ModuleObject*>(o)->call = call_module;
  return o;
}

int traverse(PyObject*, visitproc, void*) { return 0; }
int clear(PyObject*) { return 0; }

void dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  Py_TYPE(self)->tp_free(self);
}

extern PyTypeObject base_type;

// A class made in Python does not inherit the fast call in 3.11, although it inherits the function
// behind it; and because super().__getattr__ must exist, it gets the slow look-up, unless a
// __getattr__ of its own asks for that.
PyObject* init_subclass(PyObject* cls, PyObject* args, PyObject* kwargs) {
  PyObject* pair[] = {reinterpret_cast<PyObject*>(&base_type), cls};
  Ref next(PyObject_Vectorcall(reinterpret_cast<PyObject*>(&PySuper_Type), pair, 2,
                               nullptr));  // Generic, say
  Ref hook(next ? PyObject_GetAttrString(next.get(), "__init_subclass__") : nullptr);
  Ref done(hook ? PyObject_Call(hook.get(), args, kwargs) : nullptr);
  if (!done) return nullptr;
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  bool own = _PyType_Lookup(type, getattr_name) != PyDict_GetItem(base_type.tp_dict, getattr_name);
  if (!own) type->tp_getattro = get_attribute;
  if (type->tp_call == call_slot) type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
  Py_RETURN_NONE;
}

// Without it copy and pickle refuse an object that is larger than Python knows.
PyObject* new_arguments(PyObject*, PyObject*) { return PyTuple_New(0); }

PyMethodDef methods[] = {
    {"__getnewargs__", new_arguments, METH_NOARGS, nullptr},
    {"__init_subclass__",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(init_subclass)),
     METH_VARARGS | METH_KEYWORDS | METH_CLASS, nullptr},
    {},
};

PyTypeObject base_type = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "adjoin._C.ModuleBase",
    .tp_basicsize = sizeof(ModuleObject),
    .tp_dealloc = dealloc,
    .tp_vectorcall_offset = offsetof(ModuleObject, call),
    .tp_call = call_slot,
    .tp_getattro = get_attribute,
    .tp_flags =
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc =
        "What nn.Module inherits: calling it calls forward, or _call_impl when there are hooks.",
    .tp_traverse = traverse,
    .tp_clear = clear,
    .tp_methods = methods,
    .tp_new = make,
};

// The dictionaries of hooks for every module; while one of them has an entry, each call takes the
// long way.
PyObject* watch_global_hooks(PyObject*, PyObject* dicts) {
  Ref all(PySequence_Tuple(dicts));
  if (!all) return nullptr;
  Py_XDECREF(std::exchange(global_hooks, all.release()));
  Py_RETURN_NONE;
}

// Whether somebody sees the module's calls: hooks, or a forward of this one object.
PyObject* is_watched(PyObject*, PyObject* module) {
  if (!PyObject_TypeCheck(module, &base_type))
    return PyErr_Format(PyExc_TypeError, "module_is_watched: expected a Module, got %s",
                        Py_TYPE(module)->tp_name);
  PyObject** dict = _PyObject_GetDictPtr(module);
  return PyBool_FromLong(has_hooks(module) ||
                         (dict && *dict && PyDict_Contains(*dict, forward_name) > 0));
}

PyMethodDef functions[] = {
    {"watch_global_module_hooks", watch_global_hooks, METH_O, nullptr},
    {"module_is_watched", is_watched, METH_O, nullptr},
    {},
};

}  // namespace

int init_module_base(PyObject* module) {
  forward_name = PyUnicode_InternFromString("forward");
  full_name = PyUnicode_InternFromString("_call_impl");
  getattr_name = PyUnicode_InternFromString("__getattr__");
  constexpr const char* parts[] = {"_parameters", "_buffers", "_modules"};
  for (int i = 0; i < 3; ++i) part_names[i] = PyUnicode_InternFromString(parts[i]);
  constexpr const char* names[] = {"_forward_hooks", "_forward_pre_hooks", "_backward_hooks",
                                   "_backward_pre_hooks"};
  for (int i = 0; i < 4; ++i) hook_names[i] = PyUnicode_InternFromString(names[i]);
  if (add_type(module, &base_type, "ModuleBase") < 0) return -1;
  Ref part(PyDescr_NewMethod(&base_type, &part_method));
  if (!part || PyDict_SetItem(base_type.tp_dict, getattr_name, part.get()) < 0) return -1;
  return PyModule_AddFunctions(module, functions);
}

}  // namespace adjoin::py
