// plugins/gpu/kernels/pieces.cuh: activations and losses made of pieces, and their gradients, each
// in one pass.
#include <adjoin/kit/pieces.hpp>

#include "../pointwise.cuh"

namespace adjoin::gpu {

AJ_KERNELS(pieces_kernels) = {
    {"nn::hardshrink", one<HardshrinkChooser, floating>},
    {"nn::softshrink", one<SoftshrinkChooser, floating>},
    {"nn::threshold", one<ThresholdChooser, floating>},
    {"_::nan_to_num_each", one<NanToNumChooser, floating>},
    {"_::prelu_each", two<scalar::Prelu, floating>},
    {"_::glu_each", two<scalar::Glu, floating>},
    {"_::logit_each", one<LogitChooser, floating>},
    {"_::huber_each", two<HuberChooser, floating>},
    {"_::bce_logits_each", two<scalar::BceLogits, floating>},
    {"_::hardtanh_backward", two<HardtanhSlopeChooser, floating>},
    {"_::shrink_backward", two<ShrinkSlopeChooser, floating>},
    {"_::leaky_relu_backward", two<LeakyReluSlopeChooser, floating>},
    {"_::hardswish_backward", two<scalar::HardswishSlope, floating>},
    {"_::elu_backward", two<EluSlopeChooser, floating>},
    {"_::softplus_backward", two<SoftplusSlopeChooser, floating>},
    {"_::prelu_backward", three<scalar::PreluSlope, floating>},
    {"_::prelu_weight_backward", two<scalar::PreluWeightSlope, floating>},
    {"_::glu_gate_backward", three<scalar::GluGateSlope, floating>},
    {"_::huber_backward", three<HuberSlopeChooser, floating>},
    {"_::bce_logits_backward", three<scalar::BceLogitsSlope, floating>},
    {nullptr, {}},
};

}  // namespace adjoin::gpu
