"""bench/sparse.py: sparse matrices of 10,000 by 10,000: products with a vector and with 64 columns, sums, places in order."""

from rivals import drawn
from table import case

SIZE = 10_000


def coo(T, count, seed=0):
    T.manual_seed(seed)
    return T.sparse_coo_tensor(T.randint(0, SIZE, (2, count)), T.randn(count), (SIZE, SIZE))


def rows(T, count, narrow=False, seed=0):
    s = coo(T, count, seed).coalesce().to_sparse_csr()
    if not narrow:
        return s
    return T.sparse_csr_tensor(s.crow_indices().int(), s.col_indices().int(), s.values(), s.shape)


def of_scipy(count, columns=0):
    """Matrices of as many places, and what they are multiplied with."""
    import numpy as np
    import scipy.sparse as sp

    def made(seed):
        rng = np.random.default_rng(seed)
        at = rng.integers(0, SIZE, (2, count)).astype(np.int32)
        return sp.coo_array((rng.standard_normal(count).astype(np.float32), at), (SIZE, SIZE))

    s = made(0)
    return {"c": s, "s": s.tocsr(), "t": made(1).tocsr(), "x": drawn(SIZE, *([columns] if columns else []))}


for count in (100_000, 1_000_000):
    work = {"bytes": 12 * count, "flops": 2 * count}
    case(
        "sparse", f"csr_vector_{count}", "s @ x",
        lambda T, n=count: {"s": rows(T, n), "x": T.randn(SIZE)},
        rivals={"scipy": ("s @ x", lambda n=count: of_scipy(n))}, **work,
    )  # fmt: skip
    case(
        "sparse", f"csr_vector_int32_{count}", "s @ x",
        lambda T, n=count: {"s": rows(T, n, narrow=True), "x": T.randn(SIZE)},
        rivals={"scipy": ("s @ x", lambda n=count: of_scipy(n))}, **work,
    )  # fmt: skip
    case(
        "sparse", f"csr_64_columns_{count}", "s @ x",
        lambda T, n=count: {"s": rows(T, n), "x": T.randn(SIZE, 64)},
        rivals={"scipy": ("s @ x", lambda n=count: of_scipy(n, 64))}, flops=128 * count,
    )  # fmt: skip
    case(
        "sparse", f"csr_add_{count}", "s + t", lambda T, n=count: {"s": rows(T, n), "t": rows(T, n, seed=1)},
        rivals={"scipy": ("s + t", lambda n=count: of_scipy(n))},
    )  # fmt: skip
    case(
        "sparse", f"coalesce_{count}", "s.coalesce()", lambda T, n=count: {"s": coo(T, n)},
        rivals={"scipy": ("c.copy().sum_duplicates()", lambda n=count: of_scipy(n))},
    )  # fmt: skip
