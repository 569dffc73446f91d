// frontends/python/src/scripts.cpp: scripted programs (abi/script.h) for adjoin.jit: their
// functions are called with Python's values, which are copied in and out.
#include <adjoin/abi/script.h>

#include <vector>

#include "device.hpp"
#include "dtype.hpp"
#include "extension.hpp"
#include "graphs.hpp"
#include "methods.hpp"
#include "op.hpp"
#include "size.hpp"
#include "tensor.hpp"

namespace adjoin::py {
namespace {

aj_status* print_by_python(void*, const aj_value* items, uint32_t n, aj_str sep, aj_str end);

const aj_scripts* table() {
  static const aj_scripts* made = nullptr;
  if (likely(made)) return made;
  made = extension<aj_scripts>("x.script", "jit", "libaj_graph.so");
  // What scripted code prints goes where Python's print() goes.
  if (made && AJ_HAS_FN(made, aj_scripts, print_to)) made->print_to(print_by_python, nullptr);
  return made;
}

aj_object* program_of(PyObject* o) {
  return table() ? static_cast<aj_object*>(PyCapsule_GetPointer(o, "adjoin.program")) : nullptr;
}

void drop(aj_value& v) {
  if (v.tag >= AJ_TENSOR && v.v.ptr) core->release(const_cast<void*>(v.v.ptr));
  v = {};
}

// Owned values of one call.
struct Values {
  std::vector<aj_value> list;
  ~Values() {
    for (aj_value& v : list) drop(v);
  }
};

bool give(PyObject* o, aj_value* out);

bool give_items(int32_t kind, std::string_view name, PyObject* const* items, Py_ssize_t n,
                aj_value* out) {
  Values values;
  for (Py_ssize_t i = 0; i < n; ++i) {
    values.list.emplace_back();
    if (!give(items[i], &values.list.back())) return false;
  }
  aj_value made{AJ_OBJECT, 0, {0}};
  if (failed(table()->value_new(kind, str(name), values.list.data(), uint32_t(n), &made.v.object)))
    return false;
  *out = made;
  return true;
}

bool give_pairs(int32_t kind, std::string_view name, PyObject* dict, aj_value* out) {
  std::vector<PyObject*> items;
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value);)
    items.insert(items.end(), {key, value});
  return give_items(kind, name, items.data(), Py_ssize_t(items.size()), out);
}

// Named tuples and instances of scripted classes say what they are: (kind, name, {field: value}).
bool give_described(PyObject* o, aj_value* out) {
  Ref told(call_helper("adjoin.jit._script.values", "described", &o, 1));
  if (!told) return false;
  int kind;
  const char* name;
  PyObject* fields;
  return PyArg_ParseTuple(told.get(), "isO!", &kind, &name, &PyDict_Type, &fields) &&
         give_pairs(kind, name, fields, out);
}

// One Python value, owned; false with an error set.
bool give(PyObject* o, aj_value* out) {
  aj_value v{};
  if (o == Py_None) return *out = v, true;
  if (is_tensor(o)) {
    v.tag = AJ_TENSOR;
    core->retain(v.v.tensor = tensor_of(o));
    return *out = v, true;
  }
  if (PyBool_Check(o)) return *out = {AJ_BOOL, 0, {o == Py_True}}, true;
  if (PyLong_CheckExact(o)) {
    v.tag = AJ_INT;
    v.v.i = PyLong_AsLongLong(o);
    return *out = v, !PyErr_Occurred();
  }
  if (PyFloat_CheckExact(o)) {
    v.tag = AJ_FLOAT;
    v.v.f = PyFloat_AS_DOUBLE(o);
    return *out = v, true;
  }
  if (PyUnicode_CheckExact(o)) {
    Py_ssize_t n;
    const char* text = PyUnicode_AsUTF8AndSize(o, &n);
    v.tag = AJ_STRING_OBJ;
    if (!text || failed(core->string_new({text, uint64_t(n)}, &v.v.object))) return false;
    return *out = v, true;
  }
  if (PyComplex_CheckExact(o)) {
    v.tag = AJ_COMPLEX_OBJ;
    Py_complex z = PyComplex_AsCComplex(o);
    if (failed(core->complex_new(z.real, z.imag, &v.v.object))) return false;
    return *out = v, true;
  }
  if (PyList_CheckExact(o))
    return give_items(AJ_VALUE_LIST, "", PySequence_Fast_ITEMS(o), PyList_GET_SIZE(o), out);
  if (PyTuple_CheckExact(o) || Py_TYPE(o) == &size_type)
    return give_items(AJ_VALUE_TUPLE, "", PySequence_Fast_ITEMS(o), PyTuple_GET_SIZE(o), out);
  if (PyDict_Check(o)) return give_pairs(AJ_VALUE_DICT, "", o, out);
  if (as_dtype(o, &v.v.dtype)) return v.tag = AJ_DTYPE, *out = v, true;
  if (Py_TYPE(o) == &device_type && as_device(o, &v.v.device))
    return v.tag = AJ_DEVICE, v.v.device = concrete(v.v.device), *out = v, true;
  if (PyErr_Occurred()) return false;
  if (Py_TYPE(o) == &memory_format_type || Py_TYPE(o) == &layout_type) {
    v.tag = Py_TYPE(o) == &layout_type ? AJ_LAYOUT : AJ_MEMORY_FORMAT;
    v.v.i = reinterpret_cast<TagObject*>(o)->value;
    return *out = v, true;
  }
  return give_described(o, out);
}

// A value as a Python object; borrowed.
PyObject* take(const aj_value& given) {
  aj_value v = given;
  if (v.tag != AJ_OBJECT) {
    if (v.tag >= AJ_TENSOR && v.v.ptr) core->retain(const_cast<void*>(v.v.ptr));
    return take_value(v);
  }
  int32_t kind;
  aj_str name;
  const aj_value* items;
  uint32_t n;
  if (failed(table()->value_get(v.v.object, &kind, &name, &items, &n))) return nullptr;
  if (kind == AJ_VALUE_LIST || kind == AJ_VALUE_TUPLE) {
    Ref all(kind == AJ_VALUE_LIST ? PyList_New(n) : PyTuple_New(n));
    for (uint32_t i = 0; all && i < n; ++i) {
      PyObject* item = take(items[i]);
      if (!item) return nullptr;
      if (kind == AJ_VALUE_LIST)
        PyList_SET_ITEM(all.get(), i, item);
      else
        PyTuple_SET_ITEM(all.get(), i, item);
    }
    return all.release();
  }
  Ref dict(PyDict_New());
  for (uint32_t i = 0; dict && i + 1 < n; i += 2) {
    Ref key(take(items[i])), value(key ? take(items[i + 1]) : nullptr);
    if (!value || PyDict_SetItem(dict.get(), key.get(), value.get()) < 0) return nullptr;
  }
  if (kind == AJ_VALUE_DICT || !dict) return dict.release();
  Ref called(to_python(name)), number(PyLong_FromLong(kind));
  PyObject* args[] = {number.get(), called.get(), dict.get()};
  return called && number ? call_helper("adjoin.jit._script.values", "made", args, 3) : nullptr;
}

// The arguments of one call, by place and by name, and its result.
struct Call {
  Values values, result;
  std::vector<aj_str> labels;

  bool take(PyObject* args, PyObject* named) {
    result.list.emplace_back();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
      values.list.emplace_back();
      if (!give(PyTuple_GET_ITEM(args, i), &values.list.back())) return false;
    }
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(named, &at, &key, &value);) {
      const char* label = PyUnicode_AsUTF8(key);
      values.list.emplace_back();
      if (!label || !give(value, &values.list.back())) return false;
      labels.push_back(str(label));
    }
    return true;
  }
};

// script_call(p, name, args, kwargs): the result.
PyObject* call(PyObject*, PyObject* args) {
  PyObject *o, *given, *named;
  const char* name;
  aj_object* p;
  Call c;
  if (!PyArg_ParseTuple(args, "OsO!O!", &o, &name, &PyTuple_Type, &given, &PyDict_Type, &named) ||
      !(p = program_of(o)) || !c.take(given, named))
    return nullptr;
  if (failed(table()->call(p, str(name), c.values.list.data(), uint32_t(c.values.list.size()),
                           c.labels.data(), uint32_t(c.labels.size()), &c.result.list[0])))
    return nullptr;
  return take(c.result.list[0]);
}

aj_status* print_by_python(void*, const aj_value* items, uint32_t n, aj_str sep, aj_str end) {
  if (!Py_IsInitialized()) return nullptr;
  Gil gil;
  Ref builtins(PyImport_ImportModule("builtins"));
  Ref print(builtins ? PyObject_GetAttrString(builtins.get(), "print") : nullptr);
  Ref args(PyTuple_New(n));
  Ref words(Py_BuildValue("{s:s#,s:s#}", "sep", sep.data, Py_ssize_t(sep.len), "end", end.data,
                          Py_ssize_t(end.len)));
  for (uint32_t i = 0; args && i < n; ++i) {
    PyObject* item = take(items[i]);
    if (!item) return status_from_python();
    PyTuple_SET_ITEM(args.get(), i, item);
  }
  Ref done(print && args && words ? PyObject_Call(print.get(), args.get(), words.get()) : nullptr);
  return done ? nullptr : status_from_python();
}

// script_functions(p): their signatures, a line each.
PyObject* functions(PyObject*, PyObject* o) {
  aj_object *p = program_of(o), *made = nullptr;
  return !p || failed(table()->functions(p, &made)) ? nullptr : take_string(made);
}

PyObject* scripted(PyObject*, PyObject* o) {
  aj_object* p = program_of(o);
  return p ? PyBool_FromLong(table()->scripted(p)) : nullptr;
}

// script_get(p, path), script_set(p, path, value): attributes of the module.
PyObject* get(PyObject*, PyObject* args) {
  PyObject* o;
  const char* path;
  aj_object* p;
  Values result;
  result.list.emplace_back();
  if (!PyArg_ParseTuple(args, "Os", &o, &path) || !(p = program_of(o)) ||
      failed(table()->get(p, str(path), &result.list[0])))
    return nullptr;
  return take(result.list[0]);
}
PyObject* set(PyObject*, PyObject* args) {
  PyObject *o, *value;
  const char* path;
  aj_object* p;
  Values given;
  given.list.emplace_back();
  if (!PyArg_ParseTuple(args, "OsO", &o, &path, &value) || !(p = program_of(o)) ||
      !give(value, &given.list[0]) || failed(table()->set(p, str(path), &given.list[0])))
    return nullptr;
  Py_RETURN_NONE;
}

// script_text(value): as the program would show it, floats to the last bit.
PyObject* text(PyObject*, PyObject* value) {
  Values given;
  given.list.emplace_back();
  aj_object* made = nullptr;
  if (!table() || !give(value, &given.list[0]) ||
      failed(table()->value_text(&given.list[0], AJ_TEXT_BITS, &made)))
    return nullptr;
  return take_string(made);
}

// script_capture(p, name, callee, args, kwargs): call, kept by this thread's capture.
PyObject* capture(PyObject*, PyObject* args) {
  PyObject *o, *given, *named;
  const char *name, *callee;
  aj_object* p;
  Call c;
  if (!PyArg_ParseTuple(args, "OssO!O!", &o, &name, &callee, &PyTuple_Type, &given, &PyDict_Type,
                        &named) ||
      !(p = program_of(o)) || !c.take(given, named))
    return nullptr;
  if (failed(table()->capture(p, str(name), str(callee), c.values.list.data(),
                              uint32_t(c.values.list.size()), c.labels.data(),
                              uint32_t(c.labels.size()), &c.result.list[0])))
    return nullptr;
  return take(c.result.list[0]);
}

// script_lowered(p, name): a captured program as a function of a scripted one's text.
PyObject* lowered(PyObject*, PyObject* args) {
  PyObject* o;
  const char* name;
  aj_object *p, *made = nullptr;
  if (!PyArg_ParseTuple(args, "Os", &o, &name) || !(p = program_of(o)) ||
      failed(table()->lowered(p, str(name), &made)))
    return nullptr;
  return take_string(made);
}

PyMethodDef methods[] = {
    {"script_capture", capture, METH_VARARGS, nullptr},
    {"script_lowered", lowered, METH_VARARGS, nullptr},
    {"script_call", call, METH_VARARGS, nullptr},
    {"script_functions", functions, METH_O, nullptr},
    {"script_scripted", scripted, METH_O, nullptr},
    {"script_get", get, METH_VARARGS, nullptr},
    {"script_set", set, METH_VARARGS, nullptr},
    {"script_text", text, METH_O, nullptr},
    {},
};

}  // namespace

int init_scripts(PyObject* module) { return PyModule_AddFunctions(module, methods); }

}  // namespace adjoin::py
