// adjoin/kit/indexing.hpp: where x[i, :, j] lies: offsets of what is indexed and of what is kept.
#ifndef ADJOIN_KIT_INDEXING_HPP
#define ADJOIN_KIT_INDEXING_HPP
#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/scalar.hpp>
#include <algorithm>
#include <vector>

namespace adjoin {
namespace AJ_HIDDEN kit {

inline std::vector<int64_t> dense_strides(Span shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t step = 1;
  for (size_t d = shape.size(); d-- > 0; step *= shape[d]) strides[d] = step;
  return strides;
}

// Offsets of all elements of a box, in C order.
inline std::vector<int64_t> offsets_of(Span shape, Span strides) {
  std::vector<int64_t> list(1, 0);
  for (size_t d = 0; d < shape.size(); ++d) {
    std::vector<int64_t> next;
    next.reserve(list.size() * size_t(shape[d]));
    for (int64_t base : list)
      for (int64_t i = 0; i < shape[d]; ++i) next.push_back(base + i * strides[d]);
    list = std::move(next);
  }
  return list;
}

// Element (p, b, q) of the result lies at before[p] + selected[b] + after[q] of the input. The
// indices' dimensions stand where the first of them was if they are neighbours, else in front.
// Indices are int64, broadcast, wrapped and checked.
struct IndexMap {
  std::vector<int64_t> before, selected, after, shape;  // shape: of the result

  IndexMap(Span in, Span strides, std::span<aj_tensor* const> indices) {
    size_t first = in.size(), last = 0, given = 0;
    std::vector<int64_t> common;
    for (size_t d = 0; d < indices.size(); ++d)
      if (indices[d]) {
        first = std::min(first, d), last = d, ++given;
        broadcast(common, TensorView(indices[d]).shape());
      }
    bool neighbours = given == last - first + 1;
    std::vector<int64_t> sizes[2], steps[2];
    for (size_t d = 0; d < in.size(); ++d) {
      if (d < indices.size() && indices[d]) continue;
      bool behind = !neighbours || d > first;
      sizes[behind].push_back(in[d]);
      steps[behind].push_back(strides[d]);
    }
    for (const auto& part : {sizes[0], common, sizes[1]})
      shape.insert(shape.end(), part.begin(), part.end());
    before = offsets_of(sizes[0], steps[0]);
    after = offsets_of(sizes[1], steps[1]);
    int64_t count = 1;
    for (int64_t size : common) count *= size;
    selected.assign(size_t(count), 0);
    if (before.empty() || after.empty()) return;  // nothing will be touched
    for (size_t d = 0; d < indices.size(); ++d)
      if (indices[d]) add(TensorView(indices[d]), common, int64_t(d), in[d], strides[d]);
  }

  // For each element of the result, in C order, the offset of what is written there; values
  // broadcast to the result.
  std::vector<int64_t> offsets_in(TensorView values, Span strides) const {
    std::vector<int64_t> steps(shape.size(), 0);
    for (int64_t d = 1; d <= values.ndim(); ++d) {
      int64_t size = values.size(-d);
      if (size == 1) continue;
      if (size_t(d) > shape.size() || size != shape[shape.size() - size_t(d)])
        raise(AJ_INVALID_ARGUMENT, "values of shape ", values, " don't broadcast to ",
              Shape{shape.data(), int64_t(shape.size())});
      steps[shape.size() - size_t(d)] = strides[size_t(values.ndim() - d)];
    }
    return offsets_of(shape, steps);
  }

 private:
  static void broadcast(std::vector<int64_t>& to, Span shape) {
    if (to.size() < shape.size()) to.insert(to.begin(), shape.size() - to.size(), 1);
    for (size_t i = 0; i < shape.size(); ++i) {
      int64_t &have = to[to.size() - 1 - i], size = shape[shape.size() - 1 - i];
      if (have == 1)
        have = size;
      else if (size != 1 && size != have)
        raise_as("IndexError", AJ_INVALID_ARGUMENT,
                 "shapes of indices don't broadcast: ", Shape{to.data(), int64_t(to.size())},
                 " and ", Shape{shape.data(), int64_t(shape.size())});
    }
  }
  void add(TensorView index, const std::vector<int64_t>& common, int64_t dim, int64_t size,
           int64_t stride) {
    const int64_t* values = index.data<int64_t>();
    auto name = [&](size_t b, int64_t i) {
      if (i < -size || i >= size) index_error(i, size, dim);
      selected[b] += (i < 0 ? i + size : i) * stride;
    };
    if (index.dense() && std::ranges::equal(index.shape(), common)) {
      for (size_t b = 0; b < selected.size(); ++b) name(b, values[b]);
      return;
    }
    std::vector<int64_t> steps(common.size(), 0);
    size_t pad = common.size() - size_t(index.ndim());
    for (int64_t d = 0; d < index.ndim(); ++d)
      if (index.size(d) != 1) steps[pad + size_t(d)] = index.stride(d);
    std::vector<int64_t> places = offsets_of(common, steps);
    for (size_t b = 0; b < selected.size(); ++b) name(b, values[places[b]]);
  }
};

// The mean of `count` elements joined to a sum: rounded down where T is whole; a bool stays.
template <class T>
T mean_of(T sum, int64_t count) {
  if constexpr (std::is_same_v<T, bool>)
    return sum;
  else if constexpr (is_integer<T>)
    return scalar::FloorDivide()(sum, T(count));
  else
    return sum / T(Real<T>(count));
}

}  // namespace kit
}  // namespace adjoin
#endif
