// core/ops/rare/complex.cpp: the composites of complex.toml.
#include <adjoin/kit/infer.hpp>
#include <adjoin/kit/ops.hpp>

namespace adjoin::ops {

aj_status* conj_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor copy = clone(b.tensor(0));
    if (copy.is_complex()) neg_(imag(copy));
    b.ret(0, copy);
  });
}

// A dtype as the classes of tensors are called.
static const char* named(const Tensor& t) {
  const DLDataType d = t.dtype();
  if (d == boolean) return "Bool";
  if (d.code == kDLUInt)
    return d.bits == 8 ? "Byte" : d.bits == 16 ? "UInt16" : d.bits == 32 ? "UInt32" : "UInt64";
  if (d.code == kDLInt)
    return d.bits == 8 ? "Char" : d.bits == 16 ? "Short" : d.bits == 32 ? "Int" : "Long";
  if (d.code == kDLBfloat) return "BFloat16";
  if (d.code == kDLComplex)
    return d.bits == 32 ? "ComplexHalf" : d.bits == 64 ? "ComplexFloat" : "ComplexDouble";
  return d.code != kDLFloat ? "Float8" : d.bits == 16 ? "Half" : d.bits == 32 ? "Float" : "Double";
}

aj_status* complex_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &re = b.tensor(0), &im = b.tensor(1);
    auto is_part = [](DLDataType d) { return d == float16 || d == float32 || d == float64; };
    if (!is_part(re.dtype()) || !is_part(im.dtype()))
      kit::raise_as("NotImplementedError", AJ_INVALID_ARGUMENT,
                    "Expected both inputs to be Half, Float or Double tensors but got ", named(re),
                    " and ", named(im));
    want(re.dtype() == im.dtype(), "real is ", re.dtype(), " and imag is ", im.dtype(),
         "; both must have one dtype");
    Sizes shape = broadcast(re.shape(), im.shape());
    b.ret(0, view_as_complex(contiguous(stack({expand(re, shape), expand(im, shape)}, -1))));
  });
}

aj_status* polar_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& size = b.tensor(0);
    DLDataType common;  // an angle in whole numbers has the digits of the length
    kit::check(kit::env.core->dtype_promote(size.dtype(), b.tensor(1).dtype(), &common));
    // Halves are rounded once, behind the products.
    const DLDataType wide = common == float16 ? float32 : common;
    const Tensor length = to(size, wide), angle = to(b.tensor(1), wide);
    b.ret(0, complex(to(length * cos(angle), common), to(length * sin(angle), common)));
  });
}

}  // namespace adjoin::ops
