"""adjoin.fx._arguments: the placeholders of a function's arguments, and those whose values are given."""

import inspect
import itertools
import types
import warnings

from ..utils import _pytree as pytree
from ._codegen import _PyTreeCodeGen, _PyTreeInfo
from .node import has_side_effect

__all__ = ["PH", "PHBase", "PHWithMeta", "placeholders"]


class PHBase:
    """Stands in concrete_args for what stays an input."""

    def __repr__(self):
        return "PH"


class PHWithMeta(PHBase):
    """An input that has a name of its own."""

    def __init__(self, ph_key=None):
        self.ph_key = ph_key

    def transfer_meta(self, node):
        """Puts its name on the placeholder's node."""
        node.meta["ph_key"] = self.ph_key


PH = PHBase()


@has_side_effect
def check_value(value, wanted, message):
    """Raises where an argument that was given for the trace is another one now. Traced again it is a step again."""
    if hasattr(value, "tracer") and hasattr(value, "node"):
        return value.tracer.create_proxy("call_function", check_value, (value, wanted, message), {})
    if type(value) is not type(wanted) or value != wanted:
        raise AssertionError(f"{message}, {value!r}; trace the program again for it")


def placeholders(tracer, function, is_module, concrete_args):
    """(the function to call, its arguments as proxies and given values)

    ``*args`` and ``**kwargs`` become one placeholder each.
    """
    analysed = inspect.unwrap(function)
    code = analysed.__code__
    total = code.co_argcount + code.co_kwonlyargcount
    names = list(code.co_varnames[: total + 2])
    given = dict(concrete_args) if isinstance(concrete_args, dict) else concrete_args
    skip = int(is_module)
    if is_module and total == 0:
        raise RuntimeError("``self`` argument cannot be part of *args expansion!")
    if isinstance(given, tuple):
        if len(given) != total - skip:
            raise RuntimeError(f"Tracing expected {total - skip} arguments but got {len(given)} concrete arguments")
        given = dict(zip(names[skip:total], given))
    unknown = set(given or ()) - set(names[skip:total])
    if unknown:
        raise ValueError(f"concrete_args names {sorted(unknown)}; the function has {names[skip:total]}")
    parameters = inspect.signature(analysed).parameters
    values = []
    for name in names[skip:total]:
        values.append(_value(tracer, name, parameters[name], given))
    plain, count = names[:total], total
    for flag, star in ((inspect.CO_VARARGS, "*"), (inspect.CO_VARKEYWORDS, "**")):
        if code.co_flags & flag:
            values.append(tracer.create_proxy("placeholder", star + names[count], (), {}))
            plain.append(names[count])
            count += 1
    if count > total or code.co_kwonlyargcount:
        if function is not analysed:
            raise TypeError(
                f"fx: {function} is wrapped and takes *args, **kwargs or keywords; trace the function in it"
            )
        function = _with_plain_arguments(function, count)
    if given is not None:
        function = _flattened(tracer, function, values, plain[skip:])
    return function, values


def _value(tracer, name, parameter, given):
    default = () if parameter.default is inspect.Parameter.empty else (parameter.default,)
    kind = None if parameter.annotation is inspect.Parameter.empty else parameter.annotation
    if given is None or name not in given:
        return tracer.create_proxy("placeholder", name, default, {}, type_expr=kind)

    numbers = itertools.count(1)

    def leaf(x):
        made = tracer.create_proxy("placeholder", f"{name}_{next(numbers)}", default, {})
        if isinstance(x, PHBase):
            if isinstance(x, PHWithMeta):
                x.transfer_meta(made.node)
            return made
        if x is None or isinstance(x, bool | int | float | str | complex):
            message = f"{name} has been specialized to have value {x} but got another value"
            tracer.create_proxy("call_function", check_value, (made, x, message), {})
        else:
            warnings.warn(
                f"fx: the value given for {name} is part of the graph; a call with another {type(x).__name__} can't be told from it",
                stacklevel=2,
            )
        return x

    return pytree.tree_map(leaf, given[name])


def _with_plain_arguments(function, count):
    """The same function, which takes everything by place."""
    code = function.__code__.replace(
        co_argcount=count,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_flags=function.__code__.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS),
    )
    made = types.FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = dict(function.__kwdefaults__ or {})
    return made


def _flattened(tracer, function, values, names):
    """Sets a code generator that takes nested arguments apart, and makes the function's result flat for it."""
    leaves, in_spec = pytree.tree_flatten(tuple(values))
    if all(child.is_leaf() for child in in_spec.children()):
        return function

    def flat(*args):
        out, spec = pytree.tree_flatten(function(*args))
        tracer.graph._codegen.pytree_info = tracer.graph._codegen.pytree_info._replace(out_spec=spec)
        return out

    tracer.graph._codegen = _PyTreeCodeGen(_PyTreeInfo(names, in_spec, None))
    return flat
