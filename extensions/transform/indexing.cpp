// extensions/transform/indexing.cpp: rules of indices: positions differ between samples, or all
// share them.
#include <adjoin/kit/ops.hpp>
#include <algorithm>
#include <numeric>

#include "written.hpp"

namespace adjoin::transform {
namespace {

// What an index says of the result's dimensions.
struct Places {
  int64_t lead = 0;     // dimensions before the first index
  int64_t indices = 0;  // how many
  int64_t rank = 0;     // of the indices together
  bool together =
      true;  // they stand side by side: their dimensions take the place, else they come first
  bool batched = false;
  std::vector<Tensor> list;  // undefined: the whole dimension
  std::vector<bool> list_batched;
};

Places places_of(const Batch& b, uint32_t i) {
  Places p;
  const aj_value& v = b.args[i];
  int64_t last = -1;
  for (uint32_t j = 0; j < v.aux; j++) {
    aj_tensor* t = v.v.tensors[j];
    const bool batched = t && b.batched[b.first(i) + j] == 0;
    p.list.push_back(Tensor::borrow(t));
    p.list_batched.push_back(batched);
    if (!t) continue;
    if (last < 0) p.lead = j;
    if (last >= 0 && last != int64_t(j) - 1) p.together = false;
    last = j;
    p.indices++;
    p.batched |= batched;
    p.rank = std::max<int64_t>(p.rank, t->dl.ndim - batched);
  }
  return p;
}

// The indices with one for the samples before them: [B, 1, ...].
std::vector<Tensor> with_samples(const Batch& b, const Places& p) {
  std::vector<int64_t> sizes(size_t(p.rank + 1), 1);
  sizes[0] = b.size();
  Tensor samples = reshape(arange(Scalar(b.size()), int64, b.tensor(0).device()), sizes);
  std::vector<Tensor> list{samples};
  for (size_t j = 0; j < p.list.size(); j++)
    list.push_back(p.list[j].defined() ? aligned(p.list[j], p.list_batched[j], p.rank) : Tensor());
  return list;
}

// Dimensions [from, from + n) at place `to`.
Tensor block_moved(const Tensor& t, int64_t from, int64_t n, int64_t to) {
  if (from == to || n == 0) return t;
  std::vector<int64_t> order(static_cast<size_t>(t.ndim()));
  std::iota(order.begin(), order.end(), 0);
  std::vector<int64_t> block(order.begin() + from, order.begin() + from + n);
  order.erase(order.begin() + from, order.begin() + from + n);
  order.insert(order.begin() + to, block.begin(), block.end());
  return permute(t, order);
}

}  // namespace

void rule_index(Batch& b) {
  Places p = places_of(b, 1);
  if (!p.batched) {
    if (!b.is_batched(0)) {
      b.run();
      b.out_dims[0] = -1;
      return;
    }
    std::vector<Tensor> list = p.list;
    list.insert(list.begin(), Tensor());
    Tensor made = index_at(b.tensor(0), list);
    return b.give(0, p.together ? made : block_moved(made, p.rank, 1, 0));
  }
  Tensor made;
  if (b.is_batched(0)) {
    made = index_at(b.tensor(0), with_samples(b, p));
  } else {  // one input: the samples are one more dimension of the indices
    std::vector<Tensor> list;
    for (size_t j = 0; j < p.list.size(); j++)
      list.push_back(p.list[j].defined() ? aligned(p.list[j], p.list_batched[j], p.rank)
                                         : Tensor());
    made = index_at(b.tensor(0), list);
    if (p.together)
      made = block_moved(made, p.lead, 1, 0), made = block_moved(made, p.lead + 1, 0, 1);
    return b.give(0, made);
  }
  // [B, indices, lead, rest]
  b.give(0, p.together ? block_moved(made, 1, p.rank, 1 + p.lead) : made);
}

void rule_index_put(Batch& b) {
  Places p = places_of(b, 1);
  b.set(0, b.in_place() ? b.tensor(0) : b.spread(0), true);
  const int64_t rank = b.rank(0) - p.indices + p.rank;  // of what is written
  Tensor values = b.tensor(2);
  if (b.is_batched(2)) {
    values = aligned(values, true, rank);
  } else if (values.ndim() < rank && p.together && p.lead) {
    std::vector<int64_t> sizes(values.shape().begin(), values.shape().end());
    sizes.insert(sizes.begin(), size_t(rank - values.ndim()), 1);
    values = reshape(values, sizes);
  }
  if (p.together && p.lead && values.ndim() >= rank) {
    const int64_t shift = values.ndim() - rank;
    values = block_moved(values, shift + p.lead, p.rank, shift);
  }
  std::vector<Tensor> list = with_samples(b, p);
  static constinit Op put("index_put_at");
  const aj_value args[] = {b.args[0], value(Tensors(list)), value(values), b.args[3]};
  if (b.in_place()) {
    run_into(put.get(), args, 4, b.tensor(0));
    return b.give(0, b.tensor(0));
  }
  b.give(0, kit::run(put.get(), args, 4));
}

// input, dim, index of one dimension (or none).
void rule_index_select(Batch& b) {
  if (!b.is_batched(2) && (b.rank(0) > 0 || !b.is_batched(0))) {  // one index
    b.args[1].v.i += b.is_batched(0);
    b.run();
    b.out_dims[0] = b.is_batched(0) ? 0 : -1;
    return;
  }
  if (b.rank(0) == 0) {  // one element, as often as there are indices
    Tensor index = b.spread(2);
    Tensor x = reshape(b.spread(0), {b.size(), 1});
    Tensor flat = reshape(index, {b.size(), -1});
    return b.give(0, reshape(gather(x, 1, flat), {b.size()}));
  }
  const int64_t dim = b.args[1].v.i;
  Tensor index = b.tensor(2);
  if (b.rank(2) == 0) index = reshape(index, {b.size(), 1});
  Places p;
  p.rank = 1, p.lead = dim, p.indices = 1, p.batched = true;
  p.list.resize(size_t(dim));
  p.list_batched.resize(size_t(dim));
  p.list.push_back(index);
  p.list_batched.push_back(true);
  if (b.is_batched(0))
    return b.give(0, block_moved(index_at(b.tensor(0), with_samples(b, p)), 1, 1, 1 + dim));
  b.give(0, block_moved(index_at(b.tensor(0), p.list), dim, 1, 0));
}

namespace {

// A target without dimensions: a vector of one element.
void add_to_numbers(Batch& b) {
  const Tensor target = b.spread(0);
  for (uint32_t i : {0u, 2u, 3u}) {
    const Tensor t = i ? b.spread(i) : target;
    b.set(i, reshape(t, {b.size(), b.rank(i) ? t.size(1) : 1}), true);
  }
  rule_index_add(b);
  b.give(0, b.in_place() ? target : reshape(b.result(0), {b.size()}));
}

}  // namespace

// input, dim, index, source, alpha.
void rule_index_add(Batch& b) {
  const int64_t rank = b.rank(0), dim = b.args[1].v.i;
  if (rank == 0 && b.rank(2) <= 1 && b.rank(3) <= 1) return add_to_numbers(b);
  if (rank == 0 || b.rank(3) != rank || b.rank(2) != 1) return rule_loop(b);
  if (!b.in_place()) b.set(0, b.spread(0), true);
  b.set(3, b.spread(3), true);
  if (!b.is_batched(2)) {  // one index: the dimension is one further back
    b.args[1].v.i++;
    b.run();
    return;
  }
  // The samples and the dimension as one; each sample's places behind those of the samples before.
  const int64_t n = b.tensor(0).size(dim + 1), samples = b.size();
  const Tensor& index = b.tensor(2);
  auto joined = [&](const Tensor& t) {
    const Tensor moved = block_moved(t, dim + 1, 1, 1);
    std::vector<int64_t> sizes(moved.shape().begin() + 1, moved.shape().end());
    sizes[0] *= samples;
    return reshape(moved, sizes);
  };
  const Tensor before =
      reshape(arange(Scalar(samples), index.dtype(), index.device()) * n, {-1, 1});
  // What lies outside of its own sample lies outside of all: the kernel refuses it.
  const Tensor inside = logical_and(ge(index, 0), lt(index, Scalar(n)));
  const Tensor places = reshape(where(inside, index + before, Scalar(samples * n)), {-1});
  const Tensor into = joined(b.tensor(0)), source = joined(b.tensor(3));
  static constinit Op add("index_add");
  const aj_value args[] = {value(into), value(int64_t(0)), value(places), value(source), b.args[4]};
  const Tensor made = kit::run(add.get(), args, 5);
  std::vector<int64_t> sizes(made.shape().begin(), made.shape().end());
  sizes[0] = n;
  sizes.insert(sizes.begin(), samples);
  const Tensor back = block_moved(reshape(made, sizes), 1, 1, dim + 1);
  if (!b.in_place()) return b.give(0, back);
  copy_(b.tensor(0), back);
  b.give(0, b.tensor(0));
}

}  // namespace adjoin::transform
