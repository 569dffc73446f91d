// adjoin/kit/reduce.hpp: reductions over a plan by a fixed tree, so that the bits depend on shape
// and layout alone, never on the number of threads.
//
// Leaves of 4,096 elements in 64 lanes, folded 32, 16, ..., 1; leaves joined as a binary tree by
// index. Where the kept dimension is the contiguous one, leaves of 64 rows added in order. A
// reducer R<T> has State, T (what elements are loaded as), Out (a tuple of results' types) and
//   State start(); void add(State&, T, int64_t index); void join(State&, const State& later); auto
//   finish(State, int64_t n).
// It may have State leaf(const T*, int64_t n, int64_t first) and void rows(State*, const char* x,
// int64_t stride, int64_t rows, int64_t width, int64_t first): whole leaves of code of its own.
#ifndef ADJOIN_KIT_REDUCE_HPP
#define ADJOIN_KIT_REDUCE_HPP
#include <adjoin/kit/convert.hpp>
#include <adjoin/kit/parallel.hpp>
#include <memory>
#include <tuple>

namespace adjoin {
namespace AJ_HIDDEN kit {

constexpr int64_t kLeaf = 4096, kLanes = 64, kLeafRows = 64, kColumns = 512;

// The nodes of the tree that still wait for a right neighbour: entry k covers 2^k leaves. `width`
// states side by side.
template <class R>
class TreeStack {
 public:
  using State = typename R::State;
  TreeStack(const R& r, int64_t width, int64_t leaves)
      : r_(r), width_(width), stack_(new State[(std::bit_width(uint64_t(leaves)) + 1) * width]) {}
  State* top() { return &stack_[depth_ * width_]; }  // room for the next leaf
  void push() {  // what was written at top() is leaf number count_
    ++depth_;
    for (uint64_t c = count_++; c & 1; c >>= 1) merge();
  }
  State* finish() {
    while (depth_ > 1) merge();
    return &stack_[0];
  }

 private:
  void merge() {
    State *left = &stack_[(depth_ - 2) * width_], *right = left + width_;
    for (int64_t i = 0; i < width_; ++i) r_.join(left[i], right[i]);
    --depth_;
  }
  const R& r_;
  int64_t width_, depth_ = 0;
  uint64_t count_ = 0;
  std::unique_ptr<State[]> stack_;
};

template <class R>
typename R::State reduce_leaf(const R& r, const typename R::T* x, int64_t n, int64_t first) {
  if constexpr (requires { r.leaf(x, n, first); }) return r.leaf(x, n, first);
  typename R::State lane[kLanes];
  int64_t lanes = std::min(n, kLanes), i = 0;
  for (int64_t j = 0; j < lanes; ++j) lane[j] = r.start();
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t j = 0; j < kLanes; ++j) r.add(lane[j], x[i + j], first + i + j);
  for (int64_t j = 0; i + j < n; ++j) r.add(lane[j], x[i + j], first + i + j);
  for (int64_t half = kLanes / 2; half; half /= 2)
    for (int64_t j = 0; j < half && j + half < lanes; ++j) r.join(lane[j], lane[j + half]);
  return lane[0];
}

template <class R>
class Reduction {
  using T = typename R::T;
  using State = typename R::State;

 public:
  Reduction(const aj_plan& p, const R& r) : p_(p), r_(r), in_(p.ops[p.nout]) {
    for (uint32_t d = 0; d < p.ndim; ++d) (d < p.nreduced ? n_ : kept_) *= p.sizes[d];
  }

  void run() {
    if (kept_ == 0) return;
    uint32_t c = p_.nreduced;
    bool by_columns = n_ > 1 && c > 0 && c < p_.ndim && in_.strides[c] == bytes_of(in_.dtype) &&
                      p_.sizes[c] > 1 && in_.strides[0] != in_.strides[c];
    by_columns ? columns() : outputs();
  }

 private:
  // Byte offset of element i of the dimensions [from, to), for operand o.
  int64_t offset(const aj_operand& o, uint32_t from, uint32_t to, int64_t i) const {
    if (to == from + 1) return i * o.strides[from];
    int64_t at = 0;
    for (uint32_t d = from; d < to; ++d) {
      at += i % p_.sizes[d] * o.strides[d];
      i /= p_.sizes[d];
    }
    return at;
  }
  char* base(const aj_operand& o) const { return static_cast<char*>(o.data); }

  void write(int64_t output, const State& s) const { write_run(output, &s, 1); }
  // Results that follow each other along the first kept dimension.
  void write_run(int64_t output, const State* s, int64_t width) const {
    constexpr uint32_t count = std::tuple_size_v<decltype(r_.finish(*s, n_))>;
    char* to[count] = {};
    int64_t step[count] = {};
    for (uint32_t k = 0; k < std::min<uint32_t>(count, p_.nout); ++k) {
      to[k] = base(p_.ops[k]) + offset(p_.ops[k], p_.nreduced, p_.ndim, output);
      step[k] = width > 1 ? p_.ops[k].strides[p_.nreduced] : 0;
    }
    for (int64_t j = 0; j < width; ++j) {
      auto results = r_.finish(s[j], n_);
      if (count > p_.nout) {  // the last is wanted alone
        put_one(p_.ops[0], to[0] + j * step[0], std::get<count - 1>(results));
        continue;
      }
      [&]<size_t... I>(std::index_sequence<I...>) {
        (put_one(p_.ops[I], to[I] + j * step[I], std::get<I>(results)), ...);
      }
      (std::make_index_sequence<count>());
    }
  }
  template <class V>
  void put_one(const aj_operand& o, char* to, const V& v) const {
    if (same(o.dtype, dtype_of<V>))
      *reinterpret_cast<V*>(to) = v;
    else
      Convert<V>::store(to, o.dtype, 0, &v, 1);
  }

  bool in_place() const {  // are the elements of an output neighbours, of the type?
    int64_t inner = p_.nreduced ? p_.sizes[0] : 1, stride = p_.nreduced ? in_.strides[0] : 0;
    return n_ == inner && stride == int64_t(sizeof(T)) && same(in_.dtype, dtype_of<T>);
  }
  // Outputs [lo, hi) along the only kept dimension, a leaf each.
  void short_outputs(int64_t lo, int64_t hi) const {
    constexpr int64_t most = 64;
    State s[most];
    int64_t step = in_.strides[p_.nreduced];
    for (int64_t m; lo < hi; lo += m) {
      m = std::min(most, hi - lo);
      for (int64_t j = 0; j < m; ++j)
        s[j] = reduce_leaf(r_, reinterpret_cast<const T*>(base(in_) + (lo + j) * step), n_, 0);
      write_run(lo, s, m);
    }
  }

  // Elements [lo, lo + n) of the reduction at `from`, contiguous: in place, or gathered into
  // `buffer`.
  const T* gather(char* from, int64_t lo, int64_t n, T* buffer) const {
    int64_t inner = p_.nreduced ? p_.sizes[0] : 1, stride = p_.nreduced ? in_.strides[0] : 0;
    if (in_place()) return reinterpret_cast<const T*>(from) + lo;
    for (int64_t done = 0; done < n;) {
      int64_t i = lo + done, column = i % inner, m = std::min(n - done, inner - column);
      int64_t at = p_.nreduced > 1 ? offset(in_, 1, p_.nreduced, i / inner) : 0;
      Convert<T>::load(buffer + done, from + at + column * stride, in_.dtype, stride, m);
      done += m;
    }
    return buffer;
  }

  State leaves(char* from, int64_t lo, int64_t hi) const {  // elements [lo, hi)
    T buffer[kLeaf];
    buffer[0] = T(0);  // gcc 12 sees a way on which nobody writes it
    if (hi - lo <= kLeaf) return reduce_leaf(r_, gather(from, lo, hi - lo, buffer), hi - lo, lo);
    TreeStack<R> stack(r_, 1, (hi - lo) / kLeaf + 1);
    for (; lo < hi; lo += kLeaf) {
      int64_t n = std::min(kLeaf, hi - lo);
      *stack.top() = reduce_leaf(r_, gather(from, lo, n, buffer), n, lo);
      stack.push();
    }
    return *stack.finish();
  }

  void outputs() const {
    if (n_ == 0) {
      for (int64_t o = 0; o < kept_; ++o) write(o, r_.start());
      return;
    }
    constexpr int64_t run = 8 * kLeaf;  // an aligned run of 2^3 leaves is a node of the tree
    int64_t runs = (n_ + run - 1) / run;
    auto begin = [&](int64_t o) { return base(in_) + offset(in_, p_.nreduced, p_.ndim, o); };
    if (runs == 1 || kept_ >= 64) {
      bool leaf_each = p_.ndim == p_.nreduced + 1 && n_ <= kLeaf && in_place();
      parallel_for(kept_, grain_of(n_), [&](int64_t lo, int64_t hi) {
        if (leaf_each) return short_outputs(lo, hi);
        for (int64_t o = lo; o < hi; ++o) write(o, leaves(begin(o), 0, n_));
      });
      return;
    }
    std::unique_ptr<State[]> part(new State[kept_ * runs]);
    parallel_for(kept_ * runs, 1, [&](int64_t lo, int64_t hi) {
      for (int64_t i = lo; i < hi; ++i) {
        int64_t from = i % runs * run;
        part[i] = leaves(begin(i / runs), from, std::min(n_, from + run));
      }
    });
    for (int64_t o = 0; o < kept_; ++o) {
      TreeStack<R> stack(r_, 1, runs);
      for (int64_t i = 0; i < runs; ++i) {
        *stack.top() = part[o * runs + i];
        stack.push();
      }
      write(o, *stack.finish());
    }
  }

  // Rows [lo, hi) of `width` columns at `from` into states.
  void block(char* from, int64_t width, int64_t lo, int64_t hi, State* out) const {
    T buffer[kColumns];
    bool direct = same(in_.dtype, dtype_of<T>);
    TreeStack<R> stack(r_, width, (hi - lo) / kLeafRows + 1);
    for (int64_t leaf = lo; leaf < hi; leaf += kLeafRows) {
      State* s = stack.top();
      if constexpr (requires { r_.rows(s, from, width, width, width, lo); })
        if (direct && p_.nreduced == 1) {
          int64_t stride = in_.strides[0], rows = std::min(hi - leaf, kLeafRows);
          r_.rows(s, from + leaf * stride, stride, rows, width, leaf);
          stack.push();
          continue;
        }
      for (int64_t j = 0; j < width; ++j) s[j] = r_.start();
      for (int64_t i = leaf; i < std::min(hi, leaf + kLeafRows); ++i) {
        char* row = from + (p_.nreduced == 1 ? i * in_.strides[0] : offset(in_, 0, p_.nreduced, i));
        if (!direct) Convert<T>::load(buffer, row, in_.dtype, in_.strides[p_.nreduced], width);
        const T* x = direct ? reinterpret_cast<const T*>(row) : buffer;
        for (int64_t j = 0; j < width; ++j) r_.add(s[j], x[j], i);
      }
      stack.push();
    }
    std::copy_n(stack.finish(), width, out);
  }

  void columns() const {
    int64_t inner = p_.sizes[p_.nreduced], outer = kept_ / inner;
    int64_t tiles = (inner + kColumns - 1) / kColumns, run = 16 * kLeafRows;
    bool split = tiles * outer < 16 && n_ > run;
    if (!split) run = n_;
    int64_t runs = (n_ + run - 1) / run;
    std::unique_ptr<State[]> part(new State[split ? outer * tiles * runs * kColumns : 1]);
    auto tile = [&](int64_t t, auto go) {  // go(pointer, first output, width)
      int64_t first = t % tiles * kColumns;
      char* from = base(in_) + offset(in_, p_.nreduced + 1, p_.ndim, t / tiles) +
                   first * in_.strides[p_.nreduced];
      go(from, t / tiles * inner + first, std::min(kColumns, inner - first));
    };
    auto put_all = [&](int64_t output, int64_t width, const State* s) {
      write_run(output, s, width);
    };
    parallel_for(outer * tiles * runs, grain_of(std::min(kColumns, inner) * run),
                 [&](int64_t lo, int64_t hi) {
                   for (int64_t i = lo; i < hi; ++i)
                     tile(i / runs, [&](char* from, int64_t output, int64_t width) {
                       State own[kColumns], *out = split ? &part[i * kColumns] : own;
                       int64_t row = i % runs * run;
                       block(from, width, row, std::min(n_, row + run), out);
                       if (!split) put_all(output, width, out);
                     });
                 });
    for (int64_t t = 0; split && t < outer * tiles; ++t)
      tile(t, [&](char*, int64_t output, int64_t width) {
        TreeStack<R> stack(r_, width, runs);
        for (int64_t i = 0; i < runs; ++i) {
          std::copy_n(&part[(t * runs + i) * kColumns], width, stack.top());
          stack.push();
        }
        put_all(output, width, stack.finish());
      });
  }

  const aj_plan& p_;
  const R& r_;
  const aj_operand& in_;
  int64_t n_ = 1, kept_ = 1;
};

template <class R>
void reduce(const aj_plan& p, const R& r) {
  Reduction<R>(p, r).run();
}

}  // namespace kit
}  // namespace adjoin
#endif
