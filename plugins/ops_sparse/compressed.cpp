// plugins/ops_sparse/compressed.cpp: Parts of the layouts CSR, CSC, BSR and BSC: checked, and
// turned into COO and back.
#include "sparse.hpp"

namespace adjoin::ops::sparse {
namespace {

bool by_rows(Layout l) { return l == Layout::sparse_csr || l == Layout::sparse_bsr; }
bool in_blocks(Layout l) { return l == Layout::sparse_bsr || l == Layout::sparse_bsc; }

// The row of each element, of all matrices one after the other.
Tensor each_line(const Tensor& begins) {
  const int64_t d = begins.ndim() - 1, n = begins.size(d) - 1;
  Tensor many = slice(begins, d, 1) - slice(begins, d, 0, n);
  Tensor lines = expand(counting(begins, n), many.shape());
  return repeat_interleave(reshape(lines, {-1}), reshape(to(many, int64), {-1}));
}

int64_t stacked(const Parts& p) {  // how many matrices
  return product(std::span(p.size).first(size_t(p.batch())));
}

// Values without the dimensions of the stack.
Tensor flat_values(const Parts& p) {
  if (!p.batch()) return p.values;
  Sizes shape{stacked(p) * p.count()};
  for (int64_t d = p.batch() + 1; d < p.values.ndim(); ++d) shape.push_back(p.values.size(d));
  return reshape(p.values, shape);
}

// The matrix of each element as rows of coordinates in the stack; each has `times` elements.
std::vector<Tensor> matrices_of(const Parts& p, int64_t times) {
  std::vector<Tensor> rows(size_t(p.batch()));
  Tensor which = counting(p.indices, stacked(p) * times);
  which = floor_divide(which, std::max<int64_t>(times, 1));
  for (size_t d = rows.size(); d-- > 0;) {
    rows[d] = remainder(which, std::max<int64_t>(p.size[d], 1));
    which = floor_divide(which, std::max<int64_t>(p.size[d], 1));
  }
  return rows;
}

// Rows and columns of what values hold, in their order, blocks element by element: (2, n).
Tensor pairs(const Parts& p) {
  Tensor line = each_line(p.indices), other = reshape(to(p.plain, int64), {-1});
  Tensor row = by_rows(p.layout) ? line : other, column = by_rows(p.layout) ? other : line;
  const int64_t at = p.batch();
  std::vector<Tensor> lines;
  if (!in_blocks(p.layout)) {
    if (at) lines = matrices_of(p, p.count());
    lines.push_back(row), lines.push_back(column);
    return stack(lines, 0);
  }
  const int64_t n = stacked(p) * p.count(), h = p.values.size(at + 1), w = p.values.size(at + 2);
  Sizes all{n, h, w};
  row = expand(reshape(row * h, {n, 1, 1}) + reshape(counting(row, h), {1, h, 1}), all);
  column = expand(reshape(column * w, {n, 1, 1}) + reshape(counting(row, w), {1, 1, w}), all);
  if (at) lines = matrices_of(p, p.count() * h * w);
  lines.push_back(reshape(row, {-1})), lines.push_back(reshape(column, {-1}));
  return stack(lines, 0);
}

Tensor begins_of(const Tensor& lines, int64_t n) { return row_begins(contiguous(lines), n); }

Parts turned(const Parts& p) {  // rows and columns exchanged
  Parts made = p;
  made.indices = flip(p.indices, {0});
  std::swap(made.size[0], made.size[1]);
  made.coalesced = p.count() < 2;
  return made;
}

Parts in_block_layout(const Parts& coo, Layout layout, int64_t h, int64_t w) {
  const int64_t n = coo.size[0], m = coo.size[1];
  want(h > 0 && w > 0 && n % h == 0 && m % w == 0, "blocks of ", h, " by ", w,
       " do not fill a matrix of ", n, " by ", m);
  Tensor row = select(coo.indices, 0, 0), column = select(coo.indices, 0, 1);
  Tensor block_row = floor_divide(row, h), block_column = floor_divide(column, w);
  const bool rows = layout == Layout::sparse_bsr;
  const int64_t lines = rows ? n / h : m / w, others = rows ? m / w : n / h;
  Tensor key = (rows ? block_row : block_column) * others + (rows ? block_column : block_row);
  auto [keys, group, counts] = unique(key, true, true, false);
  Parts made;
  made.layout = layout;
  made.size = coo.size;
  made.indices = begins_of(floor_divide(keys, std::max<int64_t>(others, 1)), lines);
  made.plain = remainder(keys, std::max<int64_t>(others, 1));
  Sizes shape{keys.numel() * h * w}, inner = coo.dense_size();
  for (int64_t s : inner) shape.push_back(s);
  Tensor at = (group * h + remainder(row, h)) * w + remainder(column, w);
  Tensor flat = index_copy(zeros_of(coo.values, shape), 0, at, coo.values);
  Sizes blocks{keys.numel(), h, w};
  for (int64_t s : inner) blocks.push_back(s);
  made.values = reshape(flat, blocks);
  return made;
}

// Matrix by matrix: they are few beside their elements.
void check_stack(const Parts& p) {
  const int64_t at = p.batch(), blocks = in_blocks(p.layout) ? 2 : 0;
  const size_t lead = size_t(at);
  want(p.values.ndim() > at + blocks, "values must have ", at + blocks + 1,
       " dimensions at least for indices of shape ", shown(p.indices), ", their shape is ",
       shown(p.values));
  want(p.size.size() >= lead + 2, "size ", shown(p.size), " must have ", at + 2,
       " dimensions at least for indices of shape ", shown(p.indices));
  for (const Tensor* t : {&p.indices, &p.plain, &p.values})
    want(std::ranges::equal(t->shape().first(lead), std::span(p.size).first(lead)),
         "indices and values must begin with the dimensions of the stack, size is ", shown(p.size),
         ", a shape is ", shown(*t));
  const int64_t n = stacked(p);
  auto flat = [&](const Tensor& t) {
    Sizes shape{n};
    for (int64_t d = at; d < t.ndim(); ++d) shape.push_back(t.size(d));
    return reshape(t, shape);
  };
  const Tensor indices = flat(p.indices), plain = flat(p.plain), values = flat(p.values);
  for (int64_t i = 0; i < n; ++i) {
    Parts one;
    one.layout = p.layout;
    one.size = Sizes(p.size.begin() + at, p.size.end());
    one.indices = select(indices, 0, i);
    one.plain = select(plain, 0, i);
    one.values = select(values, 0, i);
    check_compressed(one);
  }
}

}  // namespace

void check_compressed(const Parts& p) {
  const bool rows = by_rows(p.layout), blocks = in_blocks(p.layout);
  const std::string_view first = rows ? "crow_indices" : "ccol_indices",
                         second = rows ? "col_indices" : "row_indices";
  want(p.indices.ndim() >= 1 && p.plain.ndim() == p.indices.ndim(), first, " and ", second,
       " must have one dimension, and those of a stack in front, their shapes are ",
       shown(p.indices), " and ", shown(p.plain));
  if (p.batch()) return check_stack(p);
  want((p.indices.dtype() == int64 || p.indices.dtype() == int32) &&
           p.plain.dtype() == p.indices.dtype(),
       first, " and ", second, " must both be int64 or int32, they are ", p.indices.dtype(),
       " and ", p.plain.dtype());
  want(p.values.ndim() >= (blocks ? 3 : 1), "values must have ", blocks ? 3 : 1,
       " dimensions at least, their shape is ", shown(p.values));
  want(p.size.size() == size_t(p.values.ndim() - (blocks ? 2 : 0) + 1), "size ", shown(p.size),
       " must have ", p.values.ndim() - (blocks ? 2 : 0) + 1, " dimensions, for values have shape ",
       shown(p.values));
  for (int64_t s : p.size) want(s >= 0, "sizes must not be negative: ", shown(p.size));
  for (size_t d = 2; d < p.size.size(); ++d)
    want(p.size[d] == p.values.size(int64_t(d) - 1 + (blocks ? 2 : 0)), "size ", shown(p.size),
         " must end with the dense sizes of values, their shape is ", shown(p.values));
  const int64_t h = blocks ? p.values.size(1) : 1, w = blocks ? p.values.size(2) : 1,
                n = p.plain.numel();
  want(h > 0 && w > 0 && p.size[0] % h == 0 && p.size[1] % w == 0, "blocks of ", h, " by ", w,
       " do not fill a matrix of ", p.size[0], " by ", p.size[1]);
  const int64_t lines = rows ? p.size[0] / h : p.size[1] / w,
                others = rows ? p.size[1] / w : p.size[0] / h;
  want(p.indices.numel() == lines + 1, first, " must have ", lines + 1, " elements for size ",
       shown(p.size), ", it has ", p.indices.numel());
  want(p.values.size(0) == n, second, " has ", n, " elements, values ", p.values.size(0),
       ": as many are wanted");
  want(p.indices.device() == p.values.device() && p.plain.device() == p.values.device(),
       "indices and values must be on one device");
  want(select(p.indices, 0, 0).item<int64_t>() == 0, first, " must begin with 0");
  want(select(p.indices, 0, lines).item<int64_t>() == n, first, " must end with ", n,
       ", as many as ", second, " has");
  Tensor many = slice(p.indices, 0, 1) - slice(p.indices, 0, 0, lines);
  if (lines) want(amin(many).item<int64_t>() >= 0, first, " must not fall");
  if (n == 0) return;
  want(amin(p.plain).item<int64_t>() >= 0 && amax(p.plain).item<int64_t>() < others, second,
       " must be between 0 and ", others - 1, ", there are ", amin(p.plain).item<int64_t>(),
       " and ", amax(p.plain).item<int64_t>());
  if (n < 2) return;
  Tensor key = each_line(p.indices) * others + to(p.plain, int64);
  want(all(lt(slice(key, 0, 0, n - 1), slice(key, 0, 1))).item<bool>(), second,
       " must rise within each ", rows ? "row" : "column", ", each index once");
}

Tensor places(const Parts& p) { return p.is_coo() ? p.indices : pairs(p); }

Parts coo_of(const Parts& p) {
  if (p.is_coo()) return p;
  Parts made;
  made.size = p.size;
  made.indices = pairs(p);
  Sizes shape{made.indices.size(1)};
  for (int64_t s : p.dense_size()) shape.push_back(s);
  made.values = reshape(flat_values(p), shape);
  made.coalesced = p.layout == Layout::sparse_csr || made.count() < 2;
  return made;
}

namespace {

Parts converted_matrix(const Parts& p, Layout layout, Ints blocks) {
  if (in_blocks(layout)) {
    want(!blocks.is_none() && blocks.size() == 2, layout_name(layout),
         " needs blocksize, two numbers");
    return in_block_layout(p, layout, blocks[0], blocks[1]);
  }
  want(blocks.is_none(), "blocksize goes with sparse_bsr and sparse_bsc, the layout is ",
       layout_name(layout));
  const bool rows = layout == Layout::sparse_csr;
  Parts q = rows ? p : coalesced(turned(p)), made;
  made.layout = layout;
  made.size = p.size;
  made.indices = begins_of(select(q.indices, 0, 0), q.size[0]);
  made.plain = contiguous(select(q.indices, 0, 1));
  made.values = q.values;
  return made;
}

// A stack's matrices below each other, or beside each other: one matrix, in whose compressed form
// the lines of each follow those of the one before. p is COO, a stack's dimensions in front.
Parts unstacked(const Parts& p, bool rows) {
  const int64_t at = p.sparse_dim() - 2;
  const size_t along = size_t(at) + (rows ? 0 : 1);
  Tensor matrix = flat_places(slice(p.indices, 0, 0, at), p.size);
  Tensor line = matrix * p.size[along] + select(p.indices, 0, int64_t(along));
  Tensor other = select(p.indices, 0, at + (rows ? 1 : 0));
  Parts made = p;
  made.indices = rows ? stack({line, other}, 0) : stack({other, line}, 0);
  made.size.assign(p.size.begin() + at, p.size.end());
  made.size[rows ? 0 : 1] *= product(std::span(p.size).first(size_t(at)));
  made.coalesced = rows || p.count() < 2;
  return made;
}

// One compressed matrix as the stack of `size` that it was made of; each matrix has as many
// elements.
Parts stacked_again(const Parts& p, const Sizes& size, size_t at) {
  const Sizes lead(size.begin(), size.begin() + int64_t(at));
  const int64_t many = product(lead), n = p.count();
  const int64_t lines = many ? (p.indices.numel() - 1) / many : 0, each = many ? n / many : 0;
  Tensor own = zeros({0, lines + 1}, int64, p.indices.device());
  if (many) {
    Tensor first = reshape(counting(p.indices, many) * each, {many, 1});
    own = as_strided(p.indices, {many, lines + 1}, {lines, 1}) - first;
    want(n % many == 0 && all(eq(select(own, 1, lines), each)).item<bool>(),
         "matrices of a stack must have as many elements each; there are ", n, " in ", many,
         " matrices");
  }
  auto shaped = [&](const Tensor& t, std::initializer_list<int64_t> more, int64_t from) {
    Sizes shape = lead;
    shape.insert(shape.end(), more);
    for (int64_t d = from; d < t.ndim(); ++d) shape.push_back(t.size(d));
    return contiguous(reshape(t, shape));
  };
  Parts made = p;
  made.size = size;
  made.indices = shaped(own, {lines + 1}, 2);
  made.plain = shaped(p.plain, {each}, 1);
  made.values = shaped(p.values, {each}, 1);
  return made;
}

Parts converted(const Parts& given, Layout layout, Ints blocks) {
  Parts p = coalesced(coo_of(given));
  if (layout == Layout::sparse_coo) return p;
  want(p.sparse_dim() >= 2, "compressed layouts have 2 sparse dimensions, the tensor has ",
       p.sparse_dim(), "; its size is ", shown(p.size));
  if (p.sparse_dim() == 2) return converted_matrix(p, layout, blocks);
  const Parts one = unstacked(p, by_rows(layout));
  return stacked_again(converted_matrix(one, layout, blocks), p.size, size_t(p.sparse_dim() - 2));
}

}  // namespace

Parts in_layout(const Parts& given, Layout layout, Ints blocks) {
  if (given.layout == layout && (blocks.is_none() || !in_blocks(layout))) return given;
  Parts made = converted(given, layout, blocks);
  if (given.is_coo() || made.is_coo()) return made;
  made.indices = to(made.indices, given.indices.dtype());  // indices keep their width
  made.plain = to(made.plain, given.indices.dtype());
  return made;
}

// The sizes of p without elements; its blocks stay where the layout has some.
Parts nothing_like(const Parts& p, Layout layout, DLDataType dtype, DLDevice device) {
  if (layout == Layout::sparse_coo)
    return empty_coo(p.size, p.batch() + p.sparse_dim(), dtype, device);
  const int64_t at = p.batch();
  const bool blocks = in_blocks(layout);
  want(!p.is_coo() && blocks == in_blocks(p.layout), layout_name(layout),
       " is not made after the sizes of ", layout_name(p.layout), " alone");
  const int64_t h = blocks ? p.values.size(at + 1) : 1, w = blocks ? p.values.size(at + 2) : 1;
  const Sizes lead(p.size.begin(), p.size.begin() + at);
  auto sized = [&](std::initializer_list<int64_t> more) {
    Sizes shape = lead;
    shape.insert(shape.end(), more);
    return shape;
  };
  Parts made;
  made.layout = layout;
  made.size = p.size;
  const size_t row = size_t(at);
  const int64_t lines = by_rows(layout) ? p.size[row] / h : p.size[row + 1] / w;
  made.indices = zeros(sized({lines + 1}), p.indices.dtype(), device);
  made.plain = zeros(sized({0}), p.plain.dtype(), device);
  Sizes shape = blocks ? sized({0, h, w}) : sized({0});
  for (int64_t s : p.dense_size()) shape.push_back(s);
  made.values = zeros(shape, dtype, device);
  return made;
}

// As another one lies: its layout, and its blocks.
Parts laid_like(const Parts& p, const Parts& like) {
  const int64_t at = like.batch();
  const int64_t blocks[] = {in_blocks(like.layout) ? like.values.size(at + 1) : 0,
                            in_blocks(like.layout) ? like.values.size(at + 2) : 0};
  return in_layout(p, like.layout, in_blocks(like.layout) ? Ints(blocks, 2) : Ints());
}

// Compressed matrices with rows and columns exchanged: the same parts under the other name.
Parts transposed_name(const Parts& p) {
  Parts made = p;
  const int64_t at = p.batch();
  std::swap(made.size[size_t(at)], made.size[size_t(at) + 1]);
  made.layout = p.layout == Layout::sparse_csr   ? Layout::sparse_csc
                : p.layout == Layout::sparse_csc ? Layout::sparse_csr
                : p.layout == Layout::sparse_bsr ? Layout::sparse_bsc
                                                 : Layout::sparse_bsr;
  if (in_blocks(p.layout)) made.values = transpose(p.values, at + 1, at + 2);
  return made;
}

}  // namespace adjoin::ops::sparse

namespace adjoin::ops {

using namespace sparse;

namespace {

Layout layout_of(int64_t n, std::string_view who) {
  const Layout l = Layout(n);
  want(l == Layout::sparse_coo || l == Layout::sparse_csr || l == Layout::sparse_csc ||
           l == Layout::sparse_bsr || l == Layout::sparse_bsc,
       who, ": there is no sparse layout with number ", n);
  return l;
}

}  // namespace

aj_status* sparse_compressed_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Parts p;
    p.layout = layout_of(b.integer(4), "layout");
    want(!p.is_coo(), "sparse_coo is no compressed layout; use sparse_coo_tensor");
    p.indices = contiguous(b.tensor(0).detach());
    p.plain = contiguous(b.tensor(1).detach());
    p.values = b.tensor(2).detach();
    p.size = Sizes(b.ints(3));
    check_compressed(p);
    give(b.call(), wrapped(std::move(p)));
  });
}

// saved: compressed, plain, values' shape, size, layout.
aj_status* sparse_compressed_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor& g = d.grad(0);
    if (!g.defined() || !d.need(2)) return;
    Parts p;
    p.layout = Layout(d.integer(4));
    p.indices = d.tensor(0), p.plain = d.tensor(1), p.size = Sizes(d.ints(3));
    const Parts* given = maybe_parts(g);
    if (given && given->layout == p.layout && given->plain.numel() == p.plain.numel() &&
        equal(given->plain, p.plain) && equal(given->indices, p.indices))
      return d.set(2, _values(g));
    Sizes shape(d.ints(2));
    p.values = expand(zeros({}, uint8, p.plain.device()), shape);  // whose shape alone counts
    d.set(2, reshape(sparse_at(g, places(p)), shape));
  });
}

aj_status* sparse_convert_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Layout layout = layout_of(b.integer(1), "layout");
    const Parts* p = maybe_parts(b.tensor(0));
    const int64_t dense = b.integer(3);
    if (!p)
      want(layout == Layout::sparse_coo || b.tensor(0).ndim() >= 2 + dense, layout_name(layout),
           " has 2 sparse dimensions, the tensor has ", b.tensor(0).ndim(), " and dense_dim is ",
           dense);
    Parts from = p ? *p : coo_of_dense(b.tensor(0), b.tensor(0).ndim() - dense);
    give(b.call(), wrapped(in_layout(from, layout, b.ints(2))));
  });
}

// The gradient in input's layout, with the places that it has.
aj_status* sparse_convert_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor& g = d.grad(0);
    if (!g.defined() || !d.need(0)) return;
    const Parts* from = maybe_parts(d.tensor(0));
    if (!from) return d.set(0, is_sparse(g) ? sparse_to_dense(g, false) : g);
    const Parts p = coalesced(*from);
    d.set(0, with_places(p, values_like(g, p)));
  });
}

aj_status* compressed_indices_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Parts& p = any_parts_of(b.tensor(0), "input");
    const bool rows = b.integer(2) == int64_t(Layout::sparse_csr);
    if (p.is_coo() || rows != (p.layout == Layout::sparse_csr || p.layout == Layout::sparse_bsr))
      refuse(rows ? "crow_indices and col_indices" : "ccol_indices and row_indices", p,
             rows ? "CSR and BSR have them" : "CSC and BSC have them");
    give(b.call(), (b.flag(1) ? p.plain : p.indices).detach());
  });
}

aj_status* csr_add_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    auto matrix = [&](uint32_t at) {
      Parts p;
      p.layout = Layout::sparse_csr;
      p.indices = b.tensor(at), p.plain = b.tensor(at + 1), p.values = b.tensor(at + 2);
      int64_t most = 0;
      for (uint32_t i : {1, 4})
        if (b.tensor(i).numel()) most = std::max(most, amax(b.tensor(i)).item<int64_t>() + 1);
      p.size = Sizes{p.indices.numel() - 1, most};
      return coo_of(p);
    };
    Parts x = matrix(0), y = matrix(3);
    x.indices = cat({x.indices, y.indices}, 1);
    x.values = cat({x.values, y.values}, 0);
    x.coalesced = false;
    Parts made = in_layout(x, Layout::sparse_csr, {});
    b.ret(0, to(made.indices, b.tensor(0).dtype()));
    b.ret(1, to(made.plain, b.tensor(1).dtype()));
    b.ret(2, made.values);
  });
}

}  // namespace adjoin::ops
