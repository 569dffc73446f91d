"""adjoin.nn._functional: functions of networks that are more than one op; public in
adjoin.nn.functional."""

import functools
import warnings


@functools.cache
def op(name):
    """An op of nn.functional, or of the top level."""
    from ... import _C  # late: layers may be imported while the package still is

    return _C.find_op("nn::" + name) or _C.find_op(name)


def legacy_reduction(size_average, reduce, reduction):
    """The word for the two flags that came before it."""
    if size_average is None and reduce is None:
        return reduction
    average = size_average is None or size_average
    reduction = "none" if reduce is False else ("mean" if average else "sum")
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
        stacklevel=4,
    )
    return reduction
