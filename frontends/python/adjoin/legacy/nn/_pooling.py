"""adjoin.legacy.nn._pooling: pooling of pictures and volumes, its inverse, margins, and other sizes."""

import adjoin
from adjoin.nn import functional as F

from ._module import Module


class _Pooling(Module):
    ceil_mode = False

    def ceil(self):
        """Windows that reach beyond the end count."""
        self.ceil_mode = True
        return self

    def floor(self):
        """Windows that reach beyond the end are left out."""
        self.ceil_mode = False
        return self


class _MaxPooling(_Pooling):
    """Keeps ``indices``, the places of the greatest."""

    def compute(self, input):
        self._size = tuple(input.shape)
        out, self.indices = self.pool(input)
        return out


class SpatialMaxPooling(_MaxPooling):
    def __init__(self, kW, kH, dW=None, dH=None, padW=0, padH=0):
        super().__init__()
        self.kW, self.kH, self.dW, self.dH, self.padW, self.padH = kW, kH, dW or kW, dH or kH, padW, padH

    def pool(self, input):
        sizes, steps, pads = (self.kH, self.kW), (self.dH, self.dW), (self.padH, self.padW)
        return F.max_pool2d(input, sizes, steps, pads, ceil_mode=self.ceil_mode, return_indices=True)

    def __repr__(self):
        return f"{super().__repr__()}({self.kW}x{self.kH}, {self.dW}, {self.dH}, {self.padW}, {self.padH})"


class SpatialAdaptiveMaxPooling(_MaxPooling):
    """To a width and a height."""

    def __init__(self, w, h):
        super().__init__()
        self.w, self.h = w, h

    def pool(self, input):
        return F.adaptive_max_pool2d(input, (self.h, self.w), return_indices=True)


class SpatialFractionalMaxPooling(_MaxPooling):
    """Windows at places that are drawn: to a width and a height, or to shares of them where the arguments are below 1."""

    def __init__(self, poolSizeW, poolSizeH, arg1, arg2=None):
        super().__init__()
        arg2 = arg1 if arg2 is None else arg2
        self.poolSizeW, self.poolSizeH = poolSizeW, poolSizeH
        self.outW, self.outH, self.ratioW, self.ratioH = None, None, None, None
        if arg1 >= 1 and arg2 >= 1:
            self.outW, self.outH = int(arg1), int(arg2)
        elif 0 < arg1 < 1 and 0 < arg2 < 1:
            self.ratioW, self.ratioH = arg1, arg2
        else:
            raise ValueError(
                f"SpatialFractionalMaxPooling: {arg1}, {arg2}: wanted two sizes from 1, or two shares below 1"
            )
        self.randomSamples = None
        self.fixed = False

    def fixPoolingRegions(self, value=True):
        """The windows of the last run serve from now on."""
        self.fixed = value
        return self

    def updateOutput(self, input):
        if self.randomSamples is None or not self.fixed:
            batch, planes = (1, *input.shape)[-4:-2] if input.dim() == 3 else input.shape[:2]
            self.randomSamples = input.new_empty(batch, planes, 2).uniform_()
        return super().updateOutput(input)

    def pool(self, input):
        sizes = (self.outH, self.outW)
        if self.outW is None:
            sizes = (int(input.shape[-2] * self.ratioH), int(input.shape[-1] * self.ratioW))
        return F.fractional_max_pool2d(
            input, (self.poolSizeH, self.poolSizeW), sizes, return_indices=True, _random_samples=self.randomSamples
        )


class VolumetricMaxPooling(_MaxPooling):
    def __init__(self, kT, kW, kH, dT=None, dW=None, dH=None, padT=0, padW=0, padH=0):
        super().__init__()
        self.kT, self.kW, self.kH = kT, kW, kH
        self.dT, self.dW, self.dH = dT or kT, dW or kW, dH or kH
        self.padT, self.padW, self.padH = padT, padW, padH

    def pool(self, input):
        sizes, steps = (self.kT, self.kH, self.kW), (self.dT, self.dH, self.dW)
        pads = (self.padT, self.padH, self.padW)
        return F.max_pool3d(input, sizes, steps, pads, ceil_mode=self.ceil_mode, return_indices=True)


class SpatialMaxUnpooling(Module):
    """Puts numbers back to where a pooling module found them in its last run."""

    def __init__(self, poolingModule):
        super().__init__()
        self.pooling = poolingModule

    def compute(self, input):
        size = self.pooling._size[-self.DIMENSIONS :]
        flat = input.flatten(-self.DIMENSIONS)
        out = input.new_zeros(*flat.shape[:-1], adjoin.Size(size).numel())
        out = out.scatter(-1, self.pooling.indices.flatten(-self.DIMENSIONS), flat)
        return out.reshape(*input.shape[: -self.DIMENSIONS], *size)

    DIMENSIONS = 2


class VolumetricMaxUnpooling(SpatialMaxUnpooling):
    DIMENSIONS = 3


class SpatialAveragePooling(_Pooling):
    def __init__(self, kW, kH, dW=1, dH=1, padW=0, padH=0):
        super().__init__()
        self.kW, self.kH, self.dW, self.dH, self.padW, self.padH = kW, kH, dW, dH, padW, padH
        self.count_include_pad, self.divide = True, True

    def setCountIncludePad(self):
        self.count_include_pad = True
        return self

    def setCountExcludePad(self):
        self.count_include_pad = False
        return self

    def compute(self, input):
        sizes, steps, pads = (self.kH, self.kW), (self.dH, self.dW), (self.padH, self.padW)
        divisor = None if self.divide else 1
        return F.avg_pool2d(input, sizes, steps, pads, self.ceil_mode, self.count_include_pad, divisor)


class VolumetricAveragePooling(Module):
    def __init__(self, kT, kW, kH, dT=None, dW=None, dH=None):
        super().__init__()
        self.kT, self.kW, self.kH = kT, kW, kH
        self.dT, self.dW, self.dH = dT or kT, dW or kW, dH or kH

    def compute(self, input):
        return F.avg_pool3d(input, (self.kT, self.kH, self.kW), (self.dT, self.dH, self.dW))


class SpatialLPPooling(Module):
    """The p-norm of each window."""

    def __init__(self, nInputPlane, pnorm, kW, kH, dW=None, dH=None):
        super().__init__()
        self.nInputPlane, self.pnorm = nInputPlane, pnorm
        self.kW, self.kH, self.dW, self.dH = kW, kH, dW or kW, dH or kH

    def compute(self, input):
        powers = F.avg_pool2d(input.pow(self.pnorm), (self.kH, self.kW), (self.dH, self.dW), divisor_override=1)
        return powers.pow(1 / self.pnorm)


class _Margins(Module):
    """Left, right, top, bottom; those that are left out are as wide as the left one. Negative ones cut off."""

    MODE = "constant"

    def __init__(self, pad_l, pad_r=None, pad_t=None, pad_b=None):
        super().__init__()
        self.pad_l = pad_l
        self.pad_r, self.pad_t, self.pad_b = (pad_l if pad is None else pad for pad in (pad_r, pad_t, pad_b))

    def compute(self, input):
        return F.pad(input, (self.pad_l, self.pad_r, self.pad_t, self.pad_b), self.MODE)


class SpatialZeroPadding(_Margins):
    pass


class SpatialReflectionPadding(_Margins):
    MODE = "reflect"


class SpatialReplicationPadding(_Margins):
    MODE = "replicate"


class VolumetricReplicationPadding(Module):
    """Left, right, top, bottom, front, back."""

    def __init__(self, pleft, pright=None, ptop=None, pbottom=None, pfront=None, pback=None):
        super().__init__()
        self.pleft = pleft
        rest = (pright, ptop, pbottom, pfront, pback)
        self.pright, self.ptop, self.pbottom, self.pfront, self.pback = (pleft if p is None else p for p in rest)

    def compute(self, input):
        pads = (self.pleft, self.pright, self.ptop, self.pbottom, self.pfront, self.pback)
        return F.pad(input, pads, "replicate")


class SpatialUpSamplingNearest(Module):
    def __init__(self, scale):
        super().__init__()
        if scale < 1 or scale != int(scale):
            raise ValueError(f"SpatialUpSamplingNearest: scale is {scale}, wanted a whole number from 1")
        self.scale_factor = int(scale)

    def compute(self, input):
        return input.repeat_interleave(self.scale_factor, -1).repeat_interleave(self.scale_factor, -2)
