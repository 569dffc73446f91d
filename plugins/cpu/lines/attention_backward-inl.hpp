// plugins/cpu/lines/attention_backward-inl.hpp: a head's gradients, block by block.
#if defined(ADJOIN_PLUGINS_CPU_LINES_ATTENTION_BACKWARD_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ADJOIN_PLUGINS_CPU_LINES_ATTENTION_BACKWARD_INL_HPP
#undef ADJOIN_PLUGINS_CPU_LINES_ATTENTION_BACKWARD_INL_HPP
#else
#define ADJOIN_PLUGINS_CPU_LINES_ATTENTION_BACKWARD_INL_HPP
#endif

HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

template <class T>
class Backward {
  static constexpr int64_t Q = 96, K = 256, R = tiles::kRows, kStep = K + 16;

 public:
  explicit Backward(const Head<T>& h)
      : h_(h), deep_(tiles::whole_vectors<T>(h.depth)), wide_(tiles::whole_vectors<T>(h.width)) {
    int64_t columns = std::max<int64_t>(K, tiles::kColumns<T>);
    int64_t sizes[] = {columns * h.depth, columns * h.width, K * deep_,        Q * deep_,
                       Q * wide_,         K * deep_,         K * wide_,        Q * kStep,
                       Q * kStep,         h.queries,         h.queries * deep_};
    T** const parts[] = {&key_t_,    &value_t_, &key_,    &query_, &grad_,    &of_key_,
                         &of_value_, &weights_, &scores_, &dots_,  &of_query_};
    int64_t all = 0;
    for (int64_t n : sizes) all += (n + 15) / 16 * 16;
    T* room = attention_room<T>(all);
    for (size_t p = 0; p < std::size(sizes); room += (sizes[p++] + 15) / 16 * 16) *parts[p] = room;
  }

  void run() {
    std::fill_n(of_query_, h_.queries * deep_, T(0));
    for (int64_t i = 0; i < h_.queries; ++i) {
      const T *g = h_.grad[i], *o = h_.out[i];
      dots_[i] = T(rows::total<T>(h_.width, [=](auto d, int64_t j) HWY_ATTR {
        return hn::Mul(hn::LoadU(d, g + j), hn::LoadU(d, o + j));
      }));
    }
    for (int64_t from = 0; from < h_.keys; from += K) keys(from, std::min(K, h_.keys - from));
    for (int64_t i = 0; i < h_.queries; ++i)
      for (int64_t j = 0; j < h_.depth; ++j)
        h_.of_query[i][j] = of_query_[i * deep_ + j] * h_.scale;
  }

 private:
  int64_t seen(int64_t i, int64_t m, int64_t from, int64_t n) const {
    return std::clamp<int64_t>(h_.reach(i + m) - from, 0, n);
  }

  void keys(int64_t from, int64_t n) {
    tiles::pack_transposed(h_.key[from], h_.key.step, n, h_.depth, key_t_);
    tiles::pack_transposed(h_.value[from], h_.value.step, n, h_.width, value_t_);
    tiles::copy_rows(h_.key[from], h_.key.step, n, h_.depth, T(1), key_, deep_);
    std::fill_n(of_key_, n * deep_, T(0));
    std::fill_n(of_value_, n * wide_, T(0));
    int64_t first = h_.causal ? std::min(from, h_.queries) / Q * Q : 0;
    for (int64_t i = first; i < h_.queries; i += Q) block(i, std::min(Q, h_.queries - i), from, n);
    for (int64_t j = 0; j < n; ++j) {
      std::copy_n(of_key_ + j * deep_, h_.depth, h_.of_key[from + j]);
      std::copy_n(of_value_ + j * wide_, h_.width, h_.of_value[from + j]);
    }
  }

  void block(int64_t i, int64_t m, int64_t from, int64_t n) {
    tiles::copy_rows(h_.query[i], h_.query.step, m, h_.depth, h_.scale, query_, deep_);
    tiles::copy_rows(h_.grad[i], h_.grad.step, m, h_.width, T(1), grad_, wide_);
    int64_t group = h_.causal ? R : m;
    for (int64_t r = 0; r < m; r += group) {
      int64_t rows = std::min(group, m - r), k = seen(i + r, rows, from, n);
      tiles::product_packed(rows, k, h_.depth, {query_ + r * deep_, deep_, 1}, key_t_,
                            weights_ + r * kStep, kStep);
      tiles::product_packed(rows, k, h_.width, {grad_ + r * wide_, wide_, 1}, value_t_,
                            scores_ + r * kStep, kStep);
      for (int64_t q = r; q < r + rows; ++q) weigh(i, q, from, seen(i + q, 1, from, n), k);
      tiles::product(rows, deep_, k, {scores_ + r * kStep, kStep, 1}, key_, deep_,
                     of_query_ + (i + r) * deep_, deep_, true);
    }
    // Keys [j, j + rows) are seen by the block's queries from `skip` on.
    group = h_.causal ? R : n;
    for (int64_t j = 0; j < n; j += group) {
      int64_t rows = std::min(group, n - j);
      int64_t skip = h_.causal ? std::max<int64_t>(from + j - i, 0) : 0;
      if (skip >= m) break;
      skip = skip / R * R;
      T *w = weights_ + skip * kStep + j, *s = scores_ + skip * kStep + j;
      tiles::product(rows, wide_, m - skip, {w, 1, kStep}, grad_ + skip * wide_, wide_,
                     of_value_ + j * wide_, wide_, true);
      tiles::product(rows, deep_, m - skip, {s, 1, kStep}, query_ + skip * deep_, deep_,
                     of_key_ + j * deep_, deep_, true);
    }
  }

  // Of query i + q: scores to weights, the weights' gradients to those of the scores. Zeros follow
  // up to the end of the block, which the products with keys read.
  void weigh(int64_t i, int64_t q, int64_t from, int64_t n, int64_t until) {
    T *w = weights_ + q * kStep, *s = scores_ + q * kStep;
    mask_row(h_, i + q, from, n, w);
    T log_sum = h_.log_sums[i + q], dot = dots_[i + q];
    rows::write(w, n, false, [=](auto d, int64_t j) HWY_ATTR {
      auto e = math::exp(d, hn::Sub(hn::LoadU(d, w + j), hn::Set(d, log_sum)));
      hn::StoreU(hn::Mul(e, hn::Sub(hn::LoadU(d, s + j), hn::Set(d, dot))), d, s + j);
      return e;
    });
    until = h_.causal ? std::min(K, until + 2 * R) : until;
    std::fill(w + n, w + std::max(n, until), T(0));
    std::fill(s + n, s + std::max(n, until), T(0));
  }

  const Head<T>& h_;
  int64_t deep_, wide_;  // depth and width in whole vectors
  T *key_t_, *value_t_, *key_, *query_, *grad_, *of_key_, *of_value_, *weights_, *scores_, *dots_,
      *of_query_;
};

template <class T>
void attention_backward(const Head<T>& h) {
  Backward<T>(h).run();
}

}  // namespace
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
