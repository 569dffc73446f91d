"""adjoin._prims_common: what packages ask of layouts: strides of a shape, the memory format of a tensor."""

import warnings

from . import _C


def make_contiguous_strides_for(shape, row_major=True):
    """The strides of a dense tensor of the shape; with ``row_major=False`` the last two dimensions lie the other way round."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(int(size), 1)
    strides.reverse()
    if not row_major and len(strides) >= 2:
        strides[-2:] = 1, max(int(shape[-2]), 1)
    return tuple(strides)


def suggest_memory_format(x):
    """The format that results of a tensor's ops would have: channels_last where its strides say so, else contiguous."""
    if x.layout is _C.strided:
        for dims, made in ((4, _C.channels_last), (5, _C.channels_last_3d)):
            if x.dim() == dims and not x.is_contiguous() and x.is_contiguous(memory_format=made):
                return made
    return _C.contiguous_format


def alert_not_deterministic(caller):
    """Raises where use_deterministic_algorithms() is on, or warns where it says warn_only."""
    from . import are_deterministic_algorithms_enabled, is_deterministic_algorithms_warn_only_enabled

    if not are_deterministic_algorithms_enabled():
        return
    text = f"{caller} does not have a deterministic implementation, but use_deterministic_algorithms(True) was called"
    if not is_deterministic_algorithms_warn_only_enabled():
        raise RuntimeError(f"{text}; leave it out, or pass warn_only=True")
    warnings.warn(text, stacklevel=2)
