"""adjoin.nn.modules.conv: convolutions (cross-correlations, in fact) and their transposes."""

import math

import adjoin

from .. import functional as F
from .. import init
from ..parameter import Parameter
from ._settings import sizes
from .module import Module
from .utils import _pair, _single, _triple, ntuple

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """What all convolutions share; weight is (out_channels, in_channels / groups, *kernel_size)."""

    in_channels: int
    out_channels: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: str | tuple[int, ...]
    dilation: tuple[int, ...]
    transposed: bool
    output_padding: tuple[int, ...]
    groups: int
    padding_mode: str

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups,
                 bias, padding_mode, device, dtype, transposed=False,
                 output_padding=None):  # fmt: skip
        super().__init__()
        sizes(self, in_channels=in_channels, out_channels=out_channels, groups=groups)
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups:
            raise ValueError(
                f"{type(self).__name__}: in_channels must be divisible by groups: {in_channels} is not by {groups}"
            )
        if out_channels % groups:
            raise ValueError(
                f"{type(self).__name__}: out_channels must be divisible by groups: {out_channels} is not by {groups}"
            )
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(f"padding_mode must be one of {_PADDING_MODES}, but got padding_mode='{padding_mode}'")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding or (0,) * len(kernel_size)
        self.groups = groups
        self.padding_mode = padding_mode
        self._set_paddings()
        first, second = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        shape = (first, second // groups, *kernel_size)
        self.weight = Parameter(adjoin.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(adjoin.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name in ("padding", "padding_mode", "kernel_size", "dilation") and "_own_padding" in self.__dict__:
            self._set_paddings()  # of a layer that is changed after it was made

    def _set_paddings(self):
        """Splits the padding into what pad() does before and what the convolution does itself."""
        if self.padding == "valid":
            before = after = (0,) * len(self.kernel_size)
        elif self.padding == "same":
            total = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
            before = [size // 2 for size in total]
            after = [size - size // 2 for size in total]
        else:
            before = after = self.padding
        sides = list(zip(before, after, strict=True))
        # pad() counts from the last dimension to the first.
        self._reversed_padding_repeated_twice = [size for pair in reversed(sides) for size in pair]
        # Unequal sides and other values than zero are beyond the convolution itself.
        self._pads_first = self.padding_mode != "zeros" or list(before) != list(after)
        self._own_padding = (0,) * len(self.kernel_size) if self._pads_first else tuple(before)

    def reset_parameters(self):
        # A slope of sqrt(5) makes the bound 1 / sqrt(fan_in), the customary one.
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def _pad_first(self, input):
        mode = "constant" if self.padding_mode == "zeros" else self.padding_mode
        return F.pad(input, self._reversed_padding_repeated_twice, mode=mode)

    def extra_repr(self):
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"
        text += f", stride={self.stride}"
        if self.padding != (0,) * len(self.kernel_size):
            text += f", padding={self.padding}"
        if self.dilation != (1,) * len(self.kernel_size):
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * len(self.kernel_size):
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")
        self._set_paddings()


class Conv1d(_ConvNd):
    """Input (N, C_in, L) or (C_in, L), output (N, C_out, L_out) or (C_out, L_out)."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1,
                 groups=1, bias=True, padding_mode="zeros", device=None, dtype=None):  # fmt: skip
        padding = padding if isinstance(padding, str) else _single(padding)
        super().__init__(in_channels, out_channels, _single(kernel_size), _single(stride), padding,
                         _single(dilation), groups, bias, padding_mode, device, dtype)  # fmt: skip

    def forward(self, input):
        if self._pads_first:
            input = self._pad_first(input)
        return F.conv1d(input, self.weight, self.bias, self.stride, self._own_padding,
                        self.dilation, self.groups)  # fmt: skip


class Conv2d(_ConvNd):
    """Input (N, C_in, H, W) or (C_in, H, W), output (N, C_out, H_out, W_out) or without N."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1,
                 groups=1, bias=True, padding_mode="zeros", device=None, dtype=None):  # fmt: skip
        padding = padding if isinstance(padding, str) else _pair(padding)
        super().__init__(in_channels, out_channels, _pair(kernel_size), _pair(stride), padding,
                         _pair(dilation), groups, bias, padding_mode, device, dtype)  # fmt: skip

    def forward(self, input):
        if self._pads_first:
            input = self._pad_first(input)
        return F.conv2d(input, self.weight, self.bias, self.stride, self._own_padding,
                        self.dilation, self.groups)  # fmt: skip


class Conv3d(_ConvNd):
    """Input (N, C_in, D, H, W) or (C_in, D, H, W), output with C_out channels."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1,
                 groups=1, bias=True, padding_mode="zeros", device=None, dtype=None):  # fmt: skip
        padding = padding if isinstance(padding, str) else _triple(padding)
        super().__init__(in_channels, out_channels, _triple(kernel_size), _triple(stride), padding,
                         _triple(dilation), groups, bias, padding_mode, device, dtype)  # fmt: skip

    def forward(self, input):
        if self._pads_first:
            input = self._pad_first(input)
        return F.conv3d(input, self.weight, self.bias, self.stride, self._own_padding,
                        self.dilation, self.groups)  # fmt: skip


class _ConvTransposeNd(_ConvNd):
    """The gradient of a convolution as a layer; weight is (in_channels, out_channels / groups,
    *kernel_size).

    ``output_size`` of a call chooses among the sizes that the strided convolution would map to the
    input's.
    """

    _dims, _function = 0, ""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0,
                 output_padding=0, groups=1, bias=True, dilation=1, padding_mode="zeros",
                 device=None, dtype=None):  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        sizes = [ntuple(self._dims)(value)
                 for value in (kernel_size, stride, padding, dilation)]  # fmt: skip
        super().__init__(in_channels, out_channels, *sizes, groups, bias, padding_mode, device,
                         dtype, True, ntuple(self._dims)(output_padding))  # fmt: skip

    def forward(self, input, output_size=None):
        extra = self.output_padding
        if output_size is not None:
            extra = self._output_padding(input, list(output_size))
        return getattr(F, self._function)(input, self.weight, self.bias, self.stride, self.padding,
                                          extra, self.groups, self.dilation)  # fmt: skip

    def _output_padding(self, input, output_size, stride=None, padding=None, kernel_size=None, num_spatial_dims=None,
                        dilation=None):  # fmt: skip
        """What is added at the end so that the output has a size; settings that are left out are the layer's."""
        if stride is None:
            stride, padding, kernel_size, dilation = self.stride, self.padding, self.kernel_size, self.dilation
        count = num_spatial_dims or len(kernel_size)
        dilation = (1,) * count if dilation is None else dilation
        if len(output_size) not in (count, input.dim()):
            raise ValueError(
                f"{type(self).__name__}: output_size has {len(output_size)} elements, "
                f"{count} or {input.dim()} are wanted"
            )
        smallest = [
            (size - 1) * stride[d] - 2 * padding[d] + dilation[d] * (kernel_size[d] - 1) + 1
            for d, size in enumerate(input.shape[-count:])
        ]
        largest = [size + step - 1 for size, step in zip(smallest, stride, strict=True)]
        wanted = output_size[-count:]
        for low, size, high in zip(smallest, wanted, largest, strict=True):
            if not low <= size <= high:
                raise ValueError(
                    f"requested an output size of {wanted}, but valid sizes range from {smallest} "
                    f"to {largest} (for an input of {list(input.shape[-count:])})"
                )
        return tuple(size - low for size, low in zip(wanted, smallest, strict=True))


class ConvTranspose1d(_ConvTransposeNd):
    """Input (N, C_in, L) or (C_in, L)."""

    _dims, _function = 1, "conv_transpose1d"


class ConvTranspose2d(_ConvTransposeNd):
    """Input (N, C_in, H, W) or (C_in, H, W)."""

    _dims, _function = 2, "conv_transpose2d"


class ConvTranspose3d(_ConvTransposeNd):
    """Input (N, C_in, D, H, W) or (C_in, D, H, W)."""

    _dims, _function = 3, "conv_transpose3d"
