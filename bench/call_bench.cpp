// bench/call_bench.cpp: what a call costs from C: the contract's tables, no language above them.
#include <adjoin/abi/autograd.h>
#include <adjoin/abi/capi.h>
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace {

const aj_core* core;
const aj_dispatch* dispatch;
const aj_autograd* autograd;
DLDevice device;

void check(aj_status* s) {
  if (!s) return;
  aj_str m = core->status_message(s);
  std::fprintf(stderr, "call_bench: %.*s\n", int(m.len), m.data);
  std::exit(1);
}

aj_str str(std::string_view s) { return {s.data(), s.size()}; }

aj_tensor* empty(std::initializer_list<int64_t> shape) {
  DLTensor like{};
  like.device = device;
  like.ndim = int32_t(shape.size());
  like.dtype = {kDLFloat, 32, 1};
  like.shape = const_cast<int64_t*>(shape.begin());
  aj_tensor* t = nullptr;
  check(core->tensor_empty(&like, 0, &t));
  return t;
}

aj_tensor* ones(std::initializer_list<int64_t> shape, bool grad = false) {
  aj_tensor* t = empty(shape);
  for (int64_t i = 0; i < core->tensor_numel(t); i++) static_cast<float*>(t->dl.data)[i] = 1;
  if (grad) check(autograd->set_requires_grad(t, 1));
  return t;
}

aj_value value(aj_tensor* t) {
  aj_value v{};
  v.tag = AJ_TENSOR;
  v.v.tensor = t;
  return v;
}
aj_value value(double f) {
  aj_value v{};
  v.tag = AJ_FLOAT;
  v.v.f = f;
  return v;
}
aj_value value(int64_t i) {
  aj_value v{};
  v.tag = AJ_INT;
  v.v.i = i;
  return v;
}

// A call whose result is dropped at once.
template <class... Args>
void calls(benchmark::State& state, const char* name, Args... args) {
  const aj_op* op = dispatch->find_op(str(name));
  if (!op) return state.SkipWithError("there is no such op");
  aj_value values[] = {args...};
  for (auto _ : state) {
    aj_value ret{};
    if (aj_status* s = dispatch->call(op, values, sizeof...(args), &ret, 1)) {
      aj_str m = core->status_message(s);
      state.SkipWithError(std::string(m.data, m.len).c_str());
      core->status_free(s);
      return;
    }
    core->release(ret.v.object);
  }
}

#define BENCH(name, ...)                                            \
  void name(benchmark::State& state) { calls(state, __VA_ARGS__); } \
  BENCHMARK(name)->Repetitions(5)->ReportAggregatesOnly(true)

BENCH(add_64, "add", value(ones({64})), value(ones({64})), value(int64_t(1)));
BENCH(add_64_short, "add", value(ones({64})), value(ones({64})));  // the core fills alpha in
BENCH(add_4d_64, "add", value(ones({2, 4, 2, 4})), value(ones({2, 4, 2, 4})), value(int64_t(1)));
BENCH(add_1, "add", value(ones({1})), value(ones({1})), value(int64_t(1)));
BENCH(add_1024, "add", value(ones({1024})), value(ones({1024})), value(int64_t(1)));
BENCH(add_number_64, "add", value(ones({64})), value(1.5), value(int64_t(1)));
BENCH(add_row_8x8, "add", value(ones({8, 8})), value(ones({8})), value(int64_t(1)));
BENCH(mul_64, "mul", value(ones({64})), value(ones({64})));
BENCH(add_64_recorded, "add", value(ones({64}, true)), value(ones({64}, true)), value(int64_t(1)));
BENCH(mul_64_recorded, "mul", value(ones({64}, true)), value(ones({64}, true)));
BENCH(exp_64, "exp", value(ones({64})));
BENCH(sum_64, "sum", value(ones({64})));
BENCH(mm_8x8, "mm", value(ones({8, 8})), value(ones({8, 8})));
BENCH(select, "select", value(ones({8, 8})), value(int64_t(0)), value(int64_t(0)));
BENCH(transpose, "transpose", value(ones({8, 8})), value(int64_t(0)), value(int64_t(1)));

void empty_64(benchmark::State& state) {
  for (auto _ : state) core->release(empty({64}));
}
BENCHMARK(empty_64)->Repetitions(5)->ReportAggregatesOnly(true);

void empty_10m(benchmark::State& state) {
  for (auto _ : state) core->release(empty({10'000'000}));
}
BENCHMARK(empty_10m)->Repetitions(5)->ReportAggregatesOnly(true);

void retain_release(benchmark::State& state) {
  aj_tensor* t = ones({1});
  for (auto _ : state) {
    core->retain(t);
    core->release(t);
  }
  core->release(t);
}
BENCHMARK(retain_release)->Repetitions(5)->ReportAggregatesOnly(true);

void region_2_chunks(benchmark::State& state) {
  auto body = [](void*, int64_t, int64_t) -> aj_status* { return nullptr; };
  for (auto _ : state) check(core->parallel_for(2, 1, body, nullptr));
}
BENCHMARK(region_2_chunks)->Repetitions(5)->ReportAggregatesOnly(true);

bool open_tables() {
  core = static_cast<const aj_core*>(aj_get_interface("aj.core", 1));
  dispatch = static_cast<const aj_dispatch*>(aj_get_interface("aj.op", 1));
  autograd = static_cast<const aj_autograd*>(aj_get_interface("aj.autograd", 1));
  if (!core || !dispatch || !autograd) return false;
  const char* name = std::getenv("ADJOIN_BENCH_DEVICE");
  int32_t type = 0;
  check(core->device_find(str(name ? name : "cpu"), &type));
  device = {type, 0};
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (!open_tables()) {
    std::fprintf(stderr, "call_bench: libadjoin.so lacks an interface\n");
    return 1;
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
