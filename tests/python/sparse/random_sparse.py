"""tests/python/sparse/random_sparse.py: random sparse tensors of every layout, and the dense tensors that they stand for."""

import adjoin

LAYOUTS = ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")


def dense(rng, shape, density=0.4, dtype=adjoin.float64):
    """Numbers of which most are 0."""
    n = 1
    for s in shape:
        n *= s
    numbers = [rng.choice([-3.0, -1.5, 0.5, 1.0, 2.0, 2.5]) if rng.random() < density else 0.0 for _ in range(n)]
    return adjoin.tensor(numbers, dtype=dtype).reshape(shape)


def laid(d, name):
    """d in a layout; blocks are 2 by 2, so sizes must be even for those."""
    layout = getattr(adjoin, name)
    return d.to_sparse(layout=layout, **({"blocksize": (2, 2)} if name in ("sparse_bsr", "sparse_bsc") else {}))


def coo(rng, shape, n, dense_dims=0, dtype=adjoin.float64):
    """n elements at random places, some of them at the same one, not in order."""
    cut = len(shape) - dense_dims
    rows = [[rng.randrange(s) for _ in range(n)] for s in shape[:cut]]
    if not n:
        rows = [[] for _ in shape[:cut]]
    values = dense(rng, (n, *shape[cut:]), 1.0, dtype)
    return adjoin.sparse_coo_tensor(adjoin.tensor(rows, dtype=adjoin.int64).reshape(cut, n), values, shape)


def full(t):
    """The dense tensor, made by writing each element: another way than to_dense goes."""
    if t.layout is adjoin.strided:
        return t
    if t.layout is not adjoin.sparse_coo:
        return from_compressed(t)
    made = adjoin.zeros(t.shape, dtype=t.dtype)
    places, values = t._indices().tolist(), t._values()
    for k in range(t._nnz()):
        at = tuple(row[k] for row in places)
        made[at] = made[at] + values[k]
    return made


def from_compressed(t):
    by_rows = t.layout in (adjoin.sparse_csr, adjoin.sparse_bsr)
    begins = (t.crow_indices() if by_rows else t.ccol_indices()).tolist()
    plain = (t.col_indices() if by_rows else t.row_indices()).tolist()
    values = t.values()
    h, w = values.shape[1:3] if t.layout in (adjoin.sparse_bsr, adjoin.sparse_bsc) else (1, 1)
    made = adjoin.zeros(t.shape, dtype=t.dtype)
    for line in range(len(begins) - 1):
        for k in range(begins[line], begins[line + 1]):
            i, j = (line, plain[k]) if by_rows else (plain[k], line)
            made[i * h : (i + 1) * h, j * w : (j + 1) * w] = values[k].reshape(h, w)
    return made
