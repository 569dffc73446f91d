// adjoin/kit/reduce.hpp: reductions over a plan by a fixed tree, so that the bits depend on shape
// and layout alone, never on the number of threads.
//
// Leaves of 4,096 elements in 64 lanes, folded 32, 16, ..., 1; leaves joined as a binary tree by
// index. In a leaf of long rows that lie apart each row is folded so, and they are joined in their
// order. Where the kept dimension is the contiguous one, leaves of 64 rows added in order. A
// reducer R<T> has State, plain bytes, T (what elements are loaded as) and
//   State start(); void add(State&, T, int64_t index); void join(State&, const State& later); auto
//   finish(State, int64_t n), a tuple of the results.
// It may have State leaf(const T*, int64_t n, int64_t first) and void rows(State*, const char* x,
// int64_t stride, int64_t rows, int64_t width, int64_t first): whole leaves of code of its own.
//
// A reducer makes only its leaves, joins and results; the walk is compiled once for all of them.
#ifndef ADJOIN_KIT_REDUCE_HPP
#define ADJOIN_KIT_REDUCE_HPP
#include <adjoin/kit/convert.hpp>
#include <adjoin/kit/parallel.hpp>
#include <memory>
#include <tuple>

namespace adjoin {
namespace AJ_HIDDEN kit {

constexpr int64_t kLeaf = 4096, kLanes = 64, kLeafRows = 64, kColumns = 512;

// Joins `width` states with later ones.
struct Joining {
  const void* reducer;
  size_t state;  // bytes of one
  void (*join)(const void* reducer, void* left, const void* later, int64_t width);
};
template <class R>
Joining joining(const R& r) {
  using State = typename R::State;
  return {&r, sizeof(State), [](const void* reducer, void* left, const void* later, int64_t width) {
            State* to = static_cast<State*>(left);
            const State* from = static_cast<const State*>(later);
            for (int64_t i = 0; i < width; ++i)
              static_cast<const R*>(reducer)->join(to[i], from[i]);
          }};
}

// The nodes of the tree that still wait for a right neighbour: entry k covers 2^k leaves. `width`
// states side by side.
class Tree {
 public:
  Tree(const Joining& j, int64_t width, int64_t leaves)
      : j_(j),
        width_(width),
        step_(size_t(width) * j.state),
        stack_(new char[(size_t(std::bit_width(uint64_t(leaves))) + 1) * step_]) {}
  char* top() { return &stack_[depth_ * step_]; }  // room for the next leaf
  void push() {  // what was written at top() is leaf number count_
    ++depth_;
    for (uint64_t c = count_++; c & 1; c >>= 1) merge();
  }
  char* finish() {
    while (depth_ > 1) merge();
    return &stack_[0];
  }

 private:
  void merge() {
    char* left = &stack_[(depth_ - 2) * step_];
    j_.join(j_.reducer, left, left + step_, width_);
    --depth_;
  }
  const Joining j_;
  int64_t width_;
  size_t step_, depth_ = 0;
  uint64_t count_ = 0;
  std::unique_ptr<char[]> stack_;
};

template <class R>
class TreeStack : Tree {
 public:
  using State = typename R::State;
  TreeStack(const R& r, int64_t width, int64_t leaves) : Tree(joining(r), width, leaves) {}
  State* top() { return reinterpret_cast<State*>(Tree::top()); }
  using Tree::push;
  State* finish() { return reinterpret_cast<State*>(Tree::finish()); }
};

template <class R>
typename R::State reduce_leaf(const R& r, const typename R::T* x, int64_t n, int64_t first) {
  if constexpr (requires { r.leaf(x, n, first); }) {
    return r.leaf(x, n, first);
  } else {
    typename R::State lane[kLanes];
    int64_t lanes = std::min(n, kLanes), i = 0;
    for (int64_t j = 0; j < lanes; ++j) lane[j] = r.start();
    for (; i + kLanes <= n; i += kLanes)
      for (int64_t j = 0; j < kLanes; ++j)
        r.add(lane[j], element<typename R::T>(x + i + j), first + i + j);
    for (int64_t j = 0; i + j < n; ++j)
      r.add(lane[j], element<typename R::T>(x + i + j), first + i + j);
    for (int64_t half = kLanes / 2; half; half /= 2)
      for (int64_t j = 0; j < half && j + half < lanes; ++j) r.join(lane[j], lane[j + half]);
    return lane[0];
  }
}

// Where results go: of each operand the first place and the bytes to the next one.
struct Results {
  const aj_operand* operand;
  uint32_t count;
  char* to[4];
  int64_t step[4];
};

// A reducer as data. Places are in bytes, states lie side by side.
struct Reducer {
  Joining joining;
  const Typed* element;
  uint32_t results;  // of finish()
  void (*start)(const void* reducer, void* states, int64_t width);
  // States of `count` leaves of n neighbours, `step` bytes apart.
  void (*leaves)(const void* reducer, void* states, const char* x, int64_t step, int64_t count,
                 int64_t n, int64_t first);
  // Of `width` columns a leaf of `rows` rows; one more row.
  void (*rows)(const void* reducer, void* states, const char* x, int64_t stride, int64_t rows,
               int64_t width, int64_t first);
  void (*add_row)(const void* reducer, void* states, const void* x, int64_t width, int64_t index);
  void (*finish)(const void* reducer, const void* states, int64_t width, int64_t n,
                 const Results& results);
  bool folds;  // rows() is code of its own and states are numbers, so that many are soon joined
};

template <class R>
struct ReducerCode {
  using T = typename R::T;
  using State = typename R::State;
  static_assert(std::is_trivially_copyable_v<State>);
  using Finished = decltype(std::declval<const R&>().finish(std::declval<State>(), int64_t()));
  static constexpr uint32_t kResults = std::tuple_size_v<Finished>;

  static const R& of(const void* reducer) { return *static_cast<const R*>(reducer); }
  static void start(const void* reducer, void* states, int64_t width) {
    for (int64_t j = 0; j < width; ++j) static_cast<State*>(states)[j] = of(reducer).start();
  }
  static void leaves(const void* reducer, void* states, const char* x, int64_t step, int64_t count,
                     int64_t n, int64_t first) {
    State* s = static_cast<State*>(states);
    for (int64_t j = 0; j < count; ++j)
      s[j] = reduce_leaf(of(reducer), reinterpret_cast<const T*>(x + j * step), n, first);
  }
  static void add_row(const void* reducer, void* states, const void* row, int64_t width,
                      int64_t index) {
    State* s = static_cast<State*>(states);
    const T* x = static_cast<const T*>(row);
    for (int64_t j = 0; j < width; ++j) of(reducer).add(s[j], element<T>(x + j), index);
  }
  static void rows(const void* reducer, void* states, const char* x, int64_t stride, int64_t rows,
                   int64_t width, int64_t first) {
    const R& r = of(reducer);
    State* s = static_cast<State*>(states);
    if constexpr (requires { r.rows(s, x, stride, rows, width, first); }) {
      r.rows(s, x, stride, rows, width, first);
    } else {
      start(reducer, states, width);
      for (int64_t i = 0; i < rows; ++i) add_row(reducer, states, x + i * stride, width, first + i);
    }
  }
  template <class V>
  static void put(const Results& to, uint32_t k, int64_t j, const V& v) {
    char* at = to.to[k] + j * to.step[k];
    if (same(to.operand[k].dtype, dtype_of<V>))
      *reinterpret_cast<V*>(at) = v;
    else
      Convert<V>::store(at, to.operand[k].dtype, 0, &v, 1);
  }
  static void finish(const void* reducer, const void* states, int64_t width, int64_t n,
                     const Results& to) {
    const State* s = static_cast<const State*>(states);
    for (int64_t j = 0; j < width; ++j) {
      const Finished results = of(reducer).finish(s[j], n);
      if (kResults > to.count) {  // the last is wanted alone
        put(to, 0, j, std::get<kResults - 1>(results));
        continue;
      }
      [&]<size_t... I>(std::index_sequence<I...>) { (put(to, I, j, std::get<I>(results)), ...); }
      (std::make_index_sequence<kResults>());
    }
  }
  static Reducer reducer(const R& r) {
    constexpr bool folds =
        std::is_arithmetic_v<State> && requires(State * s, const char* x, int64_t n) {
      r.rows(s, x, n, n, n, n);
    };
    return {joining(r), &typed<T>, kResults, start, leaves, rows, add_row, finish, folds};
  }
};

class Reduction {
 public:
  Reduction(const aj_plan& p, const Reducer& r)
      : p_(p),
        r_(r),
        code_(r.joining.reducer),
        state_(int64_t(r.joining.state)),
        in_(p.ops[p.nout]) {
    for (uint32_t d = 0; d < p.ndim; ++d) (d < p.nreduced ? n_ : kept_) *= p.sizes[d];
  }

  void run() {
    if (kept_ == 0) return;
    uint32_t c = p_.nreduced;
    // Columns that lie side by side, or in one line of the cache and nearer than what is reduced.
    bool by_columns = n_ > 1 && c > 0 && c < p_.ndim && p_.sizes[c] > 1 && in_.strides[c] > 0 &&
                      (in_.strides[c] == bytes_of(in_.dtype)
                           ? in_.strides[0] != in_.strides[c]
                           : in_.strides[c] <= 32 && in_.strides[c] < std::abs(in_.strides[0]));
    by_columns ? columns() : outputs();
  }

 private:
  static constexpr int64_t kMost = 64;  // bytes of a state
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
  std::unique_ptr<char[]> states(int64_t n) const {
    return std::unique_ptr<char[]>(new char[size_t(n * state_)]);
  }

  // Results that follow each other along the first kept dimension.
  void write(int64_t output, const char* s, int64_t width = 1) const {
    Results to = {p_.ops, p_.nout, {}, {}};
    for (uint32_t k = 0; k < std::min(r_.results, p_.nout); ++k) {
      to.to[k] = base(p_.ops[k]) + offset(p_.ops[k], p_.nreduced, p_.ndim, output);
      to.step[k] = width > 1 ? p_.ops[k].strides[p_.nreduced] : 0;
    }
    r_.finish(code_, s, width, n_, to);
  }

  bool in_place() const {  // are the elements of an output neighbours, of the type?
    int64_t inner = p_.nreduced ? p_.sizes[0] : 1, stride = p_.nreduced ? in_.strides[0] : 0;
    return n_ == inner && stride == int64_t(r_.element->size) && loaded();
  }
  bool loaded() const { return same(in_.dtype, r_.element->dtype); }

  // Outputs [lo, hi) along the only kept dimension, a leaf each: many at once, and what has to be
  // converted too.
  void short_outputs(int64_t lo, int64_t hi) const {
    constexpr int64_t most = 64;
    alignas(16) char s[most * kMost], buffer[kLeaf * 16];
    const int64_t step = in_.strides[p_.nreduced], row = n_ * int64_t(r_.element->size);
    const bool there = in_place();
    const bool side_by_side = p_.nreduced == 1 && step == n_ * in_.strides[0];
    for (int64_t m; lo < hi; lo += m) {
      m = std::min({most, there ? most : kLeaf / n_, hi - lo});
      char* from = base(in_) + lo * step;
      if (!there && side_by_side) r_.element->load(buffer, from, in_.dtype, in_.strides[0], m * n_);
      for (int64_t j = 0; !there && !side_by_side && j < m; ++j)
        gather(from + j * step, 0, n_, buffer + j * row);
      r_.leaves(code_, s, there ? from : buffer, there ? step : row, m, n_, 0);
      write(lo, s, m);
    }
  }

  // Are they rows of neighbours?
  bool rows_apart() const {
    return p_.nreduced > 1 && in_.strides[0] == int64_t(r_.element->size) && loaded();
  }

  // Elements [lo, lo + n) of the reduction at `from`, row by row: row(where it lies, elements
  // before it, elements).
  template <class F>
  void rows(char* from, int64_t lo, int64_t n, const F& row) const {
    int64_t inner = p_.nreduced ? p_.sizes[0] : 1, stride = p_.nreduced ? in_.strides[0] : 0;
    for (int64_t done = 0, m; done < n; done += m) {
      int64_t i = lo + done, column = i % inner;
      m = std::min(n - done, inner - column);
      int64_t at = p_.nreduced > 1 ? offset(in_, 1, p_.nreduced, i / inner) : 0;
      row(from + at + column * stride, done, m);
    }
  }

  // The same elements, contiguous: in place, or gathered into `buffer`.
  const char* gather(char* from, int64_t lo, int64_t n, char* buffer) const {
    const int64_t size = r_.element->size, stride = p_.nreduced ? in_.strides[0] : 0;
    if (in_place()) return from + lo * size;
    rows(from, lo, n, [&](const char* row, int64_t done, int64_t m) {
      r_.element->load(buffer + done * size, row, in_.dtype, stride, m);
    });
    return buffer;
  }

  void leaf(char* s, char* from, int64_t lo, int64_t n, char* buffer) const {
    if (!rows_apart() || p_.sizes[0] < kColumns)
      return r_.leaves(code_, s, gather(from, lo, n, buffer), 0, 1, n, lo);
    alignas(16) char one[kMost];
    rows(from, lo, n, [&](const char* row, int64_t done, int64_t m) {
      r_.leaves(code_, done ? one : s, row, 0, 1, m, lo + done);
      if (done) r_.joining.join(code_, s, one, 1);
    });
  }
  void leaves(char* s, char* from, int64_t lo, int64_t hi) const {  // elements [lo, hi)
    alignas(16) char buffer[kLeaf * 16];
    if (hi - lo <= kLeaf) return leaf(s, from, lo, hi - lo, buffer);
    Tree tree(r_.joining, 1, (hi - lo) / kLeaf + 1);
    for (; lo < hi; lo += kLeaf) {
      leaf(tree.top(), from, lo, std::min(kLeaf, hi - lo), buffer);
      tree.push();
    }
    std::memcpy(s, tree.finish(), size_t(state_));
  }

  // `count` nodes from `first` on, joined.
  char* joined(Tree& tree, const char* first, int64_t count, int64_t step, int64_t width) const {
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(tree.top(), first + i * step, size_t(width * state_));
      tree.push();
    }
    return tree.finish();
  }

  // An output whose rows lie apart: first row is added to row, then the columns are joined.
  bool folds() const {
    const int64_t least = 32, inner = p_.nreduced ? p_.sizes[0] : 1;
    return r_.folds && rows_apart() && inner >= least && inner <= kColumns && n_ >= 8 * inner;
  }
  void folded(char* s, char* from) const {
    alignas(16) char sums[kColumns * kMost];
    int64_t width = p_.sizes[0];
    block(from, 0, 1, width, 0, n_ / width, sums);
    for (int64_t half; width > 1; width = half) {
      half = (width + 1) / 2;
      r_.joining.join(code_, sums, sums + half * state_, width - half);
    }
    std::memcpy(s, sums, size_t(state_));
  }

  void outputs() const {
    alignas(16) char one[kMost];
    if (n_ == 0) {
      r_.start(code_, one, 1);
      for (int64_t o = 0; o < kept_; ++o) write(o, one);
      return;
    }
    constexpr int64_t run = 8 * kLeaf;  // an aligned run of 2^3 leaves is a node of the tree
    int64_t runs = (n_ + run - 1) / run;
    auto begin = [&](int64_t o) { return base(in_) + offset(in_, p_.nreduced, p_.ndim, o); };
    if (runs == 1 || kept_ >= 64) {
      const bool leaf_each = p_.ndim == p_.nreduced + 1 && n_ <= kLeaf, by_rows = folds();
      parallel_for(kept_, grain_of(n_), [&](int64_t lo, int64_t hi) {
        if (leaf_each && !by_rows) return short_outputs(lo, hi);
        alignas(16) char s[kMost];
        for (int64_t o = lo; o < hi; ++o) {
          by_rows ? folded(s, begin(o)) : leaves(s, begin(o), 0, n_);
          write(o, s);
        }
      });
      return;
    }
    std::unique_ptr<char[]> part = states(kept_ * runs);
    parallel_for(kept_ * runs, 1, [&](int64_t lo, int64_t hi) {
      for (int64_t i = lo; i < hi; ++i) {
        int64_t from = i % runs * run;
        leaves(&part[i * state_], begin(i / runs), from, std::min(n_, from + run));
      }
    });
    for (int64_t o = 0; o < kept_; ++o) {
      Tree tree(r_.joining, 1, runs);
      write(o, joined(tree, &part[o * runs * state_], runs, state_, 1));
    }
  }

  // Rows [lo, hi) of `width` columns at `from` into states; columns lie along the dimension
  // `column`, rows along the reduced ones from `first` on.
  void block(char* from, uint32_t column, uint32_t first, int64_t width, int64_t lo, int64_t hi,
             char* out) const {
    alignas(16) char buffer[kColumns * 16];
    const bool direct = loaded() && in_.strides[column] == bytes_of(in_.dtype);
    Tree tree(r_.joining, width, (hi - lo) / kLeafRows + 1);
    for (int64_t leaf = lo; leaf < hi; leaf += kLeafRows) {
      char* s = tree.top();
      const int64_t rows = std::min(hi - leaf, kLeafRows);
      if (direct && p_.nreduced == first + 1) {
        const int64_t stride = in_.strides[first];
        r_.rows(code_, s, from + leaf * stride, stride, rows, width, leaf);
      } else {
        r_.start(code_, s, width);
        for (int64_t i = leaf; i < leaf + rows; ++i) {
          const char* row = from + offset(in_, first, p_.nreduced, i);
          if (!direct) r_.element->load(buffer, row, in_.dtype, in_.strides[column], width);
          r_.add_row(code_, s, direct ? row : buffer, width, i);
        }
      }
      tree.push();
    }
    std::memcpy(out, tree.finish(), size_t(width * state_));
  }

  void columns() const {
    int64_t inner = p_.sizes[p_.nreduced], outer = kept_ / inner;
    int64_t tiles = (inner + kColumns - 1) / kColumns, run = 16 * kLeafRows;
    bool split = tiles * outer < 16 && n_ > run;
    if (!split) run = n_;
    int64_t runs = (n_ + run - 1) / run;
    std::unique_ptr<char[]> part = states(split ? outer * tiles * runs * kColumns : 1);
    auto tile = [&](int64_t t, auto go) {  // go(pointer, first output, width)
      int64_t first = t % tiles * kColumns;
      char* from = base(in_) + offset(in_, p_.nreduced + 1, p_.ndim, t / tiles) +
                   first * in_.strides[p_.nreduced];
      go(from, t / tiles * inner + first, std::min(kColumns, inner - first));
    };
    parallel_for(outer * tiles * runs, grain_of(std::min(kColumns, inner) * run),
                 [&](int64_t lo, int64_t hi) {
                   for (int64_t i = lo; i < hi; ++i)
                     tile(i / runs, [&](char* from, int64_t output, int64_t width) {
                       alignas(16) char own[kColumns * kMost];
                       char* out = split ? &part[i * kColumns * state_] : own;
                       int64_t row = i % runs * run;
                       block(from, p_.nreduced, 0, width, row, std::min(n_, row + run), out);
                       if (!split) write(output, out, width);
                     });
                 });
    for (int64_t t = 0; split && t < outer * tiles; ++t)
      tile(t, [&](char*, int64_t output, int64_t width) {
        Tree tree(r_.joining, width, runs);
        const int64_t step = kColumns * state_;
        write(output, joined(tree, &part[t * runs * step], runs, step, width), width);
      });
  }

  const aj_plan& p_;
  const Reducer& r_;
  const void* code_;
  int64_t state_;
  const aj_operand& in_;
  int64_t n_ = 1, kept_ = 1;
};

template <class R>
void reduce(const aj_plan& p, const R& r) {
  using T = typename R::T;
  static_assert(sizeof(typename R::State) <= 64);
  // Few elements in one row are a leaf: nothing is to be walked.
  const aj_operand& in = p.ops[p.nout];
  const int64_t n = p.ndim == 1 && p.nreduced == 1 ? p.sizes[0] : 0;
  if (n > 0 && n <= kLeaf && in.strides[0] == int64_t(sizeof(T)) && same(in.dtype, dtype_of<T>)) {
    const typename R::State s = reduce_leaf(r, static_cast<const T*>(in.data), n, 0);
    Results to = {p.ops, p.nout, {}, {}};
    for (uint32_t k = 0; k < std::min(ReducerCode<R>::kResults, p.nout); ++k)
      to.to[k] = static_cast<char*>(p.ops[k].data);
    return ReducerCode<R>::finish(&r, &s, 1, n, to);
  }
  const Reducer reducer = ReducerCode<R>::reducer(r);
  Reduction(p, reducer).run();
}

}  // namespace kit
}  // namespace adjoin
#endif
