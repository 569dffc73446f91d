// frontends/python/src/module.cpp: the module adjoin._C: takes the tables of libadjoin, joins as a frontend.
#include "line.hpp"
#include "methods.hpp"
#include "pt.hpp"

namespace adjoin::py {

const aj_core* core;
const aj_dispatch* dispatch;
const aj_autograd* autograd;
const aj_plugins* plugins;
int32_t frontend_id;

namespace {

template <class T>
int take(const char* name, const T** out) {
  *out = static_cast<const T*>(aj_get_interface(name, 1));
  if (*out) return 0;
  PyErr_Format(PyExc_ImportError, "adjoin: libadjoin.so has no interface '%s' of version 1", name);
  return -1;
}

void* park() { return PyGILState_Check() ? PyEval_SaveThread() : nullptr; }

void unpark(void* state) {
  if (state) PyEval_RestoreThread(static_cast<PyThreadState*>(state));
}

void collect() {
  if (!is_python_thread()) return;
  Gil gil;
  PyGC_Collect();
}

int32_t interrupted() {
  if (!is_python_thread()) return 0;
  Gil gil;
  if (PyErr_CheckSignals() == 0) return 0;
  core->status_free(status_from_python());  // kept as the thread's pending exception
  return 1;
}

int join() {
  auto f = sized<aj_frontend>();
  f.name = str("python");
  f.park = park;
  f.unpark = unpark;
  f.drop = drop_word;
  f.describe_line = describe_line;
  f.collect = collect;
  f.interrupted = interrupted;
  f.dtype_changed = dtype_changed;
  return failed(core->frontend_register(&f, &frontend_id)) ? -1 : 0;
}

int load() {
  if (core) return 0;
  bool good = take("aj.core", &core) == 0 && take("aj.op", &dispatch) == 0 && take("aj.autograd", &autograd) == 0 &&
              take("aj.plugins", &plugins) == 0;
  return good ? 0 : -1;
}

int fill(PyObject* module) {
  constexpr int (*parts[])(PyObject*) = {
      init_dtype,  init_device, init_size, init_generator, init_tensor, init_shared,   init_override, init_ops,         init_numbers,
      init_index,  init_convert, init_interop, init_modes,  init_node,      init_hooks,  init_engine,
      init_function, init_module_base, init_module_tree, init_runtime, init_operate, init_streams, init_optimizer,
       init_autocast, init_define, init_pt_read, init_pt_write,
  };
  for (auto part : parts)
    if (part(module) < 0) return -1;
  return 0;
}

PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "adjoin._C",
    .m_doc = "The native part of adjoin: tensors, ops and the tape, through the tables of libadjoin.",
    .m_size = -1,
};

}  // namespace

void drop_object(PyObject* object) {
  if (!object || !Py_IsInitialized()) return;
  auto later = [](void* o) {
    Py_DECREF(static_cast<PyObject*>(o));
    return 0;
  };
  if (!is_python_thread() && Py_AddPendingCall(later, object) == 0) return;
  Gil gil;
  Py_DECREF(object);
}

PyObject* helper(const char* module, const char* name) {
  Ref m(PyImport_ImportModule(module));
  if (!m) return nullptr;
  PyObject* found = PyDict_GetItemString(PyModule_GetDict(m.get()), name);
  if (!found) PyErr_Format(PyExc_AttributeError, "module '%s' has no attribute '%s'", module, name);
  return found;  // the module holds it
}

PyObject* call_helper(const char* module, const char* name, PyObject* const* args, size_t n) {
  PyObject* f = helper(module, name);
  return f ? PyObject_Vectorcall(f, args, n, nullptr) : nullptr;
}

int add_type(PyObject* module, PyTypeObject* type, const char* name) {
  if (PyType_Ready(type) < 0) return -1;
  return PyModule_AddObjectRef(module, name, reinterpret_cast<PyObject*>(type));
}

}  // namespace adjoin::py

PyMODINIT_FUNC PyInit__C() {
  using namespace adjoin::py;
  if (load() < 0) return nullptr;
  Ref module(PyModule_Create(&definition));
  if (!module || init_errors(module.get()) < 0 || join() < 0 || fill(module.get()) < 0) return nullptr;
  return module.release();
}
