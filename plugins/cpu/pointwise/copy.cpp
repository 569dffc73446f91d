// plugins/cpu/pointwise/copy.cpp: copies with and without a cast, transposes in tiles, fills.
#include <adjoin/kit/loops.hpp>
#include <adjoin/kit/narrow.hpp>
#include <algorithm>
#include <array>
#include <span>

#include "dense_copy.hpp"
#include "vector/convert_rows.hpp"
#include "vector/rows.hpp"
#include "vector/stream.hpp"

namespace adjoin::cpu {
namespace {

// One row; neither end needs to be contiguous.
void copy_row(char* to, const aj_operand& dst, int64_t dst_step, const char* from,
              const aj_operand& src, int64_t src_step, int64_t n) {
  if (is_narrow(dst.dtype) || is_narrow(src.dtype))
    return convert_narrow<>(to, dst.dtype, dst_step, from, src.dtype, src_step, n);
  if (dst_step == bytes_of(dst.dtype))
    return visit<stored>(dst.dtype,
                         [&]<class T>() { Convert<T>::load(to, from, src.dtype, src_step, n); });
  if (src_step == bytes_of(src.dtype))
    return visit<stored>(src.dtype,
                         [&]<class T>() { Convert<T>::store(to, dst.dtype, dst_step, from, n); });
  visit<stored>(dst.dtype, [&]<class T>() {
    T block[kBlock];
    for (int64_t lo = 0; lo < n; lo += kBlock) {
      int64_t m = std::min(kBlock, n - lo);
      Convert<T>::load(block, from + lo * src_step, src.dtype, src_step, m);
      Convert<T>::store(to + lo * dst_step, dst.dtype, dst_step, block, m);
    }
  });
}

// At most 64 bytes, which a call of memmove() each would cost more than they do.
void copy_few(char* to, const char* from, int64_t n) {
  auto ends = [&]<class T>(T) {
    T first, last;
    std::memcpy(&first, from, sizeof first);
    std::memcpy(&last, from + n - sizeof last, sizeof last);
    std::memcpy(to, &first, sizeof first);
    std::memcpy(to + n - sizeof last, &last, sizeof last);
  };
  if (n > 32)
    ends(std::array<uint64_t, 4>());
  else if (n >= 16)
    ends(std::array<uint64_t, 2>());
  else if (n >= 8)
    ends(uint64_t());
  else if (n >= 4)
    ends(uint32_t());
  else
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
}

// Rows of neighbours.
void copy_rows(const aj_plan& p, int64_t size) {
  if (p.ndim < 2 || p.sizes[0] * size > 64)
    return for_rows(p, [&](char** at, int64_t n) { copy_neighbours(at[0], at[1], n * size); });
  const int64_t bytes = p.sizes[0] * size, to_step = p.ops[0].strides[1],
                from_step = p.ops[1].strides[1];
  aj_operand ops[2] = {p.ops[0], p.ops[1]};
  for (aj_operand& o : ops) ++o.strides;
  aj_plan rows = p;  // each is one element of this
  --rows.ndim, ++rows.sizes, rows.ops = ops;
  auto copied = [&](auto copy) {
    for_rows(rows, [&](char** at, int64_t n) {
      char* to = at[0];
      const char* from = at[1];
      for (; n-- > 0; to += to_step, from += from_step) copy(to, from);
    });
  };
  auto of = [](auto size) {
    return [](char* to, const char* from) { std::memcpy(to, from, decltype(size)::value); };
  };
  switch (bytes) {  // of sizes that programs have, the compiler writes the copy
    case 16:
      return copied(of(std::integral_constant<size_t, 16>()));
    case 32:
      return copied(of(std::integral_constant<size_t, 32>()));
    case 64:
      return copied(of(std::integral_constant<size_t, 64>()));
    default:
      copied([bytes](char* to, const char* from) { copy_few(to, from, bytes); });
  }
}

// Elements of one size, whatever they are: rows may be short, so nothing is looked up for each.
void copy_bytes(const aj_plan& p, int64_t to_step, int64_t from_step) {
  const int64_t bytes = bytes_of(p.ops[0].dtype);
  if (to_step == bytes && from_step == bytes) return copy_rows(p, bytes);
  visit_size(p.ops[0].dtype, [&]<class T>() {
    constexpr int64_t size = sizeof(T);
    for_rows(p, [&](char** at, int64_t n) {
      char* to = at[0];
      const char* from = at[1];
      if (to_step == size && from_step == 0)
        return void(std::fill_n(reinterpret_cast<T*>(to), n, *reinterpret_cast<const T*>(from)));
      for (; n-- > 0; to += to_step, from += from_step)
        *reinterpret_cast<T*>(to) = *reinterpret_cast<const T*>(from);
    });
  });
}

// `few` times each of n elements.
template <class T>
void repeat_few(int64_t few, char* to, int64_t to_step, const char* from, int64_t from_step,
                int64_t n) {
  using Block = std::array<T, 32 / sizeof(T)>;
  constexpr int64_t kBlock = int64_t(Block().size());
  Block block;
  for (; n-- > 0; to += to_step, from += from_step) {
    const T x = *reinterpret_cast<const T*>(from);
    T* out = reinterpret_cast<T*>(to);
    block.fill(x);
    if (few < kBlock) {
      for (int64_t i = 0; i < few; ++i) out[i] = x;
      continue;
    }
    for (int64_t i = 0; i + kBlock <= few; i += kBlock) std::memcpy(out + i, &block, sizeof block);
    std::memcpy(out + few - kBlock, &block, sizeof block);
  }
}

// n rows of a few neighbours each, gathered from as many lines: to[j, i] = from[i][j].
template <class T, int kFew>
void weave(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t n) {
  const T* line[kFew];
  for (int i = 0; i < kFew; ++i) line[i] = reinterpret_cast<const T*>(from + i * from_step);
  if (to_step == kFew * int64_t(sizeof(T))) {
    T* out = reinterpret_cast<T*>(to);
    AJ_IVDEP
    for (int64_t j = 0; j < n; ++j)
      for (int i = 0; i < kFew; ++i) out[j * kFew + i] = line[i][j];
    return;
  }
  for (int64_t j = 0; j < n; ++j, to += to_step)
    for (int i = 0; i < kFew; ++i) reinterpret_cast<T*>(to)[i] = line[i][j];
}
template <class T>
void weave_few(int64_t few, char* to, int64_t to_step, const char* from, int64_t from_step,
               int64_t n) {
  switch (few) {
    case 2:
      return weave<T, 2>(to, to_step, from, from_step, n);
    case 3:
      return weave<T, 3>(to, to_step, from, from_step, n);
    default:
      return weave<T, 4>(to, to_step, from, from_step, n);
  }
}

// The dimension along which the source is dense, if it isn't the first: that and the first make
// planes to turn. 0: none.
uint32_t turned_by(const aj_plan& p) {
  const aj_operand &dst = p.ops[0], &src = p.ops[1];
  int64_t size = bytes_of(dst.dtype);
  if (!same(dst.dtype, src.dtype) || row_stride(p, 0) != size || row_stride(p, 1) == size ||
      p.sizes[0] < 2)
    return 0;
  for (uint32_t d = 1; d < p.ndim; ++d)
    if (src.strides[d] == size && p.sizes[d] > 4) return d;
  return 0;
}

void copy_planes(const aj_plan& p, uint32_t dim) {
  const aj_operand &dst = p.ops[0], &src = p.ops[1];
  aj_operand ops[2] = {dst, src};
  int64_t strides[2][64], sizes[64];
  aj_plan planes = p;  // the other dimensions
  planes.ndim = 0;
  for (uint32_t d = 1; d < p.ndim; ++d) {
    if (d == dim) continue;
    sizes[planes.ndim] = p.sizes[d];
    for (int k = 0; k < 2; ++k) strides[k][planes.ndim] = p.ops[k].strides[d];
    ++planes.ndim;
  }
  if (planes.ndim == 0) sizes[planes.ndim++] = 1, strides[0][0] = strides[1][0] = 0;
  for (int k = 0; k < 2; ++k) ops[k].strides = strides[k];
  planes.sizes = sizes;
  planes.ops = ops;
  if (p.sizes[0] <= 4)
    return visit_size(dst.dtype, [&]<class T>() {
      for_rows(planes, [&](char** at, int64_t n) {
        for (int64_t i = 0; i < n; ++i)
          weave_few<T>(p.sizes[0], at[0] + i * strides[0][0], dst.strides[dim],
                       at[1] + i * strides[1][0], src.strides[0], p.sizes[dim]);
      });
    });
  bool stream = worth_streaming(p);
  if (src.strides[0] == 0 && !stream)
    return visit_size(dst.dtype, [&]<class T>() {
      for_rows(planes, [&](char** at, int64_t n) {
        for (int64_t i = 0; i < n; ++i)
          repeat_few<T>(p.sizes[0], at[0] + i * strides[0][0], dst.strides[dim],
                        at[1] + i * strides[1][0], src.strides[dim], p.sizes[dim]);
      });
    });
  for_rows(planes, [&](char** at, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      transpose(bytes_of(dst.dtype), at[0] + i * strides[0][0], dst.strides[dim],
                at[1] + i * strides[1][0], src.strides[0], p.sizes[0], p.sizes[dim], stream);
  });
  if (stream) end_streaming();
}

void copy_plan(const aj_plan& p) {
  const aj_operand &dst = p.ops[0], &src = p.ops[1];
  if (uint32_t dim = turned_by(p)) return copy_planes(p, dim);
  int64_t to_step = row_stride(p, 0), from_step = row_stride(p, 1);
  bool dense = to_step == bytes_of(dst.dtype) && from_step == bytes_of(src.dtype);
  const bool narrow = is_narrow(dst.dtype) || is_narrow(src.dtype);
  CastRow cast = dense && !narrow ? find_cast_row(dst.dtype, src.dtype) : nullptr;
  bool same_bytes = dense && same(dst.dtype, src.dtype);
  bool stream = (cast || same_bytes) && worth_streaming(p);
  if (same(dst.dtype, src.dtype) && !cast && !stream) return copy_bytes(p, to_step, from_step);
  for_rows(p, [&](char** at, int64_t n) {
    if (cast)
      cast(at[0], at[1], n, stream);
    else if (same_bytes && stream)
      stream_row(at[0], at[1], n * to_step);
    else
      copy_row(at[0], dst, to_step, at[1], src, from_step, n);
  });
  if (stream) end_streaming();
}

aj_status* copy(void*, aj_call* call) {
  return guard(call, [&] { copy_plan(*call->plan); });
}

// The pattern again and again; of equal bytes, the processor's own filling.
void spread(char* to, const char (&pattern)[4096], int64_t n, int64_t size, bool bytes,
            bool stream) {
  if (bytes && !stream) return void(std::memset(to, pattern[0], size_t(n)));
  constexpr int64_t most = sizeof pattern;
  int64_t ahead = stream ? int64_t((0 - reinterpret_cast<uintptr_t>(to)) % 64) : 0;
  if (ahead % size) stream = false, ahead = 0;  // elements lie across lines
  std::memcpy(to, pattern, size_t(std::min(n, ahead)));
  if (stream && ahead < n) return stream_pattern(to + ahead, pattern, n - ahead);
  for (int64_t i = ahead; i < n; i += most)
    std::memcpy(to + i, pattern, size_t(std::min(most, n - i)));
}

// Too little for a page of the pattern to be written first.
template <class T>
void fill_few(const aj_plan& p, int64_t step, T x) {
  constexpr int64_t kLine = 64 / sizeof(T);
  T line[kLine];
  std::fill_n(line, kLine, x);
  for_rows(p, [&](char** at, int64_t n) {
    int64_t i = 0;
    if (step == int64_t(sizeof(T)))
      for (; i + kLine <= n; i += kLine) std::memcpy(at[0] + i * step, line, sizeof line);
    for (; i < n; ++i) std::memcpy(at[0] + i * step, &x, sizeof x);
  });
}

aj_status* fill(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    const aj_operand &dst = p.ops[0], &value = p.ops[1];
    int64_t step = row_stride(p, 0);
    alignas(16) char element[16];
    const int64_t size = bytes_of(dst.dtype);
    if (std::memcmp(&dst.dtype, &value.dtype, sizeof dst.dtype) == 0)
      std::memcpy(element, value.data, size_t(size));  // as most numbers come
    else
      copy_row(element, dst, size, static_cast<char*>(value.data), value, 0, 1);
    bool stream = worth_streaming(p);
    visit_size(dst.dtype, [&]<class T>() {
      T x;
      std::memcpy(&x, element, sizeof x);
      constexpr int64_t kFew = 1 << 14;  // bytes
      if (p.numel * int64_t(sizeof x) <= kFew) return fill_few(p, step, x);
      alignas(64) char pattern[4096];
      for (size_t i = 0; i < sizeof pattern / sizeof x; ++i)
        std::memcpy(pattern + i * sizeof x, &x, sizeof x);
      bool bytes =
          std::ranges::count(std::span(pattern).first(sizeof x), pattern[0]) == int64_t(sizeof x);
      for_rows(p, [&](char** at, int64_t n) {
        if (step == int64_t(sizeof(T)) && n >= 64)
          spread(at[0], pattern, n * step, step, bytes, stream);
        else if (step == int64_t(sizeof(T)))
          std::fill_n(reinterpret_cast<T*>(at[0]), n, x);
        else
          for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(at[0] + i * step) = x;
      });
    });
    if (stream) end_streaming();
  });
}

}  // namespace

void copy_in_order(TensorView t, char* to) {
  const int64_t size = bytes_of(t.dtype());
  std::array<int64_t, 64> sizes, to_step, from_step;
  aj_plan plan = {};
  plan.nops = 2, plan.nout = 1, plan.numel = t.numel();
  int64_t step = size;
  for (int64_t d = t.ndim(); d-- > 0; step *= t.size(d)) {
    if (t.size(d) == 1) continue;
    const size_t last = plan.ndim - 1, next = plan.ndim;
    const int64_t stride = t.stride(d) * size;
    if (next > 0 && stride == sizes[last] * from_step[last]) {  // goes on where that ends
      sizes[last] *= t.size(d);
      continue;
    }
    sizes[next] = t.size(d), to_step[next] = step, from_step[next] = stride;
    ++plan.ndim;
  }
  if (plan.ndim == 0) sizes[0] = 1, to_step[0] = from_step[0] = size, plan.ndim = 1;
  aj_operand ops[2] = {};
  ops[0].data = to, ops[0].dtype = t.dtype(), ops[0].strides = to_step.data();
  ops[1].data = const_cast<char*>(t.bytes()), ops[1].dtype = t.dtype();
  ops[1].strides = from_step.data();
  plan.sizes = sizes.data(), plan.ops = ops;
  copy_plan(plan);
}

AJ_KERNELS(copy_kernels) = {
    {"copy_", {&copy, kMoved, kInner}},
    {"fill_", {&fill, kMoved, kInner}},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
