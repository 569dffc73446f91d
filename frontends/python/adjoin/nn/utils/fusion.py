"""adjoin.nn.utils.fusion: a BatchNorm in evaluation folded into the layer before it."""

import copy

import adjoin

from ..parameter import Parameter

__all__ = [
    "fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights",
]  # fmt: skip


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """A convolution that does what ``conv`` and then ``bn`` do, both in evaluation."""
    if conv.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    fused = copy.deepcopy(conv)
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn must have running statistics")
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias,
        transpose,
    )  # fmt: skip
    return fused


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """The weight and bias of a convolution followed by a BatchNorm."""
    conv_b = adjoin.zeros_like(bn_rm) if conv_b is None else conv_b
    bn_w = adjoin.ones_like(bn_rm) if bn_w is None else bn_w
    bn_b = adjoin.zeros_like(bn_rm) if bn_b is None else bn_b
    scale = bn_w * adjoin.rsqrt(bn_rv + bn_eps)
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    return _parameters(conv_w, conv_w * scale.reshape(shape), conv_b,
                       (conv_b - bn_rm) * scale + bn_b)  # fmt: skip


def fuse_linear_bn_eval(linear, bn):
    """A Linear that does what ``linear`` and then ``bn`` do, both in evaluation."""
    if linear.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    fused = copy.deepcopy(linear)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """The weight and bias of a Linear followed by a BatchNorm."""
    linear_b = adjoin.zeros_like(bn_rm) if linear_b is None else linear_b
    scale = bn_w * adjoin.rsqrt(bn_rv + bn_eps)
    return _parameters(linear_w, linear_w * scale.unsqueeze(-1), linear_b,
                       (linear_b - bn_rm) * scale + bn_b)  # fmt: skip


def _parameters(old_weight, weight, old_bias, bias):
    return (
        Parameter(weight.detach().to(old_weight.dtype), old_weight.requires_grad),
        Parameter(bias.detach().to(old_bias.dtype), getattr(old_bias, "requires_grad", False)),
    )
