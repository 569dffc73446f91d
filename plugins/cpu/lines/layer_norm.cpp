// plugins/cpu/lines/layer_norm.cpp: layer norm over rows.
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/reduce.hpp>
#include <optional>

#include "channel_values.hpp"
#include "vector/layer_norm_rows.hpp"
#include "vector/rows.hpp"

namespace adjoin::cpu {
namespace {

int64_t row_length(Args args, uint32_t shape) {
  int64_t n = 1;
  for (int64_t s : args.ints(shape)) n *= s;
  return n;
}

// The values where they lie, or n of another; null for none.
template <class T>
class Parameter {
 public:
  Parameter(TensorView t, int64_t n, T otherwise) {
    if (t)
      given_.emplace(t);
    else
      made_.assign(size_t(n), otherwise);
  }
  const T* data() { return given_ ? given_->data() : made_.empty() ? nullptr : made_.data(); }

 private:
  std::optional<Dense<T>> given_;
  std::vector<T> made_;
};

void layer_norm(Args args) {
  TensorView x = args.tensor(0);
  int64_t n = row_length(args, 1), rows = args.result(1).numel();
  double eps = args.real(4);
  const int64_t made = args.tensor(2) || args.tensor(3) ? n : 0;  // one of two, where the other is
  visit_math<floating>(x.dtype(), [&]<class T>() {
    Dense<T> in(x), out(args.result(0)), mean(args.result(1)), rstd(args.result(2));
    Parameter<T> weight(args.tensor(2), made, 1), bias(args.tensor(3), made, 0);
    const T *w = weight.data(), *b = bias.data();
    bool past = 2 * x.numel() * int64_t(sizeof(T)) >= stream_bytes();
    parallel_for(rows, grain_of(n, 8192), [&](int64_t lo, int64_t hi) {
      for (int64_t r = lo; r < hi; ++r)
        norm_rows<T>().forward(in.data() + r * n, w, b, out.data() + r * n, n, eps, past, &mean[r],
                               &rstd[r]);
      if (past) end_streaming();
    });
    out.commit();
    mean.commit();
    rstd.commit();
  });
}

template <class T>
struct Adding {
  using State = T;
  void join(T& s, T other) const { s += other; }
};

void layer_norm_backward(Args args) {
  TensorView grad = args.tensor(0), x = args.tensor(1);
  int64_t n = row_length(args, 2), rows = args.tensor(3).numel();
  bool of_input = args.bit(7, 0), of_parameters = args.bit(7, 1) || args.bit(7, 2);
  visit_math<floating>(x.dtype(), [&]<class T>() {
    Dense<T> in(x), dy(grad), mean(args.tensor(3)), rstd(args.tensor(4)), dx(args.result(0));
    Parameter<T> weight(args.tensor(5), 0, 1);
    const T* w = weight.data();
    bool past = 3 * x.numel() * int64_t(sizeof(T)) >= stream_bytes();
    // Leaves of 64 rows, joined as the kit's reductions join theirs; a task is an aligned run.
    Adding<T> adding;
    int64_t leaves = (rows + kLeafRows - 1) / kLeafRows, width = of_parameters ? 2 * n : 0;
    int64_t run = int64_t(std::bit_ceil(uint64_t((leaves + 63) / 64))),
            tasks = (leaves + run - 1) / run;
    std::vector<T> parts(size_t(tasks * width));
    parallel_for(tasks, grain_of(run * kLeafRows * n, 8192), [&](int64_t lo, int64_t hi) {
      for (int64_t t = lo; t < hi; ++t) {
        TreeStack<Adding<T>> stack(adding, width, run);
        for (int64_t leaf = t * run; leaf < std::min(leaves, (t + 1) * run); ++leaf) {
          std::fill_n(stack.top(), width, T(0));
          for (int64_t r = leaf * kLeafRows; r < std::min(rows, (leaf + 1) * kLeafRows); ++r)
            norm_rows<T>().backward(dy.data() + r * n, in.data() + r * n, w, mean[r], rstd[r],
                                    of_input ? dx.data() + r * n : nullptr,
                                    of_parameters ? stack.top() : nullptr, n, past);
          stack.push();
        }
        std::copy_n(stack.finish(), width, parts.begin() + t * width);
      }
      if (past) end_streaming();
    });
    if (of_input) dx.commit();
    if (!of_parameters) return;
    TreeStack<Adding<T>> stack(adding, width, std::max<int64_t>(tasks, 1));
    std::fill_n(stack.top(), width, T(0));
    for (int64_t t = 0; t < tasks; ++t) {
      std::copy_n(parts.begin() + t * width, width, stack.top());
      stack.push();
    }
    const T* sums = stack.finish();
    if (args.bit(7, 1)) store(args.result(1), std::vector<T>(sums, sums + n));
    if (args.bit(7, 2)) store(args.result(2), std::vector<T>(sums + n, sums + 2 * n));
  });
}

}  // namespace

AJ_KERNELS(layer_norm_kernels) = {
    {"layer_norm_stats", custom<layer_norm, stored_floating>},
    {"layer_norm_backward", custom<layer_norm_backward, stored_floating>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
