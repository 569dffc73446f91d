// plugins/ops_vision/boxes.cpp: of boxes that overlap, the best (non-maximum suppression). Which
// box goes depends on all before it, so the choice is made in the host's memory.
#include <algorithm>

#include "regions.hpp"

namespace adjoin::ops {
namespace {

constexpr DLDevice host{kDLCPU, 0};

// The places, in order of scores, of boxes that no better one overlaps by more than `most`.
template <class T>
std::vector<int64_t> kept(const T* box, int64_t n, double most) {
  std::vector<T> area(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i)
    area[size_t(i)] = (box[i * 4 + 2] - box[i * 4]) * (box[i * 4 + 3] - box[i * 4 + 1]);
  std::vector<char> gone(size_t(n), 0);
  std::vector<int64_t> places;
  for (int64_t i = 0; i < n; ++i) {
    if (gone[size_t(i)]) continue;
    places.push_back(i);
    const T* a = box + i * 4;
    for (int64_t j = i + 1; j < n; ++j) {
      const T* b = box + j * 4;
      T w = std::max(T(0), std::min(a[2], b[2]) - std::max(a[0], b[0]));
      T h = std::max(T(0), std::min(a[3], b[3]) - std::max(a[1], b[1]));
      T both = w * h;
      if (double(both / (area[size_t(i)] + area[size_t(j)] - both)) > most) gone[size_t(j)] = 1;
    }
  }
  return places;
}

Tensor chosen(const Tensor& dets, const Tensor& scores, double most) {
  want(dets.ndim() == 2 && dets.size(1) == 4, "dets must have shape (N, 4), their shape is ",
       shown(dets));
  want(scores.ndim() == 1 && scores.size(0) == dets.size(0),
       "scores must hold one number for each of the ", dets.size(0), " boxes, their shape is ",
       shown(scores));
  const int64_t n = dets.size(0);
  if (n == 0) return zeros({0}, int64, dets.device());
  Tensor order = argsort(scores, 0, true, true);
  bool doubles = dets.dtype() == float64;
  Tensor sorted = contiguous(to(index_select(dets, 0, order), doubles ? float64 : float32, host));
  std::vector<int64_t> places =
      doubles ? kept(sorted.data<double>(), n, most) : kept(sorted.data<float>(), n, most);
  Tensor at = empty({int64_t(places.size())}, int64, host);
  std::copy(places.begin(), places.end(), at.data<int64_t>());
  return index_select(order, 0, to(at, std::nullopt, dets.device()));
}

}  // namespace

aj_status* nms_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &dets = b.tensor(0), &scores = b.tensor(1);
    want(dets.is_floating_point(), "dets must be floating-point, they are ", dets.dtype());
    b.ret(0, chosen(dets.detach(), scores.detach(), b.real(2)));
  });
}

// Boxes and scores as whole numbers of one scale, which falls out of the ratio of areas.
aj_status* qnms_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    want(!b.tensor(0).is_floating_point() && !b.tensor(1).is_floating_point(),
         "dets and scores must be whole numbers, they are ", b.tensor(0).dtype(), " and ",
         b.tensor(1).dtype());
    b.ret(0, chosen(b.tensor(0), b.tensor(1), b.real(2)));
  });
}

aj_status* cuda_version_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) { b.ret(0, Scalar(-1)); });
}

}  // namespace adjoin::ops
