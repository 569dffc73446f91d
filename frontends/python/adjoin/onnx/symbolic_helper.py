"""adjoin.onnx.symbolic_helper: decorators of functions that write ops as nodes."""

import functools


def parse_args(*arg_descriptors):
    """A decorator that keeps the kinds of the arguments on the function."""

    def decorate(fn):
        @functools.wraps(fn)
        def wrapper(g, *args, **kwargs):
            return fn(g, *args, **kwargs)

        wrapper._arg_descriptors = list(arg_descriptors)
        return wrapper

    return decorate


def _missing(name):
    raise AttributeError(
        f"onnx.symbolic_helper.{name}: this exporter has it not; a function of register_custom_op_symbolic writes nodes by g.op('Name', *inputs, width_i=3)"
    )


__getattr__ = _missing
