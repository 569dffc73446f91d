// frontends/python/src/properties.cpp: what a tensor says about itself: shape, strides, dtype,
// place.
#include "device.hpp"
#include "dtype.hpp"
#include "methods.hpp"
#include "op.hpp"
#include "parse.hpp"
#include "seen.hpp"

namespace adjoin::py {
namespace {

Row transpose_row("transpose"), permute_row("permute"), t_row("t"), adjoint_row("adjoint"),
    real_row("real"), imag_row("imag");

PyObject* get_shape(PyObject* self, void*) {
  aj_tensor* t = tensor_of(self);
  return size_object(t->dl.shape, t->dl.ndim);
}

PyObject* get_device(PyObject* self, void*) { return device_object(tensor_of(self)->dl.device); }
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromLong(tensor_of(self)->dl.ndim); }
PyObject* get_itemsize(PyObject* self, void*) {
  return PyLong_FromLongLong(item_bytes(tensor_of(self)->dl.dtype));
}
// How many elements; not where sizes differ from row to row.
bool count(const aj_tensor* t, int64_t* out) {
  *out = core->tensor_numel(t);
  if (likely(*out >= 0)) return true;
  PyErr_SetString(PyExc_RuntimeError,
                  "numel: a size of the tensor differs from row to row; ask its parts");
  return false;
}
PyObject* get_nbytes(PyObject* self, void*) {
  aj_tensor* t = tensor_of(self);
  int64_t n;
  if (!count(t, &n)) return nullptr;
  return PyLong_FromLongLong(n * item_bytes(t->dl.dtype));
}

PyObject* get_layout(PyObject* self, void*) {
  return Py_NewRef(layout_object(layout_of(tensor_of(self))));
}

// is_sparse and its like: whether people see the layout of that number.
PyObject* is_layout(PyObject* self, void* number) {
  return PyBool_FromLong(layout_of(tensor_of(self)) == reinterpret_cast<intptr_t>(number));
}

// is_cuda, is_cpu: whether the device has the name after "is_".
PyObject* is_device(PyObject* self, void* name) {
  std::string_view device = view(core->device_name(tensor_of(self)->dl.device.device_type));
  return PyBool_FromLong(device == static_cast<const char*>(name));
}

PyObject* always_false(PyObject*, void*) { Py_RETURN_FALSE; }
PyObject* always_none(PyObject*, void*) { Py_RETURN_NONE; }

PyObject* wrap_new(aj_tensor* t) { return t ? wrap(t) : nullptr; }

PyObject* get_matrix_transpose(PyObject* self, void*) {
  aj_tensor* t = tensor_of(self);
  if (t->dl.ndim == 0) return Py_NewRef(self);  // a number is its own
  return wrap_new(call_row(transpose_row, t, -2, -1));
}

PyObject* get_transpose(PyObject* self, void*) {
  aj_tensor* t = tensor_of(self);
  if (t->dl.ndim <= 2) return wrap_new(call_row(t_row, t));
  int64_t order[64];
  for (int i = 0; i < t->dl.ndim; ++i) order[i] = t->dl.ndim - 1 - i;
  return wrap_new(call_row(permute_row, t, value(order, static_cast<size_t>(t->dl.ndim))));
}

PyObject* get_adjoint(PyObject* self, void*) {
  return wrap_new(call_row(adjoint_row, tensor_of(self)));
}

PyObject* get_matrix_adjoint(PyObject* self, void*) {
  const int n = tensor_of(self)->dl.ndim;
  if (n == 2 || n == 0) return get_adjoint(self, nullptr);
  return PyErr_Format(
      PyExc_RuntimeError,
      "H: only supported on matrices, this tensor has %d dimensions; take mH of a stack "
      "of matrices",
      n);
}

bool is_complex(const aj_tensor* t) { return t->dl.dtype.code == kDLComplex; }

PyObject* get_real(PyObject* self, void*) {
  aj_tensor* t = tensor_of(self);
  return is_complex(t) ? wrap_new(call_row(real_row, t)) : Py_NewRef(self);
}

PyObject* get_imag(PyObject* self, void*) {
  if (is_complex(tensor_of(self))) return wrap_new(call_row(imag_row, tensor_of(self)));
  PyErr_SetString(PyExc_RuntimeError, "imag: the tensor is not complex and has no imaginary part");
  return nullptr;
}

// x.real = value and x.imag = value: the part takes the values of a tensor, or a number; its own
// memory stays.
int set_part(PyObject* self, PyObject* value, const char* name, getter part) {
  if (!value) {
    PyErr_Format(PyExc_TypeError, "%s: a part cannot be deleted; x.%s.zero_() empties it", name,
                 name);
    return -1;
  }
  PyObject* to = part(self, nullptr);
  PyObject* done =
      to ? PyObject_CallMethod(to, is_tensor(value) ? "copy_" : "fill_", "O", value) : nullptr;
  Py_XDECREF(to);
  Py_XDECREF(done);
  return done ? 0 : -1;
}
int set_real(PyObject* self, PyObject* value, void*) {
  return set_part(self, value, "real", get_real);
}
int set_imag(PyObject* self, PyObject* value, void*) {
  return set_part(self, value, "imag", get_imag);
}

int32_t wrap_dim(int64_t dim, int32_t ndim) {
  if (dim >= -ndim && dim < ndim) return static_cast<int32_t>(dim < 0 ? dim + ndim : dim);
  PyErr_Format(PyExc_IndexError,
               "Dimension out of range (expected to be in range of [%d, %d], but got %lld)",
               ndim ? -ndim : -1, ndim ? ndim - 1 : 0, static_cast<long long>(dim));
  return -1;
}

PyObject* one_or_all(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames,
                     bool strides) {
  aj_tensor* t = tensor_of(self);
  if (strides && !strides_settled(t)) return nullptr;
  const int64_t* values = strides ? t->dl.strides : t->dl.shape;
  if (likely(n == 1 && !kwnames && PyLong_CheckExact(args[0]))) {
    long wanted = PyLong_AsLong(args[0]);
    if (unlikely(wanted == -1) && PyErr_Occurred()) return nullptr;
    int32_t dim = wrap_dim(wanted, t->dl.ndim);
    return dim < 0 ? nullptr : one_size(values[dim]);
  }
  static const Signature signature("size", 1, 0, {"dim"});
  PyObject* a[1];
  if (!signature.parse(args, n, kwnames, a)) return nullptr;
  if (!given(a[0])) return strides ? tuple_of(values, t->dl.ndim) : size_object(values, t->dl.ndim);
  long wanted = PyLong_AsLong(a[0]);
  if (wanted == -1 && PyErr_Occurred()) return nullptr;
  int32_t dim = wrap_dim(wanted, t->dl.ndim);
  return dim < 0 ? nullptr : one_size(values[dim]);
}

PyObject* size(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return one_or_all(self, args, n, kwnames, false);
}
PyObject* stride(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return one_or_all(self, args, n, kwnames, true);
}
PyObject* dim(PyObject* self, PyObject*) { return get_ndim(self, nullptr); }
PyObject* numel(PyObject* self, PyObject*) {
  int64_t n;
  return count(tensor_of(self), &n) ? PyLong_FromLongLong(n) : nullptr;
}
PyObject* element_size(PyObject* self, PyObject*) { return get_itemsize(self, nullptr); }

PyObject* data_ptr(PyObject* self, PyObject*) {
  aj_tensor* t = tensor_of(self);
  if (!settled(t, "data_ptr")) return nullptr;
  core->tensor_escape(t);
  if (!on_host(t) && is_meta(t)) return PyLong_FromLong(0);
  return PyLong_FromVoidPtr(core->tensor_numel(t)
                                ? t->dl.data
                                : nullptr);  // of a device with handles the handle, unmoved
}

bool dense_in(const aj_tensor* t, int64_t format) {
  bool plain = format != AJ_FORMAT_CHANNELS_LAST && format != AJ_FORMAT_CHANNELS_LAST_3D;
  if (plain && is_strided(t)) return t->obj.flags & AJ_TENSOR_DENSE;
  int nd = plain ? t->dl.ndim : format == AJ_FORMAT_CHANNELS_LAST ? 4 : 5;
  if (t->dl.ndim != nd) return false;
  int64_t expected = 1;
  for (int i = 0; i < nd; ++i) {
    // Plain: from the last; else channels, then space from the last, then the batch.
    int d = plain ? nd - 1 - i : i == 0 ? 1 : i == nd - 1 ? 0 : nd - i;
    if (t->dl.shape[d] == 1) continue;
    if (t->dl.strides[d] != expected) return false;
    expected *= t->dl.shape[d];
  }
  return true;
}

PyObject* is_contiguous(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  int64_t format = AJ_FORMAT_CONTIGUOUS;
  if (unlikely(n || kwnames)) {
    static const Signature signature("is_contiguous", 1, 0, {"memory_format"});
    PyObject* a[1];
    if (!signature.parse(args, n, kwnames, a)) return nullptr;
    if (given(a[0])) {
      if (Py_TYPE(a[0]) != &memory_format_type)
        return PyErr_Format(
            PyExc_TypeError,
            "is_contiguous(): argument 'memory_format' must be memory_format, not %s",
            Py_TYPE(a[0])->tp_name);
      format = reinterpret_cast<TagObject*>(a[0])->value;
    }
  }
  if (!strides_settled(tensor_of(self), "is_contiguous")) return nullptr;
  return PyBool_FromLong(dense_in(tensor_of(self), format));
}

PyObject* storage_offset(PyObject* self, PyObject*) {
  aj_tensor* t = tensor_of(self);
  void* data;
  uint64_t bytes, offset, id;
  if (failed(named_for(core->tensor_storage(t, &data, &bytes, &offset, &id), "storage_offset")))
    return nullptr;
  return PyLong_FromLongLong(static_cast<int64_t>(offset) / item_bytes(t->dl.dtype));
}

// (address, bytes, id) of the memory under the tensor, for storage objects.
PyObject* storage_info(PyObject* self, PyObject*) {
  void* data;
  uint64_t bytes, offset, id;
  if (failed(core->tensor_storage(tensor_of(self), &data, &bytes, &offset, &id))) return nullptr;
  return Py_BuildValue("KKKK", reinterpret_cast<unsigned long long>(data), bytes, offset, id);
}

// Which tensor an object stands for: swapping two objects' tensors swaps these.
PyObject* identity(PyObject* self, void*) { return PyLong_FromVoidPtr(tensor_of(self)); }

PyObject* get_device_index(PyObject* self, PyObject*) {
  return PyLong_FromLong(on_host(tensor_of(self)) ? -1 : tensor_of(self)->dl.device.device_id);
}

PyObject* is_floating_point(PyObject* self, PyObject*) {
  DtypeObject* d = dtype_object(tensor_of(self)->dl.dtype);
  return d ? PyBool_FromLong(d->kind == AJ_CLASS_FLOAT) : nullptr;
}
PyObject* is_complex_method(PyObject* self, PyObject*) {
  return PyBool_FromLong(is_complex(tensor_of(self)));
}
PyObject* is_signed(PyObject* self, PyObject*) {
  uint8_t code = tensor_of(self)->dl.dtype.code;
  return PyBool_FromLong(code != kDLUInt && code != kDLBool);
}

}  // namespace

PyGetSetDef shape_properties[] = {
    {"shape", seen_get<get_shape>, nullptr, "The sizes of all dimensions.", nullptr},
    {"device", seen_get<get_device>, nullptr, "Where the memory is.", nullptr},
    {"ndim", seen_get<get_ndim>, nullptr, "The number of dimensions.", nullptr},
    {"itemsize", seen_get<get_itemsize>, nullptr, "Bytes of an element.", nullptr},
    {"nbytes", seen_get<get_nbytes>, nullptr, "Bytes of all elements.", nullptr},
    {"layout", seen_get<get_layout>, nullptr, "How the elements lie in memory.", nullptr},
    {"_cdata", identity, nullptr, nullptr, nullptr},
    {"is_cpu", seen_get<is_device>, nullptr, nullptr, const_cast<char*>("cpu")},
    {"is_cuda", seen_get<is_device>, nullptr, nullptr, const_cast<char*>("cuda")},
    {"is_meta", seen_get<is_device>, nullptr, nullptr, const_cast<char*>("meta")},
    {"is_sparse", seen_get<is_layout>, nullptr, nullptr,
     reinterpret_cast<void*>(AJ_LAYOUT_SPARSE_COO)},
    {"is_sparse_csr", seen_get<is_layout>, nullptr, nullptr,
     reinterpret_cast<void*>(AJ_LAYOUT_SPARSE_CSR)},
    {"is_quantized", seen_get<always_false>, nullptr, nullptr, nullptr},
    {"is_nested", seen_get<is_layout>, nullptr, nullptr, reinterpret_cast<void*>(AJ_LAYOUT_JAGGED)},
    {"is_mkldnn", seen_get<always_false>, nullptr, nullptr, const_cast<char*>("is_mkldnn")},
    {"names", always_none, nullptr, nullptr, nullptr},
    {"T", seen_get<get_transpose>, nullptr, "The tensor with its dimensions in reverse order.",
     nullptr},
    {"mT", seen_get<get_matrix_transpose>, nullptr,
     "The tensor with its last two dimensions exchanged.", nullptr},
    {"H", seen_get<get_matrix_adjoint>, nullptr, "The matrix transposed and conjugated.", nullptr},
    {"mH", seen_get<get_adjoint>, nullptr, "The matrices transposed and conjugated.", nullptr},
    {"real", seen_get<get_real>, seen_set<get_real, set_real>, "The real part, a view.", nullptr},
    {"imag", seen_get<get_imag>, seen_set<get_imag, set_imag>, "The imaginary part, a view.",
     nullptr},
    {},
};

PyMethodDef shape_methods[] = {
    {"size", method(seen_with_names<size>), METH_FASTCALL | METH_KEYWORDS,
     "All sizes, or that of one dimension."},
    {"stride", method(seen_with_names<stride>), METH_FASTCALL | METH_KEYWORDS,
     "All strides in elements, or that of one dimension."},
    {"dim", seen<dim>, METH_NOARGS, "The number of dimensions."},
    {"ndimension", seen<dim>, METH_NOARGS, "The number of dimensions."},
    {"numel", seen<numel>, METH_NOARGS, "The number of elements."},
    {"nelement", seen<numel>, METH_NOARGS, "The number of elements."},
    {"element_size", seen<element_size>, METH_NOARGS, "Bytes of an element."},
    {"data_ptr", seen<data_ptr>, METH_NOARGS, "The address of the first element."},
    {"is_contiguous", method(seen_with_names<is_contiguous>), METH_FASTCALL | METH_KEYWORDS,
     "Whether the elements lie in order without gaps."},
    {"storage_offset", seen<storage_offset>, METH_NOARGS,
     "Elements from the begin of the memory to the first."},
    {"get_device", seen<get_device_index>, METH_NOARGS, "The index of the device, -1 on the host."},
    {"_storage_info", storage_info, METH_NOARGS, nullptr},
    {"is_floating_point", seen<is_floating_point>, METH_NOARGS, nullptr},
    {"is_complex", seen<is_complex_method>, METH_NOARGS, nullptr},
    {"is_signed", seen<is_signed>, METH_NOARGS, nullptr},
    {},
};

}  // namespace adjoin::py
