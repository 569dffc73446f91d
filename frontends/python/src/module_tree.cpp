// frontends/python/src/module_tree.cpp: walking the modules of a network, where no class of them
// walks in a way of its own.
#include <unordered_set>
#include <vector>

#include "errors.hpp"
#include "parse.hpp"

namespace adjoin::py {
namespace {

struct Method {  // of nn.modules._tree.Tree: its name, and its function as it came
  const char* text;
  PyObject *name, *own;
};
Method walks{"named_modules", nullptr, nullptr}, trains{"train", nullptr, nullptr},
    sets{"__setattr__", nullptr, nullptr}, steps{"children", nullptr, nullptr},
    parameters{"named_parameters", nullptr, nullptr}, buffers{"named_buffers", nullptr, nullptr},
    members{"_named_members", nullptr, nullptr};
PyObject *modules_name, *training_name;

bool is_own(PyObject* o, const Method& m) {
  return m.own && _PyType_Lookup(Py_TYPE(o), m.name) == m.own;
}

// A dictionary of the module, borrowed; NULL where it has none: no __init__ ran, or it is of
// another kind.
PyObject* part_of(PyObject* module, PyObject* name) {
  PyObject** place = _PyObject_GetDictPtr(module);
  PyObject* part = place && *place ? PyDict_GetItemWithError(*place, name) : nullptr;
  return part && PyDict_CheckExact(part) ? part : nullptr;
}

struct Place {
  Ref module, path;  // no path where none is asked for
};

// The modules below and at a root, each once unless told otherwise, parents before children.
class Walk {
 public:
  Walk(bool paths, bool once) : paths_(paths), once_(once) {}

  // False: a class walks in a way of its own, or Python has an error.
  bool add(PyObject* module, PyObject* path) {
    if (once_ && !seen_.insert(module).second) return true;
    PyObject* children = is_own(module, walks) ? part_of(module, modules_name) : nullptr;
    if (!children) return false;
    found.push_back({Ref::borrow(module), Ref(Py_XNewRef(path))});
    Py_ssize_t at = 0;
    for (PyObject *name, *child; PyDict_Next(children, &at, &name, &child);) {
      if (child == Py_None) continue;
      Ref below(paths_ ? joined(path, name) : nullptr);
      if ((paths_ && !below) || Py_EnterRecursiveCall(" in a walk through modules")) return false;
      bool done = add(child, below.get());
      Py_LeaveRecursiveCall();
      if (!done) return false;
    }
    return true;
  }

  static PyObject* joined(PyObject* path, PyObject* name) {
    if (!PyUnicode_Check(name))
      return PyErr_Format(PyExc_TypeError, "a part's name must be a string, it is %R", name);
    return PyUnicode_GET_LENGTH(path) ? PyUnicode_FromFormat("%U.%U", path, name) : Py_NewRef(name);
  }

  std::vector<Place> found;

 private:
  std::unordered_set<PyObject*> seen_;
  bool paths_, once_;
};

PyObject* not_plain() {
  if (PyErr_Occurred()) return nullptr;
  Py_RETURN_NONE;
}

bool append_pair(PyObject* list, PyObject* name, PyObject* value) {
  Ref keep = Ref::borrow(value),
      pair(PyTuple_Pack(2, name, value));  // making a pair may collect garbage, which runs anything
  return pair && PyList_Append(list, pair.get()) == 0;
}

// module_list(root): its modules; None if a class of them walks in a way of its own.
PyObject* module_list(PyObject*, PyObject* root) {
  Walk walk(false, true);
  if (!walk.add(root, nullptr)) return not_plain();
  PyObject* list = PyList_New(Py_ssize_t(walk.found.size()));
  for (size_t i = 0; list && i < walk.found.size(); ++i)
    PyList_SET_ITEM(list, Py_ssize_t(i), Py_NewRef(walk.found[i].module.get()));
  return list;
}

// module_tensors(root, part): what the modules have in that dictionary, each tensor once.
PyObject* module_tensors(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 2) return PyErr_Format(PyExc_TypeError, "module_tensors(module, part)");
  Walk walk(false, true);
  for (Method* m : {&parameters, &buffers, &members})
    if (!is_own(args[0], *m)) return not_plain();
  if (!walk.add(args[0], nullptr)) return not_plain();
  Ref list(PyList_New(0));
  std::unordered_set<PyObject*> seen;
  for (const Place& p : walk.found) {
    PyObject* part = part_of(p.module.get(), args[1]);
    if (!part) return not_plain();
    Py_ssize_t at = 0;
    for (PyObject *name, *tensor; list && PyDict_Next(part, &at, &name, &tensor);)
      if (tensor != Py_None && seen.insert(tensor).second && PyList_Append(list.get(), tensor) < 0)
        return nullptr;
  }
  return list.release();
}

// module_named(root, part or None, prefix, once): pairs of a dotted name and a tensor of that
// dictionary, or a module.
PyObject* module_named(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 4 || !PyUnicode_Check(args[2]))
    return PyErr_Format(PyExc_TypeError, "module_named(module, part, prefix, once)");
  const bool once = args[3] == Py_True, tensors = args[1] != Py_None;
  Walk walk(true, once);
  if ((tensors && !is_own(args[0], members)) || !walk.add(args[0], args[2])) return not_plain();
  Ref list(PyList_New(0));
  std::unordered_set<PyObject*> seen;
  for (const Place& p : walk.found) {
    if (!list) return nullptr;
    if (!tensors) {
      if (!append_pair(list.get(), p.path.get(), p.module.get())) return nullptr;
      continue;
    }
    PyObject* part = part_of(p.module.get(), args[1]);
    if (!part) return not_plain();
    Py_ssize_t at = 0;
    for (PyObject *name, *tensor; PyDict_Next(part, &at, &name, &tensor);) {
      if (tensor == Py_None || (once && !seen.insert(tensor).second)) continue;
      Ref path(Walk::joined(p.path.get(), name));
      if (!path || !append_pair(list.get(), path.get(), tensor)) return nullptr;
    }
  }
  return list.release();
}

bool trains_plainly(PyObject* o) {
  return is_own(o, sets) && is_own(o, steps) && part_of(o, modules_name);
}

// set_training(module, mode): here and below; a class's own train() is called.
bool set_training(PyObject* module, PyObject* mode) {
  PyObject** place = _PyObject_GetDictPtr(module);
  PyObject* children = part_of(module, modules_name);
  if (!children || PyDict_SetItem(*place, training_name, mode) < 0) return false;
  Ref all(PyDict_Values(children));
  std::unordered_set<PyObject*> seen;
  for (Py_ssize_t i = 0; all && i < PyList_GET_SIZE(all.get()); ++i) {
    PyObject* child = PyList_GET_ITEM(all.get(), i);
    if (child == Py_None || (PyList_GET_SIZE(all.get()) > 1 && !seen.insert(child).second))
      continue;
    if (is_own(child, trains) && trains_plainly(child)) {
      if (Py_EnterRecursiveCall(" in train()")) return false;
      bool done = set_training(child, mode);
      Py_LeaveRecursiveCall();
      if (!done) return false;
    } else {
      Ref done(PyObject_CallMethodOneArg(child, trains.name, mode));
      if (!done) return false;
    }
  }
  return bool(all);
}
PyObject* set_training_mode(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 2) return PyErr_Format(PyExc_TypeError, "set_training(module, mode)");
  if (!trains_plainly(args[0])) return not_plain();
  if (!set_training(args[0], args[1])) return nullptr;
  return Py_NewRef(args[0]);
}

// The classes whose methods are the plain ones: watch_module_tree(Module).
PyObject* watch(PyObject*, PyObject* type) {
  if (!PyType_Check(type)) return PyErr_Format(PyExc_TypeError, "watch_module_tree(a class)");
  for (Method* m : {&walks, &trains, &sets, &steps, &parameters, &buffers, &members}) {
    m->name = PyUnicode_InternFromString(m->text);
    m->own = m->name ? Py_XNewRef(_PyType_Lookup(reinterpret_cast<PyTypeObject*>(type), m->name))
                     : nullptr;
  }
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"watch_module_tree", watch, METH_O, nullptr},
    {"module_list", module_list, METH_O, nullptr},
    {"module_tensors", method(module_tensors), METH_FASTCALL, nullptr},
    {"module_named", method(module_named), METH_FASTCALL, nullptr},
    {"set_training", method(set_training_mode), METH_FASTCALL, nullptr},
    {},
};

}  // namespace

int init_module_tree(PyObject* module) {
  modules_name = PyUnicode_InternFromString("_modules");
  training_name = PyUnicode_InternFromString("training");
  return PyModule_AddFunctions(module, functions);
}

}  // namespace adjoin::py
