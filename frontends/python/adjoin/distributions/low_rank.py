"""adjoin.distributions.low_rank: normal vectors whose covariance is a narrow matrix times its transpose, and a diagonal."""

import math

import adjoin

from . import constraints
from ._linear import cholesky, solve_lower
from .distribution import Distribution


class LowRankMultivariateNormal(Distribution):
    """Normal vectors of covariance ``cov_factor cov_factor' + diag(cov_diag)``, for the price of the narrow matrix."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        size = loc.shape[-1]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2] != size:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {size} x m")
        if cov_diag.dim() < 1 or cov_diag.shape[-1] != size:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {size}")
        batch = adjoin.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc, self.cov_diag = loc.expand((*batch, size)), cov_diag.expand((*batch, size))
        self.cov_factor = cov_factor.expand((*batch, *cov_factor.shape[-2:]))
        super().__init__(batch, (size,), validate_args)

    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: self.cov_factor.square().sum(-1) + self.cov_diag)
    scale_tril = property(lambda self: cholesky(self.covariance_matrix))
    _unbroadcasted_scale_tril = scale_tril

    @property
    def covariance_matrix(self):
        """The whole covariance."""
        return self.cov_factor @ self.cov_factor.mT + adjoin.diag_embed(self.cov_diag)

    @property
    def precision_matrix(self):
        """The inverse of the covariance."""
        reduced = self._reduced()
        return adjoin.diag_embed(1 / self.cov_diag) - reduced.mT @ reduced

    def _small(self):
        """Cholesky's factor of I + W' D^-1 W, whose determinant times that of D is the covariance's."""
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        eye = adjoin.eye(self.cov_factor.shape[-1], dtype=self.loc.dtype, device=self.loc.device)
        return cholesky(eye + scaled @ self.cov_factor)

    def _reduced(self):
        """R with precision = D^-1 - R' R."""
        return solve_lower(self._small(), self.cov_factor.mT / self.cov_diag.unsqueeze(-2))

    def _half_log_det(self):
        return self._small().diagonal(dim1=-2, dim2=-1).log().sum(-1) + 0.5 * self.cov_diag.log().sum(-1)

    def rsample(self, sample_shape=()):
        """See the base."""
        shape, kind = self._extended_shape(sample_shape), {"dtype": self.loc.dtype, "device": self.loc.device}
        along = adjoin.randn((*shape[:-1], self.cov_factor.shape[-1]), **kind)
        return (
            self.loc
            + (self.cov_factor @ along.unsqueeze(-1)).squeeze(-1)
            + self.cov_diag.sqrt() * adjoin.randn(shape, **kind)
        )

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        return (
            -0.5 * (self.event_shape[0] * math.log(2 * math.pi) + self._distance(value - self.loc))
            - self._half_log_det()
        )

    def _distance(self, apart):
        """apart' precision apart."""
        less = (self._reduced() @ apart.unsqueeze(-1)).squeeze(-1)
        return (apart.square() / self.cov_diag).sum(-1) - less.square().sum(-1)

    def entropy(self):
        """See the base."""
        return 0.5 * self.event_shape[0] * (1 + math.log(2 * math.pi)) + self._half_log_det()
