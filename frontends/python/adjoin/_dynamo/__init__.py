"""adjoin._dynamo: what libraries ask and tell PyTorch's tracer of bytecode. Adjoin has none: compile() runs the Python each time.

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


def is_dynamo_supported():
    """True: compile() works wherever Adjoin does."""
    return True


def graph_break(msg=""):
    """Inside of compile() and lazy(): what is written down is carried out here."""
    from .._lazy import lazy, scope_is_open

    if scope_is_open():
        lazy.flush()


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
    """The names that compile(backend=) takes."""
    from ..compiler import list_backends

    return list_backends()


def register_backend(compiler_fn=None, name=None, tags=()):
    """Raises: a backend gets a graph of torch.fx's, and none is made here."""
    raise NotImplementedError(
        "_dynamo.register_backend: no graph of torch.fx's is made here that a backend could be given; a plugin offers the "
        "service aj.compiler"
    )


def lookup_backend(compiler_fn):
    """The function itself; of a name, an error: there is no compiler."""
    if callable(compiler_fn):
        return compiler_fn
    raise exc.InvalidBackend(name=compiler_fn)


def optimize(backend="inductor", *, nopython=False, dynamic=None, **words):
    """A decorator that gives what ``compile`` gives."""
    from ..compiler import compile

    return lambda function: compile(function, backend=backend, fullgraph=nopython, dynamic=dynamic, **words)


class ExplainOutput:
    """What explain() tells: programs, and the places where one ended because a value was needed."""

    def __init__(self, told):
        self.told = told
        self.graph_count, self.op_count = len(told.regions), sum(r["calls"] for r in told.regions)
        self.break_reasons = [BreakReason(r) for r in told.breaks]
        self.graph_break_count = len(self.break_reasons)
        self.graphs, self.out_guards = [], []  # no graphs of torch.fx's, no guards: the Python runs each time

    def __str__(self):
        return (
            f"Graph Count: {self.graph_count}\nGraph Break Count: {self.graph_break_count}\nOp Count: {self.op_count}\n"
            f"{self.told}"
        )

    __repr__ = __str__


class BreakReason:
    """A place where a program ended early."""

    def __init__(self, region):
        op = f" ({region['op']})" if region["op"] else ""
        self.reason, self.line, self.user_stack = region["reason"] + op, region["line"], [region["line"]]
        self.graph_break = True

    def __repr__(self):
        return f"BreakReason({self.reason!r}, {self.line!r})"


def explain(f, *extra_args, **extra_kwargs):
    """explain(f)(*args): runs f once with its calls written down, and tells the programs and why each ended."""

    def inner(*args, **kwargs):
        from .. import _C
        from .._lazy import Explanation, new_memory

        memory = new_memory()
        _C.lazy_enter(memory, 0)
        try:
            f(*args, **kwargs)
        finally:
            _C.lazy_leave()
        return ExplainOutput(Explanation(memory))

    return inner(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else inner


def export(f, *extra_args, aten_graph=False, **kwargs):
    """Raises: a graph of torch.fx's with guards is not made; export.export makes a program."""
    raise NotImplementedError(
        "_dynamo.export: no graph with guards is made here; export.export(module, args) makes a program"
    )
