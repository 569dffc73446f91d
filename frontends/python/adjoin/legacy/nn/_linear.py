"""adjoin.legacy.nn._linear: modules with weights between vectors."""

import adjoin
from adjoin.nn import functional as F

from ._module import Module


class Linear(Module):
    def __init__(self, inputSize, outputSize, bias=True):
        super().__init__()
        self._own(weight=adjoin.empty(outputSize, inputSize), bias=adjoin.empty(outputSize) if bias else None)
        self.reset()

    def reset(self, stdv=None):
        return self._uniform(stdv, self.weight.shape[1] ** -0.5)

    def noBias(self):
        """Without a bias from now on."""
        self._own(bias=None)
        return self

    def compute(self, input, weight, bias=None):
        return F.linear(input, weight, bias)

    def __repr__(self):
        return f"{super().__repr__()}({self.weight.shape[1]} -> {self.weight.shape[0]})"


class PartialLinear(Linear):
    """Of a wide Linear the outputs that ``setPartition`` chose."""

    def __init__(self, inputsize, outputsize, bias=True):
        super().__init__(inputsize, outputsize, bias)
        self.resetPartition()

    def setPartition(self, indices):
        self.partition = indices.long()

    def resetPartition(self):
        self.partition = None

    def compute(self, input, weight, bias=None):
        if self.partition is not None:
            weight, bias = weight[self.partition], None if bias is None else bias[self.partition]
        return F.linear(input, weight, bias)


class Add(Module):
    """Adds a learnt vector, or one learnt number with ``scalar``."""

    def __init__(self, inputSize, scalar=False):
        super().__init__()
        self._own(bias=adjoin.empty(1 if scalar else inputSize))
        self.reset()

    def reset(self, stdv=None):
        return self._uniform(stdv, self.bias.numel() ** -0.5)

    def compute(self, input, bias):
        return input + bias


class Mul(Module):
    """Times one learnt number."""

    def __init__(self):
        super().__init__()
        self._own(weight=adjoin.empty(1))
        self.reset()

    def reset(self, stdv=None):
        return self._uniform(stdv, 1.0)

    def compute(self, input, weight):
        return input * weight


class CMul(Module):
    """Times learnt numbers of a shape, that of a sample."""

    def __init__(self, *args):
        super().__init__()
        self.size = tuple(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
        self._own(weight=adjoin.empty(self.size))
        self.reset()

    def reset(self, stdv=None):
        return self._uniform(stdv, self.weight.numel() ** -0.5)

    def compute(self, input, weight):
        if weight.numel() == input.numel():
            return input * weight.view(input.shape)
        if weight.numel() * input.shape[0] == input.numel():
            return input * weight.view(1, *input.shape[1:])
        return input * weight


class Euclidean(Module):
    """The distances to learnt points, the columns of the weight."""

    def __init__(self, inputSize, outputSize):
        super().__init__()
        self._own(weight=adjoin.empty(inputSize, outputSize))
        self.reset()

    def reset(self, stdv=None):
        return self._uniform(stdv, self.weight.shape[0] ** -0.5)

    def compute(self, input, weight, diagCov=1.0):
        apart = (weight - input.unsqueeze(-1)) * diagCov
        return apart.norm(2, -2)


class WeightedEuclidean(Euclidean):
    """The same with a learnt scale for each dimension of each point."""

    PARAMETERS = ("weight", "diagCov")

    def __init__(self, inputSize, outputSize):
        super().__init__(inputSize, outputSize)
        self._own(diagCov=adjoin.ones(inputSize, outputSize))

    def reset(self, stdv=None):
        super().reset(stdv)
        if hasattr(self, "diagCov"):
            self.diagCov.fill_(1)
        return self


class Cosine(Module):
    """The cosines to learnt directions, the rows of the weight."""

    def __init__(self, inputSize, outputSize):
        super().__init__()
        self._own(weight=adjoin.empty(outputSize, inputSize))
        self.reset()

    def reset(self, stdv=None):
        return self._uniform(stdv, self.weight.shape[0] ** -0.5)

    def compute(self, input, weight):
        return F.linear(input, weight) / (input.norm(2, -1, keepdim=True) * weight.norm(2, 1) + 1e-12)


class LookupTable(Module):
    """Rows of the weight by their numbers."""

    def __init__(self, nIndex, nOutput, paddingValue=-1, maxNorm=None, normType=None):
        super().__init__()
        self.paddingValue, self.maxNorm, self.normType = paddingValue, maxNorm, normType
        self.shouldScaleGradByFreq = False
        self._own(weight=adjoin.empty(nIndex, nOutput))
        self.reset()

    def reset(self, stdv=1):
        self.weight.normal_(0, stdv)
        return self

    def scaleGradByFreq(self):
        """A row's gradient is divided by how often it was used."""
        self.shouldScaleGradByFreq = True
        return self

    def setPadding(self, paddingValue):
        self.paddingValue = paddingValue
        return self

    def setMaxNorm(self, maxNorm):
        self.maxNorm = maxNorm
        return self

    def setNormType(self, normType):
        self.normType = normType
        return self

    def updateOutput(self, input):
        if self.maxNorm is not None:
            rows = input.long().flatten().unique()
            used = self.weight[rows]
            self.weight[rows] = used.renorm(self.normType or 2, 0, self.maxNorm)
        return super().updateOutput(input)

    def compute(self, input, weight):
        padding = self.paddingValue if self.paddingValue >= 0 else None
        return F.embedding(input.long(), weight, padding, scale_grad_by_freq=self.shouldScaleGradByFreq)
