"""tests/python/tensor/compared_calls_test.py: what random calls beside PyTorch found to be taken, and should have been refused, or told
otherwise than the numbers say."""

import gc
import math

import adjoin as aj
import pytest

INTO_WHOLE_NUMBERS = {
    "logit_": lambda x: x.logit_(),
    "true_divide_": lambda x: x.true_divide_(2),
    "ldexp_": lambda x: x.ldexp_(aj.tensor([1, 2])),
    "clamp_max_": lambda x: x.clamp_max_(0.5),
    "clamp_min_": lambda x: x.clamp_min_(aj.tensor([0.5])),
    "float_power_": lambda x: x.float_power_(2),
    "deg2rad_": lambda x: x.deg2rad_(),
    "mvlgamma_": lambda x: x.mvlgamma_(1),
    "polygamma_": lambda x: x.polygamma_(1),
    "true_divide out=": lambda x: aj.true_divide(x, 2, out=x),
    "rsub out=": lambda x: aj.rsub(aj.tensor([1.5]), 1, out=x),
}


@pytest.mark.parametrize("name", INTO_WHOLE_NUMBERS)
def test_a_composite_writes_no_fractions_into_whole_numbers(name):
    x = aj.tensor([1, 2])
    with pytest.raises(RuntimeError, match=r"the result is float\d+, which cannot be cast to out's int64"):
        INTO_WHOLE_NUMBERS[name](x)
    assert x.tolist() == [1, 2]


@pytest.mark.parametrize("recorded", [False, True])
def test_a_composite_writes_no_complex_numbers_into_reals(recorded):
    x = aj.tensor([1.0, 2.0], requires_grad=recorded) * 1
    with pytest.raises(RuntimeError, match="the result is complex64, which cannot be cast to out's float32"):
        x.true_divide_(2j)
    assert x.tolist() == [1, 2]


def test_a_composite_narrows_within_its_kind_and_widens():
    assert aj.tensor([2.0, 3.0]).float_power_(2).tolist() == [4, 9]
    assert aj.tensor([1.0, 2.0]).true_divide_(aj.tensor([2.0, 2.0], dtype=aj.float64)).tolist() == [0.5, 1]
    assert aj.tensor([1.0, math.nan]).isnan_().tolist() == [0, 1]


WRITES_AT_PLACES = {
    "list": lambda x, c: x.__setitem__([0], c),
    "mask": lambda x, c: x.__setitem__(aj.tensor([True, False]), c),
    "index_put_": lambda x, c: x.index_put_((aj.tensor([0]),), c),
    "index_put_ accumulate": lambda x, c: x.index_put_((aj.tensor([0]),), c, accumulate=True),
    "index_put": lambda x, c: x.index_put((aj.tensor([0]),), c),
    "masked_fill_": lambda x, c: x.masked_fill_(aj.tensor([True, False]), c[0]),
    "masked_fill": lambda x, c: x.masked_fill(aj.tensor([True, False]), c[0]),
    "index_fill_": lambda x, c: x.index_fill_(0, aj.tensor([0]), c[0]),
}


@pytest.mark.parametrize("name", WRITES_AT_PLACES)
def test_an_imaginary_part_is_not_lost_where_places_are_written(name):
    x = aj.tensor([5.0, 6.0])
    with pytest.raises(RuntimeError, match="complex64, which does not fit into float32"):
        WRITES_AT_PLACES[name](x, aj.tensor([1 + 2j]))
    assert x.tolist() == [5, 6]
    WRITES_AT_PLACES[name](x, aj.tensor([7], dtype=aj.int8))
    WRITES_AT_PLACES[name](aj.tensor([1j, 2]), aj.tensor([7.0]))


def test_a_third_operand_does_not_hide_that_two_have_no_common_dtype():
    signed, unsigned = aj.tensor([1, 2], dtype=aj.int32), aj.tensor([1, 2], dtype=aj.uint64)
    for call in (
        lambda: signed.clamp(unsigned, unsigned),
        lambda: signed.clamp(unsigned, 2),
        lambda: aj.addcmul(signed, unsigned, signed),
        lambda: aj.addcmul(signed, unsigned, aj.tensor([1.0, 2.0])),
    ):
        with pytest.raises((TypeError, RuntimeError), match="have no common one"):
            call()
    assert unsigned.clamp(2, 3).dtype == aj.uint64


def test_complex_powers_and_logarithms_of_two_keep_their_parts_apart():
    inf = math.inf
    assert str(aj.log2(aj.tensor([0j, complex(inf, 0)])).tolist()) == "[(-inf+0j), (inf+0j)]"
    assert str(aj.exp2(aj.tensor([complex(inf, 0), 2 + 0j])).real.tolist()) == "[inf, 4.0]"
    turned = aj.log2(aj.tensor([complex(-inf, 1)], dtype=aj.complex128)).item()
    assert turned.real == inf and abs(turned.imag - math.pi / math.log(2)) < 1e-12


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.tile((2**62, 2**62)),
        lambda x: x.repeat(2, 2**63 - 1),
        lambda x: x.repeat_interleave(2**63 - 1, 1),
    ],
)
def test_a_size_beyond_all_sizes_is_refused_of_nothing_too(call):
    with pytest.raises(RuntimeError, match=r"has more bytes than 2\^63"):
        call(aj.empty(0, 3))


def test_dimensions_and_sizes_that_are_not_there():
    with pytest.raises(IndexError, match=r"dim 1 is out of range for 1 dimensions"):
        aj.tensordot(aj.ones(2), aj.ones(2, 3), ([1], [0]))
    with pytest.raises(IndexError, match=r"dim -3 is out of range for 2 dimensions"):
        aj.tensordot(aj.ones(2), aj.ones(2, 3), ([0], [-3]))
    assert aj.tensordot(aj.ones(2), aj.ones(3, 2), ([-1], [-1])).tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="negative"):
        aj.broadcast_shapes((2, 1), (-1,))
    for call in (lambda t: t.select(0, 0), lambda t: t.unbind()):
        with pytest.raises(IndexError, match="a 0-dim tensor"):
            call(aj.tensor(1.0))


def test_numbers_beside_bools_keep_their_value():
    bools = aj.tensor([False, True])
    assert aj.searchsorted(bools, -1).item() == 0 and aj.searchsorted(bools, 2).item() == 2
    assert aj.bucketize(-1, bools, right=True).item() == 0 and aj.bucketize(1, bools, right=True).item() == 2
    assert aj.searchsorted(bools, 0.5).item() == 1 and aj.searchsorted(bools, True).item() == 1
    assert aj.isin(bools, 2).tolist() == [False, False] and aj.isin(bools, 1).tolist() == [False, True]


def test_meta_is_one_device():
    x = aj.ones(2, device="meta")
    assert x.device == aj.device("meta") and str(x.device) == "meta" and x.device.index is None
    assert {x.device: 1}[aj.device("meta")] == 1
    assert (x + aj.empty(2, device=x.device)).is_meta


def test_a_buffer_has_room_for_what_is_asked_of_it():
    four = bytearray(range(16))
    for count in (9, 2**61, 2**62, 2**63 - 1):  # the bytes of the larger ones are no number of 64 bits
        for dtype in (aj.int16, aj.float32, aj.complex128):
            with pytest.raises(ValueError, match="do not fit into 16 bytes"):
                aj.frombuffer(four, dtype=dtype, count=count)
    with pytest.raises(ValueError, match="15 bytes from offset 0 are no whole number of elements of 2 bytes"):
        aj.frombuffer(bytearray(15), dtype=aj.int16)
    with pytest.raises(ValueError, match="15 bytes from offset 1"):
        aj.frombuffer(four, dtype=aj.float64, offset=1)
    assert aj.frombuffer(bytearray(15), dtype=aj.int16, count=7).shape == (7,)
    assert aj.frombuffer(four, dtype=aj.uint8, offset=15).tolist() == [15]


def test_an_empty_slice_begins_where_it_was_cut():
    b = aj.arange(6.0)
    empty = b[3:3]
    assert empty.storage_offset() == 3 and b.reshape(2, 3)[1:, 3:].storage_offset() == 6
    for at in (b[6:], b.reshape(2, 3)[2:], b.narrow(0, 6, 0), b.reshape(2, 3)[2:, 1:]):
        assert aj.add(aj.ones(2), 1, out=at).tolist() == [2, 2] and b.tolist() == [0, 1, 2, 3, 4, 5]
    aj.add(aj.ones(2), 1, out=empty)
    assert b.tolist() == [0, 1, 2, 2, 2, 5]


def test_nothing_is_contiguous_however_it_was_made():
    x = aj.zeros(0, 2, 2)[..., ::2]
    assert x.is_contiguous() and x.unsqueeze(0).is_contiguous() and x.unsqueeze_(0).is_contiguous()
    assert (
        aj.empty_strided((0, 2, 2), (1, 7, 5)).is_contiguous()
        and not aj.empty_strided((1, 2, 2), (1, 7, 5)).is_contiguous()
    )


ONE = aj.zeros(1, dtype=aj.int64)
ROW = aj.zeros(1, 3, dtype=aj.int64)
WRITES_OF_KERNELS_OF_THEIR_OWN = {
    "cumsum_": lambda x: x.cumsum_(0),
    "cumprod_": lambda x: x.cumprod_(0),
    "scatter_": lambda x: x.scatter_(0, ROW, 2),
    "scatter_ of a tensor": lambda x: x.scatter_(0, ROW, aj.ones(1, 3)),
    "scatter_add_": lambda x: x.scatter_add_(0, ROW, aj.ones(1, 3)),
    "scatter_reduce_": lambda x: x.scatter_reduce_(0, ROW, aj.ones(1, 3), "sum"),
    "index_add_": lambda x: x.index_add_(0, ONE, aj.ones(1, 3)),
    "index_put_": lambda x: x.index_put_((ONE,), aj.tensor(7.0)),
    "a place that is assigned": lambda x: x.__setitem__(ONE, 7),
    "cumsum out=": lambda x: aj.cumsum(x, 0, out=x),
    "scatter out=": lambda x: aj.scatter(x, 0, ROW, 2, out=x),
    "scatter_add out=": lambda x: aj.scatter_add(x, 0, ROW, aj.ones(1, 3), out=x),
    "index_add out=": lambda x: aj.index_add(x, 0, ONE, aj.ones(1, 3), out=x),
}


@pytest.mark.parametrize("name", WRITES_OF_KERNELS_OF_THEIR_OWN)
def test_nothing_is_written_where_elements_share_memory(name):
    base = aj.tensor([[1.0, 2.0, 3.0]])
    for shared in (base.expand(3, 3), base.expand(2, 3, 3)[1], aj.ones(5).unfold(0, 3, 1)):
        with pytest.raises(RuntimeError, match="the tensor to write has elements that share memory"):
            WRITES_OF_KERNELS_OF_THEIR_OWN[name](shared)
    assert base.tolist() == [[1, 2, 3]]
    WRITES_OF_KERNELS_OF_THEIR_OWN[name](base.expand(3, 3).clone())
    WRITES_OF_KERNELS_OF_THEIR_OWN[name](aj.ones(3, 6)[:, ::2])


def test_a_row_of_an_expanded_tensor_may_be_written():
    base = aj.tensor([[1.0, 2.0, 3.0]])
    base.expand(3, 3)[0].cumsum_(0)
    base.expand(3, 3)[:1].index_add_(0, ONE, aj.ones(1, 3))
    assert base.tolist() == [[2, 4, 7]]


def test_more_than_there_is_is_refused_without_a_search_for_what_could_be_freed():
    found = []

    def look(phase, info):
        found.append(phase)

    gc.callbacks.append(look)
    gc.disable()  # what comes by itself is not what is meant
    try:
        for call in (lambda: aj.empty(2**50), lambda: aj.ones(1).expand(2**45).clone(), lambda: aj.arange(2**45)):
            with pytest.raises(aj.OutOfMemoryError, match="out of memory: asked for"):
                call()
    finally:
        gc.enable()
        gc.callbacks.remove(look)
    assert not found


@pytest.mark.parametrize(("dtype", "eps"), [("complex128", 2**-52), ("float64", 2**-52), ("complex64", 2**-23)])
def test_rms_norm_takes_the_eps_of_what_it_computes_in(dtype, eps):
    x = aj.tensor([1e-4, 0], dtype=getattr(aj, dtype))
    scale = 1e-4 / math.sqrt(1e-8 / 2 + eps)
    assert abs(aj.nn.functional.rms_norm(x, (2,))[0].item() - scale) < 1e-6 * scale


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


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**64, 2**63 - 1, 2**32, -(2**32)])
def test_a_dimension_beyond_all_dimensions_is_one_error(number):
    for x in (aj.tensor(1.0), aj.ones(2), aj.ones(2, 3)):
        for call in (x.size, x.stride):
            with pytest.raises((IndexError, OverflowError)):
                call(number)


def test_numbers_of_devices_and_threads_do_not_wrap():
    for number in (2**31, 2**32, 2**32 + 1):
        with pytest.raises(RuntimeError, match=f"device: index {number} is too large"):
            aj.device("cpu", number)
        with pytest.raises(RuntimeError, match=f"device: index {number} is too large"):
            aj.ones(1).cuda(number)
        with pytest.raises(RuntimeError, match="set_num_threads: .* wanted 1 to 1024"):
            aj.set_num_threads(number + 1)
    with pytest.raises(RuntimeError, match="device: index -1 is negative"):
        aj.device("cpu", -1)
    with pytest.raises(OverflowError):
        aj.device("cpu", 2**64)


@pytest.mark.parametrize("key", [(None, False, 0), [0], aj.tensor([0]), aj.tensor([True]), (slice(None), [0, 2])])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "uint64", "float32"])
def test_a_complex_number_assigned_at_places_of_reals_is_one_error(key, dtype):
    x = aj.ones(1, 3).to(getattr(aj, dtype))
    with pytest.raises(RuntimeError, match=r"a complex number does not fit into .*; give its real part"):
        x[key] = 2 + 0j
    assert x.tolist() == [[1, 1, 1]]
    if dtype != "bool":
        with pytest.raises(TypeError, match=r"1j is a complex number, which does not fit into .*; give its real part"):
            aj.tensor([1j, 2], dtype=x.dtype)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("write", ["mul_", "sub_"])
def test_a_view_without_a_history_is_not_written_with_what_has_one(dtype, write):
    leaf, factor = (aj.ones(n, dtype=aj.float64, requires_grad=True) for n in (4, 1))
    x = leaf * 1
    view = x.view(getattr(aj, dtype))
    with pytest.raises(NotImplementedError, match="a view without a history"):
        getattr(view, write)(factor)
    getattr(view, write)(2)  # as of detach(): nothing is recorded
    x.sum().backward()
    assert leaf.grad.tolist() == [1] * 4 and factor.grad is None
    y = leaf * 1
    y.view(2, 2).mul_(factor)
    y.sum().backward()
    assert factor.grad.tolist() == [4]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.greater_(aj.ones(2, 1)),
        lambda x: x.clamp_min_(aj.ones(2, 1)),
        lambda x: x.true_divide_(aj.ones(2, 1)),
        lambda x: x.masked_scatter_(aj.ones(2, 1) > 0, aj.ones(9)),
    ],
)
def test_what_is_written_in_place_keeps_its_shape_without_elements_too(call):
    x = aj.zeros(0)
    with pytest.raises(RuntimeError, match="the shapes must agree"):
        call(x)
    assert x.shape == (0,)
    assert aj.greater(aj.ones(2), aj.zeros(2, 1), out=aj.empty(0, dtype=aj.bool)).shape == (2, 2)


def test_fill_writes_one_value():
    for value in (aj.arange(3.0), aj.ones(2, 3), aj.ones(1)):
        with pytest.raises(RuntimeError, match="value must be a number or a 0-dim tensor"):
            aj.zeros(2, 3).fill_(value)
    assert aj.zeros(2).fill_(aj.tensor(3.0)).tolist() == [3, 3]


@pytest.mark.parametrize("dtype", [aj.bool, aj.uint8])
@pytest.mark.parametrize("accumulate", [False, True])
def test_a_mask_without_dimensions_takes_or_leaves_what_follows(dtype, accumulate):
    for taken in (True, False):
        key = (aj.tensor(taken, dtype=dtype), aj.tensor(0), aj.tensor(1))
        x = aj.zeros(2, 2, 3)
        expected = x.clone()
        expected[0, 1] = 3.0 * taken
        assert x.index_put(key, aj.tensor([3.0]), accumulate=accumulate).tolist() == expected.tolist()
        assert x.index_put_(key, aj.tensor([3.0]), accumulate=accumulate) is x and x.tolist() == expected.tolist()


def test_take_along_dim_counts_from_the_end():
    x = aj.tensor([[1, 2, 3], [4, 5, 6]])
    assert x.take_along_dim(aj.tensor([[-1, 0], [-3, -2]]), 1).tolist() == [[3, 1], [4, 5]]
    assert x.take_along_dim(aj.tensor([-1])).tolist() == [6]
    for wrong in (3, -4):
        with pytest.raises(IndexError, match="out of range"):
            x.take_along_dim(aj.tensor([[wrong]]), 1)


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


def test_a_place_that_is_filled_twice_counts_once():
    for places in ([0, 0], [0, 0, 2]):
        value, x = aj.tensor(2.0, requires_grad=True), aj.ones(3, 2, requires_grad=True)
        made = x.index_fill(0, aj.tensor(places), value)
        made.sum().backward()
        assert value.grad.item() == 2 * len(set(places)) and x.grad.sum().item() == 6 - value.grad.item()
        assert made[0].tolist() == [2, 2]


def test_ranges_have_finite_steps():
    for call in (
        lambda: aj.arange(-2.0, 1.0, math.inf),
        lambda: aj.range(1, 2, math.inf),
        lambda: aj.range(-math.inf, 0),
    ):
        with pytest.raises(RuntimeError, match="must be finite"):
            call()


def test_whole_numbers_are_not_rounded_to_tens():
    x = aj.tensor([15, 24])
    with pytest.raises(RuntimeError, match="decimals of whole numbers must not be negative: -1"):
        x.round(decimals=-1)
    assert x.round(decimals=1).tolist() == [15, 24] and x.double().round(decimals=-1).tolist() == [20, 20]


def test_as_many_outs_as_results():
    x = aj.tensor([1.0])
    for call in (lambda: aj.meshgrid(x, x, out=x), lambda: aj.hstack([x], out=(x, x))):
        with pytest.raises(TypeError, match=r"out= has \d tensors for \d results"):
            call()


def test_index_add_into_a_number_reads_one_number():
    x, one = aj.tensor(4), aj.tensor(-1)
    assert (
        x.index_add(0, aj.tensor([0]), one).item() == 3 and x.index_add(0, aj.tensor([0]), aj.tensor([5])).item() == 9
    )
    for call in (
        lambda i: x.index_add(0, i, one),
        lambda i: x.index_add_(0, i, one),
        lambda i: x.index_add(0, i, one.expand(2)),
    ):
        with pytest.raises(RuntimeError, match="a number has one place, index has 2"):
            call(aj.tensor([0, 0]))


@pytest.mark.parametrize("dtype", [aj.float32, aj.float64, aj.complex64, aj.int64, aj.float16])
def test_an_empty_argument_that_is_written_is_read_first(dtype):
    x, weight, bias = aj.empty(3, 0, dtype=dtype), aj.empty(1, 0, dtype=dtype), aj.full((1,), 5, dtype=dtype)
    made = aj.nn.functional.linear(x, weight, bias, out=weight)
    assert made is weight and made.tolist() == [[5], [5], [5]]
    left, right = aj.empty(2, 0, dtype=dtype), aj.empty(0, 4, dtype=dtype)
    assert aj.matmul(left, right, out=right).tolist() == [[0] * 4] * 2


FACTORS_OF_WHOLE_NUMBERS = {
    "addcmul value": lambda x, f: aj.addcmul(x, x, x, value=f),
    "index_add alpha": lambda x, f: x.index_add(0, aj.tensor([0]), x[:1], alpha=f),
    "addmm alpha": lambda x, f: aj.addmm(x, x.reshape(3, 1), x.reshape(1, 3), alpha=f),
    "addmm beta": lambda x, f: aj.addmm(x, x.reshape(3, 1), x.reshape(1, 3), beta=f),
    "addr beta": lambda x, f: aj.addr(x, x, x, beta=f),
}


@pytest.mark.parametrize("dtype", [aj.int64, aj.uint8])
@pytest.mark.parametrize("name", FACTORS_OF_WHOLE_NUMBERS)
def test_a_factor_that_no_whole_number_is_is_refused_by_whole_numbers(name, dtype):
    x = aj.tensor([1, 2, 3], dtype=dtype)
    for factor in (math.nan, math.inf, -math.inf, 1e30, complex(math.inf, 0)):
        with pytest.raises(RuntimeError, match=r"(value|alpha|beta) is .*, which no whole number of 64 bits is"):
            FACTORS_OF_WHOLE_NUMBERS[name](x, factor)
    assert FACTORS_OF_WHOLE_NUMBERS[name](x, 2.5).tolist() == FACTORS_OF_WHOLE_NUMBERS[name](x, 2).tolist()


@pytest.mark.parametrize("number", [complex(math.inf, 0), complex(math.nan, 0), complex(1e30, 0)])
def test_a_complex_number_that_is_no_whole_one_is_not_written_into_whole_numbers(number):
    for dtype in (aj.int64, aj.uint8):
        x = aj.tensor([1, 2, 3], dtype=dtype)
        for write in (
            lambda: x.fill_(number),
            lambda: x.__setitem__(0, number),
            lambda: x.__setitem__(slice(1, None), number),
            lambda: x.__setitem__(x > 1, number),
            lambda: x.index_fill_(0, aj.tensor([0]), number),
            lambda: aj.full((1,), number, dtype=dtype),
        ):
            with pytest.raises(RuntimeError, match="the number does not fit into"):
                write()
        assert x.tolist() == [1, 2, 3] and x.fill_(complex(7, 0)).tolist() == [7, 7, 7]


def test_nanmean_of_whole_numbers_is_refused_as_mean_is():
    x = aj.tensor([2**62, 2**62, 2**62])
    with pytest.raises(NotImplementedError, match="input is int64, a floating or complex dtype is needed"):
        x.nanmean()
    assert x.nanmean(dtype=aj.float64).item() == 2.0**62
    assert aj.tensor([1.0, math.nan, 3.0]).nanmean().item() == 2


def test_take_along_dim_tells_of_the_place_that_was_given():
    x = aj.tensor([1, 2, 3])
    for call in (lambda: x.take_along_dim(aj.tensor([-4]), 0), lambda: x.take_along_dim(aj.tensor([-4]))):
        with pytest.raises(IndexError, match="index -4 is out of range"):
            call()


def test_common_divisors_of_the_largest_byte():
    x = aj.tensor([255, 0, 6, 254], dtype=aj.uint8)
    assert aj.gcd(aj.tensor([1], dtype=aj.uint8), x).tolist() == [1, 1, 1, 1]
    assert aj.gcd(aj.tensor([10], dtype=aj.uint8), x).tolist() == [5, 10, 2, 2]
    assert aj.lcm(aj.tensor([5], dtype=aj.uint8), x).tolist() == [255, 0, 30, 5 * 254 % 256]


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


def test_copysign_refuses_complex_numbers():
    with pytest.raises(RuntimeError, match="complex numbers have no sign"):
        aj.tensor([1j, 2]).copysign(-1)


def test_the_slope_of_digamma_at_its_poles_is_infinite():
    x = aj.tensor([-1.0, 0.0, -3.0, -0.5], dtype=aj.float64, requires_grad=True)
    aj.digamma(x).sum().backward()
    assert x.grad.tolist()[:3] == [math.inf] * 3 and abs(x.grad[3].item() - 8.93480220054468) < 1e-11


def test_hardshrink_keeps_the_smallest_whole_number():
    assert aj.nn.functional.hardshrink(aj.tensor([-(2**63), 4, 0])).tolist() == [-(2**63), 4, 0]
    assert str(aj.nn.functional.hardshrink(aj.tensor([math.nan, -0.5, 0.75])).tolist()) == "[nan, 0.0, 0.75]"


def test_logsigmoid_of_the_smallest_whole_number():
    assert aj.nn.functional.logsigmoid(aj.tensor([-(2**63), 2**62])).tolist() == [-(2.0**63), 0]


def test_complex_exponents_of_negative_bases_have_gradients():
    for base in (aj.tensor([-3.0], dtype=aj.float64), aj.tensor([-3]), -3.0):
        y = aj.tensor([1 + 2j], dtype=aj.complex128, requires_grad=True)
        out = base**y
        out.real.sum().backward()
        wanted = (complex(-3) ** (1 + 2j)) * complex(math.log(3), math.pi)
        assert abs(y.grad.item() - wanted.conjugate()) < 1e-9


def test_polar_of_whole_angles_has_the_digits_of_the_length():
    z = aj.polar(aj.tensor([1.0], dtype=aj.float64), aj.tensor([1], dtype=aj.int8)).item()
    assert abs(z - complex(math.cos(1), math.sin(1))) < 1e-15


def test_ldexp_by_infinity_is_ieee_754():
    inf = math.inf
    for dtype in (aj.float32, aj.float64):
        x, n = aj.tensor([inf, 0.0, 1.0, 1.0, inf], dtype=dtype), aj.tensor([-inf, inf, inf, -inf, -1e9], dtype=dtype)
        assert str(aj.ldexp(x, n).tolist()) == "[nan, nan, inf, 0.0, inf]"
    assert aj.ldexp(aj.tensor([0.0]), aj.tensor([2**40])).item() == 0


def test_the_adjoint_of_a_stack_is_asked_for_as_mh():
    for x in (aj.ones(2, 1, 2), aj.ones(3)):
        with pytest.raises(RuntimeError, match="H: a matrix is wanted, this tensor has"):
            _ = x.H
    assert aj.ones(2, 3).H.shape == (3, 2) and aj.tensor(1j).H.item() == -1j and aj.ones(2, 1, 2).mH.shape == (2, 2, 1)


def test_a_view_that_an_op_gives_back_stays_a_view():
    x = aj.tensor([5.0, -2.0, 5.0, 0.0]).reshape(2, 2)[1:]  # nobody else holds its base
    assert x.flatten(-1, 1) is x and x._is_view()
    with pytest.raises(RuntimeError, match="detach_: a view shares its history with its base"):
        x.detach_()


@pytest.mark.parametrize("dtype", [aj.float32, aj.float64, aj.float16, aj.bfloat16])
def test_lgamma_is_zero_at_its_roots(dtype):
    assert aj.tensor([1.0, 2.0] * 9, dtype=dtype).lgamma().tolist() == [0.0] * 18


@pytest.mark.parametrize("strides", [(0, 1, 2), (1, 1, 2), (3, 1, 1), (0, 0, 1)])
def test_a_sum_over_nothing_reads_no_memory(strides):
    x = aj.tensor([5.0, 6.0, 7.0, 8.0])
    assert x.as_strided((2, 3, 0), strides, 1).sum(2).tolist() == [[0, 0, 0]] * 2
    assert x.as_strided((0, 2, 3), (strides[2], *strides[:2])).sum(0).tolist() == [[0, 0, 0]] * 2


@pytest.mark.parametrize("dtype", [aj.float32, aj.bfloat16, aj.float64])
def test_a_slice_without_elements_that_grows_over_an_operand_holds_the_result(dtype):
    x = aj.arange(16.0, dtype=dtype).reshape(4, 4)
    wanted = (x.t() + 1).tolist()
    part = x[:0]
    aj.add(x.t(), 1, out=part)
    assert part.tolist() == wanted
    x = aj.arange(16.0, dtype=dtype).reshape(4, 4)
    wanted = aj.cat([x.t(), x.t()[:0]]).tolist()
    part = x[:0]
    aj.cat([x.t(), x.t()[:0]], out=part)
    assert part.tolist() == wanted


def test_sizes_of_one_have_no_stride_that_matters():
    row = aj.tensor([1.0, 2.0]).reshape(2, 1).permute(1, 0)
    assert aj.view_as_complex(row).tolist() == [1 + 2j]
    column = aj.atleast_3d(aj.arange(6.0, dtype=aj.float64).reshape(2, 3)[:, 0])
    assert column.stride() == (6, 3, 1) and column.view(aj.float32).shape == (1, 2, 2)
    assert aj.atleast_2d(aj.arange(2.0)[::2]).stride() == (2, 2)


def test_where_a_bound_is_nan_no_bound_has_a_gradient():
    nan = math.nan
    for x, low, high in ((7.0, nan, 1.0), (0.5, nan, 1.0), (7.0, 0.0, nan), (7.0, 9.0, nan)):
        leaves = [aj.tensor(v, requires_grad=True) for v in (x, low, high)]
        aj.clamp(*leaves).backward()
        assert [v.grad.item() for v in leaves[1:]] == [0, 0]
    leaves = [aj.tensor(v, requires_grad=True) for v in (7.0, 9.0, 2.0)]
    aj.clamp(*leaves).backward()
    assert [v.grad.item() for v in leaves] == [0, 0, 1]


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


@pytest.mark.parametrize("name", ["median", "nanmedian", "mode"])
def test_no_result_is_written_before_every_out_has_its_shape(name):
    x = aj.tensor([[1.0, 0.0, -5.0], [-5.0, -3.0, -2.0]])
    values, places = getattr(aj, name)(x, 0, keepdim=True)
    indices = aj.zeros(2, 3, dtype=aj.int64)
    with pytest.warns(UserWarning, match="out= has shape"):
        getattr(aj, name)(x, 0, keepdim=True, out=(x[:1], indices))
    assert x[:1].tolist() == values.tolist() and indices.tolist() == places.tolist()


def test_results_that_are_views_go_into_out_as_they_were():
    x, y = aj.tensor([4]), aj.tensor([-2])
    z = aj.zeros(0)
    aj.broadcast_tensors(x, y, out=(y, z))
    assert y.tolist() == [4] and z.tolist() == [-2]


def test_a_power_of_zero_has_no_slope_by_a_real_exponent_that_is_complex():
    y = aj.tensor([3.0, 0.5, 0.0], dtype=aj.float64, requires_grad=True)
    aj.float_power(aj.tensor(0j), y).real.sum().backward()
    assert y.grad.tolist() == [0, 0, 0]


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
    assert apart.var().item() == math.inf and apart.std().item() == math.inf
    assert math.isnan(aj.tensor([1.0, math.inf], dtype=dtype).var().item())


def test_the_slope_of_an_angle_squares_nothing():
    for x, y in ((2**40, 2**41), (3, -4)):
        a, b = aj.tensor([x]), aj.tensor([float(y)], dtype=aj.float64, requires_grad=True)
        aj.atan2(a, b).backward()
        assert b.grad.item() == pytest.approx(-x / (x * x + y * y))
    far = aj.tensor([1e30], requires_grad=True)
    aj.atan2(far, aj.tensor([1e30])).backward()
    assert far.grad.item() == pytest.approx(5e-31)


@pytest.mark.parametrize("shape, size", [((2, 0, 0), 0), ((2, 3, 0), 3)])
def test_an_index_out_of_range_is_one_where_nothing_is_written(shape, size):
    dim = 2 if size == 0 else 1
    source = aj.zeros(2, 0, 2) if size == 0 else aj.zeros(2, 2, 0)
    for call in (aj.Tensor.index_add, lambda *a: aj.index_reduce(*a, "mean")):
        with pytest.raises(IndexError, match=f"index 5 is out of range for dimension . with size {size}"):
            call(aj.zeros(shape), dim, aj.tensor([5, 0]), source)
