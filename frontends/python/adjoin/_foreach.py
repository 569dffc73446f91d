"""adjoin._foreach: one op on every tensor of a list: ``_foreach_add(params, grads, alpha=-lr)`` and its like."""

from . import _C

_ONE = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt "
    "sigmoid sign sin sinh sqrt tan tanh trunc"
)
_TWO = "add clamp_max clamp_min div maximum minimum mul pow sub"
_THREE = "addcdiv addcmul"
_OF = {"maximum": "clamp_min", "minimum": "clamp_max"}  # by what numbers are compared


def _each(values, n, what):
    """One value for each of n tensors: of a list, of a vector, or the same for all."""
    if isinstance(values, _C.Tensor) and values.dim() == 1:
        values = values.tolist()
    if not isinstance(values, (list, tuple)):
        return [values] * n
    if len(values) != n:
        raise RuntimeError(f"foreach: {n} tensors and {len(values)} {what}; give as many of both")
    return values


def _count(tensors):
    if not tensors:
        raise RuntimeError("foreach: the list has no tensors; give at least one")
    return len(tensors)


def _apply(name, t, *args, **kwargs):
    number = args and not isinstance(args[0], _C.Tensor)
    return getattr(t, _OF.get(name, name) if number else name)(*args, **kwargs)


def _in_place(name, t, *args, **kwargs):
    return t.copy_(_apply(name, t, *args)) if name in _OF else getattr(t, name + "_")(*args, **kwargs)


def _one(name, apply):
    def foreach(self):
        _count(self)
        return [apply(name, t) for t in self]

    return foreach


def _two(name, apply):
    at_once = {
        "add": _added, "sub": lambda self, other, alpha: _added(self, other, -alpha),
        "mul": lambda self, other, _: _scaled(self, other),
    }.get(name) if apply is _in_place else None  # fmt: skip

    def foreach(self, other, *, alpha=1):
        if at_once and isinstance(self, (list, tuple)) and self:
            done = at_once(self, other, alpha)
            if done is not None:
                return done
        if isinstance(self, (int, float)):  # pow(2.0, tensors)
            return [_C.find_op(name)(self, t) for t in other]
        more = {} if alpha == 1 else {"alpha": alpha}
        others = _each(other, _count(self), "others")
        return [apply(name, t, o, **more) for t, o in zip(self, others, strict=True)]

    return foreach


def _three(name, apply):
    def foreach(self, tensor1, tensor2, value=1, *, scalars=None, tensor=None):
        n = _count(self)
        values = _each(next((v for v in (scalars, tensor) if v is not None), value), n, "values")
        rows = zip(self, _each(tensor1, n, "tensors"), _each(tensor2, n, "tensors"), values, strict=True)
        return [apply(name, t, a, b, value=v) for t, a, b, v in rows]

    return foreach


def _at_once(tensors, others):
    """Can one launch change them all? Tensors alike, beside others like them, of which none is recorded."""
    first, own, recorded = tensors[0], {id(t) for t in tensors}, _C.is_grad_enabled()
    return (
        first.is_floating_point()
        and len(own) == len(tensors)
        and all(t is o for t, o in zip(tensors, others, strict=False) if id(o) in own)
        and all(
            isinstance(t, _C.Tensor)
            and t.dtype == first.dtype
            and t.device == first.device
            and not (recorded and t.requires_grad)
            for t in (*tensors, *others)
        )
        and all(t.shape == o.shape for t, o in zip(tensors, others, strict=False))
    )


def _added(tensors, other, alpha):
    """tensors += alpha other: a step down a slope, whose length is -alpha; None if it cannot be one launch."""
    if not (isinstance(other, (list, tuple)) and len(other) == len(tensors) > 1 and isinstance(alpha, (int, float))):
        return None
    if not _at_once(tensors, other):
        return None
    _C.find_op("fused_sgd_")(
        tensors, other, [], lr=-alpha, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False,
        is_first_step=False,
    )  # fmt: skip
    return list(tensors)


def _scaled(tensors, other):
    """tensors *= other, a tensor of one number on their device; None if it cannot be one launch."""
    first = tensors[0]
    number = isinstance(other, _C.Tensor) and other.dim() == 0 and other.is_floating_point()
    if not number or other.device != first.device or other.dtype != first.dtype or other.requires_grad:
        return None
    if len(tensors) < 2 or not _at_once(tensors, ()):
        return None
    _C.find_op("fused_scale_")(tensors, other)
    return list(tensors)


def _published(make, name):
    pure, write = make(name, _apply), make(name, _in_place)

    def written(self, *args, **kwargs):
        write(self, *args, **kwargs)
        return self

    def foreach(*args, **kwargs):
        return tuple(pure(*args, **kwargs))

    foreach.__name__ = f"_foreach_{name}"
    foreach.__doc__ = f"{name} of each tensor, as a tuple."
    written.__name__ = f"_foreach_{name}_"
    written.__doc__ = f"{name} of each tensor, written into it."
    return {f.__name__: f for f in (foreach, written)}


for _make, _names in ((_one, _ONE), (_two, _TWO), (_three, _THREE)):
    for _name in _names.split():
        globals().update(_published(_make, _name))


def _foreach_lerp(self, end, weight):
    """From each tensor to each end, by a weight."""
    n = _count(self)
    rows = zip(self, _each(end, n, "ends"), _each(weight, n, "weights"), strict=True)
    return tuple(t.lerp(e, w) for t, e, w in rows)


def _foreach_lerp_(self, end, weight):
    """_foreach_lerp() into the tensors."""
    n = _count(self)
    for t, e, w in zip(self, _each(end, n, "ends"), _each(weight, n, "weights"), strict=True):
        t.lerp_(e, w)
    return self


def _foreach_norm(self, ord=2, dtype=None):
    """The norm of each tensor."""
    _count(self)
    norm = _C.find_op("linalg::vector_norm")
    return tuple(norm(t, ord, dtype=dtype) for t in self)


def _foreach_powsum(self, ord=2, dtype=None):
    """The sum of powers of sizes of each tensor."""
    _count(self)
    return tuple((t if dtype is None else t.to(dtype)).abs().pow(ord).sum() for t in self)


def _foreach_max(self):
    """The largest of each tensor."""
    _count(self)
    return tuple(t.max() for t in self)


def _foreach_mm(self, mat2):
    """The products of pairs of matrices."""
    return tuple(a @ b for a, b in zip(self, _each(mat2, _count(self), "matrices"), strict=True))


def _foreach_clone(self, *, memory_format=None):
    """A copy of each tensor."""
    _count(self)
    return tuple(t.clone(memory_format=memory_format) for t in self)


def _foreach_copy_(self, src, non_blocking=False):
    """Each source into its tensor."""
    for t, s in zip(self, _each(src, _count(self), "sources"), strict=True):
        t.copy_(s, non_blocking)
    return self


def _foreach_zero_(self):
    """Zeros into each tensor."""
    _count(self)
    for t in self:
        t.zero_()
    return self
