// plugins/ops_sparse/coo.cpp: Parts of the layout COO: checked, ordered, made dense and from dense,
// looked up.
#include <algorithm>

#include "sparse.hpp"

namespace adjoin::ops::sparse {

Parts with_values(const Parts& p, Tensor values) {
  Parts made = p;
  made.values = std::move(values);
  return made;
}

Parts empty_coo(const Sizes& size, int64_t sparse_dim, DLDataType dtype, DLDevice device) {
  Parts p;
  p.size = size;
  p.indices = zeros({sparse_dim, 0}, int64, device);
  Sizes shape{0};
  shape.insert(shape.end(), size.begin() + sparse_dim, size.end());
  p.values = zeros(shape, dtype, device);
  p.coalesced = true;
  return p;
}

void check_coo(const Parts& p) {
  want(p.indices.ndim() == 2,
       "indices must be a matrix with a row for each sparse dimension, their shape is ",
       shown(p.indices));
  want(p.indices.dtype() == int64, "indices must be int64, they are ", p.indices.dtype(),
       "; use .long()");
  want(p.values.ndim() >= 1, "values must have a dimension for the elements, they are a number");
  const int64_t sd = p.indices.size(0), n = p.indices.size(1);
  want(p.values.size(0) == n, "indices have ", n, " columns, values ", p.values.size(0),
       " elements: as many are wanted");
  want(int64_t(p.size.size()) == sd + p.values.ndim() - 1, "size ", shown(p.size), " must have ",
       sd, " sparse dimensions, as indices have rows, and ", p.values.ndim() - 1,
       " dense ones, as values have");
  for (int64_t s : p.size) want(s >= 0, "sizes must not be negative: ", shown(p.size));
  for (int64_t d = 1; d < p.values.ndim(); ++d)
    want(p.values.size(d) == p.size[size_t(sd + d - 1)], "size ", shown(p.size),
         " must end with the dense sizes of values, their shape is ", shown(p.values));
  want(p.indices.device() == p.values.device(), "indices and values must be on one device");
  if (n == 0 || sd == 0) return;
  Tensor low = amin(p.indices, {1}), high = amax(p.indices, {1});
  for (int64_t d = 0; d < sd; ++d) {
    const int64_t least = select(low, 0, d).item<int64_t>(),
                  most = select(high, 0, d).item<int64_t>(), size = p.size[size_t(d)];
    want(least >= 0, "indices must not be negative; of dimension ", d, " there is ", least);
    want(most < size, "index ", most, " of dimension ", d, " is out of range for size ", size);
  }
}

void check_rows(const Tensor& indices, std::span<const int64_t> size) {
  want(indices.ndim() == 2 && indices.size(0) <= int64_t(size.size()),
       "indices have a row for each of at most ", size.size(), " dimensions, their shape is ",
       shown(indices));
}

// One number for each column of indices: the place of the element among those of the sparse
// dimensions.
Tensor flat_places(const Tensor& indices, std::span<const int64_t> size) {
  check_rows(indices, size);
  const int64_t sd = indices.size(0);
  want(product(size.subspan(0, size_t(sd))) < kMost, "the sizes ",
       shown(size.subspan(0, size_t(sd))),
       " of the sparse dimensions have more places than int64 counts");
  if (sd == 0) return zeros({indices.size(1)}, int64, indices.device());
  Tensor flat = select(indices, 0, 0);
  for (int64_t d = 1; d < sd; ++d) flat = flat * size[size_t(d)] + select(indices, 0, d);
  return contiguous(flat);
}

Parts coalesced(const Parts& p) {
  if (p.coalesced || !p.is_coo()) return p;
  Parts made = p;
  std::tie(made.indices, made.values) =
      coo_join(contiguous(p.indices), contiguous(p.values), p.sparse_size());
  made.coalesced = true;
  return made;
}

namespace {

// The values as rows of one matrix, whatever dense dimensions they have.
Tensor as_rows(const Tensor& values) {
  int64_t width = 1;
  for (int64_t d = 1; d < values.ndim(); ++d) width *= values.size(d);
  return reshape(values, {values.size(0), width});
}

Sizes behind(int64_t n, std::span<const int64_t> more) {
  Sizes shape{n};
  for (int64_t s : more) shape.push_back(s);
  return shape;
}

}  // namespace

Tensor dense_of(const Parts& given) {
  const Parts p = coo_of(given);
  const int64_t places = product(p.sparse_size());
  Tensor rows = as_rows(p.values), flat = flat_places(p.indices, p.size);
  if (p.dtype() == boolean) {  // a sum of truths is an "or"
    Tensor counts =
        index_add_(zeros({places, rows.size(1)}, uint8, rows.device()), 0, flat, to(rows, uint8));
    return reshape(ne(counts, 0), p.size);
  }
  return reshape(index_add_(zeros_of(rows, {places, rows.size(1)}), 0, flat, rows), p.size);
}

Parts coo_of_dense(const Tensor& t, int64_t sparse_dim) {
  want(sparse_dim >= 0 && sparse_dim <= t.ndim(), "sparse_dim must be between 0 and ", t.ndim(),
       ", it is ", sparse_dim);
  Tensor filled = ne(t, 0);
  if (sparse_dim < t.ndim()) {
    Sizes dims;
    for (int64_t d = sparse_dim; d < t.ndim(); ++d) dims.push_back(d);
    filled = any(filled, dims);
  }
  Parts p;
  p.size = sizes_of(t);
  p.coalesced = true;
  if (sparse_dim == 0) {
    const bool some = filled.item<bool>();
    p.indices = zeros({0, int64_t(some)}, int64, t.device());
    p.values = some ? clone(unsqueeze(t, 0)) : zeros_of(t, behind(0, t.shape()));
    return p;
  }
  p.indices = contiguous(transpose(nonzero(filled), 0, 1));
  Tensor rows = reshape(t, behind(product(t.shape().subspan(0, size_t(sparse_dim))),
                                  t.shape().subspan(size_t(sparse_dim))));
  p.values = index_select(rows, 0, flat_places(p.indices, p.size));
  return p;
}

// As broadcasting repeats it: each element as often as its dimensions of size 1 ask for.
Parts repeated(const Parts& p, const Sizes& size) {
  if (size == p.size) return p;
  if (!p.is_coo()) refuse("broadcasting", p, "COO tensors are repeated");
  const size_t more = size.size() - p.size.size(), sd = size_t(p.sparse_dim());
  Parts made = p;
  made.size = size;
  Sizes inner{p.count()};
  inner.insert(inner.end(), size.begin() + int64_t(more + sd), size.end());
  made.values = expand(p.values, inner);
  auto repeats = [&](size_t d) { return d < more || p.size[d - more] != size[d]; };
  int64_t times = 1;
  bool kept = false, in_order = p.coalesced;
  for (size_t d = 0; d < more + sd; ++d) {
    if (repeats(d))
      times *= size[d], in_order &= !kept;
    else
      kept |= size[d] != 1;
  }
  if (times == 1 && !more) return made;
  const int64_t n = p.count();
  Tensor which = counting(p.indices, n * times);
  Tensor element = remainder(which, std::max<int64_t>(n, 1));
  Tensor round = floor_divide(which, std::max<int64_t>(n, 1));
  std::vector<Tensor> rows(more + sd);
  for (size_t d = rows.size(); d-- > 0;) {
    if (!repeats(d)) {
      rows[d] = index_select(select(p.indices, 0, int64_t(d - more)), 0, element);
      continue;
    }
    rows[d] = remainder(round, std::max<int64_t>(size[d], 1));
    round = floor_divide(round, std::max<int64_t>(size[d], 1));
  }
  made.indices = stack(rows, 0);
  made.values = index_select(contiguous(made.values), 0, element);
  made.coalesced = in_order || made.count() < 2;
  return made;
}

bool same_places(const Parts& a, const Parts& b) {
  if (a.layout != b.layout || a.size != b.size) return false;
  if (a.indices.get() == b.indices.get() && a.plain.get() == b.plain.get()) return true;
  if (a.indices.numel() != b.indices.numel() || a.count() != b.count()) return false;
  if (a.indices.dtype() != b.indices.dtype()) return false;
  return equal(a.indices, b.indices) && (!a.plain.defined() || equal(a.plain, b.plain));
}

Tensor values_at(const Parts& given, const Tensor& indices) {
  if (given.indices.get() == indices.get() && given.coalesced) return given.values;
  check_rows(indices, given.size);
  Parts p = coalesced(given);
  const Sizes shape = behind(indices.size(1), p.dense_size());
  if (p.count() == 0) return zeros_of(p.values, shape);
  Tensor known = flat_places(p.indices, p.size), wanted = flat_places(indices, p.size);
  if (known.numel() == wanted.numel() && equal(known, wanted)) return p.values;
  Tensor at = clamp(search(known, wanted, false), Operand(), p.count() - 1);
  Tensor found = eq(index_select(known, 0, at), wanted);
  Tensor rows = index_select(as_rows(p.values), 0, at);
  return reshape(where(unsqueeze(found, 1), rows, number_of(rows, 0)), shape);
}

Tensor values_at(const Tensor& dense, const Tensor& indices) {
  check_rows(indices, dense.shape());
  const int64_t sd = indices.size(0);
  auto inner = dense.shape().subspan(size_t(sd));
  const int64_t places = product(dense.shape().subspan(0, size_t(sd)));
  Tensor rows = reshape(dense, behind(places, inner));
  return index_select(rows, 0, flat_places(indices, dense.shape()));
}

}  // namespace adjoin::ops::sparse
