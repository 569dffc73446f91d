// frontends/python/src/operate.cpp: what an operator does with the process: plugins, lock files,
// who served which op, dispatch keys.
#include "dispatch.hpp"
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

PyObject* disable(PyObject*, PyObject* name) {
  std::string_view text;
  if (!text_of(name, &text) || failed(plugins->disable(str(text)))) return nullptr;
  Py_RETURN_NONE;
}

PyObject* enable(PyObject*, PyObject* name) {
  std::string_view text;
  if (!text_of(name, &text) || failed(plugins->enable(str(text))) || sync_ops() < 0) return nullptr;
  Py_RETURN_NONE;
}

PyObject* unload(PyObject*, PyObject* name) {
  std::string_view text;
  aj_object* out = nullptr;
  if (!text_of(name, &text)) return nullptr;
  aj_status* bad;
  Py_BEGIN_ALLOW_THREADS  // it waits for calls of other threads
      bad = plugins->unload(str(text), &out);
  Py_END_ALLOW_THREADS return failed(bad) ? nullptr : take_string(out);
}

PyObject* lock(PyObject*, PyObject*) {
  aj_object* out = nullptr;
  return failed(plugins->lock(&out)) ? nullptr : take_string(out);
}

PyObject* verify(PyObject*, PyObject* path) {
  Ref text(PyOS_FSPath(path));
  std::string_view p;
  aj_object* out = nullptr;
  if (!text || !text_of(text.get(), &p) || failed(plugins->verify(str(p), &out))) return nullptr;
  return take_string(out);
}

// trace(on): the counts so far, and whether counting goes on.
PyObject* trace(PyObject*, PyObject* on) {
  aj_object* out = nullptr;
  int counts = PyObject_IsTrue(on);
  return counts < 0 || failed(plugins->trace(counts, &out)) ? nullptr : take_string(out);
}

// include_key(name, on): the key joins every call of this thread, or does not any more; tells what
// was.
PyObject* include_key(PyObject*, PyObject* args) {
  const char* name;
  int on;
  if (!PyArg_ParseTuple(args, "sp", &name, &on)) return nullptr;
  uint64_t mask = dispatch->key_mask(str(name)), include, exclude;
  if (!mask)
    return PyErr_Format(PyExc_KeyError, "include_key: no dispatch key is called '%s'", name);
  dispatch->thread_keys(&include, &exclude);
  dispatch->set_thread_keys(on ? include | mask : include & ~mask, exclude);
  watch_values(mask, (on != 0) - ((include & mask) != 0));
  return PyBool_FromLong((include & mask) != 0);
}

PyMethodDef functions[] = {
    {"disable_plugin", disable, METH_O, "Its kernels, ops and services are not chosen any more."},
    {"enable_plugin", enable, METH_O, "Undoes disable_plugin and unload_plugin."},
    {"unload_plugin", unload, METH_O, "Disables and unmaps; tells what keeps it mapped."},
    {"lock_text", lock, METH_NOARGS, "What the process is made of, as a lock file."},
    {"verify_lock", verify, METH_O, "What differs from a lock file, a line each."},
    {"trace", trace, METH_O, "trace(on): the counts of who served which op."},
    {"include_key", include_key, METH_VARARGS, "include_key(name, on)"},
    {},
};

}  // namespace

int init_operate(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace adjoin::py
