// frontends/python/src/key.cpp: takes a key apart: numbers, slices, None and Ellipsis make one
// view, tensors are collected.
#include "convert.hpp"
#include "dtype.hpp"
#include "index.hpp"
#include "methods.hpp"
#include "op.hpp"
#include "value.hpp"

namespace adjoin::py {
namespace {

Row select_row("select"), slice_row("slice"), unsqueeze_row("unsqueeze"), strided_row("as_strided"),
    alias_row("alias"), to_bool_row("ne");
constexpr int kMaxDims = 64;

// Does somebody see each view that is made of t: a key of the tensor's or of this thread? The tape
// and autocast do not ask.
bool watched(const aj_tensor* t) {
  constexpr uint64_t kAutocastKey = uint64_t{1} << 44;
  uint64_t include, exclude;
  dispatch->thread_keys(&include, &exclude);
  return ((t->keys | include) & ~exclude & ~(kAutogradKey | kAutocastKey)) >> 24 != 0;
}

// A view that grows key by key. Where nothing is recorded it is only numbers until the end, and
// then one as_strided.
class View {
 public:
  explicit View(aj_tensor* t) : source_(t) {
    // A view asks its base, which may have been written since.
    bool history =
        t->keys & kAutogradKey || (t->obj.flags & AJ_TENSOR_VIEW && says_requires_grad(t));
    bool recording = history && autograd->grad_mode();
    plain_ = !recording && is_strided(t) && !watched(t);
    if (unlikely(plain_ && !settled(t))) {
      forget_error();  // the ops of the other way say it again
      plain_ = false;
    }
    ndim_ = t->dl.ndim;
    for (int i = 0; plain_ && i < ndim_; ++i) {
      shape_[i] = t->dl.shape[i];
      strides_[i] = t->dl.strides[i];
    }
    core->retain(t);
    now_ = HeldTensor(t);
  }

  int ndim() const { return plain_ ? ndim_ : now_->dl.ndim; }
  int64_t size(int dim) const { return plain_ ? shape_[dim] : now_->dl.shape[dim]; }

  bool select(int dim, int64_t index) {
    int64_t n = size(dim);
    if (unlikely(index < -n || index >= n)) {
      PyErr_Format(PyExc_IndexError, "index %lld is out of bounds for dimension %d with size %lld",
                   static_cast<long long>(index),
                   dim + source_->dl.ndim - ndim(),  // as the tensor counts that was indexed
                   static_cast<long long>(n));
      return false;
    }
    if (index < 0) index += n;
    if (!plain_) return take(call_row(select_row, now_.get(), dim, index));
    offset_ += index * strides_[dim];
    for (int i = dim; i + 1 < ndim_; ++i) {
      shape_[i] = shape_[i + 1];
      strides_[i] = strides_[i + 1];
    }
    --ndim_;
    changed_ = true;
    return true;
  }

  bool slice(int dim, PyObject* key) {
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(key, &start, &stop, &step) < 0) return false;
    if (step <= 0) {
      PyErr_Format(PyExc_ValueError,
                   "index: the step of a slice must be positive, not %zd; use flip()", step);
      return false;
    }
    Py_ssize_t n = PySlice_AdjustIndices(size(dim), &start, &stop, step);
    if (n == size(dim) && step == 1) return true;
    if (!plain_)
      return take(
          call_row(slice_row, now_.get(), dim, int64_t{start}, int64_t{stop}, int64_t{step}));
    offset_ += start * strides_[dim];  // also of nothing: it may get elements by resize_() and out=
    shape_[dim] = n;
    strides_[dim] *= step;
    changed_ = true;
    return true;
  }

  bool unsqueeze(int dim) {
    if (!plain_) return take(call_row(unsqueeze_row, now_.get(), dim));
    if (ndim_ == kMaxDims) {
      PyErr_SetString(PyExc_RuntimeError, "index: more than 64 dimensions");
      return false;
    }
    for (int i = ndim_; i > dim; --i) {
      shape_[i] = shape_[i - 1];
      strides_[i] = strides_[i - 1];
    }
    strides_[dim] = dim < ndim_ ? shape_[dim + 1] * strides_[dim + 1] : 1;
    shape_[dim] = 1;
    ++ndim_;
    changed_ = true;
    return true;
  }

  // alias: x[...] is another tensor even if nothing changed.
  HeldTensor finish(bool alias) {
    if (!plain_) {
      if (alias && now_.get() == source_) return HeldTensor(call_row(alias_row, source_));
      return std::move(now_);
    }
    if (!changed_ && !alias) return std::move(now_);
    if (!changed_) return HeldTensor(call_row(alias_row, source_));
    uint64_t bytes, base, id;
    void* memory;
    if (failed(core->tensor_storage(source_, &memory, &bytes, &base, &id))) return HeldTensor();
    int64_t first = static_cast<int64_t>(base) / item_bytes(source_->dl.dtype) + offset_;
    auto n = static_cast<size_t>(ndim_);
    return HeldTensor(call_row(strided_row, source_, value(shape_, n), value(strides_, n), first));
  }

 private:
  bool take(aj_tensor* next) {
    if (!next) return false;
    now_ = HeldTensor(next);
    return true;
  }

  aj_tensor* source_;
  HeldTensor now_;
  bool plain_, changed_ = false;
  int ndim_;
  int64_t offset_ = 0;
  int64_t shape_[kMaxDims], strides_[kMaxDims];
};

bool is_bool(const aj_tensor* t) { return t->dl.dtype.code == kDLBool; }
bool is_byte(const aj_tensor* t) { return same(t->dl.dtype, kUint8); }

// An array of another library's is a mask as a tensor would be: by its format.
int consumed_by_array(PyObject* item) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(item, &buffer, PyBUF_FULL_RO) != 0) {
    forget_error();
    return 1;
  }
  std::string_view format = buffer.format ? buffer.format : "";
  int n = (format == "?" || format == "B") && buffer.ndim > 0 ? buffer.ndim : 1;
  PyBuffer_Release(&buffer);
  return n;
}

// How many dimensions of the tensor an entry of the key stands for.
int consumes(PyObject* item) {
  if (item == Py_None || item == Py_Ellipsis || PyBool_Check(item)) return 0;
  if (is_tensor(item))
    return is_bool(tensor_of(item)) || is_byte(tensor_of(item)) ? tensor_of(item)->dl.ndim : 1;
  return PyObject_CheckBuffer(item) ? consumed_by_array(item) : 1;
}

bool plain_int(PyObject* item, int64_t* out) {
  if (likely(PyLong_CheckExact(item))) {
    int overflow;
    *out = PyLong_AsLongLongAndOverflow(item, &overflow);
    return overflow == 0;
  }
  if (PyBool_Check(item) || !PyIndex_Check(item)) return false;
  if (is_tensor(item)) {
    aj_tensor* t = tensor_of(item);
    if (t->dl.ndim != 0 || is_bool(t) || is_byte(t) || !is_strided(t)) return false;
  }
  if (PyObject_CheckBuffer(item) &&
      PyObject_HasAttrString(item, "ndim")) {  // an array, not a number of NumPy's
    Ref ndim(PyObject_GetAttrString(item, "ndim"));
    if (!ndim || PyLong_AsLong(ndim.get()) != 0) return false;
  }
  Ref number(PyNumber_Index(item));
  if (!number) {
    forget_error();
    return false;
  }
  *out = PyLong_AsLongLong(number.get());
  return *out != -1 || !PyErr_Occurred();
}

// A tensor, array or list in the key as an index tensor; bytes are masks, as in PyTorch.
HeldTensor index_tensor(PyObject* item, aj_tensor* like) {
  HeldTensor t;
  if (PyUnicode_Check(item)) {
    PyErr_SetString(PyExc_TypeError,
                    "index: numbers, slices, lists and tensors are indices, not str");
    return t;
  }
  if (is_tensor(item)) {
    core->retain(tensor_of(item));
    t = HeldTensor(tensor_of(item));
  } else {
    t = HeldTensor(tensor_from_data(item, nullptr, like->dl.device));
    if (t && core->tensor_numel(t.get()) == 0 && t->dl.dtype.code == kDLFloat)  // x[[]]
      t = HeldTensor(tensor_from_data(item, &kInt64, like->dl.device));
  }
  if (t && is_byte(t.get())) t = HeldTensor(call_row(to_bool_row, t.get(), 0));
  if (!t) return t;
  uint8_t code = t->dl.dtype.code;
  if (code == kDLInt || code == kDLUInt || code == kDLBool) return t;
  if (t->dl.ndim == 0 && !is_tensor(item))
    PyErr_Format(PyExc_IndexError,
                 "index: %R is a %s; ints, slices, None, ..., lists and tensors of ints or bools "
                 "are indices: use int()",
                 item, Py_TYPE(item)->tp_name);
  else if (DtypeObject* dtype = dtype_object(t->dl.dtype))
    PyErr_Format(PyExc_IndexError,
                 "index: tensors used as indices must be of an integer dtype or bool, this one is "
                 "%U; use .long()",
                 dtype->name);
  return HeldTensor();
}

// A short list that holds slices, None, ..., tensors or lists means a tuple, as in PyTorch:
// x[[rows, columns]].
bool means_tuple(PyObject* key) {
  constexpr Py_ssize_t kShort = 32;
  if (!PyList_CheckExact(key) || PyList_GET_SIZE(key) >= kShort) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(key); ++i) {
    PyObject* item = PyList_GET_ITEM(key, i);
    if (PySlice_Check(item) || item == Py_None || item == Py_Ellipsis || is_tensor(item) ||
        PySequence_Check(item))
      return true;
  }
  return false;
}

class Parser {
 public:
  Parser(aj_tensor* t, Indexed& out) : source_(t), view_(t), out_(out) {}

  bool run(PyObject* const* items, Py_ssize_t n) {
    int named = 0;
    for (Py_ssize_t i = 0; i < n; ++i) named += consumes(items[i]);
    if (named > source_->dl.ndim) {
      PyErr_Format(PyExc_IndexError, "index: too many indices: %d for a tensor of %d dimensions",
                   named, source_->dl.ndim);
      return false;
    }
    skip_ = source_->dl.ndim - named;
    for (Py_ssize_t i = 0; i < n; ++i)
      if (!apply(items[i])) return false;
    out_.view = view_.finish(!out_.advanced());
    return static_cast<bool>(out_.view);
  }

 private:
  bool apply(PyObject* item) {
    int64_t index;
    if (plain_int(item, &index)) return view_.select(dim_, index);
    if (PyErr_Occurred()) return false;
    if (PySlice_Check(item)) return view_.slice(dim_++, item);
    if (item == Py_None) return view_.unsqueeze(dim_++);
    if (item == Py_Ellipsis) {
      if (std::exchange(ellipsis_, true)) {
        PyErr_SetString(PyExc_IndexError, "index: only one ... can stand in an index");
        return false;
      }
      dim_ += skip_;
      return true;
    }
    if (PyBool_Check(item)) return view_.unsqueeze(dim_) && collect(bool_tensor(item));
    HeldTensor t = index_tensor(item, source_);
    bool truth = t && is_bool(t.get()) && t->dl.ndim == 0;  // like True and False
    if (truth && view_.unsqueeze(dim_))
      t = HeldTensor(call_row(unsqueeze_row, t.get(), int64_t(0)));
    return t && collect(std::move(t));
  }

  // A mask of k dimensions stands for k of the view's, but is one entry of the list.
  bool collect(HeldTensor t) {
    int wide = is_bool(t.get()) ? t->dl.ndim : 1;
    while (static_cast<int>(out_.tensors.size()) < dim_ - folded_) out_.tensors.emplace_back();
    for (int i = 0; i < wide && is_bool(t.get()); ++i) {
      if (t->dl.shape[i] == view_.size(dim_ + i)) continue;
      PyErr_Format(PyExc_IndexError,
                   "index: the mask's size %lld at dimension %d does not match the tensor's size "
                   "%lld at dimension %d",
                   static_cast<long long>(t->dl.shape[i]), i,
                   static_cast<long long>(view_.size(dim_ + i)), dim_ + i);
      return false;
    }
    out_.tensors.push_back(std::move(t));
    dim_ += wide;
    folded_ += wide - 1;
    return true;
  }

  HeldTensor bool_tensor(PyObject* item) {
    Ref list(PyList_New(1));
    PyList_SET_ITEM(list.get(), 0, Py_NewRef(item));
    return HeldTensor(tensor_from_data(list.get(), &kBool, source_->dl.device));
  }

  aj_tensor* source_;
  View view_;
  Indexed& out_;
  int dim_ = 0, skip_ = 0, folded_ = 0;
  bool ellipsis_ = false;
};

}  // namespace

Indexed apply_key(aj_tensor* t, PyObject* key) {
  Indexed out;
  Parser parser(t, out);
  bool tuple = PyTuple_Check(key) || means_tuple(key);
  bool good = tuple ? parser.run(PySequence_Fast_ITEMS(key), PySequence_Fast_GET_SIZE(key))
                    : parser.run(&key, 1);
  if (!good) out.view = HeldTensor();
  return out;
}

}  // namespace adjoin::py
