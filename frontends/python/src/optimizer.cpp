// frontends/python/src/optimizer.cpp: an optimizer's walk over its parameters: their gradients and
// state as lists for one call.
#include <vector>

#include "line.hpp"
#include "op.hpp"
#include "tensor.hpp"

namespace adjoin::py {
namespace {

constexpr Py_ssize_t kMaxStates = 4;

struct Entry {
  aj_tensor*
      t[2 + kMaxStates];  // parameter, gradient, then what is kept; owned, NULL where there is none
};

// Owned, because the interpreter's lock is given up while the step runs.
struct Entries {
  std::vector<Entry> all;
  ~Entries() {
    for (Entry& e : all)
      for (aj_tensor* t : e.t)
        if (t) core->release(t);
  }
};

enum class Found { no, yes, unfit, error };

// Fits: what a fused step takes as it is. Complex and opaque tensors go the long way.
// Tensors of a lazy scope, which are strided when they are asked, stay on the short one.
bool fits(const aj_tensor* t) {
  constexpr uint64_t kLazyKey = uint64_t{1} << 31;
  return (is_strided(t) || t->keys & kLazyKey) &&
         (t->dl.dtype.code == kDLFloat || t->dl.dtype.code == kDLBfloat) && t->dl.dtype.bits >= 16;
}

Found find_states(PyObject* param, PyObject* state, PyObject* names, Entry* e) {
  PyObject* own = nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
    PyObject* name = PyTuple_GET_ITEM(names, i);
    if (name == Py_None) continue;
    if (!own) own = PyDict_GetItemWithError(state, param);
    if (!own || !PyDict_Check(own))
      return PyErr_Occurred() ? Found::error : own ? Found::unfit : Found::no;
    PyObject* kept = PyDict_GetItemWithError(own, name);
    if (!kept || kept == Py_None) return PyErr_Occurred() ? Found::error : Found::no;
    if (!is_tensor(kept)) return Found::unfit;
    e->t[2 + i] = tensor_of(kept);
  }
  return Found::yes;
}

// Fills `entries`; parameters whose state is not there yet go to `missing`.
Found gather(PyObject* params, PyObject* state, PyObject* names, Entries* entries,
             PyObject* missing) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(params); ++i) {
    PyObject* param = PyList_GET_ITEM(params, i);
    if (!is_tensor(param)) return Found::unfit;
    Entry e = {};
    e.t[0] = tensor_of(param);
    HeldTensor grad;
    if (failed(autograd->grad(e.t[0], grad.out()))) return Found::error;
    if (!grad) continue;
    e.t[1] = grad.get();
    if (!fits(e.t[0]) || !fits(grad.get())) return Found::unfit;
    Found found = find_states(param, state, names, &e);
    if (found == Found::no) {
      if (PyList_Append(missing, param) < 0) return Found::error;
      continue;
    }
    if (found != Found::yes) return found;
    for (aj_tensor* t : e.t)
      if (t && t != grad.get()) core->retain(t);
    (void)grad.release();
    entries->all.push_back(e);
  }
  return Found::yes;
}

bool alike(const Entry& a, const Entry& b) {
  const DLTensor &x = a.t[0]->dl, &y = b.t[0]->dl;
  return x.dtype.code == y.dtype.code && x.dtype.bits == y.dtype.bits &&
         x.device.device_type == y.device.device_type && x.device.device_id == y.device.device_id;
}

// One call for all parameters of a dtype and device; there is rarely more than one.
aj_status* step_all(const aj_op* op, const Entries& entries, Py_ssize_t lists, aj_value* args,
                    uint32_t nargs) {
  size_t n = entries.all.size(), done = 0;
  std::vector<char> used(n, 0);
  std::vector<aj_tensor*> flat(n * size_t(lists));
  while (done < n) {
    size_t first = 0, count = 0;
    while (used[first]) ++first;
    for (size_t i = first; i < n; ++i) {
      if (used[i] || !alike(entries.all[first], entries.all[i])) continue;
      used[i] = 1;
      for (Py_ssize_t k = 0; k < lists; ++k) flat[size_t(k) * n + count] = entries.all[i].t[k];
      ++count;
    }
    done += count;
    for (Py_ssize_t k = 0; k < lists; ++k) {
      args[k].tag = AJ_TENSORS;
      args[k].aux = uint32_t(flat[size_t(k) * n] ? count : 0);
      args[k].v.tensors = &flat[size_t(k) * n];
    }
    if (aj_status* s = dispatch->call(op, args, nargs, nullptr, 0)) return s;
  }
  return nullptr;
}

// fused_step(row, params, state, names, numbers): the row's arguments are params, their gradients,
// a list for each name of their state (None: an empty list), then the numbers. None when done; a
// list of the parameters that have no such state yet, and nothing was done; NotImplemented when
// something does not fit.
PyObject* fused_step(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 5 || !PyUnicode_Check(args[0]) || !PyList_Check(args[1]) || !PyDict_Check(args[2]) ||
      !PyTuple_Check(args[3]) || !PyTuple_Check(args[4]) ||
      PyTuple_GET_SIZE(args[3]) > kMaxStates || PyTuple_GET_SIZE(args[4]) > 10)
    return PyErr_Format(
        PyExc_TypeError,
        "fused_step(row, params, state, names, numbers) was called with other arguments");
  Py_ssize_t length;
  const char* name = PyUnicode_AsUTF8AndSize(args[0], &length);
  const aj_op* op = name ? dispatch->find_op({name, uint64_t(length)}) : nullptr;
  if (!op) return PyErr_Format(PyExc_RuntimeError, "%U: there is no such op", args[0]);
  Entries entries;
  Ref missing(PyList_New(0));
  if (!missing) return nullptr;
  entries.all.reserve(size_t(PyList_GET_SIZE(args[1])));
  Found found = gather(args[1], args[2], args[3], &entries, missing.get());
  if (found == Found::error) return nullptr;
  if (found == Found::unfit) Py_RETURN_NOTIMPLEMENTED;
  if (PyList_GET_SIZE(missing.get())) return missing.release();
  Py_ssize_t lists = 2 + PyTuple_GET_SIZE(args[3]), numbers = PyTuple_GET_SIZE(args[4]);
  aj_value values[2 + kMaxStates + 10] = {};
  for (Py_ssize_t i = 0; i < numbers; ++i) {
    PyObject* x = PyTuple_GET_ITEM(args[4], i);
    double real = PyBool_Check(x) ? 0 : PyFloat_AsDouble(x);
    if (real == -1 && PyErr_Occurred()) return nullptr;
    values[lists + i] = PyBool_Check(x) ? value(x == Py_True) : value(real);
  }
  note_line();
  int32_t recording = autograd->set_grad_mode(0);
  aj_status* s = step_all(op, entries, lists, values, uint32_t(lists + numbers));
  autograd->set_grad_mode(recording);
  if (failed(s)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* drop_grads(PyObject*, PyObject* params) {
  if (!PyList_Check(params)) return PyErr_Format(PyExc_TypeError, "drop_grads(list of tensors)");
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(params); ++i) {
    PyObject* param = PyList_GET_ITEM(params, i);
    if (is_tensor(param) && failed(autograd->set_grad(tensor_of(param), nullptr))) return nullptr;
  }
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"fused_step", method(fused_step), METH_FASTCALL, nullptr},
    {"drop_grads", drop_grads, METH_O, nullptr},
    {},
};

}  // namespace

int init_optimizer(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace adjoin::py
