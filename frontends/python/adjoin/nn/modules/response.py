"""adjoin.nn.modules.response: normalization over neighbouring channels (Krizhevsky et al.,
2012)."""

from .. import functional as F
from .module import Module

__all__ = ["CrossMapLRN2d", "LocalResponseNorm"]


class _Response(Module):
    def __init__(self, size, alpha=1e-4, beta=0.75, k=1.0):
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input):
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self):
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class LocalResponseNorm(_Response):
    """x / (k + alpha mean(x^2))^beta, the mean over ``size`` neighbouring channels: (N, C, *)."""


class CrossMapLRN2d(_Response):
    """LocalResponseNorm of (N, C, H, W) by its old name."""

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1):
        super().__init__(size, alpha, beta, k)

    def forward(self, input):
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        return super().forward(input)
