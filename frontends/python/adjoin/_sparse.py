"""adjoin._sparse: sparse tensors as people make, convert and print them; their ops stand in plugins/ops_sparse."""

from . import _C

_op = _C.find_op
_NEEDS_BLOCKS = (_C.sparse_bsr, _C.sparse_bsc)
_COMPRESSED = (_C.sparse_csr, _C.sparse_csc, *_NEEDS_BLOCKS)
# The numbers of adjoin/abi/base.h.
_NUMBERS = {_C.sparse_coo: 1, _C.sparse_csr: 2, _C.sparse_csc: 4, _C.sparse_bsr: 5, _C.sparse_bsc: 6}


def _tensor_of(data, dtype=None, device=None):
    if isinstance(data, _C.Tensor):
        return data if dtype is None and device is None else data.to(dtype=dtype, device=device)
    return _C.tensor(data, dtype=dtype, device=device)


def _indices_of(data, what, device=None):
    made = _tensor_of(data, device=device)
    if made.numel() and (made.is_floating_point() or made.is_complex() or made.dtype is _C.bool):
        raise TypeError(f"{what} must be integers, they are {made.dtype}; use .long()")
    return made.detach()


def _checked(layout, wanted, who):
    if layout is not None and layout not in wanted:
        raise ValueError(f"{who}: layout must be {' or '.join(map(str, wanted))}, it is {layout}")


def sparse_coo_tensor(indices=None, values=None, size=None, *, dtype=None, layout=None, device=None, pin_memory=False,
                      requires_grad=False, check_invariants=None, is_coalesced=None):  # fmt: skip
    """The COO tensor that has values at the columns of indices; what stands at one place twice is added.

    ``size`` is the smallest that fits if it is not given. ``sparse_coo_tensor(size)`` has no elements. The invariants
    are always checked, whatever ``check_invariants`` says.
    """
    _checked(layout, (_C.sparse_coo,), "sparse_coo_tensor")
    if values is None:
        shape = size if indices is None else indices
        if shape is None:
            raise TypeError("sparse_coo_tensor: indices and values, or a size, are wanted")
        shape = tuple(shape)
        indices, values, size = _C.tensor([[]] * len(shape) or [], dtype=_C.int64).reshape(len(shape), 0), [], shape
        values = _C.tensor([], dtype=dtype or _C.get_default_dtype(), device=device)
    values = _tensor_of(values, dtype, device)
    if values.layout is not _C.strided:
        raise TypeError(f"sparse_coo_tensor: values must be strided, their layout is {values.layout}")
    indices = _indices_of(indices, "sparse_coo_tensor: indices", values.device).long()
    if indices.dim() == 1 and indices.numel() == 0:
        indices = indices.reshape(0, values.shape[0] if values.dim() else 1)
    if values.dim() == 0 and indices.dim() == 2:
        values = values.expand(indices.shape[1])
    if size is None:
        if indices.dim() != 2:
            raise ValueError(f"sparse_coo_tensor: indices must be a matrix, their shape is {tuple(indices.shape)}")
        if indices.numel() and int(indices.min()) < 0:
            raise ValueError(f"sparse_coo_tensor: indices must not be negative, there is {int(indices.min())}")
        rows = (indices.amax(1) + 1).tolist() if indices.shape[1] else [0] * indices.shape[0]
        size = (*rows, *values.shape[1:])
    made = _op("_::sparse_coo")(indices, values, tuple(size), bool(is_coalesced))
    return made.detach().requires_grad_() if requires_grad else made


def _sparse_coo_tensor_unsafe(indices, values, size, *, is_coalesced=None, **settings):
    """sparse_coo_tensor: what it skips in PyTorch is checked here."""
    return sparse_coo_tensor(indices, values, size, is_coalesced=is_coalesced, **settings)


def _validate_sparse_coo_tensor_args(indices, values, size, is_coalesced=None, check_pinning=None):
    """Raises unless the parts make a COO tensor."""
    sparse_coo_tensor(indices, values, size, is_coalesced=is_coalesced)


def _validate_sparse_compressed_tensor_args(
    compressed_indices, plain_indices, values, size, layout, check_pinning=None
):
    """Raises unless the parts make a tensor of a compressed layout."""
    sparse_compressed_tensor(compressed_indices, plain_indices, values, size, layout=layout)


def to_dense(self, dtype=None, *, masked_grad=None):
    """A strided tensor of the same elements; its gradient has the places of ``self`` alone, unless ``masked_grad`` is False."""
    if self.layout is not _C.strided:
        self = _op("_::sparse_to_dense")(self, masked_grad is None or bool(masked_grad))
    return self if dtype is None else self.to(dtype)


def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    """The same elements in a sparse layout, COO by default."""
    if isinstance(sparse_dim, _C.layout):
        sparse_dim, layout = None, sparse_dim
    layout = layout or _C.sparse_coo
    if layout is _C.strided:
        return to_dense(self)
    _checked(layout, (_C.sparse_coo, *_COMPRESSED), "to_sparse")
    if layout is self.layout and blocksize is None and sparse_dim is None and dense_dim is None:
        return self
    if sparse_dim is not None:
        if layout is not _C.sparse_coo:
            raise ValueError(f"to_sparse: sparse_dim goes with sparse_coo, the layout is {layout}; use dense_dim")
        if not isinstance(sparse_dim, int) or not 0 <= sparse_dim <= self.dim():
            raise ValueError(f"to_sparse: sparse_dim must be between 0 and {self.dim()}, it is {sparse_dim}")
        dense_dim = self.dim() - sparse_dim
    if layout in _NEEDS_BLOCKS and blocksize is None:
        raise ValueError(f"to_sparse: {layout} needs blocksize, two numbers")
    if self.layout is not _C.strided and (dense_dim is not None and dense_dim != self.dense_dim()):
        raise RuntimeError(
            f"to_sparse: the tensor has {self.dense_dim()} dense dimensions, {dense_dim} are asked for; to_dense() and "
            "to_sparse() again change that"
        )
    return _op("_::sparse_convert")(self, _NUMBERS[layout], blocksize, dense_dim or 0)


def without_elements(shape, number, device):
    """The sparse tensor without elements that has the shape and dtype of a tensor on `meta`; the layout is a number."""
    layout = next(known for known, n in _NUMBERS.items() if n == number)
    size = tuple(shape.shape)
    values = _C.tensor([], dtype=shape.dtype, device=device or _C.get_default_device())
    if layout is _C.sparse_coo:
        places = _op("empty")((len(size), 0), dtype=_C.int64, device=values.device)
        return _op("_::sparse_coo")(places, values, size, True)
    if layout in _NEEDS_BLOCKS or len(size) < 2:
        raise RuntimeError(
            f"layout={layout}: a tensor without elements is made for sparse_coo, and with 2 dimensions at least for "
            f"sparse_csr and sparse_csc; its size is {size}. {str(layout).rpartition('.')[2]}_tensor makes others"
        )
    lead, lines = size[:-2], size[-2] if layout is _C.sparse_csr else size[-1]
    begins = _op("zeros")((*lead, lines + 1), dtype=_C.int64, device=values.device)
    none = _op("empty")((*lead, 0), dtype=_C.int64, device=values.device)
    return _op("_::sparse_compressed")(begins, none, values.reshape(*lead, 0), size, _NUMBERS[layout])


def made_in(made, number):
    """What a factory has made, in the sparse layout that its caller asks for by number."""
    layout = next(known for known, n in _NUMBERS.items() if n == number)
    if made.layout is _C.strided:
        raise NotImplementedError(
            f"layout={layout}: zeros and empty are made so, other tensors strided; use "
            f"{str(layout).rpartition('.')[2]}_tensor, or to_sparse()"
        )
    if made.layout is layout:
        return made
    blocks = tuple(made.values().shape[made.dim() - made.dense_dim() - 1 :][:2]) if layout in _NEEDS_BLOCKS else None
    return to_sparse(made, layout=layout, blocksize=blocks)


def _to(layout):
    def convert(self, *args, **settings):
        names = ("blocksize", "dense_dim") if layout in _NEEDS_BLOCKS else ("dense_dim",)
        return to_sparse(self, layout=layout, **dict(zip(names, args, strict=False)), **settings)

    convert.__doc__ = f"The same elements in the layout {layout}."
    return convert


to_sparse_csr, to_sparse_csc = _to(_C.sparse_csr), _to(_C.sparse_csc)
to_sparse_bsr, to_sparse_bsc = _to(_C.sparse_bsr), _to(_C.sparse_bsc)


def sparse_compressed_tensor(compressed_indices, plain_indices, values, size=None, *, dtype=None, layout=None, device=None,
                             pin_memory=False, requires_grad=False, check_invariants=None):  # fmt: skip
    """The CSR, CSC, BSR or BSC tensor of its parts. The invariants are always checked."""
    if layout is None:
        raise TypeError("sparse_compressed_tensor: layout is wanted: sparse_csr, sparse_csc, sparse_bsr or sparse_bsc")
    _checked(layout, _COMPRESSED, "sparse_compressed_tensor")
    values = _tensor_of(values, dtype, device)
    compressed = _indices_of(compressed_indices, "sparse_compressed_tensor: compressed_indices", values.device)
    plain = _indices_of(plain_indices, "sparse_compressed_tensor: plain_indices", values.device)
    if compressed.dtype is not _C.int32 or plain.dtype is not _C.int32:
        compressed, plain = compressed.long(), plain.long()
    if size is None:
        at = compressed.dim()
        blocks = tuple(values.shape[at : at + 2]) if layout in _NEEDS_BLOCKS else (1, 1)
        first, second = blocks if layout in (_C.sparse_csr, _C.sparse_bsr) else blocks[::-1]
        lines = (compressed.shape[-1] - 1) * first
        others = (int(plain.max()) + 1 if plain.numel() else 0) * second
        pair = (lines, others) if layout in (_C.sparse_csr, _C.sparse_bsr) else (others, lines)
        size = (*compressed.shape[:-1], *pair, *values.shape[at + 2 if layout in _NEEDS_BLOCKS else at :])
    made = _op("_::sparse_compressed")(compressed, plain, values, tuple(size), _NUMBERS[layout])
    return made.detach().requires_grad_() if requires_grad else made


def _maker(layout, first, second):
    def make(*args, **settings):
        names = (first, second, "values", "size")
        given = dict(zip(names, args, strict=False))
        given.update({name: settings.pop(name) for name in names if name in settings})
        if "layout" in settings:
            _checked(settings.pop("layout"), (layout, None), make.__name__)
        missing = [name for name in names[:3] if name not in given]
        if missing:
            raise TypeError(f"{make.__name__}: {missing[0]} is wanted")
        return sparse_compressed_tensor(
            given[first], given[second], given["values"], given.get("size"), layout=layout, **settings
        )

    make.__name__ = make.__qualname__ = str(layout).rpartition(".")[2] + "_tensor"
    make.__doc__ = f"The tensor of the layout {layout} with {first}, {second} and values."
    return make


sparse_csr_tensor = _maker(_C.sparse_csr, "crow_indices", "col_indices")
sparse_csc_tensor = _maker(_C.sparse_csc, "ccol_indices", "row_indices")
sparse_bsr_tensor = _maker(_C.sparse_bsr, "crow_indices", "col_indices")
sparse_bsc_tensor = _maker(_C.sparse_bsc, "ccol_indices", "row_indices")


def _coalesced_(self, coalesced):
    """Says of a COO tensor that its elements are in order, each place once, which is checked, or that nothing is known."""
    if self.layout is not _C.sparse_coo:
        raise RuntimeError(f"_coalesced_: COO tensors are coalesced or not, this one is {self.layout}")
    plain = self.detach()
    if coalesced:
        said = _op("_::sparse_coo")(plain._indices(), plain._values(), tuple(self.shape), True)
    else:
        said = _op("_::coo_unordered")(plain)
    plain.copy_(said)
    return self


def new(self, *args, device=None, size=None):
    """What ``self.new(...)`` makes: a COO tensor of indices, values and a size, or one without elements."""
    args = args if size is None else (*args, size)
    settings = {"dtype": self.dtype, "device": device or self.device}
    if not args:
        args = ((0,),)
    if len(args) > 1 and all(isinstance(n, int) for n in args):
        args = (args,)
    elif isinstance(args[0], int):
        args = ((args[0],),)
    if len(args) == 1 and isinstance(args[0], _C.Tensor):
        return args[0].detach()
    return sparse_coo_tensor(*args, **settings)


def _sparse_broadcast_to(input, size):
    """A COO tensor of another size: along dimensions of size 1, and new ones in front, its elements are repeated."""
    return _op("_::sparse_repeat")(input, tuple(size))


def with_values(self, values):
    """A sparse tensor with the places of self and other values."""
    if self.layout is _C.sparse_coo:
        return _op("_::sparse_coo")(self._indices(), values, tuple(self.shape), self.is_coalesced())
    by_rows = self.layout in (_C.sparse_csr, _C.sparse_bsr)
    begins = self.crow_indices() if by_rows else self.ccol_indices()
    plain = self.col_indices() if by_rows else self.row_indices()
    return _op("_::sparse_compressed")(begins, plain, values, tuple(self.shape), _NUMBERS[self.layout])


def text(self, name):
    """A sparse tensor as text; ``name``, with an opening bracket, stands before it."""
    from ._tensor_str import _add_suffixes, _tensor_str

    pad = " " * len(name)
    plain = self.detach()
    if self.layout is _C.sparse_coo:
        parts = {"indices": plain._indices()}
    elif self.layout in (_C.sparse_csr, _C.sparse_bsr):
        parts = {"crow_indices": plain.crow_indices(), "col_indices": plain.col_indices()}
    else:
        parts = {"ccol_indices": plain.ccol_indices(), "row_indices": plain.row_indices()}
    lines = []
    for word, part in (*parts.items(), ("values", plain._values())):
        before = word + "=tensor("
        shown = before + _tensor_str(part, len(name) + len(before))
        lines.append(shown + (f", size={tuple(part.shape)})" if part.numel() == 0 else ")"))
    notes = [f"size={tuple(self.shape)}", f"nnz={self._nnz()}"]
    if not self.is_cpu:
        notes.insert(0, f"device='{self.device}'")
    usual = (_C.get_default_dtype(), _C.int64, _C.bool)
    if self.dtype not in usual and not (self.is_complex() and self.dtype.to_real() == _C.get_default_dtype()):
        notes.append(f"dtype={self.dtype}")
    notes.append(f"layout={self.layout}")
    if self.grad_fn is not None:
        notes.append(f"grad_fn=<{type(self.grad_fn).__name__}>")
    elif self.requires_grad:
        notes.append("requires_grad=True")
    body = name + (",\n" + pad).join(lines)
    return _add_suffixes(body, notes, len(name), force_newline=self.layout is _C.sparse_coo)
