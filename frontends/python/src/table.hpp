// frontends/python/src/table.hpp: a device's own table, found and called for Python.
#pragma once

#include <string>

#include "device.hpp"
#include "errors.hpp"

namespace adjoin::py {

struct Target {
  DLDevice device;
  const aj_device_vtbl* table;
  void* self() const { return table->self; }
  int32_t id() const { return device.device_id; }
};

inline bool is_device(PyObject* o, DLDevice* out) {
  if (as_device(o, out)) return true;
  if (!PyErr_Occurred())
    PyErr_Format(PyExc_TypeError, "wanted a device, not %s", Py_TYPE(o)->tp_name);
  return false;
}

inline bool find(PyObject* o, Target* out) {
  if (!is_device(o, &out->device)) return false;
  out->device = concrete(out->device);
  return !failed(plugins->device_table(out->device, &out->table));
}

inline PyObject* lacks(const Target& t, const char* what) {
  return PyErr_Format(PyExc_NotImplementedError, "%s: its plugin offers no %s",
                      std::string(view(core->device_name(t.device.device_type))).c_str(), what);
}

// A call that may wait: other threads of Python go on meanwhile.
template <class F>
bool waited(F&& f) {
  aj_status* s = nullptr;
  Py_BEGIN_ALLOW_THREADS;
  s = f();
  Py_END_ALLOW_THREADS;
  return !failed(s);
}

}  // namespace adjoin::py
