#!/usr/bin/env python3
"""bench/accuracy_solvers.py: how far factorisations and transforms are from the true ones, in units of eps times the norm.

bench/accuracy_solvers.py --module torch --json torch.json     another library of the same names
bench/accuracy_solvers.py --beside torch.json                  a table of both; the exit status is 1 where ours is much worse

Products are formed in long double of what the library gave. A figure is the largest over the matrices of a stack, over 20 matrices
of a single size, or over lines.
"""

import argparse
import importlib
import json
import sys

import numpy as np

WIDE = np.longdouble
WORSE = 2.0  # a ratio of errors above it, where the error is more than an eighth of a unit for each row, is told


def product(*matrices):
    """Of stacks of small matrices, or of double precision where they are large."""
    kind = WIDE if matrices[0].shape[-1] <= 64 else np.float64
    out = matrices[0].astype(kind)
    for m in matrices[1:]:
        out = np.einsum("...ij,...jk->...ik", out, m.astype(kind)) if kind is WIDE else out @ m.astype(kind)
    return out


def largest(difference, size):
    return float((np.sqrt((difference**2).sum((-2, -1))) / size).max())


def norm(x):
    return np.sqrt((x.astype(WIDE) ** 2).sum((-2, -1)))


def turned(x):
    return x.swapaxes(-1, -2)


def orthogonality(q):
    return largest(product(turned(q), q) - np.eye(q.shape[-1]), 1)


def of_factors(T, a, eps):
    """Name: error in units."""
    L, n = T.linalg, a.shape[-1]
    one = np.eye(n, dtype=a.dtype)
    definite = (a @ turned(a) + n * one).astype(a.dtype)
    symmetric = a + turned(a)
    b = a[..., :1].copy()[..., ::-1, :].copy()
    t = T.tensor(a)

    def numbers(*tensors):
        return [np.asarray(x) for x in tensors]

    (low,) = numbers(L.cholesky(T.tensor(definite)))
    p, lower, upper = numbers(*L.lu(t))
    (x,) = numbers(L.solve(t, T.tensor(b)))
    (inverse,) = numbers(L.inv(t))
    q, r = numbers(*L.qr(t))
    w, v = numbers(*L.eigh(T.tensor(symmetric)))
    u, s, vh = numbers(*L.svd(t, full_matrices=False))
    made = {
        "cholesky": largest(product(low, turned(low)) - definite, norm(definite)),
        "lu": largest(product(p, lower, upper) - a, norm(a)),
        "solve": largest(product(a, x) - b, norm(a) * norm(x)),
        "inv": largest(product(a, inverse) - one, norm(a) * norm(inverse)),
        "qr": largest(product(q, r) - a, norm(a)),
        "qr, orthogonal": orthogonality(q),
        "eigh": largest(product(v * w[..., None, :].astype(WIDE), turned(v)) - symmetric, norm(symmetric)),
        "eigh, orthogonal": orthogonality(v),
        "svd": largest(product(u * s[..., None, :].astype(WIDE), vh) - a, norm(a)),
        "svd, orthogonal": max(orthogonality(u), orthogonality(turned(vh))),
    }
    return {k: e / eps for k, e in made.items()}


def of_lines(T, n, kind, eps):
    """Of ten lines, complex and real ones: the error beside the norm of the spectrum."""
    rng = np.random.default_rng(n)
    x = (rng.standard_normal((10, n)) + 1j * rng.standard_normal((10, n))).astype(kind)
    exact, exact_half = np.fft.fft(x.astype(np.clongdouble)), np.fft.rfft(x.real.astype(WIDE))
    got, half = np.asarray(T.fft.fft(T.tensor(x))), np.asarray(T.fft.rfft(T.tensor(x.real.copy())))

    def error(a, b):
        return float((np.sqrt((np.abs(a - b) ** 2).sum(-1)) / np.sqrt((np.abs(b) ** 2).sum(-1))).max()) / eps

    return {"fft": error(got, exact), "rfft": error(half, exact_half)}


def measured(T):
    table = {}
    for kind in (np.float32, np.float64):
        eps, rng = float(np.finfo(kind).eps), np.random.default_rng(0)
        for n, count in ((4, 1000), (8, 1000), (16, 500), (32, 200), (64, 5), (256, 2)):
            a = rng.standard_normal((count, n, n)).astype(kind)
            parts = [a] if n <= 32 else [m[None] for m in a]
            errors = [of_factors(T, p if n <= 32 else p[0], eps) for p in parts]
            for name in errors[0]:
                table[f"{name} | {n} | {np.dtype(kind).name}"] = max(e[name] for e in errors)
        wide = {np.float32: np.complex64, np.float64: np.complex128}[kind]
        for n in (64, 224, 1000, 1009, 1024, 4096, 10_007, 65_536):
            for name, e in of_lines(T, n, wide, eps).items():
                table[f"{name} | {n} | {np.dtype(kind).name}"] = e
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", default="adjoin")
    parser.add_argument("--json", help="where the figures go, instead of a table")
    parser.add_argument("--beside", help="figures of another library")
    args = parser.parse_args()
    table = measured(importlib.import_module(args.module))
    if args.json:
        with open(args.json, "w") as file:
            json.dump(table, file, indent=1)
        return 0
    other = {}
    if args.beside:
        with open(args.beside) as file:
            other = json.load(file)
    print("| what | n | dtype | units | beside | ratio |\n| --- | --- | --- | --- | --- | --- |")
    worse = []
    for row, e in table.items():
        by = other.get(row)
        print(f"| {row} | {e:.2f} | " + (f"{by:.2f} | {e / max(by, 1e-9):.2f} |" if by is not None else " | |"))
        if by is not None and e > WORSE * by and e > 0.125 * int(row.split(" | ")[1]):
            worse.append(row)
    print(f"more than {WORSE} times the other's: {', '.join(worse) or 'none'}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
