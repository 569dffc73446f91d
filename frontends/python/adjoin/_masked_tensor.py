"""adjoin._masked_tensor: MaskedTensor, a tensor of whose elements a mask says which count.

The tensor is its data, as a subclass: it has their memory and their place on the tape. What is called with it goes to `call`, which
runs the op on the data and says which elements of the result count. An op that nobody looked at is refused: it could mix elements
that count with others.
"""

import warnings

from . import _C
from ._overridden import as_op, of_the_object

_op = _C.find_op
_Tensor = _C.Tensor
_grad = _Tensor.__dict__["grad"]
_LAYOUTS = (_C.strided, _C.sparse_coo, _C.sparse_csr)


class MaskedTensor(_Tensor):
    """Copies of numbers, and of a mask that says which of them count. Masks of operands must be the same."""

    def __new__(cls, data, mask, requires_grad=False):
        with _C.DisableTorchFunctionSubclass():
            data, mask = _checked(data, mask)
            if data.requires_grad:
                warnings.warn(
                    "It is not recommended to create a MaskedTensor with a tensor that requires_grad. To avoid this, you can "
                    "use data.detach().clone()",
                    UserWarning,
                    stacklevel=2,
                )
            return wrap(data.detach().clone(), mask.detach().clone(), cls).requires_grad_(requires_grad)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if not all(issubclass(t, (MaskedTensor, _C.Tensor)) for t in types):
            return NotImplemented
        with _C.DisableTorchFunctionSubclass():
            return call(func, args, kwargs or {})

    @property
    def _data(self):
        return plain(self)

    @property
    def grad(self):
        """The gradient of the elements that count."""
        with _C.DisableTorchFunctionSubclass():
            found = _grad.__get__(self)
            return None if found is None or isinstance(found, MaskedTensor) else wrap(found, self._mask)

    @grad.setter
    def grad(self, value):
        with _C.DisableTorchFunctionSubclass():
            _grad.__set__(self, plain(value) if isinstance(value, MaskedTensor) else value)

    def get_data(self):
        """The numbers, those that do not count among them."""
        return plain(self)

    def get_mask(self):
        """Which of the numbers count."""
        return self._mask

    def is_masked_tensor(self):
        return True

    def to_tensor(self, value):
        """A tensor with ``value`` where a number does not count."""
        with _C.DisableTorchFunctionSubclass():
            data, mask = dense(self)
            return data.where(mask, data.new_full((), value))

    def to_dense(self, dtype=None, *, masked_grad=None):
        """The same elements and mask, strided."""
        with _C.DisableTorchFunctionSubclass():
            data, mask = dense(self)
            return wrap(data if dtype is None else data.to(dtype), mask)

    def to_sparse(self, *, layout=_C.sparse_coo):
        """The elements that count, and their mask, in a sparse layout: COO or CSR."""
        with _C.DisableTorchFunctionSubclass():
            if self.layout is layout:
                return self
            _want_strided(self, "another sparse layout")
            mask = self._mask.to_sparse(layout=layout)
            return wrap(plain(self).sparse_mask(mask), mask)

    to_sparse_coo = to_sparse

    def to_sparse_csr(self):
        """The elements that count, and their mask, as CSR."""
        return self.to_sparse(layout=_C.sparse_csr)

    def detach(self):
        """The same elements without history."""
        with _C.DisableTorchFunctionSubclass():
            return wrap(plain(self).detach(), self._mask, type(self))

    @property
    def data(self):
        return self.detach()

    def requires_grad_(self, requires_grad=True):
        with _C.DisableTorchFunctionSubclass():
            return _Tensor.requires_grad_(self, requires_grad)

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        """backward of the numbers that count."""
        with _C.DisableTorchFunctionSubclass():
            data, mask = plain(self), self._mask
            gradient = plain(gradient) if isinstance(gradient, MaskedTensor) else gradient
            if mask.layout is _C.strided and data.requires_grad:
                gradient = data.new_ones(data.shape) if gradient is None else gradient
                gradient = gradient.where(mask, gradient.new_zeros(()))
            data.backward(gradient, retain_graph, create_graph, inputs)

    def is_contiguous(self, *, memory_format=_C.contiguous_format):
        with _C.DisableTorchFunctionSubclass():
            _want_strided(self, "is_contiguous")
            return _Tensor.is_contiguous(self, memory_format=memory_format)

    def __repr__(self, *, tensor_contents=None):
        with _C.DisableTorchFunctionSubclass():
            data, mask = (t.detach().tolist() for t in dense(self))

        def text(data, mask):
            if isinstance(data, list):
                return "[" + ", ".join(text(d, m) for d, m in zip(data, mask, strict=True)) + "]"
            return f"{data:.4f}" if mask and isinstance(data, float) else str(data) if mask else "--"

        return f"MaskedTensor({text(data, mask)})"

    __str__ = __repr__

    def __format__(self, spec):
        return format(repr(self), spec)

    def __reduce_ex__(self, protocol):
        return rebuild, (plain(self).detach(), self._mask, self.requires_grad and self.is_leaf)

    def __deepcopy__(self, memo):
        if not self.is_leaf:
            raise RuntimeError(
                "deepcopy: the tensor was computed from others; only leaves can be copied so: use clone() or detach()"
            )
        memo[id(self)] = made = type(self)(plain(self).detach(), self._mask, self.requires_grad)
        return made


def _checked(data, mask):
    """Data and mask of one shape and layout, sparse ones with the same places."""
    for what, t in (("data", data), ("mask", mask)):
        if not isinstance(t, _Tensor) or isinstance(t, MaskedTensor):
            raise TypeError(f"MaskedTensor: {what} must be a Tensor, it is {type(t).__name__}")
    if data.layout is not mask.layout:
        raise TypeError(
            f"MaskedTensor: data and mask must have the same layout, they have {data.layout} and {mask.layout}"
        )
    if data.layout not in _LAYOUTS:
        raise TypeError(f"MaskedTensor: data layout of {data.layout} is not supported; strided, COO and CSR are")
    if mask.dtype is not _C.bool:
        raise TypeError(f"MaskedTensor: the mask must be bool, it is {mask.dtype}")
    if data.dim() != mask.dim():
        raise ValueError(f"MaskedTensor: data.dim() must equal mask.dim(), they are {data.dim()} and {mask.dim()}")
    if data.shape != mask.shape:
        raise ValueError(
            f"MaskedTensor: data.size() must equal mask.size(), they are {tuple(data.shape)} and {tuple(mask.shape)}"
        )
    if data.layout is _C.sparse_coo:
        data, mask = data.coalesce(), mask.coalesce()
        if data._nnz() != mask._nnz():
            data = data.sparse_mask(mask)
    if data.layout is not _C.strided and not same_places(data, mask):
        kind = "COO tensors but do not have the same indices" if data.layout is _C.sparse_coo else (
            "CSR tensors but do not share either crow or col indices"
        )  # fmt: skip
        raise ValueError(f"MaskedTensor: data and mask are both sparse {kind}.")
    return data, mask


def same_places(a, b):
    """Whether two sparse tensors of one layout keep the same places."""
    if a.layout is _C.sparse_coo:
        return a._indices().equal(b._indices())
    if a._nnz() != b._nnz():
        return False
    return a.crow_indices().equal(b.crow_indices()) and a.col_indices().equal(b.col_indices())


def plain(masked):
    """The data, as an ordinary tensor with the same history."""
    with _C.DisableTorchFunctionSubclass():
        return masked.as_subclass(_Tensor)


def wrap(data, mask, cls=MaskedTensor):
    """The masked tensor of data and mask themselves."""
    made = data.as_subclass(cls)
    made._mask = mask
    return made


def rebuild(data, mask, requires_grad):
    """What a pickled masked tensor is made of."""
    return wrap(data, mask).requires_grad_(requires_grad)


def dense(masked):
    """Data and mask, strided."""
    data, mask = plain(masked), masked._mask
    return (data, mask) if data.layout is _C.strided else (data.to_dense(), mask.to_dense())


def _want_strided(masked, name):
    if masked.layout is not _C.strided:
        raise ValueError(f"MaskedTensors with sparse data do not have {name}; call to_dense() first")


def call(func, args, kwargs):
    """The result of func, of which at least one argument is a masked tensor."""
    func, args = as_op(func, args)
    name = func.__name__.rpartition(".")[2]
    base = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    served = _SERVED.get(base)
    if served is not None:
        return served(base, func, list(args), dict(kwargs))
    if of_the_object(func):
        return func(*args, **kwargs)
    if base in _MOVES or _kind(base) == "view":
        return _moved(name, func, args, kwargs)
    from .nested._calls import _elementwise

    if base in _COMPOSITES or _elementwise(base) or _elementwise(_first_name(base)):
        return _pointwise(name, func, args, kwargs)
    raise TypeError(
        f"no implementation found for 'torch._ops.aten.{name}.default' on types that implement __torch_function__: "
        f"{name} is not there for masked tensors; use get_data() or to_tensor(value)"
    )


# What moves elements and computes nothing, beside views.
_MOVES = frozenset("""
    __getitem__ cat clone concat contiguous expand expand_as flatten flip fliplr flipud index_select movedim moveaxis narrow permute
    repeat reshape roll rot90 select split squeeze stack swapaxes t tile transpose unflatten unfold unsqueeze view
""".split())  # fmt: skip
# What is made of element-wise ops, which its row does not say.
_COMPOSITES = frozenset("angle conj_physical deg2rad positive rad2deg sgn".split())


def _first_name(name):
    """The name of the op that a name is another one of, as its row says: arctanh is atanh."""
    infos = _C.op_info(name)
    said = infos[0]["doc"] if infos else ""
    return said.removeprefix(_OTHER_NAME).rstrip(".") if said.startswith(_OTHER_NAME) else name


_OTHER_NAME = "Another name for "


def _kind(name):
    infos = _C.op_info(name)
    return infos[0]["kind"] if infos else ""


def _each(args, change):
    """The arguments with ``change`` of each masked tensor among them, in lists and tuples too."""
    return [
        change(a) if isinstance(a, MaskedTensor) else type(a)(_each(a, change)) if type(a) in (list, tuple) else a
        for a in args
    ]


def _all_masked(args):
    for a in args:
        if isinstance(a, MaskedTensor):
            yield a
        elif type(a) in (list, tuple):
            yield from _all_masked(a)


def _moved(name, func, args, kwargs):
    for a in _all_masked(args):
        if a.layout is not _C.strided and name != "clone":
            _want_strided(a, name)
    data, mask = func(*_each(args, plain), **kwargs), None
    if name == "unfold" and data.dim() != args[0].dim() + 1:  # of images, which has no truth values
        mask = func(*_each(args, lambda t: t._mask.to(data.dtype)), **kwargs) != 0
    else:
        mask = func(*_each(args, lambda t: t._mask), **kwargs)
    if isinstance(data, _Tensor):
        return wrap(data, mask)
    return type(data)([wrap(d, m) for d, m in zip(data, mask, strict=True)])


def _pointwise(name, func, args, kwargs):
    sides = [a for a in (*args, *kwargs.values()) if isinstance(a, MaskedTensor)]
    first = sides[0]
    for other in sides[1:]:
        _want_alike(first, other)
    if first.layout is not _C.strided:
        from ._sparse import with_values

        kwargs = {k: v._values() if isinstance(v, _Tensor) else v for k, v in kwargs.items()}
        made = func(*(plain(a)._values() if isinstance(a, _Tensor) else a for a in args), **kwargs)
        return wrap(with_values(plain(first), made), first._mask)
    made = func(*_each(args, plain), **{k: v for k, v in zip(kwargs, _each(kwargs.values(), plain), strict=True)})
    if isinstance(args[0], MaskedTensor) and name.endswith("_") and not name.endswith("__"):
        return args[0]
    return wrap(made, first._mask.expand(made.shape))


def _want_alike(first, other):
    if first.layout is not other.layout:
        raise TypeError(f"MaskedTensor: operands must have one layout, they have {first.layout} and {other.layout}")
    a, b = first._mask, other._mask
    same = a.equal(b) if a.layout is _C.strided else same_places(a, b) and a._values().equal(b._values())
    if not same:
        raise ValueError("Input masks must match; where they differ give to_tensor(value) of one of them")


def _reduced(name, func, args, kwargs):
    from . import masked

    first = args[0]
    if first.layout is not _C.strided:
        return _reduced_sparse(name, func, args, kwargs)
    if name == "all":
        data = plain(first).where(first._mask, _op("ones")((), dtype=first.dtype))
        return masked._given(
            first,
            data.all(*args[1:], **kwargs),
            None,
            args[1] if len(args) > 1 else kwargs.get("dim"),
            kwargs.get("keepdim", False),
        )
    return getattr(masked, name)(*args, **kwargs)


def _reduced_sparse(name, func, args, kwargs):
    """Reductions of all elements that are kept, which a mask of the same places names."""
    from . import masked

    if len(args) > 1 or kwargs.get("dim") is not None:
        raise ValueError(f"{name}: a masked tensor with sparse data is reduced as a whole; call to_dense() first")
    first = args[0]
    if name in ("argmax", "argmin"):  # they count the places that are not kept, too
        return getattr(masked, name)(wrap(*dense(first)), **kwargs)
    values = wrap(plain(first)._values(), first._mask._values())
    return getattr(masked, name)(values, **kwargs)


def _where(name, func, args, kwargs):
    from . import masked

    condition, chosen, other = args
    if not isinstance(chosen, MaskedTensor) or not isinstance(other, MaskedTensor):
        raise ValueError("where: both choices must be MaskedTensors; as_masked_tensor() makes one")
    for t in (chosen, other):
        _want_strided(t, "where")
    data = func(condition, plain(chosen), plain(other))
    return masked.as_masked_tensor(data, _op("where")(condition, chosen._mask, other._mask))


def _softmax(name, func, args, kwargs):
    from . import masked

    dim = args[1] if len(args) > 1 else kwargs["dim"]
    dtype = args[2] if len(args) > 2 else kwargs.get("dtype")
    return getattr(masked, name)(args[0], dim, dtype=dtype)


def _truth(name, func, args, kwargs):
    data = plain(args[0])
    if data.dtype is not _C.bool:
        raise ValueError(f"{name}: expected a boolean tensor, but got {data.dtype}")
    some = (data & args[0]._mask).any() if name == "_is_any_true" else (data | ~args[0]._mask).all()
    return wrap(some, _op("ones_like")(some))


def _as_it_is(name, func, args, kwargs):
    return func(*args, **kwargs)


_SERVED = {
    **dict.fromkeys("all amax amin argmax argmin cumprod cumsum logsumexp mean median norm normalize prod std sum var".split(), _reduced),
    **dict.fromkeys(("softmax", "log_softmax", "softmin"), _softmax),
    **dict.fromkeys(("_is_any_true", "_is_all_true"), _truth),
    **dict.fromkeys(("retain_grad", "register_hook", "is_same_size", "requires_grad", "__hash__", "__get__"), _as_it_is),
    "where": _where,
}  # fmt: skip
