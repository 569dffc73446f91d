// core/tensor/overlap.cpp: do tensors share bytes, and does a view stay inside its memory?
#include <algorithm>
#include <vector>

#include "core/tensor/tensor.hpp"

namespace adjoin {
namespace {

struct Extent {
  const char *lo, *hi;  // hi is one past the last byte
};

Extent extent(const aj_tensor* t) {
  const char* lo = place(t);
  const char* hi = lo;
  int64_t bytes = dt(priv(t).dtype).bytes;
  for (int i = 0; i < t->dl.ndim; i++) {
    int64_t reach = (t->dl.shape[i] - 1) * t->dl.strides[i] * bytes;
    (reach < 0 ? lo : hi) += reach;
  }
  return {lo, hi + bytes};
}

// Are the elements of both the same ones in the same order? Dimensions of size 1 say nothing.
bool same_walk(const aj_tensor* a, const aj_tensor* b) {
  if (place(a) != place(b) || priv(a).dtype != priv(b).dtype || priv(a).numel != priv(b).numel)
    return false;
  int i = 0, j = 0;
  for (;; i++, j++) {
    while (i < a->dl.ndim && a->dl.shape[i] == 1) i++;
    while (j < b->dl.ndim && b->dl.shape[j] == 1) j++;
    if (i == a->dl.ndim || j == b->dl.ndim) return i == a->dl.ndim && j == b->dl.ndim;
    if (a->dl.shape[i] != b->dl.shape[j] || a->dl.strides[i] != b->dl.strides[j]) return false;
  }
}

}  // namespace

bool overlaps_itself(const aj_tensor* t) {
  if (is_dense(t) || !t->dl.strides) return false;
  struct {
    int64_t stride, size;
  } dims[kMaxDims];  // by stride; few and mostly in order: sorted as they come
  int n = 0;
  for (int i = t->dl.ndim; i-- > 0;) {
    if (t->dl.shape[i] <= 1) continue;
    const int64_t stride = std::abs(t->dl.strides[i]);
    int at = n++;
    for (; at > 0 && dims[at - 1].stride > stride; at--) dims[at] = dims[at - 1];
    dims[at] = {stride, t->dl.shape[i]};
  }
  int64_t reach = 0;  // of all smaller dimensions together
  for (int i = 0; i < n; i++) {
    if (dims[i].stride <= reach) return priv(t).numel > 1;
    reach += dims[i].stride * (dims[i].size - 1);
  }
  return false;
}

const Storage* owner(const Storage* s) {
  while (s->flags & kStorageWrap && static_cast<const WrapStorage*>(s)->source)
    s = &storage(static_cast<const WrapStorage*>(s)->source);
  return s;
}

bool at_same_addresses(const aj_tensor* a, const aj_tensor* b) {
  // Elsewhere than on the host an address may be a handle.
  return a->dl.device.device_type == kDLCPU || owner(&storage(a)) == owner(&storage(b));
}

int overlap(const aj_tensor* a, const aj_tensor* b) {
  if (!may_share(a, b)) return 0;
  if (priv(a).numel == 0 || priv(b).numel == 0) return 0;
  Extent x = extent(a), y = extent(b);
  if (x.hi <= y.lo || y.hi <= x.lo) return 0;
  if (same_walk(a, b)) return 1;
  // Columns of one matrix interleave without sharing an element: equal steps, different remainders.
  int64_t step = 0, bytes = std::min(dt(priv(a).dtype).bytes, dt(priv(b).dtype).bytes);
  if (priv(a).dtype != priv(b).dtype) return 2;
  for (const aj_tensor* t : {a, b})
    for (int i = 0; i < t->dl.ndim; i++)
      if (t->dl.shape[i] > 1) {
        int64_t s = std::abs(t->dl.strides[i] * bytes);
        if (s == 0) continue;
        while (s) {
          int64_t r = step % s;
          step = s;
          s = r;
        }
      }
  int64_t apart = std::abs(place(a) - place(b));
  if (step && apart % step != 0 && apart % step >= bytes && step - apart % step >= bytes) return 0;
  // A matrix cut into blocks of rows and columns: compare per dimension where strides agree.
  if (a->dl.ndim == b->dl.ndim && std::ranges::equal(strides(a), strides(b))) {
    std::vector<int> order(size_t(a->dl.ndim));
    for (int i = 0; i < a->dl.ndim; i++) order[size_t(i)] = i;
    std::sort(order.begin(), order.end(),
              [&](int i, int j) { return a->dl.strides[i] > a->dl.strides[j]; });
    int64_t rest = (place(b) - place(a)) / bytes;
    int64_t below = 0;
    for (int i : order)
      below += (std::max(a->dl.shape[i], b->dl.shape[i]) - 1) * std::abs(a->dl.strides[i]);
    for (int i : order) {
      int64_t s = a->dl.strides[i];
      if (s <= 0) return 2;
      below -= (std::max(a->dl.shape[i], b->dl.shape[i]) - 1) * s;
      int64_t d = rest / s;
      rest -= d * s;
      if (rest < 0 && -rest > below) rest += s, d -= 1;
      if (rest > 0 && rest > below) rest -= s, d += 1;
      if (d >= a->dl.shape[i] || -d >= b->dl.shape[i]) return 0;
    }
  }
  return 2;
}

bool inside(uint64_t bytes, const DType& t, std::span<const int64_t> shape, const int64_t* strides,
            int64_t first) {
  int64_t last = first;
  for (size_t i = 0; i < shape.size(); i++) {
    if (shape[i] < 0 || strides[i] < 0) return false;
    if (shape[i] == 0) return first >= 0;
    int64_t reach;
    if (__builtin_mul_overflow(shape[i] - 1, strides[i], &reach) ||
        __builtin_add_overflow(last, reach, &last))
      return false;
  }
  return first >= 0 && uint64_t(last) < bytes / t.bytes;
}

}  // namespace adjoin
