"""adjoin.nn.modules.dropout: layers that zero at random while training."""

from .. import functional as F
from ._settings import no_data
from .module import Module

__all__ = [
    "AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout",
]  # fmt: skip


class _DropoutNd(Module):
    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        no_data(self, p)
        if not isinstance(p, (int, float)):
            raise TypeError(
                f"{type(self).__name__}: p must be a number between 0 and 1, not {p!r}, a {type(p).__name__}"
            )
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def _drop(self, function, input):
        if not self.training:
            return input
        result = function(input, self.p, True)
        return input.copy_(result) if self.inplace else result

    def extra_repr(self):
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Zeroes each element with probability p and scales the others by 1 / (1 - p); any shape.

    Srivastava et al., Dropout, 2014.
    """

    def forward(self, input):
        return self._drop(F.dropout, input)


class Dropout1d(_DropoutNd):
    """Zeroes whole channels of (N, C, L) or (C, L)."""

    def forward(self, input):
        return self._drop(F.dropout1d, input)


class Dropout2d(_DropoutNd):
    """Zeroes whole channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input):
        return self._drop(F.dropout2d, input)


class Dropout3d(_DropoutNd):
    """Zeroes whole channels of (N, C, D, H, W) or (C, D, H, W)."""

    def forward(self, input):
        return self._drop(F.dropout3d, input)


class AlphaDropout(_DropoutNd):
    """Dropout that keeps the mean and variance of SELU networks (Klambauer et al., 2017)."""

    def forward(self, input):
        return self._drop(F.alpha_dropout, input)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels of (N, C, *)."""

    def forward(self, input):
        return self._drop(F.feature_alpha_dropout, input)
