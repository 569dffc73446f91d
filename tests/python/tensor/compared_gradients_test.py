"""tests/python/tensor/compared_gradients_test.py: gradients that random calls beside PyTorch found to be wrong."""

import math

import adjoin as aj
import pytest


def test_a_place_that_a_number_is_filled_at_twice_counts_once_in_the_gradient():
    value = aj.tensor(2.0, requires_grad=True)
    aj.tensor(1.0).index_fill(0, aj.tensor([0, 0, -1]), value).backward()
    assert value.grad.item() == 1


def test_gradients_of_deviations_of_too_few_numbers_are_no_numbers():
    for op, wanted in (("var", [-math.inf, math.inf]), ("std", [math.nan, math.nan])):
        for correction in (2, 3):
            x = aj.tensor([0.5, 4.0], requires_grad=True)
            getattr(x, op)(correction=correction).backward()
            assert str(x.grad.tolist()) == str(wanted)


def test_the_slope_of_digamma_at_its_poles_is_infinite():
    x = aj.tensor([-1.0, 0.0, -3.0, -0.5], dtype=aj.float64, requires_grad=True)
    aj.digamma(x).sum().backward()
    assert x.grad.tolist()[:3] == [math.inf] * 3 and abs(x.grad[3].item() - 8.93480220054468) < 1e-11


def test_complex_exponents_of_negative_bases_have_gradients():
    for base in (aj.tensor([-3.0], dtype=aj.float64), aj.tensor([-3]), -3.0):
        y = aj.tensor([1 + 2j], dtype=aj.complex128, requires_grad=True)
        out = base**y
        out.real.sum().backward()
        wanted = (complex(-3) ** (1 + 2j)) * complex(math.log(3), math.pi)
        assert abs(y.grad.item() - wanted.conjugate()) < 1e-9


def test_where_a_bound_is_nan_no_bound_has_a_gradient():
    nan = math.nan
    for x, low, high in ((7.0, nan, 1.0), (0.5, nan, 1.0), (7.0, 0.0, nan), (7.0, 9.0, nan)):
        leaves = [aj.tensor(v, requires_grad=True) for v in (x, low, high)]
        aj.clamp(*leaves).backward()
        assert [v.grad.item() for v in leaves[1:]] == [0, 0]
    leaves = [aj.tensor(v, requires_grad=True) for v in (7.0, 9.0, 2.0)]
    aj.clamp(*leaves).backward()
    assert [v.grad.item() for v in leaves] == [0, 0, 1]


def test_a_power_of_zero_has_no_slope_by_a_real_exponent_that_is_complex():
    y = aj.tensor([3.0, 0.5, 0.0], dtype=aj.float64, requires_grad=True)
    aj.float_power(aj.tensor(0j), y).real.sum().backward()
    assert y.grad.tolist() == [0, 0, 0]


def test_the_slope_of_an_angle_squares_nothing():
    for x, y in ((2**40, 2**41), (3, -4)):
        a, b = aj.tensor([x]), aj.tensor([float(y)], dtype=aj.float64, requires_grad=True)
        aj.atan2(a, b).backward()
        assert b.grad.item() == pytest.approx(-x / (x * x + y * y))
    far = aj.tensor([1e30], requires_grad=True)
    aj.atan2(far, aj.tensor([1e30])).backward()
    assert far.grad.item() == pytest.approx(5e-31)


def test_the_slope_of_xlogy_by_its_second_argument_has_a_slope_at_0():
    x = aj.tensor([0.0, 2.0, 0.0], dtype=aj.float64, requires_grad=True)
    y = aj.tensor([4.0, 4.0, 0.0], dtype=aj.float64, requires_grad=True)
    (slope,) = aj.autograd.grad(aj.xlogy(x, y).sum(), y, create_graph=True)
    assert slope.tolist() == [0, 0.5, 0]
    assert aj.autograd.grad(slope[:2].sum(), x)[0].tolist()[:2] == [0.25, 0.25]


PRODUCTS_ALONE = {
    "addmm": lambda x, m, beta: aj.addmm(x, m, m, beta=beta),
    "addmv": lambda x, m, beta: aj.addmv(x, m, m[0], beta=beta),
    "baddbmm": lambda x, m, beta: aj.baddbmm(x, m[None], m[None], beta=beta),
    "addbmm": lambda x, m, beta: aj.addbmm(x, m[None], m[None], beta=beta),
    "addr": lambda x, m, beta: aj.addr(x, m[0], m[0], beta=beta),
}


@pytest.mark.parametrize("beta", [0, 0.0, 0j])
@pytest.mark.parametrize("name", PRODUCTS_ALONE)
def test_what_is_taken_no_times_has_the_gradient_0(name, beta):
    x = aj.tensor([math.nan, 1.0], requires_grad=True)
    PRODUCTS_ALONE[name](x, aj.ones(2, 2), beta).real.sum().backward()
    assert x.grad.tolist() == [0, 0]


def test_glu_of_complex_numbers_has_the_conjugate_slope():
    for seed in range(3):
        generator = aj.Generator()
        generator.manual_seed(seed)
        x = aj.randn(2, 4, dtype=aj.complex128, generator=generator).requires_grad_()
        assert aj.autograd.gradcheck(lambda x: aj.nn.functional.glu(x, 1), (x,))
        assert aj.autograd.gradgradcheck(lambda x: aj.nn.functional.glu(x, 1), (x,))
