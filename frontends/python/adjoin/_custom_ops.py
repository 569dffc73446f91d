"""adjoin._custom_ops: the first form of adjoin.library: an op by its name, each of its parts by a decorator that names it."""

import collections
import inspect

from . import _C, library
from .library import register_fake
from .testing._samples import Op
from .utils import _pytree as pytree

__all__ = ["custom_op", "impl", "impl_abstract", "impl_backward", "impl_save_for_backward"]

_SAVE, _BACKWARD = "impl_save_for_backward", "impl_backward"


def custom_op(qualname, func_or_schema=None, /, **words):
    """Defines an op without a kernel, by its schema or by a function whose annotations say it. With ``mutates_args`` it is
    ``library.custom_op``."""
    if words:
        return library.custom_op(qualname, func_or_schema, **words)
    space, name = library._split(qualname).split("::")
    if space in ("aten", "prim", "prims", "torch", "ns"):
        raise ValueError(f"custom_op: {space!r} is a reserved namespace; choose one of your own")

    def define(schema):
        taken = _C.find_op(qualname) is not None and qualname not in library._definitions
        if taken:
            raise RuntimeError(f"custom_op: {qualname} is an op of a plugin's already; choose another name")
        before, _, after = schema.partition("->")
        if "!" in schema or "Tensor" not in before or after.strip() in ("", "()", "None"):
            raise ValueError(
                f"custom_op: {qualname}{schema}: it must be functional: tensors among its arguments, a result, nothing written"
            )
        library.define(qualname, schema)
        library._definitions[qualname].open = False  # its derivative is what impl_backward is given

    def of_function(function):
        if not inspect.isfunction(function):
            raise ValueError(
                f"custom_op({qualname!r})(func): Expected `func` to be a Python function, got {type(function)}"
            )
        if function.__name__ != name:
            raise ValueError(
                f"custom_op({qualname!r})(func): `func` must have name '{name}', it has {function.__name__!r}"
            )
        define(library.infer_schema(function))
        return function

    if func_or_schema is None:
        return of_function
    return define(func_or_schema) if isinstance(func_or_schema, str) else of_function(func_or_schema)


def impl_abstract(qualname, *, func=None):
    """What an op gives for tensors without data."""
    return register_fake(qualname, func)


def impl(qualname, *, device_types=("cpu", "cuda"), func=None):
    """A kernel of an op, for devices that have none yet."""
    devices = [device_types] if isinstance(device_types, str) else list(device_types)
    kernels = library._definition_of(qualname, "impl").kernels
    taken = [d for d in (*devices, "", "recorded") if d in kernels]
    if taken:
        words = {"": "all devices (CompositeExplicitAutograd)", "recorded": "CompositeImplicitAutograd"}
        raise RuntimeError(
            f"impl: {qualname} already has an implementation for {words.get(taken[0], repr(taken[0]))}; leave one out, or define "
            "the op again"
        )
    return library.register_kernel(qualname, devices, func)


def impl_save_for_backward(qualname, *, func=None):
    """``func(inputs, output)`` gives what ``impl_backward`` of the op needs; inputs have the arguments' names."""
    return _half(qualname, _SAVE, func)


def impl_backward(qualname, output_differentiability=None, *, func=None):
    """``func(ctx, saved, *grads)`` gives a dictionary with a gradient, or None, for each tensor among the arguments."""
    if output_differentiability is not None:
        raise NotImplementedError(
            "impl_backward: output_differentiability is not there; let the backward ignore the gradients of such results"
        )
    return _half(qualname, _BACKWARD, func)


def _destroy(qualname):
    """Takes back what an op was given; its name stays, and says that it has no kernel."""
    definition = library._definition_of(qualname, "_destroy")
    definition.kernels.clear()
    definition.backward = definition.setup = None
    definition.halves = {}


def _half(qualname, what, func):
    definition = library._definition_of(qualname, what)
    _refuse_derivative(definition, what)

    def register(f):
        halves = definition.__dict__.setdefault("halves", {})
        if what in halves:
            raise RuntimeError(f"{what}: {qualname} has one already; define the op again to give it another")
        halves[what] = f
        library.register_autograd(qualname, _taken(definition), setup_context=_kept(definition))

    return library._decorated(func, register)


def _refuse_derivative(definition, what):
    results = Op(definition.name).results
    above = next((key for key in definition.kernels if key.startswith("autograd")), None)
    names = {"autograd": "Autograd", "autograd cpu": "AutogradCPU", "autograd cuda": "AutogradCUDA"}
    why = (
        "it is a non-functional op, which writes to its arguments"
        if definition.written
        else "it has no returns, so nothing has a gradient"
        if not results
        else "it is an operator that returns views, whose derivative is the views'"
        if any(r.alias for r in results)
        else "it has a kernel for CompositeImplicitAutograd, whose ops are recorded"
        if "recorded" in definition.kernels
        else f"it has a kernel for {names.get(above, above)}, which says the derivative"
        if above
        else None
    )
    if why:
        raise RuntimeError(f"{what}: {definition.name}: {why}; it takes no other derivative")


def _half_of(definition, what):
    given = definition.halves.get(what)
    if given is None:
        short = what.removeprefix("impl_")
        raise RuntimeError(f"{definition.name}: unable to find a {short!r} for it; give it one with {what}")
    return given


def _kept(definition):
    """What register_autograd calls after the op."""
    inputs_of = collections.namedtuple(
        f"{definition.name.rpartition('::')[2]}_inputs", [p.name for p in definition.params]
    )

    def setup(ctx, inputs, output):
        _half_of(definition, _BACKWARD)
        kept, spec = pytree.tree_flatten(_half_of(definition, _SAVE)(inputs_of(*inputs), output))
        ctx.save_for_backward(*(x for x in kept if isinstance(x, _C.Tensor)))
        ctx.others, ctx.spec = [None if isinstance(x, _C.Tensor) else (x,) for x in kept], spec

    return setup


def _taken(definition):
    """What it calls in the backward pass."""
    wanted = [p.name for p in definition.params if p.tensor]

    def backward(ctx, *grads):
        tensors = iter(ctx.saved_tensors)
        kept = [next(tensors) if other is None else other[0] for other in ctx.others]
        made = _half_of(definition, _BACKWARD)(ctx, pytree.tree_unflatten(kept, ctx.spec), *grads)
        if not isinstance(made, dict):
            raise RuntimeError(
                f"{definition.name}: the backward should be a function that returns a dictionary of gradients, it returned "
                f"{type(made).__name__}"
            )
        if set(made) != set(wanted):
            raise RuntimeError(
                f"{definition.name}: the backward's dictionary has keys {sorted(made)}; Expected keys are {sorted(wanted)}, its tensors"
            )
        return tuple(made.get(p.name) for p in definition.params)

    return backward
