"""adjoin.torch._old: the manners of PyTorch 0.2 and 0.3, for `adjoin run --old`: what the same words meant then.

Nothing here is in force otherwise: where PyTorch of today raises, or computes something else, so does Adjoin.
"""

import functools
import inspect

import adjoin
from adjoin import Tensor


def _change(home, names, make):
    """Puts what make gives for the functions of those names in their places, unless that was done before."""
    for name in names.split():
        before = getattr(home, name)
        if not getattr(before, "of_old", False):
            made = functools.wraps(before, updated=())(make(before))
            made.of_old = True
            setattr(home, name, made)


def _no_dimensions(before):
    """``loss.data[0]``: the number of a tensor without dimensions; the tensor itself where it has a history."""

    def __getitem__(self, index):
        if type(index) is int and index in (0, -1) and self.dim() == 0:
            return self if self.requires_grad else self.item()
        return before(self, index)

    return __getitem__


def _whole(value):
    if isinstance(value, Tensor):
        return not (value.is_floating_point() or value.is_complex() or value.dtype is adjoin.bool)
    return type(value) is int


def _whole_division(before):
    """Whole numbers over whole numbers were whole, cut off towards zero."""
    divide = adjoin.ops.div

    def div(self, other, **how):
        if _whole(self) and _whole(other) and not how:
            return divide(self, other, rounding_mode="trunc")
        return before(self, other, **how)

    return div


def _bytes_of_truth(before):
    """``mask + mask`` counts: comparisons gave bytes, with which one computes."""

    def method(self, other):
        byte = lambda x: x.byte() if isinstance(x, Tensor) and x.dtype is adjoin.bool else x
        return before(byte(self), byte(other))

    return method


def _factors(count, *words):
    """Factors stood among the ``count`` tensors that they scale: ``x.add(2, y)``, ``torch.addmm(beta, m, alpha, a, b)``."""
    number = lambda value: not isinstance(value, Tensor) or value.dim() == 0

    def make(before):
        def function(*args, **kwargs):
            numbers = [a for a in args if number(a)]
            if len(args) <= count or len(args) - len(numbers) != count or number(args[-1]):
                return before(*args, **kwargs)
            return before(*[a for a in args if not number(a)], **dict(zip(words, numbers)), **kwargs)

        return function

    return make


def _renamed(**names):
    """Keywords by their names of today."""

    def make(before):
        def function(*args, **kwargs):
            return before(*args, **{names.get(name, name): value for name, value in kwargs.items()})

        return function

    return make


def _by_default(word, value):
    """Another value for an argument that is left out: ``value(given)``."""

    def make(before):
        signature = inspect.signature(before)

        def function(*args, **kwargs):
            bound = signature.bind(*args, **kwargs)
            if bound.arguments.get(word) is None:
                bound.arguments[word] = value(bound.arguments)
            return before(*bound.args, **bound.kwargs)

        return function

    return make


def _keeps_corners(given):
    return given.get("mode", "nearest") in ("linear", "bilinear", "bicubic", "trilinear") or None


def _reinforce(self, reward):
    raise RuntimeError(
        "reinforce: nodes that were drawn have no gradient any more; say what is minimised: m = distributions.Categorical(p); "
        "action = m.sample(); loss = -m.log_prob(action) * reward"
    )


def gesv(B, A):
    """The X of A X = B, and the LU factors of A."""
    return adjoin.linalg.solve(A, B), adjoin.linalg.lu_factor(A)[0]


def potrf(a, upper=True):
    """The Cholesky factor."""
    return adjoin.linalg.cholesky(a, upper=upper)


def potrs(b, u, upper=True):
    """The solution of an equation whose matrix has that Cholesky factor."""
    return adjoin.cholesky_solve(b, u, upper=upper)


def symeig(a, eigenvectors=False, upper=True):
    """The eigenvalues of a symmetric matrix, and its eigenvectors where they are asked for."""
    side = "U" if upper else "L"
    if eigenvectors:
        return tuple(adjoin.linalg.eigh(a, UPLO=side))
    return adjoin.linalg.eigvalsh(a, UPLO=side), a.new_empty(0)


def install():
    """From now on, in this process."""
    from adjoin.nn import functional as F

    products = "addmm addmv addr baddbmm addbmm"
    _change(Tensor, "__getitem__", _no_dimensions)
    _change(Tensor, "__truediv__ div", _whole_division)
    _change(Tensor, "__add__ __sub__", _bytes_of_truth)
    for home, ending in ((adjoin, ""), (Tensor, ""), (Tensor, "_")):
        _change(home, f"add{ending} sub{ending}", _factors(2, "alpha"))
        _change(home, f"addcmul{ending} addcdiv{ending}", _factors(3, "value"))
        _change(home, " ".join(name + ending for name in products.split()), _factors(3, "beta", "alpha"))
    _change(Tensor, "backward", _renamed(retain_variables="retain_graph"))
    keywords = {"variables": "tensors", "grad_variables": "grad_tensors", "retain_variables": "retain_graph"}
    _change(adjoin.autograd, "backward", _renamed(**keywords))
    _change(F, "dropout dropout2d dropout3d alpha_dropout", _by_default("training", lambda given: False))
    _change(F, "upsample interpolate", _by_default("align_corners", _keeps_corners))
    _change(F, "grid_sample affine_grid", _by_default("align_corners", lambda given: True))
    for function in (gesv, potrf, potrs, symeig):
        setattr(adjoin, function.__name__, function)
        setattr(Tensor, function.__name__, function)
    Tensor.reinforce = _reinforce
    Tensor.creator = property(lambda self: self.grad_fn, doc="What made it.")
