// extensions/transform/makers.cpp: rules of copies, of new tensors, of views with a shape of their
// own, of draws.
#include <adjoin/kit/ops.hpp>
#include <algorithm>

#include "written.hpp"

namespace adjoin::transform {
namespace {

// One sample in place of none: for a shape.
std::vector<int64_t> with_one(const Tensor& t) {
  std::vector<int64_t> sizes(t.shape().begin(), t.shape().end());
  sizes[0] = 1;
  return sizes;
}

// The orders of memory are those of the user's dimensions, the payload has one more.
void plain_order(Batch& b) {
  for (uint32_t i = 0; i < b.call->nargs; i++)
    if (b.args[i].tag == AJ_MEMORY_FORMAT && b.args[i].v.i > AJ_FORMAT_PRESERVE)
      b.args[i] = aj_value{};
}

}  // namespace

void rule_copy_of(Batch& b) {
  plain_order(b);
  b.run();
  b.out_dims[0] = b.is_batched(0) ? 0 : -1;
}

void rule_like(Batch& b) { rule_copy_of(b); }

void rule_new(Batch& b) {
  if (!b.is_batched(0)) return rule_copy_of(b);
  std::vector<int64_t> sizes(b.args[1].v.ints, b.args[1].v.ints + b.args[1].aux);
  sizes.insert(sizes.begin(), b.size());
  b.set_ints(1, sizes);
  b.run();
}

// A value for each sample: they are copied.
void rule_fill(Batch& b) {
  if (!b.is_tensor(1) || !b.is_batched(1)) {
    b.run();
    return b.give(0, b.tensor(0));
  }
  static constinit Op copy("copy_");
  const Tensor from = aligned(b.tensor(1), true, b.tensor(0).ndim() - 1);
  const aj_value both[] = {b.args[0], value(from)};
  run_into(copy.get(), both, 2, b.tensor(0));
  b.give(0, b.tensor(0));
}

void rule_t(Batch& b) {
  if (!b.is_batched(0)) return rule_copy_of(b);
  if (b.rank(0) > 2)
    raise(AJ_INVALID_ARGUMENT, "a matrix is wanted, the tensor has ", b.rank(0), " dimensions");
  b.give(0, b.rank(0) == 2 ? transpose(b.tensor(0), 1, 2) : alias(b.tensor(0)));
}

void rule_squeeze(Batch& b) {
  if (!b.is_batched(0)) return rule_copy_of(b);
  std::vector<int64_t> ones;
  for (int64_t d = 1; d < b.tensor(0).ndim(); d++)
    if (b.tensor(0).shape()[size_t(d)] == 1) ones.push_back(d);
  b.give(0, ones.empty() ? alias(b.tensor(0)) : squeeze(b.tensor(0), ones));
}

// Strides are those of one sample; the samples keep their own.
void rule_as_strided(Batch& b) {
  if (!b.is_batched(0)) return rule_copy_of(b);
  std::vector<int64_t> sizes(b.args[1].v.ints, b.args[1].v.ints + b.args[1].aux);
  std::vector<int64_t> strides(b.args[2].v.ints, b.args[2].v.ints + b.args[2].aux);
  sizes.insert(sizes.begin(), b.size());
  strides.insert(strides.begin(), b.tensor(0).stride(0));
  b.set_ints(1, sizes);
  b.set_ints(2, strides);
  uint64_t offset = 0, bytes, id;
  void* data;
  if (b.args[3].tag == AJ_INT && !is_wrapped(b.tensor(0).get())) {
    check(core().tensor_storage(b.tensor(0).get(), &data, &bytes, &offset, &id));
    b.args[3].v.i += int64_t(offset) * 8 / b.tensor(0).dtype().bits;
  }
  b.run();
}

// Numbers by the place of an element, the same in each sample: one is filled, and copied.
void rule_counted(Batch& b) {
  const bool each = b.is_batched(0);
  if (each && b.size() == 0) return b.give(0, b.tensor(0));
  Tensor one = each ? select(b.tensor(0), 0, int64_t(0)) : b.tensor(0);
  b.args[0] = value(one);
  run_into(b.facts.op, b.args, b.call->nargs, one);
  const Payload* p = at_level(b.call->args[0].v.tensor, b.level);
  Tensor whole = p ? Tensor::borrow(p->value) : one;
  if (each) {
    static constinit Op copy("copy_");
    Tensor all = spread(clone(one), false, b.size());
    const aj_value both[] = {value(whole), value(all)};
    run_into(copy.get(), both, 2, whole);
  }
  b.give(0, whole, each);
}

namespace {

// Sample by sample, each `stride` blocks after the one before.
void draw_each(Batch& b, int64_t stride) {
  const int at = b.facts.find("offset");
  const int64_t first = b.args[at].v.i;
  Tensor whole = b.spread(0);
  std::vector<Tensor> made;
  for (int64_t s = 0; s < std::max<int64_t>(b.size(), !b.in_place()); s++) {
    Tensor one =
        b.size() ? select(whole, 0, s) : select(new_zeros(whole, with_one(whole)), 0, int64_t(0));
    b.args[0] = value(one);
    b.args[at].v.i = first + s * stride;
    if (b.in_place())
      run_into(b.facts.op, b.args, b.call->nargs, one);
    else
      made.push_back(kit::run(b.facts.op, b.args, b.call->nargs));
  }
  if (b.in_place()) return b.give(0, whole);
  Tensor all = stack(made, 0);
  b.give(0, b.size() ? all : slice(all, 0, int64_t(0), int64_t(0)));
}

}  // namespace

// input, two numbers, seed, offset: the blocks that one sample takes were drawn by the body.
void rule_draw(Batch& b) {
  if (b.level.randomness == AJ_RANDOM_ERROR)
    raise_as("RuntimeError", AJ_PRECONDITION,
             "vmap: the function draws random numbers: say randomness='same' or 'different'");
  if (b.level.randomness == AJ_RANDOM_SAME) return b.in_place() ? rule_counted(b) : draw_each(b, 0);
  draw_each(b, b.level.stride);
}

}  // namespace adjoin::transform
