// frontends/python/src/buffer.cpp: the buffer protocol, both ways.
#include "buffer.hpp"

#include <cstdlib>
#include <cstring>

#include "device.hpp"
#include "dtype.hpp"
#include "methods.hpp"

namespace adjoin::py {
namespace {

constexpr int kMaxDims = 64;

bool refuse(const char* what, const char* seen) {
  const char* kind = strpbrk(seen, "wsU") ? "text"
                     : strpbrk(seen, "O") ? "objects"
                     : *seen == '>'       ? "foreign byte order"
                                          : nullptr;
  if (kind) {
    PyErr_Format(PyExc_TypeError,
                 "from_numpy: an array of %s ('%s') has no dtype here: wanted bool, integers, "
                 "floats or complex in "
                 "native byte order; convert it, with .astype('float32') say",
                 kind, seen);
    return false;
  }
  PyErr_Format(PyExc_TypeError,
               "from_numpy: %s '%s': wanted bool, integers, floats or complex in native byte order",
               what, seen);
  return false;
}

// Reads shape and strides of a buffer; elements, not bytes.
bool describe(const Py_buffer& b, DLTensor& like, int64_t* shape, int64_t* strides) {
  if (!dtype_of_format(b.format ? b.format : "B", b.itemsize, &like.dtype))
    return refuse("cannot take elements of format", b.format ? b.format : "B");
  if (b.ndim > kMaxDims) return refuse("more dimensions than", "64");
  for (int i = 0; i < b.ndim; ++i) {
    shape[i] = b.shape ? b.shape[i] : b.len / b.itemsize;
    Py_ssize_t bytes = b.strides ? b.strides[i] : b.itemsize;
    if (bytes % b.itemsize != 0 || (bytes < 0 && shape[i] > 1)) {
      PyErr_Format(
          PyExc_ValueError,
          "from_numpy: stride of %zd bytes at dimension %d: negative strides and fractions of an "
          "element cannot be shared; make a copy with .copy() first",
          bytes, i);
      return false;
    }
    strides[i] = bytes < 0 ? 1 : bytes / b.itemsize;
  }
  like.data = b.buf;
  like.device = host_device();
  like.ndim = b.ndim;
  like.shape = shape;
  like.strides = strides;
  like.byte_offset = 0;
  return true;
}

uint64_t extent(const DLTensor& dl) {
  int64_t last = 0;
  for (int i = 0; i < dl.ndim; ++i) {
    if (dl.shape[i] == 0) return 0;
    last += (dl.shape[i] - 1) * dl.strides[i];
  }
  return static_cast<uint64_t>((last + 1) * item_bytes(dl.dtype));
}

void drop_buffer(void* context) {
  if (!Py_IsInitialized()) return;
  Gil gil;
  auto* b = static_cast<Py_buffer*>(context);
  PyBuffer_Release(b);
  delete b;
}

bool get_buffer(PyObject* o, Py_buffer* b) {
  if (PyObject_GetBuffer(o, b, PyBUF_FORMAT | PyBUF_STRIDES | PyBUF_WRITABLE) == 0) return true;
  forget_error();
  return PyObject_GetBuffer(o, b, PyBUF_FORMAT | PyBUF_STRIDES) == 0;
}

void copy_elements(char*& to, const char* from, const DLTensor& dl, int dim, int64_t step) {
  if (dim == dl.ndim) {
    std::memcpy(to, from, static_cast<size_t>(step));
    to += step;
    return;
  }
  for (int64_t i = 0; i < dl.shape[dim]; ++i)
    copy_elements(to, from + i * dl.strides[dim] * step, dl, dim + 1, step);
}

aj_tensor* copy_buffer(const Py_buffer& b) {
  int64_t shape[kMaxDims], strides[kMaxDims];
  DLTensor source{};
  if (!describe(b, source, shape, strides)) return nullptr;
  DLTensor like = source;
  like.strides = nullptr;
  aj_tensor* t = nullptr;
  if (failed(core->tensor_empty(&like, 0, &t))) return nullptr;
  if (PyBuffer_IsContiguous(&b, 'C')) {
    if (b.len > 0) std::memcpy(data_of(t), b.buf, static_cast<size_t>(b.len));
  } else {
    char* to = data_of(t);
    copy_elements(to, static_cast<const char*>(b.buf), source, 0, b.itemsize);
  }
  return t;
}

// What a tensor lends for the time of a buffer: the memory stays alive under the reader, also when
// the tensor is given another (resize_, set_, .data).
struct Lent {
  aj_tensor* memory;
  Py_ssize_t strides[];  // in bytes, one for each dimension
};

bool may_lend(aj_tensor* t) {
  if (!on_host(t)) {
    PyErr_SetString(PyExc_BufferError, "buffer: the tensor is not on the host; use .cpu() first");
  } else if (requires_grad(t) && autograd->grad_mode()) {
    PyErr_SetString(PyExc_BufferError, "buffer: the tensor requires grad; use .detach() first");
  } else if (!format_of_dtype(t->dl.dtype)) {
    PyErr_SetString(PyExc_BufferError,
                    "buffer: the tensor's dtype has no notation in Python's buffers");
  } else {
    return true;
  }
  return false;
}

int lend(PyObject* self, Py_buffer* b, int flags) {
  aj_tensor* t = tensor_of(self);
  b->obj = nullptr;
  if (!may_lend(t)) return -1;
  HeldTensor values(is_strided(t) && settled(t) ? nullptr : strided(t, "buffer"));
  if (values)
    t = values.get();
  else if (PyErr_Occurred())
    return -1;
  bool dense = t->obj.flags & AJ_TENSOR_DENSE;
  if (!dense && (flags & PyBUF_STRIDES) != PyBUF_STRIDES) {
    PyErr_SetString(PyExc_BufferError,
                    "buffer: the tensor is not contiguous; use .contiguous() first");
    return -1;
  }
  bool read_only = t->obj.flags & AJ_TENSOR_READ_ONLY;
  if (read_only && flags & PyBUF_WRITABLE) {
    PyErr_SetString(PyExc_BufferError, "buffer: the tensor's memory is read-only");
    return -1;
  }
  aj_tensor* memory;
  if (failed(core->tensor_view(t, &t->dl, 0, &memory))) return -1;
  const auto ndim = static_cast<size_t>(t->dl.ndim);
  auto* lent = static_cast<Lent*>(std::malloc(sizeof(Lent) + ndim * sizeof(Py_ssize_t)));
  if (!lent) {
    core->release(memory);
    PyErr_NoMemory();
    return -1;
  }
  lent->memory = memory;
  int64_t item = item_bytes(t->dl.dtype);
  for (size_t i = 0; i < ndim; ++i) lent->strides[i] = t->dl.strides[i] * item;
  core->tensor_escape(t);
  b->buf = data_of(t);
  b->obj = Py_NewRef(self);
  b->len = core->tensor_numel(t) * item;
  b->itemsize = item;
  b->readonly = read_only;
  b->ndim = t->dl.ndim;
  b->format = flags & PyBUF_FORMAT ? const_cast<char*>(format_of_dtype(t->dl.dtype)) : nullptr;
  b->shape = flags & PyBUF_ND ? memory->dl.shape : nullptr;
  b->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? lent->strides : nullptr;
  b->suboffsets = nullptr;
  b->internal = lent;
  return 0;
}

void take_back(PyObject*, Py_buffer* b) {
  auto* lent = static_cast<Lent*>(b->internal);
  core->release(lent->memory);
  std::free(lent);
}

}  // namespace

PyBufferProcs buffer_methods = {lend, take_back};

bool dtype_of_format(const char* format, Py_ssize_t itemsize, DLDataType* out) {
  char order = *format;
  if (order == '@' || order == '=' || order == '<' || order == '|') ++format;
  if ((order == '>' || order == '!') && itemsize > 1) return false;
  auto bits = static_cast<uint8_t>(itemsize * 8);
  bool complex = *format == 'Z';
  if (complex) ++format;
  if (strlen(format) != 1) return false;
  switch (*format) {
    case '?':
      *out = kBool;
      return true;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
      *out = {kDLInt, bits, 1};
      return true;
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
      *out = {kDLUInt, bits, 1};
      return true;
    case 'e':
    case 'f':
    case 'd':
      *out = {static_cast<uint8_t>(complex ? kDLComplex : kDLFloat), bits, 1};
      return true;
    default:
      return false;
  }
}

const char* format_of_dtype(DLDataType d) {
  switch (d.code) {
    case kDLBool:
      return "?";
    case kDLInt:
      return d.bits == 64 ? "q" : d.bits == 32 ? "i" : d.bits == 16 ? "h" : "b";
    case kDLUInt:
      return d.bits == 64 ? "Q" : d.bits == 32 ? "I" : d.bits == 16 ? "H" : "B";
    case kDLFloat:
      return d.bits == 64 ? "d" : d.bits == 32 ? "f" : "e";
    case kDLComplex:
      return d.bits == 128 ? "Zd" : "Zf";
    default:
      return nullptr;
  }
}

aj_tensor* view_of_memory(PyObject* o) {
  if (!PyObject_CheckBuffer(o)) return nullptr;
  auto* b = new Py_buffer;
  if (!get_buffer(o, b)) {
    delete b;
    return nullptr;
  }
  int64_t shape[kMaxDims], strides[kMaxDims];
  DLTensor like{};
  aj_tensor* t = nullptr;
  if (!describe(*b, like, shape, strides)) {
    drop_buffer(b);
    return nullptr;
  }
  uint64_t flags = b->readonly ? AJ_TENSOR_READ_ONLY : 0;
  if (failed(core->tensor_from_memory(&like, extent(like), flags, b, drop_buffer, &t)))
    return nullptr;
  return t;
}

aj_tensor* copy_of_memory(PyObject* o) {
  if (!PyObject_CheckBuffer(o)) return nullptr;
  Py_buffer b;
  if (!get_buffer(o, &b)) return nullptr;
  aj_tensor* t = copy_buffer(b);
  PyBuffer_Release(&b);
  return t;
}

}  // namespace adjoin::py
