"""tests/python/toplevel/dispatch_test.py: __torch_dispatch__: modes and wrapper classes that see calls below the tape; counts of operations.

Names and counts are PyTorch's 2.15, noted from it.
"""

import copy
import pickle

import adjoin
import pytest
from adjoin import nn
from adjoin.utils import _python_dispatch as dispatch
from adjoin.utils.flop_counter import FlopCounterMode, register_flop_formula

F, aten = nn.functional, adjoin.ops.aten


class Log(dispatch.TorchDispatchMode):
    def __init__(self):
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def seen(function):
    with Log() as log:
        function()
    return [name.removeprefix("aten.") for name in log.seen]


x = adjoin.arange(6.0).view(2, 3)


@pytest.mark.parametrize(
    "function,names",
    [
        (lambda: F.linear(x, adjoin.Tensor.new_ones(x, 4, 3)), ["new_ones.default", "t.default", "mm.default"]),
        (lambda: F.linear(x, x, x[:, 0]), ["select.int", "t.default", "addmm.default"]),
        (lambda: x + 1, ["add.Tensor"]),
        (lambda: x > 0, ["gt.Scalar"]),
        (lambda: x.eq(x), ["eq.Tensor"]),
        (lambda: x.clone().add_(x), ["clone.default", "add_.Tensor"]),
        (lambda: x**2, ["pow.Tensor_Scalar"]),
        (lambda: x.pow(x), ["pow.Tensor_Tensor"]),
        (lambda: (x.sum(), x.sum(0), x.mean(1)), ["sum.default", "sum.dim_IntList", "mean.dim"]),
        (lambda: (x.max(), x.max(1)), ["max.default", "max.dim"]),
        (lambda: (x.t(), x.transpose(0, 1), x.permute(1, 0)), ["t.default", "transpose.int", "permute.default"]),
        (lambda: (x[0], x[:, 1:], x.view(6), x.unsqueeze(0)), ["select.int", "slice.Tensor", "view.default", "unsqueeze.default"]),
        (lambda: (x.softmax(-1), x.log_softmax(1)), ["_softmax.default", "_log_softmax.default"]),
        (lambda: x.double(), ["_to_copy.default"]),
        (lambda: (x.relu(), F.gelu(x), x.tanh()), ["relu.default", "gelu.default", "tanh.default"]),
        (lambda: adjoin.bmm(x[None], x.t()[None])[0], ["unsqueeze.default", "t.default", "unsqueeze.default", "bmm.default", "select.int"]),
        (lambda: F.conv2d(x[None, None], x[None, None]), ["unsqueeze.default"] * 4 + ["convolution.default"]),
    ],
)  # fmt: skip
def test_a_mode_sees_calls_under_the_names_that_programs_test_for(function, names):
    assert [n for n in seen(function)] == names


def test_what_records_is_seen_by_the_same_names():
    w = adjoin.ones(2, 3, requires_grad=True)
    assert seen(lambda: adjoin.cat([w, w])) == ["cat.default"] == seen(lambda: adjoin.cat([w.detach(), w.detach()]))


def test_what_backward_computes_is_seen_too():
    w = adjoin.ones(4, 3, requires_grad=True)
    with Log() as log:
        F.linear(x, w).relu().sum().backward()
    assert log.seen.count("aten.mm.default") == 2 and "aten.threshold_backward.default" in log.seen
    assert (w.grad == x.sum(0)).all()


def test_modes_nest_and_what_one_calls_the_one_before_sees():
    order = []

    class Named(dispatch.TorchDispatchMode):
        def __init__(self, name):
            self.name = name

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            order.append(self.name)
            return func(*args, **(kwargs or {}))

    with Named("outer") as outer, Named("inner") as inner:
        assert dispatch._get_current_dispatch_mode_stack() == [outer, inner]
        assert dispatch._get_current_dispatch_mode() is inner
        x + x
        with dispatch._disable_current_modes():
            x + x
        with dispatch._pop_mode_temporarily():
            x + x
    x + x
    assert order == ["inner", "outer", "outer"]


def test_a_mode_may_answer_in_another_way():
    class Ones(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is aten.add.Tensor:
                return adjoin.ones(2)
            if func.overloadpacket is aten.mul:
                return NotImplemented
            return func(*args, **(kwargs or {}))

    with Ones():
        assert (adjoin.zeros(2) + 5).tolist() == [1, 1]
        y = adjoin.zeros(2)
        y += 7
        assert y.tolist() == [7, 7]  # add_
        with pytest.raises(TypeError, match=r"aten.mul.Tensor: the mode's __torch_dispatch__ returned NotImplemented"):
            y * 2
    with pytest.raises(NotImplementedError, match="has no __torch_dispatch__"), dispatch.TorchDispatchMode():
        x + 1
    assert (x + 1).sum() == 21


def test_an_exception_leaves_no_mode_behind():
    class Wrong(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise ValueError("as asked")

    with pytest.raises(ValueError, match="as asked"), Wrong():
        x + 1
    assert (x + 1).sum() == 21 and not dispatch._get_current_dispatch_mode_stack()


class Quantized(adjoin.Tensor):
    """Whole numbers and a scale; products take them apart."""

    __torch_function__ = adjoin._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, whole, scale):
        return adjoin.Tensor._make_wrapper_subclass(cls, whole.shape, dtype=scale.dtype, device=whole.device)

    def __init__(self, whole, scale):
        self.whole, self.scale = whole, scale

    @classmethod
    def of(cls, t):
        scale = t.abs().max() / 127
        return cls((t / scale).round().to(adjoin.int8), scale)

    def real(self):
        return self.whole.to(self.scale.dtype) * self.scale

    def __repr__(self):
        return f"Quantized({self.whole.tolist()})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        assert cls in types
        if func in (aten.detach.default, aten.clone.default):
            return dispatch.return_and_correct_aliasing(func, args, kwargs, cls(args[0].whole, args[0].scale))
        if func in (aten.t.default, aten.transpose.int):
            return dispatch.return_and_correct_aliasing(func, args, kwargs, cls(args[0].whole.t(), args[0].scale))
        if func in (aten.mm.default, aten.addmm.default):
            return func(*(a.real() if isinstance(a, cls) else a for a in args))
        raise NotImplementedError(f"Quantized: {func}")

    def __tensor_flatten__(self):
        return ["whole", "scale"], None

    @staticmethod
    def __tensor_unflatten__(inner, context, outer_size, outer_stride):
        return Quantized(inner["whole"], inner["scale"])


def test_a_class_without_memory_serves_calls_with_its_tensors():
    weight = adjoin.tensor([[1.0, -2.0], [0.5, 127 / 64]])
    q = Quantized.of(weight)
    assert q.shape == (2, 2) and q.dtype is adjoin.float32 and isinstance(q, Quantized)
    inputs = adjoin.eye(2, requires_grad=True)
    y = inputs.mm(q)
    assert (y - weight).abs().max() < 0.02
    y.sum().backward()
    assert (inputs.grad - weight.sum(1)).abs().max() < 0.04
    with pytest.raises(NotImplementedError, match="Quantized: aten.exp.default"):
        q.exp()
    with pytest.raises(RuntimeError, match="take out what it holds"):
        q.tolist()
    assert dispatch.is_traceable_wrapper_subclass(q) and not dispatch.is_traceable_wrapper_subclass(y)
    doubled = dispatch.transform_subclass(q, lambda name, t: t * 2 if name == "scale" else t)
    assert (doubled.real() == 2 * q.real()).all()


def test_a_layer_whose_weight_is_of_such_a_class():
    layer = nn.Linear(3, 4)
    inputs = adjoin.randn(5, 3, requires_grad=True)
    before = layer(inputs)
    layer.weight = nn.Parameter(Quantized.of(layer.weight.detach()), requires_grad=False)
    assert isinstance(layer.weight, Quantized) and not layer.weight.requires_grad
    after = layer(inputs)
    assert (after - before).abs().max() < 0.05
    after.sum().backward()
    assert (inputs.grad - layer.weight.real().sum(0)).abs().max() < 0.05


def test_attributes_are_found_again_where_the_tensor_comes_up_as_an_alias():
    q = Quantized.of(x)
    alias = q.detach()
    assert isinstance(alias, Quantized) and alias.whole is q.whole


def test_a_class_needs_the_method():
    class Plain(adjoin.Tensor):
        pass

    with pytest.raises(RuntimeError, match="Plain has no __torch_dispatch__"):
        adjoin.Tensor._make_wrapper_subclass(Plain, (2,))


def test_a_memory_tracker_sees_what_is_made():
    class Bytes(dispatch.TorchDispatchMode):
        made = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            for t in out if isinstance(out, (tuple, list)) else [out]:
                if isinstance(t, adjoin.Tensor) and not any(
                    t.data_ptr() == a.data_ptr() for a in args if isinstance(a, adjoin.Tensor)
                ):
                    self.made += t.nbytes
            return out

    with Bytes() as tracker:
        (x * 2).view(6).add_(1)
        x.double()
    assert tracker.made == x.nbytes * 3


def test_overloads_have_the_names_of_pytorch():
    add = aten.add.Tensor
    assert (str(add), repr(add)) == ("aten.add.Tensor", "<OpOverload(op='aten.add', overload='Tensor')>")
    assert (add.__name__, add.name(), add.namespace, add._overloadname) == (
        "add.Tensor",
        "aten::add.Tensor",
        "aten",
        "Tensor",
    )
    assert add.overloadpacket is aten.add and str(aten.add) == "aten.add" and add is aten.add.Tensor
    assert add._schema.name == "aten::add" and [a.name for a in add._schema.arguments][1:] == ["other", "alpha"]
    assert aten.add_.Tensor._schema.is_mutable and not add._schema.is_mutable
    assert aten.mm.default(x, x.t()).equal(x @ x.t()) and aten._softmax.default(x, 1, False).equal(x.softmax(1))
    assert {add: 1}[aten.add.Tensor] == 1 and copy.deepcopy(add) is add
    assert copy.deepcopy(aten.add) is aten.add and pickle.loads(pickle.dumps(aten.add)) is aten.add
    with pytest.raises(AttributeError, match="torch.ops.aten has no op 'nonsense' here"):
        getattr(aten, "nonsense")  # noqa: B009
    with pytest.raises(
        AttributeError, match="aten.add has no overload 'Nonsense' here; it has default, Tensor, Scalar"
    ):
        getattr(aten.add, "Nonsense")  # noqa: B009


def counts(module, *inputs, **how):
    with FlopCounterMode(display=False, **how) as counter:
        out = module(*inputs)
        (out[0] if isinstance(out, tuple) else out).sum().backward()
    return counter


def by_name(counter, module="Global"):
    return {str(op): count for op, count in counter.get_flop_counts()[module].items()}


def test_operations_are_counted_by_op_and_module():
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 16, 5))
    counter = counts(net, adjoin.ones(2, 3, 4, 4))
    conv, linear = 2 * 2 * 16 * 9 * 3 * 8, 2 * 2 * 128 * 5
    assert by_name(counter) == {
        "aten.convolution": conv,
        "aten.addmm": linear,
        "aten.mm": 2 * linear,
        "aten.convolution_backward": conv,
    }
    assert counter.get_total_flops() == 2 * conv + 3 * linear
    assert sum(by_name(counter, "Sequential.0").values()) == 2 * conv
    assert sum(by_name(counter, "Sequential.3").values()) == 3 * linear
    table = counter.get_table()
    assert table.splitlines()[0].split() == ["Module", "FLOP", "%", "Total"] and "- aten.addmm" in table


def test_a_transformer_counts_as_in_pytorch():
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    assert counts(layer, adjoin.ones(2, 10, 32)).get_total_flops() == 936960
    q = adjoin.ones(2, 4, 10, 8, requires_grad=True)
    counter = counts(lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), q)
    name = "aten._scaled_dot_product_flash_attention_for_cpu"
    assert by_name(counter) == {name: 25600, f"{name}_backward": 64000}


def test_formulas_can_be_added():
    with FlopCounterMode(
        display=False, custom_mapping={aten.exp: lambda shape, out_shape=None: shape.numel()}
    ) as counter:
        x.exp()
    assert counter.get_total_flops() == 6
    with pytest.raises(RuntimeError, match="aten.mm has a formula already"):
        register_flop_formula(aten.mm)(lambda *a, **k: 0)


def test_a_number_that_is_a_bool():
    """The op item of a bool tensor was refused under a mode: what the mode returned was called no number."""
    item = adjoin._C.find_op("item")
    with Log() as log:
        assert item(adjoin.tensor(True)) is True and item(adjoin.tensor(2)) == 2
    assert log.seen.count("aten._local_scalar_dense.default") == 2


class Rowed(adjoin.Tensor):
    """Serves calls by the names of rows, and asks for the body of what it does not know."""

    calls, refuses = [], ""

    @classmethod
    def of(cls, inner):
        made = dispatch._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError(func)

    @classmethod
    def __row_dispatch__(cls, name, in_place, args):
        cls.calls.append((name, in_place))
        if name == "addr" and in_place is not None:
            return NotImplemented
        if name == cls.refuses:
            raise RuntimeError("not in parts")
        values = [a.inner if isinstance(a, Rowed) else a for a in args]
        return cls.of(adjoin._C.find_op(name)(*values[: len(args) - 2 if name == "addr" else None]))


def test_the_body_of_an_op_is_run_when_it_is_asked_for():
    a, b = adjoin.randn(2, 3), adjoin.randn(2)
    c = adjoin.randn(3)
    want = adjoin.addr(a, b, c)
    Rowed.calls, Rowed.refuses = [], ""
    assert adjoin.addr(Rowed.of(a), Rowed.of(b), Rowed.of(c)).inner.allclose(want)
    assert Rowed.calls[0] == ("addr", False) and len(Rowed.calls) > 1  # the ops of its body
    inside = Rowed.calls[1][0]
    Rowed.calls, Rowed.refuses = [], inside
    assert adjoin.addr(Rowed.of(a), Rowed.of(b), Rowed.of(c)).inner.allclose(want)  # asked again
    assert Rowed.calls[-1] == ("addr", None)


class Wrapped(adjoin.Tensor):
    """A tensor in a tensor."""

    @staticmethod
    def __new__(cls, inside):
        made = adjoin.Tensor._make_wrapper_subclass(cls, inside.shape, dtype=inside.dtype)
        made.inside = inside
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        result = func(*(a.inside if isinstance(a, cls) else a for a in args), **(kwargs or {}))
        return cls(result) if isinstance(result, adjoin.Tensor) else result


def test_a_number_is_told_by_the_class_of_a_tensor_without_memory():
    n = Wrapped(adjoin.tensor(2.5))
    assert (n.item(), float(n), int(n), complex(n), bool(n)) == (2.5, 2.5, 2, 2.5, True)
    assert not Wrapped(adjoin.tensor([0])) and [10, 20][Wrapped(adjoin.tensor(1))] == 20
    assert bool((n + 1 > 3).all()) and adjoin.allclose(n, n)
    with pytest.raises(RuntimeError, match="no single number"):
        Wrapped(adjoin.ones(2)).item()
    with pytest.raises(NotImplementedError, match="_local_scalar_dense"):
        Quantized.of(adjoin.ones(1)).item()


def test_modes_are_out_of_the_way_for_a_block():
    from adjoin.utils._mode_utils import all_same_mode, no_dispatch

    with Log() as log:
        with no_dispatch():
            x + 1
        x * 2
    assert log.seen == ["aten.mul.Tensor"] and all_same_mode([log, log]) and not all_same_mode([log, None])


def test_a_tensor_without_memory_is_copied_by_its_class():
    for given in (Wrapped(adjoin.arange(3.0)), nn.Parameter(Wrapped(adjoin.arange(3.0)))):
        given.note = ["kept"]
        made = copy.deepcopy(given)
        assert type(made) is Wrapped and made.inside is not given.inside and made.inside.tolist() == [0, 1, 2]
        assert (
            isinstance(made, nn.Parameter) == isinstance(given, nn.Parameter)
            and made.requires_grad == given.requires_grad
        )
        assert made.note == ["kept"] and made.note is not given.note

    class Special(nn.Parameter):
        pass

    assert not isinstance(nn.Parameter(Wrapped(adjoin.ones(1))), Special) and isinstance(
        Special(adjoin.ones(1)), nn.Parameter
    )


def test_a_mode_sees_who_reads_a_value():
    read = "aten._local_scalar_dense.default"
    one = adjoin.ones(())
    reads = (one.item, lambda: bool(one), lambda: float(one), lambda: int(one), lambda: 1 if one else 2)
    for get in reads:
        with Log() as log:
            assert get() == 1
        assert log.seen == [read]
        assert get() == 1 and log.seen == [read]

    class Two(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return 2.0 if str(func) == read else func(*args, **(kwargs or {}))

    with Two():
        assert one.item() == 2 and float(one) == 2
    assert one.item() == 1


def test_modes_of_the_machinery_are_told_from_others():
    class Machinery(dispatch.TorchDispatchMode):
        @classmethod
        def is_infra_mode(cls):
            return True

    inside = dispatch.is_in_torch_dispatch_mode
    with Machinery():
        assert inside() and not inside(include_infra_modes=False)
        with Log(), Machinery():
            assert inside(include_infra_modes=False)
    assert not inside()


def test_arguments_of_ones_own_op_behind_the_star():
    seen = []

    class Look(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((len(args), kwargs))
            return func(*args, **(kwargs or {}))

    @adjoin.library.custom_op("behindthestar::scale", mutates_args=())
    def scale(x: adjoin.Tensor, n: int = 1, *, by: float = 2.0) -> adjoin.Tensor:
        return x * n * by

    with Look():
        assert scale(adjoin.ones(1), by=3.0) == 3 and scale(adjoin.ones(1), 5) == 10
    assert [s for s in seen if s[0] < 3 and (s[1] or s[0] == 2)][:2] == [(1, {"by": 3.0}), (2, {})]


def test_formulas_of_flops_are_for_ops_and_not_for_their_overloads():
    with pytest.raises(ValueError, match="expected each target to be OpOverloadPacket"):
        register_flop_formula(adjoin.ops.aten.sin.default)(lambda *args, **kwargs: 1)
    with pytest.warns(UserWarning, match="mods is not needed"):
        FlopCounterMode(adjoin.nn.Linear(2, 2))
