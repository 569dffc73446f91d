"""adjoin.distributed.tensor.placement_types: where a tensor's parts lie along a dimension of a mesh."""

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """Where a tensor's parts lie."""

    def is_shard(self, dim=None):
        """Whether a dimension is cut."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self):
        """Whether every process has it whole."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op=None):
        """Whether it is a sum that has not been made."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)

    def __eq__(self, other):
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self):
        return hash((type(self), *vars(self).values()))


class Shard(Placement):
    """Cut along a dimension, into as many parts as there are processes; the last parts are smaller, or empty."""

    def __init__(self, dim):
        self.dim = dim

    def __repr__(self):
        return f"Shard(dim={self.dim})"

    __str__ = lambda self: f"S({self.dim})"  # noqa: E731


class Replicate(Placement):
    """Whole on every process."""

    def __repr__(self):
        return "Replicate()"

    __str__ = lambda self: "R"  # noqa: E731


class Partial(Placement):
    """Each process has a summand; ``reduce_op``: "sum", or "avg", "product", "max", "min"."""

    def __init__(self, reduce_op="sum"):
        if reduce_op not in ("sum", "avg", "product", "max", "min"):
            raise ValueError(f"Partial: reduce_op is {reduce_op!r}; wanted is sum, avg, product, max or min")
        self.reduce_op = reduce_op

    def __repr__(self):
        return f"Partial({self.reduce_op})"

    __str__ = lambda self: "P"  # noqa: E731


class _StridedShard(Shard):
    """A part of a part in another order; none is made here."""

    def __init__(self, dim, *, split_factor):
        raise NotImplementedError("_StridedShard: parts lie in the order of the mesh here; use Shard(dim)")
