"""adjoin.distributions.constraint_registry: from all numbers to those that a constraint allows.

``transform_to(constraint)`` is good for parameters that an optimizer moves; ``biject_to(constraint)`` has an inverse and a
slope everywhere, which samplers need.
"""

import numbers

from . import constraints, transforms


class ConstraintRegistry:
    """A table of classes of constraints; an entry makes the transform from one of them."""

    def __init__(self):
        self._made = {}

    def register(self, constraint, factory=None):
        """factory(constraint) makes the transform; without it, a decorator of a function that does."""
        if factory is None:
            return lambda function: self.register(constraint, function)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, constraints.Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._made[kind] = factory
        return factory

    def __call__(self, constraint):
        factory = self._made.get(type(constraint))
        if factory is None:
            raise NotImplementedError(
                f"no transform to {type(constraint).__name__} is known; register(constraint, factory) tells one"
            )
        return factory(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _both(*kinds):
    def keep(factory):
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return keep


@_both(constraints.real)
def _anything(constraint):
    return transforms.identity_transform


@_both(constraints.greater_than, constraints.greater_than_eq)
def _above(constraint):
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)]
    )


@_both(constraints.less_than)
def _below(constraint):
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


@_both(constraints.interval, constraints.half_open_interval)
def _between(constraint):
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, numbers.Number) and isinstance(high, numbers.Number) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


@transform_to.register(constraints.lower_cholesky)
def _factor(constraint):
    return transforms.LowerCholeskyTransform()


@transform_to.register(constraints.positive_definite)
@transform_to.register(constraints.positive_semidefinite)
def _definite(constraint):
    return transforms.PositiveDefiniteTransform()


@_both(constraints.corr_cholesky)
def _factor_of_correlations(constraint):
    return transforms.CorrCholeskyTransform()


@biject_to.register(constraints.simplex)
def _broken_stick(constraint):
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _softmax(constraint):
    return transforms.SoftmaxTransform()


def _of_parts(registry):
    @registry.register(constraints.independent)
    def same(constraint):
        return transforms.IndependentTransform(
            registry(constraint.base_constraint), constraint.reinterpreted_batch_ndims
        )

    @registry.register(constraints.cat)
    def in_a_row(constraint):
        return transforms.CatTransform([registry(c) for c in constraint.cseq], constraint.dim, constraint.lengths)

    @registry.register(constraints.stack)
    def in_a_stack(constraint):
        return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)


_of_parts(biject_to)
_of_parts(transform_to)
