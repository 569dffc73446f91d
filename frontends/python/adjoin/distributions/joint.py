"""adjoin.distributions.joint: distributions made of others, and the normal distribution of vectors."""

import math

import adjoin

from . import constraints
from ._linear import cholesky, from_precision, solve_lower
from ._linear import from_precision as _precision_to_scale_tril  # noqa: F401
from .continuous import Normal
from .distribution import Distribution, put_into, to_tensors
from .elementwise import ComposeTransform, ExpTransform, Transform, sum_last


class Independent(Distribution):
    """The last dimensions of a batch as those of one value."""

    arg_constraints = {}

    def __init__(self, base_distribution, reinterpreted_batch_ndims, validate_args=None):
        count, shape = reinterpreted_batch_ndims, base_distribution.batch_shape
        if count > len(shape):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                f"actual {count} vs {len(shape)}"
            )
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, count
        keep = len(shape) - count
        super().__init__(shape[:keep], shape[keep:] + base_distribution.event_shape, validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)
    has_enumerate_support = property(
        lambda self: self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support
    )
    support = constraints.dependent_property(
        lambda self: constraints.independent(self.base_dist.support, self.reinterpreted_batch_ndims)
    )
    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)

    def sample(self, sample_shape=()):
        """See the base."""
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape=()):
        """See the base."""
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value):
        """See the base."""
        return sum_last(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self):
        """See the base."""
        return sum_last(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand=True):
        """See the base; the elements of a value have no list of all their combinations."""
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError(
                "Enumeration over cartesian product is not implemented: list the base distribution's"
            )
        return self.base_dist.enumerate_support(expand)

    def expand(self, batch_shape, _instance=None):
        """See the base."""
        own = tuple(self.event_shape[: self.reinterpreted_batch_ndims])
        base = self.base_dist.expand(tuple(batch_shape) + own)
        _instance = self._get_checked_instance(Independent, _instance)
        return put_into(_instance, Independent(base, self.reinterpreted_batch_ndims, self._validate_args))

    def __repr__(self):
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """What becomes of a distribution's values through transforms."""

    arg_constraints = {}

    def __init__(self, base_distribution, transforms, validate_args=None):
        if not isinstance(transforms, (Transform, list, tuple)):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError("transforms must be a Transform or a list of Transforms")
        composed = self._composed
        inner, outer = composed.domain.event_dim, composed.codomain.event_dim
        given = base_distribution.batch_shape + base_distribution.event_shape
        if len(given) < inner:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {inner}, but got {tuple(given)}."
            )
        made = composed.forward_shape(given)
        wanted = composed.inverse_shape(made)
        events = len(base_distribution.event_shape)
        if tuple(wanted) != tuple(given):  # a parameter of the transform is larger
            base_distribution = base_distribution.expand(wanted[: len(wanted) - events])
        more = inner - events
        self.base_dist = Independent(base_distribution, more) if more > 0 else base_distribution
        cut = len(made) - outer - max(events - inner, 0)
        super().__init__(made[:cut], made[cut:], validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    @property
    def _composed(self):  # of what stands in transforms now: a class of one's own may fill it by itself
        return ComposeTransform(self.transforms)

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        """What the last transform gives."""
        found = self.transforms[-1].codomain if self.transforms else self.base_dist.support
        more = len(self.event_shape) - found.event_dim
        return constraints.independent(found, more) if more > 0 else found

    def sample(self, sample_shape=()):
        """See the base."""
        with adjoin.no_grad():
            return self._composed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=()):
        """See the base."""
        return self._composed(self.base_dist.rsample(sample_shape))

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        before = self._composed.inv(value)
        slope = self._composed.log_abs_det_jacobian(before, value)
        return self.base_dist.log_prob(before) - sum_last(
            slope, len(self.event_shape) - self._composed.codomain.event_dim
        )

    def cdf(self, value):
        """See the base."""
        return self._flipped(self.base_dist.cdf(self._composed.inv(value)))

    def icdf(self, value):
        """See the base."""
        return self._composed(self.base_dist.icdf(self._flipped(value)))

    def _flipped(self, share):
        """1 - share where the transform falls."""
        sign = self._composed.sign
        return share if isinstance(sign, int) and sign == 1 else sign * (share - 0.5) + 0.5

    def expand(self, batch_shape, _instance=None):
        """See the base."""
        made = TransformedDistribution(self.base_dist.expand(batch_shape), self.transforms, self._validate_args)
        return put_into(self._get_checked_instance(TransformedDistribution, _instance), made)

    def __repr__(self):
        return f"{type(self).__name__}({self.base_dist}, {self.transforms})"


class LogNormal(TransformedDistribution):
    """exp of a normal number."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    loc = property(lambda self: self.base_dist.loc)
    scale = property(lambda self: self.base_dist.scale)
    mean = property(lambda self: (self.loc + self.scale**2 / 2).exp())
    mode = property(lambda self: (self.loc - self.scale**2).exp())
    variance = property(lambda self: adjoin.expm1(self.scale**2) * (2 * self.loc + self.scale**2).exp())

    def entropy(self):
        """See the base."""
        return self.base_dist.entropy() + self.loc

    def expand(self, batch_shape, _instance=None):
        """See the base."""
        base = self.base_dist.expand(batch_shape)
        _instance = self._get_checked_instance(LogNormal, _instance)
        return put_into(_instance, LogNormal(base.loc, base.scale, self._validate_args))

    def __repr__(self):
        return repr(self.base_dist).replace("Normal", "LogNormal", 1)


class HalfNormal(Distribution):
    """The absolute value of a normal number of mean 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale, validate_args=None):
        (self.scale,) = to_tensors(scale)
        super().__init__(self.scale.shape, validate_args=validate_args)

    _normal = property(lambda self: Normal(adjoin.zeros_like(self.scale), self.scale, validate_args=False))
    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    mode = property(lambda self: adjoin.zeros_like(self.scale))
    variance = property(lambda self: self.scale**2 * (1 - 2 / math.pi))

    def rsample(self, sample_shape=()):
        """See the base."""
        return self._normal.rsample(sample_shape).abs()

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        found = self._normal.log_prob(value) + math.log(2)
        return adjoin.where(value >= 0, found, -math.inf)

    def cdf(self, value):
        """See the base."""
        self._validate_sample(value)
        return 2 * self._normal.cdf(value) - 1

    def icdf(self, value):
        """See the base."""
        return self._normal.icdf((value + 1) / 2)

    def entropy(self):
        """See the base."""
        return self._normal.entropy() - math.log(2)


class MultivariateNormal(Distribution):
    """Normal vectors, by covariance_matrix, precision_matrix or scale_tril (lower, L L' = covariance); for matrices
    of a few hundred rows, which are factored out of ordinary ops."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        given = {
            "covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril,
        }  # fmt: skip
        given = {name: value for name, value in given.items() if value is not None}
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch = adjoin.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.loc = loc.expand((*batch, loc.shape[-1]))
        self.__dict__[name] = matrix.expand((*batch, *matrix.shape[-2:]))
        super().__init__(batch, self.loc.shape[-1:], validate_args)
        make = {"covariance_matrix": cholesky, "precision_matrix": from_precision, "scale_tril": lambda x: x}[name]
        self._unbroadcasted_scale_tril = make(matrix)

    def __getattr__(self, name):
        if name == "scale_tril":
            return self._unbroadcasted_scale_tril.expand(
                (*self.batch_shape, *self._unbroadcasted_scale_tril.shape[-2:])
            )
        if name == "covariance_matrix":
            return (self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT).expand(
                (*self.batch_shape, *self._unbroadcasted_scale_tril.shape[-2:])
            )
        if name == "precision_matrix":
            inverse = solve_lower(
                self._unbroadcasted_scale_tril,
                adjoin.eye(self.event_shape[0], dtype=self.loc.dtype, device=self.loc.device),
            )
            return (inverse.mT @ inverse).expand((*self.batch_shape, *self._unbroadcasted_scale_tril.shape[-2:]))
        raise AttributeError(name)

    def _expanded(self, made):
        made._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril

    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: self._unbroadcasted_scale_tril.square().sum(-1).expand(self.loc.shape))

    def rsample(self, sample_shape=()):
        """See the base."""
        z = adjoin.randn(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self._unbroadcasted_scale_tril @ z.unsqueeze(-1)).squeeze(-1)

    def _half_log_det(self):
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        z = solve_lower(self._unbroadcasted_scale_tril, (value - self.loc).unsqueeze(-1)).squeeze(-1)
        size = self.event_shape[0]
        return -0.5 * (size * math.log(2 * math.pi) + z.square().sum(-1)) - self._half_log_det()

    def entropy(self):
        """See the base."""
        found = 0.5 * self.event_shape[0] * (1 + math.log(2 * math.pi)) + self._half_log_det()
        return found.expand(self.batch_shape)
