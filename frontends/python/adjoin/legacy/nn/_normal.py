"""adjoin.legacy.nn._normal: normalization over batches, over neighbouring planes, over neighbourhoods of pictures."""

import adjoin
from adjoin.nn import functional as F

from ._module import Module


class BatchNormalization(Module):
    DIMENSIONS = 2

    def __init__(self, nOutput, eps=1e-5, momentum=0.1, affine=True):
        super().__init__()
        self.affine, self.eps, self.momentum = affine, eps, momentum
        self.running_mean, self.running_var = adjoin.zeros(nOutput), adjoin.ones(nOutput)
        self._own(weight=adjoin.empty(nOutput) if affine else None, bias=adjoin.empty(nOutput) if affine else None)
        self.reset()

    def reset(self, stdv=None):
        self.running_mean.zero_()
        self.running_var.fill_(1)
        if self.affine:
            self.weight.uniform_()
            self.bias.zero_()
        return self

    def compute(self, input, weight=None, bias=None):
        if input.dim() != self.DIMENSIONS:
            shape, kind = tuple(input.shape), type(self).__name__
            raise ValueError(f"{kind}: the input has shape {shape}, wanted {self.DIMENSIONS} dimensions, samples first")
        return F.batch_norm(
            input, self.running_mean, self.running_var, weight, bias, self.train, self.momentum, self.eps
        )


class SpatialBatchNormalization(BatchNormalization):
    DIMENSIONS = 4


class VolumetricBatchNormalization(BatchNormalization):
    DIMENSIONS = 5


class SpatialCrossMapLRN(Module):
    """Each number over what its neighbours in ``size`` planes amount to."""

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1):
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def compute(self, input):
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)


class _Neighbourhood(Module):
    """Has a kernel, a vector or a matrix of odd sizes; its weights sum to one over all planes."""

    def __init__(self, nInputPlane=1, kernel=None):
        super().__init__()
        self.nInputPlane = nInputPlane
        self.kernel = adjoin.ones(9, 9) if kernel is None else kernel
        if self.kernel.dim() not in (1, 2) or any(n % 2 == 0 for n in self.kernel.shape):
            shape = tuple(self.kernel.shape)
            raise ValueError(f"{type(self).__name__}: the kernel has shape {shape}, wanted one or two odd sizes")

    def mean(self, batch):
        """The weighted mean around each place over all planes; beyond the border is nothing."""
        kernel = self.kernel.outer(self.kernel) if self.kernel.dim() == 1 else self.kernel
        kernel = (kernel / (kernel.sum() * self.nInputPlane)).to(batch)
        weight = kernel.expand(1, self.nInputPlane, *kernel.shape)
        pads = tuple(n // 2 for n in kernel.shape)
        return F.conv2d(batch, weight, None, 1, pads) / F.conv2d(adjoin.ones_like(batch[:1]), weight, None, 1, pads)

    def compute(self, input):
        return self.normal(input) if input.dim() == 4 else self.normal(input.unsqueeze(0)).squeeze(0)


class SpatialSubtractiveNormalization(_Neighbourhood):
    """Without the mean around each place."""

    def normal(self, batch):
        return batch - self.mean(batch)


class SpatialDivisiveNormalization(_Neighbourhood):
    """Over the deviation around each place; one that is not above the threshold becomes ``thresval``."""

    def __init__(self, nInputPlane=1, kernel=None, threshold=1e-4, thresval=None):
        super().__init__(nInputPlane, kernel)
        self.threshold = threshold
        self.thresval = threshold if thresval is None else thresval

    def normal(self, batch):
        # As it was computed: the root of the sums, over what the kernel sums to at this place.
        share = self.mean(batch * batch)
        reached = self._reached(batch)
        return batch / F.threshold((share * reached).sqrt() / reached, self.threshold, self.thresval)

    def _reached(self, batch):
        """The part of the kernel that is inside of the picture, at each place."""
        kernel = self.kernel.outer(self.kernel) if self.kernel.dim() == 1 else self.kernel
        kernel = (kernel / kernel.sum()).to(batch)[None, None]
        pads = tuple(n // 2 for n in kernel.shape[-2:])
        return F.conv2d(adjoin.ones_like(batch[:1, :1]), kernel, None, 1, pads)


class SpatialContrastiveNormalization(SpatialDivisiveNormalization):
    """Subtractive, then divisive."""

    def normal(self, batch):
        return super().normal(batch - self.mean(batch))
