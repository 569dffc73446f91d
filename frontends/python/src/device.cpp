// frontends/python/src/device.cpp: the device object, and the default device that factory functions
// use.
#include "device.hpp"

#include <algorithm>
#include <deque>
#include <string>

#include "errors.hpp"

namespace adjoin::py {

constinit thread_local DLDevice default_device = {};

aj_status* find_kind(std::string_view name, DLDevice* out) {
  int32_t type = 0;
  aj_status* s = core->device_find(str(name), &type);
  if (!s) out->device_type = DLDeviceType(type);
  return s;
}

namespace {

DeviceObject* cast(PyObject* o) { return reinterpret_cast<DeviceObject*>(o); }

PyObject* make(DLDevice d) {
  auto* o = PyObject_New(DeviceObject, &device_type);
  if (!o) return nullptr;
  o->device = d;
  o->entered = nullptr;
  return reinterpret_cast<PyObject*>(o);
}

// Devices may be named before a plugin provides them; who uses one is told what is missing. Their
// kinds count from -1 down, in this table.
std::deque<std::string>& absent_names() {
  static auto* names = new std::deque<std::string>;
  return *names;
}

std::string_view kind_name(int32_t type) {
  return type < 0 ? std::string_view(absent_names()[size_t(-1 - type)])
                  : view(core->device_name(type));
}

int32_t absent_kind(std::string_view name) {
  auto& names = absent_names();
  auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end()) it = names.emplace(names.end(), name);
  return -1 - static_cast<int32_t>(it - names.begin());
}

// acme, or acme@plugin: what a plugin may call a device.
bool is_name(std::string_view name) {
  auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  std::string_view kind = name.substr(0, name.find('@'));
  return !kind.empty() && kind.size() <= 32 && kind[0] >= 'a' && kind[0] <= 'z' &&
         std::all_of(kind.begin(), kind.end(), plain);
}

// Of any device that can be: absent where no plugin provides it.
bool parse(std::string_view text, DLDevice* out) {
  size_t colon = text.find(':');
  std::string_view name = text.substr(0, colon);
  out->device_id = -1;
  bool good = is_name(name);
  if (colon != std::string_view::npos) {
    std::string_view digits = text.substr(colon + 1);
    int64_t id = 0;
    good = good && !digits.empty() && digits.size() < 6;
    for (char c : digits) {
      good = good && c >= '0' && c <= '9';
      id = id * 10 + (c - '0');
    }
    out->device_id = static_cast<int32_t>(id);
  }
  if (!good) {
    std::string low(text);
    for (char& c : low) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    DLDevice other;
    if (low != text && parse(low, &other))
      PyErr_Format(PyExc_RuntimeError,
                   "device: '%s' is not a device: names of devices are in lower case; use '%s'",
                   std::string(text).c_str(), low.c_str());
    else if (!PyErr_Occurred())
      PyErr_Format(PyExc_RuntimeError,
                   "device: '%s' is not a device: wanted a name in lower case, or name:index, as "
                   "'cpu' or 'cuda:0'",
                   std::string(text).c_str());
    return false;
  }
  if (aj_status* s = find_kind(name, out)) {
    core->status_free(s);
    out->device_type = DLDeviceType(absent_kind(name));
  }
  return true;
}

}  // namespace

bool device_index(PyObject* number, int32_t* out) {
  long index = PyLong_AsLong(number);
  if (index == -1 && PyErr_Occurred()) return false;
  if (index < 0 || index > INT32_MAX) {
    PyErr_Format(PyExc_RuntimeError, "device: index %ld is %s", index,
                 index < 0 ? "negative" : "too large");
    return false;
  }
  *out = static_cast<int32_t>(index);
  return true;
}

namespace {

// A bare index is one of the accelerator's devices.
bool read_index(PyObject* o, DLDevice* out) {
  int32_t index;
  if (!device_index(o, &index)) return false;
  Ref kind(call_helper("adjoin._accelerator", "kind_of_an_index", nullptr, 0));
  const char* name = kind ? PyUnicode_AsUTF8(kind.get()) : nullptr;
  if (!name || !parse(name, out)) return false;
  out->device_id = index;
  return true;
}

// Of a device object, a text or an index; false without an error if o is neither.
bool read_name(PyObject* o, DLDevice* out) {
  if (Py_TYPE(o) == &device_type) {
    *out = cast(o)->device;
    return true;
  }
  if (PyLong_CheckExact(o)) return read_index(o, out);
  if (!PyUnicode_Check(o)) return false;
  Py_ssize_t n;
  const char* text = PyUnicode_AsUTF8AndSize(o, &n);
  return text && parse({text, static_cast<size_t>(n)}, out);
}

PyObject* new_device(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  PyObject *type, *index = Py_None;
  constexpr const char* names[] = {"type", "index", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", const_cast<char**>(names), &type,
                                   &index))
    return nullptr;
  DLDevice d;
  if (!read_name(type, &d)) {
    if (!PyErr_Occurred())
      PyErr_Format(PyExc_TypeError, "device(): argument 'type' must be str or device, not %s",
                   Py_TYPE(type)->tp_name);
    return nullptr;
  }
  if (index != Py_None) {
    if (d.device_id >= 0) {
      PyErr_SetString(PyExc_RuntimeError,
                      "device: the index is given twice: in the name and as an argument");
      return nullptr;
    }
    if (!device_index(index, &d.device_id)) return nullptr;
  }
  return make(d);
}

void dealloc(PyObject* self) {
  Py_XDECREF(cast(self)->entered);
  PyObject_Free(self);
}

PyObject* name_of(PyObject* self, void*) {
  return to_python(str(kind_name(cast(self)->device.device_type)));
}

PyObject* index_of(PyObject* self, void*) {
  int32_t id = cast(self)->device.device_id;
  return id < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(id);
}

PyObject* to_text(PyObject* self) {
  Ref name(name_of(self, nullptr));
  if (!name) return nullptr;
  int32_t id = cast(self)->device.device_id;
  return id < 0 ? name.release() : PyUnicode_FromFormat("%U:%d", name.get(), id);
}

PyObject* repr(PyObject* self) {
  Ref name(name_of(self, nullptr));
  if (!name) return nullptr;
  int32_t id = cast(self)->device.device_id;
  if (id < 0) return PyUnicode_FromFormat("device(type='%U')", name.get());
  return PyUnicode_FromFormat("device(type='%U', index=%d)", name.get(), id);
}

Py_hash_t hash(PyObject* self) {
  DLDevice d = cast(self)->device;
  size_t kind = std::hash<std::string_view>()(kind_name(d.device_type));
  size_t both = kind * 1000003 + static_cast<size_t>(d.device_id);
  return static_cast<Py_hash_t>(both & PY_SSIZE_T_MAX);  // -1 would say that it failed
}

PyObject* compare_devices(PyObject* a, PyObject* b, int op) {
  if ((op != Py_EQ && op != Py_NE) || Py_TYPE(b) != &device_type) Py_RETURN_NOTIMPLEMENTED;
  DLDevice x = cast(a)->device, y = cast(b)->device;
  bool same_kind = x.device_type == y.device_type;
  if (unlikely(x.device_type < 0 || y.device_type < 0))
    same_kind = kind_name(x.device_type) == kind_name(y.device_type);
  bool equal = same_kind && x.device_id == y.device_id;
  return PyBool_FromLong(equal == (op == Py_EQ));
}

PyObject* reduce(PyObject* self, PyObject*) {
  Ref text(to_text(self));
  return text ? Py_BuildValue("O(O)", &device_type, text.get()) : nullptr;
}

PyObject* enter(PyObject* self, PyObject*) {
  DeviceObject* o = cast(self);
  DLDevice d;
  if (!as_device(self, &d)) return nullptr;
  if (!o->entered && !(o->entered = PyList_New(0))) return nullptr;
  Ref old(Py_BuildValue("ii", default_device.device_type, default_device.device_id));
  if (!old || PyList_Append(o->entered, old.get()) < 0) return nullptr;
  default_device = concrete(d);
  return Py_NewRef(self);
}

PyObject* leave(PyObject* self, PyObject*) {
  DeviceObject* o = cast(self);
  Py_ssize_t n = o->entered ? PyList_GET_SIZE(o->entered) : 0;
  if (n == 0) {
    PyErr_SetString(PyExc_RuntimeError, "device: left without having been entered");
    return nullptr;
  }
  PyObject* old = PyList_GET_ITEM(o->entered, n - 1);
  default_device.device_type = DLDeviceType(PyLong_AsLong(PyTuple_GET_ITEM(old, 0)));
  default_device.device_id = static_cast<int32_t>(PyLong_AsLong(PyTuple_GET_ITEM(old, 1)));
  if (PyList_SetSlice(o->entered, n - 1, n, nullptr) < 0) return nullptr;
  Py_RETURN_NONE;
}

PyGetSetDef properties[] = {
    {"type", name_of, nullptr, "The name of the device's kind.", nullptr},
    {"index", index_of, nullptr, "Which one of its kind, or None.", nullptr},
    {},
};
PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__enter__", enter, METH_NOARGS, nullptr},
    {"__exit__", leave, METH_VARARGS, nullptr},
    {},
};

PyObject* set_default(PyObject*, PyObject* o) {
  if (o == Py_None) {
    default_device = {};
    Py_RETURN_NONE;
  }
  DLDevice d;
  if (!as_device(o, &d)) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_TypeError,
                      "set_default_device(): argument 'device' must be str or device");
    return nullptr;
  }
  default_device = concrete(d);
  Py_RETURN_NONE;
}

PyObject* get_default(PyObject*, PyObject*) {
  if (default_device.device_type) return device_object(default_device);
  return make({kDLCPU, -1});
}

PyObject* count(PyObject*, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) return nullptr;
  int32_t type = 0, n = 0;
  if (failed(core->device_find(str(text), &type)) || failed(core->device_count(type, &n)))
    return nullptr;
  return PyLong_FromLong(n);
}

PyMethodDef functions[] = {
    {"set_default_device", set_default, METH_O,
     "Where factory functions make tensors; None lets the core decide."},
    {"get_default_device", get_default, METH_NOARGS, "Where factory functions make tensors."},
    {"device_count", count, METH_O, "How many devices of a name there are."},
    {},
};

}  // namespace

PyTypeObject device_type = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "adjoin.device",
    .tp_basicsize = sizeof(DeviceObject),
    .tp_dealloc = dealloc,
    .tp_repr = repr,
    .tp_hash = hash,
    .tp_str = to_text,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc =
        "Where a tensor's memory is: a name and an index. As a context manager: the default of "
        "factory functions.",
    .tp_richcompare = compare_devices,
    .tp_methods = methods,
    .tp_getset = properties,
    .tp_new = new_device,
};

PyObject* device_object(DLDevice d) {
  static PyObject* recent[2];
  static DLDevice recent_device[2];
  static const int32_t meta = [] {
    DLDevice found{};
    if (aj_status* s = find_kind("meta", &found)) core->status_free(s);
    return int32_t(found.device_type);
  }();
  if (d.device_type == kDLCPU || d.device_type == meta)
    d.device_id = -1;  // there is one, and PyTorch does not number it
  int slot = d.device_type != kDLCPU;
  PyObject*& cached = recent[slot];
  DLDevice& key = recent_device[slot];
  if (likely(cached && key.device_type == d.device_type && key.device_id == d.device_id))
    return Py_NewRef(cached);
  PyObject* fresh = make(d);
  if (!fresh) return nullptr;
  Py_XDECREF(std::exchange(cached, Py_NewRef(fresh)));
  key = d;
  return fresh;
}

DLDevice host_device() {
  static bool asked = false;
  int32_t type = kDLCPU;
  if (unlikely(!asked)) {
    asked = true;
    if (failed(core->device_find(str("cpu"), &type)))
      forget_error();  // whoever allocates gets the reason
  }
  return {kDLCPU, 0};
}

bool as_device(PyObject* o, DLDevice* out) {
  if (!read_name(o, out)) return false;
  return likely(out->device_type >= 0) || !failed(find_kind(kind_name(out->device_type), out));
}

int init_device(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) return -1;
  return add_type(module, &device_type, "device");
}

}  // namespace adjoin::py
