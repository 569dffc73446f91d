"""adjoin.utils._mode_utils: what libraries ask of dispatch modes."""

from ._python_dispatch import _disable_current_modes as no_dispatch  # noqa: F401


def all_same_mode(modes):
    """Whether all are the first."""
    return all(mode == modes[0] for mode in modes)
