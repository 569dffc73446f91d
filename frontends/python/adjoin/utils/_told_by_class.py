"""adjoin.utils._told_by_class: tensors whose class tells their sizes, strides, device or layout by its ``__torch_dispatch__``.

``dispatch_sizes_strides_policy="strides"`` asks it for strides and contiguity, ``"sizes"`` for sizes, dimensions and the number of
elements as well; ``dispatch_device`` and ``dispatch_layout`` for those. Python's questions are answered so; kernels see what the tensor
was made with. A class that answers None leaves the answer to the tensor.
"""

import adjoin

from .. import _aten
from ._python_dispatch import _asked, _no_class, _none_serves, _overrides

_KEY = "__told_by_class__"
_Tensor = adjoin.Tensor
_POLICIES = {None: (), "strides": ("strides",), "sizes": ("sizes", "strides")}


def asks(tensor, policy=None, device=False, layout=False):
    """The tensor, whose class is asked from now on."""
    if policy not in _POLICIES:
        raise RuntimeError(
            f"dispatch_sizes_strides_policy is {policy!r}; 'strides', 'sizes' and None are known: what the class tells by itself"
        )
    topics = {*_POLICIES[policy], *(("device",) if device else ()), *(("layout",) if layout else ())}
    if topics:
        cls = type(tensor)
        if not _overrides(cls):
            raise RuntimeError(
                f"{cls.__name__} has no __torch_dispatch__, which would tell {' and '.join(sorted(topics))} of its tensors"
            )
        tensor.__dict__[_KEY] = frozenset(topics)
        _prepare(cls)
    return tensor


def _answer(tensor, topic, overload, own, *args):
    """What the class says, or what the tensor has."""
    if topic not in tensor.__dict__.get(_KEY, ()):
        return own(tensor, *args)
    cls = type(tensor)
    with _no_class():
        told = _asked(cls, cls, overload, (cls,), (tensor, *args), {})
        if told is NotImplemented:
            raise _none_serves(overload, (cls,))
        return own(tensor, *args) if told is None else told


def _op(name, overload="default"):
    return getattr(getattr(_aten.Aten("aten"), name), overload)


def _size(self, dim=None):
    told = _answer(self, "sizes", _op("sym_size"), _Tensor.size)
    return adjoin.Size(told) if dim is None else adjoin.Size(told)[dim]


def _stride(self, dim=None):
    told = tuple(_answer(self, "strides", _op("sym_stride"), _Tensor.stride))
    return told if dim is None else told[dim]


def _is_contiguous(self, *, memory_format=adjoin.contiguous_format):
    if memory_format is adjoin.contiguous_format:
        return bool(_answer(self, "strides", _op("is_contiguous"), _Tensor.is_contiguous))
    own = lambda t, kind: _Tensor.is_contiguous(t, memory_format=kind)  # noqa: E731
    return bool(_answer(self, "strides", _op("is_contiguous", "memory_format"), own, memory_format))


def _contiguous(self, memory_format=adjoin.contiguous_format):
    if _is_contiguous(self, memory_format=memory_format):
        return self
    return self.clone(memory_format=memory_format)


def _dim(self):
    return _answer(self, "sizes", _op("dim"), _Tensor.dim)


def _numel(self):
    return _answer(self, "sizes", _op("sym_numel"), _Tensor.numel)


def _storage_offset(self):
    return _answer(self, "sizes", _op("sym_storage_offset"), _Tensor.storage_offset)


def _device(self):
    return _answer(self, "device", _aten.prim.device.default, _Tensor.device.__get__)


def _layout(self):
    return _answer(self, "layout", _aten.prim.layout.default, _Tensor.layout.__get__)


_FACES = {
    "size": _size, "stride": _stride, "is_contiguous": _is_contiguous, "contiguous": _contiguous, "dim": _dim, "ndimension": _dim,
    "numel": _numel, "nelement": _numel, "storage_offset": _storage_offset, "shape": property(_size), "ndim": property(_dim),
    "device": property(_device), "layout": property(_layout),
}  # fmt: skip


def _prepare(cls):
    """The class's tensors ask it, where it has no word of its own."""
    for name, face in _FACES.items():
        if getattr(cls, name) == getattr(_Tensor, name):
            setattr(cls, name, face)
