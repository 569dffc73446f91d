"""tests/python/amp/autocast_test.py: which dtypes ops get in a scope, that casts are recorded, kept and
forgotten, and that the state belongs to the thread."""

import threading
import warnings

import adjoin
import pytest
from adjoin import nn
from adjoin.nn import functional as F
from adjoin.utils.checkpoint import checkpoint

low, full = adjoin.bfloat16, adjoin.float32


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    assert adjoin._C.autocast_state("cpu")[::3] == (False, 0)


def on(**settings):
    return adjoin.autocast("cpu", **settings)


def test_products_are_low_and_sums_are_not_touched():
    x, w = adjoin.randn(4, 8), adjoin.randn(3, 8)
    with on():
        assert (x @ x.t()).dtype == low
        assert F.linear(x, w).dtype == low
        assert adjoin.einsum("ij,kj->ik", x, w).dtype == low
        assert (x + 1).dtype == adjoin.exp(x).dtype == full
        assert (x.to(low) + 1).dtype == low
        assert F.mse_loss(x.to(low), x.to(low)).dtype == full
        assert adjoin.cat([x, x.to(low)]).dtype == full
        assert adjoin.cat([x.to(low), x.to(low)]).dtype == low
    assert (x @ x.t()).dtype == full


def test_what_needs_digits_is_full():
    x = adjoin.randn(3, 3)
    spd = (x @ x.t() + 3 * adjoin.eye(3)).to(low)
    cube, line = adjoin.randn(1, 2, 4, 4, 4).to(low), adjoin.randn(16).to(low)
    linalg, grid = adjoin.linalg, adjoin.zeros(1, 2, 2, 2).to(low)
    with on():
        for result in (
            linalg.inv(spd), linalg.cholesky(spd), linalg.solve(spd, spd), linalg.svdvals(spd), linalg.eigh(spd)[0], adjoin.cdist(spd, spd),
            adjoin.quantile(line, 0.5), adjoin.fft.rfft(line).real, F.avg_pool3d(cube, 2), F.max_pool3d(cube, 2), F.adaptive_avg_pool3d(cube, 1),
            F.grid_sample(cube[0, :, :1], grid[:1].expand(2, 2, 2, 2), align_corners=False), adjoin.linalg.matrix_norm(spd),
        ):  # fmt: skip
            assert result.dtype == full
        inverse = linalg.inv(spd)
    assert adjoin.allclose(inverse @ spd.float(), adjoin.eye(3), atol=0.05)


def test_other_dtypes_stay():
    x = adjoin.randn(4, 4, dtype=adjoin.float64)
    i = adjoin.ones(4, 4, dtype=adjoin.int64)
    with on():
        assert (x @ x).dtype == adjoin.float64
        assert (i @ i).dtype == adjoin.int64


def test_scopes_nest_and_end_with_errors():
    x = adjoin.randn(4, 4)
    with on():
        with on(enabled=False):
            assert (x @ x).dtype == full
            with on(dtype=adjoin.float16):
                assert (x @ x).dtype == adjoin.float16
                assert adjoin.get_autocast_dtype("cpu") == adjoin.float16
        assert (x @ x).dtype == low
        with pytest.raises(ZeroDivisionError), on(dtype=adjoin.float16):
            raise ZeroDivisionError
        assert (x @ x).dtype == low
    assert not adjoin.is_autocast_enabled("cpu")


def test_as_a_decorator():
    @adjoin.autocast("cpu")
    def product(x):
        """Of itself."""
        return product(x[:1, :1]) if len(x) > 3 else x @ x

    assert product(adjoin.randn(2, 2)).dtype == product(adjoin.randn(4, 4)).dtype == low
    assert product.__doc__ == "Of itself."


def test_in_place_and_out_have_the_dtype_of_their_memory():
    x = adjoin.randn(4, 4)
    with on():
        y = adjoin.zeros(4, 4)
        assert adjoin.mm(x, x, out=y) is y
        assert y.dtype == x.addmm_(x, x).dtype == full


def test_gradients_reach_the_parameters_in_their_dtype():
    adjoin.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
    x, y = adjoin.randn(5, 8), adjoin.tensor([0, 1, 2, 3, 0])
    plain = F.cross_entropy(net(x), y)
    plain.backward()
    expected = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    with on():
        loss = F.cross_entropy(net(x), y)
        assert loss.dtype == full
    loss.backward()
    for p, e in zip(net.parameters(), expected, strict=True):
        assert p.grad.dtype == full
        assert (p.grad - e).abs().max() < 0.02
    assert 0 < abs(plain.item() - loss.item()) < 0.02


def test_a_backward_computes_with_what_its_forward_had_wherever_it_is_called():
    x, w = adjoin.randn(4, 4), adjoin.randn(4, 4, requires_grad=True)
    (x @ w).square().sum().backward()
    expected, w.grad = w.grad, None
    with on():
        with on(enabled=False):
            y = x @ w
        y.square().sum().backward()
        assert adjoin.is_autocast_enabled("cpu")
    assert adjoin.equal(w.grad, expected)


def test_casts_of_parameters_are_kept_until_the_outermost_scope_ends():
    w = adjoin.randn(4, 4, requires_grad=True)
    x = adjoin.randn(4, 4)

    def cast_node(y):
        return y.grad_fn.next_functions[1][0]

    with on():
        with on():
            a, b = x @ w, x @ w
        c = x @ w
        with on(cache_enabled=False):
            d = x @ w
        assert cast_node(a) == cast_node(b) == cast_node(c) != cast_node(d)
        (a.sum() + b.sum()).backward()
        (c.sum()).backward()  # the same cast once more
        first = w.grad
        with adjoin.no_grad():
            w += 1  # a new version
        e = x @ w
        assert cast_node(e) != cast_node(a)
        assert adjoin.equal(e, x.to(low) @ w.detach().to(low))
    with on():
        assert cast_node(x @ w) != cast_node(e)
    assert adjoin.allclose(first, 3 * x.to(low).sum(0).float().unsqueeze(1).expand(4, 4), rtol=0.02, atol=0.05)


def test_a_cast_made_without_recording_does_not_serve_where_it_is_on():
    w, x = adjoin.randn(4, 4, requires_grad=True), adjoin.randn(4, 4)
    with on():
        with adjoin.no_grad():
            assert not (x @ w).requires_grad
        y = (x @ w).sum()
    y.backward()
    assert w.grad is not None
    with on(), adjoin.inference_mode():
        assert (x @ w).dtype == low


def test_new_data_of_a_parameter_is_seen():
    w, x = adjoin.zeros(2, 2, requires_grad=True), adjoin.ones(2, 2)
    with on():
        assert (x @ w).sum().item() == 0
        w.data = adjoin.ones(2, 2)
        assert (x @ w).sum().item() == 8


def test_the_state_belongs_to_the_thread():
    seen = []

    def ask():
        seen.append(adjoin.is_autocast_enabled("cpu"))
        with adjoin.autocast("cpu", dtype=adjoin.float16):
            w = adjoin.ones(2, 2, requires_grad=True)
            seen.append((w @ w).dtype)
            adjoin.autocast_increment_nesting()  # this thread ends with a kept cast

    with on():
        t = threading.Thread(target=ask)
        t.start()
        t.join()
        assert adjoin.get_autocast_dtype("cpu") == low
    assert seen == [False, adjoin.float16]


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_is_run_again_with_the_same_casts(reentrant):
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
    x = adjoin.randn(3, 4, requires_grad=True)
    dtypes = []

    def run(x):
        y = net[0](x)
        dtypes.append(y.dtype)
        return net[2](net[1](y))

    with on():
        net(x).float().sum().backward()
    expected, x.grad = x.grad, None
    with on():
        y = checkpoint(run, x, use_reentrant=reentrant)
    y.float().sum().backward()
    assert dtypes == [low, low]
    assert adjoin.equal(x.grad, expected)


def test_functions_may_ask_for_the_scope_of_their_forward():
    class Product(adjoin.autograd.Function):
        @staticmethod
        @adjoin.amp.custom_fwd(device_type="cpu")
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        @adjoin.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            dtypes.append((grad @ b.t()).dtype)
            return grad @ b.t(), a.t() @ grad

    class Exact(adjoin.autograd.Function):
        @staticmethod
        @adjoin.amp.custom_fwd(device_type="cpu", cast_inputs=full)
        def forward(ctx, a):
            dtypes.append((a @ a).dtype)
            return a * 2

        @staticmethod
        @adjoin.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            return grad * 2

    dtypes = []
    a, b = adjoin.randn(3, 3, requires_grad=True), adjoin.randn(3, 3, requires_grad=True)
    with on():
        y = Exact.apply(Product.apply(a, b))
    y.sum().backward()
    assert dtypes == [full, low]
    assert a.grad.dtype == full


def test_layers_of_mixed_dtypes_work():
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.GroupNorm(2, 8),
                        nn.Flatten(), nn.LayerNorm(8 * 16), nn.Linear(8 * 16, 4))  # fmt: skip
    x = adjoin.randn(2, 3, 4, 4)
    with on():
        y = net(x)
    assert y.dtype == low
    y.float().square().sum().backward()
    assert all(p.grad.dtype == full and p.grad.isfinite().all() for p in net.parameters())
    assert net[1].running_mean.dtype == full


def test_attention_and_recurrent_layers():
    x = adjoin.randn(2, 5, 8, requires_grad=True)
    attention, lstm, cell = nn.MultiheadAttention(8, 2, batch_first=True), nn.LSTM(8, 8), nn.LSTMCell(8, 8)
    with on():
        assert F.scaled_dot_product_attention(x, x, x).dtype == low
        y, _ = attention(x, x, x)
        z, _ = lstm(x)
        h, _ = cell(x[0])
    (y.float().sum() + z.float().sum() + h.float().sum()).backward()
    assert x.grad.dtype == full


def test_the_older_names():
    assert adjoin.get_autocast_cpu_dtype() == low and adjoin.get_autocast_gpu_dtype() == adjoin.float16
    assert not adjoin.is_autocast_cpu_enabled() and not adjoin.is_autocast_enabled()
    adjoin.set_autocast_enabled("cpu", True)
    adjoin.set_autocast_dtype("cpu", adjoin.float16)
    assert (adjoin.ones(2, 2) @ adjoin.ones(2, 2)).dtype == adjoin.float16
    adjoin.set_autocast_dtype("cpu", low)
    adjoin.set_autocast_cpu_enabled(False)
    assert adjoin.is_autocast_cache_enabled()
    adjoin.set_autocast_cache_enabled(False)
    assert not adjoin.is_autocast_cache_enabled()
    adjoin.set_autocast_cache_enabled(True)
    assert adjoin.autocast_increment_nesting() == 1 and adjoin.autocast_decrement_nesting() == 0
    adjoin.clear_autocast_cache()
    assert adjoin.amp.is_autocast_available("cpu") and not adjoin.amp.is_autocast_available("nowhere")
    from adjoin.cuda.amp import GradScaler, autocast

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert isinstance(autocast(), adjoin.autocast)
        assert isinstance(GradScaler(), adjoin.amp.GradScaler)


def test_what_cannot_be_says_so():
    with pytest.warns(UserWarning, match="CPU autocast, but the target dtype is not supported"):
        scope = on(dtype=adjoin.float32)
    with scope:
        assert not adjoin.is_autocast_enabled("cpu")
    with pytest.raises(RuntimeError, match="nowhere"):
        adjoin.autocast("nowhere")
    with pytest.raises(ValueError, match="of type `str`"):
        adjoin.autocast(adjoin.float16)
    with pytest.raises(TypeError, match="autocast: int64 is no dtype to compute in"):
        adjoin.set_autocast_dtype("cpu", adjoin.int64)


class TestDevice:
    """A device without a list of its own takes the rows' tags."""

    @pytest.fixture(autouse=True)
    def device(self):
        if not adjoin.amp.is_autocast_available("reference"):
            pytest.skip("the reference device was not built")

    def test_tags(self):
        x = adjoin.rand(4, 4, device="reference")
        half = x.half()
        with adjoin.autocast("reference"):
            assert (x @ x).dtype == adjoin.float16
            assert adjoin.exp(half).dtype == half.sum().dtype == half.softmax(-1).dtype == full
            assert half.sum(dtype=adjoin.float16).dtype == adjoin.float16
            assert adjoin.addcmul(half, x, half).dtype == full
            assert adjoin.addcmul(half, half, half).dtype == adjoin.float16
            assert (half + half).dtype == adjoin.float16
            assert F.layer_norm(half, (4,)).dtype == full
            with pytest.raises(RuntimeError, match="binary_cross_entropy: .*logits.*enabled=False"):
                F.binary_cross_entropy(x, x)
            y = adjoin.rand(4, 4)
            assert (y @ y).dtype == full  # the host has not been asked for
