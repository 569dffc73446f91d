// frontends/python/src/runtime.cpp: the process around tensors: ops by name, plugins, threads,
// memory, defaults.
#include <adjoin/abi/switches.h>
#include <adjoin/abi/tuner.h>

#include <algorithm>

#include "op.hpp"
#include "parse.hpp"

namespace adjoin::py {
namespace {

bool text_of(PyObject* o, std::string_view* out) {
  Py_ssize_t n;
  const char* s = PyUnicode_AsUTF8AndSize(o, &n);
  if (s) *out = {s, static_cast<size_t>(n)};
  return s != nullptr;
}

// find_op(name, public=False): the callable of a name, or None.
PyObject* find_op(PyObject*, PyObject* const* args, Py_ssize_t n) {
  std::string_view name;
  if (n < 1 || !text_of(args[0], &name)) return nullptr;
  bool in_place;
  OpEntry* e = find_entry(name, &in_place);
  if (!e) return PyErr_Occurred() ? nullptr : Py_NewRef(Py_None);
  bool shown = n < 2 || args[1] != Py_True;
  for (Program* p = e->first; p && !shown; p = p->next) shown = p->function;
  if (!shown) Py_RETURN_NONE;
  return Py_NewRef(in_place ? e->function_in_place : e->function);
}

PyObject* return_type(PyObject*, PyObject* name) {
  std::string_view text;
  bool in_place;
  OpEntry* e = text_of(name, &text) ? find_entry(text, &in_place) : nullptr;
  if (!e) return PyErr_Occurred() ? nullptr : Py_NewRef(Py_None);
  for (Program* p = e->first; p; p = p->next)
    if (p->nvisible > 1) return Py_XNewRef(reinterpret_cast<PyObject*>(named_type(*p)));
  Py_RETURN_NONE;
}

// op_names(in_place=False): in_place: the forms name_ that are derived, too.
PyObject* op_names(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return list_names(n > 0 && args[0] == Py_True);
}

PyObject* load_plugin(PyObject*, PyObject* path) {
  PyObject* bytes = nullptr;
  if (!PyUnicode_FSConverter(path, &bytes)) return nullptr;
  Ref name(bytes);
  if (failed(aj_load_plugin(PyBytes_AS_STRING(bytes))) || sync_ops() < 0) return nullptr;
  Py_RETURN_NONE;
}

PyObject* add_plugin_folder(PyObject*, PyObject* path) {
  std::string_view text;
  if (!text_of(path, &text) || failed(plugins->add_folder(str(text)))) return nullptr;
  Py_RETURN_NONE;
}

PyObject* plugin_dict(const aj_plugin_info& i) {
  auto s = [](aj_str t) { return to_python(t); };
  return Py_BuildValue("{s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:I}", "name", s(i.name), "version",
                       s(i.version), "vendor", s(i.vendor), "path", s(i.path), "provides",
                       s(i.provides), "ops", s(i.ops), "reason", s(i.reason), "state", i.state);
}

PyObject* plugin_list(PyObject*, PyObject*) {
  Ref all(PyList_New(0));
  if (!all) return nullptr;
  auto visit = [](void* self, const aj_plugin_info* info) -> int32_t {
    Ref entry(plugin_dict(*info));
    return !entry || PyList_Append(static_cast<PyObject*>(self), entry.get()) < 0;
  };
  return failed(aj_list_plugins(visit, all.get())) || PyErr_Occurred() ? nullptr : all.release();
}

PyObject* why_plugin(PyObject*, PyObject* name) {
  std::string_view text;
  aj_object* out = nullptr;
  if (!text_of(name, &text) || failed(plugins->why(str(text), &out))) return nullptr;
  return take_string(out);
}

PyObject* explain_op(PyObject*, PyObject* const* args, Py_ssize_t n) {
  std::string_view name, device = "cpu";
  if (n < 1 || !text_of(args[0], &name) || (n > 1 && !text_of(args[1], &device))) return nullptr;
  const aj_op* op = dispatch->find_op(str(name));
  if (!op) return PyErr_Format(PyExc_KeyError, "explain_op: no op named '%U'", args[0]);
  aj_object* out = nullptr;
  return failed(dispatch->op_explain(op, str(device), &out)) ? nullptr : take_string(out);
}

// What the registry says of a name: a dictionary per overload.
PyObject* op_info(PyObject*, PyObject* name) {
  std::string_view text;
  bool in_place;
  OpEntry* e = text_of(name, &text) ? find_entry(text, &in_place) : nullptr;
  if (!e) return PyErr_Occurred() ? nullptr : Py_NewRef(Py_None);
  Ref list(PyList_New(0));
  for (Program* p = e->first; list && p; p = p->next) {
    auto i = sized<aj_op_info>();
    if (failed(dispatch->op_info(p->op, &i))) return nullptr;
    if (dispatch->find_op(i.name) != p->op)
      continue;  // a newer version of its plugin does without it
    if (failed(dispatch->op_info(p->op, &i))) return nullptr;  // a pack that has come says more
    Ref d(Py_BuildValue("{s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:O,s:O,s:O,s:O,s:O}", "name",
                        to_python(i.name), "schema", to_python(i.schema), "doc", to_python(i.doc),
                        "kind", to_python(i.kind), "tags", to_python(i.tags), "test",
                        to_python(i.test), "provider", to_python(i.provider), "in_place",
                        i.flags & AJ_INFO_IN_PLACE ? Py_True : Py_False, "out",
                        i.flags & AJ_INFO_OUT ? Py_True : Py_False, "differentiable",
                        i.flags & AJ_INFO_DIFFERENTIABLE ? Py_True : Py_False, "composite",
                        i.flags & AJ_INFO_COMPOSITE ? Py_True : Py_False, "allocates",
                        i.flags & AJ_OP_ALLOCATES ? Py_True : Py_False));
    if (!d || PyList_Append(list.get(), d.get()) < 0) return nullptr;
  }
  return list.release();
}

const aj_services* services() {
  static auto* table = static_cast<const aj_services*>(aj_get_interface("aj.service", 1));
  if (!table)
    PyErr_SetString(PyExc_NotImplementedError,
                    "services: libadjoin.so has no interface 'aj.service'");
  return table;
}

// services(slot): (name, file, priority) of each, the chosen one first.
PyObject* service_list(PyObject*, PyObject* slot) {
  std::string_view name;
  if (!services() || !text_of(slot, &name)) return nullptr;
  Ref list(PyList_New(0));
  for (uint32_t i = 0; list && i < services()->count(str(name)); ++i) {
    auto d = sized<aj_service_def>();
    if (failed(services()->at(str(name), i, &d))) return nullptr;
    auto* blas = name.starts_with("aj.blas/") ? static_cast<const aj_blas*>(d.table) : nullptr;
    aj_str file = blas && AJ_HAS_FN(blas, aj_blas, path) ? blas->path(blas->self) : str("");
    Ref entry(Py_BuildValue("(NNi)", to_python(d.name), to_python(file), d.priority));
    if (!entry || PyList_Append(list.get(), entry.get()) < 0) return nullptr;
  }
  return list.release();
}

PyObject* choose_service(PyObject*, PyObject* args) {
  const char *slot, *name;
  if (!PyArg_ParseTuple(args, "ss", &slot, &name) || !services()) return nullptr;
  if (failed(services()->choose(str(slot), str(name)))) return nullptr;
  Py_RETURN_NONE;
}

PyObject* chosen_service(PyObject*, PyObject* slot) {
  std::string_view name;
  if (!services() || !text_of(slot, &name)) return nullptr;
  return to_python(AJ_HAS_FN(services(), aj_services, chosen) ? services()->chosen(str(name))
                                                              : str(""));
}

const void* service_of(const char* name, const char* device) {
  if (!services()) return nullptr;
  std::string slot = std::string(name) + device;
  auto d = sized<aj_service_def>();
  return failed(services()->at(str(slot), 0, &d)) ? nullptr : d.table;
}
const aj_tuner* tuner_of(const char* device) {
  return static_cast<const aj_tuner*>(service_of("aj.tuner/", device));
}

// switch_set(device, name, on): how the device's libraries compute; returns what was set before.
PyObject* switch_set(PyObject*, PyObject* args) {
  const char *device, *name;
  int on;
  if (!PyArg_ParseTuple(args, "ssp", &device, &name, &on)) return nullptr;
  auto* table = static_cast<const aj_switches*>(service_of("aj.switches/", device));
  int32_t previous = 0;
  if (!table || failed(table->set(table->self, str(name), on, &previous))) return nullptr;
  return PyBool_FromLong(previous);
}

// tuner_show(device, all): what was measured about products, "what: it is" a line.
PyObject* tuner_show(PyObject*, PyObject* args) {
  const char* device;
  int all;
  if (!PyArg_ParseTuple(args, "sp", &device, &all)) return nullptr;
  const aj_tuner* tuner = tuner_of(device);
  aj_object* out = nullptr;
  return !tuner || failed(tuner->show(tuner->self, all, &out)) ? nullptr : take_string(out);
}

// tuner_load(device, path): a file takes the place of what was known; "": forgets it.
PyObject* tuner_load(PyObject*, PyObject* args) {
  const char *device, *path;
  if (!PyArg_ParseTuple(args, "ss", &device, &path)) return nullptr;
  const aj_tuner* tuner = tuner_of(device);
  if (!tuner || failed(tuner->load(tuner->self, str(path)))) return nullptr;
  Py_RETURN_NONE;
}

// tuner_serving(device, dtype, turn_a, turn_b, m, n, k): the name of who computes such a product.
PyObject* tuner_serving(PyObject*, PyObject* args) {
  const char* device;
  PyObject* dtype;
  int turn_a, turn_b;
  auto g = sized<aj_gemm>();
  long long m, n, k;
  if (!PyArg_ParseTuple(args, "sOppLLL", &device, &dtype, &turn_a, &turn_b, &m, &n, &k))
    return nullptr;
  if (!as_dtype(dtype, &g.dtype))
    return PyErr_Format(PyExc_TypeError, "serving(): dtype must be adjoin.dtype");
  if (m < 1 || n < 1 || k < 1)
    return PyErr_Format(PyExc_ValueError, "serving(): sizes must be positive");
  g.trans_a = turn_a, g.trans_b = turn_b, g.batch = 1, g.m = m, g.n = n, g.k = k, g.alpha = 1;
  g.lda = turn_a ? m : k, g.ldb = turn_b ? k : n, g.ldc = n;
  const aj_tuner* tuner = tuner_of(device);
  aj_object* out = nullptr;
  return !tuner || failed(tuner->serving(tuner->self, &g, &out)) ? nullptr : take_string(out);
}

PyObject* get_threads(PyObject*, PyObject*) { return PyLong_FromLong(core->num_threads()); }
PyObject* set_threads(PyObject*, PyObject* n) {
  long count = PyLong_AsLong(n);
  if (count == -1 && PyErr_Occurred()) return nullptr;
  auto asked = static_cast<int32_t>(std::clamp(count, long{INT32_MIN}, long{INT32_MAX}));
  if (failed(core->set_num_threads(asked))) return nullptr;
  Py_RETURN_NONE;
}

PyObject* get_default_dtype(PyObject*, PyObject*) {
  return Py_XNewRef(reinterpret_cast<PyObject*>(dtype_object(core->default_dtype())));
}
PyObject* set_default_dtype(PyObject*, PyObject* o) {
  DLDataType d;
  if (!as_dtype(o, &d))
    return PyErr_Format(PyExc_TypeError,
                        "set_default_dtype(): argument 'd' must be adjoin.dtype, not %s",
                        Py_TYPE(o)->tp_name);
  if (failed(core->set_default_dtype(d))) return nullptr;
  Py_RETURN_NONE;
}

PyObject* promote_types(PyObject*, PyObject* const* args, Py_ssize_t n) {
  DLDataType a, b, out;
  if (n != 2 || !as_dtype(args[0], &a) || !as_dtype(args[1], &b)) {
    PyErr_SetString(PyExc_TypeError, "promote_types(): wanted two dtypes");
    return nullptr;
  }
  if (failed(core->dtype_promote(a, b, &out))) return nullptr;
  return Py_XNewRef(reinterpret_cast<PyObject*>(dtype_object(out)));
}

PyObject* can_cast(PyObject*, PyObject* const* args, Py_ssize_t n) {
  DLDataType a, b;
  if (n != 2 || !as_dtype(args[0], &a) || !as_dtype(args[1], &b)) {
    PyErr_SetString(PyExc_TypeError, "can_cast(): wanted two dtypes");
    return nullptr;
  }
  return PyBool_FromLong(core->dtype_can_cast(a, b));
}

bool device_of(PyObject* o, DLDevice* out) {
  if (as_device(o, out)) {
    *out = concrete(*out);
    return true;
  }
  if (!PyErr_Occurred())
    PyErr_Format(PyExc_TypeError, "wanted a device, not %s", Py_TYPE(o)->tp_name);
  return false;
}

PyObject* synchronize(PyObject*, PyObject* o) {
  DLDevice d;
  if (!device_of(o, &d) || failed(core->device_synchronize(d))) return nullptr;
  Py_RETURN_NONE;
}

PyObject* memory_stats(PyObject*, PyObject* o) {
  DLDevice d;
  auto s = sized<aj_memory_stats>();
  if (!device_of(o, &d) || failed(core->memory_stats(d, &s))) return nullptr;
  return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K}", "in_use", s.in_use, "peak_in_use",
                       s.peak_in_use, "cached", s.cached, "limit", s.limit, "allocations",
                       s.allocations, "system_allocations", s.system_allocations);
}

PyObject* memory_release(PyObject*, PyObject* o) {
  DLDevice d;
  if (!device_of(o, &d) || failed(core->memory_release(d))) return nullptr;
  Py_RETURN_NONE;
}

PyObject* memory_reset_peak(PyObject*, PyObject* o) {
  DLDevice d;
  if (!device_of(o, &d) || failed(core->memory_reset_peak(d))) return nullptr;
  Py_RETURN_NONE;
}

PyObject* set_deterministic(PyObject*, PyObject* on) {
  int32_t previous = 0;
  int wanted = PyObject_IsTrue(on);
  if (wanted < 0 || failed(dispatch->set_deterministic(wanted, &previous))) return nullptr;
  return PyBool_FromLong(previous);
}

PyObject* fallbacks(PyObject*, PyObject*) {
  Ref list(PyList_New(0));
  for (uint32_t i = 0; list && i < dispatch->fallback_count(); ++i) {
    auto e = sized<aj_fallback_entry>();
    if (failed(dispatch->fallback_at(i, &e))) return nullptr;
    Ref d(Py_BuildValue("{s:N,s:N,s:N,s:K,s:K,s:K,s:K}", "op", to_python(e.op), "device",
                        to_python(e.device), "reason", to_python(e.reason), "calls", e.calls,
                        "bytes_in", e.bytes_in, "bytes_out", e.bytes_out, "nanoseconds",
                        e.nanoseconds));
    if (!d || PyList_Append(list.get(), d.get()) < 0) return nullptr;
  }
  return list.release();
}

PyObject* set_fallback(PyObject*, PyObject* args) {
  const char *policy, *op = "", *device = "";
  if (!PyArg_ParseTuple(args, "s|ss", &policy, &op, &device)) return nullptr;
  if (failed(dispatch->set_fallback(str(op), str(device), str(policy)))) return nullptr;
  Py_RETURN_NONE;
}

PyObject* tensor_set(PyObject*, PyObject* args) {  // (tensor, source, offset, size, stride)
  PyObject *t, *source, *size, *stride;
  long long offset;
  if (!PyArg_ParseTuple(args, "OOLO!O!", &t, &source, &offset, &PyTuple_Type, &size, &PyTuple_Type,
                        &stride))
    return nullptr;
  if (!is_tensor(t) || !is_tensor(source)) {
    PyErr_Format(PyExc_TypeError,
                 "set_: wanted a Tensor or an UntypedStorage to take the memory of, not %s",
                 Py_TYPE(source)->tp_name);
    return nullptr;
  }
  int64_t dims[64], steps[64];
  Py_ssize_t n = PyTuple_GET_SIZE(size);
  if (n > 64 || PyTuple_GET_SIZE(stride) != n) {
    PyErr_Format(
        PyExc_RuntimeError,
        "set_: a size of %zd dimensions and a stride of %zd; both must have as many, 64 at most", n,
        PyTuple_GET_SIZE(stride));
    return nullptr;
  }
  for (Py_ssize_t i = 0; i < n; ++i) {
    dims[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(size, i));
    steps[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(stride, i));
    if (!PyErr_Occurred() && steps[i] < 0) {
      PyErr_Format(PyExc_RuntimeError,
                   "set_: negative strides are not supported, and the stride is %R; use flip()",
                   stride);
    }
  }
  if (PyErr_Occurred()) return nullptr;
  if (failed(core->tensor_set(tensor_of(t), tensor_of(source), offset, static_cast<int32_t>(n),
                              dims, steps)))
    return nullptr;
  return Py_NewRef(t);
}

PyObject* tensor_resize(PyObject*, PyObject* args) {  // (tensor, size)
  PyObject *t, *size;
  if (!PyArg_ParseTuple(args, "OO!", &t, &PyTuple_Type, &size)) return nullptr;
  int64_t dims[64];
  Py_ssize_t n = PyTuple_GET_SIZE(size);
  if (n > 64) return PyErr_Format(PyExc_RuntimeError, "resize_: %zd dimensions; 64 at most", n);
  for (Py_ssize_t i = 0; i < n; ++i) dims[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(size, i));
  if (PyErr_Occurred() || failed(core->tensor_resize(tensor_of(t), static_cast<int32_t>(n), dims)))
    return nullptr;
  return Py_NewRef(t);
}

PyObject* bump_version(PyObject*, PyObject* o) {
  if (!is_tensor(o))
    return PyErr_Format(PyExc_TypeError, "increment_version: wanted a Tensor, not %s",
                        Py_TYPE(o)->tp_name);
  core->tensor_bump_version(tensor_of(o));
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"bump_version", bump_version, METH_O, nullptr},
    {"find_op", method(find_op), METH_FASTCALL, "The callable of a name of the registry, or None."},
    {"return_type", return_type, METH_O,
     "The type of what an op with several results returns, or None."},
    {"op_names", method(op_names), METH_FASTCALL, "All names of the registry."},
    {"op_info", op_info, METH_O, "What the registry says of a name."},
    {"explain_op", method(explain_op), METH_FASTCALL,
     "Who would serve an op on a device, and why."},
    {"load_plugin", load_plugin, METH_O, "Loads a plugin from a file."},
    {"add_plugin_folder", add_plugin_folder, METH_O,
     "A folder whose plugins are found after those of ADJOIN_PLUGIN_PATH."},
    {"plugin_list", plugin_list, METH_NOARGS, "Every plugin that is known, and what became of it."},
    {"why_plugin", why_plugin, METH_O, "What was looked for, found, and decided."},
    {"services", service_list, METH_O, "(name, file, priority) of each provider of a service."},
    {"choose_service", choose_service, METH_VARARGS, "choose_service(slot, name)"},
    {"chosen_service", chosen_service, METH_O, "What choose_service was told last for a slot."},
    {"switch_set", switch_set, METH_VARARGS, "switch_set(device, name, on)"},
    {"tuner_show", tuner_show, METH_VARARGS, "tuner_show(device, all)"},
    {"tuner_load", tuner_load, METH_VARARGS, "tuner_load(device, path)"},
    {"tuner_serving", tuner_serving, METH_VARARGS,
     "tuner_serving(device, dtype, turn_a, turn_b, m, n, k)"},
    {"get_num_threads", get_threads, METH_NOARGS, "How many threads an op may use."},
    {"set_num_threads", set_threads, METH_O, "How many threads an op may use."},
    {"get_default_dtype", get_default_dtype, METH_NOARGS, "The dtype of Python's floats."},
    {"set_default_dtype", set_default_dtype, METH_O, "The dtype of Python's floats."},
    {"promote_types", method(promote_types), METH_FASTCALL,
     "The dtype that holds the values of both."},
    {"can_cast", method(can_cast), METH_FASTCALL,
     "Whether a cast is allowed by the rules of promotion."},
    {"synchronize", synchronize, METH_O, "Waits for a device."},
    {"memory_stats", memory_stats, METH_O, nullptr},
    {"memory_release", memory_release, METH_O, nullptr},
    {"memory_reset_peak", memory_reset_peak, METH_O, nullptr},
    {"set_deterministic", set_deterministic, METH_O, nullptr},
    {"fallbacks", fallbacks, METH_NOARGS, "Ops that ran on the host for a device."},
    {"set_fallback", set_fallback, METH_VARARGS, "set_fallback(policy, op='', device='')"},
    {"tensor_set", tensor_set, METH_VARARGS, nullptr},
    {"tensor_resize", tensor_resize, METH_VARARGS, nullptr},
    {},
};

}  // namespace

int init_ops(PyObject*) {
  if (PyType_Ready(&op_type) < 0 || PyType_Ready(&op_method_type) < 0) return -1;
  return init_binding() < 0 ? -1 : sync_ops();
}

int init_runtime(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace adjoin::py
