"""adjoin._lobpcg: a few eigenvalues of a symmetric matrix, at either end."""

from . import _C
from . import linalg as _linalg


def lobpcg(A, k=None, B=None, X=None, n=None, iK=None, niter=None, tol=None, largest=None, method=None, tracker=None,
           ortho_iparams=None, ortho_fparams=None, ortho_bparams=None):  # fmt: skip
    """The k largest (or smallest) eigenvalues of A x = value B x, and their vectors as columns.

    A and B are dense, so all eigenvalues are computed and k of them are given; what steers PyTorch's iteration (iK,
    niter, tol, method, tracker, ortho_*) changes nothing. B is positive definite, A symmetric.
    """
    if not isinstance(A, _C.Tensor):
        raise TypeError(f"lobpcg: A must be Tensor, not {type(A).__name__}; a product alone is not served")
    if A.dim() < 2 or A.shape[-1] != A.shape[-2]:
        raise ValueError(f"lobpcg: A must be square, its shape is {list(A.shape)}")
    m = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if n is None else n) if X is None else X.shape[-1]
    if not 1 <= k <= n <= m or 3 * n > m:
        raise ValueError(
            f"lobpcg: k = {k} and n = {n} of size {m}: 1 <= k <= n <= size / 3 is wanted; use linalg.eigh for more"
        )
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"lobpcg: method must be 'basic' or 'ortho', it is {method!r}")
    if B is None:
        values, vectors = _linalg.eigh((A + A.mH) / 2)  # eigh reads one triangle, the iteration all of A
    else:
        L = _linalg.cholesky(B)
        inside = _linalg.solve_triangular(L, _linalg.solve_triangular(L, A, upper=False).mH, upper=False).mH
        values, vectors = _linalg.eigh((inside + inside.mH) / 2)
        vectors = _linalg.solve_triangular(L.mH, vectors, upper=True)
    if largest is None or largest:
        return values[..., -k:].flip(-1), vectors[..., -k:].flip(-1)
    return values[..., :k], vectors[..., :k]
