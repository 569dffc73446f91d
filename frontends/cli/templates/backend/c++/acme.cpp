// acme.cpp: a device of its own for Adjoin, written with the kit: memory, copies, fifty kernels.
//
// Its memory is the host's and its kernels run on the calling thread, so that it works at once.
// Replace, in this order: mem_alloc, mem_free, copy and fill by the device's own (drop the flag
// AJ_DEV_HOST_MEMORY then); kernels, one after the other; streams and events last (drop
// AJ_DEV_SYNCHRONOUS). ./check.sh tells after every step what still conforms.
#include <adjoin/kit/choosers.hpp>
#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/indexing.hpp>
#include <adjoin/kit/kit.hpp>
#include <adjoin/kit/scalar.hpp>
#include <algorithm>
#include <cstdlib>

namespace acme {
namespace {

using namespace adjoin::kit;  // NOLINT: this file is made of it

// The device.

constexpr uint64_t kAlign = 64;

aj_status* count(void*, int32_t* out) {
  *out = 1;
  return nullptr;
}

aj_status* props(void*, int32_t, aj_device_props* io) {
  aj_device_props known = {};
  known.struct_size = io->struct_size;
  known.min_alignment = kAlign;
  known.multiprocessors = 1;
  std::snprintf(known.name, sizeof known.name, "acme on the host");
  std::memcpy(io, &known, std::min<size_t>(io->struct_size, sizeof known));
  return nullptr;
}

aj_status* mem_alloc(void*, int32_t, uint64_t bytes, uint32_t, void** out) {
  uint64_t padded = (bytes / kAlign + 1) * kAlign;
  *out = padded > bytes ? std::aligned_alloc(kAlign, padded) : nullptr;
  if (*out) return nullptr;
  return fail(AJ_OUT_OF_MEMORY, "acme: out of memory: asked for ", bytes, " bytes");
}

aj_status* mem_free(void*, int32_t, void* p, uint64_t, uint32_t) {
  std::free(p);
  return nullptr;
}

// To, from and within the device: c->dst_device and c->src_device tell which.
aj_status* copy(void*, const aj_copy* c) {
  for (uint64_t row = 0; row < c->height; ++row)
    std::memcpy(static_cast<char*>(c->dst) + row * c->dst_pitch,
                static_cast<const char*>(c->src) + row * c->src_pitch, c->width);
  return nullptr;
}

aj_status* fill(void*, int32_t, void* p, uint64_t offset, const void* pattern, uint64_t width,
                uint64_t bytes, void*) {
  if (width == 0) return fail(AJ_INVALID_ARGUMENT, "acme: the pattern to fill with is empty");
  for (uint64_t at = 0; at < bytes; at += width)
    std::memcpy(static_cast<char*>(p) + offset + at, pattern, std::min(width, bytes - at));
  return nullptr;
}

// Kernels of single elements: kit loops over functors. copy_ and fill_ move any dtype.

struct Keep {
  template <class T>
  T operator()(T x) const {
    return x;
  }
};

aj_status* assign(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    visit<stored>(p.ops[0].dtype, [&]<class To>() {
      visit<stored>(p.ops[1].dtype, [&]<class From>() {
        for_rows(p, [&](char** at, int64_t n) {
          for (int64_t i = 0; i < n; ++i)
            *reinterpret_cast<To*>(at[0] + i * row_stride(p, 0)) =
                cast<To>(*reinterpret_cast<const From*>(at[1] + i * row_stride(p, 1)));
        });
      });
    });
  });
}

aj_status* where(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    visit<all_types>(p.compute, [&]<class T>() {
      for_rows(p, [&](char** at, int64_t n) {
        for (int64_t i = 0; i < n; ++i) {
          bool yes = *reinterpret_cast<const bool*>(at[1] + i * row_stride(p, 1));
          *reinterpret_cast<T*>(at[0] + i * row_stride(p, 0)) =
              *reinterpret_cast<const T*>(at[yes ? 2 : 3] + i * row_stride(p, yes ? 2 : 3));
        }
      });
    });
  });
}

// Reductions: the plan's innermost nreduced dimensions are gone through for every output.

template <class T, class Begin, class Step, class End>
void for_outputs(const aj_plan& p, Begin begin, Step step, End end) {
  int64_t n = 1, kept = 1;
  for (uint32_t d = 0; d < p.ndim; ++d) (d < p.nreduced ? n : kept) *= p.sizes[d];
  auto offset = [&](const aj_operand& o, uint32_t d, uint32_t last, int64_t i) {
    int64_t at = 0;
    for (; d < last; i /= p.sizes[d++]) at += i % p.sizes[d] * o.strides[d];
    return at;
  };
  const aj_operand& in = p.ops[p.nout];
  for (int64_t k = 0; k < kept; ++k) {
    begin();
    const char* from = static_cast<const char*>(in.data) + offset(in, p.nreduced, p.ndim, k);
    for (int64_t i = 0; i < n; ++i)
      step(*reinterpret_cast<const T*>(from + offset(in, 0, p.nreduced, i)), i);
    end(static_cast<char*>(p.ops[0].data) + offset(p.ops[0], p.nreduced, p.ndim, k), n);
  }
}

template <class T>
using Wide = std::conditional_t<std::is_same_v<T, float>, double, T>;

template <bool Mean>
aj_status* sum(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    visit<std::conditional_t<Mean, floating, reals>>(p.compute, [&]<class T>() {
      Wide<T> total = 0;
      for_outputs<T>(
          p, [&] { total = 0; }, [&](T x, int64_t) { total = Wide<T>(total + Wide<T>(x)); },
          [&](char* to, int64_t n) {
            *reinterpret_cast<T*>(to) = T(Mean ? total / Wide<T>(n) : total);
          });
    });
  });
}

// The first of the best, and a NaN is better than all.
template <class Better, bool Index>
aj_status* extreme(void*, aj_call* call) {
  return guard(call, [&] {
    visit<reals>(call->plan->compute, [&]<class T>() {
      T best = 0;
      int64_t at = -1;
      for_outputs<T>(
          *call->plan, [&] { at = -1; },
          [&](T x, int64_t i) {
            if (at < 0 || (best == best && (x != x || Better()(x, best)))) best = x, at = i;
          },
          [&](char* to, int64_t) {
            if (Index)
              *reinterpret_cast<int64_t*>(to) = at;
            else
              *reinterpret_cast<T*>(to) = best;
          });
    });
  });
}

// Kernels of whole tensors. Dense<T> is a plain array: the tensor's own memory where it is that
// already, else a copy that commit() writes back.

void matrix_product(Args args) {
  TensorView a = args.tensor(0), b = args.tensor(1);
  MutView out = args.result(0);
  int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1),
          rows = out.numel() / std::max<int64_t>(n, 1);
  visit<floating>(a.dtype(), [&]<class T>() {
    Dense<T> x(a), y(b), z(out);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < n; ++j) {
        const T *row = &x[i * k], *column = &y[i / m * k * n + j];
        Wide<T> total = 0;
        for (int64_t t = 0; t < k; ++t) total += Wide<T>(row[t]) * Wide<T>(column[t * n]);
        z[i * n + j] = T(total);
      }
    z.commit();
  });
}

// Every pair of pixels that meet; transposed writes the big image instead of the small one.
void convolution(Args args) {
  TensorView x = args.tensor(0), w = args.tensor(1), bias = args.tensor(2);
  MutView out = args.result(0);
  bool back = args.flag(6);
  ConvGeometry g(back ? TensorView(x) : TensorView(out), back ? TensorView(out) : TensorView(x), w,
                 args.ints(3), args.ints(4), args.ints(5), args.integer(8));
  int64_t taps = g.taps(), small = g.small_pixels(), big = g.big_pixels();
  visit<floating>(x.dtype(), [&]<class T>() {
    Dense<T> in(x), weight(w), to(out);
    std::vector<Wide<T>> total(size_t(out.numel()), 0);
    for (int64_t s = 0; s < g.batch * g.groups * g.small_c; ++s) {
      int64_t channel = s % (g.groups * g.small_c), image = s / g.small_c;
      for (int64_t b = 0; b < g.big_c; ++b)
        for (int64_t p = 0; p < small; ++p)
          for (int64_t k = 0; k < taps; ++k) {
            int64_t q = g.meet(p, k);
            if (q < 0) continue;
            int64_t near = s * small + p, far = (image * g.big_c + b) * big + q;
            total[size_t(back ? far : near)] += Wide<T>(in[back ? near : far]) *
                                                Wide<T>(weight[(channel * g.big_c + b) * taps + k]);
          }
    }
    int64_t pixels = back ? big : small;
    for (int64_t i = 0; i < out.numel(); ++i) to[i] = T(total[size_t(i)]);
    if (bias) {
      Dense<T> add(bias);
      for (int64_t i = 0; i < out.numel(); ++i) to[i] += add[i / pixels % out.size(1)];
    }
    to.commit();
  });
}

void max_pool(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0), indices = args.result(1);
  PoolGeometry g(x.shape(), out.shape(), args.ints(1), args.ints(2), args.ints(3));
  visit<floating>(x.dtype(), [&]<class T>() {
    Dense<T> in(x), best(out);
    Dense<int64_t> place(indices);
    for (int64_t i = 0; i < out.numel(); ++i) {
      int64_t plane = i / g.out_pixels(), o = i % g.out_pixels(), at = -1;
      for (int64_t k = 0; k < g.kernel[0] * g.kernel[1]; ++k) {
        int64_t h = o / g.out[1] * g.stride[0] - g.pad[0] + k / g.kernel[1] * args.ints(4)[0];
        int64_t w = o % g.out[1] * g.stride[1] - g.pad[1] + k % g.kernel[1] * args.ints(4)[1];
        if (h < 0 || w < 0 || h >= g.in[0] || w >= g.in[1]) continue;
        T v = in[plane * g.in_pixels() + h * g.in[1] + w];
        if (at < 0 || v > best[i] || v != v) best[i] = v, at = h * g.in[1] + w;
      }
      place[i] = at;
    }
    best.commit(), place.commit();
  });
}

template <class T>
void store(MutView to, const std::vector<T>& v) {
  if (to.numel() != int64_t(v.size())) return;  // not wanted by the caller
  Dense<T> out(to);
  std::copy(v.begin(), v.end(), out.data());
  out.commit();
}

// input, weight, bias, running mean and variance, training, momentum, eps -> out, mean, 1 /
// deviation
void batch_norm(Args args) {
  TensorView x = args.tensor(0);
  bool training = args.flag(5);
  double momentum = args.real(6), eps = args.real(7);
  Lines l(x.shape(), 1);
  size_t channels = size_t(l.size);
  double each = double(l.outer * l.inner);
  Dense<double> in(x), y(args.result(0));
  std::vector<double> mean(channels, 0), var(channels, 0), rstd(channels);
  auto channel = [&](int64_t i) { return size_t(i / l.inner % l.size); };
  if (training) {
    for (int64_t i = 0; i < x.numel(); ++i) mean[channel(i)] += in[i] / each;
    for (int64_t i = 0; i < x.numel(); ++i)
      var[channel(i)] += (in[i] - mean[channel(i)]) * (in[i] - mean[channel(i)]) / each;
  } else {
    Dense<double> m(args.tensor(3)), v(args.tensor(4));
    std::copy_n(m.data(), channels, mean.begin());
    std::copy_n(v.data(), channels, var.begin());
  }
  for (size_t c = 0; c < channels; ++c) rstd[c] = 1 / std::sqrt(var[c] + eps);
  std::vector<double> w(channels, 1), b(channels, 0);
  if (TensorView t = args.tensor(1)) std::copy_n(Dense<double>(t).data(), channels, w.begin());
  if (TensorView t = args.tensor(2)) std::copy_n(Dense<double>(t).data(), channels, b.begin());
  for (int64_t i = 0; i < x.numel(); ++i) {
    size_t c = channel(i);
    y[i] = (in[i] - mean[c]) * rstd[c] * w[c] + b[c];
  }
  y.commit();
  store(args.result(1), mean);
  store(args.result(2), rstd);
  for (uint32_t k : {3u, 4u}) {
    if (!training || args.none(k)) continue;
    Dense<double> running(MutView(args[k].v.tensor), true);
    for (size_t c = 0; c < channels; ++c) {
      double now = k == 3 ? mean[c] : var[c] * each / (each - 1);
      running[int64_t(c)] += momentum * (now - running[int64_t(c)]);
    }
    running.commit();
  }
}

template <bool Log>
void softmax(Args args) {
  TensorView x = args.tensor(0);
  Lines l(x.shape(), args.integer(1));
  Dense<double> in(x), y(args.result(0));
  for (int64_t k = 0; k < l.outer * l.inner; ++k) {
    int64_t at = k / l.inner * l.size * l.inner + k % l.inner;
    double top = -INFINITY, total = 0;
    for (int64_t i = 0; i < l.size; ++i) top = scalar::Maximum()(top, in[at + i * l.inner]);
    for (int64_t i = 0; i < l.size; ++i) total += std::exp(in[at + i * l.inner] - top);
    for (int64_t i = at; i < at + l.size * l.inner; i += l.inner)
      y[i] = Log ? in[i] - top - std::log(total) : std::exp(in[i] - top) / total;
  }
  y.commit();
}

// Calls f(i, place, from) for element i of the index: place is the element of `shape` that it
// names, from the element of `source` at its own coordinates.
template <class F>
void for_named(TensorView index, Span shape, Span source, int64_t dim, F f) {
  Dense<int64_t> values(index);
  std::vector<int64_t> steps = dense_strides(shape), source_steps = dense_strides(source);
  int64_t n = index.ndim();
  if (dim < 0) dim += n;
  check_indices(values.data(), index.numel(), n ? shape[size_t(dim)] : 1, dim);
  for (int64_t i = 0; i < index.numel(); ++i) {
    int64_t place = 0, from = 0, rest = i;
    for (int64_t d = n - 1; d >= 0; rest /= index.size(d--)) {
      int64_t c = rest % index.size(d);
      place += (d == dim ? values[i] : c) * steps[size_t(d)];
      if (!source.empty()) from += c * source_steps[size_t(d)];
    }
    f(i, place, from);
  }
}

void gather(Args args) {
  TensorView x = args.tensor(0), index = args.tensor(2);
  MutView out = args.result(0);
  visit<all_types>(x.dtype(), [&]<class T>() {
    Dense<T> in(x), to(out);
    for_named(index, x.shape(), {}, args.integer(1),
              [&](int64_t i, int64_t at, int64_t) { to[i] = in[at]; });
    to.commit();
  });
}

void scatter_add(Args args) {
  TensorView x = args.tensor(0), index = args.tensor(2), src = args.tensor(3);
  MutView out = args.result(0);
  visit<floating>(x.dtype(), [&]<class T>() {
    Dense<T> start(x), to(out), from(src);
    if (start.data() != to.data()) std::copy_n(start.data(), x.numel(), to.data());
    for_named(index, x.shape(), src.shape(), args.integer(1),
              [&](int64_t, int64_t at, int64_t i) { to[at] += from[i]; });
    to.commit();
  });
}

constexpr uint32_t kCasts = AJ_KERNEL_CASTS;  // reads and writes operands in their own dtypes
const Kernel kernels[] = {
    {"copy_", {&assign, stored::mask, kCasts}},
    {"fill_", {&assign, stored::mask, kCasts}},
    {"where", {&where, all_types::own_mask, 0}},
    {"abs", unary<scalar::Abs, reals>},
    {"neg", unary<scalar::Neg, reals>},
    {"sign", unary<scalar::Sign, reals>},
    {"square", unary<scalar::Square, reals>},
    {"reciprocal", unary<scalar::Reciprocal, floating>},
    {"exp", unary<scalar::Exp, floating>},
    {"log", unary<scalar::Log, floating>},
    {"log1p", unary<scalar::Log1p, floating>},
    {"sqrt", unary<scalar::Sqrt, floating>},
    {"rsqrt", unary<scalar::Rsqrt, floating>},
    {"sin", unary<scalar::Sin, floating>},
    {"cos", unary<scalar::Cos, floating>},
    {"tanh", unary<scalar::Tanh, floating>},
    {"sigmoid", unary<scalar::Sigmoid, floating>},
    {"relu", unary<scalar::Relu, reals>},
    {"floor", unary<scalar::Floor, reals>},
    {"logical_not", unary<scalar::LogicalNot, all_types>},
    {"isnan", unary<scalar::IsNan, all_types>},
    {"add", binary<AddChooser, reals_bool>},
    {"sub", binary<SubChooser, reals>},
    {"mul", binary<scalar::Mul, reals_bool>},
    {"div", binary<DivChooser, reals>},
    {"pow", binary<PowChooser, reals>},
    {"maximum", binary<scalar::Maximum, reals_bool>},
    {"minimum", binary<scalar::Minimum, reals_bool>},
    {"eq", binary<scalar::Eq, reals_bool>},
    {"ne", binary<scalar::Ne, reals_bool>},
    {"lt", binary<scalar::Lt, reals_bool>},
    {"le", binary<scalar::Le, reals_bool>},
    {"gt", binary<scalar::Gt, reals_bool>},
    {"ge", binary<scalar::Ge, reals_bool>},
    {"logical_and", binary<scalar::LogicalAnd, all_types>},
    {"logical_or", binary<scalar::LogicalOr, all_types>},
    {"lerp", ternary<scalar::Lerp, floating>},
    {"addcmul", ternary<AddCMulChooser, reals>},
    {"addcdiv", ternary<AddCDivChooser, floating>},
    {"sum", {&sum<false>, reals::own_mask, 0}},
    {"mean", {&sum<true>, floating::own_mask, 0}},
    {"amax", {&extreme<scalar::Gt, false>, reals::own_mask, 0}},
    {"amin", {&extreme<scalar::Lt, false>, reals::own_mask, 0}},
    {"argmax", {&extreme<scalar::Gt, true>, reals::own_mask, 0}},
    {"argmin", {&extreme<scalar::Lt, true>, reals::own_mask, 0}},
    {"mm", custom<matrix_product, floating>},
    {"bmm", custom<matrix_product, floating>},
    {"convolution", custom<convolution, floating>},
    {"max_pool2d_with_indices", custom<max_pool, floating>},
    {"batch_norm_stats", custom<batch_norm, floating>},
    {"softmax", custom<softmax<false>, floating>},
    {"log_softmax", custom<softmax<true>, floating>},
    {"gather", custom<gather>},
    {"scatter_add", custom<scatter_add, floating>},
    {nullptr, {}},
};

constexpr aj_device_vtbl device = [] {
  aj_device_vtbl v = {};
  v.struct_size = sizeof v;
  v.flags = AJ_DEV_HOST_MEMORY | AJ_DEV_SYNCHRONOUS;
  v.name = AJ_STR_LIT("acme");
  v.count = count;
  v.props = props;
  v.mem_alloc = mem_alloc;
  v.mem_free = mem_free;
  v.copy = copy;
  v.fill = fill;
  return v;
}();

}  // namespace
}  // namespace acme

// Before the plugin is disabled or unloaded: end threads, wait for the device. Here nothing runs
// outside of calls.
extern "C" AJ_EXPORT aj_status* aj_plugin_drain_v1() { return nullptr; }

AJ_PLUGIN(.name = "acme", .version = "0.1.0", .vendor = "", .license = "",
          .provides = "device:acme") {
  plugin.device(acme::device).kernels("acme", acme::kernels);
}
