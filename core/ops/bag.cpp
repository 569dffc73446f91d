// core/ops/bag.cpp: sums, means and maxima of a table's rows over bags of indices.
#include "core/ops/host.hpp"

namespace adjoin::ops {
namespace {

// Where each bag begins and ends among the indices.
struct Bags {
  std::vector<int64_t> begin, end;
  int64_t longest = 0;

  void add(int64_t from, int64_t to) {
    want(from >= 0 && from <= to, "offsets must rise from 0 to the number of indices");
    begin.push_back(from);
    end.push_back(to);
    longest = std::max(longest, to - from);
  }
  int64_t count() const { return int64_t(begin.size()); }
  std::vector<int64_t> of() const {  // for each index, its bag
    std::vector<int64_t> bag(begin.empty() ? 0 : size_t(end.back()));
    for (size_t i = 0; i < begin.size(); ++i)
      std::fill(bag.begin() + begin[i], bag.begin() + end[i], int64_t(i));
    return bag;
  }
};

Bags bags_of(const Tensor& input, const Tensor& offsets, bool last_too) {
  Bags bags;
  if (input.ndim() == 2) {
    want(!offsets.defined(), "input of 2 dimensions says itself where bags begin: leave offsets");
    for (int64_t i = 0; i < input.size(0); ++i)
      bags.add(i * input.size(1), (i + 1) * input.size(1));
    return bags;
  }
  want(input.ndim() == 1, "input must have 1 or 2 dimensions, its shape is ", shown(input));
  want(offsets.defined() && offsets.ndim() == 1 && is_integral(offsets),
       "input of 1 dimension needs offsets, integers that say where bags begin");
  Tensor here = contiguous(to(offsets, int64, DLDevice{kDLCPU, 0}));
  const int64_t* at = here.data<int64_t>();
  int64_t n = here.numel() - (last_too ? 1 : 0);
  want(n >= 0, "include_last_offset needs an offset");
  want(here.numel() == 0 || at[0] == 0, "offsets must begin with 0");
  for (int64_t i = 0; i < n; ++i) bags.add(at[i], i + 1 < here.numel() ? at[i + 1] : input.numel());
  want(n == 0 ? input.numel() == 0 : bags.end.back() == input.numel(),
       "offsets must end at the number of indices, ", input.numel());
  return bags;
}

// Indices in one order for all modes: rows (n, columns), which count (n, 1); not defined: all do.
struct Taken {
  Tensor rows, counts;
};

// Sums of rows over bags; all bags of an input of two dimensions are equally long.
Tensor summed(const Tensor& rows, const Bags& bags, bool alike, const Tensor& of) {
  int64_t columns = rows.size(1);
  if (alike) return sum(reshape(rows, {bags.count(), bags.longest, columns}), {1});
  return index_add(zeros_of(rows, {bags.count(), columns}), 0, of, rows);
}

Tensor largest(const Tensor& like, const Taken& t, const Bags& bags, bool alike) {
  if (alike && !t.counts.defined() && bags.longest > 0)
    return std::get<0>(max(reshape(t.rows, {bags.count(), bags.longest, t.rows.size(1)}), 1));
  std::vector<int64_t> places, inside;
  for (int64_t i = 0; i < bags.count(); ++i)
    for (int64_t k = 0; k < bags.longest; ++k) {
      bool here = bags.begin[size_t(i)] + k < bags.end[size_t(i)];
      places.push_back(here ? bags.begin[size_t(i)] + k : 0);
      inside.push_back(here);
    }
  int64_t columns = t.rows.size(1);
  if (bags.longest == 0) return zeros_of(like, {bags.count(), columns});
  Tensor at = indices_from_host(like, places, {int64_t(places.size())});
  Tensor counts = ne(indices_from_host(like, inside, {int64_t(inside.size()), 1}), 0);
  if (t.counts.defined()) counts = logical_and(counts, index_select(t.counts, 0, at));
  Sizes shape{bags.count(), bags.longest, columns};
  Tensor held = reshape(index_select(t.rows, 0, at), shape);
  counts = reshape(counts, {shape[0], shape[1], 1});
  Tensor best = std::get<0>(max(where(counts, held, -std::numeric_limits<double>::infinity()), 1));
  return where(any(counts, 1), best, number_of(best, 0));
}

}  // namespace

aj_status* embedding_bag_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &input = b.tensor(0), &weight = b.tensor(1), &scale = b.tensor(8);
    std::string_view mode = b.text(6);
    if (mode != "sum" && mode != "mean" && mode != "max")
      kit::raise_as("ValueError", AJ_INVALID_ARGUMENT,
                    "mode must be 'sum', 'mean' or 'max', it is '", mode, "'");
    want(!scale.defined() || mode == "sum", "per_sample_weights go with mode 'sum', not with '",
         mode, "'");
    if (scale.defined()) want_shape(scale, "per_sample_weights", input.shape());
    want(weight.ndim() == 2, "weight must be a matrix, its shape is ", shown(weight));
    want(!b.flag(5) || mode != "max", "scale_grad_by_freq goes with mode 'sum' and 'mean', not with 'max'");
    Bags bags = bags_of(input, b.tensor(2), b.flag(9));
    Tensor flat = reshape(input, {-1});
    std::optional<int64_t> padding = b.maybe<int64_t>(10);
    if (padding && *padding < 0) padding = *padding + weight.size(0);
    Taken t{embedding(flat, weight, padding, b.maybe<double>(3), b.real(4), b.flag(5), b.flag(7)),
            padding ? unsqueeze(ne(flat, *padding), 1) : Tensor()};
    bool alike = input.ndim() == 2;
    if (mode == "max") return b.ret(0, largest(weight, t, bags, alike));
    Tensor rows = scale.defined() ? t.rows * reshape(scale, {-1, 1}) : t.rows;
    if (padding) rows = where(t.counts, rows, number_of(rows, 0));
    Tensor of = alike ? Tensor() : indices_from_host(weight, bags.of(), {input.numel()});
    Tensor out = summed(rows, bags, alike, of);
    if (mode == "mean" && alike && !padding) {
      out = out / std::max<int64_t>(bags.longest, 1);
    } else if (mode == "mean") {
      Tensor one = padding ? t.counts : unsqueeze(eq(flat, flat), 1);
      out = out / clamp(summed(to(one, rows.dtype()), bags, alike, of), 1);
    }
    b.ret(0, out);
  });
}

}  // namespace adjoin::ops
