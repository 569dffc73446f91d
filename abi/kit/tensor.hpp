// adjoin/kit/tensor.hpp: Tensor, one pointer that counts, and the numbers that may stand in its
// place.
//
// The same class serves libadjoin, plugins and frontends: everything goes through the tables of
// kit::env. No function is virtual and no type information crosses a library. An undefined Tensor
// is None.
#ifndef ADJOIN_KIT_TENSOR_HPP
#define ADJOIN_KIT_TENSOR_HPP
#include <adjoin/kit/error.hpp>
#include <complex>
#include <concepts>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace AJ_HIDDEN adjoin {

inline constexpr DLDataType boolean{kDLBool, 8, 1}, uint8{kDLUInt, 8, 1}, uint16{kDLUInt, 16, 1},
    uint32{kDLUInt, 32, 1}, uint64{kDLUInt, 64, 1}, int8{kDLInt, 8, 1}, int16{kDLInt, 16, 1},
    int32{kDLInt, 32, 1}, int64{kDLInt, 64, 1}, float16{kDLFloat, 16, 1},
    bfloat16{kDLBfloat, 16, 1}, float32{kDLFloat, 32, 1}, float64{kDLFloat, 64, 1},
    complex64{kDLComplex, 64, 1}, complex128{kDLComplex, 128, 1};

inline bool operator==(DLDataType a, DLDataType b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}
inline bool operator==(DLDevice a, DLDevice b) {
  return a.device_type == b.device_type && a.device_id == b.device_id;
}

enum class MemoryFormat : int32_t {
  contiguous = 0,
  preserve = 1,
  channels_last = 2,
  channels_last_3d = 3
};
enum class Layout : int32_t {
  strided = 0,
  sparse_coo = 1,
  sparse_csr = 2,
  opaque = 3,
  sparse_csc = 4,
  sparse_bsr = 5,
  sparse_bsc = 6,
  jagged = 7
};

template <class T>
concept Number = (std::integral<T> || std::floating_point<T>)&&!std::same_as<T, bool>;

// A number, or None. It stays a number on its way into an op, so it promotes weakly.
class Scalar {
 public:
  Scalar() = default;
  Scalar(bool b) : tag_(AJ_BOOL), i_(b) {}
  Scalar(std::complex<double> z) : tag_(AJ_COMPLEX), z_{z.real(), z.imag()} {}
  template <Number T>
  Scalar(T x) {
    if constexpr (std::integral<T>) {
      tag_ = AJ_INT, i_ = int64_t(x);
    } else {
      tag_ = AJ_FLOAT, z_[0] = double(x);
    }
  }
  // Copies: the value may point to memory of the caller's.
  static Scalar of(const aj_value& v) {
    switch (v.tag) {
      case AJ_NONE:
        return {};
      case AJ_BOOL:
        return v.v.i != 0;
      case AJ_INT:
        return v.v.i;
      case AJ_FLOAT:
        return v.v.f;
      case AJ_COMPLEX:
        return std::complex<double>(v.v.c128[0], v.v.c128[1]);
      case AJ_COMPLEX_OBJ: {
        double re, im;
        kit::check(kit::env.core->complex_get(v.v.object, &re, &im));
        return std::complex<double>(re, im);
      }
      default:
        kit::raise(AJ_WRONG_TYPE, "a number is wanted, the value has tag ", v.tag);
    }
  }

  bool is_none() const { return tag_ == AJ_NONE; }
  bool is_bool() const { return tag_ == AJ_BOOL; }
  bool is_integer() const { return tag_ == AJ_BOOL || tag_ == AJ_INT; }
  bool is_floating() const { return tag_ == AJ_FLOAT; }
  bool is_complex() const { return tag_ == AJ_COMPLEX; }
  int64_t to_int() const { return is_integer() ? i_ : int64_t(z_[0]); }
  double to_double() const { return is_integer() ? double(i_) : z_[0]; }
  std::complex<double> to_complex() const { return {to_double(), z_[1]}; }
  bool to_bool() const { return is_integer() ? i_ != 0 : z_[0] != 0 || z_[1] != 0; }
  aj_value value() const {
    aj_value v{tag_, 0, {i_}};
    if (tag_ == AJ_FLOAT) v.v.f = z_[0];
    if (tag_ == AJ_COMPLEX) v.v.c128 = z_;
    return v;
  }

 private:
  int32_t tag_ = AJ_NONE;
  int64_t i_ = 0;
  double z_[2] = {0, 0};
};

inline Scalar conj(const Scalar& s) {
  return s.is_complex() ? Scalar(std::conj(s.to_complex())) : s;
}

// The common kind of two numbers decides in what F computes.
template <class F>
Scalar combine(const Scalar& a, const Scalar& b, F f) {
  if (a.is_complex() || b.is_complex()) return f(a.to_complex(), b.to_complex());
  if (a.is_floating() || b.is_floating()) return f(a.to_double(), b.to_double());
  // Wraps, as tensors of integers do.
  return int64_t(f(uint64_t(a.to_int()), uint64_t(b.to_int())));
}
inline Scalar operator+(const Scalar& a, const Scalar& b) {
  return combine(a, b, [](auto x, auto y) { return x + y; });
}
inline Scalar operator-(const Scalar& a, const Scalar& b) {
  return combine(a, b, [](auto x, auto y) { return x - y; });
}
inline Scalar operator*(const Scalar& a, const Scalar& b) {
  return combine(a, b, [](auto x, auto y) { return x * y; });
}
inline Scalar operator/(const Scalar& a, const Scalar& b) {
  if (a.is_complex() || b.is_complex()) return a.to_complex() / b.to_complex();
  return a.to_double() / b.to_double();
}
inline bool operator==(const Scalar& a, const Scalar& b) {
  if (a.is_none() || b.is_none()) return a.is_none() && b.is_none();
  return a.is_integer() && b.is_integer() ? a.to_int() == b.to_int()
                                          : a.to_complex() == b.to_complex();
}
inline Scalar operator-(const Scalar& a) { return Scalar(int64_t(0)) - a; }

class Tensor {
 public:
  Tensor() = default;
  Tensor(const Tensor& other) : t_(other.t_) {
    if (t_) kit::env.core->retain(t_);
  }
  Tensor(Tensor&& other) noexcept : t_(std::exchange(other.t_, nullptr)) {}
  Tensor& operator=(Tensor other) noexcept {
    std::swap(t_, other.t_);
    return *this;
  }
  ~Tensor() {
    if (t_) kit::env.core->release(t_);
  }

  static Tensor steal(aj_tensor* owned) {
    Tensor t;
    t.t_ = owned;
    return t;
  }
  static Tensor borrow(aj_tensor* t) {
    if (t) kit::env.core->retain(t);
    return steal(t);
  }
  // The pointer itself seen as a Tensor: nothing is counted, and it is good for as long as the
  // pointer stands.
  static const Tensor& view(aj_tensor* const& t) { return reinterpret_cast<const Tensor&>(t); }

  aj_tensor* get() const { return t_; }
  aj_tensor* take() { return std::exchange(t_, nullptr); }
  bool defined() const { return t_ != nullptr; }

  const DLTensor& dl() const { return t_->dl; }
  int64_t ndim() const { return t_->dl.ndim; }
  int64_t dim() const { return ndim(); }
  std::span<const int64_t> shape() const { return {t_->dl.shape, size_t(t_->dl.ndim)}; }
  std::span<const int64_t> sizes() const { return shape(); }
  std::span<const int64_t> strides() const { return {steps(), size_t(t_->dl.ndim)}; }
  int64_t size(int64_t dim) const { return t_->dl.shape[wrap(dim)]; }
  int64_t stride(int64_t dim) const { return steps()[wrap(dim)]; }
  int64_t numel() const { return kit::env.core->tensor_numel(t_); }
  DLDataType dtype() const { return t_->dl.dtype; }
  DLDevice device() const { return t_->dl.device; }
  bool is_complex() const { return t_->dl.dtype.code == kDLComplex; }
  bool is_floating_point() const {
    return t_->dl.dtype.code == kDLFloat || t_->dl.dtype.code == kDLBfloat;
  }
  bool is_contiguous() const {
    return has_memory() ? settled()->obj.flags & AJ_TENSOR_DENSE : in_c_order();
  }
  // Missing: a tensor without strides (abi/wrap.h), whose values come from ops alone.
  bool has_memory() const { return t_->obj.flags & AJ_TENSOR_STRIDED; }
  bool is_leaf() const { return !requires_grad() || (t_->obj.flags & AJ_TENSOR_LEAF); }
  // For good: the core cannot see what is written through it.
  void* data_ptr() const {
    const DLTensor& dl = settled()->dl;
    if (AJ_HAS_FN(kit::env.core, aj_core, tensor_escape)) kit::env.core->tensor_escape(t_);
    return static_cast<char*>(dl.data) + dl.byte_offset;
  }
  template <class T>
  T* data() const {
    if (int64_t(sizeof(T)) * 8 != t_->dl.dtype.bits)
      kit::raise(AJ_WRONG_TYPE, "data: the tensor is ", dtype(), ", elements of ", sizeof(T),
                 " bytes are asked for");
    return static_cast<T*>(data_ptr());
  }
  template <class T>
  T* data_ptr() const {
    return data<T>();
  }
  template <class T>
  T item() const {
    Scalar s = number();
    if constexpr (std::same_as<T, bool>)
      return s.to_bool();
    else if constexpr (std::integral<T>)
      return T(s.to_int());
    else if constexpr (std::floating_point<T>)
      return T(s.to_double());
    else
      return T(s.to_complex());
  }
  Scalar number() const;  // the one element

  bool requires_grad() const { return t_->obj.flags & AJ_TENSOR_REQUIRES_GRAD; }
  const Tensor& requires_grad_(bool on = true) const {
    kit::check(kit::env.autograd->set_requires_grad(t_, on));
    return *this;
  }
  Tensor grad() const { return out(kit::env.autograd->grad); }
  void set_grad(const Tensor& g) const { kit::check(kit::env.autograd->set_grad(t_, g.t_)); }
  Tensor detach() const { return out(kit::env.autograd->detach); }
  void backward() const { backward(Tensor()); }
  void backward(const Tensor& grad, bool retain_graph = false, bool create_graph = false) const {
    aj_backward run{};
    run.struct_size = sizeof run;
    run.flags = retain_graph * uint32_t(AJ_BACKWARD_RETAIN_GRAPH) |
                create_graph * uint32_t(AJ_BACKWARD_CREATE_GRAPH);
    run.roots = &t_;
    run.grads = &grad.t_;
    run.nroots = 1;
    kit::check(kit::env.autograd->backward(&run));
  }

 private:
  // In memory, and in an order that may be shown.
  aj_tensor* settled() const {
    constexpr uint32_t kShown = AJ_TENSOR_STRIDED | AJ_TENSOR_FREE_ORDER;
    if ((t_->obj.flags & kShown) != AJ_TENSOR_STRIDED) kit::check(kit::env.core->tensor_settle(t_));
    return t_;
  }
  // Those that a tensor without memory will have, where that is known.
  const int64_t* steps() const {
    bool known = t_->dl.strides || t_->dl.ndim == 0;
    return !has_memory() && known ? t_->dl.strides : settled()->dl.strides;
  }
  bool in_c_order() const {
    const int64_t* step = steps();
    int64_t expected = 1;
    for (int64_t i = ndim(); i-- > 0; expected *= t_->dl.shape[i])
      if (t_->dl.shape[i] != 1 && step[i] != expected) return numel() == 0;
    return true;
  }
  int64_t wrap(int64_t dim) const {
    int64_t d = dim < 0 ? dim + ndim() : dim;
    if (d < 0 || d >= ndim())
      kit::raise(AJ_OUT_OF_RANGE, "dimension ", dim, " is out of range for ", ndim(),
                 " dimensions");
    return d;
  }
  Tensor out(aj_status* (*f)(aj_tensor*, aj_tensor**)) const {
    aj_tensor* t = nullptr;
    kit::check(f(t_, &t));
    return steal(t);
  }

  aj_tensor* t_ = nullptr;
};
static_assert(sizeof(Tensor) == sizeof(aj_tensor*));

// A tensor or a number, as an argument: it borrows the tensor.
class Operand {
 public:
  Operand() = default;
  Operand(const Tensor& t) : t_(t.get()) {}
  Operand(const Scalar& s) : number_(s) {}
  Operand(bool b) : number_(b) {}
  Operand(std::complex<double> z) : number_(z) {}
  template <Number T>
  Operand(T x) : number_(x) {}
  static Operand of(const aj_value& v) {
    if (v.tag == AJ_TENSOR) return Operand(Tensor::view(v.v.tensor));
    return Operand(Scalar::of(v));
  }

  bool is_tensor() const { return t_; }
  bool is_none() const { return !t_ && number_.is_none(); }
  const Tensor& tensor() const { return Tensor::view(t_); }
  const Scalar& number() const { return number_; }
  std::span<const int64_t> shape() const {
    return t_ ? tensor().shape() : std::span<const int64_t>();
  }
  aj_value value() const {
    if (!t_) return number_.value();
    aj_value v{AJ_TENSOR, 0, {0}};
    v.v.tensor = t_;
    return v;
  }

 private:
  aj_tensor* t_ = nullptr;
  Scalar number_;
};

// The state of a random generator; undefined is the default one of the device.
class Generator {
 public:
  Generator() = default;
  explicit Generator(DLDevice device) { kit::check(kit::env.core->generator_new(device, &g_)); }
  Generator(const Generator& other) : g_(other.g_) { kit::env.core->retain(g_); }
  Generator& operator=(Generator other) noexcept {
    std::swap(g_, other.g_);
    return *this;
  }
  ~Generator() {
    if (g_) kit::env.core->release(g_);
  }
  static Generator steal(aj_object* owned) {
    Generator g;
    g.g_ = owned;
    return g;
  }
  static const Generator& view(aj_object* const& g) {
    return reinterpret_cast<const Generator&>(g);
  }
  aj_object* get() const { return g_; }
  void manual_seed(uint64_t seed) const { kit::check(kit::env.core->generator_set(g_, seed, 0)); }

 private:
  aj_object* g_ = nullptr;
};

// Recording off for a scope.
class NoGradGuard {
 public:
  NoGradGuard() : before_(kit::env.autograd->set_grad_mode(0)) {}
  NoGradGuard(const NoGradGuard&) = delete;
  NoGradGuard& operator=(const NoGradGuard&) = delete;
  ~NoGradGuard() { kit::env.autograd->set_grad_mode(before_); }

 private:
  int32_t before_;
};

// "cuda:1" or "cpu"; a device's plugin is loaded when it is first named.
inline DLDevice device(std::string_view text) {
  size_t colon = text.find(':');
  int32_t type = 0;
  kit::check(kit::env.core->device_find(kit::str(text.substr(0, colon)), &type));
  DLDevice d{DLDeviceType(type), 0};
  if (colon != std::string_view::npos) {
    std::string_view digits = text.substr(colon + 1);
    auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), d.device_id);
    if (wrong != std::errc() || end != digits.data() + digits.size() || d.device_id < 0)
      kit::raise(AJ_INVALID_ARGUMENT, "device: '", text, "' is not NAME or NAME:NUMBER");
  }
  return d;
}

}  // namespace adjoin
#endif
