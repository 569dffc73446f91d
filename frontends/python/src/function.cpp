// frontends/python/src/function.cpp: Function.apply: forward runs unrecorded, then its results
// become results of one node.
#include "function.hpp"

#include <set>

#include "collect.hpp"
#include "line.hpp"

namespace adjoin::py {
namespace {

class GradOff {
 public:
  GradOff() : old_(autograd->set_grad_mode(0)) {}
  ~GradOff() { autograd->set_grad_mode(old_); }

 private:
  int32_t old_;
};

// Node names live as long as the process.
aj_str node_name(PyObject* cls) {
  static auto& names = *new std::set<std::string>;
  std::string_view full = reinterpret_cast<PyTypeObject*>(cls)->tp_name;
  auto it = names.insert(std::string(full.substr(full.rfind('.') + 1)) + "Backward").first;
  return str(*it);
}

bool in_tuple(const Ref& tuple, PyObject* o) {
  for (Py_ssize_t i = 0; tuple && i < PyTuple_GET_SIZE(tuple.get()); ++i)
    if (PyTuple_GET_ITEM(tuple.get(), i) == o) return true;
  return false;
}

class Application {
 public:
  Application(PyObject* cls, PyObject* const* args, Py_ssize_t n) : cls_(cls), args_(args), n_(n) {}

  PyObject* context() { return ctx_.get(); }

  PyObject* run() {
    ctx_ = Ref(context_type.tp_new(&context_type, nullptr, nullptr));
    if (!ctx_ || !look_at_class() || !look_at_inputs()) return nullptr;
    if (recording_ && !make_node()) return nullptr;
    Ref result(forward());
    if (!result || !recording_) return result.release();
    return attach(result.get());
  }

 private:
  FunctionState& state() { return *reinterpret_cast<ContextObject*>(ctx_.get())->state; }

  bool look_at_class() {
    PyObject* own_setup = helper("adjoin.autograd.function", "_default_setup_context");
    setup_ = Ref(PyObject_GetAttrString(cls_, "setup_context"));
    forward_ = Ref(PyObject_GetAttrString(cls_, "forward"));
    if (!own_setup || !setup_ || !forward_) return false;
    split_ = setup_.get() != own_setup;
    if (split_) add_defaults();
    return true;
  }

  // setup_context sees all of forward's arguments, also those that the call has left out.
  void add_defaults() {
    PyObject* f = forward_.get();
    const Py_ssize_t bound = PyMethod_Check(f);
    if (bound) f = PyMethod_GET_FUNCTION(f);
    PyObject* defaults = PyFunction_Check(f) ? PyFunction_GetDefaults(f) : nullptr;
    if (!defaults) return;
    const Py_ssize_t known = PyTuple_GET_SIZE(defaults);
    const auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GetCode(f));
    const Py_ssize_t missing = code->co_argcount - bound - n_;
    if (missing <= 0 || missing > known) return;
    with_defaults_.assign(args_, args_ + n_);
    for (Py_ssize_t i = known - missing; i < known; ++i)
      with_defaults_.push_back(PyTuple_GET_ITEM(defaults, i));
    args_ = with_defaults_.data(), n_ += missing;
  }

  bool look_at_inputs() {
    FunctionState& s = state();
    s.cls = cls_;
    s.kept = Ref::borrow(cls_);
    bool on = autograd->grad_mode();
    s.needs_input_grad = Ref(PyTuple_New(n_));
    for (Py_ssize_t i = 0; s.needs_input_grad && i < n_; ++i) {
      aj_tensor* t = is_tensor(args_[i]) ? tensor_of(args_[i]) : nullptr;
      bool needs = t && on && needs_grad(args_[i], t);
      recording_ |= needs;
      s.places.push_back(t ? static_cast<int>(inputs_.size()) : -1);
      if (t) inputs_.push_back(t);
      PyTuple_SET_ITEM(s.needs_input_grad.get(), i, Py_NewRef(needs ? Py_True : Py_False));
    }
    return static_cast<bool>(s.needs_input_grad);
  }

  static bool needs_grad(PyObject* o, aj_tensor* t) {
    if (requires_grad(t) || !(t->obj.flags & AJ_TENSOR_VIEW)) return requires_grad(t);
    Ref answer(PyObject_GetAttrString(o, "requires_grad"));  // asks the base
    return answer && answer.get() == Py_True;
  }

  bool make_node() {
    auto def = sized<aj_vjp_def>();
    def.op = node_name(cls_);
    def.vjp = run_python_backward;
    def.drop = drop_context;
    if (recording_) note_line();
    Py_INCREF(ctx_.get());
    if (failed(autograd->node_new(&def, ctx_.get(), inputs_.data(),
                                  static_cast<uint32_t>(inputs_.size()), node_.out()))) {
      Py_DECREF(ctx_.get());
      return false;
    }
    reinterpret_cast<NodeObject*>(ctx_.get())->node = node_.get();
    return true;
  }

  PyObject* forward() {
    GradOff off;
    std::vector<PyObject*> all;
    if (!split_) all.push_back(ctx_.get());
    all.insert(all.end(), args_, args_ + n_);
    Ref result(PyObject_Vectorcall(forward_.get(), all.data(), all.size(), nullptr));
    if (!result || !split_) return result.release();
    Ref inputs(PyTuple_New(n_));
    for (Py_ssize_t i = 0; inputs && i < n_; ++i)
      PyTuple_SET_ITEM(inputs.get(), i, Py_NewRef(args_[i]));
    PyObject* three[] = {ctx_.get(), inputs.get(), result.get()};
    Ref done(inputs ? PyObject_Vectorcall(setup_.get(), three, 3, nullptr) : nullptr);
    return done ? result.release() : nullptr;
  }

  PyObject* attach(PyObject* result) {
    bool several = PyTuple_Check(result);
    Py_ssize_t n = several ? PyTuple_GET_SIZE(result) : 1;
    if (failed(autograd->node_results(node_.get(), static_cast<uint32_t>(n)))) return nullptr;
    Ref out(PyTuple_New(n));
    for (Py_ssize_t i = 0; out && i < n; ++i) {
      PyObject* given = several ? PyTuple_GET_ITEM(result, i) : result;
      PyObject* item = attach_one(static_cast<uint32_t>(i), given);
      if (!item) return nullptr;
      PyTuple_SET_ITEM(out.get(), i, item);
    }
    if (!out || !check_dirty(out.get()) || !save(result)) return nullptr;
    if (n == 1 && is_tensor(PyTuple_GET_ITEM(out.get(), 0)))
      watch_cycles(PyTuple_GET_ITEM(out.get(), 0));  // ctx may hold it
    state().dirty = Ref(),
    state().non_differentiable = Ref();  // results: the node that they belong to must not hold them
    return several ? out.release() : Py_NewRef(PyTuple_GET_ITEM(out.get(), 0));
  }

  bool is_input(PyObject* o) const {
    for (Py_ssize_t i = 0; i < n_; ++i)
      if (args_[i] == o) return true;
    return false;
  }

  PyObject* attach_one(uint32_t i, PyObject* o) {
    FunctionState& s = state();
    if (!is_tensor(o)) {
      s.outputs.push_back({false, {}, {}, {}});
      return Py_NewRef(o);
    }
    aj_tensor* t = tensor_of(o);
    s.outputs.push_back({true, t->dl.dtype, t->dl.device, {t->dl.shape, t->dl.shape + t->dl.ndim}});
    bool dirty = in_tuple(s.dirty, o);
    if (dirty && !is_input(o)) {
      if (!told_of_no_input()) return nullptr;
      dirty = false;
    }
    bool real = t->dl.dtype.code == kDLFloat || t->dl.dtype.code == kDLBfloat ||
                t->dl.dtype.code == kDLComplex;
    if (!real || in_tuple(s.non_differentiable, o)) return Py_NewRef(o);
    HeldTensor alias;
    if (is_input(o) && !dirty) {  // the input itself must keep its own history
      if (failed(autograd->detach(t, alias.out()))) return nullptr;
      t = alias.get();
    }
    if (failed(autograd->node_attach(node_.get(), i, t, dirty))) return nullptr;
    return alias ? wrap(alias.release()) : Py_NewRef(o);
  }

  static bool told_of_no_input() {
    return PyErr_WarnEx(PyExc_UserWarning,
                        "mark_dirty: Only input Tensors should be given to ctx.mark_dirty(); this "
                        "one is no input, and need not be marked",
                        1) == 0;
  }

  bool check_dirty(PyObject* out) {
    const Ref& dirty = state().dirty;
    for (Py_ssize_t i = 0; dirty && i < PyTuple_GET_SIZE(dirty.get()); ++i) {
      Ref all = Ref::borrow(out);
      if (in_tuple(all, PyTuple_GET_ITEM(dirty.get(), i))) continue;
      PyErr_SetString(PyExc_RuntimeError,
                      "mark_dirty: a tensor that forward wrote must also be one of its outputs");
      return false;
    }
    return true;
  }

  // A saved output is kept as a result of the node, so that no cycle comes about.
  bool save(PyObject* result) {
    FunctionState& s = state();
    Ref list = std::move(s.to_save);
    for (Py_ssize_t i = 0; list && i < PyTuple_GET_SIZE(list.get()); ++i) {
      PyObject* o = PyTuple_GET_ITEM(list.get(), i);
      s.saved.push_back(o != Py_None);
      if (o == Py_None) continue;
      bool is_result = !is_input(o) || in_tuple(s.dirty, o) ? is_output(o, result) : false;
      aj_value v = value(tensor_of(o));
      if (failed(autograd->node_save(node_.get(), &v, is_result))) return false;
    }
    return true;
  }

  static bool is_output(PyObject* o, PyObject* result) {
    if (!PyTuple_Check(result)) return o == result;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result); ++i)
      if (PyTuple_GET_ITEM(result, i) == o) return true;
    return false;
  }

  PyObject* cls_;
  PyObject* const* args_;
  Py_ssize_t n_;
  Ref ctx_, setup_, forward_;
  HeldNode node_;
  std::vector<aj_tensor*> inputs_;
  std::vector<PyObject*> with_defaults_;
  bool recording_ = false, split_ = false;
};

bool any_wrapped(PyObject* const* args, Py_ssize_t n) {
  for (Py_ssize_t i = 0; i < n; ++i)
    if (is_tensor(args[i]) && !(tensor_of(args[i])->obj.flags & AJ_TENSOR_STRIDED)) return true;
  return false;
}

PyObject* apply(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n < 1 || !PyType_Check(args[0])) {
    PyErr_SetString(PyExc_TypeError, "apply: wanted a subclass of Function");
    return nullptr;
  }
  if (level_is_open() && any_wrapped(args + 1, n - 1)) {
    PyObject* lowered = helper("adjoin.autograd._lowered", "apply");
    return lowered ? PyObject_Vectorcall(lowered, args, size_t(n), nullptr) : nullptr;
  }
  return Application(args[0], args + 1, n - 1).run();
}

// Whatever the arguments are: for who has taken them apart.
PyObject* apply_here(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return Application(args[0], args + 1, n - 1).run();
}

// apply_with_context(cls, arguments...): (results, ctx), for a jvp that follows.
PyObject* apply_with_context(PyObject*, PyObject* const* args, Py_ssize_t n) {
  Application it(args[0], args + 1, n - 1);
  Ref result(it.run());
  return result ? PyTuple_Pack(2, result.get(), it.context()) : nullptr;
}

// keep_for_forward(on): jvp comes after the next apply. Returns what it was.
PyObject* keep_for_forward(PyObject*, PyObject* on) {
  const int now = PyObject_IsTrue(on);
  if (now < 0) return nullptr;
  return PyBool_FromLong(std::exchange(jvp_comes, now != 0));
}

PyMethodDef functions[] = {
    {"keep_for_forward", keep_for_forward, METH_O, nullptr},
    {"apply_function", method(apply), METH_FASTCALL, nullptr},
    {"apply_with_context", method(apply_with_context), METH_FASTCALL, nullptr},
    {"apply_function_here", method(apply_here), METH_FASTCALL, nullptr},
    {}};

}  // namespace

int init_function(PyObject* module) {
  if (add_type(module, &context_type, "FunctionCtx") < 0) return -1;
  return PyModule_AddFunctions(module, functions);
}

}  // namespace adjoin::py
