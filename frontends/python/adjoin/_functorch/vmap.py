"""adjoin._functorch.vmap: pieces of vmap that libraries call by themselves."""

from .. import _C
from .levels import _add_batch_dim, _remove_batch_dim  # noqa: F401


def _maybe_remove_batch_dim(name, batched_output, vmap_level, batch_size, out_dim):
    """A result outside of a level, the samples along a dimension; without one, what all samples share."""
    if not isinstance(batched_output, _C.Tensor):
        if out_dim is not None:
            raise ValueError(
                f"vmap({name}, ...): the function must return tensors, not {type(batched_output).__name__}"
            )
        return batched_output
    if out_dim is None:
        if _C.transform_batched_at(batched_output, vmap_level):
            raise ValueError(f"vmap({name}, ...): out_dims has None for a result that differs between the samples")
        return batched_output
    return _remove_batch_dim(batched_output, vmap_level, batch_size, out_dim)
