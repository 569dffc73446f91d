// plugins/cpu/image/pad.cpp: tensors with edges of themselves, each row of the result written once;
// and their gradients.
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/view.hpp>
#include <algorithm>
#include <cstring>
#include <vector>

#include "vector/stored.hpp"

namespace adjoin::cpu {
namespace {

enum class Edge { kReflect, kReplicate, kCircular };

Edge edge_of(std::string_view mode) {
  return mode == "reflect"     ? Edge::kReflect
         : mode == "replicate" ? Edge::kReplicate
                               : Edge::kCircular;
}

// One dimension: which of its n elements each of the padded ones is.
struct Side {
  Side(int64_t n, int64_t before, int64_t after, Edge edge) : lo(before), hi(before + n) {
    for (int64_t i = -before; i < n + after; ++i) {
      from.push_back(i >= 0 && i < n            ? i
                     : edge == Edge::kReflect   ? (i < 0 ? -i : 2 * (n - 1) - i)
                     : edge == Edge::kReplicate ? std::clamp<int64_t>(i, 0, n - 1)
                                                : (i < 0 ? i + n : i - n));
    }
  }
  int64_t size() const { return int64_t(from.size()); }
  bool inside(int64_t o) const { return o >= lo && o < hi; }
  std::vector<int64_t> from;
  int64_t lo, hi;  // the elements [lo, hi) are those that were there
};

// pad holds pairs, those of the last dimension first.
std::vector<Side> sides_of(Span shape, Span pad, Edge edge) {
  std::vector<Side> sides;
  for (size_t d = 0; d < shape.size(); ++d) {
    size_t i = 2 * (shape.size() - 1 - d);
    bool padded = i < pad.size();
    sides.emplace_back(shape[d], padded ? pad[i] : 0, padded ? pad[i + 1] : 0, edge);
  }
  return sides;
}

// The planes of a padded tensor, of its last two dimensions, one by one: where they lie, and where
// what they are made of does.
class PaddedPlanes {
 public:
  PaddedPlanes(std::span<const Side> sides, Span to_strides, Span from_strides, int64_t plane)
      : outer_(sides.first(sides.size() - 2)),
        to_(to_strides),
        from_(from_strides),
        at_(outer_.size()) {
    for (size_t d = at_.size(); d-- > 0; plane /= outer_[d].size())
      at_[d] = plane % outer_[d].size();
  }
  void next() {
    for (size_t d = at_.size(); d-- > 0; at_[d] = 0)
      if (++at_[d] < outer_[d].size()) return;
  }
  int64_t to() const {
    int64_t offset = 0;
    for (size_t d = 0; d < at_.size(); ++d) offset += at_[d] * to_[d];
    return offset;
  }
  int64_t from() const {
    int64_t offset = 0;
    for (size_t d = 0; d < at_.size(); ++d) {
      offset += outer_[d].from[size_t(at_[d])] * from_[d];
    }
    return offset;
  }
  bool inside() const {
    for (size_t d = 0; d < at_.size(); ++d)
      if (!outer_[d].inside(at_[d])) return false;
    return true;
  }

 private:
  std::span<const Side> outer_;
  Span to_, from_;
  std::vector<int64_t> at_;
};

template <class T>
void pad_row(const Side& s, const T* from, int64_t from_step, T* to, int64_t to_step) {
  auto one_by_one = [&](int64_t lo, int64_t hi) {
    for (int64_t o = lo; o < hi; ++o) to[o * to_step] = from[s.from[size_t(o)] * from_step];
  };
  if (to_step != 1 || from_step != 1) return one_by_one(0, s.size());
  one_by_one(0, s.lo);
  std::memcpy(to + s.lo, from, size_t(s.hi - s.lo) * sizeof(T));
  one_by_one(s.hi, s.size());
}

void pad_edges(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0);
  if (out.numel() == 0) return;
  Edge edge = edge_of(args.string(2));
  std::vector<Side> sides = sides_of(x.shape(), args.ints(1), edge);
  std::vector<int64_t> to(out.strides().begin(), out.strides().end()),
      from(x.strides().begin(), x.strides().end());
  while (sides.size() < 2) {
    sides.emplace(sides.begin(), 1, 0, 0, edge);
    to.insert(to.begin(), 1), from.insert(from.begin(), 1);
  }
  const Side &last = sides.back(), &rows = sides[sides.size() - 2];
  int64_t from_row = from[from.size() - 2], to_row = to[to.size() - 2],
          plane = rows.size() * last.size();
  visit_size(x.dtype(), [&]<class T>() {
    parallel_for(out.numel() / plane, grain_of(plane), [&](int64_t lo, int64_t hi) {
      for (PaddedPlanes planes(sides, to, from, lo); lo < hi; ++lo, planes.next()) {
        const T* source = x.data<T>() + planes.from();
        T* row = out.data<T>() + planes.to();
        for (int64_t r = 0; r < rows.size(); ++r, row += to_row)
          pad_row(last, source + rows.from[size_t(r)] * from_row, from.back(), row, to.back());
      }
    });
  });
}

// Each element has one place inside, whose gradient it takes; what went to edges is added then.
void pad_edges_backward(Args args) {
  TensorView grad = args.tensor(0);
  MutView out = args.result(0);
  if (out.numel() == 0) return;
  std::vector<Side> all = sides_of(out.shape(), args.ints(1), edge_of(args.string(2)));
  while (all.size() < 2) all.emplace(all.begin(), 1, 0, 0, Edge::kReflect);
  size_t padded = std::clamp<size_t>(args.ints(1).size() / 2, 2, all.size());
  std::span<const Side> sides = std::span<const Side>(all).last(padded);
  const Side &last = sides.back(), &rows = sides[padded - 2];
  std::vector<int64_t> to_strides(padded), from_strides(padded);
  int64_t n = 1, each = 1;  // elements of one item of the dimensions before, with edges and without
  for (size_t d = padded; d-- > 0;) {
    from_strides[d] = n, to_strides[d] = each;
    n *= sides[d].hi - sides[d].lo, each *= sides[d].size();
  }
  const int64_t width = last.hi - last.lo;
  auto run = [&]<class T>() {
    Dense<T> g(grad), to(out);
    parallel_for(out.numel() / n, grain_of(each), [&](int64_t lo, int64_t hi) {
      for (; lo < hi; ++lo)
        for (bool within : {true, false}) {
          PaddedPlanes planes(sides, to_strides, from_strides, 0);
          for (int64_t p = each / (rows.size() * last.size()); p-- > 0; planes.next())
            for (int64_t r = 0; r < rows.size(); ++r) {
              if ((planes.inside() && rows.inside(r)) != within) continue;
              const T* from = g.data() + lo * each + planes.to() + r * last.size();
              T* row = to.data() + lo * n + planes.from() + rows.from[size_t(r)] * width;
              if (within)
                std::copy(from + last.lo, from + last.hi, row);
              else
                for (int64_t o = 0; o < width; ++o) row[o] += from[last.lo + o];
              for (int64_t o = 0; o < last.lo; ++o) row[last.from[size_t(o)]] += from[o];
              for (int64_t o = last.hi; o < last.size(); ++o) row[last.from[size_t(o)]] += from[o];
            }
        }
    });
    to.commit();
  };
  grad.dtype().bits == 64 ? run.operator()<double>() : run.operator()<float>();
}

}  // namespace

AJ_KERNELS(pad_kernels) = {
    {"_::pad_edges", custom<pad_edges, stored>},
    {"_::pad_edges_backward", custom<pad_edges_backward, stored_floating>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
