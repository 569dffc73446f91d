// frontends/python/src/factory.cpp: tensor, as_tensor, asarray, from_numpy and frombuffer.
#include "buffer.hpp"
#include "convert.hpp"
#include "device.hpp"
#include "dtype.hpp"
#include "parse.hpp"
#include "program.hpp"

namespace adjoin::py {
namespace {

struct Wanted {
  DLDataType dtype_value;
  const DLDataType* dtype = nullptr;
  DLDevice device_value;
  const DLDevice* device = nullptr;
};

bool read_wanted(const char* function, PyObject* dtype, PyObject* device, Wanted& w) {
  if (given(dtype)) {
    if (!as_dtype(dtype, &w.dtype_value)) {
      PyErr_Format(
          PyExc_TypeError,
          "%s(): argument 'dtype' must be adjoin.dtype, not %s; dtypes are given as adjoin.float32",
          function, Py_TYPE(dtype)->tp_name);
      return false;
    }
    w.dtype = &w.dtype_value;
  }
  if (given(device)) {
    if (!as_device(device, &w.device_value)) {
      if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError,
                     "%s(): argument 'device' must be adjoin.device or str, not %s", function,
                     Py_TYPE(device)->tp_name);
      return false;
    }
    w.device_value = concrete(w.device_value);
    w.device = &w.device_value;
  }
  return true;
}

DLDevice place(const Wanted& w, PyObject* data) {
  if (w.device) return *w.device;
  if (data && is_tensor(data)) return tensor_of(data)->dl.device;
  return default_device.device_type ? default_device : host_device();
}

PyObject* finish(aj_tensor* t, bool wants_grad) {
  if (!t) return nullptr;
  if (PyErr_Occurred()) {  // wants_grad was neither true nor false
    core->release(t);
    return nullptr;
  }
  if (wants_grad && failed(autograd->set_requires_grad(t, 1))) {
    core->release(t);
    return nullptr;
  }
  return wrap(t);
}

// The numbers of a storage (adjoin.storage), in its own memory; NULL without an error where data is
// none.
aj_tensor* over_storage(PyObject* data, const Wanted& w) {
  static PyObject* name = PyUnicode_InternFromString("_seen_as");
  if (!name || is_exact_tensor(data) || !_PyType_Lookup(Py_TYPE(data), name) || is_tensor(data))
    return nullptr;
  PyObject* dtype = w.dtype ? reinterpret_cast<PyObject*>(dtype_object(*w.dtype)) : Py_None;
  Ref seen(dtype ? PyObject_CallMethod(data, "_seen_as", "O", dtype) : nullptr);
  if (!seen || !is_tensor(seen.get())) return nullptr;
  core->retain(tensor_of(seen.get()));
  return cast_to(tensor_of(seen.get()), nullptr, w.device ? &*w.device : nullptr);
}

PyObject* make_tensor(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  static const Signature signature("tensor", 1, 1,
                                   {"data", "dtype", "device", "requires_grad", "pin_memory"});
  PyObject* a[5];
  Wanted w;
  if (!signature.parse(args, n, kwnames, a) || !read_wanted("tensor", a[1], a[2], w))
    return nullptr;
  if (is_tensor(a[0]) &&
      PyErr_WarnEx(
          PyExc_UserWarning,
          "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() "
          "or sourceTensor.detach().clone().requires_grad_(True), rather than tensor(sourceTensor)",
          1) < 0)
    return nullptr;
  uint8_t wishes = (truth(a[3], false) ? kWantsGrad : 0) | (truth(a[4], false) ? kWantsPinned : 0);
  aj_tensor* t = over_storage(a[0], w);
  if (!t && PyErr_Occurred()) return nullptr;
  if (!t) t = tensor_from_data(a[0], w.dtype, place(w, a[0]));
  return grant(finish(t, false), wishes);
}

// Shares memory where it can.
aj_tensor* shared(PyObject* data, const Wanted& w) {
  if (is_tensor(data)) {
    core->retain(tensor_of(data));
    return cast_to(tensor_of(data), w.dtype, w.device);
  }
  bool plain =
      PyFloat_Check(data) || PyLong_Check(data) || PyList_Check(data) || PyTuple_Check(data);
  aj_tensor* t = plain ? nullptr : tensor_on_memory(data);
  if (!t && PyErr_Occurred()) return nullptr;
  if (!t) return tensor_from_data(data, w.dtype, place(w, nullptr));
  DLDevice d = place(w, nullptr);
  return cast_to(t, w.dtype, w.device || default_device.device_type ? &d : nullptr);
}

// The data's own memory, or an error.
aj_tensor* only_shared(PyObject* data, const Wanted& w) {
  HeldTensor t;
  Scratch scratch;
  aj_value number;
  if (is_tensor(data)) {
    core->retain(tensor_of(data));
    t = HeldTensor(tensor_of(data));
  } else if (!as_number(data, &number, scratch) && !PyList_Check(data) && !PyTuple_Check(data)) {
    t = HeldTensor(tensor_on_memory(data));
    if (PyErr_Occurred()) return nullptr;
  }
  if (!t) {
    PyErr_Format(PyExc_ValueError,
                 "asarray: a %s has no memory that a tensor could share; leave copy=False out",
                 Py_TYPE(data)->tp_name);
    return nullptr;
  }
  DLDevice d = w.device ? *w.device : t->dl.device, now = t->dl.device;
  if ((w.dtype && !same(*w.dtype, t->dl.dtype)) || d.device_type != now.device_type ||
      d.device_id != now.device_id) {
    PyErr_SetString(PyExc_ValueError,
                    "asarray: another dtype or device wants a copy, which copy=False forbids; "
                    "leave one of them out");
    return nullptr;
  }
  return t.release();
}

// A tensor over memory of somebody else; a warning, once in a program, where it cannot be written.
PyObject* told_read_only(PyObject* made) {
  static bool told = false;
  if (!made || !(tensor_of(made)->obj.flags & AJ_TENSOR_READ_ONLY) || std::exchange(told, true))
    return made;
  if (PyErr_WarnEx(PyExc_UserWarning,
                   "The given NumPy array is not writable: a write to the tensor raises. clone() "
                   "gives one that can be written.",
                   1) == 0)
    return made;
  Py_DECREF(made);
  return nullptr;
}

PyObject* as_tensor(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  static const Signature signature("as_tensor", 3, 1, {"data", "dtype", "device"});
  PyObject* a[3];
  Wanted w;
  if (!signature.parse(args, n, kwnames, a) || !read_wanted("as_tensor", a[1], a[2], w))
    return nullptr;
  if (is_tensor(a[0]) && !w.dtype && !w.device) return Py_NewRef(a[0]);
  return finish(shared(a[0], w), false);
}

PyObject* asarray(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  static const Signature signature("asarray", 1, 1,
                                   {"obj", "dtype", "device", "copy", "requires_grad"});
  PyObject* a[5];
  Wanted w;
  if (!signature.parse(args, n, kwnames, a) || !read_wanted("asarray", a[1], a[2], w))
    return nullptr;
  bool copy = given(a[3]) && truth(a[3], false);
  bool wants_grad = truth(a[4], false);
  if (PyErr_Occurred()) return nullptr;
  Ref plain;  // requires_grad=False leaves a tensor's history behind; left out, it comes along
  if (is_tensor(a[0]) && given(a[4]) && !wants_grad && requires_grad(tensor_of(a[0]))) {
    plain = Ref(PyObject_CallMethod(a[0], "detach", nullptr));
    if (!plain) return nullptr;
    a[0] = plain.get();
  }
  if (given(a[3]) && !copy) return told_read_only(finish(only_shared(a[0], w), wants_grad));
  if (copy && is_tensor(a[0])) {  // with its history
    Ref own(PyObject_CallMethod(a[0], "clone", nullptr));
    if (!own) return nullptr;
    core->retain(tensor_of(own.get()));
    aj_tensor* t = cast_to(tensor_of(own.get()), w.dtype, w.device);
    return finish(t, t && wants_grad && !requires_grad(t));
  }
  if (copy) return finish(tensor_from_data(a[0], w.dtype, place(w, a[0])), wants_grad);
  return told_read_only(finish(shared(a[0], w), wants_grad));
}

PyObject* from_numpy(PyObject*, PyObject* array) {
  aj_tensor* t = view_of_memory(array);
  if (t) return told_read_only(wrap(t));
  if (PyErr_Occurred()) return nullptr;
  return PyErr_Format(
      PyExc_TypeError,
      "from_numpy(): argument must be numpy.ndarray, not %s; tensor() takes lists and numbers",
      Py_TYPE(array)->tp_name);
}

// The bytes from offset on as one dimension of count elements.
PyObject* frombuffer(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  static const Signature signature("frombuffer", 1, 2,
                                   {"buffer", "dtype", "count", "offset", "requires_grad"});
  PyObject* a[5];
  Wanted w;
  if (!signature.parse(args, n, kwnames, a) || !read_wanted("frombuffer", a[1], nullptr, w))
    return nullptr;
  if (!PyObject_CheckBuffer(a[0]))
    return PyErr_Format(
        PyExc_ValueError,
        "frombuffer: object does not implement Python buffer protocol: a %s holds no "
        "bytes; tensor() takes lists and numbers",
        Py_TYPE(a[0])->tp_name);
  Ref bytes(PyMemoryView_FromObject(a[0]));
  if (bytes) bytes = Ref(PyObject_CallMethod(bytes.get(), "cast", "s", "B"));
  HeldTensor all(bytes ? view_of_memory(bytes.get()) : nullptr);
  if (!all) return nullptr;
  int64_t item = item_bytes(*w.dtype), length = all->dl.shape[0];
  int64_t count = given(a[2]) ? PyLong_AsLongLong(a[2]) : -1,
          offset = given(a[3]) ? PyLong_AsLongLong(a[3]) : 0;
  if (PyErr_Occurred()) return nullptr;
  using wide = long long;
  if (!length || !count)
    return PyErr_Format(PyExc_ValueError,
                        "frombuffer: both buffer length (%lld) and count (%lld) must not be 0",
                        wide(length), wide(count));
  if (offset < 0 || offset >= length)
    return PyErr_Format(PyExc_ValueError,
                        "frombuffer: offset (%lld bytes) must be non-negative and no greater than "
                        "buffer length (%lld bytes) minus 1",
                        wide(offset), wide(length));
  int64_t room = length - offset;
  if (count < 0 && room % item)
    return PyErr_Format(
        PyExc_ValueError,
        "frombuffer: buffer length (%lld bytes) after offset (%lld bytes) must be a "
        "multiple of element size (%lld bytes); say count",
        wide(room), wide(offset), wide(item));
  if (count < 0) count = room / item;
  if (count > room / item)
    return PyErr_Format(
        PyExc_ValueError,
        "frombuffer: requested buffer length (%lld * %lld bytes) after offset (%lld "
        "bytes) must not be greater than actual buffer length (%lld bytes)",
        wide(count), wide(item), wide(offset), wide(length));
  int64_t one = 1;
  DLTensor like{data_of(all.get()) + offset, host_device(), 1, *w.dtype, &count, &one, 0};
  aj_tensor* kept = all.release();
  aj_tensor* t = nullptr;
  uint64_t flags = kept->obj.flags & AJ_TENSOR_READ_ONLY;
  auto drop = [](void* context) { core->release(context); };
  if (failed(core->tensor_from_memory(&like, static_cast<uint64_t>(count * item), flags, kept, drop,
                                      &t)))
    return nullptr;
  return finish(t, truth(a[4], false));
}

PyMethodDef functions[] = {
    {"tensor", method(make_tensor), METH_FASTCALL | METH_KEYWORDS,
     "tensor(data, *, dtype=None, device=None, requires_grad=False)\n--\n\nA new tensor with a "
     "copy of the data."},
    {"as_tensor", method(as_tensor), METH_FASTCALL | METH_KEYWORDS,
     "as_tensor(data, dtype=None, device=None)\n--\n\nThe data as a tensor, on the same memory "
     "where that is possible."},
    {"asarray", method(asarray), METH_FASTCALL | METH_KEYWORDS,
     "asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None)\n--\n\nAny object "
     "that holds numbers as a "
     "tensor."},
    {"from_numpy", from_numpy, METH_O,
     "from_numpy(ndarray, /)\n--\n\nA tensor on an array's memory."},
    {"frombuffer", method(frombuffer), METH_FASTCALL | METH_KEYWORDS,
     "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False)\n--\n\nA tensor on the "
     "memory of a buffer."},
    {},
};

}  // namespace

int init_convert(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace adjoin::py
