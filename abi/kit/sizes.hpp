// adjoin/kit/sizes.hpp: shapes and strides as values: those of ordinary tensors take no memory from
// the heap. Sums and products of absurd numbers stop at the ends of int64_t.
#ifndef ADJOIN_KIT_SIZES_HPP
#define ADJOIN_KIT_SIZES_HPP
#include <adjoin/kit/call.hpp>
#include <algorithm>
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <vector>

namespace adjoin {
namespace AJ_HIDDEN ops {

// A list of numbers with the words of std::vector.
class Sizes {
 public:
  using value_type = int64_t;
  using iterator = int64_t*;
  using const_iterator = const int64_t*;

  Sizes() = default;
  explicit Sizes(size_t n, int64_t x = 0) { std::fill_n(grown(n), n, x); }
  template <std::forward_iterator I>
  Sizes(I first, I last) {
    int64_t* to = grown(size_t(std::distance(first, last)));
    for (; first != last; ++first, ++to) {
      *to = *first;
      asm("" : "+r"(to));  // they are few: the call that compilers make of such a loop takes longer
    }
  }
  Sizes(std::initializer_list<int64_t> list) : Sizes(list.begin(), list.end()) {}
  Sizes(std::span<const int64_t> s) : Sizes(s.begin(), s.end()) {}
  Sizes(const Ints& s) : Sizes(s.begin(), s.end()) {}
  Sizes(const std::vector<int64_t>& s) : Sizes(s.begin(), s.end()) {}
  Sizes(const Sizes& o) : Sizes(o.begin(), o.end()) {}
  Sizes& operator=(const Sizes& o) {
    if (this != &o) size_ = 0, std::copy(o.begin(), o.end(), grown(o.size()));
    return *this;
  }
  ~Sizes() = default;
  operator std::span<const int64_t>() const { return {data(), size()}; }

  int64_t* data() { return heap_ ? heap_.get() : few_; }
  const int64_t* data() const { return heap_ ? heap_.get() : few_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int64_t* begin() { return data(); }
  int64_t* end() { return data() + size_; }
  const int64_t* begin() const { return data(); }
  const int64_t* end() const { return data() + size_; }
  auto rbegin() { return std::reverse_iterator(end()); }
  auto rend() { return std::reverse_iterator(begin()); }
  auto rbegin() const { return std::reverse_iterator(end()); }
  auto rend() const { return std::reverse_iterator(begin()); }
  int64_t& operator[](size_t i) { return data()[i]; }
  const int64_t& operator[](size_t i) const { return data()[i]; }
  int64_t& front() { return data()[0]; }
  const int64_t& front() const { return data()[0]; }
  int64_t& back() { return data()[size_ - 1]; }
  const int64_t& back() const { return data()[size_ - 1]; }
  bool operator==(const Sizes& o) const { return std::ranges::equal(*this, o); }

  void push_back(int64_t x) { *grown(1) = x; }
  int64_t& emplace_back(int64_t x) { return *grown(1) = x; }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void reserve(size_t n) { make_room(n); }
  void resize(size_t n, int64_t x = 0) {
    if (n > size_) std::fill_n(grown(n - size_), n - size_, x);
    size_ = n;
  }
  void assign(size_t n, int64_t x) { size_ = 0, std::fill_n(grown(n), n, x); }
  template <std::forward_iterator I>
  void assign(I first, I last) {
    *this = Sizes(first, last);
  }
  int64_t* insert(const int64_t* at, int64_t x) {
    int64_t* to = opened(at, 1);
    *to = x;
    return to;
  }
  int64_t* insert(const int64_t* at, size_t n, int64_t x) {
    int64_t* to = opened(at, n);
    std::fill_n(to, n, x);
    return to;
  }
  template <std::forward_iterator I>
  int64_t* insert(const int64_t* at, I first, I last) {
    Sizes given(first, last);  // they may be of this list
    int64_t* to = opened(at, given.size());
    std::copy(given.begin(), given.end(), to);
    return to;
  }
  int64_t* insert(const int64_t* at, std::initializer_list<int64_t> list) {
    return insert(at, list.begin(), list.end());
  }
  int64_t* erase(const int64_t* at) { return erase(at, at + 1); }
  int64_t* erase(const int64_t* first, const int64_t* last) {
    int64_t* to = begin() + (first - begin());
    std::copy(begin() + (last - begin()), end(), to);
    size_ -= size_t(last - first);
    return to;
  }

 private:
  static constexpr size_t kFew = 8;
  void make_room(size_t n) {
    if (n <= room_) return;
    n = std::max(n, 2 * room_);
    std::unique_ptr<int64_t[]> more(new int64_t[n]);
    std::copy(begin(), end(), more.get());
    heap_ = std::move(more);
    room_ = n;
  }
  int64_t* grown(size_t n) {  // n more at the end
    make_room(size_ + n);
    size_ += n;
    return data() + size_ - n;
  }
  int64_t* opened(const int64_t* at, size_t n) {  // n more before `at`
    size_t i = size_t(at - begin());
    int64_t* from = grown(n);
    int64_t* to = from + n;
    for (const int64_t* stop = begin() + i; from != stop;) {
      *--to = *--from;
      asm("" : "+r"(to));  // as above
    }
    return from;
  }

  size_t size_ = 0, room_ = kFew;
  std::unique_ptr<int64_t[]> heap_;
  int64_t few_[kFew];
};

inline kit::Shape shown(std::span<const int64_t> s) { return {s.data(), int64_t(s.size())}; }
inline kit::Shape shown(const Tensor& t) { return shown(t.shape()); }
inline Sizes sizes_of(const Tensor& t) { return Sizes(t.shape()); }

// No dimension is as large as the ends of int64_t: such sizes are refused like any that do not fit.
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

}  // namespace ops
}  // namespace adjoin
#endif
