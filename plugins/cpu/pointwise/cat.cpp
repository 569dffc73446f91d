// plugins/cpu/pointwise/cat.cpp: joining tensors along a dimension, by rows of bytes.
#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/tensor.hpp>
#include <array>
#include <vector>

#include "dense_copy.hpp"
#include "vector/clones.hpp"
#include "vector/rows.hpp"
#include "vector/stored.hpp"

namespace adjoin::cpu {
namespace {

// Rows of a few bytes, which a call of memcpy() each would cost more than they do.
void columns(char* to, int64_t step, const char* from, int64_t bytes, int64_t lo, int64_t hi) {
  auto move = [&]<class T>(T) {
    int64_t each = bytes / int64_t(sizeof(T));
    for (int64_t o = lo; o < hi; ++o)
      for (int64_t k = 0; k < each; ++k)
        std::memcpy(to + o * step + k * int64_t(sizeof(T)),
                    from + (o * each + k) * int64_t(sizeof(T)), sizeof(T));
  };
  if (bytes % 8 == 0)
    move(uint64_t());
  else if (bytes % 4 == 0)
    move(uint32_t());
  else
    move(char());
}

// Elements [lo, hi) of a few tensors, one of each beside each other.
template <class T, int kFew>
[[gnu::always_inline]] inline void weave(T* __restrict to, const void* const* from, int64_t lo,
                                         int64_t hi) {
  std::array<const T*, kFew> x;
  for (int k = 0; k < kFew; ++k) x[size_t(k)] = static_cast<const T*>(from[k]);
  for (int64_t i = lo; i < hi; ++i)
    for (int k = 0; k < kFew; ++k) to[i * kFew + k] = x[size_t(k)][i];
}
AJ_CLONES void weave2(uint32_t* to, const void* const* from, int64_t lo, int64_t hi) {
  weave<uint32_t, 2>(to, from, lo, hi);
}
AJ_CLONES void weave2(uint64_t* to, const void* const* from, int64_t lo, int64_t hi) {
  weave<uint64_t, 2>(to, from, lo, hi);
}
AJ_CLONES void weave3(uint32_t* to, const void* const* from, int64_t lo, int64_t hi) {
  weave<uint32_t, 3>(to, from, lo, hi);
}
AJ_CLONES void weave4(uint32_t* to, const void* const* from, int64_t lo, int64_t hi) {
  weave<uint32_t, 4>(to, from, lo, hi);
}

using Weave32 = void (*)(uint32_t*, const void* const*, int64_t, int64_t);
using Weave64 = void (*)(uint64_t*, const void* const*, int64_t, int64_t);

// A tensor's elements in C order: in place if it is dense.
class InOrder {
 public:
  explicit InOrder(TensorView t) : begin_(t.bytes()) {
    if (t.dense() || t.numel() == 0) return;
    copy_ = Tensor::steal(new_tensor({kDLCPU, 0}, t.dtype(), t.shape()));
    char* to = MutView(copy_.get()).bytes();
    copy_in_order(t, to);
    begin_ = to;
  }
  const char* begin() const { return begin_; }

 private:
  Tensor copy_;
  const char* begin_;
};

// n elements of each of a few tensors, as stack() puts them beside each other. False: another case.
bool woven(char* to, const std::vector<TensorView>& parts, int64_t n, int64_t size) {
  const size_t few = parts.size();
  if (few < 2 || few > (size == 4 ? 4 : size == 8 ? 2 : 0)) return false;
  std::vector<InOrder> in_order;
  std::vector<const void*> from;
  for (TensorView t : parts) from.push_back(in_order.emplace_back(t).begin());
  constexpr Weave32 by_count[] = {weave2, weave3, weave4};
  constexpr Weave64 two = weave2;
  parallel_for(n, grain_of(int64_t(few)), [&](int64_t lo, int64_t hi) {
    if (size == 8) return two(reinterpret_cast<uint64_t*>(to), from.data(), lo, hi);
    by_count[few - 2](reinterpret_cast<uint32_t*>(to), from.data(), lo, hi);
  });
  return true;
}

void cat(Args args) {
  MutView out = args.result(0);
  const int64_t dim = args.integer(1), size = bytes_of(out.dtype());
  const Lines whole(out.shape(), dim);
  const int64_t step = whole.size * whole.inner * size;
  std::vector<TensorView> parts;
  bool single = whole.inner == 1;  // elements of each tensor
  for (aj_tensor* each : args.tensors(0)) {
    TensorView t(each);
    if (t.ndim() == 1 && t.size(0) == 0) continue;  // an empty vector goes with everything
    parts.push_back(t);
    single = single && t.size(dim) == 1;
  }
  auto join = [&](char* to) {
    if (single && woven(to, parts, whole.outer, size)) return;
    for (TensorView t : parts) {
      const int64_t bytes = t.size(dim) * whole.inner * size;
      const InOrder in_order(t);
      const char* from = in_order.begin();
      const bool past = bytes >= 1024 && 2 * out.numel() * size >= stream_bytes();
      parallel_for(whole.outer, grain_of(t.size(dim) * whole.inner), [&](int64_t lo, int64_t hi) {
        if (bytes <= 16) return columns(to, step, from, bytes, lo, hi);
        for (int64_t o = lo; o < hi; ++o)
          if (past)
            stream_row(to + o * step, from + o * bytes, bytes);
          else
            copy_neighbours(to + o * step, from + o * bytes, bytes);
        if (past) end_streaming();
      });
      to += bytes;
    }
  };
  if (out.dense()) return join(out.bytes());
  visit<stored>(out.dtype(), [&]<class T>() {
    Dense<T> to(out);
    join(reinterpret_cast<char*>(to.data()));
    to.commit();
  });
}

}  // namespace

AJ_KERNELS(cat_kernels) = {
    {"cat_same", custom<cat>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
