"""adjoin._dynamo: what libraries ask and tell PyTorch's tracer of bytecode. Adjoin has none: functions run as Python.

Decorators give back the function, marks are kept on the tensor, questions are answered with what is the case. What could
only be done by tracing raises.
"""

from ..compiler import disable, is_compiling, reset  # noqa: F401
from . import config, eval_frame, exc, utils  # noqa: F401
from .eval_frame import OptimizedModule  # noqa: F401


def _same(fn=None, **kwargs):
    return (lambda function: function) if fn is None else fn


def allow_in_graph(fn):
    """The function, or each of a list."""
    return fn


def assume_constant_result(fn):
    """The function as it is: it is called each time."""
    return fn


disallow_in_graph = forbid_in_graph = run = nonstrict_trace = _same


def skip(fn=None):
    """The function as it is: nothing is traced that could skip it."""
    return _same(fn)


def substitute_in_graph(original_fn, *, can_constant_fold_through=False, skip_signature_check=False, **kwargs):
    """A decorator that gives back the substitute; the original is what runs."""
    return _same()


def graph_break(msg=""):
    """Does nothing: there is no graph to break."""


def _mark(kind):
    def mark(t, index=None, **kwargs):
        """Keeps on the tensor which of its dimensions change from call to call, or never do."""
        for at in index if isinstance(index, (list, tuple)) else [index]:
            t.__dict__.setdefault(f"_dynamo_{kind}_indices", set()).add(at)

    mark.__name__ = f"mark_{kind}"
    return mark


mark_dynamic, maybe_mark_dynamic, mark_unbacked, mark_static = map(
    _mark, ("dynamic", "weak_dynamic", "unbacked", "static")
)


def mark_static_address(t, guard=False):
    """Keeps on the tensor that its memory stays where it is; it always does."""
    t._dynamo_static_input_type = "guarded" if guard else "unguarded"


def list_backends(exclude_tags=()):
    """No compiler."""
    return []


def register_backend(compiler_fn=None, name=None, tags=()):
    """Raises: no compiler could be asked for."""
    raise NotImplementedError(
        "_dynamo.register_backend: functions run as Python here, a compiler would never be called"
    )


def lookup_backend(compiler_fn):
    """The function itself; of a name, an error: there is no compiler."""
    if callable(compiler_fn):
        return compiler_fn
    raise exc.InvalidBackend(name=compiler_fn)


def optimize(backend="inductor", **kwargs):
    """A decorator that gives what ``adjoin.compile`` gives."""
    from ..compiler import compile

    return lambda function: compile(function)


def explain(f, *args, **kwargs):
    """Raises: nothing is traced that could be explained."""
    raise NotImplementedError("_dynamo.explain: functions run as Python here; nothing is traced")


def export(f, *args, **kwargs):
    """Raises: nothing is traced."""
    raise NotImplementedError("_dynamo.export: functions run as Python here; nothing is traced")
