// plugins/reference/named.hpp: the elements that an index names along a dimension.
#ifndef ADJOIN_PLUGINS_REFERENCE_NAMED_HPP
#define ADJOIN_PLUGINS_REFERENCE_NAMED_HPP
#include <adjoin/kit/indexing.hpp>

#include "element.hpp"

namespace adjoin::reference {

inline int64_t checked(int64_t i, int64_t size, int64_t dim) {
  if (i < 0 || i >= size) index_error(i, size, dim);
  return i;
}

// For gather and its kin: calls f(i, place, in_source) for element i of the index, where place is
// the element of a tensor of `shape` that it names, and in_source the element of a tensor of
// `source` at the index's own coordinates. What has no dimension is a line of one element.
template <class F>
void for_named(TensorView index, Span shape, Span source, int64_t dim, F f) {
  constexpr int64_t one = 1;
  auto line = [&](Span s) { return s.empty() ? Span(&one, 1) : s; };
  const Span sizes = line(index.shape());
  shape = line(shape), source = line(source);
  const int64_t n = int64_t(sizes.size());
  if (dim < 0) dim += n;
  Dense<int64_t> values(index);
  std::vector<int64_t> steps = dense_strides(shape), source_steps = dense_strides(source);
  for (int64_t i = 0; i < index.numel(); ++i) {
    int64_t place = 0, from = 0, rest = i;
    for (int64_t d = n - 1; d >= 0; --d) {
      int64_t c = rest % sizes[d];
      rest /= sizes[d];
      place += (d == dim ? checked(values[i], shape[d], dim) : c) * steps[d];
      from += c * source_steps[d];
    }
    f(i, place, from);
  }
}

}  // namespace adjoin::reference
#endif
