// plugins/ops_fft/cpu/rows.cpp: the kernels of the three rows that compute: one dimension after the
// other.
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/view.hpp>
#include <algorithm>
#include <array>

#include "offers.hpp"
#include "transform.hpp"

namespace adjoin::cpu {
namespace {
using namespace kit;  // NOLINT: kernels are made of it
using fft::Dim;
using fft::Job;
using fft::Kind;

// A tensor as real numbers: complex ones count twice.
template <class T>
struct Numbers {
  T* at;
  std::vector<int64_t> shape, strides;
  explicit Numbers(TensorView t)
      : at(reinterpret_cast<T*>(const_cast<char*>(t.bytes()))),
        shape(t.shape().begin(), t.shape().end()),
        strides(t.strides().begin(), t.strides().end()) {
    if (t.dtype().code == kDLComplex)
      for (int64_t& s : strides) s *= 2;
  }
};

// Along dimension d. The shape is what both have in common but in that dimension.
template <class T>
void along(Kind kind, int64_t d, int64_t n, const Numbers<T>& in, const Numbers<T>& out,
           bool forward, double scale, bool cold) {
  Job<T> job{kind, n,       in.at,    out.at, in.strides[size_t(d)], out.strides[size_t(d)],
             {},   forward, T(scale), cold};
  for (size_t i = 0; i < in.shape.size(); ++i)
    if (int64_t(i) != d) job.others.push_back({in.shape[i], in.strides[i], out.strides[i]});
  fft::run(std::move(job));
}

// What a core's second cache holds beside a plan.
constexpr int64_t kCached = int64_t(512) << 10;
constexpr int64_t kFewBlocks = 8;

template <class T, size_t N>
int64_t bytes_of(const std::array<Numbers<T>, N>& arrays) {
  int64_t most = 0;
  for (const Numbers<T>& one : arrays) {
    int64_t numbers = 2;
    for (int64_t size : one.shape) numbers *= size;
    most = std::max(most, numbers * int64_t(sizeof(T)));
  }
  return most;
}

// Complex numbers, along all dimensions of the list; in place but for the first. cold: `in` is not
// in the cache.
template <class T>
void along_all(Span dims, Numbers<T> in, const Numbers<T>& out, bool forward, double scale,
               bool cold) {
  const bool large = bytes_of(std::array{out}) > kCached;
  for (size_t i = dims.size(); i-- > 0; scale = 1, in = out, cold = large)
    along(Kind::complex, dims[i], in.shape[size_t(dims[i])], in, out, forward, scale, cold);
}

// The same places of several arrays, `count` from `first` on in dimension d.
template <class T, size_t N>
std::array<Numbers<T>, N> part(std::array<Numbers<T>, N> arrays, size_t d, int64_t first,
                               int64_t count) {
  for (Numbers<T>& one : arrays) one.at += first * one.strides[d], one.shape[d] = count;
  return arrays;
}

// Does f(arrays, cold) for parts that stay in the cache from one dimension of the list to the next:
// cut along a dimension that lies outside of all of these, if there is one.
template <class T, size_t N, class F>
void in_blocks(Span dims, const std::array<Numbers<T>, N>& arrays, const F& f) {
  const int64_t bytes = bytes_of(arrays);
  const bool cold = bytes > kCached;
  size_t outer = 0;
  const Numbers<T>& last = arrays.back();
  for (size_t i = 1; i < last.shape.size(); ++i)
    if (last.shape[i] > 1 && (last.shape[outer] == 1 || last.strides[i] > last.strides[outer]))
      outer = i;
  if (dims.size() < 2 || !cold) return f(arrays, cold);
  for (const Numbers<T>& one : arrays)
    for (int64_t d : dims)
      if (one.strides[outer] < one.strides[size_t(d)] * one.shape[size_t(d)])
        return f(arrays, cold);
  const int64_t size = last.shape[outer], step = std::max<int64_t>(1, kCached * size / bytes);
  const int64_t blocks = (size + step - 1) / step;
  if (blocks < kFewBlocks) return f(arrays, cold);
  parallel_for(blocks, 1, [&](int64_t lo, int64_t hi) {
    for (; lo < hi; ++lo) f(part(arrays, outer, lo * step, std::min(step, size - lo * step)), cold);
  });
}

// By somebody's library, where one is there and the problem is one that it can be told.
template <class T>
bool elsewhere(int32_t kind, Span dims, int64_t last, TensorView in, TensorView out, bool forward,
               double scale) {
  if (!fft::has_others() || dims.empty() || dims.size() > 3) return false;
  aj_fft_desc d = {};
  d.struct_size = sizeof d, d.kind = kind, d.dtype = dtype_of<T>, d.device = in.device();
  d.forward = forward, d.rank = int32_t(dims.size()), d.scale = scale;
  std::vector<Dim> others;
  for (int64_t i = 0; i < in.ndim(); ++i) {
    const auto at = std::ranges::find(dims, i);
    if (at == dims.end()) {
      others.push_back({in.size(i), in.stride(i), out.stride(i)});
      continue;
    }
    const auto k = at - dims.begin();
    d.sizes[k] = k + 1 == d.rank ? last : in.size(i);
    d.stride_in[k] = in.stride(i), d.stride_out[k] = out.stride(i);
  }
  fft::ordered(others);
  if (others.size() > 1) return false;
  d.batch = others[0].size, d.batch_in = others[0].in, d.batch_out = others[0].out;
  return fft::served_by_others(d, in.bytes(), const_cast<char*>(out.bytes()));
}

void c2c(Args args) {
  TensorView x = args.tensor(0);
  MutView y = args.result(0);
  if (x.numel() == 0) return;
  visit<complexes>(x.dtype(), [&]<class C>() {
    using T = typename C::value_type;
    Numbers<T> in(x), out(y);
    Span dims = args.ints(1);
    if (elsewhere<T>(AJ_FFT_COMPLEX, dims, dims.empty() ? 0 : x.size(dims.back()), x, y,
                     args.flag(2), args.real(3)))
      return;
    if (!dims.empty())
      return in_blocks(dims, std::array{in, out}, [&](const auto& some, bool cold) {
        along_all(dims, some[0], some[1], args.flag(2), args.real(3), cold);
      });
    for (Numbers<T>* one : {&in, &out}) one->shape.push_back(1), one->strides.push_back(2);
    along(Kind::complex, int64_t(in.shape.size()) - 1, 1, in, out, true, args.real(3), false);
  });
}

// Behind the half that is there: the conjugate of what lies opposite in every dimension.
template <class T>
void mirror(Span dims, const Numbers<T>& y) {
  const int64_t last = dims.back(), n = y.shape[size_t(last)], step = y.strides[size_t(last)];
  int64_t lines = 1;
  for (size_t i = 0; i < y.shape.size(); ++i)
    if (int64_t(i) != last) lines *= y.shape[i];
  parallel_for(lines, grain_of(n), [&](int64_t lo, int64_t hi) {
    for (; lo < hi; ++lo) {
      int64_t rest = lo, to = 0, from = 0;
      for (size_t d = y.shape.size(); d-- > 0;) {
        if (int64_t(d) == last) continue;
        const int64_t at = rest % y.shape[d];
        const bool turned = std::ranges::find(dims, int64_t(d)) != dims.end();
        rest /= y.shape[d];
        to += at * y.strides[d];
        from += (turned && at ? y.shape[d] - at : at) * y.strides[d];
      }
      for (int64_t k = n / 2 + 1; k < n; ++k) {
        y.at[to + k * step] = y.at[from + (n - k) * step];
        y.at[to + k * step + 1] = -y.at[from + (n - k) * step + 1];
      }
    }
  });
}

void r2c(Args args) {
  TensorView x = args.tensor(0);
  MutView y = args.result(0);
  if (x.numel() == 0) return;
  visit<floating>(x.dtype(), [&]<class T>() {
    Span dims = args.ints(1);
    const int64_t last = dims.back(), n = x.size(last);
    const bool forward = args.flag(3);
    Numbers<T> out(y), half = out;
    half.shape[size_t(last)] = n / 2 + 1;
    if (elsewhere<T>(AJ_FFT_TO_HALF, dims, n, x, y, forward, args.real(4))) {
      if (!args.flag(2)) mirror(dims, out);
      return;
    }
    in_blocks(dims, std::array{Numbers<T>(x), half}, [&](const auto& some, bool cold) {
      along(Kind::to_half, last, n, some[0], some[1], forward, args.real(4), cold);
      cold = bytes_of(std::array{some[1]}) > kCached;
      along_all(dims.first(dims.size() - 1), some[1], some[1], forward, 1, cold);
    });
    if (!args.flag(2)) mirror(dims, out);
  });
}

void c2r(Args args) {
  TensorView x = args.tensor(0);
  MutView y = args.result(0);
  if (y.numel() == 0) return;
  visit<complexes>(x.dtype(), [&]<class C>() {
    using T = typename C::value_type;
    Span dims = args.ints(1);
    const bool forward = args.flag(3);
    if (elsewhere<T>(AJ_FFT_FROM_HALF, dims, args.integer(2), x, y, forward, args.real(4))) return;
    const auto to_real = [&](const Numbers<T>& in, const Numbers<T>& out) {
      along(Kind::from_half, dims.back(), args.integer(2), in, out, forward, args.real(4), false);
    };
    if (dims.size() == 1) return to_real(Numbers<T>(x), Numbers<T>(y));
    const std::unique_ptr<aj_tensor, decltype(core().release)> between(
        new_tensor(x.device(), x.dtype(), x.shape()), core().release);
    const std::array whole{Numbers<T>(x), Numbers<T>(TensorView(between.get())), Numbers<T>(y)};
    in_blocks(dims, whole, [&](const auto& some, bool cold) {
      along_all(dims.first(dims.size() - 1), some[0], some[1], forward, 1, cold);
      to_real(some[1], some[2]);
    });
  });
}

}  // namespace

AJ_KERNELS(fft_kernels) = {
    {"_::fft_c2c", custom<c2c, complexes>},
    {"_::fft_r2c", custom<r2c, floating>},
    {"_::fft_c2r", custom<c2r, complexes>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
