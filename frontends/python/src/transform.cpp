// frontends/python/src/transform.cpp: levels of transforms (abi/transform.h) for adjoin.func.
#include "transform.hpp"

#include "errors.hpp"
#include "function.hpp"
#include "methods.hpp"
#include "tensor.hpp"
#include "trees.hpp"

namespace adjoin::py {
namespace {

const aj_transforms* table() {
  return extension<aj_transforms>("x.transform", "vmap", "libaj_transform.so");
}

// A tensor, and the int behind it.
bool take(PyObject* const* args, Py_ssize_t n, Py_ssize_t want, aj_tensor** t, int32_t* ints) {
  if (n != want || !is_tensor(args[0])) {
    PyErr_Format(PyExc_TypeError, "transform: a Tensor and %zd numbers are wanted", want - 1);
    return false;
  }
  *t = tensor_of(args[0]);
  for (Py_ssize_t i = 1; i < want; i++) ints[i - 1] = int32_t(PyLong_AsLong(args[i]));
  return !PyErr_Occurred() && table();
}

// transform_enter(kind, size, randomness): the level.
PyObject* transform_enter(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 3) return PyErr_Format(PyExc_TypeError, "transform_enter: 3 numbers are wanted");
  const auto kind = int32_t(PyLong_AsLong(args[0])), randomness = int32_t(PyLong_AsLong(args[2]));
  const int64_t size = PyLong_AsLongLong(args[1]);
  int32_t level;
  if (PyErr_Occurred() || !table() || failed(table()->enter(kind, size, randomness, &level)))
    return nullptr;
  return PyLong_FromLong(level);
}

PyObject* transform_leave(PyObject*, PyObject* level) {
  long l = PyLong_AsLong(level);
  if (PyErr_Occurred() || !table() || failed(table()->leave(int32_t(l)))) return nullptr;
  Py_RETURN_NONE;
}

// transform_batched(t, dim, level)
PyObject* transform_batched(PyObject*, PyObject* const* args, Py_ssize_t n) {
  aj_tensor *t, *made;
  int32_t given[2];
  if (!take(args, n, 3, &t, given) || failed(table()->batched(t, given[0], given[1], &made)))
    return nullptr;
  return wrap(made);
}

// transform_unbatched(t, dim, level)
PyObject* transform_unbatched(PyObject*, PyObject* const* args, Py_ssize_t n) {
  aj_tensor *t, *made;
  int32_t given[2];
  if (!take(args, n, 3, &t, given) || failed(table()->unbatched(t, given[0], given[1], &made)))
    return nullptr;
  return wrap(made);
}

// transform_batched_at(t, level): does it differ between the samples of the level?
PyObject* transform_batched_at(PyObject*, PyObject* const* args, Py_ssize_t n) {
  aj_tensor *t, *shared = nullptr;
  int32_t given[1];
  if (n == 2 && !in_use<aj_transforms>) return Py_NewRef(args[0]);
  if (!take(args, n, 2, &t, given) || failed(table()->shared(t, given[0], &shared))) return nullptr;
  core->release(shared);
  return PyBool_FromLong(!shared);
}

// transform_shared(t, level): what all samples share, outside of the level; None if they differ.
PyObject* transform_shared(PyObject*, PyObject* const* args, Py_ssize_t n) {
  aj_tensor *t, *shared = nullptr;
  int32_t given[1];
  if (n == 2 && !in_use<aj_transforms>) return Py_NewRef(args[0]);
  if (!take(args, n, 2, &t, given) || failed(table()->shared(t, given[0], &shared))) return nullptr;
  return wrap_or_none(shared);
}

// transform_batch(level): (how many samples, randomness).
PyObject* transform_batch(PyObject*, PyObject* level) {
  const int32_t l = int32_t(PyLong_AsLong(level));
  int64_t size;
  int32_t randomness;
  if (PyErr_Occurred() || !table() || failed(table()->batch_of(l, &size, &randomness)))
    return nullptr;
  constexpr const char* modes[] = {"error", "same", "different"};
  return Py_BuildValue("(Ls)", (long long)size, modes[randomness]);
}

// transform_random_stride(level, blocks)
PyObject* transform_random_stride(PyObject*, PyObject* args) {
  int level;
  long long blocks;
  if (!PyArg_ParseTuple(args, "iL", &level, &blocks) || !table() ||
      failed(table()->random_stride(level, blocks)))
    return nullptr;
  Py_RETURN_NONE;
}

// transform_lift(t, level); level 0: the innermost one, if there is one.
PyObject* transform_lift(PyObject*, PyObject* const* args, Py_ssize_t n) {
  aj_tensor *t, *made;
  int32_t given[1];
  if (n == 2 && !in_use<aj_transforms>) return Py_NewRef(args[0]);
  if (!take(args, n, 2, &t, given) || failed(table()->lift(t, given[0], &made))) return nullptr;
  return wrap(made);
}

// transform_inputs(tree, leaves): the tree as inputs of a derivative, which the list gets.
PyObject* transform_inputs(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 2 || !PyList_Check(args[1]))
    return PyErr_Format(PyExc_TypeError, "transform_inputs: a tree and a list are wanted");
  return mapped(args[0], fresh_input, args[1]);
}

// The dimension of argument i that in_dims, a number or a tuple, names; -1: none. False: it is
// another tree, negative, or for something else than a tensor.
bool mapped_dim(PyObject* in_dims, PyObject* arg, Py_ssize_t i, int64_t* dim) {
  PyObject* d = PyTuple_CheckExact(in_dims) ? PyTuple_GET_ITEM(in_dims, i) : in_dims;
  *dim = -1;
  if (d == Py_None) return true;
  if (!PyLong_CheckExact(d) || !is_exact_tensor(arg)) return false;
  int over;
  *dim = PyLong_AsLongAndOverflow(d, &over);
  return *dim >= 0 && *dim < tensor_of(arg)->dl.ndim;
}

// transform_size(args, in_dims): the size that the mapped dimensions of a tuple of tensors have;
// None where it is not as simple.
PyObject* transform_size(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 2 || !PyTuple_CheckExact(args[0]) ||
      !(PyLong_CheckExact(args[1]) ||
        (PyTuple_CheckExact(args[1]) && PyTuple_GET_SIZE(args[1]) == PyTuple_GET_SIZE(args[0]))))
    Py_RETURN_NONE;
  int64_t size = -1, dim;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[0]); ++i) {
    PyObject* arg = PyTuple_GET_ITEM(args[0], i);
    if (!mapped_dim(args[1], arg, i, &dim)) Py_RETURN_NONE;
    if (dim < 0) continue;
    const int64_t own = tensor_of(arg)->dl.shape[dim];
    if (size >= 0 && own != size) Py_RETURN_NONE;
    size = own;
  }
  return size < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(size);
}

// transform_batch_all(args, in_dims, level): the arguments inside of a level, where
// transform_size gave a size.
PyObject* transform_batch_all(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 3 || !PyTuple_CheckExact(args[0]))
    return PyErr_Format(PyExc_TypeError, "transform_batch_all: args, in_dims and level are wanted");
  const Py_ssize_t count = PyTuple_GET_SIZE(args[0]);
  const auto level = int32_t(PyLong_AsLong(args[2]));
  Ref made(PyTuple_New(count));
  for (Py_ssize_t i = 0; made && i < count; ++i) {
    PyObject* arg = PyTuple_GET_ITEM(args[0], i);
    int64_t dim;
    if (!mapped_dim(args[1], arg, i, &dim))
      return PyErr_Format(PyExc_TypeError, "transform_batch_all: argument %zd has no dimension", i);
    aj_tensor* t = nullptr;
    if (dim >= 0 && (!table() || failed(table()->batched(tensor_of(arg), int32_t(dim), level, &t))))
      return nullptr;
    PyObject* item = t ? wrap(t) : Py_NewRef(arg);
    if (!item) return nullptr;
    PyTuple_SET_ITEM(made.get(), i, item);
  }
  return PyErr_Occurred() ? nullptr : made.release();
}

// transform_loops(): a tuple (op, reason, calls, samples, seconds) for each op that looped.
PyObject* transform_loops(PyObject*, PyObject*) {
  if (!table()) return nullptr;
  Ref list(PyList_New(0));
  for (uint32_t i = 0; list && i < table()->loop_count(); i++) {
    aj_loop l{};
    l.struct_size = sizeof l;
    if (failed(table()->loop_at(i, &l))) return nullptr;
    Ref line(Py_BuildValue("(s#s#KKd)", l.op.data, Py_ssize_t(l.op.len), l.reason.data,
                           Py_ssize_t(l.reason.len), (unsigned long long)l.calls,
                           (unsigned long long)l.samples, double(l.nanoseconds) * 1e-9));
    if (!line || PyList_Append(list.get(), line.get())) return nullptr;
  }
  return list.release();
}

PyObject* transform_loops_forbid(PyObject*, PyObject* on) {
  if (!table()) return nullptr;
  table()->loops_forbid(PyObject_IsTrue(on));
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"transform_enter", method(transform_enter), METH_FASTCALL, nullptr},
    {"transform_leave", transform_leave, METH_O, nullptr},
    {"transform_batched", method(transform_batched), METH_FASTCALL, nullptr},
    {"transform_unbatched", method(transform_unbatched), METH_FASTCALL, nullptr},
    {"transform_batched_at", method(transform_batched_at), METH_FASTCALL, nullptr},
    {"transform_shared", method(transform_shared), METH_FASTCALL, nullptr},
    {"transform_batch", transform_batch, METH_O, nullptr},
    {"transform_random_stride", transform_random_stride, METH_VARARGS, nullptr},
    {"transform_lift", method(transform_lift), METH_FASTCALL, nullptr},
    {"transform_inputs", method(transform_inputs), METH_FASTCALL, nullptr},
    {"transform_size", method(transform_size), METH_FASTCALL, nullptr},
    {"transform_batch_all", method(transform_batch_all), METH_FASTCALL, nullptr},
    {"transform_loops", transform_loops, METH_NOARGS, nullptr},
    {"transform_loops_forbid", transform_loops_forbid, METH_O, nullptr},
    {},
};

}  // namespace

PyObject* fresh_input(PyObject* given, void* leaves) {
  aj_tensor* lifted = nullptr;
  Ref tensor = Ref::borrow(given);
  if (in_use<aj_transforms>) {
    if (failed(in_use<aj_transforms>->lift(tensor_of(given), 0, &lifted))) return nullptr;
    tensor = Ref(wrap(lifted));
  }
  if (!tensor) return nullptr;
  Ref leaf;
  if (says_requires_grad(tensor_of(tensor.get()))) {
    static PyObject* const view_as = PyUnicode_InternFromString("view_as");
    leaf = Ref(PyObject_CallMethodOneArg(tensor.get(), view_as, tensor.get()));
  } else {
    aj_tensor* alias = nullptr;
    if (failed(autograd->detach(tensor_of(tensor.get()), &alias))) return nullptr;
    leaf = Ref(wrap(alias));
    if (leaf && failed(autograd->set_requires_grad(alias, 1))) return nullptr;
  }
  if (!leaf || PyList_Append(static_cast<PyObject*>(leaves), leaf.get()) < 0) return nullptr;
  return leaf.release();
}

bool level_is_open() { return in_use<aj_transforms> && in_use<aj_transforms>->innermost(); }

int init_transform(PyObject* module) {
  return init_trees(module) < 0 || init_derivatives(module) < 0
             ? -1
             : PyModule_AddFunctions(module, functions);
}

}  // namespace adjoin::py
