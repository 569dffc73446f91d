// plugins/cuda/convolution.cpp: convolution and its gradients, from tensors to cuDNN's problems.
#include <adjoin/kit/view.hpp>
#include <algorithm>

#include "convolution_plan.hpp"
#include "tables.hpp"

namespace adjoin::vendor {
namespace {

using namespace kit;

// With at least two dimensions of space: cuDNN has no less.
Array array_of(TensorView t) {
  Array a = {{t.shape().begin(), t.shape().end()},
             {t.strides().begin(), t.strides().end()},
             const_cast<char*>(t.bytes())};
  if (t.ndim() == 3) {
    a.sizes.insert(a.sizes.begin() + 2, 1);
    a.strides.insert(a.strides.begin() + 2, t.size(2) * t.stride(2));
  }
  return a;
}

// The lists of one dimension of space get another in front that changes nothing.
std::vector<int64_t> list_of(Span given, size_t space, int64_t neutral) {
  std::vector<int64_t> list(given.begin(), given.end());
  if (list.size() == 1) list.resize(space, list[0]);
  if (space == 1) list.insert(list.begin(), neutral);
  return list;
}

Convolution problem(Args args, uint32_t lists, TensorView big, TensorView weight,
                    TensorView small) {
  auto space = size_t(weight.ndim() - 2);
  return {Way::small,
          weight.dtype(),
          array_of(big),
          array_of(weight),
          array_of(small),
          list_of(args.ints(lists), space, 1),
          list_of(args.ints(lists + 1), space, 0),
          list_of(args.ints(lists + 2), space, 1)};
}

bool by_shape(Args args) { return args.call()->flags & AJ_CALL_DETERMINISTIC; }

void forward(Args args) {
  TensorView x = args.tensor(0), w = args.tensor(1), bias = args.tensor(2);
  MutView out = args.result(0);
  if (out.numel() == 0) return;
  const aj_call* call = args.call();
  bool transposed = args.flag(6);
  Convolution c =
      problem(args, 3, transposed ? TensorView(out) : x, w, transposed ? x : TensorView(out));
  c.way = transposed ? Way::big : Way::small;
  run(c, call->device, call->stream, by_shape(args));
  if (bias)
    add_bias(transposed ? c.big : c.small, bias.bytes(), out.dtype(), call->device.device_id,
             call->stream);
}

void backward(Args args) {
  TensorView grad = args.tensor(0), x = args.tensor(1), w = args.tensor(2);
  const aj_call* call = args.call();
  int32_t device = call->device.device_id;
  bool transposed = args.flag(6);
  auto one = [&](Way way, TensorView big, TensorView weight, TensorView small) {
    Convolution c = problem(args, 3, big, weight, small);
    c.way = way;
    run(c, call->device, call->stream, by_shape(args));
  };
  if (args.bit(9, 0))
    transposed ? one(Way::small, grad, w, args.result(0)) : one(Way::big, args.result(0), w, grad);
  if (args.bit(9, 1))
    transposed ? one(Way::weight, grad, args.result(1), x)
               : one(Way::weight, x, args.result(1), grad);
  if (args.bit(9, 2))
    sum_bias(array_of(grad), args.result(2).bytes(), grad.dtype(), device, call->stream);
}

// All tensors of one dtype, none empty, with two or three dimensions of space at most, counted in
// 32 bits; a bias, or its gradient, that lies densely.
int32_t can_run(void*, const aj_call* call) {
  constexpr uint32_t tensors = 3;
  DLDataType dtype = {};
  for (uint32_t i = 0; i < tensors; ++i) {
    if (call->args[i].tag == AJ_NONE) continue;
    if (call->args[i].tag != AJ_TENSOR) return 0;
    TensorView t(call->args[i].v.tensor);
    if (i == 0) dtype = t.dtype();
    int64_t n = t.numel();
    if (!same(t.dtype(), dtype) || n == 0 || n > INT32_MAX) return 0;
    if (t.ndim() > 5 || (t.ndim() < 3 && !(t.ndim() == 1 && t.dense()))) return 0;
    if (std::any_of(t.strides().begin(), t.strides().end(), [](int64_t s) { return s == 0; }))
      return 0;
  }
  for (uint32_t i = 0; i < call->nrets; ++i) {
    if (call->rets[i].tag != AJ_TENSOR) continue;
    TensorView t(call->rets[i].v.tensor);
    if (t.numel() && (!same(t.dtype(), dtype) || (t.ndim() == 1 && !t.dense()))) return 0;
  }
  return convolves(dtype);
}

}  // namespace

const Kernel convolution_kernels[] = {
    {"convolution", {&plain_kernel<forward>, 0, 0, can_run}},
    {"convolution_backward", {&plain_kernel<backward>, 0, 0, can_run}},
    {nullptr, {}},
};

}  // namespace adjoin::vendor
