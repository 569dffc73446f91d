"""adjoin.distributions.constraints: which values a parameter or a sample may have."""

import adjoin


class Constraint:
    """``check(value)`` says where the value is allowed; the last ``event_dim`` dimensions count as one value."""

    is_discrete = False
    event_dim = 0

    def check(self, value):
        """Where value is allowed, as bools."""
        raise NotImplementedError(f"{type(self).__name__}: a constraint needs check(value)")

    def __repr__(self):
        said = ", ".join(f"{name}={value}" for name, value in self.__dict__.items() if not name.startswith("_"))
        words = type(self).__name__.split("_")
        return f"{''.join(word[:1].upper() + word[1:] for word in words)}({said})"


class _Bounded(Constraint):
    """Numbers between bounds; each class says which side it has, and whether the bound itself is allowed."""

    def __init__(self, **bounds):
        self.__dict__.update(bounds)


class interval(_Bounded):
    """From lower_bound to upper_bound, both allowed."""

    def __init__(self, lower_bound, upper_bound):
        super().__init__(lower_bound=lower_bound, upper_bound=upper_bound)

    def check(self, value):
        """See the base."""
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class half_open_interval(interval):
    """From lower_bound, allowed, to upper_bound, not allowed."""

    def check(self, value):
        """See the base."""
        return (value >= self.lower_bound) & (value < self.upper_bound)


class integer_interval(interval):
    """Whole numbers from lower_bound to upper_bound."""

    is_discrete = True

    def check(self, value):
        """See the base."""
        return (value % 1 == 0) & super().check(value)


class greater_than(_Bounded):
    """Greater than lower_bound."""

    def __init__(self, lower_bound):
        super().__init__(lower_bound=lower_bound)

    def check(self, value):
        """See the base."""
        return value > self.lower_bound


class greater_than_eq(greater_than):
    """Not less than lower_bound."""

    def check(self, value):
        """See the base."""
        return value >= self.lower_bound


class _IntegerGreaterThan(greater_than_eq):
    is_discrete = True

    def check(self, value):
        """See the base."""
        return (value % 1 == 0) & super().check(value)


class less_than(_Bounded):
    """Less than upper_bound."""

    def __init__(self, upper_bound):
        super().__init__(upper_bound=upper_bound)

    def check(self, value):
        """See the base."""
        return value < self.upper_bound


class multinomial(Constraint):
    """Counts of so many draws along the last dimension."""

    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, value):
        """See the base."""
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class independent(Constraint):
    """The same for each element of larger values."""

    def __init__(self, base_constraint, reinterpreted_batch_ndims):
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(lambda self: self.base_constraint.event_dim + self.reinterpreted_batch_ndims)

    def check(self, value):
        """See the base."""
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        found = self.base_constraint.check(value)
        for _ in range(self.reinterpreted_batch_ndims):
            found = found.all(-1)
        return found

    def __repr__(self):
        return f"IndependentConstraint({self.base_constraint}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """What any component of a mixture may give: the component is not in the value, so a dimension is put in for it."""

    def __init__(self, base_constraint):
        self.base_constraint = base_constraint

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(lambda self: self.base_constraint.event_dim)

    def check(self, value):
        """See the base."""
        found = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return found.all(-1)


class _Pieces(Constraint):
    """A constraint for each piece along a dimension."""

    def __init__(self, cseq, dim=0):
        self.cseq, self.dim = list(cseq), dim

    is_discrete = property(lambda self: any(c.is_discrete for c in self.cseq))


class cat(_Pieces):
    """A constraint for each of the pieces, ``lengths`` long, along dim."""

    def __init__(self, cseq, dim=0, lengths=None):
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)

    event_dim = property(lambda self: max(c.event_dim for c in self.cseq))

    def check(self, value):
        """See the base."""
        pieces = value.split(self.lengths, self.dim)
        return adjoin.cat([c.check(v) for c, v in zip(self.cseq, pieces, strict=True)], self.dim)


class stack(_Pieces):
    """A constraint for each slice along dim."""

    @property
    def event_dim(self):
        """One more than the slices' where dim is inside of a value."""
        most = max(c.event_dim for c in self.cseq)
        return most + 1 if self.dim + most < 0 else most

    def check(self, value):
        """See the base."""
        slices = value.unbind(self.dim)
        return adjoin.stack([c.check(v) for c, v in zip(self.cseq, slices, strict=True)], self.dim)


class _Named(Constraint):
    """A constraint that is one function; each class is one, so that a registry can tell them apart."""

    _allowed = None

    def check(self, value):
        """See the base."""
        found = type(self)._allowed(value)
        for _ in range(self.event_dim if found.dim() == value.dim() else 0):
            found = found.all(-1)
        return found


def _named(name, allowed, event_dim=0, is_discrete=False):
    """The one object of a class of its own."""
    body = {
        "_allowed": staticmethod(allowed),
        "event_dim": event_dim,
        "is_discrete": is_discrete,
        "__module__": __name__,
    }
    made = globals()["_" + name] = type("_" + name, (_Named,), body)  # found again by who unpickles it
    return made()


def _simplex(x):
    return (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6)


def _square(x):
    return adjoin.full(x.shape[:-2], x.shape[-2] == x.shape[-1], dtype=adjoin.bool, device=x.device)


def _is_symmetric(x):
    return ((x - x.mT).abs() < 1e-6).all(-1).all(-1)


def _is_lower(x):
    return (x.tril() == x).all(-1).all(-1)


def _is_cholesky(x):
    return _is_lower(x) & (x.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


def _is_cholesky_of_correlation(x):
    slack = adjoin.finfo(x.dtype).eps * x.shape[-1] * 10
    return _is_cholesky(x) & ((x.square().sum(-1).sqrt() - 1).abs() < slack).all(-1)


def _has_factor(x, more=0.0):
    from ._linear import cholesky

    raised = x.detach() + more * adjoin.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    return _is_symmetric(x) & cholesky(raised).isfinite().all(-1).all(-1)


def _semidefinite(x):
    # A zero eigenvalue has no factor in rounded numbers: it gets one a little above.
    return _has_factor(x, 1e-6)


real = _named("Real", lambda x: x == x)
real_vector = independent(real, 1)
boolean = _named("Boolean", lambda x: (x == 0) | (x == 1), is_discrete=True)
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
simplex = _named("Simplex", _simplex, 1)
one_hot = _named("OneHot", lambda x: ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1), 1, is_discrete=True)
square = _named("Square", _square, 2)
symmetric = _named("Symmetric", _is_symmetric, 2)
lower_triangular = _named("LowerTriangular", _is_lower, 2)
lower_cholesky = _named("LowerCholesky", _is_cholesky, 2)
corr_cholesky = _named("CorrCholesky", _is_cholesky_of_correlation, 2)
positive_definite = _named("PositiveDefinite", _has_factor, 2)
positive_semidefinite = _named("PositiveSemidefinite", _semidefinite, 2)


class _Dependent(Constraint):
    """What depends on other values: it cannot be checked alone."""

    def __init__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        self._discrete, self._dims = is_discrete, event_dim

    def _known(self, value, name):
        if value is NotImplemented:
            raise NotImplementedError(f".{name} cannot be determined statically: a distribution that is made says it")
        return value

    is_discrete = property(lambda self: self._known(self._discrete, "is_discrete"))
    event_dim = property(lambda self: self._known(self._dims, "event_dim"))

    def __call__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        """The same with what is known of it."""
        return _Dependent(
            is_discrete=self._discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._dims if event_dim is NotImplemented else event_dim,
        )

    def check(self, value):
        """See the base."""
        raise ValueError("Cannot determine validity of dependent constraint")


class dependent_property(property, _Dependent):
    """A property of a distribution that gives a constraint; of the class, it stands for one that is not known yet."""

    def __init__(self, fn=None, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn):
        """``@dependent_property(event_dim=1)`` over a method."""
        return dependent_property(fn, is_discrete=self._discrete, event_dim=self._dims)


def is_dependent(constraint):
    """Whether it depends on other values."""
    return isinstance(constraint, _Dependent)


dependent = _Dependent()

# What stands for a set of values; classes that hold another constraint among it.
__all__ = [
    "Constraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than", "greater_than_eq",
    "half_open_interval", "independent", "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky",
    "lower_triangular", "MixtureSameFamilyConstraint", "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive",
    "positive_integer", "positive_semidefinite", "positive_definite", "real", "real_vector", "simplex", "square", "stack", "symmetric",
    "unit_interval",
]  # fmt: skip
