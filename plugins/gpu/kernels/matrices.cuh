// plugins/gpu/kernels/matrices.cuh: what stands beside factorisations, which are a library's.
#include "../launch.cuh"

namespace adjoin::gpu {
namespace {

// One exchange depends on those before it: a thread for each matrix.
struct PivotOrder {
  const int64_t* exchanges;
  int64_t* order;
  int64_t steps, rows;
  Fault* fault;
  AJ_DEVICE void operator()(int64_t i) const {
    int64_t* from = order + i * rows;
    for (int64_t j = 0; j < rows; ++j) from[j] = j;
    for (int64_t j = 0; j < steps; ++j) {
      const int64_t other = checked(exchanges[i * steps + j], rows, 0, fault), kept = from[j];
      if (other < 0) continue;
      from[j] = from[other];
      from[other] = kept;
    }
  }
};
void pivot_order(Args args) {
  const aj_call* call = args.call();
  const int64_t steps = args.tensor(0).size(-1), rows = args.integer(1);
  MutView to = args.result(0);
  if (to.numel() == 0) return;
  Plain<int64_t> exchanges(call, args.tensor(0)), order(call, to);
  each(call, to.numel() / rows,
       PivotOrder{exchanges.data(), order.data(), steps, rows, fault_of(call)});
  order.commit();
}

}  // namespace

AJ_KERNELS(matrix_kernels) = {
    {"_::pivot_order", custom<pivot_order>},
    {nullptr, {}},
};

}  // namespace adjoin::gpu
