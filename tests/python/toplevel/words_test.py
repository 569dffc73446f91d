"""tests/python/toplevel/words_test.py: words of PyTorch's errors that programs and their tests look for, in calls that are refused."""

import adjoin as torch
import pytest

SAID = [  # the class that PyTorch raises, its words, a call
    (IndexError, r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)", lambda: torch.ones(2, 3).sum(2)),
    (IndexError, r"Dimension out of range \(expected to be in range of \[-1, 0\], but got -2\)", lambda: torch.tensor(1.0).sum(-2)),
    (IndexError, r"Dimension out of range .*-3, 2\], but got 3\)", lambda: torch.ones(2, 3).unsqueeze(3)),
    (IndexError, r"Dimension out of range .*-1, 0\], but got 1\)", lambda: torch.gradient(torch.ones(3), dim=1)),
    (IndexError, "index 5 is out of bounds for dimension 1 with size 3", lambda: torch.ones(2, 3)[0, 5]),
    (IndexError, "index 9 is out of bounds for dimension 2 with size 4", lambda: torch.ones(2, 3, 4)[:, None, 0, 9]),
    (IndexError, "index 2 is out of bounds for dimension 0 with size 2", lambda: torch.ones(2, 3).select(0, 2)),
    (IndexError, "for dimension with size 0", lambda: torch.ones(0, 3)[torch.tensor([0])]),
    (IndexError, "Expected reduction dim", lambda: torch.ones(2, 0).amax(1)),
    (RuntimeError, "random_ expects 'from' to be less than 'to', but got from=3 >= to=3", lambda: torch.zeros(2).random_(3, 3)),
    (RuntimeError, "from is out of bounds", lambda: torch.zeros(2, dtype=torch.uint8).random_(-1, 3)),
    (RuntimeError, "to - 1 is out of bounds", lambda: torch.zeros(2, dtype=torch.int8).random_(0, 129)),
    (RuntimeError, "uniform_ expects to return", lambda: torch.zeros(2).uniform_(3, 2)),
    (RuntimeError, "uniform_ expects to-from", lambda: torch.zeros(2).uniform_(-3e38, 3e38)),
    (RuntimeError, "only supported on matrices", lambda: torch.ones(3).adjoint()),
    (RuntimeError, r"self.stride\(0\) must be divisible by 2", lambda: torch.zeros(3, 3, dtype=torch.int16)[:, :2].view(torch.int32)),
    (RuntimeError, "mismatch in length of strides and shape", lambda: torch.ones(3).as_strided((1,), ())),
    (RuntimeError, "Negative strides are not supported at the moment, got strides: ", lambda: torch.ones(3).as_strided((1,), (-1,))),
    (RuntimeError, "movedim: Invalid source or destination dims", lambda: torch.ones(2, 3).movedim((0, 1), (0,))),
    (RuntimeError, "Input must be >= 1-d", lambda: torch.tensor(1.0).flipud()),
    (RuntimeError, "`shifts` required", lambda: torch.ones(3).roll((), ())),
    (RuntimeError, "shifts and dimensions must align", lambda: torch.ones(3).roll((1, 2), (0,))),
    (RuntimeError, "expects a non-empty TensorList", torch.meshgrid),
    (RuntimeError, 'indexing must be one of "xy" or "ij"', lambda: torch.meshgrid(torch.ones(2), indexing="")),
    (RuntimeError, "Expected 0D or 1D tensor", lambda: torch.meshgrid(torch.ones(2, 2))),
    (RuntimeError, "torch.dsplit requires a tensor with at least 3 dimensions", lambda: torch.ones(2, 2).dsplit(1)),
    (RuntimeError, "torch.hsplit requires a tensor with at least 1 dimension", lambda: torch.tensor(1.0).hsplit(1)),
    (RuntimeError, r"dimensionality of sizes \(1\) must match dimensionality of strides \(2\)", lambda: torch.empty_strided((2,), (1, 1))),
    (RuntimeError, "must be greater or equal to", lambda: torch.eye(-1)),
    (RuntimeError, "size is -1 but must be >= 0", lambda: torch.ones(3).unfold(0, -1, 1)),
    (RuntimeError, "Storage size calculation overflowed", lambda: torch.empty(2, 4, 2**29, 2**29, dtype=torch.float64)),
    (RuntimeError, "only tensors with up to 64 dims are supported", lambda: torch.empty((1,) * 65)),
    (RuntimeError, "At least one of 'min' or 'max' must not be None", lambda: torch.ones(3).clamp()),
    (RuntimeError, "can't be cast to", lambda: torch.add(torch.ones(2), 1, out=torch.zeros(2, dtype=torch.int64))),
    (RuntimeError, "only Tensors of floating point and complex dtype can require gradients", lambda: torch.ones(2).long().requires_grad_()),
    (RuntimeError, "Expected both inputs to be Half, Float or Double tensors but got Long and Bool", lambda: torch.complex(torch.tensor(1), torch.tensor(True))),
    (RuntimeError, "imag is not implemented for tensors with non-complex dtypes", lambda: torch.imag(torch.ones(2))),
    (RuntimeError, "not implemented for complex64", lambda: torch.maximum(torch.ones(2, dtype=torch.complex64), torch.ones(2))),
    (RuntimeError, "not implemented for sparse types", lambda: torch.hann_window(3, layout=torch.sparse_coo)),
    (RuntimeError, "input and indices should have the same number of dimensions", lambda: torch.take_along_dim(torch.ones(2, 2), torch.zeros(2, dtype=torch.int64), 0)),
    (RuntimeError, "Boolean value of Tensor with no values is ambiguous", lambda: torch.is_nonzero(torch.ones(0))),
    (RuntimeError, "Boolean value of Tensor with more than one value is ambiguous", lambda: torch.is_nonzero(torch.ones(2))),
    (RuntimeError, "Tensor.__contains__ only supports Tensor or scalar, but you passed in a <class 'str'>.", lambda: "a" in torch.ones(2)),
    (RuntimeError, "diff expects prepend or append to be the same dimension as input", lambda: torch.diff(torch.ones(2, 2), prepend=torch.ones(2))),
    (RuntimeError, "max must be larger than min", lambda: torch.histc(torch.ones(2), 3, 2, 1)),
    (RuntimeError, "expected spacing to be", lambda: torch.gradient(torch.ones(3), spacing=[1.0, 2.0])),
    (RuntimeError, "padding_idx must be within the number of embeddings", lambda: torch.nn.functional.embedding(torch.tensor([0]), torch.ones(2, 2), 5)),
    (RuntimeError, "'weight' must be 2-D", lambda: torch.embedding(torch.tensor(1.0), torch.tensor([0]))),
    (RuntimeError, "stride should not be zero", lambda: torch.nn.functional.max_pool1d(torch.ones(1, 4), 2, 0)),
    (RuntimeError, "Output size is too small", lambda: torch.nn.functional.max_pool2d(torch.ones(1, 1, 2, 2), 3)),
    (RuntimeError, r"Expected 3D or 4D \(batch mode\) tensor with optional 0 dim batch size for input, but got: ", lambda: torch.nn.functional.avg_pool2d(torch.ones(1, 0, 4, 4), 2)),
    (TypeError, "must be tuple of Tensors, not Tensor", lambda: torch.hstack(torch.ones(2))),
    (ValueError, r"both buffer length \(4\) and count \(0\)", lambda: torch.frombuffer(bytearray(4), dtype=torch.int32, count=0)),
    (ValueError, r"offset \(-1 bytes\) must be", lambda: torch.frombuffer(bytearray(4), dtype=torch.uint8, offset=-1)),
    (ValueError, r"buffer length \(3 bytes\) after offset \(1 bytes\) must be", lambda: torch.frombuffer(bytearray(4), dtype=torch.int16, offset=1)),
    (ValueError, r"requested buffer length \(2 \* 4 bytes\) after offset \(0 bytes\) must .* buffer length \(4 bytes\)", lambda: torch.frombuffer(bytearray(4), dtype=torch.int32, count=2)),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "words", "call"), SAID, ids=[words[:40] for _, words, _ in SAID])
def test_the_class_and_the_words(kind, words, call):
    with pytest.raises(kind, match=words):
        call()


def test_no_tensors_are_tensors_too():
    assert torch.block_diag().shape == (1, 0)
    with pytest.raises(RuntimeError, match="no tensors are given"):
        torch.cartesian_prod()


def test_cat_keeps_channels_last_of_parts():
    x = torch.arange(24.0).reshape(2, 2, 3, 2).to(memory_format=torch.channels_last)
    a, b = x[:, :, :2], x[:, :, 1:]
    both = torch.cat((a, b), -1)
    assert both.is_contiguous(memory_format=torch.channels_last)
    assert both.tolist() == torch.cat((a.contiguous(), b.contiguous()), -1).tolist()
    assert torch.cat((x[:, :, :2].contiguous(), b), -1).is_contiguous()


def test_spaces_tell_their_names():
    assert {"rfft", "fftshift", "hfft2"} <= set(torch.fft.__all__) and "erfcx" in torch.special.__all__


def test_einsum_needs_no_package():
    switches = torch.backends.opt_einsum
    assert not switches.is_available() and switches.enabled is False and switches.get_opt_einsum() is None
    with switches.flags(enabled=False):
        assert torch.einsum("ij,jk", torch.ones(2, 3), torch.ones(3, 2)).tolist() == [[3, 3], [3, 3]]
    with pytest.raises(ValueError, match="opt_einsum is not available"):
        switches.set_flags(_enabled=True)
