"""adjoin.distributions: distributions to draw from, with densities, entropies and divergences."""

from .._hints import getattr_of
from . import constraints, transforms, utils  # noqa: F401
from .bounded import ContinuousBernoulli, VonMises
from .constraint_registry import biject_to, transform_to
from .continuous import Cauchy, Exponential, Gumbel, Laplace, Normal, Uniform
from .counts import Binomial, Multinomial, NegativeBinomial
from .discrete import Bernoulli, Categorical, Geometric, OneHotCategorical, Poisson
from .distribution import Distribution, set_default_validate_args  # noqa: F401
from .exponential_family import ExponentialFamily
from .fisher_snedecor import FisherSnedecor
from .gamma import Beta, Chi2, Dirichlet, Gamma
from .generalized_pareto import GeneralizedPareto
from .joint import HalfNormal, Independent, LogNormal, MultivariateNormal, TransformedDistribution
from .logistic_normal import LogisticNormal
from .low_rank import LowRankMultivariateNormal
from .matrices import LKJCholesky, Wishart
from .mixture import MixtureSameFamily
from .kl import kl_divergence, register_kl
from . import kl_pairs  # noqa: F401
from .relaxed import OneHotCategoricalStraightThrough, RelaxedBernoulli, RelaxedOneHotCategorical
from .tails import HalfCauchy, InverseGamma, Kumaraswamy, Pareto, StudentT, Weibull
from .transforms import *

Distribution.set_default_validate_args = staticmethod(set_default_validate_args)

__all__ = [
    "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "ContinuousBernoulli", "Dirichlet", "Distribution", "Exponential",
    "ExponentialFamily", "FisherSnedecor", "Gamma", "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent", "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal",
    "LogisticNormal", "LowRankMultivariateNormal",
    "MixtureSameFamily", "Multinomial", "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical",
    "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "RelaxedBernoulli", "RelaxedOneHotCategorical", "StudentT", "Weibull", "TransformedDistribution", "Uniform", "VonMises", "Wishart", "kl_divergence", "register_kl",
    "biject_to", "transform_to", *transforms.__all__,
]  # fmt: skip


__getattr__ = getattr_of(__name__)
