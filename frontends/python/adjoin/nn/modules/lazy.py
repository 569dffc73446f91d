"""adjoin.nn.modules.lazy: layers that learn their input's size from the first input."""

import adjoin

from ..parameter import (
    UninitializedBuffer,
    UninitializedParameter,
    is_lazy,
)
from .batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .instancenorm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from .linear import Linear

__all__ = [
    "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d",
    "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
    "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d", "LazyLinear",
]  # fmt: skip


class LazyModuleMixin:
    """The part of a lazy layer that waits: a hook before the first forward calls
    ``initialize_parameters`` with its arguments, then the layer becomes ``cls_to_become``."""

    cls_to_become = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def initialize_parameters(self, *args, **kwargs):
        """Makes the tensors for the arguments of the first forward."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self):
        """Whether a parameter or buffer has no shape yet."""
        return any(is_lazy(t) for t in (*self._parameters.values(), *self._buffers.values()))

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        # One without a shape cannot be detached: it goes as it is.
        for name, param in self._parameters.items():
            if param is not None:
                keep = is_lazy(param) or keep_vars
                destination[prefix + name] = param if keep else param.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                keep = is_lazy(buffer) or keep_vars
                destination[prefix + name] = buffer if keep else buffer.detach()

    def _lazy_load_hook(self, state_dict, prefix, local_metadata, strict, missing_keys,
                        unexpected_keys, error_msgs):  # fmt: skip
        """Gives tensors without a shape that of what is loaded."""
        for parts in (self._parameters, self._buffers):
            for name, tensor in parts.items():
                given = state_dict.get(prefix + name)
                if is_lazy(tensor) and given is not None and not is_lazy(given):
                    with adjoin.no_grad():
                        tensor.materialize(given.shape)

    def _infer_parameters(self, module, args, kwargs=None):
        kwargs = kwargs or {}
        self.initialize_parameters(*args, **kwargs)
        if self.has_uninitialized_params():
            raise RuntimeError(f"module {type(self).__name__} has not been fully initialized")
        self._initialize_hook.remove()
        self._load_hook.remove()
        del self._initialize_hook, self._load_hook
        if self.cls_to_become is not None:
            self.__class__ = self.cls_to_become

    def _replicate_for_data_parallel(self):
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. "
            "Run a dummy forward pass to correctly initialize the modules"
        )


class LazyLinear(LazyModuleMixin, Linear):
    """Linear whose in_features is that of the first input."""

    cls_to_become = Linear

    def __init__(self, out_features, bias=True, device=None, dtype=None):
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self):
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input):
        if self.has_uninitialized_params():
            with adjoin.no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:  # the shapes came with a state dict
            self.in_features = self.weight.shape[-1]


class _LazyConv(LazyModuleMixin):
    """A convolution whose in_channels is that of the first input."""

    _transposed = False

    def __init__(self, out_channels, kernel_size, *args, bias=True, device=None, dtype=None,
                 **kwargs):  # fmt: skip
        super().__init__(0, 0, kernel_size, *args, bias=False, **kwargs)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self):
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input, *args, **kwargs):
        if not self.has_uninitialized_params():
            return
        dims = len(self.kernel_size)
        if input.dim() not in (dims + 1, dims + 2):
            raise RuntimeError(
                f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {input.shape}"
            )
        self.in_channels = input.shape[-dims - 1]
        if self.in_channels % self.groups:
            raise ValueError(
                f"{type(self).__name__}: in_channels must be divisible by groups: {self.in_channels} is not by {self.groups}"
            )
        sizes = (self.out_channels, self.in_channels)
        first, second = reversed(sizes) if self._transposed else sizes
        self.weight.materialize((first, second // self.groups, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


def _lazy_conv(cls):
    """The lazy form of a convolution, with the parameters in the order of its constructor."""

    class Lazy(_LazyConv, cls):
        cls_to_become = cls

        def __init__(self, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
                     bias=True, padding_mode="zeros", device=None, dtype=None):  # fmt: skip
            super().__init__(out_channels, kernel_size, stride, padding, dilation, groups,
                             padding_mode=padding_mode, bias=bias, device=device,
                             dtype=dtype)  # fmt: skip

    return _named(Lazy, cls)


def _lazy_transposed(cls):
    class Lazy(_LazyConv, cls):
        cls_to_become = cls
        _transposed = True

        def __init__(self, out_channels, kernel_size, stride=1, padding=0, output_padding=0,
                     groups=1, bias=True, dilation=1, padding_mode="zeros", device=None,
                     dtype=None):  # fmt: skip
            super().__init__(out_channels, kernel_size, stride, padding, output_padding, groups,
                             dilation=dilation, padding_mode=padding_mode, bias=bias,
                             device=device, dtype=dtype)  # fmt: skip

    return _named(Lazy, cls)


class _LazyNorm(LazyModuleMixin):
    """A normalization whose num_features is that of the first input."""

    def __init__(self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None,
                 dtype=None, *, bias=True):  # fmt: skip
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=bias)
        factory = {"device": device, "dtype": dtype}
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(**factory)
            if bias:
                self.bias = UninitializedParameter(**factory)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**factory)
            self.running_var = UninitializedBuffer(**factory)
            self.num_batches_tracked = adjoin.tensor(0, dtype=adjoin.int64, device=device)

    def reset_parameters(self):
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input):
        if not self.has_uninitialized_params():
            loaded = self.weight if self.weight is not None else self.running_mean
            if self.num_features == 0 and loaded is not None:  # they came from a state dict, before any input
                self.num_features = loaded.shape[0]
            return
        single = input.dim() == getattr(self, "_dims", -1) + 1  # instance norms take one example
        self.num_features = input.shape[0 if single else 1]
        for tensor in (self.weight, self.bias, self.running_mean, self.running_var):
            if is_lazy(tensor):
                tensor.materialize((self.num_features,))
        self.reset_parameters()


def _lazy_norm(cls):
    class Lazy(_LazyNorm, cls):
        cls_to_become = cls

    return _named(Lazy, cls)


def _named(made, cls):
    made.__name__ = made.__qualname__ = "Lazy" + cls.__name__
    made.__module__ = __name__
    made.__doc__ = f"{cls.__name__} that learns its number of channels from the first input."
    return made


LazyConv1d, LazyConv2d, LazyConv3d = map(_lazy_conv, (Conv1d, Conv2d, Conv3d))
LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d = map(
    _lazy_transposed, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
)
LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d = map(_lazy_norm, (BatchNorm1d, BatchNorm2d, BatchNorm3d))
LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d = map(
    _lazy_norm, (InstanceNorm1d, InstanceNorm2d, InstanceNorm3d)
)
