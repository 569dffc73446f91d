"""tests/python/toplevel/torch_details_test.py: small things that programs written for PyTorch rely on."""

import copy
import warnings

import adjoin as aj
import pytest
from adjoin import nn


def test_a_dict_is_no_data():
    with pytest.raises(RuntimeError, match="a dict has no dtype"):
        aj.tensor({1: 2})


def test_words_that_are_asked_back():
    aj.set_float32_matmul_precision("high")
    assert aj.get_float32_matmul_precision() == "high"
    aj.set_float32_matmul_precision("highest")
    with pytest.warns(UserWarning, match="deprecated as of PyTorch 2.1, please use torch.set_default_dtype"):
        aj.set_default_tensor_type(aj.DoubleTensor)
        assert aj.ones(1).dtype == aj.float64
        aj.set_default_tensor_type("torch.FloatTensor")
        for wrong in (aj.LongTensor, "torch.LongTensor", 3):
            with pytest.raises(TypeError):
                aj.set_default_tensor_type(wrong)
    assert aj.ones(1).dtype == aj.float32 and nn.modules.utils._ntuple(3)(2) == (2, 2, 2)


def test_distributions_draw_what_their_moments_say():
    d = aj.distributions
    aj.manual_seed(3)
    made = [
        d.Binomial(10, 0.3), d.NegativeBinomial(5.0, 0.4), d.StudentT(9.0, 1.0, 2.0), d.Weibull(1.0, 2.0), d.Pareto(1.0, 5.0),
        d.InverseGamma(6.0, 2.0), d.Kumaraswamy(2.0, 3.0),
    ]  # fmt: skip
    for one in made:
        drawn = one.sample((20000,))
        assert aj.allclose(drawn.mean(), one.mean, atol=0.05, rtol=0.05), one
        assert aj.allclose(drawn.var(), one.variance, atol=0.05, rtol=0.25), one
        assert one.support.check(drawn).all(), one
    half = d.HalfCauchy(2.0)
    assert aj.allclose((half.sample((20000,)) < 2).float().mean(), half.cdf(aj.tensor(2.0)), atol=0.02)
    counts = d.Multinomial(7, aj.tensor([0.2, 0.8])).sample((500,))
    assert (counts.sum(-1) == 7).all() and aj.allclose(counts.mean(0), aj.tensor([1.4, 5.6]), atol=0.3)


def test_relaxed_samples_have_derivatives():
    d = aj.distributions
    for kind in (d.RelaxedBernoulli, d.RelaxedOneHotCategorical):
        logits = aj.tensor([0.5, -0.5, 0.1], requires_grad=True)
        one = kind(aj.tensor(0.5), logits=logits)
        drawn = one.rsample((4,))
        assert one.support.check(drawn.detach()).all()
        (drawn * aj.tensor([1.0, 2.0, 3.0])).sum().backward()
        assert logits.grad.abs().sum() > 0 and one.log_prob(drawn.detach()).isfinite().all()
    probs = aj.tensor([0.3, 0.7], requires_grad=True)
    drawn = d.OneHotCategoricalStraightThrough(probs).rsample()
    assert sorted(drawn.tolist()) == [0, 1]
    (drawn * aj.tensor([1.0, 2.0])).sum().backward()
    assert probs.grad is not None


def test_numbers_of_several_elements_are_a_value_error():
    for make in (int, float, complex):
        with pytest.raises(ValueError, match="2 elements is no single number"):
            make(aj.ones(2))
    with pytest.raises(RuntimeError, match="2 elements is no single number"):
        aj.ones(2).item()


def test_a_short_list_of_lists_is_a_tuple_of_indices():
    x = aj.arange(20).reshape(4, 5)
    assert x[[[0, 1], [2, 3]]].tolist() == [2, 8]
    assert x[[aj.tensor([0, 1]), aj.tensor([2, 3])]].tolist() == [2, 8]
    assert x[[0, 1]].shape == (2, 5)
    x[[[0], [1]]] = -1
    assert x[0, 1].item() == -1 and (x == -1).sum().item() == 1


def test_memory_that_nobody_wrote_is_filled_where_programs_are_to_be_deterministic():
    switch = aj.utils.deterministic
    assert switch.fill_uninitialized_memory is True
    empty = aj.empty
    try:
        aj.use_deterministic_algorithms(True)
        for made in (aj.empty(3), aj.empty_like(aj.ones(3)), aj.ones(1).new_empty(3), aj.empty_strided((3,), (1,))):
            assert made.isnan().all()
        assert aj.empty_strided((10, 9), (1, 5)).isnan().all() and aj.empty(2, out=aj.zeros(3)[:2]).isnan().all()
        assert aj.empty(2, dtype=aj.int16).tolist() == [32767] * 2 and aj.empty(2, dtype=aj.bool).all()
        grown = aj.zeros(2).resize_(4)
        assert grown[:2].tolist() == [0, 0] and grown[2:].isnan().all() and aj.zeros(4).resize_(2).tolist() == [0, 0]
        switch.fill_uninitialized_memory = False
        assert aj.empty is empty
        switch.fill_uninitialized_memory = True
        assert aj.empty is not empty
    finally:
        switch.fill_uninitialized_memory = True
        aj.use_deterministic_algorithms(False)
    assert aj.empty is empty
    with pytest.raises(TypeError, match="a bool is wanted"):
        switch.fill_uninitialized_memory = 1


def test_what_nonzero_writes_to():
    x = aj.tensor([1, 0, 2])
    assert aj.nonzero(x, out=aj.empty(0, dtype=aj.int64)).tolist() == [[0], [2]]
    with pytest.raises(RuntimeError, match="expected out tensor to have scalar type Long but got adjoin.float32"):
        aj.nonzero(x, out=aj.empty(0))
    with pytest.raises(RuntimeError, match="does not support the out kwarg when as_tuple is True"):
        aj.nonzero(x, out=aj.empty(0, dtype=aj.int64), as_tuple=True)


def test_places_are_int64():
    rows, columns = aj.unravel_index(aj.tensor([1, 3], dtype=aj.int32), (2, 2))
    assert rows.dtype is columns.dtype is aj.int64 and (rows.tolist(), columns.tolist()) == ([0, 1], [1, 1])
    with pytest.raises(TypeError, match="expected 'indices' to be integer dtype, but got adjoin.float32"):
        aj.unravel_index(aj.ones(1), (2, 2))


def test_windows_take_a_layout():
    for window in (aj.hann_window, aj.hamming_window, aj.blackman_window, aj.bartlett_window, aj.kaiser_window):
        assert window(5, layout=aj.strided).equal(window(5))
        with pytest.raises(RuntimeError, match="not implemented for sparse types"):
            window(5, layout=aj.sparse_coo)


def test_random_complex_numbers_have_two_random_parts():
    aj.manual_seed(0)
    for made in (aj.rand(1000, dtype=aj.complex64), aj.rand_like(aj.empty(1000, dtype=aj.complex128)),
                 aj.empty(1000, dtype=aj.complex64).uniform_(2, 4) / 2 - (1 + 1j)):  # fmt: skip
        for part in (made.real, made.imag):
            assert 0 <= part.min() and part.max() <= 1 and abs(part.mean() - 0.5) < 0.05
        assert (made.real != made.imag).all()


def test_index_copy_takes_a_number_for_one_place():
    x = aj.zeros(3)
    assert x.index_copy(0, aj.tensor([1]), aj.tensor(2.0)).tolist() == [0, 2, 0]
    assert aj.tensor(0.0).index_copy(0, aj.tensor([0]), aj.tensor([5.0])).item() == 5
    with pytest.raises(RuntimeError, match="source must have shape"):
        x.index_copy(0, aj.tensor([1, 2]), aj.tensor(2.0))


def test_what_is_easily_got_wrong_is_told():
    x = aj.ones(2, requires_grad=True)
    y = x * 2
    with pytest.warns(UserWarning, match="The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"):
        assert y.grad is None
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        aj.tensor(x)
    image, grid, F = aj.ones(1, 1, 2, 2), aj.zeros(1, 1, 1, 2), nn.functional
    with pytest.warns(UserWarning, match="See the documentation of grid_sample"):
        F.grid_sample(image, grid)
    with pytest.warns(UserWarning, match="See the documentation of affine_grid"):
        F.affine_grid(aj.ones(1, 2, 3), (1, 1, 2, 2))
    with pytest.warns(UserWarning, match="upsample` is deprecated"):
        F.upsample(image, scale_factor=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y.retain_grad()
        assert y.grad is None and x.grad is None and aj.ones(2).grad is None and y.detach().grad is None
        assert F.grid_sample(image, grid, align_corners=False).equal(
            F.grid_sample(image, grid, "bilinear", "zeros", False)
        )


def test_functions_that_are_gone_name_what_serves():
    for call, use in ((lambda: aj.cholesky(aj.eye(2)), "linalg.cholesky"), (lambda: aj.eye(2).qr(), "linalg.qr")):
        with pytest.raises(RuntimeError, match=f"is now removed.*torch.{use}"):
            call()


def test_a_bare_index_is_a_device_of_the_accelerator():
    """As programs for several cards say it: x.to(rank)."""
    kind = aj.accelerator.current_accelerator().type if aj.accelerator.is_available() else "cuda"
    assert aj.device(0) == aj.device(f"{kind}:0") and aj.device(3).index == 3
    with pytest.raises(TypeError, match="a dtype is wanted behind the device, not int"):
        aj.ones(1).to("cpu", 3)
    if not aj.accelerator.is_available():
        for call in (lambda: aj.ones(1).to(0), lambda: nn.Linear(1, 1).to(0), lambda: aj.ones(1, device=0)):
            with pytest.raises(RuntimeError, match="device 'cuda'"):
                call()


def test_older_constructors_take_a_size_and_a_device():
    assert (
        aj.Tensor(size=(2, 3)).shape
        == aj.FloatTensor(size=(2, 3), device="cpu").shape
        == aj.ones(1).new(size=(2, 3)).shape
    )
    with pytest.raises(RuntimeError, match="its tensors are on the host, not on meta"):
        aj.FloatTensor(2, device="meta")


def test_copies_of_storages_share_what_the_tensors_shared():
    x = aj.ones(4)
    storage = x.untyped_storage()
    tensor, other = copy.deepcopy([x, storage])
    assert other.data_ptr() == tensor.data_ptr() != x.data_ptr() and copy.copy(storage) != storage
    parameter = nn.Parameter(aj.ones(1))
    parameter._grad = aj.ones(1)
    assert parameter.grad.item() == 1 and parameter._grad is parameter.grad


def test_meshgrid_wants_one_dtype():
    with pytest.raises(RuntimeError, match="expects all tensors to have the same dtype"):
        aj.meshgrid(aj.ones(2), aj.ones(2, dtype=aj.float64), indexing="ij")
