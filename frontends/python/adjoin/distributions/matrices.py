"""adjoin.distributions.matrices: distributions of positive definite matrices, and of the factors of correlations; for matrices of a
few hundred rows, which are factored out of ordinary ops."""

import math

import adjoin

from . import constraints
from ._gamma_samples import gamma_samples
from ._linear import cholesky, from_precision, solve_lower
from .distribution import Distribution, to_tensors
from .exponential_family import ExponentialFamily
from .gamma import Beta


def _log_diagonal(factor):
    return factor.diagonal(dim1=-2, dim2=-1).log()


class Wishart(ExponentialFamily):
    """The sum of x x' of df normal vectors of mean 0; their covariance by covariance_matrix, precision_matrix or scale_tril."""

    arg_constraints = {
        "df": constraints.greater_than(0),
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        given = {
            "covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril,
        }  # fmt: skip
        given = {name: value for name, value in given.items() if value is not None}
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        df = adjoin.as_tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch, size = adjoin.broadcast_shapes(matrix.shape[:-2], df.shape), matrix.shape[-1]
        self.df = df.expand(batch)
        self.__dict__[name] = matrix.expand((*batch, size, size))
        super().__init__(batch, (size, size), validate_args)
        if self._checks_values() and not (self.df > size - 1).all():
            raise ValueError(
                f"Value of df={df} expected to be greater than ndim - 1 = {size - 1}: with less the matrices have no density"
            )
        make = {"covariance_matrix": cholesky, "precision_matrix": from_precision, "scale_tril": lambda x: x}[name]
        self._unbroadcasted_scale_tril = make(self.__dict__[name])

    def __getattr__(self, name):
        if name == "scale_tril":
            return self._unbroadcasted_scale_tril
        if name == "covariance_matrix":
            return self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT
        if name == "precision_matrix":
            inverse = solve_lower(
                self._unbroadcasted_scale_tril, adjoin.eye(self._size, dtype=self.df.dtype, device=self.df.device)
            )
            return inverse.mT @ inverse
        raise AttributeError(name)

    def _expanded(self, made):
        made._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand((*made._batch_shape, *self._event_shape))

    _size = property(lambda self: self._event_shape[0])
    mean = property(lambda self: self.df[..., None, None] * self.covariance_matrix)

    @property
    def mode(self):
        """Where the density is greatest; nan where that is on the border, up to df = size + 1."""
        more = (self.df - self._size - 1).masked_fill(self.df <= self._size + 1, float("nan"))
        return more[..., None, None] * self.covariance_matrix

    @property
    def variance(self):
        """The variance of each element."""
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        return self.df[..., None, None] * (covariance**2 + diagonal[..., :, None] * diagonal[..., None, :])

    def rsample(self, sample_shape=(), max_try_correction=None):
        """See the base. What rounding made singular, which happens where df is close to size - 1, is drawn again so many times: 3 by default."""
        drawn = self._drawn(self._extended_shape(sample_shape))
        for _ in range(3 if max_try_correction is None else max_try_correction):
            good = self.support.check(drawn)
            if good.all():
                break
            drawn = adjoin.where(good[..., None, None], drawn, self._drawn(drawn.shape))
        return drawn

    def _drawn(self, shape):
        steps = adjoin.arange(self._size, dtype=self.df.dtype, device=self.df.device)
        squares = 2 * gamma_samples(shape[:-1], (self.df[..., None] - steps) / 2)  # Bartlett (1933)
        noise = adjoin.randn(shape, dtype=self.df.dtype, device=self.df.device).tril(-1) + adjoin.diag_embed(
            squares.sqrt()
        )
        root = self._unbroadcasted_scale_tril @ noise
        return root @ root.mT

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        size, half = self._size, self.df / 2
        above = _log_diagonal(cholesky(value)).sum(-1)
        inner = solve_lower(self._unbroadcasted_scale_tril, cholesky(value)).square().sum((-1, -2))
        norm = (
            half * size * math.log(2)
            + self.df * _log_diagonal(self._unbroadcasted_scale_tril).sum(-1)
            + adjoin.mvlgamma(half, size)
        )
        return (self.df - size - 1) * above - inner / 2 - norm

    def entropy(self):
        """See the base."""
        size, half = self._size, self.df / 2
        steps = adjoin.arange(size, dtype=self.df.dtype, device=self.df.device) / 2
        slopes = adjoin.digamma(half[..., None] - steps).sum(-1)
        width = (size + 1) * (_log_diagonal(self._unbroadcasted_scale_tril).sum(-1) + size / 2 * math.log(2))
        return width + adjoin.mvlgamma(half, size) - (self.df - size - 1) / 2 * slopes + half * size

    @property
    def _natural_params(self):
        return -self.precision_matrix / 2, (self.df - self._size - 1) / 2

    def _log_normalizer(self, x, y):
        half = y + (self._size + 1) / 2
        return adjoin.mvlgamma(half, self._size) - 2 * half * _log_diagonal(cholesky(-x)).sum(-1)


class LKJCholesky(Distribution):
    """Lower factors of correlation matrices of density det^(concentration - 1), by Lewandowski, Kurowicka and Joe (2009)."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim, concentration=1.0, validate_args=None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = to_tensors(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def sample(self, sample_shape=()):
        """See the base."""
        shape = self._extended_shape(sample_shape)
        with adjoin.no_grad():  # row by row: a direction, and which part of the length 1 is in it (the onion method)
            row = adjoin.arange(1, self.dim, dtype=self.concentration.dtype, device=self.concentration.device)
            rest = self.concentration[..., None] + (self.dim - 1 - row) / 2
            part = Beta((row / 2).expand(rest.shape), rest, validate_args=False).sample(sample_shape)
            part = adjoin.nn.functional.pad(part, (1, 0))
            noise = adjoin.randn(shape, dtype=row.dtype, device=row.device).tril(-1)
            length = noise.square().sum(-1, keepdim=True).sqrt()
            made = noise / adjoin.where(length > 0, length, 1.0) * part.sqrt()[..., None]
            least = adjoin.finfo(row.dtype).tiny
            return made + adjoin.diag_embed((1 - made.square().sum(-1)).clamp(min=least).sqrt())

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        row = adjoin.arange(2, self.dim + 1, dtype=self.concentration.dtype, device=self.concentration.device)
        order = 2 * (self.concentration[..., None] - 1) + self.dim - row
        found = (order * _log_diagonal(value)[..., 1:]).sum(-1)
        size = self.dim - 1
        alpha = self.concentration + size / 2
        norm = size / 2 * math.log(math.pi) + adjoin.mvlgamma(alpha - 0.5, size) - size * adjoin.lgamma(alpha)
        return found - norm
