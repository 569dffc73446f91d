"""adjoin.utils._mode_utils: what libraries ask of dispatch modes."""

from .._c_names import _DisableTorchDispatch


def no_dispatch():
    """``with``: neither modes nor classes of tensors see calls."""
    return _DisableTorchDispatch()


def all_same_mode(modes):
    """Whether all are the first."""
    return all(mode == modes[0] for mode in modes)
