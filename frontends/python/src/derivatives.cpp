// frontends/python/src/derivatives.cpp: derivatives of functions of tensors in no structure, which
// most are, in one call. adjoin.func does the same for the others, step by step.
#include <algorithm>
#include <vector>

#include "engine.hpp"
#include "methods.hpp"
#include "transform.hpp"
#include "trees.hpp"

namespace adjoin::py {
namespace {

const aj_transforms* table() {
  return extension<aj_transforms>("x.transform", "derivatives", "libaj_transform.so");
}

// Recording is on while it lives.
class Recording {
 public:
  Recording() : before_(autograd->set_grad_mode(1)) {}
  ~Recording() { autograd->set_grad_mode(before_); }
  Recording(const Recording&) = delete;
  bool before() const { return before_ != 0; }

 private:
  int32_t before_;
};

// A call of an op of one result. NULL with an error set.
template <size_t n>
aj_tensor* made_by(const aj_op* op, const aj_value (&args)[n]) {
  aj_value result{};
  return failed(dispatch->call(op, args, uint32_t(n), &result, 1)) ? nullptr : result.v.tensor;
}
aj_value of(aj_tensor* t) { return {AJ_TENSOR, 0, {.tensor = t}}; }

aj_tensor* zeros_like(aj_tensor* t) {
  static const aj_op* const op = dispatch->find_op(AJ_STR_LIT("zeros_like"));
  return made_by(op, {of(t)});
}
aj_tensor* ones_like(aj_tensor* t) {
  static const aj_op* const op = dispatch->find_op(AJ_STR_LIT("ones_like"));
  return made_by(op, {of(t)});
}
aj_tensor* reshape(aj_tensor* t, const std::vector<int64_t>& shape) {
  static const aj_op* const op = dispatch->find_op(AJ_STR_LIT("reshape"));
  return made_by(op, {of(t), {AJ_INTS, uint32_t(shape.size()), {.ints = shape.data()}}});
}
aj_tensor* eye(int64_t n, const DLTensor& like) {
  static const aj_op* const op = dispatch->find_op(AJ_STR_LIT("eye"));
  return made_by(op, {{AJ_INT, 0, {.i = n}},
                      {},
                      {AJ_DTYPE, 0, {.dtype = like.dtype}},
                      {AJ_DEVICE, 0, {.device = like.device}}});
}

int64_t count_of(const aj_tensor* t) {
  int64_t n = 1;
  for (int32_t i = 0; i < t->dl.ndim; ++i) n *= t->dl.shape[i];
  return n;
}

// A call of a function, argument `number` of which is an input of derivatives; recording is on.
class Called {
 public:
  bool recorded = false;  // do its arguments have a history?
  bool closes = false;    // does the result depend on what the function closes over?
  Ref args, leaves, result;

  explicit Called(const Recording& r) : recording_(r.before()) {}

  bool make(PyObject* func, Py_ssize_t number, PyObject* given, PyObject* kwargs) {
    auto has = [](PyObject* t, void*) -> int { return says_requires_grad(tensor_of(t)); };
    int found = recording_ ? any_tensor(given, has, nullptr) : 0;
    if (found == 0 && recording_) found = any_tensor(kwargs, has, nullptr);
    leaves = Ref(PyList_New(0));
    args = Ref(PyTuple_New(PyTuple_GET_SIZE(given)));
    if (found < 0 || !leaves || !args) return false;
    recorded = found;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given); ++i) {
      PyObject* item = PyTuple_GET_ITEM(given, i);
      item = i == number ? fresh_input(item, leaves.get()) : Py_NewRef(item);
      if (!item) return false;
      PyTuple_SET_ITEM(args.get(), i, item);
    }
    result = Ref(PyObject_Call(func, args.get(), PyDict_GET_SIZE(kwargs) ? kwargs : nullptr));
    if (!result) return false;
    found = recording_ && !recorded ? any_tensor(result.get(), reaches, leaves.get()) : 0;
    closes = found > 0;
    return found >= 0;
  }

  aj_tensor* leaf() const { return tensor_of(PyList_GET_ITEM(leaves.get(), 0)); }
  aj_tensor* output() const { return tensor_of(result.get()); }

  // Is a derivative to be recorded: at this level, or at one around? -1 with an error set.
  int depended_on() const {
    return recorded || closes ? 1 : any_tensor(result.get(), recorded_around, nullptr);
  }

  // What goes on with the call where this file does not serve: rest(its parts).
  PyObject* go_on(PyObject* rest) const {
    return PyObject_CallFunctionObjArgs(
        rest, args.get(), leaves.get(), recording_ ? Py_True : Py_False,
        recorded ? Py_True : Py_False, closes ? Py_True : Py_False, result.get(), nullptr);
  }

  // The derivative as it is handed out.
  PyObject* freed(aj_tensor* steal) const {
    Ref made(steal ? wrap(steal) : nullptr);
    if (!made) return nullptr;
    if (closes)
      made = Ref(py::freed(made.get(), leaves.get()));
    else if (!recorded)
      return says_requires_grad(steal) ? detached(made.get(), nullptr) : made.release();
    // Who looks for leaves in what is kept shall not find ours.
    if (made && leaf()->obj.flags & AJ_TENSOR_LEAF &&
        failed(autograd->set_requires_grad(leaf(), 0)))
      return nullptr;
    return made.release();
  }

 private:
  bool recording_;
};

// The derivative of a call's result by its leaf; weight: NULL, one. Owned; NULL with an error set.
aj_tensor* pulled(const Called& c, aj_tensor* weight, bool kept) {
  aj_tensor *output = c.output(), *leaf = c.leaf(), *found = nullptr;
  if (says_requires_grad(output)) {
    auto b = sized<aj_backward>();
    b.flags = AJ_BACKWARD_ALLOW_UNUSED;
    if (kept) b.flags |= AJ_BACKWARD_RETAIN_GRAPH | AJ_BACKWARD_CREATE_GRAPH;
    b.roots = &output;
    b.grads = weight ? &weight : nullptr;
    b.inputs = &leaf;
    b.out = &found;
    b.nroots = b.ninputs = 1;
    if (!run_pass(b)) return nullptr;
  }
  return found ? found : zeros_like(leaf);
}

// Is args[number] a tensor? Other trees are for adjoin.func.
bool is_simple(PyObject* const* a, Py_ssize_t n, Py_ssize_t* number) {
  if (n != 5 || !PyTuple_CheckExact(a[2]) || !PyDict_CheckExact(a[3])) return false;
  *number = PyLong_CheckExact(a[1]) ? PyLong_AsSsize_t(a[1]) : -1;
  if (PyErr_Occurred()) forget_error();
  return *number >= 0 && *number < PyTuple_GET_SIZE(a[2]) &&
         is_exact_tensor(PyTuple_GET_ITEM(a[2], *number));
}

// gradient_of(func, number, args, kwargs, rest): the derivative of a function that gives one
// number; None: its argument is no tensor.
PyObject* gradient_of(PyObject*, PyObject* const* a, Py_ssize_t n) {
  Py_ssize_t number;
  if (!is_simple(a, n, &number)) Py_RETURN_NONE;
  Recording on;
  Called c(on);
  if (!c.make(a[0], number, a[2], a[3])) return nullptr;
  if (!is_exact_tensor(c.result.get()) || c.output()->dl.ndim) return c.go_on(a[4]);
  const int kept = c.depended_on();
  return kept < 0 ? nullptr : c.freed(pulled(c, nullptr, kept));
}

// A batch of weights: as long as it lives its level is the innermost one, for Python too.
class Batch {
 public:
  explicit Batch(int64_t size) {
    static PyObject* const enter = Ref::borrow(helper("adjoin._vmap", "enter")).release();
    Ref level(enter ? PyObject_CallFunction(enter, "Ls", (long long)size, "same") : nullptr);
    if (level) level_ = int32_t(PyLong_AsLong(level.get()));
  }
  ~Batch() {
    if (!level_) return;
    static PyObject* const leave = Ref::borrow(helper("adjoin._vmap", "leave")).release();
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    Ref level(PyObject_CallNoArgs(leave));
    if (!level) forget_error();
    PyErr_Restore(type, value, trace);
  }
  Batch(const Batch&) = delete;
  int32_t level() const { return level_; }  // 0: an error is set

 private:
  int32_t level_ = 0;
};

// One weight for each element of the result, one below the other.
aj_tensor* unit_weights(const aj_tensor* output, int64_t count) {
  HeldTensor unit(eye(count, output->dl));
  if (!unit || output->dl.ndim == 1) return unit.release();
  std::vector<int64_t> shape{count};
  shape.insert(shape.end(), output->dl.shape, output->dl.shape + output->dl.ndim);
  return reshape(unit.get(), shape);
}

aj_tensor* rows_of(const Called& c, int64_t count, bool kept) {
  if (count == 1) {
    HeldTensor one(ones_like(c.output()));
    return one ? pulled(c, one.get(), kept) : nullptr;
  }
  HeldTensor unit(unit_weights(c.output(), count)), weights;
  if (!unit) return nullptr;
  Batch batch(count);
  aj_tensor* rows = nullptr;
  if (!batch.level() || failed(table()->batched(unit.get(), 0, batch.level(), weights.out())))
    return nullptr;
  HeldTensor found(pulled(c, weights.get(), kept));
  return !found || failed(table()->unbatched(found.get(), 0, batch.level(), &rows)) ? nullptr
                                                                                    : rows;
}

// jacobian_of(func, number, args, kwargs, rest): all derivatives of a function that gives a tensor;
// None: its argument is no tensor.
PyObject* jacobian_of(PyObject*, PyObject* const* a, Py_ssize_t n) {
  Py_ssize_t number;
  if (!is_simple(a, n, &number) || !table()) {
    if (PyErr_Occurred()) return nullptr;
    Py_RETURN_NONE;
  }
  Recording on;
  Called c(on);
  if (!c.make(a[0], number, a[2], a[3])) return nullptr;
  const int64_t count = is_exact_tensor(c.result.get()) ? count_of(c.output()) : 0;
  if (!count || !says_requires_grad(c.output()) || c.leaf()->dl.dtype.code == kDLComplex ||
      c.output()->dl.dtype.code == kDLComplex)
    return c.go_on(a[4]);
  const int kept = c.depended_on();
  HeldTensor rows(kept < 0 ? nullptr : rows_of(c, count, kept));
  if (!rows) return nullptr;
  const DLTensor &out = c.output()->dl, &in = c.leaf()->dl;
  const bool shaped = out.ndim == 0 || (out.ndim == 1 && count > 1 && in.ndim == 1);
  if (shaped) return c.freed(rows.release());
  std::vector<int64_t> shape(out.shape, out.shape + out.ndim);
  shape.insert(shape.end(), in.shape, in.shape + in.ndim);
  return c.freed(reshape(rows.get(), shape));
}

// A level of duals that is open while it lives.
class Duals {
 public:
  Duals() { (void)failed(table()->enter(AJ_LEVEL_DUAL, 1, AJ_RANDOM_ERROR, &level_)); }
  ~Duals() {
    if (!level_) return;
    if (aj_status* s = table()->leave(level_)) core->status_free(s);
  }
  Duals(const Duals&) = delete;
  int32_t level() const { return level_; }  // 0: an error is set

 private:
  int32_t level_ = 0;
};

bool are_alike(PyObject* primals, PyObject* tangents) {
  if (!PyTuple_CheckExact(primals) || !PyTuple_CheckExact(tangents) ||
      PyTuple_GET_SIZE(primals) != PyTuple_GET_SIZE(tangents))
    return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(primals); ++i) {
    PyObject *x = PyTuple_GET_ITEM(primals, i), *t = PyTuple_GET_ITEM(tangents, i);
    if (!is_exact_tensor(x) || !is_exact_tensor(t)) return false;
    const DLTensor &a = tensor_of(x)->dl, &b = tensor_of(t)->dl;
    if (a.ndim != b.ndim || !std::equal(a.shape, a.shape + a.ndim, b.shape)) return false;
  }
  return true;
}

// The primals with their tangents.
Ref duals_of(PyObject* primals, PyObject* tangents, int32_t level) {
  Ref all(PyTuple_New(PyTuple_GET_SIZE(primals)));
  for (Py_ssize_t i = 0; all && i < PyTuple_GET_SIZE(primals); ++i) {
    aj_tensor* made;
    if (failed(table()->dual(tensor_of(PyTuple_GET_ITEM(primals, i)),
                             tensor_of(PyTuple_GET_ITEM(tangents, i)), level, &made)))
      return {};
    PyObject* item = wrap(made);
    if (!item) return {};
    PyTuple_SET_ITEM(all.get(), i, item);
  }
  return all;
}

// pushed(func, primals, tangents, parts): (result, tangent) of a function of tensors. Where its
// result is not a tensor that moves: (result, parts(result, level), None). None: the arguments are
// no tuples of tensors, each tangent of the shape of its primal.
PyObject* pushed(PyObject*, PyObject* const* a, Py_ssize_t n) {
  if (n != 4 || !are_alike(a[1], a[2])) Py_RETURN_NONE;
  if (!table()) return nullptr;
  Duals duals;
  if (!duals.level()) return nullptr;
  Ref args = duals_of(a[1], a[2], duals.level());
  Ref result(args ? PyObject_Call(a[0], args.get(), nullptr) : nullptr);
  if (!result) return nullptr;
  if (is_exact_tensor(result.get())) {
    HeldTensor value, tangent;
    if (failed(table()->undual(tensor_of(result.get()), duals.level(), value.out(), tangent.out())))
      return nullptr;
    if (tangent) {
      Ref first(wrap(value.release())), second(wrap(tangent.release()));
      return first && second ? PyTuple_Pack(2, first.get(), second.get()) : nullptr;
    }
  }
  Ref level(PyLong_FromLong(duals.level()));
  Ref parts(level ? PyObject_CallFunctionObjArgs(a[3], result.get(), level.get(), nullptr)
                  : nullptr);
  return parts ? PyTuple_Pack(3, result.get(), parts.get(), Py_None) : nullptr;
}

PyMethodDef functions[] = {
    {"gradient_of", method(gradient_of), METH_FASTCALL, nullptr},
    {"jacobian_of", method(jacobian_of), METH_FASTCALL, nullptr},
    {"pushed", method(pushed), METH_FASTCALL, nullptr},
    {},
};

}  // namespace

int init_derivatives(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace adjoin::py
