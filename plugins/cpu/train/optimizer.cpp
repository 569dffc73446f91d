// plugins/cpu/train/optimizer.cpp: steps of optimizers over all parameters in one pass, each
// element read and written once; the norm of many gradients, and their scaling.
#include "optimizer.hpp"

#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/view.hpp>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <limits>
#include <vector>

#include "vector/stored.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/train/optimizer.cpp"
#include "vector/simd.hpp"

// Plain loops: the compiler makes vectors of them for each instruction set.
#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {

template <bool Momentum, bool First, bool Nesterov, bool Decay, class T>
void sgd_loop(const SgdNumbers<T>& s, int64_t n, T* __restrict p, const T* __restrict g,
              T* __restrict kept) {
  const T lr = s.lr, momentum = s.momentum, undampened = s.undampened, decay = s.decay,
          sign = s.sign;
  for (int64_t i = 0; i < n; ++i) {
    T grad = g[i] * sign;
    if constexpr (Decay) grad = grad + decay * p[i];
    if constexpr (Momentum) {
      T v = First ? grad : kept[i] * momentum + grad * undampened;
      kept[i] = v;
      grad = Nesterov ? grad + momentum * v : v;
    }
    p[i] = p[i] - lr * grad;
  }
}

template <class T>
void sgd(const SgdNumbers<T>& s, int64_t n, Row<T> r) {
  auto go = [&]<bool Decay>() {
    if (!s.with_momentum) return sgd_loop<false, false, false, Decay>(s, n, r.p, r.g, r.state[0]);
    if (s.first && s.nesterov) return sgd_loop<true, true, true, Decay>(s, n, r.p, r.g, r.state[0]);
    if (s.first) return sgd_loop<true, true, false, Decay>(s, n, r.p, r.g, r.state[0]);
    if (s.nesterov) return sgd_loop<true, false, true, Decay>(s, n, r.p, r.g, r.state[0]);
    return sgd_loop<true, false, false, Decay>(s, n, r.p, r.g, r.state[0]);
  };
  s.decay != T(0) ? go.template operator()<true>() : go.template operator()<false>();
}

template <bool Amsgrad, bool Decay, class T>
void adam_loop(const AdamNumbers<T>& s, int64_t n, T* __restrict p, const T* __restrict g,
               T* __restrict mean, T* __restrict square, T* __restrict largest) {
  const T toward_mean = s.toward_mean, beta2 = s.beta2, toward_square = s.toward_square,
          eps = s.eps, decay = s.decay, shrink = s.shrink, sign = s.sign, step = s.step,
          root = s.root;
  for (int64_t i = 0; i < n; ++i) {
    T x = p[i] * shrink, grad = g[i] * sign;
    if constexpr (Decay) grad = grad + decay * x;
    T m = mean[i] + (grad - mean[i]) * toward_mean,
      v = square[i] * beta2 + grad * grad * toward_square;
    mean[i] = m;
    square[i] = v;
    if constexpr (Amsgrad) {
      T top = largest[i];
      v = top > v || top != top ? top : v;
      largest[i] = v;
    }
    p[i] = x - step * m / (std::sqrt(v) * root + eps);
  }
}

template <class T>
void adam(const AdamNumbers<T>& s, int64_t n, Row<T> r) {
  T *m = r.state[0], *v = r.state[1], *top = r.state[2];
  if (s.decay != T(0))
    s.amsgrad ? adam_loop<true, true>(s, n, r.p, r.g, m, v, top)
              : adam_loop<false, true>(s, n, r.p, r.g, m, v, top);
  else
    s.amsgrad ? adam_loop<true, false>(s, n, r.p, r.g, m, v, top)
              : adam_loop<false, false>(s, n, r.p, r.g, m, v, top);
}

template <class T>
void scale(const T& by, int64_t n, Row<T> r) {
  for (int64_t i = 0; i < n; ++i) r.p[i] = r.p[i] * by;
}

// Tells whether all elements were finite before.
template <class T>
bool unscale(const T& by, int64_t n, Row<T> r) {
  constexpr T most = std::numeric_limits<T>::max();
  int bad = 0;
  for (int64_t i = 0; i < n; ++i) {
    bad |= !(std::abs(r.p[i]) <= most);
    r.p[i] = r.p[i] * by;
  }
  return !bad;
}

template <Norm Kind, class T>
T join(T a, T x) {
  if constexpr (Kind == Norm::sum_of_squares) return a + x * x;
  T size = std::abs(x);
  if constexpr (Kind == Norm::sum) return a + size;
  return size > a || size != size ? size : a;
}

// A leaf of the sum: 64 lanes, folded; where float is too narrow for squares, in double.
template <Norm Kind, class T>
double norm_leaf(const T* x, int64_t n) {
  T lane[64] = {};
  int64_t i = 0;
  for (; i + 64 <= n; i += 64)
    for (int j = 0; j < 64; ++j) lane[j] = join<Kind>(lane[j], x[i + j]);
  for (int j = 0; i < n; ++i, ++j) lane[j] = join<Kind>(lane[j], x[i]);
  for (int width = 32; width > 0; width /= 2)
    for (int j = 0; j < width; ++j)
      lane[j] =
          Kind == Norm::largest ? join<Kind>(lane[j], lane[j + width]) : lane[j] + lane[j + width];
  if (Kind == Norm::largest || std::isfinite(lane[0])) return double(lane[0]);
  double wide = 0;
  for (i = 0; i < n; ++i) wide = join<Kind>(wide, double(x[i]));
  return wide;
}

template <class T>
double norm_part(Norm kind, const T* x, int64_t n) {
  constexpr int64_t leaf = 4096;
  double all = 0;
  for (int64_t at = 0; at < n; at += leaf) {
    int64_t m = std::min(leaf, n - at);
    if (kind == Norm::sum_of_squares)
      all += norm_leaf<Norm::sum_of_squares>(x + at, m);
    else if (kind == Norm::sum)
      all += norm_leaf<Norm::sum>(x + at, m);
    else
      all = join<Norm::largest>(all, norm_leaf<Norm::largest>(x + at, m));
  }
  return all;
}

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {

using List = std::span<aj_tensor* const>;

// Every element of its memory once, in some order of the dimensions.
bool gapless(TensorView t) {
  if (t.dense()) return true;
  int64_t order[64], expected = 1, n = t.ndim();
  for (int64_t d = 0; d < n; ++d) order[d] = d;
  std::sort(order, order + n, [&](int64_t a, int64_t b) { return t.stride(a) < t.stride(b); });
  for (int64_t i = 0; i < n; ++i) {
    int64_t d = order[i];
    if (t.size(d) == 1) continue;
    if (t.stride(d) != expected) return false;
    expected *= t.size(d);
  }
  return true;
}

bool same_places(TensorView a, TensorView b) {
  return (a.dense() && b.dense()) || std::ranges::equal(a.strides(), b.strides());
}

// Lists of tensors of one dtype S as flat memory; those that lie otherwise are copied, and back.
template <class S>
class Flat {
 public:
  Flat(std::initializer_list<List> lists, uint32_t written)
      : count(lists.begin()->size()), sizes_(count), rows_(count), written_(written) {
    for (size_t i = 0; i < count; ++i) {
      TensorView first((*lists.begin())[i]);
      sizes_[i] = first.numel();
      total += sizes_[i];
      bool good = gapless(first);
      for (List l : lists) good = good && (l.empty() || same_places(first, TensorView(l[i])));
      int place = 0;
      for (List l : lists) set(i, place++, l.empty() ? nullptr : l[i], good);
    }
  }
  void commit() {
    for (auto& [copy, back] : copies_)
      if (back) copy.commit();
  }
  const Row<S>& row(size_t i) const { return rows_[i]; }
  int64_t size(size_t i) const { return sizes_[i]; }

  // f(tensor, from, to, block) for all blocks of all tensors.
  template <class F>
  void each_block(F f) {
    constexpr int64_t alone = 65536;  // waking a thread would take longer
    std::vector<int64_t> ends(count);
    int64_t blocks = 0;
    for (size_t i = 0; i < count; ++i)
      ends[i] = blocks += (sizes_[i] + kStepBlock - 1) / kStepBlock;
    auto some = [&](int64_t lo, int64_t hi) {
      size_t i = size_t(std::upper_bound(ends.begin(), ends.end(), lo) - ends.begin());
      for (int64_t b = lo; b < hi; ++b) {
        while (ends[i] <= b) ++i;
        int64_t from = (b - (i ? ends[i - 1] : 0)) * kStepBlock;
        f(i, from, std::min(from + kStepBlock, sizes_[i]), b);
      }
    };
    total <= alone ? some(0, blocks) : parallel_for(blocks, 2, some);
  }
  int64_t blocks() const {
    int64_t n = 0;
    for (int64_t s : sizes_) n += (s + kStepBlock - 1) / kStepBlock;
    return n;
  }

  const size_t count;
  int64_t total = 0;

 private:
  void set(size_t i, int place, aj_tensor* t, bool good) {
    S* data = nullptr;
    if (t && good) {
      data = MutView(t).data<S>();
    } else if (t) {
      auto& kept = copies_.emplace_back(Dense<S>(MutView(t), true), written_ >> place & 1);
      data = kept.first.data();
    }
    (place == 0 ? rows_[i].p : place == 1 ? rows_[i].g : rows_[i].state[place - 2]) = data;
  }
  std::vector<int64_t> sizes_;
  std::vector<Row<S>> rows_;
  std::deque<std::pair<Dense<S>, bool>> copies_;
  uint32_t written_;
};

// f(n, row) on [from, to) of a row; halves go through float in parts that fit the first-level
// cache.
template <class S, class F>
void on_part(const Row<S>& r, int64_t from, int64_t to, F f) {
  using T = Math<S>;
  if constexpr (std::is_same_v<S, T>) {
    Row<T> part = {};
    part.p = r.p + from;
    if (r.g) part.g = r.g + from;
    for (int k = 0; k < 3; ++k)
      if (r.state[k]) part.state[k] = r.state[k] + from;
    f(to - from, part);
  } else {
    constexpr int64_t step = 512;
    T room[5][step];
    for (; from < to; from += step) {
      int64_t n = std::min(step, to - from);
      Row<T> part = {};
      for (int k = 0; k < 5; ++k) {
        if (!r.at(k)) continue;
        for (int64_t i = 0; i < n; ++i) room[k][i] = T(r.at(k)[from + i]);
        (k == 0 ? part.p : k == 1 ? part.g : part.state[k - 2]) = room[k];
      }
      f(n, part);
      for (int k = 0; k < 5; ++k)
        for (int64_t i = 0; k != 1 && r.at(k) && i < n; ++i) r.at(k)[from + i] = S(room[k][i]);
    }
  }
}

void fused_sgd(Args args) {
  List params = args.tensors(0);
  if (params.empty()) return;
  visit<stored_floating>(TensorView(params[0]).dtype(), [&]<class S>() {
    using T = Math<S>;
    SgdNumbers<T> s = {};
    s.lr = T(args.real(3)), s.momentum = T(args.real(4)), s.undampened = T(1 - args.real(5));
    s.decay = T(args.real(6)), s.nesterov = args.flag(7), s.sign = T(args.flag(8) ? -1 : 1);
    s.first = args.flag(9), s.with_momentum = args.real(4) != 0;
    List kept = s.with_momentum ? args.tensors(2) : List();
    Flat<S> all({params, args.tensors(1), kept}, 0b101);
    auto loop = AJ_SIMD(sgd<T>);
    all.each_block([&](size_t i, int64_t from, int64_t to, int64_t) {
      on_part(all.row(i), from, to, [&](int64_t n, Row<T> r) { loop(s, n, r); });
    });
    all.commit();
  });
}

double count_up(MutView step) {
  if (same(step.dtype(), dtype_of<float>)) return double(*step.data<float>() += 1);
  Dense<double> count(step, true);
  double now = count[0] += 1;
  count.commit();
  return now;
}

void fused_adam(Args args) {
  List params = args.tensors(0), counts = args.tensors(5);
  if (params.empty()) return;
  double lr = args.real(6), beta1 = args.real(7), beta2 = args.real(8), decay = args.real(10);
  bool decoupled = args.flag(11);
  visit<stored_floating>(TensorView(params[0]).dtype(), [&]<class S>() {
    using T = Math<S>;
    AdamNumbers<T> s = {};
    s.toward_mean = T(1 - beta1), s.beta2 = T(beta2), s.toward_square = T(1 - beta2);
    s.eps = T(args.real(9)), s.decay = T(decoupled ? 0 : decay);
    s.shrink = T(decoupled ? 1 - lr * decay : 1), s.sign = T(args.flag(12) ? -1 : 1);
    s.amsgrad = !args.tensors(4).empty();
    Flat<S> all({params, args.tensors(1), args.tensors(2), args.tensors(3), args.tensors(4)},
                0b11101);
    std::vector<AdamNumbers<T>> own(all.count, s);  // counts differ where a gradient was missing
    double last = -1;
    for (size_t i = 0; i < all.count; ++i) {
      double now = count_up(MutView(counts[i]));
      if (now != last) {
        last = now;
        s.step = T(lr / (1 - std::pow(beta1, now)));
        s.root = T(1 / std::sqrt(1 - std::pow(beta2, now)));
      }
      own[i].step = s.step, own[i].root = s.root;
    }
    auto loop = AJ_SIMD(adam<T>);
    all.each_block([&](size_t i, int64_t from, int64_t to, int64_t) {
      on_part(all.row(i), from, to, [&](int64_t n, Row<T> r) { loop(own[i], n, r); });
    });
    all.commit();
  });
}

void fused_scale(Args args) {
  List tensors = args.tensors(0);
  if (tensors.empty()) return;
  double by = Dense<double>(args.tensor(1))[0];
  if (by == 1) return;  // clipping, mostly: nothing changes
  visit<stored_floating>(TensorView(tensors[0]).dtype(), [&]<class S>() {
    using T = Math<S>;
    Flat<S> all({tensors}, 1);
    auto loop = AJ_SIMD(scale<T>);
    all.each_block([&](size_t i, int64_t from, int64_t to, int64_t) {
      on_part(all.row(i), from, to, [&](int64_t n, Row<T> r) { loop(T(by), n, r); });
    });
    all.commit();
  });
}

void amp_unscale(Args args) {
  List tensors = args.tensors(0);
  if (tensors.empty()) return;
  double by = Dense<double>(args.tensor(2))[0];
  Dense<double> found(MutView(args[1].v.tensor), true);
  std::atomic<bool> bad{false};
  visit<stored_floating>(TensorView(tensors[0]).dtype(), [&]<class S>() {
    using T = Math<S>;
    Flat<S> all({tensors}, 1);
    auto loop = AJ_SIMD(unscale<T>);
    all.each_block([&](size_t i, int64_t from, int64_t to, int64_t) {
      on_part(all.row(i), from, to, [&](int64_t n, Row<T> r) {
        if (!loop(T(by), n, r)) bad.store(true, std::memory_order_relaxed);
      });
    });
    all.commit();
  });
  if (bad) found[0] = 1;
  found.commit();
}

// One number a block, joined in order: the bits depend on the sizes alone.
void total_norm(Args args) {
  List tensors = args.tensors(0);
  double order = args.real(1);
  visit<stored_floating>(TensorView(tensors[0]).dtype(), [&]<class S>() {
    using T = Math<S>;
    Norm kind = order == 2 ? Norm::sum_of_squares : order == 1 ? Norm::sum : Norm::largest;
    Flat<S> all({tensors}, 0);
    std::vector<double> parts(size_t(all.blocks()), 0);
    auto part = AJ_SIMD(norm_part<T>);
    auto joined = [&](double a, double b) {
      if (kind != Norm::largest) return a + b;
      return b > a || b != b ? b : a;
    };
    all.each_block([&](size_t i, int64_t from, int64_t to, int64_t block) {
      on_part(all.row(i), from, to, [&](int64_t n, Row<T> r) {
        parts[block] = joined(parts[block], part(kind, r.p, n));
      });
    });
    double sum = 0;
    for (double p : parts) sum = joined(sum, p);
    Dense<double> out(args.result(0));
    out[0] = kind == Norm::sum_of_squares ? std::sqrt(sum) : sum;
    out.commit();
  });
}

}  // namespace

AJ_KERNELS(optimizer_kernels) = {
    {"fused_sgd_", custom<fused_sgd, stored_floating>},
    {"fused_adam_", custom<fused_adam, stored_floating>},
    {"fused_scale_", custom<fused_scale, stored_floating>},
    {"amp_unscale_", custom<amp_unscale, stored_floating>},
    {"total_norm", custom<total_norm, stored_floating>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
#endif
