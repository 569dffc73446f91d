"""adjoin._legacy: FloatTensor, LongTensor, ...: the constructors from before there was a dtype argument."""

from . import _C
from ._tensor import _TYPES


class _Named(type):
    """A class of which exactly the tensors of one dtype on the host are instances."""

    def __instancecheck__(cls, obj):
        return isinstance(obj, _C.Tensor) and obj.is_cpu and obj.dtype is cls.dtype

    def __repr__(cls):
        return f"<class 'adjoin.{cls.__name__}'>"


def _make(name, dtype):
    def new(cls, *args):
        return _C.Tensor(*args, dtype=dtype)

    return _Named(name, (), {"__new__": new, "dtype": dtype, "__doc__": f"Tensors of {dtype}."})


named = {name: _make(name, getattr(_C, dtype)) for dtype, name in _TYPES.items()}
