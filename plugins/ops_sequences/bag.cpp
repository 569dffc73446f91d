// plugins/ops_sequences/bag.cpp: sums, means and maxima of a table's rows over bags of indices.
#include <adjoin/kit/grad.hpp>
#include <adjoin/kit/host.hpp>

namespace adjoin::ops {
namespace {

// Where each bag begins and ends among the indices.
struct Bags {
  std::vector<int64_t> begin, end;
  int64_t longest = 0;

  void add(int64_t from, int64_t to) {
    begin.push_back(from);
    end.push_back(to);
    longest = std::max(longest, to - from);
  }
  int64_t count() const { return int64_t(begin.size()); }
};

Bags bags_of(const Tensor& indices, const Tensor& offsets, bool last_too) {
  Bags bags;
  if (indices.ndim() == 2) {
    for (int64_t i = 0; i < indices.size(0); ++i)
      bags.add(i * indices.size(1), (i + 1) * indices.size(1));
    return bags;
  }
  Tensor here = contiguous(to(offsets, int64, DLDevice{kDLCPU, 0}));
  const int64_t *at = here.data<int64_t>(), n = here.numel() - last_too;
  bool rise = here.numel() == 0 || at[0] == 0;
  for (int64_t i = 0; i < n; ++i) {
    int64_t end = i + 1 < here.numel() ? at[i + 1] : indices.numel();
    rise &= at[i] <= end;
    if (rise) bags.add(at[i], end);
  }
  rise &= (bags.end.empty() ? 0 : bags.end.back()) == indices.numel();
  want(rise, "offsets must rise from 0 to the number of indices, ", indices.numel());
  return bags;
}

// For each index, its bag.
Tensor bag_of_each(const Tensor& indices, const Tensor& offsets) {
  if (indices.ndim() == 1) return search(offsets, counting(indices, indices.numel()), true) - 1;
  Tensor bags = unsqueeze(counting(indices, indices.size(0)), 1);
  return reshape(expand(bags, indices.shape()), {-1});
}

Tensor counts_of(const Tensor& flat, const Tensor& of, int64_t bags, int64_t padding) {
  Tensor counted = to(ne(flat, padding), int64);
  return clamp(index_add_(zeros({bags}, int64, flat.device()), 0, of, counted), 1);
}

void check_mode(std::string_view mode, const Tensor& scale) {
  if (mode != "sum" && mode != "mean" && mode != "max")
    kit::raise_as("ValueError", AJ_INVALID_ARGUMENT, "mode must be 'sum', 'mean' or 'max', it is '",
                  mode, "'");
  if (scale.defined() && mode != "sum")
    kit::raise_as("NotImplementedError", AJ_UNIMPLEMENTED,
                  "per_sample_weights go with mode 'sum', not with '", mode, "'");
}

// The largest of a table with a line for each bag, filled up where bags are shorter.
void largest(const kit::Body& b, const Tensor& flat, const Bags& bags, int64_t padding) {
  const Tensor& weight = b.tensor(0);
  Sizes shape{bags.count(), weight.size(1)};
  if (bags.longest == 0) {
    b.ret(0, zeros_of(weight, shape));
    return b.ret(1, filled(flat, shape, -1, int64));
  }
  std::vector<int64_t> places, inside;
  for (int64_t i = 0; i < bags.count(); ++i)
    for (int64_t k = 0; k < bags.longest; ++k) {
      bool here = bags.begin[size_t(i)] + k < bags.end[size_t(i)];
      places.push_back(here ? bags.begin[size_t(i)] + k : 0);
      inside.push_back(here);
    }
  Sizes lines{bags.count(), bags.longest};
  Tensor rows = index_select(flat, 0, indices_from_host(flat, places, {int64_t(places.size())}));
  Tensor counts =
      logical_and(ne(indices_from_host(flat, inside, lines), 0), ne(reshape(rows, lines), padding));
  Tensor held = reshape(index_select(weight, 0, rows), {shape[0], bags.longest, shape[1]});
  counts = unsqueeze(counts, 2);
  auto [best, which] = max(where(counts, held, -std::numeric_limits<double>::infinity()), 1);
  Tensor some = any(counts, 1);
  b.ret(0, where(some, best, number_of(best, 0)));
  b.ret(1, where(some, gather(reshape(rows, lines), 1, which), number_of(which, -1)));
}

// Returns how many bags there are.
int64_t check_bags(const kit::Values& c) {
  const Tensor &weight = c.tensor(0), &indices = c.tensor(1), &scale = c.tensor(2),
               &offsets = c.tensor(3);
  check_mode(c.text(4), scale);
  want(weight.ndim() == 2 && weight.is_floating_point(),
       "weight must be a matrix of floating-point numbers, it is ", weight.dtype(), " ",
       shown(weight), "; convert it, or index it and add the rows up");
  want(indices.ndim() == 1 || indices.ndim() == 2,
       "input must have 1 or 2 dimensions, its shape is ", shown(indices));
  if (indices.ndim() == 2 && offsets.defined())
    kit::raise_as("ValueError", AJ_INVALID_ARGUMENT,
                  "input of 2 dimensions says itself where bags begin: leave offsets");
  if (indices.ndim() == 1 && !(offsets.defined() && offsets.ndim() == 1))
    kit::raise_as("ValueError", AJ_INVALID_ARGUMENT,
                  "input of 1 dimension needs offsets, integers that say where bags begin");
  if (scale.defined()) {
    want_shape(scale, "per_sample_weights", indices.shape());
    want(scale.dtype() == weight.dtype(),
         "expected per_sample_weights to have the same type as weight, ", weight.dtype(),
         ", they are ", scale.dtype());
  }
  int64_t bags = indices.ndim() == 2 ? indices.size(0) : offsets.numel() - c.flag(5);
  want(bags >= 0, "include_last_offset needs an offset");
  return bags;
}

}  // namespace

aj_status* bag_sums_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    Sizes shape{check_bags(c), c.tensor(0).size(1)};
    c.out(0, c.tensor(0).dtype(), shape);
    c.out(1, int64, c.text(4) == "max" ? shape : Sizes{0});
  });
}

aj_status* bag_sums_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &weight = b.tensor(0), &indices = b.tensor(1), &scale = b.tensor(2);
    check_bags(b);
    int64_t padding = b.integer(6);
    Bags bags = bags_of(indices, b.tensor(3), b.flag(5));
    Tensor flat = reshape(indices, {-1});
    if (b.text(4) == "max") return largest(b, flat, bags, padding);
    Tensor rows = to(index_select(weight, 0, flat), wide(weight.dtype()));
    if (scale.defined()) rows = rows * to(reshape(scale, {-1, 1}), rows.dtype());
    rows = where(unsqueeze(ne(flat, padding), 1), rows, number_of(rows, 0));
    Tensor of = bag_of_each(indices, b.tensor(3));
    Tensor out = index_add_(zeros_of(rows, {bags.count(), weight.size(1)}), 0, of, rows);
    if (b.text(4) == "mean")
      out = out / to(unsqueeze(counts_of(flat, of, bags.count(), padding), 1), out.dtype());
    b.ret(0, to(out, weight.dtype()));
    b.ret(1, empty({0}, int64, weight.device()));
  });
}

// saved: indices, scale, offsets, where, weight if scale needs a gradient, mode, padding, the
// weight's shape, whether gradients are shared by how often an index occurs
aj_status* bag_sums_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    Tensor g = d.grad(0);
    const Tensor &indices = d.tensor(0), &scale = d.tensor(1), &offsets = d.tensor(2),
                 &place = d.tensor(3), &weight = d.tensor(4);
    std::string_view mode = d.text(5);
    int64_t padding = d.integer(6);
    Ints shape = d.ints(7);
    if (mode == "max") {
      g = where(ge(place, 0), g, number_of(g, 0));
      return d.set(0, scatter_add_(zeros_of(g, shape.vec()), 0, clamp(place, 0), g));
    }
    Tensor flat = reshape(indices, {-1}), of = bag_of_each(indices, offsets);
    if (mode == "mean")
      g = g / to(unsqueeze(counts_of(flat, of, g.size(0), padding), 1), g.dtype());
    if (d.need(2)) {
      Tensor products = row_products(g, of, weight, flat);
      products = where(ne(flat, padding), products, number_of(products, 0));
      d.set(2, reshape(products, scale.shape()));
    }
    if (!d.need(0)) return;
    Tensor each = index_select(g, 0, of);
    if (scale.defined()) each = each * reshape(scale, {-1, 1});
    if (d.flag(8)) {
      Tensor times = gather(bincount(flat, Tensor(), shape[0]), 0, flat);
      each = each / to(unsqueeze(times, 1), each.dtype());
    }
    d.set(0, embedding_backward(each, flat, shape[0], padding));
  });
}

aj_status* row_products_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor &a = c.tensor(0), &b = c.tensor(2);
    want(a.ndim() == 2 && b.ndim() == 2 && a.size(1) == b.size(1),
         "matrices with rows of one length are wanted, not ", shown(a), " and ", shown(b));
    want_dtype(b, "b", a.dtype());
    want(c.tensor(1).ndim() == 1, "i must have one dimension, its shape is ", shown(c.tensor(1)));
    want_shape(c.tensor(3), "j", c.tensor(1).shape());
    c.out(0, a.dtype(), c.tensor(1).shape());
  });
}

aj_status* row_products_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor rows = index_select(b.tensor(0), 0, b.tensor(1));
    b.ret(0, sum(rows * index_select(b.tensor(2), 0, b.tensor(3)), {1}));
  });
}

aj_status* row_products_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    Tensor g = unsqueeze(d.grad(0), 1);
    for (uint32_t of : {0, 2}) {
      if (!d.need(of)) continue;
      const uint32_t other = 2 - of;
      Tensor rows = g * index_select(d.tensor(other), 0, d.tensor(other + 1));
      d.set(of, embedding_backward(rows, d.tensor(of + 1), d.tensor(of).size(0), -1));
    }
  });
}

namespace {

// The rows that are used as a table of their own, whose gradient makes that of weight a sparse one;
// indices into it, and which of its rows is padding.
std::tuple<Tensor, Tensor, int64_t> looked_up(const Tensor& weight, const Tensor& indices,
                                              int64_t padding) {
  Tensor flat = reshape(indices, {-1}), places = counting(flat, flat.numel());
  Tensor rows = embedding_rows_sparse(weight, flat, padding);
  if (padding < 0) return {rows, reshape(places, indices.shape()), -1};
  Tensor padded = reshape(nonzero(eq(flat, padding)), {-1});
  if (padded.numel() == 0) return {rows, reshape(places, indices.shape()), -1};
  const int64_t first = select(padded, 0, 0).item<int64_t>();
  places = where(eq(flat, padding), number_of(places, first), places);
  return {rows, reshape(places, indices.shape()), first};
}

}  // namespace

aj_status* embedding_bag_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &weight = b.tensor(1), &scale = b.tensor(8);
    Tensor input = b.tensor(0), offsets = b.tensor(2);
    check_mode(b.text(6), scale);
    want(!b.flag(5) || b.text(6) != "max",
         "scale_grad_by_freq goes with mode 'sum' and 'mean', not with 'max'");
    want(!b.flag(7) || b.text(6) != "max",
         "sparse gradients go with mode 'sum' and 'mean', not with 'max'");
    want(is_integral(input) && input.dtype() != boolean,
         "indices must be integers, as of .long(); they are ", input.dtype());
    input = to(input, int64);
    if (offsets.defined()) {
      want(is_integral(offsets), "offsets must be integers, they are ", offsets.dtype());
      offsets = to(offsets, int64);
    }
    int64_t rows = weight.ndim() ? weight.size(0) : 0, padding = -1;
    if (b.given(10)) {
      padding = b.integer(10);
      want(padding >= -rows && padding < rows,
           "padding_idx must be within the number of embeddings: ", padding, " is no row of ",
           rows);
      if (padding < 0) padding += rows;
    }
    if (b.given(3)) {  // shortens rows of the table itself
      NoGradGuard off;
      embedding(input, weight, std::nullopt, b.real(3), b.real(4), false, false);
    }
    Tensor table = weight;
    if (b.flag(7) && weight.requires_grad() && kit::env.autograd->grad_mode()) {
      want(!b.flag(5), "scale_grad_by_freq does not go with sparse=True");
      std::tie(table, input, padding) = looked_up(weight, input, padding);
    }
    b.ret(0, std::get<0>(in_own_name([&] {
            return bag_sums(table, input, scale, offsets, b.text(6), b.flag(9), padding, b.flag(5));
          })));
  });
}

}  // namespace adjoin::ops
