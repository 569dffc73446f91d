// plugins/cpu/product.cpp: mm, bmm, addmm and linear, over strided operands.
#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/parallel.hpp>

#include "gemm.hpp"
#include "tables.hpp"

namespace adjoin::cpu {
namespace {

// A matrix of a tensor's last two dimensions as gemm reads it: in place if one of them is
// contiguous, else from a copy.
template <class T>
class Source {
 public:
  explicit Source(TensorView t, bool turn = false) {
    int64_t n = t.ndim(), rows = t.size(-2), columns = t.size(-1), rs = t.stride(-2),
            cs = t.stride(-1);
    batch_ = n == 3 ? t.stride(0) : 0;
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
  Matrix<T> operator[](int64_t batch) const {
    return {m_.data + batch * batch_, m_.ld, m_.transposed};
  }

 private:
  void set_copy(TensorView t, int64_t rows, int64_t columns) {
    copy_ = std::make_unique<Dense<T>>(t);
    m_ = {copy_->data(), std::max<int64_t>(columns, 1), false};
    batch_ = rows * columns;
  }
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

void mm(Args args) {
  TensorView a = args.tensor(0), b = args.tensor(1);
  MutView out = args.result(0);
  visit<products>(out.dtype(), [&]<class S>() {
    using T = Math<S>;
    Source<T> x(a), y(b);
    Target<T> z(out);
    gemm_parallel<T>(Providers(a.size(0) * b.size(1) * a.size(1)), a.size(0), b.size(1), a.size(1),
                     T(1), x[0], y[0], T(0), z[0], z.ld(), by_shape(args));
    z.commit();
  });
}

void bmm(Args args) {
  TensorView a = args.tensor(0), b = args.tensor(1);
  MutView out = args.result(0);
  int64_t batch = a.size(0), m = a.size(1), k = a.size(2), n = b.size(2);
  visit<products>(out.dtype(), [&]<class S>() {
    using T = Math<S>;
    Source<T> x(a), y(b);
    Target<T> z(out);
    Providers from(m * n * k);
    if (batch >= core().num_threads()) {
      parallel_for(batch, grain_of(m * n * k, 1 << 18), [&](int64_t lo, int64_t hi) {
        for (; lo < hi; ++lo) gemm<T>(from, m, n, k, T(1), x[lo], y[lo], T(0), z[lo], z.ld());
      });
    } else {
      for (int64_t i = 0; i < batch; ++i)
        gemm_parallel<T>(from, m, n, k, T(1), x[i], y[i], T(0), z[i], z.ld(), by_shape(args));
    }
    z.commit();
  });
}

// Fills C with what beta multiplies, broadcast from c.
template <class T>
void spread(TensorView c, T* to, int64_t ld, int64_t m, int64_t n) {
  Dense<T> from(c);
  int64_t rows = c.ndim() == 2 ? c.size(0) : 1, columns = c.ndim() ? c.size(-1) : 1;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      to[i * ld + j] = from[(rows == 1 ? 0 : i) * columns + (columns == 1 ? 0 : j)];
}

void addmm(Args args) {
  TensorView c = args.tensor(0), a = args.tensor(1), b = args.tensor(2);
  MutView out = args.result(0);
  int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  visit<products>(out.dtype(), [&]<class S>() {
    using T = Math<S>;
    T beta = number<T>(args[3]), alpha = number<T>(args[4]);
    Source<T> x(a), y(b);
    Target<T> z(out);
    if (!(beta == T(0)) && c.get() != out.get()) spread(c, z[0], z.ld(), m, n);
    gemm_parallel<T>(Providers(m * n * k), m, n, k, alpha, x[0], y[0], beta, z[0], z.ld(),
                     by_shape(args));
    z.commit();
  });
}

void linear(Args args) {
  TensorView x = args.tensor(0), w = args.tensor(1), bias = args.tensor(2);
  MutView out = args.result(0);
  int64_t n = w.ndim() == 2 ? w.size(0) : 1, k = w.size(-1), m = n ? out.numel() / n : 0;
  visit<products>(out.dtype(), [&]<class S>() {
    using T = Math<S>;
    Dense<T> in(x), z(out), weight(w);
    if (bias) spread(bias, z.data(), n, m, n);
    gemm_parallel<T>(Providers(m * n * k), m, n, k, T(1), {in.data(), std::max<int64_t>(k, 1)},
                     {weight.data(), std::max<int64_t>(k, 1), true}, T(bias ? 1 : 0), z.data(),
                     std::max<int64_t>(n, 1), by_shape(args));
    z.commit();
  });
}

}  // namespace

const Kernel product_kernels[] = {
    {"mm", custom<mm, products>},
    {"bmm", custom<bmm, products>},
    {"addmm", custom<addmm, products>},
    {"nn::linear", custom<linear, products>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
