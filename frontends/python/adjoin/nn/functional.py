"""adjoin.nn.functional: the ops of a network as functions.

An op of the registry named ``nn::x`` is ``functional.x``, the op object itself and no wrapper; what
no row says is Python, in ``_composites``. Other ops are found too, so ``functional.tanh`` works.
"""

from . import _composites


def __getattr__(name):
    from .. import _C  # late: layers may be imported while the package still is

    function = None
    if not name.startswith("__"):
        function = _C.find_op("nn::" + name) or getattr(_composites, name, None)
        function = function or _C.find_op(name)
    if function is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = function  # the next look-up is an ordinary one
    return function


def __dir__():
    from .. import _C

    ops = [name[4:] for name in _C.op_names() if name.startswith("nn::")]
    return sorted({*globals(), *ops, *_composites.__all__})
