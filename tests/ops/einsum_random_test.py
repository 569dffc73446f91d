"""tests/ops/einsum_random_test.py: random equations of einsum beside NumPy's, and their gradients.

`ADJOIN_RANDOM_CASES=100000 python tests/ops/einsum_random_test.py` takes as many; ADJOIN_TEST_SEED says which.
"""

import os
import random

import adjoin
import numpy as np
import pytest

LETTERS = "abcdeXY"


def numbers(rng, shape, dtype):
    made = rng.standard_normal(shape) * 2
    if dtype.startswith("complex"):
        made = made + 1j * rng.standard_normal(shape)
    return made.round().astype(dtype) if dtype == "int64" else made.astype(dtype)


def equation(rng):
    """An equation, the shapes of its operands, and whether it has an output."""
    sizes = {letter: rng.choice([1, 2, 2, 3, 3, 4, 0] if rng.random() < 0.1 else [1, 2, 3, 4]) for letter in LETTERS}
    extra = [rng.randint(1, 3) for _ in range(rng.randint(0, 2))]
    terms, shapes, dots = [], [], False
    for _ in range(rng.choice([1, 1, 2, 2, 2, 3, 4])):
        letters = [rng.choice(LETTERS[: rng.randint(2, 7)]) for _ in range(rng.randint(0, 4))]
        shape = [1 if rng.random() < 0.04 and letters.count(letter) == 1 else sizes[letter] for letter in letters]
        if rng.random() < 0.2:
            at = rng.randint(0, len(letters))
            own = [1 if rng.random() < 0.2 else n for n in extra[rng.randint(0, len(extra)) :]]
            letters.insert(at, "...")
            shape[at:at] = own
            dots = True
        terms.append("".join(letters))
        shapes.append(shape)
    left = ",".join(terms)
    if rng.random() < 0.3:
        return left, shapes
    free = sorted(set(left) - set(",."))
    out = rng.sample(free, rng.randint(0, len(free)))
    if dots:
        out.insert(rng.randint(0, len(out)), "...")
    return left + "->" + "".join(out), shapes


def one(seed):
    rng, numpy = random.Random(seed), np.random.default_rng(seed)
    text, shapes = equation(rng)
    dtype = rng.choice(["float64"] * 5 + ["float32", "complex128", "int64"])
    arrays = [numbers(numpy, shape, dtype) for shape in shapes]
    if rng.random() < 0.3:
        arrays = [a.copy(order="F") for a in arrays]
    tensors = [adjoin.from_numpy(a.copy()).reshape(a.shape) for a in arrays]
    if rng.random() < 0.2:
        tensors = [t.transpose(0, -1).contiguous().transpose(0, -1) if t.dim() > 1 else t for t in tensors]
    about = f"seed {seed}: {text} {shapes} {dtype}"
    want = np.einsum(text, *arrays)
    recorded = dtype in ("float64", "complex128")
    for t in tensors:
        t.requires_grad_(recorded)
    made = adjoin.einsum(text, *tensors)
    assert tuple(made.shape) == want.shape and str(made.dtype).endswith(dtype), about
    near = 1e-3 if dtype == "float32" else 1e-9
    np.testing.assert_allclose(made.detach().numpy(), want, rtol=near, atol=near, err_msg=about)
    if not recorded:
        return
    # It is linear in each operand: <w, f(x)> = <gradient, x>.
    weights = adjoin.from_numpy(numbers(numpy, want.shape, dtype))
    grads = adjoin.autograd.grad(made, tensors, weights.reshape(made.shape))
    total = complex((weights.reshape(made.shape).conj() * made.detach()).sum().item())
    for t, g in zip(tensors, grads, strict=True):
        assert g.shape == t.shape, about
        found = complex((g.conj() * t.detach()).sum().item())
        assert abs(found - total) <= 1e-9 * (1 + abs(total)) * (1 + t.numel()), (about, found, total)


def test_dtypes_are_those_of_products_and_sums():
    """Without a sum operands of two dtypes are multiplied as numbers are; a sum over one element is none."""
    x, y = adjoin.tensor([1, 2]), adjoin.tensor([0.5, 4.0], dtype=adjoin.float64)
    made = adjoin.einsum("a,b->ab", x, y)
    assert made.dtype is adjoin.float64 and made.tolist() == [[0.5, 4.0], [1.0, 8.0]]
    assert adjoin.einsum("a,->a", x, y[1]).tolist() == [4.0, 8.0]
    assert adjoin.einsum("ab,a->ab", x.reshape(2, 1), 1j * y).dtype is adjoin.complex128
    few = adjoin.tensor([3, 200], dtype=adjoin.uint8)
    for equation, shapes in (
        ("a,->a", [(2,), ()]),
        ("ab,->b", [(1, 2), ()]),
        ("a,a->", [(2,), (2,)]),
        ("ab,a,a", [(2, 1), (2,), (1,)]),
    ):
        made = adjoin.einsum(equation, *(few[: max(1, int(np.prod(s)))].reshape(s) for s in shapes))
        assert made.dtype is adjoin.uint8, equation
    assert adjoin.einsum("ab->b", few.reshape(1, 2)).dtype is adjoin.int64
    with pytest.raises(RuntimeError, match="dtypes differ"):
        adjoin.einsum("a,a->", x, y)


def run(cases):
    seed = int(os.environ.get("ADJOIN_TEST_SEED", random.randrange(10**6)))
    print("seed", seed)
    for case in range(cases):
        one(seed * 1000003 + case)


def test_random_equations():
    run(int(os.environ.get("ADJOIN_RANDOM_CASES", 400)))


if __name__ == "__main__":
    run(int(os.environ.get("ADJOIN_RANDOM_CASES", 100000)))
