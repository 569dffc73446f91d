// frontends/python/src/in_place_view.cpp: t_, squeeze_ and the like: the tensor itself takes the
// shape and strides of a view.
#include <set>

#include "dispatch.hpp"
#include "function.hpp"
#include "methods.hpp"
#include "op.hpp"
#include "seen.hpp"

namespace adjoin::py {
namespace {

// The op with the tensor before the arguments that its method was given.
PyObject* call_with_self(PyObject* function, PyObject* self, PyObject* const* args, Py_ssize_t n,
                         PyObject* kwnames) {
  Py_ssize_t all = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  PyObject* few[8];
  std::unique_ptr<PyObject*[]> many;
  PyObject** to = few;
  if (all + 1 > 8) {
    many = std::make_unique<PyObject*[]>(static_cast<size_t>(all + 1));
    to = many.get();
  }
  to[0] = self;
  for (Py_ssize_t i = 0; i < all; ++i) to[i + 1] = args[i];
  return PyObject_Vectorcall(function, to, static_cast<size_t>(n + 1), kwnames);
}

aj_status* pass_on(void*, aj_grad_call* g) {
  core->retain(g->grad_out[0]);
  g->grad_in[0] = g->grad_out[0];
  return nullptr;
}

// The tensor's history becomes that of its view, which was recorded, by way of a node between them.
bool take_history(const char* name, aj_tensor* t, aj_tensor* view) {
  auto def = sized<aj_vjp_def>();
  std::string node = std::string(name) + "_";
  static std::set<std::string> names;  // they live as long as the process
  def.op = str(*names.insert(node).first);
  def.vjp = pass_on;
  HeldNode n;
  return !failed(autograd->node_new(&def, nullptr, &view, 1, n.out())) &&
         !failed(autograd->node_results(n.get(), 1)) &&
         !failed(autograd->node_attach(n.get(), 0, t, 0));
}

// A tensor of a transform's, or of a class that holds others: a view of it is all that there is.
bool seen_by_key(const aj_tensor* t) {
  return !is_strided(t) && (is_seen(t) || t->keys & dispatch->key_mask(AJ_STR_LIT("transform")));
}

PyObject* take_view(const char* name, PyObject* self, PyObject* const* args, Py_ssize_t n,
                    PyObject* kwnames) {
  aj_tensor* t = tensor_of(self);
  bool records = says_requires_grad(t);
  uint32_t fixed = seen_by_key(t) ? AJ_TENSOR_LEAF : AJ_TENSOR_LEAF | AJ_TENSOR_VIEW;
  if (records && (t->obj.flags & fixed || !autograd->grad_mode()))
    return PyErr_Format(PyExc_RuntimeError,
                        "%s_: %s that requires grad keeps its shape%s; use %s() and the result",
                        name,
                        t->obj.flags & AJ_TENSOR_LEAF   ? "a leaf"
                        : t->obj.flags & AJ_TENSOR_VIEW ? "a view"
                                                        : "a tensor",
                        autograd->grad_mode() ? "" : " under no_grad", name);
  PyObject* function = find_function(name);
  Ref made(function ? call_with_self(function, self, args, n, kwnames) : nullptr);
  if (!made) return nullptr;
  if (!is_tensor(made.get()))
    return PyErr_Format(PyExc_TypeError, "%s_: %s() gave no tensor but %s", name, name,
                        Py_TYPE(made.get())->tp_name);
  aj_tensor* v = tensor_of(made.get());
  if (seen_by_key(t)) {
    if (v != t) take_over(self, made.get());
    return Py_NewRef(self);
  }
  void* data;
  uint64_t bytes, offset, id;
  if (!settled(v) || failed(core->tensor_storage(v, &data, &bytes, &offset, &id))) return nullptr;
  int64_t first = static_cast<int64_t>(offset) / item_bytes(v->dl.dtype);
  core->tensor_bump_version(t);  // who saved it for a derivative saved another shape
  if (records && failed(autograd->detach_in_place(t))) return nullptr;
  if (failed(core->tensor_set(t, t, first, v->dl.ndim, v->dl.shape, v->dl.strides))) return nullptr;
  if (records && !take_history(name, t, v)) return nullptr;
  return Py_NewRef(self);
}

constexpr const char* names[] = {"squeeze",  "unsqueeze", "t",         "transpose",
                                 "swapaxes", "swapdims",  "as_strided"};

template <int i>
PyObject* change(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return take_view(names[i], self, args, n, kwnames);
}

}  // namespace

PyMethodDef in_place_view_methods[] = {
    {"squeeze_", method(seen_with_names<change<0>>), METH_FASTCALL | METH_KEYWORDS,
     "squeeze() on the tensor itself."},
    {"unsqueeze_", method(seen_with_names<change<1>>), METH_FASTCALL | METH_KEYWORDS,
     "unsqueeze() on the tensor itself."},
    {"t_", method(seen_with_names<change<2>>), METH_FASTCALL | METH_KEYWORDS,
     "t() on the tensor itself."},
    {"transpose_", method(seen_with_names<change<3>>), METH_FASTCALL | METH_KEYWORDS,
     "transpose() on the tensor itself."},
    {"swapaxes_", method(seen_with_names<change<4>>), METH_FASTCALL | METH_KEYWORDS,
     "swapaxes() on the tensor itself."},
    {"swapdims_", method(seen_with_names<change<5>>), METH_FASTCALL | METH_KEYWORDS,
     "swapdims() on the tensor itself."},
    {"as_strided_", method(seen_with_names<change<6>>), METH_FASTCALL | METH_KEYWORDS,
     "as_strided() on the tensor itself."},
    {},
};

}  // namespace adjoin::py
