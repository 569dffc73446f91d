// plugins/ops_sequences/rnn.hpp: a recurrent layer made of single ops: what every backend can run,
// and what its second derivative is made of.
#pragma once
#include <adjoin/kit/make.hpp>

namespace adjoin::ops {

struct RecurrentLayer {
  Tensor input, hx, cx, weight_ih, weight_hh, bias_ih, bias_hh, weight_hr;
  Sizes batch_sizes;
  std::string_view mode;
  bool reverse;
};
struct RecurrentResult {
  Tensor output, hn, cn, gates, cells;
};

// Rows of the gates in weight_ih and weight_hh for one of state.
int64_t gate_count(std::string_view mode);

RecurrentResult unroll(const RecurrentLayer& layer);

}  // namespace adjoin::ops
