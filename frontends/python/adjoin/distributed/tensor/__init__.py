"""adjoin.distributed.tensor: the class of tensors that lie on several processes, for isinstance(): none is one."""


class DTensor:
    """A tensor whose parts several processes hold; with one process there is none, so isinstance() says no."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("DTensor: one process holds its tensors whole; use the tensor itself")

    from_local = __init__


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
        return isinstance(self, Partial)

    def __eq__(self, other):
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self):
        return hash((type(self), *vars(self).values()))


class Shard(Placement):
    """Cut along a dimension."""

    def __init__(self, dim):
        self.dim = dim

    def __repr__(self):
        return f"Shard(dim={self.dim})"


class Replicate(Placement):
    """Whole on every process."""

    def __repr__(self):
        return "Replicate()"


class Partial(Placement):
    """A sum that has not been made."""

    def __init__(self, reduce_op="sum"):
        self.reduce_op = reduce_op

    def __repr__(self):
        return f"Partial({self.reduce_op})"


def distribute_tensor(*args, **kwargs):
    """Raises: there is one process."""
    raise NotImplementedError("distribute_tensor: one process holds its tensors whole; use the tensor itself")


distribute_module = distribute_tensor
