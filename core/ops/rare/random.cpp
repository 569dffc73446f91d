// core/ops/rare/random.cpp: bodies of random.toml. Each draws (seed, offset) once and hands them to
// a Philox primitive, so the numbers are the same on every device.
#include <adjoin/kit/infer.hpp>
#include <adjoin/kit/memory.hpp>
#include <adjoin/kit/samples.hpp>
#include <cmath>
#include <limits>
#include <numeric>

namespace adjoin::ops {
namespace {

struct Draw {
  int64_t seed, offset;
};

// Blocks for n elements: four 32-bit words each; 64-bit elements take two words.
Draw draw(const Generator& g, const Tensor& t, bool wide) {
  Generator own = g;
  if (!g.get()) {
    aj_object* o = nullptr;
    kit::check(kit::env.core->generator_default(t.device(), &o));
    own = Generator::steal(o);
  }
  int64_t n = t.numel(), blocks = wide ? (n + 1) / 2 : (n + 3) / 4;
  uint64_t seed = 0, offset = 0;
  kit::check(kit::env.core->generator_draw(own.get(), uint64_t(blocks), &seed, &offset));
  return {int64_t(seed), int64_t(offset)};
}

bool is_wide(const Tensor& t) { return t.is_floating_point() && t.dtype().bits == 64; }

void want_floating(const Tensor& t) {
  if (!t.is_floating_point())
    kit::raise(AJ_UNIMPLEMENTED, "the numbers are not whole: input is ", t.dtype(),
               "; make it a floating dtype");
}
void want_probability(double p) { want(p >= 0 && p <= 1, "p must be between 0 and 1: ", p); }

// Not of shapes alone, nor of what a graph will compute.
bool can_look(const kit::Body& b, const Tensor& t) {
  return has_values(t) && !(b.call()->flags & AJ_CALL_CAPTURING);
}

// The smallest and the largest are NaN where any element is, so a NaN is refused too.
void want_probabilities(const kit::Body& b, const Tensor& p) {
  if (!can_look(b, p)) return;
  see_values(p, [](const Tensor& values) {
    if (!values.numel()) return;
    auto [low, high] = aminmax(values);
    double least = low.item<double>(), most = high.item<double>();
    want(least >= 0 && most <= 1, "probabilities must be between 0 and 1; they reach from ", least,
         " to ", most);
  });
}
void want_spread(const kit::Body& b, const Tensor& std) {
  if (std.is_complex() || !can_look(b, std)) return;
  see_values(std, [](const Tensor& values) {
    if (!values.numel()) return;
    double least = amin(values).item<double>();
    want(least >= 0, "std must not be negative: the smallest is ", least);
  });
}

// The largest finite number of a floating dtype.
double largest(DLDataType d) {
  if (d.code == kDLBfloat) return 3.3895313892515355e38;
  return d.bits == 64   ? std::numeric_limits<double>::max()
         : d.bits == 32 ? double(std::numeric_limits<float>::max())
                        : 65504;
}

bool holds(DLDataType d, int64_t n) {
  if (d.code == kDLFloat || d.code == kDLBfloat) return std::abs(double(n)) <= largest(d);
  if (d == boolean || d.code == kDLUInt)
    return n >= 0 && (d.bits == 64 || n < int64_t(1) << (d == boolean ? 1 : d.bits));
  int64_t end = d.bits < 64 ? int64_t(1) << (d.bits - 1) : 0;
  return d.bits == 64 || (n >= -end && n < end);
}

// Integers that the dtype does not hold would fold over.
void want_room(DLDataType d, int64_t low, int64_t last) {
  want(holds(d, low), "from is out of bounds for ", d, ", which does not hold ", low,
       "; take a wider dtype");
  want(holds(d, last), "to - 1 is out of bounds for ", d, ", which does not hold ", last,
       "; take a wider dtype");
}

Tensor uniform(const Tensor& t, double low, double high, const Generator& g) {
  if (t.is_complex()) {  // both parts
    uniform(view_as_real(t), low, high, g);
    return t;
  }
  want_floating(t);
  want(low <= high, "uniform_ expects to return a number of [from, to), and from=", low,
       " is above to=", high);
  double most = largest(t.dtype());
  want(low >= -most && high <= most && high - low <= most,
       "uniform_ expects to-from, from and to "
       "to be numbers of ",
       t.dtype(), ": from=", low, ", to=", high);
  auto [seed, offset] = draw(g, t, is_wide(t));
  return uniform_philox_(t, low, high, seed, offset);
}

Tensor gaussian(const Tensor& t, double mean, double std, const Generator& g) {
  want(std >= 0, "std must not be negative: ", std);
  if (t.is_complex()) {
    Tensor parts = view_as_real(t);
    gaussian(parts, 0, std * 0.7071067811865476, g);
    return mean == 0 ? t : add_(t, mean);
  }
  want_floating(t);
  auto [seed, offset] = draw(g, t, is_wide(t));
  return normal_philox_(t, mean, std, seed, offset);
}

Tensor integers(const Tensor& t, int64_t low, int64_t high, const Generator& g) {
  want(!t.is_complex(), "whole numbers are drawn for tensors of one number each, these are ",
       t.dtype(), "; draw both parts, and join them by complex()");
  want(low < high, "random_ expects 'from' to be less than 'to', but got from=", low,
       " >= to=", high);
  want_room(t.dtype(), low, high - 1);
  bool wide = uint64_t(high) - uint64_t(low) > (uint64_t(1) << 32);
  auto [seed, offset] = draw(g, t, wide);
  return randint_philox_(t, low, high, seed, offset);
}

// The largest integer that random_ draws, and one more.
int64_t end_of(DLDataType d) {
  if (d == boolean) return 2;
  if (d.code == kDLFloat) return int64_t(1) << (d.bits == 64 ? 53 : d.bits == 32 ? 24 : 11);
  if (d.code == kDLBfloat) return int64_t(1) << 8;
  int bits = d.bits - (d.code == kDLInt);
  return bits >= 63 ? std::numeric_limits<int64_t>::max() : int64_t(1) << bits;
}

// generator, dtype, device stand at `at`, `at` + 1, `at` + 2 of a factory.
Tensor fresh(const kit::Body& b, const Ints& size, uint32_t at, DLDataType otherwise) {
  return room(size, b.maybe<DLDataType>(at + 1).value_or(otherwise),
              b.maybe<DLDevice>(at + 2).value_or(b.call()->device));
}
Tensor fresh_like(const kit::Body& b, uint32_t at) {
  const Tensor& t = b.tensor(0);
  if (transforming())
    return room(t.shape(), b.maybe<DLDataType>(at).value_or(t.dtype()), t.device());
  return empty_in_order(t, b.maybe<DLDataType>(at + 1).value_or(t.dtype()),
                        b.maybe<DLDevice>(at + 2).value_or(t.device()),
                        b.maybe<MemoryFormat>(at + 3).value_or(MemoryFormat::preserve));
}
DLDataType default_dtype() { return kit::env.core->default_dtype(); }

// Uniform numbers in t's shape, in the dtype that t computes in.
Tensor uniform_for(const Tensor& t, const Generator& g) {
  DLDataType dtype = t.is_floating_point() && t.dtype().bits >= 32 ? t.dtype() : float32;
  if (t.dtype() == complex128) dtype = float64;
  return uniform(room(t.shape(), dtype, t.device()), 0, 1, g);
}

}  // namespace

// Both parts of complex numbers are drawn.
Tensor parts_of(const Tensor& t) { return t.is_complex() ? view_as_real(t) : t; }

aj_status* uniform_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    uniform(parts_of(b.tensor(0)), b.real(1), b.real(2), b.generator(3));
    b.ret(0, b.tensor(0));
  });
}
aj_status* normal_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret(0, gaussian(b.tensor(0), b.real(1), b.real(2), b.generator(3)));
  });
}
aj_status* random_all_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret(0, integers(b.tensor(0), 0, end_of(b.tensor(0).dtype()), b.generator(1)));
  });
}
aj_status* random_from_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    int64_t end = b.maybe<int64_t>(2).value_or(end_of(b.tensor(0).dtype()));
    b.ret(0, integers(b.tensor(0), b.integer(1), end, b.generator(3)));
  });
}

aj_status* bernoulli_fill_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    want_probability(b.real(1));
    b.ret(0, copy_(b.tensor(0), lt(uniform_for(b.tensor(0), b.generator(2)), b.real(1))));
  });
}
aj_status* bernoulli_fill_tensor_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    want_probabilities(b, b.tensor(1));
    b.ret(0, copy_(b.tensor(0), lt(uniform_for(b.tensor(0), b.generator(2)), b.tensor(1))));
  });
}
aj_status* bernoulli_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    want_floating(b.tensor(0));
    want_probabilities(b, b.tensor(0));
    b.ret(0, to(lt(uniform_for(b.tensor(0), b.generator(1)), b.tensor(0)), b.tensor(0).dtype()));
  });
}

aj_status* exponential_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    want_floating(b.tensor(0));
    want(b.real(1) > 0, "lambd must be above 0: ", b.real(1));
    Tensor u = uniform_for(b.tensor(0), b.generator(2));
    b.ret(0, copy_(b.tensor(0), div(log1p(-u), -b.real(1))));
  });
}
aj_status* geometric_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    double p = b.real(1);
    want(p > 0 && p < 1, "p must be between 0 and 1, both excluded: ", p);
    Tensor u = uniform_for(b.tensor(0), b.generator(2));
    b.ret(0, copy_(b.tensor(0), clamp_min(ceil(div(log1p(-u), std::log1p(-p))), 1)));
  });
}
aj_status* log_normal_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    want(b.real(2) > 0, "std must be above 0: ", b.real(2));
    b.ret(0, copy_(t, exp(gaussian(room(t.shape(), t.dtype(), t.device()), b.real(1), b.real(2),
                                   b.generator(3)))));
  });
}
aj_status* cauchy_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    want_floating(b.tensor(0));
    want(b.real(2) > 0, "sigma must be above 0: ", b.real(2));
    Tensor u = uniform_for(b.tensor(0), b.generator(3));
    b.ret(0, copy_(b.tensor(0), tan((u - 0.5) * 3.141592653589793) * b.real(2) + b.real(1)));
  });
}

aj_status* rand_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret(0, uniform(fresh(b, b.ints(0), 1, default_dtype()), 0, 1, b.generator(1)));
  });
}
aj_status* randn_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret(0, gaussian(fresh(b, b.ints(0), 1, default_dtype()), 0, 1, b.generator(1)));
  });
}
aj_status* randint_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret(0, integers(fresh(b, b.ints(2), 3, int64), b.integer(0), b.integer(1), b.generator(3)));
  });
}
aj_status* rand_like_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor made = fresh_like(b, 1);
    uniform(parts_of(made), 0, 1, b.generator(1));
    b.ret(0, made);
  });
}
aj_status* randn_like_body(void*, aj_call* call) {
  return kit::compose(
      call, [](kit::Body& b) { b.ret(0, gaussian(fresh_like(b, 1), 0, 1, b.generator(1))); });
}
aj_status* randint_like_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret(0, integers(fresh_like(b, 3), b.integer(1), b.integer(2), b.generator(3)));
  });
}

namespace {

// randperm's shuffle of draws that a batch has, one row for each sample: step by step, by ops.
Tensor shuffled(const Tensor& draws, int64_t n) {
  constexpr int64_t half = 31;  // draws are below 2^62: a product with n is made of two halves
  Tensor place = arange(0, n, 1, int64, draws.device()), left = n - place;
  Tensor low = bitwise_and(draws, (int64_t(1) << half) - 1) * left;
  Tensor high = bitwise_right_shift(draws, half) * left + bitwise_right_shift(low, half);
  Tensor other = place + bitwise_right_shift(high, half), order = place;
  for (int64_t k = 0; k < n; ++k) {
    Tensor there = select(other, 0, k), mine = select(order, 0, k);
    Tensor theirs = squeeze(gather(order, 0, unsqueeze(there, 0)), 0);
    order = where(eq(place, there), mine, where(eq(place, k), theirs, order));
  }
  return order;
}

}  // namespace

// The shuffle of Fisher and Yates, its places drawn before: element i changes places with one of
// those from i on. The host does it, since each step needs the one before.
aj_status* randperm_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    constexpr int64_t ahead = 16;
    int64_t n = b.integer(0);
    DLDevice device = b.maybe<DLDevice>(3).value_or(b.call()->device);
    DLDataType dtype = b.maybe<DLDataType>(2).value_or(int64);
    want(n <= end_of(dtype), dtype, " does not hold the integers below ", n,
         "; take a wider dtype");
    Tensor draws = integers(room({n}, int64, device), 0, int64_t(1) << 62, b.generator(1));
    if (!has_values(draws)) return b.ret(0, to(draws, dtype));
    if (!draws.has_memory()) return b.ret(0, to(shuffled(draws, n), dtype));
    draws = to(draws, std::nullopt, DLDevice{kDLCPU, 0});
    Tensor order = empty_dense({n}, int64, DLDevice{kDLCPU, 0});
    const int64_t* draw = draws.data<int64_t>();
    int64_t* at = order.data<int64_t>();
    auto other = [&](int64_t i) {
      return i + int64_t(static_cast<unsigned __int128>(draw[i]) * uint64_t(n - i) >> 62);
    };
    std::iota(at, at + n, int64_t(0));
    for (int64_t i = 0; i < n; ++i) {
      if (i + ahead < n) __builtin_prefetch(at + other(i + ahead), 1);
      std::swap(at[i], at[other(i)]);
    }
    b.ret(0, to(order, dtype, device));
  });
}

aj_status* normal_tensor_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& mean = b.tensor(0);
    Operand std = b.operand(1);
    if (std.is_tensor())
      want_spread(b, std.tensor());
    else
      want(std.number().to_double() >= 0, "std must not be negative: ", std.number().to_double());
    Tensor shape = std.is_tensor() ? mean + std : mean;
    Tensor z = gaussian(room(shape.shape(), mean.dtype(), mean.device()), 0, 1, b.generator(2));
    b.ret(0, z * std + mean);
  });
}
aj_status* normal_float_tensor_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& std = b.tensor(1);
    want_spread(b, std);
    b.ret(0, gaussian(room(std.shape(), std.dtype(), std.device()), 0, 1, b.generator(2)) * std +
                 b.real(0));
  });
}
aj_status* normal_size_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret(0,
          gaussian(fresh(b, b.ints(2), 3, default_dtype()), b.real(0), b.real(1), b.generator(3)));
  });
}

// Without replacement: the largest of weight / exponential. With: how many steps of the running sum
// lie below a number.
aj_status* multinomial_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& w = b.tensor(0);
    int64_t n = b.integer(1), classes = w.ndim() ? w.size(-1) : 0;
    want(w.ndim() == 1 || w.ndim() == 2, "input must have 1 or 2 dimensions: ", shown(w));
    want_floating(w);
    want(n > 0, "num_samples must be above 0: ", n);
    const bool again = b.flag(2);
    auto checked = [&](const Tensor& rows) {
      want(all(logical_and(ge(rows, 0), isfinite(rows))).item<bool>(),
           "weights must be finite and not negative");
      want(all(gt(sum(rows, -1), 0)).item<bool>(), "a row's weights have the sum 0");
      want(again || n > classes || all(ge(sum(gt(rows, 0), -1), n)).item<bool>(), "fewer than ", n,
           " weights of a row are above 0");
    };
    if (can_look(b, w)) see_values(w, checked);
    if (again) {
      Tensor sums = cumsum(w, -1);
      Sizes shape = sizes_of(w);
      shape.back() = n;
      Tensor u = uniform(room(shape, w.dtype(), w.device()), 0, 1, b.generator(3)) *
                 slice(sums, -1, classes - 1, classes);
      Tensor index = searchsorted(sums, u, false, true);  // how many sums are at most u
      return b.ret(0, clamp_max(index, classes - 1));
    }
    want(n <= classes, "cannot draw ", n, " of ", classes, " without replacement");
    Tensor e = -log1p(-uniform_for(w, b.generator(3)));
    b.ret(0, std::get<1>(topk(w / clamp_min(e, 1e-30), n, -1)));
  });
}

// alpha' = -1.7580993408473766 is what SELU tends to; a and c restore mean 0 and variance 1.
aj_status* alpha_dropout_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    double p = b.real(1), low = -1.7580993408473766;
    if (!(p >= 0 && p <= 1))
      kit::raise_as("ValueError", AJ_INVALID_ARGUMENT, "p must be between 0 and 1: ", p);
    if (!b.flag(2) || p == 0) return b.ret(0, t);
    if (p == 1) return b.ret(0, t * 0);
    double a = 1 / std::sqrt((1 - p) * (1 + p * low * low)), c = -a * low * p;
    Tensor kept = ge(uniform_for(t, Generator()), p);
    b.ret(0, where(kept, t, low) * a + c);
  });
}

namespace {

Tensor uniform_of(const Tensor& like, const Sizes& shape, double low, double high,
                  const Generator& g) {
  return uniform_(empty(shape, like.dtype(), like.device()), low, high, g);
}

}  // namespace

aj_status* rrelu_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    double low = b.real(1), high = b.real(2);
    want(low <= high, "lower must not be above upper: ", low, " and ", high);
    if (!b.flag(3)) return b.ret(0, leaky_relu(t, (low + high) / 2));
    Tensor slope = uniform_of(t, sizes_of(t), low, high, b.generator(4));
    b.ret(0, prelu_each(t, slope));
  });
}

aj_status* feature_alpha_dropout_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    double p = b.real(1), low = -1.7580993408473766;  // -scale * alpha of SELU
    want(p >= 0 && p <= 1, "p must be between 0 and 1: ", p);
    if (!b.flag(2) || p == 0) return b.ret(0, t);
    want(t.ndim() >= 2, "input must have batch and channels, its shape is ", shown(t));
    if (p == 1) return b.ret(0, t * 0);
    Sizes shape(size_t(t.ndim()), 1);
    shape[0] = t.size(0);
    shape[1] = t.size(1);
    double a = 1 / std::sqrt((1 - p) * (1 + p * low * low)), c = -a * low * p;
    Tensor kept = ge(uniform_of(t.is_complex() ? real(t) : t, shape, 0, 1, Generator()), p);
    b.ret(0, where(kept, t, low) * a + c);
  });
}

}  // namespace adjoin::ops
