// adjoin/kit/infer.hpp: what functions that declare shapes, and bodies made of ops, have in common.
#ifndef ADJOIN_KIT_INFER_HPP
#define ADJOIN_KIT_INFER_HPP
#include <adjoin/kit/call.hpp>
#include <adjoin/kit/sizes.hpp>
#include <algorithm>
#include <string>

namespace adjoin {
namespace AJ_HIDDEN ops {

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
  void view(DLDataType dtype, std::span<const int64_t> shape, std::span<const int64_t> strides,
            int64_t offset = 0) const {
    item(0, 1, dtype, shape, strides, offset);
  }
  void item(uint32_t i, uint32_t count, DLDataType dtype, std::span<const int64_t> shape,
            std::span<const int64_t> strides, int64_t offset) const {
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

}  // namespace ops
}  // namespace adjoin
#endif
