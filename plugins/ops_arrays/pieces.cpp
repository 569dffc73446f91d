// plugins/ops_arrays/pieces.cpp: cutting, piling up and pairing tensors by views and products.
#include <adjoin/kit/host.hpp>
#include <adjoin/kit/make.hpp>
#include <adjoin/kit/memory.hpp>
#include <cmath>
#include <numeric>

namespace adjoin::ops {
namespace {

// The dimension that hsplit, vsplit and dsplit cut: `most`, or the only one of a vector.
int64_t cut_dim(const Tensor& t, int64_t least, int64_t dim) {
  want(t.ndim() >= least, "torch.", std::string_view("hvd").substr(size_t(least - 1), 1),
       "split requires a tensor with at least ", least, " dimension", least > 1 ? "s" : "",
       ", the shape is ", shown(t));
  return t.ndim() == 1 ? 0 : dim;
}

aj_status* equal_pieces(aj_call* call, int64_t least, int64_t dim) {
  return kit::compose(call, [=](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    int64_t n = b.integer(1), d = cut_dim(t, least, dim);
    want(n > 0 && t.size(d) % n == 0, "dimension ", d, " of size ", t.size(d),
         " cannot be cut into ", n, " equal pieces");
    b.ret(0, tensor_split(t, n, d));
  });
}

aj_status* pieces_at(aj_call* call, int64_t least, int64_t dim) {
  return kit::compose(call, [=](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    b.ret(0, tensor_split(t, b.ints(1), cut_dim(t, least, dim)));
  });
}

}  // namespace

aj_status* hsplit_body(void*, aj_call* call) { return equal_pieces(call, 1, 1); }
aj_status* hsplit_indices_body(void*, aj_call* call) { return pieces_at(call, 1, 1); }
aj_status* vsplit_body(void*, aj_call* call) { return equal_pieces(call, 2, 0); }
aj_status* vsplit_indices_body(void*, aj_call* call) { return pieces_at(call, 2, 0); }
aj_status* dsplit_body(void*, aj_call* call) { return equal_pieces(call, 3, 2); }
aj_status* dsplit_indices_body(void*, aj_call* call) { return pieces_at(call, 3, 2); }

namespace {

Tensor at_least_1d(const Tensor& t) { return t.ndim() ? t : reshape(t, {1}); }
Tensor at_least_2d(const Tensor& t) { return t.ndim() > 1 ? t : unsqueeze(at_least_1d(t), 0); }
Tensor at_least_3d(const Tensor& t) {
  if (t.ndim() > 2) return t;
  return unsqueeze(t.ndim() == 2 ? t : at_least_2d(t), 2);
}

std::vector<Tensor> each_of(Tensors all, auto f) {
  want(all.size() > 0, "no tensors are given");
  std::vector<Tensor> out;
  for (const Tensor& t : all) out.push_back(f(t));
  return out;
}

}  // namespace

aj_status* atleast_1d_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) { b.ret(0, at_least_1d(b.tensor(0))); });
}
aj_status* atleast_2d_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) { b.ret(0, at_least_2d(b.tensor(0))); });
}
aj_status* atleast_3d_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) { b.ret(0, at_least_3d(b.tensor(0))); });
}

aj_status* column_stack_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    auto column = [](const Tensor& t) { return t.ndim() > 1 ? t : reshape(t, {t.numel(), 1}); };
    b.ret(0, cat(each_of(b.tensors(0), column), 1));
  });
}

aj_status* dstack_body(void*, aj_call* call) {
  return kit::compose(call,
                      [](kit::Body& b) { b.ret(0, cat(each_of(b.tensors(0), at_least_3d), 2)); });
}

namespace {

// One dtype, one device.
bool alike(const std::vector<Tensor>& all) {
  return std::ranges::all_of(all, [&](const Tensor& t) {
    return t.dtype() == all[0].dtype() && t.device() == all[0].device();
  });
}

}  // namespace

aj_status* block_diag_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    if (b.tensors(0).size() == 0) return b.ret(0, empty({1, 0}));
    std::vector<Tensor> blocks = each_of(b.tensors(0), at_least_2d);
    int64_t columns = 0, at = 0;
    for (const Tensor& t : blocks) {
      want(t.ndim() == 2, "tensors must have at most 2 dimensions, one has shape ", shown(t));
      columns = plus(columns, t.size(1));
    }
    if (alike(blocks)) {  // each is written where it stands
      int64_t rows = 0, row = 0;
      for (const Tensor& t : blocks) rows = plus(rows, t.size(0));
      Tensor out = zeros_of(blocks[0], {rows, columns});
      for (const Tensor& t : blocks) {
        copy_(cut(cut(out, 0, row, row + t.size(0)), 1, at, at + t.size(1)), t);
        row += t.size(0), at += t.size(1);
      }
      return b.ret(0, out);
    }
    for (Tensor& t : blocks) {
      int64_t width = t.size(1);
      t = constant_pad_nd(t, {at, columns - at - width});
      at += width;
    }
    b.ret(0, cat(blocks, 0));
  });
}

aj_status* block_diag_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& g = b.tensor(0);
    std::vector<Tensor> parts;
    int64_t row = 0, at = 0;
    for (const Tensor& t : b.tensors(1)) {
      const int64_t rows = t.ndim() == 2 ? t.size(0) : 1, width = t.ndim() ? t.size(-1) : 1;
      want(g.ndim() == 2 && t.ndim() <= 2 && row + rows <= g.size(0) && at + width <= g.size(1),
           "grad of shape ", shown(g), " has no block of shape ", shown(t), " at ", row, ", ", at);
      Tensor part = cut(cut(g, 0, row, row + rows), 1, at, at + width);
      parts.push_back(t.ndim() == 2 ? part : reshape(part, t.shape()));
      row += rows, at += width;
    }
    b.ret(0, parts);
  });
}

aj_status* cartesian_prod_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensors all = b.tensors(0);
    want(all.size() > 0, "no tensors are given");
    for (const Tensor& t : all) want(t.ndim() == 1, "vectors are wanted, one has shape ", shown(t));
    if (all.size() == 1) return b.ret(0, all[0]);
    b.ret(0, flatten(stack(meshgrid(all), -1), 0, int64_t(all.size()) - 1));
  });
}

namespace {

// Every increasing choice of r of n places, or non-decreasing when a place may come again.
std::vector<int64_t> choices(int64_t n, int64_t r, bool again) {
  std::vector<int64_t> out;
  if (n == 0 || (!again && r > n)) return out;
  double most = double(again ? n + r - 1 : n);
  double logarithm = std::lgamma(most + 1) - std::lgamma(double(r) + 1) -
                     std::lgamma(most - double(r) + 1) + std::log(double(r));
  want(logarithm < 22, "choosing ", r, " of ", n, " elements gives more than 2^31 elements");
  std::vector<int64_t> at(static_cast<size_t>(r));
  for (int64_t i = 0; i < r; ++i) at[size_t(i)] = again ? 0 : i;
  for (;;) {
    out.insert(out.end(), at.begin(), at.end());
    int64_t k = r - 1;
    auto last = [&](int64_t i) { return again ? n - 1 : n - r + i; };
    while (k >= 0 && at[size_t(k)] == last(k)) --k;
    if (k < 0) return out;
    ++at[size_t(k)];
    for (int64_t i = k + 1; i < r; ++i)
      at[size_t(i)] = again ? at[size_t(k)] : at[size_t(i - 1)] + 1;
  }
}

}  // namespace

aj_status* combinations_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    int64_t r = b.integer(1);
    want(t.ndim() == 1, "a vector is wanted, the shape is ", shown(t));
    want(r >= 0, "r must not be negative: ", r);
    if (r == 0) return b.ret(0, zeros_of(t, {0}));
    const std::vector<int64_t> chosen = choices(t.numel(), r, b.flag(2));
    const int64_t n = int64_t(chosen.size());
    b.ret(0, reshape(index_select(t, 0, indices_from_host(t, chosen, {n})), {n / r, r}));
  });
}

aj_status* kron_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &x = b.tensor(0), &y = b.tensor(1);
    int64_t n = std::max(x.ndim(), y.ndim());
    Sizes left, right, shape;
    for (int64_t i = 0; i < n; ++i) {
      int64_t a = i < n - x.ndim() ? 1 : x.size(i - n + x.ndim()),
              c = i < n - y.ndim() ? 1 : y.size(i - n + y.ndim());
      left.insert(left.end(), {a, 1});
      right.insert(right.end(), {1, c});
      shape.push_back(times(a, c));
    }
    Tensor a = reshape(x, left), c = reshape(y, right);
    if (n > 1 &&
        right.back() < 128) {  // rows of the result, not of y, are what a kernel runs along
      Sizes wide_left = left, wide_right = right;
      wide_left.back() = right.back();
      wide_right[size_t(2 * n - 2)] = left[size_t(2 * n - 2)];
      a = contiguous(expand(a, wide_left));
      c = contiguous(expand(c, wide_right));
    }
    b.ret(0, reshape(a * c, shape));
  });
}

// What lies between a slice's norm and maxnorm is scaled; a little is added so that the scaled
// norm does not round above it.
aj_status* renorm_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    Scalar p = b.scalar(1), most = b.scalar(3);
    int64_t d = b.integer(2);
    want(p.to_double() > 0, "p must be positive: ", p.to_double());
    want(most.to_double() >= 0, "maxnorm must not be negative: ", most.to_double());
    want(t.ndim() > 1, "at least two dimensions are wanted, the shape is ", shown(t));
    Sizes others;
    for (int64_t i = 0; i < t.ndim(); ++i)
      if (i != d) others.push_back(i);
    DLDataType wide = t.is_floating_point() ? statistics_dtype(t.dtype()) : t.dtype();
    Tensor size = vector_norm(to(t, wide), p, others, true);
    Tensor scale = where(gt(size, most), Operand(most) / (size + 1e-7), 1);
    b.ret(0, to(t * scale, t.dtype()));
  });
}

namespace {

aj_status* triangle_indices(aj_call* call, bool lower) {
  return kit::compose(call, [=](kit::Body& b) {
    int64_t rows = b.integer(0), columns = b.integer(1), offset = b.integer(2);
    // Nobody walks the rows above a lower triangle, below an upper one.
    int64_t first = lower ? std::clamp(negated(offset), int64_t(0), rows) : 0;
    int64_t last = columns == 0 ? first
                   : lower      ? rows
                                : std::clamp(plus(columns, negated(offset)), first, rows);
    want(times(last - first, columns) < int64_t(1) << 31, "the triangle of ", rows, " by ", columns,
         " lies in more than 2^31 places");
    DLDevice device = b.given(4) ? b.device(4) : DLDevice{kDLCPU, 0};
    auto each = [&](auto f) {  // f(row, first column, one behind the last)
      for (int64_t row = first; row < last; ++row) {
        int64_t diagonal = std::clamp(plus(row, offset), int64_t(-1), columns);
        int64_t from = lower ? 0 : std::max<int64_t>(diagonal, 0);
        f(row, from, std::max(from, lower ? std::min(diagonal + 1, columns) : columns));
      }
    };
    int64_t n = 0, done = 0;
    each([&](int64_t, int64_t from, int64_t end) { n += end - from; });
    Tensor places = empty_dense({2, n}, int64, DLDevice{kDLCPU, 0});
    int64_t *at = places.data<int64_t>(), *columns_at = at + n;
    each([&](int64_t row, int64_t from, int64_t end) {
      std::fill_n(at + done, end - from, row);
      std::iota(columns_at + done, columns_at + done + (end - from), from);
      done += end - from;
    });
    b.ret(0, to(places, b.given(3) ? b.dtype(3) : int64, device));
  });
}

}  // namespace

aj_status* tril_indices_body(void*, aj_call* call) { return triangle_indices(call, true); }
aj_status* triu_indices_body(void*, aj_call* call) { return triangle_indices(call, false); }

aj_status* unravel_index_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor rest = b.tensor(0);
    Ints shape = b.ints(1);
    want(is_integral(rest), "indices must be integers, they are ", rest.dtype());
    for (int64_t n : shape) want(n >= 0, "sizes must not be negative: ", shown(shape));
    want(rest.numel() == 0 || product(shape) != 0, "the shape ", shown(shape),
         " has no elements, indices has shape ", shown(rest));
    std::vector<Tensor> out(shape.size());
    for (size_t d = shape.size(); d-- > 0;) {
      out[d] = shape[d] ? remainder(rest, shape[d]) : zeros_like(rest);
      rest = shape[d] ? floor_divide(rest, shape[d]) : rest;
    }
    b.ret(0, out);
  });
}

aj_status* sum_to_size_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    Ints shape = b.ints(1);
    bool fits = int64_t(shape.size()) <= t.ndim();
    for (size_t i = 0; fits && i < shape.size(); ++i) {
      int64_t n = t.size(t.ndim() - int64_t(shape.size() - i));
      fits = shape[i] == n || shape[i] == 1;
    }
    want(fits, "size ", shown(shape), " does not broadcast to the shape ", shown(t));
    if (shape.empty()) return b.ret(0, sum(t));
    b.ret(0,
          sum_to(
              sizes_of(t) != Sizes(shape.begin(), shape.end()) && is_integral(t) ? to(t, int64) : t,
              shape));
  });
}

namespace {

Tensor powers_of(const Tensor& x, int64_t n) {
  Tensor base = unsqueeze(x.dtype() == boolean ? to(x, int64) : x, -1);
  if (!x.is_complex() || n < 2) return pow(base, counting(x, n));
  // A complex power by its logarithm would lose digits, and the other part of an infinite number.
  Sizes shape(base.shape().begin(), base.shape().end());
  shape.back() = n - 1;
  return cat({ones_like(base), cumprod(expand(base, shape), -1)}, -1);
}

}  // namespace

aj_status* vander_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& x = b.tensor(0);
    want(x.ndim() == 1, "x must be a vector, its shape is ", shown(x));
    Tensor out = powers_of(x, b.given(1) ? b.integer(1) : x.numel());
    b.ret(0, b.flag(2) ? out : flip(out, {1}));
  });
}

aj_status* linalg_vander_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor x = b.tensor(0).ndim() ? b.tensor(0) : reshape(b.tensor(0), {1});
    const int64_t n = b.given(1) ? b.integer(1) : x.size(-1);
    want(!b.given(1) || n > 1, "the number of powers N must be above 1: ", n);
    b.ret(0, powers_of(x, n));
  });
}

// Every (columns + 1)-th element of a dense matrix; views that are not dense through their
// diagonal.
aj_status* fill_diagonal_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    want(t.ndim() >= 2, "at least two dimensions are wanted, the shape is ", shown(t));
    if (t.ndim() > 2)
      for (int64_t n : t.shape())
        want(n == t.size(0), "all sizes must be equal where there are more than two: ", shown(t));
    int64_t n = *std::min_element(t.shape().begin(), t.shape().end()), step = 0;
    for (int64_t s : t.strides()) step += s;
    fill_(as_strided(t, {n}, {step}, std::nullopt), b.scalar(1));
    if (b.flag(2) && t.ndim() == 2)
      for (int64_t row = t.size(1) + 1; row < t.size(0); row += t.size(1) + 1)
        fill_(diagonal(cut(t, 0, row, t.size(0))), b.scalar(1));
    b.ret(0, t);
  });
}

aj_status* rot90_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    Ints dims = b.ints(2);
    want(dims.size() == 2, "two dims are wanted: ", shown(dims));
    int64_t from = dims[0], into = dims[1];
    want(t.ndim() >= 2 && from != into, "two different dimensions are wanted: ", shown(dims),
         " of shape ", shown(t));
    switch ((b.integer(1) % 4 + 4) % 4) {
      case 1:
        return b.ret(0, transpose(flip(t, {into}), from, into));
      case 2:
        return b.ret(0, flip(t, {from, into}));
      case 3:
        return b.ret(0, transpose(flip(t, {from}), from, into));
      default:
        return b.ret(0, clone(t));
    }
  });
}

aj_status* isreal_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    b.ret(0, t.is_complex() ? eq(imag(t), 0) : ones_like(t, boolean));
  });
}

aj_status* new_empty_strided_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    b.ret(0, empty_strided(b.ints(1), b.ints(2), b.given(3) ? b.dtype(3) : t.dtype(),
                           b.given(4) ? b.device(4) : t.device()));
  });
}

aj_status* empty_permuted_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Ints size = b.ints(0), order = b.ints(1);
    std::vector<int> places;
    for (int64_t d : order) {
      int64_t at = d < 0 ? d + int64_t(size.size()) : d;
      want(at >= 0 && at < int64_t(size.size()) &&
               std::find(places.begin(), places.end(), int(at)) == places.end(),
           "physical_layout ", shown(order), " must name each dimension of ", shown(size), " once");
      places.push_back(int(at));
    }
    want(places.size() == size.size(), "physical_layout ", shown(order),
         " must name each dimension of ", shown(size), " once");
    b.ret(0, empty_strided(size, strides_in(size, places), b.maybe<DLDataType>(2),
                           b.maybe<DLDevice>(3)));
  });
}

}  // namespace adjoin::ops
