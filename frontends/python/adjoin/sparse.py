"""adjoin.sparse: functions over sparse tensors: the ops of the registry whose names begin with ``sparse::``, and what is made of them."""

from . import _C
from .ops import _Space

_space = _Space("sparse", __name__)


def sum(input, dim=None, dtype=None):  # noqa: A001  (PyTorch's name)
    """The sum of the elements; the gradient has the places of ``input``."""
    dims = None if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    return _C.find_op("sparse::sum")(input, dims, dtype=dtype)


def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    """``beta * input + alpha * (mat1 @ mat2)``; the gradient of ``mat1`` is sparse if it is."""
    product = _C.find_op("sparse::mm")(mat1, mat2)
    return (input if beta == 1 else input * beta) + (product if alpha == 1 else product * alpha)


class check_sparse_tensor_invariants:
    """Whether invariants are checked: they always are, so this only says so."""

    def __init__(self, enable=True):
        self._enable = enable

    @staticmethod
    def is_enabled():
        return True

    @staticmethod
    def enable():
        """Changes nothing: the checks are on."""

    @staticmethod
    def disable():
        """Changes nothing: the checks stay on, for bad indices must not crash."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    def __call__(self, function):
        return function


def as_sparse_gradcheck(gradcheck):
    """gradcheck for functions of sparse tensors: ``autograd.gradcheck`` takes them as they are."""
    return gradcheck


def __getattr__(name):
    globals()[name] = found = getattr(_space, name)  # the next look-up is an ordinary one
    return found


def __dir__():
    return sorted({*dir(_space), "sum", "addmm", "check_sparse_tensor_invariants", "as_sparse_gradcheck"})
