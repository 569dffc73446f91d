// plugins/cpu/lines/attention_forward-inl.hpp: a head's output, block by block.
#if defined(ADJOIN_PLUGINS_CPU_LINES_ATTENTION_FORWARD_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ADJOIN_PLUGINS_CPU_LINES_ATTENTION_FORWARD_INL_HPP
#undef ADJOIN_PLUGINS_CPU_LINES_ATTENTION_FORWARD_INL_HPP
#else
#define ADJOIN_PLUGINS_CPU_LINES_ATTENTION_FORWARD_INL_HPP
#endif

HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// The mask onto scores of query i and keys [from, from + n).
// Minus infinity in the places of a row that are not seen: nobody can foresee a mask, so no jump.
template <class T>
HWY_INLINE int64_t hide(const bool* seen, int64_t n, T* s) {
  const hn::ScalableTag<T> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const hn::Rebind<uint32_t, decltype(d)> d32;
  const auto hidden = hn::Set(d, -std::numeric_limits<T>::infinity());
  const int64_t lanes = int64_t(hn::Lanes(d));
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    const auto bytes = hn::LoadU(d8, reinterpret_cast<const uint8_t*>(seen) + j);
    const auto is_seen = [&]() HWY_ATTR {
      if constexpr (sizeof(T) == 4)
        return hn::Ne(hn::PromoteTo(du, bytes), hn::Zero(du));
      else
        return hn::Ne(hn::PromoteTo(du, hn::PromoteTo(d32, bytes)), hn::Zero(du));
    }();
    hn::StoreU(hn::IfThenElse(hn::RebindMask(d, is_seen), hn::LoadU(d, s + j), hidden), d, s + j);
  }
  return j;
}
template <class T>
HWY_INLINE int64_t add_mask(const T* added, int64_t n, T* s) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = int64_t(hn::Lanes(d));
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes)
    hn::StoreU(hn::Add(hn::LoadU(d, s + j), hn::LoadU(d, added + j)), d, s + j);
  return j;
}
template <class T>
void mask_row(const Head<T>& h, int64_t i, int64_t from, int64_t n, T* s) {
  const int64_t at = i * h.mask_row + from * h.mask_column;
  int64_t done = 0;
  if (h.mask_column == 1 && h.added) done = add_mask(h.added + at, n, s);
  if (h.mask_column == 1 && !h.added && h.seen) done = hide(h.seen + at, n, s);
  if (h.added) {
    for (int64_t j = done; j < n; ++j) s[j] += h.added[at + j * h.mask_column];
  } else if (h.seen) {
    for (int64_t j = done; j < n; ++j)
      if (!h.seen[at + j * h.mask_column]) s[j] = -std::numeric_limits<T>::infinity();
  }
}

template <class T>
class Forward {
  static constexpr int64_t Q = kAttentionQueries, K = kAttentionKeys, R = tiles::kRows;
  static constexpr int64_t kStep = K + 16;  // rows do not fall on the same lines of the cache

 public:
  Forward(const Head<T>& h, int64_t lo, int64_t hi)
      : h_(h), lo_(lo), hi_(hi), wide_(tiles::whole_vectors<T>(h.width)) {
    int64_t panels = (std::min(K, h.keys) + tiles::kColumns<T> - 1) / tiles::kColumns<T>;
    int64_t packed = panels * tiles::kColumns<T> * h.depth, values = K * wide_;
    T* room = attention_room<T>(packed + values + Q * (kStep + h.depth + 16 + wide_) +
                                3 * (hi - lo) + 64);
    auto take = [&](int64_t n) {
      T* at = room;
      room += (n + 15) / 16 * 16;
      return at;
    };
    key_ = take(packed), value_ = take(values), scores_ = take(Q * kStep);
    query_ = take(Q * h.depth), sums_ = take(Q * wide_);
    top_ = take(hi - lo), total_ = take(hi - lo);
  }

  void run() {
    std::fill_n(top_, hi_ - lo_, -std::numeric_limits<T>::infinity());
    std::fill_n(total_, hi_ - lo_, T(0));
    int64_t reach = h_.reach(hi_);
    for (int64_t from = 0; from < reach; from += K) {
      int64_t n = std::min(K, reach - from);
      tiles::pack_transposed(h_.key[from], h_.key.step, n, h_.depth, key_);
      const T* value = h_.value[from];
      int64_t step = h_.value.step;
      if (h_.width != wide_) {
        tiles::copy_rows(value, step, n, h_.width, T(1), value_, wide_);
        value = value_, step = wide_;
      }
      for (int64_t i = lo_; i < hi_; i += Q) {
        int64_t m = std::min(Q, hi_ - i);
        if (h_.reach(i + m) > from) block(i, m, from, n, value, step);
      }
    }
  }

 private:
  // Rows that are multiplied together see keys [from, from + this).
  int64_t seen(int64_t i, int64_t m, int64_t from, int64_t n) const {
    return std::clamp<int64_t>(h_.reach(i + m) - from, 0, n);
  }

  void block(int64_t i, int64_t m, int64_t from, int64_t n, const T* value, int64_t step) {
    tiles::copy_rows(h_.query[i], h_.query.step, m, h_.depth, h_.scale, query_, h_.depth);
    // Causal: what all rows see is one product; behind that every tile of rows has its own end.
    constexpr int64_t C = tiles::kColumns<T>, deep = 128;
    int64_t group = h_.causal ? R : m, all = seen(i, 1, from, n),
            common = h_.causal ? all / C * C : n;
    tiles::product_packed(m, common, h_.depth, {query_, h_.depth, 1}, key_, scores_, kStep);
    for (int64_t r = 0; r < m && common < n; r += group) {
      int64_t rows = std::min(group, m - r), k = seen(i + r, rows, from, n);
      tiles::product_packed(rows, k - common, h_.depth, {query_ + r * h_.depth, h_.depth, 1},
                            key_ + common * h_.depth, scores_ + r * kStep + common, kStep);
    }
    bool first = from == 0, last = from + n >= h_.reach(i + m);
    for (int64_t r = 0; r < m; ++r) {
      int64_t of_tile = r / group * group, end = std::min(of_tile + group, m);
      T fade = soften(i + r, from, seen(i + r, 1, from, n),
                      seen(i + of_tile, end - of_tile, from, n), scores_ + r * kStep);
      if (!first) load(i + r, fade, sums_ + r * wide_);
    }
    for (int64_t at = 0; at < n; at += deep)  // so many rows of value stay in the first cache
      for (int64_t r = 0, rows = 0; r < m; r += rows) {
        rows = std::min(at + deep <= all ? m : group, m - r);
        int64_t k = seen(i + r, rows, from, n) - at;
        if (k > 0 || at == 0)
          tiles::product(rows, wide_, std::min(std::max<int64_t>(k, 0), deep),
                         {scores_ + r * kStep + at, kStep, 1}, value + at * step, step,
                         sums_ + r * wide_, wide_, !first || at > 0);
      }
    for (int64_t r = 0; r < m; ++r) store(i + r, last, sums_ + r * wide_);
  }

  // Scores to exponentials; returns what earlier sums have to be multiplied with.
  T soften(int64_t i, int64_t from, int64_t n, int64_t until, T* s) {
    mask_row(h_, i, from, n, s);
    T &top = top_[i - lo_], &total = total_[i - lo_];
    T large = rows::largest(s, n), above = large <= top ? top : large, fade = T(1);
    if (above == -std::numeric_limits<T>::infinity()) {
      std::fill_n(s, until, T(0));
      return fade;
    }
    if (top != above) fade = std::exp(top - above);
    top = above;
    total = total * fade + T(rows::total<T>(n, [=](auto d, int64_t j) HWY_ATTR {
              auto e = math::exp(d, hn::Sub(hn::LoadU(d, s + j), hn::Set(d, above)));
              hn::StoreU(e, d, s + j);
              return e;
            }));
    for (int64_t j = n; j < until; ++j) s[j] = T(0);
    return fade;
  }
  void load(int64_t i, T fade, T* sums) const {
    const T* out = h_.out[i];
    for (int64_t j = 0; j < h_.width; ++j) sums[j] = out[j] * fade;
    for (int64_t j = h_.width; j < wide_; ++j) sums[j] = T(0);
  }
  void store(int64_t i, bool last, const T* sums) const {
    T total = total_[i - lo_], by = !last ? T(1) : total == T(0) ? T(0) : T(1) / total;
    T* out = h_.out[i];
    for (int64_t j = 0; j < h_.width; ++j) out[j] = sums[j] * by;
    // No key was seen: infinity makes the weights of the backward pass zero.
    if (last)
      h_.log_sums[i] =
          total == T(0) ? std::numeric_limits<T>::infinity() : top_[i - lo_] + std::log(total);
  }

  const Head<T>& h_;
  int64_t lo_, hi_, wide_;  // wide_: width in whole vectors
  T *key_, *value_, *scores_, *query_, *sums_, *top_, *total_;
};

template <class T>
void attention_forward(const Head<T>& h, int64_t lo, int64_t hi) {
  Forward<T>(h, lo, hi).run();
}

}  // namespace
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
