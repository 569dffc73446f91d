"""bench/linalg.py: factorisations: stacks of small matrices, and single ones."""

from rivals import READY, drawn, jitted
from table import case


def symmetric(T, *shape):
    x = T.randn(*shape)
    return x + x.mT


def definite(T, *shape):
    x = T.randn(*shape)
    return x @ x.mT + shape[-1] * T.eye(shape[-1])


# name: (statement, what it is of)
OPS = {
    "cholesky": ("f.cholesky(x)", definite),
    "lu": ("f.lu_factor(x)", lambda T, *shape: T.randn(*shape)),
    "solve": ("f.solve(x, b)", lambda T, *shape: T.randn(*shape)),
    "inv": ("f.inv(x)", lambda T, *shape: T.randn(*shape)),
    "det": ("f.det(x)", lambda T, *shape: T.randn(*shape)),
    "qr": ("f.qr(x)", lambda T, *shape: T.randn(*shape)),
    "eigh": ("f.eigh(x)", symmetric),
    "svd": ("f.svd(x, full_matrices=False)", lambda T, *shape: T.randn(*shape)),
}
# The same in other libraries: SciPy's, which is NumPy's for stacks, and jax.jit.
NUMPY = {
    "cholesky": "n.cholesky(x)",
    "solve": "n.solve(x, b)",
    "inv": "n.inv(x)",
    "det": "n.det(x)",
    "qr": "n.qr(x)",
    "eigh": "n.eigh(x)",
    "svd": "n.svd(x, full_matrices=False)",
}
SCIPY = {
    "cholesky": "s.cholesky(x, lower=True, check_finite=False)",
    "lu": "s.lu_factor(x, check_finite=False)",
    "solve": "s.solve(x, b, check_finite=False)",
    "inv": "s.inv(x, check_finite=False)",
    "det": "s.det(x, check_finite=False)",
    "qr": "s.qr(x, mode='economic', check_finite=False)",
    "eigh": "s.eigh(x, check_finite=False)",
    "svd": "s.svd(x, full_matrices=False, check_finite=False)",
}
STACK, SINGLE = (4, 8, 16, 32), (32, 64, 256, 1024)


def numbers(op, shape):
    import numpy as np

    x = drawn(*shape)
    if op == "eigh":
        x = x + x.swapaxes(-1, -2)
    if op == "cholesky":
        x = x @ x.swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1], dtype=np.float32)
    return x, drawn(*shape[:-1], 1)


def of_scipy(op, shape):
    import numpy as np
    import scipy.linalg

    x, b = numbers(op, shape)
    return {"n": np.linalg, "s": scipy.linalg, "x": x, "b": b}


def of_jax(op, shape):
    import jax.numpy as jnp
    import jax.scipy.linalg as sl

    calls = {
        "lu": lambda x, b: sl.lu_factor(x),
        "solve": jnp.linalg.solve,
        "svd": lambda x, b: jnp.linalg.svd(x, full_matrices=False),
    }
    return jitted(calls.get(op, lambda x, b: getattr(jnp.linalg, op)(x)), *numbers(op, shape))


def factorisation(op, name, *shape):
    statement, made = OPS[op]
    rivals = {"jax": (READY, lambda: of_jax(op, shape))}
    if of := (NUMPY if len(shape) > 2 else SCIPY).get(op):
        rivals["scipy"] = (of, lambda: of_scipy(op, shape))
    case(
        "linalg",
        name,
        statement,
        lambda T: {"f": T.linalg, "x": made(T, *shape), "b": T.randn(*shape[:-1], 1)},
        rivals=rivals,
    )


for op in OPS:
    for n in STACK:
        factorisation(op, f"{op}_stack_{n}", 10_000 if n < 32 else 2_000, n, n)
    for n in SINGLE:
        factorisation(op, f"{op}_{n}", n, n)
