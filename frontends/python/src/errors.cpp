// frontends/python/src/errors.cpp: a status becomes the exception of its kind; a Python exception passes through whole.
#include "errors.hpp"

namespace adjoin::py {
namespace {

PyObject* out_of_memory;  // RuntimeError, as PyTorch's OutOfMemoryError
PyObject* device_mismatch;
PyObject* out_of_range;  // an IndexError, and a RuntimeError for who knows PyTorch's gather and scatter

// The exception that this thread last handed to the core, and the words it was handed over with.
struct Pending {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  std::string message;
};
thread_local Pending pending;

void forget_pending() {
  Py_CLEAR(pending.type);
  Py_CLEAR(pending.value);
  Py_CLEAR(pending.traceback);
  pending.message.clear();
}

PyObject* class_of_code(int32_t code) {
  switch (code) {
    case AJ_CANCELLED: return PyExc_KeyboardInterrupt;
    case AJ_OUT_OF_MEMORY: return out_of_memory;
    case AJ_OUT_OF_RANGE: return out_of_range;
    case AJ_UNIMPLEMENTED: return PyExc_NotImplementedError;
    case AJ_WRONG_TYPE: return PyExc_TypeError;
    default: return PyExc_RuntimeError;
  }
}

PyObject* class_of(const aj_status* s) {
  std::string_view kind = view(core->status_kind(s));
  if (kind.empty()) return class_of_code(core->status_code(s));
  if (kind == "OutOfMemoryError") return out_of_memory;
  if (kind == "DeviceMismatchError") return device_mismatch;
  if (kind == "IndexError") return out_of_range;
  PyObject* found = PyDict_GetItemString(PyEval_GetBuiltins(), std::string(kind).c_str());
  bool usable = found && PyExceptionClass_Check(found);
  return usable ? found : PyExc_RuntimeError;
}

// The tape may have added where the failing node was recorded; the exception is still the user's own.
bool is_pending(const aj_status* s) {
  if (!pending.value) return false;
  std::string_view message = view(core->status_message(s));
  return message.starts_with(pending.message) &&
         (message.size() == pending.message.size() || message.substr(pending.message.size()).starts_with("; recorded at "));
}

PyObject* exception_of(const aj_status* s) {
  if (is_pending(s)) return Py_NewRef(pending.value);
  Ref message(to_python(core->status_message(s)));
  if (!message) return nullptr;
  Ref e(PyObject_CallOneArg(class_of(s), message.get()));
  if (!e) return nullptr;
  if (const aj_status* cause = core->status_cause(s)) {
    PyObject* inner = exception_of(cause);
    if (!inner) return nullptr;
    PyException_SetCause(e.get(), inner);
  }
  return e.release();
}

}  // namespace

PyObject* raise(aj_status* s) {
  if (PyErr_Occurred()) PyErr_Clear();  // the status tells more
  if (is_pending(s)) {
    PyErr_Restore(std::exchange(pending.type, nullptr), std::exchange(pending.value, nullptr),
                  std::exchange(pending.traceback, nullptr));
  } else if (core->status_code(s) == AJ_CANCELLED && pending.value) {
    PyErr_Restore(std::exchange(pending.type, nullptr), std::exchange(pending.value, nullptr),
                  std::exchange(pending.traceback, nullptr));
  } else {
    Ref e(exception_of(s));
    if (e) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(e.get())), e.get());
  }
  forget_pending();
  core->status_free(s);
  return nullptr;
}

aj_status* status_from_python() {
  forget_pending();
  PyErr_Fetch(&pending.type, &pending.value, &pending.traceback);
  PyErr_NormalizeException(&pending.type, &pending.value, &pending.traceback);
  if (pending.traceback) PyException_SetTraceback(pending.value, pending.traceback);
  Ref text(pending.value ? PyObject_Str(pending.value) : nullptr);
  const char* words = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (!words) PyErr_Clear();
  pending.message = words ? words : "an exception without text";
  const char* kind = pending.type ? reinterpret_cast<PyTypeObject*>(pending.type)->tp_name : "RuntimeError";
  bool interrupt = pending.type && PyErr_GivenExceptionMatches(pending.type, PyExc_KeyboardInterrupt);
  return core->status_new(interrupt ? AJ_CANCELLED : AJ_UNKNOWN, str(kind), str(pending.message), nullptr, 0);
}

bool is_device_mismatch() { return PyErr_ExceptionMatches(device_mismatch); }

PyObject* take_string(aj_object* steal) {
  HeldObject text(steal);
  return to_python(core->string_get(steal));
}

int init_errors(PyObject* module) {
  out_of_memory = PyErr_NewExceptionWithDoc("adjoin.OutOfMemoryError", "Memory of a device is exhausted.",
                                            PyExc_RuntimeError, nullptr);
  if (!out_of_memory) return -1;
  device_mismatch = PyErr_NewExceptionWithDoc(
      "adjoin.DeviceMismatchError", "Tensors of one call are on several devices. `module` is the innermost nn.Module that was called.",
      PyExc_RuntimeError, nullptr);
  if (!device_mismatch || PyModule_AddObjectRef(module, "DeviceMismatchError", device_mismatch) < 0) return -1;
  Ref bases(PyTuple_Pack(2, PyExc_IndexError, PyExc_RuntimeError));
  if (!bases) return -1;
  out_of_range = PyErr_NewExceptionWithDoc("adjoin.OutOfRangeError", "An op was given an index or a dimension that is not there.",
                                           bases.get(), nullptr);
  if (!out_of_range || PyModule_AddObjectRef(module, "OutOfRangeError", out_of_range) < 0) return -1;
  return PyModule_AddObjectRef(module, "OutOfMemoryError", out_of_memory);
}

}  // namespace adjoin::py
