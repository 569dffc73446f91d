// frontends/python/src/interop.cpp: NumPy and DLPack, in both directions; NumPy is imported only
// when asked for.
#include "buffer.hpp"
#include "convert.hpp"
#include "device.hpp"
#include "methods.hpp"
#include "parse.hpp"
#include "seen.hpp"

namespace adjoin::py {
namespace {

PyObject* numpy_asarray() {
  static PyObject* asarray;
  if (asarray) return asarray;
  Ref numpy(PyImport_ImportModule("numpy"));
  return numpy ? asarray = PyObject_GetAttrString(numpy.get(), "asarray") : nullptr;
}

bool may_share(aj_tensor* t, const char* who) {
  if (requires_grad(t) && autograd->grad_mode()) {
    PyErr_Format(PyExc_RuntimeError, "%s: the tensor requires grad; use .detach().%s() instead",
                 who, who);
    return false;
  }
  if (!on_host(t)) {
    Ref device(device_object(t->dl.device));
    bool empty = is_meta(t);
    PyErr_Format(PyExc_TypeError, "%s: the tensor is on %S; %s", who, device.get(),
                 empty ? "such have shapes and no values: make it on a device that has memory"
                       : "use .cpu() first");
    return false;
  }
  return is_strided(t) || HeldTensor(strided(t, who));
}

PyObject* to_numpy(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  static const Signature signature("numpy", 0, 0, {"force"});
  PyObject* a[1];
  if (!signature.parse(args, n, kwnames, a)) return nullptr;
  bool force = truth(a[0], false);
  if (PyErr_Occurred()) return nullptr;
  if (force) {
    Ref plain(PyObject_CallMethod(self, "detach", nullptr));
    Ref host(plain ? PyObject_CallMethod(plain.get(), "cpu", nullptr) : nullptr);
    PyObject* asarray = host ? numpy_asarray() : nullptr;
    return asarray ? PyObject_CallOneArg(asarray, host.get()) : nullptr;
  }
  if (!may_share(tensor_of(self), "numpy")) return nullptr;
  PyObject* asarray = numpy_asarray();
  if (!asarray) return nullptr;
  if (!format_of_dtype(tensor_of(self)->dl.dtype))
    return PyErr_Format(PyExc_TypeError, "numpy: NumPy has no %R",
                        PyObject_GetAttrString(self, "dtype"));
  return PyObject_CallOneArg(asarray, self);
}

// For callers who bring a dtype; the buffer serves the rest.
PyObject* to_array(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  static const Signature signature("__array__", 2, 0, {"dtype", "copy"});
  PyObject* a[2];
  if (!signature.parse(args, n, kwnames, a)) return nullptr;
  Ref array(to_numpy(self, nullptr, 0, nullptr));
  bool copies = given(a[1]) && truth(a[1], false), shares = given(a[1]) && !copies;
  if (!array || PyErr_Occurred()) return nullptr;
  if (!given(a[0]))
    return copies ? PyObject_CallMethod(array.get(), "copy", nullptr) : array.release();
  Ref made(PyObject_CallMethod(array.get(), "astype", "OssOO", a[0], "K", "unsafe", Py_True,
                               copies ? Py_True : Py_False));
  if (!made || !shares || made.get() == array.get()) return made.release();
  return PyErr_Format(
      PyExc_ValueError,
      "__array__: another dtype wants a copy, which copy=False forbids; leave one of them out");
}

void delete_managed(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, "dltensor_versioned")) return;  // somebody took it
  auto* m =
      static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
  if (m->deleter) m->deleter(m);
}

void delete_old(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, "dltensor")) return;
  auto* m = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
  if (m->deleter) m->deleter(m);
}

// Consumers from before version 1 get the old struct around the new one.
DLManagedTensor* old_form(DLManagedTensorVersioned* m) {
  return new DLManagedTensor{m->dl_tensor, m, [](DLManagedTensor* self) {
                               auto* inner =
                                   static_cast<DLManagedTensorVersioned*>(self->manager_ctx);
                               inner->deleter(inner);
                               delete self;
                             }};
}

bool wants_version_one(PyObject* max_version) {
  if (!given(max_version) || !PyTuple_Check(max_version) || PyTuple_GET_SIZE(max_version) < 1)
    return false;
  return PyLong_AsLong(PyTuple_GET_ITEM(max_version, 0)) >= 1;
}

// The protocol's stream: None or a number below 3 is a default stream, -1 asks for no order,
// anything else is a handle.
bool taker_stream(PyObject* o, void** stream, uint64_t* flags) {
  if (!given(o)) return true;
  int64_t number = PyLong_AsLongLong(o);
  if (number == -1 && PyErr_Occurred()) return false;
  if (number == -1) *flags = AJ_DLPACK_NO_SYNC;
  if (number > 2) *stream = reinterpret_cast<void*>(number);
  return true;
}

PyObject* to_dlpack(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  static const Signature signature("__dlpack__", 0, 0,
                                   {"stream", "max_version", "dl_device", "copy"});
  PyObject* a[4];
  if (!signature.parse(args, n, kwnames, a)) return nullptr;
  aj_tensor* t = tensor_of(self);
  if (requires_grad(t)) {
    PyErr_SetString(PyExc_BufferError, "__dlpack__: the tensor requires grad; use .detach() first");
    return nullptr;
  }
  Ref copy;
  bool wants_copy = given(a[3]) && truth(a[3], false);
  if (PyErr_Occurred()) return nullptr;
  if (wants_copy) {
    copy = Ref(PyObject_CallMethod(self, "clone", nullptr));
    if (!copy) return nullptr;
    t = tensor_of(copy.get());
  }
  DLManagedTensorVersioned* m = nullptr;
  void* stream = nullptr;
  uint64_t flags = 0;
  if (!taker_stream(a[0], &stream, &flags)) return nullptr;
  if (failed(core->tensor_to_dlpack(t, stream, flags, &m))) return nullptr;
  if (copy) m->flags |= DLPACK_FLAG_BITMASK_IS_COPIED;
  if (wants_version_one(a[1])) return PyCapsule_New(m, "dltensor_versioned", delete_managed);
  return PyCapsule_New(old_form(m), "dltensor", delete_old);
}

PyObject* dlpack_device(PyObject* self, PyObject*) {
  DLDevice d = tensor_of(self)->dl.device;
  return Py_BuildValue("ii", d.device_type, d.device_id);
}

DLManagedTensorVersioned* new_form(DLManagedTensor* m) {
  return new DLManagedTensorVersioned{{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
                                      m,
                                      [](DLManagedTensorVersioned* self) {
                                        auto* inner =
                                            static_cast<DLManagedTensor*>(self->manager_ctx);
                                        if (inner->deleter) inner->deleter(inner);
                                        delete self;
                                      },
                                      0,
                                      m->dl_tensor};
}

aj_tensor* take_capsule(PyObject* capsule) {
  DLManagedTensorVersioned* m = nullptr;
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    m = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
    PyCapsule_SetName(capsule, "used_dltensor_versioned");
  } else if (PyCapsule_IsValid(capsule, "dltensor")) {
    m = new_form(static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor")));
    PyCapsule_SetName(capsule, "used_dltensor");
  } else {
    PyErr_SetString(PyExc_ValueError,
                    "from_dlpack: the capsule is not a DLPack tensor, or was used before");
    return nullptr;
  }
  aj_tensor* t = nullptr;
  return failed(core->tensor_from_dlpack(m, &t)) ? nullptr : t;
}

// Our own tensors need no capsule, others are asked for version 1 first.
PyObject* from_dlpack(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  static const Signature signature("from_dlpack", 1, 1, {"ext_tensor", "device", "copy"});
  PyObject* a[3];
  if (!signature.parse(args, n, kwnames, a)) return nullptr;
  aj_tensor* t = nullptr;
  if (PyCapsule_CheckExact(a[0])) return (t = take_capsule(a[0])) ? wrap(t) : nullptr;
  bool wants_copy = truth(a[2], false);
  if (PyErr_Occurred()) return nullptr;
  if (is_exact_tensor(a[0]) && !requires_grad(tensor_of(a[0])) && !wants_copy)
    return failed(autograd->detach(tensor_of(a[0]), &t)) ? nullptr : wrap(t);
  Ref f(PyObject_GetAttrString(a[0], "__dlpack__"));
  if (!f) return nullptr;
  Ref none(PyTuple_New(0)), keywords(Py_BuildValue("{s:(ii)}", "max_version", DLPACK_MAJOR_VERSION,
                                                   DLPACK_MINOR_VERSION));
  if (given(a[2]) && PyDict_SetItemString(keywords.get(), "copy", a[2]) < 0) return nullptr;
  Ref capsule(PyObject_Call(f.get(), none.get(), keywords.get()));
  if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {  // from before version 1
    forget_error();
    capsule = Ref(PyObject_CallNoArgs(f.get()));
  }
  return capsule && (t = take_capsule(capsule.get())) ? wrap(t) : nullptr;
}

int allocate(DLTensor* like, DLManagedTensorVersioned** out, void* context,
             void (*set_error)(void*, const char*, const char*)) {
  HeldTensor t;
  aj_status* s = core->tensor_empty(like, 0, t.out());
  if (!s) s = core->tensor_to_dlpack(t.get(), nullptr, AJ_DLPACK_NO_SYNC, out);
  if (!s) return 0;
  set_error(context, "RuntimeError", std::string(view(core->status_message(s))).c_str());
  core->status_free(s);
  return -1;
}

int managed_of_object(void* object, DLManagedTensorVersioned** out) {
  auto* o = static_cast<PyObject*>(object);
  if (is_tensor(o))
    return failed(core->tensor_to_dlpack(tensor_of(o), nullptr, AJ_DLPACK_NO_SYNC, out)) ? -1 : 0;
  PyErr_SetString(PyExc_TypeError, "dlpack: not an adjoin.Tensor");
  return -1;
}

int object_of_managed(DLManagedTensorVersioned* steal, void** out) {
  aj_tensor* t = nullptr;
  if (failed(core->tensor_from_dlpack(steal, &t))) return -1;
  *out = wrap(t);
  return *out ? 0 : -1;
}

int borrow_of_object(void* object, DLTensor* out) {
  auto* o = static_cast<PyObject*>(object);
  if (!is_tensor(o)) {
    PyErr_SetString(PyExc_TypeError, "dlpack: not an adjoin.Tensor");
    return -1;
  }
  if (!settled(tensor_of(o))) return -1;
  *out = tensor_of(o)->dl;
  if (out->device.device_type == kDLCPU) return 0;
  DLManagedTensorVersioned* m;  // the number that the device has for others, or why it has none
  if (failed(core->tensor_to_dlpack(tensor_of(o), nullptr, AJ_DLPACK_NO_SYNC, &m))) return -1;
  *out = m->dl_tensor;
  m->deleter(m);
  return 0;
}

int current_stream(DLDeviceType type, int32_t id, void** out) {
  return failed(core->stream_current({type, id}, out)) ? -1 : 0;
}

DLPackExchangeAPI exchange = {{{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}, nullptr},
                              allocate,
                              managed_of_object,
                              object_of_managed,
                              borrow_of_object,
                              current_stream};

PyMethodDef functions[] = {
    {"from_dlpack", method(from_dlpack), METH_FASTCALL | METH_KEYWORDS,
     "from_dlpack(ext_tensor, *, device=None, copy=None)\n--\n\nA tensor on the memory of another "
     "library's array."},
    {},
};

}  // namespace

aj_tensor* tensor_on_memory(PyObject* o) {
  aj_tensor* t = view_of_memory(o);
  if (t || PyErr_Occurred()) return t;
  if (PyCapsule_CheckExact(o)) return take_capsule(o);
  for (const char* protocol : {"__dlpack__", "__array_interface__", "__array__"}) {
    if (!PyObject_HasAttrString(o, protocol)) continue;
    bool dlpack = protocol[2] == 'd';
    Ref made(dlpack ? from_dlpack(nullptr, &o, 1, nullptr)
                    : call_helper("adjoin._tensor", "_from_array_protocol", &o, 1));
    if (!made) return nullptr;
    core->retain(tensor_of(made.get()));
    return tensor_of(made.get());
  }
  return nullptr;
}

PyMethodDef exchange_methods[] = {
    {"numpy", method(seen_with_names<to_numpy>), METH_FASTCALL | METH_KEYWORDS,
     "A NumPy array on the tensor's memory."},
    {"__array__", method(to_array), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"__dlpack__", method(to_dlpack), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"__dlpack_device__", dlpack_device, METH_NOARGS, nullptr},
    {},
};

int init_interop(PyObject* module) {
  Ref table(PyCapsule_New(&exchange, "dlpack_exchange_api", nullptr));
  Ref priority(PyLong_FromLong(1000));  // NumPy's operators leave the work to the tensor
  if (!table ||
      PyDict_SetItemString(tensor_type.tp_dict, "__dlpack_c_exchange_api__", table.get()) < 0)
    return -1;
  if (!priority ||
      PyDict_SetItemString(tensor_type.tp_dict, "__array_priority__", priority.get()) < 0)
    return -1;
  return PyModule_AddFunctions(module, functions);
}

}  // namespace adjoin::py
