"""tests/python/tensor/compared_calls_test.py: what random calls beside PyTorch found to be taken, and should have been refused, or told
otherwise than the sizes and places say."""

import gc
import math

import adjoin as aj
import pytest


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
    with pytest.raises(IndexError, match=r"Dimension out of range .expected to be in range of .-1, 0., but got 1"):
        aj.tensordot(aj.ones(2), aj.ones(2, 3), ([1], [0]))
    with pytest.raises(IndexError, match=r"Dimension out of range .expected to be in range of .-2, 1., but got -3"):
        aj.tensordot(aj.ones(2), aj.ones(2, 3), ([0], [-3]))
    assert aj.tensordot(aj.ones(2), aj.ones(3, 2), ([-1], [-1])).tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="negative"):
        aj.broadcast_shapes((2, 1), (-1,))
    for call in (lambda t: t.select(0, 0), lambda t: t.unbind()):
        with pytest.raises(IndexError, match="a 0-dim tensor"):
            call(aj.tensor(1.0))


def test_meta_is_one_device():
    x = aj.ones(2, device="meta")
    assert x.device == aj.device("meta") and str(x.device) == "meta" and x.device.index is None
    assert {x.device: 1}[aj.device("meta")] == 1
    assert (x + aj.empty(2, device=x.device)).is_meta


def test_a_buffer_has_room_for_what_is_asked_of_it():
    four = bytearray(range(16))
    for count in (9, 2**61, 2**62, 2**63 - 1):  # the bytes of the larger ones are no number of 64 bits
        for dtype in (aj.int16, aj.float32, aj.complex128):
            with pytest.raises(ValueError, match="actual buffer length .16 bytes"):
                aj.frombuffer(four, dtype=dtype, count=count)
    with pytest.raises(
        ValueError, match="buffer length .15 bytes. after offset .0 bytes. must be a multiple of element size .2 bytes"
    ):
        aj.frombuffer(bytearray(15), dtype=aj.int16)
    with pytest.raises(ValueError, match="buffer length .15 bytes. after offset .1 bytes."):
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


def test_take_along_dim_counts_from_the_end():
    x = aj.tensor([[1, 2, 3], [4, 5, 6]])
    assert x.take_along_dim(aj.tensor([[-1, 0], [-3, -2]]), 1).tolist() == [[3, 1], [4, 5]]
    assert x.take_along_dim(aj.tensor([-1])).tolist() == [6]
    for wrong in (3, -4):
        with pytest.raises(IndexError, match="out of range"):
            x.take_along_dim(aj.tensor([[wrong]]), 1)


def test_ranges_have_finite_steps():
    for call in (
        lambda: aj.arange(-2.0, 1.0, math.inf),
        lambda: aj.range(1, 2, math.inf),
        lambda: aj.range(-math.inf, 0),
    ):
        with pytest.raises(RuntimeError, match="must be finite"):
            call()


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
    if name == "addr beta":  # it alone refuses any fraction, as PyTorch's does
        with pytest.raises(RuntimeError, match="argument beta must not be a floating point number: it is 2.5"):
            FACTORS_OF_WHOLE_NUMBERS[name](x, 2.5)
    else:
        assert FACTORS_OF_WHOLE_NUMBERS[name](x, 2.5).tolist() == FACTORS_OF_WHOLE_NUMBERS[name](x, 2).tolist()


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


def test_copysign_refuses_complex_numbers():
    with pytest.raises(RuntimeError, match="complex numbers have no sign"):
        aj.tensor([1j, 2]).copysign(-1)


def test_the_adjoint_of_a_stack_is_asked_for_as_mh():
    for x in (aj.ones(2, 1, 2), aj.ones(3)):
        with pytest.raises(RuntimeError, match="H: only supported on matrices, this tensor has"):
            _ = x.H
    number = aj.tensor(3j)
    assert number.mT is number and aj.ones(2, 1, 3).mT.shape == (2, 3, 1)
    assert aj.ones(2, 3).H.shape == (3, 2) and aj.tensor(1j).H.item() == -1j and aj.ones(2, 1, 2).mH.shape == (2, 2, 1)


def test_a_view_that_an_op_gives_back_stays_a_view():
    x = aj.tensor([5.0, -2.0, 5.0, 0.0]).reshape(2, 2)[1:]  # nobody else holds its base
    assert x.flatten(-1, 1) is x and x._is_view()
    with pytest.raises(RuntimeError, match="detach_: a view shares its history with its base"):
        x.detach_()


@pytest.mark.parametrize("strides", [(0, 1, 2), (1, 1, 2), (3, 1, 1), (0, 0, 1)])
def test_a_sum_over_nothing_reads_no_memory(strides):
    x = aj.tensor([5.0, 6.0, 7.0, 8.0])
    assert x.as_strided((2, 3, 0), strides, 1).sum(2).tolist() == [[0, 0, 0]] * 2
    assert x.as_strided((0, 2, 3), (strides[2], *strides[:2])).sum(0).tolist() == [[0, 0, 0]] * 2


def test_sizes_of_one_have_no_stride_that_matters():
    row = aj.tensor([1.0, 2.0]).reshape(2, 1).permute(1, 0)
    assert aj.view_as_complex(row).tolist() == [1 + 2j]
    column = aj.atleast_3d(aj.arange(6.0, dtype=aj.float64).reshape(2, 3)[:, 0])
    assert column.stride() == (6, 3, 1) and column.view(aj.float32).shape == (1, 2, 2)
    assert aj.atleast_2d(aj.arange(2.0)[::2]).stride() == (2, 2)
