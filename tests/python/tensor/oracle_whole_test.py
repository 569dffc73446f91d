"""tests/python/tensor/oracle_whole_test.py: faults that a run of PyTorch's whole op database showed: views, derivatives, batches, errors."""

import adjoin
import adjoin.nn.functional as F
import pytest
from adjoin import func
from adjoin.autograd import forward_ad


def test_new_dimensions_of_one_have_the_step_of_what_is_behind():
    x = adjoin.arange(5.0)
    assert x.expand(1, 5).stride() == (5, 1) and x.view(5, 1).expand(1, 5, 3).stride() == (5, 1, 0)
    assert x[:1].expand(1, 1, 5).stride() == (0, 0, 0) and x.expand(2, 5).stride() == (0, 1)
    assert adjoin.tensor(1.0).expand(1, 1).stride() == (0, 0)
    assert adjoin.broadcast_to(x, (1, 1, 5)).stride() == (5, 5, 1)


def test_what_is_cut_off_does_not_go_round():
    x = adjoin.arange(16).reshape(1, 1, 4, 4)
    made = F.pad(x, (-1, 1, -2, 1), "circular")
    assert made[0, 0].tolist() == [[9, 10, 11, 9], [13, 14, 15, 13], [9, 10, 11, 9]]
    with pytest.raises(RuntimeError, match="cuts more"):
        F.pad(x, (-3, -2), "circular")


def test_powers_between_whole_numbers():
    assert adjoin.logspace(4.3, 0, 4, 2.0, dtype=adjoin.int32).tolist() == [16, 6, 2, 1]
    assert adjoin.logspace(0.5, 1, 2, dtype=adjoin.float64).tolist() == pytest.approx([10**0.5, 10])


def test_weights_are_not_rounded_to_the_elements_dtype():
    x, f = adjoin.tensor([-8.4766, -1.7656], dtype=adjoin.float16), adjoin.tensor([7, 4])
    a = adjoin.tensor([0.2598, 0.3666])
    want = adjoin.cov(x.double(), fweights=f, aweights=a.double())
    assert adjoin.cov(x, fweights=f, aweights=a).item() == pytest.approx(want.item(), rel=1e-5)


@pytest.mark.parametrize("p", [2, 3.0])
def test_norms_of_nothing_have_derivatives(p):
    for dtype in (adjoin.float64, adjoin.complex128):
        x = adjoin.zeros(3, dtype=dtype, requires_grad=True)
        g = adjoin.ones((), dtype=adjoin.float64, requires_grad=True)
        (first,) = adjoin.autograd.grad(adjoin.linalg.vector_norm(x, p), x, g, create_graph=True)
        assert adjoin.equal(first, adjoin.zeros_like(x))
        for second in adjoin.autograd.grad(first.abs().sum(), (x, g), allow_unused=True):
            assert second is None or not second.abs().sum()
        with forward_ad.dual_level():
            out = adjoin.linalg.vector_norm(forward_ad.make_dual(x.detach(), adjoin.ones_like(x)), p)
            assert forward_ad.unpack_dual(out).tangent == 0


def test_tangents_have_the_dtype_of_the_result():
    z = adjoin.randn(4, dtype=adjoin.complex128)
    for f in (adjoin.softmax, adjoin.log_softmax):
        out, moved = func.jvp(lambda t, f=f: f(t, 0, dtype=adjoin.float64), (z,), (adjoin.ones_like(z),))
        want = func.jvp(lambda t, f=f: f(t, 0), (z.real,), (adjoin.ones(4, dtype=adjoin.float64),))[1]
        assert moved.dtype is out.dtype is adjoin.float64 and adjoin.allclose(moved, want)


def test_running_numbers_are_no_results():
    x, mean, var = adjoin.randn(2, 3, 4), adjoin.zeros(3), adjoin.ones(3)
    with forward_ad.dual_level():
        given = [forward_ad.make_dual(t, adjoin.ones_like(t)) for t in (x, mean, var)]
        out = F.instance_norm(*given, use_input_stats=True, momentum=0.5)
        assert forward_ad.unpack_dual(out).tangent is not None
        F.instance_norm(given[0], mean, var, use_input_stats=True, momentum=0.0)
        F.instance_norm(x, *given[1:], use_input_stats=True, momentum=0.0)
    assert adjoin.allclose(mean, x.mean((0, 2)) / 2, atol=1e-6)


def test_samples_without_dimensions():
    x = adjoin.arange(3.0)
    assert adjoin.equal(adjoin.vmap(lambda t: t.transpose(0, -1))(x), x)
    assert adjoin.equal(adjoin.vmap(lambda t: t.unfold(0, 1, 1))(x), x[:, None])
    at = adjoin.zeros(3, 1, dtype=adjoin.int64)
    assert adjoin.equal(adjoin.vmap(lambda t, i: t.gather(0, i))(x, at), x[:, None])
    assert adjoin.equal(adjoin.vmap(lambda t, i: t.gather(0, i))(x, at[:, 0]), x)


def test_channels_of_complex_numbers_are_dropped():
    adjoin.manual_seed(3)
    made = adjoin.feature_alpha_dropout(adjoin.ones(1, 64, 3, dtype=adjoin.complex64) * 1j, 0.5, True)
    assert adjoin.equal(made[0, :, :1].expand(64, 3), made[0]) and 0 < int((made[0, :, 0].imag == 0).sum()) < 64


def test_parts_of_complex_numbers():
    with pytest.raises(NotImplementedError, match="Half, Float or Double"):
        adjoin.complex(adjoin.ones(2), adjoin.ones(2, dtype=adjoin.int32))
