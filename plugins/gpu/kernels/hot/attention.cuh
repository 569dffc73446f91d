// plugins/gpu/kernels/hot/attention.cuh: scaled dot product attention without the matrix of scores:
// tile by tile, the softmax corrected as tiles come; the gradients make the tiles again.
//
// Dao et al., FlashAttention, 2022.
#include <memory>
#include <vector>

#include "../../block.cuh"
#include "../../draw.cuh"
#include "../../element.cuh"
#include "../../pack.cuh"
#include "../../tile.cuh"

// Loads that go out together: with all of a tile's, sums would leave the registers.
#if defined(__CUDACC__) || defined(__HIPCC__)
#define AJ_EIGHT_AT_ONCE _Pragma("unroll 8")
#else
#define AJ_EIGHT_AT_ONCE
#endif

namespace adjoin::gpu {
namespace {

constexpr int kLead = 6;  // dimensions of heads that a kernel walks; with more the op's body serves
constexpr int kWidest = 4;    // tiles of the result beside each other that one block makes
constexpr int kDropping = 2;  // such tiles where weights are dropped

// i becomes i / size; returns what is left. A block divides once, outside of its loops, in 32 bits
// where they suffice: prepared divisors would take registers that the sums need.
[[gnu::noinline]] AJ_HD inline int64_t divide_wide(int64_t i, int64_t size) { return i / size; }
AJ_HD inline int64_t split(int64_t* i, int64_t size) {
  if ((*i | size) >> 32) {
    int64_t all = *i;
    *i = divide_wide(all, size);
    return all - *i * size;
  }
  uint32_t all = uint32_t(*i), q = all / uint32_t(size);
  *i = q;
  return all - q * uint32_t(size);
}

// Matrices of heads that stand in leading dimensions of any strides, in elements.
template <class T>
struct Stack {
  const T* p;
  int64_t row, column, steps[kLead];
};

template <class T>
struct Problem {
  using A = Accumulator<T>;
  Stack<T> query, key, value, grad;
  Stack<T> added;            // p is NULL: no mask of numbers
  Stack<bool> seen;          // p is NULL: no mask of bool
  const A *log_sums, *dots;  // of each query: backward
  A* sums_out;               // forward
  T* out;                    // the result, dense, out_rows x out_columns a head
  int64_t heads, queries, keys, depth, width, out_rows, out_columns;
  int64_t row_tiles, groups;  // groups of columns, each a block's
  int32_t lead;
  int64_t sizes[kLead];
  A scale, kept;  // what is left of a weight that is kept, by 1 / (1 - drop)
  Philox draw;
  float drop;
  bool causal;

  // Keys [0, this) matter to queries [0, until).
  AJ_HD int64_t reach(int64_t until) const { return causal && until < keys ? until : keys; }
};

// One head's matrices.
template <class T>
struct Rows {
  const T* p;
  int64_t row, column;
  AJ_HD T at(int64_t i, int64_t rows, int64_t j) const {
    return i < rows ? p[i * row + j * column] : T(0);
  }
};
template <class T>
struct Head {
  using A = Accumulator<T>;
  Rows<T> query, key, value, grad, added;
  Rows<bool> seen;
  const A *log_sums, *dots;
  A* sums_out;
  T* out;

  AJ_HD Head(const Problem<T>& p, int64_t head)
      : query(rows_of(p.query)),
        key(rows_of(p.key)),
        value(rows_of(p.value)),
        grad(rows_of(p.grad)),
        added(rows_of(p.added)),
        seen(rows_of(p.seen)),
        log_sums(after(p.log_sums, head * p.queries)),
        dots(after(p.dots, head * p.queries)),
        sums_out(after(p.sums_out, head * p.queries)),
        out(after(p.out, head * p.out_rows * p.out_columns)) {
    for (int d = p.lead - 1; d >= 0; --d) {
      int64_t i = d ? split(&head, p.sizes[d]) : head;
      query.p += i * p.query.steps[d];
      key.p += i * p.key.steps[d];
      value.p += i * p.value.steps[d];
      grad.p = after(grad.p, i * p.grad.steps[d]);
      added.p = after(added.p, i * p.added.steps[d]);
      seen.p = after(seen.p, i * p.seen.steps[d]);
    }
  }
  template <class S>
  AJ_HD static S* after(S* p, int64_t n) {
    return p ? p + n : nullptr;
  }
  template <class S>
  AJ_HD static Rows<S> rows_of(const Stack<S>& s) {
    return {s.p, s.row, s.column};
  }
};

// A block's square of numbers about queries and keys.
template <class A>
using Square = A[kTile][kTile + 1];

// Scaled and masked scores of queries from i0 and keys from j0; -inf where nothing is seen.
template <class T, class A = Accumulator<T>>
AJ_DEVICE void score(const Problem<T>& p, const Head<T>& h, int64_t i0, int64_t j0, Square<A>& to) {
  A sum[kOwn][kOwn];
  clear(sum);
  multiply_tile<T>(
      p.depth, [&](int row, int64_t k) { return h.query.at(i0 + row, p.queries, k); },
      [&](int64_t k, int column) { return h.key.at(j0 + column, p.keys, k); }, sum);
  for_own<T>(sum, [&](int row, int column, A x) {
    int64_t i = i0 + row, j = j0 + column;
    bool seen = i < p.queries && j < p.keys && (!p.causal || j <= i);
    if (seen && h.seen.p) seen = h.seen.at(i, p.queries, j);
    x = x * p.scale;
    if (seen && h.added.p) x = x + A(h.added.at(i, p.queries, j));
    to[row][column] = seen ? x : A(-INFINITY);
  });
  sync_block();
}

// Which weights of a tile dropout leaves. A row's words stand in nine blocks at most, the four of a
// block beside each other.
using Kept = uint8_t[kTile][kTile];
template <class T>
AJ_DEVICE void draw_tile(const Problem<T>& p, int64_t head, int64_t i0, int64_t j0, Kept& to) {
  constexpr int kBlocks = kTile / 4 + 1;
  Philox draw = placed(p.draw);
  for (int task = int(thread_x()); task < kTile * kBlocks; task += kTileThreads) {
    int row = task / kBlocks;
    int64_t first = (head * p.queries + i0 + row) * p.keys + j0;
    int64_t block = (first >> 2) + task % kBlocks;
    Philox::Block words = draw(uint64_t(block));
    AJ_UNROLL
    for (int k = 0; k < 4; ++k) {
      int64_t column = block * 4 + k - first;
      if (column >= 0 && column < kTile) to[row][column] = uniform_of(words.word[k]) >= p.drop;
    }
  }
}

// acc += m * right, or its transpose times right: kTile rows of right, Wide tiles of columns. Of
// halves m is rounded to them.
template <class T, int Wide, bool Transposed, class A, class Right>
AJ_DEVICE void gather(const Square<A>& m, const Right& right, A (&acc)[Wide][kOwn][kOwn]) {
  int me = int(thread_x());
  if constexpr (is_half<T>) {
    AJ_SHARED Strip<T> a[kTile / kDepth], b[kTile / kDepth];
    for (int i = me; i < kTile * kTile; i += kTileThreads) {
      int k = Transposed ? i / kTile : i % kTile, row = Transposed ? i % kTile : i / kTile;
      a[k / kDepth][row][k % kDepth] = narrowed<T>(Transposed ? m[k][row] : m[row][k]);
    }
    AJ_UNROLL
    for (int w = 0; w < Wide; ++w) {
      AJ_EIGHT_AT_ONCE
      for (int i = me; i < kTile * kTile; i += kTileThreads) {
        int k = i / kTile, column = i % kTile;
        b[k / kDepth][column][k % kDepth] = right(k, w * kTile + column);
      }
      sync_block();
      for (int part = 0; part < kTile / kDepth; ++part) add_product<T>(a[part], b[part], acc[w]);
      sync_block();
    }
    return;
  } else {
    AJ_SHARED T strip[kTile][kTile + 1];
    int ty = me / kAcross, tx = me % kAcross;
    AJ_UNROLL
    for (int w = 0; w < Wide; ++w) {
      for (int i = me; i < kTile * kTile; i += kTileThreads)
        strip[i / kTile][i % kTile] = right(i / kTile, w * kTile + i % kTile);
      sync_block();
      for (int k = 0; k < kTile; ++k) {
        A x[kOwn], y[kOwn];
        for (int i = 0; i < kOwn; ++i) {
          int row = ty + i * kAcross;
          x[i] = Transposed ? m[k][row] : m[row][k];
          y[i] = A(strip[k][tx + i * kAcross]);
        }
        for (int i = 0; i < kOwn; ++i)
          for (int j = 0; j < kOwn; ++j) acc[w][i][j] += x[i] * y[j];
      }
      sync_block();
    }
  }
}

// Which rows and columns of which head a block makes.
template <class T, int Wide>
struct Place {
  int64_t head, row, column;
  AJ_DEVICE Place(const Problem<T>& p, int64_t task)
      : head(task), row(0), column(split(&head, p.groups) * (Wide * kTile)) {
    row = split(&head, p.row_tiles) * kTile;
  }
};
template <class T, int Wide, class A, class Value>
AJ_DEVICE void write(const Problem<T>& p, T* out, int64_t row0, int64_t column0,
                     const A (&acc)[Wide][kOwn][kOwn], const Value& value) {
  AJ_UNROLL
  for (int w = 0; w < Wide; ++w)
    for_own<T>(acc[w], [&](int row, int column, A x) {
      int64_t i = row0 + row, c = column0 + w * kTile + column;
      if (i < p.out_rows && c < p.out_columns) out[i * p.out_columns + c] = T(value(row, x));
    });
}

// A row of scores becomes exponentials below its largest one so far; two threads to a row.
template <class A>
struct Softening {
  A top[kTile], total[kTile], fade[kTile], part[2][kTile];
};
template <class A>
AJ_DEVICE void soften(Square<A>& scores, Softening<A>& s) {
  int me = int(thread_x()), row = me % kTile, half = me / kTile;
  constexpr int kHalf = kTile / 2;
  A* own = scores[row] + half * kHalf;
  A most = own[0];
  for (int j = 1; j < kHalf; ++j) most = Larger()(most, own[j]);
  s.part[half][row] = most;
  sync_block();
  A before = s.top[row], top = Larger()(Larger()(before, s.part[0][row]), s.part[1][row]);
  bool nothing = top == A(-INFINITY);
  sync_block();
  A sum = 0;
  for (int j = 0; j < kHalf; ++j) {
    own[j] = nothing ? A(0) : scalar::Exp()(own[j] - top);
    sum += own[j];
  }
  s.part[half][row] = sum;
  sync_block();
  if (half == 0) {
    A fade = nothing ? A(1) : scalar::Exp()(before - top);
    s.top[row] = top;
    s.fade[row] = fade;
    s.total[row] = s.total[row] * fade + (s.part[0][row] + s.part[1][row]);
  }
  sync_block();
}

template <class T, int Wide, bool Drops>
AJ_GLOBAL void attention_kernel(AJ_ARGUMENT Problem<T> p) {
  using A = Accumulator<T>;
  AJ_SHARED Square<A> scores;
  AJ_SHARED std::conditional_t<Drops, Kept, uint8_t> kept;
  AJ_SHARED Softening<A> s;
  for (int64_t task = block_x(); task < p.heads * p.row_tiles * p.groups; task += blocks_x()) {
    Place<T, Wide> at(p, task);
    Head<T> h(p, at.head);
    A acc[Wide][kOwn][kOwn];
    AJ_UNROLL
    for (int w = 0; w < Wide; ++w) clear(acc[w]);
    if (thread_x() < kTile) s.top[thread_x()] = A(-INFINITY), s.total[thread_x()] = A(0);
    sync_block();
    int64_t reach = p.reach(at.row + kTile);
    for (int64_t j0 = 0; j0 < reach; j0 += kTile) {
      if constexpr (Drops) draw_tile(p, at.head, at.row, j0, kept);
      score(p, h, at.row, j0, scores);
      soften(scores, s);
      if constexpr (Drops) {
        for (int i = int(thread_x()); i < kTile * kTile; i += kTileThreads) {
          A& weight = scores[i / kTile][i % kTile];
          weight = kept[i / kTile][i % kTile] ? weight * p.kept : A(0);
        }
        sync_block();
      }
      AJ_UNROLL
      for (int w = 0; w < Wide; ++w)
        for (int i = 0; i < kOwn; ++i)
          for (int j = 0; j < kOwn; ++j) acc[w][i][j] *= s.fade[own_row<T>(i, j)];
      gather<T, Wide, false>(
          scores,
          [&](int k, int c) {
            return at.column + c < p.width ? h.value.at(j0 + k, p.keys, at.column + c) : T(0);
          },
          acc);
    }
    write<T, Wide>(p, h.out, at.row, at.column, acc,
                   [&](int row, A x) { return s.total[row] == A(0) ? A(0) : x / s.total[row]; });
    int64_t i = at.row + thread_x();
    if (at.column == 0 && thread_x() < kTile && i < p.queries) {
      A total = s.total[thread_x()];
      // No key was seen: infinity makes the weights of the backward pass zero.
      h.sums_out[i] = total == A(0) ? A(INFINITY) : s.top[thread_x()] + scalar::Log()(total);
    }
    sync_block();
  }
}

enum class Of { query, key, value };  // whose gradient

// The weights of a tile, or what the scores' gradients are.
template <Of What, bool Drops, class T, class Keeps, class A = Accumulator<T>>
AJ_DEVICE void weigh(const Problem<T>& p, const Head<T>& h, int64_t i0, int64_t j0,
                     const Keeps& kept, Square<A>& scores) {
  score(p, h, i0, j0, scores);
  A of_weights[kOwn][kOwn];
  clear(of_weights);
  if constexpr (What != Of::value)
    multiply_tile<T>(
        p.width, [&](int row, int64_t k) { return h.grad.at(i0 + row, p.queries, k); },
        [&](int64_t k, int column) { return h.value.at(j0 + column, p.keys, k); }, of_weights);
  for_own<T>(of_weights, [&](int row, int column, A d) {
    int64_t i = i0 + row;
    A weight = i < p.queries ? scalar::Exp()(scores[row][column] - h.log_sums[i]) : A(0);
    A left = 1;
    if constexpr (Drops) left = kept[row][column] ? p.kept : A(0);
    weight *= What == Of::value ? left : i < p.queries ? d * left - h.dots[i] : A(0);
    scores[row][column] = weight;
  });
  sync_block();
}

template <Of What, class T, int Wide, bool Drops>
AJ_GLOBAL void attention_backward_kernel(AJ_ARGUMENT Problem<T> p) {
  using A = Accumulator<T>;
  AJ_SHARED Square<A> scores;
  AJ_SHARED std::conditional_t<Drops, Kept, uint8_t> kept;
  for (int64_t task = block_x(); task < p.heads * p.row_tiles * p.groups; task += blocks_x()) {
    Place<T, Wide> at(p, task);
    Head<T> h(p, at.head);
    A acc[Wide][kOwn][kOwn];
    AJ_UNROLL
    for (int w = 0; w < Wide; ++w) clear(acc[w]);
    bool of_query = What == Of::query;
    // A tile of queries meets the keys that it sees; one of keys the queries that see it.
    int64_t from = of_query || !p.causal ? 0 : at.row;
    int64_t to = of_query ? p.reach(at.row + kTile) : p.queries;
    for (int64_t other = from; other < to; other += kTile) {
      int64_t i0 = of_query ? at.row : other, j0 = of_query ? other : at.row;
      if constexpr (Drops) draw_tile(p, at.head, i0, j0, kept);
      weigh<What, Drops>(p, h, i0, j0, kept, scores);
      const Rows<T>& s = of_query ? h.key : What == Of::key ? h.query : h.grad;
      gather<T, Wide, What != Of::query>(
          scores,
          [&](int k, int c) {
            return at.column + c < p.out_columns ? s.at(other + k, to, at.column + c) : T(0);
          },
          acc);
    }
    write<T, Wide>(p, h.out, at.row, at.column, acc,
                   [&](int, A x) { return What == Of::value ? x : x * p.scale; });
    sync_block();
  }
}

// Of each query: the sum of its result times that one's gradient.
template <class T>
struct Dots {
  Problem<T> p;
  const T* out;
  Accumulator<T>* to;
  AJ_HD void operator()(int64_t i) const {
    int64_t head = i, query = split(&head, p.queries);
    const Rows<T> g = Head<T>(p, head).grad;
    Accumulator<T> sum = 0;
    for (int64_t c = 0; c < p.width; ++c)
      sum += Accumulator<T>(g.at(query, p.queries, c)) * Accumulator<T>(out[i * p.width + c]);
    to[i] = sum;
  }
};

// Tensors as stacks, with copies of those that a kernel cannot read.
template <class T>
class Stacks {
 public:
  // Arguments from `first` on: query, key, value, mask; from `last` on: what is dropped, the draw.
  Stacks(Args args, uint32_t first, bool causal, double scale, uint32_t last) : call_(args.call()) {
    TensorView q = args.tensor(first), k = args.tensor(first + 1), v = args.tensor(first + 2);
    Span shape = q.shape();
    p.lead = int32_t(shape.size() - 2);
    p.heads = 1;
    for (int d = 0; d < p.lead; ++d) p.heads *= p.sizes[d] = shape[size_t(d)];
    p.queries = q.size(-2), p.keys = k.size(-2), p.depth = q.size(-1), p.width = v.size(-1);
    p.causal = causal, p.scale = Accumulator<T>(scale);
    double drop = args.real(last);
    p.drop = float(drop), p.kept = Accumulator<T>(drop < 1 ? 1 / (1 - drop) : 0);
    p.draw = generator(call_, last + 1);
    p.query = stack<T>(q), p.key = stack<T>(k), p.value = stack<T>(v);
    TensorView mask = args.tensor(first + 3);
    if (mask && mask.dtype().code == kDLBool)
      p.seen = stack<bool>(mask);
    else if (mask)
      p.added = stack<T>(mask);
  }

  // One that broadcasts to the heads; rows and columns of one element repeat.
  template <class S>
  Stack<S> stack(TensorView t) {
    Stack<S> s = {};
    int64_t n = t.ndim(), dense = 1, steps[2 + kLead] = {};
    bool direct = same(t.dtype(), dtype_of<S>) && !foreign(call_, t);
    s.p = direct ? reach(t.data<S>()) : copied<S>(t);
    for (int64_t d = 1; d <= n && d <= 2 + kLead; dense *= t.size(-d++))
      steps[d - 1] = t.size(-d) == 1 ? 0 : direct ? t.stride(-d) : dense;
    s.column = steps[0], s.row = steps[1];
    for (int d = 0; d < p.lead; ++d) s.steps[d] = steps[1 + p.lead - d];
    return s;
  }

  // Launches the kernel that makes a result of so many rows and columns a head.
  template <template <int, bool> class Kernels>
  void run(int64_t rows, int64_t columns, T* out) {
    Problem<T> now = p;
    now.out = out, now.out_rows = rows, now.out_columns = columns;
    now.row_tiles = (rows + kTile - 1) / kTile;
    int64_t tiles = (columns + kTile - 1) / kTile;
    auto go = [&]<int Wide, bool Drops = false>() {
      now.groups = (tiles + Wide - 1) / Wide;
      launch_blocks<Kernels<Wide, Drops>::value>(call_, now.heads * now.row_tiles * now.groups,
                                                 kTileThreads, now);
    };
    if (p.drop > 0) return go.template operator()<kDropping, true>();
    tiles <= 1   ? go.template operator()<1>()
    : tiles <= 2 ? go.template operator()<2>()
                 : go.template operator()<kWidest>();
  }

  Problem<T> p = {};

 private:
  template <class S>
  const S* copied(TensorView t) {
    auto plain = std::make_shared<Plain<S>>(call_, t);
    copies_.push_back(plain);
    return plain->data();
  }
  const aj_call* call_;
  std::vector<std::shared_ptr<void>> copies_;
};

template <class T>
struct Forward {
  template <int Wide, bool Drops>
  struct Kernels {
    static constexpr auto value = &attention_kernel<T, Wide, Drops>;
  };
};
template <Of What, class T>
struct Backward {
  template <int Wide, bool Drops>
  struct Kernels {
    static constexpr auto value = &attention_backward_kernel<What, T, Wide, Drops>;
  };
};

void attention(Args args) {
  visit<stored_floating>(args.tensor(0).dtype(), [&]<class T>() {
    Stacks<T> s(args, 0, args.flag(4), args.real(5), 6);
    Plain<T> out(args.call(), args.result(0));
    Plain<Accumulator<T>> sums(args.call(), args.result(1));
    s.p.sums_out = sums.data();
    s.template run<Forward<T>::template Kernels>(s.p.queries, s.p.width, out.data());
    out.commit();
    sums.commit();
  });
}

void attention_backward(Args args) {
  const aj_call* call = args.call();
  visit<stored_floating>(args.tensor(1).dtype(), [&]<class T>() {
    using A = Accumulator<T>;
    Stacks<T> s(args, 1, args.flag(7), args.real(8), 9);
    s.p.grad = s.template stack<T>(args.tensor(0));
    Plain<T> out(call, args.tensor(5));
    Plain<A> sums(call, args.tensor(6));
    Buffer<A> dots(call, s.p.heads * s.p.queries);
    each(call, s.p.heads * s.p.queries, Dots<T>{s.p, out.data(), dots.data()});
    s.p.log_sums = sums.data(), s.p.dots = dots.data();
    Plain<T> of_query(call, args.result(0)), of_key(call, args.result(1)),
        of_value(call, args.result(2));
    s.template run<Backward<Of::query, T>::template Kernels>(s.p.queries, s.p.depth,
                                                             of_query.data());
    s.template run<Backward<Of::key, T>::template Kernels>(s.p.keys, s.p.depth, of_key.data());
    s.template run<Backward<Of::value, T>::template Kernels>(s.p.keys, s.p.width, of_value.data());
    of_query.commit();
    of_key.commit();
    of_value.commit();
  });
}

template <uint32_t Query>
int32_t few_dimensions(void*, const aj_call* call) {
  return call->args[Query].v.tensor->dl.ndim - 2 <= kLead;
}
template <auto F, uint32_t Query>
constexpr Spec with_heads = {&plain_kernel<F>, stored_floating::own_mask, 0, few_dimensions<Query>};

}  // namespace

AJ_KERNELS(attention_kernels) = {
    {"_::attention", with_heads<attention, 0>},
    {"_::attention_backward", with_heads<attention_backward, 1>},
    {nullptr, {}},
};

}  // namespace adjoin::gpu
