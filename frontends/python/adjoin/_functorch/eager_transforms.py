"""adjoin._functorch.eager_transforms: the derivatives of adjoin.func where libraries look for them, and how they choose arguments."""

from .._forward import _argnums
from ..func import functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp

__all__ = [
    "_as_tuple", "_slice_argnums", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp",
]  # fmt: skip


def _as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


def _slice_argnums(args, argnums, as_tuple=True):
    """The arguments that are meant; ``as_tuple=False``: one number gives the argument itself."""
    chosen = tuple(args[n] for n in _argnums(argnums, len(args), "argnums"))
    return chosen if as_tuple or not isinstance(argnums, int) else chosen[0]
