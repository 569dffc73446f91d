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


def assume_constant_result(fn):
    """The function as it is: it is called each time."""
    return fn


def substitute_in_graph(original_fn, *, can_constant_fold_through=False, skip_signature_check=False, **kwargs):
    """A decorator that gives back the substitute; the original is what runs."""
    return lambda function: function


def list_backends(exclude_tags=("debug", "experimental")):
    """No compiler."""
    return []


def nested_compile_region(fn=None):
    """The function as it is."""
    return (lambda function: function) if fn is None else fn


class set_stance:
    """How functions are compiled, until changed or for a with statement: none is, whatever is said."""

    def __init__(self, stance="default", **options):
        self.stance = stance

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def __call__(self, function):
        return function


def reset():
    """Does nothing."""


def cudagraph_mark_step_begin():
    """Does nothing."""
