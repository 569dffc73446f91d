"""adjoin.legacy.nn._shapes: modules that move numbers, choose among them, or bring a dimension to one number."""

import adjoin

from ._module import Module, as_dtype


class Identity(Module):
    """Gives its input, a tensor or a table."""

    def updateOutput(self, input):
        self.output = input
        return input

    def updateGradInput(self, input, gradOutput):
        self.gradInput = gradOutput
        return gradOutput


class Contiguous(Module):
    def compute(self, input):
        return input.contiguous() * 1


class Copy(Module):
    """Converts to a type of floating numbers; gradients are converted back."""

    def __init__(self, intype=None, outtype=None, dontCast=False):
        super().__init__()
        self.intype, self.outtype, self.dontCast = intype, outtype, dontCast

    def compute(self, input):
        return input * 1 if self.outtype is None else input.to(as_dtype(self.outtype)[0], copy=True)

    def type(self, type=None, tensorCache=None):
        return self if self.dontCast else super().type(type, tensorCache)


class Index(Module):
    """Of a table [tensor, indices] the slices with those indices."""

    def __init__(self, dimension):
        super().__init__()
        self.dimension = dimension

    def compute(self, input):
        return input[0].index_select(self.dimension, input[1].long())


class MaskedSelect(Module):
    """Of a table [tensor, mask] the numbers where the mask is not zero."""

    def compute(self, input):
        return input[0].masked_select(input[1] != 0)


class Narrow(Module):
    def __init__(self, dimension, offset, length=1):
        super().__init__()
        self.dimension, self.index, self.length = dimension, offset, length

    def compute(self, input):
        length = self.length if self.length > 0 else input.shape[self.dimension] - self.index + self.length + 1
        return input.narrow(self.dimension, self.index, length)


class Padding(Module):
    """``pad`` times ``value`` behind a dimension, or in front of it where pad is negative; ``index`` places further inside."""

    def __init__(self, dim, pad, value=0, index=0, nInputDim=0):
        super().__init__()
        self.dim, self.pad, self.value, self.index, self.nInputDim = dim, pad, value, index, nInputDim

    def compute(self, input):
        dim = self.dim + (self.nInputDim > 0 and input.dim() != self.nInputDim)
        size = input.shape[dim]
        at = self.index if self.pad < 0 else size - self.index
        shape = list(input.shape)
        shape[dim] = abs(self.pad)
        between = input.new_full(shape, self.value)
        return adjoin.cat([input.narrow(dim, 0, at), between, input.narrow(dim, at, size - at)], dim)


class Replicate(Module):
    """``nf`` times the input, along a new dimension."""

    def __init__(self, nf, dim=0):
        super().__init__()
        self.nfeatures, self.dim = nf, dim

    def compute(self, input):
        return adjoin.stack([input] * self.nfeatures, self.dim)


def _sizes(given):
    return tuple(given[0]) if len(given) == 1 and isinstance(given[0], (tuple, list)) else given


class Reshape(Module):
    """Another shape for each sample of a batch."""

    def __init__(self, *args):
        super().__init__()
        self.size = _sizes(args)

    def compute(self, input):
        return input.reshape(input.shape[0], *self.size)

    def __repr__(self):
        return f"{super().__repr__()}({'x'.join(map(str, self.size))})"


class View(Module):
    """Another shape."""

    def __init__(self, *args):
        super().__init__()
        self.resetSize(*args)

    def resetSize(self, *args):
        self.size = _sizes(args)
        return self

    def compute(self, input):
        return input.reshape(self.size)

    def __repr__(self):
        return f"{super().__repr__()}({', '.join(map(str, self.size))})"


class Select(Module):
    def __init__(self, dimension, index):
        super().__init__()
        self.dimension, self.index = dimension, index

    def compute(self, input):
        return input.select(self.dimension, self.index)


class Squeeze(Module):
    def __init__(self, dim=None, num_input_dims=None):
        super().__init__()
        self.dim, self.numInputDims = dim, num_input_dims

    def compute(self, input):
        if self.dim is None:
            return input.squeeze()
        return input.squeeze(self.dim + _batch(self, input))


def _batch(module, input):
    """One where the input has a dimension more than the module was told: that of the samples."""
    return int(module.numInputDims is not None and input.dim() > module.numInputDims)


class Unsqueeze(Module):
    def __init__(self, pos, numInputDims=None):
        super().__init__()
        self.pos, self.numInputDims = pos, numInputDims

    def compute(self, input):
        return input.unsqueeze(self.pos + _batch(self, input))


class Transpose(Module):
    """Exchanges pairs of dimensions, one pair after the other."""

    def __init__(self, *args):
        super().__init__()
        self.permutations = args

    def compute(self, input):
        for first, second in self.permutations:
            input = input.transpose(first, second)
        return input.contiguous()


class _Reduced(Module):
    def __init__(self, dimension=0, nInputDims=-1):
        super().__init__()
        self.dimension, self.nInputDims = dimension, nInputDims

    def place(self, input):
        """The dimension that goes."""
        batch = self.nInputDims > 0 and input.dim() == self.nInputDims + 1 and self.dimension >= 0
        return self.dimension + batch


class Max(_Reduced):
    def compute(self, input):
        return input.max(self.place(input)).values


class Min(_Reduced):
    def compute(self, input):
        return input.min(self.place(input)).values


class Sum(_Reduced):
    def __init__(self, dimension=0, nInputDims=-1, sizeAverage=False, squeeze=True):
        super().__init__(dimension, nInputDims)
        self.sizeAverage, self.squeeze = sizeAverage, squeeze

    def compute(self, input):
        function = input.mean if self.sizeAverage else input.sum
        return function(self.place(input), keepdim=not self.squeeze)


class Mean(Sum):
    def __init__(self, dimension=0, nInputDims=-1, squeeze=True):
        super().__init__(dimension, nInputDims, True, squeeze)


class Normalize(Module):
    """Each vector over its p-norm."""

    def __init__(self, p, eps=1e-10):
        super().__init__()
        self.p, self.eps = p, eps

    def compute(self, input):
        if self.p == float("inf"):
            return input / (input.abs().amax(-1, keepdim=True) + self.eps)
        return input / (input.abs().pow(self.p).sum(-1, keepdim=True) + self.eps).pow(1 / self.p)
