// plugins/cpu/scatter.cpp: gather and scatter. Lines along the dimension are independent, so each
// belongs to one thread.
#include <adjoin/kit/indexing.hpp>
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/scalar.hpp>

#include "index_rows.hpp"
#include "line_starts.hpp"
#include "tables.hpp"

namespace adjoin::cpu {
namespace {

// The index's elements and, for each line of them along dim, where the line begins in the two
// tensors that it joins.
struct Walk {
  Walk(TensorView index, int64_t dim, Span shape, Span strides, Span other_strides)
      : values(index) {
    if (index.numel() == 0) return;  // it may have dimensions of its own then
    int64_t n = index.ndim();
    dim = dim < 0 ? dim + n : dim;
    if (n == 0) shape = Span(&one, 1);
    size = shape[n ? dim : 0];
    length = n ? index.size(dim) : 1;
    step = n ? strides[dim] : 0;
    other_step = n && !other_strides.empty() ? other_strides[dim] : 0;
    this->dim = n ? dim : 0;
    std::vector<int64_t> dense = dense_strides(index.shape());
    for (int64_t d = 0; d < n; ++d)
      if (d != dim)
        lines.add(index.size(d),
                  {dense[d], strides[d], other_strides.empty() ? 0 : other_strides[d]});
    count = lines.count();
    index_step = n ? dense[dim] : 0;
    if (n < 2 || dim == n - 1) return;
    run = index.size(n - 1);
    run_step = strides[n - 1];
    other_run_step = other_strides.empty() ? 0 : other_strides[n - 1];
  }
  // f(offset of the named element, offset at the index's own coordinates); near(the same of the
  // line to come) asks for memory. begin(line, lines) comes before their elements where lines
  // follow each other.
  template <class F, class Near, class Begin>
  void each(F f, Near near, Begin begin) {
    // Lines side by side want to be so many that what is read of each row is worth its way.
    int64_t grain = std::max(grain_of(length), std::min<int64_t>(run, 128));
    parallel_for(count, grain, [&](int64_t lo, int64_t hi) {
      if (!one_by_one()) return across(lo, hi, f);
      constexpr int64_t together = 2048;  // elements: they stay in the first-level cache
      const int64_t group = std::max<int64_t>(1, together / std::max(length, size));
      LineStarts::Cursor cursor(lines, lo);
      for (int64_t m; lo < hi; lo += m) {
        m = std::min(group, hi - lo);
        const int64_t* index = values.data() + lo * length;
        check_indices(index, m * length, size, dim);
        begin(lo, m);
        for (int64_t line = 0; line < m; ++line, index += length) {
          const LineStart now = *cursor;
          if (lo + line + 1 < hi) cursor.next();
          along(index, length, now.to, step, now.other, other_step, f,
                [&](int64_t k) { near((*cursor).to + k, (*cursor).other + k); });
        }
      }
    });
  }
  template <class F, class Near>
  void each(F f, Near near) {
    each(f, near, [](int64_t, int64_t) {});
  }
  // Lines after each other, not side by side.
  bool one_by_one() const { return index_step == 1 || length <= 1; }
  // Are the index's lines the tensor's own, each of which its elements fill?
  bool whole_lines(TensorView index, TensorView t) const {
    int64_t n = index.ndim();
    return count > 0 && n > 0 && dim == n - 1 && one_by_one() && t.dense() && size > 0 &&
           count * size == t.numel();
  }

  static constexpr int64_t one = 1;
  Dense<int64_t> values;
  LineStarts lines;
  int64_t count = 0, size = 0, length = 0, step = 0, other_step = 0, index_step = 0, dim = 0;
  // Lines whose beginnings follow each other at these steps.
  int64_t run = 1, run_step = 0, other_run_step = 0;

 private:
  // A line; all that the loop needs is in registers, since a store might change a member.
  template <class F, class Near>
  [[gnu::always_inline]] static void along(const int64_t* index, int64_t n, int64_t place,
                                           int64_t step, int64_t at, int64_t other_step, F f,
                                           Near near) {
    if (step == 1 && other_step == 1) {
      int64_t k = 0;
      for (; k + 16 <= n; k += 16) {  // the work on one line hides the way of the next
        __builtin_prefetch(index + n + k);
        __builtin_prefetch(index + n + k + 8);
        near(k);
#pragma GCC unroll 16
        for (int64_t j = 0; j < 16; ++j) f(place + index[k + j], at + k + j);
      }
      for (; k + 4 <= n; k += 4) {
#pragma GCC unroll 4
        for (int64_t j = 0; j < 4; ++j) f(place + index[k + j], at + k + j);
      }
      for (; k < n; ++k) f(place + index[k], at + k);
    } else {
      for (int64_t k = 0; k < n; ++k) f(place + index[k] * step, at + k * other_step);
    }
  }
  // Lines side by side; the index's elements of a run are neighbours.
  template <class F>
  void across(int64_t lo, int64_t hi, F f) {
    for (int64_t end; lo < hi; lo = end) {
      end = std::min(hi, (lo / run + 1) * run);
      const LineStart begin = *LineStarts::Cursor(lines, lo);
      for (int64_t k = 0; k < length; ++k) {
        const int64_t* index = values.data() + begin.own + k * index_step;
        check_indices(index, end - lo, size, dim);
        beside(index, end - lo, begin.to, run_step, step, begin.other + k * other_step,
               other_run_step, f);
      }
    }
  }
  template <class F>
  static void beside(const int64_t* index, int64_t n, int64_t place, int64_t next, int64_t step,
                     int64_t at, int64_t other_next, F f) {
    if (next == 1 && other_next == 1)
      for (int64_t j = 0; j < n; ++j) f(place + j + index[j] * step, at + j);
    else
      for (int64_t j = 0; j < n; ++j) f(place + j * next + index[j] * step, at + j * other_next);
  }
};

// 16 elements of each, from a place and from one of the index.
template <class A, class B>
auto ask_for(const A* named, const B* other) {
  return [=](int64_t place, int64_t at) {
    __builtin_prefetch(named + place);
    __builtin_prefetch(other + at);
  };
}

template <class T>
void start_from(TensorView x, MutView out) {
  if (x.get() == out.get()) return;
  if (x.dense() && out.dense()) {
    std::copy_n(x.data<T>(), x.numel(), out.data<T>());
    return;
  }
  std::vector<int64_t> from = offsets_of(x.shape(), x.strides()),
                       to = offsets_of(out.shape(), out.strides());
  for (size_t i = 0; i < from.size(); ++i) out.data<T>()[to[i]] = x.data<T>()[from[i]];
}

// The walk, and the output as its input is: line by line, while they lie in the cache, if the lines
// are the output's.
template <class T, class F, class Near>
void each_of_copied(Walk& walk, TensorView index, TensorView x, MutView out, F f, Near near) {
  if (x.get() == out.get() || !x.dense() || !walk.whole_lines(index, out)) {
    start_from<T>(x, out);
    return walk.each(f, near);
  }
  const T* from = x.data<T>();
  T* to = out.data<T>();
  walk.each(f, near, [=, size = walk.size](int64_t line, int64_t lines) {
    std::copy_n(from + line * size, lines * size, to + line * size);
  });
}

void gather(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0);
  Walk walk(args.tensor(2), args.integer(1), x.shape(), x.strides(), out.strides());
  visit_size(x.dtype(), [&]<class T>() {
    const T* from = x.data<T>();
    T* to = out.data<T>();
    walk.each([=](int64_t place, int64_t at) { to[at] = from[place]; }, ask_for(from, to));
  });
}

void scatter(Args args) {
  TensorView x = args.tensor(0), source;
  MutView out = args.result(0);
  alignas(16) char element[16];
  if (args[3].tag == AJ_TENSOR)
    source = args.tensor(3);
  else
    visit<stored>(x.dtype(), [&]<class T>() {
      *reinterpret_cast<T*>(element) = cast<T>(number<Math<T>>(args[3]));
    });
  Walk walk(args.tensor(2), args.integer(1), x.shape(), out.strides(),
            source ? source.strides() : Span());
  visit_size(x.dtype(), [&]<class T>() {
    T value;
    std::memcpy(&value, element, sizeof value);
    const T* from = source ? source.data<T>() : &value;
    T* to = out.data<T>();
    each_of_copied<T>(
        walk, args.tensor(2), x, out, [=](int64_t place, int64_t at) { to[place] = from[at]; },
        ask_for(to, from));
  });
}

// An index that says the same for all elements of a row, as one expanded from a column does, adds
// rows. False: another case.
template <class T>
bool add_whole_rows(TensorView x, TensorView index, TensorView source, MutView out, int64_t dim) {
  int64_t n = index.ndim(), inner = 1;
  if (n < 2 || (dim != 0 && dim != -n) || !out.dense() || !source.dense()) return false;
  if (!std::ranges::equal(index.shape(), source.shape())) return false;
  for (int64_t d = 1; d < n; inner *= index.size(d++))
    if (index.size(d) != out.size(d) || (index.size(d) > 1 && index.stride(d) != 0)) return false;
  if (inner == 0) return false;
  std::vector<int64_t> rows(size_t(index.size(0)));
  for (size_t k = 0; k < rows.size(); ++k)
    rows[k] = index.data<int64_t>()[int64_t(k) * index.stride(0)];
  check_indices(rows.data(), int64_t(rows.size()), out.size(0), 0);
  start_from<T>(x, out);
  add_rows(out.data<T>(), 1, out.size(0), inner, source.data<T>(), rows.data(),
           int64_t(rows.size()), T(1), -1, false);
  return true;
}

void scatter_add(Args args) {
  TensorView x = args.tensor(0), source = args.tensor(3);
  MutView out = args.result(0);
  bool done = false;
  visit<stored_numeric>(x.dtype(), [&]<class T>() {
    if constexpr (!is_half<T>)
      done = add_whole_rows<T>(x, args.tensor(2), source, out, args.integer(1));
  });
  if (done) return;
  Walk walk(args.tensor(2), args.integer(1), x.shape(), out.strides(), source.strides());
  visit<stored_numeric>(x.dtype(), [&]<class S>() {
    const S* from = source.data<S>();
    if constexpr (is_half<S>) {  // summed in float32 and rounded once
      start_from<S>(x, out);
      Dense<float> sum(out, true);
      std::vector<int64_t> dense = dense_strides(out.shape());
      Walk flat(args.tensor(2), args.integer(1), x.shape(), dense, source.strides());
      flat.each([&](int64_t place, int64_t at) { sum[place] += float(from[at]); },
                ask_for(sum.data(), from));
      sum.commit();
    } else {
      S* to = out.data<S>();
      each_of_copied<S>(
          walk, args.tensor(2), x, out,
          [=](int64_t place, int64_t at) { to[place] = scalar::Add()(to[place], from[at]); },
          ask_for(to, from));
    }
  });
}

}  // namespace

const Kernel scatter_kernels[] = {
    {"gather", custom<gather>},
    {"scatter", custom<scatter>},
    {"scatter_add", custom<scatter_add>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
