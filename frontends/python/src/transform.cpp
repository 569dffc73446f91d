// frontends/python/src/transform.cpp: levels of transforms (abi/transform.h) for adjoin.func.
#include <adjoin/abi/transform.h>

#include "errors.hpp"
#include "extension.hpp"
#include "function.hpp"
#include "tensor.hpp"

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
PyObject* transform_enter(PyObject*, PyObject* args) {
  int kind, randomness;
  long long size;
  int32_t level;
  if (!PyArg_ParseTuple(args, "iLi", &kind, &size, &randomness) || !table() ||
      failed(table()->enter(kind, size, randomness, &level)))
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
    {"transform_enter", transform_enter, METH_VARARGS, nullptr},
    {"transform_leave", transform_leave, METH_O, nullptr},
    {"transform_batched", method(transform_batched), METH_FASTCALL, nullptr},
    {"transform_unbatched", method(transform_unbatched), METH_FASTCALL, nullptr},
    {"transform_batched_at", method(transform_batched_at), METH_FASTCALL, nullptr},
    {"transform_shared", method(transform_shared), METH_FASTCALL, nullptr},
    {"transform_batch", transform_batch, METH_O, nullptr},
    {"transform_random_stride", transform_random_stride, METH_VARARGS, nullptr},
    {"transform_lift", method(transform_lift), METH_FASTCALL, nullptr},
    {"transform_loops", transform_loops, METH_NOARGS, nullptr},
    {"transform_loops_forbid", transform_loops_forbid, METH_O, nullptr},
    {},
};

}  // namespace

bool level_is_open() { return in_use<aj_transforms> && in_use<aj_transforms>->innermost(); }

int init_transform(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace adjoin::py
