// frontends/python/src/forward.cpp: tensors with a tangent, for adjoin.func and
// adjoin.autograd.forward_ad.
#include <adjoin/abi/wrap.h>

#include "errors.hpp"
#include "function.hpp"
#include "tensor.hpp"
#include "transform.hpp"
#include "trees.hpp"

namespace adjoin::py {
namespace {

const aj_transforms* table() {
  return extension<aj_transforms>("x.transform", "forward mode", "libaj_transform.so");
}

// transform_dual(primal, tangent or None, level)
PyObject* transform_dual(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 3 || !is_tensor(args[0]) || !(args[1] == Py_None || is_tensor(args[1]))) {
    PyErr_SetString(PyExc_TypeError, "make_dual: a tensor and its tangent, a tensor, are wanted");
    return nullptr;
  }
  const long level = PyLong_AsLong(args[2]);
  aj_tensor* made;
  aj_tensor* tangent = args[1] == Py_None ? nullptr : tensor_of(args[1]);
  if (PyErr_Occurred() || !table() ||
      failed(table()->dual(tensor_of(args[0]), tangent, int32_t(level), &made)))
    return nullptr;
  return wrap(made);
}

// transform_undual(t, level): (primal, tangent or None)
PyObject* transform_undual(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 2 || !is_tensor(args[0])) {
    PyErr_SetString(PyExc_TypeError, "unpack_dual: a tensor is wanted");
    return nullptr;
  }
  const long level = PyLong_AsLong(args[1]);
  aj_tensor *primal, *tangent;
  if (PyErr_Occurred() || !table() ||
      failed(table()->undual(tensor_of(args[0]), int32_t(level), &primal, &tangent)))
    return nullptr;
  Ref first(wrap(primal));
  Ref second(tangent ? wrap(tangent) : Py_NewRef(Py_None));
  return first && second ? PyTuple_Pack(2, first.get(), second.get()) : nullptr;
}

const aj_wrappers* wrappers() {
  static const auto* found = static_cast<const aj_wrappers*>(aj_get_interface("x.wrap", 1));
  return found;
}

// transform_level(t): the level that it is a tensor of; 0: of none.
PyObject* transform_level(PyObject*, PyObject* t) {
  return PyLong_FromLong(wrappers() && is_tensor(t) ? wrappers()->tensor_level(tensor_of(t)) : 0);
}

// transform_recorded(tree): does a tensor of it depend on what requires grad at a level around?
PyObject* transform_recorded(PyObject*, PyObject* tree) {
  return answer(any_tensor(tree, recorded_around, nullptr));
}

// transform_kind(level): 0 a batch, 1 a dual, -1 not open
PyObject* transform_kind(PyObject*, PyObject* level) {
  const long l = PyLong_AsLong(level);
  if (PyErr_Occurred()) return nullptr;
  return PyLong_FromLong(in_use<aj_transforms> ? in_use<aj_transforms>->kind(int32_t(l)) : -1);
}

PyObject* transform_below(PyObject*, PyObject* level) {
  const long l = PyLong_AsLong(level);
  if (PyErr_Occurred() || !table() || failed(table()->below(int32_t(l)))) return nullptr;
  Py_RETURN_NONE;
}
PyObject* transform_above(PyObject*, PyObject*) {
  if (table()) table()->above();
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"transform_dual", method(transform_dual), METH_FASTCALL, nullptr},
    {"transform_undual", method(transform_undual), METH_FASTCALL, nullptr},
    {"transform_level", transform_level, METH_O, nullptr},
    {"transform_recorded", transform_recorded, METH_O, nullptr},
    {"transform_kind", transform_kind, METH_O, nullptr},
    {"transform_below", transform_below, METH_O, nullptr},
    {"transform_above", transform_above, METH_NOARGS, nullptr},
    {},
};

}  // namespace

namespace {

int watched_around(aj_tensor* t) {
  const int32_t level = wrappers() && in_use<aj_transforms> ? wrappers()->tensor_level(t) : 0;
  if (level <= 0) return 0;
  HeldTensor value, tangent;
  const aj_transforms& x = *in_use<aj_transforms>;
  if (x.kind(level) < 0) return 0;  // it has ended
  if (x.kind(level) == AJ_LEVEL_DUAL) {
    if (failed(x.undual(t, level, value.out(), tangent.out()))) return -1;
  } else if (failed(x.shared(t, level, value.out())) ||
             (!value && failed(x.unbatched(t, 0, level, value.out())))) {
    return -1;
  }
  for (aj_tensor* part : {value.get(), tangent.get()}) {
    const int found = !part ? 0 : requires_grad(part) ? 1 : watched_around(part);
    if (found) return found;
  }
  return 0;
}

}  // namespace

int recorded_around(PyObject* tensor, void*) { return watched_around(tensor_of(tensor)); }

int init_forward(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace adjoin::py
