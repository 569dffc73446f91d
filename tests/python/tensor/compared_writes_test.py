"""tests/python/tensor/compared_writes_test.py: what random calls beside PyTorch found where something is written: in place, at places, into out=."""

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
    with pytest.raises(RuntimeError, match=r"result type float\d+ can't be cast to the desired output type int64"):
        INTO_WHOLE_NUMBERS[name](x)
    assert x.tolist() == [1, 2]


@pytest.mark.parametrize("recorded", [False, True])
def test_a_composite_writes_no_complex_numbers_into_reals(recorded):
    x = aj.tensor([1.0, 2.0], requires_grad=recorded) * 1
    with pytest.raises(RuntimeError, match="result type complex64 can't be cast to the desired output type float32"):
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


def test_a_place_that_is_filled_twice_counts_once():
    for places in ([0, 0], [0, 0, 2]):
        value, x = aj.tensor(2.0, requires_grad=True), aj.ones(3, 2, requires_grad=True)
        made = x.index_fill(0, aj.tensor(places), value)
        made.sum().backward()
        assert value.grad.item() == 2 * len(set(places)) and x.grad.sum().item() == 6 - value.grad.item()
        assert made[0].tolist() == [2, 2]


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
            with pytest.raises(RuntimeError, match="value cannot be converted to type"):
                write()
        assert x.tolist() == [1, 2, 3] and x.fill_(complex(7, 0)).tolist() == [7, 7, 7]


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


@pytest.mark.parametrize("shape, size", [((2, 0, 0), 0), ((2, 3, 0), 3)])
def test_an_index_out_of_range_is_one_where_nothing_is_written(shape, size):
    dim = 2 if size == 0 else 1
    source = aj.zeros(2, 0, 2) if size == 0 else aj.zeros(2, 2, 0)
    for call in (aj.Tensor.index_add, lambda *a: aj.index_reduce(*a, "mean")):
        with pytest.raises(IndexError, match=f"index 5 is out of range for dimension . with size {size}"):
            call(aj.zeros(shape), dim, aj.tensor([5, 0]), source)
