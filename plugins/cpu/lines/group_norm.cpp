// plugins/cpu/lines/group_norm.cpp: group norm; a group's channels lie one behind the other, so
// that it is a row with a weight for each part.
#include <adjoin/kit/parallel.hpp>

#include "channel_values.hpp"
#include "group_norm_rows.hpp"
#include "vector/rows.hpp"

namespace adjoin::cpu {
namespace {

struct Groups {
  Groups(TensorView x, int64_t per_sample)
      : batch(x.size(0)),
        channels(x.size(1)),
        groups(batch * per_sample),
        each(channels / per_sample),
        places(x.numel() / std::max<int64_t>(batch * channels, 1)) {}
  int64_t batch, channels, groups;
  int64_t each, places;  // channels of a group; elements of a channel
  int64_t size() const { return each * places; }
  int64_t channel(int64_t group, int64_t c) const { return group * each % channels + c; }
  bool past_cache(int64_t arrays, size_t element) const {
    return arrays * groups * size() * int64_t(element) >= stream_bytes();
  }
};

void group_norm(Args args) {
  TensorView x = args.tensor(0);
  Groups g(x, args.integer(1));
  double eps = args.real(4);
  visit_math<floating>(x.dtype(), [&]<class T>() {
    Dense<T> in(x), out(args.result(0)), mean(args.result(1)), rstd(args.result(2));
    std::vector<T> weight = values<T>(args.tensor(2), g.channels, 1),
                   bias = values<T>(args.tensor(3), g.channels, 0);
    const GroupRows<T>& code = group_rows<T>();
    bool past = g.past_cache(2, sizeof(T));
    parallel_for(g.groups, grain_of(g.size(), 8192), [&](int64_t lo, int64_t hi) {
      for (int64_t r = lo; r < hi; ++r) {
        const T* from = in.data() + r * g.size();
        T* to = out.data() + r * g.size();
        code.statistics(from, g.size(), eps, &mean[r], &rstd[r]);
        for (int64_t c = 0; c < g.each; ++c)
          code.scaled(from + c * g.places, to + c * g.places, g.places, mean[r], rstd[r],
                      weight[g.channel(r, c)], bias[g.channel(r, c)], past);
      }
      if (past) end_streaming();
    });
    out.commit();
    mean.commit();
    rstd.commit();
  });
}

void group_norm_backward(Args args) {
  TensorView grad = args.tensor(0), x = args.tensor(1);
  Groups g(x, args.integer(2));
  bool of_input = args.bit(7, 0);
  visit_math<floating>(x.dtype(), [&]<class T>() {
    Dense<T> in(x), dy(grad), mean(args.tensor(3)), rstd(args.tensor(4)), dx(args.result(0));
    std::vector<T> weight = values<T>(args.tensor(5), g.channels, 1);
    const GroupRows<T>& code = group_rows<T>();
    bool past = of_input && g.past_cache(3, sizeof(T));
    // Of each channel of each sample: sums of g, and of g times the normalized input.
    std::vector<double> of_g(size_t(g.batch * g.channels)), of_hat(of_g.size());
    parallel_for(g.groups, grain_of(g.size(), 8192), [&](int64_t lo, int64_t hi) {
      for (int64_t r = lo; r < hi; ++r) {
        int64_t at = r * g.size(), first = r * g.each;
        double one = 0, hat = 0;
        for (int64_t c = 0; c < g.each; ++c) {
          int64_t from = at + c * g.places;
          code.sums(dy.data() + from, in.data() + from, g.places, mean[r], rstd[r],
                    &of_g[first + c], &of_hat[first + c]);
          one += double(weight[g.channel(r, c)]) * of_g[first + c];
          hat += double(weight[g.channel(r, c)]) * of_hat[first + c];
        }
        double n = double(g.size());
        for (int64_t c = 0; of_input && c < g.each; ++c) {
          int64_t from = at + c * g.places;
          code.gradient(dy.data() + from, in.data() + from, dx.data() + from, g.places, mean[r],
                        rstd[r], weight[g.channel(r, c)], T(one / n), T(hat / n), past);
        }
      }
      if (past) end_streaming();
    });
    if (of_input) dx.commit();
    auto over_batch = [&](uint32_t result, const std::vector<double>& parts) {
      if (!args.bit(7, result)) return;
      std::vector<T> sums(size_t(g.channels));
      for (int64_t c = 0; c < g.channels; ++c) {
        double sum = 0;
        for (int64_t b = 0; b < g.batch; ++b) sum += parts[size_t(b * g.channels + c)];
        sums[size_t(c)] = T(sum);
      }
      store(args.result(result), sums);
    };
    over_batch(1, of_hat);
    over_batch(2, of_g);
  });
}

}  // namespace

AJ_KERNELS(group_norm_kernels) = {
    {"group_norm_stats", custom<group_norm, stored_floating>},
    {"group_norm_backward", custom<group_norm_backward, stored_floating>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
