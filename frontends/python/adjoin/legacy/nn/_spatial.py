"""adjoin.legacy.nn._spatial: convolutions of pictures, and of sequences of vectors; widths come before heights."""

import adjoin
from adjoin.nn import functional as F

from ._module import Module


class _Convolution(Module):
    def _drawn(self, weight, bias, fan):
        self._own(weight=adjoin.empty(weight), bias=adjoin.empty(bias))
        self._fan = fan
        self.reset()

    def reset(self, stdv=None):
        return self._uniform(stdv, self._fan**-0.5)

    def noBias(self):
        """Without a bias from now on."""
        self._own(bias=None)
        return self


class SpatialConvolution(_Convolution):
    def __init__(self, nInputPlane, nOutputPlane, kW, kH, dW=1, dH=1, padW=0, padH=None):
        super().__init__()
        self.nInputPlane, self.nOutputPlane = nInputPlane, nOutputPlane
        self.kW, self.kH, self.dW, self.dH, self.padW = kW, kH, dW, dH, padW
        self.padH = padW if padH is None else padH
        self._drawn((nOutputPlane, nInputPlane, kH, kW), (nOutputPlane,), nInputPlane * kH * kW)

    def compute(self, input, weight, bias=None):
        return F.conv2d(input, weight, bias, (self.dH, self.dW), (self.padH, self.padW), self.dilation())

    def dilation(self):
        return 1

    def __repr__(self):
        sizes = f"{self.kW}x{self.kH}, {self.dW}, {self.dH}, {self.padW}, {self.padH}"
        return f"{super().__repr__()}({self.nInputPlane} -> {self.nOutputPlane}, {sizes})"


class SpatialDilatedConvolution(SpatialConvolution):
    def __init__(self, nInputPlane, nOutputPlane, kW, kH, dW=1, dH=1, padW=0, padH=None, dilationH=1, dilationW=None):
        self.dilationH, self.dilationW = dilationH, dilationH if dilationW is None else dilationW
        super().__init__(nInputPlane, nOutputPlane, kW, kH, dW, dH, padW, padH)
        self.dilationH, self.dilationW = dilationH, dilationH if dilationW is None else dilationW

    def dilation(self):
        return self.dilationH, self.dilationW


class SpatialFullConvolution(_Convolution):
    """Of [input, other] the output gets the height and width of the other one."""

    def __init__(self, nInputPlane, nOutputPlane, kW, kH, dW=1, dH=1, padW=0, padH=None, adjW=0, adjH=0):
        super().__init__()
        self.nInputPlane, self.nOutputPlane = nInputPlane, nOutputPlane
        self.kW, self.kH, self.dW, self.dH, self.padW = kW, kH, dW, dH, padW
        self.padH = padW if padH is None else padH
        self.adjW, self.adjH = adjW, adjH
        self._drawn((nInputPlane, nOutputPlane, kH, kW), (nOutputPlane,), nInputPlane * kH * kW)

    def compute(self, input, weight, bias=None):
        adjust = (self.adjH, self.adjW)
        if isinstance(input, list):
            input, other = input
            steps, pads, sizes = (self.dH, self.dW), (self.padH, self.padW), (self.kH, self.kW)
            reached = [(n - 1) * d - 2 * p + k for n, d, p, k in zip(input.shape[-2:], steps, pads, sizes)]
            adjust = tuple(want - got for want, got in zip(other.shape[-2:], reached))
        return F.conv_transpose2d(input, weight, bias, (self.dH, self.dW), (self.padH, self.padW), adjust)


class SpatialConvolutionLocal(_Convolution):
    """A kernel of its own for each place."""

    def __init__(self, nInputPlane, nOutputPlane, iW, iH, kW, kH, dW=1, dH=1, padW=0, padH=None):
        super().__init__()
        self.nInputPlane, self.nOutputPlane, self.iW, self.iH = nInputPlane, nOutputPlane, iW, iH
        self.kW, self.kH, self.dW, self.dH, self.padW = kW, kH, dW, dH, padW
        self.padH = padW if padH is None else padH
        self.oW = (iW + 2 * padW - kW) // dW + 1
        self.oH = (iH + 2 * self.padH - kH) // dH + 1
        weight = (self.oH, self.oW, nOutputPlane, nInputPlane, kH, kW)
        self._drawn(weight, (nOutputPlane, self.oH, self.oW), nInputPlane * kH * kW)

    def compute(self, input, weight, bias=None):
        single = input.dim() == 3
        batch = input.unsqueeze(0) if single else input
        pieces = F.unfold(batch, (self.kH, self.kW), 1, (self.padH, self.padW), (self.dH, self.dW))
        places = self.oH * self.oW
        weight = weight.reshape(places, self.nOutputPlane, -1)
        out = (weight @ pieces.permute(2, 1, 0)).permute(2, 1, 0)  # places: outputs by samples
        out = out.reshape(-1, self.nOutputPlane, self.oH, self.oW)
        out = out if bias is None else out + bias
        return out.squeeze(0) if single else out


class _Maps:
    """Tables of connections: rows [from, to]."""

    @staticmethod
    def full(nin, nout):
        """Every input plane to every output plane."""
        return adjoin.tensor([[i, o] for o in range(nout) for i in range(nin)])

    @staticmethod
    def oneToOne(nfeat):
        """Each plane to the one with its number."""
        return adjoin.arange(nfeat).unsqueeze(1).expand(nfeat, 2).contiguous()

    @staticmethod
    def random(nin, nout, nto):
        """To each output plane ``nto`` input planes that are drawn."""
        rows = [[int(i), o] for o in range(nout) for i in adjoin.randperm(nin)[:nto]]
        return adjoin.tensor(rows)


class SpatialConvolutionMap(_Convolution):
    """A convolution with kernels for some pairs of planes alone; ``maps`` makes tables of them."""

    maps = _Maps

    def __init__(self, conMatrix, kW, kH, dW=1, dH=1):
        super().__init__()
        self.connTable = conMatrix.long()
        self.kW, self.kH, self.dW, self.dH = kW, kH, dW, dH
        self.nInputPlane, self.nOutputPlane = (int(n) + 1 for n in self.connTable.max(0).values)
        fan = int(self.connTable[:, 1].bincount().max()) * kH * kW
        self._drawn((len(conMatrix), kH, kW), (self.nOutputPlane,), fan)

    def _dense(self, weight, rows, columns):
        sizes = (int(rows.max()) + 1, int(columns.max()) + 1, self.kH, self.kW)
        return weight.new_zeros(sizes).index_put((rows, columns), weight, accumulate=True)

    def compute(self, input, weight, bias):
        weight = self._dense(weight, self.connTable[:, 1], self.connTable[:, 0])
        return F.conv2d(input, weight, bias, (self.dH, self.dW))


class SpatialFullConvolutionMap(SpatialConvolutionMap):
    def compute(self, input, weight, bias):
        weight = self._dense(weight, self.connTable[:, 0], self.connTable[:, 1])
        return F.conv_transpose2d(input, weight, bias, (self.dH, self.dW))


class SpatialSubSampling(_Convolution):
    """The sum of each window, times the weight of its plane, and a bias."""

    def __init__(self, nInputPlane, kW, kH, dW=1, dH=1):
        super().__init__()
        self.nInputPlane, self.kW, self.kH, self.dW, self.dH = nInputPlane, kW, kH, dW, dH
        self._drawn((nInputPlane,), (nInputPlane,), kH * kW)

    def compute(self, input, weight, bias):
        sums = F.avg_pool2d(input, (self.kH, self.kW), (self.dH, self.dW), divisor_override=1)
        return sums * weight.view(-1, 1, 1) + bias.view(-1, 1, 1)


class TemporalConvolution(_Convolution):
    """Over a sequence of frames, [time, numbers], that may come in a batch."""

    def __init__(self, inputFrameSize, outputFrameSize, kW, dW=1):
        super().__init__()
        self.inputFrameSize, self.outputFrameSize, self.kW, self.dW = inputFrameSize, outputFrameSize, kW, dW
        self._drawn((outputFrameSize, inputFrameSize * kW), (outputFrameSize,), inputFrameSize * kW)

    def compute(self, input, weight, bias):
        windows = input.unfold(-2, self.kW, self.dW).transpose(-1, -2)
        return F.linear(windows.flatten(-2), weight, bias)


class TemporalSubSampling(_Convolution):
    """The sum of each window of frames, times a weight for each number of a frame, and a bias."""

    def __init__(self, inputFrameSize, kW, dW=1):
        super().__init__()
        self.inputFrameSize, self.kW, self.dW = inputFrameSize, kW, dW
        self._drawn((inputFrameSize,), (inputFrameSize,), kW)

    def compute(self, input, weight, bias):
        return input.unfold(-2, self.kW, self.dW).sum(-1) * weight + bias


class TemporalMaxPooling(Module):
    def __init__(self, kW, dW=None):
        super().__init__()
        self.kW, self.dW = kW, dW or kW

    def compute(self, input):
        return input.unfold(-2, self.kW, self.dW).max(-1).values


class VolumetricConvolution(_Convolution):
    def __init__(self, nInputPlane, nOutputPlane, kT, kW, kH, dT=1, dW=1, dH=1, padT=0, padW=None, padH=None):
        super().__init__()
        self.nInputPlane, self.nOutputPlane = nInputPlane, nOutputPlane
        self.kT, self.kW, self.kH, self.dT, self.dW, self.dH = kT, kW, kH, dT, dW, dH
        self.padT, self.padW = padT, padT if padW is None else padW
        self.padH = self.padW if padH is None else padH
        self._drawn((nOutputPlane, nInputPlane, kT, kH, kW), (nOutputPlane,), nInputPlane * kT * kH * kW)

    def compute(self, input, weight, bias=None):
        steps, pads = (self.dT, self.dH, self.dW), (self.padT, self.padH, self.padW)
        return F.conv3d(input, weight, bias, steps, pads)


class VolumetricFullConvolution(_Convolution):
    def __init__(self, nInputPlane, nOutputPlane, kT, kW, kH, dT=1, dW=1, dH=1, padT=0, padW=0, padH=0, adjT=0, adjW=0, adjH=0):  # fmt: skip
        super().__init__()
        self.nInputPlane, self.nOutputPlane = nInputPlane, nOutputPlane
        self.kT, self.kW, self.kH, self.dT, self.dW, self.dH = kT, kW, kH, dT, dW, dH
        self.padT, self.padW, self.padH, self.adjT, self.adjW, self.adjH = padT, padW, padH, adjT, adjW, adjH
        self._drawn((nInputPlane, nOutputPlane, kT, kH, kW), (nOutputPlane,), nInputPlane * kT * kH * kW)

    def compute(self, input, weight, bias=None):
        steps, pads = (self.dT, self.dH, self.dW), (self.padT, self.padH, self.padW)
        return F.conv_transpose3d(input, weight, bias, steps, pads, (self.adjT, self.adjH, self.adjW))
