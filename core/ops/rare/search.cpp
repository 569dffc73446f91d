// core/ops/rare/search.cpp: places in sorted sequences.
#include <adjoin/kit/grad.hpp>
#include <adjoin/kit/make.hpp>

namespace adjoin::ops {

aj_status* search_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor &s = c.tensor(0), &v = c.tensor(1);
    want(!s.is_complex(), "complex numbers have no order");
    want(s.dtype() == v.dtype(), "the sequence is ", s.dtype(), ", the values are ", v.dtype(),
         "; cast one with .to()");
    bool fits = s.ndim() == 1 || (s.ndim() == v.ndim() && s.ndim() > 0);
    for (int64_t d = 0; fits && s.ndim() > 1 && d < s.ndim() - 1; ++d)
      fits = s.size(d) == v.size(d);
    want(fits, "the sequence must be a vector or have the sizes of the values but for the last: ",
         shown(s), " and ", shown(v));
    c.out(0, int64, v.shape());
  });
}

// By halving, all values at once, where a device has no kernel.
aj_status* search_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &s = b.tensor(0), &v = b.tensor(1);
    bool right = b.flag(2);
    int64_t n = s.size(-1);
    Tensor low = zeros_like(v, int64), high = full_like(v, n, int64);
    for (int64_t width = n; width > 0; width /= 2) {
      Tensor middle = floor_divide(low + high, 2), open = lt(low, high);
      Tensor place = clamp(middle, 0, n - 1);
      Tensor item = s.ndim() == 1 ? reshape(index_select(s, 0, reshape(place, {-1})), v.shape())
                                  : gather(s, -1, place);
      Tensor after = logical_and(open, logical_not(right ? gt(item, v) : ge(item, v)));
      low = where(after, middle + 1, low);
      high = where(logical_and(open, logical_not(after)), middle, high);
    }
    b.ret(0, low);
  });
}

namespace {

// A number beside a tensor: of its dtype, unless that would take the number's fraction away, or say
// only whether it is 0.
Tensor beside(const Operand& x, const Tensor& like) {
  if (x.is_tensor()) return x.tensor();
  bool fraction = is_integral(like) && !x.number().is_integer();
  DLDataType whole = like.dtype() == boolean ? int64 : like.dtype();
  return full({}, x.number(), fraction ? kit::env.core->default_dtype() : whole, like.device());
}

Tensor search_of(const Tensor& sequence, const Operand& given, bool right, bool narrow) {
  Tensor values = beside(given, sequence), ordered = sequence.detach();
  DLDataType dtype = ordered.dtype();
  kit::check(kit::env.core->dtype_promote(dtype, values.dtype(), &dtype));
  ordered = to(ordered, dtype);
  values = to(values.detach(), dtype);
  bool flat = values.ndim() == 0 && sequence.ndim() == 1;
  Tensor found =
      in_own_name([&] { return search(ordered, flat ? reshape(values, {1}) : values, right); });
  if (flat) found = reshape(found, Sizes());
  return narrow ? to(found, int32) : found;
}

void want_narrow(const Tensor& sequence, bool narrow) {
  want(!narrow || (sequence.ndim() && sequence.size(-1) < int64_t(1) << 31),
       "out_int32 has no room for a sequence of ", sequence.ndim() ? sequence.size(-1) : 0);
}

}  // namespace

aj_status* searchsorted_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor sequence = b.tensor(0);
    bool right = b.flag(3);
    if (b.given(4)) {
      std::string_view side = b.text(4);
      want(side == "left" || side == "right", "side must be 'left' or 'right', it is '", side, "'");
      want(!(right && side == "left"), "side 'left' and right=True say opposite things");
      right = side == "right";
    }
    want_narrow(sequence, b.flag(2));
    if (b.given(5)) {
      const Tensor& sorter = b.tensor(5);
      want(std::ranges::equal(sorter.shape(), sequence.shape()), "sorter must have the shape ",
           shown(sequence), ", it has ", shown(sorter));
      want(sorter.dtype() == int64, "sorter must be int64, it is ", sorter.dtype());
      sequence = gather(sequence, -1, sorter);
    }
    b.ret(0, search_of(sequence, b.operand(1), right, b.flag(2)));
  });
}

aj_status* bucketize_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& boundaries = b.tensor(1);
    want(boundaries.ndim() == 1, "boundaries must be a vector, its shape is ", shown(boundaries));
    want_narrow(boundaries, b.flag(2));
    b.ret(0, search_of(boundaries, b.operand(0), b.flag(3), b.flag(2)));
  });
}

aj_status* isin_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Operand first = b.operand(0), second = b.operand(1);
    want(first.is_tensor() || second.is_tensor(), "one of both must be a tensor");
    Tensor x = beside(first, second.tensor()), y = beside(second, first.tensor());
    x = x.detach(), y = reshape(y.detach(), {-1});
    DLDataType dtype = x.dtype();
    kit::check(kit::env.core->dtype_promote(dtype, y.dtype(), &dtype));
    x = to(x, dtype), y = to(y, dtype);
    Tensor found;
    if (y.numel() == 0) {
      found = zeros_like(x, boolean);
    } else if (x.is_complex() || x.numel() <= 1024 / y.numel()) {  // few: no sort
      found = any(eq(unsqueeze(x, -1), y), -1);
    } else {
      Tensor sorted = std::get<0>(sort(y, 0)), flat = reshape(x, {-1});
      Tensor place = clamp(search(sorted, flat, false), 0, y.numel() - 1);
      found = reshape(eq(index_select(sorted, 0, place), flat), x.shape());
    }
    b.ret(0, b.flag(3) ? logical_not(found) : found);
  });
}

}  // namespace adjoin::ops
