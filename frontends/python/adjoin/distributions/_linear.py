"""adjoin.distributions._linear: Cholesky's factor and triangular systems of small matrices, out of differentiable ops."""

import adjoin


def cholesky(a):
    """The lower L with L L' = a, column by column; nan where a is not positive definite."""
    a = (a + a.mT) / 2  # so that derivatives are symmetric too
    size, columns = a.shape[-1], []
    for j in range(size):
        rest = a[..., j:, j]
        for k in range(j):
            rest = rest - columns[k][..., j:] * columns[k][..., j : j + 1]
        column = rest / rest[..., :1].sqrt()
        columns.append(adjoin.cat((adjoin.zeros_like(a[..., :j, j]), column), -1))
    return adjoin.stack(columns, -1)


def solve_lower(factor, b):
    """x with factor x = b, factor lower triangular; b (..., n, m)."""
    rows = []
    for i in range(factor.shape[-1]):
        rest = b[..., i, :]
        if i:
            rest = rest - (factor[..., i, None, :i] @ adjoin.stack(rows, -2)).squeeze(-2)
        rows.append((rest / factor[..., i, i, None]).expand(_batch(factor, b, rest)))
    return adjoin.stack(rows, -2)


def _batch(factor, b, row):
    return adjoin.broadcast_shapes(factor.shape[:-2], b.shape[:-2]) + row.shape[-1:]


def from_precision(precision):
    """The lower factor of the inverse of a positive definite matrix."""
    upper = cholesky(precision.flip((-2, -1))).flip((-2, -1)).mT
    return solve_lower(upper, adjoin.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device))
