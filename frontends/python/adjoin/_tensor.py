"""adjoin._tensor: the methods of Tensor that are written in Python, and its construction from data."""

import functools
import sys
import warnings
import weakref

from . import _array_methods, _C
from ._C import Tensor
from ._overridden import overridden

# What _C calls for data that is no plain nested list


def _plain_data(obj):
    """A part of the data of a tensor as numbers in lists; a tensor of one element is its number, whatever its shape."""
    if isinstance(obj, Tensor) and obj.numel() == 1:
        return obj.item()
    if hasattr(obj, "tolist"):
        plain = obj.tolist()
        if type(plain) is type(obj):  # numpy.longdouble, say
            raise TypeError(
                f"tensor: no dtype holds elements of {type(obj).__qualname__}; convert them, to float64 say"
            )
        return plain
    if isinstance(obj, dict):
        raise RuntimeError(
            "tensor: a dict has no dtype; elements must be numbers: give list(d.values()), or a tensor for each"
        )
    if hasattr(obj, "__len__") and hasattr(obj, "__getitem__") and not isinstance(obj, (str, bytes)):
        items = [obj[i] for i in range(len(obj))]
        return [x if isinstance(x, (int, float)) else _plain_data(x) for x in items]
    if hasattr(obj, "__index__"):
        return obj.__index__()
    if hasattr(obj, "__float__"):
        return obj.__float__()
    if isinstance(obj, (str, bytes)):
        raise ValueError(
            f"tensor: elements must be numbers, not {type(obj).__name__} {obj!r:.60}; make numbers of it first"
        )
    if obj is None:
        raise RuntimeError("tensor: None has no dtype; elements must be numbers: float('nan') says that one is missing")
    raise TypeError(f"tensor: elements must be numbers, not {type(obj).__name__}; take the numbers out of it first")


def _dtype_of_data(obj):
    """The dtype that arrays, tensors and NumPy's numbers inside nested data ask for together with what is beside them, or None."""
    typed, plain = set(), set()
    _collect_dtypes(obj, typed, plain)
    return functools.reduce(_C.promote_types, typed | plain) if typed else None


def _want_whole(obj):
    """TypeError for tensors of other than whole numbers inside nested data, which is to be of a dtype that would drop a part of them."""
    if isinstance(obj, (list, tuple)):
        for item in obj:
            _want_whole(item)
    elif isinstance(obj, Tensor) and (obj.is_floating_point() or obj.is_complex()) and obj.numel():
        raise TypeError(
            f"tensor: only integer tensors become whole numbers or bools; an element is a tensor of {obj.dtype}: "
            "cast it, with .long() or .bool() say"
        )


def _collect_dtypes(obj, typed, plain):
    if isinstance(obj, (list, tuple)):
        for item in obj:
            _collect_dtypes(item, typed, plain)
    elif isinstance(obj, Tensor):
        typed.add(obj.dtype)
    elif type(obj).__module__ == "numpy" and hasattr(obj, "dtype"):
        found = getattr(_C, obj.dtype.name, None)
        if isinstance(found, _C.dtype):
            typed.add(found)
    elif isinstance(obj, bool):
        plain.add(_C.bool)
    elif isinstance(obj, int):
        plain.add(_C.int64)
    elif isinstance(obj, float):
        plain.add(_C.get_default_dtype())
    elif isinstance(obj, complex):
        plain.add(_C.promote_types(_C.get_default_dtype(), _C.complex64))


def _from_array_protocol(obj):
    """A tensor on the memory that ``__array_interface__`` or ``__array__`` offers."""
    if hasattr(obj, "__array__"):
        return _C.from_numpy(obj.__array__())
    import numpy

    return _C.from_numpy(numpy.asarray(obj))


def _construct(cls, *args, device=None, dtype=None, size=None):
    """``Tensor(2, 3)`` is uninitialised, ``Tensor([1, 2])`` holds the data; of the default dtype."""
    args = args if size is None else tuple(size)
    dtype = dtype or _C.get_default_dtype()
    if len(args) == 1 and not isinstance(args[0], int):
        data = args[0]
        if isinstance(data, _C.Size):
            made = _C.find_op("empty")(data, dtype=dtype, device=device)
        elif isinstance(data, Tensor):
            made = data
            if cls is Tensor:
                with _C.DisableTorchFunctionSubclass():  # a plain one, whatever the class of what is given
                    made = data.detach()
        else:
            made = _C.tensor(data, dtype=dtype, device=device)
    else:
        made = _C.find_op("empty")(args or (0,), dtype=dtype, device=device)
    return made if cls is Tensor else Tensor._make_subclass(cls, made, made.requires_grad)


# Methods

_op = functools.cache(_C.find_op)


def _convert(result, cls):
    if isinstance(result, Tensor) and type(result) is Tensor:
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)) and type(result) is not _C.Size:
        items = [_convert(item, cls) for item in result]
        return type(result)(items) if type(result) in (tuple, list) else type(result)(tuple(items))
    return result


def _torch_function(cls, func, types, args=(), kwargs=None):
    """Results of calls with a subclass are of that subclass; a subclass may do otherwise."""
    if not all(issubclass(cls, t) or t is Tensor for t in types):
        return NotImplemented
    with _C.DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
    return result if func in UNCONVERTED else _convert(result, cls)


class _Memory:
    """The bytes under tensors as pickle sees them: the same object for tensors that share them."""

    alive = weakref.WeakValueDictionary()  # kept by the pickler meanwhile

    @classmethod
    def of(cls, tensor):
        number = tensor._storage_info()[3]
        found = cls.alive.get(number)
        if found is None:
            found = cls.alive[number] = cls()
            found.tensor = _whole(tensor)
        return found

    def __reduce__(self):
        flat = self.tensor.cpu()
        return _rebuild_memory, (bytes(memoryview(flat)) if flat.numel() else b"", str(self.tensor.device))


def _whole(tensor):
    """All bytes of the memory under the tensor."""
    tensor = tensor.detach()
    size = tensor._storage_info()[1] // tensor.itemsize
    return tensor.as_strided((size,), (1,), 0).view(_C.uint8)


def _placed(whole, like, shape, strides, offset):
    """A tensor over bytes, by itself: not a view of them."""
    if not whole.numel():
        return _C.find_op("empty")(shape, dtype=like, device=whole.device)
    return whole.view(like).as_strided(shape, strides, offset).detach()


def _rebuild_memory(data, device):
    made = _C.frombuffer(bytearray(data), dtype=_C.uint8) if data else _C.tensor([], dtype=_C.uint8)
    return made.clone() if device == "cpu" else made.to(device)


def _rebuild(memory, dtype, shape, strides, offset, requires_grad):
    if isinstance(memory, _Memory):  # copy.copy: nothing was written
        memory = memory.tensor
    return _placed(memory, dtype, shape, strides, offset).requires_grad_(requires_grad)


def _rebuild_meta(dtype, shape, strides, requires_grad):
    made = _C.find_op("empty_strided")(shape, strides, dtype=dtype, device="meta")
    return made.requires_grad_(requires_grad)


def _rebuild_subclass(cls, t, state):
    t = t if cls is Tensor else Tensor._make_subclass(cls, t, t.requires_grad)
    set_state(t, state)
    return t


def set_state(obj, state):
    """Gives a tensor what it has beside its values: attributes, those in slots, or what its class makes of a state of its own."""
    if type(obj).__setstate__ is not Tensor.__setstate__:
        obj.__setstate__(state)
        return
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    obj.__dict__.update(attributes or {})
    for name, value in (slots or {}).items():
        setattr(obj, name, value)


def _rebuild_from_type_v2(func, new_type, args, state):
    """The same by the name that PyTorch's pickles have."""
    from . import _pt_plain

    return _pt_plain._rebuild_from_type_v2(func, new_type, args, state)


def _rebuild_parts(op, args, requires_grad):
    """A tensor without strides, made again by the op that its parts name."""
    return _op(op)(*args).requires_grad_(requires_grad)


def _reduce_plain(self):
    parts = _C.wrapper_parts(self)
    if parts is not None:
        return _rebuild_parts, (parts[0], tuple(parts[1:]), self.requires_grad)
    t = _C.wrapper_strided(self, "pickle")
    look = (t.dtype, tuple(t.shape), t.stride())
    if t.is_meta:
        return _rebuild_meta, (*look, self.requires_grad)
    return _rebuild, (_Memory.of(t), *look, t.storage_offset(), self.requires_grad)


def _reduce_ex(self, protocol):
    plain = _reduce_plain(self)
    if type(self) is Tensor and not self.__dict__:
        return plain
    return _rebuild_further, (type(self), *plain, self.__getstate__())


def _rebuild_further(cls, function, args, state):
    return _rebuild_subclass(cls, function(*args), state)


def _copy(self):
    """Another tensor over the same memory."""
    made = self.detach().requires_grad_(self.requires_grad)
    if type(self) is Tensor and not self.__dict__:
        return made
    return _rebuild_subclass(type(self), made, self.__getstate__())


def sees_calls(cls):
    """Whether a class of tensors has a ``__torch_dispatch__`` of its own."""
    own = getattr(cls, "__torch_dispatch__", None)
    return own is not None and own is not getattr(Tensor, "__torch_dispatch__", None)


def _deepcopy(self, memo):
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError(
            "deepcopy: the tensor was computed by recorded operations and cannot be copied with "
            "its history; use .detach().clone()"
        )
    import copy

    by_class = type(self) is not Tensor and _C.wrapper_parts(self) is None and sees_calls(type(self))
    made = (_cloned(self) if by_class and not _has_memory(self) else _copied(self, memo)).requires_grad_(
        self.requires_grad
    )
    if self.grad is not None:
        made.grad = copy.deepcopy(self.grad, memo)
    if type(self) is not type(made):
        made = Tensor._make_subclass(type(self), made, self.requires_grad)
    memo[id(self)] = made
    if type(self).__getstate__ is object.__getstate__:
        set_state(made, copy.deepcopy(self.__getstate__(), memo))
    else:
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return made


def _has_memory(self):
    """Whether a tensor has memory of its own, which no tensor has whose class serves all calls with it."""
    try:
        self._storage_info()
    except NotImplementedError:
        return False
    return True


def _cloned(self):
    """A copy of a tensor without memory, by its class."""
    made = self.detach().clone()
    if type(made) is not type(self):
        raise RuntimeError(
            f"deepcopy: {type(self).__name__}.__torch_dispatch__ makes a {type(made).__name__} of clone(); let it make one of its "
            "own class, or write __deepcopy__"
        )
    return made


def _copied(self, memo):
    """The values over a copy of the memory, which other tensors of the same deepcopy share as they did before."""
    made = _C.wrapper_copy(self)
    if made is not None:
        return made
    self = _C.wrapper_strided(self, "deepcopy")
    if self.is_meta and type(self) is not Tensor:
        with _C.no_grad():
            return self.clone()  # its class may hold the values, and copies them
    if self.is_meta or not self.numel():
        return self.detach().clone()
    key = "adjoin memory", self._storage_info()[3]
    if key not in memo:
        memo[key] = _whole(self).clone()
    return _placed(memo[key], self.dtype, tuple(self.shape), self.stride(), self.storage_offset())


def _format(self, spec):
    if self.dim() == 0 and type(self) is Tensor:
        return format(self.item(), spec)
    return object.__format__(self, spec)


def _array_wrap(self, array, context=None, return_scalar=False):
    """What NumPy's functions give for a tensor is a tensor."""
    return _C.as_tensor(array)


def _nonzero(self, *, as_tuple=False):
    """The indices of elements that are not zero: one row each, or one tensor per dimension."""
    return tuple(_op("where.nonzero")(self)) if as_tuple else _op("nonzero")(self)


def _is_same_size(self, other):
    """Whether two tensors have one shape."""
    return self.shape == other.shape


def _array_interface(self):
    if self.requires_grad or not self.is_cpu:
        raise AttributeError("__array_interface__: only of host tensors that do not require grad")
    kind = memoryview(self).format
    letters = {"?": "b", "Zf": "c", "Zd": "c", "e": "f", "f": "f", "d": "f"}
    letter = letters.get(kind, "i" if kind.islower() else "u")
    return {
        "version": 3,
        "typestr": f"{'|' if self.itemsize == 1 else '<'}{letter}{self.itemsize}",
        "shape": tuple(self.shape),
        "strides": tuple(n * self.itemsize for n in self.stride()),
        "data": (self.data_ptr(), False),
    }


def _where(self, condition, other):
    """Elements of self where the condition holds, of other elsewhere."""
    return _op("where")(condition, self, other)


_TYPES = {
    "float32": "FloatTensor", "float64": "DoubleTensor", "float16": "HalfTensor",
    "bfloat16": "BFloat16Tensor", "uint8": "ByteTensor", "int8": "CharTensor",
    "int16": "ShortTensor", "int32": "IntTensor", "int64": "LongTensor", "bool": "BoolTensor",
    "complex64": "ComplexFloatTensor", "complex128": "ComplexDoubleTensor",
}  # fmt: skip
_HOST_TYPES = {getattr(_C, dtype): name for dtype, name in _TYPES.items()}


def _type(self, dtype=None, non_blocking=False):
    """The name of the tensor's old type, or the tensor in another dtype."""
    if dtype is None:
        package = sys.modules["adjoin"].__name__  # torch, where a program says so
        if self.is_cpu and self.dtype in _HOST_TYPES and not self.is_sparse:
            return f"{package}.{_HOST_TYPES[self.dtype]}"
        name = str(self.dtype).rsplit(".", 1)[-1]
        where = ("" if self.is_cpu else self.device.type + ".") + ("sparse." if self.is_sparse else "")
        return f"{package}.{where}{_TYPES.get(name, name)}"
    if isinstance(dtype, str):
        name = dtype.rsplit(".", 1)[-1]
        found = next((k for k, v in _TYPES.items() if v == name), None)
        if found is None:
            raise ValueError(f"invalid type: {dtype!r}; the types are called {', '.join(_TYPES.values())}")
        dtype = getattr(_C, found)
    elif isinstance(dtype, type):  # adjoin.FloatTensor
        dtype = dtype.dtype
    return self.to(dtype, non_blocking=non_blocking)


def _new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
    """A tensor with a copy of the data, of this one's dtype and device."""
    return _C.tensor(data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)


def _new_legacy(self, *args, device=None, size=None):
    """An uninitialised tensor of a size, or one with the data, of this one's dtype."""
    if self.layout is not _C.strided:
        from ._sparse import new

        return new(self, *args, device=device, size=size)
    args = args if size is None else tuple(size)
    if args and all(type(n) is int for n in args):
        return _C.find_op("empty")(args, dtype=self.dtype, device=device or self.device)
    return Tensor(*args, dtype=self.dtype, device=device or self.device)


def _share_memory(self):
    """Moves the memory to where other processes see it; elements and shape stay.

    The tensor that this one is a view of moves too. Other views and what detach() gave before keep
    the old memory: share before making them.
    """
    from ._shared import share

    return share(self)


def _resize(self, *sizes, memory_format=None):
    """Another shape; the memory grows if it must, new elements are uninitialised."""
    if self.requires_grad:
        raise RuntimeError("resize_: a tensor that requires grad cannot be resized")
    sizes = sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    if memory_format is _C.preserve_format:
        raise RuntimeError("resize_: Unsupported memory format preserve_format: a new shape keeps no order; name one")
    _C.tensor_resize(self, tuple(sizes))
    if memory_format not in (None, _C.contiguous_format):
        order = _op("empty")(tuple(sizes), device="meta", memory_format=memory_format).stride()
        _C.tensor_set(self, self.detach().view(-1), self.storage_offset(), tuple(sizes), order)
    return self


def _set(self, source=None, storage_offset=0, size=None, stride=None):
    """The tensor takes the memory of another one, or of a storage."""
    from ._typed_storage import TypedStorage
    from .storage import UntypedStorage

    if isinstance(source, TypedStorage):
        if source.dtype is not self.dtype:
            raise RuntimeError(
                f"set_: Expected a Storage of type {self.dtype} or an UntypedStorage, but got type {source.dtype}; "
                "give storage.untyped() to read its bytes so"
            )
        source = source.untyped()
    if isinstance(source, UntypedStorage):
        source = source._seen_as(self.dtype)
        size = source.shape if size is None else size
    if source is None:
        source, size, stride = _C.tensor([], dtype=self.dtype), (0,), (1,)
    elif size is None:
        storage_offset, size, stride = source.storage_offset(), source.shape, source.stride()
    if stride is None:
        stride = _C.find_op("empty")(size, device="meta").stride()
    size = (size,) if isinstance(size, int) else tuple(size)
    return _C.tensor_set(self, source, storage_offset, size, (stride,) if isinstance(stride, int) else tuple(stride))


_storage_of = None


def _untyped_storage(self):
    """The memory under the tensor."""
    global _storage_of
    if _storage_of is None:
        from .storage import of as _storage_of
    return _storage_of(self)


def _is_set_to(self, tensor):
    """Whether both look at the same memory in the same way."""
    return (
        self._storage_info()[2:] == tensor._storage_info()[2:]
        and self.shape == tensor.shape
        and self.stride() == tensor.stride()
    )


def _is_shared(self):
    """Whether other processes can see the memory: of the host after share_memory_, of other devices always."""
    if not self.is_cpu:
        return True
    shared = sys.modules.get(_SHARED)  # nothing is shared before it was asked for
    return shared is not None and shared.block_of(self) is not None


def _is_pinned(self, device=None):
    return _C.is_pinned(self)


def _pin_memory(self, device=None):
    """A copy in memory of the host that a device (by default the accelerator) copies from by itself.

    `to(device, non_blocking=True)` of it comes back before the bytes are there. Without an accelerator
    the tensor itself comes back.
    """
    if self.device.type != "cpu":
        raise RuntimeError(f"pin_memory: only memory of the host can be pinned; the tensor is on {self.device}")
    if device is None:
        from . import _accelerator

        try:
            device = _accelerator._accelerator()
        except RuntimeError:
            return self
    return _C.pin(self, device)


def _is_on(kind):
    return property(lambda self: self.device.type == kind, doc=f"Whether the device is called {kind}.")


def _same(self, *args, **kwargs):
    return self


def _to_dense(self, dtype=None, *, masked_grad=None):
    """The tensor itself, in dtype where one is given; of a sparse one a strided tensor of the same elements."""
    if self.layout is _C.strided:
        return self if dtype is None else self.to(dtype)
    from ._sparse import to_dense

    return to_dense(self, dtype, masked_grad=masked_grad)


def _to_sparse(self, *args, **settings):
    """The same elements in a sparse layout, COO by default: to_sparse(sparse_dim) or to_sparse(layout=...)."""
    from ._sparse import to_sparse

    return to_sparse(self, *args, **settings)


def _converts(name):
    def convert(self, *args, **settings):
        from . import _sparse

        return getattr(_sparse, name)(self, *args, **settings)

    convert.__doc__ = "The same elements in the layout " + name.removeprefix("to_") + "."
    return convert


def lu(A, pivot=True, get_infos=False, out=None):
    """linalg.lu_factor by its older name; get_infos: a third result says which matrices are singular, and no error does."""
    return _factored(A, pivot, get_infos, out)


def _lu(self, pivot=True, get_infos=False):
    return _factored(self, pivot, get_infos, above=4)


def _factored(A, pivot, get_infos, out=None, above=3):
    warnings.warn("lu: deprecated: use linalg.lu_factor(), or linalg.lu_factor_ex() for infos", stacklevel=above)
    LU, pivots, infos = _C.find_op("linalg::lu_factor_ex")(A, pivot=pivot, check_errors=not get_infos)
    found = (LU, pivots, infos) if get_infos else (LU, pivots)
    if out is None:
        return found
    return tuple(to.resize_(result.shape).copy_(result) for to, result in zip(out, found, strict=True))


def _reversed(self):
    return self if self.dim() == 0 else self.flip(0)


def _prelu(self, weight):
    return _C.find_op("nn::prelu")(self, weight)


def _hash_tensor(self, dim=None, *, keepdim=False, mode=0):
    from ._histograms import hash_tensor

    return hash_tensor(self, dim, keepdim=keepdim, mode=mode)


def _dir(self):
    return sorted({*dir(type(self)), *self.__dict__})


def _to_padded_tensor(self, padding, output_size=None, out=None):
    raise NotImplementedError(
        "to_padded_tensor: the tensor is not nested and has no padding; torch.nested makes nested tensors"
    )


def _late(name, module):
    """A method that stands in a module of its own, loaded when it is called."""

    def method(self, *args, **settings):
        from importlib import import_module

        return getattr(import_module(module, __package__), name)(self, *args, **settings)

    return method


def _chalf(self, memory_format=None):
    """The same numbers as complex halves."""
    return self.to(_C.complex32) if memory_format is None else self.to(_C.complex32, memory_format=memory_format)


def _make_wrapper_subclass(*args, **kwargs):
    """See utils._python_dispatch."""
    from .utils import _python_dispatch

    return _python_dispatch._make_wrapper_subclass(*args, **kwargs)


def _module_load(self, other, assign=False):
    """The tensor that is to change places with this one when a state dict is loaded by exchange: a new one, with the values of
    ``other``, or ``other`` itself detached (``assign``). Subclasses may answer otherwise."""
    from .overrides import handle_torch_function, has_torch_function

    if has_torch_function((self, other)):
        return handle_torch_function(Tensor.module_load, (self, other), self, other, assign=assign)
    return other.detach() if assign else self.copy_(other).detach()


def _setstate(self, state):
    """What pickles of early programs kept: (storage, offset, size, stride), or (data, grad, requires_grad, ...) of a Variable."""
    if not self.is_leaf:
        raise RuntimeError("__setstate__: the tensor has a history; a leaf is wanted")
    if len(state) == 4:
        return self.set_(*state)
    if len(state) == 5:
        self.data, state = state[0], (state[3], state[4], state[2])
    self.requires_grad_(bool(state[0]))


_SHARED = __name__.rpartition(".")[0] + "._shared"


def _variable():
    from .autograd import _variable as found

    return found


_UNSEEN = {"__setstate__", "__copy__", "__array_wrap__", "__array_namespace__"}  # of no interest to overrides
_METHODS = {
    "__torch_function__": classmethod(_torch_function),
    "_make_wrapper_subclass": staticmethod(_make_wrapper_subclass),
    "__reduce_ex__": _reduce_ex,
    "__setstate__": _setstate,
    "module_load": _module_load,
    "__copy__": _copy,
    "__deepcopy__": _deepcopy,
    "__format__": _format,
    "__reversed__": _reversed,
    "__dir__": _dir,
    "__repr__": _late("tensor_repr", "._tensor_str"),
    "__array_wrap__": _array_wrap,
    "__array_interface__": property(_array_interface),
    "__array_namespace__": _array_methods.array_namespace,
    "to_device": _array_methods.to_device,
    "lu": _lu,
    "nonzero": _nonzero,
    "where": _where,
    "type": _type,
    "new_tensor": _new_tensor,
    **{name: _late(name, "._by_element") for name in ("apply_", "map_", "map2_", "dim_order")},
    "share_memory_": _share_memory,
    "is_shared": _is_shared,
    "is_pinned": _is_pinned,
    "pin_memory": _pin_memory,
    "record_stream": lambda self, stream: None,
    "resize_": _resize,
    "set_": _set,
    "is_same_size": _is_same_size,
    "untyped_storage": _untyped_storage,
    **{name: _late(name, "._typed_storage") for name in ("storage", "storage_type")},
    "new": _new_legacy,
    "is_set_to": _is_set_to,
    "rename": _same,
    "resolve_neg": _same,
    **{f"is_{kind}": _is_on(kind) for kind in ("ipu", "maia", "mps", "mtia", "vulkan", "xla", "xpu")},
    "is_distributed": lambda self: False,
    "is_conj": lambda self: False,
    "is_neg": lambda self: False,
    "to_dense": _to_dense,
    "to_sparse": _to_sparse,
    **{name: _converts(name) for name in ("to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc")},
    "prelu": _prelu,
    "to_padded_tensor": _to_padded_tensor,
    "chalf": _chalf,
    "to_sparse_coo": lambda self: self.to_sparse(),
    "_coalesced_": _late("_coalesced_", "._sparse"),
    **{name: _late(name, "._sparse_products") for name in ("smm", "sspaddmm")},
    **{name: _late("_of_one_size", "._sparse_products") for name in ("sparse_resize_", "sparse_resize_and_clear_")},
    **{name: _late(name, "._removed") for name in ("cholesky", "eig", "lstsq", "qr", "solve", "symeig", "xpu")},
    "hash_tensor": _hash_tensor,
    "__rdiv__": lambda self, other: other / self,
    "volatile": property(
        lambda self: _variable().is_volatile(self), lambda self, to: _variable().set_volatile(self, to)
    ),
}


def _seen(function):
    """The method as ``__torch_function__`` of a subclass or a mode sees it: whole, by its own name."""

    @functools.wraps(function)
    def method(self, *args, **kwargs):
        if overridden(self):
            return _C.handle_torch_function(method, (self,), (self, *args), kwargs)
        return function(self, *args, **kwargs)

    return method


for _name, _function in _METHODS.items():
    if not isinstance(_function, (classmethod, property, staticmethod)):
        _function.__name__ = _name
        if _name not in _UNSEEN:
            _function = _seen(_function)
    _C.set_tensor_attribute(_name, _function)
# Their results are other tensors of the program, or parts of a pickle, which keep their type.
UNCONVERTED = {*(getattr(Tensor, name).__get__ for name in ("grad", "_grad", "_base")), Tensor.__reduce_ex__}
_C.set_tensor_attribute("name", None)  # no tensor has one unless it is given one
