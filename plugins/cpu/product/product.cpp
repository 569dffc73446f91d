// plugins/cpu/product/product.cpp: mm, bmm, addmm and linear, over strided operands.
#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/linear.hpp>
#include <adjoin/kit/reduce.hpp>
#include <algorithm>
#include <vector>

#include "gemm.hpp"
#include "vector/reduce_leaf.hpp"
#include "vector/stored.hpp"

namespace adjoin::cpu {
namespace {

// A matrix of a tensor's last two dimensions as gemm reads it: in place if one of them is
// contiguous, else from a copy.
template <class T>
class Source {
 public:
  explicit Source(TensorView t, int64_t dims = 2, bool turn = false) : tensor_(t.get()) {
    int64_t rows = dims == 2 ? t.size(-2) : 1, columns = t.size(-1),
            rs = dims == 2 ? t.stride(-2) : columns, cs = t.stride(-1);
    batch_ = t.ndim() == 3 ? t.stride(0) : 0;
    if (!same(t.dtype(), dtype_of<T>)) {
      set_copy(t, rows, columns);
    } else if ((cs == 1 || columns <= 1) && (rs >= columns || rows <= 1)) {
      m_ = {t.data<T>(), std::max<int64_t>({rows > 1 ? rs : columns, columns, 1}), false};
    } else if ((rs == 1 || rows <= 1) && (cs >= rows || columns <= 1)) {
      m_ = {t.data<T>(), std::max<int64_t>({columns > 1 ? cs : rows, rows, 1}), true};
    } else {
      set_copy(t, rows, columns);
    }
    m_.transposed ^= turn;
  }
  // The tensor, if it is read where it lies.
  aj_tensor* tensor() const { return copy_ ? nullptr : tensor_; }
  int64_t batch() const { return batch_; }  // elements between matrices of a stack
  Matrix<T> operator[](int64_t batch) const {
    return {m_.data + batch * batch_, m_.ld, m_.transposed};
  }

 private:
  void set_copy(TensorView t, int64_t rows, int64_t columns) {
    copy_ = std::make_unique<Dense<T>>(t);
    m_ = {copy_->data(), std::max<int64_t>(columns, 1), false};
    batch_ = rows * columns;
  }
  aj_tensor* tensor_;
  std::unique_ptr<Dense<T>> copy_;
  Matrix<T> m_;
  int64_t batch_ = 0;
};

// Where a product is written: in place if rows are contiguous, else into an array that commit()
// copies.
template <class T>
class Target {
 public:
  explicit Target(MutView t) : dense_() {
    int64_t n = t.ndim();
    bool direct = same(t.dtype(), dtype_of<T>) && (t.stride(-1) == 1 || t.size(-1) <= 1) &&
                  (t.stride(-2) >= t.size(-1) || t.size(-2) <= 1);
    if (direct) {
      data_ = t.data<T>();
      ld_ = t.size(-2) > 1 ? t.stride(-2) : std::max<int64_t>(1, t.size(-1));
      batch_ = n == 3 ? t.stride(0) : 0;
    } else {
      dense_ = std::make_unique<Dense<T>>(t, true);
      data_ = dense_->data();
      ld_ = std::max<int64_t>(1, t.size(-1));
      batch_ = t.size(-1) * t.size(-2);
    }
  }
  T* operator[](int64_t batch) const { return data_ + batch * batch_; }
  int64_t ld() const { return ld_; }
  int64_t batch() const { return batch_; }
  void commit() {
    if (dense_) dense_->commit();
  }

 private:
  std::unique_ptr<Dense<T>> dense_;
  T* data_;
  int64_t ld_, batch_;
};

using products = stored_numeric;
bool by_shape(Args args) { return args.call()->flags & AJ_CALL_DETERMINISTIC; }

// What is multiplied for S. Sums of products wrap, so signed numbers give an unsigned result's
// bits.
template <class S>
struct Multiplied {
  using type = Math<S>;
};
template <class S>
requires(std::is_unsigned_v<S> && sizeof(S) > 1) struct Multiplied<S> {
  using type = std::make_signed_t<S>;
};

// f<T>() with the type that is multiplied: half types as they are if there is code for that.
template <class F>
void multiplied(DLDataType dtype, F&& f) {
  visit<products>(dtype, [&]<class S>() {
    if constexpr (is_half<S>) {
      if (multiplies_halves()) return f.template operator()<S>();
    }
    f.template operator()<typename Multiplied<S>::type>();
  });
}

template <class T>
void run(Gemm<T> g, Source<T>& x, Source<T>& y, Target<T>& z, bool shape_only) {
  g.a = x[0], g.b = y[0], g.c = z[0], g.ldc = z.ld();
  g.b_tensor = y.tensor();
  multiply(g, shape_only);
  z.commit();
}

// One row times one column: the products of each leaf are summed as the kit's tree sums.
template <class T>
struct Dotting {
  using State = T;
  void join(T& s, T other) const { s += other; }
};
template <class T>
T dot(const T* x, const T* y, int64_t n) {
  const auto products = leaves<T>().products;
  if (n <= kLeaf) return n ? products(x, y, n) : T(0);
  constexpr int64_t run = 16 * kLeaf;
  int64_t runs = (n + run - 1) / run;
  std::vector<T> parts(size_t(std::max<int64_t>(runs, 1)));
  Dotting<T> dotting;
  auto joined = [&](int64_t count, auto part) {
    TreeStack<Dotting<T>> stack(dotting, 1, count);
    for (int64_t i = 0; i < count; ++i) {
      *stack.top() = part(i);
      stack.push();
    }
    return *stack.finish();
  };
  parallel_for(runs, 1, [&](int64_t lo, int64_t hi) {
    for (; lo < hi; ++lo) {
      int64_t from = lo * run, m = std::min(run, n - from);
      parts[lo] = joined((m + kLeaf - 1) / kLeaf, [&](int64_t leaf) {
        int64_t at = from + leaf * kLeaf;
        return products(x + at, y + at, std::min(kLeaf, n - at));
      });
    }
  });
  return runs ? joined(runs, [&](int64_t i) { return parts[i]; }) : T(0);
}

void mm(Args args) {
  TensorView a = args.tensor(0), b = args.tensor(1);
  MutView out = args.result(0);
  if (a.size(0) == 1 && b.size(1) == 1 &&
      (same(out.dtype(), dtype_of<float>) || same(out.dtype(), dtype_of<double>)))
    return visit<floating>(out.dtype(), [&]<class T>() {
      Dense<T> x(a), y(b), z(out);
      z[0] = dot(x.data(), y.data(), a.size(1));
      z.commit();
    });
  multiplied(out.dtype(), [&]<class T>() {
    Source<T> x(a), y(b);
    Target<T> z(out);
    run<T>({.m = a.size(0), .n = b.size(1), .k = a.size(1)}, x, y, z, by_shape(args));
  });
}

void bmm(Args args) {
  TensorView a = args.tensor(0), b = args.tensor(1);
  MutView out = args.result(0);
  multiplied(out.dtype(), [&]<class T>() {
    Source<T> x(a), y(b);
    Target<T> z(out);
    Gemm<T> g = {.m = a.size(1), .n = b.size(2), .k = a.size(2)};
    g.batch = a.size(0);
    g.stride_a = x.batch(), g.stride_b = y.batch(), g.stride_c = z.batch();
    run(g, x, y, z, by_shape(args));
  });
}

// Fills the C of a stack with what beta multiplies, broadcast from c.
template <class T>
void spread(const T* from, TensorView c, int64_t batch, T* to, int64_t ld, int64_t m, int64_t n) {
  const int64_t rows = c.ndim() >= 2 ? c.size(-2) : 1, columns = c.ndim() ? c.size(-1) : 1;
  if (c.ndim() < 3 || c.size(0) == 1) batch = 0;
  for (int64_t i = 0; i < m; ++i) {
    const T* row = from + (batch * rows + (rows == 1 ? 0 : i)) * columns;
    if (columns == 1)
      std::fill_n(to + i * ld, n, *row);
    else
      std::copy_n(row, n, to + i * ld);
  }
}

void addmm(Args args) {
  TensorView c = args.tensor(0), a = args.tensor(1), b = args.tensor(2);
  MutView out = args.result(0);
  int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  multiplied(out.dtype(), [&]<class T>() {
    using N = Math<T>;
    Gemm<T> g = {.m = m, .n = n, .k = k};
    g.beta = number<N>(args[3]), g.alpha = number<N>(args[4]);
    Source<T> x(a), y(b);
    Target<T> z(out);
    bool row = c.numel() == n && c.ndim() && c.size(-1) == n;
    if (row && g.alpha == N(1) && g.beta == N(1) && c.get() != out.get()) {
      Dense<T> bias(c);
      g.bias = bias.data(), g.beta = N(0);
      return run(g, x, y, z, by_shape(args));
    }
    if (!(g.beta == N(0)) && c.get() != out.get())
      spread(Dense<T>(c).data(), c, 0, z[0], z.ld(), m, n);
    run(g, x, y, z, by_shape(args));
  });
}

// Of other dtypes, or several, or with a complex factor of reals, the body promotes.
int32_t can_add_stacks(void*, const aj_call* call) {
  const auto dtype = [&](uint32_t i) { return TensorView(call->args[i].v.tensor).dtype(); };
  const bool wider = dtype(0).code != kDLComplex &&
                     (call->args[3].tag == AJ_COMPLEX || call->args[4].tag == AJ_COMPLEX);
  return !wider && same(dtype(0), dtype(1)) && same(dtype(0), dtype(2));
}
void baddbmm(Args args) {
  TensorView c = args.tensor(0), a = args.tensor(1), b = args.tensor(2);
  MutView out = args.result(0);
  visit<floating>(out.dtype(), [&]<class T>() {
    Gemm<T> g = {.m = a.size(1), .n = b.size(2), .k = a.size(2)};
    g.beta = number<T>(args[3]), g.alpha = number<T>(args[4]);
    g.batch = a.size(0);
    Source<T> x(a), y(b);
    Target<T> z(out);
    g.stride_a = x.batch(), g.stride_b = y.batch(), g.stride_c = z.batch();
    if (!(g.beta == T(0)) && c.get() != out.get()) {
      Dense<T> from(c);
      for (int64_t i = 0; i < g.batch; ++i) spread(from.data(), c, i, z[i], z.ld(), g.m, g.n);
    }
    run(g, x, y, z, by_shape(args));
  });
}

void linear(Args args) {
  TensorView x = args.tensor(0), w = args.tensor(1), bias = args.tensor(2);
  MutView out = args.result(0);
  int64_t n = w.ndim() == 2 ? w.size(0) : 1, k = w.size(-1), m = n ? out.numel() / n : 0;
  want_row(bias, n);
  multiplied(out.dtype(), [&]<class T>() {
    Dense<T> in(x), z(out);
    Source<T> weight(w, w.ndim() == 1 ? 1 : 2, true);
    Gemm<T> g = {.m = m, .n = n, .k = k};
    g.a = {in.data(), std::max<int64_t>(k, 1)}, g.b = weight[0];
    g.b_tensor = weight.tensor();
    g.c = z.data(), g.ldc = std::max<int64_t>(n, 1);
    if (!bias) {
      multiply(g, by_shape(args));
    } else if (bias.numel() == n) {
      Dense<T> row(bias);
      g.bias = row.data();
      multiply(g, by_shape(args));
    } else {
      spread(Dense<T>(bias).data(), bias, 0, z.data(), n, m, n);
      g.beta = Math<T>(1);
      multiply(g, by_shape(args));
    }
    z.commit();
  });
}

}  // namespace

AJ_KERNELS(product_kernels) = {
    {"mm", custom<mm, products>},
    {"bmm", custom<bmm, products>},
    {"addmm", custom<addmm, products>},
    {"baddbmm", {&plain_kernel<baddbmm>, floating::own_mask, 0, &can_add_stacks}},
    {"nn::linear", custom<linear, products>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
