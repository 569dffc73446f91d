// plugins/gpu/kernels/optimizer.cuh: steps of optimizers, a launch for each parameter. Numbers that
// are tensors (step counts, scales) stay on the device.
#include <cmath>

#include "../block.cuh"
#include "../element.cuh"

namespace adjoin::gpu {
namespace {

using List = std::span<aj_tensor* const>;

template <class F>
void each_tensor(List params, F f) {
  for (size_t i = 0; i < params.size(); ++i)
    visit<stored_floating>(TensorView(params[i]).dtype(), [&]<class T>() {
      f.template operator()<T>(i, TensorView(params[i]).numel());
    });
}
aj_tensor* at(List list, size_t i) { return list.empty() ? nullptr : list[i]; }

// The i-th tensor of a list where it is written, or nothing.
template <class T>
struct Written {
  Written(const aj_call* call, List list, size_t i)
      : plain(list.empty() ? Plain<T>(call, TensorView())
                           : Plain<T>(call, MutView(list[i]), true)) {}
  Plain<T> plain;
  T* data() const { return plain.data(); }
};

template <class T>
struct Sgd {
  using M = Math<T>;
  T *p, *v;
  const T* g;
  M lr, momentum, keep, decay;  // keep: 1 - dampening
  bool nesterov, maximize, first, decays;
  AJ_DEVICE void operator()(int64_t i) const {
    M x = M(p[i]), grad = maximize ? -M(g[i]) : M(g[i]);
    if (decays) grad = grad + decay * x;
    if (v) {
      M speed = first ? grad : M(v[i]) * momentum + grad * keep;
      v[i] = T(speed);
      grad = nesterov ? grad + momentum * speed : speed;
    }
    p[i] = T(x - lr * grad);
  }
};
void fused_sgd(Args args) {
  const aj_call* call = args.call();
  double lr = args.real(3), momentum = args.real(4), damp = args.real(5), decay = args.real(6);
  bool nesterov = args.flag(7), maximize = args.flag(8), first = args.flag(9);
  List kept = momentum != 0 ? args.tensors(2) : List();
  each_tensor(args.tensors(0), [&]<class T>(size_t i, int64_t n) {
    using M = Math<T>;
    Written<T> p(call, args.tensors(0), i), v(call, kept, i);
    Plain<T> g(call, TensorView(at(args.tensors(1), i)));
    each(call, n,
         Sgd<T>{p.data(), v.data(), g.data(), M(lr), M(momentum), M(1 - damp), M(decay), nesterov,
                maximize, first, decay != 0});
    p.plain.commit();
    v.plain.commit();
  });
}

// One step more, and the two factors that depend on how many there were: in double, by one thread.
struct Count {
  char* steps;
  int dtype;
  double *step, *root;
  double lr, beta1, beta2;
  AJ_DEVICE void operator()(int64_t) const {
    double count = load<double>(steps, dtype) + 1;
    store<double>(steps, dtype, count);
    *step = lr / (1 - std::pow(beta1, count));
    *root = 1 / std::sqrt(1 - std::pow(beta2, count));
  }
};
template <class T>
struct Adam {
  using M = Math<T>;
  T *p, *m, *v, *top;
  const T* g;
  const double *step, *root;  // NULL: the values below
  M step_now, root_now;
  M shrink, decay, rest1, beta2, rest2, eps;
  bool decoupled, decays, maximize;
  AJ_DEVICE void operator()(int64_t i) const {
    M x = M(p[i]), grad = maximize ? -M(g[i]) : M(g[i]);
    if (decoupled)
      x = x * shrink;
    else if (decays)
      grad = grad + decay * x;
    M mean = M(m[i]);
    mean = mean + (grad - mean) * rest1;
    M square = M(v[i]) * beta2 + grad * grad * rest2;
    m[i] = T(mean);
    v[i] = T(square);
    if (top) {
      M most = M(top[i]);
      square = most > square || most != most ? most : square;
      top[i] = T(square);
    }
    M by = step ? M(*step) : step_now, scale = root ? M(*root) : root_now;
    p[i] = T(x - by * mean / (std::sqrt(square) * scale + eps));
  }
};
void fused_adam(Args args) {
  const aj_call* call = args.call();
  double lr = args.real(6), beta1 = args.real(7), beta2 = args.real(8), eps = args.real(9),
         decay = args.real(10);
  bool decoupled = args.flag(11), maximize = args.flag(12);
  each_tensor(args.tensors(0), [&]<class T>(size_t i, int64_t n) {
    using M = Math<T>;
    Buffer<double> factors(call, 2);
    MutView steps(args.tensors(5)[i]);
    bool here = foreign(call, steps);  // counted by the host
    M step_now(0), root_now(0);
    if (here) {
      if (call->flags & AJ_CALL_CAPTURING)
        raise(AJ_PRECONDITION,
              "the steps are counted on the host, where a graph's replays do not count; keep "
              "state_steps on the device (capturable=True)");
      Dense<double> counted(steps, true);
      double count = counted[0] += 1;
      counted.commit();
      step_now = M(lr / (1 - std::pow(beta1, count)));
      root_now = M(1 / std::sqrt(1 - std::pow(beta2, count)));
    } else {
      each(call, 1,
           Count{reach(steps.bytes()), index_of(steps.dtype()), factors.data(), factors.data() + 1,
                 lr, beta1, beta2});
    }
    const double* from = here ? nullptr : factors.data();
    Written<T> p(call, args.tensors(0), i), m(call, args.tensors(2), i),
        v(call, args.tensors(3), i), top(call, args.tensors(4), i);
    Plain<T> g(call, TensorView(at(args.tensors(1), i)));
    each(call, n,
         Adam<T>{p.data(), m.data(), v.data(), top.data(), g.data(), from,
                 from ? from + 1 : nullptr, step_now, root_now, M(1 - lr * decay), M(decay),
                 M(1 - beta1), M(beta2), M(1 - beta2), M(eps), decoupled, decay != 0, maximize});
    for (Plain<T>* each : {&p.plain, &m.plain, &v.plain, &top.plain}) each->commit();
  });
}

template <class T>
struct ScaleBy {
  T* x;
  const char* by;
  int dtype;
  AJ_DEVICE void operator()(int64_t i) const {
    x[i] = T(Math<T>(x[i]) * Math<T>(load<double>(by, dtype)));
  }
};
void fused_scale(Args args) {
  const aj_call* call = args.call();
  TensorView by = args.tensor(1);
  Plain<double> scale(call, by);
  each_tensor(args.tensors(0), [&]<class T>(size_t i, int64_t n) {
    Written<T> x(call, args.tensors(0), i);
    each(call, n,
         ScaleBy<T>{x.data(), reinterpret_cast<const char*>(scale.data()), DTypeOf<double>::index});
    x.plain.commit();
  });
}

// One that finds an inf or nan says so; all write the same.
template <class T>
struct Unscale {
  T* x;
  const double* by;
  double* found;
  AJ_HD void operator()(int64_t i) const {
    Math<T> value = Math<T>(x[i]);
    if (!(value - value == Math<T>(0))) *found = 1;
    x[i] = T(value * Math<T>(*by));
  }
};
void amp_unscale(Args args) {
  const aj_call* call = args.call();
  Plain<double> found(call, MutView(args[1].v.tensor), true), by(call, args.tensor(2));
  each_tensor(args.tensors(0), [&]<class T>(size_t i, int64_t n) {
    Written<T> x(call, args.tensors(0), i);
    each(call, n, Unscale<T>{x.data(), by.data(), found.data()});
    x.plain.commit();
  });
  found.commit();
}

// Norms of parts of the tensors, then of these: parts depend on sizes only, and so do the bits.
constexpr int64_t kNormPart = kBlock * 32;

struct JoinNorms {
  bool largest;
  template <class A>
  AJ_HD A operator()(A a, A b) const {
    return largest ? Larger()(a, b) : a + b;
  }
};
template <class T>
struct NormParts {
  const T* x;
  int64_t n, parts;
  double* out;
  JoinNorms join;
  bool squares;
  AJ_HD double of(T element) const {
    double a = double(Math<T>(element));
    return squares ? a * a : std::fabs(a);
  }
};
template <class T>
AJ_GLOBAL void norm_parts_kernel(AJ_ARGUMENT NormParts<T> p) {
  for (int64_t part = block_x(); part < p.parts; part += blocks_x()) {
    int64_t begin = part * kNormPart, end = begin + kNormPart < p.n ? begin + kNormPart : p.n;
    double mine = 0;
    for (int64_t i = begin + thread_x(); i < end; i += kBlock) mine = p.join(mine, p.of(p.x[i]));
    mine = join_block(mine, p.join);
    if (thread_x() == 0) p.out[part] = mine;
  }
}
struct NormOfParts {
  const double* parts;
  int64_t n;
  double* out;
  JoinNorms join;
  bool squares;
};
AJ_GLOBAL void norm_of_parts_kernel(AJ_ARGUMENT NormOfParts p) {
  double mine = 0;
  for (int64_t i = thread_x(); i < p.n; i += kBlock) mine = p.join(mine, p.parts[i]);
  mine = join_block(mine, p.join);
  if (thread_x() == 0) *p.out = p.squares ? std::sqrt(mine) : mine;
}
void total_norm(Args args) {
  const aj_call* call = args.call();
  List tensors = args.tensors(0);
  double order = args.real(1);
  JoinNorms join = {std::isinf(order)};
  auto parts_of = [](int64_t n) { return (n + kNormPart - 1) / kNormPart; };
  int64_t all = 0, at = 0;
  for (aj_tensor* t : tensors) all += parts_of(TensorView(t).numel());
  Buffer<double> parts(call, all);
  each_tensor(tensors, [&]<class T>(size_t i, int64_t n) {
    Plain<T> x(call, TensorView(tensors[i]));
    NormParts<T> p = {x.data(), n, parts_of(n), parts.data() + at, join, order == 2};
    launch_blocks<&norm_parts_kernel<T>>(call, p.parts, kBlock, p);
    at += p.parts;
  });
  Plain<double> out(call, args.result(0));
  launch_blocks<&norm_of_parts_kernel>(
      call, 1, kBlock, NormOfParts{parts.data(), all, out.data(), join, order == 2});
  out.commit();
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
