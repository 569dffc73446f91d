"""adjoin.distributions.constraints: which values a parameter or a sample may have."""

import adjoin


class Constraint:
    """``check(value)`` says where the value is allowed; the last ``event_dim`` dimensions count as one value."""

    is_discrete = False
    event_dim = 0

    def __init__(self, name, check, event_dim=0, is_discrete=False):
        self.name, self._check = name, check
        self.event_dim, self.is_discrete = event_dim, is_discrete

    def check(self, value):
        """Where value is allowed, as bools."""
        found = self._check(value)
        for _ in range(self.event_dim if found.dim() == value.dim() else 0):
            found = found.all(-1)
        return found

    def __repr__(self):
        return self.name


def interval(lower_bound, upper_bound):
    """From lower_bound to upper_bound, both allowed."""
    return Constraint(
        f"Interval(lower_bound={lower_bound}, upper_bound={upper_bound})",
        lambda x: (x >= lower_bound) & (x <= upper_bound),
    )


def integer_interval(lower_bound, upper_bound):
    """Whole numbers from lower_bound to upper_bound."""
    return Constraint(
        f"IntegerInterval(lower_bound={lower_bound}, upper_bound={upper_bound})",
        lambda x: (x % 1 == 0) & (x >= lower_bound) & (x <= upper_bound),
        is_discrete=True,
    )


def greater_than(lower_bound):
    """Greater than lower_bound."""
    return Constraint(f"GreaterThan(lower_bound={lower_bound})", lambda x: x > lower_bound)


def greater_than_eq(lower_bound):
    """Not less than lower_bound."""
    return Constraint(f"GreaterThanEq(lower_bound={lower_bound})", lambda x: x >= lower_bound)


def less_than(upper_bound):
    """Less than upper_bound."""
    return Constraint(f"LessThan(upper_bound={upper_bound})", lambda x: x < upper_bound)


def independent(base_constraint, reinterpreted_batch_ndims):
    """The same for each element of larger values."""
    event_dim = base_constraint.event_dim + reinterpreted_batch_ndims
    return Constraint(f"IndependentConstraint({base_constraint}, {reinterpreted_batch_ndims})", base_constraint.check,
                      event_dim, base_constraint.is_discrete)  # fmt: skip


def _simplex(x):
    return (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6)


def _lower_cholesky(x):
    return (x.tril() == x).all(-1).all(-1) & (x.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


def _positive_definite(x):
    from ._linear import cholesky

    symmetric = ((x - x.mT).abs() < 1e-6).all(-1).all(-1)
    return symmetric & cholesky(x.detach()).isfinite().all(-1).all(-1)


real = Constraint("Real()", lambda x: x == x)
real_vector = independent(real, 1)
boolean = Constraint("Boolean()", lambda x: (x == 0) | (x == 1), is_discrete=True)
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
nonnegative_integer = Constraint("IntegerGreaterThan(lower_bound=0)", lambda x: (x % 1 == 0) & (x >= 0), is_discrete=True)
simplex = Constraint("Simplex()", _simplex, 1)
one_hot = Constraint("OneHot()", lambda x: ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1), 1, is_discrete=True)
lower_cholesky = Constraint("LowerCholesky()", _lower_cholesky, 2)
positive_definite = Constraint("PositiveDefinite()", _positive_definite, 2)
dependent = Constraint("Dependent()", lambda x: adjoin.ones_like(x, dtype=adjoin.bool))
