"""tests/python/tensor/compared_calls_test.py: what random calls beside PyTorch found to be taken, and should have been refused, or told
otherwise than the numbers say."""

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
