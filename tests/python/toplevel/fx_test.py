"""tests/python/toplevel/fx_test.py: adjoin.fx: traces give what the program gives, and what can't be traced says where."""

import math
import operator
import warnings

import adjoin
import adjoin.nn.functional as F
import pytest
from adjoin import fx, nn
from adjoin.fx import GraphModule, Interpreter, Tracer, Transformer, symbolic_trace
from adjoin.fx.experimental import optimization, proxy_tensor, symbolic_shapes
from adjoin.fx.passes.graph_drawer import FxGraphDrawer
from adjoin.fx.passes.shape_prop import ShapeProp
from adjoin.fx.proxy import TraceError
from fx_net import Block, Net, an_image, eval_net, same, targets


@pytest.fixture
def net():
    return eval_net()


@pytest.fixture
def image():
    return an_image()


def test_a_trace_gives_the_bits_of_the_program(net, image):
    traced = symbolic_trace(net)
    assert same(traced(image), net(image)) and same(traced(image, flip=True), net(image))
    assert list(traced.state_dict()) != [] and set(traced.state_dict()) == set(net.state_dict())
    assert {"stem.0", "blocks.1.bn", "head", "blocks.0.scale", "shift"} <= set(targets(traced))
    assert F.relu in targets(traced) and F.max_pool2d in targets(traced) and adjoin.cat in targets(traced)
    traced.graph.lint()
    net(image).sum().backward()
    wanted = {name: p.grad.clone() for name, p in net.named_parameters()}
    net.zero_grad()
    traced(image).sum().backward()
    assert all(same(p.grad, wanted[name]) for name, p in traced.named_parameters())
    # The trace left nothing behind: modules are called as before.
    assert isinstance(net(image), adjoin.Tensor) and F.softmax(image, dim=1).shape == image.shape


def test_the_code_is_python(net):
    def f(x, y=2, *rest, **words):
        a, b = x.split(2)
        a = a + y
        return {"a": -a, "b": [b, x.shape[0]], "c": x[1:, None] @ b.T}

    traced = symbolic_trace(f)
    body = [line.strip() for line in traced.code.strip().splitlines()]
    assert body[0] == "def forward(self, x, y = 2, *rest, **words):"
    assert "split = x.split(2)" in body and "add = getitem + y;  getitem = y = None" in body
    assert "getattr_1 = x.shape" in body and body[-1].startswith("return {'a': neg, 'b': [getitem_1, getitem_2],")
    x = adjoin.arange(8.0).reshape(4, 2)
    got, wanted = traced(x), f(x)
    assert same(got["a"], wanted["a"]) and same(got["c"], wanted["c"]) and got["b"][1] == 4
    assert same(traced(x, 5, 6, z=7)["a"], f(x, 5)["a"])
    assert "%add : [num_users=1] = call_function[target=operator.add](args = (%getitem, %y), kwargs = {})" in str(
        traced.graph
    )


def test_names_of_nodes_do_not_meet_names_of_python():
    def f(input, len):
        return adjoin.sum(input) + adjoin.sum(len)

    names = [n.name for n in symbolic_trace(f).graph.nodes]
    assert names == ["input_1", "len_1", "sum_1", "sum_2", "add", "output"]
    assert symbolic_trace(f)(adjoin.ones(2), adjoin.ones(3)) == 5


def g_control(x):
    if x.sum() > 0:  # the line that the error names
        return x
    return -x


@pytest.mark.parametrize(
    "program, error, text",
    [
        (g_control, TraceError, "if x.sum() > 0:  # the line that the error names"),
        (lambda x: [y for y in x], TraceError, "[y for y in x], TraceError"),
        (lambda x: x.__len__(), RuntimeError, "wrap('len')"),
        (lambda x: int(x), TypeError, "lambda x: int(x)"),
        (lambda x: list(range(x)), TypeError, "fx_test.py"),
        (lambda x: 1 in x, TraceError, "lambda x: 1 in x"),
        (lambda x: x.add(object()), NotImplementedError, "lambda x: x.add(object())"),
    ],
)
def test_what_depends_on_a_value_raises_with_the_line(program, error, text):
    with pytest.raises(error) as caught:
        symbolic_trace(program)
    assert text in str(caught.value)
    if error is TraceError:
        assert "fx_test.py:" in str(caught.value)


def test_concrete_args():
    def f(x, flag, other=None):
        return x + 1 if flag else x - 1

    traced = symbolic_trace(f, concrete_args={"flag": True})
    assert traced(adjoin.ones(1), True) == 2
    with pytest.raises(
        AssertionError, match="flag has been specialized to have value True but got another value, False"
    ):
        traced(adjoin.ones(1), False)

    def nested(x, parts):
        return {"sum": x + parts["a"] * parts["n"]}

    traced = symbolic_trace(nested, concrete_args={"parts": {"a": fx.PH, "n": 3}})
    assert traced(adjoin.ones(1), {"a": adjoin.ones(1), "n": 3})["sum"] == 4
    assert Interpreter(traced).run(adjoin.ones(1), {"a": adjoin.ones(1), "n": 3})["sum"] == 4
    with pytest.raises(ValueError, match="no_such"):
        symbolic_trace(f, concrete_args={"no_such": 1})


def test_operators_of_proxies():
    def f(x, y):
        return [
            x + y, 2 - x, x * y, x / y, x // y, x % y, x**2, 2**x, x @ y, -x, +x, abs(x), x == y, x < y, x >= y, x != y,
            (x > 0) & (y > 0), (x > 0) | (y > 0), (x > 0) ^ (y > 0), ~(x > 0), x[0], divmod(3, 2)[0] + x,
        ]  # fmt: skip

    x, y = adjoin.tensor([[1.0, -2.0], [3.0, 4.0]]), adjoin.tensor([[2.0, 3.0], [-1.0, 2.0]])
    traced = symbolic_trace(f)
    for got, wanted, run in zip(traced(x, y), f(x, y), Interpreter(traced).run(x, y), strict=True):
        assert same(got, wanted) and same(run, wanted)
    constant = adjoin.tensor([1.0, 2.0])
    traced = symbolic_trace(lambda x: constant + x * constant)
    assert same(traced(x), constant + x * constant) and "_tensor_constant0" in traced.state_dict()
    assert targets(traced).count("_tensor_constant0") == 2


@fx.wrap
def by_value(x):
    return x * 2 if x.sum() > 0 else x * 3


def helper_len(x):
    return x.shape[0] * len(x)


fx.wrap("len")


def test_wrapped_functions_are_one_step():
    def f(x):
        return by_value(x) + len(x) + math.sqrt(x.shape[0])

    traced = symbolic_trace(f)
    names = [getattr(t, "__name__", t) for t in targets(traced)]
    assert {"by_value", "len", "sqrt"} <= set(names)
    again = symbolic_trace(traced)
    for x in (adjoin.ones(4), -adjoin.ones(4)):
        assert same(traced(x), f(x)) and same(again(x), f(x))
    assert by_value in targets(again)
    graph = Tracer(autowrap_functions=(helper_len,)).trace(lambda x: helper_len(x) + 1)
    assert helper_len in [n.target for n in graph.nodes]
    with pytest.raises(NotImplementedError, match="top level"):
        fx.wrap("len")


def test_tracers_say_what_a_leaf_is_and_see_every_step(net, image):
    class Blocks(Tracer):
        def is_leaf_module(self, m, path):
            return isinstance(m, Block) or super().is_leaf_module(m, path)

        def call_module(self, m, forward, args, kwargs):
            self.called = [*getattr(self, "called", []), self.path_of_module(m)]
            return super().call_module(m, forward, args, kwargs)

        def create_proxy(self, kind, target, *rest, **words):
            self.made = [*getattr(self, "made", []), (kind, target)]
            return super().create_proxy(kind, target, *rest, **words)

    tracer = Blocks()
    tracer.record_stack_traces = True
    traced = GraphModule(net, tracer.trace(net))
    assert "blocks.0" in targets(traced) and "blocks.0.conv" not in targets(traced)
    assert tracer.called[:3] == ["stem", "stem.0", "stem.1"] and ("call_module", "blocks.1") in tracer.made
    assert same(traced(image), net(image))
    relu = next(n for n in traced.graph.nodes if n.target is adjoin.flatten)
    assert "adjoin.flatten(adjoin.cat([a, b], dim=1), 1)" in relu.stack_trace
    conv = symbolic_trace(net).graph.find_nodes(op="call_module", target="blocks.0.conv")[0]
    assert list(conv.meta["nn_module_stack"]) == ["blocks", "blocks.0", "blocks.0.conv"]


def test_what_is_computed_of_parameters_alone_stays_in_the_graph():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(5, 3)
            self.gain = nn.Parameter(adjoin.ones(3))

        def forward(self, i):
            return self.table(i) @ (self.table.weight * self.gain.exp()).t()

    net, i = Tied(), adjoin.tensor([0, 3])
    traced = symbolic_trace(net)
    assert same(traced(i), net(i)) and not [t for t in targets(traced) if "constant" in str(t)]
    with adjoin.no_grad():
        net.gain.fill_(2.0)
    assert same(traced(i), net(i))
    traced(i).sum().backward()
    assert net.gain.grad is not None and net.table.weight.grad is not None
    assert isinstance(net.table.weight, nn.Parameter) and isinstance(net._parameters["gain"], nn.Parameter)


def test_parameters_of_known_shape_and_buffers_as_steps():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(adjoin.ones(3))
            self.unused = nn.Parameter(adjoin.ones(1))
            self.register_buffer("b", adjoin.ones(3))

        def forward(self, x):
            return x * self.weight if self.weight.shape[0] == 3 else x

        def squared(self):
            return self.b * self.b

    module = Scaled()
    traced = GraphModule(module, Tracer(param_shapes_constant=True).trace(module))
    assert targets(traced) == ["x", "weight", operator.mul, "output"] and same(traced(adjoin.ones(3)), adjoin.ones(3))
    assert isinstance(module.weight, nn.Parameter)

    class Buffers(Tracer):
        proxy_buffer_attributes = True
        traced_func_name = "squared"

    assert targets(GraphModule(module, Buffers().trace(module))) == ["b", operator.mul, "output"]
    constant = GraphModule(module, type("Plain", (Tracer,), {"traced_func_name": "squared"})().trace(module))
    assert targets(constant) == ["_tensor_constant0", "output"]


def test_relu_becomes_gelu_with_right_numbers_and_gradients(net, image):
    traced = symbolic_trace(net)
    changed = 0
    for node in traced.graph.nodes:
        if node.op == "call_function" and node.target is F.relu:
            with traced.graph.inserting_after(node):
                new = traced.graph.call_function(F.gelu, node.args)
            node.replace_all_uses_with(new)
            traced.graph.erase_node(node)
            changed += 1
    traced.graph.lint()
    traced.recompile()
    assert changed == 2 and "gelu" in traced.code and "relu(" not in traced.code

    def block(self, x):
        return (F.gelu(self.bn(self.conv(x))) + x) * self.scale

    x = image.clone().requires_grad_()
    traced(x).square().sum().backward()
    got, grads = x.grad, [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    x.grad = None
    Block.forward, before = block, Block.forward
    try:
        wanted = net(x)
    finally:
        Block.forward = before
    wanted.square().sum().backward()
    assert same(traced(image), wanted) and adjoin.allclose(got, x.grad)
    assert all(adjoin.allclose(a, p.grad) for a, p in zip(grads, net.parameters(), strict=True))


def test_convolutions_take_in_batch_norms(net, image):
    fused = optimization.fuse(net)
    assert not any(isinstance(m, nn.BatchNorm2d) for m in fused.modules()) and "bn" not in fused.code
    assert adjoin.allclose(fused(image), net(image), atol=1e-5)
    assert any(isinstance(m, nn.BatchNorm2d) for m in net.modules())
    with pytest.raises(AssertionError, match="eval"):
        optimization.fuse(net.train())
    dropped = optimization.remove_dropout(nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.9)))
    assert "1" not in targets(dropped) and "0" in targets(dropped)


def test_interpreters_and_transformers(net, image):
    traced = symbolic_trace(net)

    class Count(Interpreter):
        def run_node(self, n):
            self.seen = [*getattr(self, "seen", []), n.op]
            return super().run_node(n)

        def call_function(self, target, args, kwargs):
            return super().call_function(adjoin.tanh if target is F.relu else target, args, kwargs)

    count = Count(traced)
    out = count.run(image)
    assert len(count.seen) == len(traced.graph.nodes) and not same(out, net(image))
    assert len(count.env) <= 2  # values are forgotten after their last use

    class Tanh(Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(adjoin.tanh if target is F.relu else target, args, kwargs)

    changed = Tanh(traced).transform()
    assert same(changed(image), out) and same(Transformer(traced).transform()(image), net(image))
    with pytest.raises(RuntimeError, match="x, but one was not passed in"):
        Interpreter(traced).run()
    bad = symbolic_trace(lambda x: x @ adjoin.ones(3))
    with pytest.raises(RuntimeError) as caught:
        Interpreter(bad).run(adjoin.ones(2, 2))
    assert "While executing %matmul" in caught.value.__notes__[0]


def test_training_through_a_trace(net, image):
    traced = symbolic_trace(Net().train())
    optimizer = adjoin.optim.SGD(traced.parameters(), lr=0.05)
    losses = []
    for _ in range(5):
        loss = F.cross_entropy(traced(image), adjoin.tensor([0, 3]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_what_is_not_there_says_what_to_use(net):
    with pytest.raises(NotImplementedError, match="symbolic_trace"):
        proxy_tensor.make_fx(lambda x: x, tracing_mode="symbolic")
    with pytest.raises(NotImplementedError, match="print_tabular"):
        FxGraphDrawer(symbolic_trace(net), "net")
    with pytest.raises(NotImplementedError, match="symbolic_trace"):
        symbolic_shapes.ShapeEnv()
    with pytest.raises(NotImplementedError, match="propagate"):
        ShapeProp(symbolic_trace(net), fake_mode=object())
    assert symbolic_shapes.guard_or_false(2 > 1) and symbolic_shapes.free_symbols(3) == set()

    stranger = nn.Linear(1, 1)
    with pytest.raises(NameError, match="not a part"):
        symbolic_trace(lambda x: stranger(x))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(stranger(adjoin.ones(1, 1)), adjoin.Tensor)


def test_operands_in_a_list_are_arguments_of_their_own():
    graph = fx.symbolic_trace(lambda a, b: adjoin.einsum("ij,jk->ik", [a, b])).graph
    node = next(n for n in graph.nodes if n.op == "call_function")
    assert [str(a) for a in node.args] == ["ij,jk->ik", "a", "b"]
