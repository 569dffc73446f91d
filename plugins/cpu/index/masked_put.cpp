// plugins/cpu/index/masked_put.cpp: elements of a source, in order, where a mask is true.
#include <adjoin/kit/indexing.hpp>
#include <adjoin/kit/parallel.hpp>
#include <cstring>

#include "vector/stored.hpp"

namespace adjoin::cpu {
namespace {

// b where all bits of `taken` are set, a where none: no jump, since nobody can foresee a mask.
template <class T>
T chosen(T a, T b, uint64_t taken) {
  if constexpr (std::is_same_v<T, Bytes16>)
    return {chosen(a.words[0], b.words[0], taken), chosen(a.words[1], b.words[1], taken)};
  else
    return T(a ^ ((a ^ b) & T(taken)));
}

// Element by element, reading no more of the source than is taken.
template <class T>
const T* put_some(T* out, const T* in, const uint8_t* taken, int64_t n, const T* next) {
  for (int64_t k = 0; k < n; ++k) out[k] = taken[k] ? *next++ : in[k];
  return next;
}

// Eight at a time: often they are all taken or none is. `end`: of the source. A truth is 1; if it
// is another number, that is seen before.
template <class T>
void put(T* out, const T* in, const uint8_t* taken, int64_t n, const T* next, const T* end) {
  constexpr uint64_t kAll = 0x0101010101010101;
  int64_t k = 0;
  for (; k + 8 <= n; k += 8) {
    uint64_t all;
    std::memcpy(&all, taken + k, 8);
    if (all == 0) {
      if (out != in) std::memcpy(out + k, in + k, 8 * sizeof(T));
    } else if (end - next < 8 || all & ~kAll) {
      next = put_some(out + k, in + k, taken + k, 8, next);
    } else if (all == kAll) {
      std::memcpy(out + k, next, 8 * sizeof(T));
      next += 8;
    } else {
#pragma GCC unroll 8
      for (int64_t j = k; j < k + 8; ++j) {
        const uint64_t one = taken[j];  // compared with 0, it would become a jump
        out[j] = chosen(in[j], *next, -one);
        next += one;
      }
    }
  }
  put_some(out + k, in + k, taken + k, n - k, next);
}

// The elements in C order: its own memory, or a copy that the caller keeps.
template <class T>
const T* in_order(TensorView t, std::vector<T>& kept) {
  if (t.dense()) return t.data<T>();
  const size_t last = size_t(t.ndim()) - 1;
  const int64_t width = t.size(int64_t(last)), step = t.stride(int64_t(last));
  kept.reserve(size_t(t.numel()));
  for (int64_t row : offsets_of(t.shape().first(last), t.strides().first(last)))
    for (int64_t k = 0; k < width; ++k) kept.push_back(t.data<T>()[row + k * step]);
  return kept.data();
}

// Counted first, so that each part knows where its elements begin.
void masked_put(Args args) {
  TensorView x = args.tensor(0), source = args.tensor(2);
  MutView out = args.result(0);
  const int64_t n = x.numel(), chunk = 1 << 15, chunks = (n + chunk - 1) / chunk;
  Dense<bool> mask(args.tensor(1));
  const uint8_t* taken = reinterpret_cast<const uint8_t*>(mask.data());
  std::vector<int64_t> begin(size_t(chunks) + 1, 0);
  auto each_chunk = [&](auto f) {
    parallel_for(chunks, 1, [&](int64_t from, int64_t to) {
      for (int64_t c = from; c < to; ++c) f(c, c * chunk, std::min(n, (c + 1) * chunk));
    });
  };
  each_chunk([&](int64_t c, int64_t lo, int64_t hi) {
    int64_t count = 0;
    for (; lo < hi; ++lo) count += taken[lo] != 0;
    begin[size_t(c) + 1] = count;
  });
  for (size_t c = 1; c < begin.size(); ++c) begin[c] += begin[c - 1];
  if (begin.back() > source.numel())
    raise(AJ_INVALID_ARGUMENT, "mask takes ", begin.back(), " elements, source has ",
          source.numel());
  visit_size(x.dtype(), [&]<class T>() {
    std::vector<T> kept, source_kept, written(out.dense() ? 0 : size_t(n));
    const T *in = in_order(x, kept), *from = in_order(source, source_kept);
    T* to = out.dense() ? out.data<T>() : written.data();
    each_chunk([&](int64_t c, int64_t lo, int64_t hi) {
      put(to + lo, in + lo, taken + lo, hi - lo, from + begin[size_t(c)], from + source.numel());
    });
    if (out.dense()) return;
    const std::vector<int64_t> places = offsets_of(out.shape(), out.strides());
    for (size_t i = 0; i < places.size(); ++i) out.data<T>()[places[i]] = written[i];
  });
}

}  // namespace

AJ_KERNELS(masked_put_kernels) = {
    {"_::masked_put", custom<masked_put>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
