// plugins/cpu/lines/attention.cpp: scaled dot product attention: heads, and parts of them, to
// threads.
#include <adjoin/kit/indexing.hpp>
#include <adjoin/kit/parallel.hpp>
#include <optional>

#include "attention_head.hpp"
#include "vector/stored.hpp"

namespace adjoin::cpu {
namespace {

// A tensor whose rows are contiguous, at any strides otherwise; else a copy of it.
template <class T>
class Matrices {
 public:
  explicit Matrices(TensorView t) {
    bool direct = same(t.dtype(), dtype_of<T>) && (t.stride(-1) == 1 || t.size(-1) == 1);
    if (!direct) copy_.emplace(t);
    data_ = direct ? t.data<T>() : copy_->data();
    std::vector<int64_t> strides(t.strides().begin(), t.strides().end());
    if (!direct) strides = dense_strides(t.shape());
    size_t n = strides.size();
    step_ = strides[n - 2];
    heads_ = offsets_of(t.shape().first(n - 2), Span(strides).first(n - 2));
  }
  Rows2<const T> operator[](int64_t head) const { return {data_ + heads_[size_t(head)], step_}; }
  int64_t heads() const { return int64_t(heads_.size()); }

 private:
  std::optional<Dense<T>> copy_;
  const T* data_;
  std::vector<int64_t> heads_;
  int64_t step_;
};

// A mask that broadcasts to [heads..., queries, keys].
template <class T>
class Mask {
 public:
  Mask(TensorView t, Span heads) {
    if (!t) return;
    if (t.dtype().code == kDLBool)
      seen_.emplace(t);
    else
      added_.emplace(t);
    std::vector<int64_t> strides = dense_strides(t.shape()), steps(heads.size(), 0);
    int64_t n = t.ndim();
    auto step = [&](int64_t d) { return d > n || t.size(-d) == 1 ? 0 : strides[size_t(n - d)]; };
    column_ = step(1), row_ = step(2);
    for (size_t d = 0; d < heads.size(); ++d) steps[d] = step(int64_t(heads.size() - d) + 2);
    heads_ = offsets_of(heads, steps);
  }
  void put(Head<T>& h, int64_t head) {
    h.mask_row = row_, h.mask_column = column_;
    h.added = added_ ? added_->data() + heads_[size_t(head)] : nullptr;
    h.seen = seen_ ? seen_->data() + heads_[size_t(head)] : nullptr;
  }

 private:
  std::optional<Dense<T>> added_;
  std::optional<Dense<bool>> seen_;
  std::vector<int64_t> heads_;
  int64_t row_ = 0, column_ = 0;
};

// What forward and backward have in common; arguments from `first` on.
template <class T>
struct Inputs {
  Inputs(Args args, uint32_t first, bool causal, double scale)
      : q(args.tensor(first)),
        query(q),
        key(args.tensor(first + 1)),
        value(args.tensor(first + 2)),
        mask(args.tensor(first + 3), q.shape().first(size_t(q.ndim()) - 2)) {
    base.queries = q.size(-2), base.keys = args.tensor(first + 1).size(-2);
    base.depth = q.size(-1), base.width = args.tensor(first + 2).size(-1);
    base.causal = causal, base.scale = T(scale);
  }
  Head<T> head(int64_t i, T* out, T* log_sums) {
    Head<T> h = base;
    h.query = query[i], h.key = key[i], h.value = value[i];
    mask.put(h, i);
    h.out = {out + i * h.queries * h.width, h.width};
    h.log_sums = log_sums + i * h.queries;
    return h;
  }
  TensorView q;
  Matrices<T> query, key, value;
  Mask<T> mask;
  Head<T> base = {};
};

void attention(Args args) {
  visit_math<floating>(args.tensor(0).dtype(), [&]<class T>() {
    Inputs<T> in(args, 0, args.flag(4), args.real(5));
    Dense<T> out(args.result(0)), log_sums(args.result(1));
    // Whole heads where there are enough of them: each part of one packs the keys again.
    int64_t heads = in.query.heads(), n = in.base.queries, parts = 1;
    while (heads * parts < 2 * core().num_threads() && n / parts > 4 * kAttentionQueries)
      parts *= 2;
    int64_t blocks = (n + kAttentionQueries - 1) / kAttentionQueries;
    parallel_for(heads * parts, grain_of(n / parts * in.base.keys, 4096),
                 [&](int64_t lo, int64_t hi) {
                   for (; lo < hi; ++lo) {
                     Head<T> h = in.head(lo / parts, out.data(), log_sums.data());
                     auto bound = [&](int64_t p) {
                       return std::min(n, blocks * p / parts * kAttentionQueries);
                     };
                     int64_t from = bound(lo % parts), to = bound(lo % parts + 1);
                     if (from < to) attention_code<T>().forward(h, from, to);
                   }
                 });
    out.commit();
    log_sums.commit();
  });
}

void attention_backward(Args args) {
  visit_math<floating>(args.tensor(1).dtype(), [&]<class T>() {
    Inputs<T> in(args, 1, args.flag(7), args.real(8));
    Matrices<T> grad(args.tensor(0));
    Dense<T> out(args.tensor(5)), log_sums(args.tensor(6));
    Dense<T> of_query(args.result(0)), of_key(args.result(1)), of_value(args.result(2));
    parallel_for(in.query.heads(), grain_of(in.base.queries * in.base.keys, 4096),
                 [&](int64_t lo, int64_t hi) {
                   for (; lo < hi; ++lo) {
                     Head<T> h = in.head(lo, out.data(), log_sums.data());
                     h.grad = grad[lo];
                     h.of_query = {of_query.data() + lo * h.queries * h.depth, h.depth};
                     h.of_key = {of_key.data() + lo * h.keys * h.depth, h.depth};
                     h.of_value = {of_value.data() + lo * h.keys * h.width, h.width};
                     attention_code<T>().backward(h);
                   }
                 });
    of_query.commit();
    of_key.commit();
    of_value.commit();
  });
}

// Weights that are dropped are the body's.
template <uint32_t Drop>
int32_t keeps_all(void*, const aj_call* call) {
  return Args(call).real(Drop) == 0;
}
template <auto F, uint32_t Drop>
constexpr Spec of_heads = {&plain_kernel<F>, stored_floating::own_mask, 0, keeps_all<Drop>};

}  // namespace

AJ_KERNELS(attention_kernels) = {
    {"_::attention", of_heads<attention, 6>},
    {"_::attention_backward", of_heads<attention_backward, 9>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
