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
  int64_t count, each;
  Divisor inner;     // neighbours of one channel
  bool channels;     // a group is one
  Divisor of_image;  // groups of an image in a group norm; 1: a row has all weights
  Divisor own;       // weights of a group
  AJ_HD int64_t place(int64_t group, int64_t k) const {
    return channels ? in_line(k, group, count, inner) : group * each + k;
  }
  AJ_HD int64_t weight(int64_t group, int64_t k) const {
    return channels ? group : of_image.divided(group).rest * own.size + inner.quotient(k);
  }
  // Where weights are not the groups': how many there are, and the elements that one of them
  // weighs.
  AJ_HD int64_t weights() const { return of_image.size * own.size; }
  AJ_HD int64_t weighed() const { return of_image.quotient(count) * inner.size; }
  AJ_HD int64_t group_of(int64_t weight, int64_t k) const {
    return inner.quotient(k) * of_image.size + own.quotient(weight);
  }
  AJ_HD int64_t element(int64_t weight, int64_t k) const {
    return in_line(k, weight, weights(), inner);
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

// Groups are few and large: then many blocks have a share of each.
constexpr int64_t kNormChunk = 4096;
constexpr int64_t kManyGroups = 512;  // fill a device by themselves
bool is_cut(const Groups& g) { return g.count < kManyGroups && g.each > 2 * kNormChunk; }
int64_t chunks_of(int64_t n, int64_t chunk) { return (n + chunk - 1) / chunk; }

template <class M>
struct Moments {
  M mean, squares, count;
};
template <class M>
struct JoinMoments {  // T. Chan, G. Golub and R. LeVeque, 1979
  AJ_HD Moments<M> operator()(const Moments<M>& a, const Moments<M>& b) const {
    if (b.count == 0) return a;
    if (a.count == 0) return b;
    M n = a.count + b.count, apart = b.mean - a.mean, share = b.count / n;
    return {a.mean + apart * share, a.squares + b.squares + apart * apart * (a.count * share), n};
  }
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
  Divisor chunks;     // of a group
  Moments<M>* parts;  // [count][chunks]
  static AJ_HD void put(char* to, int32_t dtype, int64_t offset, M v) {
    if (to) store<M>(to + offset, dtype, v);
  }
};

// Mean and squared differences of elements [lo, hi) of a group.
template <bool Wide, class T, class M = Math<T>>
[[gnu::always_inline]] AJ_DEVICE inline Moments<M> moments(const Norm<T>& p, int64_t group,
                                                           int64_t lo, int64_t hi) {
  using Own = Team<Wide>;
  M sum = 0, squares = 0, n = M(hi > lo ? hi - lo : 1);  // nothing has mean and variance 0
  for (int64_t k = lo + Own::first(); k < hi; k += Own::step()) sum += M(p.x[p.g.place(group, k)]);
  M mean = Own::join(sum, Plus()) / n;
  for (int64_t k = lo + Own::first(); k < hi; k += Own::step()) {
    M d = M(p.x[p.g.place(group, k)]) - mean;
    squares += d * d;
  }
  return {mean, Own::join(squares, Plus()), n};
}
template <class T, class M = Math<T>>
[[gnu::always_inline]] AJ_DEVICE inline void keep(const Norm<T>& p, int64_t group, M mean, M var,
                                                  M rstd) {
  if (p.mean) p.mean[group] = mean;
  if (p.rstd) p.rstd[group] = rstd;
  if (!p.training) return;
  M stay = M(1 - p.momentum), move = M(p.momentum);
  M unbias = M(p.g.each) / M(p.g.each > 1 ? p.g.each - 1 : 1);
  p.put(p.track_mean, p.track_mean_dtype, group * p.track_mean_step,
        stay * p.running_mean.at(group, M(0)) + move * mean);
  p.put(p.track_var, p.track_var_dtype, group * p.track_var_step,
        stay * p.running_var.at(group, M(0)) + move * var * unbias);
}
template <bool Wide, class T, class M = Math<T>>
[[gnu::always_inline]] AJ_DEVICE inline void normalize(const Norm<T>& p, int64_t group, int64_t lo,
                                                       int64_t hi, M mean, M rstd) {
  using Own = Team<Wide>;
  for (int64_t k = lo + Own::first(); k < hi; k += Own::step()) {
    int64_t i = p.g.place(group, k), w = p.g.weight(group, k);
    p.out[i] = T((M(p.x[i]) - mean) * rstd * p.weight.at(w, M(1)) + p.bias.at(w, M(0)));
  }
}

template <bool Wide, class T>
AJ_GLOBAL void norm_kernel(AJ_ARGUMENT Norm<T> p) {
  using Own = Team<Wide>;
  using M = Math<T>;
  for (int64_t group = Own::task(); group < p.g.count; group += Own::tasks_step()) {
    M mean, var;
    if (p.training) {
      Moments<M> all = moments<Wide>(p, group, 0, p.g.each);
      mean = all.mean, var = all.squares / all.count;
    } else {
      mean = p.running_mean.at(group, M(0));
      var = p.running_var.at(group, M(1));
    }
    M rstd = M(1) / std::sqrt(var + M(p.eps));
    normalize<Wide>(p, group, 0, p.g.each, mean, rstd);
    if (Own::leads()) keep(p, group, mean, var, rstd);
  }
}

// A chunk of a group for each block: moments, what they make of the group, the results.
template <class T>
AJ_GLOBAL void norm_parts_kernel(AJ_ARGUMENT Norm<T> p) {
  for (int64_t task = block_x(); task < p.g.count * p.chunks.size; task += blocks_x()) {
    Quotient q = p.chunks.divided(task);
    int64_t lo = q.rest * kNormChunk, hi = lo + kNormChunk < p.g.each ? lo + kNormChunk : p.g.each;
    Moments<Math<T>> own = moments<true>(p, q.whole, lo, hi);
    if (thread_x() == 0) p.parts[task] = own;
  }
}
template <class T>
AJ_GLOBAL void norm_join_kernel(AJ_ARGUMENT Norm<T> p) {
  using M = Math<T>;
  for (int64_t group = block_x(); group < p.g.count; group += blocks_x()) {
    Moments<M> all = {M(0), M(0), M(0)};
    for (int64_t k = thread_x(); k < p.chunks.size; k += kBlock)
      all = JoinMoments<M>()(all, p.parts[group * p.chunks.size + k]);
    all = join_block(all, JoinMoments<M>());
    M var = all.squares / all.count;
    if (thread_x() == 0) keep(p, group, all.mean, var, M(1) / std::sqrt(var + M(p.eps)));
  }
}
template <class T>
AJ_GLOBAL void norm_apply_kernel(AJ_ARGUMENT Norm<T> p) {
  using M = Math<T>;
  for (int64_t task = block_x(); task < p.g.count * p.chunks.size; task += blocks_x()) {
    Quotient q = p.chunks.divided(task);
    int64_t lo = q.rest * kNormChunk, hi = lo + kNormChunk < p.g.each ? lo + kNormChunk : p.g.each;
    M mean = p.training ? p.mean[q.whole] : p.running_mean.at(q.whole, M(0));
    M rstd =
        p.training ? p.rstd[q.whole] : M(1) / std::sqrt(p.running_var.at(q.whole, M(1)) + M(p.eps));
    normalize<true>(p, q.whole, lo, hi, mean, rstd);
  }
}
template <class T>
void run(const aj_call* call, Norm<T> p) {
  if (!is_cut(p.g))
    return launch_teams<&norm_kernel<false, T>, &norm_kernel<true, T>>(call, p.g.count,
                                                                       p.g.each > kNarrow, p);
  p.chunks = chunks_of(p.g.each, kNormChunk);
  int64_t tasks = p.g.count * p.chunks.size;
  Buffer<Moments<Math<T>>> parts(call, p.training ? tasks : 1);
  p.parts = parts.data();
  if (p.training) {
    launch_blocks<&norm_parts_kernel<T>>(call, tasks, kBlock, p);
    launch_blocks<&norm_join_kernel<T>>(call, p.g.count, kBlock, p);
  }
  launch_blocks<&norm_apply_kernel<T>>(call, tasks, kBlock, p);
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
    run(call, p);
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
    run(call, p);
    mean.commit(), rstd.commit(), out.commit();
  });
}

void layer_norm(Args args) { own_statistics(args, rows_of(args.ints(1), args.result(1).numel())); }
void group_norm(Args args) {
  own_statistics(args, groups_of(args.tensor(0).shape(), args.integer(1)));
}

// dx = w rstd (dy - mean(dy) - xhat mean(dy xhat)), the means over what shares a mean; without them
// when it is a constant. dw = sum dy xhat, db = sum dy.
template <class M>
struct Sums {
  M plain, hat;
};
struct AddSums {
  template <class M>
  AJ_HD Sums<M> operator()(const Sums<M>& a, const Sums<M>& b) const {
    return {a.plain + b.plain, a.hat + b.hat};
  }
};
template <class T>
struct NormBackward {
  using M = Math<T>;
  Groups g;
  const T *dy, *x;
  T *dx, *dw, *db;  // NULL: not wanted
  Values<M> mean, rstd, weight;
  bool constant, from_var;  // from_var: rstd holds variances
  double eps;
  Divisor chunks;          // of a group, or of what a weight weighs
  Divisor own_weights;     // how many
  int64_t chunk, weighed;  // of a weight's elements
  Sums<M>*parts, *totals;  // [count][chunks], [count]; of weights: [chunks][weights]
  AJ_HD M root(int64_t group) const {
    M v = rstd.at(group, M(1));
    return from_var ? M(1) / std::sqrt(v + M(eps)) : v;
  }
  AJ_HD void put(int64_t weight, const Sums<M>& s) const {
    if (dw) dw[weight] = T(s.hat);
    if (db) db[weight] = T(s.plain);
  }
};
// For channels the weight is common, so the sums are those of dw and db as well.
template <bool Wide, class T, class M = Math<T>>
[[gnu::always_inline]] AJ_DEVICE inline Sums<M> sums_of(const NormBackward<T>& p, int64_t group,
                                                        int64_t lo, int64_t hi) {
  using Own = Team<Wide>;
  M mean = p.mean.at(group, M(0)), rstd = p.root(group);
  Sums<M> s = {M(0), M(0)};
  for (int64_t k = lo + Own::first(); k < hi; k += Own::step()) {
    int64_t i = p.g.place(group, k);
    M g = M(p.dy[i]);
    if (!p.g.channels) g *= p.weight.at(p.g.weight(group, k), M(1));
    s.plain += g;
    s.hat += g * ((M(p.x[i]) - mean) * rstd);
  }
  return Own::join(s, AddSums());
}
template <bool Wide, class T, class M = Math<T>>
[[gnu::always_inline]] AJ_DEVICE inline void slopes(const NormBackward<T>& p, int64_t group,
                                                    int64_t lo, int64_t hi, const Sums<M>& s) {
  using Own = Team<Wide>;
  M mean = p.mean.at(group, M(0)), rstd = p.root(group);
  M w = p.g.channels ? p.weight.at(group, M(1)) : M(1);
  M share = w * s.plain / M(p.g.each), share_hat = w * s.hat / M(p.g.each);
  for (int64_t k = lo + Own::first(); k < hi; k += Own::step()) {
    int64_t i = p.g.place(group, k);
    M g = M(p.dy[i]) * p.weight.at(p.g.weight(group, k), M(1));
    if (!p.constant) g = g - share - (M(p.x[i]) - mean) * rstd * share_hat;
    p.dx[i] = T(g * rstd);
  }
}
template <bool Wide, class T>
AJ_GLOBAL void norm_backward_kernel(AJ_ARGUMENT NormBackward<T> p) {
  using Own = Team<Wide>;
  for (int64_t group = Own::task(); group < p.g.count; group += Own::tasks_step()) {
    Sums<Math<T>> s = sums_of<Wide>(p, group, 0, p.g.each);
    if (p.g.channels && Own::leads()) p.put(group, s);
    if (p.dx) slopes<Wide>(p, group, 0, p.g.each, s);
  }
}
// The same by chunks: sums, what they make of the group, dx.
template <class T>
AJ_GLOBAL void sums_parts_kernel(AJ_ARGUMENT NormBackward<T> p) {
  for (int64_t task = block_x(); task < p.g.count * p.chunks.size; task += blocks_x()) {
    Quotient q = p.chunks.divided(task);
    int64_t lo = q.rest * kNormChunk, hi = lo + kNormChunk < p.g.each ? lo + kNormChunk : p.g.each;
    Sums<Math<T>> own = sums_of<true>(p, q.whole, lo, hi);
    if (thread_x() == 0) p.parts[task] = own;
  }
}
template <class T>
AJ_GLOBAL void sums_join_kernel(AJ_ARGUMENT NormBackward<T> p) {
  using M = Math<T>;
  for (int64_t group = block_x(); group < p.g.count; group += blocks_x()) {
    Sums<M> all = {M(0), M(0)};
    for (int64_t k = thread_x(); k < p.chunks.size; k += kBlock)
      all = AddSums()(all, p.parts[group * p.chunks.size + k]);
    all = join_block(all, AddSums());
    if (thread_x() != 0) continue;
    p.totals[group] = all;
    if (p.g.channels) p.put(group, all);
  }
}
template <class T>
AJ_GLOBAL void slopes_kernel(AJ_ARGUMENT NormBackward<T> p) {
  for (int64_t task = block_x(); task < p.g.count * p.chunks.size; task += blocks_x()) {
    Quotient q = p.chunks.divided(task);
    int64_t lo = q.rest * kNormChunk, hi = lo + kNormChunk < p.g.each ? lo + kNormChunk : p.g.each;
    slopes<true>(p, q.whole, lo, hi, p.totals[q.whole]);
  }
}

// Where a weight is not a group's: sums over what it weighs, by chunks. A thread's neighbours have
// the neighbouring weights, or neighbouring elements of one.
template <bool Wide, class T>
AJ_GLOBAL void weight_sums_kernel(AJ_ARGUMENT NormBackward<T> p) {
  using Own = Team<Wide>;
  using M = Math<T>;
  int64_t tasks = p.own_weights.size * p.chunks.size;
  for (int64_t task = Own::task(); task < tasks; task += Own::tasks_step()) {
    Quotient q = p.own_weights.divided(task);
    int64_t w = q.rest, lo = q.whole * p.chunk,
            hi = lo + p.chunk < p.weighed ? lo + p.chunk : p.weighed;
    Sums<M> s = {M(0), M(0)};
    for (int64_t k = lo + Own::first(); k < hi; k += Own::step()) {
      int64_t i = p.g.element(w, k), group = p.g.group_of(w, k);
      M g = M(p.dy[i]);
      s.plain += g;
      s.hat += g * (M(p.x[i]) - p.mean.at(group, M(0))) * p.root(group);
    }
    s = Own::join(s, AddSums());
    if (!Own::leads()) continue;
    if (p.chunks.size > 1)
      p.parts[task] = s;
    else
      p.put(w, s);
  }
}
template <class T>
struct JoinWeights {
  NormBackward<T> p;
  AJ_DEVICE void operator()(int64_t w) const {
    Sums<Math<T>> s = p.parts[w];
    for (int64_t k = 1; k < p.chunks.size; ++k)
      s = AddSums()(s, p.parts[k * p.own_weights.size + w]);
    p.put(w, s);
  }
};
template <class T>
void weight_sums(const aj_call* call, NormBackward<T> p) {
  p.own_weights = p.g.weights(), p.weighed = p.g.weighed();
  bool wide = p.g.inner.size >= 32 && p.weighed > kNarrow;
  p.chunk = wide ? std::max<int64_t>(kNormChunk, chunks_of(p.weighed, 64))
                 : std::max<int64_t>(kNarrow, chunks_of(p.weighed, 256));
  p.chunks = std::max<int64_t>(1, chunks_of(p.weighed, p.chunk));
  int64_t tasks = p.own_weights.size * p.chunks.size;
  Buffer<Sums<Math<T>>> parts(call, p.chunks.size > 1 ? tasks : 1);
  p.parts = parts.data();
  launch_teams<&weight_sums_kernel<false, T>, &weight_sums_kernel<true, T>>(call, tasks, wide, p);
  if (p.chunks.size > 1) each(call, p.own_weights.size, JoinWeights<T>{p});
}

template <class T>
void group_sums(const aj_call* call, NormBackward<T> p) {
  if (!is_cut(p.g))
    return launch_teams<&norm_backward_kernel<false, T>, &norm_backward_kernel<true, T>>(
        call, p.g.count, p.g.each > kNarrow, p);
  p.chunks = chunks_of(p.g.each, kNormChunk);
  int64_t tasks = p.g.count * p.chunks.size;
  Buffer<Sums<Math<T>>> parts(call, tasks), totals(call, p.g.count);
  p.parts = parts.data(), p.totals = totals.data();
  launch_blocks<&sums_parts_kernel<T>>(call, tasks, kBlock, p);
  launch_blocks<&sums_join_kernel<T>>(call, p.g.count, kBlock, p);
  if (p.dx) launch_blocks<&slopes_kernel<T>>(call, tasks, kBlock, p);
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
  if (p.dx || p.g.channels) group_sums(call, p);
  if (!p.g.channels && (p.dw || p.db)) weight_sums(call, p);
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
