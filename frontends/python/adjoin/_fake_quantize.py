"""adjoin._fake_quantize: rounds to the numbers that an integer with a scale could hold, and stays in floats.

The gradient passes through where the number could be held, and is zero where it was cut (Jacob et al., "Quantization and Training
of Neural Networks for Efficient Integer-Arithmetic-Only Inference", CVPR 2018).
"""

import adjoin

from . import _C
from ._overridden import handed_over, overridden
from .autograd.function import Function


class _Rounded(Function):
    @staticmethod
    def forward(ctx, input, scale, zero, low, high):
        at = zero + (input * scale.reciprocal()).round()
        ctx.save_for_backward((at >= low) & (at <= high))
        return ((at.clamp(low, high) - zero) * scale).to(input.dtype)

    @staticmethod
    def backward(ctx, grad):
        (held,) = ctx.saved_tensors
        return adjoin.where(held, grad, 0), None, None, None, None


def _check(name, input, zero_point, quant_min, quant_max):
    if not input.is_floating_point():
        raise RuntimeError(f"{name}: input is {input.dtype}; floating-point numbers are rounded")
    if quant_min > quant_max:
        raise RuntimeError(
            f"{name}: `quant_min` should be less than or equal to `quant_max`, they are {quant_min} and {quant_max}"
        )
    if zero_point.numel() and not quant_min <= int(zero_point.min()) <= int(zero_point.max()) <= quant_max:
        raise RuntimeError(
            f"{name}: `zero_point` must be between `quant_min` and `quant_max`, {quant_min} and {quant_max}; "
            f"it is {zero_point.tolist()}"
        )


def fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max):
    """``(clamp(round(input / scale) + zero_point, quant_min, quant_max) - zero_point) * scale``, in the shape and dtype of input;
    scale and zero_point are numbers or tensors of one element."""
    if overridden(input, scale, zero_point):
        return handed_over(fake_quantize_per_tensor_affine, (input, scale, zero_point), locals())
    name = "fake_quantize_per_tensor_affine"
    scale = _C.as_tensor(scale, dtype=_C.float32, device=input.device)
    zero = _C.as_tensor(zero_point, device=input.device)
    if scale.numel() != 1 or zero.numel() != 1:
        raise RuntimeError(
            f"{name}: one scale and one zero_point are wanted, their shapes are {tuple(scale.shape)} and {tuple(zero.shape)}; "
            "fake_quantize_per_channel_affine takes one for each channel"
        )
    _check(name, input, zero, quant_min, quant_max)
    return _Rounded.apply(input, scale.reshape(()), zero.reshape(()), quant_min, quant_max)


def fake_quantize_per_channel_affine(input, scale, zero_point, axis, quant_min, quant_max):
    """fake_quantize_per_tensor_affine with a scale and a zero_point for each element of dimension ``axis``."""
    if overridden(input, scale, zero_point):
        return handed_over(fake_quantize_per_channel_affine, (input, scale, zero_point), locals())
    name = "fake_quantize_per_channel_affine"
    if not 0 <= axis < input.dim():
        raise RuntimeError(f"{name}: axis must be between 0 and {input.dim() - 1}, it is {axis}")
    if scale.dtype is not _C.float32:
        raise RuntimeError(f"{name}: scale must be float32, it is {scale.dtype}")
    if tuple(scale.shape) != (input.shape[axis],) or scale.shape != zero_point.shape:
        raise RuntimeError(
            f"{name}: scale and zero_point must have the {input.shape[axis]} elements of dimension {axis}, "
            f"their shapes are {tuple(scale.shape)} and {tuple(zero_point.shape)}"
        )
    _check(name, input, zero_point, quant_min, quant_max)
    along = [-1 if d == axis else 1 for d in range(input.dim())]
    return _Rounded.apply(input, scale.reshape(along), zero_point.reshape(along), quant_min, quant_max)
