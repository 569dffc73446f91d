// frontends/python/src/errors.cpp: a status becomes the exception of its kind; a Python exception
// passes through whole.
#include "errors.hpp"

#include <vector>

namespace adjoin::py {
namespace {

PyObject* out_of_memory;  // RuntimeError, as PyTorch's OutOfMemoryError
PyObject* device_mismatch;
PyObject* tensor_argument;
PyObject* dimension_error;  // a ValueError, and a RuntimeError: PyTorch raises either, by the path
PyObject* linalg_error;     // of matrices that are singular, or not positive-definite
PyObject* more;             // classes that parts of the package have given, by their names
PyObject*
    out_of_range;  // an IndexError, and a RuntimeError for who knows PyTorch's gather and scatter

// Exceptions that this thread has handed to the core, to come out as they are: known again by their
// number, which stands where other errors name a file, for who passes an error on may add words to
// it. Several are under way at once where one of them frees objects whose ends raise and catch
// others; of those that nobody asks for only the last few are kept.
struct Pending {
  PyObject* exception;
  uint64_t number;
};
constexpr size_t kUnderWay = 4;
constexpr uint64_t kInterrupt = 0;  // no error has this number
constexpr std::string_view kPlace = "a Python exception:";
thread_local std::vector<Pending> pending;
thread_local uint64_t last_number = 0;

void drop_pending_from(size_t place) {
  while (pending.size() > place) {
    PyObject* exception = pending.back().exception;
    pending.pop_back();
    Py_DECREF(exception);
  }
}

// Its place among them; -1: the error is nobody's exception.
int find_pending(const aj_status* s) {
  std::string_view where = view(core->status_where(s));
  if (!where.starts_with(kPlace)) return -1;
  where.remove_prefix(kPlace.size());
  for (size_t i = pending.size(); i-- > 0;)
    if (where == std::to_string(pending[i].number)) return static_cast<int>(i);
  return -1;
}

PyObject* class_of_code(int32_t code) {
  switch (code) {
    case AJ_CANCELLED:
      return PyExc_KeyboardInterrupt;
    case AJ_OUT_OF_MEMORY:
      return out_of_memory;
    case AJ_OUT_OF_RANGE:
      return out_of_range;
    case AJ_UNIMPLEMENTED:
      return PyExc_NotImplementedError;
    case AJ_WRONG_TYPE:
      return PyExc_TypeError;
    default:
      return PyExc_RuntimeError;
  }
}

PyObject* class_of(const aj_status* s) {
  std::string_view kind = view(core->status_kind(s));
  if (kind.empty()) return class_of_code(core->status_code(s));
  if (kind == "OutOfMemoryError") return out_of_memory;
  if (kind == "DeviceMismatchError") return device_mismatch;
  if (kind == "LinAlgError") return linalg_error;
  if (kind == "DimensionError") return dimension_error;
  if (kind == "IndexError") return out_of_range;
  PyObject* found = PyDict_GetItemString(PyEval_GetBuiltins(), std::string(kind).c_str());
  if (!found) found = PyDict_GetItemString(more, std::string(kind).c_str());
  bool usable = found && PyExceptionClass_Check(found);
  return usable ? found : PyExc_RuntimeError;
}

PyObject* exception_of(const aj_status* s) {
  if (int i = find_pending(s); i >= 0) return Py_NewRef(pending[static_cast<size_t>(i)].exception);
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

// What a signal's handler raised between two steps of the core, which tells only that something
// did. -1: nothing.
int find_interrupt(const aj_status* s) {
  int i = core->status_code(s) == AJ_CANCELLED ? static_cast<int>(pending.size()) - 1 : -1;
  while (i >= 0 && pending[static_cast<size_t>(i)].number != kInterrupt) --i;
  return i;
}

}  // namespace

void forget_error() {
  const bool interrupt = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
  PyErr_Clear();
  if (unlikely(interrupt)) PyErr_SetInterrupt();
}

PyObject* raise(aj_status* s) {
  if (PyErr_Occurred()) forget_error();  // the status tells more
  int i = find_pending(s);
  if (i < 0) i = find_interrupt(s);
  Ref e(i >= 0 ? Py_NewRef(pending[static_cast<size_t>(i)].exception) : exception_of(s));
  if (i >= 0) {
    drop_pending_from(static_cast<size_t>(i));
    PyErr_Restore(Py_NewRef(Py_TYPE(e.get())), Py_NewRef(e.get()),
                  PyException_GetTraceback(e.get()));
  } else if (e) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(e.get())), e.get());
  }
  core->status_free(s);
  return nullptr;
}

aj_status* named_for(aj_status* s, const char* who) {
  if (likely(!s)) return nullptr;
  std::string_view told = view(core->status_message(s));
  size_t colon = told.find(": key '");
  if (colon == told.npos || core->status_code(s) != AJ_UNIMPLEMENTED) return s;
  std::string words = who + std::string(told.substr(colon));
  aj_status* named =
      core->status_new(AJ_UNIMPLEMENTED, core->status_kind(s), str(words), nullptr, 0);
  core->status_free(s);
  return named;
}

aj_status* status_from_python() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback) PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  Ref text(PyObject_Str(value));
  const char* words = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (!words) forget_error();
  bool interrupt = PyErr_GivenExceptionMatches(value, PyExc_KeyboardInterrupt);
  if (pending.size() == kUnderWay) {
    Ref oldest(pending.front().exception);
    pending.erase(pending.begin());
  }
  pending.push_back({value, ++last_number});
  std::string message = words ? words : "an exception without text";
  return core->status_new(interrupt ? AJ_CANCELLED : AJ_UNKNOWN, str(Py_TYPE(value)->tp_name),
                          str(message), "a Python exception", last_number);
}

void keep_interrupt() {
  core->status_free(status_from_python());
  pending.back().number = kInterrupt;
}

PyObject* tensor_argument_error() { return tensor_argument; }

bool is_device_mismatch() { return PyErr_ExceptionMatches(device_mismatch); }

PyObject* take_string(aj_object* steal) {
  HeldObject text(steal);
  return to_python(core->string_get(steal));
}

PyObject* take_complex(aj_object* steal) {
  HeldObject number(steal);
  double re, im;
  return failed(core->complex_get(steal, &re, &im)) ? nullptr : PyComplex_FromDoubles(re, im);
}

// error_class(class): statuses of its name's kind are raised as it.
static PyObject* error_class(PyObject*, PyObject* given) {
  Ref name(PyObject_GetAttrString(given, "__name__"));
  if (!name || PyDict_SetItem(more, name.get(), given) < 0) return nullptr;
  Py_RETURN_NONE;
}
static PyMethodDef functions[] = {{"error_class", error_class, METH_O, nullptr}, {}};

int init_errors(PyObject* module) {
  more = PyDict_New();
  if (!more || PyModule_AddFunctions(module, functions) < 0) return -1;
  out_of_memory = PyErr_NewExceptionWithDoc(
      "adjoin.OutOfMemoryError", "Memory of a device is exhausted.", PyExc_RuntimeError, nullptr);
  if (!out_of_memory) return -1;
  device_mismatch =
      PyErr_NewExceptionWithDoc("adjoin.DeviceMismatchError",
                                "Tensors of one call are on several devices. `module` is the "
                                "innermost nn.Module that was called.",
                                PyExc_RuntimeError, nullptr);
  if (!device_mismatch || PyModule_AddObjectRef(module, "DeviceMismatchError", device_mismatch) < 0)
    return -1;
  linalg_error = PyErr_NewExceptionWithDoc(
      "adjoin.linalg.LinAlgError", "A matrix has no such factorisation, inverse or solution.",
      PyExc_RuntimeError, nullptr);
  if (!linalg_error || PyModule_AddObjectRef(module, "_LinAlgError", linalg_error) < 0) return -1;
  Ref also(PyTuple_Pack(2, PyExc_ValueError, PyExc_RuntimeError));
  dimension_error =
      also ? PyErr_NewExceptionWithDoc("adjoin._C.DimensionError",
                                       "A tensor has too few dimensions.", also.get(), nullptr)
           : nullptr;
  if (!dimension_error || PyModule_AddObjectRef(module, "DimensionError", dimension_error) < 0)
    return -1;
  Ref both(PyTuple_Pack(2, PyExc_TypeError, PyExc_RuntimeError));
  tensor_argument = both ? PyErr_NewExceptionWithDoc("adjoin._C.TensorArgumentError",
                                                     "A tensor was given where it does not serve.",
                                                     both.get(), nullptr)
                         : nullptr;
  if (!tensor_argument || PyModule_AddObjectRef(module, "TensorArgumentError", tensor_argument) < 0)
    return -1;
  Ref bases(PyTuple_Pack(2, PyExc_IndexError, PyExc_RuntimeError));
  if (!bases) return -1;
  out_of_range = PyErr_NewExceptionWithDoc(
      "adjoin.OutOfRangeError", "An op was given an index or a dimension that is not there.",
      bases.get(), nullptr);
  if (!out_of_range || PyModule_AddObjectRef(module, "OutOfRangeError", out_of_range) < 0)
    return -1;
  return PyModule_AddObjectRef(module, "OutOfMemoryError", out_of_memory);
}

}  // namespace adjoin::py
