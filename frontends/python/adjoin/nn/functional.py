"""adjoin.nn.functional: the ops of a network as functions.

An op of the registry named ``nn::x`` is ``functional.x``, the op object itself; only what one
signature cannot say stands here. Other ops are found too, so ``functional.tanh`` works.
"""

import functools


@functools.cache
def _op(name):
    from .. import _C  # late: layers may be imported while the package still is

    return _C.find_op("nn::" + name)


def _either(name):
    """A pool whose number of results depends on an argument."""

    def pool(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
             return_indices=False):  # fmt: skip
        op = _op(name + "_with_indices" if return_indices else name)
        return op(input, kernel_size, stride, padding, dilation, ceil_mode)

    pool.__name__ = pool.__qualname__ = name
    return pool


def _adaptive(name):
    """A pool in whose output_size None stands for the input's own size."""

    def pool(input, output_size):
        if isinstance(output_size, (tuple, list)) and None in output_size:
            kept = input.shape[-len(output_size) :]
            output_size = [k if s is None else s for k, s in zip(kept, output_size, strict=False)]
        return _op(name)(input, output_size)

    pool.__name__ = pool.__qualname__ = name
    return pool


max_pool1d, max_pool2d = map(_either, ("max_pool1d", "max_pool2d"))
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_max_pool2d = map(
    _adaptive, ("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_max_pool2d")
)


def __getattr__(name):
    from .. import _C  # late: layers may be imported while the package still is

    function = None
    if not name.startswith("__"):
        function = _C.find_op("nn::" + name) or _C.find_op(name)
    if function is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = function  # the next look-up is an ordinary one
    return function


def __dir__():
    from .. import _C

    ops = [name[4:] for name in _C.op_names() if name.startswith("nn::") and "." not in name]
    return sorted({*globals(), *ops})
