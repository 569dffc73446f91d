// plugins/cpu/index/flip.cpp: the order of elements reversed along any dimensions, in one pass.
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/view.hpp>
#include <algorithm>
#include <vector>

#include "index_rows.hpp"
#include "vector/stored.hpp"
#include "vector/stream.hpp"

namespace adjoin::cpu {
namespace {

// Steps in elements; along a reversed dimension the input is walked backwards.
struct Dim {
  int64_t size, from, to;
};

// Of lines of `line.size` elements, as many as `lines` says.
template <class T>
void turn(T* to, const T* from, Dim lines, Dim line) {
  const int64_t n = line.size;
  if (line.to == 1 && line.from == -1) {
    from -= n - 1;
    if (lines.to == n && lines.from == n) return reverse_lines(to, from, lines.size, n);
    for (int64_t i = 0; i < lines.size; ++i)
      reverse_lines(to + i * lines.to, from + i * lines.from, 1, n);
  } else if (line.to == 1 && line.from == 1 && n * int64_t(sizeof(T)) >= 64) {
    for (int64_t i = 0; i < lines.size; ++i)
      copy_neighbours(to + i * lines.to, from + i * lines.from, n * int64_t(sizeof(T)));
  } else {
    for (int64_t i = 0; i < lines.size; ++i)
      for (int64_t j = 0; j < n; ++j)
        to[i * lines.to + j * line.to] = from[i * lines.from + j * line.from];
  }
}

void flip(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0);
  if (x.numel() == 0) return;
  std::vector<Dim> dims;
  int64_t first = 0;
  for (int64_t d = 0; d < x.ndim(); ++d) {
    const bool turns = std::ranges::any_of(
        args.ints(1), [&](int64_t named) { return named == d || named + x.ndim() == d; });
    const int64_t size = x.size(d), from = turns ? -x.stride(d) : x.stride(d), to = out.stride(d);
    if (turns) first += (size - 1) * x.stride(d);
    if (size == 1) continue;
    if (!dims.empty() && dims.back().from == size * from && dims.back().to == size * to)
      dims.back() = {dims.back().size * size, from, to};
    else
      dims.push_back({size, from, to});
  }
  auto next = [&] {
    if (dims.empty()) return Dim{1, 1, 1};
    const Dim last = dims.back();
    dims.pop_back();
    return last;
  };
  const Dim line = next(), lines = next();
  constexpr int64_t most = 1 << 15;  // a longer line is cut
  const int64_t pieces = (line.size + most - 1) / most;
  int64_t count = lines.size * pieces;
  for (const Dim& d : dims) count *= d.size;
  visit_size(x.dtype(), [&]<class T>() {
    parallel_for(count, grain_of(std::min(line.size, most)), [&](int64_t lo, int64_t hi) {
      for (int64_t m; lo < hi; lo += m) {
        const int64_t piece = lo % pieces, i = lo / pieces % lines.size, begin = piece * most;
        T* to = out.data<T>() + i * lines.to + begin * line.to;
        const T* from = x.data<T>() + first + i * lines.from + begin * line.from;
        int64_t rest = lo / pieces / lines.size;
        for (size_t d = dims.size(); d-- > 0; rest /= dims[d].size) {
          to += rest % dims[d].size * dims[d].to;
          from += rest % dims[d].size * dims[d].from;
        }
        m = pieces > 1 ? 1 : std::min(hi - lo, lines.size - i);
        turn(to, from, {m, lines.from, lines.to},
             {std::min(most, line.size - begin), line.from, line.to});
      }
    });
  });
}

}  // namespace

AJ_KERNELS(flip_kernels) = {
    {"flip", custom<flip>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
