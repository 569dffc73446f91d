"""tests/python/nn/module_test.py: what Module promises: parts, names, state dicts, conversion,
copies, text."""

import copy
import pickle
import threading
from collections import OrderedDict, namedtuple

import adjoin
import pytest
from adjoin import nn
from adjoin.nn import parallel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.norm = nn.BatchNorm1d(3)
        self.again = self.first
        self.scale = nn.Parameter(adjoin.ones(3))
        self.register_buffer("seen", adjoin.zeros(1))
        self.register_buffer("scratch", adjoin.zeros(1), persistent=False)

    def forward(self, x):
        return self.norm(self.first(x)) * self.scale


def names(pairs):
    return [name for name, _ in pairs]


def test_parts_by_name():
    net = Net()
    assert names(net.named_parameters()) == [
        "scale", "first.weight", "first.bias", "norm.weight", "norm.bias",
    ]  # fmt: skip
    assert "again.weight" in names(net.named_parameters(remove_duplicate=False))
    assert names(net.named_modules()) == ["", "first", "norm"]
    assert names(net.named_children()) == ["first", "norm"]
    assert names(net.named_buffers(recurse=False)) == ["seen", "scratch"]
    assert len(list(net.parameters())) == 5
    assert net.get_submodule("norm") is net.norm
    assert net.get_parameter("first.bias") is net.first.bias
    assert net.get_buffer("norm.running_mean") is net.norm.running_mean
    with pytest.raises(AttributeError, match="Linear has no attribute `absent`"):
        net.get_submodule("first.absent")


def test_setting_attributes_registers():
    net = nn.Module()
    net.weight = nn.Parameter(adjoin.ones(2))
    net.child = nn.ReLU()
    net.buffer = nn.Buffer(adjoin.zeros(1), persistent=False)
    assert list(net._parameters) == ["weight"] and list(net._modules) == ["child"]
    assert list(net._buffers) == ["buffer"] and list(net.state_dict()) == ["weight"]
    net.weight = None
    assert net.weight is None and list(net.parameters()) == []
    net.buffer = adjoin.ones(3)
    assert net._buffers["buffer"].shape == (3,)
    with pytest.raises(TypeError, match="cannot assign 'int' as child module 'child'"):
        net.child = 3
    net.child = nn.Parameter(adjoin.ones(1))
    assert "child" in net._parameters and "child" not in net._modules
    del net.child
    assert not hasattr(net, "child")
    with pytest.raises(AttributeError, match="'Module' object has no attribute 'child'"):
        net.child  # noqa: B018


def test_setting_before_init_is_refused():
    class Early(nn.Module):
        def __init__(self, value):
            self.value = value
            super().__init__()

    for value in (nn.Parameter(adjoin.ones(1)), nn.ReLU()):
        with pytest.raises(AttributeError, match=r"before Module.__init__\(\) call"):
            Early(value)


@pytest.mark.parametrize("name", ["a.b", "", "forward"])
def test_bad_names(name):
    for register in (
        lambda: nn.Module().register_parameter(name, None),
        lambda: nn.Module().register_buffer(name, None),
        lambda: nn.Module().add_module(name, None),
    ):
        with pytest.raises(KeyError):
            register()


def test_only_leaves_are_parameters():
    made = nn.Parameter(adjoin.ones(1)) * 2
    with pytest.raises(TypeError, match="torch.nn.Parameter or None required"):
        nn.Module().register_parameter("weight", made)


def test_state_dict_and_back():
    net, other = Net(), Net()
    state = net.state_dict()
    assert "scratch" not in state and "seen" in state
    assert state._metadata["norm"] == {"version": 2}
    assert not any(tensor.requires_grad for tensor in state.values())
    assert state["scale"].data_ptr() == net.scale.data_ptr()
    with adjoin.no_grad():
        net.scale.fill_(7)
    result = other.load_state_dict(state)
    assert repr(result) == "<All keys matched successfully>"
    assert other.scale.tolist() == [7.0] * 3


def test_wrong_state_dicts():
    net = nn.Sequential(nn.Linear(2, 3))
    state = {"0.weight": adjoin.ones(2, 2), "1.bias": adjoin.ones(1), "0.more": adjoin.ones(1)}
    with pytest.raises(RuntimeError) as caught:
        net.load_state_dict(state)
    lines = str(caught.value).split("\n\t")
    assert lines[0] == "Error(s) in loading state_dict for Sequential:"
    assert lines[1] == 'Missing key(s) in state_dict: "0.bias". '
    assert lines[2].startswith('Unexpected key(s) in state_dict: "')
    assert lines[3].startswith("size mismatch for 0.weight: copying a param with shape")
    del state["0.weight"]
    keys = net.load_state_dict(state, strict=False)
    assert keys.missing_keys == ["0.weight", "0.bias"]
    assert sorted(keys.unexpected_keys) == ["0.more", "1.bias"]
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like"):
        net.load_state_dict(3)


def test_assigning_a_state_dict_keeps_its_tensors():
    net = nn.Linear(2, 3)
    state = {"weight": adjoin.ones(3, 2, dtype=adjoin.float64), "bias": adjoin.zeros(3)}
    net.load_state_dict(state, assign=True)
    assert net.weight.dtype == adjoin.float64 and isinstance(net.weight, nn.Parameter)
    assert net.weight.data_ptr() == state["weight"].data_ptr() and net.weight.requires_grad


def test_state_dict_hooks():
    calls = []
    net = Net()
    net.register_state_dict_pre_hook(lambda module, prefix, keep: calls.append("pre"))
    net.register_state_dict_post_hook(lambda module, state, *_: state.__delitem__("seen"))
    net.register_load_state_dict_pre_hook(lambda *args: calls.append(len(args)))
    net.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
    assert "seen" not in net.state_dict()
    net.load_state_dict({})
    assert calls == ["pre", 8]


def test_extra_state():
    class Counter(nn.Module):
        count = 0

        def get_extra_state(self):
            return self.count

        def set_extra_state(self, state):
            self.count = state

    one, two = Counter(), Counter()
    one.count = 5
    two.load_state_dict(one.state_dict())
    assert two.count == 5
    with pytest.raises(RuntimeError, match='Missing key.*"_extra_state"'):
        two.load_state_dict({})


def test_conversion_keeps_parameters_the_same_objects():
    net = Net()
    weight = net.first.weight
    net(adjoin.rand(4, 2)).sum().backward()
    net.double()
    assert net.first.weight is weight and weight.dtype == adjoin.float64
    assert weight.grad.dtype == adjoin.float64
    assert net.norm.num_batches_tracked.dtype == adjoin.int64
    assert net.to("cpu", adjoin.float32).scale.dtype == adjoin.float32
    assert net.to(adjoin.ones(1, dtype=adjoin.bfloat16)).scale.dtype == adjoin.bfloat16
    with pytest.raises(TypeError, match="only accepts floating point or complex dtypes"):
        net.to(adjoin.int32)


def test_modes_and_gradients():
    net = Net()
    assert net.eval() is net and not net.norm.training
    net.train()
    with pytest.raises(ValueError, match="expected to be boolean"):
        net.train("yes")
    net(adjoin.rand(4, 2)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert net.scale.grad.tolist() == [0.0] * 3
    net.zero_grad()
    assert net.scale.grad is None
    assert not any(p.requires_grad for p in net.requires_grad_(False).parameters())
    order = []
    net.apply(lambda module: order.append(type(module).__name__))
    assert order == ["Linear", "BatchNorm1d", "Net"]


def test_copies_and_pickles():
    net = Net()
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert twin.again is twin.first and twin.scale is not net.scale
        assert isinstance(twin.scale, nn.Parameter) and twin.scale.requires_grad
        assert names(twin.named_parameters()) == names(net.named_parameters())
        assert twin.first.weight.tolist() == net.first.weight.tolist()


def test_text():
    net = nn.Sequential(OrderedDict(conv=nn.Conv2d(1, 2, 3), act=nn.ReLU(inplace=True)))
    assert repr(net) == (
        "Sequential(\n  (conv): Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1))\n  (act): ReLU(inplace=True)\n)"
    )
    assert repr(nn.Module()) == "Module()"
    assert repr(nn.Linear(2, 3)) == "Linear(in_features=2, out_features=3, bias=True)"
    assert "first" in dir(Net()) and "scale" in dir(Net())


def test_forward_is_missing():
    with pytest.raises(NotImplementedError, match='missing the required "forward" function'):
        nn.Module()(1)
    with pytest.raises(TypeError, match=r"takes 1 positional argument but 2 were given"):
        nn.Module(3)


def test_registration_hooks():
    from adjoin.nn.modules import module as m

    seen = []
    handles = [
        m.register_module_parameter_registration_hook(lambda mod, name, p: seen.append(name)),
        m.register_module_buffer_registration_hook(lambda mod, name, b: seen.append(name)),
        m.register_module_module_registration_hook(lambda mod, name, c: seen.append(name)),
    ]
    Net()
    for handle in handles:
        handle.remove()
    assert {"weight", "running_mean", "first", "scale"} <= set(seen)
    count = len(seen)
    Net()
    assert len(seen) == count


def test_attributes_behind_a_getattr_of_ones_own():
    class Wrapper(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.inner, name)

    class Further(Wrapper):
        pass

    for kind in (Wrapper, Further):
        wrapped = kind(nn.Linear(2, 3))
        assert wrapped.in_features == 2 and wrapped.weight is wrapped.inner.weight
        with pytest.raises(AttributeError, match="'Linear' object has no attribute 'nothing'"):
            _ = wrapped.nothing


def test_a_property_that_fails_is_not_hidden():
    class Failing(nn.Module):
        @property
        def broken(self):
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        _ = Failing().broken


# Several devices of one process


def two():
    return ["cpu", "reference"]


def test_parts_for_devices_and_back():
    x = adjoin.arange(10.0).reshape(5, 2).requires_grad_()
    parts = parallel.scatter(x, two())
    assert [(len(p), p.device.type) for p in parts] == [(3, "cpu"), (2, "reference")] and isinstance(parts, tuple)
    whole = parallel.gather([p * 2 for p in parts], "cpu")
    assert whole.is_cpu and whole.equal(x * 2)
    whole.sum().backward()
    assert x.grad.tolist() == [[2, 2]] * 5
    assert [p.shape for p in parallel.scatter(x, two(), dim=1)] == [(5, 1)] * 2
    assert len(parallel.scatter(x[:1], two())) == 1


def test_parts_of_what_holds_tensors():
    pair = namedtuple("Pair", "a b")
    x = adjoin.arange(4.0)
    for value in ((x, [x, 3]), {"k": x, "n": None}, pair(x, "s")):
        first, second = parallel.scatter(value, two())
        assert type(first) is type(value) and len(first) == len(value)
        back = parallel.gather([first, second], "cpu") if isinstance(value, dict) else None
        assert back is None or back["k"].equal(x) and back["n"] is None
    parts = parallel.scatter(pair(x, "s"), two())
    assert parts[1].a.tolist() == [2, 3] and parts[1].b == "s"
    both = parallel.gather([pair(p.a, p.a + 1) for p in parts], "cpu")
    assert isinstance(both, pair) and both.b.tolist() == [1, 2, 3, 4]
    inputs, named = parallel.scatter_kwargs((x,), {"k": 1}, two())
    assert len(inputs) == len(named) == 2 and named[1] == {"k": 1}
    inputs, named = parallel.scatter_kwargs((), {"k": x}, two())
    assert inputs == ((), ()) and named[0]["k"].tolist() == [0, 1]
    with pytest.warns(UserWarning, match="gather along dimension 0"):
        assert parallel.gather([x[1], x[2]], "cpu").tolist() == [1, 2]
    with pytest.raises(ValueError, match="same number of keys"):
        parallel.gather([{"a": x}, {}], "cpu")


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.again = self.first
        self.scale = nn.Parameter(adjoin.ones(2))
        self.register_buffer("seen", adjoin.zeros(1))
        self.register_parameter("none", None)

    def forward(self, x, by=1):
        return self.again(self.first(x)) * self.scale * by


def test_copies_of_a_module():
    net = Shared()
    here, there = parallel.replicate(net, two())
    assert here.again is here.first and here.first is not net.first and list(here.parameters()) == []
    assert there.scale.device.type == there.seen.device.type == "reference" and there.none is None
    x = adjoin.ones(1, 2)
    total = here(x).sum() + there(x.to("reference")).cpu().sum() * 2
    total.backward()
    own = Shared()
    own.load_state_dict(net.state_dict())
    (own(x).sum() * 3).backward()
    for a, b in zip(net.parameters(), own.parameters(), strict=True):
        assert adjoin.allclose(a.grad, b.grad)
    here.seen.add_(1)
    assert net.seen.item() == 1 and there.seen.item() == 0
    assert not parallel.replicate(net, ["cpu"], detach=True)[0].scale.requires_grad
    with pytest.raises(RuntimeError, match="uninitialized parameters"):
        parallel.replicate(nn.LazyLinear(2), ["cpu"])


def test_several_modules_at_once():
    barrier = threading.Barrier(2)

    class Meeting(nn.Module):
        def forward(self, x, by=1):
            barrier.wait(10)  # neither goes on before the other is there
            return x * by, adjoin.is_grad_enabled(), adjoin.is_autocast_enabled("cpu")

    x = adjoin.ones(2)
    with adjoin.no_grad(), adjoin.autocast("cpu"):
        (a, *states), (b, *others) = parallel.parallel_apply([Meeting()] * 2, [x, (x + 1,)], [{}, {"by": 3}])
    assert a.tolist() == [1, 1] and b.tolist() == [6, 6] and states == others == [False, True]

    class Failing(nn.Module):
        def forward(self, x):
            raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing") as caught:
        parallel.parallel_apply([nn.Identity(), Failing()], [x, x])
    assert "module 1 of parallel_apply" in caught.value.__notes__[0]
    with pytest.raises(AssertionError, match="number of inputs 1"):
        parallel.parallel_apply([nn.Identity()] * 2, [x])
    with pytest.raises(RuntimeError, match="give devices"):
        parallel.parallel_apply([nn.Identity()], [3])


def test_a_batch_on_two_devices():
    net = Shared()
    x = adjoin.arange(6.0).reshape(3, 2)
    wide = nn.DataParallel(net, two(), output_device="cpu")
    out = wide(x, by=2)
    assert out.is_cpu and adjoin.allclose(out, net(x, by=2))
    out.sum().backward()
    spread = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    net(x, by=2).sum().backward()
    assert all(adjoin.allclose(a, p.grad) for a, p in zip(spread, net.parameters(), strict=True))
    assert adjoin.allclose(wide(x[:1]), net(x[:1])) and adjoin.allclose(
        parallel.data_parallel(net, x, two(), "cpu"), net(x)
    )


def test_batch_norm_keeps_its_count_where_a_state_lacks_it():
    norm = nn.BatchNorm1d(3)
    norm.num_batches_tracked = adjoin.tensor(10)
    norm.load_state_dict({}, strict=False)
    assert norm.num_batches_tracked == 10
    with adjoin.device("meta"):
        norm = nn.BatchNorm1d(3)
    norm.load_state_dict({}, assign=True, strict=False)
    assert norm.num_batches_tracked.device.type == "cpu" and norm.num_batches_tracked == 0


def test_a_buffer_takes_no_name_that_is_there():
    net = nn.Module()
    net.number = 5
    for name in ("number",):
        with pytest.raises(KeyError, match=f"attribute '{name}' already exists"):
            setattr(net, name, nn.Buffer(adjoin.ones(1)))

    class Older(nn.Module):
        def register_buffer(self, name, value):
            super().register_buffer(name, value, True)

    older = Older()
    older.bar = nn.Buffer(adjoin.ones(1))
    assert "bar" in older.state_dict()


def test_what_to_refuses():
    net = nn.Linear(1, 1)
    with pytest.raises(RuntimeError, match="cannot be copied by it"):
        net.to("cpu", copy=True)
    with pytest.raises(TypeError, match="non_blocking must be a bool"):
        net.to("cpu", adjoin.ones(1), non_blocking=True)


def test_how_conversion_treats_parameters():
    future = adjoin.__future__
    for setting, same in ((None, True), ("overwrite", False), ("swap", True)):
        net = nn.Linear(2, 2)
        weight = net.weight
        weight.grad = adjoin.ones(2, 2)
        if setting:
            getattr(future, f"set_{setting}_module_params_on_conversion")(True)
            assert getattr(future, f"get_{setting}_module_params_on_conversion")()
        try:
            net.double()
        finally:
            if setting:
                getattr(future, f"set_{setting}_module_params_on_conversion")(False)
        assert (net.weight is weight) is same and (weight.dtype is adjoin.float64) is same
        assert net.weight.dtype is adjoin.float64 and net.weight.grad.dtype is adjoin.float64


def test_a_replica_has_room_for_parameters_and_shares_the_rest():
    net = nn.BatchNorm1d(2)
    replica = net._replicate_for_data_parallel()
    assert type(replica) is nn.BatchNorm1d and not list(replica.parameters()) and len(list(net.parameters())) == 2
    replica._parameters["weight"] = replica._buffers["running_mean"] = None
    assert net.weight is not None and net.running_mean is not None


def test_a_prefix_of_keys_is_taken_off():
    net = nn.Sequential(nn.BatchNorm1d(2))
    state = nn.Sequential(OrderedDict(module=net)).state_dict()
    nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == list(net.state_dict()) and set(state._metadata) == set(net.state_dict()._metadata)
    net.load_state_dict(state)


def test_what_norms_refuse():
    with pytest.raises(ValueError, match="expected more than 1 value per channel when training"):
        nn.GroupNorm(4, 4)(adjoin.ones(1, 4))
    assert nn.GroupNorm(2, 4)(adjoin.ones(1, 4)).shape == nn.GroupNorm(4, 4)(adjoin.ones(2, 4)).shape[:0] + (1, 4)
    with pytest.raises(ValueError, match="expected input's size at dim=1 to match num_features .3., but got: 4"):
        nn.InstanceNorm1d(3, affine=True)(adjoin.ones(2, 4, 5))
    with pytest.warns(UserWarning, match="input's size at dim=0 does not match num_features"):
        nn.InstanceNorm1d(3)(adjoin.ones(4, 5))
