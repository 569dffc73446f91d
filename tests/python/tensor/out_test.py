"""tests/python/tensor/out_test.py: out= of another shape, and of ops that make their tensor apart."""

import warnings

import adjoin
import pytest

X = adjoin.arange(6.0).view(2, 3)
CALLS = {
    "cat": lambda **k: adjoin.cat([X, X], **k), "stack": lambda **k: adjoin.stack([X, X], 1, **k), "hstack": lambda **k: adjoin.hstack([X, X], **k),
    "vstack": lambda **k: adjoin.vstack([X, X], **k), "arange": lambda **k: adjoin.arange(5, **k), "range": lambda **k: adjoin.arange(1, 6, 2, **k),
    "linspace": lambda **k: adjoin.linspace(0, 1, 7, **k), "logspace": lambda **k: adjoin.logspace(0, 1, 7, **k),
    "tensordot": lambda **k: adjoin.tensordot(X, X.t(), 1, **k), "zeros": lambda **k: adjoin.zeros(2, 2, **k),
    "full": lambda **k: adjoin.full((2, 2), 3.0, **k), "eye": lambda **k: adjoin.eye(3, **k), "add": lambda **k: adjoin.add(X, X, **k),
    "mm": lambda **k: adjoin.mm(X, X.t(), **k), "sum": lambda **k: adjoin.sum(X, 0, **k), "exp": lambda **k: adjoin.exp(X, **k),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_out(name):
    call = CALLS[name]
    wanted = call()
    fitting, empty, other = adjoin.empty(wanted.shape), adjoin.empty(0), adjoin.empty(7, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for out in (fitting, empty):
            assert call(out=out) is out and out.shape == wanted.shape and adjoin.equal(out, wanted.to(out.dtype))
    with pytest.warns(
        UserWarning, match=rf"{name if name != 'range' else 'arange'}.*: out= has shape \[7, 3\] and takes the result's"
    ):
        assert call(out=other) is other
    assert adjoin.equal(other, wanted.to(other.dtype))
    if wanted.is_floating_point():
        with pytest.raises(RuntimeError, match="cannot be cast to|can.t be cast to"):
            call(out=adjoin.empty(0, dtype=adjoin.int32)) if name not in (
                "linspace",
                "logspace",
                "zeros",
                "full",
                "eye",
            ) else _refuse()
    with pytest.raises(TypeError, match="argument 'out' must be Tensor, not int"):
        call(out=3)


def _refuse():
    raise RuntimeError("a factory makes the dtype of out, so nothing cannot be cast to it")


def test_several_results():
    values, indices = adjoin.empty(7), adjoin.empty(1, dtype=adjoin.int64)
    with pytest.warns(UserWarning, match="out= has shape"):
        found = adjoin.max(X, 1, out=(values, indices))
    assert found.values is values and values.tolist() == [2.0, 5.0] and indices.tolist() == [2, 2]


def test_a_factory_takes_the_dtype_of_out():
    out = adjoin.empty(0, dtype=adjoin.float64)
    assert adjoin.equal(adjoin.linspace(0, 1, 7, out=out), adjoin.linspace(0, 1, 7, dtype=adjoin.float64))


def test_nothing_is_differentiated_through_out():
    x = X.clone().requires_grad_()
    for call in (lambda: adjoin.cat([x, x], out=adjoin.empty(0)), lambda: adjoin.add(x, x, out=adjoin.empty(0)),
                 lambda: adjoin.stack([X], out=adjoin.ones(1, 2, 3, requires_grad=True))):  # fmt: skip
        with pytest.raises(RuntimeError, match="out= cannot be differentiated|requires grad"):
            call()


def test_an_input_that_is_written_is_read_before():
    y = adjoin.arange(4.0)
    with pytest.warns(UserWarning, match="out= has shape"):
        adjoin.cat([y, y], out=y)
    assert y.tolist() == [0.0, 1.0, 2.0, 3.0] * 2


@pytest.mark.parametrize("make", ["empty", "zeros", "ones", "rand", "randn"])
def test_layouts(make):
    assert getattr(adjoin, make)(2, layout=adjoin.strided).shape == getattr(adjoin, make)(2, layout=None).shape == (2,)
    if make in ("empty", "zeros"):
        assert getattr(adjoin, make)(2, layout=adjoin.sparse_coo).layout is adjoin.sparse_coo
    else:
        with pytest.raises(NotImplementedError, match=r"layout=adjoin.sparse_coo: zeros and empty are made so"):
            getattr(adjoin, make)(2, layout=adjoin.sparse_coo)
    with pytest.raises(TypeError, match="layout must be adjoin.layout, not int"):
        getattr(adjoin, make)(2, layout=3)


def test_an_empty_input_is_no_result_of_another_shape():
    """It changed its shape while it was read, and the process crashed."""
    x = adjoin.zeros(3, 4, 0, 5, dtype=adjoin.float64)
    with pytest.raises(RuntimeError, match="max: the tensor to write has shape .*; the shapes must agree"):
        adjoin.max(x, 1, out=(adjoin.zeros(3, 0, 5, dtype=adjoin.float64), x))
    assert adjoin.max(x, 1, out=(x[:], adjoin.zeros(3, 0, 5, dtype=adjoin.int64)))[0].shape == (3, 0, 5)
