// frontends/python/src/module.cpp: the module adjoin._C: takes the tables of libadjoin, joins as a
// frontend.
#include <cxxabi.h>
#include <pthread.h>
#include <unistd.h>

#include <chrono>

#include "compiled.hpp"
#include "dispatch.hpp"
#include "line.hpp"
#include "methods.hpp"
#include "package.hpp"
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

pthread_t ending_thread;

// As the interpreter would, had it a way to ask: see py.hpp.
[[noreturn]] void stay() {
  for (;;) pause();
}

PyObject* begin_to_end(PyObject*, PyObject*) {
  ending_thread = pthread_self();
  ending = true;
  Py_RETURN_NONE;
}

int watch_the_end() {
  static PyMethodDef method = {"begin_to_end", begin_to_end, METH_NOARGS, nullptr};
  Ref atexit(PyImport_ImportModule("atexit")), function(PyCFunction_New(&method, nullptr));
  Ref done(atexit && function ? PyObject_CallMethod(atexit.get(), "register", "O", function.get())
                              : nullptr);
  return done ? 0 : -1;
}

void* park() { return PyGILState_Check() ? PyEval_SaveThread() : nullptr; }

void unpark(void* state) {
  if (!state) return;
  before_python();
  try {
    PyEval_RestoreThread(static_cast<PyThreadState*>(state));
  } catch (const abi::__forced_unwind&) {
    stay();
  }
}

void collect() {
  if (!is_python_thread()) return;
  Gil gil;
  PyGC_Collect();
}

// Long work that keeps the lock (a scripted loop, a backward pass of small ops) lets other threads
// go on about as often as the interpreter would.
void give_way() {
  using Clock = std::chrono::steady_clock;
  static thread_local Clock::time_point last;
  const Clock::time_point now = Clock::now();
  // Rarer than Python's own 5 ms: whoever waits that long asks for the lock, and then it is handed
  // over; a wait that is disturbed begins anew.
  if (now - last < std::chrono::milliseconds(11) || !PyGILState_Check()) return;
  PyEval_RestoreThread(PyEval_SaveThread());
  last = Clock::now();
}

// Whether signals are for this thread. To ask takes the lock, which thousands of threads that wait
// for something else should not want each time. A child of fork has another main thread.
bool hears_signals() {
  static thread_local pid_t asked_in = 0;
  static thread_local bool hears = true;
  if (const pid_t here = getpid(); asked_in != here) {
    Gil gil;
    Ref threading(PyImport_ImportModule("threading"));
    Ref first(threading ? PyObject_CallMethod(threading.get(), "main_thread", nullptr) : nullptr);
    Ref ident(first ? PyObject_GetAttrString(first.get(), "ident") : nullptr);
    if (!ident) {
      forget_error();
      return true;
    }
    hears = PyLong_AsUnsignedLong(ident.get()) == PyThread_get_thread_ident();
    asked_in = here;
  }
  return hears;
}

int32_t interrupted() {
  if (!is_python_thread()) return 0;
  give_way();
  if (!hears_signals()) return 0;
  Gil gil;
  if (PyErr_CheckSignals() == 0) return 0;
  keep_interrupt();
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
  bool good = take("aj.core", &core) == 0 && take("aj.op", &dispatch) == 0 &&
              take("aj.autograd", &autograd) == 0 && take("aj.plugins", &plugins) == 0;
  return good ? 0 : -1;
}

int fill(PyObject* module) {
  constexpr int (*parts[])(PyObject*) = {
      init_dtype,       init_device,      init_size,        init_generator, init_object,
      init_tensor,      init_wrap,        init_profile,     init_shared,    init_override,
      init_seen,        init_ops,         init_numbers,     init_index,     init_convert,
      init_interop,     init_modes,       init_node,        init_hooks,     init_engine,
      init_function,    init_module_base, init_module_tree, init_runtime,   init_operate,
      init_streams,     init_optimizer,   init_autocast,    init_define,    init_pt_read,
      init_pt_write,    init_ipc,         init_memory,      init_transform, init_forward,
      init_distributed, init_dispatch,    init_graphs,      init_lazy,      init_compiled,
      init_package,
  };
  for (auto part : parts)
    if (part(module) < 0) return -1;
  return 0;
}

PyModuleDef contents = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "adjoin._C",
    .m_doc =
        "The native part of adjoin: tensors, ops and the tape, through the tables of libadjoin.",
    .m_size = -1,
};

// Types, tensors and the tape belong to one interpreter. Python asks here for each import in each
// interpreter.
PyObject* create(PyObject*, PyModuleDef*) {
  static PyObject* made = nullptr;
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(PyExc_ImportError,
                    "adjoin: this is a sub-interpreter, and tensors belong to Python's main "
                    "interpreter: import "
                    "adjoin there, or start a process");
    return nullptr;
  }
  if (made) return Py_NewRef(made);
  if (load() < 0) return nullptr;
  Ref module(PyModule_Create(&contents));
  if (!module || init_errors(module.get()) < 0 || join() < 0 || fill(module.get()) < 0 ||
      watch_the_end() < 0)
    return nullptr;
  made = Py_NewRef(module.get());
  return module.release();
}

PyModuleDef_Slot slots[] = {{Py_mod_create, reinterpret_cast<void*>(create)}, {}};
PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT, .m_name = "adjoin._C", .m_slots = slots};

}  // namespace

bool ending = false;

void wait_if_over() {
  if (!Py_IsInitialized() && !pthread_equal(pthread_self(), ending_thread)) stay();
}

void drop_last(PyObject* object) {
  try {
    Py_DECREF(object);
  } catch (const abi::__forced_unwind&) {
    stay();
  }
}

Gil::Gil() {
  before_python();
  try {
    state_ = PyGILState_Ensure();
  } catch (const abi::__forced_unwind&) {
    stay();
  }
}

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

PyMODINIT_FUNC PyInit__C() { return PyModuleDef_Init(&adjoin::py::definition); }
