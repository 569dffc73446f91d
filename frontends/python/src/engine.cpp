// frontends/python/src/engine.cpp: backward() and grad(): Python's sequences become one request to
// the engine.
#include "engine.hpp"

#include <algorithm>
#include <atomic>

#include "collect.hpp"
#include "device.hpp"
#include "dispatch.hpp"
#include "node.hpp"
#include "op.hpp"
#include "parse.hpp"

namespace adjoin::py {
namespace {

// A tensor or a sequence of them, borrowed from `kept`.
struct Tensors {
  Ref kept;
  std::vector<aj_tensor*> all;
  std::vector<HeldTensor> stand_ins;  // of places in the graph, whose tensors may be gone
};

bool is_edge(PyObject* o) {
  return PyTuple_Check(o) && !PyTuple_CheckExact(o) && PyTuple_GET_SIZE(o) >= 2 &&
         PyObject_TypeCheck(PyTuple_GET_ITEM(o, 0), &node_type);
}

// What receives the gradient that arrives at a node: the leaf of one that accumulates, or a tensor
// that stands for a result.
bool add_place(PyObject* o, Tensors& out) {
  aj_node* n = reinterpret_cast<NodeObject*>(is_edge(o) ? PyTuple_GET_ITEM(o, 0) : o)->node;
  long result = is_edge(o) ? PyLong_AsLong(PyTuple_GET_ITEM(o, 1)) : 0;
  if (result == -1 && PyErr_Occurred()) return false;
  if (!n) {
    PyErr_SetString(PyExc_RuntimeError, "grad_fn: this node is gone: its graph was freed");
    return false;
  }
  aj_tensor* t = autograd->node_variable(n);
  if (!t) {
    DLTensor like{nullptr, host_device(), 0, {kDLFloat, 32, 1}, nullptr, nullptr, 0};
    if (failed(core->tensor_empty(&like, 0, &t))) return false;
    out.stand_ins.emplace_back(t);
    if (failed(tape()->stand_in(t, n, static_cast<uint32_t>(result)))) return false;
  }
  out.all.push_back(t);
  return true;
}

bool collect(const char* who, PyObject* o, bool none_allowed, Tensors& out, bool places = false) {
  if (is_tensor(o)) {
    out.all.push_back(tensor_of(o));
    return true;
  }
  if (places && (is_edge(o) || PyObject_TypeCheck(o, &node_type))) return add_place(o, out);
  out.kept = Ref(PySequence_Tuple(o));
  if (!out.kept) {
    PyErr_Format(PyExc_TypeError, "%s: wanted a Tensor or a sequence of them, not %s", who,
                 Py_TYPE(o)->tp_name);
    return false;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(out.kept.get()); ++i) {
    PyObject* item = PyTuple_GET_ITEM(out.kept.get(), i);
    if (is_tensor(item)) {
      out.all.push_back(tensor_of(item));
    } else if (item == Py_None && none_allowed) {
      out.all.push_back(nullptr);
    } else if (places && (is_edge(item) || PyObject_TypeCheck(item, &node_type))) {
      if (!add_place(item, out)) return false;
    } else {
      PyErr_Format(PyExc_TypeError, "%s: element %zd must be Tensor, not %s", who, i,
                   Py_TYPE(item)->tp_name);
      return false;
    }
  }
  return true;
}

// A pass that Python began on this thread, and what runs after it.
struct Pass {
  Pass* outer;
  uint64_t number;
  bool whole;  // it and those around it fill .grad of every leaf
  std::vector<Ref> queued;
};
thread_local Pass* running;
std::atomic<uint64_t> passes_begun;

// In the order in which they were queued, which they themselves may go on with.
bool run_queued(Pass& pass) {
  for (size_t i = 0; i < pass.queued.size(); ++i) {
    Ref function = Ref::borrow(pass.queued[i].get());
    if (!Ref(PyObject_CallNoArgs(function.get()))) return false;
  }
  return true;
}

PyObject* queue_callback(PyObject*, PyObject* function) {
  if (!PyCallable_Check(function))
    return PyErr_Format(PyExc_TypeError, "queue_callback: wanted a function, not %s",
                        Py_TYPE(function)->tp_name);
  if (!running)
    return PyErr_Format(PyExc_RuntimeError,
                        "queue_callback: no backward pass is running on this thread; call it in a "
                        "hook or in the backward of a Function");
  running->queued.push_back(Ref::borrow(function));
  Py_RETURN_NONE;
}

// Whether the passes that run on this thread fill .grad of every leaf: a pass inside of one that is
// asked for some inputs would fill what nobody reads.
PyObject* whole(PyObject*, PyObject*) { return PyBool_FromLong(!running || running->whole); }

// The numbers of the passes that run on this thread, the innermost first.
PyObject* numbers(PyObject*, PyObject*) {
  Ref list(PyList_New(0));
  for (Pass* p = running; list && p; p = p->outer) {
    Ref number(PyLong_FromUnsignedLongLong(p->number));
    if (!number || PyList_Append(list.get(), number.get()) < 0) return nullptr;
  }
  return list.release();
}

uint32_t flags_of(bool retain, bool create, bool allow_unused) {
  uint32_t f = 0;
  if (retain) f |= AJ_BACKWARD_RETAIN_GRAPH;
  if (create) f |= AJ_BACKWARD_CREATE_GRAPH;
  if (allow_unused) f |= AJ_BACKWARD_ALLOW_UNUSED;
  return f;
}

PyObject* backward(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  static const Signature signature(
      "backward", 5, 1,
      {"tensors", "grad_tensors", "retain_graph", "create_graph", "grad_variables", "inputs"});
  PyObject* a[6];
  if (!signature.parse(args, n, kwnames, a)) return nullptr;
  bool create = truth(a[3], false);
  bool retain = given(a[2]) ? truth(a[2], false) : create;
  if (PyErr_Occurred()) return nullptr;
  PyObject* grads = given(a[1]) ? a[1] : given(a[4]) ? a[4] : nullptr;
  if (is_tensor(a[0]))
    return run_backward(&a[0], 1, grads && is_tensor(grads) ? &grads : nullptr, a[5], retain,
                        create);
  Ref roots(PySequence_Tuple(a[0])),
      with(grads && !is_tensor(grads) ? PySequence_Tuple(grads) : nullptr);
  if (!roots || PyErr_Occurred()) return nullptr;
  Py_ssize_t count = PyTuple_GET_SIZE(roots.get());
  if (with && PyTuple_GET_SIZE(with.get()) != count)
    return PyErr_Format(PyExc_RuntimeError, "backward: %zd tensors and %zd gradients", count,
                        PyTuple_GET_SIZE(with.get()));
  PyObject* const* items = PySequence_Fast_ITEMS(roots.get());
  PyObject* const* with_items = with ? PySequence_Fast_ITEMS(with.get()) : grads ? &grads : nullptr;
  return run_backward(items, count, with_items, a[5], retain, create);
}

PyObject* to_tuple(std::vector<aj_tensor*>& out) {
  Ref t(PyTuple_New(static_cast<Py_ssize_t>(out.size())));
  for (size_t i = 0; i < out.size(); ++i) {
    aj_tensor* g = std::exchange(out[i], nullptr);
    PyObject* item = t ? wrap_or_none(g) : nullptr;
    if (item) PyTuple_SET_ITEM(t.get(), static_cast<Py_ssize_t>(i), item);
  }
  return PyErr_Occurred() ? nullptr : t.release();
}

// The gradient of a tensor whose class shows its values in another form: in that form.
bool shown_as(PyObject* input, PyObject** gradient) {
  if (!is_tensor(input) || is_exact_tensor(input) || *gradient == Py_None) return true;
  static PyObject* name = PyUnicode_InternFromString("_nested_gradient");
  PyObject* method = _PyType_Lookup(Py_TYPE(input), name);
  if (!method) return true;
  PyObject* made = PyObject_CallFunctionObjArgs(method, input, *gradient, nullptr);
  if (made) Py_SETREF(*gradient, made);
  return made != nullptr;
}

// `inputs`: a tensor, or a list or tuple of them.
PyObject* shown_as_inputs(PyObject* inputs, PyObject* gradients) {
  if (!gradients) return nullptr;
  PyObject** out = PySequence_Fast_ITEMS(gradients);
  bool well = true;
  if (is_tensor(inputs))
    well = shown_as(inputs, out);
  else if (PyList_CheckExact(inputs) || PyTuple_CheckExact(inputs))
    for (Py_ssize_t i = 0; well && i < PyTuple_GET_SIZE(gradients); ++i)
      well = shown_as(PySequence_Fast_GET_ITEM(inputs, i), out + i);
  if (!well) Py_CLEAR(gradients);
  return gradients;
}

// The gradient of a root whose class sees calls is one of that class, too.
Row ones_row("ones_like");
bool begin_seen(aj_tensor* root, aj_tensor** grad, std::vector<HeldTensor>& made) {
  if (likely(is_strided(root)) || *grad || !is_seen(root) || !requires_grad(root)) return true;
  int64_t count = 1;
  for (int32_t i = 0; i < root->dl.ndim; ++i) count *= root->dl.shape[i];
  if (count != 1) return true;  // the engine refuses it
  const int32_t recorded = autograd->set_grad_mode(0);
  made.emplace_back(call_row(ones_row, root));
  autograd->set_grad_mode(recorded);
  *grad = made.back().get();
  return *grad != nullptr;
}

// Zeros for inputs that nothing depends on; who differentiates them finds a history, an empty one.
Row zeros_row("zeros_like");
bool fill_unused(const std::vector<aj_tensor*>& inputs, std::vector<aj_tensor*>& out) {
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i]) continue;
    out[i] = call_row(zeros_row, inputs[i]);
    if (!out[i] || failed(autograd->set_requires_grad(out[i], 1))) return false;
  }
  return true;
}

PyObject* grad(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  static const Signature signature(
      "grad", 6, 2,
      {"outputs", "inputs", "grad_outputs", "retain_graph", "create_graph", "allow_unused",
       "only_inputs", "is_grads_batched", "materialize_grads"});
  PyObject* a[9];
  if (!signature.parse(args, n, kwnames, a)) return nullptr;
  bool batched = truth(a[7], false), create = truth(a[4], false), materialize = truth(a[8], false);
  bool unused = truth(a[5], false), retain = given(a[3]) ? truth(a[3], false) : create;
  if (PyErr_Occurred()) return nullptr;
  if (batched) {
    Ref home(PyImport_ImportModule("adjoin.autograd.functional"));
    Ref each(home ? PyObject_GetAttrString(home.get(), "_grad_of_each") : nullptr);
    if (!each) return nullptr;
    return PyObject_CallFunction(each.get(), "OOOOOO", a[0], a[1], given(a[2]) ? a[2] : Py_None,
                                 create ? Py_True : Py_False, unused ? Py_True : Py_False,
                                 materialize ? Py_True : Py_False);
  }
  Tensors outputs, inputs, with;
  if (!collect("grad: outputs", a[0], false, outputs) ||
      !collect("grad: inputs", a[1], false, inputs, true))
    return nullptr;
  if (given(a[2]) && !collect("grad: grad_outputs", a[2], true, with)) return nullptr;
  if (given(a[2]) && with.all.size() != outputs.all.size())
    return PyErr_Format(PyExc_RuntimeError, "grad: %zu outputs and %zu gradients",
                        outputs.all.size(), with.all.size());
  if (materialize && given(a[5]) && !unused) {
    PyErr_SetString(PyExc_ValueError,
                    "grad: allow_unused=False contradicts materialize_grads=True");
    return nullptr;
  }
  if (materialize && !inputs.stand_ins.empty()) {
    PyErr_SetString(PyExc_RuntimeError,
                    "grad: materialize_grads cannot be used when the given input is a "
                    "GradientEdge: nothing says which shape its zeros would have; give the tensor");
    return nullptr;
  }
  std::vector<aj_tensor*> out(inputs.all.size(), nullptr);
  std::vector<HeldTensor> made;
  if (unlikely(!std::all_of(outputs.all.begin(), outputs.all.end(), is_strided))) {
    with.all.resize(outputs.all.size());
    for (size_t i = 0; i < outputs.all.size(); ++i)
      if (!begin_seen(outputs.all[i], &with.all[i], made)) return nullptr;
  }
  auto b = sized<aj_backward>();
  b.flags = flags_of(retain, create, unused || materialize);
  b.roots = outputs.all.data();
  b.grads = given(a[2]) || !made.empty() ? with.all.data() : nullptr;
  b.inputs = inputs.all.data();
  b.out = out.data();
  b.nroots = static_cast<uint32_t>(outputs.all.size());
  b.ninputs = static_cast<uint32_t>(inputs.all.size());
  if (b.ninputs == 0) {
    PyErr_SetString(PyExc_ValueError, "grad: inputs is empty");
    return nullptr;
  }
  if (!run_pass(b)) return nullptr;
  if (materialize && !fill_unused(inputs.all, out)) {
    for (aj_tensor* g : out)
      if (g) core->release(g);
    return nullptr;
  }
  return shown_as_inputs(a[1], to_tuple(out));
}

PyMethodDef functions[] = {
    {"backward", method(backward), METH_FASTCALL | METH_KEYWORDS,
     "backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, "
     "inputs=None)\n--\n\nAccumulates the "
     "gradients of tensors into .grad of the leaves."},
    {"grad", method(grad), METH_FASTCALL | METH_KEYWORDS,
     "grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, "
     "allow_unused=None)\n--\n\nThe "
     "gradients of outputs with respect to inputs."},
    {"queue_callback", queue_callback, METH_O, "Runs a function after the pass that is running."},
    {"backward_is_whole", whole, METH_NOARGS,
     "Whether a pass that runs on this thread is for every leaf, not for some inputs."},
    {"backward_passes", numbers, METH_NOARGS, "The numbers of those that run on this thread."},
    {},
};

}  // namespace

// What was queued is called if the pass does not fail; then still inside of it, for what it queues.
bool run_pass(const aj_backward& b) {
  Pass pass{running, ++passes_begun, !b.ninputs && (!running || running->whole), {}};
  running = &pass;
  bool done = !failed(autograd->backward(&b)) && (likely(pass.queued.empty()) || run_queued(pass));
  running = pass.outer;
  return done;
}

PyObject* run_backward(PyObject* const* roots, Py_ssize_t n, PyObject* const* grads,
                       PyObject* inputs, bool retain, bool create) {
  aj_tensor* few[2 * 4];
  std::vector<aj_tensor*> many;
  aj_tensor** all = few;
  if (n > 4) {
    many.resize(static_cast<size_t>(2 * n));
    all = many.data();
  }
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* g = grads ? grads[i] : Py_None;
    if (!is_tensor(roots[i]) || (g != Py_None && !is_tensor(g))) {
      PyErr_SetString(PyExc_TypeError,
                      "backward: wanted tensors, and tensors or None as their gradients");
      return nullptr;
    }
    all[i] = tensor_of(roots[i]);
    all[n + i] = g == Py_None ? nullptr : tensor_of(g);
  }
  Tensors only;
  if (given(inputs)) {
    if (!collect("backward: inputs", inputs, false, only, true)) return nullptr;
    if (only.all.empty()) {
      PyErr_SetString(PyExc_RuntimeError,
                      "backward: inputs cannot be empty; leave it out for all leaves");
      return nullptr;
    }
  }
  std::vector<HeldTensor> made;
  for (Py_ssize_t i = 0; i < n; ++i)
    if (!begin_seen(all[i], &all[n + i], made)) return nullptr;
  auto b = sized<aj_backward>();
  b.flags = flags_of(retain, create, false);
  b.roots = all;
  b.grads = grads || !made.empty() ? all + n : nullptr;
  b.inputs = only.all.empty() ? nullptr : only.all.data();
  b.nroots = static_cast<uint32_t>(n);
  b.ninputs = static_cast<uint32_t>(only.all.size());
  if (!run_pass(b)) return nullptr;
  Py_RETURN_NONE;
}

int init_engine(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace adjoin::py
