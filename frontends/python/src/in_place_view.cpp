// frontends/python/src/in_place_view.cpp: t_, squeeze_ and the like: the tensor itself takes the
// shape and strides of a view.
#include "methods.hpp"
#include "op.hpp"

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

PyObject* take_view(const char* name, PyObject* self, PyObject* const* args, Py_ssize_t n,
                    PyObject* kwnames) {
  aj_tensor* t = tensor_of(self);
  if (says_requires_grad(t))
    return PyErr_Format(PyExc_RuntimeError,
                        "%s_: a tensor that requires grad keeps its shape; use %s() and the result",
                        name, name);
  PyObject* function = find_function(name);
  Ref made(function ? call_with_self(function, self, args, n, kwnames) : nullptr);
  if (!made) return nullptr;
  if (!is_tensor(made.get()))
    return PyErr_Format(PyExc_TypeError, "%s_: %s() gave no tensor but %s", name, name,
                        Py_TYPE(made.get())->tp_name);
  aj_tensor* v = tensor_of(made.get());
  void* data;
  uint64_t bytes, offset, id;
  if (!settled(v) || failed(core->tensor_storage(v, &data, &bytes, &offset, &id))) return nullptr;
  int64_t first = static_cast<int64_t>(offset) / item_bytes(v->dl.dtype);
  if (failed(core->tensor_set(t, t, first, v->dl.ndim, v->dl.shape, v->dl.strides))) return nullptr;
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
    {"squeeze_", method(change<0>), METH_FASTCALL | METH_KEYWORDS,
     "squeeze() on the tensor itself."},
    {"unsqueeze_", method(change<1>), METH_FASTCALL | METH_KEYWORDS,
     "unsqueeze() on the tensor itself."},
    {"t_", method(change<2>), METH_FASTCALL | METH_KEYWORDS, "t() on the tensor itself."},
    {"transpose_", method(change<3>), METH_FASTCALL | METH_KEYWORDS,
     "transpose() on the tensor itself."},
    {"swapaxes_", method(change<4>), METH_FASTCALL | METH_KEYWORDS,
     "swapaxes() on the tensor itself."},
    {"swapdims_", method(change<5>), METH_FASTCALL | METH_KEYWORDS,
     "swapdims() on the tensor itself."},
    {"as_strided_", method(change<6>), METH_FASTCALL | METH_KEYWORDS,
     "as_strided() on the tensor itself."},
    {},
};

}  // namespace adjoin::py
