"""adjoin._lowrank: the first singular vectors of a matrix by products with random ones (N. Halko, P. Martinsson, J. Tropp, 2011)."""

from . import _C
from . import linalg as _linalg
from ._overridden import handed_over, overridden


def _range_of(A, q, niter, M):
    """Orthonormal columns that span most of what A - M gives."""

    def times(x):
        return A @ x if M is None else A @ x - M @ x

    def adjoint_times(x):
        return A.mH @ x if M is None else A.mH @ x - M.mH @ x

    Q = _linalg.qr(times(_C.find_op("randn")([A.shape[-1], q], dtype=A.dtype, device=A.device))).Q
    for _ in range(niter):
        Q = _linalg.qr(times(_linalg.qr(adjoint_times(Q)).Q)).Q
    return Q


def svd_lowrank(A, q=6, niter=2, M=None):
    """U, S, V of A - M of rank q at most, nearly the first of svd's: q a little larger than the rank wanted."""
    if overridden(A, M):
        return handed_over(svd_lowrank, (A, M), locals())
    q = 6 if q is None else q
    if A.dim() < 2 or not 0 <= q <= min(A.shape[-2:]):
        raise ValueError(
            f"svd_lowrank: q must be from 0 to the least size of a matrix: q is {q}, the shape {list(A.shape)}"
        )
    if niter < 0:
        raise ValueError(f"svd_lowrank: niter must not be negative: {niter}")
    M = None if M is None else M.broadcast_to(A.shape)
    if A.shape[-2] < A.shape[-1]:
        V, S, U = svd_lowrank(A.mH, q, niter, None if M is None else M.mH)
        return U, S, V
    Q = _range_of(A, q, niter, M)
    B = Q.mH @ A if M is None else Q.mH @ A - Q.mH @ M
    U, S, Vh = _linalg.svd(B, full_matrices=False)
    return Q @ U, S, Vh.mH


def pca_lowrank(A, q=None, center=True, niter=2):
    """svd_lowrank of the rows of A, center: less their mean. V's columns are the principal directions."""
    if overridden(A):
        return handed_over(pca_lowrank, (A,), locals())
    q = min(6, *A.shape[-2:]) if q is None else q
    if not center:
        return svd_lowrank(A, q, niter)
    if A.layout is _C.strided:
        return svd_lowrank(A - A.mean(-2, keepdim=True), q, niter)
    mean = A.sum(-2).to_dense() / A.shape[-2]  # which is taken off the products: A stays sparse
    return svd_lowrank(A, q, niter, mean.unsqueeze(-2).expand(A.shape))
