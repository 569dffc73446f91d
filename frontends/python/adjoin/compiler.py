"""adjoin.compiler: what programs say to a compiler: there is none, everything runs as Python."""

from ._functions import compile  # noqa: F401


def is_compiling():
    """False."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def disable(fn=None, recursive=True, *, reason=None):
    """A decorator that changes nothing."""
    return (lambda function: function) if fn is None else fn


def allow_in_graph(fn):
    """The function as it is."""
    return fn


def reset():
    """Does nothing."""


def cudagraph_mark_step_begin():
    """Does nothing."""
