"""adjoin.nested._jagged: NestedTensor, a batch of sequences of unlike length that lie one after the other, without padding.

The tensor is its values, as a subclass: it has their memory and their place on the tape, so a gradient needs no rule of its own.
What is called with it goes to `_calls`, which runs the op on the values and says where the ragged dimension stands in the result.
"""

from .. import _C
from ._ragged import Ragged, RaggedSize

_Tensor = _C.Tensor
_grad = _Tensor.__dict__["grad"]


class NestedTensor(_Tensor):
    """A batch of which one dimension has another size in each sequence: ``layout=torch.jagged``."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        from ._calls import call

        if not all(issubclass(t, (NestedTensor, _C.Tensor)) for t in types):
            return NotImplemented
        with _C.DisableTorchFunctionSubclass():
            return call(func, args, kwargs or {})

    is_nested = property(lambda self: True)
    layout = property(lambda self: _C.jagged)
    ndim = property(lambda self: self.dim())

    @property
    def shape(self):
        sizes = list(plain(self).shape)
        sizes[self._at - 1] = RaggedSize(self._ragged)
        return _C.Size([len(self._ragged), *sizes])

    def size(self, dim=None):
        """The sizes, or one of them."""
        return self.shape if dim is None else self.shape[dim]

    def dim(self):
        """How many dimensions there are, the batch among them."""
        return plain(self).dim() + 1

    ndimension = dim

    def numel(self):
        """How many elements the sequences have."""
        return tight(self)[0].numel()

    nelement = numel

    def stride(self, dim=None):
        """The strides; the first one is no one number."""
        values = plain(self)
        rest = values.stride()
        inner = values.numel() // max(values.shape[self._at - 1], 1)
        strides = (RaggedSize(self._ragged, inner), *rest)
        return strides if dim is None else strides[dim]

    def is_contiguous(self, memory_format=None):
        """Whether the sequences lie one after the other, and the elements of each."""
        return self._ragged.lengths is None and self._at == 1 and plain(self).is_contiguous()

    def values(self):
        """The elements of all sequences, one after the other; those between sequences, too, where there are such."""
        return plain(self)

    def offsets(self):
        """Where each sequence begins, and where the last one ends."""
        return self._ragged.offsets

    def lengths(self):
        """How long each sequence is, where values lie between them; else None."""
        return self._ragged.lengths

    # The same under the names by which libraries take a nested tensor apart.
    _values = property(values, doc="The elements of all sequences.")
    _offsets = property(offsets, doc="Where each sequence begins, and where the last one ends.")
    _lengths = property(lengths, doc="How long each sequence is, where values lie between them; else None.")

    @property
    def _ragged_idx(self):
        """The dimension whose size each sequence has for itself."""
        return self._at

    _max_seqlen_tensor = _min_seqlen_tensor = None  # no tensor keeps what these two tell:

    def _get_max_seqlen(self):
        return self._ragged.longest

    def _get_min_seqlen(self):
        return min(self._ragged.sizes, default=0)

    @property
    def grad(self):
        """The gradient, nested as the tensor is."""
        found = _grad.__get__(self)
        return None if found is None or isinstance(found, NestedTensor) else wrap(found, self._ragged, self._at)

    def _nested_gradient(self, gradient):
        """What autograd.grad gives for this tensor."""
        return wrap(gradient, self._ragged, self._at)

    @grad.setter
    def grad(self, value):
        _grad.__set__(self, value)

    @grad.deleter
    def grad(self):
        _grad.__set__(self, None)

    @property
    def data(self):
        return self.detach()

    def detach(self):
        """The same elements without history."""
        return wrap(plain(self).detach(), self._ragged, self._at)

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        """backward of the values; a gradient must be nested alike."""
        if isinstance(gradient, NestedTensor):
            if not gradient._ragged.same(self._ragged):
                raise RuntimeError(f"backward: the gradient has the shape {gradient.shape}, the tensor {self.shape}")
            gradient = plain(gradient)
        plain(self).backward(gradient, retain_graph, create_graph, inputs)

    def register_hook(self, hook):
        """As Tensor.register_hook; the hook sees nested gradients."""
        ragged, at = self._ragged, self._at

        def nested(gradient):
            made = hook(wrap(gradient, ragged, at))
            return plain(made) if isinstance(made, NestedTensor) else made

        return _Tensor.register_hook(self, nested)

    def to_padded_tensor(self, padding, output_size=None):
        """A dense tensor with ``padding`` after the end of each sequence."""
        from ._calls import padded

        return padded(self, padding, output_size)

    @property
    def mT(self):
        return self.transpose(-2, -1)

    def __len__(self):
        return len(self._ragged)

    def __iter__(self):
        return iter(self.unbind())

    def __bool__(self):
        if self.numel() != 1:
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous; use any() or all()")
        return bool(plain(self).reshape(-1)[0])

    def item(self):
        """The number of a tensor of one element."""
        return tight(self)[0].reshape(-1).item()

    def __repr__(self, *, tensor_contents=None):
        notes = [f"size={tuple(self.shape)}", f"offsets={self._ragged.offsets}"]
        if self.grad_fn is not None:
            notes.append(f"grad_fn={self.grad_fn}")
        elif self.requires_grad:
            notes.append("requires_grad=True")
        return f"NestedTensor({', '.join(notes)}, contiguous={self.is_contiguous()})"

    __str__ = __repr__

    def __format__(self, spec):
        return format(repr(self), spec)

    def __reduce_ex__(self, protocol):
        values = plain(self).detach()
        return rebuild, (values, self._ragged, self._at, self.requires_grad and self.is_leaf)

    def __deepcopy__(self, memo):
        if not self.is_leaf:
            raise RuntimeError(
                "deepcopy: the tensor was computed from others; only leaves can be copied so: use clone() or detach()"
            )
        made = wrap(plain(self).detach().clone(), self._ragged, self._at).requires_grad_(self.requires_grad)
        memo[id(self)] = made
        return made

    __copy__ = detach

    def _no_array(self, *args, **kwargs):
        raise RuntimeError(
            "numpy() and tolist(): a nested tensor has no one shape; use values(), unbind() or to_padded_tensor(padding)"
        )

    numpy = tolist = __array__ = __dlpack__ = data_ptr = _no_array


def _no_transpose(self):
    raise NotImplementedError("T: not there for nested tensors, whose batch stays first; use transpose(d, e)")


for _name in ("T", "H", "mH"):
    setattr(NestedTensor, _name, property(_no_transpose))


def plain(nested):
    """The values, as an ordinary tensor with the same history."""
    with _C.DisableTorchFunctionSubclass():
        return nested.as_subclass(_Tensor)


def wrap(values, ragged, at):
    """The nested tensor of values whose dimension at - 1 has the sequences."""
    made = values.as_subclass(NestedTensor)
    made._ragged, made._at = ragged.to(values.device), at
    return made


def tight(nested):
    """Values that have no room between the sequences, and their Ragged."""
    ragged = nested._ragged
    if ragged.lengths is None and ragged.begins[:1] == [0] and ragged.total == plain(nested).shape[nested._at - 1]:
        return plain(nested), ragged
    rows = ragged.rows() if ragged.lengths is not None else None
    if rows is None:
        return plain(nested).narrow(nested._at - 1, ragged.begins[0], ragged.total), _from_zero(ragged)
    return plain(nested).index_select(nested._at - 1, rows), ragged.tight()


def _from_zero(ragged):
    return ragged if ragged.begins[:1] == [0] else Ragged(ragged.offsets - ragged.offsets[0])


def rebuild(values, ragged, at, requires_grad):
    """What a pickled nested tensor is made of."""
    return wrap(values, ragged.check(values, at), at).requires_grad_(requires_grad)
