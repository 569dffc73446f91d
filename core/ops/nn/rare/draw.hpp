// core/ops/nn/rare/draw.hpp: the place of a draw in a device's generator, for masks of dropout.
#pragma once
#include <adjoin/kit/make.hpp>

namespace adjoin::ops {

struct Draw {
  int64_t seed, offset;
};

// For n numbers of t's dtype on its device.
inline Draw draw_for(const Tensor& t, int64_t n) {
  int64_t blocks = t.dtype().bits == 64 ? (n + 1) / 2 : (n + 3) / 4;
  aj_object* generator = nullptr;
  kit::check(kit::env.core->generator_default(t.device(), &generator));
  uint64_t seed = 0, offset = 0;
  aj_status* s = kit::env.core->generator_draw(generator, uint64_t(blocks), &seed, &offset);
  kit::env.core->release(generator);
  kit::check(s);
  return {int64_t(seed), int64_t(offset)};
}

}  // namespace adjoin::ops
