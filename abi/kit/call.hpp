// adjoin/kit/call.hpp: calling ops from C++, and reading a call from inside an op that is made of
// other ops.
//
// A call is an array of aj_value on the stack and an op looked up once. What fails throws
// kit::Error; kit::compose catches what a body throws, so nothing unwinds across the contract.
#ifndef ADJOIN_KIT_CALL_HPP
#define ADJOIN_KIT_CALL_HPP
#include <adjoin/kit/tensor.hpp>
#include <algorithm>
#include <atomic>
#include <string>
#include <tuple>

namespace AJ_HIDDEN adjoin {

// Borrowed lists: arguments only. A single int stands for a list of one.
class Ints {
 public:
  Ints() = default;  // None
  Ints(std::nullopt_t) {}
  Ints(const int64_t* data, size_t n) : data_(data ? data : &kEmpty), n_(n) {}
  Ints(std::span<const int64_t> s) : Ints(s.data(), s.size()) {}
  template <class V>  // a vector of any library
  requires requires(const V& v) {
    { v.data() } -> std::same_as<const int64_t*>;
  }
  Ints(const V& v) : Ints(v.data(), v.size()) {}
  Ints(std::initializer_list<int64_t> l) : Ints(l.begin(), l.size()) {}
  template <Number T>
  requires std::integral<T> Ints(T x) : n_(1), one_(int64_t(x)), single_(true) {}

  bool is_none() const { return !data_ && !single_; }
  const int64_t* data() const { return single_ ? &one_ : data_; }
  size_t size() const { return n_; }
  bool empty() const { return n_ == 0; }
  int64_t operator[](size_t i) const { return data()[i]; }
  const int64_t* begin() const { return data(); }
  const int64_t* end() const { return data() + n_; }
  std::vector<int64_t> vec() const { return {begin(), end()}; }
  operator std::span<const int64_t>() const { return {data(), n_}; }

 private:
  static constexpr int64_t kEmpty = 0;  // where an empty list points: NULL is None
  const int64_t* data_ = nullptr;
  size_t n_ = 0;
  int64_t one_ = 0;
  bool single_ = false;
};

template <class T, int32_t Tag>
class List {
 public:
  List() = default;  // None
  List(const T* data, size_t n) : data_(data), n_(n), given_(true) {}
  List(std::span<const T> s) : List(s.data(), s.size()) {}
  List(std::initializer_list<T> l) : List(l.begin(), l.size()) {}
  bool is_none() const { return !given_; }
  const T* data() const { return data_; }
  size_t size() const { return n_; }
  const T& operator[](size_t i) const { return data_[i]; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + n_; }
  aj_value value() const {
    aj_value v{given_ ? Tag : AJ_NONE, uint32_t(n_), {0}};
    v.v.ptr = data_;
    return v;
  }

 private:
  const T* data_ = nullptr;
  size_t n_ = 0;
  bool given_ = false;
};
using Bools = List<bool, AJ_BOOLS>;
using Floats = List<double, AJ_FLOATS>;
class Tensors : public List<Tensor, AJ_TENSORS> {
 public:
  using List::List;
  Tensors(const std::vector<Tensor>& v) : List(v.data(), v.size()) {}
};

namespace kit {

inline aj_value value(const Tensor& t) { return Operand(t).value(); }
inline aj_value value(const Operand& x) { return x.value(); }
inline aj_value value(const Scalar& s) { return s.value(); }
inline aj_value value(bool b) { return {AJ_BOOL, 0, {b}}; }
inline aj_value value(int64_t i) { return {AJ_INT, 0, {i}}; }
inline aj_value value(int i) { return value(int64_t(i)); }
inline aj_value value(double f) {
  aj_value v{AJ_FLOAT, 0, {0}};
  v.v.f = f;
  return v;
}
inline aj_value value(std::string_view s) {
  aj_value v{AJ_STRING, uint32_t(s.size()), {0}};
  v.v.str = s.data();
  return v;
}
inline aj_value value(const char* s) { return value(std::string_view(s)); }
inline aj_value value(DLDataType d) {
  aj_value v{AJ_DTYPE, 0, {0}};
  v.v.dtype = d;
  return v;
}
inline aj_value value(DLDevice d) {
  aj_value v{AJ_DEVICE, 0, {0}};
  v.v.device = d;
  return v;
}
inline aj_value value(MemoryFormat f) { return {AJ_MEMORY_FORMAT, 0, {int64_t(f)}}; }
inline aj_value value(Layout l) { return {AJ_LAYOUT, 0, {int64_t(l)}}; }
inline aj_value value(const Generator& g) {
  aj_value v{g.get() ? AJ_GENERATOR : AJ_NONE, 0, {0}};
  v.v.object = g.get();
  return v;
}
inline aj_value value(const Ints& x) {
  aj_value v{x.is_none() ? AJ_NONE : AJ_INTS, uint32_t(x.size()), {0}};
  v.v.ints = x.data();
  return v;
}
inline aj_value value(const std::vector<int64_t>& x) { return value(Ints(x)); }
template <class T, int32_t Tag>
aj_value value(const List<T, Tag>& x) {
  return x.value();
}
template <class T>
aj_value value(const std::optional<T>& x) {
  return x ? value(*x) : aj_value{AJ_NONE, 0, {0}};
}

// An op by name, looked up at its first use.
class Op {
 public:
  explicit constexpr Op(std::string_view name) : name_(name) {}
  const aj_op* get() {
    const aj_op* op = op_.load(std::memory_order_relaxed);
    return op ? op : find();
  }

 private:
  [[gnu::cold, gnu::noinline]] const aj_op* find() {
    const aj_op* op = env.op->find_op(str(name_));
    if (!op) raise(AJ_NOT_FOUND, "no op named '", name_, "' in libadjoin or a loaded plugin");
    op_.store(op, std::memory_order_relaxed);
    return op;
  }
  std::string_view name_;
  std::atomic<const aj_op*> op_{nullptr};
};

inline void drop(aj_value& v) {
  if (v.tag >= AJ_TENSOR) env.core->release(const_cast<void*>(v.v.ptr));
  v.tag = AJ_NONE;
}

template <class R>
R take(aj_value& v) {
  if constexpr (std::same_as<R, Tensor>) {
    return Tensor::steal(v.tag == AJ_TENSOR ? std::exchange(v, aj_value{}).v.tensor : nullptr);
  } else if constexpr (std::same_as<R, std::vector<Tensor>>) {
    uint32_t n = 0;
    const aj_value* items = env.core->list_get(v.v.object, &n);
    R list;
    for (uint32_t i = 0; i < n; ++i)
      list.push_back(Tensor::borrow(items[i].tag == AJ_TENSOR ? items[i].v.tensor : nullptr));
    drop(v);
    return list;
  } else if constexpr (std::same_as<R, std::string>) {
    std::string text(view_of(env.core->string_get(v.v.object)));
    drop(v);
    return text;
  } else if constexpr (std::same_as<R, DLDataType>) {
    return v.v.dtype;
  } else {
    Scalar s = Scalar::of(v);
    drop(v);
    if constexpr (std::same_as<R, Scalar>)
      return s;
    else if constexpr (std::same_as<R, bool>)
      return s.to_bool();
    else if constexpr (std::same_as<R, int64_t>)
      return s.to_int();
    else
      return s.to_double();
  }
}

inline Tensor run(const aj_op* op, const aj_value* args, uint32_t n, Here here = {}) {
  aj_value ret{};
  check(env.op->call(op, args, n, &ret, 1), here);
  return take<Tensor>(ret);
}
template <class R>
R run_as(const aj_op* op, const aj_value* args, uint32_t n, Here here = {}) {
  aj_value ret{};
  check(env.op->call(op, args, n, &ret, 1), here);
  return take<R>(ret);
}
template <class... R>
std::tuple<R...> run_many(const aj_op* op, const aj_value* args, uint32_t n, Here here = {}) {
  aj_value rets[sizeof...(R)] = {};
  check(env.op->call(op, args, n, rets, sizeof...(R)), here);
  return [&]<size_t... I>(std::index_sequence<I...>) {
    return std::tuple<R...>(take<R>(rets[I])...);
  }
  (std::index_sequence_for<R...>{});
}
inline void run_void(const aj_op* op, const aj_value* args, uint32_t n, Here here = {}) {
  check(env.op->call(op, args, n, nullptr, 0), here);
}
// out=: the result is written into `to`. In place when `to` is the first argument.
inline const Tensor& run_into(const aj_op* op, const aj_value* args, uint32_t n, const Tensor& to,
                              Here here = {}) {
  aj_value ret = value(to);
  check(env.op->call(op, args, n, &ret, 1), here);
  drop(ret);
  return to;
}

// The arguments of a call as C++ sees them; borrowed.
class Values {
 public:
  explicit Values(const aj_value* v) : v_(v) {}
  bool given(uint32_t i) const { return v_[i].tag != AJ_NONE; }
  const aj_value& raw(uint32_t i) const { return v_[i]; }
  const Tensor& tensor(uint32_t i) const {
    static aj_tensor* const none = nullptr;
    return Tensor::view(v_[i].tag == AJ_TENSOR ? v_[i].v.tensor : none);
  }
  Operand operand(uint32_t i) const { return Operand::of(v_[i]); }
  Scalar scalar(uint32_t i) const { return Scalar::of(v_[i]); }
  int64_t integer(uint32_t i) const { return scalar(i).to_int(); }
  double real(uint32_t i) const { return scalar(i).to_double(); }
  bool flag(uint32_t i) const { return v_[i].v.i != 0; }
  std::string_view text(uint32_t i) const {
    if (v_[i].tag == AJ_STRING_OBJ) return view_of(env.core->string_get(v_[i].v.object));
    return {v_[i].v.str, v_[i].aux};
  }
  DLDataType dtype(uint32_t i) const { return v_[i].v.dtype; }
  DLDevice device(uint32_t i) const { return v_[i].v.device; }
  MemoryFormat format(uint32_t i) const { return MemoryFormat(v_[i].v.i); }
  Layout layout(uint32_t i) const { return Layout(v_[i].v.i); }
  Ints ints(uint32_t i) const {
    if (v_[i].tag == AJ_NONE) return {};
    if (v_[i].tag == AJ_INT) return Ints(v_[i].v.i);
    return Ints(v_[i].v.ints, v_[i].aux);
  }
  Bools bools(uint32_t i) const {
    return Bools(reinterpret_cast<const bool*>(v_[i].v.bools), v_[i].aux);
  }
  Floats floats(uint32_t i) const { return Floats(v_[i].v.floats, v_[i].aux); }
  Tensors tensors(uint32_t i) const {
    if (v_[i].tag == AJ_NONE) return {};
    return Tensors(reinterpret_cast<const Tensor*>(v_[i].v.tensors), v_[i].aux);
  }
  const Generator& generator(uint32_t i) const {
    static aj_object* const none = nullptr;
    return Generator::view(v_[i].tag == AJ_GENERATOR ? v_[i].v.object : none);
  }
  template <class T>
  std::optional<T> maybe(uint32_t i) const {
    if (v_[i].tag == AJ_NONE) return std::nullopt;
    if constexpr (std::same_as<T, int64_t>)
      return integer(i);
    else if constexpr (std::same_as<T, double>)
      return real(i);
    else if constexpr (std::same_as<T, bool>)
      return flag(i);
    else if constexpr (std::same_as<T, DLDataType>)
      return dtype(i);
    else if constexpr (std::same_as<T, DLDevice>)
      return device(i);
    else if constexpr (std::same_as<T, MemoryFormat>)
      return format(i);
    else if constexpr (std::same_as<T, Layout>)
      return layout(i);
    else
      return text(i);
  }

 private:
  const aj_value* v_;
};

// A composite's call. A result that the caller gave (out=) is written into.
class Body : public Values {
 public:
  explicit Body(aj_call* call) : Values(call->args), call_(call) {}
  aj_call* call() const { return call_; }
  void ret(uint32_t i, const Tensor& t) const {
    aj_value& slot = call_->rets[i];
    if (slot.tag == AJ_TENSOR && slot.v.tensor) {
      if (slot.v.tensor != t.get()) copy_into(Tensor::view(slot.v.tensor), t);
      return;
    }
    slot = value(t);
    if (t.defined()) env.core->retain(t.get());
  }
  void ret(uint32_t i, const Scalar& s) const {
    aj_value& slot = call_->rets[i];
    slot = s.value();
    if (!s.is_complex()) return;
    slot = {AJ_COMPLEX_OBJ, 0, {0}};
    check(env.core->complex_new(s.to_complex().real(), s.to_complex().imag(), &slot.v.object));
  }
  void ret(uint32_t i, const std::vector<Tensor>& list) const {
    std::vector<aj_value> items;
    for (const Tensor& t : list) items.push_back(value(t));
    aj_object* o = nullptr;
    check(env.core->list_new(items.data(), uint32_t(items.size()), &o));
    call_->rets[i] = {AJ_LIST_OBJ, 0, {0}};
    call_->rets[i].v.object = o;
  }
  template <class... R>
  void ret_all(const std::tuple<R...>& results) const {
    std::apply(
        [&](const R&... r) {
          uint32_t i = 0;
          (ret(i++, r), ...);
        },
        results);
  }

 private:
  static void copy_into(const Tensor& to, const Tensor& from) {
    static constinit Op op("copy_");
    const aj_value args[] = {value(to), value(from), value(false)};
    run_into(op.get(), args, 3, to);
  }
  aj_call* call_;
};

template <class F>
aj_status* compose(aj_call* call, F&& f) {
  return guard(call, [&] {
    Body body(call);
    f(body);
  });
}
template <void (*F)(Body&)>
aj_status* body(void*, aj_call* call) {
  return compose(call, F);
}

template <class R>
struct Taken {
  static R from(std::span<aj_value> rets) {
    if (rets.empty()) raise(AJ_WRONG_TYPE, "the op has no result; take none with call<void>");
    return take<R>(rets[0]);
  }
};
template <>
struct Taken<void> {
  static void from(std::span<aj_value>) {}
};
template <class... R>
struct Taken<std::tuple<R...>> {
  static std::tuple<R...> from(std::span<aj_value> rets) {
    if (rets.size() < sizeof...(R))
      raise(AJ_WRONG_TYPE, "the op has ", uint64_t(rets.size()), " results, ",
            uint64_t(sizeof...(R)), " are taken");
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return std::tuple<R...>(take<R>(rets[I])...);
    }
    (std::index_sequence_for<R...>{});
  }
};

// How many results an op has: asked once. A word holds an op's address, in units of 16 bytes, and
// below it the count; ops live as long as the process, and a race only asks again.
inline uint32_t result_count(const aj_op* op) {
  constexpr uint64_t kCounts = 1 << 11;
  static constinit std::atomic<uint64_t> known[64] = {};
  const auto address = reinterpret_cast<uintptr_t>(op);
  const bool fits = !(address & 15) && !(uint64_t(address) >> 57);
  const uint64_t mark = uint64_t(address >> 4) * kCounts;
  std::atomic<uint64_t>& slot = known[(address >> 6 ^ address >> 12) & 63];
  const uint64_t word = slot.load(std::memory_order_relaxed);
  if (fits && word - mark < kCounts) return uint32_t(word - mark);
  aj_op_info info{};
  info.struct_size = sizeof info;
  check(env.op->op_info(op, &info));
  if (fits && info.nresults < kCounts) slot.store(mark | info.nresults, std::memory_order_relaxed);
  return info.nresults;
}

// However many results the op has: what R names of them, the first ones.
template <class R>
R take_first(const aj_op* op, const aj_value* args, uint32_t n) {
  struct Rets {
    aj_value few[4] = {};
    std::vector<aj_value> many;
    std::span<aj_value> all;
    explicit Rets(uint32_t count) : all(few, std::min<size_t>(count, 4)) {
      if (count <= 4) return;
      many.resize(count);
      all = many;
    }
    Rets(const Rets&) = delete;
    ~Rets() {
      for (aj_value& v : all) drop(v);
    }
  } rets(result_count(op));
  check(env.op->call(op, args, n, rets.all.data(), uint32_t(rets.all.size())));
  return Taken<R>::from(rets.all);
}

}  // namespace kit

// Any op by name, a plugin's too: Tensor y = call("acme::scale", x, 2.0). Of several results the
// first; call<std::tuple<Tensor, Tensor>> takes two, call<void> none. What is not taken is dropped.
template <class R = Tensor, class... Arg>
R call(std::string_view name, const Arg&... arg) {
  const aj_op* op = kit::env.op->find_op(kit::str(name));
  if (!op) kit::raise(AJ_NOT_FOUND, "no op named '", name, "' in libadjoin or a loaded plugin");
  const aj_value args[sizeof...(Arg) + 1] = {kit::value(arg)..., aj_value{}};
  return kit::take_first<R>(op, args, sizeof...(Arg));
}

inline Scalar Tensor::number() const {
  static constinit kit::Op op("item");
  const aj_value arg = kit::value(*this);
  return kit::run_as<Scalar>(op.get(), &arg, 1);
}

namespace kit {
#ifdef ADJOIN_CALL_SITES
// An operand of an operator, which has no place for a default argument: the conversion knows the
// line.
struct SitedOperand {
  template <class T>
  requires std::constructible_from<Operand, const T&> SitedOperand(const T& x,
                                                                   Here where = Here::current())
      : operand(x), here(where) {}
  aj_value value() const { return operand.value(); }
  Operand operand;
  Here here;
};
using Side = SitedOperand;
inline Here site_of(const SitedOperand& s) { return s.here; }
#else
using Side = Operand;
inline Nowhere site_of(const Operand&) { return {}; }
#endif
}  // namespace kit

inline Tensor operator+(const kit::Side& a, const kit::Side& b) {
  static constinit kit::Op op("add");
  const aj_value args[] = {a.value(), b.value(), kit::value(1)};
  return kit::run(op.get(), args, 3, kit::site_of(a));
}
inline Tensor operator-(const kit::Side& a, const kit::Side& b) {
  static constinit kit::Op op("sub");
  const aj_value args[] = {a.value(), b.value(), kit::value(1)};
  return kit::run(op.get(), args, 3, kit::site_of(a));
}
inline Tensor operator*(const kit::Side& a, const kit::Side& b) {
  static constinit kit::Op op("mul");
  const aj_value args[] = {a.value(), b.value()};
  return kit::run(op.get(), args, 2, kit::site_of(a));
}
inline Tensor operator/(const kit::Side& a, const kit::Side& b) {
  static constinit kit::Op op("div");
  const aj_value args[] = {a.value(), b.value(), aj_value{}};
  return kit::run(op.get(), args, 3, kit::site_of(a));
}
inline Tensor operator-(const Tensor& a) {
  static constinit kit::Op op("neg");
  const aj_value arg = a.get() ? kit::value(a) : aj_value{};
  return kit::run(op.get(), &arg, 1);
}

}  // namespace adjoin
#endif
