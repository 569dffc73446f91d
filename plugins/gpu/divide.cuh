// plugins/gpu/divide.cuh: quotients of what is not negative, in 32 bits where they suffice.
#ifndef ADJOIN_PLUGINS_GPU_DIVIDE_CUH
#define ADJOIN_PLUGINS_GPU_DIVIDE_CUH
#include "element.cuh"

namespace adjoin::gpu {

struct Quotient {
  int64_t whole, rest;
};
AJ_HD inline Quotient divided(int64_t i, int64_t by) {
  int64_t rest = split(&i, by);
  return {i, rest};
}
AJ_HD inline int64_t quotient(int64_t i, int64_t by) { return divided(i, by).whole; }

// Where element k of a line starts among lines of `size` elements that lie `inner` apart.
AJ_HD inline int64_t in_line(int64_t line, int64_t k, int64_t size, int64_t inner) {
  Quotient q = divided(line, inner);
  return (q.whole * size + k) * inner + q.rest;
}

}  // namespace adjoin::gpu
#endif
