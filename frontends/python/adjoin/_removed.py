"""adjoin._removed: functions that PyTorch has removed or is to remove; they say what to use."""

import warnings

from . import _C
from ._overridden import handed_over, overridden


def _removed(name, use):
    def removed(*args, **settings):
        raise RuntimeError(
            f"This function was deprecated since version 1.9 and is now removed. `torch.{name}` is deprecated in favor of {use}"
        )

    removed.__name__ = removed.__qualname__ = name
    removed.__doc__ = f"Removed: {use}."
    return removed


lstsq = _removed("lstsq", "`torch.linalg.lstsq`, which takes the matrix first and gives no QR factors")
solve = _removed(
    "solve", "`torch.linalg.solve`, which takes the matrix first and gives no LU factors; `torch.lu` gives them"
)
eig = _removed("eig", "`torch.linalg.eig`, which gives complex tensors")
symeig = _removed("symeig", "`torch.linalg.eigh`, which reads the lower triangle unless UPLO='U' is given")
cholesky = _removed("cholesky", "`torch.linalg.cholesky`, which takes upper, too")
qr = _removed("qr", "`torch.linalg.qr`, whose mode='complete' is what some=False was")


def _norm(name, ord):
    def norm(input, dim=None, keepdim=False, *, out=None):
        if overridden(input, out):
            return handed_over(norm, (input, out), locals())
        warnings.warn(
            f"torch.{name} is deprecated: torch.linalg.matrix_norm(input, ord={ord!r}, dim=dim) is its name",
            stacklevel=2,
        )
        places = (-2, -1) if dim is None else dim
        row = "linalg::matrix_norm" if not isinstance(places, int) and len(places) == 2 else "linalg::vector_norm"
        if row == "linalg::vector_norm" and ord == "nuc":
            raise RuntimeError(f"{name}: two dimensions are wanted, dim is {dim}")
        return _C.find_op(row)(input, ord if row == "linalg::matrix_norm" else 2, places, keepdim, out=out)

    norm.__name__ = norm.__qualname__ = name
    norm.__doc__ = f"The matrix norm {ord!r} by its old name."
    return norm


nuclear_norm, frobenius_norm = _norm("nuclear_norm", "nuc"), _norm("frobenius_norm", "fro")


def xpu(self, *args, **settings):
    """There is no such backend."""
    raise RuntimeError(
        "xpu: no plugin brings a device 'xpu'; x.to(device) moves to one that is there: adjoin plugins lists them"
    )
