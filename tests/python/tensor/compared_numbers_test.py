"""tests/python/tensor/compared_numbers_test.py: values and dtypes that random calls beside PyTorch found to be wrong."""

import math

import adjoin as aj
import pytest


def test_complex_powers_and_logarithms_of_two_keep_their_parts_apart():
    inf = math.inf
    assert str(aj.log2(aj.tensor([0j, complex(inf, 0)])).tolist()) == "[(-inf+0j), (inf+0j)]"
    assert str(aj.exp2(aj.tensor([complex(inf, 0), 2 + 0j])).real.tolist()) == "[inf, 4.0]"
    turned = aj.log2(aj.tensor([complex(-inf, 1)], dtype=aj.complex128)).item()
    assert turned.real == inf and abs(turned.imag - math.pi / math.log(2)) < 1e-12


def test_numbers_beside_bools_keep_their_value():
    bools = aj.tensor([False, True])
    assert aj.searchsorted(bools, -1).item() == 0 and aj.searchsorted(bools, 2).item() == 2
    assert aj.bucketize(-1, bools, right=True).item() == 0 and aj.bucketize(1, bools, right=True).item() == 2
    assert aj.searchsorted(bools, 0.5).item() == 1 and aj.searchsorted(bools, True).item() == 1
    assert aj.isin(bools, 2).tolist() == [False, False] and aj.isin(bools, 1).tolist() == [False, True]


@pytest.mark.parametrize(("dtype", "eps"), [("complex128", 2**-52), ("float64", 2**-52), ("complex64", 2**-23)])
def test_rms_norm_takes_the_eps_of_what_it_computes_in(dtype, eps):
    x = aj.tensor([1e-4, 0], dtype=getattr(aj, dtype))
    scale = 1e-4 / math.sqrt(1e-8 / 2 + eps)
    assert abs(aj.nn.functional.rms_norm(x, (2,))[0].item() - scale) < 1e-6 * scale


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int32", "float16", "float64"])
def test_einsum_keeps_the_dtype_of_products_that_are_summed(dtype):
    kind = getattr(aj, dtype)
    for equation, left, right, expected in (
        ("ij,ij->i", (2, 3), (2, 3), [3, 3]),
        ("ij,ij->", (2, 3), (2, 3), 6),
        ("ij,ij->i", (2, 0), (2, 0), [0, 0]),
        ("ij,ij->", (0, 0), (0, 1), 0),
        ("ij,jk->ik", (2, 1), (0, 1), [[0], [0]]),
    ):
        made = aj.einsum(equation, aj.ones(left, dtype=kind), aj.ones(right, dtype=kind))
        assert made.dtype == kind
        assert made.tolist() == aj.tensor(expected, dtype=kind).tolist()


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int32", "int64"])
def test_einsum_sums_whole_numbers_of_one_operand_alone(dtype):
    a = aj.ones(2, 3).to(getattr(aj, dtype))
    for equation, operands, expected in (
        ("ij,k->ik", (a, a[0]), [[3] * 3] * 2),
        ("ij,jk->ik", (a, a[:1]), [[3] * 3] * 2),
        ("ij,jk->ik", (a[:, :1], a.T), [[3] * 2] * 2),
        ("ij,k,kl->il", (a, a[0], a.T), [[9] * 2] * 2),
    ):
        made = aj.einsum(equation, *operands)
        assert made.dtype == aj.int64 and made.tolist() == expected
    with pytest.raises(RuntimeError, match="dtypes differ"):
        aj.einsum("ij,jk->ik", aj.ones(2, 3), aj.ones(3, 2).double())


def test_areas_of_whole_numbers_do_not_go_round_the_ends_of_their_dtype():
    y = aj.tensor([100, 200], dtype=aj.uint8)
    assert aj.trapezoid(y).item() == 150 and aj.trapezoid(y, dx=300).item() == 45000
    assert aj.cumulative_trapezoid(y).tolist() == [150] and aj.trapezoid(y, y.flip(0)).item() == -15000
    assert aj.trapezoid(aj.tensor([True, True])).item() == 1 and aj.trapezoid(aj.tensor([1, 2])).dtype == aj.float32


def test_threshold_keeps_whole_numbers_beyond_all_floats():
    x = aj.tensor([2**63 - 2, 0])
    assert aj.nn.functional.threshold(x, 0.5, 2.0).tolist() == [2**63 - 2, 2]


def test_far_out_zeta_and_polygamma_are_0():
    inf = aj.tensor([math.inf], dtype=aj.float64)
    assert aj.special.zeta(aj.tensor([2.0]), inf).item() == 0
    assert aj.polygamma(1, inf).item() == 0 and aj.polygamma(2, inf).item() == 0


def test_factors_of_whole_numbers_keep_their_fraction_beside_floats():
    three, one = aj.tensor([[3]]), aj.ones(1, 1, 1)
    assert aj.addbmm(three, one, one, beta=0.5).item() == 2.5
    assert aj.addbmm(aj.tensor([[1.0]]), three[None], three[None], alpha=0.5).item() == 5.5


def test_whole_numbers_are_not_rounded_to_tens():
    x = aj.tensor([15, 24])
    with pytest.raises(RuntimeError, match="decimals of whole numbers must not be negative: -1"):
        x.round(decimals=-1)
    assert x.round(decimals=1).tolist() == [15, 24] and x.double().round(decimals=-1).tolist() == [20, 20]


def test_common_divisors_of_the_largest_byte():
    x = aj.tensor([255, 0, 6, 254], dtype=aj.uint8)
    assert aj.gcd(aj.tensor([1], dtype=aj.uint8), x).tolist() == [1, 1, 1, 1]
    assert aj.gcd(aj.tensor([10], dtype=aj.uint8), x).tolist() == [5, 10, 2, 2]
    assert aj.lcm(aj.tensor([5], dtype=aj.uint8), x).tolist() == [255, 0, 30, 5 * 254 % 256]


def test_hardshrink_keeps_the_smallest_whole_number():
    assert aj.nn.functional.hardshrink(aj.tensor([-(2**63), 4, 0])).tolist() == [-(2**63), 4, 0]
    assert str(aj.nn.functional.hardshrink(aj.tensor([math.nan, -0.5, 0.75])).tolist()) == "[nan, 0.0, 0.75]"


def test_logsigmoid_of_the_smallest_whole_number():
    assert aj.nn.functional.logsigmoid(aj.tensor([-(2**63), 2**62])).tolist() == [-(2.0**63), 0]


def test_polar_of_whole_angles_has_the_digits_of_the_length():
    z = aj.polar(aj.tensor([1.0], dtype=aj.float64), aj.tensor([1], dtype=aj.int8)).item()
    assert abs(z - complex(math.cos(1), math.sin(1))) < 1e-15


def test_ldexp_by_infinity_is_ieee_754():
    inf = math.inf
    for dtype in (aj.float32, aj.float64):
        x, n = aj.tensor([inf, 0.0, 1.0, 1.0, inf], dtype=dtype), aj.tensor([-inf, inf, inf, -inf, -1e9], dtype=dtype)
        assert str(aj.ldexp(x, n).tolist()) == "[nan, nan, inf, 0.0, inf]"
    assert aj.ldexp(aj.tensor([0.0]), aj.tensor([2**40])).item() == 0


@pytest.mark.parametrize("dtype", [aj.float32, aj.float64, aj.float16, aj.bfloat16])
def test_lgamma_is_zero_at_its_roots(dtype):
    assert aj.tensor([1.0, 2.0] * 9, dtype=dtype).lgamma().tolist() == [0.0] * 18


def test_trapezoid_of_whole_numbers_near_each_other():
    y, x = aj.tensor([2147483647, -1, 0]), aj.tensor([2147483647, 2147483646, -(2**31)])
    assert aj.trapezoid(y, x).tolist() == 1073741824
    assert aj.cumulative_trapezoid(aj.tensor([1, 1, 1]), aj.tensor([2**40, 2**40 + 1, 2**40 + 3])).tolist() == [1, 3]
    ends = aj.tensor([-(2**63), 2**63 - 1])  # 2**128 is no float32, half of it is
    assert aj.trapezoid(aj.tensor([2**63 - 1] * 2), ends).tolist() == 2.0**127


PRODUCTS_ADDED = {
    "baddbmm": lambda x, m: aj.baddbmm(x[None], m[None], m[None])[0],
    "addbmm": lambda x, m: aj.addbmm(x, m[None], m[None]),
    "addmv": lambda x, m: aj.addmv(x[:, 0], m, m[:, 0])[:, None].expand(2, 2),
}


@pytest.mark.parametrize("name", PRODUCTS_ADDED)
def test_a_product_is_in_the_dtype_that_it_is_added_in(name):
    m = aj.tensor([[100, 100], [100, 100]], dtype=aj.int8)
    x = aj.tensor([[254, 254], [0, 0]], dtype=aj.uint8)
    assert PRODUCTS_ADDED[name](x, m).dtype is aj.int16
    assert PRODUCTS_ADDED[name](x, m).tolist() == [[20254, 20254], [20000, 20000]]
    assert PRODUCTS_ADDED[name](x.double(), m == 100).tolist() == [[256, 256], [2, 2]]
    assert PRODUCTS_ADDED[name](m, m).tolist() == [[-124, -124], [-124, -124]]
    assert PRODUCTS_ADDED[name](m, m).dtype is aj.int8
    assert PRODUCTS_ADDED[name](m == 1, m == 100).dtype is aj.bool


def test_an_outer_product_is_in_the_dtype_that_it_is_added_in():
    v = aj.tensor([100, 3], dtype=aj.int8)
    assert aj.addr(aj.zeros(2, 2), v, v).tolist() == [[10000, 300], [300, 9]]
    assert aj.addr(aj.zeros(2, 2, dtype=aj.int16), v, v).tolist() == [[10000, 300], [300, 9]]


@pytest.mark.parametrize("name", ["beta", "alpha"])
def test_an_outer_product_of_whole_numbers_loses_no_fraction(name):
    for dtype in (aj.int64, aj.uint8, aj.bool):
        v = aj.ones(2, dtype=dtype)
        with pytest.raises(
            RuntimeError, match=f"For integral input tensors, argument {name} must not be .*: it is 1.5"
        ):
            aj.addr(aj.ones(2, 2, dtype=dtype), v, v, **{name: 1.5})
    v = aj.ones(2, dtype=aj.int64)
    assert aj.addr(aj.ones(2, 2), v, v, **{name: 1.5}).tolist() == [[2.5, 2.5], [2.5, 2.5]]
    assert aj.addr(aj.ones(2, 2, dtype=aj.int64), v, v, **{name: 2.0}).tolist() == [[3, 3], [3, 3]]


def test_whole_numbers_are_not_drawn_for_complex_tensors():
    for draw in (
        lambda: aj.randint(6, (2,), dtype=aj.complex64),
        lambda: aj.randint_like(aj.ones(2, dtype=aj.complex128), 6),
        lambda: aj.empty(0, dtype=aj.complex64).random_(6),
    ):
        with pytest.raises(RuntimeError, match="these are complex.*; draw both parts, and join them by complex"):
            draw()


def test_deviations_and_means_of_halves_are_rounded_once():
    x = aj.tensor([-2187.0, -0.5, 2187.0], dtype=aj.float16)
    wanted = x.float().std().half().item()
    assert x.std().item() == wanted and aj.std_mean(x)[0].item() == wanted and wanted == 2188
    assert x.std(correction=0).item() == x.float().std(correction=0).half().item()
    assert aj.full((100,), 1000.0, dtype=aj.float16).nanmean().item() == 1000


@pytest.mark.parametrize("dtype", [aj.int16, aj.int32, aj.bool])
def test_renorm_and_std_want_fractions_of_every_whole_dtype(dtype):
    x = aj.ones(2, 2, dtype=dtype)
    for call in (lambda: aj.renorm(x, 1, 1, 1), lambda: x.std()):
        with pytest.raises(NotImplementedError, match="a floating or complex dtype is needed"):
            call()


@pytest.mark.parametrize("dtype, most", [(aj.float32, 3e38), (aj.float64, 1.7e308)])
def test_the_variance_of_numbers_near_the_end_of_the_range(dtype, most):
    same = aj.full((3, 70), most, dtype=dtype)
    assert same.var(1).tolist() == [0] * 3 and same.var(0).tolist() == [0] * 70 and same.std().item() == 0
    apart = aj.tensor([0.75, -most, -most, 1.0], dtype=dtype)
    assert apart.var().item() == math.inf
    assert math.isnan(aj.tensor([1.0, math.inf], dtype=dtype).var().item())


@pytest.mark.parametrize("scale", [1e30, 1e-30])
@pytest.mark.parametrize("dtype", [aj.float32, aj.complex64])
def test_a_deviation_is_a_float_where_its_square_is_none(scale, dtype):
    numbers = aj.tensor([3.0, -5.0, 4.0, 0.25, -1.5, 2.0, 7.0, -6.5, 1.0], dtype=aj.float64)
    wanted = numbers.std().item() * scale
    x = (numbers * scale).to(dtype)
    rows = x.expand(40, 9).clone()
    for found in (x.std(), aj.std_mean(x)[0], *rows.std(1), *rows.t().clone().std(0)):
        assert found.item() == pytest.approx(wanted, rel=1e-6, abs=0)
    assert x.std(correction=0).item() == pytest.approx(numbers.std(correction=0).item() * scale, rel=1e-6, abs=0)


def test_a_deviation_near_the_end_of_the_range():
    assert aj.tensor([0.75, -3e38, -3e38, 1.0]).std().item() == pytest.approx(math.sqrt(3) * 1e38, rel=1e-6)
    assert aj.tensor([3e38, -3e38]).std().item() == math.inf
    assert aj.full((5000,), 1e-30).std().item() == 0 and aj.zeros(5000).std().item() == 0
    apart = aj.tensor([0.0, 1e-30, -1e-30])
    for found in (apart.std(), *aj.stack([apart, apart], 1).std(0)):
        assert found.item() == pytest.approx(1e-30, rel=1e-6, abs=0)


COMPLEX_ZEROS = {
    "addmm": lambda x, m: aj.addmm(x, m, m, beta=0j),
    "addmv": lambda x, m: aj.addmv(x[0], m, m[0], beta=0j),
    "baddbmm": lambda x, m: aj.baddbmm(x[None], m[None], m[None], beta=0j),
    "addbmm": lambda x, m: aj.addbmm(x, m[None], m[None], beta=0j),
    "addr": lambda x, m: aj.addr(x, m[0], m[0], beta=0j),
}


@pytest.mark.parametrize("dtype", [aj.float32, aj.complex64])
@pytest.mark.parametrize("name", COMPLEX_ZEROS)
def test_what_is_taken_no_times_is_not_looked_at(name, dtype):
    nothing, ones = aj.full((2, 2), math.nan, dtype=dtype), aj.ones(2, 2, dtype=dtype)
    made = COMPLEX_ZEROS[name](nothing, ones)
    assert set(made.reshape(-1).tolist()) == {1.0 if name == "addr" else 2.0}
    assert name == "addmm" or made.dtype == aj.complex64


@pytest.mark.parametrize("exponent", [1, 1.0, 1 + 0j])
def test_a_complex_number_to_the_power_1_is_itself(exponent):
    numbers = [3j, complex(0.75, math.inf), complex(-0.5, 1e30)]
    assert aj.tensor(numbers).pow(exponent).tolist() == aj.tensor(numbers).tolist()


def test_vander_multiplies_complex_numbers():
    assert aj.vander(aj.tensor([3j, 1 - 1j]), 4).tolist() == [[-27j, -9, 3j, 1], [-2 - 2j, -2j, 1 - 1j, 1]]
    assert aj.linalg.vander(aj.tensor([[2j], [1j]]), N=3).tolist() == [[[1, 2j, -4]], [[1, 1j, -1]]]
    assert aj.vander(aj.tensor([2j]), 1).tolist() == [[1]] and aj.vander(aj.tensor([2j]), 0).shape == (1, 0)
    x = aj.tensor([3j, 2], requires_grad=True)
    aj.vander(x, 4).abs().sum().backward()
    assert x.grad.tolist() == [34j, 17]
