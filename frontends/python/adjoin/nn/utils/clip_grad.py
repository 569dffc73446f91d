"""adjoin.nn.utils.clip_grad: gradients made smaller together, or one by one."""

import math
import warnings

import adjoin

from ... import _C


_total_norm, _scale = _C.find_op("total_norm"), _C.find_op("fused_scale_")


def _alike(tensors):
    """Can one call take them all?"""
    dtype, device = tensors[0].dtype, tensors[0].device
    return dtype.is_floating_point and all(t.dtype is dtype and t.device == device for t in tensors)


def _listed(parameters):
    return [parameters] if isinstance(parameters, adjoin.Tensor) else list(parameters)


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of all ``tensors`` as if they were one vector, as a 0-dim tensor."""
    tensors = _listed(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return adjoin.tensor(0.0)
    with adjoin.no_grad():
        if norm_type in (1.0, 2.0, math.inf) and _alike(tensors):
            total = _total_norm(tensors, norm_type)
        else:
            norms = [tensor.norm(norm_type) for tensor in tensors]
            device = norms[0].device
            total = adjoin.stack([norm.to(device) for norm in norms]).norm(norm_type)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is "
            "non-finite, so "
            "it cannot be clipped. To disable this error and scale the gradients by the "
            "non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scales the gradients so that ``total_norm`` becomes at most ``max_norm``."""
    grads = [p.grad for p in _listed(parameters) if p.grad is not None]
    if not grads:
        return
    with adjoin.no_grad():
        scale = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        if _alike(grads):
            _scale(grads, scale.to(grads[0].device))
        else:
            for grad in grads:
                grad.mul_(scale.to(grad.device))


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scales all gradients, in place, so that their norm together is at most ``max_norm``;
    returns the norm before."""
    parameters = _listed(parameters)
    with adjoin.no_grad():
        grads = [p.grad for p in parameters if p.grad is not None]
        total = get_total_norm(grads, norm_type, error_if_nonfinite)
        clip_grads_with_norm_(parameters, max_norm, total)
    return total


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Clamps every element of every gradient to [-clip_value, clip_value], in place."""
    clip_value = float(clip_value)
    if clip_value < 0:
        raise ValueError(
            f"clip_grad_value_: clip_value is {clip_value}; gradients are clamped to [-clip_value, "
            "clip_value], so it must not be negative"
        )
    with adjoin.no_grad():
        for parameter in _listed(parameters):
            if parameter.grad is not None:
                parameter.grad.clamp_(min=-clip_value, max=clip_value)


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """clip_grad_norm_() by its old name."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)
