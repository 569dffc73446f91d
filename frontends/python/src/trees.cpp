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
  if (!sequence && !PyDict_Check(tree)) return Py_NewRef(tree);
  if (Py_EnterRecursiveCall(" while the tensors of a tree are taken")) return nullptr;
  PyObject* made =
      sequence ? mapped_sequence(tree, leaf, self) : mapped_dictionary(tree, leaf, self);
  Py_LeaveRecursiveCall();
  return made;
}

int any_tensor(PyObject* tree, int (*has)(PyObject* tensor, void* self), void* self) {
  if (is_tensor(tree)) return has(tree, self);
  const bool sequence = PyTuple_Check(tree) || PyList_Check(tree);
  if (!sequence && !PyDict_Check(tree)) return 0;
  if (Py_EnterRecursiveCall(" while the tensors of a tree are asked")) return -1;
  Ref items(sequence ? PySequence_Tuple(tree) : PyMapping_Values(tree));
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
