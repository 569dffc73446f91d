// frontends/python/src/context.cpp: the ctx object of a Python function, and its backward.
#include "collect.hpp"
#include "device.hpp"
#include "dtype.hpp"
#include "function.hpp"
#include "hooks.hpp"

namespace adjoin::py {
namespace {

FunctionState& state_of(PyObject* self) { return *reinterpret_cast<ContextObject*>(self)->state; }

PyObject* keep_tuple(Ref& place, PyObject* args) {
  place = Ref::borrow(args);
  Py_RETURN_NONE;
}
PyObject* save_for_backward(PyObject* self, PyObject* args) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    PyObject* item = PyTuple_GET_ITEM(args, i);
    if (item != Py_None && !is_tensor(item))
      return PyErr_Format(
          PyExc_TypeError,
          "save_for_backward can only save variables, but argument %zd is of type %s; keep "
          "other things as attributes of ctx",
          i, Py_TYPE(item)->tp_name);
  }
  return keep_tuple(state_of(self).to_save, args);
}
// Until jvp has run, which forgets them: they may be results, which hold this.
PyObject* save_for_forward(PyObject* self, PyObject* tensors) {
  const bool some = jvp_comes && PyTuple_GET_SIZE(tensors);
  reinterpret_cast<ContextObject*>(self)->state->for_forward = some ? Ref::borrow(tensors) : Ref();
  Py_RETURN_NONE;
}
PyObject* mark_dirty(PyObject* self, PyObject* args) {
  return keep_tuple(state_of(self).dirty, args);
}
PyObject* mark_non_differentiable(PyObject* self, PyObject* args) {
  return keep_tuple(state_of(self).non_differentiable, args);
}

PyObject* set_materialize(PyObject* self, PyObject* value) {
  int on = PyObject_IsTrue(value);
  if (on < 0) return nullptr;
  state_of(self).materialize = on;
  Py_RETURN_NONE;
}

PyObject* saved_tensor(PyObject* self, uint32_t k) {
  const FunctionState& s = state_of(self);
  if (s.running) {
    if (k < s.running->nsaved && s.running->saved[k].tag == AJ_TENSOR)
      return wrap_borrowed(s.running->saved[k].v.tensor);
    Py_RETURN_NONE;
  }
  aj_value v{};
  if (failed(autograd->node_saved(reinterpret_cast<NodeObject*>(self)->node, k, &v)))
    return nullptr;
  return take_value(v);
}

PyObject* saved_tensors(PyObject* self, void*) {
  const FunctionState& s = state_of(self);
  if (s.for_forward && !s.running) return Py_NewRef(s.for_forward.get());
  if (!reinterpret_cast<NodeObject*>(self)->node || s.to_save)
    return s.to_save ? Py_NewRef(s.to_save.get()) : PyTuple_New(0);
  Ref all(PyTuple_New(static_cast<Py_ssize_t>(s.saved.size())));
  uint32_t k = 0;
  for (size_t i = 0; all && i < s.saved.size(); ++i) {
    PyObject* item = s.saved[i] ? saved_tensor(self, k++) : Py_NewRef(Py_None);
    if (!item) return nullptr;
    PyTuple_SET_ITEM(all.get(), static_cast<Py_ssize_t>(i), item);
  }
  return all.release();
}

PyObject* needs_input_grad(PyObject* self, void*) {
  const Ref& n = state_of(self).needs_input_grad;
  return n ? Py_NewRef(n.get()) : PyTuple_New(0);
}

PyObject* get_materialize(PyObject* self, void*) {
  return PyBool_FromLong(state_of(self).materialize);
}

PyObject* get_to_save(PyObject* self, void*) {
  const Ref& t = state_of(self).to_save;
  return t ? Py_NewRef(t.get()) : Py_NewRef(Py_None);
}

PyObject* get_dirty(PyObject* self, void*) {
  const Ref& t = state_of(self).dirty;
  return t ? Py_NewRef(t.get()) : Py_NewRef(Py_None);
}

PyObject* get_non_differentiable(PyObject* self, void*) {
  const Ref& t = state_of(self).non_differentiable;
  return t ? Py_NewRef(t.get()) : Py_NewRef(Py_None);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  auto* o = reinterpret_cast<ContextObject*>(self);
  Py_VISIT(o->dict);
  if (!o->state) return 0;
  for (Ref* r :
       {&o->state->kept, &o->state->to_save, &o->state->dirty, &o->state->non_differentiable})
    Py_VISIT(r->get());
  return o->dict ? visit_held_in(o->dict, visit, arg) : 0;
}

int clear(PyObject* self) {
  auto* o = reinterpret_cast<ContextObject*>(self);
  Py_CLEAR(o->dict);
  if (!o->state) return 0;
  for (Ref* r : {&o->state->to_save, &o->state->dirty, &o->state->non_differentiable}) *r = Ref();
  return 0;
}

void dealloc(PyObject* self) {
  auto* o = reinterpret_cast<ContextObject*>(self);
  PyObject_GC_UnTrack(self);
  if (o->weakrefs) PyObject_ClearWeakRefs(self);
  clear(self);
  delete o->state;
  Py_TYPE(self)->tp_free(self);
}

PyObject* make(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* o = type->tp_alloc(type, 0);
  if (o) reinterpret_cast<ContextObject*>(o)->state = new FunctionState;
  return o;
}

PyMethodDef methods[] = {
    {"save_for_backward", save_for_backward, METH_VARARGS,
     "Keeps tensors for backward, where saved_tensors gives them."},
    {"save_for_forward", save_for_forward, METH_VARARGS,
     "Keeps tensors for jvp, where saved_tensors gives them."},
    {"mark_dirty", mark_dirty, METH_VARARGS, "Names the inputs that forward has written."},
    {"mark_non_differentiable", mark_non_differentiable, METH_VARARGS,
     "Names the outputs that carry no gradient."},
    {"set_materialize_grads", set_materialize, METH_O,
     "Whether a gradient that is not there arrives as zeros."},
    {},
};
PyGetSetDef properties[] = {
    {"saved_tensors", saved_tensors, nullptr, "What save_for_backward was given.", nullptr},
    {"needs_input_grad", needs_input_grad, nullptr,
     "For each argument of forward: is its gradient wanted?", nullptr},
    {"materialize_grads", get_materialize, nullptr, nullptr, nullptr},
    {"to_save", get_to_save, nullptr, nullptr, nullptr},
    {"dirty_tensors", get_dirty, nullptr, "What mark_dirty was given.", nullptr},
    {"non_differentiable", get_non_differentiable, nullptr,
     "What mark_non_differentiable was given.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {},
};

PyObject* zeros_of(const OutputForm& f) {
  Ref shape(size_object(f.shape.data(), static_cast<int32_t>(f.shape.size())));
  Ref device(device_object(f.device));
  PyObject* zeros = find_function("zeros");
  if (!shape || !device || !zeros) return nullptr;
  static PyObject* names = Py_BuildValue("(ss)", "dtype", "device");
  PyObject* args[] = {shape.get(), reinterpret_cast<PyObject*>(dtype_object(f.dtype)),
                      device.get()};
  return PyObject_Vectorcall(zeros, args, 1, names);
}

PyObject* gradients(PyObject* self, const aj_grad_call* g) {
  const FunctionState& s = state_of(self);
  size_t n = s.outputs.size();
  Ref args(PyTuple_New(static_cast<Py_ssize_t>(n + 1)));
  if (!args) return nullptr;
  PyTuple_SET_ITEM(args.get(), 0, Py_NewRef(self));
  for (size_t i = 0; i < n; ++i) {
    aj_tensor* t = i < g->ngrad_out ? g->grad_out[i] : nullptr;
    bool zeros = !t && s.materialize && s.outputs[i].tensor;
    PyObject* item = t ? wrap_borrowed(t) : zeros ? zeros_of(s.outputs[i]) : Py_NewRef(Py_None);
    if (!item) return nullptr;
    PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i + 1), item);
  }
  return args.release();
}

const char* name_of(const FunctionState& s) {
  return reinterpret_cast<PyTypeObject*>(s.cls)->tp_name;
}

// backward's results go to the inputs they belong to; they are as many as forward had arguments.
bool distribute(const FunctionState& s, PyObject* result, aj_grad_call* g) {
  Ref all(PyTuple_Check(result)  ? Py_NewRef(result)
          : PyList_Check(result) ? PyList_AsTuple(result)
                                 : PyTuple_Pack(1, result));
  if (!all) return false;
  Py_ssize_t got = PyTuple_GET_SIZE(all.get()), wanted = static_cast<Py_ssize_t>(s.places.size());
  for (Py_ssize_t i = wanted; i < got; ++i)
    if (PyTuple_GET_ITEM(all.get(), i) == Py_None && i == got - 1) got = wanted;
  if (got != wanted) {
    PyErr_Format(
        PyExc_RuntimeError,
        "function %sBackward returned an incorrect number of gradients (expected %zd, got %zd)",
        name_of(s), wanted, got);
    return false;
  }
  for (Py_ssize_t i = 0; i < wanted; ++i) {
    PyObject* item = PyTuple_GET_ITEM(all.get(), i);
    int place = s.places[static_cast<size_t>(i)];
    if (item == Py_None) continue;
    if (!is_tensor(item) || place < 0) {
      PyErr_Format(PyExc_RuntimeError, "function %sBackward returned %s at position %zd, wanted %s",
                   name_of(s), Py_TYPE(item)->tp_name, i,
                   place < 0 ? "None: the argument of forward was no tensor" : "a Tensor or None");
      return false;
    }
    if (!g->needs[place]) continue;
    core->retain(tensor_of(item));
    g->grad_in[place] = tensor_of(item);
  }
  return true;
}

}  // namespace

thread_local bool jvp_comes = false;

PyTypeObject context_type = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "adjoin.autograd.function.FunctionCtx",
    .tp_basicsize = sizeof(ContextObject),
    .tp_dealloc = dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "What the forward and the backward of a function share.",
    .tp_traverse = traverse,
    .tp_clear = clear,
    .tp_weaklistoffset = offsetof(ContextObject, weakrefs),
    .tp_methods = methods,
    .tp_getset = properties,
    .tp_base = &node_type,
    .tp_dictoffset = offsetof(ContextObject, dict),
    .tp_new = make,
};

aj_status* run_python_backward(void*, aj_grad_call* g) {
  Gil gil;
  auto* self = static_cast<PyObject*>(g->payload);
  FunctionState& s = state_of(self);
  Ref keep = Ref::borrow(self);
  const aj_grad_call* outer = std::exchange(s.running, g);
  Ref args(gradients(self, g));
  Ref backward(args ? PyObject_GetAttrString(s.cls, "backward") : nullptr);
  Ref result(backward ? PyObject_Call(backward.get(), args.get(), nullptr) : nullptr);
  s.running = outer;
  return result && distribute(s, result.get(), g) ? nullptr : status_from_python();
}

void drop_context(void* payload) {
  reinterpret_cast<NodeObject*>(payload)->node = nullptr;
  drop_object(static_cast<PyObject*>(payload));
}

PyObject* context_of(aj_node* n) {
  const aj_vjp_def* def = nullptr;
  void* payload = autograd->node_payload(n, &def);
  return payload && def && def->vjp == run_python_backward ? static_cast<PyObject*>(payload)
                                                           : nullptr;
}

}  // namespace adjoin::py
