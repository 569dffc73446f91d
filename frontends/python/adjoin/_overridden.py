"""adjoin._overridden: functions of Python's that ``__torch_function__`` sees by their own names, as it sees ops.

def f(input, dim=0):
    if overridden(input):
        return handed_over(f, (input,), locals())
"""

from ._C import handle_torch_function
from ._C import has_torch_function_variadic as overridden

__all__ = ["handed_over", "overridden"]


def handed_over(function, relevant, given):
    """What the override of a relevant argument makes of a call; ``given`` are the function's locals() before it has more."""
    code = function.__code__
    count = code.co_argcount
    names = code.co_varnames[: count + code.co_kwonlyargcount]
    required = count - len(function.__defaults__ or ())
    args = tuple(given[name] for name in names[:required])
    if code.co_flags & 4:  # *args
        args += tuple(given[code.co_varnames[len(names)]])
    return handle_torch_function(function, relevant, args, {name: given[name] for name in names[required:]})
