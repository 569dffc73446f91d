// plugins/ops_linalg/cpu/small.cpp: ops on stacks of small real matrices, side by side in vectors,
// read from where they lie.
#include "small.hpp"

#include <adjoin/kit/linalg.hpp>
#include <adjoin/kit/parallel.hpp>
#include <cstdlib>
#include <optional>

#include "stacks.hpp"
#include "vector/isa.hpp"

namespace adjoin::cpu {
namespace {

using namespace kit;
using stacks::kMost;
using stacks::Lying;
using stacks::Range;

constexpr int64_t kSweeps = 8;  // of Jacobi's rotations

// Room of this thread, kept: at most 300 KB.
template <class T>
T* room(int64_t elements) {
  struct Held {
    void* at = nullptr;
    size_t bytes = 0;
    ~Held() { std::free(at); }
  };
  static thread_local Held held;
  constexpr size_t line = 64;
  const size_t bytes = (size_t(elements) * sizeof(T) + line - 1) / line * line;
  if (held.bytes < bytes) {
    std::free(held.at);
    held.at = std::aligned_alloc(line, bytes);
    held.bytes = held.at ? bytes : 0;
    if (!held.at) raise(AJ_OUT_OF_MEMORY, "no room for ", int64_t(bytes), " bytes");
  }
  return static_cast<T*>(held.at);
}

int64_t batch_of(const TensorView& t) {
  int64_t n = 1;
  for (int64_t d = 0; d < t.ndim() - 2; ++d) n *= t.size(d);
  return n;
}

// How far matrices are from each other, if one number says it.
std::optional<int64_t> step_of(const TensorView& t) {
  int64_t step = 0, next = 0;
  bool first = true;
  for (int64_t d = t.ndim() - 3; d >= 0; --d) {
    if (t.size(d) == 1) continue;
    if (first)
      step = t.stride(d);
    else if (t.stride(d) != next)
      return {};
    first = false;
    next = t.stride(d) * t.size(d);
  }
  return step;
}
template <class T>
Lying<const T> lying(const TensorView& t) {
  return {t.data<T>(), t.stride(-2), t.stride(-1), *step_of(t)};
}
template <class T>
Lying<T> lying(const MutView& t) {
  return {t.data<T>(), t.stride(-2), t.stride(-1), *step_of(t)};
}

// Whether lanes are worth it: so many matrices that half of a vector is used, or small ones.
bool fits(const TensorView& t, std::initializer_list<TensorView> others) {
  const DLDataType dtype = t.dtype();
  if (dtype.code != kDLFloat || dtype.bits < 32 || isa() == Isa::none) return false;
  const int64_t m = t.size(-2), n = t.size(-1), batch = batch_of(t);
  if (std::max(m, n) > kMost || std::min(m, n) < 1 || batch < 1) return false;
  const int64_t lanes =
      dtype.bits == 32 ? stacks::factors<float>().lanes : stacks::factors<double>().lanes;
  if (batch * 2 < lanes && batch * 8 < std::max(m, n)) return false;
  if (!step_of(t)) return false;
  for (const TensorView& other : others)
    if (!same(other.dtype(), dtype) || !step_of(other)) return false;
  return true;
}

// f(T()) for the dtype, float or double.
template <class F>
bool each(const TensorView& t, F f) {
  if (t.dtype().bits == 32)
    f(float());
  else
    f(double());
  return true;
}

// f for parts of a stack, whole vectors of matrices. rounds: how often each element is touched for
// every row.
template <class T, class F>
void parts(int64_t batch, int64_t m, int64_t n, int64_t sides, F f, int64_t rounds = 1) {
  const int64_t lanes = stacks::factors<T>().lanes, groups = (batch + lanes - 1) / lanes;
  const int64_t most = std::max(m, n), touched = most * most * (most + sides) * rounds;
  parallel_for(groups, grain_of(touched), [&](int64_t lo, int64_t hi) {
    T* work = room<T>(stacks::work_of(lanes, m, n, sides));
    f(Range<T>{lo * lanes, std::min(batch, hi * lanes), work});
  });
}

}  // namespace

bool Small::cholesky(Args args) {
  TensorView a = args.tensor(0);
  MutView l = args.result(0);
  if (!fits(a, {l})) return false;
  return each(a, [&]<class T>(T) {
    const int64_t n = a.size(-1), batch = batch_of(a);
    auto from = lying<T>(a);
    auto to = lying<T>(l);
    if (args.flag(1)) from = from.transposed(), to = to.transposed();
    Dense<int32_t> info(args.result(1));
    parts<T>(batch, n, n, 0, [&](Range<T> range) {
      stacks::factors<T>().cholesky(range, from, to, n, info.data());
    });
    info.commit();
    if (args.flag(2)) tell_first_failed(Failed::cholesky, a, info.data(), batch);
  });
}

bool Small::lu(Args args) {
  TensorView a = args.tensor(0);
  MutView lu = args.result(0);
  if (!args.flag(1) || a.size(-2) != a.size(-1) || !fits(a, {lu})) return false;
  return each(a, [&]<class T>(T) {
    const int64_t n = a.size(-1), batch = batch_of(a);
    Dense<int32_t> pivots(args.result(1)), info(args.result(2));
    parts<T>(batch, n, n, 0, [&](Range<T> range) {
      stacks::factors<T>().lu(range, lying<T>(a), lying<T>(lu), n, pivots.data(), info.data());
    });
    pivots.commit(), info.commit();
    if (args.flag(2)) tell_first_failed(Failed::lu, a, info.data(), batch);
  });
}

bool Small::solve(Args args) {
  TensorView a = args.tensor(0), b = args.tensor(1);
  MutView x = args.result(0);
  if (b.size(-1) < 1 || b.size(-1) > kMost || !fits(a, {b, x})) return false;
  return each(a, [&]<class T>(T) {
    const int64_t n = a.size(-1), m = b.size(-1), batch = batch_of(a);
    Dense<int32_t> info(args.result(1));
    parts<T>(batch, n, n, m, [&](Range<T> range) {
      stacks::factors<T>().solve(range, lying<T>(a), lying<T>(b), lying<T>(x), n, m, info.data());
    });
    info.commit();
    if (args.flag(2)) tell_first_failed(Failed::solve, a, info.data(), batch);
  });
}

bool Small::inverse(Args args) {
  TensorView a = args.tensor(0);
  MutView x = args.result(0);
  if (!fits(a, {x})) return false;
  return each(a, [&]<class T>(T) {
    const int64_t n = a.size(-1), batch = batch_of(a);
    Dense<int32_t> info(args.result(1));
    parts<T>(batch, n, n, n, [&](Range<T> range) {
      stacks::factors<T>().solve(range, lying<T>(a), {nullptr, 0, 0, 0}, lying<T>(x), n, n,
                                 info.data());
    });
    info.commit();
    if (args.flag(1)) tell_first_failed(Failed::inverse, a, info.data(), batch);
  });
}

bool Small::det(Args args) {
  TensorView a = args.tensor(0);
  if (!fits(a, {})) return false;
  return each(a, [&]<class T>(T) {
    const int64_t n = a.size(-1);
    Dense<T> out(args.result(0));
    parts<T>(batch_of(a), n, n, 0,
             [&](Range<T> range) { stacks::factors<T>().det(range, lying<T>(a), n, out.data()); });
    out.commit();
  });
}

bool Small::qr(Args args) {
  TensorView a = args.tensor(0);
  const bool no_q = args.string(1) == "r";
  MutView q = args.result(0), r = args.result(1);
  if (!fits(a, {r}) || (!no_q && !fits(a, {q}))) return false;
  return each(a, [&]<class T>(T) {
    const int64_t m = a.size(-2), n = a.size(-1), k = r.size(-2);
    Lying<T> to{nullptr, 0, 0, 0};
    if (!no_q) to = lying<T>(q);
    parts<T>(batch_of(a), m, n, m, [&](Range<T> range) {
      stacks::orthogonal<T>().qr(range, lying<T>(a), to, lying<T>(r), m, n, k);
    });
  });
}

bool Small::eigh(Args args) {
  TensorView a = args.tensor(0);
  const bool vectors = args.flag(2), upper = args.string(1) == "U" || args.string(1) == "u";
  MutView v = args.result(1);
  if (!fits(a, {}) || (vectors && !fits(a, {v}))) return false;
  return each(a, [&]<class T>(T) {
    const int64_t n = a.size(-1);
    Dense<T> values(args.result(0));
    auto from = lying<T>(a);
    if (upper) from = from.transposed();
    Lying<T> to{nullptr, 0, 0, 0};
    if (vectors) to = lying<T>(v);
    parts<T>(
        batch_of(a), n, n, 0,
        [&](Range<T> range) { stacks::spectral<T>().eigh(range, from, values.data(), to, n); },
        kSweeps);
    values.commit();
  });
}

bool Small::svd(Args args) {
  TensorView a = args.tensor(0);
  const bool full = args.flag(1), vectors = args.flag(2), tall = a.size(-2) >= a.size(-1);
  MutView u = args.result(0), vh = args.result(2);
  if ((vectors && full && a.size(-2) != a.size(-1)) || !fits(a, {})) return false;
  if (vectors && !fits(a, {u, vh})) return false;
  return each(a, [&]<class T>(T) {
    const int64_t m = std::max(a.size(-2), a.size(-1)), n = std::min(a.size(-2), a.size(-1)),
                  batch = batch_of(a);
    Dense<T> values(args.result(1));
    Lying<T> left{nullptr, 0, 0, 0}, right = left;
    if (vectors) left = lying<T>(u), right = lying<T>(vh);
    auto from = lying<T>(a);
    if (!tall) {  // of A^T = V S U^T
      from = from.transposed();
      std::swap(left, right);
      left = left.transposed(), right = right.transposed();
    }
    std::unique_ptr<int32_t[]> info(new int32_t[size_t(batch)]);
    parts<T>(
        batch, m, n, 0,
        [&](Range<T> range) {
          stacks::spectral<T>().svd(range, from, values.data(), left, right, m, n, info.get());
        },
        kSweeps);
    for (int64_t i = 0; i < batch; ++i)
      if (info[size_t(i)]) tell_failed(Failed::svd_of_nan, element_of(a, i), 0);
    values.commit();
  });
}

}  // namespace adjoin::cpu
