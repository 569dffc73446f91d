"""adjoin._functorch.levels: ``torch._C._functorch``: the levels of vmap, for libraries that open and look through them by hand."""

from .. import _C, _vmap


def _level_of(tensor):
    """The innermost open level whose samples a tensor holds, or None."""
    if isinstance(tensor, _C.Tensor):
        for level in reversed(_vmap.levels.open):
            if _C.transform_batched_at(tensor, level):
                return level
    return None


def is_batchedtensor(tensor):
    """Whether a tensor holds the samples of a vmap that is running."""
    return _level_of(tensor) is not None


is_functorch_wrapped_tensor = is_batchedtensor


def is_gradtrackingtensor(tensor):
    """False: gradients are recorded on the tensor itself."""
    return False


def maybe_get_level(tensor):
    """The innermost level of a tensor, or -1."""
    level = _level_of(tensor)
    return -1 if level is None else level


def maybe_get_bdim(tensor):
    """Where get_unwrapped has the samples: 0, or -1 where there are none."""
    return 0 if is_batchedtensor(tensor) else -1


def get_unwrapped(tensor):
    """The tensor one level further out, its samples along dimension 0."""
    level = _level_of(tensor)
    return tensor if level is None else _C.transform_unbatched(tensor, 0, level)


def maybe_current_level():
    """The innermost level, or None."""
    return _vmap.levels.open[-1] if _vmap.levels.open else None


def _vmap_increment_nesting(batch_size, randomness="error"):
    """Opens a level; gives its number."""
    return _vmap.enter(batch_size, randomness)


def _vmap_decrement_nesting():
    """Closes the innermost level; gives its number."""
    return _vmap.leave()


def _add_batch_dim(tensor, bdim, level):
    """The tensor at a level whose samples lie along one of its dimensions."""
    return _C.transform_batched(tensor, bdim, level)


def _remove_batch_dim(tensor, level, batch_size, out_dim):
    """The tensor outside of a level, its samples along a dimension."""
    return _C.transform_unbatched(tensor, out_dim, level)
