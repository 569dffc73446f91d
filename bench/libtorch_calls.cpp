// bench/libtorch_calls.cpp: the calls of call_bench.cpp in libtorch's C++; optional, built by
// budget.py where a libtorch is.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace {

// Nanoseconds a call: the median of batches of about a millisecond.
template <class F>
void time(const char* name, F call) {
  using Clock = std::chrono::steady_clock;
  constexpr int kBatches = 31;
  auto batch = [&](int64_t n) {
    auto start = Clock::now();
    for (int64_t i = 0; i < n; i++) call();
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  };
  int64_t n = 64;
  while (batch(n) < 1e6) n *= 2;
  double took[kBatches];
  for (double& t : took) t = batch(n) / double(n);
  std::nth_element(took, took + kBatches / 2, took + kBatches);
  std::printf("%s %.1f\n", name, took[kBatches / 2]);
}

}  // namespace

int main() {
  at::set_num_threads(1);
  at::Tensor a = at::ones({64}), b = at::ones({64}), m = at::ones({8, 8}), row = at::ones({8});
  time("add_64", [&] { at::add(a, b); });
  time("add_number_64", [&] { at::add(a, 1.5); });
  time("add_row_8x8", [&] { at::add(m, row); });
  time("mul_64", [&] { at::mul(a, b); });
  time("exp_64", [&] { at::exp(a); });
  time("sum_64", [&] { at::sum(a); });
  time("mm_8x8", [&] { at::mm(m, m); });
  time("select", [&] { at::select(m, 0, 0); });
  time("transpose", [&] { at::transpose(m, 0, 1); });
  time("empty_64", [&] { at::empty({64}); });
  a.requires_grad_(true);
  b.requires_grad_(true);
  time("add_64_recorded", [&] { at::add(a, b); });
  time("mul_64_recorded", [&] { at::mul(a, b); });
}
