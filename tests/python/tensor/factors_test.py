"""tests/python/tensor/factors_test.py: polar factors, square roots of matrices, eigenvalues at one end."""

import adjoin
import numpy as np
import pytest
from adjoin import linalg

RNG = np.random.default_rng(11)


def near(made, wanted, tolerance=1e-9):
    np.testing.assert_allclose(np.array(made.detach().numpy()), wanted, rtol=tolerance, atol=tolerance)


def positive(n, *batch):
    a = RNG.normal(size=(*batch, n, n))
    return a @ a.swapaxes(-1, -2) + n * np.eye(n)


@pytest.mark.parametrize("kind", ["real", "complex"])
def test_polar_factors_of_a_stack_multiply_to_it(kind):
    a = RNG.normal(size=(2, 5, 3)) + (1j * RNG.normal(size=(2, 5, 3)) if kind == "complex" else 0)
    u, h = linalg.polar(adjoin.tensor(a))
    near(u @ h, a)
    near(u.mH @ u, np.broadcast_to(np.eye(3), (2, 3, 3)))
    near(h, np.array(h.mH.resolve_conj().numpy()))
    assert bool((linalg.eigvalsh(h) > 0).all())
    with pytest.raises(
        RuntimeError, match=r"polar: A must have at least as many rows as columns, its shape is \[3, 5\]"
    ):
        linalg.polar(adjoin.tensor(a[0].T))


def test_a_square_root_times_itself_is_the_matrix():
    a = positive(4, 3)
    x = linalg.matrix_sqrth(adjoin.tensor(a))
    near(x @ x, a)
    near(x, np.array(x.mT.numpy()))
    near(linalg.matrix_sqrth(-adjoin.eye(3)), np.zeros((3, 3)))


def test_the_derivative_of_a_square_root_holds_for_equal_eigenvalues():
    a = adjoin.eye(3, dtype=adjoin.float64).requires_grad_()
    weights = adjoin.tensor(RNG.normal(size=(3, 3)))
    (linalg.matrix_sqrth(a) * weights).sum().backward()
    near(a.grad, np.array((weights + weights.mT).numpy()) / 4)
    b = adjoin.tensor(positive(3)).requires_grad_()
    assert adjoin.autograd.gradcheck(lambda t: linalg.matrix_sqrth((t + t.mT) / 2), (b,))


@pytest.mark.parametrize("largest", [True, False])
def test_eigenvalues_at_one_end(largest):
    a, b = positive(9), positive(9)
    values, vectors = adjoin.lobpcg(adjoin.tensor(a), 2, adjoin.tensor(b), largest=largest)
    every = np.sort(np.linalg.eigvals(np.linalg.solve(b, a)).real)
    near(values, every[::-1][:2] if largest else every[:2])
    near(adjoin.tensor(a) @ vectors, b @ np.array(vectors.numpy()) * np.array(values.numpy()))
    assert vectors.shape == (9, 2)


def test_lobpcg_reads_both_triangles():
    """As an iteration does that multiplies by the matrix: its gradient is that of what it reads."""
    a = adjoin.tensor(positive(6), requires_grad=True)
    for largest in (True, False):
        assert adjoin.autograd.gradcheck(lambda a: adjoin.lobpcg(a, 2, largest=largest)[0], (a,))  # noqa: B023
    skew = np.triu(np.ones((6, 6)), 1)
    found = adjoin.lobpcg(a.detach() + adjoin.tensor(skew - skew.T), 2)[0]
    assert found.allclose(adjoin.lobpcg(a.detach(), 2)[0])


def test_what_lobpcg_cannot_do_is_refused():
    with pytest.raises(ValueError, match="lobpcg: k = 4 and n = 4 of size 9"):
        adjoin.lobpcg(adjoin.tensor(positive(9)), 4)
    with pytest.raises(TypeError, match="a product alone is not served"):
        adjoin.lobpcg(lambda x: x, 1)


def test_whether_backward_may_use_threads_is_remembered_per_thread():
    from adjoin.autograd.grad_mode import is_multithreading_enabled

    with adjoin.autograd.set_multithreading_enabled(False):
        assert not is_multithreading_enabled()
    assert is_multithreading_enabled()
    adjoin.autograd.set_multithreading_enabled(False)
    assert not is_multithreading_enabled()
    adjoin.autograd.set_multithreading_enabled(True)
