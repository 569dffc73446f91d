"""adjoin._legacy: FloatTensor, LongTensor, ...: the constructors from before there was a dtype argument."""

import sys

from . import _C
from ._tensor import _TYPES


def _package():
    """adjoin, or torch where a program says so."""
    return sys.modules["adjoin"].__name__


class _Named(type):
    """A class of which exactly the tensors of one dtype on the host are instances."""

    def __new__(meta, name, bases, *rest):
        for base in bases:  # an instance would be a plain tensor: what the class adds would be lost
            raise TypeError(
                f"type '{_package()}.{base.__name__}' is not an acceptable base type; derive from {_package()}.Tensor"
            )
        return super().__new__(meta, name, bases, *rest)

    def __instancecheck__(cls, obj):
        return isinstance(obj, _C.Tensor) and obj.is_cpu and obj.dtype is cls.dtype and not obj.is_sparse

    def __repr__(cls):
        return f"<class '{_package()}.{cls.__name__}'>"


def _make(name, dtype):
    def new(cls, *args, device=None, size=None):
        if device is not None and _C.device(device).type != "cpu":
            raise RuntimeError(
                f"{name}: its tensors are on the host, not on {device}; adjoin.tensor takes dtype and device"
            )
        return _C.Tensor(*args, dtype=dtype, size=size)

    return _Named(name, (), {"__new__": new, "dtype": dtype, "__doc__": f"Tensors of {dtype}."})


def _make_elsewhere(name, dtype, kind):
    def new(cls, *args, device=None, size=None):
        if not _C.device_count(kind):
            raise RuntimeError(f"{kind}.{name}: there is no {kind} device; adjoin.{name} makes tensors on the host")
        return _C.Tensor(*args, dtype=dtype, device=device or kind, size=size)

    class There(_Named):
        def __instancecheck__(cls, obj):
            return isinstance(obj, _C.Tensor) and obj.device.type == kind and obj.dtype is dtype

        def __repr__(cls):
            return f"<class '{_package()}.{kind}.{name}'>"

    return There(
        name, (), {"__new__": new, "dtype": dtype, "_kind": kind, "__doc__": f"Tensors of {dtype} on a {kind} device."}
    )


def elsewhere(name, kind):
    """The class of that name for a kind of device, or None."""
    found = next((dtype for dtype, known in _TYPES.items() if known == name), None)
    return found and _make_elsewhere(name, getattr(_C, found), kind)


class _Sparse(type):
    """A class of which exactly the COO tensors of one dtype on the host are instances."""

    is_sparse, layout = True, _C.sparse_coo

    def __instancecheck__(cls, obj):
        return isinstance(obj, _C.Tensor) and obj.is_cpu and obj.is_sparse and obj.dtype is cls.dtype

    def __repr__(cls):
        return f"<class '{_package()}.sparse.{cls.__name__}'>"


def sparse(name):
    """The class of that name of COO tensors, or None: from indices, values and maybe a size, or an empty one from a size."""
    found = next((dtype for dtype, known in _TYPES.items() if known == name), None)
    if found is None:
        return None
    dtype = getattr(_C, found)

    def new(cls, *args, device=None):
        from ._sparse import sparse_coo_tensor

        if args and isinstance(args[0], _C.Tensor):
            return sparse_coo_tensor(*args, device=device)
        if len(args) == 1 and isinstance(args[0], tuple):
            args = args[0]
        if not all(type(n) is int for n in args):
            raise TypeError(
                f"sparse.{name}: indices and values are tensors, a size is integers; adjoin.sparse_coo_tensor takes lists"
            )
        size = args or (0,)
        empty = _C.find_op("empty")
        return sparse_coo_tensor(empty((len(size), 0), dtype=_C.int64), empty((0,), dtype=dtype), size, device=device)

    return _Sparse(name, (), {"__new__": new, "dtype": dtype, "__doc__": f"Sparse tensors of {dtype}."})


named = {name: _make(name, getattr(_C, dtype)) for dtype, name in _TYPES.items()}
