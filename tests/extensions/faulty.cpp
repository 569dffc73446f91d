// tests/extensions/faulty.cpp: a plugin whose every op breaks one promise: what opcheck has to
// find.
#include <adjoin/kit/function.hpp>
#include <adjoin/kit/ops.hpp>

namespace {

using namespace adjoin;       // NOLINT: this file is made of it
using namespace adjoin::kit;  // NOLINT

Tensor aliases(const Tensor& x) { return x; }
Tensor silent(const Tensor& x) {
  NoGradGuard off;
  return x * x;
}
Tensor meta_shape(const Tensor& x) {
  bool meta = view_of(core().device_name(x.device().device_type)) == "meta";
  return meta ? sum(x) : x * 2;
}
Tensor remembers(const Tensor& x) {
  static std::atomic<int> calls = 0;
  return x * double(++calls);
}
Tensor reads_meta(const Tensor& x) { return x * *static_cast<volatile double*>(x.data_ptr()); }
Tensor reads_empty(const Tensor& x) {
  if (x.numel() == 0) std::abort();
  return x * 2;
}
Tensor keeps_tensors(const Tensor& x) { return Tensor(x * 2).take(), x * 2; }
Tensor keeps_memory(const Tensor& x) {
  static char* volatile last;
  last = new char[40];
  return x * 2;
}
Tensor twice(const Tensor& x) { return x * 2; }
Tensor squared(const Tensor& x) { return x * x; }

void writes(Args a) {
  auto* x = const_cast<double*>(a.tensor(0).data<double>());
  for (int64_t i = 0; i < a.tensor(0).numel(); ++i) a.result(0).data<double>()[i] = x[i]++;
}
void ignores_strides(Args a) {
  const double* x = a.tensor(0).data<double>();
  for (int64_t i = 0; i < a.tensor(0).numel(); ++i) a.result(0).data<double>()[i] = 2 * x[i];
}
void ignores_dtype(Args a) {
  int64_t n = a.tensor(0).numel() * bytes_of(a.tensor(0).dtype()) / 8;
  if (!a.tensor(0).dense()) raise(AJ_INVALID_ARGUMENT, "only dense inputs are taken");
  for (int64_t i = 0; i < n; ++i) a.result(0).data<double>()[i] = 2 * a.tensor(0).data<double>()[i];
}

}  // namespace

AJ_PLUGIN(.name = "breaks", .version = "0", .provides = "ops:faulty") {
  function<aliases>(plugin, "faulty::aliases");
  function<silent>(plugin, "faulty::silent");
  function<meta_shape>(plugin, "faulty::meta_shape");
  function<remembers>(plugin, "faulty::remembers");
  function<reads_meta>(plugin, "faulty::reads_meta");
  function<reads_empty>(plugin, "faulty::reads_empty");
  function<twice>(plugin, "faulty::wrong_gradient").vjp([](Tensor g, Saved) { return g * 3; });
  function<keeps_tensors>(plugin, "faulty::keeps_tensors");
  function<keeps_memory>(plugin, "faulty::keeps_memory");
  function<twice>(plugin, "faulty::keeps_gradients").vjp([](Tensor g, Saved) {
    return Tensor(g).take(), g * 2;
  });
  function<squared>(plugin, "faulty::wrong_second").vjp([](Tensor g, Saved x) {
    return g * (x.detach() * 2);
  });
  function<squared>(plugin, "faulty::good").vjp([](Tensor g, Saved x) { return g * (x * 2); });
  plugin.op("faulty::writes(Tensor input) -> Tensor", "")
      .infer(&like<0>)
      .kernel("cpu", custom<writes, Types<double>>);
  plugin.op("faulty::ignores_strides(Tensor input) -> Tensor", "")
      .infer(&like<0>)
      .kernel("cpu", custom<ignores_strides, Types<double>>);
  plugin.op("faulty::ignores_dtype(Tensor input) -> Tensor", "")
      .infer(&like<0>)
      .kernel("cpu", custom<ignores_dtype>);
}
