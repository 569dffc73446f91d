"""adjoin.nn.modules.padding: layers that add a border."""

from .. import functional as F
from .module import Module
from .utils import ntuple

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d",
    "ConstantPad3d", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d",
    "ReplicationPad2d", "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


class _Pad(Module):
    """``padding`` is one number or (before, after) per dimension, from the last one backwards."""

    _sides, _mode = 0, "constant"

    def __init__(self, padding):
        super().__init__()
        self.padding = ntuple(self._sides)(padding)

    def forward(self, input):
        return F.pad(input, self.padding, mode=self._mode)

    def extra_repr(self):
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, mode="constant", value=self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPadNd):
    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class _CircularPadNd(_Pad):
    def forward(self, input):
        wanted = self._sides // 2 + 1, self._sides // 2 + 2
        if input.dim() not in wanted:
            raise ValueError(
                f"{type(self).__name__}: expected {wanted[0]}D or {wanted[1]}D input "
                f"(got {input.dim()}D input of shape {list(input.shape)})"
            )
        return super().forward(input)


class _ReflectionPadNd(_Pad):
    _mode = "reflect"


class _ReplicationPadNd(_Pad):
    _mode = "replicate"


class ConstantPad1d(_ConstantPadNd):
    """Adds ``value`` at both ends of the last dimension."""

    _sides = 2


class ConstantPad2d(_ConstantPadNd):
    """Adds ``value`` around the last two dimensions."""

    _sides = 4


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """Adds zeros at both ends of the last dimension."""


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """Adds zeros around the last two dimensions."""


class ReflectionPad1d(_ReflectionPadNd):
    """Mirrors the values without repeating the edge."""

    _sides = 2


class ReflectionPad2d(_ReflectionPadNd):
    """Mirrors the values without repeating the edge."""

    _sides = 4


class ReplicationPad1d(_ReplicationPadNd):
    """Repeats the edge."""

    _sides = 2


class ReplicationPad2d(_ReplicationPadNd):
    """Repeats the edge."""

    _sides = 4


class CircularPad1d(_CircularPadNd):
    """Continues at the opposite edge."""

    _sides, _mode = 2, "circular"


class CircularPad2d(_CircularPadNd):
    """Continues at the opposite edge."""

    _sides, _mode = 4, "circular"


class ConstantPad3d(_ConstantPadNd):
    """Adds ``value`` around the last three dimensions."""

    _sides = 6


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """Adds zeros around the last three dimensions."""


class ReflectionPad3d(_ReflectionPadNd):
    """Mirrors the values without repeating the edge."""

    _sides = 6


class ReplicationPad3d(_ReplicationPadNd):
    """Repeats the edge."""

    _sides = 6


class CircularPad3d(_CircularPadNd):
    """Continues at the opposite edge."""

    _sides, _mode = 6, "circular"
