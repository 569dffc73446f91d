// frontends/python/src/trees.cpp: trees of tensors, for the derivatives of adjoin.func.
#include "trees.hpp"

#include "methods.hpp"
#include "tensor.hpp"

namespace adjoin::py {
namespace {

Ref mapped_pairs(PyObject* tree, Leaf leaf, void* self) {
  Ref pairs(PyList_New(0));
  Ref items(PyMapping_Items(tree));
  for (Py_ssize_t i = 0; pairs && items && i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject* item = PyList_GET_ITEM(items.get(), i);
    Ref made(mapped(PyTuple_GET_ITEM(item, 1), leaf, self));
    Ref pair(made ? PyTuple_Pack(2, PyTuple_GET_ITEM(item, 0), made.get()) : nullptr);
    if (!pair || PyList_Append(pairs.get(), pair.get()) < 0) return {};
  }
  return items ? std::move(pairs) : Ref();
}

PyObject* mapped_dictionary(PyObject* tree, Leaf leaf, void* self) {
  Ref pairs = mapped_pairs(tree, leaf, self);
  return pairs ? PyObject_CallOneArg(reinterpret_cast<PyObject*>(Py_TYPE(tree)), pairs.get())
               : nullptr;
}

PyObject* mapped_sequence(PyObject* tree, Leaf leaf, void* self) {
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(tree);
  const bool list = PyList_CheckExact(tree);
  Ref made(list ? PyList_New(n) : PyTuple_New(n));
  for (Py_ssize_t i = 0; made && i < n; ++i) {
    if (i >= PySequence_Fast_GET_SIZE(tree)) {
      PyErr_SetString(PyExc_RuntimeError, "a list changed its size while its tensors were taken");
      return nullptr;
    }
    Ref held = Ref::borrow(PySequence_Fast_GET_ITEM(tree, i));
    PyObject* item = mapped(held.get(), leaf, self);
    if (!item) return nullptr;
    list ? PyList_SET_ITEM(made.get(), i, item) : PyTuple_SET_ITEM(made.get(), i, item);
  }
  if (!made || list || PyTuple_CheckExact(tree)) return made.release();
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(tree));
  return PyObject_HasAttrString(tree, "_fields") ? PyObject_CallObject(type, made.get())
                                                 : PyObject_CallOneArg(type, made.get());
}

PyObject* nodes = nullptr;  // utils._pytree's: a type -> (the type, flatten, unflatten, ...)

bool is_plain(PyObject* leaf) {
  return leaf == Py_None || PyLong_Check(leaf) || PyFloat_Check(leaf) || PyUnicode_Check(leaf) ||
         PyComplex_Check(leaf) || PyFunction_Check(leaf) || PyType_Check(leaf);
}

bool is_built_in(PyObject* tree) {
  return PyTuple_CheckExact(tree) || PyList_CheckExact(tree) || PyDict_CheckExact(tree) ||
         PyODict_CheckExact(tree);
}

// How utils._pytree takes apart a container that is none of Python's plain ones; empty where it
// knows none, or with an error set. It is loaded with the first object that may be one.
Ref node_of(PyObject* tree) {
  if (is_plain(tree) || is_built_in(tree)) return {};
  if (!nodes) {
    static const char home[] = "adjoin.utils._pytree";
    Ref module(PyImport_ImportModule(home));
    nodes = module ? PyObject_GetAttrString(module.get(), "SUPPORTED_NODES") : nullptr;
    if (!nodes) return {};
  }
  return Ref::borrow(PyDict_GetItemWithError(nodes, reinterpret_cast<PyObject*>(Py_TYPE(tree))));
}

struct Parts {
  Ref children, context;
};

// What such a container holds; no children with an error set.
Parts parts_of(PyObject* node, PyObject* tree) {
  Ref made(PyObject_CallOneArg(PyTuple_GET_ITEM(node, 1), tree));
  if (made && (!PyTuple_Check(made.get()) || PyTuple_GET_SIZE(made.get()) != 2)) {
    PyErr_Format(PyExc_TypeError,
                 "register_pytree_node: flatten of %s must return (children, context)",
                 Py_TYPE(tree)->tp_name);
    return {};
  }
  if (!made) return {};
  return {Ref(PySequence_List(PyTuple_GET_ITEM(made.get(), 0))),
          Ref::borrow(PyTuple_GET_ITEM(made.get(), 1))};
}

PyObject* mapped_node(PyObject* node, PyObject* tree, Leaf leaf, void* self) {
  Parts parts = parts_of(node, tree);
  Ref children(parts.children ? mapped_sequence(parts.children.get(), leaf, self) : nullptr);
  return children ? PyObject_CallFunctionObjArgs(PyTuple_GET_ITEM(node, 2), children.get(),
                                                 parts.context.get(), nullptr)
                  : nullptr;
}

// tree_map(tree, function): the tree with function(tensor) for each tensor.
PyObject* tree_map(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 2) return PyErr_Format(PyExc_TypeError, "tree_map: a tree and a function are wanted");
  return mapped(
      args[0],
      [](PyObject* t, void* function) {
        return PyObject_CallOneArg(static_cast<PyObject*>(function), t);
      },
      args[1]);
}

// tree_leaves(tree): its tensors in a list.
PyObject* tree_leaves(PyObject*, PyObject* tree) {
  Ref found(PyList_New(0));
  if (!found) return nullptr;
  Ref same(mapped(
      tree,
      [](PyObject* t, void* list) {
        return PyList_Append(static_cast<PyObject*>(list), t) < 0 ? nullptr : Py_NewRef(t);
      },
      found.get()));
  return same ? found.release() : nullptr;
}

// tree_fill(tree, values): the tree with the values, a list or tuple, in the places of its tensors.
PyObject* tree_fill(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 2 || !(PyList_Check(args[1]) || PyTuple_Check(args[1])))
    return PyErr_Format(PyExc_TypeError, "tree_fill: a tree and a list of values are wanted");
  struct Left {
    PyObject* values;
    Py_ssize_t at;
  } left{args[1], 0};
  Ref made(mapped(
      args[0],
      [](PyObject*, void* self) -> PyObject* {
        auto& l = *static_cast<Left*>(self);
        if (l.at < PySequence_Fast_GET_SIZE(l.values))
          return Py_NewRef(PySequence_Fast_GET_ITEM(l.values, l.at++));
        PyErr_SetString(PyExc_ValueError, "tree_fill: the tree has more tensors than values");
        return nullptr;
      },
      &left));
  if (!made || left.at == PySequence_Fast_GET_SIZE(args[1])) return made.release();
  return PyErr_Format(PyExc_ValueError, "tree_fill: %zd values for %zd tensors",
                      PySequence_Fast_GET_SIZE(args[1]), left.at);
}

// tree_recorded(tree): does a tensor of it require grad?
PyObject* tree_recorded(PyObject*, PyObject* tree) {
  auto has = [](PyObject* t, void*) -> int { return says_requires_grad(tensor_of(t)); };
  return answer(any_tensor(tree, has, nullptr));
}

// tree_detached(tree): its tensors without history.
PyObject* tree_detached(PyObject*, PyObject* tree) { return mapped(tree, detached, nullptr); }

// named_as(function, other): function, with the name and the words of other, as functools.wraps
// gives them; None: the other is no function of Python's.
PyObject* named_as(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 2 || !PyFunction_Check(args[0]) || !PyFunction_Check(args[1])) Py_RETURN_NONE;
  auto* to = reinterpret_cast<PyFunctionObject*>(args[0]);
  auto* from = reinterpret_cast<PyFunctionObject*>(args[1]);
  auto take = [](PyObject** place, PyObject* value) {
    Py_XINCREF(value);
    Py_XSETREF(*place, value);
  };
  take(&to->func_name, from->func_name);
  take(&to->func_qualname, from->func_qualname);
  take(&to->func_module, from->func_module);
  take(&to->func_doc, from->func_doc);
  if (from->func_annotations) take(&to->func_annotations, PyFunction_GetAnnotations(args[1]));
  static PyObject* const wrapped = PyUnicode_InternFromString("__wrapped__");
  Ref words(from->func_dict ? PyDict_Copy(from->func_dict) : PyDict_New());
  if (!words || PyDict_SetItem(words.get(), wrapped, args[1]) < 0) return nullptr;
  Py_XSETREF(to->func_dict, words.release());
  return Py_NewRef(args[0]);
}

PyMethodDef functions[] = {
    {"tree_map", method(tree_map), METH_FASTCALL, nullptr},
    {"tree_leaves", tree_leaves, METH_O, nullptr},
    {"tree_fill", method(tree_fill), METH_FASTCALL, nullptr},
    {"tree_recorded", tree_recorded, METH_O, nullptr},
    {"tree_detached", tree_detached, METH_O, nullptr},
    {"named_as", method(named_as), METH_FASTCALL, nullptr},
    {},
};

}  // namespace

PyObject* mapped(PyObject* tree, Leaf leaf, void* self) {
  if (is_tensor(tree)) return leaf(tree, self);
  const bool sequence = PyTuple_Check(tree) || PyList_Check(tree);
  Ref node = node_of(tree);
  if (!node && PyErr_Occurred()) return nullptr;
  if (!node && !sequence && !PyDict_Check(tree)) return Py_NewRef(tree);
  if (Py_EnterRecursiveCall(" while the tensors of a tree are taken")) return nullptr;
  PyObject* made = node       ? mapped_node(node.get(), tree, leaf, self)
                   : sequence ? mapped_sequence(tree, leaf, self)
                              : mapped_dictionary(tree, leaf, self);
  Py_LeaveRecursiveCall();
  return made;
}

int any_tensor(PyObject* tree, int (*has)(PyObject* tensor, void* self), void* self) {
  if (is_tensor(tree)) return has(tree, self);
  const bool sequence = PyTuple_Check(tree) || PyList_Check(tree);
  Ref node = node_of(tree);
  if (!node && PyErr_Occurred()) return -1;
  if (!node && !sequence && !PyDict_Check(tree)) return 0;
  if (Py_EnterRecursiveCall(" while the tensors of a tree are asked")) return -1;
  Ref items = node ? parts_of(node.get(), tree).children
                   : Ref(sequence ? PySequence_Tuple(tree) : PyMapping_Values(tree));
  int found = items ? 0 : -1;
  for (Py_ssize_t i = 0; found == 0 && i < PySequence_Fast_GET_SIZE(items.get()); ++i)
    found = any_tensor(PySequence_Fast_GET_ITEM(items.get(), i), has, self);
  Py_LeaveRecursiveCall();
  return found;
}

PyObject* detached(PyObject* tensor, void*) {
  aj_tensor* made = nullptr;
  return failed(autograd->detach(tensor_of(tensor), &made)) ? nullptr : wrap(made);
}

int init_trees(PyObject* module) {
  return init_reach(module) < 0 ? -1 : PyModule_AddFunctions(module, functions);
}

}  // namespace adjoin::py
