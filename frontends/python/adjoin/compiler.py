"""adjoin.compiler: what programs say to a compiler and ask of it.

compile() runs the Python of a function each time, as it is written; so what names a function that a compiler should not look
into, or should take as it is, has little to say here.
"""

import functools
import types

from ._functions import compile  # noqa: F401

_exporting = False


def is_compiling():
    """Is a program made of what runs now, once and for all (export)? Inside of compile() the answer is no: the Python runs
    each time, and decides each time."""
    from .jit import is_tracing

    return _exporting or is_tracing()


def is_dynamo_compiling():
    """False: bytecode is not traced."""
    return False


def is_exporting():
    """Is export.export at work?"""
    return _exporting


def disable(fn=None, recursive=True, *, reason=None):
    """A decorator: inside of compile() and lazy() the calls of the function are carried out one by one, at once."""
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if not callable(fn) or isinstance(fn, (type, types.BuiltinFunctionType)):
        return fn
    from ._lazy import paused, scope_is_open

    @functools.wraps(fn)
    def at_once(*args, **kwargs):
        if not scope_is_open():
            return fn(*args, **kwargs)
        with paused():
            return fn(*args, **kwargs)

    at_once._torchdynamo_disable = True
    return at_once


def allow_in_graph(fn):
    """The function as it is: its calls are written down as all are."""
    return fn


def assume_constant_result(fn):
    """The function as it is: it is called each time."""
    return fn


def substitute_in_graph(original_fn, *, can_constant_fold_through=False, skip_signature_check=False, **kwargs):
    """A decorator that gives back the substitute; the original is what runs."""
    return lambda function: function


def list_backends(exclude_tags=("debug", "experimental")):
    """The names that compile(backend=) takes: one compiler, by two names."""
    from ._compile import BACKENDS

    return [name for name in BACKENDS if name]


def nonstrict_trace(traceable_fn):
    """The function as it is: what it calls is written down, its Python is not looked at."""
    if not callable(traceable_fn):
        raise AssertionError(f"nonstrict_trace: a function is wanted, not {traceable_fn!r}")
    return traceable_fn


def nested_compile_region(fn=None):
    """The function as it is: a call that was met before is known wherever it stands."""
    return (lambda function: function) if fn is None else fn


STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile", "eager_then_compile")
_stance = "default"


class set_stance:
    """How functions of compile() run, until changed or for a with statement: "default", or "force_eager", as they are.

    The other stances of PyTorch's speak of compiling again, which is not an event here.
    """

    def __init__(self, stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
        global _stance
        if stance not in STANCES:
            raise RuntimeError(f"set_stance: {stance!r} is none of {', '.join(STANCES)}")
        if stance == "fail_on_recompile":
            raise NotImplementedError(
                "set_stance: 'fail_on_recompile' cannot be kept, the Python runs each time and may make other calls; "
                "compile(fullgraph=True) refuses values that are needed on the way"
            )
        self.before, self.stance = _stance, stance
        _stance = stance

    def __enter__(self):
        return self

    def __exit__(self, *error):
        global _stance
        _stance = self.before

    def __call__(self, function):
        global _stance
        _stance = self.before
        stance = self.stance

        @functools.wraps(function)
        def inside(*args, **kwargs):
            with set_stance(stance):
                return function(*args, **kwargs)

        return inside


def reset():
    """Every function of compile() forgets what it has met."""
    from ._compile import reset

    reset()


def cudagraph_mark_step_begin():
    """Does nothing: no memory is used again behind a program's back."""
