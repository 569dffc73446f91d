"""adjoin.optim._helpers: what optimizers outside of the package, written after the pattern of PyTorch's, take from ``optim.optimizer``."""

import functools
import math

import adjoin

DeviceDict = dict[adjoin.device | None, adjoin.Tensor]
DeviceDtypeDict = dict[tuple[adjoin.device, adjoin.dtype] | None, adjoin.Tensor]

# Paragraphs for docstrings.
_params_doc = "params (iterable): tensors, pairs of a name and a tensor, or dictionaries of a group's settings"
_foreach_doc = "foreach (bool, optional): whether one call serves all parameters of a group"
_fused_doc = "fused (bool, optional): whether one kernel does the whole step"
_capturable_doc = "capturable (bool, optional): whether a step may be recorded in a graph of the device"
_differentiable_doc = "differentiable (bool, optional): whether gradients flow through the step"
_maximize_doc = "maximize (bool, optional): whether the objective is to grow"


def _use_grad_for_differentiable(func):
    """A step that is recorded if the optimizer's default ``differentiable`` says so, and is not otherwise."""

    @functools.wraps(func)
    def step(self, *args, **kwargs):
        with adjoin.set_grad_enabled(bool(self.defaults.get("differentiable"))):
            return func(self, *args, **kwargs)

    return step


def _disable_dynamo_if_unsupported(single_tensor_fn=None):
    """The function itself: nothing is compiled that was not asked for."""
    return lambda func: func


def _get_value(x):
    """A setting or a count as a number."""
    return x.item() if isinstance(x, adjoin.Tensor) else x


def _to_scalar(x):
    """A setting without dimensions, where it is a tensor of one element."""
    return x.squeeze() if isinstance(x, adjoin.Tensor) and x.dim() else x


def _stack_if_compiling(x):
    """The list itself."""
    return x


def _dispatch_sqrt(x):
    """The root of a number or a tensor."""
    return x.sqrt() if isinstance(x, adjoin.Tensor) else math.sqrt(x)


def _get_scalar_dtype(is_fused=None):
    """The dtype of step counts."""
    wide = not is_fused and adjoin.get_default_dtype() == adjoin.float64
    return adjoin.float64 if wide else adjoin.float32


def _get_foreach_kernels_supported_devices():
    """Kinds of devices where ``foreach`` is the default."""
    return ["cuda"]


def _get_fused_kernels_supported_devices():
    """Kinds of devices that take ``fused``."""
    return ["cuda", "cpu"]


def _get_capturable_supported_devices(supports_xla=True):
    """Kinds of devices that take ``capturable``."""
    return ["cuda"]


def _default_to_fused_or_foreach(params, differentiable, use_fused=False):
    """(fused, foreach): how to step where the user did not say."""
    if differentiable:
        return False, False
    params = [p for p in params if p is not None]
    plain = all(type(p) in (adjoin.Tensor, adjoin.nn.Parameter) for p in params)

    def are_on(kinds):
        return plain and all(p.device.type in kinds for p in params)

    fused = use_fused and are_on(_get_fused_kernels_supported_devices()) and all(p.is_floating_point() for p in params)
    return fused, not fused and are_on(_get_foreach_kernels_supported_devices())


def _device_dtype_check_for_fused(p, cuda_unsupported=False):
    """Raises where a parameter cannot be part of a fused step."""
    kinds = _get_fused_kernels_supported_devices()
    if p.device.type not in kinds or not p.is_floating_point():
        raise RuntimeError(
            f"`fused=True` requires all the params to be floating point Tensors of supported devices: {kinds} but {p.dtype} and {p.device.type}"
        )


def _view_as_real(params, *state_and_grads):
    """Complex tensors of the lists become pairs of reals over the same memory."""
    for i, p in enumerate(params):
        if p.is_complex():
            params[i] = adjoin.view_as_real(p)
            for row in state_and_grads:
                row[i] = adjoin.view_as_real(row[i])
