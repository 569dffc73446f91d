// plugins/cpu/index/index.cpp: reading at indices, and writing where every element is written by
// one thread.
#include <adjoin/kit/indexing.hpp>
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/scalar.hpp>

#include "index_lines.hpp"
#include "index_rows.hpp"
#include "vector/stored.hpp"
#include "vector/stream.hpp"

namespace adjoin::cpu {
namespace {

// Sums of signed whole numbers are those of unsigned ones.
template <class T>
constexpr auto summed_as() {
  if constexpr (is_integer<T> && !std::is_same_v<T, bool>)
    return std::make_unsigned_t<T>();
  else
    return T();
}

// Rows of one element each; near: they lie in the cache.
template <class T>
void pick(T* to, const T* from, const int64_t* index, int64_t n, bool near = false) {
  int64_t k = 0;
  if (near) {
#pragma GCC unroll 8
    for (; k < n; ++k) to[k] = from[index[k]];
    return;
  }
  for (constexpr int64_t ahead = 32; k + ahead < n; ++k) {
    __builtin_prefetch(from + index[k + ahead]);
    to[k] = from[index[k]];
  }
  for (; k < n; ++k) to[k] = from[index[k]];
}

void index_at(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0);
  IndexMap map(x.shape(), x.strides(), args.tensors(1));
  int64_t chosen = int64_t(map.selected.size()), after = int64_t(map.after.size());
  bool rows = true;  // what is kept behind is contiguous
  for (int64_t q = 0; q < after; ++q) rows &= map.after[q] == q;
  visit_size(x.dtype(), [&]<class T>() {
    auto write = [&](T* to) {
      if (after == 1)
        return parallel_for(
            int64_t(map.before.size()) * chosen, 1 << 14, [&](int64_t lo, int64_t hi) {
              while (lo < hi) {
                int64_t b = lo % chosen, m = std::min(hi - lo, chosen - b);
                pick(to + lo, x.data<T>() + map.before[lo / chosen], map.selected.data() + b, m);
                lo += m;
              }
            });
      parallel_for(
          int64_t(map.before.size()) * chosen, grain_of(after), [&](int64_t lo, int64_t hi) {
            for (int64_t i = lo; i < hi; ++i) {
              const T* from = x.data<T>() + map.before[i / chosen] + map.selected[i % chosen];
              T* row = to + i * after;
              if (rows)
                std::copy_n(from, after, row);
              else
                for (int64_t q = 0; q < after; ++q) row[q] = from[map.after[q]];
            }
          });
    };
    if (out.dense()) return write(out.data<T>());
    std::vector<T> dense(size_t(out.numel()));
    write(dense.data());
    std::vector<int64_t> to = offsets_of(out.shape(), out.strides());
    for (size_t i = 0; i < dense.size(); ++i) out.data<T>()[to[i]] = dense[i];
  });
}

// One piece after the other names places in the order of the indices: whole rows, cut along them
// among the threads; or single elements, of which asking whether each is one's own costs more than
// writing it.
template <class T, class Combine>
void put_each(T* to, const std::vector<int64_t>& places, const T* from, int64_t row_step,
              int64_t step, int64_t width, Combine combine) {
  int64_t n = int64_t(places.size()), threads = core().num_threads();
  constexpr int64_t ahead = 16;
  if (width == 1) {
    for (int64_t b = 0; b < n; ++b) {
      if (b + ahead < n) __builtin_prefetch(to + places[b + ahead], 1);
      to[places[b]] = combine(to[places[b]], from[b * row_step]);
    }
    return;
  }
  int64_t pieces = std::min(threads, 1 + n * width / 32768);
  pieces = std::max<int64_t>(1, std::min(pieces, width / 64));
  parallel_for(pieces, 1, [&](int64_t p, int64_t end) {
    for (; p < end; ++p) {
      int64_t lo = width * p / pieces, hi = width * (p + 1) / pieces;
      for (int64_t b = 0; b < n; ++b) {
        T* row = to + places[b];
        const T *source = from + b * row_step, one = *source;
        if (step)
          for (int64_t q = lo; q < hi; ++q) row[q] = combine(row[q], source[q]);
        else
          for (int64_t q = lo; q < hi; ++q) row[q] = combine(row[q], one);
      }
    }
  });
}

// Is it the last sizes of shape, behind ones?
bool is_tail(Span sizes, Span shape) {
  while (!sizes.empty() && sizes.front() == 1 && sizes.size() > 1) sizes = sizes.subspan(1);
  return sizes.size() <= shape.size() &&
         std::ranges::equal(sizes, shape.subspan(shape.size() - sizes.size()));
}

// Indices in the first dimensions, dense tensors, values of the whole shape, of a row or one.
// False: another case.
bool put_rows(const IndexMap& map, TensorView x, TensorView values, MutView out, bool accumulate) {
  int64_t width = int64_t(map.after.size()), chosen = int64_t(map.selected.size());
  if (map.before.size() != 1 || !out.dense() || width == 0 || chosen == 0) return false;
  const bool one = values.numel() == 1 && values.ndim() <= int64_t(map.shape.size());
  const bool whole = values.dense() && std::ranges::equal(values.shape(), map.shape);
  const bool row = values.dense() && values.numel() == width && is_tail(values.shape(), map.shape);
  if (!one && !whole && !row) return false;
  for (int64_t q = 0; q < width; q += std::max<int64_t>(1, width - 1))
    if (map.after[q] != q) return false;
  const int64_t row_step = whole && !one ? width : 0, step = one ? 0 : 1;
  auto put = [&]<class T>(auto combine) {
    start_from(x, out);
    put_each(out.data<T>(), map.selected, values.data<T>(), row_step, step, width, combine);
  };
  if (!accumulate)
    visit_size(x.dtype(), [&]<class T>() { put.template operator()<T>([](T, T v) { return v; }); });
  else
    visit<stored_numeric>(x.dtype(), [&]<class S>() {
      using T = decltype(summed_as<S>());
      put.template operator()<T>([](T a, T v) { return T(scalar::Add()(Math<T>(a), Math<T>(v))); });
    });
  return true;
}

void index_put_at(Args args) {
  TensorView x = args.tensor(0), values = args.tensor(2);
  MutView out = args.result(0);
  IndexMap map(x.shape(), out.strides(), args.tensors(1));
  int64_t chosen = int64_t(map.selected.size()), after = int64_t(map.after.size()),
          before = int64_t(map.before.size());
  bool accumulate = args.flag(3);
  if (put_rows(map, x, values, out, accumulate)) return;
  std::vector<int64_t> source = map.offsets_in(values, values.strides());
  // Two indices may name one place, so a thread owns whole images (before) or columns (after),
  // never indices.
  bool by_before = before > 1;
  int64_t pieces = by_before ? before : after;
  auto put = [&](auto* to, const auto* from, auto combine) {
    parallel_for(pieces, grain_of(by_before ? chosen * after : chosen),
                 [&](int64_t lo, int64_t hi) {
                   for (int64_t p = by_before ? lo : 0; p < (by_before ? hi : before); ++p)
                     for (int64_t b = 0; b < chosen; ++b)
                       for (int64_t q = by_before ? 0 : lo; q < (by_before ? after : hi); ++q) {
                         auto& place = to[map.before[p] + map.selected[b] + map.after[q]];
                         place = combine(place, from[source[(p * chosen + b) * after + q]]);
                       }
                 });
  };
  if (!accumulate) {
    visit_size(x.dtype(), [&]<class T>() {
      start_from(x, out);
      put(out.data<T>(), values.data<T>(), [](T, T v) { return v; });
    });
    return;
  }
  visit<stored_numeric>(x.dtype(), [&]<class S>() {
    using T = decltype(summed_as<S>());
    start_from(x, out);
    put(out.data<T>(), values.data<T>(),
        [](T a, T v) { return T(scalar::Add()(Math<T>(a), Math<T>(v))); });
  });
}

// An index in C order; nothing is read or written before all of it is known to be in range.
Dense<int64_t> checked(TensorView index, int64_t size, int64_t dim) {
  Dense<int64_t> values(index);
  check_indices(values.data(), index.numel(), size, dim);
  return values;
}

void index_select(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0);
  int64_t dim = args.integer(1);
  Lines l(x.shape(), dim);
  Dense<int64_t> list = checked(args.tensor(2), l.size, dim);
  const int64_t* index = list.data();
  int64_t n = args.tensor(2).numel();
  if (x.dense() && out.dense()) {
    int64_t row = l.inner * bytes_of(x.dtype());
    if (row == 0 || n == 0) return;
    if (l.inner == 1)
      return visit_size(x.dtype(), [&]<class T>() {
        constexpr int64_t piece = 1 << 15;
        const bool near = l.size <= int64_t((1 << 18) / sizeof(T));
        int64_t pieces = (n + piece - 1) / piece;
        parallel_for(l.outer * pieces, grain_of(std::min(n, piece)), [&](int64_t lo, int64_t hi) {
          for (; lo < hi; ++lo) {
            int64_t o = lo / pieces, k = lo % pieces * piece;
            T* to = out.data<T>() + o * n + k;
            const T* from = x.data<T>() + o * l.size;
            pick(to, from, index + k, std::min(piece, n - k), near);
          }
        });
      });
    return copy_rows(out.bytes(), x.bytes(), index, l.outer, l.size, n, row);
  }
  const Typed& as = typed_of(x.dtype());
  DenseAs in(x, as, true), to(out, as, false);
  const int64_t row = l.inner * int64_t(as.size);
  for (int64_t i = 0; i < l.outer * n; ++i)
    std::memcpy(to.bytes() + i * row, in.bytes() + (i / n * l.size + index[i % n]) * row,
                size_t(row));
  to.commit();
}

void index_add(Args args) {
  TensorView x = args.tensor(0), source = args.tensor(3);
  MutView out = args.result(0);
  int64_t dim = args.integer(1);
  // Single elements, if a bad index spoils nobody's tensor.
  if (x.ndim() == 1 && x.get() != out.get() && args[4].tag == AJ_INT && args[4].v.i == 1)
    return scatter_add(x, 0, args.tensor(2), source, out);
  Lines l(x.shape(), dim);
  Dense<int64_t> index = checked(args.tensor(2), l.size, dim);
  visit_math<all_types>(x.dtype(), [&]<class T>() {
    start_from(x, out);
    Dense<T> to(out, true), from(source);
    add_rows(to.data(), l.outer, l.size, l.inner, from.data(), index.data(), args.tensor(2).numel(),
             number<T>(args[4]), -1, false);
    to.commit();
  });
}

void embedding_backward(Args args) {
  TensorView grad = args.tensor(0), index = args.tensor(1);
  MutView out = args.result(0);
  int64_t rows = out.size(0), width = rows ? out.numel() / rows : 0;
  Dense<int64_t> list = checked(index, rows, 0);
  visit_math<floating>(grad.dtype(), [&]<class T>() {
    Dense<T> dy(grad), to(out);
    add_rows(to.data(), 1, rows, width, dy.data(), list.data(), index.numel(), T(1),
             args.integer(3), true);
    to.commit();
  });
}

// Coordinates of the elements of [lo, hi) that are true. Which they are decides over no jump; rows
// are walked, not divided for.
template <class T>
void write_places(TensorView x, const T* in, int64_t lo, int64_t hi, int64_t* to) {
  constexpr int64_t most = 256;
  int64_t dims = x.ndim(), width = x.size(dims - 1), row[64], found[most + 8];
  for (int64_t d = dims - 2, rest = lo / width; d >= 0; rest /= x.size(d--))
    row[d] = rest % x.size(d);
  for (int64_t i = lo, column = lo % width, m; i < hi; i += m) {
    m = std::min({most, width - column, hi - i});
    int64_t n = 0;
    if constexpr (std::is_same_v<T, bool>) {
      n = true_numbers(in + i, m, column, found);
    } else {
      for (int64_t j = 0; j < m; ++j) {
        found[n] = column + j;
        n += scalar::is_true(in[i + j]);
      }
    }
    if (dims == 1) to = std::copy_n(found, n, to);
    for (int64_t k = 0; dims > 1 && k < n; ++k, to += dims) {
      std::copy_n(row, dims - 1, to);
      to[dims - 1] = found[k];
    }
    column += m;
    if (column < width) continue;
    column = 0;
    for (int64_t d = dims - 2; d >= 0 && ++row[d] == x.size(d); --d) row[d] = 0;
  }
}

// Counted first, so that each part knows where its places begin.
template <class T>
MutView places_of_true(TensorView x, const T* in) {
  constexpr int64_t chunk = 1 << 15;
  int64_t n = x.numel(), dims = x.ndim();
  std::vector<int64_t> begin(size_t((n + chunk - 1) / chunk) + 1, 0);
  const int64_t chunks = int64_t(begin.size()) - 1;
  auto each_chunk = [&](auto f) {
    parallel_for(chunks, 1, [&](int64_t from, int64_t to) {
      for (int64_t c = from; c < to; ++c) f(c, c * chunk, std::min(n, (c + 1) * chunk));
    });
  };
  each_chunk([&](int64_t c, int64_t lo, int64_t hi) {
    int64_t count = 0;
    if constexpr (std::is_same_v<T, bool>)
      count = count_true(in + lo, hi - lo);
    else
      for (int64_t i = lo; i < hi; ++i) count += scalar::is_true(in[i]);
    begin[c + 1] = count;
  });
  for (size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  const int64_t shape[2] = {begin.back(), dims};
  MutView out(new_tensor(x.device(), dtype_of<int64_t>, shape));
  int64_t* first = out.template data<int64_t>();
  if (dims == 0) return out;
  each_chunk([&](int64_t c, int64_t lo, int64_t hi) {
    write_places(x, in, lo, hi, first + begin[c] * dims);
  });
  return out;
}

void nonzero(Args args) {
  TensorView x = args.tensor(0);
  visit_math<all_types>(x.dtype(), [&]<class T>() {
    Dense<T> in(x);
    aj_value& ret = args.call()->rets[0];
    ret.v.tensor = places_of_true(x, in.data()).get();
    ret.tag = AJ_TENSOR;
  });
}

}  // namespace

AJ_KERNELS(index_kernels) = {
    {"index_at", custom<index_at>},
    {"index_put_at", custom<index_put_at>},
    {"index_select", custom<index_select>},
    {"index_add", custom<index_add>},
    {"embedding_backward", custom<embedding_backward>},
    {"nonzero", custom<nonzero>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
