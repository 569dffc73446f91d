"""adjoin.legacy.nn._pointwise: modules that compute each number by itself."""

import adjoin
from adjoin.nn import functional as F

from ._in_place import InPlace
from ._module import Module


class Abs(Module):
    def compute(self, input):
        return input.abs()


class AddConstant(InPlace):
    def __init__(self, constant_scalar, inplace=False):
        super().__init__(inplace)
        self.constant_scalar = constant_scalar

    def compute(self, input):
        return input + self.constant_scalar


class Clamp(Module):
    def __init__(self, min_value, max_value):
        super().__init__()
        self.min_val, self.max_val = min_value, max_value

    def compute(self, input):
        return input.clamp(self.min_val, self.max_val)


class ELU(InPlace):
    def __init__(self, alpha=1.0, inplace=False):
        super().__init__(inplace)
        self.alpha = alpha

    def compute(self, input):
        return F.elu(input, self.alpha)


class Exp(Module):
    def compute(self, input):
        return input.exp()


class HardShrink(Module):
    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = lambd

    def compute(self, input):
        return F.hardshrink(input, self.lambd)


class HardTanh(InPlace):
    def __init__(self, min_value=-1, max_value=1, inplace=False):
        super().__init__(inplace)
        self.min_val, self.max_val = min_value, max_value

    def compute(self, input):
        return F.hardtanh(input, self.min_val, self.max_val)


class ReLU6(HardTanh):
    def __init__(self, inplace=False):
        super().__init__(0, 6, inplace)


class LeakyReLU(InPlace):
    def __init__(self, negval=1 / 100, inplace=False):
        super().__init__(inplace)
        self.negval = negval

    def compute(self, input):
        return F.leaky_relu(input, self.negval)


class Log(Module):
    def compute(self, input):
        return input.log()


class LogSigmoid(Module):
    def compute(self, input):
        return F.logsigmoid(input)


class MulConstant(InPlace):
    def __init__(self, constant_scalar, inplace=False):
        super().__init__(inplace)
        self.constant_scalar = constant_scalar

    def compute(self, input):
        return input * self.constant_scalar


class Power(Module):
    def __init__(self, p):
        super().__init__()
        self.pow = p

    def compute(self, input):
        return input.pow(self.pow)


class PReLU(Module):
    """One learnt slope for negative numbers, or one for each of ``nOutputPlane`` planes."""

    def __init__(self, nOutputPlane=0):
        super().__init__()
        self.nOutputPlane = nOutputPlane
        self._own(weight=adjoin.full((nOutputPlane or 1,), 0.25))

    def compute(self, input, weight):
        return F.prelu(input, weight)


class RReLU(InPlace):
    """Slopes for negative numbers that are drawn from [lower, upper] in training; their mean otherwise."""

    def __init__(self, lower=1 / 8, upper=1 / 3, inplace=False):
        super().__init__(inplace)
        self.lower, self.upper = lower, upper
        self.noise = adjoin.Tensor()

    def updateOutput(self, input):
        if self.train:
            self.noise = adjoin.empty_like(input).uniform_(self.lower, self.upper)
        return super().updateOutput(input)

    def compute(self, input):
        slope = self.noise if self.train else (self.lower + self.upper) / 2
        return adjoin.where(input > 0, input, input * slope)


class Sigmoid(Module):
    def compute(self, input):
        return input.sigmoid()


class SoftPlus(Module):
    def __init__(self, beta=1, threshold=20):
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def compute(self, input):
        return F.softplus(input, self.beta, self.threshold)


class SoftShrink(Module):
    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = lambd

    def compute(self, input):
        return F.softshrink(input, self.lambd)


class SoftSign(Module):
    def compute(self, input):
        return F.softsign(input)


class Sqrt(Module):
    def compute(self, input):
        return input.sqrt()


class Square(Module):
    def compute(self, input):
        return input * input


class Tanh(Module):
    def compute(self, input):
        return input.tanh()


class TanhShrink(Module):
    def compute(self, input):
        return input - input.tanh()


class Threshold(InPlace):
    """What is not above the threshold becomes ``value``."""

    def __init__(self, threshold=0, value=0, inplace=False):
        super().__init__(inplace)
        self.threshold, self.val = threshold, value

    def compute(self, input):
        return F.threshold(input, self.threshold, self.val)


class ReLU(Threshold):
    def __init__(self, inplace=False):
        super().__init__(0, 0, inplace)


def _classes(input):
    """The dimension of the classes: the second one of a batch, of vectors or of pictures."""
    return 0 if input.dim() in (1, 3) else 1


class SoftMax(Module):
    def compute(self, input):
        return input.softmax(_classes(input))


class SoftMin(Module):
    def compute(self, input):
        return (-input).softmax(_classes(input))


class LogSoftMax(Module):
    def compute(self, input):
        return input.log_softmax(_classes(input))


class SpatialSoftMax(Module):
    """Over the planes of each place of a picture."""

    def compute(self, input):
        return input.softmax(-3)


class _Noise(InPlace):
    def __init__(self, p=0.5, inplace=False):
        super().__init__(inplace)
        if not 0 <= p < 1:
            raise ValueError(f"{type(self).__name__}: p is {p}, wanted a share from 0 to 1 (1 is left out)")
        self.p = p
        self.noise = adjoin.Tensor()

    def places(self, input):
        """The shape of what is drawn: ones where one draw serves a whole dimension."""
        return input.shape

    def setp(self, p):
        self.p = p

    def updateOutput(self, input):
        if self.train:
            kept = 1 - self.p
            self.noise = input.new_empty(self.places(input)).bernoulli_(kept).div_(kept)
        return super().updateOutput(input)

    def compute(self, input):
        return input * self.noise if self.train else input * 1


class Dropout(_Noise):
    """Leaves each number out with chance ``p`` in training, and scales the others up."""


class SpatialDropout(_Noise):
    """Leaves whole planes out, of pictures that may come in a batch."""

    def __init__(self, p=0.5):
        super().__init__(p)

    def places(self, input):
        return (*input.shape[:-2], 1, 1)


class VolumetricDropout(SpatialDropout):
    """Leaves whole volumes out."""

    def places(self, input):
        return (*input.shape[:-3], 1, 1, 1)


class GradientReversal(Module):
    """Gives its input, and ``-lambd`` times the gradient."""

    def __init__(self, lambd=1):
        super().__init__()
        self.lambd = lambd

    def setLambda(self, lambd):
        self.lambd = lambd

    def compute(self, input):
        return input * 1

    def updateGradInput(self, input, gradOutput):
        self.gradInput = gradOutput * -self.lambd
        return self.gradInput


class L1Penalty(Module):
    """Gives its input; ``loss`` is ``l1weight`` times the sum of its magnitudes, whose gradient joins on the way back."""

    def __init__(self, l1weight, sizeAverage=False, provideOutput=True):
        super().__init__()
        self.l1weight, self.sizeAverage, self.provideOutput = l1weight, sizeAverage, provideOutput

    def _weight(self, input):
        return self.l1weight / input.numel() if self.sizeAverage else self.l1weight

    def compute(self, input):
        return input * 1

    def updateOutput(self, input):
        self.loss = self._weight(input) * input.norm(1).item()
        return super().updateOutput(input)

    def updateGradInput(self, input, gradOutput):
        self.gradInput = input.sign() * self._weight(input)
        if self.provideOutput:
            self.gradInput += gradOutput
        return self.gradInput
