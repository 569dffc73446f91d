// plugins/ops_linalg/linalg.cpp: powers, chains and norms of matrices, vector products.
#include <cmath>

#include "matrices.hpp"

namespace adjoin::ops {

aj_status* vecdot_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &x = b.tensor(0), &y = b.tensor(1);
    want(x.dtype() == y.dtype(), "dtypes differ: ", x.dtype(), " and ", y.dtype());
    Tensor products = conjugate(x) * y,
           out = sum(products, wrap_dim(b.integer(2), products.ndim()));
    b.ret(0, out.dtype() == x.dtype() ? out : to(out, x.dtype()));
  });
}

aj_status* matrix_power_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor power = b.tensor(0), out;
    int64_t n = b.integer(1);
    want_square(power);
    if (n < 0) {
      power = in_own_name([&] { return linalg::inv(power); });
      n = -n;
    }
    if (n == 0) {
      Tensor one = eye(power.size(-1), std::nullopt, power.dtype(), power.device());
      return b.ret(0, clone(expand(one, power.shape())));
    }
    for (; n; n >>= 1) {
      if (n & 1) out = out.defined() ? matmul(out, power) : power;
      if (n > 1) power = matmul(power, power);
    }
    b.ret(0, out.get() == b.tensor(0).get() ? clone(out) : out);
  });
}

namespace {

// The cheapest order of a chain, by dynamic programming over its pieces.
class Chain {
 public:
  explicit Chain(const std::vector<Tensor>& all) : all_(all), n_(int64_t(all.size())) {
    cost_.assign(size_t(n_ * n_), 0);
    cut_.assign(size_t(n_ * n_), 0);
    for (int64_t length = 2; length <= n_; ++length)
      for (int64_t i = 0; i + length <= n_; ++i) find(i, i + length - 1);
  }
  Tensor product(int64_t i, int64_t j) const {
    if (i == j) return all_[size_t(i)];
    int64_t k = cut_[size_t(i * n_ + j)];
    return mm(product(i, k), product(k + 1, j));
  }

 private:
  void find(int64_t i, int64_t j) {
    double best = std::numeric_limits<double>::infinity();
    for (int64_t k = i; k < j; ++k) {
      double cost = cost_[size_t(i * n_ + k)] + cost_[size_t((k + 1) * n_ + j)] +
                    double(rows(i)) * double(rows(k + 1)) * double(all_[size_t(j)].size(1));
      if (cost < best) best = cost, cut_[size_t(i * n_ + j)] = k;
    }
    cost_[size_t(i * n_ + j)] = best;
  }
  int64_t rows(int64_t i) const { return all_[size_t(i)].size(0); }

  const std::vector<Tensor>& all_;
  int64_t n_;
  std::vector<double> cost_;
  std::vector<int64_t> cut_;
};

}  // namespace

aj_status* multi_dot_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensors given = b.tensors(0);
    want(given.size() >= 2, "at least two tensors are wanted, ", given.size(), " are given");
    std::vector<Tensor> all(given.begin(), given.end());
    bool row = all.front().ndim() == 1, column = all.back().ndim() == 1;
    if (row) all.front() = unsqueeze(all.front(), 0);
    if (column) all.back() = unsqueeze(all.back(), 1);
    for (size_t i = 0; i < all.size(); ++i) {
      want(all[i].ndim() == 2, "tensor ", i, " must be a matrix, its shape is ", shown(given[i]));
      if (i > 0)
        want(all[i].size(0) == all[i - 1].size(1), "tensors ", i - 1, " and ", i,
             " cannot be multiplied: ", shown(given[i - 1]), " and ", shown(given[i]));
      want(all[i].dtype() == all[0].dtype(), "dtypes differ: ", all[0].dtype(), " and ",
           all[i].dtype());
    }
    Tensor out = in_own_name([&] { return Chain(all).product(0, int64_t(all.size()) - 1); });
    if (row) out = squeeze(out, 0);
    b.ret(0, column ? squeeze(out, -1) : out);
  });
}

aj_status* chain_matmul_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    static constinit std::atomic_flag said;
    deprecated(said, "chain_matmul", "linalg.multi_dot(), which takes a list of two or more");
    Tensors given = b.tensors(0);
    want(given.size() > 0, "Expected one or more matrices");
    for (const Tensor& t : given)
      want(t.ndim() == 2, "matrices are wanted, a shape is ", shown(t),
           "; linalg.multi_dot takes vectors at its ends, too");
    b.ret(0, given.size() == 1 ? given[0] : linalg::multi_dot(given));
  });
}

namespace {

Tensor floats_of(const Tensor& t, const kit::Body& b, uint32_t dtype) {
  if (b.given(dtype)) return to(t, b.dtype(dtype));
  if (is_integral(t))
    kit::raise(AJ_UNIMPLEMENTED, "floating-point or complex numbers are wanted, the tensor is ",
               t.dtype(), "; pass dtype");
  return t;
}

// Of the matrices in two dimensions.
Tensor singular_values(const Tensor& t, int64_t row, int64_t column) {
  return in_own_name([&] { return linalg::svdvals(movedim(t, {row, column}, {-2, -1})); });
}
// With the dimensions of the matrices again, of size 1.
Tensor spread(const Tensor& norms, const Tensor& t, const Ints& dim, bool keepdim) {
  if (!keepdim) return norms;
  Sizes shape = sizes_of(t);
  for (int64_t d : dim) shape[size_t(wrap_dim(d, t.ndim()))] = 1;
  return reshape(norms, shape);
}

Tensor matrix_norm_of(const Tensor& t, double ord, const Ints& dim, bool keepdim) {
  want(dim.size() == 2, "dim must name two dimensions: ", shown(dim));
  int64_t row = dim[0], column = dim[1];
  want(t.ndim() >= 2 && row != column, "dim ", shown(dim), " must name two dimensions of shape ",
       shown(t));
  if (std::fabs(ord) == 2) {
    Tensor values = singular_values(t, row, column);
    if (values.size(-1) == 0)  // the largest of none is 0; amin says that there is no smallest
      return spread(ord > 0 ? sum(values, -1) : amin(values, -1), t, dim, keepdim);
    return spread(select(values, -1, ord > 0 ? 0 : -1), t, dim, keepdim);
  }
  want(std::fabs(ord) == 1 || std::isinf(ord), "the norm ", ord,
       " of matrices is not known; 'fro', 'nuc', 1, -1, 2, -2, inf and -inf are");
  if (std::isinf(ord)) std::swap(row, column);
  Tensor sums = sum(abs(t), row, true);
  // No sums at all: the largest is 0, as PyTorch has it; there is no smallest.
  Tensor out = ord < 0             ? amin(sums, column, true)
               : sums.size(column) ? amax(sums, column, true)
                                   : sum(sums, column, true);
  return keepdim ? out : squeeze(out, {row, column});
}

Tensor frobenius(const Tensor& t, std::string_view name, const Ints& dim, bool keepdim) {
  want(name == "fro" || name == "nuc", "the norm '", name,
       "' is not known; 'fro', 'nuc' and numbers are");
  want(t.ndim() >= 2 && dim.size() == 2, "two dimensions are wanted: dim ", shown(dim),
       " of shape ", shown(t));
  if (name == "nuc") return spread(sum(singular_values(t, dim[0], dim[1]), -1), t, dim, keepdim);
  return vector_norm(t, 2, dim, keepdim);
}

constexpr int64_t kMatrix[] = {-2, -1};

Ints matrix_dims(const Tensor& t, const Ints& dim) {
  if (!dim.is_none()) return dim;
  want(t.ndim() == 2, "a matrix is wanted where dim is not given, the shape is ", shown(t));
  return Ints(kMatrix, 2);
}

}  // namespace

aj_status* matrix_norm_name_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret(0, frobenius(floats_of(b.tensor(0), b, 4), b.text(1), b.ints(2), b.flag(3)));
  });
}

aj_status* matrix_norm_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret(0, matrix_norm_of(floats_of(b.tensor(0), b, 4), b.real(1), b.ints(2), b.flag(3)));
  });
}

aj_status* linalg_norm_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor t = floats_of(b.tensor(0), b, 4);
    Ints dim = b.ints(2);
    bool keepdim = b.flag(3);
    if (!b.given(1)) return b.ret(0, vector_norm(t, 2, dim, keepdim));
    bool vectors = dim.is_none() ? t.ndim() == 1 : dim.size() == 1;
    want(!dim.is_none() || t.ndim() == 1 || t.ndim() == 2,
         "a vector or a matrix is wanted where dim is not given, the shape is ", shown(t));
    if (vectors) return b.ret(0, vector_norm(t, b.scalar(1), dim, keepdim));
    b.ret(0, matrix_norm_of(t, b.real(1), matrix_dims(t, dim), keepdim));
  });
}

aj_status* linalg_norm_name_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor t = floats_of(b.tensor(0), b, 4);
    b.ret(0, frobenius(t, b.text(1), matrix_dims(t, b.ints(2)), b.flag(3)));
  });
}

namespace {

Tensor vector_product(const Tensor& x, const Tensor& y, int64_t dim) {
  Sizes shape = broadcast(x.shape(), y.shape());
  int64_t d = wrap_dim(dim, int64_t(shape.size()));
  want(x.ndim() == y.ndim(), "input ", shown(x), " and other ", shown(y),
       " must have as many dimensions");
  want(!shape.empty() && x.size(d) == 3 && y.size(d) == 3, "dimension ", dim,
       " must have size 3: ", shown(x), " and ", shown(y));
  std::vector<Tensor> a = unbind(expand(x, shape), d), b = unbind(expand(y, shape), d);
  return stack({a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]},
               d);
}

}  // namespace

aj_status* cross_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& x = b.tensor(0);
    b.ret(0, vector_product(x, b.tensor(1), b.integer(2) - std::max<int64_t>(x.ndim(), 1)));
  });
}

aj_status* cross_any_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &x = b.tensor(0), &y = b.tensor(1);
    if (b.given(2)) return b.ret(0, vector_product(x, y, b.integer(2)));
    static constinit std::atomic_flag said;
    deprecated(said, "cross", "dim=, or linalg.cross(), whose dim is the last one");
    want(x.ndim() == y.ndim(), "input ", shown(x), " and other ", shown(y),
         " must have as many dimensions");
    Sizes shape = broadcast(x.shape(), y.shape());
    auto at = std::find(shape.begin(), shape.end(), 3);
    want(at != shape.end(), "no dimension of size 3 in ", shown(x), " and ", shown(y));
    b.ret(0, vector_product(x, y, at - shape.end()));
  });
}

}  // namespace adjoin::ops
