// fixed16.cpp: a dtype of one's own: numbers in steps of 1/256 between -128 and 128, in two bytes.
//
//     adjoin.load_plugin("./libaj_fixed16.so")
//     x = adjoin.randn(4).to(adjoin.dtype("fixed16"))
//     (x * x + x).to(adjoin.float32)
#include <adjoin/kit/kit.hpp>

namespace {

using namespace adjoin::kit;

DLDataType fixed16;

int16_t kept(double x) { return int16_t(std::clamp(std::nearbyint(x * 256), -32768.0, 32767.0)); }

// Any dtype to any other, one of them ours.
aj_status* copy(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    const aj_operand &to = p.ops[0], &from = p.ops[1];
    for_rows(p, [&](char** at, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        char* dst = at[0] + i * row_stride(p, 0);
        const char* src = at[1] + i * row_stride(p, 1);
        double x = 0;
        if (same(from.dtype, fixed16))
          x = *reinterpret_cast<const int16_t*>(src) / 256.0;
        else
          Convert<double>::load(&x, src, from.dtype, 0, 1);
        if (same(to.dtype, fixed16))
          *reinterpret_cast<int16_t*>(dst) = kept(x);
        else
          Convert<double>::store(dst, to.dtype, 0, &x, 1);
      }
    });
  });
}
int32_t copies_ours(void*, const aj_call* call) {
  for (uint32_t i = 0; i < 2; ++i)
    if (call->args[i].tag == AJ_TENSOR && same(call->args[i].v.tensor->dl.dtype, fixed16)) return 1;
  return 0;
}

template <class F>
aj_status* binary_fixed(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    for_rows(p, [&](char** at, int64_t n) {
      for (int64_t i = 0; i < n; ++i)
        *reinterpret_cast<int16_t*>(at[0] + i * row_stride(p, 0)) =
            kept(F()(*reinterpret_cast<const int16_t*>(at[1] + i * row_stride(p, 1)) / 256.0,
                     *reinterpret_cast<const int16_t*>(at[2] + i * row_stride(p, 2)) / 256.0));
    });
  });
}
int32_t computes_ours(void*, const aj_call* call) {
  for (uint32_t i = 0; i < 2; ++i)
    if (call->args[i].tag != AJ_TENSOR || !same(call->args[i].v.tensor->dl.dtype, fixed16))
      return 0;
  return 1;
}

}  // namespace

AJ_PLUGIN(.name = "fixed16", .version = "1.0.0", .provides = "dtype:fixed16") {
  check(core().dtype_register(AJ_STR_LIT("fixed16"), 16, AJ_CLASS_OPAQUE, &fixed16));
  constexpr int32_t first = 50;  // before the processor's own, which would not know the dtype
  static const Kernel copies[] = {{"copy_", {&copy, 0, kInner, &copies_ours}}, {nullptr, {}}};
  static const Kernel sums[] = {
      {"add", {&binary_fixed<std::plus<>>, 0, kInner, &computes_ours}},
      {"sub", {&binary_fixed<std::minus<>>, 0, kInner, &computes_ours}},
      {"mul", {&binary_fixed<std::multiplies<>>, 0, kInner, &computes_ours}},
      {nullptr, {}}};
  plugin.kernels("cpu", copies, first).kernels("cpu", sums, first);
}
