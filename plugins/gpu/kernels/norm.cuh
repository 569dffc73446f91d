// plugins/gpu/kernels/norm.cuh: batch norm, layer norm and group norm: a team for each group of
// elements that share a mean.
#include <adjoin/kit/geometry.hpp>
#include <memory>
#include <vector>

#include "../block.cuh"
#include "../element.cuh"

namespace adjoin::gpu {
namespace {

// Batch norm: group c has the elements [n, c, i], each weighed by weight[c]. Layer norm: group r
// has the row r, element i is weighed by weight[i]. Group norm: group (n, g) has the elements
// [n, c, i] of its channels, weighed by weight[c].
struct Groups {
  int64_t count, each, inner;  // inner: neighbours of one channel
  bool channels;               // a group is one
  int64_t of_image;            // groups of an image in a group norm; 1: a row has all weights
  int64_t own;                 // weights of a group
  AJ_HD int64_t place(int64_t group, int64_t k) const {
    return channels ? (k / inner * count + group) * inner + k % inner : group * each + k;
  }
  AJ_HD int64_t weight(int64_t group, int64_t k) const {
    return channels ? group : group % of_image * own + k / inner;
  }
  // Where weights are not the groups': how many there are, and the elements that one of them
  // weighs.
  AJ_HD int64_t weights() const { return of_image * own; }
  AJ_HD int64_t weighed() const { return count / of_image * inner; }
  AJ_HD int64_t group_of(int64_t weight, int64_t k) const {
    return k / inner * of_image + weight / own;
  }
  AJ_HD int64_t element(int64_t weight, int64_t k) const {
    return (k / inner * weights() + weight) * inner + k % inner;
  }
};
Groups channels_of(Span shape) {
  Lines l(shape, 1);
  return {l.size, l.outer * l.inner, std::max<int64_t>(l.inner, 1), true, 1, 1};
}
Groups rows_of(Span normalized, int64_t rows) {
  int64_t n = 1;
  for (int64_t s : normalized) n *= s;
  return {rows, n, 1, false, 1, n};
}
Groups groups_of(Span shape, int64_t groups) {
  Lines l(shape, 1);
  int64_t own = l.size / groups;
  return {l.outer * groups, own * l.inner, l.inner, false, groups, own};
}

// Optional values, read in M, one behind the other.
template <class M>
struct Values {
  const char* p = nullptr;
  int32_t dtype = 0;
  AJ_HD M at(int64_t i, M otherwise) const {
    return p ? load<M>(p + i * bytes(), dtype) : otherwise;
  }
  AJ_HD int64_t bytes() const {
    return dtype == AJ_DT_FLOAT64 ? 8 : dtype == AJ_DT_FLOAT32 ? 4 : 2;
  }
};

// What a kernel reads as Values, with copies of what does not lie so, until it has been launched.
template <class M>
class Lent {
 public:
  explicit Lent(const aj_call* call) : call_(call) {}
  Values<M> operator()(TensorView t) {
    if (!t) return {};
    Values<M> v;
    v.dtype = index_of(t.dtype());
    visit<stored_floating>(t.dtype(), [&]<class W>() {
      auto plain = std::make_shared<Plain<W>>(call_, t);
      v.p = reinterpret_cast<const char*>(plain->data());
      copies_.push_back(std::move(plain));
    });
    return v;
  }

 private:
  const aj_call* call_;
  std::vector<std::shared_ptr<void>> copies_;
};

template <class T>
struct Norm {
  using M = Math<T>;
  Groups g;
  const T* x;
  T* out;
  Values<M> weight, bias, running_mean, running_var;
  M *mean, *rstd;                // results, NULL: not wanted
  char *track_mean, *track_var;  // running values to move
  int32_t track_mean_dtype, track_var_dtype;
  int64_t track_mean_step, track_var_step;  // in bytes
  bool training;
  double momentum, eps;
  static AJ_HD void put(char* to, int32_t dtype, int64_t offset, M v) {
    if (to) store<M>(to + offset, dtype, v);
  }
};

template <bool Wide, class T>
AJ_GLOBAL void norm_kernel(AJ_ARGUMENT Norm<T> p) {
  using Own = Team<Wide>;
  using M = Math<T>;
  for (int64_t group = Own::task(); group < p.g.count; group += Own::tasks_step()) {
    M mean, var;
    if (p.training) {
      M sum = 0;
      for (int64_t k = Own::first(); k < p.g.each; k += Own::step())
        sum += M(p.x[p.g.place(group, k)]);
      M n = M(p.g.each > 0 ? p.g.each : 1);  // nothing has mean and variance 0
      mean = Own::join(sum, Plus()) / n;
      M squares = 0;
      for (int64_t k = Own::first(); k < p.g.each; k += Own::step()) {
        M d = M(p.x[p.g.place(group, k)]) - mean;
        squares += d * d;
      }
      var = Own::join(squares, Plus()) / n;
    } else {
      mean = p.running_mean.at(group, M(0));
      var = p.running_var.at(group, M(1));
    }
    M rstd = M(1) / std::sqrt(var + M(p.eps));
    for (int64_t k = Own::first(); k < p.g.each; k += Own::step()) {
      int64_t i = p.g.place(group, k), w = p.g.weight(group, k);
      p.out[i] = T((M(p.x[i]) - mean) * rstd * p.weight.at(w, M(1)) + p.bias.at(w, M(0)));
    }
    if (!Own::leads()) continue;
    if (p.mean) p.mean[group] = mean;
    if (p.rstd) p.rstd[group] = rstd;
    if (!p.training) continue;
    M keep = M(1 - p.momentum), move = M(p.momentum);
    M unbias = M(p.g.each) / M(p.g.each > 1 ? p.g.each - 1 : 1);
    p.put(p.track_mean, p.track_mean_dtype, group * p.track_mean_step,
          keep * p.running_mean.at(group, M(0)) + move * mean);
    p.put(p.track_var, p.track_var_dtype, group * p.track_var_step,
          keep * p.running_var.at(group, M(0)) + move * var * unbias);
  }
}

// Running values: one dimension.
void target(MutView t, char** to, int32_t* dtype, int64_t* step) {
  if (!t || !t.numel()) return;
  *to = reach(t.bytes());
  *dtype = index_of(t.dtype());
  *step = t.stride(0) * (t.dtype().bits / 8);
}

void batch_norm(Args args) {
  TensorView x = args.tensor(0);
  const aj_call* call = args.call();
  visit<stored_floating>(x.dtype(), [&]<class T>() {
    Plain<T> in(call, x), out(call, args.result(0));
    Norm<T> p = {};
    p.g = channels_of(x.shape());
    p.x = in.data(), p.out = out.data();
    Lent<Math<T>> values(call);
    p.weight = values(args.tensor(1)), p.bias = values(args.tensor(2));
    p.running_mean = values(args.tensor(3)), p.running_var = values(args.tensor(4));
    p.training = args.flag(5), p.momentum = args.real(6), p.eps = args.real(7);
    Plain<Math<T>> mean(call, args.result(1)), rstd(call, args.result(2));
    if (p.training) {
      p.mean = mean.data(), p.rstd = rstd.data();
      target(MutView(args.tensor(3).get()), &p.track_mean, &p.track_mean_dtype, &p.track_mean_step);
      target(MutView(args.tensor(4).get()), &p.track_var, &p.track_var_dtype, &p.track_var_step);
    }
    launch_teams<&norm_kernel<false, T>, &norm_kernel<true, T>>(call, p.g.count, p.g.each > kNarrow,
                                                                p);
    mean.commit(), rstd.commit(), out.commit();
  });
}

// Of rows, or of groups of channels.
void own_statistics(Args args, Groups groups) {
  TensorView x = args.tensor(0);
  const aj_call* call = args.call();
  visit<stored_floating>(x.dtype(), [&]<class T>() {
    Plain<T> in(call, x), out(call, args.result(0));
    Norm<T> p = {};
    p.g = groups;
    p.x = in.data(), p.out = out.data();
    Lent<Math<T>> values(call);
    p.weight = values(args.tensor(2)), p.bias = values(args.tensor(3));
    p.training = true, p.eps = args.real(4);
    Plain<Math<T>> mean(call, args.result(1)), rstd(call, args.result(2));
    p.mean = mean.data(), p.rstd = rstd.data();
    launch_teams<&norm_kernel<false, T>, &norm_kernel<true, T>>(call, p.g.count, p.g.each > kNarrow,
                                                                p);
    mean.commit(), rstd.commit(), out.commit();
  });
}

void layer_norm(Args args) { own_statistics(args, rows_of(args.ints(1), args.result(1).numel())); }
void group_norm(Args args) {
  own_statistics(args, groups_of(args.tensor(0).shape(), args.integer(1)));
}

// dx = w rstd (dy - mean(dy) - xhat mean(dy xhat)), the means over what shares a mean; without them
// when it is a constant. dw = sum dy xhat, db = sum dy.
template <class T>
struct NormBackward {
  using M = Math<T>;
  Groups g;
  const T *dy, *x;
  T *dx, *dw, *db;  // NULL: not wanted
  Values<M> mean, rstd, weight;
  bool constant, from_var;  // from_var: rstd holds variances
  double eps;
  AJ_HD M root(int64_t group) const {
    M v = rstd.at(group, M(1));
    return from_var ? M(1) / std::sqrt(v + M(eps)) : v;
  }
};
template <bool Wide, class T>
AJ_GLOBAL void norm_backward_kernel(AJ_ARGUMENT NormBackward<T> p) {
  using Own = Team<Wide>;
  using M = Math<T>;
  for (int64_t group = Own::task(); group < p.g.count; group += Own::tasks_step()) {
    M mean = p.mean.at(group, M(0)), rstd = p.root(group), sum = 0, sum_hat = 0;
    // For channels the weight is common, so the sums are those of dw and db as well.
    for (int64_t k = Own::first(); k < p.g.each; k += Own::step()) {
      int64_t i = p.g.place(group, k);
      M g = M(p.dy[i]);
      if (!p.g.channels) g *= p.weight.at(p.g.weight(group, k), M(1));
      sum += g;
      sum_hat += g * ((M(p.x[i]) - mean) * rstd);
    }
    sum = Own::join(sum, Plus());
    sum_hat = Own::join(sum_hat, Plus());
    if (p.g.channels && Own::leads()) {
      if (p.dw) p.dw[group] = T(sum_hat);
      if (p.db) p.db[group] = T(sum);
    }
    if (!p.dx) continue;
    M w = p.g.channels ? p.weight.at(group, M(1)) : M(1);
    M share = w * sum / M(p.g.each), share_hat = w * sum_hat / M(p.g.each);
    for (int64_t k = Own::first(); k < p.g.each; k += Own::step()) {
      int64_t i = p.g.place(group, k);
      M g = M(p.dy[i]) * p.weight.at(p.g.weight(group, k), M(1));
      if (!p.constant) g = g - share - (M(p.x[i]) - mean) * rstd * share_hat;
      p.dx[i] = T(g * rstd);
    }
  }
}
// Where a weight is not a group's: sums over what it weighs, a team for each.
template <bool Wide, class T>
AJ_GLOBAL void weight_sums_kernel(AJ_ARGUMENT NormBackward<T> p) {
  using Own = Team<Wide>;
  using M = Math<T>;
  for (int64_t w = Own::task(); w < p.g.weights(); w += Own::tasks_step()) {
    M sum = 0, sum_hat = 0;
    for (int64_t k = Own::first(); k < p.g.weighed(); k += Own::step()) {
      int64_t i = p.g.element(w, k), group = p.g.group_of(w, k);
      M g = M(p.dy[i]);
      sum += g;
      sum_hat += g * (M(p.x[i]) - p.mean.at(group, M(0))) * p.root(group);
    }
    sum = Own::join(sum, Plus());
    sum_hat = Own::join(sum_hat, Plus());
    if (!Own::leads()) continue;
    if (p.dw) p.dw[w] = T(sum_hat);
    if (p.db) p.db[w] = T(sum);
  }
}

template <class T>
struct Wanted {  // the result that needs[i] asks for
  Wanted(Args args, uint32_t needs, uint32_t i)
      : plain(args.bit(needs, i) ? Plain<T>(args.call(), args.result(i))
                                 : Plain<T>(args.call(), TensorView())) {}
  Plain<T> plain;
};
template <class T>
void backward(Args args, NormBackward<T> p, uint32_t needs) {
  const aj_call* call = args.call();
  Wanted<T> dx(args, needs, 0), dw(args, needs, 1), db(args, needs, 2);
  p.dx = dx.plain.data(), p.dw = dw.plain.data(), p.db = db.plain.data();
  launch_teams<&norm_backward_kernel<false, T>, &norm_backward_kernel<true, T>>(
      call, p.g.count, p.g.each > kNarrow, p);
  if (!p.g.channels && (p.dw || p.db))
    launch_teams<&weight_sums_kernel<false, T>, &weight_sums_kernel<true, T>>(
        call, p.g.weights(), p.g.weighed() > kNarrow, p);
  for (Plain<T>* result : {&dx.plain, &dw.plain, &db.plain}) result->commit();
}

void batch_norm_backward(Args args) {
  TensorView x = args.tensor(1);
  const aj_call* call = args.call();
  visit<stored_floating>(x.dtype(), [&]<class T>() {
    Plain<T> dy(call, args.tensor(0)), in(call, x);
    NormBackward<T> p = {};
    Lent<Math<T>> values(call);
    bool training = args.flag(7);
    p.g = channels_of(x.shape());
    p.dy = dy.data(), p.x = in.data();
    p.weight = values(args.tensor(2));
    p.mean = values(args.tensor(training ? 5 : 3)), p.rstd = values(args.tensor(training ? 6 : 4));
    p.constant = p.from_var = !training;
    p.eps = args.real(8);
    backward(args, p, 9);
  });
}
void own_statistics_backward(Args args, Groups groups) {
  TensorView x = args.tensor(1);
  const aj_call* call = args.call();
  visit<stored_floating>(x.dtype(), [&]<class T>() {
    Plain<T> dy(call, args.tensor(0)), in(call, x);
    NormBackward<T> p = {};
    Lent<Math<T>> values(call);
    p.g = groups;
    p.dy = dy.data(), p.x = in.data();
    p.mean = values(args.tensor(3)), p.rstd = values(args.tensor(4)),
    p.weight = values(args.tensor(5));
    backward(args, p, 7);
  });
}

void layer_norm_backward(Args args) {
  own_statistics_backward(args, rows_of(args.ints(2), args.tensor(3).numel()));
}
void group_norm_backward(Args args) {
  own_statistics_backward(args, groups_of(args.tensor(1).shape(), args.integer(2)));
}

}  // namespace

AJ_KERNELS(norm_kernels) = {
    {"batch_norm_stats", custom<batch_norm, stored_floating>},
    {"batch_norm_backward", custom<batch_norm_backward, stored_floating>},
    {"layer_norm_stats", custom<layer_norm, stored_floating>},
    {"layer_norm_backward", custom<layer_norm_backward, stored_floating>},
    {"group_norm_stats", custom<group_norm, stored_floating>},
    {"group_norm_backward", custom<group_norm_backward, stored_floating>},
    {nullptr, {}},
};

}  // namespace adjoin::gpu
