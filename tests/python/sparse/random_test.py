"""tests/python/sparse/random_test.py: random ops of sparse tensors beside the same ops of the dense tensors that they stand for.

`ADJOIN_RANDOM_CASES=100000 python tests/python/sparse/random_test.py` takes as many; ADJOIN_TEST_SEED says which.
"""

import collections
import os
import random

import adjoin
from random_sparse import LAYOUTS, coo, dense, full, laid

UNARY = "neg abs sin tan sinh tanh sqrt asin relu sign ceil floor trunc expm1 log1p square".split()


def elements(rng, s, d):
    name = rng.choice(UNARY)
    x = s if name in ("neg", "sin", "tan", "sinh", "tanh", "relu", "sign", "expm1") else s.abs() * 0.25
    y = d if x is s else d.abs() * 0.25
    return (
        name,
        lambda: getattr(x.coalesce() if x.layout is adjoin.sparse_coo else x, name)(),
        lambda: getattr(y, name)(),
    )


def scaled(rng, s, d):
    by = rng.choice([2.0, -0.5, 3])
    return rng.choice([("mul", lambda: s * by, lambda: d * by), ("div", lambda: s / by, lambda: d / by)])


def other_of(rng, s, d):
    """Another sparse tensor of the layout, and what it stands for."""
    if s.layout is adjoin.sparse_coo:
        o = coo(rng, tuple(s.shape), rng.randint(0, 6) if s.numel() else 0, s.dense_dim())
        return o, full(o)
    e = dense(rng, tuple(d.shape), rng.random())
    return laid(e, str(s.layout).rpartition(".")[2]), e


def two(rng, s, d):
    o, e = other_of(rng, s, d)
    name = rng.choice(["add", "sub", "mul"])
    return f"{name} sparse", lambda: getattr(s, name)(o), lambda: getattr(d, name)(e)


def beside_dense(rng, s, d):
    e = dense(rng, tuple(d.shape), 1.0)
    if rng.random() < 0.5:
        return "dense + sparse", lambda: e + s, lambda: e + d
    return "sparse * dense", lambda: s * e, lambda: d * e


def product(rng, s, d):
    columns = rng.choice([1, 2, 5, 17, 64])
    e = dense(rng, (d.shape[1], columns), 1.0)
    if rng.random() < 0.3:
        e = e.t().contiguous().t()
    form = rng.choice(["mm", "@", "mv", "addmm", "dense @", "sparse.mm", "sparse @ sparse"])
    if form == "mv":
        return form, lambda: s @ e[:, 0], lambda: d @ e[:, 0]
    if form == "addmm":
        to = dense(rng, (d.shape[0], columns), 1.0)
        return (
            form,
            lambda: adjoin.addmm(to, s, e, beta=0.5, alpha=2.0),
            lambda: adjoin.addmm(to, d, e, beta=0.5, alpha=2.0),
        )
    if form == "dense @":
        left = dense(rng, (columns, d.shape[0]), 1.0)
        return form, lambda: left @ s, lambda: left @ d
    if form == "sparse @ sparse":
        f = dense(rng, (d.shape[1], 6), 0.4)
        o = laid(f, str(s.layout).rpartition(".")[2])
        return form, lambda: s @ o, lambda: d @ f
    return form, lambda: adjoin.sparse.mm(s, e) if form == "sparse.mm" else s @ e, lambda: d @ e


def sums(rng, s, d):
    dims = rng.choice([None, 0, 1, -1])
    if dims is None:
        return "sum", lambda: s.sum(), lambda: d.sum()
    if s.layout is adjoin.sparse_coo:
        return f"sum {dims}", lambda: adjoin.sparse.sum(s, dims), lambda: d.sum(dims)
    return f"sum {dims}", lambda: s.sum(dims, keepdim=True), lambda: d.sum(dims, keepdim=True)


def shapes(rng, s, d):
    form = rng.choice(["t", "select", "slice", "cat", "index_select", "convert", "coalesce", "clone", "unsqueeze"])
    n = d.shape[0]
    if form == "select" and n:
        i = rng.randrange(n)
        return form, lambda: s[i], lambda: d[i]
    if form == "slice":
        a, b = sorted((rng.randint(0, n), rng.randint(0, n)))
        return form, lambda: s.narrow(0, a, b - a), lambda: d.narrow(0, a, b - a)
    if form == "cat":
        o, e = other_of(rng, s, d)
        dim = rng.choice([0, 1])
        return form, lambda: adjoin.cat([s, o], dim), lambda: adjoin.cat([d, e], dim)
    if form == "index_select" and n:
        at = adjoin.tensor([rng.randrange(n) for _ in range(rng.randint(0, 4))], dtype=adjoin.int64)
        return form, lambda: s.index_select(0, at), lambda: d.index_select(0, at)
    if form == "convert" and d.dim() == 2:
        to = rng.choice(LAYOUTS)
        blocks = {"blocksize": (2, 2)} if to in ("sparse_bsr", "sparse_bsc") else {}
        return f"to {to}", lambda: s.to_sparse(layout=getattr(adjoin, to), **blocks), lambda: d
    if form == "unsqueeze":
        return form, lambda: s.unsqueeze(0), lambda: d.unsqueeze(0)
    if form == "clone":
        return form, lambda: s.clone(), lambda: d
    return "t", lambda: s.transpose(0, 1), lambda: d.transpose(0, 1)


MAKERS = (elements, scaled, two, beside_dense, product, sums, shapes)
refused = collections.Counter()


def one(seed):
    rng = random.Random(seed)
    name = rng.choice(LAYOUTS)
    rows, columns = rng.choice([0, 2, 4, 6, 10, 40]), rng.choice([0, 2, 4, 6, 18])
    if name == "sparse_coo":
        s = coo(rng, (rows, columns), rng.randint(0, 12) if rows and columns else 0)
        d = full(s)
    else:
        d = dense(rng, (rows, columns), rng.random())
        s = laid(d, name)
    if name == "sparse_csr" and rng.random() < 0.4:  # as many tools write them
        s = adjoin.sparse_csr_tensor(s.crow_indices().int(), s.col_indices().int(), s.values(), tuple(s.shape))
    if rng.random() < 0.2 and rows and columns:
        s, d = s.float(), d.float()
    makers = MAKERS if s.dtype is adjoin.float64 else (elements, scaled, sums)
    what, sparse, plain = rng.choice(makers)(rng, s, d)
    about = f"seed {seed}: {what} of {name} {rows} x {columns} {s.dtype}"
    want = plain()
    try:
        made = sparse()
    except NotImplementedError as error:  # what it lacks it says, with a way out
        assert "to_dense" in str(error) or "call" in str(error) or "use" in str(error), (about, str(error))
        refused[what, name] += 1
        return
    made = full(made) if made.layout is not adjoin.strided else made
    assert made.shape == want.shape, (about, made.shape, want.shape)
    near = 1e-4 if s.dtype is adjoin.float32 else 1e-11
    assert adjoin.allclose(made.double(), want.double(), rtol=near, atol=near, equal_nan=True), about


def run(cases):
    seed = int(os.environ.get("ADJOIN_TEST_SEED", random.randrange(10**6)))
    print("seed", seed)
    for case in range(cases):
        one(seed * 1000003 + case)


def test_random_ops():
    refused.clear()
    cases = int(os.environ.get("ADJOIN_RANDOM_CASES", 400))
    run(cases)
    assert sum(refused.values()) < 0.2 * cases, refused


if __name__ == "__main__":
    run(int(os.environ.get("ADJOIN_RANDOM_CASES", 100000)))
    print("refused", sum(refused.values()), refused.most_common(30))
