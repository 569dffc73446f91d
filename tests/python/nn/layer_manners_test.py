"""tests/python/nn/layer_manners_test.py: what layers do at the edges: unusual input, tensors without a shape, loading by exchange, old hooks."""

import gc
import pickle
import warnings
import weakref
from collections import namedtuple

import adjoin
import numpy as np
import pytest
from adjoin import nn
from adjoin.nn import functional as F


@pytest.mark.parametrize(
    ("dims", "function", "layer"), [(1, F.dropout1d, nn.Dropout1d), (3, F.dropout3d, nn.Dropout3d)]
)
def test_dropout_of_channels_without_a_batch(dims, function, layer):
    x = adjoin.ones(64, *[3] * dims)
    for out in (function(x, 0.5), layer(0.5)(x)):
        channels = out.flatten(1)
        assert ((channels == 0).all(1) | (channels == 2).all(1)).all(), "a channel is zeroed whole"
        assert 0 < (channels[:, 0] == 0).sum() < 64
    same = x.clone()
    assert function(same, 0.5, inplace=True) is same and set(same.unique().tolist()) == {0.0, 2.0}


def test_dropout_of_channels_says_what_it_does_not_know():
    for x in (adjoin.ones(3), adjoin.ones(2, 2, 2, 2)):
        with pytest.raises(RuntimeError, match="Expected 2D or 3D input"):
            nn.Dropout1d()(x)
    for shape in ((2, 2), (2, 2, 2, 2, 2)):
        with pytest.warns(UserWarning, match=rf"Received a {len(shape)}-D input to dropout2d"):
            F.dropout2d(adjoin.ones(shape))
    with pytest.warns(UserWarning, match="assuming that channel-wise 1D dropout.*channels are those of"):
        F.dropout2d(adjoin.ones(2, 2, 2))
    with pytest.warns(UserWarning, match="Received a 3-D input to dropout3d"):
        F.dropout3d(adjoin.ones(2, 2, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        F.dropout2d(adjoin.ones(2, 2, 2, 2)), F.dropout3d(adjoin.ones(2, 2, 2, 2))


def test_a_tensor_without_a_shape_computes_nothing():
    param = nn.UninitializedParameter()
    for compute in (lambda: param + param, lambda: adjoin.empty_like(param), lambda: adjoin.add(param, 1)):
        with pytest.raises(ValueError, match="uninitialized parameter"):
            compute()
    for norm in (nn.utils.weight_norm, nn.utils.spectral_norm):
        with pytest.raises(ValueError, match="have uninitialized parameters"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            norm(nn.LazyLinear(7))
    with pytest.raises(ValueError, match="uninitialized parameter"):
        adjoin.optim.Adagrad([param])
    assert param.to(adjoin.float64).dtype == adjoin.float64 and "Uninitialized" in repr(param)


def test_loading_without_a_shape():
    one, two = nn.LazyLinear(3), nn.LazyLinear(3)
    one.load_state_dict(two.state_dict())
    assert one.has_uninitialized_params()
    two(adjoin.ones(1, 2))
    with pytest.raises(RuntimeError, match="shape of an uninitialized"):
        two.load_state_dict(one.state_dict())
    one.load_state_dict(two.state_dict())
    assert one.weight.tolist() == two.weight.tolist()


def test_a_hook_of_loading_does_not_keep_its_module():
    gc.collect()
    gc.disable()
    try:
        layer = nn.Linear(2, 2)
        layer.register_load_state_dict_pre_hook(_note)
        layer.load_state_dict(layer.state_dict())
        gone = weakref.ref(layer)
        del layer
        assert gone() is None
        assert gc.collect() == 0, "loading leaves a ring of objects"
    finally:
        gc.enable()
    again = pickle.loads(pickle.dumps(_with_hook()))
    again.load_state_dict(again.state_dict())
    assert again.seen is again.weight


def _note(module, *_):
    module.__dict__["seen"] = module.weight


def _with_hook():
    layer = nn.Linear(2, 2)
    layer.register_load_state_dict_pre_hook(_note)
    return layer


@pytest.fixture
def exchange():
    adjoin.__future__.set_swap_module_params_on_conversion(True)
    yield
    adjoin.__future__.set_swap_module_params_on_conversion(False)


class Doubled(adjoin.Tensor):
    """Doubles what is loaded into it."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is adjoin.Tensor.module_load:
            return (args[1] * 2).detach()
        return super().__torch_function__(func, types, args, kwargs or {})


def test_loading_by_exchange(exchange):
    layer, other = nn.Linear(3, 2), nn.Linear(3, 2)
    weight = layer.weight
    layer.load_state_dict(other.state_dict())
    assert layer.weight is weight and weight.tolist() == other.weight.tolist() and isinstance(weight, nn.Parameter)
    with adjoin.device("meta"):
        far = nn.Linear(3, 2)
    weight = far.weight
    far.load_state_dict(other.state_dict(), assign=True)
    assert far.weight is weight and weight.device.type == "cpu" and weight.requires_grad
    layer.register_buffer("more", adjoin.zeros(2).as_subclass(Doubled))
    layer.load_state_dict({**other.state_dict(), "more": adjoin.ones(2)})
    assert layer.more.tolist() == [2.0, 2.0]


def test_module_load():
    to, values = adjoin.zeros(2), adjoin.ones(2, requires_grad=True)
    made = to.module_load(values.detach())
    assert made is not to and to.tolist() == [1.0, 1.0] and made.data_ptr() == to.data_ptr()
    taken = to.module_load(values, assign=True)
    assert taken.data_ptr() == values.data_ptr() and not taken.requires_grad


def test_a_tensor_of_an_instance_is_a_plain_one():
    made = adjoin.Tensor(adjoin.ones(2).as_subclass(Doubled))
    assert type(made) is adjoin.Tensor and made.tolist() == [1.0, 1.0]
    assert type(nn.Parameter(made)) is nn.Parameter and type(Doubled(made)) is Doubled


def test_a_converted_parameter_keeps_its_gradient_object():
    layer = nn.Linear(2, 2)
    layer(adjoin.ones(1, 2)).sum().backward()
    held, values = layer.weight.grad, layer.weight.grad.tolist()
    layer.double()
    assert layer.weight.grad is held and held.dtype == adjoin.float64 and held.tolist() == values


Pair = namedtuple("Pair", ["first", "second"])


class Both(nn.Module):
    def forward(self, x):
        return Pair(x * 2, x * 3)


def test_full_hooks_keep_a_named_tuple():
    net = Both()
    net.register_full_backward_hook(lambda m, inputs, outputs: None)
    out = net(adjoin.ones(2, requires_grad=True))
    assert type(out) is Pair and out.second.tolist() == [3.0, 3.0]


def test_full_hooks_may_return_what_they_got():
    net = nn.Linear(2, 1)
    calls = []
    net.register_full_backward_hook(lambda m, inputs, outputs: calls.append(inputs) or inputs)
    net(adjoin.ones(1, 2)).sum().backward()
    assert calls == [(None,)]
    other = nn.Linear(2, 1)
    other.register_full_backward_hook(lambda m, inputs, outputs: (adjoin.ones(1, 2),))
    with pytest.raises(RuntimeError, match="no input requires gradient"):
        other(adjoin.ones(1, 2)).sum().backward()


class Calls(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.register_backward_hook(lambda *_: None)

    def forward(self, *args):
        return self.function(*args)


def test_old_hooks_say_what_they_miss():
    a, b = adjoin.ones(2, requires_grad=True), adjoin.ones(2, requires_grad=True)
    for function, args, words in (
        (lambda both: both[0].clone(), ([a, b],), "does not take as input a single Tensor"),
        (lambda x: [x.clone()], (a,), "does not return a single Tensor"),
        (lambda x, y: (x.clone(), y.clone()), (a, b), "outputs are generated by different autograd Nodes"),
        (lambda x: (x * 2).exp(), (a,), "the forward contains multiple autograd Nodes"),
    ):
        with pytest.warns(FutureWarning, match=words):
            Calls(function)(*args)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Calls(lambda x: x.exp())(a * 2)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 5, 3)])
def test_orthogonal_starts_at_the_factor_of_its_weight(shape):
    holder = nn.Module()
    holder.weight = nn.Parameter(adjoin.randn(*shape, dtype=adjoin.float64))
    w = holder.weight.detach().numpy().copy()
    nn.utils.parametrizations.orthogonal(holder, "weight", "householder", use_trivialization=False)
    wide = w.shape[-2] < w.shape[-1]
    q, r = np.linalg.qr(np.swapaxes(w, -1, -2) if wide else w)
    q = q * np.sign(np.diagonal(r, axis1=-2, axis2=-1))[..., None, :]
    np.testing.assert_allclose(holder.weight.detach().numpy(), np.swapaxes(q, -1, -2) if wide else q, atol=1e-12)


def test_attention_refuses_masks_of_other_dimensions():
    layer = nn.MultiheadAttention(4, 4)
    x, one = adjoin.ones(4, 4, 4), adjoin.tensor([False, False, True, True])
    for kwargs, words in (
        ({"key_padding_mask": one}, "`key_padding_mask` to be `None` or 2-D but found 1-D"),
        ({"attn_mask": one}, "`attn_mask` to be `None`, 2-D or 3-D but found 1-D"),
    ):
        with pytest.raises(AssertionError, match=words):
            layer(x, x, x, **kwargs)
    with pytest.raises(AssertionError, match="found 2-D and 3-D tensors respectively"):
        layer(x, x[0], x)
    with pytest.raises(AssertionError, match="`attn_mask` shape"):
        layer(x[0], x[0], x[0], attn_mask=adjoin.zeros(5, 4, 4))
    with pytest.raises(AssertionError, match="bias cannot be added to static key"):
        own = (layer.in_proj_weight, layer.in_proj_bias, adjoin.ones(1, 1, 4), None, False, 0.0)
        F.multi_head_attention_forward(x, x, x, 4, 4, *own, layer.out_proj.weight, None, static_k=adjoin.ones(16, 4, 1))


def test_packed_sequences_in_whole_numbers():
    packed = nn.utils.rnn.pack_sequence([adjoin.tensor([1.5, 2.5]), adjoin.tensor([3.5])])
    for name in ("long", "int", "short", "char", "byte"):
        cast = getattr(packed, name)()
        assert cast.data.tolist() == [1, 3, 2] and cast.data.dtype == getattr(adjoin.ones(1), name)().dtype
    assert packed.float() is packed


def test_unpooling_asks_for_as_many_sizes_as_dimensions():
    x = adjoin.ones(1, 3, 1, 1, 1)
    with pytest.raises(RuntimeError, match="kernel_size must either be one number or 3; it has 2 elements"):
        F.max_unpool3d(x, adjoin.zeros(x.shape, dtype=adjoin.int64), [1, 1])


def test_where_a_function_makes_its_tensors():
    from adjoin.utils._device import DeviceContext, set_device

    made = set_device("meta")(lambda: nn.Linear(2, 2))()
    assert made.weight.device.type == "meta" and nn.Linear(2, 2).weight.device.type == "cpu"
    with DeviceContext("meta") as place:
        assert adjoin.ones(2).device.type == "meta" and place.device.type == "meta"
    assert adjoin.ones(2).device.type == "cpu"
    with pytest.raises(RuntimeError, match="is a class"):
        set_device("meta")(nn.Linear)


def test_warnings_of_traces_about_the_package_are_left_out():
    kind = adjoin.jit.TracerWarning
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        kind.ignore_lib_warnings()
        for module in ("torch.nn.modules", "adjoin.nn", "program"):
            warnings.warn_explicit("x", kind, "f.py", 1, module=module)
    assert len(seen) == 1


def test_spectral_norms_of_the_first_layout_load():
    layer, x = nn.utils.spectral_norm(nn.Linear(5, 3)).double(), adjoin.ones(2, 5, dtype=adjoin.float64)
    for _ in range(200):
        layer(x)
    old = layer.state_dict()
    del old._metadata[""]["spectral_norm"]
    v = old.pop("weight_v")
    old["weight"] = layer.weight.detach().clone()
    other = nn.utils.spectral_norm(nn.Linear(5, 3)).double()
    keys = other.load_state_dict(old)
    assert not keys.missing_keys and adjoin.allclose(other.weight_v, v)
    assert adjoin.allclose(other.eval()(x), layer.eval()(x))
    del old["weight_u"]
    with pytest.raises(RuntimeError, match="Missing key.*weight_u"):
        other.load_state_dict(old)
    plain = nn.utils.remove_spectral_norm(other)
    plain.load_state_dict(nn.Linear(5, 3).double().state_dict())
    nn.utils.spectral_norm(nn.Linear(5, 3)).load_state_dict(layer.state_dict())


def test_only_lstm_has_projections():
    for kind in (nn.RNN, nn.GRU):
        with pytest.raises(ValueError, match="proj_size argument is only supported for LSTM"):
            kind(30, 20, 2, proj_size=10)


def test_affine_grid_says_where_a_single_place_is():
    theta = adjoin.eye(2, 3, dtype=adjoin.float64)[None]
    with pytest.warns(UserWarning, match="See the documentation of affine_grid"):
        grid = F.affine_grid(theta, (1, 1, 2, 1), align_corners=True)
    assert grid[..., 0].tolist() == [[[0.0], [0.0]]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        F.affine_grid(theta, (1, 1, 2, 1), align_corners=False), F.affine_grid(theta, (1, 1, 2, 2), align_corners=True)


def test_bags_refuse_weights_that_do_not_fit():
    bag, x = nn.EmbeddingBag(5, 2, mode="sum"), adjoin.tensor([[3, 1, 1], [1, 4, 0]])
    assert bag(x, None, adjoin.ones(2, 3)).shape == (2, 2)
    for shape in ((6,), (3, 2)):
        with pytest.raises(ValueError, match="same shape as the input"):
            bag(x, None, adjoin.ones(shape))
    with pytest.raises(ValueError, match="1D or 2D"):
        bag(x[None])
    for mode in ("mean", "max"):
        with pytest.raises(NotImplementedError, match="only supported for mode='sum'"):
            nn.EmbeddingBag(5, 2, mode=mode)(x, None, adjoin.ones(2, 3))
