"""adjoin.distributions.vectors: transforms of which a value is a vector or a matrix."""

import math

import adjoin
from adjoin.nn import functional as F

from . import constraints
from .elementwise import Transform, sum_last


class ReshapeTransform(Transform):
    """The last dimensions in another shape of as many elements."""

    def __init__(self, in_shape, out_shape, cache_size=0):
        super().__init__(cache_size)
        self.in_shape, self.out_shape = adjoin.Size(in_shape), adjoin.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError(
                f"ReshapeTransform: {tuple(in_shape)} and {tuple(out_shape)} have different numbers of elements"
            )

    domain = property(lambda self: constraints.independent(constraints.real, len(self.in_shape)))
    codomain = property(lambda self: constraints.independent(constraints.real, len(self.out_shape)))

    def _call(self, x):
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y):
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x, y):
        """See the base."""
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    @staticmethod
    def _exchanged(shape, old, new):
        shape, keep = adjoin.Size(shape), len(shape) - len(old)
        if keep < 0 or shape[keep:] != old:
            raise ValueError(f"ReshapeTransform: the shape {tuple(shape)} does not end in {tuple(old)}")
        return shape[:keep] + new

    def forward_shape(self, shape):
        """See the base."""
        return self._exchanged(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape):
        """See the base."""
        return self._exchanged(shape, self.out_shape, self.in_shape)


class SoftmaxTransform(Transform):
    """exp(x), scaled so that it adds to 1: many x give the same y, so there is no slope."""

    bijective = False
    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x):
        return x.softmax(-1)

    def _inverse(self, y):
        return y.log()


class StickBreakingTransform(Transform):
    """n numbers to n + 1 shares: each says which part of what is left is broken off; zeros give equal shares."""

    domain, codomain = constraints.real_vector, constraints.simplex

    @staticmethod
    def _left(like):
        """How many shares come after each number, as a logarithm."""
        return adjoin.arange(like.shape[-1], 0, -1, dtype=like.dtype, device=like.device).log()

    def _call(self, x):
        inner = x - self._left(x)
        eaten, rest = inner.sigmoid(), F.logsigmoid(-inner).cumsum(-1).exp()
        return F.pad(eaten, (0, 1), value=1.0) * F.pad(rest, (1, 0), value=1.0)

    def _inverse(self, y):
        shares = y[..., :-1]
        rest = (1 - shares.cumsum(-1)).clamp(min=adjoin.finfo(y.dtype).tiny)
        return shares.log() - rest.log() + self._left(shares)

    def log_abs_det_jacobian(self, x, y):
        """See the base."""
        inner = x - self._left(x)
        # A share is sigmoid(inner) of what is left: d share / d inner = share sigmoid(-inner).
        return (y[..., :-1].log() + F.logsigmoid(-inner)).sum(-1)

    def forward_shape(self, shape):
        """See the base."""
        return adjoin.Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape):
        """See the base."""
        return adjoin.Size((*shape[:-1], shape[-1] - 1))


class LowerCholeskyTransform(Transform):
    """Any matrix to a lower triangular one with a positive diagonal."""

    bijective = False
    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x):
        return x.tril(-1) + adjoin.diag_embed(x.diagonal(dim1=-2, dim2=-1).exp())

    def _inverse(self, y):
        return y.tril(-1) + adjoin.diag_embed(y.diagonal(dim1=-2, dim2=-1).log())


class PositiveDefiniteTransform(LowerCholeskyTransform):
    """Any matrix to a positive definite one: the product of its lower factor with itself."""

    codomain = constraints.positive_definite

    def _call(self, x):
        factor = super()._call(x)
        return factor @ factor.mT

    def _inverse(self, y):
        from ._linear import cholesky

        return super()._inverse(cholesky(y))


class CorrCholeskyTransform(Transform):
    """d (d - 1) / 2 numbers to the lower factor of a matrix of correlations (Lewandowski, Kurowicka and Joe, 2009)."""

    domain, codomain = constraints.real_vector, constraints.corr_cholesky

    @staticmethod
    def _places(size, like):
        row, column = adjoin.tril_indices(size, size, -1, device=like.device)
        return row * size + column

    @staticmethod
    def _size(count):
        size = (1 + math.isqrt(1 + 8 * count)) // 2
        if size * (size - 1) // 2 != count:
            raise ValueError(f"CorrCholeskyTransform: {count} is no number of elements below a diagonal")
        return size

    def _call(self, x):
        size = self._size(x.shape[-1])
        eps = adjoin.finfo(x.dtype).eps
        partial = x.tanh().clamp(-1 + eps, 1 - eps)
        flat = x.new_zeros((*x.shape[:-1], size * size))
        partial = flat.index_copy(-1, self._places(size, x), partial).unflatten(-1, (size, size))
        left = (1 - partial.square()).sqrt().cumprod(-1)  # of a row's length, after each element
        rows = partial + adjoin.eye(size, dtype=x.dtype, device=x.device)
        return rows * F.pad(left[..., :-1], (1, 0), value=1.0)

    def _below(self, y):
        """The elements below the diagonal, and the squared length that was left to each."""
        size = y.shape[-1]
        left = F.pad(1 - y.square().cumsum(-1)[..., :-1], (1, 0), value=1.0)
        places = self._places(size, y)
        return y.flatten(-2).index_select(-1, places), left.flatten(-2).index_select(-1, places)

    def _inverse(self, y):
        element, left = self._below(y)
        return (element / left.sqrt()).atanh()

    def log_abs_det_jacobian(self, x, y):
        """See the base."""
        left = self._below(y)[1]
        return (left.log() / 2 - 2 * (x + F.softplus(-2 * x) - math.log(2.0))).sum(-1)

    def forward_shape(self, shape):
        """See the base."""
        size = self._size(shape[-1])
        return adjoin.Size((*shape[:-1], size, size))

    def inverse_shape(self, shape):
        """See the base."""
        if shape[-1] != shape[-2]:
            raise ValueError(f"CorrCholeskyTransform: {tuple(shape)} is no shape of square matrices")
        return adjoin.Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))


class IndependentTransform(Transform):
    """Another transform, of which the last dimensions of a batch are one value."""

    def __init__(self, base_transform, reinterpreted_batch_ndims, cache_size=0):
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size) if cache_size else base_transform
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size=1):
        """See the base: the other transform keeps, too."""
        if cache_size == self._cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    bijective = property(lambda self: self.base_transform.bijective)
    sign = property(lambda self: self.base_transform.sign)
    domain = property(lambda self: constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims))
    codomain = property(
        lambda self: constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)
    )

    def _call(self, x):
        if x.dim() < self.domain.event_dim:
            raise ValueError(f"IndependentTransform: x has {x.dim()} dimensions, a value has {self.domain.event_dim}")
        return self.base_transform(x)

    def _inverse(self, y):
        if y.dim() < self.codomain.event_dim:
            raise ValueError(f"IndependentTransform: y has {y.dim()} dimensions, a value has {self.codomain.event_dim}")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        """See the base."""
        return sum_last(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape):
        """See the base."""
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape):
        """See the base."""
        return self.base_transform.inverse_shape(shape)

    def __repr__(self):
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class _Pieces(Transform):
    """A transform for each piece along a dimension: split() and join() say what a piece is."""

    def __init__(self, tseq, dim=0, cache_size=0):
        Transform.__init__(self, cache_size)
        self.transforms, self.dim = list(tseq), dim

    bijective = property(lambda self: all(t.bijective for t in self.transforms))

    def _call(self, x):
        return self._join([t(v) for t, v in zip(self.transforms, self._split(x), strict=True)])

    def _inverse(self, y):
        return self._join([t.inv(v) for t, v in zip(self.transforms, self._split(y), strict=True)])


class CatTransform(_Pieces):
    """A transform for each of the pieces, ``lengths`` long, along dim."""

    def __init__(self, tseq, dim=0, lengths=None, cache_size=0):
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)

    event_dim = property(lambda self: max(t.event_dim for t in self.transforms))
    length = property(lambda self: sum(self.lengths))
    domain = property(lambda self: constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths))
    codomain = property(lambda self: constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths))

    def _split(self, x):
        return x.split(self.lengths, self.dim)

    def _join(self, pieces):
        return adjoin.cat(pieces, self.dim)

    def log_abs_det_jacobian(self, x, y):
        """See the base."""
        most, found = self.event_dim, []
        for t, before, after in zip(self.transforms, self._split(x), self._split(y), strict=True):
            found.append(sum_last(t.log_abs_det_jacobian(before, after), most - t.event_dim))
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        if dim + most < 0:
            return adjoin.cat(found, dim + most)
        return sum(found)  # pieces of one value


class StackTransform(_Pieces):
    """A transform for each slice along dim."""

    domain = property(lambda self: constraints.stack([t.domain for t in self.transforms], self.dim))
    codomain = property(lambda self: constraints.stack([t.codomain for t in self.transforms], self.dim))

    def _split(self, x):
        return x.unbind(self.dim)

    def _join(self, pieces):
        return adjoin.stack(pieces, self.dim)

    def log_abs_det_jacobian(self, x, y):
        """See the base."""
        pieces = zip(self.transforms, self._split(x), self._split(y), strict=True)
        return adjoin.stack([t.log_abs_det_jacobian(before, after) for t, before, after in pieces], self.dim)


class CumulativeDistributionTransform(Transform):
    """How much of a distribution is not above x: its values become uniform numbers."""

    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution, cache_size=0):
        super().__init__(cache_size)
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        """See the base."""
        return self.distribution.log_prob(x)
