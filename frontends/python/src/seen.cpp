// frontends/python/src/seen.cpp: what __torch_function__ gets for methods, properties and slots of
// Tensor.
#include "seen.hpp"

#include <map>
#include <utility>

namespace adjoin::py {
namespace {

// Borrowed: the type's dictionary keeps them.
std::map<void*, PyObject*>& noted_methods() {
  static std::map<void*, PyObject*> all;
  return all;
}
std::map<std::pair<getter, void*>, PyObject*>& noted_properties() {
  static std::map<std::pair<getter, void*>, PyObject*> all;
  return all;
}

PyObject* override_property(const char* name, getter code, void* closure, PyObject* const* args,
                            Py_ssize_t n) {
  auto found = noted_properties().find({code, closure});
  Ref method(found == noted_properties().end() ? nullptr
                                               : PyObject_GetAttrString(found->second, name));
  if (method) return call_override(method.get(), args, n, nullptr);
  if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "a property of Tensor was not noted");
  return nullptr;
}

// methods_of_tensors(): those that stand in no row.
PyObject* methods(PyObject*, PyObject*) {
  Ref list(PyList_New(0));
  for (auto& noted : noted_methods())
    if (list && PyList_Append(list.get(), noted.second) < 0) return nullptr;
  return list.release();
}

PyMethodDef functions[] = {{"methods_of_tensors", methods, METH_NOARGS, nullptr}, {}};

}  // namespace

int init_seen(PyObject* module) { return PyModule_AddFunctions(module, functions); }

void note_method(void* code, PyObject* descriptor) { noted_methods().emplace(code, descriptor); }

void note_property(getter code, void* closure, PyObject* descriptor) {
  noted_properties().emplace(std::pair(code, closure), descriptor);
}

PyObject* override_method(void* code, PyObject* self, PyObject* const* args, Py_ssize_t n,
                          PyObject* kwnames) {
  auto found = noted_methods().find(code);
  if (found == noted_methods().end())
    return PyErr_Format(PyExc_SystemError, "a method of Tensor was not noted");
  std::vector<PyObject*> all{self};
  all.insert(all.end(), args, args + n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0));
  return call_override(found->second, all.data(), n + 1, kwnames);
}

PyObject* override_get(getter code, void* closure, PyObject* self) {
  return override_property("__get__", code, closure, &self, 1);
}

int override_set(getter code, void* closure, PyObject* self, PyObject* value) {
  PyObject* args[] = {self, value};
  Ref done(override_property(value ? "__set__" : "__delete__", code, closure, args, value ? 2 : 1));
  return done ? 0 : -1;
}

PyObject* override_slot(const char* name, PyObject* self) {
  return call_override(PyDict_GetItemString(tensor_type.tp_dict, name), &self, 1, nullptr);
}

}  // namespace adjoin::py
