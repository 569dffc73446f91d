// plugins/gpu/kernels/scatter_reduce.cuh: joining at indices by sum, product, mean or extreme, in
// the order of the indices: by a thread that has a line, or by runs.
#include <optional>

#include "../places.cuh"
#include "../runs.cuh"

namespace adjoin::gpu {
namespace {

// `hits`: how many elements a place has had; the first one replaces what is there when the input is
// left out.
template <class T, class F>
struct Join {
  Named named;
  const T* source;
  T* out;
  int32_t* hits;   // NULL: nobody asks
  int64_t length;  // of the index along dim
  Divisor inner;
  bool self;
  F f;
  AJ_DEVICE void operator()(int64_t line) const {
    for (int64_t k = 0; k < length; ++k) {
      int64_t from, at = named.place(in_line(line, k, length, inner), &from);
      if (at < 0) continue;
      T x = source[from];
      bool joins = self || hits[at] > 0;
      if (hits) ++hits[at];
      out[at] = joins ? f(out[at], x) : x;
    }
  }
};
template <class T, class F>
struct JoinAlike {  // by runs
  struct State {
    T value;
    int32_t hits;
  };
  Named named;
  const T* source;
  T* out;
  int32_t* hits;
  bool self;
  F f;
  AJ_DEVICE State value(int64_t i, int64_t) const { return {source[named.source(i)], 1}; }
  AJ_DEVICE State join(State a, State b) const { return {T(f(a.value, b.value)), a.hits + b.hits}; }
  AJ_DEVICE void put(int64_t at, int64_t, State s) const {
    out[at] = self ? T(f(out[at], s.value)) : s.value;
    if (hits) hits[at] = s.hits;
  }
};
template <class T>
struct Divide {
  T* out;
  const int32_t* hits;
  int32_t self;
  AJ_DEVICE void operator()(int64_t i) const {
    int32_t n = hits[i] + self;
    if (n < 2) return;
    if constexpr (std::is_same_v<T, bool>)
      return;  // has no mean, and is not asked for it
    else if constexpr (is_integer<T>)
      out[i] = scalar::FloorDivide()(out[i], T(n));
    else
      out[i] = out[i] / T(Real<T>(n));
  }
};

struct Ask {
  std::string_view how;
  bool self;
  int64_t dim;
};
template <class T, class F>
void join(const aj_call* call, const Ask& ask, const Named& n, TensorView index, const T* from,
          T* to, int64_t places, F f) {
  bool mean = ask.how == "mean";
  std::optional<Buffer<int32_t>> hits;
  if (mean || !ask.self) {
    hits.emplace(call, places);
    fill_zero(call, hits->data(), places * int64_t(sizeof(int32_t)));
  }
  int32_t* counts = hits ? hits->data() : nullptr;
  Lines l(index.shape(), index.ndim() ? n.dim : 0);
  if (by_lines(l.outer * l.inner, l.size))
    each(call, l.outer * l.inner, Join<T, F>{n, from, to, counts, l.size, l.inner, ask.self, f});
  else
    join_runs(call, n, index.numel(), 1, JoinAlike<T, F>{n, from, to, counts, ask.self, f});
  if (mean) each(call, places, Divide<T>{to, counts, ask.self});
}

// Numbers are joined as they are computed with: halves as float.
void scatter_reduce(Args args) {
  TensorView x = args.tensor(0), index = args.tensor(2), source = args.tensor(3);
  MutView out = args.result(0);
  const aj_call* call = args.call();
  Ask ask = {args.string(4), args.flag(5), wrapped(args.integer(1), x.ndim())};
  visit<stored>(x.dtype(), [&]<class S>() {
    using T = Math<S>;
    Plain<T> to = start_from<T>(call, x, out);
    if (index.numel()) {
      Plain<int64_t> places(call, index);
      Plain<T> from(call, source);
      Named n = named(call, places.data(), index, x.shape(), source.shape(), ask.dim);
      auto run = [&](auto f) { join(call, ask, n, index, from.data(), to.data(), out.numel(), f); };
      if (ask.how == "prod")
        run(scalar::Mul());
      else if (ask.how == "sum" || ask.how == "mean")
        run(scalar::Add());
      else if constexpr (!is_complex<T>)
        ask.how == "amax" ? run(scalar::Maximum()) : run(scalar::Minimum());
    }
    to.commit();
  });
}

}  // namespace

AJ_KERNELS(scatter_reduce_kernels) = {
    {"scatter_reduce", custom<scatter_reduce>},
    {nullptr, {}},
};

}  // namespace adjoin::gpu
