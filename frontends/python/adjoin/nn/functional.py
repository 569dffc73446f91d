"""adjoin.nn.functional: the ops of a network as functions.

An op of the registry named ``nn::x`` is ``functional.x``, the op object itself; only what one
signature cannot say stands here.
"""

import importlib

from ._functional import (
    attention,
    chances,
    dispatch,
    drawn,
    grouped,
    images,
    linear_loss,
    losses,
    margins,
    pools,
)

for _part in (attention, chances, dispatch, drawn, grouped, images, linear_loss, losses, margins, pools):
    globals().update((name, getattr(_part, name)) for name in _part.__all__)
del _part


def _of_tensors(name):
    """Does the row say that its function stands here, too?"""
    from .. import _C  # late: layers may be imported while the package still is

    if name.endswith("_") and name != "relu_":  # of their forms name_ that one alone
        return False
    infos = _C.op_info(name)
    return infos and "function:nn" in infos[0]["tags"].split()


def __getattr__(name):
    from .. import _C

    if name == "grad":
        return importlib.import_module("..grad", __name__)
    if name.startswith("scaled_") and name != "scaled_dot_product_attention" or name in ("ScalingType", "SwizzleType"):
        from ._functional import scaled

        if name in scaled.__all__:
            return getattr(scaled, name)
    if name == "Tensor" or name.startswith("BroadcastingList"):  # for annotations
        return (
            getattr(importlib.import_module("..jit.annotations", __package__), name) if name != "Tensor" else _C.Tensor
        )
    function = None
    if not name.startswith("__"):
        function = _C.find_op(name if _of_tensors(name) else "nn::" + name)
    if function is None:
        from .._hints import absent

        raise absent(__name__, name)
    globals()[name] = function  # the next look-up is an ordinary one
    return function


def __dir__():
    from .. import _C

    ops = [name[4:] for name in _C.op_names(True) if name.startswith("nn::") and "." not in name]
    tensors = [name for name in _C.op_names(True) if "::" not in name and _of_tensors(name)]
    return sorted({*globals(), *tensors, *ops})
