// adjoin/kit/view.hpp: a borrowed look at a tensor, and at the arguments of a call, for kernels
// without a plan.
#ifndef ADJOIN_KIT_VIEW_HPP
#define ADJOIN_KIT_VIEW_HPP
#include <adjoin/kit/convert.hpp>
#include <adjoin/kit/kernel.hpp>
#include <memory>
#include <span>

namespace adjoin {
namespace AJ_HIDDEN kit {

class TensorView {
 public:
  TensorView() = default;
  explicit TensorView(aj_tensor* t) : t_(t) {}

  explicit operator bool() const { return t_ != nullptr; }
  aj_tensor* get() const { return t_; }
  DLDataType dtype() const { return t_->dl.dtype; }
  DLDevice device() const { return t_->dl.device; }
  int64_t ndim() const { return t_->dl.ndim; }
  std::span<const int64_t> shape() const { return {t_->dl.shape, size_t(ndim())}; }
  std::span<const int64_t> strides() const {
    return {t_->dl.strides, size_t(ndim())};
  }  // in elements
  int64_t size(int64_t d) const { return t_->dl.shape[d < 0 ? d + ndim() : d]; }
  int64_t stride(int64_t d) const { return t_->dl.strides[d < 0 ? d + ndim() : d]; }
  int64_t numel() const {
    int64_t n = 1;
    for (int64_t s : shape()) n *= s;
    return n;
  }
  bool dense() const { return t_->obj.flags & AJ_TENSOR_DENSE; }
  const char* bytes() const { return static_cast<const char*>(t_->dl.data) + t_->dl.byte_offset; }
  template <class T>
  const T* data() const {
    return reinterpret_cast<const T*>(bytes());
  }

 protected:
  aj_tensor* t_ = nullptr;
};
inline void put(std::string& out, const TensorView& t) {
  put(out, Shape{t.shape().data(), t.ndim()});
}

// A view that may be written through.
template <class View>
class Mut : public View {
 public:
  using View::View;
  char* bytes() const { return const_cast<char*>(View::bytes()); }
  template <class T>
  T* data() const {
    return reinterpret_cast<T*>(bytes());
  }
};
using MutView = Mut<TensorView>;

using Span = std::span<const int64_t>;

// Arguments by place, in the types that the schema promises.
class Args {
 public:
  explicit Args(const aj_call* call) : call_(call) {}
  const aj_value& operator[](uint32_t i) const {
    if (i >= call_->nargs)
      raise(AJ_INTERNAL, "argument ", i, " is asked for, the call has ", call_->nargs);
    return call_->args[i];
  }
  bool none(uint32_t i) const { return (*this)[i].tag == AJ_NONE; }
  TensorView tensor(uint32_t i) const {
    if (none(i)) return TensorView();
    if ((*this)[i].tag != AJ_TENSOR) raise(AJ_WRONG_TYPE, "argument ", i, " is no tensor");
    return TensorView((*this)[i].v.tensor);
  }
  std::span<aj_tensor* const> tensors(uint32_t i) const {
    return {(*this)[i].v.tensors, (*this)[i].aux};
  }
  int64_t integer(uint32_t i) const { return number<int64_t>((*this)[i]); }
  double real(uint32_t i) const { return number<double>((*this)[i]); }
  bool flag(uint32_t i) const { return (*this)[i].v.i != 0; }
  Span ints(uint32_t i) const { return none(i) ? Span() : Span((*this)[i].v.ints, (*this)[i].aux); }
  bool bit(uint32_t i, uint32_t k) const { return k < (*this)[i].aux && (*this)[i].v.bools[k]; }
  std::string_view string(uint32_t i) const {
    return none(i) ? std::string_view() : std::string_view((*this)[i].v.str, (*this)[i].aux);
  }
  MutView result(uint32_t i) const { return MutView(call_->rets[i].v.tensor); }
  uint32_t count() const { return call_->nargs; }
  const aj_call* call() const { return call_; }

 private:
  const aj_call* call_;
};

// A kernel as a function of its arguments: exceptions become statuses.
template <auto F>
aj_status* plain_kernel(void*, aj_call* call) {
  return guard(call, [&] { F(Args(call)); });
}
template <auto F, class Set = Types<>>
inline constexpr Spec custom = {&plain_kernel<F>, Set::own_mask, 0};

// A new dense tensor.
inline aj_tensor* new_tensor(DLDevice device, DLDataType dtype, Span shape) {
  DLTensor like = {
      nullptr, device, int32_t(shape.size()), dtype, const_cast<int64_t*>(shape.data()),
      nullptr, 0};
  aj_tensor* out = nullptr;
  check(core().tensor_empty(&like, 0, &out));
  return out;
}

// A dense tensor of one dtype for kernels that want plain arrays: the view's own memory when it is
// that already, else a copy made on construction (of an input) or written back by commit() (of an
// output). The dtype is data here, so that this is compiled once.
class DenseAs {
 public:
  // read: the values are wanted, not only room for others.
  [[gnu::noinline]] DenseAs(TensorView t, const Typed& as, bool read) : view_(t), as_(as) {
    if (same(t.dtype(), as.dtype) && t.dense()) {
      bytes_ = const_cast<char*>(t.bytes());
      return;
    }
    copy_.reset(new char[size_t(std::max<int64_t>(1, t.numel())) * as.size]);
    bytes_ = copy_.get();
    if (read)
      move_rows([&](char* p, int64_t stride, char* row, int64_t n) {
        as_.load(row, p, view_.dtype(), stride, n);
      });
  }
  char* bytes() { return bytes_; }
  [[gnu::noinline]] void commit() {
    if (!copy_) return;
    move_rows([&](char* p, int64_t stride, char* row, int64_t n) {
      as_.store(p, view_.dtype(), stride, row, n);
    });
  }

 private:
  // f for every row: the last dimensions that lie one behind the other are one.
  template <class F>
  void move_rows(F f) {
    int64_t n = view_.numel(), size = bytes_of(view_.dtype()), inner = 1, step = 0, offset = 0;
    int64_t last = view_.ndim() - 1, at_dim[64] = {};
    if (last >= 0) inner = view_.size(last), step = view_.stride(last);
    for (; last > 0 && view_.stride(last - 1) == step * inner; --last)
      inner *= view_.size(last - 1);
    char* base = const_cast<char*>(view_.bytes());
    for (int64_t at = 0; at < n; at += inner) {
      f(base + offset * size, step * size, bytes_ + at * as_.size, inner);
      for (int64_t d = last - 1; d >= 0; --d) {
        offset += view_.stride(d);
        if (++at_dim[d] < view_.size(d)) break;
        offset -= view_.stride(d) * view_.size(d);
        at_dim[d] = 0;
      }
    }
  }

  TensorView view_;
  const Typed& as_;
  char* bytes_ = nullptr;
  std::unique_ptr<char[]> copy_;
};

template <class T>
class Dense : DenseAs {
 public:
  explicit Dense(TensorView t) : Dense(t, true) {}
  // keep: the old values are read too
  explicit Dense(MutView t, bool keep = false) : Dense(TensorView(t), keep) {}
  T* data() { return data_; }
  T& operator[](int64_t i) { return data_[i]; }
  using DenseAs::commit;

 private:
  Dense(TensorView t, bool read)
      : DenseAs(t, typed<T>, read), data_(reinterpret_cast<T*>(bytes())) {}
  T* data_;
};

}  // namespace kit
}  // namespace adjoin
#endif
