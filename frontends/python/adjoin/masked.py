"""adjoin.masked: reductions over the elements that a mask names, and tensors that carry their mask.

What a mask leaves out counts as the identity of the reduction: 0 of a sum, -inf of a maximum. Where nothing is left the identity is
the result, and NaN where there is none (a mean, a median).
"""

import builtins
import math
import sys

from . import _C
from ._masked_tensor import MaskedTensor, _checked, plain, wrap

_op = _C.find_op


def _limits(dtype, sign):
    """The largest (sign 1) or smallest number of a dtype."""
    if dtype.is_floating_point:
        return sign * math.inf
    if dtype is _C.bool:
        return sign > 0
    from ._numeric import iinfo

    return iinfo(dtype).max if sign > 0 else iinfo(dtype).min


def _canonical_dim(dim, ndim):
    """The dimensions that a reduction of so many goes over, from 0 on and rising; None and () are all."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    found = []
    for d in (dim,) if isinstance(dim, int) else tuple(dim):
        if not -builtins.max(ndim, 1) <= d < builtins.max(ndim, 1):
            raise IndexError(f"Dimension out of range: {d} of a tensor of {ndim} dimensions")
        found.append(d % builtins.max(ndim, 1))
    if len(set(found)) < len(found):
        raise RuntimeError(f"masked: a dimension stands twice in {dim}")
    return tuple(sorted(found))


def _input_mask(input, *args, mask=None, **settings):
    """The mask that a call has, spread to the shape and put into the layout of the input."""
    if mask is None:
        raise ValueError("_input_mask: the call has no mask")
    if mask.layout is not _C.strided and input.layout is not _C.strided:
        from . import _masked_sparse

        places, values = _masked_sparse._spread(mask, input.shape)
        spread = _op("_::sparse_coo")(places, values, list(input.shape), True)
        return spread if input.layout is _C.sparse_coo else spread.to_sparse_csr()
    mask = mask if mask.layout is _C.strided else mask.to_dense()
    mask = mask.bool().expand(input.shape)
    if input.layout is _C.sparse_coo:
        return mask.to_sparse(input.sparse_dim())
    return mask if input.layout is _C.strided else mask.to_sparse_csr()


def _output_mask(op, input, *args, **settings):
    """Where the result of a call, with the mask among its settings, has a value: where an element takes part."""
    spread = _input_mask(input, mask=settings.get("mask"))
    if op in (softmax, log_softmax, softmin, normalize, cumsum, cumprod, logaddexp):
        return spread
    if op not in (sum, prod, amax, amin, argmax, argmin, mean, median, norm, var, std, logsumexp):
        raise ValueError(f"_output_mask: {op!r} is neither a reduction nor a scan of this module")
    at = 1 if op is norm else 0
    dim = args[at] if len(args) > at else settings.get("dim", -1 if op is median else None)
    spread = spread if spread.layout is _C.strided else spread.to_dense()
    dims = _canonical_dim(dim, input.dim())
    return spread.any(dims, keepdim=settings.get("keepdim", False)) if dims else spread


def _dims(dim, input):
    return _canonical_dim(dim, input.dim())


def _reduction_identity(name, input, *args):
    """What stands in the place of an element that a mask leaves out: a tensor without dimensions, or None where there is nothing."""
    op, real = globals().get(name.rpartition(".")[2]), not input.is_complex()
    if op in (var, std) or (op in (mean, median) and not input.is_floating_point()):
        return None
    if op in (sum, cumsum):
        value = 0
    elif op in (prod, cumprod):
        value = 1
    elif op is norm:
        value = math.inf if args and args[0] == -math.inf else 0
    elif op in (mean, median):
        value = math.nan
    elif op is logsumexp:
        value = _limits(input.dtype, -1) if real else -math.inf
    elif real and op in (amax, argmax, amin, argmin):
        value = _limits(input.dtype, -1 if op in (amax, argmax) else 1)
    else:
        raise NotImplementedError(f"_reduction_identity: {name} of {input.dtype} has none")
    return _op("full")((), value, dtype=input.dtype, device=input.device)


def _parts(input, mask, dtype=None):
    """The numbers and their mask, of one shape; a MaskedTensor brings a mask, and both must hold."""
    if isinstance(input, MaskedTensor):
        mask = input._mask if mask is None else input._mask & mask
        input = plain(input)
    if dtype is not None:
        input = input.to(dtype)
    if mask is None:
        mask = _C.find_op("ones")((), dtype=_C.bool, device=input.device)
    if mask.dtype is not _C.bool:
        raise TypeError(f"masked: the mask must be bool, it is {mask.dtype}")
    mask = mask if mask.layout is _C.strided else mask.to_dense()
    return input, mask.expand(input.shape)


def _given(input, made, mask, dim, keepdim):
    """The result, with a mask where the input has one: is an element left?"""
    if not isinstance(input, MaskedTensor):
        return made
    _, full = _parts(input, mask)
    return wrap(made, full.any(_dims(dim, full), keepdim=keepdim) if full.dim() else full)


def _of_sparse(kind, input, mask, dim, keepdim, dtype, identity):
    """The reduction of a sparse tensor, or None: it is strided."""
    if isinstance(input, MaskedTensor) or input.layout is _C.strided:
        return None
    from . import _masked_sparse

    if not _masked_sparse.reduces(input) or (kind == "mean" and input.layout is _C.sparse_coo):
        layouts = "strided or CSR" if kind == "mean" else "strided, COO or CSR"
        raise ValueError(f"masked.{kind}: tensors are {layouts}; this one is {input.layout}")
    if mask is None and kind != "sum":
        raise ValueError(f"masked.{kind}: what a sparse tensor does not keep counts, or does not: give a mask")
    if kind in ("sum", "prod") and dtype is None and not (input.is_floating_point() or input.is_complex()):
        dtype = _C.int64
    input = input if dtype in (None, input.dtype) else input.to(dtype)
    return _masked_sparse.reduce(kind, input, mask, _dims(dim, input), keepdim, identity(input.dtype))


def _over(dims, mask):
    return mask.sum(dims, keepdim=True) if mask.dim() else mask.long()


def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):  # noqa: A001  (PyTorch's name)
    """The sum of the elements under the mask; 0 of none."""
    made = _of_sparse("sum", input, mask, dim, keepdim, dtype, lambda _: 0)
    if made is not None:
        return made
    x, m = _parts(input, mask, dtype)
    return _given(input, x.where(m, x.new_zeros(())).sum(_dims(dim, x), keepdim=keepdim), mask, dim, keepdim)


def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The product of the elements under the mask; 1 of none."""
    made = _of_sparse("prod", input, mask, dim, keepdim, dtype, lambda _: 1)
    if made is not None:
        return made
    x, m = _parts(input, mask, dtype)
    made = x if mask is None and x is input else x.where(m, x.new_ones(()))
    for d in sorted(_dims(dim, x), reverse=True):
        made = made.prod(d, keepdim=keepdim)
    if not made.dtype.is_floating_point and not made.dtype.is_complex:
        made = made.long() if dtype is None else made  # where no dimension was left to multiply along
    return _given(input, made, mask, dim, keepdim)


def _extreme(name, sign):
    def reduce(input, dim=None, *, keepdim=False, dtype=None, mask=None):
        made = _of_sparse(name, input, mask, dim, keepdim, dtype, lambda kind: _limits(kind, sign))
        if made is not None:
            return made
        x, m = _parts(input, mask, dtype)
        filled = x.where(m, x.new_full((), _limits(x.dtype, sign)))
        return _given(input, getattr(filled, name)(_dims(dim, x), keepdim=keepdim), mask, dim, keepdim)

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = f"{name} of the elements under the mask; the {'largest' if sign > 0 else 'smallest'} number of the dtype of none."
    return reduce


amax, amin = _extreme("amax", -1), _extreme("amin", 1)


def _place(name, sign):
    def reduce(input, dim=None, *, keepdim=False, dtype=None, mask=None):
        x, m = _parts(input, mask, dtype)
        filled = x.where(m, x.new_full((), _limits(x.dtype, sign)))
        # PyTorch gives places in the dtype of the elements
        return _given(input, getattr(filled, name)(dim, keepdim=keepdim).to(x.dtype), mask, dim, keepdim)

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = f"{name} of the elements under the mask, in their dtype; 0 of none."
    return reduce


argmax, argmin = _place("argmax", -1), _place("argmin", 1)


def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The mean of the elements under the mask; NaN of none."""
    made = _of_sparse("mean", input, mask, dim, keepdim, dtype, lambda _: 0)
    if made is not None:
        return made
    x, m = _parts(input, mask, dtype)
    if not (x.is_floating_point() or x.is_complex()):
        x = x.to(_C.get_default_dtype())
    dims = _dims(dim, x)
    count = m.sum(dims, keepdim=keepdim) if m.dim() else m.long()
    return _given(input, x.where(m, x.new_zeros(())).sum(dims, keepdim=keepdim) / count, mask, dim, keepdim)


def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """The median of the elements under the mask, the lower of two; NaN of none."""
    x, m = _parts(input, mask, dtype)
    if not x.is_floating_point():
        raise TypeError(f"masked.median: floating-point numbers are wanted, the tensor is {x.dtype}")
    made = x.where(m, x.new_full((), math.nan)).nanmedian(dim, keepdim=keepdim)[0]
    return _given(input, made, mask, dim, keepdim)


def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """logsumexp of the elements under the mask, in their dtype; -inf of none, or the smallest integer."""
    x, m = _parts(input, mask, dtype)
    least = -math.inf if x.is_complex() else _limits(x.dtype, -1)
    made = x.where(m, x.new_full((), least))
    made = (made.logsumexp(_dims(dim, x), keepdim=keepdim) if x.dim() else made.clone()).to(x.dtype)
    return _given(input, made, mask, dim, keepdim)


def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The norm of the elements under the mask; 0 of none, inf for ord=-inf."""
    x, m = _parts(input, mask, dtype)
    if ord < 0 and ord != -math.inf:
        raise ValueError(f"masked.norm: ord must be 0 or more, or -inf, it is {ord}")
    filled = x.where(m, x.new_full((), math.inf if ord < 0 else 0.0))
    return _given(input, _op("linalg::vector_norm")(filled, ord, _dims(dim, x), keepdim=keepdim), mask, dim, keepdim)


def var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """The variance of the elements under the mask, divided by their count less correction (1)."""
    if unbiased is not None and correction is not None:
        raise ValueError("masked.var: unbiased and correction say the same; give one of them")
    less = (1 if correction is None else correction) if unbiased is None else int(unbiased)
    x, m = _parts(input, mask, dtype)
    if not (x.is_floating_point() or x.is_complex()):
        x = x.to(_C.get_default_dtype())
    dims, zero = _dims(dim, x), x.new_zeros(())
    count = _over(dims, m)
    beside = (x - x.where(m, zero).sum(dims, keepdim=True) / count).where(m, zero)
    total = (beside * beside.conj()).sum(dims, keepdim=keepdim)  # of complex numbers complex, as PyTorch's
    count = count if keepdim or not m.dim() else m.sum(dims)
    made = total / (count - less).clamp(min=0)
    return _given(input, made if x.is_complex() else made.to(x.dtype), mask, dim, keepdim)


def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """The square root of var."""
    made = var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask)
    return made.sqrt()


def _scan(name, identity):
    def scan(input, dim, *, dtype=None, mask=None):
        x, m = _parts(input, mask, dtype)
        made = getattr(x.where(m, x.new_full((), identity)), name)(dim, dtype=x.dtype)
        return wrap(made, m) if isinstance(input, MaskedTensor) else made

    scan.__name__ = scan.__qualname__ = name
    scan.__doc__ = f"{name} of the elements under the mask; the others count as {identity}."
    return scan


cumsum, cumprod = _scan("cumsum", 0), _scan("cumprod", 1)


def _share(name, identity):
    def share(input, dim, *, dtype=None, mask=None):
        x, m = _parts(input, mask, dtype)
        filled = x.where(m, x.new_full((), identity))
        made = filled.neg().softmax(dim) if name == "softmin" else getattr(filled, name)(dim)
        return wrap(made, m) if isinstance(input, MaskedTensor) else made

    share.__name__ = share.__qualname__ = name
    share.__doc__ = f"{name} of the elements under the mask; NaN where there is none along the dimension."
    return share


softmax, log_softmax, softmin = (
    _share("softmax", -math.inf),
    _share("log_softmax", -math.inf),
    _share("softmin", math.inf),
)


def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """The elements under the mask divided by their norm along dim, or by eps if that is larger; the others are 0."""
    x, m = _parts(input, mask, dtype)
    x = x.where(m, x.new_zeros(()))
    made = x / _op("linalg::vector_norm")(x, ord, (dim,), keepdim=True).clamp(min=eps)
    return wrap(made, m) if isinstance(input, MaskedTensor) else made


def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """logaddexp of elements under their masks; the others count as -inf."""
    sides = [_parts(x, m, dtype) for x, m in ((input, input_mask), (other, other_mask))]
    first, second = (x.where(m, x.new_full((), -math.inf)) for x, m in sides)
    made = first.logaddexp(second)
    masked = isinstance(input, MaskedTensor) or isinstance(other, MaskedTensor)
    return wrap(made, sides[0][1] | sides[1][1]) if masked else made


def masked_tensor(data, mask, requires_grad=False):
    """A MaskedTensor of copies of data and mask."""
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data, mask):
    """A MaskedTensor of copies of data and mask; gradients go to data."""
    data, mask = _checked(data, mask)
    return wrap(data.clone(), mask.detach().clone())


def is_masked_tensor(obj):
    """Whether an object is a MaskedTensor."""
    return isinstance(obj, MaskedTensor)


_ops = sys.modules[__name__]  # where PyTorch has them

__all__ = [
    "amax", "amin", "argmax", "argmin", "as_masked_tensor", "cumprod", "cumsum", "is_masked_tensor", "log_softmax", "logaddexp",
    "logsumexp", "masked_tensor", "MaskedTensor", "mean", "median", "norm", "normalize", "prod", "softmax", "softmin", "std", "sum",
    "var",
]  # fmt: skip
