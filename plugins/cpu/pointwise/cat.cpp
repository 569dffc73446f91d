// plugins/cpu/pointwise/cat.cpp: joining tensors along a dimension, by rows of bytes.
#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/tensor.hpp>
#include <array>
#include <vector>

#include "dense_copy.hpp"
#include "vector/rows.hpp"
#include "vector/stored.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/pointwise/cat.cpp"
#include "vector/simd.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
// Elements [lo, hi) of a few tensors, one of each beside each other.
using Weave = void (*)(void* to, const void* const* from, int64_t lo, int64_t hi);
template <class T, int kFew>
void weave(void* woven, const void* const* from, int64_t lo, int64_t hi) {
  T* HWY_RESTRICT to = static_cast<T*>(woven);
  std::array<const T*, kFew> x;
  for (int k = 0; k < kFew; ++k) x[size_t(k)] = static_cast<const T*>(from[k]);
  for (int64_t i = lo; i < hi; ++i)
    for (int k = 0; k < kFew; ++k) to[i * kFew + k] = x[size_t(k)][i];
}
// NULL: so many of that size are not woven.
static Weave weave_of(size_t few, int64_t size) {
  if (size == 8) return few == 2 ? weave<uint64_t, 2> : nullptr;
  if (size != 4) return nullptr;
  return few == 2   ? weave<uint32_t, 2>
         : few == 3 ? weave<uint32_t, 3>
         : few == 4 ? weave<uint32_t, 4>
                    : nullptr;
}
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
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

// What a tensor gives to each row of the result: `bytes` of them from `at` on.
struct Part {
  InOrder elements;
  int64_t at, bytes;
  const char* from() const { return elements.begin(); }
};
constexpr int64_t kFew = 16;  // bytes

// n elements of each of a few tensors, as stack() puts them beside each other. False: another case.
bool woven(char* to, const std::vector<Part>& parts, int64_t n, int64_t size) {
  const auto weave = AJ_SIMD(weave_of)(parts.size(), size);
  if (!weave) return false;
  std::vector<const void*> from;
  for (const Part& part : parts) from.push_back(part.from());
  parallel_for(n, grain_of(int64_t(parts.size())),
               [&](int64_t lo, int64_t hi) { weave(to, from.data(), lo, hi); });
  return true;
}

void cat(Args args) {
  MutView out = args.result(0);
  const int64_t dim = args.integer(1), size = bytes_of(out.dtype());
  const Lines whole(out.shape(), dim);
  const int64_t step = whole.size * whole.inner * size;
  std::vector<Part> parts;
  parts.reserve(args.tensors(0).size());
  bool single = whole.inner == 1;  // elements of each tensor
  int64_t at = 0;
  for (aj_tensor* each : args.tensors(0)) {
    TensorView t(each);
    if (t.ndim() == 1 && t.size(0) == 0) continue;  // an empty vector goes with everything
    const int64_t bytes = t.size(dim) * whole.inner * size;
    parts.push_back({InOrder(t), at, bytes});
    at += bytes;
    single = single && t.size(dim) == 1;
  }
  auto join = [&](char* to) {
    if (single && woven(to, parts, whole.outer, size)) return;
    const bool large = 2 * out.numel() * size >= stream_bytes();
    parallel_for(whole.outer, grain_of(whole.size * whole.inner), [&](int64_t lo, int64_t hi) {
      for (const Part& part : parts)
        if (part.bytes <= kFew) columns(to + part.at, step, part.from(), part.bytes, lo, hi);
      // Row by row, so that what is written follows what was written before.
      for (int64_t o = lo; o < hi; ++o)
        for (const Part& part : parts) {
          char* row = to + o * step + part.at;
          const char* from = part.from() + o * part.bytes;
          if (part.bytes <= kFew) continue;
          if (large && part.bytes >= 1024)
            stream_row(row, from, part.bytes);
          else
            copy_neighbours(row, from, part.bytes);
        }
      if (large) end_streaming();
    });
  };
  if (out.dense()) return join(out.bytes());
  DenseAs to(out, typed_of(out.dtype()), false);
  join(to.bytes());
  to.commit();
}

}  // namespace

AJ_KERNELS(cat_kernels) = {
    {"cat_same", custom<cat>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
#endif
