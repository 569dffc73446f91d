"""adjoin.nn.modules.pooling: maxima and means over windows."""

from .. import functional as F
from .module import Module
from .utils import _single

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveMaxPool2d", "AvgPool1d", "AvgPool2d",
    "MaxPool1d", "MaxPool2d",
]  # fmt: skip


class _MaxPool(Module):
    """The largest value of each window; stride is the window by default."""

    _function = ""

    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False,
                 ceil_mode=False):  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input):
        return getattr(F, self._function)(input, self.kernel_size, self.stride, self.padding, self.dilation,
                                          self.ceil_mode, self.return_indices)  # fmt: skip

    def extra_repr(self):
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """Input (N, C, L) or (C, L)."""

    _function = "max_pool1d"


class MaxPool2d(_MaxPool):
    """Input (N, C, H, W) or (C, H, W)."""

    _function = "max_pool2d"


class AvgPool1d(Module):
    """The mean of each window: input (N, C, L) or (C, L); stride is the window by default."""

    def __init__(
        self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True
    ):
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(kernel_size if stride is None else stride)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input):
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                            self.count_include_pad)  # fmt: skip

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(Module):
    """The mean of each window: input (N, C, H, W) or (C, H, W); stride is the window by default."""

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
                 divisor_override=None):  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input):
        return F.avg_pool2d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                            self.count_include_pad, self.divisor_override)  # fmt: skip

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AdaptivePool(Module):
    _function = ""

    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def forward(self, input):
        return getattr(F, self._function)(input, self.output_size)

    def extra_repr(self):
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptivePool):
    """Means over windows chosen so that (N, C, L) becomes (N, C, output_size)."""

    _function = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_AdaptivePool):
    """Means over windows chosen so that (N, C, H, W) becomes (N, C, *output_size); None keeps a
    dimension."""

    _function = "adaptive_avg_pool2d"


class AdaptiveMaxPool2d(_AdaptivePool):
    """Maxima over windows chosen so that (N, C, H, W) becomes (N, C, *output_size); None keeps a
    dimension."""

    _function = "adaptive_max_pool2d"
