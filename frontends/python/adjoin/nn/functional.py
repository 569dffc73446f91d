"""adjoin.nn.functional: the ops of a network as functions.

An op of the registry named ``nn::x`` is ``functional.x``, the op object itself; only what one
signature cannot say stands here.
"""

from ._functional import attention, chances, drawn, images, losses, pools  # noqa: E402

for _part in (attention, chances, drawn, images, losses, pools):
    globals().update((name, getattr(_part, name)) for name in _part.__all__)
del _part


# Ops of tensors that have a name here, too.
_OF_TENSORS = (
    "channel_shuffle", "conv_tbc", "cosine_similarity", "native_channel_shuffle", "pixel_shuffle", "pixel_unshuffle",
    "relu", "relu_", "sigmoid", "tanh",
)  # fmt: skip


def __getattr__(name):
    from .. import _C  # late: layers may be imported while the package still is

    function = None
    if not name.startswith("__"):
        function = _C.find_op(name if name in _OF_TENSORS else "nn::" + name)
    if function is None:
        from .._hints import absent

        raise absent(__name__, name)
    globals()[name] = function  # the next look-up is an ordinary one
    return function


def __dir__():
    from .. import _C

    ops = [name[4:] for name in _C.op_names(True) if name.startswith("nn::") and "." not in name]
    return sorted({*globals(), *_OF_TENSORS, *ops})
