"""adjoin.nested._calls: what each call does with nested tensors of the jagged layout.

Element-wise ops run on the values. An op that names dimensions has a function here, which moves them by one: the values have no
batch. What has neither is refused, for an op that nobody looked at would mix sequences.
"""

from .. import _C
from .._overridden import as_op, of_the_object
from . import _segments
from ._jagged import NestedTensor, plain, tight, wrap
from ._ragged import RaggedSize, from_lengths

_op = _C.find_op
_ELEMENTWISE = ("unary", "binary", "pointwise", "compare")
# Composites and kernels of other kinds that are element-wise all the same: neither kind nor schema says so.
_BODIES = frozenset("""
    add addcdiv addcmul alpha_dropout bernoulli bfloat16 bool celu clamp clamp_max clamp_min clip clone copy cpu cuda dropout double
    elu empty_like feature_alpha_dropout fill float full_like gelu half hardshrink hardsigmoid hardswish hardtanh int leaky_relu lerp
    log_sigmoid logit logsigmoid long masked_fill maximum minimum mish mul nan_to_num ones_like pow rand_like randint_like randn_like
    relu relu6 rrelu rsqrt rsub selu sigmoid sign silu softplus softshrink softsign square sub tanh tanhshrink threshold to true_divide
    type type_as where xlogy zero zeros_like
""".split())  # fmt: skip


def call(func, args, kwargs):
    """The result of func, of which at least one argument is a nested tensor."""
    func, args = as_op(func, args)
    name = func.__name__
    base = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    served = _SERVED.get(name)
    if served is not None:
        return served(name, func, list(args), dict(kwargs))
    if _elementwise(base):
        return _pointwise(name, func, args, kwargs)
    if of_the_object(func):
        return func(*args, **kwargs)
    raise NotImplementedError(
        f"{name}: not there for nested tensors (layout jagged); use values(), unbind() or to_padded_tensor(padding)"
    )


_known = {}


def _elementwise(name):
    found = _known.get(name)
    if found is None:
        infos = _C.op_info(name) or _C.op_info("nn::" + name) or _C.op_info("special::" + name)
        kind = infos[0]["kind"] if infos else ""
        found = _known[name] = name in _BODIES or kind.startswith(_ELEMENTWISE)
    return found


def _pointwise(name, func, args, kwargs):
    sides = [a for a in (*args, *kwargs.values()) if isinstance(a, NestedTensor)]
    first = max(sides, key=lambda t: t.dim())
    for other in sides:
        if other._at != first._at or other.dim() != first.dim() or not other._ragged.same(first._ragged):
            raise RuntimeError(
                f"cannot call binary pointwise function {name} with inputs of shapes {tuple(first.shape)} and "
                f"{tuple(other.shape)}: the sequences must be as long, and the ragged dimension the same"
            )
    whole = name in ("to", "type_as", "copy_")  # their other tensor gives dtype and device, or is copied from

    def side(a):
        if not isinstance(a, _C.Tensor) or isinstance(a, NestedTensor) or whole or a.dim() == 0:
            return a
        return _beside(name, a, first)

    made = func(*(side(a) for a in args), **{key: side(a) for key, a in kwargs.items()})
    if name.endswith("_") and made is not None and isinstance(args[0], NestedTensor):
        return args[0]
    return _nested(made, first._ragged, first._at)


def _nested(made, ragged, at):
    if isinstance(made, (tuple, list)):
        return type(made)([wrap(m, ragged, at) for m in made])
    return wrap(made, ragged, at) if isinstance(made, _C.Tensor) else made


def _beside(name, dense, nested):
    """A dense tensor as it stands beside the values: broadcast along the sequences, or a row for each of them."""
    dim, at = nested.dim(), nested._at
    if dense.dim() < dim - 1 and dense.dim() < dim - at:
        return dense
    shape = (1,) * (dim - dense.dim()) + tuple(dense.shape)
    if len(shape) > dim or shape[at] != 1 or shape[0] not in (1, len(nested)):
        raise RuntimeError(
            f"cannot call binary pointwise function {name} with inputs of shapes {tuple(nested.shape)} and "
            f"{tuple(dense.shape)}: a dense tensor must have 1 where the sequences are ragged, and 1 or {len(nested)} for the batch"
        )
    dense = dense.reshape(shape)
    if shape[0] == 1:
        return dense.squeeze(0)
    ragged = nested._ragged
    if ragged.lengths is not None:
        raise RuntimeError(
            f"{name}: a number for each sequence needs sequences without room between them; use contiguous()"
        )
    return dense.squeeze(at)[ragged.ids()].movedim(0, at - 1)


def _dims_of(dim, nested):
    n = nested.dim()
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    for d in dims:
        if not -n <= d < n:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {d})")
    return [d % n for d in dims]


def _inner(word, nested, dim):
    """A dimension that is neither the batch nor ragged, as the values have it."""
    (d,) = _dims_of(dim, nested)
    if d == 0:
        raise RuntimeError(f"{word}(): not supported for NestedTensor on dim=0")
    if d == nested._at:
        raise RuntimeError(f"{word}(): not supported for NestedTensor on ragged dim")
    return d - 1


def _take(args, kwargs, index, name, default=None):
    """An argument by its place or name, taken away."""
    if name in kwargs:
        return kwargs.pop(name)
    return args.pop(index) if len(args) > index else default


def _reduce(name, func, args, kwargs):
    nested = args[0] if args else kwargs.pop("input")
    if len(args) > 1 and isinstance(args[1], _C.Tensor) or "other" in kwargs:  # max(a, b)
        return _pointwise(name, func, args, kwargs)
    if name in ("vector_norm", "norm"):
        kwargs["ord" if name == "vector_norm" else "p"] = _take(
            args, kwargs, 1, "ord" if name == "vector_norm" else "p", 2
        )
    dim = _take(args, kwargs, 1, "dim")
    if name in ("std", "var") and isinstance(dim, bool):
        kwargs["unbiased"], dim = dim, None
    keepdim = bool(_take(args, kwargs, 1, "keepdim", False))
    values, ragged = tight(nested)
    at = nested._at
    dims = list(range(nested.dim())) if dim is None or dim == () or dim == [] else _dims_of(dim, nested)
    if len(dims) == nested.dim():
        made = func(values, **kwargs)
        return made.reshape((1,) * nested.dim()) if keepdim else made
    one = isinstance(dim, int)
    if 0 in dims and at not in dims:
        raise RuntimeError(
            f"{name}(): reducing along the batch dimension but not the ragged dimension is not supported for nested tensors"
        )
    inner = [d - 1 for d in dims if d not in (0, at)]
    if 0 in dims:
        made = func(values, [at - 1, *inner], keepdim=keepdim, **kwargs)
        return made.unsqueeze(0) if keepdim else made
    if at not in dims:
        made = func(values, inner[0] if one else inner, keepdim=keepdim, **kwargs)
        return _nested(made, ragged, at if keepdim else at - sum(d < at for d in dims))
    if inner:
        values = func(values, inner, keepdim=True, **kwargs)
    made = _segments.reduce(name, func, values.movedim(at - 1, 0), ragged, kwargs)

    def shaped(m):
        m = m.unsqueeze(1).movedim(1, at)
        return m if keepdim else m.squeeze([d for d in dims if d])

    return type(made)(list(map(shaped, made))) if isinstance(made, tuple) else shaped(made)


def _softmax(name, func, args, kwargs):
    nested = args[0]
    (d,) = _dims_of(_take(args, kwargs, 1, "dim"), nested)
    if d == 0:
        raise RuntimeError(f"{name}(): not supported when reducing across the batch dimension for NestedTensor")
    if d != nested._at:
        return wrap(func(plain(nested), d - 1, *args[1:], **kwargs), nested._ragged, nested._at)
    values, ragged = tight(nested)
    if kwargs.get("dtype") is not None:
        values = values.to(kwargs["dtype"])
    made = _segments.softmax(values.movedim(d - 1, 0), ragged, name == "log_softmax")
    return wrap(made.movedim(0, d - 1), ragged, d)


def _normalize(name, func, args, kwargs):
    nested, shape = args[0], args[1]
    rest = (shape,) if isinstance(shape, int) else tuple(shape)
    if nested.dim() <= 2:
        raise RuntimeError(
            f"{name}(): not supported for NestedTensor objects with 2 or fewer dimensions, this one has {nested.dim()}; each sequence "
            "has no dimension but the ragged one"
        )
    if nested.dim() - len(rest) <= nested._at:
        raise RuntimeError(f"{name}(): normalizing over ragged dim not supported for NestedTensor")
    return wrap(func(plain(nested), *args[1:], **kwargs), nested._ragged, nested._at)


def _linear(name, func, args, kwargs):
    nested = args[0]
    if not isinstance(nested, NestedTensor) or any(isinstance(a, NestedTensor) for a in args[1:]):
        raise RuntimeError(f"{name}(): the input alone may be nested")
    if nested._at == nested.dim() - 1:
        raise RuntimeError(f"{name}(): the last dimension must not be ragged; use transpose(1, 2)")
    return wrap(func(plain(nested), *args[1:], **kwargs), nested._ragged, nested._at)


def _embedding(name, func, args, kwargs):
    nested = args[0]
    if not isinstance(nested, NestedTensor):
        raise RuntimeError(f"{name}(): the indices alone may be nested")
    return wrap(func(plain(nested), *args[1:], **kwargs), nested._ragged, nested._at)


def _matmul(name, func, args, kwargs):
    a, b = args[0], args[1] if len(args) > 1 else kwargs.pop("other", None)
    a_nested, b_nested = isinstance(a, NestedTensor), isinstance(b, NestedTensor)
    if a_nested and not b_nested and b.dim() <= 2 and a._at < a.dim() - 1:
        made = func(plain(a), b)
        return wrap(made, a._ragged, a._at)
    alike = a.dim() == b.dim() and len(a) == len(b)
    rows = a_nested and a._at == a.dim() - 2 and not b_nested
    columns = b_nested and b._at == b.dim() - 1 and not a_nested
    between = a_nested and b_nested and a._at == a.dim() - 1 and b._at == b.dim() - 2 and a._ragged.same(b._ragged)
    if not alike or not (rows or columns or between):
        raise RuntimeError(
            f"{name}(): not supported between inputs of shapes {tuple(a.shape)} and {tuple(b.shape)}: one matrix for each "
            "sequence, or sequences that are summed over, are there"
        )
    made = [func(x, y) for x, y in zip(_sequences(a), _sequences(b), strict=True)]
    if between:
        return _op("stack")(made)
    ragged = (a if rows else b)._ragged.tight()
    return wrap(_op("cat")(made, -2 if rows else -1), ragged, a.dim() - (2 if rows else 1))


def _transpose(name, func, args, kwargs):
    nested = args[0]
    d, e = _dims_of((_take(args, kwargs, 1, "dim0"), _take(args, kwargs, 1, "dim1")), nested)
    if 0 in (d, e) and d != e:
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    if d == e:
        return wrap(plain(nested), nested._ragged, nested._at)
    return wrap(plain(nested).transpose(d - 1, e - 1), nested._ragged, {d: e, e: d}.get(nested._at, nested._at))


def _permute(name, func, args, kwargs):
    nested = args[0]
    order = kwargs.get("dims", args[1] if len(args) == 2 and not isinstance(args[1], int) else args[1:])
    order = _dims_of(order, nested)
    if not order or order[0] != 0:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    return wrap(plain(nested).permute([d - 1 for d in order[1:]]), nested._ragged, order.index(nested._at))


def _unsqueeze(name, func, args, kwargs):
    nested, dim = args[0], _take(args, kwargs, 1, "dim")
    d = dim % (nested.dim() + 1)
    if d == 0:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    return wrap(plain(nested).unsqueeze(d - 1), nested._ragged, nested._at + (d <= nested._at))


def _squeeze(name, func, args, kwargs):
    nested, dim = args[0], _take(args, kwargs, 1, "dim")
    if dim is None:
        raise RuntimeError("squeeze(): a dim is wanted for a NestedTensor, whose ragged size could be 1")
    values = plain(nested)
    gone = [
        d - 1
        for d in (_inner(name, nested, d) + 1 for d in ([dim] if isinstance(dim, int) else dim))
        if values.shape[d - 1] == 1
    ]
    return wrap(values.squeeze(gone), nested._ragged, nested._at - sum(d + 1 < nested._at for d in gone))


def _view(name, func, args, kwargs):
    nested = args[0]
    shape = kwargs.get("shape", kwargs.get("size", args[1:]))
    shape = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else tuple(shape)
    ragged = [i for i, s in enumerate(shape) if isinstance(s, RaggedSize)] or [
        i for i, s in enumerate(shape) if i and s == -1
    ]
    if not ragged or not ragged[0] or shape[0] not in (len(nested), -1):
        raise RuntimeError(
            f"{name}(): cannot view shape {tuple(nested.shape)} as {list(shape)}: the batch stays first, and a ragged size, or -1, follows"
        )
    k, at, values = ragged[0], nested._at, plain(nested)
    before, after = _filled(shape[1:k], values.shape[: at - 1]), _filled(shape[k + 1 :], values.shape[at:])
    if before is None or after is None:
        raise RuntimeError(
            f"{name}(): cannot view shape {tuple(nested.shape)} as {list(shape)}: elements would pass the ragged dimension"
        )
    with_sizes = (*before, values.shape[at - 1], *after)
    made = values.reshape(with_sizes) if name == "reshape" else values.view(with_sizes)
    return wrap(made, nested._ragged, k)


def _filled(wanted, given):
    """wanted with its -1 filled, if it has as many elements as given."""
    n, known = 1, 1
    for s in given:
        n *= s
    for s in wanted:
        known *= 1 if s == -1 else s
    if -1 in wanted and known and n % known == 0 and list(wanted).count(-1) == 1:
        return [n // known if s == -1 else s for s in wanted]
    return list(wanted) if known == n and -1 not in wanted else None


def _unflatten(name, func, args, kwargs):
    nested = args[0]
    d = _inner(name, nested, _take(args, kwargs, 1, "dim"))
    made = plain(nested).unflatten(d, *args[1:], **kwargs)
    return wrap(made, nested._ragged, nested._at + (made.dim() - nested.dim() + 1 if d + 1 < nested._at else 0))


def _flatten(name, func, args, kwargs):
    nested = args[0]
    first, last = _dims_of((_take(args, kwargs, 1, "start_dim", 0), _take(args, kwargs, 1, "end_dim", -1)), nested)
    if first == 0:
        raise RuntimeError("flatten(): not supported for NestedTensor on dim=0")
    if first <= nested._at <= last and first != last:
        raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    made = plain(nested).flatten(first - 1, last - 1)
    return wrap(made, nested._ragged, nested._at - (last - first if last < nested._at else 0))


def _pieces(name, func, args, kwargs):
    nested, size = args[0], args.pop(1)
    d = _inner(name, nested, _take(args, kwargs, 1, "dim", 0))
    return tuple(wrap(p, nested._ragged, nested._at) for p in func(plain(nested), size, d))


def _cat(name, func, args, kwargs):
    tensors = list(args[0])
    dim = _take(args, kwargs, 1, "dim", 0)
    first = tensors[0]
    if not all(isinstance(t, NestedTensor) for t in tensors):
        raise RuntimeError("cat(): all tensors must be nested, or none")
    (d,) = _dims_of(dim, first)
    if any(t.dim() != first.dim() or t._at != first._at for t in tensors):
        raise RuntimeError(f"cat(): the shapes must agree beside dim {d}: {[tuple(t.shape) for t in tensors]}")
    if d == 0:
        parts = [tight(t) for t in tensors]
        lengths = _op("cat")([r.offsets.diff() for _, r in parts])
        return wrap(_op("cat")([v for v, _ in parts], first._at - 1), from_lengths(lengths), first._at)
    _inner("cat", first, d)
    if not all(t._ragged.same(first._ragged) for t in tensors):
        raise RuntimeError(f"cat(): the sequences must be as long: {[tuple(t.shape) for t in tensors]}")
    return wrap(func([plain(t) for t in tensors], d - 1), first._ragged, first._at)


def _unbind(name, func, args, kwargs):
    (d,) = _dims_of(_take(args, kwargs, 1, "dim", 0), args[0])
    if d:
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    return _sequences(args[0])


def _sequences(nested):
    """The sequences as views; the parts of a dense tensor along its first dimension."""
    if not isinstance(nested, NestedTensor):
        return nested.unbind(0)
    values, ragged, at = plain(nested), nested._ragged, nested._at - 1
    if ragged.lengths is None and ragged.total == values.shape[at]:
        return tuple(values.split(ragged.sizes, at))
    return tuple(values.narrow(at, b, n) for b, n in zip(ragged.begins, ragged.sizes, strict=True))


def _index(name, func, args, kwargs):
    nested, key = args
    keys = list(key) if isinstance(key, tuple) else [key]
    if isinstance(keys[0], int) and not isinstance(keys[0], bool):
        if not -len(nested) <= keys[0] < len(nested):
            raise IndexError(f"index {keys[0]} is out of bounds for dimension 0 with size {len(nested)}")
        i, at = keys[0] % len(nested), nested._at - 1
        one = plain(nested).narrow(at, nested._ragged.begins[i], nested._ragged.sizes[i])
        return one[tuple(keys[1:])] if keys[1:] else one
    if Ellipsis in [k for k in keys if not isinstance(k, _C.Tensor)]:
        i = next(i for i, k in enumerate(keys) if k is Ellipsis)
        keys[i : i + 1] = [slice(None)] * (nested.dim() - len(keys) + 1)
    all_of = slice(None)
    if any(not isinstance(k, (int, slice)) or isinstance(k, bool) for k in keys) or len(keys) > nested.dim():
        raise NotImplementedError(f"index: a nested tensor takes ints and slices, not {key!r}; use unbind()")
    if keys[0] != all_of:
        raise RuntimeError("slice(): not supported for NestedTensor on dim=0")
    if len(keys) > nested._at and keys[nested._at] != all_of:
        raise RuntimeError("slice(): not supported for NestedTensor on ragged dim")
    gone = sum(isinstance(k, int) for k in keys[: nested._at])
    return wrap(plain(nested)[tuple(keys[1:])] if keys[1:] else plain(nested), nested._ragged, nested._at - gone)


def _select(name, func, args, kwargs):
    nested = args[0]
    (d,) = _dims_of(_take(args, kwargs, 1, "dim"), nested)
    key = (slice(None),) * d + (_take(args, kwargs, 1, "index"),)
    return _index(name, func, (nested, key), {})


def _contiguous(name, func, args, kwargs):
    values, ragged = tight(args[0])
    return wrap(values.contiguous(), ragged, args[0]._at)


def padded(nested, padding, output_size=None):
    """A dense tensor with `padding` after the end of each sequence."""
    values, ragged = tight(nested)
    at, n = nested._at, len(nested)
    rest = [values.shape[: at - 1], values.shape[at:]]
    most = ragged.longest
    if output_size is not None:
        wanted = tuple(output_size)
        most = wanted[at] if len(wanted) == nested.dim() else -1
        if (
            most < ragged.longest
            or wanted[0] != n
            or wanted[1:at] != tuple(rest[0])
            or wanted[at + 1 :] != tuple(rest[1])
        ):
            raise RuntimeError(
                f"to_padded_tensor: output_size {wanted} is smaller than the sequences, or another shape: they need "
                f"{(n, *rest[0], ragged.longest, *rest[1])}"
            )
    return _segments.with_room(values, ragged, at - 1, most, padding)


def _attention(name, func, args, kwargs):
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
    given = dict(zip(names, args, strict=False)) | kwargs
    sides = [given.pop(n) for n in names[:3]]
    if given.pop("attn_mask", None) is not None:
        raise RuntimeError(
            "scaled_dot_product_attention(): a nested tensor takes no attn_mask: each sequence sees itself alone"
        )
    if not all(isinstance(t, NestedTensor) and t._at == t.dim() - 2 for t in sides):
        raise RuntimeError(
            "scaled_dot_product_attention(): query, key and value must all be nested, with the ragged dimension before the last: "
            f"{[tuple(t.shape) for t in sides]}"
        )
    query, key, value = sides
    if len(query) != len(key) or not key._ragged.same(value._ragged):
        raise RuntimeError(
            "scaled_dot_product_attention(): key and value must have sequences as long as each other, and the query as many"
        )
    made = _segments.attention(*(tight(t) for t in sides), given)
    return wrap(made, query._ragged.tight(), query._at)


def _alike(name, func, args, kwargs):
    a, b = args[:2]
    if not isinstance(a, NestedTensor) or not isinstance(b, NestedTensor):
        raise RuntimeError(f"{name}(): both tensors must be nested, or none")
    if a.dim() != b.dim() or a._at != b._at or tight(a)[1].sizes != tight(b)[1].sizes:
        return False
    values = tight(a)[0], tight(b)[0]
    return values[0].shape == values[1].shape and func(*values, *args[2:], **kwargs)


def _is_same_size(name, func, args, kwargs):
    a, b = args
    return isinstance(b, NestedTensor) and isinstance(a, NestedTensor) and a.shape == b.shape


_SERVED = {
    **dict.fromkeys(
        "sum mean prod amax amin any all logsumexp std var argmax argmin max min median norm vector_norm".split(),
        _reduce,
    ),
    **dict.fromkeys(("softmax", "log_softmax"), _softmax),
    **dict.fromkeys(("layer_norm", "rms_norm"), _normalize),
    **dict.fromkeys(("matmul", "bmm", "__matmul__"), _matmul),
    **dict.fromkeys(("transpose", "swapaxes", "swapdims"), _transpose),
    **dict.fromkeys(("view", "reshape"), _view),
    **dict.fromkeys(("chunk", "split", "split_with_sizes"), _pieces),
    **dict.fromkeys(("cat", "concat", "concatenate"), _cat),
    **dict.fromkeys(("equal", "allclose"), _alike),
    "linear": _linear,
    "embedding": _embedding,
    "permute": _permute,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "unflatten": _unflatten,
    "flatten": _flatten,
    "unbind": _unbind,
    "select": _select,
    "__getitem__": _index,
    "contiguous": _contiguous,
    "scaled_dot_product_attention": _attention,
    "is_same_size": _is_same_size,
}
