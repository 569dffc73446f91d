"""solvers.py: factorisations and solutions, judged by what they say: A x = b, Q R = A, U S V = A, for matrices of every condition."""

import adjoin
import numpy as np
import torch

from ..case import within
from ..draw import Draw

KINDS = {"float32": np.float32, "float64": np.float64, "complex64": np.complex64, "complex128": np.complex128}
SHAPES = [(), (), (), (1,), (2,), (3,), (0,), (17,), (2, 3)]
BUILDS = ["plain"] * 5 + [
    "conditioned",
    "singular",
    "lacking",
    "zeros",
    "huge",
    "tiny",
    "nan",
    "inf",
    "integers",
    "diagonal",
    "ones",
]
LOOSE = {"lacking", "singular", "ones", "integers"}  # whether a pivot is 0 hangs on how it was rounded


# Where a matrix of NaN or infinity is refused, or not; the eigenvalues and singular values are a line of frontends/docs/differences.md.
SPECTRAL = {
    "cholesky",
    "hermitian",
    "indefinite",
    "singular_values",
    "pseudo_inverse",
    "least_squares",
    "ranks",
    "norms",
}


def named(outcome):
    """Whether a matrix of NaN or infinity was refused, or gave no numbers, or what says nothing of them."""
    return outcome in (0.0, np.inf) if isinstance(outcome, float) else isinstance(outcome, RuntimeError)


def far(found, wanted, size):
    """The greatest distance, in parts of ``size``; inf where a number is none."""
    with np.errstate(all="ignore"):
        found, wanted = np.asarray(found), np.asarray(wanted)
        if found.shape != wanted.shape:
            return np.inf
        if not found.size:
            return 0.0
        if not np.isfinite(found).all():
            return np.inf
        return float(np.abs(found - wanted).max() / max(float(size), 1e-300))


def most(x):
    return float(np.abs(x).max()) if x.size else 0.0


def t(x):
    return np.conj(np.swapaxes(x, -1, -2))


def wide(x):
    """A library's tensor as NumPy's numbers in double precision."""
    shape, kind = tuple(x.shape), complex if x.dtype.is_complex else float
    return np.array(x.detach().resolve_conj().reshape(-1).tolist(), dtype=kind).reshape(shape)


class Identity:
    """One call of a solver: ``asked(lib)`` gives distances from what must hold, in units of rounding."""

    def __init__(self, seed, index):
        self.d = d = Draw("solvers", seed, index)
        self.rng = np.random.default_rng([seed, *map(ord, str(index))])
        self.kind, self.build = d.pick(list(KINDS)), d.pick(BUILDS)
        self.eps = float(np.finfo(KINDS[self.kind]).eps)
        self.batch = d.pick(SHAPES)
        self.n = d.pick(
            [0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 12, 16, 17, 31, 32, 33, 40]
            if len(self.batch)
            else [*range(9), 16, 33, 64, 70, 130]
        )
        self.m = self.n if d.chance(0.4) else d.pick([0, 1, 2, 3, 5, 9, 20, 33])
        self.k = d.pick([0, 1, 1, 2, 5])
        self.layout = d.pick(["rows", "rows", "columns", "step"])
        self.name = d.pick(list(QUESTIONS))
        self.flags = [d.chance(0.5) for _ in range(4)]
        self.lines = []

    # Matrices

    def drawn(self, *shape):
        x = self.rng.standard_normal((*self.batch, *shape))
        return x + 1j * self.rng.standard_normal(x.shape) if "complex" in self.kind else x

    def matrix(self, m, n, build=None):
        build = build or self.build
        x = self.drawn(m, n)
        if build == "conditioned" and min(m, n):
            u, _, v = np.linalg.svd(x, full_matrices=False)
            x = (u * np.logspace(0, np.log10(self.eps) / 2, min(m, n))) @ v
        elif build == "singular" and n:
            x[..., :, self.d.int(0, n - 1)] = 0
        elif build == "lacking" and n > 1:
            x[..., :, -1] = x[..., :, 0]
        elif build == "zeros":
            x = x * 0
        elif build in ("huge", "tiny"):
            power = 30 if self.eps > 1e-10 else 140
            x = x * 10.0 ** (power if build == "huge" else -power)
        elif build in ("nan", "inf") and m * n:
            x[..., self.d.int(0, m - 1), self.d.int(0, n - 1)] = getattr(np, build)
        elif build == "integers":
            x = np.round(x)
        elif build == "diagonal":
            x = x * np.eye(m, n)
        elif build == "ones":
            x = x * 0 + 1
        return x.astype(KINDS[self.kind])

    def positive(self, n):
        x = self.matrix(n, n).astype(complex if "complex" in self.kind else float)
        if self.build in ("plain", "integers", "diagonal"):
            x = x @ t(x) + np.eye(n)
        with np.errstate(all="ignore"):
            return ((x + t(x)) / 2).astype(KINDS[self.kind])

    def given(self, lib, x):
        """NumPy's numbers as a library's tensor of the case's layout."""
        x = np.ascontiguousarray(x)
        made = lib.tensor(x.reshape(-1).tolist(), dtype=getattr(lib, self.kind)).reshape(x.shape)
        if self.layout == "columns" and x.ndim > 1:
            return made.mT.contiguous().mT
        if self.layout == "step" and x.ndim > 1:
            return lib.stack([made, made], -1)[..., 0]
        return made

    def unit(self, *sizes):
        return 100 * max(1, *sizes) * self.eps

    # What is asked

    def outcome(self, lib):
        """The greatest distance, in units of rounding, or the error."""
        self.d = Draw("solvers", *self.again)
        self.rng = np.random.default_rng(self.start)
        with within(lib):
            try:
                return QUESTIONS[self.name](self, lib)
            except Exception as error:
                return error.with_traceback(None)

    def differences(self):
        import warnings

        self.again, self.start = (0, self.d.int(0, 1 << 40)), int(self.rng.integers(1 << 62))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mine, yours = self.outcome(adjoin), self.outcome(torch)
        self.lines = [f"# adjoin: {mine!r}; torch: {yours!r}"]
        refused = isinstance(mine, Exception), isinstance(yours, Exception)
        if self.build in ("nan", "inf") and self.name in SPECTRAL and named(mine) and named(yours):
            return []
        if any(refused):
            if "INTERNAL ASSERT" in str(yours):  # a fault of theirs
                return []
            if not refused[0] and mine <= 1 and "failed to converge" in str(yours):
                return []
            if all(refused) or (
                self.build in LOOSE and any(w in str(mine if refused[0] else yours) for w in ("zero", "singular"))
            ):
                return []
            return [f"{self.name} of {self.build}: adjoin {mine!r}, torch {yours!r}"]
        if mine > 1 and not yours > 1:
            return [f"{self.name} of {self.build}: {mine:.3g} units from what must hold, torch {yours:.3g}"]
        return []

    def text(self):
        about = (
            f"{self.name} {self.kind} {self.build} {self.batch} {self.m}x{self.n} k={self.k} {self.layout} {self.flags}"
        )
        return "\n".join([about, *self.lines])


def solve(c, lib):
    a, b = c.matrix(c.n, c.n), c.matrix(c.n, c.k, "plain")
    left = c.flags[0]
    if not left:
        b = np.swapaxes(b, -1, -2)
    x = wide(lib.linalg.solve(c.given(lib, a), c.given(lib, b), left=left))
    return far(a @ x if left else x @ a, b, most(a) * most(x) + most(b)) / c.unit(c.n, 1)


def inverse(c, lib):
    a = c.matrix(c.n, c.n)
    x = wide(lib.linalg.inv(c.given(lib, a)))
    return far(a @ x, np.broadcast_to(np.eye(c.n), a.shape), most(a) * most(x) + 1) / c.unit(c.n)


def orthonormal(q, unit):
    return far(t(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], *2 * q.shape[-1:])), 1) / unit


def qr(c, lib):
    a = c.matrix(c.m, c.n)
    q, r = map(wide, lib.linalg.qr(c.given(lib, a), mode="complete" if c.flags[0] else "reduced"))
    unit = c.unit(c.m, c.n)
    return max(far(q @ r, a, most(a)) / unit, orthonormal(q, unit), far(np.tril(r, -1), 0 * r, 1))


def singular_values(c, lib):
    a = c.matrix(c.m, c.n)
    u, s, v = map(wide, lib.linalg.svd(c.given(lib, a), full_matrices=c.flags[0]))
    k, unit = min(c.m, c.n), c.unit(c.m, c.n)
    alone = wide(lib.linalg.svdvals(c.given(lib, a)))
    falling = 0 if (np.diff(s) <= 0).all() and (s >= 0).all() else np.inf
    back = (u[..., :k] * s[..., None, :]) @ v[..., :k, :]
    return max(far(back, a, most(a)) / unit, orthonormal(u, unit), orthonormal(t(v), unit), falling,
               far(alone, s, most(s)) / unit)  # fmt: skip


def hermitian(c, lib):
    a = c.matrix(c.n, c.n)
    side = "U" if c.flags[0] else "L"
    values, vectors = map(wide, lib.linalg.eigh(c.given(lib, a), UPLO=side))
    alone = wide(lib.linalg.eigvalsh(c.given(lib, a), UPLO=side))
    part = np.triu(a, 1) if side == "U" else np.tril(a, -1)
    whole = part + t(part) + np.real(a) * np.eye(c.n)
    unit = c.unit(c.n)
    rising = 0 if (np.diff(values) >= 0).all() else np.inf
    return max(far(whole @ vectors, vectors * values[..., None, :], most(whole)) / unit, orthonormal(vectors, unit),
               rising, far(alone, values, most(values)) / unit)  # fmt: skip


def general(c, lib):
    a = c.matrix(c.n, c.n)
    values, vectors = map(wide, lib.linalg.eig(c.given(lib, a)))
    unit = c.unit(c.n)
    norms = np.sqrt((np.abs(vectors) ** 2).sum(-2))
    return max(far(a @ vectors, vectors * values[..., None, :], most(a)) / unit, far(norms, norms * 0 + 1, 1) / unit)


def cholesky(c, lib):
    a = c.positive(c.n)
    upper = c.flags[0]
    f = wide(lib.linalg.cholesky(c.given(lib, a), upper=upper))
    other = np.tril(f, -1) if upper else np.triu(f, 1)
    return max(far(t(f) @ f if upper else f @ t(f), a, most(a)) / c.unit(c.n), most(other))


def triangles(c, lib):
    a = c.matrix(c.m, c.n)
    p, low, up = map(wide, lib.linalg.lu(c.given(lib, a)))
    unit = c.unit(c.m, c.n)
    grown = most(a) + most(low) * most(up)
    return max(
        far(p @ low @ up, a, grown) / unit,
        most(np.triu(low, 1)),
        most(np.tril(up, -1)),
        most(np.abs(low)) - 1 if low.size else 0,
    )


def factored(c, lib):
    a, b = c.matrix(c.n, c.n), c.matrix(c.n, c.k, "plain")
    left, adjoint = c.flags[:2]
    if not left:
        b = np.swapaxes(b, -1, -2)
    lu, pivots = lib.linalg.lu_factor(c.given(lib, a))
    x = wide(lib.linalg.lu_solve(lu, pivots, c.given(lib, b), left=left, adjoint=adjoint))
    by = t(a) if adjoint else a
    return far(by @ x if left else x @ by, b, most(a) * most(x) + most(b)) / c.unit(c.n)


def determinant(c, lib):
    a = c.matrix(c.n, c.n)
    sign, size = map(wide, lib.linalg.slogdet(c.given(lib, a)))
    with np.errstate(all="ignore"):
        wanted_sign, wanted = np.linalg.slogdet(a.astype(complex if "complex" in c.kind else float))
        worst = np.linalg.cond(a.astype(complex)).max() if a.size else 1.0
    if not np.isfinite(wanted).all() or worst > 1e-2 / c.eps:
        return 0.0 if sign.shape == wanted_sign.shape else np.inf
    unit = c.unit(c.n) * float(worst)
    return max(far(size, wanted, max(1, most(wanted))) / unit, far(sign, wanted_sign, 1) / unit)


def least_squares(c, lib):
    if lib is torch and not c.k:  # it breaks memory where there is no right side
        return 0.0
    a, b = c.matrix(c.m, c.n), c.matrix(c.m, c.k, "plain")
    driver = c.d.pick(["gels", "gelsd", "gelsy", "gelss", None])
    if driver in ("gels",) and c.build in LOOSE | {"zeros"}:
        driver = "gelsd"
    x = wide(lib.linalg.lstsq(c.given(lib, a), c.given(lib, b), driver=driver)[0])
    return far(t(a) @ (a @ x - b), x * 0, most(a) * (most(a) * most(x) * max(1, c.n) + most(b))) / c.unit(c.m, c.n)


def pseudo_inverse(c, lib):
    a = c.matrix(c.m, c.n)
    x = wide(lib.linalg.pinv(c.given(lib, a)))
    sizes = most(a) * most(x) + 1
    unit = c.unit(c.m, c.n) * max(1, c.m, c.n)
    return max(far(a @ x @ a, a, most(a) * sizes**2) / unit, far(x @ a @ x, x, most(x) * sizes**2) / unit)


def triangular(c, lib):
    a, b = c.matrix(c.n, c.n), c.matrix(c.n, c.k, "plain")
    upper, left, unit = c.flags[:3]
    a = np.triu(a) if upper else np.tril(a)
    if not left:
        b = np.swapaxes(b, -1, -2)
    x = wide(lib.linalg.solve_triangular(c.given(lib, a), c.given(lib, b), upper=upper, left=left, unitriangular=unit))
    if unit:
        a = np.triu(a, 1) + np.eye(c.n) if upper else np.tril(a, -1) + np.eye(c.n)
    return far(a @ x if left else x @ a, b, most(a) * most(x) + most(b)) / c.unit(c.n)


def indefinite(c, lib):
    a, b = c.matrix(c.n, c.n), c.matrix(c.n, c.k, "plain")
    mirrored = c.flags[0] and "complex" in c.kind
    a = ((a + t(a)) / 2 if mirrored else (a + np.swapaxes(a, -1, -2)) / 2).astype(KINDS[c.kind])
    lower, pivots = lib.linalg.ldl_factor(c.given(lib, a), hermitian=mirrored)
    x = wide(lib.linalg.ldl_solve(lower, pivots, c.given(lib, b), hermitian=mirrored))
    return far(a @ x, b, most(a) * most(x) * max(1, c.n) + most(b)) / c.unit(c.n)


def reflected(c, lib):
    m, n = max(c.m, c.n), min(c.m, c.n)
    a = c.matrix(m, n)
    packed, scales = lib.geqrf(c.given(lib, a))
    q, r = wide(lib.linalg.householder_product(packed, scales)), np.triu(wide(packed))[..., :n, :]
    unit = c.unit(m, n)
    return max(far(q @ r, a, most(a)) / unit, orthonormal(q, unit))


def ranks(c, lib):
    a = c.matrix(c.m, c.n)
    found = wide(lib.linalg.matrix_rank(c.given(lib, a)))
    low = min(c.m, c.n)
    sure = {"plain": low, "zeros": 0, "huge": low, "tiny": low, "ones": min(1, low)}.get(c.build)
    return 0.0 if sure is None else far(found, found * 0 + sure, 1) * 2


def norms(c, lib):
    a = c.matrix(c.m, c.n)
    order = c.d.pick(["fro", "nuc", np.inf, -np.inf, 1, -1, 2, -2])
    found = wide(lib.linalg.matrix_norm(c.given(lib, a), order))
    with np.errstate(all="ignore"):
        wanted = np.linalg.norm(a.astype(complex), order, (-2, -1))
    if not np.isfinite(wanted).all():
        return 0.0
    return far(found, wanted, max(most(a), most(wanted))) / c.unit(c.m, c.n)


QUESTIONS = {f.__name__: f for f in (solve, inverse, qr, singular_values, hermitian, general, cholesky, triangles, factored, determinant,
                                     least_squares, pseudo_inverse, triangular, indefinite, reflected, ranks, norms)}  # fmt: skip


def make(seed, index):
    return Identity(seed, index)
