// frontends/python/src/tensor.hpp: the Python object of a tensor: how it is made, found again and
// taken apart.
#pragma once

#include "errors.hpp"
#include "py.hpp"

namespace adjoin::py {

struct TensorObject {
  PyObject_HEAD aj_tensor* tensor;  // a reference of ours, unless `kept` is set
  PyObject* dict;                   // of its own, or no_attributes
  PyObject* dtype;  // borrowed from the table of dtypes: the interpreter reads it without a call
  PyObject* weakrefs;
  bool kept;  // the tensor owns this object, which only waits to be asked for again
};

extern PyTypeObject tensor_type;
void dtype_changed(void* word);  // called by the core when a tensor's dtype becomes another

inline bool is_exact_tensor(PyObject* o) { return Py_TYPE(o) == &tensor_type; }
inline bool is_tensor(PyObject* o) {
  return is_exact_tensor(o) || PyType_IsSubtype(Py_TYPE(o), &tensor_type);
}
inline aj_tensor* tensor_of(PyObject* o) { return reinterpret_cast<TensorObject*>(o)->tensor; }

// The Python object of a tensor: the one it already has, or a new one. Takes the reference. NULL
// with an error set.
PyObject* wrap(aj_tensor* steal);
inline PyObject* wrap_borrowed(aj_tensor* t) {
  core->retain(t);
  return wrap(t);
}
inline PyObject* wrap_or_none(aj_tensor* steal) { return steal ? wrap(steal) : Py_NewRef(Py_None); }

// A new object of a subclass for a tensor that has none yet.
PyObject* wrap_as(PyTypeObject* type, aj_tensor* steal);

inline bool is_strided(const aj_tensor* t) { return t->obj.flags & AJ_TENSOR_STRIDED; }
inline bool requires_grad(const aj_tensor* t) { return t->obj.flags & AJ_TENSOR_REQUIRES_GRAD; }
inline int64_t item_bytes(DLDataType d) { return (int64_t{d.bits} * d.lanes + 7) / 8; }
inline bool on_host(const aj_tensor* t) { return t->dl.device.device_type == kDLCPU; }
// Before memory is shown to anybody: an order that is ours to choose becomes C order, what has no
// strides gets them or is refused.
inline bool settled(aj_tensor* t, const char* who = "memory") {
  constexpr uint32_t shown = AJ_TENSOR_STRIDED | AJ_TENSOR_FREE_ORDER;
  return likely((t->obj.flags & shown) == AJ_TENSOR_STRIDED) ||
         !failed(named_for(core->tensor_settle(t), who));
}
// The same before strides are: those that a tensor without memory will have will do.
inline bool strides_settled(aj_tensor* t, const char* who = "stride") {
  return (!is_strided(t) && (t->dl.strides || t->dl.ndim == 0)) || settled(t, who);
}
// For who reads values: t itself, owned, or its values; `who` stands at the begin of a refusal.
// NULL with an error set.
aj_tensor* strided(aj_tensor* t, const char* who);
// (op, arguments...), which makes a tensor without strides again, or None.
PyObject* wrapper_parts(PyObject*, PyObject* o);
int32_t layout_of(const aj_tensor* t);  // AJ_LAYOUT_...
inline bool is_meta(const aj_tensor* t) {
  return view(core->device_name(t->dl.device.device_type)) == "meta";
}  // no memory
inline char* data_of(const aj_tensor* t) {
  return static_cast<char*>(t->dl.data) + t->dl.byte_offset;
}

}  // namespace adjoin::py
