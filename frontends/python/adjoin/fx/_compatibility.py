"""adjoin.fx._compatibility: the mark by which libraries say how stable a function is; it changes nothing."""

__all__ = ["compatibility"]


def compatibility(is_backward_compatible):
    """A decorator that gives the function or class back."""
    return lambda marked: marked
