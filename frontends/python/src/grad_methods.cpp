// frontends/python/src/grad_methods.cpp: the tensor's side of the tape: grad, requires_grad,
// detach, backward, hooks.
#include "collect.hpp"
#include "dispatch.hpp"
#include "engine.hpp"
#include "hooks.hpp"
#include "methods.hpp"
#include "node.hpp"
#include "parse.hpp"
#include "program.hpp"
#include "seen.hpp"

namespace adjoin::py {

bool says_requires_grad(aj_tensor* t) {
  if (!requires_grad(t) &&
      t->obj.flags & AJ_TENSOR_VIEW) {  // its base may have got a history since
    HeldNode node;
    uint32_t result;
    if (aj_status* s = autograd->tensor_node(t, node.out(), &result)) core->status_free(s);
  }
  return requires_grad(t);
}

namespace {

PyObject* get_requires_grad(PyObject* self, void*) {
  return PyBool_FromLong(says_requires_grad(tensor_of(self)));
}

int set_requires_grad(PyObject* self, PyObject* value, void*) {
  if (!value || !PyBool_Check(value)) {
    PyErr_SetString(PyExc_RuntimeError, "requires_grad must be a bool");
    return -1;
  }
  return failed(autograd->set_requires_grad(tensor_of(self), value == Py_True)) ? -1 : 0;
}

PyObject* get_is_leaf(PyObject* self, void*) {
  uint32_t flags = tensor_of(self)->obj.flags;
  return PyBool_FromLong(!(flags & AJ_TENSOR_REQUIRES_GRAD) || flags & AJ_TENSOR_LEAF);
}

// Was it computed, and keeps nobody what backward finds for it?
bool lost_its_grad(aj_tensor* t) {
  if (!(t->obj.flags & AJ_TENSOR_REQUIRES_GRAD)) return false;
  HeldNode node;
  uint32_t result = 0;
  if (autograd->tensor_node(t, node.out(), &result)) return false;
  return node && !autograd->retains_grad(t);
}

PyObject* get_grad(PyObject* self, void*) {
  aj_tensor* g = nullptr;
  if (failed(autograd->grad(tensor_of(self), &g))) return nullptr;
  if (g) watch_cycles(self);  // it may get attributes
  if (!g && lost_its_grad(tensor_of(self)) &&
      PyErr_WarnEx(
          PyExc_UserWarning,
          "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed: backward "
          "leaves it None, unless retain_grad() was called on the tensor before",
          1) < 0)
    return nullptr;
  return wrap_or_none(g);
}

int set_grad(PyObject* self, PyObject* value, void*) {
  if (value && value != Py_None && !is_tensor(value)) {
    PyErr_Format(PyExc_TypeError, "grad: assigned must be Tensor or None, not %s",
                 Py_TYPE(value)->tp_name);
    return -1;
  }
  if (value == self) {
    PyErr_SetString(PyExc_RuntimeError, "grad: a tensor cannot be its own gradient");
    return -1;
  }
  aj_tensor* g = value && value != Py_None ? tensor_of(value) : nullptr;
  return failed(autograd->set_grad(tensor_of(self), g)) ? -1 : 0;
}

PyObject* get_grad_fn(PyObject* self, void*) {
  HeldNode node;
  uint32_t result = 0;
  aj_tensor* t = tensor_of(self);
  if (!(t->obj.flags & (AJ_TENSOR_REQUIRES_GRAD | AJ_TENSOR_VIEW))) Py_RETURN_NONE;
  if (failed(autograd->tensor_node(t, node.out(), &result))) return nullptr;
  if (node) watch_cycles(self);  // it may get hooks, or attributes
  return node_object(node.release());
}

PyObject* get_output_nr(PyObject* self, void*) {
  HeldNode node;
  uint32_t result = 0;
  if (failed(autograd->tensor_node(tensor_of(self), node.out(), &result))) return nullptr;
  return PyLong_FromUnsignedLong(result);
}

PyObject* get_retains_grad(PyObject* self, void*) {
  return PyBool_FromLong(autograd->retains_grad(tensor_of(self)) != 0);
}

PyObject* get_data(PyObject* self, void*) {
  aj_tensor* t = nullptr;
  return failed(autograd->data(tensor_of(self), &t)) ? nullptr : wrap(t);
}

int set_data(PyObject* self, PyObject* value, void*) {
  if (!value || !is_tensor(value)) {
    PyErr_SetString(PyExc_TypeError, "data: assigned must be a Tensor");
    return -1;
  }
  return failed(autograd->set_data(tensor_of(self), tensor_of(value))) ? -1 : 0;
}

PyObject* get_version(PyObject* self, void*) {
  return PyLong_FromUnsignedLongLong(core->tensor_version(tensor_of(self)));
}

PyObject* get_base(PyObject* self, void*) {
  aj_tensor* t = nullptr;
  return failed(autograd->base(tensor_of(self), &t)) ? nullptr : wrap_or_none(t);
}

PyObject* get_is_view(PyObject* self, PyObject*) {
  return PyBool_FromLong((tensor_of(self)->obj.flags & AJ_TENSOR_VIEW) != 0);
}

PyObject* is_inference(PyObject* self, PyObject*) {
  return PyBool_FromLong((tensor_of(self)->obj.flags & AJ_TENSOR_INFERENCE) != 0);
}

// The same memory without history, and with what the levels of transforms know of it.
PyObject* alias(PyObject* self, PyObject*) {
  aj_tensor* t = nullptr;
  return failed(autograd->detach(tensor_of(self), &t)) ? nullptr : wrap(t);
}

// Of what a transform holds: a view that has no derivative, so that tangents end there, too.
PyObject* without_derivatives(aj_tensor* t) {
  static const aj_op* const view = dispatch->find_op(AJ_STR_LIT("view.dtype"));
  aj_value args[2] = {{AJ_TENSOR, 0, {.tensor = t}}, {AJ_DTYPE, 0, {.dtype = t->dl.dtype}}};
  aj_value made = {AJ_NONE, 0, {0}};
  return failed(dispatch->call(view, args, 2, &made, 1)) ? nullptr : wrap(made.v.tensor);
}

PyObject* detach(PyObject* self, PyObject* none) {
  if (unlikely(!is_exact_tensor(self)) && any_override(&self, 1))
    return call_override(PyDict_GetItemString(tensor_type.tp_dict, "detach"), &self, 1, nullptr);
  aj_tensor* t = tensor_of(self);
  if (likely(is_strided(t))) return alias(self, none);
  static const uint64_t transform = dispatch->key_mask(AJ_STR_LIT("transform"));
  return t->keys & transform ? without_derivatives(t) : alias(self, none);
}

PyObject* detach_in_place(PyObject* self, PyObject*) {
  return failed(autograd->detach_in_place(tensor_of(self))) ? nullptr : Py_NewRef(self);
}

PyObject* requires_grad_in_place(PyObject* self, PyObject* const* args, Py_ssize_t n,
                                 PyObject* kwnames) {
  static const Signature signature("requires_grad_", 1, 0, {"requires_grad"});
  PyObject* a[1];
  if (!signature.parse(args, n, kwnames, a)) return nullptr;
  bool on = truth(a[0], true);
  if (PyErr_Occurred() || failed(autograd->set_requires_grad(tensor_of(self), on))) return nullptr;
  return Py_NewRef(self);
}

PyObject* retain_grad(PyObject* self, PyObject*) {
  if (failed(autograd->retain_grad(tensor_of(self)))) return nullptr;
  Py_RETURN_NONE;
}

PyObject* backward(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  static const Signature signature("backward", 4, 0,
                                   {"gradient", "retain_graph", "create_graph", "inputs"});
  PyObject* a[4];
  if (!signature.parse(args, n, kwnames, a)) return nullptr;
  bool create = truth(a[2], false);
  bool retain = given(a[1]) ? truth(a[1], false) : create;
  if (PyErr_Occurred()) return nullptr;
  return run_backward(&self, 1, given(a[0]) ? &a[0] : nullptr, a[3], retain, create);
}

PyObject* register_hook(PyObject* self, PyObject* f) {
  return hook_on_tensor(self, f, AJ_HOOK_TENSOR);
}

PyObject* register_post_accumulate(PyObject* self, PyObject* f) {
  return hook_on_tensor(self, f, AJ_HOOK_POST_ACCUMULATE);
}

// A tensor with memory becomes one of the class: does its __torch_dispatch__ see calls with it? -1:
// an error is set.
int seen_by_class(aj_tensor* t, PyObject* cls) {
  static PyObject* const name = PyUnicode_InternFromString("__torch_dispatch__");
  PyObject* own = _PyType_Lookup(reinterpret_cast<PyTypeObject*>(cls), name);
  if (likely(!own) || !is_strided(t) || own == _PyType_Lookup(&tensor_type, name)) return 0;
  Ref seen(call_helper("adjoin.utils._python_dispatch", "_prepared", &cls, 1));
  return seen ? seen.get() == Py_True : -1;
}

PyObject* make_subclass(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  static const Signature signature("_make_subclass", 3, 2,
                                   {"cls", "data", "require_grad", "dispatch_sizes_strides_policy",
                                    "dispatch_device", "dispatch_layout"});
  PyObject* a[6];
  if (!signature.parse(args, n, kwnames, a)) return nullptr;
  if (!PyType_Check(a[0]) ||
      !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(a[0]), &tensor_type) || !is_tensor(a[1])) {
    PyErr_SetString(PyExc_TypeError, "_make_subclass: wanted a subclass of Tensor and a tensor");
    return nullptr;
  }
  HeldTensor t;
  const int seen = seen_by_class(tensor_of(a[1]), a[0]);
  if (seen < 0 || failed(autograd->detach(tensor_of(a[1]), t.out()))) return nullptr;
  bool on = truth(a[2], false);
  if (PyErr_Occurred() || (on && failed(autograd->set_requires_grad(t.get(), 1)))) return nullptr;
  if (seen) see_calls(t.get());
  Ref made(wrap_as(reinterpret_cast<PyTypeObject*>(a[0]), t.release()));
  if (!made || !(given(a[3]) || given(a[4]) || given(a[5]))) return made.release();
  PyObject* asked[] = {made.get(), given(a[3]) ? a[3] : Py_None, given(a[4]) ? a[4] : Py_False,
                       given(a[5]) ? a[5] : Py_False};
  return call_helper("adjoin.utils._told_by_class", "asks", asked, 4);
}

Row alias_row("alias");

PyObject* as_subclass(PyObject* self, PyObject* cls) {
  if (!PyType_Check(cls) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), &tensor_type)) {
    PyErr_Format(
        PyExc_RuntimeError,
        "as_subclass: Creating a Tensor subclass from a class that does not inherit from Tensor "
        "is not possible: %R; wanted a subclass of Tensor",
        cls);
    return nullptr;
  }
  const int seen = seen_by_class(tensor_of(self), cls);
  aj_tensor* t = seen < 0 ? nullptr : call_row(alias_row, tensor_of(self));
  if (t && seen) see_calls(t);
  return t ? wrap_as(reinterpret_cast<PyTypeObject*>(cls), t) : nullptr;
}

}  // namespace

PyGetSetDef grad_properties[] = {
    {"requires_grad", seen_get<get_requires_grad>, seen_set<get_requires_grad, set_requires_grad>,
     "Whether operations on the tensor are recorded.", nullptr},
    {"is_leaf", seen_get<get_is_leaf>, nullptr, "Whether no recorded operation made the tensor.",
     nullptr},
    {"grad", seen_get<get_grad>, seen_set<get_grad, set_grad>,
     "What backward has accumulated, or None.", nullptr},
    {"_grad", seen_get<get_grad>, seen_set<get_grad, set_grad>,
     "grad, by the name that it has below the package.", nullptr},
    {"grad_fn", seen_get<get_grad_fn>, nullptr,
     "The node of the graph that made the tensor, or None.", nullptr},
    {"output_nr", seen_get<get_output_nr>, nullptr, "Which result of grad_fn the tensor is.",
     nullptr},
    {"retains_grad", seen_get<get_retains_grad>, nullptr,
     "Whether a tensor that is no leaf keeps its gradient.", nullptr},
    {"data", seen_get<get_data>, seen_set<get_data, set_data>,
     "The same memory without history; its writes are not noticed.", nullptr},
    {"_version", seen_get<get_version>, nullptr, "How often the memory was written.", nullptr},
    {"_base", seen_get<get_base>, nullptr, "The tensor that a view looks at, or None.", nullptr},
    {},
};

PyMethodDef grad_methods[] = {
    {"_is_view", get_is_view, METH_NOARGS, nullptr},
    {"is_inference", seen<is_inference>, METH_NOARGS,
     "Whether the tensor was made in inference mode."},
    {"detach", seen<detach>, METH_NOARGS, "The same memory without history."},
    {"_alias", alias, METH_NOARGS, "detach() that the levels of transforms do not see."},
    {"detach_", seen<detach_in_place>, METH_NOARGS, "Forgets the history."},
    {"requires_grad_", method(seen_with_names<requires_grad_in_place>),
     METH_FASTCALL | METH_KEYWORDS, "Starts or ends recording."},
    {"retain_grad", seen<retain_grad>, METH_NOARGS,
     "Keeps the gradient in .grad although the tensor is no leaf."},
    {"backward", method(seen_with_names<backward>), METH_FASTCALL | METH_KEYWORDS,
     "backward($self, gradient=None, retain_graph=None, create_graph=False, "
     "inputs=None)\n--\n\nAccumulates gradients into "
     ".grad of the leaves."},
    {"register_hook", seen<register_hook>, METH_O,
     "f(grad) runs when the gradient is known, and may replace it."},
    {"register_post_accumulate_grad_hook", seen<register_post_accumulate>, METH_O,
     "f(tensor) runs after its gradient was accumulated."},
    {"_make_subclass", method(make_subclass), METH_FASTCALL | METH_KEYWORDS | METH_STATIC, nullptr},
    {"as_subclass", as_subclass, METH_O, "The same tensor as an object of a subclass."},
    {},
};

}  // namespace adjoin::py
