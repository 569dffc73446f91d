"""adjoin.nested._strided: nested tensors of the older layout, whose parts may differ in every dimension.

The tensor is one row of all elements, as a subclass; a list says which size each part has. Element-wise ops run on the row; what is
in `_BY_PART` is called for one part after the other; the rest is refused.
"""

from .. import _C
from .._overridden import as_op, of_the_object
from ._calls import _elementwise

_op = _C.find_op
_Tensor = _C.Tensor
_grad = _Tensor.__dict__["grad"]
# Ops whose result for a batch is their results for its parts, the dimensions moved by one.
_BY_PART = frozenset("""
    bmm cat chunk embedding flatten layer_norm linear log_softmax matmul mean permute reshape rms_norm scaled_dot_product_attention
    select softmax squeeze sum transpose unflatten unsqueeze view
""".split())  # fmt: skip


class PartsTensor(_Tensor):
    """A batch of tensors of any sizes with one number of dimensions: ``layout=torch.strided``."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if not all(issubclass(t, (PartsTensor, _Tensor)) for t in types):
            return NotImplemented
        with _C.DisableTorchFunctionSubclass():
            return _call(func, list(args), kwargs or {})

    is_nested = property(lambda self: True)
    ndim = property(lambda self: self.dim())

    @property
    def shape(self):
        raise RuntimeError(
            "shape: a nested tensor of the strided layout has no one shape; use size(dim), or layout=torch.jagged"
        )

    def size(self, dim=None):
        """The size in a dimension in which all parts agree."""
        if dim is None:
            return self.shape
        if not -self.dim() <= dim < self.dim():
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-self.dim()}, {self.dim() - 1}], but got {dim})"
            )
        d = dim % self.dim()
        if d == 0:
            return len(self._sizes)
        sizes = {s[d - 1] for s in self._sizes}
        if len(sizes) > 1:
            raise RuntimeError(f"Given dimension {d} is irregular and does not have a size.")
        return sizes.pop()

    def dim(self):
        """How many dimensions there are, the batch among them."""
        return (len(self._sizes[0]) if self._sizes else 0) + 1

    ndimension = dim

    def stride(self, dim=None):
        raise RuntimeError("stride: a nested tensor of the strided layout has no strides; its parts have: use unbind()")

    def is_contiguous(self, memory_format=None):
        """Always: the parts lie one after the other."""
        return True

    def values(self):
        """All elements in one row."""
        return _row(self)

    def unbind(self, dim=0):
        """The parts, as views."""
        if dim not in (0, -self.dim()):
            raise RuntimeError(f"NestedTensor can only be unbound along dimension 0 got dimension {dim} instead.")
        counts = [_count(s) for s in self._sizes]
        return tuple(t.view(s) for t, s in zip(_row(self).split(counts), self._sizes, strict=True)) if counts else ()

    @property
    def grad(self):
        """The gradient, nested as the tensor is."""
        found = _grad.__get__(self)
        return None if found is None or isinstance(found, PartsTensor) else wrap(found, self._sizes)

    def _nested_gradient(self, gradient):
        """What autograd.grad gives for this tensor."""
        return wrap(gradient, self._sizes)

    @grad.setter
    def grad(self, value):
        _grad.__set__(self, value)

    def detach(self):
        """The same elements without history."""
        return wrap(_row(self).detach(), self._sizes)

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        """backward of all elements."""
        if isinstance(gradient, PartsTensor):
            gradient = _row(gradient)
        _row(self).backward(gradient, retain_graph, create_graph, inputs)

    def to_padded_tensor(self, padding, output_size=None):
        """A dense tensor with ``padding`` where a part has no element."""
        return _padded(self, padding, output_size)

    def contiguous(self, memory_format=None):
        """The tensor itself."""
        return self

    def __len__(self):
        return len(self._sizes)

    def __iter__(self):
        return iter(self.unbind())

    def __repr__(self, *, tensor_contents=None):
        parts = [repr(t).replace("\n", "\n  ") for t in self.unbind()]
        note = (
            f", grad_fn=<{type(self.grad_fn).__name__}>"
            if self.grad_fn is not None
            else ", requires_grad=True"
            if self.requires_grad
            else ""
        )
        return "nested_tensor([\n  " + ",\n  ".join(parts) + "\n]" + note + ")"

    __str__ = __repr__

    def __format__(self, spec):
        return format(repr(self), spec)

    def __reduce_ex__(self, protocol):
        return rebuild, (_row(self).detach(), self._sizes, self.requires_grad and self.is_leaf)

    def __deepcopy__(self, memo):
        made = memo[id(self)] = wrap(_row(self).detach().clone(), self._sizes).requires_grad_(self.requires_grad)
        return made

    def _no_array(self, *args, **kwargs):
        raise RuntimeError(
            "numpy() and tolist(): a nested tensor has no one shape; use unbind() or to_padded_tensor(padding)"
        )

    numpy = tolist = __array__ = __dlpack__ = _no_array


def _count(size):
    n = 1
    for s in size:
        n *= s
    return n


def _row(nested):
    with _C.DisableTorchFunctionSubclass():
        return nested.as_subclass(_Tensor)


def wrap(row, sizes):
    """The nested tensor of a row of elements and the sizes of its parts."""
    made = row.as_subclass(PartsTensor)
    made._sizes = [tuple(s) for s in sizes]
    return made


def rebuild(row, sizes, requires_grad):
    """What a pickled nested tensor is made of."""
    if sum(map(_count, sizes)) != row.numel():
        raise ValueError(
            f"nested tensor: parts of the sizes {sizes} need {sum(map(_count, sizes))} elements, there are {row.numel()}"
        )
    return wrap(row, sizes).requires_grad_(requires_grad)


def joined(parts):
    """The nested tensor of copies of parts."""
    if not parts:
        return wrap(_op("empty")((0,)), [])
    return wrap(_op("cat")([t.reshape(-1) for t in parts]), [t.shape for t in parts])


def _padded(nested, padding, output_size):
    parts = nested.unbind()
    most = [max(sizes) for sizes in zip(*nested._sizes, strict=True)]
    if output_size is not None:
        wanted = list(output_size)
        if (
            len(wanted) != nested.dim()
            or wanted[0] < len(parts)
            or any(w < m for w, m in zip(wanted[1:], most, strict=True))
        ):
            raise RuntimeError(
                f"to_padded_tensor: output_size {tuple(wanted)} is too small, {(len(parts), *most)} is needed"
            )
        most = wanted[1:]
    full = []
    for part in parts:
        around = [n for size, to in zip(reversed(part.shape), reversed(most), strict=True) for n in (0, to - size)]
        full.append(_op("nn::pad")(part, around, value=padding))
    if output_size is not None and wanted[0] > len(full):
        full += [parts[0].new_full(most, padding)] * (wanted[0] - len(full))
    return _op("stack")(full)


def _call(func, args, kwargs):
    func, args = as_op(func, args)
    name = func.__name__
    base = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    nested = [
        a
        for a in (*args, *kwargs.values(), *(args[0] if args and isinstance(args[0], (list, tuple)) else ()))
        if isinstance(a, PartsTensor)
    ]
    first = nested[0]
    if name == "__getitem__":
        return _index(*args)
    if name == "unbind":
        return first.unbind(*args[1:], **kwargs)
    if _elementwise(base):
        return _pointwise(name, func, args, kwargs, nested)
    if base in _BY_PART:
        return _by_part(base, func, args, kwargs, first)
    if of_the_object(func):
        return func(*args, **kwargs)
    raise NotImplementedError(
        f"{name}: not there for nested tensors (layout strided); use unbind(), or layout=torch.jagged"
    )


def _pointwise(name, func, args, kwargs, nested):
    first = nested[0]
    if any(other._sizes != first._sizes for other in nested):
        raise RuntimeError(
            f"{name} does not support broadcasting when given a NestedTensor: the parts must have the same sizes"
        )
    for a in args:
        if isinstance(a, _Tensor) and not isinstance(a, PartsTensor) and a.dim() and name not in ("to", "type_as"):
            raise RuntimeError("Expected both self and other to be nested, but got a nested self and non-nested other")
    made = func(*args, **kwargs)
    return args[0] if name.endswith("_") else wrap(made, first._sizes) if isinstance(made, _Tensor) else made


def _index(nested, key):
    keys = key if isinstance(key, tuple) else (key,)
    if not isinstance(keys[0], int):
        raise NotImplementedError("index: the first index of a nested tensor must be an int; use unbind()")
    part = nested.unbind()[keys[0]]
    return part[keys[1:]] if keys[1:] else part


# Where each op names dimensions, and in which argument.
_DIMS = {
    "softmax": ("dim",), "log_softmax": ("dim",), "sum": ("dim",), "mean": ("dim",), "transpose": ("dim0", "dim1"), "cat": ("dim",),
    "squeeze": ("dim",), "unsqueeze": ("dim",), "unflatten": ("dim",), "flatten": ("start_dim", "end_dim"),
    "select": ("dim",),
}  # fmt: skip


def _by_part(name, func, args, kwargs, first):
    n = first.dim() + (name == "unsqueeze")

    def moved(dim):
        if isinstance(dim, (list, tuple)):
            return [moved(d) for d in dim]
        if not isinstance(dim, int):
            raise RuntimeError(f"{name}: dim must be given for a nested tensor: the reductions are those of its parts")
        if not -n <= dim < n:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
        if dim % n == 0:
            raise RuntimeError(f"{name}: dimension 0 of a nested tensor is the batch; the op works within the parts")
        return dim % n - 1

    if name == "cat":
        dim = kwargs.get("dim", args[1] if len(args) > 1 else 0)
        if dim % n == 0:
            return joined([p for t in args[0] for p in (t.unbind() if isinstance(t, PartsTensor) else t)])
        return joined([func(list(parts), moved(dim)) for parts in zip(*(t.unbind() for t in args[0]), strict=True)])
    names = _DIMS.get(name, ())
    for place, word in enumerate(names, 1):
        if len(args) > place:
            args[place] = moved(args[place])
        elif word in kwargs or name in ("sum", "mean", "flatten"):
            kwargs[word] = moved(kwargs.get(word, {"start_dim": 1, "end_dim": -1}.get(word)))
    if name in ("view", "reshape", "permute"):
        whole = kwargs.pop("shape", kwargs.pop("dims", None)) or (
            args[1] if len(args) == 2 and not isinstance(args[1], int) else args[1:]
        )
        if name == "permute":
            args = [args[0], [moved(d) for d in whole[1:]]]
        elif whole[0] not in (-1, len(first)):
            raise RuntimeError(f"{name}: For now nested {name} cannot change or infer the implicit batch dimension")
        else:
            args = [args[0], list(whole[1:])]
    if name == "chunk":
        return tuple(
            joined(list(c))
            for c in zip(
                *(p.chunk(args[1], moved(kwargs.get("dim", args[2] if len(args) > 2 else 0))) for p in first.unbind()),
                strict=True,
            )
        )
    if name in ("matmul", "bmm"):
        func = _op("matmul")
        if any(isinstance(a, _Tensor) and not isinstance(a, PartsTensor) and a.dim() > 2 for a in args):
            args = [a if isinstance(a, PartsTensor) else joined(list(a.unbind())) for a in args]
    lists = [a.unbind() if isinstance(a, PartsTensor) else None for a in args]
    if len({len(p) for p in lists if p is not None}) > 1:
        raise RuntimeError(f"{name}: the nested tensors must have as many parts")
    made = [
        func(*(a if p is None else p[i] for a, p in zip(args, lists, strict=True)), **kwargs) for i in range(len(first))
    ]
    return joined(made)
