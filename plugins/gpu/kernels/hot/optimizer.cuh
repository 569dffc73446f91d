// plugins/gpu/kernels/hot/optimizer.cuh: steps of optimizers, scales and norms of lists of tensors:
// launches that serve many tensors each. Numbers that are tensors (step counts, scales) stay on the
// device.
#include <cmath>
#include <optional>

#include "../../block.cuh"
#include "../../element.cuh"
#include "../../lists.cuh"

namespace adjoin::gpu {
namespace {

template <class M>
struct Sgd {
  M lr, momentum, keep, decay;  // keep: 1 - dampening
  bool moves, nesterov, maximize, first, decays;
  bool operator==(const Sgd&) const = default;
  // The parameter, its speed, its gradient.
  AJ_HD void operator()(int64_t, M (&x)[3]) const {
    M grad = maximize ? -x[2] : x[2];
    if (decays) grad = grad + decay * x[0];
    if (moves) {
      M speed = first ? grad : x[1] * momentum + grad * keep;
      x[1] = speed;
      grad = nesterov ? grad + momentum * speed : speed;
    }
    x[0] = x[0] - lr * grad;
  }
};
void fused_sgd(Args args) {
  double lr = args.real(3), momentum = args.real(4), damp = args.real(5), decay = args.real(6);
  bool nesterov = args.flag(7), maximize = args.flag(8), first = args.flag(9),
       moves = momentum != 0;
  if (args.tensors(0).empty()) return;
  visit<stored_floating>(TensorView(args.tensors(0)[0]).dtype(), [&]<class T>() {  // of all lists
    using M = Math<T>;
    Sgd<M> f = {M(lr),    M(momentum), M(1 - damp), M(decay),  moves,
                nesterov, maximize,    first,       decay != 0};
    List lists[3] = {args.tensors(0), moves ? args.tensors(2) : List(), args.tensors(1)};
    each_of_lists<T, 3, 2>(args.call(), lists, [&](size_t) { return f; });
  });
}

// One step more, and the two factors that depend on how many there were: in double.
struct Count {
  static constexpr size_t kMost = 256;
  char* steps[kMost];
  bool wide[kMost];  // counted in double, else in float
  double* factors;
  double lr, beta1, beta2;
  AJ_DEVICE void operator()(int64_t i) const {
    double count = 1 + (wide[i] ? *reinterpret_cast<double*>(steps[i])
                                : double(*reinterpret_cast<float*>(steps[i])));
    if (wide[i])
      *reinterpret_cast<double*>(steps[i]) = count;
    else
      *reinterpret_cast<float*>(steps[i]) = float(count);
    factors[2 * i] = lr / (1 - std::pow(beta1, count));
    factors[2 * i + 1] = 1 / std::sqrt(1 - std::pow(beta2, count));
  }
};
template <class M>
struct Adam {
  const double* factors;  // two for each place; NULL: the values below
  M step, root;
  M shrink, decay, rest1, beta2, rest2, eps;
  bool decoupled, decays, maximize, largest;
  bool operator==(const Adam&) const = default;
  // The parameter, the means of its gradient and of its square, the largest one, the gradient.
  AJ_HD void operator()(int64_t i, M (&x)[5]) const {
    M now = x[0], grad = maximize ? -x[4] : x[4];
    if (decoupled)
      now = now * shrink;
    else if (decays)
      grad = grad + decay * now;
    x[1] = x[1] + (grad - x[1]) * rest1;
    M square = x[2] * beta2 + grad * grad * rest2;
    x[2] = square;
    if (largest) {
      M most = x[3];
      square = most > square || most != most ? most : square;
      x[3] = square;
    }
    M by = factors ? M(factors[2 * i]) : step, scale = factors ? M(factors[2 * i + 1]) : root;
    x[0] = now - by * x[1] / (std::sqrt(square) * scale + eps);
  }
};
// Counts the steps that lie on the device; two factors for each.
void count_steps(const aj_call* call, List steps, double* factors, double lr, double beta1,
                 double beta2) {
  for (size_t begin = 0; begin < steps.size(); begin += Count::kMost) {
    Count c = {};
    c.factors = factors + 2 * begin, c.lr = lr, c.beta1 = beta1, c.beta2 = beta2;
    size_t n = std::min(Count::kMost, steps.size() - begin);
    for (size_t i = 0; i < n; ++i) {
      MutView step(steps[begin + i]);
      c.steps[i] = reach(step.bytes());
      c.wide[i] = same(step.dtype(), dtype_of<double>);
    }
    each(call, int64_t(n), c);
  }
}
double count_here(const aj_call* call, MutView steps) {
  if (call->flags & AJ_CALL_CAPTURING)
    raise(AJ_PRECONDITION,
          "the steps are counted on the host, where a graph's replays do not count; keep "
          "state_steps on the device (capturable=True)");
  Dense<double> counted(steps, true);
  double count = counted[0] += 1;
  counted.commit();
  return count;
}
void fused_adam(Args args) {
  const aj_call* call = args.call();
  double lr = args.real(6), beta1 = args.real(7), beta2 = args.real(8), eps = args.real(9),
         decay = args.real(10);
  bool decoupled = args.flag(11), maximize = args.flag(12);
  List params = args.tensors(0), steps = args.tensors(5), largest = args.tensors(4);
  if (params.empty()) return;
  auto here = [&](size_t i) { return foreign(call, TensorView(steps[i])); };
  size_t split = 0;  // a list of one kind is the rule
  while (split < steps.size() && here(split) == here(0)) ++split;
  visit<stored_floating>(TensorView(params[0]).dtype(), [&]<class T>() {
    using M = Math<T>;
    auto run = [&](size_t begin, size_t n) {
      Adam<M> f = {
          nullptr,      M(0),   M(0),      M(1 - lr * decay), M(decay), M(1 - beta1),    M(beta2),
          M(1 - beta2), M(eps), decoupled, decay != 0,        maximize, !largest.empty()};
      Buffer<double> factors(call, int64_t(2 * n));
      if (!here(begin)) {
        f.factors = factors.data();
        count_steps(call, steps.subspan(begin, n), factors.data(), lr, beta1, beta2);
      }
      auto part = [&](List list) { return list.empty() ? list : list.subspan(begin, n); };
      List lists[5] = {part(params), part(args.tensors(2)), part(args.tensors(3)), part(largest),
                       part(args.tensors(1))};
      each_of_lists<T, 5, 4>(call, lists, [&](size_t i) {
        if (!f.factors) {
          double count = count_here(call, MutView(steps[begin + i]));
          f.step = M(lr / (1 - std::pow(beta1, count)));
          f.root = M(1 / std::sqrt(1 - std::pow(beta2, count)));
        }
        return f;
      });
    };
    if (split == steps.size()) return run(0, split);
    for (size_t i = 0; i < steps.size(); ++i) run(i, 1);
  });
}

// A number of the device, float or double.
struct Number {
  const void* at;
  bool wide;
  bool operator==(const Number&) const = default;
  AJ_HD double get() const {
    return wide ? *static_cast<const double*>(at) : double(*static_cast<const float*>(at));
  }
};
// One that is of another dtype, or elsewhere, is copied.
class NumberOf {
 public:
  NumberOf(const aj_call* call, TensorView t) {
    bool wide = same(t.dtype(), dtype_of<double>);
    if (!foreign(call, t) && (wide || same(t.dtype(), dtype_of<float>)))
      number = {reach(t.bytes()), wide};
    else
      number = {made_.emplace(call, t).data(), true};
  }
  Number number;

 private:
  std::optional<Plain<double>> made_;
};

template <class M>
struct ScaleBy {
  Number by;
  bool operator==(const ScaleBy&) const = default;
  AJ_HD void operator()(int64_t, M (&x)[1]) const { x[0] = x[0] * M(by.get()); }
};
void fused_scale(Args args) {
  NumberOf by(args.call(), args.tensor(1));
  for_dtypes(args.tensors(0), [&]<class T>(size_t begin, size_t n) {
    List lists[1] = {args.tensors(0).subspan(begin, n)};
    each_of_lists<T, 1, 1>(args.call(), lists, [&](size_t) { return ScaleBy<Math<T>>{by.number}; });
  });
}

// One that finds an inf or nan says so; all write the same.
template <class M>
struct Unscale {
  Number by;
  double* found;
  bool operator==(const Unscale&) const = default;
  AJ_HD void operator()(int64_t, M (&x)[1]) const {
    if (!(x[0] - x[0] == M(0))) *found = 1;
    x[0] = x[0] * M(by.get());
  }
};
void amp_unscale(Args args) {
  const aj_call* call = args.call();
  Plain<double> found(call, MutView(args[1].v.tensor), true);
  NumberOf by(call, args.tensor(2));
  for_dtypes(args.tensors(0), [&]<class T>(size_t begin, size_t n) {
    List lists[1] = {args.tensors(0).subspan(begin, n)};
    each_of_lists<T, 1, 1>(call, lists, [&](size_t) {
      return Unscale<Math<T>>{by.number, found.data()};
    });
  });
  found.commit();
}

// Norms of parts of the tensors, then of these: parts depend on sizes only, and so do the bits.
struct JoinNorms {
  bool largest;
  bool operator==(const JoinNorms&) const = default;
  template <class A>
  AJ_HD A operator()(A a, A b) const {
    return largest ? Larger()(a, b) : a + b;
  }
};
struct NormParts {
  double* out;  // of the first task
  JoinNorms join;
  bool squares;
  bool operator==(const NormParts&) const = default;
  AJ_HD double of(double a) const { return squares ? a * a : std::fabs(a); }
};
template <class T>
AJ_GLOBAL void norm_parts_kernel(AJ_ARGUMENT Places<NormParts, T, 1> p) {
  constexpr int kWide = int(kPack<T>);
  for (uint32_t task = block_x(); task < p.first[p.count]; task += blocks_x()) {
    int place = p.place_of(task);
    int64_t begin = int64_t(task - p.first[place]) * kListTask;
    int64_t end = begin + kListTask < p.n[place] ? begin + kListTask : p.n[place];
    const T* x = p.at[place][0];
    bool packs = aligned(x);
    double mine = 0;
    for (int64_t i = begin + int64_t(thread_x()) * kWide; i < end; i += kBlock * kWide) {
      if (packs && i + kWide <= end) {
        Pack<T> pack = *reinterpret_cast<const Pack<T>*>(x + i);
        for (int j = 0; j < kWide; ++j) mine = p.f.join(mine, p.f.of(double(Math<T>(pack.at[j]))));
      } else {
        for (int64_t j = i; j < end && j < i + kWide; ++j)
          mine = p.f.join(mine, p.f.of(double(Math<T>(x[j]))));
      }
    }
    mine = join_block(mine, p.f.join);
    if (thread_x() == 0) p.f.out[task] = mine;
  }
}
template <class T>
struct NormOfParts {
  const double* parts;
  int64_t n;
  T* out;
  JoinNorms join;
  bool squares;
};
template <class T>
AJ_GLOBAL void norm_of_parts_kernel(AJ_ARGUMENT NormOfParts<T> p) {
  double mine = 0;
  for (int64_t i = thread_x(); i < p.n; i += kBlock) mine = p.join(mine, p.parts[i]);
  mine = join_block(mine, p.join);
  if (thread_x() == 0) *p.out = T(Math<T>(p.squares ? std::sqrt(mine) : mine));
}
void total_norm(Args args) {
  const aj_call* call = args.call();
  List tensors = args.tensors(0);
  double order = args.real(1);
  JoinNorms join = {std::isinf(order)};
  bool squares = order == 2;
  int64_t all = 0, done = 0;
  for (aj_tensor* t : tensors) all += (TensorView(t).numel() + kListTask - 1) / kListTask;
  Buffer<double> parts(call, all);
  for_dtypes(tensors, [&]<class T>(size_t begin, size_t n) {
    List lists[1] = {tensors.subspan(begin, n)};
    fill_lists<T, 1, 0>(
        call, lists,
        [&](size_t) {
          return NormParts{nullptr, join, squares};
        },
        [&](Places<NormParts, T, 1> p) {
          p.f.out = parts.data() + done;
          launch_blocks<&norm_parts_kernel<T>>(call, p.first[p.count], kBlock, p);
          done += p.first[p.count];
        });
  });
  visit<stored_floating>(args.result(0).dtype(), [&]<class T>() {
    Plain<T> out(call, args.result(0));
    launch_blocks<&norm_of_parts_kernel<T>>(
        call, 1, kBlock, NormOfParts<T>{parts.data(), all, out.data(), join, squares});
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

}  // namespace adjoin::gpu
