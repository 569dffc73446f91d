// frontends/python/src/autocast.cpp: the thread's casts per kind of device, for
// adjoin/amp/autocast_mode.py.
#include "device.hpp"
#include "dtype.hpp"
#include "errors.hpp"

namespace adjoin::py {
namespace {

PyObject* as_tuple(const aj_autocast& a) {
  return Py_BuildValue("(OOOi)", a.enabled ? Py_True : Py_False, dtype_object(a.dtype),
                       a.keep ? Py_True : Py_False, a.depth);
}

// autocast_state(name): enabled, dtype, keep, depth.
PyObject* state(PyObject*, PyObject* name) {
  Py_ssize_t n;
  const char* text = PyUnicode_AsUTF8AndSize(name, &n);
  int32_t type;
  auto now = sized<aj_autocast>();
  if (!text || failed(core->device_find({text, static_cast<size_t>(n)}, &type)) ||
      failed(dispatch->autocast(type, &now, nullptr)))
    return nullptr;
  return as_tuple(now);
}

// set_autocast(name, enabled, dtype or None, keep, depth): what held before.
PyObject* set(PyObject*, PyObject* args) {
  const char* name;
  PyObject* dtype;
  int enabled, keep, depth;
  int32_t type;
  if (!PyArg_ParseTuple(args, "spOpi", &name, &enabled, &dtype, &keep, &depth)) return nullptr;
  auto next = sized<aj_autocast>(), before = sized<aj_autocast>();
  if (dtype != Py_None && !as_dtype(dtype, &next.dtype)) return nullptr;
  next.enabled = enabled, next.keep = keep, next.depth = depth;
  if (failed(core->device_find(str(name), &type)) ||
      failed(dispatch->autocast(type, &before, &next)))
    return nullptr;
  return as_tuple(before);
}

PyMethodDef functions[] = {
    {"autocast_state", state, METH_O, "autocast_state(device_type): enabled, dtype, keep, depth"},
    {"set_autocast", set, METH_VARARGS, "set_autocast(device_type, enabled, dtype, keep, depth)"},
    {},
};

}  // namespace

int init_autocast(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace adjoin::py
