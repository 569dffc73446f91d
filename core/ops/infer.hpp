// core/ops/infer.hpp: what functions that declare shapes, and bodies made of ops, have in common.
#pragma once
#include <adjoin/kit/call.hpp>
#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <limits>
#include <string>
#include <vector>

namespace adjoin::ops {

// A shape, or strides; those of ordinary tensors take no memory from the heap.
struct Sizes : boost::container::small_vector<int64_t, 8> {
  using Base = boost::container::small_vector<int64_t, 8>;
  using Base::Base;
  Sizes() = default;
  Sizes(std::span<const int64_t> s) : Base(s.begin(), s.end()) {}
  Sizes(const Ints& s) : Base(s.begin(), s.end()) {}
  Sizes(const std::vector<int64_t>& s) : Base(s.begin(), s.end()) {}
  operator std::span<const int64_t>() const { return {data(), size()}; }
};

inline kit::Shape shown(std::span<const int64_t> s) { return {s.data(), int64_t(s.size())}; }
inline kit::Shape shown(const Tensor& t) { return shown(t.shape()); }
inline Sizes sizes_of(const Tensor& t) { return {t.shape().begin(), t.shape().end()}; }

// Sums and products of absurd numbers stop at the ends of int64_t: no dimension is that large, so
// they are refused like any that does not fit.
constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = -kMost - 1;
inline int64_t plus(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? (b < 0 ? kLeast : kMost) : sum;
}
inline int64_t negated(int64_t a) { return a == kLeast ? kMost : -a; }
inline int64_t times(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? ((a < 0) != (b < 0) ? kLeast : kMost) : product;
}
inline int64_t product(std::span<const int64_t> s) {
  int64_t n = 1;
  for (int64_t x : s) n = times(n, x);
  return n;
}

template <class... Part>
void want(bool good, const Part&... parts) {
  if (!good) kit::raise(AJ_INVALID_ARGUMENT, parts...);
}

// For parameters that are not of the schema's type dim: those that count from another tensor's
// dimensions.
inline int64_t wrap_dim(int64_t dim, int64_t ndim) {
  int64_t n = std::max<int64_t>(ndim, 1), d = dim < 0 ? dim + n : dim;
  if (d < 0 || d >= n)
    kit::raise(AJ_OUT_OF_RANGE, "dimension ", dim, " is out of range: it must be between ", -n,
               " and ", n - 1);
  return d;
}

// Derivatives are rows, too, and anybody may call them.
inline void want_shape(const Tensor& t, std::string_view name, std::span<const int64_t> shape) {
  want(std::ranges::equal(t.shape(), shape), name, " must have shape ", shown(shape), ", it has ",
       shown(t));
}
inline void want_dtype(const Tensor& t, std::string_view name, DLDataType dtype) {
  want(t.dtype() == dtype, name, " must be ", dtype, ", it is ", t.dtype(), "; cast it with .to()");
}
inline Bools three_needs(Bools needs) {
  want(needs.size() == 3, "needs must hold three flags, it holds ", needs.size());
  return needs;
}

inline Sizes c_strides(std::span<const int64_t> shape) {
  Sizes strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step = times(step, std::max<int64_t>(shape[i], 1));
  }
  return strides;
}

// Strides of [batch, channels, places...] whose channels are the contiguous dimension.
inline Sizes channels_last_strides(std::span<const int64_t> shape) {
  Sizes strides(shape.size());
  int64_t step = std::max<int64_t>(shape[1], 1);
  strides[1] = 1;
  for (size_t i = shape.size(); i-- > 2; step *= std::max<int64_t>(shape[i], 1)) strides[i] = step;
  strides[0] = step;
  return strides;
}

// Four or five dimensions in that order, and not in C order as well. Sizes of 1 do not fix a
// stride.
inline bool is_channels_last(const Tensor& t) {
  if (t.ndim() < 4 || t.ndim() > 5 || t.is_contiguous()) return false;
  Sizes wanted = channels_last_strides(t.shape());
  for (size_t i = 0; i < wanted.size(); ++i)
    if (t.shape()[i] != 1 && t.strides()[i] != wanted[i]) return false;
  return true;
}

// The common shape of two that broadcast; both are shown when they don't.
inline Sizes broadcast(std::span<const int64_t> a, std::span<const int64_t> b) {
  Sizes out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    want(x == y || x == 1 || y == 1, "shapes ", shown(a), " and ", shown(b),
         " do not broadcast: ", x, " and ", y, " differ");
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

// A call whose outputs are to be declared.
class AJ_HIDDEN Infer : public kit::Values {
 public:
  explicit Infer(aj_call* call) : Values(call->args), call_(call) {}
  aj_call* call() const { return call_; }
  void out(uint32_t i, DLDataType dtype, std::span<const int64_t> shape) const {
    kit::check(kit::env.op->declare(call_, i, dtype, int32_t(shape.size()), shape.data(), nullptr));
  }
  // In the order of memory of `like`: where its channels are the contiguous dimension, so are the
  // output's.
  void out_in_order(uint32_t i, DLDataType dtype, std::span<const int64_t> shape,
                    const Tensor& like) const {
    if (shape.size() != size_t(like.ndim()) || !is_channels_last(like)) return out(i, dtype, shape);
    Sizes strides = channels_last_strides(shape);
    kit::check(
        kit::env.op->declare(call_, i, dtype, int32_t(shape.size()), shape.data(), strides.data()));
  }
  void view(DLDataType dtype, const Sizes& shape, const Sizes& strides, int64_t offset = 0) const {
    item(0, 1, dtype, shape, strides, offset);
  }
  void item(uint32_t i, uint32_t count, DLDataType dtype, const Sizes& shape, const Sizes& strides,
            int64_t offset) const {
    kit::check(kit::env.op->declare_view(call_, i, count, 0, dtype, int32_t(shape.size()),
                                         shape.data(), strides.data(), offset));
  }
  void no_items() const {
    aj_object* list = nullptr;
    kit::check(kit::env.core->list_new(nullptr, 0, &list));
    call_->rets[0] = aj_value{AJ_LIST_OBJ, 0, {0}};
    call_->rets[0].v.object = list;
  }

 private:
  aj_call* call_;
};

template <class F>
aj_status* infer(aj_call* call, F&& f) {
  return kit::guard(call, [&] { f(Infer(call)); });
}

inline DLDataType real_of(DLDataType d) {
  return d.code == kDLComplex ? DLDataType{kDLFloat, uint8_t(d.bits / 2), 1} : d;
}
// What statistics of a tensor are kept in: half types in float32.
inline DLDataType statistics_dtype(DLDataType d) { return d.bits == 16 ? float32 : d; }

inline bool is_integral(const Tensor& t) {
  uint8_t code = t.dtype().code;
  return code == kDLInt || code == kDLUInt || code == kDLBool;
}

}  // namespace adjoin::ops
