"""adjoin.legacy.nn._tables: modules that take tables of tensors, or give one."""

import functools
import operator

import adjoin
from adjoin.nn import functional as F

from ._in_place import InPlace
from ._module import Module, flat


class _Folded(InPlace):
    """One tensor of all in a table, from two at a time; the first one may be written."""

    def _target(self, input):
        return input[0]

    def _copied(self, input):
        return [input[0].clone(), *input[1:]]


class CAddTable(_Folded):
    """The sum of a table."""

    def compute(self, input):
        return functools.reduce(operator.add, input[1:], input[0] * 1)


class CMulTable(Module):
    """The product of a table."""

    def compute(self, input):
        return functools.reduce(operator.mul, input[1:], input[0] * 1)


class CSubTable(Module):
    """The first of two tensors without the second."""

    def compute(self, input):
        return input[0] - input[1]


class CDivTable(Module):
    """The first of two tensors over the second."""

    def compute(self, input):
        return input[0] / input[1]


class FlattenTable(Module):
    """The tensors of a table of tables in one table."""

    def compute(self, input):
        return flat(input)


def _place(module, tensor):
    batch = module.nInputDims is not None and tensor.dim() == module.nInputDims + 1
    return module.dimension + (batch if module.dimension >= 0 else 0)


class JoinTable(Module):
    def __init__(self, dimension, nInputDims=None):
        super().__init__()
        self.dimension, self.nInputDims = dimension, nInputDims

    def compute(self, input):
        return adjoin.cat(input, _place(self, input[0]))


class SplitTable(Module):
    def __init__(self, dimension, nInputDims=None):
        super().__init__()
        self.dimension, self.nInputDims = dimension, nInputDims

    def compute(self, input):
        return list(input.unbind(_place(self, input)))


class SelectTable(Module):
    def __init__(self, index):
        super().__init__()
        self.index = index

    def compute(self, input):
        return input[self.index]


class NarrowTable(Module):
    def __init__(self, offset, length=1):
        super().__init__()
        self.offset, self.length = offset, length

    def compute(self, input):
        return input[self.offset : self.offset + self.length]


class MixtureTable(Module):
    """Of [gates, experts] the sum of the experts, each times its gate; experts are a table, or a tensor with a dimension ``dim``."""

    def __init__(self, dim=1):
        super().__init__()
        self.dim = dim

    def compute(self, input):
        gates, experts = input
        if isinstance(experts, list):
            experts = adjoin.stack(experts, gates.dim() - 1)
            dim = gates.dim() - 1
        else:
            dim = self.dim if gates.dim() > 1 else 0
        shape = [1] * experts.dim()
        shape[dim] = gates.shape[-1]
        if gates.dim() > 1:
            shape[0] = gates.shape[0]
        return (experts * gates.reshape(shape)).sum(dim)


def _batched(input):
    return [x if x.dim() > 1 else x.unsqueeze(0) for x in input]


class DotProduct(Module):
    """The product of the two vectors of each sample."""

    def compute(self, input):
        first, second = _batched(input)
        return (first * second).sum(1)


class CosineDistance(Module):
    """The cosine between the two vectors of each sample."""

    def compute(self, input):
        first, second = _batched(input)
        lengths = (first * first).sum(1) * (second * second).sum(1)
        return (first * second).sum(1) / (lengths + 1e-12).sqrt()


class PairwiseDistance(Module):
    """The p-norm between the two vectors of each sample."""

    def __init__(self, p):
        super().__init__()
        self.norm = p

    def compute(self, input):
        first, second = _batched(input)
        return (first - second).norm(self.norm, 1)


class MM(Module):
    """The product of two matrices, or of two batches of matrices."""

    def __init__(self, transA=False, transB=False):
        super().__init__()
        self.transA, self.transB = transA, transB

    def compute(self, input):
        a, b = input
        return (a.mT if self.transA else a) @ (b.mT if self.transB else b)


class MV(Module):
    """The product of a matrix and a vector, or of a batch of each."""

    def __init__(self, trans=False):
        super().__init__()
        self.trans = trans

    def compute(self, input):
        matrix, vector = input
        return ((matrix.mT if self.trans else matrix) @ vector.unsqueeze(-1)).squeeze(-1)


class Bilinear(Module):
    """Of [x, y] a product x A y for each output, and a bias."""

    def __init__(self, inputSize1, inputSize2, outputSize, bias=True):
        super().__init__()
        weight = adjoin.empty(outputSize, inputSize1, inputSize2)
        self._own(weight=weight, bias=adjoin.empty(outputSize) if bias else None)
        self.reset()

    def reset(self, stdv=None):
        return self._uniform(stdv, self.weight.shape[1] ** -0.5)

    def compute(self, input, weight, bias=None):
        return F.bilinear(*input, weight, bias)
