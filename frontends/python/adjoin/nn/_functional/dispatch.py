"""adjoin.nn._functional.dispatch: how functions of networks give way: to what overrides them, and by a flag."""

from ...overrides import (
    handle_torch_function,
    has_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
)

__all__ = [
    "boolean_dispatch", "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
]  # fmt: skip


def boolean_dispatch(arg_name, arg_index, default, if_true, if_false, module_name, func_name):
    """A function that calls ``if_true`` or ``if_false``, by its argument of that name or place."""
    if if_true.__doc__ and if_false.__doc__:
        raise RuntimeError("only one function can have a docstring")

    def chosen(*args, **kwargs):
        flag = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if flag else if_false)(*args, **kwargs)

    chosen.__doc__ = if_true.__doc__ or if_false.__doc__
    chosen.__module__, chosen.__name__ = module_name or chosen.__module__, func_name or chosen.__name__
    return chosen
