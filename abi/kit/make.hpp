// adjoin/kit/make.hpp: short words for bodies: tensors like another one, and indexing by views.
#ifndef ADJOIN_KIT_MAKE_HPP
#define ADJOIN_KIT_MAKE_HPP
#include <adjoin/kit/infer.hpp>
#include <adjoin/kit/ops.hpp>

namespace adjoin {
namespace AJ_HIDDEN ops {

inline Tensor filled(const Tensor& like, const Sizes& shape, const Scalar& x, DLDataType dtype) {
  return full(shape, x, dtype, like.device());
}
inline Tensor zeros_of(const Tensor& like, const Sizes& shape) {
  return zeros(shape, like.dtype(), like.device());
}

// A number of like's dtype. As an operand beside a tensor of that dtype it stays a number where
// that gives the same: nothing is made of it.
class Constant {
 public:
  Constant(const Tensor& like, const Scalar& x) : like_(like), x_(x) {}
  operator Tensor() const { return filled(like_, {}, x_, like_.dtype()); }
  operator Operand() const {
    bool integer = like_.dtype().code == kDLInt || like_.dtype().code == kDLUInt;
    if (like_.is_floating_point() ? !x_.is_complex() : integer && x_.is_integer()) return x_;
    if (like_.dtype().code == kDLBool) return x_.to_bool();
    made_ = *this;
    return made_;
  }

 private:
  Tensor like_;
  Scalar x_;
  mutable Tensor made_;  // an operand does not own it
};
inline Constant number_of(const Tensor& like, const Scalar& x) { return Constant(like, x); }

inline Tensor counting(const Tensor& like, int64_t n) {
  return arange(0, n, 1, int64, like.device());
}
inline Tensor cut(const Tensor& t, int64_t dim, int64_t start, int64_t end, int64_t step = 1) {
  return slice(t, dim, start, end, step);
}

// A real tensor is its own conjugate, without a copy.
inline Tensor conjugate(const Tensor& t) { return t.is_complex() ? conj(t) : t; }

// A primitive that the user did not call must not be named to them: its error is told as that of
// the op being served.
template <class F>
auto in_own_name(F&& f) {
  try {
    return f();
  } catch (const kit::Error& e) {
    if (e.code() == AJ_UNKNOWN || e.code() == AJ_CANCELLED) throw;  // no op's: a hook of the user's
    size_t colon = e.message().find(": ");
    throw kit::Error(e.code(), e.kind(),
                     colon == std::string::npos ? e.message() : e.message().substr(colon + 2));
  }
}

// Sizes and amounts that a schema lets stand for n equal ones.
inline Sizes n_of(Ints given, size_t n, std::string_view name) {
  if (given.size() == 1) return Sizes(n, given[0]);
  want(given.size() == n, name, " must be one number or ", n, ": ", shown(given));
  return given.vec();
}

}  // namespace ops
}  // namespace adjoin
#endif
