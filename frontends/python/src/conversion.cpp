// frontends/python/src/conversion.cpp: to() with all its ways of being called, cpu() and its like.
#include "device.hpp"
#include "methods.hpp"
#include "op.hpp"
#include "parse.hpp"
#include "seen.hpp"

namespace adjoin::py {
namespace {

Row to_row("to");

struct Target {
  bool has_dtype = false, has_device = false;
  DLDataType dtype{};
  DLDevice device{};
};

// What stands in the first place: a dtype, a device, or another tensor.
bool read_target(PyObject* o, Target& to) {
  if (o == Py_None) return true;
  if (as_dtype(o, &to.dtype)) return to.has_dtype = true;
  if (is_tensor(o)) {
    to = {true, true, tensor_of(o)->dl.dtype, tensor_of(o)->dl.device};
    return true;
  }
  if (as_device(o, &to.device)) return to.has_device = true;
  if (!PyErr_Occurred())
    PyErr_Format(PyExc_TypeError,
                 "to(): argument must be adjoin.dtype, adjoin.device, str or Tensor, not %s",
                 Py_TYPE(o)->tp_name);
  return false;
}

bool is_there(const aj_tensor* t, const Target& to) {
  DLDevice now = t->dl.device, want = concrete(to.device);
  bool moves =
      to.has_device && (now.device_type != want.device_type || now.device_id != want.device_id);
  return !moves && (!to.has_dtype || same(t->dl.dtype, to.dtype));
}

aj_value device_value(DLDevice d) {
  aj_value v{};
  v.tag = AJ_DEVICE;
  v.v.device = concrete(d);
  return v;
}

PyObject* convert_tensor(PyObject* self, const Target& to, bool non_blocking, bool copy,
                         PyObject* format) {
  aj_tensor* t = tensor_of(self);
  aj_value none{}, layout{};
  if (given(format)) {
    if (Py_TYPE(format) != &memory_format_type) {
      PyErr_SetString(PyExc_TypeError,
                      "to(): argument 'memory_format' must be adjoin.memory_format");
      return nullptr;
    }
    layout.tag = AJ_MEMORY_FORMAT;
    layout.v.i = reinterpret_cast<TagObject*>(format)->value;
  } else if (!copy && is_there(t, to)) {
    return Py_NewRef(self);
  }
  aj_tensor* result =
      call_row(to_row, t, to.has_dtype ? value(to.dtype) : none,
               to.has_device ? device_value(to.device) : none, non_blocking, copy, layout);
  return result ? wrap(result) : nullptr;
}

// to('float32'): a device's name was read where a dtype was meant.
void explain_name(PyObject* name) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  Ref hint(call_helper("adjoin._hints", "dtype_meant", &name, 1));
  forget_error();
  if (!hint || PyUnicode_GET_LENGTH(hint.get()) == 0) return PyErr_Restore(type, value, traceback);
  Ref old_type(type), old_value(value), old_traceback(traceback);
  PyErr_Format(PyExc_RuntimeError, "to: no device is called %R%U", name, hint.get());
}

PyObject* to(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  static const Signature signature("to", 4, 0,
                                   {"first", "second", "third", "fourth", "dtype", "device",
                                    "other", "non_blocking", "copy", "memory_format"});
  PyObject* a[10];
  Target target;
  if (likely(n == 1 && !kwnames)) {
    PyObject* made = read_target(args[0], target)
                         ? convert_tensor(self, target, false, false, nullptr)
                         : nullptr;
    if (unlikely(!made) && PyUnicode_Check(args[0])) explain_name(args[0]);
    return made;
  }
  if (!signature.parse(args, n, kwnames, a)) return nullptr;
  int next = 0;
  for (; next < 2 && a[next] && !PyBool_Check(a[next]); ++next) {
    if (next == 1 && PyLong_CheckExact(a[next]))
      return PyErr_Format(
          PyExc_TypeError,
          "to(): a dtype is wanted behind the device, not int; an index stands in its place: "
          "to(0), or in its name, as 'cuda:0'");
    if (!read_target(a[next], target)) return nullptr;
  }
  for (int i = 4; i < 7; ++i)
    if (a[i] && !read_target(a[i], target)) return nullptr;
  bool non_blocking = truth(a[7] ? a[7] : next < 4 ? a[next] : nullptr, false);
  bool copy = truth(a[8] ? a[8] : next < 3 ? a[next + 1] : nullptr, false);
  if (PyErr_Occurred()) return nullptr;
  return convert_tensor(self, target, non_blocking, copy, a[9]);
}

PyObject* move_to(PyObject* self, const char* name, PyObject* const* args, Py_ssize_t n,
                  PyObject* kwnames) {
  static const Signature signature("cpu", 2, 0, {"device", "non_blocking", "memory_format"});
  PyObject* a[3];
  Target target;
  if (!signature.parse(args, n, kwnames, a)) return nullptr;
  target.has_device = true;
  target.device.device_id = -1;
  if (a[0] && PyLong_CheckExact(a[0])) {
    if (!device_index(a[0], &target.device.device_id)) return nullptr;
    if (failed(find_kind(name, &target.device))) return nullptr;
  } else if (given(a[0])) {
    if (!read_target(a[0], target)) return nullptr;
  } else if (failed(find_kind(name, &target.device))) {
    return nullptr;
  }
  bool non_blocking = truth(a[1], false);
  if (PyErr_Occurred()) return nullptr;
  return convert_tensor(self, target, non_blocking, false, a[2]);
}

PyObject* cpu(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return move_to(self, "cpu", args, n, kwnames);
}
PyObject* cuda(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return move_to(self, "cuda", args, n, kwnames);
}

}  // namespace

PyMethodDef conversion_methods[] = {
    {"to", method(seen_with_names<to>), METH_FASTCALL | METH_KEYWORDS,
     "The tensor in another dtype, on another device, or both."},
    {"cpu", method(seen_with_names<cpu>), METH_FASTCALL | METH_KEYWORDS,
     "The tensor in the host's memory."},
    {"cuda", method(seen_with_names<cuda>), METH_FASTCALL | METH_KEYWORDS,
     "The tensor on a CUDA device."},
    {},
};

}  // namespace adjoin::py
